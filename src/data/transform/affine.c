/*
 * Standardise and normalise: inputs become (x - offset) * factor, with an offset and a factor for each index of the last axis, as
 * in Keras's Normalization. They are fitted once, when samples are first gathered, to exactly the samples that are then used:
 * bw_fit begins with its training part, so samples that are held back for validation never count. Sums run over fixed blocks of
 * samples, so they are the same for any number of workers.
 */
#include "data/transform/transform.h"

#include <math.h>
#include <string.h>

#define BLOCKS 256
#define LEAST_DEVIATION 1e-7 /* Keras's epsilon */

typedef struct fitted {
    int64_t count; /* extent of the last axis */
    float *offset, *factor;
} fitted;

/* What was fitted. Stages that were built to be like another one share it, so that it is fitted by whichever begins first to have
 * samples of its own to fit to: the one that made it. Inputs correspond by their order, since the datasets may differ in other
 * fields: samples to predict have no targets. */
typedef struct input_statistics {
    int stages; /* that use it */
    bool ready;
    int inputs;
    fitted input[BWI_FIELD_LIMIT];
} input_statistics;

typedef struct affine {
    bool range; /* scales to 0..1; otherwise to mean 0 and deviation 1 */
    bool fits;  /* the statistics are this stage's own, and not those of the one given as `like` */
    input_statistics *statistics;
} affine;

/* The number of a field among the inputs. */
static int input_of(const bw_dataset *dataset, int field)
{
    int input = 0;
    for (int f = 0; f < field; f++) {
        input += dataset->columns[f].field.role == BWI_ROLE_INPUT;
    }
    return input;
}

/* ---- Fitting ---- */

typedef struct fitting {
    const bw_dataset *dataset, *top; /* fits to samples of `top`, or with `all` to every sample of the dataset */
    bool all;
    int field;
    int64_t samples, values, width, blocks;
    float *first, *buffer; /* [worker][values] */
    double *memory;        /* [block][4][width]: sum and sum of squares of differences from the first sample; minimum; maximum */
} fitting;

static bw_status read_sample(const fitting *f, int64_t index, float *to, char *error)
{
    int64_t number = f->all ? index : bwi_dataset_number(f->top, 0, index);
    bwi_destination place = bwi_host_destination(to, BW_F32, f->values);
    bwi_demand demand = {.field = f->field, .epoch = BWI_EPOCH_NONE, .numbers = &number, .n = 1, .to = &place, .error = error};
    return bwi_content_gather(f->dataset->upstream, &demand);
}

/* Sums one block of samples. Differences from the first sample keep the squares small where values are large and vary little. */
static bw_status add_block(void *user, int64_t block, int worker, char *error)
{
    const fitting *f = user;
    float *buffer = f->buffer + worker * f->values;
    double *sum = f->memory + block * 4 * f->width, *square = sum + f->width, *least = square + f->width,
           *largest = least + f->width;
    int64_t begin = f->samples * block / f->blocks, end = f->samples * (block + 1) / f->blocks;
    for (int64_t k = 0; k < f->width; k++) {
        least[k] = (double)INFINITY;
        largest[k] = -(double)INFINITY;
    }
    for (int64_t i = begin; i < end; i++) {
        bw_status status = bwi_cancelled(f->dataset->owned.ctx) ? BW_CANCELLED : read_sample(f, i, buffer, error);
        if (status != BW_OK) {
            return status;
        }
        for (int64_t k = 0, c = 0; k < f->values; k++, c = c + 1 == f->width ? 0 : c + 1) {
            double value = (double)buffer[k], difference = value - (double)f->first[c];
            sum[c] += difference;
            square[c] += difference * difference;
            least[c] = value < least[c] ? value : least[c];
            largest[c] = value > largest[c] ? value : largest[c];
        }
    }
    return BW_OK;
}

