/* Writes the values of variables block by block, so that a file needs little memory however large the model is. */
#include "file/internal.h"

#include <string.h>

/* Files have little-endian floats. */
static void order_bytes(float *values, int64_t count)
{
    unsigned char *at = (unsigned char *)values;
    for (int64_t i = 0; i < count; i++, at += sizeof(float)) {
        uint32_t bits;
        memcpy(&bits, at, sizeof bits);
        for (int b = 0; b < 4; b++) {
            at[b] = (unsigned char)(bits >> 8 * b);
        }
    }
}

/* Of weights [positions][channels][filters], which Keras has, gives those from `first` on in the order
 * [filters][channels][positions]. */
static void read_transposed(const bwi_values *v, int64_t first, int64_t count, float *values)
{
    int64_t positions = bwi_shape_count(&v->variable->shape) / (v->channels * v->filters);
    for (int64_t k = 0; k < count; k++) {
        int64_t p = (first + k) % positions, c = (first + k) / positions % v->channels, f = (first + k) / positions / v->channels;
        bwi_variable_read_part(v->variable, (p * v->channels + c) * v->filters + f, 1, values + k);
    }
}

int64_t bwi_values_read(const bwi_values *v, int64_t first, int64_t most, float *values)
{
    int64_t total = bwi_shape_count(&v->variable->shape), count = total - first < most ? total - first : most;
    if (v->filters) {
        read_transposed(v, first, count, values);
    } else {
        bwi_variable_read_part(v->variable, first, count, values);
    }
    return count;
}

bw_status bwi_values_put(bw_context *ctx, const bwi_values *v, bwi_byte_sink sink)
{
    int64_t total = bwi_shape_count(&v->variable->shape), most = total < BWI_VALUES_BLOCK ? total : BWI_VALUES_BLOCK;
    float *block = bwi_allocate(ctx, (size_t)most, sizeof *block);
    bw_status status = block ? BW_OK : BW_RESOURCE_EXHAUSTED;
    for (int64_t first = 0, count; first < total && status == BW_OK; first += count) {
        count = bwi_values_read(v, first, most, block);
        order_bytes(block, count);
        status = sink.put(sink.user, block, (size_t)count * sizeof *block);
    }
    bwi_release(ctx, block);
    return status;
}
