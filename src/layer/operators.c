/*
 * Keras's operators in functional models: a + b, x * 2, x[:, 1:3], keras.ops.mean. They are layers that expressions cannot name:
 * rows with nodes and without variables, whose values come from a file. As in Keras, masks end at them.
 */
#include "layer/internal.h"

#include <float.h>
#include <string.h>

static bw_node *refuse(const bwi_layer *layer, bwi_graph *graph, const char *why)
{
    return bwi_fail_build(graph->ctx, BW_UNIMPLEMENTED, "layer %s: the operator %s %s", layer->name, layer->row->class_name, why);
}

static const bwi_argument_value *constant(const bwi_layer *layer)
{
    return &layer->values[BWI_OPERATOR_NUMBER];
}

/* ---- Two operands, one of which may be a number ---- */

static bw_node *clip(const bwi_layer *layer, bwi_graph *graph, bw_node *x, float low, float high)
{
    bwi_unary_attributes a = {.kind = BWI_CLIP, .a = low, .b = high};
    return bwi_graph_add(graph, &bwi_op_unary, layer->name, &a, sizeof a, &x, 1, NULL, 0);
}

/* c - x = -x + c; c / x = c x^-1; the maximum of x and c is x clipped from below at c. */
static bw_node *with_number(const bwi_layer *layer, bwi_graph *graph, bw_node *x)
{
    const char *name = layer->row->class_name;
    double c = constant(layer)->number;
    bool first = constant(layer)->flag;
    if (strcmp(name, "Add") == 0) {
        return bw_affine(x, 1, c);
    }
    if (strcmp(name, "Subtract") == 0) {
        return first ? bw_affine(x, -1, c) : bw_affine(x, 1, -c);
    }
    if (strcmp(name, "Multiply") == 0) {
        return bw_affine(x, c, 0);
    }
    if (strcmp(name, "Power") == 0) {
        return first    ? refuse(layer, graph, "of a number to the power of a tensor is not supported")
               : c == 2 ? bw_square(x)
                        : bw_power(x, c);
    }
    if (strcmp(name, "Maximum") == 0) {
        return clip(layer, graph, x, (float)c, FLT_MAX);
    }
    if (strcmp(name, "Minimum") == 0) {
        return clip(layer, graph, x, -FLT_MAX, (float)c);
    }
    return first ? bw_affine(bw_power(x, -1), c, 0) : bw_affine(x, 1 / c, 0);
}

/* Extents of 1 are repeated. Keras would align axes from the last one on, including the batch, so both must have the same number
 * of axes. */
static bw_node *build_pair(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int count)
{
    static const struct {
        const char *name;
        bw_node *(*build)(bw_node *, bw_node *);
    } known[] = {{"Add", bw_add},           {"Subtract", bw_subtract}, {"Multiply", bw_multiply}, {"Divide", bw_divide},
                 {"TrueDivide", bw_divide}, {"Maximum", bw_maximum},   {"Minimum", bw_minimum},   {"Matmul", bw_matmul}};
    if (constant(layer)->given && count == 1 && strcmp(layer->row->class_name, "Matmul") != 0) {
        return with_number(layer, graph, inputs[0]);
    }
    if (count != 2 || inputs[0]->shape.ndim != inputs[1]->shape.ndim) {
        return refuse(layer, graph, "takes two tensors with as many axes, or a tensor and a number");
    }
    for (size_t i = 0; i < BWI_COUNT(known); i++) {
        if (strcmp(known[i].name, layer->row->class_name) == 0) {
            return known[i].build(inputs[0], inputs[1]);
        }
    }
    return refuse(layer, graph, "of two tensors is not supported");
}

/* ---- One operand ---- */

static bw_node *negative(bw_node *x)
{
    return bw_negate(x);
}

static bw_node *reciprocal(bw_node *x)
{
    return bw_power(x, -1);
}

static bw_node *reciprocal_root(bw_node *x)
{
    return bw_power(x, -0.5);
}

