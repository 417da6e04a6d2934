/*
 * The gradient noise scale, estimated from the lanes of a step. A batch of N samples is spread over L lanes; lane l has n_l samples
 * and the gradient sum s_l. For per-sample gradients with mean g and covariance trace S, these estimates are unbiased, whatever the
 * n_l:
 *
 *     S     = (sum_l |s_l|^2 / n_l - |sum_l s_l|^2 / N) / (L - 1)
 *     |g|^2 = |sum_l s_l|^2 / N^2 - S / N
 *
 * The scale S / |g|^2 is the batch size at which the noise of a step equals its signal. Numerators and denominators are averaged
 * over steps before they are divided, since a mean of ratios would be biased. The interval is Fieller's: all ratios r for which the
 * mean of S - r |g|^2 does not differ from zero by more than its error. If the error of |g|^2 reaches zero, no ratio is excluded,
 * and the scale is reported as undetermined.
 *
 * An optimizer that divides by the root mean square v of the gradients sees different noise, so the scale is also estimated with
 * every element divided in this way. Its update has the present gradient in v, at a share of 1 - beta: without it an element that
 * has had no gradient yet, such as the weight of a pixel that is hardly ever lit, would be divided by almost nothing, and drown all
 * others. The present gradient itself must not be used, since an estimate whose divisor depends on the same samples is biased, and
 * with ranks it is not known yet. The mean of v over those elements that have had a gradient stands for it.
 */
#include "train/optimizers/rows.h"

#include <math.h>
#include <string.h>

/* Sums over the steps, of a = S and b = |g|^2, their squares and their product. */
typedef struct tally {
    double n, a, b, aa, ab, bb;
} tally;

/* Raw, and as the optimizer sees it, over all variables. */
typedef struct both {
    tally raw, seen;
} both;

/* An interval of training. */
typedef struct interval {
    int64_t updates; /* of the run, up to its last measurement */
    both tallies;
} interval;

enum { MOST_INTERVALS = 64 };

struct bwi_noise {
    const char *refusal; /* why there is no estimate; NULL: there can be one */
    int64_t steps;
    int variables;
    both all, epoch;
    int intervals;
    int64_t each; /* measurements of a full interval; the last one may have fewer */
    interval interval[MOST_INTERVALS];
    tally layers[]; /* for each variable; then, for each, what a step needs in between */
};

/* Of one variable or of all in one step, raw and as the optimizer sees it. */
typedef struct spread {
    double between[2]; /* sum_l |s_l|^2 / n_l */
    double sum[2];     /* |sum_l s_l|^2 */
} spread;

static size_t numbers_bytes(int variables)
{
    return sizeof(bwi_noise) + (size_t)variables * sizeof(tally);
}

size_t bwi_noise_bytes(int variables)
{
    return numbers_bytes(variables) + (size_t)variables * sizeof(spread);
}

/* There is no estimate with whole-batch statistics, since a sample's gradient then depends on the others in its batch. */
static const char *refusal_of(const bwi_session *s)
{
    for (int n = 0; n < s->graph.count; n++) {
        if (s->graph.nodes[n]->op->flags & BWI_OP_WHOLE_BATCH) {
            return "with BatchNormalization the gradient of a sample depends on its batch";
        }
    }
    return NULL;
}

bwi_noise *bwi_noise_new(bw_context *ctx, const bwi_session *session)
{
    bwi_noise *noise = bwi_allocate(ctx, 1, bwi_noise_bytes(session->graph.variable_count));
    if (noise) {
        noise->variables = session->graph.variable_count;
        noise->each = 1;
        noise->refusal = refusal_of(session);
    }
    return noise;
}

/* Everything but why there is no estimate, which is known anew, is numbers. */
enum { BEGIN = offsetof(bwi_noise, steps) };

size_t bwi_noise_state_bytes(const bwi_noise *noise)
{
    return numbers_bytes(noise->variables) - BEGIN;
}

