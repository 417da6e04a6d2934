/*
 * conv2d_transpose and conv3d_transpose: the transpose of a convolution, that is its backward pass, whose backward pass is then the
 * convolution itself. The convolution takes this op's output as its src and gives this op's input as its dst, so that Keras's
 * kernel (kd, kh, kw, filters, in) is that of the convolution. Variable: the kernel, stored as the convolution prefers it. A
 * sequence is an image of height 1.
 */
#include "op/internal.h"

/* Keras's rule: with stride s and a kernel that reaches over k, zeros before and after what lies s apart, so that the output has
 * (in - 1) s + 2 + left + right - k numbers. */
static void padding_of(const bwi_conv2d_transpose_attributes *a, int i, int64_t *left, int64_t *right)
{
    int64_t k = (a->kernel[i] - 1) * a->dilation[i] + 1, s = a->strides[i], given = a->output_padding[i];
    if (!a->same) {
        *left = k - 1;
        *right = k - 1 + (given >= 0 ? given : s > k ? s - k : 0);
        return;
    }
    int64_t all = given >= 0 ? k + k % 2 - 2 + given : s + k - 2;
    *left = all / 2 + all % 2 < k - 1 ? all / 2 + all % 2 : k - 1;
    *right = all - *left;
}

static int64_t extent_of(const bwi_conv2d_transpose_attributes *a, int i, int64_t in)
{
    int64_t left, right;
    padding_of(a, i, &left, &right);
    return (in - 1) * a->strides[i] + 2 + left + right - ((a->kernel[i] - 1) * a->dilation[i] + 1);
}

/* Keras's extents, along the height, the width and, for volumes, the depth. */
static bw_status shape(bwi_graph *graph, bw_node *node)
{
    const bwi_conv2d_transpose_attributes *a = node->attributes;
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
        int64_t *out = &node->shape.extent[bwi_conv2d_axis(in, i)];
        *out = extent_of(a, i, in->extent[bwi_conv2d_axis(in, i)]);
        if (*out < 1) {
            return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: a kernel of %dx%d leaves nothing of %s", node->name,
                            (int)a->kernel[i == 2 ? 2 : 0], (int)a->kernel[i == 2 ? 0 : 1],
                            bwi_format_shape(text, in->ndim, in->extent));
        }
    }
    return bwi_shape_check(graph, node);
}

/* What the convolution pads: as much as the kernel reaches beyond the output, and nothing where the output is longer than that. */
static int64_t reach(const bwi_conv2d_transpose_attributes *a, int i, int64_t pad)
{
    int64_t rest = (a->kernel[i] - 1) * a->dilation[i] - pad;
    return rest > 0 ? rest : 0;
}

/* The convolution of which this node is the backward pass: its input is the output here. */
static bwi_conv_shape conv_shape(const bw_node *node, int64_t n)
{
    const bwi_conv2d_transpose_attributes *a = node->attributes;
    bwi_conv_shape s = {.n = n,
                        .kh = a->kernel[0],
                        .kw = a->kernel[1],
                        .stride_h = a->strides[0],
                        .stride_w = a->strides[1],
                        .dilation_h = a->dilation[0],
                        .dilation_w = a->dilation[1],
                        .groups = 1};
    bwi_conv_extents_of(&node->shape, &s.id, &s.ih, &s.iw, &s.ic);
    bwi_conv_extents_of(&node->input[0]->shape, &s.od, &s.oh, &s.ow, &s.oc);
    int64_t left, right;
    if (a->kernel[2]) {
        s.kd = a->kernel[2];
        s.stride_d = a->strides[2];
        s.dilation_d = a->dilation[2];
        padding_of(a, 2, &left, &right);
        s.pad_front = reach(a, 2, left);
        s.pad_back = reach(a, 2, right);
    }
    padding_of(a, 0, &left, &right);
    s.pad_top = reach(a, 0, left);
    s.pad_bottom = reach(a, 0, right);
    padding_of(a, 1, &left, &right);
    s.pad_left = reach(a, 1, left);
    s.pad_right = reach(a, 1, right);
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
    *src_block = facts->dst_block;
    *dst_block = facts->src_block;
}

