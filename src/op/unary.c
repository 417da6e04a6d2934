/* unary: functions of each element by formula, for losses and layers of one's own; derivatives from x. */
#include "op/op.h"

#include <math.h>

typedef struct formula {
    float (*value)(float x, float a, float b);
    float (*slope)(float x, float a, float b);
} formula;

#define FORMULA(name, expression)                \
    static float name(float x, float a, float b) \
    {                                            \
        (void)a;                                 \
        (void)b;                                 \
        return expression;                       \
    }

FORMULA(abs_value, fabsf(x))
FORMULA(abs_slope, (float)((x > 0) - (x < 0)))
FORMULA(square_value, (x * x))
FORMULA(square_slope, 2 * x)
FORMULA(sqrt_value, sqrtf(x))
FORMULA(sqrt_slope, 0.5f / sqrtf(x))
FORMULA(log_value, logf(x))
FORMULA(log_slope, 1 / x)
FORMULA(pow_value, powf(x, a))
FORMULA(pow_slope, a == 0 ? 0 : a * powf(x, a - 1))

/* NaN passes through. */
static float clip_value(float x, float a, float b)
{
    return x < a ? a : x > b ? b : x;
}

/* At a bound the value itself is let through, as JAX and TensorFlow do for clip. */
static float clip_slope(float x, float a, float b)
{
    return x < a || x > b ? 0 : 1;
}

static const formula formulas[BWI_UNARIES] = {
    [BWI_ABS] = {abs_value, abs_slope}, [BWI_SQUARE] = {square_value, square_slope}, [BWI_SQRT] = {sqrt_value, sqrt_slope},
    [BWI_LOG] = {log_value, log_slope}, [BWI_POW] = {pow_value, pow_slope},          [BWI_CLIP] = {clip_value, clip_slope},
};

static bw_status forward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    const bwi_unary_attributes *u = call->node->attributes;
    const float *x = call->src[0];
    float *y = call->dst;
    int64_t count = call->floats;
    for (int64_t i = 0; i < count; i++) {
        y[i] = formulas[u->kind].value(x[i], u->a, u->b);
    }
    return BW_OK;
}

static bw_status backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    const bwi_unary_attributes *u = call->node->attributes;
    const float *x = call->src[0], *dy = call->diff_dst;
    float *dx = call->diff_src[0];
    int64_t count = call->floats;
    for (int64_t i = 0; i < count; i++) {
        dx[i] = dy[i] * formulas[u->kind].slope(x[i], u->a, u->b);
    }
    return BW_OK;
}

const bwi_op bwi_op_unary = {.name = "unary",
                             .flags = BWI_OP_IN_PLACE | BWI_OP_BACKWARD_IN_PLACE,
                             .backward_reads = BWI_READS_SRC,
                             .layout = BWI_LAYOUT_CHANNELS_LAST,
                             .shape = bwi_shape_like_input,
                             .forward = forward,
                             .backward = backward};
