/*
 * A convolution, its bias, and ReLU and 2x2 pooling in one pass, or ReLU, or nothing. Attributes and variables are the
 * convolution's.
 *
 * conv_relu_maxpool is for images with few channels (the first layer of most networks); thin_relu_maxpool is the same, but the
 * forward pass of a 3x3 kernel uses Winograd's algorithm; winograd_relu_maxpool, winograd_relu and winograd are for 3x3 kernels and
 * many channels. The weights are rearranged for the kernels once per update; a tile's gradient is put back into the order in which
 * the variable is stored.
 */
#include "op/internal.h"

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    bw_status status = bwi_op_conv2d.shape(graph, node);
    node->shape.extent[0] /= 2;
    node->shape.extent[1] /= 2;
    return status;
}

static bw_status convolution_shape(bwi_graph *graph, bw_node *node)
{
    return bwi_op_conv2d.shape(graph, node);
}

static bwi_conv_then then_of(const bwi_op *op)
{
    return op == &bwi_op_winograd ? BWI_THEN_NOTHING : op == &bwi_op_winograd_relu ? BWI_THEN_RELU : BWI_THEN_POOL;
}

static bool is_winograd(const bw_node *node)
{
    return node->op == &bwi_op_winograd_relu_maxpool || then_of(node->op) != BWI_THEN_POOL;
}

static bool is_thin(const bw_node *node)
{
    return node->op == &bwi_op_thin_relu_maxpool;
}

/* How its algorithm stores what it reads. */
static const bwi_conv_pool_storage *storage_of(const bw_node *node)
{
    const bwi_packing_kernels *packing = bwi_kernels_of(node->graph->ctx)->packing;
    return is_winograd(node) ? packing->winograd : is_thin(node) ? packing->thin : packing->conv_pool;
}

static const bwi_conv_pool_storage *conv_pool_storage(const bw_node *node)
{
    return bwi_kernels_of(node->graph->ctx)->packing->conv_pool;
}

static bwi_conv_pool conv_pool_of(const bw_node *node, int64_t n)
{
    const bwi_conv2d_attributes *a = node->attributes;
    bwi_conv_pool k = {
        .x = {.n = n}, .y = bwi_node_image(node, n), .kh = a->kernel[0], .kw = a->kernel[1], .then = then_of(node->op)};
    int64_t out;
    bwi_shape_image(&node->input[0]->shape, &k.x.h, &k.x.w, &k.x.c);
    k.x.block = storage_of(node)->blocked ? bwi_kernels_of(node->graph->ctx)->block : k.x.c;
    bwi_conv2d_extents(a, 0, k.x.h, &out, &k.pad_top, &k.pad_bottom);
    bwi_conv2d_extents(a, 1, k.x.w, &out, &k.pad_left, &k.pad_right);
    return k;
}

static void blocks(const bw_node *node, int64_t *src_block, int64_t *dst_block)
{
    *src_block = conv_pool_of(node, 1).x.block;
    *dst_block = then_of(node->op) == BWI_THEN_POOL ? 0 : *src_block;
}

static size_t floats_bytes(int64_t count)
{
    return bwi_size_align((size_t)count * sizeof(float), BWI_CACHE_LINE);
}

/* The bytes of the weights as the kernels read them. thin's forward pass has its own, which follow those of conv_pool that its
 * backward passes use. */
static size_t made_bytes(const bw_node *node, const bwi_conv_pool *k)
{
    size_t bytes = floats_bytes(storage_of(node)->floats(k));
    return bytes + (is_thin(node) ? floats_bytes(conv_pool_storage(node)->floats(k)) : 0);
}

static size_t kernel_scratch(const bw_node *node, const bwi_conv_pool *k)
{
    size_t bytes = storage_of(node)->scratch_bytes(k), backward = is_thin(node) ? conv_pool_storage(node)->scratch_bytes(k) : 0;
    return bytes > backward ? bytes : backward;
}

/* The scratch memory: the kernels' own, and in training the gradient as they arrange it, in Keras's order, and as it is stored. */
typedef struct offsets {
    size_t arranged, keras_order, bias, stored, bytes;
} offsets;

static offsets offsets_of(const bw_node *node, const bwi_conv_pool *k)
{
    bool winograd = is_winograd(node);
    offsets at = {.arranged = kernel_scratch(node, k)};
    at.keras_order = at.arranged + (winograd ? 0 : floats_bytes(conv_pool_storage(node)->floats(k)));
    at.bias = at.keras_order + floats_bytes(bwi_shape_count(&node->variable[0]->shape));
    at.stored = at.bias + floats_bytes(k->y.c);
    at.bytes = at.stored + floats_bytes(node->variable[0]->count);
    return at;
}

static bw_status prepare(bwi_prepare *p)
{
    bwi_conv_pool k = conv_pool_of(p->node, p->samples);
    offsets at = offsets_of(p->node, &k);
    p->workspace_bytes = k.then == BWI_THEN_POOL ? bwi_kernels_of(p->ctx)->packing->relu_maxpool_mask_bytes(&k.y) : 0;
    p->scratch_bytes = p->training ? at.bytes : at.arranged;
    /* The kernels' weights are followed by a buffer for Keras's order, which they pass through. */
    p->shared_bytes = made_bytes(p->node, &k) + floats_bytes(bwi_shape_count(&p->node->variable[0]->shape));
    return BW_OK;
}

