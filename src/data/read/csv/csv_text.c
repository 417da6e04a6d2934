/* Supplies CSV text: regions that end with a whole record, the blocks into which they are cut, and fields. */
#include "data/read/csv/csv.h"
#include "data/read/csv/csv_scan.h"

#include <string.h>

#define REGION ((size_t)8 << 20)
#define INPUT_REGION ((size_t)1 << 20)    /* of standard input; always filled, so that nothing depends on timing */
#define LONGEST_RECORD ((size_t)16 << 20) /* of text that is not mapped */

/* ---- Records ---- */

const char *bwi_csv_record_end(const csv_dialect *dialect, const char *at, const char *end)
{
    const char *newline = memchr(at, '\n', (size_t)(end - at));
    const char *quote = newline ? memchr(at, '"', (size_t)(newline - at)) : NULL;
    if (!quote) {
        return newline ? newline + 1 : end;
    }
    csv_field field;
    for (bool last = false; !last;) {
        if (bwi_csv_field_next(dialect, &at, end, &field, &last)) {
            continue;
        }
        if (!field.at) {
            return end;
        }
        newline = memchr(at, '\n', (size_t)(end - at));
        return newline ? newline + 1 : end;
    }
    return at + 1;
}

/* Returns the end of the last record that ends within the text; `at` if none does. There is a newline at `end`. */
static const char *last_record_end(const csv_dialect *dialect, const char *at, const char *end)
{
    const char *newline = memrchr(at, '\n', (size_t)(end - at));
    if (!newline || !memchr(at, '"', (size_t)(end - at))) {
        return newline ? newline + 1 : at;
    }
    for (;;) {
        const char *next = bwi_csv_record_end(dialect, at, end + 1);
        if (next > end) {
            return at;
        }
        at = next;
    }
}

bw_status bwi_csv_blocks_cut(const csv_text *text, size_t size, bool quotes, csv_block **blocks, int64_t *count)
{
    const char *at = text->at, *end = text->end;
    size_t most = (size_t)(end - at) / size + 1;
    *count = 0;
    *blocks = bwi_allocate(text->ctx, most, sizeof **blocks);
    if (!*blocks) {
        return BW_RESOURCE_EXHAUSTED;
    }
    while (at < end) {
        const char *cut = at;
        if ((size_t)(end - at) <= size || (size_t)*count + 1 == most) {
            cut = end;
        } else if (!quotes) {
            const char *newline = memchr(at + size, '\n', (size_t)(end - at) - size);
            cut = newline ? newline + 1 : end;
        } else {
            while (cut < end && (size_t)(cut - at) < size) {
                cut = bwi_csv_record_end(&text->dialect, cut, end);
            }
        }
        (*blocks)[(*count)++] = (csv_block){.at = at, .end = cut};
        at = cut;
    }
    return BW_OK;
}

/* Counts the lines, records and quotes of CSV_STRIDE bytes. The two bytes before the text are read as well. */
static void count_stride(csv_block *block, const char *text)
{
    for (uint64_t found = bwi_csv_scan_either(text, '\n', '"'); found; found &= found - 1) {
        const char *end = text + __builtin_ctzll(found);
        if (*end == '"') {
            block->quotes++;
            continue;
        }
        block->lines++;
        block->records += end[-1] != '\n' && !(end[-1] == '\r' && end[-2] == '\n');
    }
}

/* Blank lines are not counted as records. */
void bwi_csv_block_count(csv_block *block)
{
    char padded[CSV_STRIDE + 2] = "\n\n"; /* as if a line had ended before the block */
    const char *at = block->at;
    size_t size = block->end - at < CSV_STRIDE ? (size_t)(block->end - at) : CSV_STRIDE;
    memcpy(padded + 2, at, size);
    count_stride(block, padded + 2);
    for (at += size; block->end - at >= CSV_STRIDE; at += CSV_STRIDE) {
        count_stride(block, at);
    }
    size = (size_t)(block->end - at);
    if (size == 0) {
        return;
    }
    memset(padded, 0, sizeof padded);
    memcpy(padded, at - 2, size + 2);
    count_stride(block, padded + 2);
}

