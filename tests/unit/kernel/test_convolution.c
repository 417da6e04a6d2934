/*
 * All passes of a convolution against plain loops in double, over many shapes. The instruction set is that of
 * $BATCHWISE_ISA: oneDNN takes one for each process, so the build runs this program once for each.
 * With $BATCHWISE_SHOW set it prints what was chosen for each shape.
 *
 * Buffers hold NaN before a pass and end in a guard: what a pass must write, or must not touch, shows.
 */
#include "kernel/internal.h"

#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* test_direct.c includes this file to test the other implementation. */
#ifdef TEST_DIRECT
#define TESTED bwi_convolution_direct
#else
#define TESTED bwi_convolution_onednn
/* oneDNN's; empties its cache of compiled primitives so that a leak check sees only what is lost. */
int dnnl_set_primitive_cache_capacity(int capacity);
#endif

enum { VALID, SAME };
enum { GUARD = 64 };

typedef struct buffer {
    float *data;
    size_t floats;
} buffer;

static int warnings;

static void count_warning(void *user, bw_log_level level, const char *message)
{
    (void)user;
    (void)message;
    warnings += level == BW_LOG_WARNING;
}

static int open_context(void **state)
{
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.log = count_warning;
    *state = bw_open(&options);
    return *state ? 0 : -1;
}

static int close_context(void **state)
{
    bw_close(*state);
    return 0;
}

static buffer buffer_make(size_t floats)
{
    buffer b = {aligned_alloc(64, ((floats + GUARD) * sizeof(float) + 63) / 64 * 64), floats};
    assert_non_null(b.data);
    for (size_t i = 0; i < floats + GUARD; i++) {
        b.data[i] = i < floats ? NAN : 12345.0F;
    }
    return b;
}

static void buffer_check_and_free(buffer *b)
{
    for (size_t i = b->floats; i < b->floats + GUARD; i++) {
        if (b->data[i] != 12345.0F) {
            fail_msg("written beyond the end");
        }
    }
    free(b->data);
}

static float draw(void)
{
    static uint32_t state = 12345;
    state = state * 1664525U + 1013904223U;
    return (float)(int32_t)(state >> 8) / (float)(1 << 23) - 1.0F;
}

static float *random_floats(int64_t count)
{
    float *values = malloc((size_t)count * sizeof *values);
    assert_non_null(values);
    for (int64_t i = 0; i < count; i++) {
        values[i] = draw();
    }
    return values;
}

/* ---- Shapes ---- */

static void set_extent(int padding, int64_t in, int64_t kernel, int64_t stride, int64_t dilation, int64_t *out, int64_t *before,
                       int64_t *after)
{
    int64_t span = (kernel - 1) * dilation + 1;
    *before = *after = 0;
    if (padding == SAME) { /* Keras: as even as possible, the odd one after */
        *out = (in + stride - 1) / stride;
        int64_t pads = (*out - 1) * stride + span - in;
        pads = pads > 0 ? pads : 0;
        *before = pads / 2;
        *after = pads - pads / 2;
    } else {
        *out = (in - span) / stride + 1;
    }
}

static bwi_conv_shape make_shape(int64_t n, int64_t h, int64_t w, int64_t ic, int64_t oc, int64_t kh, int64_t kw, int64_t stride,
                                 int64_t dilation, int padding, int64_t groups, bool bias)
{
    bwi_conv_shape s = {.n = n,
                        .ih = h,
                        .iw = w,
                        .ic = ic,
                        .oc = oc,
                        .kh = kh,
                        .kw = kw,
                        .stride_h = stride,
                        .stride_w = stride,
                        .dilation_h = dilation,
                        .dilation_w = dilation,
                        .groups = groups,
                        .with_bias = bias};
    set_extent(padding, h, kh, stride, dilation, &s.oh, &s.pad_top, &s.pad_bottom);
    set_extent(padding, w, kw, stride, dilation, &s.ow, &s.pad_left, &s.pad_right);
    return s;
}

