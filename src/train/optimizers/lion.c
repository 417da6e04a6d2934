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

static int slots(const bwi_optimizer *o, const char *names[BWI_MAX_SLOTS])
{
    (void)o;
    names[0] = "momentum";
    return 1;
}

typedef struct factors {
    float rate, scale, beta1, rest1, beta2, rest2;
} factors;

static void update_part(factors f, int64_t count, const float *restrict gradient, float *restrict m, float *restrict w)
{
    BWI_ELEMENTWISE(count, {
        float g = gradient[i] * f.scale;
        float direction = f.beta1 * m[i] + f.rest1 * g;
        w[i] -= f.rate * (float)((direction > 0) - (direction < 0));
        m[i] = f.beta2 * m[i] + f.rest2 * g;
    });
}

static void update(const bwi_optimizer *o, int64_t count, float scale, const float *gradient, float *const *slot, float *w)
{
    double beta1 = o->values[BETA1].number, beta2 = o->values[BETA2].number;
    factors f = {.rate = (float)o->rate,
                 .scale = scale,
                 .beta1 = (float)beta1,
                 .rest1 = (float)(1 - beta1),
                 .beta2 = (float)beta2,
                 .rest2 = (float)(1 - beta2)};
    update_part(f, count, gradient, slot[0], w);
}

const bwi_optimizer_row bwi_optimizer_lion = {.name = "lion",
                                              .class_name = "Lion",
                                              .arguments = arguments,
                                              .argument_count = COUNT,
                                              .decay = DECAY,
                                              .common = COMMON,
                                              .slots = slots,
                                              .update = update};
