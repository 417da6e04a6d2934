/*
 * Datasets as objects: roots, columns, who keeps whom. A dataset lives while it has references; the user's own reference
 * goes when a builder takes the dataset. Destroying one never touches another, so a closing context may free in any order.
 */
#include "data/dataset.h"

#include <string.h>

static void destroy(bwi_owned *object)
{
    bw_dataset *dataset = (bw_dataset *)object;
    for (int i = 0; i < dataset->column_count; i++)
        bwi_release(object->ctx, dataset->columns[i].memory);
    bwi_release(object->ctx, dataset->columns);
    if (dataset->file.data)
        bwi_file_unmap(object->ctx, &dataset->file);
}

bw_dataset *bwi_dataset_root(bw_context *ctx, int columns)
{
    bw_dataset *root = bwi_own(ctx, sizeof *root, destroy);
    if (!root)
        return NULL;
    root->references = 1;
    root->root = root;
    root->batch = BWI_BATCH_DEFAULT;
    root->scale = 1;
    root->columns = bwi_allocate(ctx, (size_t)columns, sizeof *root->columns);
    if (!root->columns) {
        bwi_disown(root);
        return bwi_pass_on(ctx);
    }
    return root;
}

bw_dataset *bwi_dataset_over(bw_dataset *upstream, bwi_map map, int64_t count)
{
    bw_dataset *dataset = bwi_own(upstream->owned.ctx, sizeof *dataset, destroy);
    if (!dataset)
        return NULL;
    dataset->references = 1;
    dataset->upstream = upstream;
    dataset->root = upstream->root;
    dataset->batch = upstream->batch;
    dataset->map = map;
    dataset->count = count;
    bwi_dataset_keep(upstream);
    return dataset;
}

void bwi_dataset_keep(bw_dataset *dataset)
{
    dataset->references++;
}

void bwi_dataset_release(bw_dataset *dataset)
{
    while (dataset && --dataset->references == 0) {
        bw_dataset *upstream = dataset->upstream;
        bwi_disown(dataset);
        dataset = upstream;
    }
}

void bw_dataset_free(bw_dataset *dataset)
{
    if (!dataset || dataset->taken)
        return;
    dataset->taken = true;
    bwi_dataset_release(dataset);
}

/* Joins axes that follow each other without a gap; those of extent 1 vanish. */
static void join_axes(bwi_column *column, const int64_t *strides)
{
    int axes = 0;
    for (int i = 0; i < column->field.rank; i++) {
        const int64_t extent = column->field.shape[i], stride = strides[i];
        if (extent == 1)
            continue;
        if (axes > 0 && column->stride[axes - 1] == stride * extent) {
            column->extent[axes - 1] *= extent;
            column->stride[axes - 1] = stride;
        } else {
            column->extent[axes] = extent;
            column->stride[axes] = stride;
            axes++;
        }
    }
    if (axes == 0) {
        column->extent[0] = 1;
        column->stride[0] = (int64_t)bwi_dtype_size(column->field.dtype);
        axes = 1;
    }
    column->axes = axes;
}

/* Strides as given, or row-major if all are zero; false if the array would not fit the address space. */
static bool find_strides(const bw_array *view, int64_t *strides)
{
    int64_t dense = (int64_t)bwi_dtype_size(view->dtype), span = 0;
    bool given = false;
    for (int i = view->rank - 1; i >= 0; i--) {
        given = given || view->strides[i] != 0;
        strides[i] = dense;
        if (__builtin_mul_overflow(dense, view->shape[i], &dense))
            return false;
    }
    if (!given)
        return true;
    for (int i = 0; i < view->rank; i++) {
        int64_t reach;
        strides[i] = view->strides[i];
        if (strides[i] == INT64_MIN || __builtin_mul_overflow(strides[i] < 0 ? -strides[i] : strides[i], view->shape[i], &reach) ||
            __builtin_add_overflow(span, reach, &span))
            return false;
    }
    return true;
}

