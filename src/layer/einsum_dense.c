/*
 * EinsumDense: a dense layer over any axes of its input. Its equation, such as "abc,cd->abd", "abcd,cde->abe", "abc,bd->adc" or
 * "...x,xyz->...yz", names the axes of input, kernel and output by letters; the first axis is the batch, and "..." stands for
 * axes that stay as they are. Axes of input and kernel that the output lacks are summed over, those of the kernel and the output
 * are made. The input's summed axes are moved to its end, a dense node does the work, and the axes that it makes are moved to
 * their places.
 *
 * Two forms are refused: a kernel that has weights of its own for every position (a letter that all three have), and one whose
 * summed axes do not all come before the ones that are made, since that is another order of its numbers.
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

/* An equation for one input: letters for the axes of a sample, where those of "..." have codes below any letter. */
typedef struct equation {
    int in_count, out_count, summed, made;
    char in[BW_MAX_NDIM], out[BW_MAX_NDIM];
    char kernel[BW_MAX_NDIM]; /* summed letters, then made ones */
    bool left;                /* begins with "..." */
    int elided;               /* the axes that "..." stands for, without the batch */
} equation;

enum { MOST_LETTERS = BW_MAX_NDIM + 1 }; /* with the batch */

static int letters(const char *text)
{
    int n = 0;
    while ((text[n] >= 'a' && text[n] <= 'z') || (text[n] >= 'A' && text[n] <= 'Z')) {
        n++;
    }
    return n;
}

static bool skip_dots(const char **text)
{
    bool dots = strncmp(*text, "...", 3) == 0;
    *text += dots ? 3 : 0;
    return dots;
}

/* The letters of one side, of which `from` points to the first, as axes of a sample: without the batch, with codes for "...". */
static int expand(const char *from, int count, bool left, bool right, int elided, char *axes)
{
    int n = 0;
    for (int i = 0; left && i < elided; i++) {
        axes[n++] = (char)(1 + i);
    }
    for (int i = !left; i < count; i++) {
        axes[n++] = from[i];
    }
    for (int i = 0; right && i < elided; i++) {
        axes[n++] = (char)(1 + i);
    }
    return n;
}

static int find(const char *axes, int count, char letter)
{
    int i = 0;
    while (i < count && axes[i] != letter) {
        i++;
    }
    return i < count ? i : -1;
}

static bool repeats(const char *axes, int count)
{
    bool twice = false;
    for (int i = 0; i < count; i++) {
        twice = twice || find(axes, i, axes[i]) >= 0;
    }
    return twice;
}

/* Sorts the kernel's letters into summed and made ones. False if the equation has a letter that this layer cannot
 * handle. */
static bool sort_letters(equation *e, const char *kernel, int count)
{
    e->summed = e->made = 0;
    for (int i = 0; i < count; i++) {
        bool in = find(e->in, e->in_count, kernel[i]) >= 0, out = find(e->out, e->out_count, kernel[i]) >= 0;
        if (in == out || (in && e->made)) {
            return false;
        }
        e->summed += in;
        e->made += out;
        e->kernel[i] = kernel[i];
    }
    for (int i = 0; i < e->in_count; i++) {
        bool shared = find(e->out, e->out_count, e->in[i]) >= 0;
        if (!shared && find(kernel, count, e->in[i]) < 0) {
            return false; /* a sum without weights */
        }
    }
    return e->summed && e->made && e->in_count - e->summed + e->made == e->out_count && !repeats(e->in, e->in_count) &&
           !repeats(e->out, e->out_count) && !repeats(kernel, count);
}

