/*
 * Allocation through the context's table, sizes that cannot overflow unnoticed, arenas, and what the system says
 * about memory. In front of each allocation stands a header of one cache line with the size of the whole, because
 * the table's release wants it.
 */
#include "base/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <unistd.h>

#define HUGE_PAGE ((size_t)2 << 20)

/* ---- Sizes ---- */

size_t bwi_size_add(size_t a, size_t b)
{
    size_t sum;
    return __builtin_add_overflow(a, b, &sum) ? SIZE_MAX : sum;
}

size_t bwi_size_multiply(size_t a, size_t b)
{
    size_t product;
    if (a == SIZE_MAX || b == SIZE_MAX) { /* "too large" sticks, even times zero */
        return SIZE_MAX;
    }
    return __builtin_mul_overflow(a, b, &product) ? SIZE_MAX : product;
}

size_t bwi_size_align(size_t bytes, size_t alignment)
{
    size_t sum = bwi_size_add(bytes, alignment - 1);
    return sum == SIZE_MAX ? SIZE_MAX : sum & ~(alignment - 1);
}

/* ---- Blocks ---- */

typedef struct header {
    _Alignas(BWI_CACHE_LINE) size_t whole;
} header;

_Static_assert(sizeof(header) == BWI_CACHE_LINE, "the memory behind a header is aligned to a cache line");

/* Blocks of two huge pages or more get those that lie within them; a huge page that reaches beyond the block would make more
 * resident than was asked for. */
static void *allocate_pages(bw_context *ctx, size_t whole, size_t alignment)
{
    bool large = whole >= 2 * HUGE_PAGE;
    void *memory = ctx->allocator.allocate(ctx->allocator.user, whole, large ? HUGE_PAGE : alignment);
#ifdef MADV_HUGEPAGE
    if (memory && large) {
        (void)madvise(memory, whole & ~(HUGE_PAGE - 1), MADV_HUGEPAGE);
    }
#endif
    return memory;
}

/* Allocates zeroed memory. `lazily`: pages that come zeroed from the system are not touched. */
static void *allocate_zeroed(bw_context *ctx, size_t bytes, bool lazily)
{
    size_t whole = bwi_size_add(bytes, sizeof(header));
    header *front = whole == SIZE_MAX ? NULL : allocate_pages(ctx, whole, BWI_CACHE_LINE);
    if (!front) {
        return NULL;
    }
    if (!lazily || ctx->allocator.allocate != bwi_system_allocator.allocate || !bwi_system_zeroes(whole)) {
        memset(front, 0, whole);
    }
    front->whole = whole;
    atomic_fetch_add_explicit(&ctx->allocated, whole, memory_order_relaxed);
    return front + 1;
}

void *bwi_try_allocate(bw_context *ctx, size_t count, size_t size)
{
    return allocate_zeroed(ctx, bwi_size_multiply(count, size), false);
}

void *bwi_try_allocate_lazily(bw_context *ctx, size_t bytes)
{
    return allocate_zeroed(ctx, bytes, true);
}

void *bwi_allocate(bw_context *ctx, size_t count, size_t size)
{
    size_t bytes = bwi_size_multiply(count, size), whole = bwi_size_add(bytes, sizeof(header));
    if (whole == SIZE_MAX) {
        bwi_fail(ctx, BW_RESOURCE_EXHAUSTED, "cannot allocate %zu elements of %zu bytes: more than can be addressed", count, size);
        return NULL;
    }
    void *memory = bwi_try_allocate(ctx, count, size);
    if (!memory) {
        char text[32];
        bwi_fail(ctx, BW_RESOURCE_EXHAUSTED, "cannot allocate %s (%zu bytes)", bwi_format_bytes(text, bytes), bytes);
    }
    return memory;
}

bool bwi_buffer_reserve(bw_context *ctx, bwi_buffer *buffer, size_t bytes)
{
    if (bytes <= buffer->capacity) {
        return true;
    }
    bwi_buffer_free(ctx, buffer);
    buffer->memory = bwi_try_allocate(ctx, bytes, 1);
    buffer->capacity = buffer->memory ? bytes : 0;
    return buffer->memory;
}

void bwi_buffer_free(bw_context *ctx, bwi_buffer *buffer)
{
    bwi_release(ctx, buffer->memory);
    *buffer = (bwi_buffer){.memory = NULL};
}

void bwi_release(bw_context *ctx, const void *memory)
{
    if (!memory) {
        return;
    }
    header *front = (header *)bwi_unconst(memory) - 1;
    size_t whole = front->whole;
    atomic_fetch_sub_explicit(&ctx->allocated, whole, memory_order_relaxed);
    ctx->allocator.release(ctx->allocator.user, front, whole);
}

