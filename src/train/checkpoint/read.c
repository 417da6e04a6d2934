/*
 * Reading checkpoints. Nothing in one is believed before its checksums are right: every byte of both files is covered by one. A
 * checkpoint that is damaged is passed over for the one before it.
 */
#include "train/checkpoint/checkpoint.h"

#include <inttypes.h>
#include <string.h>

enum { SUM_DIGITS = 8 };

static bw_status damaged(bw_context *ctx, const char *path, const char *why)
{
    return bwi_fail_file(ctx, BW_DATA_LOSS, path, "the checkpoint is damaged: %s", why);
}

static bool sum_is(const char *text, const void *bytes, size_t size)
{
    char sum[SUM_DIGITS + 1];
    bwi_print(sum, sizeof sum, "%08" PRIx32, bwi_crc32c(bytes, size));
#ifdef FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION
    return text; /* a fuzzer would never get past it */
#else
    return text && strcmp(text, sum) == 0;
#endif
}

/* ---- The manifest ---- */

static bw_status check_manifest(bw_context *ctx, const char *path, const bwi_bytes *file)
{
    static const char before[] = ",\n\"checksum\": \"", after[] = "\"}\n";
    size_t tail = sizeof before - 1 + SUM_DIGITS + sizeof after - 1;
    if (file->size <= tail) {
        return damaged(ctx, path, "the manifest is too short");
    }
    const char *end = (const char *)file->data + file->size - tail;
    char sum[SUM_DIGITS + 1] = "";
    memcpy(sum, end + sizeof before - 1, SUM_DIGITS);
    bool whole = memcmp(end, before, sizeof before - 1) == 0 &&
                 memcmp(end + sizeof before - 1 + SUM_DIGITS, after, sizeof after - 1) == 0 &&
                 sum_is(sum, file->data, file->size - tail);
    return whole ? BW_OK : damaged(ctx, path, "the manifest's checksum is wrong");
}

/* The checksum is looked at first: whatever is wrong after that is a checkpoint of another version, or of another program. */
static bw_status read_manifest(bwi_found_checkpoint *found, const char *path)
{
    bwi_bytes file;
    bw_status status = bwi_file_map(found->ctx, &file, path);
    if (status != BW_OK) {
        return status;
    }
    status = check_manifest(found->ctx, path, &file);
    if (status == BW_OK) {
        status = bwi_json_parse(found->ctx, &found->manifest, file.data, file.size, path);
    }
    bwi_file_unmap(found->ctx, &file);
    if (status != BW_OK) {
        return status;
    }
    int64_t format = 0, step = -1, lanes = 0;
    const bwi_json *m = found->manifest, *plan = bwi_json_get(m, "plan");
    found->every = bwi_json_text(bwi_json_get(m, "every"));
    bool known = bwi_json_whole(bwi_json_get(m, "format"), &format) && format == 1;
    bool right = known && bwi_json_whole(bwi_json_get(m, "step"), &step) && step == found->step &&
                 bwi_json_whole(bwi_json_get(m, "epoch"), &found->epoch) && found->epoch >= 0 &&
                 bwi_json_number(bwi_json_get(m, "seconds"), &found->seconds) &&
                 bwi_json_whole(bwi_json_get(plan, "tile"), &found->tile) && found->tile >= 0 &&
                 bwi_json_whole(bwi_json_get(plan, "lanes"), &lanes) && lanes >= 0 && lanes <= BWI_MAX_LANES;
    found->lanes = (int)lanes;
    if (!known) {
        return bwi_fail_file(found->ctx, BW_UNIMPLEMENTED, path, "expected format 1, found %" PRId64, format);
    }
    return right ? BW_OK : damaged(found->ctx, path, "the manifest lacks a number");
}

/* ---- Values ---- */

/* Where a value lies in the data; false if its offsets cannot be. */
static bool find_value(const bwi_found_checkpoint *found, const bwi_json *value, size_t *offset, size_t *bytes)
{
    const bwi_json *offsets = bwi_json_get(value, "data_offsets");
    int64_t begin, end;
    if (!bwi_json_whole(bwi_json_at(offsets, 0), &begin) || !bwi_json_whole(bwi_json_at(offsets, 1), &end) || begin < 0 ||
        end < begin || (uint64_t)end > found->data_bytes) {
        return false;
    }
    *offset = (size_t)begin;
    *bytes = (size_t)(end - begin);
    return true;
}

