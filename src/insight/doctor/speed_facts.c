/* Where the time of the updates on trial went, from the ledger that every training keeps. */
#include "insight/doctor/doctor.h"

/* The limits of the machine are for all of its cores; a run with fewer workers has its share of the arithmetic, and of the
 * bandwidth what its workers can take. */
static void find_limits(bwi_speed_facts *facts, bw_context *ctx)
{
    bw_machine machine;
    if (bw_machine_limits(ctx, &machine) != BW_OK) {
        (void)bwi_pending(ctx);
        return;
    }
    double all = machine.core_bandwidth * facts->workers, flops = machine.core_flops * facts->workers;
    facts->flops_limit = flops < machine.flops ? flops : machine.flops;
    facts->bytes_limit = all < machine.bandwidth ? all : machine.bandwidth;
}

/* Everything that is neither waiting nor overhead is arithmetic, also the gathering of samples and the update. */
void bwi_speed_facts_find(bwi_speed_facts *facts, bw_context *ctx, const bw_history *history)
{
    bw_profile_facts profile = bw_history_profile(history);
    double total = profile.step_seconds * profile.workers;
    bw_part part;
    if (profile.parts == 0 || !(total > 0)) {
        return;
    }
    *facts = (bwi_speed_facts){
        .known = true, .step_seconds = profile.step_seconds, .samples = profile.samples, .workers = profile.workers};
    for (int i = 0; i < profile.parts && bw_history_part(history, i, &part) == BW_OK; i++) {
        double share = part.seconds / total;
        switch (part.kind) {
        case BW_PART_DATA:
            facts->data += share;
            break;
        case BW_PART_IDLE:
            facts->idle += share;
            break;
        case BW_PART_OVERHEAD:
            facts->overhead += share;
            break;
        case BW_PART_CALLBACKS: /* those that watch the trial */
        case BW_PART_RANKS:
            break;
        default:
            facts->compute += share;
            facts->flops += part.flops;
            facts->bytes += part.bytes;
        }
    }
    static const double long_enough = 1e-3;
    if (facts->compute > 0.5 * (1 - facts->idle) &&
        facts->step_seconds > long_enough) { /* measuring takes longer than a small model */
        find_limits(facts, ctx);
    }
}
