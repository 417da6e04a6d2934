/* Samples from arrays in memory: views, used where they stand. */
#include "data/dataset.h"

static bw_status gather(const bw_dataset *dataset, const bwi_demand *demand)
{
    const bwi_column *column = &dataset->columns[demand->field];
    const double scale = column->field.role == BWI_ROLE_INPUT ? dataset->scale : 1;
    int64_t bad;
    const bw_status status = bwi_column_gather(column, scale, demand->numbers, demand->n, demand->to, &bad);
    if (status != BW_OK && bad >= 0)
        bwi_trouble(dataset, demand->numbers[bad], demand->trouble, status, "its %s cannot be read as %s",
                    (const char *[]){"input", "target", "weight"}[column->field.role], bwi_dtype_name(demand->to->dtype));
    return status;
}

const bwi_source bwi_source_arrays = {.kind = "arrays", .gather = gather};

bw_dataset *bw_from_arrays(bw_context *ctx, const bw_array *x, const bw_array *y, const bw_array *w)
{
    static const char *const names[] = {"x", "y", "w"};
    const bw_array *const views[] = {x, y, w};
    if (!ctx)
        return NULL;
    if (!x)
        return bwi_fail_build(ctx, BW_INVALID_ARGUMENT, "samples need an array x of inputs; it is NULL");
    bw_dataset *root = bwi_dataset_root(ctx, &bwi_source_arrays, (int)BWI_COUNT(views), 0);
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
