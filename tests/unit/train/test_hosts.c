/*
 * What a host program may do to the library: cancel at any sample of a stream, give it a source that stalls, run in a locale with
 * decimal commas, fork after threads were started.
 */
#include "support/check.h"

#include "base/base.h"

#include <locale.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { SAMPLES = 64, WIDTH = 4 };

static float x[SAMPLES * WIDTH];
static int32_t y[SAMPLES];

static bw_dataset *samples(bw_context *ctx)
{
    for (int i = 0; i < SAMPLES * WIDTH; i++) {
        x[i] = (float)(i % 13) / 13;
    }
    for (int i = 0; i < SAMPLES; i++) {
        y[i] = i % 2;
    }
    bw_array inputs = {.data = x, .dtype = BW_F32, .ndim = 2, .shape = {SAMPLES, WIDTH}};
    bw_array targets = {.data = y, .dtype = BW_I32, .ndim = 1, .shape = {SAMPLES}};
    return bw_from_arrays(ctx, &inputs, &targets, NULL);
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* ---- A stream that is cancelled ---- */

typedef struct stream {
    bw_context *ctx;
    int at, given;
} stream;

static int give(void *user, bw_sample *sample, void *const *values)
{
    stream *s = user;
    if (s->given == SAMPLES) {
        return 0;
    }
    for (int i = 0; i < WIDTH; i++) {
        ((float *)values[0])[i] = bw_random_uniform(&sample->random);
    }
    *(int32_t *)values[1] = s->given % 2;
    if (s->given++ == s->at) {
        bw_cancel(s->ctx);
    }
    return 1;
}

static void test_cancel_in_a_stream(void **state)
{
    (void)state;
    for (int k = 0; k < SAMPLES; k++) {
        stream s = {.ctx = bw_open(NULL), .at = k};
        bw_field fields[2] = {{"x", {.dtype = BW_F32, .ndim = 2, .shape = {1, WIDTH}}},
                              {"y", {.dtype = BW_I32, .ndim = 1, .shape = {1}}}};
        bw_dataset *data = bw_from_generator(s.ctx, fields, 2, give, &s);
        bw_model *model = bw_model_parse(s.ctx, "dense(2,softmax)");
        bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
        options.batch = 12; /* the last batch is not full */
        bw_status status = bw_fit(model, data, &options, NULL);
        if (status != BW_CANCELLED) {
            fail_msg("cancelled at sample %d: %s: %s", k, bw_status_name(status), bw_message(s.ctx));
        }
        assert_int_equal(s.given, k + 1);
        check_ok(s.ctx, bw_fit(model, data, &options, NULL)); /* the stream goes on where it was */
        bw_close(s.ctx);
    }
}

/* ---- A source that stalls ---- */

static atomic_bool released;

/* Until the sample is not wanted any more, or, `user`, without asking. */
static bool stall(void *user, bw_sample *sample, const void *const *from, void *const *to)
{
    (void)from, (void)to;
    while (sample->number == 40 && !atomic_load(&released) && (user || !bw_sample_cancelled(sample))) {
        usleep(1000);
    }
    return true;
}

static void check_stall(bool deaf)
{
    bw_context *ctx = bw_open(NULL);
    bw_prefetch_options options = BW_PREFETCH_OPTIONS_DEFAULT;
    options.seconds = 0.2;
    atomic_store(&released, false);
    bw_dataset *data = bw_prefetch(bw_map(samples(ctx), stall, deaf ? &released : NULL, NULL), &options);
    double begin = seconds();
    bw_status status = bw_fit(bw_model_parse(ctx, "dense(2,softmax)"), data, NULL, NULL);
    check_fails(ctx, status, BW_RESOURCE_EXHAUSTED, "the source stalls: no sample for|sample 40");
    assert_true(seconds() - begin < 30);
    /* The context goes on without that dataset. */
    check_ok(ctx, bw_fit(bw_model_parse(ctx, "dense(2,softmax)"), samples(ctx), NULL, NULL));
    atomic_store(&released, deaf); /* only bw_close waits for a function that does not listen */
    bw_close(ctx);
    atomic_store(&released, true);
}

static void test_stall(void **state)
{
    (void)state;
    check_stall(false);
    check_stall(true);
}

/* ---- A locale with decimal commas ---- */

static bool choose_locale(void)
{
    char folder[] = "/tmp/batchwise-locale-XXXXXX", command[200];
    if (setlocale(LC_ALL, "de_DE.UTF-8")) {
        return true;
    }
    if (!mkdtemp(folder)) {
        return false;
    }
    snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 >/dev/null 2>&1", folder);
    setenv("LOCPATH", folder, 1);
    bool made = system(command) == 0 && setlocale(LC_ALL, "de_DE.UTF-8");
    snprintf(command, sizeof command, "rm -r %s", folder);
    return system(command) == 0 && made;
}

static void check_expression(const char *text)
{
    bw_context *ctx = bw_open(NULL);
    bw_model *model = bw_model_parse(ctx, text);
    check_ok(ctx, bw_build(model, 0, NULL, 1));
    const char *written = bw_model_expression(model);
    assert_non_null(written);
    assert_string_equal(written, text);
    bw_close(ctx);
}

/* The line of an epoch, "1/1 - 0s - 1ms/step - loss: 0.2500", has no comma. */
static void check_progress(void)
{
    bw_context *ctx = bw_open(NULL);
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    char line[400] = "", *found = NULL;
    options.progress = tmpfile();
    bw_history *history;
    bw_model *model = bw_model_parse(ctx, "dense(2,softmax)");
    check_ok(ctx, bw_compile(model, "sgd(learning_rate=0.125)", NULL, NULL));
    assert_true(fabs(bw_learning_rate(model) - 0.125) == 0);
    check_ok(ctx, bw_fit(model, samples(ctx), &options, &history));
    rewind(options.progress);
    while (!found && fgets(line, sizeof line, options.progress)) {
        found = strstr(line, "loss: ");
    }
    assert_non_null(found);
    assert_null(strchr(line, ','));
    setlocale(LC_ALL, "C");
    assert_true(fabs(strtod(found + 6, NULL) - bw_history_last(history, "loss")) < 1e-4);
    fclose(options.progress);
    bw_close(ctx);
}

static void test_locale(void **state)
{
    (void)state;
    char text[16];
    if (!choose_locale()) {
        skip();
    }
    snprintf(text, sizeof text, "%.1f", 1.5);
    assert_string_equal(text, "1,5");
    check_expression("input(6) dense(8) dropout(0.25) dense(2,softmax)");
    check_expression("input(6) dense(8) leaky_relu(0.125) gaussian_noise(0.5)");
    bw_context *ctx = bw_open(NULL);
    bw_model *model = bw_model_parse(ctx, "dense(2,softmax)");
    check_fails(ctx, bw_compile(model, "adam(lr=-1.5)", NULL, NULL), BW_INVALID_ARGUMENT, "learning_rate: expected|-1.5");
    bw_close(ctx);
    check_progress();
}

/* ---- A child of fork ---- */

static int wait_for(pid_t child)
{
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

static bool keep(void *user, bw_sample *sample, const void *const *from, void *const *to)
{
    (void)user, (void)sample, (void)from, (void)to;
    return true;
}

/* Threads stay with the parent: of the pool, and of samples that are made ahead. */
static void test_fork(void **state)
{
    (void)state;
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.workers = 3;
    bw_context *ctx = bw_open(&options);
    bw_dataset *data = bw_map(samples(ctx), keep, NULL, NULL);
    bw_model *model = bw_model_parse(ctx, "dense(16,relu) dense(2,softmax)");
    bw_history *result;
    check_ok(ctx, bw_fit(model, data, NULL, NULL));
    check_ok(ctx, bw_evaluate(model, data, &result));
    double loss = bw_history_last(result, "loss");
    for (int way = 0; way < 3; way++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(60);
            int code = 0;
            if (way == 0) {
                code = bw_evaluate(model, data, &result) != BW_OK || bw_history_last(result, "loss") != loss;
            } else if (way == 1) {
                code = bw_fit(model, data, NULL, NULL) != BW_OK;
            }
            bw_close(ctx);
            _exit(code);
        }
        assert_int_equal(wait_for(child), 0);
    }
    check_ok(ctx, bw_fit(model, data, NULL, NULL));
    bw_close(ctx);
}

typedef struct holding {
    atomic_bool held, forked;
} holding;

/* The thread ends after the fork, since a thread that ends holds locks of sanitizers for a moment. */
static void *hold(void *user)
{
    holding *h = user;
    bwi_moment_begin();
    atomic_store(&h->held, true);
    usleep(200000);
    bwi_moment_end();
    while (!atomic_load(&h->forked)) {
        usleep(1000);
    }
    return NULL;
}

/* A process that forks while another of its threads holds the library's lock: the child finds it free, and maps files. */
static void test_fork_in_a_moment(void **state)
{
    (void)state;
    holding h = {.held = false};
    pthread_t thread;
    assert_int_equal(pthread_create(&thread, NULL, hold, &h), 0);
    while (!atomic_load(&h.held)) {
        usleep(100);
    }
    pid_t child = fork();
    if (child == 0) {
        alarm(30);
        bw_context *ctx = bw_open(NULL);
        bw_dataset *data = bw_read(ctx, BW_DATA "/digits.npz", NULL);
        int code = !data || bw_fit(bw_model_parse(ctx, "flatten dense(10,softmax)"), data, NULL, NULL) != BW_OK;
        bw_close(ctx);
        _exit(code);
    }
    atomic_store(&h.forked, true);
    assert_int_equal(wait_for(child), 0);
    pthread_join(thread, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cancel_in_a_stream), cmocka_unit_test(test_stall),  cmocka_unit_test(test_fork),
        cmocka_unit_test(test_fork_in_a_moment),   cmocka_unit_test(test_locale),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
