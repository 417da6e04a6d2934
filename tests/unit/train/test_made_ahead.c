/* Samples that are made ahead are an item of the plan, which is what they take, and stay within the budget. label: thread */
#include "support/planned.h"

enum { SIDE = 64, VALUES = SIDE * SIDE, COUNT = 4000 };

static atomic_int calls[COUNT];

static bool make(void *user, bw_sample *sample, void *const *values)
{
    (void)user;
    atomic_fetch_add(&calls[sample->number], 1);
    for (int i = 0; values[0] && i < VALUES; i++) {
        ((float *)values[0])[i] = (float)((sample->number + i) % 7);
    }
    if (values[1]) {
        *(int32_t *)values[1] = (int32_t)(sample->number % PLANNED_CLASSES);
    }
    return true;
}

static bw_dataset *made(bw_context *ctx)
{
    const bw_field fields[] = {{"x", {.dtype = BW_F32, .ndim = 4, .shape = {COUNT, SIDE, SIDE, 1}}},
                               {"y", {.dtype = BW_I32, .ndim = 1, .shape = {COUNT}}}};
    return bw_from_function(ctx, fields, 2, make, NULL);
}

static size_t open_with(size_t memory, int64_t batch, size_t *taken, size_t *total)
{
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.workers = 2;
    bw_context *ctx = bw_open(&options);
    bw_dataset *data = made(ctx);
    bw_model *model = bw_model_parse(ctx, "flatten dense(10,softmax)");
    check_ok(ctx, bw_compile(model, "sgd", NULL, NULL));
    bwi_session session;
    bwi_session_options wanted = {.train = true, .batch = batch, .memory = memory};
    check_ok(ctx, bwi_session_open(&session, model, data, &wanted));
    const bwi_plan *plan = bwi_exec_plan(session.exec);
    bwi_piece piece = {.dataset = data, .count = batch};
    size_t before = bwi_allocated_bytes(ctx), item = plan->items.data;
    *total = bwi_plan_total(plan);
    check_ok(ctx, bwi_session_feed(&session, BWI_PROGRAM_TRAIN, &piece, NULL));
    *taken = bwi_allocated_bytes(ctx) - before;
    bwi_session_close(&session);
    bw_close(ctx);
    return item;
}

static void test_item_is_what_is_taken(void **state)
{
    (void)state;
    static const struct {
        size_t memory;
        int64_t batch;
    } cases[] = {{0, 32}, {0, 1000}, {64 << 20, 1000}, {16 << 20, 1000}, {6 << 20, 16}};
    for (size_t i = 0; i < BWI_COUNT(cases); i++) {
        size_t taken, total, item = open_with(cases[i].memory, cases[i].batch, &taken, &total);
        assert_true(taken > 0 && taken <= item && item - taken < item / 8 + 65536);
        if (cases[i].memory) {
            assert_true(total <= cases[i].memory);
            assert_true(item <= cases[i].memory / 2);
        }
    }
    /* Two batches of 32 and what workers hold: not as many as could be. */
    size_t taken, total;
    assert_true(open_with(0, 32, &taken, &total) < (size_t)400 * VALUES * sizeof(float));
}

/* Whole-batch layers go through a batch several times; its samples are made once. */
static void test_made_once(void **state)
{
    (void)state;
    enum { BATCH = 600 };
    bw_context *ctx = bw_open(NULL);
    bw_dataset *data = made(ctx);
    bw_model *model = bw_model_parse(ctx, "flatten dense(8) batchnorm relu dense(8) batchnorm relu dense(10,softmax)");
    check_ok(ctx, bw_compile(model, "sgd", NULL, NULL));
    bwi_session session;
    check_ok(ctx, bwi_session_open(&session, model, data, &(bwi_session_options){.train = true, .batch = BATCH}));
    for (int i = 0; i < COUNT; i++) {
        atomic_store(&calls[i], 0);
    }
    bwi_piece piece = {.dataset = data, .count = BATCH};
    check_ok(ctx, bwi_session_feed(&session, BWI_PROGRAM_TRAIN, &piece, NULL));
    for (int i = 0; i < BATCH; i++) {
        assert_int_equal(atomic_load(&calls[i]), 1);
    }
    bwi_session_close(&session);
    bw_close(ctx);
}

/* Arrays take nothing, and are not asked. */
static void test_arrays(void **state)
{
    (void)state;
    planned p;
    planned_model(&p, "flatten dense(10,softmax)", 20, 4, 4, 1, 1);
    planned_open(&p, &(bwi_session_options){.train = true, .batch = 5});
    assert_int_equal(p.plan->items.data, 0);
    planned_close(&p);
}

/* What is swapped and read from disk is counted from the beginning of a run. */
static void test_pressure(void **state)
{
    (void)state;
    planned p;
    bw_history *history;
    planned_model(&p, "flatten dense(10,softmax)", 20, 4, 4, 1, 1);
    check_ok(p.ctx, bw_fit(p.model, p.data, NULL, &history));
    bw_run_facts facts = bw_history_facts(history);
    assert_true(facts.major_faults >= 0 && facts.major_faults <= bwi_memory_faults());
    assert_true(facts.swapped_bytes <= bwi_memory_swapped(p.ctx) + 1);
    planned_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_item_is_what_is_taken), cmocka_unit_test(test_made_once),
                                       cmocka_unit_test(test_arrays), cmocka_unit_test(test_pressure)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
