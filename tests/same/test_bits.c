/*
 * The same bits: weights after training do not depend on workers, ranks, timing, memory or how a window is fed; other tiles
 * agree within rounding. Workers are delayed at random, and it is checked that more than one really took part.
 * label: thread
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "train/train.h"

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
    {"flatten dense(960,relu) dense(97,relu) dense(10,softmax)", false, 16}, /* by ranges */
};

static float pixels[SAMPLES * PIXELS];
static int32_t labels[SAMPLES];

static int make_samples(void **state)
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

static bw_dataset *samples_of(bw_context *ctx)
{
    bw_array x = {.data = pixels, .dtype = BW_F32, .rank = 4, .shape = {SAMPLES, SIDE, SIDE, CHANNELS}};
    bw_array y = {.data = labels, .dtype = BW_I32, .rank = 1, .shape = {SAMPLES}};
    return bw_shuffle(bw_from_arrays(ctx, &x, &y, NULL), 9);
}

/* ---- Delays ---- */

static atomic_uint turns, workers_seen; /* workers_seen: a bit for each */

static void delay(int worker)
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
    float *weights; /* all variables, if wanted */
    size_t weight_count;
} run;

static run run_of(const model_row *model)
{
    run r = {.model = model, .workers = 1, .ranks = 1, .optimizer = "adam(lr=0.01)", .options = BW_FIT_OPTIONS_DEFAULT};
    r.options.lanes = model->lanes;
    r.options.epochs = EPOCHS;
    r.options.batch = BATCH;
    r.options.tile = TILE;
    r.options.seed = 4;
    return r;
}

static bw_context *open_context(const run *r)
{
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.workers = r->workers;
    options.ranks = r->group;
    options.rank = r->rank;
    return bw_open(&options);
}

static void keep_weights(run *r, const bw_model *model)
{
    for (int v = 0; v < bw_variable_count(model); v++) {
        int64_t shape[BW_MAX_RANK], count = 1;
        int rank = bw_variable_shape(model, v, shape);
        for (int i = 0; i < rank; i++) {
            count *= shape[i];
        }
        r->weights = realloc(r->weights, (r->weight_count + (size_t)count) * sizeof(float));
        bw_variable_get(model, v, r->weights + r->weight_count, (size_t)count);
        r->weight_count += (size_t)count;
    }
}

/* One rank, or all there is. cmocka's assertions belong to the main thread, so the run only leaves what it found. */
static void *train(void *user)
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
        keep_weights(r, model);
    }
    bw_close(ctx);
    return NULL;
}

static void require(const run *r)
{
    if (r->status != BW_OK) {
        fail_msg("%s: %s: %s", r->model->expression, bw_status_name(r->status), r->message);
    }
}

/* Runs it, in as many ranks as it says; every rank must end with the same bits. */
static void execute(run *r)
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
        if (k > 0) {
            free(members[k].weights);
        }
    }
    *r = members[0];
    free(threads);
    free(members);
}

static void release(run *r)
{
    free(r->weights);
}

static void assert_same_bits(const run *a, const run *b, const char *what)
{
    if (a->hash != b->hash || a->loss != b->loss) {
        fail_msg("%s, %s: weights hash to %016llx and %016llx, losses are %.17g and %.17g", a->model->expression, what,
                 (unsigned long long)a->hash, (unsigned long long)b->hash, a->loss, b->loss);
    }
}

static double norm_between(const float *a, const float *b, size_t count)
{
    double sum = 0;
    for (size_t i = 0; i < count; i++) {
        double d = (double)a[i] - (double)b[i];
        sum += d * d;
    }
    return sqrt(sum);
}

/* ---- Workers and ranks ---- */

static void test_workers(void **state)
{
    (void)state;
    for (size_t m = 0; m < BWI_COUNT(models); m++) {
        run alone = run_of(&models[m]);
        execute(&alone);
        assert_true(isfinite(alone.loss) && alone.facts.tile == TILE && alone.facts.workers == 1);
        bwi_pool_delay = delay;
        for (size_t w = 0; w < BWI_COUNT(worker_counts); w++) {
            run shared = run_of(&models[m]);
            char what[32];
            shared.workers = worker_counts[w];
            snprintf(what, sizeof what, "%d workers", shared.workers);
            atomic_store(&workers_seen, 0);
            execute(&shared);
            assert_int_equal(shared.facts.workers, worker_counts[w]);
            assert_int_equal(atomic_load(&workers_seen), (1U << worker_counts[w]) - 1);
            assert_same_bits(&alone, &shared, what);
            release(&shared);
        }
        bwi_pool_delay = NULL;
        release(&alone);
    }
}

