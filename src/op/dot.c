/*
 * dot: the sum over one axis of each of two inputs, sample by sample. With the first as [a][K][b] around its axis and the
 * second as [c][K][d]: y[a][b][c][d] = sum over k of x[a][k][b] z[c][k][d]. The product of two matrices is one of them.
 */
#include "op/op.h"

#include <string.h>

static const bwi_dot_attributes *attributes_of(const bw_node *node)
{
    return node->attributes;
}

static void left_over(const bwi_shape *in, int axis, bwi_shape *out)
{
    for (int i = 0; i < in->ndim; i++) {
        if (i != axis) {
            out->extent[out->ndim++] = in->extent[i];
        }
    }
}

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    const bwi_dot_attributes *a = attributes_of(node);
    const bw_node *x = node->input[0], *z = node->inputs == 2 ? node->input[1] : NULL;
    char first[160], second[160];
    if (!z || x->dtype != BW_F32 || z->dtype != BW_F32) {
        return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: dot: expected two float32 inputs, got %d inputs", node->name,
                        node->inputs);
    }
    bwi_format_shape(first, x->shape.ndim, x->shape.extent);
    bwi_format_shape(second, z->shape.ndim, z->shape.extent);
    if (a->axis[0] < 0 || a->axis[0] >= x->shape.ndim || a->axis[1] < 0 || a->axis[1] >= z->shape.ndim) {
        return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT,
                        "layer %s: dot: shapes %s and %s have no axes %d and %d (the batch is axis 0)", node->name, first, second,
                        a->axis[0] + 1, a->axis[1] + 1);
    }
    if (x->shape.extent[a->axis[0]] != z->shape.extent[a->axis[1]]) {
        return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT,
                        "layer %s: dot: axis %d of %s and axis %d of %s (the batch is axis 0) have %lld and %lld values",
                        node->name, a->axis[0] + 1, first, a->axis[1] + 1, second, (long long)x->shape.extent[a->axis[0]],
                        (long long)z->shape.extent[a->axis[1]]);
    }
    if (x->shape.ndim + z->shape.ndim - 2 >= BW_MAX_NDIM) {
        return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: dot: shapes %s and %s leave more than %d axes", node->name,
                        first, second, BW_MAX_NDIM - 1);
    }
    node->shape = (bwi_shape){.ndim = 0};
    left_over(&x->shape, a->axis[0], &node->shape);
    left_over(&z->shape, a->axis[1], &node->shape);
    if (node->shape.ndim == 0) {
        node->shape = (bwi_shape){.ndim = 1, .extent = {1}};
    }
    return BW_OK;
}

typedef struct sides {
    bwi_around x, z;
    int64_t x_count, z_count, rows, columns; /* y is rows by columns */
} sides;

static sides sides_of(const bw_node *node)
{
    const bwi_dot_attributes *a = attributes_of(node);
    sides s = {.x = bwi_shape_around(&node->input[0]->shape, a->axis[0]),
               .z = bwi_shape_around(&node->input[1]->shape, a->axis[1])};
    s.rows = s.x.outer * s.x.inner;
    s.columns = s.z.outer * s.z.inner;
    s.x_count = s.rows * s.x.extent;
    s.z_count = s.columns * s.z.extent;
    return s;
}

/* Column x[.][k][.] of row r begins here and goes on by x.inner. */
static int64_t row_start(const sides *s, int64_t r)
{
    return r / s->x.inner * s->x.extent * s->x.inner + r % s->x.inner;
}

static void forward_row(const sides *s, const float *x, const float *z, float *y)
{
    memset(y, 0, (size_t)s->columns * sizeof *y);
    for (int64_t c = 0; c < s->z.outer; c++, z += s->z.extent * s->z.inner, y += s->z.inner) {
        if (s->z.inner == 1) {
            double sum = 0;
            for (int64_t k = 0; k < s->z.extent; k++) {
                sum += (double)x[k * s->x.inner] * (double)z[k];
            }
            y[0] = (float)sum;
            continue;
        }
        for (int64_t k = 0; k < s->z.extent; k++) {
            const float factor = x[k * s->x.inner], *from = z + k * s->z.inner;
            for (int64_t d = 0; d < s->z.inner; d++) {
                y[d] += factor * from[d];
            }
        }
    }
}

static bw_status forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    sides s = sides_of(call->node);
    const float *x = call->src[0], *z = call->src[1];
    float *y = call->dst;
    for (int64_t n = 0; n < call->samples; n++, x += s.x_count, z += s.z_count) {
        for (int64_t r = 0; r < s.rows; r++, y += s.columns) {
            forward_row(&s, x + row_start(&s, r), z, y);
        }
    }
    return BW_OK;
}

/* dx[k] of one row = sum over columns of dy z[.][k][.]. */
static void backward_first(const sides *s, const float *z, const float *dy, float *dx)
{
    for (int64_t k = 0; k < s->z.extent; k++) {
        double sum = 0;
        for (int64_t c = 0; c < s->z.outer; c++) {
            const float *from = z + (c * s->z.extent + k) * s->z.inner;
            for (int64_t d = 0; d < s->z.inner; d++) {
                sum += (double)dy[c * s->z.inner + d] * (double)from[d];
            }
        }
        dx[k * s->x.inner] = (float)sum;
    }
}

/* dz += dy x[k] of one row. */
static void backward_second(const sides *s, const float *x, const float *dy, float *dz)
{
    for (int64_t c = 0; c < s->z.outer; c++) {
        for (int64_t k = 0; k < s->z.extent; k++) {
            float factor = x[k * s->x.inner];
            float *to = dz + (c * s->z.extent + k) * s->z.inner;
            for (int64_t d = 0; d < s->z.inner; d++) {
                to[d] += factor * dy[c * s->z.inner + d];
            }
        }
    }
}

static bw_status backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    sides s = sides_of(call->node);
    const float *x = call->src[0], *z = call->src[1], *dy = call->diff_dst;
    float *dx = call->diff_src[0], *dz = call->diff_src[1];
    if (dz) {
        memset(dz, 0, (size_t)(call->samples * s.z_count) * sizeof *dz);
    }
    for (int64_t n = 0; n < call->samples; n++) {
        for (int64_t r = 0; r < s.rows; r++, dy += s.columns) {
            if (dx) {
                backward_first(&s, z + n * s.z_count, dy, dx + n * s.x_count + row_start(&s, r));
            }
            if (dz) {
                backward_second(&s, x + n * s.x_count + row_start(&s, r), dy, dz + n * s.z_count);
            }
        }
    }
    return BW_OK;
}

static double flops(const bw_node *node)
{
    sides s = sides_of(node);
    return 2 * (double)s.rows * (double)s.columns * (double)s.x.extent;
}

const bwi_op bwi_op_dot = {.name = "dot",
                           .backward_reads = BWI_READS_SRC,
                           .layout = BWI_LAYOUT_CHANNELS_LAST,
                           .shape = shape,
                           .forward = forward,
                           .backward = backward,
                           .flops = flops};
