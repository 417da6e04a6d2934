/* Autodiff: the instructions of a program, their order, their levels, and who writes a gradient first. */
#include "support/context.h"

#include "op/op.h"

/* ---- Graphs by hand ---- */

/* The instruction that writes a value, views followed; NULL: none. */
static const bwi_instruction *writer_of(const bwi_program *program, int value)
{
    while (program->values[value].view_of >= 0) {
        value = program->values[value].view_of;
    }
    for (int n = 0; n < program->count; n++) {
        for (int k = 0; k < program->instructions[n].write_count; k++) {
            if (program->instructions[n].writes[k] == value) {
                return &program->instructions[n];
            }
        }
    }
    return NULL;
}

static bw_node *add_input(bwi_graph *graph, int64_t width)
{
    bwi_input_attributes a = {.shape = {.ndim = 1, .extent = {width}}, .dtype = BW_F32};
    return bwi_graph_add(graph, &bwi_op_input, "input", &a, sizeof a, NULL, 0, NULL, 0);
}

static bwi_variable *add_kernel(bwi_graph *graph, int64_t in, int64_t out)
{
    bwi_shape shape = {.ndim = 2, .extent = {in, out}};
    return bwi_graph_variable(graph, "dense", "kernel", &shape, true, "zeros", in, out);
}

static bw_node *add_dense(bwi_graph *graph, bw_node *x, bwi_variable *kernel)
{
    bwi_dense_attributes a = {.units = kernel->shape.extent[1]};
    return bwi_graph_add(graph, &bwi_op_dense, "dense", &a, sizeof a, &x, 1, &kernel, 1);
}

static bw_node *add_plain(bwi_graph *graph, const bwi_op *op, bw_node *x)
{
    return bwi_graph_add(graph, op, op->name, NULL, 0, &x, 1, NULL, 0);
}

static bw_node *add_batchnorm(bwi_graph *graph, bw_node *x)
{
    bwi_batchnorm_attributes a = {.momentum = 0.9F, .epsilon = 1e-3F, .center = true, .scale = true};
    bwi_variable *variables[4];
    for (int k = 0; k < 4; k++) {
        variables[k] =
            bwi_graph_variable(graph, "norm", "v", &(bwi_shape){.ndim = 1, .extent = {x->shape.extent[0]}}, k < 2, "zeros", 0, 0);
    }
    return bwi_graph_add(graph, &bwi_op_batchnorm, "norm", &a, sizeof a, &x, 1, variables, 4);
}

static bw_node *add_loss(bwi_graph *graph, bw_node *x)
{
    bw_node *inputs[2] = {x, add_input(graph, x->shape.extent[0])};
    return bwi_graph_add(graph, &bwi_op_loss, "loss", &(bwi_loss_attributes){.kind = BWI_LOSS_SQUARE}, sizeof(bwi_loss_attributes),
                         inputs, 2, NULL, 0);
}

/* ---- Looking at programs ---- */

static int count_pass(const bwi_program *p, const bw_node *node, bwi_pass pass)
{
    int count = 0;
    for (int n = 0; n < p->count; n++) {
        count += (!node || p->instructions[n].node == node) && p->instructions[n].pass == pass;
    }
    return count;
}

static const bwi_instruction *find_pass(const bwi_program *p, const bw_node *node, bwi_pass pass)
{
    for (int n = 0; n < p->count; n++) {
        if (p->instructions[n].node == node && p->instructions[n].pass == pass) {
            return &p->instructions[n];
        }
    }
    return NULL;
}

/* What is read was written before, at no higher level; each value is written once. */
static void check_order(const bwi_program *p)
{
    bool written[256] = {false};
    assert_true(p->value_count <= 256);
    for (int n = 0; n < p->count; n++) {
        const bwi_instruction *i = &p->instructions[n];
        for (int k = 0; k < i->read_count; k++) {
            int value = i->reads[k];
            assert_true(p->values[value].level <= i->level);
            while (p->values[value].view_of >= 0) {
                value = p->values[value].view_of;
            }
            assert_true(written[value]);
            assert_ptr_equal(writer_of(p, i->reads[k])->writes, writer_of(p, value)->writes);
        }
        for (int k = 0; k < i->write_count; k++) {
            assert_false(written[i->writes[k]]);
            written[i->writes[k]] = true;
            assert_int_equal(p->values[i->writes[k]].level, i->level);
        }
        assert_true(i->level < p->levels);
    }
}

