/*
 * Lowering: makes a private copy of the model's graph in which fusions replace chains of nodes, every output has a channel block,
 * and reorders stand where two ops disagree about it.
 */
#include "plan/internal.h"

#include <string.h>

typedef struct lowering {
    bwi_plan *plan;
    bw_context *ctx;
    const bwi_graph *from;
    bool *needed;
    int *users;
    bool *target;
    const bwi_fusion **fusion; /* that ends at the node */
    bool *gone;                /* the node is fused with its user */
    bwi_graph fused;           /* after fusions, before layouts */
    bw_node **to_fused;        /* by source number */
} lowering;

static bw_node *copy(bwi_graph *to, const bwi_op *op, const bw_node *node, bw_node *const *inputs, int input_count,
                     bwi_variable *const *variables, int variable_count)
{
    bw_node *made =
        bwi_graph_add(to, op, node->name, node->attributes, node->attribute_bytes, inputs, input_count, variables, variable_count);
    if (made) {
        made->run_at = node->run_at;
    }
    return made;
}

static void find_needed(lowering *l, const bwi_plan_request *request)
{
    for (int p = 0; p < request->program_count; p++) {
        const bwi_program_request *program = &request->programs[p];
        for (int k = 0; k < program->target_count; k++) {
            l->needed[program->targets[k]->number] = l->target[program->targets[k]->number] = true;
        }
        for (int k = 0; k < program->loss_count; k++) {
            l->needed[program->losses[k]->number] = l->target[program->losses[k]->number] = true;
        }
    }
    for (int n = l->from->count - 1; n >= 0; n--) {
        const bw_node *node = l->from->nodes[n];
        for (int k = 0; l->needed[n] && k < node->inputs; k++) {
            l->needed[node->input[k]->number] = true;
            l->users[node->input[k]->number]++;
        }
    }
}

/* Finds the nodes of a chain that ends at `node`; false if one before the last has another user. */
static bool chain_ending_at(const lowering *l, const bw_node *node, const bwi_fusion *fusion, const bw_node **chain)
{
    for (int k = fusion->length - 1; k >= 0; k--, node = node->input[0]) {
        bool last = k == fusion->length - 1;
        if (node->op != fusion->chain[k] || (!last && (l->users[node->number] != 1 || l->target[node->number])) ||
            (k > 0 && node->inputs != 1)) {
            return false;
        }
        chain[k] = node;
        if (k == 0) {
            break;
        }
    }
    return fusion->fits(chain);
}

/* Goes from the last node to the first, so that a chain is found before a part of it. */
static void find_fusions(lowering *l)
{
    for (int n = l->from->count - 1; n >= 0; n--) {
        const bw_node *chain[BWI_CHAIN];
        for (const bwi_fusion *p = bwi_fusions; l->needed[n] && !l->gone[n] && !l->fusion[n] && p->fused; p++) {
            if ((p->inexact && l->ctx->exact_kernels) || !chain_ending_at(l, l->from->nodes[n], p, chain)) {
                continue;
            }
            l->fusion[n] = p;
            for (int k = 0; k < p->length - 1; k++) {
                l->gone[chain[k]->number] = true;
            }
        }
    }
}

static bw_node *fuse_node(lowering *l, const bw_node *node)
{
    const bwi_fusion *fusion = l->fusion[node->number];
    const bw_node *named = node, *source = node;
    for (int k = fusion ? fusion->length - 1 : 0; k > 0; k--) {
        source = source->input[0];
        named = k == fusion->attributes + 1 ? source : named;
    }
    bw_node **inputs = bwi_allocate(l->ctx, (size_t)source->inputs, sizeof(bw_node *));
    if (!inputs) {
        return NULL;
    }
    for (int k = 0; k < source->inputs; k++) {
        inputs[k] = l->to_fused[source->input[k]->number];
    }
    bw_node *made =
        copy(&l->fused, fusion ? fusion->fused : node->op, named, inputs, source->inputs, source->variable, source->variables);
    bwi_release(l->ctx, (void *)inputs);
    return made;
}

