/*
 * Sums over a number of ranks that is no power of two, where a rank's run of lanes may consist of several subtrees. A segment of
 * the values is cut into as many parts as there are ranks. Every rank gets its part of all subtrees' sums, adds them up by the
 * lanes' tree (tree.c), and sends the result to all. Each value is added by one rank, so that all get the same bits.
 */
#include "rank/mpi_group.h"

enum { LANES_TAG = 2, PART_BYTES = 1 << 16 };

typedef struct lanes {
    const bwi_rank_sum *sum;
    const bwi_kernels *kernels;
    unsigned char *first; /* this rank's first lane */
    size_t size;          /* of a value */
    int64_t begin, count; /* of the segment that is under way */
    int64_t most;         /* values of a segment */
    int parts;            /* subtrees that hold anything, of all ranks */
    int phase;            /* 0: between segments; 1: subtrees travel; 2: results do */
    bwi_tree tree;
    /* Where subtrees lie that came, that go, and results. */
    unsigned char *came, *goes, *results;
} lanes;

typedef void (*part_visitor)(bwi_mpi_group *all, lanes *l, int rank, int lane, int number);

/* Calls for each subtree that holds anything, in the order of lanes; `number` counts over all ranks. Returns how many there are. */
static int visit(bwi_mpi_group *all, lanes *l, part_visitor call)
{
    int number = 0, ranks = all->ranks.count;
    for (int rank = 0; rank < ranks; rank++) {
        int lane = bwi_rank_lane(l->sum->lanes, ranks, rank), end = bwi_rank_lane(l->sum->lanes, ranks, rank + 1);
        for (; lane < end && lane < l->sum->used; lane += bwi_subtree(lane, end)) {
            if (call) {
                call(all, l, rank, lane, number);
            }
            number++;
        }
    }
    return number;
}

/* A rank's part of the segment, in bytes from its beginning. */
static size_t part_begin(const bwi_mpi_group *all, const lanes *l, int rank)
{
    return (size_t)(l->count * rank / all->ranks.count) * l->size;
}

static size_t part_bytes(const bwi_mpi_group *all, const lanes *l, int rank)
{
    return part_begin(all, l, rank + 1) - part_begin(all, l, rank);
}

void bwi_message_post(bwi_mpi_group *all, bool sends, void *bytes, size_t size, int rank, int tag)
{
    bwi_message *m = &all->messages[all->message_count];
    int error =
        sends ? all->mpi->send(&m->request, bytes, size, rank, tag) : all->mpi->receive(&m->request, bytes, size, rank, tag);
    m->expected = sends ? -1 : (int64_t)size;
    m->pending = error == 0;
    all->message_count += error == 0;
    if (error != 0) {
        bwi_group_fail_mpi(all, error, "exchange sums");
    }
}

/* A subtree of another rank is expected. One of this rank goes to all others, and this rank's part of it stays. */
static void exchange(bwi_mpi_group *all, lanes *l, int rank, int lane, int number)
{
    int own = bwi_rank_lane(l->sum->lanes, all->ranks.count, all->rank);
    size_t mine = part_bytes(all, l, all->rank), bytes = (size_t)l->count * l->size;
    unsigned char *came = l->came + (size_t)number * mine;
    if (rank != all->rank) {
        bwi_message_post(all, false, came, mine, rank, LANES_TAG);
        return;
    }
    l->kernels->memory->read(l->goes, l->first + (size_t)(lane - own) * l->sum->stride + (size_t)l->begin * l->size, bytes);
    l->kernels->memory->read(
        came, l->first + (size_t)(lane - own) * l->sum->stride + (size_t)l->begin * l->size + part_begin(all, l, all->rank), mine);
    for (int to = 0; to < all->ranks.count; to++) {
        if (to != all->rank) {
            bwi_message_post(all, true, l->goes + part_begin(all, l, to), part_bytes(all, l, to), to, LANES_TAG);
        }
    }
    l->goes += bytes;
}

static void take(bwi_mpi_group *all, lanes *l, int rank, int lane, int number)
{
    int end = bwi_rank_lane(l->sum->lanes, all->ranks.count, rank + 1);
    bwi_tree_take(&l->tree, l->came + (size_t)number * part_bytes(all, l, all->rank), bwi_subtree(lane, end));
}

/* The staging memory is divided: subtrees that came, then levels of the tree, results, and subtrees that go. */
static void begin_segment(bwi_mpi_group *all, lanes *l)
{
    int64_t left = l->sum->count - l->begin;
    l->count = left < l->most ? left : l->most;
    size_t mine = part_bytes(all, l, all->rank), levels = (size_t)bwi_tree_levels(l->sum->lanes.lanes, l->parts);
    l->came = all->staging;
    l->results = l->came + ((size_t)l->parts + levels) * mine;
    l->goes = l->results + (size_t)l->count * l->size;
    all->message_count = 0;
    visit(all, l, exchange);
}

