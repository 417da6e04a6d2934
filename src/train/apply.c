/*
 * The update of a window, in Keras's order: gradient sums are divided by the count, penalties added, the result clipped;
 * weights decay; the optimizer moves them; averages follow.
 *
 * It is one pass over memory, by parts on the workers. Norms of plain gradients are known from the reduction; only clipping by
 * the norm of gradients with penalties needs a pass before it. Nothing fails once the gradients are reduced, so the model is
 * either as before or updated as a whole; norms are summed over fixed blocks, so bits do not depend on workers or ranks.
 */
#include "train/optimizers/rows.h"

#include <string.h>

/* Gradients that are changed on their way pass through a buffer that stays in the first cache. */
enum { PART = 1024 };

/* g = scale sum + l1 sign(w) + 2 l2 w; sign(0) is 0, as Keras has it. */
static void add_penalties(const bwi_variable *variable, float scale, int64_t count, const float *restrict sum,
                          const float *restrict w, float *restrict g)
{
    float l1 = variable->l1, l2 = 2 * variable->l2;
    BWI_ELEMENTWISE(count, g[i] = scale * sum[i] + l1 * (float)((w[i] > 0) - (w[i] < 0)) + l2 * w[i];);
}

static void multiply(float scale, int64_t count, const float *restrict sum, float *restrict g)
{
    BWI_ELEMENTWISE(count, g[i] = scale * sum[i];);
}

static void clip_values(float most, int64_t count, float *restrict g)
{
    BWI_ELEMENTWISE(count, {
        float below = g[i] < most ? g[i] : most;
        g[i] = below > -most ? below : -most;
    });
}

static bool has_penalty(const bwi_variable *variable)
{
    return variable->l1 > 0 || variable->l2 > 0;
}

/* The gradient of a part as the optimizer gets it; `scale` is what is left to multiply. */
static const float *final_gradient(const bwi_optimizer *o, const bwi_variable *variable, int64_t count, const float *gradient,
                                   const float *w, float *buffer, float *scale)
{
    float clip = o->clips[variable->index];
    *scale = o->scale * clip;
    if (has_penalty(variable)) {
        add_penalties(variable, o->scale, count, gradient, w, buffer);
        *scale = clip;
    } else if (o->clipvalue > 0) {
        multiply(*scale, count, gradient, buffer);
        *scale = 1;
    } else {
        return gradient;
    }
    if (o->clipvalue > 0) {
        clip_values(o->clipvalue, count, buffer);
    }
    return buffer;
}

static void decay(float part, int64_t count, float *restrict w)
{
    BWI_ELEMENTWISE(count, w[i] -= w[i] * part;);
}

/* average = keep average + (1 - keep) w. */
static void follow(float keep, bool overwrite, int64_t count, float *restrict average, float *restrict w)
{
    BWI_ELEMENTWISE(count, average[i] = keep * average[i] + (1 - keep) * w[i];);
    if (overwrite) {
        memcpy(w, average, (size_t)count * sizeof(float));
    }
}

static void take_slots(const bwi_optimizer *o, const bwi_variable *variable, int64_t first, float *slots[BWI_MAX_SLOTS])
{
    const bwi_slot *own = &o->slots[variable->index * BWI_MAX_SLOTS];
    for (int k = 0; k < o->slot_count; k++) {
        slots[k] = own[k].data + first;
    }
}

static void update_in_parts(const bwi_optimizer *o, const bwi_variable *variable, int64_t first, int64_t count,
                            const float *gradient)
{
    const bwi_slot *average = &o->slots[variable->index * BWI_MAX_SLOTS + o->slot_count];
    float buffer[PART], *slots[BWI_MAX_SLOTS], scale;
    for (int64_t done = 0, part; done < count; done += part) {
        part = count - done < PART ? count - done : PART;
        float *w = variable->data + first + done;
        take_slots(o, variable, first + done, slots);
        const float *g = final_gradient(o, variable, part, gradient + done, w, buffer, &scale);
        if (o->weight_decay > 0) {
            decay((float)(o->rate * (double)o->weight_decay), part, w);
        }
        o->row->update(o, part, scale, g, slots, w);
        if (o->averages) {
            follow(o->average_factor, o->overwrite, part, average->data + first + done, w);
        }
    }
}

