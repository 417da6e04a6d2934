/*
 * Memory that is not there for the libraries below: each allocation and each call for a file of a whole program, whoever makes it
 * (libzip, zlib, libpng, libjpeg, jansson, the C library, the context's own tables), fails once in turn, in a process of its own
 * that shim.c was loaded into. Each time there is a status with a message or the result of an undisturbed run; what is written is
 * the old file or the new one; and the same program runs to the same result afterwards, in the same process, with nothing left
 * over. oneDNN ends the process if a single allocation of it fails (SECURITY.md), so for convolutions it is the whole address
 * space that is short, at every size in turn.
 */
#include "support/check.h"
#include "support/folder.h"

#include "base/base.h"
#include "data/internal.h"
#include "fault/shim.h"

#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>

enum { VALUES = 1 << 16, MOST = 20000 };

static struct {
    void (*arm)(shim_kind kind, int64_t at, bool all);
    bool (*disarm)(void);
    int64_t (*blocks)(void);
} shim;

/* ---- Programs: a status, and a hash of what they got ---- */

static bw_status read_samples(bw_context *ctx, const char *path, uint64_t *hash)
{
    static float values[VALUES];
    int64_t numbers[4] = {0, 1, 2, 3};
    bw_read_options options = BW_READ_OPTIONS_DEFAULT;
    options.missing = strstr(path, ".csv") ? BW_MISSING_SKIP : options.missing;
    bw_dataset *data = bw_read(ctx, path, &options);
    bw_status status = data ? BW_OK : bw_last_error(ctx)->status;
    int64_t samples = data && bw_dataset_count(data) < 4 ? bw_dataset_count(data) : 4;
    for (int f = 0; data && f < bwi_dataset_fields(data) && status == BW_OK; f++) {
        const bwi_field *field = bwi_dataset_field(data, f);
        int64_t each = 1;
        for (int i = 0; i < field->ndim; i++) {
            each *= field->shape[i];
        }
        char error[BWI_GATHER_ERROR] = "";
        bwi_destination to = bwi_host_destination(values, BW_F32, each);
        status = each * samples > VALUES ? BW_OK : bwi_dataset_gather(data, f, 0, numbers, samples, &to, error);
        *hash = bwi_hash(*hash, values, (size_t)(each * samples > VALUES ? 0 : each * samples) * sizeof *values);
        status = status == BW_OK ? BW_OK : bwi_fail(ctx, status, "%s", error[0] ? error : bw_message(ctx));
    }
    return status;
}

static bw_status load_model(bw_context *ctx, const char *path, uint64_t *hash)
{
    bw_model *model = bw_load(ctx, path);
    bw_status status = !model ? bw_last_error(ctx)->status : BW_OK;
    *hash = model ? bw_model_hash(model) : 0;
    return status;
}

static bw_dataset *some_samples(bw_context *ctx)
{
    static float x[24][3], y[24];
    for (int i = 0; i < 24 * 3; i++) {
        x[i / 3][i % 3] = (float)((i * 31) % 17) / 17;
    }
    bw_array inputs = {.data = x, .dtype = BW_F32, .ndim = 2, .shape = {24, 3}};
    bw_array targets = {.data = y, .dtype = BW_F32, .ndim = 1, .shape = {24}};
    return bw_from_arrays(ctx, &inputs, &targets, NULL);
}

static bw_status save_model(bw_context *ctx, const char *path, uint64_t *hash)
{
    bw_model *model = bw_model_parse(ctx, "input(3) dense(2,relu) dense(1)");
    bw_status status = model ? bw_build(model, 0, NULL, 1) : bw_last_error(ctx)->status;
    status = status == BW_OK ? bw_save(model, inside(path)) : status;
    *hash = model && status == BW_OK ? bw_model_hash(model) : 0;
    return status;
}

