/*
 * After the first step of a training nothing is allocated any more, whatever the batch. All of the process's allocations
 * and mappings are counted, by defining malloc and its kin here; each is put down to the module that called.
 *
 * oneDNN's execution makes a small table of arguments for itself, and its interface offers no way around it. It must stay
 * small and be gone before the step ends; everything else allocates nothing at all.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#ifdef SANITIZED

int main(void)
{
    print_message("skipped: a sanitizer has its own malloc\n");
    return 77;
}

#else

#include "data/data.h"

#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- Counting ---- */

enum { RECORDS = 1 << 16 };

typedef struct record {
    const void *caller;
    size_t bytes;
    bool mapping;
} record;

static atomic_bool counting;
static atomic_int made;          /* while counting */
static atomic_llong outstanding; /* bytes taken less bytes given back, while counting */
static record records[RECORDS];

static void note(const void *caller, size_t bytes, bool mapping)
{
    if (!atomic_load(&counting)) {
        return;
    }
    int at = atomic_fetch_add(&made, 1);
    if (at < RECORDS) {
        records[at] = (record){caller, bytes, mapping};
    }
}

static void *taken(void *memory, const void *caller, size_t bytes)
{
    note(caller, bytes, false);
    if (memory && atomic_load(&counting)) {
        atomic_fetch_add(&outstanding, (long long)malloc_usable_size(memory));
    }
    return memory;
}

static void given_back(void *memory)
{
    if (memory && atomic_load(&counting)) {
        atomic_fetch_sub(&outstanding, (long long)malloc_usable_size(memory));
    }
}

/* The C library's own, under its other names. */
extern void *__libc_malloc(size_t bytes);
extern void *__libc_calloc(size_t count, size_t bytes);
extern void *__libc_realloc(void *memory, size_t bytes);
extern void *__libc_memalign(size_t alignment, size_t bytes);
extern void __libc_free(void *memory);

#define CALLER __builtin_return_address(0)

void *malloc(size_t bytes)
{
    return taken(__libc_malloc(bytes), CALLER, bytes);
}

void *calloc(size_t count, size_t bytes)
{
    return taken(__libc_calloc(count, bytes), CALLER, count * bytes);
}

void *realloc(void *memory, size_t bytes)
{
    given_back(memory);
    return taken(__libc_realloc(memory, bytes), CALLER, bytes);
}

void *memalign(size_t alignment, size_t bytes)
{
    return taken(__libc_memalign(alignment, bytes), CALLER, bytes);
}

void *aligned_alloc(size_t alignment, size_t bytes)
{
    return taken(__libc_memalign(alignment, bytes), CALLER, bytes);
}

int posix_memalign(void **memory, size_t alignment, size_t bytes)
{
    *memory = taken(__libc_memalign(alignment, bytes), CALLER, bytes);
    return *memory ? 0 : ENOMEM;
}

void free(void *memory)
{
    given_back(memory);
    __libc_free(memory);
}

void *mmap(void *address, size_t bytes, int protection, int flags, int file, off_t offset)
{
    note(CALLER, bytes, true);
    return (void *)syscall(SYS_mmap, address, bytes, protection, flags, file, offset); // NOLINT
}

static const char *module_of(const void *caller)
{
    Dl_info info;
    if (!dladdr(caller, &info) || !info.dli_fname) {
        return "?";
    }
    const char *slash = strrchr(info.dli_fname, '/');
    return slash ? slash + 1 : info.dli_fname;
}

