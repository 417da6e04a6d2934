/*
 * batchnorm over the last axis. In training its statistics are those of the whole batch, whatever the tiles:
 * sums of x and x*x (in double) are gathered over all tiles, then y = (x - mean) scale + beta with
 * scale = gamma / sqrt(var + eps). Differences are taken first: a batch of one value a channel gives exactly beta and a
 * gradient of exactly zero, which rounding would turn into steps of Adam and into a ReLU's choice. Backward, with M values,
 * x_hat = (x - mean) / sqrt(var + eps), S1 = sum dy, S2 = sum dy x_hat:
 *   dx = scale (dy - S1/M - x_hat S2/M),  dgamma = S2,  dbeta = S1.
 * The moving values change once per update, at the commit; batches fed in pieces move them once per piece.
 */
#include "op/op.h"

#include <math.h>
#include <string.h>

/* Rows of `channels` floats in the forward statistics. */
enum { MEAN, INVERSE, SCALE, SHIFT, MOVING_MEAN, MOVING_VARIANCE, STATISTICS_ROWS };
/* dx = A (dy - D) + B (x - mean). */
enum { A, B, D, BACKWARD_ROWS };

static int64_t channels_of(const bw_node *node)
{
    return node->shape.extent[node->shape.ndim - 1];
}

static float *row(float *statistics, const bw_node *node, int which)
{
    return statistics + which * channels_of(node);
}

/* Positions of the variables; -1: not there. */
static int gamma_of(const bw_node *node)
{
    return ((const bwi_batchnorm_attributes *)node->attributes)->scale ? 0 : -1;
}
static int beta_of(const bw_node *node)
{
    const bwi_batchnorm_attributes *a = node->attributes;
    return a->center ? (a->scale ? 1 : 0) : -1;
}
static int moving_of(const bw_node *node)
{
    return node->variables - 2;
}

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    node->shape = node->input[0]->shape;
    if (node->shape.ndim < 1) {
        return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: expected at least one axis, got a single number a sample",
                        node->name);
    }
    return BW_OK;
}

static bw_status prepare(bwi_prepare *p)
{
    size_t channels = (size_t)channels_of(p->node);
    p->scratch_bytes = channels * 2 * sizeof(double);
    return BW_OK;
}

static int64_t sum_count(const bw_node *node)
{
    return 2 * channels_of(node);
}
static int64_t statistics_count(const bw_node *node)
{
    return STATISTICS_ROWS * channels_of(node);
}
static int64_t backward_statistics_count(const bw_node *node)
{
    return BACKWARD_ROWS * channels_of(node);
}

static bw_status prologue(const bwi_call *call)
{
    int64_t c = channels_of(call->node);
    if (call->statistics) {
        int moving = moving_of(call->node);
        memcpy(row(call->statistics, call->node, MOVING_MEAN), call->weights[moving], (size_t)c * sizeof(float));
        memcpy(row(call->statistics, call->node, MOVING_VARIANCE), call->weights[moving + 1], (size_t)c * sizeof(float));
    }
    return BW_OK;
}

static bw_status statistics(const bwi_call *call, const bwi_tile *tile)
{
    bwi_image image = bwi_node_image(call->node->input[0], call->samples);
    call->kernels->channel_sums(&image, call->src[0], bwi_call_sums(call, tile));
    return BW_OK;
}

static void make_affine(const bwi_call *call, int64_t c, float variance, float *inverse, float *scale, float *shift)
{
    const bwi_batchnorm_attributes *a = call->node->attributes;
    float gamma = gamma_of(call->node) >= 0 ? ((const float *)call->weights[gamma_of(call->node)])[c] : 1;
    float beta = beta_of(call->node) >= 0 ? ((const float *)call->weights[beta_of(call->node)])[c] : 0;
    *inverse = 1 / sqrtf(variance + a->epsilon);
    *scale = gamma * *inverse;
    *shift = beta;
}

static double values_per_channel(const bw_node *node, int64_t samples)
{
    return (double)samples * (double)(bwi_shape_count(&node->shape) / channels_of(node));
}

