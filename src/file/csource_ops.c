/* Writes C source for operators that work element by element, along an axis, or on a whole sample. */
#include "file/csource.h"

#include <math.h>
#include <string.h>

#define LINE(depth, ...) bwi_csource_line(s, depth, __VA_ARGS__)

static long long count_of(const bw_node *node)
{
    return (long long)bwi_shape_count(&node->shape);
}

/* ---- Element by element ---- */

/* Writes y[i] = formula, in which v is x[i]. */
static void put_each(bwi_csource *s, const bw_node *node, const char *formula)
{
    LINE(2, "for (int i = 0; i < %lld; i++) {", count_of(node));
    LINE(3, "const float v = x[i];");
    LINE(3, "y[i] = %s;", formula);
    LINE(2, "}");
}

static void put_relu(bwi_csource *s, const bw_node *node)
{
    put_each(s, node, "v < 0.0f ? 0.0f : v");
}

static void __attribute__((format(printf, 3, 0))) put_each_of(bwi_csource *s, const bw_node *node, const char *format, ...)
{
    char formula[256];
    va_list arguments;
    va_start(arguments, format);
    bwi_format(formula, sizeof formula, format, arguments);
    va_end(arguments);
    put_each(s, node, formula);
}

/* The formulas are those of kernel.h; bwi_csource_formula writes those that have parameters. */
static const char *const formulas[BWI_ACTIVATIONS] = {
    [BWI_SIGMOID] = "1.0f / (1.0f + expf(-v))",
    [BWI_TANH] = "tanhf(v)",
    [BWI_SOFTPLUS] = "v > 0.0f ? v + log1pf(expf(-v)) : log1pf(expf(v))",
    [BWI_SOFTSIGN] = "v / (1.0f + fabsf(v))",
    [BWI_EXPONENTIAL] = "expf(v)",
    [BWI_HARD_SIGMOID] = "v <= -3.0f ? 0.0f : v >= 3.0f ? 1.0f : v / 6.0f + 0.5f",
    [BWI_SILU] = "v / (1.0f + expf(-v))",
    [BWI_GELU] = "0.5f * v * (1.0f + erff(v * 0.707106781f))",
    [BWI_HARD_SILU] = "v <= -3.0f ? 0.0f : v >= 3.0f ? v : v * (v / 6.0f + 0.5f)",
    [BWI_HARD_TANH] = "v < -1.0f ? -1.0f : v > 1.0f ? 1.0f : v",
    [BWI_MISH] = "v * tanhf(v > 0.0f ? v + log1pf(expf(-v)) : log1pf(expf(v)))",
    [BWI_LOG_SIGMOID] = "v < 0.0f ? v - log1pf(expf(v)) : -log1pf(expf(-v))",
    [BWI_TANH_SHRINK] = "v - tanhf(v)",
    [BWI_SPARSE_PLUS] = "v <= -1.0f ? 0.0f : v >= 1.0f ? v : 0.25f * (v + 1.0f) * (v + 1.0f)",
    [BWI_SPARSE_SIGMOID] = "v <= -1.0f ? 0.0f : v >= 1.0f ? 1.0f : 0.5f * (v + 1.0f)",
};

static const char *__attribute__((format(printf, 2, 3))) formula_of(char text[256], const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    bwi_format(text, 256, format, arguments);
    va_end(arguments);
    return text;
}

/* Numbers of the formula are written into it, so that the compiler sees constants. */
const char *bwi_csource_formula(const bwi_activation_attributes *a, char text[256])
{
    char p[3][32];
    const char *n[3];
    for (int i = 0; i < 3; i++) {
        n[i] = bwi_csource_number(p[i], a->p[i]);
    }
    if (formulas[a->kind]) {
        return formulas[a->kind];
    }
    if (a->kind == BWI_ELU) {
        return formula_of(text, "v > 0.0f ? %s * v : %s * expm1f(v)", n[0], n[1]);
    }
    if (a->kind == BWI_LEAKY_RELU) {
        return formula_of(text, "v < 0.0f ? %s * v : v", n[0]);
    }
    if (a->kind == BWI_SQUAREPLUS) {
        return formula_of(text, "0.5f * (v < 0.0f ? %s / (sqrtf(v * v + %s) - v) : v + sqrtf(v * v + %s))", n[0], n[0], n[0]);
    }
    if (a->kind == BWI_SOFT_SHRINK) {
        return formula_of(text, "v > %s ? v - %s : v < -%s ? v + %s : 0.0f", n[0], n[0], n[0], n[0]);
    }
    if (a->kind == BWI_HARD_SHRINK) {
        return formula_of(text, "fabsf(v) > %s ? v : 0.0f", n[0]);
    }
    if (isinf(a->p[1])) {
        return formula_of(text, "v > %s ? v : %s * (v - %s)", n[2], n[0], n[2]);
    }
    return formula_of(text, "v > %s ? (v < %s ? v : %s) : %s * (v - %s)", n[2], n[1], n[1], n[0], n[2]);
}