void bwi_noise_get(void *object, void *values)
{
    const bwi_noise *noise = object;
    memcpy(values, (const char *)noise + BEGIN, bwi_noise_state_bytes(noise));
}

void bwi_noise_set(void *object, const void *values)
{
    bwi_noise *noise = object;
    int variables = noise->variables;
    char *numbers = (char *)noise + BEGIN;
    memcpy(numbers, values, numbers_bytes(variables) - BEGIN);
    noise->variables = variables;
    noise->intervals = noise->intervals < 0 ? 0 : noise->intervals > MOST_INTERVALS ? MOST_INTERVALS : noise->intervals;
    noise->each = noise->each > 0 ? noise->each : 1;
}

static double between_lanes(int lanes, const int64_t *samples, const double *squares)
{
    double between = 0;
    for (int lane = 0; lane < lanes; lane++) {
        between += squares[lane] / (double)samples[lane];
    }
    return between;
}

static double sum_samples(int lanes, const int64_t *samples)
{
    double count = 0;
    for (int lane = 0; lane < lanes; lane++) {
        count += (double)samples[lane];
    }
    return count;
}

static void estimate(int lanes, double count, double between, double sum, double *trace, double *signal)
{
    *trace = (between - sum / count) / (lanes - 1);
    *signal = sum / (count * count) - *trace / count;
}

void bwi_noise_estimate(int lanes, const int64_t *samples, const double *squares, double *trace, double *signal)
{
    estimate(lanes, sum_samples(lanes, samples), between_lanes(lanes, samples, squares), squares[lanes], trace, signal);
}

static void count_step(tally *t, int lanes, double count, double between, double sum)
{
    double a, b;
    estimate(lanes, count, between, sum, &a, &b);
    if (!isfinite(a) || !isfinite(b)) { /* the update is about to be refused */
        return;
    }
    t->n++;
    t->a += a;
    t->b += b;
    t->aa += a * a;
    t->ab += a * b;
    t->bb += b * b;
}

static void add_tally(tally *to, const tally *t)
{
    to->n += t->n;
    to->a += t->a;
    to->b += t->b;
    to->aa += t->aa;
    to->ab += t->ab;
    to->bb += t->bb;
}

static void add_both(both *to, const both *b)
{
    add_tally(&to->raw, &b->raw);
    add_tally(&to->seen, &b->seen);
}

/* When there is no place for another interval, neighbours join, and intervals are twice as long from then on. */
static void log_step(bwi_noise *noise, const both *step, int64_t updates)
{
    if (noise->intervals == 0 || noise->interval[noise->intervals - 1].tallies.raw.n >= (double)noise->each) {
        if (noise->intervals == MOST_INTERVALS) {
            for (int k = 0; k < MOST_INTERVALS / 2; k++) {
                interval joined = noise->interval[2 * k + 1];
                add_both(&joined.tallies, &noise->interval[2 * k].tallies);
                noise->interval[k] = joined;
            }
            noise->intervals = MOST_INTERVALS / 2;
            noise->each *= 2;
        }
        noise->interval[noise->intervals++] = (interval){0};
    }
    interval *last = &noise->interval[noise->intervals - 1];
    last->updates = updates;
    add_both(&last->tallies, step);
}

/* The slot that holds the mean of squared gradients; NULL: there is none, or no gradient yet. */
static const void *second_moment(const bwi_optimizer *o, const bwi_variable *variable)
{
    int count = o->iterations > 0 ? o->slot_count : 0;
    for (int k = 0; k < count; k++) {
        if (strcmp(o->slot_names[k], "velocity") == 0) {
            return o->slots[variable->index * BWI_MAX_SLOTS + k].data;
        }
    }
    return NULL;
}

