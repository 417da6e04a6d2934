/*
 * A session is the model's graph with the heads that data gives it (targets, weights, losses, metrics), planned and running. It
 * works on a copy, so the model's graph never changes.
 */
#include "train/internal.h"

/* ---- The model's nodes ---- */

static bw_status bind_field(bw_context *ctx, const bw_dataset *dataset, bwi_input_attributes *a)
{
    char name[96];
    bwi_role_describe(name, a->role, a->name);
    a->field = bwi_fields_find(dataset, a);
    if (a->field < 0) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "the data has no %s", name);
    }
    const bwi_field *field = bwi_dataset_field(dataset, a->field);
    if (field->dtype == BW_TEXT) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "the data's %s is text, which a layer such as text_vectorization must take",
                        name);
    }
    if (bwi_field_values(field) != bwi_shape_count(&a->shape)) {
        char expected[160], found[160];
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "the model's %s is %s, the data's samples are %s", name,
                        bwi_format_shape(expected, a->shape.ndim, a->shape.extent),
                        bwi_format_shape(found, field->ndim, field->shape));
    }
    return BW_OK;
}

/* What only layers for text or categories take is bound where they make numbers of it. */
static bool is_taken(const bwi_graph *graph, const bw_node *node)
{
    bool taken = false;
    for (int n = 0; n < graph->count && !taken; n++) {
        for (int k = 0; k < graph->nodes[n]->inputs; k++) {
            taken = taken || graph->nodes[n]->input[k] == node;
        }
    }
    return taken;
}

/* Prediction needs no targets, so the data may lack them; nodes that need them are not planned. */
static bw_status copy_node(bwi_session *s, const bw_dataset *dataset, const bw_node *node, bool predict, bool fronts)
{
    bw_context *ctx = s->graph.ctx;
    bwi_input_attributes input;
    const void *attributes = node->attributes;
    if (node->op->flags & BWI_OP_INPUT) {
        input = *(const bwi_input_attributes *)node->attributes;
        attributes = &input;
        bool idle = (predict && input.role) || (fronts && input.role == BWI_ROLE_INPUT && !is_taken(node->graph, node));
        bw_status status = idle ? BW_OK : bind_field(ctx, dataset, &input);
        if (status != BW_OK) {
            return status;
        }
    }
    bw_node **inputs = bwi_allocate(ctx, (size_t)node->inputs, sizeof(bw_node *));
    if (!inputs) {
        return BW_RESOURCE_EXHAUSTED;
    }
    for (int k = 0; k < node->inputs; k++) {
        inputs[k] = s->graph.nodes[node->input[k]->number];
    }
    bw_node *copy = bwi_graph_add(&s->graph, node->op, node->name, attributes, node->attribute_bytes, inputs, node->inputs,
                                  node->variable, node->variables);
    bwi_release(ctx, (void *)inputs);
    if (copy) {
        copy->activity[0] = node->activity[0];
        copy->activity[1] = node->activity[1];
    }
    return copy ? BW_OK : bwi_pending(ctx);
}

/* Copied nodes keep their numbers, by which inputs, masks and outputs are found, and share the variables. */
static bw_status copy_graph(bwi_session *s, const bw_model *model, const bw_dataset *dataset, bool predict)
{
    const bwi_graph *from = &model->graph;
    bool fronts = bwi_model_has_fronts(model);
    s->graph = (bwi_graph){.ctx = model->ctx, .variables = from->variables, .variable_count = from->variable_count};
    for (int n = 0; n < from->count; n++) {
        bw_status status = copy_node(s, dataset, from->nodes[n], predict, fronts);
        if (status != BW_OK) {
            return status;
        }
    }
    for (int n = 0; n < from->count; n++) {
        const bw_node *mask = from->nodes[n]->mask_taken ? NULL : from->nodes[n]->mask;
        s->graph.nodes[n]->mask = mask ? s->graph.nodes[mask->number] : NULL;
    }
    s->output_count = model->output_count;
    for (int k = 0; k < s->output_count; k++) {
        s->outputs[k] = s->graph.nodes[model->outputs[k]->number];
        snprintf(s->outputs[k]->name, sizeof s->outputs[k]->name, "%s", bwi_output_name(model, k));
    }
    return BW_OK;
}

static bool is_used_again(const bwi_graph *graph, const bw_node *node)
{
    for (int n = 0; node->op->sums && node->op->sums->commit && n < node->number; n++) {
        if (graph->nodes[n]->op == node->op && graph->nodes[n]->variable[0] == node->variable[0]) {
            return true;
        }
    }
    return false;
}

/* A layer that updates moving statistics and is used several times updates them in Keras's order of uses. */
static bw_status order_uses(const bwi_session *s, const bw_model *model)
{
    bool again = false;
    for (int n = 0; n < model->graph.count; n++) {
        again = again || is_used_again(&model->graph, model->graph.nodes[n]);
    }
    int *run_at = again ? bwi_allocate(model->ctx, (size_t)model->use_count, sizeof *run_at) : NULL;
    if (!run_at) {
        return again ? BW_RESOURCE_EXHAUSTED : BW_OK;
    }
    bw_status status = bwi_wiring_run_order(model, run_at);
    for (int u = 0; status == BW_OK && u < model->use_count; u++) {
        s->graph.nodes[model->uses[u].node->number]->run_at = run_at[u];
    }
    bwi_release(model->ctx, run_at);
    return status;
}

