/*
 * Gradients of sparse variables (tables of embeddings). The window's records lie in the order in which they were made: by
 * piece, phase, position of the sample, node, place. To sum them they are sorted by row, stably, and each row's records
 * are added, in that order, into the first of them. So a row's sum is one chain of additions in the order of positions:
 * it has the same bits for any tiles, workers and ranks.
 *
 * If a window has more records than there is room for, they are summed before it goes on, and one record for each touched
 * row remains, in front. That only does a part of the chain earlier: the bits stay the same. The plan gives room for every row
 * of the table and the records of a tile for each lane, so this always helps.
 *
 * Ranks write the records of their own samples; the others' places hold nothing (row 0, differences -0.0, which change no sum),
 * until the ranks add them.
 */
#include "exec/exec.h"

#include <string.h>

/* Sorted records that a worker sums at a time, and floats below which one worker is quicker alone. */
enum { SHARE = 1024, WORTH_SHARING_FLOATS = 1 << 16 };

/* A record in the sorted list: its row above, its place below. */
static int64_t row_of(uint64_t pair)
{
    return (int64_t)(pair >> 32);
}
static int64_t place_of(uint64_t pair)
{
    return (int64_t)(pair & UINT32_MAX);
}

static double *rows_of(const bwi_table *table)
{
    return table->records.rows;
}
static float *values_of(const bwi_table *table)
{
    return table->records.values;
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
        table->sorted = (uint64_t *)(void *)(exec->arena + from->sorted);
        table->spare = table->sorted + from->capacity;
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
        status = exec->rank->sum_doubles(exec->ctx, rows_of(table) + from, count);
        if (status == BW_OK) {
            status = exec->rank->sum_floats(exec->ctx, values_of(table) + from * width, count * width);
        }
    }
    table->settled = table->count;
    return status;
}

/* Stable, from the lowest byte of the rows to the highest: the places within a row stay in order. */
static void sort(bwi_table *table)
{
    int64_t count = table->count;
    uint64_t *from = table->sorted, *to = table->spare;
    for (int64_t i = 0; i < count; i++) {
        from[i] = (uint64_t)rows_of(table)[i] << 32 | (uint64_t)i;
    }
    uint64_t last = (uint64_t)table->records.variable->shape.extent[0] - 1;
    for (int shift = 32; shift < 64 && last >> (shift - 32); shift += 8) {
        uint32_t ends[256] = {0}, sum = 0;
        for (int64_t i = 0; i < count; i++) {
            ends[from[i] >> shift & 255]++;
        }
        for (int digit = 0; digit < 256; digit++) {
            sum += ends[digit];
            ends[digit] = sum - ends[digit];
        }
        for (int64_t i = 0; i < count; i++) {
            to[ends[from[i] >> shift & 255]++] = from[i];
        }
        uint64_t *swap = from;
        from = to;
        to = swap;
    }
    table->sorted = from;
    table->spare = to;
}

static bool heads(const uint64_t *sorted, int64_t i)
{
    return i == 0 || row_of(sorted[i]) != row_of(sorted[i - 1]);
}

/* The first of a row's records gets their sum; its squared norm is left in the spare list, at the record's number. */
static void sum_shares(void *user, int worker)
{
    bwi_exec *exec = user;
    bwi_table *table = &exec->tables[exec->table];
    const bwi_kernels *kernels = exec->plan->kernels;
    const uint64_t *sorted = table->sorted;
    int64_t width = table->records.width;
    int turn = 0;
    for (int64_t share; (share = bwi_exec_next(exec, worker, &turn)) >= 0;) {
        int64_t i = SHARE * share, end = i + SHARE;
        while (i < end && i < table->count) {
            if (!heads(sorted, i)) {
                i++;
                continue;
            }
            int64_t head = i;
            float *sum = values_of(table) + place_of(sorted[head]) * width;
            for (i++; i < table->count && row_of(sorted[i]) == row_of(sorted[head]); i++) {
                kernels->add(width, values_of(table) + place_of(sorted[i]) * width, sum);
            }
            double squared = kernels->sum_of_squares(width, sum);
            memcpy(&table->spare[head], &squared, sizeof squared);
        }
    }
}

/* What is left of the sorted list is one entry for each touched row. */
static void sum(bwi_exec *exec, int t)
{
    bwi_table *table = &exec->tables[t];
    exec->table = t;
    bool share = table->count > SHARE && table->count * table->records.width > WORTH_SHARING_FLOATS;
    int workers = share ? exec->plan->workers : 1;
    bwi_exec_share_out(exec, workers, (table->count + SHARE - 1) / SHARE);
    bwi_pool_run(exec->ctx, workers, sum_shares, exec);
    table->squared = 0;
    int64_t touched = 0, row = -1;
    for (int64_t i = 0; i < table->count; i++) {
        uint64_t pair = table->sorted[i];
        if (row_of(pair) == row) {
            rows_of(table)[place_of(pair)] = -1; /* its difference is in the row's first record */
            continue;
        }
        double squared;
        memcpy(&squared, &table->spare[i], sizeof squared);
        table->squared += squared;
        row = row_of(pair);
        table->sorted[touched++] = pair;
    }
    table->touched = touched;
}

