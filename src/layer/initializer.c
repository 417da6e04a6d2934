/*
 * Keras's initializers, by name and arguments. A value depends only on the seed, the variable's place in the model and the element.
 * Values are drawn in Keras's order, and packed afterwards.
 */
#include "layer/internal.h"

#include <math.h>
#include <string.h>

/* A request for initial values: `values` has `count` elements in the variable's unpacked order. */
typedef struct draw {
    bw_context *ctx;
    const bwi_variable *variable;
    const bwi_argument_value *arguments;
    uint64_t seed;
    int64_t count;
    float *values;
} draw;

typedef struct initializer_row {
    const char *names; /* the first one is preferred */
    const bwi_argument *arguments;
    int argument_count;
    int seed; /* index of the argument; -1: none */
    bw_status (*fill)(const draw *d);
} initializer_row;

/* clang-format off */
#define SEED_ARGUMENT {"seed", NULL, BWI_INT, "", 0, 0, NULL}
/* clang-format on */

static bw_status fill_constant(const draw *d, double value)
{
    for (int64_t i = 0; i < d->count; i++) {
        d->values[i] = (float)value;
    }
    return BW_OK;
}

/* ---- Draws ---- */

static bwi_random words(const draw *d, int64_t counter)
{
    return bwi_random_at(d->seed, (uint64_t)d->variable->index, (uint64_t)counter);
}

/* Draws four standard normals. */
static void normals(const draw *d, int64_t counter, float *four)
{
    bwi_random r = words(d, counter);
    bwi_random_normal(r.word[0], r.word[1], &four[0], &four[1]);
    bwi_random_normal(r.word[2], r.word[3], &four[2], &four[3]);
}

static bw_status fill_uniform(const draw *d, double low, double high)
{
    float middle = (float)((low + high) / 2), half = (float)((high - low) / 2);
    for (int64_t i = 0; i < d->count; i += 4) {
        bwi_random r = words(d, i / 4);
        for (int64_t k = 0; k < 4 && i + k < d->count; k++) {
            d->values[i + k] = middle + (2 * bwi_random_uniform(r.word[k]) - 1) * half;
        }
    }
    return BW_OK;
}

/* Draws a standard normal within two deviations, for an element whose first draw was beyond them. */
static float redraw(const draw *d, int64_t element)
{
    for (int64_t attempt = 1;; attempt++) {
        float four[4];
        normals(d, (int64_t)((uint64_t)attempt << 48) | element, four);
        for (int k = 0; k < 4; k++) {
            if (fabsf(four[k]) <= 2) {
                return four[k];
            }
        }
    }
}

static bw_status fill_normal(const draw *d, double mean, double deviation, bool truncated)
{
    for (int64_t i = 0; i < d->count; i += 4) {
        float four[4];
        normals(d, i / 4, four);
        for (int64_t k = 0; k < 4 && i + k < d->count; k++) {
            float z = truncated && fabsf(four[k]) > 2 ? redraw(d, i + k) : four[k];
            d->values[i + k] = (float)(mean + deviation * (double)z);
        }
    }
    return BW_OK;
}

/* ---- zeros, ones, constant ---- */

static bw_status zeros(const draw *d)
{
    return fill_constant(d, 0);
}

static bw_status ones(const draw *d)
{
    return fill_constant(d, 1);
}

static const bwi_argument constant_arguments[] = {{"value", NULL, BWI_FLOAT, "0", 0, 0, NULL}};

static bw_status constant(const draw *d)
{
    return fill_constant(d, d->arguments[0].number);
}

/* ---- random_uniform, random_normal, truncated_normal ---- */

enum { LOW, HIGH, UNIFORM_SEED, UNIFORM_COUNT };

static const bwi_argument uniform_arguments[UNIFORM_COUNT] = {
    [LOW] = {"minval", NULL, BWI_FLOAT, "-0.05", 0, 0, NULL},
    [HIGH] = {"maxval", NULL, BWI_FLOAT, "0.05", 0, 0, NULL},
    [UNIFORM_SEED] = SEED_ARGUMENT,
};

static bw_status random_uniform(const draw *d)
{
    double low = d->arguments[LOW].number, high = d->arguments[HIGH].number;
    if (!(low <= high)) {
        return bwi_fail(d->ctx, BW_INVALID_ARGUMENT, "%s: random_uniform: minval is %g, above maxval, %g", d->variable->name, low,
                        high);
    }
    return fill_uniform(d, low, high);
}