static void test_a_chain(void **state)
{
    (void)state;
    bwi_graph graph = {.ctx = ctx};
    bw_node *x = add_input(&graph, 6), *d1 = add_dense(&graph, x, add_kernel(&graph, 6, 5)),
            *r = add_plain(&graph, &bwi_op_relu, d1), *d2 = add_dense(&graph, r, add_kernel(&graph, 5, 4)),
            *loss = add_loss(&graph, d2), *mean = add_plain(&graph, &bwi_op_mean, loss),
            *unused = add_plain(&graph, &bwi_op_relu, d2);
    bwi_program p;
    check_ok(ctx, bwi_program_make(ctx, &p, &graph, &mean, 1, &loss, 1));
    check_order(&p);
    assert_true(p.training);
    assert_int_equal(p.levels, 1); /* nothing needs the whole batch */
    assert_int_equal(count_pass(&p, unused, BWI_PASS_FORWARD), 0);
    assert_int_equal(count_pass(&p, NULL, BWI_PASS_FORWARD), 6); /* two inputs, dense, relu, dense, loss */
    assert_int_equal(count_pass(&p, mean, BWI_PASS_STATISTICS), 1);
    assert_int_equal(count_pass(&p, NULL, BWI_PASS_SEED), 1);
    assert_int_equal(count_pass(&p, d1, BWI_PASS_BACKWARD_WEIGHTS), 1);
    assert_int_equal(count_pass(&p, d2, BWI_PASS_BACKWARD_WEIGHTS), 1);
    assert_int_equal(count_pass(&p, d2, BWI_PASS_BACKWARD), 1);
    assert_int_equal(count_pass(&p, r, BWI_PASS_BACKWARD), 1);
    assert_int_equal(count_pass(&p, d1, BWI_PASS_BACKWARD), 0); /* nobody wants the input's difference */
    assert_int_equal(count_pass(&p, NULL, BWI_PASS_ADD), 0);
    assert_true(find_pass(&p, d1, BWI_PASS_BACKWARD_WEIGHTS)->overwrites[0]);
    assert_int_equal(find_pass(&p, loss, BWI_PASS_BACKWARD)->diff_src[1], -1); /* the target has no difference */
    bwi_program_free(&p);

    check_ok(ctx, bwi_program_make(ctx, &p, &graph, &d2, 1, NULL, 0));
    check_order(&p);
    assert_false(p.training);
    assert_int_equal(p.count, 4);
    assert_int_equal(count_pass(&p, NULL, BWI_PASS_FORWARD), 4);
    bwi_program_free(&p);
    bwi_graph_free(&graph);
}

static void test_frozen_layers(void **state)
{
    (void)state;
    bwi_graph graph = {.ctx = ctx};
    bwi_variable *frozen = add_kernel(&graph, 6, 5), *trained = add_kernel(&graph, 5, 4), *last = add_kernel(&graph, 4, 3);
    frozen->trainable = last->trainable = false;
    bw_node *x = add_input(&graph, 6), *d1 = add_dense(&graph, x, frozen), *d2 = add_dense(&graph, d1, trained),
            *d3 = add_dense(&graph, d2, last), *loss = add_loss(&graph, d3);
    bwi_program p;
    check_ok(ctx, bwi_program_make(ctx, &p, &graph, &loss, 1, &loss, 1));
    check_order(&p);
    assert_int_equal(count_pass(&p, d1, BWI_PASS_BACKWARD_WEIGHTS), 0);
    assert_int_equal(count_pass(&p, d1, BWI_PASS_BACKWARD), 0);
    assert_int_equal(count_pass(&p, d2, BWI_PASS_BACKWARD_WEIGHTS), 1);
    assert_int_equal(count_pass(&p, d2, BWI_PASS_BACKWARD), 0);
    assert_int_equal(count_pass(&p, d3, BWI_PASS_BACKWARD_WEIGHTS), 0);
    assert_int_equal(count_pass(&p, d3, BWI_PASS_BACKWARD), 1);
    bwi_program_free(&p);
    bwi_graph_free(&graph);
}

/* A node with two users: its difference is their sum. A variable of two nodes: one writes its gradient, the other adds. */
static void test_sharing(void **state)
{
    (void)state;
    bwi_graph graph = {.ctx = ctx};
    bwi_variable *shared = add_kernel(&graph, 5, 5);
    bw_node *x = add_input(&graph, 5), *d1 = add_dense(&graph, x, shared), *d2 = add_dense(&graph, d1, shared),
            *losses[2] = {add_loss(&graph, d1), add_loss(&graph, d2)};
    bwi_program p;
    check_ok(ctx, bwi_program_make(ctx, &p, &graph, losses, 2, losses, 2));
    check_order(&p);
    assert_int_equal(count_pass(&p, NULL, BWI_PASS_SEED), 2);
    const bwi_instruction *add = find_pass(&p, d1, BWI_PASS_ADD);
    assert_non_null(add);
    assert_int_equal(add->adds, 2);
    assert_int_equal(add->read_count, 2);
    const bwi_instruction *first = find_pass(&p, d2, BWI_PASS_BACKWARD_WEIGHTS),
                          *second = find_pass(&p, d1, BWI_PASS_BACKWARD_WEIGHTS);
    assert_true(first < second);
    assert_true(first->overwrites[0]);
    assert_false(second->overwrites[0]);
    assert_int_equal(second->diff_dst, add->dst);
    bwi_program_free(&p);
    bwi_graph_free(&graph);
}

