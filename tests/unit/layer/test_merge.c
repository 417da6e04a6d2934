/*
 * Activations, noise, normalisation and merging layers: names and shapes as Keras gives them, what becomes nothing at all, what a
 * frozen batchnorm becomes, and errors.
 */
#include "support/context.h"

#include "layer/layer.h"

static const int64_t image[] = {6, 5, 4};

/* Names of the last layer, output, and the first variable of the model as Keras 3 has them. */
static void test_shapes(void **state)
{
    (void)state;
    static const struct {
        const char *expression, *name;
        bwi_shape out;
        const char *variable; /* NULL: none */
        bwi_shape shape;
    } rows[] = {
        {"relu(6)", "re_lu", {3, {6, 5, 4}}, NULL, {0}},
        {"leaky_relu", "leaky_re_lu", {3, {6, 5, 4}}, NULL, {0}},
        {"elu", "elu", {3, {6, 5, 4}}, NULL, {0}},
        {"prelu", "p_re_lu", {3, {6, 5, 4}}, "p_re_lu/alpha", {3, {6, 5, 4}}},
        {"prelu(shared_axes=(1,2))", "p_re_lu", {3, {6, 5, 4}}, "p_re_lu/alpha", {3, {1, 1, 4}}},
        {"softmax(axis=1)", "softmax", {3, {6, 5, 4}}, NULL, {0}},
        {"dropout(0.5)", "dropout", {3, {6, 5, 4}}, NULL, {0}},
        {"spatial_dropout2d(0.5,seed=3)", "spatial_dropout2d", {3, {6, 5, 4}}, NULL, {0}},
        {"gaussian_noise(0.5)", "gaussian_noise", {3, {6, 5, 4}}, NULL, {0}},
        {"layernorm", "layer_normalization", {3, {6, 5, 4}}, "layer_normalization/gamma", {1, {4}}},
        {"layernorm(axis=(-1,-2),scale=false)", "layer_normalization", {3, {6, 5, 4}}, "layer_normalization/beta", {2, {5, 4}}},
        {"normalization", "normalization", {3, {6, 5, 4}}, "normalization/mean", {1, {4}}},
        {"normalization(axis=(1,3))", "normalization", {3, {6, 5, 4}}, "normalization/mean", {2, {6, 4}}},
        {"normalization(axis=none)", "normalization", {3, {6, 5, 4}}, "normalization/mean", {0}},
        {"normalization(mean=1,variance=2)", "normalization", {3, {6, 5, 4}}, NULL, {0}},
        {"rescaling(0.5)", "rescaling", {3, {6, 5, 4}}, NULL, {0}},
        {"a=relu relu add(a)", "add", {3, {6, 5, 4}}, NULL, {0}},
        {"a=relu global_avgpool2d subtract(a)", "subtract", {3, {6, 5, 4}}, NULL, {0}},
        {"a=relu global_avgpool2d(keepdims=true) multiply(a)", "multiply", {3, {6, 5, 4}}, NULL, {0}},
        {"a=relu b=relu relu average(a,b)", "average", {3, {6, 5, 4}}, NULL, {0}},
        {"a=relu relu maximum(a)", "maximum", {3, {6, 5, 4}}, NULL, {0}},
        {"a=relu relu minimum(a)", "minimum", {3, {6, 5, 4}}, NULL, {0}},
        {"a=relu b=relu relu concat(a,b)", "concatenate", {3, {6, 5, 12}}, NULL, {0}},
        {"a=relu relu concatenate(a,axis=1)", "concatenate", {3, {12, 5, 4}}, NULL, {0}},
        {"a=reshape(30,4) relu dot(a,axes=1)", "dot", {2, {4, 4}}, NULL, {0}},
        {"a=reshape(30,4) relu dot(a,axes=(-1,2))", "dot", {2, {30, 30}}, NULL, {0}},
        {"a=flatten relu dot(a,axes=1,normalize=true)", "dot", {1, {1}}, NULL, {0}},
    };
    for (size_t i = 0; i < BWI_COUNT(rows); i++) {
        bw_model *model = bw_model_parse(ctx, rows[i].expression);
        check_ok(ctx, bw_build(model, 3, image, 1));
        const bw_node *out = model->outputs[0];
        if (!bwi_shape_equal(&out->shape, &rows[i].out) || strcmp(out->name, rows[i].name) != 0) {
            char text[160];
            fail_msg("%s: got %s of %s", rows[i].expression, bwi_format_shape(text, out->shape.ndim, out->shape.extent), out->name);
        }
        assert_int_equal(bw_variable_count(model) > 0, !!rows[i].variable);
        if (rows[i].variable) {
            assert_string_equal(bw_variable_name(model, 0), rows[i].variable);
            assert_true(bwi_shape_equal(&model->graph.variables[0]->shape, &rows[i].shape));
        }
        bw_model_free(model);
    }
}

