/*
 * Shows progress as Keras does. On a terminal this is a bar that is redrawn at most every 0.05 seconds,
 *   12/32 ━━━━━━━━━━━━━━━━━━━━ 3s 12ms/step - accuracy: 0.8765 - loss: 0.4321
 * in Keras's colours unless NO_COLOR is set; elsewhere it is one line per epoch.
 */
#include "train/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BAR = 20 };

static void write_values(FILE *file, const bw_progress *p)
{
    const bw_history *logs = p->logs;
    for (int c = 0; c < bw_history_columns(logs); c++) {
        double value = bw_history_last(logs, bw_history_column(logs, c));
        if (!isnan(value) || c == 0) {
            bwi_print_file(file, fabs(value) > 1e-3 || value == 0 ? " - %s: %.4f" : " - %s: %.4e", bw_history_column(logs, c),
                           value);
        }
    }
}

static void write_duration(FILE *file, double seconds)
{
    if (seconds >= 1) {
        bwi_print_file(file, "%.0fs", seconds);
    } else if (seconds >= 1e-3) {
        bwi_print_file(file, "%.0fms", seconds * 1e3);
    } else {
        bwi_print_file(file, "%.0fus", seconds * 1e6);
    }
}

static bool is_colourful(void)
{
    const char *refused = getenv("NO_COLOR"), *kind = getenv("TERM");
    return !(refused && refused[0]) && !(kind && strcmp(kind, "dumb") == 0);
}

static void draw_bar(FILE *file, const bw_progress *p)
{
    bool colourful = is_colourful();
    int64_t filled = p->steps ? p->step * BAR / p->steps : 0;
    fputs(colourful ? "\033[32m" : "", file);
    for (int64_t i = 0; i < BAR; i++) {
        if (i == filled) {
            fputs(colourful ? "\033[0;37m" : "", file);
        }
        fputs(i < filled || colourful ? "━" : "─", file);
    }
    fputs(colourful ? "\033[0m " : " ", file);
}

/* Draws the line of the present step: count, bar (on a terminal), the time left or, at the end, taken, time per step, values. */
static void draw(const bwi_painter *painter, const bw_progress *p, bool end)
{
    FILE *file = painter->file;
    int digits = snprintf(NULL, 0, "%lld", (long long)p->steps);
    double per_step = p->step ? p->seconds / (double)p->step : 0;
    bool bold = painter->terminal && is_colourful();
    fprintf(file, "%s%s", painter->terminal ? "\r\033[K" : "", bold ? "\033[1m" : "");
    if (p->steps == 0) {
        fprintf(file, "%lld/Unknown", (long long)p->step);
    } else {
        fprintf(file, "%*lld/%lld", digits, (long long)p->step, (long long)p->steps);
    }
    fputs(bold ? "\033[0m " : " ", file);
    if (painter->terminal) {
        draw_bar(file, p);
    } else {
        fputs("- ", file);
    }
    bwi_print_file(file, "%.0fs%s", end || p->steps == 0 ? p->seconds : per_step * (double)(p->steps - p->step),
                   painter->terminal ? " " : " - ");
    write_duration(file, per_step);
    fputs("/step", file);
    write_values(file, p);
    if (end) {
        fputs("\n", file);
    }
    fflush(file);
}

void bwi_painter_epoch(bwi_painter *painter, const bw_progress *p)
{
    if (painter->file) {
        painter->terminal = isatty(fileno(painter->file));
        painter->drawn = 0;
        fprintf(painter->file, "Epoch %d/%d\n", p->epoch + 1, p->epochs);
        fflush(painter->file);
    }
}

void bwi_painter_step(bwi_painter *painter, const bw_progress *p)
{
    if (painter->file && painter->terminal && p->seconds - painter->drawn >= 0.05) {
        painter->drawn = p->seconds;
        draw(painter, p, false);
    }
}

void bwi_painter_end(bwi_painter *painter, const bw_progress *p)
{
    if (painter->file) {
        draw(painter, p, true);
    }
}
