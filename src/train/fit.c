/* fit, evaluate, predict. */
#include "train/train.h"

#include <math.h>
#include <string.h>

typedef struct fitting {
    bw_context *ctx;
    bw_model *model;
    bw_fit_options options;
    bw_dataset *training, *validation;
    bw_dataset *split[2]; /* made here from one dataset; NULL: none */
    bw_dataset *recipe;   /* of the training part; the model's from the first update on */
    bw_dataset *windows;  /* the training part with its batches: the samples behind each update */
    int64_t count;
    bwi_session session;
    bw_history *history, *logs;
    bwi_painter painter;
    bwi_watch watch;
    double begin;
    bwi_measure measure;
    bool stopped;
} fitting;

static bw_status check_options(bw_context *ctx, const bw_fit_options *o)
{
    if (o->epochs < 1) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "epochs: expected at least 1, got %d", o->epochs);
    }
    if (!o->batch_sizes && o->batch < 1 && o->batch != -1) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "batch: expected at least 1 sample, got %lld", (long long)o->batch);
    }
    if (o->accumulate < 1) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "accumulate: expected at least 1, got %d", o->accumulate);
    }
    if (!(o->validation_split >= 0 && o->validation_split < 1)) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "validation_split: expected a share from 0 to below 1, got %g",
                        o->validation_split);
    }
    if (o->validation && o->validation_split > 0) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "validation: give data or a split, not both");
    }
    return BW_OK;
}

static bw_status split_data(fitting *f, bw_dataset *dataset)
{
    f->training = dataset;
    f->validation = f->options.validation;
    bw_status finished = f->validation ? bwi_dataset_finish(f->validation) : BW_OK;
    if (finished == BW_OK && f->ctx->ranks) { /* they agree on counts before they begin */
        finished = bwi_dataset_finish(dataset);
    }
    if (finished != BW_OK) {
        return finished;
    }
    if (f->options.validation_split > 0) {
        bw_status status = bw_split(dataset, f->options.validation_split, &f->split[0], &f->split[1]);
        if (status != BW_OK) {
            return status;
        }
        f->training = f->split[0];
        f->validation = f->split[1];
    }
    bwi_batching how = {.sizes = f->options.batch_sizes,
                        .batch = f->options.batch,
                        .accumulate = f->options.accumulate,
                        .drop = f->options.drop_remainder};
    bw_status status = bwi_dataset_windows(f->training, &how, &f->windows);
    f->training = f->windows;
    f->count = bw_dataset_count(f->training);
    return status;
}

static bw_status open_history(fitting *f)
{
    const bwi_session *s = &f->session;
    int width = bwi_session_columns(s, f->validation);
    f->history = bwi_history_new(f->ctx, f->options.epochs, width);
    f->logs = bwi_history_new(f->ctx, 1, width);
    if (!f->history || !f->logs) {
        return bwi_pending(f->ctx);
    }
    f->logs->epochs = 1;
    for (int part = 0; part < (f->validation ? 2 : 1); part++) {
        for (int k = 1; k <= bwi_session_values(s); k++) {
            const char *name = bwi_session_value_name(s, k % bwi_session_values(s));
            bwi_history_add_column(f->history, part ? "val_" : "", name);
            bwi_history_add_column(f->logs, part ? "val_" : "", name);
        }
    }
    if (s->rates) { /* Keras's callback logs it */
        bwi_history_add_column(f->history, "", "learning_rate");
        bwi_history_add_column(f->logs, "", "learning_rate");
    }
    return BW_OK;
}

/* The loss comes last, as Keras prints it. */
static void take_values(fitting *f, int first)
{
    const bwi_session *s = &f->session;
    for (int k = 1; k <= bwi_session_values(s); k++) {
        f->logs->values[first + k - 1] = bwi_session_value(s, k % bwi_session_values(s));
    }
}

static void forget_values(fitting *f)
{
    for (int c = 0; c < f->logs->columns; c++) {
        f->logs->values[c] = (double)NAN;
    }
}

