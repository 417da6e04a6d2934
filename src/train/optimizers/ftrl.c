/*
 * Ftrl: n' = n + g g; z += g + 2 shrinkage w - (n'^p - n^p) / lr w; w = (z held within +-l1 - z) / (n'^p / lr + 2 l2 + beta / lr),
 * where p = -learning_rate_power.
 */
#include "train/optimizers/rows.h"

enum { RATE, POWER, START, LASSO, RIDGE, SHRINKAGE, BETA, DECAY, COMMON, COUNT = COMMON + BWI_COMMON_COUNT };

static const bwi_argument arguments[COUNT] = {
    [RATE] = RATE_ARGUMENT("0.001"),
    [POWER] = {"learning_rate_power", NULL, BWI_FLOAT, "-0.5", -100, 0, NULL},
    [START] = {"initial_accumulator_value", NULL, BWI_FLOAT, "0.1", 0, 1e9, NULL},
    [LASSO] = {"l1_regularization_strength", NULL, BWI_FLOAT, "0", 0, 1e9, NULL},
    [RIDGE] = {"l2_regularization_strength", NULL, BWI_FLOAT, "0", 0, 1e9, NULL},
    [SHRINKAGE] = {"l2_shrinkage_regularization_strength", NULL, BWI_FLOAT, "0", 0, 1e9, NULL},
    [BETA] = {"beta", NULL, BWI_FLOAT, "0", 0, 1e9, NULL},
    [DECAY] = DECAY_ARGUMENT(""),
    COMMON_ARGUMENTS(COMMON),
};

static float start(const bwi_optimizer *o, int slot)
{
    return slot == 0 ? (float)o->values[START].number : 0;
}

static void begin(bwi_optimizer *o)
{
    o->step.rule = BWI_RULE_FTRL;
    o->step.rate = (float)o->rate;
    o->step.power = (float)-o->values[POWER].number;
    o->step.lasso = (float)o->values[LASSO].number;
    o->step.ridge = (float)(2 * o->values[RIDGE].number + (o->values[BETA].number > 0 ? o->values[BETA].number / o->rate : 0));
    o->step.shrink = (float)(2 * o->values[SHRINKAGE].number);
}

const bwi_optimizer_row bwi_optimizer_ftrl = {.name = "ftrl",
                                              .class_name = "Ftrl",
                                              .arguments = arguments,
                                              .argument_count = COUNT,
                                              .decay = DECAY,
                                              .common = COMMON,
                                              .paired = 2,
                                              .slot_names = {"accumulator", "linear"},
                                              .start = start,
                                              .begin = begin};
