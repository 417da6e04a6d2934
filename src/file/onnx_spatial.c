/* Writes ONNX for operators on images and sequences: convolutions, pooling, padding, upsampling. Channels come first. */
#include "file/onnx.h"

#include <string.h>

static const char *first(bwi_onnx *o, const bw_node *node)
{
    return bwi_onnx_of(o, node->input[0], BWI_ONNX_FIRST);
}

static const char *result(bwi_onnx *o, const bw_node *node)
{
    return bwi_onnx_result(o, node, BWI_ONNX_FIRST);
}

/* A sequence has only a width, so its sizes begin at the second. */
static int from_axis(const bw_node *node)
{
    return node->input[0]->shape.ndim == 2 ? 1 : 0;
}

/* Puts the sizes in the order of the axes: the depth, if there is one, comes before the height. Returns how many there are. */
static int in_order(const int64_t sizes[3], int from, bool volume, int64_t list[3])
{
    int count = 0;
    if (volume) {
        list[count++] = sizes[2];
    }
    for (int i = from; i < 2; i++) {
        list[count++] = sizes[i];
    }
    return count;
}

static void put_sizes(bwi_onnx *o, const bwi_sliding *w, int from, bool dilated)
{
    bool volume = w->size[2] > 0;
    int64_t list[3], pads[6];
    int axes = in_order(w->before, from, volume, pads);
    (void)in_order(w->after, from, volume, pads + axes);
    (void)in_order(w->size, from, volume, list);
    bwi_onnx_put_list(o, "kernel_shape", axes, list);
    (void)in_order(w->strides, from, volume, list);
    bwi_onnx_put_list(o, "strides", axes, list);
    if (dilated) {
        (void)in_order(w->dilation, from, volume, list);
        bwi_onnx_put_list(o, "dilations", axes, list);
    }
    bwi_onnx_put_list(o, "pads", 2 * axes, pads);
}

/* Writes Keras's [positions][channels of a group][filters] as [filters][channels of a group][positions]. */
static const char *put_kernel(bwi_onnx *o, const bw_node *node, const bwi_sliding *w, int from)
{
    const bwi_conv2d_attributes *a = node->attributes;
    bwi_values values = {.variable = node->variable[0], .filters = a->filters, .channels = w->channels / a->groups};
    int64_t shape[5] = {values.filters, values.channels};
    int axes = in_order(w->size, from, w->size[2] > 0, shape + 2);
    return bwi_onnx_values(o, &values, 2 + axes, shape);
}

static void put_conv(bwi_onnx *o, const bw_node *node)
{
    const bwi_conv2d_attributes *a = node->attributes;
    bwi_sliding w = bwi_export_convolution(node);
    int from = from_axis(node);
    const char *x = first(o, node), *kernel = put_kernel(o, node, &w, from);
    const char *bias = node->variables > 1 ? bwi_onnx_variable(o, node->variable[1]) : NULL;
    bwi_onnx_begin(o, "Conv", (const char *[]){x, kernel, bias, NULL}, result(o, node));
    put_sizes(o, &w, from, true);
    bwi_onnx_put(o, "group", a->groups);
    bwi_onnx_end(o);
}

/* ONNX's output has (in - 1) stride + kernel - pads + output_padding numbers along an axis. Keras's kernel
 * [positions][filters][channels] becomes [channels][filters][positions]. */
static void put_transposed(bwi_onnx *o, const bw_node *node)
{
    const bwi_conv2d_transpose_attributes *a = node->attributes;
    const bwi_shape *in = &node->input[0]->shape, *out = &node->shape;
    bool volume = a->kernel[2] > 0;
    int from = from_axis(node);
    int64_t pads[6], more[3], kernels[3], strides[3], dilation[3];
    int axes = in_order(a->kernel, from, volume, kernels);
    (void)in_order(a->strides, from, volume, strides);
    (void)in_order(a->dilation, from, volume, dilation);
    for (int i = 0; i < axes; i++) {
        int64_t reach = (kernels[i] - 1) * dilation[i];
        int64_t all = out->extent[i] - (in->extent[i] - 1) * strides[i] - 1 + reach, half = all / 2 + all % 2;
        int64_t left = a->same && half < reach ? half : reach, rest = reach - (all - left);
        pads[i] = reach - left;
        pads[axes + i] = rest > 0 ? rest : 0;
        more[i] = rest < 0 ? -rest : 0;
    }
    bwi_values values = {.variable = node->variable[0], .filters = in->extent[in->ndim - 1], .channels = a->filters};
    int64_t shape[5] = {values.filters, values.channels};
    (void)in_order(a->kernel, from, volume, shape + 2);
    const char *x = first(o, node), *kernel = bwi_onnx_values(o, &values, 2 + axes, shape);
    bwi_onnx_begin(o, "ConvTranspose", (const char *[]){x, kernel, NULL}, result(o, node));
    bwi_onnx_put_list(o, "kernel_shape", axes, kernels);
    bwi_onnx_put_list(o, "strides", axes, strides);
    bwi_onnx_put_list(o, "dilations", axes, dilation);
    bwi_onnx_put_list(o, "pads", 2 * axes, pads);
    bwi_onnx_put_list(o, "output_padding", axes, more);
    bwi_onnx_end(o);
}

