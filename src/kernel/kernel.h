/*
 * kernel: numbers in, numbers out. Each hand-written kernel exists once as source and is compiled for AVX-512,
 * AVX2 and any processor (kernels_avx512.c, kernels_avx2.c, kernels_portable.c); the table of the best set is chosen at
 * run time. reference.c holds the slow, obvious version that tests compare with. kernel/onednn is the only folder
 * that includes oneDNN.
 *
 * Only kernels dereference tensors. Activations are float32 images of n samples in the layout
 * [n][ceil(c/block)][h][w][block]: block == c is channels-last (Keras's order), block == 1 is channels-first,
 * block 8 or 16 is what vector units like. Channels beyond c in the last block are zero and stay zero.
 */
#ifndef BWI_KERNEL_H
#define BWI_KERNEL_H

#include "kernel/loops/families.h"

/* A window that slides over an image: pooling. */
typedef struct bwi_pool_window {
    int64_t h, w, stride_h, stride_w, pad_top, pad_left;
} bwi_pool_window;

/* A convolution with stride 1, bias and ReLU, and 2x2/2 max pooling without padding behind it: x is the convolution's input
 * (conv_pool: channels-last, winograd: blocks of 16), y what pooling gives, in any block. */
typedef struct bwi_conv_pool {
    bwi_image x, y;
    int64_t kh, kw, pad_top, pad_left, pad_bottom, pad_right;
} bwi_conv_pool;

/* A kernel of weights that slides over an image; dilation 1: none, as Keras counts. */
typedef struct bwi_depthwise {
    bwi_pool_window window;
    int64_t dilation_h, dilation_w;
} bwi_depthwise;

/* Where the gradients of layer normalisation go; NULL: not wanted. They are overwritten, or added to. */
typedef struct bwi_row_gradients {
    float *gamma, *beta;
    bool add_gamma, add_beta;
} bwi_row_gradients;

typedef struct bwi_adam {
    float rate; /* the corrected rate: lr * sqrt(1 - b2^t) / (1 - b1^t) */
    float epsilon;
    double beta1, beta2; /* double: 1 - 0.999f would be off by 1e-5 */
    float scale;         /* the gradient is multiplied by it: 1 / samples, and clipping */
} bwi_adam;

/* Elementwise functions with up to three parameters, and their derivatives from y, or for those that say so from x. */
typedef enum bwi_activation {
    BWI_SIGMOID,      /* 1 / (1 + e^-x);                                    y (1 - y) */
    BWI_TANH,         /* tanh x;                                            1 - y^2 */
    BWI_SOFTPLUS,     /* ln(1 + e^x);                                       1 - e^-y */
    BWI_SOFTSIGN,     /* x / (1 + |x|);                                     (1 - |y|)^2 */
    BWI_ELU,          /* x > 0: a x, else b (e^x - 1), b >= 0;              y > 0: a, else y + b */
    BWI_EXPONENTIAL,  /* e^x;                                               y */
    BWI_HARD_SIGMOID, /* x/6 + 1/2 between 0 and 1;                         0 < y < 1: 1/6 */
    BWI_LEAKY_RELU,   /* x < 0: a x, a > 0, else x;                         y < 0: a, else 1 */
    BWI_BENT_RELU,    /* x > c: min(x, b), else a (x - c), all >= 0;        0 < y < b: 1, y <= 0: a */
    BWI_SILU,         /* x s, s = 1 / (1 + e^-x);                           from x: s (1 + x (1 - s)) */
    BWI_GELU,         /* x P, P = (1 + erf(x / sqrt 2)) / 2;                from x: P + x e^(-x^2/2) / sqrt(2 pi) */
    BWI_ACTIVATIONS
} bwi_activation;

typedef struct bwi_packing_kernels bwi_packing_kernels;
typedef struct bwi_convolution_kernels bwi_convolution_kernels;

enum { BWI_FETCHED = 2 };

struct bwi_kernels {
    const char *name; /* "avx512", "avx2", "portable" */
    int64_t block;    /* the channel block that suits: 16, 8 or 4 */

