/*
 * From samples to tiles, whatever the kind of dataset: kinds that gather write the tile themselves; kinds that make a sample at a
 * time write it in row-major order, from where it is put into the tile. Runs on several threads at once. The memory in
 * between is a few slots that stand ready: nothing is allocated here while gathering.
 */
#include "data/dataset.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

struct bwi_scratch {
    size_t bytes; /* of a slot: one sample */
    int slots;
    unsigned char *memory;
    atomic_bool *busy; /* [slot] */
};

/* ---- Scratch ---- */

static size_t column_bytes(const bwi_column *column)
{
    return bwi_size_align((size_t)column->values * bwi_dtype_size(column->field.dtype), BWI_CACHE_LINE);
}

static bw_status resize(bw_context *ctx, bwi_scratch *scratch, int slots)
{
    unsigned char *memory = bwi_allocate(ctx, (size_t)slots, scratch->bytes);
    atomic_bool *busy = memory ? bwi_allocate(ctx, (size_t)slots, sizeof *busy) : NULL;
    if (!busy) {
        bwi_release(ctx, memory);
        return BW_RESOURCE_EXHAUSTED;
    }
    for (int i = 0; i < slots; i++)
        atomic_init(&busy[i], false);
    bwi_release(ctx, scratch->memory);
    bwi_release(ctx, scratch->busy);
    scratch->memory = memory;
    scratch->busy = busy;
    scratch->slots = slots;
    return BW_OK;
}

bw_status bwi_scratch_open(bw_dataset *dataset)
{
    bw_context *ctx = dataset->owned.ctx;
    bwi_scratch *scratch = bwi_allocate(ctx, 1, sizeof *scratch);
    if (!scratch)
        return BW_RESOURCE_EXHAUSTED;
    dataset->scratch = scratch;
    for (int i = 0; i < dataset->column_count; i++)
        scratch->bytes = bwi_size_add(scratch->bytes, column_bytes(&dataset->columns[i]));
    return resize(ctx, scratch, ctx->workers);
}

bw_status bwi_scratch_reserve(const bw_dataset *dataset, int threads)
{
    bw_status status = BW_OK;
    for (; dataset && status == BW_OK; dataset = dataset->upstream) {
        if (dataset->scratch && dataset->scratch->slots < threads)
            status = resize(dataset->owned.ctx, dataset->scratch, threads);
        if (dataset->second && status == BW_OK)
            status = bwi_scratch_reserve(dataset->second, threads);
    }
    return status;
}

void bwi_scratch_free(bw_context *ctx, bwi_scratch *scratch)
{
    if (!scratch)
        return;
    bwi_release(ctx, scratch->memory);
    bwi_release(ctx, scratch->busy);
    bwi_release(ctx, scratch);
}

/* There are as many slots as threads; only users of the interface that have more of them ever wait. */
static int take_slot(const bwi_scratch *scratch)
{
    for (;;) {
        for (int i = 0; i < scratch->slots; i++) {
            if (!atomic_exchange_explicit(&scratch->busy[i], true, memory_order_acquire))
                return i;
        }
        sched_yield();
    }
}

static void give_slot(const bwi_scratch *scratch, int slot)
{
    atomic_store_explicit(&scratch->busy[slot], false, memory_order_release);
}

/* Where the fields of a sample stand in a slot; NULL for those that `wanted` (NULL: all) leaves out. */
static void place_fields(const bw_dataset *content, int slot, void *const *wanted, void **values)
{
    unsigned char *at = content->scratch->memory + (size_t)slot * content->scratch->bytes;
    for (int i = 0; i < content->column_count; i++) {
        values[i] = wanted && !wanted[i] ? NULL : at;
        at += column_bytes(&content->columns[i]);
    }
}

/* ---- Messages ---- */