static bw_status run_epoch(fitting *f, bw_progress *p)
{
    bwi_session *s = &f->session;
    bwi_session_reset(s);
    double begin = bwi_now();
    unsigned state = bwi_float_begin(); /* once, not in every call below */
    bwi_piece piece = {.dataset = f->training, .epoch = p->epoch};
    while (!f->stopped && (piece.count = bwi_dataset_batch_at(f->training, p->epoch, &piece.first)) > 0) {
        bwi_exec_set_seed(s->exec, f->options.seed, (uint64_t)s->training->optimizer.iterations);
        bw_status status = bwi_session_feed(s, BWI_PROGRAM_TRAIN, &piece, NULL);
        if (status == BW_OK) {
            status = bwi_session_apply(s);
        }
        if (status != BW_OK) {
            bwi_float_restore(state);
            return status;
        }
        bwi_session_count(s);
        piece.first += piece.count;
        p->step++;
        p->update = s->training->optimizer.iterations;
        p->samples += piece.count;
        if (f->recipe) {
            bwi_training_set_data(s->training, f->recipe);
            f->recipe = NULL;
        }
        f->history->facts.updates++;
        f->history->facts.samples += piece.count;
        if (f->painter.file || f->options.on_step) {
            bwi_float_restore(state);
            p->seconds = bwi_now() - begin;
            take_values(f, 0);
            bwi_painter_step(&f->painter, p);
            f->stopped = f->options.on_step && !f->options.on_step(f->options.user, p);
            state = bwi_float_begin();
        }
    }
    bwi_float_restore(state);
    p->seconds = bwi_now() - begin;
    take_values(f, 0);
    return BW_OK;
}

static bw_status run_validation(fitting *f)
{
    bwi_session *s = &f->session;
    bwi_piece piece = {.dataset = f->validation, .count = bw_dataset_count(f->validation), .unaugmented = true};
    bw_status status = bwi_session_feed(s, BWI_PROGRAM_EVALUATE, &piece, NULL);
    if (status == BW_OK) {
        bwi_session_reset(s);
        bwi_session_count(s);
        take_values(f, bwi_session_values(s));
    }
    return status;
}

static bw_status run(fitting *f)
{
    int64_t steps = 0;
    for (int epoch = 0; epoch < f->options.epochs && !f->stopped; epoch++) {
        bool live = bwi_dataset_live(f->training); /* a stream: the epoch ends where it does */
        if (!live && (steps == 0 || bwi_dataset_batch_varies(f->training))) {
            steps = bwi_dataset_batch_count(f->training, epoch);
        }
        if (steps == 0 && !live) {
            return bwi_fail(f->ctx, BW_INVALID_ARGUMENT, "epoch %d: of %lld samples all would be dropped as a rest", epoch,
                            (long long)f->count);
        }
        bw_progress p = {.epoch = epoch, .epochs = f->options.epochs, .steps = steps, .logs = f->logs};
        forget_values(f);
        bwi_painter_epoch(&f->painter, &p);
        bw_status status = run_epoch(f, &p);
        p.steps = live ? p.step : steps;
        if (status == BW_OK && f->validation) {
            status = run_validation(f);
        }
        if (status != BW_OK) {
            return status;
        }
        if (f->session.rates) {
            f->logs->values[f->logs->columns - 1] = bw_learning_rate(f->model);
        }
        size_t width = (size_t)f->history->width;
        memcpy(f->history->values + (size_t)epoch * width, f->logs->values, width * sizeof(double));
        f->history->epochs = epoch + 1;
        bwi_painter_end(&f->painter, &p);
        f->stopped = bwi_watch_epoch(&f->watch, f->history, epoch) || f->stopped;
        if (f->options.on_epoch && !f->options.on_epoch(f->options.user, &p)) {
            f->stopped = true;
        }
    }
    bwi_training_finalize(f->session.training);
    return BW_OK;
}

static int fields_of(const bw_dataset *dataset, int role)
{
    int count = 0;
    for (int k = 0; k < bwi_dataset_fields(dataset); k++) {
        count += (int)bwi_dataset_field(dataset, k)->role == role;
    }
    return count;
}

