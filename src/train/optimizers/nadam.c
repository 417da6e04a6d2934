/*
 * Nadam, with mu(t) = b1 (1 - 0.96^t / 2) and P(t) = mu(1) ... mu(t):
 *   m += (1 - b1)(g - m); v += (1 - b2)(g g - v);
 *   w -= lr (mu(t+1) m / (1 - P(t+1)) + (1 - mu(t)) g / (1 - P(t))) / (sqrt(v / (1 - b2^t)) + eps).
 */
#include "train/optimizers/rows.h"

enum { RATE, BETA1, BETA2, EPSILON, DECAY, COMMON, COUNT = COMMON + BWI_COMMON_COUNT };

static const bwi_argument arguments[COUNT] = {
    [RATE] = RATE_ARGUMENT("0.001"),
    [BETA1] = {"beta_1", NULL, BWI_FLOAT, "0.9", 0, BETA_MOST, NULL},
    [BETA2] = {"beta_2", NULL, BWI_FLOAT, "0.999", 0, BETA_MOST, NULL},
    [EPSILON] = {"epsilon", NULL, BWI_FLOAT, "1e-7", 0, 1e9, NULL},
    [DECAY] = DECAY_ARGUMENT(""),
    COMMON_ARGUMENTS(COMMON),
};

static int slots(const bwi_optimizer *o, const char *names[BWI_MAX_SLOTS])
{
    (void)o;
    names[0] = "momentum";
    names[1] = "velocity";
    return 2;
}

/* Factors of m, of g, and of v within the root. */
enum { OF_MEAN, OF_GRADIENT, OF_SQUARE };

static double momentum_at(double beta1, double t)
{
    return beta1 * (1 - 0.5 * pow(0.96, t));
}

static void begin(bwi_optimizer *o)
{
    double beta1 = o->values[BETA1].number, t = (double)(o->iterations + 1);
    double now = momentum_at(beta1, t), next = momentum_at(beta1, t + 1);
    double product = (double)o->momentum_product * now;
    o->momentum_product = (float)product;
    o->step.factor[OF_MEAN] = (float)(o->rate * next / (1 - product * next));
    o->step.factor[OF_GRADIENT] = (float)(o->rate * (1 - now) / (1 - product));
    o->step.factor[OF_SQUARE] = (float)(1 / (1 - pow(o->values[BETA2].number, t)));
}

typedef struct factors {
    float scale, new_mean, new_square, of_mean, of_gradient, of_square, epsilon;
} factors;

static void update_part(factors f, int64_t count, const float *restrict gradient, float *restrict m, float *restrict v,
                        float *restrict w)
{
    BWI_ELEMENTWISE(count, {
        float g = gradient[i] * f.scale;
        m[i] += (g - m[i]) * f.new_mean;
        v[i] += (g * g - v[i]) * f.new_square;
        w[i] -= (f.of_mean * m[i] + f.of_gradient * g) / (sqrtf(v[i] * f.of_square) + f.epsilon);
    });
}

static void update(const bwi_optimizer *o, int64_t count, float scale, const float *gradient, float *const *slot, float *w)
{
    factors f = {.scale = scale,
                 .new_mean = (float)(1 - o->values[BETA1].number),
                 .new_square = (float)(1 - o->values[BETA2].number),
                 .of_mean = o->step.factor[OF_MEAN],
                 .of_gradient = o->step.factor[OF_GRADIENT],
                 .of_square = o->step.factor[OF_SQUARE],
                 .epsilon = bwi_positive_epsilon(o->values[EPSILON].number)};
    update_part(f, count, gradient, slot[0], slot[1], w);
}

const bwi_optimizer_row bwi_optimizer_nadam = {.name = "nadam",
                                               .class_name = "Nadam",
                                               .arguments = arguments,
                                               .argument_count = COUNT,
                                               .decay = DECAY,
                                               .common = COMMON,
                                               .paired = 2,
                                               .keeps_product = true,
                                               .slots = slots,
                                               .begin = begin,
                                               .update = update};
