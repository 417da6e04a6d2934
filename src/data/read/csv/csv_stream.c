/*
 * Standard input as a stream of CSV records. The first region, of 1 MiB, tells what the columns are; then rows are parsed region
 * by region, as samples are asked for. Rows that have arrived stay in a backing, in the order of the records, so that resuming,
 * lines in messages and all epochs after the first work as they do with a file.
 *
 * If something about all records must be known before the first sample, the stream is read to its end first, which is logged. That
 * is so for categories, which are numbered in sorted order, for the means of columns, and for the share of bad records. If all
 * targets of the first region are whole numbers, those of all later regions must be too.
 */
#include "data/read/csv/csv.h"

#include <math.h>
#include <stdio.h>

#define MESSAGE 512

typedef struct flow {
    csv_reading *r;
    csv_locations locations;
    const char *path;
    bool whole;                 /* targets are whole numbers */
    int named[BWI_FIELD_LIMIT]; /* of field 2 and later: which of several targets it is */
    int64_t lacking;
    bw_status status; /* of a failure, which is reported again */
    char message[MESSAGE];
} flow;

/* ---- Whether ---- */

static bool is_whole(double value)
{
    return value >= INT32_MIN && value <= INT32_MAX && value == (double)(int32_t)value;
}

/* Says what needs all records; NULL: nothing does. */
static const char *needs_all(const csv_reading *r, char text[MESSAGE])
{
    char quoted[BWI_QUOTE_SIZE];
    for (int i = 0; i < r->table.count; i++) {
        const char *name = r->table.columns[i].name;
        if (r->table.columns[i].kind != CSV_CATEGORY) {
            continue;
        }
        snprintf(text, MESSAGE, "column %d (%s) holds texts, and categories are numbered in the order of all of them", i,
                 bwi_quote(quoted, name, strlen(name)));
        return text;
    }
    if (r->options.missing == BW_MISSING_MEAN) {
        return "missing values become the mean of all records";
    }
    if (r->options.bad_records > 0) {
        return "the share of bad records is that of all of them";
    }
    return NULL;
}

/* ---- Rows ---- */

/* The first region has fixed the type of the targets, so a later target that does not fit is an error. */
static bw_status add_targets(bw_dataset *root, const csv_reading *r)
{
    flow *state = root->state;
    bwi_column *column = &root->columns[1];
    int64_t depth = r->table.stride;
    size_t bytes = (size_t)depth * sizeof(int32_t);
    bw_status status = bwi_backing_grow(r->ctx, &column->backing, (size_t)root->numbers * bytes,
                                        bwi_size_multiply((size_t)r->capacity, bytes), state->path);
    if (status != BW_OK) {
        return status;
    }
    column->rows.data = column->backing.memory;
    for (int f = 2; f < root->column_count; f++) {
        root->columns[f].rows.data = (const unsigned char *)column->backing.memory + (size_t)state->named[f] * sizeof(float);
    }
    for (int64_t row = root->numbers * depth; row < r->rows * depth; row++) { /* `whole` is never set for several targets */
        if (state->whole && !is_whole(r->y[row])) {
            char location[128] = "";
            bwi_csv_locate(&state->locations, row, location, sizeof location);
            return bwi_fail(
                r->ctx, BW_INVALID_ARGUMENT,
                "%s: the target %g is no whole number; all in the first MiB of the stream are: write one of them as 1.5, or "
                "read a file",
                location, r->y[row]);
        }
        if (state->whole) {
            ((int32_t *)column->backing.memory)[row] = (int32_t)r->y[row];
        } else {
            ((float *)column->backing.memory)[row] = (float)r->y[row];
        }
    }
    return BW_OK;
}

static void fill_zeros(const csv_reading *r, int64_t first)
{
    int64_t width = r->table.width;
    for (int64_t i = first * width; i < r->rows * width; i++) {
        r->x[i] = isnan(r->x[i]) ? 0 : r->x[i];
    }
}

/* Hands the inputs' memory from the reader to the root; the reader gets it back while it reads, since it may move. */
static void give_inputs(bw_dataset *root, csv_reading *r)
{
    root->columns[0].backing = r->x_backing;
    root->columns[0].rows.data = r->x_backing.memory;
    r->x_backing = (bwi_backing){.bytes = 0};
}

/* Turns the rows that were parsed into samples. */
static bw_status take_rows(bw_dataset *root)
{
    flow *state = root->state;
    csv_reading *r = state->r;
    for (int64_t i = 0; i < r->span_count; i++) {
        state->lacking += r->spans[i].result.missing_rows;
    }
    if (r->options.missing == BW_MISSING_ZERO) {
        fill_zeros(r, root->numbers);
    }
    bw_status status = bwi_csv_locations_add(r, &state->locations);
    bwi_csv_spans_drop(r, 0);
    if (status == BW_OK && r->table.target >= 0) {
        status = add_targets(root, r);
    }
    root->numbers = status == BW_OK ? r->rows : root->numbers;
    return status;
}

static bw_status add_region(bw_dataset *root)
{
    flow *state = root->state;
    state->r->x_backing = root->columns[0].backing;
    root->columns[0].backing = (bwi_backing){.bytes = 0};
    bw_status status = bwi_csv_read_region(state->r, 0);
    give_inputs(root, state->r);
    if (status != BW_OK) {
        bwi_csv_spans_drop(state->r, 0);
    }
    return status == BW_OK ? take_rows(root) : status;
}

