/*
 * Plans for users: a plan is made as bw_fit would make it, its bytes are sorted into items and layers, and it is discarded. Nothing
 * is allocated for training, and the model is left as it was.
 *
 * The items add up to the peak exactly: what a worker's region holds when it is fullest is split by kind, gaps count as
 * activations, and what remains of the arena, including padding, counts as scratch.
 */
#include "insight/internal.h"

#include <string.h>

static const char *const item_names[BW_PLAN_ITEMS] = {
    [BW_PLAN_PARAMETERS] = "parameters",
    [BW_PLAN_GRADIENTS] = "gradients",
    [BW_PLAN_LANES] = "lanes",
    [BW_PLAN_OPTIMIZER] = "optimizer",
    [BW_PLAN_ACTIVATIONS] = "activations",
    [BW_PLAN_WORKSPACE] = "workspace",
    [BW_PLAN_SCRATCH] = "scratch",
    [BW_PLAN_INPUT] = "input",
    [BW_PLAN_DATA] = "data",
    [BW_PLAN_STORE] = "store",
    [BW_PLAN_BOOKKEEPING] = "bookkeeping",
};

const char *bw_plan_item_name(bw_plan_item item)
{
    return (unsigned)item < BW_PLAN_ITEMS ? item_names[item] : NULL;
}

/* What is gathered while a plan for users is made. */
typedef struct study {
    bw_context *ctx;
    bw_model *model;
    bwi_session session;
    bwi_plan *inner;
    bw_plan *plan;
    size_t whole_fixed, whole_sample; /* of a system that holds the whole batch: once, and for each sample */
    size_t *whole_nodes;              /* of the latter, the share of each node of the session's graph */
    size_t *values, *workspaces;      /* for each lowered node, of one worker */
    int *layer_of;                    /* the row of each node of the session's graph */
    size_t other_bytes;               /* outside the arena: the history */
} study;

/* ---- Which layer a node belongs to ---- */

/* Finds the row by the name of a layer's nodes, which is the same at every length; losses and metrics belong to the last row. */
static int row_of_node(const study *s, int number)
{
    int last = s->plan->row_count - 1;
    const bwi_graph *graph = number < s->model->graph.count ? &s->model->graph : &s->session.graph;
    const bw_node *node = graph->nodes[number];
    for (int k = 0; k < last; k++) {
        if (strcmp(s->plan->rows[k].name, node->name) == 0) {
            return k;
        }
    }
    return last;
}

/* The row of a lowered node is that of the node it was made from; a reorder belongs to the node that it reorders. */
static int row_of_lowered(const study *s, const bw_node *node)
{
    for (;;) {
        for (int n = s->session.graph.count - 1; n >= 0; n--) {
            if (s->inner->lowered[n] == node) {
                return s->layer_of[n];
            }
        }
        if (node->inputs == 0) {
            return s->plan->row_count - 1;
        }
        node = node->input[0];
    }
}

static int row_of_variable(const study *s, const bwi_variable *variable)
{
    for (int n = 0; n < s->model->graph.count; n++) {
        const bw_node *node = s->model->graph.nodes[n];
        for (int k = 0; k < node->variables; k++) {
            if (node->variable[k] == variable) {
                return s->layer_of[n];
            }
        }
    }
    return s->plan->row_count - 1;
}

/* ---- Rows ---- */

/* Makes rows for inputs and layers in the order of their nodes, then one for losses and metrics. */
static bw_status open_rows(study *s)
{
    bw_plan *plan = s->plan;
    const bwi_graph *graph = &s->model->graph;
    plan->rows = bwi_allocate(s->ctx, (size_t)graph->count + 1, sizeof *plan->rows);
    s->layer_of = bwi_allocate(s->ctx, (size_t)s->session.graph.count, sizeof *s->layer_of);
    if (!plan->rows || !s->layer_of) {
        return BW_RESOURCE_EXHAUSTED;
    }
    plan->row_count = 1;
    for (int n = 0; n < graph->count; n++) {
        const bw_node *node = graph->nodes[n];
        int row = row_of_node(s, n);
        if (row == plan->row_count - 1) { /* a new row, before the last */
            row = plan->row_count++ - 1;
            snprintf(plan->rows[row].name, sizeof plan->rows[row].name, "%s", node->name);
        }
        plan->rows[row].facts.ndim = node->shape.ndim;
        memcpy(plan->rows[row].facts.shape, node->shape.extent, sizeof node->shape.extent);
    }
    snprintf(plan->rows[plan->row_count - 1].name, sizeof plan->rows[0].name, "loss and metrics");
    for (int k = 0; k < plan->row_count; k++) {
        plan->rows[k].facts.name = plan->rows[k].name;
    }
    for (int n = 0; n < s->session.graph.count; n++) {
        s->layer_of[n] = row_of_node(s, n);
    }
    return BW_OK;
}

