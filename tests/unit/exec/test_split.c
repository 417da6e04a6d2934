/*
 * Layers split over workers: a deferred gradient, summed block by block at the update, has the bits of the one that is stored in
 * the lanes, and lies within the bound that was computed from its factors. label: thread
 */
#include "exec/internal.h"
#include "support/planned.h"

#include <math.h>
#include <string.h>

/* More than 1 MiB of weights: the plan splits. */
static const char *const wide = "flatten dense(600,relu) dense(500,relu) dense(10,softmax)";

enum { BATCH = 29, TILE = 4, LANES = 8, WORKERS = 3, VARIABLES = 6 };

static void take(void *user, const bwi_variable *variable, int64_t first, int64_t count, const void *gradient)
{
    float **gradients = user;
    variable->kernels->memory->read(gradients[variable->index] + first, gradient, (size_t)count * sizeof(float));
}

static void open_model(planned *p, int64_t samples, float **gradients)
{
    bwi_session_options options = {.train = true, .batch = BATCH, .tile = TILE, .lanes = LANES, .seed = 3};
    planned_model(p, wide, 64, 9, 9, 3, WORKERS);
    planned_open(p, &options);
    assert_int_equal(p->plan->split_tiles, bwi_tiles_of(BATCH, TILE));
    assert_int_equal(p->plan->source->variable_count, VARIABLES);
    bwi_piece piece = {.dataset = p->data, .count = samples};
    check_ok(p->ctx, bwi_session_feed(&p->session, BWI_PROGRAM_TRAIN, &piece, NULL));
    assert_int_equal(p->session.exec->deferred, BWI_DEFERRED);
    for (int v = 0; v < VARIABLES; v++) {
        gradients[v] = calloc((size_t)p->plan->source->variables[v]->count, sizeof(float));
    }
}

static void check_same(int64_t samples)
{
    float *gradients[2][VARIABLES];
    planned p[2];
    for (int stored = 0; stored < 2; stored++) {
        bwi_exec *exec;
        open_model(&p[stored], samples, gradients[stored]);
        exec = p[stored].session.exec;
        if (stored) {
            bwi_split_settle(exec);
            assert_int_equal(exec->deferred, BWI_DEFERRED_NONE);
        }
        check_ok(p[stored].ctx, bwi_exec_reduce(exec, NULL));
        assert_int_equal(exec->deferred, stored ? BWI_DEFERRED_NONE : BWI_DEFERRED_STAGED);
        bwi_exec_update(exec, &(bwi_sink){.take = take, .user = (void *)gradients[stored]});
        assert_int_equal(exec->deferred, BWI_DEFERRED_NONE);
    }
    for (int v = 0; v < VARIABLES; v++) {
        size_t bytes = (size_t)p[0].plan->source->variables[v]->count * sizeof(float);
        assert_memory_equal(gradients[0][v], gradients[1][v], bytes);
        free(gradients[0][v]);
        free(gradients[1][v]);
    }
    planned_close(&p[0]);
    planned_close(&p[1]);
}

static void test_same_bits(void **state)
{
    (void)state;
    static const int64_t samples[] = {1, 4, 7, 12, 28, BATCH};
    for (size_t k = 0; k < BWI_COUNT(samples); k++) {
        check_same(samples[k]);
    }
}

/* The largest element of an instruction's gradients is below the sum of its tiles' bounds. */
static void test_bounds(void **state)
{
    (void)state;
    planned p;
    float *gradients[VARIABLES];
    open_model(&p, BATCH, gradients);
    bwi_exec *exec = p.session.exec;
    assert_true(bwi_split_bounded(exec));
    const bwi_phase *phase = &p.plan->programs[0].phases[0];
    int tiles = p.plan->split_tiles, first = phase->count - phase->deferred;
    double bounds[VARIABLES] = {0};
    for (int n = 0; n < phase->deferred; n++) {
        for (int t = 0; t < tiles; t++) {
            bounds[phase->instructions[first + n].node->variable[0]->index] += exec->bounds[n * tiles + t];
        }
    }
    check_ok(p.ctx, bwi_exec_reduce(exec, NULL));
    bwi_exec_update(exec, &(bwi_sink){.take = take, .user = (void *)gradients});
    int bounded = 0;
    for (int v = 0; v < VARIABLES; v++) {
        double largest = 0;
        for (int64_t i = 0; i < p.plan->source->variables[v]->count; i++) {
            largest = fmax(largest, fabs((double)gradients[v][i]));
        }
        assert_true(bounds[v] == 0 || (largest > 0 && largest <= bounds[v]));
        bounded += bounds[v] > 0;
        free(gradients[v]);
    }
    assert_int_equal(bounded, phase->deferred);
    planned_close(&p);
}

static void scale_variable(const planned *p, int v, float factor, int64_t ones)
{
    const bwi_variable *variable = p->plan->source->variables[v];
    size_t count = (size_t)bwi_shape_count(&variable->shape);
    float *values = malloc(count * sizeof *values);
    check_ok(p->ctx, bw_variable_get(p->model, v, values, count));
    for (size_t i = 0; i < count; i++) {
        values[i] = (int64_t)i < ones ? -1 : values[i] * factor;
    }
    check_ok(p->ctx, bw_variable_set(p->model, v, values, count));
    free(values);
}

/* A huge value, which all units of the first layer turn into zero, beside large differences of other samples: the bound does not
 * exclude overflow, so the gradient is stored and examined. It is finite. */
static void test_large_factors(void **state)
{
    (void)state;
    planned p;
    float *gradients[VARIABLES];
    bwi_session_options options = {.train = true, .batch = BATCH, .tile = TILE, .lanes = LANES, .seed = 3};
    planned_model(&p, wide, 64, 9, 9, 3, WORKERS);
    p.x[0] = 3e38F;
    planned_open(&p, &options);
    scale_variable(&p, 0, 1, 600); /* the first input's weights: -1 */
    scale_variable(&p, 2, 30, 0);
    scale_variable(&p, 4, 30, 0);
    bwi_exec *exec = p.session.exec;
    bwi_exec_touch(exec);
    bwi_piece piece = {.dataset = p.data, .count = BATCH};
    check_ok(p.ctx, bwi_session_feed(&p.session, BWI_PROGRAM_TRAIN, &piece, NULL));
    assert_int_equal(exec->deferred, BWI_DEFERRED);
    assert_false(bwi_split_bounded(exec));
    check_ok(p.ctx, bwi_exec_reduce(exec, NULL));
    assert_int_equal(exec->deferred, BWI_DEFERRED_NONE);
    for (int v = 0; v < VARIABLES; v++) {
        gradients[v] = calloc((size_t)p.plan->source->variables[v]->count, sizeof(float));
    }
    bwi_exec_update(exec, &(bwi_sink){.take = take, .user = (void *)gradients});
    for (int v = 0; v < VARIABLES; v++) {
        assert_int_equal(p.plan->kernels->lanes->finiteness(p.plan->source->variables[v]->count, gradients[v]), BWI_FINITE);
        free(gradients[v]);
    }
    planned_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_large_factors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
