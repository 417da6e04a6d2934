/* GlobalMaxPooling1D, GlobalMaxPooling2D, GlobalAveragePooling1D, GlobalAveragePooling2D: each channel becomes one number. */
#include "layer/internal.h"

enum { KEEPDIMS, COUNT };

static const bwi_argument arguments[COUNT] = {[KEEPDIMS] = {"keepdims", NULL, BWI_BOOL, "false", 0, 0, NULL}};

static bw_node *without_positions(const bwi_layer *layer, bwi_graph *graph, bw_node *pooled)
{
    if (!pooled || layer->values[KEEPDIMS].flag) {
        return pooled;
    }
    bwi_reshape_attributes flat = {.shape = {.ndim = -1}};
    return bwi_graph_add(graph, &bwi_op_reshape, layer->name, &flat, sizeof flat, &pooled, 1, NULL, 0);
}

static bw_node *build_max(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    return without_positions(layer, graph, bwi_graph_add(graph, &bwi_op_global_maxpool, layer->name, NULL, 0, inputs, 1, NULL, 0));
}

/* The average is that of a single window, which covers the whole image. */
static bw_node *build_average(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    bwi_pool2d_attributes a = {.same = false};
    int64_t channels;
    bwi_shape_image(&inputs[0]->shape, &a.window[0], &a.window[1], &channels);
    a.strides[0] = a.window[0];
    a.strides[1] = a.window[1];
    return without_positions(layer, graph, bwi_graph_add(graph, &bwi_op_avgpool2d, layer->name, &a, sizeof a, inputs, 1, NULL, 0));
}

/* Under a mask, the average includes only the positions that count. */
static bw_node *build_masked(const bwi_layer *layer, bwi_graph *graph, bw_node *x)
{
    bw_node *both[2] = {x, x->mask};
    bw_node *node = bwi_graph_add(graph, &bwi_op_masked_average, layer->name, NULL, 0, both, 2, NULL, 0);
    bwi_reshape_attributes kept = {.shape = {.ndim = 2, .extent = {1, x->shape.extent[1]}}};
    return node && layer->values[KEEPDIMS].flag
               ? bwi_graph_add(graph, &bwi_op_reshape, layer->name, &kept, sizeof kept, &node, 1, NULL, 0)
               : node;
}

static bw_node *build_average_line(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    return inputs[0]->mask ? build_masked(layer, graph, inputs[0]) : build_average(layer, graph, inputs, input_count);
}

const bwi_layer_row bwi_layer_global_maxpool1d = {
    "GlobalMaxPooling1D", "global_max_pooling1d", "global_maxpool1d global_max_pooling1d", arguments, COUNT, build_max,
    BWI_LAYER_LINE};
const bwi_layer_row bwi_layer_global_maxpool2d = {
    "GlobalMaxPooling2D", "global_max_pooling2d", "global_maxpool2d global_max_pooling2d", arguments, COUNT, build_max,
    BWI_LAYER_IMAGE};
const bwi_layer_row bwi_layer_global_avgpool1d = {
    "GlobalAveragePooling1D", "global_average_pooling1d",           "global_avgpool1d global_average_pooling1d", arguments, COUNT,
    build_average_line,       BWI_LAYER_TAKES_MASK | BWI_LAYER_LINE};
const bwi_layer_row bwi_layer_global_avgpool2d = {"GlobalAveragePooling2D",
                                                  "global_average_pooling2d",
                                                  "global_avgpool2d global_average_pooling2d",
                                                  arguments,
                                                  COUNT,
                                                  build_average,
                                                  BWI_LAYER_IMAGE};