static int64_t channels_last_block(const bw_node *node)
{
    int64_t h, w, c;
    bwi_shape_image(&node->shape, &h, &w, &c);
    return c;
}

/* Finds the block that each node's users would like it to have; 0: any. The last user that asks wins, which for a chain is the
 * only one. */
static void find_wanted(const bwi_graph *graph, int64_t *wanted)
{
    for (int n = graph->count - 1; n >= 0; n--) {
        const bw_node *node = graph->nodes[n];
        for (int k = 0; k < node->inputs; k++) {
            int64_t src = 0, dst = 0;
            switch (node->op->layout) {
            case BWI_LAYOUT_CHANNELS_LAST:
                src = channels_last_block(node->input[k]);
                break;
            case BWI_LAYOUT_SAME:
                src = wanted[n];
                break;
            case BWI_LAYOUT_PREPARED:
                node->op->kernels->blocks(node, &src, &dst);
                break;
            case BWI_LAYOUT_FREE:
                break;
            }
            if (src) {
                wanted[node->input[k]->number] = src;
            }
        }
    }
}

/* Decides the block that a node gives, and the one that it needs from each input (0: any). */
static void settle(const bw_node *node, int64_t wanted, int64_t *wants, int64_t *gives)
{
    int64_t first = node->inputs ? node->input[0]->block : 0;
    *wants = 0;
    switch (node->op->layout) {
    case BWI_LAYOUT_CHANNELS_LAST:
        *wants = -1; /* each input's channels-last block */
        *gives = channels_last_block(node);
        break;
    case BWI_LAYOUT_SAME:
        *wants = first == channels_last_block(node->input[0]) ? -1 : first;
        *gives = first;
        break;
    case BWI_LAYOUT_PREPARED:
        node->op->kernels->blocks(node, wants, gives);
        *gives = *gives ? *gives : wanted ? wanted : channels_last_block(node);
        break;
    case BWI_LAYOUT_FREE:
        *gives = wanted ? wanted : (first && first != channels_last_block(node->input[0]) ? first : channels_last_block(node));
        break;
    }
}

/* Returns `node` in the given block, through a reorder if necessary; an existing one is reused. */
static bw_node *in_block(bwi_graph *graph, bw_node *node, int64_t block)
{
    if (node->block == block) {
        return node;
    }
    for (int n = node->number + 1; n < graph->count; n++) {
        bw_node *other = graph->nodes[n];
        if (other->op == &bwi_op_reorder && other->input[0] == node && other->block == block) {
            return other;
        }
    }
    bw_node *made = bwi_graph_add(graph, &bwi_op_reorder, node->name, NULL, 0, &node, 1, NULL, 0);
    if (made) {
        made->block = block;
    }
    return made;
}

/* Returns the node whose forward pass leaves a target's numbers in Keras's order. A view writes nothing, so that is the node
 * behind it. */
static bw_node *in_the_open(bwi_graph *graph, bw_node *node)
{
    while (node->op->flags & BWI_OP_VIEW) {
        node = node->input[0];
    }
    return node->dtype == BW_F32 ? in_block(graph, node, channels_last_block(node)) : node;
}

/* Copies the node, with inputs in the block that it needs, by a reorder where they have another. */
static bw_node *lay_out_node(bwi_plan *plan, const bw_node *node, int64_t wanted, bw_node *const *to_final)
{
    bwi_graph *graph = &plan->graph;
    bw_node **inputs = bwi_allocate(plan->ctx, (size_t)node->inputs, sizeof(bw_node *));
    if (!inputs) {
        return NULL;
    }
    for (int k = 0; k < node->inputs; k++) {
        inputs[k] = to_final[node->input[k]->number];
    }
    bw_node sketch = *node;
    sketch.input = inputs;
    int64_t wants = 0, gives = 0;
    settle(&sketch, wanted, &wants, &gives);
    for (int k = 0; k < node->inputs && wants; k++) {
        if (inputs[k]->dtype == BW_F32) {
            inputs[k] = in_block(graph, inputs[k], wants < 0 ? channels_last_block(inputs[k]) : wants);
        }
    }
    bw_node *made = copy(graph, node->op, node, inputs, node->inputs, node->variable, node->variables);
    if (made) {
        made->block = gives;
    }
    bwi_release(plan->ctx, (void *)inputs);
    return made;
}

