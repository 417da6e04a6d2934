/*
 * Cache in a file: samples are made once, as in epoch 0, and from then on lie in a mapped file, for later runs too. The file
 * begins with a description of what it holds (fields, counts), a fingerprint of the dataset it was made from, and a hash of all
 * values. It is written completely or not at all. A file that is damaged, or holds other samples, is refused and never
 * overwritten.
 */
#include "data/ahead/ahead.h"
#include "data/order/order.h"
#include "data/read/read.h"
#include "data/transform/transform.h"

#include <string.h>

#define MAGIC "BWCACHE1"
enum { HEADER = 64 << 10, PROBES = 16 };

typedef struct entry {
    bwi_field field;
    uint64_t offset; /* within a sample */
} entry;

typedef struct header {
    char magic[8];
    int64_t count, numbers;
    uint64_t bytes; /* of a sample */
    uint64_t fingerprint, hash;
    int64_t fields;
    entry entry[BWI_FIELD_LIMIT];
} header;

_Static_assert(sizeof(header) <= HEADER, "the header fits its place in the file");

static bw_status gather(const bw_dataset *dataset, const bwi_demand *demand)
{
    return bwi_kind_arrays.gather(dataset, demand);
}

static const bwi_dataset_kind kind = {.name = "cache", .gather = gather};

/* ---- Making all samples ---- */

typedef struct filling {
    const bw_dataset *below;
    const header *h;
    unsigned char *to; /* [number][bytes] */
    int64_t step;      /* between the positions that are made: 1, or more for a fingerprint */
    bool packed;       /* samples lie one after another, not by number */
} filling;

static bw_status fill_sample(void *user, int64_t index, int worker, char *error)
{
    const filling *f = user;
    int64_t number = bwi_number_at(f->below, 0, index * f->step);
    unsigned char *to = f->to + (uint64_t)(f->packed ? index : number) * f->h->bytes;
    void *values[BWI_FIELD_LIMIT];
    (void)worker;
    for (int64_t k = 0; k < f->h->fields; k++) {
        values[k] = to + f->h->entry[k].offset;
    }
    return bwi_content_make(f->below, 0, number, values, error);
}

static bw_status run(bw_context *ctx, filling *f)
{
    char error[BWI_ITEM_ERROR];
    bw_status status = bwi_parallel_for(ctx, (f->below->count - 1) / f->step + 1, fill_sample, f, error);
    return error[0] ? bwi_fail(ctx, status, "cache: %s", error) : status;
}

/* Hashes the description of the samples, and the values of a few that are spread over all of them. */
static bw_status find_fingerprint(const bw_dataset *below, header *h)
{
    bw_context *ctx = below->owned.ctx;
    int64_t step = below->count > PROBES ? below->count / PROBES : 1;
    size_t probes = (size_t)((below->count - 1) / step + 1);
    filling f = {.below = below, .h = h, .step = step, .packed = true};
    f.to = bwi_allocate(ctx, probes, (size_t)h->bytes);
    if (!f.to) {
        return BW_RESOURCE_EXHAUSTED;
    }
    bw_status status = run(ctx, &f);
    h->fingerprint = h->hash = 0;
    h->fingerprint = bwi_hash(bwi_hash(0, h, sizeof *h), f.to, probes * (size_t)h->bytes);
    bwi_release(ctx, f.to);
    return status;
}

/* ---- The file ---- */

static bw_status describe(bw_dataset *made, header *h)
{
    bw_status status = BW_OK;
    memset(h, 0, sizeof *h); /* the padding is cleared too, because it is hashed */
    memcpy(h->magic, MAGIC, sizeof h->magic);
    h->count = made->upstream->count;
    h->numbers = made->numbers;
    h->fields = bwi_dataset_fields(made->upstream);
    for (int f = 0; f < h->fields && status == BW_OK; f++) {
        const bwi_field *from = bwi_dataset_field(made->upstream, f);
        bwi_field *field = &h->entry[f].field;
        memcpy(field->name, from->name, strlen(from->name));
        memcpy(field->shape, from->shape, (size_t)from->ndim * sizeof *from->shape);
        field->role = from->role;
        field->ndim = from->ndim;
        field->dtype = bwi_make_dtype(made->upstream, f);
        status = bwi_dataset_declare(made, field, "cache");
        h->entry[f].offset = h->bytes;
        h->bytes += bwi_size_align((size_t)made->columns[f].rows.values * bwi_dtype_size(field->dtype), sizeof(float));
    }
    return status;
}

