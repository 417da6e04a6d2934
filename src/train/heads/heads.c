/*
 * Adds the heads to a session's graph: for each output of the model, the target and weight that the data has for it, the loss, and
 * the metrics. Weights are the samples' times the classes'. Losses are always weighted, metrics only on request. Positions that the
 * output's mask hides have no weight in either, and means do not count them.
 */
#include "train/internal.h"

#include <math.h>
#include <string.h>

static const char *name_of(const bwi_session *s, int output)
{
    return bwi_output_name(s->training->model, output);
}

/* Finds the data's field for an output, by the output's name or, as with Keras's dictionaries, by the name of its layer, which
 * several outputs may share. */
static int find_field(const bwi_session *s, const bw_dataset *dataset, int output, bwi_input_attributes *a)
{
    snprintf(a->name, sizeof a->name, "%s", s->output_count > 1 ? name_of(s, output) : "");
    int field = bwi_fields_find(dataset, a);
    if (field < 0 && s->output_count > 1) {
        snprintf(a->name, sizeof a->name, "%s", s->training->model->outputs[output]->name);
        field = bwi_fields_find(dataset, a);
    }
    return field;
}

/* Adds the target or weight of an output. NULL without a message means that the data has none. */
static bw_node *add_field(bwi_session *s, const bw_dataset *dataset, bwi_role role, int output, bw_dtype dtype)
{
    bwi_input_attributes a = {.dtype = dtype, .role = role};
    a.field = find_field(s, dataset, output, &a);
    if (a.field < 0) {
        return NULL;
    }
    const bwi_field *f = bwi_dataset_field(dataset, a.field);
    a.shape.ndim = f->ndim;
    memcpy(a.shape.extent, f->shape, sizeof a.shape.extent);
    return bwi_graph_add(&s->graph, &bwi_op_input, role == BWI_ROLE_TARGET ? "target" : "sample weight", &a, sizeof a, NULL, 0,
                         NULL, 0);
}

/* ---- Weights ---- */

static bw_status check_class_weight(const bwi_session *s, const bwi_session_options *o)
{
    bw_context *ctx = s->training->ctx;
    if (o->class_count < 0 || (o->class_count > 0 && !o->class_weight)) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "class_weight: expected weights and their count, got %s and a count of %d",
                        o->class_weight ? "weights" : "no weights", o->class_count);
    }
    if (s->output_count > 1) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "class_weight: expected a model with one output, this has %d", s->output_count);
    }
    for (int c = 0; c < o->class_count; c++) {
        if (!isfinite(o->class_weight[c]) || o->class_weight[c] < 0) {
            return bwi_fail(ctx, BW_INVALID_ARGUMENT, "class_weight: expected numbers of at least 0, got %g for class %d",
                            (double)o->class_weight[c], c);
        }
    }
    return BW_OK;
}

static bw_status add_class_weight(bwi_session *s, const bwi_session_options *o, bwi_head *head)
{
    bw_context *ctx = s->training->ctx;
    bw_status status = check_class_weight(s, o);
    if (status != BW_OK) {
        return status;
    }
    size_t bytes = sizeof(bwi_class_weight_attributes) + (size_t)o->class_count * sizeof(float);
    bwi_class_weight_attributes *a = bwi_allocate(ctx, 1, bytes);
    if (!a) {
        return BW_RESOURCE_EXHAUSTED;
    }
    a->count = o->class_count;
    memcpy(a->weight, o->class_weight, (size_t)o->class_count * sizeof(float));
    bw_node *inputs[2] = {head->target, head->weight};
    head->weight = bwi_graph_add(&s->graph, &bwi_op_class_weight, "class weight", a, bytes, inputs, head->weight ? 2 : 1, NULL, 0);
    bwi_release(ctx, a);
    return head->weight ? BW_OK : bwi_pending(ctx);
}

static bw_status add_mask(bwi_session *s, bwi_head *head)
{
    bw_node *inputs[2] = {head->prediction->mask, head->weight};
    head->weight = bwi_graph_add(&s->graph, &bwi_op_mask_weights, "mask", NULL, 0, inputs, head->weight ? 2 : 1, NULL, 0);
    return head->weight ? BW_OK : bwi_pending(s->training->ctx);
}

