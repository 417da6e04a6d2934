/*
 * layernorm over the last axes, a row of W values: y = x_hat gamma + beta, x_hat = (x - mean) inverse,
 * inverse = 1 / sqrt(variance + epsilon). With g = dy gamma: dx = inverse (g - mean g - x_hat mean(g x_hat)),
 * dgamma = sum dy x_hat, dbeta = sum dy. Forward keeps mean and inverse of each row.
 */
#include "op/op.h"

#include <math.h>
#include <string.h>

static const bwi_layernorm_attributes *attributes_of(const bw_node *node)
{
    return node->attributes;
}

static int64_t width_of(const bw_node *node)
{
    int64_t width = 1;
    for (int i = node->shape.ndim - attributes_of(node)->axes; i < node->shape.ndim; i++) {
        width *= node->shape.extent[i];
    }
    return width;
}

static int64_t rows_of(const bw_node *node, int64_t samples)
{
    return samples * (bwi_shape_count(&node->shape) / width_of(node));
}

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    bw_status status = bwi_shape_like_input(graph, node);
    if (status == BW_OK && (attributes_of(node)->axes < 1 || attributes_of(node)->axes > node->shape.ndim)) {
        status = bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: %d axes cannot be normalised, the input has %d", node->name,
                          attributes_of(node)->axes, node->shape.ndim);
    }
    return status;
}

static bw_status prepare(bwi_prepare *p)
{
    size_t pairs = (size_t)rows_of(p->node, p->samples) * 2 * sizeof(float);
    size_t sums = (size_t)width_of(p->node) * 2 * sizeof(double);
    p->workspace_bytes = pairs;
    p->scratch_bytes = sums > pairs ? sums : pairs;
    return BW_OK;
}

/* gamma or beta; NULL: not there. */
static const float *weights_of(const bwi_call *call, bool gamma)
{
    const bwi_layernorm_attributes *a = attributes_of(call->node);
    bool there = gamma ? a->scale : a->center;
    return there ? call->weights[gamma ? 0 : a->scale] : NULL;
}

/* Eight sums side by side, so that they do not wait for each other: sum of a, and of a b. */
static void two_sums(int64_t count, const float *a, const float *b, double *sum, double *product)
{
    double s[8] = {0}, p[8] = {0};
    int64_t i = 0;
    for (; i + 8 <= count; i += 8) {
        for (int k = 0; k < 8; k++) {
            s[k] += (double)a[i + k];
            p[k] += (double)a[i + k] * (double)b[i + k];
        }
    }
    for (; i < count; i++) {
        s[0] += (double)a[i];
        p[0] += (double)a[i] * (double)b[i];
    }
    *sum = ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]));
    *product = ((p[0] + p[1]) + (p[2] + p[3])) + ((p[4] + p[5]) + (p[6] + p[7]));
}

static bw_status forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    const bw_node *node = call->node;
    int64_t width = width_of(node);
    const float *x = call->src[0], *gamma = weights_of(call, true), *beta = weights_of(call, false);
    float *y = call->dst, *kept = call->workspace ? call->workspace : call->scratch;
    for (int64_t r = 0; r < rows_of(node, call->samples); r++, x += width, y += width) {
        double sum, squares;
        two_sums(width, x, x, &sum, &squares);
        double mean = sum / (double)width, variance = fmax(squares / (double)width - mean * mean, 0);
        float m = (float)mean, inverse = (float)(1 / sqrt(variance + (double)attributes_of(node)->epsilon));
        kept[2 * r] = m;
        kept[2 * r + 1] = inverse;
        for (int64_t i = 0; i < width; i++) {
            y[i] = (x[i] - m) * inverse * (gamma ? gamma[i] : 1) + (beta ? beta[i] : 0);
        }
    }
    return BW_OK;
}

static bw_status backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    int64_t width = width_of(call->node);
    const float *x = call->src[0], *dy = call->diff_dst, *kept = call->workspace, *gamma = weights_of(call, true);
    float *dx = call->diff_src[0];
    for (int64_t r = 0; r < rows_of(call->node, call->samples); r++, x += width, dy += width, dx += width) {
        float mean = kept[2 * r], inverse = kept[2 * r + 1];
        for (int64_t i = 0; i < width; i++) {
            dx[i] = dy[i] * (gamma ? gamma[i] : 1);
        }
        double sum, product;
        two_sums(width, dx, x, &sum, &product);
        /* mean(g x_hat) from sums of g and g x. */
        double both = (product - sum * (double)mean) * (double)inverse / (double)width;
        float average = (float)(sum / (double)width), slope = (float)both * inverse;
        for (int64_t i = 0; i < width; i++) {
            dx[i] = inverse * (dx[i] - average - (x[i] - mean) * slope);
        }
    }
    return BW_OK;
}

static bw_status backward_weights(const bwi_call *call, const bwi_tile *tile)
{
    const bwi_layernorm_attributes *a = attributes_of(call->node);
    int64_t width = width_of(call->node);
    const float *x = call->src[0], *dy = call->diff_dst, *kept = call->workspace;
    double *gamma = call->scratch, *beta = gamma + width;
    memset(gamma, 0, (size_t)width * 2 * sizeof *gamma);
    for (int64_t r = 0; r < rows_of(call->node, call->samples); r++, x += width, dy += width) {
        float mean = kept[2 * r], inverse = kept[2 * r + 1];
        for (int64_t i = 0; i < width; i++) {
            gamma[i] += (double)(dy[i] * ((x[i] - mean) * inverse));
            beta[i] += (double)dy[i];
        }
    }
    if (a->scale) {
        bwi_call_add_gradient(call, tile, 0, gamma);
    }
    if (a->center) {
        bwi_call_add_gradient(call, tile, a->scale, beta);
    }
    return BW_OK;
}

const bwi_op bwi_op_layernorm = {.name = "layernorm",
                                 .flags = BWI_OP_BACKWARD_IN_PLACE,
                                 .backward_reads = BWI_READS_SRC | BWI_READS_WORKSPACE,
                                 .weights_reads = BWI_READS_SRC | BWI_READS_WORKSPACE,
                                 .layout = BWI_LAYOUT_CHANNELS_LAST,
                                 .shape = shape,
                                 .prepare = prepare,
                                 .forward = forward,
                                 .backward = backward,
                                 .backward_weights = backward_weights};