static void put_activation(bwi_csource *s, const bw_node *node)
{
    char text[256];
    put_each(s, node, bwi_csource_formula(node->attributes, text));
}

static void put_scale(bwi_csource *s, const bw_node *node)
{
    const bwi_scale_attributes *a = node->attributes;
    char scale[32], offset[32];
    put_each_of(s, node, "v * %s + %s", bwi_csource_number(scale, a->scale), bwi_csource_number(offset, a->offset));
}

static void put_unary(bwi_csource *s, const bw_node *node)
{
    static const char *const one_call[BWI_UNARIES] = {
        [BWI_ABS] = "fabsf(v)", [BWI_SQUARE] = "v * v", [BWI_SQRT] = "sqrtf(v)", [BWI_LOG] = "logf(v)"};
    const bwi_unary_attributes *u = node->attributes;
    char low[32], high[32];
    const char *a = bwi_csource_number(low, u->a), *b = bwi_csource_number(high, u->b);
    if (one_call[u->kind]) {
        put_each(s, node, one_call[u->kind]);
    } else if (u->kind == BWI_POW) {
        put_each_of(s, node, "powf(v, %s)", a);
    } else if (u->kind == BWI_THRESHOLD) {
        put_each_of(s, node, "v > %s ? v : %s", a, b);
    } else {
        put_each_of(s, node, "v < %s ? %s : v > %s ? %s : v", a, a, b, b);
    }
}

static void put_add(bwi_csource *s, const bw_node *node)
{
    const bwi_add_attributes *a = node->attributes;
    char sum[256] = "x0[i]", scale[32];
    for (int k = 1; k < node->inputs; k++) {
        size_t n = strlen(sum);
        snprintf(sum + n, sizeof sum - n, " %c x%d[i]", a->subtract ? '-' : '+', k);
    }
    LINE(2, "for (int i = 0; i < %lld; i++) {", count_of(node));
    if (a->scale < 1 || a->scale > 1) {
        LINE(3, "y[i] = (%s) * %s;", sum, bwi_csource_number(scale, a->scale));
    } else {
        LINE(3, "y[i] = %s;", sum);
    }
    LINE(2, "}");
}

static void put_binary(bwi_csource *s, const bw_node *node)
{
    static const char *const kinds[BWI_BINARIES] = {[BWI_MULTIPLY] = "x0[i] * x1[i]",
                                                    [BWI_DIVIDE] = "x0[i] / x1[i]",
                                                    [BWI_MAXIMUM] = "x0[i] > x1[i] ? x0[i] : x1[i]",
                                                    [BWI_MINIMUM] = "x0[i] < x1[i] ? x0[i] : x1[i]"};
    const bwi_binary_attributes *a = node->attributes;
    LINE(2, "for (int i = 0; i < %lld; i++) {", count_of(node));
    LINE(3, "y[i] = %s;", kinds[a->kind]);
    LINE(2, "}");
}

/* ---- Smaller arrays repeated over a larger one ---- */

/* Opens loops over `large`, in which n counts its elements; `at` receives the index in `small`. */
static int open_spread(bwi_csource *s, const bwi_shape *large, const bwi_shape *small, char at[256])
{
    bwi_spread spread = bwi_spread_over(large, small);
    int64_t extent[BW_MAX_NDIM], stride[BW_MAX_NDIM];
    for (int i = 0; i < spread.ndim; i++) {
        extent[i] = spread.extent[spread.ndim - 1 - i];
        stride[i] = spread.stride[spread.ndim - 1 - i];
    }
    LINE(2, "int n = 0;");
    bwi_csource_loops(s, spread.ndim, extent);
    bwi_csource_at(at, spread.ndim, stride);
    return spread.ndim;
}

