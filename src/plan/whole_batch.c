/*
 * The memory that a system needs if it takes the whole batch through one op before the next, as TensorFlow and PyTorch do. The
 * program of the model's graph, without fusions, is simulated with one sample: a value lives from the first instruction that writes
 * it to the last that reads it, and the moment with most bytes counts. Every value takes the same bytes for each sample, so the
 * memory is a linear function of the batch size. bench/peers/memory.py compares it with what TensorFlow took.
 *
 * An elementwise op overwrites its input if nothing reads that later, in those systems as in ours. The table below states where
 * they differ: pooling keeps its input and output for backward, dropout keeps its mask, and some backward passes need extra memory.
 */
#include "plan/internal.h"

/* What TensorFlow 2.21 was found to allocate on CPUs besides values: pooling's difference in a second layout, a transposed copy of
 * a dense layer's input for the gradient of its weights, the difference of BatchNormalization and two copies of it. */
static const struct habit {
    const bwi_op *op;
    bool of_input;   /* as large as its input; otherwise as its output */
    size_t times;    /* this number of times, during its backward passes */
    bool in_between; /* from the forward pass on */
} habits[] = {
    {&bwi_op_maxpool2d, true, 1, false},      {&bwi_op_avgpool2d, true, 1, false},     {&bwi_op_dense, true, 1, false},
    {&bwi_op_batchnorm, false, 3, false},     {&bwi_op_dropout, false, 1, true},       {&bwi_op_spatial_dropout, false, 1, true},
    {&bwi_op_shared_dropout, false, 1, true}, {&bwi_op_alpha_dropout, false, 1, true}, {&bwi_op_gaussian_dropout, false, 1, true},
};

/* Bytes, besides the program's values, that are in use from instruction `first` to `last`. */
typedef struct span {
    const bw_node *node;
    int first, last;
    size_t bytes;
} span;

typedef struct liveness {
    bwi_program program;
    int *first, *last; /* for each value, views by their root; -1: none */
    int *output;       /* for each node: the value of its output; -1: none */
    int *forward;      /* for each node: its instruction */
    span *spans;
    int span_count;
    int64_t *change; /* of the bytes in use, from one instruction to the next */
} liveness;

static size_t value_bytes(const bwi_value *value)
{
    bool tensor = value->kind == BWI_VALUE_OUTPUT || value->kind == BWI_VALUE_DIFFERENCE;
    return tensor ? bwi_size_multiply((size_t)bwi_shape_count(&value->node->shape), sizeof(float)) : 0;
}

static void touch(const liveness *w, int value, int when)
{
    int root = bwi_plan_root(&w->program, value);
    if (root >= 0) {
        w->first[root] = w->first[root] < 0 ? when : w->first[root];
        w->last[root] = when;
    }
}

static bool is_backward(const bwi_instruction *i)
{
    return i->pass == BWI_PASS_BACKWARD || i->pass == BWI_PASS_BACKWARD_WEIGHTS || i->pass == BWI_PASS_BACKWARD_STATISTICS;
}

static void add_habit(liveness *w, int number)
{
    const bwi_instruction *i = &w->program.instructions[number];
    for (size_t k = 0; k < BWI_COUNT(habits) && is_backward(i); k++) {
        if (habits[k].op == i->node->op) {
            const bw_node *like = habits[k].of_input ? i->node->input[0] : i->node;
            size_t bytes = bwi_size_multiply((size_t)bwi_shape_count(&like->shape), habits[k].times * sizeof(float));
            int first = habits[k].in_between ? w->forward[i->node->number] : number;
            w->spans[w->span_count++] = (span){.node = i->node, .first = first, .last = number, .bytes = bytes};
        }
    }
}

/* Where our backward pass reads a workspace, that of other systems reads source and result. */
static void touch_instruction(const liveness *w, const bwi_instruction *i, int when)
{
    bool backward = is_backward(i);
    for (int k = 0; k < i->read_count; k++) {
        touch(w, i->reads[k], when);
        if (backward && w->program.values[i->reads[k]].kind == BWI_VALUE_WORKSPACE) {
            touch(w, w->output[i->node->number], when);
            for (int s = 0; s < i->node->inputs; s++) {
                touch(w, w->output[i->node->input[s]->number], when);
            }
        }
    }
    for (int k = 0; k < i->write_count; k++) {
        touch(w, i->writes[k], when);
    }
}

static void find_lives(liveness *w, int nodes)
{
    const bwi_program *p = &w->program;
    for (int n = 0; n < nodes; n++) {
        w->output[n] = -1;
    }
    for (int v = 0; v < p->value_count; v++) {
        w->first[v] = w->last[v] = -1;
        if (p->values[v].kind == BWI_VALUE_OUTPUT) {
            w->output[p->values[v].node->number] = v;
        }
    }
    for (int n = 0; n < p->count; n++) {
        touch_instruction(w, &p->instructions[n], n);
        if (p->instructions[n].pass == BWI_PASS_FORWARD) {
            w->forward[p->instructions[n].node->number] = n;
        }
        add_habit(w, n);
    }
}

