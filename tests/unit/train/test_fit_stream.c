/* fit over streams: training begins before the end, and weights are as with the same samples in arrays. */
#include "support/planned.h"

typedef struct source {
    const planned *p;
    int64_t count, given, fails_at;
    int64_t steps, given_at_first_step;
} source;

static int next(void *user, bw_sample *sample, void *const *values)
{
    source *s = user;
    if (sample->number == s->fails_at) {
        return -1;
    }
    if (sample->number == s->count) {
        return 0;
    }
    memcpy(values[0], s->p->x + sample->number * 32, 32 * sizeof(float));
    memcpy(values[1], s->p->y + sample->number, sizeof(int32_t));
    s->given++;
    return 1;
}

static bool twice(void *user, bw_sample *sample, const void *const *from, void *const *to)
{
    (void)user, (void)sample;
    for (int i = 0; i < 32; i++) {
        ((float *)to[0])[i] = ((const float *)from[0])[i] * 2;
    }
    return true;
}

static bool on_step(void *user, const bw_progress *p)
{
    source *s = user;
    if (s->steps++ == 0) {
        s->given_at_first_step = s->given;
        assert_int_equal(p->steps, s->count > 8 ? 0 : 1);
    }
    return true;
}

enum { SAMPLES = 203 };

typedef struct trained {
    uint64_t hash;
    int64_t updates;
    double loss;
    source s;
} trained;

static trained train(bool stream, bool maps, int64_t take, int epochs)
{
    static const bw_field fields[] = {{"x", {.dtype = BW_F32, .ndim = 4, .shape = {0, 4, 4, 2}}},
                                      {"y", {.dtype = BW_I32, .ndim = 1}}};
    planned p;
    planned_model(&p, "flatten dense(12,relu) dense(10,softmax)", SAMPLES, 4, 4, 2, 2);
    check_ok(p.ctx, bw_compile(p.model, "sgd(0.05,momentum=0.5)", NULL, NULL));
    check_ok(p.ctx, bw_build(p.model, 3, (const int64_t[]){4, 4, 2}, 7));
    trained t = {.s = {.p = &p, .count = take ? -1 : SAMPLES, .fails_at = -1}};
    bw_dataset *data = stream ? bw_from_generator(p.ctx, fields, 2, next, &t.s) : p.data;
    if (maps) {
        data = bw_map(data, twice, NULL, NULL);
    }
    if (take) {
        data = bw_take(data, take);
    }
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.epochs = epochs;
    options.batch = 8;
    options.user = &t.s;
    if (stream && !take) {
        options.on_step = on_step;
    }
    bw_history *history;
    check_ok(p.ctx, bw_fit(p.model, data, &options, &history));
    t.hash = bw_model_hash(p.model);
    t.updates = bw_history_facts(history).updates;
    t.loss = bw_history_last(history, "loss");
    planned_close(&p);
    return t;
}

static void test_as_arrays(void **state)
{
    (void)state;
    for (int maps = 0; maps < 2; maps++) {
        for (int epochs = 1; epochs < 4; epochs++) {
            trained expected = train(false, maps, 0, epochs), found = train(true, maps, 0, epochs);
            assert_int_equal(found.updates, epochs * 26);
            assert_int_equal(found.updates, expected.updates);
            assert_true(found.hash == expected.hash && found.loss == expected.loss);
            assert_int_equal(found.s.given_at_first_step, 8);
            assert_int_equal(found.s.given, SAMPLES);
        }
    }
}

static void test_endless(void **state)
{
    (void)state;
    trained expected = train(false, false, 100, 3), found = train(true, false, 100, 3);
    assert_int_equal(found.updates, 3 * 13);
    assert_true(found.hash == expected.hash && found.loss == expected.loss);
    assert_int_equal(found.s.given, 100);
}

/* The model is as after the last batch before the failure. */
static void test_fails(void **state)
{
    (void)state;
    static const bw_field fields[] = {{"x", {.dtype = BW_F32, .ndim = 4, .shape = {0, 4, 4, 2}}},
                                      {"y", {.dtype = BW_I32, .ndim = 1}}};
    planned p;
    planned_model(&p, "flatten dense(12,relu) dense(10,softmax)", SAMPLES, 4, 4, 2, 2);
    source s = {.p = &p, .count = SAMPLES, .fails_at = 100};
    bw_dataset *data = bw_from_generator(p.ctx, fields, 2, next, &s);
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.epochs = 2;
    options.batch = 8;
    bw_history *history;
    check_fails(p.ctx, bw_fit(p.model, data, &options, &history), BW_INVALID_ARGUMENT, "sample 100: the generator failed");
    assert_int_equal(bw_history_facts(history).updates, 12);
    planned_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_arrays),
        cmocka_unit_test(test_endless),
        cmocka_unit_test(test_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
