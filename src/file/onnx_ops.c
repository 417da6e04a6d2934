/*
 * Writes ONNX for operators that work element by element, along an axis, or on a whole sample. Element-wise operators keep the
 * order of channels that their input has.
 */
#include "file/onnx.h"

#include <math.h>
#include <string.h>

/* ---- Element by element ---- */

/* Finds the input and the name of the result, in the order in which the input's values exist. */
static const char *begin_each(bwi_onnx *o, const bw_node *node, const char **x)
{
    bwi_onnx_order order = bwi_onnx_order_of(o, node->input[0]);
    *x = bwi_onnx_of(o, node->input[0], order);
    return bwi_onnx_result(o, node, order);
}

static void put_each(bwi_onnx *o, const bw_node *node, const char *type)
{
    const char *x, *y = begin_each(o, node, &x);
    bwi_onnx_add(o, type, y, x, NULL);
}

static void put_relu(bwi_onnx *o, const bw_node *node)
{
    put_each(o, node, "Relu");
}

static void put_activation(bwi_onnx *o, const bw_node *node)
{
    const char *x, *y = begin_each(o, node, &x);
    bwi_onnx_activation(o, node->attributes, x, y);
}

static void put_scale(bwi_onnx *o, const bw_node *node)
{
    const bwi_scale_attributes *a = node->attributes;
    bwi_onnx_name scale, offset, product;
    const char *x, *y = begin_each(o, node, &x);
    bwi_onnx_add(o, "Mul", bwi_onnx_new(o, product), x, bwi_onnx_float(o, scale, a->scale), NULL);
    bwi_onnx_add(o, "Add", y, product, bwi_onnx_float(o, offset, a->offset), NULL);
}

/* ONNX has an operator for each function except the square, which is a product. */
static void put_unary(bwi_onnx *o, const bw_node *node)
{
    const bwi_unary_attributes *a = node->attributes;
    bwi_onnx_name low, high, above;
    const char *x, *y = begin_each(o, node, &x);
    switch (a->kind) {
    case BWI_ABS:
        bwi_onnx_add(o, "Abs", y, x, NULL);
        break;
    case BWI_SQUARE:
        bwi_onnx_add(o, "Mul", y, x, x, NULL);
        break;
    case BWI_SQRT:
        bwi_onnx_add(o, "Sqrt", y, x, NULL);
        break;
    case BWI_LOG:
        bwi_onnx_add(o, "Log", y, x, NULL);
        break;
    case BWI_POW:
        bwi_onnx_add(o, "Pow", y, x, bwi_onnx_float(o, low, a->a), NULL);
        break;
    case BWI_THRESHOLD:
        bwi_onnx_add(o, "Greater", bwi_onnx_new(o, above), x, bwi_onnx_float(o, low, a->a), NULL);
        bwi_onnx_add(o, "Where", y, above, x, bwi_onnx_float(o, high, a->b), NULL);
        break;
    default:
        bwi_onnx_float(o, low, a->a);
        bwi_onnx_float(o, high, a->b);
        bwi_onnx_add(o, "Clip", y, x, low, high, NULL);
        break;
    }
}

/* The order is channels first if all inputs have it, since nothing must be converted then. */
static bwi_onnx_order common_order(const bwi_onnx *o, const bw_node *node)
{
    for (int k = 0; k < node->inputs; k++) {
        if (!o->names[node->input[k]->number][BWI_ONNX_FIRST][0]) {
            return BWI_ONNX_LAST;
        }
    }
    return BWI_ONNX_FIRST;
}

/* Adds all inputs, or subtracts the sum of the others from the first. */
static void put_sum(bwi_onnx *o, const bw_node *node, const char *y, bool subtract, bwi_onnx_order order)
{
    const char *inputs[BWI_MAX_POINTS + 1];
    bwi_onnx_name between;
    for (int k = 0; k < node->inputs; k++) {
        inputs[k] = bwi_onnx_of(o, node->input[k], order);
    }
    inputs[node->inputs] = NULL;
    if (subtract && node->inputs > 2) {
        bwi_onnx_begin(o, "Sum", inputs + 1, bwi_onnx_new(o, between));
        bwi_onnx_end(o);
        bwi_onnx_add(o, "Sub", y, inputs[0], between, NULL);
        return;
    }
    bwi_onnx_begin(o, subtract ? "Sub" : node->inputs == 2 ? "Add" : "Sum", inputs, y);
    bwi_onnx_end(o);
}

