/*
 * The other ranks of MPI: where they are, whether they live, and what ended them.
 *
 * A rank that waits looks after the others. One of the same machine is gone if its process is. The others are asked after half of
 * the watchdog's time, and whoever has not answered after the other half is lost: a thread of each group answers, also while its
 * program computes, reads or writes, so only a process that does not run at all stays silent. The first to find out tells all, so
 * that everybody names the same rank, and not the one that it happens to wait for.
 */
#include "rank/mpi_group.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { NOTE_TAG = 1, NAP_NANOSECONDS = 50000, LONG_NAP_NANOSECONDS = 1000000, ANSWER_NANOSECONDS = 50000000 };

#define SPIN_SECONDS 1e-3 /* yielding costs milliseconds where other programs want the CPU */
#define YIELD_SECONDS 2e-3
#define SHORT_SECONDS 100e-6
#define LOOK_SECONDS 0.05

/* ---- Failing ---- */

void bwi_group_fail(bwi_mpi_group *all, bw_status status, const char *format, ...)
{
    if (all->status != BW_OK) {
        return;
    }
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(all->reason, sizeof all->reason, format, arguments);
    va_end(arguments);
    all->status = status;
}

void bwi_group_fail_mpi(bwi_mpi_group *all, int error, const char *what)
{
    char text[256];
    all->mpi->describe(error, text, sizeof text);
    all->lost = true;
    bwi_group_fail(all, BW_UNAVAILABLE, "rank %d of %d: MPI cannot %s: %s", all->rank, all->ranks.count, what, text);
}

void bwi_group_leave(bwi_mpi_group *all)
{
    bwi_note note = {.calls = all->calls};
    if (!all->peers[all->rank].left) {
        all->peers[all->rank].left = true;
        bwi_notes_send_all(all, BWI_NOTE_LEFT, &note);
    }
}

static void lose(bwi_mpi_group *all, int rank, const char *why)
{
    const bwi_note *hello = &all->peers[rank].hello;
    bwi_note note = {.failed = 1};
    all->lost = true;
    bwi_group_fail(all, BW_UNAVAILABLE, "rank %d of %d (process %lld on %s) %s", rank, all->ranks.count, (long long)hello->process,
                   hello->text, why);
    memcpy(note.text, all->reason, sizeof note.text);
    for (int to = 0; to < all->ranks.count; to++) {
        if (to != rank) {
            bwi_notes_send(all, to, BWI_NOTE_LOST, &note);
        }
    }
}

/* ---- Notes ---- */

static bool is_sent(bwi_mpi_group *all, bwi_post *post)
{
    int done = 0, from;
    size_t size;
    if (post->busy && (all->mpi->test(&post->request, &done, &from, &size) != 0 || done)) {
        post->busy = false;
    }
    return !post->busy;
}

/* One of a kind at a time is on its way to a peer; another would say the same. */
void bwi_notes_send(bwi_mpi_group *all, int to, bwi_note_kind kind, const bwi_note *note)
{
    bwi_post *post = &all->peers[to].posts[kind];
    if (to == all->rank || !is_sent(all, post)) {
        return;
    }
    post->note = *note;
    post->note.kind = (int32_t)kind;
    int error = all->mpi->send(&post->request, &post->note, sizeof post->note, to, NOTE_TAG);
    post->busy = error == 0;
    if (error != 0) {
        bwi_group_fail_mpi(all, error, "send a note");
    }
}

void bwi_notes_send_all(bwi_mpi_group *all, bwi_note_kind kind, const bwi_note *note)
{
    for (int to = 0; to < all->ranks.count; to++) {
        bwi_notes_send(all, to, kind, note);
    }
}

