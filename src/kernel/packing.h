/*
 * packing: constants and sizes on which all tables of kernels for the host agree: the storage of dense weights, relu_maxpool's
 * masks, and the scratch memory of conv_pool, thin and winograd.
 */
#ifndef BWI_PACKING_H
#define BWI_PACKING_H

#include "kernel/internal.h"

/* Up to this number of outputs, dense weights are stored [out][in]; beyond, in panels [ceil(out/PANEL)][in][PANEL]. */
#define BWI_DENSE_NARROW 16
#define BWI_DENSE_PANEL 32
/* Up to this number of inputs, layers stored in panels have passes of their own, which are not split into parts and blocks. */
#define BWI_DENSE_FEW 4
/* Where the weights' gradient is computed by blocks, the extents of the staged x are rounded up to this. */
#define BWI_DENSE_STAGED 16

/* The place of a dense weight as it is stored. */
static inline int64_t bwi_dense_index(int64_t in, int64_t out, int64_t i, int64_t o)
{
    if (out <= BWI_DENSE_NARROW) {
        return o * in + i;
    }
    return (o / BWI_DENSE_PANEL * in + i) * BWI_DENSE_PANEL + o % BWI_DENSE_PANEL;
}

/* A cell in numbers of gates: those of the inputs' products; those whose products with the state are taken first, and second; what
 * is kept beside them; and whether it carries a second state. */
typedef struct bwi_cell_widths {
    int64_t gates, first, second, beside, carries;
} bwi_cell_widths;

static inline bwi_cell_widths bwi_cell_of(bwi_cell cell)
{
    static const bwi_cell_widths widths[BWI_CELLS] = {
        [BWI_CELL_SIMPLE] = {1, 1, 0, 0, 0},
        [BWI_CELL_LSTM] = {4, 4, 0, 0, 1},
        [BWI_CELL_GRU_AFTER] = {3, 3, 0, 1, 0},
        [BWI_CELL_GRU] = {3, 2, 1, 1, 0},
    };
    return widths[cell];
}

#define BWI_RECURRENT_ROWS 6 /* rows of a sample's values in the scratch memory, each `units` wide */

/* Offsets, in floats, of what a recurrent layer keeps. Steps follow each other: [steps][n][...]. States have one step more, the
 * first of which is what the sequence begins with; its difference (`begin`) is left behind them, h and then c. Without steps to
 * keep, one is overwritten by the next, and of states there are two, used alternately. */
typedef struct bwi_recurrent_places {
    int64_t first, second, beside, dropped, h, c, begin, floats;
} bwi_recurrent_places;

/* The rows of a sample's y. */
static inline int64_t bwi_recurrent_rows(const bwi_recurrent *k)
{
    return (k->sequences ? k->steps : 1) + (k->ends ? 1 + bwi_cell_of(k->cell).carries : 0);
}

static inline bwi_recurrent_places bwi_recurrent_place(const bwi_recurrent *k, bool keeps)
{
    bwi_cell_widths w = bwi_cell_of(k->cell);
    int64_t step = k->n * k->units, all = keeps ? k->steps : 1;
    bwi_recurrent_places at = {.first = 0};
    at.second = at.first + all * step * w.first;
    at.beside = at.second + all * step * w.second;
    at.dropped = at.beside + all * step * w.beside;
    at.h = at.dropped + (k->drops ? all * step : 0);
    at.c = at.h + (all + 1) * step;
    at.begin = at.c + (w.carries ? (all + 1) * step : 0);
    at.floats = at.begin + (k->begins && keeps ? (1 + w.carries) * step : 0);
    return at;
}

/* relu_maxpool keeps four bits for each element of its output; channels count in groups of this size. */
#define BWI_MASK_CHANNELS 16

/* conv_pool: how many pooled columns the weights' gradient takes at a time; the most taps in a row; the floats from one row of
 * patches to the next; and the floats behind a sample's planes that may be read. */
#define BWI_CONV_POOL_CHUNK 64
#define BWI_CONV_POOL_WIDEST 5
#define BWI_CONV_POOL_PITCH ((2 * BWI_CONV_POOL_CHUNK + 8) * 4)
#define BWI_CONV_POOL_SLACK 16

#define BWI_THIN_SLACK 64 /* floats behind rows in quarters that may be read */

/* thin: the number of rows that patches of 4x4 outputs reach, and the length of a quarter: every fourth element of a row. */
static inline int64_t bwi_thin_rows(const bwi_conv_pool *k)
{
    return (k->y.h + 1) / 2 * 4 + 2;
}

static inline int64_t bwi_thin_quarter(const bwi_conv_pool *k)
{
    int64_t patches = (k->y.w + 1) / 2 + 1, image = (k->pad_left + k->x.w + 3) / 4;
    return ((patches > image ? patches : image) + 3) / 4 * 4;
}

static inline int64_t bwi_conv_pool_filters(const bwi_conv_pool *k)
{
    return (k->y.c + BWI_MASK_CHANNELS - 1) / BWI_MASK_CHANNELS * BWI_MASK_CHANNELS;
}

/* The parts of bwi_packing_host that conv_pool.c defines. */
int64_t bwi_conv_pool_floats(const bwi_conv_pool *k);
extern const bwi_conv_pool_storage bwi_conv_pool_storage_host, bwi_thin_storage_host, bwi_winograd_storage_host;
void bwi_conv_pool_arrange(const bwi_conv_pool *k, const float *weights, const float *bias, float *arranged);
void bwi_conv_pool_restore(const bwi_conv_pool *k, const float *arranged, float *weights, float *bias);