static const char *shape_text(const bwi_conv_shape *s)
{
    static char text[256];
    snprintf(text, sizeof text, "n%d %dx%dx%d -> %dx%dx%d kernel %dx%d stride %d dilation %d pads %d,%d,%d,%d groups %d bias %d",
             (int)s->n, (int)s->ih, (int)s->iw, (int)s->ic, (int)s->oh, (int)s->ow, (int)s->oc, (int)s->kh, (int)s->kw,
             (int)s->stride_h, (int)s->dilation_h, (int)s->pad_top, (int)s->pad_left, (int)s->pad_bottom, (int)s->pad_right,
             (int)s->groups, s->with_bias);
    return text;
}

/* ---- The plain version: channels-last, Keras's kernel. Sums in double; `size` gets the sums of magnitudes. ---- */

typedef struct plain {
    double *y, *dx, *dw, *db;
    double *y_size, *dx_size, *dw_size, *db_size;
} plain;

static double *doubles(int64_t count)
{
    double *values = calloc((size_t)count, sizeof *values);
    assert_non_null(values);
    return values;
}

static void plain_term(const bwi_conv_shape *s, plain *p, const float *x, const float *w, const float *dy, int64_t xi, int64_t yi,
                       int64_t k, int64_t o)
{
    int64_t group = o / (s->oc / s->groups), in = s->ic / s->groups;
    for (int64_t i = 0; i < in; i++) {
        int64_t a = xi * s->ic + group * in + i, b = (k * in + i) * s->oc + o;
        double forward = (double)x[a] * (double)w[b], data = (double)dy[yi] * (double)w[b], weights = (double)dy[yi] * (double)x[a];
        p->y[yi] += forward;
        p->y_size[yi] += fabs(forward);
        p->dx[a] += data;
        p->dx_size[a] += fabs(data);
        p->dw[b] += weights;
        p->dw_size[b] += fabs(weights);
    }
}

static void plain_output(const bwi_conv_shape *s, plain *p, const float *x, const float *w, const float *bias, const float *dy,
                         int64_t n, int64_t oy, int64_t ox, int64_t o)
{
    int64_t yi = ((n * s->oh + oy) * s->ow + ox) * s->oc + o;
    if (s->with_bias) {
        p->y[yi] += (double)bias[o];
        p->y_size[yi] += fabs((double)bias[o]);
        p->db[o] += (double)dy[yi];
        p->db_size[o] += fabs((double)dy[yi]);
    }
    for (int64_t k = 0; k < s->kh * s->kw; k++) {
        int64_t iy = oy * s->stride_h - s->pad_top + k / s->kw * s->dilation_h;
        int64_t ix = ox * s->stride_w - s->pad_left + k % s->kw * s->dilation_w;
        if (iy >= 0 && iy < s->ih && ix >= 0 && ix < s->iw) {
            plain_term(s, p, x, w, dy, (n * s->ih + iy) * s->iw + ix, yi, k, o);
        }
    }
}

/* ---- Between channels-last and blocks ---- */

static size_t blocked_index(const bwi_image *m, int64_t n, int64_t y, int64_t x, int64_t c)
{
    return (size_t)((((n * bwi_image_blocks(m) + c / m->block) * m->h + y) * m->w + x) * m->block + c % m->block);
}

static void to_blocks(const bwi_image *m, const float *plain_values, float *blocked)
{
    memset(blocked, 0, (size_t)bwi_image_floats(m) * sizeof(float));
    for (int64_t n = 0; n < m->n; n++) {
        for (int64_t y = 0; y < m->h; y++) {
            for (int64_t x = 0; x < m->w; x++) {
                for (int64_t c = 0; c < m->c; c++) {
                    blocked[blocked_index(m, n, y, x, c)] = *plain_values++;
                }
            }
        }
    }
}

static void check_value(const bwi_conv_shape *s, const char *what, float found, double expected, double size)
{
    if (!(fabs((double)found - expected) <= 4e-6 * size + 1e-30)) {
        fail_msg("%s of %s: %.9g instead of %.9g", what, shape_text(s), (double)found, expected);
    }
}

