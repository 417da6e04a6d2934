/*
 * Shows a tuning: a table of the batch sizes, the predicted time to the target as bars with their intervals, what was tried, and
 * what is recommended with the reason for it.
 */
#include "cli/cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BAR = 44 };

/* ---- For people ----------------------------------------------------------------------------------------- */

/* Steps may take microseconds, which other times of the command do not. */
static const char *time_text(char *text, double seconds)
{
    if (seconds < 1e-3) {
        snprintf(text, CLI_SECONDS_TEXT, "%.*f us", seconds < 1e-5 ? 2 : 1, seconds * 1e6);
        return text;
    }
    return cli_seconds_text(text, seconds);
}

static void print_table(const bw_tuning *tuning)
{
    bw_tune_facts facts = bw_tuning_facts(tuning);
    printf("%7s %11s %10s %10s %10s %9s %11s\n", "batch", "samples/s", "step", "memory", "rate", "steps", "samples");
    for (int i = 0; i < facts.rows; i++) {
        bw_tune_row row = bw_tuning_row(tuning, i);
        char step[CLI_SECONDS_TEXT], memory[CLI_BYTES_TEXT];
        printf("%7lld %11.0f %10s %10s %10.3g", (long long)row.batch, row.samples_per_s, time_text(step, row.step_seconds.value),
               cli_bytes_text(memory, row.peak_bytes), row.rate);
        if (isnan(row.steps.value)) {
            printf(" %9s %11s\n", "-", "-");
        } else {
            printf(" %9.0f %11.0f\n", row.steps.value, row.samples.value);
        }
    }
    printf("knee: batch %lld, the smallest with 90 percent of the best throughput\n", (long long)facts.knee);
}

/* A bar reaches to the predicted time; dots go on to the upper end of the interval. */
static void print_bar(const bw_tune_row *row, double longest, const char *mark)
{
    char value[CLI_SECONDS_TEXT], low[CLI_SECONDS_TEXT], high[CLI_SECONDS_TEXT];
    int filled = (int)(row->seconds.value / longest * BAR + 0.5), end = (int)(fmin(row->seconds.high / longest, 1) * BAR + 0.5);
    printf("%7lld ", (long long)row->batch);
    for (int i = 0; i < BAR; i++) {
        fputs(i < filled || i == 0 ? "█" : i < end ? "·" : " ", stdout);
    }
    printf(" %s (%s to %s)%s\n", time_text(value, row->seconds.value), time_text(low, row->seconds.low),
           isinf(row->seconds.high) ? "?" : time_text(high, row->seconds.high), mark);
}

static void print_times(const bw_tuning *tuning)
{
    bw_tune_facts facts = bw_tuning_facts(tuning);
    double longest = 0;
    for (int i = 0; i < facts.rows; i++) {
        double seconds = bw_tuning_row(tuning, i).seconds.value;
        longest = isfinite(seconds) ? fmax(longest, seconds) : longest;
    }
    if (longest <= 0) {
        return;
    }
    printf("\npredicted time to a loss of %.4g, which batch %lld reaches after %lld samples\n", facts.target_loss,
           (long long)facts.reference, (long long)facts.target_samples);
    for (int i = 0; i < facts.rows; i++) {
        bw_tune_row row = bw_tuning_row(tuning, i);
        print_bar(&row, longest, facts.decided && row.batch == facts.batch ? "  <- recommended" : "");
    }
}

static void print_noise(const bw_tune_facts *facts)
{
    if (facts->refusal) {
        printf("noise scale: not measured: %s\n", facts->refusal);
    } else if (facts->noise.determined) {
        printf("noise scale: %.3g samples (%.3g to %.3g with a probability of 95 percent)%s\n", facts->noise.scale,
               facts->noise.low, facts->noise.high, facts->noise_seen ? ", as the optimizer sees it" : "");
    } else {
        printf("noise scale: undetermined, above %.3g samples\n", facts->noise.low);
    }
}

