/*
 * Autodiff: turns a graph into the list of instructions that computes it and, for training, its gradients.
 *
 * Forward instructions come in the graph's order, backward ones in reverse. A value's level is the number of times that all tiles
 * must have passed before it can be known: the statistics of a whole-batch op lie one level above what they are computed from.
 * Instructions of one level can run tile by tile in one phase.
 */
#include "graph/graph.h"

#include <string.h>

/* What is known about a node while the program is being made. Values are given by their numbers; -1: none. */
typedef struct node_facts {
    bool needed; /* some target depends on it */
    bool flows;  /* a trainable variable lies at or before it */
    int output, workspace, difference;
    int statistics, backward_statistics;
    int *contributions; /* differences from its users */
    int contribution_count;
} node_facts;

typedef struct maker {
    bwi_program *program;
    const bwi_graph *graph;
    node_facts *facts;
    bool failed;
} maker;

const char *bwi_pass_name(bwi_pass pass)
{
    static const char *const names[BWI_PASS_COUNT] = {"forward",          "statistics", "seed",  "backward", "backward statistics",
                                                      "backward weights", "add",        "store", "load"};
    return names[pass];
}

static int add_value(maker *m, bwi_value_kind kind, const bw_node *node, int view_of)
{
    bwi_program *p = m->program;
    if (p->value_count == p->value_capacity) {
        int larger = p->value_capacity ? 2 * p->value_capacity : 16;
        bwi_value *grown = bwi_grow(p->ctx, p->values, (size_t)p->value_capacity, (size_t)larger, sizeof *grown);
        if (!grown) {
            m->failed = true;
            return -1;
        }
        p->values = grown;
        p->value_capacity = larger;
    }
    p->values[p->value_count] = (bwi_value){.kind = kind, .node = node, .view_of = view_of, .level = 0};
    return p->value_count++;
}

/* Adds an instruction, with its lists (src, diff_src, reads, writes, overwrites) in one block. */
static bwi_instruction *add_instruction(maker *m, const bw_node *node, bwi_pass pass, int adds)
{
    bwi_program *p = m->program;
    if (p->count == p->capacity) {
        int larger = p->capacity ? 2 * p->capacity : 16;
        bwi_instruction *grown = bwi_grow(p->ctx, p->instructions, (size_t)p->capacity, (size_t)larger, sizeof *grown);
        if (!grown) {
            m->failed = true;
            return NULL;
        }
        p->instructions = grown;
        p->capacity = larger;
    }
    int inputs = node->inputs > adds ? node->inputs : adds;
    size_t lists = (size_t)(2 * inputs) + (size_t)(inputs + 8) + (size_t)(inputs + 8);
    int *block = bwi_allocate(p->ctx, 1, lists * sizeof *block + (size_t)node->variables * sizeof(bool));
    if (!block) {
        m->failed = true;
        return NULL;
    }
    bwi_instruction *i = &p->instructions[p->count++];
    *i = (bwi_instruction){.node = node, .pass = pass, .adds = adds, .dst = -1, .diff_dst = -1, .workspace = -1};
    i->src = block;
    i->diff_src = i->src + inputs;
    i->reads = i->diff_src + inputs;
    i->writes = i->reads + inputs + 8;
    i->overwrites = (bool *)(block + lists);
    for (int k = 0; k < 2 * inputs; k++) {
        block[k] = -1;
    }
    return i;
}

static void level_at_least(bwi_instruction *i, int level)
{
    if (i->level < level) {
        i->level = level;
    }
}

static void reads(maker *m, bwi_instruction *i, int value)
{
    if (value >= 0) {
        i->reads[i->read_count++] = value;
        level_at_least(i, m->program->values[value].level);
    }
}

/* Statistics are not values of a tile: they only raise the level. */
static void depends_on(maker *m, bwi_instruction *i, int statistics)
{
    if (statistics >= 0) {
        level_at_least(i, m->program->values[statistics].level);
    }
}

static void read_sources(maker *m, bwi_instruction *i)
{
    for (int k = 0; k < i->node->inputs; k++) {
        i->src[k] = m->facts[i->node->input[k]->number].output;
        reads(m, i, i->src[k]);
    }
}

