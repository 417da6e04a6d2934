/*
 * The plan is what a run takes: over many models, the measured peak (process, oneDNN's code and pages of files apart) is the plan's
 * within 3 percent, or within 2 MiB where that is more. Each model runs in a process of its own, made before any thread is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <batchwise.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif

#define MIB ((double)(1 << 20))

typedef struct model_case {
    const char *shape; /* of synth:images; "tokens": indices; "two": two inputs */
    const char *text;  /* "residual": made by calls */
    int64_t batch, samples;
    const char *optimizer;
    bool validation, restores;
    size_t memory;
} model_case;

#define CONV28 "conv2d(32,3,relu) maxpool2d(2) flatten dense(10,softmax)"
#define CONV2 "conv2d(32,3,relu) maxpool2d(2) conv2d(64,3,relu) maxpool2d(2) flatten dense(10,softmax)"
#define NORMAL2 "conv2d(16,3) batchnorm relu conv2d(32,3,strides=2) batchnorm relu global_avgpool2d dense(10,softmax)"
#define SEPARABLE                                                                                                             \
    "depthwise_conv2d(3,padding=same) conv2d(32,1,relu) maxpool2d(2) depthwise_conv2d(3) conv2d(64,1,relu) global_avgpool2d " \
    "dense(10,softmax)"
#define WIDE "flatten dense(2000,relu) dense(2000,relu) dropout(0.5) dense(10,softmax)"
#define SEQUENCE "conv1d(64,5,relu) maxpool1d(2) conv1d(64,5,relu) global_maxpool1d dense(10,softmax)"
#define VGG                                                                                                                   \
    "conv2d(16,3,relu,padding=same) conv2d(16,3,relu,padding=same) maxpool2d(2) conv2d(32,3,relu,padding=same) "              \
    "conv2d(32,3,relu,padding=same) maxpool2d(2) conv2d(64,3,relu,padding=same) conv2d(64,3,relu,padding=same) maxpool2d(2) " \
    "flatten dense(256,relu) dropout(0.5) dense(10,softmax)"
#define DECODER                                                                                                               \
    "conv2d(16,3,relu,strides=2,padding=same) upsampling2d(2) conv2d(16,3,relu,padding=same) layernorm avgpool2d(4) flatten " \
    "dense(10,softmax)"

static const model_case cases[] = {
    {"28x28x1", CONV28, 1, 20, "adam", false, false, 0},
    {"28x28x1", CONV28, 32, 200, "adam", true, false, 0},
    {"28x28x1", CONV28, 1000, 1000, "sgd", false, false, 0},
    {"64x64x3", CONV28, 32, 64, "adam", false, true, 0},
    {"128x128x3", CONV2, 16, 16, "adam", false, false, 0},
    {"128x128x3", CONV2, 64, 64, "adam", false, false, (size_t)24 << 20},
    {"32x32x3", CONV2, 100, 100, "rmsprop", true, false, 0},
    {"8x8x1", "flatten dense(16,relu) dense(10,softmax)", 32, 200, "sgd", false, false, 0},
    {"8x8x1", "flatten dense(100,relu) dense(10,softmax)", 200, 1000, "adam", true, true, 0},
    {"28x28x1", "flatten dense(1024,relu) dense(1024,relu) dense(10,softmax)", 32, 64, "adam", false, false, 0},
    {"28x28x1", "flatten dense(1024,relu) dense(1024,relu) dense(10,softmax)", 512, 512, "sgd(momentum=0.9)", false, true, 0},
    {"8x8x1", WIDE, 32, 64, "adam", false, false, 0},
    {"8x8x1", WIDE, 300, 300, "adamw", true, false, (size_t)80 << 20},
    {"32x32x3", NORMAL2, 8, 32, "adam", false, false, 0},
    {"32x32x3", NORMAL2, 256, 256, "adam", false, false, 0},
    {"32x32x3", NORMAL2, 256, 256, "adam", true, false, (size_t)32 << 20},
    {"32x32x3", NORMAL2, 1024, 1024, "adam", false, false, 0},
    {"16x16x1", "flatten dense(64) batchnorm relu dense(64) batchnorm relu dense(10,softmax)", 500, 1000, "adam", true, false, 0},
    {"32x32x3", SEPARABLE, 4, 16, "adam", false, false, 0},
    {"32x32x3", SEPARABLE, 128, 128, "adam", false, false, 0},
    {"128x16", SEQUENCE, 16, 64, "adam", false, false, 0},
    {"128x16", SEQUENCE, 500, 500, "adam", true, false, 0},
    {"32x32x3", VGG, 16, 64, "adam", false, false, 0},
    {"32x32x3", VGG, 256, 256, "nadam", false, true, 0},
    {"32x32x3", DECODER, 32, 64, "adam", false, false, 0},
    {"24x24x8", "conv2d(40,3,gelu) conv2d(24,5,silu) avgpool2d(2) flatten dense(10,softmax)", 20, 40, "adam", false, false, 0},
    {"20x20x3", "prelu conv2d(8,3,padding=same) leaky_relu gaussian_noise(0.1) global_maxpool2d dense(10,softmax)", 50, 100,
     "adagrad", false, false, 0},
    {"tokens", "embedding(20000,64) global_avgpool1d dense(10,softmax)", 32, 256, "adam", false, false, 0},
    {"tokens", "embedding(50000,16,lazy=true) flatten dense(64,relu) dense(10,softmax)", 256, 256, "adam", true, false, 0},
    {"two", "", 16, 64, "adam", false, false, 0},
    {"two", "", 200, 200, "sgd", true, false, 0},
    {"32x32x3", "residual", 16, 64, "adam", false, false, 0},
    {"32x32x3", "residual", 512, 512, "adam", false, false, 0},
    {"32x32x3", "residual", 512, 512, "adam", false, true, (size_t)48 << 20},
};

