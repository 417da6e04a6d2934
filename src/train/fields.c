/*
 * Matches the fields of a dataset with a model: inputs, targets and sample weights are found by name, or as the only one of their
 * role. Samples are gathered as rows of numbers, so data fits if the roles, the names and the count of numbers per sample are the
 * same.
 */
#include "train/internal.h"

#include <string.h>

int64_t bwi_field_values(const bwi_field *field)
{
    int64_t count = 1;
    for (int i = 0; i < field->ndim; i++) {
        count *= field->shape[i];
    }
    return count;
}

int bwi_fields_find(const bw_dataset *dataset, const bwi_input_attributes *a)
{
    int fields = 0, last = -1;
    for (int f = 0; f < bwi_dataset_fields(dataset); f++) {
        const bwi_field *field = bwi_dataset_field(dataset, f);
        if (field->role != a->role) {
            continue;
        }
        if (strcmp(field->name, a->name) == 0) {
            return f;
        }
        fields++;
        last = f;
    }
    return fields == 1 && (a->name[0] == '\0' || bwi_dataset_field(dataset, last)->name[0] == '\0') ? last : -1;
}

const char *bwi_role_describe(char text[96], bwi_role role, const char *name)
{
    static const char *const roles[] = {"input", "target", "sample weight"};
    snprintf(text, 96, "%s%s%s", roles[role], name[0] ? " " : "", name);
    return text;
}

/* NULL stands for a missing field. Fields are ordered by role, so the roles tell which of the two is missing. */
static bw_status refuse(bw_context *ctx, const bwi_field *expected, const bwi_field *found, const char *what, const char *like)
{
    char name[96], other[96], shape[160], other_shape[160];
    if (!found || (expected && expected->role < found->role)) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: expected the %s that %s has, found none", what,
                        bwi_role_describe(name, expected->role, expected->name), like);
    }
    bwi_role_describe(name, found->role, found->name);
    if (!expected || expected->role > found->role) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: found one %s more than %s has", what, name, like);
    }
    if (strcmp(expected->name, found->name) != 0) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: expected the %s that %s has, found %s", what,
                        bwi_role_describe(other, expected->role, expected->name), like, name);
    }
    return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: %s: expected shape %s as %s has, found %s", what, name,
                    bwi_format_shape(other_shape, expected->ndim, expected->shape), like,
                    bwi_format_shape(shape, found->ndim, found->shape));
}

bw_status bwi_field_check(bw_context *ctx, const bwi_field *expected, const bwi_field *found, const char *what, const char *like)
{
    bool alike = expected && found && expected->role == found->role && strcmp(expected->name, found->name) == 0 &&
                 bwi_field_values(expected) == bwi_field_values(found);
    return alike ? BW_OK : refuse(ctx, expected, found, what, like);
}

bw_status bwi_fields_input(bw_context *ctx, const bw_dataset *dataset, const bwi_field **input)
{
    int at = bwi_dataset_find(dataset, BWI_ROLE_INPUT, 0);
    *input = at >= 0 ? bwi_dataset_field(dataset, at) : NULL;
    return *input ? BW_OK : bwi_fail(ctx, BW_INVALID_ARGUMENT, "the data has no input");
}
