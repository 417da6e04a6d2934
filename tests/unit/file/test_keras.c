/*
 * Files of the real Keras (tests/data/keras, made by make_keras.py there): what they predict, how training goes on from them,
 * and that they come back from files written here. BW_KERAS_OUT=FOLDER keeps those for make_keras.py check; BW_KERAS_IN=FOLDER has
 * files of another version of Keras.
 */
#include "support/check.h"
#include "support/folder.h"

#include "file/internal.h"
#include "keras/case_file.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

static const char *const names[] = {
    "dense",
    "cnn",
    "line",
    "shapes",
    "normalization",
    "random",
    "residual",
    "merges",
    "order",
    "shared",
    "text",
    "words",
    "frozen",
    "nested",
    "transfer",
    "long_names",
    "operators",
    "joined_masks",
    "dictionaries",
    "untrained",
    "uncompiled",
    "no_input",
    "optimizer_sgd",
    "optimizer_adam_amsgrad",
    "optimizer_adadelta",
    "optimizer_adamax",
    "optimizer_lion",
    "optimizer_ftrl",
    "optimizer_lamb",
    "optimizer_adafactor",
    "optimizer_muon",
    "constraints",
    "optimizer_nadam",
    "optimizer_rmsprop",
    "optimizer_adagrad",
    "optimizer_ema",
    "optimizer_exponential",
    "optimizer_inverse",
    "optimizer_polynomial",
    "optimizer_piecewise",
    "optimizer_cosine",
    "optimizer_restarts",
};

static bw_context *ctx;

static char warning[512]; /* the last one */

static void hear(void *user, bw_log_level level, const char *text)
{
    (void)user;
    if (level == BW_LOG_WARNING) {
        snprintf(warning, sizeof warning, "%s", text);
    }
}

static int open_all(void **state)
{
    (void)state;
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.log = hear;
    ctx = bw_open(&options);
    return ctx ? use_folder(getenv("BW_KERAS_OUT")) : -1;
}

static int close_all(void **state)
{
    bw_close(ctx);
    return getenv("BW_KERAS_OUT") ? 0 : remove_empty_folder(state);
}

static const char *fixture(const char *name, const char *extension)
{
    static char path[2][4096];
    static int turn;
    turn = !turn;
    const char *given = getenv("BW_KERAS_IN");
    snprintf(path[turn], sizeof path[turn], "%s/%s%s", given ? given : BW_TEST_DATA "/keras", name, extension);
    return path[turn];
}

static const char *output(const char *name, const char *extension)
{
    static char path[8192];
    snprintf(path, sizeof path, "%s/%s%s", folder, name, extension);
    return path;
}

static void drop(const char *path)
{
    if (!getenv("BW_KERAS_OUT")) {
        assert_int_equal(unlink(path), 0);
    }
}

static bw_model *load(const char *path)
{
    bw_model *model = bw_load(ctx, path);
    if (!model) {
        fail_msg("%s", bw_message(ctx));
    }
    return model;
}

/* The model's predictions beside arrays p0, p1, ... (or q0, ...), relative to their size where that is above 1. */
static void check_predictions(bw_model *model, const char *name, const case_file *file, char letter, double tolerance)
{
    bw_dataset *dataset = bw_read(ctx, fixture(name, ".npz"), NULL);
    float *values[BWI_MAX_HEADS];
    size_t counts[BWI_MAX_HEADS];
    const case_array *expected[BWI_MAX_HEADS];
    int outputs = 0;
    for (char key[8]; snprintf(key, sizeof key, "%c%d", letter, outputs), (expected[outputs] = case_find(file, key)); outputs++) {
        counts[outputs] = (size_t)expected[outputs]->count;
        values[outputs] = malloc(counts[outputs] * sizeof(float));
    }
    assert_true(outputs > 0);
    check_ok(ctx, bw_predict_all(model, dataset, values, counts, outputs));
    for (int k = 0; k < outputs; k++) {
        for (size_t i = 0; i < counts[k]; i++) {
            double wanted = expected[k]->values[i], off = fabs((double)values[k][i] - wanted);
            if (!(off <= tolerance * fmax(1, fabs(wanted)))) {
                fail_msg("%s: %c%d: value %zu is %g, expected %g", name, letter, k, i, (double)values[k][i], wanted);
            }
        }
        free(values[k]);
    }
    bw_dataset_free(dataset);
}

