/* label: thread
 * Models by calls: branches, shared layers, several inputs and outputs, losses and operators of one's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <batchwise.h>

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 13, WIDTH = 6 };

static float xs[SAMPLES * WIDTH], second[SAMPLES * 3], ys[SAMPLES * 2], labels[SAMPLES];

static void fill(void)
{
    unsigned state = 12345;
    for (int i = 0; i < SAMPLES * WIDTH; i++) {
        state = state * 1664525u + 1013904223u;
        xs[i] = (float)(state >> 8) / 8388608.0F - 1;
    }
    for (int i = 0; i < SAMPLES * 2; i++) {
        state = state * 1664525u + 1013904223u;
        ys[i] = (float)(state >> 8) / 8388608.0F - 1;
    }
    for (int i = 0; i < SAMPLES; i++) {
        labels[i] = (float)(i % 3);
    }
    for (int i = 0; i < SAMPLES * 3; i++) {
        second[i] = xs[(i * 7) % (SAMPLES * WIDTH)];
    }
}

static bw_dataset *data_of(bw_context *ctx, const float *y, int width)
{
    bw_array x = {.data = xs, .dtype = BW_F32, .ndim = 2, .shape = {SAMPLES, WIDTH}};
    bw_array t = {.data = y, .dtype = BW_F32, .ndim = width ? 2 : 1, .shape = {SAMPLES, width}};
    return bw_from_arrays(ctx, &x, &t, NULL);
}

static uint64_t train(bw_model *model, bw_dataset *data, const char *loss)
{
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.batch = 5;
    options.epochs = 3;
    options.seed = 3;
    assert_int_equal(bw_compile(model, "sgd(lr=0.1)", loss, ""), BW_OK);
    assert_int_equal(bw_fit(model, data, &options, NULL), BW_OK);
    return bw_model_hash(model);
}

static const int64_t width[] = {WIDTH};

/* The same layers by expression and by calls are the same model. */
static void test_same_as_expression(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_model *a = bw_model_parse(ctx, "dense(5,tanh) dense(3,softmax)");
    bw_model *b = bw_model_new(ctx);
    bw_node *x = bw_input(b, "x", BW_F32, 1, width);
    assert_int_equal(bw_output(bw_layer(bw_layer(x, "dense(5,tanh)"), "dense(3,softmax)"), NULL), BW_OK);
    bw_dataset *data = data_of(ctx, labels, 0);
    assert_int_equal(train(a, data, NULL), train(b, data, NULL));
    bw_close(ctx);
}

/* A loss made of nodes trains as the built-in one does, within rounding. */
static void test_loss_of_nodes(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    const int64_t two[] = {2};
    bw_model *a = bw_model_parse(ctx, "dense(4,tanh) dense(2)"), *b = bw_model_new(ctx);
    bw_node *y = bw_layer(bw_layer(bw_input(b, "", BW_F32, 1, width), "dense(4,tanh)"), "dense(2)");
    bw_node *error = bw_mean(bw_square(bw_subtract(y, bw_target(b, "", BW_F32, 1, two))), BW_ALL);
    assert_int_equal(bw_add_loss(error, "error"), BW_OK);
    bw_dataset *data = data_of(ctx, ys, 2);
    train(a, data, "mse");
    train(b, data, NULL);
    assert_int_equal(bw_variable_count(a), bw_variable_count(b));
    for (int v = 0; v < bw_variable_count(a); v++) {
        float p[64], q[64];
        int64_t shape[BW_MAX_NDIM];
        size_t count = 1;
        for (int i = 0, ndim = bw_variable_shape(a, v, shape); i < ndim; i++) {
            count *= (size_t)shape[i];
        }
        assert_int_equal(bw_variable_get(a, v, p, count), BW_OK);
        assert_int_equal(bw_variable_get(b, v, q, count), BW_OK);
        for (size_t i = 0; i < count; i++) {
            assert_true(fabsf(p[i] - q[i]) < 1e-5F);
        }
    }
    bw_close(ctx);
}