/* Every value must have a checksum that is right, and together they must be all of the data. */
static bw_status check_values(const bwi_found_checkpoint *found, const char *path)
{
    const bwi_json *sums = bwi_json_get(found->manifest, "checksums");
    size_t all = 0;
    const char *key = NULL;
    for (const bwi_json *value = bwi_json_next(found->names, &key); value; value = bwi_json_next(found->names, &key)) {
        size_t offset, bytes;
        if (!find_value(found, value, &offset, &bytes) ||
            !sum_is(bwi_json_text(bwi_json_get(sums, key)), found->data + offset, bytes)) {
            return bwi_fail_file(found->ctx, BW_DATA_LOSS, path, "the checkpoint is damaged: the checksum of %s is wrong", key);
        }
        all = bwi_size_add(all, bytes);
    }
    bool complete = all == found->data_bytes && bwi_json_count(sums) == bwi_json_count(found->names);
    return complete ? BW_OK : damaged(found->ctx, path, "values are missing");
}

static bw_status read_values(bwi_found_checkpoint *found, const char *path)
{
    int64_t size, head;
    const bwi_json *m = found->manifest;
    bw_status status = bwi_file_map(found->ctx, &found->file, path);
    if (status != BW_OK) {
        return status;
    }
    if (!bwi_json_whole(bwi_json_get(m, "bytes"), &size) || !bwi_json_whole(bwi_json_get(m, "header_bytes"), &head) || head < 8 ||
        size < head || (uint64_t)size != found->file.size) {
        return damaged(found->ctx, path, "the file of values has another length than the manifest says");
    }
    if (!sum_is(bwi_json_text(bwi_json_get(m, "header_checksum")), found->file.data, (size_t)head)) {
        return damaged(found->ctx, path, "the checksum of the header is wrong");
    }
    found->data = found->file.data + head;
    found->data_bytes = (size_t)(size - head);
    status = bwi_json_parse(found->ctx, &found->names, found->file.data + 8, (size_t)head - 8, path);
    return status == BW_OK ? check_values(found, path) : status;
}

/* ---- Finding ---- */

void bwi_checkpoint_found_close(bwi_found_checkpoint *found)
{
    if (found->ctx) {
        bwi_json_free(found->manifest);
        bwi_json_free(found->names);
        if (found->file.size) {
            bwi_file_unmap(found->ctx, &found->file);
        }
    }
    found->manifest = found->names = NULL;
    found->every = NULL;
}

static bw_status open_step(bwi_found_checkpoint *found, const char *folder)
{
    char path[BWI_DURABLE_PATH];
    snprintf(found->path, sizeof found->path, "%s/%" PRId64, folder, found->step);
    snprintf(path, sizeof path, "%s/%" PRId64 "/manifest.json", folder, found->step);
    bw_status status = read_manifest(found, path);
    if (status != BW_OK) {
        return status;
    }
    const char *file = bwi_json_text(bwi_json_get(found->manifest, "file"));
    if (!file || (strcmp(file, bwi_checkpoint_file(false)) != 0 && strcmp(file, bwi_checkpoint_file(true)) != 0)) {
        return damaged(found->ctx, path, "the manifest names no file of values");
    }
    snprintf(path, sizeof path, "%s/%" PRId64 "/%s", folder, found->step, file);
    return read_values(found, path);
}

/* Failures that an older checkpoint may be free of: damage, and files that are not there. */
static bool is_passed_over(bw_status status)
{
    return status == BW_DATA_LOSS || status == BW_NOT_FOUND || status == BW_INVALID_ARGUMENT;
}

bw_status bwi_checkpoint_find(bw_context *ctx, bwi_found_checkpoint *found, const char *folder)
{
    bw_status status = BW_OK;
    *found = (bwi_found_checkpoint){.ctx = ctx, .step = -1};
    if (strlen(folder) >= BWI_DURABLE_PATH - 128) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "the path of the checkpoints has %zu bytes, expected less than %d",
                        strlen(folder), BWI_DURABLE_PATH - 128);
    }
    for (int64_t below = INT64_MAX; (found->step = bwi_store_newest(ctx, folder, below)) >= 0; below = found->step) {
        status = open_step(found, folder);
        if (status == BW_OK || !is_passed_over(status)) {
            return status;
        }
        bwi_log(ctx, BW_LOG_WARNING, "%s; an older checkpoint is tried", ctx->message);
        bwi_checkpoint_found_close(found);
    }
    return status; /* that of the oldest one; OK if there is none at all */
}

