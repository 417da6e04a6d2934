/* Mapping and replacing files, with every call of the I/O table failing once: the old file or the new, never a part. */
#include "faults.h"
#include "support/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

static char path[2048];

static int open_folder(void **state)
{
    int result = make_folder(state);
    snprintf(path, sizeof path, "%s", inside("file"));
    return result;
}

static int entries(void)
{
    int count = 0;
    DIR *dir = opendir(folder);
    while (readdir(dir)) {
        count++;
    }
    closedir(dir);
    return count - 2;
}

static int close_folder(void **state)
{
    unlink(path);
    return remove_empty_folder(state);
}

static void put(const char *text)
{
    FILE *file = fopen(path, "w");
    fputs(text, file);
    fclose(file);
}

static void expect(const char *text)
{
    char got[64] = "";
    FILE *file = fopen(path, "r");
    size_t count = fread(got, 1, sizeof got - 1, file);
    fclose(file);
    assert_int_equal(count, strlen(text));
    assert_string_equal(got, text);
}

static void test_map(void **state)
{
    (void)state;
    faults files = {0};
    bw_context *ctx = faults_context(NULL, &files, 1);
    bwi_bytes bytes;
    put("content");
    assert_int_equal(bwi_file_map(ctx, &bytes, path), BW_OK);
    assert_int_equal(bytes.size, 7);
    assert_memory_equal(bytes.data, "content", 7);
    assert_int_equal(files.blocks, 1);
    bwi_file_unmap(ctx, &bytes);
    assert_int_equal(files.blocks, 0);
    put("");
    assert_int_equal(bwi_file_map(ctx, &bytes, path), BW_OK);
    assert_int_equal(bytes.size, 0);
    assert_non_null(bytes.data);
    bwi_file_unmap(ctx, &bytes);
    bwi_file_unmap(ctx, &bytes);
    assert_int_equal(files.blocks, 0);
    bw_close(ctx);
}

static void test_map_refused(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bwi_bytes bytes;
    char words[sizeof folder + 1200];
    unlink(path);
    assert_int_equal(bwi_file_map(ctx, &bytes, path), BW_NOT_FOUND);
    snprintf(words, sizeof words, "cannot open %s: No such file or directory", path);
    assert_string_equal(bw_message(ctx), words);
    assert_int_equal(bwi_file_map(ctx, &bytes, folder), BW_INVALID_ARGUMENT);
    snprintf(words, sizeof words, "cannot read %s: Is a directory", folder);
    assert_string_equal(bw_message(ctx), words);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(bwi_file_map(ctx, &bytes, path), BW_INVALID_ARGUMENT);
    assert_int_equal(bytes.size, 0);
    unlink(path);
    bw_close(ctx);
}

static void test_map_every_call_fails(void **state)
{
    (void)state;
    static const int errors[] = {EIO, EMFILE};
    put("content");
    for (size_t e = 0; e < BWI_COUNT(errors); e++) {
        int at = 1;
        for (bool failed = true; failed; at++) {
            faults files = {.fail_at = at, .error = errors[e]};
            bw_context *ctx = faults_context(NULL, &files, 1);
            bwi_bytes bytes;
            bw_status status = bwi_file_map(ctx, &bytes, path);
            if (files.failed && at <= 3) { /* closing afterwards does not matter */
                assert_int_equal(status, errors[e] == EIO ? BW_DATA_LOSS : BW_RESOURCE_EXHAUSTED);
                assert_non_null(strstr(bw_message(ctx), path));
                assert_int_equal(bytes.size, 0);
            } else {
                assert_int_equal(status, BW_OK);
                assert_int_equal(bytes.size, 7);
            }
            bwi_file_unmap(ctx, &bytes);
            assert_int_equal(files.blocks, 0);
            bw_close(ctx);
            failed = files.failed;
        }
        assert_int_equal(at, 6); /* open, size, map, close, and none */
    }
}

static void test_read_small(void **state)
{
    (void)state;
    faults files = {.most = 3, .fail_at = 2, .error = EINTR};
    bw_context *ctx = faults_context(NULL, &files, 1);
    char text[16] = "";
    put("0123456789");
    assert_int_equal(bwi_file_read_small(ctx, path, text, 8), 8);
    assert_string_equal(text, "01234567");
    assert_true(files.failed);
    assert_int_equal(bwi_file_read_small(ctx, path, text, sizeof text), 10);
    files.fail_at = files.calls + 3;
    files.error = EIO;
    assert_int_equal(bwi_file_read_small(ctx, path, text, sizeof text), -1);
    unlink(path);
    assert_int_equal(bwi_file_read_small(ctx, path, text, sizeof text), -1);
    assert_string_equal(bw_message(ctx), "");
    assert_int_equal(files.blocks, 0);
    bw_close(ctx);
}

