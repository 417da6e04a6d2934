/* ZeroPadding2D, Cropping2D, UpSampling2D change the height and width of images. */
#include "layer/internal.h"

enum { AMOUNT, COUNT };

static const bwi_argument padding_arguments[COUNT] = {[AMOUNT] = {"padding", NULL, BWI_INTS, "1", 0, 1e6, NULL}};
static const bwi_argument cropping_arguments[COUNT] = {[AMOUNT] = {"cropping", NULL, BWI_INTS, "0", 0, 1e6, NULL}};

/* Keras accepts one number for all sides, two for rows and columns, or four: ((top, bottom), (left, right)). */
static bw_node *build(const bwi_layer *layer, bwi_graph *graph, bw_node *x, int64_t sign)
{
    const bwi_argument_value *v = &layer->values[AMOUNT];
    if (!bwi_layer_expect(graph, layer, x, 3)) {
        return NULL;
    }
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

const bwi_layer_row bwi_layer_zero_padding2d = {
    "ZeroPadding2D", "zero_padding2d", "zero_padding2d", padding_arguments, COUNT, build_padding, false};
const bwi_layer_row bwi_layer_cropping2d = {"Cropping2D", "cropping2d",   "cropping2d", cropping_arguments,
                                            COUNT,        build_cropping, false};

enum { SIZE, INTERPOLATION, UP_COUNT };

static const bwi_argument up_arguments[UP_COUNT] = {
    [SIZE] = {"size", NULL, BWI_INTS, "2", 1, 1e4, NULL},
    [INTERPOLATION] = {"interpolation", NULL, BWI_TEXT, "nearest", 0, 0, "nearest bilinear"},
};

static bw_node *build_up(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    bw_node *x = inputs[0];
    bwi_upsample2d_attributes a = {.bilinear = layer->values[INTERPOLATION].text[0] == 'b'};
    if (!bwi_layer_expect(graph, layer, x, 3) || !bwi_layer_pair(graph, layer, SIZE, NULL, a.size)) {
        return NULL;
    }
    return bwi_graph_add(graph, &bwi_op_upsample2d, layer->name, &a, sizeof a, &x, 1, NULL, 0);
}

const bwi_layer_row bwi_layer_upsampling2d = {
    "UpSampling2D", "up_sampling2d", "upsampling2d up_sampling2d", up_arguments, UP_COUNT, build_up, false};
