/*
 * kernel: the arithmetic of Batchwise. Each hand-written kernel is written once and compiled for AVX-512, AVX2 and any processor
 * (kernels_avx512.c, kernels_avx2.c, kernels_neon.c, kernels_portable.c); the best table that the CPU can run is chosen at run
 * time. reference.c holds a slow and obvious version of each, which tests compare with. kernel/onednn is the only folder that
 * includes oneDNN.
 *
 * Only kernels dereference tensors. Activations are float32 images of n samples in the layout [n][ceil(c/block)][h][w][block]:
 * block == c is channels-last (Keras's order), block == 1 is channels-first, and 8 or 16 suit vector units. The channels that fill
 * up the last block are zero and stay zero.
 */
#ifndef BWI_KERNEL_H
#define BWI_KERNEL_H

#include "kernel/loops/families.h"
#include "kernel/whole.h"

/* The window of a pooling layer, which slides over an image. */
typedef struct bwi_pool_window {
    int64_t h, w, stride_h, stride_w, pad_top, pad_left;
} bwi_pool_window;

/* What follows a convolution in the same pass. Pooling is 2x2, with stride 2 and no padding. */
typedef enum bwi_conv_then { BWI_THEN_POOL, /* ReLU and max pooling */ BWI_THEN_RELU, BWI_THEN_NOTHING } bwi_conv_then;

/* A convolution with stride 1 and a bias, and what follows; only winograd has anything but pooling. x is the convolution's input, y
 * the last output, in any block. winograd takes the table's blocks or multiples of them, and without pooling gives them; the others
 * take channels-last. */
typedef struct bwi_conv_pool {
    bwi_image x, y;
    int64_t kh, kw, pad_top, pad_left, pad_bottom, pad_right;
    bwi_conv_then then;
} bwi_conv_pool;

enum { BWI_CONV_DATA_EXTENT = 64 };

/* The kernel of a convolution by hand, mostly a depthwise one, which slides over an image. As in Keras, a dilation of 1 means
 * none. */
typedef struct bwi_depthwise {
    bwi_pool_window window;
    int64_t dilation_h, dilation_w;
} bwi_depthwise;

/* Where the gradients of layer normalisation go, each overwritten or added to. NULL: that gradient is not needed. */
typedef struct bwi_row_gradients {
    float *gamma, *beta;
    bool add_gamma, add_beta;
} bwi_row_gradients;

typedef struct bwi_adam {
    float rate; /* the corrected rate: lr * sqrt(1 - b2^t) / (1 - b1^t) */
    float epsilon;
    double beta1, beta2; /* double: 1 - 0.999f would be off by 1e-5 */
    float scale;         /* multiplies the gradient: 1 / samples, times the factor of clipping */
} bwi_adam;

/* Elementwise functions with up to three parameters a, b, c, and their derivatives, in terms of y unless "from x" is written. */
typedef enum bwi_activation {
    BWI_SIGMOID,        /* 1 / (1 + e^-x);                                    y (1 - y) */
    BWI_TANH,           /* tanh x;                                            1 - y^2 */
    BWI_SOFTPLUS,       /* ln(1 + e^x);                                       1 - e^-y */
    BWI_SOFTSIGN,       /* x / (1 + |x|);                                     (1 - |y|)^2 */
    BWI_ELU,            /* x > 0: a x, else b (e^x - 1), b >= 0;              y > 0: a, else y + b */
    BWI_EXPONENTIAL,    /* e^x;                                               y */
    BWI_HARD_SIGMOID,   /* x/6 + 1/2 between 0 and 1;                         0 < y < 1: 1/6 */
    BWI_LEAKY_RELU,     /* x < 0: a x, a > 0, else x;                         y < 0: a, else 1 */
    BWI_BENT_RELU,      /* x > c: min(x, b), else a (x - c), all >= 0;        0 < y < b: 1, y <= 0: a */
    BWI_SILU,           /* x s, s = 1 / (1 + e^-x);                           from x: s (1 + x (1 - s)) */
    BWI_GELU,           /* x P, P = (1 + erf(x / sqrt 2)) / 2;                from x: P + x e^(-x^2/2) / sqrt(2 pi) */
    BWI_HARD_SILU,      /* x s, s = x/6 + 1/2 between 0 and 1;                from x: s, and x/6 more where 0 < s < 1 */
    BWI_HARD_TANH,      /* x between -1 and 1;                                -1 < y < 1: 1 */
    BWI_MISH,           /* x t, t = tanh(ln(1 + e^x));                        from x: t + x (1 - t^2) / (1 + e^-x) */
    BWI_SQUAREPLUS,     /* (x + r) / 2, r = sqrt(x^2 + a), a > 0;             from x: (1 + x / r) / 2 */
    BWI_LOG_SIGMOID,    /* -ln(1 + e^-x);                                     1 - e^y */
    BWI_SOFT_SHRINK,    /* x > a: x - a, x < -a: x + a, else 0, a >= 0;       y != 0: 1 */
    BWI_HARD_SHRINK,    /* |x| > a: x, else 0, a >= 0;                        y != 0: 1 */
    BWI_TANH_SHRINK,    /* x - tanh x;                                        from x: tanh^2 x */
    BWI_SPARSE_PLUS,    /* (x + 1)^2 / 4 between -1 and 1, 0 below, x above;  from x: (x + 1) / 2 between 0 and 1 */
    BWI_SPARSE_SIGMOID, /* (x + 1) / 2 between 0 and 1;                     0 < y < 1: 1/2 */
    BWI_ACTIVATIONS
} bwi_activation;

