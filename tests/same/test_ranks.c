/*
 * The same bits for every number of ranks, also where their lanes are no subtree, where a batch has fewer tiles, or fewer samples,
 * than there are ranks, and with everything that looks at a gradient as a whole. label: thread
 */
#include "same/bits_test.h"

#include "exec/internal.h"

typedef struct way {
    const char *name, *optimizer;
    int batch, accumulate, lanes;
} way;

static const way ways[] = {
    {"uneven batches", "adam(lr=0.01)", BATCH, 1, 8},
    {"more ranks than samples", "sgd(lr=0.1,momentum=0.9)", 3, 1, 8},
    {"norms", "adamw(lr=0.01,weight_decay=0.01,clipnorm=0.1)", 30, 1, 16},
    {"averages of accumulated batches", "adam(lr=0.01,global_clipnorm=0.5,use_ema=true,ema_momentum=0.9)", 10, 3, 16},
};

#ifdef THREAD_SANITIZER
static const int splits[][2] = {{3, 2}, {5, 1}};
#else
static const int splits[][2] = {{2, 1}, {3, 2}, {4, 2}, {6, 1}, {7, 1}, {8, 1}}; /* ranks, and workers of each */
#endif

static run run_way(const model_row *row, const way *w)
{
    run r = run_of(row);
    r.optimizer = w->optimizer;
    r.options.batch = w->batch;
    r.options.accumulate = w->accumulate;
    r.options.lanes = w->lanes;
    r.options.epochs = 1;
    return r;
}

static void compare_splits(const model_row *row, const way *w, size_t first, size_t step)
{
    run alone = run_way(row, w);
    execute(&alone);
    for (size_t s = first; s < BWI_COUNT(splits); s += step) {
        run shared = run_way(row, w);
        char what[96];
        shared.ranks = splits[s][0];
        shared.workers = splits[s][1];
        snprintf(what, sizeof what, "%s, %d ranks of %d workers", w->name, shared.ranks, shared.workers);
        execute(&shared);
        assert_same_bits(&alone, &shared, what);
        release(&shared);
    }
    release(&alone);
}

static void test_ranks(void **state)
{
    (void)state;
    static const int chosen[] = {1, 3, 5}; /* convolutions, whole-batch statistics, dense layers */
    for (size_t m = 0; m < BWI_COUNT(chosen); m++) {
        for (size_t k = 0; k < BWI_COUNT(ways); k++) {
            compare_splits(&models[chosen[m]], &ways[k], 0, 1);
        }
    }
}

/* ---- Sums beside the backward pass ---- */

/* Gradients of several buckets, in one phase and in several. */
static const model_row large[] = {
    {"flatten dense(960,relu) dense(400,relu) dense(10,softmax)", false, 0},
    {"flatten dense(960,use_bias=false) batchnorm relu dense(400,relu) dense(10,softmax)", true, 0},
};

static void test_beside(void **state)
{
    (void)state;
    bwi_pool_delay = delay;
    for (size_t m = 0; m < BWI_COUNT(large); m++) {
        for (size_t k = 0; k < BWI_COUNT(ways); k++) {
            compare_splits(&large[m], &ways[k], k % 2, 3);
        }
    }
    bwi_pool_delay = NULL;
}

/* Large dense layers at the defaults: one rank stages factors, for windows of few tiles and of many, where several store lanes. */
static void test_joined_lanes(void **state)
{
    (void)state;
    static const way defaults[] = {{"few tiles", "adam(lr=0.01)", 30, 1, 0},
                                   {"many tiles", "sgd(lr=0.1)", 71, 1, 0},
                                   {"stored after all", "adam(lr=0.01,clipnorm=0.1)", 71, 1, 0}};
    for (size_t k = 0; k < BWI_COUNT(defaults); k++) {
        compare_splits(&large[0], &defaults[k], k % 2, 2);
    }
}

typedef struct feeding {
    bw_ranks *group;
    int rank;
    const model_row *row;
    bool ends;  /* the window ends with the piece */
    bool began; /* so that the sums were made while it was fed */
    uint64_t hash;
    bw_status status;
} feeding;

