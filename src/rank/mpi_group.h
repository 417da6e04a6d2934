/*
 * What the files on ranks of MPI share. A group knows its peers by notes, small messages of a tag of their own (mpi_peers.c); sums
 * are made of messages of other tags (mpi_sum.c). Every call of MPI is made with the mutex held, since a thread of the group
 * answers notes while the program computes.
 */
#ifndef BWI_RANK_MPI_GROUP_H
#define BWI_RANK_MPI_GROUP_H

#include "mpi/mpi.h"
#include "rank/internal.h"

/* ---- mpi_load.c: the launcher and the library ---- */

typedef struct bwi_launcher {
    const char *name;   /* "mpirun of Open MPI"; NULL: none */
    const char *flavor; /* of the library that goes with it; NULL: not known */
    int count;          /* of processes; 0: not known */
} bwi_launcher;

/* What the launcher's environment says of this process. */
bwi_launcher bwi_launcher_find(void);
/* Loads the library for the launcher, or that of $BATCHWISE_MPI; NULL with the reason in `failure`. */
const bwi_mpi_calls *bwi_mpi_load(const bwi_launcher *launcher, char *failure, size_t size);

/* ---- The group ---- */

enum { BWI_NOTE_TEXT = 472, BWI_MPI_FAILURE = 1024, BWI_TRANSFERS = 4 };
/* Bytes for what is under way: a segment of each transfer, or all of what numbers of ranks that are no powers of two need; and the
 * most subtrees of a rank's run of lanes. */
enum { BWI_SEGMENT_BYTES = 1 << 18, BWI_STAGING_BYTES = 1 << 22, BWI_MOST_SUBTREES = 24 };

typedef enum bwi_note_kind {
    BWI_NOTE_HELLO, /* who and where a rank is */
    BWI_NOTE_PING,  /* expects a pong */
    BWI_NOTE_PONG,
    BWI_NOTE_LEFT, /* takes part in no further call */
    BWI_NOTE_LOST, /* a rank is gone, with the words that all use for it */
    BWI_NOTE_END,  /* waits for the others in bw_ranks_end */
    BWI_NOTE_KINDS
} bwi_note_kind;

typedef struct bwi_note {
    int32_t kind;
    int32_t failed;        /* END: with the text as reason */
    int64_t calls;         /* LEFT: that were completed */
    int64_t process, cpus; /* HELLO: its number, how many CPUs it may use, ... */
    uint64_t machine, set; /* ... where that number is valid, and a hash of the CPUs that it may use */
    char text[BWI_NOTE_TEXT];
} bwi_note;

/* A note on its way to a peer. */
typedef struct bwi_post {
    bwi_mpi_request request;
    bwi_note note;
    bool busy;
} bwi_post;

typedef struct bwi_peer {
    bwi_note hello, end;
    bool met, left, ended;
    int64_t calls; /* that it completed before it left */
    double heard;  /* when its last note came */
    bwi_post posts[BWI_NOTE_KINDS];
} bwi_peer;

/* A sum, or an agreement, of a segment that is under way: one round after another with one partner each. */
typedef struct bwi_transfer {
    const struct bwi_sum *how; /* NULL: free */
    unsigned char *values;     /* in the kernels' memory */
    int64_t count;
    int tag, round, rounds;
    bool halves;
    bool sending, receiving;
    bwi_mpi_request send, receive;
    unsigned char *staging;
} bwi_transfer;

/* A message of mpi_lanes.c, mpi_gather.c or mpi_warm.c that is under way. */
typedef struct bwi_message {
    bwi_mpi_request request;
    int64_t expected; /* bytes; -1: it is sent */
    bool pending;
} bwi_message;

