/*
 * A convolution, its bias, ReLU and 2x2 pooling in one pass; attributes and variables are the convolution's.
 *
 * conv_relu_maxpool is for images with few channels (the first layer of most networks), thin_relu_maxpool the same with a 3x3
 * kernel's forward pass by Winograd's algorithm, winograd_relu_maxpool for 3x3 kernels and many channels. What their kernels make of the weights is made once per update; a tile's gradient is put back into
 * the order in which the variable is stored.
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

static bool is_winograd(const bw_node *node)
{
    return node->op == &bwi_op_winograd_relu_maxpool;
}

static bool is_thin(const bw_node *node)
{
    return node->op == &bwi_op_thin_relu_maxpool;
}

static bwi_conv_pool conv_pool_of(const bw_node *node, int64_t n)
{
    const bwi_conv2d_attributes *a = node->attributes;
    bwi_conv_pool k = {.x = {.n = n}, .y = bwi_node_image(node, n), .kh = a->kernel[0], .kw = a->kernel[1]};
    int64_t out;
    bwi_shape_image(&node->input[0]->shape, &k.x.h, &k.x.w, &k.x.c);
    k.x.block = is_winograd(node) ? BWI_WINOGRAD_BLOCK : k.x.c;
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

/* Weights as the kernels have them; thin's forward pass has its own behind those of the others. */
static size_t made_bytes(const bw_node *node, const bwi_conv_pool *k)
{
    size_t bytes = floats_bytes(is_winograd(node) ? bwi_winograd_floats(k) : bwi_conv_pool_floats(k));
    return bytes + (is_thin(node) ? floats_bytes(bwi_thin_floats(k)) : 0);
}

static size_t kernel_scratch(const bw_node *node, const bwi_conv_pool *k)
{
    size_t bytes = is_winograd(node) ? bwi_winograd_scratch_bytes(k) : bwi_conv_pool_scratch_bytes(k);
    size_t thin = is_thin(node) ? bwi_thin_scratch_bytes(k) : 0;
    return bytes > thin ? bytes : thin;
}

/* The scratch memory: the kernels', then in training the gradient as they arrange it, in Keras's order, and as it is stored. */
typedef struct places {
    size_t arranged, keras_order, bias, stored, bytes;
} places;

static places places_of(const bw_node *node, const bwi_conv_pool *k)
{
    bool winograd = is_winograd(node);
    places at = {.arranged = kernel_scratch(node, k)};
    at.keras_order = at.arranged + (winograd ? 0 : floats_bytes(bwi_conv_pool_floats(k)));
    at.bias = at.keras_order + floats_bytes(bwi_shape_count(&node->variable[0]->shape));
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
    /* Behind what the kernels have is room for Keras's order on the way. */
    p->shared_bytes = made_bytes(p->node, &k) + floats_bytes(bwi_shape_count(&p->node->variable[0]->shape));
    return BW_OK;
}

static float *floats_at(void *base, size_t offset)
{
    return (float *)(void *)((char *)base + offset);
}

static float *thin_weights(const bwi_call *call, const bwi_conv_pool *k)
{
    return floats_at(call->shared, floats_bytes(bwi_conv_pool_floats(k)));
}

static bw_status prologue(const bwi_call *call)
{
    const bwi_packing *packing = &call->node->variable[0]->packing;
    bwi_conv_pool k = conv_pool_of(call->node, 1);
    const float *weights = call->weights[0], *bias = call->node->variables > 1 ? call->weights[1] : NULL;
    if (packing->unpack) {
        float *keras_order = floats_at(call->shared, made_bytes(call->node, &k));
        packing->unpack(packing->object, weights, keras_order);
        weights = keras_order;
    }
    if (is_winograd(call->node)) {
        call->kernels->winograd_weights(&k, weights, bias, call->shared);
    } else {
        bwi_conv_pool_arrange(&k, weights, bias, call->shared);
        if (is_thin(call->node)) {
            call->kernels->thin_weights(&k, call->shared, thin_weights(call, &k));
        }
    }
    return BW_OK;
}

static bw_status forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    bwi_conv_pool k = conv_pool_of(call->node, call->samples);
    if (is_thin(call->node)) {
        call->kernels->thin_forward(&k, call->src[0], thin_weights(call, &k), call->dst, call->workspace, call->scratch);
    } else {
        (is_winograd(call->node) ? call->kernels->winograd_forward : call->kernels->conv_pool_forward)(
            &k, call->src[0], call->shared, call->dst, call->workspace, call->scratch);
    }
    return BW_OK;
}

static bw_status backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    bwi_conv_pool k = conv_pool_of(call->node, call->samples);
    if (is_winograd(call->node)) {
        call->kernels->winograd_backward_data(&k, call->diff_dst, call->workspace, call->shared, call->diff_src[0], call->scratch);
    } else {
        call->kernels->conv_pool_backward_data(&k, call->diff_dst, call->workspace, call->shared, call->diff_src[0]);
    }
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
    float *arranged = floats_at(call->scratch, at.arranged), *keras_order = floats_at(call->scratch, at.keras_order);
    float *bias = floats_at(call->scratch, at.bias), *stored = keras_order;
    if (is_winograd(call->node)) {
        call->kernels->winograd_backward_weights(&k, call->src[0], call->diff_dst, call->workspace, keras_order, bias,
                                                 call->scratch);
    } else {
        memset(arranged, 0, (size_t)bwi_conv_pool_floats(&k) * sizeof(float));
        call->kernels->conv_pool_backward_weights(&k, call->src[0], call->diff_dst, call->workspace, arranged, call->scratch);
        bwi_conv_pool_restore(&k, arranged, keras_order, bias);
    }
    if (packing->pack) {
        stored = floats_at(call->scratch, at.stored);
        packing->pack(packing->object, keras_order, stored);
    }
    add_to_lane(call, tile, 0, stored);
    if (call->node->variables > 1) {
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

bool bwi_conv_pool_fusion(const bw_node *convolution, const bwi_op *fused)
{
    const bwi_conv2d_attributes *a = convolution->attributes;
    if (convolution->shape.ndim != 3 || a->groups != 1 || a->strides[0] != 1 || a->strides[1] != 1 || a->dilation[0] != 1 ||
        a->dilation[1] != 1) {
        return false;
    }
    bw_node pooled = *convolution;
    pooled.op = fused;
    pooled.shape.extent[0] /= 2;
    pooled.shape.extent[1] /= 2;
    pooled.block = pooled.shape.extent[2];
    bwi_conv_pool k = conv_pool_of(&pooled, 1);
    return is_winograd(&pooled) ? bwi_winograd_fits(&k) : is_thin(&pooled) ? bwi_thin_fits(&k) : bwi_conv_pool_fits(&k);
}

static const bwi_op_kernels kernels = {.blocks = blocks, .prologue = prologue};

#define COMMON                                                                                                               \
    .flags = BWI_OP_INFERENCE_PROLOGUE, .backward_reads = BWI_READS_WORKSPACE,                                               \
    .weights_reads = BWI_READS_SRC | BWI_READS_WORKSPACE, .layout = BWI_LAYOUT_PREPARED, .shape = shape, .prepare = prepare, \
    .forward = forward, .backward = backward, .backward_weights = backward_weights, .flops = flops, .kernels = &kernels

const bwi_op bwi_op_conv_relu_maxpool = {.name = "conv_relu_maxpool", COMMON};
const bwi_op bwi_op_thin_relu_maxpool = {.name = "thin_relu_maxpool", COMMON};
const bwi_op bwi_op_winograd_relu_maxpool = {.name = "winograd_relu_maxpool", COMMON};