/* Weights that are read from a file that was just written. */
static bw_status load_saved(bw_context *ctx, const char *path, uint64_t *hash)
{
    uint64_t saved;
    bw_status status = save_model(ctx, path, &saved);
    bw_model *model = status == BW_OK ? bw_model_parse(ctx, "input(3) dense(2,relu) dense(1)") : NULL;
    status = status == BW_OK && !model ? bw_last_error(ctx)->status : status;
    status = status == BW_OK ? bw_load_weights(model, inside(path)) : status;
    *hash = status == BW_OK ? bw_model_hash(model) : 0;
    return status;
}

/* A run with checkpoints, and the same one resumed from its last. */
static bw_status train(bw_context *ctx, const char *path, uint64_t *hash)
{
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.epochs = 2;
    options.batch = 8;
    options.validation_split = 0.25;
    options.checkpoint_dir = inside(path);
    options.checkpoint_every = "2";
    options.resume = true;
    bw_dataset *data = some_samples(ctx);
    bw_model *model = data ? bw_model_parse(ctx, "input(3) dense(4,relu) dropout(0.5) dense(1)") : NULL;
    bw_status status = model ? bw_compile(model, "adam", "mean_squared_error", NULL) : bw_last_error(ctx)->status;
    status = status == BW_OK ? bw_fit(model, data, &options, NULL) : status;
    *hash = model ? bw_model_hash(model) : 0;
    return status;
}

static bw_status train_convolution(bw_context *ctx, const char *text, uint64_t *hash)
{
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.epochs = 1;
    bw_dataset *data = bw_take(bw_read(ctx, BW_DATA "/digits.npz", NULL), 64);
    bw_model *model = data ? bw_model_parse(ctx, text) : NULL;
    bw_status status = model ? bw_fit(model, data, &options, NULL) : bw_last_error(ctx)->status;
    *hash = model ? bw_model_hash(model) : 0;
    return status;
}

typedef struct program {
    const char *name; /* the path, too */
    bw_status (*run)(bw_context *ctx, const char *path, uint64_t *hash);
    bool writes;
    int64_t lost; /* blocks that libzip loses when it cannot begin to unpack a member (SECURITY.md) */
} program;

#define DATA(name) BW_TEST_DATA "/" name

static const program programs[] = {
    {DATA("numbers.csv.gz"), read_samples, false, 0},
    {DATA("table.csv"), read_samples, false, 0},
    {DATA("float32_deflated.npz"), read_samples, false, 2},
    {DATA("files/t10k-images-idx3-ubyte.gz"), read_samples, false, 0},
    {DATA("files/rows.libsvm"), read_samples, false, 0},
    {DATA("samples/packed.h5"), read_samples, false, 0},
    {DATA("images/classes"), read_samples, false, 0},
    {DATA("tfrecord/numbers.tfrecord.gz"), read_samples, false, 0},
    {DATA("tfrecord/images.tfrecord"), read_samples, false, 0},
    {DATA("keras/dense.keras"), load_model, false, 2},
    {DATA("keras/long_names.h5"), load_model, false, 0},
    {DATA("keras/ends_names.json"), load_model, false, 0},
    {"model.keras", save_model, true, 0},
    {"model.weights.h5", save_model, true, 0},
    {"model.safetensors", save_model, true, 0},
    {"model.json", save_model, true, 0},
    {"model.onnx", save_model, true, 0},
    {"model.c", save_model, true, 0},
    {"model.keras", load_saved, true, 2},
    {"model.weights.h5", load_saved, true, 0},
    {"model.safetensors", load_saved, true, 0},
    {"run", train, true, 0},
};

/* ---- One failure, in a process of its own ---- */

/* What the processes of one program share. */
typedef struct results {
    uint64_t hash; /* of an undisturbed run */
    char message[2048];
} results;

static results *shared;

enum { MESSAGE = 1024 };

static bw_status run(const program *p, uint64_t *hash, char *message)
{
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.workers = 1;
    *hash = 1;
    bw_context *ctx = bw_open(&options);
    bw_status status = ctx ? p->run(ctx, p->name, hash) : BW_RESOURCE_EXHAUSTED;
    snprintf(message, MESSAGE, "%s", !ctx ? "no context" : status == BW_OK ? "" : bw_message(ctx));
    bw_close(ctx);
    return status;
}

