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

static int slots(const bwi_optimizer *o, const char *names[BWI_MAX_SLOTS])
{
    (void)o;
    names[0] = "momentum";
    names[1] = "norm";
    return 2;
}

static void begin(bwi_optimizer *o)
{
    o->step.factor[0] = (float)(o->rate / (1 - pow(o->values[BETA1].number, (double)(o->iterations + 1))));
}

typedef struct factors {
    float rate, scale, new_mean, beta2, epsilon;
} factors;

static void update_part(factors f, int64_t count, const float *restrict gradient, float *restrict m, float *restrict u,
                        float *restrict w)
{
    BWI_ELEMENTWISE(count, {
        float g = gradient[i] * f.scale;
        float before = f.beta2 * u[i];
        float size = fabsf(g);
        m[i] += (g - m[i]) * f.new_mean;
        u[i] = before > size ? before : size;
        w[i] -= f.rate * m[i] / (u[i] + f.epsilon);
    });
}

static void update(const bwi_optimizer *o, int64_t count, float scale, const float *gradient, float *const *slot, float *w)
{
    factors f = {.rate = o->step.factor[0],
                 .scale = scale,
                 .new_mean = (float)(1 - o->values[BETA1].number),
                 .beta2 = (float)o->values[BETA2].number,
                 .epsilon = bwi_positive_epsilon(o->values[EPSILON].number)};
    update_part(f, count, gradient, slot[0], slot[1], w);
}

const bwi_optimizer_row bwi_optimizer_adamax = {.name = "adamax",
                                                .class_name = "Adamax",
                                                .arguments = arguments,
                                                .argument_count = COUNT,
                                                .decay = DECAY,
                                                .common = COMMON,
                                                .paired = 2,
                                                .slots = slots,
                                                .begin = begin,
                                                .update = update};