static bw_status check_validation(const fitting *f)
{
    if (!f->validation || f->validation == f->split[1]) {
        return BW_OK;
    }
    static const char *const names[] = {"inputs", "targets", "sample weights"};
    for (int role = 0; role < 3; role++) {
        if (fields_of(f->training, role) != fields_of(f->validation, role)) {
            return bwi_fail(f->ctx, BW_INVALID_ARGUMENT, "validation: training and validation data differ in their %s",
                            names[role]);
        }
    }
    for (int k = 0; k < bwi_dataset_fields(f->training); k++) {
        const bwi_field *x = bwi_dataset_field(f->training, k), *y = bwi_dataset_field(f->validation, k);
        if (x->role != y->role || strcmp(x->name, y->name) != 0) {
            return bwi_fail(f->ctx, BW_INVALID_ARGUMENT, "validation: training and validation data differ in their %s",
                            names[x->role]);
        }
        if (x->ndim != y->ndim || memcmp(x->shape, y->shape, (size_t)x->ndim * sizeof x->shape[0]) != 0) {
            char expected[160], found[160];
            return bwi_fail(f->ctx, BW_INVALID_ARGUMENT, "validation: expected %s of shape %s as in training, got %s",
                            names[x->role], bwi_format_shape(expected, x->ndim, x->shape),
                            bwi_format_shape(found, y->ndim, y->shape));
        }
    }
    return BW_OK;
}

/* What is fitted to the data is fitted now, to the training part alone. */
static bw_status prepare_data(fitting *f)
{
    bw_status status = bwi_dataset_prepare(f->training);
    if (status != BW_OK) {
        return status;
    }
    f->recipe = bwi_recipe_make(f->training);
    return f->recipe ? BW_OK : bwi_pending(f->ctx);
}

static bw_status open_session(fitting *f)
{
    const bw_fit_options *o = &f->options;
    bwi_session_options options = {.train = true,
                                   .evaluate = f->validation,
                                   .validation = f->validation,
                                   .batch = bwi_dataset_largest_batch(f->training),
                                   .tile = o->tile,
                                   .lanes = o->lanes,
                                   .memory = o->memory,
                                   .spill = o->spill,
                                   .seed = o->seed,
                                   .class_weight = o->class_weight,
                                   .class_count = o->class_count};
    options.epochs = o->epochs;
    options.rates = o->reduce_lr_on_plateau;
    options.copies = bwi_watch_restores(f->ctx, o);
    bw_status status = bwi_pool_open(f->ctx);
    if (status != BW_OK) {
        return status;
    }
    bwi_measure_begin(&f->measure, f->model);
    status = bwi_session_open(&f->session, f->model, f->training, &options);
    bwi_measure_opened(&f->measure, f->ctx);
    return status;
}

/* Ranks that do not train alike would wait for each other for ever: each compares the sum of all with its own, and if one of
 * them finds a difference, all stop. */
static bw_status compare_ranks(fitting *f)
{
    static const char *const names[] = {"samples", "samples behind an update", "updates",
                                        "epochs",  "validation samples",       "variables"};
    enum { FACTS = 7, SIZES = 6 };
    const double mine[FACTS] = {(double)f->count,
                                (double)bwi_dataset_largest_batch(f->training),
                                (double)bwi_dataset_batch_count(f->training, 0),
                                f->options.epochs,
                                f->validation ? (double)bw_dataset_count(f->validation) : 0,
                                f->model->graph.variable_count,
                                (double)(uint32_t)bwi_dataset_batch_hash(f->training, f->options.epochs)};
    double ranks = bwi_rank_of(f->ctx)->count(f->ctx->ranks);
    double sums[FACTS];
    memcpy(sums, mine, sizeof sums);
    bw_status status = bwi_rank_of(f->ctx)->sum_doubles(f->ctx, sums, FACTS);
    for (int k = 0; k < FACTS && status == BW_OK; k++) {
        if (fabs(sums[k] - ranks * mine[k]) > 0 && k == SIZES) {
            status =
                bwi_fail(f->ctx, BW_INVALID_ARGUMENT, "ranks differ in the sizes of their batches, or in the epochs of a change");
        } else if (fabs(sums[k] - ranks * mine[k]) > 0) {
            status =
                bwi_fail(f->ctx, BW_INVALID_ARGUMENT, "ranks differ in their number of %s; this one has %.0f", names[k], mine[k]);
        }
    }
    bw_status all = bwi_rank_of(f->ctx)->agree(f->ctx, status);
    if (all != BW_OK) {
        bwi_session_close(&f->session);
        status = status != BW_OK ? status : bwi_fail(f->ctx, all, "another rank trains with other numbers");
    }
    return status;
}

