/*
 * The plan of a session: its requests (programs, batch, budget, spilling), and the bytes that the run needs outside the plan's
 * arena: variables, slots, history, and samples that are made ahead.
 */
#include "train/internal.h"

#include <stdlib.h>

/* The noise scale comes from the differences between lanes, so that a model for which one would do needs some. */
enum { NOISE_LANES = 4 };

size_t bwi_session_parameter_bytes(const bwi_session *s)
{
    size_t bytes = 0;
    for (int v = 0; v < s->graph.variable_count; v++) {
        bytes = bwi_size_add(bytes, bwi_size_multiply((size_t)s->graph.variables[v]->count, sizeof(float)));
    }
    return bytes;
}

/* An output without a loss is computed in training if layers before it may update moving statistics, as they do in Keras. */
static int add_untrained(const bwi_session *s, bw_node **targets, int count)
{
    bool moves = false;
    for (int n = 0; n < s->graph.count; n++) {
        moves = moves || (s->graph.nodes[n]->op->sums && s->graph.nodes[n]->op->sums->commit);
    }
    for (int k = 0; moves && k < s->output_count; k++) {
        const bwi_chosen_loss *loss = bwi_loss_of(s->training->model, k);
        if (loss && !loss->row) {
            targets[count++] = s->outputs[k];
        }
    }
    return count;
}

static void mark_needed(const bwi_session *s, bool *needed)
{
    for (int k = 0; k < s->output_count; k++) {
        needed[s->outputs[k]->number] = true;
    }
    for (int n = s->graph.count - 1; n >= 0; n--) {
        for (int k = 0; needed[n] && k < s->graph.nodes[n]->inputs; k++) {
            needed[s->graph.nodes[n]->input[k]->number] = true;
        }
    }
}

/* Keras runs all of a nested model, also what leads only to an output that nobody takes; if it moves statistics, so it must
 * here. */
static bw_status add_unused(const bwi_session *s, bw_node **targets, int most, int *count)
{
    const bw_model *model = s->training->model;
    bool *needed = bwi_allocate(s->training->ctx, (size_t)s->graph.count, sizeof *needed);
    bw_status status = needed ? BW_OK : BW_RESOURCE_EXHAUSTED;
    if (needed) {
        mark_needed(s, needed);
    }
    for (int u = 0; u < model->use_count && status == BW_OK; u++) {
        bw_node *node = s->graph.nodes[model->uses[u].node->number];
        if (model->uses[u].run_at <= 0 || needed[node->number] || !node->op->sums || !node->op->sums->commit) {
            continue;
        }
        if (*count == most) {
            status = bwi_fail(s->training->ctx, BW_UNIMPLEMENTED, "layer %s: more than %d unused outputs of nested models",
                              node->name, most - s->column_count);
        } else {
            targets[(*count)++] = node;
        }
    }
    bwi_release(s->training->ctx, needed);
    return status;
}

static void add_programs(const bwi_session *s, const bwi_session_options *o, int numbers[3], bw_node *const *sums, int trained,
                         bw_node *const *losses, bw_node *const *outputs, bwi_program_request *programs, int *count)
{
    if (o->train) {
        numbers[BWI_PROGRAM_TRAIN] = *count;
        programs[(*count)++] = (bwi_program_request){sums, trained, losses, s->loss_count};
    }
    if (o->evaluate || o->adapt) {
        numbers[BWI_PROGRAM_EVALUATE] = *count;
        programs[(*count)++] = (bwi_program_request){sums, s->column_count, NULL, 0};
    }
    if (o->predict) {
        numbers[BWI_PROGRAM_PREDICT] = *count;
        programs[(*count)++] = (bwi_program_request){outputs, s->output_count + (o->losses ? s->loss_count : 0), NULL, 0};
    }
}

