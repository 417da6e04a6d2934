/*
 * Prints a profile. The table lists the kinds of parts and, below each, the layers that took most of it. A bar for each worker
 * shows the same in proportion. Two profiles are compared by the time per sample, since that is what a batch size changes.
 */
#include "cli/profile.h"

#include <stdlib.h>
#include <string.h>

enum { BAR = 60, MOST_LAYERS = 6 };

/* Each kind has a letter for the bars, and a reason why it costs a sample more in a smaller batch. */
static const struct {
    char letter;
    const char *reason;
} KINDS[CLI_PART_KINDS] = {
    [BW_PART_DATA] = {'D', "the samples come no faster than they are read or made"},
    [BW_PART_GATHER] = {'g', "rows are brought together in smaller tiles"},
    [BW_PART_FORWARD] = {'f', "a tile with fewer samples uses the weights that it loads less often"},
    [BW_PART_LOSS] = {'l', "each tile pays for its losses and metrics"},
    [BW_PART_BACKWARD] = {'b', "a tile with fewer samples uses the weights that it loads less often"},
    [BW_PART_PREPARE] = {'p', "weights are rearranged once per update, whatever the batch size"},
    [BW_PART_REDUCE] = {'r', "gradients are added once per update, whatever the batch size"},
    [BW_PART_UPDATE] = {'u', "the optimizer goes over all weights once per update, whatever the batch size"},
    [BW_PART_CALLBACKS] = {'c', "callbacks run once per update, whatever the batch size"},
    [BW_PART_RANKS] = {'n', "ranks meet once per update, whatever the batch size"},
    [BW_PART_IDLE] = {'.', "a small batch has too few tiles to keep every worker busy, and the workers wait for each other"},
    [BW_PART_OVERHEAD] = {'o', "every update and every tile has a fixed cost"},
};

/* ---- Taking it out of a history ------------------------------------------------------------------------- */

bool cli_profile_take(cli_profile *made, const bw_history *history, const bw_machine *machine)
{
    bw_profile_facts facts = bw_history_profile(history);
    size_t parts = (size_t)facts.parts, workers = (size_t)facts.workers;
    *made =
        (cli_profile){.facts = facts, .run = bw_history_facts(history), .machine = machine ? *machine : (bw_machine){.cores = 0}};
    if (parts == 0) {
        return false;
    }
    made->parts = calloc(parts, sizeof *made->parts);
    made->seconds = calloc(parts * workers, sizeof *made->seconds);
    if (!made->parts || !made->seconds) {
        cli_profile_free(made);
        return false;
    }
    for (size_t k = 0; k < parts; k++) {
        (void)bw_history_part(history, (int)k, &made->parts[k]);
        for (size_t worker = 0; worker < workers; worker++) {
            made->seconds[k * workers + worker] = bw_history_part_seconds(history, (int)k, (int)worker);
        }
    }
    cli_profile_find_gaps(made, history);
    return true;
}

void cli_profile_free(cli_profile *made)
{
    free(made->parts);
    free(made->seconds);
    *made = (cli_profile){0};
}

double cli_profile_kind(const cli_profile *made, int kind, int worker)
{
    double sum = 0;
    for (int k = 0; k < made->facts.parts; k++) {
        for (int w = 0; w < made->facts.workers; w++) {
            bool counts = (int)made->parts[k].kind == kind && (worker < 0 || worker == w);
            sum += counts ? made->seconds[k * made->facts.workers + w] : 0;
        }
    }
    return sum;
}

double cli_profile_busy(const cli_profile *made, int worker)
{
    double all = made->facts.step_seconds * (worker < 0 ? made->facts.workers : 1);
    double lost = cli_profile_kind(made, BW_PART_DATA, worker) + cli_profile_kind(made, BW_PART_IDLE, worker) +
                  cli_profile_kind(made, BW_PART_OVERHEAD, worker) + cli_profile_kind(made, BW_PART_RANKS, worker);
    return all > 0 ? 1 - lost / all : 0;
}

/* What was asked for; the mean where that is not one number. */
static double batch_of(const cli_profile *made)
{
    return made->batch > 0 ? (double)made->batch : made->facts.samples;
}

/* ---- The table ------------------------------------------------------------------------------------------ */

