/*
 * Conv1D, Conv2D and Conv3D have a kernel (size, in/groups, filters), initialised by glorot_uniform, and a bias of zeros.
 * DepthwiseConv1D and DepthwiseConv2D have a kernel (size, in, multiplier): every channel is convolved separately into `multiplier`
 * outputs.
 */
#include "layer/internal.h"

enum {
    FILTERS,
    KERNEL_SIZE,
    ACTIVATION,
    STRIDES,
    PADDING,
    DILATION_RATE,
    GROUPS,
    USE_BIAS,
    KERNEL_INITIALIZER,
    BIAS_INITIALIZER,
    KERNEL_REGULARIZER,
    BIAS_REGULARIZER,
    COUNT
};

/* clang-format off */
#define ARGUMENTS(paddings)                                                                      \
    [FILTERS] = {"filters", NULL, BWI_INT, NULL, 1, 1e6, NULL},                                  \
    [KERNEL_SIZE] = {"kernel_size", NULL, BWI_INTS, NULL, 1, 1e4, NULL},                         \
    [ACTIVATION] = {"activation", NULL, BWI_TEXT, "linear", 0, 0, NULL},                         \
    [STRIDES] = {"strides", NULL, BWI_INTS, "1", 1, 1e4, NULL},                                  \
    [PADDING] = {"padding", NULL, BWI_TEXT, "valid", 0, 0, paddings},                            \
    [DILATION_RATE] = {"dilation_rate", NULL, BWI_INTS, "1", 1, 1e4, NULL},                      \
    [GROUPS] = {"groups", NULL, BWI_INT, "1", 1, 1e6, NULL},                                     \
    [USE_BIAS] = {"use_bias", NULL, BWI_BOOL, "true", 0, 0, NULL},                               \
    [KERNEL_INITIALIZER] = {"kernel_initializer", NULL, BWI_CALL, "glorot_uniform", 0, 0, NULL}, \
    [BIAS_INITIALIZER] = {"bias_initializer", NULL, BWI_CALL, "zeros", 0, 0, NULL},              \
    [KERNEL_REGULARIZER] = {"kernel_regularizer", NULL, BWI_CALL, "none", 0, 0, NULL},           \
    [BIAS_REGULARIZER] = {"bias_regularizer", NULL, BWI_CALL, "none", 0, 0, NULL}
/* clang-format on */

static const bwi_argument line_arguments[COUNT] = {ARGUMENTS("valid same causal")};
static const bwi_argument image_arguments[COUNT] = {ARGUMENTS("valid same")};

static const bwi_convolution_indices conv_indices = {
    ACTIVATION,         STRIDES,         PADDING, DILATION_RATE, USE_BIAS, KERNEL_INITIALIZER, BIAS_INITIALIZER,
    KERNEL_REGULARIZER, BIAS_REGULARIZER};

bool bwi_convolution_sizes(bwi_graph *graph, const bwi_layer *layer, int ndim, int kernel_size, const bwi_convolution_indices *at,
                           bwi_conv2d_attributes *a)
{
    const char *padding = layer->values[at->padding].text;
    if (!bwi_layer_sizes(graph, layer, ndim, kernel_size, NULL, a->kernel) ||
        !bwi_layer_sizes(graph, layer, ndim, at->strides, NULL, a->strides) ||
        !bwi_layer_sizes(graph, layer, ndim, at->dilation, NULL, a->dilation)) {
        return false;
    }
    a->same = padding[0] == 's';
    a->pad[1][0] = padding[0] == 'c' ? (a->kernel[1] - 1) * a->dilation[1] : 0;
    return true;
}

bwi_shape bwi_convolution_kernel(const int64_t *size, int ndim, int64_t in, int64_t out)
{
    bwi_shape line = {.ndim = 3, .extent = {size[1], in, out}}, image = {.ndim = 4, .extent = {size[0], size[1], in, out}};
    return ndim == 2 ? line : ndim == 3 ? image : (bwi_shape){.ndim = 5, .extent = {size[2], size[0], size[1], in, out}};
}

