/* How a piece of the data is cut into tiles: full ones first, then the remainder in powers of two, the largest first. */
#include "data/data.h"

void bwi_tile_at(int64_t count, int64_t tile, int64_t k, int64_t *first, int *size)
{
    *size = __builtin_ctzll((unsigned long long)tile);
    int64_t full = count >> *size;
    if (k < full) {
        *first = k * tile;
        return;
    }
    *first = full * tile;
    int64_t last = count & (tile - 1);
    for (;; k--) {
        *size = 63 - __builtin_clzll((unsigned long long)last);
        if (k == full) {
            return;
        }
        *first += (int64_t)1 << *size;
        last -= (int64_t)1 << *size;
    }
}
