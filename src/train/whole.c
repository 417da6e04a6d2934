/*
 * Updates that look at a variable as a whole: rules such as Adafactor's and Muon's, the orthogonal penalty, constraints. They work
 * on copies in Keras's order, one variable after another, in memory that was planned with the slots. Nothing depends on workers or
 * ranks.
 */
#include "train/optimizers/rows.h"

static bwi_extents extents_of(const bwi_variable *variable)
{
    return (bwi_extents){
        .ndim = variable->shape.ndim, .extent = variable->shape.extent, .count = bwi_shape_count(&variable->shape)};
}

bool bwi_variable_is_whole(const bwi_optimizer *o, const bwi_variable *variable)
{
    return variable->trainable && o->row->is_whole && o->row->is_whole(o, variable);
}

/* ---- Memory ---- */

/* The gradient, the weights, each slot and the average, and what the rule needs beside them. */
enum { COPIES = 2 + BWI_MAX_SLOTS };

static size_t floats_of(const bwi_optimizer *o, const bwi_kernels *k, const bwi_variable *variable)
{
    size_t count = (size_t)bwi_shape_count(&variable->shape), most = 0;
    if (bwi_variable_is_whole(o, variable)) {
        most = bwi_size_multiply(COPIES, count);
        most = bwi_size_add(most, o->row->whole_scratch ? (size_t)o->row->whole_scratch(k, variable) : 0);
    }
    if (variable->trainable && variable->orthogonal > 0) { /* bwi_whole_orthogonal, g and w */
        size_t needed = bwi_size_add(bwi_size_multiply(4, count), (size_t)(variable->shape.extent[0] + variable->shape.extent[1]));
        most = most > needed ? most : needed;
    }
    if (variable->trainable && (variable->constraint.norms || variable->constraint.nonnegative)) { /* w, and sums in double */
        size_t needed = bwi_size_multiply(3, count);
        most = most > needed ? most : needed;
    }
    return most;
}

size_t bwi_whole_bytes(const bwi_training *t)
{
    const bwi_kernels *k = bwi_kernels_of(t->ctx);
    size_t most = 0;
    for (int v = 0; k && v < t->model->graph.variable_count; v++) {
        size_t floats = floats_of(&t->optimizer, k, t->model->graph.variables[v]);
        most = most > floats ? most : floats;
    }
    return bwi_size_multiply(most, sizeof(float));
}

bool bwi_whole_is_wanted(const bwi_training *t)
{
    bool wanted = t->optimizer.row->trusts || t->optimizer.row->slot_shape || bwi_whole_reads_gradients(t);
    for (int v = 0; v < t->model->graph.variable_count; v++) {
        const bwi_constraint *c = &t->model->graph.variables[v]->constraint;
        wanted = wanted || c->norms || c->nonnegative;
    }
    return wanted;
}

bool bwi_whole_reads_gradients(const bwi_training *t)
{
    bool reads = false;
    for (int v = 0; v < t->model->graph.variable_count; v++) {
        const bwi_variable *variable = t->model->graph.variables[v];
        reads = reads || bwi_variable_is_whole(&t->optimizer, variable) || (variable->trainable && variable->orthogonal > 0);
    }
    return reads;
}

/* ---- The orthogonal penalty ---- */

void bwi_whole_penalize(bwi_session *s, double count)
{
    const bwi_graph *graph = &s->training->model->graph;
    for (int v = 0; v < graph->variable_count; v++) {
        const bwi_variable *variable = graph->variables[v];
        if (variable->trainable && variable->orthogonal > 0) {
            bwi_extents e = extents_of(variable);
            float *g = s->whole, *w = g + e.count;
            bwi_exec_reduced(s->exec, variable, g, NULL);
            bwi_variable_read(variable, w);
            bwi_whole_orthogonal(variable->orthogonal, variable->orthogonal_columns, e.extent[0], e.extent[1], w, (float)count, g,
                                 w + e.count);
            bwi_exec_reduced(s->exec, variable, NULL, g);
        }
    }
}

