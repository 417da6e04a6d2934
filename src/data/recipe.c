/*
 * Recipes. What was found, chosen or fitted while training data was read and prepared (columns, categories, fill values, class
 * names, scale, shape, statistics) must be applied again when the model is used. A recipe is a chain of datasets without samples
 * that mirrors the one a model was trained with: a root with its fields and facts, and above it the stages that change values. It
 * can be used wherever an option asks for a dataset to be `like`. Stages that only choose or order samples are left out; of a
 * function of the program, only its presence is known.
 */
#include "data/read/read.h"
#include "data/recipe.h"
#include "data/transform/transform.h"

#include <string.h>

static bw_status gather(const bw_dataset *dataset, const bwi_demand *demand)
{
    return bwi_sample_error(dataset, demand->numbers[0], demand->error, BW_INVALID_ARGUMENT, "a recipe has no samples");
}

static const bwi_dataset_kind root_kind = {.name = "recipe", .gather = gather};
const bwi_dataset_kind bwi_kind_unknown = {.name = "function", .texts = true, .gather = gather, .keeps = BWI_KEEPS_UNKNOWN};

static bw_dataset *with_fields(bw_dataset *made, const bwi_field *const *fields, int count)
{
    for (int f = 0; made && f < count; f++) {
        if (bwi_dataset_declare(made, fields[f], "recipe") != BW_OK) {
            bw_context *ctx = made->owned.ctx;
            bw_dataset_free(made);
            return bwi_pass_on(ctx);
        }
    }
    return made;
}

bw_dataset *bwi_recipe_root(bw_context *ctx, const bwi_field *const *fields, int count, const bwi_facts *facts)
{
    bw_dataset *made = bwi_dataset_root(ctx, &root_kind, count, 0);
    if (made && bwi_facts_copy(ctx, &made->facts, facts) != BW_OK) {
        bw_dataset_free(made);
        return bwi_pass_on(ctx);
    }
    return with_fields(made, fields, count);
}

bw_dataset *bwi_recipe_unknown(bw_dataset *below, const bwi_field *const *fields, int count)
{
    return bwi_dataset_take(below, with_fields(bwi_dataset_over(below, &bwi_kind_unknown, count, 0), fields, count));
}

static void list_fields(const bw_dataset *dataset, const bwi_field *fields[BWI_FIELD_LIMIT])
{
    for (int f = 0; f < bwi_dataset_fields(dataset); f++) {
        fields[f] = bwi_dataset_field(dataset, f);
    }
}

static bw_dataset *copy_statistics(bw_dataset *below, const bw_dataset *stage)
{
    bw_dataset *made = bwi_affine_over(below, stage);
    bw_status status = BW_OK;
    for (int f = 0; made && f < made->column_count && status == BW_OK; f++) {
        const float *offset, *factor;
        int64_t count;
        if (made->columns[f].field.role == BWI_ROLE_INPUT) {
            status = bwi_dataset_statistics(stage, f, &offset, &factor, &count)
                         ? bwi_affine_set(made, f, offset, factor, count)
                         : bwi_fail(made->owned.ctx, BW_INTERNAL, "%s is not fitted yet", stage->kind->name);
        }
    }
    if (status == BW_OK) {
        return made;
    }
    bw_context *ctx = made->owned.ctx;
    bw_dataset_free(made);
    return bwi_pass_on(ctx);
}

/* The root's fields are taken above all stages that only order samples, because that is where bw_read sets shapes. */
static bw_dataset *mirror(const bw_dataset *dataset)
{
    const bw_dataset *stage = dataset;
    const bwi_field *fields[BWI_FIELD_LIMIT];
    while (stage->upstream && stage->kind->keeps == BWI_KEEPS_NOTHING) {
        stage = stage->upstream;
    }
    if (!stage->upstream) {
        list_fields(dataset, fields);
        return bwi_recipe_root(dataset->owned.ctx, fields, bwi_dataset_fields(dataset), &stage->facts);
    }
    bw_dataset *below = mirror(stage->upstream);
    if (!below) {
        return NULL;
    }
    if (stage->kind->keeps == BWI_KEEPS_STATISTICS) {
        return copy_statistics(below, stage);
    }
    if (stage->kind->keeps == BWI_KEEPS_CLASSES) {
        return bw_one_hot(below, bwi_onehot_classes(stage));
    }
    list_fields(stage, fields);
    return bwi_recipe_unknown(below, fields, bwi_dataset_fields(stage));
}

bw_dataset *bwi_recipe_make(const bw_dataset *dataset)
{
    return mirror(dataset);
}

bool bwi_recipe_is_empty(const bw_dataset *recipe)
{
    const bwi_facts *facts = &recipe->facts;
    return !recipe->upstream &&
           !(facts->ndim > 0 || facts->scale < 1 || facts->scale > 1 || facts->classes || facts->features || facts->texts);
}

/* ---- For exported models ---- */

/* Steps are numbered from the lowest stage, but a chain is walked from the top, so they are counted first. */
bool bwi_recipe_step(const bw_dataset *recipe, int input, int step, bwi_preparation *p)
{
    int above = -step - 1;
    for (const bw_dataset *stage = recipe; stage; stage = stage->upstream) {
        above += stage->kind->keeps == BWI_KEEPS_STATISTICS;
    }
    for (; recipe && above >= 0; recipe = recipe->upstream) {
        bool statistics = recipe->kind->keeps == BWI_KEEPS_STATISTICS;
        if (statistics && above == 0) {
            return bwi_dataset_statistics(recipe, bwi_dataset_find(recipe, BWI_ROLE_INPUT, input), &p->offset, &p->factor,
                                          &p->count);
        }
        above -= statistics;
    }
    return false;
}

