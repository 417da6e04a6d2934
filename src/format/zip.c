/*
 * Members of a zip file, read by libzip from the mapped bytes; the only file that includes libzip. libzip does not say where
 * a member stands, so the place of stored ones is looked up in the central directory and believed only after its bytes
 * were compared with what libzip reads. libzip's memory grows with the number of members, which is bounded here
 * before libzip sees the file.
 */
#include "format/internal.h"

#include <errno.h>
#include <string.h>
#include <zip.h>

#define END_SIZE 22   /* end of the central directory */
#define END64_SIZE 56 /* end of the central directory, for zip64 */
#define LOCATOR_SIZE 20
#define ENTRY_SIZE 46 /* of the central directory */
#define LOCAL_SIZE 30
#define COMMENT_LIMIT 65535
#define MEMBER_LIMIT 65536
#define DEFLATE_LIMIT 1032 /* deflate expands no byte to more */
#define BLOCK 16384

struct bwi_zip {
    bw_context *ctx;
    bwi_bytes file;
    const char *path;
    zip_t *archive;
    zip_file_t *member; /* being read, or NULL */
    int64_t index;      /* of it */
};

static uint64_t number(const unsigned char *at, int bytes)
{
    uint64_t value = 0;
    for (int i = 0; i < bytes; i++) {
        value |= (uint64_t)at[i] << 8 * i;
    }
    return value;
}

static bool is_at(const bwi_bytes *file, uint64_t at, uint64_t size, const char *signature)
{
    return at <= file->size && file->size - at >= size && memcmp(file->data + at, signature, 4) == 0;
}

/* ---- The central directory, for bounds and places ---- */

typedef struct directory {
    uint64_t offset, count;
} directory;

static directory directory_at(const bwi_bytes *file, uint64_t end)
{
    const unsigned char *at = file->data + end;
    directory found = {.offset = number(at + 16, 4), .count = number(at + 10, 2)};
    if (end >= LOCATOR_SIZE && is_at(file, end - LOCATOR_SIZE, LOCATOR_SIZE, "PK\6\7")) {
        uint64_t end64 = number(at - LOCATOR_SIZE + 8, 8);
        if (is_at(file, end64, END64_SIZE, "PK\6\6")) {
            const unsigned char *at64 = file->data + end64;
            found.count = number(at64 + 32, 8);
            found.offset = number(at64 + 48, 8);
        }
    }
    return found;
}

/* The last place not after `from` where a central directory ends; false if there is none. */
static bool find_end(const bwi_bytes *file, uint64_t from, uint64_t *end)
{
    if (file->size < END_SIZE) {
        return false;
    }
    uint64_t last = file->size - END_SIZE;
    uint64_t first = last > COMMENT_LIMIT ? last - COMMENT_LIMIT : 0;
    for (uint64_t at = (from < last ? from : last) + 1; at-- > first;) {
        if (memcmp(file->data + at, "PK\5\6", 4) == 0) {
            *end = at;
            return true;
        }
    }
    return false;
}

/* libzip chooses among all ends of a directory that it finds, so each is bounded. */
static bw_status check_counts(bw_context *ctx, const bwi_bytes *file, const char *path)
{
    uint64_t end = 0;
    for (uint64_t from = UINT64_MAX; find_end(file, from, &end); from = end - 1) {
        directory found = directory_at(file, end);
        if (found.count > MEMBER_LIMIT || found.count > file->size / ENTRY_SIZE) {
            return bwi_fail_file(ctx, BW_DATA_LOSS, path, "the zip file claims %llu members; %zu bytes hold at most %zu",
                                 (unsigned long long)found.count, file->size,
                                 file->size / ENTRY_SIZE < MEMBER_LIMIT ? file->size / ENTRY_SIZE : (size_t)MEMBER_LIMIT);
        }
        if (end == 0) {
            break;
        }
    }
    return BW_OK;
}

/* Returns where the local header of the entry at `at` lies. zip64 keeps large numbers in an extra field (id 1): only those that
 * are all ones in the entry, in the order size, packed size, place. */
static uint64_t local_offset(const bwi_bytes *file, uint64_t at)
{
    const unsigned char *entry = file->data + at;
    uint64_t place = number(entry + 42, 4);
    if (place != UINT32_MAX) {
        return place;
    }
    uint64_t start = at + ENTRY_SIZE + number(entry + 28, 2);
    uint64_t end = start + number(entry + 30, 2);
    if (end > file->size) {
        return UINT64_MAX;
    }
    for (uint64_t extra = start; end - extra >= 4;) {
        uint64_t id = number(file->data + extra, 2), size = number(file->data + extra + 2, 2);
        if (size > end - extra - 4) {
            break;
        }
        if (id == 1) {
            uint64_t before = (number(entry + 24, 4) == UINT32_MAX ? 1u : 0u) + (number(entry + 20, 4) == UINT32_MAX ? 1u : 0u);
            return size >= 8 * before + 8 ? number(file->data + extra + 4 + 8 * before, 8) : UINT64_MAX;
        }
        extra += 4 + size;
    }
    return UINT64_MAX;
}

