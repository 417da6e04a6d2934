/*
 * Adadelta: s = rho s + (1 - rho) g g; d = g sqrt(u + eps) / sqrt(s + eps); u = rho u + (1 - rho) d d; w -= lr d.
 */
#include "train/optimizers/rows.h"

enum { RATE, RHO, EPSILON, DECAY, COMMON, COUNT = COMMON + BWI_COMMON_COUNT };

static const bwi_argument arguments[COUNT] = {
    [RATE] = RATE_ARGUMENT("0.001"),
    [RHO] = {"rho", NULL, BWI_FLOAT, "0.95", 0, 1, NULL},
    [EPSILON] = {"epsilon", NULL, BWI_FLOAT, "1e-7", 0, 1e9, NULL},
    [DECAY] = DECAY_ARGUMENT(""),
    COMMON_ARGUMENTS(COMMON),
};

static int slots(const bwi_optimizer *o, const char *names[BWI_MAX_SLOTS])
{
    (void)o;
    names[0] = "accumulated_grad";
    names[1] = "accumulated_delta_var";
    return 2;
}

typedef struct factors {
    float rate, scale, rho, rest, epsilon;
} factors;

static void update_part(factors f, int64_t count, const float *restrict gradient, float *restrict s, float *restrict u,
                        float *restrict w)
{
    BWI_ELEMENTWISE(count, {
        float g = gradient[i] * f.scale;
        s[i] = f.rho * s[i] + f.rest * (g * g);
        float d = sqrtf(u[i] + f.epsilon) * g / sqrtf(s[i] + f.epsilon);
        u[i] = f.rho * u[i] + f.rest * (d * d);
        w[i] -= f.rate * d;
    });
}

static void update(const bwi_optimizer *o, int64_t count, float scale, const float *gradient, float *const *slot, float *w)
{
    double rho = o->values[RHO].number;
    factors f = {.rate = (float)o->rate,
                 .scale = scale,
                 .rho = (float)rho,
                 .rest = (float)(1 - rho),
                 .epsilon = bwi_positive_epsilon(o->values[EPSILON].number)};
    update_part(f, count, gradient, slot[0], slot[1], w);
}

const bwi_optimizer_row bwi_optimizer_adadelta = {.name = "adadelta",
                                                  .class_name = "Adadelta",
                                                  .arguments = arguments,
                                                  .argument_count = COUNT,
                                                  .decay = DECAY,
                                                  .common = COMMON,
                                                  .paired = 2,
                                                  .slots = slots,
                                                  .update = update};
