/*
 * ops [limits]: what this machine can do, and single kernels beside it: the fast kernels, the reference that tests
 * compare them with, and oneDNN alone (a convolution without ReLU and pooling; a dense layer as a 1x1 convolution). One
 * thread; the best of many runs counts, since anything else that runs only adds time.
 *
 * limits: only the machine's, as "peak-core peak-all bandwidth-core bandwidth-all", in GFLOP/s and GB/s.
 *
 * Ends with 1 if oneDNN has nothing but its reference for one of the shapes.
 */
#include "kernel/internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const double enough = 0.02; /* seconds for one measurement */

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

typedef void (*work)(void *user);

/* The shortest of several runs, in seconds. */
static double best_of(work run, void *user)
{
    double best = 1e9, begin = now();
    for (int k = 0; k < 3 || (now() - begin < enough && k < 10000); k++) {
        double t = now();
        run(user);
        t = now() - t;
        best = t < best ? t : best;
    }
    return best;
}

static void *room(size_t bytes)
{
    void *p = aligned_alloc(64, (bytes + 127) / 64 * 64);
    if (!p) {
        fputs("bench/ops: no memory\n", stderr);
        exit(1);
    }
    memset(p, 0, bytes);
    return p;
}

static float *numbers(int64_t count)
{
    static uint32_t state = 1;
    float *x = room((size_t)count * sizeof *x);
    for (int64_t i = 0; i < count; i++) {
        state = state * 1664525 + 1013904223;
        x[i] = (float)(int32_t)state * 0x1p-32f;
    }
    return x;
}

/* ---- Rows ---- */

static double peak_of_core;

/* Seconds; 0: none. */
static void print_row(const char *what, double flops, double fast, double reference, double onednn)
{
    char share[32] = "", other[32] = "";
    if (flops > 0) {
        snprintf(share, sizeof share, "%.0f%%", 100 * flops / fast / peak_of_core * 1e-9);
    }
    if (onednn > 0) {
        snprintf(other, sizeof other, "%.1f", onednn * 1e6);
    }
    printf("%-44s %10.1f %9.1f %7s %12.1f %12s\n", what, fast * 1e6, flops / fast * 1e-9, share, reference * 1e6, other);
    fflush(stdout);
}

/* ---- Convolutions with ReLU and pooling ---- */

typedef struct conv {
    const bwi_kernels *kernels;
    bwi_conv_pool k;
    bool winograd, thin;
    float *x, *y, *dy, *dx, *keras_order, *bias, *weights, *thin_weights, *gradient, *db;
    void *masks, *scratch;
} conv;

static void conv_open(conv *c, const bwi_kernels *kernels, int64_t n, int64_t side, int64_t channels, int64_t filters)
{
    bwi_conv_pool *k = &c->k;
    *c = (conv){.kernels = kernels};
    *k = (bwi_conv_pool){.x = {n, side, side, channels, channels}, .kh = 3, .kw = 3};
    k->y = (bwi_image){n, (side - 2) / 2, (side - 2) / 2, filters, kernels->block};
    c->winograd = !kernels->packing->conv_pool->fits(k);
    c->thin = kernels->packing->thin->fits(k);
    k->x.block = c->winograd ? kernels->block : channels;
    int64_t taps = 9 * channels * filters;
    c->x = numbers(bwi_image_floats(&k->x));
    c->dx = numbers(bwi_image_floats(&k->x));
    c->y = numbers(bwi_image_floats(&k->y));
    c->dy = numbers(bwi_image_floats(&k->y));
    c->keras_order = numbers(taps);
    c->bias = numbers(filters);
    c->gradient = numbers(c->winograd ? taps : kernels->packing->conv_pool->floats(k));
    c->db = numbers(filters);
    c->weights = numbers(c->winograd ? kernels->packing->winograd->floats(k) : kernels->packing->conv_pool->floats(k));
    c->masks = room(kernels->packing->relu_maxpool_mask_bytes(&k->y));
    c->thin_weights = numbers(kernels->packing->thin->floats(k));
    c->scratch = room((c->winograd ? kernels->packing->winograd->scratch_bytes(k) : kernels->packing->conv_pool->scratch_bytes(k)) +
                      kernels->packing->thin->scratch_bytes(k));
    if (c->winograd) {
        kernels->winograd_weights(k, c->keras_order, c->bias, c->weights);
    } else {
        kernels->packing->conv_pool_arrange(k, c->keras_order, c->bias, c->weights);
    }
    if (c->thin) {
        kernels->thin_weights(k, c->weights, c->thin_weights);
    }
}