/* Returns where the bytes of member `index` seem to lie; NULL if `size` bytes cannot be there. */
static const unsigned char *find_bytes(const bwi_bytes *file, int64_t index, size_t size)
{
    uint64_t end = 0;
    if (!find_end(file, UINT64_MAX, &end)) {
        return NULL;
    }
    uint64_t at = directory_at(file, end).offset;
    for (int64_t i = 0;; i++) {
        if (!is_at(file, at, ENTRY_SIZE, "PK\1\2")) {
            return NULL;
        }
        if (i == index) {
            break;
        }
        const unsigned char *entry = file->data + at;
        at += ENTRY_SIZE + number(entry + 28, 2) + number(entry + 30, 2) + number(entry + 32, 2);
    }
    uint64_t local = local_offset(file, at);
    if (!is_at(file, local, LOCAL_SIZE, "PK\3\4")) {
        return NULL;
    }
    uint64_t data = local + LOCAL_SIZE + number(file->data + local + 26, 2) + number(file->data + local + 28, 2);
    return data <= file->size && file->size - data >= size ? file->data + data : NULL;
}

/* ---- libzip ---- */

/* libzip has no code for some of its failures to allocate, and takes others for damage; errno, which is 0 before each call,
 * tells. */
static bw_status fail_error(bw_context *ctx, const char *path, const char *member, zip_error_t *error)
{
    char quoted[BWI_QUOTE_SIZE];
    int code = zip_error_code_zip(error);
    if (code == ZIP_ER_MEMORY || code == ZIP_ER_OK || errno == ENOMEM) {
        return bwi_fail_file(ctx, BW_RESOURCE_EXHAUSTED, path, "no memory to unpack it");
    }
    if (!member) {
        return bwi_fail_file(ctx, BW_DATA_LOSS, path, "%s",
                             code == ZIP_ER_NOZIP ? "is not a zip file, or was truncated" : zip_error_strerror(error));
    }
    bwi_quote(quoted, member, strlen(member));
    return bwi_fail_file(ctx, BW_DATA_LOSS, path, "member %s is damaged: %s", quoted, zip_error_strerror(error));
}

/* Bytes in the file cannot belong to two members: otherwise a small file could unpack to any size. */
static bw_status check_overlap(bwi_zip *zip)
{
    size_t packed = 0;
    int64_t count = bwi_zip_count(zip);
    for (int64_t i = 0; i < count; i++) {
        zip_stat_t facts;
        if (zip_stat_index(zip->archive, (zip_uint64_t)i, ZIP_FL_ENC_RAW, &facts) == 0 && (facts.valid & ZIP_STAT_COMP_SIZE)) {
            packed = bwi_size_add(packed, facts.comp_size);
        }
    }
    if (packed > zip->file.size) {
        return bwi_fail_file(zip->ctx, BW_DATA_LOSS, zip->path, "members overlap: they claim %zu packed bytes, the file has %zu",
                             packed, zip->file.size);
    }
    return BW_OK;
}

bw_status bwi_zip_open(bw_context *ctx, bwi_zip **zip, const bwi_bytes *file, const char *path)
{
    *zip = NULL;
    bw_status status = check_counts(ctx, file, path);
    if (status != BW_OK) {
        return status;
    }
    bwi_zip *made = bwi_allocate(ctx, 1, sizeof *made);
    if (!made) {
        return BW_RESOURCE_EXHAUSTED;
    }
    *made = (bwi_zip){.ctx = ctx, .file = *file, .path = path};
    zip_error_t error;
    zip_error_init(&error);
    errno = 0;
    zip_source_t *source = zip_source_buffer_create(file->data, file->size, 0, &error);
    if (source) {
        made->archive = zip_open_from_source(source, ZIP_RDONLY, &error);
        if (!made->archive) {
            zip_source_free(source);
        }
    }
    status = made->archive ? check_overlap(made) : fail_error(ctx, path, NULL, &error);
    zip_error_fini(&error);
    if (status != BW_OK) {
        bwi_zip_close(made);
    } else {
        *zip = made;
    }
    return status;
}

static void drop_member(bwi_zip *zip)
{
    if (zip->member) {
        zip_fclose(zip->member);
    }
    zip->member = NULL;
}

void bwi_zip_close(bwi_zip *zip)
{
    if (!zip) {
        return;
    }
    drop_member(zip);
    if (zip->archive) {
        zip_discard(zip->archive);
    }
    bwi_release(zip->ctx, zip);
}

int64_t bwi_zip_count(const bwi_zip *zip)
{
    return zip_get_num_entries(zip->archive, 0);
}

const char *bwi_zip_name(const bwi_zip *zip, int64_t index)
{
    const char *name = index < 0 ? NULL : zip_get_name(zip->archive, (zip_uint64_t)index, ZIP_FL_ENC_RAW);
    return name ? name : "";
}