static void test_ranks(void **state)
{
    (void)state;
    static const int ranks[][2] = {{2, 1}, {2, 2}, {4, 1}}; /* and workers of each */
    for (size_t m = 0; m < BWI_COUNT(models); m++) {
        run alone = run_of(&models[m]);
        execute(&alone);
        bwi_pool_delay = delay;
        for (size_t k = 0; k < BWI_COUNT(ranks); k++) {
            run shared = run_of(&models[m]);
            char what[48];
            shared.ranks = ranks[k][0];
            shared.workers = ranks[k][1];
            snprintf(what, sizeof what, "%d ranks of %d workers", shared.ranks, shared.workers);
            execute(&shared);
            assert_same_bits(&alone, &shared, what);
            release(&shared);
        }
        bwi_pool_delay = NULL;
        release(&alone);
    }
}

static void test_again(void **state)
{
    (void)state;
    for (size_t m = 0; m < BWI_COUNT(models); m++) {
        run first = run_of(&models[m]), second = run_of(&models[m]), other = run_of(&models[m]);
        first.workers = second.workers = other.workers = 2;
        other.options.seed++;
        execute(&first);
        execute(&second);
        execute(&other);
        assert_same_bits(&first, &second, "again");
        assert_true(first.hash != other.hash);
        release(&first);
        release(&second);
        release(&other);
    }
}

/* ---- Tiles on two workers at once ---- */

typedef struct meeting {
    atomic_uint workers; /* a bit for each that began a tile */
    atomic_int tiles;
} meeting;

/* The first tile of a worker waits until another worker has begun one too: then they certainly overlap. Not for ever, so that
 * a failure is reported. */
