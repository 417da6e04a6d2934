/*
 * Shows a training as a panel in the terminal, as nvidia-smi shows a GPU: values, speed, memory beside the plan, and how busy each
 * worker is. Lines are redrawn in place by moving the cursor up; a message that comes in between takes the panel away first. The
 * panel is drawn from what the library measures anyway, a few times a second, so that a step pays for reading the clock alone.
 */
#include "cli/live.h"

#include "cli/profile.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

enum { MOST_WIDTH = 100, LEAST_WIDTH = 40, SPARKS = 60, METER = 24, MOST_WORKERS = 256, LINE = 1024 };

static const double INTERVAL = 0.2; /* seconds from one panel to the next */

/* What a worker had done when the utilisation was last computed. */
typedef struct mark {
    double steps, timed, step_seconds; /* step_seconds: of a mean step so far */
    double busy[MOST_WORKERS];         /* seconds of a mean step so far */
} mark;

static struct {
    const cli_result *result; /* NULL: nothing is shown */
    bool validates, colours;
    double began, next;
    int lines, width, height; /* of the panel that is shown, and of the terminal */
    bw_progress last;
    bw_history *history;
    FILE *file;                 /* where the panel is composed */
    double share[MOST_WORKERS]; /* the utilisation of each worker; NaN: not known yet */
    mark since;
} live;

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

bool cli_live_possible(void)
{
    const char *kind = getenv("TERM");
    return isatty(STDERR_FILENO) && kind && kind[0] && strcmp(kind, "dumb") != 0;
}

/* ---- Lines ----------------------------------------------------------------------------------------------- */

/* A line is cut at the panel's width, in columns: bytes that continue a character, and colours, take none. */
static void put_line(const char *text)
{
    int columns = 0;
    fputs("\r", live.file);
    for (const char *at = text; *at; at++) {
        bool escape = *at == '\033', continues = ((unsigned char)*at & 0xC0) == 0x80;
        if (escape) {
            const char *end = strchr(at, 'm');
            fwrite(at, 1, (size_t)(end - at) + 1, live.file);
            at = end;
        } else if (continues ? columns <= live.width : columns++ < live.width) {
            fputc(*at, live.file);
        }
    }
    fputs("\033[0m\033[K\n", live.file);
    live.lines++;
}

__attribute__((format(printf, 2, 3))) static void append(char *line, const char *format, ...)
{
    size_t used = strlen(line);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line + used, LINE - used, format, arguments);
    va_end(arguments);
}

static void append_colour(char *line, const char *colour)
{
    if (live.colours) {
        append(line, "\033[%sm", colour);
    }
}

/* A meter of `width` columns: green, or red where a share above one is a fault. */
static void append_meter(char *line, double share, int width)
{
    int filled = isnan(share) ? 0 : (int)lrint(fmin(fmax(share, 0), 1) * width);
    append_colour(line, share > 1.02 ? "31" : "32");
    for (int k = 0; k < width; k++) {
        if (k == filled) {
            append_colour(line, "0;37");
        }
        append(line, "%s", k < filled ? "█" : "·");
    }
    append_colour(line, "0");
}

static const char *clock_text(char *text, double seconds)
{
    int64_t whole = isfinite(seconds) ? (int64_t)seconds : 0;
    int hours = (int)(whole / 3600), minutes = (int)(whole / 60 % 60);
    if (hours > 0) {
        snprintf(text, 32, "%d:%02d:%02d", hours, minutes, (int)(whole % 60));
    } else {
        snprintf(text, 32, "%d:%02d", minutes, (int)(whole % 60));
    }
    return text;
}

/* ---- The panel ------------------------------------------------------------------------------------------- */

/* Epochs and steps, the time so far, and what is left of all epochs if they go on like this. */
static void put_head(bool over)
{
    const bw_progress *p = &live.last;
    char line[LINE] = "", spent[32], left[32];
    double seconds = now() - live.began;
    double done = p->steps > 0 ? p->epoch + (double)p->step / (double)p->steps : p->epoch;
    append_colour(line, "1");
    append(line, "batchwise train");
    append_colour(line, "0");
    append(line, "  epoch %d/%d", p->epoch + 1, p->epochs);
    if (p->steps > 0) {
        append(line, "  step %lld/%lld", (long long)p->step, (long long)p->steps);
    } else {
        append(line, "  step %lld", (long long)p->step);
    }
    append(line, "  %s", clock_text(spent, seconds));
    if (!over && done > 0) {
        append(line, ", %s left", clock_text(left, seconds / done * (p->epochs - done)));
    }
    append(line, "%s", over ? "  over" : live.validates && p->steps > 0 && p->step == p->steps ? "  validating" : "");
    put_line(line);
}