enum { CASES = sizeof cases / sizeof cases[0], TOKENS = 40, MOST_SAMPLES = 1024 };

static bw_node *block(bw_node *x, const char *layer)
{
    bw_node *y = bw_layer(bw_layer(bw_layer(x, layer), "batchnorm"), "relu");
    bw_node *both[] = {x, bw_layer(bw_layer(y, layer), "batchnorm")};
    return bw_layer(bw_merge("add", both, 2), "relu");
}

static bw_model *residual(bw_context *ctx)
{
    bw_model *model = bw_model_new(ctx);
    bw_node *x = bw_input(model, "", BW_F32, 3, (const int64_t[]){32, 32, 3});
    x = block(bw_layer(x, "conv2d(16,3,padding=same)"), "conv2d(16,3,padding=same,use_bias=false)");
    x = block(bw_layer(x, "conv2d(32,3,padding=same,strides=2)"), "conv2d(32,3,padding=same,use_bias=false)");
    return bw_output(bw_layer(bw_layer(x, "global_avgpool2d"), "dense(10,softmax)"), "") == BW_OK ? model : NULL;
}

static bw_model *two_inputs(bw_context *ctx)
{
    bw_model *model = bw_model_new(ctx);
    bw_node *picture = bw_input(model, "picture", BW_F32, 3, (const int64_t[]){16, 16, 3});
    bw_node *numbers = bw_input(model, "numbers", BW_F32, 1, (const int64_t[]){50});
    bw_node *both[] = {bw_layer(bw_layer(picture, "conv2d(24,3,relu)"), "flatten"), bw_layer(numbers, "dense(200,relu)")};
    return bw_output(bw_layer(bw_merge("concat", both, 2), "dense(10,softmax)"), "") == BW_OK ? model : NULL;
}

static int32_t labels[MOST_SAMPLES], tokens[MOST_SAMPLES * TOKENS];
static float pictures[MOST_SAMPLES * 16 * 16 * 3], numbers[MOST_SAMPLES * 50];

