/*
 * Pooling, padding, cropping and upsampling of volumes (depth, height, width, channels), such as the frames of a video. Each goes
 * axis by axis, so two nodes on images do it: one that looks at the width alone, with all rows of all frames as the height, and one
 * that looks at depth and height, with whole rows as channels. Maxima look at the width first, so that the first of equals in the
 * order of memory wins, as in Keras.
 */
#include "layer/internal.h"

enum { POOL_SIZE, STRIDES, PADDING, POOL_COUNT };
enum { AMOUNT, COUNT };
enum { KEEPDIMS, GLOBAL_COUNT };

static const bwi_argument pool_arguments[POOL_COUNT] = {
    [POOL_SIZE] = {"pool_size", NULL, BWI_INTS, "2", 1, 1e4, NULL},
    [STRIDES] = {"strides", NULL, BWI_INTS, "", 1, 1e4, NULL},
    [PADDING] = {"padding", NULL, BWI_TEXT, "valid", 0, 0, "valid same"},
};
static const bwi_argument average_arguments[POOL_COUNT] = {
    [POOL_SIZE] = {"pool_size", NULL, BWI_INTS, NULL, 1, 1e4, NULL},
    [STRIDES] = {"strides", NULL, BWI_INTS, "", 1, 1e4, NULL},
    [PADDING] = {"padding", NULL, BWI_TEXT, "valid", 0, 0, "valid same"},
};
static const bwi_argument padding_arguments[COUNT] = {[AMOUNT] = {"padding", NULL, BWI_INTS, "1", 0, 1e6, NULL}};
static const bwi_argument cropping_arguments[COUNT] = {[AMOUNT] = {"cropping", NULL, BWI_INTS, "1", 0, 1e6, NULL}};
static const bwi_argument up_arguments[COUNT] = {[AMOUNT] = {"size", NULL, BWI_INTS, "2", 1, 1e4, NULL}};
static const bwi_argument global_arguments[GLOBAL_COUNT] = {[KEEPDIMS] = {"keepdims", NULL, BWI_BOOL, "false", 0, 0, NULL}};

/* One node of an op on images, which changes the width of a volume. */
static bw_node *along_width(const bwi_layer *layer, bwi_graph *graph, bw_node *x, const bwi_op *op, const void *attributes,
                            size_t bytes)
{
    if (!x) {
        return NULL;
    }
    const int64_t *e = x->shape.extent;
    bwi_shape rows = {.ndim = 3, .extent = {e[0] * e[1], e[2], e[3]}}, volume = x->shape;
    bw_node *node = bwi_compose_reshape(graph, layer->name, x, &rows);
    node = bwi_graph_add(graph, op, layer->name, attributes, bytes, &node, 1, NULL, 0);
    if (node) {
        volume.extent[2] = node->shape.extent[1];
    }
    return bwi_compose_reshape(graph, layer->name, node, &volume);
}

/* One node of an op on images, which changes the depth and the height of a volume. */
static bw_node *along_depth(const bwi_layer *layer, bwi_graph *graph, bw_node *x, const bwi_op *op, const void *attributes,
                            size_t bytes)
{
    if (!x) {
        return NULL;
    }
    const int64_t *e = x->shape.extent;
    bwi_shape planes = {.ndim = 3, .extent = {e[0], e[1], e[2] * e[3]}}, volume = x->shape;
    bw_node *node = bwi_compose_reshape(graph, layer->name, x, &planes);
    node = bwi_graph_add(graph, op, layer->name, attributes, bytes, &node, 1, NULL, 0);
    if (node) {
        volume.extent[0] = node->shape.extent[0];
        volume.extent[1] = node->shape.extent[1];
    }
    return bwi_compose_reshape(graph, layer->name, node, &volume);
}

/* ---- Pooling ---- */

static bw_node *pool(const bwi_layer *layer, bwi_graph *graph, bw_node *x, const bwi_op *op)
{
    int64_t size[3], strides[3]; /* height, width, depth */
    bool same = layer->values[PADDING].text[0] == 's';
    if (!bwi_layer_sizes(graph, layer, 4, POOL_SIZE, NULL, size) || !bwi_layer_sizes(graph, layer, 4, STRIDES, size, strides)) {
        return NULL;
    }
    bwi_pool2d_attributes width = {.window = {1, size[1]}, .strides = {1, strides[1]}, .same = same};
    bwi_pool2d_attributes depth = {.window = {size[2], size[0]}, .strides = {strides[2], strides[0]}, .same = same};
    bw_node *node = along_width(layer, graph, x, op, &width, sizeof width);
    return along_depth(layer, graph, node, op, &depth, sizeof depth);
}

static bw_node *build_max(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    return pool(layer, graph, inputs[0], &bwi_op_maxpool2d);
}

static bw_node *build_average(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    return pool(layer, graph, inputs[0], &bwi_op_avgpool2d);
}