double bwi_whole_penalty(const bwi_session *s, const bwi_variable *variable)
{
    bwi_extents e = extents_of(variable);
    float *w = s->whole;
    bwi_variable_read(variable, w);
    return bwi_whole_orthogonal(variable->orthogonal, variable->orthogonal_columns, e.extent[0], e.extent[1], w, 0, NULL,
                                w + e.count);
}

/* ---- Rules ---- */

/* Computes the update of a variable and writes it back if `commits`. Returns whether all of it is finite. */
static bool update(const bwi_session *s, const bwi_variable *variable, bool commits)
{
    const bwi_optimizer *o = &s->training->optimizer;
    const bwi_slot *slots = &o->slots[variable->index * BWI_MAX_SLOTS];
    int all = o->slot_count + (o->averages ? 1 : 0);
    bwi_extents e = extents_of(variable);
    float *g = s->whole, *w = g + e.count, *copies[BWI_MAX_SLOTS] = {NULL};
    bwi_exec_reduced(s->exec, variable, g, NULL);
    bwi_variable_read(variable, w);
    for (int k = 0; k < all; k++) {
        copies[k] = w + (k + 1) * e.count;
        bwi_variable stored = slots[k].data ? *slots[k].variable : (bwi_variable){0};
        stored.data = slots[k].data;
        if (stored.data) {
            bwi_variable_read(&stored, copies[k]);
        }
    }
    bwi_step step = o->step;
    bwi_step_part part = {.l1 = variable->l1, .l2 = variable->l2, .clip = o->clips[variable->index]};
    part.average = o->averages ? copies[o->slot_count] : NULL;
    step.decay = o->whole_decay;
    step.decays = o->whole_decay > 0;
    o->kernels->optimize->before(&step, &part, e.count, g, w, g);
    o->row->whole(o, &e, g, copies, w, w + (COPIES - 1) * e.count);
    o->kernels->optimize->after(&step, &part, e.count, w);
    double squared = o->kernels->sum_of_squares(e.count, w);
    for (int k = 0; k < all; k++) {
        bwi_variable stored = slots[k].data ? *slots[k].variable : (bwi_variable){0};
        stored.data = slots[k].data;
        squared += stored.data ? o->kernels->sum_of_squares(bwi_shape_count(&stored.shape), copies[k]) : 0;
        if (commits && stored.data) {
            bwi_variable_write(&stored, copies[k]);
        }
    }
    if (commits) {
        bwi_variable_write(variable, w);
    }
    return isfinite(squared);
}

bw_status bwi_whole_rehearse(bwi_session *s)
{
    const bwi_optimizer *o = &s->training->optimizer;
    const bwi_graph *graph = &s->training->model->graph;
    for (int v = 0; o->row->is_whole && v < graph->variable_count; v++) {
        if (bwi_variable_is_whole(o, graph->variables[v]) && !update(s, graph->variables[v], false)) {
            bwi_exec_clear(s->exec);
            return bwi_fail(
                s->training->ctx, BW_INVALID_ARGUMENT,
                "the update of %s would not be finite; nothing was changed: lower the learning rate, clip the gradients "
                "or scale the inputs",
                graph->variables[v]->name);
        }
    }
    return BW_OK;
}

void bwi_whole_update(bwi_session *s)
{
    const bwi_optimizer *o = &s->training->optimizer;
    const bwi_graph *graph = &s->training->model->graph;
    for (int v = 0; o->row->is_whole && v < graph->variable_count; v++) {
        if (bwi_variable_is_whole(o, graph->variables[v])) {
            (void)update(s, graph->variables[v], true);
        }
    }
}

/* ---- Constraints ---- */

bool bwi_whole_constrain_all(const bwi_session *s)
{
    const bwi_graph *graph = &s->training->model->graph;
    bool any = false;
    for (int v = 0; v < graph->variable_count; v++) {
        const bwi_variable *variable = graph->variables[v];
        const bwi_constraint *c = &variable->constraint;
        if (variable->trainable && (c->norms || c->nonnegative)) {
            bwi_extents e = extents_of(variable);
            double *sums = (double *)(void *)s->whole;
            float *w = (float *)(void *)(sums + e.count);
            bwi_variable_read(variable, w);
            bwi_whole_constrain(c, &e, w, sums);
            bwi_variable_write(variable, w);
            any = true;
        }
    }
    return any;
}
