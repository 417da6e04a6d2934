/* Gives the gradient noise scale what it needs: the gradients of a window's lanes, as long as they are separate. */
#include "exec/internal.h"

/* The samples of tile t are in lane t mod lanes; only the last tiles of a window are smaller than the others. */
int bwi_exec_lane_samples(bwi_exec *exec, int64_t samples[BWI_MAX_LANES])
{
    const bwi_plan *plan = exec->plan;
    int64_t tiles = bwi_tiles_of(exec->piece.count, plan->tile);
    int used = tiles < plan->lanes ? (int)tiles : plan->lanes;
    if (plan->ranks > 1 || used > BWI_MAX_LANES || exec->samples != exec->piece.count || !bwi_records_are_whole(exec)) {
        return 0;
    }
    (void)bwi_records_sort(exec); /* which fails with ranks only; the update sorts them again, into the same order */
    for (int lane = 0; lane < used; lane++) {
        samples[lane] = 0;
    }
    for (int64_t k = 0; k < tiles; k++) {
        int64_t first;
        int size;
        bwi_tile_at(exec->piece.count, plan->tile, k, &first, &size);
        samples[k & (plan->lanes - 1)] += (int64_t)1 << size;
    }
    return used;
}

/* The records of a table are sorted already. */
static void table_squares(const bwi_exec *exec, const bwi_variable *variable, int used, const void *v, double correction,
                          double epsilon, double *squares)
{
    for (int t = 0; t < exec->plan->table_count; t++) {
        const bwi_table *table = &exec->tables[t];
        for (int lane = 0; lane <= used && table->records.variable == variable; lane++) {
            squares[lane] += bwi_records_square(exec, table, lane < used ? lane : -1, v, correction, epsilon);
        }
    }
}

void bwi_exec_lane_squares(bwi_exec *exec, const bwi_variable *variable, const void *v, double correction, double epsilon,
                           double *squares)
{
    const bwi_plan *plan = exec->plan;
    size_t gradient = plan->gradients[variable->index];
    int64_t tiles = bwi_tiles_of(exec->piece.count, plan->tile);
    int used = tiles < plan->lanes ? (int)tiles : plan->lanes;
    unsigned state = bwi_float_begin();
    if (gradient == SIZE_MAX) {
        table_squares(exec, variable, used, v, correction, epsilon, squares);
        bwi_float_restore(state);
        return;
    }
    bwi_split_settle(exec);
    plan->kernels->lanes->squares(variable->count, used, (int64_t)(plan->lane_bytes / sizeof(float)),
                                  (const void *)(bwi_exec_lane(exec, 0) + gradient), v, correction, epsilon, squares);
    bwi_float_restore(state);
}
