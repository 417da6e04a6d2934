/*
 * attention: the values of all keys, weighted by softmax of their scores (the formulas are in kernel.h), for each query and head.
 * Kernels compute it in blocks of queries and keys, so a sample keeps two numbers for each query and head, whatever the number of
 * keys; backward computes the scores again. Masks and shares that are dropped belong to it, since scores exist nowhere else.
 */
#include "op/internal.h"

static const bwi_attention_attributes *attributes_of(const bw_node *node)
{
    return node->attributes;
}

static bw_status refuse(bwi_graph *graph, const bw_node *node, const char *what, int input, const char *expected)
{
    char found[160];
    const bwi_shape *shape = &node->input[input]->shape;
    return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: %s: expected %s, got %s", node->name, what, expected,
                    bwi_format_shape(found, shape->ndim, shape->extent));
}

/* Whether an input has these extents; -1: any. */
static bool has_shape(const bw_node *node, int input, int ndim, int64_t first, int64_t second)
{
    const bwi_shape *shape = &node->input[input]->shape;
    return shape->ndim == ndim && (first < 0 || shape->extent[0] == first) && (second < 0 || shape->extent[1] == second);
}

static bw_status check_masks(bwi_graph *graph, const bw_node *node)
{
    const bwi_attention_attributes *a = attributes_of(node);
    int64_t queries = node->input[0]->shape.extent[0], keys = node->input[1]->shape.extent[0];
    char expected[80];
    int at = 3;
    if (a->query_mask && !has_shape(node, at++, 1, queries, -1)) {
        return refuse(graph, node, "mask of the query", at - 1, "one number for each position");
    }
    if (a->key_mask && !has_shape(node, at++, 1, keys, -1)) {
        return refuse(graph, node, "mask of the value", at - 1, "one number for each position");
    }
    if (a->pair_mask && !has_shape(node, at++, 2, queries, keys)) {
        snprintf(expected, sizeof expected, "%lldx%lld", (long long)queries, (long long)keys);
        return refuse(graph, node, "attention_mask", at - 1, expected);
    }
    return BW_OK;
}

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    const bwi_attention_attributes *a = attributes_of(node);
    if (!has_shape(node, 0, 2, -1, -1) || node->input[0]->shape.extent[1] % a->heads) {
        return refuse(graph, node, "query", 0, "a sequence (length, channels)");
    }
    int64_t width = node->input[0]->shape.extent[1] / a->heads;
    char expected[80];
    if (!has_shape(node, 1, 2, -1, a->groups * width)) {
        snprintf(expected, sizeof expected, "a sequence of %lld channels, as the query's", (long long)(a->groups * width));
        return refuse(graph, node, "key", 1, expected);
    }
    if (!has_shape(node, 2, 2, node->input[1]->shape.extent[0], -1) || node->input[2]->shape.extent[1] % a->groups) {
        snprintf(expected, sizeof expected, "a sequence of length %lld, as the key's", (long long)node->input[1]->shape.extent[0]);
        return refuse(graph, node, "value", 2, expected);
    }
    node->shape = node->input[0]->shape;
    node->shape.extent[1] = node->input[2]->shape.extent[1] / a->groups * a->heads;
    return check_masks(graph, node);
}

bwi_attention bwi_attention_of(const bw_node *node, int64_t samples)
{
    const bwi_attention_attributes *a = attributes_of(node);
    const bwi_shape *q = &node->input[0]->shape, *k = &node->input[1]->shape, *v = &node->input[2]->shape;
    return (bwi_attention){.n = samples,
                           .queries = q->extent[0],
                           .keys = k->extent[0],
                           .heads = a->heads,
                           .groups = a->groups,
                           .key_width = q->extent[1] / a->heads,
                           .value_width = v->extent[1] / a->groups,
                           .scores = a->scores,
                           .masking = a->masking,
                           .scale = a->scale,
                           .causal = a->causal,
                           .window = a->window,
                           .weights = a->weight ? bwi_shape_count(&node->variable[a->factor ? 1 : 0]->shape) : 0};
}

static bwi_attention attention_of(const bwi_call *call, const bwi_tile *tile)
{
    const bwi_attention_attributes *a = attributes_of(call->node);
    bwi_attention attention = bwi_attention_of(call->node, call->samples);
    attention.drops = tile->training && a->dropout > 0;
    attention.limit = bwi_dropout_limit(a->dropout);
    attention.survival = bwi_dropout_scale(a->dropout);
    attention.seed = tile->seed;
    attention.stream = a->stream + tile->update * 0x9E3779B97F4A7C15u;
    attention.position = tile->position;
    return attention;
}