static void put_add(bwi_onnx *o, const bw_node *node)
{
    const bwi_add_attributes *a = node->attributes;
    bwi_onnx_order order = common_order(o, node);
    bwi_onnx_name sum, scale;
    const char *y = bwi_onnx_result(o, node, order);
    if (a->scale < 1 || a->scale > 1) {
        put_sum(o, node, bwi_onnx_new(o, sum), a->subtract, order);
        bwi_onnx_add(o, "Mul", y, sum, bwi_onnx_float(o, scale, a->scale), NULL);
    } else {
        put_sum(o, node, y, a->subtract, order);
    }
}

static void put_binary(bwi_onnx *o, const bw_node *node)
{
    static const char *const types[BWI_BINARIES] = {
        [BWI_MULTIPLY] = "Mul", [BWI_DIVIDE] = "Div", [BWI_MAXIMUM] = "Max", [BWI_MINIMUM] = "Min"};
    const bwi_binary_attributes *a = node->attributes;
    bwi_onnx_order order = common_order(o, node);
    const char *x = bwi_onnx_of(o, node->input[0], order), *z = bwi_onnx_of(o, node->input[1], order);
    bwi_onnx_add(o, types[a->kind], bwi_onnx_result(o, node, order), x, z, NULL);
}

/* ---- Channels last from here on ---- */

static const char *last(bwi_onnx *o, const bw_node *node, int input)
{
    return bwi_onnx_of(o, node->input[input], BWI_ONNX_LAST);
}

static const char *result(bwi_onnx *o, const bw_node *node)
{
    return bwi_onnx_result(o, node, BWI_ONNX_LAST);
}

/* ONNX aligns axes at the last one, so missing axes must be inserted after the batch, before the others. */
static void put_broadcast(bwi_onnx *o, const bw_node *node)
{
    const bwi_shape *in = &node->input[0]->shape;
    bwi_onnx_name whole, extents;
    const char *x = last(o, node, 0);
    if (in->ndim < node->shape.ndim) {
        bwi_shape longer = {.ndim = node->shape.ndim};
        for (int i = 0; i < longer.ndim; i++) {
            int own = i - (longer.ndim - in->ndim);
            longer.extent[i] = own < 0 ? 1 : in->extent[own];
        }
        bwi_onnx_reshape(o, x, bwi_onnx_new(o, whole), &longer);
        x = whole;
    }
    bwi_onnx_add(o, "Expand", result(o, node), x, bwi_onnx_shape(o, extents, 1, &node->shape), NULL);
}

static void put_prelu(bwi_onnx *o, const bw_node *node)
{
    const char *x = last(o, node, 0);
    bwi_onnx_add(o, "PRelu", result(o, node), x, bwi_onnx_variable(o, node->variable[0]), NULL);
}

static void put_normalization(bwi_onnx *o, const bw_node *node)
{
    const bwi_normalization_attributes *a = node->attributes;
    bwi_onnx_name mean = "", deviation = "", between;
    const char *x = last(o, node, 0);
    float *means = bwi_export_values(o->ctx, node->variable[0]), *values = bwi_export_values(o->ctx, node->variable[1]);
    for (int64_t i = 0; values && i < bwi_shape_count(&node->variable[1]->shape); i++) {
        values[i] = fmaxf(sqrtf(values[i]), 1e-7F);
    }
    bwi_onnx_floats(o, mean, a->spread.ndim, a->spread.extent, means);
    bwi_onnx_floats(o, deviation, a->spread.ndim, a->spread.extent, values);
    bwi_release(o->ctx, means);
    bwi_release(o->ctx, values);
    bwi_onnx_new(o, between);
    bwi_onnx_add(o, a->invert ? "Mul" : "Sub", between, x, a->invert ? deviation : mean, NULL);
    bwi_onnx_add(o, a->invert ? "Add" : "Div", result(o, node), between, a->invert ? mean : deviation, NULL);
}

