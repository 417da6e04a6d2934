/*
 * The front part of a model: its layers for text and categories (src/front). They are fitted to the training part before anything
 * else, since the lengths of their vectors may follow from it, in one pass over the samples, by every rank for itself. Then samples
 * are vectorised while they are gathered: fit, evaluate and predict put a stage on top of the dataset that they are given, so that
 * sessions and plans know numbers only.
 */
#include "train/internal.h"

#include <string.h>

static bool is_text(const bw_dataset *dataset, int field)
{
    return bwi_dataset_field(dataset, field)->dtype == BW_TEXT;
}

/* Finds a field by name among the inputs that are text, or among the others, or the only one of them. */
static int find_field(const bw_dataset *dataset, const char *name, bool text)
{
    int only = -1, count = 0;
    for (int f = 0; f < bwi_dataset_fields(dataset); f++) {
        const bwi_field *field = bwi_dataset_field(dataset, f);
        if (field->role != BWI_ROLE_INPUT || is_text(dataset, f) != text) {
            continue;
        }
        if (name[0] && strcmp(field->name, name) == 0) {
            return f;
        }
        count++;
        only = f;
    }
    return count == 1 ? only : -1;
}

/* The field that a front takes for the model's input `k`. The input of an expression is text if its layer can take text and the
 * data has some. */
static bw_status bind_input(const bw_model *model, const bw_dataset *dataset, const bwi_layer *layer, int k, int *field)
{
    const bw_node *node = k < model->input_count ? model->inputs[k] : NULL;
    const bwi_input_attributes *a = node ? node->attributes : NULL;
    const char *name = a && model->by_calls ? a->name : "";
    bwi_front_kind kind = bwi_front_settings_of(layer->front)->kind;
    bool text = kind == BWI_FRONT_TEXT || kind == BWI_FRONT_STRINGS;
    if (kind == BWI_FRONT_HASHING || kind == BWI_FRONT_CROSSING) {
        text = model->by_calls && node ? node->dtype == BW_TEXT : find_field(dataset, name, true) >= 0;
    }
    *field = find_field(dataset, name, text);
    if (*field >= 0) {
        return BW_OK;
    }
    return bwi_fail(model->ctx, BW_INVALID_ARGUMENT, "layer %s: the data has no input%s%s that is %s%s", layer->name,
                    name[0] ? " " : "", name, text ? "text" : "numbers",
                    text ? "; of a table, name the columns of text (--text, bw_read_options.text)" : "");
}

static bwi_shape shape_of(const bw_dataset *dataset, int field)
{
    const bwi_field *f = bwi_dataset_field(dataset, field);
    bwi_shape shape = {.ndim = f->ndim};
    for (int i = 0; i < f->ndim; i++) {
        shape.extent[i] = f->shape[i];
    }
    return shape;
}

/* Describes what a front makes, of fields or of what earlier ones make. A model from an expression learns what its input is. */
static bw_status describe(bw_model *model, const bw_dataset *dataset, const bwi_front_use *use, bwi_front_field *fields, int number)
{
    const bwi_layer *layer = &model->layers[use->layer];
    bwi_front_field *made = &fields[number];
    bwi_shape in = {.ndim = 0}, out;
    *made = (bwi_front_field){.front = layer->front, .inputs = use->inputs};
    memcpy(made->name, layer->name, sizeof made->name);
    for (int k = 0; k < use->inputs; k++) {
        int field = -1;
        bw_status status = use->input[k] < 0 ? BW_OK : bind_input(model, dataset, layer, use->input[k], &field);
        if (status != BW_OK) {
            return status;
        }
        made->input[k] = use->input[k] < 0 ? use->input[k] : field;
        bwi_shape shape;
        if (use->input[k] < 0) {
            const bwi_front_field *other = &fields[-1 - use->input[k]];
            shape.ndim = other->ndim;
            memcpy(shape.extent, other->shape, sizeof shape.extent);
        } else {
            shape = shape_of(dataset, field);
            if (!model->by_calls && !bwi_model_built(model) && model->output_count == 0) {
                model->input_shape = shape;
                model->input_text = is_text(dataset, field);
            }
        }
        in = k == 0 ? shape : in;
        if (bwi_shape_count(&shape) != bwi_shape_count(&in)) {
            return bwi_fail(model->ctx, BW_INVALID_ARGUMENT, "layer %s: its inputs differ in their number of values", layer->name);
        }
    }
    if (!bwi_front_shape(model->ctx, layer, &in, &out)) {
        return bwi_pending(model->ctx);
    }
    made->dtype = bwi_front_settings_of(layer->front)->mode == BWI_MODE_INT ? BW_I32 : BW_F32;
    made->ndim = out.ndim;
    memcpy(made->shape, out.extent, sizeof made->shape);
    return BW_OK;
}