/* Layers that do nothing add no node; the plain forms are the plain ops. */
static void test_ops(void **state)
{
    (void)state;
    static const struct {
        const char *expression;
        const bwi_op *op;
    } rows[] = {
        {"relu activation(linear)", &bwi_op_relu},
        {"relu dropout(0)", &bwi_op_relu},
        {"relu spatial_dropout2d(0.0)", &bwi_op_relu},
        {"relu gaussian_noise(0)", &bwi_op_relu},
        {"relu(none,0,0)", &bwi_op_relu},
        {"leaky_relu(0)", &bwi_op_relu},
        {"relu(negative_slope=0.1)", &bwi_op_activation},
        {"softmax", &bwi_op_softmax},
        {"softmax(axis=3)", &bwi_op_softmax},
        {"softmax(axis=-2)", &bwi_op_softmax_axis},
        {"batchnorm", &bwi_op_batchnorm},
        {"batchnorm(axis=3)", &bwi_op_batchnorm},
        {"batchnorm(trainable=false)", &bwi_op_batchnorm_frozen},
    };
    for (size_t i = 0; i < BWI_COUNT(rows); i++) {
        bw_model *model = bw_model_parse(ctx, rows[i].expression);
        check_ok(ctx, bw_build(model, 3, image, 1));
        assert_ptr_equal(model->outputs[0]->op, rows[i].op);
        bw_model_free(model);
    }
}

/* Each dropout has a stream of its own, from its name and seed, whatever stands before it. */
static uint64_t stream_of(const char *expression)
{
    bw_model *model = bw_model_parse(ctx, expression);
    check_ok(ctx, bw_build(model, 3, image, 1));
    uint64_t stream = ((const bwi_noise_attributes *)model->outputs[0]->attributes)->stream;
    bw_model_free(model);
    return stream;
}

static void test_streams(void **state)
{
    (void)state;
    uint64_t first = stream_of("dropout(0.5)");
    assert_true(stream_of("relu dropout(0.2)") == first);
    assert_true(stream_of("dropout(0.5) dropout(0.5)") != first);
    assert_true(stream_of("dropout(0.5,seed=1)") != first);
    assert_true(stream_of("dropout(0.5,seed=1)") != stream_of("dropout(0.5,seed=2)"));
    assert_true(stream_of("gaussian_noise(0.5)") != first);
}

