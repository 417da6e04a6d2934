/* Allocation, arenas, checked sizes, and what is read below /proc and /sys, from a table of made-up files. */
#include "faults.h"

#include <setjmp.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#define MIB ((size_t)1 << 20)

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

static void test_sizes(void **state)
{
    (void)state;
    assert_int_equal(bwi_size_add(2, 3), 5);
    assert_int_equal(bwi_size_add(SIZE_MAX - 1, 1), SIZE_MAX);
    assert_int_equal(bwi_size_add(SIZE_MAX, 1), SIZE_MAX);
    assert_int_equal(bwi_size_add(SIZE_MAX - 3, SIZE_MAX - 3), SIZE_MAX);
    assert_int_equal(bwi_size_multiply(6, 7), 42);
    assert_int_equal(bwi_size_multiply(0, 7), 0);
    assert_int_equal(bwi_size_multiply((size_t)1 << 40, (size_t)1 << 24), SIZE_MAX);
    assert_int_equal(bwi_size_multiply(SIZE_MAX, 0), SIZE_MAX);
    assert_int_equal(bwi_size_align(0, 64), 0);
    assert_int_equal(bwi_size_align(1, 64), 64);
    assert_int_equal(bwi_size_align(64, 64), 64);
    assert_int_equal(bwi_size_align(SIZE_MAX - 62, 64), SIZE_MAX);
    assert_int_equal(bwi_size_align(SIZE_MAX, 64), SIZE_MAX);
}

static void test_allocate(void **state)
{
    (void)state;
    faults memory = {0};
    bw_context *ctx = faults_context(&memory, NULL, 1);
    size_t before = bwi_allocated_bytes(ctx);
    unsigned char *a = bwi_allocate(ctx, 1000, 3), *nothing = bwi_allocate(ctx, 0, 8);
    assert_non_null(a);
    assert_non_null(nothing);
    assert_int_equal((uintptr_t)a % BWI_CACHE_LINE, 0);
    for (int i = 0; i < 3000; i++) {
        assert_int_equal(a[i], 0);
    }
    memset(a, 0xFF, 3000);
    assert_true(bwi_allocated_bytes(ctx) >= before + 3000);
    bwi_release(ctx, a);
    bwi_release(ctx, nothing);
    bwi_release(ctx, NULL);
    assert_int_equal(bwi_allocated_bytes(ctx), before);
    assert_null(bwi_allocate(ctx, SIZE_MAX / 2, 3));
    assert_int_equal(ctx->error.status, BW_RESOURCE_EXHAUSTED);
    assert_null(bwi_allocate(ctx, SIZE_MAX - 10, 1));
    assert_non_null(strstr(bw_message(ctx), "18446744073709551605"));
    bw_close(ctx);
    assert_int_equal(memory.blocks, 0);
    assert_int_equal(memory.bytes, 0);
}

static void test_grow(void **state)
{
    (void)state;
    faults memory = {0};
    bw_context *ctx = faults_context(&memory, NULL, 1);
    int *a = bwi_grow(ctx, NULL, 0, 3, sizeof *a);
    a[0] = 5, a[1] = 6, a[2] = 7;
    memory.fail_at = memory.calls + 1;
    assert_null(bwi_grow(ctx, a, 3, 100, sizeof *a));
    assert_int_equal(bwi_pending(ctx), BW_OK);
    assert_string_equal(bw_message(ctx), "cannot allocate 400 B (400 bytes)");
    assert_int_equal(a[2], 7);
    int *b = bwi_grow(ctx, a, 3, 100, sizeof *a);
    assert_int_equal(b[0], 5);
    assert_int_equal(b[2], 7);
    assert_int_equal(b[99], 0);
    b = bwi_grow(ctx, b, 100, 2, sizeof *b);
    assert_int_equal(b[1], 6);
    bwi_release(ctx, b);
    char *text = bwi_copy_text(ctx, "text");
    assert_string_equal(text, "text");
    bwi_release(ctx, text);
    bw_close(ctx);
    assert_int_equal(memory.blocks, 0);
}

static void check_arena(bw_context *ctx, size_t bytes, size_t alignment)
{
    size_t before = bwi_allocated_bytes(ctx);
    unsigned char *arena = bwi_arena_allocate(ctx, bytes);
    assert_non_null(arena);
    assert_int_equal((uintptr_t)arena % alignment, 0);
    for (size_t i = 0; i < bytes; i += 509) {
        assert_int_equal(arena[i], 0);
    }
    memset(arena, 0xA5, bytes);
    assert_true(bwi_allocated_bytes(ctx) >= before + bytes);
    assert_true(bwi_allocated_bytes(ctx) < before + bytes + 65536);
    bwi_arena_release(ctx, arena, bytes);
    assert_int_equal(bwi_allocated_bytes(ctx), before);
}

