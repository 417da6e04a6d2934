/* reshape: the same numbers under another shape, in Keras's (channels-last) order: a view. */
#include "op/op.h"

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    const bwi_reshape_attributes *a = node->attributes;
    int64_t count = bwi_shape_count(&node->input[0]->shape);
    if (a->shape.ndim < 0) {
        node->shape = (bwi_shape){.ndim = 1, .extent = {count}};
    } else {
        node->shape = a->shape;
    }
    node->dtype = node->input[0]->dtype;
    if (bwi_shape_count(&node->shape) != count) {
        char from[160], to[160];
        return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: cannot reshape %s into %s", node->name,
                        bwi_format_shape(from, node->input[0]->shape.ndim, node->input[0]->shape.extent),
                        bwi_format_shape(to, node->shape.ndim, node->shape.extent));
    }
    return BW_OK;
}

const bwi_op bwi_op_reshape = {.name = "reshape", .flags = BWI_OP_VIEW, .layout = BWI_LAYOUT_CHANNELS_LAST, .shape = shape};
