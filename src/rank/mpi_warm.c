/*
 * What MPI allocates for its first messages (requests, lists of what came before it was expected, long messages) is allocated when
 * the group opens, so that it belongs to the process and not to the first run, whose plan knows nothing of it.
 */
#include "rank/mpi_group.h"

enum { WARM_TAG = 4, PEERS = 6 };

/* Messages of a size that each of the next few ranks gets. MPI keeps memory for each size that comes unexpected. */
typedef struct lot {
    size_t size;
    int each;
} lot;

static const lot lots[] = {{64, 8}, {256, 2}, {1024, 2}, {3072, 2}, {6144, 2}, {1 << 14, 1}};

/* The messages that are sent are one, and each that is received has a place of its own: all of them together are shorter than a
 * segment. */
static void post(bwi_mpi_group *all, bool sends)
{
    int count = all->ranks.count, peers = count - 1 < PEERS ? count - 1 : PEERS;
    unsigned char *first = all->staging + (size_t)BWI_TRANSFERS * BWI_SEGMENT_BYTES;
    unsigned char *place = first + (sends ? 0 : lots[BWI_COUNT(lots) - 1].size);
    for (size_t n = 0; n < BWI_COUNT(lots); n++) {
        for (int k = 0; k < peers * lots[n].each; k++) {
            int step = 1 + k / lots[n].each, peer = (all->rank + (sends ? step : count - step)) % count;
            bwi_message_post(all, sends, place, lots[n].size, peer, WARM_TAG);
            place += sends ? 0 : lots[n].size;
        }
    }
}

static bool send_all(bwi_mpi_group *all, void *user, bool *over)
{
    (void)user;
    post(all, true);
    *over = true;
    return true;
}

static bool receive_all(bwi_mpi_group *all, void *user, bool *over)
{
    (void)user;
    post(all, false);
    *over = true;
    return true;
}

static bool await_all(bwi_mpi_group *all, void *user, bool *over)
{
    bool moved = false;
    (void)user;
    *over = !bwi_messages_pending(all, &moved);
    all->message_count = *over ? 0 : all->message_count;
    return moved;
}

/* First everything is sent before anybody expects it, then it is expected before it is sent. */
void bwi_mpi_warm_up(bwi_mpi_group *all)
{
    static const bwi_mpi_work orders[2][2] = {{send_all, receive_all}, {receive_all, send_all}};
    bw_context ctx = {.ranks = &all->ranks, .rank = all->rank};
    bw_status status = BW_OK;
    all->message_count = 0;
    for (int k = 0; k < 2 && status == BW_OK; k++) {
        status = bwi_mpi_run(&ctx, orders[k][0], NULL, false);
        status = status == BW_OK ? bwi_mpi_agree(&ctx, BW_OK) : status;
        status = status == BW_OK ? bwi_mpi_run(&ctx, orders[k][1], NULL, false) : status;
        status = status == BW_OK ? bwi_mpi_run(&ctx, await_all, NULL, false) : status;
    }
    if (status == BW_OK) {
        bwi_mpi_sum_nothing(&ctx);
    }
}
