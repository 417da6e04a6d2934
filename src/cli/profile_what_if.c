/*
 * profile --what-if: a prediction of the step on other hardware, and what would bound it there. It is called a prediction wherever
 * it is shown, since nothing of it was measured.
 */
#include "cli/profile.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *name, *in_words;
    size_t offset;
} FACTORS[] = {
    {"compute", "cores that are ", offsetof(bw_hardware, compute)},
    {"bandwidth", "memory that is ", offsetof(bw_hardware, bandwidth)},
    {"data", "samples that are read ", offsetof(bw_hardware, data)},
};
enum { FACTOR_COUNT = sizeof FACTORS / sizeof FACTORS[0], MOST_CORES = 1024 };

static double *factor_at(bw_hardware *other, size_t k)
{
    return (double *)(void *)((char *)other + FACTORS[k].offset);
}

/* Reads one change, NAME=NUMBER, where a factor may end in x. Each may be given once. */
static bool parse_change(bw_hardware *other, char *change, bool *given)
{
    char *value = strchr(change, '=');
    if (!value) {
        return false;
    }
    *value++ = 0;
    if (strcmp(change, "cores") == 0) {
        bool fine = !given[FACTOR_COUNT] && cli_count.parse(&other->cores, value) && other->cores <= MOST_CORES;
        given[FACTOR_COUNT] = true;
        return fine;
    }
    for (size_t k = 0; k < FACTOR_COUNT; k++) {
        if (strcmp(change, FACTORS[k].name) == 0) {
            size_t length = strlen(value);
            if (length > 1 && value[length - 1] == 'x') {
                value[length - 1] = 0;
            }
            double *factor = factor_at(other, k);
            bool fine = !given[k] && cli_rate.parse(factor, value) && isfinite(*factor) && *factor > 0;
            given[k] = true;
            return fine;
        }
    }
    return false;
}

bool cli_what_if_parse(bw_hardware *other, const char *text)
{
    char copy[256];
    bool fine = strlen(text) < sizeof copy, given[FACTOR_COUNT + 1] = {false};
    *other = (bw_hardware)BW_HARDWARE_DEFAULT;
    snprintf(copy, sizeof copy, "%s", text);
    for (char *change = copy; fine && change;) {
        char *comma = strchr(change, ',');
        if (comma) {
            *comma = 0;
        }
        fine = parse_change(other, change, given);
        change = comma ? comma + 1 : NULL;
    }
    return fine;
}

/* ---- In sentences --------------------------------------------------------------------------------------- */

static void print_hardware(const cli_profile *made)
{
    bw_hardware other = made->other;
    const char *between = "";
    if (other.cores > 0) {
        printf("%d core%s", other.cores, cli_plural(other.cores));
        between = ", ";
    }
    for (size_t k = 0; k < FACTOR_COUNT; k++) {
        if (*factor_at(&other, k) != 1) {
            printf("%s%s%g times as fast", between, FACTORS[k].in_words, *factor_at(&other, k));
            between = ", ";
        }
    }
    fputs(*between ? "" : "the same hardware", stdout);
}

static void print_bounds(const char *when, const bw_prediction *p)
{
    const struct {
        const char *name;
        double seconds;
    } bounds[] = {{"computing", p->compute}, {"memory", p->bandwidth}, {"one worker alone", p->serial}, {"data", p->data}};
    printf("  %-5s %10.2f us:", when, p->step_seconds * 1e6);
    for (size_t k = 0; k < sizeof bounds / sizeof bounds[0]; k++) {
        printf("%s %.0f%% %s", k > 0 ? "," : "", 100 * bounds[k].seconds / p->step_seconds, bounds[k].name);
    }
    putchar('\n');
}

void cli_what_if_print(const cli_profile *made)
{
    double faster = made->now.step_seconds / made->then.step_seconds;
    fputs("Prediction (nothing of it is measured): with ", stdout);
    print_hardware(made);
    printf(" a step would take %.4g us in place of %.4g,\n%.2f times %s: %.0f samples/s.\n", made->then.step_seconds * 1e6,
           made->now.step_seconds * 1e6, faster >= 1 ? faster : 1 / faster, faster >= 1 ? "as fast" : "as long",
           made->facts.samples / made->then.step_seconds);
    print_bounds("now", &made->now);
    print_bounds("then", &made->then);
    const bw_machine *m = &made->machine;
    if (made->other.cores > 0 && m->growths == 0) {
        puts("  Other programs took the cores while this machine was measured: busy cores are assumed not to slow each other.");
    } else if (made->other.cores > 0) {
        const bw_growth *all = &m->growth[m->growths - 1];
        printf(
            "  Busy cores slow each other: the %d of this machine were measured to compute %.2f times as much as one, and to move\n"
            "  %.2f times as much%s.\n",
            all->cores, all->compute, all->bandwidth,
            made->other.cores > all->cores ? "; further ones are assumed to be like these, and to share the memory" : "");
    }
    static const int many_lanes = 8; /* fewer are shared by workers */
    if (made->other.cores > made->run.lanes && made->run.lanes >= many_lanes) {
        printf("  This plan has at most as many workers as lanes, %d: more cores are of no use without --lanes.\n",
               made->run.lanes);
    }
    if (made->other.cores > 1 && faster < 1.1 && made->facts.samples <= (double)made->run.tile) {
        printf("  The batch is one tile of up to %lld samples, which one worker computes: cores help with a larger --batch, or a "
               "smaller "
               "--tile.\n",
               (long long)made->run.tile);
    }
    putchar('\n');
}

/* ---- JSON ----------------------------------------------------------------------------------------------- */

static void put_bounds(cli_json *json, const char *key, const bw_prediction *p)
{
    cli_json_object(json, key);
    cli_json_real(json, "step_us", p->step_seconds * 1e6);
    cli_json_real(json, "compute_us", p->compute * 1e6);
    cli_json_real(json, "bandwidth_us", p->bandwidth * 1e6);
    cli_json_real(json, "serial_us", p->serial * 1e6);
    cli_json_real(json, "data_us", p->data * 1e6);
    cli_json_object_end(json);
}

void cli_what_if_put(cli_json *json, const cli_profile *made)
{
    bw_hardware other = made->other;
    cli_json_object(json, "prediction");
    cli_json_whole(json, "cores", other.cores > 0 ? other.cores : made->facts.workers);
    for (size_t k = 0; k < FACTOR_COUNT; k++) {
        cli_json_real(json, FACTORS[k].name, *factor_at(&other, k));
    }
    cli_json_truth(json, "extrapolated", other.cores > made->machine.cores);
    put_bounds(json, "now", &made->now);
    put_bounds(json, "then", &made->then);
    cli_json_object_end(json);
}
