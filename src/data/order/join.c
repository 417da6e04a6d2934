/*
 * Datasets made of others: one after the other (concatenate), in alternating blocks (interleave), side by side (zip), or several
 * times (repeat). Nothing is copied: numbers are translated, and each part gathers its own samples into the tile. A sample's
 * number is
 *
 *   concatenate, interleave   its number in the first dataset, or after all of those its number in the second
 *   zip                       its number in the first times the count of numbers of the second, plus its number in the second
 *   repeat                    the repetition times the count of numbers, plus its number; each repetition is another epoch below
 */
#include "data/ahead/ahead.h"
#include "data/order/order.h"

#include <stdio.h>
#include <string.h>

#define RUN 64

typedef struct joined {
    int64_t times; /* of repeat */
    int64_t block; /* of interleave */
    int split;     /* of zip: the first field that belongs to the second */
} joined;

/* The part that a sample comes from, with its field, epoch and number there. */
typedef struct origin {
    const bw_dataset *part;
    int field, epoch;
    int64_t number;
} origin;

typedef origin (*finder)(const bw_dataset *dataset, int field, int epoch, int64_t number);

static origin find_joined(const bw_dataset *dataset, int field, int epoch, int64_t number)
{
    bool first = number < dataset->upstream->numbers;
    return (origin){first ? dataset->upstream : dataset->second, field, epoch,
                    first ? number : number - dataset->upstream->numbers};
}

static origin find_zipped(const bw_dataset *dataset, int field, int epoch, int64_t number)
{
    const joined *state = dataset->state;
    int64_t width = dataset->second->numbers;
    if (field < state->split) {
        return (origin){dataset->upstream, field, epoch, number / width};
    }
    return (origin){dataset->second, field - state->split, epoch, number % width};
}

static origin find_repeated(const bw_dataset *dataset, int field, int epoch, int64_t number)
{
    const joined *state = dataset->state;
    int64_t width = dataset->upstream->numbers;
    int64_t pass = (int64_t)epoch * state->times + number / width;
    return (origin){dataset->upstream, field, epoch < 0 ? epoch : (int)(pass & INT32_MAX), number % width};
}

/* Runs of samples that come from one part, in one epoch, are gathered together. */
static bw_status gather_by(finder find, const bw_dataset *dataset, const bwi_demand *demand)
{
    bwi_destination to = *demand->to;
    bw_status status = BW_OK;
    for (int64_t i = 0; i < demand->n && status == BW_OK;) {
        int64_t numbers[RUN];
        int count = 0;
        origin first = find(dataset, demand->field, demand->epoch, demand->numbers[i]);
        for (; count < RUN && i + count < demand->n; count++) {
            origin next = find(dataset, demand->field, demand->epoch, demand->numbers[i + count]);
            if (next.part != first.part || next.epoch != first.epoch) {
                break;
            }
            numbers[count] = next.number;
        }
        bwi_demand part = {
            .field = first.field, .epoch = first.epoch, .numbers = numbers, .n = count, .to = &to, .error = demand->error};
        status = bwi_content_gather(first.part, &part);
        bwi_destination_advance(&to, count);
        i += count;
    }
    return status;
}

static bw_status gather_joined(const bw_dataset *dataset, const bwi_demand *demand)
{
    return gather_by(find_joined, dataset, demand);
}

static bw_status gather_zipped(const bw_dataset *dataset, const bwi_demand *demand)
{
    return gather_by(find_zipped, dataset, demand);
}

static bw_status gather_repeated(const bw_dataset *dataset, const bwi_demand *demand)
{
    return gather_by(find_repeated, dataset, demand);
}

/* ---- Orders ---- */

static int64_t concatenated_number(const bw_dataset *dataset, uint64_t epoch, int64_t position)
{
    int64_t first = dataset->upstream->count;
    if (position < first) {
        return bwi_number_at(dataset->upstream, epoch, position);
    }
    return dataset->upstream->numbers + bwi_number_at(dataset->second, epoch, position - first);
}

/* Alternates blocks of the two datasets, as long as both have whole ones; then comes what remains of each. */
static int64_t interleaved_number(const bw_dataset *dataset, uint64_t epoch, int64_t position)
{
    const joined *state = dataset->state;
    int64_t a = dataset->upstream->count, b = dataset->second->count, block = state->block;
    int64_t rounds = (a < b ? a : b) / block, both = rounds * block;
    int64_t first = -1, second = -1;
    if (position < 2 * both) {
        int64_t round = position / (2 * block), within = position % (2 * block);
        if (within < block) {
            first = round * block + within;
        } else {
            second = round * block + within - block;
        }
    } else if (position - 2 * both < a - both) {
        first = position - both;
    } else {
        second = position - a;
    }
    return first >= 0 ? bwi_number_at(dataset->upstream, epoch, first)
                      : dataset->upstream->numbers + bwi_number_at(dataset->second, epoch, second);
}