/* x gamma + beta, along the last axis. */
static void put_channel_affine(bwi_onnx *o, const bw_node *node)
{
    const bwi_channel_affine_attributes *a = node->attributes;
    bwi_onnx_name product;
    const char *x = last(o, node, 0), *y = result(o, node);
    if (a->scale) {
        bwi_onnx_add(o, "Mul", a->center ? bwi_onnx_new(o, product) : y, x, bwi_onnx_variable(o, node->variable[0]), NULL);
        x = product;
    }
    if (a->center) {
        bwi_onnx_add(o, "Add", y, x, bwi_onnx_variable(o, node->variable[a->scale]), NULL);
    }
}

static void put_channel_map(bwi_onnx *o, const bw_node *node)
{
    const bwi_channel_map_attributes *a = node->attributes;
    bwi_onnx_name mean = "", scale = "", shift = "", less, product;
    const char *x = last(o, node, 0);
    bwi_onnx_floats(o, mean, 1, &a->channels, a->number);
    bwi_onnx_floats(o, scale, 1, &a->channels, a->number + a->channels);
    bwi_onnx_floats(o, shift, 1, &a->channels, a->number + 2 * a->channels);
    bwi_onnx_add(o, "Sub", bwi_onnx_new(o, less), x, mean, NULL);
    bwi_onnx_add(o, "Mul", bwi_onnx_new(o, product), less, scale, NULL);
    bwi_onnx_add(o, "Add", result(o, node), product, shift, NULL);
}

/* ---- Moving values ---- */

static void put_reshape(bwi_onnx *o, const bw_node *node)
{
    const char *x = last(o, node, 0);
    bwi_onnx_reshape(o, x, result(o, node), &node->shape);
}

static void put_permute(bwi_onnx *o, const bw_node *node)
{
    const bwi_permute_attributes *a = node->attributes;
    int64_t axes[BW_MAX_NDIM + 1] = {0};
    for (int i = 0; i < a->ndim; i++) {
        axes[i + 1] = a->axes[i] + 1;
    }
    const char *x = last(o, node, 0);
    bwi_onnx_transpose(o, x, result(o, node), a->ndim + 1, axes);
}

static void put_slice(bwi_onnx *o, const bw_node *node)
{
    const bwi_slice_attributes *a = node->attributes;
    int64_t end = a->start + a->count, axis = a->axis + 1;
    bwi_onnx_name first, behind, along;
    const char *x = last(o, node, 0);
    bwi_onnx_wholes(o, first, 1, &a->start);
    bwi_onnx_wholes(o, behind, 1, &end);
    bwi_onnx_wholes(o, along, 1, &axis);
    bwi_onnx_add(o, "Slice", result(o, node), x, first, behind, along, NULL);
}

static void put_concatenate(bwi_onnx *o, const bw_node *node)
{
    const bwi_axis_attributes *a = node->attributes;
    bwi_onnx_order order = common_order(o, node);
    const char *inputs[BWI_MAX_POINTS + 1] = {NULL};
    int first = a->axis == node->shape.ndim - 1 ? 1 : a->axis + 2;
    for (int k = 0; k < node->inputs; k++) {
        inputs[k] = bwi_onnx_of(o, node->input[k], order);
    }
    bwi_onnx_begin(o, "Concat", inputs, bwi_onnx_result(o, node, order));
    bwi_onnx_put(o, "axis", order == BWI_ONNX_FIRST ? first : a->axis + 1);
    bwi_onnx_end(o);
}

/* ---- Along an axis ---- */

static void put_softmax_along(bwi_onnx *o, const bw_node *node, int64_t axis)
{
    const char *x = last(o, node, 0);
    bwi_onnx_begin(o, "Softmax", (const char *[]){x, NULL}, result(o, node));
    bwi_onnx_put(o, "axis", axis);
    bwi_onnx_end(o);
}

static void put_softmax(bwi_onnx *o, const bw_node *node)
{
    put_softmax_along(o, node, node->shape.ndim);
}

