/*
 * AdaptiveAveragePooling and AdaptiveMaxPooling in one, two or three dimensions: the output has the given extents, and place i of n
 * stands for the input from floor(i in / n) up to ceil((i + 1) in / n). Where n divides the extent all windows are alike, and an
 * ordinary pool along that axis computes them; elsewhere each window is cut out, reduced and joined with the others. Axes are
 * pooled one after the other, the last one first.
 */
#include "layer/internal.h"

enum { OUTPUT_SIZE, COUNT };
enum { MOST = 64 }; /* uneven windows along an axis */

static const bwi_argument arguments[COUNT] = {[OUTPUT_SIZE] = {"output_size", NULL, BWI_INTS, NULL, 1, 1e6, NULL}};

/* One window along an axis, reduced to one place. */
static bw_node *window(const bwi_layer *layer, bwi_graph *graph, bw_node *x, int axis, int64_t from, int64_t to, bool max)
{
    bwi_slice_attributes part = {.axis = axis, .start = from, .count = to - from};
    bool named[BW_MAX_NDIM] = {false};
    named[axis] = true;
    bw_node *node = bwi_graph_add(graph, &bwi_op_slice, layer->name, &part, sizeof part, &x, 1, NULL, 0);
    return bwi_compose_reduce(graph, layer->name, node, max ? BWI_REDUCE_MAX : BWI_REDUCE_MEAN, named);
}

/* Windows that are alike: an image whose rows are what lies before the axis, and whose channels are what lies behind it. */
static bw_node *even(const bwi_layer *layer, bwi_graph *graph, bw_node *x, int axis, int64_t count, bool max)
{
    bwi_shape image = {.ndim = 3, .extent = {1, x->shape.extent[axis], 1}}, shape = x->shape;
    for (int i = 0; i < x->shape.ndim; i++) {
        image.extent[i < axis ? 0 : 2] *= i == axis ? 1 : x->shape.extent[i];
    }
    int64_t size = x->shape.extent[axis] / count;
    bwi_pool2d_attributes a = {.window = {1, size}, .strides = {1, size}};
    shape.extent[axis] = count;
    bw_node *node = bwi_compose_reshape(graph, layer->name, x, &image);
    node = bwi_graph_add(graph, max ? &bwi_op_maxpool2d : &bwi_op_avgpool2d, layer->name, &a, sizeof a, &node, 1, NULL, 0);
    return bwi_compose_reshape(graph, layer->name, node, &shape);
}

/* Pools one axis. Ordinary pools of maxima count the elements of a window in a byte. */
static bw_node *along(const bwi_layer *layer, bwi_graph *graph, bw_node *x, int axis, int64_t count, bool max)
{
    int64_t extent = x->shape.extent[axis];
    if (extent == count) {
        return x;
    }
    if (extent % count == 0 && (!max || extent / count <= 255)) {
        return even(layer, graph, x, axis, count, max);
    }
    if (count > MOST) {
        return bwi_fail_build(graph->ctx, BW_UNIMPLEMENTED, "layer %s: output_size: %lld does not divide %lld, and is above %d",
                              layer->name, (long long)count, (long long)extent, MOST);
    }
    bw_node *parts[MOST];
    for (int64_t i = 0; i < count; i++) {
        parts[i] = window(layer, graph, x, axis, i * extent / count, ((i + 1) * extent + count - 1) / count, max);
        if (!parts[i]) {
            return NULL;
        }
    }
    bwi_axis_attributes a = {.axis = axis};
    return count == 1 ? parts[0] : bwi_graph_add(graph, &bwi_op_concatenate, layer->name, &a, sizeof a, parts, (int)count, NULL, 0);
}

static bw_node *build(const bwi_layer *layer, bwi_graph *graph, bw_node *x, bool max)
{
    const bwi_argument_value *v = &layer->values[OUTPUT_SIZE];
    int ndim = x->shape.ndim;
    if (v->count != 1 && v->count != ndim - 1) {
        return bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: output_size: expected one number or %d, got %d",
                              layer->name, ndim - 1, v->count);
    }
    for (int axis = ndim - 2; x && axis >= 0; axis--) {
        x = along(layer, graph, x, axis, v->integers[v->count == 1 ? 0 : axis], max);
    }
    return x;
}

static bw_node *build_average(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    return build(layer, graph, inputs[0], false);
}

static bw_node *build_max(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    return build(layer, graph, inputs[0], true);
}

const bwi_layer_row bwi_layer_adaptive_avgpool1d = {"AdaptiveAveragePooling1D",
                                                    "adaptive_average_pooling1d",
                                                    "adaptive_avgpool1d adaptive_average_pooling1d",
                                                    arguments,
                                                    COUNT,
                                                    build_average,
                                                    BWI_LAYER_LINE};
const bwi_layer_row bwi_layer_adaptive_avgpool2d = {"AdaptiveAveragePooling2D",
                                                    "adaptive_average_pooling2d",
                                                    "adaptive_avgpool2d adaptive_average_pooling2d",
                                                    arguments,
                                                    COUNT,
                                                    build_average,
                                                    BWI_LAYER_IMAGE};
const bwi_layer_row bwi_layer_adaptive_avgpool3d = {"AdaptiveAveragePooling3D",
                                                    "adaptive_average_pooling3d",
                                                    "adaptive_avgpool3d adaptive_average_pooling3d",
                                                    arguments,
                                                    COUNT,
                                                    build_average,
                                                    BWI_LAYER_VOLUME};
const bwi_layer_row bwi_layer_adaptive_maxpool1d = {
    "AdaptiveMaxPooling1D", "adaptive_max_pooling1d", "adaptive_maxpool1d adaptive_max_pooling1d", arguments, COUNT, build_max,
    BWI_LAYER_LINE};
const bwi_layer_row bwi_layer_adaptive_maxpool2d = {
    "AdaptiveMaxPooling2D", "adaptive_max_pooling2d", "adaptive_maxpool2d adaptive_max_pooling2d", arguments, COUNT, build_max,
    BWI_LAYER_IMAGE};
const bwi_layer_row bwi_layer_adaptive_maxpool3d = {
    "AdaptiveMaxPooling3D", "adaptive_max_pooling3d", "adaptive_maxpool3d adaptive_max_pooling3d", arguments, COUNT, build_max,
    BWI_LAYER_VOLUME};
