/* MaxPooling1D, MaxPooling2D, AveragePooling1D, AveragePooling2D. Padding is never a maximum, and does not count in an average. */
#include "layer/internal.h"

enum { POOL_SIZE, STRIDES, PADDING, COUNT };

/* clang-format off */
#define ARGUMENTS(size)                                              \
    [POOL_SIZE] = {"pool_size", NULL, BWI_INTS, size, 1, 1e4, NULL}, \
    [STRIDES] = {"strides", NULL, BWI_INTS, "", 1, 1e4, NULL},       \
    [PADDING] = {"padding", NULL, BWI_TEXT, "valid", 0, 0, "valid same"}
/* clang-format on */

/* Strides default to the size. */
static const bwi_argument max_arguments[COUNT] = {ARGUMENTS("2")};
static const bwi_argument average_arguments[COUNT] = {ARGUMENTS(NULL)};

static bw_node *build(const bwi_layer *layer, bwi_graph *graph, bw_node *x, const bwi_op *op)
{
    int ndim = x->shape.ndim;
    bwi_pool2d_attributes a = {.same = layer->values[PADDING].text[0] == 's'};
    if (!bwi_layer_sizes(graph, layer, ndim, POOL_SIZE, NULL, a.window) ||
        !bwi_layer_sizes(graph, layer, ndim, STRIDES, a.window, a.strides)) {
        return NULL;
    }
    return bwi_graph_add(graph, op, layer->name, &a, sizeof a, &x, 1, NULL, 0);
}

static bw_node *build_max(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    return build(layer, graph, inputs[0], &bwi_op_maxpool2d);
}

static bw_node *build_average(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    return build(layer, graph, inputs[0], &bwi_op_avgpool2d);
}

const bwi_layer_row bwi_layer_maxpool1d = {"MaxPooling1D", "max_pooling1d", "maxpool1d max_pooling1d", max_arguments, COUNT,
                                           build_max,      BWI_LAYER_LINE};
const bwi_layer_row bwi_layer_maxpool2d = {"MaxPooling2D", "max_pooling2d", "maxpool2d max_pooling2d", max_arguments, COUNT,
                                           build_max,      BWI_LAYER_IMAGE};
const bwi_layer_row bwi_layer_avgpool1d = {
    "AveragePooling1D", "average_pooling1d", "avgpool1d average_pooling1d", average_arguments, COUNT,
    build_average,      BWI_LAYER_LINE};
const bwi_layer_row bwi_layer_avgpool2d = {
    "AveragePooling2D", "average_pooling2d", "avgpool2d average_pooling2d", average_arguments, COUNT,
    build_average,      BWI_LAYER_IMAGE};
