/* Members of zip files: contents, places and sums of files that NumPy wrote; damage and false claims. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "format/format.h"
#include "support/folder.h"
#include "support/written.h"

/* The file in memory of exactly its size, from the caller's point of view a mapped one. */
static bwi_bytes load(const char *name)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", BW_TEST_DATA, name);
    FILE *file = fopen(path, "rb");
    if (!file) {
        fail_msg("cannot open %s", path);
    }
    fseek(file, 0, SEEK_END);
    size_t size = (size_t)ftell(file);
    rewind(file);
    unsigned char *data = malloc(size);
    assert_int_equal(fread(data, 1, size, file), size);
    fclose(file);
    return (bwi_bytes){.data = data, .size = size};
}

static unsigned char *writable(const bwi_bytes *file)
{
    return (unsigned char *)(uintptr_t)file->data;
}

static void test_members(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    size_t before = bwi_allocated_bytes(ctx);
    bwi_bytes file = load("uint8_deflated.npz");
    bwi_zip *zip;
    assert_int_equal(bwi_zip_open(ctx, &zip, &file, "a.npz"), BW_OK);
    assert_int_equal(bwi_zip_count(zip), 3);
    assert_string_equal(bwi_zip_name(zip, 0), "x.npy");
    assert_string_equal(bwi_zip_name(zip, 2), "w.npy");
    assert_string_equal(bwi_zip_name(zip, 3), "");
    assert_string_equal(bwi_zip_name(zip, -1), "");
    bwi_zip_member member;
    assert_int_equal(bwi_zip_member_at(zip, 0, &member), BW_OK);
    assert_int_equal(member.size, 128 + 120);
    assert_false(member.stored);
    assert_true(member.packed < member.size);
    assert_int_equal(bwi_zip_member_at(zip, 3, &member), BW_DATA_LOSS);

    unsigned char bytes[128 + 120 + 1];
    assert_int_equal(bwi_zip_begin(zip, 0), BW_OK);
    assert_int_equal(bwi_zip_read(zip, bytes, 100), BW_OK); /* in two pieces */
    assert_int_equal(bwi_zip_read(zip, bytes + 100, 148), BW_OK);
    assert_int_equal(bwi_zip_end(zip), BW_OK);
    assert_memory_equal(bytes, "\x93NUMPY\1", 8);
    assert_int_equal(bytes[128], 0); /* x is in Fortran's order: sample 1 follows sample 0, 24 values on */
    assert_int_equal(bytes[129], 24);

    assert_int_equal(bwi_zip_begin(zip, 0), BW_OK);
    assert_int_equal(bwi_zip_read(zip, bytes, sizeof bytes), BW_DATA_LOSS); /* one too many */
    assert_non_null(strstr(bw_message(ctx), "ends early"));
    assert_int_equal(bwi_zip_begin(zip, 0), BW_OK);
    assert_int_equal(bwi_zip_read(zip, bytes, 247), BW_OK);
    assert_int_equal(bwi_zip_end(zip), BW_DATA_LOSS); /* one too few */
    assert_non_null(strstr(bw_message(ctx), "longer than declared"));
    assert_int_equal(bwi_zip_begin(zip, 1), BW_OK);
    assert_int_equal(bwi_zip_begin(zip, 2), BW_OK); /* drops the one before */
    bwi_zip_close(zip);
    bwi_zip_close(NULL);
    assert_int_equal(bwi_allocated_bytes(ctx), before);
    free(writable(&file));
    bw_close(ctx);
}

static void test_in_place(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        int64_t index;
        bool found;
    } cases[] = {
        {"uint8_stored.npz", 0, true}, {"uint8_stored.npz", 2, true}, {"zip64.npz", 1, true}, {"uint8_deflated.npz", 0, false}};
    bw_context *ctx = bw_open(NULL);
    for (size_t i = 0; i < BWI_COUNT(cases); i++) {
        bwi_bytes file = load(cases[i].name);
        bwi_zip *zip;
        bwi_zip_member member;
        const unsigned char *data;
        assert_int_equal(bwi_zip_open(ctx, &zip, &file, cases[i].name), BW_OK);
        assert_int_equal(bwi_zip_in_place(zip, cases[i].index, &data), BW_OK);
        assert_int_equal(bwi_zip_member_at(zip, cases[i].index, &member), BW_OK);
        assert_int_equal(!!data, cases[i].found);
        if (data) {
            assert_true(data > file.data && data + member.size < file.data + file.size);
            assert_memory_equal(data, "\x93NUMPY\1", 8);
        }
        bwi_zip_close(zip);
        free(writable(&file));
    }
    bw_close(ctx);
}

