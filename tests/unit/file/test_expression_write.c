/* Models as expressions: from text and back, by calls, and what cannot be written. */
#include "support/context.h"

#include "file/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* What is printed is read as the same model, which prints the same. */
static void test_round_trip(void **state)
{
    (void)state;
    static const struct {
        const char *given, *printed; /* NULL: as given */
    } cases[] = {
        {"dense(3)", NULL},
        {"dense(3,linear)", "dense(3)"},
        {"dense(3,relu,false)", NULL},
        {"dense(3,use_bias=false)", NULL},
        {"dense(units=3,activation=tanh)", "dense(3,tanh)"},
        {"input(28,28,1) conv2d(32,(3,3),relu,strides=(1,1)) maxpool2d((2,2),(2,2)) flatten dense(10,softmax)",
         "input(28,28,1) conv2d(32,3,relu) maxpool2d flatten dense(10,softmax)"},
        {"input(9,9,2) conv2d(4,(3,2),padding=same) maxpool2d(3,2) avgpool2d(2,(2,1))",
         "input(9,9,2) conv2d(4,(3,2),padding=same) maxpool2d(3,2) avgpool2d(2,(2,1))"},
        {"input(4,9) reshape((6,6)) permute(2,1) conv1d(3,2,padding=causal)",
         "input(4,9) reshape(6,6) permute(2,1) conv1d(3,2,padding=causal)"},
        {"input(4) a=dense(4) dense(4) add(a)", NULL},
        {"input(4) shortcut=dense(4) dense(4) add(shortcut)", "input(4) a=dense(4) dense(4) add(a)"},
        {"input(4) dense(4) add(input)", NULL},
        {"x=input(4) dense(4) add(x)", "input(4) dense(4) add(input)"},
        {"input(4) a=relu dense(4) b=dense(3) from(a) dense(3) subtract(b)", NULL},
        {"input(4) a=dense(2) from(input) b=dense(2) from(input) dense(2) concat(a,b,axis=1)", NULL},
        {"input(4) a=dense(2) multiply(a)", NULL},
        {"dense(2,name=head)", NULL},
        {"dense(2,name=dense)", "dense(2)"},
        {"dense(2,trainable=false) dense(3,trainable=true)", "dense(2,trainable=false) dense(3)"},
        {"batchnorm(epsilon=0.01,momentum=0.9)", "batchnorm(momentum=0.9,epsilon=0.01)"},
        {"dropout(0.1) dense(3,kernel_initializer=random_normal(stddev=0.1),kernel_regularizer=l2(0.001))", NULL},
        {"relu(none,0.1)", "relu(negative_slope=0.1)"},
        {"dense(2,name=\"two words\")", NULL},
        {"dense(2,name='a \"b\"')", NULL},
        /* As Keras's users write it. */
        {"keras.Sequential([\n  keras.Input(shape=(28, 28, 1)),\n  layers.Conv2D(32, (3, 3), activation='relu', padding=\"same\"), "
         " # 3x3\n"
         "  layers.MaxPooling2D((2, 2)),\n  layers.Flatten(),\n  layers.Dense(6, activation=\"softmax\"),\n], name=\"net\")",
         "input(28,28,1) conv2d(32,3,relu,padding=same) maxpool2d flatten dense(6,softmax)"},
        {"input(9,9,3) Conv2D(8, 3, 2, 'SAME', 'channels_last', 1, 1, 'relu', False)",
         "input(9,9,3) conv2d(8,3,relu,2,same,use_bias=false)"},
        {"input(9,9,3) DepthwiseConv2D(3, 2, 'same', 2)",
         "input(9,9,3) depthwise_conv2d(3,strides=2,padding=same,depth_multiplier=2)"},
        {"Dense(8, input_shape=(4,), activation = tf.nn.relu)\nDense(1, activation=None, kernel_constraint=None)",
         "input(4) dense(8,relu) dense(1)"},
        {"Embedding(100, 8, input_length=7), GlobalAveragePooling1D(), Dense(1)",
         "input(7) embedding(100,8) global_avgpool1d dense(1)"},
        {"Embedding(9, 2, 'uniform', None, None, True)", "embedding(9,2,mask_zero=true)"},
        {"input(4,2) a=ReLU(max_value=6) Dense(2) Concatenate(a, axis=1)", "input(4,2) a=relu(6) dense(2) concat(a,axis=1)"},
        {"input(4,2) a=ReLU() Dense(2) Concatenate(1, a)", "input(4,2) a=relu dense(2) concat(a,axis=1)"},
        {"model.add(InputLayer(batch_shape=(None, 5)))\nmodel.add(Dense(3))", "input(5) dense(3)"},
        {"input(5,5,1) PReLU('zeros', None, None, [1, 2]) UpSampling2D(2, None, 'bilinear')",
         "input(5,5,1) prelu((1,2)) upsampling2d(interpolation=bilinear)"},
        {"input(4) Dense(3, kernel_initializer=keras.initializers.HeNormal(), kernel_regularizer=regularizers.L2(0.01))",
         "input(4) dense(3,kernel_initializer=HeNormal(),kernel_regularizer=L2(0.01))"},
        {"input(4) Rescaling(1./4) Dropout(0.5, None, 3)", "input(4) rescaling(0.25) dropout(0.5,3)"},
    };
    for (size_t i = 0; i < BWI_COUNT(cases); i++) {
        const char *expected = cases[i].printed ? cases[i].printed : cases[i].given;
        bw_model *model = bw_model_parse(ctx, cases[i].given);
        const char *printed = bw_model_expression(model);
        assert_non_null(printed);
        assert_string_equal(printed, expected);
        bw_model *again = bw_model_parse(ctx, printed);
        assert_non_null(again);
        assert_string_equal(bw_model_expression(again), printed);
        bw_model_free(model);
        bw_model_free(again);
    }
}