/* The result of an elementwise op counts only after its source is gone. */
static void replace(const liveness *w, int result, int source, int when)
{
    if (result < 0 || source < 0) {
        return;
    }
    int to = bwi_plan_root(&w->program, result), from = bwi_plan_root(&w->program, source);
    if (w->last[from] == when && value_bytes(&w->program.values[to]) == value_bytes(&w->program.values[from])) {
        w->first[to] = when + 1;
    }
}

static void replace_sources(const liveness *w)
{
    for (int n = 0; n < w->program.count; n++) {
        const bwi_instruction *i = &w->program.instructions[n];
        unsigned flags = i->node->op->flags;
        if (i->pass == BWI_PASS_FORWARD && (flags & BWI_OP_IN_PLACE)) {
            replace(w, i->dst, i->src[0], n);
        } else if (i->pass == BWI_PASS_BACKWARD && (flags & BWI_OP_BACKWARD_IN_PLACE)) {
            replace(w, i->diff_src[0], i->diff_dst, n);
        }
    }
}

static void add_bytes(const liveness *w, int when, size_t *nodes)
{
    for (int v = 0; v < w->program.value_count; v++) {
        if (w->first[v] >= 0 && w->first[v] <= when && when <= w->last[v]) {
            nodes[w->program.values[v].node->number] += value_bytes(&w->program.values[v]);
        }
    }
    for (int k = 0; k < w->span_count; k++) {
        if (w->spans[k].first <= when && when <= w->spans[k].last) {
            nodes[w->spans[k].node->number] += w->spans[k].bytes;
        }
    }
}

/* The instruction with most bytes, and how many these are. */
static int find_fullest(const liveness *w, size_t *most)
{
    int fullest = 0;
    int64_t bytes = 0;
    for (int v = 0; v < w->program.value_count; v++) {
        if (w->first[v] >= 0 && w->first[v] <= w->last[v]) {
            w->change[w->first[v]] += (int64_t)value_bytes(&w->program.values[v]);
            w->change[w->last[v] + 1] -= (int64_t)value_bytes(&w->program.values[v]);
        }
    }
    for (int k = 0; k < w->span_count; k++) {
        w->change[w->spans[k].first] += (int64_t)w->spans[k].bytes;
        w->change[w->spans[k].last + 1] -= (int64_t)w->spans[k].bytes;
    }
    *most = 0;
    for (int n = 0; n < w->program.count; n++) {
        bytes += w->change[n];
        fullest = bytes > (int64_t)*most ? n : fullest;
        *most = bytes > (int64_t)*most ? (size_t)bytes : *most;
    }
    return fullest;
}

/* A system that runs op by op on the whole batch holds, at each instruction, every value that a later one reads; the instruction
 * with most bytes decides. */
bw_status bwi_whole_batch_measure(bw_context *ctx, const bwi_graph *graph, const bwi_program_request *request, size_t *sample,
                                  size_t *nodes)
{
    liveness w = {.first = NULL};
    bw_status status =
        bwi_program_make(ctx, &w.program, graph, request->targets, request->target_count, request->losses, request->loss_count);
    if (status != BW_OK) {
        return status;
    }
    w.first = bwi_allocate(ctx, (size_t)w.program.value_count, sizeof *w.first);
    w.last = bwi_allocate(ctx, (size_t)w.program.value_count, sizeof *w.last);
    w.output = bwi_allocate(ctx, (size_t)graph->count, sizeof *w.output);
    w.forward = bwi_allocate(ctx, (size_t)graph->count, sizeof *w.forward);
    w.spans = bwi_allocate(ctx, (size_t)w.program.count, sizeof *w.spans);
    w.change = bwi_allocate(ctx, (size_t)w.program.count + 1, sizeof *w.change);
    status = w.first && w.last && w.output && w.forward && w.spans && w.change ? BW_OK : BW_RESOURCE_EXHAUSTED;
    if (status == BW_OK) {
        find_lives(&w, graph->count);
        replace_sources(&w);
        int fullest = find_fullest(&w, sample);
        if (nodes) {
            add_bytes(&w, fullest, nodes);
        }
    }
    bwi_release(ctx, w.first);
    bwi_release(ctx, w.last);
    bwi_release(ctx, w.output);
    bwi_release(ctx, w.forward);
    bwi_release(ctx, w.spans);
    bwi_release(ctx, w.change);
    bwi_program_free(&w.program);
    return status;
}