static double loss_of(bw_model *model, bw_dataset *data)
{
    bw_history *history = NULL;
    assert_int_equal(bw_evaluate(model, data, &history), BW_OK);
    double loss = bw_history_last(history, "loss");
    bw_history_free(history);
    return loss;
}

/* One step of SGD with rate 1 on the whole data shows the gradient of the mean loss: against central differences. */
static void check_gradients(bw_model *model, bw_dataset *data, const char *loss)
{
    assert_int_equal(bw_compile(model, "sgd(lr=1)", loss, ""), BW_OK);
    assert_int_equal(bw_build(model, 0, NULL, 5), BW_OK);
    for (int v = 0; v < bw_variable_count(model); v++) {
        float before[256], moved[256], after[256];
        int64_t shape[BW_MAX_NDIM];
        size_t count = 1;
        for (int i = 0, ndim = bw_variable_shape(model, v, shape); i < ndim; i++) {
            count *= (size_t)shape[i];
        }
        assert_true(count <= 256);
        double expected[256];
        assert_int_equal(bw_variable_get(model, v, before, count), BW_OK);
        for (size_t i = 0; i < count; i++) {
            memcpy(moved, before, sizeof moved);
            moved[i] = before[i] + 1e-2F;
            assert_int_equal(bw_variable_set(model, v, moved, count), BW_OK);
            double up = loss_of(model, data);
            moved[i] = before[i] - 1e-2F;
            assert_int_equal(bw_variable_set(model, v, moved, count), BW_OK);
            expected[i] = (up - loss_of(model, data)) / 2e-2;
        }
        assert_int_equal(bw_variable_set(model, v, before, count), BW_OK);
        float others[8][256];
        for (int o = 0; o < bw_variable_count(model); o++) {
            int64_t s[BW_MAX_NDIM];
            size_t n = 1;
            for (int i = 0, ndim = bw_variable_shape(model, o, s); i < ndim; i++) {
                n *= (size_t)s[i];
            }
            assert_int_equal(bw_variable_get(model, o, others[o], n), BW_OK);
        }
        bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
        options.batch = SAMPLES;
        assert_int_equal(bw_fit(model, data, &options, NULL), BW_OK);
        assert_int_equal(bw_variable_get(model, v, after, count), BW_OK);
        for (size_t i = 0; i < count; i++) {
            assert_true(fabs((double)before[i] - (double)after[i] - expected[i]) < 1e-3 + 1e-2 * fabs(expected[i]));
        }
        for (int o = 0; o < bw_variable_count(model); o++) {
            int64_t s[BW_MAX_NDIM];
            size_t n = 1;
            for (int i = 0, ndim = bw_variable_shape(model, o, s); i < ndim; i++) {
                n *= (size_t)s[i];
            }
            assert_int_equal(bw_variable_set(model, o, others[o], n), BW_OK);
        }
    }
}

static void test_shared_layer(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_model *model = bw_model_new(ctx);
    bw_node *x = bw_input(model, "", BW_F32, 1, width);
    bw_node *once = bw_layer(x, "dense(6,tanh)");
    bw_node *twice = bw_layer_again(once, once);
    bw_node *both[] = {once, twice};
    assert_int_equal(bw_output(bw_layer(bw_merge("add", both, 2), "dense(2)"), NULL), BW_OK);
    check_gradients(model, data_of(ctx, ys, 2), "mse");
    assert_int_equal(bw_variable_count(model), 4);
    bw_close(ctx);
}