/* ---- Regions ---- */

bw_status bwi_csv_text_open(bw_context *ctx, csv_text *text, const char *path, const csv_dialect *dialect,
                            const bw_read_options *options)
{
    *text = (csv_text){.ctx = ctx, .path = path, .line = 1, .dialect = *dialect, .skip = options->skip_rows};
    if (strcmp(path, "-") == 0) {
        text->path = "standard input";
        return bwi_input_open(ctx, &text->input, options->unpack_any);
    }
    bw_status status = bwi_file_map(ctx, &text->file, path);
    if (status == BW_OK && bwi_gzip_is(&text->file)) {
        status = bwi_gzip_open(ctx, &text->gzip, &text->file, options->unpack_any, path);
    }
    return status;
}

void bwi_csv_text_close(csv_text *text)
{
    bwi_input_close(text->ctx, &text->input);
    bwi_gzip_close(text->gzip);
    text->gzip = NULL;
    bwi_file_unmap(text->ctx, &text->file);
    bwi_release(text->ctx, text->buffer);
    bwi_release(text->ctx, text->tail);
    text->buffer = text->tail = NULL;
}

static bw_status read_input(csv_text *text, char *to, size_t size, size_t *got)
{
    bw_status status = BW_OK;
    size_t more = 1;
    for (*got = 0; status == BW_OK && *got < size && more > 0; *got += more) {
        status = bwi_input_read(text->ctx, &text->input, to + *got, size - *got, &more);
    }
    return status;
}

/* Skips what comes before the first record: UTF-8's byte order mark, and the lines that the user wants to skip. Refuses encodings
 * that do not contain ASCII, since their text would be read as one line of nonsense. */
static bw_status skip_beginning(csv_text *text)
{
    if (text->end - text->at >= 3 && memcmp(text->at, "\xEF\xBB\xBF", 3) == 0) {
        text->at += 3;
    }
    if (text->end - text->at >= 2 && (memcmp(text->at, "\xFF\xFE", 2) == 0 || memcmp(text->at, "\xFE\xFF", 2) == 0)) {
        return bwi_fail_file(text->ctx, BW_INVALID_ARGUMENT, text->path, "is text in UTF-16; save it as UTF-8");
    }
    for (int64_t i = 0; i < text->skip; i++) {
        const char *newline = memchr(text->at, '\n', (size_t)(text->end - text->at));
        if (!newline) {
            return bwi_fail_file(text->ctx, BW_INVALID_ARGUMENT, text->path, "%lld rows are to be skipped, but it has %lld lines",
                                 (long long)text->skip, (long long)i);
        }
        text->at = newline + 1;
        text->line++;
    }
    const char *first = memchr(text->at, '\n', (size_t)(text->end - text->at));
    const char *cr = first ? memchr(text->at, '\r', (size_t)(first - text->at)) : NULL;
    if (cr && cr + 1 < first && cr[1] != '\r' && first + 1 == text->end && text->finished) {
        return bwi_fail_file(text->ctx, BW_INVALID_ARGUMENT, text->path, "its lines end with CR alone; save it with LF or CRLF");
    }
    return BW_OK;
}

/* In the first region, skips what comes before the records and finds out how they are written. A cut record at the end does no
 * harm. */
static bw_status begin_text(csv_text *text)
{
    if (text->begun) {
        return BW_OK;
    }
    text->begun = true;
    bw_status status = skip_beginning(text);
    if (status == BW_OK && text->dialect.fields == 0) {
        bwi_csv_dialect_find(&text->dialect, text->at, text->end);
    }
    return status;
}

