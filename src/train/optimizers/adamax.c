/* Adamax: m += (1 - b1)(g - m); u = max(b2 u, |g|); w -= lr m / ((1 - b1^t)(u + eps)). */
#include "train/optimizers/rows.h"

enum { RATE, BETA1, BETA2, EPSILON, DECAY, COMMON, COUNT = COMMON + BWI_COMMON_COUNT };

static const bwi_argument arguments[COUNT] = {
    [RATE] = RATE_ARGUMENT("0.001"),
    [BETA1] = {"beta_1", NULL, BWI_FLOAT, "0.9", 0, BETA_MOST, NULL},
    [BETA2] = {"beta_2", NULL, BWI_FLOAT, "0.999", 0, 1, NULL},
    [EPSILON] = {"epsilon", NULL, BWI_FLOAT, "1e-7", 0, 1e9, NULL},
    [DECAY] = DECAY_ARGUMENT(""),
    COMMON_ARGUMENTS(COMMON),
};

static void begin(bwi_optimizer *o)
{
    double beta1 = o->values[BETA1].number;
    o->step.rule = BWI_RULE_ADAMAX;
    o->step.rate = (float)(o->rate / (1 - pow(beta1, (double)(o->iterations + 1))));
    o->step.beta1 = beta1;
    o->step.beta2 = o->values[BETA2].number;
    o->step.epsilon = bwi_positive_epsilon(o->values[EPSILON].number);
}

const bwi_optimizer_row bwi_optimizer_adamax = {.name = "adamax",
                                                .class_name = "Adamax",
                                                .arguments = arguments,
                                                .argument_count = COUNT,
                                                .decay = DECAY,
                                                .common = COMMON,
                                                .paired = 2,
                                                .slot_names = {"momentum", "norm"},
                                                .begin = begin};