static bw_status check_view(bw_context *ctx, const bw_array *view, const char *where)
{
    char shape[256];
    if ((int)view->dtype < 0 || view->dtype > BW_BOOL)
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: %d is no data type", where, (int)view->dtype);
    if (view->rank < 1 || view->rank > BW_MAX_RANK)
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: an array of samples has 1 to %d axes, this one %d", where, BW_MAX_RANK,
                        view->rank);
    if (view->shape[0] == 0)
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: holds no samples: its shape is %s", where,
                        bwi_format_shape(shape, view->rank, view->shape));
    for (int i = 0; i < view->rank; i++) {
        if (view->shape[i] < 1)
            return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: extent %d of shape %s must be positive", where, i,
                            bwi_format_shape(shape, view->rank, view->shape));
    }
    if (!view->data)
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: the array has no data", where);
    return BW_OK;
}

bw_status bwi_dataset_add(bw_dataset *root, bwi_role role, const char *name, const bw_array *view, const char *where)
{
    bw_context *ctx = root->owned.ctx;
    int64_t strides[BW_MAX_RANK] = {0};
    const bw_status status = check_view(ctx, view, where);
    if (status != BW_OK)
        return status;
    if (!find_strides(view, strides)) {
        char shape[256];
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: shape %s with its strides is larger than memory can be", where,
                        bwi_format_shape(shape, view->rank, view->shape));
    }
    bwi_column *column = &root->columns[root->column_count];
    *column = (bwi_column){.samples = view->shape[0], .values = 1, .data = view->data, .step = strides[0]};
    column->field = (bwi_field){.role = role, .dtype = view->dtype, .rank = view->rank - 1};
    strncpy(column->field.name, name, sizeof column->field.name - 1);
    for (int i = 1; i < view->rank; i++) {
        column->field.shape[i - 1] = view->shape[i];
        column->values *= view->shape[i];
    }
    join_axes(column, strides + 1);
    root->column_count++;
    return BW_OK;
}

/* "x", "y_age" and so on, as in a file. */
static char *column_name(char buffer[72], const bwi_column *column)
{
    buffer[0] = "xyw"[column->field.role];
    buffer[1] = column->field.name[0] ? '_' : 0;
    memcpy(buffer + 2, column->field.name, sizeof column->field.name);
    return buffer;
}

bw_status bwi_dataset_settle(bw_dataset *root, const char *where)
{
    const bwi_column *first = &root->columns[0];
    char name[72], other[72];
    for (int i = 1; i < root->column_count; i++) {
        const bwi_column *column = &root->columns[i];
        if (column->samples != first->samples)
            return bwi_fail(root->owned.ctx, BW_INVALID_ARGUMENT, "%s%s has %lld samples, %s has %lld", where,
                            column_name(name, first), (long long)first->samples, column_name(other, column),
                            (long long)column->samples);
    }
    root->count = first->samples;
    return BW_OK;
}

int bwi_dataset_fields(const bw_dataset *dataset)
{
    return dataset->root->column_count;
}

const bwi_field *bwi_dataset_field(const bw_dataset *dataset, int field)
{
    return &dataset->root->columns[field].field;
}

int bwi_dataset_find(const bw_dataset *dataset, bwi_role role, int index)
{
    for (int i = 0; i < dataset->root->column_count; i++) {
        if (dataset->root->columns[i].field.role == role && index-- == 0)
            return i;
    }
    return -1;
}

int64_t bwi_dataset_batch(const bw_dataset *dataset)
{
    return dataset->batch;
}

bw_context *bwi_dataset_context(const bw_dataset *dataset)
{
    return dataset ? dataset->owned.ctx : NULL;
}

int64_t bw_dataset_count(const bw_dataset *dataset)
{
    return dataset ? dataset->count : -1;
}

int bw_dataset_shape(const bw_dataset *dataset, int64_t *shape)
{
    const int input = dataset ? bwi_dataset_find(dataset, BWI_ROLE_INPUT, 0) : -1;
    if (input < 0 || !shape)
        return -1;
    const bwi_field *field = bwi_dataset_field(dataset, input);
    for (int i = 0; i < field->rank; i++)
        shape[i] = field->shape[i];
    return field->rank;
}