static int64_t zipped_number(const bw_dataset *dataset, uint64_t epoch, int64_t position)
{
    return bwi_number_at(dataset->upstream, epoch, position) * dataset->second->numbers +
           bwi_number_at(dataset->second, epoch, position);
}

static int64_t repeated_number(const bw_dataset *dataset, uint64_t epoch, int64_t position)
{
    const joined *state = dataset->state;
    int64_t count = dataset->upstream->count, pass = position / count;
    if (epoch != BWI_EPOCH_FROZEN) {
        epoch = epoch * (uint64_t)state->times + (uint64_t)pass;
    }
    return pass * dataset->upstream->numbers + bwi_number_at(dataset->upstream, epoch, position % count);
}

/* The size of a batch in a part of the span, from position `first` on. */
static int64_t batch_of_part(const bw_dataset *part, int epoch, bwi_span *at, int64_t first, int64_t end)
{
    bwi_span within = {.begin = at->begin > first ? at->begin - first : 0, .end = end - first, .position = at->position - first};
    int64_t count = bwi_batch_within(part, epoch, &within);
    at->position = within.position + first;
    return count;
}

/* If batch sizes were chosen for the parts, a batch never extends over the end of a part. */
static int64_t concatenated_batch(const bw_dataset *dataset, int epoch, bwi_span *at)
{
    int64_t seam = dataset->upstream->count;
    if (!dataset->batched) {
        return bwi_batch_within(NULL, epoch, at);
    }
    if (at->position < seam) {
        int64_t count = batch_of_part(dataset->upstream, epoch, at, 0, at->end < seam ? at->end : seam);
        if (count > 0) {
            return count;
        }
    }
    return at->position < at->end ? batch_of_part(dataset->second, epoch, at, seam, at->end) : 0;
}

/* A batch does not extend over the end of a repetition either. */
static int64_t repeated_batch(const bw_dataset *dataset, int epoch, bwi_span *at)
{
    int64_t count = dataset->upstream->count;
    int64_t batch = 0;
    if (!dataset->batched) {
        return bwi_batch_within(NULL, epoch, at);
    }
    while (batch == 0 && at->position < at->end && at->position < dataset->count) {
        int64_t begin = at->position / count * count;
        bool last = at->end - begin < count || begin + count >= dataset->count;
        batch = batch_of_part(dataset->upstream, epoch, at, begin, last ? at->end : begin + count);
    }
    return batch;
}

static void locate_by(finder find, const bw_dataset *dataset, int64_t number, char *text, size_t size)
{
    origin found = find(dataset, 0, 0, number);
    bwi_dataset_location(found.part, found.number, text, size);
}

static void locate_joined(const bw_dataset *dataset, int64_t number, char *text, size_t size)
{
    locate_by(find_joined, dataset, number, text, size);
}

static void locate_zipped(const bw_dataset *dataset, int64_t number, char *text, size_t size)
{
    locate_by(find_zipped, dataset, number, text, size);
}

static void locate_repeated(const bw_dataset *dataset, int64_t number, char *text, size_t size)
{
    locate_by(find_repeated, dataset, number, text, size);
}

static const bwi_dataset_kind concatenation = {
    .name = "concatenate",
    .gather = gather_joined,
    .locate = locate_joined,
    .order = {.number = concatenated_number, .renumbers = true, .batch = concatenated_batch}};
static const bwi_dataset_kind interleaving = {.name = "interleave",
                                              .gather = gather_joined,
                                              .locate = locate_joined,
                                              .order = {.number = interleaved_number, .renumbers = true}};
static const bwi_dataset_kind zipping = {.name = "zip",
                                         .gather = gather_zipped,
                                         .locate = locate_zipped,
                                         .keeps = BWI_KEEPS_UNKNOWN,
                                         .order = {.number = zipped_number, .renumbers = true}};
static const bwi_dataset_kind repetition = {.name = "repeat",
                                            .gather = gather_repeated,
                                            .locate = locate_repeated,
                                            .order = {.number = repeated_number, .renumbers = true, .batch = repeated_batch}};

/* ---- Building ---- */

