/* Checks of updates: the learning rate, what gradients tell of layers, and the batch beside the gradient noise scale. */
#include "insight/doctor/doctor.h"

#include <math.h>
#include <string.h>

/* ---- The learning rate ---- */

static void fix_rate(bwi_finding *found, double rate)
{
    bwi_fix(found, "", "--lr %.3g", rate);
    bwi_print(found->code, sizeof found->code, "bw_set_learning_rate(model, %.3g);", rate);
}

/* Of a training that is over: the loss of the last epoch is larger than that of the first. */
static bool loss_rose(const bwi_doctor *d, bwi_finding *found)
{
    int epochs = d->history ? bw_history_epochs(d->history) : 0;
    double first = epochs > 1 ? bw_history_value(d->history, "loss", 0) : 0;
    double last = epochs > 1 ? bw_history_last(d->history, "loss") : 0;
    if (epochs < 2 || !isfinite(first) || last <= first + 0.01 * fabs(first)) {
        return false;
    }
    double rate = bw_learning_rate(d->model);
    fix_rate(found, rate / 10);
    return bwi_found(found, BW_SEVERITY_WARNING,
                     "the loss rose from %.4g in the first to %.4g in the last of %d epochs, at a rate of %.3g", first, last,
                     epochs, rate);
}

/* A tenth of the rate helps: the loss is lower by a fifth at least, and by more than chance explains. */
static bool is_better(const bwi_trial_facts *other, double than, double error)
{
    return other->updates >= BWI_FEWEST_UPDATES && !other->failed && other->last < than - 0.2 * fabs(than) &&
           other->last < than - 3 * error;
}

/* The first updates threw the model off, and those of a smaller rate do not. Where the loss goes from there is chance: it may stay
 * constant, since units died, or fall as that of another model. */
static bool was_thrown(const bwi_trial_facts *trial, const bwi_trial_facts *slower, bwi_finding *found)
{
    if (!bwi_trial_is_thrown(trial) || !bwi_trial_stays(slower, trial)) {
        return false;
    }
    fix_rate(found, slower->rate);
    return bwi_found(found, BW_SEVERITY_WARNING,
                     "the first %d updates take the loss from %.4g to %.4g at a rate of %.3g, and to %.4g at a rate of %.3g; after "
                     "%lld it is %.4g and %.4g",
                     BWI_FEWEST_UPDATES, trial->first, trial->early, trial->rate, slower->early, slower->rate,
                     (long long)slower->updates, trial->last, slower->last);
}

/* Training fails, its first updates throw the model off, or its loss does not fall, and with a smaller rate this is not so. */
bool bwi_check_rate_too_high(const bwi_doctor *d, bwi_finding *found)
{
    const bwi_trial_facts *trial = &d->steps.trial, *slower = &d->steps.slower;
    if (!d->steps.ran || slower->updates == 0) {
        return loss_rose(d, found);
    }
    if (trial->failed && !slower->failed) {
        fix_rate(found, slower->rate);
        return bwi_found(found, BW_SEVERITY_ERROR,
                         "at a rate of %.3g training fails within %lld updates (%.160s); at %.3g it does not", trial->rate,
                         (long long)trial->updates, trial->message, slower->rate);
    }
    if (trial->failed || !(trial->last >= 0.95 * trial->first) || !is_better(slower, trial->last, trial->error)) {
        return was_thrown(trial, slower, found);
    }
    fix_rate(found, slower->rate);
    return bwi_found(found, BW_SEVERITY_WARNING,
                     "in %lld updates the loss goes from %.4g to %.4g at a rate of %.3g, and to %.4g at a rate of %.3g",
                     (long long)trial->updates, trial->first, trial->last, trial->rate, slower->last, slower->rate);
}