static void *bytes_at(void *base, size_t offset)
{
    return (char *)base + offset;
}

static void *thin_weights(const bwi_call *call, const bwi_conv_pool *k)
{
    return bytes_at(call->shared, floats_bytes(call->kernels->packing->conv_pool->floats(k)));
}

/* The convolution that fixed how the kernel's variable is stored; NULL: it is in Keras's order. */
static const bwi_conv *prototype_of(const bw_node *node)
{
    return node->variable[0]->packing.object;
}

static bw_status prologue(const bwi_call *call)
{
    const bwi_kernels *kernels = call->kernels;
    bwi_conv_pool k = conv_pool_of(call->node, 1);
    const void *weights = call->weights[0], *bias = call->node->variables > 1 ? call->weights[1] : NULL;
    if (prototype_of(call->node)) {
        void *keras_order = bytes_at(call->shared, made_bytes(call->node, &k));
        kernels->convolution->restore(prototype_of(call->node), weights, keras_order);
        weights = keras_order;
    }
    if (is_winograd(call->node)) {
        kernels->winograd_weights(&k, weights, bias, call->shared);
    } else {
        kernels->packing->conv_pool_arrange(&k, weights, bias, call->shared);
        if (is_thin(call->node)) {
            kernels->thin_weights(&k, call->shared, thin_weights(call, &k));
        }
    }
    return BW_OK;
}

/* What backward passes need to know of the outputs: which ones pooling chose, or where ReLU let something pass. */
static const void *passed(const bwi_call *call)
{
    return then_of(call->node->op) == BWI_THEN_RELU ? call->dst : call->workspace;
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
        call->kernels->winograd_backward_data(&k, call->diff_dst, passed(call), call->shared, call->diff_src[0], call->scratch);
    } else {
        call->kernels->conv_pool_backward_data(&k, call->diff_dst, call->workspace, call->shared, call->diff_src[0]);
    }
    return BW_OK;
}

/* The kernel's gradient is put into Keras's order, then into that of the variable, and added to the lane there. */
static bw_status backward_weights(const bwi_call *call, const bwi_tile *tile)
{
    const bwi_kernels *kernels = call->kernels;
    bwi_conv_pool k = conv_pool_of(call->node, call->samples);
    offsets at = offsets_of(call->node, &k);
    void *arranged = bytes_at(call->scratch, at.arranged), *keras_order = bytes_at(call->scratch, at.keras_order);
    void *bias = bytes_at(call->scratch, at.bias), *stored = keras_order;
    if (is_winograd(call->node)) {
        kernels->winograd_backward_weights(&k, call->src[0], call->diff_dst, passed(call), keras_order, bias, call->scratch);
    } else {
        kernels->memory->clear(arranged, (size_t)kernels->packing->conv_pool->floats(&k) * sizeof(float));
        kernels->conv_pool_backward_weights(&k, call->src[0], call->diff_dst, call->workspace, arranged, call->scratch);
        kernels->packing->conv_pool_restore(&k, arranged, keras_order, bias);
    }
    if (prototype_of(call->node)) {
        stored = bytes_at(call->scratch, at.stored);
        kernels->convolution->store(prototype_of(call->node), keras_order, stored);
    }
    bwi_call_add_floats(call, tile, 0, stored);
    if (call->node->variables > 1) {
        bwi_call_add_floats(call, tile, 1, bias);
    }
    return BW_OK;
}

/* Counts the whole convolution, including a row or column that pooling leaves out. */
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
    bw_node last = *convolution;
    last.op = fused;
    if (then_of(fused) == BWI_THEN_POOL) {
        last.shape.extent[0] /= 2;
        last.shape.extent[1] /= 2;
    }
    last.block = last.shape.extent[2];
    bwi_conv_pool k = conv_pool_of(&last, 1);
    return storage_of(&last)->fits(&k);
}

static const bwi_op_kernels kernels = {.blocks = blocks, .prologue = prologue};

#define COMMON                                                                                                                    \
    .flags = BWI_OP_INFERENCE_PROLOGUE | BWI_OP_ADDS_LATE, .layout = BWI_LAYOUT_PREPARED, .prepare = prepare, .forward = forward, \
    .backward = backward, .backward_weights = backward_weights, .flops = flops, .kernels = &kernels
#define POOLED COMMON, .shape = shape, .backward_reads = BWI_READS_WORKSPACE, .weights_reads = BWI_READS_SRC | BWI_READS_WORKSPACE

const bwi_op bwi_op_conv_relu_maxpool = {.name = "conv_relu_maxpool", POOLED};
const bwi_op bwi_op_thin_relu_maxpool = {.name = "thin_relu_maxpool", POOLED};
const bwi_op bwi_op_winograd_relu_maxpool = {.name = "winograd_relu_maxpool", POOLED};
const bwi_op bwi_op_winograd_relu = {.name = "winograd_relu",
                                     COMMON,
                                     .shape = convolution_shape,
                                     .backward_reads = BWI_READS_DST,
                                     .weights_reads = BWI_READS_SRC | BWI_READS_DST};
const bwi_op bwi_op_winograd = {.name = "winograd", COMMON, .shape = convolution_shape, .weights_reads = BWI_READS_SRC};