/* Allocates what is as large as the model: variables that have no values yet, and the optimizer's slots. */
static bw_status open_variables(const bwi_session *s, const bwi_session_options *options, const bwi_plan *plan)
{
    bw_model *model = s->training->model;
    bw_status status = bwi_model_built(model) ? BW_OK : bwi_model_build(model, 0, NULL, options->seed);
    if (status != BW_OK || !options->train) {
        return status;
    }
    return plan->divides ? bwi_portion_divide(s->training) : bwi_optimizer_open_slots(s->training);
}

/* The plan comes first, so that a budget that is too small is refused before anything large is allocated. */
static bw_status open_exec(bwi_session *s, const bw_dataset *dataset, const bwi_session_options *options)
{
    bwi_made_ahead data = bwi_session_made_ahead(s, dataset, options);
    bwi_plan *plan = NULL;
    bw_status status = bwi_session_make_plan(s, &data, options, &plan);
    s->compiles = s->training->compiles;
    if (status == BW_OK) {
        status = open_variables(s, options, plan);
        if (status != BW_OK) {
            bwi_plan_free(plan);
        }
    }
    if (status == BW_OK) {
        status = bwi_exec_open(s->training->ctx, &s->exec, plan);
    }
    if (status == BW_OK && plan->divides) {
        s->training->optimizer.lender = s->exec;
    }
    bool penalized = s->penalized && options->evaluate; /* the orthogonal penalty is part of the loss */
    size_t whole = options->train || penalized ? bwi_whole_bytes(s->training) : 0;
    if (status == BW_OK && whole) {
        s->whole = bwi_allocate(s->training->ctx, whole, 1);
        status = s->whole ? BW_OK : BW_RESOURCE_EXHAUSTED;
    }
    s->sink = bwi_optimizer_sink(&s->training->optimizer);
    s->moderate = status == BW_OK && options->train && bwi_training_is_moderate(s->training);
    if (status == BW_OK) {
        bwi_exec_set_data_budget(s->exec, data.budget);
        bwi_exec_set_seed(s->exec, options->seed, (uint64_t)s->training->optimizer.iterations);
    }
    return status;
}

/* Gives a model that is not built yet its nodes and shapes; `connected` tells that it had none before. */
static bw_status connect_model(bw_model *model, const bw_dataset *dataset, bool *connected)
{
    const bwi_field *field;
    *connected = false;
    if (bwi_model_built(model)) {
        return BW_OK;
    }
    bw_status status = bwi_fields_input(model->ctx, dataset, &field);
    return status == BW_OK ? bwi_model_sketch(model, field->ndim, field->shape, connected) : status;
}

/* Makes the graph with its heads, for each length. */
static bw_status make_graph(bwi_session *s, bw_model *model, bw_dataset *dataset, const bwi_session_options *options)
{
    bw_status status = copy_graph(s, model, dataset, !options->train && !options->evaluate);
    s->rates = options->rates;
    s->noise = options->noise;
    status = status == BW_OK && options->train ? order_uses(s, model) : status;
    for (int v = 0; status == BW_OK && v < s->graph.variable_count; v++) {
        s->penalized |= s->graph.variables[v]->l1 > 0 || s->graph.variables[v]->l2 > 0 || s->graph.variables[v]->orthogonal > 0;
    }
    if (status == BW_OK && (options->train || options->evaluate)) {
        status = bwi_session_add_heads(s, dataset, options);
    }
    if (status == BW_OK && options->adapt) {
        return bwi_session_add_moments(s, options->adapt_all);
    }
    return status == BW_OK ? bwi_session_add_lengths(s, dataset, options) : status;
}

/* A model whose only compilation failed is refused, since it would be trained with defaults that its user has not chosen. */
static bw_status check_compiled(const bwi_training *t, const bwi_session_options *options)
{
    if (!t) {
        return BW_RESOURCE_EXHAUSTED;
    }
    /* Evaluation needs no optimizer. */
    bool unread = t->unread & (options->train ? BWI_PART_ALL : BWI_PART_LOSS | BWI_PART_METRICS);
    if ((t->compiled && !unread) || t->refused == BW_OK || !(options->train || options->evaluate)) {
        return BW_OK;
    }
    if (unread) {
        return bwi_fail(t->ctx, t->refused, "%s: give another to train or evaluate the model", t->refusal);
    }
    return bwi_fail(t->ctx, t->refused, "the model is not compiled, since bw_compile failed: %s", t->refusal);
}

