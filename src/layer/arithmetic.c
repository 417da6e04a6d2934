/* Arithmetic by calls: builders of nodes that work element by element, with broadcasting, or over axes. */
#include "layer/layer.h"

/* Broadcasts both nodes to their common shape; false, as a builder's failure, if there is none. */
static bool broadcast(const char *name, bw_node **a, bw_node **b)
{
    bwi_graph *graph = (*a)->graph;
    bwi_shape shape;
    if (graph != (*b)->graph) {
        bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT, "%s: the nodes belong to different models", name);
        return false;
    }
    if (!bwi_shape_broadcast(&(*a)->shape, &(*b)->shape, &shape)) {
        char first[160], second[160];
        bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT, "%s: shapes %s and %s do not fit", name,
                       bwi_format_shape(first, (*a)->shape.ndim, (*a)->shape.extent),
                       bwi_format_shape(second, (*b)->shape.ndim, (*b)->shape.extent));
        return false;
    }
    *a = bwi_op_broadcast_to(graph, name, *a, &shape);
    *b = bwi_op_broadcast_to(graph, name, *b, &shape);
    return *a && *b;
}

static bw_node *sum_of(bw_node *a, bw_node *b, bool subtract)
{
    const char *name = subtract ? "subtract" : "add";
    if (!a || !b || !broadcast(name, &a, &b)) {
        return NULL;
    }
    bwi_add_attributes attributes = {.subtract = subtract, .scale = 1};
    return bwi_graph_add(a->graph, &bwi_op_add, name, &attributes, sizeof attributes, (bw_node *[]){a, b}, 2, NULL, 0);
}

static bw_node *binary(bw_node *a, bw_node *b, bwi_binary_kind kind, const char *name)
{
    if (!a || !b || !broadcast(name, &a, &b)) {
        return NULL;
    }
    bwi_binary_attributes attributes = {.kind = kind};
    return bwi_graph_add(a->graph, &bwi_op_binary, name, &attributes, sizeof attributes, (bw_node *[]){a, b}, 2, NULL, 0);
}

static bw_node *unary(bw_node *x, bwi_unary_kind kind, double a, const char *name)
{
    bwi_unary_attributes attributes = {.kind = kind, .a = (float)a};
    return x ? bwi_graph_add(x->graph, &bwi_op_unary, name, &attributes, sizeof attributes, &x, 1, NULL, 0) : NULL;
}

bw_node *bw_add(bw_node *a, bw_node *b)
{
    return sum_of(a, b, false);
}

bw_node *bw_subtract(bw_node *a, bw_node *b)
{
    return sum_of(a, b, true);
}

bw_node *bw_multiply(bw_node *a, bw_node *b)
{
    return binary(a, b, BWI_MULTIPLY, "multiply");
}

bw_node *bw_divide(bw_node *a, bw_node *b)
{
    return binary(a, b, BWI_DIVIDE, "divide");
}

bw_node *bw_maximum(bw_node *a, bw_node *b)
{
    return binary(a, b, BWI_MAXIMUM, "maximum");
}

bw_node *bw_minimum(bw_node *a, bw_node *b)
{
    return binary(a, b, BWI_MINIMUM, "minimum");
}

bw_node *bw_negate(bw_node *x)
{
    return bw_affine(x, -1, 0);
}

bw_node *bw_abs(bw_node *x)
{
    return unary(x, BWI_ABS, 0, "abs");
}

bw_node *bw_square(bw_node *x)
{
    return unary(x, BWI_SQUARE, 0, "square");
}

bw_node *bw_sqrt(bw_node *x)
{
    return unary(x, BWI_SQRT, 0, "sqrt");
}

bw_node *bw_log(bw_node *x)
{
    return unary(x, BWI_LOG, 0, "log");
}

bw_node *bw_power(bw_node *x, double exponent)
{
    return unary(x, BWI_POW, exponent, "power");
}

bw_node *bw_exp(bw_node *x)
{
    return bw_activation(x, "exponential");
}

bw_node *bw_affine(bw_node *x, double scale, double offset)
{
    bwi_scale_attributes attributes = {.scale = (float)scale, .offset = (float)offset};
    return x ? bwi_graph_add(x->graph, &bwi_op_scale, "affine", &attributes, sizeof attributes, &x, 1, NULL, 0) : NULL;
}

/* ---- Over axes ---- */

/* Finds the axis, counted from 0, or -1 for all of them; false, as a builder's failure, if there is no such axis. */
static bool find_axis(const bw_node *x, int axis, const char *name, int *found)
{
    *found = axis == BW_ALL ? -1 : axis < 0 ? axis + x->shape.ndim : axis;
    if (axis == BW_ALL || (*found >= 0 && *found < x->shape.ndim)) {
        return true;
    }
    char shape[160];
    bwi_fail_build(x->graph->ctx, BW_INVALID_ARGUMENT, "%s: there is no axis %d in %s", name, axis,
                   bwi_format_shape(shape, x->shape.ndim, x->shape.extent));
    return false;
}

static bw_node *reduce(bw_node *x, int axis, bwi_reduce_kind kind, const char *name)
{
    bwi_reduce_attributes attributes = {.kind = kind};
    if (!x || !find_axis(x, axis, name, &attributes.axis)) {
        return NULL;
    }
    const bwi_op *op = kind == BWI_REDUCE_SUM || kind == BWI_REDUCE_MEAN ? &bwi_op_reduce : &bwi_op_reduce_extreme;
    return bwi_graph_add(x->graph, op, name, &attributes, sizeof attributes, &x, 1, NULL, 0);
}

bw_node *bw_sum(bw_node *x, int axis)
{
    return reduce(x, axis, BWI_REDUCE_SUM, "sum");
}

bw_node *bw_mean(bw_node *x, int axis)
{
    return reduce(x, axis, BWI_REDUCE_MEAN, "mean");
}

bw_node *bw_max(bw_node *x, int axis)
{
    return reduce(x, axis, BWI_REDUCE_MAX, "max");
}

bw_node *bw_matmul(bw_node *a, bw_node *b)
{
    if (!a || !b) {
        return NULL;
    }
    if (a->shape.ndim != 2 || b->shape.ndim != 2 || a->graph != b->graph) {
        return bwi_fail_build(a->graph->ctx, BW_INVALID_ARGUMENT,
                              "matmul: expected two matrices per sample, of one model, got %d and %d axes", a->shape.ndim,
                              b->shape.ndim);
    }
    bwi_dot_attributes attributes = {.axis = {1, 0}};
    return bwi_graph_add(a->graph, &bwi_op_dot, "matmul", &attributes, sizeof attributes, (bw_node *[]){a, b}, 2, NULL, 0);
}

bw_node *bw_slice(bw_node *x, int axis, int64_t first, int64_t count)
{
    bwi_slice_attributes attributes = {.start = first, .count = count};
    if (!x || !find_axis(x, axis == BW_ALL ? BW_MAX_NDIM : axis, "slice", &attributes.axis)) {
        return NULL;
    }
    return bwi_graph_add(x->graph, &bwi_op_slice, "slice", &attributes, sizeof attributes, &x, 1, NULL, 0);
}
