/*
 * Ranks that are threads of one process.
 *
 * All ranks make the same calls in the same order. A call is a sequence of meetings. Before a meeting each rank puts
 * something into its own place; after it, all read from the places of others. There are two places, used in turn:
 * who writes to a place again has been to the meeting after the one it was read from, and so has its reader.
 *
 * A meeting takes place for all ranks or for none: arriving and leaving change one word, {number, left, arrived}.
 * After somebody has left nobody arrives, so that every later meeting fails, and for ever. Hence all ranks get the
 * same answer from the same call.
 *
 * Every rank shows the sums of its subtrees and adds up those of all ranks (tree.c), so that all get the same bits from one meeting
 * for each block. That is more additions than a butterfly needs, but they cost less than its meetings.
 */
#include "rank/internal.h"

#include <sched.h>
#include <stdalign.h>
#include <stdio.h>
#include <string.h>

#define MAX_RANKS 64
#define PLACE_BYTES 65536
#define SCRATCH_BYTES (3 * PLACE_BYTES)
#define SPIN_SECONDS 50e-6
/* How long a rank that is cancelled waits for the others, as in mpi_sum.c. */
#define GRACE_SECONDS 0.4
#define NAP_NANOSECONDS 1000000 /* how late bw_cancel may be seen by who sleeps: it cannot signal */

typedef enum kind { KIND_FLOATS, KIND_DOUBLES, KIND_GATHER, KIND_AGREE } kind;

/* What a rank shows the others at a meeting. */
typedef struct place {
    alignas(BWI_CACHE_LINE) kind call;
    bw_status status;
    int lanes, used;
    int64_t count;
    alignas(BWI_CACHE_LINE) unsigned char values[PLACE_BYTES];
} place;

typedef struct member {
    place places[2];
    alignas(BWI_CACHE_LINE) unsigned char scratch[SCRATCH_BYTES]; /* its own rank's */
    alignas(BWI_CACHE_LINE) unsigned meetings;                    /* that took place; only its own rank's thread uses it */
    atomic_bool taken;
} member;

typedef struct group {
    bw_ranks ranks;
    bool spins;
    pthread_mutex_t mutex;
    pthread_cond_t wake;
    atomic_int left_rank;
    alignas(BWI_CACHE_LINE) _Atomic uint64_t word;
    atomic_int asleep;
    member members[];
} group;

#define ARRIVED UINT64_C(0xFFFF)
#define LEFT (UINT64_C(1) << 16)
#define NUMBER_ONE (UINT64_C(1) << 32)

static uint64_t number_of(uint64_t word)
{
    return word / NUMBER_ONE;
}

static group *group_of(bw_ranks *ranks)
{
    return (group *)ranks;
}

/* ---- Meeting ---- */

/* The word has changed in a way that lets sleepers go on; pool.c explains why no wake-up is lost. */
static void wake_all(group *all)
{
    if (atomic_load(&all->asleep) == 0) {
        return;
    }
    pthread_mutex_lock(&all->mutex);
    pthread_cond_broadcast(&all->wake);
    pthread_mutex_unlock(&all->mutex);
}

/* Leaves, unless meeting `number` has taken place, which returns false. Leaving again is fine. */
static bool leave_before(group *all, int rank, uint64_t number)
{
    uint64_t word = atomic_load(&all->word);
    int nobody = -1;
    do {
        if (number_of(word) != number) {
            return false;
        }
        if (word & LEFT) {
            return true;
        }
        atomic_compare_exchange_strong(&all->left_rank, &nobody, rank);
    } while (!atomic_compare_exchange_weak(&all->word, &word, word | LEFT));
    wake_all(all);
    return true;
}

static void leave(group *all, int rank)
{
    while (!leave_before(all, rank, number_of(atomic_load(&all->word)))) {
        continue;
    }
}

/* Whether waiting for meeting `number` is over, one way or the other. */
static bool over(group *all, uint64_t number)
{
    uint64_t word = atomic_load(&all->word);
    return number_of(word) != number || (word & LEFT);
}

static void nap(group *all, uint64_t number)
{
    pthread_mutex_lock(&all->mutex);
    atomic_fetch_add(&all->asleep, 1);
    if (!over(all, number)) {
        bwi_condition_wait(&all->mutex, &all->wake, NAP_NANOSECONDS);
    }
    atomic_fetch_sub(&all->asleep, 1);
    pthread_mutex_unlock(&all->mutex);
}