double bwi_recipe_scale(const bw_dataset *recipe)
{
    return bwi_dataset_facts(recipe)->scale;
}

bool bwi_recipe_has_function(const bw_dataset *recipe)
{
    bool found = false;
    for (; recipe && !found; recipe = recipe->upstream) {
        found = recipe->kind->keeps == BWI_KEEPS_UNKNOWN;
    }
    return found;
}

const char *bwi_recipe_column(const bw_dataset *recipe, int64_t input, const char **category)
{
    const bwi_facts *facts = bwi_dataset_facts(recipe);
    *category = NULL;
    for (int i = 0; i < facts->features; i++) {
        if (facts->feature[i].text) {
            return NULL; /* what a layer made of a text is no column */
        }
    }
    for (int i = 0; i < facts->features && input >= 0; i++) {
        const bwi_feature *feature = &facts->feature[i];
        int inputs = feature->categories > 0 ? feature->categories : 1;
        if (input < inputs) {
            *category = feature->categories > 0 ? feature->category[input] : NULL;
            return feature->name[0] ? feature->name : NULL;
        }
        input -= inputs;
    }
    return NULL;
}

int bwi_recipe_categorical(const bw_dataset *recipe)
{
    const bwi_facts *facts = bwi_dataset_facts(recipe);
    int count = 0;
    for (int i = 0; i < facts->features; i++) {
        count += facts->feature[i].categories > 0;
    }
    return count;
}

int bwi_recipe_filled(const bw_dataset *recipe)
{
    const bwi_facts *facts = bwi_dataset_facts(recipe);
    int count = 0;
    for (int i = 0; i < facts->features; i++) {
        count += facts->feature[i].filled;
    }
    return count;
}

/* ---- Reading as the recipe was ---- */

/* Whether the scale is part of how the training data was read. Arrays of a program have none, but files that are read later may
 * need one. */
static bool is_scaled(const bwi_facts *facts)
{
    return facts->ndim > 0 || facts->scale < 1 || facts->scale > 1;
}

/* Refuses options that contradict those chosen for training. */
static bw_status check_given(bw_context *ctx, const bwi_facts *facts, const bw_read_options *given)
{
    char expected[256], found[256];
    if (given->like) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "like: data is read as the model was trained; give no other");
    }
    double ratio = given->scale / facts->scale;
    bool asked = given->scale_given || given->scale != 1;
    if (asked && is_scaled(facts) && !(ratio > 1 - 1e-9 && ratio < 1 + 1e-9)) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "scale: the model was trained with %g, found %g; leave it out", facts->scale,
                        given->scale);
    }
    if (facts->ndim > 0 && given->ndim > 0 &&
        (given->ndim != facts->ndim || given->ndim > BW_MAX_NDIM ||
         memcmp(given->shape, facts->shape, (size_t)facts->ndim * sizeof *facts->shape) != 0)) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "shape: the model was trained with %s, found %s; leave it out",
                        bwi_format_shape(expected, facts->ndim, facts->shape),
                        bwi_format_shape(found, given->ndim > BW_MAX_NDIM ? 0 : given->ndim, given->shape));
    }
    return BW_OK;
}

static void choose(bw_read_options *options, const bw_dataset *recipe, const bwi_facts *facts)
{
    options->like = recipe;
    options->scale = is_scaled(facts) ? facts->scale : options->scale;
    if (facts->ndim == 0) {
        return;
    }
    options->ndim = facts->ndim;
    memcpy(options->shape, facts->shape, sizeof facts->shape);
    if (facts->features > 0 && options->missing == BW_MISSING_ERROR) {
        options->missing = facts->missing;
    }
    options->na = options->na ? options->na : facts->na;
}

/* Applies the recipe's stages again, the lowest first. */
static bw_dataset *apply(bw_dataset *dataset, const bw_dataset *stage)
{
    if (!stage->upstream) {
        return dataset;
    }
    dataset = apply(dataset, stage->upstream);
    if (!dataset) {
        return NULL;
    }
    if (stage->kind->keeps == BWI_KEEPS_STATISTICS) {
        return bwi_affine_again(dataset, stage);
    }
    if (stage->kind->keeps == BWI_KEEPS_CLASSES) {
        return bwi_dataset_find(dataset, BWI_ROLE_TARGET, 0) < 0 ? dataset : bw_one_hot(dataset, bwi_onehot_classes(stage));
    }
    bw_context *ctx = dataset->owned.ctx;
    bw_dataset_free(dataset);
    return bwi_fail_build(ctx, BW_INVALID_ARGUMENT,
                          "the model was trained on samples that a function of the program changed, which no file keeps: read with "
                          "`like` set to bw_model_data, and change the samples likewise");
}

bw_dataset *bwi_recipe_read(const bw_dataset *recipe, const char *path, const bw_read_options *options)
{
    bw_context *ctx = recipe->owned.ctx;
    bw_read_options chosen = BW_READ_OPTIONS_DEFAULT;
    const bwi_facts *facts = bwi_dataset_facts(recipe);
    bw_status status = bwi_options_copy(ctx, &chosen, sizeof chosen, options, "bw_read_options");
    if (status == BW_OK) {
        status = check_given(ctx, facts, &chosen);
    }
    if (status != BW_OK) {
        return bwi_pass_on(ctx);
    }
    choose(&chosen, recipe, facts);
    bw_dataset *made = bw_read(ctx, path, &chosen);
    return made ? apply(made, recipe) : NULL;
}