/* Reads "[...]LETTERS[...],LETTERS->[...]LETTERS[...]" for an input of `ndim` axes. False if it does not fit, or cannot be done. */
static bool read_equation(const char *text, int ndim, equation *e)
{
    const char *in = text;
    e->left = skip_dots(&in);
    int in_letters = letters(in);
    const char *kernel = in + in_letters;
    bool right = skip_dots(&kernel);
    if (*kernel++ != ',') {
        return false;
    }
    int kernel_letters = letters(kernel);
    const char *out = kernel + kernel_letters;
    if (strncmp(out, "->", 2) != 0) {
        return false;
    }
    out += 2;
    bool out_left = skip_dots(&out);
    int out_letters = letters(out);
    const char *end = out + out_letters;
    bool out_right = skip_dots(&end);
    e->elided = ndim + !e->left - in_letters;
    if (*end || out_left != e->left || out_right != right || (e->left && right) || in_letters < 1 + !e->left ||
        out_letters < 1 + !e->left || e->elided < 0 || (e->elided && !e->left && !right) || kernel_letters > BW_MAX_NDIM ||
        out_letters + e->elided > MOST_LETTERS || (!e->left && (in[0] != out[0] || find(kernel, kernel_letters, in[0]) >= 0))) {
        return false;
    }
    e->in_count = expand(in, in_letters, e->left, right, e->elided, e->in);
    e->out_count = expand(out, out_letters, e->left, right, e->elided, e->out);
    return e->out_count < BW_MAX_NDIM && sort_letters(e, kernel, kernel_letters);
}

/* The bias is that of the dense node, in the order of the output; axes beside it have the extent 1, as in Keras. False if the layer
 * wants another one: each axis that is made has it, and these keep the kernel's order. */
static bool find_bias(const equation *e, const char *axes, const bwi_shape *kernel, bwi_shape *bias)
{
    int next = 0;
    *bias = (bwi_shape){.ndim = 0};
    for (int i = 0; i < e->out_count; i++) {
        bool is_made = next < e->made && e->out[i] == e->kernel[e->summed + next];
        bool biased = strchr(axes, e->out[i]);
        if (is_made != biased) {
            return false;
        }
        if (is_made || bias->ndim > 0) {
            bias->extent[bias->ndim++] = is_made ? kernel->extent[e->summed + next] : 1;
        }
        next += is_made;
    }
    return next == e->made && strlen(axes) == (size_t)e->made;
}

/* The kernel's shape: extents of the input, and those of the output that are made. Keras counts the latter without "...", and a
 * shorter list, which older files have, has the last ones. */
static bool find_kernel(const bwi_layer *layer, const equation *e, const bwi_shape *in, bwi_shape *kernel)
{
    const bwi_argument_value *given = &layer->values[OUTPUT_SHAPE];
    int written = e->out_count - e->elided;
    *kernel = (bwi_shape){.ndim = e->summed + e->made};
    for (int i = 0; i < kernel->ndim; i++) {
        int at = find(e->in, e->in_count, e->kernel[i]);
        if (at < 0) {
            at = find(e->out, e->out_count, e->kernel[i]) - (e->left ? e->elided : 0) + given->count - written;
            kernel->extent[i] = at >= 0 && at < given->count ? given->integers[at] : 0;
        } else {
            kernel->extent[i] = in->extent[at];
        }
        if (kernel->extent[i] < 1) {
            return false;
        }
    }
    return true;
}

/* The orders in which the input's axes come before the dense node, its shared ones first, and the output's after it. */
static void find_orders(const equation *e, bwi_permute_attributes *before, bwi_permute_attributes *after)
{
    char axes[2 * BW_MAX_NDIM];
    int count = 0;
    *before = (bwi_permute_attributes){.ndim = e->in_count};
    *after = (bwi_permute_attributes){.ndim = e->out_count};
    for (int i = 0; i < e->in_count; i++) {
        if (find(e->kernel, e->summed, e->in[i]) < 0) {
            before->axes[count] = i;
            axes[count++] = e->in[i];
        }
    }
    for (int i = 0; i < e->summed; i++) {
        before->axes[count + i] = find(e->in, e->in_count, e->kernel[i]);
    }
    for (int i = 0; i < e->made; i++) {
        axes[count + i] = e->kernel[e->summed + i];
    }
    for (int i = 0; i < e->out_count; i++) {
        after->axes[i] = find(axes, e->out_count, e->out[i]);
    }
}

