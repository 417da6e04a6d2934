/*
 * optimize: what an update does to a part of a variable, in Keras's order and in one pass over memory:
 *   g = clip (scale sum + l1 sign(w) + 2 l2 w), each element held between -clip_value and clip_value;
 *   w -= decay w; the rule moves w by g; average = keep average + (1 - keep) w; at times w = average.
 * All of it is elementwise, so parts may be taken in any order and by any worker.
 */
#ifndef BWI_KERNEL_OPTIMIZE_H
#define BWI_KERNEL_OPTIMIZE_H

#include "base/base.h"

/* The rules by which weights w follow a gradient g. s[0], s[1], s[2] are a rule's slots, b1 and b2 are `beta1` and `beta2`, eps
 * is `epsilon`. Where g, w and all slots are zero, w must stay zero: this is the padding of packed variables. */
typedef enum bwi_rule {
    BWI_RULE_SGD,     /* the vector kernel sgd: momentum needs s[0] */
    BWI_RULE_ADAM,    /* the vector kernel adam: m in s[0], v in s[1] */
    BWI_RULE_AMSGRAD, /* Adam's m and v; s[2] = max(s[2], v); w -= rate m / (sqrt(s[2]) + eps) */
    /* s[0] = b2 s[0] + (1 - b2) g g; step = rate g / sqrt(s[0] + eps); w -= step, or with momentum
     * s[1] = momentum s[1] + step; w -= s[1]. Centered: the last slot a = b2 a + (1 - b2) g, and max(s[0] - a a, 0) in the root's
     * place of s[0]: it is a variance, which rounding may make negative. */
    BWI_RULE_RMSPROP,
    BWI_RULE_ADAGRAD,  /* s[0] += g g; w -= rate g / sqrt(s[0] + eps) */
    BWI_RULE_ADADELTA, /* s[0] = b2 s[0] + (1 - b2) g g; d = g sqrt(s[1] + eps) / sqrt(s[0] + eps);
                        * s[1] = b2 s[1] + (1 - b2) d d; w -= rate d */
    BWI_RULE_ADAMAX,   /* s[0] += (1 - b1)(g - s[0]); s[1] = max(b2 s[1], |g|); w -= rate s[0] / (s[1] + eps) */
    BWI_RULE_NADAM,    /* s[0] += (1 - b1)(g - s[0]); s[1] += (1 - b2)(g g - s[1]);
                        * w -= (of_mean s[0] + of_gradient g) / (sqrt(of_square s[1]) + eps) */
    BWI_RULE_LION,     /* w -= rate sign(b1 s[0] + (1 - b1) g); s[0] = b2 s[0] + (1 - b2) g */
    /* n = s[0] + g g; s[1] += g + shrink w - (n^power - s[0]^power) / rate w; w = (s[1] held within +-lasso - s[1]) / (n^power /
     * rate + ridge), 0 where that is 0 / 0; s[0] = n */
    BWI_RULE_FTRL,
    BWI_RULE_LAMB, /* Adam's m and v; w -= rate trust u, u = of_mean m / (sqrt(of_square v) + eps) */
    BWI_RULE_NONE, /* w stays: the rule looks at variables as a whole (kernel/whole.h) */
    BWI_RULES
} bwi_rule;

/* The constants of one update, the same for all variables. */
typedef struct bwi_step {
    bwi_rule rule;
    bool nesterov, centered;
    float rate, momentum, epsilon;
    double beta1, beta2; /* double: 1 - 0.999f would be off by 1e-5 */
    float of_mean, of_gradient, of_square;
    float power, lasso, ridge, shrink; /* of Ftrl */

    float scale;      /* of gradient sums: 1 / count */
    float clip_value; /* 0: none */
    float decay;      /* the share of a weight that decays */
    bool decays;
    float average_keep;
    bool overwrite; /* weights become their averages */
} bwi_step;

enum { BWI_RULE_SLOTS = 3 };

/* What differs from one variable to another. */
typedef struct bwi_step_part {
    float l1, l2;                          /* penalties; 0: none */
    float clip;                            /* the factor of clipping by a norm */
    float trust;                           /* Lamb's ratio of the norms of weights and of their step */
    void *slots[BWI_RULE_SLOTS], *average; /* where this part of each begins; NULL: there is none */
} bwi_step_part;

typedef struct bwi_optimize_kernels {
    void (*update)(const bwi_step *step, const bwi_step_part *part, int64_t count, const float *sum, float *w);
    /* Whether `update` would leave weights, slots and averages finite; it changes nothing. */
    bool (*rehearse)(const bwi_step *step, const bwi_step_part *part, int64_t count, const float *sum, const float *w);
    /* The sum of squares of scale sum + l1 sign(w) + 2 l2 w, in a fixed order. */
    double (*penalized_norm)(float scale, float l1, float l2, int64_t count, const float *sum, const float *w);
    /* The sum of squares of Lamb's u, in a fixed order; it changes nothing. */
    double (*lamb_norm)(const bwi_step *step, const bwi_step_part *part, int64_t count, const float *sum, const float *w);
    double (*sum_of_absolutes)(int64_t count, const float *x); /* in their order */
    /* What comes before a rule (g is the gradient that it gets, w decays), and after it. */
    void (*before)(const bwi_step *step, const bwi_step_part *part, int64_t count, const float *sum, float *w, float *g);
    void (*after)(const bwi_step *step, const bwi_step_part *part, int64_t count, float *w);
} bwi_optimize_kernels;

#endif
