/*
 * Keras's EarlyStopping and ReduceLROnPlateau, with their arguments as text. Both watch a column of the history. Lower is better
 * for losses and errors, higher for the columns that Keras knows to be so (accuracy, AUC, ...), unless `mode` says otherwise.
 */
#include "train/internal.h"

#include <math.h>
#include <string.h>

enum { MONITOR, MIN_DELTA, PATIENCE, MODE, BASELINE, RESTORE, START, STOP_COUNT };

static const bwi_argument stop_arguments[STOP_COUNT] = {
    [MONITOR] = {"monitor", NULL, BWI_TEXT, "val_loss", 0, 0, NULL},
    [MIN_DELTA] = {"min_delta", NULL, BWI_FLOAT, "0", 0, 1e30, NULL},
    [PATIENCE] = {"patience", NULL, BWI_INT, "0", 0, 1e9, NULL},
    [MODE] = {"mode", NULL, BWI_TEXT, "auto", 0, 0, "auto min max"},
    [BASELINE] = {"baseline", NULL, BWI_FLOAT, "", 0, 0, NULL},
    [RESTORE] = {"restore_best_weights", "restore_best", BWI_BOOL, "false", 0, 0, NULL},
    [START] = {"start_from_epoch", NULL, BWI_INT, "0", 0, 1e9, NULL},
};

enum { RATE_MONITOR, RATE_FACTOR, RATE_PATIENCE, RATE_MODE, RATE_MIN_DELTA, RATE_COOLDOWN, RATE_LEAST, RATE_COUNT };

static const bwi_argument rate_arguments[RATE_COUNT] = {
    [RATE_MONITOR] = {"monitor", NULL, BWI_TEXT, "val_loss", 0, 0, NULL},
    [RATE_FACTOR] = {"factor", NULL, BWI_FLOAT, "0.1", 0, 0.999999, NULL},
    [RATE_PATIENCE] = {"patience", NULL, BWI_INT, "10", 0, 1e9, NULL},
    [RATE_MODE] = {"mode", NULL, BWI_TEXT, "auto", 0, 0, "auto min max"},
    [RATE_MIN_DELTA] = {"min_delta", NULL, BWI_FLOAT, "1e-4", 0, 1e30, NULL},
    [RATE_COOLDOWN] = {"cooldown", NULL, BWI_INT, "0", 0, 1e9, NULL},
    [RATE_LEAST] = {"min_lr", NULL, BWI_FLOAT, "0", 0, 1e9, NULL},
};

static bw_status read_arguments(bw_context *ctx, const char *name, const char *text, const bwi_argument *arguments, int count,
                                bwi_argument_value *values)
{
    bwi_expression e;
    bw_status status = bwi_arguments_parse(ctx, &e, name, text);
    if (status == BW_OK) {
        status = bwi_arguments_read(ctx, name, &e.terms[0], arguments, count, values);
        bwi_expression_free(&e);
    }
    return status;
}

static bool higher_is_better(const char *mode, const char *monitor)
{
    static const char *const high[] = {"acc",         "auc",         "precision", "recall", "r2_score",    "cosine_similarity",
                                       "f1_score",    "fbeta_score", "iou",       "io_u",   "sensitivity", "specificity",
                                       "correlation", "true_"};
    if (strcmp(mode, "auto") != 0) {
        return strcmp(mode, "max") == 0;
    }
    bool found = false;
    for (size_t i = 0; i < BWI_COUNT(high); i++) {
        found = found || strstr(monitor, high[i]);
    }
    return found && !strstr(monitor, "loss");
}

static bw_status check_monitor(bw_context *ctx, const char *name, const char *monitor, const bw_history *history)
{
    bwi_text known = {.ctx = ctx};
    for (int c = 0; c < bw_history_columns(history); c++) {
        if (strcmp(bw_history_column(history, c), monitor) == 0) {
            bwi_text_free(&known);
            return BW_OK;
        }
        bwi_text_add(&known, "%s%s", c ? ", " : "", bw_history_column(history, c));
    }
    bw_status status = bwi_fail_at(ctx, BW_INVALID_ARGUMENT, bwi_in_argument(name), "%s: there is no '%s' to monitor; there are %s",
                                   name, monitor, known.bytes ? known.bytes : "none");
    bwi_text_free(&known);
    return status;
}

bool bwi_watch_restores(bw_context *ctx, const bw_fit_options *options)
{
    bwi_argument_value stop[STOP_COUNT];
    return options->early_stopping &&
           read_arguments(ctx, "early_stopping", options->early_stopping, stop_arguments, STOP_COUNT, stop) == BW_OK &&
           stop[RESTORE].flag;
}

static bw_status open_stop(bwi_watch *w, const char *text, const bw_history *history)
{
    bw_context *ctx = w->model->ctx;
    w->stops = true;
    bw_status status = read_arguments(ctx, "early_stopping", text, stop_arguments, STOP_COUNT, w->stop);
    return status == BW_OK ? check_monitor(ctx, "early_stopping", w->stop[MONITOR].text, history) : status;
}