static void test_arena(void **state)
{
    (void)state;
    faults memory = {0};
    bw_context *ctx = faults_context(&memory, NULL, 1);
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (int turn = 0; turn < 2; turn++) { /* the second gets what the first has used */
        check_arena(ctx, 0, page);
        check_arena(ctx, 1, page);
        check_arena(ctx, 3 * MIB + 5, page);
        check_arena(ctx, 4 * MIB, 2 * MIB);
        check_arena(ctx, 9 * MIB + 12345, 2 * MIB);
    }
    bwi_arena_release(ctx, NULL, 100);
    memory.fail_at = memory.calls + 1;
    assert_null(bwi_arena_allocate(ctx, 5 * MIB));
    assert_string_equal(bw_message(ctx), "cannot allocate an arena of 5.0 MiB (5242880 bytes)");
    assert_int_equal(ctx->error.status, BW_RESOURCE_EXHAUSTED);
    assert_null(bwi_arena_allocate(ctx, SIZE_MAX - 4000));
    bw_close(ctx);
    assert_int_equal(memory.blocks, 0);
    assert_int_equal(memory.bytes, 0);
}

/* More than the address space has: the system itself says no. */
static void test_arena_too_large(void **state)
{
    (void)state;
    if (SANITIZED) { /* their allocators stop the program instead */
        skip();
    }
    bw_context *ctx = bw_open(NULL);
    assert_null(bwi_arena_allocate(ctx, (size_t)1 << 60));
    assert_int_equal(ctx->error.status, BW_RESOURCE_EXHAUSTED);
    bw_close(ctx);
}

/* All of an arena is resident, and no more than it: huge pages must not reach beyond its end. */
static void test_resident(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    size_t bytes = 32 * MIB + 4096, before = bwi_memory_resident(ctx);
    assert_true(before > 0);
    unsigned char *arena = bwi_arena_allocate(ctx, bytes);
    size_t with = bwi_memory_resident(ctx);
    assert_true(with + MIB >= before + bytes);
    if (!SANITIZED) {
        assert_true(with <= before + bytes + MIB);
    }
    assert_true(bwi_memory_peak(ctx) + MIB >= with);
    bwi_arena_release(ctx, arena, bytes);
    if (!SANITIZED) {
        assert_true(bwi_memory_resident(ctx) <= before + MIB);
    }
    assert_true(bwi_memory_available(ctx) > 0);
    bw_close(ctx);
}

static void test_reset_peak(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    void *arena = bwi_arena_allocate(ctx, 64 * MIB);
    bwi_arena_release(ctx, arena, 64 * MIB);
    size_t before = bwi_memory_peak(ctx);
    bwi_memory_reset_peak(ctx);
    size_t after = bwi_memory_peak(ctx);
    bw_close(ctx);
    if (SANITIZED) { /* they keep released memory for a while */
        skip();
    }
    assert_true(after + 32 * MIB < before);
}

/* ---- Made-up files ---- */

typedef struct made_file {
    const char *path, *text;
} made_file;

typedef struct made_files {
    const made_file *files;
    int count, open, calls;
} made_files;

static int made_open(void *user, const char *path, int flags, int mode)
{
    made_files *made = user;
    (void)flags, (void)mode;
    for (int i = 0; i < made->count; i++) {
        if (strcmp(path, made->files[i].path) == 0) {
            made->open++;
            return i;
        }
    }
    return -ENOENT;
}

/* Five bytes at a time, and every third call is interrupted. */
static int64_t made_read(void *user, int file, void *bytes, size_t count, int64_t offset)
{
    made_files *made = user;
    if (++made->calls % 3 == 0) {
        return -EINTR;
    }
    const char *text = made->files[file].text;
    size_t rest = strlen(text) - (size_t)offset;
    count = count < rest ? count : rest;
    count = count < 5 ? count : 5;
    memcpy(bytes, text + offset, count);
    return (int64_t)count;
}

static int made_close(void *user, int file)
{
    (void)file;
    ((made_files *)user)->open--;
    return 0;
}

static size_t available(const made_file *files, int count)
{
    made_files made = {.files = files, .count = count};
    bw_io io = bwi_system_io;
    io.user = &made;
    io.open = made_open;
    io.read = made_read;
    io.close = made_close;
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.io = &io;
    bw_context *ctx = bw_open(&options);
    size_t bytes = bwi_memory_available(ctx);
    bw_close(ctx);
    assert_int_equal(made.open, 0);
    return bytes;
}

