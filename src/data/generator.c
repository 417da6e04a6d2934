/*
 * A generator: a function that gives one sample after the other, of which it is not known how many there are. It is run once, when
 * the dataset is made, and what it gave is kept; from then on samples are reached by number, in any order.
 */
#include "data/function.h"

#include <string.h>

typedef struct growing {
    bw_dataset *root;
    int64_t capacity;
} growing;

static size_t column_bytes(const bwi_column *column)
{
    return (size_t)column->values * bwi_dtype_size(column->field.dtype);
}

static bw_status grow(growing *g)
{
    bw_dataset *root = g->root;
    bw_context *ctx = root->owned.ctx;
    const int64_t capacity = g->capacity ? g->capacity * 2 : 64;
    size_t all = 0;
    char needed[32];
    for (int f = 0; f < root->column_count; f++)
        all = bwi_size_add(all, bwi_size_multiply((size_t)capacity, column_bytes(&root->columns[f])));
    if (all > (size_t)64 << 20 && all > bwi_memory_available(ctx))
        return bwi_fail(ctx, BW_RESOURCE_EXHAUSTED, "generator: after %lld samples it needs %s of memory", (long long)root->count,
                        bwi_format_bytes(needed, all));
    for (int f = 0; f < root->column_count; f++) {
        bwi_column *column = &root->columns[f];
        void *larger = bwi_grow(ctx, column->memory, (size_t)root->count, (size_t)capacity, column_bytes(column));
        if (!larger)
            return BW_RESOURCE_EXHAUSTED;
        column->memory = larger;
    }
    g->capacity = capacity;
    return BW_OK;
}

static bw_status run(bw_dataset *root, bw_generator_function next, void *user)
{
    bw_context *ctx = root->owned.ctx;
    growing g = {.root = root};
    for (;; root->count++) {
        void *values[BWI_FIELD_LIMIT];
        char text[BW_TROUBLE], trouble[BWI_GATHER_TROUBLE] = "";
        bw_status status = root->count == g.capacity ? grow(&g) : BW_OK;
        if (status == BW_OK && bwi_cancelled(ctx))
            status = bwi_cancel_report(ctx);
        if (status != BW_OK)
            return status;
        for (int f = 0; f < root->column_count; f++)
            values[f] = (unsigned char *)root->columns[f].memory + (size_t)root->count * column_bytes(&root->columns[f]);
        bw_sample sample = bwi_sample(root, 0, 0, root->count, text);
        const int result = next(user, &sample, values);
        if (result == 0)
            return BW_OK;
        if (result < 0) {
            status = bwi_sample_failed(root, &sample, "the generator failed", trouble);
            return status == BW_CANCELLED ? bwi_cancel_report(ctx) : bwi_fail(ctx, status, "%s", trouble);
        }
    }
}

bw_dataset *bw_from_generator(bw_context *ctx, const bw_field *fields, int count, bw_generator_function next, void *user)
{
    if (!ctx)
        return NULL;
    if (!fields || count < 1 || count > BWI_FIELD_LIMIT || !next)
        return bwi_fail_build(ctx, BW_INVALID_ARGUMENT,
                              "samples from a generator need the function and 1 to %d fields; there are %d", BWI_FIELD_LIMIT,
                              fields ? count : 0);
    bw_dataset *root = bwi_dataset_root(ctx, &bwi_source_arrays, count, 0);
    if (!root)
        return NULL;
    bw_status status = bwi_dataset_declare_fields(root, fields, count);
    if (status == BW_OK)
        status = run(root, next, user);
    if (status == BW_OK && root->count == 0)
        status = bwi_fail(ctx, BW_INVALID_ARGUMENT, "the generator gave no samples");
    for (int f = 0; f < root->column_count; f++) {
        root->columns[f].data = root->columns[f].memory;
        root->columns[f].samples = root->count;
    }
    root->numbers = root->count;
    if (status == BW_OK)
        return root;
    bw_dataset_free(root);
    return bwi_pass_on(ctx);
}
