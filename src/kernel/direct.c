/*
 * direct: convolutions by their definition, for builds without oneDNN (BW_ONEDNN=OFF) and as the way in for porters. Plain C:
 * images are channels-last, weights are in Keras's order (kd, kh, kw, in/groups, out), and the innermost loop goes over channels
 * that lie side by side, which compilers make vectors of. Backward data reads the weights as (kd, kh, kw, out, in/groups), for the
 * same reason.
 *
 * Every sum has one order, that of the loops, and samples do not share any: results do not depend on the tile.
 */
#include "kernel/internal.h"

#include <string.h>

enum { PASSES = 3 };

struct bwi_conv {
    bw_context *ctx;
    bwi_conv_shape shape;
    bool wanted[PASSES];
    bwi_conv_facts facts;
};

struct bwi_conv_run {
    bw_context *ctx;
    const bwi_conv *conv;
    bwi_conv_pass pass;
    bwi_conv_memory memory;
};

/* Whether the output extent follows from the others: the last window ends within the padded input. */
static bool extents_fit(int64_t in, int64_t out, int64_t kernel, int64_t stride, int64_t dilation, int64_t before, int64_t after)
{
    int64_t slack = in + before + after - ((kernel - 1) * dilation + 1);
    return before >= 0 && after >= 0 && stride > 0 && dilation > 0 && slack >= 0 && out == slack / stride + 1;
}

/* An image is a volume of depth 1. */
static int64_t in_places(const bwi_conv_shape *s)
{
    return (s->kd ? s->id : 1) * s->ih * s->iw;
}

static int64_t out_places(const bwi_conv_shape *s)
{
    return (s->kd ? s->od : 1) * s->oh * s->ow;
}

static bool depth_possible(const bwi_conv_shape *s)
{
    return s->kd == 0 || (s->kd > 0 && s->id > 0 && s->kd <= INT32_MAX && s->id <= INT32_MAX &&
                          extents_fit(s->id, s->od, s->kd, s->stride_d, s->dilation_d, s->pad_front, s->pad_back));
}

static bool shape_possible(const bwi_conv_shape *s)
{
    const int64_t positive[] = {s->n, s->ih, s->iw, s->ic, s->oh, s->ow, s->oc, s->kh, s->kw, s->groups};
    for (size_t k = 0; k < BWI_COUNT(positive); k++) {
        if (positive[k] < 1 || positive[k] > INT32_MAX) {
            return false;
        }
    }
    return s->ic % s->groups == 0 && s->oc % s->groups == 0 && depth_possible(s) &&
           extents_fit(s->ih, s->oh, s->kh, s->stride_h, s->dilation_h, s->pad_top, s->pad_bottom) &&
           extents_fit(s->iw, s->ow, s->kw, s->stride_w, s->dilation_w, s->pad_left, s->pad_right);
}

/* Byte counts of images and weights must fit into an int64_t. */
static bool sizes_possible(const bwi_conv_shape *s)
{
    const int64_t products[][5] = {{s->n, s->kd ? s->id : 1, s->ih, s->iw, s->ic},
                                   {s->n, s->kd ? s->od : 1, s->oh, s->ow, s->oc},
                                   {s->kd ? s->kd : 1, s->kh, s->kw, s->ic, s->oc}};
    for (size_t k = 0; k < BWI_COUNT(products); k++) {
        size_t bytes = sizeof(float);
        for (int f = 0; f < 5; f++) {
            bytes = bwi_size_multiply(bytes, (size_t)products[k][f]);
        }
        if (bytes > INT64_MAX) {
            return false;
        }
    }
    return true;
}

static int64_t weights_count(const bwi_conv_shape *s)
{
    return bwi_conv_places(s) * (s->ic / s->groups) * s->oc;
}

static void release(bwi_conv *conv)
{
    if (conv) {
        bwi_release(conv->ctx, conv);
    }
}

