/*
 * Writes a trace in the format of Chrome and Perfetto: a list of complete events ("X") with times in microseconds, counters ("C")
 * and names ("M"). Steps have a separate row, so that they are easy to find; below it each worker has a row, on which parts lie
 * within its share of the tiles, and each thread that makes samples ahead of the workers has one.
 */
#include "insight/internal.h"

#include "format/format.h"

#include <math.h>
#include <string.h>

/* Perfetto takes thread 0 for the kernel's idle thread and hides its name, and shows the thread with its process' number first. */
enum { PROCESS = 1, STEPS = PROCESS, FIRST_WORKER };

static void put_name(bwi_json_writer *json, const char *what, int thread, const char *name)
{
    bwi_json_begin(json, NULL, '{');
    bwi_json_put_text(json, "name", what);
    bwi_json_put_text(json, "ph", "M");
    bwi_json_put_whole(json, "pid", PROCESS);
    bwi_json_put_whole(json, "tid", thread);
    bwi_json_begin(json, "args", '{');
    bwi_json_put_text(json, "name", name);
    bwi_json_end(json);
    bwi_json_end(json);
}

static int row_of(const bw_event *event, int workers)
{
    return event->part == BW_EVENT_STEP     ? STEPS
           : event->part == BW_EVENT_SAMPLE ? FIRST_WORKER + workers + event->worker
                                            : FIRST_WORKER + event->worker;
}

/* Perfetto cuts microseconds to whole nanoseconds, times and durations apart, and drops an event that then ends after the one
 * around it. So both are whole nanoseconds here, and a quarter of one keeps them from being cut to the one before. */
static void put_time(bwi_json_writer *json, const char *key, int64_t nanoseconds)
{
    bwi_json_put_real(json, key, ((double)nanoseconds + 0.25) * 1e-3);
}

/* Names an event "dense_1 backward weights" or, for a part that belongs to no layer, by its kind. */
static void put_event(bwi_json_writer *json, const bw_history *history, const bw_event *event, int64_t step)
{
    static const char *const kinds[] = {[-BW_EVENT_STEP] = "step", [-BW_EVENT_SHARE] = "step", [-BW_EVENT_SAMPLE] = "data"};
    char name[128];
    bw_part part = {.op = "", .pass = ""};
    if (event->part >= 0) {
        (void)bw_history_part(history, event->part, &part);
        snprintf(name, sizeof name, "%s%s%s", part.name, part.name[0] ? " " : "",
                 part.name[0] ? part.pass : bw_part_kind_name(part.kind));
    } else if (event->part == BW_EVENT_STEP) {
        snprintf(name, sizeof name, "step %lld", (long long)step);
    } else if (event->part == BW_EVENT_SAMPLE) {
        snprintf(name, sizeof name, "sample %lld", (long long)event->sample);
    } else {
        snprintf(name, sizeof name, "tiles");
    }
    bwi_json_begin(json, NULL, '{');
    bwi_json_put_text(json, "name", name);
    bwi_json_put_text(json, "cat", event->part >= 0 ? bw_part_kind_name(part.kind) : kinds[-event->part]);
    bwi_json_put_text(json, "ph", "X");
    int64_t begin = llround(event->begin * 1e9), end = llround((event->begin + event->seconds) * 1e9);
    put_time(json, "ts", begin);
    put_time(json, "dur", end - begin);
    bwi_json_put_whole(json, "pid", PROCESS);
    bwi_json_put_whole(json, "tid", row_of(event, bw_history_profile(history).workers));
    bwi_json_end(json);
}

static void put_counter(bwi_json_writer *json, const char *name, double seconds, double value)
{
    bwi_json_begin(json, NULL, '{');
    bwi_json_put_text(json, "name", name);
    bwi_json_put_text(json, "ph", "C");
    put_time(json, "ts", llround(seconds * 1e9));
    bwi_json_put_whole(json, "pid", PROCESS);
    bwi_json_begin(json, "args", '{');
    bwi_json_put_real(json, name, value);
    bwi_json_end(json);
    bwi_json_end(json);
}

static int data_threads(const bw_history *history)
{
    int threads = 0;
    for (int64_t k = 0; k < bw_history_events(history); k++) {
        bw_event event;
        (void)bw_history_event(history, k, &event);
        threads = event.part == BW_EVENT_SAMPLE && event.worker >= threads ? event.worker + 1 : threads;
    }
    return threads;
}

/* Names come first, so that a viewer that reads only the beginning knows the rows. */
static void put_trace(bwi_json_writer *json, const bw_history *history)
{
    char name[32];
    int workers = bw_history_profile(history).workers, threads = data_threads(history);
    int64_t steps = 0;
    bwi_json_begin(json, NULL, '{');
    bwi_json_put_text(json, "displayTimeUnit", "ns");
    bwi_json_begin(json, "traceEvents", '[');
    put_name(json, "process_name", STEPS, "batchwise");
    put_name(json, "thread_name", STEPS, "steps");
    for (int row = 0; row < workers + threads; row++) {
        snprintf(name, sizeof name, row < workers ? "worker %d" : "data thread %d", row < workers ? row : row - workers);
        put_name(json, "thread_name", FIRST_WORKER + row, name);
    }
    for (int64_t k = 0; k < bw_history_events(history); k++) {
        bw_event event;
        (void)bw_history_event(history, k, &event);
        steps += event.part == BW_EVENT_STEP;
        put_event(json, history, &event, steps);
    }
    for (int k = 0; k < bwi_history_marks(history); k++) {
        double seconds, loss;
        size_t bytes;
        bwi_history_mark(history, k, &seconds, &loss, &bytes);
        put_counter(json, "loss", seconds, loss);
        put_counter(json, "memory", seconds, (double)bytes);
    }
    bwi_json_end(json);
    bwi_json_end(json);
}

/* The whole text is made in memory, since a trace has at most a few MB, and a file is written completely or not at all. */
static bw_status save(bw_context *ctx, const bw_history *history, const char *path)
{
    if (!path) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "bw_history_save_trace: there is no file name");
    }
    if (bw_history_events(history) == 0) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: no step was traced; trace_steps of bw_fit_options asks for it", path);
    }
    bwi_json_writer json = {.text = {.ctx = ctx}};
    put_trace(&json, history);
    size_t length = strlen(path), size = json.text.length;
    void *packed = NULL;
    bw_status status = json.text.failed ? BW_RESOURCE_EXHAUSTED : BW_OK;
    bool packs = length > 3 && strcmp(path + length - 3, ".gz") == 0;
    if (status == BW_OK && packs) {
        status = bwi_gzip_pack(ctx, json.text.bytes, json.text.length, &packed, &size);
    }
    if (status == BW_OK) {
        status = bwi_file_write(ctx, path, packs ? packed : json.text.bytes, size);
    }
    bwi_release(ctx, packed);
    bwi_text_free(&json.text);
    return status;
}

bw_status bw_history_save_trace(const bw_history *history, const char *path)
{
    bw_context *ctx = history ? bwi_history_context(history) : NULL;
    bw_status status = history ? bwi_call_begin(ctx) : BW_INVALID_ARGUMENT;
    return status == BW_OK ? bwi_call_end(ctx, save(ctx, history, path)) : status;
}
