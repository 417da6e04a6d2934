/*
 * The update of a window. Gradient sums are reduced and checked, the constants of the step are set, and a kernel takes every part
 * of every variable through all that Keras does in an update (kernel/loops/optimize.h), in one pass over memory that the workers
 * share.
 *
 * The reduction gives the norms of gradients; only clipping by the norm of gradients with penalties needs an extra pass. Nothing
 * fails once the update has begun, so the model is either unchanged or updated as a whole. Norms are summed over fixed blocks, so
 * bits do not depend on workers or ranks. Moderate gradients, weights and constants, as almost all are, cannot leave a float's
 * range. If one is not moderate, the update is first rehearsed on copies, and refused if anything would not be finite.
 */
#include "train/optimizers/rows.h"

static bool has_penalty(const bwi_variable *variable)
{
    return variable->l1 > 0 || variable->l2 > 0 || variable->orthogonal > 0;
}

void bwi_optimizer_begin(bwi_optimizer *o, float scale)
{
    o->rate = bwi_optimizer_rate(o);
    o->step.scale = scale;
    o->step.clip_value = o->clipvalue;
    o->step.decays = o->weight_decay > 0;
    o->step.decay = (float)(o->rate * (double)o->weight_decay);
    o->step.average_keep = o->iterations > 0 ? o->average_momentum : 0;
    o->step.overwrite = o->overwrite_every > 0 && (o->iterations + 1) % o->overwrite_every == 0;
    o->whole_decay = o->step.decay;
    o->row->begin(o);
}

/* Every member is written where it is read: a copy by vectors, right after stores of pointers, would wait for these. */
static inline __attribute__((always_inline)) void set_part(bwi_step_part *part, const bwi_optimizer *o,
                                                           const bwi_variable *variable, int64_t first)
{
    const bwi_slot *slots = &o->slots[variable->index * BWI_MAX_SLOTS];
    size_t offset = (size_t)(first - slots[0].first) * sizeof(float);
    *part = (bwi_step_part){0};
    part->l1 = variable->l1;
    part->l2 = variable->l2;
    part->clip = o->clips[variable->index];
    if (o->row->trusts) {
        part->trust = o->trusts[variable->index];
    }
    for (int k = 0; k < o->slot_count; k++) {
        part->slots[k] = slots[k].data ? (char *)slots[k].data + offset : NULL;
    }
    if (o->averages) {
        part->average = (char *)slots[o->slot_count].data + offset;
    }
}

void bwi_optimizer_update(void *optimizer, const bwi_variable *variable, int64_t first, int64_t count, const void *gradient)
{
    const bwi_optimizer *o = optimizer;
    if (o->row->is_whole && bwi_variable_is_whole(o, variable)) {
        return;
    }
    bwi_step_part part;
    set_part(&part, o, variable, first);
    o->kernels->optimize->update(&o->step, &part, count, gradient, bwi_variable_at(variable, first));
}

/* Lists the slots first: weights are needed last, and are fetched while the slots are computed. */
static void tell_reads(void *optimizer, const bwi_variable *variable, const void *arrays[BWI_SINK_READS])
{
    const bwi_optimizer *o = optimizer;
    for (int k = 0; k < BWI_SINK_READS; k++) {
        const void *slot = k < o->slot_count ? o->slots[variable->index * BWI_MAX_SLOTS + k].data : NULL;
        arrays[k] = slot ? slot : variable->data;
    }
}

bwi_sink bwi_optimizer_sink(bwi_optimizer *o)
{
    return (bwi_sink){.take = bwi_optimizer_update, .reads = tell_reads, .user = o};
}

/* ---- Clipping by norms ---- */

static double penalized_norm(void *user, const bwi_variable *variable, int64_t first, int64_t count, const void *gradient)
{
    const bwi_optimizer *o = user;
    return o->kernels->optimize->penalized_norm(o->step.scale, variable->l1, variable->l2, count, gradient,
                                                bwi_variable_at(variable, first));
}