/* Lists the targets of prediction: the outputs, followed by the losses. */
static void list_targets(const bwi_session *s, bw_node *targets[3 * BWI_MAX_HEADS])
{
    for (int k = 0; k < s->output_count; k++) {
        targets[k] = s->outputs[k];
    }
    for (int k = 0; k < s->loss_count; k++) {
        targets[s->output_count + k] = s->losses[k];
    }
}

/* Finds the folder to spill to. A folder that was asked for must be suitable; if the default one is not, nothing is spilled. */
static bw_status spill_folder(bw_context *ctx, const char *asked, const char **folder)
{
    const char *set = getenv("TMPDIR");
    *folder = asked ? asked : set && *set ? set : "/tmp";
    bwi_disk disk = bwi_disk_of(*folder);
    if (asked && disk.error) {
        return bwi_fail(ctx, bwi_errno_status(disk.error), "spill: %s: %s", asked, bwi_errno_text(disk.error));
    }
    if (asked && disk.in_memory) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "spill: %s is a file system in memory", asked);
    }
    *folder = disk.error || disk.in_memory ? NULL : *folder;
    return BW_OK;
}

static size_t part_bytes(const bwi_made_ahead *a, const bw_dataset *dataset, int64_t count, const bwi_plan *plan)
{
    bwi_gather_schedule schedule = {
        .count = count, .tile = plan->tile, .lanes = plan->lanes, .workers = plan->workers, .budget = a->budget};
    for (int p = 0; p < plan->program_count; p++) {
        schedule.again |= plan->programs[p].phase_count > 1;
    }
    return dataset ? bwi_dataset_bytes(dataset, &schedule) : 0;
}

static size_t data_bytes(const void *user, const bwi_plan *plan)
{
    const bwi_made_ahead *a = user;
    int64_t validation = a->validation ? bw_dataset_count(a->validation) : 0;
    return bwi_size_add(part_bytes(a, a->dataset, a->batch, plan), part_bytes(a, a->validation, validation, plan));
}

static size_t largest_variable_bytes(const bwi_session *s)
{
    size_t largest = 0;
    for (int v = 0; v < s->graph.variable_count; v++) {
        size_t bytes = bwi_size_multiply((size_t)s->graph.variables[v]->count, sizeof(float));
        largest = bytes > largest ? bytes : largest;
    }
    return largest;
}

/* Files of models are written piece by piece: what is held at a time is a block of a variable, the description of each layer as
 * text (which a buffer holds twice while it grows), the place of each variable and slot, and the recipe of the data. */
static size_t saving_bytes(const bwi_session *s, const bw_dataset *recipe)
{
    enum { FIXED = 1 << 14, BLOCK = 1 << 16, PER_NODE = 4 << 10, PER_VARIABLE = 1 << 10 };
    const bwi_optimizer *o = &s->training->optimizer;
    size_t largest = largest_variable_bytes(s), variables = (size_t)s->graph.variable_count;
    size_t places = variables * (size_t)(1 + o->slot_count + o->averages) * PER_VARIABLE;
    return FIXED + (largest < BLOCK ? largest : BLOCK) + (size_t)s->graph.count * PER_NODE + places + bwi_recipe_bytes(recipe);
}

/* A checkpoint is a copy of everything that a run changes, with names and checksums; a kilobyte is enough for those of a
 * variable. */
static size_t checkpoint_bytes(const bwi_session *s, const bwi_session_options *o)
{
    enum { EACH = 1 << 10, REST = 3 << 16 }; /* of one value; the stack of the thread that writes, and tables */
    size_t parameters = bwi_size_multiply(bwi_session_parameter_bytes(s), o->copies ? 2 : 1);
    size_t names = bwi_size_multiply((size_t)(s->graph.variable_count + s->graph.count), (BWI_MAX_SLOTS + 2) * EACH);
    size_t values = bwi_size_add(parameters, bwi_optimizer_bytes(s->training));
    size_t history = bwi_size_multiply((size_t)o->epochs * (size_t)bwi_session_columns(s, o->evaluate), sizeof(double));
    size_t noise = o->noise ? bwi_noise_bytes(s->graph.variable_count) : 0;
    return bwi_size_add(bwi_size_add(values, history), bwi_size_add(bwi_size_add(names, noise), REST));
}

