/*
 * Records of tables: the same bits over workers, tiles, pieces and ranks, and no more memory than planned.
 * label: thread
 */
#include "unit/exec/records_test.h"

/* ---- The same bits ---- */

static void test_workers(void **state)
{
    (void)state;
    static const int workers[] = {2, 3, 4, 8};
    for (int k = 0; k < 4; k++) {
        const char *expression = k < 2 ? dense : lazy, *optimizer = k % 2 ? adam : momentum;
        run alone = run_of(expression, optimizer);
        alone.lanes = 8;
        execute(&alone);
        assert_true(memcmp(alone.table, start, sizeof start) != 0);
        for (size_t w = 0; w < BWI_COUNT(workers); w++) {
            run shared = run_of(expression, optimizer);
            shared.lanes = 8;
            shared.workers = workers[w];
            execute(&shared);
            assert_same(&alone, &shared, "workers");
            assert_true(shared.lane_norms == alone.lane_norms);
        }
    }
}

/* A row's sum is one chain in the order of positions, so here even tiles and lanes do not show. */
static void test_tiles(void **state)
{
    (void)state;
    run first = run_of(dense, adam);
    execute(&first);
    for (int64_t tile = 1; tile <= 64; tile *= 4) {
        for (int lanes = 1; lanes <= 16; lanes *= 4) {
            run other = run_of(dense, adam);
            other.tile = tile;
            other.lanes = lanes;
            execute(&other);
            assert_same(&first, &other, "tiles");
        }
    }
}

static void test_pieces(void **state)
{
    (void)state;
    static const int64_t pieces[][4] = {{SAMPLES}, {8, 16, 29}, {1, 2, 3, 47}, {50, 3}};
    run whole = run_of(dense, adam);
    execute(&whole);
    for (size_t k = 0; k < BWI_COUNT(pieces); k++) {
        for (int64_t window = 0; window <= SAMPLES; window += SAMPLES) {
            run r = run_of(dense, adam);
            r.window = window;
            memcpy(r.pieces, pieces[k], sizeof r.pieces);
            execute(&r);
            assert_same(&whole, &r, window ? "pieces" : "pieces of an unknown window");
        }
    }
}

/* With one lane and tiles of one sample there is room for two records a row: windows must be summed on the way. */
static void test_compacting(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        run roomy = run_of(k ? lazy : dense, adam), tight = roomy, unknown = roomy;
        roomy.tile = 64;
        execute(&roomy);
        assert_true(roomy.capacity == SAMPLES * LENGTH);
        tight.tile = tight.lanes = 1;
        execute(&tight);
        assert_true(tight.capacity == 2 * ROWS);
        assert_same(&roomy, &tight, "compacted");
        unknown.window = 0;
        unknown.workers = 2;
        execute(&unknown);
        assert_true(unknown.capacity == ROWS + 4 * 2 * LENGTH);
        assert_same(&roomy, &unknown, "an unknown window");
    }
}

static void test_ranks(void **state)
{
    (void)state;
    for (int k = 0; k < 8; k++) {
        run alone = run_of(k % 2 ? lazy : dense, adam);
        alone.window = k / 4 ? 0 : SAMPLES; /* 0: they meet to sum records on the way */
        execute(&alone);
        int ranks = k / 2 % 2 ? 4 : 2;
        run members[4];
        pthread_t threads[4];
        bw_ranks *group = bw_ranks_open(ranks);
        for (int m = 0; m < ranks; m++) {
            members[m] = run_of(alone.expression, adam);
            members[m].window = alone.window;
            members[m].group = group;
            members[m].rank = m;
            members[m].workers = ranks == 2 ? 2 : 1;
            assert_int_equal(pthread_create(&threads[m], NULL, train, &members[m]), 0);
        }
        double lane_norms = 0;
        for (int m = 0; m < ranks; m++) {
            pthread_join(threads[m], NULL);
            lane_norms += members[m].lane_norms;
        }
        bw_ranks_close(group);
        for (int m = 0; m < ranks; m++) {
            assert_int_equal(members[m].status, BW_OK);
            assert_same(&alone, &members[m], "ranks");
        }
        if (alone.window) {
            assert_true(fabs(lane_norms - alone.lane_norms) <= 1e-9 * alone.lane_norms);
        }
    }
}

