/*
 * The row of a context, and the row for a single rank, which has nobody to add to or to wait for.
 */
#include "rank/internal.h"

static int one_count(bw_ranks *ranks)
{
    (void)ranks;
    return 1;
}

static bw_status one_sum_floats(bw_context *ctx, void *values, int64_t count)
{
    (void)ctx, (void)values, (void)count;
    return BW_OK;
}

static bw_status one_sum_doubles(bw_context *ctx, void *values, int64_t count)
{
    (void)ctx, (void)values, (void)count;
    return BW_OK;
}

static bw_status one_gather(bw_context *ctx, void *values, const size_t *begins)
{
    (void)ctx, (void)values, (void)begins;
    return BW_OK;
}

static bw_status one_agree(bw_context *ctx, bw_status mine)
{
    (void)ctx;
    return mine;
}

static void one_leave(bw_context *ctx)
{
    (void)ctx;
}

static const bwi_rank_row one_row = {
    .name = "one",
    .count = one_count,
    .sum_floats = one_sum_floats,
    .sum_doubles = one_sum_doubles,
    .gather = one_gather,
    .agree = one_agree,
    .leave = one_leave,
};

const bwi_rank_row *bwi_rank_of(const bw_context *ctx)
{
    return ctx->ranks ? ctx->ranks->row : &one_row;
}

size_t bwi_rank_sum_bytes(const bw_context *ctx, const bwi_rank_sum *sum)
{
    const bwi_rank_row *row = bwi_rank_of(ctx);
    return ctx->ranks && row->bytes ? row->bytes(ctx->ranks, sum) : 0;
}

bw_status bwi_rank_sum_lanes(bw_context *ctx, void *first, const bwi_rank_sum *sum)
{
    const bwi_rank_row *row = bwi_rank_of(ctx);
    if (!ctx->ranks || row->sum_lanes) {
        return ctx->ranks ? row->sum_lanes(ctx, first, sum) : BW_OK;
    }
    int ranks = row->count(ctx->ranks);
    if (!bwi_rank_is_subtree(sum, ranks)) {
        return bwi_fail(ctx, BW_UNIMPLEMENTED, "ranks by %s: %d of them cannot add %d lanes of %d", row->name, ranks, sum->used,
                        sum->lanes.lanes);
    }
    return sum->doubles ? row->sum_doubles(ctx, first, sum->count) : row->sum_floats(ctx, first, sum->count);
}

int bw_ranks_count(const bw_ranks *ranks)
{
    return ranks ? ranks->count : 1;
}

int bw_ranks_end(bw_ranks *ranks, const char *failure, const char **reason)
{
    const char *unused;
    return ranks && ranks->end ? ranks->end(ranks, failure, reason ? reason : &unused) : -1;
}

void bw_ranks_close(bw_ranks *ranks)
{
    if (ranks && ranks->close) {
        ranks->close(ranks);
    }
}