/* Recurrent layers: what a step computes from the inputs' products x, the state h and the products q = h w of the state. s is the
 * recurrent activation and f the other one; the gates stand in Keras's order, each `units` wide. */
typedef enum bwi_cell {
    BWI_CELL_SIMPLE,    /* h' = f(x + q) */
    BWI_CELL_LSTM,      /* i, f, g, o: c' = s(f) c + s(i) f(g); h' = s(o) f(c') */
    BWI_CELL_GRU_AFTER, /* z, r, g: g = f(x + s(r) q); h' = s(z) h + (1 - s(z)) g. With biases of x and of q */
    BWI_CELL_GRU,       /* the same with g = f(x + (s(r) h) w) */
    BWI_CELLS
} bwi_cell;

/* One of the activations above; `of_input`: its derivative is computed from x. */
typedef struct bwi_cell_function {
    bwi_activation kind;
    float p[3];
    bool of_input;
} bwi_cell_function;

typedef struct bwi_recurrent {
    bwi_cell cell;
    int64_t n, steps, units;
    bwi_cell_function activation, recurrent_activation;
    bool sequences;   /* y has every step, not only the last one */
    bool backwards;   /* steps are taken from the last to the first; y has them in the order in which they are taken */
    bool zero_masked; /* y is zero at masked steps, where it otherwise repeats */
    bool drops;       /* some of the state is dropped before it is multiplied */
    bool begins;      /* the states before the first step are given; otherwise they are zero */
    bool ends;        /* y has the states after the last step behind its steps */
} bwi_recurrent;

/* Addresses of a recurrent layer's passes. */
typedef struct bwi_recurrent_memory {
    const float *x;        /* [n][steps][gates * units]: products of the inputs */
    const float *mask;     /* [n][steps]: a step that is 0 leaves the state as it was; NULL: all count */
    const float *weights;  /* packing->recurrent_pack */
    const float *turned;   /* recurrent_turn: only backward reads it */
    const float *bias;     /* [2][gates * units], of x and of q; only BWI_CELL_GRU_AFTER has it; NULL: none */
    const float *factors;  /* [n][units], by which the state is multiplied first, if `drops` */
    const float *begin[2]; /* [n][units]: h before the first step, and c if the cell has it, if `begins` */
    float *kept;           /* packing->recurrent_kept floats. NULL: inference, nothing is kept */
    float *scratch;        /* packing->recurrent_scratch floats */
} bwi_recurrent_memory;

/* Attention: y = softmax(scores) v for each head, where a query's scores are those of all keys. */
typedef enum bwi_attention_scores {
    BWI_SCORES_DOT,     /* scale factor (q . k) */
    BWI_SCORES_ADDITIVE /* sum over i of weight[i] tanh(factor (q[i] + k[i])) */
} bwi_attention_scores;

/* What becomes of a score that a mask hides. It matters only for queries all of whose keys are hidden. */
typedef enum bwi_attention_masking {
    BWI_MASKING_REPLACE,  /* a number far below all others: y is the mean of all values */
    BWI_MASKING_EXCLUDE,  /* minus infinity: y is zero */
    BWI_MASKING_SUBTRACT, /* 1e9 less */
} bwi_attention_masking;

typedef struct bwi_attention {
    int64_t n, queries, keys;
    int64_t heads, groups; /* heads of q; heads of k and v, each of which serves heads / groups of q's */
    int64_t key_width, value_width;
    bwi_attention_scores scores;
    bwi_attention_masking masking;
    float scale;
    bool causal;     /* query i sees the keys up to i */
    int64_t window;  /* query i sees the keys nearer than this; 0: all */
    int64_t weights; /* numbers of `weight`: 0, 1 or key_width */
    bool drops;      /* weights of values are dropped, by the draws of `dropout` below */
    uint32_t limit;
    float survival; /* the others are multiplied by it */
    uint64_t seed, stream;
    int64_t position; /* of the first sample, by which draws are keyed */
} bwi_attention;

