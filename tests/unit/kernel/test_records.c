/* Records of sparse gradients, with every table, against sums over all records of a row in the order of their places. */
#include "support/kernel_check.h"

enum { WIDEST = 9, MOST = 700 };

typedef struct fixture {
    int64_t count, width, table_rows, touched;
    double rows[MOST], squared[MOST], total;
    uint64_t lists[2][MOST], *sorted;
    float values[MOST * WIDEST], before[MOST * WIDEST];

} fixture;

/* Few rows are touched often, many rarely, some never. */
static void fill(fixture *f, int64_t count, int64_t width, int64_t table_rows)
{
    memset(f, 0, sizeof *f);
    f->count = count;
    f->width = width;
    f->table_rows = table_rows;
    for (int64_t i = 0; i < count; i++) {
        f->rows[i] = (double)random_below(random_below(2) && table_rows > 3 ? 3 : table_rows);
        for (int64_t j = 0; j < width; j++) {
            f->before[i * width + j] = f->values[i * width + j] = random_float();
        }
    }
}

static void sort(const bwi_kernels *k, fixture *f)
{
    bool spare = k->records->sort(f->count, f->table_rows, f->rows, f->lists[0], f->lists[1]);
    f->sorted = f->lists[spare];
}

static void check_sorted(const fixture *f)
{
    bool seen[MOST] = {false};
    for (int64_t i = 0; i < f->count; i++) {
        int64_t place = bwi_record_place(f->sorted[i]), row = bwi_record_row(f->sorted[i]);
        assert_true(place >= 0 && place < f->count);
        assert_false(seen[place]);
        seen[place] = true;
        assert_true((double)row == f->rows[place]);
        if (i > 0) {
            assert_true(f->sorted[i - 1] < f->sorted[i]); /* by row, then by place */
        }
    }
}

/* A row's sum, one addition after the other. */
static float sum_of(const fixture *f, int64_t row, int64_t j, const double *rows)
{
    float sum = 0;
    bool first = true;
    for (int64_t i = 0; i < f->count; i++) {
        if (rows[i] == (double)row) {
            sum = first ? f->before[i * f->width + j] : sum + f->before[i * f->width + j];
            first = false;
        }
    }
    return sum;
}

static void check_sums(const fixture *f, const double *rows)
{
    double total = 0;
    int64_t last = -1;
    for (int64_t h = 0; h < f->touched; h++) {
        int64_t row = bwi_record_row(f->sorted[h]), place = bwi_record_place(f->sorted[h]);
        assert_true(row > last);
        last = row;
        assert_true(f->rows[place] == (double)row);
        for (int64_t j = 0; j < f->width; j++) {
            float expected = sum_of(f, row, j, rows);
            assert_true(f->values[place * f->width + j] == expected);
            total += (double)expected * (double)expected;
        }
    }
    assert_true(fabs(f->total - total) <= 1e-12 * total);
}

/* Elements first ... first + count - 1 of the whole gradient, and zeros again. */
static void check_scatter(const bwi_kernels *k, const fixture *f, const double *rows, int64_t first, int64_t count)
{
    float *block = output_floats(count);
    memset(block, 0, (size_t)count * sizeof *block);
    k->records->scatter(first, count, f->width, f->touched, f->sorted, f->values, block, false);
    for (int64_t i = 0; i < count; i++) {
        assert_true(block[i] == sum_of(f, (first + i) / f->width, (first + i) % f->width, rows));
    }
    k->records->scatter(first, count, f->width, f->touched, f->sorted, f->values, block, true);
    for (int64_t i = 0; i < count; i++) {
        assert_true(block[i] == 0);
    }
    output_floats_free(block, count);
}

static void check_compact(const bwi_kernels *k, fixture *f, const double *rows)
{
    int64_t kept = k->records->compact(f->count, f->width, f->rows, f->values);
    assert_int_equal(kept, f->touched);
    int64_t next = 0;
    for (int64_t i = 0; i < f->count; i++) {
        bool head = true;
        for (int64_t before = 0; before < i; before++) {
            head = head && rows[before] != rows[i];
        }
        if (head) { /* in the order of first touch */
            assert_true(f->rows[next] == rows[i]);
            for (int64_t j = 0; j < f->width; j++) {
                assert_true(f->values[next * f->width + j] == sum_of(f, (int64_t)rows[i], j, rows));
            }
            next++;
        }
    }
    assert_int_equal(next, kept);
}