/* Two inputs, two outputs with a loss each; the history has the total, each loss and each metric. */
static bw_model *fork_of(bw_context *ctx, bw_dataset **data)
{
    const int64_t three[] = {3};
    bw_field fields[] = {{"x_left", {.data = xs, .dtype = BW_F32, .ndim = 2, .shape = {SAMPLES, WIDTH}}},
                         {"x_right", {.data = second, .dtype = BW_F32, .ndim = 2, .shape = {SAMPLES, 3}}},
                         {"y_class", {.data = labels, .dtype = BW_F32, .ndim = 1, .shape = {SAMPLES}}},
                         {"y_value", {.data = ys, .dtype = BW_F32, .ndim = 2, .shape = {SAMPLES, 2}}}};
    *data = bw_from_fields(ctx, fields, 4);
    bw_model *model = bw_model_new(ctx);
    bw_node *both[] = {bw_layer(bw_input(model, "left", BW_F32, 1, width), "dense(4,tanh)"),
                       bw_layer(bw_input(model, "right", BW_F32, 1, three), "dense(5,tanh)")};
    bw_node *joined = bw_merge("concat", both, 2);
    assert_int_equal(bw_output(bw_layer(joined, "dense(3,softmax)"), "class"), BW_OK);
    assert_int_equal(bw_output(bw_layer(joined, "dense(2)"), "value"), BW_OK);
    return model;
}

static void test_several_inputs_and_outputs(void **state)
{
    (void)state;
    uint64_t hashes[3];
    for (int workers = 1; workers <= 3; workers++) {
        bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
        options.workers = workers;
        bw_context *ctx = bw_open(&options);
        bw_dataset *data;
        bw_model *model = fork_of(ctx, &data);
        bw_fit_options fit = BW_FIT_OPTIONS_DEFAULT;
        fit.batch = 5;
        fit.tile = 2;
        bw_history *history = NULL;
        assert_int_equal(bw_compile(model, "adam", "class=sparse_categorical_crossentropy,value=mse", "class=accuracy"), BW_OK);
        assert_int_equal(bw_fit(model, data, &fit, &history), BW_OK);
        double total = bw_history_last(history, "loss");
        double parts = bw_history_last(history, "class_loss") + bw_history_last(history, "value_loss");
        assert_true(fabs(total - parts) < 1e-12 && bw_history_last(history, "class_accuracy") >= 0);
        float classes[SAMPLES * 3], values[SAMPLES * 2];
        assert_int_equal(bw_predict_all(model, data, (float *const[]){classes, values}, (size_t[]){SAMPLES * 3, SAMPLES * 2}, 2),
                         BW_OK);
        for (int i = 0; i < SAMPLES; i++) {
            assert_true(fabsf(classes[3 * i] + classes[3 * i + 1] + classes[3 * i + 2] - 1) < 1e-5F);
        }
        assert_int_equal(bw_predict(model, data, classes, SAMPLES * 3), BW_INVALID_ARGUMENT);
        hashes[workers - 1] = bw_model_hash(model);
        bw_close(ctx);
    }
    assert_int_equal(hashes[0], hashes[1]);
    assert_int_equal(hashes[0], hashes[2]);
}

typedef struct rank_job {
    bw_ranks *ranks;
    int rank, epochs;
    bw_status status;
    uint64_t hash;
} rank_job;

static void *train_rank(void *user)
{
    rank_job *j = user;
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.ranks = j->ranks;
    options.rank = j->rank;
    bw_context *ctx = bw_open(&options);
    bw_dataset *data;
    bw_model *model = fork_of(ctx, &data);
    bw_fit_options fit = BW_FIT_OPTIONS_DEFAULT;
    fit.batch = 5;
    fit.tile = 2;
    fit.epochs = j->epochs;
    j->status = bw_compile(model, "adam", "class=sparse_categorical_crossentropy,value=mse", "class=accuracy");
    if (j->status == BW_OK) {
        j->status = bw_fit(model, data, &fit, NULL);
    }
    j->hash = bw_model_hash(model);
    bw_close(ctx);
    return NULL;
}

static void run_ranks(rank_job *jobs, int count)
{
    pthread_t threads[4];
    bw_ranks *ranks = bw_ranks_open(count);
    for (int r = 0; r < count; r++) {
        jobs[r].ranks = ranks;
        jobs[r].rank = r;
        assert_int_equal(pthread_create(&threads[r], NULL, train_rank, &jobs[r]), 0);
    }
    for (int r = 0; r < count; r++) {
        pthread_join(threads[r], NULL);
    }
    bw_ranks_close(ranks);
}

