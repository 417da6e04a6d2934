/*
 * bw_doctor: collects facts and runs the table of checks over them. What would make training fail is looked for first; where it is
 * found, nothing is trained on trial.
 */
#include "insight/doctor/doctor.h"

#include <stdlib.h>
#include <string.h>

/* ---- Findings ---- */

bool bwi_found(bwi_finding *found, bw_severity severity, const char *evidence, ...)
{
    va_list arguments;
    va_start(arguments, evidence);
    bwi_format(found->evidence, sizeof found->evidence, evidence, arguments);
    va_end(arguments);
    found->severity = severity;
    return true;
}

void bwi_fix(bwi_finding *found, const char *code, const char *fix, ...)
{
    va_list arguments;
    va_start(arguments, fix);
    bwi_format(found->fix, sizeof found->fix, fix, arguments);
    va_end(arguments);
    snprintf(found->code, sizeof found->code, "%s", code);
}

static int check_count(void)
{
    int count = 0;
    while (bwi_checks[count].id) {
        count++;
    }
    return count;
}

static void destroy(bwi_owned *object)
{
    bw_findings *findings = (bw_findings *)(void *)object;
    bwi_release(object->ctx, findings->finding);
}

static bw_findings *open_findings(bw_context *ctx)
{
    bw_findings *findings = bwi_own(ctx, sizeof *findings, destroy);
    if (findings) {
        findings->finding = bwi_allocate(ctx, (size_t)check_count() + 1, sizeof *findings->finding);
    }
    if (findings && !findings->finding) {
        bwi_disown(findings);
        return bwi_pass_on(ctx);
    }
    return findings;
}

/* The most severe findings come first, otherwise the order is the table's. */
bw_findings *bwi_doctor_check(const bwi_doctor *d, bool free_only)
{
    bw_findings *findings = open_findings(d->ctx);
    for (int severity = BW_SEVERITY_ERROR; findings && severity >= BW_SEVERITY_NOTE; severity--) {
        for (int k = 0; bwi_checks[k].id; k++) {
            if (free_only && !bwi_checks[k].free) {
                continue;
            }
            bwi_finding *found = &findings->finding[findings->count];
            *found = (bwi_finding){.id = bwi_checks[k].id, .reason = bwi_checks[k].reason};
            findings->count += bwi_checks[k].check(d, found) && (int)found->severity == severity;
        }
    }
    return findings;
}

static bool has_errors(const bwi_doctor *d)
{
    bwi_finding found = {.id = NULL};
    for (int k = 0; bwi_checks[k].id; k++) {
        if (bwi_checks[k].check(d, &found) && found.severity == BW_SEVERITY_ERROR) {
            return true;
        }
    }
    return false;
}

int bw_findings_count(const bw_findings *findings)
{
    return findings ? findings->count : 0;
}

bool bw_findings_at(const bw_findings *findings, int number, bw_finding *finding)
{
    if (!findings || !finding || number < 0 || number >= findings->count) {
        return false;
    }
    const bwi_finding *found = &findings->finding[number];
    *finding = (bw_finding){.id = found->id,
                            .severity = found->severity,
                            .evidence = found->evidence,
                            .reason = found->reason,
                            .fix = found->fix,
                            .code = found->code};
    return true;
}

void bw_findings_free(bw_findings *findings)
{
    bwi_disown(findings);
}

const char *bw_finding_id(int number)
{
    return number >= 0 && number < check_count() ? bwi_checks[number].id : NULL;
}

const char *bw_severity_name(bw_severity severity)
{
    static const char *const names[] = {"note", "warning", "error"};
    return (size_t)severity < BWI_COUNT(names) ? names[severity] : "unknown";
}

/* ---- Facts ---- */

static bw_status build_model(const bwi_doctor *d)
{
    int input = bwi_dataset_find(d->training, BWI_ROLE_INPUT, 0);
    if (bwi_model_built(d->model)) {
        return BW_OK;
    }
    if (input < 0) {
        return bwi_fail(d->ctx, BW_INVALID_ARGUMENT, "doctor: the data has no inputs (x)");
    }
    const bwi_field *field = bwi_dataset_field(d->training, input);
    return bwi_model_build(d->model, field->ndim, field->shape, d->options.seed);
}

/* Finds the sizes of the updates of the first epoch. */
static bw_status find_batches(bwi_doctor *d)
{
    bwi_batching how = {.sizes = d->options.batch_sizes,
                        .batch = d->options.batch,
                        .accumulate = d->options.accumulate,
                        .drop = d->options.drop_remainder};
    bw_dataset *windows = NULL;
    bw_status status = bwi_dataset_windows(d->training, &how, &windows);
    int64_t position = 0, count = status == BW_OK ? bwi_dataset_batch_at(windows, 0, &position) : 0;
    for (; count > 0; count = bwi_dataset_batch_at(windows, 0, &position)) {
        d->batch = count > d->batch ? count : d->batch;
        d->last_batch = count;
        d->updates_per_epoch++;
        position += count;
    }
    bw_dataset_free(windows);
    return status;
}

/* A plan decides on the losses that were left to the data. One that is refused tells nothing new: the checks of losses come to it,
 * or training on trial does. */
static bw_status find_losses(const bwi_doctor *d)
{
    bw_plan_options options = BW_PLAN_OPTIONS_DEFAULT;
    options.memory = BWI_NO_BUDGET;
    bw_plan *plan = bw_plan_make(d->model, d->training, d->batch > 0 ? d->batch : 1, &options);
    bw_status status = plan ? BW_OK : bwi_pending(d->ctx);
    bw_plan_free(plan);
    return status == BW_RESOURCE_EXHAUSTED ? status : BW_OK;
}