static void *feed_once(void *user)
{
    feeding *f = user;
    run opening = {.workers = 2, .group = f->group, .rank = f->rank};
    bw_context *ctx = open_context(&opening);
    bw_dataset *dataset = samples_of(ctx);
    bw_model *model = bw_model_parse(ctx, f->row->expression);
    bwi_session session;
    bwi_session_options options = {.train = true, .batch = BATCH, .tile = TILE, .lanes = 8, .seed = 4};
    f->status = bwi_session_open(&session, model, dataset, &options);
    if (f->status == BW_OK) {
        bwi_piece piece = {.dataset = dataset, .count = BATCH, .last = f->ends};
        f->status = bwi_session_feed(&session, BWI_PROGRAM_TRAIN, &piece, NULL);
        f->began = !bwi_overlap_is_reset(session.exec);
        f->status = f->status == BW_OK ? bwi_session_apply(&session) : f->status;
        bwi_session_close(&session);
    }
    f->hash = bw_model_hash(model);
    bw_close(ctx);
    return NULL;
}

static uint64_t feed_ranks(const model_row *row, int ranks, bool ends)
{
    feeding all[8];
    pthread_t threads[8];
    bw_ranks *group = bw_ranks_open(ranks);
    for (int k = 0; k < ranks; k++) {
        all[k] = (feeding){.group = group, .rank = k, .row = row, .ends = ends};
        assert_int_equal(pthread_create(&threads[k], NULL, feed_once, &all[k]), 0);
    }
    for (int k = 0; k < ranks; k++) {
        pthread_join(threads[k], NULL);
        assert_int_equal(all[k].status, BW_OK);
        assert_int_equal(all[k].began, ends && ranks > 1);
        assert_true(all[k].hash == all[0].hash);
    }
    bw_ranks_close(group);
    return all[0].hash;
}

static void test_began_before_the_update(void **state)
{
    (void)state;
    for (size_t m = 0; m < BWI_COUNT(large); m++) {
        uint64_t alone = feed_ranks(&large[m], 1, false);
        for (int ranks = 2; ranks <= 4; ranks++) {
            assert_true(feed_ranks(&large[m], ranks, false) == alone);
            assert_true(feed_ranks(&large[m], ranks, true) == alone);
        }
    }
}

/* ---- Leaving and failing ---- */

typedef struct leaver {
    bw_ranks *group;
    int rank, moment;
    bw_context *_Atomic *cancelled;
    bw_status status;
} leaver;

static void *fit_until_cancelled(void *user)
{
    leaver *l = user;
    run opening = {.workers = 2, .group = l->group, .rank = l->rank};
    bw_context *ctx = open_context(&opening);
    bw_dataset *dataset = samples_of(ctx);
    bw_model *model = bw_model_parse(ctx, large[l->moment % 2].expression);
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.tile = TILE;
    options.lanes = 8;
    options.epochs = 1000000;
    if (l->rank == 1) {
        atomic_store(l->cancelled, ctx);
    }
    l->status = bw_fit(model, dataset, &options, NULL);
    atomic_store(l->cancelled, NULL);
    bw_close(ctx);
    return NULL;
}

/* One of three is cancelled at any moment of a step; nobody hangs. */
static void test_cancelled(void **state)
{
    (void)state;
    for (int moment = 0; moment < 8; moment++) {
        bw_context *_Atomic cancelled = NULL;
        leaver all[3];
        pthread_t threads[3];
        bw_ranks *group = bw_ranks_open(3);
        for (int k = 0; k < 3; k++) {
            all[k] = (leaver){.group = group, .rank = k, .moment = moment, .cancelled = &cancelled};
            assert_int_equal(pthread_create(&threads[k], NULL, fit_until_cancelled, &all[k]), 0);
        }
        bw_context *ctx;
        while (!(ctx = atomic_load(&cancelled))) {
            sched_yield();
        }
        nanosleep(&(struct timespec){.tv_nsec = moment * 7300000L}, NULL);
        bw_cancel(ctx);
        for (int k = 0; k < 3; k++) {
            pthread_join(threads[k], NULL);
            assert_int_equal(all[k].status, BW_CANCELLED);
        }
        bw_ranks_close(group);
    }
}