bw_status bwi_front_fit(bw_model *model, bw_dataset *dataset, bool again)
{
    bwi_front_use uses[BWI_MOST_FRONTS];
    int count = 0;
    if (!bwi_model_has_fronts(model)) {
        return BW_OK;
    }
    bw_status status = bwi_model_fronts(model, uses, &count);
    for (int i = 0; i < count && status == BW_OK; i++) {
        const bwi_layer *layer = &model->layers[uses[i].layer];
        int field = -1;
        if (bwi_front_is_given(layer->front) || (bwi_front_is_fitted(layer->front) && !again)) {
            continue;
        }
        if (bwi_model_built(model) && bwi_front_settings_of(layer->front)->mode != BWI_MODE_INT) {
            return bwi_fail(model->ctx, BW_INVALID_ARGUMENT,
                            "layer %s: it cannot be fitted once the model is built, since the length of its vectors would change",
                            layer->name);
        }
        status = uses[i].input[0] < 0
                     ? bwi_fail(model->ctx, BW_UNIMPLEMENTED, "layer %s: it is fitted to an input of the model only", layer->name)
                     : bind_input(model, dataset, layer, uses[i].input[0], &field);
        if (status == BW_OK) {
            status = bwi_dataset_fit_front(dataset, field, layer->front, layer->name);
        }
    }
    return status;
}

/* A dataset that has inputs by the names of these layers was vectorised before. */
bw_status bwi_front_data(bw_model *model, bw_dataset *dataset, bw_dataset **made)
{
    bwi_front_use uses[BWI_MOST_FRONTS];
    bwi_front_field *fields;
    int count = 0;
    *made = NULL;
    if (!bwi_model_has_fronts(model)) {
        return BW_OK;
    }
    bw_status status = bwi_model_fronts(model, uses, &count);
    for (int i = 0; i < count && status == BW_OK; i++) {
        const bwi_layer *layer = &model->layers[uses[i].layer];
        if (!bwi_front_is_fitted(layer->front)) {
            status = bwi_fail(model->ctx, BW_INVALID_ARGUMENT, "layer %s is not fitted: bw_adapt or bw_fit fits it to samples",
                              layer->name);
        }
        if (bwi_dataset_find_named(dataset, layer->name)) {
            return BW_OK; /* vectorised already */
        }
    }
    fields = status == BW_OK ? bwi_allocate(model->ctx, BWI_MOST_FRONTS, sizeof *fields) : NULL;
    if (status == BW_OK && !fields) {
        status = BW_RESOURCE_EXHAUSTED;
    }
    for (int i = 0; i < count && status == BW_OK; i++) {
        status = describe(model, dataset, &uses[i], fields, i);
    }
    if (status == BW_OK) {
        *made = bwi_dataset_vectorized(dataset, fields, count);
        status = *made ? BW_OK : bwi_pending(model->ctx);
    }
    bwi_release(model->ctx, fields);
    return status;
}

bw_status bwi_front_prepare(bw_model *model, bw_dataset *dataset, bw_dataset **made)
{
    *made = NULL;
    bw_status status = bwi_front_fit(model, dataset, false);
    return status == BW_OK ? bwi_front_data(model, dataset, made) : status;
}

uint64_t bwi_front_missing(const bw_model *model)
{
    uint64_t missing = 0;
    for (int i = 0, k = 0; i < model->layer_count && k < 64; i++) {
        const bwi_front *front = model->layers[i].front;
        missing |= front && !bwi_front_is_fitted(front) ? (uint64_t)1 << k : 0;
        k += front ? 1 : 0;
    }
    return missing;
}

void bwi_front_forget(bw_model *model, uint64_t missing)
{
    for (int i = 0, k = 0; i < model->layer_count && k < 64; i++) {
        bwi_front *front = model->layers[i].front;
        if (front && (missing >> k & 1)) {
            bwi_front_clear(front);
        }
        k += front ? 1 : 0;
    }
}

bw_dataset *bw_vectorize(bw_dataset *dataset, bw_model *model)
{
    bw_dataset *made = NULL;
    if (!dataset || !model) {
        return NULL;
    }
    bw_status status = bwi_front_data(model, dataset, &made);
    if (status != BW_OK) {
        bw_dataset_free(dataset);
        return bwi_pass_on(model->ctx);
    }
    if (made) {
        bw_dataset_free(dataset);
    }
    return made ? made : dataset;
}
