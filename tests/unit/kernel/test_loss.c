/*
 * Losses of every table: values against their definitions in double, gradients against differences of those, and what NaN, clipped
 * probabilities and kinks give by hand.
 */
#include "support/kernel_check.h"

static const int64_t widths[] = {1, 2, 3, 5, 8, 15, 16, 17, 33, 100};

/* ---- Definitions ---- */

static double clipped(double x, double least, double most)
{
    return x < least ? least : x > most ? most : x;
}

/* Of one number. */
static double number_loss(bwi_loss_kind kind, double p, double x, double y)
{
    double e = x - y, t = y * (1 - p) + 0.5 * p, side = y == 0 ? -1 : y, margin = fmax(0, 1 - side * x);
    switch (kind) {
    case BWI_LOSS_SQUARE:
        return e * e;
    case BWI_LOSS_ABSOLUTE:
        return fabs(e);
    case BWI_LOSS_PERCENTAGE:
        return 100 * fabs(e) / fmax(fabs(y), 1e-7);
    case BWI_LOSS_LOGARITHMIC:
        return pow(log(fmax(x, 1e-7) + 1) - log(fmax(y, 1e-7) + 1), 2);
    case BWI_LOSS_HUBER:
        return fabs(e) <= p ? 0.5 * e * e : p * fabs(e) - 0.5 * p * p;
    case BWI_LOSS_LOG_COSH:
        return log(cosh(e));
    case BWI_LOSS_POISSON:
        return x - y * log(x + 1e-7);
    case BWI_LOSS_HINGE:
        return margin;
    case BWI_LOSS_SQUARED_HINGE:
        return margin * margin;
    case BWI_LOSS_BINARY_LOGITS:
        return log(1 + exp(x)) - x * t;
    default: /* BWI_LOSS_BINARY */
        return -(t * log(clipped(x, 1e-7, 1 - 1e-7)) + (1 - t) * log(1 - clipped(x, 1e-7, 1 - 1e-7)));
    }
}

static double sum_of_products(int64_t width, const double *x, const double *y)
{
    double sum = 0;
    for (int64_t i = 0; i < width; i++) {
        sum += x[i] * y[i];
    }
    return sum;
}

static double categorical_hinge(int64_t width, const double *x, const double *y)
{
    double most = (1 - y[0]) * x[0];
    for (int64_t i = 1; i < width; i++) {
        most = fmax(most, (1 - y[i]) * x[i]);
    }
    return fmax(0, 1 + most - sum_of_products(width, x, y));
}

/* Of a row; for class numbers y is one-hot. */
static double row_loss(bwi_loss_kind kind, double p, int64_t width, const double *x, const double *y)
{
    double sum = 0, total = 0, lengths = sqrt(sum_of_products(width, x, x) * sum_of_products(width, y, y));
    for (int64_t i = 0; i < width; i++) {
        total += x[i];
    }
    if (kind == BWI_LOSS_COSINE) {
        return -sum_of_products(width, x, y) / lengths;
    }
    if (kind == BWI_LOSS_CATEGORICAL_HINGE) {
        return categorical_hinge(width, x, y);
    }
    for (int64_t i = 0; i < width; i++) {
        double t = y[i] * (1 - p) + p / (double)width;
        if (kind == BWI_LOSS_DIVERGENCE) {
            sum += clipped(y[i], 1e-7, 1) * log(clipped(y[i], 1e-7, 1) / clipped(x[i], 1e-7, 1));
        } else if (kind > BWI_LOSS_BINARY) {
            sum -= t * log(clipped(x[i] / total, 1e-7, 1 - 1e-7));
        } else {
            sum += number_loss(kind, p, x[i], y[i]) / (double)width;
        }
    }
    return sum;
}

/* ---- Values and gradients ---- */

typedef struct rows_case {
    bwi_loss_kind kind;
    float p;
    bwi_rows rows;
    float *x, *y, *weight;
    int32_t *labels;
} rows_case;

