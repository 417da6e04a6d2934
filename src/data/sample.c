/*
 * Makes one sample in host memory, whatever the kind of dataset: kinds that make samples write it themselves; from the others its
 * fields are gathered. This runs on several threads at once. The file also knows how a message names a sample.
 */
#include "data/ahead/ahead.h"

#include <stdio.h>

/* ---- Messages ---- */

char *bwi_dataset_location(const bw_dataset *dataset, int64_t number, char *text, size_t size)
{
    text[0] = 0;
    for (; dataset; dataset = dataset->upstream) {
        if (dataset->kind->locate) {
            dataset->kind->locate(dataset, number, text, size);
            break;
        }
    }
    return text;
}

bool bw_dataset_file(const bw_dataset *dataset, int64_t position, char *text, size_t size)
{
    const bw_dataset *source = dataset;
    while (source && !source->kind->locate && source->upstream) {
        source = source->upstream;
    }
    if (!source || !source->kind->files || bwi_dataset_live(dataset) || position < 0 || position >= dataset->count || size == 0) {
        return false;
    }
    bwi_dataset_location(source, bwi_dataset_number(dataset, 0, position), text, size);
    return true;
}

bw_status bwi_sample_error(const bw_dataset *dataset, int64_t number, char *error, bw_status status, const char *format, ...)
{
    if (!error || error[0]) {
        return status;
    }
    char location[BWI_GATHER_ERROR / 2];
    va_list arguments;
    bwi_dataset_location(dataset, number, location, sizeof location);
    int length = snprintf(error, BWI_GATHER_ERROR, "sample %lld%s%s%s: ", (long long)number, location[0] ? " (" : "", location,
                          location[0] ? ")" : "");
    va_start(arguments, format);
    bwi_format(error + length, (size_t)(BWI_GATHER_ERROR - length), format, arguments);
    va_end(arguments);
    return status;
}

/* ---- Types ---- */

bw_dtype bwi_work_dtype(const bw_dataset *dataset, int field)
{
    const bw_dataset *content = dataset->content;
    const bwi_field *f = &content->columns[field].field;
    bool input = f->role == BWI_ROLE_INPUT;
    if (f->dtype == BW_TEXT) {
        return BW_TEXT;
    }
    if (f->dtype == BW_F16 || f->dtype == BW_F32 || f->dtype == BW_F64 || f->role == BWI_ROLE_WEIGHT) {
        return BW_F32;
    }
    if (input && (content->scale != 1.0 || bwi_dtype_size(f->dtype) == 1)) {
        return BW_F32;
    }
    return BW_I32;
}

bw_dtype bwi_make_dtype(const bw_dataset *dataset, int field)
{
    const bw_dataset *content = dataset->content;
    return content->kind->make && content->scale == 1.0 ? content->columns[field].field.dtype : bwi_work_dtype(dataset, field);
}

/* ---- Making ---- */

/* A kind that makes all fields at once needs memory even for those that are not needed. */
static bw_status make_sample(const bw_dataset *content, int epoch, int64_t number, void *const *values, char *error)
{
    bool all = true;
    for (int f = 0; f < content->column_count; f++) {
        all = all && values[f];
    }
    if (all || !content->kind->whole) {
        return content->kind->make(content, epoch, number, values, error);
    }
    void *places[BWI_FIELD_LIMIT];
    bwi_scratch_slot slot = bwi_scratch_slot_take(content, places);
    for (int f = 0; f < content->column_count; f++) {
        places[f] = values[f] ? values[f] : places[f];
    }
    bw_status status = content->kind->make(content, epoch, number, places, error);
    bwi_scratch_slot_give(slot);
    return status;
}

/* Gathers the fields one after another, each in row-major order. */
static bw_status gather_fields(const bw_dataset *content, int epoch, int64_t number, void *const *values, char *error)
{
    bw_status status = BW_OK;
    for (int f = 0; f < content->column_count && status == BW_OK; f++) {
        bwi_destination to = bwi_host_destination(values[f], bwi_work_dtype(content, f), content->columns[f].rows.values);
        bwi_demand demand = {.field = f, .epoch = epoch, .numbers = &number, .n = 1, .to = &to, .error = error};
        if (values[f]) {
            status = bwi_content_gather(content, &demand);
        }
    }
    return status;
}

bw_status bwi_content_make(const bw_dataset *dataset, int epoch, int64_t number, void *const *values, char *error)
{
    const bw_dataset *content = dataset->content;
    if (content->kind->make && content->scale == 1.0) {
        return make_sample(content, epoch, number, values, error);
    }
    return bwi_content_work(dataset, epoch, number, values, error);
}

/* A sample is made directly at its destination if no field changes its type; otherwise it is made in scratch and converted from
 * there. */
bw_status bwi_content_work(const bw_dataset *dataset, int epoch, int64_t number, void *const *values, char *error)
{
    const bw_dataset *content = dataset->content;
    if (!content->kind->make) {
        return gather_fields(content, epoch, number, values, error);
    }
    void *places[BWI_FIELD_LIMIT], *made[BWI_FIELD_LIMIT];
    bool direct = content->scale == 1.0;
    for (int f = 0; f < content->column_count; f++) {
        direct = direct && content->columns[f].field.dtype == bwi_work_dtype(content, f);
    }
    if (direct) {
        return make_sample(content, epoch, number, values, error);
    }
    bwi_scratch_slot slot = bwi_scratch_slot_take(content, places);
    for (int f = 0; f < content->column_count; f++) {
        made[f] = values[f] || content->kind->whole ? places[f] : NULL;
    }
    bw_status status = content->kind->make(content, epoch, number, made, error);
    for (int f = 0; f < content->column_count && status == BW_OK; f++) {
        bwi_destination to = bwi_host_destination(values[f], bwi_work_dtype(content, f), content->columns[f].rows.values);
        if (values[f]) {
            status = bwi_made_put(content, f, made[f], number, &to, error);
        }
    }
    bwi_scratch_slot_give(slot);
    return status;
}

bw_dataset *bwi_dataset_working(bw_dataset *made, bw_status status)
{
    bw_context *ctx = made->owned.ctx;
    if (status == BW_OK) {
        status = bwi_scratch_open(made);
    }
    if (status == BW_OK && !made->prefetcher) {
        status = bwi_prefetcher_attach(made);
    }
    if (status == BW_OK) {
        return made;
    }
    bw_dataset_free(made);
    return bwi_pass_on(ctx);
}
