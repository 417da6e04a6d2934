/*
 * recurrent: the steps of a recurrent layer over whole sequences (the cells are in kernel.h). Inputs: the products of the layer's
 * inputs with its kernel (steps, gates * units), which a dense node computes for all steps at once; if the node says so, the
 * states before the first step, h and then c; and optionally a mask (steps). The output is (units), or (rows, units) where several
 * steps or the states after the last one are given: the steps, then h, then c.
 * Variables: the recurrent kernel (units, gates * units), and, for a GRU that resets after the product, a bias (2, gates * units).
 *
 * Forward keeps the gates and states of every step. The pass for the weights' gradient goes through the steps from the last to the
 * first and leaves the gates' differences in place of the gates; the pass for the inputs, which follows it, copies them.
 */
#include "op/internal.h"

static const bwi_recurrent_attributes *attributes_of(const bw_node *node)
{
    return node->attributes;
}

int64_t bwi_cell_gates(bwi_cell cell)
{
    return cell == BWI_CELL_SIMPLE ? 1 : cell == BWI_CELL_LSTM ? 4 : 3;
}

int bwi_cell_states(bwi_cell cell)
{
    return cell == BWI_CELL_LSTM ? 2 : 1;
}

int bwi_recurrent_mask(const bw_node *node)
{
    const bwi_recurrent_attributes *a = attributes_of(node);
    int mask = 1 + (a->begins ? bwi_cell_states(a->cell) : 0);
    return node->inputs > mask ? mask : 0;
}

static bw_status check_states(bwi_graph *graph, const bw_node *node)
{
    const bwi_recurrent_attributes *a = attributes_of(node);
    int states = a->begins ? bwi_cell_states(a->cell) : 0;
    char found[160];
    for (int i = 1; i <= states; i++) {
        const bwi_shape *state = &node->input[i]->shape;
        if (state->ndim != 1 || state->extent[0] != a->units) {
            return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: expected a state of %lld numbers, got %s", node->name,
                            (long long)a->units, bwi_format_shape(found, state->ndim, state->extent));
        }
    }
    return BW_OK;
}

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    const bwi_recurrent_attributes *a = attributes_of(node);
    const bwi_shape *in = &node->input[0]->shape;
    char found[160];
    if (in->ndim != 2 || in->extent[1] != a->units * bwi_cell_gates(a->cell)) {
        return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: expected steps of %lld products, got %s", node->name,
                        (long long)(a->units * bwi_cell_gates(a->cell)), bwi_format_shape(found, in->ndim, in->extent));
    }
    int at = bwi_recurrent_mask(node);
    if (at && bwi_shape_count(&node->input[at]->shape) != in->extent[0]) {
        const bwi_shape *mask = &node->input[at]->shape;
        return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: expected a mask for %lld steps, got %s", node->name,
                        (long long)in->extent[0], bwi_format_shape(found, mask->ndim, mask->extent));
    }
    int64_t rows = (a->sequences ? in->extent[0] : 1) + (a->ends ? bwi_cell_states(a->cell) : 0);
    node->shape =
        a->sequences || a->ends ? (bwi_shape){.ndim = 2, .extent = {rows, a->units}} : (bwi_shape){.ndim = 1, .extent = {a->units}};
    return check_states(graph, node);
}

/* ---- Storage ---- */

/* The packing knows the variable. Its shape tells the cells apart, except the two of a GRU: their weights are stored differently,
 * so one of them has functions of its own. */
static bwi_cell cell_of(const bwi_variable *weights)
{
    int64_t gates = weights->shape.extent[1] / weights->shape.extent[0];
    return gates == 1 ? BWI_CELL_SIMPLE : gates == 4 ? BWI_CELL_LSTM : BWI_CELL_GRU_AFTER;
}

static void pack_weights(const bwi_packing *packing, const float *keras_order, void *stored)
{
    const bwi_variable *weights = packing->object;
    packing->kernels->packing->recurrent_pack(cell_of(weights), weights->shape.extent[0], keras_order, stored);
}

static void unpack_weights(const bwi_packing *packing, const void *stored, int64_t first, int64_t count, float *keras_order)
{
    const bwi_variable *weights = packing->object;
    packing->kernels->packing->recurrent_unpack(cell_of(weights), weights->shape.extent[0], stored, first, count, keras_order);
}