static bool of_probabilities(bwi_loss_kind kind)
{
    return kind >= BWI_LOSS_BINARY && kind <= BWI_LOSS_SPARSE;
}

/* Predictions and targets that the formula is defined for, away from its kinks. */
static void fill(rows_case *c)
{
    for (int64_t i = 0; i < c->rows.samples * c->rows.count * c->rows.width; i++) {
        bool positive = of_probabilities(c->kind) || c->kind == BWI_LOSS_LOGARITHMIC || c->kind == BWI_LOSS_POISSON;
        c->x[i] = positive ? 0.1f + 0.4f * (c->x[i] + 1) : 3 * c->x[i];
        c->y[i] = of_probabilities(c->kind) || positive ? 0.1f + 0.4f * (c->y[i] + 1) : 2 * c->y[i];
        if (fabsf(c->x[i] - c->y[i]) < 0.01f) {
            c->x[i] += 0.03f;
        }
    }
    for (int64_t r = 0; r < c->rows.samples * c->rows.count; r++) {
        c->labels[r] = (int32_t)random_below(c->rows.width);
        for (int64_t i = 0; c->kind == BWI_LOSS_SPARSE && i < c->rows.width; i++) {
            c->y[r * c->rows.width + i] = i == c->labels[r];
        }
    }
}

static double weight_of(const rows_case *c, int64_t r)
{
    return c->rows.weights == 0 ? 1 : (double)c->weight[c->rows.weights == 1 ? r / c->rows.count : r];
}

/* The loss of row r, with one of its numbers moved. */
static double moved_loss(const rows_case *c, int64_t r, int64_t which, double by)
{
    double x[128] = {0}, y[128] = {0};
    for (int64_t i = 0; i < c->rows.width; i++) {
        x[i] = (double)c->x[r * c->rows.width + i] + (i == which ? by : 0);
        y[i] = (double)c->y[r * c->rows.width + i];
    }
    return row_loss(c->kind, (double)c->p, c->rows.width, x, y) * weight_of(c, r) / (double)c->rows.count;
}

static void check_values(const rows_case *c, const float *loss)
{
    for (int64_t s = 0; s < c->rows.samples; s++) {
        double expected = 0;
        for (int64_t r = s * c->rows.count; r < (s + 1) * c->rows.count; r++) {
            expected += moved_loss(c, r, -1, 0);
        }
        if (!(fabs((double)loss[s] - expected) <= 3e-6 * (1 + fabs(expected)))) {
            fail_msg("loss %d of width %lld: expected %.9g, found %.9g", (int)c->kind, (long long)c->rows.width, expected,
                     (double)loss[s]);
        }
    }
}

static void check_gradients(const rows_case *c, const float *diff, const float *dx)
{
    double by = 1e-5;
    for (int64_t i = 0; i < c->rows.samples * c->rows.count * c->rows.width; i++) {
        int64_t r = i / c->rows.width, which = i % c->rows.width;
        double expected = (moved_loss(c, r, which, by) - moved_loss(c, r, which, -by)) / (2 * by) * (double)diff[r / c->rows.count];
        if (!(fabs((double)dx[i] - expected) <= 1e-5 * (1 + fabs(expected)))) {
            fail_msg("gradient of loss %d of width %lld: expected %.9g, found %.9g", (int)c->kind, (long long)c->rows.width,
                     expected, (double)dx[i]);
        }
    }
}