    /* Families of loops (kernel/loops): kernels->memory->copy and so on. */
#define BWI_MEMBER(family) const bwi_##family##_kernels *family;
    BWI_FAMILIES(BWI_MEMBER)
#undef BWI_MEMBER

    const bwi_packing_kernels *packing;
    const bwi_convolution_kernels *convolution;

    /* The others are written with vectors (kernel/fast), and contract products and sums. */

    /* Dense: y[n][out] = x[n][in] * w + bias. Weights are packed (packing->dense_pack). bias may be NULL. */
    void (*dense_forward)(int64_t n, int64_t in, int64_t out, const float *x, const float *w, const float *bias, float *y);
    void (*dense_backward_data)(int64_t n, int64_t in, int64_t out, const float *dy, const float *w, float *dx);
    /* dw (packed) and db (may be NULL) are overwritten, or added to if `accumulate`. */
    void (*dense_backward_weights)(int64_t n, int64_t in, int64_t out, const float *x, const float *dy, float *dw, float *db,
                                   bool accumulate);

    /* Parts of these passes, with the same bits, for layers in panels with 16 inputs or more: outputs from ... to - 1 (multiples of a panel, or `out`), and
     * inputs from ... to - 1 (multiples of 16, or `in` if that is one). */
    void (*dense_forward_part)(int64_t n, int64_t in, int64_t out, int64_t from, int64_t to, const float *x, const float *w,
                               const float *bias, float *y);
    void (*dense_backward_data_part)(int64_t n, int64_t in, int64_t out, int64_t from, int64_t to, const float *dy, const float *w,
                                     float *dx);
    /* The weights' gradient by blocks of a panel: x and dy of n samples are laid out in `room` (packing->dense_staging floats) first, which
     * gives a bound of what any element of the gradient can be; NaN: something is not finite. A block has rows `first` to
     * first + rows - 1 of a panel (`first` is a multiple of 8), the bias a panel's outputs (zero beyond `out`). Meanwhile as many
     * floats as a block has are fetched to the nearest cache from each address of `ahead`, unless it is NULL. */
    double (*dense_gradient_pack)(int64_t n, int64_t in, int64_t out, const float *x, const float *dy, float *room);
    void (*dense_gradient_block)(int64_t n, int64_t in, int64_t out, const float *room, int64_t panel, int64_t first, int64_t rows,
                                 float *block, const float *const ahead[BWI_FETCHED]);
    void (*dense_gradient_bias)(int64_t n, int64_t in, int64_t out, const float *room, int64_t panel, float *db);

    /* y = max(x, 0); dx = y > 0 ? dy : 0. In place allowed. NaN passes through forward. */
    void (*relu_forward)(int64_t count, const float *x, float *y);
    void (*relu_backward)(int64_t count, const float *y, const float *dy, float *dx);

    /* y = f(x); dx = dy f', where v is y or x as the kind says. In place allowed (v is not written). `p` has three. */
    void (*activate)(bwi_activation kind, const float *p, int64_t count, const float *x, float *y);
    void (*activate_backward)(bwi_activation kind, const float *p, int64_t count, const float *v, const float *dy, float *dx);

    /* y[i] = x[i] * scale, or 0 where the random word of i is below `limit`. It is word (i % 64) / 16 of
     * bwi_random_at(seed, stream, counter + i / 64 * 16 + i % 16); counter is a multiple of 16. In place allowed. */
    void (*dropout)(int64_t count, uint64_t seed, uint64_t stream, uint64_t counter, uint32_t limit, float scale, const float *x,
                    float *y);

    /* Max pooling: y, and which element won (the first of equals, as Keras's gradient on ties goes to the first),
     * as one byte each in window order, where y has that element (255: the window lies in the padding). The output has its
     * own block. `which` may be NULL (inference). A NaN in a window becomes the output. */
    void (*maxpool_forward)(const bwi_image *x_image, const bwi_image *y_image, const bwi_pool_window *window, const float *x,
                            float *y, unsigned char *which);
    void (*maxpool_backward)(const bwi_image *x_image, const bwi_image *y_image, const bwi_pool_window *window, const float *dy,
                             const unsigned char *which, float *dx);

