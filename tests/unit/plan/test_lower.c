/* Lowering: what is fused, where reorders stand, and that nobody but kernels notices. */
#include "support/planned.h"

static const bwi_session_options predicting = {.predict = true, .tile = 4};

static void open_model(planned *p, const char *expression, int64_t h, int64_t w, int64_t c)
{
    planned_model(p, expression, 8, h, w, c, 1);
    planned_open(p, &predicting);
}

/* ---- Patterns ---- */

static void test_relu_and_pooling(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool fused;
    } cases[] = {
        {"conv2d(4,4,relu) maxpool2d(2)", true},   {"relu maxpool2d(2)", true},
        {"relu maxpool2d((2,2),strides=2)", true}, {"relu maxpool2d(3)", false},
        {"relu maxpool2d((2,3))", false},          {"relu maxpool2d(2,strides=1)", false},
        {"relu maxpool2d(2,padding=same)", false}, /* 9 is odd: its last window is padded */
        {"relu conv2d(4,2) maxpool2d(2)", false},  {"maxpool2d(2) relu", false},
    };
    for (size_t i = 0; i < BWI_COUNT(cases); i++) {
        planned p;
        open_model(&p, cases[i].text, 9, 9, 3);
        int relus = planned_count(p.plan, &bwi_op_relu), pools = planned_count(p.plan, &bwi_op_maxpool2d);
        assert_int_equal(planned_count(p.plan, &bwi_op_relu_maxpool), cases[i].fused);
        assert_int_equal(relus, !cases[i].fused);
        assert_int_equal(pools, !cases[i].fused);
        planned_close(&p);
    }
    planned p;
    open_model(&p, "relu maxpool2d(2,padding=same)", 8, 8, 3); /* even extents need no padding */
    assert_int_equal(planned_count(p.plan, &bwi_op_relu_maxpool), 1);
    planned_close(&p);
}

static void test_convolution_and_pooling(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        const bwi_op *fused; /* NULL: not fused */
    } cases[] = {
        {"conv2d(4,3,relu) maxpool2d(2)", &bwi_op_thin_relu_maxpool},
        {"conv2d(4,5,relu,padding=same) maxpool2d(2)", &bwi_op_conv_relu_maxpool},
        {"conv2d(4,3,relu,strides=2) maxpool2d(2)", NULL},
        {"conv2d(4,3,relu,dilation_rate=2) maxpool2d(2)", NULL},
        {"conv2d(6,3,relu,groups=3) maxpool2d(2)", NULL},
        {"conv2d(4,3) maxpool2d(2)", NULL},
        {"conv2d(4,3,relu) maxpool2d(3)", NULL},
        {"conv2d(4,3,relu) conv2d(5,2)", NULL},
    };
    for (size_t i = 0; i < BWI_COUNT(cases); i++) {
        planned p;
        open_model(&p, cases[i].text, 9, 9, 3);
        assert_int_equal(planned_count(p.plan, cases[i].fused ? cases[i].fused : &bwi_op_conv2d) > 0, true);
        assert_int_equal(planned_count(p.plan, &bwi_op_conv2d) == 0, !!cases[i].fused);
        planned_close(&p);
    }
}

/* A graph by hand, since the first half has two users or is itself wanted. */
static void test_values_that_others_need(void **state)
{
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        bw_context *ctx = bw_open(NULL);
        bwi_graph graph = {.ctx = ctx};
        bwi_input_attributes a = {.shape = {.ndim = 3, .extent = {4, 4, 2}}, .dtype = BW_F32};
        bwi_pool2d_attributes two = {.window = {2, 2}, .strides = {2, 2}};
        bw_node *x = bwi_graph_add(&graph, &bwi_op_input, "input", &a, sizeof a, NULL, 0, NULL, 0);
        bw_node *r = bwi_graph_add(&graph, &bwi_op_relu, "relu", NULL, 0, &x, 1, NULL, 0);
        bw_node *y = bwi_graph_add(&graph, &bwi_op_maxpool2d, "pool", &two, sizeof two, &r, 1, NULL, 0);
        bw_node *z = bwi_graph_add(&graph, &bwi_op_softmax, "softmax", NULL, 0, &r, 1, NULL, 0);
        bw_node *targets[2] = {y, kind == 1 ? r : z};
        bwi_program_request program = {.targets = targets, .target_count = kind == 0 ? 1 : 2};
        bwi_plan_request request = {.graph = &graph, .programs = &program, .program_count = 1};
        bwi_plan *plan;
        check_ok(ctx, bwi_plan_make(ctx, &plan, &request));
        assert_int_equal(planned_count(plan, &bwi_op_relu_maxpool), kind == 0); /* z is not needed then */
        if (kind == 0) {
            assert_null(plan->lowered[r->number]);
            assert_null(plan->lowered[z->number]);
            assert_ptr_equal(plan->lowered[y->number]->op, &bwi_op_relu_maxpool);
        } else {
            assert_non_null(plan->lowered[r->number]);
        }
        bwi_plan_free(plan);
        bwi_graph_free(&graph);
        assert_int_equal(bwi_allocated_bytes(ctx), 0);
        bw_close(ctx);
    }
}

/* ---- Layouts ---- */

static int64_t plain_block(const bw_node *node)
{
    int64_t h, w, c;
    bwi_shape_image(&node->shape, &h, &w, &c);
    return c;
}

