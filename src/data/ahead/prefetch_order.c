/* Predicts the order in which samples will be asked for. A wrong guess costs time, and never gives a wrong sample. */
#include "data/ahead/ahead.h"

static void rewind_piece(bwi_prefetch_order *order)
{
    order->wave = order->round = order->lane = order->tile = 0;
}

/* Whether the piece is the present one, or one that the order has already passed. */
static bool is_before(const bwi_prefetch_order *order, const bwi_gather_schedule *schedule)
{
    const bwi_gather_schedule *now = &order->schedule;
    if (!order->open) {
        return true;
    }
    if (now->epoch != schedule->epoch || order->ahead > 0) {
        return order->ahead > 0;
    }
    return schedule->first < now->first || (schedule->first == now->first && schedule->count == now->count);
}

bool bwi_prefetch_order_begin(bwi_prefetch_order *order, const bwi_gather_schedule *schedule)
{
    bool expected = order->expected_epoch == schedule->epoch && order->expected_first == schedule->first &&
                    order->schedule.tile == schedule->tile && order->schedule.lanes == schedule->lanes;
    int64_t end = schedule->first + schedule->count;
    if (schedule->first == 0) {
        order->ahead = 0;
    }
    if (end < order->count || schedule->first == 0 || order->size == 0) { /* what is resumed may begin with an epoch's last piece */
        order->size = schedule->count;
    }
    if (!expected || !is_before(order, schedule)) {
        order->schedule = *schedule;
        order->open = true;
        order->ahead = 0;
        rewind_piece(order);
    }
    order->expected_epoch = end < order->count || order->step < 0 ? schedule->epoch : schedule->epoch + order->step;
    order->expected_first = end < order->count ? end : 0;
    return expected;
}

/* Continues with the piece after the present one. */
static void next_piece(bwi_prefetch_order *order)
{
    bwi_gather_schedule *schedule = &order->schedule;
    schedule->first += schedule->count;
    if (schedule->first >= order->count) {
        if (order->step < 0 || order->ahead > 0) {
            order->open = false;
            return;
        }
        schedule->epoch += order->step;
        schedule->first = 0;
        order->ahead++;
    }
    schedule->count = order->count - schedule->first < order->size ? order->count - schedule->first : order->size;
    rewind_piece(order);
}

static int64_t own_lanes(const bwi_gather_schedule *schedule)
{
    return schedule->own_lanes > 0 ? schedule->own_lanes : schedule->lanes;
}

/* The number of the tile at the present indices. */
static int64_t tile_number(const bwi_prefetch_order *order)
{
    const bwi_gather_schedule *schedule = &order->schedule;
    return schedule->first_lane + order->wave * schedule->workers + order->lane + order->round * schedule->lanes;
}

static bool has_tile(const bwi_prefetch_order *order)
{
    return tile_number(order) < bwi_tiles_of(order->schedule.count, order->schedule.tile);
}

/* Returns the sample of the piece at the present indices; -1 if there is none. */
static int64_t sample_of(const bwi_prefetch_order *order)
{
    const bwi_gather_schedule *schedule = &order->schedule;
    if (order->wave * schedule->workers + order->lane >= own_lanes(schedule) || !has_tile(order)) {
        return -1;
    }
    int64_t first;
    int size;
    bwi_tile_at(schedule->count, schedule->tile, tile_number(order), &first, &size);
    return order->tile < (int64_t)1 << size ? first + order->tile : -1;
}

void bwi_prefetch_order_next(bwi_prefetch_order *order)
{
    const bwi_gather_schedule *schedule = &order->schedule;
    if (++order->tile < schedule->tile && sample_of(order) >= 0) {
        return;
    }
    order->tile = 0;
    if (++order->lane < schedule->workers) {
        return;
    }
    order->lane = 0;
    order->round++;
    if (has_tile(order)) {
        return;
    }
    order->round = 0;
    order->wave++;
    if (order->wave * schedule->workers >= own_lanes(schedule) || !has_tile(order)) {
        next_piece(order);
    }
}

bool bwi_prefetch_order_peek(bwi_prefetch_order *order, int *epoch, int64_t *position)
{
    while (order->open) {
        int64_t sample = sample_of(order);
        if (sample >= 0) {
            *epoch = order->schedule.epoch;
            *position = order->schedule.first + sample;
            return true;
        }
        bwi_prefetch_order_next(order);
    }
    return false;
}