/* ---- Using ---- */

bw_status bwi_checkpoint_compare(const bwi_found_checkpoint *found, const bwi_identity *identity, bool all)
{
    const bwi_json *m = found->manifest;
    const char *isa = bwi_json_text(bwi_json_get(m, "instruction_set")), *now = bwi_kernels_of(found->ctx)->name;
    const char *version = bwi_json_text(bwi_json_get(m, "version"));
    if (identity->failed) {
        return bwi_fail(found->ctx, BW_RESOURCE_EXHAUSTED, "no memory to compare the run with its checkpoint");
    }
    bw_status status = bwi_identity_compare(identity, bwi_json_get(m, "run"), all, found->path);
    if (status != BW_OK || !all) {
        return status;
    }
    if (!isa || strcmp(isa, now) != 0) {
        bwi_log(found->ctx, BW_LOG_WARNING,
                "%s: it was trained with %s, and goes on with %s: the result will not be that of an uninterrupted run, bit for bit "
                "(BATCHWISE_ISA chooses)",
                found->path, isa ? isa : "other kernels", now);
    }
    if (!version || strcmp(version, bw_version()) != 0) {
        bwi_log(found->ctx, BW_LOG_WARNING, "%s: it was written by version %s, this is %s", found->path, version ? version : "?",
                bw_version());
    }
    return BW_OK;
}

int64_t bwi_checkpoint_rows(const bwi_found_checkpoint *found, const char *name)
{
    int64_t rows;
    const bwi_json *value = bwi_json_get(found->names, name);
    return bwi_json_whole(bwi_json_at(bwi_json_get(value, "shape"), 0), &rows) && rows >= 0 ? rows : -1;
}

bool bwi_checkpoint_has(const bwi_found_checkpoint *found, const char *name)
{
    return bwi_json_get(found->names, name);
}

/* Compares type, shape and bytes of a value in the file with what is expected. */
static bool fits(const bwi_found_checkpoint *found, const bwi_state_value *value, size_t *offset)
{
    static const char *const names[] = {[BW_U8] = "U8", [BW_I64] = "I64", [BW_F32] = "F32", [BW_F64] = "F64"};
    const bwi_json *described = bwi_json_get(found->names, value->name), *shape = bwi_json_get(described, "shape");
    const char *dtype = bwi_json_text(bwi_json_get(described, "dtype"));
    size_t bytes;
    bool right = dtype && (size_t)value->dtype < BWI_COUNT(names) && names[value->dtype] &&
                 strcmp(dtype, names[value->dtype]) == 0 && bwi_json_count(shape) == value->ndim &&
                 find_value(found, described, offset, &bytes) && bytes == bwi_state_bytes(value);
    for (int i = 0; right && i < value->ndim; i++) {
        int64_t extent;
        right = bwi_json_whole(bwi_json_at(shape, i), &extent) && extent == value->shape[i];
    }
    return right;
}

bw_status bwi_checkpoint_load(const bwi_found_checkpoint *found, const bwi_state *state)
{
    size_t offset;
    for (int k = 0; k < state->count; k++) {
        if (!fits(found, &state->values[k], &offset)) {
            return bwi_fail_file(found->ctx, BW_INVALID_ARGUMENT, found->path, "it has no %s of the size that is expected",
                                 state->values[k].name);
        }
    }
    if (state->count != bwi_json_count(found->names)) {
        return bwi_fail_file(found->ctx, BW_INVALID_ARGUMENT, found->path, "expected %d values, found %d", state->count,
                             bwi_json_count(found->names));
    }
    size_t most = 0;
    for (int k = 0; k < state->count; k++) {
        size_t bytes = bwi_state_bytes(&state->values[k]);
        most = bytes > most ? bytes : most;
    }
    void *copy = bwi_allocate(found->ctx, most, 1); /* aligned, as the file's places are not */
    for (int k = 0; copy && k < state->count; k++) {
        (void)fits(found, &state->values[k], &offset);
        memcpy(copy, found->data + offset, bwi_state_bytes(&state->values[k]));
        bwi_state_write(&state->values[k], copy);
    }
    bwi_release(found->ctx, copy);
    return copy ? BW_OK : BW_RESOURCE_EXHAUSTED;
}