static void conv_close(conv *c)
{
    float *floats[] = {c->x, c->y, c->dy, c->dx, c->keras_order, c->bias, c->weights, c->thin_weights, c->gradient, c->db};
    for (size_t i = 0; i < BWI_COUNT(floats); i++) {
        free(floats[i]);
    }
    free(c->masks);
    free(c->scratch);
}

static void conv_forward(void *user)
{
    conv *c = user;
    if (c->thin) {
        c->kernels->thin_forward(&c->k, c->x, c->thin_weights, c->y, c->masks, c->scratch);
    } else {
        (c->winograd ? c->kernels->winograd_forward : c->kernels->conv_pool_forward)(&c->k, c->x, c->weights, c->y, c->masks,
                                                                                     c->scratch);
    }
}

static void conv_data(void *user)
{
    conv *c = user;
    if (c->winograd) {
        c->kernels->winograd_backward_data(&c->k, c->dy, c->masks, c->weights, c->dx, c->scratch);
    } else {
        c->kernels->conv_pool_backward_data(&c->k, c->dy, c->masks, c->weights, c->dx);
    }
}

static void conv_weights(void *user)
{
    conv *c = user;
    if (c->winograd) {
        c->kernels->winograd_backward_weights(&c->k, c->x, c->dy, c->masks, c->gradient, c->db, c->scratch);
    } else {
        c->kernels->conv_pool_backward_weights(&c->k, c->x, c->dy, c->masks, c->gradient, c->scratch);
    }
}

/* ---- oneDNN ---- */

static bool only_reference;

static void onednn_run(void *user)
{
    (void)bwi_convolution_onednn.execute(user);
}

/* Seconds of each pass. */
static void time_onednn(bw_context *ctx, const bwi_conv_shape *shape, double seconds[3])
{
    bwi_conv *made = NULL;
    if (bwi_convolution_onednn.create(ctx, &made, shape, NULL, true, true) != BW_OK) {
        fprintf(stderr, "bench/ops: %s\n", bw_message(ctx));
        exit(1);
    }
    const bwi_conv_facts *facts = bwi_convolution_onednn.facts(made);
    bwi_image x = {shape->n, shape->ih, shape->iw, shape->ic, facts->src_block};
    bwi_image y = {shape->n, shape->oh, shape->ow, shape->oc, facts->dst_block};
    int64_t most = facts->weights_floats > facts->backward_weights_floats ? facts->weights_floats : facts->backward_weights_floats;
    bwi_conv_memory memory = {numbers(bwi_image_floats(&x)), numbers(bwi_image_floats(&y)), numbers(most), numbers(shape->oc),
                              room(facts->scratch_bytes)};
    int setting = bwi_onednn_begin();
    for (int pass = 0; pass < 3; pass++) {
        bwi_conv_run *run = NULL;
        only_reference = only_reference || strstr(facts->implementation[pass], "ref");
        if (bwi_convolution_onednn.bind(ctx, &run, made, (bwi_conv_pass)pass, &memory) == BW_OK) {
            seconds[pass] = best_of(onednn_run, run);
        }
        bwi_convolution_onednn.unbind(run);
    }
    bwi_onednn_end(setting);
    free(memory.src);
    free(memory.dst);
    free(memory.weights);
    free(memory.bias);
    free(memory.scratch);
    bwi_convolution_onednn.release(made);
}