    /* Average pooling: the mean of those elements of a window that lie inside the image. */
    void (*avgpool_forward)(const bwi_image *x_image, const bwi_image *y_image, const bwi_pool_window *window, const float *x,
                            float *y);
    void (*avgpool_backward)(const bwi_image *x_image, const bwi_image *y_image, const bwi_pool_window *window, const float *dy,
                             float *dx);
    /* The largest of each channel over all positions of a sample (y is 1x1), a NaN before all; backward divides the
     * difference equally among the elements that are the largest, as Keras does. */
    void (*globalmax_forward)(const bwi_image *x_image, const bwi_image *y_image, const float *x, float *y);
    void (*globalmax_backward)(const bwi_image *x_image, const bwi_image *y_image, const float *x, const float *y, const float *dy,
                               float *dx);

    /* Depthwise convolution, each channel by itself; x and y have the same block, weights are [kh][kw][c]; bias may be NULL. */
    void (*depthwise_forward)(const bwi_image *x_image, const bwi_image *y_image, const bwi_depthwise *k, const float *x,
                              const float *w, const float *bias, float *y);
    void (*depthwise_backward_data)(const bwi_image *x_image, const bwi_image *y_image, const bwi_depthwise *k, const float *dy,
                                    const float *w, float *dx);
    /* dw and db (may be NULL) are overwritten, or added to if `accumulate`. */
    void (*depthwise_backward_weights)(const bwi_image *x_image, const bwi_image *y_image, const bwi_depthwise *k, const float *x,
                                       const float *dy, float *dw, float *db, bool accumulate);

    /* ReLU and 2x2/2 max pooling without padding in one pass; bit masks instead of bytes. `masks` has
     * packing->relu_maxpool_mask_bytes bytes, or is NULL (inference). Odd last rows and columns of x are not covered:
     * backward writes zeros there. The difference is zero where no element of the window is positive. */
    void (*relu_maxpool_forward)(const bwi_image *x_image, const bwi_image *y_image, const float *x, float *y, void *masks);
    void (*relu_maxpool_backward)(const bwi_image *x_image, const bwi_image *y_image, const float *dy, const void *masks,
                                  float *dx);

    /* Convolution, bias, ReLU and pooling (bwi_conv_pool) in one pass, for few channels. Weights as packing->conv_pool_arrange makes
     * them; masks as relu_maxpool's, of y. backward_weights adds to `gradient`, which is arranged like the weights. `scratch`
     * is 64-byte aligned and has packing->conv_pool->scratch_bytes. */
    void (*conv_pool_forward)(const bwi_conv_pool *k, const float *x, const float *weights, float *y, void *masks, void *scratch);
    void (*conv_pool_backward_weights)(const bwi_conv_pool *k, const float *x, const float *dy, const void *masks, float *gradient,
                                       void *scratch);
    void (*conv_pool_backward_data)(const bwi_conv_pool *k, const float *dy, const void *masks, const float *weights, float *dx);

    /* Its forward pass for 3x3 kernels by Winograd's algorithm: fewer products and more rounding (docs/design.md). Weights are
     * made once from arranged ones: packing->thin->floats. */
    void (*thin_weights)(const bwi_conv_pool *k, const float *arranged, float *to);
    void (*thin_forward)(const bwi_conv_pool *k, const float *x, const float *weights, float *y, void *masks, void *scratch);

    /* The same for 3x3 kernels and many channels, with a quarter of the products but more rounding (docs/design.md). Weights are
     * transformed once: packing->winograd->floats. dw (Keras's order) and db are overwritten. `scratch` is 64-byte aligned and has
     * packing->winograd->scratch_bytes. */
    void (*winograd_weights)(const bwi_conv_pool *k, const float *weights, const float *bias, float *to);
    void (*winograd_forward)(const bwi_conv_pool *k, const float *x, const float *weights, float *y, void *masks, void *scratch);
    void (*winograd_backward_weights)(const bwi_conv_pool *k, const float *x, const float *dy, const void *masks, float *dw,
                                      float *db, void *scratch);
    void (*winograd_backward_data)(const bwi_conv_pool *k, const float *dy, const void *masks, const float *weights, float *dx,
                                   void *scratch);