bw_node *bwi_convolution_take_padding(bw_node *x, bwi_conv2d_attributes *a)
{
    const bwi_pad2d_attributes *zeros = bwi_pad2d_of(x);
    if (!zeros || a->same) {
        return x;
    }
    for (int i = 0; i < 2; i++) {
        for (int k = 0; k < 2; k++) {
            if (zeros->amount[i][k] < 0 || zeros->amount[i][k] > (a->kernel[i] - 1) * a->dilation[i]) {
                return x;
            }
        }
    }
    for (int i = 0; i < 2; i++) {
        a->pad[i][0] = zeros->amount[i][0];
        a->pad[i][1] = zeros->amount[i][1];
    }
    return x->input[0];
}

static bw_node *convolve(const bwi_layer *layer, bwi_graph *graph, const bwi_op *op, bw_node *x, bwi_conv2d_attributes *a,
                         const bwi_shape *kernel, const bwi_convolution_indices *at)
{
    const bwi_argument_value *v = layer->values;
    bwi_shape bias = {.ndim = 1, .extent = {a->filters}};
    int64_t field = a->kernel[0] * a->kernel[1] * (a->kernel[2] ? a->kernel[2] : 1);
    bwi_variable *variables[2] = {bwi_layer_variable(graph, layer, "kernel", kernel, at->kernel_initializer, at->kernel_regularizer,
                                                     field * kernel->extent[kernel->ndim - 2],
                                                     field * kernel->extent[kernel->ndim - 1])};
    int count = 1;
    if (v[at->use_bias].flag) {
        variables[count++] =
            bwi_layer_variable(graph, layer, "bias", &bias, at->bias_initializer, at->bias_regularizer, a->filters, a->filters);
    }
    x = bwi_convolution_take_padding(x, a);
    bw_node *node = bwi_graph_add(graph, op, layer->name, a, sizeof *a, &x, 1, variables, count);
    return bwi_activation_add(graph, layer->name, node, v[at->activation].text);
}

/* For large or dilated depthwise kernels, oneDNN's gradient of the weights is 15 times slower than its other passes, and with
 * AVX-512 it fills up every channel to 16. It does so, too, where the image is smaller than the kernel. */
const bwi_op *bwi_convolution_depthwise_op(const bw_node *x, const bwi_conv2d_attributes *a, int64_t multiplier)
{
    const bwi_shape *image = bwi_pad2d_of(x) ? &x->input[0]->shape : &x->shape;
    bool large = false;
    for (int i = 0; i < 2 && image->ndim == 3; i++) {
        large = large || a->kernel[i] > 3 || a->dilation[i] > 1 || a->kernel[i] > image->extent[i];
    }
    return multiplier == 1 && large ? &bwi_op_depthwise : &bwi_op_conv2d;
}

static bw_node *build(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    bw_node *x = inputs[0];
    int ndim = x->shape.ndim;
    bwi_conv2d_attributes a = {.filters = layer->values[FILTERS].integer, .groups = layer->values[GROUPS].integer};
    if (!bwi_convolution_sizes(graph, layer, ndim, KERNEL_SIZE, &conv_indices, &a)) {
        return NULL;
    }
    int64_t channels = x->shape.extent[ndim - 1];
    if (channels % a.groups || a.filters % a.groups) {
        return bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT,
                              "layer %s: %lld channels and %lld filters do not divide into %lld groups", layer->name,
                              (long long)channels, (long long)a.filters, (long long)a.groups);
    }
    bwi_shape kernel = bwi_convolution_kernel(a.kernel, ndim, channels / a.groups, a.filters);
    bool each = a.groups > 1 && a.groups == channels && a.groups == a.filters; /* which has the same order in memory */
    const bwi_op *op = ndim == 4 ? &bwi_op_conv3d : each ? bwi_convolution_depthwise_op(x, &a, 1) : &bwi_op_conv2d;
    return convolve(layer, graph, op, x, &a, &kernel, &conv_indices);
}

const bwi_layer_row bwi_layer_conv3d = {"Conv3D", "conv3d", "conv3d", image_arguments, COUNT, build, BWI_LAYER_VOLUME};
const bwi_layer_row bwi_layer_conv1d = {"Conv1D", "conv1d", "conv1d", line_arguments, COUNT, build, BWI_LAYER_LINE};
const bwi_layer_row bwi_layer_conv2d = {"Conv2D", "conv2d", "conv2d conv", image_arguments, COUNT, build, BWI_LAYER_IMAGE};

