/*
 * How tensors are stored in the host's memory, the same for every instruction set: dense weights between Keras's [in][out] and the
 * kernels' order, and the size of relu_maxpool's masks.
 */
#include "kernel/internal.h"
#include "kernel/packing.h"

static int64_t dense_floats(int64_t in, int64_t out)
{
    if (out <= BWI_DENSE_NARROW) {
        return in * out;
    }
    return (out + BWI_DENSE_PANEL - 1) / BWI_DENSE_PANEL * BWI_DENSE_PANEL * in;
}

static int64_t dense_panel(int64_t out)
{
    return out <= BWI_DENSE_NARROW ? 0 : BWI_DENSE_PANEL;
}

static int64_t dense_staging(int64_t n, int64_t in, int64_t out)
{
    int64_t high = (n + BWI_DENSE_STAGED - 1) / BWI_DENSE_STAGED * BWI_DENSE_STAGED;
    int64_t wide = (in + BWI_DENSE_STAGED - 1) / BWI_DENSE_STAGED * BWI_DENSE_STAGED;
    return wide * high + (out + BWI_DENSE_PANEL - 1) / BWI_DENSE_PANEL * BWI_DENSE_PANEL * n;
}

static void dense_pack(int64_t in, int64_t out, const float *keras_order, float *packed)
{
    for (int64_t i = 0; i < in; i++) {
        for (int64_t o = 0; o < out; o++) {
            packed[bwi_dense_index(in, out, i, o)] = keras_order[i * out + o];
        }
    }
    if (out <= BWI_DENSE_NARROW) {
        return;
    }
    int64_t padded = (out + BWI_DENSE_PANEL - 1) / BWI_DENSE_PANEL * BWI_DENSE_PANEL;
    for (int64_t i = 0; i < in; i++) {
        for (int64_t o = out; o < padded; o++) {
            packed[bwi_dense_index(in, out, i, o)] = 0;
        }
    }
}

static void dense_unpack(int64_t in, int64_t out, const float *packed, int64_t first, int64_t count, float *keras_order)
{
    int64_t i = first / out, o = first % out;
    for (int64_t k = 0; k < count; k++) {
        keras_order[k] = packed[bwi_dense_index(in, out, i, o)];
        o++;
        if (o == out) {
            o = 0;
            i++;
        }
    }
}

static int64_t recurrent_floats(bwi_cell cell, int64_t units)
{
    bwi_cell_widths w = bwi_cell_of(cell);
    return dense_floats(units, w.first * units) + (w.second ? dense_floats(units, w.second * units) : 0);
}

static int64_t recurrent_turned(bwi_cell cell, int64_t units)
{
    bwi_cell_widths w = bwi_cell_of(cell);
    return dense_floats(w.first * units, units) + (w.second ? dense_floats(w.second * units, units) : 0);
}

static int64_t recurrent_kept(const bwi_recurrent *k)
{
    return bwi_recurrent_place(k, true).floats;
}

/* In training: a step's products, differences of states, what reaches the state before directly, and rows. In inference a step
 * lies here as well. */
static int64_t recurrent_scratch(const bwi_recurrent *k)
{
    bwi_cell_widths w = bwi_cell_of(k->cell);
    return k->n * k->units * (w.gates + 3) + BWI_RECURRENT_ROWS * k->units + bwi_recurrent_place(k, false).floats;
}

/* Where Keras's column lies: in the first matrix or in the second. */
static void recurrent_pack(bwi_cell cell, int64_t units, const float *keras_order, float *packed)
{
    bwi_cell_widths w = bwi_cell_of(cell);
    int64_t first = w.first * units, second = w.second * units, columns = first + second;
    float *next = packed + dense_floats(units, first);
    for (int64_t i = 0; i < recurrent_floats(cell, units); i++) {
        packed[i] = 0;
    }
    for (int64_t i = 0; i < units; i++) {
        for (int64_t o = 0; o < columns; o++) {
            float *to =
                o < first ? &packed[bwi_dense_index(units, first, i, o)] : &next[bwi_dense_index(units, second, i, o - first)];
            *to = keras_order[i * columns + o];
        }
    }
}

static void recurrent_unpack(bwi_cell cell, int64_t units, const float *packed, int64_t first, int64_t count, float *keras_order)
{
    bwi_cell_widths w = bwi_cell_of(cell);
    int64_t before = w.first * units, after = w.second * units, columns = before + after;
    const float *next = packed + dense_floats(units, before);
    for (int64_t k = 0; k < count; k++) {
        int64_t i = (first + k) / columns, o = (first + k) % columns;
        keras_order[k] =
            o < before ? packed[bwi_dense_index(units, before, i, o)] : next[bwi_dense_index(units, after, i, o - before)];
    }
}

static size_t relu_maxpool_mask_bytes(const bwi_image *y_image)
{
    int64_t groups = (y_image->c + BWI_MASK_CHANNELS - 1) / BWI_MASK_CHANNELS;
    return (size_t)(y_image->n * groups * y_image->h * y_image->w * (BWI_MASK_CHANNELS / 2));
}

static int64_t attention_scratch(const bwi_attention *a, bool backward)
{
    return bwi_attention_place(a, backward).floats;
}

const bwi_packing_kernels bwi_packing_host = {.dense_floats = dense_floats,
                                              .dense_panel = dense_panel,
                                              .dense_staging = dense_staging,
                                              .dense_pack = dense_pack,
                                              .dense_unpack = dense_unpack,
                                              .recurrent_floats = recurrent_floats,
                                              .recurrent_turned = recurrent_turned,
                                              .recurrent_kept = recurrent_kept,
                                              .recurrent_scratch = recurrent_scratch,
                                              .recurrent_pack = recurrent_pack,
                                              .recurrent_unpack = recurrent_unpack,
                                              .attention_scratch = attention_scratch,
                                              .relu_maxpool_mask_bytes = relu_maxpool_mask_bytes,
                                              .conv_pool = &bwi_conv_pool_storage_host,
                                              .thin = &bwi_thin_storage_host,
                                              .winograd = &bwi_winograd_storage_host,
                                              .conv_pool_arrange = bwi_conv_pool_arrange,
                                              .conv_pool_restore = bwi_conv_pool_restore};
