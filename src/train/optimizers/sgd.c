/* SGD: w -= lr g; with momentum v = mu v - lr g; w += v; Nesterov: w += mu v - lr g. */
#include "train/optimizers/rows.h"

enum { RATE, MOMENTUM, NESTEROV, DECAY, COMMON, COUNT = COMMON + BWI_COMMON_COUNT };

static const bwi_argument arguments[COUNT] = {
    [RATE] = RATE_ARGUMENT("0.01"),
    [MOMENTUM] = {"momentum", NULL, BWI_FLOAT, "0", 0, 1, NULL},
    [NESTEROV] = {"nesterov", NULL, BWI_BOOL, "false", 0, 0, NULL},
    [DECAY] = DECAY_ARGUMENT(""),
    COMMON_ARGUMENTS(COMMON),
};

static int slots(const bwi_optimizer *o, const char *names[BWI_MAX_SLOTS])
{
    names[0] = "momentum";
    return o->values[MOMENTUM].number > 0 ? 1 : 0;
}

static void begin(bwi_optimizer *o)
{
    o->step.rule = BWI_RULE_SGD;
    o->step.rate = (float)o->rate;
    o->step.momentum = (float)o->values[MOMENTUM].number;
    o->step.nesterov = o->values[NESTEROV].flag;
}

const bwi_optimizer_row bwi_optimizer_sgd = {.name = "sgd",
                                             .class_name = "SGD",
                                             .arguments = arguments,
                                             .argument_count = COUNT,
                                             .decay = DECAY,
                                             .common = COMMON,
                                             .slots = slots,
                                             .begin = begin};
