/*
 * whole: what looks at a variable as a whole, where an update otherwise looks at each element alone: the rules of Adafactor and
 * Muon, constraints, and the orthogonal penalty. All arrays lie on the host, in Keras's order. Sums are in double and in a fixed
 * order.
 */
#ifndef BWI_KERNEL_WHOLE_H
#define BWI_KERNEL_WHOLE_H

#include "base/base.h"

/* The extents of a variable, and the number of its values. */
typedef struct bwi_extents {
    int ndim;
    const int64_t *extent;
    int64_t count;
} bwi_extents;

/* r and c are the means of g g + epsilon1 over the last axis and over the one before it, each as decaying averages: x = keep x + (1
 * - keep) mean; v = r c / mean r. Fewer than two axes: v = keep v + (1 - keep)(g g + epsilon1), without r and c. u = g / sqrt v is
 * shortened so that its root of the mean square is at most `clip`; w -= rate max(epsilon2, rms w) u. */
typedef struct bwi_adafactor {
    float rate, keep, epsilon1, epsilon2, clip;
} bwi_adafactor;

void bwi_whole_adafactor(const bwi_adafactor *a, const bwi_extents *e, float *g, float *r, float *c, float *v, float *w);

/* m += g + (momentum - 1) m; x = g + momentum m (nesterov) or m, which Newton and Schulz's iteration makes almost orthogonal: first
 * x = x / |x|, then `steps` times x = a x + (b s + c s s) x with s = x x^T. Finally w -= rate x. */
typedef struct bwi_muon {
    float rate, momentum, a, b, c;
    bool nesterov;
    int64_t steps;
} bwi_muon;

int64_t bwi_whole_muon_scratch(const bwi_kernels *k, int64_t rows, int64_t columns); /* floats */
void bwi_whole_muon(const bwi_kernels *k, const bwi_muon *muon, int64_t rows, int64_t columns, const float *g, float *m, float *w,
                    float *scratch);

/* Constraints: w = max(w, 0), or each vector along `axes` (bits) is multiplied so that its norm n becomes rate (n held between low
 * and high) + (1 - rate) n, divided by n + 1e-7 as Keras does. */
typedef struct bwi_constraint {
    bool nonnegative, norms;
    unsigned axes;
    float low, high, rate;
} bwi_constraint;

/* `sums` has as many doubles as the variable has values. */
void bwi_whole_constrain(const bwi_constraint *c, const bwi_extents *e, float *w, double *sums);

/* The mean of |v_i . v_j| over all pairs of different rows (or columns), times `factor`, where v_i is row i divided by its norm.
 * Adds `scale` times the derivative to g, unless that is NULL. The scratch has 2 rows columns + rows + columns floats. */
double bwi_whole_orthogonal(float factor, bool of_columns, int64_t rows, int64_t columns, const float *w, float scale, float *g,
                            float *scratch);

#endif
