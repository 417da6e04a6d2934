/*
 * Sums over ranks of MPI, by messages between two ranks at a time and additions of our own: MPI_Allreduce promises no order.
 *
 * The tree is that of ranks in one process: at level k rank r adds what rank r ^ 2^k has. Short values go whole through all levels
 * (a butterfly). Of long ones each level sends one half and adds the other, and afterwards the sums come back the same way
 * (recursive halving and doubling): every element is added by one rank of a pair, in the same tree, so that both ways give the same
 * bits, and the bytes that a rank sends do not grow with the number of ranks.
 *
 * Long values go in segments, several of them under way at a time: while one is added, others travel. Segments begin in the same
 * order on all ranks, so that their tags agree.
 */
#include "rank/mpi_group.h"

#include <stdalign.h>
#include <stdio.h>
#include <string.h>

enum { FIRST_TAG = 16, TAGS = 16384 };
/* How long a rank that is cancelled waits for the others to come, so that all of them hear of it at the next agreement and end
 * together. It leaves the group only if they do not. */
#define GRACE_SECONDS 0.4
enum { SHORT_BYTES = 1 << 14 };

/* What one rank thinks of the step, and why. */
typedef struct vote {
    int32_t status, rank;
    char text[BWI_NOTE_TEXT];
} vote;

typedef struct bwi_sum {
    size_t size;                /* of a value */
    const bwi_kernels *kernels; /* NULL: values of the host */
    void (*add)(const struct bwi_sum *how, int64_t count, const void *others, void *values);
} bwi_sum;

static void add_floats(const bwi_sum *how, int64_t count, const void *others, void *values)
{
    how->kernels->lanes->add_floats(count, others, values);
}

static void add_doubles(const bwi_sum *how, int64_t count, const void *others, void *values)
{
    how->kernels->lanes->add_doubles(count, others, values);
}

/* The worst status counts; of equal ones that of the lowest rank. */
static void add_vote(const bwi_sum *how, int64_t count, const void *others, void *values)
{
    const vote *other = others;
    vote *mine = values;
    (void)how, (void)count;
    if (other->status > mine->status || (other->status == mine->status && other->rank < mine->rank)) {
        *mine = *other;
    }
}

static void add_nothing(const bwi_sum *how, int64_t count, const void *others, void *values)
{
    (void)how, (void)count, (void)others, (void)values;
}

/* ---- One segment ---- */

/* The part of a segment that a rank adds after a number of halvings. */
typedef struct range {
    int64_t begin, end;
} range;

static range range_after(int rank, int64_t count, int levels)
{
    range r = {0, count};
    for (int level = 0; level < levels; level++) {
        int64_t middle = r.begin + (r.end - r.begin) / 2;
        if (rank >> level & 1) {
            r.begin = middle;
        } else {
            r.end = middle;
        }
    }
    return r;
}

/* What a round sends and receives; whether what came is added, from the staging memory, or takes its place at once. */
typedef struct round {
    int to, from;
    range out, in;
    bool adds;
} round;

/* Votes go round the ranks in steps of 1, 2, 4, ..., since it does not matter that some are counted more than once: this suits any
 * number of ranks. */
static round round_of(const bwi_mpi_group *all, const bwi_transfer *t)
{
    range whole = {0, t->count};
    int levels = t->halves ? t->rounds / 2 : t->rounds, ranks = all->ranks.count;
    int level = t->round < levels ? t->round : t->rounds - 1 - t->round;
    int partner = all->rank ^ 1 << level;
    if (!t->how->kernels) {
        return (round){(all->rank + (1 << level)) % ranks, (all->rank - (1 << level) + ranks) % ranks, whole, whole, true};
    }
    if (!t->halves) {
        return (round){partner, partner, whole, whole, true};
    }
    range mine = range_after(all->rank, t->count, level + 1), others = range_after(partner, t->count, level + 1);
    return t->round < levels ? (round){partner, partner, others, mine, true} : (round){partner, partner, mine, others, false};
}

static unsigned char *host_of(const bwi_transfer *t)
{
    return t->how->kernels ? t->how->kernels->memory->open(t->values, (size_t)t->count * t->how->size) : t->values;
}

static void begin_round(bwi_mpi_group *all, bwi_transfer *t)
{
    round now = round_of(all, t);
    size_t size = t->how->size;
    unsigned char *host = host_of(t), *to = now.adds ? t->staging : host + (size_t)now.in.begin * size;
    int error = all->mpi->receive(&t->receive, to, (size_t)(now.in.end - now.in.begin) * size, now.from, t->tag);
    t->receiving = error == 0;
    if (error == 0) {
        error = all->mpi->send(&t->send, host + (size_t)now.out.begin * size, (size_t)(now.out.end - now.out.begin) * size, now.to,
                               t->tag);
        t->sending = error == 0;
    }
    if (error != 0) {
        bwi_group_fail_mpi(all, error, "exchange sums");
    }
}

