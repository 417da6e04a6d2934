/*
 * Phases: phase p runs, for each tile, what is needed for the sums of level p and for the values of level p that later phases
 * load, and nothing else. Values of earlier levels are loaded from the store where they are kept for the whole batch, or
 * computed again.
 */
#include "plan/internal.h"

#include <stdlib.h>
#include <string.h>

typedef struct cutter {
    bwi_plan *plan;
    bwi_plan_program *program;
    int *writer;   /* per value: the instruction that writes it; -1 for views */
    int *by_level; /* instructions, those of a level together in the program's order */
    int *level_ends;
    bool *include;          /* per instruction, for the present phase */
    bool *load;             /* per value */
    int *last_load;         /* per value: the last phase that loads it; 0: none does */
    int *included, *loaded; /* lists for the present phase */
    int included_count, loaded_count;
} cutter;

int bwi_plan_root(const bwi_program *program, int value)
{
    while (value >= 0 && program->values[value].view_of >= 0) {
        value = program->values[value].view_of;
    }
    return value;
}

void bwi_plan_find_writers(const bwi_program *p, int *writer)
{
    for (int v = 0; v < p->value_count; v++) {
        writer[v] = -1;
    }
    for (int n = 0; n < p->count; n++) {
        for (int k = 0; k < p->instructions[n].write_count; k++) {
            writer[p->instructions[n].writes[k]] = n;
        }
    }
}

void bwi_plan_sort_by_level(const bwi_program *p, int *by_level, int *level_ends)
{
    for (int n = 0; n < p->count; n++) {
        level_ends[p->instructions[n].level]++;
    }
    for (int level = 0, begin = 0; level < p->levels; level++) {
        int own = level_ends[level];
        level_ends[level] = begin;
        begin += own;
    }
    for (int n = 0; n < p->count; n++) {
        by_level[level_ends[p->instructions[n].level]++] = n;
    }
}

static bool makes_sums(const bwi_instruction *i)
{
    return i->pass == BWI_PASS_STATISTICS || i->pass == BWI_PASS_BACKWARD_STATISTICS || i->pass == BWI_PASS_BACKWARD_WEIGHTS;
}

static bool is_target(const bwi_plan_program *program, const bwi_instruction *i)
{
    for (int k = 0; i->pass == BWI_PASS_FORWARD && k < program->target_count; k++) {
        if (program->targets[k] == i->node) {
            return true;
        }
    }
    return false;
}

bool bwi_plan_is_wanted(const bwi_plan_program *program, const bwi_instruction *i)
{
    return makes_sums(i) || is_target(program, i);
}

static void need_value(cutter *c, int value, int level);

static void need_instruction(cutter *c, int number, int level)
{
    if (c->include[number]) {
        return;
    }
    c->include[number] = true;
    c->included[c->included_count++] = number;
    const bwi_instruction *i = &c->program->program.instructions[number];
    for (int k = 0; k < i->read_count; k++) {
        need_value(c, i->reads[k], level);
    }
}

static void need_value(cutter *c, int value, int level)
{
    const bwi_program *p = &c->program->program;
    int root = bwi_plan_root(p, value), writer = c->writer[root];
    const bwi_instruction *i = &p->instructions[writer];
    if (i->level >= level || c->program->fate[root] == BWI_FATE_COMPUTE) {
        need_instruction(c, writer, level);
    } else if (!c->load[root]) {
        c->load[root] = true;
        c->loaded[c->loaded_count++] = root;
        c->last_load[root] = level > c->last_load[root] ? level : c->last_load[root];
    }
}

/* Whether a later phase loads what the instruction writes. */
static bool is_kept(const cutter *c, const bwi_instruction *i)
{
    for (int k = 0; k < i->write_count; k++) {
        if (c->last_load[i->writes[k]]) {
            return true;
        }
    }
    return false;
}

static bwi_instruction move(bwi_pass pass, const bw_node *node, int value)
{
    return (bwi_instruction){.node = node, .pass = pass, .dst = value, .diff_dst = -1, .workspace = -1};
}

