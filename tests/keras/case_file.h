/* Recorded cases (see record.py): arrays of an npz file by name, all as float32, and the text of its `case` member. */
#ifndef BWI_TEST_CASE_FILE_H
#define BWI_TEST_CASE_FILE_H

#include "format/format.h"

#include <stdlib.h>
#include <string.h>

typedef struct case_array {
    char name[64];
    int ndim;
    int64_t shape[BW_MAX_NDIM];
    int64_t count;
    double *values;
} case_array;

typedef struct case_file {
    case_array arrays[128];
    int count;
    char text[4096];
} case_file;

static inline double case_number(const unsigned char *at, bw_dtype dtype)
{
    float f;
    double d;
    int32_t i;
    int64_t l;
    switch (dtype) {
    case BW_U8:
        return at[0];
    case BW_F32:
        memcpy(&f, at, 4);
        return (double)f;
    case BW_F64:
        memcpy(&d, at, 8);
        return d;
    case BW_I32:
        memcpy(&i, at, 4);
        return i;
    case BW_I64:
        memcpy(&l, at, 8);
        return (double)l;
    default:
        abort();
    }
}

/* Reads every member; false with a message in the context. */
static inline bool case_read(bw_context *ctx, case_file *file, const char *path)
{
    memset(file, 0, sizeof *file);
    bwi_bytes bytes;
    bwi_zip *zip = NULL;
    if (bwi_file_map(ctx, &bytes, path) != BW_OK || bwi_zip_open(ctx, &zip, &bytes, path) != BW_OK) {
        return false;
    }
    for (int64_t m = 0; m < bwi_zip_count(zip); m++) {
        bwi_zip_member member;
        bwi_npy npy;
        if (bwi_zip_member_at(zip, m, &member) != BW_OK || bwi_zip_begin(zip, m) != BW_OK) {
            return false;
        }
        unsigned char *raw = malloc(member.size);
        if (bwi_zip_read(zip, raw, member.size) != BW_OK || bwi_npy_begin(ctx, &npy, raw, member.size, member.name) != BW_OK ||
            bwi_npy_parse(ctx, &npy, raw, member.name) != BW_OK) {
            return false;
        }
        case_array *a = &file->arrays[file->count++];
        snprintf(a->name, sizeof a->name, "%.*s", (int)strcspn(member.name, "."), member.name);
        a->ndim = npy.ndim;
        a->count = 1;
        for (int i = 0; i < npy.ndim; i++) {
            a->shape[i] = npy.shape[i];
            a->count *= npy.shape[i];
        }
        a->values = malloc((size_t)a->count * sizeof(double) + 8);
        for (int64_t i = 0; i < a->count; i++) {
            a->values[i] = case_number(raw + npy.offset + (size_t)i * bwi_dtype_size(npy.dtype), npy.dtype);
        }
        if (strcmp(a->name, "case") == 0) {
            for (int64_t i = 0; i < a->count && i < (int64_t)sizeof file->text - 1; i++) {
                file->text[i] = (char)a->values[i];
            }
        }
        free(raw);
    }
    bwi_zip_close(zip);
    bwi_file_unmap(ctx, &bytes);
    return true;
}

static inline void case_free(case_file *file)
{
    for (int i = 0; i < file->count; i++) {
        free(file->arrays[i].values);
    }
}

static inline const case_array *case_find(const case_file *file, const char *name)
{
    for (int i = 0; i < file->count; i++) {
        if (strcmp(file->arrays[i].name, name) == 0) {
            return &file->arrays[i];
        }
    }
    return NULL;
}

/* The value of a key=value line; "" if there is none. */
static inline const char *case_text(const case_file *file, const char *key, char *buffer, size_t size)
{
    size_t length = strlen(key);
    for (const char *line = file->text; *line;) {
        size_t n = strcspn(line, "\n");
        if (n > length && memcmp(line, key, length) == 0 && line[length] == '=') {
            snprintf(buffer, size, "%.*s", (int)(n - length - 1), line + length + 1);
            return buffer;
        }
        line += n + (line[n] == '\n');
    }
    buffer[0] = '\0';
    return buffer;
}

#endif
