/* Models: a list of layers from an expression, made into a graph with variables when the input's shape is known. */
#include "layer/layer.h"

#include <string.h>

static void destroy(bwi_owned *object)
{
    bw_model *model = (bw_model *)(void *)object;
    if (model->training_destroy) {
        model->training_destroy(model->training);
    }
    bwi_graph_free(&model->graph);
    bwi_release(model->ctx, model->layers);
    bwi_release(model->ctx, model->uses);
}

void bw_model_free(bw_model *model)
{
    bwi_disown(model);
}

bool bwi_model_built(const bw_model *model)
{
    return model->initialized;
}

/* ---- Reading ---- */

static bw_status read_input(bw_model *model, const bwi_term *term)
{
    static const bwi_argument extents = {"shape", NULL, BWI_INTS, NULL, 1, 1e9, NULL};
    bwi_argument_value value;
    bwi_term list = {.items = term->items, .count = term->count, .column = term->column};
    bwi_term one = {.items = &list, .count = 1, .column = term->column};
    bw_status status = bwi_arguments_read(model->ctx, "model: input", &one, &extents, 1, &value);
    if (status == BW_OK && (value.count < 1 || value.count >= BW_MAX_RANK)) {
        status = bwi_fail(model->ctx, BW_INVALID_ARGUMENT, "model: column %d: input: expected 1 to %d extents, got %d",
                          term->column, BW_MAX_RANK - 1, value.count);
    }
    if (status == BW_OK) {
        model->input_shape.rank = value.count;
        memcpy(model->input_shape.extent, value.integers, sizeof value.integers);
    }
    return status;
}

/* Keras numbers layers of one kind: conv2d, conv2d_1, ... */
static void name_layer(const bw_model *model, bwi_layer *layer)
{
    int same = 0;
    for (int i = 0; i < model->layer_count; i++) {
        same += strcmp(model->layers[i].row->base_name, layer->row->base_name) == 0;
    }
    if (same) {
        snprintf(layer->name, sizeof layer->name, "%s_%d", layer->row->base_name, same);
    } else {
        snprintf(layer->name, sizeof layer->name, "%s", layer->row->base_name);
    }
}

static bool labelled(const bwi_term *term, const char *name)
{
    return term->label && strlen(name) == (size_t)term->label_length && memcmp(term->label, name, (size_t)term->label_length) == 0;
}

/* `trainable` is an argument of every layer; a merging layer's words by position are points, not arguments. */
static bw_status read_common(bw_context *ctx, bwi_layer *layer, const bwi_term *item, bool *taken)
{
    static const bwi_argument trainable = {"trainable", NULL, BWI_BOOL, NULL, 0, 0, NULL};
    *taken = (layer->row->flags & BWI_LAYER_MERGES) && !item->label;
    if (!labelled(item, "trainable")) {
        return BW_OK;
    }
    bwi_argument_value value;
    bwi_term one = {.items = (bwi_term[]){*item}, .count = 1, .column = item->column};
    *taken = true;
    bw_status status = bwi_arguments_read(ctx, "model", &one, &trainable, 1, &value);
    layer->trainable = value.flag;
    return status;
}

bw_status bwi_layer_read(const bw_model *model, bwi_layer *layer, const bwi_term *term)
{
    bw_context *ctx = model->ctx;
    const bwi_layer_row *row = bwi_layer_row_find(term->text, term->length);
    if (!row) {
        return bwi_layer_row_refuse(ctx, term);
    }
    *layer = (bwi_layer){.row = row, .trainable = true};
    name_layer(model, layer);
    bwi_term own = *term;
    own.items = bwi_allocate(ctx, (size_t)term->count, sizeof *own.items);
    own.count = 0;
    bw_status status = own.items ? BW_OK : BW_RESOURCE_EXHAUSTED;
    for (int i = 0; i < term->count && status == BW_OK; i++) {
        bool taken;
        status = read_common(ctx, layer, &term->items[i], &taken);
        if (!taken) {
            own.items[own.count++] = term->items[i];
        }
    }
    if (status == BW_OK) {
        char what[96];
        snprintf(what, sizeof what, "model: %s", row->base_name);
        status = bwi_arguments_read(ctx, what, &own, row->arguments, row->argument_count, layer->values);
    }
    bwi_release(ctx, own.items);
    return status;
}

/* The layer that a point names, looked for from the last: a name may be used again. */
static bool find_point(const bwi_expression *e, int before, int first, const bwi_term *word, int *layer)
{
    for (int t = before - 1; t >= 0; t--) {
        const bwi_term *term = &e->terms[t];
        if (term->label && term->label_length == word->length && memcmp(term->label, word->text, (size_t)word->length) == 0) {
            *layer = t - first;
            return true;
        }
    }
    return false;
}

static bw_status connect(bw_model *model, const bwi_expression *e, int number, int first)
{
    const bwi_term *term = &e->terms[number];
    bwi_layer *layer = &model->layers[model->layer_count];
    layer->inputs = 1;
    layer->input[0] = model->layer_count - 1; /* BWI_FROM_INPUT for the first */
    for (int i = 0; (layer->row->flags & BWI_LAYER_MERGES) && i < term->count; i++) {
        const bwi_term *item = &term->items[i];
        if (item->label) {
            continue;
        }
        if (layer->inputs == BWI_MAX_POINTS || !find_point(e, number, first, item, &layer->input[layer->inputs])) {
            return bwi_fail(model->ctx, BW_INVALID_ARGUMENT, "model: column %d: there is no point '%.*s' before it", item->column,
                            item->length, item->text);
        }
        layer->inputs++;
    }
    return BW_OK;
}

static bw_status read_model(bw_model *model, const char *text)
{
    bwi_expression e;
    bw_status status = bwi_expression_parse(model->ctx, &e, "model", text);
    if (status != BW_OK) {
        return status;
    }
    int first = e.count && bwi_term_is(&e.terms[0], "input") ? 1 : 0;
    if (first) {
        status = read_input(model, &e.terms[0]);
    }
    if (status == BW_OK && e.count == first) {
        status = bwi_fail(model->ctx, BW_INVALID_ARGUMENT, "model: expected at least one layer, found none");
    }
    model->layers = bwi_allocate(model->ctx, (size_t)e.count, sizeof *model->layers);
    if (status == BW_OK && !model->layers) {
        status = BW_RESOURCE_EXHAUSTED;
    }
    for (int i = first; i < e.count && status == BW_OK; i++) {
        status = bwi_layer_read(model, &model->layers[model->layer_count], &e.terms[i]);
        if (status == BW_OK) {
            status = connect(model, &e, i, first);
        }
        model->layer_count += status == BW_OK;
    }
    bwi_expression_free(&e);
    return status;
}

bw_model *bwi_model_open(bw_context *ctx)
{
    bw_model *model = bwi_own(ctx, sizeof *model, destroy);
    if (model) {
        model->ctx = model->graph.ctx = ctx;
        model->input_shape.rank = -1;
    }
    return model;
}

bw_model *bw_model_parse(bw_context *ctx, const char *expression)
{
    bw_model *model = ctx && expression ? bwi_model_open(ctx) : NULL;
    if (!model) {
        return NULL;
    }
    if (read_model(model, expression) != BW_OK) {
        bwi_disown(model);
        return bwi_pass_on(ctx);
    }
    return model;
}
