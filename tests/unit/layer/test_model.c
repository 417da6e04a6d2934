/* Models from expressions: names, shapes, variables, and errors that name the layer. */
#include "support/context.h"

#include "layer/layer.h"

#include <math.h>
#include <stdlib.h>

static const int64_t image[] = {8, 8, 3};

static void test_names_and_shapes(void **state)
{
    (void)state;
    bw_model *model = bw_model_parse(
        ctx, "conv2d(4,3,relu) conv2d(6,(2,3),strides=2,padding=same,use_bias=false) batchnorm maxpool2d flatten dense(5)");
    assert_int_equal(bw_variable_count(model), 0);
    check_ok(ctx, bw_build(model, 3, image, 1));
    static const struct {
        const char *name;
        int ndim;
        int64_t shape[4];
    } expected[] = {
        {"conv2d/kernel", 4, {3, 3, 3, 4}},
        {"conv2d/bias", 1, {4}},
        {"conv2d_1/kernel", 4, {2, 3, 4, 6}},
        {"batch_normalization/gamma", 1, {6}},
        {"batch_normalization/beta", 1, {6}},
        {"batch_normalization/moving_mean", 1, {6}},
        {"batch_normalization/moving_variance", 1, {6}},
        {"dense/kernel", 2, {6, 5}}, /* 6x6 -> 3x3 -> 1x1 of 6 channels */
        {"dense/bias", 1, {5}},
    };
    assert_int_equal(bw_variable_count(model), BWI_COUNT(expected));
    for (int v = 0; v < (int)BWI_COUNT(expected); v++) {
        int64_t shape[BW_MAX_NDIM] = {0};
        assert_string_equal(bw_variable_name(model, v), expected[v].name);
        assert_int_equal(bw_variable_shape(model, v, shape), expected[v].ndim);
        assert_memory_equal(shape, expected[v].shape, (size_t)expected[v].ndim * sizeof *shape);
    }
    assert_null(bw_variable_name(model, -1));
    assert_null(bw_variable_name(model, (int)BWI_COUNT(expected)));
    int64_t shape[BW_MAX_NDIM];
    assert_int_equal(bw_variable_shape(model, 99, shape), -1);
    bw_model_free(model);
}

