/* Tile, lanes, workers and bytes: from the model, as asked, or as a budget allows. */
#include "support/planned.h"

static const char *const model_text =
    "conv2d(16,3,relu) batchnorm conv2d(16,3,relu) maxpool2d(2) flatten dense(32,relu) dense(10,softmax)";

/* The status of opening a session with these options; what was planned is left in `plan`. */
static bw_status plan_with(const char *expression, int workers, const bwi_session_options *options, bwi_plan *plan, char *message)
{
    planned p;
    planned_model(&p, expression, 64, 9, 9, 3, workers);
    bw_status status = bwi_session_open(&p.session, p.model, p.data, options);
    snprintf(message, 1024, "%s", bw_message(p.ctx));
    if (status == BW_OK) {
        p.plan = bwi_exec_plan(p.session.exec);
        *plan = *p.plan;
        assert_true(p.plan->workers <= workers && p.plan->workers >= 1);
    }
    planned_close(&p);
    return status;
}

/* ---- Choices ---- */

static void test_defaults_follow_from_the_model(void **state)
{
    (void)state;
    bwi_plan one, four;
    char message[1024];
    bwi_session_options options = {.train = true, .batch = 1024};
    assert_int_equal(plan_with(model_text, 1, &options, &one, message), BW_OK);
    assert_int_equal(plan_with(model_text, 4, &options, &four, message), BW_OK);
    assert_int_equal(one.tile, four.tile);
    assert_int_equal(one.lanes, four.lanes);
    assert_int_equal(one.workers, 1);
    assert_int_equal(four.workers, 4);
    assert_true((one.tile & (one.tile - 1)) == 0 && one.tile >= 1);
    assert_true((one.lanes & (one.lanes - 1)) == 0 && one.lanes >= 1);
    /* A thousand times the batch has the same tile and lanes. */
    bwi_plan large;
    bwi_session_options many = {.train = true, .batch = 1024000};
    assert_int_equal(plan_with(model_text, 1, &many, &large, message), BW_OK);
    assert_int_equal(large.tile, one.tile);
    assert_int_equal(large.lanes, one.lanes);
}

static void test_as_asked(void **state)
{
    (void)state;
    char message[1024];
    for (int64_t tile = 1; tile <= 64; tile *= 4) {
        for (int lanes = 1; lanes <= 16; lanes *= 4) {
            bwi_plan plan;
            bwi_session_options options = {.train = true, .batch = 64, .tile = tile, .lanes = lanes};
            assert_int_equal(plan_with("flatten dense(10,softmax)", 8, &options, &plan, message), BW_OK);
            assert_int_equal(plan.tile, tile);
            assert_int_equal(plan.lanes, lanes);
            assert_int_equal(plan.workers, 8); /* they share lanes where these are fewer */
            assert_int_equal((int64_t)1 << (plan.sizes - 1), tile);
        }
    }
}

/* No lane stays empty in every window: 7 samples are tiles of 4, 2 and 1, so a batch of 8 needs four lanes for the smaller batch
 * that may end an epoch. Evaluation feeds more than a batch. */
static void test_lanes_of_a_small_batch(void **state)
{
    (void)state;
    static const struct {
        int64_t batch;
        bool evaluate;
        int lanes;
    } cases[] = {{1, false, 1}, {2, false, 1}, {4, false, 2}, {8, false, 4}, {32, false, 8}, {64000, false, 16}, {8, true, 16}};
    for (size_t i = 0; i < BWI_COUNT(cases); i++) {
        bwi_plan plan;
        char message[1024];
        bwi_session_options options = {.train = true, .evaluate = cases[i].evaluate, .batch = cases[i].batch};
        assert_int_equal(plan_with("flatten dense(10,softmax)", 2, &options, &plan, message), BW_OK);
        assert_int_equal(plan.lanes, cases[i].lanes);
    }
}

/* The hash of the weights after two epochs of 61 samples. */
static uint64_t trained_hash(int64_t batch, int lanes)
{
    planned p;
    planned_model(&p, "flatten dense(12,relu) dense(10,softmax)", 61, 9, 9, 3, 2);
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.epochs = 2;
    options.batch = batch;
    options.lanes = lanes;
    assert_int_equal(bw_fit(p.model, p.data, &options, NULL), BW_OK);
    uint64_t hash = bw_model_hash(p.model);
    planned_close(&p);
    return hash;
}

/* Lanes that were left out would have been empty: no bit depends on them. */
static void test_fewer_lanes_have_the_same_bits(void **state)
{
    (void)state;
    for (int64_t batch = 1; batch <= 61; batch += batch < 9 ? 1 : 13) {
        assert_int_equal(trained_hash(batch, 0), trained_hash(batch, 16));
    }
}

