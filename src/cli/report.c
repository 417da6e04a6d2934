/* Writes the report of a run: one HTML page that follows the reader's light or dark theme and loads nothing from elsewhere. */
#include "cli/report.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { MOST_PLANS = 3 };

typedef struct page {
    const cli_result *result;
    cli_confusion confusion; /* of the validation samples; `counts` is NULL if there is none */
    bw_memory_facts plans[MOST_PLANS];
    int plan_count; /* the first is for the run's batch size */
} page;

static const char style[] =
    "<style>\n"
    ":root{--back:#f6f7f9;--card:#fff;--text:#1c2430;--soft:#667085;--line:#e4e7ec;--one:#2563eb;--two:#ea7317;--good:37,99,235;"
    "--bad:220,38,38}\n"
    "@media(prefers-color-scheme:dark){:root{--back:#0f1420;--card:#171e2c;--text:#e6eaf2;--soft:#93a0b5;--line:#2a3446;--one:#"
    "6ea8fe;"
    "--two:#ffa94d;--good:110,168,254;--bad:248,113,113}}\n"
    "*{box-sizing:border-box}body{margin:0;background:var(--back);color:var(--text);font:15px/1.5 system-ui,-apple-system,'Segoe "
    "UI',"
    "Roboto,sans-serif}main{max-width:1000px;margin:0 auto;padding:36px 20px 60px}h1{font-size:28px;margin:0 0 "
    "4px;letter-spacing:-.01em}"
    "h2{font-size:17px;margin:0 0 14px}p{margin:0 0 12px}.soft{color:var(--soft)}code{font:13px/1.5 "
    "ui-monospace,Menlo,Consolas,monospace;"
    "overflow-wrap:anywhere}\n"
    "section{background:var(--card);border:1px solid var(--line);border-radius:12px;padding:20px;margin-top:18px}"
    ".facts{display:grid;grid-template-columns:repeat(auto-fit,minmax(140px,1fr));gap:12px;margin-top:20px}.facts "
    "div{background:var(--card);"
    "border:1px solid var(--line);border-radius:12px;padding:14px 16px}.facts b{display:block;font-size:23px;letter-spacing:-.01em}"
    ".facts span{color:var(--soft);font-size:13px}\n"
    ".charts{display:grid;grid-template-columns:repeat(auto-fit,minmax(340px,1fr));gap:20px}figure{margin:0}figcaption{font-weight:"
    "600;"
    "margin-bottom:6px}svg{display:block;width:100%;height:auto}.grid{stroke:var(--line)}.tick{fill:var(--soft);font-size:12px}"
    ".name{fill:var(--text);font-size:14px;font-weight:600}polyline{fill:none;stroke-width:2;stroke-linejoin:round}"
    "polyline.training{stroke:var(--one)}polyline.validation{stroke:var(--two)}circle.training{fill:var(--one)}circle.validation{"
    "fill:"
    "var(--two)}.key{font-weight:400;font-size:13px;color:var(--soft);margin-left:10px}.key::before{content:'';display:inline-"
    "block;"
    "width:14px;height:3px;border-radius:2px;margin-right:5px;vertical-align:middle}.key.training::before{background:var(--one)}"
    ".key.validation::before{background:var(--two)}\n"
    ".ours{fill:var(--one)}.theirs{fill:var(--two);opacity:.75}.items{list-style:none;display:flex;flex-wrap:wrap;gap:4px "
    "22px;padding:0;"
    "margin:12px 0 22px;font-size:13px;color:var(--soft)}.items "
    "b{color:var(--text);font-weight:600}.box{display:inline-block;width:10px;"
    "height:10px;border-radius:3px;margin-right:6px}";

static const char table_style[] =
    "\n.wide{overflow-x:auto}table{border-collapse:separate;border-spacing:3px;font-variant-numeric:tabular-nums}th{font-weight:"
    "500;font-size:"
    "13px;color:var(--soft);padding:2px "
    "8px;text-align:right;white-space:nowrap}td{min-width:42px;height:34px;text-align:center;border-radius:"
    "6px;font-size:13px}td.side{color:var(--soft)}footer{margin-top:22px;color:var(--soft);font-size:13px}\n";

/* Defines a colour for each item of a plan, spread around the colour circle. */
static void put_item_colours(FILE *file)
{
    for (int i = 0; i < BW_PLAN_ITEMS; i++) {
        int hue = (215 + i * 137) % 360;
        fprintf(file, ".item%d{fill:hsl(%d 62%% 56%%);background:hsl(%d 62%% 56%%)}", i, hue, hue);
    }
    fputs("\n</style>\n", file);
}

static void put_title(FILE *file, const cli_run *run)
{
    const char *slash = strrchr(run->data, '/');
    if (!run->title) {
        fputs("Training on ", file);
    }
    cli_html_text(file, run->title ? run->title : slash && slash[1] != 0 ? slash + 1 : run->data);
}