/* `like` has the same layouts whatever it is, since there is only one. */
static bw_status create(bw_context *ctx, bwi_conv **conv, const bwi_conv_shape *shape, const bwi_conv *like, bool backward,
                        bool difference)
{
    const bwi_conv_shape *s = shape;
    (void)like;
    *conv = NULL;
    if (!shape_possible(s)) {
        return bwi_fail(
            ctx, BW_INVALID_ARGUMENT,
            "convolution of (%lld, %lld, %lld) to (%lld, %lld, %lld): kernel, strides, padding and groups do not give it",
            (long long)s->ih, (long long)s->iw, (long long)s->ic, (long long)s->oh, (long long)s->ow, (long long)s->oc);
    }
    if (!sizes_possible(s)) {
        return bwi_fail(ctx, BW_RESOURCE_EXHAUSTED,
                        "convolution of %lld samples (%lld, %lld, %lld): more bytes than can be counted", (long long)s->n,
                        (long long)s->ih, (long long)s->iw, (long long)s->ic);
    }
    bwi_conv *made = bwi_allocate(ctx, 1, sizeof *made);
    if (!made) {
        return BW_RESOURCE_EXHAUSTED;
    }
    made->ctx = ctx;
    made->shape = *shape;
    made->wanted[BWI_CONV_FORWARD] = true;
    made->wanted[BWI_CONV_BACKWARD_WEIGHTS] = backward;
    made->wanted[BWI_CONV_BACKWARD_DATA] = backward && difference;
    made->facts.src_block = s->ic;
    made->facts.dst_block = s->oc;
    made->facts.weights_floats = weights_count(s);
    made->facts.backward_weights_floats = made->wanted[BWI_CONV_BACKWARD_DATA] ? weights_count(s) : 0;
    made->facts.run_bytes = bwi_allocation_bytes(sizeof(bwi_conv_run));
    for (int pass = 0; pass < PASSES; pass++) {
        made->facts.implementation[pass] = made->wanted[pass] ? "direct" : NULL;
    }
    *conv = made;
    return BW_OK;
}

static const bwi_conv_facts *facts_of(const bwi_conv *conv)
{
    return &conv->facts;
}

static void pack(const bwi_conv *conv, const float *weights, float *packed)
{
    memcpy(packed, weights, (size_t)weights_count(&conv->shape) * sizeof(float));
}

static void unpack(const bwi_conv *conv, const float *packed, int64_t first, int64_t count, float *weights)
{
    (void)conv;
    memcpy(weights, packed + first, (size_t)count * sizeof(float));
}

static void restore(const bwi_conv *conv, const float *packed, float *weights)
{
    memcpy(weights, packed, (size_t)weights_count(&conv->shape) * sizeof(float));
}

static void reorder_backward(const bwi_conv *conv, const float *packed, float *backward)
{
    const bwi_conv_shape *s = &conv->shape;
    int64_t in = s->ic / s->groups;
    if (!conv->facts.backward_weights_floats) {
        return;
    }
    for (int64_t at = 0; at < bwi_conv_places(s); at++) {
        for (int64_t i = 0; i < in; i++) {
            for (int64_t o = 0; o < s->oc; o++) {
                backward[(at * s->oc + o) * in + i] = packed[(at * in + i) * s->oc + o];
            }
        }
    }
}

/* One place of the kernel over one output position: the channels of an input position, those of the output position, and the
 * weights of that place. */
typedef void (*place_function)(const bwi_conv_shape *s, float *src, float *dst, float *weights);

static void forward_at(const bwi_conv_shape *s, float *restrict src, float *restrict dst, float *restrict weights)
{
    int64_t in = s->ic / s->groups, out = s->oc / s->groups;
    for (int64_t g = 0; g < s->groups; g++) {
        for (int64_t i = 0; i < in; i++) {
            float x = src[g * in + i];
            const float *row = weights + i * s->oc + g * out;
            for (int64_t o = 0; o < out; o++) {
                dst[g * out + o] += x * row[o];
            }
        }
    }
}

static void backward_data_at(const bwi_conv_shape *s, float *restrict src, float *restrict dst, float *restrict weights)
{
    int64_t in = s->ic / s->groups, out = s->oc / s->groups;
    for (int64_t g = 0; g < s->groups; g++) {
        for (int64_t o = 0; o < out; o++) {
            float d = dst[g * out + o];
            const float *row = weights + (g * out + o) * in;
            for (int64_t i = 0; i < in; i++) {
                src[g * in + i] += d * row[i];
            }
        }
    }
}

static void backward_weights_at(const bwi_conv_shape *s, float *restrict src, float *restrict dst, float *restrict weights)
{
    int64_t in = s->ic / s->groups, out = s->oc / s->groups;
    for (int64_t g = 0; g < s->groups; g++) {
        for (int64_t i = 0; i < in; i++) {
            float x = src[g * in + i];
            float *row = weights + i * s->oc + g * out;
            for (int64_t o = 0; o < out; o++) {
                row[o] += x * dst[g * out + o];
            }
        }
    }
}

/* The places of a plane of the kernel over the output positions of a plane; those over padding are left out. */
static void sweep_plane(const bwi_conv_shape *s, place_function at, float *src, float *dst, float *weights)
{
    int64_t place = s->ic / s->groups * s->oc;
    for (int64_t oy = 0; oy < s->oh; oy++) {
        for (int64_t ox = 0; ox < s->ow; ox++) {
            for (int64_t ky = 0; ky < s->kh; ky++) {
                int64_t y = oy * s->stride_h + ky * s->dilation_h - s->pad_top;
                if (y < 0 || y >= s->ih) {
                    continue;
                }
                for (int64_t kx = 0; kx < s->kw; kx++) {
                    int64_t x = ox * s->stride_w + kx * s->dilation_w - s->pad_left;
                    if (x >= 0 && x < s->iw) {
                        at(s, src + (y * s->iw + x) * s->ic, dst + (oy * s->ow + ox) * s->oc, weights + (ky * s->kw + kx) * place);
                    }
                }
            }
        }
    }
}