bool bwi_check_rate_too_low(const bwi_doctor *d, bwi_finding *found)
{
    const bwi_trial_facts *trial = &d->steps.trial, *slower = &d->steps.slower, *faster = &d->steps.faster;
    bool slow = d->steps.ran && !trial->failed && trial->updates > 0 && trial->last >= 0.95 * trial->first;
    bool best = !is_better(slower, trial->last, trial->error) && (slower->failed || !(slower->last < faster->last));
    if (!slow || !best || !is_better(faster, trial->last, trial->error)) {
        return false;
    }
    fix_rate(found, faster->rate);
    return bwi_found(found, BW_SEVERITY_WARNING,
                     "in %lld updates the loss goes from %.4g to %.4g at a rate of %.3g, and to %.4g at a rate of %.3g",
                     (long long)trial->updates, trial->first, trial->last, trial->rate, faster->last, faster->rate);
}

/* ---- Gradients ---- */

/* The largest gradient of the layers that make the outputs. */
static double size_at_outputs(const bwi_gradient_facts *facts)
{
    double size = 0;
    for (int k = 0; k < facts->count; k++) {
        size = facts->layer[k].output ? fmax(size, fmax(facts->layer[k].size, facts->layer[k].bias)) : size;
    }
    return size;
}

/* Units that are silent although the outputs have a gradient. Before the first update initial weights or inputs are to blame, after
 * it the rate. */
static bool are_dead(const bwi_gradient_facts *facts, bwi_finding *found)
{
    enum { FEWEST_UNITS = 4, FEWEST_SAMPLES = 64 };
    for (int k = 0; k < facts->count && facts->samples >= FEWEST_SAMPLES && size_at_outputs(facts) > 0; k++) {
        const bwi_layer_gradient *layer = &facts->layer[k];
        if (layer->output || layer->units < FEWEST_UNITS || 2 * layer->silent <= layer->units) {
            continue;
        }
        bwi_fix(found, "",
                "a smaller --lr, scaled inputs (--standardise), kernel_initializer=he_normal, or leaky_relu in place of relu");
        char when[48] = "before the first update";
        if (facts->updates > 0) {
            snprintf(when, sizeof when, "after %lld update%s", (long long)facts->updates, facts->updates == 1 ? "" : "s");
        }
        return bwi_found(found, BW_SEVERITY_WARNING, "layer %s: %lld of %lld units get no gradient from any of %lld samples, %s",
                         layer->name, (long long)layer->silent, (long long)layer->units, (long long)facts->samples, when);
    }
    return false;
}

bool bwi_check_dead_units(const bwi_doctor *d, bwi_finding *found)
{
    if (d->constant_output) {
        bwi_fix(found, "", "a smaller --lr, scaled inputs (--standardise), or leaky_relu in place of relu");
        return bwi_found(found, BW_SEVERITY_WARNING, "the model's output is the same for all of %lld samples",
                         (long long)d->looked_at);
    }
    return are_dead(&d->steps.before, found) || are_dead(&d->steps.after, found);
}

bool bwi_check_vanishing_gradient(const bwi_doctor *d, bwi_finding *found)
{
    static const double tiny = 1e-6, lost = 1e-3;
    const bwi_gradient_facts *facts = &d->steps.before;
    double outputs = size_at_outputs(facts);
    for (int k = 0; k < facts->count; k++) {
        const bwi_layer_gradient *layer = &facts->layer[k];
        if (!layer->output && layer->size > 0 && layer->size < tiny && layer->size < lost * outputs) {
            bwi_fix(found, "",
                    "relu in place of sigmoid or tanh, batchnorm between the layers, or connections that skip some: add(a)");
            return bwi_found(
                found, BW_SEVERITY_WARNING,
                "the gradient of layer %s has a root mean square of %.2g, that of the last layer %.2g: %.0f times as large",
                layer->name, layer->size, outputs, outputs / layer->size);
        }
    }
    return false;
}

/* Gradients grow with the residuals of the output, which unscaled targets make large; what is left beside that is the layers'
 * own. */
