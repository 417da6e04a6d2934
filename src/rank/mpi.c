/*
 * Ranks that are processes of MPI: how they come together, and how they end. They end together too: MPI waits for all of its
 * processes, so whoever comes to the end waits for the others there, unless one is lost.
 */
#include "rank/mpi_group.h"

#include <sched.h>
#include <stdalign.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

enum { MOST_RANKS = 4096 };

_Static_assert((BWI_TRANSFERS + 1) * BWI_SEGMENT_BYTES <= BWI_STAGING_BYTES, "no room for the transfers' segments");

static bwi_mpi_group *group_of(bw_ranks *ranks)
{
    return (bwi_mpi_group *)ranks;
}

static int count_of(bw_ranks *ranks)
{
    return ranks->count;
}

static void leave(bw_context *ctx)
{
    bwi_mpi_group *all = group_of(ctx->ranks);
    pthread_mutex_lock(&all->mutex);
    bwi_group_leave(all);
    pthread_mutex_unlock(&all->mutex);
}

static bool beside(bw_ranks *ranks)
{
    return group_of(ranks)->threaded && group_of(ranks)->beside;
}

static const bwi_rank_row mpi_row = {
    .name = "mpi",
    .count = count_of,
    .sum_floats = bwi_mpi_sum_floats,
    .sum_doubles = bwi_mpi_sum_doubles,
    .sum_lanes = bwi_mpi_sum_lanes,
    .gather = bwi_mpi_gather,
    .agree = bwi_mpi_agree,
    .leave = leave,
    .beside = beside,
    .bytes = bwi_mpi_sum_bytes,
};

static bool join(bw_ranks *ranks, int rank)
{
    bwi_mpi_group *all = group_of(ranks);
    bool joins = rank == all->rank && !all->taken;
    all->taken = all->taken || joins;
    return joins;
}

static void part(bw_ranks *ranks, int rank)
{
    bwi_mpi_group *all = group_of(ranks);
    (void)rank;
    pthread_mutex_lock(&all->mutex);
    bwi_group_leave(all);
    pthread_mutex_unlock(&all->mutex);
}

/* ---- The end ---- */

/* The number of peers that have not come to the end. */
static int missing(const bwi_mpi_group *all)
{
    int count = 0;
    for (int rank = 0; rank < all->ranks.count; rank++) {
        count += rank != all->rank && !all->peers[rank].ended;
    }
    return count;
}

/* A failure of this rank's calls does not keep it from waiting for the others; only a rank that is lost does. */
static int end(bw_ranks *ranks, const char *failure, const char **reason)
{
    bwi_mpi_group *all = group_of(ranks);
    bwi_peer *own = &all->peers[all->rank];
    bwi_waiting waiting = {.waits = 0};
    if (!all->running) {
        return -1;
    }
    pthread_mutex_lock(&all->mutex);
    if (!all->ended) {
        all->ended = own->ended = true;
        own->end = (bwi_note){.failed = failure ? 1 : 0, .calls = all->calls};
        snprintf(own->end.text, sizeof own->end.text, "%s", failure ? failure : "");
        all->status = all->lost ? all->status : BW_OK;
        bwi_notes_send_all(all, BWI_NOTE_END, &own->end);
    }
    pthread_mutex_unlock(&all->mutex);
    for (bool waits = true; waits;) {
        pthread_mutex_lock(&all->mutex);
        bwi_notes_take(all);
        waits = !all->lost && missing(all) > 0;
        pthread_mutex_unlock(&all->mutex);
        if (waits) {
            bwi_group_wait(all, &waiting);
        }
    }
    for (int rank = 0; rank < ranks->count; rank++) {
        const bwi_peer *peer = &all->peers[rank];
        if (peer->ended && peer->end.failed) {
            *reason = peer->end.text;
            return rank;
        }
    }
    return -1;
}

/* The lowest rank that is there ends the job; the others give it the watchdog's time, since rank 0 may still be writing. */
static void end_job(bwi_mpi_group *all)
{
    double until = bwi_now() + (all->rank == 0 ? 0 : all->ranks.watchdog);
    while (bwi_now() < until) {
        struct timespec time = {.tv_nsec = 10000000};
        nanosleep(&time, NULL);
    }
    all->mpi->abort(1);
}

static size_t group_bytes(int count)
{
    return sizeof(bwi_mpi_group) + (size_t)count * sizeof(bwi_peer);
}

static size_t message_bytes(const bwi_mpi_group *all)
{
    return (size_t)all->ranks.count * 2 * BWI_MOST_SUBTREES * sizeof *all->messages;
}

static void free_group(bwi_mpi_group *all)
{
    if (all->messages) {
        bwi_system_allocator.release(bwi_system_allocator.user, all->messages, message_bytes(all));
    }
    if (all->staging) {
        bwi_system_allocator.release(bwi_system_allocator.user, all->staging, BWI_STAGING_BYTES);
    }
    bwi_condition_close(&all->mutex, &all->wake);
    bwi_system_allocator.release(bwi_system_allocator.user, all, group_bytes(all->ranks.count));
}

static void close_group(bw_ranks *ranks)
{
    bwi_mpi_group *all = group_of(ranks);
    const char *reason;
    if (all->running) {
        (void)end(ranks, NULL, &reason);
        bwi_peers_close(all);
        if (all->lost) {
            end_job(all);
        }
        all->mpi->cancel(&all->incoming);
        all->mpi->close();
    }
    free_group(all);
}

