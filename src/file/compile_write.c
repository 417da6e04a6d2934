/*
 * Writes optimizer, losses and metrics as Keras's compile_config. A metric that has no name or class in Keras is left out with a
 * warning, because a model that took hours to train must be saved in any case.
 */
#include "file/internal.h"

#include <math.h>
#include <string.h>

static void begin_object(bwi_json_writer *w, const char *key, const char *module, const char *class_name)
{
    bwi_json_begin(w, key, '{');
    bwi_json_put_text(w, "module", module);
    bwi_json_put_text(w, "class_name", class_name);
    bwi_json_begin(w, "config", '{');
}

static void end_object(bwi_json_writer *w)
{
    bwi_json_end(w);
    bwi_json_put_null(w, "registered_name");
    bwi_json_end(w);
}

/* ---- Optimizers ---- */

static void put_number(bwi_json_writer *w, const char *key, double value)
{
    if (floor(value) == value && fabs(value) < 1e15) {
        bwi_json_put_whole(w, key, (int64_t)value);
    } else {
        bwi_json_put_real(w, key, value);
    }
}

static void put_numbers(bwi_json_writer *w, const char *key, const double *values, int count, bool whole)
{
    bwi_json_begin(w, key, '[');
    for (int i = 0; i < count; i++) {
        if (whole) {
            put_number(w, NULL, values[i]);
        } else {
            bwi_json_put_real(w, NULL, values[i]);
        }
    }
    bwi_json_end(w);
}

static void put_schedule(bw_context *ctx, bwi_json_writer *w, const char *key, const bwi_schedule *s)
{
    begin_object(w, key, "keras.optimizers.schedules", s->row->class_name);
    if (s->boundary_count) {
        put_numbers(w, "boundaries", s->boundaries, s->boundary_count, true);
        put_numbers(w, "values", s->rates, s->boundary_count + 1, false);
    }
    for (int i = 0; !s->boundary_count && i < s->row->argument_count; i++) {
        const bwi_argument *a = &s->row->arguments[i];
        if (strstr(a->name, "steps")) {
            put_number(w, a->name, s->values[i].number);
        } else {
            bwi_keras_put_argument(ctx, w, s->row->class_name, a, &s->values[i]);
        }
    }
    end_object(w);
}

static void put_optimizer(bw_context *ctx, bwi_json_writer *w, const bwi_optimizer *o)
{
    const bwi_optimizer_row *row = o->row;
    begin_object(w, "optimizer", "keras.optimizers", row->class_name);
    bwi_json_put_text(w, "name", row->name);
    if (o->schedule.row) {
        put_schedule(ctx, w, "learning_rate", &o->schedule);
    } else {
        bwi_json_put_real(w, "learning_rate", (double)o->learning_rate);
    }
    for (int i = 1; i < row->argument_count; i++) {
        bwi_keras_put_argument(ctx, w, row->class_name, &row->arguments[i], &o->values[i]);
    }
    end_object(w);
}

/* ---- Losses and metrics ---- */

/* The last of a row's names is Keras's class. */
static void class_of(const char *names, char class_name[64])
{
    const char *last = strrchr(names, ' ');
    snprintf(class_name, 64, "%s", last ? last + 1 : names);
}

static bool all_standard(bw_context *ctx, const bwi_argument *arguments, int count, const bwi_argument_value *values)
{
    for (int i = 0; i < count; i++) {
        if (!bwi_argument_is_standard(ctx, &arguments[i], &values[i])) {
            return false;
        }
    }
    return true;
}

static void put_options(bw_context *ctx, bwi_json_writer *w, const char *class_name, const bwi_argument *arguments, int count,
                        const bwi_argument_value *values)
{
    for (int i = 0; i < count; i++) {
        bwi_keras_put_argument(ctx, w, class_name, &arguments[i], &values[i]);
    }
}

static void put_loss(bw_context *ctx, bwi_json_writer *w, const char *key, const bwi_loss_row *row, const bwi_chosen_loss *chosen)
{
    bool mean = !chosen || chosen->reduction == BWI_LOSS_MEAN;
    char name[64], class_name[64];
    snprintf(name, sizeof name, "%.*s", (int)strcspn(row->names, " "), row->names);
    if (!chosen || (mean && all_standard(ctx, row->arguments, row->argument_count, chosen->values))) {
        bwi_json_put_text(w, key, name);
        return;
    }
    class_of(row->names, class_name);
    begin_object(w, key, "keras.losses", class_name);
    bwi_json_put_text(w, "name", name);
    bwi_json_put_text(w, "reduction", bwi_reduction_names[chosen->reduction]);
    put_options(ctx, w, class_name, row->arguments, row->argument_count, chosen->values);
    end_object(w);
}

static void put_losses(bwi_json_writer *w, const bwi_training *t, const bw_model *model)
{
    bool several = model->output_count > 1;
    if (several) {
        bwi_json_begin(w, "loss", '[');
    }
    for (int k = 0; k < model->output_count; k++) {
        const bwi_chosen_loss *chosen = bwi_loss_of(model, k);
        const bwi_loss_row *row = chosen ? chosen->row : t->found[k];
        const char *key = several ? NULL : "loss";
        if (row) {
            put_loss(t->ctx, w, key, row, chosen);
        } else {
            bwi_json_put_null(w, key);
        }
    }
    if (several) {
        bwi_json_end(w);
    }
}

