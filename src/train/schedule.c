/* Schedules of the learning rate, with Keras's formulas. */
#include "train/internal.h"

#include <math.h>
#include <string.h>

static float number(const bwi_schedule *s, int argument)
{
    return (float)s->values[argument].number;
}

/* clang-format off */
#define RATE_FROM(name) {name, NULL, BWI_FLOAT, NULL, 0, 1e9, NULL}
#define STEPS(name) {name, NULL, BWI_FLOAT, NULL, 1e-6, 1e15, NULL}
/* clang-format on */

/* ---- rate0 decay^(step / steps); rate0 / (1 + decay step / steps); staircase: whole quotients only ---- */

enum { DECAY_RATE0, DECAY_STEPS, DECAY_RATE, DECAY_STAIRCASE, DECAY_COUNT };

static const bwi_argument decay_arguments[DECAY_COUNT] = {
    [DECAY_RATE0] = RATE_FROM("initial_learning_rate"),
    [DECAY_STEPS] = STEPS("decay_steps"),
    [DECAY_RATE] = {"decay_rate", NULL, BWI_FLOAT, NULL, 0, 1e9, NULL},
    [DECAY_STAIRCASE] = {"staircase", NULL, BWI_BOOL, "false", 0, 0, NULL},
};

static float decay_periods(const bwi_schedule *s, float step)
{
    float periods = step / number(s, DECAY_STEPS);
    return s->values[DECAY_STAIRCASE].flag ? floorf(periods) : periods;
}

static float exponential(const bwi_schedule *s, float step)
{
    return number(s, DECAY_RATE0) * powf(number(s, DECAY_RATE), decay_periods(s, step));
}

static float inverse_time(const bwi_schedule *s, float step)
{
    return number(s, DECAY_RATE0) / (1 + number(s, DECAY_RATE) * decay_periods(s, step));
}

/* ---- (rate0 - end) (1 - step / steps)^power + end; cycle: `steps` grows to the next multiple that is not below the step ---- */

enum { POLY_RATE0, POLY_STEPS, POLY_END, POLY_POWER, POLY_CYCLE, POLY_COUNT };

static const bwi_argument polynomial_arguments[POLY_COUNT] = {
    [POLY_RATE0] = RATE_FROM("initial_learning_rate"),
    [POLY_STEPS] = STEPS("decay_steps"),
    [POLY_END] = {"end_learning_rate", NULL, BWI_FLOAT, "0.0001", 0, 1e9, NULL},
    [POLY_POWER] = {"power", NULL, BWI_FLOAT, "1", 0, 1e6, NULL},
    [POLY_CYCLE] = {"cycle", NULL, BWI_BOOL, "false", 0, 0, NULL},
};

static float polynomial(const bwi_schedule *s, float step)
{
    float steps = number(s, POLY_STEPS), end = number(s, POLY_END);
    if (s->values[POLY_CYCLE].flag) {
        steps *= step > 0 ? ceilf(step / steps) : 1;
    } else {
        step = fminf(step, steps);
    }
    return (number(s, POLY_RATE0) - end) * powf(1 - step / steps, number(s, POLY_POWER)) + end;
}

/* ---- Half a cosine, from 1 down to alpha, after a straight line up to warmup_target ---- */

enum { COS_RATE0, COS_STEPS, COS_ALPHA, COS_TARGET, COS_WARMUP, COS_COUNT };

static const bwi_argument cosine_arguments[COS_COUNT] = {
    [COS_RATE0] = RATE_FROM("initial_learning_rate"),
    [COS_STEPS] = STEPS("decay_steps"),
    [COS_ALPHA] = {"alpha", NULL, BWI_FLOAT, "0", 0, 1e9, NULL},
    [COS_TARGET] = {"warmup_target", NULL, BWI_FLOAT, "", 0, 1e9, NULL},
    [COS_WARMUP] = {"warmup_steps", NULL, BWI_FLOAT, "0", 0, 1e15, NULL},
};

static float half_cosine(float part)
{
    return 0.5F * (1 + cosf((float)M_PI * part));
}

