/* Samples from arrays in memory: views, used where they stand. */
#include "data/dataset.h"

bw_dataset *bw_from_arrays(bw_context *ctx, const bw_array *x, const bw_array *y, const bw_array *w)
{
    static const char *const names[] = {"x", "y", "w"};
    const bw_array *const views[] = {x, y, w};
    if (!ctx)
        return NULL;
    if (!x)
        return bwi_fail_build(ctx, BW_INVALID_ARGUMENT, "samples need an array x of inputs; it is NULL");
    bw_dataset *root = bwi_dataset_root(ctx, (int)BWI_COUNT(views));
    if (!root)
        return NULL;
    bw_status status = BW_OK;
    for (int i = 0; status == BW_OK && i < (int)BWI_COUNT(views); i++) {
        if (views[i])
            status = bwi_dataset_add(root, (bwi_role)i, "", views[i], names[i]);
    }
    if (status == BW_OK)
        status = bwi_dataset_settle(root, "");
    if (status == BW_OK)
        return root;
    bw_dataset_free(root);
    return bwi_pass_on(ctx);
}