/* Whatever comes is a sign of life. */
static void take(bwi_mpi_group *all, int from, const bwi_note *note)
{
    bwi_peer *peer = &all->peers[from];
    peer->heard = bwi_now();
    switch ((bwi_note_kind)note->kind) {
    case BWI_NOTE_HELLO:
        peer->hello = *note;
        peer->hello.text[sizeof note->text - 1] = 0;
        peer->met = true;
        break;
    case BWI_NOTE_PING:
        bwi_notes_send(all, from, BWI_NOTE_PONG, &(bwi_note){.kind = BWI_NOTE_PONG});
        break;
    case BWI_NOTE_LEFT:
        peer->left = true;
        peer->calls = note->calls;
        break;
    case BWI_NOTE_LOST:
        all->lost = true;
        bwi_group_fail(all, BW_UNAVAILABLE, "%.*s", BWI_NOTE_TEXT - 1, note->text);
        break;
    case BWI_NOTE_END:
        peer->calls = peer->left ? peer->calls : note->calls;
        peer->left = peer->ended = true;
        peer->end = *note;
        peer->end.text[sizeof note->text - 1] = 0;
        break;
    case BWI_NOTE_PONG:
    case BWI_NOTE_KINDS:
        break;
    }
}

static void expect_note(bwi_mpi_group *all)
{
    int error = all->mpi->receive(&all->incoming, &all->note, sizeof all->note, -1, NOTE_TAG);
    if (error != 0) {
        all->quit = true;
        bwi_group_fail_mpi(all, error, "receive notes");
    }
}

void bwi_notes_take(bwi_mpi_group *all)
{
    for (int done = 1; done && !all->quit;) {
        int from = 0;
        size_t size = 0;
        int error = all->mpi->test(&all->incoming, &done, &from, &size);
        if (error != 0) {
            all->quit = true; /* what was expected is gone */
            bwi_group_fail_mpi(all, error, "receive notes");
        } else if (done) {
            if (size == sizeof all->note && from >= 0 && from < all->ranks.count) {
                take(all, from, &all->note);
            }
            expect_note(all);
        }
    }
}

/* ---- Waiting ---- */

static void nap(long nanoseconds)
{
    struct timespec time = {.tv_nsec = nanoseconds};
    nanosleep(&time, NULL);
}

/* Looks for processes of this machine that are gone, and for peers that do not answer. */
static void look_after(bwi_mpi_group *all, bwi_waiting *w, double now)
{
    const bwi_note *own = &all->peers[all->rank].hello;
    bool asks = w->pinged <= 0 && now - w->begin >= all->ranks.watchdog / 2;
    bool expects = w->pinged > 0 && now - w->pinged >= all->ranks.watchdog / 2;
    for (int rank = 0; rank < all->ranks.count && all->status == BW_OK; rank++) {
        const bwi_peer *peer = &all->peers[rank];
        if (rank == all->rank || peer->ended) {
            continue;
        }
        if (peer->met && peer->hello.machine == own->machine && kill((pid_t)peer->hello.process, 0) != 0 && errno == ESRCH) {
            lose(all, rank, "is gone: it was killed, or it crashed");
        } else if (asks) {
            bwi_notes_send(all, rank, BWI_NOTE_PING, &(bwi_note){.kind = BWI_NOTE_PING});
        } else if (expects && peer->heard < w->pinged) {
            char why[160];
            bwi_print(why, sizeof why, "%s for %.3g seconds: it is stopped, or its machine or the network is down",
                      peer->met ? "has given no sign of life" : "has not come", all->ranks.watchdog);
            lose(all, rank, why);
        }
    }
    w->pinged = asks ? now : expects ? 0 : w->pinged;
    w->begin = expects ? now : w->begin;
}

