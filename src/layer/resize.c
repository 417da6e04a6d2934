/*
 * ZeroPadding2D, Cropping2D, UpSampling2D change the height and width of images; ZeroPadding1D, Cropping1D, UpSampling1D the length
 * of sequences, as images of one row.
 */
#include "layer/internal.h"

#include <string.h>

enum { AMOUNT, COUNT };

static const bwi_argument padding_arguments[COUNT] = {[AMOUNT] = {"padding", NULL, BWI_INTS, "1", 0, 1e6, NULL}};
static const bwi_argument cropping_arguments[COUNT] = {[AMOUNT] = {"cropping", NULL, BWI_INTS, "0", 0, 1e6, NULL}};

/* Keras accepts one number for all sides, two for rows and columns, or four: ((top, bottom), (left, right)). */
static bw_node *build(const bwi_layer *layer, bwi_graph *graph, bw_node *x, int64_t sign)
{
    const bwi_argument_value *v = &layer->values[AMOUNT];
    if (v->count != 1 && v->count != 2 && v->count != 4) {
        return bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT,
                              "layer %s: %s: expected one number, two or ((top, bottom), (left, right)), got %d", layer->name,
                              layer->row->arguments[AMOUNT].name, v->count);
    }
    bwi_pad2d_attributes a;
    for (int i = 0; i < 4; i++) {
        a.amount[i / 2][i % 2] = sign * v->integers[v->count == 4 ? i : v->count == 2 ? i / 2 : 0];
    }
    return bwi_graph_add(graph, &bwi_op_pad2d, layer->name, &a, sizeof a, &x, 1, NULL, 0);
}

static bw_node *build_padding(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    return build(layer, graph, inputs[0], 1);
}

static bw_node *build_cropping(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    return build(layer, graph, inputs[0], -1);
}

const bwi_layer_row bwi_layer_zero_padding2d = {"ZeroPadding2D", "zero_padding2d", "zero_padding2d", padding_arguments,
                                                COUNT,           build_padding,    BWI_LAYER_IMAGE};
const bwi_layer_row bwi_layer_cropping2d = {"Cropping2D", "cropping2d",   "cropping2d",   cropping_arguments,
                                            COUNT,        build_cropping, BWI_LAYER_IMAGE};

/* ---- CenterCrop ---- */

enum { HEIGHT, WIDTH, CENTER_COUNT };

static const bwi_argument center_arguments[CENTER_COUNT] = {
    [HEIGHT] = {"height", NULL, BWI_INT, NULL, 1, 1e6, NULL}, [WIDTH] = {"width", NULL, BWI_INT, NULL, 1, 1e6, NULL}};

/* What is left over is cut off before and after, one more after if it is odd. Keras resizes smaller images. */
static bw_node *build_center(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    bw_node *x = inputs[0];
    bwi_pad2d_attributes a;
    for (int i = 0; i < 2; i++) {
        int64_t rest = x->shape.extent[i] - layer->values[i].integer;
        if (rest < 0) {
            return bwi_fail_build(graph->ctx, BW_UNIMPLEMENTED,
                                  "layer %s: images smaller than the crop, which Keras resizes, are not supported", layer->name);
        }
        a.amount[i][0] = -(rest / 2);
        a.amount[i][1] = -(rest - rest / 2);
    }
    return bwi_graph_add(graph, &bwi_op_pad2d, layer->name, &a, sizeof a, &x, 1, NULL, 0);
}

const bwi_layer_row bwi_layer_center_crop = {"CenterCrop", "center_crop", "center_crop",  center_arguments,
                                             CENTER_COUNT, build_center,  BWI_LAYER_IMAGE};

/* ---- Sequences ---- */

