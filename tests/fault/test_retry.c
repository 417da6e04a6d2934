/*
 * The system refuses although the plan fitted: RESOURCE_EXHAUSTED, with model, optimizer and data as before, and the same program
 * goes on with a smaller budget.
 */
#include "support/check.h"

#include "base/base.h"

#include <stdatomic.h>

static const char *const models[] = {
    "conv2d(16,3,relu) conv2d(32,3,relu) maxpool2d(2) flatten dense(128,relu) dense(10,softmax)",
    "conv2d(16,3) batchnorm relu conv2d(16,3) batchnorm relu flatten dense(10,softmax)",
    "flatten dense(500,relu) dense(500,relu) dense(10,softmax)",
};

/* A system that has so many bytes. */
typedef struct machine {
    atomic_size_t taken, refused;
    size_t bytes;
} machine;

static void *allocate(void *user, size_t bytes, size_t alignment)
{
    machine *m = user;
    if (atomic_fetch_add(&m->taken, bytes) + bytes > m->bytes) {
        atomic_fetch_sub(&m->taken, bytes);
        atomic_fetch_add(&m->refused, 1);
        return NULL;
    }
    return bwi_system_allocator.allocate(NULL, bytes, alignment);
}

static void release(void *user, void *memory, size_t bytes)
{
    machine *m = user;
    atomic_fetch_sub(&m->taken, bytes);
    bwi_system_allocator.release(NULL, memory, bytes);
}

typedef struct program {
    machine machine;
    bw_context *ctx;
    bw_dataset *data;
    bw_model *model;
    bw_fit_options options;
} program;

static void open_program(program *p, const char *text)
{
    *p = (program){.machine = {.bytes = SIZE_MAX}, .options = BW_FIT_OPTIONS_DEFAULT};
    bw_allocator allocator = {.user = &p->machine, .allocate = allocate, .release = release};
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.allocator = &allocator;
    options.workers = 2;
    p->ctx = bw_open(&options);
    p->data = bw_read(p->ctx, "synth:images?n=96&shape=14x14x3&classes=10", NULL);
    p->model = bw_model_parse(p->ctx, text);
    p->options.batch = 48;
    p->options.tile = 16;
    p->options.lanes = 4;
    check_ok(p->ctx, bw_compile(p->model, "adam", NULL, NULL));
}

static bw_run_facts fit(program *p)
{
    bw_history *history = NULL;
    check_ok(p->ctx, bw_fit(p->model, p->data, &p->options, &history));
    return bw_history_facts(history);
}

static void test_a_smaller_budget_after_a_refusal(void **state)
{
    (void)state;
    for (size_t m = 0; m < BWI_COUNT(models); m++) {
        program calm, refused;
        open_program(&calm, models[m]);
        size_t planned = fit(&calm).planned_bytes;
        fit(&calm);
        open_program(&refused, models[m]);
        fit(&refused);
        uint64_t hash = bw_model_hash(refused.model);
        size_t held = atomic_load(&refused.machine.taken);
        int refusals = 0;
        /* Variables and slots are there already. Less and less is left for the rest of the plan. */
        for (size_t left = planned; left > planned / 64; left -= left / 5) {
            refused.machine.bytes = held + left;
            atomic_store(&refused.machine.refused, 0);
            bw_history *history = NULL;
            refused.options.memory = 0;
            bw_status status = bw_fit(refused.model, refused.data, &refused.options, &history);
            if (status == BW_OK) {
                uint64_t expected = bw_model_hash(calm.model);
                assert_true(bw_model_hash(refused.model) == expected);
                fit(&calm);
                hash = expected;
                bw_history_free(history);
                held = atomic_load(&refused.machine.taken);
                continue;
            }
            check_fails(refused.ctx, status, BW_RESOURCE_EXHAUSTED, "cannot allocate");
            assert_true(atomic_load(&refused.machine.refused) > 0);
            assert_true(bw_model_hash(refused.model) == hash);
            assert_int_equal(atomic_load(&refused.machine.taken), held);
            refusals++;
            break;
        }
        assert_int_equal(refusals, 1);
        /* The same memory, and a budget within it: the history and the data's own few bytes come on top. */
        bw_status status = BW_RESOURCE_EXHAUSTED;
        for (size_t budget = planned; status != BW_OK && budget > planned / 64; budget -= budget / 50) {
            refused.options.memory = budget;
            status = bw_fit(refused.model, refused.data, &refused.options, NULL);
        }
        check_ok(refused.ctx, status);
        assert_true(bw_model_hash(refused.model) != hash);
        bw_close(refused.ctx);
        assert_int_equal(atomic_load(&refused.machine.taken), 0);
        bw_close(calm.ctx);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_a_smaller_budget_after_a_refusal)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