static void test_write(void **state)
{
    (void)state;
    faults files = {.most = 2}, memory = {0};
    bw_context *ctx = faults_context(&memory, &files, 1);
    unlink(path);
    assert_int_equal(bwi_file_write(ctx, path, "the first", 9), BW_OK);
    expect("the first");
    assert_int_equal(bwi_file_write(ctx, path, "second", 6), BW_OK);
    expect("second");
    assert_int_equal(bwi_file_write(ctx, path, NULL, 0), BW_OK);
    expect("");
    assert_int_equal(entries(), 1);
    assert_int_equal(files.blocks, 0);
    bw_close(ctx);
    assert_int_equal(memory.blocks, 0);
}

static void test_write_in_working_folder(void **state)
{
    (void)state;
    char before[1024];
    bw_context *ctx = bw_open(NULL);
    unlink(path);
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(folder), 0);
    assert_int_equal(bwi_file_write(ctx, "file", "here", 4), BW_OK);
    assert_int_equal(chdir(before), 0);
    expect("here");
    bw_close(ctx);
}

static void test_write_refused(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    char name[sizeof folder + 1200];
    snprintf(name, sizeof name, "%s/no/file", folder);
    assert_int_equal(bwi_file_write(ctx, name, "x", 1), BW_NOT_FOUND);
    assert_non_null(strstr(bw_message(ctx), name));
    assert_int_equal(bwi_file_write(ctx, folder, "x", 1), BW_INVALID_ARGUMENT); /* a folder cannot be replaced */
    bw_close(ctx);
}

/* After the rename the new file is there, even if the folder could not be synced; before, the old one is. */
static void test_write_every_call_fails(void **state)
{
    (void)state;
    int at = 1, olds = 0, news = 0;
    for (bool failed = true; failed; at++) {
        put("old");
        faults files = {.fail_at = at, .error = ENOSPC, .most = 2};
        bw_context *ctx = faults_context(NULL, &files, 1);
        bw_status status = bwi_file_write(ctx, path, "new text", 8);
        bool renamed = !files.failed || at > 9;
        if (renamed) {
            expect("new text");
            news++;
        } else {
            expect("old");
            assert_int_equal(status, BW_RESOURCE_EXHAUSTED);
            assert_non_null(strstr(bw_message(ctx), "No space left on device"));
            olds++;
        }
        if (at == 10) {
            assert_int_equal(status, BW_RESOURCE_EXHAUSTED);
        }
        if (at > 10) {
            assert_int_equal(status, BW_OK);
        }
        assert_int_equal(entries(), 1);
        assert_int_equal(files.blocks, 0);
        bw_close(ctx);
        failed = files.failed;
    }
    assert_int_equal(olds, 9); /* folder, open, 4 writes, sync, close, rename */
    assert_int_equal(news, 3); /* sync and close of the folder, none */
}

static void test_write_every_call_interrupted(void **state)
{
    (void)state;
    int at = 1;
    for (bool failed = true; failed; at++) {
        put("old");
        faults files = {.fail_at = at, .error = EINTR, .most = 3};
        bw_context *ctx = faults_context(NULL, &files, 1);
        bw_status status = bwi_file_write(ctx, path, "new text", 8);
        if (at == 8) { /* rename is never interrupted by the system; a table that says so is believed */
            assert_int_equal(status, BW_INTERNAL);
            expect("old");
        } else {
            assert_int_equal(status, BW_OK);
            expect("new text");
        }
        assert_int_equal(entries(), 1);
        assert_int_equal(files.blocks, 0);
        bw_close(ctx);
        failed = files.failed;
    }
}

static void test_write_every_allocation_fails(void **state)
{
    (void)state;
    int at = 2; /* 1 is the context */
    for (bool failed = true; failed; at++) {
        put("old");
        faults memory = {.fail_at = at};
        bw_context *ctx = faults_context(&memory, NULL, 1);
        bw_status status = bwi_file_write(ctx, path, "new", 3);
        assert_int_equal(status, memory.failed ? BW_RESOURCE_EXHAUSTED : BW_OK);
        expect(memory.failed ? "old" : "new");
        assert_int_equal(entries(), 1);
        bw_close(ctx);
        assert_int_equal(memory.blocks, 0);
        failed = memory.failed;
    }
    assert_true(at > 3);
}

