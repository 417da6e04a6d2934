/*
 * Addresses, by brute force: each phase is run in thought, with a note on every cache line of whose value it holds. A value
 * that is read must still be there; what is written must not lie on what is being read, except where the op allows it.
 */
#include "support/planned.h"

#include "plan/internal.h"

enum { LINE = BWI_CACHE_LINE, NOBODY = -1 };

typedef struct memory {
    const bwi_plan *plan;
    const bwi_program *program;
    const bwi_phase *phase;
    int *owner; /* of each line: a value that is no view */
    size_t lines;
    int in_place; /* results that took the place of a source */
} memory;

static size_t first_line(const memory *m, int root)
{
    size_t offset = bwi_plan_offset(m->program, m->phase, root);
    assert_true(offset != SIZE_MAX && offset % LINE == 0);
    return offset / LINE;
}

static size_t line_count(const memory *m, int root)
{
    size_t bytes = bwi_plan_value_bytes(m->plan, &m->program->values[root], m->plan->tile);
    assert_true(bwi_plan_offset(m->program, m->phase, root) + bytes <= m->phase->bytes);
    return (bytes + LINE - 1) / LINE;
}

static void must_be_there(const memory *m, int value)
{
    int root = bwi_plan_root(m->program, value);
    assert_int_equal(bwi_plan_offset(m->program, m->phase, value),
                     bwi_plan_offset(m->program, m->phase, root)); /* a view is where its root is */
    for (size_t k = 0; k < line_count(m, root); k++) {
        assert_int_equal(m->owner[first_line(m, root) + k], root);
    }
}

static bool overlap(const memory *m, int a, int b)
{
    size_t a0 = first_line(m, a), b0 = first_line(m, b);
    return a0 < b0 + line_count(m, b) && b0 < a0 + line_count(m, a);
}

static bool may_replace(const memory *m, const bwi_instruction *i, int written, int read)
{
    int source = -1, result = -1;
    if (i->pass == BWI_PASS_FORWARD && (i->node->op->flags & BWI_OP_IN_PLACE)) {
        result = i->dst;
        source = i->src[0];
    } else if (i->pass == BWI_PASS_BACKWARD && (i->node->op->flags & BWI_OP_BACKWARD_IN_PLACE)) {
        result = i->diff_src[0];
        source = i->diff_dst;
    }
    return result >= 0 && source >= 0 && bwi_plan_root(m->program, result) == written &&
           bwi_plan_root(m->program, source) == read &&
           bwi_plan_offset(m->program, m->phase, written) == bwi_plan_offset(m->program, m->phase, read);
}

static void run(memory *m, const bwi_instruction *i)
{
    for (int k = 0; k < i->read_count; k++) {
        must_be_there(m, i->reads[k]);
    }
    if (i->pass == BWI_PASS_STORE) {
        must_be_there(m, i->dst);
        return;
    }
    int loaded[1] = {i->dst};
    const int *writes = i->pass == BWI_PASS_LOAD ? loaded : i->writes;
    int count = i->pass == BWI_PASS_LOAD ? 1 : i->write_count;
    for (int k = 0; k < count; k++) {
        assert_int_equal(bwi_plan_root(m->program, writes[k]), writes[k]);
        for (int r = 0; r < i->read_count; r++) {
            int read = bwi_plan_root(m->program, i->reads[r]);
            if (overlap(m, writes[k], read)) {
                assert_true(may_replace(m, i, writes[k], read));
                m->in_place++;
            }
        }
        for (int other = 0; other < k; other++) {
            assert_false(overlap(m, writes[k], writes[other]));
        }
    }
    for (int k = 0; k < count; k++) {
        for (size_t l = 0; l < line_count(m, writes[k]); l++) {
            m->owner[first_line(m, writes[k]) + l] = writes[k];
        }
    }
}

static int check_phase(const bwi_plan *plan, const bwi_plan_program *program, const bwi_phase *phase)
{
    memory m = {.plan = plan, .program = &program->program, .phase = phase, .lines = phase->bytes / LINE};
    assert_int_equal(phase->bytes % LINE, 0);
    m.owner = malloc((m.lines + 1) * sizeof *m.owner);
    for (size_t k = 0; k < m.lines; k++) {
        m.owner[k] = NOBODY;
    }
    for (int n = 0; n < phase->count; n++) {
        run(&m, &phase->instructions[n]);
    }
    /* What the user wants is there at the end. */
    for (int n = 0; n < phase->count; n++) {
        const bwi_instruction *i = &phase->instructions[n];
        for (int t = 0; t < program->target_count; t++) {
            if (i->pass == BWI_PASS_FORWARD && i->node == program->targets[t]) {
                must_be_there(&m, i->dst);
            }
        }
    }
    free(m.owner);
    return m.in_place;
}

static int check_model(const char *expression, int64_t batch, int64_t tile)
{
    bwi_session_options options = {.train = true, .evaluate = true, .predict = true, .batch = batch, .tile = tile};
    planned p;
    planned_model(&p, expression, 32, 9, 9, 3, 1);
    planned_open(&p, &options);
    int in_place = 0;
    for (int k = 0; k < p.plan->program_count; k++) {
        for (int phase = 0; phase < p.plan->programs[k].phase_count; phase++) {
            in_place += check_phase(p.plan, &p.plan->programs[k], &p.plan->programs[k].phases[phase]);
        }
    }
    planned_close(&p);
    return in_place;
}

static void test_no_value_is_overwritten(void **state)
{
    (void)state;
    for (int m = 0; m < PLANNED_EXPRESSIONS; m++) {
        for (int64_t tile = 1; tile <= 16; tile *= 4) {
            check_model(planned_expressions[m], 32, tile);
            check_model(planned_expressions[m], 0, tile);
        }
    }
}

/* ReLU works in place where its source dies; Softmax never does. */
static void test_in_place(void **state)
{
    (void)state;
    assert_true(check_model("flatten dense(40,relu) dense(10,softmax)", 32, 4) > 0);
    assert_int_equal(check_model("flatten dense(10,softmax)", 32, 4), 0);
}

/* Values that are not needed at the same time share bytes: a long chain takes no more than its two largest in inference. */
static void test_bytes_are_shared(void **state)
{
    (void)state;
    bwi_session_options options = {.predict = true, .tile = 8};
    planned p;
    planned_model(&p, "flatten dense(100) dense(100) dense(100) dense(100) dense(100) dense(10)", 8, 4, 4, 4, 1);
    planned_open(&p, &options);
    size_t two = 2 * bwi_size_align(8 * 100 * sizeof(float), LINE);
    assert_true(p.plan->programs[0].phases[0].bytes <= two);
    planned_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_value_is_overwritten),
        cmocka_unit_test(test_in_place),
        cmocka_unit_test(test_bytes_are_shared),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