/* Each whole-batch op costs one pass over all tiles forward and one backward. */
static void test_levels(void **state)
{
    (void)state;
    for (int norms = 0; norms < 5; norms++) {
        bwi_graph graph = {.ctx = ctx};
        bw_node *x = add_dense(&graph, add_input(&graph, 6), add_kernel(&graph, 6, 6)), *norm[5];
        for (int k = 0; k < norms; k++) {
            norm[k] = add_batchnorm(&graph, x);
            x = add_plain(&graph, &bwi_op_relu, norm[k]);
        }
        bw_node *loss = add_loss(&graph, x);
        bwi_program p;
        check_ok(ctx, bwi_program_make(ctx, &p, &graph, &loss, 1, &loss, 1));
        check_order(&p);
        assert_int_equal(p.levels, 2 * norms + 1);
        for (int k = 0; k < norms; k++) {
            assert_int_equal(find_pass(&p, norm[k], BWI_PASS_STATISTICS)->level, k);
            assert_int_equal(find_pass(&p, norm[k], BWI_PASS_FORWARD)->level, k + 1);
            assert_int_equal(find_pass(&p, norm[k], BWI_PASS_BACKWARD_STATISTICS)->level, 2 * norms - 1 - k);
            assert_int_equal(find_pass(&p, norm[k], BWI_PASS_BACKWARD)->level, 2 * norms - k);
        }
        bwi_program_free(&p);
        check_ok(ctx, bwi_program_make(ctx, &p, &graph, &x, 1, NULL, 0));
        assert_int_equal(p.levels, 1); /* inference takes the moving values */
        assert_int_equal(count_pass(&p, NULL, BWI_PASS_STATISTICS), 0);
        bwi_program_free(&p);
        bwi_graph_free(&graph);
    }
}

/* A view has no instruction: its value and its difference are those of its input. */
static void test_views(void **state)
{
    (void)state;
    bwi_graph graph = {.ctx = ctx};
    bwi_reshape_attributes a = {.shape = {.ndim = 2, .extent = {3, 2}}}, flat = {.shape = {.ndim = -1}};
    bw_node *d = add_dense(&graph, add_input(&graph, 6), add_kernel(&graph, 6, 6));
    bw_node *v = bwi_graph_add(&graph, &bwi_op_reshape, "reshape", &a, sizeof a, &d, 1, NULL, 0);
    bw_node *w = bwi_graph_add(&graph, &bwi_op_reshape, "flatten", &flat, sizeof flat, &v, 1, NULL, 0);
    bw_node *loss = add_loss(&graph, w);
    bwi_program p;
    check_ok(ctx, bwi_program_make(ctx, &p, &graph, &loss, 1, &loss, 1));
    check_order(&p);
    for (int pass = 0; pass < BWI_PASS_COUNT; pass++) {
        assert_int_equal(count_pass(&p, v, (bwi_pass)pass) + count_pass(&p, w, (bwi_pass)pass), 0);
    }
    int read = find_pass(&p, loss, BWI_PASS_FORWARD)->src[0];
    assert_ptr_equal(writer_of(&p, read)->node, d);
    assert_ptr_equal(writer_of(&p, find_pass(&p, d, BWI_PASS_BACKWARD_WEIGHTS)->diff_dst)->node, loss);
    bwi_program_free(&p);
    bwi_graph_free(&graph);
}

static void test_names_of_passes(void **state)
{
    (void)state;
    for (int a = 0; a < BWI_PASS_COUNT; a++) {
        for (int b = 0; b < a; b++) {
            assert_string_not_equal(bwi_pass_name((bwi_pass)a), bwi_pass_name((bwi_pass)b));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_chain), cmocka_unit_test(test_frozen_layers), cmocka_unit_test(test_sharing),
        cmocka_unit_test(test_levels),  cmocka_unit_test(test_views),         cmocka_unit_test(test_names_of_passes),
    };
    return cmocka_run_group_tests(tests, open_context, close_empty_context);
}
