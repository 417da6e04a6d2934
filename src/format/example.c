/*
 * TFRecord files, and the one message in them that is read: tf.train.Example in protobuf's wire format.
 *
 *     record:  length (8 bytes), masked CRC-32C of the length (4), data, masked CRC-32C of the data (4); little-endian
 *     Example: 1 Features: 1 (repeated) entry: 1 key, 2 Feature: 1 BytesList | 2 FloatList | 3 Int64List: 1 (repeated) value
 *
 * Values are used where they stand: nothing is allocated, and every length is checked against the message around it. As
 * protobuf has it, of what is given twice the last counts, numbers may be packed or not, and unknown fields are passed over.
 */
#include "format/internal.h"

#include <string.h>

enum { HEAD = 12, TAIL = 4, WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

static bw_status fail(char *error, bw_status status, const char *format, ...) __attribute__((format(printf, 3, 4)));

static bw_status fail(char *error, bw_status status, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    bwi_format(error, BWI_EXAMPLE_ERROR, format, arguments);
    va_end(arguments);
    return status;
}

/* ---- Records ---- */

static uint64_t little(const unsigned char *at, int bytes)
{
    uint64_t value = 0;
    for (int i = bytes - 1; i >= 0; i--) {
        value = value << 8 | at[i];
    }
    return value;
}

static bool right_sum(const unsigned char *bytes, size_t size, const unsigned char *sum)
{
    uint32_t crc = bwi_crc32c(bytes, size);
    return (uint32_t)((crc >> 15 | crc << 17) + 0xa282ead8u) == (uint32_t)little(sum, 4);
}

bw_status bwi_record_next(const bwi_bytes *file, size_t *offset, bwi_bytes *record, char *error)
{
    size_t left = file->size - *offset;
    const unsigned char *at = file->data + *offset;
    error[0] = 0;
    if (left == 0) {
        return BW_OUT_OF_RANGE;
    }
    if (left < HEAD + TAIL) {
        return fail(error, BW_DATA_LOSS, "the file ends within a record");
    }
    if (!right_sum(at, 8, at + 8)) {
        return fail(error, BW_DATA_LOSS, "the checksum of the record's length is wrong%s",
                    *offset ? "" : ": not a TFRecord file, or compressed");
    }
    uint64_t length = little(at, 8);
    if (length > left - HEAD - TAIL) {
        return fail(error, BW_DATA_LOSS, "a record of %llu bytes, but only %zu are left in the file", (unsigned long long)length,
                    left - HEAD - TAIL);
    }
    *record = (bwi_bytes){.data = at + HEAD, .size = (size_t)length};
    *offset += HEAD + (size_t)length + TAIL;
    return BW_OK;
}

size_t bwi_record_size(const bwi_bytes *file, size_t offset)
{
    const unsigned char *at = file->data + offset;
    if (file->size - offset < HEAD || !right_sum(at, 8, at + 8)) {
        return HEAD;
    }
    uint64_t length = little(at, 8);
    return length < SIZE_MAX / 2 ? HEAD + (size_t)length + TAIL : SIZE_MAX;
}

bool bwi_record_intact(const bwi_bytes *record)
{
    return right_sum(record->data, record->size, record->data + record->size);
}

/* ---- Wire format ---- */

typedef struct wire {
    const unsigned char *at, *end;
    bool damaged;
} wire;

typedef struct wire_field {
    uint64_t number;
    int type;
    uint64_t value;  /* of a varint */
    bwi_bytes bytes; /* of all others */
} wire_field;

static wire wire_of(const bwi_bytes *message)
{
    return (wire){.at = message->data, .end = message->data + message->size};
}

static bool next_varint(wire *w, uint64_t *value)
{
    *value = 0;
    for (int shift = 0; shift < 64 && w->at < w->end; shift += 7) {
        unsigned char byte = *w->at++;
        *value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            return true;
        }
    }
    w->damaged = true;
    return false;
}

static bool next_bytes(wire *w, uint64_t size, bwi_bytes *bytes)
{
    if (size > (uint64_t)(w->end - w->at)) {
        w->damaged = true;
        return false;
    }
    *bytes = (bwi_bytes){.data = w->at, .size = (size_t)size};
    w->at += size;
    return true;
}

/* False at the end of the message, or where it is damaged. */
static bool next_field(wire *w, wire_field *field)
{
    uint64_t key, size;
    if (w->at == w->end || !next_varint(w, &key)) {
        return false;
    }
    field->number = key >> 3;
    field->type = (int)(key & 7);
    field->bytes = (bwi_bytes){.size = 0};
    switch (field->type) {
    case WIRE_VARINT:
        return next_varint(w, &field->value);
    case WIRE_64:
        return next_bytes(w, 8, &field->bytes);
    case WIRE_32:
        return next_bytes(w, 4, &field->bytes);
    case WIRE_BYTES:
        return next_varint(w, &size) && next_bytes(w, size, &field->bytes);
    default:
        w->damaged = true;
        return false;
    }
}

/* Finds the next field with this number whose value is bytes. */
static bool next_part(wire *w, uint64_t number, bwi_bytes *bytes)
{
    wire_field field;
    while (next_field(w, &field)) {
        if (field.number == number && field.type == WIRE_BYTES) {
            *bytes = field.bytes;
            return true;
        }
    }
    return false;
}

/* ---- Lists ---- */