/* ---- Losses ---- */

/* If no loss is given, the last layer and the targets decide on one, which is logged. */
static const bwi_loss_row *choose_loss(bwi_session *s, const bw_dataset *dataset, int output)
{
    bool classes = bwi_logits_of(s->outputs[output]), binary = bwi_binary_logits_of(s->outputs[output]);
    bwi_input_attributes a = {.role = BWI_ROLE_TARGET};
    int field = find_field(s, dataset, output, &a);
    int64_t count = field >= 0 ? bwi_field_values(bwi_dataset_field(dataset, field)) : 1;
    bool one_hot = classes && count > 1 && count == bwi_shape_count(&s->outputs[output]->shape);
    const char *name = one_hot   ? "categorical_crossentropy"
                       : classes ? "sparse_categorical_crossentropy"
                       : binary  ? "binary_crossentropy"
                                 : "mean_squared_error";
    if (!s->variants) { /* logged once, not again for each length */
        bwi_log(s->training->ctx, BW_LOG_INFO, "loss: %s, as the last layer is %s", name,
                classes  ? "a softmax"
                : binary ? "a sigmoid"
                         : "neither softmax nor sigmoid");
    }
    return bwi_loss_row_find(name, strlen(name));
}

static bw_status add_column(bwi_session *s, bw_node *node, bool loss, const char *name)
{
    if (!node) {
        return bwi_pending(s->training->ctx);
    }
    if (s->column_count == BWI_MAX_COLUMNS) {
        return bwi_fail(s->training->ctx, BW_INVALID_ARGUMENT, "metrics: at most %d losses and metrics of all outputs are possible",
                        BWI_MAX_COLUMNS);
    }
    bwi_logged *column = &s->columns[s->column_count++];
    *column = (bwi_logged){.node = node, .value = bwi_metric_mean, .loss = loss, .weight = 1};
    snprintf(column->name, sizeof column->name, "%s", name);
    return BW_OK;
}

/* What the sum of a loss is divided by: nothing, the number of samples, or the sum of weights or of a mask. */
typedef struct division {
    bool summed;
    bw_node *over; /* NULL: the number of samples */
} division;

static bw_node *add_scale(bwi_session *s, bw_node *loss, double factor)
{
    bwi_scale_attributes a = {.scale = (float)factor};
    return !loss || factor == 1 ? loss : bwi_graph_add(&s->graph, &bwi_op_scale, "loss", &a, sizeof a, &loss, 1, NULL, 0);
}

/* Adds the target in the type that the loss needs, and the weight, which combines samples, classes and mask. */
static bw_status add_target(bwi_session *s, const bw_dataset *dataset, const bwi_session_options *options, int output,
                            bw_dtype target, bwi_head *head)
{
    bw_context *ctx = s->training->ctx;
    head->target = add_field(s, dataset, BWI_ROLE_TARGET, output, target);
    bw_status status = head->target ? BW_OK : bwi_pending(ctx);
    if (!head->target) {
        return status;
    }
    head->weight = add_field(s, dataset, BWI_ROLE_WEIGHT, output, BW_F32);
    status = head->weight ? BW_OK : bwi_pending(ctx);
    if (status == BW_OK && options->class_count) {
        status = add_class_weight(s, options, head);
    }
    return status == BW_OK && head->prediction->mask ? add_mask(s, head) : status;
}

/* Adds the head of one output up to its loss: target and weight, the loss itself, and its mean for the history, which Keras takes
 * before it applies loss_weights. */
