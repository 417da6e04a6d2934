/*
 * Gives all ranks of MPI what each of them has, in segments: a rank sends its segment to all others and receives theirs into their
 * places.
 */
#include "rank/mpi_group.h"

enum { GATHER_TAG = 3, SEGMENT_BYTES = 1 << 20 };

typedef struct gathering {
    unsigned char *values; /* of the host */
    const size_t *begins;
    size_t at, most; /* in each part: the segment that is under way, and the bytes of the largest part */
    bool begun;
} gathering;

static size_t segment_bytes(const gathering *g, int rank)
{
    size_t size = g->begins[rank + 1] - g->begins[rank], left = size > g->at ? size - g->at : 0;
    return left < SEGMENT_BYTES ? left : SEGMENT_BYTES;
}

static void exchange(bwi_mpi_group *all, const gathering *g)
{
    size_t mine = segment_bytes(g, all->rank);
    all->message_count = 0;
    for (int rank = 0; rank < all->ranks.count; rank++) {
        size_t theirs = segment_bytes(g, rank);
        if (rank != all->rank && theirs > 0) {
            bwi_message_post(all, false, g->values + g->begins[rank] + g->at, theirs, rank, GATHER_TAG);
        }
        if (rank != all->rank && mine > 0) {
            bwi_message_post(all, true, g->values + g->begins[all->rank] + g->at, mine, rank, GATHER_TAG);
        }
    }
}

static bool work(bwi_mpi_group *all, void *user, bool *over)
{
    gathering *g = user;
    bool moved = false;
    if (bwi_messages_pending(all, &moved) || all->status != BW_OK) {
        return moved;
    }
    g->at += g->begun ? SEGMENT_BYTES : 0;
    g->begun = true;
    *over = g->at >= g->most;
    if (!*over) {
        exchange(all, g);
    } else {
        all->message_count = 0;
    }
    return true;
}

bw_status bwi_mpi_gather(bw_context *ctx, void *values, const size_t *begins)
{
    const bwi_memory_kernels *memory = bwi_kernels_of(ctx)->memory;
    int ranks = ctx->ranks->count;
    gathering g = {.begins = begins};
    for (int rank = 0; rank < ranks; rank++) {
        g.most = begins[rank + 1] - begins[rank] > g.most ? begins[rank + 1] - begins[rank] : g.most;
    }
    g.values = memory->open(values, begins[ranks]);
    bw_status status = bwi_mpi_run(ctx, work, &g, true);
    memory->close(values, begins[ranks]);
    return status;
}