static void check_image(const bwi_conv_shape *s, const char *what, const bwi_image *m, const float *blocked, const double *expected,
                        const double *size)
{
    int64_t i = 0;
    for (int64_t n = 0; n < m->n; n++) {
        for (int64_t y = 0; y < m->h; y++) {
            for (int64_t x = 0; x < m->w; x++) {
                for (int64_t c = 0; c < bwi_image_blocks(m) * m->block; c++) {
                    float found = blocked[blocked_index(m, n, y, x, c)];
                    if (c >= m->c && found != 0.0F) {
                        fail_msg("%s of %s: channel %d, padding, is %.9g", what, shape_text(s), (int)c, (double)found);
                    }
                    if (c < m->c) {
                        check_value(s, what, found, expected[i], size[i]);
                        i++;
                    }
                }
            }
        }
    }
}

/* ---- Running a pass twice: equal bits ---- */

static void run_twice(bw_context *ctx, const bwi_conv *conv, bwi_conv_pass pass, bwi_conv_memory memory, buffer *result,
                      buffer *bias)
{
    buffer scratch = buffer_make((TESTED.facts(conv)->scratch_bytes + 3) / sizeof(float));
    float *first = malloc(result->floats * sizeof(float));
    assert_non_null(first);
    memory.scratch = scratch.data;
    bwi_conv_run *run;
    if (TESTED.bind(ctx, &run, conv, pass, &memory) != BW_OK) {
        fail_msg("%s", bw_message(ctx));
    }
    int setting = TESTED.begin();
    for (int time = 0; time < 2; time++) {
        memset(scratch.data, 0xff, scratch.floats * sizeof(float));
        memset(result->data, 0xff, result->floats * sizeof(float));
        if (bias) {
            memset(bias->data, 0xff, bias->floats * sizeof(float));
        }
        assert_int_equal(TESTED.execute(run), BW_OK);
        if (time == 0) {
            memcpy(first, result->data, result->floats * sizeof(float));
        }
    }
    TESTED.end(setting);
    assert_memory_equal(first, result->data, result->floats * sizeof(float));
    TESTED.unbind(run);
    free(first);
    buffer_check_and_free(&scratch);
}

/* ---- One shape, all passes ---- */

typedef struct trial {
    bwi_conv_shape s;
    const bwi_conv *conv;
    bwi_image src, dst;
    float *x, *w, *bias, *dy; /* plain */
    plain p;
} trial;

static trial trial_make(const bwi_conv_shape *s, const bwi_conv *conv)
{
    const bwi_conv_facts *f = TESTED.facts(conv);
    int64_t x = s->n * s->ih * s->iw * s->ic, y = s->n * s->oh * s->ow * s->oc, w = s->kh * s->kw * (s->ic / s->groups) * s->oc;
    trial t = {.s = *s,
               .conv = conv,
               .src = {s->n, s->ih, s->iw, s->ic, f->src_block},
               .dst = {s->n, s->oh, s->ow, s->oc, f->dst_block},
               .x = random_floats(x),
               .w = random_floats(w),
               .bias = random_floats(s->oc),
               .dy = random_floats(y),
               .p = {doubles(y), doubles(x), doubles(w), doubles(s->oc), doubles(y), doubles(x), doubles(w), doubles(s->oc)}};
    for (int64_t n = 0; n < s->n; n++) {
        for (int64_t oy = 0; oy < s->oh; oy++) {
            for (int64_t ox = 0; ox < s->ow; ox++) {
                for (int64_t o = 0; o < s->oc; o++) {
                    plain_output(s, &t.p, t.x, t.w, t.bias, t.dy, n, oy, ox, o);
                }
            }
        }
    }
    return t;
}