bw_status bwi_zip_member_at(bwi_zip *zip, int64_t index, bwi_zip_member *member)
{
    zip_uint64_t needed = ZIP_STAT_SIZE | ZIP_STAT_COMP_SIZE | ZIP_STAT_COMP_METHOD | ZIP_STAT_CRC;
    zip_stat_t facts;
    const char *name = bwi_zip_name(zip, index);
    char quoted[BWI_QUOTE_SIZE];
    bwi_quote(quoted, name, strlen(name));
    if (index < 0 || zip_stat_index(zip->archive, (zip_uint64_t)index, ZIP_FL_ENC_RAW, &facts) != 0 ||
        (facts.valid & needed) != needed) {
        return bwi_fail_file(zip->ctx, BW_DATA_LOSS, zip->path, "member %s is damaged: its sizes are missing", quoted);
    }
    if ((facts.valid & ZIP_STAT_ENCRYPTION_METHOD) && facts.encryption_method != ZIP_EM_NONE) {
        return bwi_fail_file(zip->ctx, BW_UNIMPLEMENTED, zip->path, "member %s is encrypted", quoted);
    }
    if (facts.comp_method != ZIP_CM_STORE && facts.comp_method != ZIP_CM_DEFLATE) {
        return bwi_fail_file(zip->ctx, BW_UNIMPLEMENTED, zip->path,
                             "member %s is packed by method %d; stored (0) and deflated (8) are known", quoted, facts.comp_method);
    }
    *member =
        (bwi_zip_member){.name = name, .size = facts.size, .packed = facts.comp_size, .stored = facts.comp_method == ZIP_CM_STORE};
    if (member->stored ? member->size != member->packed : member->size / DEFLATE_LIMIT > member->packed) {
        return bwi_fail_file(zip->ctx, BW_DATA_LOSS, zip->path, "member %s is damaged: %zu packed bytes cannot hold %zu", quoted,
                             member->packed, member->size);
    }
    return BW_OK;
}

bw_status bwi_zip_begin(bwi_zip *zip, int64_t index)
{
    drop_member(zip);
    errno = 0;
    zip->member = zip_fopen_index(zip->archive, (zip_uint64_t)index, 0);
    zip->index = index;
    return zip->member ? BW_OK : fail_error(zip->ctx, zip->path, bwi_zip_name(zip, index), zip_get_error(zip->archive));
}

static bw_status fail_member(bwi_zip *zip, const char *what)
{
    char quoted[BWI_QUOTE_SIZE];
    const char *name = bwi_zip_name(zip, zip->index);
    return bwi_fail_file(zip->ctx, BW_DATA_LOSS, zip->path, "member %s is damaged: %s", bwi_quote(quoted, name, strlen(name)),
                         what);
}

bw_status bwi_zip_read(bwi_zip *zip, void *to, size_t size)
{
    unsigned char *at = to;
    while (size > 0) {
        errno = 0;
        zip_int64_t count = zip_fread(zip->member, at, size);
        if (count < 0) {
            return fail_error(zip->ctx, zip->path, bwi_zip_name(zip, zip->index), zip_file_get_error(zip->member));
        }
        if (count == 0) {
            return fail_member(zip, "it ends early");
        }
        at += count;
        size -= (size_t)count;
    }
    return BW_OK;
}

bw_status bwi_zip_end(bwi_zip *zip)
{
    unsigned char byte;
    bw_status status = BW_OK;
    errno = 0;
    zip_int64_t count = zip_fread(zip->member, &byte, 1); /* libzip checks the sum when it meets the end */
    if (count < 0) {
        status = fail_error(zip->ctx, zip->path, bwi_zip_name(zip, zip->index), zip_file_get_error(zip->member));
    } else if (count > 0) {
        status = fail_member(zip, "it is longer than declared");
    }
    drop_member(zip);
    return status;
}

bw_status bwi_zip_in_place(bwi_zip *zip, int64_t index, const unsigned char **data)
{
    unsigned char block[BLOCK];
    bwi_zip_member member;
    *data = NULL;
    bw_status status = bwi_zip_member_at(zip, index, &member);
    if (status != BW_OK || !member.stored) {
        return status;
    }
    const unsigned char *found = find_bytes(&zip->file, index, member.size);
    if (!found) {
        return BW_OK;
    }
    status = bwi_zip_begin(zip, index);
    for (size_t at = 0; status == BW_OK && at < member.size;) {
        size_t size = member.size - at < BLOCK ? member.size - at : BLOCK;
        status = bwi_zip_read(zip, block, size);
        if (status == BW_OK && memcmp(block, found + at, size) != 0) {
            drop_member(zip);
            return BW_OK;
        }
        at += size;
    }
    if (status == BW_OK) {
        status = bwi_zip_end(zip);
    }
    if (status == BW_OK) {
        *data = found;
    }
    return status;
}