/* Keras expects as many weights as losses: a number for one output, otherwise a list. */
static void put_loss_weights(bwi_json_writer *w, const bw_model *model)
{
    bool any = false, several = model->output_count > 1;
    for (int k = 0; k < model->output_count; k++) {
        const bwi_chosen_loss *chosen = bwi_loss_of(model, k);
        any = any || (chosen && chosen->weight != 1);
    }
    if (!any) {
        bwi_json_put_null(w, "loss_weights");
        return;
    }
    if (several) {
        bwi_json_begin(w, "loss_weights", '[');
    }
    for (int k = 0; k < model->output_count; k++) {
        const bwi_chosen_loss *chosen = bwi_loss_of(model, k);
        if (chosen && !chosen->row) { /* Keras requires both lists to match */
            bwi_json_put_null(w, NULL);
            continue;
        }
        bwi_json_put_real(w, several ? NULL : "loss_weights", chosen ? chosen->weight : 1);
    }
    if (several) {
        bwi_json_end(w);
    }
}

/* Classes of losses that are no metrics of Keras's, and of a metric that is a different one. */
static const char no_metrics[] = "Huber Accuracy BinaryFocalCrossentropy CategoricalFocalCrossentropy "
                                 "CategoricalGeneralizedCrossEntropy Dice Tversky CTC";

/* Finds Keras's class of a metric; "" if there is none. */
static void metric_class(const char *names, char class_name[64])
{
    class_of(names, class_name);
    if (strcmp(class_name, "LogCosh") == 0) {
        snprintf(class_name, 64, "LogCoshError"); /* the same metric under a different name */
    } else if (bwi_listed(no_metrics, class_name, strlen(class_name))) {
        class_name[0] = 0; /* a loss that is no metric, or is a different one */
    }
}

/* Whether Keras accepts the word as a metric. */
static bool is_metric_word(const char *names, const char *word)
{
    static const char not_there[] = "huber Huber log_cosh LogCosh logcosh kld KLD kullback_leibler_divergence Accuracy "
                                    "iou binary_iou mean_iou one_hot_iou one_hot_mean_iou binary_focal_crossentropy "
                                    "categorical_focal_crossentropy categorical_generalized_cross_entropy dice tversky ctc";
    return bwi_listed(names, word, strlen(word)) && !bwi_listed(not_there, word, strlen(word));
}

static void put_metric(bwi_json_writer *w, const bwi_training *t, const bwi_chosen_metric *metric)
{
    const char *names = metric->row ? metric->row->names : metric->loss->names;
    const bwi_argument *arguments = metric->row ? metric->row->arguments : metric->loss->arguments;
    int count = metric->row ? metric->row->argument_count : metric->loss->argument_count;
    char class_name[64];
    metric_class(names, class_name);
    if (is_metric_word(names, metric->name) && all_standard(t->ctx, arguments, count, metric->values)) {
        bwi_json_put_text(w, NULL, metric->name);
    } else if (class_name[0]) {
        begin_object(w, NULL, "keras.metrics", class_name);
        bwi_json_put_text(w, "name", metric->name);
        put_options(t->ctx, w, class_name, arguments, count, metric->values);
        end_object(w);
    } else if (metric->row == &bwi_metric_rows[0]) {
        bwi_json_put_text(w, NULL, "accuracy"); /* Keras knows it by this name only */
    } else {
        bwi_log(t->ctx, BW_LOG_WARNING, "metric %s: Keras has no such metric: it is not in the file", metric->name);
    }
}

static bool is_for(const bwi_chosen_metric *metric, const bw_model *model, int output, bool weighted)
{
    return metric->weighted == weighted && (!metric->output[0] || strcmp(metric->output, bwi_output_name(model, output)) == 0);
}

/* Keras has one list of metrics for each output, and null where there are none. With a single output there is no outer list. */
static void put_metrics(bwi_json_writer *w, const bwi_training *t, const bw_model *model, const char *key, bool weighted)
{
    bool any = false;
    for (int m = 0; m < t->metric_count; m++) {
        any = any || t->metrics[m].weighted == weighted;
    }
    const bwi_chosen_loss *loss = model->output_count ? bwi_loss_of(model, 0) : NULL;
    const bwi_loss_row *row = loss ? loss->row : t->found[0];
    if (t->metric_count < 0 && !weighted && row && row->classes && model->output_count == 1) {
        bwi_json_begin(w, key, '[');
        bwi_json_put_text(w, NULL, "accuracy"); /* training reports it by default */
        bwi_json_end(w);
        return;
    }
    if (!any) {
        bwi_json_put_null(w, key);
        return;
    }
    bwi_json_begin(w, key, '[');
    for (int k = 0; k < model->output_count; k++) {
        if (model->output_count > 1) {
            bwi_json_begin(w, NULL, '[');
        }
        for (int m = 0; m < t->metric_count; m++) {
            if (is_for(&t->metrics[m], model, k, weighted)) {
                put_metric(w, t, &t->metrics[m]);
            }
        }
        if (model->output_count > 1) {
            bwi_json_end(w);
        }
    }
    bwi_json_end(w);
}

void bwi_keras_put_compile(bw_model *model, bwi_json_writer *w)
{
    const bwi_training *t = model->training;
    if (!t || t->unread || (!t->compiled && t->optimizer.iterations == 0)) {
        return;
    }
    bwi_json_begin(w, "compile_config", '{');
    put_optimizer(t->ctx, w, &t->optimizer);
    put_losses(w, t, model);
    put_loss_weights(w, model);
    put_metrics(w, t, model, "metrics", false);
    put_metrics(w, t, model, "weighted_metrics", true);
    bwi_json_end(w);
}