static void trial_free(trial *t)
{
    void *parts[] = {t->x,    t->w,    t->bias,     t->dy,        t->p.y,       t->p.dx,
                     t->p.dw, t->p.db, t->p.y_size, t->p.dx_size, t->p.dw_size, t->p.db_size};
    for (size_t k = 0; k < BWI_COUNT(parts); k++) {
        free(parts[k]);
    }
}

static void try_forward(bw_context *ctx, const trial *t, const buffer *packed)
{
    buffer src = buffer_make((size_t)bwi_image_floats(&t->src)), dst = buffer_make((size_t)bwi_image_floats(&t->dst));
    to_blocks(&t->src, t->x, src.data);
    bwi_conv_memory memory = {.src = src.data, .dst = dst.data, .weights = packed->data, .bias = t->s.with_bias ? t->bias : NULL};
    run_twice(ctx, t->conv, BWI_CONV_FORWARD, memory, &dst, NULL);
    check_image(&t->s, "forward", &t->dst, dst.data, t->p.y, t->p.y_size);
    buffer_check_and_free(&src);
    buffer_check_and_free(&dst);
}

static void try_backward_data(bw_context *ctx, const trial *t, const buffer *packed)
{
    int64_t own = TESTED.facts(t->conv)->backward_weights_floats;
    buffer src = buffer_make((size_t)bwi_image_floats(&t->src)), dst = buffer_make((size_t)bwi_image_floats(&t->dst));
    buffer weights = buffer_make((size_t)own);
    to_blocks(&t->dst, t->dy, dst.data);
    TESTED.reorder_backward(t->conv, packed->data, weights.data);
    bwi_conv_memory memory = {.src = src.data, .dst = dst.data, .weights = own ? weights.data : packed->data};
    if (TESTED.facts(t->conv)->data_squares) {
        const bwi_conv_shape *s = &t->s;
        bwi_depthwise k = {{s->kh, s->kw, s->stride_h, s->stride_w, s->pad_top, s->pad_left}, s->dilation_h, s->dilation_w};
        bwi_kernels_of(ctx)->conv_data(&t->src, &t->dst, &k, dst.data, packed->data, src.data);
    } else {
        run_twice(ctx, t->conv, BWI_CONV_BACKWARD_DATA, memory, &src, NULL);
    }
    check_image(&t->s, "backward data", &t->src, src.data, t->p.dx, t->p.dx_size);
    buffer_check_and_free(&src);
    buffer_check_and_free(&dst);
    buffer_check_and_free(&weights);
}

/* What oneDNN leaves to the kernels by hand. */
static void run_squares(bw_context *ctx, const trial *t, const bwi_conv_memory *memory)
{
    const bwi_conv_shape *s = &t->s;
    const bwi_kernels *kernels = bwi_kernels_of(ctx);
    bwi_depthwise k = {{s->kh, s->kw, s->stride_h, s->stride_w, s->pad_top, s->pad_left}, s->dilation_h, s->dilation_w};
    kernels->conv_weights(&t->src, &t->dst, &k, memory->src, memory->dst, memory->weights, false);
    if (s->with_bias) {
        kernels->conv_bias(&t->dst, memory->dst, memory->bias, false);
    }
}