/* A layer has its values in every region of tiles, and its gradients in every lane, unless lanes share them. */
static void fill_rows(const study *s)
{
    const bwi_plan *inner = s->inner;
    bwi_plan_row *rows = s->plan->rows;
    size_t regions = (size_t)inner->regions;
    for (int n = 0; n < inner->graph.count; n++) {
        bw_layer_memory *facts = &rows[row_of_lowered(s, inner->graph.nodes[n])].facts;
        facts->activations += bwi_size_multiply(s->values[n], regions);
        facts->workspace += bwi_size_multiply(s->workspaces[n], regions);
    }
    for (int v = 0; v < inner->source->variable_count; v++) {
        const bwi_variable *variable = inner->source->variables[v];
        bw_layer_memory *facts = &rows[row_of_variable(s, variable)].facts;
        size_t bytes = bwi_size_multiply((size_t)variable->count, sizeof(float));
        facts->parameters += bytes;
        bool joined = inner->gradients[v] >= inner->lane_bytes; /* behind the lanes: once for all of them */
        facts->gradients += inner->gradients[v] == SIZE_MAX ? 0 : bwi_size_multiply(bytes, joined ? 1 : (size_t)inner->lane_slots);
    }
    for (int n = 0; n < s->session.graph.count; n++) {
        size_t bytes = bwi_size_multiply(s->whole_nodes[n], (size_t)s->plan->facts.batch);
        rows[s->layer_of[n]].facts.whole_batch += bytes;
    }
}

/* ---- Items ---- */

/* The items add up to the peak, because what no other item claims is counted as the kernels' scratch memory. */
static void fill_items(const study *s)
{
    const bwi_plan *inner = s->inner;
    bw_memory_facts *facts = &s->plan->facts;
    size_t *items = facts->items, input = 0, workspace = 0, sum = 0;
    for (int n = 0; n < inner->graph.count; n++) {
        workspace += bwi_size_multiply(s->workspaces[n], (size_t)inner->regions);
        input += inner->graph.nodes[n]->op->flags & BWI_OP_INPUT ? bwi_size_multiply(s->values[n], (size_t)inner->regions) : 0;
    }
    items[BW_PLAN_PARAMETERS] = bwi_session_parameter_bytes(&s->session);
    items[BW_PLAN_OPTIMIZER] =
        inner->divides ? bwi_portion_slot_bytes(s->session.training, inner->ranks) : bwi_optimizer_bytes(s->session.training);
    items[BW_PLAN_DATA] = inner->items.data;
    items[BW_PLAN_BOOKKEEPING] = inner->items.bookkeeping + s->other_bytes;
    size_t lane = (inner->items.lanes - inner->joined_bytes) / (size_t)inner->lane_slots + inner->joined_bytes;
    items[BW_PLAN_GRADIENTS] = lane + inner->items.records;
    items[BW_PLAN_LANES] = inner->items.lanes - lane;
    items[BW_PLAN_INPUT] = input;
    items[BW_PLAN_WORKSPACE] = workspace + inner->items.statistics;
    items[BW_PLAN_ACTIVATIONS] = inner->items.activations - input - workspace;
    items[BW_PLAN_STORE] = inner->items.store;
    facts->peak_bytes = bwi_plan_total(inner);
    for (int k = 0; k < BW_PLAN_ITEMS; k++) {
        sum += items[k];
    }
    items[BW_PLAN_SCRATCH] = facts->peak_bytes - sum;
}

/* ---- Why this tile ---- */

/* Describes the bytes of one sample's values, and of the weights that each tile reads. */
static void explain_model(const study *s, char *text)
{
    size_t sample = 0, weights = 0;
    for (int n = 0; n < s->session.graph.count; n++) {
        const bw_node *node = s->session.graph.nodes[n];
        if (!(node->op->flags & (BWI_OP_VIEW | BWI_OP_SUMS))) {
            sample = bwi_size_add(sample, bwi_size_multiply((size_t)bwi_shape_count(&node->shape), sizeof(float)));
        }
    }
    for (int v = 0; v < s->inner->source->variable_count; v++) {
        const bwi_variable *variable = s->inner->source->variables[v];
        weights += variable->trainable && !variable->sparse ? (size_t)variable->count * sizeof(float) : 0;
    }
    char one[32], all[32];
    snprintf(text, BWI_REASON, "from the model: values of %s per sample and weights of %s, balanced for a reference cache",
             bwi_format_bytes(one, sample), bwi_format_bytes(all, weights));
}

