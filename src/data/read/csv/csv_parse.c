/*
 * Parses a block of records into rows. The inner loop expects a number and a separator; everything else (blanks, quotes,
 * categories, missing values, mistakes) takes a slower path. A record that is left out, because bad records or missing values are
 * to be skipped, is overwritten by the next one.
 */
#include "data/read/csv/csv.h"
#include "data/read/csv/csv_scan.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct parsing {
    const csv_table *table;
    const char *begin, *at, *end;
    csv_scan scan; /* between records its position is `at` */
    int64_t line;
    float *x;
    double *y;
    csv_result *result;
    bool lacking; /* the record is left out because a value is missing */
    bool folded;  /* the record may span several lines, since a quoted field holds a separator or newline */
} parsing;

/* A failing allocation on a worker writes the context's message, so only one may allocate at a time. */
static void lock(const csv_table *table)
{
    pthread_mutex_lock(table->lock);
}

static void unlock(const csv_table *table)
{
    pthread_mutex_unlock(table->lock);
}

static bool mistake(parsing *p, int column, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Counts a mistake and keeps it if it is among the first; the column is -1 if it concerns the whole record. Always returns
 * false. */
static bool mistake(parsing *p, int column, const char *format, ...)
{
    csv_result *result = p->result;
    if (result->bad < CSV_LISTED) {
        csv_mistake *one = &result->mistakes[result->bad];
        va_list arguments;
        one->line = p->line;
        one->column = column;
        one->status = BW_INVALID_ARGUMENT;
        va_start(arguments, format);
        bwi_format(one->text, sizeof one->text, format, arguments);
        va_end(arguments);
    }
    result->bad++;
    return false;
}

/* ---- One field ---- */

static bool put_missing(parsing *p, int column, double *value)
{
    char where[CSV_COLUMN_TEXT];
    bw_missing rule = p->table->options->missing;
    p->result->missing_values++;
    *value = (double)NAN;
    if (rule == BW_MISSING_SKIP) {
        p->lacking = true;
        return true;
    }
    if (rule == BW_MISSING_ERROR) {
        return mistake(p, column, "%s: a value is missing; what shall stand for it: --missing mean, zero, or skip such records?",
                       bwi_csv_column_text(p->table, column, where));
    }
    if (p->table->columns[column].target >= 0) {
        return mistake(p, column, "%s: the target is missing", bwi_csv_column_text(p->table, column, where));
    }
    return true;
}

/* Adds a text that is new to the block, or that has doubled quotes in the file. */
static int add_category(parsing *p, int column, const csv_field *field)
{
    char small[256], *text = small;
    lock(p->table);
    if (field->size >= sizeof small) {
        text = bwi_allocate(p->table->ctx, field->size + 1, 1);
    }
    int number = -1;
    if (text) {
        number = bwi_csv_words_add(p->table->ctx, &p->result->words[column], text, bwi_csv_field_text(field, text));
    }
    if (text != small) {
        bwi_release(p->table->ctx, text);
    }
    unlock(p->table);
    if (number < 0) {
        p->result->status = BW_RESOURCE_EXHAUSTED;
    }
    return number;
}

static bool put_category(parsing *p, int column, const csv_field *field, const csv_key *key, double *value)
{
    int number = bwi_csv_words_find(&p->result->words[column], field->at, key);
    if (field->doubled || number < 0) {
        number = add_category(p, column, field);
    }
    *value = number;
    return number >= 0;
}

/* Makes room for the texts of the present row, and for `size` bytes. */
static bool reserve_text(parsing *p, size_t size)
{
    csv_texts *t = &p->result->texts;
    bw_context *ctx = p->table->ctx;
    size_t each = (size_t)p->table->texts;
    bool good = true;
    lock(p->table);
    if (p->result->rows >= t->rows) {
        int64_t rows = 2 * t->rows + 64;
        struct csv_cell *cells = bwi_grow(ctx, t->cells, (size_t)t->rows * each, (size_t)rows * each, sizeof *cells);
        good = cells;
        t->cells = cells ? cells : t->cells;
        t->rows = cells ? rows : t->rows;
    }
    if (good && t->capacity - t->used < size) {
        size_t capacity = 2 * t->capacity + size + 4096;
        char *bytes = bwi_grow(ctx, t->bytes, t->used, capacity, 1);
        good = bytes;
        t->bytes = bytes ? bytes : t->bytes;
        t->capacity = bytes ? capacity : t->capacity;
    }
    unlock(p->table);
    if (!good) {
        p->result->status = BW_RESOURCE_EXHAUSTED;
    }
    return good;
}

/* An empty text is a text. What a record that is left out has added is written over in the table of places. */
static bool put_text(parsing *p, int column, const csv_field *field)
{
    csv_texts *t = &p->result->texts;
    if (!reserve_text(p, field->size + 1)) {
        return false;
    }
    size_t size = bwi_csv_field_text(field, t->bytes + t->used);
    t->cells[p->result->rows * p->table->texts + p->table->columns[column].text] = (struct csv_cell){.at = t->used, .size = size};
    t->used += size;
    return true;
}

/* Whether a text may stand for a missing value. It does not branch on a letter, and excludes 'no': either would slow down every
 * second field in a column of yes and no. */
static bool may_be_missing(const csv_key *key)
{
    uint64_t first = key->word[0] & 255;
    bool begins = (first == 0) | (first == 'N') | (first == 'n') | (first == '?');
    return (key->size <= 4) & begins & (key->word[0] != ('n' | 'o' << 8));
}

/* Numbers are stored as float32, except for a single target; a number too large for that is refused, since it would become
 * infinite. */
static bool put_number(parsing *p, int column, double value)
{
    char where[CSV_COLUMN_TEXT];
    if (value <= (double)FLT_MAX && value >= (double)-FLT_MAX) {
        return true;
    }
    return mistake(p, column, "%s: %g is too large for float32", bwi_csv_column_text(p->table, column, where), value);
}

/* Missing values are looked for first, since a number may stand for one. For a text that is not a number, the message says what
 * may have been meant. */
static bool put_field(parsing *p, int column, const csv_field *field, double *value)
{
    char quoted[BWI_QUOTE_SIZE], where[CSV_COLUMN_TEXT];
    const csv_dialect *dialect = &p->table->dialect;
    if (p->table->columns[column].kind == CSV_TEXT) {
        *value = 0;
        return put_text(p, column, field);
    }
    csv_key key = bwi_csv_key_of(field->at, field->size, (size_t)(p->end - field->at));
    if ((dialect->na || may_be_missing(&key)) && bwi_csv_field_missing(dialect, field)) {
        return put_missing(p, column, value);
    }
    if (p->table->columns[column].kind == CSV_CATEGORY) {
        return put_category(p, column, field, &key, value);
    }
    if (bwi_csv_field_number(dialect, field, value)) {
        return put_number(p, column, *value);
    }
    bwi_csv_column_text(p->table, column, where);
    bwi_quote(quoted, field->at, field->size);
    if (bwi_csv_field_infinite(field)) {
        return mistake(p, column, "%s: %s is not finite; if it stands for a missing value, say --na", where, quoted);
    }
    return mistake(p, column, "%s: %s is no number%s", where, quoted,
                   p->table->options->like
                       ? ""
                       : "; if it stands for a missing value, say so (--na); if the column's values are categories, "
                         "name the column (--categorical)");
}

/* ---- One record ---- */

static int64_t count_fields(const parsing *p, const char *at)
{
    csv_field field;
    int64_t count = 0;
    for (bool last = false; !last; count++) {
        if (!bwi_csv_field_next(&p->table->dialect, &at, p->end, &field, &last)) {
            return -1;
        }
    }
    return count;
}

static bool wrong_fields(parsing *p, const char *record)
{
    int64_t count = count_fields(p, record);
    if (count < 0) {
        return mistake(p, -1, "a quote is not closed, or text follows it");
    }
    return mistake(p, -1, "%lld field%s, expected %d", (long long)count, count == 1 ? "" : "s", p->table->count);
}

/* Does what bwi_csv_field_next does. `mark` is the next separator or newline, which is the end of the field unless the field is
 * quoted. */
static bool next_field(parsing *p, csv_scan *scan, const char **at, const char *mark, csv_field *field, bool *last)
{
    if ((unsigned char)**at <= ' ' || **at == '"') {
        bool good = bwi_csv_field_next(&p->table->dialect, at, scan->end, field, last);
        if (good && *at - !*last != mark) {
            bwi_csv_scan_go(scan, *at + *last);
            p->folded = true;
        }
        return good;
    }
    const char *end = mark;
    while (end > *at && (end[-1] == ' ' || end[-1] == '\t' || end[-1] == '\r')) {
        end--;
    }
    *field = (csv_field){.at = *at, .size = (size_t)(end - *at)};
    *last = *mark == '\n';
    *at = mark + !*last;
    return true;
}

/* Parses the field at *at if it is not a short number. False if the record is bad. */
static bool parse_field(parsing *p, csv_scan *scan, const char **at, const char *mark, int column, double *value)
{
    csv_kind kind = p->table->columns[column].kind;
    csv_field field;
    bool last;
    if (kind == CSV_NUMBER) {
        const char *next = bwi_number_scan(*at, p->end, value);
        if (!p->table->dialect.na && (next == mark || (next && next + 1 == mark && *next == '\r' && *mark == '\n'))) {
            *at = mark + 1;
            return put_number(p, column, *value);
        }
    }
    if (!next_field(p, scan, at, mark, &field, &last)) {
        return wrong_fields(p, p->at);
    }
    *at += last;
    return kind == CSV_IGNORED || put_field(p, column, &field, value);
}

/* Parses a record whose fields are separated by any number of blanks, so that the scan for separators does not help. */
static bool parse_blanks(parsing *p)
{
    const csv_table *table = p->table;
    const char *at = p->at;
    bool last = false;
    p->lacking = false;
    p->folded = true;
    for (int c = 0; c < table->count; c++) {
        const csv_column *column = &table->columns[c];
        csv_field field;
        double value = 0;
        if (last || !bwi_csv_field_next(&table->dialect, &at, p->end, &field, &last)) {
            return wrong_fields(p, p->at);
        }
        if (column->kind == CSV_IGNORED) {
            continue;
        }
        if (!put_field(p, c, &field, &value)) {
            return false;
        }
        if (column->input >= 0) {
            p->x[column->input] = (float)value;
        } else {
            p->y[column->target] = value;
        }
    }
    if (!last) {
        return wrong_fields(p, p->at);
    }
    p->at = at + 1;
    return true;
}

/* Parses a record, with short numbers in the inner loop. False if the record is bad. */
static bool parse_record(parsing *p)
{
    const csv_table *table = p->table;
    const char *at = p->at;
    csv_scan scan = p->scan;
    bool quick = !table->dialect.na; /* otherwise a number may be a text that stands for a missing value */
    p->lacking = p->folded = false;
    for (int c = 0; c < table->count; c++) {
        const csv_column *column = &table->columns[c];
        const char *mark = bwi_csv_scan_next(&scan);
        double value;
        at += *at == ' ';
        if (column->kind == CSV_NUMBER && quick && at - p->begin > 8 &&
            bwi_csv_scan_number(at, mark - (mark[-1] == '\r'), &value)) {
            at = mark + 1;
        } else {
            csv_scan other = scan; /* copied, so that the originals stay in registers */
            const char *next = at;
            double slow = 0;
            if (!parse_field(p, &other, &next, mark, c, &slow)) {
                return false;
            }
            scan = other;
            at = next;
            value = slow;
        }
        if (column->input >= 0) {
            p->x[column->input] = (float)value;
        } else if (column->kind != CSV_IGNORED) {
            p->y[column->target] = value;
        }
        if ((at[-1] == '\n') != (c + 1 == table->count)) {
            return wrong_fields(p, p->at);
        }
    }
    p->at = at;
    p->scan = scan;
    return true;
}

/* ---- The block ---- */

/* Notes that the present row stands on the present line, unless that follows from the notes before. */
static void note_line(parsing *p)
{
    csv_result *result = p->result;
    const csv_shift *before = result->shift_count ? &result->shifts[result->shift_count - 1] : NULL;
    if (before && before->line + (result->rows - before->row) == p->line) {
        return;
    }
    if (result->shift_count == result->shift_capacity) {
        int capacity = result->shift_capacity ? result->shift_capacity * 2 : 4;
        lock(p->table);
        csv_shift *larger = bwi_grow(p->table->ctx, result->shifts, (size_t)result->shift_count, (size_t)capacity, sizeof *larger);
        unlock(p->table);
        if (!larger) {
            result->status = BW_RESOURCE_EXHAUSTED;
            return;
        }
        result->shifts = larger;
        result->shift_capacity = capacity;
    }
    result->shifts[result->shift_count++] = (csv_shift){.row = result->rows, .line = p->line};
}

static int64_t lines_in(const char *at, const char *end)
{
    int64_t count = 0;
    for (; (at = memchr(at, '\n', (size_t)(end - at))) && at < end; at++) {
        count++;
    }
    return count;
}

void bwi_csv_block_parse(const csv_table *table, const csv_block *block, int64_t line, float *x, double *y, csv_result *result)
{
    parsing p = {
        .table = table, .begin = block->at, .at = block->at, .end = block->end, .line = line, .x = x, .y = y, .result = result};
    bool allowed = table->options->bad_records > 0;
    const csv_dialect *dialect = &table->dialect;
    bool blanks = dialect->separator == ' ';
    p.scan.end = p.end;
    p.scan.separator = dialect->separator;
    bwi_csv_scan_go(&p.scan, p.at);
    while (p.at < p.end && result->status == BW_OK) {
        const char *record = p.at;
        bool note = *record == '#' && bwi_csv_is_comment(dialect, record, p.end);
        if (note || ((unsigned char)*record <= ' ' && bwi_csv_is_blank_line(dialect, record))) {
            p.at = (const char *)memchr(record, '\n', (size_t)(p.end - record)) + 1;
            bwi_csv_scan_go(&p.scan, p.at);
            result->comments += note;
            p.line++;
            continue;
        }
        bool good = blanks ? parse_blanks(&p) : parse_record(&p);
        if (!good && !allowed && result->status == BW_OK) {
            result->status = BW_INVALID_ARGUMENT;
        }
        if (!good) {
            p.at = bwi_csv_record_end(dialect, record, p.end);
            bwi_csv_scan_go(&p.scan, p.at);
        }
        result->missing_rows += good && p.lacking;
        if (good && !p.lacking) {
            note_line(&p);
            result->rows++;
            p.x += table->width;
            p.y += table->stride;
        }
        p.line += good && !p.folded ? 1 : lines_in(record, p.at);
    }
}

void bwi_csv_result_free(bw_context *ctx, const csv_table *table, csv_result *result)
{
    bwi_release(ctx, result->shifts);
    bwi_release(ctx, result->texts.bytes);
    bwi_release(ctx, result->texts.cells);
    for (int i = 0; result->words && i < table->count; i++) {
        bwi_csv_words_free(ctx, &result->words[i]);
    }
    bwi_release(ctx, result->words);
}