static void try_backward_weights(bw_context *ctx, const trial *t)
{
    int64_t count = t->s.kh * t->s.kw * (t->s.ic / t->s.groups) * t->s.oc;
    buffer src = buffer_make((size_t)bwi_image_floats(&t->src)), dst = buffer_make((size_t)bwi_image_floats(&t->dst));
    buffer weights = buffer_make((size_t)TESTED.facts(t->conv)->weights_floats), bias = buffer_make((size_t)t->s.oc);
    buffer unpacked = buffer_make((size_t)count);
    to_blocks(&t->src, t->x, src.data);
    to_blocks(&t->dst, t->dy, dst.data);
    bwi_conv_memory memory = {.src = src.data, .dst = dst.data, .weights = weights.data, .bias = t->s.with_bias ? bias.data : NULL};
    if (TESTED.facts(t->conv)->squares) {
        run_squares(ctx, t, &memory);
    } else {
        run_twice(ctx, t->conv, BWI_CONV_BACKWARD_WEIGHTS, memory, &weights, &bias);
    }
    TESTED.unpack(t->conv, weights.data, 0, count, unpacked.data);
    for (int64_t i = 0; i < count; i++) {
        check_value(&t->s, "backward weights", unpacked.data[i], t->p.dw[i], t->p.dw_size[i]);
    }
    for (int64_t i = 0; i < t->s.oc && t->s.with_bias; i++) {
        check_value(&t->s, "backward bias", bias.data[i], t->p.db[i], t->p.db_size[i]);
    }
    /* The padding is zero, since optimizers and norms run over all of it: packing what was unpacked gives the same. */
    buffer again = buffer_make(weights.floats);
    TESTED.pack(t->conv, unpacked.data, again.data);
    for (size_t i = 0; i < weights.floats; i++) {
        if (weights.data[i] != again.data[i]) {
            fail_msg("backward weights of %s: padding not zero", shape_text(&t->s));
        }
    }
    buffer *all[] = {&src, &dst, &weights, &bias, &unpacked, &again};
    for (size_t k = 0; k < BWI_COUNT(all); k++) {
        buffer_check_and_free(all[k]);
    }
}

static void try_packing(const trial *t, buffer *packed)
{
    size_t count = (size_t)(t->s.kh * t->s.kw * (t->s.ic / t->s.groups) * t->s.oc);
    buffer back = buffer_make(count);
    TESTED.pack(t->conv, t->w, packed->data);
    TESTED.restore(t->conv, packed->data, back.data);
    assert_memory_equal(back.data, t->w, count * sizeof(float));
    memset(back.data, 0, count * sizeof(float));
    for (size_t first = 0, size = 1; first < count; first += size, size = 3 * size + 1) { /* in pieces of any size */
        size = size < count - first ? size : count - first;
        TESTED.unpack(t->conv, packed->data, (int64_t)first, (int64_t)size, back.data + first);
    }
    assert_memory_equal(back.data, t->w, count * sizeof(float));
    size_t zeros = 0;
    for (size_t i = 0; i < packed->floats; i++) {
        zeros += packed->data[i] == 0.0F;
    }
    assert_true(packed->floats >= count && zeros >= packed->floats - count);
    buffer_check_and_free(&back);
}

static void check_facts(const bwi_conv_shape *s, const bwi_conv_facts *f, int warned, bool all)
{
    bool reference = false;
    if (getenv("BATCHWISE_SHOW")) {
        printf("%s: blocks %d %d, weights %d %d, scratch %d: %s | %s | %s\n", shape_text(s), (int)f->src_block, (int)f->dst_block,
               (int)f->weights_floats, (int)f->backward_weights_floats, (int)f->scratch_bytes, f->implementation[0],
               f->implementation[1], f->implementation[2]);
    }
    for (int p = 0; p < (all ? 3 : 1); p++) {
        assert_non_null(f->implementation[p]);
        reference = reference || strstr(f->implementation[p], "ref:") == f->implementation[p];
    }
    assert_int_equal(warned > 0, reference);
    assert_true(f->src_block == 1 || f->src_block == 8 || f->src_block == 16 || f->src_block == s->ic);
    assert_true(f->dst_block == 1 || f->dst_block == 8 || f->dst_block == 16 || f->dst_block == s->oc);
}

/* Makes it, tries all passes, and gives it back for use as `like`. */
static bwi_conv *try_shape(bw_context *ctx, const bwi_conv_shape *s, const bwi_conv *like)
{
    bwi_conv *conv;
    warnings = 0;
    if (TESTED.create(ctx, &conv, s, like, true, true) != BW_OK) {
        fail_msg("%s: %s", shape_text(s), bw_message(ctx));
    }
    check_facts(s, TESTED.facts(conv), warnings, true);
    trial t = trial_make(s, conv);
    buffer packed = buffer_make((size_t)TESTED.facts(conv)->weights_floats);
    try_packing(&t, &packed);
    try_forward(ctx, &t, &packed);
    try_backward_data(ctx, &t, &packed);
    try_backward_weights(ctx, &t);
    buffer_check_and_free(&packed);
    trial_free(&t);
    return conv;
}

