/*
 * Activations of every table against the C library in double, in ulps over their whole range; derivatives against
 * differences of the functions; dropout against the random numbers of base.
 */
#include "support/kernel_check.h"

static const float elu[3] = {1, 0.6f, 0}, selu[3] = {1.05070098f, 1.75809934f, 0}, leaky[3] = {0.2f, 0, 0};
static const float bent[3] = {0.1f, 0.8f, 0.05f}, cut[3] = {0, 6, 1}, none[3] = {0, 0, 0}, four[3] = {4, 0, 0},
                   small[3] = {0.5f, 0, 0};

/* Largest errors: of the value in ulps where |value| > 1e-30, and of the derivative absolutely. */
static const struct row {
    const char *name;
    bwi_activation kind;
    const float *p;
    bool from_x;
    double ulps, slope;
} rows[] = {
    {"sigmoid", BWI_SIGMOID, none, false, 3, 1e-7},
    {"tanh", BWI_TANH, none, false, 3.5, 5e-7},
    {"softplus", BWI_SOFTPLUS, none, false, 3, 2e-7},
    {"softsign", BWI_SOFTSIGN, none, false, 2, 3e-7},
    {"elu", BWI_ELU, elu, false, 4, 2e-7},
    {"selu", BWI_ELU, selu, false, 4, 3e-7},
    {"exponential", BWI_EXPONENTIAL, none, false, 2, 0},
    {"hard_sigmoid", BWI_HARD_SIGMOID, none, false, 3, 2e-8},
    {"leaky_relu", BWI_LEAKY_RELU, leaky, false, 1, 2e-8},
    {"relu with a slope, a bound and a threshold", BWI_BENT_RELU, bent, false, 2, 2e-8},
    {"relu with a bound and a threshold", BWI_BENT_RELU, cut, false, 2, 2e-8},
    {"silu", BWI_SILU, none, true, 3.5, 5e-7},
    {"gelu", BWI_GELU, none, true, 0, 5e-7},
    {"hard_silu", BWI_HARD_SILU, none, true, 0, 3e-7},
    {"hard_tanh", BWI_HARD_TANH, none, false, 1, 2e-8},
    {"mish", BWI_MISH, none, true, 5, 1.5e-6},
    {"squareplus", BWI_SQUAREPLUS, four, true, 3, 3e-7},
    {"log_sigmoid", BWI_LOG_SIGMOID, none, false, 3, 2e-7},
    {"soft_shrink", BWI_SOFT_SHRINK, small, false, 1, 2e-8},
    {"hard_shrink", BWI_HARD_SHRINK, small, false, 1, 2e-8},
    {"tanh_shrink", BWI_TANH_SHRINK, none, true, 0, 1e-6},
    {"sparse_plus", BWI_SPARSE_PLUS, none, true, 0, 2e-4},
    {"sparse_sigmoid", BWI_SPARSE_SIGMOID, none, false, 0, 2e-8},
};

static double exact(const struct row *r, double x)
{
    double a = (double)r->p[0], b = (double)r->p[1], c = (double)r->p[2];
    switch (r->kind) {
    case BWI_SIGMOID:
        return 1 / (1 + exp(-x));
    case BWI_TANH:
        return tanh(x);
    case BWI_SOFTPLUS:
        return x > 40 ? x : log1p(exp(x));
    case BWI_SOFTSIGN:
        return x / (1 + fabs(x));
    case BWI_ELU:
        return x > 0 ? a * x : b * expm1(x);
    case BWI_EXPONENTIAL:
        return exp(x);
    case BWI_HARD_SIGMOID:
        return x <= -3 ? 0 : x >= 3 ? 1 : (x + 3) / 6;
    case BWI_LEAKY_RELU:
        return x < 0 ? a * x : x;
    case BWI_BENT_RELU:
        return x >= b ? b : x > c ? x : a * (x - c);
    case BWI_SILU:
        return x / (1 + exp(-x));
    case BWI_HARD_SILU:
        return x <= -3 ? 0 : x >= 3 ? x : x * (x + 3) / 6;
    case BWI_HARD_TANH:
        return x <= -1 ? -1 : x >= 1 ? 1 : x;
    case BWI_MISH:
        return x * tanh(x > 40 ? x : log1p(exp(x)));
    case BWI_SQUAREPLUS:
        return x < 0 ? a / 2 / (sqrt(x * x + a) - x) : (x + sqrt(x * x + a)) / 2;
    case BWI_LOG_SIGMOID:
        return x < -40 ? x : -log1p(exp(-x));
    case BWI_SOFT_SHRINK:
        return x > a ? x - a : x < -a ? x + a : 0;
    case BWI_HARD_SHRINK:
        return fabs(x) > a ? x : 0;
    case BWI_TANH_SHRINK:
        return x - tanh(x);
    case BWI_SPARSE_PLUS:
        return x <= -1 ? 0 : x >= 1 ? x : (x + 1) * (x + 1) / 4;
    case BWI_SPARSE_SIGMOID:
        return x <= -1 ? 0 : x >= 1 ? 1 : (x + 1) / 2;
    default:
        return x * 0.5 * erfc(-x / sqrt(2));
    }
}

