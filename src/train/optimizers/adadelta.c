/*
 * Adadelta: s = rho s + (1 - rho) g g; d = g sqrt(u + eps) / sqrt(s + eps); u = rho u + (1 - rho) d d; w -= lr d.
 */
#include "train/optimizers/rows.h"

enum { RATE, RHO, EPSILON, DECAY, COMMON, COUNT = COMMON + BWI_COMMON_COUNT };

static const bwi_argument arguments[COUNT] = {
    [RATE] = RATE_ARGUMENT("0.001"),
    [RHO] = {"rho", NULL, BWI_FLOAT, "0.95", 0, 1, NULL},
    [EPSILON] = {"epsilon", NULL, BWI_FLOAT, "1e-7", 0, 1e9, NULL},
    [DECAY] = DECAY_ARGUMENT(""),
    COMMON_ARGUMENTS(COMMON),
};

static void begin(bwi_optimizer *o)
{
    o->step.rule = BWI_RULE_ADADELTA;
    o->step.rate = (float)o->rate;
    o->step.beta2 = o->values[RHO].number;
    o->step.epsilon = bwi_positive_epsilon(o->values[EPSILON].number);
}

const bwi_optimizer_row bwi_optimizer_adadelta = {.name = "adadelta",
                                                  .class_name = "Adadelta",
                                                  .arguments = arguments,
                                                  .argument_count = COUNT,
                                                  .decay = DECAY,
                                                  .common = COMMON,
                                                  .paired = 2,
                                                  .slot_names = {"accumulated_grad", "accumulated_delta_var"},
                                                  .begin = begin};
