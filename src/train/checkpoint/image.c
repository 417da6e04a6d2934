/*
 * A checkpoint in memory: the file of values, in the format of safetensors, and the manifest. Everything is allocated when a run
 * begins, so that neither the copy of a step's state nor the thread that writes it can run out of memory.
 *
 *   values    8 bytes: length of the header; the header, JSON, filled up with blanks to a fixed length; the values
 *   manifest  JSON, whose last member is the checksum of all bytes before it
 */
#include "train/checkpoint/checkpoint.h"

#include <inttypes.h>
#include <string.h>

static const char blank_sum[] = "00000000";

static const char *dtype_name(bw_dtype dtype)
{
    static const char *const names[] = {[BW_U8] = "U8", [BW_I64] = "I64", [BW_F32] = "F32", [BW_F64] = "F64"};
    return (size_t)dtype < BWI_COUNT(names) && names[dtype] ? names[dtype] : "";
}

const char *bwi_checkpoint_file(bool between_epochs)
{
    return between_epochs ? "epoch.safetensors" : "step.safetensors";
}

/* ---- Opening ---- */

static void describe_value(bwi_json_writer *writer, const bwi_state_value *value, size_t offset)
{
    bwi_json_begin(writer, value->name, '{');
    bwi_json_put_text(writer, "dtype", dtype_name(value->dtype));
    bwi_json_begin(writer, "shape", '[');
    for (int i = 0; i < value->ndim; i++) {
        bwi_json_put_whole(writer, NULL, value->shape[i]);
    }
    bwi_json_end(writer);
    bwi_json_begin(writer, "data_offsets", '[');
    bwi_json_put_whole(writer, NULL, (int64_t)offset);
    bwi_json_put_whole(writer, NULL, (int64_t)(offset + bwi_state_bytes(value)));
    bwi_json_end(writer);
    bwi_json_end(writer);
}

static bool write_names(bwi_checkpoint_image *image)
{
    bwi_json_writer writer = {.text = {.ctx = image->ctx}};
    bwi_json_begin(&writer, NULL, '{');
    for (int k = 0; k < image->state.count; k++) {
        if (k != image->grows) {
            describe_value(&writer, &image->state.values[k], image->offsets[k]);
        }
    }
    bwi_json_end(&writer);
    image->names = writer.text;
    return !image->names.failed;
}

/* Everything but the counters, with a place for each checksum. */
static bool write_tail(bwi_checkpoint_image *image, const bwi_checkpoint_header *header)
{
    bwi_json_writer writer = {.text = {.ctx = image->ctx}};
    char seed[24];
    bwi_print(seed, sizeof seed, "%" PRIu64, header->seed);
    bwi_json_begin(&writer, NULL, '{');
    bwi_json_put_text(&writer, "every", header->every);
    bwi_json_put_text(&writer, "seed", seed);
    bwi_json_put_text(&writer, "instruction_set", bwi_kernels_of(image->ctx)->name);
    bwi_json_begin(&writer, "plan", '{');
    bwi_json_put_whole(&writer, "tile", header->tile);
    bwi_json_put_whole(&writer, "lanes", header->lanes);
    bwi_json_put_whole(&writer, "workers", header->workers);
    bwi_json_end(&writer);
    bwi_identity_write(header->identity, &writer);
    bwi_json_begin(&writer, "checksums", '{');
    for (int k = 0; k < image->state.count; k++) {
        bwi_json_put_text(&writer, image->state.values[k].name, blank_sum);
        image->marks[k] = writer.text.length - sizeof blank_sum;
    }
    bwi_json_end(&writer);
    bwi_json_end(&writer);
    image->tail = writer.text;
    return !image->tail.failed;
}

/* Gives every value its place, without gaps, which no checksum would cover: the widest elements come first, so that all of them are
 * aligned, and the value that grows comes last. Returns the bytes of all. */
static size_t place_values(bwi_checkpoint_image *image, int64_t most)
{
    size_t at = 0;
    for (size_t width = 8; width > 0; width /= 2) {
        for (int k = 0; k < image->state.count; k++) {
            if (k != image->grows && bwi_dtype_size(image->state.values[k].dtype) == width) {
                image->offsets[k] = at;
                at = bwi_size_add(at, bwi_state_bytes(&image->state.values[k]));
            }
        }
    }
    if (image->grows >= 0) {
        image->state.values[image->grows].shape[0] = most;
        image->offsets[image->grows] = at;
        at = bwi_size_add(at, bwi_state_bytes(&image->state.values[image->grows]));
    }
    return at;
}

