/* A history has named columns with one value per epoch, and facts about the run. */
#include "train/internal.h"

#include <math.h>
#include <string.h>

static void destroy(bwi_owned *object)
{
    bw_history *history = (bw_history *)(void *)object;
    bwi_release(history->ctx, history->values);
    bwi_profile_free(history->ctx, history->profile);
    bwi_release(history->ctx, history->noise);
}

static size_t own_bytes(int width)
{
    return sizeof(bw_history) + (size_t)width * (BWI_COLUMN_NAME + 8);
}

bw_history *bwi_history_new(bw_context *ctx, int capacity, int width)
{
    bw_history *history = bwi_own(ctx, own_bytes(width), destroy);
    if (!history) {
        return NULL;
    }
    history->ctx = ctx;
    history->width = width;
    history->values = bwi_try_allocate_lazily(ctx, bwi_size_multiply((size_t)capacity, (size_t)width * sizeof *history->values));
    if (!history->values) {
        bwi_disown(history);
        return bwi_fail_build(ctx, BW_RESOURCE_EXHAUSTED, "no memory for a history of %d epochs", capacity);
    }
    return history;
}

size_t bwi_history_bytes(int capacity, int width)
{
    size_t values = bwi_size_multiply((size_t)capacity, (size_t)width * sizeof(double));
    return bwi_size_add(bwi_allocation_bytes(own_bytes(width)), bwi_allocation_bytes(values));
}

int bwi_history_add_column(bw_history *history, const char *prefix, const char *name)
{
    snprintf(history->names[history->columns], sizeof history->names[0], "%s%s", prefix, name);
    return history->columns++;
}

int bw_history_epochs(const bw_history *history)
{
    return history ? history->epochs : 0;
}
int bw_history_columns(const bw_history *history)
{
    return history ? history->columns : 0;
}

const char *bw_history_column(const bw_history *history, int column)
{
    return history && column >= 0 && column < history->columns ? history->names[column] : NULL;
}

double bw_history_value(const bw_history *history, const char *column, int epoch)
{
    for (int c = 0; history && column && c < history->columns; c++) {
        if (strcmp(history->names[c], column) == 0 && epoch >= 0 && epoch < history->epochs) {
            return history->values[(size_t)epoch * (size_t)history->width + (size_t)c];
        }
    }
    return (double)NAN;
}

double bw_history_last(const bw_history *history, const char *column)
{
    return bw_history_value(history, column, bw_history_epochs(history) - 1);
}

bw_run_facts bw_history_facts(const bw_history *history)
{
    return history ? history->facts : (bw_run_facts){0};
}

bw_status bwi_history_refresh(bw_history *history)
{
    if (history->refresh) {
        history->refresh(history->run);
    }
    return BW_OK;
}

bw_status bw_history_refresh(bw_history *history)
{
    bw_status status = history ? bwi_call_begin(history->ctx) : BW_INVALID_ARGUMENT;
    return status == BW_OK ? bwi_call_end(history->ctx, bwi_history_refresh(history)) : status;
}

bool bwi_history_is_nonfinite(const bw_history *history)
{
    return history && history->nonfinite;
}

void bw_history_free(bw_history *history)
{
    bwi_disown(history);
}