static void finish(const bwi_call *call, const void *totals, int64_t samples)
{
    const double *sums = totals;
    const bw_node *node = call->node;
    const bwi_batchnorm_attributes *a = node->attributes;
    int64_t channels = channels_of(node);
    double m = values_per_channel(node, samples);
    float *s = call->statistics;
    for (int64_t c = 0; c < channels; c++) {
        double mean = sums[c] / m, variance = fmax(sums[channels + c] / m - mean * mean, 0);
        row(s, node, MEAN)[c] = (float)mean;
        make_affine(call, c, (float)variance, &row(s, node, INVERSE)[c], &row(s, node, SCALE)[c], &row(s, node, SHIFT)[c]);
        float *moving_mean = row(s, node, MOVING_MEAN), *moving_variance = row(s, node, MOVING_VARIANCE);
        moving_mean[c] = moving_mean[c] * a->momentum + (float)mean * (1 - a->momentum);
        moving_variance[c] = moving_variance[c] * a->momentum + (float)variance * (1 - a->momentum);
    }
}

static bw_status forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    bwi_image image = bwi_node_image(call->node, call->samples);
    float *s = call->statistics;
    call->kernels->channel_affine(&image, call->src[0], row(s, call->node, MEAN), row(s, call->node, SCALE),
                                  row(s, call->node, SHIFT), call->dst);
    return BW_OK;
}

static bw_status inference(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    int64_t channels = channels_of(call->node);
    const float *mean = call->weights[moving_of(call->node)], *variance = call->weights[moving_of(call->node) + 1];
    float *scale = call->scratch, *shift = scale + channels;
    for (int64_t c = 0; c < channels; c++) {
        float inverse;
        make_affine(call, c, variance[c], &inverse, &scale[c], &shift[c]);
    }
    bwi_image image = bwi_node_image(call->node, call->samples);
    call->kernels->channel_affine(&image, call->src[0], mean, scale, shift, call->dst);
    return BW_OK;
}

static void add_gradient(const bwi_call *call, const bwi_tile *tile, int variable, const double *sums)
{
    if (variable < 0 || call->gradient[variable] == SIZE_MAX) {
        return;
    }
    float *gradient = bwi_call_gradient(call, tile, variable);
    bool accumulate = bwi_call_accumulates(call, tile, variable);
    for (int64_t c = 0; c < channels_of(call->node); c++) {
        gradient[c] = (accumulate ? gradient[c] : 0) + (float)sums[c];
    }
}

static bw_status backward_statistics(const bwi_call *call, const bwi_tile *tile)
{
    const bw_node *node = call->node;
    int64_t channels = channels_of(node);
    double *own = call->scratch, *sums = bwi_call_sums(call, tile);
    memset(own, 0, (size_t)channels * 2 * sizeof *own);
    bwi_image image = bwi_node_image(node->input[0], call->samples);
    call->kernels->channel_backward_sums(&image, call->src[0], call->diff_dst, row(call->statistics, node, MEAN),
                                         row(call->statistics, node, INVERSE), own);
    for (int64_t c = 0; c < 2 * channels; c++) {
        sums[c] += own[c];
    }
    add_gradient(call, tile, beta_of(node), own);
    add_gradient(call, tile, gamma_of(node), own + channels);
    return BW_OK;
}

static void backward_finish(const bwi_call *call, const void *totals, int64_t samples)
{
    const double *sums = totals;
    const bw_node *node = call->node;
    int64_t channels = channels_of(node);
    double m = values_per_channel(node, samples);
    for (int64_t c = 0; c < channels; c++) {
        double inverse = (double)row(call->statistics, node, INVERSE)[c];
        double scale = (double)row(call->statistics, node, SCALE)[c], slope = scale * inverse * sums[channels + c] / m;
        row(call->backward_statistics, node, A)[c] = (float)scale;
        row(call->backward_statistics, node, B)[c] = (float)-slope;
        row(call->backward_statistics, node, D)[c] = (float)(sums[c] / m);
    }
}

static bw_status backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    const bw_node *node = call->node;
    bwi_image image = bwi_node_image(node, call->samples);
    float *s = call->backward_statistics;
    call->kernels->channel_backward(&image, call->src[0], call->diff_dst, row(call->statistics, node, MEAN), row(s, node, A),
                                    row(s, node, B), row(s, node, D), call->diff_src[0]);
    return BW_OK;
}

static void commit(const bwi_call *call)
{
    size_t bytes = (size_t)channels_of(call->node) * sizeof(float);
    int moving = moving_of(call->node);
    memcpy(call->weights[moving], row(call->statistics, call->node, MOVING_MEAN), bytes);
    memcpy(call->weights[moving + 1], row(call->statistics, call->node, MOVING_VARIANCE), bytes);
}

