/*
 * The heads of a session's graph: for each output of the model the target and weight that the data gives it, the loss, and
 * the metrics. Weights are the samples' times the classes'; losses have them, metrics only where they are asked for. Positions
 * that the output's mask hides have no weight in either, and the mean does not count them.
 */
#include "train/internal.h"

#include <math.h>
#include <string.h>

/* A target or weight for an output. NULL without a message: the data has none. */
static bw_node *add_field(bwi_session *s, const bw_dataset *dataset, bwi_role role, const char *output, bw_dtype dtype)
{
    bwi_input_attributes a = {.dtype = dtype, .role = role};
    snprintf(a.name, sizeof a.name, "%s", s->output_count > 1 ? output : "");
    a.field = bwi_fields_find(dataset, &a);
    if (a.field < 0) {
        return NULL;
    }
    const bwi_field *f = bwi_dataset_field(dataset, a.field);
    a.shape.ndim = f->ndim;
    memcpy(a.shape.extent, f->shape, sizeof a.shape.extent);
    return bwi_graph_add(&s->graph, &bwi_op_input, role == 1 ? "target" : "sample weight", &a, sizeof a, NULL, 0, NULL, 0);
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

static const bwi_chosen_loss *find_loss(const bwi_training *t, const bwi_session *s, int output)
{
    for (int k = 0; k < t->loss_count; k++) {
        if (t->losses[k].output[0] && strcmp(t->losses[k].output, s->outputs[output]->name) == 0) {
            return &t->losses[k];
        }
    }
    if (t->loss_count == 1 && !t->losses[0].output[0]) {
        return &t->losses[0];
    }
    return output < t->loss_count && !t->losses[output].output[0] ? &t->losses[output] : NULL;
}

/* Without a given loss the last layer and the targets choose one, which is logged. */
static const bwi_loss_row *choose_loss(bwi_session *s, const bw_dataset *dataset, int output)
{
    bool classes = bwi_logits_of(s->outputs[output]), binary = bwi_binary_logits_of(s->outputs[output]);
    bwi_input_attributes a = {.role = 1};
    snprintf(a.name, sizeof a.name, "%s", s->output_count > 1 ? s->outputs[output]->name : "");
    int field = bwi_fields_find(dataset, &a);
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
    *column = (bwi_logged){.node = node, .value = bwi_metric_mean, .loss = loss};
    snprintf(column->name, sizeof column->name, "%s", name);
    return BW_OK;
}

/* The head of one output, up to its loss: the target in the type that the loss wants, the weight (of samples, classes and mask), the
 * loss itself, and the mean that is logged. */
static bw_status add_loss(bwi_session *s, const bw_dataset *dataset, const bwi_session_options *options, int output, bwi_head *head)
{
    bw_context *ctx = s->training->ctx;
    const char *name = s->outputs[output]->name;
    static const bwi_argument_value none[BWI_MAX_OPTIONS];
    const bwi_chosen_loss *chosen = find_loss(s->training, s, output);
    const bwi_loss_row *row = chosen ? chosen->row : choose_loss(s, dataset, output);
    s->training->found[output] = chosen ? NULL : row;
    head->target = add_field(s, dataset, 1, name, row->target);
    if (!head->target) {
        bw_status failed = bwi_pending(ctx);
        return failed != BW_OK ? failed : bwi_fail(ctx, BW_INVALID_ARGUMENT, "the data has no targets (y) for %s", name);
    }
    head->weight = add_field(s, dataset, 2, name, BW_F32);
    bw_status status = head->weight ? BW_OK : bwi_pending(ctx);
    if (status == BW_OK && options->class_count) {
        status = add_class_weight(s, options, head);
    }
    bw_node *mask = head->prediction->mask;
    if (status == BW_OK && mask) {
        status = add_mask(s, head);
    }
    if (status != BW_OK) {
        return status;
    }
    head->classes = row->classes;
    bw_node *loss = row->build(row, head, chosen ? chosen->values : none);
    bw_node *mean = bwi_graph_add(&s->graph, &bwi_op_mean, "loss", NULL, 0, (bw_node *[]){loss, mask}, mask ? 2 : 1, NULL, 0);
    char column[BWI_COLUMN_NAME];
    snprintf(column, sizeof column, "%s%sloss", s->output_count > 1 ? name : "", s->output_count > 1 ? "_" : "");
    s->losses[s->loss_count++] = loss;
    return add_column(s, mean, true, column);
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

/* Keras's names: with several outputs the output's comes first. Where a name is taken, a weighted metric is called so; a name that is
 * taken even then is numbered. */
static void name_column(const bwi_session *s, const bwi_head *head, const bwi_chosen_metric *metric, char name[BWI_COLUMN_NAME])
{
    char begin[64] = "";
    if (s->output_count > 1) {
        snprintf(begin, sizeof begin, "%.50s_", head->prediction->name);
    }
    bool renamed = false;
    snprintf(name, BWI_COLUMN_NAME, "%s%s", begin, metric->name);
    if (is_column(s, name) && metric->weighted) {
        renamed = true;
        snprintf(name, BWI_COLUMN_NAME, "%sweighted_%s", begin, metric->name);
    }
    for (int k = 1; is_column(s, name); k++) {
        snprintf(name, BWI_COLUMN_NAME, "%s%s%s_%d", begin, renamed ? "weighted_" : "", metric->name, k);
    }
}

static bw_status add_metric(bwi_session *s, const bwi_head *head, const bwi_chosen_metric *metric)
{
    bwi_head own = *head;
    own.weight = metric->weighted ? head->weight : head->prediction->mask;
    bw_node *node = metric->row ? metric->row->build(&own, metric->values) : bwi_metric_of_loss(metric->loss, &own, metric->values);
    char name[BWI_COLUMN_NAME];
    name_column(s, head, metric, name);
    bw_status status = add_column(s, node, false, name);
    if (status == BW_OK && metric->row) {
        s->columns[s->column_count - 1].value = metric->row->value;
    }
    return status;
}

static bw_status add_metrics(bwi_session *s, const bwi_head *head, bool weighted)
{
    const bwi_training *t = s->training;
    if (t->metric_count < 0 && head->classes && !weighted) {
        return add_metric(s, head, &(bwi_chosen_metric){.row = &bwi_metric_rows[0], .name = "accuracy"});
    }
    bw_status status = BW_OK;
    for (int k = 0; k < t->metric_count && status == BW_OK; k++) {
        const bwi_chosen_metric *metric = &t->metrics[k];
        if (metric->weighted == weighted && (!metric->output[0] || strcmp(metric->output, head->prediction->name) == 0)) {
            status = add_metric(s, head, metric);
        }
    }
    return status;
}

/* ---- All heads ---- */

static bool has_output(const bwi_session *s, const char *name)
{
    for (int k = 0; name[0] && k < s->output_count; k++) {
        if (strcmp(s->outputs[k]->name, name) == 0) {
            return true;
        }
    }
    return !name[0];
}

/* A loss or metric for an output that the model does not have is refused, not left out silently. */
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

/* All losses must count alike, since one number, what the loss counts, divides the window's gradients. */
static bw_status check_counts(const bwi_session *s)
{
    const bw_node *first = NULL;
    for (int c = 0; c < s->column_count; c++) {
        const bw_node *mean = s->columns[c].node;
        const bw_node *mask = s->columns[c].loss && mean->inputs > 1 ? mean->input[1] : NULL;
        if (s->columns[c].loss && c > 0 && mask != first) {
            return bwi_fail(s->training->ctx, BW_UNIMPLEMENTED,
                            "losses of outputs with different masks are not supported together");
        }
        first = c > 0 ? first : mask;
    }
    return BW_OK;
}

bw_status bwi_session_add_heads(bwi_session *s, const bw_dataset *dataset, const bwi_session_options *options)
{
    bwi_head heads[BWI_MAX_HEADS];
    bw_status status = check_outputs(s);
    const bw_model *model = s->training->model;
    /* A model that was given losses by calls needs no others, unless they are asked for. */
    int outputs = model->loss_count && !s->training->loss_count ? 0 : s->output_count;
    for (int k = 0; k < outputs && status == BW_OK; k++) {
        heads[k] = (bwi_head){.graph = &s->graph, .prediction = s->outputs[k]};
        status = add_loss(s, dataset, options, k, &heads[k]);
    }
    for (int k = 0; k < model->loss_count && status == BW_OK; k++) {
        bw_node *loss = s->graph.nodes[model->losses[k]->number];
        bw_node *mean = bwi_graph_add(&s->graph, &bwi_op_mean, "loss", NULL, 0, &loss, 1, NULL, 0);
        s->losses[s->loss_count++] = loss;
        status = add_column(s, mean, true, model->loss_names[k]);
    }
    status = status == BW_OK ? check_counts(s) : status;
    for (int k = 0; k < 2 * outputs && status == BW_OK; k++) {
        status = add_metrics(s, &heads[k % outputs], k >= outputs);
    }
    return status;
}
