/*
 * Writes ledger.json of a run directory (docs/reference/run-directory.md): the profile of the run, the same by worker, and one of
 * the traced steps as a timeline. A step may have any number of events, so only the longest ones are written.
 */
#include "cli/profile.h"
#include "cli/report.h"

#include <stdlib.h>

enum { MOST_EVENTS = 1200 };

typedef struct timeline {
    bw_event *list; /* of all workers */
    int64_t count;
    bw_event step; /* the one that is shown */
} timeline;

static int by_seconds(const void *a, const void *b)
{
    const bw_event *x = a, *y = b;
    return x->seconds < y->seconds ? 1 : x->seconds > y->seconds ? -1 : 0;
}

static int by_begin(const void *a, const void *b)
{
    const bw_event *x = a, *y = b;
    return x->worker != y->worker ? x->worker - y->worker : x->begin < y->begin ? -1 : x->begin > y->begin ? 1 : 0;
}

/* Chooses the step of median length, since the first ones may have waited for memory or files, and keeps its parts alone. Returns
 * false if there is no step, or no memory. */
static bool take(timeline *made, const bw_history *history)
{
    int64_t all = bw_history_events(history), steps = 0;
    *made = (timeline){.list = all > 0 ? calloc((size_t)all, sizeof *made->list) : NULL};
    for (int64_t k = 0; made->list && k < all; k++) {
        bw_event event;
        (void)bw_history_event(history, k, &event);
        if (event.part == BW_EVENT_STEP) {
            made->list[steps++] = event;
        }
    }
    if (steps == 0) {
        free(made->list);
        return false;
    }
    qsort(made->list, (size_t)steps, sizeof *made->list, by_seconds);
    made->step = made->list[steps / 2];
    for (int64_t k = 0; k < all; k++) {
        bw_event event;
        (void)bw_history_event(history, k, &event);
        bool within = event.begin >= made->step.begin && event.begin < made->step.begin + made->step.seconds;
        if (event.part >= 0 && within) {
            made->list[made->count++] = event;
        }
    }
    qsort(made->list, (size_t)made->count, sizeof *made->list, by_seconds);
    return true;
}

static void put_spans(cli_json *json, const cli_profile *made)
{
    cli_json_array(json, "spans");
    for (int k = 0; k < made->facts.parts; k++) {
        cli_json_object(json, NULL);
        cli_json_text(json, "layer", made->parts[k].name[0] ? made->parts[k].name : NULL);
        cli_json_text(json, "kind", bw_part_kind_name(made->parts[k].kind));
        cli_json_object_end(json);
    }
    cli_json_array_end(json);
}

/* Events are lists of four numbers rather than objects, since there are many of them: [worker, span, begin, length]. */
static void put_timeline(cli_json *json, const cli_profile *made, const bw_history *history)
{
    timeline t;
    if (!take(&t, history)) {
        cli_json_text(json, "timeline", NULL);
        return;
    }
    int64_t shown = t.count < MOST_EVENTS ? t.count : MOST_EVENTS;
    qsort(t.list, (size_t)shown, sizeof *t.list, by_begin);
    cli_json_object(json, "timeline");
    cli_json_rounded(json, "step_us", t.step.seconds * 1e6);
    put_spans(json, made);
    cli_json_array(json, "events");
    for (int64_t k = 0; k < shown; k++) {
        cli_json_array(json, NULL);
        cli_json_whole(json, NULL, t.list[k].worker);
        cli_json_whole(json, NULL, t.list[k].part);
        cli_json_rounded(json, NULL, (t.list[k].begin - t.step.begin) * 1e6);
        cli_json_rounded(json, NULL, t.list[k].seconds * 1e6);
        cli_json_array_end(json);
    }
    cli_json_array_end(json);
    cli_json_whole(json, "dropped", t.count - shown);
    cli_json_object_end(json);
    free(t.list);
}

static void put_workers(cli_json *json, const cli_profile *made)
{
    cli_json_array(json, "by_worker");
    for (int worker = 0; worker < made->facts.workers; worker++) {
        cli_json_object(json, NULL);
        for (int kind = 0; kind < CLI_PART_KINDS; kind++) {
            cli_json_rounded(json, bw_part_kind_name((bw_part_kind)kind), cli_profile_kind(made, kind, worker) * 1e6);
        }
        cli_json_object_end(json);
    }
    cli_json_array_end(json);
}

bool cli_ledger_put(cli_json *json, const char *key, const bw_history *history)
{
    cli_profile made;
    if (!cli_profile_take(&made, history, NULL)) {
        return false;
    }
    cli_json_object(json, key);
    cli_profile_members(json, &made);
    put_workers(json, &made);
    put_timeline(json, &made, history);
    cli_json_object_end(json);
    cli_profile_free(&made);
    return true;
}

bool cli_ledger_write(const cli_result *result, const char *path)
{
    cli_output output;
    if (bw_history_profile(result->history).parts == 0) {
        return true;
    }
    if (!cli_output_open(&output, path)) {
        return false;
    }
    cli_json json = {.file = output.file};
    if (!cli_ledger_put(&json, NULL, result->history)) {
        cli_output_discard(&output);
        cli_fail("%s: no memory for the profile of the run", path);
        return false;
    }
    fputc('\n', output.file);
    return cli_output_commit(&output);
}
