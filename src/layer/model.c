/* Models: a list of layers from an expression, made into a graph with variables when the input's shape is known. */
#include "layer/internal.h"

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
    bwi_release(model->ctx, model->expression);
    bwi_release(model->ctx, model->name);
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
    bwi_term list = {.items = term->items, .count = term->count, .argument = term->argument, .column = term->column};
    bwi_term one = {.items = &list, .count = 1, .argument = term->argument, .column = term->column};
    bw_status status = bwi_arguments_read(model->ctx, "model: input", &one, &extents, 1, &value);
    if (status == BW_OK && (value.count < 1 || value.count >= BW_MAX_NDIM)) {
        status = bwi_fail_text(model->ctx, BW_INVALID_ARGUMENT, "model", term->argument, term->column,
                               "input: expected 1 to %d extents, got %d", BW_MAX_NDIM - 1, value.count);
    }
    if (status == BW_OK) {
        model->input_shape.ndim = value.count;
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

/* A name of the user's own, as any layer of Keras has one. */
static bw_status read_name(const bw_model *model, bwi_layer *layer, const bwi_term *item)
{
    if (item->called || item->length == 0 || item->count || item->length >= (int)sizeof layer->name) {
        return bwi_fail_text(model->ctx, BW_INVALID_ARGUMENT, "model", item->argument, item->column,
                             "name: expected a word of at most %d characters", (int)sizeof layer->name - 1);
    }
    snprintf(layer->name, sizeof layer->name, "%.*s", item->length, item->text);
    for (int i = 0; i < model->layer_count; i++) {
        if (strcmp(model->layers[i].name, layer->name) == 0) {
            return bwi_fail_text(model->ctx, BW_INVALID_ARGUMENT, "model", item->argument, item->column,
                                 "there is already a layer %s", layer->name);
        }
    }
    return BW_OK;
}

/* `trainable` and `name` are arguments of every layer; a merging layer's words by position are points, not arguments. */
static bw_status read_common(const bw_model *model, bwi_layer *layer, const bwi_term *item, bool *taken)
{
    static const bwi_argument trainable = {"trainable", NULL, BWI_BOOL, NULL, 0, 0, NULL};
    *taken = (layer->row->flags & BWI_LAYER_MERGES) && !item->label;
    if (labelled(item, "name")) {
        *taken = true;
        return read_name(model, layer, item);
    }
    if (!labelled(item, "trainable")) {
        return BW_OK;
    }
    bwi_argument_value value;
    bwi_term one = {.items = (bwi_term[]){*item}, .count = 1, .argument = item->argument, .column = item->column};
    *taken = true;
    bw_status status = bwi_arguments_read(model->ctx, "model", &one, &trainable, 1, &value);
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
        status = read_common(model, layer, &term->items[i], &taken);
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

/* ---- Points ---- */

/* An expression that is being read: what each of its terms stands for, and what the next layer takes. */
typedef struct reading {
    bw_model *model;
    bwi_expression e;
    int *layer;  /* of each term; BWI_FROM_INPUT: the model's input */
    int current; /* layer */
} reading;

/* The layer that a point names, looked for from the last: a name may be used again. `input` is always there. */
static bw_status find_point(const reading *r, int before, const bwi_term *word, int *layer)
{
    for (int t = before - 1; t >= 0 && !word->label; t--) {
        const bwi_term *term = &r->e.terms[t];
        if (term->label && term->label_length == word->length && memcmp(term->label, word->text, (size_t)word->length) == 0) {
            *layer = r->layer[t];
            return BW_OK;
        }
    }
    if (bwi_term_is(word, "input") && !word->called && !word->label) {
        *layer = BWI_FROM_INPUT;
        return BW_OK;
    }
    return bwi_fail_text(r->model->ctx, BW_INVALID_ARGUMENT, "model", word->argument, word->column,
                         "there is no point '%.*s' before it", word->length, word->text);
}

/* from(a): what follows takes what stands at the point. */
static bw_status read_from(reading *r, int number)
{
    const bwi_term *term = &r->e.terms[number];
    if (term->count != 1) {
        return bwi_fail_text(r->model->ctx, BW_INVALID_ARGUMENT, "model", term->argument, term->column,
                             "from: expected one point, as in from(a)");
    }
    return find_point(r, number, &term->items[0], &r->current);
}

static bw_status connect(reading *r, int number)
{
    const bwi_term *term = &r->e.terms[number];
    bwi_layer *layer = &r->model->layers[r->model->layer_count];
    bw_status status = BW_OK;
    layer->inputs = 1;
    layer->input[0] = r->current;
    for (int i = 0; (layer->row->flags & BWI_LAYER_MERGES) && i < term->count && status == BW_OK; i++) {
        const bwi_term *item = &term->items[i];
        if (item->label) {
            continue;
        }
        if (layer->inputs == BWI_MAX_POINTS) {
            return bwi_fail_text(r->model->ctx, BW_INVALID_ARGUMENT, "model", item->argument, item->column,
                                 "a layer takes at most %d inputs", BWI_MAX_POINTS);
        }
        status = find_point(r, number, item, &layer->input[layer->inputs++]);
    }
    return status;
}

/* What a layer gives must be taken by another, or be the output: from() can leave it behind. */
static bw_status check_ends(const reading *r)
{
    const bw_model *model = r->model;
    for (int t = 0; t < r->e.count; t++) {
        bool taken = r->layer[t] == BWI_FROM_INPUT || r->layer[t] == model->layer_count - 1;
        for (int i = r->layer[t] + 1; i < model->layer_count && !taken; i++) {
            for (int k = 0; k < model->layers[i].inputs; k++) {
                taken = taken || model->layers[i].input[k] == r->layer[t];
            }
        }
        if (!taken) {
            return bwi_fail_text(model->ctx, BW_INVALID_ARGUMENT, "model", r->e.terms[t].argument, r->e.terms[t].column,
                                 "the output of %s is not used", model->layers[r->layer[t]].name);
        }
    }
    return BW_OK;
}

static bw_status read_term(reading *r, int number)
{
    bw_model *model = r->model;
    const bwi_term *term = &r->e.terms[number];
    bw_status status;
    if (number == 0 && bwi_term_is(term, "input")) {
        status = read_input(model, term);
    } else if (bwi_term_is(term, "from")) {
        status = read_from(r, number);
    } else {
        status = bwi_layer_read(model, &model->layers[model->layer_count], term);
        if (status == BW_OK) {
            status = connect(r, number);
        }
        if (status == BW_OK) {
            r->current = model->layer_count++;
        }
    }
    r->layer[number] = r->current;
    return status;
}

static bw_status read_terms(reading *r)
{
    bw_model *model = r->model;
    model->layers = bwi_allocate(model->ctx, (size_t)r->e.count, sizeof *model->layers);
    r->layer = bwi_allocate(model->ctx, (size_t)r->e.count, sizeof *r->layer);
    bw_status status = model->layers && r->layer ? BW_OK : BW_RESOURCE_EXHAUSTED;
    for (int i = 0; i < r->e.count && status == BW_OK; i++) {
        status = read_term(r, i);
    }
    if (status == BW_OK && model->layer_count == 0) {
        status = bwi_fail(model->ctx, BW_INVALID_ARGUMENT, "model: expected at least one layer, found none");
    }
    return status == BW_OK ? check_ends(r) : status;
}

static bw_status read_model(bw_model *model, const char *text)
{
    reading r = {.model = model, .current = BWI_FROM_INPUT};
    bw_status status = bwi_expression_parse(model->ctx, &r.e, "model", text);
    if (status == BW_OK) {
        status = read_terms(&r);
        bwi_release(model->ctx, r.layer);
        bwi_expression_free(&r.e);
    }
    return status;
}

bw_model *bwi_model_open(bw_context *ctx)
{
    bw_model *model = bwi_own(ctx, sizeof *model, destroy);
    if (model) {
        model->ctx = model->graph.ctx = ctx;
        model->input_shape.ndim = -1;
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
