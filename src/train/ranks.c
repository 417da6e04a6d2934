/*
 * How ranks begin to train. If one were refused, or trained with different numbers, the others would wait for it forever, so either
 * all of them begin or none does.
 */
#include "train/internal.h"

#include <math.h>
#include <string.h>

/* Each rank compares the sum over all ranks with its number times the count of ranks. If one rank finds a difference, all stop. */
static bw_status compare(bw_context *ctx, const bwi_alike *a)
{
    static const char *const names[] = {"samples",   "samples per update", "updates", "epochs", "validation samples",
                                        "variables", "steps so far"};
    enum { FACTS = 8, SIZES = 7 };
    const double mine[FACTS] = {(double)bw_dataset_count(a->training),
                                (double)bwi_dataset_largest_batch(a->training),
                                (double)bwi_dataset_batch_count(a->training, 0),
                                a->epochs,
                                a->validation ? (double)bw_dataset_count(a->validation) : 0,
                                a->variables,
                                (double)a->from,
                                (double)(uint32_t)bwi_dataset_batch_hash(a->training, a->epochs)};
    double ranks = bwi_rank_of(ctx)->count(ctx->ranks);
    double sums[FACTS];
    memcpy(sums, mine, sizeof sums);
    bw_status status = bwi_rank_of(ctx)->sum_doubles(ctx, sums, FACTS);
    for (int k = 0; k < FACTS && status == BW_OK; k++) {
        if (fabs(sums[k] - ranks * mine[k]) > 0 && k == SIZES) {
            status =
                bwi_fail(ctx, BW_INVALID_ARGUMENT, "ranks differ in their batch sizes, or in the epochs at which these change");
        } else if (fabs(sums[k] - ranks * mine[k]) > 0) {
            status = bwi_fail(ctx, BW_INVALID_ARGUMENT, "ranks differ in their number of %s; this one has %.0f", names[k], mine[k]);
        }
    }
    return status;
}

bw_status bwi_ranks_enter(bw_context *ctx, bw_status status)
{
    bw_status all = ctx && ctx->ranks ? bwi_rank_of(ctx)->agree(ctx, status) : BW_OK;
    return status != BW_OK ? status : all;
}

bw_status bwi_ranks_begin(bw_context *ctx, const bwi_alike *alike, bw_status status)
{
    if (!ctx->ranks) {
        return status;
    }
    bw_status all = bwi_rank_of(ctx)->agree(ctx, status);
    if (status != BW_OK) {
        return status;
    }
    if (all != BW_OK) {
        return bwi_fail(ctx, all, "another rank could not begin");
    }
    status = compare(ctx, alike);
    all = bwi_rank_of(ctx)->agree(ctx, status);
    return status == BW_OK && all != BW_OK ? bwi_fail(ctx, all, "another rank trains with other numbers") : status;
}
