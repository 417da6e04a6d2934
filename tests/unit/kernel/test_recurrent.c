/*
 * Recurrent kernels of every table against the reference: all cells, sizes around those of blocks and panels, masks, both
 * directions, dropped states, states that are given and taken, and activations whose derivative is computed from y or from x.
 */
#include "support/kernel_check.h"

#include "kernel/packing.h"

static const bwi_cell_function sigmoid = {.kind = BWI_SIGMOID}, hyperbolic = {.kind = BWI_TANH};
static const bwi_cell_function silu = {.kind = BWI_SILU, .of_input = true}, gelu = {.kind = BWI_GELU, .of_input = true};

typedef struct run {
    bwi_recurrent_memory m;
    float *y, *dx, *dw, *db, *begin[2];
} run;

typedef struct sizes {
    int64_t x, y, kept, scratch, weights, turned, bias, state;
} sizes;

static sizes sizes_of(const bwi_recurrent *k)
{
    const bwi_packing_kernels *p = &bwi_packing_host;
    int64_t gates = bwi_cell_of(k->cell).gates;
    return (sizes){.x = k->n * k->steps * gates * k->units,
                   .y = k->n * bwi_recurrent_rows(k) * k->units,
                   .state = k->n * k->units,
                   .kept = p->recurrent_kept(k),
                   .scratch = 2 * p->recurrent_scratch(k), /* the reference's are doubles */
                   .weights = p->recurrent_floats(k->cell, k->units),
                   .turned = p->recurrent_turned(k->cell, k->units),
                   .bias = 2 * gates * k->units};
}

static run run_all(const bwi_kernels *table, const bwi_recurrent *k, bwi_recurrent_memory m, const float *dy)
{
    sizes z = sizes_of(k);
    float *turned = output_floats(z.turned);
    run r = {
        .m = m, .y = output_floats(z.y), .dx = output_floats(z.x), .dw = output_floats(z.weights), .db = output_floats(z.bias)};
    r.m.kept = output_floats(z.kept);
    r.m.scratch = output_floats(z.scratch);
    r.m.turned = turned;
    memset(r.dw, 0, (size_t)z.weights * sizeof(float)); /* what fills up panels is left alone, or cleared */
    table->recurrent_turn(k->cell, k->units, m.weights, turned);
    table->recurrent_forward(k, &r.m, r.y);
    table->recurrent_backward(k, &r.m, dy);
    table->recurrent_data(k, &r.m, r.dx);
    for (int i = 0; i < 2; i++) {
        r.begin[i] = output_floats(z.state);
        if (k->begins && i <= (int)bwi_cell_of(k->cell).carries) {
            table->recurrent_begin(k, &r.m, i, r.begin[i]);
        }
    }
    table->recurrent_weights(k, &r.m, r.dw, false, m.bias ? r.db : NULL, false);
    table->recurrent_weights(k, &r.m, r.dw, true, m.bias ? r.db : NULL, true);
    output_floats_free(turned, z.turned);
    return r;
}

static void run_free(const bwi_recurrent *k, run *r)
{
    sizes z = sizes_of(k);
    output_floats_free(r->begin[0], z.state);
    output_floats_free(r->begin[1], z.state);
    output_floats_free(r->y, z.y);
    output_floats_free(r->dx, z.x);
    output_floats_free(r->dw, z.weights);
    output_floats_free(r->db, z.bias);
    output_floats_free(r->m.kept, z.kept);
    output_floats_free(r->m.scratch, z.scratch);
}

/* Predicts without keeping anything; the bits are those of training. */
static void check_inference(const bwi_kernels *table, const bwi_recurrent *k, const run *trained)
{
    sizes z = sizes_of(k);
    int64_t scratch = bwi_packing_host.recurrent_scratch(k);
    float *y = output_floats(z.y);
    bwi_recurrent_memory m = trained->m;
    m.kept = NULL;
    m.scratch = output_floats(scratch);
    table->recurrent_forward(k, &m, y);
    assert_memory_equal(y, trained->y, (size_t)z.y * sizeof *y);
    output_floats_free(y, z.y);
    output_floats_free(m.scratch, scratch);
}

/* A sample's output does not depend on those beside it. */
static void check_alone(const bwi_kernels *table, const bwi_recurrent *k, const run *together)
{
    bwi_recurrent one = *k;
    one.n = 1;
    sizes z = sizes_of(&one);
    int64_t last = k->n - 1;
    bwi_recurrent_memory m = together->m;
    m.x += last * z.x;
    m.mask = m.mask ? m.mask + last * k->steps : NULL;
    m.factors = m.factors ? m.factors + last * k->units : NULL;
    for (int i = 0; i < 2; i++) {
        m.begin[i] = m.begin[i] ? m.begin[i] + last * k->units : NULL;
    }
    m.kept = output_floats(z.kept);
    float *y = output_floats(z.y);
    table->recurrent_forward(&one, &m, y);
    assert_memory_equal(y, together->y + last * z.y, (size_t)z.y * sizeof *y);
    output_floats_free(y, z.y);
    output_floats_free(m.kept, z.kept);
}