/* Of summed records: one a touched row remains, in the order of first touch. */
static void keep_heads(bwi_table *table)
{
    bwi_records *r = &table->records;
    int64_t kept = 0;
    for (int64_t i = 0; i < table->count; i++) {
        if (rows_of(table)[i] >= 0) {
            if (i > kept) {
                rows_of(table)[kept] = rows_of(table)[i];
                memcpy(values_of(table) + kept * r->width, values_of(table) + i * r->width, (size_t)r->width * sizeof(float));
            }
            kept++;
        }
    }
    table->count = table->settled = kept;
}

static bw_status compact(bwi_exec *exec, int t)
{
    bw_status status = settle_ranks(exec, &exec->tables[t]);
    if (status == BW_OK) {
        sort(&exec->tables[t]);
        sum(exec, t);
        keep_heads(&exec->tables[t]);
    }
    return status;
}

void bwi_records_resume(bwi_exec *exec)
{
    for (int t = 0; t < exec->plan->table_count; t++) {
        keep_heads(&exec->tables[t]);
    }
}

void bwi_records_scale(bwi_exec *exec, float factor)
{
    for (int t = 0; t < exec->plan->table_count; t++) {
        const bwi_table *table = &exec->tables[t];
        for (int64_t i = 0; i < table->count * table->records.width; i++) {
            values_of(table)[i] *= factor;
        }
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

/* Where other ranks will write. */
static void blank(const bwi_exec *exec, const bwi_table *table, int64_t samples)
{
    const bwi_records *r = &table->records;
    int64_t count = exec->plan->ranks > 1 ? samples * r->per_sample : 0;
    for (int64_t i = 0; i < count; i++) {
        rows_of(table)[r->first + i] = 0;
    }
    for (int64_t i = 0; i < count * r->width; i++) {
        values_of(table)[r->first * r->width + i] = -0.0F;
    }
}

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
        sort(&exec->tables[t]);
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

/* The lane of the sample that a record of the last piece is from; -1: an earlier one's, or several. */
static int lane_of(const bwi_exec *exec, const bwi_table *table, int64_t place)
{
    const bwi_plan *plan = exec->plan;
    const bwi_records *r = &table->records;
    if (place < r->first || r->per_sample == 0) {
        return -1;
    }
    int64_t tiles = bwi_tiles_of(exec->piece.count, plan->tile), begin = exec->samples - exec->piece.count;
    int64_t sample = r->base + (place - r->first) / r->per_sample - begin, k = sample / plan->tile;
    while (k + 1 < tiles && samples_before(exec, k + 1) <= sample) {
        k++;
    }
    return (int)((exec->tiles - tiles + k) % plan->lanes) - exec->ctx->rank * plan->own_lanes;
}

double bwi_records_lane_norm(const bwi_exec *exec, int lane)
{
    double squared = 0;
    for (int t = 0; t < exec->plan->table_count; t++) {
        const bwi_table *table = &exec->tables[t];
        int64_t width = table->records.width;
        for (int64_t head = 0, end; head < table->count; head = end) {
            for (end = head + 1; end < table->count && !heads(table->sorted, end); end++) {
            }
            for (int64_t k = 0; k < width; k++) {
                double total = 0;
                for (int64_t i = head; i < end; i++) {
                    int64_t place = place_of(table->sorted[i]);
                    total += lane_of(exec, table, place) == lane ? (double)values_of(table)[place * width + k] : 0;
                }
                squared += total * total;
            }
        }
    }
    return squared;
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

static void update_touched(const bwi_exec *exec, const bwi_table *table, int64_t block)
{
    const bwi_records *r = &table->records;
    int64_t rows = rows_in_block(table), end = (block + 1) * rows < table->touched ? (block + 1) * rows : table->touched;
    for (int64_t i = block * rows; i < end; i++) {
        exec->updater.take(exec->updater.user, r->variable, row_of(table->sorted[i]) * r->width, r->width,
                           values_of(table) + place_of(table->sorted[i]) * r->width);
    }
}

/* The first touched row that is `row` or comes after it. */
static int64_t touched_from(const bwi_table *table, int64_t row)
{
    int64_t low = 0, high = table->touched;
    while (low < high) {
        int64_t middle = (low + high) / 2;
        if (row_of(table->sorted[middle]) < row) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* Puts the touched rows of a block into the worker's buffer, or, with `clear`, zeros again: untouched ones are always zero. */
static void scatter(const bwi_table *table, int64_t first, int64_t count, float *buffer, bool clear)
{
    const bwi_records *r = &table->records;
    for (int64_t i = touched_from(table, first / r->width); i < table->touched; i++) {
        int64_t at = row_of(table->sorted[i]) * r->width, from = at < first ? first : at;
        int64_t to = at + r->width < first + count ? at + r->width : first + count;
        if (from >= to) {
            break;
        }
        if (clear) {
            memset(buffer + (from - first), 0, (size_t)(to - from) * sizeof(float));
        } else {
            memcpy(buffer + (from - first), values_of(table) + place_of(table->sorted[i]) * r->width + (from - at),
                   (size_t)(to - from) * sizeof(float));
        }
    }
}

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
    float *buffer = (float *)(void *)(exec->arena + exec->plan->scatter_offset) + (int64_t)worker * BWI_UPDATE_BLOCK;
    int64_t first = block * BWI_UPDATE_BLOCK;
    int64_t count = variable->count - first < BWI_UPDATE_BLOCK ? variable->count - first : BWI_UPDATE_BLOCK;
    scatter(table, first, count, buffer, false);
    exec->updater.take(exec->updater.user, variable, first, count, buffer);
    scatter(table, first, count, buffer, true);
}