static void put_broadcast(bwi_csource *s, const bw_node *node)
{
    char at[256];
    int ndim = open_spread(s, &node->shape, &node->input[0]->shape, at);
    LINE(2 + ndim, "y[n++] = x[%s];", at);
    bwi_csource_loops_end(s, ndim);
}

static void put_prelu(bwi_csource *s, const bw_node *node)
{
    char at[256], alpha[160];
    bwi_csource_variable(s, node->variable[0], alpha);
    int ndim = open_spread(s, &node->shape, &node->variable[0]->shape, at);
    LINE(2 + ndim, "y[n] = x[n] < 0.0f ? %s[%s] * x[n] : x[n];", alpha, at);
    LINE(2 + ndim, "n++;");
    bwi_csource_loops_end(s, ndim);
}

static void put_normalization(bwi_csource *s, const bw_node *node)
{
    const bwi_normalization_attributes *a = node->attributes;
    char at[256], mean[160], deviation[160];
    int64_t count = bwi_shape_count(&node->variable[1]->shape);
    float *values = bwi_export_values(s->ctx, node->variable[1]);
    for (int64_t i = 0; values && i < count; i++) {
        values[i] = fmaxf(sqrtf(values[i]), 1e-7F);
    }
    bwi_csource_variable(s, node->variable[0], mean);
    bwi_csource_array(s, node->name, "deviation", values, count, deviation);
    bwi_release(s->ctx, values);
    int ndim = open_spread(s, &node->shape, &a->spread, at);
    if (a->invert) {
        LINE(2 + ndim, "y[n] = x[n] * %s[%s] + %s[%s];", deviation, at, mean, at);
    } else {
        LINE(2 + ndim, "y[n] = (x[n] - %s[%s]) / %s[%s];", mean, at, deviation, at);
    }
    LINE(2 + ndim, "n++;");
    bwi_csource_loops_end(s, ndim);
}

static void put_channel_affine(bwi_csource *s, const bw_node *node)
{
    const bwi_channel_affine_attributes *a = node->attributes;
    long long channels = (long long)node->shape.extent[node->shape.ndim - 1];
    char name[160], scale[200] = "", offset[200] = "";
    if (a->scale) {
        snprintf(scale, sizeof scale, " * %s[c]", bwi_csource_variable(s, node->variable[0], name));
    }
    if (a->center) {
        snprintf(offset, sizeof offset, " + %s[c]", bwi_csource_variable(s, node->variable[a->scale], name));
    }
    LINE(2, "for (int i = 0; i < %lld; i++, x += %lld, y += %lld) {", count_of(node) / channels, channels, channels);
    LINE(3, "for (int c = 0; c < %lld; c++) {", channels);
    LINE(4, "y[c] = x[c]%s%s;", scale, offset);
    LINE(3, "}");
    LINE(2, "}");
}

static void put_channel_map(bwi_csource *s, const bw_node *node)
{
    const bwi_channel_map_attributes *a = node->attributes;
    long long channels = (long long)a->channels;
    char numbers[160];
    bwi_csource_array(s, node->name, "numbers", a->number, 3 * a->channels, numbers);
    LINE(2, "for (int i = 0; i < %lld; i++, x += %lld, y += %lld) {", count_of(node) / channels, channels, channels);
    LINE(3, "for (int c = 0; c < %lld; c++) {", channels);
    LINE(4, "y[c] = (x[c] - %s[c]) * %s[c + %lld] + %s[c + %lld];", numbers, numbers, channels, numbers, 2 * channels);
    LINE(3, "}");
    LINE(2, "}");
}

/* ---- Moving values ---- */