static bool has_penalties(const bwi_graph *graph)
{
    bool found = false;
    for (int v = 0; v < graph->variable_count; v++) {
        found = found || (graph->variables[v]->trainable && has_penalty(graph->variables[v]));
    }
    return found;
}

/* The factor that clips a gradient of this norm. */
static double clipped(double norm, float most)
{
    return most > 0 && norm > (double)most ? (double)most / norm : 1;
}

static bool clips_by_norm(const bwi_optimizer *o)
{
    return o->clipnorm > 0 || o->global_clipnorm > 0;
}

/* Sets the factors by which norms clip each variable's gradient. Norms of gradients with penalties are those of the mean; others
 * are those of the sum, which `scale` turns into means. */
static void take_clips(bwi_session *s)
{
    bwi_optimizer *o = &s->training->optimizer;
    const bwi_graph *graph = &s->training->model->graph;
    bool by_norm = clips_by_norm(o), penalized = by_norm && has_penalties(graph);
    if (penalized) {
        bwi_exec_visit(s->exec, penalized_norm, o);
    }
    double unit = penalized ? 1 : (double)o->step.scale;
    double all = by_norm ? clipped(unit * sqrt(bwi_exec_squared_norm(s->exec, NULL)), o->global_clipnorm) : 1;
    for (int v = 0; v < graph->variable_count; v++) {
        o->clips[v] = (float)all;
        if (o->clipnorm > 0) {
            o->clips[v] = (float)clipped(unit * sqrt(bwi_exec_squared_norm(s->exec, graph->variables[v])), o->clipnorm);
        }
    }
}

/* ---- Lamb's ratios ---- */

static double lamb_norm(void *user, const bwi_variable *variable, int64_t first, int64_t count, const void *gradient)
{
    const bwi_optimizer *o = user;
    bwi_step_part part;
    set_part(&part, o, variable, first);
    return o->kernels->optimize->lamb_norm(&o->step, &part, count, gradient, bwi_variable_at(variable, first));
}

/* The norm of the weights, once they have decayed, by that of the step; 1 if one of them is 0. */
static void take_trusts(bwi_session *s)
{
    bwi_optimizer *o = &s->training->optimizer;
    const bwi_graph *graph = &s->training->model->graph;
    bwi_exec_visit(s->exec, lamb_norm, o);
    for (int v = 0; v < graph->variable_count; v++) {
        const bwi_variable *variable = graph->variables[v];
        double kept = o->step.decays ? 1 - (double)o->step.decay : 1;
        double weights = fabs(kept) * sqrt(o->kernels->sum_of_squares(variable->count, variable->data));
        double step = sqrt(bwi_exec_squared_norm(s->exec, variable));
        o->trusts[v] = weights > 0 && step > 0 ? (float)(weights / step) : 1;
    }
}

static bool trusts_little(const bwi_optimizer *o, const bwi_graph *graph)
{
    bool little = true;
    for (int v = 0; o->row->trusts && v < graph->variable_count; v++) {
        little = little && o->trusts[v] <= 0x1p40F;
    }
    return little;
}

/* Whether a weight whose gradient is zero stays unchanged. */
static bool stays(const bwi_optimizer *o, const bwi_graph *graph)
{
    return o->slot_count == 0 && o->weight_decay <= 0 && !o->averages && !has_penalties(graph);
}

/* ---- Updates that might overflow ---- */

/* Whether these constants keep moderate gradients from carrying weights or slots out of range. */
static bool is_calm(const bwi_step *s)
{
    if (!(fabsf(s->rate) <= 0x1p10F && s->decay <= 1 && s->scale <= 2)) {
        return false;
    }
    if (s->rule == BWI_RULE_SGD) {
        return s->momentum <= 1;
    }
    if (s->rule == BWI_RULE_FTRL) { /* it divides by the rate and by sums of squares; only roots of these are safe */
        return false;
    }
    bool nadam =
        s->rule != BWI_RULE_NADAM || (fabsf(s->of_mean) <= 0x1p30F && fabsf(s->of_gradient) <= 0x1p30F && s->of_square <= 0x1p30F);
    return s->momentum <= 1 && nadam && (s->epsilon >= 0x1p-40F || s->rule == BWI_RULE_LION);
}