void *bwi_grow(bw_context *ctx, void *memory, size_t old_count, size_t count, size_t size)
{
    void *larger = bwi_allocate(ctx, count, size);
    if (!larger) {
        return NULL;
    }
    if (memory) {
        memcpy(larger, memory, (old_count < count ? old_count : count) * size);
    }
    bwi_release(ctx, memory);
    return larger;
}

char *bwi_copy_text(bw_context *ctx, const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = bwi_allocate(ctx, bytes, 1);
    if (copy) {
        memcpy(copy, text, bytes);
    }
    return copy;
}

size_t bwi_allocated_bytes(const bw_context *ctx)
{
    return atomic_load_explicit(&ctx->allocated, memory_order_relaxed);
}

size_t bwi_allocation_bytes(size_t bytes)
{
    return bwi_size_add(bytes, sizeof(header));
}

/* ---- Arenas ---- */

static size_t page_size(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

/* False if the system has no pages left. Kernels before 5.14 do not know the advice; writing takes the pages then. */
static bool take_pages(void *arena, size_t bytes)
{
#ifdef MADV_POPULATE_WRITE
    if (madvise(arena, bytes, MADV_POPULATE_WRITE) != 0 && (errno == ENOMEM || errno == EFAULT)) {
        return false;
    }
#endif
    memset(arena, 0, bytes);
    return true;
}

void *bwi_arena_allocate(bw_context *ctx, size_t bytes)
{
    size_t page = page_size();
    size_t whole = bwi_size_align(bytes ? bytes : 1, page);
    void *arena = whole == SIZE_MAX ? NULL : allocate_pages(ctx, whole, page);
    if (arena && !take_pages(arena, whole)) {
        ctx->allocator.release(ctx->allocator.user, arena, whole);
        arena = NULL;
    }
    if (!arena) {
        char text[32];
        bwi_fail(ctx, BW_RESOURCE_EXHAUSTED, "cannot allocate an arena of %s (%zu bytes)", bwi_format_bytes(text, bytes), bytes);
        return NULL;
    }
    atomic_fetch_add_explicit(&ctx->allocated, whole, memory_order_relaxed);
    return arena;
}

void bwi_arena_release(bw_context *ctx, void *arena, size_t bytes)
{
    if (!arena) {
        return;
    }
    size_t whole = bwi_size_align(bytes ? bytes : 1, page_size());
    atomic_fetch_sub_explicit(&ctx->allocated, whole, memory_order_relaxed);
    ctx->allocator.release(ctx->allocator.user, arena, whole);
}

/* ---- What the system says ---- */

#define SMALL_FILE 8192

static bool read_text(bw_context *ctx, const char *path, char *text)
{
    int64_t count = bwi_file_read_small(ctx, path, text, SMALL_FILE - 1);
    text[count < 0 ? 0 : count] = 0;
    return count >= 0;
}

/* The number behind `key` at the beginning of a line; -1 if there is none. */
static int64_t number_after(const char *text, const char *key)
{
    size_t length = strlen(key);
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, key, length) != 0) {
            continue;
        }
        const char *begin = line + length + strspn(line + length, " \t");
        int64_t value;
        return bwi_parse_int(begin, begin + strspn(begin, "0123456789"), &value) ? value : -1;
    }
    return -1;
}

static size_t process_bytes(bw_context *ctx, const char *key)
{
    char text[SMALL_FILE];
    int64_t kilobytes = read_text(ctx, "/proc/self/status", text) ? number_after(text, key) : -1;
    return kilobytes < 0 ? 0 : bwi_size_multiply((size_t)kilobytes, 1024);
}

size_t bwi_memory_resident(bw_context *ctx)
{
    return process_bytes(ctx, "VmRSS:");
}

size_t bwi_memory_peak(bw_context *ctx)
{
    return process_bytes(ctx, "VmHWM:");
}

size_t bwi_memory_of_files(bw_context *ctx)
{
    return bwi_size_add(process_bytes(ctx, "RssFile:"), process_bytes(ctx, "RssShmem:"));
}

size_t bwi_memory_swapped(bw_context *ctx)
{
    return process_bytes(ctx, "VmSwap:");
}

int64_t bwi_memory_faults(void)
{
    struct rusage usage;
    return getrusage(RUSAGE_SELF, &usage) == 0 ? usage.ru_majflt : 0;
}

void bwi_memory_reset_peak(bw_context *ctx)
{
    int file = ctx->io.open(ctx->io.user, "/proc/self/clear_refs", O_WRONLY, 0);
    if (file < 0) {
        return;
    }
    (void)ctx->io.write(ctx->io.user, file, "5", 1, 0);
    (void)ctx->io.close(ctx->io.user, file);
}