/* Addresses of attention's passes. A mask's element hides if it is 0; NULL: nothing is hidden. */
typedef struct bwi_attention_memory {
    const float *q;                     /* [n][queries][heads][key_width] */
    const float *k, *v;                 /* [n][keys][groups][key_width], [n][keys][groups][value_width] */
    const float *query_mask, *key_mask; /* [n][queries], [n][keys] */
    const float *pair_mask;             /* [n][queries][keys] */
    const float *factor, *weight;       /* NULL: 1 */
    float *kept;    /* [n][heads][queries][2]: the largest score, and 1 / sum of exponentials. NULL: inference */
    float *scratch; /* packing->attention_scratch floats */
} bwi_attention_memory;

/* Where attention's differences go; NULL: not needed. */
typedef struct bwi_attention_differences {
    float *q, *k, *v;
    double *factor, *weight; /* overwritten with the sum over the samples */
} bwi_attention_differences;

typedef struct bwi_packing_kernels bwi_packing_kernels;
typedef struct bwi_convolution_kernels bwi_convolution_kernels;

enum { BWI_FETCHED = 2, BWI_LIMIT_SUMS = 12 };

/* Gradient sums below this move no weight and no slot of an ordinary optimizer out of a float's range; larger ones are looked at
 * before they do. */
#define BWI_MODERATE 0x1p48

struct bwi_kernels {
    const char *name; /* "avx512", "avx2", "neon", "portable" */
    int64_t block;    /* the channel block that suits its vectors: 16, 8 or 4 */

    /* Families of loops (kernel/loops): kernels->memory->copy and so on. */
#define BWI_MEMBER(family) const bwi_##family##_kernels *family;
    BWI_FAMILIES(BWI_MEMBER)
#undef BWI_MEMBER

    const bwi_packing_kernels *packing;
    const bwi_convolution_kernels *convolution;

    /* All members below are written with vectors (kernel/fast); they may contract a product and a sum into one rounding. */

    /* Dense layers: y[n][out] = x[n][in] w + bias, with packed weights (packing->dense_pack). The bias may be NULL. */
    void (*dense_forward)(int64_t n, int64_t in, int64_t out, const float *x, const float *w, const float *bias, float *y);
    void (*dense_backward_data)(int64_t n, int64_t in, int64_t out, const float *dy, const float *w, float *dx);
    /* dw (packed) and db (may be NULL) are overwritten, or added to if `accumulate`. */
    void (*dense_backward_weights)(int64_t n, int64_t in, int64_t out, const float *x, const float *dy, float *dw, float *db,
                                   bool accumulate);

    /* Parts of these passes, which give the same bits as the whole. They are for layers whose weights are stored in panels and
     * that have 16 inputs or more. A part covers outputs from ... to - 1 (multiples of a panel, or `out`), or inputs from ... to
     * - 1 (multiples of 16, or `in` if that is one). */
    void (*dense_forward_part)(int64_t n, int64_t in, int64_t out, int64_t from, int64_t to, const float *x, const float *w,
                               const float *bias, float *y);
    void (*dense_backward_data_part)(int64_t n, int64_t in, int64_t out, int64_t from, int64_t to, const float *dy, const float *w,
                                     float *dx);
    /* The weights' gradient, block by block of a panel. First, dense_gradient_pack lays x and dy of n samples out in `staging`
     * (packing->dense_staging floats) and returns a bound on the magnitude of every element of the gradient, or NaN if some
     * factor is not finite. A block has rows `first` to first + rows - 1 of a panel, where `first` is a multiple of 8; the bias
     * has a panel's outputs, zero beyond `out`. While a block is computed, as many floats as it has are fetched into the nearest
     * cache from each address of `ahead`, unless that is NULL. */
    double (*dense_gradient_pack)(int64_t n, int64_t in, int64_t out, const float *x, const float *dy, float *staging);
    void (*dense_gradient_block)(int64_t n, int64_t in, int64_t out, const float *staging, int64_t panel, int64_t first,
                                 int64_t rows, float *block, const void *const ahead[BWI_FETCHED]);
    void (*dense_gradient_bias)(int64_t n, int64_t in, int64_t out, const float *staging, int64_t panel, float *db);