static double rehearse(void *optimizer, const bwi_variable *variable, int64_t first, int64_t count, const void *gradient)
{
    const bwi_optimizer *o = optimizer;
    if (o->row->is_whole && bwi_variable_is_whole(o, variable)) {
        return 0; /* bwi_whole_rehearse looks at it */
    }
    bwi_step_part part;
    set_part(&part, o, variable, first);
    return o->kernels->optimize->rehearse(&o->step, &part, count, gradient, bwi_variable_at(variable, first)) ? 0 : (double)NAN;
}

bool bwi_training_is_moderate(const bwi_training *t)
{
    const bwi_optimizer *o = &t->optimizer;
    const bwi_graph *graph = &t->model->graph;
    const bwi_kernels *k = bwi_kernels_of(t->ctx);
    double most = 0;
    for (int v = 0; v < graph->variable_count; v++) {
        const bwi_variable *variable = graph->variables[v];
        const bwi_slot *slots = o->slots ? &o->slots[variable->index * BWI_MAX_SLOTS] : NULL;
        double squared = k->sum_of_squares(variable->count, variable->data);
        for (int n = 0; slots && n < BWI_MAX_SLOTS; n++) {
            double slot = slots[n].data ? k->sum_of_squares(slots[n].count, slots[n].data) : 0;
            squared += slot / BWI_MODERATE / BWI_MODERATE; /* second moments are squares */
        }
        most = squared <= most ? most : squared; /* NaN is kept */
    }
    return most <= BWI_MODERATE * BWI_MODERATE;
}

/* A failure leaves everything unchanged. Of what `begin` changes, only Nadam's product must be restored, since the other constants
 * follow from the iteration. */
bw_status bwi_session_apply(bwi_session *s)
{
    bwi_optimizer *o = &s->training->optimizer;
    double squared_norm, count = s->window_count;
    if (s->compiles != s->training->compiles) {
        return bwi_fail(s->training->ctx, BW_INVALID_ARGUMENT,
                        "the model was compiled after these gradients were made: make new ones with bw_gradients_new");
    }
    bool whole = s->whole && bwi_whole_reads_gradients(s->training); /* its memory exists where something needs it */
    s->window_count = 0;
    bw_status status = bwi_exec_reduce(s->exec, clips_by_norm(o) || o->row->trusts || whole ? &squared_norm : NULL);
    if (status != BW_OK) {
        return status;
    }
    bwi_float_begin(s->training->ctx); /* the step's constants must not depend on the caller's rounding */
    float product = o->momentum_product;
    bwi_optimizer_begin(o, count > 0 ? (float)(1 / count) : 0);
    if (s->whole) {
        bwi_whole_penalize(s, count);
    }
    take_clips(s);
    if (o->row->trusts) {
        take_trusts(s);
    }
    bool calm = is_calm(&o->step) && trusts_little(o, &s->training->model->graph);
    if (bwi_exec_large(s->exec) || !s->moderate || !calm) {
        status = bwi_exec_rehearse(s->exec, rehearse, o);
    }
    if (status == BW_OK && s->whole) {
        status = bwi_whole_rehearse(s);
    }
    if (status != BW_OK) {
        o->momentum_product = product;
        bwi_float_end(s->training->ctx);
        return status;
    }
    if (s->whole) {
        bwi_whole_update(s);
    }
    bool touched = stays(o, &s->training->model->graph);
    status = touched ? bwi_exec_update_touched(s->exec, &s->sink) : bwi_exec_update(s->exec, &s->sink);
    if (status == BW_OK && s->whole && bwi_whole_constrain_all(s)) {
        bwi_exec_touch(s->exec);
    }
    bwi_float_end(s->training->ctx);
    o->momentum_product = status == BW_OK ? o->momentum_product : product;
    o->iterations += status == BW_OK;
    return status;
}
