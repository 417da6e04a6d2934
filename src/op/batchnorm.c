/*
 * batchnorm over the last axis. In training its statistics are those of the whole batch, whatever the tiles:
 * sums of x and x*x (in double) are gathered over all tiles, then y = (x - mean) scale + beta with
 * scale = gamma / sqrt(var + eps). Differences are taken first: a batch of one value a channel gives exactly beta and a
 * gradient of exactly zero, which rounding would turn into steps of Adam and into a ReLU's choice. Backward, with M values,
 * x_hat = (x - mean) / sqrt(var + eps), S1 = sum dy, S2 = sum dy x_hat:
 *   dx = scale (dy - S1/M - x_hat S2/M),  dgamma = S2,  dbeta = S1.
 * The moving values change at the commit: once per update, once per piece where a batch is fed in pieces, and once for each use of
 * a layer that is used several times.
 */
#include "op/internal.h"

/* The rows of `channels` floats in the forward statistics. */
enum { MEAN, VARIANCE, INVERSE, SCALE, SHIFT, MOVING_MEAN, MOVING_VARIANCE, STATISTICS_ROWS };
/* dx = A (dy - D) + B (x - mean). */
enum { A, B, D, BACKWARD_ROWS };

static int64_t channels_of(const bw_node *node)
{
    return node->shape.extent[node->shape.ndim - 1];
}

static void *row(void *statistics, const bw_node *node, int which)
{
    return bwi_floats_at(statistics, which * channels_of(node));
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

static bw_status statistics(const bwi_call *call, const bwi_tile *tile)
{
    bwi_image image = bwi_node_image(call->node->input[0], call->samples);
    call->kernels->channel_sums(&image, call->src[0], bwi_call_sums(call, tile));
    return BW_OK;
}

/* Computes the affine map from a variance, which may be stored in `inverse`. */
static void make_affine(const bwi_call *call, const void *variance, void *inverse, void *scale, void *shift)
{
    const bw_node *node = call->node;
    const bwi_batchnorm_attributes *a = node->attributes;
    call->kernels->normalize->affine(channels_of(node), a->epsilon, variance,
                                     gamma_of(node) >= 0 ? call->weights[gamma_of(node)] : NULL,
                                     beta_of(node) >= 0 ? call->weights[beta_of(node)] : NULL, inverse, scale, shift);
}

static double values_per_channel(const bw_node *node, int64_t samples)
{
    return (double)samples * (double)(bwi_shape_count(&node->shape) / channels_of(node));
}

static void finish(const bwi_call *call, const void *sums, int64_t samples)
{
    const bw_node *node = call->node;
    void *s = call->statistics, *variance = row(s, node, VARIANCE);
    call->kernels->normalize->moments(channels_of(node), values_per_channel(node, samples), sums, row(s, node, MEAN), variance);
    make_affine(call, variance, row(s, node, INVERSE), row(s, node, SCALE), row(s, node, SHIFT));
}

/* A mean and its variance lie side by side, those of the batch and the moving ones. */
static bool advance(const bwi_call *call, const bwi_call *owner, bool begins)
{
    const bw_node *node = call->node;
    float momentum = ((const bwi_batchnorm_attributes *)node->attributes)->momentum;
    void *moving = row(owner->statistics, owner->node, MOVING_MEAN);
    if (begins) {
        size_t bytes = (size_t)channels_of(node) * sizeof(float);
        call->kernels->memory->copy(moving, call->weights[moving_of(node)], bytes);
        call->kernels->memory->copy(row(owner->statistics, owner->node, MOVING_VARIANCE), call->weights[moving_of(node) + 1],
                                    bytes);
    }
    call->kernels->normalize->blend(2 * channels_of(node), momentum, row(call->statistics, node, MEAN), moving);
    return call->kernels->lanes->finiteness(2 * channels_of(node), moving) == BWI_FINITE;
}

static bw_status forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    bwi_image image = bwi_node_image(call->node, call->samples);
    void *s = call->statistics;
    call->kernels->channel_affine(&image, call->src[0], row(s, call->node, MEAN), row(s, call->node, SCALE),
                                  row(s, call->node, SHIFT), call->dst);
    return BW_OK;
}

/* Applies the affine map of the moving values: its scale, shift and inverse are in the scratch memory. */
static bw_status inference(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    int64_t channels = channels_of(call->node);
    void *mean = call->weights[moving_of(call->node)], *variance = call->weights[moving_of(call->node) + 1];
    void *scale = call->scratch, *shift = bwi_floats_at(scale, channels), *inverse = bwi_floats_at(shift, channels);
    make_affine(call, variance, inverse, scale, shift);
    bwi_image image = bwi_node_image(call->node, call->samples);
    call->kernels->channel_affine(&image, call->src[0], mean, scale, shift, call->dst);
    return BW_OK;
}