static void check_case(const bwi_kernels *k, bwi_loss_kind kind, const bwi_rows *rows)
{
    bool smooths = kind == BWI_LOSS_BINARY_LOGITS || kind == BWI_LOSS_BINARY || kind == BWI_LOSS_CATEGORICAL;
    int64_t count = rows->samples * rows->count, numbers = count * rows->width;
    rows_case c = {.kind = kind, .p = kind == BWI_LOSS_HUBER ? 0.75f : smooths ? 0.125f : 0, .rows = *rows};
    c.x = input_floats(numbers);
    c.y = input_floats(numbers);
    c.weight = input_floats(count);
    c.labels = input_bytes((size_t)count * sizeof *c.labels);
    fill(&c);
    const void *target = kind == BWI_LOSS_SPARSE ? (const void *)c.labels : c.y;
    float *loss = output_floats(rows->samples), *dx = output_floats(numbers), *diff = input_floats(rows->samples);
    k->loss->forward(kind, c.p, rows, c.x, target, rows->weights ? c.weight : NULL, loss);
    check_values(&c, loss);
    k->loss->backward(kind, c.p, rows, c.x, target, rows->weights ? c.weight : NULL, diff, dx);
    check_gradients(&c, diff, dx);
    output_floats_free(loss, rows->samples);
    output_floats_free(dx, numbers);
    free(diff);
    free(c.x);
    free(c.y);
    free(c.weight);
    free(c.labels);
}

static void check_losses(const bwi_kernels *k)
{
    for (int kind = 0; kind < BWI_LOSSES; kind++) {
        for (size_t w = 0; w < BWI_COUNT(widths); w++) {
            check_case(k, (bwi_loss_kind)kind, &(bwi_rows){.samples = 5, .count = 1, .width = widths[w]});
            check_case(k, (bwi_loss_kind)kind, &(bwi_rows){.samples = 2, .count = 1, .width = widths[w], .weights = 1});
            check_case(k, (bwi_loss_kind)kind, &(bwi_rows){.samples = 3, .count = 4, .width = widths[w], .weights = 4});
        }
        check_case(k, (bwi_loss_kind)kind, &(bwi_rows){.samples = 37, .count = 1, .width = 1});
    }
}

static void test_losses(void **state)
{
    (void)state;
    each_table(check_losses);
}

/* ---- Rows of exponentials and logarithms ---- */

static const bwi_loss_kind with_vectors[] = {BWI_LOSS_LOGARITHMIC, BWI_LOSS_LOG_COSH, BWI_LOSS_BINARY_LOGITS, /* with slopes */
                                             BWI_LOSS_POISSON,     BWI_LOSS_BINARY,   BWI_LOSS_DIVERGENCE,    BWI_LOSS_CATEGORICAL};

static void check_vectors_of(const bwi_kernels *k, bwi_loss_kind kind, float smoothing, int64_t width)
{
    rows_case c = {.kind = kind, .rows = {.samples = 1, .count = 1, .width = width}};
    c.x = input_floats(width);
    c.y = input_floats(width);
    c.labels = input_bytes(sizeof *c.labels);
    fill(&c);
    double expected = bwi_kernels_reference.loss_sum(kind, smoothing, width, c.x, c.y);
    double found = k->loss_sum(kind, smoothing, width, c.x, c.y);
    if (!(fabs(found - expected) <= 2e-7 * (double)width + 1e-6 * fabs(expected))) {
        fail_msg("loss %d of width %lld: expected %.9g, found %.9g", (int)kind, (long long)width, expected, found);
    }
    if (kind == with_vectors[0] || kind == with_vectors[1] || kind == with_vectors[2]) {
        float *dx = output_floats(width), *slopes = output_floats(width);
        k->loss_slopes(kind, smoothing, width, c.x, c.y, 0.75f, dx);
        bwi_kernels_reference.loss_slopes(kind, smoothing, width, c.x, c.y, 0.75f, slopes);
        assert_close("slopes", dx, slopes, width, 4e-7);
        output_floats_free(dx, width);
        output_floats_free(slopes, width);
    }
    free(c.x);
    free(c.y);
    free(c.labels);
}

static void check_vectors(const bwi_kernels *k)
{
    for (size_t i = 0; i < BWI_COUNT(with_vectors); i++) {
        for (int64_t width = 1; width < 70; width++) {
            check_vectors_of(k, with_vectors[i], 0, width);
            check_vectors_of(k, with_vectors[i], 0.25f, width);
        }
        check_vectors_of(k, with_vectors[i], 0, 1000);
    }
}

