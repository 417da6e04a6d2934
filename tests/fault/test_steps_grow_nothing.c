/* Ten thousand steps leave the process as large as it was after the first hundred: a week of training takes no more memory than a
 * minute. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/base.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif

enum { STEPS = 10000, FIRST = 100, SIDE = 6 };

typedef struct watch {
    bw_context *ctx;
    int64_t steps;
    size_t before, after;
} watch;

/* Asked on one worker's thread, while no step runs. */
static bool on_step(void *user, const bw_progress *progress)
{
    watch *w = user;
    (void)progress;
    w->steps++;
    if (w->steps == FIRST) {
        w->before = bwi_memory_resident(w->ctx);
    }
    if (w->steps == STEPS) {
        w->after = bwi_memory_resident(w->ctx);
    }
    return true;
}

static void run(const char *model, int workers)
{
    enum { PAGES = 16 << 12 }; /* what the system's own counting is late by */
    static float pixels[STEPS * SIDE * SIDE];
    static int32_t labels[STEPS];
    for (int i = 0; i < STEPS * SIDE * SIDE; i++) {
        pixels[i] = (float)(i % 17) / 17;
    }
    for (int i = 0; i < STEPS; i++) {
        labels[i] = i % 2;
    }
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.workers = workers;
    bw_context *ctx = bw_open(&options);
    bw_array x = {.data = pixels, .dtype = BW_F32, .ndim = 4, .shape = {STEPS, SIDE, SIDE, 1}};
    bw_array y = {.data = labels, .dtype = BW_I32, .ndim = 1, .shape = {STEPS}};
    watch w = {.ctx = ctx};
    bw_fit_options fit = BW_FIT_OPTIONS_DEFAULT;
    fit.batch = 1;
    fit.epochs = 1;
    fit.on_step = on_step;
    fit.user = &w;
    if (bw_fit(bw_model_parse(ctx, model), bw_shuffle(bw_from_arrays(ctx, &x, &y, NULL), 1), &fit, NULL) != BW_OK) {
        fail_msg("%s: %s", model, bw_message(ctx));
    }
    assert_int_equal(w.steps, STEPS);
    if (w.before == 0) {
        skip(); /* the system does not tell */
    }
    if (w.after > w.before + PAGES) {
        fail_msg("%s: %zu bytes after %d steps, %zu after %d", model, w.before, FIRST, w.after, STEPS);
    }
    bw_close(ctx);
}

static void test_steps(void **state)
{
    (void)state;
    for (int workers = 1; workers <= 2; workers++) {
        run("flatten dense(16,relu) batchnorm dropout(0.3) dense(2,softmax)", workers);
        run("conv2d(4,3,relu) maxpool2d(2) flatten dense(2,softmax)", workers);
    }
}

int main(void)
{
#ifdef SANITIZED
    print_message("skipped: a sanitizer keeps memory of its own\n");
    return 77;
#endif
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_steps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