static double ulps(double found, double expected)
{
    int exponent;
    (void)frexp(expected, &exponent);
    return fabs(found - expected) / ldexp(1, exponent - 24);
}

enum { COUNT = 1 << 16 };

static float *points(float range)
{
    float *x = input_floats(COUNT);
    for (int64_t i = 0; i < COUNT; i++) {
        x[i] *= i % 3 == 0 ? range : i % 3 == 1 ? 4 : 1e-3f;
    }
    return x;
}

/* Whether its value near x = 0 is not near 0. */
static bool lifted(const struct row *r)
{
    return r->kind == BWI_SPARSE_PLUS || r->kind == BWI_SPARSE_SIGMOID;
}

/* Whether its slope has kinks or jumps. */
static bool kinked(bwi_activation kind)
{
    static const bwi_activation kinds[] = {BWI_ELU,       BWI_HARD_SIGMOID, BWI_LEAKY_RELU,  BWI_BENT_RELU,   BWI_HARD_SILU,
                                           BWI_HARD_TANH, BWI_SOFT_SHRINK,  BWI_HARD_SHRINK, BWI_SPARSE_PLUS, BWI_SPARSE_SIGMOID};
    for (size_t i = 0; i < BWI_COUNT(kinds); i++) {
        if (kinds[i] == kind) {
            return true;
        }
    }
    return false;
}

static void check_values(const bwi_kernels *k, const struct row *r)
{
    float *x = points(80), *y = output_floats(COUNT);
    k->activate(r->kind, r->p, COUNT, x, y);
    for (int64_t i = 0; i < COUNT; i++) {
        double expected = exact(r, (double)x[i]);
        bool far = r->ulps > 0 ? fabs(expected) > 1e-30 && !(ulps((double)y[i], expected) <= r->ulps)
                               : !(fabs((double)y[i] - expected) <= 4e-7 * (fabs((double)x[i]) + (lifted(r) ? 1 : 1e-30)));
        /* Where the line crosses zero, the rounding of its terms remains. */
        far = far && !(r->kind == BWI_HARD_SIGMOID && fabs((double)y[i] - expected) < 1e-7);
        far = far && !(r->kind == BWI_BENT_RELU && fabs((double)y[i] - expected) < 1e-9);
        if (far) {
            fail_msg("%s %s(%.9g): expected %.9g, found %.9g", k->name, r->name, (double)x[i], expected, (double)y[i]);
        }
    }
    output_floats_free(y, COUNT);
    free(x);
}

/* Fourth order differences of the exact function; points beside a kink are left out. */
static void check_slopes(const bwi_kernels *k, const struct row *r)
{
    double h = 1e-3;
    float *x = points(6), *y = input_floats(COUNT), *dy = input_floats(COUNT), *dx = output_floats(COUNT);
    k->activate(r->kind, r->p, COUNT, x, y);
    k->activate_backward(r->kind, r->p, COUNT, r->from_x ? x : y, dy, dx);
    int64_t compared = 0;
    for (int64_t i = 0; i < COUNT; i++) {
        double at = (double)x[i];
        double wide = (exact(r, at + 2 * h) - exact(r, at - 2 * h)) / (4 * h),
               narrow = (exact(r, at + h) - exact(r, at - h)) / (2 * h);
        double slope = (4 * narrow - wide) / 3;
        double right = (exact(r, at + 4 * h) - exact(r, at + 3 * h)) / h, left = (exact(r, at - 3 * h) - exact(r, at - 4 * h)) / h;
        if ((kinked(r->kind) || r->kind == BWI_SOFTSIGN) && (fabs(at) < 4 * h || fabs(right - left) > 8.5e-3)) {
            continue;
        }
        compared++;
        double bound = (r->slope > 0 ? r->slope : 3e-7 * slope) + 1e-9;
        if (!(fabs((double)dx[i] - (double)dy[i] * slope) <= bound)) {
            fail_msg("%s %s'(%.9g) times %.9g: expected %.9g, found %.9g", k->name, r->name, at, (double)dy[i],
                     (double)dy[i] * slope, (double)dx[i]);
        }
    }
    assert_true(compared > COUNT / 3);
    output_floats_free(dx, COUNT);
    free(x);
    free(y);
    free(dy);
}

static void check_accuracy(const bwi_kernels *k)
{
    for (size_t i = 0; i < BWI_COUNT(rows); i++) {
        check_values(k, &rows[i]);
        check_slopes(k, &rows[i]);
    }
}

static void test_accuracy(void **state)
{
    (void)state;
    each_table(check_accuracy);
    check_accuracy(&bwi_kernels_reference);
}

