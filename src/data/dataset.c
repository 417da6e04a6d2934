/*
 * Datasets as objects: how roots and columns are made, and who keeps whom. A dataset lives while it has references; the user's
 * reference is dropped when a builder takes the dataset. Destroying a dataset never touches another, so a closing context may free
 * them in any order.
 */
#include "data/ahead/ahead.h"

#include <string.h>

static void destroy(bwi_owned *object)
{
    bw_dataset *dataset = (bw_dataset *)object;
    bw_context *ctx = object->ctx;
    bwi_prefetcher_close(dataset->prefetcher); /* closed first, because its threads use everything else */
    if (dataset->state && dataset->kind->close) {
        dataset->kind->close(dataset);
    }
    bwi_release(ctx, dataset->state);
    bwi_scratch_free(ctx, dataset->scratch);
    for (int i = 0; i < dataset->column_count; i++) {
        bwi_release(ctx, dataset->columns[i].memory);
        bwi_backing_free(ctx, &dataset->columns[i].backing);
    }
    bwi_release(ctx, dataset->columns);
    bwi_backing_free(ctx, &dataset->texts);
    for (int i = 0; i < dataset->file_count; i++) {
        bwi_file_unmap(ctx, &dataset->files[i]);
    }
    bwi_release(ctx, dataset->files);
    bwi_facts_free(ctx, &dataset->facts);
}

/* Makes what every dataset begins with: one reference, the default batch, and memory for columns and state. */
static bw_dataset *make(bw_context *ctx, const bwi_dataset_kind *kind, int columns, size_t state_bytes)
{
    bw_dataset *dataset = bwi_own(ctx, sizeof *dataset, destroy);
    if (!dataset) {
        return NULL;
    }
    dataset->kind = kind;
    dataset->references = 1;
    dataset->stride = 1;
    dataset->batch = dataset->largest = BWI_BATCH_DEFAULT;
    dataset->scale = dataset->facts.scale = 1;
    if (columns > 0) {
        dataset->content = dataset;
        dataset->columns = bwi_allocate(ctx, (size_t)columns, sizeof *dataset->columns);
    }
    if (state_bytes > 0) {
        dataset->state = bwi_allocate(ctx, 1, state_bytes);
    }
    if ((columns == 0 || dataset->columns) && (state_bytes == 0 || dataset->state)) {
        return dataset;
    }
    bwi_disown(dataset);
    return bwi_pass_on(ctx);
}

bw_dataset *bwi_dataset_root(bw_context *ctx, const bwi_dataset_kind *kind, int columns, size_t state_bytes)
{
    return make(ctx, kind, columns, state_bytes);
}

bw_dataset *bwi_dataset_over(bw_dataset *upstream, const bwi_dataset_kind *kind, int columns, size_t state_bytes)
{
    const int64_t *lengths;
    if (columns > 0 && bwi_dataset_lengths(upstream, &lengths) > 0) {
        return bwi_fail_build(upstream->owned.ctx, BW_INVALID_ARGUMENT,
                              "%s: buckets come last: what is above them may have other lengths", kind->name);
    }
    for (int f = 0; columns > 0 && !kind->texts && f < bwi_dataset_fields(upstream); f++) {
        const bwi_field *field = bwi_dataset_field(upstream, f);
        if (field->dtype == BW_TEXT) {
            return bwi_fail_build(
                upstream->owned.ctx, BW_INVALID_ARGUMENT,
                "%s: the input%s%s is text, which only layers such as text_vectorization take: bw_vectorize makes numbers of it",
                kind->name, field->name[0] ? " " : "", field->name);
        }
    }
    if (!kind->stream.follows && bwi_dataset_finish(upstream) != BW_OK) {
        return bwi_pass_on(upstream->owned.ctx);
    }
    bw_dataset *dataset = make(upstream->owned.ctx, kind, columns, state_bytes);
    if (!dataset) {
        return NULL;
    }
    dataset->upstream = upstream;
    if (columns == 0) {
        dataset->content = upstream->content;
    }
    dataset->count = upstream->count;
    dataset->numbers = upstream->numbers;
    dataset->live = upstream->live;
    dataset->batch = upstream->batch;
    dataset->largest = upstream->largest;
    dataset->batched = upstream->batched;
    dataset->scheduled = upstream->scheduled;
    dataset->moving = upstream->moving;
    bwi_dataset_keep(upstream);
    if (!upstream->slow || bwi_prefetcher_attach(dataset) == BW_OK) {
        return dataset;
    }
    bw_dataset_free(dataset);
    return bwi_pass_on(upstream->owned.ctx);
}