static void put_softmax_axis(bwi_onnx *o, const bw_node *node)
{
    const bwi_axis_attributes *a = node->attributes;
    put_softmax_along(o, node, a->axis + 1);
}

static void put_l2_normalize(bwi_onnx *o, const bw_node *node)
{
    const bwi_axis_attributes *a = node->attributes;
    int64_t axis = a->axis + 1;
    bwi_onnx_name norm, least, divisor;
    const char *x = last(o, node, 0);
    bwi_onnx_begin(o, "ReduceL2", (const char *[]){x, NULL}, bwi_onnx_new(o, norm));
    bwi_onnx_put_list(o, "axes", 1, &axis);
    bwi_onnx_end(o);
    bwi_onnx_add(o, "Max", bwi_onnx_new(o, divisor), norm, bwi_onnx_float(o, least, 1e-7F), NULL);
    bwi_onnx_add(o, "Div", result(o, node), x, divisor, NULL);
}

/* As kernel/loops/reduce.h has it: sorted downwards, with sums from the largest on. */
static void put_sparsemax(bwi_onnx *o, const bw_node *node)
{
    int64_t width = node->shape.extent[node->shape.ndim - 1], axis = -1;
    bwi_onnx_name count, sorted, places, sums, along, one, numbers = "", mean, above, support, kept, total, size, tau, less, rest;
    float *values = bwi_allocate(o->ctx, (size_t)width, sizeof *values);
    if (!values) {
        o->status = BW_RESOURCE_EXHAUSTED;
        return;
    }
    for (int64_t i = 0; i < width; i++) {
        values[i] = (float)(i + 1);
    }
    const char *x = last(o, node, 0);
    bwi_onnx_floats(o, numbers, 1, &width, values);
    bwi_release(o->ctx, values);
    bwi_onnx_begin(o, "TopK", (const char *[]){x, bwi_onnx_wholes(o, count, 1, &width), NULL}, bwi_onnx_new(o, sorted));
    bwi_onnx_put_output(o, bwi_onnx_new(o, places));
    bwi_onnx_end(o);
    bwi_onnx_wholes(o, along, 1, &axis);
    bwi_onnx_float(o, one, 1);
    bwi_onnx_add(o, "CumSum", bwi_onnx_new(o, sums), sorted, along, NULL);
    bwi_onnx_add(o, "Sub", bwi_onnx_new(o, less), sums, one, NULL);
    bwi_onnx_add(o, "Div", bwi_onnx_new(o, mean), less, numbers, NULL);
    bwi_onnx_add(o, "Greater", bwi_onnx_new(o, above), sorted, mean, NULL);
    bwi_onnx_begin(o, "Cast", (const char *[]){above, NULL}, bwi_onnx_new(o, support));
    bwi_onnx_put(o, "to", 1); /* float32 */
    bwi_onnx_end(o);
    bwi_onnx_add(o, "Mul", bwi_onnx_new(o, kept), sums, support, NULL);
    bwi_onnx_add(o, "ReduceSum", bwi_onnx_new(o, total), kept, along, NULL);
    bwi_onnx_add(o, "ReduceSum", bwi_onnx_new(o, size), support, along, NULL);
    bwi_onnx_add(o, "Sub", bwi_onnx_new(o, less), total, one, NULL);
    bwi_onnx_add(o, "Div", bwi_onnx_new(o, tau), less, size, NULL);
    bwi_onnx_add(o, "Sub", bwi_onnx_new(o, rest), x, tau, NULL);
    bwi_onnx_add(o, "Relu", result(o, node), rest, NULL);
}