static bw_status open_rate(bwi_watch *w, const char *text, const bw_history *history)
{
    bw_context *ctx = w->model->ctx;
    w->reduces = true;
    bw_status status = read_arguments(ctx, "reduce_lr_on_plateau", text, rate_arguments, RATE_COUNT, w->rate);
    return status == BW_OK ? check_monitor(ctx, "reduce_lr_on_plateau", w->rate[RATE_MONITOR].text, history) : status;
}

static size_t variable_bytes(const bwi_variable *variable)
{
    return (size_t)variable->count * sizeof(float);
}

static bw_status open_weights(bwi_watch *w)
{
    const bwi_graph *graph = &w->model->graph;
    for (int v = 0; v < graph->variable_count; v++) {
        w->weights_bytes += variable_bytes(graph->variables[v]);
    }
    w->weights = bwi_kernels_of(graph->ctx)->memory->allocate(graph->ctx, w->weights_bytes);
    return w->weights ? BW_OK : BW_RESOURCE_EXHAUSTED;
}

bw_status bwi_watch_open(bwi_watch *w, bw_model *model, const bw_fit_options *options, const bw_history *history)
{
    *w = (bwi_watch){.model = model, .best = (double)NAN, .rate_best = (double)NAN};
    bw_status status = options->early_stopping ? open_stop(w, options->early_stopping, history) : BW_OK;
    if (status == BW_OK && options->reduce_lr_on_plateau) {
        status = open_rate(w, options->reduce_lr_on_plateau, history);
    }
    if (status == BW_OK && w->stops && w->stop[RESTORE].flag) {
        status = open_weights(w);
    }
    return status;
}

void bwi_watch_close(bwi_watch *w)
{
    if (w->weights) {
        bw_context *ctx = w->model->ctx;
        bwi_kernels_of(ctx)->memory->release(ctx, w->weights, w->weights_bytes);
        w->weights = NULL;
    }
}

static void copy_weights(const bwi_watch *w, bool restore)
{
    const bwi_graph *graph = &w->model->graph;
    const bwi_memory_kernels *memory = bwi_kernels_of(graph->ctx)->memory;
    char *at = w->weights;
    for (int v = 0; v < graph->variable_count; v++) {
        void *data = graph->variables[v]->data;
        size_t bytes = variable_bytes(graph->variables[v]);
        memory->copy(restore ? data : at, restore ? at : data, bytes);
        at += bytes;
    }
}

static bool better(double value, double best, double delta, bool higher)
{
    return isnan(best) ? !isnan(value) : higher ? value - delta > best : value + delta < best;
}

/* Does what Keras's EarlyStopping does after an epoch, with its order of comparisons. Returns true if training stops now. */
static bool look_to_stop(bwi_watch *w, const bw_history *history, int epoch)
{
    const bwi_argument_value *v = w->stop;
    double value = bw_history_last(history, v[MONITOR].text);
    bool higher = higher_is_better(v[MODE].text, v[MONITOR].text);
    if (epoch < v[START].integer) {
        return false;
    }
    /* The weights of the first epoch are kept, so that there is always something to restore. */
    if (w->weights && !w->kept) {
        copy_weights(w, false);
        w->kept = true;
        w->best_epoch = epoch;
    }
    w->wait++;
    bool first = isnan(w->best);
    if (better(value, w->best, first ? 0 : v[MIN_DELTA].number, higher)) {
        w->best = value;
        w->best_epoch = epoch;
        if (w->weights) {
            copy_weights(w, false);
        }
        bool reached = !v[BASELINE].given || better(value, v[BASELINE].number, v[MIN_DELTA].number, higher);
        w->wait = reached ? 0 : w->wait;
        return false;
    }
    return w->wait >= v[PATIENCE].integer && epoch > 0;
}

/* Does what Keras's ReduceLROnPlateau does after an epoch. */
static void look_to_reduce(bwi_watch *w, const bw_history *history)
{
    const bwi_argument_value *v = w->rate;
    double value = bw_history_last(history, v[RATE_MONITOR].text);
    bool higher = higher_is_better(v[RATE_MODE].text, v[RATE_MONITOR].text);
    if (w->cooldown > 0) {
        w->cooldown--;
        w->rate_wait = 0;
    }
    if (better(value, w->rate_best, isnan(w->rate_best) ? 0 : v[RATE_MIN_DELTA].number, higher)) {
        w->rate_best = value;
        w->rate_wait = 0;
        return;
    }
    if (w->cooldown > 0 || ++w->rate_wait < v[RATE_PATIENCE].integer) {
        return;
    }
    double rate = bw_learning_rate(w->model);
    if (rate > v[RATE_LEAST].number) {
        bwi_training_set_rate(w->model, fmax(rate * v[RATE_FACTOR].number, v[RATE_LEAST].number));
        w->cooldown = v[RATE_COOLDOWN].integer;
        w->rate_wait = 0;
    }
}

bool bwi_watch_epoch(bwi_watch *w, const bw_history *history, int epoch)
{
    if (w->reduces) {
        look_to_reduce(w, history);
    }
    return w->stops && look_to_stop(w, history, epoch);
}

bool bwi_watch_end(bwi_watch *w)
{
    if (w->weights && w->kept) {
        copy_weights(w, true);
        return true;
    }
    return false;
}
