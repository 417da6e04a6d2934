/* What looks at a variable as a whole (whole.h). */
#include "kernel/kernel.h"
#include "kernel/packing.h"

#include <float.h>
#include <math.h>
#include <string.h>

static double mean_square(int64_t count, const float *x)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++) {
        sum += (double)x[i] * (double)x[i];
    }
    return count > 0 ? sum / (double)count : 0;
}

/* ---- Adafactor ---- */

/* Takes one matrix: rows are the axis before the last. */
static void factor(const bwi_adafactor *a, int64_t rows, int64_t columns, const float *g, float *r, float *c, float *v)
{
    float rest = 1 - a->keep;
    double all = 0;
    for (int64_t i = 0; i < rows; i++) {
        double sum = 0;
        for (int64_t j = 0; j < columns; j++) {
            float x = g[i * columns + j];
            sum += (double)(x * x + a->epsilon1);
        }
        r[i] = a->keep * r[i] + rest * (float)(sum / (double)columns);
        all += (double)r[i];
    }
    for (int64_t j = 0; j < columns; j++) {
        double sum = 0;
        for (int64_t i = 0; i < rows; i++) {
            float x = g[i * columns + j];
            sum += (double)(x * x + a->epsilon1);
        }
        c[j] = a->keep * c[j] + rest * (float)(sum / (double)rows);
    }
    float mean = (float)(all / (double)rows);
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < columns; j++) {
            v[i * columns + j] = r[i] / mean * c[j];
        }
    }
}

void bwi_whole_adafactor(const bwi_adafactor *a, const bwi_extents *e, float *g, float *r, float *c, float *v, float *w)
{
    if (e->ndim >= 2) {
        int64_t rows = e->extent[e->ndim - 2], columns = e->extent[e->ndim - 1];
        for (int64_t k = 0; k < e->count / (rows * columns); k++) {
            factor(a, rows, columns, g + k * rows * columns, r + k * rows, c + k * columns, v + k * rows * columns);
        }
    } else {
        for (int64_t i = 0; i < e->count; i++) {
            v[i] = a->keep * v[i] + (1 - a->keep) * (g[i] * g[i] + a->epsilon1);
        }
    }
    /* The product of the factors of a row and a column without gradients underflows; Keras divides 0 by 0 there. */
    for (int64_t i = 0; i < e->count; i++) {
        g[i] /= sqrtf(v[i] > FLT_MIN ? v[i] : FLT_MIN);
    }
    float length = (float)sqrt(mean_square(e->count, g)) / a->clip, size = (float)sqrt(mean_square(e->count, w));
    float shorter = length > 1 ? length : 1, rate = a->rate * (size > a->epsilon2 ? size : a->epsilon2);
    for (int64_t i = 0; i < e->count; i++) {
        w[i] -= rate * (g[i] / shorter);
    }
}

/* ---- Muon ---- */

/* Vectors are read whole, so each array begins at a cache line. */
static int64_t lined(int64_t floats)
{
    return (floats + 15) / 16 * 16;
}

static int64_t packed_floats(const bwi_kernels *k, int64_t small, int64_t large)
{
    int64_t first = k->packing->dense_floats(large, small), second = k->packing->dense_floats(small, small);
    int64_t third = k->packing->dense_floats(small, large), most = first > second ? first : second;
    return lined(most > third ? most : third);
}

int64_t bwi_whole_muon_scratch(const bwi_kernels *k, int64_t rows, int64_t columns)
{
    int64_t small = rows < columns ? rows : columns, large = rows < columns ? columns : rows;
    return 2 * lined(small * large) + 2 * lined(small * small) + packed_floats(k, small, large) + 16;
}

static void transpose(int64_t rows, int64_t columns, const float *x, float *y)
{
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < columns; j++) {
            y[j * rows + i] = x[i * columns + j];
        }
    }
}

/* y = x z, z in Keras's order. */
static void multiply(const bwi_kernels *k, int64_t n, int64_t in, int64_t out, const float *x, const float *z, float *packed,
                     float *y)
{
    k->packing->dense_pack(in, out, z, packed);
    k->dense_forward(n, in, out, x, packed, NULL, y);
}