static bw_status fail_left(bw_context *ctx, group *all)
{
    if (bwi_cancelled(ctx)) {
        return bwi_fail(ctx, BW_CANCELLED, "cancelled: rank %d of %d has left the group", ctx->rank, all->ranks.count);
    }
    return bwi_fail(ctx, BW_CANCELLED, "rank %d of %d cannot go on: rank %d has left the group", ctx->rank, all->ranks.count,
                    atomic_load(&all->left_rank));
}

/* A barrier in one word: its number, who has arrived, who has left. Whoever comes last begins the next number, so a rank that is
 * late cannot mistake the next meeting for this one. A rank that is cancelled leaves if the others do not come soon, unless it is
 * patient; if they come, all hear of it at the next agreement, and end together, still a group. */
static bw_status meet(bw_context *ctx, group *all, bool patient)
{
    uint64_t word = atomic_load(&all->word), next;
    do {
        if (word & LEFT) {
            return fail_left(ctx, all);
        }
        bool last = (word & ARRIVED) + 1 == (uint64_t)all->ranks.count;
        next = last ? (word & ~ARRIVED) + NUMBER_ONE : word + 1;
    } while (!atomic_compare_exchange_weak(&all->word, &word, next));
    uint64_t number = number_of(word);
    if (number_of(next) != number) {
        wake_all(all);
        all->members[ctx->rank].meetings++;
        return BW_OK;
    }
    double begin = bwi_now(), spin_end = all->spins ? begin + SPIN_SECONDS : 0;
    while (!over(all, number)) {
        if (!patient && bwi_cancelled(ctx) && bwi_now() - begin > GRACE_SECONDS) {
            leave_before(all, ctx->rank, number);
        } else if (all->spins && bwi_now() < spin_end) {
            sched_yield();
        } else {
            nap(all, number);
        }
    }
    if (number_of(atomic_load(&all->word)) == number) {
        return fail_left(ctx, all);
    }
    all->members[ctx->rank].meetings++;
    return BW_OK;
}

/* ---- Calls ---- */

static place *place_of(group *all, int rank, unsigned meeting)
{
    return &all->members[rank].places[meeting & 1];
}

/* Checks that all ranks make the same call with the same counts, which all of them see alike. */
static bw_status check_same(bw_context *ctx, group *all, unsigned meeting)
{
    static const char *const names[] = {
        [KIND_FLOATS] = "sum_floats", [KIND_DOUBLES] = "sum_doubles", [KIND_GATHER] = "gather", [KIND_AGREE] = "agree"};
    const place *first = place_of(all, 0, meeting);
    for (int rank = 1; rank < all->ranks.count; rank++) {
        const place *other = place_of(all, rank, meeting);
        if (other->call != first->call || other->count != first->count) {
            return bwi_fail(ctx, BW_INTERNAL,
                            "ranks do not make the same calls: rank 0 calls %s of %lld values, rank %d %s of %lld",
                            names[first->call], (long long)first->count, rank, names[other->call], (long long)other->count);
        }
        if (other->lanes != first->lanes || other->used != first->used) {
            return bwi_fail(ctx, BW_INTERNAL,
                            "ranks do not add the same lanes: rank 0 has %d, %d of them in use, rank %d %d and %d", first->lanes,
                            first->used, rank, other->lanes, other->used);
        }
    }
    return BW_OK;
}

/* Copies a block of what this rank has into its place: subtree by subtree. */
static void show(bw_context *ctx, const bwi_rank_sum *sum, const unsigned char *first, size_t bytes, place *own)
{
    int ranks = ctx->ranks->count, begin = bwi_rank_lane(sum->lanes, ranks, ctx->rank);
    int end = bwi_rank_lane(sum->lanes, ranks, ctx->rank + 1);
    unsigned char *next = own->values;
    for (int lane = begin; lane < end && lane < sum->used; lane += bwi_subtree(lane, end)) {
        bwi_kernels_of(ctx)->memory->read(next, first + (size_t)(lane - begin) * sum->stride, bytes);
        next += bytes;
    }
    own->call = sum->doubles ? KIND_DOUBLES : KIND_FLOATS;
    own->lanes = sum->lanes.lanes;
    own->used = sum->used;
    own->count = sum->count;
}