static void test_several_outputs_on_ranks(void **state)
{
    (void)state;
    rank_job one[1] = {{.epochs = 2}}, four[4] = {{.epochs = 2}, {.epochs = 2}, {.epochs = 2}, {.epochs = 2}};
    run_ranks(one, 1);
    run_ranks(four, 4);
    for (int r = 0; r < 4; r++) {
        assert_int_equal(four[r].status, BW_OK);
        assert_int_equal(four[r].hash, one[0].hash);
    }
}

/* Ranks that were told different things stop at once, instead of waiting for each other. */
static void test_ranks_that_differ(void **state)
{
    (void)state;
    rank_job jobs[4] = {{.epochs = 1}, {.epochs = 3}, {.epochs = 2}, {.epochs = 2}};
    run_ranks(jobs, 4);
    for (int r = 0; r < 4; r++) {
        assert_int_equal(jobs[r].status, BW_INVALID_ARGUMENT);
    }
}

static void test_gradients_of_several_outputs(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_dataset *data;
    bw_model *model = fork_of(ctx, &data);
    check_gradients(model, data, "class=sparse_categorical_crossentropy,value=mse");
    bw_close(ctx);
}

/* ---- An operator of one's own: y = x^3 ---- */

static int cube_shape(void *user, int inputs, const int *ranks, const int64_t *const *shapes, int64_t *shape)
{
    assert_ptr_equal(user, xs);
    if (inputs != 1) {
        return -1;
    }
    memcpy(shape, shapes[0], (size_t)ranks[0] * sizeof *shape);
    return ranks[0];
}

static bool cube(void *user, int64_t samples, const float *const *src, float *dst)
{
    (void)user;
    for (int64_t i = 0; i < samples * 4; i++) {
        dst[i] = src[0][i] * src[0][i] * src[0][i];
    }
    return true;
}

static bool cube_backward(void *user, int64_t samples, const float *const *src, const float *dst, const float *diff_dst,
                          float *const *diff_src)
{
    (void)user;
    (void)dst;
    for (int64_t i = 0; i < samples * 4; i++) {
        diff_src[0][i] = 3 * src[0][i] * src[0][i] * diff_dst[i];
    }
    return true;
}

static void test_custom_operator(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_model *model = bw_model_new(ctx);
    bw_operator op = {
        .size = sizeof op, .name = "cube", .shape = cube_shape, .forward = cube, .backward = cube_backward, .user = xs};
    bw_node *h = bw_layer(bw_input(model, "", BW_F32, 1, width), "dense(4)");
    assert_int_equal(bw_output(bw_layer(bw_custom(&op, &h, 1), "dense(2)"), NULL), BW_OK);
    check_gradients(model, data_of(ctx, ys, 2), "mse");
    bw_close(ctx);
}

/* Activations by name are those of layers. */
static void test_activation(void **state)
{
    (void)state;
    static const char *const names[] = {"tanh", "sigmoid", "softplus", "gelu"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        bw_context *ctx = bw_open(NULL);
        uint64_t hashes[2];
        for (int by_name = 0; by_name < 2; by_name++) {
            char layer[32];
            bw_model *model = bw_model_new(ctx);
            bw_node *x = bw_input(model, "", BW_F32, 1, width);
            snprintf(layer, sizeof layer, "dense(4,%s)", names[i]);
            bw_node *h = by_name ? bw_activation(bw_layer(x, "dense(4)"), names[i]) : bw_layer(x, layer);
            assert_int_equal(bw_output(bw_layer(h, "dense(2)"), NULL), BW_OK);
            assert_int_equal(bw_compile(model, "sgd(lr=0.1)", "mse", ""), BW_OK);
            assert_int_equal(bw_build(model, 0, NULL, 5), BW_OK);
            assert_int_equal(bw_fit(model, data_of(ctx, ys, 2), NULL, NULL), BW_OK);
            hashes[by_name] = bw_model_hash(model);
            assert_null(bw_activation(x, "tanhh"));
            assert_int_equal(bw_output(x, NULL), BW_INVALID_ARGUMENT);
            assert_non_null(strstr(bw_message(ctx), "tanhh"));
        }
        assert_true(hashes[0] == hashes[1]);
        bw_close(ctx);
    }
}