/* Functions of each element are built by the corresponding call, or as the activation of that name. */
static bw_node *build_one(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int count)
{
    static const struct {
        const char *name, *activation;
        bw_node *(*build)(bw_node *);
    } known[] = {
        {"Negative", NULL, negative},
        {"Absolute", NULL, bw_abs},
        {"Abs", NULL, bw_abs},
        {"Square", NULL, bw_square},
        {"Sqrt", NULL, bw_sqrt},
        {"Exp", NULL, bw_exp},
        {"Log", NULL, bw_log},
        {"Reciprocal", NULL, reciprocal},
        {"Rsqrt", NULL, reciprocal_root},
        {"Relu", "relu", NULL},
        {"Relu6", "relu6", NULL},
        {"Sigmoid", "sigmoid", NULL},
        {"Tanh", "tanh", NULL},
        {"Softplus", "softplus", NULL},
        {"Softsign", "softsign", NULL},
        {"Silu", "silu", NULL},
        {"Gelu", "gelu", NULL},
        {"Selu", "selu", NULL},
        {"HardSigmoid", "hard_sigmoid", NULL},
        {"HardSilu", "hard_silu", NULL},
        {"HardTanh", "hard_tanh", NULL},
        {"LogSigmoid", "log_sigmoid", NULL},
        {"TanhShrink", "tanh_shrink", NULL},
        {"SparsePlus", "sparse_plus", NULL},
        {"SparseSigmoid", "sparse_sigmoid", NULL},
    };
    for (size_t i = 0; count == 1 && i < BWI_COUNT(known); i++) {
        if (strcmp(known[i].name, layer->row->class_name) == 0) {
            return known[i].build ? known[i].build(inputs[0])
                                  : bwi_activation_add(graph, layer->name, inputs[0], known[i].activation);
        }
    }
    return refuse(layer, graph, "takes one tensor");
}

/* The number is the slope of LeakyRelu, the factor of Elu, the b of Squareplus, or the threshold of a shrink. */
static bw_node *build_sloped(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int count)
{
    (void)count;
    bwi_activation_attributes a = {.kind = BWI_LEAKY_RELU, .p = {(float)constant(layer)->number, 0, 0}};
    bw_node *x = inputs[0];
    if (strcmp(layer->row->class_name, "Elu") == 0) {
        a = (bwi_activation_attributes){.kind = BWI_ELU, .p = {1, (float)constant(layer)->number, 0}};
    } else if (strcmp(layer->row->class_name, "SoftShrink") == 0) {
        a.kind = BWI_SOFT_SHRINK;
    } else if (strcmp(layer->row->class_name, "HardShrink") == 0) {
        a.kind = BWI_HARD_SHRINK;
    } else if (strcmp(layer->row->class_name, "Squareplus") == 0) {
        a.kind = BWI_SQUAREPLUS;
        return bwi_graph_add(graph, &bwi_op_activation_of_input, layer->name, &a, sizeof a, &x, 1, NULL, 0);
    }
    return bwi_graph_add(graph, &bwi_op_activation, layer->name, &a, sizeof a, &x, 1, NULL, 0);
}

/* ---- Axes ---- */

static bool sample_axis(const bwi_layer *layer, bwi_graph *graph, int64_t axis, int ndim, int *found)
{
    int64_t own = axis < 0 ? axis + ndim : axis - 1;
    if (own < 0 || own >= ndim) {
        refuse(layer, graph, "goes over the axis of the batch, or over one that is not there: not supported");
        return false;
    }
    *found = (int)own;
    return true;
}

static bw_node *build_softmax(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int count)
{
    (void)count;
    bwi_axis_attributes a;
    bw_node *x = inputs[0];
    if (!sample_axis(layer, graph, layer->values[BWI_OPERATOR_AXES].integer, x->shape.ndim, &a.axis)) {
        return NULL;
    }
    return a.axis == x->shape.ndim - 1 ? bwi_activation_add(graph, layer->name, x, "softmax")
                                       : bwi_graph_add(graph, &bwi_op_softmax_axis, layer->name, &a, sizeof a, &x, 1, NULL, 0);
}

/* Reduces one axis after another, keeping their extents, and then removes them. Means of means are means, because all parts have
 * the same size. */
static bw_node *build_reduction(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int count)
{
    static const char *const names[] = {"Sum", "Mean", "Max", "Min"}; /* in the order of bwi_reduce_kind */
    const bwi_argument_value *axes = &layer->values[BWI_OPERATOR_AXES];
    bwi_reduce_attributes a = {.keepdims = true};
    bw_node *x = inputs[0];
    bwi_shape left = {0}, shape = x->shape;
    (void)count;
    for (int i = 0; i < 4; i++) {
        a.kind = strcmp(layer->row->class_name, names[i]) == 0 ? (bwi_reduce_kind)i : a.kind;
    }
    if (!axes->count) {
        return refuse(layer, graph, "over all axes, which takes samples together, is not supported");
    }
    for (int i = 0; i < axes->count && x; i++) {
        if (!sample_axis(layer, graph, axes->integers[i], shape.ndim, &a.axis)) {
            return NULL;
        }
        const bwi_op *op = a.kind == BWI_REDUCE_SUM || a.kind == BWI_REDUCE_MEAN ? &bwi_op_reduce : &bwi_op_reduce_extreme;
        x = bwi_graph_add(graph, op, layer->name, &a, sizeof a, &x, 1, NULL, 0);
        shape.extent[a.axis] = 0;
    }
    for (int i = 0; i < shape.ndim; i++) {
        if (shape.extent[i]) {
            left.extent[left.ndim++] = shape.extent[i];
        }
    }
    return layer->values[BWI_OPERATOR_KEEP].flag ? x : bw_reshape(x, left.ndim, left.extent);
}

