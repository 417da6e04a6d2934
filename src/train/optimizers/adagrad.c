/* Adagrad: s += g g; w -= lr g / sqrt(s + eps). The sum of squares starts at initial_accumulator_value. */
#include "train/optimizers/rows.h"

enum { RATE, START, EPSILON, DECAY, COMMON, COUNT = COMMON + BWI_COMMON_COUNT };

static const bwi_argument arguments[COUNT] = {
    [RATE] = RATE_ARGUMENT("0.001"),
    [START] = {"initial_accumulator_value", NULL, BWI_FLOAT, "0.1", 0, 1e9, NULL},
    [EPSILON] = {"epsilon", NULL, BWI_FLOAT, "1e-7", 0, 1e9, NULL},
    [DECAY] = DECAY_ARGUMENT(""),
    COMMON_ARGUMENTS(COMMON),
};

static float start(const bwi_optimizer *o, int slot)
{
    (void)slot;
    return (float)o->values[START].number;
}

static void begin(bwi_optimizer *o)
{
    o->step.rule = BWI_RULE_ADAGRAD;
    o->step.rate = (float)o->rate;
    o->step.epsilon = bwi_positive_epsilon(o->values[EPSILON].number);
}

const bwi_optimizer_row bwi_optimizer_adagrad = {.name = "adagrad",
                                                 .class_name = "Adagrad",
                                                 .arguments = arguments,
                                                 .argument_count = COUNT,
                                                 .decay = DECAY,
                                                 .common = COMMON,
                                                 .slot_names = {"accumulator"},
                                                 .start = start,
                                                 .begin = begin};