static void print_rates(const bw_tuning *tuning)
{
    bw_tune_facts facts = bw_tuning_facts(tuning);
    for (int i = 0; i < facts.rates; i++) {
        bw_tune_rate rate = bw_tuning_rate(tuning, i);
        bool new_batch = i == 0 || bw_tuning_rate(tuning, i - 1).batch != rate.batch;
        if (new_batch) {
            printf("%srates tried with batch %lld:", i > 0 ? "\n" : "", (long long)rate.batch);
        }
        printf("%s %.3g ", new_batch ? "" : ",", rate.rate);
        if (isinf(rate.loss)) {
            printf("(diverges)");
        } else if (rate.samples > 0) {
            printf("(%lld samples)", (long long)rate.samples);
        } else {
            printf("(loss %.4g)", rate.loss);
        }
    }
    fputs(facts.rates > 0 ? "\n" : "", stdout);
}

static void print_tiles(const bw_tuning *tuning)
{
    bw_tune_facts facts = bw_tuning_facts(tuning);
    double best = 0;
    for (int i = 0; i < facts.tiles; i++) {
        best = fmax(best, bw_tuning_tile(tuning, i).samples_per_s);
    }
    if (facts.tiles > 0) {
        printf("\n%7s %11s %10s\n", "tile", "samples/s", "memory");
    }
    for (int i = 0; i < facts.tiles; i++) {
        bw_tune_tile tile = bw_tuning_tile(tuning, i);
        char memory[CLI_BYTES_TEXT];
        printf("%7lld %11.0f %10s %3.0f%%%s%s\n", (long long)tile.tile, tile.samples_per_s, cli_bytes_text(memory, tile.peak_bytes),
               100 * tile.samples_per_s / best, tile.tile == facts.default_tile ? "  default" : "",
               tile.tile == facts.tile ? "  quickest" : "");
    }
}

/* ---- Curves of branches ---- */

enum { WIDTH = 60, HEIGHT = 12 };

/* Draws the losses of all branches over time, on a logarithmic scale; a branch is a letter. */
static void print_curves(const bw_tuning *tuning, int branches)
{
    char picture[HEIGHT][WIDTH + 1];
    double low = HUGE_VAL, high = 0, last = 0;
    memset(picture, ' ', sizeof picture);
    for (int b = 0; b < branches; b++) {
        for (int i = 0; i < bw_tuning_branch(tuning, b).points; i++) {
            bw_tune_point p = bw_tuning_branch_point(tuning, b, i);
            if (isfinite(p.loss) && p.loss > 0) {
                low = fmin(low, p.loss);
                high = fmax(high, p.loss);
                last = fmax(last, p.x);
            }
        }
    }
    if (!(high > low) || last <= 0) {
        return;
    }
    for (int b = 0; b < branches; b++) {
        for (int i = 0; i < bw_tuning_branch(tuning, b).points; i++) {
            bw_tune_point p = bw_tuning_branch_point(tuning, b, i);
            if (isfinite(p.loss) && p.loss > 0) {
                int x = (int)(p.x / last * (WIDTH - 1)), y = (int)(log(high / p.loss) / log(high / low) * (HEIGHT - 1) + 0.5);
                picture[y][x] = (char)('a' + b);
            }
        }
    }
    for (int y = 0; y < HEIGHT; y++) {
        picture[y][WIDTH] = 0;
        if (y == 0 || y == HEIGHT - 1) {
            printf("%10.4g |%s\n", y == 0 ? high : low, picture[y]);
        } else {
            printf("%10s |%s\n", "", picture[y]);
        }
    }
    char seconds[CLI_SECONDS_TEXT];
    printf("%10s +%.*s %s\n", "loss", WIDTH - 1, "------------------------------------------------------------",
           cli_seconds_text(seconds, last));
}

static void print_branches(const bw_tuning *tuning)
{
    bw_tune_facts facts = bw_tuning_facts(tuning);
    if (facts.branches > 0) {
        printf("\ntrained from the same state, to a loss of %.4g:\n", facts.target_loss);
        print_curves(tuning, facts.branches);
    }
    for (int b = 0; b < facts.branches; b++) {
        bw_tune_branch branch = bw_tuning_branch(tuning, b);
        char seconds[CLI_SECONDS_TEXT];
        printf("  %c  batch %-5lld rate %-9.3g %s%s, loss %.4g", 'a' + b, (long long)branch.batch, branch.rate,
               isnan(branch.seconds) ? "not reached" : "reached after ",
               isnan(branch.seconds) ? "" : cli_seconds_text(seconds, branch.seconds), branch.loss);
        if (!isnan(branch.validation_loss)) {
            printf(", on validation samples %.4g", branch.validation_loss);
        }
        putchar('\n');
    }
}

