/* order: which sample is at which position of an epoch, and how samples are grouped into batches. */
#ifndef BWI_DATA_ORDER_H
#define BWI_DATA_ORDER_H

#include "data/internal.h"

/* ---- batch.c ---- */

int64_t bwi_batch_within(const bw_dataset *dataset, int epoch, bwi_span *at);

/* ---- order.c ---- */

int64_t bwi_number_at(const bw_dataset *dataset, uint64_t epoch, int64_t position);
void bwi_numbers_at(const bw_dataset *dataset, uint64_t epoch, int64_t *at, int64_t n); /* positions become numbers */
/* Whether the dataset has all samples of its upstream and only reorders them (shuffle, prefetch); and a builder of the same kind
 * over another dataset. */
bool bwi_order_is_whole(const bw_dataset *dataset);
bw_dataset *bwi_order_again(bw_dataset *below, const bw_dataset *model);

/* ---- iterator.c ---- */

void bwi_iterator_state(bw_iterator *iterator, bwi_state *state); /* adds epoch and position to the state */

#endif