enum { MEAN, DEVIATION, NORMAL_SEED, NORMAL_COUNT };

static const bwi_argument normal_arguments[NORMAL_COUNT] = {
    [MEAN] = {"mean", NULL, BWI_FLOAT, "0", 0, 0, NULL},
    [DEVIATION] = {"stddev", NULL, BWI_FLOAT, "0.05", 0, 1e30, NULL},
    [NORMAL_SEED] = SEED_ARGUMENT,
};

static bw_status random_normal(const draw *d)
{
    return fill_normal(d, d->arguments[MEAN].number, d->arguments[DEVIATION].number, false);
}

static bw_status truncated_normal(const draw *d)
{
    return fill_normal(d, d->arguments[MEAN].number, d->arguments[DEVIATION].number, true);
}

/* ---- variance_scaling: variance scale / fan; and the six that are named after their authors ---- */

/* If the layer names no fans, they follow from the shape: inputs and outputs, times the receptive field. */
static void fans(const bwi_variable *variable, double *in, double *out)
{
    const bwi_shape *shape = &variable->shape;
    *in = (double)variable->fan_in;
    *out = (double)variable->fan_out;
    if (*in > 0 || *out > 0 || shape->ndim == 0) {
        return;
    }
    *out = (double)shape->extent[shape->ndim - 1];
    *in = shape->ndim > 1 ? (double)shape->extent[shape->ndim - 2] : *out;
    for (int i = 0; i < shape->ndim - 2; i++) {
        *in *= (double)shape->extent[i];
        *out *= (double)shape->extent[i];
    }
}

typedef enum distribution { UNIFORM, TRUNCATED, UNTRUNCATED } distribution;
typedef enum fan { FAN_IN, FAN_OUT, FAN_AVERAGE } fan;

/* The deviation of a standard normal that is truncated at two deviations. */
static const double TRUNCATED_DEVIATION = 0.87962566103423978;

static bw_status fill_scaled(const draw *d, double scale, fan mode, distribution kind)
{
    double in, out;
    fans(d->variable, &in, &out);
    double variance = scale / fmax(1, mode == FAN_IN ? in : mode == FAN_OUT ? out : (in + out) / 2);
    if (kind == UNIFORM) {
        double limit = sqrt(3 * variance);
        return fill_uniform(d, -limit, limit);
    }
    double deviation = sqrt(variance);
    return fill_normal(d, 0, kind == TRUNCATED ? deviation / TRUNCATED_DEVIATION : deviation, kind == TRUNCATED);
}

enum { SCALE, MODE, DISTRIBUTION, SCALING_SEED, SCALING_COUNT };

static const bwi_argument scaling_arguments[SCALING_COUNT] = {
    [SCALE] = {"scale", NULL, BWI_FLOAT, "1", 1e-30, 1e30, NULL},
    [MODE] = {"mode", NULL, BWI_TEXT, "fan_in", 0, 0, "fan_in fan_out fan_avg"},
    [DISTRIBUTION] = {"distribution", NULL, BWI_TEXT, "truncated_normal", 0, 0,
                      "truncated_normal untruncated_normal uniform normal"},
    [SCALING_SEED] = SEED_ARGUMENT,
};

static bw_status variance_scaling(const draw *d)
{
    const char *mode = d->arguments[MODE].text, *kind = d->arguments[DISTRIBUTION].text;
    return fill_scaled(d, d->arguments[SCALE].number,
                       strcmp(mode, "fan_in") == 0    ? FAN_IN
                       : strcmp(mode, "fan_out") == 0 ? FAN_OUT
                                                      : FAN_AVERAGE,
                       strcmp(kind, "uniform") == 0              ? UNIFORM
                       : strcmp(kind, "untruncated_normal") == 0 ? UNTRUNCATED
                                                                 : TRUNCATED);
}

static const bwi_argument seed_arguments[] = {SEED_ARGUMENT};

static bw_status glorot_uniform(const draw *d)
{
    return fill_scaled(d, 1, FAN_AVERAGE, UNIFORM);
}

static bw_status glorot_normal(const draw *d)
{
    return fill_scaled(d, 1, FAN_AVERAGE, TRUNCATED);
}

static bw_status he_uniform(const draw *d)
{
    return fill_scaled(d, 2, FAN_IN, UNIFORM);
}

