/*
 * dense over the last axis: y = x w + b. Variables: kernel [in][units] (stored packed; each of the two may be
 * several axes), and bias if there is one.
 */
#include "op/internal.h"

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    const bwi_dense_attributes *a = node->attributes;
    const bwi_shape *in = &node->input[0]->shape;
    if (in->ndim < 1) {
        return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: expected at least one axis, got a single number a sample",
                        node->name);
    }
    node->shape = *in;
    node->shape.extent[in->ndim - 1] = a->units;
    return BW_OK;
}

int64_t bwi_dense_in(const bwi_variable *kernel)
{
    int64_t in = 1;
    for (int i = 0; i < (kernel->input_axes ? kernel->input_axes : 1); i++) {
        in *= kernel->shape.extent[i];
    }
    return in;
}

int64_t bwi_dense_out(const bwi_variable *kernel)
{
    return bwi_shape_count(&kernel->shape) / bwi_dense_in(kernel);
}

static void pack_weights(const bwi_packing *packing, const float *keras_order, void *stored)
{
    const bwi_variable *kernel = packing->object;
    packing->kernels->packing->dense_pack(bwi_dense_in(kernel), bwi_dense_out(kernel), keras_order, stored);
}

static void unpack_weights(const bwi_packing *packing, const void *stored, int64_t first, int64_t count, float *keras_order)
{
    const bwi_variable *kernel = packing->object;
    packing->kernels->packing->dense_unpack(bwi_dense_in(kernel), bwi_dense_out(kernel), stored, first, count, keras_order);
}

static bw_status pack(bw_context *ctx, const bw_node *node)
{
    const bwi_kernels *kernels = bwi_kernels_of(ctx);
    bwi_variable *kernel = node->variable[0];
    kernel->count = kernels->packing->dense_floats(bwi_dense_in(kernel), bwi_dense_out(kernel));
    kernel->packing =
        (bwi_packing){.count = kernel->count, .kernels = kernels, .object = kernel, .pack = pack_weights, .unpack = unpack_weights};
    return BW_OK;
}

static int64_t in_of(const bw_node *node)
{
    return bwi_dense_in(node->variable[0]);
}
static int64_t out_of(const bw_node *node)
{
    return bwi_dense_out(node->variable[0]);
}
static int64_t rows_of(const bwi_call *call)
{
    const bwi_shape *made = &call->node->shape;
    return made->ndim == 1 ? call->samples : call->samples * (bwi_shape_count(made) / out_of(call->node));
}

static bw_status forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    const bw_node *node = call->node;
    const void *bias = node->variables > 1 ? call->weights[1] : NULL;
    call->kernels->dense_forward(rows_of(call), in_of(node), out_of(node), call->src[0], call->weights[0], bias, call->dst);
    return BW_OK;
}

static bw_status backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    const bw_node *node = call->node;
    call->kernels->dense_backward_data(rows_of(call), in_of(node), out_of(node), call->diff_dst, call->weights[0],
                                       call->diff_src[0]);
    return BW_OK;
}

static bw_status backward_weights(const bwi_call *call, const bwi_tile *tile)
{
    const bw_node *node = call->node;
    bool bias = node->variables > 1;
    call->kernels->dense_backward_weights(rows_of(call), in_of(node), out_of(node), call->src[0], call->diff_dst,
                                          bwi_call_gradient(call, tile, 0), bias ? bwi_call_gradient(call, tile, 1) : NULL,
                                          bwi_call_accumulates(call, tile, 0));
    return BW_OK;
}

/* ---- In parts ---- */

/* Below it, sharing a pass costs more than it saves. */
enum { WORTH_SHARING = 1 << 16, WORTH_DEFERRING = 1 << 12, FEWEST_INPUTS = 16, INPUTS_OF_PART = 128 };

/* Outputs of a panel of the stored weights; 0: no panels. */
static int64_t panel_of(const bw_node *node)
{
    return node->variable[0]->packing.kernels->packing->dense_panel(out_of(node));
}

static int64_t panels_of(const bw_node *node)
{
    int64_t panel = panel_of(node);
    return panel ? (out_of(node) + panel - 1) / panel : 0;
}

static int64_t parts(const bw_node *node, int pass)
{
    if (panels_of(node) == 0 || in_of(node) < FEWEST_INPUTS || node->variable[0]->count < WORTH_SHARING) {
        return 0;
    }
    if (pass == BWI_PASS_FORWARD) {
        return panels_of(node);
    }
    return pass == BWI_PASS_BACKWARD && in_of(node) % 16 == 0 ? (in_of(node) + INPUTS_OF_PART - 1) / INPUTS_OF_PART : 0;
}

static void part(const bwi_call *call, int pass, int64_t number)
{
    const bw_node *node = call->node;
    int64_t in = in_of(node), out = out_of(node), rows = rows_of(call);
    if (pass == BWI_PASS_FORWARD) {
        const void *bias = node->variables > 1 ? call->weights[1] : NULL;
        int64_t from = number * panel_of(node), to = from + panel_of(node);
        call->kernels->dense_forward_part(rows, in, out, from, to < out ? to : out, call->src[0], call->weights[0], bias,
                                          call->dst);
        return;
    }
    int64_t from = number * INPUTS_OF_PART, to = from + INPUTS_OF_PART;
    call->kernels->dense_backward_data_part(rows, in, out, from, to < in ? to : in, call->diff_dst, call->weights[0],
                                            call->diff_src[0]);
}

/* ---- Deferred gradient ---- */

/* A block of the gradient, and as many sums of a block as a tree over BWI_MAX_DEFERRED lanes, and the next tile of a lane, hold at
 * once. */