bw_status bwi_checkpoint_image_open(bwi_checkpoint_image *image, bwi_state *state, int grows, int64_t most,
                                    const bwi_checkpoint_header *header)
{
    enum { COUNTERS = 512, GROWING = 256 };
    bw_context *ctx = state->ctx;
    *image = (bwi_checkpoint_image){.ctx = ctx, .state = *state, .grows = grows};
    *state = (bwi_state){.ctx = ctx};
    image->offsets = bwi_allocate(ctx, (size_t)image->state.count + 1, sizeof *image->offsets);
    image->marks = bwi_allocate(ctx, (size_t)image->state.count + 1, sizeof *image->marks);
    if (image->state.failed || !image->offsets || !image->marks) {
        return image->state.failed ? bwi_fail(ctx, BW_RESOURCE_EXHAUSTED, "no memory for a checkpoint") : BW_RESOURCE_EXHAUSTED;
    }
    size_t data = place_values(image, most);
    if (!write_names(image) || !write_tail(image, header)) {
        return bwi_fail(ctx, BW_RESOURCE_EXHAUSTED, "no memory for the names of a checkpoint");
    }
    image->head = bwi_size_align(8 + image->names.length + GROWING, 64);
    image->capacity = bwi_size_add(image->head, data);
    image->manifest_capacity = image->tail.length + COUNTERS;
    image->bytes = bwi_try_allocate_lazily(ctx, image->capacity);
    image->manifest = bwi_allocate(ctx, image->manifest_capacity, 1);
    if (!image->bytes || !image->manifest) {
        char text[32];
        return bwi_fail(ctx, BW_RESOURCE_EXHAUSTED, "no memory for a checkpoint of %s", bwi_format_bytes(text, image->capacity));
    }
    return BW_OK;
}

void bwi_checkpoint_image_free(bwi_checkpoint_image *image)
{
    if (image->ctx) {
        bwi_state_free(&image->state);
        bwi_release(image->ctx, image->offsets);
        bwi_release(image->ctx, image->marks);
        bwi_text_free(&image->names);
        bwi_text_free(&image->tail);
        bwi_release(image->ctx, image->bytes);
        bwi_release(image->ctx, image->manifest);
    }
    *image = (bwi_checkpoint_image){0};
}

/* ---- One checkpoint ---- */

void bwi_checkpoint_image_take(bwi_checkpoint_image *image, int64_t rows, const bwi_checkpoint_facts *facts)
{
    size_t end = 0;
    for (int k = 0; k < image->state.count; k++) {
        bwi_state_value *value = &image->state.values[k];
        if (k == image->grows) {
            value->shape[0] = rows;
        }
        bwi_state_read(value, image->bytes + image->head + image->offsets[k]);
        size_t after = image->offsets[k] + bwi_state_bytes(value);
        end = after > end ? after : end;
    }
    image->size = image->head + end;
    image->facts = *facts;
}

/* Blanks between the header's JSON and its end are part of the format. */
static void write_head(bwi_checkpoint_image *image)
{
    char *text = (char *)image->bytes + 8;
    size_t capacity = image->head - 8;
    uint64_t length = capacity;
    for (int i = 0; i < 8; i++) {
        image->bytes[i] = (unsigned char)(length >> 8 * i);
    }
    int used = 0;
    if (image->grows >= 0) {
        const bwi_state_value *value = &image->state.values[image->grows];
        size_t offset = image->offsets[image->grows];
        used = bwi_print(text, capacity,
                         "{\"%s\":{\"dtype\":\"%s\",\"shape\":[%" PRId64 ",%" PRId64 "],\"data_offsets\":[%zu,%zu]},", value->name,
                         dtype_name(value->dtype), value->shape[0], value->shape[1], offset, offset + bwi_state_bytes(value));
    }
    const char *names = image->names.bytes + (image->grows >= 0 ? 1 : 0);
    size_t size = image->names.length - (image->grows >= 0 ? 1 : 0);
    memcpy(text + used, names, size);
    memset(text + (size_t)used + size, ' ', capacity - (size_t)used - size);
}

static void put_sum(char *to, uint32_t sum)
{
    char text[sizeof blank_sum];
    bwi_print(text, sizeof text, "%08" PRIx32, sum);
    memcpy(to, text, sizeof text - 1);
}

/* The checksum of the manifest itself ends it, so that a file that was cut off has none. */
void bwi_checkpoint_image_finish(bwi_checkpoint_image *image)
{
    char seconds[BWI_SHORTEST_SIZE];
    write_head(image);
    for (int k = 0; k < image->state.count; k++) {
        const unsigned char *data = image->bytes + image->head + image->offsets[k];
        put_sum(image->tail.bytes + image->marks[k], bwi_crc32c(data, bwi_state_bytes(&image->state.values[k])));
    }
    const bwi_checkpoint_facts *facts = &image->facts;
    int used = bwi_print(
        image->manifest, image->manifest_capacity,
        "{\"format\": 1, \"version\": \"%s\", \"step\": %" PRId64 ", \"epoch\": %" PRId64
        ", \"seconds\": %s,\n\"file\": \"%s\", \"bytes\": %zu, \"header_bytes\": %zu, \"header_checksum\": \"%08" PRIx32 "\",\n",
        bw_version(), facts->step, facts->epoch, bwi_shortest(seconds, facts->seconds), bwi_checkpoint_file(facts->between_epochs),
        image->size, image->head, bwi_crc32c(image->bytes, image->head));
    memcpy(image->manifest + used, image->tail.bytes + 1, image->tail.length - 2);
    size_t size = (size_t)used + image->tail.length - 2;
    uint32_t sum = bwi_crc32c(image->manifest, size);
    size +=
        (size_t)bwi_print(image->manifest + size, image->manifest_capacity - size, ",\n\"checksum\": \"%08" PRIx32 "\"}\n", sum);
    image->manifest_size = size;
}