/* By now everything that the instruction reads has been named, so its level is final, and what it writes has that level. */
static void writes(maker *m, bwi_instruction *i, int value)
{
    if (value >= 0) {
        i->writes[i->write_count++] = value;
        m->program->values[value].level = i->level;
    }
}

static int make_statistics(maker *m, const bwi_instruction *i)
{
    int value = add_value(m, BWI_VALUE_STATISTICS, i->node, -1);
    if (value >= 0) {
        m->program->values[value].level = i->level + 1;
    }
    return value;
}

/* Statistics come before the pass that reads them, and lift it by a level. A view runs nothing: it is another name of its
 * source. */
static void make_forward(maker *m, const bw_node *node)
{
    node_facts *f = &m->facts[node->number];
    const bwi_op *op = node->op;
    bool training = m->program->training;
    if ((op->flags & BWI_OP_SUMS) || (((op->flags & BWI_OP_WHOLE_BATCH) || op->group) && training)) {
        bwi_instruction *i = add_instruction(m, node, BWI_PASS_STATISTICS, 0);
        if (!i) {
            return;
        }
        read_sources(m, i);
        int statistics = make_statistics(m, i);
        f->statistics = op->group ? -1 : statistics; /* forward does not read those of groups */
        if (op->flags & BWI_OP_SUMS) {
            return;
        }
    }
    if (op->flags & BWI_OP_VIEW) {
        int source = m->facts[node->input[0]->number].output;
        f->output = add_value(m, BWI_VALUE_OUTPUT, node, source);
        if (f->output >= 0 && source >= 0) {
            m->program->values[f->output].level = m->program->values[source].level;
        }
        return;
    }
    bwi_instruction *i = add_instruction(m, node, BWI_PASS_FORWARD, 0);
    if (!i) {
        return;
    }
    read_sources(m, i);
    depends_on(m, i, f->statistics);
    i->dst = f->output = add_value(m, BWI_VALUE_OUTPUT, node, -1);
    writes(m, i, i->dst);
    if (training && f->flows && ((op->backward_reads | op->weights_reads) & BWI_READS_WORKSPACE)) {
        i->workspace = f->workspace = add_value(m, BWI_VALUE_WORKSPACE, node, -1);
        writes(m, i, i->workspace);
    }
}

static void contribute(maker *m, const bw_node *to, int value)
{
    node_facts *f = &m->facts[to->number];
    int *grown = bwi_grow(m->program->ctx, f->contributions, (size_t)f->contribution_count, (size_t)f->contribution_count + 1,
                          sizeof *grown);
    if (!grown) {
        m->failed = true;
        return;
    }
    f->contributions = grown;
    f->contributions[f->contribution_count++] = value;
}

/* Returns the node's difference: the contributions of its users, added if there are several. */
static int collect_difference(maker *m, const bw_node *node)
{
    node_facts *f = &m->facts[node->number];
    if (f->contribution_count < 2) {
        return f->contribution_count ? f->contributions[0] : -1;
    }
    bwi_instruction *i = add_instruction(m, node, BWI_PASS_ADD, f->contribution_count);
    if (!i) {
        return -1;
    }
    for (int k = 0; k < f->contribution_count; k++) {
        i->src[k] = f->contributions[k];
        reads(m, i, i->src[k]);
    }
    i->dst = add_value(m, BWI_VALUE_DIFFERENCE, node, -1);
    writes(m, i, i->dst);
    return i->dst;
}

static void read_for_backward(maker *m, bwi_instruction *i, unsigned what)
{
    node_facts *f = &m->facts[i->node->number];
    i->diff_dst = f->difference;
    reads(m, i, f->difference);
    if (what & BWI_READS_SRC) {
        read_sources(m, i);
    }
    if (what & BWI_READS_DST) {
        i->dst = f->output;
        reads(m, i, f->output);
    }
    if (what & BWI_READS_WORKSPACE) {
        i->workspace = f->workspace;
        reads(m, i, f->workspace);
    }
}

static bool has_trainable(const bw_node *node)
{
    for (int k = 0; k < node->variables; k++) {
        if (node->variable[k]->trainable) {
            return true;
        }
    }
    return false;
}