static bw_status write_cache(const bw_dataset *made, header *h, const char *path)
{
    bw_context *ctx = made->owned.ctx;
    size_t data = bwi_size_multiply((size_t)h->numbers, (size_t)h->bytes), size = bwi_size_add(HEADER, data);
    bwi_backing backing = {0};
    bw_status status = bwi_backing_grow(ctx, &backing, 0, size, "a cache");
    if (status != BW_OK) {
        return status;
    }
    unsigned char *bytes = backing.memory; /* zero, and stays so for numbers that no position has */
    filling f = {.below = made->upstream, .h = h, .to = bytes + HEADER, .step = 1};
    status = run(ctx, &f);
    if (status == BW_OK) {
        h->hash = bwi_hash(0, bytes + HEADER, data);
        memcpy(bytes, h, sizeof *h);
        status = bwi_file_write(ctx, path, bytes, size);
    }
    bwi_backing_free(ctx, &backing);
    return status;
}

/* Refuses a file that is damaged or holds other samples. */
static bw_status check_cache(bw_context *ctx, const header *h, const bwi_bytes *bytes, const char *path)
{
    header found;
    size_t data = bwi_size_multiply((size_t)h->numbers, (size_t)h->bytes);
    if (bytes->size < HEADER || memcmp(bytes->data, MAGIC, sizeof h->magic) != 0) {
        return bwi_fail(ctx, BW_DATA_LOSS, "%s: no cache of samples", path);
    }
    memcpy(&found, bytes->data, sizeof found);
    if (found.fingerprint != h->fingerprint || found.count != h->count || found.numbers != h->numbers || found.bytes != h->bytes) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: a cache of other samples than these: remove it, or name another file", path);
    }
    if (bytes->size != bwi_size_add(HEADER, data) || bwi_hash(0, bytes->data + HEADER, data) != found.hash) {
        return bwi_fail(ctx, BW_DATA_LOSS, "%s: the cache is damaged: remove it", path);
    }
    return BW_OK;
}

static bool exists(bw_context *ctx, const char *path)
{
    char first;
    return bwi_file_read_small(ctx, path, &first, 1) >= 0;
}

/* The fingerprint is computed first, because it decides whether an existing file holds these samples. */
static bw_status open_cache(bw_dataset *made, const char *path)
{
    bw_context *ctx = made->owned.ctx;
    header *h = bwi_allocate(ctx, 1, sizeof *h);
    bwi_bytes *bytes = NULL;
    bw_status status = h ? describe(made, h) : BW_RESOURCE_EXHAUSTED;
    if (status == BW_OK) {
        status = find_fingerprint(made->upstream, h);
    }
    if (status == BW_OK && !exists(ctx, path)) {
        status = write_cache(made, h, path);
    }
    if (status == BW_OK) {
        status = bwi_dataset_map_file(made, path, &bytes);
    }
    if (status == BW_OK) {
        status = check_cache(ctx, h, bytes, path);
    }
    for (int f = 0; status == BW_OK && f < made->column_count; f++) {
        made->columns[f].rows.data = bytes->data + HEADER + h->entry[f].offset;
        made->columns[f].rows.step = (int64_t)h->bytes;
    }
    bwi_release(ctx, h);
    return status;
}

/* Statistics cannot be cached, because they are fitted later, to the training samples; nor can augmented samples, which would stay
 * as they were in the first epoch. */
static bw_status check(bw_dataset *dataset, const char *path)
{
    bw_context *ctx = dataset->owned.ctx;
    if (!path || !path[0]) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "cache: expected the name of a file");
    }
    for (const bw_dataset *below = dataset; below; below = below->upstream) {
        if (below->kind->begin) {
            return bwi_fail(ctx, BW_INVALID_ARGUMENT, "cache: %s comes after it", below->kind->name);
        }
    }
    return bwi_dataset_augments(dataset) ? bwi_fail(ctx, BW_INVALID_ARGUMENT, "cache: augment comes after it")
                                         : bwi_dataset_finish(dataset);
}

bw_dataset *bw_cache_file(bw_dataset *dataset, const char *path)
{
    if (!dataset) {
        return NULL;
    }
    bw_context *ctx = dataset->owned.ctx;
    bw_dataset *made = check(dataset, path) == BW_OK ? bwi_dataset_over(dataset, &kind, bwi_dataset_fields(dataset), 0) : NULL;
    if (made && open_cache(made, path) == BW_OK) {
        bwi_prefetcher_close(made->prefetcher); /* the samples are no longer slow */
        made->prefetcher = NULL;
        made->slow = false;
        return bwi_dataset_take(dataset, made);
    }
    bw_dataset_free(made);
    bw_dataset_free(dataset);
    return bwi_pass_on(ctx);
}