    /* Rows of `width` numbers. */
    void (*softmax_forward)(int64_t rows, int64_t width, const float *x, float *y);
    void (*softmax_backward)(int64_t rows, int64_t width, const float *y, const float *dy, float *dx);
    /* The same along any axis; rows are the case of inner 1. In place allowed. */
    void (*softmax_axis_forward)(const bwi_around *around, const float *x, float *y);
    void (*softmax_axis_backward)(const bwi_around *around, const float *y, const float *dy, float *dx);
    /* loss[r] = log(sum exp logits[r]) - logits[r][label], without the weight; difference = (softmax - one-hot) * weight[r]
     * (NULL: 1), in place (difference == logits) or NULL. Labels are checked by the caller. */
    void (*crossentropy)(int64_t rows, int64_t width, const float *logits, const int32_t *labels, const float *weight, float *loss,
                         float *difference);

    /* loss[i] = ln(1 + e^x) - x t and difference[i] = (1 / (1 + e^-x) - t) * factor[i] (NULL: 1), either of them may be NULL;
     * t = y (1 - smoothing) + smoothing / 2. */
    void (*binary_crossentropy)(int64_t count, float smoothing, const float *x, const float *y, const float *factor, float *loss,
                                float *difference);

    /* y[outer][inner] = the sum over the axis, in double, divided by `divisor`. */
    void (*sum_axis)(const bwi_around *around, double divisor, const float *x, float *y);

    /* Layer normalisation of rows: y = x_hat gamma + beta, x_hat = (x - mean) inverse, inverse = 1 / sqrt(variance + epsilon). gamma
     * and beta may be NULL: 1 and 0. `kept` gets mean and inverse of each row, which backward reads. With g = dy gamma:
     * dx = inverse (g - mean g - x_hat mean(g x_hat)), in place (dx == dy) allowed; dgamma = sum dy x_hat, dbeta = sum dy. */
    void (*layernorm_forward)(int64_t rows, int64_t width, float epsilon, const float *x, const float *gamma, const float *beta,
                              float *kept, float *y);
    void (*layernorm_backward)(int64_t rows, int64_t width, const float *x, const float *dy, const float *gamma, const float *kept,
                               float *dx);
    void (*layernorm_backward_weights)(int64_t rows, int64_t width, const float *x, const float *dy, const float *kept,
                                       const bwi_row_gradients *to);

    /* Losses of one row whose terms have exponentials or logarithms (BWI_LOSS_LOGARITHMIC, LOG_COSH, POISSON, BINARY_LOGITS, BINARY,
     * DIVERGENCE, CATEGORICAL): the sum of f(x, y), in an order that depends on the width alone; and for the first two and
     * BINARY_LOGITS dx = factor f'(x, y). */
    double (*loss_sum)(bwi_loss_kind kind, float smoothing, int64_t width, const float *x, const float *y);
    void (*loss_slopes)(bwi_loss_kind kind, float smoothing, int64_t width, const float *x, const float *y, float factor,
                        float *dx);

    /* Per channel over all samples and positions, added to what is there: sums[c] += x, sums[c + channels] += x*x. */
    void (*channel_sums)(const bwi_image *image, const float *x, double *sums);
    /* y = (x - mean[c]) * scale[c] + shift[c]: where x is the mean, exactly the shift. Padding channels stay zero. In place
     * allowed. */
    void (*channel_affine)(const bwi_image *image, const float *x, const float *mean, const float *scale, const float *shift,
                           float *y);
    /* sums[c] += dy, sums[c + channels] += dy * x_hat, x_hat = (x - mean[c]) * inverse[c]. */
    void (*channel_backward_sums)(const bwi_image *image, const float *x, const float *dy, const float *mean, const float *inverse,
                                  double *sums);
    /* dx = a[c] * (dy - d[c]) + b[c] * (x - mean[c]): exactly zero for a single value a channel. In place (dx == dy) allowed. */
    void (*channel_backward)(const bwi_image *image, const float *x, const float *dy, const float *mean, const float *a,
                             const float *b, const float *d, float *dx);

