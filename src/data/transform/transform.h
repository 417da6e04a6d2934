/* transform: datasets whose values differ from those of the dataset below them. */
#ifndef BWI_DATA_TRANSFORM_H
#define BWI_DATA_TRANSFORM_H

#include "data/internal.h"

/* ---- map.c ---- */

/* Makes a dataset over this one, with scratch, whose fields have the types that functions see: float32 or int32. NULL on
 * failure. */
bw_dataset *bwi_dataset_stage(bw_dataset *dataset);

/* ---- affine.c, onehot.c: for recipes ---- */

/* Lends what bw_standardise or bw_normalise fitted to an input: value k of a sample becomes (value - offset[k mod count]) *
 * factor[k mod count]. False if there are no such statistics, or they are not fitted yet. */
bool bwi_dataset_statistics(const bw_dataset *dataset, int field, const float **offset, const float **factor, int64_t *count);
/* Make the same kind over another dataset, which is taken: `over` is not fitted, `again` uses the statistics of the stage.
 * Builders. */
bw_dataset *bwi_affine_over(bw_dataset *dataset, const bw_dataset *stage);
bw_dataset *bwi_affine_again(bw_dataset *dataset, const bw_dataset *stage);
bool bwi_affine_is_kind(const char *kind);
bw_dataset *bwi_affine_named(bw_dataset *dataset, const char *kind);
/* Sets the statistics of an input; the stage is fitted once all inputs have theirs. */
bw_status bwi_affine_set(bw_dataset *dataset, int field, const float *offset, const float *factor, int64_t count);
int64_t bwi_onehot_classes(const bw_dataset *dataset);

/* ---- augment.c ---- */

bool bwi_dataset_augments(const bw_dataset *dataset); /* whether any stage does */

#endif