/* In operator set 17 the axes are an input of ReduceSum, but an attribute of the others. */
static void put_reduce(bwi_onnx *o, const bw_node *node)
{
    static const char *const types[] = {[BWI_REDUCE_SUM] = "ReduceSum",
                                        [BWI_REDUCE_MEAN] = "ReduceMean",
                                        [BWI_REDUCE_MAX] = "ReduceMax",
                                        [BWI_REDUCE_MIN] = "ReduceMin"};
    const bwi_reduce_attributes *a = node->attributes;
    int64_t axes[BW_MAX_NDIM];
    int count = 0;
    bwi_onnx_name list;
    const char *x = last(o, node, 0);
    for (int i = 0; i < node->input[0]->shape.ndim; i++) {
        if (a->axis < 0 || a->axis == i) {
            axes[count++] = i + 1;
        }
    }
    bool sum = a->kind == BWI_REDUCE_SUM;
    bwi_onnx_begin(o, types[a->kind], (const char *[]){x, sum ? bwi_onnx_wholes(o, list, count, axes) : NULL, NULL},
                   result(o, node));
    if (!sum) {
        bwi_onnx_put_list(o, "axes", count, axes);
    }
    bwi_onnx_put(o, "keepdims", a->keepdims);
    bwi_onnx_end(o);
}

/* ---- Normalising ---- */

/* Returns the variable, or an array of its shape filled with one value. */
static const char *variable_or(bwi_onnx *o, const bwi_variable *variable, bwi_onnx_name name, const bwi_shape *shape, float value)
{
    if (variable) {
        return bwi_onnx_variable(o, variable);
    }
    int64_t count = bwi_shape_count(shape);
    float *values = bwi_allocate(o->ctx, (size_t)count, sizeof *values);
    for (int64_t i = 0; values && i < count; i++) {
        values[i] = value;
    }
    name[0] = 0;
    bwi_onnx_floats(o, name, shape->ndim, shape->extent, values);
    bwi_release(o->ctx, values);
    return name;
}

static void put_layernorm(bwi_onnx *o, const bw_node *node)
{
    const bwi_layernorm_attributes *a = node->attributes;
    const bwi_variable *beta = a->center ? node->variable[a->scale] : NULL;
    bwi_shape shape = {.ndim = a->axes};
    bwi_onnx_name gamma;
    for (int i = 0; i < a->axes; i++) {
        shape.extent[i] = node->shape.extent[node->shape.ndim - a->axes + i];
    }
    const char *x = last(o, node, 0), *scale = variable_or(o, a->scale ? node->variable[0] : NULL, gamma, &shape, 1);
    const char *offset = beta ? bwi_onnx_variable(o, beta) : NULL;
    bwi_onnx_begin(o, "LayerNormalization", (const char *[]){x, scale, offset, NULL}, result(o, node));
    bwi_onnx_put(o, "axis", -a->axes);
    bwi_onnx_put_float(o, "epsilon", a->epsilon);
    bwi_onnx_end(o);
}

/* ONNX normalises over the channels, which come first; a vector has no other axis. */
static void put_batchnorm(bwi_onnx *o, const bw_node *node)
{
    const bwi_batchnorm_attributes *a = node->attributes;
    const bwi_variable *mean = node->variable[node->variables - 2], *variance = node->variable[node->variables - 1];
    bwi_onnx_order order = node->shape.ndim > 1 ? BWI_ONNX_FIRST : BWI_ONNX_LAST;
    bwi_onnx_name gamma, beta;
    const char *x = bwi_onnx_of(o, node->input[0], order);
    const char *scale = variable_or(o, a->scale ? node->variable[0] : NULL, gamma, &mean->shape, 1);
    const char *offset = variable_or(o, a->center ? node->variable[a->scale] : NULL, beta, &mean->shape, 0);
    const char *means = bwi_onnx_variable(o, mean), *variances = bwi_onnx_variable(o, variance);
    const char *inputs[] = {x, scale, offset, means, variances, NULL};
    bwi_onnx_begin(o, "BatchNormalization", inputs, bwi_onnx_result(o, node, order));
    bwi_onnx_put_float(o, "epsilon", a->epsilon);
    bwi_onnx_end(o);
}

/* ---- Products ---- */

static void put_reverse(bwi_onnx *o, const bw_node *node)
{
    int64_t start = -1, end = INT32_MIN, axis = 1, step = -1;
    bwi_onnx_name starts, ends, axes, steps;
    const char *x = last(o, node, 0);
    bwi_onnx_wholes(o, starts, 1, &start);
    bwi_onnx_wholes(o, ends, 1, &end);
    bwi_onnx_wholes(o, axes, 1, &axis);
    bwi_onnx_wholes(o, steps, 1, &step);
    bwi_onnx_add(o, "Slice", result(o, node), x, starts, ends, axes, steps, NULL);
}