static bool refuse(void *user, int64_t samples, const float *const *src, float *dst)
{
    (void)user;
    (void)src;
    memset(dst, 0, (size_t)samples * 4 * sizeof *dst);
    return false;
}

static void test_custom_operator_fails(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_model *model = bw_model_new(ctx);
    bw_operator op = {
        .size = sizeof op, .name = "cube", .shape = cube_shape, .forward = refuse, .backward = cube_backward, .user = xs};
    bw_node *h = bw_layer(bw_input(model, "", BW_F32, 1, width), "dense(4)");
    assert_int_equal(bw_output(bw_layer(bw_custom(&op, &h, 1), "dense(2)"), NULL), BW_OK);
    assert_int_equal(bw_compile(model, "sgd", "mse", ""), BW_OK);
    assert_int_equal(bw_fit(model, data_of(ctx, ys, 2), NULL, NULL), BW_INVALID_ARGUMENT);
    assert_string_equal(bw_message(ctx), "operator cube failed in its forward pass for sample 0");
    bw_close(ctx);
}

static void test_mistakes(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_model *model = bw_model_new(ctx);
    bw_node *x = bw_input(model, "", BW_F32, 1, width);
    /* Builders pass NULL on; the first status tells. */
    assert_null(bw_layer(bw_layer(x, "conv2d(3,3)"), "dense(2)"));
    assert_int_equal(bw_output(x, NULL), BW_INVALID_ARGUMENT);
    assert_non_null(strstr(bw_message(ctx), "layer conv2d: expected an image"));
    assert_int_equal(bw_compile(model, NULL, NULL, NULL), BW_OK);
    assert_int_equal(bw_fit(model, data_of(ctx, ys, 2), NULL, NULL), BW_INVALID_ARGUMENT);
    assert_non_null(strstr(bw_message(ctx), "no output"));
    assert_null(bw_layer_again(x, x));
    assert_int_equal(bw_output(x, NULL), BW_INVALID_ARGUMENT);
    assert_null(bw_layer(x, "conv_lstm2d(3)"));
    assert_int_equal(bw_output(x, NULL), BW_UNIMPLEMENTED);
    assert_int_equal(bw_add_loss(x, "wide"), BW_INVALID_ARGUMENT);
    bw_model *other = bw_model_new(ctx);
    bw_node *foreign[] = {x, bw_input(other, "", BW_F32, 1, width)};
    assert_null(bw_merge("add", foreign, 2));
    assert_int_equal(bw_output(x, NULL), BW_INVALID_ARGUMENT);
    bw_close(ctx);
}

/* A recurrent layer's states are further values: they are outputs, and another layer begins with them, by calls as in the expression
 * that stands for the calls. Weights of zero leave a
 * sigmoid of 1/2 in each gate, so each of the two steps halves c. */
