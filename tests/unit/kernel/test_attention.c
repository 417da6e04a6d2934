/*
 * Attention's kernels of every table against the reference: sizes around those of blocks, several heads for one of keys, masks of
 * all kinds, queries that see no key, dropped shares, and both kinds of scores with their variables.
 */
#include "support/kernel_check.h"

#include "kernel/packing.h"

typedef struct results {
    float *y, *q, *k, *v, *kept, *scratch;
    double factor, weight[8];
} results;

typedef struct sizes {
    int64_t q, k, v, y, kept, scratch;
} sizes;

static sizes sizes_of(const bwi_attention *a)
{
    return (sizes){.q = a->n * a->queries * a->heads * a->key_width,
                   .k = a->n * a->keys * a->groups * a->key_width,
                   .v = a->n * a->keys * a->groups * a->value_width,
                   .y = a->n * a->queries * a->heads * a->value_width,
                   .kept = a->n * a->queries * a->heads * 2,
                   .scratch = bwi_packing_host.attention_scratch(a, true)};
}

static results run(const bwi_kernels *table, const bwi_attention *a, bwi_attention_memory m, const float *dy)
{
    sizes z = sizes_of(a);
    results r = {.y = output_floats(z.y),
                 .q = output_floats(z.q),
                 .k = output_floats(z.k),
                 .v = output_floats(z.v),
                 .kept = output_floats(z.kept),
                 .scratch = output_floats(z.scratch)};
    m.kept = r.kept;
    m.scratch = r.scratch;
    bwi_attention_differences d = {
        .q = r.q, .k = r.k, .v = r.v, .factor = m.factor ? &r.factor : NULL, .weight = a->weights ? r.weight : NULL};
    table->attention_forward(a, &m, r.y);
    table->attention_backward(a, &m, r.y, dy, &d);
    return r;
}

static void release(const bwi_attention *a, results *r)
{
    sizes z = sizes_of(a);
    output_floats_free(r->y, z.y);
    output_floats_free(r->q, z.q);
    output_floats_free(r->k, z.k);
    output_floats_free(r->v, z.v);
    output_floats_free(r->kept, z.kept);
    output_floats_free(r->scratch, z.scratch);
}

static float *random_mask(int64_t count)
{
    float *mask = input_floats(count);
    for (int64_t i = 0; i < count; i++) {
        mask[i] = mask[i] > -0.4F ? 1 : 0;
    }
    return mask;
}

enum { QUERY_MASK = 1, KEY_MASK = 2, PAIR_MASK = 4, FACTOR = 8 };

static void compare(const bwi_kernels *table, const bwi_attention *a, unsigned parts)
{
    sizes z = sizes_of(a);
    float *q = input_floats(z.q), *k = input_floats(z.k), *v = input_floats(z.v), *dy = input_floats(z.y);
    float *queries = random_mask(a->n * a->queries), *keys = random_mask(a->n * a->keys);
    float *pairs = random_mask(a->n * a->queries * a->keys), factor = 1.25F, *weight = input_floats(8);
    bwi_attention_memory m = {.q = q,
                              .k = k,
                              .v = v,
                              .query_mask = parts & QUERY_MASK ? queries : NULL,
                              .key_mask = parts & KEY_MASK ? keys : NULL,
                              .pair_mask = parts & PAIR_MASK ? pairs : NULL,
                              .factor = parts & FACTOR ? &factor : NULL,
                              .weight = weight};
    results expected = run(&bwi_kernels_reference, a, m, dy), found = run(table, a, m, dy);
    assert_close("y", found.y, expected.y, z.y, 3e-6);
    assert_close("dq", found.q, expected.q, z.q, 2e-5);
    assert_close("dk", found.k, expected.k, z.k, 2e-5);
    assert_close("dv", found.v, expected.v, z.v, 2e-5);
    assert_true(fabs(found.factor - expected.factor) < 1e-4 * (1 + fabs(expected.factor)));
    for (int i = 0; i < a->weights; i++) {
        assert_true(fabs(found.weight[i] - expected.weight[i]) < 1e-4 * (1 + fabs(expected.weight[i])));
    }
    release(a, &expected);
    release(a, &found);
    float *all[] = {q, k, v, dy, queries, keys, pairs, weight};
    for (size_t i = 0; i < BWI_COUNT(all); i++) {
        free(all[i]);
    }
}