static bw_status end(bw_dataset *root)
{
    flow *state = root->state;
    bwi_csv_text_close(&state->r->text);
    if (state->lacking > 0) {
        bwi_log(root->owned.ctx, BW_LOG_INFO, "%s: %lld of %lld records have missing values and are left out", state->path,
                (long long)state->lacking, (long long)(state->lacking + root->numbers));
    }
    if (root->numbers == 0) {
        return bwi_fail(root->owned.ctx, BW_INVALID_ARGUMENT, "%s: holds no samples", state->path);
    }
    root->live = false;
    root->count = root->numbers;
    return BW_OK;
}

static bool ended(const flow *state)
{
    return state->r->text.finished && state->r->text.at == state->r->text.end;
}

/* A failure is kept and reported again by each later call, except for cancelling, after which reading may continue. */
static bw_status pull(bw_dataset *root, int64_t upto)
{
    bw_context *ctx = root->owned.ctx;
    flow *state = root->state;
    bw_status status = BW_OK;
    if (state->status != BW_OK) {
        return bwi_fail(ctx, state->status, "%s", state->message);
    }
    while (status == BW_OK && root->numbers < upto && !ended(state)) {
        status = add_region(root);
    }
    for (int f = 0; f < root->column_count; f++) {
        root->columns[f].samples = root->numbers;
    }
    if (status == BW_OK) {
        return ended(state) ? end(root) : BW_OK;
    }
    if (status != BW_CANCELLED) {
        state->status = status;
        snprintf(state->message, sizeof state->message, "%.511s", ctx->message);
    }
    return status;
}

static void locate(const bw_dataset *dataset, int64_t number, char *text, size_t size)
{
    const flow *state = dataset->state;
    bwi_csv_locate(&state->locations, number, text, size);
}

static bw_status gather(const bw_dataset *dataset, const bwi_demand *demand)
{
    return bwi_kind_arrays.gather(dataset, demand);
}

static void close_flow(bw_dataset *dataset)
{
    flow *state = dataset->state;
    bwi_csv_locations_free(dataset->owned.ctx, &state->locations);
    if (state->r) {
        bwi_csv_reading_free(state->r);
    }
}

static const bwi_dataset_kind kind = {
    .name = "csv", .gather = gather, .locate = locate, .close = close_flow, .stream = {.pull = pull, .follows = true}};

/* ---- The root ---- */

/* Of several targets each is a field by its column's name as well, as of a file (csv_finish.c): a view of the rows of targets. */
static bw_status name_each_target(bw_dataset *root)
{
    flow *state = root->state;
    const csv_table *table = &state->r->table;
    for (int k = 0; k < root->facts.targets && root->facts.targets > 1; k++) {
        const char *name = table->columns[root->facts.target_column[k]].name;
        bwi_field one = {.role = BWI_ROLE_TARGET, .dtype = BW_F32};
        if (!*name || strlen(name) >= sizeof one.name || root->column_count == BWI_FIELD_LIMIT) {
            continue;
        }
        snprintf(one.name, sizeof one.name, "%s", name);
        state->named[root->column_count] = k;
        bw_status status = bwi_dataset_declare(root, &one, state->path);
        if (status != BW_OK) {
            return status;
        }
        root->columns[root->column_count - 1].rows.step = root->columns[1].rows.step;
    }
    return BW_OK;
}

/* The first region decides the columns and their types, before any sample is handed out. */
static bw_status fill_root(bw_dataset *root)
{
    flow *state = root->state;
    csv_reading *r = state->r;
    bwi_field x = {.role = BWI_ROLE_INPUT, .dtype = BW_F32, .ndim = 1, .shape = {r->table.width}};
    bw_status status = bwi_csv_read_region(r, 0);
    state->whole = r->table.targets == 1;
    for (int64_t i = 0; i < r->rows && state->whole; i++) {
        state->whole = state->whole && is_whole(r->y[i]);
    }
    bwi_field y = {.role = BWI_ROLE_TARGET,
                   .dtype = state->whole ? BW_I32 : BW_F32,
                   .ndim = r->table.targets > 1,
                   .shape = {r->table.targets}};
    if (status == BW_OK) {
        status = bwi_csv_columns_settle(r, &root->facts);
    }
    if (status == BW_OK) {
        status = bwi_dataset_declare(root, &x, state->path);
    }
    if (status == BW_OK && r->table.target >= 0) {
        status = bwi_dataset_declare(root, &y, state->path);
        status = status == BW_OK ? name_each_target(root) : status;
    }
    if (status != BW_OK) {
        return status;
    }
    give_inputs(root, r);
    return take_rows(root);
}

bw_status bwi_csv_stream_make(csv_reading *r, bw_dataset **root)
{
    static const char *const name[] = {"standard input"};
    char text[MESSAGE];
    if (r->text.finished || r->options.like) {
        return BW_OK; /* everything has arrived; or the data are to be predicted, with the categories and means of other data */
    }
    const char *reason = needs_all(r, text);
    if (reason) {
        bwi_log(r->ctx, BW_LOG_INFO, "%s: is read to its end first: %s", name[0], reason);
        return BW_OK;
    }
    bw_dataset *made = bwi_dataset_root(r->ctx, &kind, 2 + (r->table.targets > 1 ? r->table.targets : 0), sizeof(flow));
    if (!made) {
        return BW_RESOURCE_EXHAUSTED;
    }
    r->paths = name;
    r->options.target = r->options.categorical = r->options.ignore = r->options.input = r->options.separator =
        NULL; /* these belong to the caller, and are no longer needed */
    *(flow *)made->state = (flow){.r = r, .path = name[0]};
    made->live = true;
    made->count = BWI_LIVE;
    bw_status status = fill_root(made);
    if (status == BW_OK) {
        for (int f = 0; f < made->column_count; f++) {
            made->columns[f].samples = made->numbers;
        }
        *root = made;
        return BW_OK;
    }
    ((flow *)made->state)->r = NULL; /* r still belongs to the caller */
    bw_dataset_free(made);
    return status;
}
