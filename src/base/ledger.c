/*
 * The ledger: time and calls of each part of a step, apart for each worker. A worker's slots fill whole cache lines, so that no two
 * workers write to the same one. What reading the clock takes is measured once and left out of every part, since it is as long as
 * a part of a very small step.
 */
#include "base/base.h"

enum { SLOTS_IN_A_LINE = BWI_CACHE_LINE / sizeof(uint64_t), CLOCK_READS = 64 };

_Thread_local uint64_t bwi_waited;

static size_t stride_of(int parts)
{
    return bwi_size_align((size_t)parts, SLOTS_IN_A_LINE);
}

static size_t slots_bytes(int parts, int workers)
{
    return bwi_allocation_bytes(bwi_size_multiply(bwi_size_multiply(stride_of(parts), (size_t)workers), sizeof(uint64_t)));
}

size_t bwi_ledger_bytes(int parts, int workers)
{
    return bwi_size_multiply(2, slots_bytes(parts, workers));
}

size_t bwi_ledger_record_bytes(int parts, int workers, int64_t events)
{
    size_t all = bwi_size_multiply(bwi_size_multiply((size_t)events, (size_t)workers), sizeof(bwi_event));
    return bwi_size_add(bwi_allocation_bytes(all), slots_bytes(parts, workers));
}

/* The shortest of many readings: anything else that runs only adds time. */
static uint64_t clock_ticks(void)
{
    uint64_t least = UINT64_MAX, last = bwi_ticks();
    for (int k = 0; k < CLOCK_READS; k++) {
        uint64_t now = bwi_ticks();
        least = now - last < least ? now - last : least;
        last = now;
    }
    return least;
}

bw_status bwi_ledger_open(bw_context *ctx, bwi_ledger *ledger, int parts, int workers)
{
    *ledger = (bwi_ledger){0};
    if (parts < 0 || workers < 1) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "a ledger of %d parts for %d workers is not possible", parts, workers);
    }
    size_t stride = stride_of(parts), slots = bwi_size_multiply(stride, (size_t)workers);
    *ledger = (bwi_ledger){.parts = parts, .workers = workers, .stride = stride, .clock = clock_ticks()};
    ledger->ticks = bwi_allocate(ctx, slots, sizeof *ledger->ticks);
    ledger->calls = ledger->ticks ? bwi_allocate(ctx, slots, sizeof *ledger->calls) : NULL;
    if (!ledger->calls) {
        bwi_ledger_close(ctx, ledger);
        return BW_RESOURCE_EXHAUSTED;
    }
    ledger->opened = bwi_ticks();
    ledger->opened_seconds = bwi_now();
    return BW_OK;
}

bw_status bwi_ledger_record(bw_context *ctx, bwi_ledger *ledger, int64_t events)
{
    size_t workers = (size_t)ledger->workers;
    ledger->events = bwi_allocate(ctx, bwi_size_multiply((size_t)events, workers), sizeof *ledger->events);
    ledger->recorded = ledger->events ? bwi_allocate(ctx, ledger->stride * workers, sizeof *ledger->recorded) : NULL;
    ledger->capacity = ledger->recorded ? events : 0;
    ledger->records = ledger->recorded;
    return ledger->recorded ? BW_OK : BW_RESOURCE_EXHAUSTED;
}

void bwi_ledger_close(bw_context *ctx, bwi_ledger *ledger)
{
    bwi_release(ctx, ledger->ticks);
    bwi_release(ctx, ledger->calls);
    bwi_release(ctx, ledger->events);
    bwi_release(ctx, ledger->recorded);
    *ledger = (bwi_ledger){0};
}

static size_t slot_of(const bwi_ledger *ledger, int worker, int part)
{
    return (size_t)worker * ledger->stride + (size_t)part;
}

void bwi_ledger_add(bwi_ledger *ledger, int worker, int part, uint64_t begin, uint64_t end)
{
    size_t slot = slot_of(ledger, worker, part);
    uint64_t ticks = end - begin;
    ledger->ticks[slot] += ticks > ledger->clock ? ticks - ledger->clock : 0;
    ledger->calls[slot]++;
    if (ledger->records) {
        int64_t *recorded = &ledger->recorded[slot_of(ledger, worker, 0)];
        if (*recorded < ledger->capacity) {
            ledger->events[(int64_t)worker * ledger->capacity + *recorded] = (bwi_event){.begin = begin, .end = end, .part = part};
        }
        (*recorded)++;
    }
}

void bwi_ledger_move(bwi_ledger *ledger, int worker, int from, int to, uint64_t ticks)
{
    uint64_t *source = &ledger->ticks[slot_of(ledger, worker, from)];
    ticks = ticks < *source ? ticks : *source;
    *source -= ticks;
    ledger->ticks[slot_of(ledger, worker, to)] += ticks;
    ledger->calls[slot_of(ledger, worker, to)]++;
}

uint64_t bwi_ledger_ticks(const bwi_ledger *ledger, int worker, int part)
{
    uint64_t sum = 0;
    for (int w = worker < 0 ? 0 : worker; w < (worker < 0 ? ledger->workers : worker + 1); w++) {
        sum += ledger->ticks[slot_of(ledger, w, part)];
    }
    return sum;
}

int64_t bwi_ledger_calls(const bwi_ledger *ledger, int worker, int part)
{
    int64_t sum = 0;
    for (int w = worker < 0 ? 0 : worker; w < (worker < 0 ? ledger->workers : worker + 1); w++) {
        sum += ledger->calls[slot_of(ledger, w, part)];
    }
    return sum;
}

/* The longer the ledger has been open, the better it is known. */
double bwi_ledger_tick_seconds(const bwi_ledger *ledger)
{
    uint64_t ticks = bwi_ticks() - ledger->opened;
    return ticks > 0 ? (bwi_now() - ledger->opened_seconds) / (double)ticks : 0;
}
