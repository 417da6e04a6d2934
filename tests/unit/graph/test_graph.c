/* Nodes, shapes and variables. */
#include "support/context.h"

#include "op/op.h"

static bw_node *add_input(bwi_graph *graph, int ndim, int64_t a, int64_t b, int64_t c)
{
    bwi_input_attributes attributes = {.shape = {.ndim = ndim, .extent = {a, b, c}}, .dtype = BW_F32};
    return bwi_graph_add(graph, &bwi_op_input, "input", &attributes, sizeof attributes, NULL, 0, NULL, 0);
}

static void test_shapes(void **state)
{
    (void)state;
    bwi_shape scalar = {.ndim = 0}, row = {.ndim = 1, .extent = {5}}, image = {.ndim = 3, .extent = {2, 3, 4}},
              other = {.ndim = 4, .extent = {2, 3, 4, 5}}, huge = {.ndim = 3, .extent = {INT64_MAX, 2, 1}};
    assert_int_equal(bwi_shape_count(&scalar), 1);
    assert_int_equal(bwi_shape_count(&row), 5);
    assert_int_equal(bwi_shape_count(&image), 24);
    assert_int_equal(bwi_shape_count(&huge), INT64_MAX);
    assert_true(bwi_shape_equal(&image, &image));
    assert_false(bwi_shape_equal(&image, &other));
    assert_false(bwi_shape_equal(&row, &(bwi_shape){.ndim = 1, .extent = {6}}));
    int64_t h, w, c;
    bwi_shape_image(&scalar, &h, &w, &c);
    assert_true(h == 1 && w == 1 && c == 1);
    bwi_shape_image(&row, &h, &w, &c);
    assert_true(h == 1 && w == 1 && c == 5);
    bwi_shape_image(&image, &h, &w, &c);
    assert_true(h == 2 && w == 3 && c == 4);
    bwi_shape_image(&other, &h, &w, &c);
    assert_true(h == 1 && w == 24 && c == 5);
}

static void test_nodes(void **state)
{
    (void)state;
    bwi_graph graph = {.ctx = ctx};
    bw_node *x = add_input(&graph, 3, 4, 4, 2);
    bwi_reshape_attributes flat = {.shape = {.ndim = -1}};
    bw_node *y = bwi_graph_add(&graph, &bwi_op_reshape, "flatten", &flat, sizeof flat, &x, 1, NULL, 0);
    assert_int_equal(graph.count, 2);
    assert_int_equal(x->number, 0);
    assert_int_equal(y->number, 1);
    assert_ptr_equal(y->input[0], x);
    assert_int_equal(y->shape.ndim, 1);
    assert_int_equal(y->shape.extent[0], 32);
    assert_int_equal(x->block, 2);
    assert_int_equal(y->block, 32);
    assert_string_equal(y->name, "flatten");
    /* The attributes are copied. */
    flat.shape.ndim = 7;
    assert_int_equal(((bwi_reshape_attributes *)y->attributes)->shape.ndim, -1);
    /* What is missing is passed on, without a message of its own. */
    bw_node *missing = NULL;
    assert_null(bwi_graph_add(&graph, &bwi_op_relu, "relu", NULL, 0, &missing, 1, NULL, 0));
    check_ok(ctx, bwi_pending(ctx));
    bwi_variable *no_variable = NULL;
    assert_null(bwi_graph_add(&graph, &bwi_op_relu, "relu", NULL, 0, &x, 1, &no_variable, 1));
    check_ok(ctx, bwi_pending(ctx));
    assert_int_equal(graph.count, 2);
    bwi_graph_free(&graph);
    assert_int_equal(graph.count, 0);
    bwi_graph_free(&graph);
}

static void test_many_nodes(void **state)
{
    (void)state;
    bwi_graph graph = {.ctx = ctx};
    bw_node *x = add_input(&graph, 1, 3, 0, 0);
    for (int i = 1; i < 1000; i++) {
        x = bwi_graph_add(&graph, &bwi_op_relu, "relu", NULL, 0, &x, 1, NULL, 0);
        assert_int_equal(x->number, i);
        assert_int_equal(x->input[0]->number, i - 1);
    }
    bwi_graph_free(&graph);
}