static void put_dense(bwi_onnx *o, const bw_node *node)
{
    bwi_onnx_name product;
    const bwi_variable *kernels = node->variable[0], *biases = node->variables > 1 ? node->variable[1] : NULL;
    int64_t matrix[2] = {bwi_dense_in(kernels), bwi_dense_out(kernels)};
    const char *x = last(o, node, 0), *y = result(o, node);
    const char *kernel = bwi_onnx_values(o, &(bwi_values){.variable = kernels}, 2, matrix);
    const char *bias = biases ? bwi_onnx_values(o, &(bwi_values){.variable = biases}, 1, &matrix[1]) : NULL;
    if (bias && node->shape.ndim == 1) {
        bwi_onnx_add(o, "Gemm", y, x, kernel, bias, NULL);
    } else if (bias) {
        bwi_onnx_add(o, "MatMul", bwi_onnx_new(o, product), x, kernel, NULL);
        bwi_onnx_add(o, "Add", y, product, bias, NULL);
    } else {
        bwi_onnx_add(o, "MatMul", y, x, kernel, NULL);
    }
}

/* The letters of the Einstein sum are z for the batch, s for the axis that is summed over, and a, b, ... for all others. */
static void put_dot(bwi_onnx *o, const bw_node *node)
{
    const bwi_dot_attributes *a = node->attributes;
    char sides[2][16] = {"z", "z"}, out[16] = "z", equation[64];
    char letter = 'a';
    for (int k = 0; k < 2; k++) {
        for (int i = 0; i < node->input[k]->shape.ndim; i++) {
            bool summed = i == a->axis[k];
            char own[2] = {summed ? 's' : letter, 0};
            strcat(sides[k], own);
            if (!summed) {
                strcat(out, own);
                letter++;
            }
        }
    }
    snprintf(equation, sizeof equation, "%s,%s->%s", sides[0], sides[1], out);
    const char *x = last(o, node, 0), *z = last(o, node, 1), *y = result(o, node);
    bwi_onnx_name sum;
    bool vectors = !out[1]; /* the product of two vectors has one axis of extent 1 */
    bwi_onnx_begin(o, "Einsum", (const char *[]){x, z, NULL}, vectors ? bwi_onnx_new(o, sum) : y);
    bwi_onnx_put_text(o, "equation", equation);
    bwi_onnx_end(o);
    if (vectors) {
        bwi_onnx_reshape(o, sum, y, &node->shape);
    }
}

/* ---- Indices and masks ---- */

enum { TYPE_FLOAT = 1, TYPE_INT32 = 6, TYPE_BOOL = 9 };

static const char *cast(bwi_onnx *o, const char *x, const char *y, int64_t type)
{
    bwi_onnx_begin(o, "Cast", (const char *[]){x, NULL}, y);
    bwi_onnx_put(o, "to", type);
    bwi_onnx_end(o);
    return y;
}

static void put_embedding(bwi_onnx *o, const bw_node *node)
{
    bwi_onnx_name indices;
    const char *x = last(o, node, 0), *table = bwi_onnx_variable(o, node->variable[0]);
    if (node->input[0]->dtype != BW_I32) {
        x = cast(o, x, bwi_onnx_new(o, indices), TYPE_INT32);
    }
    bwi_onnx_add(o, "Gather", result(o, node), table, x, NULL);
}

static void put_index_mask(bwi_onnx *o, const bw_node *node)
{
    bwi_onnx_name truth;
    const char *x = last(o, node, 0);
    cast(o, x, bwi_onnx_new(o, truth), TYPE_BOOL);
    cast(o, truth, result(o, node), TYPE_FLOAT);
}