typedef struct bwi_mpi_group {
    bw_ranks ranks;
    int rank;
    const bwi_mpi_calls *mpi; /* NULL: it could not be loaded */
    bool running;             /* MPI was started */
    bool spins, beside;       /* waits without sleeping at first; a thread that makes calls is likely to gain by it */
    bool taken, ended;
    pthread_mutex_t mutex;
    /* What ended the group for this rank; BW_OK: nothing did. */
    bw_status status;
    char reason[BWI_NOTE_TEXT];
    bool lost; /* a rank is gone */
    bwi_mpi_request incoming;
    bwi_note note;
    int64_t calls; /* completed */
    int serial;    /* of transfers; their tags follow from it */
    bwi_transfer transfers[BWI_TRANSFERS];
    bwi_message *messages; /* of mpi_lanes.c, mpi_gather.c and mpi_warm.c */
    int message_count;
    unsigned char *staging; /* of transfers, or of mpi_lanes.c: calls are made one at a time */
    /* The thread that answers notes. */
    pthread_t thread;
    pthread_cond_t wake;
    bool threaded, quit;
    char failure[BWI_MPI_FAILURE];
    bwi_peer peers[];
} bwi_mpi_group;

/* ---- mpi_peers.c ---- */

/* How long somebody has waited, and what was done about it. */
typedef struct bwi_waiting {
    double first, begin, looked, pinged; /* when: the wait, the watchdog's time, the last look, the question */
    unsigned waits;
} bwi_waiting;

/* With the mutex held: takes the notes that have come; sends one to a peer, or to all of them. */
void bwi_notes_take(bwi_mpi_group *all);
void bwi_notes_send(bwi_mpi_group *all, int to, bwi_note_kind kind, const bwi_note *note);
void bwi_notes_send_all(bwi_mpi_group *all, bwi_note_kind kind, const bwi_note *note);
/* With the mutex held: ends the group for this rank, unless it has ended. */
void bwi_group_fail(bwi_mpi_group *all, bw_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));
void bwi_group_fail_mpi(bwi_mpi_group *all, int error, const char *what);
void bwi_group_leave(bwi_mpi_group *all);
/* Between two looks, without the mutex: spins first, then sleeps for ever longer, and looks after peers that do not answer. */
void bwi_group_wait(bwi_mpi_group *all, bwi_waiting *waiting);
/* Greets the others; then lets a thread answer them, if MPI allows it. */
void bwi_peers_open(bwi_mpi_group *all);
void bwi_peers_answer(bwi_mpi_group *all, bool threads);
void bwi_peers_close(bwi_mpi_group *all);

/* ---- mpi_sum.c, mpi_lanes.c, mpi_gather.c ---- */

/* Moves on what a call waits for; true if anything moved, and *over at its end. */
typedef bool (*bwi_mpi_work)(bwi_mpi_group *all, void *user, bool *over);
/* Makes one call, by work and waits, one after the other. Being cancelled ends it, unless it is patient. */
bw_status bwi_mpi_run(bw_context *ctx, bwi_mpi_work moves, void *user, bool patient);
/* Begins to send or to receive one of the group's messages; whether any of them is under way, and whether one has come to its
 * end. */
void bwi_message_post(bwi_mpi_group *all, bool sends, void *bytes, size_t size, int rank, int tag);
bool bwi_messages_pending(bwi_mpi_group *all, bool *moved);

bw_status bwi_mpi_sum_floats(bw_context *ctx, void *values, int64_t count);
bw_status bwi_mpi_sum_doubles(bw_context *ctx, void *values, int64_t count);
bw_status bwi_mpi_sum_lanes(bw_context *ctx, void *first, const bwi_rank_sum *sum);
bw_status bwi_mpi_gather(bw_context *ctx, void *values, const size_t *begins);
/* What adding needs of the group's staging memory, on the rank that needs the most; and in the way of mpi_lanes.c. */
size_t bwi_mpi_sum_bytes(bw_ranks *ranks, const bwi_rank_sum *sum);
size_t bwi_mpi_lanes_bytes(bwi_mpi_group *all, const bwi_rank_sum *sum);
/* Sends what is as long as a segment and means nothing. */
void bwi_mpi_sum_nothing(bw_context *ctx);
bw_status bwi_mpi_agree(bw_context *ctx, bw_status mine);

/* ---- mpi_warm.c ---- */

/* Sends messages that mean nothing, before the first run. A failure is the group's. */
void bwi_mpi_warm_up(bwi_mpi_group *all);

#endif