static void end_round(bwi_mpi_group *all, bwi_transfer *t)
{
    round now = round_of(all, t);
    if (t->how->kernels) {
        t->how->kernels->memory->close(t->values, (size_t)t->count * t->how->size);
    }
    if (now.adds) {
        unsigned state = bwi_float_set();
        t->how->add(t->how, now.in.end - now.in.begin, t->staging, t->values + (size_t)now.in.begin * t->how->size);
        bwi_float_restore(state);
    }
}

static int levels_of(int count)
{
    int levels = 0;
    while (1 << levels < count) {
        levels++;
    }
    return levels;
}

static void begin_transfer(bwi_mpi_group *all, bwi_transfer *t, const bwi_sum *how, unsigned char *values, int64_t count)
{
    int levels = levels_of(all->ranks.count);
    bool halves = how->kernels && (size_t)count * how->size > SHORT_BYTES;
    *t = (bwi_transfer){.how = how,
                        .values = values,
                        .count = count,
                        .tag = FIRST_TAG + all->serial,
                        .rounds = halves ? 2 * levels : levels,
                        .halves = halves,
                        .staging = t->staging};
    all->serial = (all->serial + 1) % TAGS;
    begin_round(all, t);
}

/* Whether one of the two messages of a round is through. What came must be as long as what was expected. */
static void test(bwi_mpi_group *all, bwi_transfer *t, bool *pending, bwi_mpi_request *request)
{
    int done = 0, from = 0;
    size_t size = 0;
    int error = *pending ? all->mpi->test(request, &done, &from, &size) : 0;
    if (error != 0) {
        *pending = false;
        bwi_group_fail_mpi(all, error, "exchange sums");
    } else if (done) {
        *pending = false;
        round now = round_of(all, t);
        if (request == &t->receive && size != (size_t)(now.in.end - now.in.begin) * t->how->size) {
            bwi_group_fail(all, BW_INTERNAL,
                           "ranks do not make the same calls: rank %d of %d expected %zu bytes of rank %d, found %zu", all->rank,
                           all->ranks.count, (size_t)(now.in.end - now.in.begin) * t->how->size, now.from, size);
        }
    }
}

/* Goes on as far as messages have come; true if anything did. */
static bool advance(bwi_mpi_group *all, bwi_transfer *t)
{
    test(all, t, &t->receiving, &t->receive);
    test(all, t, &t->sending, &t->send);
    if (t->sending || t->receiving || all->status != BW_OK) {
        return false;
    }
    end_round(all, t);
    if (++t->round < t->rounds) {
        begin_round(all, t);
    } else {
        t->how = NULL;
    }
    return true;
}

/* ---- Calls ---- */

/* What is under way will not come to its end; its memory is given back to the kernels. */
static void abandon(bwi_mpi_group *all)
{
    for (int k = 0; k < BWI_TRANSFERS; k++) {
        bwi_transfer *t = &all->transfers[k];
        if (t->how && t->how->kernels) {
            t->how->kernels->memory->close(t->values, (size_t)t->count * t->how->size);
        }
        if (t->receiving) {
            all->mpi->cancel(&t->receive);
        }
        if (t->sending) {
            all->mpi->cancel(&t->send);
        }
        t->how = NULL;
        t->sending = t->receiving = false;
    }
    for (int k = 0; k < all->message_count; k++) {
        if (all->messages[k].pending) {
            all->mpi->cancel(&all->messages[k].request);
            all->messages[k].pending = false;
        }
    }
    bwi_group_leave(all);
}

/* A peer that left before this call will never make it. */
static void look_for_leavers(bwi_mpi_group *all)
{
    for (int rank = 0; rank < all->ranks.count; rank++) {
        const bwi_peer *peer = &all->peers[rank];
        if (rank != all->rank && peer->left && peer->calls <= all->calls) {
            bwi_group_fail(all, BW_CANCELLED, "rank %d of %d cannot go on: rank %d has left the group", all->rank, all->ranks.count,
                           rank);
        }
    }
}

/* What one call adds. */
typedef struct values {
    const bwi_sum *how;
    unsigned char *first;
    int64_t count, begun;
} values;

/* Begins as many segments as there is room for, and moves all of them on. */
static bool work(bwi_mpi_group *all, void *user, bool *over)
{
    values *v = user;
    int64_t most = (int64_t)(BWI_SEGMENT_BYTES / v->how->size);
    bool moved = false;
    *over = v->begun == v->count;
    for (int k = 0; k < BWI_TRANSFERS && all->status == BW_OK; k++) {
        bwi_transfer *t = &all->transfers[k];
        if (!t->how && v->begun < v->count) {
            int64_t segment = v->count - v->begun < most ? v->count - v->begun : most;
            begin_transfer(all, t, v->how, v->first + (size_t)v->begun * v->how->size, segment);
            v->begun += segment;
            *over = false;
        }
        if (t->how) {
            moved = advance(all, t) || moved;
            *over = *over && !t->how;
        }
    }
    return moved;
}

