/*
 * The thread that writes checkpoints. Training copies its state into the image and goes on; the thread computes checksums, writes,
 * syncs and removes old checkpoints. There is one image: while the thread is busy with a slow disk, the next checkpoint waits, and
 * is taken with the state of the first step after the disk is done. So training never waits for a disk, and the last whole
 * checkpoint is never older than two writes.
 */
#include "train/checkpoint/checkpoint.h"

#include <inttypes.h>
#include <string.h>

struct bwi_writer {
    bw_context *ctx;
    bwi_checkpoint_image image; /* the thread's while it is busy */
    const char *folder;
    int keep;
    pthread_t thread;
    pthread_mutex_t mutex; /* of what follows */
    pthread_cond_t change;
    bool busy, quit;
    int64_t written, failed, last; /* last: the step of the last whole one, or -1 */
    bwi_store_failure failure;     /* that nobody has been told of */
    atomic_bool alarm;             /* there is one */
};

/* ---- When ---- */

static bool read_unit(const char *unit, double *seconds)
{
    static const struct {
        const char *name;
        double seconds;
    } units[] = {{"s", 1}, {"sec", 1}, {"m", 60}, {"min", 60}, {"h", 3600}};
    for (size_t i = 0; i < BWI_COUNT(units); i++) {
        if (strcmp(units[i].name, unit) == 0) {
            *seconds = units[i].seconds;
            return true;
        }
    }
    return false;
}

bw_status bwi_checkpoint_times_read(bw_context *ctx, bwi_checkpoint_times *times, const char *text)
{
    double number, unit;
    size_t digits = strspn(text, "0123456789.");
    *times = (bwi_checkpoint_times){0};
    if (strcmp(text, "epoch") == 0) {
        return BW_OK;
    }
    if (bwi_parse_int(text, text + strlen(text), &times->steps) && times->steps >= 1) {
        return BW_OK;
    }
    if (bwi_parse_double(text, text + digits, &number) && read_unit(text + digits, &unit) && number > 0 && number * unit <= 1e9) {
        *times = (bwi_checkpoint_times){.seconds = number * unit};
        return BW_OK;
    }
    return bwi_fail_at(ctx, BW_INVALID_ARGUMENT, bwi_in_argument("checkpoint_every"),
                       "checkpoint_every: expected a number of updates (100), epoch, or a time (30s, 5m, 1h), found '%.40s'", text);
}

/* ---- The thread ---- */

/* Waits for an image, writes it, and tells how that went. The lock is not held while the disk works. */
static void *run(void *user)
{
    bwi_writer *w = user;
    pthread_mutex_lock(&w->mutex);
    while (!w->quit) {
        if (!w->busy) {
            pthread_cond_wait(&w->change, &w->mutex);
            continue;
        }
        pthread_mutex_unlock(&w->mutex);
        bwi_store_failure failure;
        bwi_checkpoint_image_finish(&w->image);
        bool written = bwi_store_write(&w->image, w->folder, &failure);
        if (written) {
            bwi_store_prune(w->ctx, w->folder, w->keep);
        }
        pthread_mutex_lock(&w->mutex);
        w->busy = false;
        w->written += written;
        w->failed += !written;
        w->last = written ? w->image.facts.step : w->last;
        if (!written) {
            w->failure = failure;
            atomic_store_explicit(&w->alarm, true, memory_order_relaxed);
        }
        pthread_cond_broadcast(&w->change);
    }
    pthread_mutex_unlock(&w->mutex);
    return NULL;
}

bw_status bwi_writer_open(bw_context *ctx, bwi_writer **writer, bwi_checkpoint_image *image, const char *folder, int keep)
{
    bwi_writer *w = bwi_allocate(ctx, 1, sizeof *w);
    *writer = NULL;
    if (!w) {
        bwi_checkpoint_image_free(image);
        return BW_RESOURCE_EXHAUSTED;
    }
    w->ctx = ctx;
    w->image = *image;
    *image = (bwi_checkpoint_image){0};
    w->folder = folder;
    w->keep = keep;
    w->last = -1;
    bool locks = bwi_condition_open(&w->mutex, &w->change);
    int result = locks ? bwi_thread_start(&w->thread, 0, run, w) : -1;
    if (result != 0) {
        if (locks) {
            bwi_condition_close(&w->mutex, &w->change);
        }
        bwi_checkpoint_image_free(&w->image);
        bwi_release(ctx, w);
        return bwi_fail(ctx, BW_RESOURCE_EXHAUSTED, "cannot start the thread that writes checkpoints");
    }
    *writer = w;
    return BW_OK;
}

void bwi_writer_close(bwi_writer *w)
{
    if (!w) {
        return;
    }
    bwi_writer_wait(w);
    pthread_mutex_lock(&w->mutex);
    w->quit = true;
    pthread_cond_broadcast(&w->change);
    pthread_mutex_unlock(&w->mutex);
    pthread_join(w->thread, NULL);
    bwi_condition_close(&w->mutex, &w->change);
    bwi_checkpoint_image_free(&w->image);
    bwi_release(w->ctx, w);
}

/* ---- The caller's side ---- */

bool bwi_writer_is_free(bwi_writer *w)
{
    pthread_mutex_lock(&w->mutex);
    bool busy = w->busy;
    pthread_mutex_unlock(&w->mutex);
    return !busy;
}

bool bwi_writer_take(bwi_writer *w, int64_t rows, const bwi_checkpoint_facts *facts, const bw_status *gathered)
{
    bwi_checkpoint_image_take(&w->image, rows, facts);
    if (*gathered != BW_OK) {
        return false;
    }
    pthread_mutex_lock(&w->mutex);
    w->busy = true;
    pthread_cond_broadcast(&w->change);
    pthread_mutex_unlock(&w->mutex);
    return true;
}

void bwi_writer_wait(bwi_writer *w)
{
    pthread_mutex_lock(&w->mutex);
    while (w->busy) {
        pthread_cond_wait(&w->change, &w->mutex);
    }
    pthread_mutex_unlock(&w->mutex);
}

bool bwi_writer_alarm(const bwi_writer *w)
{
    return atomic_load_explicit(&w->alarm, memory_order_relaxed);
}

void bwi_writer_report(bwi_writer *w, bw_run_facts *facts)
{
    pthread_mutex_lock(&w->mutex);
    bwi_store_failure failure = w->failure;
    w->failure.code = 0;
    atomic_store_explicit(&w->alarm, false, memory_order_relaxed);
    facts->checkpoints = w->written;
    facts->failed_checkpoints = w->failed;
    facts->last_checkpoint = w->last >= 0 ? w->last : facts->resumed_step;
    pthread_mutex_unlock(&w->mutex);
    if (failure.code < 0) {
        char last[64] = "there is no whole one yet";
        if (facts->last_checkpoint >= 0) {
            snprintf(last, sizeof last, "the last whole one is that of step %" PRId64, facts->last_checkpoint);
        }
        bwi_log(w->ctx, BW_LOG_WARNING, "CHECKPOINT FAILED: cannot %s %s: %s; training goes on, %s", failure.what, failure.path,
                bwi_errno_text(-failure.code), last);
    }
}