/* All ranks begin or none: one that was refused would be waited for. */
static bw_status begin_together(fitting *f, bw_status status)
{
    if (f->ctx->ranks) {
        bw_status all = bwi_rank_of(f->ctx)->agree(f->ctx, status);
        if (status == BW_OK && all != BW_OK) {
            bwi_session_close(&f->session);
            return bwi_fail(f->ctx, all, "another rank could not begin");
        }
    }
    return status == BW_OK && f->ctx->ranks ? compare_ranks(f) : status;
}

static void take_facts(fitting *f)
{
    bw_run_facts *facts = &f->history->facts;
    const bwi_plan *plan = bwi_exec_plan(f->session.exec);
    facts->seconds = bwi_now() - f->begin;
    facts->tile = plan->tile;
    facts->lanes = plan->lanes;
    facts->workers = plan->workers;
    facts->exact_kernels = plan->ctx->exact_kernels;
    facts->planned_bytes = bwi_plan_total(plan);
    facts->segments = plan->segments;
    facts->kept_bytes = plan->items.store;
    facts->spilled_bytes = plan->spill_bytes;
    bwi_measure_end(&f->measure, f->ctx, facts);
}

static bw_status fit(fitting *f, bw_dataset *dataset, bw_history **history)
{
    bw_status status = check_options(f->ctx, &f->options);
    if (status == BW_OK) {
        status = split_data(f, dataset);
    }
    if (status == BW_OK) {
        status = check_validation(f);
    }
    if (status == BW_OK) {
        status = prepare_data(f);
    }
    if (status == BW_OK) {
        status = open_session(f);
    }
    status = begin_together(f, status);
    if (status != BW_OK) {
        return status;
    }
    status = open_history(f);
    if (status == BW_OK) {
        status = bwi_watch_open(&f->watch, f->model, &f->options, f->history);
    }
    if (status == BW_OK) {
        f->begin = bwi_now();
        status = run(f);
        take_facts(f);
    }
    if (status == BW_OK && bwi_watch_end(&f->watch)) {
        bwi_exec_touch(f->session.exec);
    }
    bwi_watch_close(&f->watch);
    bwi_session_close(&f->session);
    if (history && f->history) {
        *history = f->history;
        f->history = NULL;
    }
    return status;
}

bw_status bwi_fit_options_read(bw_context *ctx, bw_fit_options *to, const bw_fit_options *from)
{
    *to = (bw_fit_options)BW_FIT_OPTIONS_DEFAULT;
    if (from) {
        if (from->size < sizeof from->size || from->size > sizeof *to) {
            return bwi_fail(ctx, BW_INVALID_ARGUMENT, "fit: the options' size is %zu: begin with BW_FIT_OPTIONS_DEFAULT",
                            from->size);
        }
        memcpy(to, from, from->size);
    }
    return BW_OK;
}

/* Cancelled behind its last tile a call says so too: or the next one would be stopped instead. */
static bw_status end_call(bw_context *ctx, bw_status status)
{
    return status == BW_CANCELLED || (status == BW_OK && bwi_cancelled(ctx)) ? bwi_cancel_report(ctx) : status;
}

