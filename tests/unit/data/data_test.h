/*
 * Tests of data share this: an allocator and a file system in memory that count their calls and fail when told to. Mapped bytes
 * are in memory of exactly their size, so that the address sanitizer sees reads beyond it.
 */
#ifndef DATA_TEST_H
#define DATA_TEST_H

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "data/internal.h"
#include "data/order/order.h"
#include "data/transform/transform.h"

typedef struct world {
    bw_context *ctx;
    const unsigned char *bytes; /* the file, whatever its path, except below /proc and /sys */
    size_t size;
    int64_t io_calls, io_fail; /* the nth call fails, from 1; 0: none */
    int64_t allocations, allocation_fail;
    int64_t live; /* blocks of memory, mappings and open files */
    size_t largest, used;
} world;

static inline bool world_fails(world *w)
{
    return ++w->io_calls == w->io_fail;
}

static inline int world_open(void *user, const char *path, int flags, int mode)
{
    world *w = user;
    (void)flags;
    (void)mode;
    if (strncmp(path, "/proc/", 6) == 0 || strncmp(path, "/sys/", 5) == 0) {
        return -ENOENT;
    }
    if (world_fails(w)) {
        return -EIO;
    }
    if (!w->bytes) {
        return -ENOENT;
    }
    w->live++;
    return 3;
}

/* As a pipe gives it: a few bytes at a time. */
static inline int64_t world_read(void *user, int file, void *bytes, size_t count, int64_t offset)
{
    world *w = user;
    (void)file;
    if (world_fails(w)) {
        return -EIO;
    }
    size_t left = offset < 0 || (size_t)offset >= w->size ? 0 : w->size - (size_t)offset;
    count = count < 777 ? count : 777;
    count = count < left ? count : left;
    memcpy(bytes, w->bytes + (left ? offset : 0), count);
    return (int64_t)count;
}

static inline int64_t world_write(void *user, int file, const void *bytes, size_t count, int64_t offset)
{
    (void)user, (void)file, (void)bytes, (void)count, (void)offset;
    return -EROFS;
}

static inline int64_t world_size(void *user, int file)
{
    world *w = user;
    (void)file;
    return world_fails(w) ? -EIO : (int64_t)w->size;
}

static inline int world_sync(void *user, int file)
{
    (void)user, (void)file;
    return -EROFS;
}

static inline int world_close(void *user, int file)
{
    world *w = user;
    (void)file;
    w->live--;
    return world_fails(w) ? -EIO : 0;
}

static inline int world_rename(void *user, const char *from, const char *to)
{
    (void)user, (void)from, (void)to;
    return -EROFS;
}

static inline int world_remove(void *user, const char *path)
{
    (void)user, (void)path;
    return -EROFS;
}

static inline int world_map(void *user, int file, size_t bytes, void **memory)
{
    world *w = user;
    (void)file;
    if (world_fails(w)) {
        return -ENOMEM;
    }
    *memory = malloc(bytes);
    memcpy(*memory, w->bytes, bytes);
    w->live++;
    return 0;
}

static inline int world_unmap(void *user, void *memory, size_t bytes)
{
    world *w = user;
    (void)bytes;
    free(memory);
    w->live--;
    return world_fails(w) ? -EIO : 0;
}

/* Every path is the file. */
static inline int world_list(void *user, const char *path, int (*add)(void *names, const char *name, bw_entry entry), void *names)
{
    (void)path, (void)add, (void)names;
    return world_fails(user) ? -EIO : -ENOTDIR;
}

static inline void *world_allocate(void *user, size_t bytes, size_t alignment)
{
    world *w = user;
    if (++w->allocations == w->allocation_fail) {
        return NULL;
    }
    w->live++;
    w->used += bytes;
    w->largest = w->used > w->largest ? w->used : w->largest;
    return aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
}

static inline void world_release(void *user, void *memory, size_t bytes)
{
    world *w = user;
    w->live--;
    w->used -= bytes;
    free(memory);
}

/* A world whose file is `bytes`; NULL: there is none. False if the context itself could not be made. */
static inline bool world_begin(world *w, const unsigned char *bytes, size_t size)
{
    bw_allocator allocator = {.user = w, .allocate = world_allocate, .release = world_release};
    bw_io io = {w,         world_open,  world_read, world_write, world_size, world_sync, world_close, world_rename, world_remove,
                world_map, world_unmap, world_list, NULL,        NULL};
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.allocator = &allocator;
    options.io = &io;
    options.workers = 1;
    w->bytes = bytes;
    w->size = size;
    w->ctx = bw_open(&options);
    return w->ctx;
}

/* Closes the context; nothing may be left. */
static inline void world_end(world *w)
{
    bw_close(w->ctx);
    assert_int_equal(w->live, 0);
    assert_int_equal(w->used, 0);
}

/* A file below tests/data, in memory of the caller's. */
static inline unsigned char *load(const char *folder, const char *name, size_t *size)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "rb");
    if (!file) {
        fail_msg("cannot open %s", path);
    }
    fseek(file, 0, SEEK_END);
    *size = (size_t)ftell(file);
    rewind(file);
    unsigned char *bytes = malloc(*size + 1);
    assert_int_equal(fread(bytes, 1, *size, file), *size);
    fclose(file);
    return bytes;
}

static inline void assert_contains(const char *text, const char *part)
{
    if (!strstr(text, part)) {
        fail_msg("expected \"%s\" in \"%s\"", part, text);
    }
}

/* What the builder that returned NULL has left. */
static inline void assert_failed(bw_context *ctx, const void *object, bw_status status, const char *part)
{
    assert_null(object);
    assert_int_equal(bwi_pending(ctx), status);
    assert_contains(bw_message(ctx), part);
}

/* Files that do not open. */
typedef struct refused_file {
    const char *file;
    bw_status status;
    const char *part; /* of the message */
} refused_file;

static inline void assert_refused(const char *folder, const char *ending, const refused_file *cases, size_t count)
{
    bw_context *ctx = bw_open(NULL);
    for (size_t i = 0; i < count; i++) {
        char path[1024];
        snprintf(path, sizeof path, "%s%s%s", folder, cases[i].file, ending);
        assert_failed(ctx, bw_read(ctx, path, NULL), cases[i].status, cases[i].part);
        assert_failed(ctx, bw_read(ctx, path, NULL), cases[i].status, cases[i].file);
    }
    bw_close(ctx);
}

/* All values of a field as float32 in row-major order, in memory of the caller's. */
static inline float *gather_all(const bw_dataset *dataset, int field, int64_t *count)
{
    const bwi_field *f = bwi_dataset_field(dataset, field);
    int64_t samples = bw_dataset_count(dataset);
    int64_t values = 1;
    for (int i = 0; i < f->ndim; i++) {
        values *= f->shape[i];
    }
    float *to = calloc((size_t)(samples * values), sizeof *to);
    int64_t *numbers = calloc((size_t)samples, sizeof *numbers);
    for (int64_t i = 0; i < samples; i++) {
        numbers[i] = bwi_dataset_number(dataset, 0, i);
    }
    bwi_destination destination = bwi_host_destination(to, BW_F32, values);
    assert_int_equal(bwi_dataset_gather(dataset, field, 0, numbers, samples, &destination, NULL), BW_OK);
    free(numbers);
    *count = samples * values;
    return to;
}

#endif
