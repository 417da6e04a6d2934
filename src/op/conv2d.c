/*
 * conv2d and conv3d, by the device's convolution (oneDNN on the host). Variables: kernel (kd, kh, kw, in/groups, filters), stored
 * in the layout that the convolution prefers, and bias if there is one. A prototype for one sample, made when the model is built,
 * fixes all layouts; every other number of samples follows it. A sequence (length, channels) is an image of height 1 with the
 * kernel (kw, in/groups, filters). A depthwise kernel (kh, kw, in, multiplier) has the order in memory of groups = in, filters = in
 * * multiplier.
 */
#include "op/internal.h"

void bwi_conv2d_extents(const bwi_conv2d_attributes *a, int i, int64_t in, int64_t *out, int64_t *before, int64_t *after)
{
    bwi_pool_extent(in + a->pad[i][0] + a->pad[i][1], (a->kernel[i] - 1) * a->dilation[i] + 1, a->strides[i], a->same, out, before,
                    after);
    *before += a->pad[i][0];
    *after += a->pad[i][1];
}

/* Keras's extents, along the height, the width and, for volumes, the depth. */
static bw_status shape(bwi_graph *graph, bw_node *node)
{
    const bwi_conv2d_attributes *a = node->attributes;
    const bwi_shape *in = &node->input[0]->shape;
    char text[160];
    bool volume = a->kernel[2] > 0;
    bw_status status = bwi_conv_op_expect(graph, node, a->kernel);
    if (status != BW_OK) {
        return status;
    }
    node->shape.ndim = in->ndim;
    node->shape.extent[in->ndim - 1] = a->filters;
    for (int i = in->ndim == 2 ? 1 : 0; i < (volume ? 3 : 2); i++) {
        int64_t before, after, *out = &node->shape.extent[bwi_conv2d_axis(in, i)];
        bwi_conv2d_extents(a, i, in->extent[bwi_conv2d_axis(in, i)], out, &before, &after);
        if (*out < 1) {
            return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: a kernel of %dx%d does not fit into %s", node->name,
                            (int)a->kernel[i == 2 ? 2 : 0], (int)a->kernel[i == 2 ? 0 : 1],
                            bwi_format_shape(text, in->ndim, in->extent));
        }
    }
    return bwi_shape_check(graph, node);
}

/* What the device's convolution gets to know of a node. */
static bwi_conv_shape conv_shape(const bw_node *node, int64_t n)
{
    const bwi_conv2d_attributes *a = node->attributes;
    bwi_conv_shape s = {.n = n,
                        .kh = a->kernel[0],
                        .kw = a->kernel[1],
                        .stride_h = a->strides[0],
                        .stride_w = a->strides[1],
                        .dilation_h = a->dilation[0],
                        .dilation_w = a->dilation[1],
                        .groups = a->groups,
                        .with_bias = node->variables > 1};
    bwi_conv_extents_of(&node->input[0]->shape, &s.id, &s.ih, &s.iw, &s.ic);
    bwi_conv_extents_of(&node->shape, &s.od, &s.oh, &s.ow, &s.oc);
    int64_t extent;
    if (a->kernel[2]) {
        s.kd = a->kernel[2];
        s.stride_d = a->strides[2];
        s.dilation_d = a->dilation[2];
        bwi_conv2d_extents(a, 2, s.id, &extent, &s.pad_front, &s.pad_back);
    }
    bwi_conv2d_extents(a, 0, s.ih, &extent, &s.pad_top, &s.pad_bottom);
    bwi_conv2d_extents(a, 1, s.iw, &extent, &s.pad_left, &s.pad_right);
    return s;
}

static bw_status pack(bw_context *ctx, const bw_node *node)
{
    bwi_conv_shape s = conv_shape(node, 1);
    return bwi_conv_op_pack(ctx, node, &s);
}

static void blocks(const bw_node *node, int64_t *src_block, int64_t *dst_block)
{
    const bwi_conv_facts *facts = bwi_conv_op_packing_facts(node);
    *src_block = facts->src_block;
    *dst_block = facts->dst_block;
}

static bw_status prepare(bwi_prepare *p)
{
    bwi_conv *conv = NULL;
    bwi_conv_shape s = conv_shape(p->node, p->samples);
    const bwi_convolution_kernels *convolution = bwi_kernels_of(p->ctx)->convolution;
    bw_status status = convolution->create(p->ctx, &conv, &s, bwi_conv_op_prototype(p->node), p->training, p->difference);
    if (status != BW_OK) {
        return status;
    }
    const bwi_conv_facts *facts = convolution->facts(conv);
    size_t weights = bwi_size_align((size_t)facts->weights_floats * sizeof(float), BWI_CACHE_LINE);
    p->prepared = conv;
    p->bound_bytes = facts->run_bytes;
    /* The tile's gradient of the weights follows the convolution's scratch, and that of the bias follows it. */
    p->scratch_bytes = bwi_size_align(facts->scratch_bytes, BWI_CACHE_LINE);
    if (p->training && !facts->squares) {
        p->scratch_bytes += weights + bwi_size_align((size_t)s.oc * sizeof(float), BWI_CACHE_LINE);
    }
    p->shared_bytes = (size_t)facts->backward_weights_floats * sizeof(float);
    return BW_OK;
}