    /* Recurrent layers over whole sequences. y is [n][steps][units], or [n][1][units] without `sequences`, where each sample's
     * steps are followed by one row for h and one for c if `ends`. recurrent_turn transposes the weights for backward.
     * recurrent_backward turns what forward kept into differences, which the others read: recurrent_data gives dx, shaped like x,
     * recurrent_begin the difference of begin[which], and recurrent_weights the gradients of the weights, as packed, and of the
     * bias (may be NULL), each overwritten or added to. */
    void (*recurrent_forward)(const bwi_recurrent *k, const bwi_recurrent_memory *m, float *y);
    void (*recurrent_turn)(bwi_cell cell, int64_t units, const float *weights, float *turned);
    void (*recurrent_backward)(const bwi_recurrent *k, const bwi_recurrent_memory *m, const float *dy);
    void (*recurrent_data)(const bwi_recurrent *k, const bwi_recurrent_memory *m, float *dx);
    void (*recurrent_begin)(const bwi_recurrent *k, const bwi_recurrent_memory *m, int which, float *d);
    void (*recurrent_weights)(const bwi_recurrent *k, const bwi_recurrent_memory *m, float *dw, bool add_weights, float *db,
                              bool add_bias);

    /* Attention, in blocks of queries and keys: scores exist only for one block at a time. y is [n][queries][heads][value_width].
     * Backward computes the scores again, from what forward kept. */
    void (*attention_forward)(const bwi_attention *a, const bwi_attention_memory *m, float *y);
    void (*attention_backward)(const bwi_attention *a, const bwi_attention_memory *m, const float *y, const float *dy,
                               const bwi_attention_differences *d);

    /* y = max(x, 0); dx = y > 0 ? dy : 0. May work in place. Forward passes NaN through. */
    void (*relu_forward)(int64_t count, const float *x, float *y);
    void (*relu_backward)(int64_t count, const float *y, const float *dy, float *dx);

    /* y = f(x); dx = dy f', where v is y or x, as the kind requires. May work in place: v is not written. `p` has three
     * parameters. */
    void (*activate)(bwi_activation kind, const float *p, int64_t count, const float *x, float *y);
    void (*activate_backward)(bwi_activation kind, const float *p, int64_t count, const float *v, const float *dy, float *dx);

    /* y[i] = x[i] * scale, or 0 where the random word of element i is below `limit`: word (i % 64) / 16 of bwi_random_at(seed,
     * stream, counter + i / 64 * 16 + i % 16). The counter is a multiple of 16. May work in place. */
    void (*dropout)(int64_t count, uint64_t seed, uint64_t stream, uint64_t counter, uint32_t limit, float scale, const float *x,
                    float *y);

    /* Max pooling. `which` has a byte for each element of y, in y's layout: the number of the winner within its window, or 255
     * if the window lies in the padding. Among equal elements the first wins, as it gets the gradient in Keras. y has a block of
     * its own; `which` may be NULL (inference). A NaN in a window becomes its output. */
    void (*maxpool_forward)(const bwi_image *x_image, const bwi_image *y_image, const bwi_pool_window *window, const float *x,
                            float *y, unsigned char *which);
    void (*maxpool_backward)(const bwi_image *x_image, const bwi_image *y_image, const bwi_pool_window *window, const float *dy,
                             const unsigned char *which, float *dx);

    /* Average pooling: the mean of those elements of a window that lie inside the image. */
    void (*avgpool_forward)(const bwi_image *x_image, const bwi_image *y_image, const bwi_pool_window *window, const float *x,
                            float *y);
    void (*avgpool_backward)(const bwi_image *x_image, const bwi_image *y_image, const bwi_pool_window *window, const float *dy,
                             float *dx);
    /* The largest value of each channel over all positions of a sample (y is 1x1), or NaN if there is one. Backward divides the
     * difference equally among the elements that equal it, as Keras does. */
    void (*globalmax_forward)(const bwi_image *x_image, const bwi_image *y_image, const float *x, float *y);
    void (*globalmax_backward)(const bwi_image *x_image, const bwi_image *y_image, const float *x, const float *y, const float *dy,
                               float *dx);

    /* Depthwise convolution: each channel by itself. x and y have the same block; the weights are [kh][kw][c]; the bias may be
     * NULL. */
    void (*depthwise_forward)(const bwi_image *x_image, const bwi_image *y_image, const bwi_depthwise *k, const float *x,
                              const float *w, const float *bias, float *y);
    void (*depthwise_backward_data)(const bwi_image *x_image, const bwi_image *y_image, const bwi_depthwise *k, const float *dy,
                                    const float *w, float *dx);
    /* dw and db (may be NULL) are overwritten, or added to if `accumulate`. */
    void (*depthwise_backward_weights)(const bwi_image *x_image, const bwi_image *y_image, const bwi_depthwise *k, const float *x,
                                       const float *dy, float *dw, float *db, bool accumulate);