static void try_and_free(bw_context *ctx, bwi_conv_shape s)
{
    TESTED.release(try_shape(ctx, &s, NULL));
}

/* ---- Tests ---- */

static void test_channels(void **state)
{
    static const int64_t channels[] = {1, 2, 3, 5, 8, 16, 17, 32};
    static const int64_t samples[] = {1, 2, 3, 8};
    int k = 0;
    for (size_t i = 0; i < BWI_COUNT(channels); i++) {
        for (size_t o = 0; o < BWI_COUNT(channels); o++, k++) {
            try_and_free(*state, make_shape(samples[k % 4], 9, 7, channels[i], channels[o], 3, 3, 1, 1, k % 3 == 0 ? SAME : VALID,
                                            1, k % 5 != 0));
        }
    }
}

static void test_kernels_strides_paddings(void **state)
{
    static const int64_t kernels[][2] = {{1, 1}, {3, 3}, {2, 2}, {5, 5}, {1, 3}, {4, 2}, {7, 7}};
    static const int64_t channels[][2] = {{1, 32}, {3, 16}, {16, 8}, {5, 17}, {32, 32}};
    int k = 0;
    for (size_t w = 0; w < BWI_COUNT(kernels); w++) {
        for (int64_t stride = 1; stride <= 3; stride++) {
            for (int padding = VALID; padding <= SAME; padding++, k++) {
                try_and_free(*state, make_shape(1 + k % 2, 14, 11, channels[k % 5][0], channels[k % 5][1], kernels[w][0],
                                                kernels[w][1], stride, 1, padding, 1, k % 4 != 0));
            }
        }
    }
}

static void test_tutorial_shapes(void **state)
{
    try_and_free(*state, make_shape(8, 28, 28, 1, 32, 3, 3, 1, 1, VALID, 1, true));
    try_and_free(*state, make_shape(2, 13, 13, 32, 64, 3, 3, 1, 1, VALID, 1, true));
    try_and_free(*state, make_shape(1, 32, 32, 3, 32, 3, 3, 1, 1, SAME, 1, true));
    try_and_free(*state, make_shape(1, 31, 31, 3, 64, 7, 7, 2, 1, SAME, 1, false));
    try_and_free(*state, make_shape(4, 1, 1, 32, 32, 1, 1, 1, 1, VALID, 1, true));
    try_and_free(*state, make_shape(3, 1, 17, 5, 8, 1, 3, 1, 1, SAME, 1, true));
}

/* Weights that outweigh the images: the kernels by hand take both backward passes, with AVX-512 and with AVX2. */
static void test_few_pixels(void **state)
{
    const bwi_conv_shape shapes[] = {make_shape(3, 2, 2, 96, 112, 3, 3, 1, 1, SAME, 1, true),
                                     make_shape(7, 3, 3, 128, 96, 3, 3, 2, 1, SAME, 1, false),
                                     make_shape(5, 1, 1, 256, 272, 1, 1, 1, 1, VALID, 1, true)};
    for (size_t k = 0; k < BWI_COUNT(shapes); k++) {
        bwi_conv *conv = try_shape(*state, &shapes[k], NULL);
        const bwi_conv_facts *f = TESTED.facts(conv);
        if (f->src_block == f->dst_block && (f->src_block == 8 || f->src_block == 16) && f->squares) {
            assert_true(f->data_squares);
            assert_int_equal(f->backward_weights_floats, 0);
        }
        TESTED.release(conv);
    }
}

static void test_dilation(void **state)
{
    static const int64_t channels[][2] = {{1, 8}, {3, 5}, {16, 32}, {32, 17}};
    for (size_t c = 0; c < BWI_COUNT(channels); c++) {
        for (int padding = VALID; padding <= SAME; padding++) {
            try_and_free(*state, make_shape(2, 11, 13, channels[c][0], channels[c][1], 3, 3, 1, 2, padding, 1, padding == SAME));
        }
    }
}