/* Adds up what all ranks show. */
static void add_places(const group *all, const bwi_rank_sum *sum, unsigned meeting, size_t bytes, bwi_tree *tree)
{
    int ranks = all->ranks.count;
    for (int rank = 0; rank < ranks; rank++) {
        int end = bwi_rank_lane(sum->lanes, ranks, rank + 1);
        const unsigned char *next = all->members[rank].places[meeting & 1].values;
        for (int lane = bwi_rank_lane(sum->lanes, ranks, rank), size; lane < end && lane < sum->used; lane += size) {
            size = bwi_subtree(lane, end);
            bwi_tree_take(tree, next, size);
            next += bytes;
        }
    }
    bwi_tree_end(tree);
}

/* The bytes of one subtree's sum that go through a place at a time: those of a rank share it, and the tree's levels the scratch. */
static size_t block_bytes(int ranks, const bwi_rank_sum *sum)
{
    int most = 1, all = 0;
    for (int rank = 0; rank < ranks; rank++) {
        int end = bwi_rank_lane(sum->lanes, ranks, rank + 1), parts = 0;
        for (int lane = bwi_rank_lane(sum->lanes, ranks, rank); lane < end; lane += bwi_subtree(lane, end)) {
            parts++;
        }
        most = parts > most ? parts : most;
        all += parts;
    }
    int levels = bwi_tree_levels(sum->lanes.lanes, all);
    size_t shown = PLACE_BYTES / (size_t)most, scratch = SCRATCH_BYTES / (size_t)(levels ? levels : 1);
    return (shown < scratch ? shown : scratch) / BWI_CACHE_LINE * BWI_CACHE_LINE;
}

/* Goes block by block, so that a block is still in the cache when it is added. */
static bw_status threads_sum_lanes(bw_context *ctx, void *first, const bwi_rank_sum *sum)
{
    group *all = group_of(ctx->ranks);
    member *own = &all->members[ctx->rank];
    size_t size = sum->doubles ? sizeof(double) : sizeof(float);
    size_t most = block_bytes(all->ranks.count, sum), rest = (size_t)sum->count * size;
    unsigned char *next = first;
    bw_status status = BW_OK;
    unsigned state = bwi_float_set();
    do {
        size_t block = rest < most ? rest : most;
        unsigned meeting = own->meetings;
        bwi_tree tree = {.kernels = bwi_kernels_of(ctx), .doubles = sum->doubles, .count = (int64_t)(block / size), .result = next};
        tree.scratch = own->scratch;
        show(ctx, sum, next, block, place_of(all, ctx->rank, meeting));
        status = meet(ctx, all, false);
        if (status == BW_OK) {
            status = check_same(ctx, all, meeting);
        }
        if (status == BW_OK) {
            add_places(all, sum, meeting, block, &tree);
        }
        rest -= block;
        next += block;
    } while (status == BW_OK && rest > 0);
    bwi_float_restore(state);
    return status;
}

/* Every rank is a lane. */
static bw_status threads_sum_floats(bw_context *ctx, void *values, int64_t count)
{
    bwi_rank_sum sum = {.lanes = {ctx->ranks->count, ctx->ranks->count}, .used = ctx->ranks->count, .count = count};
    return threads_sum_lanes(ctx, values, &sum);
}

static bw_status threads_sum_doubles(bw_context *ctx, void *values, int64_t count)
{
    bwi_rank_sum sum = {
        .doubles = true, .lanes = {ctx->ranks->count, ctx->ranks->count}, .used = ctx->ranks->count, .count = count};
    return threads_sum_lanes(ctx, values, &sum);
}

/* The bytes of a rank's part that go through its place at a time, from `at` on. */
static size_t part_at(const size_t *begins, int rank, size_t at)
{
    size_t size = begins[rank + 1] - begins[rank], left = size > at ? size - at : 0;
    return left < PLACE_BYTES ? left : PLACE_BYTES;
}