static bw_status add_loss(bwi_session *s, const bw_dataset *dataset, const bwi_session_options *options, int output, bwi_head *head,
                          division *divided)
{
    bw_context *ctx = s->training->ctx;
    const char *name = name_of(s, output);
    static const bwi_chosen_loss standard = {.weight = 1};
    const bwi_chosen_loss *given = bwi_loss_of(s->training->model, output), *chosen = given ? given : &standard;
    if (given && !given->row) {
        s->training->found[output] = NULL;
        return add_target(s, dataset, options, output, BW_F32, head); /* for metrics, if the data has targets */
    }
    const bwi_loss_row *row = given ? given->row : choose_loss(s, dataset, output);
    s->training->found[output] = given ? NULL : row;
    bw_status status = add_target(s, dataset, options, output, row->target, head);
    if (status == BW_OK && !head->target) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "the data has no targets (y%s%s) for %s", s->output_count > 1 ? "_" : "",
                        s->output_count > 1 ? name : "", name);
    }
    if (status != BW_OK) {
        return status;
    }
    bwi_shape target = head->target->shape;
    status = bwi_class_targets_check(s, dataset, head->prediction, bwi_shape_count(&target), row);
    if (status != BW_OK) {
        return status;
    }
    head->classes = row->classes;
    bwi_head own = *head;
    bw_node *mask = head->prediction->mask;
    if (!bwi_head_ignore(row, chosen->values, &own, &mask)) {
        return bwi_pending(ctx);
    }
    bw_node *loss = row->build(row, &own, chosen->values);
    if (!loss) {
        return bwi_pending(ctx);
    }
    bool summed = chosen->reduction == BWI_LOSS_SUM;
    bw_node *over = summed ? NULL : chosen->reduction == BWI_LOSS_WEIGHTED ? own.weight : mask;
    *divided = (division){.summed = summed, .over = over};
    bw_node *mean = bwi_graph_add(&s->graph, &bwi_op_mean, "loss", NULL, 0, (bw_node *[]){loss, over}, over ? 2 : 1, NULL, 0);
    const bwi_shape *shape = &head->prediction->shape;
    double rows = summed && shape->ndim > 1 ? (double)(bwi_shape_count(shape) / shape->extent[shape->ndim - 1]) : 1;
    s->losses[s->loss_count++] = add_scale(s, loss, rows * chosen->weight);
    s->by_batches = s->by_batches || summed || over;
    char column[BWI_COLUMN_NAME];
    snprintf(column, sizeof column, "%s%sloss", s->output_count > 1 ? name : "", s->output_count > 1 ? "_" : "");
    status = s->losses[s->loss_count - 1] ? add_column(s, mean, true, column) : bwi_pending(ctx);
    if (status == BW_OK) {
        s->columns[s->column_count - 1].weight = chosen->weight;
        s->columns[s->column_count - 1].summed = summed ? rows : 0;
    }
    return status;
}

/* ---- Metrics ---- */

static bool is_column(const bwi_session *s, const char *name)
{
    for (int c = 0; c < s->column_count; c++) {
        if (!s->columns[c].loss && strcmp(s->columns[c].name, name) == 0) {
            return true;
        }
    }
    return false;
}

/* Names a column as Keras does: with several outputs, the output's name comes first. If a weighted metric's name is taken, it gets
 * the prefix "weighted_"; a name that is still taken gets a number. */
static void name_column(const bwi_session *s, int output, const bwi_chosen_metric *metric, char name[BWI_COLUMN_NAME])
{
    char begin[72] = "";
    if (s->output_count > 1) {
        snprintf(begin, sizeof begin, "%s_", name_of(s, output));
    }
    bool renamed = false;
    snprintf(name, BWI_COLUMN_NAME, "%s%s", begin, metric->name);
    if (is_column(s, name) && metric->weighted) {
        renamed = true;
        snprintf(name, BWI_COLUMN_NAME, "%sweighted_%s", begin, metric->name);
    }
    for (int k = 1; is_column(s, name); k++) {
        snprintf(name, BWI_COLUMN_NAME, "%s%s%.32s_%d", begin, renamed ? "weighted_" : "", metric->name, k);
    }
}