/* Every op gets its inputs in the block it wants. */
static void check_node(const bwi_plan *plan, const bw_node *node)
{
    int64_t src = 0, dst = 0;
    assert_ptr_equal(plan->graph.nodes[node->number], node);
    for (int k = 0; k < node->inputs; k++) {
        assert_true(node->input[k]->number < node->number);
        bool real = node->input[k]->dtype == BW_F32;
        switch (node->op->layout) {
        case BWI_LAYOUT_CHANNELS_LAST:
            assert_true(!real || node->input[k]->block == plain_block(node->input[k]));
            assert_int_equal(node->block, plain_block(node));
            break;
        case BWI_LAYOUT_SAME:
            assert_int_equal(node->block == plain_block(node), node->input[k]->block == plain_block(node->input[k]));
            assert_true(node->block == node->input[k]->block || node->block == plain_block(node));
            break;
        case BWI_LAYOUT_PREPARED:
            node->op->kernels->blocks(node, &src, &dst);
            assert_int_equal(node->input[0]->block, src);
            assert_true(dst == 0 || node->block == dst);
            break;
        case BWI_LAYOUT_FREE:
            break;
        }
    }
    if (node->op == &bwi_op_reorder) {
        assert_true(node->block != node->input[0]->block);
        assert_true(bwi_shape_equal(&node->shape, &node->input[0]->shape));
        for (int n = node->number + 1; n < plan->graph.count; n++) { /* none is made twice */
            const bw_node *other = plan->graph.nodes[n];
            assert_false(other->op == &bwi_op_reorder && other->input[0] == node->input[0] && other->block == node->block);
        }
    }
}

static void test_blocks_agree(void **state)
{
    (void)state;
    bwi_session_options all = {.train = true, .evaluate = true, .predict = true, .batch = 8, .tile = 4};
    for (int m = 0; m < PLANNED_EXPRESSIONS; m++) {
        planned p;
        planned_model(&p, planned_expressions[m], 8, 9, 9, 3, 1);
        planned_open(&p, &all);
        for (int n = 0; n < p.plan->graph.count; n++) {
            check_node(p.plan, p.plan->graph.nodes[n]);
        }
        /* The shapes are the model's, and each of its nodes that was not fused away has its place. */
        for (int n = 0; n < p.session.graph.count; n++) {
            const bw_node *source = p.session.graph.nodes[n], *lowered = p.plan->lowered[n];
            assert_true(lowered || source->op == &bwi_op_relu || source->op == &bwi_op_conv2d);
            assert_true(!lowered || bwi_shape_equal(&lowered->shape, &source->shape));
        }
        planned_close(&p);
    }
}

/* A convolution of 20 channels gives blocks; what follows is dense: a reorder, or a pooling that changes the block. */
static void test_reorders(void **state)
{
    (void)state;
    planned p;
    open_model(&p, "conv2d(20,3) flatten", 9, 9, 3);
    const bw_node *conv = NULL;
    for (int n = 0; n < p.plan->graph.count; n++) {
        conv = p.plan->graph.nodes[n]->op == &bwi_op_conv2d ? p.plan->graph.nodes[n] : conv;
    }
    assert_non_null(conv);
    int expected = conv->block != 20;
    assert_int_equal(planned_count(p.plan, &bwi_op_reorder) >= expected, 1);
    planned_close(&p);

    open_model(&p, "conv2d(20,3) maxpool2d(2) flatten", 9, 9, 3);
    const bw_node *pool = NULL;
    for (int n = 0; n < p.plan->graph.count; n++) {
        const bw_node *node = p.plan->graph.nodes[n];
        pool = node->op == &bwi_op_maxpool2d ? node : pool;
        assert_false(node->op == &bwi_op_reorder && node->number > conv->number && node->input[0]->op == &bwi_op_maxpool2d);
    }
    assert_int_equal(pool->block, 20); /* as its user wants it */
    planned_close(&p);
}

/* ---- Order ---- */

/* Flatten gives height, width, channels, whatever the convolution's own order: y[h][w][c] = x[h][w] k[c]. */
static void test_flatten_keeps_the_order(void **state)
{
    (void)state;
    static const int channels[] = {1, 3, 8, 16, 20, 33};
    static const char *const rest[] = {" flatten", " maxpool2d(1) flatten", " relu flatten", ""};
    enum { H = 3, W = 5, N = 8 };
    for (size_t i = 0; i < BWI_COUNT(channels); i++) {
        for (size_t f = 0; f < BWI_COUNT(rest); f++) {
            char text[100];
            int c = channels[i];
            snprintf(text, sizeof text, "conv2d(%d,1,use_bias=false)%s", c, rest[f]);
            planned p;
            planned_model(&p, text, N, H, W, 1, 1);
            check_ok(p.ctx, bw_build(p.model, 3, (const int64_t[]){H, W, 1}, 1));
            float kernel[33], *y = malloc((size_t)(N * H * W * c) * sizeof *y);
            for (int k = 0; k < c; k++) {
                kernel[k] = (float)(k + 1) / 64;
            }
            for (int k = 0; k < N * H * W; k++) {
                p.x[k] = (float)(k % 61 + 1); /* products are exact */
            }
            check_ok(p.ctx, bw_variable_set(p.model, 0, kernel, (size_t)c));
            check_ok(p.ctx, bw_predict(p.model, p.data, y, (size_t)(N * H * W * c)));
            for (int k = 0; k < N * H * W * c; k++) {
                assert_true(y[k] == p.x[k / c] * kernel[k % c]);
            }
            free(y);
            planned_close(&p);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_relu_and_pooling),
        cmocka_unit_test(test_convolution_and_pooling),
        cmocka_unit_test(test_values_that_others_need),
        cmocka_unit_test(test_blocks_agree),
        cmocka_unit_test(test_reorders),
        cmocka_unit_test(test_flatten_keeps_the_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
