/*
 * The ledger: seconds and calls of each part of a step, apart for each worker. A worker's slots fill whole cache
 * lines, so that no two workers write to the same one.
 */
#include "base/base.h"

bw_status bwi_ledger_open(bw_context *ctx, bwi_ledger *ledger, int parts, int workers)
{
    *ledger = (bwi_ledger){0};
    if (parts < 0 || workers < 1) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "a ledger of %d parts for %d workers is not possible", parts, workers);
    }
    size_t stride = bwi_size_align((size_t)parts, BWI_CACHE_LINE / sizeof(double));
    size_t slots = bwi_size_multiply(stride, (size_t)workers);
    double *seconds = bwi_allocate(ctx, slots, sizeof *ledger->seconds);
    int64_t *calls = seconds ? bwi_allocate(ctx, slots, sizeof *ledger->calls) : NULL;
    if (!calls) {
        bwi_release(ctx, seconds);
        return BW_RESOURCE_EXHAUSTED;
    }
    *ledger = (bwi_ledger){.parts = parts, .workers = workers, .stride = stride, .seconds = seconds, .calls = calls};
    return BW_OK;
}

void bwi_ledger_close(bw_context *ctx, bwi_ledger *ledger)
{
    bwi_release(ctx, ledger->seconds);
    bwi_release(ctx, ledger->calls);
    *ledger = (bwi_ledger){0};
}

void bwi_ledger_add(bwi_ledger *ledger, int worker, int part, double seconds)
{
    size_t slot = (size_t)worker * ledger->stride + (size_t)part;
    ledger->seconds[slot] += seconds;
    ledger->calls[slot]++;
}

double bwi_ledger_total(const bwi_ledger *ledger, int part)
{
    double total = 0;
    for (int worker = 0; worker < ledger->workers; worker++) {
        total += ledger->seconds[(size_t)worker * ledger->stride + (size_t)part];
    }
    return total;
}
