/*
 * A block of records into rows. The inner loop meets a number and a comma: everything else (blanks, quotes, categories, missing
 * values, mistakes) takes the other way. A record that is left out, because it is bad and that is allowed or because a value
 * is missing, is written over by the next.
 */
#include "data/csv.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

typedef struct parsing {
    const csv_table *table;
    const char *at, *end;
    int64_t line;
    float *x;
    double *y;
    csv_result *result;
    bool lacking; /* the record has a missing value that makes it be left out */
} parsing;

/* A worker's failing allocation writes the context's message: one at a time. */
static void lock(const csv_table *table)
{
    pthread_mutex_lock(table->lock);
}

static void unlock(const csv_table *table)
{
    pthread_mutex_unlock(table->lock);
}

static bool mistake(parsing *p, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Notes it among the first ones; false. */
static bool mistake(parsing *p, const char *format, ...)
{
    csv_result *result = p->result;
    if (result->bad < CSV_LISTED) {
        csv_mistake *one = &result->mistakes[result->bad];
        va_list arguments;
        one->line = p->line;
        one->status = BW_INVALID_ARGUMENT;
        va_start(arguments, format);
        bwi_format(one->text, sizeof one->text, format, arguments);
        va_end(arguments);
    }
    result->bad++;
    return false;
}

static const char *column_text(const csv_table *table, int column, char buffer[80])
{
    char quoted[BWI_QUOTE_SIZE];
    const char *name = table->columns[column].name;
    if (name[0])
        snprintf(buffer, 80, "column %.64s", bwi_quote(quoted, name, strlen(name)));
    else
        snprintf(buffer, 80, "column %d", column);
    return buffer;
}

/* ---- One field ---- */

static bool put_missing(parsing *p, int column, double *value)
{
    char where[80];
    const bw_missing rule = p->table->options->missing;
    p->result->missing_values++;
    *value = (double)NAN;
    if (rule == BW_MISSING_SKIP) {
        p->lacking = true;
        return true;
    }
    if (rule == BW_MISSING_ERROR)
        return mistake(p, "%s: a value is missing; what shall stand for it: mean, zero, or skip such records?",
                       column_text(p->table, column, where));
    if (column == p->table->target)
        return mistake(p, "%s: the target is missing", column_text(p->table, column, where));
    return true;
}

static bool put_category(parsing *p, int column, const csv_field *field, double *value)
{
    char small[256], *text = small;
    lock(p->table);
    if (field->size >= sizeof small)
        text = bwi_allocate(p->table->ctx, field->size + 1, 1);
    int number = -1;
    if (text)
        number = csv_words_number(p->table->ctx, &p->result->words[column], text, csv_field_text(field, text));
    if (text != small)
        bwi_release(p->table->ctx, text);
    unlock(p->table);
    *value = number;
    if (number < 0)
        p->result->status = BW_RESOURCE_EXHAUSTED;
    return number >= 0;
}

static bool put_field(parsing *p, int column, const csv_field *field, double *value)
{
    char quoted[BWI_QUOTE_SIZE], where[80];
    if (csv_field_missing(field))
        return put_missing(p, column, value);
    if (p->table->columns[column].kind == CSV_CATEGORY)
        return put_category(p, column, field, value);
    if (csv_field_number(field, value))
        return true;
    return mistake(p, "%s: %s is no number", column_text(p->table, column, where), bwi_quote(quoted, field->at, field->size));
}

static void store(parsing *p, int column, double value)
{
    if (column == p->table->target)
        *p->y = value;
    else
        p->x[p->table->columns[column].place] = (float)value;
}

/* ---- One record ---- */

static int64_t count_fields(const parsing *p, const char *at)
{
    csv_field field;
    int64_t count = 0;
    for (bool last = false; !last; count++) {
        if (!csv_field_next(&at, p->end, &field, &last))
            return -1;
    }
    return count;
}

static bool wrong_fields(parsing *p, const char *record)
{
    const int64_t count = count_fields(p, record);
    if (count < 0)
        return mistake(p, "a quote is not closed, or text follows it");
    return mistake(p, "%lld fields, expected %d", (long long)count, p->table->count);
}

/* False if the record is bad; its line is behind p->at either way. */
static bool parse_record(parsing *p)
{
    const csv_table *table = p->table;
    const char *record = p->at, *at = record;
    bool last = false;
    p->lacking = false;
    for (int c = 0; c < table->count; c++) {
        double value;
        if (last)
            return wrong_fields(p, record);
        if (table->columns[c].kind == CSV_NUMBER) {
            const char *next = bwi_number_scan(at, p->end, &value);
            if (next && (*next == ',' || *next == '\n')) {
                last = *next == '\n';
                at = next + !last;
                store(p, c, value);
                continue;
            }
        }
        csv_field field;
        if (!csv_field_next(&at, p->end, &field, &last))
            return wrong_fields(p, record);
        if (table->columns[c].kind == CSV_IGNORED)
            continue;
        if (!put_field(p, c, &field, &value))
            return false;
        store(p, c, value);
    }
    if (!last)
        return wrong_fields(p, record);
    p->at = at;
    return true;
}

/* ---- The block ---- */

/* Notes that row `row` stands on the present line, if that does not follow from the notes before. */
static void note_line(parsing *p)
{
    csv_result *result = p->result;
    const csv_shift *before = result->shift_count ? &result->shifts[result->shift_count - 1] : NULL;
    if (before && before->line + (result->rows - before->row) == p->line)
        return;
    if (result->shift_count == result->shift_capacity) {
        const int capacity = result->shift_capacity ? result->shift_capacity * 2 : 4;
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
    for (; (at = memchr(at, '\n', (size_t)(end - at))) != NULL && at < end; at++)
        count++;
    return count;
}

void csv_block_parse(const csv_table *table, const csv_block *block, int64_t line, float *x, double *y, csv_result *result)
{
    parsing p = {.table = table, .at = block->at, .end = block->end, .line = line, .x = x, .y = y, .result = result};
    const bool allowed = table->options->bad_records > 0;
    const bool simple = !memchr(block->at, '"', (size_t)(block->end - block->at)); /* each record is one line */
    while (p.at < p.end && result->status == BW_OK) {
        const char *record = p.at;
        if (*record == '\n' || (*record == '\r' && record[1] == '\n')) {
            p.at += *record == '\n' ? 1 : 2;
            p.line++;
            continue;
        }
        const bool good = parse_record(&p);
        if (good) {
            p.at++; /* it stands at the newline */
        } else if (!allowed && result->status == BW_OK) {
            result->status = BW_INVALID_ARGUMENT;
        } else {
            p.at = csv_record_end(record, p.end);
        }
        result->missing_rows += good && p.lacking;
        if (good && !p.lacking) {
            note_line(&p);
            result->rows++;
            p.x += table->width;
            p.y++;
        }
        p.line += simple ? 1 : lines_in(record, p.at);
    }
}

void csv_result_free(bw_context *ctx, const csv_table *table, csv_result *result)
{
    bwi_release(ctx, result->shifts);
    for (int i = 0; result->words && i < table->count; i++)
        csv_words_free(ctx, &result->words[i]);
    bwi_release(ctx, result->words);
}