/* Cores that work at the same time share what all of them can do together. */
static double worker_limit(int workers, double core, double all)
{
    return core * workers < all ? core : all / workers;
}

double cli_profile_flops_limit(const cli_profile *made)
{
    return worker_limit(made->facts.workers, made->machine.core_flops, made->machine.flops);
}

double cli_profile_bytes_limit(const cli_profile *made)
{
    return worker_limit(made->facts.workers, made->machine.core_bandwidth, made->machine.bandwidth);
}

static int by_seconds(const void *a, const void *b)
{
    double x = (*(const bw_part *const *)a)->seconds, y = (*(const bw_part *const *)b)->seconds;
    return x < y ? 1 : x > y ? -1 : 0;
}

/* Prints a rate in billions, and its share of what a worker can do at best. */
static void print_rate(double amount, double seconds, double limit)
{
    if (amount > 0 && seconds > 0) {
        printf(" %8.2f %4.0f%%", amount / seconds * 1e-9, 100 * amount / seconds / limit);
    } else {
        printf(" %8s %5s", "", "");
    }
}

static void print_rates(const cli_profile *made, const bw_part *part)
{
    if (part->flops > 0 || part->bytes > 0) {
        print_rate(part->flops, part->seconds, cli_profile_flops_limit(made));
        print_rate(part->bytes, part->seconds, cli_profile_bytes_limit(made));
    }
}

static void print_layer(const cli_profile *made, const bw_part *part)
{
    double all = made->facts.step_seconds * made->facts.workers;
    if (part->seconds < 0.001 * all) {
        return;
    }
    fputs("    ", stdout);
    cli_print_name(stdout, part->name, -24);
    printf(" %-18s %11.2f %6.1f%% %8.1f", part->pass, part->seconds * 1e6, 100 * part->seconds / all, part->calls);
    print_rates(made, part);
    putchar('\n');
}

/* Prints a kind, and the layers that take most of it. */
static void print_kind(const cli_profile *made, int kind, const bw_part **list)
{
    double all = made->facts.step_seconds * made->facts.workers, seconds = cli_profile_kind(made, kind, -1);
    int count = 0;
    if (seconds <= 0) {
        return;
    }
    const bw_part *alone = NULL; /* the part of a kind that is no layer's */
    for (int k = 0; k < made->facts.parts; k++) {
        if ((int)made->parts[k].kind == kind && made->parts[k].name[0]) {
            list[count++] = &made->parts[k];
        } else if ((int)made->parts[k].kind == kind) {
            alone = &made->parts[k];
        }
    }
    printf("%-48s %10.2f %6.1f%%", bw_part_kind_name((bw_part_kind)kind), seconds * 1e6, 100 * seconds / all);
    if (alone && (alone->flops > 0 || alone->bytes > 0)) {
        printf(" %8.1f", alone->calls);
        print_rates(made, alone);
    }
    putchar('\n');
    qsort(list, (size_t)count, sizeof *list, by_seconds);
    for (int k = 0; k < count && k < MOST_LAYERS; k++) {
        print_layer(made, list[k]);
    }
}

/* ---- Bars ----------------------------------------------------------------------------------------------- */

/* Gives each kind its share of the bar, rounded so that the whole bar is filled. */
static void print_bar(const cli_profile *made, int worker)
{
    double sum = 0;
    int drawn = 0;
    printf("worker %-3d |", worker);
    for (int kind = 0; kind < CLI_PART_KINDS; kind++) {
        sum += cli_profile_kind(made, kind, worker) / made->facts.step_seconds * BAR;
        for (; drawn < (int)(sum + 0.5) && drawn < BAR; drawn++) {
            putchar(KINDS[kind].letter);
        }
    }
    printf("| computes %.0f%% of the time\n", 100 * cli_profile_busy(made, worker));
}