enum { ROWS_OF_BLOCK = 32, WIDEST_PANEL = 32, BLOCK_FLOATS = ROWS_OF_BLOCK * WIDEST_PANEL, TREE_SUMS = 6 };

static void *sum_at(void *sums, int depth)
{
    return bwi_floats_at(sums, (int64_t)depth * BLOCK_FLOATS);
}

/* Where a device stores wider panels than a block has, nothing is deferred. */
static int64_t deferred_floats(const bw_node *node, int64_t samples)
{
    int64_t rows = samples * (bwi_shape_count(&node->shape) / out_of(node));
    const bwi_packing_kernels *packing = node->variable[0]->packing.kernels->packing;
    bool defers = panels_of(node) > 0 && panel_of(node) <= WIDEST_PANEL && in_of(node) >= FEWEST_INPUTS &&
                  node->variable[0]->count >= WORTH_DEFERRING;
    return defers ? packing->dense_staging(rows, in_of(node), out_of(node)) : 0;
}

static double fill_staging(const bwi_call *call, void *staging)
{
    return call->kernels->dense_gradient_pack(rows_of(call), in_of(call->node), out_of(call->node), call->src[0], call->diff_dst,
                                              staging);
}

/* Adds the tiles' gradients of a block, those of a lane one after another, the lanes as a binary tree: after lane l, two finished
 * sums become one for each of the 1 bits in which l ends. The result is the first of the sums. `first` is the block's first row;
 * below 0, the biases are meant. While the last tile is added, what is read next (`ahead`, or NULL) is fetched. */
static void sum_tiles(const bwi_deferred_tile *tiles, int count, int lanes, int64_t panel, int64_t first, int64_t rows,
                      const void *const *ahead, void *sums)
{
    const bwi_kernels *k = tiles[0].call->kernels;
    const bw_node *node = tiles[0].call->node;
    int64_t in = in_of(node), out = out_of(node), floats = rows * panel_of(node);
    int depth = 0;
    for (int lane = 0; lane < lanes && lane < count; lane++) {
        for (int t = lane; t < count; t += lanes) {
            int64_t n = rows_of(tiles[t].call);
            void *sum = sum_at(sums, depth++);
            if (first < 0) {
                k->dense_gradient_bias(n, in, out, tiles[t].staging, panel, sum);
            } else {
                bool last = t + lanes >= count && (lane == lanes - 1 || lane == count - 1);
                k->dense_gradient_block(n, in, out, tiles[t].staging, panel, first, rows, sum, last ? ahead : NULL);
            }
            if (t > lane) {
                depth--;
                k->add(floats, sum_at(sums, depth), sum_at(sums, depth - 1));
            }
        }
        for (int odd = lane; odd & 1; odd >>= 1) {
            depth--;
            k->add(floats, sum_at(sums, depth), sum_at(sums, depth - 1));
        }
    }
    for (; depth > 1; depth--) {
        k->add(floats, sum_at(sums, depth - 1), sum_at(sums, depth - 2));
    }
}

_Static_assert((int)BWI_SINK_READS == (int)BWI_FETCHED, "what a sink reads is fetched by a kernel");

/* A panel goes to the sink in blocks of rows, each as soon as it is summed over all tiles, while it is in the nearest cache; the
 * panel's biases follow. The arrays that the sink reads for a block are fetched while the block before it is summed. */
static void deferred_part(const bwi_deferred_tile *tiles, int count, int lanes, int64_t panel, void *sums, const bwi_sink *sink)
{
    const bw_node *node = tiles[0].call->node;
    int64_t in = in_of(node), out = out_of(node), wide = panel_of(node);
    const void *arrays[BWI_SINK_READS];
    const void *ahead[BWI_SINK_READS];
    if (sink->reads) {
        sink->reads(sink->user, node->variable[0], arrays);
    }
    for (int64_t first = 0; first < in; first += ROWS_OF_BLOCK) {
        int64_t rows = in - first < ROWS_OF_BLOCK ? in - first : ROWS_OF_BLOCK, at = (panel * in + first) * wide;
        bool fetches = sink->reads && first + 2 * ROWS_OF_BLOCK <= in;
        for (int i = 0; fetches && i < BWI_SINK_READS; i++) {
            ahead[i] = (const unsigned char *)arrays[i] + (size_t)(at + ROWS_OF_BLOCK * wide) * sizeof(float);
        }
        sum_tiles(tiles, count, lanes, panel, first, rows, fetches ? ahead : NULL, sums);
        sink->take(sink->user, node->variable[0], at, rows * wide, sums);
    }
    if (node->variables > 1) {
        int64_t rest = out - panel * wide;
        sum_tiles(tiles, count, lanes, panel, -1, 1, NULL, sums);
        sink->take(sink->user, node->variable[1], panel * wide, rest < wide ? rest : wide, sums);
    }
}

static double flops(const bw_node *node)
{
    return 2 * (double)in_of(node) * (double)bwi_shape_count(&node->shape);
}

static const bwi_op_split split = {.parts = parts, .part = part};
static const bwi_op_deferred deferred = {.floats = deferred_floats,
                                         .fill = fill_staging,
                                         .parts = panels_of,
                                         .scratch_bytes = (size_t)TREE_SUMS * BLOCK_FLOATS * sizeof(float),
                                         .part = deferred_part};

const bwi_op bwi_op_dense = {.name = "dense",
                             .weights_reads = BWI_READS_SRC,
                             .layout = BWI_LAYOUT_CHANNELS_LAST,
                             .shape = shape,
                             .pack = pack,
                             .forward = forward,
                             .backward = backward,
                             .backward_weights = backward_weights,
                             .split = &split,
                             .deferred = &deferred,
                             .flops = flops};