/* A wrong place in the directory: nothing is used in place, and reading says so. */
static void test_place_unknown(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bwi_bytes file = load("uint8_stored.npz");
    unsigned char *copy = malloc(file.size);
    memcpy(copy, file.data, file.size);
    unsigned char *central = memmem(copy, file.size, "PK\1\2", 4);
    central[42] = 1; /* the place of x's local header */
    bwi_bytes moved = {.data = copy, .size = file.size};
    bwi_zip *zip;
    const unsigned char *data = copy;
    assert_int_equal(bwi_zip_open(ctx, &zip, &moved, "m.npz"), BW_OK);
    assert_int_equal(bwi_zip_in_place(zip, 0, &data), BW_OK);
    assert_null(data);
    unsigned char bytes[248];
    bw_status status = bwi_zip_begin(zip, 0); /* libzip notices it sooner or later */
    if (status == BW_OK) {
        status = bwi_zip_read(zip, bytes, sizeof bytes);
    }
    if (status == BW_OK) {
        status = bwi_zip_end(zip);
    }
    assert_int_equal(status, BW_DATA_LOSS);
    assert_non_null(strstr(bw_message(ctx), "m.npz: member 'x.npy' is damaged"));
    bwi_zip_close(zip);
    free(copy);
    free(writable(&file));
    bw_close(ctx);
}

static void test_sum(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bwi_bytes file = load("uint8_stored.npz");
    unsigned char *x = memmem(writable(&file), file.size, "\x93NUMPY", 6);
    x[140] ^= 4;
    bwi_zip *zip;
    const unsigned char *data;
    unsigned char bytes[248];
    assert_int_equal(bwi_zip_open(ctx, &zip, &file, "s.npz"), BW_OK);
    assert_int_equal(bwi_zip_in_place(zip, 0, &data), BW_DATA_LOSS);
    assert_null(data);
    assert_int_equal(bwi_zip_begin(zip, 0), BW_OK);
    assert_int_equal(bwi_zip_read(zip, bytes, sizeof bytes), BW_OK);
    assert_int_equal(bwi_zip_end(zip), BW_DATA_LOSS);
    assert_non_null(strstr(bw_message(ctx), "CRC"));
    bwi_zip_close(zip);
    free(writable(&file));
    bw_close(ctx);
}

static void test_claims(void **state)
{
    (void)state;
    static const struct {
        const char *name, *part;
    } cases[] = {{"bomb_members.npz", "1099511627776 members"}, {"bomb_overlap.npz", "overlap"}};
    bw_context *ctx = bw_open(NULL);
    for (size_t i = 0; i < BWI_COUNT(cases); i++) {
        bwi_bytes file = load(cases[i].name);
        bwi_zip *zip;
        assert_int_equal(bwi_zip_open(ctx, &zip, &file, "c.npz"), BW_DATA_LOSS);
        assert_null(zip);
        assert_non_null(strstr(bw_message(ctx), cases[i].part));
        free(writable(&file));
    }
    bw_close(ctx);
}

/* An end of a directory that stands before the last one is bounded as well: libzip may choose it. */
static void test_earlier_end(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bwi_bytes bomb = load("bomb_members.npz");
    const unsigned char tail[22] = "PK\5\6";
    unsigned char *both = malloc(bomb.size + sizeof tail);
    memcpy(both, bomb.data, bomb.size);
    memcpy(both + bomb.size, tail, sizeof tail);
    bwi_bytes file = {.data = both, .size = bomb.size + sizeof tail};
    bwi_zip *zip;
    assert_int_equal(bwi_zip_open(ctx, &zip, &file, "e.npz"), BW_DATA_LOSS);
    assert_non_null(strstr(bw_message(ctx), "1099511627776 members"));
    free(both);
    free(writable(&bomb));
    bw_close(ctx);
}