/* An argument by one of some names; `otherwise`: there is none. */
static double argument_of(const bwi_optimizer *o, const char *const *names, int count, double otherwise)
{
    for (int k = 0; k < o->row->argument_count; k++) {
        for (int n = 0; n < count; n++) {
            if (strcmp(o->row->arguments[k].name, names[n]) == 0) {
                return o->values[k].number;
            }
        }
    }
    return otherwise;
}

/* The share of the next gradient in the mean of squares, after the optimizer's correction. */
static double next_share(const bwi_optimizer *o)
{
    static const char *const averages[] = {"beta_2", "rho", "adam_beta_2"};
    double even = 1 / (double)(o->iterations + 1);
    double beta = argument_of(o, averages, (int)BWI_COUNT(averages), 1 - even);
    return o->powers.t > 0 ? (1 - beta) / (1 - beta * o->powers.second) : 1 - beta;
}

/* How a variable's gradient is looked at: [0] raw, [1] as an optimizer such as Adam scales it. */
typedef struct looks {
    bwi_scaling by[2];
} looks;

static looks looks_of(const bwi_session *s, const bwi_variable *variable)
{
    static const char *const epsilon[] = {"epsilon"};
    const bwi_optimizer *o = &s->training->optimizer;
    looks l = {.by = {{.v = NULL}, {.v = second_moment(o, variable)}}};
    if (l.by[1].v) {
        double correction = o->powers.t > 0 ? 1 / (1 - o->powers.second) : 1, share = next_share(o);
        l.by[1].correction = (1 - share) * correction;
        l.by[1].floor = share * correction * bwi_exec_mean_above_zero(s->exec, variable, l.by[1].v);
        l.by[1].epsilon = (double)bwi_positive_epsilon(argument_of(o, epsilon, 1, 0));
    }
    return l;
}

static double sum_square(bwi_session *s, const bwi_variable *variable, const looks *l, int k)
{
    return bwi_exec_sum_square(s->exec, variable, &l->by[k]);
}

/* While the lanes are separate: what lies between them. A table's records are all there, so their sum is known, too. */
static bw_status look_at_lanes(bwi_session *s, const bwi_variable *variable, int lanes, const int64_t *samples, spread *to)
{
    looks l = looks_of(s, variable);
    bw_status status = BW_OK;
    *to = (spread){.between = {0}};
    for (int k = 0; k < (l.by[1].v ? 2 : 1) && status == BW_OK; k++) {
        double squares[BWI_MAX_LANES] = {0};
        status = bwi_exec_lane_squares(s->exec, variable, &l.by[k], squares);
        to->between[k] = between_lanes(lanes, samples, squares);
        to->sum[k] = bwi_exec_is_dense(s->exec, variable) ? 0 : sum_square(s, variable, &l, k);
    }
    return status;
}

/* Once they are summed, as the update does. */
static void look_at_sum(bwi_session *s, const bwi_variable *variable, spread *to, bool *scaled)
{
    looks l = looks_of(s, variable);
    for (int k = 0; k < (l.by[1].v ? 2 : 1); k++) {
        to->sum[k] += bwi_exec_is_dense(s->exec, variable) ? sum_square(s, variable, &l, k) : 0;
    }
    *scaled = *scaled || l.by[1].v;
}

static void add_spread(spread *to, const spread *s)
{
    for (int k = 0; k < 2; k++) {
        to->sum[k] += s->sum[k];
        to->between[k] += s->between[k];
    }
}