static const bwi_op_kernels kernels = {.prologue = prologue};
static const bwi_op_sums sums_table = {.count = sum_count,
                                       .statistics = statistics,
                                       .finished = statistics_count,
                                       .finish = finish,
                                       .backward_statistics = backward_statistics,
                                       .backward_finished = backward_statistics_count,
                                       .backward_finish = backward_finish,
                                       .commit = commit};

const bwi_op bwi_op_batchnorm = {.name = "batchnorm",
                                 .flags = BWI_OP_WHOLE_BATCH | BWI_OP_BACKWARD_IN_PLACE,
                                 .backward_reads = BWI_READS_SRC,
                                 .layout = BWI_LAYOUT_SAME,
                                 .shape = shape,
                                 .prepare = prepare,
                                 .forward = forward,
                                 .inference = inference,
                                 .backward = backward,
                                 .sums = &sums_table,
                                 .kernels = &kernels};

/* ---- Frozen: a layer that is not trained uses its moving values in training too, and is an affine map. ---- */

static bw_status frozen_backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    int64_t channels = channels_of(call->node);
    const float *variance = call->weights[moving_of(call->node) + 1];
    float *scale = call->scratch, *zeros = scale + channels;
    for (int64_t c = 0; c < channels; c++) {
        float inverse, shift;
        make_affine(call, c, variance[c], &inverse, &scale[c], &shift);
        zeros[c] = 0;
    }
    bwi_image image = bwi_node_image(call->node, call->samples);
    call->kernels->channel_affine(&image, call->diff_dst, zeros, scale, zeros, call->diff_src[0]);
    return BW_OK;
}

const bwi_op bwi_op_batchnorm_frozen = {.name = "batchnorm_frozen",
                                        .flags = BWI_OP_IN_PLACE | BWI_OP_BACKWARD_IN_PLACE,
                                        .layout = BWI_LAYOUT_SAME,
                                        .shape = shape,
                                        .prepare = prepare,
                                        .forward = inference,
                                        .backward = frozen_backward};

/* ---- Ghost: statistics of fixed groups of samples, in the order of the batch. A group lies within a tile; what is left at the end of
 * a batch forms groups of powers of two, as its tiles do, so that no group depends on the tile. The moving values change once per
 * update, by the means over groups, weighted by their samples. Statistics are computed again where they are needed. ---- */

/* Of one group, in the scratch memory. */
typedef struct group {
    bwi_image image;
    int64_t samples;
    float *mean, *inverse, *scale, *shift, *a, *b, *d;
    double *sums; /* sums, and what backward sums */
} group;

enum { GROUP_FLOATS = 7, GROUP_DOUBLES = 2 };

static int64_t ghost_group(const bw_node *node)
{
    return ((const bwi_batchnorm_attributes *)node->attributes)->ghost;
}

static bw_status ghost_prepare(bwi_prepare *p)
{
    size_t channels = (size_t)channels_of(p->node);
    /* Sums of all groups behind those of one. */
    p->scratch_bytes = channels * (2 * GROUP_DOUBLES * sizeof(double) + GROUP_FLOATS * sizeof(float));
    return BW_OK;
}

static group open_group(const bwi_call *call)
{
    int64_t c = channels_of(call->node), samples = ghost_group(call->node);
    group g = {.samples = call->samples < samples ? call->samples : samples, .sums = call->scratch};
    g.image = bwi_node_image(call->node, g.samples);
    g.mean = (float *)(void *)(g.sums + 2 * GROUP_DOUBLES * c);
    g.inverse = g.mean + c;
    g.scale = g.inverse + c;
    g.shift = g.scale + c;
    g.a = g.shift + c;
    g.b = g.a + c;
    g.d = g.b + c;
    return g;
}

static const float *part(const group *g, const float *values, int64_t first)
{
    return values + first / g->samples * bwi_image_floats(&g->image);
}

/* Mean and variance; the variance takes the place of `d`. */
static void find_statistics(const bwi_call *call, const group *g, const float *x)
{
    int64_t channels = channels_of(call->node);
    double m = values_per_channel(call->node, g->samples);
    memset(g->sums, 0, (size_t)channels * 2 * sizeof(double));
    call->kernels->channel_sums(&g->image, x, g->sums);
    for (int64_t c = 0; c < channels; c++) {
        double mean = g->sums[c] / m, variance = fmax(g->sums[channels + c] / m - mean * mean, 0);
        g->mean[c] = (float)mean;
        g->d[c] = (float)variance;
        make_affine(call, c, (float)variance, &g->inverse[c], &g->scale[c], &g->shift[c]);
    }
}