/* ---- What is kept of a batch ---- */

static void test_kept(void **state)
{
    (void)state;
    run alone = run_way(&models[3], &ways[0]), shared = run_way(&models[3], &ways[0]);
    shared.ranks = 4;
    execute(&alone);
    execute(&shared);
    assert_same_bits(&alone, &shared, "with what each of four ranks keeps");
    assert_true(alone.facts.kept_bytes > 0 && shared.facts.kept_bytes > 0);
    assert_true(shared.facts.kept_bytes <= alone.facts.kept_bytes / 2);
    release(&alone);
    release(&shared);
}

typedef struct damaged {
    bw_ranks *group;
    int rank;
    bw_status status;
    char message[256];
} damaged;

static void *fit_damaged(void *user)
{
    damaged *d = user;
    run opening = {.workers = 1, .group = d->group, .rank = d->rank};
    bw_context *ctx = open_context(&opening);
    bw_dataset *dataset = samples_of(ctx);
    bw_model *model = bw_model_parse(ctx, models[3].expression);
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.batch = SAMPLES;
    options.tile = TILE;
    d->status = bw_fit(model, dataset, &options, NULL);
    snprintf(d->message, sizeof d->message, "%.255s", bw_message(ctx));
    bw_close(ctx);
    return NULL;
}

/* Every rank names the sample at fault, also one that is another's. */
static void test_nan_is_named(void **state)
{
    (void)state;
    damaged all[3];
    pthread_t threads[3];
    float before = pixels[30 * PIXELS + 3];
    pixels[30 * PIXELS + 3] = (float)NAN;
    bw_ranks *group = bw_ranks_open(3);
    for (int k = 0; k < 3; k++) {
        all[k] = (damaged){.group = group, .rank = k};
        assert_int_equal(pthread_create(&threads[k], NULL, fit_damaged, &all[k]), 0);
    }
    for (int k = 0; k < 3; k++) {
        pthread_join(threads[k], NULL);
        assert_int_equal(all[k].status, BW_INVALID_ARGUMENT);
        if (!strstr(all[k].message, "sample 30: its input holds NaN")) {
            fail_msg("rank %d: %s", k, all[k].message);
        }
    }
    bw_ranks_close(group);
    pixels[30 * PIXELS + 3] = before;
}

/* ---- The noise scale ---- */

static void test_noise(void **state)
{
    (void)state;
    static const int ranks[] = {2, 3, 8};
    run alone = run_way(&models[5], &ways[0]);
    alone.options.noise_every = 1;
    alone.options.epochs = 2; /* an estimate needs two updates, and as Adam sees it three */
    execute(&alone);
    assert_true(isfinite(alone.noise.raw.trace) && alone.noise.raw.trace > 0 && alone.noise.seen.trace > 0);
    for (size_t k = 0; k < BWI_COUNT(ranks); k++) {
        run shared = run_way(&models[5], &ways[0]);
        shared.options.noise_every = 1;
        shared.options.epochs = 2;
        shared.ranks = ranks[k];
        execute(&shared);
        assert_same_bits(&alone, &shared, "with the noise scale");
        assert_true(shared.noise.steps == alone.noise.steps);
        assert_memory_equal(&shared.noise.raw.trace, &alone.noise.raw.trace, sizeof(double));
        assert_memory_equal(&shared.noise.raw.signal, &alone.noise.raw.signal, sizeof(double));
        assert_memory_equal(&shared.noise.seen.trace, &alone.noise.seen.trace, sizeof(double));
        assert_memory_equal(&shared.noise.seen.signal, &alone.noise.seen.signal, sizeof(double));
        release(&shared);
    }
    release(&alone);
}

/* ---- More ranks than the model's own lanes ---- */

static char logged[512]; /* by rank 0 */

static void keep_log(void *user, bw_log_level level, const char *message)
{
    (void)user, (void)level;
    if (strstr(message, "lanes")) {
        snprintf(logged, sizeof logged, "%s", message);
    }
}