/* ---- Memory ---- */

typedef struct counter {
    atomic_llong calls;
    int64_t at_step;
} counter;

static void *count_allocate(void *user, size_t bytes, size_t alignment)
{
    counter *c = user;
    atomic_fetch_add(&c->calls, 1);
    return bwi_system_allocator.allocate(bwi_system_allocator.user, bytes, alignment);
}

static void count_release(void *user, void *memory, size_t bytes)
{
    counter *c = user;
    atomic_fetch_add(&c->calls, 1);
    bwi_system_allocator.release(bwi_system_allocator.user, memory, bytes);
}

static bool count_step(void *user, const bw_progress *progress)
{
    counter *c = user;
    if (progress->update > 1) {
        assert_int_equal(atomic_load(&c->calls), c->at_step);
    }
    c->at_step = atomic_load(&c->calls);
    return true;
}

static void test_steps_allocate_nothing(void **state)
{
    (void)state;
    for (int k = 0; k < 2; k++) {
        counter c = {.at_step = 0};
        bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
        options.allocator = &(bw_allocator){&c, count_allocate, count_release};
        options.workers = 2;
        bw_context *ctx = bw_open(&options);
        bw_dataset *dataset = samples_of(ctx);
        bw_model *model = bw_model_parse(ctx, k ? lazy : dense);
        assert_int_equal(bw_compile(model, adam, "mse", NULL), BW_OK);
        bw_fit_options o = BW_FIT_OPTIONS_DEFAULT;
        o.batch = 7;
        o.tile = o.lanes = 1; /* room for few records */
        o.on_step = count_step;
        o.user = &c;
        assert_int_equal(bw_fit(model, dataset, &o, NULL), BW_OK);
        assert_true(c.at_step > 0);
        bw_close(ctx);
    }
}

/* A table of many rows: neither lanes nor records grow with it, nor the number of lanes. */
static void test_bytes(void **state)
{
    (void)state;
    size_t arena[2];
    int lanes[2];
    for (int k = 0; k < 2; k++) {
        bw_context *ctx = bw_open(NULL);
        bw_dataset *dataset = samples_of(ctx);
        bw_model *model = bw_model_parse(ctx, k ? "embedding(2000000,3) flatten" : "embedding(2000,3) flatten");
        assert_int_equal(bw_compile(model, "sgd", "mse", NULL), BW_OK);
        bwi_session session;
        bwi_session_options o = {.train = true, .batch = 16};
        assert_int_equal(bwi_session_open(&session, model, dataset, &o), BW_OK);
        const bwi_plan *plan = bwi_exec_plan(session.exec);
        arena[k] = plan->bytes;
        lanes[k] = plan->lanes;
        assert_int_equal(plan->tables[0].capacity, 16 * LENGTH);
        assert_true(plan->items.records >= 16 * LENGTH * (WIDTH * sizeof(float) + 24));
        assert_int_equal(plan->items.outside, (size_t)(k ? 2000000 : 2000) * WIDTH * sizeof(float));
        bwi_session_close(&session);
        bw_close(ctx);
    }
    assert_true(arena[0] == arena[1] && lanes[0] == lanes[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_workers),    cmocka_unit_test(test_tiles), cmocka_unit_test(test_pieces),
        cmocka_unit_test(test_compacting), cmocka_unit_test(test_ranks), cmocka_unit_test(test_steps_allocate_nothing),
        cmocka_unit_test(test_bytes),
    };
    return cmocka_run_group_tests(tests, make_samples, NULL);
}
