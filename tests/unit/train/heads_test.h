/*
 * Tests of losses and metrics share this: a model that returns its input (a dense layer with the identity matrix), predictions
 * that reach the limits of the formulas, targets and weights.
 */
#ifndef HEADS_TEST_H
#define HEADS_TEST_H

#include "support/check.h"

#include <math.h>
#include <string.h>

enum { SAMPLES = 6, WIDTH = 3 };

typedef struct targets {
    int width; /* 0: class numbers */
    float values[SAMPLES * WIDTH];
} targets;

static const float numbers[SAMPLES * WIDTH] = {-2, 0.5F, 1e-9F,  0,    0,    0,    1, 0.25F, 0.75F,
                                               3,  -1,   0.125F, 0.2F, 0.3F, 0.5F, 1, 1,     2.5F};
static const float shares_of_one[SAMPLES * WIDTH] = {0.2F, 0.3F, 0.5F, 1,     0,    0,    0,    0.5F, 0.5F,
                                                     0.7F, 0.2F, 0.1F, 1e-9F, 0.4F, 0.6F, 0.5F, 0.5F, 1};
static const float weights[SAMPLES] = {1, 0.5F, 2, 0, 0.25F, 3};

static const targets real = {WIDTH, {0, 1, -1, 0.5F, 0, 2, 1, 0.25F, -0.75F, 2, 2, 2, 1e-9F, 0, -3, 1, -1, 5}};
static const targets onehot = {WIDTH, {1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 1, 0, 1, 0, 0, 0, 0, 1}};
static const targets shares = {WIDTH,
                               {0.5F, 0.25F, 0.25F, 0, 1, 0, 0.125F, 0.125F, 0.75F, 0, 0.5F, 0.5F, 1, 0, 0, 0.25F, 0.5F, 0.25F}};
static const targets sign = {WIDTH, {1, -1, 1, -1, -1, 1, 1, 1, 1, -1, 1, -1, 1, -1, -1, -1, -1, -1}};
static const targets zero_one = {WIDTH, {1, 0, 1, 0, 0, 1, 1, 1, 1, 0, 1, 0, 1, 0, 0, 0, 0, 0}};
static const targets labels = {0, {0, 1, 2, 1, 0, 2}};

static inline bw_dataset *samples_of(bw_context *ctx, const float *x, const targets *y, const float *w)
{
    bw_array xa = {.data = x, .dtype = BW_F32, .ndim = 2, .shape = {SAMPLES, WIDTH}};
    bw_array ya = {.data = y->values, .dtype = BW_F32, .ndim = y->width ? 2 : 1, .shape = {SAMPLES, y->width}};
    bw_array wa = {.data = w, .dtype = BW_F32, .ndim = 1, .shape = {SAMPLES}};
    return bw_from_arrays(ctx, &xa, &ya, w ? &wa : NULL);
}

static inline bw_model *identity(bw_context *ctx)
{
    static const float unit[WIDTH * WIDTH] = {1, 0, 0, 0, 1, 0, 0, 0, 1};
    const int64_t shape[] = {WIDTH};
    bw_model *model = bw_model_parse(ctx, "dense(3)");
    check_ok(ctx, bw_build(model, 1, shape, 0));
    check_ok(ctx, bw_variable_set(model, 0, unit, WIDTH * WIDTH));
    return model;
}

#endif