static void test_shapes_that_do_not_fit(void **state)
{
    (void)state;
    bwi_graph graph = {.ctx = ctx};
    bw_node *x = add_input(&graph, 3, 4, 4, 2);
    bwi_reshape_attributes wrong = {.shape = {.ndim = 2, .extent = {3, 11}}};
    assert_null(bwi_graph_add(&graph, &bwi_op_reshape, "mine", &wrong, sizeof wrong, &x, 1, NULL, 0));
    check_fails(ctx, bwi_pending(ctx), BW_INVALID_ARGUMENT, "layer mine: cannot reshape (4, 4, 2) into (3, 11)");
    bwi_pool2d_attributes pool = {.window = {5, 1}, .strides = {1, 1}};
    assert_null(bwi_graph_add(&graph, &bwi_op_maxpool2d, "pool", &pool, sizeof pool, &x, 1, NULL, 0));
    check_fails(ctx, bwi_pending(ctx), BW_INVALID_ARGUMENT, "layer pool: a window of 5x1 does not fit into (4, 4, 2)");
    assert_int_equal(graph.count, 1);
    bwi_graph_free(&graph);
}

static void test_sizes_that_cannot_be(void **state)
{
    (void)state;
    bwi_graph graph = {.ctx = ctx};
    bwi_input_attributes most = {.shape = {.ndim = 2, .extent = {BWI_MOST_VALUES / 2, 2}}, .dtype = BW_F32};
    assert_non_null(bwi_graph_add(&graph, &bwi_op_input, "most", &most, sizeof most, NULL, 0, NULL, 0));
    bwi_input_attributes more = {.shape = {.ndim = 2, .extent = {BWI_MOST_VALUES / 2, 3}}, .dtype = BW_F32};
    assert_null(bwi_graph_add(&graph, &bwi_op_input, "more", &more, sizeof more, NULL, 0, NULL, 0));
    check_fails(ctx, bwi_pending(ctx), BW_RESOURCE_EXHAUSTED, "layer more: an output of shape (549755813888, 3)");
    bwi_shape kernel = {.ndim = 4, .extent = {10000, 10000, 1000000, 1000000}};
    assert_null(bwi_graph_variable(&graph, "conv", "kernel", &kernel, true, "zeros", 1, 1));
    check_fails(ctx, bwi_pending(ctx), BW_RESOURCE_EXHAUSTED, "variable conv/kernel: a shape of (10000, 10000, 1000000, 1000000)");
    bwi_graph_free(&graph);
}

static void reverse(int count, const float *from, float *to)
{
    for (int i = 0; i < count; i++) {
        to[i] = from[count - 1 - i];
    }
}

static void pack(const bwi_packing *packing, const float *keras_order, void *stored)
{
    reverse(*(const int *)packing->object, keras_order, stored);
}

static void unpack(const bwi_packing *packing, const void *stored, int64_t first, int64_t count, float *keras_order)
{
    float all[3];
    reverse(*(const int *)packing->object, stored, all);
    memcpy(keras_order, all + first, (size_t)count * sizeof *all);
}

static void test_variables(void **state)
{
    (void)state;
    static int three = 3;
    bwi_graph graph = {.ctx = ctx};
    bwi_shape shape = {.ndim = 1, .extent = {3}};
    for (int i = 0; i < 40; i++) {
        bwi_variable *made = bwi_graph_variable(&graph, "layer", "name", &shape, true, "zeros", 1, 2);
        assert_int_equal(made->index, i);
        assert_string_equal(made->name, "layer/name");
        assert_int_equal(made->count, 3);
    }
    check_ok(ctx, bwi_graph_open_variables(&graph, bwi_kernels_of(ctx)));
    float in[3] = {1, 2, 3}, out[3];
    bwi_variable *plain = graph.variables[0], *packed = graph.variables[1];
    bwi_variable_write(plain, in);
    assert_memory_equal(plain->data, in, sizeof in);
    packed->packing = (bwi_packing){.count = 3, .object = &three, .pack = pack, .unpack = unpack};
    bwi_variable_write(packed, in);
    float *stored = bwi_variable_open(packed);
    assert_true(stored[0] == 3);
    assert_true(stored[2] == 1);
    bwi_variable_close(packed);
    bwi_variable_read(packed, out);
    assert_memory_equal(in, out, sizeof in);
    for (int i = 0; i < 2; i++) { /* parts of them */
        bwi_variable_read_part(i ? packed : plain, 1, 2, out);
        assert_memory_equal(in + 1, out, 2 * sizeof *out);
    }
    bwi_graph_free(&graph);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes),     cmocka_unit_test(test_nodes),
        cmocka_unit_test(test_many_nodes), cmocka_unit_test(test_shapes_that_do_not_fit),
        cmocka_unit_test(test_variables),  cmocka_unit_test(test_sizes_that_cannot_be),
    };
    return cmocka_run_group_tests(tests, open_context, close_empty_context);
}