    /* The difference of a convolution's weights, where both images have the same block, a multiple of 4, and the weights lie in
     * squares: [out / block][in / block][kh][kw][block of inputs][block of outputs]. dw is overwritten, or added to if
     * `accumulate`. */
    void (*conv_weights)(const bwi_image *x_image, const bwi_image *y_image, const bwi_depthwise *k, const float *x,
                         const float *dy, float *dw, bool accumulate);
    /* The sums of each channel over all pixels and samples. */
    void (*conv_bias)(const bwi_image *y_image, const float *dy, float *db, bool accumulate);
    /* The difference of the source from weights in such squares. The extents of x and of the kernel are at most
     * BWI_CONV_DATA_EXTENT, and so is the number of taps. */
    void (*conv_data)(const bwi_image *x_image, const bwi_image *y_image, const bwi_depthwise *k, const float *dy, const float *w,
                      float *dx);

    /* ReLU, and 2x2 max pooling with stride 2 and no padding, in one pass that keeps bit masks instead of bytes. `masks` has
     * packing->relu_maxpool_mask_bytes bytes, or is NULL (inference). An odd last row or column of x is not covered, and
     * backward writes zeros there. The difference is zero where no element of a window is positive. */
    void (*relu_maxpool_forward)(const bwi_image *x_image, const bwi_image *y_image, const float *x, float *y, void *masks);
    void (*relu_maxpool_backward)(const bwi_image *x_image, const bwi_image *y_image, const float *dy, const void *masks,
                                  float *dx);

    /* Convolution, bias, ReLU and pooling (bwi_conv_pool) in one pass, for few channels. The weights are those that
     * packing->conv_pool_arrange makes, the masks of y are relu_maxpool's. backward_weights adds to `gradient`, which is
     * arranged like the weights. `scratch` is 64-byte aligned and has packing->conv_pool->scratch_bytes. */
    void (*conv_pool_forward)(const bwi_conv_pool *k, const float *x, const float *weights, float *y, void *masks, void *scratch);
    void (*conv_pool_backward_weights)(const bwi_conv_pool *k, const float *x, const float *dy, const void *masks, float *gradient,
                                       void *scratch);
    void (*conv_pool_backward_data)(const bwi_conv_pool *k, const float *dy, const void *masks, const float *weights, float *dx);

    /* The same forward pass for 3x3 kernels, by Winograd's algorithm: fewer products, but larger rounding errors
     * (docs/design.md). The weights, packing->thin->floats of them, are made once per update from the arranged ones. */
    void (*thin_weights)(const bwi_conv_pool *k, const float *arranged, float *to);
    void (*thin_forward)(const bwi_conv_pool *k, const float *x, const float *weights, float *y, void *masks, void *scratch);

    /* All passes for 3x3 kernels and many channels, by Winograd's algorithm: a quarter of the products, but larger rounding
     * errors (docs/design.md). The weights, packing->winograd->floats of them, are transformed once per update. dw (in Keras's
     * order) and db are overwritten. `scratch` is 64-byte aligned and has packing->winograd->scratch_bytes. */
    void (*winograd_weights)(const bwi_conv_pool *k, const float *weights, const float *bias, float *to);
    void (*winograd_forward)(const bwi_conv_pool *k, const float *x, const float *weights, float *y, void *masks, void *scratch);
    void (*winograd_backward_weights)(const bwi_conv_pool *k, const float *x, const float *dy, const void *masks, float *dw,
                                      float *db, void *scratch);
    void (*winograd_backward_data)(const bwi_conv_pool *k, const float *dy, const void *masks, const float *weights, float *dx,
                                   void *scratch);

    /* Softmax of rows of `width` numbers. */
    void (*softmax_forward)(int64_t rows, int64_t width, const float *x, float *y);
    void (*softmax_backward)(int64_t rows, int64_t width, const float *y, const float *dy, float *dx);
    /* Softmax along any axis, of which rows are the case inner == 1. May work in place. */
    void (*softmax_axis_forward)(const bwi_around *around, const float *x, float *y);
    void (*softmax_axis_backward)(const bwi_around *around, const float *y, const float *dy, float *dx);
    /* loss[r] = log(sum exp logits[r]) - logits[r][label], not weighted; difference = (softmax - one-hot) * weight[r] (NULL: 1),
     * which may be NULL or written over the logits. The caller has checked the labels. */
    void (*crossentropy)(int64_t rows, int64_t width, const float *logits, const int32_t *labels, const float *weight, float *loss,
                         float *difference);

