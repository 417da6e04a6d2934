/*
 * Gradients of sparse variables (tables of embeddings). The window's records lie in the order in which they were made: by
 * piece, phase, position of the sample, node, place. To sum them they are sorted by row, stably, and each row's records
 * are added, in that order, into the first of them. So a row's sum is one chain of additions in the order of positions:
 * it has the same bits for any tiles, workers and ranks. Kernels do this to records; here is decided when, and who does what.
 *
 * If a window has more records than the plan has capacity for, they are summed before it goes on, and one record for each touched
 * row remains, in front. That only does a part of the chain earlier: the bits stay the same. The capacity is at least every row
 * of the table and the records of a tile for each lane, so this always helps.
 *
 * Ranks write the records of their own samples; the others' places hold nothing (row 0, differences -0.0, which change no sum),
 * until the ranks add them.
 */
#include "exec/internal.h"

#include <math.h>

/* Sorted records that a worker sums at a time, and floats below which one worker is quicker alone. */
enum { SHARE = 1024, WORTH_SHARING_FLOATS = 1 << 16 };

static const bwi_records_kernels *kernels_of(const bwi_exec *exec)
{
    return exec->plan->kernels->records;
}

/* The addresses of a record's row and of its values. */
static void *row_at(const bwi_table *table, int64_t place)
{
    return (unsigned char *)table->records.rows + (size_t)place * sizeof(double);
}
static void *values_at(const bwi_table *table, int64_t place)
{
    return (unsigned char *)table->records.values + (size_t)(place * table->records.width) * sizeof(float);
}

/* ---- Opening ---- */

bw_status bwi_records_open(bwi_exec *exec)
{
    const bwi_plan *plan = exec->plan;
    exec->tables = bwi_allocate(exec->ctx, (size_t)plan->table_count, sizeof *exec->tables);
    if (!exec->tables) {
        return BW_RESOURCE_EXHAUSTED;
    }
    for (int t = 0; t < plan->table_count; t++) {
        const bwi_plan_table *from = &plan->tables[t];
        bwi_table *table = &exec->tables[t];
        table->records = (bwi_records){.variable = from->variable,
                                       .rows = exec->arena + from->rows,
                                       .values = exec->arena + from->values,
                                       .width = bwi_variable_width(from->variable)};
        table->capacity = from->capacity;
        table->sorted = exec->arena + from->sorted;
        table->spare = exec->arena + from->sorted + (size_t)from->capacity * sizeof(uint64_t);
    }
    return BW_OK;
}

const bwi_records *bwi_records_of(const bwi_exec *exec, const bwi_variable *variable)
{
    for (int t = 0; t < exec->plan->table_count; t++) {
        if (exec->tables[t].records.variable == variable) {
            return &exec->tables[t].records;
        }
    }
    return NULL;
}

void bwi_records_clear(bwi_exec *exec)
{
    for (int t = 0; t < exec->plan->table_count; t++) {
        exec->tables[t].count = exec->tables[t].settled = exec->tables[t].touched = 0;
    }
}

/* ---- Sorting and summing ---- */

static bw_status settle_ranks(bwi_exec *exec, bwi_table *table)
{
    int64_t from = table->settled, count = table->count - from, width = table->records.width;
    bw_status status = BW_OK;
    if (exec->plan->ranks > 1 && count > 0) {
        status = exec->rank->sum_doubles(exec->ctx, row_at(table, from), count);
        if (status == BW_OK) {
            status = exec->rank->sum_floats(exec->ctx, values_at(table, from), count * width);
        }
    }
    table->settled = table->count;
    return status;
}

static void sort(bwi_exec *exec, bwi_table *table)
{
    void *sorted = table->sorted;
    int64_t rows = table->records.variable->shape.extent[0];
    if (kernels_of(exec)->sort(table->count, rows, table->records.rows, sorted, table->spare)) {
        table->sorted = table->spare;
        table->spare = sorted;
    }
}

static void sum_shares(void *user, int worker)
{
    bwi_exec *exec = user;
    const bwi_table *table = &exec->tables[exec->table];
    int tried = 0;
    for (int64_t share; (share = bwi_exec_next(exec, worker, &tried)) >= 0;) {
        kernels_of(exec)->sum(SHARE * share, SHARE * (share + 1), table->count, table->records.width, table->sorted,
                              table->records.values, table->spare);
    }
}

/* Sums the records; of the sorted list, the head of each touched row remains. */
static void sum(bwi_exec *exec, int t)
{
    bwi_table *table = &exec->tables[t];
    exec->table = t;
    bool share = table->count > SHARE && table->count * table->records.width > WORTH_SHARING_FLOATS;
    int workers = share ? exec->plan->workers : 1;
    bwi_exec_share_out(exec, workers, (table->count + SHARE - 1) / SHARE);
    bwi_pool_run(exec->ctx, workers, sum_shares, exec);
    table->touched = kernels_of(exec)->heads(table->count, table->sorted, table->records.rows, table->spare, &table->squared);
}