static bw_node *build_transpose(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int count)
{
    (void)count;
    const bwi_argument_value *v = &layer->values[BWI_OPERATOR_AXES];
    bw_node *x = inputs[0];
    bwi_permute_attributes a = {.ndim = x->shape.ndim};
    if (v->count != x->shape.ndim + 1 || v->integers[0] != 0) {
        return refuse(layer, graph, "moves the axis of the batch: not supported");
    }
    for (int i = 0; i < a.ndim; i++) {
        if (!sample_axis(layer, graph, v->integers[i + 1], a.ndim, &a.axes[i])) {
            return NULL;
        }
    }
    return bwi_graph_add(graph, &bwi_op_permute, layer->name, &a, sizeof a, &x, 1, NULL, 0);
}

/* ---- Shapes ---- */

/* The first extent is the batch's and must be -1; all others must be given. */
static bw_node *build_reshape(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int count)
{
    (void)count;
    const bwi_argument_value *v = &layer->values[BWI_OPERATOR_AXES];
    bwi_shape shape = {.ndim = v->count - 1};
    int64_t total = 1, all = bwi_shape_count(&inputs[0]->shape);
    for (int i = 1; i < v->count; i++) {
        shape.extent[i - 1] = v->integers[i];
        if (v->integers[i] < 1 || __builtin_mul_overflow(total, v->integers[i], &total)) {
            return refuse(layer, graph, "to a shape that is not known is not supported");
        }
    }
    if (v->count < 1 || v->integers[0] != -1 || total != all) {
        return refuse(layer, graph, "to a shape that takes samples together is not supported");
    }
    return bw_reshape(inputs[0], shape.ndim, shape.extent);
}

static bw_node *with_axis(const bwi_layer *layer, bwi_graph *graph, bw_node *x, int64_t axis)
{
    bwi_shape shape = {.ndim = x->shape.ndim + 1};
    int own;
    if (shape.ndim >= BW_MAX_NDIM || !sample_axis(layer, graph, axis, shape.ndim, &own)) {
        return shape.ndim >= BW_MAX_NDIM ? refuse(layer, graph, "makes too many axes") : NULL;
    }
    for (int i = 0; i < shape.ndim; i++) {
        shape.extent[i] = i == own ? 1 : x->shape.extent[i - (i > own)];
    }
    return bw_reshape(x, shape.ndim, shape.extent);
}

static bw_node *build_expand(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int count)
{
    (void)count;
    return with_axis(layer, graph, inputs[0], layer->values[BWI_OPERATOR_AXES].integer);
}

static bw_node *build_squeeze(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int count)
{
    (void)graph;
    (void)count;
    const bwi_argument_value *axes = &layer->values[BWI_OPERATOR_AXES];
    bwi_shape shape = inputs[0]->shape, left = {0};
    for (int i = 0; i < shape.ndim; i++) {
        bool given = !axes->count;
        for (int k = 0; k < axes->count; k++) {
            given = given || axes->integers[k] == i + 1 || axes->integers[k] == i - shape.ndim;
        }
        if (!given || shape.extent[i] != 1) {
            left.extent[left.ndim++] = shape.extent[i];
        }
    }
    return bw_reshape(inputs[0], left.ndim, left.extent);
}

static bw_node *build_joint(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int count)
{
    bw_node *parts[BWI_MAX_POINTS];
    bwi_axis_attributes a;
    bool stack = strcmp(layer->row->class_name, "Stack") == 0;
    int64_t axis = layer->values[BWI_OPERATOR_AXES].integer;
    if (!sample_axis(layer, graph, axis, inputs[0]->shape.ndim + stack, &a.axis)) {
        return NULL;
    }
    for (int k = 0; k < count; k++) {
        parts[k] = stack ? with_axis(layer, graph, inputs[k], axis) : inputs[k];
        if (!parts[k]) {
            return NULL;
        }
    }
    return count == 1 ? parts[0] : bwi_graph_add(graph, &bwi_op_concatenate, layer->name, &a, sizeof a, parts, count, NULL, 0);
}