/* Parts of vectors, in place, nothing written outside. */
static void check_counts(const bwi_kernels *k)
{
    for (size_t r = 0; r < BWI_COUNT(rows); r++) {
        for (int64_t count = 0; count < 70; count++) {
            float *x = input_floats(count), *dy = input_floats(count), *whole = input_floats(count + 64);
            float *y = output_floats(count), *dx = output_floats(count);
            memcpy(whole, x, (size_t)count * sizeof *x);
            k->activate(rows[r].kind, rows[r].p, count, x, y);
            k->activate(rows[r].kind, rows[r].p, count + 64, whole, whole);
            assert_memory_equal(y, whole, (size_t)count * sizeof *x);
            memcpy(whole, dy, (size_t)count * sizeof *x);
            k->activate_backward(rows[r].kind, rows[r].p, count, y, dy, dx);
            k->activate_backward(rows[r].kind, rows[r].p, count, y, whole, whole);
            assert_memory_equal(dx, whole, (size_t)count * sizeof *x);
            output_floats_free(y, count);
            output_floats_free(dx, count);
            free(x);
            free(dy);
            free(whole);
        }
    }
}

static void test_counts(void **state)
{
    (void)state;
    each_table(check_counts);
}

static void check_extremes(const bwi_kernels *k)
{
    static const float x[] = {NAN, INFINITY, -INFINITY, 200, -200, 0};
    static const struct {
        bwi_activation kind;
        const float *p;
        float y[5]; /* of x[1] on */
    } expected[] = {
        {BWI_SIGMOID, none, {1, 0, 1, 0, 0.5f}},
        {BWI_TANH, none, {1, -1, 1, -1, 0}},
        {BWI_SOFTPLUS, none, {INFINITY, 0, 200, 0, 0.693147182f}},
        {BWI_ELU, elu, {INFINITY, -0.6f, 200, -0.6f, 0}},
        {BWI_EXPONENTIAL, none, {INFINITY, 0, INFINITY, 0, 1}},
        {BWI_HARD_SIGMOID, none, {1, 0, 1, 0, 0.5f}},
        {BWI_LEAKY_RELU, leaky, {INFINITY, -INFINITY, 200, -40, 0}},
        {BWI_BENT_RELU, cut, {6, 0, 6, 0, 0}},
        {BWI_SILU, none, {INFINITY, NAN, 200, 0, 0}},
        {BWI_GELU, none, {INFINITY, 0, 200, 0, 0}},
        {BWI_HARD_SILU, none, {INFINITY, NAN, 200, 0, 0}},
        {BWI_HARD_TANH, none, {1, -1, 1, -1, 0}},
        {BWI_MISH, none, {INFINITY, NAN, 200, 0, 0}},
        {BWI_SQUAREPLUS, four, {INFINITY, 0, 200.005005f, 0.00499987509f, 1}},
        {BWI_LOG_SIGMOID, none, {0, -INFINITY, 0, -200, -0.693147182f}},
        {BWI_SOFT_SHRINK, small, {INFINITY, -INFINITY, 199.5f, -199.5f, 0}},
        {BWI_HARD_SHRINK, small, {INFINITY, -INFINITY, 200, -200, 0}},
        {BWI_TANH_SHRINK, none, {INFINITY, -INFINITY, 199, -199, 0}},
        {BWI_SPARSE_PLUS, none, {INFINITY, 0, 200, 0, 0.25f}},
        {BWI_SPARSE_SIGMOID, none, {1, 0, 1, 0, 0.5f}},
    };
    for (size_t i = 0; i < BWI_COUNT(expected); i++) {
        float y[6];
        k->activate(expected[i].kind, expected[i].p, 6, x, y);
        assert_true(isnan(y[0]));
        assert_close("extremes", y + 1, expected[i].y, 5, 6e-8);
    }
}

static void test_extremes(void **state)
{
    (void)state;
    each_table(check_extremes);
}

static void check_dropout(const bwi_kernels *k)
{
    static const int64_t counts[] = {1, 3, 15, 16, 17, 63, 64, 65, 100, 128, 1000};
    uint64_t seed = 0x123456789abcdef0u, stream = 0xfedcba9876543210u, counters[] = {0, 16, 0xfffffff0u, 0x100000000u};
    const uint32_t limits[] = {0, 1u << 30, 0x80000000u, 0xcccccccdu, 0xffffffffu};
    for (size_t c = 0; c < BWI_COUNT(counts); c++) {
        for (size_t n = 0; n < BWI_COUNT(counters); n++) {
            for (size_t l = 0; l < BWI_COUNT(limits); l++) {
                float *x = input_floats(counts[c]), *y = output_floats(counts[c]), *expected = output_floats(counts[c]);
                k->dropout(counts[c], seed, stream, counters[n], limits[l], 1.25f, x, y);
                bwi_kernels_reference.dropout(counts[c], seed, stream, counters[n], limits[l], 1.25f, x, expected);
                assert_close("dropout", y, expected, counts[c], 0);
                k->dropout(counts[c], seed, stream, counters[n], limits[l], 1.25f, x, x);
                assert_memory_equal(x, y, (size_t)counts[c] * sizeof *x);
                output_floats_free(y, counts[c]);
                output_floats_free(expected, counts[c]);
                free(x);
            }
        }
    }
}

static void test_dropout(void **state)
{
    (void)state;
    each_table(check_dropout);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_accuracy), cmocka_unit_test(test_counts),
                                       cmocka_unit_test(test_extremes), cmocka_unit_test(test_dropout)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