/* Keeps one record for each touched row, in the order of first touch. */
static void keep_heads(const bwi_exec *exec, bwi_table *table)
{
    const bwi_records *r = &table->records;
    table->count = table->settled = kernels_of(exec)->compact(table->count, r->width, r->rows, r->values);
}

static bw_status compact(bwi_exec *exec, int t)
{
    bw_status status = settle_ranks(exec, &exec->tables[t]);
    if (status == BW_OK) {
        sort(exec, &exec->tables[t]);
        sum(exec, t);
        keep_heads(exec, &exec->tables[t]);
    }
    return status;
}

void bwi_records_resume(bwi_exec *exec)
{
    for (int t = 0; t < exec->plan->table_count; t++) {
        keep_heads(exec, &exec->tables[t]);
    }
}

void bwi_records_scale(bwi_exec *exec, float factor)
{
    for (int t = 0; t < exec->plan->table_count; t++) {
        const bwi_table *table = &exec->tables[t];
        exec->plan->kernels->lanes->scale(table->count * table->records.width, factor, table->records.values);
    }
}

/* ---- While a phase runs ---- */

static int64_t records_of_sample(const bwi_exec *exec, const bwi_table *table)
{
    const bwi_bound *list = bwi_exec_bound(exec, exec->program, exec->phase, 0, 0);
    int64_t records = 0;
    for (int n = 0; n < exec->phases[exec->program][exec->phase].count; n++) {
        records += bwi_instruction_records(list[n].instruction, table->records.variable);
    }
    return records;
}

static int64_t samples_before(const bwi_exec *exec, int64_t tile)
{
    int64_t first;
    int size;
    if (tile >= bwi_tiles_of(exec->piece.count, exec->plan->tile)) {
        return exec->piece.count;
    }
    bwi_tile_at(exec->piece.count, exec->plan->tile, tile, &first, &size);
    return first;
}

/* Fills the places where other ranks will write: row 0, and differences that change no sum. */
static void blank(const bwi_exec *exec, const bwi_table *table, int64_t samples)
{
    const bwi_records *r = &table->records;
    int64_t count = samples * r->per_sample;
    if (exec->plan->ranks > 1) {
        bwi_exec_memory(exec)->clear(row_at(table, r->first), (size_t)count * sizeof(double));
        bwi_exec_memory(exec)->fill(count * r->width, -0.0F, values_at(table, r->first));
    }
}

/* Tables that are too full are compacted first. If there still is no capacity for all samples, as many tiles run as there is for;
 * the caller comes back for the others. */
bw_status bwi_records_begin(bwi_exec *exec, int64_t begin, int64_t *end)
{
    const bwi_plan *plan = exec->plan;
    *end = bwi_tiles_of(exec->piece.count, plan->tile);
    if (plan->table_count == 0) {
        return BW_OK;
    }
    int64_t first = samples_before(exec, begin);
    for (int t = 0; t < plan->table_count; t++) {
        bwi_table *table = &exec->tables[t];
        int64_t records = records_of_sample(exec, table);
        if (records && (exec->piece.count - first) * records > table->capacity - table->count) {
            bw_status status = compact(exec, t);
            if (status != BW_OK) {
                return status;
            }
        }
        if (records && (exec->piece.count - first) * records > table->capacity - table->count) {
            int64_t tiles = (table->capacity - table->count) / (records * plan->tile);
            *end = begin + tiles < *end ? begin + tiles : *end;
        }
    }
    if (*end == begin) {
        return bwi_fail(exec->ctx, BW_INVALID_ARGUMENT, "the plan is for windows of at most %lld samples", (long long)plan->window);
    }
    int64_t samples = samples_before(exec, *end) - first;
    for (int t = 0; t < plan->table_count; t++) {
        bwi_table *table = &exec->tables[t];
        int64_t records = records_of_sample(exec, table);
        if (records) {
            table->records.first = table->count;
            table->records.base = exec->samples + first;
            table->records.per_sample = records;
            table->count += samples * records;
            blank(exec, table, samples);
        }
    }
    return BW_OK;
}

/* ---- The update ---- */

bw_status bwi_records_sort(bwi_exec *exec)
{
    bw_status status = BW_OK;
    for (int t = 0; t < exec->plan->table_count && status == BW_OK; t++) {
        status = settle_ranks(exec, &exec->tables[t]);
        sort(exec, &exec->tables[t]);
    }
    return status;
}

double bwi_records_sum(bwi_exec *exec)
{
    double squared = 0;
    for (int t = 0; t < exec->plan->table_count; t++) {
        sum(exec, t);
        squared += exec->tables[t].squared;
    }
    return squared;
}

/* How records of the last piece belong to lanes, by its tiles. */
static bwi_record_lanes lanes_of(const bwi_exec *exec, const bwi_table *table)
{
    const bwi_plan *plan = exec->plan;
    const bwi_records *r = &table->records;
    int64_t tiles = bwi_tiles_of(exec->piece.count, plan->tile), full = exec->piece.count / plan->tile;
    bwi_record_lanes lanes = {.first = r->first,
                              .per_sample = r->per_sample,
                              .offset = r->base - (exec->samples - exec->piece.count),
                              .tile = plan->tile,
                              .full = full,
                              .last = tiles - full,
                              .lane = exec->tiles - tiles,
                              .lanes = plan->lanes};
    for (int64_t k = full; k < tiles; k++) {
        lanes.begins[k - full] = samples_before(exec, k);
    }
    return lanes;
}