/* Of several ranks only the first one keeps the sum, so the others learn from it what it found. */
static bw_status look(bwi_noise *noise, bwi_session *s, int lanes, const int64_t *samples, spread *spreads, spread *all,
                      bool *scaled)
{
    const bwi_graph *graph = &s->graph;
    double squared, count = sum_samples(lanes, samples);
    bw_status status = BW_OK;
    for (int v = 0; v < graph->variable_count && status == BW_OK; v++) {
        if (graph->variables[v]->trainable) {
            status = look_at_lanes(s, graph->variables[v], lanes, samples, &spreads[v]);
        }
    }
    if (status == BW_OK) {
        status = bwi_exec_norm(s->exec, &squared);
    }
    for (int v = 0; v < graph->variable_count && status == BW_OK; v++) {
        if (graph->variables[v]->trainable) {
            look_at_sum(s, graph->variables[v], &spreads[v], scaled);
        }
    }
    if (status == BW_OK) {
        enum { NUMBERS = sizeof *spreads / sizeof(double) };
        status = bwi_ranks_take_first(graph->ctx, (double *)(void *)spreads, NUMBERS * graph->variable_count);
    }
    for (int v = 0; v < graph->variable_count && status == BW_OK; v++) {
        if (graph->variables[v]->trainable) {
            add_spread(all, &spreads[v]);
            count_step(&noise->layers[v], lanes, count, spreads[v].between[0], spreads[v].sum[0]);
        }
    }
    return status;
}

bw_status bwi_noise_take(bwi_noise *noise, bwi_session *session, int64_t updates)
{
    int64_t samples[BWI_MAX_LANES];
    int lanes = 0;
    bw_status status = noise->refusal ? BW_OK : bwi_exec_lane_samples(session->exec, &lanes, samples);
    if (status != BW_OK || lanes < 2) {
        return status;
    }
    spread all = {.between = {0}};
    bool scaled = false;
    status = look(noise, session, lanes, samples, (spread *)(void *)&noise->layers[noise->variables], &all, &scaled);
    if (status != BW_OK) {
        return status;
    }
    both step = {.raw = {0}};
    double count = sum_samples(lanes, samples);
    noise->steps++;
    count_step(&step.raw, lanes, count, all.between[0], all.sum[0]);
    if (scaled) {
        count_step(&step.seen, lanes, count, all.between[1], all.sum[1]);
    }
    add_both(&noise->all, &step);
    add_both(&noise->epoch, &step);
    log_step(noise, &step, updates);
    return BW_OK;
}

/* Student's quantile for 95 percent, by the Cornish-Fisher expansion around the normal one. */
static double student(double freedom)
{
    double z = 1.959963985, z3 = z * z * z, z5 = z3 * z * z, z7 = z5 * z * z;
    return z + (z3 + z) / (4 * freedom) + (5 * z5 + 16 * z3 + 3 * z) / (96 * freedom * freedom) +
           (3 * z7 + 19 * z5 + 17 * z3 - 15 * z) / (384 * freedom * freedom * freedom);
}

/* The ends of Fieller's interval are the roots of (b^2 - q s_bb) r^2 - 2 (a b - q s_ab) r + (a^2 - q s_aa), where q is the squared
 * quantile and s are the (co)variances of the means. If the signal may be zero, the leading factor is negative and all ratios
 * outside of the roots are possible; a scale is not negative, so the larger root is then the least that it may be. */
static bw_noise_scale scale_of(const tally *t)
{
    bw_noise_scale scale = {.trace = (double)NAN, .signal = (double)NAN, .scale = (double)NAN, .low = 0, .high = (double)INFINITY};
    if (t->n < 2) {
        return scale;
    }
    double n = t->n, a = t->a / n, b = t->b / n;
    double unit = 1 / (n * (n - 1)), q = student(n - 1) * student(n - 1);
    double aa = (t->aa - n * a * a) * unit, ab = (t->ab - n * a * b) * unit, bb = (t->bb - n * b * b) * unit;
    scale.trace = a;
    scale.signal = b;
    double square = b * b - q * bb, middle = a * b - q * ab, rest = a * a - q * aa;
    double root = middle * middle - square * rest;
    if (square < 0 && root > 0 && (middle + sqrt(root)) / square < 0 && (middle - sqrt(root)) / square > 0) {
        scale.low = (middle - sqrt(root)) / square;
    }
    if (b <= 0 || square <= 0 || root < 0) {
        return scale;
    }
    scale.scale = a / b > 0 ? a / b : 0;
    scale.low = (middle - sqrt(root)) / square;
    scale.low = scale.low > 0 ? scale.low : 0;
    scale.high = (middle + sqrt(root)) / square;
    scale.determined = true;
    return scale;
}