static bw_status ghost_statistics(const bwi_call *call, const bwi_tile *tile)
{
    group g = open_group(call);
    int64_t channels = channels_of(call->node);
    double *sums = bwi_call_sums(call, tile);
    for (int64_t s = 0; s < call->samples; s += g.samples) {
        find_statistics(call, &g, part(&g, call->src[0], s));
        for (int64_t c = 0; c < channels; c++) {
            sums[c] += (double)g.samples * (double)g.mean[c];
            sums[channels + c] += (double)g.samples * (double)g.d[c];
        }
    }
    return BW_OK;
}

static void ghost_finish(const bwi_call *call, const void *totals, int64_t samples)
{
    const double *sums = totals;
    const bw_node *node = call->node;
    const bwi_batchnorm_attributes *a = node->attributes;
    int64_t channels = channels_of(node);
    for (int64_t c = 0; c < 2 * channels; c++) {
        float *moving = &row(call->statistics, node, MOVING_MEAN)[c]; /* the variance lies behind */
        *moving = *moving * a->momentum + (float)(sums[c] / (double)samples) * (1 - a->momentum);
    }
}

static bw_status ghost_forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    group g = open_group(call);
    float *dst = call->dst;
    for (int64_t s = 0; s < call->samples; s += g.samples) {
        const float *x = part(&g, call->src[0], s);
        find_statistics(call, &g, x);
        call->kernels->channel_affine(&g.image, x, g.mean, g.scale, g.shift, dst + (x - (const float *)call->src[0]));
    }
    return BW_OK;
}

/* S1 and S2 of the group at s, in its sums. */
static void find_backward_sums(const bwi_call *call, const group *g, const float *x, const float *dy)
{
    find_statistics(call, g, x);
    memset(g->sums, 0, (size_t)channels_of(call->node) * 2 * sizeof(double));
    call->kernels->channel_backward_sums(&g->image, x, dy, g->mean, g->inverse, g->sums);
}

static bw_status ghost_backward_weights(const bwi_call *call, const bwi_tile *tile)
{
    group g = open_group(call);
    int64_t channels = channels_of(call->node);
    double *all = g.sums + GROUP_DOUBLES * channels;
    memset(all, 0, (size_t)channels * 2 * sizeof(double));
    for (int64_t s = 0; s < call->samples; s += g.samples) {
        find_backward_sums(call, &g, part(&g, call->src[0], s), part(&g, call->diff_dst, s));
        for (int64_t c = 0; c < 2 * channels; c++) {
            all[c] += g.sums[c];
        }
    }
    add_gradient(call, tile, beta_of(call->node), all);
    add_gradient(call, tile, gamma_of(call->node), all + channels);
    return BW_OK;
}

static bw_status ghost_backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    group g = open_group(call);
    int64_t channels = channels_of(call->node);
    double m = values_per_channel(call->node, g.samples);
    float *diff_src = call->diff_src[0];
    for (int64_t s = 0; s < call->samples; s += g.samples) {
        const float *x = part(&g, call->src[0], s), *dy = part(&g, call->diff_dst, s);
        find_backward_sums(call, &g, x, dy);
        for (int64_t c = 0; c < channels; c++) {
            g.a[c] = g.scale[c];
            g.b[c] = (float)(-(double)g.scale[c] * (double)g.inverse[c] * g.sums[channels + c] / m);
            g.d[c] = (float)(g.sums[c] / m);
        }
        call->kernels->channel_backward(&g.image, x, dy, g.mean, g.a, g.b, g.d, diff_src + (x - (const float *)call->src[0]));
    }
    return BW_OK;
}

static const bwi_op_sums ghost_sums = {
    .count = sum_count, .statistics = ghost_statistics, .finished = statistics_count, .finish = ghost_finish, .commit = commit};

const bwi_op bwi_op_batchnorm_ghost = {.name = "batchnorm_ghost",
                                       .flags = BWI_OP_BACKWARD_IN_PLACE,
                                       .backward_reads = BWI_READS_SRC,
                                       .weights_reads = BWI_READS_SRC,
                                       .layout = BWI_LAYOUT_SAME,
                                       .shape = shape,
                                       .prepare = ghost_prepare,
                                       .forward = ghost_forward,
                                       .inference = inference,
                                       .backward = ghost_backward,
                                       .backward_weights = ghost_backward_weights,
                                       .sums = &ghost_sums,
                                       .kernels = &kernels,
                                       .group = ghost_group};