/* A name that a killed process has left behind is not written to. */
static void test_write_beside_leftovers(void **state)
{
    (void)state;
    faults files = {.fail_at = 2, .error = EEXIST};
    bw_context *ctx = faults_context(NULL, &files, 1);
    put("old");
    assert_int_equal(bwi_file_write(ctx, path, "new", 3), BW_OK);
    assert_true(files.failed);
    expect("new");
    bw_close(ctx);
}

/* What a process that was killed has left is removed with the next save, unless it is young, is still being written, or has another
 * name. */
static void test_write_sweeps(void **state)
{
    static const struct {
        const char *name;
        bool old, locked, stays;
    } rows[] = {
        {"file.1-0.tmp", true, false, false}, {"file.999999-12.tmp", true, false, false}, {"file.2-0.tmp", false, false, true},
        {"file.3-0.tmp", true, true, true},   {"other.1-0.tmp", true, false, true},       {"file.tmp", true, false, true},
        {"file.1-0.tmp2", true, false, true}, {"file.1-.tmp", true, false, true},         {"file.a.1-0.tmp", true, false, true}};
    (void)state;
    bw_context *ctx = bw_open(NULL);
    int files[BWI_COUNT(rows)];
    for (size_t i = 0; i < BWI_COUNT(rows); i++) {
        const struct timespec old[2] = {{.tv_sec = 1000000000}, {.tv_sec = 1000000000}};
        files[i] = open(inside(rows[i].name), O_WRONLY | O_CREAT, 0600);
        assert_true(files[i] >= 0);
        assert_int_equal(rows[i].old ? futimens(files[i], old) : 0, 0);
        assert_int_equal(rows[i].locked ? flock(files[i], LOCK_EX | LOCK_NB) : 0, 0);
    }
    assert_int_equal(bwi_file_write(ctx, path, "new", 3), BW_OK);
    for (size_t i = 0; i < BWI_COUNT(rows); i++) {
        if ((access(inside(rows[i].name), F_OK) == 0) != rows[i].stays) {
            fail_msg("%s", rows[i].name);
        }
        close(files[i]);
        unlink(inside(rows[i].name));
    }
    assert_int_equal(entries(), 1);
    bw_close(ctx);
}

/* A file that is replaced keeps its permissions, whatever the mask of the process. */
static void test_write_keeps_mode(void **state)
{
    (void)state;
    struct stat facts;
    bw_context *ctx = bw_open(NULL);
    mode_t mask = umask(022);
    put("old");
    assert_int_equal(chmod(path, 0660), 0);
    assert_int_equal(bwi_file_write(ctx, path, "new", 3), BW_OK);
    expect("new");
    assert_int_equal(stat(path, &facts), 0);
    assert_int_equal(facts.st_mode & 0777, 0660);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(bwi_file_write(ctx, path, "first", 5), BW_OK);
    assert_int_equal(stat(path, &facts), 0);
    assert_int_equal(facts.st_mode & 0777, 0644);
    umask(mask);
    bw_close(ctx);
}

/* Links stay, relative and absolute ones and links to links; the file that they name is made or replaced. */
static void test_write_through_links(void **state)
{
    (void)state;
    struct stat facts;
    char first[2048], second[2048];
    bw_context *ctx = bw_open(NULL);
    snprintf(first, sizeof first, "%s", inside("first"));
    snprintf(second, sizeof second, "%s", inside("second"));
    unlink(path);
    assert_int_equal(symlink("file", first), 0);
    assert_int_equal(symlink(first, second), 0);
    assert_int_equal(bwi_file_write(ctx, second, "made", 4), BW_OK);
    expect("made");
    assert_int_equal(bwi_file_write(ctx, first, "again", 5), BW_OK);
    expect("again");
    assert_int_equal(lstat(first, &facts), 0);
    assert_true(S_ISLNK(facts.st_mode));
    assert_int_equal(lstat(second, &facts), 0);
    assert_true(S_ISLNK(facts.st_mode));
    assert_int_equal(entries(), 3);
    unlink(first);
    unlink(second);
    bw_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_map),
        cmocka_unit_test(test_map_refused),
        cmocka_unit_test(test_map_every_call_fails),
        cmocka_unit_test(test_read_small),
        cmocka_unit_test(test_write),
        cmocka_unit_test(test_write_in_working_folder),
        cmocka_unit_test(test_write_refused),
        cmocka_unit_test(test_write_every_call_fails),
        cmocka_unit_test(test_write_every_call_interrupted),
        cmocka_unit_test(test_write_every_allocation_fails),
        cmocka_unit_test(test_write_beside_leftovers),
        cmocka_unit_test(test_write_sweeps),
        cmocka_unit_test(test_write_keeps_mode),
        cmocka_unit_test(test_write_through_links),
    };
    return cmocka_run_group_tests(tests, open_folder, close_folder);
}