static void put_values(void)
{
    char line[LINE] = "  ";
    for (int c = 0; c < bw_history_columns(live.last.logs); c++) {
        const char *name = bw_history_column(live.last.logs, c);
        double value = bw_history_last(live.last.logs, name);
        value = isnan(value) ? bw_history_last(live.history, name) : value; /* of validation: the last complete epoch's */
        if (!isnan(value)) {
            append(line, "%s %.4g  ", name, value);
        }
    }
    put_line(line);
}

/* The loss so far, as one row of blocks. */
static void put_sparks(void)
{
    static const char *const blocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    double losses[SPARKS], low = HUGE_VAL, high = -HUGE_VAL;
    char line[LINE] = "  loss  ";
    int count = cli_record_losses(&live.result->record, losses, live.width - 10 < SPARKS ? live.width - 10 : SPARKS);
    for (int k = 0; k < count; k++) {
        low = isfinite(losses[k]) ? fmin(low, losses[k]) : low;
        high = isfinite(losses[k]) ? fmax(high, losses[k]) : high;
    }
    append_colour(line, "36");
    for (int k = 0; k < count; k++) {
        append(line, "%s", !isfinite(losses[k]) ? "?" : blocks[high > low ? (int)lrint(7 * (losses[k] - low) / (high - low)) : 0]);
    }
    put_line(line);
}

static void put_speed(const cli_profile *profile)
{
    bw_run_facts facts = bw_history_facts(live.history);
    char line[LINE] = "", step[CLI_SECONDS_TEXT];
    double seconds = profile->facts.step_seconds, all = seconds * profile->facts.workers;
    append(line, "  speed   %.0f samples/s", facts.seconds > 0 ? (double)facts.samples / facts.seconds : 0.0);
    if (all > 0) {
        if (seconds < 1e-3) {
            append(line, "  %.1f us a step", seconds * 1e6);
        } else {
            append(line, "  %s a step", cli_seconds_text(step, seconds));
        }
        append(line, "  data wait %.0f%%", 100 * cli_profile_kind(profile, BW_PART_DATA, 0) / seconds);
    }
    append(line, "  rate %.3g", bw_learning_rate(live.result->model));
    put_line(line);
}

static void put_memory(void)
{
    bw_run_facts facts = bw_history_facts(live.history);
    char line[LINE] = "  memory  ", peak[CLI_BYTES_TEXT], planned[CLI_BYTES_TEXT];
    double share = facts.planned_bytes > 0 ? (double)facts.peak_bytes / (double)facts.planned_bytes : (double)NAN;
    append_meter(line, share, METER);
    append(line, " %3.0f%%  %s of %s planned", 100 * share, cli_bytes_text(peak, facts.peak_bytes),
           cli_bytes_text(planned, facts.planned_bytes));
    put_line(line);
}

/* Utilisation since the last panel: timed steps tell how long a worker was busy, all steps how long a step took. */
static void take_shares(const cli_profile *profile)
{
    enum { ENOUGH = 4 };
    const bw_profile_facts *facts = &profile->facts;
    mark before = live.since, *at = &live.since;
    double steps = (double)facts->steps, timed = (double)facts->timed_steps;
    if (timed - before.timed < ENOUGH) {
        return;
    }
    *at = (mark){.steps = steps, .timed = timed, .step_seconds = facts->step_seconds};
    double step = (facts->step_seconds * steps - before.step_seconds * before.steps) / (steps - before.steps);
    for (int w = 0; w < facts->workers && w < MOST_WORKERS; w++) {
        at->busy[w] = cli_profile_busy(profile, w) * facts->step_seconds;
        double busy = (at->busy[w] * timed - before.busy[w] * before.timed) / (timed - before.timed);
        live.share[w] = step > 0 ? fmin(fmax(busy / step, 0), 1) : (double)NAN;
    }
}