void cli_tuning_print(const bw_tuning *tuning)
{
    bw_tune_facts facts = bw_tuning_facts(tuning);
    print_table(tuning);
    print_times(tuning);
    putchar('\n');
    print_noise(&facts);
    print_rates(tuning);
    print_branches(tuning);
    print_tiles(tuning);
    putchar('\n');
    if (facts.decided) {
        printf("recommended: batch %lld with learning rate %.3g\n", (long long)facts.batch, facts.rate);
        printf("  --batch %lld --optimizer '%s'\n", (long long)facts.batch, facts.optimizer);
        printf("  %s\n", facts.reason);
    } else {
        printf("%s\n", facts.reason);
        printf("  batch %lld with learning rate %.3g was measured; --confirm trains candidates and compares them\n",
               (long long)facts.reference, facts.reference_rate);
    }
}

/* The rate is that of batch 32 or was found, which a user who gave one wants to know. */
void cli_tuning_tell(const bw_tuning *tuning, bool kept_rate)
{
    bw_tune_facts facts = bw_tuning_facts(tuning);
    if (!facts.decided) {
        fprintf(stderr, "batch %lld with the optimizer as it is: %s\n", (long long)facts.reference, facts.reason);
    } else if (kept_rate) {
        fprintf(stderr, "batch %lld with learning rate %.3g, from %.3g for batch %lld by rule (%s): %s\n", (long long)facts.batch,
                facts.rate, facts.reference_rate, (long long)facts.reference, facts.optimizer, facts.reason);
    } else {
        fprintf(stderr, "batch %lld with learning rate %.3g (%s): %s\n", (long long)facts.batch, facts.rate, facts.optimizer,
                facts.reason);
    }
}

/* ---- As JSON -------------------------------------------------------------------------------------------- */

static void put_estimate(cli_json *json, const char *name, bw_estimate estimate)
{
    char key[64];
    cli_json_real(json, name, estimate.value);
    snprintf(key, sizeof key, "%s_low", name);
    cli_json_real(json, key, estimate.low);
    snprintf(key, sizeof key, "%s_high", name);
    cli_json_real(json, key, estimate.high);
}

static void put_rows(cli_json *json, const bw_tuning *tuning)
{
    cli_json_array(json, "curve");
    for (int i = 0; i < bw_tuning_facts(tuning).rows; i++) {
        bw_tune_row row = bw_tuning_row(tuning, i);
        cli_json_object(json, NULL);
        cli_json_whole(json, "batch", row.batch);
        cli_json_real(json, "samples_per_s", row.samples_per_s);
        cli_json_real(json, "step_us", row.step_seconds.value * 1e6);
        cli_json_real(json, "step_us_low", row.step_seconds.low * 1e6);
        cli_json_real(json, "step_us_high", row.step_seconds.high * 1e6);
        cli_json_bytes(json, "peak_bytes", row.peak_bytes);
        cli_json_real(json, "lr", row.rate);
        put_estimate(json, "steps", row.steps);
        put_estimate(json, "samples", row.samples);
        put_estimate(json, "seconds", row.seconds);
        cli_json_object_end(json);
    }
    cli_json_array_end(json);
}

/* Rates that were tried, and the points of the range test before them. */
static void put_rates(cli_json *json, const bw_tuning *tuning)
{
    cli_json_array(json, "rates");
    for (int i = 0; i < bw_tuning_facts(tuning).rates; i++) {
        bw_tune_rate rate = bw_tuning_rate(tuning, i);
        cli_json_object(json, NULL);
        cli_json_whole(json, "batch", rate.batch);
        cli_json_real(json, "lr", rate.rate);
        cli_json_real(json, "loss", rate.loss);
        cli_json_whole(json, "samples_to_target", rate.samples);
        cli_json_object_end(json);
    }
    cli_json_array_end(json);
    cli_json_array(json, "range_test");
    for (int i = 0; i < bw_tuning_facts(tuning).points; i++) {
        bw_tune_point point = bw_tuning_point(tuning, i);
        cli_json_object(json, NULL);
        cli_json_real(json, "lr", point.x);
        cli_json_real(json, "loss", point.loss);
        cli_json_object_end(json);
    }
    cli_json_array_end(json);
}