/* How many instructions the phase has, with a load for each value from an earlier phase, and a store for each that a later one
 * loads: later phases were filled before. */
static size_t count_phase(const cutter *c, int level)
{
    const bwi_program *p = &c->program->program;
    size_t count = (size_t)(c->included_count + c->loaded_count);
    for (int n = level ? c->level_ends[level - 1] : 0; n < c->level_ends[level]; n++) {
        const bwi_instruction *i = &p->instructions[c->by_level[n]];
        for (int k = 0; k < i->write_count; k++) {
            count += c->last_load[i->writes[k]] > 0;
        }
    }
    return count;
}

static int compare_numbers(const void *a, const void *b)
{
    return *(const int *)a - *(const int *)b;
}

/* Empties the lists of a phase. */
static void forget(cutter *c)
{
    for (int n = 0; n < c->included_count; n++) {
        c->include[c->included[n]] = false;
    }
    for (int n = 0; n < c->loaded_count; n++) {
        c->load[c->loaded[n]] = false;
    }
    c->included_count = c->loaded_count = 0;
}

/* Collects what the phase runs for and everything that this needs: loads first, then instructions in the program's order; stores
 * will follow (add_stores). */
static bw_status fill_phase(cutter *c, int level)
{
    const bwi_program *p = &c->program->program;
    bwi_phase *phase = &c->program->phases[level];
    for (int n = level ? c->level_ends[level - 1] : 0; n < c->level_ends[level]; n++) {
        const bwi_instruction *i = &p->instructions[c->by_level[n]];
        if (bwi_plan_is_wanted(c->program, i) || is_kept(c, i)) {
            need_instruction(c, c->by_level[n], level);
        }
    }
    phase->instructions = bwi_allocate(c->plan->ctx, count_phase(c, level), sizeof *phase->instructions);
    if (!phase->instructions) {
        return BW_RESOURCE_EXHAUSTED;
    }
    qsort(c->included, (size_t)c->included_count, sizeof *c->included, compare_numbers);
    qsort(c->loaded, (size_t)c->loaded_count, sizeof *c->loaded, compare_numbers);
    for (int n = 0; n < c->loaded_count; n++) {
        phase->instructions[phase->count++] = move(BWI_PASS_LOAD, p->values[c->loaded[n]].node, c->loaded[n]);
    }
    for (int n = 0; n < c->included_count; n++) {
        phase->instructions[phase->count++] = p->instructions[c->included[n]];
    }
    forget(c);
    return BW_OK;
}

/* A kept value lives from the end of the phase that first knows it to the beginning of the last one that loads it. */
static bwi_life life_in_store(const cutter *c, int value)
{
    const bwi_program *p = &c->program->program;
    bwi_life life = {.value = value, .first = 2 * p->instructions[c->writer[value]].level + 1, .last = 2 * c->last_load[value]};
    life.bytes = bwi_size_align(bwi_plan_value_bytes(c->plan, &p->values[value], c->plan->tile), BWI_CACHE_LINE);
    return life;
}

static int makers(const bwi_program *program, const bwi_variable *variable)
{
    int count = 0;
    for (int n = 0; n < program->count; n++) {
        const bwi_instruction *i = &program->instructions[n];
        for (int k = 0; k < i->node->variables; k++) {
            count += makes_sums(i) && i->node->variable[k] == variable;
        }
    }
    return count;
}

bool bwi_plan_defers(const bwi_plan *plan, const bwi_program *program, const bwi_instruction *i)
{
    bool defers = i->pass == BWI_PASS_BACKWARD_WEIGHTS && i->node->op->deferred &&
                  i->node->op->deferred->floats(i->node, plan->tile) > 0 && program->training && program->levels == 1;
    for (int k = 0; defers && k < i->node->variables; k++) {
        defers = i->node->variable[k]->trainable && makers(program, i->node->variable[k]) == 1;
    }
    return defers;
}

