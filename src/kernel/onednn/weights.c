/*
 * weights: from Keras's order (kd, kh, kw, in/groups, out) to the blocked layouts of oneDNN and back. The offset in a
 * blocked layout is a sum with one term for each dimension, so a short table for each replaces oneDNN's reorders:
 * nothing here allocates, fails, or is changed by a call, once the tables are made.
 */
#include "kernel/onednn/convolution.h"

#include <string.h>

/* The term of the offset that index x in dimension d adds. Inner blocks are listed outermost first. */
static int64_t offset_term(const bwi_dnnl_blocking *b, int d, int64_t x)
{
    int64_t term = 0, distance = 1;
    for (int k = b->inner_count - 1; k >= 0; k--) {
        if (b->inner_dimensions[k] == d) {
            term += x % b->inner_sizes[k] * distance;
            x /= b->inner_sizes[k];
        }
        distance *= b->inner_sizes[k];
    }
    return term + x * b->strides[d];
}

static int64_t *offset_table(bw_context *ctx, const bwi_dnnl_blocking *b, int d, int64_t extent)
{
    int64_t *table = bwi_allocate(ctx, (size_t)extent, sizeof *table);
    if (table && d >= 0) {
        for (int64_t x = 0; x < extent; x++) {
            table[x] = offset_term(b, d, x);
        }
    }
    return table;
}

bool bwi_weights_map_possible(const bwi_conv_shape *shape, const bwi_dnnl_layout *layout)
{
    bwi_dnnl_blocking b;
    if (!bwi_dnnl_layout_blocking(layout, &b) || b.ndim != (shape->groups > 1 ? 5 : 4) + (shape->kd > 0)) {
        return false;
    }
    for (int k = 0; k < b.inner_count; k++) {
        if (b.inner_dimensions[k] >= b.ndim - (shape->kd > 0 ? 3 : 2)) { /* blocks over depth, height or width */
            return false;
        }
    }
    return true;
}

bool bwi_weights_are_squares(const bwi_conv_shape *s, const bwi_dnnl_layout *layout, int64_t block)
{
    bwi_dnnl_blocking b;
    int64_t square = block * block, taps = s->kh * s->kw;
    return !s->kd && bwi_dnnl_layout_blocking(layout, &b) && b.ndim == 4 && b.inner_count == 2 && b.inner_dimensions[0] == 1 &&
           b.inner_dimensions[1] == 0 && b.inner_sizes[0] == block && b.inner_sizes[1] == block && b.strides[3] == square &&
           b.strides[2] == s->kw * square && b.strides[1] == taps * square &&
           b.strides[0] == (s->ic + block - 1) / block * taps * square;
}

bw_status bwi_weights_map_open(bw_context *ctx, bwi_weights_map *map, const bwi_conv_shape *shape, const bwi_dnnl_layout *layout)
{
    bwi_dnnl_blocking b;
    if (!bwi_dnnl_layout_blocking(layout, &b)) {
        return bwi_fail(ctx, BW_INTERNAL, "convolution: oneDNN chose weights in a layout that is not blocked");
    }
    int channels = b.ndim - (shape->kd > 0); /* dimensions but for the depth */
    map->group = offset_table(ctx, &b, channels - 5, shape->groups);
    map->out = offset_table(ctx, &b, channels - 4, shape->oc / shape->groups);
    map->in = offset_table(ctx, &b, channels - 3, shape->ic / shape->groups);
    map->plane = shape->kd > 0 ? b.strides[b.ndim - 3] : 0;
    map->row = b.strides[b.ndim - 2];
    map->column = b.strides[b.ndim - 1];
    map->floats = bwi_dnnl_layout_bytes(layout) / sizeof(float);
    return map->group && map->out && map->in ? BW_OK : BW_RESOURCE_EXHAUSTED;
}

void bwi_weights_map_close(bw_context *ctx, bwi_weights_map *map)
{
    bwi_release(ctx, map->group);
    bwi_release(ctx, map->out);
    bwi_release(ctx, map->in);
    *map = (bwi_weights_map){0};
}

static size_t weights_count(const bwi_conv_shape *s)
{
    return (size_t)(bwi_conv_places(s) * (s->ic / s->groups) * s->oc);
}

/* Where the weights of a place of the kernel lie. */
static int64_t place_offset(const bwi_conv_shape *s, const bwi_weights_map *map, int64_t place)
{
    int64_t x = place % s->kw, y = place / s->kw % s->kh, z = place / s->kw / s->kh;
    return z * map->plane + y * map->row + x * map->column;
}

/* Padding, which oneDNN wants to be zero, exists where the layout has more floats than there are weights. */
static void clear_padding(const bwi_conv_shape *shape, const bwi_weights_map *map, float *weights)
{
    if (map->floats != weights_count(shape)) {
        memset(weights, 0, map->floats * sizeof(float));
    }
}

void bwi_conv_pack(const bwi_conv *conv, const float *weights, float *packed)
{
    const bwi_conv_shape *s = &conv->shape;
    const bwi_weights_map *map = &conv->form->packed;
    clear_padding(s, map, packed);
    for (int64_t place = 0; place < bwi_conv_places(s); place++) {
        for (int64_t i = 0; i < s->ic / s->groups; i++) {
            float *at = packed + place_offset(s, map, place) + map->in[i];
            for (int64_t g = 0; g < s->groups; g++) {
                for (int64_t o = 0; o < s->oc / s->groups; o++) {
                    at[map->group[g] + map->out[o]] = *weights++;
                }
            }
        }
    }
}