/* Waits are short, so that cancelling, a peer that leaves and one that is lost end them. */
bw_status bwi_mpi_run(bw_context *ctx, bwi_mpi_work moves, void *user, bool patient)
{
    bwi_mpi_group *all = (bwi_mpi_group *)ctx->ranks;
    bwi_waiting waiting = {.waits = 0};
    for (bool over = false; !over && all->status == BW_OK;) {
        pthread_mutex_lock(&all->mutex);
        bool moved = moves(all, user, &over);
        if (!over && !moved) {
            bwi_notes_take(all);
            look_for_leavers(all);
            if (!patient && bwi_cancelled(ctx) && waiting.waits > 0 && bwi_now() - waiting.first > GRACE_SECONDS) {
                bwi_group_fail(all, BW_CANCELLED, "cancelled: rank %d of %d has left the group", all->rank, all->ranks.count);
            }
        }
        pthread_mutex_unlock(&all->mutex);
        if (moved) {
            waiting = (bwi_waiting){.waits = 0};
        } else if (!over && all->status == BW_OK) {
            bwi_group_wait(all, &waiting);
        }
    }
    pthread_mutex_lock(&all->mutex);
    bw_status status = all->status;
    if (status == BW_OK) {
        all->calls++;
    } else {
        abandon(all);
    }
    pthread_mutex_unlock(&all->mutex);
    return status == BW_OK ? BW_OK : bwi_fail(ctx, status, "%s", all->reason);
}

static bw_status run(bw_context *ctx, const bwi_sum *how, void *first, int64_t count)
{
    values v = {.how = how, .first = first, .count = count, .begun = ctx->ranks->count > 1 ? 0 : count};
    return bwi_mpi_run(ctx, work, &v, false);
}

static bool is_power(int count)
{
    return (count & (count - 1)) == 0;
}

bw_status bwi_mpi_sum_floats(bw_context *ctx, void *first, int64_t count)
{
    bwi_sum how = {.size = sizeof(float), .kernels = bwi_kernels_of(ctx), .add = add_floats};
    if (!is_power(ctx->ranks->count)) { /* every rank is a lane */
        return bwi_mpi_sum_lanes(
            ctx, first,
            &(bwi_rank_sum){.lanes = {ctx->ranks->count, ctx->ranks->count}, .used = ctx->ranks->count, .count = count});
    }
    return run(ctx, &how, first, count);
}

bw_status bwi_mpi_sum_doubles(bw_context *ctx, void *first, int64_t count)
{
    bwi_sum how = {.size = sizeof(double), .kernels = bwi_kernels_of(ctx), .add = add_doubles};
    if (!is_power(ctx->ranks->count)) {
        bwi_rank_sum sum = {
            .doubles = true, .lanes = {ctx->ranks->count, ctx->ranks->count}, .used = ctx->ranks->count, .count = count};
        return bwi_mpi_sum_lanes(ctx, first, &sum);
    }
    return run(ctx, &how, first, count);
}

/* Windows that end with a remainder may go the other way than whole ones. */
size_t bwi_mpi_sum_bytes(bw_ranks *ranks, const bwi_rank_sum *sum)
{
    bwi_mpi_group *all = (bwi_mpi_group *)ranks;
    size_t bytes = (size_t)sum->count * (sum->doubles ? sizeof(double) : sizeof(float));
    size_t most = (size_t)BWI_TRANSFERS * BWI_SEGMENT_BYTES, few = is_power(ranks->count) ? bytes < most ? bytes : most : 0;
    size_t other = bwi_rank_is_subtree(sum, ranks->count) ? 0 : bwi_mpi_lanes_bytes(all, sum);
    return few > other ? few : other;
}

void bwi_mpi_sum_nothing(bw_context *ctx)
{
    bwi_mpi_group *all = (bwi_mpi_group *)ctx->ranks;
    bwi_sum how = {.size = BWI_SEGMENT_BYTES, .add = add_nothing};
    (void)run(ctx, &how, all->staging + (size_t)BWI_TRANSFERS * BWI_SEGMENT_BYTES, 1);
}

/* A rank that is cancelled says so here, where all can end together, even if it has no tiles to be cancelled in. */
bw_status bwi_mpi_agree(bw_context *ctx, bw_status mine)
{
    bwi_sum how = {.size = sizeof(vote), .add = add_vote};
    vote worst = {.rank = ctx->rank};
    if (mine != BW_OK) {
        const char *text = ctx->message[0] ? ctx->message : bw_status_name(mine);
        memcpy(worst.text, text, strnlen(text, sizeof worst.text - 1));
    } else if (bwi_cancelled(ctx)) {
        mine = bwi_fail(ctx, BW_CANCELLED, "cancelled");
        memcpy(worst.text, "cancelled", sizeof "cancelled");
    }
    worst.status = (int32_t)mine;
    bw_status status = run(ctx, &how, &worst, 1);
    if (status != BW_OK) {
        return status;
    }
    if (worst.status != (int32_t)mine) {
        bwi_fail(ctx, (bw_status)worst.status, "rank %d of %d: %s", worst.rank, bw_ranks_count(ctx->ranks), worst.text);
    }
    return (bw_status)worst.status;
}
