/*
 * A polite library: after training, evaluating, saving and loading the process is as before. Locale, signal handlers and mask,
 * working folder, file mode mask, floating-point state, open files, threads and memory stay, and nothing is written to the standard
 * streams.
 */
#include "support/check.h"
#include "support/folder.h"

#include <dirent.h>
#include <fenv.h>
#include <locale.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { SAMPLES = 64, SIDE = 6, SIGNALS = 64, TURNS = 12, REPEATED = 4 };

static float x[SAMPLES * SIDE * SIDE];
static int32_t y[SAMPLES];

/* Everything that a program does with the library, from opening a context to closing it. */
static void use(const char *text)
{
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.workers = 3;
    bw_context *ctx = bw_open(&options);
    bw_array inputs = {.data = x, .dtype = BW_F32, .ndim = 4, .shape = {SAMPLES, SIDE, SIDE, 1}};
    bw_array targets = {.data = y, .dtype = BW_I32, .ndim = 1, .shape = {SAMPLES}};
    bw_dataset *data = bw_shuffle(bw_from_arrays(ctx, &inputs, &targets, NULL), 1);
    bw_model *model = bw_model_parse(ctx, text);
    bw_fit_options fit = BW_FIT_OPTIONS_DEFAULT;
    fit.batch = 8;
    fit.validation_split = 0.25;
    char name[32];
    static int times;
    snprintf(name, sizeof name, "checkpoints-%d", times++);
    fit.checkpoint_dir = inside(name);
    check_ok(ctx, bw_fit(model, data, &fit, NULL));
    bw_history *result = NULL;
    check_ok(ctx, bw_evaluate(model, data, &result));
    check_ok(ctx, bw_save(model, inside("model.keras")));
    assert_non_null(bw_load(ctx, inside("model.keras")));
    assert_null(bw_load(ctx, inside("missing.keras"))); /* a failure, too */
    bw_close(ctx);
}

static int entries(const char *path)
{
    DIR *folder_of = opendir(path);
    int count = 0;
    assert_non_null(folder_of);
    while (readdir(folder_of)) {
        count++;
    }
    closedir(folder_of);
    return count;
}