/* The last line of a file may lack its newline. It is then copied, so that every region ends with one. */
static bw_status next_mapped(csv_text *text)
{
    const char *data = (const char *)text->file.data + text->taken, *end = (const char *)text->file.data + text->file.size;
    if (data == end) {
        text->finished = true;
        return BW_OK;
    }
    const char *newline = text->taken == 0 ? memrchr(data, '\n', (size_t)(end - data)) : NULL;
    if (newline) {
        text->at = data;
        text->end = newline + 1;
        text->taken = (size_t)(text->end - data);
        text->finished = text->end == end;
        return BW_OK;
    }
    size_t size = (size_t)(end - data);
    text->tail = bwi_allocate(text->ctx, size + 1, 1);
    if (!text->tail) {
        return BW_RESOURCE_EXHAUSTED;
    }
    memcpy(text->tail, data, size);
    text->tail[size] = '\n';
    text->at = text->tail;
    text->end = text->tail + size + 1;
    text->taken = text->file.size;
    text->finished = true;
    return BW_OK;
}

static bw_status grow_buffer(csv_text *text)
{
    size_t capacity = text->capacity ? text->capacity * 2 : text->gzip ? REGION : INPUT_REGION;
    char size[32];
    if (capacity > LONGEST_RECORD) {
        return bwi_fail_line(text->ctx, BW_DATA_LOSS, text->path, text->line, -1, "a record of more than %s",
                             bwi_format_bytes(size, LONGEST_RECORD));
    }
    char *larger = bwi_grow(text->ctx, text->buffer, text->kept, capacity + 2, 1); /* two more for newlines */
    if (!larger) {
        return BW_RESOURCE_EXHAUSTED;
    }
    text->buffer = larger;
    text->capacity = capacity;
    return BW_OK;
}

/* The bytes after the last whole record are kept and moved to the front of the next region. The buffer grows for a record that is
 * longer than it. */
static bw_status next_streamed(csv_text *text)
{
    bool ended = false;
    size_t filled = text->buffer ? (size_t)(text->end - text->buffer) : 0; /* the kept bytes follow it */
    if (text->kept) {
        memmove(text->buffer, text->buffer + filled, text->kept);
    }
    for (;;) {
        size_t got = 0;
        bw_status status = text->kept == text->capacity ? grow_buffer(text) : BW_OK;
        size_t left = text->capacity - text->kept;
        if (status == BW_OK && text->gzip) {
            status = bwi_gzip_read(text->gzip, text->buffer + text->kept, left, &got);
        } else if (status == BW_OK) {
            status = read_input(text, text->buffer + text->kept, left, &got);
        }
        if (status != BW_OK) { /* bytes that have arrived are kept, in case of another attempt */
            text->kept += got;
            text->at = text->end = text->buffer;
            return status;
        }
        ended = got < left;
        filled = text->kept + got;
        if (ended && filled > 0 && text->buffer[filled - 1] != '\n') {
            text->buffer[filled++] = '\n';
        }
        text->buffer[filled] = '\n';
        text->at = text->buffer;
        text->end = text->buffer + filled;
        text->finished = ended;
        bool first = !text->begun;
        status = begin_text(text);
        if (status != BW_OK) {
            return status;
        }
        text->end = ended ? text->end : last_record_end(&text->dialect, text->at, text->end);
        text->kept = filled - (size_t)(text->end - text->buffer);
        if (ended || text->end > text->at) {
            break;
        }
        text->kept = filled;
        text->begun = !first; /* once there is more of the first record, the beginning is examined again */
        text->line = first ? 1 : text->line;
    }
    return BW_OK;
}

bw_status bwi_csv_text_next(csv_text *text)
{
    if (text->finished) {
        text->at = text->end;
        return BW_OK;
    }
    if (text->gzip || text->input.pipe.open) {
        return next_streamed(text);
    }
    text->at = text->end = NULL;
    bw_status status = next_mapped(text);
    return status == BW_OK && text->at ? begin_text(text) : status;
}

/* ---- Fields ---- */

/* Whether a character may surround a field. A tab may not if it is the separator. */
static bool blank(const csv_dialect *dialect, char c)
{
    return c == ' ' || (c == '\t' && dialect->separator != '\t');
}

static bool ends(const csv_dialect *dialect, char c)
{
    return c == dialect->separator || c == '\n' || (dialect->separator == ' ' && c == '\t');
}