static float cosine(const bwi_schedule *s, float step)
{
    float from = number(s, COS_RATE0), steps = number(s, COS_STEPS), alpha = number(s, COS_ALPHA);
    if (s->values[COS_TARGET].given) {
        float target = number(s, COS_TARGET), warmup = number(s, COS_WARMUP);
        if (step < warmup) {
            return (target - from) * (step / warmup) + from;
        }
        from = target;
        step -= warmup;
    }
    return from * ((1 - alpha) * half_cosine(fminf(step, steps) / steps) + alpha);
}

/* ---- Half cosines with restarts: each period is t_mul times as long and m_mul times as high as the one before ---- */

enum { RESTART_RATE0, RESTART_STEPS, RESTART_T, RESTART_M, RESTART_ALPHA, RESTART_COUNT };

static const bwi_argument restart_arguments[RESTART_COUNT] = {
    [RESTART_RATE0] = RATE_FROM("initial_learning_rate"),
    [RESTART_STEPS] = STEPS("first_decay_steps"),
    [RESTART_T] = {"t_mul", NULL, BWI_FLOAT, "2", 1, 1e6, NULL},
    [RESTART_M] = {"m_mul", NULL, BWI_FLOAT, "1", 0, 1e6, NULL},
    [RESTART_ALPHA] = {"alpha", NULL, BWI_FLOAT, "0", 0, 1e9, NULL},
};

/* The step at which period r begins, in units of the first period: 1 + t + ... + t^(r-1). */
static double period_begin(double t, double r)
{
    return (pow(t, r) - 1) / (t - 1);
}

/* At the start of a period the quotient of logarithms may be rounded either way, so it is corrected. */
static float restarts(const bwi_schedule *s, float step)
{
    double periods = (double)step / s->values[RESTART_STEPS].number, t = s->values[RESTART_T].number, restart;
    if (t > 1) {
        restart = floor(log(1 + periods * (t - 1)) / log(t));
        restart += period_begin(t, restart + 1) <= periods ? 1 : 0;
        restart -= period_begin(t, restart) > periods ? 1 : 0;
        periods = (periods - period_begin(t, restart)) / pow(t, restart);
    } else {
        restart = floor(periods);
        periods -= restart;
    }
    float alpha = number(s, RESTART_ALPHA), height = powf(number(s, RESTART_M), (float)restart);
    return number(s, RESTART_RATE0) * ((1 - alpha) * height * half_cosine((float)periods) + alpha);
}

/* ---- Constant pieces ---- */

static const bwi_argument piecewise_arguments[] = {
    {"boundaries", NULL, BWI_CALL, NULL, 0, 0, NULL},
    {"values", NULL, BWI_CALL, NULL, 0, 0, NULL},
};

static float piecewise(const bwi_schedule *s, float step)
{
    int k = 0;
    while (k < s->boundary_count && (double)step > s->boundaries[k]) {
        k++;
    }
    return (float)s->rates[k];
}

static bw_status read_list(bw_context *ctx, const char *what, const char *name, const bwi_term *term, double *numbers, int most,
                           int *count)
{
    if (term->length > 0 || term->count < 1 || term->count > most) {
        return bwi_fail_text(ctx, BW_INVALID_ARGUMENT, what, term->argument, term->column,
                             "%s: expected a list of 1 to %d numbers, as in (1,2,3)", name, most);
    }
    for (int i = 0; i < term->count; i++) {
        const bwi_term *item = &term->items[i];
        if (item->label || item->called || item->length == 0 ||
            !bwi_parse_double(item->text, item->text + item->length, &numbers[i]) || !(numbers[i] >= 0)) {
            return bwi_fail_text(ctx, BW_INVALID_ARGUMENT, what, item->argument, item->column,
                                 "%s: expected a number of 0 or more, found '%.*s'", name, item->length > 0 ? item->length : 1,
                                 item->length > 0 ? item->text : "(");
        }
    }
    *count = term->count;
    return BW_OK;
}

