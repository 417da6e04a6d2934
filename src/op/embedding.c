/*
 * embedding: row i of a table for each index i of a sample; the output has one axis more. Indices are int32, or whole numbers in
 * float32. The gradient of the table, a sparse variable, is a record for each index.
 *
 * index_mask: 1 where an index is not zero, 0 elsewhere, for embeddings with mask_zero.
 */
#include "op/op.h"

#include <string.h>

/* Float32 holds all whole numbers below it. */
static const float WHOLE = 16777216;

/* How many rows ahead of the copy one is fetched. */
enum { AHEAD = 8 };

static int64_t places_of(const bw_node *node)
{
    return bwi_shape_count(&node->input[0]->shape);
}

/* -1: no row has such an index. */
static int64_t index_at(const bwi_call *call, int64_t i)
{
    if (call->node->input[0]->dtype == BW_I32) {
        return ((const int32_t *)call->src[0])[i];
    }
    float value = ((const float *)call->src[0])[i];
    return value >= 0 && value < WHOLE && value == (float)(int64_t)value ? (int64_t)value : -1;
}

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    const bwi_shape *in = &node->input[0]->shape;
    if (in->ndim + 1 >= BW_MAX_NDIM) {
        return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: expected indices of at most %d axes, got %d", node->name,
                        BW_MAX_NDIM - 2, in->ndim);
    }
    node->shape = *in;
    node->shape.extent[node->shape.ndim++] = node->variable[0]->shape.extent[1];
    return BW_OK;
}

static bw_status refuse(const bwi_call *call, const bwi_tile *tile, int64_t i)
{
    const bw_node *node = call->node;
    int64_t sample = tile->numbers[i / places_of(node)];
    double index =
        node->input[0]->dtype == BW_I32 ? (double)((const int32_t *)call->src[0])[i] : (double)((const float *)call->src[0])[i];
    snprintf(tile->error, BWI_ERROR_TEXT, "layer %.60s: index %.9g of sample %lld is not one of the table's rows 0..%lld",
             node->name, index, (long long)sample, (long long)node->variable[0]->shape.extent[0] - 1);
    return BW_INVALID_ARGUMENT;
}

static bw_status forward(const bwi_call *call, const bwi_tile *tile)
{
    int64_t count = call->samples * places_of(call->node), rows = call->node->variable[0]->shape.extent[0],
            width = call->node->variable[0]->shape.extent[1];
    const float *table = call->weights[0];
    float *to = call->dst;
    for (int64_t i = 0; i < count; i++) {
        int64_t next = i + AHEAD < count ? index_at(call, i + AHEAD) : 0, index = index_at(call, i);
        if (next >= 0 && next < rows) {
            __builtin_prefetch(table + next * width);
        }
        if (index < 0 || index >= rows) {
            return refuse(call, tile, i);
        }
        memcpy(to + i * width, table + index * width, (size_t)width * sizeof(float));
    }
    return BW_OK;
}

static int64_t records(const bw_node *node)
{
    return places_of(node);
}

static bw_status backward_weights(const bwi_call *call, const bwi_tile *tile)
{
    int64_t places = places_of(call->node), width = call->node->variable[0]->shape.extent[1];
    const bwi_records *store = call->records[0].store;
    const float *diff_dst = call->diff_dst;
    double *rows = store->rows;
    float *values = store->values;
    for (int64_t s = 0; tile->records && s < call->samples; s++) {
        int64_t at = bwi_call_record(call, tile, 0, s);
        for (int64_t i = 0; i < places; i++) {
            rows[at + i] = (double)index_at(call, s * places + i);
        }
        memcpy(values + at * width, diff_dst + s * places * width, (size_t)(places * width) * sizeof(float));
    }
    return BW_OK;
}

static double flops(const bw_node *node)
{
    return (double)bwi_shape_count(&node->shape);
}

const bwi_op bwi_op_embedding = {.name = "embedding",
                                 .weights_reads = BWI_READS_SRC,
                                 .layout = BWI_LAYOUT_CHANNELS_LAST,
                                 .shape = shape,
                                 .forward = forward,
                                 .backward_weights = backward_weights,
                                 .records = records,
                                 .flops = flops};

/* ---- index_mask ---- */

static bw_status mask_shape(bwi_graph *graph, bw_node *node)
{
    (void)graph;
    node->shape = node->input[0]->shape;
    return BW_OK;
}

static bw_status mask_forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    float *to = call->dst;
    int64_t count = call->samples * bwi_shape_count(&call->node->shape);
    for (int64_t i = 0; i < count; i++) {
        to[i] = index_at(call, i) != 0 ? 1 : 0;
    }
    return BW_OK;
}

const bwi_op bwi_op_index_mask = {.name = "index_mask",
                                  .flags = BWI_OP_NO_GRADIENT,
                                  .layout = BWI_LAYOUT_CHANNELS_LAST,
                                  .shape = mask_shape,
                                  .forward = mask_forward};
