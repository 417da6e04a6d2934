/* Draws a report's charts as inline SVG: the curves of a training, and bars of bytes. The page defines the colours (report.c). */
#include "cli/report.h"

#include <math.h>
#include <string.h>

void cli_html_text(FILE *file, const char *text)
{
    for (; *text; text++) {
        switch (*text) {
        case '&':
            fputs("&amp;", file);
            break;
        case '<':
            fputs("&lt;", file);
            break;
        case '>':
            fputs("&gt;", file);
            break;
        case '"':
            fputs("&quot;", file);
            break;
        default:
            fputc((unsigned char)*text < ' ' ? ' ' : *text, file);
        }
    }
}

/* ---- Curves --------------------------------------------------------------------------------------------- */

enum { WIDTH = 460, HEIGHT = 250, LEFT = 56, RIGHT = 14, TOP = 14, BOTTOM = 34 };

typedef struct axes {
    int epochs;
    double low, high, tick;
} axes;

static double x_of(const axes *a, int epoch)
{
    double span = WIDTH - LEFT - RIGHT;
    return a->epochs > 1 ? LEFT + span * epoch / (a->epochs - 1) : LEFT + span / 2;
}

static double y_of(const axes *a, double value)
{
    return TOP + (HEIGHT - TOP - BOTTOM) * (a->high - value) / (a->high - a->low);
}

/* Returns the step of 1, 2 or 5 times a power of ten that makes about five ticks. */
static double nice_tick(double span)
{
    double power = pow(10, floor(log10(span / 4))), rest = span / 4 / power;
    return power * (rest < 1.5 ? 1 : rest < 3.5 ? 2 : rest < 7.5 ? 5 : 10);
}

static void widen(const bw_history *history, const char *column, double *low, double *high)
{
    for (int e = 0; e < bw_history_epochs(history); e++) {
        double value = bw_history_value(history, column, e);
        if (isfinite(value)) {
            *low = fmin(*low, value);
            *high = fmax(*high, value);
        }
    }
}

static axes make_axes(const bw_history *history, const char *column, const char *validation)
{
    axes a = {.epochs = bw_history_epochs(history), .low = HUGE_VAL, .high = -HUGE_VAL};
    widen(history, column, &a.low, &a.high);
    widen(history, validation, &a.low, &a.high);
    if (!(a.high > a.low)) {
        a.low = isfinite(a.low) ? a.low - 0.5 : 0;
        a.high = a.low + 1;
    }
    if (a.low > 0 && a.low < 0.3 * a.high) {
        a.low = 0;
    }
    a.tick = nice_tick(a.high - a.low);
    a.low = floor(a.low / a.tick + 1e-9) * a.tick;
    a.high = ceil(a.high / a.tick - 1e-9) * a.tick;
    return a;
}

static void draw_grid(FILE *file, const axes *a)
{
    for (int i = 0; a->low + i * a->tick < a->high + a->tick / 2; i++) {
        double value = a->low + i * a->tick, y = y_of(a, value);
        fprintf(file, "<line class=\"grid\" x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\"/>", LEFT, WIDTH - RIGHT, y, y);
        fprintf(file, "<text class=\"tick\" text-anchor=\"end\" x=\"%d\" y=\"%.1f\">%.4g</text>", LEFT - 8, y + 4,
                fabs(value) < a->tick / 2 ? 0 : value);
    }
    int step = (a->epochs + 9) / 10;
    for (int e = 0; e<a->epochs; e += step> 0 ? step : 1) {
        fprintf(file, "<text class=\"tick\" text-anchor=\"middle\" x=\"%.1f\" y=\"%d\">%d</text>", x_of(a, e), HEIGHT - BOTTOM + 18,
                e + 1);
    }
    fprintf(file, "<text class=\"tick\" text-anchor=\"middle\" x=\"%d\" y=\"%d\">epoch</text>", (LEFT + WIDTH - RIGHT) / 2,
            HEIGHT - 2);
}