static void put_about(FILE *file, const cli_result *result)
{
    if (result->run.about) {
        cli_html_text(file, result->run.about);
        return;
    }
    fprintf(file, "%d of %d epoch%s, %" PRId64 " sample%s in the data%s%s", bw_history_epochs(result->history), result->epochs,
            cli_plural(result->epochs), bw_dataset_count(result->training), cli_plural(bw_dataset_count(result->training)),
            result->stopped ? "; ended by " : "",
            !result->stopped                              ? ""
            : strcmp(result->stopped, "interrupted") == 0 ? "an interruption"
            : strcmp(result->stopped, "failed") == 0      ? "a failure"
                                                          : result->stopped);
}

static void put_head(FILE *file, const cli_result *result)
{
    fputs("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
          "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>",
          file);
    put_title(file, &result->run);
    fputs("</title>\n", file);
    fputs(style, file);
    fputs(table_style, file);
    put_item_colours(file);
    fputs("</head>\n<body>\n<main>\n<h1>", file);
    put_title(file, &result->run);
    fputs("</h1>\n<p class=\"soft\">", file);
    put_about(file, result);
    fputs("</p>\n", file);
}

/* ---- Facts ---------------------------------------------------------------------------------------------- */

static void put_fact(FILE *file, const char *value, const char *name)
{
    fputs("<div><b>", file);
    cli_html_text(file, value);
    fputs("</b><span>", file);
    cli_html_text(file, name);
    fputs("</span></div>\n", file);
}

static void put_share(FILE *file, const bw_history *history, const char *column, const char *name)
{
    char text[32];
    double value = bw_history_last(history, column);
    if (isfinite(value)) {
        snprintf(text, sizeof text, "%.2f %%", 100 * value);
        put_fact(file, text, name);
    }
}

static void put_facts(FILE *file, const cli_result *result)
{
    const bw_history *history = result->history;
    bw_run_facts facts = bw_history_facts(history);
    char text[64];
    fputs("<div class=\"facts\">\n", file);
    put_share(file, history, "val_accuracy", "accuracy on validation samples");
    put_share(file, history, "accuracy", "accuracy on training samples");
    put_fact(file, cli_seconds_text(text, facts.seconds), "training time");
    snprintf(text, sizeof text, "%.0f", cli_result_speed(result));
    put_fact(file, text, "samples per second");
    put_fact(file, cli_bytes_text(text, facts.peak_bytes), "peak memory");
    fputs("</div>\n", file);
}

static void put_model(FILE *file, bw_model *model)
{
    bw_model_facts facts;
    const char *expression = bw_model_expression(model);
    if (bw_model_describe(model, &facts) != BW_OK) { /* clears a failure that the expression left */
        expression = NULL;
    }
    fputs("<section><h2>Model</h2>\n", file);
    if (expression) {
        fputs("<p><code>", file);
        cli_html_text(file, expression);
        fputs("</code></p>\n", file);
    }
    fprintf(file,
            "<p class=\"soft\">%" PRId64 " parameters; weights %016" PRIx64 ", the same on any number of workers</p></section>\n",
            facts.trainable + facts.non_trainable, bw_model_hash(model));
}

/* ---- Curves and memory ---------------------------------------------------------------------------------- */

static void put_curves(FILE *file, const bw_history *history)
{
    if (bw_history_epochs(history) == 0) {
        return;
    }
    fputs("<section><h2>Learning</h2>\n<div class=\"charts\">\n", file);
    for (int losses = 1; losses >= 0; losses--) {
        for (int c = 0; c < bw_history_columns(history); c++) {
            const char *name = bw_history_column(history, c);
            if (strncmp(name, "val_", 4) != 0 && (strcmp(name, "loss") == 0) == (losses == 1)) {
                cli_chart_lines(file, history, name);
            }
        }
    }
    fputs("</div></section>\n", file);
}

static void put_memory(FILE *file, const page *p)
{
    char planned[CLI_BYTES_TEXT], measured[CLI_BYTES_TEXT];
    bw_run_facts facts = bw_history_facts(p->result->history);
    if (p->plan_count == 0) {
        return;
    }
    fprintf(file, "<section><h2>Memory</h2>\n<p>Planned before the first step: %s. Measured: %s.</p>\n",
            cli_bytes_text(planned, facts.planned_bytes), cli_bytes_text(measured, facts.peak_bytes));
    cli_chart_items(file, &p->plans[0]);
    fputs("<p>A batch is cut into tiles, so memory does not grow with it. Below is what a system needs that takes the whole batch "
          "through each layer.</p>\n",
          file);
    cli_chart_batches(file, p->plans, p->plan_count);
    if (p->plans[0].whole_batch_bytes < p->plans[0].peak_bytes && cli_tables_bytes(&p->plans[0]) > p->plans[0].peak_bytes / 2) {
        fprintf(file,
                "<p>That is weights, slots and values alone. Of the plan %s are tables and scratch memory, which such a system has "
                "too, and which do not grow with the batch.</p>\n",
                cli_bytes_text(measured, cli_tables_bytes(&p->plans[0])));
    }
    fputs("</section>\n", file);
}

/* ---- The confusion matrix ------------------------------------------------------------------------------- */

