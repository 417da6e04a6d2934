/* The update: lanes are added as a binary tree, every element goes to the sink once, norms and scaling are those of the sum. */
#include "exec/internal.h"
#include "support/planned.h"

#include <math.h>
#include <string.h>

static const char *const dense = "flatten dense(100,relu) dense(10,softmax)";

enum { LANES = 4, TILE = 4 };

static void open_model(planned *p, int64_t samples)
{
    bwi_session_options options = {.train = true, .batch = 64, .tile = TILE, .lanes = LANES, .seed = 3};
    planned_model(p, dense, 64, 9, 9, 3, 2);
    planned_open(p, &options);
    bwi_piece piece = {.dataset = p->data, .count = samples};
    check_ok(p->ctx, bwi_session_feed(&p->session, BWI_PROGRAM_TRAIN, &piece, NULL));
}

/* ---- What a sink gets ---- */

typedef struct taken {
    float *gradient[8]; /* by variable */
    int *times[8];
} taken;

static void take(void *user, const bwi_variable *variable, int64_t first, int64_t count, const void *gradient)
{
    taken *t = user;
    variable->kernels->memory->read(t->gradient[variable->index] + first, gradient, (size_t)count * sizeof(float));
    for (int64_t i = 0; i < count; i++) {
        t->times[variable->index][first + i]++;
    }
}

static void open_taken(const planned *p, taken *t)
{
    for (int v = 0; v < p->plan->source->variable_count; v++) {
        size_t count = (size_t)p->plan->source->variables[v]->count;
        t->gradient[v] = calloc(count, sizeof(float));
        t->times[v] = calloc(count, sizeof(int));
    }
}

static void close_taken(const planned *p, const taken *t)
{
    for (int v = 0; v < p->plan->source->variable_count; v++) {
        free(t->gradient[v]);
        free(t->times[v]);
    }
}

/* ---- The tree ---- */

/* Of a block of `width` lanes from `lane` on, of which only those below `used` hold anything. */
static float tree(float *const *lanes, int lane, int width, int used, int64_t i)
{
    if (width == 1) {
        return lanes[lane][i];
    }
    float low = tree(lanes, lane, width / 2, used, i);
    return lane + width / 2 < used ? low + tree(lanes, lane + width / 2, width / 2, used, i) : low;
}

/* The gradient of variable v in each lane, before the lanes are added. */
static void read_lanes(const planned *p, int v, float *lanes[LANES])
{
    const bwi_variable *variable = p->plan->source->variables[v];
    for (int lane = 0; lane < LANES; lane++) {
        lanes[lane] = malloc((size_t)variable->count * sizeof(float));
        p->plan->kernels->memory->read(lanes[lane], bwi_exec_lane(p->session.exec, lane) + p->plan->gradients[v],
                                       (size_t)variable->count * sizeof(float));
    }
}

static void check_tree(int64_t samples)
{
    planned p;
    open_model(&p, samples);
    int64_t tiles = bwi_tiles_of(samples, TILE);
    int used = tiles < LANES ? (int)tiles : LANES;
    float *lanes[8][LANES];
    taken t;
    open_taken(&p, &t);
    for (int v = 0; v < p.plan->source->variable_count; v++) {
        read_lanes(&p, v, lanes[v]);
    }
    check_ok(p.ctx, bwi_exec_reduce(p.session.exec, NULL));
    bwi_exec_update(p.session.exec, &(bwi_sink){.take = take, .user = &t});
    for (int v = 0; v < p.plan->source->variable_count; v++) {
        for (int64_t i = 0; i < p.plan->source->variables[v]->count; i++) {
            assert_int_equal(t.times[v][i], 1);
            assert_true(t.gradient[v][i] == tree(lanes[v], 0, LANES, used, i));
        }
        for (int lane = 0; lane < LANES; lane++) {
            free(lanes[v][lane]);
        }
    }
    close_taken(&p, &t);
    planned_close(&p);
}

static void test_tree_of_lanes(void **state)
{
    (void)state;
    static const int64_t samples[] = {1, 4, 5, 7, 12, 16, 47, 64}; /* one to all lanes, one to many tiles each */
    for (size_t k = 0; k < BWI_COUNT(samples); k++) {
        check_tree(samples[k]);
    }
}

/* ---- Norms and scaling ---- */

static void test_norms(void **state)
{
    (void)state;
    planned p;
    open_model(&p, 47);
    taken t;
    open_taken(&p, &t);
    double squared = 0, total = 0;
    check_ok(p.ctx, bwi_exec_reduce(p.session.exec, &squared));
    double found[8];
    for (int v = 0; v < p.plan->source->variable_count; v++) {
        found[v] = bwi_exec_squared_norm(p.session.exec, p.plan->source->variables[v]);
    }
    bwi_exec_update(p.session.exec, &(bwi_sink){.take = take, .user = &t});
    for (int v = 0; v < p.plan->source->variable_count; v++) {
        double expected = 0;
        for (int64_t i = 0; i < p.plan->source->variables[v]->count; i++) {
            expected += (double)t.gradient[v][i] * (double)t.gradient[v][i];
        }
        assert_true(fabs(found[v] - expected) <= 1e-9 * expected);
        total += expected;
    }
    assert_true(fabs(squared - total) <= 1e-9 * total);
    close_taken(&p, &t);
    planned_close(&p);
}

/* A half is exact, so every bit of the scaled sum is known. */
static void test_scale(void **state)
{
    (void)state;
    taken t[2];
    planned p[2];
    for (int k = 0; k < 2; k++) {
        open_model(&p[k], 47);
        open_taken(&p[k], &t[k]);
        if (k) {
            bwi_exec_scale(p[k].session.exec, 0.5F);
        }
        check_ok(p[k].ctx, bwi_exec_reduce(p[k].session.exec, NULL));
        bwi_exec_update(p[k].session.exec, &(bwi_sink){.take = take, .user = &t[k]});
    }
    for (int v = 0; v < p[0].plan->source->variable_count; v++) {
        for (int64_t i = 0; i < p[0].plan->source->variables[v]->count; i++) {
            assert_true(t[1].gradient[v][i] == t[0].gradient[v][i] * 0.5F);
        }
    }
    for (int k = 0; k < 2; k++) {
        close_taken(&p[k], &t[k]);
        planned_close(&p[k]);
    }
}

/* Asking for the norm in between changes nothing but the order of sums: the same samples again double the gradient. */
static void test_norm_goes_on(void **state)
{
    (void)state;
    planned p;
    double once, again;
    open_model(&p, 16);
    check_ok(p.ctx, bwi_exec_norm(p.session.exec, &once));
    assert_int_equal(bwi_exec_samples(p.session.exec), 16);
    check_ok(p.ctx, bwi_exec_norm(p.session.exec, &again));
    assert_true(once == again);
    bwi_piece piece = {.dataset = p.data, .count = 16};
    check_ok(p.ctx, bwi_session_feed(&p.session, BWI_PROGRAM_TRAIN, &piece, NULL));
    check_ok(p.ctx, bwi_exec_norm(p.session.exec, &again));
    assert_true(fabs(again - 4 * once) <= 1e-5 * again);
    planned_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tree_of_lanes),
        cmocka_unit_test(test_norms),
        cmocka_unit_test(test_scale),
        cmocka_unit_test(test_norm_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
