/* Samples from arrays in memory. The arrays are views and are used in place, so nothing is copied. */
#include "data/read/read.h"
#include "format/format.h"

#include <string.h>

static bw_status gather(const bw_dataset *dataset, const bwi_demand *demand)
{
    return bwi_rows_gather(dataset, &dataset->columns[demand->field].rows, demand);
}

const bwi_dataset_kind bwi_kind_arrays = {.name = "arrays", .gather = gather};

bw_status bwi_field_parse(bw_context *ctx, const char *text, bwi_role *role, const char **name)
{
    static const char roles[] = "xyw";
    const char *found = text && text[0] ? strchr(roles, text[0]) : NULL;
    if (!found || (text[1] && (text[1] != '_' || !text[2]))) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "array '%s': expected x, y or w, or x_<name> and so on", text ? text : "");
    }
    *role = (bwi_role)(found - roles);
    *name = text[1] ? text + 2 : "";
    if (strlen(*name) >= sizeof((bwi_field *)0)->name) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "array '%s': the name has %zu characters; at most %zu are allowed", text,
                        strlen(*name), sizeof((bwi_field *)0)->name - 1);
    }
    return BW_OK;
}

static const struct {
    const char *name;
    unsigned part;
} part_names[] = {{"train", BWI_PART_TRAIN},
                  {"test", BWI_PART_TEST},
                  {"validation", BWI_PART_VALIDATION},
                  {"val", BWI_PART_VALIDATION},
                  {"valid", BWI_PART_VALIDATION}};

unsigned bwi_part_of(const char *name, size_t length)
{
    for (size_t i = 0; i < BWI_COUNT(part_names); i++) {
        if (strlen(part_names[i].name) == length && memcmp(part_names[i].name, name, length) == 0) {
            return part_names[i].part;
        }
    }
    return 0;
}

/* Returns the part that was asked for, or the other one that can stand in for it. */
static unsigned either(unsigned found, unsigned asked, unsigned other)
{
    return found & asked ? asked : found & other;
}

bw_status bwi_part_choose(bw_context *ctx, const char *path, const bw_read_options *options, unsigned found, unsigned *chosen)
{
    static const char *const names[] = {[BWI_PART_TRAIN] = "train", [BWI_PART_VALIDATION] = "validation", [BWI_PART_TEST] = "test"};
    unsigned asked = options->part ? bwi_part_of(options->part, strlen(options->part)) : BWI_PART_TRAIN;
    *chosen = 0;
    if (asked == 0) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "bw_read_options.part: expected train, validation or test, found '%s'",
                        options->part);
    }
    if (!(found & BWI_PART_TRAIN)) {
        return BW_OK;
    }
    *chosen = asked == BWI_PART_TRAIN        ? asked
              : asked == BWI_PART_VALIDATION ? either(found, asked, BWI_PART_TEST)
                                             : either(found, asked, BWI_PART_VALIDATION);
    if (*chosen == 0) {
        return bwi_fail(ctx, BW_NOT_FOUND, "%s: has x_train, but no x_%s", path, options->part);
    }
    bwi_log(ctx, BW_LOG_INFO, "%s: x_%s and y_%s are read", path, names[*chosen], names[*chosen]);
    return BW_OK;
}

void bwi_unread_add(bwi_unread *unread, const char *name, size_t length)
{
    char quoted[BWI_QUOTE_SIZE];
    size_t used = strlen(unread->names);
    bwi_quote(quoted, name, length);
    if (used + strlen(quoted) + sizeof ", ..." < sizeof unread->names) {
        snprintf(unread->names + used, sizeof unread->names - used, "%s%s", used ? ", " : "", quoted);
    } else if (!unread->cut) {
        snprintf(unread->names + used, sizeof unread->names - used, ", ...");
        unread->cut = true;
    }
}

void bwi_unread_report(bw_context *ctx, const char *path, const bwi_unread *unread)
{
    if (unread->names[0]) {
        bwi_log(ctx, BW_LOG_WARNING, "%s: arrays that are not read: %s; samples are x, y and w (weights), or x_<name> and so on",
                path, unread->names);
    }
}

bool bw_dataset_has_part(const bw_dataset *dataset, const char *part)
{
    if (!dataset || !part) {
        return false;
    }
    while (dataset->upstream) {
        dataset = dataset->upstream;
    }
    unsigned asked = bwi_part_of(part, strlen(part)), held_out = BWI_PART_VALIDATION | BWI_PART_TEST;
    return dataset->parts & (asked & held_out ? held_out : asked);
}

static bw_status add_fields(bw_dataset *root, const bw_field *fields, int count)
{
    for (bwi_role role = BWI_ROLE_INPUT; role <= BWI_ROLE_WEIGHT; role++) {
        for (int i = 0; i < count; i++) {
            bwi_role found;
            const char *name;
            bw_status status = bwi_field_parse(root->owned.ctx, fields[i].name, &found, &name);
            if (status == BW_OK && found == role) {
                status = bwi_dataset_add(root, role, name, &fields[i].array, fields[i].name);
            }
            if (status != BW_OK) {
                return status;
            }
        }
    }
    return bwi_dataset_settle(root, "");
}

bw_dataset *bw_from_fields(bw_context *ctx, const bw_field *fields, int count)
{
    if (!ctx) {
        return NULL;
    }
    if (!fields || count < 1) {
        return bwi_fail_build(ctx, BW_INVALID_ARGUMENT, "samples need an array x of inputs; there are no arrays");
    }
    if (count > BWI_FIELD_LIMIT) {
        return bwi_fail_build(ctx, BW_INVALID_ARGUMENT, "%d arrays; samples have at most %d", count, BWI_FIELD_LIMIT);
    }
    bw_dataset *root = bwi_dataset_root(ctx, &bwi_kind_arrays, count, 0);
    if (!root) {
        return NULL;
    }
    if (add_fields(root, fields, count) == BW_OK) {
        return root;
    }
    bw_dataset_free(root);
    return bwi_pass_on(ctx);
}

bw_dataset *bw_from_arrays(bw_context *ctx, const bw_array *x, const bw_array *y, const bw_array *w)
{
    static const char *const names[] = {"x", "y", "w"};
    const bw_array *const views[] = {x, y, w};
    bw_field fields[BWI_COUNT(views)];
    int count = 0;
    if (!ctx) {
        return NULL;
    }
    if (!x) {
        return bwi_fail_build(ctx, BW_INVALID_ARGUMENT, "samples need an array x of inputs; it is NULL");
    }
    for (size_t i = 0; i < BWI_COUNT(views); i++) {
        if (views[i]) {
            fields[count++] = (bw_field){.name = names[i], .array = *views[i]};
        }
    }
    return bw_from_fields(ctx, fields, count);
}