static bool input_flows(const maker *m, const bw_node *node)
{
    for (int k = 0; k < node->inputs; k++) {
        if (m->facts[node->input[k]->number].flows) {
            return true;
        }
    }
    return false;
}

/* Gradients of variables come first, then the differences of inputs, because an input's difference may be written over the
 * node's. A whole-batch op finds its gradients among its backward statistics. */
static void make_backward(maker *m, const bw_node *node)
{
    node_facts *f = &m->facts[node->number];
    const bwi_op *op = node->op;
    f->difference = collect_difference(m, node);
    if (f->difference < 0) {
        return;
    }
    if (op->flags & BWI_OP_VIEW) {
        if (input_flows(m, node)) {
            int view = add_value(m, BWI_VALUE_DIFFERENCE, node->input[0], f->difference);
            if (view >= 0) {
                m->program->values[view].level = m->program->values[f->difference].level;
                contribute(m, node->input[0], view);
            }
        }
        return;
    }
    if (op->sums && op->sums->backward_statistics) {
        bwi_instruction *i = add_instruction(m, node, BWI_PASS_BACKWARD_STATISTICS, 0);
        if (!i) {
            return;
        }
        read_for_backward(m, i, op->backward_reads);
        depends_on(m, i, f->statistics);
        f->backward_statistics = make_statistics(m, i);
    } else if (op->backward_weights && has_trainable(node)) {
        bwi_instruction *i = add_instruction(m, node, BWI_PASS_BACKWARD_WEIGHTS, 0);
        if (!i) {
            return;
        }
        read_for_backward(m, i, op->weights_reads);
    }
    if (op->backward && input_flows(m, node)) {
        bwi_instruction *i = add_instruction(m, node, BWI_PASS_BACKWARD, 0);
        if (!i) {
            return;
        }
        read_for_backward(m, i, op->backward_reads);
        depends_on(m, i, f->backward_statistics);
        for (int k = 0; k < node->inputs; k++) {
            if (m->facts[node->input[k]->number].flows) {
                i->diff_src[k] = add_value(m, BWI_VALUE_DIFFERENCE, node->input[k], -1);
                writes(m, i, i->diff_src[k]);
                contribute(m, node->input[k], i->diff_src[k]);
            }
        }
    }
}

static void seed_losses(maker *m, bw_node *const *losses, int count)
{
    for (int k = 0; k < count; k++) {
        bwi_instruction *i = add_instruction(m, losses[k], BWI_PASS_SEED, 0);
        if (!i) {
            return;
        }
        i->dst = add_value(m, BWI_VALUE_DIFFERENCE, losses[k], -1);
        level_at_least(i, m->program->values[m->facts[losses[k]->number].output].level);
        writes(m, i, i->dst);
        contribute(m, losses[k], i->dst);
    }
}

static bool makes_gradients(const bwi_instruction *i)
{
    return i->pass == BWI_PASS_BACKWARD_WEIGHTS || i->pass == BWI_PASS_BACKWARD_STATISTICS;
}

/* Of all instructions that touch a variable's gradient, the first in the order of phases overwrites it, and the others add to
 * it. */
static void find_overwriters(maker *m)
{
    const bwi_program *p = m->program;
    int variables = 0;
    for (int n = 0; n < p->count; n++) {
        for (int k = 0; k < p->instructions[n].node->variables; k++) {
            int index = p->instructions[n].node->variable[k]->index;
            variables = index < variables ? variables : index + 1;
        }
    }
    int *first = bwi_allocate(p->ctx, (size_t)variables, sizeof *first); /* the instruction's number, from 1; 0: none */
    m->failed = m->failed || !first;
    for (int n = 0; first && n < p->count; n++) {
        const bwi_instruction *i = &p->instructions[n];
        for (int k = 0; makes_gradients(i) && k < i->node->variables; k++) {
            int *known = &first[i->node->variable[k]->index];
            *known = *known && p->instructions[*known - 1].level <= i->level ? *known : n + 1;
        }
    }
    for (int n = 0; first && n < p->count; n++) {
        bwi_instruction *i = &p->instructions[n];
        for (int k = 0; k < i->node->variables; k++) {
            int known = first[i->node->variable[k]->index] - 1, level = known < 0 ? 0 : p->instructions[known].level;
            i->overwrites[k] = known < 0 || level > i->level || (level == i->level && known >= n);
        }
    }
    bwi_release(p->ctx, first);
}