static void print_gaps(const cli_profile *made)
{
    for (int k = 0; k < CLI_GAPS && made->gaps[k].worker >= 0; k++) {
        const cli_gap *gap = &made->gaps[k];
        printf("%s worker %d idle for %.1f us", k == 0 ? "Longest gaps:" : "             ", gap->worker, gap->seconds * 1e6);
        if (gap->part >= 0) {
            const bw_part *part = &made->parts[gap->part];
            printf(", waiting for worker %d: ", gap->other);
            const char *name = part->name[0] ? part->name : bw_part_kind_name(part->kind);
            cli_print_name(stdout, name, -cli_name_width(name, (int)sizeof part->name));
            printf("%s%s", part->pass[0] ? " " : "", part->pass);
        } else {
            fputs(", while no worker computed: the threads themselves waited for a CPU, or to be woken", stdout);
        }
        putchar('\n');
    }
    if (made->gaps[0].worker >= 0) {
        putchar('\n');
    }
}

/* Says what the shares are shares of. Both can exceed 100 percent, for reasons that are not obvious. */
static void print_limits(const cli_profile *made)
{
    const bw_machine *m = &made->machine;
    printf("\nThe percentages are of what a worker can do here%s: %.1f GFLOP/s, %.1f GB/s of memory.\n",
           made->facts.workers > 1 ? " while the others work too" : "", cli_profile_flops_limit(made) * 1e-9,
           cli_profile_bytes_limit(made) * 1e-9);
    puts(
        "Operations are counted by definition, which Winograd's algorithm beats; bytes may come from caches, which memory does not "
        "limit.");
    printf("This machine, %s, %d core%s, %s: %.1f GFLOP/s, %.1f GB/s%s.\n\n", m->cpu, m->cores, m->cores == 1 ? "" : "s",
           m->instruction_set, m->flops * 1e-9, m->bandwidth * 1e-9,
           m->busy ? ", or more: other programs ran while this was measured" : "");
}

/* The last batch of an epoch may be smaller, so that a mean step has fewer samples than the batch that was asked for. */
static void print_sentence(const cli_profile *made)
{
    const bw_profile_facts *f = &made->facts;
    if (made->batch > 0) {
        printf("A step of %lld samples takes %.4g us: ", (long long)made->batch, f->step_seconds * 1e6);
    } else {
        printf("A step of %.4g samples takes %.4g us: ", f->samples, f->step_seconds * 1e6);
    }
    printf("%.0f samples/s on %d worker%s (tile %lld, %d lane%s).\n", f->samples / f->step_seconds, f->workers,
           f->workers == 1 ? "" : "s", (long long)made->run.tile, made->run.lanes, made->run.lanes == 1 ? "" : "s");
    if (made->batch > 0 && f->samples < (double)made->batch * (1 - 1e-9)) {
        printf("A mean step has %.4g samples, since the last batch of an epoch is smaller.\n", f->samples);
    }
    printf("%lld of %lld step%s %s timed.\n\n", (long long)f->timed_steps, (long long)f->steps, cli_plural(f->steps),
           f->timed_steps == 1 ? "was" : "were");
}

static void print_bars(const cli_profile *made)
{
    for (int worker = 0; worker < made->facts.workers; worker++) {
        print_bar(made, worker);
    }
    fputs("           ", stdout);
    for (int kind = 0; kind < CLI_PART_KINDS; kind++) {
        if (cli_profile_kind(made, kind, -1) > 0) {
            printf(" %c %s", KINDS[kind].letter, bw_part_kind_name((bw_part_kind)kind));
        }
    }
    puts("\n");
}

/* Prints the most important sentence first, then the details. */
void cli_profile_print(const cli_profile *made)
{
    const bw_part **list = calloc((size_t)made->facts.parts, sizeof *list);
    if (!list) {
        return;
    }
    print_sentence(made);
    printf("%-48s %10s %7s %8s %8s %5s %8s %5s\n", "part (all workers)", "us a step", "share", "calls", "GFLOP/s", "of", "GB/s",
           "of");
    for (int kind = 0; kind < CLI_PART_KINDS; kind++) {
        print_kind(made, kind, list);
    }
    print_limits(made);
    print_bars(made);
    print_gaps(made);
    if (made->other.size > 0) {
        cli_what_if_print(made);
    }
    free(list);
}

void cli_profile_print_short(const bw_history *history)
{
    cli_profile made;
    if (!cli_profile_take(&made, history, NULL)) {
        return;
    }
    double all = made.facts.step_seconds * made.facts.workers;
    print_sentence(&made);
    printf("%-16s %10s %7s\n", "part", "us a step", "share");
    for (int kind = 0; kind < CLI_PART_KINDS; kind++) {
        double seconds = cli_profile_kind(&made, kind, -1);
        if (seconds > 0) {
            printf("%-16s %10.2f %6.1f%%\n", bw_part_kind_name((bw_part_kind)kind), seconds * 1e6, 100 * seconds / all);
        }
    }
    putchar('\n');
    print_bars(&made);
    cli_profile_free(&made);
}