static void put_percent(FILE *file, double share)
{
    if (isnan(share)) {
        fputs("<td class=\"side\">-</td>", file);
    } else {
        fprintf(file, "<td class=\"side\">%.1f</td>", 100 * share);
    }
}

static void put_name(FILE *file, const cli_confusion *confusion, int number)
{
    char text[CLI_CLASS_TEXT];
    fputs("<th>", file);
    cli_html_text(file, cli_class_name(text, confusion->model, confusion->dataset, number));
    fputs("</th>", file);
}

static void put_row(FILE *file, const cli_confusion *confusion, int row)
{
    const int64_t *counts = confusion->counts + (size_t)row * (size_t)confusion->classes;
    int64_t all = 0;
    for (int j = 0; j < confusion->classes; j++) {
        all += counts[j];
    }
    fputs("<tr>", file);
    put_name(file, confusion, row);
    for (int j = 0; j < confusion->classes; j++) {
        double share = all > 0 ? (double)counts[j] / (double)all : 0;
        double depth = counts[j] == 0 ? 0.04 : row == j ? 0.12 + 0.6 * share : 0.25 + 0.7 * share;
        fprintf(file, "<td style=\"background:rgba(var(--%s),%.2f)\">", row == j || counts[j] == 0 ? "good" : "bad", depth);
        if (counts[j] > 0) {
            fprintf(file, "%" PRId64, counts[j]);
        }
        fputs("</td>", file);
    }
    put_percent(file, cli_confusion_recall(confusion, row));
    fputs("</tr>\n", file);
}

/* A table of more classes than this would be unreadable. */
static void put_confusion(FILE *file, const cli_confusion *confusion)
{
    enum { MOST_SHOWN = 40 };
    if (!confusion->counts || confusion->classes > MOST_SHOWN) {
        return;
    }
    fputs("<section><h2>Confusion matrix</h2>\n<p class=\"soft\">Validation samples: a row for each true class, a column for "
          "each "
          "predicted one; recall and precision in percent.</p>\n<div class=\"wide\"><table>\n<tr><th></th>",
          file);
    for (int j = 0; j < confusion->classes; j++) {
        put_name(file, confusion, j);
    }
    fputs("<th>recall</th></tr>\n", file);
    for (int i = 0; i < confusion->classes; i++) {
        put_row(file, confusion, i);
    }
    fputs("<tr><th>precision</th>", file);
    for (int j = 0; j < confusion->classes; j++) {
        put_percent(file, cli_confusion_precision(confusion, j));
    }
    fputs("</tr>\n</table></div></section>\n", file);
}

/* ---- The page ------------------------------------------------------------------------------------------- */

static void put_footer(FILE *file, const cli_result *result)
{
    bw_run_facts facts = bw_history_facts(result->history);
    fprintf(file,
            "<footer>Batchwise %s, seed %" PRIu64 ", %" PRId64 " step%s, tiles of %" PRId64
            " sample%s, %d lane%s, %d worker%s.</footer>\n",
            bw_version(), result->run.seed, facts.updates, facts.updates == 1 ? "" : "s", facts.tile, facts.tile == 1 ? "" : "s",
            facts.lanes, facts.lanes == 1 ? "" : "s", facts.workers, facts.workers == 1 ? "" : "s");
}

/* Plans for the run's batch size first, then for larger ones, in the same memory. If a plan fails, the page shows less, which is
 * not a failure of the run: bw_model_describe clears the pending one. */
static void make_plans(page *p)
{
    const cli_result *result = p->result;
    int64_t samples = bw_dataset_count(result->training), own = result->batch < samples ? result->batch : samples;
    const int64_t batches[MOST_PLANS] = {own, own <= samples / 8 ? 8 * own : samples, samples};
    for (int i = 0; i < MOST_PLANS; i++) {
        bw_plan *plan = i > 0 && batches[i] == batches[i - 1]
                            ? NULL
                            : bw_plan_make(result->model, result->training, batches[i], &result->planning);
        if (plan) {
            p->plans[p->plan_count++] = bw_plan_facts(plan);
            bw_plan_free(plan);
        }
    }
    bw_model_facts facts;
    (void)bw_model_describe(result->model, &facts);
}

bool cli_report_write(const cli_result *result, const char *path)
{
    cli_output output;
    page p = {.result = result};
    bool ended = !result->stopped || strcmp(result->stopped, "early stopping") == 0;
    if (ended && result->validation && !cli_confusion_make(&p.confusion, result->ctx, result->model, result->validation)) {
        return false;
    }
    if (!cli_output_open(&output, path)) {
        cli_confusion_free(&p.confusion);
        return false;
    }
    make_plans(&p);
    put_head(output.file, result);
    put_facts(output.file, result);
    put_curves(output.file, result->history);
    put_confusion(output.file, &p.confusion);
    put_memory(output.file, &p);
    put_model(output.file, result->model);
    put_footer(output.file, result);
    fputs("</main>\n</body>\n</html>\n", output.file);
    cli_confusion_free(&p.confusion);
    return cli_output_commit(&output);
}
