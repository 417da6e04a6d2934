/*
 * Prepares a chain of datasets before samples are gathered: each is prepared, from the source upwards (statistics are fitted, a
 * stream is read as far as it is needed), and the prefetcher is told what comes next. This happens on the caller's thread.
 */
#include "data/ahead/ahead.h"
#include "data/read/read.h"

static bw_status begin_chain(const bw_dataset *dataset, const bw_dataset *top)
{
    bw_status status = BW_OK;
    if (dataset->upstream) {
        status = begin_chain(dataset->upstream, top);
    }
    if (status == BW_OK && dataset->second && dataset->kind->order.renumbers) {
        status = begin_chain(dataset->second, top);
    }
    if (status == BW_OK && dataset->kind->begin) {
        status = dataset->kind->begin(dataset, top);
    }
    return status;
}

bw_status bwi_dataset_begin_below(const bw_dataset *dataset)
{
    return begin_chain(dataset, dataset);
}

bw_status bwi_dataset_prepare(const bw_dataset *dataset)
{
    return begin_chain(dataset, dataset);
}

bool bwi_dataset_begins(const bw_dataset *dataset)
{
    bool begins = dataset->prefetcher || dataset->live;
    for (; dataset && !begins; dataset = dataset->upstream) {
        begins = dataset->kind->begin || (dataset->second && dataset->kind->order.renumbers && bwi_dataset_begins(dataset->second));
    }
    return begins;
}

bw_status bwi_dataset_begin(bw_dataset *dataset, const bwi_gather_schedule *schedule)
{
    bool live = dataset->live;
    bw_status status = live ? bwi_stream_pull(dataset, schedule->first + schedule->count) : BW_OK;
    if (status == BW_OK) {
        status = begin_chain(dataset, dataset);
    }
    /* While a stream is live the prefetcher is not used, because it would look for samples that have not arrived yet. */
    return status == BW_OK && dataset->prefetcher && !live ? bwi_prefetcher_begin(dataset->prefetcher, dataset, schedule) : status;
}