/* Returns 0 if the system decides. */
static size_t find_budget(const bw_context *ctx, const bwi_session_options *o)
{
    return o->memory ? o->memory : ctx->memory;
}

bwi_made_ahead bwi_session_made_ahead(const bwi_session *s, const bw_dataset *dataset, const bwi_session_options *o)
{
    int64_t batch = o->train ? o->batch > 0 ? o->batch : bwi_dataset_largest_batch(dataset) : bw_dataset_count(dataset);
    bwi_made_ahead a = {.dataset = dataset, .validation = o->validation, .batch = batch};
    bwi_gather_schedule one = {.count = 1, .tile = 1, .lanes = 1, .workers = 1};
    if (bwi_dataset_bytes(dataset, &one) > 0 || (a.validation && bwi_dataset_bytes(a.validation, &one) > 0)) {
        size_t budget = find_budget(s->training->ctx, o);
        a.budget = (budget ? budget : bwi_memory_available(s->training->ctx)) / 4;
        a.budget = a.budget > 0 ? a.budget : 1;
    }
    return a;
}

/* The bytes of the nodes, which the model and the session both have. */
static size_t graph_bytes(const bwi_graph *graph)
{
    size_t bytes = 0;
    for (int n = 0; n < graph->count; n++) {
        const bw_node *node = graph->nodes[n];
        bytes += bwi_allocation_bytes(bwi_node_bytes(node->inputs, node->variables, node->attribute_bytes));
    }
    return 2 * bytes;
}

/* The bytes of the exec, of the profile that a history of training has, and of the nodes. */
static size_t tables_bytes(const bwi_plan *plan, int traced)
{
    enum { BEGUN = 6 << 12 }; /* pages that arenas, stacks and the allocator use only in part */
    size_t run = bwi_size_add(bwi_exec_bookkeeping(plan), bwi_profile_bytes(plan, traced));
    return bwi_size_add(bwi_size_add(run, graph_bytes(plan->source)), BEGUN);
}

static size_t bookkeeping_bytes(const bwi_plan *plan)
{
    return tables_bytes(plan, 0);
}

/* Counts a trace as well. A plan asks without knowing how long it is, so there are two: one of a few steps must not make a small
 * run large. */
static size_t briefly_traced_bytes(const bwi_plan *plan)
{
    return tables_bytes(plan, BWI_BRIEFLY_TRACED);
}

static size_t traced_bytes(const bwi_plan *plan)
{
    return tables_bytes(plan, BWI_MOST_TRACED);
}

/* A default folder without room is as good as none: what would be spilled is computed again, to the same bits. A folder that was
 * asked for is used or refused. */
static bw_status make_with_disk(bw_context *ctx, bwi_plan **plan, bwi_plan_request *request, const char *asked)
{
    bw_status status = bwi_plan_make(ctx, plan, request);
    if (status != BW_OK || asked || !(*plan)->spill_bytes) {
        return status;
    }
    bwi_disk disk = bwi_disk_of(request->spill);
    if (!disk.error && disk.free >= (*plan)->spill_bytes) {
        return BW_OK;
    }
    char need[32], have[32];
    bwi_log(ctx, BW_LOG_WARNING, "spill: %s has %s left, the plan would need %s; values are computed again instead", request->spill,
            bwi_format_bytes(have, disk.free), bwi_format_bytes(need, (*plan)->spill_bytes));
    bwi_plan_free(*plan);
    *plan = NULL;
    request->spill = NULL;
    return bwi_plan_make(ctx, plan, request);
}

/* Requests one program for each use (training, evaluation, prediction) and, with sequences of several lengths, for each length.
 * What the run allocates outside the plan's arena counts against the budget; what is already allocated is reported separately. */