bw_dataset *bwi_dataset_take(bw_dataset *dataset, bw_dataset *made)
{
    bw_dataset_free(dataset);
    return made;
}

void bwi_dataset_keep(bw_dataset *dataset)
{
    dataset->references++;
}

/* A thread may be stuck in a stalled source. Its dataset, with everything it is made of, then stays until bw_close waits for the
 * thread, because the call that found the stall must not wait. */
void bwi_dataset_release(bw_dataset *dataset)
{
    while (dataset && --dataset->references == 0) {
        if (dataset->prefetcher && !bwi_prefetcher_quit(dataset->prefetcher)) {
            return;
        }
        bw_dataset *upstream = dataset->upstream, *second = dataset->second;
        bwi_disown(dataset);
        bwi_dataset_release(second);
        dataset = upstream;
    }
}

void bw_dataset_free(bw_dataset *dataset)
{
    if (!dataset || dataset->taken) {
        return;
    }
    dataset->taken = true;
    bwi_dataset_release(dataset);
}

/* Joins axes that follow each other without a gap, and drops those of extent 1. */
static void join_axes(bwi_column *column, const int64_t *strides)
{
    int axes = 0;
    for (int i = 0; i < column->field.ndim; i++) {
        int64_t extent = column->field.shape[i], stride = strides[i];
        if (extent == 1) {
            continue;
        }
        if (axes > 0 && column->rows.stride[axes - 1] == stride * extent) {
            column->rows.extent[axes - 1] *= extent;
            column->rows.stride[axes - 1] = stride;
        } else {
            column->rows.extent[axes] = extent;
            column->rows.stride[axes] = stride;
            axes++;
        }
    }
    if (axes == 0) {
        column->rows.extent[0] = 1;
        column->rows.stride[0] = (int64_t)bwi_dtype_size(column->field.dtype);
        axes = 1;
    }
    column->rows.axes = axes;
}

/* Takes the strides that are given, or row-major ones if all are zero; false if the array would not fit the address space. */
static bool find_strides(const bw_array *view, int64_t *strides)
{
    int64_t dense = (int64_t)bwi_dtype_size(view->dtype), span = 0;
    bool given = false;
    for (int i = view->ndim - 1; i >= 0; i--) {
        given = given || view->strides[i] != 0;
        strides[i] = dense;
        if (__builtin_mul_overflow(dense, view->shape[i], &dense)) {
            return false;
        }
    }
    if (!given) {
        return true;
    }
    for (int i = 0; i < view->ndim; i++) {
        int64_t reach;
        strides[i] = view->strides[i];
        if (strides[i] == INT64_MIN || __builtin_mul_overflow(strides[i] < 0 ? -strides[i] : strides[i], view->shape[i], &reach) ||
            __builtin_add_overflow(span, reach, &span)) {
            return false;
        }
    }
    return true;
}

/* An array of samples must have a known type, at least one sample, and only positive extents. */
static bw_status check_view(bw_context *ctx, const bw_array *view, const char *where)
{
    char shape[256];
    if ((int)view->dtype < 0 || view->dtype > BW_TEXT) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: %d is no data type", where, (int)view->dtype);
    }
    if (view->ndim < 1 || view->ndim > BW_MAX_NDIM) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: an array of samples has 1 to %d axes, this one %d", where, BW_MAX_NDIM,
                        view->ndim);
    }
    if (view->shape[0] == 0) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: holds no samples: its shape is %s", where,
                        bwi_format_shape(shape, view->ndim, view->shape));
    }
    for (int i = 0; i < view->ndim; i++) {
        if (view->shape[i] < 1) {
            return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: extent %d of shape %s must be positive", where, i,
                            bwi_format_shape(shape, view->ndim, view->shape));
        }
    }
    if (!view->data) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: the array has no data", where);
    }
    return BW_OK;
}

/* Sets name, role and the extents of one sample, and with them `values`. */
static void describe(bwi_column *column, bwi_role role, const char *name, bw_dtype dtype, int ndim, const int64_t *shape)
{
    column->rows.values = 1;
    column->rows.dtype = dtype;
    column->rows.scale = 1;
    column->field = (bwi_field){.role = role, .dtype = dtype, .ndim = ndim};
    snprintf(column->field.name, sizeof column->field.name, "%s", name);
    for (int i = 0; i < ndim; i++) {
        column->field.shape[i] = shape[i];
        column->rows.values *= shape[i];
    }
}

