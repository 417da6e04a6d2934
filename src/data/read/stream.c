/*
 * Streams are samples that arrive one after another, and whose number is not known. Samples that have arrived are kept in a
 * backing and reached by number, so that every order of them is possible, memory is bounded, and each epoch after the first is
 * like that of any other data.
 *
 * While a stream has not ended its datasets are live: `count` is the most there can be. Samples are pulled on the caller's thread,
 * between batches, when no thread gathers, because the backing may move. Shuffling needs samples to choose from: in the first
 * epoch a live dataset is shuffled exactly within blocks of as many samples as fit into BLOCK_BYTES. So the order is a function of
 * the position alone, as every order is.
 */
#include "data/read/read.h"

#define BLOCK_BYTES ((size_t)64 << 20)

int64_t bwi_stream_block(const bw_dataset *dataset)
{
    size_t bytes = 0;
    for (int f = 0; f < dataset->content->column_count; f++) {
        const bwi_column *column = &dataset->content->columns[f];
        bytes = bwi_size_add(bytes, bwi_size_multiply((size_t)column->rows.values, bwi_dtype_size(column->field.dtype)));
    }
    return bytes < BLOCK_BYTES ? (int64_t)(BLOCK_BYTES / (bytes ? bytes : 1)) : 1;
}

static void report(const bw_dataset *dataset)
{
    bw_context *ctx = dataset->owned.ctx;
    int64_t block = dataset->block, count = dataset->count;
    if (block >= count) {
        bwi_log(ctx, BW_LOG_INFO, "stream: ended after %lld samples, all of them shuffled exactly", (long long)count);
    } else {
        bwi_log(ctx, BW_LOG_INFO,
                "stream: ended after %lld samples; the first epoch was shuffled in blocks of %lld, %.3g percent of them: a sample "
                "moved by %lld on average, by %lld in an exact shuffle, which all other epochs have",
                (long long)count, (long long)block, 100 * (double)block / (double)count, (long long)(block / 3),
                (long long)(count / 3));
    }
}

/* Takes over the numbers of the dataset below, whose end may have been found. */
static void settle(bw_dataset *dataset, int64_t wanted)
{
    const bw_dataset *below = dataset->upstream;
    bool all = dataset->limit > 0 && wanted >= dataset->limit && below->numbers >= dataset->limit;
    dataset->numbers = below->numbers;
    for (int f = 0; f < dataset->column_count; f++) {
        dataset->columns[f].samples = below->numbers;
    }
    if (below->live && !all) {
        return;
    }
    dataset->live = false;
    dataset->count = below->count < dataset->count ? below->count : dataset->count;
    if (dataset->block > 0) {
        report(dataset);
    }
}

static bw_status pull(bw_dataset *dataset, int64_t upto)
{
    if (!dataset->live) {
        return BW_OK;
    }
    if (!dataset->upstream) {
        return dataset->kind->stream.pull(dataset, upto);
    }
    int64_t wanted = upto < dataset->count ? upto : dataset->count;
    if (dataset->block > 0 && wanted % dataset->block != 0) {
        wanted += dataset->block - wanted % dataset->block;
        wanted = wanted < dataset->count ? wanted : dataset->count;
    }
    bw_status status = pull(dataset->upstream, wanted);
    if (status == BW_OK) {
        settle(dataset, wanted);
    }
    return status;
}

bw_status bwi_stream_pull(bw_dataset *dataset, int64_t upto)
{
    if (!dataset->live) {
        return BW_OK;
    }
    for (bw_dataset *at = dataset; at && at->live && !at->begun; at = at->upstream) {
        at->begun = true;
        if (at->block > 0) {
            bwi_log(at->owned.ctx, BW_LOG_INFO, "stream: in the first epoch it is shuffled in blocks of %lld samples",
                    (long long)at->block);
        }
    }
    return pull(dataset, upto);
}

bw_status bwi_dataset_finish(bw_dataset *dataset)
{
    if (!dataset->live) {
        return BW_OK;
    }
    for (bw_dataset *at = dataset; at && at->live && !at->begun; at = at->upstream) {
        at->block = 0; /* no sample has been handed out, so every epoch can be shuffled exactly */
    }
    return pull(dataset, BWI_LIVE);
}

bool bwi_dataset_live(const bw_dataset *dataset)
{
    return dataset->live;
}