static void put_permute(bwi_csource *s, const bw_node *node)
{
    const bwi_permute_attributes *a = node->attributes;
    const bwi_shape *in = &node->input[0]->shape;
    int64_t strides[BW_MAX_NDIM], own[BW_MAX_NDIM], stride = 1;
    char at[256];
    for (int i = in->ndim - 1; i >= 0; i--) {
        own[i] = stride;
        stride *= in->extent[i];
    }
    for (int i = 0; i < a->ndim; i++) {
        strides[i] = own[a->axes[i]];
    }
    LINE(2, "int n = 0;");
    bwi_csource_loops(s, a->ndim, node->shape.extent);
    LINE(2 + a->ndim, "y[n++] = x[%s];", bwi_csource_at(at, a->ndim, strides));
    bwi_csource_loops_end(s, a->ndim);
}

static void put_slice(bwi_csource *s, const bw_node *node)
{
    const bwi_slice_attributes *a = node->attributes;
    bwi_around x = bwi_shape_around(&node->input[0]->shape, a->axis);
    long long part = (long long)(a->count * x.inner), whole = (long long)(x.extent * x.inner);
    LINE(2, "for (int o = 0; o < %lld; o++) {", (long long)x.outer);
    LINE(3, "for (int i = 0; i < %lld; i++) {", part);
    LINE(4, "y[o * %lld + i] = x[o * %lld + %lld + i];", part, whole, (long long)(a->start * x.inner));
    LINE(3, "}");
    LINE(2, "}");
}

static void put_concatenate(bwi_csource *s, const bw_node *node)
{
    const bwi_axis_attributes *a = node->attributes;
    bwi_around y = bwi_shape_around(&node->shape, a->axis);
    long long before = 0;
    LINE(2, "for (int o = 0; o < %lld; o++) {", (long long)y.outer);
    for (int k = 0; k < node->inputs; k++) {
        bwi_around x = bwi_shape_around(&node->input[k]->shape, a->axis);
        long long part = (long long)(x.extent * x.inner);
        LINE(3, "for (int i = 0; i < %lld; i++) {", part);
        LINE(4, "y[o * %lld + %lld + i] = x%d[o * %lld + i];", (long long)(y.extent * y.inner), before, k, part);
        LINE(3, "}");
        before += part;
    }
    LINE(2, "}");
}

/* ---- Along an axis ---- */

/* Loops over all axes but one, and the index of element i along that one. */
typedef struct along {
    bwi_around around;
    int depth;   /* depth of the code inside the loops */
    char at[48]; /* index of element i */
    char one[4]; /* index of the only element if the axis is removed; otherwise of the first one */
} along;

static along open_along(bwi_csource *s, bwi_around around, bool kept)
{
    along a = {.around = around, .depth = 3, .at = "i", .one = "0"};
    long long whole = (long long)(around.extent * around.inner);
    LINE(2, "for (int o = 0; o < %lld; o++, x += %lld, y += %lld) {", (long long)around.outer, whole,
         kept ? whole : (long long)around.inner);
    if (around.inner > 1) {
        LINE(3, "for (int j = 0; j < %lld; j++) {", (long long)around.inner);
        a.depth = 4;
        snprintf(a.at, sizeof a.at, "i * %lld + j", (long long)around.inner);
        snprintf(a.one, sizeof a.one, "j");
    }
    return a;
}

static void close_along(bwi_csource *s, const along *a)
{
    for (int depth = a->depth - 1; depth >= 2; depth--) {
        LINE(depth, "}");
    }
}

static void put_loop(bwi_csource *s, const along *a, int from, const char *statement, const char *more)
{
    LINE(a->depth, "for (int i = %d; i < %lld; i++) {", from, (long long)a->around.extent);
    LINE(a->depth + 1, "%s", statement);
    if (more) {
        LINE(a->depth + 1, "%s", more);
    }
    LINE(a->depth, "}");
}

static void put_softmax_along(bwi_csource *s, const bw_node *node, int axis)
{
    along a = open_along(s, bwi_shape_around(&node->shape, axis), true);
    char largest[192], power[192], sum[96], share[96];
    snprintf(largest, sizeof largest, "most = x[%s] > most ? x[%s] : most;", a.at, a.at);
    snprintf(power, sizeof power, "y[%s] = expf(x[%s] - most);", a.at, a.at);
    snprintf(sum, sizeof sum, "sum += y[%s];", a.at);
    snprintf(share, sizeof share, "y[%s] /= sum;", a.at);
    LINE(a.depth, "float most = x[%s], sum = 0.0f;", a.one);
    put_loop(s, &a, 1, largest, NULL);
    put_loop(s, &a, 0, power, sum);
    put_loop(s, &a, 0, share, NULL);
    close_along(s, &a);
}

