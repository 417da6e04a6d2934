/*
 * EinsumDense, where its equation is that of a dense layer over several axes: the input's last axes are the kernel's first ones,
 * the kernel's others are the output's last, and nothing changes its place: "abc,cd->abd", "abcd,cde->abe", "...x,xyz->...yz". The
 * bias has all of the kernel's own axes, or there is none.
 */
#include "layer/internal.h"

#include <string.h>

enum {
    EQUATION,
    OUTPUT_SHAPE,
    ACTIVATION,
    BIAS_AXES,
    KERNEL_INITIALIZER,
    BIAS_INITIALIZER,
    KERNEL_REGULARIZER,
    BIAS_REGULARIZER,
    COUNT
};

static const bwi_argument arguments[COUNT] = {
    [EQUATION] = {"equation", NULL, BWI_TEXT, NULL, 0, 0, NULL},
    [OUTPUT_SHAPE] = {"output_shape", NULL, BWI_INTS, NULL, 0, 0, NULL},
    [ACTIVATION] = {"activation", NULL, BWI_TEXT, "linear", 0, 0, NULL},
    [BIAS_AXES] = {"bias_axes", NULL, BWI_TEXT, "none", 0, 0, NULL},
    [KERNEL_INITIALIZER] = {"kernel_initializer", NULL, BWI_CALL, "glorot_uniform", 0, 0, NULL},
    [BIAS_INITIALIZER] = {"bias_initializer", NULL, BWI_CALL, "zeros", 0, 0, NULL},
    [KERNEL_REGULARIZER] = {"kernel_regularizer", NULL, BWI_CALL, "none", 0, 0, NULL},
    [BIAS_REGULARIZER] = {"bias_regularizer", NULL, BWI_CALL, "none", 0, 0, NULL},
};

/* An equation as lengths: axes that both sides share, axes that are summed over, and the kernel's own. */
typedef struct equation {
    int shared, summed, made;
    const char *own; /* letters of the kernel's own axes */
} equation;

/* Tries how many axes are summed over: the input's last ones must be the kernel's first, its others the result's first, and the
 * kernel's others the result's last. False if the equation is another one. */
static bool read_equation(const char *text, equation *e)
{
    const char *comma = strchr(text, ','), *arrow = strstr(text, "->");
    if (!comma || !arrow || comma > arrow) {
        return false;
    }
    const char *kernel = comma + 1, *result = arrow + 2;
    int in = (int)(comma - text), both = (int)(arrow - kernel), out = (int)strlen(result);
    int dots = in >= 3 && strncmp(text, "...", 3) == 0 ? 3 : 0;
    for (e->summed = 1; e->summed < both && e->summed <= in - dots; e->summed++) {
        int shared = in - e->summed, made = both - e->summed;
        if (shared + made == out && strncmp(text, result, (size_t)shared) == 0 &&
            strncmp(text + shared, kernel, (size_t)e->summed) == 0 &&
            strncmp(kernel + e->summed, result + shared, (size_t)made) == 0) {
            e->shared = dots ? -1 : shared - 1; /* without the batch */
            e->made = made;
            e->own = kernel + e->summed;
            return dots || shared > 0;
        }
    }
    return false;
}

/* The kernel's shape; false, after a message, if the equation or the sizes do not fit. */
static bool find_shapes(const bwi_layer *layer, bwi_graph *graph, const bw_node *x, equation *e, bwi_shape *kernel)
{
    const bwi_argument_value *v = layer->values;
    const char *bias = v[BIAS_AXES].text;
    if (!read_equation(v[EQUATION].text, e) ||
        (strcmp(bias, "none") != 0 && (strlen(bias) != (size_t)e->made || strncmp(bias, e->own, (size_t)e->made) != 0))) {
        bwi_fail_build(graph->ctx, BW_UNIMPLEMENTED, "layer %s: equation '%s' with bias_axes=%s is not supported", layer->name,
                       v[EQUATION].text, bias);
        return false;
    }
    int shared = x->shape.ndim - e->summed, given = v[OUTPUT_SHAPE].count;
    if (shared < 0 || (e->shared >= 0 && e->shared != shared) || e->made > given || e->summed + e->made > BW_MAX_NDIM ||
        shared + e->made >= BW_MAX_NDIM) {
        char found[160];
        bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: equation '%s' does not fit an input of %s and %d output extents",
                       layer->name, v[EQUATION].text, bwi_format_shape(found, x->shape.ndim, x->shape.extent), given);
        return false;
    }
    *kernel = (bwi_shape){.ndim = e->summed + e->made};
    for (int i = 0; i < e->summed; i++) {
        kernel->extent[i] = x->shape.extent[shared + i];
    }
    for (int i = 0; i < e->made; i++) {
        kernel->extent[e->summed + i] = v[OUTPUT_SHAPE].integers[given - e->made + i];
        if (kernel->extent[e->summed + i] < 1) {
            bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: output_shape: expected a size for each of the last %d axes",
                           layer->name, e->made);
            return false;
        }
    }
    return true;
}

/* The dense node sees the summed axes as one, and gives the kernel's own as one. */
static bw_node *build(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    bw_node *x = inputs[0];
    equation e;
    bwi_shape kernel;
    if (!find_shapes(layer, graph, x, &e, &kernel)) {
        return NULL;
    }
    int shared = x->shape.ndim - e.summed, last = kernel.ndim - 1;
    int64_t rest = bwi_shape_count(&kernel) / kernel.extent[last] / kernel.extent[last - 1], in = 1;
    bwi_shape joined = {.ndim = shared + 1}, made = {.ndim = shared + e.made}, bias = {.ndim = e.made};
    for (int i = 0; i < e.summed; i++) {
        in *= kernel.extent[i];
    }
    for (int i = 0; i < shared; i++) {
        joined.extent[i] = made.extent[i] = x->shape.extent[i];
    }
    joined.extent[shared] = in;
    for (int i = 0; i < e.made; i++) {
        made.extent[shared + i] = bias.extent[i] = kernel.extent[e.summed + i];
    }
    bwi_dense_attributes a = {.units = bwi_shape_count(&bias)};
    bwi_variable *variables[2] = {bwi_layer_variable(graph, layer, "kernel", &kernel, KERNEL_INITIALIZER, KERNEL_REGULARIZER,
                                                     rest * kernel.extent[last - 1], rest * kernel.extent[last])};
    int count = 1;
    if (strcmp(layer->values[BIAS_AXES].text, "none") != 0) {
        variables[count++] = bwi_layer_variable(graph, layer, "bias", &bias, BIAS_INITIALIZER, BIAS_REGULARIZER, a.units, a.units);
    }
    if (!variables[0] || (count > 1 && !variables[1])) {
        return NULL;
    }
    variables[0]->input_axes = e.summed;
    x = e.summed > 1 ? bwi_compose_reshape(graph, layer->name, x, &joined) : x;
    bw_node *node = bwi_graph_add(graph, &bwi_op_dense, layer->name, &a, sizeof a, &x, 1, variables, count);
    node = e.made > 1 ? bwi_compose_reshape(graph, layer->name, node, &made) : node;
    return bwi_activation_add(graph, layer->name, node, layer->values[ACTIVATION].text);
}

const bwi_layer_row bwi_layer_einsum_dense = {"EinsumDense", "einsum_dense", "einsum_dense", arguments, COUNT, build, 0};