static void put_pool(bwi_onnx *o, const bw_node *node, const char *type)
{
    bwi_sliding w = bwi_export_pooling(node);
    const char *x = first(o, node);
    bwi_onnx_begin(o, type, (const char *[]){x, NULL}, result(o, node));
    put_sizes(o, &w, from_axis(node), false);
    bwi_onnx_end(o);
}

static void put_maxpool(bwi_onnx *o, const bw_node *node)
{
    put_pool(o, node, "MaxPool");
}

static void put_avgpool(bwi_onnx *o, const bw_node *node)
{
    put_pool(o, node, "AveragePool"); /* by default, padding is not counted */
}

static void put_global_maxpool(bwi_onnx *o, const bw_node *node)
{
    const char *x = first(o, node);
    bwi_onnx_add(o, "GlobalMaxPool", result(o, node), x, NULL);
}

/* Whether anything but a convolution takes the node's values. */
static bool feeds_others(const bwi_onnx *o, const bw_node *node)
{
    bool others = false;
    for (int n = node->number + 1; n < o->model->graph.count && !others; n++) {
        const bw_node *to = o->model->graph.nodes[n];
        for (int k = 0; k < to->inputs && !others; k++) {
            others = to->input[k] == node && to->op != &bwi_op_conv2d && to->op != &bwi_op_depthwise;
        }
    }
    return others;
}

/* Negative amounts crop. If Pad is directly before a pool, ONNX Runtime treats its zeros as the pool's own padding, which counts
 * as no value at all. So channels stay last there, and the change of order separates the two. */
static void put_pad(bwi_onnx *o, const bw_node *node)
{
    const bwi_pad2d_attributes *a = node->attributes;
    const int64_t amounts[8] = {0, 0, a->amount[0][0], a->amount[1][0], 0, 0, a->amount[0][1], a->amount[1][1]};
    const int64_t last[8] = {0, a->amount[0][0], a->amount[1][0], 0, 0, a->amount[0][1], a->amount[1][1], 0};
    bwi_onnx_order order = feeds_others(o, node) ? BWI_ONNX_LAST : BWI_ONNX_FIRST;
    bwi_onnx_name pads;
    const char *x = bwi_onnx_of(o, node->input[0], order);
    bwi_onnx_wholes(o, pads, 8, order == BWI_ONNX_LAST ? last : amounts);
    bwi_onnx_add(o, "Pad", bwi_onnx_result(o, node, order), x, pads, NULL);
}

static void put_upsample(bwi_onnx *o, const bw_node *node)
{
    const bwi_upsample2d_attributes *a = node->attributes;
    int64_t four = 4;
    const float factors[4] = {1, 1, (float)a->size[0], (float)a->size[1]};
    bwi_onnx_name scales = "";
    const char *x = first(o, node);
    bwi_onnx_floats(o, scales, 1, &four, factors);
    bwi_onnx_begin(o, "Resize", (const char *[]){x, "", scales, NULL}, result(o, node));
    bwi_onnx_put_text(o, "mode", a->bilinear ? "linear" : "nearest");
    bwi_onnx_put_text(o, "coordinate_transformation_mode", a->bilinear ? "half_pixel" : "asymmetric");
    if (!a->bilinear) {
        bwi_onnx_put_text(o, "nearest_mode", "floor");
    }
    bwi_onnx_end(o);
}

/* The matrix of weights times the values, whose axes from the resampled one on are two. */
static void put_resample(bwi_onnx *o, const bw_node *node)
{
    const bwi_resample_attributes *a = node->attributes;
    const bwi_shape *in = &node->input[0]->shape;
    int64_t matrix[2] = {a->extent, in->extent[a->axis]};
    bwi_shape flat = {.ndim = a->axis + 2};
    bwi_onnx_name weights = "", before, product;
    float *values = bwi_export_resampling(o->ctx, node);
    if (!values) {
        o->status = BW_RESOURCE_EXHAUSTED;
        return;
    }
    bwi_onnx_floats(o, weights, 2, matrix, values);
    bwi_release(o->ctx, values);
    for (int i = 0; i < flat.ndim; i++) {
        flat.extent[i] = i <= a->axis ? in->extent[i] : bwi_shape_around(in, a->axis).inner;
    }
    bwi_onnx_reshape(o, bwi_onnx_of(o, node->input[0], BWI_ONNX_LAST), bwi_onnx_new(o, before), &flat);
    bwi_onnx_add(o, "MatMul", bwi_onnx_new(o, product), weights, before, NULL);
    bwi_onnx_reshape(o, product, bwi_onnx_result(o, node, BWI_ONNX_LAST), &node->shape);
}

const bwi_onnx_row bwi_onnx_spatial[] = {
    {&bwi_op_conv2d, put_conv},
    {&bwi_op_depthwise, put_conv},
    {&bwi_op_conv2d_transpose, put_transposed},
    {&bwi_op_conv3d, put_conv},
    {&bwi_op_conv3d_transpose, put_transposed},
    {&bwi_op_maxpool2d, put_maxpool},
    {&bwi_op_avgpool2d, put_avgpool},
    {&bwi_op_global_maxpool, put_global_maxpool},
    {&bwi_op_pad2d, put_pad},
    {&bwi_op_upsample2d, put_upsample},
    {&bwi_op_resample, put_resample},
    {NULL, NULL},
};