static void meet(void *user, int worker, int lane, int64_t tile)
{
    meeting *m = user;
    (void)lane;
    (void)tile;
    atomic_fetch_or(&m->workers, 1U << worker);
    atomic_fetch_add(&m->tiles, 1);
    for (int i = 0; i < 10000 && __builtin_popcount(atomic_load(&m->workers)) < 2; i++) {
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
}

static uint64_t train_together(const model_row *row, int workers, meeting *m)
{
    run r = run_of(row);
    r.workers = workers;
    bw_context *ctx = open_context(&r);
    bw_dataset *dataset = samples_of(ctx);
    bw_model *model = bw_model_parse(ctx, row->expression);
    bwi_session session;
    bwi_session_options options = {.train = true, .batch = SAMPLES, .tile = TILE, .seed = 4};
    assert_int_equal(bwi_session_open(&session, model, dataset, &options), BW_OK);
    if (m) {
        bwi_hooks hooks = {.user = m, .tile = meet};
        bwi_exec_set_hooks(session.exec, &hooks);
    }
    bwi_piece piece = {.dataset = dataset, .count = SAMPLES};
    for (int update = 0; update < 2; update++) {
        if (m) {
            atomic_store(&m->workers, 0);
        }
        assert_int_equal(bwi_session_feed(&session, BWI_PROGRAM_TRAIN, &piece, NULL), BW_OK);
        assert_true(!m || __builtin_popcount(atomic_load(&m->workers)) >= 2);
        assert_int_equal(bwi_session_apply(&session), BW_OK);
    }
    bwi_session_close(&session);
    uint64_t hash = bw_model_hash(model);
    bw_close(ctx);
    return hash;
}

static void test_two_workers_run_tiles(void **state)
{
    (void)state;
    for (size_t m = 0; m < BWI_COUNT(models); m++) {
        meeting met = {0};
        uint64_t alone = train_together(&models[m], 1, NULL);
        assert_true(train_together(&models[m], 2, &met) == alone);
        assert_true(atomic_load(&met.tiles) >= 2 * (SAMPLES / TILE));
    }
}

/* ---- By ranges ---- */

static const model_row *ranged(void)
{
    return &models[BWI_COUNT(models) - 1];
}

/* A norm that clips nothing makes the gradient be stored and summed by lanes after all. */
static void test_ranges_and_lanes(void **state)
{
    (void)state;
    run waiting = run_of(ranged()), settled = run_of(ranged());
    waiting.workers = settled.workers = 2;
    settled.optimizer = "adam(lr=0.01, global_clipnorm=1e20)";
    execute(&waiting);
    execute(&settled);
    assert_same_bits(&waiting, &settled, "gradients that wait for the update");
    release(&waiting);
    release(&settled);
}

/* What is not finite is found before anything changes, also where gradients wait. */
static void test_ranges_find_nan(void **state)
{
    (void)state;
    run r = run_of(ranged());
    r.workers = 2;
    bw_context *ctx = open_context(&r);
    bw_dataset *dataset = samples_of(ctx);
    bw_model *model = bw_model_parse(ctx, r.model->expression);
    bwi_session session;
    bwi_session_options options = {.train = true, .batch = BATCH, .tile = TILE, .lanes = r.model->lanes, .seed = 4};
    assert_int_equal(bwi_session_open(&session, model, dataset, &options), BW_OK);
    bwi_piece piece = {.dataset = dataset, .count = BATCH};
    assert_int_equal(bwi_exec_plan(session.exec)->group, 8);
    assert_int_equal(bwi_session_feed(&session, BWI_PROGRAM_TRAIN, &piece, NULL), BW_OK);
    assert_int_equal(session.exec->waiting, BWI_WAITS);
    assert_int_equal(bwi_session_apply(&session), BW_OK);
    assert_int_equal(session.exec->waiting, BWI_WAITS_NOT);
    uint64_t before = bw_model_hash(model);
    int64_t number = bwi_dataset_number(dataset, 0, BATCH - 1);
    float kept = pixels[number * PIXELS + 17];
    pixels[number * PIXELS + 17] = (float)NAN;
    assert_int_equal(bwi_session_feed(&session, BWI_PROGRAM_TRAIN, &piece, NULL), BW_OK);
    assert_int_equal(bwi_session_apply(&session), BW_INVALID_ARGUMENT);
    pixels[number * PIXELS + 17] = kept;
    char expected[64];
    snprintf(expected, sizeof expected, "sample %lld: its input holds NaN", (long long)number);
    assert_non_null(strstr(bw_message(ctx), expected));
    assert_true(bw_model_hash(model) == before);
    bwi_session_close(&session);
    bw_close(ctx);
}

/* ---- Pieces ---- */

/* One update from the whole data, fed in pieces. */
static run feed_pieces(const model_row *row, int64_t piece)
{
    run r = run_of(row);
    r.workers = 2;
    bw_context *ctx = open_context(&r);
    bw_dataset *dataset = bw_batches(samples_of(ctx), piece);
    bw_model *model = bw_model_parse(ctx, row->expression);
    const int64_t shape[] = {SIDE, SIDE, CHANNELS};
    assert_int_equal(bw_compile(model, "sgd(lr=0.1)", NULL, NULL), BW_OK);
    assert_int_equal(bw_build(model, 3, shape, 4), BW_OK);
    bw_gradients *gradients = bw_gradients_new(model, &r.options);
    bw_iterator *iterator = bw_iterate(dataset, 0);
    bw_batch *batch;
    int pieces = 0;
    for (; bw_next(iterator, &batch) == BW_OK; pieces++) {
        if (bw_gradients_add(gradients, batch, &r.loss) != BW_OK) {
            fail_msg("%s: %s", row->expression, bw_message(ctx));
        }
    }
    assert_int_equal(pieces, (SAMPLES + piece - 1) / piece);
    assert_int_equal(bw_gradients_samples(gradients), SAMPLES);
    assert_int_equal(bw_apply(model, gradients), BW_OK);
    r.hash = bw_model_hash(model);
    r.loss = 0; /* of the last piece only */
    keep_weights(&r, model);
    bw_close(ctx);
    return r;
}

/* The weights before any update. */
static run untrained(const model_row *row)
{
    run r = run_of(row);
    bw_context *ctx = open_context(&r);
    bw_model *model = bw_model_parse(ctx, row->expression);
    const int64_t shape[] = {SIDE, SIDE, CHANNELS};
    assert_int_equal(bw_build(model, 3, shape, 4), BW_OK);
    keep_weights(&r, model);
    bw_close(ctx);
    return r;
}

static void assert_close(const run *before, const run *a, const run *b, const char *what)
{
    assert_int_equal(a->weight_count, b->weight_count);
    assert_int_equal(a->weight_count, before->weight_count);
    double update = norm_between(a->weights, before->weights, a->weight_count),
           off = norm_between(a->weights, b->weights, a->weight_count);
    if (!(update > 0 && off <= 1e-4 * update)) {
        fail_msg("%s, %s: updates of norm %.3g are %.3g apart", a->model->expression, what, update, off);
    }
}

static void test_pieces(void **state)
{
    (void)state;
    static const int64_t multiples[] = {TILE, 3 * TILE, 8 * TILE}, others[] = {1, 3, 7, 30};
    for (size_t m = 0; m < BWI_COUNT(models); m++) {
        if (models[m].whole_batch) { /* a piece has statistics of its own there */
            continue;
        }
        run before = untrained(&models[m]), whole = feed_pieces(&models[m], SAMPLES);
        for (size_t k = 0; k < BWI_COUNT(multiples); k++) {
            run pieces = feed_pieces(&models[m], multiples[k]);
            assert_same_bits(&whole, &pieces, "pieces of whole tiles");
            release(&pieces);
        }
        for (size_t k = 0; k < BWI_COUNT(others); k++) {
            run pieces = feed_pieces(&models[m], others[k]);
            assert_close(&before, &whole, &pieces, "pieces of other sizes");
            release(&pieces);
        }
        release(&before);
        release(&whole);
    }
}

static void test_accumulate(void **state)
{
    (void)state;
    for (size_t m = 0; m < BWI_COUNT(models); m++) {
        run whole = run_of(&models[m]), parts = run_of(&models[m]);
        whole.options.batch = 30;
        parts.options.batch = 10;
        parts.options.accumulate = 3;
        parts.workers = 2;
        execute(&whole);
        execute(&parts);
        assert_same_bits(&whole, &parts, "three batches behind one update");
        release(&whole);
        release(&parts);
    }
}

static void test_batch_beyond_the_data(void **state)
{
    (void)state;
    for (size_t m = 0; m < BWI_COUNT(models); m++) {
        run all = run_of(&models[m]), more = run_of(&models[m]);
        all.options.batch = SAMPLES;
        more.options.batch = INT64_MAX;
        execute(&all);
        execute(&more);
        assert_int_equal(more.facts.updates, EPOCHS);
        assert_same_bits(&all, &more, "a batch larger than the data");
        release(&all);
        release(&more);
    }
}

/* ---- Other tiles ---- */

static run update_once(const model_row *row, int64_t tile)
{
    run r = run_of(row);
    r.workers = 2;
    bw_context *ctx = open_context(&r);
    bw_dataset *dataset = samples_of(ctx);
    bw_model *model = bw_model_parse(ctx, row->expression);
    r.options.tile = tile;
    r.options.batch = SAMPLES;
    r.options.epochs = 1;
    bw_history *history = NULL;
    assert_int_equal(bw_compile(model, "sgd(lr=0.1)", NULL, NULL), BW_OK);
    assert_int_equal(bw_fit(model, dataset, &r.options, &history), BW_OK);
    assert_int_equal(bw_history_facts(history).tile, tile);
    keep_weights(&r, model);
    bw_close(ctx);
    return r;
}

static void test_tiles(void **state)
{
    (void)state;
    for (size_t m = 0; m < BWI_COUNT(models); m++) {
        run before = untrained(&models[m]), first = update_once(&models[m], 1);
        for (int64_t tile = 2; tile <= 16; tile *= 2) {
            run other = update_once(&models[m], tile);
            assert_close(&before, &first, &other, "other tiles");
            release(&other);
        }
        release(&before);
        release(&first);
    }
}

/* ---- Memory ---- */

/* The smallest budget that the refusal names suffices; one byte less does not. */
static void check_refusal(const run *refused)
{
    const char *named = strchr(refused->message, '(');
    assert_int_equal(refused->status, BW_RESOURCE_EXHAUSTED);
    assert_non_null(named);
    for (size_t less = 0; less < 2; less++) {
        run r = run_of(refused->model);
        r.options.tile = refused->options.tile;
        r.options.memory = strtoull(named + 1, NULL, 10) - less;
        train(&r);
        if (r.status != (less ? BW_RESOURCE_EXHAUSTED : BW_OK)) {
            fail_msg("%s in %zu bytes: %s: %s", r.model->expression, r.options.memory, bw_status_name(r.status), r.message);
        }
        release(&r);
    }
}

/* As a budget asks: values of a batch kept, computed again or spilled, activations in segments; the same bits. A tile of one sample
 * and one worker from the beginning on; fewer lanes, which are the last resort, are another order of sums. */
static void test_budgets(void **state)
{
    (void)state;
    int kept_less = 0, spilled = 0, segmented = 0;
    for (size_t m = 0; m < BWI_COUNT(models); m++) {
        run roomy = run_of(&models[m]);
        roomy.options.tile = 1;
        execute(&roomy);
        assert_true(roomy.facts.segments == 1 && roomy.facts.spilled_bytes == 0);
        size_t budget = roomy.facts.planned_bytes - 1;
        for (;; budget -= budget / 12) {
            run tight = run_of(&models[m]);
            tight.options.tile = 1;
            tight.options.memory = budget;
            train(&tight);
            if (tight.status != BW_OK) {
                check_refusal(&tight);
                break;
            }
            assert_true(tight.facts.planned_bytes <= budget);
            if (tight.facts.lanes != roomy.facts.lanes) {
                release(&tight);
                continue;
            }
            kept_less += tight.facts.kept_bytes < roomy.facts.kept_bytes;
            spilled += tight.facts.spilled_bytes > 0;
            segmented += tight.facts.segments > 1;
            assert_same_bits(&roomy, &tight, "a budget");
            release(&tight);
        }
        release(&roomy);
    }
    print_message("%d runs kept less, %d spilled, %d had segments\n", kept_less, spilled, segmented);
    assert_true(kept_less > 0 && segmented > 0);
}

/* ---- What only looks ---- */

/* Validation sees more samples than a batch, and leaves no trace in the weights. */
static void test_validation_changes_nothing(void **state)
{
    (void)state;
    for (size_t m = 0; m < BWI_COUNT(models); m++) {
        uint64_t hashes[2];
        for (int validate = 0; validate < 2; validate++) {
            run r = run_of(&models[m]);
            bw_context *ctx = open_context(&r);
            bw_dataset *dataset = samples_of(ctx);
            bw_model *model = bw_model_parse(ctx, r.model->expression);
            r.options.tile = 1;
            r.options.batch = 3;
            r.options.validation = validate ? dataset : NULL;
            if (bw_fit(model, dataset, &r.options, NULL) != BW_OK) {
                fail_msg("%s: %s", r.model->expression, bw_message(ctx));
            }
            hashes[validate] = bw_model_hash(model);
            bw_close(ctx);
        }
        assert_true(hashes[0] == hashes[1]);
    }
}

static void predict(const model_row *row, int workers, float *predictions, double *loss)
{
    run r = run_of(row);
    r.workers = workers;
    bw_context *ctx = open_context(&r);
    bw_dataset *dataset = samples_of(ctx);
    bw_model *model = bw_model_parse(ctx, row->expression);
    const int64_t shape[] = {SIDE, SIDE, CHANNELS};
    bw_history *result = NULL;
    assert_int_equal(bw_build(model, 3, shape, 4), BW_OK);
    assert_int_equal(bw_predict(model, dataset, predictions, SAMPLES * CLASSES), BW_OK);
    assert_int_equal(bw_evaluate(model, dataset, &result), BW_OK);
    *loss = bw_history_last(result, "loss");
    bw_close(ctx);
}

static void test_predictions(void **state)
{
    (void)state;
    static float alone[SAMPLES * CLASSES], shared[SAMPLES * CLASSES];
    for (size_t m = 0; m < BWI_COUNT(models); m++) {
        double loss, shared_loss;
        predict(&models[m], 1, alone, &loss);
        for (int s = 0; s < SAMPLES; s++) {
            double sum = 0;
            for (int c = 0; c < CLASSES; c++) {
                sum += (double)alone[s * CLASSES + c];
            }
            assert_true(fabs(sum - 1) < 1e-5);
        }
        bwi_pool_delay = delay;
        for (size_t w = 0; w < BWI_COUNT(worker_counts); w++) {
            memset(shared, 0, sizeof shared);
            predict(&models[m], worker_counts[w], shared, &shared_loss);
            assert_memory_equal(alone, shared, sizeof alone);
            assert_true(loss == shared_loss);
        }
        bwi_pool_delay = NULL;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_workers),
        cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_again),
        cmocka_unit_test(test_two_workers_run_tiles),
        cmocka_unit_test(test_ranges_and_lanes),
        cmocka_unit_test(test_ranges_find_nan),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_accumulate),
        cmocka_unit_test(test_batch_beyond_the_data),
        cmocka_unit_test(test_tiles),
        cmocka_unit_test(test_budgets),
        cmocka_unit_test(test_validation_changes_nothing),
        cmocka_unit_test(test_predictions),
    };
    return cmocka_run_group_tests(tests, make_samples, NULL);
}