/* Moves gradients that may be deferred to the end, so that their factors live until then. */
static bw_status move_deferred(cutter *c, bwi_phase *phase)
{
    const bwi_program *p = &c->program->program;
    bwi_instruction *moved = bwi_allocate(c->plan->ctx, (size_t)phase->count, sizeof *moved);
    if (!moved) {
        return BW_RESOURCE_EXHAUSTED;
    }
    int kept = 0;
    for (int n = 0; n < phase->count; n++) {
        if (bwi_plan_defers(c->plan, p, &phase->instructions[n])) {
            moved[phase->deferred++] = phase->instructions[n];
        } else {
            phase->instructions[kept++] = phase->instructions[n];
        }
    }
    memcpy(&phase->instructions[kept], moved, (size_t)phase->deferred * sizeof *moved);
    bwi_release(c->plan->ctx, moved);
    return BW_OK;
}

/* The values of one fate share a tile's slot: a place is free again once the last phase that needs it has loaded it. */
static size_t lay_slot(cutter *c, bwi_fate fate, bwi_life *lives, bwi_life **order)
{
    int count = 0;
    for (int v = 0; v < c->program->program.value_count; v++) {
        if (c->last_load[v] && c->program->fate[v] == fate) {
            lives[count] = life_in_store(c, v);
            order[count] = &lives[count];
            count++;
        }
    }
    size_t bytes = bwi_plan_pack(order, count);
    for (int k = 0; k < count; k++) {
        c->program->stored[lives[k].value] = lives[k].offset;
    }
    return bytes;
}

/* A kept value is stored at the end of the phase that first knows it, and has a place in each tile's slot. */
static bw_status add_stores(cutter *c)
{
    const bwi_program *p = &c->program->program;
    size_t values = (size_t)p->value_count;
    bwi_life *lives = bwi_allocate(c->plan->ctx, values, sizeof *lives);
    bwi_life **order = bwi_allocate(c->plan->ctx, values, sizeof(bwi_life *));
    bw_status status = lives && order ? BW_OK : BW_RESOURCE_EXHAUSTED;
    for (int v = 0; v < p->value_count && status == BW_OK; v++) {
        c->program->stored[v] = SIZE_MAX;
        if (c->last_load[v]) {
            bwi_phase *phase = &c->program->phases[p->instructions[c->writer[v]].level];
            phase->instructions[phase->count++] = move(BWI_PASS_STORE, p->values[v].node, v);
        }
    }
    if (status == BW_OK) {
        size_t store = lay_slot(c, BWI_FATE_KEEP, lives, order), spill = lay_slot(c, BWI_FATE_SPILL, lives, order);
        c->plan->store_slot = store > c->plan->store_slot ? store : c->plan->store_slot;
        c->plan->spill_slot = spill > c->plan->spill_slot ? spill : c->plan->spill_slot;
    }
    bwi_release(c->plan->ctx, lives);
    bwi_release(c->plan->ctx, (void *)order);
    return status;
}

static bw_status place_phases(cutter *c, bool *ends)
{
    const bwi_program *p = &c->program->program;
    for (int v = 0; v < c->program->own_values; v++) {
        int writer = c->writer[v];
        if (writer >= 0 && is_target(c->program, &p->instructions[writer])) {
            ends[v] = true;
        }
    }
    return bwi_plan_place(c->plan, c->program, ends);
}

void bwi_plan_uncut(bwi_plan *plan, bwi_plan_program *program)
{
    for (int k = 0; program->phases && k < program->phase_count; k++) {
        bwi_release(plan->ctx, program->phases[k].instructions);
        bwi_release(plan->ctx, program->phases[k].lists);
        bwi_release(plan->ctx, program->phases[k].places);
    }
    bwi_release(plan->ctx, program->phases);
    bwi_release(plan->ctx, program->stored);
    program->phases = NULL;
    program->stored = NULL;
    program->program.value_count = program->own_values;
}