bw_noise_facts bw_history_noise(const bw_history *history)
{
    const bwi_noise *noise = history ? history->noise : NULL;
    tally none = {0};
    return (bw_noise_facts){.steps = noise ? noise->steps : 0,
                            .variables = noise ? noise->variables : 0,
                            .raw = scale_of(noise ? &noise->all.raw : &none),
                            .seen = scale_of(noise ? &noise->all.seen : &none),
                            .refusal = noise ? noise->refusal : "the noise scale was not asked for"};
}

bw_noise_scale bw_history_noise_of(const bw_history *history, int variable)
{
    const bwi_noise *noise = history ? history->noise : NULL;
    tally none = {0};
    return scale_of(noise && variable >= 0 && variable < noise->variables ? &noise->layers[variable] : &none);
}

int bw_history_noise_points(const bw_history *history)
{
    return history && history->noise ? history->noise->intervals : 0;
}

bw_noise_point bw_history_noise_point(const bw_history *history, int index)
{
    if (index < 0 || index >= bw_history_noise_points(history)) {
        tally none = {0};
        return (bw_noise_point){.raw = scale_of(&none), .seen = scale_of(&none)};
    }
    const interval *at = &history->noise->interval[index];
    return (bw_noise_point){.updates = at->updates,
                            .steps = (int64_t)at->tallies.raw.n,
                            .raw = scale_of(&at->tallies.raw),
                            .seen = scale_of(&at->tallies.seen)};
}

/* Fieller's interval again, of b / c with c = b + a / batch. */
static bw_estimate share_of(const tally *t, double batch)
{
    bw_estimate share = {.value = (double)NAN, .low = 0, .high = 1};
    if (t->n < 2) {
        return share;
    }
    double n = t->n, a = t->a / n, b = t->b / n, c = b + a / batch;
    double unit = 1 / (n * (n - 1)), q = student(n - 1) * student(n - 1);
    double aa = (t->aa - n * a * a) * unit, ab = (t->ab - n * a * b) * unit, bb = (t->bb - n * b * b) * unit;
    double bc = bb + ab / batch, cc = bb + 2 * ab / batch + aa / (batch * batch);
    double square = c * c - q * cc, middle = b * c - q * bc, root = middle * middle - square * (b * b - q * bb);
    share.value = c > 0 ? fmin(fmax(b / c, 0), 1) : 0;
    if (square > 0 && root >= 0) {
        share.low = fmin(fmax((middle - sqrt(root)) / square, 0), 1);
        share.high = fmin(fmax((middle + sqrt(root)) / square, 0), 1);
    }
    return share;
}

bw_estimate bwi_history_signal_share(const bw_history *history, double from, double to, bool seen, double batch)
{
    both sum = {.raw = {0}};
    double done = 0, all = (double)(history && history->noise ? history->noise->steps : 0);
    for (int k = 0; k < bw_history_noise_points(history); k++) {
        const both *tallies = &history->noise->interval[k].tallies;
        double middle = done + tallies->raw.n / 2;
        if (middle >= from * all && middle < to * all) {
            add_both(&sum, tallies);
        }
        done += tallies->raw.n;
    }
    return share_of(seen ? &sum.seen : &sum.raw, batch);
}

/* An epoch in which the noise drowns the gradient is looked at together with the next one, until there is a value. */
double bwi_noise_end_epoch(bwi_noise *noise)
{
    bw_noise_scale scale = scale_of(noise->epoch.seen.n > 0 ? &noise->epoch.seen : &noise->epoch.raw);
    if (scale.determined) {
        noise->epoch = (both){.raw = {0}};
    }
    return scale.scale;
}
