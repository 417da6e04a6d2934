/* Phases: where BatchNormalization cuts, what is kept or computed again, and that nothing is added twice. */
#include "support/planned.h"

#include "plan/internal.h"

static int count_in(const bwi_phase *phase, bwi_pass pass, const bwi_op *op)
{
    int count = 0;
    for (int n = 0; n < phase->count; n++) {
        count += phase->instructions[n].pass == pass && (!op || phase->instructions[n].node->op == op);
    }
    return count;
}

static void open_model(planned *p, const char *expression, int64_t batch)
{
    bwi_session_options options = {.train = true, .evaluate = true, .batch = batch, .tile = 4, .lanes = 4};
    planned_model(p, expression, 32, 9, 9, 3, 1);
    planned_open(p, &options);
    assert_int_equal(p->plan->keep, batch > 0);
}

/* In every phase: what is read has been written or loaded before. */
static void check_flow(const bwi_plan_program *program)
{
    const bwi_program *p = &program->program;
    bool *there = malloc((size_t)p->value_count);
    for (int level = 0; level < program->phase_count; level++) {
        const bwi_phase *phase = &program->phases[level];
        memset(there, 0, (size_t)p->value_count);
        for (int n = 0; n < phase->count; n++) {
            const bwi_instruction *i = &phase->instructions[n];
            assert_true(i->pass == BWI_PASS_LOAD || i->pass == BWI_PASS_STORE || i->level <= level);
            for (int k = 0; k < i->read_count; k++) {
                assert_true(there[bwi_plan_root(p, i->reads[k])]);
            }
            for (int k = 0; k < i->write_count; k++) {
                there[i->writes[k]] = true;
            }
            if (i->pass == BWI_PASS_LOAD) {
                there[i->dst] = true;
            } else if (i->pass == BWI_PASS_STORE) {
                assert_true(there[i->dst]);
            }
        }
    }
    free(there);
}

/* Instructions that add to sums or gradients run in one phase only: their own. */
static void check_sums(const bwi_plan_program *program)
{
    for (int n = 0; n < program->program.count; n++) {
        const bwi_instruction *i = &program->program.instructions[n];
        if (i->pass != BWI_PASS_STATISTICS && i->pass != BWI_PASS_BACKWARD_STATISTICS && i->pass != BWI_PASS_BACKWARD_WEIGHTS) {
            continue;
        }
        int found = 0;
        for (int level = 0; level < program->phase_count; level++) {
            for (int k = 0; k < program->phases[level].count; k++) {
                const bwi_instruction *other = &program->phases[level].instructions[k];
                if (other->node == i->node && other->pass == i->pass) {
                    assert_int_equal(level, i->level);
                    found++;
                }
            }
        }
        assert_int_equal(found, 1);
    }
}

static int level_with(const bwi_plan_program *program, bwi_pass pass, int value)
{
    for (int level = program->phase_count - 1; level >= 0; level--) {
        for (int k = 0; k < program->phases[level].count; k++) {
            const bwi_instruction *i = &program->phases[level].instructions[k];
            if (i->pass == pass && i->dst == value) {
                return level;
            }
        }
    }
    return -1;
}
static int last_load(const bwi_plan_program *program, int value)
{
    return level_with(program, BWI_PASS_LOAD, value);
}
static int store_of(const bwi_plan_program *program, int value)
{
    return level_with(program, BWI_PASS_STORE, value);
}

/* A stored value is stored once, by the phase that knows it, before any phase loads it; a place has one value at a time. */
static void check_store(const bwi_plan *plan, const bwi_plan_program *program)
{
    const bwi_program *p = &program->program;
    for (int v = 0; v < p->value_count; v++) {
        int stores = 0, loads = 0, stored_at = -1;
        for (int level = 0; level < program->phase_count; level++) {
            for (int k = 0; k < program->phases[level].count; k++) {
                const bwi_instruction *i = &program->phases[level].instructions[k];
                if (i->dst != v || (i->pass != BWI_PASS_STORE && i->pass != BWI_PASS_LOAD)) {
                    continue;
                }
                stores += i->pass == BWI_PASS_STORE;
                stored_at = i->pass == BWI_PASS_STORE ? level : stored_at;
                loads += i->pass == BWI_PASS_LOAD;
                assert_true(i->pass == BWI_PASS_STORE || level > stored_at);
            }
        }
        assert_int_equal(stores, program->stored[v] != SIZE_MAX);
        assert_int_equal(loads > 0, stores);
        for (int other = 0; other < v && stores; other++) {
            size_t a = program->stored[v], b = program->stored[other];
            size_t a_end = a + bwi_plan_value_bytes(plan, &p->values[v], plan->tile);
            bool apart = b == SIZE_MAX || a_end <= b || b + bwi_plan_value_bytes(plan, &p->values[other], plan->tile) <= a;
            assert_true(apart || last_load(program, v) <= store_of(program, other) ||
                        last_load(program, other) <= store_of(program, v));
        }
        assert_true(!stores || program->stored[v] + bwi_plan_value_bytes(plan, &p->values[v], plan->tile) <= plan->store_slot);
    }
}