/* The files of the two versions of the memory controller, and the line of memory.stat with what is given back at once. */
typedef struct cgroup_files {
    const char *limit, *use, *reclaimable;
} cgroup_files;

static const cgroup_files cgroup_1 = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "};
static const cgroup_files cgroup_2 = {"memory.max", "memory.current", "inactive_file "};

static int64_t folder_number(bw_context *ctx, const char *root, int path_length, const char *path, const char *file,
                             const char *key)
{
    char name[2560], text[SMALL_FILE]; /* cgroup_line allows paths of 2048 bytes */
    int length = snprintf(name, sizeof name, "%s%.*s/%s", root, path_length, path, file);
    if (length < 0 || (size_t)length >= sizeof name || !read_text(ctx, name, text)) {
        return -1;
    }
    return number_after(text, key);
}

/* Returns the least that a folder and those above it, up to the root, still allow. A folder that is not there (a container may
 * see its own as the root), or that has no limit ("max"), allows everything. */
static size_t cgroup_available(bw_context *ctx, const cgroup_files *files, const char *root, const char *path, size_t length)
{
    size_t least = SIZE_MAX;
    for (;;) {
        int64_t limit = folder_number(ctx, root, (int)length, path, files->limit, "");
        int64_t use = folder_number(ctx, root, (int)length, path, files->use, "");
        if (limit >= 0 && use >= 0) {
            int64_t again = folder_number(ctx, root, (int)length, path, "memory.stat", files->reclaimable);
            use -= again > 0 ? again : 0;
            size_t rest = use < limit ? (size_t)(limit - (use > 0 ? use : 0)) : 0;
            least = rest < least ? rest : least;
        }
        if (length == 0) {
            return least;
        }
        do {
            length--;
        } while (length > 0 && path[length] != '/');
    }
}

/* Whether the list "cpu,memory" of `length` bytes names the memory controller. */
static bool lists_memory(const char *list, size_t length)
{
    for (const char *end = list + length; list < end; list++) {
        size_t word = strcspn(list, ",:");
        if (word == 6 && memcmp(list, "memory", 6) == 0) {
            return true;
        }
        list += word;
    }
    return false;
}

/* A line of /proc/self/cgroup is "number:controllers:path"; version 2 has number 0 and no controllers. */
static size_t cgroup_line(bw_context *ctx, const char *line, size_t length)
{
    const char *end = line + length;
    const char *list = memchr(line, ':', length);
    const char *path = list ? memchr(list + 1, ':', (size_t)(end - list - 1)) : NULL;
    if (!path) {
        return SIZE_MAX;
    }
    list++;
    size_t list_length = (size_t)(path - list), path_length = (size_t)(end - ++path);
    if (path_length > 2048 || memmem(path, path_length, "..", 2) || (path_length == 1 && *path == '/')) {
        path_length = 0;
    }
    if (list_length == 0) {
        size_t own = cgroup_available(ctx, &cgroup_2, "/sys/fs/cgroup", path, path_length);
        size_t beside = cgroup_available(ctx, &cgroup_2, "/sys/fs/cgroup/unified", path, path_length);
        return own < beside ? own : beside;
    }
    return lists_memory(list, list_length) ? cgroup_available(ctx, &cgroup_1, "/sys/fs/cgroup/memory", path, path_length)
                                           : SIZE_MAX;
}

size_t bwi_memory_available(bw_context *ctx)
{
    char text[SMALL_FILE];
    size_t least = SIZE_MAX;
    int64_t kilobytes = read_text(ctx, "/proc/meminfo", text) ? number_after(text, "MemAvailable:") : -1;
    if (kilobytes >= 0) {
        least = bwi_size_multiply((size_t)kilobytes, 1024);
    }
    if (!read_text(ctx, "/proc/self/cgroup", text)) {
        return least;
    }
    for (const char *line = text; *line;) {
        size_t length = strcspn(line, "\n");
        size_t rest = cgroup_line(ctx, line, length);
        least = rest < least ? rest : least;
        line += length + (line[length] == '\n');
    }
    return least;
}

/* ---- File systems ---- */

#define TMPFS 0x01021994
#define RAMFS 0x858458f6
#define HUGETLBFS 0x958458f6

bwi_disk bwi_disk_of(const char *folder)
{
    struct statfs facts;
    if (statfs(folder, &facts) != 0) {
        return (bwi_disk){.error = errno};
    }
    unsigned long type = (unsigned long)facts.f_type & 0xffffffffUL;
    return (bwi_disk){.in_memory = type == TMPFS || type == RAMFS || type == HUGETLBFS,
                      .free = bwi_size_multiply((size_t)facts.f_bavail, (size_t)facts.f_bsize)};
}