/* Moves from the end of a field to the next one. Where blanks separate fields, blanks at the end of a line separate nothing. */
static const char *past_separator(const csv_dialect *dialect, const char *c, bool *last)
{
    if (dialect->separator == ' ') {
        while (*c == ' ' || *c == '\t' || (*c == '\r' && c[1] == '\n')) {
            c++;
        }
        *last = *c == '\n';
        return c;
    }
    *last = *c == '\n';
    return *last ? c : c + 1;
}

/* A doubled quote stands for one quote; the first single one ends the field. */
static bool quoted_field(const csv_dialect *dialect, const char **at, const char *end, csv_field *field, bool *last)
{
    const char *begin = *at + 1, *c = begin;
    for (;; c++) {
        c = memchr(c, '"', (size_t)(end - c));
        if (!c) {
            return false;
        }
        if (c + 1 < end && c[1] == '"') {
            field->doubled = true;
            c++;
            continue;
        }
        break;
    }
    field->at = begin;
    field->size = (size_t)(c - begin);
    field->quoted = true;
    const char *closed = c + 1;
    for (c++; blank(dialect, *c) || (*c == '\r' && c[1] == '\n'); c++)
        ;
    bool good = ends(dialect, *c) || (dialect->separator == ' ' && c > closed);
    *at = past_separator(dialect, c, last);
    return good;
}

bool bwi_csv_field_next(const csv_dialect *dialect, const char **at, const char *end, csv_field *field, bool *last)
{
    *field = (csv_field){.size = 0};
    while (blank(dialect, **at)) {
        (*at)++;
    }
    if (**at == '"') {
        return quoted_field(dialect, at, end, field, last);
    }
    const char *begin = *at, *c = begin;
    while (!ends(dialect, *c)) {
        c++;
    }
    *at = past_separator(dialect, c, last);
    while (c > begin && (blank(dialect, c[-1]) || c[-1] == '\r')) {
        c--;
    }
    field->at = begin;
    field->size = (size_t)(c - begin);
    return true;
}

static bool is_word(const csv_field *field, const char *word, size_t size)
{
    return field->size == size && memcmp(field->at, word, size) == 0;
}

bool bwi_csv_field_missing(const csv_dialect *dialect, const csv_field *field)
{
    static const char *const words[] = {"NA", "N/A", "NaN", "nan", "NAN", "null", "NULL", "None", "?"};
    for (const char *list = dialect->na; list && *list;) {
        size_t size = strcspn(list, ",");
        if (size > 0 && is_word(field, list, size)) {
            return true;
        }
        list += size + (list[size] == ',');
    }
    if (field->quoted || field->size > 4) {
        return false;
    }
    if (field->size > 0 && field->at[0] != 'N' && field->at[0] != 'n' && field->at[0] != '?') {
        return false;
    }
    for (size_t i = 0; field->size > 0 && i < BWI_COUNT(words); i++) {
        if (is_word(field, words[i], strlen(words[i]))) {
            return true;
        }
    }
    return field->size == 0;
}

/* A decimal comma is read as a point. A point beside it would separate thousands, and is refused. */
bool bwi_csv_field_number(const csv_dialect *dialect, const csv_field *field, double *value)
{
    char text[64];
    const char *at = field->at, *end = at + field->size;
    const char *comma =
        dialect->decimal == ',' && field->size > 0 && field->size < sizeof text ? memchr(at, ',', field->size) : NULL;
    if (comma) {
        if (memchr(at, '.', field->size)) {
            return false;
        }
        memcpy(text, at, field->size);
        text[comma - at] = '.';
        text[field->size] = '\n'; /* reading a number stops at the first byte that cannot belong to it */
        at = text;
        end = text + field->size;
    }
    return field->size > 0 && bwi_number_scan(at, end, value) == end;
}

size_t bwi_csv_field_text(const csv_field *field, char *to)
{
    size_t size = 0;
    for (size_t i = 0; i < field->size; i++) {
        to[size++] = field->at[i] ? field->at[i] : '?';
        if (field->doubled && field->at[i] == '"') {
            i++;
        }
    }
    to[size] = 0;
    return size;
}