static bool begins(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

/* oneDNN and what it computes with. */
static bool is_dependency(const void *caller)
{
    const char *module = module_of(caller);
    return begins(module, "libdnnl") || begins(module, "libgomp") || begins(module, "libstdc++");
}

static void test_counts_at_all(void **state)
{
    (void)state;
    atomic_store(&made, 0);
    atomic_store(&outstanding, 0);
    atomic_store(&counting, true);
    void *volatile a = malloc(100);
    void *volatile b = calloc(10, 10);
    b = realloc(b, 1000);
    void *volatile c = aligned_alloc(64, 128);
    void *d = NULL;
    int status = posix_memalign(&d, 64, 128);
    long long held = atomic_load(&outstanding);
    char *volatile text = strdup("a text"); /* from within the C library */
    free(a);
    free(b);
    free(c);
    free(d);
    free(text);
    long long left = atomic_load(&outstanding);
    void *volatile pages = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    atomic_store(&counting, false);
    munmap(pages, 4096);
    assert_int_equal(status, 0);
    assert_int_equal(atomic_load(&made), 7);
    assert_true(held >= 100 + 1000 + 128 + 128);
    assert_int_equal(left, 0);
    assert_true(records[6].mapping);
    for (int k = 0; k < 7; k++) {
        assert_false(is_dependency(records[k].caller));
    }
}

/* ---- What a training does between its first step and its last ---- */

typedef struct watch {
    int steps;
    bool drifts; /* some step held more or less than the one before */
    long long held;
} watch;

static void begin(watch *w)
{
    if (w->steps++ == 0) {
        atomic_store(&made, 0);
        atomic_store(&outstanding, 0);
        w->held = 0;
        atomic_store(&counting, true);
        return;
    }
    long long now = atomic_load(&outstanding);
    w->drifts |= now != w->held;
    w->held = now;
}

static bool on_step(void *user, const bw_progress *progress)
{
    (void)progress;
    begin(user);
    return true;
}

/* Ends the counting with the last epoch: closing is no step. */
static bool on_epoch(void *user, const bw_progress *progress)
{
    (void)user;
    if (progress->epoch + 1 == progress->epochs) {
        atomic_store(&counting, false);
    }
    return true;
}

static void check(const watch *w, const char *what, bool convolution)
{
    bool plain = getenv("BATCHWISE_ISA") && strcmp(getenv("BATCHWISE_ISA"), "portable") == 0;
    int count = atomic_load(&made), own = 0, dependency = 0;
    size_t largest = 0;
    assert_true(count <= RECORDS);
    for (int k = 0; k < count; k++) {
        bool theirs = is_dependency(records[k].caller);
        if (!theirs || !convolution || (records[k].mapping && !plain)) {
            print_error("%s: %s of %zu bytes by %s (%p)\n", what, records[k].mapping ? "a mapping" : "an allocation",
                        records[k].bytes, module_of(records[k].caller), records[k].caller);
            own++;
        }
        dependency += theirs;
        largest = theirs && records[k].bytes > largest ? records[k].bytes : largest;
    }
    assert_int_equal(own, 0);
    assert_true(w->steps > 2);
    assert_false(w->drifts);
    assert_true(plain || largest < 1024);
    if (dependency) {
        print_message("%s: oneDNN made %.1f allocations a step for itself, of at most %zu bytes\n", what,
                      (double)dependency / (w->steps - 1), largest);
    }
}

/* ---- Models and data ---- */

typedef struct model_case {
    const char *text;
    bool convolution;
} model_case;

static const model_case models[] = {
    {"flatten dense(16,relu) dense(10,softmax)", false},
    {"flatten dense(500,relu) dense(10,softmax)", false}, /* enough to wake a second worker */
    {"maxpool2d(2) flatten dense(10,softmax)", false},
    {"flatten dense(16) batchnorm relu dense(10,softmax)", false},
    {"conv2d(8,3,relu) maxpool2d(2) flatten dense(10,softmax)", true},
    {"conv2d(8,3,relu) conv2d(8,3) batchnorm relu flatten dense(10,softmax)", true},
};

enum { SAMPLES = 65, PIXELS = 64 };

static float pixels[SAMPLES * PIXELS], weights[SAMPLES];
static int32_t labels[SAMPLES];

static bw_dataset *samples(bw_context *ctx)
{
    for (int i = 0; i < SAMPLES * PIXELS; i++) {
        pixels[i] = (float)((i * 7919) % 1000) / 1000;
    }
    for (int i = 0; i < SAMPLES; i++) {
        labels[i] = i % 10;
        weights[i] = (float)(i % 3);
    }
    bw_array x = {.data = pixels, .dtype = BW_F32, .ndim = 4, .shape = {SAMPLES, 8, 8, 1}};
    bw_array y = {.data = labels, .dtype = BW_I32, .ndim = 1, .shape = {SAMPLES}};
    bw_array w = {.data = weights, .dtype = BW_F32, .ndim = 1, .shape = {SAMPLES}};
    return bw_shuffle(bw_from_arrays(ctx, &x, &y, &w), 3);
}

static bw_context *open_context(int workers)
{
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.workers = workers;
    return bw_open(&options);
}

typedef struct fit_case {
    int64_t batch, take;
    bool validation, progress;
    int accumulate;
    int workers;
    const char *sizes;
} fit_case;

static void run_fit(const model_case *m, const fit_case *c)
{
    bw_context *ctx = open_context(c->workers);
    bw_dataset *data = bw_take(samples(ctx), c->take);
    bw_model *model = bw_model_parse(ctx, m->text);
    watch w = {0};
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.batch = c->batch;
    options.batch_sizes = c->sizes;
    options.epochs = 4;
    options.accumulate = c->accumulate;
    options.validation_split = c->validation ? 0.3 : 0;
    options.on_step = on_step;
    options.on_epoch = on_epoch;
    options.user = &w;
    options.progress = c->progress ? fopen("/dev/null", "w") : NULL;
    bw_status status = bw_fit(model, data, &options, NULL);
    atomic_store(&counting, false);
    if (status != BW_OK) {
        fail_msg("%s: %s", m->text, bw_message(ctx));
    }
    char what[200];
    snprintf(what, sizeof what, "%s, batch %d", m->text, (int)c->batch);
    check(&w, what, m->convolution);
    if (options.progress) {
        fclose(options.progress);
    }
    bw_close(ctx);
}

static void test_fit(void **state)
{
    (void)state;
    static const fit_case cases[] = {
        {.batch = 1, .take = 20, .accumulate = 1, .workers = 1},
        {.batch = 7, .take = SAMPLES, .accumulate = 1, .workers = 2},
        {.batch = 32, .take = SAMPLES, .accumulate = 1, .workers = 2, .validation = true}, /* steps of 32 and 13 */
        {.batch = 32, .take = SAMPLES, .accumulate = 1, .workers = 1},                     /* the last of 1 */
        {.batch = 100000, .take = SAMPLES, .accumulate = 1, .workers = 2, .validation = true},
        {.batch = 9, .take = SAMPLES, .accumulate = 3, .workers = 2},
        {.sizes = "5,1,30", .take = SAMPLES, .accumulate = 2, .workers = 2},
        {.sizes = "3@0,8@1,5@2,40@3", .take = SAMPLES, .accumulate = 1, .workers = 2}, /* what is counted includes larger ones */
        {.batch = 8, .take = SAMPLES, .accumulate = 1, .workers = 1, .progress = true, .validation = true},
    };
    for (size_t m = 0; m < BWI_COUNT(models); m++) {
        for (size_t c = 0; c < BWI_COUNT(cases); c++) {
            run_fit(&models[m], &cases[c]);
        }
    }
}

/* One batch of 100,000 samples: the same picture again and again, with labels of its own each time. */
static void test_hundred_thousand(void **state)
{
    (void)state;
    enum { MANY = 100000 };
    static int32_t many[MANY];
    for (int i = 0; i < MANY; i++) {
        many[i] = i % 10;
    }
    for (size_t m = 0; m < BWI_COUNT(models); m++) {
        if (models[m].convolution) {
            continue; /* oneDNN's own allocations in so many tiles outgrow the records */
        }
        bw_context *ctx = open_context(2);
        bw_dataset_free(samples(ctx)); /* fills the pixels */
        bw_array x = {.data = pixels, .dtype = BW_F32, .ndim = 4, .shape = {MANY, 8, 8, 1}, .strides = {0, 32, 4, 4}};
        bw_array y = {.data = many, .dtype = BW_I32, .ndim = 1, .shape = {MANY}};
        watch w = {0};
        bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
        options.batch = MANY;
        options.epochs = 4;
        options.on_step = on_step;
        options.on_epoch = on_epoch;
        options.user = &w;
        bw_status status = bw_fit(bw_model_parse(ctx, models[m].text), bw_from_arrays(ctx, &x, &y, NULL), &options, NULL);
        atomic_store(&counting, false);
        if (status != BW_OK) {
            fail_msg("%s: %s", models[m].text, bw_message(ctx));
        }
        check(&w, models[m].text, models[m].convolution);
        bw_close(ctx);
    }
}

/* Batches of another size each time; the plan knew none of them. */
static void run_changing(const model_case *m)
{
    bw_context *ctx = open_context(2);
    bw_dataset *data = samples(ctx);
    bw_model *model = bw_model_parse(ctx, m->text);
    assert_int_equal(bw_compile(model, "adam", "sparse_categorical_crossentropy", "accuracy"), BW_OK);
    assert_int_equal(bw_build(model, 3, (const int64_t[]){8, 8, 1}, 1), BW_OK);
    bw_gradients *gradients = bw_gradients_new(model, NULL);
    int64_t numbers[SAMPLES];
    for (int i = 0; i < SAMPLES; i++) {
        numbers[i] = i;
    }
    watch w = {0};
    bw_status status = BW_OK;
    for (int k = 0; k < SAMPLES && status == BW_OK; k++) {
        bw_batch batch = {.dataset = data, .numbers = numbers, .capacity = SAMPLES, .count = 1 + (k * 19) % SAMPLES};
        double loss;
        status = bw_gradients_add(gradients, &batch, &loss);
        if (status == BW_OK && k % 3 != 1) {
            status = bw_apply(model, gradients);
        }
        begin(&w);
    }
    atomic_store(&counting, false);
    if (status != BW_OK) {
        fail_msg("%s: %s", m->text, bw_message(ctx));
    }
    char what[200];
    snprintf(what, sizeof what, "%s, batches of all sizes", m->text);
    check(&w, what, m->convolution);
    bw_close(ctx);
}

static void test_changing_batches(void **state)
{
    (void)state;
    for (size_t m = 0; m < BWI_COUNT(models); m++) {
        run_changing(&models[m]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts_at_all),
        cmocka_unit_test(test_fit),
        cmocka_unit_test(test_hundred_thousand),
        cmocka_unit_test(test_changing_batches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