static void pack_gru(const bwi_packing *packing, const float *keras_order, void *stored)
{
    const bwi_variable *weights = packing->object;
    packing->kernels->packing->recurrent_pack(BWI_CELL_GRU, weights->shape.extent[0], keras_order, stored);
}

static void unpack_gru(const bwi_packing *packing, const void *stored, int64_t first, int64_t count, float *keras_order)
{
    const bwi_variable *weights = packing->object;
    packing->kernels->packing->recurrent_unpack(BWI_CELL_GRU, weights->shape.extent[0], stored, first, count, keras_order);
}

static bw_status pack(bw_context *ctx, const bw_node *node)
{
    const bwi_kernels *kernels = bwi_kernels_of(ctx);
    const bwi_recurrent_attributes *a = attributes_of(node);
    bwi_variable *weights = node->variable[0];
    bool gru = a->cell == BWI_CELL_GRU;
    weights->count = kernels->packing->recurrent_floats(a->cell, a->units);
    weights->packing = (bwi_packing){.count = weights->count,
                                     .kernels = kernels,
                                     .object = weights,
                                     .pack = gru ? pack_gru : pack_weights,
                                     .unpack = gru ? unpack_gru : unpack_weights};
    return BW_OK;
}

static bwi_recurrent recurrent_of(const bw_node *node, int64_t samples, bool training)
{
    const bwi_recurrent_attributes *a = attributes_of(node);
    return (bwi_recurrent){.cell = a->cell,
                           .n = samples,
                           .steps = node->input[0]->shape.extent[0],
                           .units = a->units,
                           .activation = a->activation,
                           .recurrent_activation = a->recurrent_activation,
                           .sequences = a->sequences,
                           .backwards = a->backwards,
                           .zero_masked = a->zero_masked,
                           .begins = a->begins,
                           .ends = a->ends,
                           .drops = training && a->dropout > 0};
}

static size_t float_bytes(int64_t floats)
{
    return bwi_size_align(bwi_size_multiply((size_t)floats, sizeof(float)), BWI_CACHE_LINE);
}

static int64_t mask_floats(const bw_node *node, int64_t samples)
{
    return bwi_recurrent_mask(node) ? samples * node->input[0]->shape.extent[0] : 0;
}

/* What is kept ends with the mask, so that backward does not need the inputs. The scratch memory ends with the factors of dropped
 * states and a row of ones. The transposed weights, which only training reads, are made once per update. */
static bw_status prepare(bwi_prepare *p)
{
    bwi_recurrent k = recurrent_of(p->node, p->samples, p->training);
    const bwi_packing_kernels *packing = bwi_kernels_of(p->ctx)->packing;
    p->workspace_bytes = bwi_size_add(float_bytes(packing->recurrent_kept(&k)), float_bytes(mask_floats(p->node, k.n)));
    p->scratch_bytes = bwi_size_add(float_bytes(packing->recurrent_scratch(&k)), float_bytes((k.n + 1) * k.units));
    p->shared_bytes = p->training ? float_bytes(packing->recurrent_turned(k.cell, k.units)) : 0;
    return BW_OK;
}

static bw_status prologue(const bwi_call *call)
{
    const bwi_recurrent_attributes *a = attributes_of(call->node);
    call->kernels->recurrent_turn(a->cell, a->units, call->weights[0], call->shared);
    return BW_OK;
}

/* ---- Passes ---- */

/* The same units of a sample are dropped at every step, so backward draws again what forward drew. */
static void *draw_factors(const bwi_call *call, const bwi_tile *tile, const bwi_recurrent *k)
{
    const bwi_recurrent_attributes *a = attributes_of(call->node);
    void *factors = (char *)call->scratch + float_bytes(call->kernels->packing->recurrent_scratch(k));
    void *ones = bwi_floats_at(factors, k->n * k->units);
    int64_t counters = (k->units + 63) / 64 * 16;
    call->kernels->memory->fill(k->units, 1, ones);
    for (int64_t s = 0; s < k->n; s++) {
        call->kernels->dropout(k->units, tile->seed, a->stream + tile->update * 0x9E3779B97F4A7C15u,
                               (uint64_t)((tile->position + s) * counters), bwi_dropout_limit(a->dropout),
                               bwi_dropout_scale(a->dropout), ones, bwi_floats_at(factors, s * k->units));
    }
    return factors;
}