/* ---- The beginning ---- */

static bwi_mpi_group *new_group(int count)
{
    bwi_mpi_group *all = bwi_system_allocator.allocate(bwi_system_allocator.user, group_bytes(count), alignof(bwi_mpi_group));
    if (!all) {
        return NULL;
    }
    memset(all, 0, group_bytes(count));
    all->ranks = (bw_ranks){.row = &mpi_row, .count = count, .join = join, .part = part, .end = end, .close = close_group};
    if (!bwi_condition_open(&all->mutex, &all->wake)) {
        bwi_system_allocator.release(bwi_system_allocator.user, all, group_bytes(count));
        return NULL;
    }
    return all;
}

static bool make_rooms(bwi_mpi_group *all)
{
    all->messages = bwi_system_allocator.allocate(bwi_system_allocator.user, message_bytes(all), alignof(bwi_message));
    all->staging = bwi_system_allocator.allocate(bwi_system_allocator.user, BWI_STAGING_BYTES, BWI_CACHE_LINE);
    for (int k = 0; k < BWI_TRANSFERS && all->staging; k++) {
        all->transfers[k].staging = all->staging + (size_t)k * BWI_SEGMENT_BYTES;
    }
    return all->messages && all->staging;
}

/* The ranks of a rank's machine that share its CPUs: a launcher that binds processes gives each its own. */
static int sharing(const bwi_mpi_group *all, int of)
{
    const bwi_note *own = &all->peers[of].hello;
    int count = 0;
    for (int rank = 0; rank < all->ranks.count; rank++) {
        const bwi_note *hello = &all->peers[rank].hello;
        count += strcmp(hello->text, own->text) == 0 && hello->set == own->set;
    }
    return count > 0 ? count : 1;
}

/* Between machines messages travel while a thread that waits for them sleeps. Within one they are copied by the CPU, so that a
 * thread beside the computing ones needs a CPU, too: without it, steps take a few percent longer. All ranks find the same. */
static bool gains_beside(const bwi_mpi_group *all)
{
    bool gains = true;
    for (int rank = 0; rank < all->ranks.count; rank++) {
        const bwi_note *hello = &all->peers[rank].hello;
        if (strcmp(hello->text, all->peers[0].hello.text) != 0) {
            return true;
        }
        gains = gains && hello->cpus >= 2 * (int64_t)sharing(all, rank);
    }
    return gains;
}

static void fail(bwi_mpi_group *all, const char *failure)
{
    snprintf(all->failure, sizeof all->failure, "%s", failure);
    all->ranks.failure = all->failure;
}

/* What can be refused is refused by all ranks, for the same reason. */
static void check(bwi_mpi_group *all, const bwi_launcher *launcher, const bwi_mpi_world *world)
{
    char text[BWI_MPI_FAILURE];
    if (launcher->count > 0 && launcher->count != world->count) {
        snprintf(
            text, sizeof text,
            "%s started %d processes, and %s knows %d: the library belongs to another MPI than the launcher; set BATCHWISE_MPI "
            "to the right one",
            launcher->name, launcher->count, world->implementation, world->count);
        fail(all, text);
    } else if (world->count > MOST_RANKS) {
        snprintf(text, sizeof text, "expected at most %d ranks, found %d", MOST_RANKS, world->count);
        fail(all, text);
    }
}

/* Once MPI runs, the group has to be closed, even if nobody can join it. */
static bwi_mpi_group *start(const bwi_launcher *launcher, const bw_context_options *options)
{
    char failure[BWI_MPI_FAILURE];
    bwi_mpi_world world = {.count = 1};
    const bwi_mpi_calls *mpi = bwi_mpi_load(launcher, failure, sizeof failure);
    int error = mpi ? mpi->open(&world) : 0;
    bwi_mpi_group *all = new_group(mpi && error == 0 ? world.count : 1);
    if (!all) {
        return NULL;
    }
    all->rank = world.rank;
    all->mpi = mpi;
    all->running = mpi && error == 0;
    all->ranks.watchdog = options->watchdog > 0 ? options->watchdog : 60;
    if (!all->running) {
        if (mpi) {
            mpi->describe(error, failure, sizeof failure);
        }
        fail(all, failure);
        return all;
    }
    check(all, launcher, &world);
    bwi_peers_open(all);
    all->spins = sharing(all, all->rank) <= bwi_cpus();
    all->beside = gains_beside(all);
    bwi_peers_answer(all, world.threads);
    if (!make_rooms(all)) {
        fail(all, "no memory for messages between ranks");
    } else if (all->status == BW_OK) {
        bwi_mpi_warm_up(all);
    }
    if (all->status != BW_OK) {
        fail(all, all->reason);
    }
    return all;
}

void bw_ranks_mpi(bw_context_options *options)
{
    static atomic_bool called;
    bwi_launcher launcher = bwi_launcher_find();
    if (!options || !launcher.name || launcher.count == 1 || atomic_exchange(&called, true)) {
        return;
    }
    bwi_mpi_group *all = start(&launcher, options);
    if (!all) {
        static char text[] = "no memory for ranks";
        static bw_ranks none = {.count = 1, .failure = text};
        options->ranks = &none;
        return;
    }
    options->ranks = &all->ranks;
    options->rank = all->rank;
    if (options->workers == 0 && all->running) {
        int workers = bwi_cpus() / sharing(all, all->rank);
        options->workers = workers > 0 ? workers : 1;
    }
}