enum { FINE = 0, OVER = 1, WRONG = 2 };

static int complain(const char *what)
{
    memmove(shared->message + strlen(what) + 2, shared->message, sizeof shared->message - strlen(what) - 2);
    memcpy(shared->message, what, strlen(what));
    memcpy(shared->message + strlen(what), ": ", 2);
    shared->message[sizeof shared->message - 1] = 0;
    return WRONG;
}

/* In a folder of its own: nothing there, one failure, then none. */
static int fail_once(const program *p, shim_kind kind, int64_t at, bool all)
{
    uint64_t hash;
    char message[MESSAGE];
    if (p->writes) {
        (void)remove_folder(NULL);
        (void)mkdir(folder, 0700);
    }
    shim.arm(kind, at, all);
    bw_status status = run(p, &hash, message);
    bool failed = shim.disarm();
    snprintf(shared->message, sizeof shared->message, "%s, %s", bw_status_name(status), message);
    if (status == BW_OK && hash != shared->hash) {
        return complain("other values");
    }
    if (status != BW_OK && (!failed || !message[0])) {
        return complain("no failure was wanted, or no message");
    }
    if (status != BW_OK && kind == SHIM_MEMORY && status != BW_RESOURCE_EXHAUSTED) {
        return complain("another status than RESOURCE_EXHAUSTED");
    }
    status = run(p, &hash, message);
    if (status != BW_OK || hash != shared->hash) {
        snprintf(shared->message, sizeof shared->message, "%s, %s", bw_status_name(status), message);
        return complain("it does not go on");
    }
    return failed ? FINE : OVER;
}

static int64_t open_files(void)
{
    DIR *entries = opendir("/proc/self/fd");
    int64_t count = 0;
    while (entries && readdir(entries)) {
        count++;
    }
    if (entries) {
        closedir(entries);
    }
    return count;
}

/* Twice, so that what is made once for the process is no leak. */
static int fail_twice(const program *p, shim_kind kind, int64_t at, bool all)
{
    int result = fail_once(p, kind, at, all);
    int64_t blocks = shim.blocks(), files = open_files();
    result = result == FINE ? fail_once(p, kind, at, all) : result;
    if (result == FINE && shim.blocks() > blocks + p->lost) {
        return complain("memory is left");
    }
    return result == FINE && open_files() > files ? complain("files are left open") : result;
}

static int in_child(const program *p, int (*work)(const program *p, shim_kind kind, int64_t at, bool all), shim_kind kind,
                    int64_t at, bool all)
{
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)signal(SIGSEGV, SIG_DFL); /* not cmocka's, which would go on with the next test */
        (void)signal(SIGABRT, SIG_DFL);
        (void)signal(SIGBUS, SIG_DFL);
        alarm(120);
        _exit(work(p, kind, at, all));
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

static int undisturbed(const program *p, shim_kind kind, int64_t at, bool all)
{
    (void)kind, (void)at, (void)all;
    return run(p, &shared->hash, shared->message) == BW_OK ? FINE : WRONG;
}

static int wrong; /* failures that were not as they should be */

static int64_t fail_each(const program *p, shim_kind kind, bool all)
{
    int64_t at = 1, failures = 0;
    for (int result = FINE; result != OVER; at += 1 + at / 16) {
        assert_true(at < MOST);
        result = in_child(p, fail_twice, kind, at, all);
        if (result != FINE && result != OVER) {
            wrong++;
            print_error("%s: %s %lld%s: %d: %s\n", p->name, kind == SHIM_MEMORY ? "allocation" : "call", (long long)at,
                        all ? " and those after it" : "", result, shared->message);
        }
        failures += result == FINE;
    }
    return failures;
}