static void settle(const fitting *f, bool range, fitted *to)
{
    double n = (double)f->samples * (double)(f->values / f->width);
    for (int64_t c = 0; c < f->width; c++) {
        double sum = 0, square = 0, least = (double)INFINITY, largest = -(double)INFINITY;
        for (int64_t b = 0; b < f->blocks; b++) {
            const double *at = f->memory + b * 4 * f->width + c;
            sum += at[0];
            square += at[f->width];
            least = at[2 * f->width] < least ? at[2 * f->width] : least;
            largest = at[3 * f->width] > largest ? at[3 * f->width] : largest;
        }
        double mean = sum / n, variance = square / n - mean * mean;
        double deviation = variance > LEAST_DEVIATION * LEAST_DEVIATION ? sqrt(variance) : LEAST_DEVIATION;
        to->offset[c] = (float)(range ? least : mean + (double)f->first[c]);
        to->factor[c] = (float)(range ? (largest > least ? 1 / (largest - least) : 0) : 1 / deviation);
    }
}

static bw_status run(fitting *f, bool range, fitted *to)
{
    bw_context *ctx = f->dataset->owned.ctx;
    f->first = bwi_allocate(ctx, (size_t)f->values, sizeof *f->first);
    f->buffer = f->first ? bwi_allocate(ctx, (size_t)ctx->workers, (size_t)f->values * sizeof *f->buffer) : NULL;
    f->memory = f->buffer ? bwi_allocate(ctx, (size_t)(f->blocks * 4), (size_t)f->width * sizeof *f->memory) : NULL;
    char error[BWI_ITEM_ERROR] = "";
    bw_status status = f->memory ? read_sample(f, 0, f->first, error) : BW_RESOURCE_EXHAUSTED;
    if (status == BW_OK) {
        status = bwi_parallel_for(ctx, f->blocks, add_block, f, error);
    }
    if (status == BW_OK) {
        settle(f, range, to);
    } else if (error[0]) {
        bwi_fail(ctx, status, "%s", error);
    }
    bwi_release(ctx, f->first);
    bwi_release(ctx, f->buffer);
    bwi_release(ctx, f->memory);
    return status;
}

/* Whether `top` numbers samples as the dataset does, because no kind in between renumbers them. */
static bool same_numbers(const bw_dataset *dataset, const bw_dataset *top)
{
    for (; top && top != dataset; top = top->upstream) {
        if (top->kind->order.renumbers) {
            return false;
        }
    }
    return top == dataset;
}

static bw_status fit_field(const bw_dataset *dataset, const bw_dataset *top, int field)
{
    affine *state = dataset->state;
    const bwi_column *column = &dataset->columns[field];
    fitting f = {.dataset = dataset, .top = top, .field = field, .values = column->rows.values};
    f.width = column->field.ndim > 0 ? column->field.shape[column->field.ndim - 1] : 1;
    f.all = !same_numbers(dataset, top);
    f.samples = f.all ? dataset->upstream->numbers : top->count;
    f.blocks = f.samples < BLOCKS ? f.samples : BLOCKS;
    if (f.all) {
        bwi_log(dataset->owned.ctx, BW_LOG_WARNING, "%s: fitted to all %lld samples, since those in use are put together above it",
                dataset->kind->name, (long long)f.samples);
    }
    return run(&f, state->range, &state->statistics->input[input_of(dataset, field)]);
}

static bw_status begin(const bw_dataset *dataset, const bw_dataset *top)
{
    affine *state = dataset->state;
    if (state->statistics->ready || !state->fits) {
        return BW_OK;
    }
    bw_status status = BW_OK;
    for (int f = 0; f < dataset->column_count && status == BW_OK; f++) {
        if (dataset->columns[f].field.role == BWI_ROLE_INPUT) {
            status = fit_field(dataset, top, f);
        }
    }
    state->statistics->ready = status == BW_OK;
    return status;
}

/* ---- Gathering ---- */

