/*
 * loss: one number a sample: the mean over its rows (positions) of weight * f(x, y), x a row of the prediction, y of the
 * target. A formula is a row of the table: its value, and its gradient in x times a factor. NaN passes through all of
 * them: comparisons are written so that NaN takes the branch that keeps it.
 */
#include "op/op.h"

#include <math.h>

/* Keras's backend.epsilon(), and the largest probability below 1 that clipping leaves. */
static const float EPSILON = 1e-7F, ALMOST_ONE = 1 - 1e-7F;

static inline float clip(float x, float least, float most)
{
    return x < least ? least : x > most ? most : x;
}
static inline float sign(float x)
{
    return x > 0 ? 1 : x < 0 ? -1 : x;
}

/* ---- Formulas of one number: a mean over the row; p is the loss's parameter ---- */

static inline double square(float x, float y, float p)
{
    (void)p;
    double e = (double)x - (double)y;
    return e * e;
}
static inline float square_slope(float x, float y, float p)
{
    (void)p;
    return 2 * (x - y);
}

static inline double absolute(float x, float y, float p)
{
    (void)p;
    return fabs((double)x - (double)y);
}
static inline float absolute_slope(float x, float y, float p)
{
    (void)p;
    return sign(x - y);
}

static inline float size_of_target(float y)
{
    return fabsf(y) < EPSILON ? EPSILON : fabsf(y);
}

static inline float percentage(float x, float y, float p)
{
    (void)p;
    return 100 * fabsf((y - x) / size_of_target(y));
}
static inline float percentage_slope(float x, float y, float p)
{
    (void)p;
    return 100 * sign(x - y) / size_of_target(y);
}

static inline float log_plus_one(float x)
{
    return logf((x < EPSILON ? EPSILON : x) + 1);
}

static inline float logarithmic(float x, float y, float p)
{
    (void)p;
    float e = log_plus_one(x) - log_plus_one(y);
    return e * e;
}
static inline float logarithmic_slope(float x, float y, float p)
{
    (void)p;
    return x < EPSILON ? 0 : 2 * (log_plus_one(x) - log_plus_one(y)) / (x + 1);
}

static inline float huber(float x, float y, float delta)
{
    float e = fabsf(x - y);
    return e <= delta ? 0.5F * e * e : delta * e - 0.5F * delta * delta;
}
static inline float huber_slope(float x, float y, float delta)
{
    float e = x - y;
    return fabsf(e) <= delta ? e : delta * sign(e);
}

/* log cosh e = |e| + log(1 + exp(-2|e|)) - log 2 */
static inline float log_cosh(float x, float y, float p)
{
    (void)p;
    float e = fabsf(x - y);
    return e + log1pf(expf(-2 * e)) - 0.69314718F;
}
static inline float log_cosh_slope(float x, float y, float p)
{
    (void)p;
    return tanhf(x - y);
}

static inline float poisson(float x, float y, float p)
{
    (void)p;
    return x - y * logf(x + EPSILON);
}
static inline float poisson_slope(float x, float y, float p)
{
    (void)p;
    return 1 - y / (x + EPSILON);
}

/* Targets are -1 and 1; 0 counts as -1. Keras decides that by the batch; here each target speaks for itself, so that
 * batches may be split. */
static inline float side(float y)
{
    return y == 0 ? -1 : y;
}

static inline float hinge(float x, float y, float p)
{
    (void)p;
    float v = 1 - side(y) * x;
    return v <= 0 ? 0 : v;
}
static inline float hinge_slope(float x, float y, float p)
{
    (void)p;
    float v = 1 - side(y) * x;
    return v <= 0 ? 0 : v > 0 ? -side(y) : v;
}

static inline float squared_hinge(float x, float y, float p)
{
    float v = hinge(x, y, p);
    return v * v;
}
static inline float squared_hinge_slope(float x, float y, float p)
{
    return -2 * side(y) * hinge(x, y, p);
}