static void put_softmax(bwi_csource *s, const bw_node *node)
{
    put_softmax_along(s, node, node->shape.ndim - 1);
}

static void put_softmax_axis(bwi_csource *s, const bw_node *node)
{
    const bwi_axis_attributes *a = node->attributes;
    put_softmax_along(s, node, a->axis);
}

/* x / max(|x|, 1e-7) */
static void put_l2_normalize(bwi_csource *s, const bw_node *node)
{
    const bwi_axis_attributes *attributes = node->attributes;
    along a = open_along(s, bwi_shape_around(&node->shape, attributes->axis), true);
    char square[192], quotient[192];
    snprintf(square, sizeof square, "sum += x[%s] * x[%s];", a.at, a.at);
    snprintf(quotient, sizeof quotient, "y[%s] = x[%s] / (sum > 1e-14f ? sqrtf(sum) : 1e-7f);", a.at, a.at);
    LINE(a.depth, "float sum = 0.0f;");
    put_loop(s, &a, 0, square, NULL);
    put_loop(s, &a, 0, quotient, NULL);
    close_along(s, &a);
}

/* An element's place among the others, sorted downwards, is the number of those before it, counted for each element. */
static void put_sparsemax(bwi_csource *s, const bw_node *node)
{
    long long width = (long long)node->shape.extent[node->shape.ndim - 1];
    LINE(2, "for (int r = 0; r < %lld; r++, x += %lld, y += %lld) {", count_of(node) / width, width, width);
    LINE(3, "float total = 0.0f, size = 0.0f;");
    LINE(3, "for (int i = 0; i < %lld; i++) {", width);
    LINE(4, "float sum = 0.0f, place = 0.0f;");
    LINE(4, "for (int k = 0; k < %lld; k++) {", width);
    LINE(5, "if (x[k] > x[i] || (k <= i && !(x[k] < x[i]))) {");
    LINE(6, "sum += x[k];");
    LINE(6, "place += 1.0f;");
    LINE(5, "}");
    LINE(4, "}");
    LINE(4, "if (x[i] > (sum - 1.0f) / place) {");
    LINE(5, "total += sum;");
    LINE(5, "size += 1.0f;");
    LINE(4, "}");
    LINE(3, "}");
    LINE(3, "for (int i = 0; i < %lld; i++) {", width);
    LINE(4, "const float rest = x[i] - (total - 1.0f) / size;");
    LINE(4, "y[i] = rest > 0.0f ? rest : 0.0f;");
    LINE(3, "}");
    LINE(2, "}");
}

static bwi_around reduced(const bw_node *node)
{
    const bwi_reduce_attributes *a = node->attributes;
    const bwi_shape *in = &node->input[0]->shape;
    return a->axis < 0 ? (bwi_around){1, bwi_shape_count(in), 1} : bwi_shape_around(in, a->axis);
}

static void put_reduce(bwi_csource *s, const bw_node *node)
{
    const bwi_reduce_attributes *attributes = node->attributes;
    along a = open_along(s, reduced(node), false);
    char term[96], share[32] = "";
    snprintf(term, sizeof term, "sum += x[%s];", a.at);
    if (attributes->kind == BWI_REDUCE_MEAN) {
        snprintf(share, sizeof share, " / %lld.0f", (long long)a.around.extent);
    }
    LINE(a.depth, "float sum = 0.0f;");
    put_loop(s, &a, 0, term, NULL);
    LINE(a.depth, "y[%s] = sum%s;", a.one, share);
    close_along(s, &a);
}

static void put_extreme(bwi_csource *s, const bw_node *node)
{
    const bwi_reduce_attributes *attributes = node->attributes;
    along a = open_along(s, reduced(node), false);
    char value[96], best[96];
    snprintf(value, sizeof value, "const float v = x[%s];", a.at);
    snprintf(best, sizeof best, "best = v %c best || isnan(v) ? v : best;", attributes->kind == BWI_REDUCE_MAX ? '>' : '<');
    LINE(a.depth, "float best = x[%s];", a.one);
    put_loop(s, &a, 1, value, best);
    LINE(a.depth, "y[%s] = best;", a.one);
    close_along(s, &a);
}