/* x[...] takes a range of each axis, which may be all of it; a single index removes the axis. */
static bw_node *build_item(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int count)
{
    (void)count;
    const bwi_argument_value *v = layer->values;
    bw_node *x = inputs[0];
    bwi_shape left = {0};
    if (v[BWI_OPERATOR_AXES].count != x->shape.ndim) {
        return refuse(layer, graph, "has more indices than the tensor has axes");
    }
    for (int i = 0; i < v[BWI_OPERATOR_AXES].count && x; i++) {
        bwi_slice_attributes a = {
            .axis = i, .start = v[BWI_OPERATOR_AXES].integers[i], .count = v[BWI_OPERATOR_COUNTS].integers[i]};
        int64_t extent = x->shape.extent[i];
        if (a.start < 0 || a.count < 1 || a.start > extent - a.count) {
            return refuse(layer, graph, "takes nothing, or what is not there");
        }
        if (!v[BWI_OPERATOR_DROPS].integers[i]) {
            left.extent[left.ndim++] = a.count;
        }
        x = a.count == extent ? x : bwi_graph_add(graph, &bwi_op_slice, layer->name, &a, sizeof a, &x, 1, NULL, 0);
    }
    return x ? bw_reshape(x, left.ndim, left.extent) : NULL;
}

static bw_node *build_clip(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int count)
{
    (void)count;
    return clip(layer, graph, inputs[0], (float)layer->values[BWI_OPERATOR_NUMBER].number,
                (float)layer->values[BWI_OPERATOR_OTHER].number);
}

static bw_node *build_threshold(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int count)
{
    (void)count;
    return bwi_compose_unary(graph, layer->name, inputs[0], BWI_THRESHOLD, (float)layer->values[BWI_OPERATOR_NUMBER].number,
                             (float)layer->values[BWI_OPERATOR_OTHER].number);
}

#define ROW(name, build)                                                      \
    {                                                                         \
        name, name, "", NULL, 0, build, BWI_LAYER_MERGES | BWI_LAYER_OPERATOR \
    }

static const bwi_layer_row rows[] = {
    ROW("Add", build_pair),
    ROW("Subtract", build_pair),
    ROW("Multiply", build_pair),
    ROW("Divide", build_pair),
    ROW("TrueDivide", build_pair),
    ROW("Power", build_pair),
    ROW("Maximum", build_pair),
    ROW("Minimum", build_pair),
    ROW("Matmul", build_pair),
    ROW("Negative", build_one),
    ROW("Absolute", build_one),
    ROW("Abs", build_one),
    ROW("Square", build_one),
    ROW("Sqrt", build_one),
    ROW("Exp", build_one),
    ROW("Log", build_one),
    ROW("Reciprocal", build_one),
    ROW("Rsqrt", build_one),
    ROW("Relu", build_one),
    ROW("Relu6", build_one),
    ROW("Sigmoid", build_one),
    ROW("Tanh", build_one),
    ROW("Softplus", build_one),
    ROW("Softsign", build_one),
    ROW("Silu", build_one),
    ROW("Gelu", build_one),
    ROW("Selu", build_one),
    ROW("HardSigmoid", build_one),
    ROW("LeakyRelu", build_sloped),
    ROW("Elu", build_sloped),
    ROW("Softmax", build_softmax),
    ROW("Sum", build_reduction),
    ROW("Mean", build_reduction),
    ROW("Max", build_reduction),
    ROW("Min", build_reduction),
    ROW("Transpose", build_transpose),
    ROW("Reshape", build_reshape),
    ROW("ExpandDims", build_expand),
    ROW("Squeeze", build_squeeze),
    ROW("Concatenate", build_joint),
    ROW("Stack", build_joint),
    ROW("GetItem", build_item),
    ROW("Clip", build_clip),
    ROW("HardSilu", build_one),
    ROW("HardTanh", build_one),
    ROW("LogSigmoid", build_one),
    ROW("TanhShrink", build_one),
    ROW("SparsePlus", build_one),
    ROW("SparseSigmoid", build_one),
    ROW("SoftShrink", build_sloped),
    ROW("HardShrink", build_sloped),
    ROW("Squareplus", build_sloped),
    ROW("Threshold", build_threshold),
};

const bwi_layer_row *bwi_operator_find(const char *class_name)
{
    for (size_t i = 0; i < BWI_COUNT(rows); i++) {
        if (strcmp(rows[i].class_name, class_name) == 0) {
            return &rows[i];
        }
    }
    return NULL;
}
