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

static void update(const bwi_optimizer *o, int64_t count, float scale, const float *gradient, float *const *slot, float *w)
{
    o->kernels->sgd(count, (float)o->rate, (float)o->values[MOMENTUM].number, o->values[NESTEROV].flag, scale, gradient,
                    o->slot_count ? slot[0] : NULL, w);
}

const bwi_optimizer_row bwi_optimizer_sgd = {.name = "sgd",
                                             .class_name = "SGD",
                                             .arguments = arguments,
                                             .argument_count = COUNT,
                                             .decay = DECAY,
                                             .common = COMMON,
                                             .slots = slots,
                                             .update = update};