static bw_status he_normal(const draw *d)
{
    return fill_scaled(d, 2, FAN_IN, TRUNCATED);
}

static bw_status lecun_uniform(const draw *d)
{
    return fill_scaled(d, 1, FAN_IN, UNIFORM);
}

static bw_status lecun_normal(const draw *d)
{
    return fill_scaled(d, 1, FAN_IN, TRUNCATED);
}

/* ---- identity, orthogonal: matrices ---- */

static const bwi_argument identity_arguments[] = {{"gain", NULL, BWI_FLOAT, "1", 0, 0, NULL}};

static bw_status refuse_shape(const draw *d, const char *name, const char *expected)
{
    char text[160];
    const bwi_shape *shape = &d->variable->shape;
    return bwi_fail(d->ctx, BW_INVALID_ARGUMENT, "%s: %s: expected %s, got a variable of shape %s", d->variable->name, name,
                    expected, bwi_format_shape(text, shape->ndim, shape->extent));
}

static bw_status identity(const draw *d)
{
    const bwi_shape *shape = &d->variable->shape;
    if (shape->ndim != 2) {
        return refuse_shape(d, "identity", "a matrix");
    }
    fill_constant(d, 0);
    for (int64_t i = 0; i < shape->extent[0] && i < shape->extent[1]; i++) {
        d->values[i * shape->extent[1] + i] = (float)d->arguments[0].number;
    }
    return BW_OK;
}

enum { GAIN, ORTHOGONAL_SEED, ORTHOGONAL_COUNT };

static const bwi_argument orthogonal_arguments[ORTHOGONAL_COUNT] = {
    [GAIN] = {"gain", NULL, BWI_FLOAT, "1", 0, 0, NULL},
    [ORTHOGONAL_SEED] = SEED_ARGUMENT,
};

static double product(int64_t length, const double *a, const double *b)
{
    double sum = 0;
    for (int64_t i = 0; i < length; i++) {
        sum += a[i] * b[i];
    }
    return sum;
}

/* Gram-Schmidt, applied twice to each vector so that rounding does not matter. It gives the Q of a QR factorisation whose R has
 * a positive diagonal, which makes Q uniform among orthogonal matrices. */
static void orthogonalize(int64_t vectors, int64_t length, double *q)
{
    for (int64_t v = 0; v < vectors; v++) {
        double *own = q + v * length;
        for (int64_t k = 0; k < 2 * v; k++) {
            const double *other = q + k % v * length;
            double part = product(length, own, other);
            for (int64_t i = 0; i < length; i++) {
                own[i] -= part * other[i];
            }
        }
        double norm = sqrt(product(length, own, own));
        for (int64_t i = 0; i < length; i++) {
            own[i] /= norm;
        }
    }
}

/* All axes but the last are rows. The vectors of the longer side are drawn as normals and made orthonormal. */
static bw_status orthogonal(const draw *d)
{
    const bwi_shape *shape = &d->variable->shape;
    if (shape->ndim < 2) {
        return refuse_shape(d, "orthogonal", "at least two axes");
    }
    int64_t columns = shape->extent[shape->ndim - 1], rows = d->count / columns;
    int64_t vectors = rows < columns ? rows : columns, length = rows < columns ? columns : rows;
    double *q = bwi_allocate(d->ctx, (size_t)d->count, sizeof *q);
    if (!q) {
        return BW_RESOURCE_EXHAUSTED;
    }
    for (int64_t i = 0; i < d->count; i += 4) {
        float four[4];
        normals(d, i / 4, four);
        for (int64_t k = 0; k < 4 && i + k < d->count; k++) {
            q[i + k] = (double)four[k];
        }
    }
    orthogonalize(vectors, length, q);
    for (int64_t i = 0; i < d->count; i++) {
        int64_t r = i / columns, c = i % columns;
        d->values[i] = (float)(d->arguments[GAIN].number * (rows < columns ? q[r * length + c] : q[c * length + r]));
    }
    bwi_release(d->ctx, q);
    return BW_OK;
}

/* ---- The table ---- */