/* Drops the user's references to both. */
static bw_dataset *take_both(bw_dataset *a, bw_dataset *b, bw_dataset *made)
{
    bw_dataset_free(a);
    if (b != a) {
        bw_dataset_free(b);
    }
    return made;
}

static bw_dataset *over_both(bw_dataset *a, bw_dataset *b, const bwi_dataset_kind *kind, int columns)
{
    bw_dataset *made = bwi_dataset_finish(b) == BW_OK ? bwi_dataset_over(a, kind, columns, sizeof(joined)) : NULL;
    if (!made) {
        return bwi_pass_on(a->owned.ctx);
    }
    made->second = b;
    bwi_dataset_keep(b);
    made->moving = a->moving || b->moving;
    made->largest = a->largest > b->largest ? a->largest : b->largest;
    made->batched = a->batched || b->batched;
    made->scheduled = a->scheduled || b->scheduled;
    if (b->slow && !made->prefetcher && bwi_prefetcher_attach(made) != BW_OK) {
        bw_dataset_free(made);
        return bwi_pass_on(a->owned.ctx);
    }
    return made;
}

/* Declares a field in the type in which it is gathered: float32 or int32. */
static bw_status declare(bw_dataset *made, const bw_dataset *part, int field, bwi_role role)
{
    bwi_field state = *bwi_dataset_field(part, field);
    state.dtype = bwi_work_dtype(part, field);
    state.role = role;
    return bwi_dataset_declare(made, &state, made->kind->name);
}

static bw_status check_context(const bw_dataset *a, const bw_dataset *b, const char *kind)
{
    if (a->owned.ctx == b->owned.ctx) {
        return BW_OK;
    }
    return bwi_fail(a->owned.ctx, BW_INVALID_ARGUMENT, "%s: the datasets belong to different contexts", kind);
}

/* Datasets can be joined if all fields agree in role, name and shape; if types differ, float32 holds both. */
static bw_status match_fields(bw_dataset *made, const bw_dataset *a, const bw_dataset *b)
{
    bw_context *ctx = made->owned.ctx;
    char shape[256], other[256];
    int count = bwi_dataset_fields(a);
    if (count != bwi_dataset_fields(b)) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: samples of %d arrays and of %d", made->kind->name, count,
                        bwi_dataset_fields(b));
    }
    for (int f = 0; f < count; f++) {
        const bwi_field *x = bwi_dataset_field(a, f), *y = bwi_dataset_field(b, f);
        if (x->role != y->role || strcmp(x->name, y->name) != 0 || x->ndim != y->ndim ||
            memcmp(x->shape, y->shape, (size_t)x->ndim * sizeof *x->shape) != 0) {
            return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: array %c of one has shape %s, array %c of the other %s",
                            made->kind->name, "xyw"[x->role], bwi_format_shape(shape, x->ndim, x->shape), "xyw"[y->role],
                            bwi_format_shape(other, y->ndim, y->shape));
        }
        bw_status status = declare(made, bwi_work_dtype(a, f) == BW_F32 ? a : b, f, x->role);
        if (status != BW_OK) {
            return status;
        }
    }
    return BW_OK;
}

static bw_dataset *join(bw_dataset *a, bw_dataset *b, const bwi_dataset_kind *kind, int64_t block)
{
    bw_context *ctx = a->owned.ctx;
    bw_status status = check_context(a, b, kind->name);
    bw_dataset *made = status == BW_OK ? over_both(a, b, kind, bwi_dataset_fields(a)) : NULL;
    if (!made) {
        return bwi_pass_on(ctx);
    }
    ((joined *)made->state)->block = block;
    if (__builtin_add_overflow(a->numbers, b->numbers, &made->numbers) ||
        __builtin_add_overflow(a->count, b->count, &made->count)) {
        status = bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: more samples than can be counted", kind->name);
    }
    if (status == BW_OK) {
        status = match_fields(made, a, b);
    }
    if (status == BW_OK) {
        return made;
    }
    bw_dataset_free(made);
    return bwi_pass_on(ctx);
}

bw_dataset *bw_concatenate(bw_dataset *first, bw_dataset *second)
{
    if (!first || !second) {
        return take_both(first, second, NULL);
    }
    return take_both(first, second, join(first, second, &concatenation, 1));
}

bw_dataset *bw_interleave(bw_dataset *first, bw_dataset *second, int64_t block)
{
    if (!first || !second) {
        return take_both(first, second, NULL);
    }
    if (block < 1) {
        bw_context *ctx = first->owned.ctx;
        take_both(first, second, NULL);
        return bwi_fail_build(ctx, BW_INVALID_ARGUMENT, "interleave(%lld): a block has at least one sample", (long long)block);
    }
    return take_both(first, second, join(first, second, &interleaving, block));
}

