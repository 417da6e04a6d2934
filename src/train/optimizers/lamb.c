/* Lamb: Adam's m and v; u = m / (1 - b1^t) / (sqrt(v / (1 - b2^t)) + eps); w -= lr |w| / |u| u, where norms are of a whole
 * variable. */
#include "train/optimizers/rows.h"

enum { RATE, BETA1, BETA2, EPSILON, DECAY, COMMON, COUNT = COMMON + BWI_COMMON_COUNT };

static const bwi_argument arguments[COUNT] = {
    [RATE] = RATE_ARGUMENT("0.001"),
    [BETA1] = {"beta_1", NULL, BWI_FLOAT, "0.9", 0, BETA_MOST, NULL},
    [BETA2] = {"beta_2", NULL, BWI_FLOAT, "0.999", 0, BETA_MOST, NULL},
    [EPSILON] = {"epsilon", NULL, BWI_FLOAT, "1e-7", 0, 1e9, NULL},
    [DECAY] = DECAY_ARGUMENT(""),
    COMMON_ARGUMENTS(COMMON),
};

static void begin(bwi_optimizer *o)
{
    double b1 = o->values[BETA1].number, b2 = o->values[BETA2].number;
    bwi_optimizer_take_powers(o, b1, b2);
    o->step.rule = BWI_RULE_LAMB;
    o->step.rate = (float)o->rate;
    o->step.beta1 = b1;
    o->step.beta2 = b2;
    o->step.of_mean = (float)(1 / (1 - o->powers.first));
    o->step.of_square = (float)(1 / (1 - o->powers.second));
    o->step.epsilon = bwi_positive_epsilon(o->values[EPSILON].number);
}

const bwi_optimizer_row bwi_optimizer_lamb = {.name = "lamb",
                                              .class_name = "Lamb",
                                              .arguments = arguments,
                                              .argument_count = COUNT,
                                              .decay = DECAY,
                                              .common = COMMON,
                                              .paired = 2,
                                              .slot_names = {"momentum", "velocity"},
                                              .trusts = true,
                                              .begin = begin};