#define MEMINFO                                                                                                   \
    {                                                                                                             \
        "/proc/meminfo", "MemTotal:       16000 kB\nMemFree:  100 kB\nMemAvailable:    9000 kB\nSwapFree: 1 kB\n" \
    }

static void test_available_machine(void **state)
{
    (void)state;
    const made_file files[] = {MEMINFO};
    assert_int_equal(available(files, 1), 9000 * 1024);
    assert_int_equal(available(files, 0), SIZE_MAX);
}

static void test_available_cgroup_2(void **state)
{
    (void)state;
    const made_file files[] = {
        MEMINFO,
        {"/proc/self/cgroup", "0::/a/b\n"},
        {"/sys/fs/cgroup/a/b/memory.max", "max\n"},
        {"/sys/fs/cgroup/a/b/memory.current", "10\n"},
        {"/sys/fs/cgroup/a/memory.max", "500000\n"},
        {"/sys/fs/cgroup/a/memory.current", "300000\n"},
        {"/sys/fs/cgroup/a/memory.stat", "anon 7\nfile 200000\ninactive_anon 5\ninactive_file 100000\nactive_file 9\n"},
    };
    assert_int_equal(available(files, 6), 200000); /* without memory.stat */
    assert_int_equal(available(files, 7), 300000); /* 500000 - (300000 - 100000) */
}

static void test_available_is_least(void **state)
{
    (void)state;
    const made_file files[] = {
        MEMINFO,
        {"/proc/self/cgroup", "0::/a/b\n"},
        {"/sys/fs/cgroup/a/b/memory.max", "4000000\n"},
        {"/sys/fs/cgroup/a/b/memory.current", "1000000\n"},
        {"/sys/fs/cgroup/memory.max", "2000000\n"}, /* the root of a container */
        {"/sys/fs/cgroup/memory.current", "1500000\n"},
    };
    assert_int_equal(available(files, 4), 3000000);
    assert_int_equal(available(files, 6), 500000);
}

static void test_available_over_limit(void **state)
{
    (void)state;
    const made_file files[] = {
        {"/proc/self/cgroup", "0::/\n"},
        {"/sys/fs/cgroup/memory.max", "100\n"},
        {"/sys/fs/cgroup/memory.current", "101\n"},
    };
    assert_int_equal(available(files, 3), 0);
}

static void test_available_cgroup_1(void **state)
{
    (void)state;
    const made_file files[] = {
        MEMINFO,
        {"/proc/self/cgroup", "11:cpuset:/\n4:cpu,memory:/x/y\n1:name=memory:/z\n0::/\n"},
        {"/sys/fs/cgroup/memory/x/y/memory.limit_in_bytes", "9223372036854771712\n"},
        {"/sys/fs/cgroup/memory/x/y/memory.usage_in_bytes", "5000\n"},
        {"/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "70000\n"},
        {"/sys/fs/cgroup/memory/x/memory.usage_in_bytes", "60000\n"},
        {"/sys/fs/cgroup/memory/x/memory.stat", "inactive_file 1\ntotal_inactive_file 2000\n"},
        {"/sys/fs/cgroup/memory/z/memory.limit_in_bytes", "1\n"},
        {"/sys/fs/cgroup/memory/z/memory.usage_in_bytes", "1\n"},
    };
    assert_int_equal(available(files, 9), 12000);
}

static void test_available_odd_files(void **state)
{
    (void)state;
    const made_file files[] = {
        MEMINFO,
        {"/proc/self/cgroup", "x\n:\n::\n0:\n0::/../../etc\nmemory\n\n5:memory:"},
        {"/sys/fs/cgroup/memory.max", "99999999999999999999999\n"},
        {"/sys/fs/cgroup/memory.current", "-5\n"},
        {"/sys/fs/cgroup/memory/memory.limit_in_bytes", ""},
    };
    assert_int_equal(available(files, 5), 9000 * 1024);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_allocate),
        cmocka_unit_test(test_grow),
        cmocka_unit_test(test_arena),
        cmocka_unit_test(test_arena_too_large),
        cmocka_unit_test(test_resident),
        cmocka_unit_test(test_reset_peak),
        cmocka_unit_test(test_available_machine),
        cmocka_unit_test(test_available_cgroup_2),
        cmocka_unit_test(test_available_is_least),
        cmocka_unit_test(test_available_over_limit),
        cmocka_unit_test(test_available_cgroup_1),
        cmocka_unit_test(test_available_odd_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