bw_status bwi_session_make_plan(bwi_session *s, const bwi_made_ahead *data, const bwi_session_options *o, bwi_plan **plan)
{
    bw_context *ctx = s->training->ctx;
    bw_node *sums[BWI_MAX_COLUMNS + BWI_MAX_HEADS];
    const char *folder = NULL;
    bw_status status = o->train ? spill_folder(ctx, o->spill, &folder) : BW_OK;
    if (status != BW_OK) {
        return status;
    }
    for (int c = 0; c < s->column_count; c++) {
        sums[c] = s->columns[c].node;
    }
    bwi_program_request programs[3 * BWI_MOST_LENGTHS];
    int count = 0;
    s->program[0] = s->program[1] = s->program[2] = -1;
    for (int k = 0; k < s->variant_count; k++) {
        bwi_variant *v = &s->variants[k];
        add_programs(s, o, v->program, v->columns, s->column_count, v->losses, v->outputs, programs, &count);
    }
    bw_node *targets[3 * BWI_MAX_HEADS];
    if (!s->variant_count) {
        int trained = o->train ? add_untrained(s, sums, s->column_count) : 0;
        status = o->train ? add_unused(s, sums, (int)BWI_COUNT(sums), &trained) : BW_OK;
        if (status != BW_OK) {
            return status;
        }
        list_targets(s, targets);
        add_programs(s, o, s->program, sums, trained, s->losses, targets, programs, &count);
    }
    bwi_plan_request request = {.graph = &s->graph,
                                .own_nodes = s->own_nodes,
                                .programs = programs,
                                .program_count = count,
                                .batch = o->train ? o->batch : 0,
                                .window = o->train ? o->batch : 0,
                                .tile = o->tile,
                                .lanes = o->lanes,
                                .least_lanes = o->noise ? NOISE_LANES : 0,
                                .memory = find_budget(ctx, o),
                                .spill = folder,
                                .bookkeeping = o->traced > BWI_BRIEFLY_TRACED ? traced_bytes
                                               : o->traced > 0                ? briefly_traced_bytes
                                                                              : bookkeeping_bytes,
                                .data = data_bytes,
                                .data_user = data,
                                .ranks = ctx->ranks ? bwi_rank_of(ctx)->count(ctx->ranks) : 1};
    request.outside_bytes = bwi_size_add(bwi_session_parameter_bytes(s), o->train ? bwi_optimizer_bytes(s->training) : 0);
    request.model_bytes = request.outside_bytes;
    size_t history = o->epochs ? bwi_session_history_bytes(s, o->evaluate, o->epochs) : 0;
    size_t others = bwi_size_add(history, o->copies ? bwi_session_parameter_bytes(s) : 0);
    others = bwi_size_add(others, o->noise ? bwi_allocation_bytes(bwi_noise_bytes(s->graph.variable_count)) : 0);
    others = bwi_size_add(others, o->saves ? saving_bytes(s, o->recipe) : 0);
    others = bwi_size_add(others, o->shows_gradients ? bwi_allocation_bytes(largest_variable_bytes(s)) : 0);
    others = bwi_size_add(others, o->checkpoints ? checkpoint_bytes(s, o) : 0);
    others = bwi_size_add(others, o->traced > 0 ? bwi_profile_follow_bytes(data->dataset) : 0);
    others = bwi_size_add(others, o->program_bytes);
    request.outside_bytes = bwi_size_add(request.outside_bytes, others);
    size_t slots = bwi_optimizer_bytes(s->training);
    size_t portion = o->divisible && !o->noise && request.ranks > 1 && !bwi_whole_is_wanted(s->training)
                         ? bwi_portion_slot_bytes(s->training, request.ranks)
                         : slots;
    request.divided_bytes = portion < slots ? request.outside_bytes - slots + portion : 0;
    request.divides = o->divides;
    request.held_bytes = bwi_held_bytes(s->training->model);
    return make_with_disk(ctx, plan, &request, o->spill);
}
