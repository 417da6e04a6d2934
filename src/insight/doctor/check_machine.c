/* Checks of speed: what a step waits for, and whether memory suffices. All of them are notes, except those of a disk. */
#include "insight/doctor/doctor.h"

static const double most_of_it = 0.5;
static const double much_of_it = 0.2;
static const double other_programs = 5e-5; /* a step of ours has less overhead: beyond it, others take the cores */

static char *time_text(char text[32], double seconds)
{
    double scale = seconds < 1e-3 ? 1e6 : seconds < 1 ? 1e3 : 1;
    bwi_print(text, 32, "%.3g %s", seconds * scale, seconds < 1e-3 ? "us" : seconds < 1 ? "ms" : "s");
    return text;
}

bool bwi_check_data_bound(const bwi_doctor *d, bwi_finding *found)
{
    const bwi_speed_facts *speed = &d->steps.speed;
    char text[32];
    if (!speed->known || speed->data < 0.2) {
        return false;
    }
    bwi_fix(found, "dataset = bw_cache(dataset);",
            "--cache memory, --parallel N with more threads, or --cache FILE for later runs");
    return bwi_found(found, BW_SEVERITY_NOTE, "workers wait for samples during %.0f%% of a step of %s, and compute during %.0f%%",
                     100 * speed->data, time_text(text, speed->step_seconds), 100 * speed->compute);
}

/* Idle workers do not count: a step that is too small to share has nothing for them to do. */
bool bwi_check_overhead_bound(const bwi_doctor *d, bwi_finding *found)
{
    const bwi_speed_facts *speed = &d->steps.speed;
    char text[32];
    double seconds = speed->overhead * speed->step_seconds;
    if (!speed->known || speed->overhead < much_of_it * (1 - speed->idle) || speed->data >= 0.2 || seconds > other_programs) {
        return false;
    }
    bwi_fix(found, "fitting.batch = 256;", "a larger --batch, with a learning rate that goes with it: batchwise tune");
    return bwi_found(found, BW_SEVERITY_NOTE,
                     "%.0f%% of the time that workers are busy in a step of %s with %.0f sample%s is overhead",
                     100 * speed->overhead / (1 - speed->idle), time_text(text, speed->step_seconds), speed->samples,
                     speed->samples < 1.5 ? "" : "s");
}

/* What the arithmetic reaches of the machine's limits, while it runs. */
static void shares_of(const bwi_speed_facts *speed, double *flops, double *bytes)
{
    double seconds = speed->step_seconds * speed->compute;
    *flops = speed->flops_limit > 0 && seconds > 0 ? speed->flops / seconds / speed->flops_limit : 0;
    *bytes = speed->bytes_limit > 0 && seconds > 0 ? speed->bytes / seconds / speed->bytes_limit : 0;
}

/* Bytes of a step count only if they do not stay in the caches, which the bandwidth beyond the limit shows. */
bool bwi_check_bandwidth_bound(const bwi_doctor *d, bwi_finding *found)
{
    const bwi_speed_facts *speed = &d->steps.speed;
    double flops, bytes;
    shares_of(speed, &flops, &bytes);
    if (!speed->known || speed->compute < most_of_it * (1 - speed->idle) || bytes < 0.6 || bytes > 1.25 || bytes < flops) {
        return false;
    }
    bwi_fix(found, "", "a larger --batch moves weights less often; more cores would not help");
    return bwi_found(found, BW_SEVERITY_NOTE,
                     "a step moves %.3g MB at %.3g GB/s, %.0f%% of what the machine can; it computes at %.0f%%", speed->bytes / 1e6,
                     speed->bytes / (speed->step_seconds * speed->compute) / 1e9, 100 * bytes, 100 * flops);
}

bool bwi_check_compute_bound(const bwi_doctor *d, bwi_finding *found)
{
    const bwi_speed_facts *speed = &d->steps.speed;
    double flops, bytes;
    shares_of(speed, &flops, &bytes);
    if (!speed->known || speed->compute < most_of_it * (1 - speed->idle) || flops < 0.5) {
        return false;
    }
    bwi_fix(found, "", "more cores (--workers), or a smaller model; nothing is wrong with the batch");
    return bwi_found(found, BW_SEVERITY_NOTE, "a step computes %.3g GFLOP at %.3g GFLOP/s, %.0f%% of what the machine can",
                     speed->flops / 1e9, speed->flops / (speed->step_seconds * speed->compute) / 1e9, 100 * flops);
}

/* ---- Memory ---- */

bool bwi_check_capacity_bound(const bwi_doctor *d, bwi_finding *found)
{
    const bwi_step_facts *s = &d->steps;
    char planned[32], wanted[32], spilled[32];
    bool smaller = s->run.tile > 0 && s->tile_wanted > s->run.tile;
    if (!s->ran || (s->run.segments <= 1 && s->run.spilled_bytes == 0 && !smaller)) {
        return false;
    }
    bwi_fix(found, "fitting.memory = 0;",
            "a larger --memory: with %s nothing is computed again, kept on a disk or cut into smaller tiles",
            bwi_format_bytes(wanted, s->wanted_bytes));
    return bwi_found(
        found, BW_SEVERITY_NOTE,
        "within %s, activations are computed again in %d segment%s, %s are kept on a disk, and a tile has %lld samples in place "
        "of %lld",
        bwi_format_bytes(planned, s->run.planned_bytes), s->run.segments, s->run.segments == 1 ? "" : "s",
        bwi_format_bytes(spilled, s->run.spilled_bytes), (long long)s->run.tile, (long long)s->tile_wanted);
}

bool bwi_check_swapping(const bwi_doctor *d, bwi_finding *found)
{
    enum { MOST = 1 << 20 };
    const bw_run_facts *run = &d->steps.run;
    char text[32];
    if (run->swapped_bytes <= MOST) {
        return false;
    }
    bwi_fix(found, "fitting.memory = (size_t)1 << 30; /* what the machine has left */",
            "--memory with what the machine has left, or end other programs");
    return bwi_found(found, BW_SEVERITY_WARNING,
                     "%s were moved to a disk during %lld updates, and threads waited for %lld pages from one",
                     bwi_format_bytes(text, run->swapped_bytes), (long long)run->updates, (long long)run->major_faults);
}