/* What lies outside a formula's range, in each place of a row: clipped, infinite, or not a number, as its definition has it. */
static void check_range(const bwi_kernels *k)
{
    const float outside[] = {-1, 0, 1e-30f, 1, 2, 1e30f, INFINITY, -INFINITY, NAN};
    for (size_t i = 0; i < BWI_COUNT(with_vectors); i++) {
        for (size_t o = 0; o < BWI_COUNT(outside); o++) {
            for (int64_t width = 17; width < 40; width += 5) {
                rows_case c = {.kind = BWI_LOSS_BINARY, .rows = {.samples = 1, .count = 1, .width = width}};
                c.x = input_floats(width);
                c.y = input_floats(width);
                c.labels = input_bytes(sizeof *c.labels);
                fill(&c);
                c.x[(width * (int64_t)o) % width] = outside[o];
                double expected = bwi_kernels_reference.loss_sum(with_vectors[i], 0, width, c.x, c.y);
                double found = k->loss_sum(with_vectors[i], 0, width, c.x, c.y);
                bool same =
                    isnan(expected) ? isnan(found) : fabs(found - expected) <= 1e-5 * (1 + fabs(expected)) || found == expected;
                if (!same) {
                    fail_msg("loss %d of %g: expected %.9g, found %.9g", (int)with_vectors[i], (double)outside[o], expected, found);
                }
                free(c.x);
                free(c.y);
                free(c.labels);
            }
        }
    }
}

static void test_vectors(void **state)
{
    (void)state;
    each_table(check_vectors);
    each_table(check_range);
}

/* Without exponentials and logarithms the bits are those of every other table. */
static void check_same(const bwi_kernels *k)
{
    static const bwi_loss_kind kinds[] = {BWI_LOSS_SQUARE, BWI_LOSS_ABSOLUTE,      BWI_LOSS_PERCENTAGE, BWI_LOSS_HUBER,
                                          BWI_LOSS_HINGE,  BWI_LOSS_SQUARED_HINGE, BWI_LOSS_COSINE};
    const bwi_kernels *other = bwi_kernels_by_name("portable");
    bwi_rows rows = {.samples = 3, .count = 1, .width = 77};
    for (size_t i = 0; i < BWI_COUNT(kinds); i++) {
        float *x = input_floats(231), *y = input_floats(231), loss[2][3], dx[2][231];
        const float diff[3] = {1, 0.3f, -2};
        k->loss->forward(kinds[i], 0.3f, &rows, x, y, NULL, loss[0]);
        other->loss->forward(kinds[i], 0.3f, &rows, x, y, NULL, loss[1]);
        assert_memory_equal(loss[0], loss[1], sizeof loss[0]);
        k->loss->backward(kinds[i], 0.3f, &rows, x, y, NULL, diff, dx[0]);
        other->loss->backward(kinds[i], 0.3f, &rows, x, y, NULL, diff, dx[1]);
        assert_memory_equal(dx[0], dx[1], sizeof dx[0]);
        free(x);
        free(y);
    }
}

static void test_same(void **state)
{
    (void)state;
    each_table(check_same);
}