/* The candidates of --confirm with their curves. */
static void put_branches(cli_json *json, const bw_tuning *tuning)
{
    cli_json_array(json, "branches");
    for (int b = 0; b < bw_tuning_facts(tuning).branches; b++) {
        bw_tune_branch branch = bw_tuning_branch(tuning, b);
        cli_json_object(json, NULL);
        cli_json_whole(json, "batch", branch.batch);
        cli_json_real(json, "lr", branch.rate);
        cli_json_real(json, "seconds_to_target", branch.seconds);
        cli_json_real(json, "loss", branch.loss);
        cli_json_real(json, "val_loss", branch.validation_loss);
        cli_json_array(json, "points");
        for (int i = 0; i < branch.points; i++) {
            bw_tune_point point = bw_tuning_branch_point(tuning, b, i);
            cli_json_object(json, NULL);
            cli_json_real(json, "seconds", point.x);
            cli_json_real(json, "loss", point.loss);
            cli_json_object_end(json);
        }
        cli_json_array_end(json);
        cli_json_object_end(json);
    }
    cli_json_array_end(json);
}

static void put_tiles(cli_json *json, const bw_tuning *tuning)
{
    bw_tune_facts facts = bw_tuning_facts(tuning);
    cli_json_whole(json, "tile", facts.tile);
    cli_json_whole(json, "default_tile", facts.default_tile);
    cli_json_array(json, "tiles");
    for (int i = 0; i < facts.tiles; i++) {
        bw_tune_tile tile = bw_tuning_tile(tuning, i);
        cli_json_object(json, NULL);
        cli_json_whole(json, "tile", tile.tile);
        cli_json_real(json, "samples_per_s", tile.samples_per_s);
        cli_json_bytes(json, "peak_bytes", tile.peak_bytes);
        cli_json_object_end(json);
    }
    cli_json_array_end(json);
}

/* Scripts rely on the names up to the curve, so they must not change. What is not recommended, or not measured, is null. */
void cli_tuning_json(cli_json *json, const char *key, const bw_tuning *tuning)
{
    bw_tune_facts facts = bw_tuning_facts(tuning);
    cli_json_object(json, key);
    cli_json_truth(json, "decided", facts.decided);
    if (facts.decided) {
        cli_json_whole(json, "recommended_batch", facts.batch);
    } else {
        cli_json_text(json, "recommended_batch", NULL);
    }
    cli_json_real(json, "recommended_lr", facts.rate);
    cli_json_text(json, "recommended_optimizer", facts.optimizer);
    cli_json_text(json, "reason", facts.reason);
    cli_json_whole(json, "knee_batch", facts.knee);
    cli_json_real(json, "noise_scale", facts.refusal ? (double)NAN : facts.noise.scale);
    cli_json_real(json, "noise_scale_low", facts.refusal ? (double)NAN : facts.noise.low);
    cli_json_real(json, "noise_scale_high", facts.refusal ? (double)NAN : facts.noise.high);
    cli_json_text(json, "noise_scale_of", facts.refusal ? NULL : facts.noise_seen ? "optimizer" : "gradient");
    cli_json_text(json, "noise_refusal", facts.refusal);
    put_rows(json, tuning);
    cli_json_whole(json, "reference_batch", facts.reference);
    cli_json_real(json, "reference_lr", facts.reference_rate);
    cli_json_real(json, "target_loss", facts.target_loss);
    cli_json_whole(json, "target_samples", facts.target_samples);
    put_rates(json, tuning);
    put_tiles(json, tuning);
    cli_json_truth(json, "confirmed", facts.confirmed);
    put_branches(json, tuning);
    cli_json_real(json, "seconds", facts.seconds);
    cli_json_object_end(json);
}