/* sum(m x) / max(sum m, 1), which is zero if no position counts. */
static void put_masked_average(bwi_onnx *o, const bw_node *node)
{
    const bwi_shape *x_shape = &node->input[0]->shape;
    bwi_shape column = {.ndim = 2, .extent = {x_shape->extent[0], 1}};
    int64_t axis = 1;
    bwi_onnx_name mask, masked, sum, count, one, divisor, axes;
    const char *x = last(o, node, 0), *m = last(o, node, 1);
    bwi_onnx_reshape(o, m, bwi_onnx_new(o, mask), &column);
    bwi_onnx_add(o, "Mul", bwi_onnx_new(o, masked), x, mask, NULL);
    bwi_onnx_wholes(o, axes, 1, &axis);
    for (int k = 0; k < 2; k++) {
        bwi_onnx_begin(o, "ReduceSum", (const char *[]){k ? mask : masked, axes, NULL}, bwi_onnx_new(o, k ? count : sum));
        bwi_onnx_put(o, "keepdims", 0);
        bwi_onnx_end(o);
    }
    bwi_onnx_add(o, "Max", bwi_onnx_new(o, divisor), count, bwi_onnx_float(o, one, 1), NULL);
    bwi_onnx_add(o, "Div", result(o, node), sum, divisor, NULL);
}

/* Whether any number along the last axis differs from the value. */
static void put_value_mask(bwi_onnx *o, const bw_node *node)
{
    const bwi_value_mask_attributes *a = node->attributes;
    int64_t axis = -1;
    bwi_onnx_name value, same, other, number;
    const char *x = last(o, node, 0), *y = result(o, node);
    bwi_onnx_add(o, "Equal", bwi_onnx_new(o, same), x, bwi_onnx_float(o, value, a->value), NULL);
    bwi_onnx_add(o, "Not", bwi_onnx_new(o, other), same, NULL);
    cast(o, other, bwi_onnx_new(o, number), TYPE_FLOAT);
    bwi_onnx_begin(o, "ReduceMax", (const char *[]){number, NULL}, y);
    bwi_onnx_put_list(o, "axes", 1, &axis);
    bwi_onnx_put(o, "keepdims", 0);
    bwi_onnx_end(o);
}

static void put_mask_any(bwi_onnx *o, const bw_node *node)
{
    const char *inputs[BWI_MAX_POINTS + 1] = {NULL};
    for (int k = 0; k < node->inputs; k++) {
        inputs[k] = last(o, node, k);
    }
    bwi_onnx_begin(o, "Max", inputs, result(o, node));
    bwi_onnx_end(o);
}

const bwi_onnx_row bwi_onnx_ops[] = {
    {&bwi_op_relu, put_relu},
    {&bwi_op_activation, put_activation},
    {&bwi_op_activation_of_input, put_activation},
    {&bwi_op_scale, put_scale},
    {&bwi_op_unary, put_unary},
    {&bwi_op_add, put_add},
    {&bwi_op_binary, put_binary},
    {&bwi_op_broadcast, put_broadcast},
    {&bwi_op_prelu, put_prelu},
    {&bwi_op_normalization, put_normalization},
    {&bwi_op_channel_affine, put_channel_affine},
    {&bwi_op_channel_map, put_channel_map},
    {&bwi_op_reshape, put_reshape},
    {&bwi_op_permute, put_permute},
    {&bwi_op_slice, put_slice},
    {&bwi_op_concatenate, put_concatenate},
    {&bwi_op_softmax, put_softmax},
    {&bwi_op_softmax_axis, put_softmax_axis},
    {&bwi_op_l2_normalize, put_l2_normalize},
    {&bwi_op_sparsemax, put_sparsemax},
    {&bwi_op_reduce, put_reduce},
    {&bwi_op_reduce_extreme, put_reduce},
    {&bwi_op_layernorm, put_layernorm},
    {&bwi_op_batchnorm, put_batchnorm},
    {&bwi_op_batchnorm_frozen, put_batchnorm},
    {&bwi_op_dense, put_dense},
    {&bwi_op_recurrent, bwi_onnx_recurrent},
    {&bwi_op_attention, bwi_onnx_attention},
    {&bwi_op_reverse, put_reverse},
    {&bwi_op_dot, put_dot},
    {&bwi_op_embedding, put_embedding},
    {&bwi_op_index_mask, put_index_mask},
    {&bwi_op_masked_average, put_masked_average},
    {&bwi_op_mask_any, put_mask_any},
    {&bwi_op_value_mask, put_value_mask},
    {NULL, NULL},
};