static bw_dataset *samples(bw_context *ctx, const model_case *c)
{
    for (int i = 0; i < MOST_SAMPLES; i++) {
        labels[i] = i % 10;
    }
    bw_array y = {.data = labels, .dtype = BW_I32, .ndim = 1, .shape = {c->samples}};
    if (strcmp(c->shape, "tokens") == 0) {
        for (int i = 0; i < MOST_SAMPLES * TOKENS; i++) {
            tokens[i] = (i * 7919) % 20000;
        }
        bw_array x = {.data = tokens, .dtype = BW_I32, .ndim = 2, .shape = {c->samples, TOKENS}};
        return bw_from_arrays(ctx, &x, &y, NULL);
    }
    if (strcmp(c->shape, "two") == 0) {
        memset(pictures, 0, sizeof pictures); /* now, and not in the run: zero pages are not there yet */
        memset(numbers, 0, sizeof numbers);
        const bw_field fields[] = {
            {"x_picture", {.data = pictures, .dtype = BW_F32, .ndim = 4, .shape = {c->samples, 16, 16, 3}}},
            {"x_numbers", {.data = numbers, .dtype = BW_F32, .ndim = 2, .shape = {c->samples, 50}}},
            {"y", y},
        };
        return bw_from_fields(ctx, fields, 3);
    }
    char path[128];
    snprintf(path, sizeof path, "synth:images?n=%lld&shape=%s&classes=10", (long long)c->samples, c->shape);
    return bw_read(ctx, path, NULL);
}

static bw_status run(bw_context *ctx, const model_case *c, bw_run_facts *facts)
{
    bw_dataset *data = samples(ctx, c);
    bw_model *model = strcmp(c->text, "residual") == 0 ? residual(ctx)
                      : strcmp(c->shape, "two") == 0   ? two_inputs(ctx)
                                                       : bw_model_parse(ctx, c->text);
    bw_status status = bw_compile(model, c->optimizer, NULL, "accuracy");
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.batch = c->batch;
    options.epochs = 2;
    options.memory = c->memory;
    options.validation = c->validation ? data : NULL;
    options.early_stopping = c->restores ? "monitor=loss,restore_best_weights=true" : NULL;
    bw_history *history = NULL;
    if (status == BW_OK) {
        status = bw_fit(model, data, &options, &history);
    }
    if (status != BW_OK) {
        print_error("%s: %s\n", c->text, bw_message(ctx));
        return status;
    }
    *facts = bw_history_facts(history);
    return BW_OK;
}

static bool measure(const model_case *c, bw_run_facts *facts)
{
    int pipe_ends[2];
    if (pipe(pipe_ends) != 0) {
        return false;
    }
    pid_t child = fork();
    if (child == 0) {
        bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
        options.workers = 2;
        bw_context *ctx = bw_open(&options);
        bw_run_facts own;
        bool ok = run(ctx, c, &own) == BW_OK && write(pipe_ends[1], &own, sizeof own) == (ssize_t)sizeof own;
        bw_close(ctx);
        _exit(ok ? 0 : 1);
    }
    close(pipe_ends[1]);
    bool got = read(pipe_ends[0], facts, sizeof *facts) == (ssize_t)sizeof *facts;
    close(pipe_ends[0]);
    int status = 1;
    return child > 0 && waitpid(child, &status, 0) == child && got && status == 0;
}

static void test_plan_is_what_is_taken(void **state)
{
    (void)state;
#ifdef SANITIZED
    skip(); /* a sanitizer's own memory is resident too */
#endif
    int wrong = 0;
    print_message("planned MiB, measured, apart: process, code, files\n");
    for (int k = 0; k < CASES; k++) {
        const model_case *c = &cases[k];
        bw_run_facts f;
        assert_true(measure(c, &f));
        if (f.process_bytes == 0) {
            print_message("the system does not tell a process its resident size\n");
            skip();
        }
        double planned = (double)f.planned_bytes, apart = (double)f.peak_bytes - planned;
        double allowed = planned * 0.03 > 2 * MIB ? planned * 0.03 : 2 * MIB;
        bool right = apart <= allowed && -apart <= allowed && (!c->memory || f.planned_bytes <= c->memory);
        print_message("%8.2f %8.2f %+7.2f  %6.2f %5.2f %5.2f  batch %lld, tile %lld: %.70s%s\n", planned / MIB,
                      (double)f.peak_bytes / MIB, apart / MIB, (double)f.process_bytes / MIB, (double)f.code_bytes / MIB,
                      (double)f.mapped_bytes / MIB, (long long)c->batch, (long long)f.tile, *c->text ? c->text : "two inputs",
                      right ? "" : "  <-- not as planned");
        wrong += !right;
    }
    assert_int_equal(wrong, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_plan_is_what_is_taken)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