bw_status bw_fit(bw_model *model, bw_dataset *dataset, const bw_fit_options *options, bw_history **history)
{
    if (history) {
        *history = NULL;
    }
    bw_context *ctx = model ? model->ctx : bwi_dataset_context(dataset);
    if (!ctx) {
        return BW_INVALID_ARGUMENT;
    }
    bw_status status = bwi_pending(ctx);
    if (status != BW_OK) {
        return status;
    }
    if (!model || !dataset) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "fit: there is no %s", model ? "dataset" : "model");
    }
    fitting f = {.ctx = ctx, .model = model};
    status = bwi_fit_options_read(ctx, &f.options, options);
    if (status != BW_OK) {
        return status;
    }
    f.painter.file = f.options.progress;
    status = fit(&f, dataset, history);
    bwi_disown(f.history);
    bwi_disown(f.logs);
    bw_dataset_free(f.recipe);
    bw_dataset_free(f.windows);
    bw_dataset_free(f.split[0]);
    bw_dataset_free(f.split[1]);
    return end_call(ctx, status);
}

/* ---- evaluate and predict ---- */

static bw_status begin_inference(bw_model *model, bw_dataset *dataset, bw_context **ctx)
{
    *ctx = model ? model->ctx : bwi_dataset_context(dataset);
    if (!*ctx) {
        return BW_INVALID_ARGUMENT;
    }
    bw_status status = bwi_pending(*ctx);
    if (status == BW_OK && (!model || !dataset)) {
        status = bwi_fail(*ctx, BW_INVALID_ARGUMENT, "there is no %s", model ? "dataset" : "model");
    }
    return status == BW_OK ? bwi_dataset_finish(dataset) : status;
}

bw_status bw_evaluate(bw_model *model, bw_dataset *dataset, bw_history **result)
{
    bw_context *ctx;
    if (!result) {
        return BW_INVALID_ARGUMENT;
    }
    *result = NULL;
    bw_status status = begin_inference(model, dataset, &ctx);
    bwi_session s;
    bwi_session_options options = {.evaluate = true};
    if (status == BW_OK) {
        status = bwi_session_open(&s, model, dataset, &options);
    }
    if (status != BW_OK) {
        return status;
    }
    bwi_piece piece = {.dataset = dataset, .count = bw_dataset_count(dataset), .unaugmented = true};
    status = bwi_session_feed(&s, BWI_PROGRAM_EVALUATE, &piece, NULL);
    bw_history *history = status == BW_OK ? bwi_history_new(ctx, 1, bwi_session_values(&s)) : NULL;
    if (history) {
        bwi_session_count(&s);
        history->epochs = 1;
        for (int k = 1; k <= bwi_session_values(&s); k++) {
            int index = k % bwi_session_values(&s);
            history->values[bwi_history_add_column(history, "", bwi_session_value_name(&s, index))] = bwi_session_value(&s, index);
        }
        *result = history;
    } else if (status == BW_OK) {
        status = bwi_pending(ctx);
    }
    bwi_session_close(&s);
    return end_call(ctx, status);
}

bw_status bw_predict_all(bw_model *model, bw_dataset *dataset, float *const *predictions, const size_t *counts, int outputs)
{
    bw_context *ctx;
    bw_status status = begin_inference(model, dataset, &ctx);
    bwi_session s;
    bwi_session_options options = {.predict = true};
    if (status == BW_OK) {
        status = bwi_session_open(&s, model, dataset, &options);
    }
    if (status != BW_OK) {
        return status;
    }
    bwi_piece piece = {.dataset = dataset, .count = bw_dataset_count(dataset), .unaugmented = true};
    if (outputs != s.output_count) {
        status = bwi_fail(ctx, BW_INVALID_ARGUMENT, "predict: expected room for %d outputs, got %d", s.output_count, outputs);
    }
    for (int k = 0; k < outputs && status == BW_OK; k++) {
        size_t expected = bwi_size_multiply((size_t)piece.count, (size_t)bwi_shape_count(&s.outputs[k]->shape));
        if (counts[k] != expected) {
            status = bwi_fail(ctx, BW_INVALID_ARGUMENT, "predict: expected room for %zu numbers, got %zu", expected, counts[k]);
        }
    }
    if (status == BW_OK) {
        status = bwi_session_feed(&s, BWI_PROGRAM_PREDICT, &piece, predictions);
    }
    bwi_session_close(&s);
    return end_call(ctx, status);
}

bw_status bw_predict(bw_model *model, bw_dataset *dataset, float *predictions, size_t count)
{
    return bw_predict_all(model, dataset, &predictions, &count, 1);
}
