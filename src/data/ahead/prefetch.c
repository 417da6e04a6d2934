/* Sets how slow samples are prefetched: the number of threads and samples, and the time limit. Order and values do not change. */
#include "data/ahead/ahead.h"

#include <math.h>

#define MOST_THREADS 1024

const bwi_dataset_kind bwi_kind_prefetch = {.name = "prefetch", .stream = {.follows = true}};

static bw_status find_options(bw_context *ctx, bw_prefetch_options *options, const bw_prefetch_options *given)
{
    *options = (bw_prefetch_options)BW_PREFETCH_OPTIONS_DEFAULT;
    bw_status status = bwi_options_copy(ctx, options, sizeof *options, given, "bw_prefetch_options");
    if (status != BW_OK) {
        return status;
    }
    if (options->threads < 0 || options->threads > MOST_THREADS) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "prefetch: 0 to %d threads, found %d", MOST_THREADS, options->threads);
    }
    if (options->samples < 0 || isnan(options->seconds)) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "prefetch: %lld samples and %g seconds", (long long)options->samples,
                        options->seconds);
    }
    return BW_OK;
}

bw_dataset *bw_prefetch(bw_dataset *dataset, const bw_prefetch_options *given)
{
    bw_prefetch_options options;
    if (!dataset) {
        return NULL;
    }
    bw_context *ctx = dataset->owned.ctx;
    if (find_options(ctx, &options, given) != BW_OK) {
        bw_dataset_free(dataset);
        return bwi_pass_on(ctx);
    }
    bw_dataset *made = bwi_dataset_over(dataset, &bwi_kind_prefetch, 0, sizeof(bwi_prefetch));
    if (made) {
        *(bwi_prefetch *)made->state =
            (bwi_prefetch){.threads = options.threads, .samples = options.samples, .seconds = options.seconds};
    }
    return bwi_dataset_take(dataset, made);
}
