/*
 * Threads of the library, what they wait with, and what fork finds. A child has none of its parent's threads, and a lock that one
 * of them held would stay held in it for ever. So locks that a child needs, too, are held for moments only, and no process forks in
 * such a moment; and since a thread that begins holds locks of the C library and of sanitizers, whoever starts one waits until it
 * runs, and fork waits for those that others are starting.
 */
#include "base/base.h"

#include <errno.h>
#include <semaphore.h>
#include <signal.h>
#include <time.h>

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_mutex_t moment = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t starts = PTHREAD_MUTEX_INITIALIZER; /* protects the number of threads that are being started */
static pthread_cond_t started = PTHREAD_COND_INITIALIZER;
static int starting, forks;

/* ---- Fork ---- */

static void before_fork(void)
{
    pthread_mutex_lock(&starts);
    while (starting > 0) {
        pthread_cond_wait(&started, &starts);
    }
    pthread_mutex_lock(&moment);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&moment);
    pthread_mutex_unlock(&starts);
}

/* Other threads that waited to fork are not here any more, so nobody waits. */
static void in_child(void)
{
    static const pthread_cond_t fresh = PTHREAD_COND_INITIALIZER;
    started = fresh;
    forks++;
    after_fork();
}

static void watch(void)
{
    pthread_atfork(before_fork, after_fork, in_child);
}

int bwi_forks(void)
{
    pthread_once(&once, watch);
    return forks;
}

void bwi_moment_begin(void)
{
    pthread_once(&once, watch);
    pthread_mutex_lock(&moment);
}

void bwi_moment_end(void)
{
    pthread_mutex_unlock(&moment);
}

/* ---- Threads ---- */

typedef struct beginning {
    void *(*run)(void *user);
    void *user;
    sem_t begun;
} beginning;

/* The starter's struct is gone once it knows that the thread has begun. */
static void *begin(void *argument)
{
    beginning *b = argument;
    void *(*run)(void *user) = b->run;
    void *user = b->user;
    sem_post(&b->begun);
    return run(user);
}

static void count_starting(int change)
{
    pthread_mutex_lock(&starts);
    starting += change;
    if (starting == 0) {
        pthread_cond_broadcast(&started);
    }
    pthread_mutex_unlock(&starts);
}

static int start_and_wait(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *user), void *user)
{
    beginning b = {.run = run, .user = user};
    pthread_once(&once, watch);
    if (sem_init(&b.begun, 0, 0) != 0) {
        return EAGAIN;
    }
    count_starting(1);
    int error = pthread_create(thread, attributes, begin, &b);
    while (error == 0 && sem_wait(&b.begun) != 0) { /* a signal */
    }
    count_starting(-1);
    sem_destroy(&b.begun);
    return error;
}

/* Signals are for the program's threads. One of them, SIGXFSZ, a thread causes itself by writing beyond a limit; blocked, it
 * becomes the failure of that write. A new thread has the mask of the one that starts it. */
int bwi_thread_start(pthread_t *thread, size_t stack_bytes, void *(*run)(void *user), void *user)
{
    pthread_attr_t attributes;
    int error = pthread_attr_init(&attributes);
    if (error != 0) {
        return error;
    }
    if (stack_bytes > 0) {
        (void)pthread_attr_setstacksize(&attributes, stack_bytes);
    }
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = start_and_wait(thread, &attributes, run, user);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return error;
}

bool bwi_condition_open(pthread_mutex_t *mutex, pthread_cond_t *changed)
{
    pthread_condattr_t attributes;
    if (pthread_condattr_init(&attributes) != 0) {
        return false;
    }
    bool made = pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC) == 0 && pthread_cond_init(changed, &attributes) == 0;
    pthread_condattr_destroy(&attributes);
    if (made && pthread_mutex_init(mutex, NULL) != 0) {
        pthread_cond_destroy(changed);
        made = false;
    }
    return made;
}

void bwi_condition_close(pthread_mutex_t *mutex, pthread_cond_t *changed)
{
    pthread_cond_destroy(changed);
    pthread_mutex_destroy(mutex);
}

void bwi_condition_wait(pthread_mutex_t *mutex, pthread_cond_t *changed, long nanoseconds)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += nanoseconds;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(changed, mutex, &until);
}
