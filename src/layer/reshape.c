/*
 * Flatten, Reshape and Permute keep the numbers, in Keras's order (channels last), and change the shape; RepeatVector repeats a
 * vector along a new first axis, and Identity does nothing.
 */
#include "layer/internal.h"

static bw_node *build_flatten(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    bw_node *x = inputs[0];
    bwi_reshape_attributes a = {.shape = {.ndim = -1}};
    return bwi_graph_add(graph, &bwi_op_reshape, layer->name, &a, sizeof a, &x, 1, NULL, 0);
}

const bwi_layer_row bwi_layer_flatten = {"Flatten", "flatten", "flatten", NULL, 0, build_flatten, false};

enum { SHAPE, SHAPE_COUNT };

static const bwi_argument reshape_arguments[SHAPE_COUNT] = {[SHAPE] = {"target_shape", NULL, BWI_INTS, NULL, -1, 1e9, NULL}};

/* Multiplies all extents that are given; at most one may be open (-1). 0: the shape is impossible. */
static int64_t given_elements(const bwi_argument_value *v, int *open)
{
    int64_t total = 1;
    *open = -1;
    for (int i = 0; i < v->count; i++) {
        if (v->integers[i] == -1 && *open < 0) {
            *open = i;
        } else if (v->integers[i] < 1 || __builtin_mul_overflow(total, v->integers[i], &total)) {
            return 0;
        }
    }
    return total;
}

static bw_node *build_reshape(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    bw_node *x = inputs[0];
    const bwi_argument_value *v = &layer->values[SHAPE];
    int open;
    int64_t count = bwi_shape_count(&x->shape), given = given_elements(v, &open);
    bool fits = given > 0 && (open < 0 ? count == given : count % given == 0);
    if (v->count < 1 || v->count >= BW_MAX_NDIM || !fits) {
        char from[160], to[160];
        return bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: target_shape: cannot reshape %s into %s", layer->name,
                              bwi_format_shape(from, x->shape.ndim, x->shape.extent), bwi_format_shape(to, v->count, v->integers));
    }
    bwi_reshape_attributes a = {.shape = {.ndim = v->count}};
    for (int i = 0; i < v->count; i++) {
        a.shape.extent[i] = i == open ? count / given : v->integers[i];
    }
    return bwi_graph_add(graph, &bwi_op_reshape, layer->name, &a, sizeof a, &x, 1, NULL, 0);
}

const bwi_layer_row bwi_layer_reshape = {"Reshape", "reshape", "reshape", reshape_arguments, SHAPE_COUNT, build_reshape, false};

enum { DIMS, DIMS_COUNT };

static const bwi_argument permute_arguments[DIMS_COUNT] = {[DIMS] = {"dims", NULL, BWI_INTS, NULL, 1, BW_MAX_NDIM, NULL}};

static bw_node *build_permute(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    bw_node *x = inputs[0];
    const bwi_argument_value *v = &layer->values[DIMS];
    bwi_permute_attributes a = {.ndim = v->count};
    for (int i = 0; i < v->count; i++) {
        a.axes[i] = (int)v->integers[i] - 1; /* Keras's axis 0 is the batch */
    }
    return bwi_graph_add(graph, &bwi_op_permute, layer->name, &a, sizeof a, &x, 1, NULL, 0);
}

const bwi_layer_row bwi_layer_permute = {"Permute", "permute", "permute", permute_arguments, DIMS_COUNT, build_permute, false};

static bw_node *build_identity(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)layer;
    (void)graph;
    (void)input_count;
    return inputs[0];
}

const bwi_layer_row bwi_layer_identity = {"Identity", "identity", "identity", NULL, 0, build_identity, BWI_LAYER_PASSES_MASK};

enum { N, REPEAT_COUNT };

static const bwi_argument repeat_arguments[REPEAT_COUNT] = {[N] = {"n", NULL, BWI_INT, NULL, 1, 1e6, NULL}};

static bw_node *build_repeat(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    bw_node *x = inputs[0];
    if (x->shape.ndim != 1) {
        char text[160];
        return bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: expected a vector, got %s", layer->name,
                              bwi_format_shape(text, x->shape.ndim, x->shape.extent));
    }
    bwi_shape shape = {.ndim = 2, .extent = {layer->values[N].integer, x->shape.extent[0]}};
    return bwi_op_broadcast_to(graph, layer->name, x, &shape);
}

const bwi_layer_row bwi_layer_repeat_vector = {
    "RepeatVector", "repeat_vector", "repeat_vector", repeat_arguments, REPEAT_COUNT, build_repeat, false};
