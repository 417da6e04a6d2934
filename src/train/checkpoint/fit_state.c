/*
 * The state of a fit as named values: the model's variables, the optimizer's, the cursor in the data, counters, the epoch's sums so
 * far, what early stopping and plateaus have seen, and the history.
 */
#include "train/checkpoint/fit_state.h"

#include <string.h>

static bwi_state_value *add_counters(bwi_state *state, bwi_fit_state *s, int64_t count, const char *name,
                                     void (*get)(void *object, void *values), void (*set)(void *object, const void *values))
{
    bwi_state_value *value = bwi_state_add(state, BW_I64, 1, &count, NULL, "%s", name);
    if (value) {
        value->object = s;
        value->get = get;
        value->set = set;
    }
    return value;
}

/* ---- Sums of the epoch ---- */

static void get_totals(void *object, void *totals)
{
    const bwi_fit_state *s = object;
    size_t bytes = (size_t)bwi_session_total_count(s->session) * sizeof(double);
    if (s->validating) {
        memcpy(totals, s->totals, bytes);
    } else {
        bwi_session_get_totals(s->session, totals);
    }
}

static void set_totals(void *object, const void *totals)
{
    const bwi_fit_state *s = object;
    bwi_session_set_totals(s->session, totals);
}

void bwi_fit_state_validating(bwi_fit_state *s, bool validating)
{
    if (validating) {
        bwi_session_get_totals(s->session, s->totals);
    }
    s->validating = validating;
}

/* ---- Callbacks ---- */

static void get_stop(void *object, void *values)
{
    const bwi_fit_state *s = object;
    const int64_t counters[3] = {s->watch->wait, s->watch->best_epoch, s->watch->kept};
    memcpy(values, counters, sizeof counters);
}

static void set_stop(void *object, const void *values)
{
    const bwi_fit_state *s = object;
    const int64_t *counters = values;
    s->watch->wait = counters[0];
    s->watch->best_epoch = (int)counters[1];
    s->watch->kept = counters[2] != 0;
}

static void get_plateau(void *object, void *values)
{
    const bwi_fit_state *s = object;
    const int64_t counters[2] = {s->watch->rate_wait, s->watch->cooldown};
    memcpy(values, counters, sizeof counters);
}

static void set_plateau(void *object, const void *values)
{
    const bwi_fit_state *s = object;
    const int64_t *counters = values;
    s->watch->rate_wait = counters[0];
    s->watch->cooldown = counters[1];
}

static void get_best(void *object, void *values)
{
    bwi_variable_read(object, values);
}

static void set_best(void *object, const void *values)
{
    bwi_variable_write(object, values);
}

/* The weights of the best epoch lie one after another, stored like the variables. */
static void add_best(bwi_fit_state *s, bwi_state *state)
{
    const bwi_graph *graph = &s->model->graph;
    char *at = s->watch->weights;
    for (int v = 0; v < graph->variable_count; v++) {
        s->best[v] = *graph->variables[v];
        s->best[v].data = at;
        at += (size_t)graph->variables[v]->count * sizeof(float);
        bwi_state_value *value = bwi_state_add(state, BW_F32, s->best[v].shape.ndim, s->best[v].shape.extent, NULL,
                                               "early_stopping/%s", s->best[v].name);
        if (value) {
            value->object = &s->best[v];
            value->get = get_best;
            value->set = set_best;
        }
    }
}

/* ---- The learning rate ---- */

/* A rate that was set, by a plateau or the program, replaces a schedule for good. */
static void get_schedule(void *object, void *values)
{
    const bwi_fit_state *s = object;
    int64_t scheduled = s->session->training->optimizer.schedule.row ? 1 : 0;
    memcpy(values, &scheduled, sizeof scheduled);
}

static void set_schedule(void *object, const void *values)
{
    const bwi_fit_state *s = object;
    int64_t scheduled;
    memcpy(&scheduled, values, sizeof scheduled);
    if (!scheduled) {
        s->session->training->optimizer.schedule.row = NULL;
    }
}