bool bwi_check_exploding_gradient(const bwi_doctor *d, bwi_finding *found)
{
    static const double too_large = 100;
    const bwi_gradient_facts *facts = &d->steps.before;
    bwi_finding other;
    double residual = 1;
    for (int k = 0; k < facts->count; k++) {
        residual = facts->layer[k].output && facts->layer[k].bias > residual ? facts->layer[k].bias : residual;
    }
    for (int k = 0; k < facts->count; k++) {
        const bwi_layer_gradient *layer = &facts->layer[k];
        double ratio = layer->weights > 0 ? layer->size / layer->weights / residual : 0;
        if (ratio > too_large && !bwi_check_unscaled_inputs(d, &other)) {
            bwi_fix(found, "bw_compile(model, \"adam(clipnorm=1)\", NULL, NULL);",
                    "kernel_initializer=he_normal, batchnorm between the layers, or --optimizer 'adam(clipnorm=1)'");
            return bwi_found(found, BW_SEVERITY_WARNING,
                             "the gradient of layer %s has a root mean square of %.2g, %.0f times that of its weights, %.2g",
                             layer->name, layer->size, layer->size / layer->weights, layer->weights);
        }
    }
    if (d->steps.trial.failed && d->steps.slower.failed) {
        bwi_fix(found, "bw_compile(model, \"adam(clipnorm=1)\", NULL, NULL);",
                "kernel_initializer=he_normal, or --optimizer 'adam(clipnorm=1)'");
        return bwi_found(found, BW_SEVERITY_ERROR, "training fails within %lld updates (%.160s), also at a tenth of the rate, %.3g",
                         (long long)d->steps.trial.updates, d->steps.trial.message, d->steps.slower.rate);
    }
    return false;
}

/* ---- The batch beside the noise ---- */

/* The scale is from the first updates, and rises during training: a batch far below it stays there; one above it may not. */
bool bwi_check_below_noise(const bwi_doctor *d, bwi_finding *found)
{
    const bw_noise_scale *noise = &d->steps.noise;
    double batch = (double)d->batch;
    if (d->steps.noise_steps < 20 || !noise->determined || !(noise->low > 8 * batch) || d->batch >= d->data.samples) {
        return false;
    }
    double better = fmin(noise->low, (double)d->data.samples);
    double larger = pow(2, floor(log2(fmax(better, 1))));
    bwi_fix(found, "", "--batch %.0f with a learning rate that goes with it; batchwise tune finds both", larger);
    bwi_print(found->code, sizeof found->code, "fitting.batch = %.0f;", larger);
    return bwi_found(
        found, BW_SEVERITY_NOTE,
        "the gradient noise scale is %.0f samples (%.0f to %.0f with 95%%), %.0f times the batch of %lld, over %lld updates",
        noise->scale, noise->low, noise->high, noise->scale / batch, (long long)d->batch, (long long)d->steps.noise_steps);
}

bool bwi_check_past_noise(const bwi_doctor *d, bwi_finding *found)
{
    const bw_noise_scale *noise = &d->steps.noise;
    double batch = (double)d->batch;
    if (d->steps.noise_steps < 20 || !noise->determined || !(noise->high < batch / 16) || d->batch < 64) {
        return false;
    }
    double smaller = pow(2, ceil(log2(fmax(2 * noise->high, 16))));
    bwi_fix(found, "", "--batch %.0f, or --batch %.0f@0,%lld@5: small at first, since the scale rises during training", smaller,
            smaller, (long long)d->batch);
    bwi_print(found->code, sizeof found->code, "fitting.batch = %.0f;", smaller);
    return bwi_found(
        found, BW_SEVERITY_NOTE,
        "the gradient noise scale is %.1f samples (%.1f to %.1f with 95%%) in the first %lld updates, the batch is %lld",
        noise->scale, noise->low, noise->high, (long long)d->steps.noise_steps, (long long)d->batch);
}
