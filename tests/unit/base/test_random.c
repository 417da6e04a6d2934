/* Philox against its published vectors, normals against libm, permutations, hashes against values computed apart. */
#include "base/base.h"

#include <math.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

/* The vectors that Random123 publishes for philox4x32 with 10 rounds. */
static void test_philox(void **state)
{
    (void)state;
    static const struct {
        uint32_t counter[4], key[2], expected[4];
    } cases[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < BWI_COUNT(cases); i++) {
        const uint32_t *c = cases[i].counter, *k = cases[i].key;
        bwi_random got = bwi_random_at(k[0] | (uint64_t)k[1] << 32, c[2] | (uint64_t)c[3] << 32, c[0] | (uint64_t)c[1] << 32);
        assert_memory_equal(got.word, cases[i].expected, sizeof got.word);
    }
}

static void test_uniform(void **state)
{
    (void)state;
    assert_true(bwi_random_uniform(0) == 0);
    assert_true(bwi_random_uniform(0x80000000u) == 0.5f);
    assert_true(bwi_random_uniform(0xFFFFFFFFu) == 1 - 0x1p-24f);
    assert_true(bwi_random_uniform(0x1FF) == 0x1p-24f);
}

static void check_normal(uint32_t a, uint32_t b)
{
    float x, y;
    bwi_random_normal(a, b, &x, &y);
    double radius = sqrt(-2 * log(((double)a + 0.5) / 4294967296.0)), angle = 2 * acos(-1.0) * ((double)b / 4294967296.0);
    /* libm's sine of a rounded angle near a multiple of pi is off by up to 1e-15. */
    assert_true(fabs((double)x - radius * cos(angle)) <= 6e-8 * fabs((double)x) + 1e-14);
    assert_true(fabs((double)y - radius * sin(angle)) <= 6e-8 * fabs((double)y) + 1e-14);
}

static void test_normal(void **state)
{
    (void)state;
    static const uint32_t ends[] = {0,          1,          0x1FFFFFFF, 0x20000000, 0x3FFFFFFF, 0x40000000, 0x5FFFFFFF, 0x60000000,
                                    0x7FFFFFFF, 0x80000000, 0x9FFFFFFF, 0xA0000000, 0xC0000000, 0xDFFFFFFF, 0xE0000000, 0xFFFFFFFF};
    for (size_t i = 0; i < BWI_COUNT(ends); i++) {
        for (size_t j = 0; j < BWI_COUNT(ends); j++) {
            check_normal(ends[i], ends[j]);
        }
    }
    double moments[5] = {0};
    for (uint64_t i = 0; i < 100000; i++) {
        bwi_random random = bwi_random_at(7, 1, i);
        check_normal(random.word[0], random.word[1]);
        float x, y;
        bwi_random_normal(random.word[0], random.word[1], &x, &y);
        double z[2] = {(double)x, (double)y};
        for (int k = 1; k <= 4; k++) {
            moments[k] += (pow(z[0], k) + pow(z[1], k)) / 200000;
        }
    }
    /* 0, 1, 0, 3 within five standard errors: sqrt(1, 2, 15, 96 / 200000). */
    assert_true(fabs(moments[1]) < 0.0112);
    assert_true(fabs(moments[2] - 1) < 0.0159);
    assert_true(fabs(moments[3]) < 0.0434);
    assert_true(fabs(moments[4] - 3) < 0.1096);
}

/* ---- Permutations ---- */

static void test_permute_is_bijective(void **state)
{
    (void)state;
    static const int64_t counts[] = {1, 2, 3, 4, 5, 9, 10, 16, 17, 1000, 65536, 65537};
    unsigned char *seen = malloc(65537);
    for (size_t c = 0; c < BWI_COUNT(counts); c++) {
        for (uint64_t seed = 0; seed < 5; seed++) {
            memset(seen, 0, 65537);
            for (int64_t i = 0; i < counts[c]; i++) {
                int64_t number = bwi_permute(seed, 3 * seed, counts[c], i);
                assert_true(number >= 0 && number < counts[c]);
                assert_int_equal(seen[number], 0);
                seen[number] = 1;
            }
        }
    }
    free(seen);
}