static inline float smooth(float y, float smoothing)
{
    return y * (1 - smoothing) + 0.5F * smoothing;
}

/* log(1 + exp x) - x t */
static inline float binary_logits(float x, float y, float smoothing)
{
    return (x < 0 ? 0 : x) - x * smooth(y, smoothing) + log1pf(expf(-fabsf(x)));
}
static inline float binary_logits_slope(float x, float y, float smoothing)
{
    float e = expf(-fabsf(x));
    return (x < 0 ? e : 1) / (1 + e) - smooth(y, smoothing);
}

static inline float binary(float x, float y, float smoothing)
{
    float t = smooth(y, smoothing), c = clip(x, EPSILON, ALMOST_ONE);
    return -(t * logf(c) + (1 - t) * logf(1 - c));
}
static inline float binary_slope(float x, float y, float smoothing)
{
    return x < EPSILON || x > ALMOST_ONE ? 0 : (x - smooth(y, smoothing)) / (x * (1 - x));
}

#define MEAN_OF_ROW(name)                                                                                            \
    static double name##_value(int64_t width, const float *x, const void *target, float p)                           \
    {                                                                                                                \
        const float *y = target;                                                                                     \
        double sum = 0;                                                                                              \
        for (int64_t i = 0; i < width; i++) {                                                                        \
            sum += (double)name(x[i], y[i], p);                                                                      \
        }                                                                                                            \
        return sum / (double)width;                                                                                  \
    }                                                                                                                \
    static void name##_gradient(int64_t width, const float *x, const void *target, float p, float factor, float *dx) \
    {                                                                                                                \
        const float *y = target;                                                                                     \
        factor /= (float)width;                                                                                      \
        for (int64_t i = 0; i < width; i++) {                                                                        \
            dx[i] = factor * name##_slope(x[i], y[i], p);                                                            \
        }                                                                                                            \
    }