/* Counts the values of the list's kind in a part of it; -1: it is damaged. */
static int64_t count_part(bwi_list_kind kind, const wire_field *field)
{
    bool packed = field->type == WIRE_BYTES;
    if (field->number != 1) {
        return 0;
    }
    if (kind == BWI_LIST_BYTES) {
        return packed ? 1 : -1;
    }
    if (kind == BWI_LIST_FLOAT) {
        return packed ? (field->bytes.size % 4 ? -1 : (int64_t)(field->bytes.size / 4)) : field->type == WIRE_32 ? 1 : -1;
    }
    if (!packed) {
        return field->type == WIRE_VARINT ? 1 : -1;
    }
    wire w = wire_of(&field->bytes);
    int64_t count = 0;
    uint64_t value;
    while (w.at < w.end && next_varint(&w, &value)) {
        count++;
    }
    return w.damaged ? -1 : count;
}

static bool count_list(bwi_list *list)
{
    wire w = wire_of(&list->bytes);
    wire_field field;
    list->count = 0;
    while (next_field(&w, &field)) {
        int64_t count = count_part(list->kind, &field);
        if (count < 0) {
            return false;
        }
        list->count += count;
    }
    return !w.damaged;
}

static unsigned char *put_whole(unsigned char *to, uint64_t value)
{
    memcpy(to, &value, sizeof value);
    return to + sizeof value;
}

void bwi_list_read(const bwi_list *list, void *to)
{
    unsigned char *at = to;
    wire w = wire_of(&list->bytes);
    wire_field field;
    while (next_field(&w, &field)) {
        if (field.number != 1) {
            continue;
        }
        if (list->kind == BWI_LIST_FLOAT) {
            for (size_t i = 0; i < field.bytes.size; i += 4, at += 4) {
                uint32_t bits = (uint32_t)little(field.bytes.data + i, 4);
                memcpy(at, &bits, sizeof bits);
            }
        } else if (field.type == WIRE_VARINT) {
            at = put_whole(at, field.value);
        } else {
            wire packed = wire_of(&field.bytes);
            uint64_t value;
            while (packed.at < packed.end && next_varint(&packed, &value)) {
                at = put_whole(at, value);
            }
        }
    }
}

bwi_bytes bwi_list_bytes(const bwi_list *list)
{
    wire w = wire_of(&list->bytes);
    bwi_bytes bytes = {.data = (const unsigned char *)"", .size = 0};
    next_part(&w, 1, &bytes);
    return bytes;
}

/* ---- Examples ---- */

static bool read_feature(const bwi_bytes *feature, bwi_list *list)
{
    wire w = wire_of(feature);
    wire_field field;
    *list = (bwi_list){.kind = BWI_LIST_NONE};
    while (next_field(&w, &field)) {
        if (field.type == WIRE_BYTES && field.number >= BWI_LIST_BYTES && field.number <= BWI_LIST_INT64) {
            *list = (bwi_list){.kind = (bwi_list_kind)field.number, .bytes = field.bytes};
        }
    }
    return !w.damaged && (list->kind == BWI_LIST_NONE || count_list(list));
}

/* Reads a feature's name and value; false: they are damaged. */
static bool read_entry(const bwi_bytes *entry, bwi_bytes *key, bwi_bytes *value)
{
    wire w = wire_of(entry);
    wire_field field;
    *key = *value = (bwi_bytes){.data = entry->data, .size = 0};
    while (next_field(&w, &field)) {
        if (field.type == WIRE_BYTES && field.number == 1) {
            *key = field.bytes;
        } else if (field.type == WIRE_BYTES && field.number == 2) {
            *value = field.bytes;
        }
    }
    return !w.damaged;
}

bw_status bwi_example_find(const bwi_bytes *record, const char *name, bwi_list *list, char *error)
{
    size_t length = strlen(name);
    wire example = wire_of(record);
    bwi_bytes features, entry, key, value;
    bool found = false, damaged = false;
    char quoted[BWI_QUOTE_SIZE];
    error[0] = 0;
    while (!damaged && next_part(&example, 1, &features)) {
        wire w = wire_of(&features);
        while (!damaged && next_part(&w, 1, &entry)) {
            damaged = !read_entry(&entry, &key, &value);
            if (damaged || key.size != length || memcmp(key.data, name, length) != 0) {
                continue;
            }
            found = true;
            if (!read_feature(&value, list)) {
                return fail(error, BW_DATA_LOSS, "the feature %s is damaged", bwi_quote(quoted, name, length));
            }
        }
        damaged = damaged || w.damaged;
    }
    if (damaged || example.damaged) {
        return fail(error, BW_DATA_LOSS, "the record is not a tf.train.Example, or is damaged");
    }
    return found ? BW_OK : BW_NOT_FOUND;
}

void bwi_example_names(const bwi_bytes *record, char *text, size_t capacity)
{
    wire example = wire_of(record);
    bwi_bytes features, entry, key, value;
    size_t used = 0;
    text[0] = 0;
    while (next_part(&example, 1, &features)) {
        wire w = wire_of(&features);
        while (next_part(&w, 1, &entry) && read_entry(&entry, &key, &value)) {
            char quoted[BWI_QUOTE_SIZE];
            bwi_quote(quoted, key.data, key.size);
            if (used + strlen(quoted) + 8 > capacity) {
                snprintf(text + used, capacity - used, " ...");
                return;
            }
            used += (size_t)snprintf(text + used, capacity - used, "%s%s", used ? ", " : "", quoted);
        }
    }
}