static void explain(const study *s, const bw_plan_options *options)
{
    const bwi_plan *inner = s->inner;
    char *text = s->plan->reason;
    if (inner->tile < inner->requested_tile || inner->workers < inner->requested_workers || inner->lanes < inner->requested_lanes) {
        char budget[32];
        snprintf(text, BWI_REASON,
                 "for the budget of %s; without it the tile would be %lld, with %d lanes and %d workers (another tile or number "
                 "of lanes changes bits)",
                 bwi_format_bytes(budget, s->plan->facts.budget), (long long)inner->requested_tile, inner->requested_lanes,
                 inner->requested_workers);
    } else if (inner->divides) {
        snprintf(text, BWI_REASON,
                 "from the model; the budget is met by dividing the optimizer's slots over %d ranks, which changes no bits",
                 inner->ranks);
    } else if (options->tile) {
        snprintf(text, BWI_REASON, "as asked for");
    } else {
        explain_model(s, text);
    }
}

/* ---- Making ---- */

static void destroy(bwi_owned *object)
{
    bw_plan *plan = (bw_plan *)(void *)object;
    bwi_release(plan->ctx, plan->rows);
}

static bw_status measure_whole_batch(study *s)
{
    const bwi_session *session = &s->session;
    bw_node *sums[BWI_MAX_COLUMNS];
    for (int c = 0; c < session->column_count; c++) {
        sums[c] = session->columns[c].node;
    }
    s->whole_fixed = bwi_optimizer_bytes(session->training);
    for (int v = 0; v < session->graph.variable_count; v++) {
        const bwi_variable *variable = session->graph.variables[v];
        size_t one = bwi_size_multiply((size_t)bwi_shape_count(&variable->shape), sizeof(float));
        s->whole_fixed = bwi_size_add(s->whole_fixed, bwi_size_multiply(one, variable->trainable && !variable->sparse ? 2 : 1));
    }
    bwi_program_request program = {sums, session->column_count, session->losses, session->loss_count};
    return bwi_whole_batch_measure(s->ctx, &session->graph, &program, &s->whole_sample, s->whole_nodes);
}

/* Fills in everything that a plan reports: when most memory is in use, what uses it then, and what a whole batch would need. */
static bw_status fill(study *s, const bw_plan_options *options)
{
    bw_memory_facts *facts = &s->plan->facts;
    const bwi_plan *inner = s->inner;
    size_t nodes = (size_t)inner->graph.count;
    s->values = bwi_allocate(s->ctx, nodes, sizeof *s->values);
    s->workspaces = bwi_allocate(s->ctx, nodes, sizeof *s->workspaces);
    s->whole_nodes = bwi_allocate(s->ctx, (size_t)s->session.graph.count, sizeof *s->whole_nodes);
    if (!s->values || !s->workspaces || !s->whole_nodes) {
        return BW_RESOURCE_EXHAUSTED;
    }
    bw_status status = bwi_plan_fullest(inner, s->values, s->workspaces);
    if (status == BW_OK) {
        status = measure_whole_batch(s);
    }
    if (status == BW_OK) {
        status = open_rows(s);
    }
    if (status != BW_OK) {
        return status;
    }
    facts->tile = inner->tile;
    facts->lanes = inner->lanes;
    facts->workers = inner->workers;
    facts->phases = inner->programs[0].phase_count;
    facts->segments = inner->segments;
    facts->spill_bytes = inner->spill_bytes;
    facts->budget = options->memory ? options->memory : s->ctx->memory ? s->ctx->memory : bwi_memory_available(s->ctx);
    size_t values = bwi_size_multiply(s->whole_sample, (size_t)facts->batch);
    size_t left = facts->budget > s->whole_fixed ? facts->budget - s->whole_fixed : 0;
    facts->whole_batch_bytes = bwi_size_add(s->whole_fixed, values);
    facts->whole_batch_largest = s->whole_sample ? (int64_t)(left / s->whole_sample) : 0;
    fill_items(s);
    fill_rows(s);
    explain(s, options);
    return BW_OK;
}

/* The session is planned as training would plan it, and never opened: no arena is allocated to learn its size. */
static bw_status study_session(study *s, bw_dataset *dataset, int64_t window, const bw_plan_options *options)
{
    bwi_session_options session = {.train = true,
                                   .evaluate = options->validation,
                                   .batch = window,
                                   .tile = options->tile,
                                   .lanes = options->lanes,
                                   .memory = options->memory,
                                   .spill = options->spill,
                                   .divisible = true,
                                   .epochs = options->epochs};
    bw_status status = bwi_session_plan(&s->session, s->model, dataset, &session, &s->inner);
    if (status != BW_OK) {
        return status;
    }
    s->other_bytes = bwi_session_history_bytes(&s->session, options->validation, options->epochs);
    status = fill(s, options);
    bwi_release(s->ctx, s->values);
    bwi_release(s->ctx, s->workspaces);
    bwi_release(s->ctx, s->whole_nodes);
    bwi_release(s->ctx, s->layer_of);
    bwi_plan_free(s->inner);
    bwi_session_close(&s->session);
    return status;
}