/* What is not a number stays so, and spoils no other sample. */
static void check_nan(const bwi_kernels *k)
{
    for (int kind = 0; kind < BWI_LOSSES; kind++) {
        for (size_t w = 0; w < BWI_COUNT(widths); w++) {
            bwi_rows rows = {.samples = 2, .count = 1, .width = widths[w]};
            rows_case c = {.kind = (bwi_loss_kind)kind, .rows = rows};
            const int32_t labels[2] = {0, 0};
            c.x = input_floats(2 * widths[w]);
            c.y = input_floats(2 * widths[w]);
            c.labels = input_bytes(2 * sizeof *c.labels);
            fill(&c);
            c.x[0] = NAN;
            float loss[2], ones[2] = {1, 1}, *dx = output_floats(2 * widths[w]);
            const void *target = kind == BWI_LOSS_SPARSE ? (const void *)labels : c.y;
            k->loss->forward(c.kind, 1, &rows, c.x, target, NULL, loss);
            assert_true(isnan(loss[0]));
            assert_true(!isnan(loss[1]));
            k->loss->backward(c.kind, 1, &rows, c.x, target, NULL, ones, dx);
            assert_true(isnan(dx[0]));
            assert_true(!isnan(dx[widths[w]]));
            output_floats_free(dx, 2 * widths[w]);
            free(c.x);
            free(c.y);
            free(c.labels);
        }
    }
}

static void test_nan(void **state)
{
    (void)state;
    each_table(check_nan);
}

/* Beyond the clip a probability's slope is zero; at a kink the slope is that of the flat side. */
static void check_by_hand(const bwi_kernels *k)
{
    bwi_rows rows = {.samples = 3, .count = 1, .width = 1};
    const float zeros[3] = {0, 0, 0}, ones[3] = {1, 1, 1};
    float loss[3], dx[3];
    k->loss->forward(BWI_LOSS_BINARY, 0, &rows, (const float[]){0, 1, 0.5f}, zeros, NULL, loss);
    assert_close("binary", loss, (const float[]){1.19209e-7f, 15.9424f, 0.693147182f}, 3, 1e-4);
    k->loss->backward(BWI_LOSS_BINARY, 0, &rows, (const float[]){0, 1, 0.5f}, zeros, NULL, ones, dx);
    assert_close("binary's slope", dx, (const float[]){0, 0, 2}, 3, 1e-6);
    k->loss->backward(BWI_LOSS_ABSOLUTE, 0, &rows, (const float[]){0, 1, -2}, zeros, NULL, ones, dx);
    assert_close("absolute's slope", dx, (const float[]){0, 1, -1}, 3, 0);
    k->loss->backward(BWI_LOSS_HINGE, 0, &rows, (const float[]){1, 0.5f, 2}, ones, NULL, ones, dx);
    assert_close("hinge's slope", dx, (const float[]){0, -1, 0}, 3, 0);
    k->loss->forward(BWI_LOSS_HINGE, 0, &rows, (const float[]){-2, 0, 1}, zeros, NULL, loss);
    assert_close("hinge of zeros", loss, (const float[]){0, 1, 2}, 3, 0);
}

static void test_by_hand(void **state)
{
    (void)state;
    each_table(check_by_hand);
}

/* ---- Around crossentropy from logits ---- */

static void check_labels(const bwi_kernels *k)
{
    const int32_t labels[] = {0, 2, 1, 3, -1};
    assert_int_equal(k->loss->bad_label(5, 4, labels), 4);
    assert_int_equal(k->loss->bad_label(5, 3, labels), 3);
    assert_int_equal(k->loss->bad_label(3, 3, labels), -1);
    assert_int_equal(k->loss->bad_label(0, 3, labels), -1);
    const float y[] = {0, 1, 0, 0.5f, 0.25f, 0.5f, -3, -2, -1};
    int32_t found[3];
    k->loss->labels_of(3, 3, y, found);
    assert_memory_equal(found, ((const int32_t[]){1, 0, 2}), sizeof found);
}

