/* Adagrad: s += g g; w -= lr g / sqrt(s + eps). The sum of squares begins at initial_accumulator_value. */
#include "train/optimizers/rows.h"

enum { RATE, START, EPSILON, DECAY, COMMON, COUNT = COMMON + BWI_COMMON_COUNT };

static const bwi_argument arguments[COUNT] = {
    [RATE] = RATE_ARGUMENT("0.001"),
    [START] = {"initial_accumulator_value", NULL, BWI_FLOAT, "0.1", 0, 1e9, NULL},
    [EPSILON] = {"epsilon", NULL, BWI_FLOAT, "1e-7", 0, 1e9, NULL},
    [DECAY] = DECAY_ARGUMENT(""),
    COMMON_ARGUMENTS(COMMON),
};

static int slots(const bwi_optimizer *o, const char *names[BWI_MAX_SLOTS])
{
    (void)o;
    names[0] = "accumulator";
    return 1;
}

static float start(const bwi_optimizer *o, int slot)
{
    (void)slot;
    return (float)o->values[START].number;
}

static void update_part(float rate, float epsilon, float scale, int64_t count, const float *restrict gradient, float *restrict s,
                        float *restrict w)
{
    BWI_ELEMENTWISE(count, {
        float g = gradient[i] * scale;
        s[i] += g * g;
        w[i] -= rate * g / sqrtf(s[i] + epsilon);
    });
}

static void update(const bwi_optimizer *o, int64_t count, float scale, const float *gradient, float *const *slot, float *w)
{
    update_part((float)o->rate, bwi_positive_epsilon(o->values[EPSILON].number), scale, count, gradient, slot[0], w);
}

const bwi_optimizer_row bwi_optimizer_adagrad = {.name = "adagrad",
                                                 .class_name = "Adagrad",
                                                 .arguments = arguments,
                                                 .argument_count = COUNT,
                                                 .decay = DECAY,
                                                 .common = COMMON,
                                                 .slots = slots,
                                                 .start = start,
                                                 .update = update};
