/*
 * The same bits: weights after training do not depend on workers, ranks, timing or how a window is fed; other tiles agree within
 * rounding. Workers are delayed at random, and it is checked that more than one really took part.
 * label: thread
 */
#include "same/bits_test.h"

#include "exec/internal.h"

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

/* With fewer lanes than workers, what tiles of a lane add to it waits for its turn: the bits are those of one worker. */
static void test_turns(void **state)
{
    (void)state;
    static const int lanes[] = {1, 2};
    for (size_t m = 0; m < 2 * BWI_COUNT(models); m++) {
        run alone = run_of(&models[m / 2]);
        alone.options.lanes = lanes[m % 2];
        execute(&alone);
        bwi_pool_delay = delay;
        for (int workers = 2; workers <= 3; workers++) {
            run shared = run_of(&models[m / 2]);
            char what[48];
            shared.options.lanes = lanes[m % 2];
            shared.workers = workers;
            snprintf(what, sizeof what, "%d workers of %d lanes", workers, lanes[m % 2]);
            atomic_store(&workers_seen, 0);
            execute(&shared);
            assert_true(shared.facts.workers == workers && shared.facts.lanes == lanes[m % 2]);
            assert_int_equal(atomic_load(&workers_seen), (1U << workers) - 1);
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
    for (int lanes = 1; lanes <= 16; lanes *= 16) {
        run deferred = run_of(ranged()), settled = run_of(ranged());
        deferred.workers = settled.workers = 2;
        deferred.options.lanes = settled.options.lanes = lanes;
        settled.optimizer = "adam(lr=0.01, global_clipnorm=1e20)";
        execute(&deferred);
        execute(&settled);
        assert_same_bits(&deferred, &settled, "gradients that wait for the update");
        release(&deferred);
        release(&settled);
    }
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
    assert_int_equal(bwi_exec_plan(session.exec)->split_tiles, 8);
    assert_int_equal(bwi_session_feed(&session, BWI_PROGRAM_TRAIN, &piece, NULL), BW_OK);
    assert_int_equal(session.exec->deferred, BWI_DEFERRED);
    assert_int_equal(bwi_session_apply(&session), BW_OK);
    assert_int_equal(session.exec->deferred, BWI_DEFERRED_NONE);
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
        assert_same_bits(&whole, &parts, "three batches per update");
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_workers),
        cmocka_unit_test(test_turns),
        cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_again),
        cmocka_unit_test(test_two_workers_run_tiles),
        cmocka_unit_test(test_ranges_and_lanes),
        cmocka_unit_test(test_ranges_find_nan),
        cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_accumulate),
        cmocka_unit_test(test_batch_beyond_the_data),
        cmocka_unit_test(test_tiles),
    };
    return cmocka_run_group_tests(tests, make_samples, NULL);
}