static void *after_doubles(void *base, int64_t doubles)
{
    return (char *)base + (size_t)doubles * sizeof(double);
}

/* Adds dbeta and dgamma, which are the sums of dy and of dy x_hat. */
static void add_gradients(const bwi_call *call, const bwi_tile *tile, void *sums)
{
    const bw_node *node = call->node;
    if (beta_of(node) >= 0) {
        bwi_call_add_gradient(call, tile, beta_of(node), sums);
    }
    if (gamma_of(node) >= 0) {
        bwi_call_add_gradient(call, tile, gamma_of(node), after_doubles(sums, channels_of(node)));
    }
}

static bw_status backward_statistics(const bwi_call *call, const bwi_tile *tile)
{
    const bw_node *node = call->node;
    int64_t channels = channels_of(node);
    void *own = call->scratch;
    call->kernels->memory->clear(own, (size_t)channels * 2 * sizeof(double));
    bwi_image image = bwi_node_image(node->input[0], call->samples);
    call->kernels->channel_backward_sums(&image, call->src[0], call->diff_dst, row(call->statistics, node, MEAN),
                                         row(call->statistics, node, INVERSE), own);
    call->kernels->normalize->add_doubles(2 * channels, own, bwi_call_sums(call, tile));
    add_gradients(call, tile, own);
    return BW_OK;
}

static void backward_finish(const bwi_call *call, const void *sums, int64_t samples)
{
    const bw_node *node = call->node;
    void *s = call->statistics, *to = call->backward_statistics;
    call->kernels->normalize->backward_factors(channels_of(node), values_per_channel(node, samples), sums, row(s, node, INVERSE),
                                               row(s, node, SCALE), row(to, node, A), row(to, node, B), row(to, node, D));
}

static bw_status backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    const bw_node *node = call->node;
    bwi_image image = bwi_node_image(node, call->samples);
    void *s = call->backward_statistics;
    call->kernels->channel_backward(&image, call->src[0], call->diff_dst, row(call->statistics, node, MEAN), row(s, node, A),
                                    row(s, node, B), row(s, node, D), call->diff_src[0]);
    return BW_OK;
}

static void commit(const bwi_call *call)
{
    size_t bytes = (size_t)channels_of(call->node) * sizeof(float);
    int moving = moving_of(call->node);
    call->kernels->memory->copy(call->weights[moving], row(call->statistics, call->node, MOVING_MEAN), bytes);
    call->kernels->memory->copy(call->weights[moving + 1], row(call->statistics, call->node, MOVING_VARIANCE), bytes);
}

static const bwi_op_sums sums_table = {.count = sum_count,
                                       .statistics = statistics,
                                       .finished = statistics_count,
                                       .finish = finish,
                                       .backward_statistics = backward_statistics,
                                       .backward_finished = backward_statistics_count,
                                       .backward_finish = backward_finish,
                                       .advance = advance,
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
                                 .sums = &sums_table};

/* ---- Frozen: a layer that is not trained uses its moving values in training too, and is an affine map. ---- */

static bw_status frozen_backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    int64_t channels = channels_of(call->node);
    void *scale = call->scratch, *zeros = bwi_floats_at(scale, channels), *inverse = bwi_floats_at(zeros, channels);
    make_affine(call, call->weights[moving_of(call->node) + 1], inverse, scale, zeros);
    call->kernels->memory->clear(zeros, (size_t)channels * sizeof(float));
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

/* ---- Ghost: statistics of fixed groups of samples, in the order of the batch. A group lies within a tile; what is left at the end
 * of a batch forms groups of powers of two, as its tiles do, so that no group depends on the tile. The moving values change once
 * per update, by the means over groups, weighted by their samples. Statistics are computed again where they are needed. ---- */

/* What belongs to one group, in the scratch memory. */
typedef struct group {
    bwi_image image;
    int64_t samples;
    void *sums;                                       /* of the group, then of all groups: doubles */
    void *mean, *inverse, *scale, *shift, *a, *b, *d; /* floats, of each channel */
} group;

enum { GROUP_FLOATS = 7, GROUP_DOUBLES = 2 };

static int64_t ghost_group(const bw_node *node)
{
    return ((const bwi_batchnorm_attributes *)node->attributes)->ghost;
}

static bw_status ghost_prepare(bwi_prepare *p)
{
    size_t channels = (size_t)channels_of(p->node);
    /* The sums of one group, then those of all groups. */
    p->scratch_bytes = channels * (2 * GROUP_DOUBLES * sizeof(double) + GROUP_FLOATS * sizeof(float));
    return BW_OK;
}