_Static_assert((int)BWI_RECORD_TILES >= (int)BWI_MAX_SIZES, "a piece ends with a tile of each size at most");

double bwi_records_lane_norm(const bwi_exec *exec, int lane)
{
    double squared = 0;
    int64_t number = exec->plan->first_lane + lane;
    for (int t = 0; t < exec->plan->table_count; t++) {
        const bwi_table *table = &exec->tables[t];
        bwi_record_lanes lanes = lanes_of(exec, table);
        squared += kernels_of(exec)->lane_norm(&lanes, number, table->count, table->records.width, table->sorted,
                                               table->records.values, &(bwi_scaling){.v = NULL});
    }
    return squared;
}

double bwi_records_square(const bwi_exec *exec, const bwi_table *table, int lane, const bwi_scaling *scaling)
{
    bwi_record_lanes lanes = lanes_of(exec, table);
    lanes.lanes = lane < 0 ? 1 : lanes.lanes;
    return kernels_of(exec)->lane_norm(&lanes, lane < 0 ? 0 : lane, table->count, table->records.width, table->sorted,
                                       table->records.values, scaling);
}

bool bwi_records_are_whole(const bwi_exec *exec)
{
    bool whole = true;
    for (int t = 0; t < exec->plan->table_count; t++) {
        const bwi_table *table = &exec->tables[t];
        whole = whole && table->records.first == 0 && table->count == exec->piece.count * table->records.per_sample;
    }
    return whole;
}

bool bwi_records_are_finite(const bwi_exec *exec)
{
    double squared = 0;
    for (int t = 0; t < exec->plan->table_count; t++) {
        const bwi_records *r = &exec->tables[t].records;
        squared += exec->plan->kernels->sum_of_squares(exec->tables[t].count * r->width, r->values);
    }
    return isfinite(squared);
}

static int64_t rows_in_block(const bwi_table *table)
{
    return table->records.width < BWI_UPDATE_BLOCK ? BWI_UPDATE_BLOCK / table->records.width : 1;
}

static bool touched_only(const bwi_exec *exec, const bwi_table *table)
{
    return exec->touched_only || table->records.variable->lazy;
}

static int64_t blocks_of(const bwi_exec *exec, const bwi_table *table)
{
    int64_t rows = rows_in_block(table);
    return touched_only(exec, table) ? (table->touched + rows - 1) / rows : bwi_update_blocks(table->records.variable);
}

int64_t bwi_records_blocks(const bwi_exec *exec)
{
    int64_t blocks = 0;
    for (int t = 0; t < exec->plan->table_count; t++) {
        blocks += blocks_of(exec, &exec->tables[t]);
    }
    return blocks;
}

/* Updates row by row; the host reads a few pairs of the list at a time. */
static void update_touched(const bwi_exec *exec, const bwi_table *table, int64_t block)
{
    enum { PAIRS = 64 };
    const bwi_records *r = &table->records;
    const unsigned char *sorted = table->sorted;
    uint64_t pairs[PAIRS];
    int64_t rows = rows_in_block(table), end = (block + 1) * rows < table->touched ? (block + 1) * rows : table->touched;
    for (int64_t from = block * rows, count; from < end; from += count) {
        count = end - from < PAIRS ? end - from : PAIRS;
        bwi_exec_memory(exec)->read(pairs, sorted + (size_t)from * sizeof *pairs, (size_t)count * sizeof *pairs);
        for (int64_t i = 0; i < count; i++) {
            exec->updater.take(exec->updater.user, r->variable, bwi_record_row(pairs[i]) * r->width, r->width,
                               values_at(table, bwi_record_place(pairs[i])));
        }
    }
}

/* Updates a block of the whole gradient: touched rows are put among zeros in the worker's buffer, and taken out again. */
void bwi_records_update(const bwi_exec *exec, int worker, int64_t block)
{
    const bwi_table *table = exec->tables;
    for (; block >= blocks_of(exec, table); table++) {
        block -= blocks_of(exec, table);
    }
    const bwi_variable *variable = table->records.variable;
    if (touched_only(exec, table)) {
        update_touched(exec, table, block);
        return;
    }
    const bwi_records *r = &table->records;
    void *buffer = exec->arena + exec->plan->scatter_offset + (size_t)worker * BWI_UPDATE_BLOCK * sizeof(float);
    int64_t first = block * BWI_UPDATE_BLOCK;
    int64_t count = variable->count - first < BWI_UPDATE_BLOCK ? variable->count - first : BWI_UPDATE_BLOCK;
    kernels_of(exec)->scatter(first, count, r->width, table->touched, table->sorted, r->values, buffer, false);
    exec->updater.take(exec->updater.user, variable, first, count, buffer);
    kernels_of(exec)->scatter(first, count, r->width, table->touched, table->sorted, r->values, buffer, true);
}