    /* The same image in another block. */
    void (*reorder)(const bwi_image *from, const float *x, int64_t block, float *y);

    void (*add)(int64_t count, const float *x, float *sum); /* sum += x */
    /* Adds `lanes` vectors, `stride` floats apart, as a binary tree over their numbers into the first: pairs
     * (0,1) (2,3) ..., then (0,2) (4,6) ...: log2 rounds; lanes need not be a power of two (a missing partner is
     * passed on). Returns the sum of squares of the result in double, in a fixed order. */
    double (*lanes_sum)(int64_t count, int lanes, int64_t stride, float *first);
    /* The same sums, but it only says whether all of them are finite: several times cheaper. */
    bool (*lanes_sum_finite)(int64_t count, int lanes, int64_t stride, float *first);
    double (*sum_of_squares)(int64_t count, const float *x); /* fixed order */
    void (*sgd)(int64_t count, float rate, float momentum, bool nesterov, float scale, const float *gradient, float *velocity,
                float *w); /* velocity may be NULL when momentum is 0 */
    void (*adam)(int64_t count, const bwi_adam *adam, const float *gradient, float *m, float *v, float *w);
};

/* The table for this context: its instruction_set, else $BATCHWISE_ISA, else the best this CPU runs. NULL and a
 * message if that set is unknown or not available here. Also limits oneDNN to it. */
const bwi_kernels *bwi_kernels_of(bw_context *ctx);
/* The table "avx512", "avx2", "portable", or one that was added; NULL if unknown or not available on this CPU. */
const bwi_kernels *bwi_kernels_by_name(const char *name);
/* Another device: its table can then be chosen by its name. Kept. Before the first context is opened. False: the name is taken, or
 * there are too many. */
bool bwi_kernels_add(const bwi_kernels *kernels);
/* The best table of the CPU, for memory of the host: whatever device a context computes on. */
const bwi_kernels *bwi_kernels_host(void);
extern const bwi_kernels bwi_kernels_reference; /* reference.c */

/* ---- How tensors are stored, which is the device's choice ---- */

/* How one of the algorithms for bwi_conv_pool stores what it reads. */
typedef struct bwi_conv_pool_storage {
    int64_t block;                             /* of the images; 0: channels-last */
    bool (*fits)(const bwi_conv_pool *k);      /* whether there are kernels for it */
    int64_t (*floats)(const bwi_conv_pool *k); /* the weights as the kernels have them */
    size_t (*scratch_bytes)(const bwi_conv_pool *k);
} bwi_conv_pool_storage;

/* `keras_order` lies on the host, all else on the device. */
struct bwi_packing_kernels {
    /* Dense weights, Keras's [in][out], are stored as the kernels like them: [out][in] for few outputs, panels [out/32][in][32]
     * otherwise, with zeros at the end of the last panel's rows. */
    int64_t (*dense_floats)(int64_t in, int64_t out);
    int64_t (*dense_panel)(int64_t out);                          /* outputs of a panel; 0: no panels */
    int64_t (*dense_staging)(int64_t n, int64_t in, int64_t out); /* floats that dense_gradient_pack fills */
    void (*dense_pack)(int64_t in, int64_t out, const float *keras_order, float *packed);
    void (*dense_unpack)(int64_t in, int64_t out, const float *packed, float *keras_order);

    /* Bytes of the masks that relu_maxpool and conv_pool keep for an output. */
    size_t (*relu_maxpool_mask_bytes)(const bwi_image *y_image);