static void *fit_logged(void *user)
{
    damaged *d = user;
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.workers = 1;
    options.ranks = d->group;
    options.rank = d->rank;
    options.log = d->rank == 0 ? keep_log : NULL;
    bw_context *ctx = bw_open(&options);
    bw_model *model = bw_model_parse(ctx, "flatten dense(10,softmax)");
    d->status = bw_fit(model, samples_of(ctx), NULL, NULL);
    bw_close(ctx);
    return NULL;
}

/* Lanes are another plan, so the user is told how one rank gets the same bits. */
static void test_more_lanes_are_told(void **state)
{
    (void)state;
    enum { RANKS = 17 };
    damaged all[RANKS];
    pthread_t threads[RANKS];
    bw_ranks *group = bw_ranks_open(RANKS);
    for (int k = 0; k < RANKS; k++) {
        all[k] = (damaged){.group = group, .rank = k};
        assert_int_equal(pthread_create(&threads[k], NULL, fit_logged, &all[k]), 0);
    }
    for (int k = 0; k < RANKS; k++) {
        pthread_join(threads[k], NULL);
        assert_int_equal(all[k].status, BW_OK);
    }
    bw_ranks_close(group);
    assert_string_equal(logged, "17 ranks have 32 lanes, where one has 16; with --lanes 32 one gives the same bits");
}

/* ---- Refusals ---- */

typedef struct refused {
    bw_ranks *group;
    int rank;
    bool without; /* this rank has no dataset */
    int lanes;
    bw_status status;
    char message[256];
} refused;

static void *fit_refused(void *user)
{
    refused *r = user;
    run opening = {.workers = 1, .group = r->group, .rank = r->rank};
    bw_context *ctx = open_context(&opening);
    bw_dataset *dataset = samples_of(ctx);
    bw_model *model = bw_model_parse(ctx, "flatten dense(10,softmax)");
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.lanes = r->lanes;
    r->status = bw_fit(model, r->without ? NULL : dataset, &options, NULL);
    snprintf(r->message, sizeof r->message, "%.255s", bw_message(ctx));
    bw_close(ctx);
    return NULL;
}

static void refuse(refused *all, int ranks)
{
    pthread_t threads[16];
    bw_ranks *group = bw_ranks_open(ranks);
    for (int k = 0; k < ranks; k++) {
        all[k].group = group;
        all[k].rank = k;
        assert_int_equal(pthread_create(&threads[k], NULL, fit_refused, &all[k]), 0);
    }
    for (int k = 0; k < ranks; k++) {
        pthread_join(threads[k], NULL);
        assert_int_equal(all[k].status, BW_INVALID_ARGUMENT);
    }
    bw_ranks_close(group);
}

static void test_more_ranks_than_lanes(void **state)
{
    (void)state;
    refused all[5] = {{.lanes = 4}, {.lanes = 4}, {.lanes = 4}, {.lanes = 4}, {.lanes = 4}};
    refuse(all, 5);
    assert_string_equal(all[0].message,
                        "lanes: 4 are too few for 5 ranks, each of which needs one; ask for 8 lanes or use up to 4 ranks");
}

/* The others learn at once that one cannot begin, and not when its context closes. */
static void test_missing_dataset(void **state)
{
    (void)state;
    refused all[3] = {{.lanes = 8}, {.lanes = 8, .without = true}, {.lanes = 8}};
    refuse(all, 3);
    assert_string_equal(all[1].message, "fit: there is no dataset");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_beside),
        cmocka_unit_test(test_joined_lanes),
        cmocka_unit_test(test_began_before_the_update),
        cmocka_unit_test(test_cancelled),
        cmocka_unit_test(test_kept),
        cmocka_unit_test(test_nan_is_named),
        cmocka_unit_test(test_noise),
        cmocka_unit_test(test_more_lanes_are_told),
        cmocka_unit_test(test_more_ranks_than_lanes),
        cmocka_unit_test(test_missing_dataset),
    };
    return cmocka_run_group_tests(tests, make_samples, NULL);
}
