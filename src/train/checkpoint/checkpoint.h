/*
 * checkpoint: what a run needs to continue after a kill as if nothing had happened. A checkpoint is a folder named after its step:
 * the values of a bwi_state in one file in the format of safetensors, and manifest.json, which is written last and holds a checksum
 * of every value and of itself. Where a manifest is and its checksums are right, the checkpoint is whole.
 */
#ifndef BWI_TRAIN_CHECKPOINT_H
#define BWI_TRAIN_CHECKPOINT_H

#include "format/format.h"
#include "train/internal.h"

/* ---- Facts of a run that must be the same when it is resumed (identity.c) ---- */

typedef struct bwi_identity_fact {
    char name[96];
    char *text;
} bwi_identity_fact;

typedef struct bwi_identity {
    bw_context *ctx;
    bwi_identity_fact *facts;
    int count, capacity;
    bool failed; /* memory ran out */
} bwi_identity;

void bwi_identity_add(bwi_identity *identity, const char *name, const char *format, ...) __attribute__((format(printf, 3, 4)));
void bwi_identity_add_model(bwi_identity *identity, const bw_model *model);
/* With the schedule only if the learning rate cannot have replaced it yet. */
void bwi_identity_add_training(bwi_identity *identity, const bwi_training *training, bool schedule);
bw_status bwi_identity_add_data(bwi_identity *identity, const char *name, const bw_dataset *dataset);
void bwi_identity_add_options(bwi_identity *identity, const bw_fit_options *options);
void bwi_identity_write(const bwi_identity *identity, bwi_json_writer *writer);
/* Fails with the name of the first fact that differs from those in the manifest, or, if `all` of them are known now, is there
 * alone. */
bw_status bwi_identity_compare(const bwi_identity *identity, const bwi_json *recorded, bool all, const char *where);
void bwi_identity_free(bwi_identity *identity);

/* ---- The bytes of a checkpoint (image.c) ---- */

/* What the manifest tells besides the values. */
typedef struct bwi_checkpoint_facts {
    int64_t step, epoch;
    double seconds;      /* that the run has taken so far */
    bool between_epochs; /* two checkpoints of one step, before and after validation, have files of different names */
} bwi_checkpoint_facts;

/* What is the same in every manifest of a run. */
typedef struct bwi_checkpoint_header {
    const bwi_identity *identity;
    const char *every; /* NULL: no run of bw_fit */
    uint64_t seed;
    int64_t tile;
    int lanes, workers;
} bwi_checkpoint_header;

/* Both files in memory that is allocated once. `grows` is the number of the one value whose first extent changes from checkpoint to
 * checkpoint (the history), the last one, or -1; it has `most` rows at most. */
typedef struct bwi_checkpoint_image {
    bw_context *ctx;
    bwi_state state; /* owned */
    int grows;
    size_t *offsets; /* of each value in the data */
    size_t *marks;   /* where its checksum is in `tail` */
    bwi_text names;  /* the header of safetensors but for the value that grows */
    bwi_text tail;   /* the manifest's part that is the same but for the checksums */
    unsigned char *bytes;
    size_t head, capacity, size; /* of `bytes`: the header, all, and what is used */
    char *manifest;
    size_t manifest_capacity, manifest_size;
    bwi_checkpoint_facts facts;
} bwi_checkpoint_image;

/* Takes the state. Free it also after a failure. */
bw_status bwi_checkpoint_image_open(bwi_checkpoint_image *image, bwi_state *state, int grows, int64_t most,
                                    const bwi_checkpoint_header *header);
void bwi_checkpoint_image_free(bwi_checkpoint_image *image);
/* Copies all values, `rows` of the one that grows: the part that training waits for. */
void bwi_checkpoint_image_take(bwi_checkpoint_image *image, int64_t rows, const bwi_checkpoint_facts *facts);
/* Everything else that has to be computed, from any thread: headers and checksums. */
void bwi_checkpoint_image_finish(bwi_checkpoint_image *image);
const char *bwi_checkpoint_file(bool between_epochs);

/* ---- Writing and removing (store.c); from any thread, results as in base's durable files ---- */

typedef struct bwi_store_failure {
    int code; /* a negative errno; 0: none */
    const char *what;
    char path[BWI_DURABLE_PATH];
} bwi_store_failure;

bool bwi_store_write(const bwi_checkpoint_image *image, const char *folder, bwi_store_failure *failure);
/* Removes all checkpoints but the newest `keep`, and what was never finished. */
void bwi_store_prune(bw_context *ctx, const char *folder, int keep);
/* Removes those with a higher number. */
void bwi_store_cut(bw_context *ctx, const char *folder, int64_t last);
/* The highest number below `below` of a checkpoint that has a manifest; -1: there is none. */
int64_t bwi_store_newest(bw_context *ctx, const char *folder, int64_t below);

/* ---- Reading (read.c) ---- */

typedef struct bwi_found_checkpoint {
    bw_context *ctx;
    int64_t step; /* -1: there is none */
    char path[BWI_DURABLE_PATH];
    bwi_json *manifest, *names;
    bwi_bytes file;
    const unsigned char *data; /* the values, behind the header */
    size_t data_bytes;
    double seconds;
    int64_t epoch, tile;
    int lanes;
    const char *every; /* lent; NULL: none */
} bwi_found_checkpoint;

/* Finds and checks the newest one that is whole; damaged ones are passed over with a warning. No checkpoint is no failure, unless
 * there are only damaged ones. Close it also after a failure. */
bw_status bwi_checkpoint_find(bw_context *ctx, bwi_found_checkpoint *found, const char *folder);
void bwi_checkpoint_found_close(bwi_found_checkpoint *found);
/* Refuses what is not the run that wrote it; `all`: of the identity nothing is missing. */
bw_status bwi_checkpoint_compare(const bwi_found_checkpoint *found, const bwi_identity *identity, bool all);
/* The first extent of a value; -1: there is no such value. */
int64_t bwi_checkpoint_rows(const bwi_found_checkpoint *found, const char *name);
bool bwi_checkpoint_has(const bwi_found_checkpoint *found, const char *name);
/* Writes all values, after it has checked that each of them is there, with this type and shape, and no other. */
bw_status bwi_checkpoint_load(const bwi_found_checkpoint *found, const bwi_state *state);

/* ---- Writing while training goes on (writer.c) ---- */

/* When checkpoints are due: after a number of steps, after seconds, or after epochs (both 0). */
typedef struct bwi_checkpoint_times {
    int64_t steps;
    double seconds;
} bwi_checkpoint_times;

bw_status bwi_checkpoint_times_read(bw_context *ctx, bwi_checkpoint_times *times, const char *text);

typedef struct bwi_writer bwi_writer;

/* Starts the thread. The image is taken, and its folder kept. */
bw_status bwi_writer_open(bw_context *ctx, bwi_writer **writer, bwi_checkpoint_image *image, const char *folder, int keep);
/* Whether the thread is done with the checkpoint before. Then: copies the state and leaves it to the thread, unless something of
 * the state could not be gathered. */
bool bwi_writer_is_free(bwi_writer *writer);
bool bwi_writer_take(bwi_writer *writer, int64_t rows, const bwi_checkpoint_facts *facts, const bw_status *gathered);
void bwi_writer_wait(bwi_writer *writer);        /* until the thread has nothing to do */
bool bwi_writer_alarm(const bwi_writer *writer); /* something failed that was not reported yet */
/* Logs what failed since it was last asked, and brings the facts of the run up to date. */
void bwi_writer_report(bwi_writer *writer, bw_run_facts *facts);
void bwi_writer_close(bwi_writer *writer); /* NULL is fine */

#endif
