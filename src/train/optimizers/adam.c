/*
 * Adam and AdamW, which differ only in the order and the defaults of their arguments (AdamW decays weights unless told not to):
 *   m += (1 - b1)(g - m); v += (1 - b2)(g g - v); w -= a m / (sqrt(v) + eps), a = lr sqrt(1 - b2^t) / (1 - b1^t).
 * AMSGrad replaces v by the largest v so far.
 */
#include "train/optimizers/rows.h"

/* Counted from the first of these arguments in each row. */
enum { BETA1, BETA2, EPSILON, AMSGRAD };

enum { ADAM_RATE, ADAM_FIRST, ADAM_DECAY = ADAM_FIRST + AMSGRAD + 1, ADAM_COMMON, ADAM_COUNT = ADAM_COMMON + BWI_COMMON_COUNT };
enum {
    ADAMW_RATE,
    ADAMW_DECAY,
    ADAMW_FIRST,
    ADAMW_COMMON = ADAMW_FIRST + AMSGRAD + 1,
    ADAMW_COUNT = ADAMW_COMMON + BWI_COMMON_COUNT
};

/* clang-format off */
#define OWN_ARGUMENTS(first)                                                      \
    [(first) + BETA1] = {"beta_1", NULL, BWI_FLOAT, "0.9", 0, BETA_MOST, NULL},   \
    [(first) + BETA2] = {"beta_2", NULL, BWI_FLOAT, "0.999", 0, BETA_MOST, NULL}, \
    [(first) + EPSILON] = {"epsilon", NULL, BWI_FLOAT, "1e-7", 0, 1e9, NULL},     \
    [(first) + AMSGRAD] = {"amsgrad", NULL, BWI_BOOL, "false", 0, 0, NULL}
/* clang-format on */

static const bwi_argument adam_arguments[ADAM_COUNT] = {
    [ADAM_RATE] = RATE_ARGUMENT("0.001"),
    OWN_ARGUMENTS(ADAM_FIRST),
    [ADAM_DECAY] = DECAY_ARGUMENT(""),
    COMMON_ARGUMENTS(ADAM_COMMON),
};

static const bwi_argument adamw_arguments[ADAMW_COUNT] = {
    [ADAMW_RATE] = RATE_ARGUMENT("0.001"),
    [ADAMW_DECAY] = DECAY_ARGUMENT("0.004"),
    OWN_ARGUMENTS(ADAMW_FIRST),
    COMMON_ARGUMENTS(ADAMW_COMMON),
};

static int slots_from(const bwi_optimizer *o, const char *names[BWI_MAX_SLOTS], int first)
{
    names[0] = "momentum";
    names[1] = "velocity";
    names[2] = "velocity_hat";
    return o->values[first + AMSGRAD].flag ? 3 : 2;
}

/* Computes the power by squaring, since the C library's pow would touch pages of tables in the middle of training. */
static double power(double base, int64_t exponent)
{
    double product = 1;
    for (; exponent > 0; exponent >>= 1, base *= base) {
        product *= exponent & 1 ? base : 1;
    }
    return product;
}

/* Gets b1^t and b2^t from those of the last update by one multiplication, and computes them afresh at every multiple of ANEW, so
 * that they depend on t alone, no matter where training began. */
void bwi_optimizer_take_powers(bwi_optimizer *o, double b1, double b2)
{
    enum { ANEW = 64 };
    int64_t t = o->iterations + 1;
    if (o->powers.t == 0 || o->powers.t + 1 != t || t % ANEW == 0) {
        o->powers.first = power(b1, t - t % ANEW);
        o->powers.second = power(b2, t - t % ANEW);
        o->powers.t = t - t % ANEW;
    }
    for (; o->powers.t < t; o->powers.t++) {
        o->powers.first *= b1;
        o->powers.second *= b2;
    }
}

static void begin_from(bwi_optimizer *o, int first)
{
    double b1 = o->values[first + BETA1].number, b2 = o->values[first + BETA2].number;
    bwi_optimizer_take_powers(o, b1, b2);
    double corrected = sqrt(1 - o->powers.second) / (1 - o->powers.first);
    o->step.rule = o->values[first + AMSGRAD].flag ? BWI_RULE_AMSGRAD : BWI_RULE_ADAM;
    o->step.rate = (float)(o->rate * corrected);
    o->step.beta1 = b1;
    o->step.beta2 = b2;
    o->step.epsilon = bwi_positive_epsilon(o->values[first + EPSILON].number);
}

static int adam_slots(const bwi_optimizer *o, const char *names[BWI_MAX_SLOTS])
{
    return slots_from(o, names, ADAM_FIRST);
}

static int adamw_slots(const bwi_optimizer *o, const char *names[BWI_MAX_SLOTS])
{
    return slots_from(o, names, ADAMW_FIRST);
}

static void adam_begin(bwi_optimizer *o)
{
    begin_from(o, ADAM_FIRST);
}

static void adamw_begin(bwi_optimizer *o)
{
    begin_from(o, ADAMW_FIRST);
}

const bwi_optimizer_row bwi_optimizer_adam = {.name = "adam",
                                              .class_name = "Adam",
                                              .arguments = adam_arguments,
                                              .argument_count = ADAM_COUNT,
                                              .decay = ADAM_DECAY,
                                              .common = ADAM_COMMON,
                                              .paired = 2,
                                              .slots = adam_slots,
                                              .begin = adam_begin};

const bwi_optimizer_row bwi_optimizer_adamw = {.name = "adamw",
                                               .class_name = "AdamW",
                                               .arguments = adamw_arguments,
                                               .argument_count = ADAMW_COUNT,
                                               .decay = ADAMW_DECAY,
                                               .common = ADAMW_COMMON,
                                               .paired = 2,
                                               .slots = adamw_slots,
                                               .begin = adamw_begin};