    /* loss[i] = ln(1 + e^x) - x t and difference[i] = (1 / (1 + e^-x) - t) * factor[i] (NULL: 1), where t = y (1 - smoothing) +
     * smoothing / 2. Either result may be NULL. */
    void (*binary_crossentropy)(int64_t count, float smoothing, const float *x, const float *y, const float *factor, float *loss,
                                float *difference);

    /* y[outer][inner] = the sum over the axis, in double, divided by `divisor`. */
    void (*sum_axis)(const bwi_around *around, double divisor, const float *x, float *y);

    /* Layer normalisation of rows: y = x_hat gamma + beta, x_hat = (x - mean) inverse, inverse = 1 / sqrt(variance + epsilon).
     * gamma and beta may be NULL, which means 1 and 0. `kept` receives mean and inverse of each row for backward. With g = dy
     * gamma: dx = inverse (g - mean g - x_hat mean(g x_hat)), which may be written over dy; dgamma = sum dy x_hat, dbeta = sum
     * dy. */
    void (*layernorm_forward)(int64_t rows, int64_t width, float epsilon, const float *x, const float *gamma, const float *beta,
                              float *kept, float *y);
    void (*layernorm_backward)(int64_t rows, int64_t width, const float *x, const float *dy, const float *gamma, const float *kept,
                               float *dx);
    void (*layernorm_backward_weights)(int64_t rows, int64_t width, const float *x, const float *dy, const float *kept,
                                       const bwi_row_gradients *to);

    /* Losses of one row whose terms have exponentials or logarithms (BWI_LOSS_LOGARITHMIC, LOG_COSH, POISSON, BINARY_LOGITS,
     * BINARY, DIVERGENCE, CATEGORICAL): loss_sum returns the sum of f(x, y), in an order that depends on the width alone.
     * loss_slopes gives dx = factor f'(x, y), for the first two and BINARY_LOGITS. */
    double (*loss_sum)(bwi_loss_kind kind, float smoothing, int64_t width, const float *x, const float *y);
    void (*loss_slopes)(bwi_loss_kind kind, float smoothing, int64_t width, const float *x, const float *y, float factor,
                        float *dx);

    /* Adds to the sums of each channel, over all samples and positions: sums[c] += x, sums[c + channels] += x*x. */
    void (*channel_sums)(const bwi_image *image, const float *x, double *sums);
    /* y = (x - mean[c]) * scale[c] + shift[c], which is exactly the shift where x is the mean. Padding channels stay zero. May
     * work in place. */
    void (*channel_affine)(const bwi_image *image, const float *x, const float *mean, const float *scale, const float *shift,
                           float *y);
    /* sums[c] += dy, sums[c + channels] += dy * x_hat, x_hat = (x - mean[c]) * inverse[c]. */
    void (*channel_backward_sums)(const bwi_image *image, const float *x, const float *dy, const float *mean, const float *inverse,
                                  double *sums);
    /* dx = a[c] * (dy - d[c]) + b[c] * (x - mean[c]), which is exactly zero if a channel has a single value. dx may be written
     * over dy. */
    void (*channel_backward)(const bwi_image *image, const float *x, const float *dy, const float *mean, const float *a,
                             const float *b, const float *d, float *dx);

    /* Copies an image into another block. */
    void (*reorder)(const bwi_image *from, const float *x, int64_t block, float *y);

    void (*add)(int64_t count, const float *x, float *sum); /* sum += x */
    /* Adds `lanes` vectors, `stride` floats apart, as a binary tree over their numbers into the first: pairs (0,1) (2,3) ...,
     * then (0,2) (4,6) ..., in log2(lanes) rounds. The number of lanes need not be a power of two: a lane without a partner is
     * passed on. Returns the sum of squares of the result in double, in a fixed order. */
    double (*lanes_sum)(int64_t count, int lanes, int64_t stride, float *first);
    /* The same sums, but it only says whether all of them are below BWI_MODERATE: several times cheaper. */
    bool (*lanes_sum_moderate)(int64_t count, int lanes, int64_t stride, float *first);
    double (*sum_of_squares)(int64_t count, const float *x); /* fixed order */
    void (*sgd)(int64_t count, float rate, float momentum, bool nesterov, float scale, const float *gradient, float *velocity,
                float *w); /* velocity may be NULL when momentum is 0 */
    void (*adam)(int64_t count, const bwi_adam *adam, const float *gradient, float *m, float *v, float *w);

