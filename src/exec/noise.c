/* Gives the gradient noise scale what it needs: the gradients of a window's lanes, as long as they are separate. */
#include "exec/internal.h"

static int used_lanes(const bwi_exec *exec)
{
    int64_t tiles = bwi_tiles_of(exec->piece.count, exec->plan->tile);
    return tiles < exec->plan->lanes ? (int)tiles : exec->plan->lanes;
}

/* The samples of tile t are in lane t mod lanes; only the last tiles of a window are smaller than the others. */
bw_status bwi_exec_lane_samples(bwi_exec *exec, int *lanes, int64_t samples[BWI_MAX_LANES])
{
    const bwi_plan *plan = exec->plan;
    int64_t tiles = bwi_tiles_of(exec->piece.count, plan->tile);
    *lanes = 0;
    if (plan->lanes > BWI_MAX_LANES || exec->samples != exec->piece.count || !bwi_records_are_whole(exec)) {
        return BW_OK;
    }
    bw_status status = bwi_records_sort(exec); /* the update sorts them again, into the same order */
    *lanes = used_lanes(exec);
    for (int lane = 0; lane < *lanes; lane++) {
        samples[lane] = 0;
    }
    for (int64_t k = 0; k < tiles; k++) {
        int64_t first;
        int size;
        bwi_tile_at(exec->piece.count, plan->tile, k, &first, &size);
        samples[k & (plan->lanes - 1)] += (int64_t)1 << size;
    }
    return status;
}

/* The records of a table are sorted already, and every rank has all of them. */
static const bwi_table *table_of(const bwi_exec *exec, const bwi_variable *variable)
{
    const bwi_table *table = exec->tables;
    while (table->records.variable != variable) {
        table++;
    }
    return table;
}

bool bwi_exec_is_dense(const bwi_exec *exec, const bwi_variable *variable)
{
    return exec->plan->gradients[variable->index] != SIZE_MAX;
}

static void *gradient_of(const bwi_exec *exec, const bwi_variable *variable)
{
    return bwi_exec_lane(exec, 0) + exec->plan->gradients[variable->index];
}

/* Each rank has the norms of its own lanes, and zeros for the others, so that adding them over ranks only brings them together. */
static bw_status dense_squares(bwi_exec *exec, const bwi_variable *variable, const bwi_scaling *scaling, double *squares)
{
    const bwi_plan *plan = exec->plan;
    int used = used_lanes(exec), own = used - plan->first_lane;
    double lanes[BWI_MAX_LANES + 1] = {0}, all[BWI_MAX_LANES] = {0};
    own = own < 0 ? 0 : own > plan->own_lanes ? plan->own_lanes : own;
    plan->kernels->lanes->squares(variable->count, own, (int64_t)(plan->lane_bytes / sizeof(float)), gradient_of(exec, variable),
                                  scaling, lanes);
    for (int lane = 0; lane < own; lane++) {
        all[plan->first_lane + lane] = lanes[lane];
    }
    bw_status status = plan->ranks > 1 ? exec->rank->sum_doubles(exec->ctx, all, used) : BW_OK;
    for (int lane = 0; lane < used; lane++) {
        squares[lane] += all[lane];
    }
    return status;
}

bw_status bwi_exec_lane_squares(bwi_exec *exec, const bwi_variable *variable, const bwi_scaling *scaling, double *squares)
{
    bwi_float_begin(exec->ctx);
    bw_status status = BW_OK;
    if (bwi_exec_is_dense(exec, variable)) {
        bwi_split_settle(exec);
        status = dense_squares(exec, variable, scaling, squares);
    } else {
        for (int lane = 0; lane < used_lanes(exec); lane++) {
            squares[lane] += bwi_records_square(exec, table_of(exec, variable), lane, scaling);
        }
    }
    bwi_float_end(exec->ctx);
    return status;
}

double bwi_exec_sum_square(bwi_exec *exec, const bwi_variable *variable, const bwi_scaling *scaling)
{
    double square[2] = {0};
    bwi_float_begin(exec->ctx);
    if (bwi_exec_is_dense(exec, variable)) {
        exec->plan->kernels->lanes->squares(variable->count, 1, 0, gradient_of(exec, variable), scaling, square);
    } else {
        square[0] = bwi_records_square(exec, table_of(exec, variable), -1, scaling);
    }
    bwi_float_end(exec->ctx);
    return square[0];
}

double bwi_exec_mean_above_zero(const bwi_exec *exec, const bwi_variable *variable, const void *values)
{
    bwi_float_begin(exec->ctx);
    double mean = exec->plan->kernels->lanes->mean_above_zero(variable->count, values);
    bwi_float_end(exec->ctx);
    return mean;
}