static void test_what_cannot_be_asked(void **state)
{
    (void)state;
    static const struct {
        int64_t tile;
        int lanes;
        const char *message;
    } cases[] = {
        {3, 0, "tile: expected a power of two from 1 to 2048, got 3"},
        {-1, 0, "tile: expected a power of two from 1 to 2048, got -1"},
        {4096, 0, "tile: expected a power of two from 1 to 2048, got 4096"},
        {INT64_MIN, 0, "tile: expected a power of two"},
        {0, 3, "lanes: expected a power of two from 1 to 4096, got 3"},
        {0, -4, "lanes: expected a power of two from 1 to 4096, got -4"},
        {0, 8192, "lanes: expected a power of two from 1 to 4096, got 8192"},
    };
    for (size_t i = 0; i < BWI_COUNT(cases); i++) {
        bwi_plan plan;
        char message[1024];
        bwi_session_options options = {.train = true, .batch = 8, .tile = cases[i].tile, .lanes = cases[i].lanes};
        assert_int_equal(plan_with("flatten dense(10,softmax)", 1, &options, &plan, message), BW_INVALID_ARGUMENT);
        assert_non_null(strstr(message, cases[i].message));
    }
}

/* ---- Bytes ---- */

typedef struct span {
    const char *name;
    size_t begin, bytes;
} span;

/* The parts of the arena lie within it, apart from each other. */
static void test_parts_of_the_arena(void **state)
{
    (void)state;
    for (int m = 0; m < PLANNED_EXPRESSIONS; m++) {
        planned p;
        bwi_session_options options = {.train = true, .evaluate = true, .batch = 32, .tile = 8, .lanes = 4};
        planned_model(&p, planned_expressions[m], 64, 9, 9, 3, 3);
        planned_open(&p, &options);
        const bwi_plan *plan = p.plan;
        const span spans[] = {
            {"lanes", plan->lanes_offset, plan->lane_bytes * (size_t)plan->own_lanes},
            {"workers", plan->workers_offset, plan->worker_bytes * (size_t)plan->workers},
            {"store", plan->store_offset, plan->store_slot * (size_t)plan->store_tiles},
            {"staging", plan->staging_offset, plan->staging_bytes * (size_t)plan->split_tiles},
            {"deferred", plan->deferred_offset, plan->split_tiles ? plan->deferred_bytes * (size_t)plan->workers : 0},
        };
        for (size_t a = 0; a < BWI_COUNT(spans); a++) {
            assert_int_equal(spans[a].begin % BWI_CACHE_LINE, 0);
            assert_true(spans[a].begin + spans[a].bytes <= plan->bytes);
            for (size_t b = 0; b < a; b++) {
                bool apart = spans[a].begin + spans[a].bytes <= spans[b].begin || spans[b].begin + spans[b].bytes <= spans[a].begin;
                assert_true(apart || !spans[a].bytes || !spans[b].bytes);
            }
        }
        for (int v = 0; v < plan->source->variable_count; v++) {
            bool trained = plan->source->variables[v]->trainable;
            assert_int_equal(plan->gradients[v] != SIZE_MAX, trained);
            assert_true(!trained ||
                        plan->gradients[v] + (size_t)plan->source->variables[v]->count * sizeof(float) <= plan->lane_sums);
        }
        for (int k = 0; k < plan->program_count; k++) {
            for (int phase = 0; phase < plan->programs[k].phase_count; phase++) {
                assert_true(plan->programs[k].phases[phase].bytes <= plan->scratch_offset);
            }
        }
        planned_close(&p);
    }
}

/* What is allocated as the arena is what the plan says, and an evaluation keeps nothing of a batch. */
static size_t arena_bytes;

static void *allocate(void *user, size_t bytes, size_t alignment)
{
    (void)user;
    arena_bytes = alignment >= 4096 ? bytes : arena_bytes;
    return bwi_system_allocator.allocate(NULL, bytes, alignment);
}

static void release(void *user, void *memory, size_t bytes)
{
    (void)user;
    bwi_system_allocator.release(NULL, memory, bytes);
}

static void test_planned_is_allocated(void **state)
{
    (void)state;
    for (int m = 0; m < PLANNED_EXPRESSIONS; m++) {
        planned p;
        planned_model(&p, planned_expressions[m], 64, 9, 9, 3, 2);
        p.ctx->allocator.allocate = allocate;
        p.ctx->allocator.release = release;
        arena_bytes = 0;
        bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
        bw_history *history;
        check_ok(p.ctx, bw_fit(p.model, p.data, &options, &history));
        bw_run_facts facts = bw_history_facts(history);
        size_t parameters = 0;
        for (int v = 0; v < p.model->graph.variable_count; v++) {
            parameters += (size_t)p.model->graph.variables[v]->count * sizeof(float);
        }
        assert_true(arena_bytes > 0);
        /* Plain SGD has no slots; the rest are bookkeeping. */
        assert_true(facts.planned_bytes > arena_bytes + parameters && facts.planned_bytes < arena_bytes + parameters + (1 << 20));
        planned_close(&p);
    }
}

/* Everything that a training of a model of some size takes from the allocator is known before, within a hundredth. */
static size_t taken, most_taken;

static void *counted_allocate(void *user, size_t bytes, size_t alignment)
{
    (void)user;
    taken += bytes;
    most_taken = taken > most_taken ? taken : most_taken;
    return bwi_system_allocator.allocate(NULL, bytes, alignment);
}