static bw_status cut(cutter *c)
{
    const bwi_program *p = &c->program->program;
    bw_status status = BW_OK;
    bwi_plan_find_writers(p, c->writer);
    bwi_plan_sort_by_level(p, c->by_level, c->level_ends);
    /* The last phase comes first, because earlier phases must compute and keep what it loads. */
    for (int level = p->levels - 1; level >= 0 && status == BW_OK; level--) {
        status = fill_phase(c, level);
    }
    if (status == BW_OK) {
        status = add_stores(c);
    }
    if (status == BW_OK && (c->plan->split_tiles || c->plan->joined)) {
        status = move_deferred(c, &c->program->phases[0]);
    }
    for (int level = 0; level < p->levels && status == BW_OK && c->plan->segments > 1; level++) {
        status = bwi_plan_segment(c->plan, c->program, &c->program->phases[level]);
    }
    return status;
}

static bw_status place_all(cutter *c)
{
    size_t values = (size_t)c->program->program.value_count;
    bool *ends = bwi_allocate(c->plan->ctx, values, sizeof *ends);
    bw_status status = ends ? place_phases(c, ends) : BW_RESOURCE_EXHAUSTED;
    bwi_release(c->plan->ctx, ends);
    return status;
}

/* What segments of an earlier cut have added to the list of values goes, and its memory, too: a plan's bytes follow from what was
 * chosen, not from what was tried before. */
static bw_status drop_added(bwi_program *p, int own)
{
    if (p->value_capacity > own) {
        bwi_value *kept = bwi_grow(p->ctx, p->values, (size_t)p->value_capacity, (size_t)own, sizeof *kept);
        if (!kept) {
            return BW_RESOURCE_EXHAUSTED;
        }
        p->values = kept;
        p->value_capacity = own;
    }
    return BW_OK;
}

/* The lists are those of the cut; phases and places of stored values belong to the program. */
bw_status bwi_plan_cut(bwi_plan *plan, bwi_plan_program *program)
{
    bw_context *ctx = plan->ctx;
    const bwi_program *p = &program->program;
    cutter c = {.plan = plan, .program = program};
    bwi_plan_uncut(plan, program);
    if (drop_added(&program->program, program->own_values) != BW_OK) {
        return BW_RESOURCE_EXHAUSTED;
    }
    program->phase_count = p->levels;
    program->phases = bwi_allocate(ctx, (size_t)p->levels, sizeof *program->phases);
    program->stored = bwi_allocate(ctx, (size_t)p->value_count, sizeof *program->stored);
    c.writer = bwi_allocate(ctx, (size_t)p->value_count, sizeof *c.writer);
    c.include = bwi_allocate(ctx, (size_t)p->count, sizeof *c.include);
    c.load = bwi_allocate(ctx, (size_t)p->value_count, sizeof *c.load);
    c.last_load = bwi_allocate(ctx, (size_t)p->value_count, sizeof *c.last_load);
    c.by_level = bwi_allocate(ctx, (size_t)p->count, sizeof *c.by_level);
    c.level_ends = bwi_allocate(ctx, (size_t)p->levels, sizeof *c.level_ends);
    c.included = bwi_allocate(ctx, (size_t)p->count, sizeof *c.included);
    c.loaded = bwi_allocate(ctx, (size_t)p->value_count, sizeof *c.loaded);
    bool ok = program->phases && program->stored && c.writer && c.include && c.load && c.last_load && c.by_level && c.level_ends &&
              c.included && c.loaded;
    bw_status status = ok ? cut(&c) : BW_RESOURCE_EXHAUSTED;
    if (status == BW_OK) {
        status = place_all(&c);
    }
    bwi_release(ctx, c.writer);
    bwi_release(ctx, c.include);
    bwi_release(ctx, c.load);
    bwi_release(ctx, c.last_load);
    bwi_release(ctx, c.by_level);
    bwi_release(ctx, c.level_ends);
    bwi_release(ctx, c.included);
    bwi_release(ctx, c.loaded);
    return status;
}