bw_status bwi_session_plan(bwi_session *s, bw_model *model, bw_dataset *dataset, const bwi_session_options *options,
                           bwi_plan **plan)
{
    *s = (bwi_session){.training = bwi_training_of(model), .graph = {.ctx = model->ctx}};
    bw_status status = check_compiled(s->training, options);
    if (status == BW_OK) {
        status = make_graph(s, model, dataset, options);
    }
    if (status == BW_OK) {
        bwi_made_ahead data = bwi_session_made_ahead(s, dataset, options);
        status = bwi_session_make_plan(s, &data, options, plan);
    }
    if (status != BW_OK) {
        bwi_session_close(s);
    }
    return status;
}

/* The plan is made before anything as large as the model is allocated, so that a budget that is too small is refused before it is
 * spent. */
bw_status bwi_session_open(bwi_session *s, bw_model *model, bw_dataset *dataset, const bwi_session_options *options)
{
    *s = (bwi_session){.training = bwi_training_of(model), .graph = {.ctx = model->ctx}};
    bool connected = false, declared = model->input_shape.ndim >= 0;
    bw_status status = check_compiled(s->training, options);
    if (status == BW_OK) {
        status = connect_model(model, dataset, &connected);
    }
    if (status == BW_OK) {
        status = make_graph(s, model, dataset, options);
    }
    if (status == BW_OK) {
        status = bwi_session_open_totals(s);
    }
    if (status == BW_OK) {
        status = open_exec(s, dataset, options);
    }
    if (status != BW_OK) {
        bwi_session_close(s);
        if (connected && !bwi_model_built(model)) {
            bwi_model_disconnect(model, declared);
        }
    }
    return status;
}

bw_status bwi_session_open_whole(bwi_session *s, bw_model *model, bw_dataset **dataset, bw_dataset **front,
                                 const bwi_session_options *options)
{
    bw_status status = bwi_front_data(model, *dataset, front);
    if (status == BW_OK) {
        *dataset = *front ? *front : *dataset;
        status = bwi_dataset_finish(*dataset);
    }
    return status == BW_OK ? bwi_session_open(s, model, *dataset, options) : status;
}

void bwi_session_close(bwi_session *s)
{
    bwi_exec_close(s->exec);
    s->exec = NULL;
    bwi_release(s->graph.ctx, s->totals_block);
    s->totals_block = NULL;
    bwi_release(s->graph.ctx, s->whole);
    s->whole = NULL;
    bwi_session_free_lengths(s);
    s->graph.variables = NULL; /* they belong to the model */
    s->graph.variable_count = 0;
    bwi_graph_free(&s->graph);
}

/* ---- Running ---- */

/* What regularizers add to the loss, from the variables before the update. */
static double penalty(const bwi_session *s)
{
    const bwi_kernels *kernels = bwi_exec_plan(s->exec)->kernels;
    double sum = 0;
    for (int v = 0; v < s->graph.variable_count; v++) {
        const bwi_variable *variable = s->graph.variables[v];
        if (!variable->trainable) {
            continue;
        }
        sum += variable->l1 > 0 ? (double)variable->l1 * kernels->optimize->sum_of_absolutes(variable->count, variable->data) : 0;
        sum += variable->orthogonal > 0 ? bwi_whole_penalty(s, variable) : 0;
        sum += variable->l2 > 0 ? (double)variable->l2 * kernels->sum_of_squares(variable->count, variable->data) : 0;
    }
    return sum;
}

/* The number by which the gradients of the last feed are divided. */
static double divisor(const bwi_session *s)
{
    return s->balanced ? s->fed : bwi_session_fed_sums(s, &s->columns[0])[1];
}

bw_status bwi_session_feed(bwi_session *s, int which, const bwi_piece *piece, float *const *predictions)
{
    bw_status status = s->variant_count ? bwi_session_feed_lengths(s, which, piece, predictions)
                                        : bwi_exec_feed(s->exec, s->program[which], piece, predictions);
    s->fed = (double)piece->count;
    s->penalty = s->penalized && s->column_count ? penalty(s) : 0;
    if (which == BWI_PROGRAM_TRAIN) {
        s->window_count = status != BW_OK ? 0 : s->summed ? 1 : s->window_count + divisor(s);
    }
    return status;
}

/* Feeds all samples at once if the mean over them equals the mean over their batches. It does not if the loss of a batch is divided
 * by what its masks or weights let count; then the batches are those of Keras. */
bw_status bwi_session_evaluate(bwi_session *s, bw_dataset *dataset, int64_t batch)
{
    int64_t count = bw_dataset_count(dataset);
    bwi_piece piece = {.dataset = dataset, .unaugmented = true};
    bw_status status = BW_OK;
    bwi_session_reset(s);
    do {
        piece.count = s->by_batches && batch < count - piece.first ? batch : count - piece.first;
        status = bwi_session_feed(s, BWI_PROGRAM_EVALUATE, &piece, NULL);
        if (status == BW_OK) {
            bwi_session_count(s);
        }
        piece.first += piece.count;
    } while (status == BW_OK && piece.first < count);
    return status;
}

void bwi_session_clear(bwi_session *s)
{
    bwi_exec_clear(s->exec);
    s->window_count = 0;
}
