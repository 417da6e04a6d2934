/* The arenas of the table "checked", when they are open, and what is said when one is touched from outside. */
#include "checked/checked.h"

#include <execinfo.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MAX_ARENAS = 4096, FRAMES = 32 };

typedef struct arena {
    unsigned char *memory;
    size_t bytes;
} arena;

static arena arenas[MAX_ARENAS];
static int count, entered;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct sigaction before;

const bwi_kernels *checked_base;
bwi_kernels checked_kernels;

static void say(const char *text)
{
    (void)!write(STDERR_FILENO, text, strlen(text));
}

static void protect(const arena *a, int access)
{
    if (mprotect(a->memory, a->bytes, access) != 0) {
        perror("checked: mprotect");
        abort();
    }
}

void checked_enter(void)
{
    pthread_mutex_lock(&lock);
    if (entered++ == 0) {
        for (int i = 0; i < count; i++) {
            protect(&arenas[i], PROT_READ | PROT_WRITE);
        }
    }
    pthread_mutex_unlock(&lock);
}

void checked_leave(void)
{
    pthread_mutex_lock(&lock);
    if (--entered == 0) {
        for (int i = 0; i < count; i++) {
            protect(&arenas[i], PROT_NONE);
        }
    }
    pthread_mutex_unlock(&lock);
}

/* Tells where, then lets the instruction fault again under whatever handler was there before (cmocka's fails the test). */
static void report(int number, siginfo_t *info, void *context)
{
    (void)context;
    const unsigned char *at = info->si_addr;
    for (int i = 0; i < count; i++) {
        if (at >= arenas[i].memory && at < arenas[i].memory + arenas[i].bytes) {
            void *frames[FRAMES];
            say("checked: an arena is touched while no kernel runs:\n");
            backtrace_symbols_fd(frames, backtrace(frames, FRAMES), STDERR_FILENO);
        }
    }
    sigaction(number, &before, NULL);
}

/* With the first arena: by then cmocka has installed its own handler. */
static void watch(void)
{
    struct sigaction action = {.sa_sigaction = report, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, &before);
}

void *checked_memory_allocate(bw_context *ctx, size_t bytes)
{
    void *memory = checked_base->memory->allocate(ctx, bytes);
    if (!memory) {
        return NULL;
    }
    pthread_mutex_lock(&lock);
    if (count == MAX_ARENAS) {
        say("checked: too many arenas\n");
        abort();
    }
    if (count == 0) {
        watch();
    }
    arenas[count] = (arena){memory, bwi_size_align(bytes ? bytes : 1, (size_t)sysconf(_SC_PAGESIZE))};
    protect(&arenas[count], entered ? PROT_READ | PROT_WRITE : PROT_NONE);
    count++;
    pthread_mutex_unlock(&lock);
    return memory;
}

void checked_memory_release(bw_context *ctx, void *memory, size_t bytes)
{
    pthread_mutex_lock(&lock);
    for (int i = 0; i < count; i++) {
        if (arenas[i].memory == memory) {
            protect(&arenas[i], PROT_READ | PROT_WRITE);
            arenas[i] = arenas[--count];
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    checked_base->memory->release(ctx, memory, bytes);
}

void *checked_memory_open(void *memory, size_t bytes)
{
    checked_enter();
    return checked_base->memory->open(memory, bytes);
}

void checked_memory_close(void *memory, size_t bytes)
{
    checked_base->memory->close(memory, bytes);
    checked_leave();
}

/* The best table of this CPU is wrapped and added before main. Where it is chosen by the environment, the process keeps to one
 * CPU, so that contexts have one worker unless a test asks for more. */
__attribute__((constructor)) static void add(void)
{
    static const char *const names[] = {"avx512", "avx2", "neon", "portable"};
    for (size_t i = 0; i < BWI_COUNT(names) && !checked_base; i++) {
        checked_base = bwi_kernels_by_name(names[i]);
    }
    checked_wrap();
    checked_kernels.name = "checked";
    if (!bwi_kernels_add(&checked_kernels)) {
        abort();
    }
    const char *chosen = getenv("BATCHWISE_ISA");
    if (chosen && strcmp(chosen, checked_kernels.name) == 0) {
        cpu_set_t one;
        CPU_ZERO(&one);
        CPU_SET((size_t)sched_getcpu(), &one);
        sched_setaffinity(0, sizeof one, &one);
    }
}