static void check_table(const bwi_kernels *k)
{
    static const int64_t counts[] = {0, 1, 2, 17, 300, MOST}, widths[] = {1, 4, WIDEST}, tables[] = {1, 5, 256, 257, 70000};
    static fixture f;
    static double rows[MOST];
    for (size_t a = 0; a < BWI_COUNT(counts); a++) {
        for (size_t b = 0; b < BWI_COUNT(tables); b++) {
            fill(&f, counts[a], widths[(a + b) % 3], tables[b]);
            memcpy(rows, f.rows, sizeof rows);
            sort(k, &f);
            check_sorted(&f);
            for (int64_t from = 0; from < f.count; from += 64) { /* in shares, as workers take them */
                k->records->sum(from, from + 64, f.count, f.width, f.sorted, f.values, f.squared);
            }
            f.touched = k->records->heads(f.count, f.sorted, f.rows, f.squared, &f.total);
            check_sums(&f, rows);
            check_scatter(k, &f, rows, 0, f.width);
            check_scatter(k, &f, rows, f.width * f.table_rows / 3, f.width * (f.table_rows - f.table_rows / 3) % 50 + 1);
            check_compact(k, &f, rows);
        }
    }
}

static void test_sums(void **state)
{
    (void)state;
    each_table(check_table);
}

/* Tiles of 8, 8, 4, 1 samples with two records each, behind three records of an earlier piece; the first tile is lane 3's of 4. */
static void check_lane_norms(const bwi_kernels *k)
{
    static fixture f;
    static const int64_t lane_of_tile[] = {3, 0, 1, 2};
    float v[7 * 3];
    bwi_record_lanes lanes = {
        .first = 3, .per_sample = 2, .tile = 8, .full = 2, .last = 2, .begins = {16, 20}, .lane = 3, .lanes = 4};
    fill(&f, 3 + 21 * 2, 3, 7);
    sort(k, &f);
    for (int64_t lane = 0; lane < 4; lane++) {
        double expected = 0;
        for (int64_t row = 0; row < 7; row++) {
            for (int64_t j = 0; j < 3; j++) {
                double sum = 0;
                for (int64_t i = 3; i < f.count; i++) {
                    int64_t sample = (i - 3) / 2, tile = sample < 8 ? 0 : sample < 16 ? 1 : sample < 20 ? 2 : 3;
                    sum += f.rows[i] == (double)row && lane_of_tile[tile] == lane ? (double)f.before[i * 3 + j] : 0;
                }
                expected += sum * sum;
            }
        }
        double found = k->records->lane_norm(&lanes, lane, f.count, 3, f.sorted, f.values, &(bwi_scaling){.v = NULL});
        assert_true(fabs(found - expected) <= 1e-12 * expected);
        for (int64_t i = 0; i < 7 * 3; i++) {
            v[i] = i == 5 ? 0.0F : 64.0F; /* row 1, column 2 */
        }
        double single = 0;
        for (int64_t i = 3; i < f.count; i++) {
            int64_t sample = (i - 3) / 2, tile = sample < 8 ? 0 : sample < 16 ? 1 : sample < 20 ? 2 : 3;
            single += f.rows[i] == 1 && lane_of_tile[tile] == lane ? (double)f.before[i * 3 + 2] : 0;
        }
        /* sqrt(0.25 v + 9) + 1 is 6 everywhere and 4 there */
        double scaled = (expected - single * single) / 36 + single * single / 16;
        found = k->records->lane_norm(&lanes, lane, f.count, 3, f.sorted, f.values, &(bwi_scaling){v, 0.25, 9, 1});
        assert_true(fabs(found - scaled) <= 1e-12 * scaled);
    }
}

static void test_lane_norms(void **state)
{
    (void)state;
    each_table(check_lane_norms);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_lane_norms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
