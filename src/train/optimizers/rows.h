/*
 * What the files of the optimizers share: declarations of their rows, the arguments that all of them have, and the limits that keep
 * divisors away from zero.
 *
 * An update is elementwise and works on variables as they are stored, so the padding of a packed variable, whose gradient is zero,
 * must stay zero. An epsilon of zero is therefore replaced by the smallest normal number, which prevents 0 / 0.
 */
#ifndef BWI_OPTIMIZER_ROWS_H
#define BWI_OPTIMIZER_ROWS_H

#include "train/internal.h"

#include <float.h>
#include <math.h>

extern const bwi_optimizer_row bwi_optimizer_sgd, bwi_optimizer_adam, bwi_optimizer_adamw, bwi_optimizer_rmsprop,
    bwi_optimizer_adagrad, bwi_optimizer_adadelta, bwi_optimizer_adamax, bwi_optimizer_nadam, bwi_optimizer_lion;
extern const bwi_optimizer_row bwi_optimizer_ftrl, bwi_optimizer_lamb, bwi_optimizer_adafactor, bwi_optimizer_muon;

/* Keras's order is: the optimizer's specific arguments, weight_decay (which comes second in AdamW), then BWI_COMMON_COUNT common
 * ones, which begin at `at`. */
/* clang-format off */
#define RATE_ARGUMENT(standard) {"learning_rate", "lr", BWI_CALL, standard, 0, 0, NULL}
#define DECAY_ARGUMENT(standard) {"weight_decay", NULL, BWI_FLOAT, standard, 0, 1e9, NULL}
#define COMMON_ARGUMENTS(at)                                                                           \
    [(at) + BWI_COMMON_CLIPNORM] = {"clipnorm", NULL, BWI_FLOAT, "", 0, 1e30, NULL},                   \
    [(at) + BWI_COMMON_CLIPVALUE] = {"clipvalue", NULL, BWI_FLOAT, "", 0, 1e30, NULL},                 \
    [(at) + BWI_COMMON_GLOBAL_CLIPNORM] = {"global_clipnorm", NULL, BWI_FLOAT, "", 0, 1e30, NULL},     \
    [(at) + BWI_COMMON_USE_EMA] = {"use_ema", NULL, BWI_BOOL, "false", 0, 0, NULL},                    \
    [(at) + BWI_COMMON_EMA_MOMENTUM] = {"ema_momentum", NULL, BWI_FLOAT, "0.99", 0, 1, NULL},          \
    [(at) + BWI_COMMON_EMA_OVERWRITE] = {"ema_overwrite_frequency", NULL, BWI_INT, "", 1, 1e15, NULL}, \
    [(at) + BWI_COMMON_LOSS_SCALE] = {"loss_scale_factor", NULL, BWI_FLOAT, "", 0, 1e30, NULL},        \
    [(at) + BWI_COMMON_ACCUMULATION] = {"gradient_accumulation_steps", NULL, BWI_INT, "", 2, 1e9, NULL}
/* clang-format on */

/* 1 - beta^t is a divisor, so it must not be zero. */
#define BETA_MOST 0.999999

/* Gets b1^t and b2^t of this update into o->powers (adam.c). */
void bwi_optimizer_take_powers(bwi_optimizer *o, double b1, double b2);

static inline float bwi_positive_epsilon(double epsilon)
{
    return epsilon > (double)FLT_MIN ? (float)epsilon : FLT_MIN;
}

#endif