static bwi_attention sized(int64_t queries, int64_t keys, int64_t heads, int64_t groups, int64_t key_width, int64_t value_width)
{
    return (bwi_attention){.n = 2,
                           .queries = queries,
                           .keys = keys,
                           .heads = heads,
                           .groups = groups,
                           .key_width = key_width,
                           .value_width = value_width,
                           .scale = 0.7F};
}

static void check_sizes(const bwi_kernels *table)
{
    static const int64_t tried[][6] = {{1, 1, 1, 1, 1, 1},   {5, 3, 2, 2, 4, 6},    {33, 17, 1, 1, 8, 16},
                                       {7, 129, 2, 1, 5, 3}, {40, 300, 1, 1, 9, 7}, {31, 128, 4, 2, 32, 32}};
    for (size_t i = 0; i < BWI_COUNT(tried); i++) {
        const int64_t *s = tried[i];
        bwi_attention a = sized(s[0], s[1], s[2], s[3], s[4], s[5]);
        compare(table, &a, 0);
        a.causal = true;
        compare(table, &a, 0);
        compare(table, &a, KEY_MASK);
        a.window = 4;
        compare(table, &a, 0);
        a.causal = false;
        compare(table, &a, 0);
    }
}

static void check_long(const bwi_kernels *table)
{
    bwi_attention a = sized(290, 290, 1, 1, 3, 2);
    compare(table, &a, 0);
    a.causal = true;
    compare(table, &a, 0);
    a.window = 20;
    compare(table, &a, 0);
    compare(table, &a, PAIR_MASK);
}

static void check_masks(const bwi_kernels *table)
{
    for (int masking = BWI_MASKING_REPLACE; masking <= BWI_MASKING_SUBTRACT; masking++) {
        for (unsigned parts = 0; parts < 8; parts++) {
            bwi_attention a = sized(6, 3, 2, 2, 4, 5);
            a.masking = (bwi_attention_masking)masking;
            compare(table, &a, parts);
            a.causal = true;
            compare(table, &a, parts);
        }
    }
}

static void check_scores(const bwi_kernels *table)
{
    for (int64_t weights = 0; weights < 3; weights++) {
        bwi_attention a = sized(34, 133, 1, 1, 7, 5);
        a.scores = BWI_SCORES_ADDITIVE;
        a.masking = BWI_MASKING_SUBTRACT;
        a.weights = weights == 2 ? a.key_width : weights;
        compare(table, &a, KEY_MASK);
        compare(table, &a, FACTOR);
    }
    bwi_attention dot = sized(34, 133, 1, 1, 7, 5);
    compare(table, &dot, FACTOR);
}

static void check_dropping(const bwi_kernels *table)
{
    bwi_attention a = sized(35, 140, 2, 2, 4, 5);
    a.drops = true;
    a.limit = 1u << 30;
    a.survival = 4.0F / 3;
    a.seed = 5;
    a.stream = 77;
    a.position = 3;
    a.masking = BWI_MASKING_EXCLUDE;
    compare(table, &a, 0);
    compare(table, &a, KEY_MASK);
}

static void test_sizes(void **state)
{
    (void)state;
    each_table(check_sizes);
}

static void test_long(void **state)
{
    (void)state;
    each_table(check_long);
}

static void test_masks(void **state)
{
    (void)state;
    each_table(check_masks);
}

static void test_scores(void **state)
{
    (void)state;
    each_table(check_scores);
}

static void test_dropping(void **state)
{
    (void)state;
    each_table(check_dropping);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sizes), cmocka_unit_test(test_long), cmocka_unit_test(test_masks),
                                       cmocka_unit_test(test_scores), cmocka_unit_test(test_dropping)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
