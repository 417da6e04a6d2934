/*
 * Runs whose bits are compared: models of every kind, samples, workers that are delayed at random, ranks as threads.
 */
#ifndef BW_TEST_BITS_H
#define BW_TEST_BITS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "train/internal.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Samples and batch are odd, and the batch is no multiple of the tile: every kind of rest occurs. The thread sanitizer looks
 * for races, which show in one epoch of few samples. */
#if defined(__SANITIZE_THREAD__)
#define THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define THREAD_SANITIZER 1
#endif
#endif
#ifdef THREAD_SANITIZER
enum { SAMPLES = 41, EPOCHS = 1 };
static const int worker_counts[] = {2, 4};
#else
enum { SAMPLES = 77, EPOCHS = 2 };
static const int worker_counts[] = {2, 3, 4, 8};
#endif
enum { BATCH = 29, TILE = 4, SIDE = 10, CHANNELS = 3, CLASSES = 10, PIXELS = SIDE * SIDE * CHANNELS };

typedef struct model_row {
    const char *expression;
    bool whole_batch; /* has a batchnorm */
    int lanes;        /* 0: from the model */
} model_row;

static const model_row models[] = {
    {"conv2d(16,3,relu) maxpool2d(2) flatten dense(10,softmax)", false, 0},
    {"conv2d(16,3,relu,padding=same) maxpool2d(2) conv2d(16,3,relu,padding=same) maxpool2d(2) flatten dense(10,softmax)", false, 0},
    {"conv2d(8,3,relu,padding=same) conv2d(12,3,relu,strides=2) flatten dense(10,softmax)", false, 0},
    {"conv2d(8,3,use_bias=false) batchnorm relu maxpool2d(2) conv2d(8,3) batchnorm relu flatten dense(10,softmax)", true, 0},
    {"flatten dense(64) batchnorm relu dense(10,softmax)", true, 0},
    {"flatten dense(96,relu) dense(33,relu) dense(10,softmax)", false, 0},
    {"a=conv2d(8,3,silu,padding=same) spatial_dropout2d(0.2) conv2d(8,3,padding=same) layernorm add(a) flatten gaussian_noise(0.1) "
     "dense(33,tanh) dropout(0.4) dense(10,softmax)",
     false, 0},
    {"normalization(axis=(1,3)) flatten normalization dense(64,relu) dense(10,softmax)", false, 0},
    {"a=reshape(50,6) multi_head_attention(2,4,dropout=0.2,use_causal_mask=true) add(a) layernorm "
     "bidirectional(gru(5,return_sequences=true)) attention(use_scale=true) global_avgpool1d dense(10,softmax)",
     false, 0},
    {"flatten dense(960,relu) dense(97,relu) dense(10,softmax)", false, 16}, /* by ranges */
};

static float pixels[SAMPLES * PIXELS];
static int32_t labels[SAMPLES];

static inline int make_samples(void **state)
{
    (void)state;
    for (int64_t i = 0; i < SAMPLES * PIXELS; i++) {
        pixels[i] = bwi_random_uniform(bwi_random_at(3, 5, (uint64_t)i).word[0]) - 0.5F;
    }
    for (int s = 0; s < SAMPLES; s++) {
        labels[s] = s * 7 % CLASSES;
        pixels[s * PIXELS + labels[s]] += 1;
    }
    return 0;
}

static inline bw_dataset *samples_of(bw_context *ctx)
{
    bw_array x = {.data = pixels, .dtype = BW_F32, .ndim = 4, .shape = {SAMPLES, SIDE, SIDE, CHANNELS}};
    bw_array y = {.data = labels, .dtype = BW_I32, .ndim = 1, .shape = {SAMPLES}};
    return bw_shuffle(bw_from_arrays(ctx, &x, &y, NULL), 9);
}

/* ---- Delays ---- */

static atomic_uint turns, workers_seen; /* workers_seen: a bit for each */

static inline void delay(int worker)
{
    uint32_t draw = bwi_random_at(1, 2, atomic_fetch_add(&turns, 1)).word[0];
    atomic_fetch_or(&workers_seen, 1U << worker % 32);
    if (draw % 4 == 0) {
        nanosleep(&(struct timespec){.tv_nsec = draw / 4 % 300 * 1000L}, NULL);
    }
}

/* ---- Runs ---- */