/* ---- Two batch sizes ------------------------------------------------------------------------------------ */

/* Returns the worker time per sample: the seconds of a step, summed over workers, divided by its samples. */
static double per_sample(const cli_profile *made, int kind)
{
    return cli_profile_kind(made, kind, -1) / made->facts.samples;
}

/* Attributes the additional time per sample of the slower profile to kinds of parts, the largest first; those that account for
 * less than 3 percent are left out. */
void cli_profile_compare(const cli_profile *a, const cli_profile *b)
{
    double of_a = a->facts.step_seconds / a->facts.samples, of_b = b->facts.step_seconds / b->facts.samples;
    const cli_profile *slow = of_a > of_b ? a : b, *quick = of_a > of_b ? b : a;
    double more = (of_a > of_b ? of_a - of_b : of_b - of_a) * slow->facts.workers;
    printf("At batch %.12g a sample takes %.3f us, at batch %.12g %.3f us: %.2f times as long.\n", batch_of(slow),
           slow->facts.step_seconds / slow->facts.samples * 1e6, batch_of(quick),
           quick->facts.step_seconds / quick->facts.samples * 1e6,
           slow->facts.step_seconds / slow->facts.samples * quick->facts.samples / quick->facts.step_seconds);
    if (more <= 0) {
        return;
    }
    for (bool shown[CLI_PART_KINDS] = {false};;) {
        int largest = -1;
        for (int kind = 0; kind < CLI_PART_KINDS; kind++) {
            double difference = per_sample(slow, kind) - per_sample(quick, kind);
            if (!shown[kind] && difference > 0.03 * more &&
                (largest < 0 || difference > per_sample(slow, largest) - per_sample(quick, largest))) {
                largest = kind;
            }
        }
        if (largest < 0) {
            return;
        }
        shown[largest] = true;
        printf("  %3.0f%% of the difference is %s (%.3f us a sample instead of %.3f%s): %s.\n",
               100 * (per_sample(slow, largest) - per_sample(quick, largest)) / more, bw_part_kind_name((bw_part_kind)largest),
               per_sample(slow, largest) * 1e6, per_sample(quick, largest) * 1e6,
               slow->facts.workers > 1 ? ", all workers together" : "",
               slow->facts.samples < quick->facts.samples ? KINDS[largest].reason : "it grows with the batch size");
    }
}

/* ---- JSON ----------------------------------------------------------------------------------------------- */

/* In the units that people use; rates of one core, then of all. */
static void put_machine(cli_json *json, const bw_machine *m)
{
    cli_json_object(json, "machine");
    cli_json_text(json, "cpu", m->cpu);
    cli_json_text(json, "instruction_set", m->instruction_set);
    cli_json_whole(json, "cores", m->cores);
    cli_json_real(json, "core_gflops", m->core_flops * 1e-9);
    cli_json_real(json, "gflops", m->flops * 1e-9);
    cli_json_real(json, "core_gb_per_s", m->core_bandwidth * 1e-9);
    cli_json_real(json, "gb_per_s", m->bandwidth * 1e-9);
    cli_json_real(json, "core_cache_gb_per_s", m->cache_bandwidth * 1e-9);
    cli_json_real(json, "exchange_gb_per_s", m->exchange_bandwidth * 1e-9);
    cli_json_real(json, "meeting_us", m->meeting_seconds * 1e6);
    cli_json_array(json, "growth");
    for (int k = 0; k < m->growths; k++) {
        cli_json_object(json, NULL);
        cli_json_whole(json, "cores", m->growth[k].cores);
        cli_json_rounded(json, "compute", m->growth[k].compute);
        cli_json_rounded(json, "bandwidth", m->growth[k].bandwidth);
        cli_json_object_end(json);
    }
    cli_json_array_end(json);
    cli_json_truth(json, "busy", m->busy);
    cli_json_object_end(json);
}

