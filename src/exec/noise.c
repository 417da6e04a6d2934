/* Gives the gradient noise scale what it needs: the gradients of a window's lanes, as long as they are separate. */
#include "exec/internal.h"

/* The samples of tile t are in lane t mod lanes; only the last tiles of a window are smaller than the others. */
int bwi_exec_lane_samples(const bwi_exec *exec, int64_t samples[BWI_MAX_LANES])
{
    const bwi_plan *plan = exec->plan;
    int64_t tiles = bwi_tiles_of(exec->piece.count, plan->tile);
    int used = tiles < plan->lanes ? (int)tiles : plan->lanes;
    if (plan->ranks > 1 || used > BWI_MAX_LANES || exec->samples != exec->piece.count) {
        return 0;
    }
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

void bwi_exec_lane_squares(bwi_exec *exec, const bwi_variable *variable, const void *v, double correction, double epsilon,
                           double *squares)
{
    const bwi_plan *plan = exec->plan;
    size_t gradient = plan->gradients[variable->index];
    int64_t tiles = bwi_tiles_of(exec->piece.count, plan->tile);
    int used = tiles < plan->lanes ? (int)tiles : plan->lanes;
    if (gradient == SIZE_MAX) {
        return;
    }
    unsigned state = bwi_float_begin();
    bwi_split_settle(exec);
    plan->kernels->lanes->squares(variable->count, used, (int64_t)(plan->lane_bytes / sizeof(float)),
                                  (const void *)(bwi_exec_lane(exec, 0) + gradient), v, correction, epsilon, squares);
    bwi_float_restore(state);
}
