/* Answers the questions that all exporters ask about nodes and about the preparation of the training data. */
#include "file/export.h"

#include <string.h>

bool *bwi_export_needed(const bw_model *model)
{
    const bwi_graph *graph = &model->graph;
    bool *needed = bwi_allocate(model->ctx, (size_t)graph->count + 1, sizeof *needed);
    if (!needed) {
        return NULL;
    }
    if (model->output_count == 0) {
        bwi_release(model->ctx, needed);
        bwi_fail(model->ctx, BW_INVALID_ARGUMENT, "the model has no output");
        return NULL;
    }
    for (int k = 0; k < model->output_count; k++) {
        needed[model->outputs[k]->number] = true;
    }
    for (int n = graph->count - 1; n >= 0; n--) {
        for (int k = 0; needed[n] && k < graph->nodes[n]->inputs; k++) {
            needed[graph->nodes[n]->input[k]->number] = true;
        }
    }
    return needed;
}

int bwi_export_input(const bw_model *model, const bw_node *node)
{
    const bwi_input_attributes *a = node->attributes;
    int same = 0;
    for (int k = 0; k < model->input_count; k++) {
        const bwi_input_attributes *b = model->inputs[k]->attributes;
        if (model->inputs[k] == node) {
            return k;
        }
        same = strcmp(a->name, b->name) == 0 ? k : same;
    }
    return same;
}

bw_status bwi_export_refuse(const bw_model *model, const bw_node *node, const char *extension)
{
    return bwi_fail_at(model->ctx, BW_UNIMPLEMENTED, bwi_in_layer(node->name), "layer %s: %s cannot be written to %s files",
                       node->name, node->op->name, extension);
}

bool bwi_export_is_identity(const bw_node *node)
{
    return node->op->flags & BWI_OP_TRAINING_ONLY;
}

float *bwi_export_values(bw_context *ctx, const bwi_variable *variable)
{
    float *values = bwi_allocate(ctx, (size_t)bwi_shape_count(&variable->shape), sizeof *values);
    if (values) {
        bwi_variable_read(variable, values);
    }
    return values;
}

bw_status bwi_export_preparation(const bw_model *model, bwi_json_writer *writer)
{
    const bw_dataset *recipe = bw_model_data(model);
    *writer = (bwi_json_writer){.text = {.ctx = model->ctx}};
    return recipe ? bwi_recipe_write(recipe, writer) : BW_OK;
}

/* If the recipe calls a function of the program, statistics that come after it would be applied to values which it has not
 * changed. */
double bwi_export_scale(const bw_model *model)
{
    const bw_dataset *recipe = bw_model_data(model);
    return recipe && !bwi_recipe_has_function(recipe) ? bwi_recipe_scale(recipe) : 1;
}

/* Numbers that are looked up in a table are never scaled. */
bool bwi_export_is_prepared(const bw_model *model, int input)
{
    const bw_dataset *recipe = bw_model_data(model);
    bwi_preparation step;
    double scale = bwi_export_scale(model);
    bool scaled = scale < 1 || scale > 1;
    return recipe && model->inputs[input]->dtype == BW_F32 && !bwi_recipe_has_function(recipe) &&
           (scaled || bwi_recipe_step(recipe, input, 0, &step));
}

/* The labels must be as many as the inputs: a transform may have changed their number. */
static bool has_labels(const bw_model *model, const bw_dataset *recipe)
{
    const char *name;
    int64_t inputs = 0;
    for (int c = 0, categories; bw_dataset_column(recipe, c, &name, &categories); c++) {
        inputs += categories > 0 ? categories : 1;
    }
    return model->input_count == 1 && inputs > 0 && inputs == bwi_shape_count(&model->inputs[0]->shape);
}