static long resident_kilobytes(void)
{
    long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    assert_non_null(file);
    assert_int_equal(fscanf(file, "%*d %ld", &pages), 1);
    fclose(file);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

/* A thread that was told to end may need a moment until the system no longer lists it. */
static int threads_when_settled(int expected)
{
    int count = entries("/proc/self/task");
    for (int k = 0; k < 200 && count > expected; k++) {
        usleep(10000);
        count = entries("/proc/self/task");
    }
    return count;
}

typedef struct host {
    char *locale, folder[4096];
    mode_t mask;
    sigset_t blocked;
    struct sigaction handlers[SIGNALS + 1];
    int rounding, files, threads;
} host;

static mode_t mask_of(void)
{
    mode_t mask = umask(0);
    umask(mask);
    return mask;
}

static void look(host *h)
{
    h->locale = strdup(setlocale(LC_ALL, NULL));
    assert_non_null(getcwd(h->folder, sizeof h->folder));
    h->mask = mask_of();
    pthread_sigmask(SIG_BLOCK, NULL, &h->blocked);
    for (int s = 1; s <= SIGNALS; s++) {
        (void)sigaction(s, NULL, &h->handlers[s]);
    }
    h->rounding = fegetround();
    h->files = entries("/proc/self/fd");
    h->threads = entries("/proc/self/task");
}

static void compare(const host *before)
{
    host *now = calloc(1, sizeof *now);
    assert_non_null(now);
    look(now);
    assert_string_equal(now->locale, before->locale);
    assert_string_equal(now->folder, before->folder);
    assert_int_equal(now->mask, before->mask);
    assert_int_equal(now->rounding, before->rounding);
    for (int s = 1; s <= SIGNALS; s++) {
        if (now->handlers[s].sa_handler != before->handlers[s].sa_handler ||
            now->handlers[s].sa_flags != before->handlers[s].sa_flags) {
            fail_msg("the handler of signal %d has changed", s);
        }
        assert_int_equal(sigismember(&now->blocked, s), sigismember(&before->blocked, s));
    }
    assert_int_equal(now->files, before->files);
    assert_int_equal(threads_when_settled(before->threads), before->threads);
    free(now->locale);
    free(now);
}

static void on_signal(int number)
{
    (void)number;
}

/* The streams go to a file meanwhile, which stays empty. */
static int redirect(int to, FILE *stream)
{
    fflush(stream);
    int kept = dup(fileno(stream));
    assert_true(kept >= 0 && dup2(to, fileno(stream)) >= 0);
    return kept;
}

static void restore(int kept, FILE *stream)
{
    fflush(stream);
    assert_true(dup2(kept, fileno(stream)) >= 0);
    close(kept);
}

static const char *const models[] = {"conv2d(4,3,relu) maxpool2d(2) flatten dense(2,softmax)",
                                     "flatten dense(16,relu) batchnorm dropout(0.3) dense(2,softmax)"};

static void test_host_is_as_before(void **state)
{
    (void)state;
    for (int i = 0; i < SAMPLES * SIDE * SIDE; i++) {
        x[i] = (float)(i % 13) / 13;
    }
    for (int i = 0; i < SAMPLES; i++) {
        y[i] = i % 2;
    }
    (void)setlocale(LC_ALL, "C.UTF-8");
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGUSR1, &action, NULL);
    sigaction(SIGPIPE, &action, NULL);
    /* A signal that the library handles while files are mapped; cmocka does, too. */
    struct sigaction none = {.sa_handler = SIG_DFL};
    sigaction(SIGBUS, &none, NULL);
    sigset_t blocked;
    sigemptyset(&blocked);
    sigaddset(&blocked, SIGUSR2);
    pthread_sigmask(SIG_BLOCK, &blocked, NULL);
    mode_t mask = umask(027);
    host *first = calloc(1, sizeof *first), *before = calloc(1, sizeof *before);
    assert_true(first && before);
    look(first);
    for (int i = 0; i < 2; i++) { /* libraries below open what they keep */
        use(models[i]);
    }
    assert_int_equal(fesetround(FE_UPWARD), 0);
    look(before);
    /* Handlers must be as they were before the first use, but for that of faults, which the table checked installs. */
    first->handlers[SIGSEGV] = before->handlers[SIGSEGV];
    memcpy(before->handlers, first->handlers, sizeof before->handlers);
    FILE *said = tmpfile();
    assert_non_null(said);
    int out = redirect(fileno(said), stdout), err = redirect(fileno(said), stderr);
    for (int i = 0; i < REPEATED; i++) {
        use(models[i % 2]);
    }
    restore(out, stdout);
    restore(err, stderr);
    struct stat facts;
    assert_int_equal(fstat(fileno(said), &facts), 0);
    assert_int_equal(facts.st_size, 0);
    fclose(said);
    compare(before);
    fesetround(FE_TONEAREST);
    umask(mask);
    free(first->locale);
    free(first);
    free(before->locale);
    free(before);
}

/* Contexts come and go: the process does not grow. What the C library keeps for later is reached after some of them. */
static void test_growth(void **state)
{
    (void)state;
    for (int i = 0; i < TURNS; i++) {
        use(models[i % 2]);
    }
    long before = resident_kilobytes();
    for (int i = 0; i < TURNS; i++) {
        use(models[i % 2]);
    }
    long after = resident_kilobytes();
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) /* which keep what was released */
    if (after - before > 1024) {
        fail_msg("%d contexts: %ld KiB became %ld", TURNS, before, after);
    }
#else
    (void)(before + after);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test_setup_teardown(test_host_is_as_before, make_folder, remove_folder),
                                       cmocka_unit_test_setup_teardown(test_growth, make_folder, remove_folder)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