/* All ranks show as many blocks as the largest part has. */
static bw_status threads_gather(bw_context *ctx, void *values, const size_t *begins)
{
    group *all = group_of(ctx->ranks);
    const bwi_memory_kernels *memory = bwi_kernels_of(ctx)->memory;
    unsigned char *first = values;
    size_t most = 0;
    bw_status status = BW_OK;
    for (int rank = 0; rank < all->ranks.count; rank++) {
        most = begins[rank + 1] - begins[rank] > most ? begins[rank + 1] - begins[rank] : most;
    }
    for (size_t at = 0; at < most && status == BW_OK; at += PLACE_BYTES) {
        unsigned meeting = all->members[ctx->rank].meetings;
        place *own = place_of(all, ctx->rank, meeting);
        memory->read(own->values, first + begins[ctx->rank] + at, part_at(begins, ctx->rank, at));
        own->call = KIND_GATHER;
        own->lanes = own->used = 0;
        own->count = (int64_t)begins[all->ranks.count];
        status = meet(ctx, all, true);
        if (status == BW_OK) {
            status = check_same(ctx, all, meeting);
        }
        for (int rank = 0; rank < all->ranks.count && status == BW_OK; rank++) {
            if (rank != ctx->rank) {
                memory->write(first + begins[rank] + at, place_of(all, rank, meeting)->values, part_at(begins, rank, at));
            }
        }
    }
    return status;
}

/* All ranks return the worst status of all, and so leave a step together. The message of a rank that did not fail is that of
 * one that did. */
static bw_status threads_agree(bw_context *ctx, bw_status mine)
{
    group *all = group_of(ctx->ranks);
    unsigned meeting = all->members[ctx->rank].meetings;
    place *own = place_of(all, ctx->rank, meeting);
    own->call = KIND_AGREE;
    own->lanes = own->used = 0;
    own->count = 1;
    if (mine == BW_OK && bwi_cancelled(ctx)) { /* it may have no tiles to be cancelled in */
        mine = bwi_fail(ctx, BW_CANCELLED, "cancelled");
    }
    own->status = mine;
    snprintf((char *)own->values, sizeof own->values, "%s", ctx->message[0] ? ctx->message : bw_status_name(mine));
    bw_status status = meet(ctx, all, false);
    if (status == BW_OK) {
        status = check_same(ctx, all, meeting);
    }
    if (status != BW_OK) {
        return status;
    }
    bw_status worst = BW_OK;
    int worst_rank = 0;
    for (int rank = 0; rank < all->ranks.count; rank++) {
        if (place_of(all, rank, meeting)->status > worst) {
            worst = place_of(all, rank, meeting)->status;
            worst_rank = rank;
        }
    }
    if (worst != mine) {
        bwi_fail(ctx, worst, "rank %d of %d: %s", worst_rank, all->ranks.count,
                 (const char *)place_of(all, worst_rank, meeting)->values);
    }
    return worst;
}

static void threads_leave(bw_context *ctx)
{
    leave(group_of(ctx->ranks), ctx->rank);
}

static int threads_count(bw_ranks *ranks)
{
    return ranks->count;
}

static bool threads_beside(bw_ranks *ranks)
{
    (void)ranks;
    return true;
}

static const bwi_rank_row threads_row = {
    .name = "threads",
    .count = threads_count,
    .sum_floats = threads_sum_floats,
    .sum_doubles = threads_sum_doubles,
    .sum_lanes = threads_sum_lanes,
    .gather = threads_gather,
    .agree = threads_agree,
    .leave = threads_leave,
    .beside = threads_beside,
};

/* ---- The group ---- */

static bool join(bw_ranks *ranks, int rank)
{
    return !atomic_exchange(&group_of(ranks)->members[rank].taken, true);
}

/* A number stays taken, because the others may not have noticed yet that its rank has left. */
static void part(bw_ranks *ranks, int rank)
{
    leave(group_of(ranks), rank);
}

static size_t group_bytes(int count)
{
    return sizeof(group) + (size_t)count * sizeof(member);
}

static void close_group(bw_ranks *ranks)
{
    group *all = group_of(ranks);
    bwi_condition_close(&all->mutex, &all->wake);
    bwi_system_allocator.release(bwi_system_allocator.user, all, group_bytes(ranks->count));
}

bw_ranks *bw_ranks_open(int count)
{
    if (count < 1 || count > MAX_RANKS) {
        return NULL;
    }
    size_t bytes = group_bytes(count);
    group *all = bwi_system_allocator.allocate(bwi_system_allocator.user, bytes, alignof(group));
    if (!all) {
        return NULL;
    }
    memset(all, 0, bytes);
    all->ranks = (bw_ranks){.row = &threads_row, .count = count, .join = join, .part = part, .close = close_group};
    all->spins = count <= bwi_cpus();
    atomic_store(&all->left_rank, -1);
    if (!bwi_condition_open(&all->mutex, &all->wake)) {
        bwi_system_allocator.release(bwi_system_allocator.user, all, bytes);
        return NULL;
    }
    return &all->ranks;
}
