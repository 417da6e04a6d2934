/*
 * Files are written in pieces: saving a model takes no more memory than the plan of a run with `saves` has for it, and little,
 * whatever the model and the kind of file are.
 */
#include "support/check.h"
#include "support/folder.h"

#include "base/internal.h"

#include <stdio.h>
#include <unistd.h>

/* An allocator that knows the most bytes that were taken at once. */
static size_t taken, most;

static void *take(void *user, size_t bytes, size_t alignment)
{
    void *memory = bwi_system_allocator.allocate(user, bytes, alignment);
    taken += memory ? bytes : 0;
    most = taken > most ? taken : most;
    return memory;
}

static void give(void *user, void *memory, size_t bytes)
{
    taken -= bytes;
    bwi_system_allocator.release(user, memory, bytes);
}

static bw_context *ctx;

static int open_all(void **state)
{
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.allocator = &(bw_allocator){.allocate = take, .release = give};
    options.workers = 1;
    ctx = bw_open(&options);
    return ctx ? make_folder(state) : -1;
}

static int close_all(void **state)
{
    bw_close(ctx);
    return remove_empty_folder(state);
}

static const char *const extensions[] = {".keras", ".weights.h5", ".safetensors", ".onnx", ".c", ".json"};

/* The bytes that saving takes at most, over all kinds of files. */
static size_t saving(bw_model *model)
{
    size_t largest = 0;
    for (size_t i = 0; i < sizeof extensions / sizeof extensions[0]; i++) {
        char name[32];
        snprintf(name, sizeof name, "model%s", extensions[i]);
        size_t before = most = taken;
        check_ok(ctx, bw_save(model, inside(name)));
        assert_true(taken == before);
        largest = most - before > largest ? most - before : largest;
        unlink(inside(name));
    }
    return largest;
}

typedef struct watched {
    bw_model *model;
    size_t bytes;
} watched;

static bool save(void *user, const bw_progress *progress)
{
    watched *w = user;
    (void)progress;
    w->bytes = saving(w->model);
    return true;
}

/* What a run plans, with saving in each epoch or without. */
static size_t planned(const char *text, const char *data, const char *optimizer, bool saves, size_t *saved)
{
    bw_model *model = bw_model_parse(ctx, text);
    bw_dataset *dataset = bw_read(ctx, data, NULL);
    bw_history *history = NULL;
    watched w = {.model = model};
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.epochs = 1;
    options.saves = saves;
    options.on_epoch = saves ? save : NULL;
    options.user = &w;
    check_ok(ctx, bw_compile(model, optimizer, "sparse_categorical_crossentropy", "accuracy"));
    check_ok(ctx, bw_fit(model, dataset, &options, &history));
    size_t bytes = bw_history_facts(history).planned_bytes;
    *saved = w.bytes;
    bw_history_free(history);
    bw_dataset_free(dataset);
    bw_model_free(model);
    return bytes;
}

static const struct {
    const char *model, *data, *optimizer;
} cases[] = {
    {"dense(2,softmax)", "synth:images?n=8&shape=2&classes=2", "sgd"},
    {"dense(8,relu) dense(2,softmax)", "synth:images?n=32&shape=4&classes=2", "adam"},
    {"dense(1000,relu) dense(1000,relu) dense(10,softmax)", "synth:images?n=32&shape=500&classes=10", "adam"},
    {"conv2d(128,3,relu) batchnorm conv2d(256,3,relu) maxpool2d(2) flatten dense(10,softmax)",
     "synth:images?n=8&shape=8x8x3&classes=10", "adam(use_ema=true)"},
    {"normalization conv2d(4,3) relu batchnorm conv2d(4,3) relu batchnorm conv2d(4,3) relu batchnorm conv2d(4,3) relu batchnorm "
     "conv2d(4,3) relu batchnorm conv2d(4,3) relu batchnorm dropout(0.5) global_avgpool2d dense(8) prelu layernorm "
     "dense(2,softmax)",
     "synth:images?n=8&shape=20x20x1&classes=2", "adam"},
};

static void test_saving(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t saved, none;
        size_t with = planned(cases[i].model, cases[i].data, cases[i].optimizer, true, &saved);
        size_t without = planned(cases[i].model, cases[i].data, cases[i].optimizer, false, &none);
        if (saved > with - without || saved > (size_t)300 << 10) {
            fail_msg("%s: saving takes %zu bytes, %zu are planned", cases[i].model, saved, with - without);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_saving)};
    return cmocka_run_group_tests(tests, open_all, close_all);
}