void bwi_whole_muon(const bwi_kernels *k, const bwi_muon *muon, int64_t rows, int64_t columns, const float *g, float *m, float *w,
                    float *scratch)
{
    int64_t count = rows * columns, small = rows < columns ? rows : columns, large = rows < columns ? columns : rows;
    bool turned = rows > columns;
    float *x = scratch + (16 - ((uintptr_t)scratch / sizeof(float)) % 16) % 16, *other = x + lined(count);
    float *square = other + lined(count), *fourth = square + lined(small * small), *packed = fourth + lined(small * small);
    for (int64_t i = 0; i < count; i++) {
        m[i] += g[i] + m[i] * (muon->momentum - 1);
        other[i] = muon->nesterov ? g[i] + muon->momentum * m[i] : m[i];
    }
    float norm = (float)sqrt(mean_square(count, other) * (double)count) + 1e-7F;
    for (int64_t i = 0; i < count; i++) {
        other[i] /= norm;
    }
    if (turned) {
        transpose(rows, columns, other, x);
    } else {
        memcpy(x, other, (size_t)count * sizeof *x);
    }
    for (int64_t step = 0; step < muon->steps; step++) {
        transpose(small, large, x, other);
        multiply(k, small, large, small, x, other, packed, square);
        multiply(k, small, small, small, square, square, packed, fourth);
        for (int64_t i = 0; i < small * small; i++) {
            fourth[i] = muon->b * square[i] + muon->c * fourth[i];
        }
        multiply(k, small, small, large, fourth, x, packed, other);
        for (int64_t i = 0; i < count; i++) {
            x[i] = muon->a * x[i] + other[i];
        }
    }
    for (int64_t i = 0; i < rows; i++) {
        for (int64_t j = 0; j < columns; j++) {
            w[i * columns + j] -= muon->rate * (turned ? x[j * rows + i] : x[i * columns + j]);
        }
    }
}

/* ---- Constraints ---- */

/* The number of the vector along the axes to which an element belongs: its place among the other axes. */
static int64_t vector_of(const bwi_extents *e, unsigned axes, int64_t element)
{
    int64_t vector = 0, stride = 1;
    for (int i = e->ndim - 1; i >= 0; i--) {
        int64_t at = element % e->extent[i];
        element /= e->extent[i];
        if (!(axes >> i & 1)) {
            vector += at * stride;
            stride *= e->extent[i];
        }
    }
    return vector;
}

void bwi_whole_constrain(const bwi_constraint *c, const bwi_extents *e, float *w, double *sums)
{
    for (int64_t i = 0; c->nonnegative && i < e->count; i++) {
        w[i] = w[i] > 0 ? w[i] : 0;
    }
    if (!c->norms) {
        return;
    }
    memset(sums, 0, (size_t)e->count * sizeof *sums);
    for (int64_t i = 0; i < e->count; i++) {
        sums[vector_of(e, c->axes, i)] += (double)w[i] * (double)w[i];
    }
    for (int64_t i = 0; i < e->count; i++) {
        float norm = (float)sqrt(sums[vector_of(e, c->axes, i)]);
        float held = norm < c->low ? c->low : norm > c->high ? c->high : norm;
        w[i] *= (c->rate * held + (1 - c->rate) * norm) / (1e-7F + norm);
    }
}

/* ---- The orthogonal penalty ---- */

double bwi_whole_orthogonal(float factor, bool of_columns, int64_t rows, int64_t columns, const float *w, float scale, float *g,
                            float *scratch)
{
    int64_t vectors = of_columns ? columns : rows, width = of_columns ? rows : columns;
    float *v = scratch, *slope = v + rows * columns, *norms = slope + rows * columns;
    double pairs = (double)vectors * ((double)vectors - 1) / 2, sum = 0;
    if (of_columns) {
        transpose(rows, columns, w, v);
    } else {
        memcpy(v, w, (size_t)(rows * columns) * sizeof *v);
    }
    for (int64_t i = 0; i < vectors; i++) {
        float norm = (float)sqrt(mean_square(width, v + i * width) * (double)width);
        norms[i] = norm > 1e-12F ? norm : 1e-12F;
        for (int64_t k = 0; k < width; k++) {
            v[i * width + k] /= norms[i];
        }
    }
    memset(slope, 0, (size_t)(rows * columns) * sizeof *slope);
    for (int64_t i = 0; i < vectors; i++) {
        for (int64_t j = 0; j < i; j++) {
            const float *a = v + i * width, *b = v + j * width;
            double dot = 0;
            for (int64_t k = 0; k < width; k++) {
                dot += (double)a[k] * (double)b[k];
            }
            float sign = (float)((dot > 0) - (dot < 0));
            sum += fabs(dot);
            for (int64_t k = 0; g && k < width; k++) {
                slope[i * width + k] += sign * b[k];
                slope[j * width + k] += sign * a[k];
            }
        }
    }
    /* Through the division by the norm: (d - v (v . d)) / norm. */
    float share = (float)(pairs > 0 ? (double)(scale * factor) / pairs : 0);
    for (int64_t i = 0; g && i < vectors; i++) {
        double along = 0;
        for (int64_t k = 0; k < width; k++) {
            along += (double)v[i * width + k] * (double)slope[i * width + k];
        }
        for (int64_t k = 0; k < width; k++) {
            float d = share * (slope[i * width + k] - v[i * width + k] * (float)along) / norms[i];
            g[of_columns ? k * columns + i : i * columns + k] += d;
        }
    }
    return pairs > 0 ? (double)factor * sum / pairs : 0;
}