/* The same of one number a sample, without weights. */
#define MEAN_OF(name)                                                                                                      \
    MEAN_OF_ROW(name)                                                                                                      \
    static void name##_all(int64_t count, float p, const float *restrict x, const float *restrict y, float *restrict loss) \
    {                                                                                                                      \
        BWI_ELEMENTWISE(count, loss[i] = (float)name(x[i], y[i], p););                                                     \
    }                                                                                                                      \
    static void name##_slopes(int64_t count, float p, const float *restrict x, const float *restrict y,                    \
                              const float *restrict diff, float *restrict dx)                                              \
    {                                                                                                                      \
        BWI_ELEMENTWISE(count, dx[i] = diff[i] * name##_slope(x[i], y[i], p););                                            \
    }                                                                                                                      \
    static void name##_values(const bwi_call *call, float p)                                                               \
    {                                                                                                                      \
        name##_all(call->samples, p, call->src[0], call->src[1], call->dst);                                               \
    }                                                                                                                      \
    static void name##_gradients(const bwi_call *call, float p)                                                            \
    {                                                                                                                      \
        name##_slopes(call->samples, p, call->src[0], call->src[1], call->diff_dst, call->diff_src[0]);                    \
    }

MEAN_OF(square)
MEAN_OF(absolute)
MEAN_OF(percentage)
MEAN_OF(logarithmic)
MEAN_OF(huber)
MEAN_OF(log_cosh)
MEAN_OF(poisson)
MEAN_OF(hinge)
MEAN_OF(squared_hinge)
MEAN_OF(binary)
MEAN_OF_ROW(binary_logits)

/* Of one number a sample it is a kernel: vectors of exponentials and logarithms. */
static void binary_logits_values(const bwi_call *call, float smoothing)
{
    call->kernels->binary_crossentropy(call->samples, smoothing, call->src[0], call->src[1], NULL, call->dst, NULL);
}

static void binary_logits_gradients(const bwi_call *call, float smoothing)
{
    call->kernels->binary_crossentropy(call->samples, smoothing, call->src[0], call->src[1], call->diff_dst, NULL,
                                       call->diff_src[0]);
}

/* ---- Formulas of a row ---- */

static double sum_of(int64_t width, const float *x)
{
    double sum = 0;
    for (int64_t i = 0; i < width; i++) {
        sum += (double)x[i];
    }
    return sum;
}

/* sum t log(t / c), both clipped to [1e-7, 1]. */
static double divergence_value(int64_t width, const float *x, const void *target, float p)
{
    (void)p;
    const float *y = target;
    double sum = 0;
    for (int64_t i = 0; i < width; i++) {
        float t = clip(y[i], EPSILON, 1);
        sum += (double)(t * logf(t / clip(x[i], EPSILON, 1)));
    }
    return sum;
}

static void divergence_gradient(int64_t width, const float *x, const void *target, float p, float factor, float *dx)
{
    (void)p;
    const float *y = target;
    for (int64_t i = 0; i < width; i++) {
        dx[i] = x[i] < EPSILON || x[i] > 1 ? 0 : -factor * clip(y[i], EPSILON, 1) / x[i];
    }
}

/* -sum t log c, c = x / sum x clipped, t = y (1 - p) + p / width. */
static double categorical_value(int64_t width, const float *x, const void *target, float smoothing)
{
    const float *y = target;
    double sum = 0;
    float total = (float)sum_of(width, x);
    for (int64_t i = 0; i < width; i++) {
        float t = y[i] * (1 - smoothing) + smoothing / (float)width;
        sum -= (double)(t * logf(clip(x[i] / total, EPSILON, ALMOST_ONE)));
    }
    return sum;
}

/* (sum of t over what is not clipped - [not clipped] t / c) / sum x */
static void categorical_gradient(int64_t width, const float *x, const void *target, float smoothing, float factor, float *dx)
{
    const float *y = target;
    double inside = 0;
    float total = (float)sum_of(width, x);
    for (int64_t i = 0; i < width; i++) {
        float t = y[i] * (1 - smoothing) + smoothing / (float)width, c = x[i] / total;
        bool clipped = c < EPSILON || c > ALMOST_ONE;
        inside += clipped ? 0 : (double)t;
        dx[i] = clipped ? 0 : t / c;
    }
    for (int64_t i = 0; i < width; i++) {
        dx[i] = factor / total * ((float)inside - dx[i]);
    }
}

/* The same for a class number. */
static double sparse_value(int64_t width, const float *x, const void *target, float p)
{
    (void)p;
    return -(double)logf(clip(x[*(const int32_t *)target] / (float)sum_of(width, x), EPSILON, ALMOST_ONE));
}

static void sparse_gradient(int64_t width, const float *x, const void *target, float p, float factor, float *dx)
{
    (void)p;
    int32_t label = *(const int32_t *)target;
    float total = (float)sum_of(width, x), c = x[label] / total;
    bool clipped = c < EPSILON || c > ALMOST_ONE;
    for (int64_t i = 0; i < width; i++) {
        dx[i] = clipped ? 0 : factor / total * (i == label ? 1 - 1 / c : 1);
    }
}

/* max(0, 1 + max (1 - y) x - sum y x); equal largest terms share the gradient. */
typedef struct margin {
    double value;
    float largest;
    int64_t equal;
} margin;

static margin margin_of(int64_t width, const float *x, const float *y)
{
    margin m = {.largest = (1 - y[0]) * x[0]};
    double positive = 0;
    for (int64_t i = 0; i < width; i++) {
        float negative = (1 - y[i]) * x[i];
        positive += (double)(y[i] * x[i]);
        m.equal = negative > m.largest ? 1 : m.equal + (negative == m.largest);
        m.largest = negative > m.largest ? negative : m.largest;
    }
    m.value = (double)m.largest - positive + 1;
    return m;
}

static double categorical_hinge_value(int64_t width, const float *x, const void *target, float p)
{
    (void)p;
    margin m = margin_of(width, x, target);
    return m.value <= 0 ? 0 : m.value;
}

static void categorical_hinge_gradient(int64_t width, const float *x, const void *target, float p, float factor, float *dx)
{
    (void)p;
    const float *y = target;
    margin m = margin_of(width, x, y);
    for (int64_t i = 0; i < width; i++) {
        float share = (1 - y[i]) * x[i] == m.largest ? (1 - y[i]) / (float)m.equal : 0;
        dx[i] = m.value <= 0 ? 0 : m.value > 0 ? factor * (share - y[i]) : (float)m.value;
    }
}

/* -(x / |x|) (y / |y|), norms being at least 1e-7. */
typedef struct angle {
    double inverse_x, inverse_y, cosine;
    bool tiny; /* |x| is below the least norm, which does not change with x */
} angle;

static angle angle_of(int64_t width, const float *x, const float *y)
{
    double xx = 0, yy = 0, xy = 0;
    for (int64_t i = 0; i < width; i++) {
        xx += (double)x[i] * (double)x[i];
        yy += (double)y[i] * (double)y[i];
        xy += (double)x[i] * (double)y[i];
    }
    double least = 1e-7;
    angle a = {.tiny = sqrt(xx) < least};
    a.inverse_x = 1 / (a.tiny ? least : sqrt(xx));
    a.inverse_y = 1 / (sqrt(yy) < least ? least : sqrt(yy));
    a.cosine = xy * a.inverse_x * a.inverse_y;
    return a;
}

static double cosine_value(int64_t width, const float *x, const void *target, float p)
{
    (void)p;
    return -angle_of(width, x, target).cosine;
}

static void cosine_gradient(int64_t width, const float *x, const void *target, float p, float factor, float *dx)
{
    (void)p;
    const float *y = target;
    angle a = angle_of(width, x, y);
    double along = a.tiny ? 0 : a.cosine * a.inverse_x;
    for (int64_t i = 0; i < width; i++) {
        dx[i] = (float)((double)factor * a.inverse_x * ((double)x[i] * along - (double)y[i] * a.inverse_y));
    }
}

/* ---- The table ---- */

typedef struct formula {
    double (*value)(int64_t width, const float *x, const void *y, float p);
    void (*gradient)(int64_t width, const float *x, const void *y, float p, float factor, float *dx);
    bool mean;   /* of numbers: rows of equal weight are one long row */
    bool labels; /* y is a class number */
    /* The whole tile, if a sample is one number without a weight; NULL: sample by sample. */
    void (*values)(const bwi_call *call, float p);
    void (*gradients)(const bwi_call *call, float p);
} formula;

static const formula formulas[] = {
    [BWI_LOSS_SQUARE] = {square_value, square_gradient, true, false, square_values, square_gradients},
    [BWI_LOSS_ABSOLUTE] = {absolute_value, absolute_gradient, true, false, absolute_values, absolute_gradients},
    [BWI_LOSS_PERCENTAGE] = {percentage_value, percentage_gradient, true, false, percentage_values, percentage_gradients},
    [BWI_LOSS_LOGARITHMIC] = {logarithmic_value, logarithmic_gradient, true, false, logarithmic_values, logarithmic_gradients},
    [BWI_LOSS_HUBER] = {huber_value, huber_gradient, true, false, huber_values, huber_gradients},
    [BWI_LOSS_LOG_COSH] = {log_cosh_value, log_cosh_gradient, true, false, log_cosh_values, log_cosh_gradients},
    [BWI_LOSS_POISSON] = {poisson_value, poisson_gradient, true, false, poisson_values, poisson_gradients},
    [BWI_LOSS_HINGE] = {hinge_value, hinge_gradient, true, false, hinge_values, hinge_gradients},
    [BWI_LOSS_SQUARED_HINGE] = {squared_hinge_value, squared_hinge_gradient, true, false, squared_hinge_values,
                                squared_hinge_gradients},
    [BWI_LOSS_BINARY_LOGITS] = {binary_logits_value, binary_logits_gradient, true, false, binary_logits_values,
                                binary_logits_gradients},
    [BWI_LOSS_BINARY] = {binary_value, binary_gradient, true, false, binary_values, binary_gradients},
    [BWI_LOSS_DIVERGENCE] = {divergence_value, divergence_gradient, false, false, NULL, NULL},
    [BWI_LOSS_CATEGORICAL] = {categorical_value, categorical_gradient, false, false, NULL, NULL},
    [BWI_LOSS_SPARSE] = {sparse_value, sparse_gradient, false, true, NULL, NULL},
    [BWI_LOSS_CATEGORICAL_HINGE] = {categorical_hinge_value, categorical_hinge_gradient, false, false, NULL, NULL},
    [BWI_LOSS_COSINE] = {cosine_value, cosine_gradient, false, false, NULL, NULL},
};

/* ---- The op ---- */

static const formula *formula_of(const bw_node *node)
{
    return &formulas[((const bwi_loss_attributes *)node->attributes)->kind];
}

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    return bwi_rows_check(graph, node, formula_of(node)->labels);
}

