/*
 * The targets: one for each reader. Files are in memory, so nothing outside is opened and no disk is needed; a context is opened
 * for each file, and nothing may be left when it closes.
 */
#include "fuzz/fuzz.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "data/internal.h"
#include "format/format.h"

typedef struct world {
    const uint8_t *bytes;
    size_t size;
    const uint8_t *values; /* of a checkpoint: the file beside the manifest; NULL: there is none */
    size_t values_size;
    size_t used;  /* bytes that were allocated */
    int64_t live; /* blocks, mappings and open files */
} world;

struct fuzz_target {
    const char *name;
    const char *path; /* its ending chooses the reader */
    void (*run)(bw_context *ctx, const fuzz_target *target, const world *w);
};

static void stop(const char *what)
{
    fprintf(stderr, "fuzz: %s\n", what);
    abort();
}

/* ---- Files and memory ---- */

enum { ONLY_FILE = 3, VALUES_FILE };

static int open_file(void *user, const char *path, int flags, int mode)
{
    (void)flags, (void)mode;
    if (strncmp(path, "a.", 2) != 0) { /* the system's own files, and whatever a file might name */
        return -ENOENT;
    }
    world *w = user;
    if (w->values) {
        bool values = strstr(path, ".safetensors");
        if (!values && !strstr(path, "manifest.json")) {
            return -ENOENT;
        }
        w->live++;
        return values ? VALUES_FILE : ONLY_FILE;
    }
    w->live++;
    return ONLY_FILE;
}

static size_t contents(const world *w, int file, const uint8_t **bytes)
{
    *bytes = file == VALUES_FILE ? w->values : w->bytes;
    return file == VALUES_FILE ? w->values_size : w->size;
}

static int64_t read_file(void *user, int file, void *bytes, size_t count, int64_t offset)
{
    const uint8_t *all;
    size_t size = contents(user, file, &all), left = offset < 0 || (size_t)offset >= size ? 0 : size - (size_t)offset;
    count = count < left ? count : left;
    if (count) {
        memcpy(bytes, all + offset, count);
    }
    return (int64_t)count;
}

static int64_t write_file(void *user, int file, const void *bytes, size_t count, int64_t offset)
{
    (void)user, (void)file, (void)bytes, (void)count, (void)offset;
    return -EROFS;
}

static int64_t size_file(void *user, int file)
{
    const uint8_t *all;
    return (int64_t)contents(user, file, &all);
}

static int sync_file(void *user, int file)
{
    (void)user, (void)file;
    return -EROFS;
}

static int close_file(void *user, int file)
{
    (void)file;
    ((world *)user)->live--;
    return 0;
}

static int rename_file(void *user, const char *from, const char *to)
{
    (void)user, (void)from, (void)to;
    return -EROFS;
}

static int remove_file(void *user, const char *path)
{
    (void)user, (void)path;
    return -EROFS;
}

/* Memory of exactly the file's size, so that the address sanitizer sees reads beyond it. */
static int map_file(void *user, int file, size_t bytes, void **memory)
{
    world *w = user;
    const uint8_t *all;
    size_t size = contents(w, file, &all);
    *memory = malloc(bytes ? bytes : 1);
    if (!*memory) {
        return -ENOMEM;
    }
    memcpy(*memory, all, bytes < size ? bytes : size);
    w->live++;
    return 0;
}

static int unmap_file(void *user, void *memory, size_t bytes)
{
    (void)bytes;
    free(memory);
    ((world *)user)->live--;
    return 0;
}

static int list_folder(void *user, const char *path, int (*add)(void *names, const char *name, bw_entry entry), void *names)
{
    const world *w = user;
    return w->values && strcmp(path, "a.run") == 0 ? add(names, "1", BW_ENTRY_FOLDER) : -ENOTDIR;
}