static void test_groups(void **state)
{
    static const int64_t channels[][3] = {{2, 2, 2}, {8, 16, 2}, {6, 4, 2}, {32, 32, 2}, {34, 34, 2}, {48, 32, 16}, {12, 9, 3}};
    for (size_t c = 0; c < BWI_COUNT(channels); c++) {
        for (int padding = VALID; padding <= SAME; padding++) {
            try_and_free(*state, make_shape(2, 9, 7, channels[c][0], channels[c][1], 3, 3, 1 + padding, 1, padding, channels[c][2],
                                            padding == VALID));
        }
    }
}

static void test_depthwise(void **state)
{
    static const int64_t channels[] = {2, 3, 8, 16, 17, 32};
    for (size_t c = 0; c < BWI_COUNT(channels); c++) {
        for (int64_t multiplier = 1; multiplier <= 2; multiplier++) {
            try_and_free(*state, make_shape(2, 9, 7, channels[c], channels[c] * multiplier, 3, 3, 1 + (int64_t)c % 2, 1, SAME,
                                            channels[c], c % 2 == 0));
        }
    }
}

/* A layer's smaller tiles: the same layouts, so that they share weights and buffers. */
static void test_like(void **state)
{
    const bwi_conv_shape shapes[] = {
        make_shape(8, 12, 10, 1, 32, 3, 3, 1, 1, VALID, 1, true), make_shape(8, 9, 9, 17, 5, 3, 3, 2, 1, SAME, 1, true),
        make_shape(8, 9, 7, 32, 16, 1, 1, 1, 1, VALID, 1, false), make_shape(8, 9, 9, 16, 16, 3, 3, 1, 1, SAME, 16, true),
        make_shape(8, 11, 9, 16, 16, 3, 3, 1, 2, SAME, 2, true),  make_shape(8, 1, 1, 16, 32, 1, 1, 1, 1, VALID, 1, true),
        make_shape(8, 16, 16, 3, 8, 5, 5, 2, 1, SAME, 1, true),
    };
    for (size_t k = 0; k < BWI_COUNT(shapes); k++) {
        bwi_conv *whole = try_shape(*state, &shapes[k], NULL);
        const bwi_conv_facts *a = TESTED.facts(whole);
        for (int64_t n = 4; n >= 1; n--) {
            bwi_conv_shape smaller = shapes[k];
            smaller.n = n;
            bwi_conv *part = try_shape(*state, &smaller, whole);
            const bwi_conv_facts *b = TESTED.facts(part);
            assert_int_equal(a->src_block, b->src_block);
            assert_int_equal(a->dst_block, b->dst_block);
            assert_int_equal(a->weights_floats, b->weights_floats);
            assert_int_equal(a->backward_weights_floats, b->backward_weights_floats);
            trial t = trial_make(&smaller, part);
            buffer one = buffer_make((size_t)a->weights_floats), two = buffer_make((size_t)a->weights_floats);
            TESTED.pack(whole, t.w, one.data);
            TESTED.pack(part, t.w, two.data);
            assert_memory_equal(one.data, two.data, one.floats * sizeof(float));
            buffer_check_and_free(&one);
            buffer_check_and_free(&two);
            trial_free(&t);
            TESTED.release(part);
        }
        TESTED.release(whole);
    }
}

/* Layouts that other conditions would not choose: the result is right all the same. */
static void test_like_another_shape(void **state)
{
    bwi_conv_shape first = make_shape(2, 9, 7, 32, 32, 3, 3, 1, 1, VALID, 1, true);
    bwi_conv_shape second = make_shape(2, 9, 7, 32, 32, 3, 3, 3, 2, SAME, 1, true);
    bwi_conv *a = try_shape(*state, &first, NULL), *b = try_shape(*state, &second, a);
    assert_int_equal(TESTED.facts(a)->src_block, TESTED.facts(b)->src_block);
    TESTED.release(b);
    TESTED.release(a);
}