static bw_status add_metric(bwi_session *s, const bwi_head *head, int output, const bwi_chosen_metric *metric)
{
    bwi_head own = *head;
    own.weight = metric->weighted ? head->weight : head->prediction->mask;
    bw_node *node = metric->row ? metric->row->build(&own, metric->values) : bwi_metric_of_loss(metric->loss, &own, metric->values);
    char name[BWI_COLUMN_NAME];
    name_column(s, output, metric, name);
    int width = node && metric->row && metric->row->width ? metric->row->width(node) : 1;
    bw_status status = BW_OK;
    for (int i = 0; i < width && status == BW_OK; i++) {
        char one[BWI_COLUMN_NAME];
        snprintf(one, sizeof one, width > 1 ? "%.112s.%d" : "%s", name, i);
        status = add_column(s, node, false, one);
        if (status == BW_OK && metric->row) {
            s->columns[s->column_count - 1].value = metric->row->value;
            s->columns[s->column_count - 1].index = i;
        }
    }
    return status;
}

static bw_status add_metrics(bwi_session *s, const bwi_head *head, int output, bool weighted)
{
    const bwi_training *t = s->training;
    if (t->metric_count < 0 && head->classes && !weighted) {
        return add_metric(s, head, output, &(bwi_chosen_metric){.row = &bwi_metric_rows[0], .name = "accuracy"});
    }
    bw_status status = BW_OK;
    for (int k = 0; k < t->metric_count && status == BW_OK; k++) {
        const bwi_chosen_metric *metric = &t->metrics[k];
        if (metric->weighted == weighted && (!metric->output[0] || strcmp(metric->output, name_of(s, output)) == 0)) {
            status = add_metric(s, head, output, metric);
        }
    }
    return status;
}

/* ---- All heads ---- */

static bool has_output(const bwi_session *s, const char *name)
{
    for (int k = 0; name[0] && k < s->output_count; k++) {
        if (strcmp(name_of(s, k), name) == 0) {
            return true;
        }
    }
    return !name[0];
}

/* A loss or metric for an output that the model does not have is refused, since it would otherwise be ignored silently. */
static bw_status check_outputs(const bwi_session *s)
{
    const bwi_training *t = s->training;
    int unnamed = 0;
    for (int k = 0; k < t->loss_count; k++) {
        unnamed += !t->losses[k].output[0];
        if (!has_output(s, t->losses[k].output)) {
            return bwi_fail(t->ctx, BW_INVALID_ARGUMENT, "loss: the model has no output '%s'", t->losses[k].output);
        }
    }
    if (unnamed > 1 && unnamed != s->output_count) {
        return bwi_fail(t->ctx, BW_INVALID_ARGUMENT, "loss: expected one for each of the model's %d outputs, got %d",
                        s->output_count, unnamed);
    }
    for (int k = 0; k < t->metric_count; k++) {
        if (!has_output(s, t->metrics[k].output)) {
            return bwi_fail(t->ctx, BW_INVALID_ARGUMENT, "metrics: the model has no output '%s'", t->metrics[k].output);
        }
    }
    return BW_OK;
}

/* All gradients of the window are divided by one number. If the losses have different divisors, it is the number of samples, and
 * every loss with another divisor is balanced against it. */
static bw_status balance(bwi_session *s, const division *divided, int count)
{
    bool alike = true;
    for (int k = 1; k < count; k++) {
        alike = alike && divided[k].summed == divided[0].summed && divided[k].over == divided[0].over;
    }
    s->summed = alike && count && divided[0].summed;
    s->balanced = !alike;
    for (int k = 0; k < count && !alike; k++) {
        if (divided[k].summed || divided[k].over) {
            bw_node *inputs[2] = {s->losses[k], divided[k].over};
            s->losses[k] = bwi_graph_add(&s->graph, &bwi_op_balance, "loss", NULL, 0, inputs, divided[k].over ? 2 : 1, NULL, 0);
        }
        if (!s->losses[k]) {
            return bwi_pending(s->training->ctx);
        }
    }
    return BW_OK;
}

