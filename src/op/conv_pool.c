/*
 * conv_relu_maxpool: a convolution of an image with few channels (the first layer of most networks), its bias, ReLU and 2x2
 * pooling in one pass; its attributes and variables are the convolution's. The kernels' own arrangement of the weights is made
 * once per update; a tile's gradient is put back into the order in which the variable is stored.
 */
#include "op/op.h"

#include <string.h>

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    bw_status status = bwi_op_conv2d.shape(graph, node);
    node->shape.extent[0] /= 2;
    node->shape.extent[1] /= 2;
    return status;
}

static bwi_conv_pool conv_pool_of(const bw_node *node, int64_t n)
{
    const bwi_conv2d_attributes *a = node->attributes;
    bwi_conv_pool k = {.x = {.n = n}, .y = bwi_node_image(node, n), .kh = a->kernel[0], .kw = a->kernel[1]};
    int64_t out;
    bwi_shape_image(&node->input[0]->shape, &k.x.h, &k.x.w, &k.x.c);
    k.x.block = k.x.c;
    bwi_conv2d_extents(a, 0, k.x.h, &out, &k.pad_top, &k.pad_bottom);
    bwi_conv2d_extents(a, 1, k.x.w, &out, &k.pad_left, &k.pad_right);
    return k;
}

static void blocks(const bw_node *node, int64_t *src_block, int64_t *dst_block)
{
    *src_block = conv_pool_of(node, 1).x.block;
    *dst_block = 0;
}

static size_t floats_bytes(int64_t count)
{
    return bwi_size_align((size_t)count * sizeof(float), BWI_CACHE_LINE);
}

/* The scratch memory: the kernels', then in training the gradient as they arrange it, in Keras's order, and as it is stored. */
typedef struct places {
    size_t arranged, plain, bias, stored, bytes;
} places;

static places places_of(const bw_node *node, const bwi_conv_pool *k)
{
    places at = {.arranged = bwi_conv_pool_scratch_bytes(k)};
    at.plain = at.arranged + floats_bytes(bwi_conv_pool_floats(k));
    at.bias = at.plain + floats_bytes(bwi_shape_count(&node->variable[0]->shape));
    at.stored = at.bias + floats_bytes(k->y.c);
    at.bytes = at.stored + floats_bytes(node->variable[0]->count);
    return at;
}

static bw_status prepare(bwi_prepare *p)
{
    bwi_conv_pool k = conv_pool_of(p->node, p->samples);
    places at = places_of(p->node, &k);
    p->workspace_bytes = bwi_relu_maxpool_mask_bytes(&k.y);
    p->scratch_bytes = p->training ? at.bytes : at.arranged;
    /* Behind the arranged weights is room for Keras's order on the way. */
    p->shared_bytes = floats_bytes(bwi_conv_pool_floats(&k)) + floats_bytes(bwi_shape_count(&p->node->variable[0]->shape));
    return BW_OK;
}

static float *floats_at(void *base, size_t offset)
{
    return (float *)(void *)((char *)base + offset);
}

static bw_status prologue(const bwi_call *call)
{
    const bwi_packing *packing = &call->node->variable[0]->packing;
    bwi_conv_pool k = conv_pool_of(call->node, 1);
    const float *weights = call->weights[0];
    if (packing->unpack) {
        float *plain = floats_at(call->shared, floats_bytes(bwi_conv_pool_floats(&k)));
        packing->unpack(packing->object, weights, plain);
        weights = plain;
    }
    bwi_conv_pool_arrange(&k, weights, call->node->variables > 1 ? call->weights[1] : NULL, call->shared);
    return BW_OK;
}

static bw_status forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    bwi_conv_pool k = conv_pool_of(call->node, call->samples);
    call->kernels->conv_pool_forward(&k, call->src[0], call->shared, call->dst, call->workspace, call->scratch);
    return BW_OK;
}

static bw_status backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    bwi_conv_pool k = conv_pool_of(call->node, call->samples);
    call->kernels->conv_pool_backward_data(&k, call->diff_dst, call->workspace, call->shared, call->diff_src[0]);
    return BW_OK;
}

static void add_to_lane(const bwi_call *call, const bwi_tile *tile, int variable, const float *from)
{
    int64_t count = call->node->variable[variable]->count;
    if (call->gradient[variable] == SIZE_MAX) {
        return;
    }
    float *gradient = bwi_call_gradient(call, tile, variable);
    if (bwi_call_accumulates(call, tile, variable)) {
        call->kernels->add(count, from, gradient);
    } else {
        memcpy(gradient, from, (size_t)count * sizeof(float));
    }
}

static bw_status backward_weights(const bwi_call *call, const bwi_tile *tile)
{
    const bwi_packing *packing = &call->node->variable[0]->packing;
    bwi_conv_pool k = conv_pool_of(call->node, call->samples);
    places at = places_of(call->node, &k);
    bool with_bias = call->node->variables > 1;
    float *arranged = floats_at(call->scratch, at.arranged), *plain = floats_at(call->scratch, at.plain);
    float *bias = floats_at(call->scratch, at.bias), *stored = plain;
    memset(arranged, 0, (size_t)bwi_conv_pool_floats(&k) * sizeof(float));
    call->kernels->conv_pool_backward_weights(&k, call->src[0], call->diff_dst, call->workspace, arranged, call->scratch);
    bwi_conv_pool_restore(&k, arranged, plain, with_bias ? bias : NULL);
    if (packing->pack) {
        stored = floats_at(call->scratch, at.stored);
        packing->pack(packing->object, plain, stored);
    }
    add_to_lane(call, tile, 0, stored);
    if (with_bias) {
        add_to_lane(call, tile, 1, bias);
    }
    return BW_OK;
}

/* Of the convolution, also for the row and the column that pooling may leave out. */
static double flops(const bw_node *node)
{
    bw_node convolution = *node;
    (void)bwi_op_conv2d.shape(node->graph, &convolution);
    return bwi_op_conv2d.flops(&convolution);
}

bool bwi_conv_pool_pattern(const bw_node *const *chain)
{
    const bw_node *node = chain[0];
    const bwi_conv2d_attributes *a = node->attributes;
    if (node->shape.rank != 3 || a->groups != 1 || a->strides[0] != 1 || a->strides[1] != 1 || a->dilation[0] != 1 ||
        a->dilation[1] != 1) {
        return false;
    }
    bw_node pooled = *node;
    pooled.shape.extent[0] /= 2;
    pooled.shape.extent[1] /= 2;
    pooled.block = pooled.shape.extent[2];
    bwi_conv_pool k = conv_pool_of(&pooled, 1);
    return bwi_conv_pool_fits(&k);
}

const bwi_op bwi_op_conv_relu_maxpool = {.name = "conv_relu_maxpool",
                                         .flags = BWI_OP_INFERENCE_PROLOGUE,
                                         .backward_reads = BWI_READS_WORKSPACE,
                                         .weights_reads = BWI_READS_SRC | BWI_READS_WORKSPACE,
                                         .layout = BWI_LAYOUT_PREPARED,
                                         .shape = shape,
                                         .blocks = blocks,
                                         .prepare = prepare,
                                         .prologue = prologue,
                                         .forward = forward,
                                         .backward = backward,
                                         .backward_weights = backward_weights,
                                         .flops = flops};