    /* thin: its forward pass needs conv_pool's weights as well as its own. */
    const bwi_conv_pool_storage *conv_pool;
    const bwi_conv_pool_storage *thin;
    const bwi_conv_pool_storage *winograd;
    /* Weights in Keras's order (kh, kw, in, out) and bias (may be NULL) to and from conv_pool's [in][kh][kw][out], then the bias; out
     * is padded with zeros. All of them lie on the device. */
    void (*conv_pool_arrange)(const bwi_conv_pool *k, const float *weights, const float *bias, float *arranged);
    void (*conv_pool_restore)(const bwi_conv_pool *k, const float *arranged, float *weights, float *bias);
};

/* ---- Convolution: kernels that a library compiles for one shape ---- */

typedef struct bwi_conv_shape {
    int64_t n, ih, iw, ic, oh, ow, oc, kh, kw;
    int64_t stride_h, stride_w, dilation_h, dilation_w; /* dilation 1: none, as Keras counts */
    int64_t pad_top, pad_left, pad_bottom, pad_right;
    int64_t groups;
    bool with_bias;
} bwi_conv_shape;

typedef enum bwi_conv_pass { BWI_CONV_FORWARD, BWI_CONV_BACKWARD_DATA, BWI_CONV_BACKWARD_WEIGHTS } bwi_conv_pass;

/* All passes of one convolution for one number of samples. Immutable; may be shared by workers. */
typedef struct bwi_conv bwi_conv;

typedef struct bwi_conv_facts {
    int64_t src_block, dst_block;
    int64_t weights_floats;          /* packed weights, also of their difference */
    int64_t backward_weights_floats; /* weights in backward data's own layout; 0 if it takes the packed ones */
    size_t scratch_bytes;            /* the largest of all passes */
    size_t run_bytes;                /* that `bind` allocates */
    const char *implementation[3];   /* by pass; lent */
} bwi_conv_facts;

/* One pass bound to addresses, for one worker. */
typedef struct bwi_conv_run bwi_conv_run;

typedef struct bwi_conv_memory {
    float *src, *dst; /* or their differences, as the pass has it: backward data writes diff_src to src
                                   and reads diff_dst from dst; backward weights reads src and diff_dst in dst */
    float *weights;   /* packed; backward data: in its own layout if it has one; backward weights: written */
    float *bias;      /* NULL without; backward weights: written */
    void *scratch;    /* 64-byte aligned */
} bwi_conv_memory;

struct bwi_convolution_kernels {
    /* Describes and compiles it. `like` (may be NULL): take the same layouts of src, dst and weights. `backward`: also the backward
     * passes; `difference`: backward data among them. A reference implementation is an error (INTERNAL) unless no other layout does
     * better, which is logged. It belongs to the context until `release`. */
    bw_status (*create)(bw_context *ctx, bwi_conv **conv, const bwi_conv_shape *shape, const bwi_conv *like, bool backward,
                        bool difference);
    const bwi_conv_facts *(*facts)(const bwi_conv *conv);
    void (*release)(bwi_conv *conv); /* NULL is fine */

    /* Keras's (kh, kw, in/groups, out) on the host to and from packed. */
    void (*pack)(const bwi_conv *conv, const float *keras_order, float *packed);
    void (*unpack)(const bwi_conv *conv, const float *packed, float *keras_order);
    /* The same within the device. */
    void (*store)(const bwi_conv *conv, const float *weights, float *packed);
    void (*restore)(const bwi_conv *conv, const float *packed, float *weights);
    /* Packed weights into backward data's layout; once per update. */
    void (*reorder_backward)(const bwi_conv *conv, const float *packed, float *backward);

    bw_status (*bind)(bw_context *ctx, bwi_conv_run **run, const bwi_conv *conv, bwi_conv_pass pass, const bwi_conv_memory *memory);
    void (*unbind)(bwi_conv_run *run);             /* NULL is fine */
    bw_status (*execute)(const bwi_conv_run *run); /* no message: called by workers */
};

/* oneDNN computes with OpenMP: one thread while `begin` holds on this thread; returns the setting to give back. */
int bwi_onednn_begin(void);
void bwi_onednn_end(int setting);

#endif
