/* Threads of the library, and what they wait with. */
#include "base/base.h"

#include <signal.h>
#include <time.h>

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
    error = pthread_create(thread, &attributes, run, user);
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