    /* sums = sums * factor + added, `rounds` times, of BWI_LIMIT_SUMS * block numbers: only to measure how fast that is at best. */
    void (*multiply_adds)(int64_t rounds, float factor, float added, float *sums);
};

/* The table of this context: the one that its instruction_set names, or $BATCHWISE_ISA, or the best that this CPU runs. NULL and
 * a message if the name is unknown or the set not available here. Also limits oneDNN to that set. */
const bwi_kernels *bwi_kernels_of(bw_context *ctx);
/* The table with this name: "avx512", "avx2", "neon", "portable", or one that was added. NULL if it is unknown or not available on
 * this CPU. */
const bwi_kernels *bwi_kernels_by_name(const char *name);
/* Adds the table of another device, which is kept and can then be chosen by its name. To be called before the first context is
 * opened. False if the name is taken, or if there are too many tables. */
bool bwi_kernels_add(const bwi_kernels *kernels);
/* The CPU's best table, for host memory, whichever device a context computes on. */
const bwi_kernels *bwi_kernels_host(void);
extern const bwi_kernels bwi_kernels_reference; /* reference.c */

/* Values on the host (values.c). The range is that of all finite values looked at so far; it begins as zeros. */
typedef struct bwi_value_range {
    double low, high;
    int64_t count;
} bwi_value_range;
void bwi_values_look(const float *values, int64_t count, bwi_value_range *range);
/* Adds how many finite values lie in each of equally wide buckets of the range. */
void bwi_values_count(const float *values, int64_t count, const bwi_value_range *range, int buckets, int64_t *counts);
void bwi_values_pixels(const float *values, int64_t count, const bwi_value_range *range, unsigned char *pixels);

/* Measures what the machine does at best with the context's table and all its workers: everything in `machine` but the processor's
 * name. Takes half a second, and memory of four times the last cache. */
bw_status bwi_limits_measure(bw_context *ctx, bw_machine *machine);

/* ---- How tensors are stored, which is the device's choice ---- */

/* How an algorithm for bwi_conv_pool stores what it reads. */
typedef struct bwi_conv_pool_storage {
    bool blocked;                              /* its images have the table's blocks; otherwise channels-last */
    bool (*fits)(const bwi_conv_pool *k);      /* whether its kernels can compute it */
    int64_t (*floats)(const bwi_conv_pool *k); /* of the weights as the kernels read them */
    size_t (*scratch_bytes)(const bwi_conv_pool *k);
} bwi_conv_pool_storage;

/* How variables are stored. `keras_order` lies on the host, everything else on the device. */
struct bwi_packing_kernels {
    /* Dense weights, in Keras [in][out], are stored in the order that suits the kernels: [out][in] for few outputs, otherwise
     * panels [out/32][in][32] whose last one is filled up with zeros. */
    int64_t (*dense_floats)(int64_t in, int64_t out);
    int64_t (*dense_panel)(int64_t out); /* outputs of a panel; 0: no panels. Gradients are deferred for panels of up to 32 */
    int64_t (*dense_staging)(int64_t n, int64_t in, int64_t out); /* floats that dense_gradient_pack fills */
    void (*dense_pack)(int64_t in, int64_t out, const float *keras_order, float *packed);
    /* Gives `count` of the values in Keras's order, from the one at `first` on. */
    void (*dense_unpack)(int64_t in, int64_t out, const float *packed, int64_t first, int64_t count, float *keras_order);

    /* Recurrent weights, in Keras [units][gates * units], are stored as dense weights; BWI_CELL_GRU's as two, of which the second
     * has the last gate. */
    int64_t (*recurrent_floats)(bwi_cell cell, int64_t units);
    int64_t (*recurrent_turned)(bwi_cell cell, int64_t units); /* floats that recurrent_turn makes */
    int64_t (*recurrent_kept)(const bwi_recurrent *k);
    int64_t (*recurrent_scratch)(const bwi_recurrent *k);
    void (*recurrent_pack)(bwi_cell cell, int64_t units, const float *keras_order, float *packed);
    void (*recurrent_unpack)(bwi_cell cell, int64_t units, const float *packed, int64_t first, int64_t count, float *keras_order);

    int64_t (*attention_scratch)(const bwi_attention *a, bool backward);

    /* Bytes of the masks that relu_maxpool and conv_pool keep for an output. */
    size_t (*relu_maxpool_mask_bytes)(const bwi_image *y_image);