static bw_status check_pieces(bw_context *ctx, const char *what, const bwi_schedule *s, int rates)
{
    if (rates != s->boundary_count + 1) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT,
                        "%s: piecewise_constant_decay: expected one value more than boundaries, got %d and %d", what, rates,
                        s->boundary_count);
    }
    for (int k = 1; k < s->boundary_count; k++) {
        if (!(s->boundaries[k] > s->boundaries[k - 1])) {
            return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: piecewise_constant_decay: boundaries must rise, got %g after %g", what,
                            s->boundaries[k], s->boundaries[k - 1]);
        }
    }
    return BW_OK;
}

/* The lists may have any length, which the general reader of arguments cannot handle. */
static bw_status read_pieces(bw_context *ctx, bwi_schedule *s, const char *what, const bwi_term *term)
{
    const bwi_term *lists[2] = {NULL, NULL};
    for (int i = 0; i < term->count; i++) {
        const bwi_term *item = &term->items[i];
        int at = i;
        if (item->label) {
            bwi_term label = {.text = item->label, .length = item->label_length};
            at = bwi_term_is(&label, "boundaries") ? 0 : bwi_term_is(&label, "values") ? 1 : 2;
        }
        if (at > 1 || lists[at]) {
            return bwi_fail_text(ctx, BW_INVALID_ARGUMENT, what, item->argument, item->column,
                                 "piecewise_constant_decay takes boundaries and values, once each");
        }
        lists[at] = item;
    }
    int rates = 0;
    bw_status status = BW_OK;
    if (!lists[0] || !lists[1]) {
        status = bwi_fail_text(ctx, BW_INVALID_ARGUMENT, what, term->argument, term->column,
                               "piecewise_constant_decay: %s must be given", lists[0] ? "values" : "boundaries");
    }
    if (status == BW_OK) {
        status = read_list(ctx, what, "boundaries", lists[0], s->boundaries, BWI_MAX_PIECES, &s->boundary_count);
    }
    if (status == BW_OK) {
        status = read_list(ctx, what, "values", lists[1], s->rates, BWI_MAX_PIECES + 1, &rates);
    }
    return status == BW_OK ? check_pieces(ctx, what, s, rates) : status;
}

const bwi_schedule_row bwi_schedule_rows[] = {
    {"exponential_decay", "ExponentialDecay", decay_arguments, DECAY_COUNT, exponential},
    {"inverse_time_decay", "InverseTimeDecay", decay_arguments, DECAY_COUNT, inverse_time},
    {"polynomial_decay", "PolynomialDecay", polynomial_arguments, POLY_COUNT, polynomial},
    {"piecewise_constant_decay", "PiecewiseConstantDecay", piecewise_arguments, BWI_COUNT(piecewise_arguments), piecewise},
    {"cosine_decay", "CosineDecay", cosine_arguments, COS_COUNT, cosine},
    {"cosine_decay_restarts", "CosineDecayRestarts", restart_arguments, RESTART_COUNT, restarts},
    {0},
};

static bw_status refuse(bw_context *ctx, const char *what, const bwi_term *term)
{
    bwi_text known = {.ctx = ctx};
    for (const bwi_schedule_row *row = bwi_schedule_rows; row->name; row++) {
        bwi_text_add(&known, ", %s", row->name);
    }
    bw_status status = bwi_fail_text(ctx, BW_INVALID_ARGUMENT, what, term->argument, term->column,
                                     "learning_rate: there is no schedule '%.*s'; there are%s", term->length, term->text,
                                     known.bytes ? known.bytes + 1 : "");
    bwi_text_free(&known);
    return status;
}

bw_status bwi_schedule_read(bw_context *ctx, bwi_schedule *schedule, const char *what, const bwi_term *term)
{
    const bwi_schedule_row *row = bwi_schedule_rows;
    while (row->name && !bwi_term_resembles(term, row->name)) {
        row++;
    }
    if (!row->name) {
        return refuse(ctx, what, term);
    }
    *schedule = (bwi_schedule){.row = row};
    if (row->rate == piecewise) {
        return read_pieces(ctx, schedule, what, term);
    }
    char whole[64];
    snprintf(whole, sizeof whole, "%s: %s", what, row->name);
    return bwi_arguments_read(ctx, whole, term, row->arguments, row->argument_count, schedule->values);
}