static void test_states(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_model *model = bw_model_new(ctx);
    const int64_t steps[] = {2, 3};
    bw_node *x = bw_input(model, "", BW_F32, 2, steps);
    bw_node *y = bw_layer(x, "lstm(4,return_sequences=true,return_state=true,kernel_initializer=ones,recurrent_initializer=zeros)");
    bw_node *begun[] = {y, bw_layer_part(y, 1), bw_layer_part(y, 2)};
    bw_node *z = bw_merge("lstm(4,kernel_initializer=zeros,recurrent_initializer=zeros,unit_forget_bias=false)", begun, 3);
    assert_int_equal(bw_output(z, NULL), BW_OK);
    assert_string_equal(bw_model_expression(model),
                        "input(2,3) a=lstm(4,kernel_initializer=ones,recurrent_initializer=zeros,return_sequences=true,"
                        "return_state=true) lstm(4,kernel_initializer=zeros,recurrent_initializer=zeros,"
                        "unit_forget_bias=false,initial_state=a)");
    assert_int_equal(bw_output(begun[1], "h"), BW_OK);
    assert_int_equal(bw_output(begun[2], "c"), BW_OK);
    assert_int_equal(bw_build(model, 0, NULL, 1), BW_OK);
    float samples[2][6] = {{0.1F, 0.2F, 0.3F, -0.5F, 0.4F, 0.2F}, {1, 0, 0.5F, 0.3F, 0.3F, -0.2F}}, found[3][8];
    bw_array array = {.data = samples, .dtype = BW_F32, .ndim = 3, .shape = {2, 2, 3}};
    assert_int_equal(bw_predict_all(model, bw_from_arrays(ctx, &array, NULL, NULL), (float *const[]){found[0], found[1], found[2]},
                                    (const size_t[]){8, 8, 8}, 3),
                     BW_OK);
    for (int i = 0; i < 2; i++) {
        double c = 0, h = 0;
        for (int s = 0; s < 2; s++) {
            double sum = (double)samples[i][3 * s] + (double)samples[i][3 * s + 1] + (double)samples[i][3 * s + 2];
            double gate = 1 / (1 + exp(-sum)), forget = 1 / (1 + exp(-sum - 1));
            c = forget * c + gate * tanh(sum);
            h = gate * tanh(c);
        }
        assert_true(fabs((double)found[1][4 * i] - h) < 1e-6);
        assert_true(fabs((double)found[2][4 * i] - c) < 1e-6);
        assert_true(fabs((double)found[0][4 * i] - 0.5 * tanh(0.25 * c)) < 1e-6);
    }
    bw_close(ctx);
}

static void test_states_are_checked(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_model *model = bw_model_new(ctx);
    const int64_t steps[] = {2, 3};
    bw_node *y = bw_layer(bw_input(model, "", BW_F32, 2, steps), "gru(4,return_sequences=true)");
    assert_null(bw_layer_part(y, 1));
    assert_int_equal(bw_output(y, NULL), BW_INVALID_ARGUMENT);
    assert_string_equal(bw_message(ctx), "gru: the layer gives no value 1 beside its output");
    bw_node *three[] = {y, y, y};
    assert_null(bw_merge("gru(4)", three, 3));
    assert_int_equal(bw_output(y, NULL), BW_INVALID_ARGUMENT);
    assert_string_equal(bw_message(ctx), "layer gru_1: initial_state: expected 1 states, got 2");
    bw_close(ctx);
}

/* Variables that a model in use gets would have neither values nor slots. */
static void test_no_layer_for_a_model_in_use(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_model *model = bw_model_new(ctx);
    bw_node *x = bw_input(model, "", BW_F32, 1, width);
    assert_int_equal(bw_output(bw_layer(x, "dense(2)"), NULL), BW_OK);
    bw_dataset *data = data_of(ctx, ys, 2);
    uint64_t hash = train(model, data, "mse");
    int variables = bw_variable_count(model);
    assert_null(bw_layer(x, "dense(5)"));
    assert_int_equal(bw_compile(model, "sgd", "mse", ""), BW_INVALID_ARGUMENT);
    assert_non_null(strstr(bw_message(ctx), "the model is in use already"));
    assert_int_equal(bw_variable_count(model), variables);
    assert_true(bw_model_hash(model) == hash);
    assert_true(train(model, data, "mse") != hash);
    bw_close(ctx);
}

int main(void)
{
    fill();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_as_expression),
        cmocka_unit_test(test_loss_of_nodes),
        cmocka_unit_test(test_shared_layer),
        cmocka_unit_test(test_activation),
        cmocka_unit_test(test_custom_operator),
        cmocka_unit_test(test_custom_operator_fails),
        cmocka_unit_test(test_states),
        cmocka_unit_test(test_states_are_checked),
        cmocka_unit_test(test_mistakes),
        cmocka_unit_test(test_no_layer_for_a_model_in_use),
        cmocka_unit_test(test_several_inputs_and_outputs),
        cmocka_unit_test(test_several_outputs_on_ranks),
        cmocka_unit_test(test_ranks_that_differ),
        cmocka_unit_test(test_gradients_of_several_outputs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
