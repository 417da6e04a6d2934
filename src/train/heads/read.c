/* Reads losses and metrics from text: names with options, each for an output, as in "mse(...)" or "classes=accuracy". */
#include "train/internal.h"

#include <string.h>

/* Suggests the nearest name, or lists the first one of each row. Losses are listed with the metrics, since they can be metrics,
 * too. */
static bw_status refuse(bw_context *ctx, const char *what, const bwi_term *term, bool metrics)
{
    bwi_known known = bwi_known_begin(ctx, term->text, (size_t)term->length);
    for (const bwi_metric_row *row = bwi_metric_rows; metrics && row->names; row++) {
        bwi_known_add(&known, row->names);
    }
    for (const bwi_loss_row *row = bwi_loss_rows; row->names; row++) {
        bwi_known_add(&known, row->names);
    }
    bw_status status =
        bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: there is no '%.*s'; %s", what, term->length, term->text, bwi_known_hint(&known));
    bwi_text_free(&known.list);
    return status;
}

static void copy_label(char *to, size_t size, const bwi_term *term)
{
    snprintf(to, size, "%.*s", term->label ? term->label_length : 0, term->label ? term->label : "");
}

const char *const bwi_reduction_names[BWI_REDUCTIONS] = {[BWI_LOSS_MEAN] = "sum_over_batch_size",
                                                         [BWI_LOSS_SAME_MEAN] = "mean",
                                                         [BWI_LOSS_SUM] = "sum",
                                                         [BWI_LOSS_WEIGHTED] = "mean_with_sample_weight"};

/* Every loss and every metric has two options besides its specific ones. */
enum { WEIGHT, REDUCTION, WEIGHTED = 0, NAME, COMMON_OPTIONS };

static const bwi_argument loss_arguments[COMMON_OPTIONS] = {[WEIGHT] = {"weight", NULL, BWI_FLOAT, "1", -1e30, 1e30, NULL},
                                                            [REDUCTION] = {"reduction", NULL, BWI_TEXT, "sum_over_batch_size", 0, 0,
                                                                           "sum_over_batch_size mean sum mean_with_sample_weight"}};

static int by_position(const bwi_term *term)
{
    int count = 0;
    while (count < term->count && !term->items[count].label) {
        count++;
    }
    return count;
}

/* The options that all losses have can only be given by name. */
static bw_status read_loss_options(bwi_training *t, bwi_chosen_loss *loss, const bwi_term *term)
{
    int own = loss->row->argument_count;
    bwi_argument arguments[BWI_MAX_OPTIONS + COMMON_OPTIONS];
    bwi_argument_value values[BWI_MAX_OPTIONS + COMMON_OPTIONS];
    for (int k = 0; k < own; k++) {
        arguments[k] = loss->row->arguments[k];
    }
    memcpy(arguments + own, loss_arguments, sizeof loss_arguments);
    int common = by_position(term) > own ? 0 : COMMON_OPTIONS;
    bw_status status = bwi_arguments_read(t->ctx, "loss", term, arguments, own + common, values);
    if (status == BW_OK) {
        memcpy(loss->values, values, (size_t)own * sizeof *values);
        loss->weight = values[own + WEIGHT].number;
        while (strcmp(bwi_reduction_names[loss->reduction], values[own + REDUCTION].text) != 0) {
            loss->reduction++;
        }
    }
    return status;
}

/* "none" leaves an output without a loss and without targets. */
static bw_status read_loss(bwi_training *t, const bwi_term *term)
{
    const bwi_loss_row *row = bwi_loss_row_find(term->text, (size_t)term->length);
    bool none = bwi_term_is(term, "none") && !term->called;
    if (!row && !none) {
        return refuse(t->ctx, "loss", term, false);
    }
    if (t->loss_count == BWI_MAX_HEADS) {
        return bwi_fail(t->ctx, BW_INVALID_ARGUMENT, "loss: at most %d are possible", BWI_MAX_HEADS);
    }
    bwi_chosen_loss *loss = &t->losses[t->loss_count++];
    *loss = (bwi_chosen_loss){.row = row, .weight = 1};
    copy_label(loss->output, sizeof loss->output, term);
    return row ? read_loss_options(t, loss, term) : BW_OK;
}