/* ---- Normalising ---- */

/* y = (x - mean) / sqrt(variance + epsilon) gamma + beta over the last axes. Mean and variance take two passes, as in the
 * kernel. */
static void put_layernorm(bwi_csource *s, const bw_node *node)
{
    const bwi_layernorm_attributes *a = node->attributes;
    const bwi_variable *gamma = a->scale ? node->variable[0] : NULL, *beta = a->center ? node->variable[a->scale] : NULL;
    long long width = 1;
    char name[160], epsilon[32], scale[200] = "", offset[200] = "";
    for (int i = node->shape.ndim - a->axes; i < node->shape.ndim; i++) {
        width *= (long long)node->shape.extent[i];
    }
    if (gamma) {
        snprintf(scale, sizeof scale, " * %s[i]", bwi_csource_variable(s, gamma, name));
    }
    if (beta) {
        snprintf(offset, sizeof offset, " + %s[i]", bwi_csource_variable(s, beta, name));
    }
    LINE(2, "for (int r = 0; r < %lld; r++, x += %lld, y += %lld) {", count_of(node) / width, width, width);
    LINE(3, "float mean = 0.0f, variance = 0.0f;");
    LINE(3, "for (int i = 0; i < %lld; i++) {", width);
    LINE(4, "mean += x[i];");
    LINE(3, "}");
    LINE(3, "mean /= %lld.0f;", width);
    LINE(3, "for (int i = 0; i < %lld; i++) {", width);
    LINE(4, "variance += (x[i] - mean) * (x[i] - mean);");
    LINE(3, "}");
    LINE(3, "variance /= %lld.0f;", width);
    LINE(3, "const float inverse = 1.0f / sqrtf(variance + %s);", bwi_csource_number(epsilon, a->epsilon));
    LINE(3, "for (int i = 0; i < %lld; i++) {", width);
    LINE(4, "y[i] = (x[i] - mean) * inverse%s%s;", scale, offset);
    LINE(3, "}");
    LINE(2, "}");
}

/* Computes gamma / sqrt(variance + epsilon) for each channel. The caller releases the array. */
static float *batchnorm_scales(const bwi_csource *s, const bw_node *node)
{
    const bwi_batchnorm_attributes *a = node->attributes;
    const bwi_variable *gamma = a->scale ? node->variable[0] : NULL, *variance = node->variable[node->variables - 1];
    float *scales = bwi_export_values(s->ctx, variance), *factors = gamma ? bwi_export_values(s->ctx, gamma) : NULL;
    if (!scales || (gamma && !factors)) {
        bwi_release(s->ctx, scales);
        bwi_release(s->ctx, factors);
        return NULL;
    }
    for (int64_t c = 0; c < bwi_shape_count(&variance->shape); c++) {
        scales[c] = (factors ? factors[c] : 1) / sqrtf(scales[c] + a->epsilon);
    }
    bwi_release(s->ctx, factors);
    return scales;
}

static void put_batchnorm(bwi_csource *s, const bw_node *node)
{
    const bwi_batchnorm_attributes *a = node->attributes;
    const bwi_variable *mean = node->variable[node->variables - 2], *beta = a->center ? node->variable[a->scale] : NULL;
    int64_t channels = bwi_shape_count(&mean->shape);
    char mean_name[160], beta_name[160], scale_name[160], offset[200] = "";
    float *scales = batchnorm_scales(s, node);
    bwi_csource_variable(s, mean, mean_name);
    bwi_csource_array(s, node->name, "scale", scales, channels, scale_name);
    bwi_release(s->ctx, scales);
    if (beta) {
        snprintf(offset, sizeof offset, " + %s[c]", bwi_csource_variable(s, beta, beta_name));
    }
    LINE(2, "for (int i = 0; i < %lld; i++, x += %lld, y += %lld) {", count_of(node) / (long long)channels, (long long)channels,
         (long long)channels);
    LINE(3, "for (int c = 0; c < %lld; c++) {", (long long)channels);
    LINE(4, "y[c] = (x[c] - %s[c]) * %s[c]%s;", mean_name, scale_name, offset);
    LINE(3, "}");
    LINE(2, "}");
}

