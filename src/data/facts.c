/* Copies what was found or chosen while reading, since these facts outlive the file and belong to the model. */
#include "data/internal.h"

#include <string.h>

static void free_names(bw_context *ctx, const char *const *names, int count)
{
    for (int i = 0; names && i < count; i++) {
        bwi_release(ctx, names[i]);
    }
    bwi_release(ctx, names);
}

static bool copy_name(bw_context *ctx, const char **to, const char *from)
{
    *to = from ? bwi_copy_text(ctx, from) : NULL;
    return !from || *to;
}

static bool copy_names(bw_context *ctx, const char *const **to, const char *const *from, int count)
{
    const char **names = bwi_allocate(ctx, (size_t)count, sizeof *names);
    *to = (const char *const *)names;
    if (!names) {
        return false;
    }
    for (int i = 0; i < count; i++) {
        if (!copy_name(ctx, &names[i], from[i])) {
            return false;
        }
    }
    return true;
}

void bwi_facts_free(bw_context *ctx, bwi_facts *facts)
{
    for (int i = 0; facts->feature && i < facts->features; i++) {
        bwi_release(ctx, facts->feature[i].name);
        free_names(ctx, facts->feature[i].category, facts->feature[i].categories);
    }
    bwi_release(ctx, facts->feature);
    bwi_release(ctx, facts->target);
    bwi_release(ctx, facts->target_column);
    bwi_release(ctx, facts->na);
    free_names(ctx, facts->class_name, facts->classes);
    *facts = (bwi_facts){.scale = 1};
}

static bool copy_features(bw_context *ctx, bwi_facts *to, const bwi_facts *from)
{
    bwi_feature *features = bwi_allocate(ctx, (size_t)from->features, sizeof *features);
    to->feature = features;
    to->features = from->features;
    for (int i = 0; features && i < from->features; i++) {
        const bwi_feature *one = &from->feature[i];
        features[i] = (bwi_feature){
            .categories = one->categories, .fill = one->fill, .filled = one->filled, .column = one->column, .text = one->text};
        if (!copy_name(ctx, &features[i].name, one->name) ||
            (one->categories > 0 && !copy_names(ctx, &features[i].category, one->category, one->categories))) {
            return false;
        }
    }
    return features;
}

static bool copy_columns(bw_context *ctx, bwi_facts *to, const bwi_facts *from)
{
    int *columns = bwi_allocate(ctx, (size_t)from->targets, sizeof *columns);
    to->target_column = columns;
    to->targets = columns ? from->targets : 0;
    if (columns) {
        memcpy(columns, from->target_column, (size_t)from->targets * sizeof *columns);
    }
    return columns;
}

bw_status bwi_facts_copy(bw_context *ctx, bwi_facts *to, const bwi_facts *from)
{
    *to = (bwi_facts){.scale = from->scale,
                      .classes = from->classes,
                      .ndim = from->ndim,
                      .missing = from->missing,
                      .columns = from->columns,
                      .texts = from->texts};
    memcpy(to->shape, from->shape, sizeof to->shape);
    if (copy_name(ctx, &to->target, from->target) && copy_name(ctx, &to->na, from->na) &&
        (from->targets == 0 || copy_columns(ctx, to, from)) &&
        (from->classes == 0 || copy_names(ctx, &to->class_name, from->class_name, from->classes)) &&
        (from->features == 0 || copy_features(ctx, to, from))) {
        return BW_OK;
    }
    bwi_facts_free(ctx, to);
    return BW_RESOURCE_EXHAUSTED;
}
