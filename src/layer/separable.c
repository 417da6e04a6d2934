/*
 * SeparableConv1D and SeparableConv2D: a depthwise convolution without bias, then one of size 1 over all channels. Variables:
 * depthwise_kernel (size, in, multiplier), pointwise_kernel (1, in x multiplier, filters), bias.
 */
#include "layer/internal.h"

enum {
    FILTERS,
    KERNEL_SIZE,
    ACTIVATION,
    STRIDES,
    PADDING,
    DILATION_RATE,
    DEPTH_MULTIPLIER,
    USE_BIAS,
    DEPTHWISE_INITIALIZER,
    POINTWISE_INITIALIZER,
    BIAS_INITIALIZER,
    DEPTHWISE_REGULARIZER,
    POINTWISE_REGULARIZER,
    BIAS_REGULARIZER,
    COUNT
};

/* clang-format off */
#define ARGUMENTS(paddings)                                                                                \
    {                                                                                                      \
        [FILTERS] = {"filters", NULL, BWI_INT, NULL, 1, 1e6, NULL},                                        \
        [KERNEL_SIZE] = {"kernel_size", NULL, BWI_INTS, NULL, 1, 1e4, NULL},                               \
        [ACTIVATION] = {"activation", NULL, BWI_TEXT, "linear", 0, 0, NULL},                               \
        [STRIDES] = {"strides", NULL, BWI_INTS, "1", 1, 1e4, NULL},                                        \
        [PADDING] = {"padding", NULL, BWI_TEXT, "valid", 0, 0, paddings},                                  \
        [DILATION_RATE] = {"dilation_rate", NULL, BWI_INTS, "1", 1, 1e4, NULL},                            \
        [DEPTH_MULTIPLIER] = {"depth_multiplier", NULL, BWI_INT, "1", 1, 1e4, NULL},                       \
        [USE_BIAS] = {"use_bias", NULL, BWI_BOOL, "true", 0, 0, NULL},                                     \
        [DEPTHWISE_INITIALIZER] = {"depthwise_initializer", NULL, BWI_CALL, "glorot_uniform", 0, 0, NULL}, \
        [POINTWISE_INITIALIZER] = {"pointwise_initializer", NULL, BWI_CALL, "glorot_uniform", 0, 0, NULL}, \
        [BIAS_INITIALIZER] = {"bias_initializer", NULL, BWI_CALL, "zeros", 0, 0, NULL},                    \
        [DEPTHWISE_REGULARIZER] = {"depthwise_regularizer", NULL, BWI_CALL, "none", 0, 0, NULL},           \
        [POINTWISE_REGULARIZER] = {"pointwise_regularizer", NULL, BWI_CALL, "none", 0, 0, NULL},           \
        [BIAS_REGULARIZER] = {"bias_regularizer", NULL, BWI_CALL, "none", 0, 0, NULL},                     \
    }
/* clang-format on */

static const bwi_argument line_arguments[COUNT] = ARGUMENTS("valid same causal");
static const bwi_argument image_arguments[COUNT] = ARGUMENTS("valid same");

/* Strides, padding and dilation belong to the depthwise part. */
static bw_node *build(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    bw_node *x = inputs[0];
    int ndim = x->shape.ndim;
    const bwi_argument_value *v = layer->values;
    bwi_conv2d_attributes depthwise = {.groups = 1},
                          pointwise = {
                              .filters = v[FILTERS].integer, .kernel = {1, 1}, .strides = {1, 1}, .dilation = {1, 1}, .groups = 1};
    bwi_convolution_indices at = {.strides = STRIDES, .padding = PADDING, .dilation = DILATION_RATE};
    if (!bwi_convolution_sizes(graph, layer, ndim, KERNEL_SIZE, &at, &depthwise)) {
        return NULL;
    }
    int64_t channels = x->shape.extent[ndim - 1], multiplier = v[DEPTH_MULTIPLIER].integer;
    int64_t between = channels * multiplier, field = depthwise.kernel[0] * depthwise.kernel[1];
    depthwise.groups = channels;
    depthwise.filters = between;
    bwi_shape deep = bwi_convolution_kernel(depthwise.kernel, ndim, channels, multiplier);
    bwi_shape wide = bwi_convolution_kernel(pointwise.kernel, ndim, between, pointwise.filters);
    bwi_shape bias = {.ndim = 1, .extent = {pointwise.filters}};
    bwi_variable *first = bwi_layer_variable(graph, layer, "depthwise_kernel", &deep, DEPTHWISE_INITIALIZER, DEPTHWISE_REGULARIZER,
                                             field * channels, field * multiplier);
    bwi_variable *second[2] = {bwi_layer_variable(graph, layer, "pointwise_kernel", &wide, POINTWISE_INITIALIZER,
                                                  POINTWISE_REGULARIZER, between, pointwise.filters)};
    int count = 1;
    if (v[USE_BIAS].flag) {
        second[count++] = bwi_layer_variable(graph, layer, "bias", &bias, BIAS_INITIALIZER, BIAS_REGULARIZER, pointwise.filters,
                                             pointwise.filters);
    }
    const bwi_op *op = bwi_convolution_depthwise_op(x, &depthwise, multiplier);
    x = bwi_convolution_take_padding(x, &depthwise);
    bw_node *node = bwi_graph_add(graph, op, layer->name, &depthwise, sizeof depthwise, &x, 1, &first, 1);
    node = bwi_graph_add(graph, &bwi_op_conv2d, layer->name, &pointwise, sizeof pointwise, &node, 1, second, count);
    return bwi_activation_add(graph, layer->name, node, v[ACTIVATION].text);
}

const bwi_layer_row bwi_layer_separable_conv1d = {
    "SeparableConv1D", "separable_conv1d", "separable_conv1d", line_arguments, COUNT, build, BWI_LAYER_LINE};
const bwi_layer_row bwi_layer_separable_conv2d = {
    "SeparableConv2D", "separable_conv2d", "separable_conv2d", image_arguments, COUNT, build, BWI_LAYER_IMAGE};