static bw_status gather(const bw_dataset *dataset, const bwi_demand *demand)
{
    const input_statistics *statistics = ((const affine *)dataset->state)->statistics;
    const bwi_column *column = &dataset->columns[demand->field];
    if (column->field.role != BWI_ROLE_INPUT) {
        return bwi_content_gather(dataset->upstream, demand);
    }
    if (!statistics->ready) {
        return bwi_sample_error(dataset, demand->numbers[0], demand->error, BW_INVALID_ARGUMENT, "%s is not fitted yet",
                                dataset->kind->name);
    }
    if (demand->to->dtype != BW_F32) {
        return bwi_sample_error(dataset, demand->numbers[0], demand->error, BW_INVALID_ARGUMENT, "its input cannot be read as %s",
                                bwi_dtype_name(demand->to->dtype));
    }
    bw_status status = bwi_content_gather(dataset->upstream, demand);
    if (status == BW_OK) {
        const fitted *by = &statistics->input[input_of(dataset, demand->field)];
        demand->to->kernels->affine(by->offset, by->factor, by->count, demand->n, demand->to);
    }
    return status;
}

static void leave(bw_context *ctx, input_statistics *statistics)
{
    if (!statistics || --statistics->stages > 0) {
        return;
    }
    for (int k = 0; k < statistics->inputs; k++) {
        bwi_release(ctx, statistics->input[k].offset);
        bwi_release(ctx, statistics->input[k].factor);
    }
    bwi_release(ctx, statistics);
}

static void close_affine(bw_dataset *dataset)
{
    leave(dataset->owned.ctx, ((affine *)dataset->state)->statistics);
}

static const bwi_dataset_kind standards = {
    .name = "standardise", .gather = gather, .begin = begin, .keeps = BWI_KEEPS_STATISTICS, .close = close_affine};
static const bwi_dataset_kind ranges = {
    .name = "normalise", .gather = gather, .begin = begin, .keeps = BWI_KEEPS_STATISTICS, .close = close_affine};

bool bwi_dataset_statistics(const bw_dataset *dataset, int field, const float **offset, const float **factor, int64_t *count)
{
    for (; dataset; dataset = dataset->upstream) {
        if (dataset->kind != &standards && dataset->kind != &ranges) {
            continue;
        }
        const input_statistics *statistics = ((const affine *)dataset->state)->statistics;
        if (!statistics->ready || field < 0 || field >= dataset->column_count ||
            dataset->columns[field].field.role != BWI_ROLE_INPUT) {
            return false;
        }
        const fitted *found = &statistics->input[input_of(dataset, field)];
        *offset = found->offset;
        *factor = found->factor;
        *count = found->count;
        return true;
    }
    return false;
}

/* ---- Building ---- */

static bw_status declare(bw_dataset *made)
{
    const bw_dataset *below = made->upstream;
    bw_status status = BW_OK;
    for (int f = 0; f < bwi_dataset_fields(below) && status == BW_OK; f++) {
        bwi_field field = *bwi_dataset_field(below, f);
        field.dtype = field.role == BWI_ROLE_INPUT ? BW_F32 : bwi_work_dtype(below, f);
        status = bwi_dataset_declare(made, &field, made->kind->name);
    }
    return status;
}

/* Makes statistics of its own for the stage, to be fitted when samples are first gathered. */
static bw_status make_statistics(bw_dataset *made)
{
    bw_context *ctx = made->owned.ctx;
    affine *state = made->state;
    input_statistics *own = bwi_allocate(ctx, 1, sizeof *own);
    if (!own) {
        return BW_RESOURCE_EXHAUSTED;
    }
    own->stages = 1;
    state->statistics = own;
    state->fits = true;
    for (int f = 0; f < made->column_count; f++) {
        const bwi_field *field = &made->columns[f].field;
        if (field->role != BWI_ROLE_INPUT) {
            continue;
        }
        fitted *to = &own->input[own->inputs++];
        to->count = field->ndim > 0 ? field->shape[field->ndim - 1] : 1;
        to->offset = bwi_allocate(ctx, (size_t)to->count, sizeof *to->offset);
        to->factor = to->offset ? bwi_allocate(ctx, (size_t)to->count, sizeof *to->factor) : NULL;
        if (!to->factor) {
            return BW_RESOURCE_EXHAUSTED;
        }
    }
    return BW_OK;
}

