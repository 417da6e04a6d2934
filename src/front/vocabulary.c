/* A table of distinct tokens: their bytes one after another, and open addressing by hash. Everything grows by doubling. */
#include "front/internal.h"

#include <string.h>

bw_text bwi_vocabulary_text(const bwi_vocabulary *vocabulary, int64_t number)
{
    const bwi_entry *entry = &vocabulary->entries[number];
    return (bw_text){.bytes = vocabulary->bytes + entry->at, .size = entry->size};
}

size_t bwi_vocabulary_bytes(const bwi_vocabulary *vocabulary)
{
    return vocabulary->capacity + (size_t)vocabulary->entry_capacity * sizeof *vocabulary->entries +
           (size_t)vocabulary->slot_count * sizeof *vocabulary->slots;
}

void bwi_vocabulary_free(bwi_vocabulary *vocabulary)
{
    bwi_release(vocabulary->ctx, vocabulary->bytes);
    bwi_release(vocabulary->ctx, vocabulary->entries);
    bwi_release(vocabulary->ctx, vocabulary->slots);
    *vocabulary = (bwi_vocabulary){.ctx = vocabulary->ctx};
}

static bool is_token(const bwi_vocabulary *v, const bwi_entry *entry, const bwi_token *token)
{
    bwi_letters letters = bwi_letters_of(token);
    const char *bytes = v->bytes + entry->at;
    for (int64_t i = 0; i < entry->size; i++) {
        if (bwi_letter_next(&letters) != (unsigned char)bytes[i]) {
            return false;
        }
    }
    return true;
}

int64_t bwi_vocabulary_find(const bwi_vocabulary *v, const bwi_token *token, uint64_t hash, size_t size)
{
    int64_t mask = v->slot_count - 1;
    for (int64_t slot = (int64_t)hash & mask; v->slot_count && v->slots[slot]; slot = (slot + 1) & mask) {
        const bwi_entry *entry = &v->entries[v->slots[slot] - 1];
        if (entry->hash == hash && (size_t)entry->size == size && is_token(v, entry, token)) {
            return v->slots[slot] - 1;
        }
    }
    return -1;
}

static bwi_token token_of(const bw_text *text)
{
    bwi_token token = {.count = 1};
    token.pieces[0] = (bwi_run){text->bytes, text->bytes + text->size};
    return token;
}

int64_t bwi_vocabulary_find_text(const bwi_vocabulary *v, const bw_text *text)
{
    bwi_token token = token_of(text);
    return bwi_vocabulary_find(v, &token, bwi_bytes_hash(text->bytes, (size_t)text->size), (size_t)text->size);
}

/* Makes room for one more entry with `size` bytes; slots stay at most half full. */
static bool make_room(bwi_vocabulary *v, size_t size)
{
    if (v->count == v->entry_capacity) {
        int64_t larger = v->entry_capacity ? 2 * v->entry_capacity : 64;
        bwi_entry *entries = bwi_grow(v->ctx, v->entries, (size_t)v->count, (size_t)larger, sizeof *entries);
        if (!entries) {
            return false;
        }
        v->entries = entries;
        v->entry_capacity = larger;
    }
    if (v->capacity - v->used < size) {
        size_t larger = bwi_size_add(bwi_size_multiply(v->capacity, 2), bwi_size_add(size, 1024));
        char *bytes = bwi_grow(v->ctx, v->bytes, v->used, larger, 1);
        if (!bytes) {
            return false;
        }
        v->bytes = bytes;
        v->capacity = larger;
    }
    if (2 * (v->count + 1) <= v->slot_count) {
        return true;
    }
    int64_t larger = v->slot_count ? 2 * v->slot_count : 128;
    int64_t *slots = bwi_allocate(v->ctx, (size_t)larger, sizeof *slots);
    for (int64_t i = 0; slots && i < v->count; i++) {
        int64_t slot = (int64_t)v->entries[i].hash & (larger - 1);
        while (slots[slot]) {
            slot = (slot + 1) & (larger - 1);
        }
        slots[slot] = i + 1;
    }
    if (!slots) {
        return false;
    }
    bwi_release(v->ctx, v->slots);
    v->slots = slots;
    v->slot_count = larger;
    return true;
}

int64_t bwi_vocabulary_add(bwi_vocabulary *v, const bwi_token *token, uint64_t hash, size_t size)
{
    if (!make_room(v, size)) {
        return -1;
    }
    int64_t mask = v->slot_count - 1, slot = (int64_t)hash & mask;
    while (v->slots[slot]) {
        slot = (slot + 1) & mask;
    }
    v->entries[v->count] = (bwi_entry){.hash = hash, .at = v->used, .size = (int64_t)size};
    bwi_token_copy(token, v->bytes + v->used);
    v->used += size;
    v->slots[slot] = ++v->count;
    return v->count - 1;
}

bool bwi_vocabulary_add_text(bwi_vocabulary *v, const bw_text *text)
{
    bwi_token token = token_of(text);
    return bwi_vocabulary_add(v, &token, bwi_bytes_hash(text->bytes, (size_t)text->size), (size_t)text->size) >= 0;
}