static void *tile_bias_gradient(const bwi_call *call)
{
    size_t weights = bwi_size_align((size_t)bwi_conv_op_facts_of(call)->weights_floats * sizeof(float), BWI_CACHE_LINE);
    return (char *)bwi_conv_op_tile_gradient(call) + weights;
}

/* Each pass has its own operands: backward writes diff_src where forward reads src. */
static bw_status bind(bw_context *ctx, bwi_call *call, int pass)
{
    bool bias = call->node->variables > 1;
    bwi_conv_memory memory = {.scratch = call->scratch};
    bwi_conv_pass which = BWI_CONV_FORWARD;
    if (pass == BWI_PASS_FORWARD) {
        memory.src = call->src[0];
        memory.dst = call->dst;
        memory.weights = call->weights[0];
        memory.bias = bias ? call->weights[1] : NULL;
    } else if (pass == BWI_PASS_BACKWARD && bwi_conv_op_facts_of(call)->data_squares) {
        return BW_OK;
    } else if (pass == BWI_PASS_BACKWARD) {
        which = BWI_CONV_BACKWARD_DATA;
        memory.src = call->diff_src[0];
        memory.dst = call->diff_dst;
        memory.weights = bwi_conv_op_facts_of(call)->backward_weights_floats ? call->shared : call->weights[0];
    } else if (bwi_conv_op_facts_of(call)->squares) {
        return BW_OK;
    } else {
        which = BWI_CONV_BACKWARD_WEIGHTS;
        memory.src = call->src[0];
        memory.dst = call->diff_dst;
        memory.weights = bwi_conv_op_tile_gradient(call);
        memory.bias = bias ? tile_bias_gradient(call) : NULL;
    }
    return bwi_conv_op_bind(ctx, call, which, &memory);
}

static bw_status backward(const bwi_call *call, const bwi_tile *tile)
{
    if (!bwi_conv_op_facts_of(call)->data_squares) {
        return bwi_conv_op_run(call, tile);
    }
    bwi_conv_shape s = conv_shape(call->node, call->samples);
    bwi_conv_op_square_data(call, &s, call->diff_dst, call->diff_src[0]);
    return BW_OK;
}

/* Adds to the lane at once: a tile's gradient is not stored. */
static void add_squares(const bwi_call *call, const bwi_tile *tile)
{
    bwi_conv_shape s = conv_shape(call->node, call->samples);
    bwi_image x = {s.n, s.ih, s.iw, s.ic, bwi_conv_op_facts_of(call)->src_block},
              y = {s.n, s.oh, s.ow, s.oc, bwi_conv_op_facts_of(call)->dst_block};
    bwi_depthwise k = {{s.kh, s.kw, s.stride_h, s.stride_w, s.pad_top, s.pad_left}, s.dilation_h, s.dilation_w};
    call->kernels->conv_weights(&x, &y, &k, call->src[0], call->diff_dst, bwi_call_gradient(call, tile, 0),
                                bwi_call_accumulates(call, tile, 0));
    if (call->node->variables > 1) {
        call->kernels->conv_bias(&y, call->diff_dst, bwi_call_gradient(call, tile, 1), bwi_call_accumulates(call, tile, 1));
    }
}

static bw_status backward_weights(const bwi_call *call, const bwi_tile *tile)
{
    if (bwi_conv_op_facts_of(call)->squares) {
        if (bwi_tile_may_add(tile)) {
            add_squares(call, tile);
        }
        return BW_OK;
    }
    bw_status status = bwi_conv_op_run(call, tile);
    if (status != BW_OK) {
        return status;
    }
    bwi_call_add_floats(call, tile, 0, bwi_conv_op_tile_gradient(call));
    if (call->node->variables > 1) {
        bwi_call_add_floats(call, tile, 1, tile_bias_gradient(call));
    }
    return BW_OK;
}

static double flops(const bw_node *node)
{
    const bwi_conv2d_attributes *a = node->attributes;
    return 2 * (double)bwi_shape_count(&node->shape) * (double)bwi_shape_count(&node->variable[0]->shape) / (double)a->filters;
}

static const bwi_op_kernels kernels = {
    .blocks = blocks, .release = bwi_conv_op_release, .bind = bind, .unbind = bwi_conv_op_unbind, .prologue = bwi_conv_op_prologue};

const bwi_op bwi_op_conv2d = {.name = "conv2d",
                              .flags = BWI_OP_ADDS_LATE,
                              .weights_reads = BWI_READS_SRC,
                              .layout = BWI_LAYOUT_PREPARED,
                              .shape = shape,
                              .pack = pack,
                              .prepare = prepare,
                              .forward = bwi_conv_op_run,
                              .backward = backward,
                              .backward_weights = backward_weights,
                              .flops = flops,
                              .kernels = &kernels};

const bwi_op bwi_op_conv3d = {.name = "conv3d",
                              .flags = BWI_OP_ADDS_LATE,
                              .weights_reads = BWI_READS_SRC,
                              .layout = BWI_LAYOUT_PREPARED,
                              .shape = shape,
                              .pack = pack,
                              .prepare = prepare,
                              .forward = bwi_conv_op_run,
                              .backward = bwi_conv_op_run,
                              .backward_weights = backward_weights,
                              .flops = flops,
                              .kernels = &kernels};