static void *allocate(void *user, size_t bytes, size_t alignment)
{
    world *w = user;
    if (bytes > FUZZ_MEMORY || w->used > FUZZ_MEMORY - bytes) {
        stop("a small file takes more than 64 MiB");
    }
    w->live++;
    w->used += bytes;
    return aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

static void release(void *user, void *memory, size_t bytes)
{
    world *w = user;
    w->live--;
    w->used -= bytes;
    free(memory);
}

/* ---- Data ---- */

/* Gathers the first samples as training does: tables and files that were accepted are to be usable. */
static void use_dataset(bw_dataset *dataset)
{
    enum { SAMPLES = 64, VALUES = 1 << 20 };
    int64_t numbers[SAMPLES], samples = bw_dataset_count(dataset);
    samples = samples < SAMPLES ? samples : SAMPLES;
    for (int64_t i = 0; i < samples; i++) {
        numbers[i] = bwi_dataset_number(dataset, 0, i);
    }
    for (int field = 0; field < bwi_dataset_fields(dataset) && samples > 0; field++) {
        const bwi_field *f = bwi_dataset_field(dataset, field);
        int64_t values = 1;
        for (int i = 0; i < f->ndim; i++) {
            values = values > VALUES || f->shape[i] > VALUES ? VALUES + 1 : values * f->shape[i];
        }
        if (values * samples > VALUES) {
            continue;
        }
        float *to = calloc((size_t)(values * samples) + 1, sizeof *to);
        bwi_destination destination = bwi_host_destination(to, BW_F32, values);
        (void)bwi_dataset_gather(dataset, field, 0, numbers, samples, &destination, NULL);
        free(to);
    }
}

static void read_data(bw_context *ctx, const fuzz_target *target, const world *w)
{
    bw_dataset *dataset = bw_read(ctx, target->path, NULL);
    (void)w;
    if (dataset) {
        use_dataset(dataset);
    } else if (!bw_message(ctx)[0]) {
        stop("a failure without a message");
    }
}

/* A table is also read with its missing values skipped and its first column as categories. */
static void read_table(bw_context *ctx, const fuzz_target *target, const world *w)
{
    bw_read_options options = BW_READ_OPTIONS_DEFAULT;
    read_data(ctx, target, w);
    options.missing = BW_MISSING_SKIP;
    options.categorical = "0";
    options.header = BW_HEADER_YES;
    options.bad_records = 0.5;
    bw_dataset *dataset = bw_read(ctx, target->path, &options);
    if (dataset) {
        use_dataset(dataset);
    }
    (void)bw_message(ctx);
}

static void decode_image(bw_context *ctx, const fuzz_target *target, const world *w)
{
    unsigned char pixels[8 * 8 * 3], *file = malloc(w->size + 1); /* not longer than the file, for the sanitizer */
    char error[BWI_IMAGE_ERROR] = "";
    bwi_picture wanted = {8, 8, 3}, found;
    bwi_buffer scratch = {0};
    (void)target;
    memcpy(file + 1, w->bytes, w->size);
    if (bwi_picture_look(ctx, file + 1, w->size, &found, error) == BW_OK && found.height * found.width <= 1 << 16) {
        (void)bwi_picture_decode(ctx, &scratch, file + 1, w->size, &wanted, pixels, error);
    }
    bwi_buffer_free(ctx, &scratch);
    free(file);
}

/* ---- Models ---- */

static void load_model(bw_context *ctx, const fuzz_target *target, const world *w)
{
    bw_model *model = bw_load(ctx, target->path);
    (void)w;
    if (!model && !bw_message(ctx)[0]) {
        stop("a failure without a message");
    }
}

static void load_weights(bw_context *ctx, const fuzz_target *target, const world *w)
{
    bw_model *model = bw_model_parse(ctx, "input(4) dense(5,relu) dense(3,softmax)");
    (void)w;
    if (!model) {
        stop(bw_message(ctx));
    }
    (void)bw_load_weights(model, target->path);
    (void)bw_message(ctx);
}

/* A manifest, and the file of values: the first four bytes say how long the manifest is. It may load, and nothing has to fit. */
static void resume(bw_context *ctx, const fuzz_target *target, const world *w)
{
    bw_model *model = bw_model_parse(ctx, "input(4) dense(5,relu) dense(3,softmax)");
    int64_t step = -2;
    (void)w;
    if (!model || bw_build(model, 0, NULL, 1) != BW_OK) {
        stop(bw_message(ctx));
    }
    bw_status status = bw_resume(model, target->path, &step, NULL);
    if (status != BW_OK && !bw_message(ctx)[0]) {
        stop("a failure without a message");
    }
    if (status == BW_OK && step != 1 && step != -1) {
        stop("a step that no checkpoint has");
    }
}

static void parse_expression(bw_context *ctx, const fuzz_target *target, const world *w)
{
    char *text = malloc(w->size + 1);
    (void)target;
    memcpy(text, w->bytes, w->size);
    text[w->size] = 0;
    bw_model *model = bw_model_parse(ctx, text);
    if (!model && !bw_message(ctx)[0]) {
        stop("a failure without a message");
    }
    free(text);
}

static const fuzz_target targets[] = {
    {"checkpoint", "a.run", resume},
    {"csv", "a.csv", read_table},
    {"expression", NULL, parse_expression},
    {"h5", "a.h5", read_data},
    {"idx", "a.idx", read_data},
    {"jpeg", NULL, decode_image},
    {"json", "a.json", load_model},
    {"keras", "a.keras", load_model},
    {"legacy", "a.h5", load_model},
    {"libsvm", "a.libsvm", read_data},
    {"npy", "a.npy", read_data},
    {"npz", "a.npz", read_data},
    {"png", NULL, decode_image},
    {"safetensors", "a.safetensors", load_weights},
    {"tfrecord", "a.tfrecord", read_data},
    {"weights", "a.weights.h5", load_weights},
};

const fuzz_target *fuzz_find(const char *name)
{
    for (size_t i = 0; i < BWI_COUNT(targets); i++) {
        if (strcmp(targets[i].name, name) == 0) {
            return &targets[i];
        }
    }
    return NULL;
}

const char *fuzz_name(int index)
{
    return index >= 0 && (size_t)index < BWI_COUNT(targets) ? targets[index].name : NULL;
}

static double processor_seconds(void)
{
    struct timespec time;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

void fuzz_run(const fuzz_target *target, const uint8_t *bytes, size_t size)
{
    world w = {.bytes = bytes, .size = size};
    bw_allocator allocator = {.user = &w, .allocate = allocate, .release = release};
    bw_io io = {.user = &w,
                .open = open_file,
                .read = read_file,
                .write = write_file,
                .size = size_file,
                .sync = sync_file,
                .close = close_file,
                .rename = rename_file,
                .remove = remove_file,
                .map = map_file,
                .unmap = unmap_file,
                .list = list_folder};
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.allocator = &allocator;
    options.io = &io;
    options.workers = 1;
    if (size > FUZZ_LARGEST) {
        return;
    }
    if (target->run == resume) {
        uint32_t manifest = 0;
        memcpy(&manifest, bytes, size < sizeof manifest ? 0 : sizeof manifest);
        w.bytes += size < sizeof manifest ? size : sizeof manifest;
        w.size = size < sizeof manifest ? 0 : size - sizeof manifest;
        manifest = manifest < w.size ? manifest : (uint32_t)w.size;
        w.values = w.bytes + manifest;
        w.values_size = w.size - manifest;
        w.size = manifest;
    }
    double began = processor_seconds();
    bw_context *ctx = bw_open(&options);
    target->run(ctx, target, &w);
    bw_close(ctx);
    if (processor_seconds() - began > FUZZ_SECONDS) {
        stop("a file takes too long");
    }
    if (w.live != 0 || w.used != 0) {
        stop("memory, a mapping or an open file is left");
    }
}