bool bwi_export_label(const bw_model *model, int64_t i, bwi_text *text)
{
    const bw_dataset *recipe = bw_model_data(model);
    const char *name;
    if (!recipe || !has_labels(model, recipe)) {
        return false;
    }
    for (int c = 0, categories; bw_dataset_column(recipe, c, &name, &categories); c++) {
        int own = categories > 0 ? categories : 1;
        if (i < own) {
            bwi_text_add(text, "%s%s%s", name, categories > 0 ? "=" : "",
                         categories > 0 ? bw_dataset_category(recipe, c, (int)i) : "");
            return true;
        }
        i -= own;
    }
    return false;
}

void bwi_export_warn(const bw_model *model, const char *path)
{
    const bw_dataset *recipe = bw_model_data(model);
    if (recipe && bwi_recipe_has_function(recipe)) {
        bwi_log(
            model->ctx, BW_LOG_WARNING,
            "%s: the model was trained on samples that a function of the program changed, which no file keeps: change and scale "
            "samples likewise before they go in",
            path);
        return;
    }
    int categorical = recipe ? bwi_recipe_categorical(recipe) : 0, filled = recipe ? bwi_recipe_filled(recipe) : 0;
    if (categorical > 0) {
        bwi_log(
            model->ctx, BW_LOG_WARNING,
            "%s: %d column%s of the training data %s categories, each of which is an input of 0 or 1 here; the file lists what its "
            "inputs are",
            path, categorical, categorical == 1 ? "" : "s", categorical == 1 ? "has" : "have");
    }
    if (filled > 0) {
        bwi_log(model->ctx, BW_LOG_WARNING,
                "%s: missing values of %d column%s were replaced in the training data, which this file does not do; it names the "
                "values",
                path, filled, filled == 1 ? "" : "s");
    }
}

bwi_sliding bwi_export_convolution(const bw_node *node)
{
    const bwi_conv2d_attributes *a = node->attributes;
    const bwi_shape *in = &node->input[0]->shape;
    bwi_sliding s = {.size = {0}};
    bwi_shape_image(in, &s.in[0], &s.in[1], &s.channels);
    if (a->kernel[2]) {
        s.in[0] = in->extent[1];
        s.in[1] = in->extent[2];
        s.in[2] = in->extent[0];
    }
    for (int i = 0; i < (a->kernel[2] ? 3 : 2); i++) {
        s.size[i] = a->kernel[i];
        s.strides[i] = a->strides[i];
        s.dilation[i] = a->dilation[i];
        bwi_conv2d_extents(a, i, s.in[i], &s.out[i], &s.before[i], &s.after[i]);
    }
    return s;
}

bwi_sliding bwi_export_pooling(const bw_node *node)
{
    const bwi_pool2d_attributes *a = node->attributes;
    bwi_sliding s = {.size = {0}};
    bwi_shape_image(&node->input[0]->shape, &s.in[0], &s.in[1], &s.channels);
    for (int i = 0; i < 2; i++) {
        s.size[i] = a->window[i];
        s.strides[i] = a->strides[i];
        s.dilation[i] = 1;
        bwi_pool_extent(s.in[i], a->window[i], a->strides[i], a->same, &s.out[i], &s.before[i], &s.after[i]);
    }
    return s;
}

/* Resampling the identity gives the matrix. */
float *bwi_export_resampling(bw_context *ctx, const bw_node *node)
{
    const bwi_resample_attributes *a = node->attributes;
    int64_t from = node->input[0]->shape.extent[a->axis];
    size_t floats = bwi_size_multiply((size_t)from, (size_t)(from > a->extent ? from : a->extent));
    float *values = bwi_allocate(ctx, bwi_size_multiply(2, floats), sizeof *values);
    if (!values) {
        return NULL;
    }
    bwi_resampling r = {
        .around = {.outer = 1, .extent = from, .inner = from}, .to = a->extent, .kind = a->kind, .smooth = a->smooth};
    for (int64_t i = 0; i < from; i++) {
        values[(int64_t)floats + i * from + i] = 1; /* behind the weights */
    }
    bwi_kernels_host()->picture->resample(&r, values + floats, values);
    return values;
}