typedef struct run {
    const model_row *model;
    int workers, ranks;
    const char *optimizer;
    bw_fit_options options;
    bw_ranks *group;
    int rank;
    /* What came of it. */
    bw_status status;
    char message[256];
    uint64_t hash;
    double loss;
    bw_run_facts facts;
    bw_noise_facts noise;
    float *weights; /* all variables, if wanted */
    size_t weight_count;
} run;

static inline run run_of(const model_row *model)
{
    run r = {.model = model, .workers = 1, .ranks = 1, .optimizer = "adam(lr=0.01)", .options = BW_FIT_OPTIONS_DEFAULT};
    r.options.lanes = model->lanes;
    r.options.epochs = EPOCHS;
    r.options.batch = BATCH;
    r.options.tile = TILE;
    r.options.seed = 4;
    return r;
}

static inline bw_context *open_context(const run *r)
{
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.workers = r->workers;
    options.ranks = r->group;
    options.rank = r->rank;
    return bw_open(&options);
}

static inline void keep_weights(run *r, const bw_model *model)
{
    for (int v = 0; v < bw_variable_count(model); v++) {
        int64_t shape[BW_MAX_NDIM], count = 1;
        int ndim = bw_variable_shape(model, v, shape);
        for (int i = 0; i < ndim; i++) {
            count *= shape[i];
        }
        r->weights = realloc(r->weights, (r->weight_count + (size_t)count) * sizeof(float));
        bw_variable_get(model, v, r->weights + r->weight_count, (size_t)count);
        r->weight_count += (size_t)count;
    }
}

/* One rank, or all there is. cmocka's assertions belong to the main thread, so the run only leaves what it found. */
static inline void *train(void *user)
{
    run *r = user;
    bw_context *ctx = open_context(r);
    bw_dataset *dataset = samples_of(ctx);
    bw_model *model = bw_model_parse(ctx, r->model->expression);
    bw_history *history = NULL;
    r->status = bw_compile(model, r->optimizer, NULL, NULL);
    if (r->status == BW_OK) {
        r->status = bw_fit(model, dataset, &r->options, &history);
    }
    snprintf(r->message, sizeof r->message, "%.255s", bw_message(ctx));
    if (r->status == BW_OK) {
        r->hash = bw_model_hash(model);
        r->loss = bw_history_last(history, "loss");
        r->facts = bw_history_facts(history);
        r->noise = bw_history_noise(history);
        keep_weights(r, model);
    }
    bw_close(ctx);
    return NULL;
}

static inline void require(const run *r)
{
    if (r->status != BW_OK) {
        fail_msg("%s: %s: %s", r->model->expression, bw_status_name(r->status), r->message);
    }
}

/* Runs it, in as many ranks as it says; every rank must end with the same bits. */
static inline void execute(run *r)
{
    if (r->ranks == 1) {
        train(r);
        require(r);
        return;
    }
    run *members = calloc((size_t)r->ranks, sizeof *members);
    pthread_t *threads = calloc((size_t)r->ranks, sizeof *threads);
    bw_ranks *group = bw_ranks_open(r->ranks);
    assert_non_null(group);
    for (int k = 0; k < r->ranks; k++) {
        members[k] = *r;
        members[k].group = group;
        members[k].rank = k;
        assert_int_equal(pthread_create(&threads[k], NULL, train, &members[k]), 0);
    }
    for (int k = 0; k < r->ranks; k++) {
        pthread_join(threads[k], NULL);
    }
    bw_ranks_close(group);
    for (int k = 0; k < r->ranks; k++) {
        require(&members[k]);
        assert_true(members[k].hash == members[0].hash && members[k].loss == members[0].loss);
        assert_memory_equal(&members[k].noise.raw.signal, &members[0].noise.raw.signal, sizeof(double));
        assert_memory_equal(&members[k].noise.seen.signal, &members[0].noise.seen.signal, sizeof(double));
        if (k > 0) {
            free(members[k].weights);
        }
    }
    *r = members[0];
    free(threads);
    free(members);
}

static inline void release(run *r)
{
    free(r->weights);
}

static inline void assert_same_bits(const run *a, const run *b, const char *what)
{
    if (a->hash != b->hash || a->loss != b->loss) {
        fail_msg("%s, %s: weights hash to %016llx and %016llx, losses are %.17g and %.17g", a->model->expression, what,
                 (unsigned long long)a->hash, (unsigned long long)b->hash, a->loss, b->loss);
    }
}

static inline double norm_between(const float *a, const float *b, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        double d = (double)a[i] - (double)b[i];
        sum += d * d;
    }
    return sqrt(sum);
}

#endif