static void test_errors_name_the_layer(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
        bw_status status;
    } cases[] = {
        {"conv2d(4,3) conv2d(4,7)", "layer conv2d_1: a kernel of 7x7 does not fit into (6, 6, 4)", BW_INVALID_ARGUMENT},
        {"conv2d(4,3,dilation_rate=4)", "layer conv2d: a kernel of 3x3 does not fit into (8, 8, 3)", BW_INVALID_ARGUMENT},
        {"flatten conv2d(4,3)", "layer conv2d: expected an image (height, width, channels), got (192,)", BW_INVALID_ARGUMENT},
        {"flatten maxpool2d", "layer max_pooling2d: expected an image (height, width, channels), got (192,)", BW_INVALID_ARGUMENT},
        {"maxpool2d(3) maxpool2d(3)", "layer max_pooling2d_1: a window of 3x3 does not fit into (2, 2, 3)", BW_INVALID_ARGUMENT},
        {"conv2d(4,3,groups=2)", "layer conv2d: 3 channels and 4 filters do not divide into 2 groups", BW_INVALID_ARGUMENT},
        {"conv2d(4,(3,3,3))", "layer conv2d: kernel_size: expected one number or two, got 3", BW_INVALID_ARGUMENT},
        {"dense(4) dense(4,relux)", "layer dense_1: there is no activation 'relux'; did you mean 'relu'?", BW_INVALID_ARGUMENT},
        {"dense(4,kernel_initializer=nothing)", "dense/kernel: there is no initializer 'nothing'", BW_INVALID_ARGUMENT},
        {"dense(4,kernel_regularizer=l9)", "dense/kernel: there is no regularizer 'l9'", BW_INVALID_ARGUMENT},
        {"maxpool2d(16,padding=same)", "layer max_pooling2d: |at most 255|16x16", BW_UNIMPLEMENTED},
        {"lstm(3)", "layer lstm: expected a sequence (length, channels), got (8, 8, 3)", BW_INVALID_ARGUMENT},
        {"multi_head_attention(2,4)", "layer multi_head_attention: expected a sequence (length, channels), got (8, 8, 3)",
         BW_INVALID_ARGUMENT},
        {"reshape(8,24) multi_head_attention(2,4,attention_axes=(1,2))",
         "layer multi_head_attention: attention_axes: only the axis of positions is supported", BW_UNIMPLEMENTED},
        {"a=reshape(8,24) reshape(12,16) multi_head_attention(a,input,num_heads=2,key_dim=4)",
         "layer multi_head_attention: expected a sequence (length, channels), got (8, 8, 3)", BW_INVALID_ARGUMENT},
        {"a=reshape(8,24) b=reshape(6,32) multi_head_attention(b,a,num_heads=2,key_dim=4)",
         "layer multi_head_attention: value: expected a sequence of length 8, as the key's, got (6, 8)", BW_INVALID_ARGUMENT},
        {"reshape(8,24) group_query_attention(4,3,2)",
         "layer grouped_query_attention: num_query_heads: expected a multiple of num_key_value_heads, 2, got 3",
         BW_INVALID_ARGUMENT},
        {"a=reshape(8,24) reshape(6,32) attention(a)",
         "layer attention: key: expected a sequence of 32 channels, as the query's, got (8, 24)", BW_INVALID_ARGUMENT},
        {"a=reshape(8,24) attention(a,a,a)", "layer attention: expected query, value and key, got 4 inputs", BW_INVALID_ARGUMENT},
        {"reshape(8,24) bidirectional(dense(3))", "layer bidirectional: expected a recurrent layer within it, got Dense",
         BW_INVALID_ARGUMENT},
        {"reshape(8,24) bidirectional(lstm(3),backward_layer=lstm(3))",
         "layer bidirectional: backward_layer: expected the other direction, and the same return_sequences and return_state",
         BW_INVALID_ARGUMENT},
        {"time_distributed(lstm(3,return_state=true))",
         "layer time_distributed: return_state of a layer within it is not supported", BW_UNIMPLEMENTED},
        {"reshape(8,24) lstm(3,return_state=true,activity_regularizer=l2)",
         "layer lstm: activity_regularizer with return_state is not supported", BW_UNIMPLEMENTED},
        {"flatten time_distributed(dense(3))", "layer time_distributed: expected positions of at least one axis, got (192,)",
         BW_INVALID_ARGUMENT},
        {"reshape(8,24) lstm(4,stateful=true)", "layer lstm: stateful is not supported", BW_UNIMPLEMENTED},
        {"reshape(8,24) a=lstm(4,return_sequences=true,return_state=true) lstm(5,initial_state=a)",
         "layer lstm_1: expected a state of 5 numbers, got (4,)", BW_INVALID_ARGUMENT},
        {"reshape(8,24) gru(4,softmax)", "layer gru: softmax is not supported as an activation of a recurrent layer",
         BW_UNIMPLEMENTED},
        {"reshape(8,24) lstm(4,log_softmax)", "layer lstm: log_softmax is not supported as an activation of a recurrent layer",
         BW_UNIMPLEMENTED},
        {"reshape(8,24) simple_rnn(4,relux)", "layer simple_rnn: there is no activation 'relux'; did you mean 'relu'?",
         BW_INVALID_ARGUMENT},
        {"conv2d(1000000,10000,padding=same)", "conv2d/kernel|(10000, 10000, 3, 1000000)", BW_RESOURCE_EXHAUSTED},
        {"dense(100000000) dense(100000000)", "dense_1/kernel|(100000000, 100000000)", BW_RESOURCE_EXHAUSTED},
    };
    for (size_t i = 0; i < BWI_COUNT(cases); i++) {
        bw_model *model = bw_model_parse(ctx, cases[i].text);
        assert_non_null(model);
        check_fails(ctx, bw_build(model, 3, image, 1), cases[i].status, cases[i].message);
        float value;
        assert_int_equal(bw_variable_get(model, 0, &value, 1), BW_INVALID_ARGUMENT); /* there is none, or it has no values */
        (void)bw_message(ctx);
        (void)bw_model_hash(model);
        check_fails(ctx, bw_build(model, 3, image, 1), cases[i].status, cases[i].message);
        bw_model_free(model);
    }
}