/* For odd sizes, with a number outside in each place, above and below; rows without weight do not count. */
static void check_bad_numbers(const bwi_kernels *k)
{
    for (int64_t width = 1; width <= 3; width++) {
        for (int64_t samples = 1; samples <= 19; samples += 6) {
            bwi_rows rows = {.samples = samples, .count = 2, .width = width};
            float y[19 * 2 * 3], weight[19 * 2];
            int64_t all = samples * 2 * width;
            for (int64_t i = 0; i < all; i++) {
                y[i] = (float)(i % 3) / 2;
            }
            assert_int_equal(k->loss->bad_number(&rows, 0, 1, y, NULL), -1);
            for (int64_t i = 0; i < all; i++) {
                float good = y[i];
                y[i] = i % 2 ? -0.001F : 1.001F;
                rows.weights = 0;
                assert_int_equal(k->loss->bad_number(&rows, 0, 1, y, NULL), i);
                for (int64_t r = 0; r < samples * 2; r++) {
                    weight[r] = r == i / width ? 0 : 1;
                }
                rows.weights = 2;
                assert_int_equal(k->loss->bad_number(&rows, 0, 1, y, weight), -1);
                weight[i / width] = 0.5F;
                assert_int_equal(k->loss->bad_number(&rows, 0, 1, y, weight), i);
                y[i] = good;
            }
        }
    }
    const float weights[] = {0, 3e38F, INFINITY, NAN, -1e-30F};
    assert_int_equal(k->loss->bad_number(&(bwi_rows){5, 1, 1, 0}, 0, INFINITY, weights, NULL), 4);
    assert_int_equal(k->loss->bad_number(&(bwi_rows){4, 1, 1, 0}, 0, INFINITY, weights, NULL), -1);
}

static void test_bad_numbers(void **state)
{
    (void)state;
    each_table(check_bad_numbers);
}

/* Few different numbers, so that the first of equal ones matters, and now and then one that is none. */
static void check_largest(const bwi_kernels *k)
{
    for (int64_t width = 1; width < 100; width++) {
        float *y = input_floats(width);
        for (int64_t i = 0; i < width; i++) {
            int64_t which = random_below(12);
            y[i] = which == 11 ? NAN : (float)(which - 8);
        }
        int32_t expected = 0, found;
        for (int32_t i = 1; i < width; i++) {
            if (y[i] > y[expected]) {
                expected = i;
            }
        }
        k->loss->labels_of(1, width, y, &found);
        assert_int_equal(found, expected);
        free(y);
    }
}

static void test_labels(void **state)
{
    (void)state;
    each_table(check_labels);
    for (int i = 0; i < 20; i++) {
        each_table(check_largest);
    }
}

/* sum t (log sum exp x - x) and T softmax - t. */
static void check_spread_of(const bwi_kernels *k, int64_t rows, int64_t width, float smoothing)
{
    int64_t count = rows * width;
    float *x = input_floats(count), *y = input_floats(count), *loss = output_floats(rows), *d = output_floats(count);
    float *plain = output_floats(rows), *expected_loss = output_floats(rows), *expected = output_floats(count);
    int32_t *labels = output_bytes((size_t)rows * sizeof *labels);
    for (int64_t i = 0; i < count; i++) {
        x[i] *= 8;
        y[i] = y[i] * y[i];
    }
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0, total = 0, value = 0;
        for (int64_t i = r * width; i < (r + 1) * width; i++) {
            sum += exp((double)x[i]);
            total += (double)y[i] * (1 - (double)smoothing) + (double)smoothing / (double)width;
        }
        for (int64_t i = r * width; i < (r + 1) * width; i++) {
            double t = (double)y[i] * (1 - (double)smoothing) + (double)smoothing / (double)width;
            value += t * (log(sum) - (double)x[i]);
            expected[i] = (float)(total * exp((double)x[i]) / sum - t);
        }
        expected_loss[r] = (float)value;
    }
    k->loss->labels_of(rows, width, y, labels);
    k->crossentropy(rows, width, x, labels, NULL, loss, d);
    memcpy(plain, loss, (size_t)rows * sizeof *loss);
    k->loss->spread_target(rows, width, smoothing, x, y, labels, loss, d);
    assert_close("loss", loss, expected_loss, rows, 4e-6 * (double)width);
    assert_close("difference", d, expected, count, 1e-6 * (double)width);
    k->loss->spread_target(rows, width, smoothing, x, y, labels, plain, NULL);
    assert_memory_equal(loss, plain, (size_t)rows * sizeof *loss);
    output_floats_free(loss, rows);
    output_floats_free(d, count);
    output_floats_free(plain, rows);
    output_floats_free(expected_loss, rows);
    output_floats_free(expected, count);
    output_free(labels, (size_t)rows * sizeof *labels);
    free(x);
    free(y);
}