static bwi_attention_memory memory_of(const bwi_call *call)
{
    const bwi_attention_attributes *a = attributes_of(call->node);
    int at = 3, variable = 0;
    bwi_attention_memory m = {
        .q = call->src[0], .k = call->src[1], .v = call->src[2], .kept = call->workspace, .scratch = call->scratch};
    m.query_mask = a->query_mask ? call->src[at++] : NULL;
    m.key_mask = a->key_mask ? call->src[at++] : NULL;
    m.pair_mask = a->pair_mask ? call->src[at++] : NULL;
    m.factor = a->factor ? call->weights[variable++] : NULL;
    m.weight = a->weight ? call->weights[variable++] : NULL;
    return m;
}

/* The sums of the variables' differences, doubles, follow the kernels' scratch memory. */
static size_t scratch_of(const bwi_kernels *kernels, const bwi_attention *a, bool training)
{
    size_t bytes = bwi_size_multiply((size_t)kernels->packing->attention_scratch(a, training), sizeof(float));
    return bwi_size_align(bytes, BWI_CACHE_LINE);
}

static bw_status prepare(bwi_prepare *p)
{
    bwi_attention a = bwi_attention_of(p->node, p->samples);
    size_t sums = (size_t)(1 + (a.weights > 0 ? a.weights : 1)) * sizeof(double);
    p->workspace_bytes = bwi_size_multiply((size_t)(a.n * a.queries * a.heads), 2 * sizeof(float));
    p->scratch_bytes = bwi_size_add(scratch_of(bwi_kernels_of(p->ctx), &a, p->training), p->training ? sums : 0);
    return BW_OK;
}

static bw_status forward(const bwi_call *call, const bwi_tile *tile)
{
    bwi_attention a = attention_of(call, tile);
    bwi_attention_memory m = memory_of(call);
    call->kernels->attention_forward(&a, &m, call->dst);
    return BW_OK;
}

static bw_status backward(const bwi_call *call, const bwi_tile *tile)
{
    bwi_attention a = attention_of(call, tile);
    bwi_attention_memory m = memory_of(call);
    bwi_attention_differences d = {.q = call->diff_src[0], .k = call->diff_src[1], .v = call->diff_src[2]};
    call->kernels->attention_backward(&a, &m, call->dst, call->diff_dst, &d);
    for (int i = 3; i < call->node->inputs; i++) {
        if (call->diff_src[i]) { /* nothing flows back through a mask */
            call->kernels->memory->fill(call->samples * bwi_shape_count(&call->node->input[i]->shape), 0, call->diff_src[i]);
        }
    }
    return BW_OK;
}

/* Few layers have variables in their scores, so their differences may cost a pass of their own. */
static bw_status backward_weights(const bwi_call *call, const bwi_tile *tile)
{
    const bwi_attention_attributes *its = attributes_of(call->node);
    bwi_attention a = attention_of(call, tile);
    bwi_attention_memory m = memory_of(call);
    void *factor = (char *)call->scratch + scratch_of(call->kernels, &a, true), *weight = (char *)factor + sizeof(double);
    bwi_attention_differences d = {.factor = its->factor ? factor : NULL, .weight = its->weight ? weight : NULL};
    int variable = 0;
    call->kernels->attention_backward(&a, &m, call->dst, call->diff_dst, &d);
    if (its->factor) {
        bwi_call_add_gradient(call, tile, variable++, factor);
    }
    if (its->weight) {
        bwi_call_add_gradient(call, tile, variable, weight);
    }
    return BW_OK;
}

static double flops(const bw_node *node)
{
    bwi_attention a = bwi_attention_of(node, 1);
    return 2 * (double)a.heads * (double)a.queries * (double)a.keys * (double)(a.key_width + a.value_width);
}

const bwi_op bwi_op_attention = {.name = "attention",
                                 .backward_reads = BWI_READS_SRC | BWI_READS_DST | BWI_READS_WORKSPACE,
                                 .weights_reads = BWI_READS_SRC | BWI_READS_DST | BWI_READS_WORKSPACE,
                                 .layout = BWI_LAYOUT_CHANNELS_LAST,
                                 .shape = shape,
                                 .forward = forward,
                                 .backward = backward,
                                 .backward_weights = backward_weights,
                                 .prepare = prepare,
                                 .flops = flops};
