/* Lion: w -= lr sign(b1 m + (1 - b1) g); m = b2 m + (1 - b2) g. sign(0) is 0. */
#include "train/optimizers/rows.h"

enum { RATE, BETA1, BETA2, DECAY, COMMON, COUNT = COMMON + BWI_COMMON_COUNT };

static const bwi_argument arguments[COUNT] = {
    [RATE] = RATE_ARGUMENT("0.001"),
    [BETA1] = {"beta_1", NULL, BWI_FLOAT, "0.9", 1e-9, 1, NULL},
    [BETA2] = {"beta_2", NULL, BWI_FLOAT, "0.99", 0, 1, NULL},
    [DECAY] = DECAY_ARGUMENT(""),
    COMMON_ARGUMENTS(COMMON),
};

static void begin(bwi_optimizer *o)
{
    o->step.rule = BWI_RULE_LION;
    o->step.rate = (float)o->rate;
    o->step.beta1 = o->values[BETA1].number;
    o->step.beta2 = o->values[BETA2].number;
}

const bwi_optimizer_row bwi_optimizer_lion = {.name = "lion",
                                              .class_name = "Lion",
                                              .arguments = arguments,
                                              .argument_count = COUNT,
                                              .decay = DECAY,
                                              .common = COMMON,
                                              .slot_names = {"momentum"},
                                              .begin = begin};