/* ---- What cannot be written ---- */

static bw_model *shared(void)
{
    bw_model *model = bw_model_new(ctx);
    bw_node *x = bw_input(model, "", BW_F32, 1, (const int64_t[]){3});
    bw_node *y = bw_layer(x, "dense(3)");
    bw_output(bw_layer_again(y, y), NULL);
    return model;
}

static bw_model *several(void)
{
    bw_model *model = bw_model_new(ctx);
    bw_node *x = bw_input(model, "a", BW_F32, 1, (const int64_t[]){3});
    bw_output(bw_layer(x, "dense(3)"), "one");
    bw_output(bw_layer(x, "dense(2)"), "two");
    return model;
}

static bw_model *operators(void)
{
    bw_model *model = bw_model_new(ctx);
    bw_node *x = bw_input(model, "", BW_F32, 1, (const int64_t[]){3});
    bw_output(bw_layer(bw_square(x), "dense(3)"), NULL);
    return model;
}

static bw_model *dangling(void)
{
    bw_model *model = bw_model_new(ctx);
    bw_node *x = bw_input(model, "", BW_F32, 1, (const int64_t[]){3});
    bw_layer(x, "dense(7)");
    bw_output(bw_layer(x, "dense(3)"), NULL);
    return model;
}

static bw_model *own_loss(void)
{
    bw_model *model = bw_model_new(ctx);
    bw_node *x = bw_input(model, "", BW_F32, 1, (const int64_t[]){3});
    bw_node *y = bw_layer(x, "dense(1)");
    bw_output(y, NULL);
    bw_add_loss(bw_mean(bw_square(y), BW_ALL), "own");
    return model;
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        bw_model *(*make)(void);
        const char *reason;
    } cases[] = {{shared, "more than once: dense"},
                 {several, "several inputs or outputs"},
                 {operators, "an operator precedes layer dense"},
                 {dangling, "the output of a layer is not used: dense"},
                 {own_loss, "a custom loss"}};
    for (size_t i = 0; i < BWI_COUNT(cases); i++) {
        assert_null(bw_model_expression(cases[i].make()));
        assert_int_equal(bwi_pending(ctx), BW_UNIMPLEMENTED); /* reported once */
        assert_non_null(strstr(bw_message(ctx), cases[i].reason));
    }
}

/* A graph by calls that an expression can say: inputs of a merge in another order than the layers. */
static void test_calls(void **state)
{
    (void)state;
    bw_model *model = bw_model_new(ctx);
    bw_node *x = bw_input(model, "image", BW_F32, 1, (const int64_t[]){3});
    bw_node *a = bw_layer(x, "dense(2)"), *b = bw_layer(x, "dense(4,tanh)");
    bw_node *both[] = {a, b, x};
    check_ok(ctx, bw_output(bw_layer(bw_merge("concat", both, 3), "dense(1)"), NULL));
    assert_string_equal(bw_model_expression(model),
                        "input(3) a=dense(2) from(input) b=dense(4,tanh) from(a) concat(b,input) dense(1)");
    check_ok(ctx, bw_build(model, 0, NULL, 3));
    bw_model *again = bw_model_parse(ctx, bw_model_expression(model));
    check_ok(ctx, bw_build(again, 0, NULL, 3));
    assert_true(bw_model_hash(model) == bw_model_hash(again));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_round_trip, open_context, close_context),
        cmocka_unit_test_setup_teardown(test_refusals, open_context, close_context),
        cmocka_unit_test_setup_teardown(test_calls, open_context, close_context),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
