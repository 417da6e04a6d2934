/* CRC-32C against the published values (RFC 3720, B.4), and the processor's against the tables'. */
#include "../data/data_test.h"
#include "format/internal.h"

static void check(const void *bytes, size_t size, uint32_t right)
{
    assert_int_equal(bwi_crc32c(bytes, size), right);
    assert_int_equal(bwi_crc32c_tables(bytes, size), right);
}

static void test_known(void **state)
{
    (void)state;
    unsigned char bytes[32];
    check("123456789", 9, 0xe3069283);
    check("", 0, 0);
    memset(bytes, 0, sizeof bytes);
    check(bytes, sizeof bytes, 0x8a9136aa);
    memset(bytes, 255, sizeof bytes);
    check(bytes, sizeof bytes, 0x62a8ab43);
    for (int i = 0; i < 32; i++) {
        bytes[i] = (unsigned char)i;
    }
    check(bytes, sizeof bytes, 0x46dd794e);
    for (int i = 0; i < 32; i++) {
        bytes[i] = (unsigned char)(31 - i);
    }
    check(bytes, sizeof bytes, 0x113fdb5c);
}

static void test_lengths(void **state)
{
    (void)state;
    unsigned char bytes[200];
    for (size_t i = 0; i < sizeof bytes; i++) {
        bytes[i] = (unsigned char)(i * i * 7 + 3);
    }
    for (size_t first = 0; first < 9; first++) {
        for (size_t size = 0; first + size <= sizeof bytes; size++) {
            assert_int_equal(bwi_crc32c(bytes + first, size), bwi_crc32c_tables(bytes + first, size));
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_known), cmocka_unit_test(test_lengths)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
