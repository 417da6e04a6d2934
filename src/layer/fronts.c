/* Finds the layers for text and categories of a model, and what they take: from the list of layers, or from the uses of a model
 * made by calls. */
#include "layer/internal.h"

bool bwi_model_has_fronts(const bw_model *model)
{
    bool found = false;
    for (int i = 0; i < model->layer_count && !found; i++) {
        found = model->layers[i].front;
    }
    return found;
}

static bw_status refuse(const bw_model *model, int layer)
{
    return bwi_fail(model->ctx, BW_UNIMPLEMENTED, "layer %s: it takes inputs of the model only, not what layers compute",
                    model->layers[layer].name);
}

static int front_of(const bwi_front_use *uses, int count, int layer)
{
    for (int k = 0; k < count; k++) {
        if (uses[k].layer == layer) {
            return k;
        }
    }
    return -1;
}

/* What comes from nowhere, a layer that computes, is refused. */
static bw_status add(const bw_model *model, bwi_front_use *uses, int *count, int layer, const int *from, int inputs)
{
    if (*count == BWI_MOST_FRONTS) {
        return bwi_fail(model->ctx, BW_INVALID_ARGUMENT, "a model has at most %d layers for text and categories", BWI_MOST_FRONTS);
    }
    bwi_front_use *use = &uses[*count];
    *use = (bwi_front_use){.layer = layer, .inputs = inputs};
    for (int k = 0; k < inputs; k++) {
        int front = from[k] < 0 ? front_of(uses, *count, -1 - from[k]) : 0;
        if (front < 0) {
            return refuse(model, layer);
        }
        use->input[k] = from[k] < 0 ? -1 - front : from[k];
    }
    ++*count;
    return BW_OK;
}

/* The number of the model's input that a use is; layers are -1 - layer. */
static int source_of(const bw_model *model, int use)
{
    if (use < 0) {
        return -1 - model->layer_count;
    }
    if (model->uses[use].layer >= 0) {
        return -1 - model->uses[use].layer;
    }
    for (int k = 0; k < model->input_count; k++) {
        if (model->inputs[k] == model->uses[use].node) {
            return k;
        }
    }
    return -1 - model->layer_count;
}

bw_status bwi_model_fronts(const bw_model *model, bwi_front_use uses[BWI_MOST_FRONTS], int *count)
{
    int from[BWI_MAX_POINTS];
    bw_status status = BW_OK;
    *count = 0;
    for (int i = 0; i < model->layer_count && status == BW_OK && !model->by_calls; i++) {
        const bwi_layer *layer = &model->layers[i];
        for (int k = 0; k < layer->inputs; k++) {
            from[k] = layer->input[k] == BWI_FROM_INPUT ? 0 : -1 - layer->input[k];
        }
        status = layer->front ? add(model, uses, count, i, from, layer->inputs) : BW_OK;
    }
    for (int u = 0; u < model->use_count && status == BW_OK && model->by_calls; u++) {
        const bwi_use *use = &model->uses[u];
        if (use->layer < 0 || !model->layers[use->layer].front) {
            continue;
        }
        for (int k = 0; k < use->inputs; k++) {
            from[k] = source_of(model, use->input[k]);
        }
        status = add(model, uses, count, use->layer, from, use->inputs);
    }
    return status;
}