static const initializer_row rows[] = {
    {"zeros zero", NULL, 0, -1, zeros},
    {"ones one", NULL, 0, -1, ones},
    {"constant", constant_arguments, BWI_COUNT(constant_arguments), -1, constant},
    {"random_uniform uniform", uniform_arguments, UNIFORM_COUNT, UNIFORM_SEED, random_uniform},
    {"random_normal normal", normal_arguments, NORMAL_COUNT, NORMAL_SEED, random_normal},
    {"truncated_normal", normal_arguments, NORMAL_COUNT, NORMAL_SEED, truncated_normal},
    {"variance_scaling", scaling_arguments, SCALING_COUNT, SCALING_SEED, variance_scaling},
    {"glorot_uniform", seed_arguments, 1, 0, glorot_uniform},
    {"glorot_normal", seed_arguments, 1, 0, glorot_normal},
    {"he_uniform", seed_arguments, 1, 0, he_uniform},
    {"he_normal", seed_arguments, 1, 0, he_normal},
    {"lecun_uniform", seed_arguments, 1, 0, lecun_uniform},
    {"lecun_normal", seed_arguments, 1, 0, lecun_normal},
    {"orthogonal", orthogonal_arguments, ORTHOGONAL_COUNT, ORTHOGONAL_SEED, orthogonal},
    {"identity", identity_arguments, BWI_COUNT(identity_arguments), -1, identity},
};

enum { MOST_ARGUMENTS = 4 };

const char *bwi_initializer_names(int index)
{
    return index >= 0 && index < (int)BWI_COUNT(rows) ? rows[index].names : NULL;
}

static const initializer_row *find_row(const bwi_term *term)
{
    for (size_t i = 0; i < BWI_COUNT(rows); i++) {
        if (bwi_term_resembles_any(term, rows[i].names)) {
            return &rows[i];
        }
    }
    return NULL;
}

static bw_status refuse_name(bw_context *ctx, const bwi_variable *variable, const bwi_term *term)
{
    bwi_text known = {.ctx = ctx};
    for (size_t i = 0; i < BWI_COUNT(rows); i++) {
        bwi_text_add(&known, "%s%.*s", i ? ", " : "", (int)strcspn(rows[i].names, " "), rows[i].names);
    }
    bw_status status = bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: there is no initializer '%.*s'; there are %s", variable->name,
                                term->length, term->text, known.bytes ? known.bytes : "");
    bwi_text_free(&known);
    return status;
}

/* Values are drawn in Keras's order, whatever order the variable is stored in, so that a seed gives the same values with all
 * kernels. */
static bw_status fill(bw_context *ctx, bwi_variable *variable, const initializer_row *row, const bwi_argument_value *arguments,
                      uint64_t seed)
{
    int64_t count = bwi_shape_count(&variable->shape);
    bool own_seed = row->seed >= 0 && arguments[row->seed].given;
    draw d = {.ctx = ctx, .variable = variable, .arguments = arguments, .count = count};
    d.seed = own_seed ? (uint64_t)arguments[row->seed].integer : seed;
    /* A variable that is stored in Keras's order is filled in place, because a table may take most of the memory there is. */
    bool packed = variable->packing.pack;
    d.values = packed ? bwi_allocate(ctx, (size_t)count, sizeof *d.values) : bwi_variable_open(variable);
    if (!d.values) {
        return BW_RESOURCE_EXHAUSTED;
    }
    bw_status status = row->fill(&d);
    for (int64_t i = variable->ones_first; i < variable->ones_first + variable->ones_count; i++) {
        d.values[i] = 1;
    }
    if (packed && status == BW_OK) {
        bwi_variable_write(variable, d.values);
    }
    if (packed) {
        bwi_release(ctx, d.values);
    } else {
        bwi_variable_close(variable);
    }
    return status;
}

bw_status bwi_initialize(bw_context *ctx, bwi_variable *variable, uint64_t seed)
{
    bwi_expression e;
    char what[sizeof variable->name + sizeof ": initializer"];
    snprintf(what, sizeof what, "%s: initializer", variable->name);
    bw_status status = bwi_term_parse(ctx, &e, what, variable->initializer);
    if (status != BW_OK) {
        return status;
    }
    bwi_argument_value arguments[MOST_ARGUMENTS];
    const initializer_row *row = find_row(&e.terms[0]);
    if (row) {
        status = bwi_arguments_read(ctx, what, &e.terms[0], row->arguments, row->argument_count, arguments);
    } else {
        status = refuse_name(ctx, variable, &e.terms[0]);
    }
    bwi_expression_free(&e);
    return status == BW_OK ? fill(ctx, variable, row, arguments, seed) : status;
}