static void read_case(const char *name, case_file *file)
{
    if (!case_read(ctx, file, fixture(name, ".npz"))) {
        fail_msg("%s: %s", name, bw_message(ctx));
    }
}

static void test_predictions(void **state)
{
    (void)state;
    for (size_t n = 0; n < BWI_COUNT(names); n++) {
        case_file file;
        read_case(names[n], &file);
        bw_model *model = load(fixture(names[n], ".keras"));
        check_predictions(model, names[n], &file, 'p', 1e-5);
        bw_model_free(model);
        case_free(&file);
    }
}

/* One more epoch ends where Keras's ends: optimizer, schedule, slots and counters came with the file. */
static void test_training_goes_on(void **state)
{
    (void)state;
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.batch = 8;
    int trained = 0;
    for (size_t n = 0; n < BWI_COUNT(names); n++) {
        case_file file;
        read_case(names[n], &file);
        if (case_find(&file, "q0")) {
            bw_model *model = load(fixture(names[n], ".keras"));
            bw_dataset *dataset = bw_read(ctx, fixture(names[n], ".npz"), NULL);
            check_ok(ctx, bw_fit(model, dataset, &options, NULL));
            check_predictions(model, names[n], &file, 'q', 2e-4);
            bw_dataset_free(dataset);
            bw_model_free(model);
            trained++;
        }
        case_free(&file);
    }
    assert_true(trained > 25);
}

static bwi_bytes map(const char *path)
{
    bwi_bytes bytes;
    check_ok(ctx, bwi_file_map(ctx, &bytes, path));
    return bytes;
}

/* Written, read and written again: the same bytes, the same weights; and the files that were written train on alike. */
static void test_round_trips(void **state)
{
    (void)state;
    for (size_t n = 0; n < BWI_COUNT(names); n++) {
        case_file file;
        char second[64];
        read_case(names[n], &file);
        bw_model *model = load(fixture(names[n], ".keras"));
        check_ok(ctx, bw_save(model, output(names[n], ".keras")));
        bw_model *again = load(output(names[n], ".keras"));
        assert_int_equal(bw_model_hash(again), bw_model_hash(model));
        check_predictions(again, names[n], &file, 'p', 1e-5);
        snprintf(second, sizeof second, "%s_again", names[n]);
        check_ok(ctx, bw_save(again, output(second, ".keras")));
        bwi_bytes a = map(output(names[n], ".keras")), b = map(output(second, ".keras"));
        assert_int_equal(a.size, b.size);
        assert_memory_equal(a.data, b.data, a.size);
        bwi_file_unmap(ctx, &a);
        bwi_file_unmap(ctx, &b);
        assert_int_equal(unlink(output(second, ".keras")), 0);
        bw_model_free(model);
        bw_model_free(again);
        drop(output(names[n], ".keras"));
        case_free(&file);
    }
}