/* Members come back as they were, in the same bytes each time. libzip reads them, which did not write them. */
static void test_written(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    size_t before = bwi_allocated_bytes(ctx);
    const zip_values members[] = {{"a.json", "{}", 2}, {"empty", "", 0}, {"b/c", "0123456789", 10}};
    bwi_bytes file[2];
    for (int i = 0; i < 2; i++) {
        const char *path = inside(i ? "again.zip" : "a.zip");
        assert_int_equal(write_zip(ctx, path, members, 3), BW_OK);
        assert_int_equal(bwi_file_map(ctx, &file[i], path), BW_OK);
        unlink(path);
    }
    assert_int_equal(file[0].size, file[1].size);
    assert_memory_equal(file[0].data, file[1].data, file[0].size);
    bwi_zip *zip;
    assert_int_equal(bwi_zip_open(ctx, &zip, &file[0], "a.zip"), BW_OK);
    assert_int_equal(bwi_zip_count(zip), 3);
    for (int i = 0; i < 3; i++) {
        bwi_zip_member member;
        const unsigned char *data;
        assert_int_equal(bwi_zip_member_at(zip, i, &member), BW_OK);
        assert_string_equal(member.name, members[i].name);
        assert_int_equal(member.size, members[i].size);
        assert_true(member.stored);
        assert_int_equal(bwi_zip_in_place(zip, i, &data), BW_OK);
        assert_memory_equal(data, members[i].data, members[i].size);
    }
    bwi_zip_close(zip);
    bwi_file_unmap(ctx, &file[0]);
    bwi_file_unmap(ctx, &file[1]);
    assert_int_equal(bwi_allocated_bytes(ctx), before);
    bw_close(ctx);
}

/* More or fewer bytes than were announced would make a file that nobody can read. */
static void test_announced(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    for (size_t announced = 2; announced <= 4; announced++) {
        bwi_file_out out;
        assert_int_equal(bwi_file_begin(ctx, &out, inside("a.zip")), BW_OK);
        bwi_zip_out zip = {.file = &out};
        assert_int_equal(bwi_zip_out_begin(&zip, "x", announced), BW_OK);
        assert_int_equal(bwi_zip_out_put(&zip, "abc", 3), BW_OK);
        assert_int_equal(bwi_zip_out_end(&zip), announced == 3 ? BW_OK : BW_INTERNAL);
        bwi_zip_out_free(&zip);
        assert_int_equal(bwi_file_end(&out, BW_CANCELLED), BW_CANCELLED);
    }
    bw_close(ctx);
}

/* Members of more than 4 GiB, and members behind them, have their numbers in fields of zip64. The file has holes where the zeros
 * would be, so that it needs no space; its sums are not those of its bytes. */
static void test_large(void **state)
{
    (void)state;
    size_t size = ((size_t)1 << 32) + 5;
    bw_context *ctx = bw_open(NULL);
    bwi_file_out out;
    assert_int_equal(bwi_file_begin(ctx, &out, inside("large.zip")), BW_OK);
    bwi_zip_out zip = {.file = &out};
    assert_int_equal(bwi_zip_out_begin(&zip, "first", size), BW_OK);
    zip.put = size;
    out.size += (int64_t)size;
    assert_int_equal(bwi_zip_out_end(&zip), BW_OK);
    assert_int_equal(put_members(&zip, (const zip_values[]){{"second", "abc", 3}}, 1), BW_OK);
    bwi_zip_out_free(&zip);
    assert_int_equal(bwi_file_end(&out, BW_OK), BW_OK);
    bwi_bytes file;
    bwi_zip *read;
    bwi_zip_member member;
    const unsigned char *data;
    assert_int_equal(bwi_file_map(ctx, &file, inside("large.zip")), BW_OK);
    unlink(inside("large.zip"));
    assert_int_equal(bwi_zip_open(ctx, &read, &file, "large.zip"), BW_OK);
    assert_int_equal(bwi_zip_count(read), 2);
    assert_int_equal(bwi_zip_member_at(read, 0, &member), BW_OK);
    assert_true(member.size == size);
    assert_int_equal(bwi_zip_in_place(read, 1, &data), BW_OK);
    assert_memory_equal(data, "abc", 3);
    bwi_zip_close(read);
    bwi_file_unmap(ctx, &file);
    bw_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_written), cmocka_unit_test(test_announced), cmocka_unit_test(test_large),
        cmocka_unit_test(test_members), cmocka_unit_test(test_in_place),  cmocka_unit_test(test_place_unknown),
        cmocka_unit_test(test_sum),     cmocka_unit_test(test_claims),    cmocka_unit_test(test_earlier_end),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_empty_folder);
}