static void test_only_what_was_asked_for(void **state)
{
    bwi_conv_shape s = make_shape(2, 9, 7, 3, 8, 3, 3, 1, 1, VALID, 1, true);
    float memory[64];
    bwi_conv_memory m = {memory, memory, memory, memory, memory};
    for (int backward = 0; backward <= 1; backward++) {
        bwi_conv *conv;
        bwi_conv_run *run;
        warnings = 0;
        assert_int_equal(TESTED.create(*state, &conv, &s, NULL, backward, false), BW_OK);
        const bwi_conv_facts *f = TESTED.facts(conv);
        check_facts(&s, f, warnings, false);
        assert_null(f->implementation[BWI_CONV_BACKWARD_DATA]);
        assert_int_equal(f->backward_weights_floats, 0);
        assert_int_equal(!!f->implementation[BWI_CONV_BACKWARD_WEIGHTS], backward);
        assert_int_equal(TESTED.bind(*state, &run, conv, BWI_CONV_BACKWARD_DATA, &m), BW_INTERNAL);
        assert_null(run);
        m.src = NULL;
        assert_int_equal(TESTED.bind(*state, &run, conv, BWI_CONV_FORWARD, &m), BW_INTERNAL);
        m.src = memory;
        TESTED.release(conv);
    }
}

static void test_refuses(void **state)
{
    bwi_conv *conv = NULL;
    bwi_conv_shape good = make_shape(2, 9, 7, 4, 8, 3, 3, 1, 1, VALID, 1, true), bad = good;
    bad.oh++;
    assert_int_equal(TESTED.create(*state, &conv, &bad, NULL, true, true), BW_INVALID_ARGUMENT);
    assert_non_null(strstr(bw_message(*state), "(9, 7, 4) to (8, 5, 8)"));
    assert_null(conv);
    bad = good;
    bad.groups = 3;
    assert_int_equal(TESTED.create(*state, &conv, &bad, NULL, true, true), BW_INVALID_ARGUMENT);
    bad = good;
    bad.dilation_w = 0;
    assert_int_equal(TESTED.create(*state, &conv, &bad, NULL, true, true), BW_INVALID_ARGUMENT);
    bad = make_shape(INT32_MAX, INT32_MAX, INT32_MAX, 4, 8, 1, 1, 1, 1, VALID, 1, true);
    assert_int_equal(TESTED.create(*state, &conv, &bad, NULL, true, true), BW_RESOURCE_EXHAUSTED);
}

#ifndef TEST_DIRECT
/* OpenMP's threads are the caller's affair outside begin and end. */
int omp_get_max_threads(void);
void omp_set_num_threads(int threads);

static void test_threads_are_given_back(void **state)
{
    (void)state;
    omp_set_num_threads(3);
    int setting = TESTED.begin();
    assert_int_equal(omp_get_max_threads(), 1);
    TESTED.end(setting);
    assert_int_equal(omp_get_max_threads(), 3);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_channels),
        cmocka_unit_test(test_kernels_strides_paddings),
        cmocka_unit_test(test_tutorial_shapes),
        cmocka_unit_test(test_few_pixels),
        cmocka_unit_test(test_dilation),
        cmocka_unit_test(test_groups),
        cmocka_unit_test(test_depthwise),
        cmocka_unit_test(test_like),
        cmocka_unit_test(test_like_another_shape),
        cmocka_unit_test(test_only_what_was_asked_for),
        cmocka_unit_test(test_refuses),
#ifndef TEST_DIRECT
        cmocka_unit_test(test_threads_are_given_back),
#endif
    };
#ifndef TEST_DIRECT
    bwi_onednn_limit(getenv("BATCHWISE_ISA"));
#endif
    int failures = cmocka_run_group_tests(tests, open_context, close_context);
#ifndef TEST_DIRECT
    dnnl_set_primitive_cache_capacity(0);
#endif
    return failures;
}