static bwi_rows rows_of(const bwi_call *call)
{
    bwi_rows rows = bwi_rows_of(call);
    if (formula_of(call->node)->mean && rows.weights <= 1) {
        rows.width *= rows.count;
        rows.count = 1;
    }
    return rows;
}

/* A sample's prediction is one number, and it has no weight. */
static bool is_one_number(const bw_node *node)
{
    return node->inputs == 2 && bwi_shape_count(&node->input[0]->shape) == 1;
}

/* The target of row r of all rows of the tile; float and int32 have the same size. */
static const void *target_at(const bwi_call *call, const formula *f, const bwi_rows *rows, int64_t r)
{
    return (const float *)call->src[1] + r * (f->labels ? 1 : rows->width);
}

static bw_status forward(const bwi_call *call, const bwi_tile *tile)
{
    float p = ((const bwi_loss_attributes *)call->node->attributes)->parameter;
    const formula *f = formula_of(call->node);
    if (f->values && is_one_number(call->node)) {
        f->values(call, p);
        return BW_OK;
    }
    bw_status status = f->labels ? bwi_labels_check(call, tile) : BW_OK;
    bwi_rows rows = rows_of(call);
    const float *x = call->src[0];
    float *loss = call->dst;
    for (int64_t s = 0; s < call->samples && status == BW_OK; s++) {
        double sum = 0;
        for (int64_t r = s * rows.count; r < (s + 1) * rows.count; r++) {
            double value = f->value(rows.width, x + r * rows.width, target_at(call, f, &rows, r), p);
            sum += value * (double)bwi_rows_weight(&rows, s, r);
        }
        loss[s] = (float)(sum / (double)rows.count);
    }
    return status;
}

static bw_status backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    float p = ((const bwi_loss_attributes *)call->node->attributes)->parameter;
    const formula *f = formula_of(call->node);
    if (f->gradients && is_one_number(call->node)) {
        f->gradients(call, p);
        return BW_OK;
    }
    bwi_rows rows = rows_of(call);
    const float *x = call->src[0], *diff_dst = call->diff_dst;
    float *to = call->diff_src[0];
    for (int64_t s = 0; s < call->samples; s++) {
        for (int64_t r = s * rows.count; r < (s + 1) * rows.count; r++) {
            float factor = diff_dst[s] * bwi_rows_weight(&rows, s, r) / (float)rows.count;
            f->gradient(rows.width, x + r * rows.width, target_at(call, f, &rows, r), p, factor, to + r * rows.width);
        }
    }
    return BW_OK;
}

const bwi_op bwi_op_loss = {.name = "loss",
                            .backward_reads = BWI_READS_SRC,
                            .layout = BWI_LAYOUT_CHANNELS_LAST,
                            .shape = shape,
                            .forward = forward,
                            .backward = backward};