static void bench_conv(bw_context *ctx, const bwi_kernels *kernels, int64_t n, int64_t side, int64_t channels, int64_t filters)
{
    static const work passes[3] = {conv_forward, conv_data, conv_weights};
    static const char *const names[3] = {"forward", "data", "weights"};
    double alone[3] = {0}, fast, slow, flops = 18.0 * (double)(n * (side - 2) * (side - 2) * channels * filters);
    bwi_conv_shape shape = {.n = n,
                            .ih = side,
                            .iw = side,
                            .ic = channels,
                            .oh = side - 2,
                            .ow = side - 2,
                            .oc = filters,
                            .kh = 3,
                            .kw = 3,
                            .stride_h = 1,
                            .stride_w = 1,
                            .dilation_h = 1,
                            .dilation_w = 1,
                            .groups = 1,
                            .with_bias = true};
    int64_t small = 8; /* the reference takes its time: of one small image, and as much more as there is more to do */
    double more = (double)(n * (side - 2) * (side - 2)) / (double)((small - 2) * (small - 2));
    conv ours, reference;
    time_onednn(ctx, &shape, alone);
    conv_open(&ours, kernels, n, side, channels, filters);
    conv_open(&reference, &bwi_kernels_reference, 1, small, channels, filters);
    conv_forward(&ours);
    conv_forward(&reference);
    for (int p = 0; p < 3; p++) {
        char what[80];
        if (p == 1 && !ours.winograd) { /* a first layer has none */
            continue;
        }
        snprintf(what, sizeof what, "%lldx %lldx%lldx%lld conv%lld relu pool %s", (long long)n, (long long)side, (long long)side,
                 (long long)channels, (long long)filters, names[p]);
        fast = best_of(passes[p], &ours);
        double t = now();
        passes[p](&reference);
        slow = (now() - t) * more;
        print_row(what, flops, fast, slow, alone[p]);
    }
    conv_close(&ours);
    conv_close(&reference);
}

/* ---- Dense layers ---- */

typedef struct dense {
    const bwi_kernels *kernels;
    int64_t n, in, out;
    float *x, *w, *y;
} dense;

static void dense_forward(void *user)
{
    dense *d = user;
    d->kernels->dense_forward(d->n, d->in, d->out, d->x, d->w, NULL, d->y);
}

static void dense_data(void *user)
{
    dense *d = user;
    d->kernels->dense_backward_data(d->n, d->in, d->out, d->y, d->w, d->x);
}

static void dense_weights(void *user)
{
    dense *d = user;
    d->kernels->dense_backward_weights(d->n, d->in, d->out, d->x, d->y, d->w, NULL, false);
}

static void bench_dense(bw_context *ctx, const bwi_kernels *kernels, int64_t n, int64_t in, int64_t out)
{
    static const work passes[3] = {dense_forward, dense_data, dense_weights};
    static const char *const names[3] = {"forward", "data", "weights"};
    bwi_conv_shape shape = {.n = n,
                            .ih = 1,
                            .iw = 1,
                            .ic = in,
                            .oh = 1,
                            .ow = 1,
                            .oc = out,
                            .kh = 1,
                            .kw = 1,
                            .stride_h = 1,
                            .stride_w = 1,
                            .dilation_h = 1,
                            .dilation_w = 1,
                            .groups = 1};
    dense ours = {kernels, n, in, out, numbers(n * in), numbers(kernels->packing->dense_floats(in, out)), numbers(n * out)},
          reference = ours;
    double alone[3] = {0};
    reference.kernels = &bwi_kernels_reference;
    time_onednn(ctx, &shape, alone);
    for (int p = 0; p < 3; p++) {
        char what[80];
        snprintf(what, sizeof what, "%lldx dense %lld to %lld %s", (long long)n, (long long)in, (long long)out, names[p]);
        double fast = best_of(passes[p], &ours), t = now();
        passes[p](&reference);
        print_row(what, 2.0 * (double)(n * in * out), fast, now() - t, alone[p]);
    }
    free(ours.x);
    free(ours.w);
    free(ours.y);
}

/* ---- Passes over memory ---- */

typedef struct pass {
    const bwi_kernels *kernels;
    int64_t count;
    float *a, *b, *c, *d;
} pass;

static void adam(void *user)
{
    pass *p = user;
    bwi_adam how = {.rate = 1e-3f, .epsilon = 1e-7f, .beta1 = 0.9, .beta2 = 0.999, .scale = 1};
    p->kernels->adam(p->count, &how, p->a, p->b, p->c, p->d);
}

