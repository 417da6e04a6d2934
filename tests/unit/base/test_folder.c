/* Names in a folder: sorted, of each kind, with every call of the I/O table and every allocation failing once. */
#include "faults.h"
#include "support/folder.h"

#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static int fill_folder(void **state)
{
    if (make_folder(state) != 0) {
        return -1;
    }
    for (int i = 0; i < 200; i++) {
        char name[32];
        snprintf(name, sizeof name, "file-%d", i);
        FILE *file = fopen(inside(name), "w");
        fputs("1234", file);
        fclose(file);
    }
    return mkdir(inside("B"), 0777) || symlink("B", inside("a")) || mkfifo(inside("pipe"), 0777);
}

static void test_list(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bwi_names names;
    assert_int_equal(bwi_folder_list(ctx, folder, &names), BW_OK);
    assert_int_equal(names.count, 203);
    for (int64_t i = 1; i < names.count; i++) {
        assert_true(strcmp(names.text + names.name[i - 1].at, names.text + names.name[i].at) < 0);
    }
    assert_string_equal(names.text + names.name[0].at, "B");
    assert_int_equal(names.name[0].entry, BW_ENTRY_FOLDER);
    assert_string_equal(names.text + names.name[1].at, "a");
    assert_int_equal(names.name[1].entry, BW_ENTRY_LINK);
    assert_int_equal(names.name[2].entry, BW_ENTRY_FILE);
    assert_string_equal(names.text + names.name[202].at, "pipe");
    assert_int_equal(names.name[202].entry, BW_ENTRY_OTHER);
    bwi_names_free(&names);
    assert_true(bwi_folder_is(ctx, folder));
    assert_true(bwi_folder_is(ctx, inside("B")));
    assert_false(bwi_folder_is(ctx, inside("file-1")));
    assert_false(bwi_folder_is(ctx, inside("none")));
    assert_int_equal(bwi_folder_list(ctx, inside("none"), &names), BW_NOT_FOUND);
    assert_non_null(strstr(bw_message(ctx), "cannot list the folder"));
    bwi_names_free(&names);
    bw_close(ctx);
}

/* With its parents, once and again; a file in the way is named, and so is a table that cannot make folders. */
static void test_make(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    assert_int_equal(bwi_folder_make(ctx, inside("x/y/z")), BW_OK);
    assert_true(bwi_folder_is(ctx, inside("x/y/z")));
    assert_int_equal(bwi_folder_make(ctx, inside("x/y/z/")), BW_OK);
    assert_int_equal(bwi_folder_make(ctx, inside("file-1")), BW_NOT_FOUND);
    assert_non_null(strstr(bw_message(ctx), "cannot make the folder"));
    assert_int_equal(bwi_folder_make(ctx, inside("file-1/x")), BW_NOT_FOUND);
    (void)bw_message(ctx);
    ctx->io.make_folder = NULL;
    assert_int_equal(bwi_folder_make(ctx, inside("x/new")), BW_NOT_FOUND);
    bw_close(ctx);
    assert_int_equal(rmdir(inside("x/y/z")) | rmdir(inside("x/y")) | rmdir(inside("x")), 0);
}

static void test_failures(void **state)
{
    (void)state;
    bool done = false;
    for (int n = 1; !done; n++) {
        faults memory = {0};
        bw_context *ctx = faults_context(&memory, NULL, 1);
        bwi_names names;
        memory.fail_at = memory.calls + n;
        bw_status status = bwi_folder_list(ctx, folder, &names);
        done = !memory.failed;
        assert_int_equal(status, done ? BW_OK : BW_RESOURCE_EXHAUSTED);
        bwi_names_free(&names);
        bw_close(ctx);
        assert_int_equal(memory.blocks, 0);
        assert_true(n < 50);
    }
    faults files = {.error = EIO};
    bw_context *ctx = faults_context(NULL, &files, 1);
    bwi_names names;
    files.fail_at = files.calls + 1;
    assert_int_not_equal(bwi_folder_list(ctx, folder, &names), BW_OK);
    bwi_names_free(&names);
    files.error = EINTR; /* made again */
    files.fail_at = files.calls + 1;
    assert_int_equal(bwi_folder_list(ctx, folder, &names), BW_OK);
    assert_int_equal(names.count, 203);
    bwi_names_free(&names);
    bw_close(ctx);
}

static void test_read_whole(void **state)
{
    (void)state;
    faults files = {.error = EIO, .most = 3};
    bw_context *ctx = faults_context(NULL, &files, 1);
    bwi_buffer buffer = {.memory = NULL};
    assert_int_equal(bwi_file_read_whole(ctx, inside("file-7"), 4, &buffer), 4);
    assert_memory_equal(buffer.memory, "1234", 4);
    assert_int_equal(bwi_file_read_whole(ctx, inside("file-7"), 3, &buffer), -EFBIG);
    assert_int_equal(bwi_file_read_whole(ctx, inside("none"), 4, &buffer), -ENOENT);
    assert_int_equal(bwi_file_read_whole(ctx, inside("B"), 4, &buffer), -EISDIR);
    assert_int_equal(bwi_file_read_whole(ctx, inside("pipe"), 4, &buffer), -ENOTSUP);
    assert_int_equal(symlink("file-7", inside("link")), 0);
    assert_int_equal(bwi_file_read_whole(ctx, inside("link"), 4, &buffer), -ELOOP);
    unlink(inside("link"));
    for (int n = 1; n <= 5; n++) { /* open, size, two reads, close */
        files.fail_at = files.calls + n;
        assert_int_equal(bwi_file_read_whole(ctx, inside("file-7"), 4, &buffer), n == 5 ? 4 : -EIO);
        assert_int_equal(files.blocks, 0);
    }
    assert_string_equal(bw_message(ctx), "");
    bwi_buffer_free(ctx, &buffer);
    bw_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_list),
        cmocka_unit_test(test_make),
        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_read_whole),
    };
    return cmocka_run_group_tests(tests, fill_folder, remove_folder);
}