/* Texts of a program may be anything; what they refer to cannot be checked, but a size can. */
static bw_status check_texts(bw_context *ctx, const bwi_column *column, const char *where)
{
    const bwi_host_rows *rows = &column->rows;
    if (column->field.role != BWI_ROLE_INPUT) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: only inputs may be text", where);
    }
    if (rows->axes != 1 || rows->stride[0] != (int64_t)sizeof(bw_text)) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: the texts of a sample must follow each other without gaps", where);
    }
    for (int64_t i = 0; i < column->samples; i++) {
        const bw_text *text = (const bw_text *)(const void *)((const char *)rows->data + i * rows->step);
        for (int64_t k = 0; k < rows->values; k++) {
            if (text[k].size < 0 || (text[k].size > 0 && !text[k].bytes)) {
                return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: text %lld of sample %lld has %s", where, (long long)k, (long long)i,
                                text[k].size < 0 ? "a negative size" : "a size, but no bytes");
            }
        }
    }
    return BW_OK;
}

bw_status bwi_dataset_add(bw_dataset *root, bwi_role role, const char *name, const bw_array *view, const char *where)
{
    bw_context *ctx = root->owned.ctx;
    int64_t strides[BW_MAX_NDIM] = {0};
    bw_status status = check_view(ctx, view, where);
    if (status != BW_OK) {
        return status;
    }
    if (!find_strides(view, strides)) {
        char shape[256];
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: shape %s with its strides is larger than memory can be", where,
                        bwi_format_shape(shape, view->ndim, view->shape));
    }
    bwi_column *column = &root->columns[root->column_count];
    *column = (bwi_column){.samples = view->shape[0], .rows = {.data = view->data, .step = strides[0]}};
    describe(column, role, name, view->dtype, view->ndim - 1, view->shape + 1);
    join_axes(column, strides + 1);
    root->column_count++;
    return view->dtype == BW_TEXT ? check_texts(ctx, column, where) : BW_OK;
}

bw_status bwi_dataset_declare(bw_dataset *dataset, const bwi_field *field, const char *where)
{
    bw_context *ctx = dataset->owned.ctx;
    char shape[256];
    int64_t bytes = (int64_t)bwi_dtype_size(field->dtype);
    if (bytes == 0) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: %d is no data type", where, (int)field->dtype);
    }
    if (field->ndim < 0 || field->ndim >= BW_MAX_NDIM) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: a sample has 0 to %d axes, this one %d", where, BW_MAX_NDIM - 1,
                        field->ndim);
    }
    for (int i = 0; i < field->ndim; i++) {
        if (field->shape[i] < 1 || __builtin_mul_overflow(bytes, field->shape[i], &bytes) || bytes > INT64_MAX / 4) {
            return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: shape %s: extents must be positive and fit memory", where,
                            bwi_format_shape(shape, field->ndim, field->shape));
        }
    }
    bwi_column *column = &dataset->columns[dataset->column_count++];
    *column = (bwi_column){.samples = dataset->numbers, .rows = {.step = bytes, .axes = 1}};
    describe(column, field->role, field->name, field->dtype, field->ndim, field->shape);
    column->rows.extent[0] = column->rows.values;
    column->rows.stride[0] = (int64_t)bwi_dtype_size(field->dtype);
    return BW_OK;
}

void bwi_dataset_set_scale(bw_dataset *root, double scale)
{
    root->scale = root->facts.scale = scale;
    for (int i = 0; i < root->column_count; i++) {
        root->columns[i].rows.scale = root->columns[i].field.role == BWI_ROLE_INPUT ? scale : 1;
    }
}

bw_status bwi_dataset_reshape(bw_dataset *root, int ndim, const int64_t *shape, const char *where)
{
    char found[256], wanted[256];
    if (ndim < 0 || ndim >= BW_MAX_NDIM) {
        return bwi_fail(root->owned.ctx, BW_INVALID_ARGUMENT, "%sa shape of %d extents; a sample has at most %d", where, ndim,
                        BW_MAX_NDIM - 1);
    }
    for (int i = 0; i < root->column_count && ndim > 0; i++) {
        bwi_column *column = &root->columns[i];
        int64_t values = 1;
        bool right = true;
        if (column->field.role != BWI_ROLE_INPUT || column->field.dtype == BW_TEXT) {
            continue;
        }
        for (int k = 0; k < ndim; k++) {
            right = right && shape[k] > 0 && !__builtin_mul_overflow(values, shape[k], &values);
        }
        if (!right || values != column->rows.values) {
            return bwi_fail(root->owned.ctx, BW_INVALID_ARGUMENT, "%sinputs of shape %s cannot have the shape %s", where,
                            bwi_format_shape(found, column->field.ndim, column->field.shape),
                            bwi_format_shape(wanted, ndim, shape));
        }
        column->field.ndim = ndim;
        memcpy(column->field.shape, shape, (size_t)ndim * sizeof *shape);
    }
    return BW_OK;
}