char *bwi_dataset_place(const bw_dataset *dataset, int64_t number, char *text, size_t room)
{
    text[0] = 0;
    for (; dataset; dataset = dataset->upstream) {
        if (dataset->source->place) {
            dataset->source->place(dataset, number, text, room);
            break;
        }
    }
    return text;
}

bw_status bwi_trouble(const bw_dataset *dataset, int64_t number, char *trouble, bw_status status, const char *format, ...)
{
    if (!trouble || trouble[0])
        return status;
    char place[BWI_GATHER_TROUBLE / 2];
    va_list arguments;
    bwi_dataset_place(dataset, number, place, sizeof place);
    const int length = snprintf(trouble, BWI_GATHER_TROUBLE, "sample %lld%s%s%s: ", (long long)number, place[0] ? " (" : "", place,
                                place[0] ? ")" : "");
    va_start(arguments, format);
    bwi_format(trouble + length, (size_t)(BWI_GATHER_TROUBLE - length), format, arguments);
    va_end(arguments);
    return status;
}

/* ---- Types ---- */

bw_dtype bwi_work_dtype(const bw_dataset *dataset, int field)
{
    const bw_dataset *content = dataset->content;
    const bwi_field *f = &content->columns[field].field;
    const bool input = f->role == BWI_ROLE_INPUT;
    if (f->dtype == BW_F16 || f->dtype == BW_F32 || f->dtype == BW_F64 || f->role == BWI_ROLE_WEIGHT)
        return BW_F32;
    if (input && (content->scale != 1.0 || bwi_dtype_size(f->dtype) == 1))
        return BW_F32;
    return BW_I32;
}

bw_dtype bwi_make_dtype(const bw_dataset *dataset, int field)
{
    const bw_dataset *content = dataset->content;
    return content->source->make && content->scale == 1.0 ? content->columns[field].field.dtype : bwi_work_dtype(dataset, field);
}

/* ---- Gathering and making ---- */

/* A sample's values from a buffer, as column 0 of a dataset with one sample. */
static bw_status put(const bw_dataset *content, int field, const void *values, int64_t number, const bwi_destination *to,
                     char *trouble)
{
    bwi_column column = content->columns[field];
    const int64_t zero = 0;
    int64_t bad;
    column.data = values;
    const double scale = column.field.role == BWI_ROLE_INPUT ? content->scale : 1;
    const bw_status status = bwi_column_gather(&column, scale, &zero, 1, to, &bad);
    if (status != BW_OK && bad >= 0)
        bwi_trouble(content, number, trouble, status, "its %s cannot be read as %s",
                    (const char *[]){"input", "target", "weight"}[column.field.role], bwi_dtype_name(to->dtype));
    return status;
}

static bool in_place(const bw_dataset *content, int field, const bwi_destination *to)
{
    const bwi_column *column = &content->columns[field];
    return column->field.dtype == to->dtype && (to->block == to->c || (to->h * to->w == 1 && to->c % to->block == 0)) &&
           (content->scale == 1.0 || column->field.role != BWI_ROLE_INPUT) && to->h * to->w * to->c == column->values;
}

static bw_status gather_made(const bw_dataset *content, const bwi_demand *demand)
{
    const bool direct = in_place(content, demand->field, demand->to);
    const int slot = direct ? -1 : take_slot(content->scratch);
    const int64_t step = bwi_destination_values(demand->to) * 4;
    void *values[BWI_FIELD_LIMIT] = {NULL}, *wanted[BWI_FIELD_LIMIT] = {NULL};
    bwi_destination to = *demand->to;
    bw_status status = BW_OK;
    wanted[demand->field] = to.data;
    if (!direct)
        place_fields(content, slot, wanted, values);
    for (int64_t i = 0; i < demand->n && status == BW_OK; i++) {
        if (direct)
            values[demand->field] = to.data;
        status = content->source->make(content, demand->epoch, demand->numbers[i], values, demand->trouble);
        if (status == BW_OK && !direct)
            status = put(content, demand->field, values[demand->field], demand->numbers[i], &to, demand->trouble);
        to.data = (unsigned char *)to.data + step;
    }
    if (!direct)
        give_slot(content->scratch, slot);
    return status;
}