/* Where item 0 goes, over many seeds, is uniform: chi-square with count - 1 degrees of freedom has mean count - 1 and
 * variance 2 (count - 1); six standard deviations are allowed. Neighbours and pairs likewise. */
static void check_uniform(int64_t count, int64_t item, bool epochs)
{
    int trials = (int)count * 200;
    int *hits = calloc((size_t)count, sizeof *hits);
    for (int t = 0; t < trials; t++) {
        hits[bwi_permute(epochs ? 5 : (uint64_t)t, epochs ? (uint64_t)t : 0, count, item)]++;
    }
    double square = 0;
    for (int64_t i = 0; i < count; i++) {
        square += (hits[i] - 200.0) * (hits[i] - 200.0) / 200;
    }
    free(hits);
    assert_true(square < (double)(count - 1) + 6 * sqrt(2 * (double)(count - 1)));
}

static void test_permute_is_uniform(void **state)
{
    (void)state;
    static const int64_t counts[] = {2, 3, 4, 7, 10, 64, 1000};
    for (size_t c = 0; c < BWI_COUNT(counts); c++) {
        check_uniform(counts[c], 0, false);
        check_uniform(counts[c], counts[c] - 1, true);
    }
}

/* Of five items all 120 orders come up, about equally often. */
static void test_permute_reaches_all_orders(void **state)
{
    (void)state;
    static int hits[3125];
    for (uint64_t seed = 0; seed < 24000; seed++) {
        int code = 0;
        for (int i = 0; i < 5; i++) {
            code = code * 5 + (int)bwi_permute(seed, 0, 5, i);
        }
        hits[code]++;
    }
    int orders = 0;
    double square = 0;
    for (int code = 0; code < 3125; code++) {
        orders += hits[code] > 0;
        square += hits[code] > 0 ? (hits[code] - 200.0) * (hits[code] - 200.0) / 200 : 0;
    }
    assert_int_equal(orders, 120);
    assert_true(square < 119 + 6 * sqrt(2 * 119.0));
}

/* Neighbours are not kept together: the difference of positions i and i + 1 is small as rarely as by chance. */
static void test_permute_separates_neighbours(void **state)
{
    (void)state;
    int64_t count = 100000;
    int near = 0;
    for (int64_t i = 0; i + 1 < count; i++) {
        near += llabs(bwi_permute(11, 0, count, i) - bwi_permute(11, 0, count, i + 1)) <= 50;
    }
    assert_true(near > 40 && near < 170); /* 100 expected */
}

static void test_permute_epochs_differ(void **state)
{
    (void)state;
    int same_epoch = 0, same_seed = 0;
    for (int64_t i = 0; i < 10000; i++) {
        same_epoch += bwi_permute(1, 0, 10000, i) == bwi_permute(1, 1, 10000, i);
        same_seed += bwi_permute(1, 0, 10000, i) == bwi_permute(2, 0, 10000, i);
    }
    assert_true(same_epoch < 12 && same_seed < 12); /* 1 expected */
}

/* Orders stay what they are: runs are resumed by newer versions. Values from a version in another language. */
static void test_permute_values(void **state)
{
    (void)state;
    static const int64_t ten[] = {8, 7, 5, 0, 6, 3, 2, 9, 4, 1};
    for (int i = 0; i < 10; i++) {
        assert_int_equal(bwi_permute(1, 2, 10, i), ten[i]);
    }
    assert_int_equal(bwi_permute(12345, 3, 1000000, 0), 894291);
    assert_int_equal(bwi_permute(12345, 3, 1000000, 1), 354745);
    assert_int_equal(bwi_permute(12345, 3, 1000000, 999999), 203399);
    assert_int_equal(bwi_permute(9, 0, INT64_MAX, (int64_t)1 << 62), 5966259988687683039);
}