/* Whether each input of the stage has as many numbers to scale as the input that the statistics are of. */
static bool suits(const bw_dataset *made, const input_statistics *statistics)
{
    int inputs = 0;
    for (int f = 0; f < made->column_count; f++) {
        const bwi_field *field = &made->columns[f].field;
        if (field->role == BWI_ROLE_INPUT) {
            int64_t count = field->ndim > 0 ? field->shape[field->ndim - 1] : 1;
            if (inputs == statistics->inputs || statistics->input[inputs].count != count) {
                return false;
            }
            inputs++;
        }
    }
    return inputs == statistics->inputs;
}

/* Uses the statistics that `like` uses, which must suit the inputs. */
static bw_status follow(bw_dataset *made, const bw_dataset *like)
{
    const bw_dataset *found = like;
    while (found && found->kind != made->kind) {
        found = found->upstream;
    }
    if (!found) {
        return bwi_fail(made->owned.ctx, BW_INVALID_ARGUMENT, "%s: the dataset given as `like` has no such stage",
                        made->kind->name);
    }
    input_statistics *shared = ((const affine *)found->state)->statistics;
    if (!suits(made, shared) || found->owned.ctx != made->owned.ctx) {
        return bwi_fail(made->owned.ctx, BW_INVALID_ARGUMENT, "%s: the dataset given as `like` has other inputs", made->kind->name);
    }
    shared->stages++;
    ((affine *)made->state)->statistics = shared;
    return BW_OK;
}

static bw_dataset *build(bw_dataset *dataset, const bwi_dataset_kind *kind, const bw_dataset *like)
{
    if (!dataset) {
        return NULL;
    }
    bw_context *ctx = dataset->owned.ctx;
    bw_dataset *made = bwi_dataset_over(dataset, kind, bwi_dataset_fields(dataset), sizeof(affine));
    if (!made) {
        return bwi_dataset_take(dataset, NULL);
    }
    ((affine *)made->state)->range = kind == &ranges;
    bw_status status = declare(made);
    if (status == BW_OK) {
        status = like ? follow(made, like) : make_statistics(made);
    }
    if (status == BW_OK) {
        return bwi_dataset_take(dataset, made);
    }
    bw_dataset_free(made);
    bw_dataset_free(dataset);
    return bwi_pass_on(ctx);
}

bw_dataset *bw_standardise(bw_dataset *dataset, const bw_dataset *like)
{
    return build(dataset, &standards, like);
}

bw_dataset *bw_normalise(bw_dataset *dataset, const bw_dataset *like)
{
    return build(dataset, &ranges, like);
}

/* ---- For recipes ---- */

bw_dataset *bwi_affine_over(bw_dataset *dataset, const bw_dataset *stage)
{
    return build(dataset, stage->kind, NULL);
}

bw_dataset *bwi_affine_again(bw_dataset *dataset, const bw_dataset *stage)
{
    return build(dataset, stage->kind, stage);
}

bool bwi_affine_is_kind(const char *kind)
{
    return strcmp(kind, standards.name) == 0 || strcmp(kind, ranges.name) == 0;
}

bw_dataset *bwi_affine_named(bw_dataset *dataset, const char *kind)
{
    return build(dataset, strcmp(kind, ranges.name) == 0 ? &ranges : &standards, NULL);
}

bw_status bwi_affine_set(bw_dataset *dataset, int field, const float *offset, const float *factor, int64_t count)
{
    input_statistics *own = ((affine *)dataset->state)->statistics;
    fitted *to = &own->input[input_of(dataset, field)];
    if (to->count != count) {
        return bwi_fail(dataset->owned.ctx, BW_INVALID_ARGUMENT, "%s: statistics for %lld values, expected %lld",
                        dataset->kind->name, (long long)count, (long long)to->count);
    }
    memcpy(to->offset, offset, (size_t)count * sizeof *offset);
    memcpy(to->factor, factor, (size_t)count * sizeof *factor);
    own->ready = true;
    return BW_OK;
}