/* The same for all planes of one sample. */
static void sweep(const bwi_conv_shape *s, place_function at, float *src, float *dst, float *weights)
{
    if (!s->kd) {
        sweep_plane(s, at, src, dst, weights);
        return;
    }
    for (int64_t oz = 0; oz < s->od; oz++) {
        for (int64_t kz = 0; kz < s->kd; kz++) {
            int64_t z = oz * s->stride_d + kz * s->dilation_d - s->pad_front;
            if (z >= 0 && z < s->id) {
                sweep_plane(s, at, src + z * s->ih * s->iw * s->ic, dst + oz * s->oh * s->ow * s->oc,
                            weights + kz * s->kh * s->kw * (s->ic / s->groups) * s->oc);
            }
        }
    }
}

static void forward(const bwi_conv_shape *s, const bwi_conv_memory *m)
{
    size_t channels = (size_t)s->oc * sizeof(float);
    for (int64_t k = 0; k < s->n * out_places(s); k++) {
        if (s->with_bias) {
            memcpy(m->dst + k * s->oc, m->bias, channels);
        } else {
            memset(m->dst + k * s->oc, 0, channels);
        }
    }
    for (int64_t n = 0; n < s->n; n++) {
        sweep(s, forward_at, m->src + n * in_places(s) * s->ic, m->dst + n * out_places(s) * s->oc, m->weights);
    }
}

static void backward_data(const bwi_conv_shape *s, const bwi_conv_memory *m)
{
    memset(m->src, 0, (size_t)(s->n * in_places(s) * s->ic) * sizeof(float));
    for (int64_t n = 0; n < s->n; n++) {
        sweep(s, backward_data_at, m->src + n * in_places(s) * s->ic, m->dst + n * out_places(s) * s->oc, m->weights);
    }
}

static void backward_weights(const bwi_conv_shape *s, const bwi_conv_memory *m)
{
    memset(m->weights, 0, (size_t)weights_count(s) * sizeof(float));
    for (int64_t n = 0; n < s->n; n++) {
        sweep(s, backward_weights_at, m->src + n * in_places(s) * s->ic, m->dst + n * out_places(s) * s->oc, m->weights);
    }
    if (!s->with_bias) {
        return;
    }
    memset(m->bias, 0, (size_t)s->oc * sizeof(float));
    for (int64_t k = 0; k < s->n * out_places(s); k++) {
        for (int64_t o = 0; o < s->oc; o++) {
            m->bias[o] += m->dst[k * s->oc + o];
        }
    }
}

/* Addresses are checked here, once, because workers, which call execute, cannot leave a message. */
static bw_status bind(bw_context *ctx, bwi_conv_run **run, const bwi_conv *conv, bwi_conv_pass pass, const bwi_conv_memory *memory)
{
    *run = NULL;
    bool bias = conv->shape.with_bias && pass != BWI_CONV_BACKWARD_DATA;
    if (!conv->wanted[pass]) {
        return bwi_fail(ctx, BW_INTERNAL, "convolution: a pass is bound that was not asked for when it was made");
    }
    if (!memory->src || !memory->dst || !memory->weights || (bias && !memory->bias)) {
        return bwi_fail(ctx, BW_INTERNAL, "convolution: a pass is bound without one of its addresses");
    }
    bwi_conv_run *made = bwi_allocate(ctx, 1, sizeof *made);
    if (!made) {
        return BW_RESOURCE_EXHAUSTED;
    }
    *made = (bwi_conv_run){.ctx = ctx, .conv = conv, .pass = pass, .memory = *memory};
    *run = made;
    return BW_OK;
}

static void unbind(bwi_conv_run *run)
{
    if (run) {
        bwi_release(run->ctx, run);
    }
}

static bw_status execute(const bwi_conv_run *run)
{
    static void (*const passes[PASSES])(const bwi_conv_shape *, const bwi_conv_memory *) = {forward, backward_data,
                                                                                            backward_weights};
    passes[run->pass](&run->conv->shape, &run->memory);
    return BW_OK;
}

static int begin(void)
{
    return 0;
}

static void end(int setting)
{
    (void)setting;
}

const bwi_convolution_kernels bwi_convolution_direct = {.create = create,
                                                        .facts = facts_of,
                                                        .release = release,
                                                        .pack = pack,
                                                        .unpack = unpack,
                                                        .store = pack,
                                                        .restore = restore,
                                                        .reorder_backward = reorder_backward,
                                                        .bind = bind,
                                                        .unbind = unbind,
                                                        .execute = execute,
                                                        .begin = begin,
                                                        .end = end};