/* Weights alone, into a model of the same layers that has others. */
static void test_weights(void **state)
{
    (void)state;
    static const char *const kinds[] = {".weights.h5", ".safetensors", ".keras"};
    static const char *const some[] = {"cnn", "order", "shared", "normalization"};
    for (size_t n = 0; n < BWI_COUNT(some); n++) {
        case_file file;
        read_case(some[n], &file);
        bw_model *model = load(fixture(some[n], ".keras"));
        check_ok(ctx, bw_save(model, output("weights", ".json")));
        for (size_t k = 0; k < BWI_COUNT(kinds); k++) {
            bw_model *other = load(output("weights", ".json"));
            check_ok(ctx, bw_save(model, output("weights", kinds[k])));
            check_ok(ctx, bw_load_weights(other, output("weights", kinds[k])));
            assert_int_equal(bw_model_hash(other), bw_model_hash(model));
            check_predictions(other, some[n], &file, 'p', 1e-5);
            /* Also over values that are there. */
            float zeros[4096] = {0};
            int64_t shape[BW_MAX_NDIM], count = 1;
            for (int ndim = bw_variable_shape(other, 0, shape); ndim > 0; ndim--) {
                count *= shape[ndim - 1];
            }
            check_ok(ctx, bw_variable_set(other, 0, zeros, (size_t)count));
            check_ok(ctx, bw_load_weights(other, output("weights", kinds[k])));
            assert_int_equal(bw_model_hash(other), bw_model_hash(model));
            assert_int_equal(unlink(output("weights", kinds[k])), 0);
            bw_model_free(other);
        }
        assert_int_equal(unlink(output("weights", ".json")), 0);
        bw_model_free(model);
        case_free(&file);
    }
}

/* The state that an optimizer has in an older file is the one it has in a new one. */
static void check_same_state(const bw_model *model, const bw_model *same)
{
    const bwi_training *older = model->training, *newer = same->training;
    const bwi_optimizer *a = &older->optimizer, *b = &newer->optimizer;
    assert_int_equal(older->loss_count, newer->loss_count);
    assert_ptr_equal(a->row, b->row);
    assert_int_equal(a->iterations, b->iterations);
    assert_true(a->iterations > 0);
    assert_true(a->learning_rate == b->learning_rate && a->momentum_product == b->momentum_product);
    for (int v = 0; v < model->graph.variable_count; v++) {
        const bwi_variable *variable = model->graph.variables[v];
        for (int s = 0; s < a->slot_count && variable->trainable; s++) {
            const bwi_slot *one = &a->slots[v * BWI_MAX_SLOTS + s], *other = &b->slots[v * BWI_MAX_SLOTS + s];
            assert_memory_equal(one->data, other->data, (size_t)variable->count * sizeof(float));
        }
    }
}

static void test_older_files(void **state)
{
    (void)state;
    static const char *const some[] = {"cnn", "shared", "text", "transfer", "long_names"};
    for (size_t n = 0; n < BWI_COUNT(some); n++) {
        case_file file;
        read_case(some[n], &file);
        bw_model *model = load(fixture(some[n], ".h5")), *same = load(fixture(some[n], ".keras"));
        check_predictions(model, some[n], &file, 'p', 1e-5);
        check_ok(ctx, bw_save(model, output(some[n], "_h5.keras")));
        bw_model *back = load(output(some[n], "_h5.keras"));
        check_predictions(back, some[n], &file, 'p', 1e-5);
        bw_model_free(back);
        drop(output(some[n], "_h5.keras"));
        check_same_state(model, same);
        bw_model_free(model);
        bw_model_free(same);
        case_free(&file);
    }
}

/* Keras 2 lists the values otherwise: text_v2.h5 as its OptimizerV2, all first moments before the second ones and no learning
 * rate; text_v2_new.h5 as its later optimizers. One value too few is left out with a warning. */
static void test_older_optimizers(void **state)
{
    (void)state;
    static const char *const older[] = {"text_v2", "text_v2_new"};
    bw_model *same = load(fixture("text", ".keras"));
    for (size_t n = 0; n < BWI_COUNT(older); n++) {
        bw_model *model = load(fixture(older[n], ".h5"));
        check_same_state(model, same);
        bw_model_free(model);
    }
    bw_model_free(same);
    warning[0] = 0;
    bw_model *model = load(fixture("text_v2_short", ".h5"));
    const bwi_training *training = model->training;
    assert_non_null(
        strstr(warning, "the 6 values of its optimizer are not those that Adam has here (7): training begins with a new"));
    assert_int_equal(training->optimizer.iterations, 0);
    bw_model_free(model);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_predictions), cmocka_unit_test(test_training_goes_on), cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_weights),     cmocka_unit_test(test_older_files),      cmocka_unit_test(test_older_optimizers),
    };
    return cmocka_run_group_tests(tests, open_all, close_all);
}