/* The reference kernels for bwi_conv_pool (conv_pool.c). */
void bwi_reference_conv_pool_forward(const bwi_conv_pool *k, const float *x, const float *weights, float *y, void *masks,
                                     void *scratch);
void bwi_reference_conv_pool_backward_weights(const bwi_conv_pool *k, const float *x, const float *dy, const void *masks,
                                              float *gradient, void *scratch);
void bwi_reference_conv_pool_backward_data(const bwi_conv_pool *k, const float *dy, const void *masks, const float *weights,
                                           float *dx);

/* The references of thin and winograd compute the same convolution without transforms. */
void bwi_reference_thin_weights(const bwi_conv_pool *k, const float *arranged, float *to);

/* winograd: the channels of its transforms come by 16; the patches of 4x4 outputs it takes at a time, at most, and the points of a
 * transform. */
#define BWI_WINOGRAD_BLOCK 16
#define BWI_WINOGRAD_PATCHES 48
#define BWI_WINOGRAD_POINTS 36

static inline int64_t bwi_winograd_channels(int64_t channels)
{
    return (channels + BWI_WINOGRAD_BLOCK - 1) / BWI_WINOGRAD_BLOCK * BWI_WINOGRAD_BLOCK;
}

/* The rows and columns of patches in an image. */
static inline int64_t bwi_winograd_rows(const bwi_conv_pool *k)
{
    return k->then == BWI_THEN_POOL ? (k->y.h + 1) / 2 : (k->y.h + 3) / 4;
}
static inline int64_t bwi_winograd_columns(const bwi_conv_pool *k)
{
    return k->then == BWI_THEN_POOL ? (k->y.w + 1) / 2 : (k->y.w + 3) / 4;
}

/* The patches of a set, fewer of many channels, so that their transforms stay in a core's cache. */
static inline int64_t bwi_winograd_set(const bwi_conv_pool *k)
{
    int64_t channels = bwi_winograd_channels(k->x.c) + bwi_winograd_channels(k->y.c);
    return channels <= 64 ? BWI_WINOGRAD_PATCHES : BWI_WINOGRAD_PATCHES / 2;
}

/* Whether one set holds all patches. */
static inline bool bwi_winograd_once(const bwi_conv_pool *k)
{
    return k->x.n * bwi_winograd_rows(k) * bwi_winograd_columns(k) <= bwi_winograd_set(k);
}

/* Floats from one patch's transforms, [channels/16][36][16], to the next. The 16 more keep it away from multiples of large
 * powers of two, at which patches would compete for the same cache lines. */
static inline int64_t bwi_winograd_patch(int64_t channels)
{
    return BWI_WINOGRAD_POINTS * channels + 16;
}

/* References (conv_pool.c). */
void bwi_reference_winograd_weights(const bwi_conv_pool *k, const float *weights, const float *bias, float *to);
void bwi_reference_winograd_backward_weights(const bwi_conv_pool *k, const float *x, const float *dy, const void *masks, float *dw,
                                             float *db, void *scratch);
void bwi_reference_winograd_backward_data(const bwi_conv_pool *k, const float *dy, const void *masks, const float *weights,
                                          float *dx, void *scratch);

/* Attention takes this many queries and keys at once. Draws of dropped weights come by 64. */
#define BWI_ATTENTION_QUERIES 32
#define BWI_ATTENTION_KEYS 128
/* Rows are filled up with zeros to a multiple of this, which all vectors divide. */
#define BWI_ATTENTION_FILLED 32

static inline int64_t bwi_round_up(int64_t count, int64_t multiple)
{
    return (count + multiple - 1) / multiple * multiple;
}

/* Offsets, in floats, of the parts of attention's scratch memory: keys and values of one head as they are multiplied, transposed or
 * not, and their differences; what belongs to a block of queries; and what belongs to a block of queries and keys. */
typedef struct bwi_attention_places {
    int64_t turned_keys, turned_values, keys, values, diff_keys, diff_values;
    int64_t queries, diff_queries, diff_outputs, outputs, rows;
    int64_t scores, shares, dropped, slopes;
    int64_t sums; /* doubles */
    int64_t floats;
} bwi_attention_places;

/* Forward needs the first parts only. Keys and values are rounded up to whole blocks, whose rest is read but never used. */
static inline bwi_attention_places bwi_attention_place(const bwi_attention *a, bool backward)
{
    int64_t blocks = bwi_round_up(a->keys, BWI_ATTENTION_KEYS), rows = BWI_ATTENTION_QUERIES;
    int64_t key_row = bwi_round_up(a->key_width, BWI_ATTENTION_FILLED),
            value_row = bwi_round_up(a->value_width, BWI_ATTENTION_FILLED);
    int64_t pair = rows * BWI_ATTENTION_KEYS, at = 0;
    bwi_attention_places p = {.turned_keys = 0};
    at += blocks * key_row;
    p.values = p.turned_values = at;
    at += blocks * value_row;
    p.outputs = p.diff_outputs = at;
    at += rows * value_row;
    p.rows = at;
    at += 3 * rows;
    p.scores = p.shares = at;
    at += pair;
    if (backward) {
        p.keys = at;
        p.diff_keys = p.keys + blocks * key_row;
        p.diff_values = p.diff_keys + blocks * key_row;
        p.queries = p.diff_values + blocks * value_row;
        p.diff_queries = p.queries + rows * key_row;
        p.shares = p.diff_queries + rows * key_row;
        p.dropped = p.shares + pair;
        p.slopes = p.dropped + pair;
        p.sums = p.slopes + pair;
        at = p.sums + 2 * key_row;
    }
    p.floats = at;
    return p;
}

#endif