/* One node of an op on images, between the views of a sequence as an image and back. */
static bw_node *on_line(const bwi_layer *layer, bwi_graph *graph, bw_node *x, const bwi_op *op, const void *attributes,
                        size_t bytes)
{
    bwi_shape image = {.ndim = 3, .extent = {1, x->shape.extent[0], x->shape.extent[1]}};
    bw_node *node = bwi_compose_reshape(graph, layer->name, x, &image);
    node = bwi_graph_add(graph, op, layer->name, attributes, bytes, &node, 1, NULL, 0);
    if (!node) {
        return NULL;
    }
    bwi_shape line = {.ndim = 2, .extent = {node->shape.extent[1], node->shape.extent[2]}};
    return bwi_compose_reshape(graph, layer->name, node, &line);
}

static bw_node *build_line(const bwi_layer *layer, bwi_graph *graph, bw_node *x, int64_t sign)
{
    int64_t ends[2];
    if (!bwi_layer_pair(graph, layer, AMOUNT, NULL, ends)) {
        return NULL;
    }
    bwi_pad2d_attributes a = {.amount = {{0, 0}, {sign * ends[0], sign * ends[1]}}};
    return on_line(layer, graph, x, &bwi_op_pad2d, &a, sizeof a);
}

static bw_node *build_line_padding(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    return build_line(layer, graph, inputs[0], 1);
}

static bw_node *build_line_cropping(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    return build_line(layer, graph, inputs[0], -1);
}

static const bwi_argument line_cropping_arguments[COUNT] = {[AMOUNT] = {"cropping", NULL, BWI_INTS, "1", 0, 1e6, NULL}};

const bwi_layer_row bwi_layer_zero_padding1d = {"ZeroPadding1D", "zero_padding1d",   "zero_padding1d", padding_arguments,
                                                COUNT,           build_line_padding, BWI_LAYER_LINE};
const bwi_layer_row bwi_layer_cropping1d = {"Cropping1D", "cropping1d",        "cropping1d",  line_cropping_arguments,
                                            COUNT,        build_line_cropping, BWI_LAYER_LINE};

static const bwi_argument line_up_arguments[COUNT] = {[AMOUNT] = {"size", NULL, BWI_INT, "2", 1, 1e4, NULL}};

static bw_node *build_line_up(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    bwi_upsample2d_attributes a = {.size = {1, layer->values[AMOUNT].integer}};
    return on_line(layer, graph, inputs[0], &bwi_op_upsample2d, &a, sizeof a);
}

const bwi_layer_row bwi_layer_upsampling1d = {
    "UpSampling1D", "up_sampling1d", "upsampling1d up_sampling1d", line_up_arguments, COUNT, build_line_up, BWI_LAYER_LINE};

/* ---- UpSampling2D ---- */

enum { SIZE, INTERPOLATION, UP_COUNT };

static const bwi_argument up_arguments[UP_COUNT] = {
    [SIZE] = {"size", NULL, BWI_INTS, "2", 1, 1e4, NULL},
    [INTERPOLATION] = {"interpolation", NULL, BWI_TEXT, "nearest", 0, 0, BWI_INTERPOLATIONS},
};

static bw_node *build_up(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    bw_node *x = inputs[0];
    bwi_upsample2d_attributes a = {.bilinear = strcmp(layer->values[INTERPOLATION].text, "bilinear") == 0};
    if (!bwi_layer_pair(graph, layer, SIZE, NULL, a.size)) {
        return NULL;
    }
    const char *interpolation = layer->values[INTERPOLATION].text;
    if (strcmp(interpolation, "nearest") != 0 && !a.bilinear) {
        int64_t size[2] = {x->shape.extent[0] * a.size[0], x->shape.extent[1] * a.size[1]};
        return bwi_layer_resample(graph, layer->name, x, size, interpolation, false);
    }
    return bwi_graph_add(graph, &bwi_op_upsample2d, layer->name, &a, sizeof a, &x, 1, NULL, 0);
}

const bwi_layer_row bwi_layer_upsampling2d = {"UpSampling2D", "up_sampling2d", "upsampling2d up_sampling2d", up_arguments, UP_COUNT,
                                              build_up,       BWI_LAYER_IMAGE};
