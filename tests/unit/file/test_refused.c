/*
 * What files may not say: code, things that are not supported, names and numbers that cannot be, and shapes that their bytes do
 * not fill. Each is refused with its layer's name, before memory is taken for it.
 */
#include "support/check.h"
#include "support/folder.h"
#include "support/written.h"

#include "file/internal.h"

#include <stdlib.h>
#include <unistd.h>

static bw_context *ctx;
static char path[2048];
static size_t largest; /* single allocation */

static void *allocate(void *user, size_t bytes, size_t alignment)
{
    (void)user;
    largest = bytes > largest ? bytes : largest;
    return bwi_system_allocator.allocate(NULL, bytes, alignment);
}

static void release(void *user, void *memory, size_t bytes)
{
    (void)user;
    bwi_system_allocator.release(NULL, memory, bytes);
}

static int open_all(void **state)
{
    bw_allocator allocator = {.allocate = allocate, .release = release};
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.allocator = &allocator;
    ctx = bw_open(&options);
    return ctx ? make_folder(state) : -1;
}

static int close_all(void **state)
{
    bw_close(ctx);
    return remove_empty_folder(state);
}

static void put_file(const char *name, const void *data, size_t size)
{
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb"); /* without syncing: there are hundreds */
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* Loading the file fails, leaves nothing behind and no large allocation was tried. */
static void expect_refused(const char *what, bw_status status, const char *parts)
{
    size_t before = bwi_allocated_bytes(ctx);
    largest = 0;
    bw_model *model = bw_load(ctx, path);
    if (model) {
        fail_msg("%s was loaded", what);
    }
    check_fails(ctx, bwi_pending(ctx), status, parts);
    assert_int_equal(bwi_allocated_bytes(ctx), before);
    if (largest > 1 << 25) {
        fail_msg("%s: an allocation of %zu bytes", what, largest);
    }
    assert_int_equal(unlink(path), 0);
}

static void refuse_text(const char *text, bw_status status, const char *parts)
{
    put_file("m.json", text, strlen(text));
    expect_refused(text, status, parts);
}

/* ---- Layers of a Sequential model behind an input of (6, 6, 2) ---- */

static void refuse_layer(const char *layer, bw_status status, const char *parts)
{
    char text[4096];
    snprintf(
        text, sizeof text,
        "{\"module\":\"keras\",\"class_name\":\"Sequential\",\"config\":{\"name\":\"s\",\"layers\":[{\"module\":\"keras.layers\","
        "\"class_name\":\"InputLayer\",\"config\":{\"name\":\"i\",\"batch_shape\":[null,6,6,2]}},%s]}}",
        layer);
    refuse_text(text, status, parts);
}

#define CONV(more)                                                                                                                 \
    "{\"module\":\"keras.layers\",\"class_name\":\"Conv2D\",\"config\":{\"name\":\"eye\",\"filters\":3,\"kernel_size\":[3,3]" more \
    "}}"
#define DENSE(name, more) "{\"module\":\"keras.layers\",\"class_name\":\"Dense\",\"config\":{\"name\":\"" name "\"" more "}}"

static void test_classes(void **state)
{
    (void)state;
    refuse_layer(
        "{\"module\":\"keras.layers\",\"class_name\":\"Lambda\",\"config\":{\"name\":\"trick\",\"function\":{\"class_name\":"
        "\"__lambda__\",\"config\":{\"code\":\"4wEAAAA=\"}}}}",
        BW_UNIMPLEMENTED, "m.json: layer trick|Lambda|never run");
    refuse_layer("{\"module\":\"__main__\",\"class_name\":\"Dense\",\"registered_name\":\"Dense\",\"config\":{\"name\":\"mine\"}}",
                 BW_UNIMPLEMENTED, "layer mine|'Dense'|custom");
    refuse_layer("{\"module\":null,\"class_name\":\"Dense\",\"registered_name\":\"Dense\",\"config\":{\"name\":\"mine\"}}",
                 BW_UNIMPLEMENTED, "layer mine|'Dense'|custom");
    refuse_layer(
        "{\"module\":\"keras.layers\",\"class_name\":\"Dense\",\"registered_name\":\"pkg>Dense\",\"config\":{\"name\":\"mine\"}}",
        BW_UNIMPLEMENTED, "layer mine|custom");
    refuse_layer("{\"module\":\"kerasx.layers\",\"class_name\":\"Dense\",\"config\":{\"name\":\"mine\"}}", BW_UNIMPLEMENTED,
                 "layer mine");
    refuse_layer("{\"module\":\"keras.layers\",\"class_name\":\"ConvLSTM2D\",\"config\":{\"name\":\"memory\",\"units\":3}}",
                 BW_UNIMPLEMENTED, "layer memory|'ConvLSTM2D'|not supported");
    refuse_layer("{\"module\":\"keras\",\"class_name\":\"Sequential\",\"config\":{\"name\":\"inner\",\"layers\":[]}}", BW_DATA_LOSS,
                 "layer inner|has no layers");
    refuse_layer("{\"module\":\"keras.layers\",\"class_name\":\"ConvLSTM2D\",\"config\":{\"name\":\"heads\"}}", BW_UNIMPLEMENTED,
                 "layer heads: the class 'ConvLSTM2D' is not supported");
    refuse_layer("{\"module\":\"keras\",\"class_name\":\"Sequential\",\"config\":{\"name\":\"inner\",\"layers\":["
                 "{\"module\":\"keras.layers\",\"class_name\":\"ConvLSTM2D\",\"config\":{\"name\":\"memory\"}}]}}",
                 BW_UNIMPLEMENTED, "layer inner/memory: the class 'ConvLSTM2D'");
    refuse_layer("{\"config\":{\"name\":\"nameless\"}}", BW_UNIMPLEMENTED, "layer nameless");
    refuse_layer("{\"module\":\"keras.layers\",\"class_name\":\"InputLayer\",\"config\":{\"name\":\"j\",\"batch_shape\":[null,3]}}",
                 BW_DATA_LOSS, "layer j|follows other layers");
}

static void test_options(void **state)
{
    (void)state;
    refuse_layer(CONV(",\"data_format\":\"channels_first\""), BW_UNIMPLEMENTED,
                 "layer eye: data_format='channels_first' is not supported");
    refuse_layer(CONV(",\"kernel_constraint\":{\"module\":\"keras.constraints\",\"class_name\":\"Softest\",\"config\":{}}"),
                 BW_UNIMPLEMENTED, "layer eye: kernel_constraint='Softest' is not supported");
    refuse_layer(
        CONV(",\"activity_regularizer\":{\"module\":\"keras.regularizers\",\"class_name\":\"L3\",\"config\":{\"l3\":0.1}}"),
        BW_UNIMPLEMENTED, "layer eye: activity_regularizer='L3' is not supported");
    refuse_layer(CONV(",\"activation\":{\"value\":[\"4wEAAAA=\",null,null]}"), BW_UNIMPLEMENTED,
                 "layer eye: activation"); /* a Python function as Keras 3.15 writes it */
    refuse_layer(CONV(",\"activation\":{\"module\":\"keras.layers\",\"class_name\":\"PReLU\",\"config\":{}}"), BW_UNIMPLEMENTED,
                 "layer eye: prelu() is not supported as an activation");
    refuse_layer(CONV(",\"activation\":\"my_own\""), BW_INVALID_ARGUMENT, "layer eye|my_own");
    refuse_layer(CONV(",\"dtype\":{\"module\":\"keras\",\"class_name\":\"DTypePolicy\",\"config\":{\"name\":\"mixed_float16\"}}"),
                 BW_UNIMPLEMENTED, "layer eye: dtype='mixed_float16' is not supported");
    refuse_layer(CONV(",\"dtype\":\"float64\""), BW_UNIMPLEMENTED, "layer eye: dtype='float64'");
    refuse_layer(CONV(",\"kernel_initializer\":{\"module\":\"mine\",\"class_name\":\"Zeros\",\"config\":{}}"), BW_UNIMPLEMENTED,
                 "layer eye: kernel_initializer='Zeros'");
    refuse_layer(CONV(",\"kernel_initializer\":{\"module\":\"keras.initializers\",\"class_name\":\"STFT\",\"config\":{}}"),
                 BW_UNIMPLEMENTED, "layer eye: kernel_initializer='STFT'");
    refuse_layer(CONV(",\"brand_new\":1"), BW_UNIMPLEMENTED, "layer eye: brand_new=1.0 is not supported");
    refuse_layer(CONV(",\"brand_new\":true"), BW_UNIMPLEMENTED, "layer eye: brand_new=true");
    refuse_layer(CONV(",\"brand_new\":[1]"), BW_UNIMPLEMENTED, "layer eye: brand_new=[...]");
    /* A word brings no arguments of its own. */
    refuse_layer(CONV(",\"padding\":\"same,groups=2\""), BW_UNIMPLEMENTED, "layer eye: padding='same,groups=2'");
    refuse_layer(CONV(",\"padding\":\"same)\""), BW_UNIMPLEMENTED, "layer eye: padding=");
    refuse_layer(CONV(",\"padding\":\"\""), BW_UNIMPLEMENTED, "layer eye: padding=");
    refuse_layer(CONV(",\"bias_initializer\":{\"class_name\":\"Zeros\",\"config\":{\"a=1,b\":2}}"), BW_UNIMPLEMENTED, "layer eye");
    refuse_layer(
        "{\"class_name\":\"Embedding\",\"config\":{\"name\":\"e\",\"input_dim\":4,\"output_dim\":2},\"batchwise\":{\"size\":1}}",
        BW_UNIMPLEMENTED, "layer e: size=1.0 is not supported");
}

static void test_values(void **state)
{
    (void)state;
    refuse_layer(DENSE("d", ""), BW_INVALID_ARGUMENT, "units must be given");
    refuse_layer(DENSE("d", ",\"units\":null"), BW_UNIMPLEMENTED, "layer d: units=null");
    refuse_layer(DENSE("d", ",\"units\":0"), BW_INVALID_ARGUMENT, "units");
    refuse_layer(DENSE("d", ",\"units\":-3"), BW_INVALID_ARGUMENT, "units");
    refuse_layer(DENSE("d", ",\"units\":2.5"), BW_INVALID_ARGUMENT, "units");
    refuse_layer(DENSE("d", ",\"units\":\"many\""), BW_INVALID_ARGUMENT, "units");
    refuse_layer(DENSE("d", ",\"units\":[1,2]"), BW_INVALID_ARGUMENT, "units");
    refuse_layer(DENSE("d", ",\"units\":{}"), BW_UNIMPLEMENTED, "layer d: units={...}");
    refuse_layer(DENSE("d", ",\"units\":9223372036854775807"), BW_INVALID_ARGUMENT, "units");
    refuse_layer(DENSE("d", ",\"units\":1e308"), BW_INVALID_ARGUMENT, "units");
    refuse_layer(DENSE("d", ",\"units\":3,\"use_bias\":\"perhaps\""), BW_INVALID_ARGUMENT, "use_bias");
    refuse_layer("{\"class_name\":\"Reshape\",\"config\":{\"name\":\"r\",\"target_shape\":[1,1,1,1,1,1,1,1,1,1,1,1]}}",
                 BW_INVALID_ARGUMENT, "target_shape");
    refuse_layer(DENSE("a/b", ",\"units\":1"), BW_DATA_LOSS, "'a/b'|without slashes");
    refuse_layer(DENSE("", ",\"units\":1"), BW_DATA_LOSS, "expected a name");
    refuse_layer(DENSE("twice", ",\"units\":1") "," DENSE("twice", ",\"units\":1"), BW_DATA_LOSS, "layer twice appears twice");
    /* Shapes multiply beyond what can be: said, not tried. */
    refuse_layer(DENSE("d", ",\"units\":100000000") "," DENSE("e", ",\"units\":100000000"), BW_RESOURCE_EXHAUSTED, "e/kernel");
}

static void refuse_input(const char *shape, const char *more, bw_status status, const char *parts)
{
    char text[1024];
    snprintf(text, sizeof text,
             "{\"class_name\":\"Sequential\",\"config\":{\"layers\":[{\"class_name\":\"InputLayer\",\"config\":{\"name\":\"i\","
             "\"batch_shape\":%s%s}},{\"class_name\":\"Dense\",\"config\":{\"name\":\"d\",\"units\":2}}]}}",
             shape, more);
    refuse_text(text, status, parts);
}

static void test_inputs(void **state)
{
    (void)state;
    refuse_input("[null,null,3]", "", BW_UNIMPLEMENTED, "layer i: inputs of any length");
    refuse_input("[null,0]", "", BW_DATA_LOSS, "layer i: extent 1");
    refuse_input("[null,-4]", "", BW_DATA_LOSS, "layer i: extent 1");
    refuse_input("[null,4,\"x\"]", "", BW_DATA_LOSS, "layer i: extent 2");
    refuse_input("[]", "", BW_DATA_LOSS, "layer i: expected an input shape");
    refuse_input("[1,2,3,4,5,6,7,8,9]", "", BW_DATA_LOSS, "layer i: expected an input shape");
    refuse_input("[null,1000000000,1000000000,1000000000]", "", BW_INVALID_ARGUMENT, "");
    refuse_input("[null,4]", ",\"sparse\":true", BW_UNIMPLEMENTED, "layer i: sparse=true");
    refuse_input("[null,4]", ",\"dtype\":\"string\"", BW_UNIMPLEMENTED, "layer i: dtype='string'");
}

static void test_texts(void **state)
{
    (void)state;
    refuse_text("", BW_DATA_LOSS, "m.json: not JSON");
    refuse_text("{}", BW_DATA_LOSS, "m.json: expected a Sequential or Functional model, found no class");
    refuse_text("[1,2]", BW_DATA_LOSS, "found no class");
    refuse_text("\"text\"", BW_DATA_LOSS, "found no class");
    refuse_text("{\"class_name\":\"MyModel\",\"config\":{}}", BW_UNIMPLEMENTED, "found 'MyModel'");
    refuse_text("{\"class_name\":\"Sequential\",\"module\":\"mine\",\"config\":{}}", BW_UNIMPLEMENTED, "Sequential");
    refuse_text("{\"class_name\":\"Sequential\",\"config\":{\"layers\":[]}}", BW_DATA_LOSS, "no layers");
    refuse_text("{\"class_name\":\"Sequential\",\"config\":{\"layers\":[1,2]}}", BW_DATA_LOSS, "expected a name");
    refuse_text("{\"class_name\":\"Sequential\",\"config\":3}", BW_DATA_LOSS, "no layers");
    refuse_text("{\"class_name\":\"Functional\",\"config\":{}}", BW_DATA_LOSS, "inputs");
    enum { DEEP = 100000 };
    char *text = malloc(DEEP);
    memset(text, '[', DEEP);
    put_file("m.json", text, DEEP);
    expect_refused("100000 brackets", BW_DATA_LOSS, "nested 100000 deep");
    free(text);
}

/* ---- Functional models ---- */

#define TENSOR(name, node, tensor)                                                                                         \
    "{\"class_name\":\"__keras_tensor__\",\"config\":{\"shape\":[null,4],\"dtype\":\"float32\",\"keras_history\":[\"" name \
    "\"," #node "," #tensor "]}}"
#define CALL(tensors, kwargs) "{\"args\":[" tensors "],\"kwargs\":{" kwargs "}}"
#define NODE(name, calls)                                                                                                          \
    "{\"class_name\":\"Dense\",\"config\":{\"name\":\"" name "\",\"units\":4},\"name\":\"" name "\",\"inbound_nodes\":[" calls "]" \
    "}"
#define INPUT \
    "{\"class_name\":\"InputLayer\",\"config\":{\"name\":\"x\",\"batch_shape\":[null,4]},\"name\":\"x\",\"inbound_nodes\":[]}"

static void refuse_graph(const char *layers, const char *inputs, const char *outputs, bw_status status, const char *parts)
{
    char text[8192];
    snprintf(text, sizeof text,
             "{\"class_name\":\"Functional\",\"config\":{\"name\":\"f\",\"layers\":[%s],\"input_layers\":%s,\"output_layers\":%s}}",
             layers, inputs, outputs);
    refuse_text(text, status, parts);
}

static void test_graphs(void **state)
{
    (void)state;
    static const char x[] = "[\"x\",0,0]", d[] = "[\"d\",0,0]";
    refuse_graph(INPUT "," NODE("d", CALL(TENSOR("gone", 0, 0), "")), x, d, BW_DATA_LOSS,
                 "layer d: one of its inputs is not the output");
    refuse_graph(INPUT "," NODE("d", CALL(TENSOR("x", 1, 0), "")), x, d, BW_DATA_LOSS, "layer d");
    refuse_graph(INPUT "," NODE("d", CALL(TENSOR("x", 0, 1), "")), x, d, BW_DATA_LOSS, "layer d");
    refuse_graph(INPUT "," NODE("d", CALL(TENSOR("x", -1, 0), "")), x, d, BW_DATA_LOSS, "layer d");
    refuse_graph(INPUT "," NODE("d", CALL(TENSOR("x", 99999999999, 0), "")), x, d, BW_DATA_LOSS, "layer d");
    refuse_graph(INPUT "," NODE("d", CALL(TENSOR("e", 0, 0), "")) "," NODE("e", CALL(TENSOR("d", 0, 0), "")), x, d, BW_DATA_LOSS,
                 "cycle");
    refuse_graph(INPUT "," NODE("d", CALL(TENSOR("d", 0, 0), "")), x, d, BW_DATA_LOSS, "cycle");
    refuse_graph(INPUT "," NODE("d", ""), x, d, BW_DATA_LOSS, "layer d is never used");
    refuse_graph(INPUT "," NODE("d", CALL("", "")), x, d, BW_DATA_LOSS, "layer d: 0 inputs");
    refuse_graph(INPUT "," NODE("d", CALL(TENSOR("x", 0, 0) "," TENSOR("x", 0, 0), "")), x, d, BW_UNIMPLEMENTED,
                 "layer d: second argument");
    refuse_graph(INPUT "," NODE("d", CALL("[" TENSOR("x", 0, 0) "," TENSOR("x", 0, 0) "]", "")), x, d, BW_INVALID_ARGUMENT,
                 "layer d: expected one input, got 2");
    refuse_graph(INPUT "," NODE("d", CALL(TENSOR("x", 0, 0), "\"initial_state\":[1]")), x, d, BW_UNIMPLEMENTED,
                 "layer d: initial_state=[...]");
    refuse_graph(INPUT "," NODE("d", CALL(TENSOR("x", 0, 0), "\"mask\":" TENSOR("x", 0, 0))), x, d, BW_UNIMPLEMENTED,
                 "layer d: mask");
    refuse_graph(INPUT "," NODE("d", CALL(TENSOR("x", 0, 0), "")) "," NODE("d", CALL(TENSOR("x", 0, 0), "")), x, d, BW_DATA_LOSS,
                 "layer d appears twice");
    refuse_graph(INPUT "," NODE("d", CALL(TENSOR("x", 0, 0), "")), x, "[\"gone\",0,0]", BW_DATA_LOSS, "an output of the model");
    refuse_graph(INPUT "," NODE("d", CALL(TENSOR("x", 0, 0), "")), x, "{\"a\":[\"d\",1,0]}", BW_DATA_LOSS,
                 "an output of the model");
    /* A layer that is not supported is refused by its name, whatever it is called with. */
    refuse_graph(INPUT ",{\"module\":\"keras.layers\",\"class_name\":\"ConvLSTM2D\",\"config\":{\"name\":\"mha\"},\"name\":"
                       "\"mha\",\"inbound_nodes\":[{\"args\":[" TENSOR("x", 0, 0) "," TENSOR("x", 0, 0) "],\"kwargs\":{}}]}",
                 x, "[\"mha\",0,0]", BW_UNIMPLEMENTED, "layer mha: the class 'ConvLSTM2D' is not supported");
    refuse_graph(INPUT "," NODE("d", CALL(TENSOR("x", 0, 0), "")), "[\"d\",0,0]", d, BW_DATA_LOSS, "is not an input layer");
    refuse_graph(INPUT "," NODE("d", CALL(TENSOR("x", 0, 0), "")), "[[\"x\",0,0],[\"x\",0,0]]", d, BW_DATA_LOSS, "appears twice");
    refuse_graph(INPUT "," NODE("d", CALL(TENSOR("x", 0, 0), "")), "[]", d, BW_DATA_LOSS, "inputs");
    /* An operation is no layer, unless it only makes masks. */
    refuse_graph(INPUT
                 ",{\"module\":\"keras.src.ops.numpy\",\"class_name\":\"NotEqual\",\"config\":{\"name\":\"ne\"},\"name\":\"ne\","
                 "\"inbound_nodes\":[{\"args\":[" TENSOR("x", 0, 0) ",0],\"kwargs\":{}}]}," NODE("d", CALL(TENSOR("ne", 0, 0), "")),
                 x, d, BW_UNIMPLEMENTED, "layer d|operation ne");
    refuse_graph(INPUT
                 ",{\"module\":\"keras.src.ops.numpy\",\"class_name\":\"Sinh\",\"config\":{\"name\":\"ex\"},\"name\":\"ex\","
                 "\"inbound_nodes\":[{\"args\":[" TENSOR("x", 0, 0) "],\"kwargs\":{}}]}," NODE("d", CALL(TENSOR("ex", 0, 0), "")),
                 x, d, BW_UNIMPLEMENTED, "layer ex: the operator 'Sinh' is not supported");
}

/* ---- compile_config ---- */

/* What cannot be compiled does not keep the model from predicting; training is refused with the same words. */
static void refuse_compile(const char *config, bw_status status, const char *parts)
{
    char text[4096];
    float x[6] = {0.1F, 0.2F, 0.3F, 0.4F, 0.5F, 0.6F}, y[6] = {0}, p[6];
    snprintf(text, sizeof text,
             "{\"class_name\":\"Sequential\",\"config\":{\"layers\":[{\"class_name\":\"Dense\",\"config\":{\"name\":\"d\","
             "\"units\":2}}]},"
             "\"compile_config\":{%s}}",
             config);
    put_file("m.json", text, strlen(text));
    bw_model *model = bw_load(ctx, path);
    assert_non_null(model);
    bw_array inputs = {.data = x, .dtype = BW_F32, .ndim = 2, .shape = {3, 2}}, targets = inputs;
    targets.data = y;
    bw_dataset *data = bw_from_arrays(ctx, &inputs, &targets, NULL);
    check_fails(ctx, bw_fit(model, data, NULL, NULL), status, parts);
    check_fails(ctx, bw_fit(model, data, NULL, NULL), status, "m.json: ");
    check_ok(ctx, bw_build(model, 1, (const int64_t[]){2}, 1));
    check_ok(ctx, bw_predict(model, data, p, 6));
    check_ok(ctx, bw_compile(model, "sgd", "mse", NULL));
    check_ok(ctx, bw_fit(model, data, NULL, NULL));
    bw_model_free(model);
    bw_dataset_free(data);
    assert_int_equal(unlink(path), 0);
}

/* As versions before Keras 3 wrote it. */
static void test_compile_of_older_versions(void **state)
{
    (void)state;
    static const char text[] =
        "{\"class_name\":\"Sequential\",\"config\":{\"layers\":[{\"class_name\":\"Dense\",\"config\":{\"name\":\"d\",\"units\":2,"
        "\"batch_input_shape\":[null,2]}}]},\"compile_config\":{\"optimizer\":{\"class_name\":\"Custom>SGD\",\"config\":"
        "{\"learning_rate\":0.5}},\"loss\":{\"class_name\":\"MeanSquaredError\",\"config\":{\"reduction\":\"auto\"}},\"metrics\":"
        "[[{\"class_name\":\"MeanMetricWrapper\",\"config\":{\"name\":\"error\",\"fn\":\"mae\"}}]]}}";
    put_file("m.json", text, strlen(text));
    bw_model *model = bw_load(ctx, path);
    assert_non_null(model);
    const bwi_training *t = model->training;
    assert_int_equal(t->unread, 0);
    assert_string_equal(t->optimizer.row->name, "sgd");
    assert_int_equal(t->metric_count, 1);
    assert_string_equal(t->metrics[0].name, "error");
    bw_model_free(model);
    assert_int_equal(unlink(path), 0);
}

/* What can be read is kept, and only what cannot must be given; it is not needed to evaluate. */
static void test_compile_in_part(void **state)
{
    (void)state;
    static const char text[] =
        "{\"class_name\":\"Sequential\",\"config\":{\"layers\":[{\"class_name\":\"Dense\",\"config\":{\"name\":\"d\",\"units\":2,"
        "\"batch_input_shape\":[null,2]}}]},\"compile_config\":{\"optimizer\":\"loss_scale\",\"loss\":\"mae\",\"metrics\":[\"mse\"]"
        "}}";
    float x[6] = {0.1F, 0.2F, 0.3F, 0.4F, 0.5F, 0.6F}, y[6] = {0};
    bw_history *history = NULL;
    put_file("m.json", text, strlen(text));
    bw_model *model = bw_load(ctx, path);
    assert_non_null(model);
    bw_array inputs = {.data = x, .dtype = BW_F32, .ndim = 2, .shape = {3, 2}}, targets = inputs;
    targets.data = y;
    bw_dataset *data = bw_from_arrays(ctx, &inputs, &targets, NULL);
    check_ok(ctx, bw_build(model, 0, NULL, 1));
    check_ok(ctx, bw_evaluate(model, data, &history));
    bw_history_free(history);
    check_ok(ctx, bw_recompile(model, NULL, NULL, "mae"));
    check_fails(ctx, bw_fit(model, data, NULL, NULL), BW_UNIMPLEMENTED,
                "m.json: compile_config: optimizer='loss_scale' is not supported");
    check_ok(ctx, bw_recompile(model, "sgd", NULL, NULL));
    check_ok(ctx, bw_fit(model, data, NULL, NULL));
    const bwi_training *t = model->training;
    assert_int_equal(t->loss_count, 1);
    assert_true(bwi_listed(t->losses[0].row->names, "mae", 3));
    bw_model_free(model);
    bw_dataset_free(data);
    assert_int_equal(unlink(path), 0);
}

#define OPTIMIZER(name, config) \
    "\"optimizer\":{\"module\":\"keras.optimizers\",\"class_name\":\"" name "\",\"config\":{" config "}},\"loss\":\"mse\""

static void test_compile(void **state)
{
    (void)state;
    refuse_compile(OPTIMIZER("LossScaleOptimizer", ""), BW_UNIMPLEMENTED,
                   "compile_config: optimizer='LossScaleOptimizer' is not supported");
    refuse_compile("\"optimizer\":{\"module\":\"mine\",\"class_name\":\"Adam\",\"config\":{}}", BW_UNIMPLEMENTED,
                   "optimizer='Adam'");
    refuse_compile(OPTIMIZER("Adam", "\"warp\":9"), BW_UNIMPLEMENTED, "optimizer Adam: warp=9.0 is not supported");
    refuse_compile(OPTIMIZER("Adam", "\"loss_scale_factor\":2.0"), BW_UNIMPLEMENTED, "loss_scale_factor");
    refuse_compile(OPTIMIZER("Adam", "\"learning_rate\":-1"), BW_INVALID_ARGUMENT, "learning_rate");
    refuse_compile(OPTIMIZER("Adam", "\"learning_rate\":{\"module\":\"mine\",\"class_name\":\"CosineDecay\",\"config\":{}}"),
                   BW_UNIMPLEMENTED, "learning_rate='CosineDecay'");
    refuse_compile(OPTIMIZER("SGD", "\"clipnorm\":1.0,\"clipvalue\":1.0"), BW_INVALID_ARGUMENT, "clipnorm");
    refuse_compile(
        "\"optimizer\":\"adam\",\"loss\":{\"class_name\":\"function\",\"config\":\"my_loss\",\"registered_name\":\"my_loss\"}",
        BW_UNIMPLEMENTED, "loss='my_loss'");
    refuse_compile("\"optimizer\":\"adam\",\"loss\":\"my_loss\"", BW_UNIMPLEMENTED, "loss='my_loss' is not supported");
    refuse_compile("\"optimizer\":\"adam\",\"loss\":{\"module\":\"keras.losses\",\"class_name\":\"MeanSquaredError\",\"config\":"
                   "{\"reduction\":\"none\"}}",
                   BW_UNIMPLEMENTED, "reduction='none'");
    refuse_compile("\"optimizer\":\"adam\",\"loss\":\"mse\",\"loss_weights\":[\"2\"]", BW_UNIMPLEMENTED, "loss_weights='2'");
    refuse_compile("\"optimizer\":\"adam\",\"loss\":\"mse\",\"metrics\":[{\"module\":\"keras.metrics\",\"class_name\":\"Accuracy\","
                   "\"config\":{}}]",
                   BW_UNIMPLEMENTED, "metrics='Accuracy'");
    refuse_compile("\"optimizer\":\"adam\",\"loss\":\"mse\",\"metrics\":[{\"module\":\"keras.metrics\",\"class_name\":\"AUC\","
                   "\"config\":{\"brand_new\":true}}]",
                   BW_UNIMPLEMENTED, "brand_new=true");
    refuse_compile("\"optimizer\":\"adam\",\"loss\":\"mse\",\"something\":1", BW_UNIMPLEMENTED, "something=1.0");
}

/* ---- .keras: members and weights ---- */

static const char small[] =
    "{\"class_name\":\"Sequential\",\"config\":{\"layers\":[{\"class_name\":\"InputLayer\",\"config\":{\"name\":"
    "\"i\",\"batch_shape\":[null,2]}},{\"class_name\":\"Dense\",\"config\":{\"name\":\"d\",\"units\":3}}]}}";
/* 4 TB of weights. */
static const char huge[] =
    "{\"class_name\":\"Sequential\",\"config\":{\"layers\":[{\"class_name\":\"InputLayer\",\"config\":{\"name\":"
    "\"i\",\"batch_shape\":[null,10000]}},{\"class_name\":\"Dense\",\"config\":{\"name\":\"d\",\"units\":100000000}}]}}";

static void put_keras(const char *config, size_t size, const void *image, size_t image_size)
{
    const zip_values members[] = {{"config.json", config, size}, {"model.weights.h5", image, image_size}};
    snprintf(path, sizeof path, "%s", inside("m.keras"));
    check_ok(ctx, write_zip(ctx, path, members, image ? 2 : 1));
}

static void put_weights(const char *config, const hdf5_values *parts, int count)
{
    void *image;
    size_t size;
    check_ok(ctx, make_hdf5(ctx, parts, count, &image, &size));
    put_keras(config, strlen(config), image, size);
    bwi_release(ctx, image);
}

static void test_weights(void **state)
{
    (void)state;
    static const int64_t kernel[] = {2, 3}, other[] = {3, 2}, bias[] = {3};
    static const float values[6];
    hdf5_values parts[] = {{"layers/dense/vars/0", BW_F32, 2, kernel, values},
                           {"layers/dense/vars/1", BW_F32, 1, bias, values},
                           {"layers/dense_1/vars/0", BW_F32, 1, bias, values}};
    put_weights(small, parts, 2);
    bw_model *model = bw_load(ctx, path);
    assert_non_null(model);
    bw_model_free(model);
    put_weights(small, parts, 1);
    expect_refused("a missing bias", BW_DATA_LOSS, "layers/dense/vars/1 of shape (3,) is missing");
    put_weights(small, parts, 3);
    expect_refused("another layer", BW_DATA_LOSS, "'layers/dense_1/vars/0' belongs to no layer");
    parts[0].shape = other;
    put_weights(small, parts, 2);
    expect_refused("another shape", BW_DATA_LOSS, "layers/dense/vars/0: expected numbers of shape (2, 3), found (3, 2)");
    parts[0].ndim = 1;
    put_weights(small, parts, 2);
    expect_refused("another rank", BW_DATA_LOSS, "layers/dense/vars/0: expected numbers of shape (2, 3), found (3,)");
    put_weights(huge, parts, 2);
    expect_refused("4 TB", BW_DATA_LOSS, "expected numbers of shape (10000, 100000000)");
    put_keras(small, strlen(small), NULL, 0);
    expect_refused("no weights", BW_DATA_LOSS, "it has no member model.weights.h5");
    put_keras(small, strlen(small), "no hdf5", 7);
    expect_refused("text as weights", BW_DATA_LOSS, "model.weights.h5: is not an HDF5 file");
    put_keras("{", 1, "", 0);
    expect_refused("half a config", BW_DATA_LOSS, "m.keras: config.json: not JSON");
    put_file("m.keras", "PK", 2);
    expect_refused("two bytes", BW_DATA_LOSS, "m.keras");
    enum { LONG = 17 << 20 };
    char *text = malloc(LONG);
    memset(text, ' ', LONG);
    put_keras(text, LONG, "", 0);
    expect_refused("17 MiB of config", BW_DATA_LOSS, "config.json|bytes");
    free(text);
}

/* What an HDF5 file can point to outside of itself, or claim without having it, as a model's weights. */
static void test_images(void **state)
{
    (void)state;
    static const char *const names[] = {"circle", "claims", "external_data", "external_link", "gzip", "soft", "virtual"};
    for (size_t i = 0; i < BWI_COUNT(names); i++) {
        char image[1024];
        bwi_bytes bytes;
        snprintf(image, sizeof image, BW_TEST_DATA "/hdf5/%s.h5", names[i]);
        check_ok(ctx, bwi_file_map(ctx, &bytes, image));
        put_keras(small, strlen(small), bytes.data, bytes.size);
        expect_refused(names[i], BW_DATA_LOSS, "model.weights.h5");
        bwi_file_unmap(ctx, &bytes);
    }
}

/* 40 MiB of zeros, packed, as weights: made by make_keras.py. */
static void test_bomb(void **state)
{
    (void)state;
    bwi_bytes bytes;
    check_ok(ctx, bwi_file_map(ctx, &bytes, BW_TEST_DATA "/keras/bomb.keras"));
    put_file("m.keras", bytes.data, bytes.size);
    bwi_file_unmap(ctx, &bytes);
    expect_refused("a bomb", BW_DATA_LOSS, "41943040 bytes, compressed to|are too many to unpack");
}

/* ---- Numbers that lie ---- */

enum { LIES = 500 };

static const char *lie(bw_random *random)
{
    static const char *const numbers[] = {"0",
                                          "-1",
                                          "1",
                                          "2",
                                          "3",
                                          "7",
                                          "255",
                                          "65536",
                                          "2147483647",
                                          "2147483648",
                                          "4294967296",
                                          "9007199254740993",
                                          "4611686018427387904",
                                          "9223372036854775807",
                                          "-9223372036854775808",
                                          "18446744073709551615",
                                          "1e3",
                                          "1e300",
                                          "2.5",
                                          "null",
                                          "true",
                                          "\"4\"",
                                          "[]",
                                          "{}"};
    return numbers[bw_random_below(random, (int64_t)BWI_COUNT(numbers))];
}

/* Whatever the numbers say: small, or refused without taking memory for it. */
static void test_shapes_that_lie(void **state)
{
    (void)state;
    int loaded = 0;
    for (int i = 0; i < LIES; i++) {
        bw_random random = {.seed = 11, .stream = (uint64_t)i};
        char text[2048];
        snprintf(text, sizeof text,
                 "{\"class_name\":\"Sequential\",\"config\":{\"layers\":[{\"class_name\":\"InputLayer\",\"config\":{\"name\":\"i\","
                 "\"batch_shape\":[null,%s,%s,%s]}},{\"class_name\":\"Conv2D\",\"config\":{\"name\":\"c\",\"filters\":%s,"
                 "\"kernel_size\":[%s,%s],\"strides\":[%s,%s],\"dilation_rate\":[%s,1],\"groups\":%s,\"padding\":\"same\"}},"
                 "{\"class_name\":\"UpSampling2D\",\"config\":{\"name\":\"u\",\"size\":[%s,%s]}},"
                 "{\"class_name\":\"Dense\",\"config\":{\"name\":\"d\",\"units\":%s}}]}}",
                 i % 3 ? "8" : lie(&random), i % 5 ? "8" : lie(&random), i % 7 ? "2" : lie(&random), i % 2 ? "4" : lie(&random),
                 i % 11 ? "3" : lie(&random), i % 13 ? "3" : lie(&random), i % 4 ? "1" : lie(&random), i % 9 ? "1" : lie(&random),
                 i % 6 ? "1" : lie(&random), i % 8 ? "1" : lie(&random), i % 10 ? "2" : lie(&random), i % 12 ? "2" : lie(&random),
                 i % 14 ? "3" : lie(&random));
        size_t before = bwi_allocated_bytes(ctx);
        put_file("m.json", text, strlen(text));
        largest = 0;
        bw_model *model = bw_load(ctx, path);
        loaded += !!model;
        if (!model) {
            assert_int_not_equal(bwi_pending(ctx), BW_OK);
            assert_non_null(strstr(bw_message(ctx), "m.json"));
        }
        bw_model_free(model);
        assert_int_equal(bwi_allocated_bytes(ctx), before);
        assert_true(largest <= 1 << 25);
        assert_int_equal(unlink(path), 0);
    }
    assert_true(loaded > 0 && loaded < LIES);
}

/* Headers of safetensors: any of the numbers wrong is found, and the weights stay. */
static void test_offsets_that_lie(void **state)
{
    (void)state;
    static const char *const types[] = {"F32", "F64", "F16", "BF16", "I64", "U8", "f32", ""};
    bw_model *model = bw_model_parse(ctx, "input(2) dense(3)");
    check_ok(ctx, bw_build(model, 1, (int64_t[]){2}, 1));
    uint64_t hash = bw_model_hash(model);
    for (int i = 0; i < LIES; i++) {
        bw_random random = {.seed = 12, .stream = (uint64_t)i};
        unsigned char file[1024] = {0};
        int wrong = (int)bw_random_below(&random, 8);
        char *text = (char *)file + 8;
        const char *right[8] = {"2", "3", "0", "24", "3", "24", "36", "F32"};
        do {
            right[wrong] = wrong < 7 ? lie(&random) : types[bw_random_below(&random, (int64_t)BWI_COUNT(types))];
        } while (strcmp(right[wrong], (const char *[]){"2", "3", "0", "24", "3", "24", "36", "F32"}[wrong]) == 0);
        int length = snprintf(text, 900,
                              "{\"dense/kernel\":{\"dtype\":\"%s\",\"shape\":[%s,%s],\"data_offsets\":[%s,%s]},"
                              "\"dense/bias\":{\"dtype\":\"F32\",\"shape\":[%s],\"data_offsets\":[%s,%s]}}",
                              right[7], right[0], right[1], right[2], right[3], right[4], right[5], right[6]);
        file[0] = (unsigned char)length;
        file[1] = (unsigned char)(length >> 8);
        put_file("m.safetensors", file, 8 + (size_t)length + 36);
        largest = 0;
        check_fails(ctx, bw_load_weights(model, path), BW_DATA_LOSS, "m.safetensors");
        assert_true(largest <= 1 << 20);
        assert_true(bw_model_hash(model) == hash);
        assert_int_equal(unlink(path), 0);
    }
    /* Sizes add up, and the bytes are used twice. */
    unsigned char file[1024] = {0};
    int length = snprintf((char *)file + 8, 900,
                          "{\"dense/kernel\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_offsets\":[0,24]},"
                          "\"dense/bias\":{\"dtype\":\"F32\",\"shape\":[3],\"data_offsets\":[12,24]}}");
    file[0] = (unsigned char)length;
    put_file("m.safetensors", file, 8 + (size_t)length + 36);
    check_fails(ctx, bw_load_weights(model, path), BW_DATA_LOSS, "m.safetensors: tensors overlap or leave a gap at byte 12");
    assert_int_equal(unlink(path), 0);
    bw_model_free(model);
}

/* ---- Names of files ---- */

static void test_extensions(void **state)
{
    (void)state;
    assert_null(bw_load(ctx, "model.txt"));
    check_fails(ctx, bwi_pending(ctx), BW_INVALID_ARGUMENT, "model.txt: expected a name that ends in one of .keras, .h5, .json");
    assert_null(bw_load(ctx, "model.safetensors"));
    check_fails(ctx, bwi_pending(ctx), BW_INVALID_ARGUMENT,
                "model.safetensors: cannot be loaded as a model: it holds weights by name");
    assert_null(bw_load(ctx, ".keras"));
    check_fails(ctx, bwi_pending(ctx), BW_INVALID_ARGUMENT, "");
    assert_null(bw_load(ctx, NULL));
    check_fails(ctx, bwi_pending(ctx), BW_INVALID_ARGUMENT, "no file name");
    assert_null(bw_load(ctx, "/nowhere/at/all.keras"));
    check_fails(ctx, bwi_pending(ctx), BW_NOT_FOUND, "/nowhere/at/all.keras");
    assert_null(bw_load(NULL, "m.keras"));
    assert_int_equal(bw_save(NULL, "m.keras"), BW_INVALID_ARGUMENT);
    assert_int_equal(bw_load_weights(NULL, "m.keras"), BW_INVALID_ARGUMENT);
    bw_model *model = bw_model_parse(ctx, "dense(3)");
    check_fails(ctx, bw_save(model, "m.keras"), BW_INVALID_ARGUMENT, "no variables yet");
    check_fails(ctx, bw_save(model, "m.json"), BW_INVALID_ARGUMENT, "no input shape yet");
    check_fails(ctx, bw_save(model, "m.h5"), BW_INVALID_ARGUMENT, "m.h5: cannot be saved: it holds");
    check_fails(ctx, bw_load_weights(model, "m.json"), BW_INVALID_ARGUMENT, "m.json: cannot give weights: it holds");
    bw_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_classes), cmocka_unit_test(test_options),         cmocka_unit_test(test_values),
        cmocka_unit_test(test_inputs),  cmocka_unit_test(test_texts),           cmocka_unit_test(test_graphs),
        cmocka_unit_test(test_compile), cmocka_unit_test(test_compile_in_part), cmocka_unit_test(test_compile_of_older_versions),
        cmocka_unit_test(test_weights), cmocka_unit_test(test_extensions),      cmocka_unit_test(test_images),
        cmocka_unit_test(test_bomb),    cmocka_unit_test(test_shapes_that_lie), cmocka_unit_test(test_offsets_that_lie),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