/* One number per sample: l1 sum |x| + l2 sum x^2. */
static bw_node *penalty_of(bwi_graph *graph, bw_node *x)
{
    static const bwi_unary_kind kinds[2] = {BWI_ABS, BWI_SQUARE};
    bw_node *parts[2];
    int count = 0;
    for (int i = 0; i < 2; i++) {
        bwi_unary_attributes unary = {.kind = kinds[i]};
        bwi_reduce_attributes all = {.kind = BWI_REDUCE_SUM, .axis = -1};
        bwi_scale_attributes scale = {.scale = x->activity[i], .offset = -0.0F};
        if (x->activity[i] > 0) {
            bw_node *node = bwi_graph_add(graph, &bwi_op_unary, "activity", &unary, sizeof unary, &x, 1, NULL, 0);
            node = node ? bwi_graph_add(graph, &bwi_op_reduce, "activity", &all, sizeof all, &node, 1, NULL, 0) : NULL;
            parts[count++] = node ? bwi_graph_add(graph, &bwi_op_scale, "activity", &scale, sizeof scale, &node, 1, NULL, 0) : NULL;
        }
    }
    bwi_add_attributes sum = {.scale = 1};
    return count < 2 ? parts[0] : bwi_graph_add(graph, &bwi_op_add, "activity", &sum, sizeof sum, parts, 2, NULL, 0);
}

/* The penalties on the values of layers become one more loss, which is a mean over the samples and has no column. */
static bw_status add_activity(bwi_session *s)
{
    bw_node *loss = NULL;
    int nodes = s->graph.count;
    for (int n = 0; n < nodes; n++) {
        bw_node *node = s->graph.nodes[n];
        if (node->activity[0] <= 0 && node->activity[1] <= 0) {
            continue;
        }
        if (s->variants) {
            return bwi_fail(s->graph.ctx, BW_UNIMPLEMENTED, "layer %s: activity_regularizer is not supported for bw_bucket",
                            node->name);
        }
        bwi_add_attributes sum = {.scale = 1};
        bw_node *both[2] = {loss, penalty_of(&s->graph, node)};
        loss = loss && both[1] ? bwi_graph_add(&s->graph, &bwi_op_add, "activity", &sum, sizeof sum, both, 2, NULL, 0) : both[1];
        if (!loss) {
            return bwi_pending(s->graph.ctx);
        }
    }
    if (!loss) {
        return BW_OK;
    }
    s->losses[s->loss_count++] = loss;
    bw_node *mean = bwi_graph_add(&s->graph, &bwi_op_mean, "loss", NULL, 0, &loss, 1, NULL, 0);
    bw_status status = add_column(s, mean, true, "activity");
    if (status == BW_OK) {
        s->columns[s->column_count - 1].hidden = true;
    }
    return status;
}

bw_status bwi_session_add_heads(bwi_session *s, const bw_dataset *dataset, const bwi_session_options *options)
{
    bwi_head heads[BWI_MAX_HEADS];
    division divided[2 * BWI_MAX_HEADS] = {{0}};
    bw_status status = check_outputs(s);
    const bw_model *model = s->training->model;
    /* A model whose losses were added by calls needs no others, unless they are requested. */
    int outputs = model->loss_count && !s->training->loss_count ? 0 : s->output_count;
    for (int k = 0; k < outputs && status == BW_OK; k++) {
        heads[k] = (bwi_head){.graph = &s->graph, .prediction = s->outputs[k]};
        status = add_loss(s, dataset, options, k, &heads[k], &divided[s->loss_count]);
    }
    if (status == BW_OK && outputs && s->loss_count == 0) {
        status = bwi_fail(s->training->ctx, BW_INVALID_ARGUMENT, "loss: none of the model's outputs has one");
    }
    for (int k = 0; k < model->loss_count && status == BW_OK; k++) {
        bw_node *loss = s->graph.nodes[model->losses[k]->number];
        bw_node *mean = bwi_graph_add(&s->graph, &bwi_op_mean, "loss", NULL, 0, &loss, 1, NULL, 0);
        s->losses[s->loss_count++] = loss;
        status = add_column(s, mean, true, model->loss_names[k]);
    }
    status = status == BW_OK ? add_activity(s) : status;
    status = status == BW_OK ? balance(s, divided, s->loss_count) : status;
    for (int k = 0; k < 2 * outputs && status == BW_OK; k++) {
        status = heads[k % outputs].target ? add_metrics(s, &heads[k % outputs], k % outputs, k >= outputs) : BW_OK;
    }
    return status;
}