void bwi_group_wait(bwi_mpi_group *all, bwi_waiting *w)
{
    double now = bwi_now();
    if (w->waits++ == 0) {
        w->begin = w->first = w->looked = now;
    }
    double waited = now - w->first;
    if (all->spins && waited < SPIN_SECONDS) {
        return;
    }
    if (waited < (all->spins ? YIELD_SECONDS : SHORT_SECONDS)) {
        sched_yield();
    } else {
        nap(waited < LOOK_SECONDS ? NAP_NANOSECONDS : LONG_NAP_NANOSECONDS);
    }
    if (now - w->looked >= LOOK_SECONDS) {
        w->looked = now;
        pthread_mutex_lock(&all->mutex);
        look_after(all, w, now);
        pthread_mutex_unlock(&all->mutex);
    }
}

/* ---- Meeting and parting ---- */

static uint64_t hash_of(const void *bytes, size_t size, uint64_t hash)
{
    for (size_t i = 0; i < size; i++) {
        hash = (hash ^ ((const unsigned char *)bytes)[i]) * UINT64_C(0x100000001B3);
    }
    return hash;
}

/* Process numbers mean something within one namespace of one machine. */
static bwi_note introduce(void)
{
    bwi_note hello = {.process = (int64_t)getpid(), .cpus = bwi_cpus()};
    struct stat space;
    cpu_set_t cpus;
    if (gethostname(hello.text, sizeof hello.text - 1) != 0) {
        snprintf(hello.text, sizeof hello.text, "an unknown machine");
    }
    hello.machine = hash_of(hello.text, strlen(hello.text), UINT64_C(0xCBF29CE484222325));
    if (stat("/proc/self/ns/pid", &space) == 0) {
        hello.machine = hash_of(&space.st_ino, sizeof space.st_ino, hello.machine);
    }
    if (sched_getaffinity(0, sizeof cpus, &cpus) == 0) {
        hello.set = hash_of(&cpus, sizeof cpus, 1);
    }
    return hello;
}

/* Answers while the program computes. */
static void *answer(void *user)
{
    bwi_mpi_group *all = user;
    pthread_mutex_lock(&all->mutex);
    while (!all->quit) {
        bwi_notes_take(all);
        bwi_condition_wait(&all->mutex, &all->wake, ANSWER_NANOSECONDS);
    }
    pthread_mutex_unlock(&all->mutex);
    return NULL;
}

void bwi_peers_open(bwi_mpi_group *all)
{
    bwi_peer *own = &all->peers[all->rank];
    own->hello = introduce();
    own->met = true;
    pthread_mutex_lock(&all->mutex);
    expect_note(all);
    bwi_notes_send_all(all, BWI_NOTE_HELLO, &own->hello);
    pthread_mutex_unlock(&all->mutex);
    bwi_waiting waiting = {.waits = 0};
    for (int met = 0; met < all->ranks.count && all->status == BW_OK;) {
        pthread_mutex_lock(&all->mutex);
        bwi_notes_take(all);
        met = 0;
        for (int rank = 0; rank < all->ranks.count; rank++) {
            met += all->peers[rank].met;
        }
        pthread_mutex_unlock(&all->mutex);
        if (met < all->ranks.count) {
            bwi_group_wait(all, &waiting);
        }
    }
}

void bwi_peers_answer(bwi_mpi_group *all, bool threads)
{
    if (threads && all->ranks.count > 1) {
        all->threaded = bwi_thread_start(&all->thread, 0, answer, all) == 0;
    }
}

/* Sends what is still on its way; of a group that has lost a rank nothing is waited for. */
void bwi_peers_close(bwi_mpi_group *all)
{
    pthread_mutex_lock(&all->mutex);
    all->quit = true;
    pthread_cond_broadcast(&all->wake);
    pthread_mutex_unlock(&all->mutex);
    if (all->threaded) {
        pthread_join(all->thread, NULL);
    }
    for (int rank = 0; rank < all->ranks.count; rank++) {
        for (int kind = 0; kind < BWI_NOTE_KINDS; kind++) {
            while (!all->lost && !is_sent(all, &all->peers[rank].posts[kind])) {
                nap(NAP_NANOSECONDS);
            }
        }
    }
}