static bw_status lay_out(lowering *l, bw_node **to_final, int64_t *wanted)
{
    find_wanted(&l->fused, wanted);
    for (int n = 0; n < l->fused.count; n++) {
        to_final[n] = lay_out_node(l->plan, l->fused.nodes[n], wanted[n], to_final);
        if (!to_final[n]) {
            bw_status status = bwi_pending(l->ctx);
            return status == BW_OK ? BW_RESOURCE_EXHAUSTED : status;
        }
    }
    return BW_OK;
}

/* First fusions, then layouts; last, targets are brought into Keras's order, since users read them. */
static bw_status lower(lowering *l, const bwi_plan_request *request)
{
    find_needed(l, request);
    find_fusions(l);
    for (int n = 0; n < l->from->count; n++) {
        const bw_node *node = l->from->nodes[n];
        if (!l->needed[n] || l->gone[n]) {
            continue;
        }
        l->to_fused[n] = fuse_node(l, node);
        if (!l->to_fused[n]) {
            bw_status status = bwi_pending(l->ctx);
            return status == BW_OK ? BW_RESOURCE_EXHAUSTED : status;
        }
    }
    bw_node **to_final = bwi_allocate(l->ctx, (size_t)l->fused.count, sizeof(bw_node *));
    int64_t *wanted = bwi_allocate(l->ctx, (size_t)l->fused.count, sizeof *wanted);
    bw_status status = to_final && wanted ? lay_out(l, to_final, wanted) : BW_RESOURCE_EXHAUSTED;
    for (int n = 0; status == BW_OK && n < l->from->count; n++) {
        if (!l->to_fused[n]) {
            continue;
        }
        l->plan->lowered[n] = to_final[l->to_fused[n]->number];
        if (l->target[n] && !(l->from->nodes[n]->op->flags & BWI_OP_SUMS)) {
            l->plan->lowered[n] = in_the_open(&l->plan->graph, l->plan->lowered[n]);
            status = l->plan->lowered[n] ? BW_OK : bwi_pending(l->ctx);
        }
    }
    bwi_release(l->ctx, (void *)to_final);
    bwi_release(l->ctx, wanted);
    return status;
}

/* The lists, and the graph between fusions and layouts, belong to the lowering; the plan keeps the lowered graph. */
bw_status bwi_plan_lower(bwi_plan *plan, const bwi_plan_request *request)
{
    bw_context *ctx = plan->ctx;
    size_t count = (size_t)request->graph->count;
    lowering l = {.plan = plan, .ctx = ctx, .from = request->graph, .fused = {.ctx = ctx}};
    plan->graph.ctx = ctx;
    plan->lowered = bwi_allocate(ctx, count, sizeof(bw_node *));
    l.needed = bwi_allocate(ctx, count, sizeof(bool));
    l.target = bwi_allocate(ctx, count, sizeof(bool));
    l.users = bwi_allocate(ctx, count, sizeof(int));
    l.fusion = bwi_allocate(ctx, count, sizeof *l.fusion);
    l.gone = bwi_allocate(ctx, count, sizeof(bool));
    l.to_fused = bwi_allocate(ctx, count, sizeof(bw_node *));
    bw_status status = BW_RESOURCE_EXHAUSTED;
    if (plan->lowered && l.needed && l.target && l.users && l.fusion && l.gone && l.to_fused) {
        status = lower(&l, request);
    }
    bwi_graph_free(&l.fused);
    bwi_release(ctx, l.needed);
    bwi_release(ctx, l.target);
    bwi_release(ctx, l.users);
    bwi_release(ctx, (void *)l.fusion);
    bwi_release(ctx, l.gone);
    bwi_release(ctx, (void *)l.to_fused);
    return status;
}