static void relu(void *user)
{
    pass *p = user;
    p->kernels->relu_forward(p->count, p->a, p->b);
}

static void softmax(void *user)
{
    pass *p = user;
    p->kernels->softmax_forward(p->count / 10, 10, p->a, p->b);
}

/* Rows of 256 numbers, or columns of 64 numbers, 256 of them side by side. */
static const int64_t ROW = 256, COLUMN = 64;

static void sum_rows(void *user)
{
    pass *p = user;
    bwi_around around = {p->count / ROW, ROW, 1};
    p->kernels->sum_axis(&around, 1, p->a, p->b);
}

static void sum_columns(void *user)
{
    pass *p = user;
    bwi_around around = {p->count / (COLUMN * ROW), COLUMN, ROW};
    p->kernels->sum_axis(&around, 1, p->a, p->b);
}

static void softmax_columns(void *user)
{
    pass *p = user;
    bwi_around around = {p->count / (COLUMN * ROW), COLUMN, ROW};
    p->kernels->softmax_axis_forward(&around, p->a, p->b);
}

static void softmax_columns_back(void *user)
{
    pass *p = user;
    bwi_around around = {p->count / (COLUMN * ROW), COLUMN, ROW};
    p->kernels->softmax_axis_backward(&around, p->a, p->b, p->c);
}

/* Mean and inverse of the rows lie in d. */
static void layernorm(void *user)
{
    pass *p = user;
    p->kernels->layernorm_forward(p->count / ROW, ROW, 1e-3f, p->a, p->b, p->b, p->d, p->c);
}

static void layernorm_data(void *user)
{
    pass *p = user;
    p->kernels->layernorm_backward(p->count / ROW, ROW, p->a, p->b, p->a, p->d, p->c);
}

static void layernorm_weights(void *user)
{
    pass *p = user;
    bwi_row_gradients to = {.gamma = p->c, .beta = p->c + ROW};
    p->kernels->layernorm_backward_weights(p->count / ROW, ROW, p->a, p->b, p->d, &to);
}

static void bench_pass(const bwi_kernels *kernels, const char *what, int64_t count, work run)
{
    pass ours = {kernels, count, numbers(count), numbers(count), numbers(count), numbers(count)}, reference = ours;
    memset(ours.c, 0, (size_t)count * sizeof(float)); /* squares are not negative */
    reference.kernels = &bwi_kernels_reference;
    double fast = best_of(run, &ours), slow = best_of(run, &reference);
    print_row(what, 0, fast, slow, 0);
    free(ours.a);
    free(ours.b);
    free(ours.c);
    free(ours.d);
}

/* ---- Losses of an autoencoder's output: 256 samples of 784 numbers ---- */

typedef struct losses {
    const bwi_kernels *kernels;
    bwi_loss_kind kind;
    bwi_rows rows;
    float *x, *y, *loss, *dx;
} losses;

static void loss_forward(void *user)
{
    losses *l = user;
    l->kernels->loss->forward(l->kind, 0.5f, &l->rows, l->x, l->y, NULL, l->loss);
}

static void loss_backward(void *user)
{
    losses *l = user;
    l->kernels->loss->backward(l->kind, 0.5f, &l->rows, l->x, l->y, NULL, l->loss, l->dx);
}

static void bench_loss(const bwi_kernels *kernels, const char *name, bwi_loss_kind kind)
{
    int64_t samples = 256, width = 784, count = samples * width;
    losses l = {.kernels = kernels, .kind = kind, .rows = {.samples = samples, .count = 1, .width = width}};
    l.x = numbers(count);
    l.y = numbers(count);
    l.loss = numbers(samples);
    l.dx = numbers(count);
    for (int64_t i = 0; i < count; i++) { /* probabilities */
        l.x[i] = 0.5f + 0.4f * l.x[i];
        l.y[i] = 0.5f + 0.4f * l.y[i];
    }
    char what[80];
    snprintf(what, sizeof what, "256x784 %s", name);
    print_row(what, 0, best_of(loss_forward, &l), 0, 0);
    snprintf(what, sizeof what, "256x784 %s backward", name);
    print_row(what, 0, best_of(loss_backward, &l), 0, 0);
    free(l.x);
    free(l.y);
    free(l.loss);
    free(l.dx);
}