bw_status bwi_content_gather(const bw_dataset *dataset, const bwi_demand *demand)
{
    const bw_dataset *content = dataset->content;
    if (demand->field < 0 || demand->field >= content->column_count)
        return BW_INVALID_ARGUMENT;
    for (int64_t i = 0; i < demand->n; i++) {
        if (demand->numbers[i] < 0 || demand->numbers[i] >= content->numbers)
            return BW_INVALID_ARGUMENT;
    }
    return content->source->gather ? content->source->gather(content, demand) : gather_made(content, demand);
}

/* Fields one after another, each gathered in row-major order. */
static bw_status gather_fields(const bw_dataset *content, int epoch, int64_t number, void *const *values, char *trouble)
{
    bw_status status = BW_OK;
    for (int f = 0; f < content->column_count && status == BW_OK; f++) {
        const int64_t c = content->columns[f].values;
        const bwi_destination to = {.data = values[f], .dtype = bwi_work_dtype(content, f), .h = 1, .w = 1, .c = c, .block = c};
        const bwi_demand demand = {.field = f, .epoch = epoch, .numbers = &number, .n = 1, .to = &to, .trouble = trouble};
        if (values[f])
            status = bwi_content_gather(content, &demand);
    }
    return status;
}

bw_status bwi_content_make(const bw_dataset *dataset, int epoch, int64_t number, void *const *values, char *trouble)
{
    const bw_dataset *content = dataset->content;
    if (content->source->make && content->scale == 1.0)
        return content->source->make(content, epoch, number, values, trouble);
    return bwi_content_work(dataset, epoch, number, values, trouble);
}

bw_status bwi_content_work(const bw_dataset *dataset, int epoch, int64_t number, void *const *values, char *trouble)
{
    const bw_dataset *content = dataset->content;
    if (!content->source->make)
        return gather_fields(content, epoch, number, values, trouble);
    void *made[BWI_FIELD_LIMIT];
    bool direct = true;
    for (int f = 0; f < content->column_count; f++)
        direct = direct && content->columns[f].field.dtype == bwi_work_dtype(content, f);
    if (direct && content->scale == 1.0)
        return content->source->make(content, epoch, number, values, trouble);
    const int slot = take_slot(content->scratch);
    place_fields(content, slot, values, made);
    bw_status status = content->source->make(content, epoch, number, made, trouble);
    for (int f = 0; f < content->column_count && status == BW_OK; f++) {
        const int64_t c = content->columns[f].values;
        const bwi_destination to = {.data = values[f], .dtype = bwi_work_dtype(content, f), .h = 1, .w = 1, .c = c, .block = c};
        if (values[f])
            status = put(content, f, made[f], number, &to, trouble);
    }
    give_slot(content->scratch, slot);
    return status;
}

static bw_status begin_chain(const bw_dataset *dataset)
{
    bw_status status = BW_OK;
    if (dataset->upstream)
        status = begin_chain(dataset->upstream);
    if (status == BW_OK && dataset->second)
        status = begin_chain(dataset->second);
    if (status == BW_OK && dataset->source->begin)
        status = dataset->source->begin(dataset);
    return status;
}

bw_status bwi_dataset_begin(const bw_dataset *dataset, const bwi_walk *walk)
{
    (void)walk;
    return begin_chain(dataset);
}

bw_status bwi_dataset_gather(const bw_dataset *dataset, int field, int epoch, const int64_t *numbers, int64_t n,
                             const bwi_destination *to, char *trouble)
{
    const bwi_demand demand = {.field = field, .epoch = epoch, .numbers = numbers, .n = n, .to = to, .trouble = trouble};
    return bwi_content_gather(dataset, &demand);
}