/* Adds this rank's part, in its place in the first lane, and shows it to all. */
static void add_part(bwi_mpi_group *all, lanes *l)
{
    size_t mine = part_bytes(all, l, all->rank), at = part_begin(all, l, all->rank);
    unsigned char *result = l->first + (size_t)l->begin * l->size + at;
    l->tree = (bwi_tree){.kernels = l->kernels,
                         .doubles = l->sum->doubles,
                         .count = (int64_t)(mine / l->size),
                         .result = result,
                         .scratch = l->came + (size_t)l->parts * mine};
    unsigned state = bwi_float_set();
    visit(all, l, take);
    bwi_tree_end(&l->tree);
    bwi_float_restore(state);
    l->kernels->memory->read(l->results + at, result, mine);
    all->message_count = 0;
    for (int rank = 0; rank < all->ranks.count; rank++) {
        if (rank != all->rank) {
            bwi_message_post(all, false, l->results + part_begin(all, l, rank), part_bytes(all, l, rank), rank, LANES_TAG);
            bwi_message_post(all, true, l->results + at, mine, rank, LANES_TAG);
        }
    }
}

bool bwi_messages_pending(bwi_mpi_group *all, bool *moved)
{
    bool pending = false;
    for (int k = 0; k < all->message_count; k++) {
        bwi_message *m = &all->messages[k];
        int done = 0, from = 0;
        size_t size = 0;
        int error = m->pending ? all->mpi->test(&m->request, &done, &from, &size) : 0;
        m->pending = m->pending && error == 0 && !done;
        *moved = *moved || done;
        pending = pending || m->pending;
        if (error != 0) {
            bwi_group_fail_mpi(all, error, "exchange sums");
        } else if (done && m->expected >= 0 && m->expected != (int64_t)size) {
            bwi_group_fail(all, BW_INTERNAL,
                           "ranks do not make the same calls: rank %d of %d expected %lld bytes of rank %d, found %zu", all->rank,
                           all->ranks.count, (long long)m->expected, from, size);
        }
    }
    return pending;
}

/* Once nothing is under way any more, the next phase begins. */
static bool work(bwi_mpi_group *all, void *user, bool *over)
{
    lanes *l = user;
    bool moved = false;
    if (bwi_messages_pending(all, &moved) || all->status != BW_OK) {
        return moved;
    }
    if (l->phase == 1) {
        add_part(all, l);
        l->phase = 2;
        return true;
    }
    if (l->phase == 2) {
        l->kernels->memory->write(l->first + (size_t)l->begin * l->size, l->results, (size_t)l->count * l->size);
        l->begin += l->count;
        all->message_count = 0;
    }
    *over = l->begin == l->sum->count;
    l->phase = 1;
    if (!*over) {
        begin_segment(all, l);
    }
    return true;
}

/* How long segments are, so that whatever is under way of one has room in the staging memory. */
static void measure(bwi_mpi_group *all, lanes *l)
{
    int ranks = all->ranks.count;
    l->parts = visit(all, l, NULL);
    size_t parts =
        (size_t)l->parts + (size_t)bwi_tree_levels(l->sum->lanes.lanes, l->parts) + (size_t)ranks * (1 + BWI_MOST_SUBTREES);
    size_t part = BWI_STAGING_BYTES / parts / l->size - 1;
    part = part > PART_BYTES / l->size ? PART_BYTES / l->size : part;
    l->most = (int64_t)part * ranks;
}

size_t bwi_mpi_lanes_bytes(bwi_mpi_group *all, const bwi_rank_sum *sum)
{
    lanes l = {.sum = sum, .size = sum->doubles ? sizeof(double) : sizeof(float)};
    measure(all, &l);
    l.count = sum->count < l.most ? sum->count : l.most;
    size_t levels = (size_t)bwi_tree_levels(sum->lanes.lanes, l.parts), most = 0;
    for (int rank = 0; rank < all->ranks.count; rank++) {
        int end = bwi_rank_lane(sum->lanes, all->ranks.count, rank + 1), own = 0;
        for (int lane = bwi_rank_lane(sum->lanes, all->ranks.count, rank); lane < end && lane < sum->used; own++) {
            lane += bwi_subtree(lane, end);
        }
        size_t bytes = ((size_t)l.parts + levels) * part_bytes(all, &l, rank) + (size_t)l.count * l.size * (size_t)(1 + own);
        most = bytes > most ? bytes : most;
    }
    return most;
}

bw_status bwi_mpi_sum_lanes(bw_context *ctx, void *first, const bwi_rank_sum *sum)
{
    bwi_mpi_group *all = (bwi_mpi_group *)ctx->ranks;
    int ranks = all->ranks.count;
    if (bwi_rank_is_subtree(sum, ranks)) {
        return sum->doubles ? bwi_mpi_sum_doubles(ctx, first, sum->count) : bwi_mpi_sum_floats(ctx, first, sum->count);
    }
    lanes l = {.sum = sum, .kernels = bwi_kernels_of(ctx), .first = first, .size = sum->doubles ? sizeof(double) : sizeof(float)};
    measure(all, &l);
    return bwi_mpi_run(ctx, work, &l, false);
}