    /* The algorithms for bwi_conv_pool. thin's backward passes are conv_pool's, so it needs the weights of both. */
    const bwi_conv_pool_storage *conv_pool;
    const bwi_conv_pool_storage *thin;
    const bwi_conv_pool_storage *winograd;
    /* Between weights in Keras's order (kh, kw, in, out) with a bias (may be NULL) and conv_pool's [in][kh][kw][out] followed by
     * the bias, where `out` is padded with zeros. All of them lie on the device. */
    void (*conv_pool_arrange)(const bwi_conv_pool *k, const float *weights, const float *bias, float *arranged);
    void (*conv_pool_restore)(const bwi_conv_pool *k, const float *arranged, float *weights, float *bias);
};

/* ---- Convolution: kernels that a library compiles for one shape ---- */

typedef struct bwi_conv_shape {
    int64_t n, ih, iw, ic, oh, ow, oc, kh, kw;
    int64_t stride_h, stride_w, dilation_h, dilation_w; /* dilation 1: none, as Keras counts */
    int64_t pad_top, pad_left, pad_bottom, pad_right;
    int64_t id, od, kd, stride_d, dilation_d, pad_front, pad_back; /* of volumes, whose first axis is the depth; kd 0: images */
    int64_t groups;
    bool with_bias;
} bwi_conv_shape;

typedef enum bwi_conv_pass { BWI_CONV_FORWARD, BWI_CONV_BACKWARD_DATA, BWI_CONV_BACKWARD_WEIGHTS } bwi_conv_pass;

/* All passes of one convolution for one number of samples. It does not change once it is made, so workers may share it. */
typedef struct bwi_conv bwi_conv;

typedef struct bwi_conv_facts {
    int64_t src_block, dst_block;
    int64_t weights_floats;          /* of the packed weights, and of their difference */
    int64_t backward_weights_floats; /* of the weights in the layout of backward data; 0: it reads the packed ones */
    size_t scratch_bytes;            /* the largest of all passes */
    size_t run_bytes;                /* that `bind` allocates */
    bool squares;                    /* the difference of the weights is left to conv_weights, which fits their layout */
    bool data_squares;               /* and that of src to conv_data, which reads the packed weights */
    const char *implementation[3];   /* by pass; lent */
} bwi_conv_facts;

/* One pass, bound to addresses for one worker. */
typedef struct bwi_conv_run bwi_conv_run;

typedef struct bwi_conv_memory {
    /* Or their differences: backward data writes diff_src to src and reads diff_dst from dst; backward weights reads src, and
     * diff_dst from dst. */
    float *src, *dst;
    float *weights; /* packed; for backward data in its layout, if it has one; backward weights writes them */
    float *bias;    /* NULL: there is none; backward weights writes it */
    void *scratch;  /* 64-byte aligned */
} bwi_conv_memory;

struct bwi_convolution_kernels {
    /* Describes and compiles a convolution. With `like` (may be NULL), src, dst and weights get the same layouts as there.
     * `backward` adds the backward passes, among them backward data if `difference`. Fails (INTERNAL) if oneDNN would compute by
     * its slow reference although another layout does better; otherwise the use of the reference is logged. The context owns the
     * result until `release`. */
    bw_status (*create)(bw_context *ctx, bwi_conv **conv, const bwi_conv_shape *shape, const bwi_conv *like, bool backward,
                        bool difference);
    const bwi_conv_facts *(*facts)(const bwi_conv *conv);
    void (*release)(bwi_conv *conv); /* NULL is fine */

    /* From Keras's (kh, kw, in/groups, out) on the host to packed weights on the device, and back: `count` values from the one at
     * `first` on. */
    void (*pack)(const bwi_conv *conv, const float *keras_order, float *packed);
    void (*unpack)(const bwi_conv *conv, const float *packed, int64_t first, int64_t count, float *keras_order);
    /* The same of all values, with Keras's order on the device. */
    void (*store)(const bwi_conv *conv, const float *weights, float *packed);
    void (*restore)(const bwi_conv *conv, const float *packed, float *weights);
    /* Copies packed weights into the layout of backward data, once per update. */
    void (*reorder_backward)(const bwi_conv *conv, const float *packed, float *backward);

    bw_status (*bind)(bw_context *ctx, bwi_conv_run **run, const bwi_conv *conv, bwi_conv_pass pass, const bwi_conv_memory *memory);
    void (*unbind)(bwi_conv_run *run);             /* NULL is fine */
    bw_status (*execute)(const bwi_conv_run *run); /* no message: called by workers */

    /* A thread calls `execute` between begin and end: a library with threads of its own must use this one alone. `end` is given
     * what `begin` returned. */
    int (*begin)(void);
    void (*end)(int setting);
};

#endif
