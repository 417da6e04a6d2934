/*
 * Inside of data: what a dataset is made of. A root holds the arrays; every other dataset is an index map over the one
 * before it. Nothing here is seen by other modules.
 */
#ifndef BWI_DATA_DATASET_H
#define BWI_DATA_DATASET_H

#include "data/data.h"

#define BWI_BATCH_DEFAULT 32

/* The values of one field: sample s begins at data + s * step; its values follow the axes, the last of which runs fastest.
 * Neighbouring axes without a gap between them are joined into one, so a sample without gaps has one axis. No alignment. */
typedef struct bwi_column {
    bwi_field field;
    int64_t samples;
    int64_t values; /* of one sample */
    const unsigned char *data;
    int64_t step;
    int axes; /* 1 or more */
    int64_t extent[BW_MAX_RANK], stride[BW_MAX_RANK];
    void *memory; /* released with the dataset; NULL if the values stand elsewhere */
} bwi_column;

typedef enum bwi_map { BWI_MAP_ROOT, BWI_MAP_RANGE, BWI_MAP_PERMUTE } bwi_map;

struct bw_dataset {
    bwi_owned owned;
    int references;       /* the user's, if not taken, and one from each dataset and iterator that stands on this one */
    bool taken;           /* the user's reference is gone: a builder took it, or it was freed */
    bw_dataset *upstream; /* NULL: this is a root */
    bw_dataset *root;
    int64_t count, batch;
    bwi_map map;
    int64_t first; /* BWI_MAP_RANGE: position p stands for first + p */
    bool frozen;   /* BWI_MAP_RANGE: the order behind it is the same in every epoch */
    uint64_t seed; /* BWI_MAP_PERMUTE */
    /* Of a root. */
    bwi_column *columns;
    int column_count;
    double scale;
    bwi_bytes file; /* mapped while a column uses it */
};

/* ---- dataset.c ---- */

/* An empty root with room for `columns`; NULL on failure (as a builder). */
bw_dataset *bwi_dataset_root(bw_context *ctx, int columns);
/* A dataset over `upstream`, which gets one more reference; NULL on failure (as a builder). */
bw_dataset *bwi_dataset_over(bw_dataset *upstream, bwi_map map, int64_t count);
/* Adds a column from a view, whose data must outlive the root. `where` names it in messages. */
bw_status bwi_dataset_add(bw_dataset *root, bwi_role role, const char *name, const bw_array *view, const char *where);
/* After the last column: every field has the same number of samples. `where` is put before the message. */
bw_status bwi_dataset_settle(bw_dataset *root, const char *where);
void bwi_dataset_keep(bw_dataset *dataset);
void bwi_dataset_release(bw_dataset *dataset); /* frees it and what it stands on when the last reference goes */

/* ---- npz.c ---- */

/* A reader fills an empty place with a root of samples. */
bw_status bwi_npz_read(bw_context *ctx, bw_dataset **root, const char *path);

#endif