int main(int argc, char **argv)
{
    bw_context *ctx = bw_open(NULL);
    const bwi_kernels *k = ctx ? bwi_kernels_of(ctx) : NULL;
    if (!k) {
        fprintf(stderr, "bench/ops: %s\n", ctx ? bw_message(ctx) : "no memory");
        return 1;
    }
    bw_machine l; /* measured now, not as kept from another time */
    if (bwi_limits_measure(ctx, &l) != BW_OK) {
        fprintf(stderr, "bench/ops: %s\n", bw_message(ctx));
        return 1;
    }
    if (argc > 1 && strcmp(argv[1], "limits") == 0) {
        printf("%.1f %.1f %.1f %.1f\n", l.core_flops * 1e-9, l.flops * 1e-9, l.core_bandwidth * 1e-9, l.bandwidth * 1e-9);
        bw_close(ctx);
        return 0;
    }
    unsigned state = bwi_float_set();
    peak_of_core = l.core_flops * 1e-9;
    printf("%s, %d CPUs: multiply-adds %.0f GFLOP/s on one, %.0f on all; memory %.1f GB/s and %.1f; caches %.0f on one\n\n",
           k->name, l.cores, l.core_flops * 1e-9, l.flops * 1e-9, l.core_bandwidth * 1e-9, l.bandwidth * 1e-9,
           l.cache_bandwidth * 1e-9);
    printf("%-44s %10s %9s %7s %12s %12s\n", "one thread", "us", "GFLOP/s", "of peak", "reference us", "oneDNN us");
    bench_conv(ctx, k, 8, 28, 1, 32);
    bench_conv(ctx, k, 8, 64, 3, 32);
    bench_conv(ctx, k, 2, 128, 3, 32);
    bench_conv(ctx, k, 2, 63, 16, 32);
    bench_conv(ctx, k, 2, 63, 32, 64);
    bench_conv(ctx, k, 8, 18, 64, 128);
    bench_dense(ctx, k, 8, 5408, 10);
    bench_dense(ctx, k, 32, 1024, 1024);
    bench_dense(ctx, k, 128, 100, 32);
    bench_pass(k, "softmax of 1000 rows of 10", 10000, softmax);
    bench_pass(k, "sums of 256 rows of 256", 65536, sum_rows);
    bench_pass(k, "sums of 1024 columns of 64", 65536, sum_columns);
    bench_pass(k, "softmax of 1024 columns of 64", 65536, softmax_columns);
    bench_pass(k, "softmax of 1024 columns of 64, backward", 65536, softmax_columns_back);
    bench_pass(k, "layernorm of 256 rows of 256", 65536, layernorm);
    bench_pass(k, "layernorm of 256 rows of 256, data", 65536, layernorm_data);
    bench_pass(k, "layernorm of 256 rows of 256, weights", 65536, layernorm_weights);
    bench_pass(k, "relu of 100,000", 100000, relu);
    bench_pass(k, "adam on 50,000 parameters", 50000, adam);
    bench_pass(k, "adam on 2,000,000 parameters", 2000000, adam);
    bench_loss(k, "mean squared error", BWI_LOSS_SQUARE);
    bench_loss(k, "mean absolute error", BWI_LOSS_ABSOLUTE);
    bench_loss(k, "huber", BWI_LOSS_HUBER);
    bench_loss(k, "log cosh", BWI_LOSS_LOG_COSH);
    bench_loss(k, "poisson", BWI_LOSS_POISSON);
    bench_loss(k, "binary crossentropy of logits", BWI_LOSS_BINARY_LOGITS);
    bench_loss(k, "binary crossentropy", BWI_LOSS_BINARY);
    bench_loss(k, "categorical crossentropy", BWI_LOSS_CATEGORICAL);
    bench_loss(k, "divergence", BWI_LOSS_DIVERGENCE);
    bwi_float_restore(state);
    bw_close(ctx);
    if (only_reference) {
        fputs("bench/ops: oneDNN has only its reference for one of these shapes\n", stderr);
    }
    return only_reference;
}