static void test_texts_that_are_no_models(void **state)
{
    (void)state;
    static const struct {
        const char *text, *message;
        bw_status status;
    } cases[] = {
        {"a=reshape(8,24) gru(4,initial_state=a)",
         "model: column 37: initial_state: expected the point of a layer with return_state=true and 1 states, reshape gives 0",
         BW_INVALID_ARGUMENT},
        {"reshape(8,24) a=lstm(4,return_sequences=true,return_state=true) gru(4,initial_state=a)",
         "model: column 85: initial_state: expected the point of a layer with return_state=true and 1 states, lstm gives 2",
         BW_INVALID_ARGUMENT},
        {"", "model: expected at least one layer, found none", BW_INVALID_ARGUMENT},
        {"input(3)", "model: expected at least one layer, found none", BW_INVALID_ARGUMENT},
        {"input dense(3)", "model: column 1: input: expected 1 to 7 extents, got 0", BW_INVALID_ARGUMENT},
        {"input(1,1,1,1,1,1,1,1) dense(3)", "model: column 1: input: expected 1 to 7 extents, got 8", BW_INVALID_ARGUMENT},
        {"input(0) dense(3)", "input: column 7: shape: expected a number from 1 to 1e+09, found '0'", BW_INVALID_ARGUMENT},
        {"input(a=3) dense(3)", "input: column 9: expected its shape, as in input(28,28,1)", BW_INVALID_ARGUMENT},
        {"dense(3) input(3)", "model: column 10: input stands before all layers only", BW_INVALID_ARGUMENT},
        {"dense(3) densely(4)", "model: column 10: there is no layer 'densely'; did you mean 'dense'?", BW_INVALID_ARGUMENT},
        {"dense(3) conv_lstm2d(4)", "model: column 10: conv_lstm2d: recurrent layers of this kind are not supported",
         BW_UNIMPLEMENTED},
        {"ConvLSTM2D(2, 4)", "model: column 1: ConvLSTM2D: recurrent layers of this kind are not supported", BW_UNIMPLEMENTED},
        {"MaxPoolin2D(2)", "model: column 1: there is no layer 'MaxPoolin2D'; did you mean 'MaxPooling2D'?", BW_INVALID_ARGUMENT},
        {"Conv2D(3, 3, data_format='channels_first')",
         "column 26: data_format: only channels_last is supported, found 'channels_first'", BW_UNIMPLEMENTED},
        {"dense(3) Dense(3, input_dim=3)", "model: column 19: input_dim stands at the first layer only", BW_INVALID_ARGUMENT},
        {"input(4) dense(3,input_shape=(5,))", "column 30: the input has another shape already", BW_INVALID_ARGUMENT},
        {"dense(3,kernel_init=zeros)", "column 9: there is no argument 'kernel_init'; did you mean 'kernel_initializer'?",
         BW_INVALID_ARGUMENT},
        {"rescaling(1/0)", "scale: expected a number, found '1/0'", BW_INVALID_ARGUMENT},
        {"dense(3) (4)", "model: column 11: there is no layer '4'", BW_INVALID_ARGUMENT},
        {"dense(3) dense", "model: dense: column 10: units must be given", BW_INVALID_ARGUMENT},
        {"flatten(3)", "model: flatten: column 9: too many arguments", BW_INVALID_ARGUMENT},
    };
    for (size_t i = 0; i < BWI_COUNT(cases); i++) {
        assert_null(bw_model_parse(ctx, cases[i].text));
        bw_model *fine = bw_model_parse(ctx, "dense(1)");
        assert_non_null(fine);
        /* The first call that returns a status reports it, once. */
        check_fails(ctx, bw_build(fine, 3, image, 1), cases[i].status, cases[i].message);
        check_ok(ctx, bw_build(fine, 3, image, 1));
        bw_model_free(fine);
    }
    assert_null(bw_model_parse(NULL, "dense(1)"));
    assert_null(bw_model_parse(ctx, NULL));
    assert_int_equal(bw_build(NULL, 3, image, 1), BW_INVALID_ARGUMENT);
}

static void test_input_shapes(void **state)
{
    (void)state;
    bw_model *model = bw_model_parse(ctx, "input(4,4,12) flatten dense(2)");
    static const int64_t other[] = {8, 8, 2}, wrong[] = {8, -8, 3}, huge[] = {INT64_MAX, 2, 1};
    check_fails(ctx, bw_build(model, 3, other, 1), BW_INVALID_ARGUMENT, "the model's input is (4, 4, 12)|(8, 8, 2)");
    check_fails(ctx, bw_build(model, 3, wrong, 1), BW_INVALID_ARGUMENT, "input shape: extent 1 is -8");
    check_fails(ctx, bw_build(model, 3, huge, 1), BW_INVALID_ARGUMENT, "input shape: extent 0 is");
    check_fails(ctx, bw_build(model, BW_MAX_NDIM, other, 1), BW_INVALID_ARGUMENT, "expected 0 to 7 axes, got 8");
    check_fails(ctx, bw_build(model, -1, other, 1), BW_INVALID_ARGUMENT, "expected 0 to 7 axes, got -1");
    check_fails(ctx, bw_build(model, 1, NULL, 1), BW_INVALID_ARGUMENT, "expected 0 to");
    check_ok(ctx, bw_build(model, 3, image, 1)); /* as many numbers under another shape */
    check_fails(ctx, bw_build(model, 3, image, 1), BW_INVALID_ARGUMENT, "the model is built already");
    bw_model_free(model);
    bw_model *scalar = bw_model_parse(ctx, "dense(2)");
    check_fails(ctx, bw_build(scalar, 0, NULL, 1), BW_INVALID_ARGUMENT, "the shape of the input is not known");
    check_fails(ctx, bw_build(scalar, 0, (const int64_t[]){0}, 1), BW_INVALID_ARGUMENT,
                "layer dense: expected at least one axis, got a single number per sample; one input each is shape (n, 1)");
    bw_model_free(scalar);
}

