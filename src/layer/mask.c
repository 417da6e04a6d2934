/*
 * Masks say which positions of a sequence count. An embedding makes one; what a layer does with its input's mask follows Keras, and
 * is stated in the layer's row. Losses, metrics and GlobalAveragePooling1D leave out masked positions.
 */
#include "layer/internal.h"

/* At a merging layer, a position counts if it does in any of the inputs; all positions count if an input has no mask. */
static bool join(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int count, bw_node **mask)
{
    bw_node *masks[BWI_MAX_POINTS];
    bool same = true;
    *mask = NULL;
    for (int k = 0; k < count; k++) {
        masks[k] = inputs[k]->mask;
        if (!masks[k]) {
            return true;
        }
        same = same && masks[k] == masks[0];
    }
    *mask = same ? masks[0] : bwi_graph_add(graph, &bwi_op_mask_any, layer->name, NULL, 0, masks, count, NULL, 0);
    return *mask;
}

static bool fits(const bw_node *mask, const bw_node *node)
{
    bwi_shape shape = node->shape;
    shape.ndim--;
    return shape.ndim >= 0 && bwi_shape_equal(&shape, &mask->shape);
}

static bw_node *pass_on(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int count, bw_node *node)
{
    bw_node *mask;
    if (!join(layer, graph, inputs, count, &mask)) {
        return NULL;
    }
    if (mask && !fits(mask, node)) {
        return bwi_fail_build(graph->ctx, BW_UNIMPLEMENTED, "layer %s: masked inputs can only be joined along their last axis",
                              layer->name);
    }
    node->mask = mask;
    return node;
}

/* A layer that does nothing returns its input's node, so dropping the mask requires another node. */
static bw_node *without_mask(const bwi_layer *layer, bwi_graph *graph, bw_node *node)
{
    bwi_reshape_attributes a = {.shape = node->shape};
    return node->mask ? bwi_graph_add(graph, &bwi_op_reshape, layer->name, &a, sizeof a, &node, 1, NULL, 0) : node;
}

bw_node *bwi_layer_mask(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int count, bw_node *node)
{
    unsigned flags = layer->row->flags;
    bool masked = false;
    for (int k = 0; k < count; k++) {
        masked = masked || inputs[k]->mask;
    }
    if (!node || !masked || (flags & BWI_LAYER_TAKES_MASK)) {
        return node;
    }
    if (flags & BWI_LAYER_REFUSES_MASK) {
        return bwi_fail_build(graph->ctx, BW_UNIMPLEMENTED, "layer %s: %s of a masked input is not supported", layer->name,
                              layer->row->class_name);
    }
    if (flags & BWI_LAYER_PASSES_MASK) {
        return pass_on(layer, graph, inputs, count, node);
    }
    bwi_log(graph->ctx, BW_LOG_WARNING, "layer %s: %s drops the mask of its input, as in Keras", layer->name,
            layer->row->class_name);
    return without_mask(layer, graph, node);
}