static void test_errors(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
        bw_status status;
    } cases[] = {
        {"relu(-1)", "re_lu: column 6: max_value: expected a number from 0|'-1'", BW_INVALID_ARGUMENT},
        {"leaky_relu(-0.1)", "leaky_re_lu|negative_slope|'-0.1'", BW_INVALID_ARGUMENT},
        {"dropout(1.5)", "dropout|rate: expected a number from 0 to 1|'1.5'", BW_INVALID_ARGUMENT},
        {"gaussian_noise(2)", "gaussian_noise|stddev: expected a number from 0 to 1", BW_INVALID_ARGUMENT},
        {"flatten spatial_dropout2d(0.5)", "layer spatial_dropout2d: expected an image|(120,)", BW_INVALID_ARGUMENT},
        {"prelu(shared_axes=4)", "layer p_re_lu: shared_axes: expected an axis from 1 to 3 or from -3 to -1, got 4",
         BW_INVALID_ARGUMENT},
        {"softmax(0)", "layer softmax: axis: expected an axis from 1 to 3 or from -3 to -1, got 0", BW_INVALID_ARGUMENT},
        {"layernorm(axis=(1,4))", "layer layer_normalization: axis: expected an axis from 1 to 3", BW_INVALID_ARGUMENT},
        {"layernorm(axis=none)", "layer layer_normalization: axis: expected at least one axis", BW_INVALID_ARGUMENT},
        {"groupnorm(3)", "layer group_normalization: 4 channels do not divide into 3 groups", BW_INVALID_ARGUMENT},
        {"groupnorm(1,axis=1)", "layer group_normalization: axis: only the last axis is supported", BW_UNIMPLEMENTED},
        {"rmsnorm(axis=(2,3))", "layer rms_normalization: axis: only the last axis is supported", BW_UNIMPLEMENTED},
        {"dropout(0.5,noise_shape=(none,2,1,1))", "layer dropout: noise_shape: expected None or 1|(6, 5, 4)", BW_INVALID_ARGUMENT},
        {"dropout(0.5,noise_shape=(8,1,1,1))", "layer dropout: noise_shape: expected None or 1 for the batch", BW_INVALID_ARGUMENT},
        {"alpha_dropout(1)", "layer alpha_dropout: rate: expected a number below 1", BW_INVALID_ARGUMENT},
        {"gaussian_dropout(1)", "layer gaussian_dropout: rate: expected a number below 1", BW_INVALID_ARGUMENT},
        {"rescaling((1,2,3))", "layer rescaling: 3 numbers do not fit the last axis of (6, 5, 4)", BW_INVALID_ARGUMENT},
        {"rescaling(1,(1,2,3))", "layer rescaling: 3 numbers do not fit the last axis of (6, 5, 4)", BW_INVALID_ARGUMENT},
        {"rescaling((1,2,3,4,5,6,7,8,9))", "scale: expected from 1 to 8 numbers", BW_INVALID_ARGUMENT},
        {"rescaling((1,none))", "scale: expected a number|'none'", BW_INVALID_ARGUMENT},
        {"normalization(axis=1,mean=(1,2),variance=(1,2))",
         "layer normalization: lists in mean and variance go along the last axis", BW_UNIMPLEMENTED},
        {"repeat_vector(3)", "layer repeat_vector: expected a vector, got (6, 5, 4)", BW_INVALID_ARGUMENT},
        {"layer_scale(0.1,5)", "layer layer_scale: expected 5 channels|(6, 5, 4)", BW_INVALID_ARGUMENT},
        {"conv2d(3,(none,1))", "kernel_size: expected a number from 1|'none'", BW_INVALID_ARGUMENT},
        {"layernorm(rms_scaling=true)", "layer layer_normalization: rms_scaling is not supported", BW_UNIMPLEMENTED},
        {"conv2d(3,2,padding=same(1))", "padding: expected a value without arguments", BW_INVALID_ARGUMENT},
        {"dense(3,prelu(1))", "layer dense: prelu(1) is not supported as an activation", BW_UNIMPLEMENTED},
        {"dense(3,leaky_relu(slope=1))", "there is no argument 'slope'", BW_INVALID_ARGUMENT},
        {"dense(3,glu)", "layer dense: glu divides the last axis, whose extent must be even", BW_INVALID_ARGUMENT},
        {"conv3d(2,2)", "layer conv3d: expected a volume (depth, height, width, channels), got (6, 5, 4)", BW_INVALID_ARGUMENT},
        {"center_crop(7,2)", "layer center_crop: images smaller than the crop, which Keras resizes, are not supported",
         BW_UNIMPLEMENTED},
        {"adaptive_avgpool2d((1,2,3))", "layer adaptive_average_pooling2d: output_size: expected one number or 2, got 3",
         BW_INVALID_ARGUMENT},
        {"random_brightness(0.1,(3,1))", "layer random_brightness: value_range: expected two numbers, the smaller one first",
         BW_INVALID_ARGUMENT},
        {"random_zoom((0.1,0.2,0.3))", "layer random_zoom: height_factor: expected one number or two, got 3", BW_INVALID_ARGUMENT},
        {"normalization(mean=1)", "layer normalization: expected both mean and variance or neither, got mean only",
         BW_INVALID_ARGUMENT},
        {"rescaling", "rescaling: column 1: scale must be given", BW_INVALID_ARGUMENT},
        {"a=relu add", "layer add: expected at least 2 inputs, got 1", BW_INVALID_ARGUMENT},
        {"a=relu b=relu relu subtract(a,b)", "layer subtract: expected 2 inputs, got 3", BW_INVALID_ARGUMENT},
        {"a=conv2d(3,1) conv2d(2,1) add(a)", "layer add: shapes (6, 5, 2) and (6, 5, 3) do not broadcast", BW_INVALID_ARGUMENT},
        {"a=conv2d(3,1) conv2d(2,2) concat(a)", "layer concatenate|axis 3 only|(5, 4, 2) and (6, 5, 3)", BW_INVALID_ARGUMENT},
        {"a=relu relu concat(a,axis=5)", "layer concatenate: axis: expected an axis from 1 to 3 or from -3 to -1, got 5",
         BW_INVALID_ARGUMENT},
        {"a=relu relu dot(a)", "dot|axes must be given", BW_INVALID_ARGUMENT},
        {"a=relu relu dot(a,axes=(1,2,3))", "layer dot: axes: expected one number or two, got 3", BW_INVALID_ARGUMENT},
        {"a=relu relu dot(a,axes=(1,2))", "layer dot|axis 1 of (6, 5, 4)|axis 2 of|6 and 5 values", BW_INVALID_ARGUMENT},
        {"activation(sigmoyd)", "layer activation: there is no activation 'sigmoyd'; did you mean 'sigmoid'?", BW_INVALID_ARGUMENT},
    };
    for (size_t i = 0; i < BWI_COUNT(cases); i++) {
        bw_model *model = bw_model_parse(ctx, cases[i].text), *fine = bw_model_parse(ctx, "relu");
        check_fails(ctx, bw_build(model ? model : fine, 3, image, 1), cases[i].status, cases[i].message);
        bw_model_free(model);
        bw_model_free(fine);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shapes), cmocka_unit_test(test_ops), cmocka_unit_test(test_streams),
                                       cmocka_unit_test(test_errors)};
    return cmocka_run_group_tests(tests, open_context, close_context);
}
