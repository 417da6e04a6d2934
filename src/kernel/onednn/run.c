/*
 * run: a pass bound to addresses. All of oneDNN's objects are made when binding; executing only executes.
 *
 * Binding does not write to the addresses: making a memory object over given memory leaves its padding as it is (seen
 * with 2.6.3 and 3.2). What a pass reads must have zero padding; what it writes gets it. Executing makes oneDNN itself
 * allocate: a table of arguments, usually a few hundred bytes, and with "gemm:jit" also buffers of its matrix products.
 */
#include "kernel/onednn/convolution.h"

enum { ARGUMENTS_MAX = 5 };

typedef struct bwi_conv_call {
    const_dnnl_primitive_t primitive;
    int count;
    dnnl_exec_arg_t arguments[ARGUMENTS_MAX];
} bwi_conv_call;

struct bwi_conv_run {
    bw_context *ctx;
    dnnl_stream_t stream;
    dnnl_memory_t *memories; /* behind the calls */
    int memory_count, call_count;
    bwi_conv_call calls[];
};

/* The calls of any pass, at most: the convolution, and a move for each operand with another layout. */
static size_t most_calls(const bwi_conv *conv)
{
    size_t most = 1;
    for (int p = 0; p < BWI_PASSES; p++) {
        size_t calls = 1;
        for (int k = 0; k < BWI_OPERANDS; k++) {
            calls += conv->stages[p].move[k].desc ? 1 : 0;
        }
        most = calls > most ? calls : most;
    }
    return most;
}

/* Its memories: the operands, a second one for each move, the bias, and a scratchpad for each call. */
static size_t run_size(size_t calls)
{
    size_t memories = BWI_OPERANDS + (calls - 1) + 1 + calls;
    return sizeof(bwi_conv_run) + calls * sizeof(bwi_conv_call) + memories * sizeof(dnnl_memory_t);
}

size_t bwi_conv_run_bytes(const bwi_conv *conv)
{
    return bwi_allocation_bytes(run_size(most_calls(conv)));
}

static const int argument_of_operand[BWI_PASSES][BWI_OPERANDS] = {
    {DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST},
    {DNNL_ARG_DIFF_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DIFF_DST},
    {DNNL_ARG_SRC, DNNL_ARG_DIFF_WEIGHTS, DNNL_ARG_DIFF_DST},
};

static dnnl_status_t add_memory(bwi_conv_run *run, dnnl_memory_t *memory, const bwi_dnnl_layout *layout, void *data)
{
    dnnl_status_t status = bwi_dnnl_memory_create(memory, layout, data);
    if (status == dnnl_success) {
        run->memories[run->memory_count++] = *memory;
    }
    return status;
}

static void add_argument(bwi_conv_call *call, int argument, dnnl_memory_t memory)
{
    call->arguments[call->count++] = (dnnl_exec_arg_t){argument, memory};
}

/* Adds a call, with its scratchpad as the first argument if it needs one. */
static dnnl_status_t add_call(bwi_conv_run *run, bwi_conv_call **call, const bwi_conv_primitive *primitive, void *scratch)
{
    *call = &run->calls[run->call_count++];
    (*call)->primitive = primitive->primitive;
    bwi_dnnl_layout pad = {0};
    dnnl_status_t status = bwi_dnnl_layout_query(&pad, primitive->desc, dnnl_query_scratchpad_md);
    if (status == dnnl_success && bwi_dnnl_layout_bytes(&pad) > 0) {
        dnnl_memory_t memory;
        status = add_memory(run, &memory, &pad, scratch);
        if (status == dnnl_success) {
            add_argument(*call, DNNL_ARG_SCRATCHPAD, memory);
        }
    }
    bwi_dnnl_layout_free(&pad);
    return status;
}

static dnnl_status_t add_move(bwi_conv_run *run, const bwi_conv_primitive *move, dnnl_memory_t from, dnnl_memory_t to,
                              void *scratch)
{
    bwi_conv_call *call;
    dnnl_status_t status = add_call(run, &call, move, scratch);
    if (status == dnnl_success) {
        add_argument(call, DNNL_ARG_FROM, from);
        add_argument(call, DNNL_ARG_TO, to);
    }
    return status;
}

/* Adds the operands in their outer layouts, and in their inner ones where those differ (elsewhere both are the same memory). */
static dnnl_status_t add_operands(bwi_conv_run *run, const bwi_conv *conv, bwi_conv_pass pass, const bwi_conv_memory *memory,
                                  dnnl_memory_t outer[BWI_OPERANDS], dnnl_memory_t inner[BWI_OPERANDS])
{
    const bwi_conv_stage *stage = &conv->stages[pass];
    float *const data[BWI_OPERANDS] = {memory->src, memory->weights, memory->dst};
    dnnl_status_t status = dnnl_success;
    for (int k = 0; k < BWI_OPERANDS && status == dnnl_success; k++) {
        bwi_dnnl_layout outside = {0}, inside = {0};
        status = bwi_conv_outer_layout(&outside, stage, pass, k);
        if (status == dnnl_success) {
            status = add_memory(run, &outer[k], &outside, data[k]);
            inner[k] = outer[k];
        }
        if (status == dnnl_success && stage->move[k].desc) {
            status = bwi_conv_inner_layout(&inside, stage, pass, k);
        }
        if (status == dnnl_success && stage->move[k].desc) {
            status = add_memory(run, &inner[k], &inside, (char *)memory->scratch + stage->temporary[k]);
        }
        bwi_dnnl_layout_free(&outside);
        bwi_dnnl_layout_free(&inside);
    }
    return status;
}

