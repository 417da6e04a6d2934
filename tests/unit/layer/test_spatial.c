/* Layers of sequences and images: shapes and names as Keras gives them, padding that a convolution takes over, and errors. */
#include "support/context.h"

#include "layer/layer.h"

static void test_shapes(void **state)
{
    (void)state;
    static const struct {
        const char *layer, *name;
        bwi_shape in, out, kernel; /* kernel of rank 0: no variables */
    } rows[] = {
        {"conv1d(4,3,padding=same,strides=2)", "conv1d", {2, {9, 3}}, {2, {5, 4}}, {3, {3, 3, 4}}},
        {"conv1d(6,3,padding=causal,dilation_rate=2,groups=3)", "conv1d", {2, {9, 3}}, {2, {9, 6}}, {3, {3, 1, 6}}},
        {"depthwise_conv2d((3,2),depth_multiplier=2,strides=2)",
         "depthwise_conv2d",
         {3, {8, 7, 3}},
         {3, {3, 3, 6}},
         {4, {3, 2, 3, 2}}},
        {"maxpool1d(3,2,same)", "max_pooling1d", {2, {10, 4}}, {2, {5, 4}}, {0}},
        {"avgpool1d(2)", "average_pooling1d", {2, {9, 4}}, {2, {4, 4}}, {0}},
        {"avgpool2d((2,3),padding=same)", "average_pooling2d", {3, {7, 8, 5}}, {3, {4, 3, 5}}, {0}},
        {"global_maxpool1d", "global_max_pooling1d", {2, {9, 4}}, {1, {4}}, {0}},
        {"global_maxpool2d(keepdims=true)", "global_max_pooling2d", {3, {5, 4, 3}}, {3, {1, 1, 3}}, {0}},
        {"global_avgpool1d(keepdims=true)", "global_average_pooling1d", {2, {9, 4}}, {2, {1, 4}}, {0}},
        {"global_avgpool2d", "global_average_pooling2d", {3, {5, 4, 3}}, {1, {3}}, {0}},
        {"reshape(6,-1)", "reshape", {3, {3, 4, 5}}, {2, {6, 10}}, {0}},
        {"reshape((60))", "reshape", {3, {3, 4, 5}}, {1, {60}}, {0}},
        {"permute(3,1,2)", "permute", {3, {3, 4, 5}}, {3, {5, 3, 4}}, {0}},
        {"zero_padding2d", "zero_padding2d", {3, {3, 4, 5}}, {3, {5, 6, 5}}, {0}},
        {"zero_padding2d((1,2))", "zero_padding2d", {3, {3, 4, 5}}, {3, {5, 8, 5}}, {0}},
        {"zero_padding2d(((1,0),(2,3)))", "zero_padding2d", {3, {3, 4, 5}}, {3, {4, 9, 5}}, {0}},
        {"cropping2d", "cropping2d", {3, {5, 4, 3}}, {3, {5, 4, 3}}, {0}},
        {"cropping2d(1)", "cropping2d", {3, {5, 4, 3}}, {3, {3, 2, 3}}, {0}},
        {"cropping2d(((1,0),(2,1)))", "cropping2d", {3, {5, 4, 3}}, {3, {4, 1, 3}}, {0}},
        {"upsampling2d", "up_sampling2d", {3, {3, 4, 2}}, {3, {6, 8, 2}}, {0}},
        {"upsampling2d((1,3),interpolation=bilinear)", "up_sampling2d", {3, {3, 4, 2}}, {3, {3, 12, 2}}, {0}},
    };
    for (size_t i = 0; i < BWI_COUNT(rows); i++) {
        bw_model *model = bw_model_parse(ctx, rows[i].layer);
        check_ok(ctx, bw_build(model, rows[i].in.ndim, rows[i].in.extent, 1));
        const bw_node *out = model->outputs[0];
        if (!bwi_shape_equal(&out->shape, &rows[i].out) || strcmp(out->name, rows[i].name) != 0) {
            char text[160];
            fail_msg("%s: got %s of %s", rows[i].layer, bwi_format_shape(text, out->shape.ndim, out->shape.extent), out->name);
        }
        assert_int_equal(model->graph.variable_count > 0, rows[i].kernel.ndim > 0);
        assert_true(!rows[i].kernel.ndim || bwi_shape_equal(&model->graph.variables[0]->shape, &rows[i].kernel));
        bw_model_free(model);
    }
}

/* The convolution's input is the model's own where the zeros are its padding, else the padded image. */
static void test_padding_is_taken_over(void **state)
{
    (void)state;
    static const struct {
        const char *expression;
        bool taken;
        int64_t height;
    } rows[] = {
        {"zero_padding2d(1) conv2d(2,3)", true, 7},
        {"zero_padding2d(((0,1),(2,0))) depthwise_conv2d(3,strides=2)", true, 3},
        {"zero_padding2d(2) conv2d(2,2,dilation_rate=2)", true, 9},
        {"zero_padding2d(3) conv2d(2,3)", false, 11},
        {"zero_padding2d(1) conv2d(2,3,padding=same)", false, 9},
        {"cropping2d(1) conv2d(2,3)", false, 3},
    };
    const int64_t shape[] = {7, 7, 2};
    for (size_t i = 0; i < BWI_COUNT(rows); i++) {
        bw_model *model = bw_model_parse(ctx, rows[i].expression);
        check_ok(ctx, bw_build(model, 3, shape, 1));
        const bw_node *node = model->outputs[0];
        assert_int_equal(node->input[0] == model->inputs[0], rows[i].taken);
        assert_int_equal(node->shape.extent[0], rows[i].height);
        bw_model_free(model);
    }
}