/* ---- Products ---- */

static void put_reverse(bwi_csource *s, const bw_node *node)
{
    long long positions = (long long)node->shape.extent[0], width = count_of(node) / positions;
    LINE(2, "for (int i = 0; i < %lld; i++) {", count_of(node));
    LINE(3, "y[i] = x[(%lld - i / %lld) * %lld + i %% %lld];", positions - 1, width, width, width);
    LINE(2, "}");
}

static void put_dense(bwi_csource *s, const bw_node *node)
{
    long long in = (long long)bwi_dense_in(node->variable[0]), out = (long long)bwi_dense_out(node->variable[0]);
    char kernel[160], bias[160] = "";
    bwi_csource_variable(s, node->variable[0], kernel);
    if (node->variables > 1) {
        bwi_csource_variable(s, node->variable[1], bias);
    }
    LINE(2, "for (int r = 0; r < %lld; r++, x += %lld, y += %lld) {", count_of(node) / out, in, out);
    LINE(3, "for (int o = 0; o < %lld; o++) {", out);
    LINE(4, "y[o] = %s%s;", bias[0] ? bias : "0.0f", bias[0] ? "[o]" : "");
    LINE(3, "}");
    LINE(3, "for (int i = 0; i < %lld; i++) {", in);
    LINE(4, "for (int o = 0; o < %lld; o++) {", out);
    LINE(5, "y[o] += x[i] * %s[i * %lld + o];", kernel, out);
    LINE(4, "}");
    LINE(3, "}");
    LINE(2, "}");
}

static void put_dot(bwi_csource *s, const bw_node *node)
{
    const bwi_dot_attributes *d = node->attributes;
    bwi_around a = bwi_shape_around(&node->input[0]->shape, d->axis[0]), b = bwi_shape_around(&node->input[1]->shape, d->axis[1]);
    const int64_t extents[4] = {a.outer, a.inner, b.outer, b.inner};
    LINE(2, "int n = 0;");
    bwi_csource_loops(s, 4, extents);
    LINE(6, "float sum = 0.0f;");
    LINE(6, "for (int i = 0; i < %lld; i++) {", (long long)a.extent);
    LINE(7, "sum += x0[(a0 * %lld + i) * %lld + a1] * x1[(a2 * %lld + i) * %lld + a3];", (long long)a.extent, (long long)a.inner,
         (long long)b.extent, (long long)b.inner);
    LINE(6, "}");
    LINE(6, "y[n++] = sum;");
    bwi_csource_loops_end(s, 4);
}

/* ---- Indices and masks ---- */

/* An index that is not a row of the table gives NaN, so that nothing outside the table is read. */
static void put_embedding(bwi_csource *s, const bw_node *node)
{
    long long rows = (long long)node->variable[0]->shape.extent[0], width = (long long)node->variable[0]->shape.extent[1];
    char table[160];
    bwi_csource_variable(s, node->variable[0], table);
    LINE(2, "for (int i = 0; i < %lld; i++, y += %lld) {", (long long)bwi_shape_count(&node->input[0]->shape), width);
    if (bwi_csource_reads_ints(s, node)) {
        LINE(3, "const int row = x[i], there = row >= 0 && row < %lld;", rows);
    } else {
        LINE(3, "const int there = x[i] >= 0.0f && x[i] < %lld.0f, row = there ? (int)x[i] : 0;", rows);
    }
    LINE(3, "for (int c = 0; c < %lld; c++) {", width);
    LINE(4, "y[c] = there ? %s[row * %lld + c] : NAN;", table, width);
    LINE(3, "}");
    LINE(2, "}");
}

static void put_index_mask(bwi_csource *s, const bw_node *node)
{
    const char *zero = bwi_csource_reads_ints(s, node) ? "0" : "0.0f";
    LINE(2, "for (int i = 0; i < %lld; i++) {", count_of(node));
    LINE(3, "y[i] = x[i] < %s || x[i] > %s ? 1.0f : 0.0f;", zero, zero);
    LINE(2, "}");
}