/* Whether the optimizer lists its rate depends on whether it has a schedule now; a checkpoint's values must not. */
static void forget(bwi_state *state, const char *name)
{
    const bwi_state_value *value = bwi_state_find(state, name);
    if (value) {
        int at = (int)(value - state->values);
        memmove(&state->values[at], &state->values[at + 1], (size_t)(state->count - at - 1) * sizeof *state->values);
        state->count--;
    }
}

/* ---- The gradient noise scale ---- */

static void add_noise(bwi_noise *noise, bwi_state *state)
{
    int64_t words = (int64_t)(bwi_noise_state_bytes(noise) / sizeof(int64_t));
    bwi_state_value *value = bwi_state_add(state, BW_I64, 1, &words, NULL, "fit/noise");
    if (value) {
        value->object = noise;
        value->get = bwi_noise_get;
        value->set = bwi_noise_set;
    }
}

/* ---- All of it ---- */

static void list_cursor(bwi_cursor *cursor, bwi_state *state)
{
    const struct {
        const char *name;
        int64_t *value;
    } counters[] = {
        {"epoch", &cursor->epoch},
        {"position", &cursor->position},
        {"step", &cursor->step},
        {"samples", &cursor->samples},
        {"skipped", &cursor->skipped},
        {"all_updates", &cursor->all_updates},
        {"all_samples", &cursor->all_samples},
        {"all_skipped", &cursor->all_skipped},
        {"stopped", &cursor->stopped},
    };
    for (size_t i = 0; i < BWI_COUNT(counters); i++) {
        bwi_state_add(state, BW_I64, 0, NULL, counters[i].value, "fit/%s", counters[i].name);
    }
}

bw_status bwi_fit_state_open(bwi_fit_state *s)
{
    bw_context *ctx = s->model->ctx;
    s->totals = bwi_allocate(ctx, (size_t)bwi_session_total_count(s->session), sizeof(double));
    s->best = s->watch->weights ? bwi_allocate(ctx, (size_t)s->model->graph.variable_count, sizeof *s->best) : NULL;
    return s->totals && (s->best || !s->watch->weights) ? BW_OK : BW_RESOURCE_EXHAUSTED;
}

void bwi_fit_state_close(bwi_fit_state *s)
{
    if (s->model) {
        bwi_release(s->model->ctx, s->totals);
        bwi_release(s->model->ctx, s->best);
    }
    s->totals = NULL;
    s->best = NULL;
}

int bwi_fit_state_list(bwi_fit_state *s, int64_t rows, bwi_state *state)
{
    bwi_optimizer *o = &s->session->training->optimizer;
    int64_t totals = bwi_session_total_count(s->session), history[2] = {rows, s->history->width};
    bwi_training_state(s->model, state);
    forget(state, "optimizer/learning_rate");
    bwi_state_add(state, BW_F32, 0, NULL, &o->learning_rate, "fit/learning_rate");
    add_counters(state, s, 1, "fit/scheduled", get_schedule, set_schedule);
    bwi_state_add(state, BW_I64, 0, NULL, &o->powers.t, "fit/powers");
    bwi_state_add(state, BW_F64, 0, NULL, &o->powers.first, "fit/first_power");
    bwi_state_add(state, BW_F64, 0, NULL, &o->powers.second, "fit/second_power");
    list_cursor(&s->cursor, state);
    if (s->history->noise) {
        add_noise(s->history->noise, state);
    }
    bwi_state_value *sums = bwi_state_add(state, BW_F64, 1, &totals, NULL, "fit/totals");
    if (sums) {
        sums->object = s;
        sums->get = get_totals;
        sums->set = set_totals;
    }
    if (s->watch->stops) {
        bwi_state_add(state, BW_F64, 0, NULL, &s->watch->best, "fit/early_stopping_best");
        add_counters(state, s, 3, "fit/early_stopping", get_stop, set_stop);
    }
    if (s->watch->weights) {
        add_best(s, state);
    }
    if (s->watch->reduces) {
        bwi_state_add(state, BW_F64, 0, NULL, &s->watch->rate_best, "fit/plateau_best");
        add_counters(state, s, 2, "fit/plateau", get_plateau, set_plateau);
    }
    bwi_state_add(state, BW_F64, 2, history, s->history->values, BWI_STATE_HISTORY);
    return state->count - 1;
}
