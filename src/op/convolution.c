/*
 * What conv2d, conv3d and their transposes share: they differ in what is the device's src and dst, and in nothing else. A prototype
 * for one sample, made when the model is built, fixes the layouts of weights and images; every other number of samples follows it.
 */
#include "op/internal.h"

void bwi_conv_extents_of(const bwi_shape *shape, int64_t *d, int64_t *h, int64_t *w, int64_t *c)
{
    bwi_shape plane = *shape;
    *d = 1;
    if (shape->ndim == 4) {
        *d = shape->extent[0];
        plane = (bwi_shape){.ndim = 3, .extent = {shape->extent[1], shape->extent[2], shape->extent[3]}};
    }
    bwi_shape_image(&plane, h, w, c);
}

bw_status bwi_conv_op_expect(bwi_graph *graph, const bw_node *node, const int64_t kernel[3])
{
    const bwi_shape *in = &node->input[0]->shape;
    bool volume = kernel[2] > 0;
    if (volume ? in->ndim == 4 : in->ndim == 3 || (in->ndim == 2 && kernel[0] == 1)) {
        return BW_OK;
    }
    char text[160];
    return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: expected %s, got %s", node->name,
                    volume ? "a volume (depth, height, width, channels)" : "an image (height, width, channels)",
                    bwi_format_shape(text, in->ndim, in->extent));
}

static void pack_weights(const bwi_packing *packing, const float *keras_order, void *stored)
{
    packing->kernels->convolution->pack(packing->object, keras_order, stored);
}
static void unpack_weights(const bwi_packing *packing, const void *stored, int64_t first, int64_t count, float *keras_order)
{
    packing->kernels->convolution->unpack(packing->object, stored, first, count, keras_order);
}
static void release_packing(const bwi_packing *packing)
{
    packing->kernels->convolution->release(packing->object);
}

bw_status bwi_conv_op_pack(bw_context *ctx, const bw_node *node, const bwi_conv_shape *one_sample)
{
    const bwi_kernels *kernels = bwi_kernels_of(ctx);
    bwi_conv *prototype = NULL;
    bw_status status = kernels->convolution->create(ctx, &prototype, one_sample, NULL, true, true);
    if (status != BW_OK) {
        return status;
    }
    bwi_variable *kernel = node->variable[0];
    kernel->count = kernels->convolution->facts(prototype)->weights_floats;
    kernel->packing = (bwi_packing){.count = kernel->count,
                                    .kernels = kernels,
                                    .object = prototype,
                                    .pack = pack_weights,
                                    .unpack = unpack_weights,
                                    .release = release_packing};
    return BW_OK;
}

const bwi_conv *bwi_conv_op_prototype(const bw_node *node)
{
    return node->variable[0]->packing.object;
}

const bwi_conv_facts *bwi_conv_op_packing_facts(const bw_node *node)
{
    return node->variable[0]->packing.kernels->convolution->facts(bwi_conv_op_prototype(node));
}

const bwi_conv_facts *bwi_conv_op_facts_of(const bwi_call *call)
{
    return call->kernels->convolution->facts(call->prepared);
}

void *bwi_conv_op_tile_gradient(const bwi_call *call)
{
    return (char *)call->scratch + bwi_size_align(bwi_conv_op_facts_of(call)->scratch_bytes, BWI_CACHE_LINE);
}

bw_status bwi_conv_op_bind(bw_context *ctx, bwi_call *call, bwi_conv_pass pass, const bwi_conv_memory *memory)
{
    bwi_conv_run *run = NULL;
    bw_status status = call->kernels->convolution->bind(ctx, &run, call->prepared, pass, memory);
    call->bound = run;
    return status;
}

void bwi_conv_op_unbind(const bwi_kernels *kernels, void *bound)
{
    kernels->convolution->unbind(bound);
}

void bwi_conv_op_release(const bwi_kernels *kernels, void *prepared)
{
    kernels->convolution->release(prepared);
}

bw_status bwi_conv_op_prologue(const bwi_call *call)
{
    if (bwi_conv_op_facts_of(call)->backward_weights_floats) {
        call->kernels->convolution->reorder_backward(call->prepared, call->weights[0], call->shared);
    }
    return BW_OK;
}

bw_status bwi_conv_op_run(const bwi_call *call, const bwi_tile *tile)
{
    bw_status status = call->kernels->convolution->execute(call->bound);
    if (status != BW_OK) {
        snprintf(tile->error, BWI_ERROR_TEXT, "layer %s: the convolution could not be computed", call->node->name);
    }
    return status;
}

void bwi_conv_op_square_data(const bwi_call *call, const bwi_conv_shape *s, const void *dy, void *dx)
{
    const bwi_conv_facts *facts = bwi_conv_op_facts_of(call);
    bwi_image x = {s->n, s->ih, s->iw, s->ic, facts->src_block}, y = {s->n, s->oh, s->ow, s->oc, facts->dst_block};
    bwi_depthwise k = {{s->kh, s->kw, s->stride_h, s->stride_w, s->pad_top, s->pad_left}, s->dilation_h, s->dilation_w};
    call->kernels->conv_data(&x, &y, &k, dy, call->weights[0], dx);
}
