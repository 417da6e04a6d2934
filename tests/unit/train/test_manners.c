/* The caller's rounding mode, floating-point flags and OpenMP setting: as they were, also in callbacks; bits do not depend on
 * them. */
#include "support/planned.h"

#include <fenv.h>
#if defined(__SSE__)
#include <xmmintrin.h>
#endif

/* Of the runtime that is linked; omp.h belongs to a compiler. */
#ifndef BW_WITHOUT_ONEDNN
extern int omp_get_max_threads(void);
extern void omp_set_num_threads(int threads);
#else
static int omp_get_max_threads(void)
{
    return 1;
}

static void omp_set_num_threads(int threads)
{
    (void)threads;
}
#endif

static const char *const texts[] = {"flatten dense(60,relu) dense(10,softmax)",
                                    "conv2d(8,3) batchnorm relu maxpool2d(2) flatten dense(10,softmax)"};

static unsigned controls(void)
{
#if defined(__SSE__)
    return _mm_getcsr() & ~0x3Fu; /* without what has happened so far */
#else
    return 0;
#endif
}

typedef struct seen {
    int rounding, threads, calls;
    unsigned controls;
    bool differs;
} seen;

static bool look(void *user, const bw_progress *progress)
{
    seen *s = user;
    (void)progress;
    s->calls++;
    s->differs |= fegetround() != s->rounding || omp_get_max_threads() != s->threads || controls() != s->controls;
    return true;
}

static uint64_t train_under(const char *text, int rounding, int threads)
{
    planned p;
    planned_model(&p, text, 40, 8, 8, 2, 2);
    int threads_before = omp_get_max_threads();
    omp_set_num_threads(threads);
    assert_int_equal(fesetround(rounding), 0);
    seen s = {.rounding = rounding, .threads = threads, .controls = controls()};
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.batch = 9;
    options.epochs = 2;
    options.validation_split = 0.25;
    options.on_step = options.on_epoch = look;
    options.user = &s;
    bw_status status = bw_fit(p.model, p.data, &options, NULL);
    look(&s, NULL);
    float y[400];
    bw_status predicted = status == BW_OK ? bw_predict(p.model, p.data, y, 400) : status;
    look(&s, NULL);
    /* A failing call, too. */
    p.x[5] = 1.0F / 0.0F;
    bw_status failed = bw_fit(p.model, p.data, &options, NULL);
    look(&s, NULL);
    fesetround(FE_TONEAREST);
    omp_set_num_threads(threads_before);
    check_ok(p.ctx, status);
    check_ok(p.ctx, predicted);
    assert_int_equal(failed, BW_INVALID_ARGUMENT);
    assert_false(s.differs);
    assert_int_equal(s.calls, 2 * 4 + 2 + 3); /* ceil(30 / 9) steps an epoch */
    uint64_t hash = bw_model_hash(p.model);
    planned_close(&p);
    return hash;
}

static void test_settings_are_restored(void **state)
{
    (void)state;
    static const int roundings[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    for (size_t m = 0; m < BWI_COUNT(texts); m++) {
        for (size_t k = 0; k < BWI_COUNT(roundings); k++) {
            train_under(texts[m], roundings[k], 1 + (int)k);
        }
    }
}

static void test_bits_do_not_depend_on_them(void **state)
{
    (void)state;
    static const int roundings[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    for (size_t m = 0; m < BWI_COUNT(texts); m++) {
        uint64_t expected = train_under(texts[m], FE_TONEAREST, 1);
        for (size_t k = 0; k < BWI_COUNT(roundings); k++) {
            assert_true(train_under(texts[m], roundings[k], 3) == expected);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_settings_are_restored),
        cmocka_unit_test(test_bits_do_not_depend_on_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