static int64_t product(const bwi_shape *shape, int first, int count)
{
    bwi_shape part = {.ndim = count};
    for (int i = 0; i < count; i++) {
        part.extent[i] = shape->extent[first + i];
    }
    return bwi_shape_count(&part);
}

/* The dense node sees the summed axes as one, and gives those it makes as one. */
static bw_node *add_nodes(const bwi_layer *layer, bwi_graph *graph, bw_node *x, const equation *e, const bwi_shape *kernel,
                          bwi_variable **variables, int count)
{
    bwi_permute_attributes before, after;
    find_orders(e, &before, &after);
    x = bwi_compose_permute(graph, layer->name, x, &before);
    if (!x) {
        return NULL;
    }
    int shared = e->in_count - e->summed;
    bwi_dense_attributes a = {.units = product(kernel, e->summed, e->made)};
    bwi_shape joined = {.ndim = shared + 1}, made = {.ndim = shared + e->made};
    for (int i = 0; i < shared; i++) {
        joined.extent[i] = made.extent[i] = x->shape.extent[i];
    }
    joined.extent[shared] = product(kernel, 0, e->summed);
    for (int i = 0; i < e->made; i++) {
        made.extent[shared + i] = kernel->extent[e->summed + i];
    }
    x = e->summed > 1 ? bwi_compose_reshape(graph, layer->name, x, &joined) : x;
    bw_node *node = bwi_graph_add(graph, &bwi_op_dense, layer->name, &a, sizeof a, &x, 1, variables, count);
    node = e->made > 1 ? bwi_compose_reshape(graph, layer->name, node, &made) : node;
    return bwi_compose_permute(graph, layer->name, node, &after);
}

/* Each part of the equation has a message of its own, so that a reader knows which argument to change. */
static bw_node *build(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    const bwi_argument_value *v = layer->values;
    const char *bias_axes = v[BIAS_AXES].text;
    bool biased = strcmp(bias_axes, "none") != 0;
    equation e;
    bwi_shape kernel, bias;
    char found[160];
    const bwi_shape *in = &inputs[0]->shape;
    if (!read_equation(v[EQUATION].text, in->ndim, &e)) {
        return bwi_fail_build(graph->ctx, BW_UNIMPLEMENTED, "layer %s: equation '%s' is not supported for an input of %s",
                              layer->name, v[EQUATION].text, bwi_format_shape(found, in->ndim, in->extent));
    }
    if (!find_kernel(layer, &e, in, &kernel)) {
        return bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT,
                              "layer %s: output_shape: expected an extent for each axis of '%s' that the input lacks", layer->name,
                              v[EQUATION].text);
    }
    if (biased && !find_bias(&e, bias_axes, &kernel, &bias)) {
        return bwi_fail_build(graph->ctx, BW_UNIMPLEMENTED,
                              "layer %s: equation '%s' with bias_axes=%s is not supported: expected all axes that it makes",
                              layer->name, v[EQUATION].text, bias_axes);
    }
    int64_t fan_in = product(&kernel, 0, e.summed), fan_out = product(&kernel, e.summed, e.made);
    bwi_variable *variables[2] = {
        bwi_layer_variable(graph, layer, "kernel", &kernel, KERNEL_INITIALIZER, KERNEL_REGULARIZER, fan_in, fan_out), NULL};
    if (biased) {
        variables[1] = bwi_layer_variable(graph, layer, "bias", &bias, BIAS_INITIALIZER, BIAS_REGULARIZER, fan_out, fan_out);
    }
    if (!variables[0] || (biased && !variables[1])) {
        return NULL;
    }
    variables[0]->input_axes = e.summed;
    bw_node *node = add_nodes(layer, graph, inputs[0], &e, &kernel, variables, 1 + biased);
    return bwi_activation_add(graph, layer->name, node, v[ACTIVATION].text);
}

const bwi_layer_row bwi_layer_einsum_dense = {"EinsumDense", "einsum_dense", "einsum_dense", arguments, COUNT, build, 0};
