/*
 * RMSprop: v = rho v + (1 - rho) g g; step = lr g / sqrt(v + eps); w -= step, or with momentum b = mu b + step; w -= b.
 * Centered: a = rho a + (1 - rho) g, and v - a a replaces v under the root. The difference is a variance, so it is set to zero
 * where rounding makes it negative.
 */
#include "train/optimizers/rows.h"

enum { RATE, RHO, MOMENTUM, EPSILON, CENTERED, DECAY, COMMON, COUNT = COMMON + BWI_COMMON_COUNT };

static const bwi_argument arguments[COUNT] = {
    [RATE] = RATE_ARGUMENT("0.001"),
    [RHO] = {"rho", NULL, BWI_FLOAT, "0.9", 0, 1, NULL},
    [MOMENTUM] = {"momentum", NULL, BWI_FLOAT, "0", 0, 1, NULL},
    [EPSILON] = {"epsilon", NULL, BWI_FLOAT, "1e-7", 0, 1e9, NULL},
    [CENTERED] = {"centered", NULL, BWI_BOOL, "false", 0, 0, NULL},
    [DECAY] = DECAY_ARGUMENT(""),
    COMMON_ARGUMENTS(COMMON),
};

static bool with_momentum(const bwi_optimizer *o)
{
    return o->values[MOMENTUM].number > 0;
}

static int slots(const bwi_optimizer *o, const char *names[BWI_MAX_SLOTS])
{
    int count = 0;
    names[count++] = "velocity";
    if (with_momentum(o)) {
        names[count++] = "momentum";
    }
    if (o->values[CENTERED].flag) {
        names[count++] = "average_gradient";
    }
    return count;
}

static void begin(bwi_optimizer *o)
{
    o->step.rule = BWI_RULE_RMSPROP;
    o->step.rate = (float)o->rate;
    o->step.beta2 = o->values[RHO].number;
    o->step.momentum = (float)o->values[MOMENTUM].number;
    o->step.centered = o->values[CENTERED].flag;
    o->step.epsilon = bwi_positive_epsilon(o->values[EPSILON].number);
}

const bwi_optimizer_row bwi_optimizer_rmsprop = {.name = "rmsprop",
                                                 .class_name = "RMSprop",
                                                 .arguments = arguments,
                                                 .argument_count = COUNT,
                                                 .decay = DECAY,
                                                 .common = COMMON,
                                                 .slots = slots,
                                                 .begin = begin};
