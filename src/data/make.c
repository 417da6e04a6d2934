/*
 * From samples to tiles, whatever the kind of dataset: kinds that gather write the tile themselves; kinds that make a sample at a
 * time write it in row-major order, from where it is put into the tile. Runs on several threads at once. The memory in
 * between is a few slots that stand ready: nothing is allocated here while gathering.
 */
#include "data/internal.h"

#include <sched.h>
#include <stdio.h>
#include <string.h>

/* Slots come in groups; a group is added without touching the others, since threads may be using them. */
typedef struct group {
    _Atomic(struct group *) next;
    int slots;
    unsigned char *memory;
    atomic_bool *busy; /* [slot] */
} group;

struct bwi_scratch {
    size_t bytes; /* of a slot: one sample */
    _Atomic(group *) first;
};

/* ---- Scratch ---- */

static size_t column_bytes(const bwi_column *column)
{
    return bwi_size_align((size_t)column->values * bwi_dtype_size(column->field.dtype), BWI_CACHE_LINE);
}

static bw_status add_group(bw_context *ctx, bwi_scratch *scratch, int slots)
{
    group *made = bwi_allocate(ctx, 1, sizeof *made);
    unsigned char *memory = made ? bwi_allocate(ctx, (size_t)slots, scratch->bytes) : NULL;
    atomic_bool *busy = memory ? bwi_allocate(ctx, (size_t)slots, sizeof *busy) : NULL;
    if (!busy) {
        bwi_release(ctx, memory);
        bwi_release(ctx, made);
        return BW_RESOURCE_EXHAUSTED;
    }
    for (int i = 0; i < slots; i++) {
        atomic_init(&busy[i], false);
    }
    made->slots = slots;
    made->memory = memory;
    made->busy = busy;
    atomic_init(&made->next, atomic_load(&scratch->first));
    atomic_store(&scratch->first, made);
    return BW_OK;
}

