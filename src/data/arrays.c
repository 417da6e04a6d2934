/* Samples from arrays in memory: views, used where they stand. */
#include "data/dataset.h"

#include <string.h>

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

bw_dataset *bw_from_fields(bw_context *ctx, const bw_field *fields, int count)
{
    static const char roles[] = "xyw";
    if (!ctx)
        return NULL;
    if (!fields || count < 1)
        return bwi_fail_build(ctx, BW_INVALID_ARGUMENT, "samples need an array x of inputs; there are no arrays");
    bw_dataset *root = bwi_dataset_root(ctx, &bwi_source_arrays, count, 0);
    if (!root)
        return NULL;
    bw_status status = BW_OK;
    for (int role = 0; status == BW_OK && roles[role]; role++) {
        for (int i = 0; status == BW_OK && i < count; i++) {
            const char *name = fields[i].name ? fields[i].name : "";
            if (name[0] == roles[role] && (name[1] == '\0' || (name[1] == '_' && name[2])))
                status = bwi_dataset_add(root, (bwi_role)role, name[1] ? name + 2 : "", &fields[i].array, name);
            else if (!strchr(roles, name[0]) || !name[0] || (name[1] != '\0' && name[1] != '_'))
                status = bwi_fail(ctx, BW_INVALID_ARGUMENT, "array '%s': expected x, y or w, or x_<name> and so on", name);
        }
    }
    if (status == BW_OK)
        status = bwi_dataset_settle(root, "");
    if (status == BW_OK)
        return root;
    bw_dataset_free(root);
    return bwi_pass_on(ctx);
}

bw_dataset *bw_from_arrays(bw_context *ctx, const bw_array *x, const bw_array *y, const bw_array *w)
{
    static const char *const names[] = {"x", "y", "w"};
    const bw_array *const views[] = {x, y, w};
    bw_field fields[BWI_COUNT(views)];
    int count = 0;
    if (!ctx)
        return NULL;
    if (!x)
        return bwi_fail_build(ctx, BW_INVALID_ARGUMENT, "samples need an array x of inputs; it is NULL");
    for (size_t i = 0; i < BWI_COUNT(views); i++) {
        if (views[i])
            fields[count++] = (bw_field){.name = names[i], .array = *views[i]};
    }
    return bw_from_fields(ctx, fields, count);
}