static void counted_release(void *user, void *memory, size_t bytes)
{
    (void)user;
    taken -= bytes;
    bwi_system_allocator.release(NULL, memory, bytes);
}

static void test_all_is_known(void **state)
{
    (void)state;
    static const char *const large[] = {"conv2d(64,3,relu) conv2d(64,3,relu) flatten dense(500,relu) dense(10,softmax)",
                                        "flatten dense(2000,relu) dense(1000,relu) dense(10,softmax)"};
    for (size_t m = 0; m < BWI_COUNT(large); m++) {
        planned p;
        planned_model(&p, large[m], 64, 9, 9, 3, 2);
        check_ok(p.ctx, bw_compile(p.model, "adam", NULL, NULL));
        p.ctx->allocator.allocate = counted_allocate;
        p.ctx->allocator.release = counted_release;
        taken = most_taken = 0;
        bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
        bw_history *history;
        check_ok(p.ctx, bw_fit(p.model, p.data, &options, &history));
        size_t planned_bytes = bw_history_facts(history).planned_bytes;
        print_message("%s: planned %.2f MiB, taken %.2f MiB\n", large[m], (double)planned_bytes / (1 << 20),
                      (double)most_taken / (1 << 20));
        assert_true(most_taken >= planned_bytes / 100 * 99);
        assert_true(most_taken <= planned_bytes / 100 * 101);
        p.ctx->allocator = bwi_system_allocator; /* what is left was not counted from the beginning */
        planned_close(&p);
    }
}

/* ---- Budgets ---- */

static bool no_step(void *user, const bw_progress *progress)
{
    (void)progress;
    ++*(int *)user;
    return true;
}

static void test_smaller_and_smaller_budgets(void **state)
{
    (void)state;
    int refused = 0, choices = 0, steps = 0;
    bw_run_facts last = {0};
    for (size_t budget = (size_t)16 << 20; budget >= 1024; budget -= budget / 8) {
        planned p;
        planned_model(&p, model_text, 64, 9, 9, 3, 4);
        bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
        options.memory = budget;
        options.on_step = no_step;
        options.user = &steps;
        steps = 0;
        check_ok(p.ctx, bw_build(p.model, 3, (const int64_t[]){9, 9, 3}, 1));
        uint64_t before = bw_model_hash(p.model);
        bw_history *history;
        bw_status status = bw_fit(p.model, p.data, &options, &history);
        if (status != BW_OK) {
            char have[32];
            bwi_format_bytes(have, budget);
            check_fails(p.ctx, status, BW_RESOURCE_EXHAUSTED, "memory: a budget of |is too small|need ");
            assert_non_null(strstr(bw_message(p.ctx), have));
            assert_int_equal(steps, 0);
            assert_true(bw_model_hash(p.model) == before);
            refused++;
        } else {
            assert_int_equal(refused, 0); /* less never suffices where more did not */
            bw_run_facts facts = bw_history_facts(history);
            assert_true(facts.planned_bytes <= budget);
            assert_int_equal(steps, 2);
            if (last.tile) {
                assert_true(facts.tile <= last.tile && facts.lanes <= last.lanes && facts.workers <= last.workers);
                choices += facts.tile != last.tile || facts.lanes != last.lanes || facts.workers != last.workers;
            }
            last = facts;
        }
        planned_close(&p);
    }
    assert_true(refused > 0);
    assert_true(choices >= 3);
    assert_true(last.tile == 1 && last.workers == 1);
}

/* Lanes and workers are not part of a result of tile 1; the sums differ only in their order. */
static void test_a_budget_that_just_suffices(void **state)
{
    (void)state;
    planned p;
    planned_model(&p, model_text, 64, 9, 9, 3, 2);
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    bw_history *history;
    check_ok(p.ctx, bw_fit(p.model, p.data, &options, &history));
    bw_run_facts free_choice = bw_history_facts(history);
    options.memory = free_choice.planned_bytes;
    check_ok(p.ctx, bw_fit(p.model, p.data, &options, &history));
    bw_run_facts exact = bw_history_facts(history);
    assert_int_equal(exact.planned_bytes, free_choice.planned_bytes);
    assert_int_equal(exact.tile, free_choice.tile);
    options.memory = free_choice.planned_bytes - 1;
    check_ok(p.ctx, bw_fit(p.model, p.data, &options, &history));
    assert_true(bw_history_facts(history).planned_bytes < free_choice.planned_bytes);
    planned_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults_follow_from_the_model), cmocka_unit_test(test_as_asked),
        cmocka_unit_test(test_lanes_of_a_small_batch),         cmocka_unit_test(test_fewer_lanes_have_the_same_bits),
        cmocka_unit_test(test_what_cannot_be_asked),           cmocka_unit_test(test_parts_of_the_arena),
        cmocka_unit_test(test_planned_is_allocated),           cmocka_unit_test(test_all_is_known),
        cmocka_unit_test(test_smaller_and_smaller_budgets),    cmocka_unit_test(test_a_budget_that_just_suffices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