static void put_masked_average(bwi_csource *s, const bw_node *node)
{
    long long positions = (long long)node->input[0]->shape.extent[0], channels = (long long)node->shape.extent[0];
    LINE(2, "float count = 0.0f;");
    LINE(2, "for (int i = 0; i < %lld; i++) {", positions);
    LINE(3, "count += x1[i] > 0.0f ? 1.0f : 0.0f;");
    LINE(2, "}");
    LINE(2, "for (int c = 0; c < %lld; c++) {", channels);
    LINE(3, "float sum = 0.0f;");
    LINE(3, "for (int i = 0; i < %lld; i++) {", positions);
    LINE(4, "sum += x1[i] > 0.0f ? x0[i * %lld + c] : 0.0f;", channels);
    LINE(3, "}");
    LINE(3, "y[c] = count > 0.0f ? sum / count : 0.0f;");
    LINE(2, "}");
}

static void put_value_mask(bwi_csource *s, const bw_node *node)
{
    const bwi_value_mask_attributes *a = node->attributes;
    long long width = (long long)node->input[0]->shape.extent[node->shape.ndim];
    char text[32];
    const char *value = bwi_csource_number(text, a->value);
    LINE(2, "for (int i = 0; i < %lld; i++) {", count_of(node));
    LINE(3, "y[i] = 0.0f;");
    LINE(3, "for (int c = 0; c < %lld; c++) {", width);
    LINE(4, "const float v = x[i * %lld + c];", width);
    LINE(4, "y[i] = v >= %s && v <= %s ? y[i] : 1.0f;", value, value);
    LINE(3, "}");
    LINE(2, "}");
}

static void put_mask_any(bwi_csource *s, const bw_node *node)
{
    char any[256] = "x0[i] > 0.0f";
    for (int k = 1; k < node->inputs; k++) {
        size_t n = strlen(any);
        snprintf(any + n, sizeof any - n, " || x%d[i] > 0.0f", k);
    }
    LINE(2, "for (int i = 0; i < %lld; i++) {", count_of(node));
    LINE(3, "y[i] = %s ? 1.0f : 0.0f;", any);
    LINE(2, "}");
}

const bwi_csource_row bwi_csource_ops[] = {
    {&bwi_op_relu, put_relu, true},
    {&bwi_op_activation, put_activation, true},
    {&bwi_op_activation_of_input, put_activation, true},
    {&bwi_op_scale, put_scale, true},
    {&bwi_op_unary, put_unary, true},
    {&bwi_op_add, put_add, true},
    {&bwi_op_binary, put_binary, true},
    {&bwi_op_broadcast, put_broadcast, false},
    {&bwi_op_prelu, put_prelu, true},
    {&bwi_op_normalization, put_normalization, true},
    {&bwi_op_channel_affine, put_channel_affine, true},
    {&bwi_op_channel_map, put_channel_map, true},
    {&bwi_op_permute, put_permute, false},
    {&bwi_op_slice, put_slice, false},
    {&bwi_op_concatenate, put_concatenate, false},
    {&bwi_op_softmax, put_softmax, true},
    {&bwi_op_softmax_axis, put_softmax_axis, true},
    {&bwi_op_l2_normalize, put_l2_normalize, true},
    {&bwi_op_sparsemax, put_sparsemax, false},
    {&bwi_op_reduce, put_reduce, false},
    {&bwi_op_reduce_extreme, put_extreme, false},
    {&bwi_op_layernorm, put_layernorm, true},
    {&bwi_op_batchnorm, put_batchnorm, true},
    {&bwi_op_batchnorm_frozen, put_batchnorm, true},
    {&bwi_op_dense, put_dense, false},
    {&bwi_op_recurrent, bwi_csource_recurrent, false},
    {&bwi_op_attention, bwi_csource_attention, false},
    {&bwi_op_reverse, put_reverse, false},
    {&bwi_op_dot, put_dot, false},
    {&bwi_op_embedding, put_embedding, false},
    {&bwi_op_index_mask, put_index_mask, false},
    {&bwi_op_masked_average, put_masked_average, false},
    {&bwi_op_mask_any, put_mask_any, true},
    {&bwi_op_value_mask, put_value_mask, false},
    {NULL, NULL, false},
};