/* The forward pass here is a backward pass of the convolution, so all of its passes are made, for inference, too. */
static bw_status prepare(bwi_prepare *p)
{
    bwi_conv *conv = NULL;
    bwi_conv_shape s = conv_shape(p->node, p->samples);
    const bwi_convolution_kernels *convolution = bwi_kernels_of(p->ctx)->convolution;
    bw_status status = convolution->create(p->ctx, &conv, &s, bwi_conv_op_prototype(p->node), true, true);
    if (status != BW_OK) {
        return status;
    }
    const bwi_conv_facts *facts = convolution->facts(conv);
    p->prepared = conv;
    p->bound_bytes = facts->run_bytes;
    p->scratch_bytes = bwi_size_align(facts->scratch_bytes, BWI_CACHE_LINE);
    if (p->training && !facts->squares) { /* the tile's gradient follows */
        p->scratch_bytes += bwi_size_align((size_t)facts->weights_floats * sizeof(float), BWI_CACHE_LINE);
    }
    p->shared_bytes = (size_t)facts->backward_weights_floats * sizeof(float);
    return BW_OK;
}

/* The convolution's src is the output here, and its dst the input. */
static bw_status bind(bw_context *ctx, bwi_call *call, int pass)
{
    bwi_conv_memory memory = {.scratch = call->scratch};
    bwi_conv_pass which = BWI_CONV_BACKWARD_DATA;
    if (pass == BWI_PASS_FORWARD && bwi_conv_op_facts_of(call)->data_squares) {
        return BW_OK;
    }
    if (pass == BWI_PASS_FORWARD) {
        memory.src = call->dst;
        memory.dst = call->src[0];
        memory.weights = bwi_conv_op_facts_of(call)->backward_weights_floats ? call->shared : call->weights[0];
    } else if (pass == BWI_PASS_BACKWARD) {
        which = BWI_CONV_FORWARD;
        memory.src = call->diff_dst;
        memory.dst = call->diff_src[0];
        memory.weights = call->weights[0];
    } else if (bwi_conv_op_facts_of(call)->squares) {
        return BW_OK;
    } else {
        which = BWI_CONV_BACKWARD_WEIGHTS;
        memory.src = call->diff_dst;
        memory.dst = call->src[0];
        memory.weights = bwi_conv_op_tile_gradient(call);
    }
    return bwi_conv_op_bind(ctx, call, which, &memory);
}

static bw_status forward(const bwi_call *call, const bwi_tile *tile)
{
    if (!bwi_conv_op_facts_of(call)->data_squares) {
        return bwi_conv_op_run(call, tile);
    }
    bwi_conv_shape s = conv_shape(call->node, call->samples);
    bwi_conv_op_square_data(call, &s, call->src[0], call->dst);
    return BW_OK;
}

/* Adds to the lane at once: a tile's gradient is not stored. */
static void add_squares(const bwi_call *call, const bwi_tile *tile)
{
    bwi_conv_shape s = conv_shape(call->node, call->samples);
    bwi_image x = {s.n, s.ih, s.iw, s.ic, bwi_conv_op_facts_of(call)->src_block},
              y = {s.n, s.oh, s.ow, s.oc, bwi_conv_op_facts_of(call)->dst_block};
    bwi_depthwise k = {{s.kh, s.kw, s.stride_h, s.stride_w, s.pad_top, s.pad_left}, s.dilation_h, s.dilation_w};
    call->kernels->conv_weights(&x, &y, &k, call->diff_dst, call->src[0], bwi_call_gradient(call, tile, 0),
                                bwi_call_accumulates(call, tile, 0));
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
    if (status == BW_OK) {
        bwi_call_add_floats(call, tile, 0, bwi_conv_op_tile_gradient(call));
    }
    return status;
}

static double flops(const bw_node *node)
{
    const bwi_shape *in = &node->input[0]->shape;
    return 2 * (double)bwi_shape_count(in) * (double)bwi_shape_count(&node->variable[0]->shape) / (double)in->extent[in->ndim - 1];
}

static const bwi_op_kernels kernels = {
    .blocks = blocks, .release = bwi_conv_op_release, .bind = bind, .unbind = bwi_conv_op_unbind, .prologue = bwi_conv_op_prologue};

const bwi_op bwi_op_conv2d_transpose = {.name = "conv2d_transpose",
                                        .flags = BWI_OP_INFERENCE_PROLOGUE | BWI_OP_ADDS_LATE,
                                        .weights_reads = BWI_READS_SRC,
                                        .layout = BWI_LAYOUT_PREPARED,
                                        .shape = shape,
                                        .pack = pack,
                                        .prepare = prepare,
                                        .forward = forward,
                                        .backward = bwi_conv_op_run,
                                        .backward_weights = backward_weights,
                                        .flops = flops,
                                        .kernels = &kernels};

const bwi_op bwi_op_conv3d_transpose = {.name = "conv3d_transpose",
                                        .flags = BWI_OP_INFERENCE_PROLOGUE | BWI_OP_ADDS_LATE,
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
