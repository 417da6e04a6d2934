/*
 * Updates of every table: each rule against its formula in double, with and without penalties, clipping, decay and averages; the
 * plain loops give the same bits with every instruction set.
 */
#include "support/kernel_check.h"

/* Beyond one part of the kernel's buffer, and odd. */
static const int64_t counts[] = {1, 3, 16, 17, 100, 1024, 1025, 2500};

enum { MOST = 2500, STEPS = 3 };

#define TRUST 1.5 /* Lamb's ratio */

/* One element. */
typedef struct element {
    double slot[BWI_RULE_SLOTS], average, w;
} element;

static double sign(double x)
{
    return x > 0 ? 1 : x < 0 ? -1 : 0;
}

static void move_sgd(const bwi_step *s, element *e, double g)
{
    double step = (double)s->rate * g, momentum = (double)s->momentum;
    e->slot[0] = momentum * e->slot[0] - step;
    e->w += s->nesterov ? momentum * e->slot[0] - step : e->slot[0];
}

static void take_moments(const bwi_step *s, element *e, double g)
{
    e->slot[0] = s->beta1 * e->slot[0] + (1 - s->beta1) * g;
    e->slot[1] = s->beta2 * e->slot[1] + (1 - s->beta2) * g * g;
}

static void move_adam(const bwi_step *s, element *e, double g)
{
    take_moments(s, e, g);
    e->w -= (double)s->rate * e->slot[0] / (sqrt(e->slot[1]) + (double)s->epsilon);
}

static void move_amsgrad(const bwi_step *s, element *e, double g)
{
    take_moments(s, e, g);
    e->slot[2] = fmax(e->slot[2], e->slot[1]);
    e->w -= (double)s->rate * e->slot[0] / (sqrt(e->slot[2]) + (double)s->epsilon);
}

static void move_rmsprop(const bwi_step *s, element *e, double g)
{
    double rho = s->beta2, momentum = (double)s->momentum;
    double *average = &e->slot[momentum > 0 ? 2 : 1];
    e->slot[0] = rho * e->slot[0] + (1 - rho) * g * g;
    double variance = e->slot[0];
    if (s->centered) {
        *average = rho * *average + (1 - rho) * g;
        variance -= *average * *average;
    }
    double step = (double)s->rate * g / sqrt(fmax(variance, 0) + (double)s->epsilon);
    if (momentum > 0) {
        e->slot[1] = momentum * e->slot[1] + step;
        step = e->slot[1];
    }
    e->w -= step;
}

static void move_adagrad(const bwi_step *s, element *e, double g)
{
    e->slot[0] += g * g;
    e->w -= (double)s->rate * g / sqrt(e->slot[0] + (double)s->epsilon);
}

static void move_adadelta(const bwi_step *s, element *e, double g)
{
    double rho = s->beta2, epsilon = (double)s->epsilon;
    e->slot[0] = rho * e->slot[0] + (1 - rho) * g * g;
    double d = g * sqrt((e->slot[1] + epsilon) / (e->slot[0] + epsilon));
    e->slot[1] = rho * e->slot[1] + (1 - rho) * d * d;
    e->w -= (double)s->rate * d;
}

static void move_adamax(const bwi_step *s, element *e, double g)
{
    e->slot[0] = s->beta1 * e->slot[0] + (1 - s->beta1) * g;
    e->slot[1] = fmax(s->beta2 * e->slot[1], fabs(g));
    e->w -= (double)s->rate * e->slot[0] / (e->slot[1] + (double)s->epsilon);
}

static void move_nadam(const bwi_step *s, element *e, double g)
{
    take_moments(s, e, g);
    double root = sqrt(e->slot[1] * (double)s->of_square);
    e->w -= ((double)s->of_mean * e->slot[0] + (double)s->of_gradient * g) / (root + (double)s->epsilon);
}

static void move_lion(const bwi_step *s, element *e, double g)
{
    e->w -= (double)s->rate * sign(s->beta1 * e->slot[0] + (1 - s->beta1) * g);
    e->slot[0] = s->beta2 * e->slot[0] + (1 - s->beta2) * g;
}

static void move_ftrl(const bwi_step *s, element *e, double g)
{
    double power = (double)s->power, next = e->slot[0] + g * g, rate = (double)s->rate, lasso = (double)s->lasso;
    e->slot[1] += g + (double)s->shrink * e->w - (pow(next, power) - pow(e->slot[0], power)) / rate * e->w;
    e->w = (fmax(fmin(e->slot[1], lasso), -lasso) - e->slot[1]) / (pow(next, power) / rate + (double)s->ridge);
    e->slot[0] = next;
}

static void move_lamb(const bwi_step *s, element *e, double g)
{
    take_moments(s, e, g);
    e->w -=
        TRUST * (double)s->rate * (double)s->of_mean * e->slot[0] / (sqrt((double)s->of_square * e->slot[1]) + (double)s->epsilon);
}