static void mark_needed(maker *m, bw_node *const *nodes, int count)
{
    for (int k = 0; k < count; k++) {
        m->facts[nodes[k]->number].needed = true;
    }
}

static void find_facts(maker *m)
{
    const bwi_graph *graph = m->graph;
    for (int n = graph->count - 1; n >= 0; n--) {
        const bw_node *node = graph->nodes[n];
        for (int k = 0; m->facts[n].needed && k < node->inputs; k++) {
            m->facts[node->input[k]->number].needed = true;
        }
    }
    for (int n = 0; n < graph->count; n++) {
        const bw_node *node = graph->nodes[n];
        node_facts *f = &m->facts[n];
        f->output = f->workspace = f->difference = f->statistics = f->backward_statistics = -1;
        if (!(node->op->flags & (BWI_OP_NO_GRADIENT | BWI_OP_INPUT | BWI_OP_SUMS))) {
            f->flows = has_trainable(node) || input_flows(m, node);
        }
    }
}

/* Gives back what the lists have grown beyond their contents. */
static bool trim(bwi_program *p)
{
    bwi_value *values = bwi_grow(p->ctx, p->values, (size_t)p->value_capacity, (size_t)p->value_count, sizeof *values);
    if (values) {
        p->values = values;
        p->value_capacity = p->value_count;
    }
    bwi_instruction *instructions = bwi_grow(p->ctx, p->instructions, (size_t)p->capacity, (size_t)p->count, sizeof *instructions);
    if (instructions) {
        p->instructions = instructions;
        p->capacity = p->count;
    }
    return values && instructions;
}

/* Forward comes in the graph's order; then, for training, ones as the difference of each loss, and backward in reverse. */
bw_status bwi_program_make(bw_context *ctx, bwi_program *program, const bwi_graph *graph, bw_node *const *targets, int target_count,
                           bw_node *const *losses, int loss_count)
{
    *program = (bwi_program){.ctx = ctx, .training = loss_count > 0};
    maker m = {.program = program, .graph = graph};
    m.facts = bwi_allocate(ctx, (size_t)graph->count, sizeof *m.facts);
    if (!m.facts) {
        return BW_RESOURCE_EXHAUSTED;
    }
    mark_needed(&m, targets, target_count);
    mark_needed(&m, losses, loss_count);
    find_facts(&m);
    for (int n = 0; n < graph->count && !m.failed; n++) {
        if (m.facts[n].needed) {
            make_forward(&m, graph->nodes[n]);
        }
    }
    if (!m.failed && loss_count) {
        seed_losses(&m, losses, loss_count);
        for (int n = graph->count - 1; n >= 0 && !m.failed; n--) {
            if (m.facts[n].needed && m.facts[n].flows) {
                make_backward(&m, graph->nodes[n]);
            }
        }
        find_overwriters(&m);
    }
    for (int n = 0; n < program->count; n++) {
        if (program->levels <= program->instructions[n].level) {
            program->levels = program->instructions[n].level + 1;
        }
    }
    for (int n = 0; n < graph->count; n++) {
        bwi_release(ctx, m.facts[n].contributions);
    }
    bwi_release(ctx, m.facts);
    m.failed = m.failed || !trim(program);
    if (m.failed) {
        bwi_program_free(program);
        return bwi_fail(ctx, BW_RESOURCE_EXHAUSTED, "no memory for a program of %d nodes", graph->count);
    }
    return BW_OK;
}

void bwi_program_free(bwi_program *program)
{
    for (int n = 0; n < program->count; n++) {
        bwi_release(program->ctx, program->instructions[n].src);
    }
    bwi_release(program->ctx, program->instructions);
    bwi_release(program->ctx, program->values);
    *program = (bwi_program){.ctx = program->ctx};
}

int64_t bwi_instruction_records(const bwi_instruction *i, const bwi_variable *variable)
{
    int64_t records = 0;
    for (int k = 0; i->pass == BWI_PASS_BACKWARD_WEIGHTS && k < i->node->variables; k++) {
        records += i->node->variable[k] == variable && variable->sparse ? i->node->op->records(i->node) : 0;
    }
    return records;
}
