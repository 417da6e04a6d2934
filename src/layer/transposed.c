/*
 * Conv1DTranspose, Conv2DTranspose and Conv3DTranspose: a convolution's backward pass, by which decoders enlarge images, with a
 * kernel (size, filters, in), initialised by glorot_uniform, and a bias of zeros.
 */
#include "layer/internal.h"

enum {
    FILTERS,
    KERNEL_SIZE,
    ACTIVATION,
    STRIDES,
    PADDING,
    OUTPUT_PADDING,
    DILATION_RATE,
    USE_BIAS,
    KERNEL_INITIALIZER,
    BIAS_INITIALIZER,
    KERNEL_REGULARIZER,
    BIAS_REGULARIZER,
    COUNT
};

static const bwi_argument arguments[COUNT] = {
    [FILTERS] = {"filters", NULL, BWI_INT, NULL, 1, 1e6, NULL},
    [KERNEL_SIZE] = {"kernel_size", NULL, BWI_INTS, NULL, 1, 1e4, NULL},
    [ACTIVATION] = {"activation", NULL, BWI_TEXT, "linear", 0, 0, NULL},
    [STRIDES] = {"strides", NULL, BWI_INTS, "1", 1, 1e4, NULL},
    [PADDING] = {"padding", NULL, BWI_TEXT, "valid", 0, 0, "valid same"},
    [OUTPUT_PADDING] = {"output_padding", NULL, BWI_INTS, "", 0, 1e4, NULL},
    [DILATION_RATE] = {"dilation_rate", NULL, BWI_INTS, "1", 1, 1e4, NULL},
    [USE_BIAS] = {"use_bias", NULL, BWI_BOOL, "true", 0, 0, NULL},
    [KERNEL_INITIALIZER] = {"kernel_initializer", NULL, BWI_CALL, "glorot_uniform", 0, 0, NULL},
    [BIAS_INITIALIZER] = {"bias_initializer", NULL, BWI_CALL, "zeros", 0, 0, NULL},
    [KERNEL_REGULARIZER] = {"kernel_regularizer", NULL, BWI_CALL, "none", 0, 0, NULL},
    [BIAS_REGULARIZER] = {"bias_regularizer", NULL, BWI_CALL, "none", 0, 0, NULL},
};

/* As Keras demands, the additional padding is less than the stride. */
static bool read_sizes(bwi_graph *graph, const bwi_layer *layer, int ndim, bwi_conv2d_transpose_attributes *a)
{
    const bwi_argument_value *v = layer->values;
    static const int64_t none[3] = {-1, -1, -1};
    if (!bwi_layer_sizes(graph, layer, ndim, KERNEL_SIZE, NULL, a->kernel) ||
        !bwi_layer_sizes(graph, layer, ndim, STRIDES, NULL, a->strides) ||
        !bwi_layer_sizes(graph, layer, ndim, DILATION_RATE, NULL, a->dilation) ||
        !bwi_layer_sizes(graph, layer, ndim, OUTPUT_PADDING, none, a->output_padding)) {
        return false;
    }
    for (int i = 0; i < (ndim == 4 ? 3 : 2); i++) {
        a->output_padding[i] = ndim == 2 && i == 0 ? -1 : a->output_padding[i];
        if (a->output_padding[i] >= a->strides[i] || (a->strides[i] > 1 && a->dilation[i] > 1)) {
            bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: %s", layer->name,
                           a->dilation[i] > 1 ? "strides and dilation_rate cannot both be above 1"
                                              : "output_padding must be below strides");
            return false;
        }
    }
    a->same = v[PADDING].text[0] == 's';
    return true;
}

/* The bias is a node of its own, since the convolution's backward pass has none. */
static bw_node *build(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    bw_node *x = inputs[0];
    int ndim = x->shape.ndim;
    const bwi_argument_value *v = layer->values;
    bwi_conv2d_transpose_attributes a = {.filters = v[FILTERS].integer};
    if (!read_sizes(graph, layer, ndim, &a)) {
        return NULL;
    }
    int64_t channels = x->shape.extent[ndim - 1], field = a.kernel[0] * a.kernel[1] * (ndim == 4 ? a.kernel[2] : 1);
    bwi_shape shape = bwi_convolution_kernel(a.kernel, ndim, a.filters, channels);
    bwi_variable *kernel = bwi_layer_variable(graph, layer, "kernel", &shape, KERNEL_INITIALIZER, KERNEL_REGULARIZER,
                                              field * a.filters, field * channels);
    bw_node *node = bwi_graph_add(graph, ndim == 4 ? &bwi_op_conv3d_transpose : &bwi_op_conv2d_transpose, layer->name, &a, sizeof a,
                                  &x, 1, &kernel, 1);
    if (v[USE_BIAS].flag) {
        shape = (bwi_shape){.ndim = 1, .extent = {a.filters}};
        bwi_variable *bias =
            bwi_layer_variable(graph, layer, "bias", &shape, BIAS_INITIALIZER, BIAS_REGULARIZER, a.filters, a.filters);
        bwi_channel_affine_attributes center = {.center = true};
        node = bwi_graph_add(graph, &bwi_op_channel_affine, layer->name, &center, sizeof center, &node, 1, &bias, 1);
    }
    return bwi_activation_add(graph, layer->name, node, v[ACTIVATION].text);
}

const bwi_layer_row bwi_layer_conv1d_transpose = {
    "Conv1DTranspose", "conv1d_transpose", "conv1d_transpose", arguments, COUNT, build, BWI_LAYER_LINE};
const bwi_layer_row bwi_layer_conv2d_transpose = {
    "Conv2DTranspose", "conv2d_transpose", "conv2d_transpose", arguments, COUNT, build, BWI_LAYER_IMAGE};
const bwi_layer_row bwi_layer_conv3d_transpose = {
    "Conv3DTranspose", "conv3d_transpose", "conv3d_transpose", arguments, COUNT, build, BWI_LAYER_VOLUME};