static void move_none(const bwi_step *s, element *e, double g)
{
    (void)s;
    (void)e;
    (void)g;
}

static const struct {
    bwi_step step;
    int slots;
    void (*move)(const bwi_step *s, element *e, double g);
} rules[] = {
    {{.rule = BWI_RULE_SGD}, 0, move_sgd},
    {{.rule = BWI_RULE_SGD, .momentum = 0.9F}, 1, move_sgd},
    {{.rule = BWI_RULE_SGD, .momentum = 0.9F, .nesterov = true}, 1, move_sgd},
    {{.rule = BWI_RULE_ADAM}, 2, move_adam},
    {{.rule = BWI_RULE_AMSGRAD}, 3, move_amsgrad},
    {{.rule = BWI_RULE_RMSPROP}, 1, move_rmsprop},
    {{.rule = BWI_RULE_RMSPROP, .momentum = 0.8F}, 2, move_rmsprop},
    {{.rule = BWI_RULE_RMSPROP, .centered = true}, 2, move_rmsprop},
    {{.rule = BWI_RULE_RMSPROP, .momentum = 0.8F, .centered = true}, 3, move_rmsprop},
    {{.rule = BWI_RULE_ADAGRAD}, 1, move_adagrad},
    {{.rule = BWI_RULE_ADADELTA}, 2, move_adadelta},
    {{.rule = BWI_RULE_ADAMAX}, 2, move_adamax},
    {{.rule = BWI_RULE_NADAM}, 2, move_nadam},
    {{.rule = BWI_RULE_LION}, 1, move_lion},
    {{.rule = BWI_RULE_FTRL, .power = 0.5F, .ridge = 0.1F}, 2, move_ftrl},
    {{.rule = BWI_RULE_FTRL, .power = 0.7F, .lasso = 0.01F, .shrink = 0.2F}, 2, move_ftrl},
    {{.rule = BWI_RULE_LAMB}, 2, move_lamb},
    {{.rule = BWI_RULE_NONE}, 0, move_none},
};

/* What there is besides a rule: of nothing, of one thing, of everything. */
static const struct {
    float l1, l2, clip, clip_value, decay;
    bool averages, overwrite;
} kinds[] = {
    {.clip = 1},
    {.clip = 0.25F},
    {.clip = 1, .l1 = 0.1F},
    {.clip = 0.5F, .l2 = 0.2F},
    {.clip = 1, .clip_value = 0.1F},
    {.clip = 1, .decay = 0.03F},
    {.clip = 1, .averages = true},
    {.clip = 0.5F, .l1 = 0.1F, .l2 = 0.2F, .clip_value = 0.2F, .decay = 0.03F, .averages = true, .overwrite = true},
};

static bwi_step make_step(size_t rule, size_t kind)
{
    bwi_step s = rules[rule].step;
    s.rate = 0.01F;
    s.epsilon = 1e-3F;
    s.beta1 = 0.9;
    s.beta2 = 0.95;
    s.of_mean = 0.011F;
    s.of_gradient = 0.004F;
    s.of_square = 1.7F;
    s.scale = 0.125F;
    s.clip_value = kinds[kind].clip_value;
    s.decay = kinds[kind].decay;
    s.decays = s.decay > 0;
    s.average_keep = 0.7F;
    s.overwrite = kinds[kind].overwrite;
    return s;
}

static void move_element(const bwi_step *s, size_t rule, size_t kind, element *e, double sum)
{
    double g = (double)s->scale * sum + (double)kinds[kind].l1 * sign(e->w) + 2 * (double)kinds[kind].l2 * e->w;
    bool penalized = kinds[kind].l1 > 0 || kinds[kind].l2 > 0;
    double most = (double)s->clip_value, clip = (double)kinds[kind].clip;
    g *= penalized ? 1 : clip;
    g = most > 0 ? fmax(fmin(g, most), -most) : g;
    g *= penalized ? clip : 1;
    e->w -= e->w * (double)s->decay;
    rules[rule].move(s, e, g);
    e->average = (double)s->average_keep * e->average + (1 - (double)s->average_keep) * e->w;
    e->w = kinds[kind].overwrite ? e->average : e->w;
}

static float first_bits[BWI_COUNT(rules)][BWI_COUNT(kinds)][BWI_COUNT(counts)];