/* Forward reads a bias, backward weights writes its difference; backward data has none. */
static dnnl_status_t add_convolution(bwi_conv_run *run, const bwi_conv *conv, bwi_conv_pass pass, const bwi_conv_memory *memory,
                                     const dnnl_memory_t inner[BWI_OPERANDS])
{
    bwi_conv_call *call;
    dnnl_status_t status = add_call(run, &call, &conv->stages[pass].convolution, memory->scratch);
    if (status != dnnl_success) {
        return status;
    }
    for (int k = 0; k < BWI_OPERANDS; k++) {
        add_argument(call, argument_of_operand[pass][k], inner[k]);
    }
    if (!conv->shape.with_bias || pass == BWI_CONV_BACKWARD_DATA) {
        return dnnl_success;
    }
    dnnl_memory_t bias;
    bwi_dnnl_layout layout = {0};
    status = bwi_dnnl_layout_make(&layout, 1, &conv->shape.oc, dnnl_a);
    if (status == dnnl_success) {
        status = add_memory(run, &bias, &layout, memory->bias);
    }
    bwi_dnnl_layout_free(&layout);
    if (status == dnnl_success) {
        add_argument(call, pass == BWI_CONV_FORWARD ? DNNL_ARG_BIAS : DNNL_ARG_DIFF_BIAS, bias);
    }
    return status;
}

static dnnl_status_t prepare(bwi_conv_run *run, const bwi_conv *conv, bwi_conv_pass pass, const bwi_conv_memory *memory)
{
    const bwi_conv_stage *stage = &conv->stages[pass];
    dnnl_memory_t outer[BWI_OPERANDS], inner[BWI_OPERANDS];
    int result = bwi_conv_result(pass);
    dnnl_status_t status = dnnl_stream_create(&run->stream, bwi_dnnl_library_of()->engine, dnnl_stream_default_flags);
    if (status == dnnl_success) {
        status = add_operands(run, conv, pass, memory, outer, inner);
    }
    for (int k = 0; k < BWI_OPERANDS && status == dnnl_success; k++) {
        if (stage->move[k].desc && k != result) {
            status = add_move(run, &stage->move[k], outer[k], inner[k], memory->scratch);
        }
    }
    if (status == dnnl_success) {
        status = add_convolution(run, conv, pass, memory, inner);
    }
    if (status == dnnl_success && stage->move[result].desc) {
        status = add_move(run, &stage->move[result], inner[result], outer[result], memory->scratch);
    }
    return status;
}

/* Addresses are checked here, once, because workers, which call execute, cannot leave a message. */
bw_status bwi_conv_bind(bw_context *ctx, bwi_conv_run **run, const bwi_conv *conv, bwi_conv_pass pass,
                        const bwi_conv_memory *memory)
{
    *run = NULL;
    bool bias = conv->shape.with_bias && pass != BWI_CONV_BACKWARD_DATA;
    if (!conv->wanted[pass]) {
        return bwi_fail(ctx, BW_INTERNAL, "convolution: a pass is bound that was not asked for when it was made");
    }
    if (!memory->src || !memory->dst || !memory->weights || (bias && !memory->bias) ||
        (conv->stages[pass].scratch_bytes > 0 && !memory->scratch)) {
        return bwi_fail(ctx, BW_INTERNAL, "convolution: a pass is bound without one of its addresses");
    }
    bw_status status = bwi_conv_check_room(ctx);
    if (status != BW_OK) {
        return status;
    }
    size_t calls = most_calls(conv);
    bwi_conv_run *made = bwi_allocate(ctx, 1, run_size(calls));
    if (!made) {
        return BW_RESOURCE_EXHAUSTED;
    }
    made->ctx = ctx;
    made->memories = (dnnl_memory_t *)(void *)(made->calls + calls);
    dnnl_status_t prepared = prepare(made, conv, pass, memory);
    if (prepared != dnnl_success) {
        bwi_conv_run_free(made);
        return bwi_conv_fail(ctx, &conv->shape, prepared);
    }
    *run = made;
    return BW_OK;
}

void bwi_conv_run_free(bwi_conv_run *run)
{
    if (!run) {
        return;
    }
    for (int k = 0; k < run->memory_count; k++) {
        dnnl_memory_destroy(run->memories[k]);
    }
    if (run->stream) {
        dnnl_stream_destroy(run->stream);
    }
    bwi_release(run->ctx, run);
}

bw_status bwi_conv_execute(const bwi_conv_run *run)
{
    dnnl_status_t status = dnnl_success;
    for (int k = 0; k < run->call_count && status == dnnl_success; k++) {
        status = dnnl_primitive_execute(run->calls[k].primitive, run->stream, run->calls[k].count, run->calls[k].arguments);
    }
    if (status == dnnl_success) {
        status = dnnl_stream_wait(run->stream);
    }
    return status == dnnl_success ? BW_OK : status == dnnl_out_of_memory ? BW_RESOURCE_EXHAUSTED : BW_INTERNAL;
}