bw_status bwi_dataset_map_file(bw_dataset *root, const char *path, bwi_bytes **bytes)
{
    bw_context *ctx = root->owned.ctx;
    bwi_bytes *files = bwi_grow(ctx, root->files, (size_t)root->file_count, (size_t)root->file_count + 1, sizeof *files);
    if (!files) {
        return BW_RESOURCE_EXHAUSTED;
    }
    root->files = files;
    bw_status status = bwi_file_map(ctx, &files[root->file_count], path);
    if (status == BW_OK) {
        *bytes = &files[root->file_count++];
    }
    return status;
}

/* Makes the name that the column would have in a file: "x", "y_age" and so on. */
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
        if (column->samples != first->samples) {
            return bwi_fail(root->owned.ctx, BW_INVALID_ARGUMENT, "%s%s has %lld samples, %s has %lld", where,
                            column_name(name, first), (long long)first->samples, column_name(other, column),
                            (long long)column->samples);
        }
    }
    root->count = root->numbers = first->samples;
    return BW_OK;
}

int bwi_dataset_fields(const bw_dataset *dataset)
{
    return dataset->content->column_count;
}

const bwi_field *bwi_dataset_field(const bw_dataset *dataset, int field)
{
    return &dataset->content->columns[field].field;
}

int bwi_dataset_find(const bw_dataset *dataset, bwi_role role, int index)
{
    for (int i = 0; i < dataset->content->column_count; i++) {
        if (dataset->content->columns[i].field.role == role && index-- == 0) {
            return i;
        }
    }
    return -1;
}

int64_t bwi_dataset_batch(const bw_dataset *dataset)
{
    return dataset->batch;
}

int64_t bwi_dataset_largest_batch(const bw_dataset *dataset)
{
    return dataset->largest < dataset->count ? dataset->largest : dataset->count;
}

const bwi_facts *bwi_dataset_facts(const bw_dataset *dataset)
{
    while (dataset->upstream) {
        dataset = dataset->upstream;
    }
    return &dataset->facts;
}

const char *bw_dataset_class(const bw_dataset *dataset, int number)
{
    const bwi_facts *facts = dataset ? bwi_dataset_facts(dataset) : NULL;
    return facts && number >= 0 && number < facts->classes ? facts->class_name[number] : NULL;
}

static const bwi_feature *find_feature(const bw_dataset *dataset, int column)
{
    const bwi_facts *facts = dataset ? bwi_dataset_facts(dataset) : NULL;
    return facts && column >= 0 && column < facts->features ? &facts->feature[column] : NULL;
}

bool bw_dataset_column(const bw_dataset *dataset, int column, const char **name, int *categories)
{
    const bwi_feature *feature = find_feature(dataset, column);
    if (feature) {
        *name = feature->name;
        *categories = feature->categories;
    }
    return feature;
}

const char *bw_dataset_category(const bw_dataset *dataset, int column, int number)
{
    const bwi_feature *feature = find_feature(dataset, column);
    return feature && number >= 0 && number < feature->categories ? feature->category[number] : NULL;
}

bw_context *bwi_dataset_context(const bw_dataset *dataset)
{
    return dataset ? dataset->owned.ctx : NULL;
}

int64_t bw_dataset_count(const bw_dataset *dataset)
{
    return dataset && !dataset->live ? dataset->count : -1;
}

int bw_dataset_shape(const bw_dataset *dataset, int64_t *shape)
{
    int input = dataset ? bwi_dataset_find(dataset, BWI_ROLE_INPUT, 0) : -1;
    if (input < 0 || !shape) {
        return -1;
    }
    const bwi_field *field = bwi_dataset_field(dataset, input);
    for (int i = 0; i < field->ndim; i++) {
        shape[i] = field->shape[i];
    }
    return field->ndim;
}