static bwi_recurrent_memory memory_of(const bwi_call *call, const bwi_tile *tile, const bwi_recurrent *k)
{
    const bw_node *node = call->node;
    return (bwi_recurrent_memory){.weights = call->weights[0],
                                  .turned = call->shared,
                                  .bias = node->variables > 1 ? call->weights[1] : NULL,
                                  .factors = k->drops ? draw_factors(call, tile, k) : NULL,
                                  .kept = call->workspace,
                                  .scratch = call->scratch};
}

static void *kept_mask(const bwi_call *call, const bwi_recurrent *k)
{
    return bwi_recurrent_mask(call->node) ? (char *)call->workspace + float_bytes(call->kernels->packing->recurrent_kept(k)) : NULL;
}

static bw_status forward(const bwi_call *call, const bwi_tile *tile)
{
    const bw_node *node = call->node;
    bwi_recurrent k = recurrent_of(node, call->samples, tile->training);
    bwi_recurrent_memory m = memory_of(call, tile, &k);
    m.x = call->src[0];
    int mask = bwi_recurrent_mask(node);
    m.mask = mask ? call->src[mask] : NULL;
    for (int i = 0; k.begins && i < bwi_cell_states(k.cell); i++) {
        m.begin[i] = call->src[1 + i];
    }
    call->kernels->recurrent_forward(&k, &m, call->dst);
    if (m.mask && m.kept) {
        call->kernels->memory->copy(kept_mask(call, &k), m.mask, (size_t)mask_floats(node, k.n) * sizeof(float));
    }
    return BW_OK;
}

static bw_status backward_weights(const bwi_call *call, const bwi_tile *tile)
{
    bwi_recurrent k = recurrent_of(call->node, call->samples, true);
    bwi_recurrent_memory m = memory_of(call, tile, &k);
    m.mask = kept_mask(call, &k);
    call->kernels->recurrent_backward(&k, &m, call->diff_dst);
    call->kernels->recurrent_weights(&k, &m, bwi_call_gradient(call, tile, 0), bwi_call_accumulates(call, tile, 0),
                                     m.bias ? bwi_call_gradient(call, tile, 1) : NULL,
                                     m.bias && bwi_call_accumulates(call, tile, 1));
    return BW_OK;
}

/* A layer's variables are trained together or not at all. */
static bw_status backward(const bwi_call *call, const bwi_tile *tile)
{
    bwi_recurrent k = recurrent_of(call->node, call->samples, true);
    bwi_recurrent_memory m = memory_of(call, tile, &k);
    m.mask = kept_mask(call, &k);
    if (!call->node->variable[0]->trainable) {
        call->kernels->recurrent_backward(&k, &m, call->diff_dst);
    }
    if (call->diff_src[0]) {
        call->kernels->recurrent_data(&k, &m, call->diff_src[0]);
    }
    for (int i = 0; k.begins && i < bwi_cell_states(k.cell); i++) {
        if (call->diff_src[1 + i]) {
            call->kernels->recurrent_begin(&k, &m, i, call->diff_src[1 + i]);
        }
    }
    return BW_OK;
}

static double flops(const bw_node *node)
{
    return 2 * (double)bwi_shape_count(&node->input[0]->shape) * (double)attributes_of(node)->units;
}

static const bwi_op_kernels kernels = {.prologue = prologue};

const bwi_op bwi_op_recurrent = {.name = "recurrent",
                                 .backward_reads = BWI_READS_WORKSPACE,
                                 .weights_reads = BWI_READS_WORKSPACE,
                                 .layout = BWI_LAYOUT_CHANNELS_LAST,
                                 .shape = shape,
                                 .forward = forward,
                                 .backward = backward,
                                 .backward_weights = backward_weights,
                                 .pack = pack,
                                 .prepare = prepare,
                                 .flops = flops,
                                 .kernels = &kernels};