static void check(const bwi_kernels *table, const bwi_recurrent *k, bool with_mask, bool with_bias)
{
    sizes z = sizes_of(k);
    int64_t columns = bwi_cell_of(k->cell).gates * k->units;
    float *x = input_floats(z.x), *keras_order = input_floats(k->units * columns), *weights = input_floats(z.weights);
    float *bias = input_floats(z.bias), *mask = input_floats(k->n * k->steps), *factors = input_floats(k->n * k->units);
    float *dy = input_floats(z.y), *h = input_floats(z.state), *c = input_floats(z.state);
    for (int64_t i = 0; i < k->n * k->steps; i++) {
        mask[i] = mask[i] > -0.4F ? 1 : 0;
    }
    for (int64_t i = 0; i < k->units * columns; i++) {
        keras_order[i] /= (float)sqrt((double)k->units);
    }
    bwi_packing_host.recurrent_pack(k->cell, k->units, keras_order, weights);
    bwi_recurrent_memory m = {.x = x,
                              .mask = with_mask ? mask : NULL,
                              .weights = weights,
                              .bias = with_bias && k->cell == BWI_CELL_GRU_AFTER ? bias : NULL,
                              .factors = k->drops ? factors : NULL,
                              .begin = {k->begins ? h : NULL, k->begins ? c : NULL}};
    run found = run_all(table, k, m, dy), expected = run_all(&bwi_kernels_reference, k, m, dy);
    assert_close("y", found.y, expected.y, z.y, 1e-5);
    assert_close("dx", found.dx, expected.dx, z.x, 3e-5);
    for (int i = 0; k->begins && i <= (int)bwi_cell_of(k->cell).carries; i++) {
        assert_close(i ? "dc" : "dh", found.begin[i], expected.begin[i], z.state, 3e-5);
    }
    assert_close("dw", found.dw, expected.dw, z.weights, 3e-5);
    if (m.bias) {
        assert_close("db", found.db, expected.db, z.bias, 3e-5);
    }
    if (!k->drops) {
        check_inference(table, k, &found);
    }
    check_alone(table, k, &found);
    run_free(k, &found);
    run_free(k, &expected);
    float *all[] = {x, keras_order, weights, bias, mask, factors, dy, h, c};
    for (size_t i = 0; i < BWI_COUNT(all); i++) {
        free(all[i]);
    }
}

static void check_table(const bwi_kernels *table)
{
    static const int64_t units[] = {1, 3, 4, 5, 8, 17, 32}, samples[] = {1, 2, 3, 4, 7};
    for (bwi_cell cell = 0; cell < BWI_CELLS; cell++) {
        for (size_t u = 0; u < BWI_COUNT(units); u++) {
            for (size_t n = 0; n < BWI_COUNT(samples); n++) {
                bool odd = (u + n) % 2;
                bwi_recurrent k = {.cell = cell,
                                   .n = samples[n],
                                   .steps = 4,
                                   .units = units[u],
                                   .activation = n == 1 ? gelu : hyperbolic,
                                   .recurrent_activation = n == 1 ? silu : sigmoid,
                                   .sequences = odd,
                                   .backwards = n > 2,
                                   .zero_masked = n == 3,
                                   .begins = u % 3 == 1 || n == 4,
                                   .ends = u % 3 == 2 || n == 2 || n == 4,
                                   .drops = u == 3};
                check(table, &k, n > 0, !odd || n > 2);
            }
        }
    }
}

static void test_recurrent(void **state)
{
    (void)state;
    each_table(check_table);
}

/* Every value comes back, in whatever pieces it is asked for. */
static void test_packing(void **state)
{
    (void)state;
    for (bwi_cell cell = 0; cell < BWI_CELLS; cell++) {
        for (int64_t units = 1; units < 40; units += 7) {
            int64_t count = units * units * bwi_cell_of(cell).gates;
            float *values = input_floats(count), *found = output_floats(count);
            int64_t stored = bwi_packing_host.recurrent_floats(cell, units);
            float *packed = output_floats(stored);
            bwi_packing_host.recurrent_pack(cell, units, values, packed);
            for (int64_t first = 0; first < count; first += 5) {
                bwi_packing_host.recurrent_unpack(cell, units, packed, first, count - first < 5 ? count - first : 5, found + first);
            }
            assert_memory_equal(values, found, (size_t)count * sizeof *found);
            output_floats_free(packed, stored);
            output_floats_free(found, count);
            free(values);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_recurrent), cmocka_unit_test(test_packing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