/* Many at once are as one by one: any number of them, in any order, small and large counts. */
static void test_permute_all(void **state)
{
    (void)state;
    enum { MOST = 200 };
    int64_t positions[MOST], numbers[MOST];
    for (int64_t count = 1; count > 0 && count < INT64_MAX / 3; count = count * 3 + 1) {
        for (int64_t n = 0; n <= MOST; n = n * 2 + 1) {
            for (int64_t i = 0; i < n; i++) {
                positions[i] = i % 3 == 0 ? i % count : i % 3 == 1 ? count - 1 - i % count : count / 2;
            }
            memcpy(numbers, positions, sizeof numbers);
            bwi_permute_all(5, (uint64_t)count, count, numbers, n);
            for (int64_t i = 0; i < n; i++) {
                assert_int_equal(numbers[i], bwi_permute(5, (uint64_t)count, count, positions[i]));
            }
        }
    }
    for (int64_t i = 0; i < MOST; i++) {
        numbers[i] = INT64_MAX - 1 - i;
    }
    bwi_permute_all(5, 6, INT64_MAX, numbers, MOST);
    for (int64_t i = 0; i < MOST; i++) {
        assert_int_equal(numbers[i], bwi_permute(5, 6, INT64_MAX, INT64_MAX - 1 - i));
    }
}

/* ---- Hashes ---- */

static void test_hash_values(void **state)
{
    (void)state;
    unsigned char numbers[33];
    for (int i = 0; i < 33; i++) {
        numbers[i] = (unsigned char)(i - 1);
    }
    assert_int_equal(bwi_hash(0, "", 0), 0x33fe8bd4f9c57863);
    assert_int_equal(bwi_hash(0, "a", 1), 0xf84535867d543afd);
    assert_int_equal(bwi_hash(1, "a", 1), 0xc196711a596325f3);
    assert_int_equal(bwi_hash(0, "batchwise", 9), 0x0e8a87d76f57a2a6);
    assert_int_equal(bwi_hash(7, numbers + 1, 32), 0x8d7cdb768d49fa95); /* not aligned */
}

static int compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* No two of: all texts that differ from zeros in one or two bits, and zeros of all lengths. Sign bits in both halves of
 * words are what models differ in. */
static void test_hash_tells_apart(void **state)
{
    (void)state;
    static uint64_t hashes[100000];
    size_t count = 0;
    unsigned char bytes[40] = {0};
    for (size_t i = 0; i < 8 * 40; i++) {
        bytes[i / 8] ^= (unsigned char)(1 << i % 8);
        hashes[count++] = bwi_hash(0, bytes, sizeof bytes);
        for (size_t j = 0; j < i; j++) {
            bytes[j / 8] ^= (unsigned char)(1 << j % 8);
            hashes[count++] = bwi_hash(0, bytes, sizeof bytes);
            bytes[j / 8] ^= (unsigned char)(1 << j % 8);
        }
        bytes[i / 8] ^= (unsigned char)(1 << i % 8);
    }
    for (size_t length = 0; length <= sizeof bytes; length++) {
        hashes[count++] = bwi_hash(0, bytes, length);
    }
    assert_true(count <= BWI_COUNT(hashes));
    qsort(hashes, count, sizeof *hashes, compare);
    for (size_t i = 1; i < count; i++) {
        assert_true(hashes[i] != hashes[i - 1]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_philox),
        cmocka_unit_test(test_uniform),
        cmocka_unit_test(test_normal),
        cmocka_unit_test(test_permute_is_bijective),
        cmocka_unit_test(test_permute_is_uniform),
        cmocka_unit_test(test_permute_reaches_all_orders),
        cmocka_unit_test(test_permute_separates_neighbours),
        cmocka_unit_test(test_permute_epochs_differ),
        cmocka_unit_test(test_permute_values),
        cmocka_unit_test(test_permute_all),
        cmocka_unit_test(test_hash_values),
        cmocka_unit_test(test_hash_tells_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
