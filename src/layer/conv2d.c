/* Conv2D: kernel (height, width, in/groups, filters), glorot_uniform; bias, zeros. */
#include "layer/rows.h"

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

static const bwi_argument arguments[COUNT] = {
    [FILTERS] = {"filters", NULL, BWI_INT, NULL, 1, 1e6, NULL},
    [KERNEL_SIZE] = {"kernel_size", NULL, BWI_INTS, NULL, 1, 1e4, NULL},
    [ACTIVATION] = {"activation", NULL, BWI_TEXT, "linear", 0, 0, NULL},
    [STRIDES] = {"strides", NULL, BWI_INTS, "1", 1, 1e4, NULL},
    [PADDING] = {"padding", NULL, BWI_TEXT, "valid", 0, 0, "valid same"},
    [DILATION_RATE] = {"dilation_rate", NULL, BWI_INTS, "1", 1, 1e4, NULL},
    [GROUPS] = {"groups", NULL, BWI_INT, "1", 1, 1e6, NULL},
    [USE_BIAS] = {"use_bias", NULL, BWI_BOOL, "true", 0, 0, NULL},
    [KERNEL_INITIALIZER] = {"kernel_initializer", NULL, BWI_CALL, "glorot_uniform", 0, 0, NULL},
    [BIAS_INITIALIZER] = {"bias_initializer", NULL, BWI_CALL, "zeros", 0, 0, NULL},
    [KERNEL_REGULARIZER] = {"kernel_regularizer", NULL, BWI_CALL, "none", 0, 0, NULL},
    [BIAS_REGULARIZER] = {"bias_regularizer", NULL, BWI_CALL, "none", 0, 0, NULL},
};

static bw_node *build(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    bw_node *x = inputs[0];
    const bwi_argument_value *v = layer->values;
    bwi_conv2d_attributes a = {.filters = v[FILTERS].integer, .groups = v[GROUPS].integer, .same = v[PADDING].text[0] == 's'};
    if (!bwi_layer_pair(graph, layer, KERNEL_SIZE, NULL, a.kernel) || !bwi_layer_pair(graph, layer, STRIDES, NULL, a.strides) ||
        !bwi_layer_pair(graph, layer, DILATION_RATE, NULL, a.dilation)) {
        return NULL;
    }
    char text[160];
    if (x->shape.rank != 3) {
        return bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: expected an image (height, width, channels), got %s",
                              layer->name, bwi_format_shape(text, x->shape.rank, x->shape.extent));
    }
    int64_t channels = x->shape.extent[2];
    if (channels % a.groups || a.filters % a.groups) {
        return bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT,
                              "layer %s: %lld channels and %lld filters do not divide into %lld groups", layer->name,
                              (long long)channels, (long long)a.filters, (long long)a.groups);
    }
    bwi_shape kernel = {.rank = 4, .extent = {a.kernel[0], a.kernel[1], channels / a.groups, a.filters}};
    bwi_shape bias = {.rank = 1, .extent = {a.filters}};
    int64_t field = a.kernel[0] * a.kernel[1];
    bwi_variable *variables[2] = {bwi_layer_variable(graph, layer, "kernel", &kernel, KERNEL_INITIALIZER, KERNEL_REGULARIZER,
                                                     field * kernel.extent[2], field * a.filters)};
    int count = 1;
    if (v[USE_BIAS].flag) {
        variables[count++] =
            bwi_layer_variable(graph, layer, "bias", &bias, BIAS_INITIALIZER, BIAS_REGULARIZER, a.filters, a.filters);
    }
    bw_node *node = bwi_graph_add(graph, &bwi_op_conv2d, layer->name, &a, sizeof a, &x, 1, variables, count);
    return bwi_activation_add(graph, layer->name, node, v[ACTIVATION].text);
}

const bwi_layer_row bwi_layer_conv2d = {"Conv2D", "conv2d", "conv2d conv", arguments, COUNT, build, false};