/* Several steps from the same start; the weights' sum is remembered to compare tables. */
static void check_update(const bwi_kernels *k, size_t rule, size_t kind, size_t c)
{
    static element expected[MOST];
    int64_t count = counts[c];
    float *w = output_floats(count), *average = output_floats(count), *slots[BWI_RULE_SLOTS] = {NULL}, *sum = input_floats(count);
    bwi_step step = make_step(rule, kind);
    bwi_step_part part = {.l1 = kinds[kind].l1, .l2 = kinds[kind].l2, .clip = kinds[kind].clip, .trust = (float)TRUST};
    for (int n = 0; n < rules[rule].slots; n++) {
        part.slots[n] = slots[n] = output_floats(count);
    }
    part.average = kinds[kind].averages ? average : NULL;
    for (int64_t i = 0; i < count; i++) {
        w[i] = average[i] = i % 7 == 3 ? 0 : sinf((float)i);
        expected[i] = (element){.w = (double)w[i], .average = (double)w[i]};
        for (int n = 0; n < rules[rule].slots; n++) {
            slots[n][i] = 0.1F;
            expected[i].slot[n] = (double)0.1F;
        }
    }
    for (int t = 0; t < STEPS; t++) {
        for (int64_t i = 0; i < count; i++) {
            sum[i] = 4 * cosf((float)(i * 3 + t));
            move_element(&step, rule, kind, &expected[i], (double)sum[i]);
        }
        k->optimize->update(&step, &part, count, sum, w);
    }
    float total = 0;
    for (int64_t i = 0; i < count; i++) {
        if (!(fabs((double)w[i] - expected[i].w) <= 1e-5) ||
            (kinds[kind].averages && !(fabs((double)average[i] - expected[i].average) <= 1e-5))) {
            fail_msg("%s: rule %zu, kind %zu: element %lld of %lld: expected %.9g, found %.9g", k->name, rule, kind, (long long)i,
                     (long long)count, expected[i].w, (double)w[i]);
        }
        total += w[i];
    }
    float *before = &first_bits[rule][kind][c];
    if (rules[rule].step.rule != BWI_RULE_SGD && rules[rule].step.rule != BWI_RULE_ADAM) {
        assert_true(*before == 0 || memcmp(before, &total, sizeof total) == 0);
        *before = total;
    }
    for (int n = 0; n < rules[rule].slots; n++) {
        output_floats_free(slots[n], count);
    }
    output_floats_free(w, count);
    output_floats_free(average, count);
    free(sum);
}

static void check_updates(const bwi_kernels *k)
{
    bool tested[BWI_RULES] = {false};
    for (size_t rule = 0; rule < BWI_COUNT(rules); rule++) {
        tested[rules[rule].step.rule] = true;
        for (size_t kind = 0; kind < BWI_COUNT(kinds); kind++) {
            for (size_t c = 0; c < BWI_COUNT(counts); c++) {
                check_update(k, rule, kind, c);
            }
        }
    }
    for (int rule = 0; rule < BWI_RULES; rule++) {
        assert_true(tested[rule]);
    }
}

static void test_updates(void **state)
{
    (void)state;
    each_table(check_updates);
}

/* Padding is zero in weights, gradients and slots, and stays zero whatever an update has besides. */
static void check_padding(const bwi_kernels *k)
{
    enum { COUNT = 33 };
    for (size_t rule = 0; rule < BWI_COUNT(rules); rule++) {
        for (size_t kind = 0; kind < BWI_COUNT(kinds); kind++) {
            float w[COUNT] = {0}, average[COUNT] = {0}, sum[COUNT] = {0}, slots[BWI_RULE_SLOTS][COUNT] = {{0}};
            bwi_step step = make_step(rule, kind);
            bwi_step_part part = {.l1 = kinds[kind].l1, .l2 = kinds[kind].l2, .clip = kinds[kind].clip, .trust = (float)TRUST};
            for (int n = 0; n < rules[rule].slots; n++) {
                part.slots[n] = slots[n];
            }
            part.average = kinds[kind].averages ? average : NULL;
            k->optimize->update(&step, &part, COUNT, sum, w);
            for (int i = 0; i < COUNT; i++) {
                assert_true(w[i] == 0);
                assert_true(average[i] == 0);
            }
        }
    }
}

static void test_padding(void **state)
{
    (void)state;
    each_table(check_padding);
}

static void check_norms(const bwi_kernels *k)
{
    for (size_t c = 0; c < BWI_COUNT(counts); c++) {
        int64_t count = counts[c];
        float *sum = input_floats(count), *w = input_floats(count);
        w[0] = 0;
        double squared = 0, absolute = 0;
        for (int64_t i = 0; i < count; i++) {
            double g = 0.25 * (double)sum[i] + (double)0.1F * sign((double)w[i]) + 2 * (double)0.3F * (double)w[i];
            squared += g * g;
            absolute += fabs((double)w[i]);
        }
        assert_true(fabs(k->optimize->penalized_norm(0.25F, 0.1F, 0.3F, count, sum, w) - squared) <= 1e-6 * (1 + squared));
        assert_true(k->optimize->sum_of_absolutes(count, w) == absolute);
        free(sum);
        free(w);
    }
}

static void test_norms(void **state)
{
    (void)state;
    each_table(check_norms);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_updates),
        cmocka_unit_test(test_padding),
        cmocka_unit_test(test_norms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
