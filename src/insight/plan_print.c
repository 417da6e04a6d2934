/* Prints a plan as tables: the items with bars, the memory of a whole batch for comparison, and the layers. */
#include "insight/internal.h"

#include <string.h>

enum { BAR = 24, SHAPE_TEXT = 160 };

enum { BAR_TEXT = 2 + 3 * BAR + 1 };

/* Makes two blanks and a bar, which has BAR blocks for `most` and at least one for anything but zero; "" for zero. */
static const char *bar(char text[BAR_TEXT], size_t bytes, size_t most)
{
    int blocks = most ? (int)((double)bytes / (double)most * BAR + 0.5) : 0;
    blocks = bytes && blocks < 1 ? 1 : blocks;
    int at = blocks ? snprintf(text, BAR_TEXT, "  ") : 0;
    for (int k = 0; k < blocks; k++, at += 3) {
        memcpy(text + at, "━", 3);
    }
    text[at] = '\0';
    return text;
}

static const char *shape_text(char text[SHAPE_TEXT], const bw_layer_memory *facts)
{
    int at = 0;
    text[0] = '\0';
    for (int i = 0; i < facts->ndim && at < SHAPE_TEXT - 24; i++) {
        at += snprintf(text + at, (size_t)(SHAPE_TEXT - at), "%s%lld", i ? "x" : "", (long long)facts->shape[i]);
    }
    return facts->ndim ? text : "1";
}

/* Formats bytes; "-" for zero. */
static const char *cell(char text[32], size_t bytes)
{
    if (bytes == 0) {
        return "-";
    }
    return bwi_format_bytes(text, bytes);
}

static void print_items(const bw_plan *plan, FILE *file)
{
    const bw_memory_facts *facts = &plan->facts;
    char bytes[32], drawn[BAR_TEXT];
    size_t most = 0;
    for (int k = 0; k < BW_PLAN_ITEMS; k++) {
        most = facts->items[k] > most ? facts->items[k] : most;
    }
    for (int k = 0; k < BW_PLAN_ITEMS; k++) {
        if (facts->items[k]) {
            fprintf(file, "  %-14s %10s%s\n", bw_plan_item_name((bw_plan_item)k), bwi_format_bytes(bytes, facts->items[k]),
                    bar(drawn, facts->items[k], most));
        }
    }
}

/* Of a tiny model the tables are nearly all there is, while the figure for a whole batch has none: that is said. */
static void print_sums(const bw_plan *plan, FILE *file)
{
    const bw_memory_facts *facts = &plan->facts;
    char bytes[32], budget[32], drawn[BAR_TEXT];
    size_t most = facts->peak_bytes > facts->whole_batch_bytes ? facts->peak_bytes : facts->whole_batch_bytes;
    fprintf(file, "  %-14s %10s%s\n", "together", bwi_format_bytes(bytes, facts->peak_bytes), bar(drawn, facts->peak_bytes, most));
    fprintf(file, "  %-14s %10s%s\n", "whole batch", bwi_format_bytes(bytes, facts->whole_batch_bytes),
            bar(drawn, facts->whole_batch_bytes, most));
    size_t tables = facts->items[BW_PLAN_BOOKKEEPING] + facts->items[BW_PLAN_SCRATCH];
    if (facts->whole_batch_bytes < facts->peak_bytes && tables > facts->peak_bytes / 2) { /* the comparison would be unfair */
        fprintf(file,
                "The whole batch is counted without tables and buffers, which are %s here (bookkeeping, scratch) and do not grow "
                "with the batch.\n",
                bwi_format_bytes(bytes, tables));
    }
    if (facts->segments > 1) {
        fprintf(file, "Activations are recomputed in %d segments.\n", facts->segments);
    }
    if (facts->spill_bytes) {
        fprintf(file, "What whole-batch layers keep beyond the budget goes to a file of %s.\n",
                bwi_format_bytes(bytes, facts->spill_bytes));
    }
    fprintf(file, "A system that holds the whole batch fits at most %lld samples in %s, not counting its process.\n",
            (long long)facts->whole_batch_largest, bwi_format_bytes(budget, facts->budget));
}

static void print_layers(const bw_plan *plan, FILE *file)
{
    char drawn[BAR_TEXT];
    size_t most = 0;
    int width = 5;
    for (int k = 0; k < plan->row_count; k++) {
        const bw_layer_memory *f = &plan->rows[k].facts;
        int length = (int)strlen(f->name);
        most = f->whole_batch > most ? f->whole_batch : most;
        width = length > width ? length : width;
    }
    fprintf(file, "\n  %-*s %14s %11s %11s %11s %11s  %s\n", width, "layer", "output", "parameters", "gradients", "activations",
            "workspace", "whole batch");
    for (int k = 0; k < plan->row_count; k++) {
        const bw_layer_memory *f = &plan->rows[k].facts;
        char shape[SHAPE_TEXT], cells[5][32];
        fprintf(file, "  %-*s %14s %11s %11s %11s %11s %11s%s\n", width, f->name,
                k + 1 < plan->row_count ? shape_text(shape, f) : "", cell(cells[0], f->parameters), cell(cells[1], f->gradients),
                cell(cells[2], f->activations), cell(cells[3], f->workspace), cell(cells[4], f->whole_batch),
                bar(drawn, f->whole_batch, most));
    }
}

/* Names the layer that is worth making smaller. */
static void print_largest(const bw_plan *plan, FILE *file)
{
    const bw_layer_memory *here = &plan->rows[0].facts, *there = here;
    size_t tile = 0, whole = 0;
    for (int k = 0; k < plan->row_count; k++) {
        const bw_layer_memory *f = &plan->rows[k].facts;
        tile += f->activations + f->workspace;
        whole += f->whole_batch;
        here = f->activations + f->workspace > here->activations + here->workspace ? f : here;
        there = f->whole_batch > there->whole_batch ? f : there;
    }
    if (tile && whole) {
        bwi_print_file(file, "Most bytes: of a tile %s (%.0f percent), of a whole batch %s (%.0f percent).\n", here->name,
                       100.0 * (double)(here->activations + here->workspace) / (double)tile, there->name,
                       100.0 * (double)there->whole_batch / (double)whole);
    }
}

static bw_status print(const bw_plan *plan, FILE *file)
{
    if (!file) {
        return bwi_fail(plan->ctx, BW_INVALID_ARGUMENT, "bw_plan_print: the file is NULL");
    }
    const bw_memory_facts *facts = &plan->facts;
    fprintf(file, "batch %lld: tile %lld, %d %s, %d %s, %d %s\n", (long long)facts->batch, (long long)facts->tile, facts->lanes,
            facts->lanes == 1 ? "lane" : "lanes", facts->workers, facts->workers == 1 ? "worker" : "workers", facts->phases,
            facts->phases == 1 ? "phase" : "phases");
    fprintf(file, "tile %s\n\n", plan->reason);
    print_items(plan, file);
    print_sums(plan, file);
    print_layers(plan, file);
    print_largest(plan, file);
    return ferror(file) ? bwi_fail(plan->ctx, BW_RESOURCE_EXHAUSTED, "plan: cannot write the tables") : BW_OK;
}

bw_status bw_plan_print(const bw_plan *plan, FILE *file)
{
    bw_status status = plan ? bwi_call_begin(plan->ctx) : BW_INVALID_ARGUMENT;
    return status == BW_OK ? bwi_call_end(plan->ctx, print(plan, file)) : status;
}
