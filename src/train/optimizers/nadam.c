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

static double momentum_at(double beta1, double t)
{
    return beta1 * (1 - 0.5 * pow(0.96, t));
}

static void begin(bwi_optimizer *o)
{
    double beta1 = o->values[BETA1].number, beta2 = o->values[BETA2].number, t = (double)(o->iterations + 1);
    double now = momentum_at(beta1, t), next = momentum_at(beta1, t + 1);
    double product = (double)o->momentum_product * now;
    o->momentum_product = (float)product;
    o->step.rule = BWI_RULE_NADAM;
    o->step.beta1 = beta1;
    o->step.beta2 = beta2;
    o->step.of_mean = (float)(o->rate * next / (1 - product * next));
    o->step.of_gradient = (float)(o->rate * (1 - now) / (1 - product));
    o->step.of_square = (float)(1 / (1 - pow(beta2, t)));
    o->step.epsilon = bwi_positive_epsilon(o->values[EPSILON].number);
}

const bwi_optimizer_row bwi_optimizer_nadam = {.name = "nadam",
                                               .class_name = "Nadam",
                                               .arguments = arguments,
                                               .argument_count = COUNT,
                                               .decay = DECAY,
                                               .common = COMMON,
                                               .paired = 2,
                                               .keeps_product = true,
                                               .slot_names = {"momentum", "velocity"},
                                               .begin = begin};
