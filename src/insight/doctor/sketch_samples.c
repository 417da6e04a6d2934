/*
 * A set of the samples that were seen, by the hashes of their inputs, in bounded memory. All copies of a sample have one hash, so a
 * subset that is chosen by the hash keeps the share of duplicates: an unbiased estimate, however many samples there are.
 */
#include "insight/doctor/doctor.h"

static bool kept(const bwi_seen *seen, uint64_t hash)
{
    return (hash & (((uint64_t)1 << seen->level) - 1)) == 0;
}

/* The lowest bits are those of the level, so places come from the highest. */
static bwi_seen_entry *place_of(bwi_seen_entry *entry, int64_t capacity, uint64_t hash)
{
    uint64_t mask = (uint64_t)capacity - 1, at = (hash >> 32) & mask;
    while (entry[at].hash != 0 && entry[at].hash != hash) {
        at = (at + 1) & mask;
    }
    return &entry[at];
}

/* Moves everything that is kept to a table of this capacity. */
static bool rebuild(bwi_seen *seen, int64_t capacity)
{
    bwi_seen_entry *entry = bwi_allocate(seen->ctx, (size_t)capacity, sizeof *entry);
    if (!entry) {
        return false;
    }
    seen->used = 0;
    for (int64_t i = 0; i < seen->capacity; i++) {
        if (seen->entry[i].hash != 0 && kept(seen, seen->entry[i].hash)) {
            *place_of(entry, capacity, seen->entry[i].hash) = seen->entry[i];
            seen->used++;
        }
    }
    bwi_release(seen->ctx, seen->entry);
    seen->entry = entry;
    seen->capacity = capacity;
    return true;
}

/* Makes room: a larger table, or, at its largest, a level that keeps half of the samples. */
static bool make_room(bwi_seen *seen)
{
    enum { SMALLEST = 1024 };
    while (2 * seen->used >= seen->capacity) {
        int64_t larger = seen->capacity == 0 ? SMALLEST : 2 * seen->capacity;
        bool full = larger > seen->most;
        seen->level += full;
        if (!rebuild(seen, full ? seen->capacity : larger)) {
            return false;
        }
    }
    return true;
}

bool bwi_seen_add(bwi_seen *seen, uint64_t hash, float label)
{
    hash = hash == 0 ? (uint64_t)1 << 63 : hash;
    if (!kept(seen, hash)) {
        return true;
    }
    if (!make_room(seen)) {
        return false;
    }
    if (!kept(seen, hash)) { /* by the level that made room */
        return true;
    }
    bwi_seen_entry *entry = place_of(seen->entry, seen->capacity, hash);
    if (entry->count == 0) {
        *entry = (bwi_seen_entry){.hash = hash, .label = label};
        seen->used++;
    }
    entry->conflict = entry->conflict || entry->label < label || entry->label > label;
    entry->count++;
    return true;
}

int bwi_seen_find(const bwi_seen *seen, uint64_t hash)
{
    hash = hash == 0 ? (uint64_t)1 << 63 : hash;
    if (!kept(seen, hash)) {
        return -1;
    }
    return seen->capacity > 0 && place_of(seen->entry, seen->capacity, hash)->hash == hash;
}

void bwi_seen_free(bwi_seen *seen)
{
    bwi_release(seen->ctx, seen->entry);
    seen->entry = NULL;
}