void bwi_conv_restore(const bwi_conv *conv, const float *packed, float *weights)
{
    const bwi_conv_shape *s = &conv->shape;
    const bwi_weights_map *map = &conv->form->packed;
    for (int64_t place = 0; place < bwi_conv_places(s); place++) {
        for (int64_t i = 0; i < s->ic / s->groups; i++) {
            const float *at = packed + place_offset(s, map, place) + map->in[i];
            for (int64_t g = 0; g < s->groups; g++) {
                for (int64_t o = 0; o < s->oc / s->groups; o++) {
                    *weights++ = at[map->group[g] + map->out[o]];
                }
            }
        }
    }
}

/* The position in Keras's order is taken apart once for each run of outputs of a group. */
void bwi_conv_unpack(const bwi_conv *conv, const float *packed, int64_t first, int64_t count, float *weights)
{
    const bwi_conv_shape *s = &conv->shape;
    const bwi_weights_map *map = &conv->form->packed;
    int64_t ic = s->ic / s->groups, oc = s->oc / s->groups;
    for (int64_t done = 0; done < count;) {
        int64_t o = (first + done) % oc, row = (first + done) / oc, g = row % s->groups, at = row / s->groups;
        int64_t i = at % ic;
        int64_t run = oc - o < count - done ? oc - o : count - done;
        const float *from = packed + place_offset(s, map, at / ic) + map->in[i] + map->group[g];
        for (int64_t k = 0; k < run; k++) {
            weights[done + k] = from[map->out[o + k]];
        }
        done += run;
    }
}

enum { SIDE = 16 };

/* Transposes four rows of four floats; rows are SIDE floats apart in `from` and `to`. */
static void transpose_four(const float *from, float *to)
{
    typedef float four __attribute__((vector_size(16)));
    four row[4], half[4];
    for (int i = 0; i < 4; i++) {
        memcpy(&row[i], from + i * SIDE, sizeof row[i]);
    }
    half[0] = __builtin_shufflevector(row[0], row[1], 0, 4, 1, 5);
    half[1] = __builtin_shufflevector(row[2], row[3], 0, 4, 1, 5);
    half[2] = __builtin_shufflevector(row[0], row[1], 2, 6, 3, 7);
    half[3] = __builtin_shufflevector(row[2], row[3], 2, 6, 3, 7);
    row[0] = __builtin_shufflevector(half[0], half[1], 0, 1, 4, 5);
    row[1] = __builtin_shufflevector(half[0], half[1], 2, 3, 6, 7);
    row[2] = __builtin_shufflevector(half[2], half[3], 0, 1, 4, 5);
    row[3] = __builtin_shufflevector(half[2], half[3], 2, 3, 6, 7);
    for (int i = 0; i < 4; i++) {
        memcpy(to + i * SIDE, &row[i], sizeof row[i]);
    }
}

/* Whether the entries first ... first + SIDE - 1 rise by `step`. */
static bool rises_by(const int64_t *table, int64_t first, int64_t step)
{
    for (int64_t k = first; k < first + SIDE - 1; k++) {
        if (table[k + 1] - table[k] != step) {
            return false;
        }
    }
    return true;
}

/* Moves one square of at most SIDE x SIDE channels, which both layouts usually keep together. Whole squares of AVX-512's layouts
 * are each other's transpose. */
static void move_square(const bwi_weights_map *from, const float *x, const bwi_weights_map *to, float *y, int64_t o0, int64_t o1,
                        int64_t i0, int64_t i1, bool transpose)
{
    if (transpose) {
        for (int o = 0; o < SIDE; o += 4) {
            for (int i = 0; i < SIDE; i += 4) {
                transpose_four(x + from->out[o0] + from->in[i0] + i * SIDE + o, y + to->out[o0] + to->in[i0] + o * SIDE + i);
            }
        }
        return;
    }
    for (int64_t o = o0; o < o1; o++) {
        const float *source = x + from->out[o];
        float *target = y + to->out[o];
        for (int64_t i = i0; i < i1; i++) {
            target[to->in[i]] = source[from->in[i]];
        }
    }
}

/* Moves the weights square by square, since a square lies in a few cache lines on both sides. Squares that are transposed are
 * moved by vectors. */
void bwi_conv_reorder_backward(const bwi_conv *conv, const float *packed, float *backward)
{
    const bwi_conv_shape *s = &conv->shape;
    const bwi_weights_map *from = &conv->form->packed, *to = &conv->form->backward;
    if (!to->floats) {
        return;
    }
    int64_t out = s->oc / s->groups, in = s->ic / s->groups;
    clear_padding(s, to, backward);
    for (int64_t o = 0; o < out; o += SIDE) {
        for (int64_t i = 0; i < in; i += SIDE) {
            bool transpose = o + SIDE <= out && i + SIDE <= in && rises_by(from->out, o, 1) && rises_by(from->in, i, SIDE) &&
                             rises_by(to->out, o, SIDE) && rises_by(to->in, i, 1);
            for (int64_t g = 0; g < s->groups; g++) {
                for (int64_t k = 0; k < bwi_conv_places(s); k++) {
                    move_square(from, packed + from->group[g] + place_offset(s, from, k), to,
                                backward + to->group[g] + place_offset(s, to, k), o, o + SIDE < out ? o + SIDE : out, i,
                                i + SIDE < in ? i + SIDE : in, transpose);
                }
            }
        }
    }
}
