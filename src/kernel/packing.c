/*
 * How tensors are stored in the host's memory, the same for every instruction set: dense weights between Keras's [in][out] and the
 * kernels' order, and the size of relu_maxpool's masks.
 */
#include "kernel/internal.h"
#include "kernel/packing.h"

static int64_t packed_index(int64_t in, int64_t out, int64_t i, int64_t o)
{
    if (out <= BWI_DENSE_NARROW) {
        return o * in + i;
    }
    return (o / BWI_DENSE_PANEL * in + i) * BWI_DENSE_PANEL + o % BWI_DENSE_PANEL;
}

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
            packed[packed_index(in, out, i, o)] = keras_order[i * out + o];
        }
    }
    if (out <= BWI_DENSE_NARROW) {
        return;
    }
    int64_t padded = (out + BWI_DENSE_PANEL - 1) / BWI_DENSE_PANEL * BWI_DENSE_PANEL;
    for (int64_t i = 0; i < in; i++) {
        for (int64_t o = out; o < padded; o++) {
            packed[packed_index(in, out, i, o)] = 0;
        }
    }
}

static void dense_unpack(int64_t in, int64_t out, const float *packed, int64_t first, int64_t count, float *keras_order)
{
    int64_t i = first / out, o = first % out;
    for (int64_t k = 0; k < count; k++) {
        keras_order[k] = packed[packed_index(in, out, i, o)];
        o++;
        if (o == out) {
            o = 0;
            i++;
        }
    }
}

static size_t relu_maxpool_mask_bytes(const bwi_image *y_image)
{
    int64_t groups = (y_image->c + BWI_MASK_CHANNELS - 1) / BWI_MASK_CHANNELS;
    return (size_t)(y_image->n * groups * y_image->h * y_image->w * (BWI_MASK_CHANNELS / 2));
}

const bwi_packing_kernels bwi_packing_host = {.dense_floats = dense_floats,
                                              .dense_panel = dense_panel,
                                              .dense_staging = dense_staging,
                                              .dense_pack = dense_pack,
                                              .dense_unpack = dense_unpack,
                                              .relu_maxpool_mask_bytes = relu_maxpool_mask_bytes,
                                              .conv_pool = &bwi_conv_pool_storage_host,
                                              .thin = &bwi_thin_storage_host,
                                              .winograd = &bwi_winograd_storage_host,
                                              .conv_pool_arrange = bwi_conv_pool_arrange,
                                              .conv_pool_restore = bwi_conv_pool_restore};