/* The scale that the samples were read with, which a fix may replace. */
static bw_status find_scale(bwi_doctor *d)
{
    bw_dataset *recipe = bwi_recipe_make(d->training);
    d->scale = recipe ? bwi_recipe_scale(recipe) : 1;
    bw_status status = recipe ? BW_OK : bwi_pending(d->ctx);
    bw_dataset_free(recipe);
    return status;
}

/* About a batch of consecutive labels belongs together; for tiny batches those of several updates, which pull together. */
static int64_t window_of(const bwi_doctor *d)
{
    return d->batch < 16 ? 16 : d->batch > 128 ? 128 : d->batch;
}

bw_status bwi_doctor_read(bwi_doctor *d, int64_t most)
{
    bw_status status = bwi_dataset_prepare(d->training);
    if (status == BW_OK) {
        status = find_scale(d);
    }
    if (status == BW_OK) {
        status = bwi_data_facts_read(&d->data, d->training, window_of(d), NULL, most);
    }
    if (status == BW_OK && bwi_data_facts_find(&d->data, BWI_ROLE_TARGET, 0)) {
        int64_t labels = d->data.collected / d->data.window * d->data.window;
        status = bwi_order_test(d->ctx, d->data.labels, labels, d->data.window, &d->order);
        d->shuffled = bwi_dataset_shuffled(d->training);
    }
    if (status == BW_OK && d->validation && most == 0) {
        status = bwi_data_facts_read(&d->held, d->validation, window_of(d), &d->data, 0);
    }
    return status;
}

static bw_status collect(bwi_doctor *d, double seconds)
{
    bw_status status = build_model(d);
    if (status == BW_OK) {
        status = find_batches(d);
    }
    if (status == BW_OK) {
        status = find_losses(d);
    }
    if (status == BW_OK) {
        status = bwi_doctor_read(d, 0);
    }
    return status == BW_OK && seconds > 0 && !has_errors(d) ? bwi_step_facts_find(d, seconds) : status;
}

/* ---- The calls ---- */

void bwi_doctor_close(bwi_doctor *d, bw_dataset *const split[2])
{
    bwi_data_facts_free(&d->data);
    bwi_data_facts_free(&d->held);
    bwi_gradient_facts_free(d->ctx, &d->steps.before);
    bwi_gradient_facts_free(d->ctx, &d->steps.after);
    for (int i = 3; i >= 0; i--) {
        bw_dataset_free(split[i]);
    }
}

/* Takes the options of the training, and the parts of its data. */
bw_status bwi_doctor_open(bwi_doctor *d, bw_dataset *dataset, const bw_fit_options *training, bw_dataset *split[4])
{
    d->options = (bw_fit_options)BW_FIT_OPTIONS_DEFAULT;
    bw_status status = bwi_options_copy(d->ctx, &d->options, sizeof d->options, training, "bw_fit_options");
    d->training = dataset;
    d->validation = d->options.validation;
    if (status == BW_OK && d->ctx->ranks) {
        status = bwi_fail(d->ctx, BW_UNIMPLEMENTED, "doctor: ranks are not supported; look with a context of its own");
    }
    if (status == BW_OK) {
        status = bwi_dataset_finish(dataset);
    }
    if (status == BW_OK && d->options.validation_split > 0) {
        status = bwi_dataset_split(dataset, d->options.validation_split, &split[0], &split[1]);
        d->training = split[0];
        d->validation = split[1];
    }
    if (status == BW_OK) {
        status = bwi_front_prepare(d->model, d->training, &split[2]);
        d->training = split[2] ? split[2] : d->training;
    }
    if (status == BW_OK && d->validation) {
        status = bwi_front_data(d->model, d->validation, &split[3]);
        d->validation = split[3] ? split[3] : d->validation;
    }
    return status;
}

/* The findings outlive everything that was collected for them. */
static bw_status examine(bw_model *model, bw_dataset *dataset, const bw_doctor_options *given, bw_findings **findings)
{
    bwi_doctor d = {.ctx = model->ctx, .model = model};
    bw_doctor_options options = BW_DOCTOR_OPTIONS_DEFAULT;
    bw_dataset *split[4] = {NULL, NULL, NULL, NULL};
    if (!dataset || !findings) {
        return bwi_fail(d.ctx, BW_INVALID_ARGUMENT, "doctor: there is no %s", dataset ? "place for the findings" : "dataset");
    }
    *findings = NULL;
    bw_status status = bwi_options_copy(d.ctx, &options, sizeof options, given, "bw_doctor_options");
    if (status == BW_OK) {
        status = bwi_doctor_open(&d, dataset, options.training, split);
    }
    if (status == BW_OK) {
        status = collect(&d, options.seconds);
    }
    *findings = status == BW_OK ? bwi_doctor_check(&d, false) : NULL;
    if (status == BW_OK && !*findings) {
        status = bwi_pending(d.ctx);
    }
    bwi_doctor_close(&d, split);
    return status;
}

bw_status bw_doctor(bw_model *model, bw_dataset *dataset, const bw_doctor_options *options, bw_findings **findings)
{
    bw_status status = model ? bwi_call_begin(model->ctx) : BW_INVALID_ARGUMENT;
    return status == BW_OK ? bwi_call_end(model->ctx, examine(model, dataset, options, findings)) : status;
}