/* If both datasets have only inputs, those of the second become the targets. */
static bw_status zip_fields(bw_dataset *made, const bw_dataset *a, const bw_dataset *b)
{
    bool targets = bwi_dataset_find(a, BWI_ROLE_TARGET, 0) < 0 && bwi_dataset_find(b, BWI_ROLE_TARGET, 0) < 0;
    bw_status status = BW_OK;
    for (int f = 0; f < bwi_dataset_fields(a) && status == BW_OK; f++) {
        status = declare(made, a, f, bwi_dataset_field(a, f)->role);
    }
    ((joined *)made->state)->split = made->column_count;
    for (int f = 0; f < bwi_dataset_fields(b) && status == BW_OK; f++) {
        const bwi_field *field = bwi_dataset_field(b, f);
        bwi_role role = targets && field->role == BWI_ROLE_INPUT ? BWI_ROLE_TARGET : field->role;
        for (int g = 0; g < bwi_dataset_fields(a); g++) {
            const bwi_field *other = bwi_dataset_field(a, g);
            if (other->role == role && strcmp(other->name, field->name) == 0) {
                return bwi_fail(made->owned.ctx, BW_INVALID_ARGUMENT, "zip: both datasets have an array %c%s%s", "xyw"[role],
                                field -> name[0] ? "_" : "", field->name);
            }
        }
        status = declare(made, b, f, role);
    }
    return status;
}

/* The number of a zipped sample stands for a pair, so there are as many as the product of both. */
static bw_dataset *zip(bw_dataset *a, bw_dataset *b)
{
    bw_context *ctx = a->owned.ctx;
    int columns = bwi_dataset_fields(a) + bwi_dataset_fields(b);
    bw_status status = check_context(a, b, "zip");
    if (status == BW_OK && columns > BWI_FIELD_LIMIT) {
        status = bwi_fail(ctx, BW_INVALID_ARGUMENT, "zip: %d arrays; samples have at most %d", columns, BWI_FIELD_LIMIT);
    }
    bw_dataset *made = status == BW_OK ? over_both(a, b, &zipping, columns) : NULL;
    if (!made) {
        return bwi_pass_on(ctx);
    }
    made->count = a->count < b->count ? a->count : b->count;
    if (__builtin_mul_overflow(a->numbers, b->numbers, &made->numbers)) {
        status = bwi_fail(ctx, BW_INVALID_ARGUMENT, "zip: %lld times %lld samples are more pairs than can be numbered",
                          (long long)a->numbers, (long long)b->numbers);
    }
    if (status == BW_OK) {
        status = zip_fields(made, a, b);
    }
    if (status == BW_OK) {
        return made;
    }
    bw_dataset_free(made);
    return bwi_pass_on(ctx);
}

bw_dataset *bw_zip(bw_dataset *first, bw_dataset *second)
{
    return take_both(first, second, first && second ? zip(first, second) : NULL);
}

/* A repeated sample has another number each time, so that random augmentation differs between repetitions. */
bw_dataset *bw_repeat(bw_dataset *dataset, int64_t times)
{
    if (!dataset) {
        return NULL;
    }
    bw_context *ctx = dataset->owned.ctx;
    bw_status status = bwi_dataset_finish(dataset);
    int64_t numbers = 0, count = 0;
    if (status == BW_OK && (times < 1 || times > INT32_MAX || __builtin_mul_overflow(dataset->numbers, times, &numbers) ||
                            __builtin_mul_overflow(dataset->count, times, &count))) {
        status =
            bwi_fail(ctx, BW_INVALID_ARGUMENT, "repeat(%lld): at least once, and not more than can be counted", (long long)times);
    }
    bw_dataset *made = status == BW_OK ? bwi_dataset_over(dataset, &repetition, bwi_dataset_fields(dataset), sizeof(joined)) : NULL;
    for (int f = 0; made && f < bwi_dataset_fields(dataset) && status == BW_OK; f++) {
        status = declare(made, dataset, f, bwi_dataset_field(dataset, f)->role);
    }
    if (made && status == BW_OK) {
        ((joined *)made->state)->times = times;
        made->count = count;
        made->numbers = numbers;
        return bwi_dataset_take(dataset, made);
    }
    bw_dataset_free(made);
    bw_dataset_free(dataset);
    return bwi_pass_on(ctx);
}
