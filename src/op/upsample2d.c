/*
 * upsample2d: an image whose height and width are multiplied. Nearest: every pixel is repeated. Bilinear: output o lies at
 * s = (o + 1/2) / factor - 1/2 of the input, between the pixels floor(s) and floor(s) + 1, which end at the border. Along one
 * axis both are y[o] = (1 - part) x[low] + part x[high]; backward is the transpose. Pixels are `block` floats, so any layout does.
 */
#include "op/op.h"

#include <math.h>
#include <string.h>

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    const bwi_upsample2d_attributes *a = node->attributes;
    const bwi_shape *in = &node->input[0]->shape;
    char text[160];
    if (in->ndim != 3) {
        return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: expected an image (height, width, channels), got %s",
                        node->name, bwi_format_shape(text, in->ndim, in->extent));
    }
    node->shape = *in;
    for (int i = 0; i < 2; i++) {
        if (__builtin_mul_overflow(in->extent[i], a->size[i], &node->shape.extent[i])) {
            node->shape.extent[i] = INT64_MAX;
        }
    }
    return bwi_shape_check(graph, node);
}

typedef struct place {
    int64_t low, high;
    float part; /* of high */
} place;

static place place_of(int64_t o, int64_t factor, int64_t extent, bool bilinear)
{
    if (!bilinear) {
        return (place){o / factor, o / factor, 0};
    }
    double s = ((double)o + 0.5) / (double)factor - 0.5, low = floor(s);
    place p = {(int64_t)low, (int64_t)low + 1, (float)(s - low)};
    p.low = p.low < 0 ? 0 : p.low;
    p.high = p.high < extent ? p.high : extent - 1;
    return p;
}

/* A row of y from two rows of x mixed into one. */
static void widen_row(const bwi_image *x_image, const bwi_upsample2d_attributes *a, const float *x, float *y)
{
    int64_t step = x_image->block, width = x_image->w * a->size[1];
    for (int64_t w = 0; w < width; w++, y += step) {
        place p = place_of(w, a->size[1], x_image->w, a->bilinear);
        const float *low = x + p.low * step, *high = x + p.high * step;
        if (!a->bilinear) {
            memcpy(y, low, (size_t)step * sizeof *y);
            continue;
        }
        for (int64_t c = 0; c < step; c++) {
            y[c] = low[c] + p.part * (high[c] - low[c]);
        }
    }
}

static void forward_plane(const bwi_image *x_image, const bwi_upsample2d_attributes *a, const float *x, float *y, float *mixed)
{
    int64_t x_row = x_image->w * x_image->block, y_row = x_row * a->size[1];
    for (int64_t h = 0; h < x_image->h * a->size[0]; h++, y += y_row) {
        place p = place_of(h, a->size[0], x_image->h, a->bilinear);
        const float *low = x + p.low * x_row, *high = x + p.high * x_row;
        if (!a->bilinear && h % a->size[0]) {
            memcpy(y, y - y_row, (size_t)y_row * sizeof *y);
            continue;
        }
        for (int64_t i = 0; a->bilinear && i < x_row; i++) {
            mixed[i] = low[i] + p.part * (high[i] - low[i]);
        }
        widen_row(x_image, a, a->bilinear ? mixed : low, y);
    }
}

/* The transpose of widen_row: what a row of y's difference gives the mixed row. */
static void narrow_row(const bwi_kernels *kernels, const bwi_image *x_image, const bwi_upsample2d_attributes *a, const float *dy,
                       float *mixed)
{
    int64_t step = x_image->block, width = x_image->w * a->size[1];
    memset(mixed, 0, (size_t)(x_image->w * step) * sizeof *mixed);
    for (int64_t w = 0; w < width; w++, dy += step) {
        place p = place_of(w, a->size[1], x_image->w, a->bilinear);
        float *low = mixed + p.low * step, *high = mixed + p.high * step;
        if (!a->bilinear) {
            kernels->add(step, dy, low);
            continue;
        }
        for (int64_t c = 0; c < step; c++) {
            float share = p.part * dy[c];
            low[c] += dy[c] - share;
            high[c] += share;
        }
    }
}

static void backward_plane(const bwi_kernels *kernels, const bwi_image *x_image, const bwi_upsample2d_attributes *a,
                           const float *dy, float *dx, float *mixed)
{
    int64_t x_row = x_image->w * x_image->block, y_row = x_row * a->size[1];
    memset(dx, 0, (size_t)(x_image->h * x_row) * sizeof *dx);
    for (int64_t h = 0; h < x_image->h * a->size[0]; h++, dy += y_row) {
        place p = place_of(h, a->size[0], x_image->h, a->bilinear);
        narrow_row(kernels, x_image, a, dy, mixed);
        if (!a->bilinear) {
            kernels->add(x_row, mixed, dx + p.low * x_row);
            continue;
        }
        float *low = dx + p.low * x_row, *high = dx + p.high * x_row;
        for (int64_t i = 0; i < x_row; i++) {
            float share = p.part * mixed[i];
            low[i] += mixed[i] - share;
            high[i] += share;
        }
    }
}

static bw_status prepare(bwi_prepare *p)
{
    bwi_image x = bwi_node_image(p->node->input[0], 1);
    p->scratch_bytes = (size_t)(x.w * x.block) * sizeof(float); /* one row of x */
    return BW_OK;
}

static bw_status forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    bwi_image x = bwi_node_image(call->node->input[0], call->samples);
    const bwi_upsample2d_attributes *a = call->node->attributes;
    int64_t planes = call->samples * bwi_image_blocks(&x), plane = x.h * x.w * x.block;
    for (int64_t p = 0; p < planes; p++) {
        forward_plane(&x, a, (const float *)call->src[0] + p * plane, (float *)call->dst + p * plane * a->size[0] * a->size[1],
                      call->scratch);
    }
    return BW_OK;
}

static bw_status backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    bwi_image x = bwi_node_image(call->node->input[0], call->samples);
    const bwi_upsample2d_attributes *a = call->node->attributes;
    int64_t planes = call->samples * bwi_image_blocks(&x), plane = x.h * x.w * x.block;
    for (int64_t p = 0; p < planes; p++) {
        backward_plane(call->kernels, &x, a, (const float *)call->diff_dst + p * plane * a->size[0] * a->size[1],
                       (float *)call->diff_src[0] + p * plane, call->scratch);
    }
    return BW_OK;
}

const bwi_op bwi_op_upsample2d = {
    .name = "upsample2d", .layout = BWI_LAYOUT_SAME, .shape = shape, .prepare = prepare, .forward = forward, .backward = backward};