void bwi_optimizer_update(void *optimizer, const bwi_variable *variable, int64_t first, int64_t count, const float *gradient)
{
    const bwi_optimizer *o = optimizer;
    if (has_penalty(variable) || o->clipvalue > 0 || o->weight_decay > 0 || o->averages) {
        update_in_parts(o, variable, first, count, gradient);
        return;
    }
    float *slots[BWI_MAX_SLOTS];
    take_slots(o, variable, first, slots);
    o->row->update(o, count, o->scale * o->clips[variable->index], gradient, slots, variable->data + first);
}

/* Slots: the weights are needed last, and come while the slots are computed. */
static void tell_reads(void *optimizer, const bwi_variable *variable, const float *arrays[BWI_SINK_READS])
{
    const bwi_optimizer *o = optimizer;
    for (int k = 0; k < BWI_SINK_READS; k++) {
        arrays[k] = k < o->slot_count ? o->slots[variable->index * BWI_MAX_SLOTS + k].data : variable->data;
    }
}

/* ---- Clipping by norms ---- */

static double penalized_norm(void *user, const bwi_variable *variable, int64_t first, int64_t count, const float *gradient)
{
    const bwi_optimizer *o = user;
    float buffer[PART];
    double squared = 0;
    for (int64_t done = 0, part; done < count; done += part) {
        part = count - done < PART ? count - done : PART;
        add_penalties(variable, o->scale, part, gradient + done, variable->data + first + done, buffer);
        squared += o->kernels->sum_of_squares(part, buffer);
    }
    return squared;
}

static bool has_penalties(const bwi_graph *graph)
{
    bool found = false;
    for (int v = 0; v < graph->variable_count; v++) {
        found = found || (graph->variables[v]->trainable && has_penalty(graph->variables[v]));
    }
    return found;
}

/* What is left of a gradient of this norm. */
static double clipped(double norm, float most)
{
    return most > 0 && norm > (double)most ? (double)most / norm : 1;
}

static bool clips_by_norm(const bwi_optimizer *o)
{
    return o->clipnorm > 0 || o->global_clipnorm > 0;
}

static void take_scales(bwi_session *s, double count)
{
    bwi_optimizer *o = &s->training->optimizer;
    const bwi_graph *graph = &s->training->model->graph;
    bool by_norm = clips_by_norm(o), penalized = by_norm && has_penalties(graph);
    o->scale = count > 0 ? (float)(1 / count) : 0;
    if (penalized) {
        bwi_exec_visit(s->exec, penalized_norm, o);
    }
    double unit = penalized ? 1 : (double)o->scale;
    double all = by_norm ? clipped(unit * sqrt(bwi_exec_squared_norm(s->exec, NULL)), o->global_clipnorm) : 1;
    for (int v = 0; v < graph->variable_count; v++) {
        o->clips[v] = (float)all;
        if (o->clipnorm > 0) {
            o->clips[v] = (float)clipped(unit * sqrt(bwi_exec_squared_norm(s->exec, graph->variables[v])), o->clipnorm);
        }
    }
}

/* Whether a weight without a gradient stays as it is. */
static bool stays(const bwi_optimizer *o, const bwi_graph *graph)
{
    return o->slot_count == 0 && o->weight_decay <= 0 && !o->averages && !has_penalties(graph);
}

bw_status bwi_session_apply(bwi_session *s)
{
    bwi_optimizer *o = &s->training->optimizer;
    double squared_norm, count = s->window_count;
    if (s->compiles != s->training->compiles) {
        return bwi_fail(s->training->ctx, BW_INVALID_ARGUMENT,
                        "the model was compiled after these gradients were begun: begin anew");
    }
    s->window_count = 0;
    bw_status status = bwi_exec_reduce(s->exec, clips_by_norm(o) ? &squared_norm : NULL);
    if (status != BW_OK) {
        return status;
    }
    unsigned state = bwi_float_begin(); /* the step's constants do not depend on the caller's rounding */
    take_scales(s, count);
    o->rate = bwi_optimizer_rate(o);
    o->average_factor = o->iterations > 0 ? o->average_momentum : 0;
    o->overwrite = o->overwrite_every > 0 && (o->iterations + 1) % o->overwrite_every == 0;
    if (o->row->begin) {
        o->row->begin(o);
    }
    bwi_sink sink = {.take = bwi_optimizer_update, .reads = tell_reads, .user = o};
    if (stays(o, &s->training->model->graph)) {
        bwi_exec_update_touched(s->exec, &sink);
    } else {
        bwi_exec_update(s->exec, &sink);
    }
    bwi_float_restore(state);
    o->iterations++;
    return BW_OK;
}
