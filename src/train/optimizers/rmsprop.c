/*
 * RMSprop: v = rho v + (1 - rho) g g; step = lr g / sqrt(v + eps); w -= step, or with momentum b = mu b + step; w -= b.
 * Centered: a = rho a + (1 - rho) g, and v - a a in the root's place of v; the difference is a variance, and held at zero where
 * rounding makes it negative.
 */
#include "train/optimizers/rows.h"

enum { RATE, RHO, MOMENTUM, EPSILON, CENTERED, DECAY, COMMON, COUNT = COMMON + BWI_COMMON_COUNT };

static const bwi_argument arguments[COUNT] = {
    [RATE] = RATE_ARGUMENT("0.001"),
    [RHO] = {"rho", NULL, BWI_FLOAT, "0.9", 0, 1, NULL},
    [MOMENTUM] = {"momentum", NULL, BWI_FLOAT, "0", 0, 1, NULL},
    [EPSILON] = {"epsilon", NULL, BWI_FLOAT, "1e-7", 0, 1e9, NULL},
    [CENTERED] = {"centered", NULL, BWI_BOOL, "false", 0, 0, NULL},
    [DECAY] = DECAY_ARGUMENT(""),
    COMMON_ARGUMENTS(COMMON),
};

static bool with_momentum(const bwi_optimizer *o)
{
    return o->values[MOMENTUM].number > 0;
}

static int slots(const bwi_optimizer *o, const char *names[BWI_MAX_SLOTS])
{
    int count = 0;
    names[count++] = "velocity";
    if (with_momentum(o)) {
        names[count++] = "momentum";
    }
    if (o->values[CENTERED].flag) {
        names[count++] = "average_gradient";
    }
    return count;
}

typedef struct factors {
    float rate, scale, rho, rest, momentum, epsilon;
} factors;

static void update_plain(factors f, int64_t count, const float *restrict gradient, float *restrict v, float *restrict w)
{
    BWI_ELEMENTWISE(count, {
        float g = gradient[i] * f.scale;
        v[i] = f.rho * v[i] + f.rest * (g * g);
        w[i] -= f.rate * g / sqrtf(v[i] + f.epsilon);
    });
}

static void update_momentum(factors f, int64_t count, const float *restrict gradient, float *restrict v, float *restrict b,
                            float *restrict w)
{
    BWI_ELEMENTWISE(count, {
        float g = gradient[i] * f.scale;
        v[i] = f.rho * v[i] + f.rest * (g * g);
        b[i] = f.momentum * b[i] + f.rate * g / sqrtf(v[i] + f.epsilon);
        w[i] -= b[i];
    });
}

static void update_centered(factors f, int64_t count, const float *restrict gradient, float *restrict v, float *restrict a,
                            float *restrict w)
{
    BWI_ELEMENTWISE(count, {
        float g = gradient[i] * f.scale;
        v[i] = f.rho * v[i] + f.rest * (g * g);
        a[i] = f.rho * a[i] + f.rest * g;
        float variance = v[i] - a[i] * a[i];
        w[i] -= f.rate * g / sqrtf((variance > 0 ? variance : 0) + f.epsilon);
    });
}

static void update_both(factors f, int64_t count, const float *restrict gradient, float *restrict v, float *restrict b,
                        float *restrict a, float *restrict w)
{
    BWI_ELEMENTWISE(count, {
        float g = gradient[i] * f.scale;
        v[i] = f.rho * v[i] + f.rest * (g * g);
        a[i] = f.rho * a[i] + f.rest * g;
        float variance = v[i] - a[i] * a[i];
        b[i] = f.momentum * b[i] + f.rate * g / sqrtf((variance > 0 ? variance : 0) + f.epsilon);
        w[i] -= b[i];
    });
}

static void update(const bwi_optimizer *o, int64_t count, float scale, const float *gradient, float *const *slot, float *w)
{
    double rho = o->values[RHO].number;
    factors f = {.rate = (float)o->rate,
                 .scale = scale,
                 .rho = (float)rho,
                 .rest = (float)(1 - rho),
                 .momentum = (float)o->values[MOMENTUM].number,
                 .epsilon = bwi_positive_epsilon(o->values[EPSILON].number)};
    if (!o->values[CENTERED].flag && !with_momentum(o)) {
        update_plain(f, count, gradient, slot[0], w);
    } else if (!o->values[CENTERED].flag) {
        update_momentum(f, count, gradient, slot[0], slot[1], w);
    } else if (!with_momentum(o)) {
        update_centered(f, count, gradient, slot[0], slot[1], w);
    } else {
        update_both(f, count, gradient, slot[0], slot[1], slot[2], w);
    }
}

const bwi_optimizer_row bwi_optimizer_rmsprop = {.name = "rmsprop",
                                                 .class_name = "RMSprop",
                                                 .arguments = arguments,
                                                 .argument_count = COUNT,
                                                 .decay = DECAY,
                                                 .common = COMMON,
                                                 .slots = slots,
                                                 .update = update};