static const bwi_argument common_arguments[COMMON_OPTIONS] = {
    [WEIGHTED] = {"weighted", NULL, BWI_BOOL, "false", 0, 0, NULL}, [NAME] = {"name", NULL, BWI_TEXT, "", 0, 0, NULL}};

static bw_status read_metric_options(bwi_training *t, bwi_chosen_metric *metric, const bwi_term *term)
{
    int own = metric->row ? metric->row->argument_count : metric->loss->argument_count;
    const bwi_argument *given = metric->row ? metric->row->arguments : metric->loss->arguments;
    bwi_argument arguments[BWI_MAX_OPTIONS + COMMON_OPTIONS];
    bwi_argument_value values[BWI_MAX_OPTIONS + COMMON_OPTIONS];
    for (int k = 0; k < own; k++) {
        arguments[k] = given[k];
    }
    memcpy(arguments + own, common_arguments, sizeof common_arguments);
    bw_status status = bwi_arguments_read(t->ctx, "metrics", term, arguments, own + COMMON_OPTIONS, values);
    if (status != BW_OK) {
        return status;
    }
    memcpy(metric->values, values, (size_t)own * sizeof *values);
    metric->weighted = values[own + WEIGHTED].flag;
    if (values[own + NAME].given) {
        snprintf(metric->name, sizeof metric->name, "%.*s", (int)sizeof metric->name - 1, values[own + NAME].text);
    }
    return BW_OK;
}

static bw_status read_metric(bwi_training *t, const bwi_term *term)
{
    const bwi_metric_row *row = bwi_metric_rows;
    while (row->names && !bwi_listed(row->names, term->text, (size_t)term->length)) {
        row++;
    }
    const bwi_loss_row *loss = row->names ? NULL : bwi_loss_row_find(term->text, (size_t)term->length);
    if (!row->names && !loss) {
        return refuse(t->ctx, "metrics", term, true);
    }
    if (t->metric_count == BWI_MAX_METRICS) {
        return bwi_fail(t->ctx, BW_INVALID_ARGUMENT, "metrics: at most %d are possible", BWI_MAX_METRICS);
    }
    bwi_chosen_metric *metric = &t->metrics[t->metric_count++];
    *metric = (bwi_chosen_metric){.row = row->names ? row : NULL, .loss = loss};
    copy_label(metric->output, sizeof metric->output, term);
    snprintf(metric->name, sizeof metric->name, "%.*s", term->length, term->text);
    return read_metric_options(t, metric, term);
}

/* Reads terms that are separated by commas or blanks. */
static bw_status read_list(bwi_training *t, const char *what, const char *text, bw_status (*take)(bwi_training *, const bwi_term *))
{
    char *list = bwi_copy_text(t->ctx, text);
    if (!list) {
        return BW_RESOURCE_EXHAUSTED;
    }
    int depth = 0;
    for (char *at = list; *at; at++) {
        depth += (*at == '(') - (*at == ')');
        *at = *at == ',' && depth <= 0 ? ' ' : *at;
    }
    bwi_expression e;
    bw_status status = bwi_expression_parse(t->ctx, &e, what, list);
    bwi_release(t->ctx, list);
    for (int i = 0; status == BW_OK && i < e.count; i++) {
        status = take(t, &e.terms[i]);
    }
    bwi_expression_free(&e);
    return status;
}

bw_status bwi_losses_read(bwi_training *t, const char *text)
{
    return read_list(t, "loss", text, read_loss);
}

bw_status bwi_metrics_read(bwi_training *t, const char *text)
{
    return read_list(t, "metrics", text, read_metric);
}