static void check_spread(const bwi_kernels *k)
{
    for (size_t w = 0; w < BWI_COUNT(widths); w++) {
        check_spread_of(k, 3, widths[w], 0);
        check_spread_of(k, 2, widths[w], 0.25f);
    }
}

static void test_spread(void **state)
{
    (void)state;
    each_table(check_spread);
}

static void check_rows(const bwi_kernels *k)
{
    bwi_rows rows = {.samples = 2, .count = 2, .width = 3, .weights = 2};
    const float row_loss[] = {1, 2, 3, 4}, weight[] = {1, 0.5f, 0, 2}, diff[] = {2, 1};
    const float d[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    float loss[2], dx[12];
    k->loss->mean_of_rows(&rows, row_loss, weight, loss);
    assert_close("by row", loss, (const float[]){1, 4}, 2, 0);
    k->loss->scale_rows(&rows, d, weight, diff, dx);
    assert_close("by row", dx, (const float[]){1, 2, 3, 2, 2.5f, 3, 0, 0, 0, 10, 11, 12}, 12, 0);
    rows.weights = 1;
    k->loss->mean_of_rows(&rows, row_loss, weight, loss);
    assert_close("by sample", loss, (const float[]){1.5f, 1.75f}, 2, 0);
    rows.weights = 0;
    k->loss->mean_of_rows(&rows, row_loss, NULL, loss);
    assert_close("without weights", loss, (const float[]){1.5f, 3.5f}, 2, 0);
    k->loss->scale_rows(&rows, d, NULL, diff, dx);
    assert_close("without weights", dx, (const float[]){1, 2, 3, 4, 5, 6, 3.5f, 4, 4.5f, 5, 5.5f, 6}, 12, 0);
}

static void test_rows(void **state)
{
    (void)state;
    each_table(check_rows);
}

static void check_divisions(const bwi_kernels *k)
{
    const int32_t labels[] = {0, 2, 255, 2, -1};
    float mask[5], factor, y[2] = {3, -4};
    int32_t kept[5];
    k->loss->ignored_mask(5, 255, labels, mask);
    assert_close("mask", mask, (const float[]){1, 1, 0, 1, 1}, 5, 0);
    k->loss->ignored_labels(5, 255, labels, kept);
    assert_memory_equal(kept, ((const int32_t[]){0, 2, 0, 2, -1}), sizeof kept);
    k->loss->ignored_labels(5, 2, labels, kept);
    assert_memory_equal(kept, ((const int32_t[]){0, 0, 255, 0, -1}), sizeof kept);
    k->loss->balance(6, (const double[]){100, 1.5}, &factor);
    assert_close("by weights", &factor, (const float[]){4}, 1, 0);
    k->loss->balance(6, (const double[]){100, 0}, &factor);
    assert_close("without any", &factor, (const float[]){0}, 1, 0);
    k->loss->balance(6, NULL, &factor);
    assert_close("a sum", &factor, (const float[]){6}, 1, 0);
    k->loss->scale_by(2, &factor, y, y);
    assert_close("scaled", y, (const float[]){18, -24}, 2, 0);
}

static void test_divisions(void **state)
{
    (void)state;
    each_table(check_divisions);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_losses),    cmocka_unit_test(test_vectors), cmocka_unit_test(test_same),
        cmocka_unit_test(test_nan),       cmocka_unit_test(test_by_hand), cmocka_unit_test(test_labels),
        cmocka_unit_test(test_spread),    cmocka_unit_test(test_rows),    cmocka_unit_test(test_bad_numbers),
        cmocka_unit_test(test_divisions),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
