/*
 * embedding: row i of a table for each index i of a sample; the output has one axis more. Indices are int32, or whole numbers in
 * float32. The gradient of the table, a sparse variable, is a record for each index.
 *
 * index_mask: 1 where an index is not zero, 0 elsewhere, for embeddings with mask_zero.
 */
#include "op/internal.h"

static int64_t indices_of(const bw_node *node)
{
    return bwi_shape_count(&node->input[0]->shape);
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

/* The i-th index as a number, for a message. An int32 has as many bytes as a float. */
static double index_at(const bwi_call *call, int64_t i)
{
    const void *at = bwi_floats_at(call->src[0], i);
    int32_t whole = 0;
    float real = 0;
    if (call->node->input[0]->dtype == BW_I32) {
        call->kernels->memory->read(&whole, at, sizeof whole);
        return whole;
    }
    call->kernels->memory->read(&real, at, sizeof real);
    return (double)real;
}

static bw_status forward(const bwi_call *call, const bwi_tile *tile)
{
    const bw_node *node = call->node;
    const bwi_shape *table = &node->variable[0]->shape;
    int64_t bad = call->kernels->embedding->lookup(node->input[0]->dtype, call->samples * indices_of(node), table->extent[0],
                                                   table->extent[1], call->src[0], call->weights[0], call->dst);
    if (bad < 0) {
        return BW_OK;
    }
    bwi_print(tile->error, BWI_ERROR_TEXT, "layer %.60s: index %.9g of sample %lld is not one of the table's rows 0..%lld",
              node->name, index_at(call, bad), (long long)tile->numbers[bad / indices_of(node)], (long long)table->extent[0] - 1);
    return BW_INVALID_ARGUMENT;
}

/* A sample's records stand together. Those of the next sample follow after `per_sample` records, because other nodes may write
 * between them. */
static bw_status backward_weights(const bwi_call *call, const bwi_tile *tile)
{
    int64_t indices_each = indices_of(call->node), width = call->node->variable[0]->shape.extent[1];
    const bwi_records *store = call->records[0].store;
    const unsigned char *indices = call->src[0], *difference = call->diff_dst;
    unsigned char *rows = store->rows, *values = store->values;
    for (int64_t s = 0; tile->records && s < call->samples; s++) {
        size_t at = (size_t)bwi_call_record(call, tile, 0, s), first = (size_t)(s * indices_each);
        call->kernels->embedding->record(call->node->input[0]->dtype, indices_each, width, indices + first * sizeof(float),
                                         (const void *)(difference + first * (size_t)width * sizeof(float)),
                                         (void *)(rows + at * sizeof(double)),
                                         (void *)(values + at * (size_t)width * sizeof(float)));
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
                                 .records = indices_of,
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
    call->kernels->embedding->mask(call->node->input[0]->dtype, call->samples * bwi_shape_count(&call->node->shape), call->src[0],
                                   call->dst);
    return BW_OK;
}

const bwi_op bwi_op_index_mask = {.name = "index_mask",
                                  .flags = BWI_OP_NO_GRADIENT,
                                  .layout = BWI_LAYOUT_CHANNELS_LAST,
                                  .shape = mask_shape,
                                  .forward = mask_forward};