static group open_group(const bwi_call *call)
{
    int64_t c = channels_of(call->node), samples = ghost_group(call->node);
    group g = {.samples = call->samples < samples ? call->samples : samples, .sums = call->scratch};
    g.image = bwi_node_image(call->node, g.samples);
    g.mean = after_doubles(g.sums, 2 * GROUP_DOUBLES * c);
    g.inverse = bwi_floats_at(g.mean, c);
    g.scale = bwi_floats_at(g.inverse, c);
    g.shift = bwi_floats_at(g.scale, c);
    g.a = bwi_floats_at(g.shift, c);
    g.b = bwi_floats_at(g.a, c);
    g.d = bwi_floats_at(g.b, c);
    return g;
}

/* The part of a tile's tensor that belongs to the group. */
static void *part(const group *g, void *tensor, int64_t first)
{
    return bwi_floats_at(tensor, first / g->samples * bwi_image_floats(&g->image));
}

/* Computes the group's mean, and its variance in the place of `d`. */
static void find_statistics(const bwi_call *call, const group *g, const void *x)
{
    int64_t channels = channels_of(call->node);
    call->kernels->memory->clear(g->sums, (size_t)channels * 2 * sizeof(double));
    call->kernels->channel_sums(&g->image, x, g->sums);
    call->kernels->normalize->moments(channels, values_per_channel(call->node, g->samples), g->sums, g->mean, g->d);
    make_affine(call, g->d, g->inverse, g->scale, g->shift);
}

static bw_status ghost_statistics(const bwi_call *call, const bwi_tile *tile)
{
    group g = open_group(call);
    int64_t channels = channels_of(call->node);
    void *sums = bwi_call_sums(call, tile);
    for (int64_t s = 0; s < call->samples; s += g.samples) {
        find_statistics(call, &g, part(&g, call->src[0], s));
        call->kernels->normalize->add_weighted(channels, (double)g.samples, g.mean, sums);
        call->kernels->normalize->add_weighted(channels, (double)g.samples, g.d, after_doubles(sums, channels));
    }
    return BW_OK;
}

/* The means over groups serve as the statistics of the whole batch; those of the variance follow those of the mean. */
static void ghost_finish(const bwi_call *call, const void *sums, int64_t samples)
{
    const bw_node *node = call->node;
    call->kernels->normalize->averages(2 * channels_of(node), (double)samples, sums, row(call->statistics, node, MEAN));
}

static bw_status ghost_forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    group g = open_group(call);
    for (int64_t s = 0; s < call->samples; s += g.samples) {
        const void *x = part(&g, call->src[0], s);
        find_statistics(call, &g, x);
        call->kernels->channel_affine(&g.image, x, g.mean, g.scale, g.shift, part(&g, call->dst, s));
    }
    return BW_OK;
}

/* Computes S1 and S2 of a group, in its sums. */
static void find_backward_sums(const bwi_call *call, const group *g, const void *x, const void *dy)
{
    find_statistics(call, g, x);
    call->kernels->memory->clear(g->sums, (size_t)channels_of(call->node) * 2 * sizeof(double));
    call->kernels->channel_backward_sums(&g->image, x, dy, g->mean, g->inverse, g->sums);
}

static bw_status ghost_backward_weights(const bwi_call *call, const bwi_tile *tile)
{
    group g = open_group(call);
    int64_t channels = channels_of(call->node);
    void *all = after_doubles(g.sums, GROUP_DOUBLES * channels);
    call->kernels->memory->clear(all, (size_t)channels * 2 * sizeof(double));
    for (int64_t s = 0; s < call->samples; s += g.samples) {
        find_backward_sums(call, &g, part(&g, call->src[0], s), part(&g, call->diff_dst, s));
        call->kernels->normalize->add_doubles(2 * channels, g.sums, all);
    }
    add_gradients(call, tile, all);
    return BW_OK;
}

static bw_status ghost_backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    group g = open_group(call);
    int64_t channels = channels_of(call->node);
    double m = values_per_channel(call->node, g.samples);
    for (int64_t s = 0; s < call->samples; s += g.samples) {
        const void *x = part(&g, call->src[0], s), *dy = part(&g, call->diff_dst, s);
        find_backward_sums(call, &g, x, dy);
        call->kernels->normalize->backward_factors(channels, m, g.sums, g.inverse, g.scale, g.a, g.b, g.d);
        call->kernels->channel_backward(&g.image, x, dy, g.mean, g.a, g.b, g.d, part(&g, call->diff_src[0], s));
    }
    return BW_OK;
}

static const bwi_op_sums ghost_sums = {.count = sum_count,
                                       .statistics = ghost_statistics,
                                       .finished = statistics_count,
                                       .finish = ghost_finish,
                                       .advance = advance,
                                       .commit = commit};

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
                                       .group = ghost_group};