bw_status bwi_scratch_open(bw_dataset *dataset)
{
    bw_context *ctx = dataset->owned.ctx;
    bwi_scratch *scratch = bwi_allocate(ctx, 1, sizeof *scratch);
    if (!scratch) {
        return BW_RESOURCE_EXHAUSTED;
    }
    dataset->scratch = scratch;
    atomic_init(&scratch->first, NULL);
    for (int i = 0; i < dataset->column_count; i++) {
        scratch->bytes = bwi_size_add(scratch->bytes, column_bytes(&dataset->columns[i]));
    }
    return add_group(ctx, scratch, ctx->workers);
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

size_t bwi_scratch_bytes(const bw_dataset *dataset)
{
    size_t bytes = 0;
    for (; dataset; dataset = dataset->upstream) {
        bytes = bwi_size_add(bytes, dataset->scratch ? dataset->scratch->bytes : 0);
        bytes = bwi_size_add(bytes, dataset->second ? bwi_scratch_bytes(dataset->second) : 0);
    }
    return bytes;
}

bw_status bwi_scratch_reserve(const bw_dataset *dataset, int threads)
{
    bw_status status = BW_OK;
    for (; dataset && status == BW_OK; dataset = dataset->upstream) {
        if (dataset->scratch) {
            status = add_group(dataset->owned.ctx, dataset->scratch, threads);
        }
        if (dataset->second && status == BW_OK) {
            status = bwi_scratch_reserve(dataset->second, threads);
        }
    }
    return status;
}

void bwi_scratch_free(bw_context *ctx, bwi_scratch *scratch)
{
    if (!scratch) {
        return;
    }
    for (group *at = atomic_load(&scratch->first), *next; at; at = next) {
        next = atomic_load(&at->next);
        bwi_release(ctx, at->memory);
        bwi_release(ctx, at->busy);
        bwi_release(ctx, at);
    }
    bwi_release(ctx, scratch);
}

/* There are as many slots as threads; only users of the interface that have more of them ever wait. */
static bwi_scratch_slot take_slot(bwi_scratch *scratch)
{
    for (;; sched_yield()) {
        for (group *at = atomic_load(&scratch->first); at; at = atomic_load(&at->next)) {
            for (int i = 0; i < at->slots; i++) {
                if (!atomic_exchange_explicit(&at->busy[i], true, memory_order_acquire)) {
                    return (bwi_scratch_slot){at->memory + (size_t)i * scratch->bytes, &at->busy[i]};
                }
            }
        }
    }
}

bwi_scratch_slot bwi_scratch_slot_take(const bw_dataset *dataset, void **values)
{
    bwi_scratch_slot slot = take_slot(dataset->scratch);
    unsigned char *at = slot.at;
    for (int i = 0; i < dataset->column_count; i++) {
        values[i] = at;
        at += column_bytes(&dataset->columns[i]);
    }
    return slot;
}

void bwi_scratch_slot_give(bwi_scratch_slot slot)
{
    if (slot.busy) {
        atomic_store_explicit(slot.busy, false, memory_order_release);
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

bw_status bwi_sample_error(const bw_dataset *dataset, int64_t number, char *error, bw_status status, const char *format, ...)
{
    if (!error || error[0]) {
        return status;
    }
    char place[BWI_GATHER_ERROR / 2];
    va_list arguments;
    bwi_dataset_place(dataset, number, place, sizeof place);
    int length = snprintf(error, BWI_GATHER_ERROR, "sample %lld%s%s%s: ", (long long)number, place[0] ? " (" : "", place,
                          place[0] ? ")" : "");
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
    return content->source->make && content->scale == 1.0 ? content->columns[field].field.dtype : bwi_work_dtype(dataset, field);
}

/* ---- Gathering and making ---- */

/* The values stand as those of a dataset with one sample. */
static bw_status put(const bw_dataset *content, int field, bw_dtype dtype, double scale, const void *values, int64_t number,
                     const bwi_destination *to, char *error)
{
    bwi_column column = content->columns[field];
    int64_t zero = 0;
    int64_t bad;
    column.data = values;
    column.field.dtype = dtype;
    column.axes = 1;
    column.extent[0] = column.values;
    column.stride[0] = (int64_t)bwi_dtype_size(dtype);
    bw_status status = bwi_column_gather(&column, scale, &zero, 1, to, &bad);
    if (status != BW_OK && bad >= 0) {
        bwi_sample_error(content, number, error, status, "its %s cannot be read as %s",
                         (const char *[]){"input", "target", "weight"}[column.field.role], bwi_dtype_name(to->dtype));
    }
    return status;
}

/* A sample as its kind makes it. */
static bw_status put_made(const bw_dataset *content, int field, const void *values, int64_t number, const bwi_destination *to,
                          char *error)
{
    const bwi_field *f = &content->columns[field].field;
    return put(content, field, f->dtype, f->role == BWI_ROLE_INPUT ? content->scale : 1, values, number, to, error);
}

bw_status bwi_content_put(const bw_dataset *dataset, int field, const void *values, int64_t number, const bwi_destination *to,
                          char *error)
{
    return put(dataset->content, field, bwi_make_dtype(dataset, field), 1, values, number, to, error);
}

static bool in_place(const bw_dataset *content, int field, const bwi_destination *to)
{
    const bwi_column *column = &content->columns[field];
    return column->field.dtype == to->dtype && (to->block == to->c || (to->h * to->w == 1 && to->c % to->block == 0)) &&
           (content->scale == 1.0 || column->field.role != BWI_ROLE_INPUT) && to->h * to->w * to->c == column->values;
}

/* One sample; what a kind makes as a whole needs places for what is not wanted, too. */
static bw_status make_sample(const bw_dataset *content, int epoch, int64_t number, void *const *values, char *error)
{
    bool all = true;
    for (int f = 0; f < content->column_count; f++) {
        all = all && values[f];
    }
    if (all || !content->source->whole) {
        return content->source->make(content, epoch, number, values, error);
    }
    void *places[BWI_FIELD_LIMIT];
    bwi_scratch_slot slot = bwi_scratch_slot_take(content, places);
    for (int f = 0; f < content->column_count; f++) {
        places[f] = values[f] ? values[f] : places[f];
    }
    bw_status status = content->source->make(content, epoch, number, places, error);
    bwi_scratch_slot_give(slot);
    return status;
}

static bw_status gather_made(const bw_dataset *content, const bwi_demand *demand)
{
    int field = demand->field;
    bool direct = in_place(content, field, demand->to);
    int64_t step = bwi_destination_values(demand->to) * 4;
    void *places[BWI_FIELD_LIMIT] = {NULL}, *values[BWI_FIELD_LIMIT] = {NULL};
    bwi_scratch_slot slot = direct ? (bwi_scratch_slot){NULL, NULL} : bwi_scratch_slot_take(content, places);
    bwi_destination to = *demand->to;
    bw_status status = BW_OK;
    for (int64_t i = 0; i < demand->n && status == BW_OK; i++) {
        if (content->source->whole && !direct) {
            memcpy(values, places, sizeof values);
        }
        values[field] = direct ? to.data : places[field];
        status = make_sample(content, demand->epoch, demand->numbers[i], values, demand->error);
        if (status == BW_OK && !direct) {
            status = put_made(content, field, values[field], demand->numbers[i], &to, demand->error);
        }
        to.data = (unsigned char *)to.data + step;
    }
    bwi_scratch_slot_give(slot);
    return status;
}

/* Whether 0 <= number < limit: the sign of number or of limit - 1 - number says if not. */
static bool all_below(int64_t limit, const int64_t *numbers, int64_t n)
{
    typedef int64_t pair __attribute__((vector_size(16)));
    int64_t last = limit - 1;
    pair signs = {0}, v;
    for (int64_t i = 0; i + 1 < n; i += 2) {
        memcpy(&v, numbers + i, sizeof v);
        signs |= v | (last - v);
    }
    int64_t odd = n % 2 ? numbers[n - 1] : 0;
    return (signs[0] | signs[1] | odd | (last - odd)) >= 0;
}

bw_status bwi_content_gather(const bw_dataset *dataset, const bwi_demand *demand)
{
    const bw_dataset *content = dataset->content;
    if (demand->field < 0 || demand->field >= content->column_count) {
        return BW_INVALID_ARGUMENT;
    }
    if (!all_below(content->numbers, demand->numbers, demand->n)) {
        return BW_INVALID_ARGUMENT;
    }
    return content->source->gather ? content->source->gather(content, demand) : gather_made(content, demand);
}

/* Fields one after another, each gathered in row-major order. */
static bw_status gather_fields(const bw_dataset *content, int epoch, int64_t number, void *const *values, char *error)
{
    bw_status status = BW_OK;
    for (int f = 0; f < content->column_count && status == BW_OK; f++) {
        int64_t c = content->columns[f].values;
        bwi_destination to = {.data = values[f], .dtype = bwi_work_dtype(content, f), .h = 1, .w = 1, .c = c, .block = c};
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
    if (content->source->make && content->scale == 1.0) {
        return make_sample(content, epoch, number, values, error);
    }
    return bwi_content_work(dataset, epoch, number, values, error);
}

bw_status bwi_content_work(const bw_dataset *dataset, int epoch, int64_t number, void *const *values, char *error)
{
    const bw_dataset *content = dataset->content;
    if (!content->source->make) {
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
        made[f] = values[f] || content->source->whole ? places[f] : NULL;
    }
    bw_status status = content->source->make(content, epoch, number, made, error);
    for (int f = 0; f < content->column_count && status == BW_OK; f++) {
        int64_t c = content->columns[f].values;
        bwi_destination to = {.data = values[f], .dtype = bwi_work_dtype(content, f), .h = 1, .w = 1, .c = c, .block = c};
        if (values[f]) {
            status = put_made(content, f, made[f], number, &to, error);
        }
    }
    bwi_scratch_slot_give(slot);
    return status;
}

static bw_status begin_chain(const bw_dataset *dataset, const bw_dataset *top)
{
    bw_status status = BW_OK;
    if (dataset->upstream) {
        status = begin_chain(dataset->upstream, top);
    }
    if (status == BW_OK && dataset->second && dataset->source->renumbers) {
        status = begin_chain(dataset->second, top);
    }
    if (status == BW_OK && dataset->source->begin) {
        status = dataset->source->begin(dataset, top);
    }
    return status;
}

bw_status bwi_dataset_begin_below(const bw_dataset *dataset)
{
    return begin_chain(dataset, dataset);
}

bw_status bwi_dataset_prepare(const bw_dataset *dataset)
{
    return begin_chain(dataset, dataset);
}

bool bwi_dataset_begins(const bw_dataset *dataset)
{
    bool begins = dataset->prefetcher || dataset->live;
    for (; dataset && !begins; dataset = dataset->upstream) {
        begins = dataset->source->begin || (dataset->second && dataset->source->renumbers && bwi_dataset_begins(dataset->second));
    }
    return begins;
}

bw_status bwi_dataset_begin(const bw_dataset *dataset, const bwi_gather_schedule *schedule)
{
    bool live = dataset->live;
    bw_status status = live ? bwi_stream_pull(dataset, schedule->first + schedule->count) : BW_OK;
    if (status == BW_OK) {
        status = begin_chain(dataset, dataset);
    }
    /* What is made ahead would be looked for beyond what has come. */
    return status == BW_OK && dataset->prefetcher && !live ? bwi_prefetcher_begin(dataset->prefetcher, dataset, schedule) : status;
}

bw_status bwi_dataset_gather(const bw_dataset *dataset, int field, int epoch, const int64_t *numbers, int64_t n,
                             const bwi_destination *to, char *error)
{
    bwi_demand demand = {.field = field, .epoch = epoch, .numbers = numbers, .n = n, .to = to, .error = error};
    if (dataset->prefetcher && bwi_prefetcher_runs(dataset->prefetcher)) {
        return bwi_prefetcher_gather(dataset->prefetcher, dataset, &demand);
    }
    return bwi_content_gather(dataset, &demand);
}