static void draw_line(FILE *file, const axes *a, const bw_history *history, const char *column, const char *kind)
{
    fprintf(file, "<polyline class=\"%s\" points=\"", kind);
    for (int e = 0; e < a->epochs; e++) {
        double value = bw_history_value(history, column, e);
        if (isfinite(value)) {
            fprintf(file, "%.1f,%.1f ", x_of(a, e), y_of(a, value));
        }
    }
    fputs("\"/>", file);
    for (int e = 0; e < a->epochs; e++) {
        double value = bw_history_value(history, column, e);
        if (isfinite(value)) {
            fprintf(file, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"2.6\"><title>epoch %d: ", kind, x_of(a, e),
                    y_of(a, value), e + 1);
            cli_html_text(file, column);
            fprintf(file, " %.4f</title></circle>", value);
        }
    }
}

void cli_chart_lines(FILE *file, const bw_history *history, const char *column)
{
    char validation[160];
    snprintf(validation, sizeof validation, "val_%s", column);
    axes a = make_axes(history, column, validation);
    fputs("<figure><figcaption>", file);
    cli_html_text(file, column);
    fputs(" <span class=\"key training\">training</span>", file);
    if (isfinite(bw_history_last(history, validation))) {
        fputs(" <span class=\"key validation\">validation</span>", file);
    }
    fprintf(file, "</figcaption><svg viewBox=\"0 0 %d %d\" role=\"img\">", WIDTH, HEIGHT);
    draw_grid(file, &a);
    draw_line(file, &a, history, column, "training");
    draw_line(file, &a, history, validation, "validation");
    fputs("</svg></figure>\n", file);
}

/* ---- Bytes ---------------------------------------------------------------------------------------------- */

enum { BARS = 940, BAR = 26, ROW = 34, NAMES = 150 };

void cli_chart_items(FILE *file, const bw_memory_facts *plan)
{
    char text[CLI_BYTES_TEXT];
    double at = 0, all = plan->peak_bytes > 0 ? (double)plan->peak_bytes : 1;
    fprintf(file, "<svg viewBox=\"0 0 %d %d\" role=\"img\">", BARS, BAR);
    for (int i = 0; i < BW_PLAN_ITEMS; i++) {
        double width = (double)plan->items[i] / all * BARS;
        fprintf(file, "<rect class=\"item%d\" x=\"%.1f\" y=\"0\" width=\"%.1f\" height=\"%d\"><title>%s %s</title></rect>", i, at,
                fmax(width - 1, 0), BAR, bw_plan_item_name((bw_plan_item)i), cli_bytes_text(text, plan->items[i]));
        at += width;
    }
    fputs("</svg>\n<ul class=\"items\">", file);
    for (int i = 0; i < BW_PLAN_ITEMS; i++) {
        if (plan->items[i] > 0) {
            fprintf(file, "<li><span class=\"box item%d\"></span>%s <b>%s</b></li>", i, bw_plan_item_name((bw_plan_item)i),
                    cli_bytes_text(text, plan->items[i]));
        }
    }
    fputs("</ul>\n", file);
}

/* All bars have the same scale; a bar that is too small to see still gets one pixel. */
void cli_chart_batches(FILE *file, const bw_memory_facts *plans, int count)
{
    char text[CLI_BYTES_TEXT];
    size_t most = 1;
    for (int i = 0; i < count; i++) {
        most = plans[i].whole_batch_bytes > most ? plans[i].whole_batch_bytes : most;
        most = plans[i].peak_bytes > most ? plans[i].peak_bytes : most;
    }
    fprintf(file, "<svg viewBox=\"0 0 %d %d\" role=\"img\">", BARS, count * (2 * ROW + 12));
    for (int i = 0; i < count; i++) {
        int y = i * (2 * ROW + 12);
        fprintf(file, "<text class=\"name\" x=\"0\" y=\"%d\">batch %lld</text>", y + ROW + 4, (long long)plans[i].batch);
        for (int k = 0; k < 2; k++) {
            size_t bytes = k == 0 ? plans[i].peak_bytes : plans[i].whole_batch_bytes;
            double width = fmax((double)bytes / (double)most * (BARS - NAMES - 250), 2);
            fprintf(file, "<rect class=\"%s\" x=\"%d\" y=\"%d\" width=\"%.1f\" height=\"%d\" rx=\"3\"/>",
                    k == 0 ? "ours" : "theirs", NAMES, y + k * ROW, width, BAR);
            fprintf(file, "<text class=\"tick\" x=\"%.1f\" y=\"%d\">%s %s</text>", NAMES + width + 8, y + k * ROW + 18,
                    cli_bytes_text(text, bytes), k == 0 ? "Batchwise" : "holding the whole batch");
        }
    }
    fputs("</svg>\n", file);
}