static bw_status check(bw_context *ctx, const bw_model *model, const bw_dataset *dataset, int64_t batch,
                       const bw_plan_options *options, int64_t *window)
{
    if (batch < 1 || options->accumulate < 1 || __builtin_mul_overflow(batch, (int64_t)options->accumulate, window)) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "plan: expected a batch and accumulate of at least 1, got %lld and %d",
                        (long long)batch, options->accumulate);
    }
    if (options->epochs < 1) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "plan: expected at least 1 epoch, got %d", options->epochs);
    }
    if (!dataset && !model->output_count && !model->by_calls && model->input_shape.ndim < 0) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT,
                        "plan: the model's input is not known: begin it with input(...), e.g. input(28,28,1), or give data");
    }
    return BW_OK;
}

/* Gives the model the shape for which it is planned: that of the data, or its declared one. */
static bw_status sketch_model(bw_model *model, const bw_dataset *dataset, bool *connected)
{
    int x = dataset ? bwi_dataset_find(dataset, BWI_ROLE_INPUT, 0) : -1;
    *connected = false;
    if (dataset && x < 0) {
        return bwi_fail(model->ctx, BW_INVALID_ARGUMENT, "the data has no inputs (x)");
    }
    if (x >= 0) {
        const bwi_field *field = bwi_dataset_field(dataset, x);
        return bwi_model_sketch(model, field->ndim, field->shape, connected);
    }
    return bwi_model_sketch(model, model->input_shape.ndim, model->input_shape.extent, connected);
}

/* A model without data is planned on samples that are only declared; if it had no nodes before, it is left without them. */
static bw_status make(study *s, bw_dataset *dataset, int64_t batch, const bw_plan_options *options)
{
    int64_t window = 0;
    bool connected, declared = s->model->input_shape.ndim >= 0;
    bw_status status = check(s->ctx, s->model, dataset, batch, options, &window);
    if (status != BW_OK) {
        return status;
    }
    uint64_t missing = bwi_front_missing(s->model);
    bw_dataset *sketch = NULL, *front = NULL;
    if (dataset) {
        status = bwi_front_prepare(s->model, dataset, &front);
        dataset = front ? front : dataset;
    }
    if (status != BW_OK) {
        return status;
    }
    status = sketch_model(s->model, dataset, &connected);
    if (status == BW_OK && !dataset) {
        sketch = bwi_sketch_data(s->model);
        status = sketch ? BW_OK : bwi_pending(s->ctx);
    }
    if (status == BW_OK) {
        s->plan->facts.batch = batch;
        status = study_session(s, dataset ? dataset : sketch, window, options);
    }
    bw_dataset_free(sketch);
    bw_dataset_free(front);
    if (connected) {
        bwi_model_disconnect(s->model, declared);
        bwi_front_forget(s->model, missing); /* training fits to its own part */
    }
    return status;
}

bw_plan *bw_plan_make(bw_model *model, bw_dataset *dataset, int64_t batch, const bw_plan_options *options)
{
    bw_plan_options chosen = BW_PLAN_OPTIONS_DEFAULT;
    if (!model) {
        return NULL;
    }
    study s = {.ctx = model->ctx, .model = model};
    if (bwi_pending(s.ctx) != BW_OK || bwi_options_copy(s.ctx, &chosen, sizeof chosen, options, "bw_plan_options") != BW_OK) {
        return bwi_pass_on(s.ctx);
    }
    s.plan = bwi_own(s.ctx, sizeof *s.plan, destroy);
    if (!s.plan) {
        return NULL;
    }
    s.plan->ctx = s.ctx;
    void (*log)(void *, bw_log_level, const char *) = s.ctx->log;
    s.ctx->log = NULL; /* no logging here: training logs which loss the data decides on */
    bw_status status = make(&s, dataset, batch, &chosen);
    s.ctx->log = log;
    if (status != BW_OK) {
        bwi_disown(s.plan);
        return bwi_pass_on(s.ctx);
    }
    return s.plan;
}

bw_memory_facts bw_plan_facts(const bw_plan *plan)
{
    return plan ? plan->facts : (bw_memory_facts){0};
}

const char *bw_plan_reason(const bw_plan *plan)
{
    return plan ? plan->reason : "";
}

int bw_plan_layers(const bw_plan *plan)
{
    return plan ? plan->row_count : 0;
}

bw_layer_memory bw_plan_layer(const bw_plan *plan, int index)
{
    return plan && index >= 0 && index < plan->row_count ? plan->rows[index].facts : (bw_layer_memory){0};
}

void bw_plan_free(bw_plan *plan)
{
    bwi_disown(plan);
}