static void test_errors(void **state)
{
    (void)state;
    static const struct {
        const char *expression;
        bw_status status;
        int ndim;
        const char *message;
    } rows[] = {
        {"conv1d(4,3)", BW_INVALID_ARGUMENT, 3, "conv1d|a sequence (length, channels)|(8, 6, 3)"},
        {"conv1d(4,(3,3))", BW_INVALID_ARGUMENT, 2, "conv1d|kernel_size|one number|2"},
        {"conv1d(4,7)", BW_INVALID_ARGUMENT, 2, "conv1d|1x7|(6, 3)"},
        {"conv2d(4,3)", BW_INVALID_ARGUMENT, 2, "conv2d|an image (height, width, channels)|(6, 3)"},
        {"conv2d(4,3,groups=2)", BW_INVALID_ARGUMENT, 3, "conv2d|3 channels|4 filters|2 groups"},
        {"depthwise_conv2d(9)", BW_INVALID_ARGUMENT, 3, "depthwise_conv2d|9x9|(8, 6, 3)"},
        {"avgpool2d(2)", BW_INVALID_ARGUMENT, 2, "average_pooling2d|an image|(6, 3)"},
        {"maxpool1d(7)", BW_INVALID_ARGUMENT, 2, "max_pooling1d|1x7|(6, 3)"},
        {"maxpool2d(20,padding=same)", BW_UNIMPLEMENTED, 3, "max_pooling2d|255|20x20"},
        {"global_avgpool1d", BW_INVALID_ARGUMENT, 3, "global_average_pooling1d|a sequence|(8, 6, 3)"},
        {"global_maxpool2d", BW_INVALID_ARGUMENT, 2, "global_max_pooling2d|an image|(6, 3)"},
        {"reshape(5,-1)", BW_INVALID_ARGUMENT, 2, "reshape|(6, 3)|(5, -1)"},
        {"reshape(-1,-1)", BW_INVALID_ARGUMENT, 2, "reshape|(6, 3)|(-1, -1)"},
        {"reshape(4,5)", BW_INVALID_ARGUMENT, 2, "reshape|(6, 3)|(4, 5)"},
        {"reshape(1000000000,1000000000,1000000000)", BW_INVALID_ARGUMENT, 2, "reshape|(6, 3)"},
        {"permute(1,1)", BW_INVALID_ARGUMENT, 2, "permute|1 to 2|(6, 3)"},
        {"permute(2,1)", BW_INVALID_ARGUMENT, 3, "permute|1 to 3|(8, 6, 3)"},
        {"zero_padding2d((1,2,3))", BW_INVALID_ARGUMENT, 3, "zero_padding2d|padding|3"},
        {"cropping2d(((5,3),(0,0)))", BW_INVALID_ARGUMENT, 3, "cropping2d|(8, 6, 3)|5 and 3|axis 1"},
        {"upsampling2d((2,2,2))", BW_INVALID_ARGUMENT, 3, "up_sampling2d|size|3"},
        {"upsampling2d(10000) upsampling2d(10000)", BW_INVALID_ARGUMENT, 3, "up_sampling2d_1|too large"},
    };
    const int64_t line[] = {6, 3}, image[] = {8, 6, 3};
    for (size_t i = 0; i < BWI_COUNT(rows); i++) {
        bw_model *model = bw_model_parse(ctx, rows[i].expression);
        check_fails(ctx, bw_build(model, rows[i].ndim, rows[i].ndim == 2 ? line : image, 1), rows[i].status, rows[i].message);
        bw_model_free(model);
    }
}

/* What the table of arguments refuses already when it is read. */
static void test_arguments(void **state)
{
    (void)state;
    static const struct {
        const char *expression, *message;
    } rows[] = {
        {"avgpool2d", "average_pooling2d|pool_size must be given"},
        {"conv2d(4,3,padding=causal)", "conv2d|padding|valid same|causal"},
        {"upsampling2d(2,interpolation=area)", "up_sampling2d|interpolation|nearest bilinear bicubic|area"},
        {"zero_padding2d(-1)", "zero_padding2d|padding|-1"},
        {"permute(0,1)", "permute|dims|0"},
        {"global_avgpool2d(keepdims=2)", "global_average_pooling2d|keepdims|true or false"},
    };
    for (size_t i = 0; i < BWI_COUNT(rows); i++) {
        assert_null(bw_model_parse(ctx, rows[i].expression));
        check_fails(ctx, bwi_pending(ctx), BW_INVALID_ARGUMENT, rows[i].message);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_shapes, open_context, close_context),
        cmocka_unit_test_setup_teardown(test_padding_is_taken_over, open_context, close_context),
        cmocka_unit_test_setup_teardown(test_errors, open_context, close_context),
        cmocka_unit_test_setup_teardown(test_arguments, open_context, close_context),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