static void test_invariants(void **state)
{
    (void)state;
    for (int m = 0; m < PLANNED_EXPRESSIONS; m++) {
        for (int64_t batch = 0; batch <= 32; batch += 32) {
            planned p;
            open_model(&p, planned_expressions[m], batch);
            for (int k = 0; k < p.plan->program_count; k++) {
                check_flow(&p.plan->programs[k]);
                check_sums(&p.plan->programs[k]);
                check_store(p.plan, &p.plan->programs[k]);
            }
            planned_close(&p);
        }
    }
}

static void test_cuts(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int phases;
    } cases[] = {
        {"flatten dense(10,softmax)", 1},
        {"flatten dense(10) batchnorm softmax", 3},
        {"batchnorm flatten dense(10,softmax)", 2}, /* nobody wants the input's difference */
        {"conv2d(4,3) batchnorm relu conv2d(4,3) batchnorm relu flatten dense(10,softmax)", 5},
    };
    for (size_t i = 0; i < BWI_COUNT(cases); i++) {
        planned p;
        open_model(&p, cases[i].text, 32);
        assert_int_equal(p.plan->programs[0].phase_count, cases[i].phases);
        assert_int_equal(p.plan->programs[1].phase_count, 1); /* evaluation */
        planned_close(&p);
    }
}

/* Kept: a convolution runs forward once, its output is loaded. Not kept: it runs again in each phase that needs it. */
static void test_keeping_and_computing_again(void **state)
{
    (void)state;
    planned p;
    open_model(&p, "conv2d(4,3) batchnorm relu flatten dense(10,softmax)", 32);
    const bwi_plan_program *program = &p.plan->programs[0];
    assert_int_equal(program->phase_count, 3);
    assert_int_equal(count_in(&program->phases[0], BWI_PASS_FORWARD, &bwi_op_conv2d), 1);
    assert_int_equal(count_in(&program->phases[0], BWI_PASS_STATISTICS, &bwi_op_batchnorm), 1);
    assert_int_equal(count_in(&program->phases[0], BWI_PASS_STORE, NULL), 1);
    assert_int_equal(count_in(&program->phases[0], BWI_PASS_LOAD, NULL), 0);
    assert_int_equal(count_in(&program->phases[1], BWI_PASS_FORWARD, &bwi_op_conv2d), 0);
    assert_int_equal(count_in(&program->phases[1], BWI_PASS_LOAD, &bwi_op_conv2d), 1);
    assert_int_equal(count_in(&program->phases[1], BWI_PASS_BACKWARD_STATISTICS, &bwi_op_batchnorm), 1);
    assert_int_equal(count_in(&program->phases[1], BWI_PASS_BACKWARD_WEIGHTS, &bwi_op_dense), 1);
    assert_int_equal(count_in(&program->phases[2], BWI_PASS_FORWARD, &bwi_op_conv2d), 0);
    assert_int_equal(count_in(&program->phases[2], BWI_PASS_FORWARD, &bwi_op_dense), 0);
    assert_int_equal(count_in(&program->phases[2], BWI_PASS_BACKWARD_WEIGHTS, &bwi_op_conv2d), 1);
    assert_true(p.plan->items.store > 0);
    /* Every tile of the batch has a slot, however it is cut. */
    assert_true(p.plan->store_tiles >= 32 / 4);
    planned_close(&p);

    open_model(&p, "conv2d(4,3) batchnorm relu flatten dense(10,softmax)", 0);
    program = &p.plan->programs[0];
    for (int k = 0; k < 3; k++) {
        assert_int_equal(count_in(&program->phases[k], BWI_PASS_FORWARD, &bwi_op_conv2d), 1);
        assert_int_equal(count_in(&program->phases[k], BWI_PASS_STORE, NULL), 0);
        assert_int_equal(count_in(&program->phases[k], BWI_PASS_LOAD, NULL), 0);
    }
    assert_int_equal(p.plan->store_slot, 0);
    assert_int_equal(p.plan->items.store, 0);
    planned_close(&p);
}

/* The choice changes no bit. */
static void test_both_give_the_same_bits(void **state)
{
    (void)state;
    for (int m = 0; m < PLANNED_EXPRESSIONS; m++) {
        uint64_t hash[2];
        for (int again = 0; again < 2; again++) {
            planned p;
            open_model(&p, planned_expressions[m], again ? 0 : 32);
            for (int step = 0; step < 3; step++) {
                bwi_piece piece = {.dataset = p.data, .count = 29 + step};
                check_ok(p.ctx, bwi_session_feed(&p.session, BWI_PROGRAM_TRAIN, &piece, NULL));
                check_ok(p.ctx, bwi_session_apply(&p.session));
            }
            hash[again] = bw_model_hash(p.model);
            planned_close(&p);
        }
        assert_true(hash[0] == hash[1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_invariants),
        cmocka_unit_test(test_cuts),
        cmocka_unit_test(test_keeping_and_computing_again),
        cmocka_unit_test(test_both_give_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
