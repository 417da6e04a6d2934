/* What the files of recipes share: builders for their parts, which come from a dataset (recipe.c) or from a text
 * (recipe_text.c). */
#ifndef BWI_DATA_RECIPE_H
#define BWI_DATA_RECIPE_H

#include "data/internal.h"

extern const bwi_dataset_kind bwi_kind_unknown; /* a stage that no text describes: a function of the program */

/* Builders. The facts are copied. A builder over another dataset takes it. */
bw_dataset *bwi_recipe_root(bw_context *ctx, const bwi_field *const *fields, int count, const bwi_facts *facts);
bw_dataset *bwi_recipe_unknown(bw_dataset *below, const bwi_field *const *fields, int count);

#endif