static void test_variables_come_back(void **state)
{
    (void)state;
    /* Kernels are stored in another order than they are given in; extents here are no multiples of anything. */
    bw_model *model = bw_model_parse(ctx, "conv2d(5,3) flatten dense(37) dense(3)");
    check_ok(ctx, bw_build(model, 3, image, 1));
    for (int v = 0; v < bw_variable_count(model); v++) {
        int64_t shape[BW_MAX_NDIM];
        size_t count = 1;
        int ndim = bw_variable_shape(model, v, shape);
        for (int i = 0; i < ndim; i++) {
            count *= (size_t)shape[i];
        }
        float *in = malloc(count * sizeof *in), *out = malloc(count * sizeof *out);
        for (size_t i = 0; i < count; i++) {
            in[i] = (float)i + (float)v / 16;
        }
        uint64_t before = bw_model_hash(model);
        check_ok(ctx, bw_variable_set(model, v, in, count));
        assert_true(bw_model_hash(model) != before);
        check_ok(ctx, bw_variable_get(model, v, out, count));
        assert_memory_equal(in, out, count * sizeof *in);
        check_fails(ctx, bw_variable_get(model, v, out, count - 1), BW_INVALID_ARGUMENT, bw_variable_name(model, v));
        check_fails(ctx, bw_variable_set(model, v, in, count + 1), BW_INVALID_ARGUMENT, bw_variable_name(model, v));
        free(in);
        free(out);
    }
    float one;
    check_fails(ctx, bw_variable_get(model, 99, &one, 1), BW_INVALID_ARGUMENT, "there is no variable 99");
    check_fails(ctx, bw_variable_set(model, -1, &one, 1), BW_INVALID_ARGUMENT, "there is no variable -1");
    assert_int_equal(bw_variable_get(NULL, 0, &one, 1), BW_INVALID_ARGUMENT);
    bw_model_free(model);
}

/* Glorot: uniform in +-sqrt(6 / (fan_in + fan_out)): mean 0, variance limit^2 / 3; a function of the seed. */
static void test_initial_values(void **state)
{
    (void)state;
    enum { IN = 192, OUT = 50 };
    static float a[IN * OUT], b[IN * OUT];
    uint64_t hash[3];
    for (int k = 0; k < 3; k++) {
        bw_model *model = bw_model_parse(ctx, "flatten dense(50)");
        check_ok(ctx, bw_build(model, 3, image, k == 2 ? 2 : 1));
        check_ok(ctx, bw_variable_get(model, 0, k == 0 ? a : b, IN * OUT));
        hash[k] = bw_model_hash(model);
        float bias[OUT];
        check_ok(ctx, bw_variable_get(model, 1, bias, OUT));
        for (int i = 0; i < OUT; i++) {
            assert_true(bias[i] == 0);
        }
        bw_model_free(model);
    }
    assert_true(hash[0] == hash[1]);
    assert_true(hash[0] != hash[2]);
    double limit = sqrt(6.0 / (IN + OUT)), sum = 0, squares = 0, largest = 0;
    for (int i = 0; i < IN * OUT; i++) {
        sum += (double)a[i];
        squares += (double)a[i] * (double)a[i];
        largest = fmax(largest, fabs((double)a[i]));
    }
    assert_true(largest <= limit && largest > 0.99 * limit);
    assert_true(fabs(sum / (IN * OUT)) < 4 * limit / sqrt(3.0 * IN * OUT));
    assert_true(fabs(squares / (IN * OUT) - limit * limit / 3) < 0.02 * limit * limit);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_and_shapes),         cmocka_unit_test(test_errors_name_the_layer),
        cmocka_unit_test(test_texts_that_are_no_models), cmocka_unit_test(test_input_shapes),
        cmocka_unit_test(test_variables_come_back),      cmocka_unit_test(test_initial_values),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