static void append_share(char *line, int worker, int meter)
{
    append(line, "  worker %-3d", worker);
    append_meter(line, live.share[worker], meter);
    if (isnan(live.share[worker])) {
        append(line, "   - ");
    } else {
        append(line, " %3.0f%%", 100 * live.share[worker]);
    }
}

/* A line for each worker; two or more share one if the terminal is too low. What still does not fit is counted. */
static void put_workers(const cli_profile *profile)
{
    int workers = profile->facts.workers < MOST_WORKERS ? profile->facts.workers : MOST_WORKERS;
    int room = live.height - live.lines - 2 > 1 ? live.height - live.lines - 2 : 1;
    int most = live.width / 22 > 0 ? live.width / 22 : 1, columns = (workers + room - 1) / room;
    columns = columns < 1 ? 1 : columns < most ? columns : most;
    int meter = columns == 1 ? METER : live.width / columns - 18 > 3 ? live.width / columns - 18 : 3, shown = room * columns;
    for (int first = 0; first < workers && first < shown; first += columns) {
        char line[LINE] = "";
        for (int w = first; w < first + columns && w < workers; w++) {
            append_share(line, w, meter);
        }
        put_line(line);
    }
    if (shown < workers) {
        char line[LINE] = "";
        append(line, "  and %d more workers", workers - shown);
        put_line(line);
    }
}

void cli_live_clear(void)
{
    if (live.lines > 0) {
        fprintf(stderr, "\033[%dA\r\033[J", live.lines);
        live.lines = 0;
    }
}

static void measure_terminal(void)
{
    struct winsize size;
    bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 && size.ws_row > 0;
    int width = known ? size.ws_col - 1 : 79;
    width = width > MOST_WIDTH ? MOST_WIDTH : width;
    if (width != live.width) {
        live.lines = 0; /* lines may have been wrapped, so the old panel stays where it is */
    }
    live.width = width < LEAST_WIDTH ? LEAST_WIDTH : width;
    live.height = known ? size.ws_row : 24;
}

static void compose(const cli_profile *profile, bool over)
{
    if (live.lines > 0) {
        fprintf(live.file, "\033[%dA", live.lines);
    }
    live.lines = 0;
    put_head(over);
    put_values();
    put_sparks();
    put_speed(profile);
    put_memory();
    put_workers(profile);
    fputs("\033[J", live.file);
}

/* The panel is composed in memory and written at once, so that the terminal never shows half of it. */
static void draw(bool over)
{
    cli_profile profile = {.parts = NULL};
    char *text = NULL;
    size_t length = 0;
    live.file = open_memstream(&text, &length);
    if (!live.file) {
        return;
    }
    (void)bw_history_refresh(live.history);
    (void)cli_profile_take(&profile, live.history, NULL);
    take_shares(&profile);
    measure_terminal();
    compose(&profile, over);
    if (fclose(live.file) == 0) {
        fwrite(text, 1, length, stderr);
    }
    free(text);
    cli_profile_free(&profile);
}

/* ---- Its life -------------------------------------------------------------------------------------------- */

/* Panels are composed in memory that the process already has, so that they do not count as the training's: the allocator keeps what
 * is touched and freed here. */
static void warm_up(void)
{
    enum { BYTES = 64 << 10 };
    char *memory = malloc(BYTES);
    if (memory) {
        memset(memory, 1, BYTES);
        __asm__ volatile("" : : "r"(memory) : "memory");
        free(memory);
    }
}

void cli_live_open(const cli_result *result, bool validates)
{
    const char *refused = getenv("NO_COLOR");
    warm_up();
    memset(&live, 0, sizeof live);
    live.result = result;
    live.validates = validates;
    live.colours = !(refused && refused[0]);
    live.began = now();
    for (int w = 0; w < MOST_WORKERS; w++) {
        live.share[w] = (double)NAN;
    }
}

void cli_live_step(const bw_progress *progress)
{
    double time = now();
    if (time < live.next) {
        return;
    }
    live.last = *progress;
    live.history = progress->history;
    draw(false);
    live.next = now() + INTERVAL;
}

void cli_live_epoch(const bw_progress *progress)
{
    live.last = *progress;
    live.history = progress->history;
    if (progress->epoch + 1 == progress->epochs) {
        draw(true);
    } else {
        cli_live_step(progress);
    }
}

void cli_live_close(void)
{
    if (live.result) {
        live.result = NULL;
        live.lines = 0;
    }
}