enum {
    D_KERNEL_SIZE,
    D_ACTIVATION,
    D_STRIDES,
    D_PADDING,
    D_DEPTH_MULTIPLIER,
    D_DILATION_RATE,
    D_USE_BIAS,
    D_DEPTHWISE_INITIALIZER,
    D_BIAS_INITIALIZER,
    D_DEPTHWISE_REGULARIZER,
    D_BIAS_REGULARIZER,
    D_COUNT
};

/* clang-format off */
#define DEPTHWISE_ARGUMENTS(paddings)                                                                        \
    {                                                                                                        \
        [D_KERNEL_SIZE] = {"kernel_size", NULL, BWI_INTS, NULL, 1, 1e4, NULL},                               \
        [D_ACTIVATION] = {"activation", NULL, BWI_TEXT, "linear", 0, 0, NULL},                               \
        [D_STRIDES] = {"strides", NULL, BWI_INTS, "1", 1, 1e4, NULL},                                        \
        [D_PADDING] = {"padding", NULL, BWI_TEXT, "valid", 0, 0, paddings},                                  \
        [D_DEPTH_MULTIPLIER] = {"depth_multiplier", NULL, BWI_INT, "1", 1, 1e4, NULL},                       \
        [D_DILATION_RATE] = {"dilation_rate", NULL, BWI_INTS, "1", 1, 1e4, NULL},                            \
        [D_USE_BIAS] = {"use_bias", NULL, BWI_BOOL, "true", 0, 0, NULL},                                     \
        [D_DEPTHWISE_INITIALIZER] = {"depthwise_initializer", NULL, BWI_CALL, "glorot_uniform", 0, 0, NULL}, \
        [D_BIAS_INITIALIZER] = {"bias_initializer", NULL, BWI_CALL, "zeros", 0, 0, NULL},                    \
        [D_DEPTHWISE_REGULARIZER] = {"depthwise_regularizer", NULL, BWI_CALL, "none", 0, 0, NULL},           \
        [D_BIAS_REGULARIZER] = {"bias_regularizer", NULL, BWI_CALL, "none", 0, 0, NULL},                     \
    }
/* clang-format on */

static const bwi_argument depthwise_line_arguments[D_COUNT] = DEPTHWISE_ARGUMENTS("valid same causal");
static const bwi_argument depthwise_arguments[D_COUNT] = DEPTHWISE_ARGUMENTS("valid same");

static const bwi_convolution_indices depthwise_indices = {D_ACTIVATION,       D_STRIDES,
                                                          D_PADDING,          D_DILATION_RATE,
                                                          D_USE_BIAS,         D_DEPTHWISE_INITIALIZER,
                                                          D_BIAS_INITIALIZER, D_DEPTHWISE_REGULARIZER,
                                                          D_BIAS_REGULARIZER};

static bw_node *build_each(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    bw_node *x = inputs[0];
    int ndim = x->shape.ndim;
    bwi_conv2d_attributes a = {.groups = 1};
    if (!bwi_convolution_sizes(graph, layer, ndim, D_KERNEL_SIZE, &depthwise_indices, &a)) {
        return NULL;
    }
    int64_t channels = x->shape.extent[ndim - 1], multiplier = layer->values[D_DEPTH_MULTIPLIER].integer;
    a.groups = channels;
    a.filters = channels * multiplier;
    bwi_shape kernel = bwi_convolution_kernel(a.kernel, ndim, channels, multiplier);
    return convolve(layer, graph, bwi_convolution_depthwise_op(x, &a, multiplier), x, &a, &kernel, &depthwise_indices);
}

const bwi_layer_row bwi_layer_depthwise_conv1d = {
    "DepthwiseConv1D", "depthwise_conv1d", "depthwise_conv1d", depthwise_line_arguments, D_COUNT, build_each, BWI_LAYER_LINE};
const bwi_layer_row bwi_layer_depthwise_conv2d = {"DepthwiseConv2D", "depthwise_conv2d", "depthwise_conv2d", depthwise_arguments,
                                                  D_COUNT,           build_each,         BWI_LAYER_IMAGE};