/* Shares of what a worker can do at best. */
static void put_shares(cli_json *json, const cli_profile *made, const bw_part *part)
{
    double seconds = part->seconds;
    cli_json_real(json, "of_peak", seconds > 0 ? part->flops / seconds / cli_profile_flops_limit(made) : 0);
    cli_json_real(json, "of_memory", seconds > 0 ? part->bytes / seconds / cli_profile_bytes_limit(made) : 0);
}

/* Kinds of parts are keys, so that a reader finds "data wait" in every model; layers are a list, since names may repeat. */
void cli_profile_members(cli_json *json, const cli_profile *made)
{
    if (made->batch > 0) {
        cli_json_whole(json, "batch", made->batch);
    } else {
        cli_json_real(json, "batch", made->facts.samples);
    }
    cli_json_real(json, "samples_per_step", made->facts.samples);
    cli_json_real(json, "step_us", made->facts.step_seconds * 1e6);
    cli_json_real(json, "samples_per_s", made->facts.samples / made->facts.step_seconds);
    cli_json_whole(json, "steps", made->facts.steps);
    cli_json_whole(json, "timed_steps", made->facts.timed_steps);
    cli_json_whole(json, "workers", made->facts.workers);
    cli_json_whole(json, "tile", made->run.tile);
    cli_json_whole(json, "lanes", made->run.lanes);
    if (made->machine.cores > 0) {
        put_machine(json, &made->machine);
    }
    if (made->other.size > 0) {
        cli_what_if_put(json, made);
    }
    cli_json_object(json, "parts"); /* microseconds per step, summed over workers */
    for (int kind = 0; kind < CLI_PART_KINDS; kind++) {
        cli_json_real(json, bw_part_kind_name((bw_part_kind)kind), cli_profile_kind(made, kind, -1) * 1e6);
    }
    cli_json_object_end(json);
    cli_json_array(json, "utilisation");
    for (int worker = 0; worker < made->facts.workers; worker++) {
        cli_json_real(json, NULL, cli_profile_busy(made, worker));
    }
    cli_json_array_end(json);
    cli_json_array(json, "gaps");
    for (int k = 0; k < CLI_GAPS && made->gaps[k].worker >= 0; k++) {
        const cli_gap *gap = &made->gaps[k];
        const bw_part *part = gap->part >= 0 ? &made->parts[gap->part] : NULL;
        cli_json_object(json, NULL);
        cli_json_whole(json, "worker", gap->worker);
        cli_json_real(json, "us", gap->seconds * 1e6);
        cli_json_text(json, "waits_for", !part ? NULL : part->name[0] ? part->name : bw_part_kind_name(part->kind));
        cli_json_object_end(json);
    }
    cli_json_array_end(json);
    cli_json_array(json, "ops");
    for (int k = 0; k < made->facts.parts; k++) {
        const bw_part *part = &made->parts[k];
        if (part->name[0] || part->bytes > 0) {
            cli_json_object(json, NULL);
            cli_json_text(json, "layer", part->name[0] ? part->name : NULL);
            cli_json_text(json, "op", part->op);
            cli_json_text(json, "pass", part->pass);
            cli_json_text(json, "kind", bw_part_kind_name(part->kind));
            cli_json_real(json, "us", part->seconds * 1e6);
            cli_json_real(json, "calls", part->calls);
            cli_json_real(json, "gflops", part->seconds > 0 ? part->flops / part->seconds * 1e-9 : 0);
            cli_json_real(json, "gb_per_s", part->seconds > 0 ? part->bytes / part->seconds * 1e-9 : 0);
            if (made->machine.cores > 0) {
                put_shares(json, made, part);
            }
            cli_json_object_end(json);
        }
    }
    cli_json_array_end(json);
}

void cli_profile_json(const cli_profile *made, int count)
{
    cli_json json = {.file = stdout};
    if (count > 1) {
        cli_json_object(&json, NULL);
        cli_json_array(&json, "compared");
    }
    for (int k = 0; k < count; k++) {
        cli_json_object(&json, NULL);
        cli_profile_members(&json, &made[k]);
        cli_json_object_end(&json);
    }
    if (count > 1) {
        cli_json_array_end(&json);
        cli_json_object_end(&json);
    }
    putchar('\n');
}