/* One window covers everything, so all positions may stand in a row. */
static bw_node *pool_all(const bwi_layer *layer, bwi_graph *graph, bw_node *x, const bwi_op *op)
{
    const int64_t *e = x->shape.extent;
    bwi_shape image = {.ndim = 3, .extent = {e[0] * e[1], e[2], e[3]}}, kept = {.ndim = 4, .extent = {1, 1, 1, e[3]}};
    bwi_shape flat = {.ndim = 1, .extent = {e[3]}};
    bwi_pool2d_attributes a = {.window = {e[0] * e[1], e[2]}, .strides = {e[0] * e[1], e[2]}};
    bool average = op == &bwi_op_avgpool2d;
    bw_node *node = bwi_compose_reshape(graph, layer->name, x, &image);
    node = bwi_graph_add(graph, op, layer->name, average ? &a : NULL, average ? sizeof a : 0, &node, 1, NULL, 0);
    return bwi_compose_reshape(graph, layer->name, node, layer->values[KEEPDIMS].flag ? &kept : &flat);
}

static bw_node *build_global_max(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    return pool_all(layer, graph, inputs[0], &bwi_op_global_maxpool);
}

static bw_node *build_global_average(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    return pool_all(layer, graph, inputs[0], &bwi_op_avgpool2d);
}

/* ---- Other extents ---- */

/* Keras accepts one number for all sides, three for depth, height and width, or six: before and after along each. */
static bw_node *border(const bwi_layer *layer, bwi_graph *graph, bw_node *x, int64_t sign)
{
    const bwi_argument_value *v = &layer->values[AMOUNT];
    if (v->count != 1 && v->count != 3 && v->count != 6) {
        return bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT,
                              "layer %s: %s: expected one number, three, or three pairs (before, after), got %d", layer->name,
                              layer->row->arguments[AMOUNT].name, v->count);
    }
    int64_t side[6]; /* of depth, height, width */
    for (int i = 0; i < 6; i++) {
        side[i] = sign * v->integers[v->count == 6 ? i : v->count == 3 ? i / 2 : 0];
    }
    bwi_pad2d_attributes width = {.amount = {{0, 0}, {side[4], side[5]}}};
    bwi_pad2d_attributes depth = {.amount = {{side[0], side[1]}, {side[2], side[3]}}};
    bw_node *node = along_width(layer, graph, x, &bwi_op_pad2d, &width, sizeof width);
    return along_depth(layer, graph, node, &bwi_op_pad2d, &depth, sizeof depth);
}

static bw_node *build_padding(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    return border(layer, graph, inputs[0], 1);
}

static bw_node *build_cropping(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    return border(layer, graph, inputs[0], -1);
}

static bw_node *build_up(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    int64_t size[3]; /* height, width, depth */
    if (!bwi_layer_sizes(graph, layer, 4, AMOUNT, NULL, size)) {
        return NULL;
    }
    bwi_upsample2d_attributes width = {.size = {1, size[1]}}, depth = {.size = {size[2], size[0]}};
    bw_node *node = along_width(layer, graph, inputs[0], &bwi_op_upsample2d, &width, sizeof width);
    return along_depth(layer, graph, node, &bwi_op_upsample2d, &depth, sizeof depth);
}

const bwi_layer_row bwi_layer_maxpool3d = {"MaxPooling3D", "max_pooling3d", "maxpool3d max_pooling3d", pool_arguments,
                                           POOL_COUNT,     build_max,       BWI_LAYER_VOLUME};
const bwi_layer_row bwi_layer_avgpool3d = {"AveragePooling3D", "average_pooling3d", "avgpool3d average_pooling3d",
                                           average_arguments,  POOL_COUNT,          build_average,
                                           BWI_LAYER_VOLUME};
const bwi_layer_row bwi_layer_global_maxpool3d = {
    "GlobalMaxPooling3D", "global_max_pooling3d", "global_maxpool3d global_max_pooling3d", global_arguments, GLOBAL_COUNT,
    build_global_max,     BWI_LAYER_VOLUME};
const bwi_layer_row bwi_layer_global_avgpool3d = {"GlobalAveragePooling3D",
                                                  "global_average_pooling3d",
                                                  "global_avgpool3d global_average_pooling3d",
                                                  global_arguments,
                                                  GLOBAL_COUNT,
                                                  build_global_average,
                                                  BWI_LAYER_VOLUME};
const bwi_layer_row bwi_layer_zero_padding3d = {"ZeroPadding3D", "zero_padding3d", "zero_padding3d", padding_arguments,
                                                COUNT,           build_padding,    BWI_LAYER_VOLUME};
const bwi_layer_row bwi_layer_cropping3d = {"Cropping3D", "cropping3d",   "cropping3d",    cropping_arguments,
                                            COUNT,        build_cropping, BWI_LAYER_VOLUME};
const bwi_layer_row bwi_layer_upsampling3d = {"UpSampling3D", "up_sampling3d", "upsampling3d up_sampling3d", up_arguments, COUNT,
                                              build_up,       BWI_LAYER_VOLUME};