static void test_programs(void **state)
{
    (void)state;
    for (size_t k = 0; k < BWI_COUNT(programs); k++) {
        const program *p = &programs[k];
        (void)remove_folder(NULL);
        (void)mkdir(folder, 0700);
        if (in_child(p, undisturbed, SHIM_NONE, 0, false) != FINE) {
            fail_msg("%s: %s", p->name, shared->message);
        }
        int64_t memory = fail_each(p, SHIM_MEMORY, false), all = fail_each(p, SHIM_MEMORY, true);
        int64_t files = fail_each(p, SHIM_FILES, false);
        print_message("%s: %lld, %lld and %lld failures\n", p->name, (long long)memory, (long long)all, (long long)files);
        assert_true(memory + all + files > 10);
    }
    assert_int_equal(wrong, 0);
}

/* ---- An address space that is short ---- */

static size_t address_space(void)
{
    long long pages = 0;
    FILE *facts = fopen("/proc/self/statm", "r");
    assert_true(facts && fscanf(facts, "%lld", &pages) == 1);
    fclose(facts);
    return (size_t)pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* With `at` KiB beyond what the process has. */
static int run_in_little(const program *p, shim_kind kind, int64_t at, bool all)
{
    (void)kind, (void)all;
    uint64_t hash;
    rlim_t most = address_space() + ((rlim_t)at << 10);
    (void)setrlimit(RLIMIT_AS, &(struct rlimit){.rlim_cur = most, .rlim_max = most});
    bw_status status = run(p, &hash, shared->message);
    if (status == BW_OK) {
        return hash == shared->hash ? OVER : complain("other values");
    }
    return status == BW_RESOURCE_EXHAUSTED && shared->message[0] ? FINE : complain(bw_status_name(status));
}

static void test_little_address_space(void **state)
{
    (void)state;
    static const program p = {"conv2d(4,3,relu) maxpool2d(2) conv2d(5,3,dilation_rate=2,padding=same) flatten dense(10,softmax)",
                              train_convolution, false, 0};
    int refused = 0, result = FINE;
    if (in_child(&p, undisturbed, SHIM_NONE, 0, false) != FINE) {
        fail_msg("%s", shared->message);
    }
    for (int64_t kib = 64; result != OVER || kib < 4096; kib += 64 + kib / 32) {
        result = in_child(&p, run_in_little, SHIM_NONE, kib, false);
        if (result != FINE && result != OVER) {
            fail_msg("%lld KiB of addresses: %d: %s", (long long)kib, result, shared->message);
        }
        refused += result == FINE;
        assert_true(kib < 1 << 20);
    }
    print_message("refused with too little %d times\n", refused);
    assert_true(refused > 10);
}

static int find_shim(void **state)
{
    (void)state;
    *(void **)&shim.arm = dlsym(RTLD_DEFAULT, "shim_arm");
    *(void **)&shim.disarm = dlsym(RTLD_DEFAULT, "shim_disarm");
    *(void **)&shim.blocks = dlsym(RTLD_DEFAULT, "shim_blocks");
    shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    strcpy(folder, "/dev/shm/batchwise-test-XXXXXX");
    return shared != MAP_FAILED && (mkdtemp(folder) || make_folder(state) == 0) ? 0 : -1;
}

/* Begins again with the shim, unless it is there. A sanitizer has an allocator of its own, in whose place none can be put. */
int main(int argc, char **argv)
{
    (void)argc;
#ifdef BW_TEST_SHIM
    if (!dlsym(RTLD_DEFAULT, "shim_arm")) {
        const char *loaded = getenv("LD_PRELOAD");
        if ((loaded && strcmp(loaded, BW_TEST_SHIM) == 0) || setenv("LD_PRELOAD", BW_TEST_SHIM, 1) != 0) {
            fprintf(stderr, "%s: cannot be loaded\n", BW_TEST_SHIM);
            return 1;
        }
        execv("/proc/self/exe", argv);
        return 1;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_programs), cmocka_unit_test(test_little_address_space)};
    return cmocka_run_group_tests(tests, find_shim, remove_folder);
#else
    (void)argv, (void)find_shim, (void)test_programs, (void)test_little_address_space;
    return 77;
#endif
}
