/*
 * Finds what the columns of a table hold: numbers, categories, or dates and the like, judged by the first records. The majority of
 * values decides, so that one word among hundreds of numbers is a mistake that the parser reports, not a reason to make an input
 * of every number. Dates are neither numbers nor categories: with one input per day a model would memorise days and could predict
 * no other. Nor are 1,234 and 12%.
 */
#include "data/read/csv/csv.h"

#include <stdio.h>
#include <string.h>

#define LOOK 1000      /* records from which columns are judged */
#define FEW 20         /* this many categories are never too many */
#define SAMPLES_EACH 5 /* with fewer samples per category there are too many categories */

/* ---- Values ---- */

/* Reads up to `most` digits, and returns how many there are. */
static int take_digits(const char **at, const char *end, int most, int *value)
{
    int count = 0;
    for (*value = 0; *at < end && **at >= '0' && **at <= '9' && count < most; ++*at, count++) {
        *value = *value * 10 + (**at - '0');
    }
    return count;
}

/* Recognises 2020-01-31, 31.1.2020 and 1/31/20, with or without a time after them. */
static bool is_date(const csv_field *field)
{
    const char *at = field->at, *end = at + field->size;
    int part[3], digits[3];
    char mark = 0;
    for (int i = 0; i < 3; i++) {
        digits[i] = take_digits(&at, end, 4, &part[i]);
        if (digits[i] == 0 || (i < 2 && (at == end || !strchr("-/.", *at) || (mark && *at != mark)))) {
            return false;
        }
        mark = i < 2 ? *at++ : mark;
    }
    if (at < end && *at != ' ' && *at != 'T') {
        return false;
    }
    bool year_first = digits[0] == 4 && digits[1] <= 2 && digits[2] <= 2;
    bool year_last = digits[0] <= 2 && digits[1] <= 2 && (digits[2] == 4 || (digits[2] == 2 && mark == '/'));
    int month = part[1], day = year_first ? part[2] : part[0];
    return (year_first || year_last) && month >= 1 && day >= 1 && month <= 31 && day <= 31 && (month <= 12 || day <= 12);
}

/* Recognises numbers that are written for people: 1,234 in quotes, 12%, $5.50. They are not text, and what the comma means is not
 * known here. */
static bool is_dressed(const csv_field *field)
{
    static const char *const signs[] = {"$", "\xE2\x82\xAC", "\xC2\xA3"}; /* dollar, euro, pound */
    const char *at = field->at, *end = at + field->size;
    char text[32];
    size_t size = 0;
    for (size_t i = 0; i < BWI_COUNT(signs); i++) {
        size_t length = strlen(signs[i]);
        at += (size_t)(end - at) > length && memcmp(at, signs[i], length) == 0 ? length : 0;
    }
    end -= end > at && end[-1] == '%';
    for (; at < end; at++) {
        if (size + 1 == sizeof text || (*at == ',' && (size == 0 || end - at < 4))) {
            return false;
        }
        if (*at != ',' && *at != ' ') {
            text[size++] = *at;
        }
    }
    double value;
    text[size] = '\n'; /* reading a number stops at the first byte that cannot belong to it */
    return size > 0 && bwi_number_scan(text, text + size, &value) == text + size;
}

bool bwi_csv_field_infinite(const csv_field *field)
{
    static const char *const words[] = {"inf", "infinity"};
    const char *at = field->at;
    size_t size = field->size;
    if (size > 0 && (*at == '-' || *at == '+')) {
        at++;
        size--;
    }
    for (size_t i = 0; i < BWI_COUNT(words); i++) {
        size_t k = 0;
        while (k < size && words[i][k] && (at[k] | 0x20) == words[i][k]) {
            k++;
        }
        if (k == size && !words[i][k]) {
            return true;
        }
    }
    return false;
}

/* A text made only of characters that numbers have is meant as a number, even if it is not a valid one, such as 1e999. */
static bool is_meant_as_number(const csv_field *field)
{
    for (size_t i = 0; i < field->size; i++) {
        if (!memchr("0123456789+-.eE", field->at[i], sizeof "0123456789+-.eE")) { /* NUL is not text either */
            return bwi_csv_field_infinite(field);
        }
    }
    return field->size > 0 && field->at[0] != 'e' && field->at[0] != 'E';
}

/* ---- Columns ---- */

static void show(csv_found *found, const csv_field *field, int64_t line)
{
    size_t size = field->size < CSV_SHOWN ? field->size : CSV_SHOWN - 1;
    found->line = line;
    memcpy(found->text, field->at, size);
    found->text[size] = 0;
}

static void note_number(csv_found *found, double value)
{
    bool first = found->numbers == 0;
    double step = value - found->last;
    found->counts = first || (found->counts && step > 0.5 && step < 1.5);
    found->last = value;
    found->numbers++;
}

/* Dates are tried before texts that are only meant as numbers, since a date may consist of digits and dots. */
static void note(const csv_table *table, csv_found *found, const csv_field *field, int64_t line)
{
    double value;
    if (bwi_csv_field_missing(&table->dialect, field)) {
        found->empty += field->size == 0;
        return;
    }
    if (bwi_csv_field_number(&table->dialect, field, &value)) {
        note_number(found, value);
        return;
    }
    bool date = is_date(field);
    found->dates += date;
    if (!date && is_meant_as_number(field)) {
        found->numbers++;
        return;
    }
    bool dressed = !date && is_dressed(field);
    found->dressed += dressed;
    found->texts += !date && !dressed;
    if (found->line == 0) {
        show(found, field, line);
    }
}

void bwi_csv_types_find(csv_table *table, const char *at, const char *end, int64_t line)
{
    csv_field field;
    const csv_dialect *dialect = &table->dialect;
    for (table->looked = 0; table->looked < LOOK; table->looked++) {
        at = bwi_csv_skip_notes(dialect, at, end, &line);
        if (at >= end) {
            break;
        }
        const char *next = bwi_csv_record_end(dialect, at, end), *record = at;
        bool last = false;
        for (int c = 0; c < table->count && !last; c++) {
            double value;
            const char *number = bwi_number_scan(at, end, &value);
            if (number && *number == dialect->separator && *number != ' ') {
                note_number(&table->columns[c].found, value);
                at = number + 1;
                continue;
            }
            if (!bwi_csv_field_next(dialect, &at, end, &field, &last)) {
                break;
            }
            note(table, &table->columns[c].found, &field, line);
        }
        for (at = record; at < next; at++) {
            line += *at == '\n';
        }
    }
    for (int c = 0; c < table->count; c++) {
        const csv_found *found = &table->columns[c].found;
        int odd = found->dates + found->dressed, words = found->texts + odd;
        table->columns[c].kind = words == 0 || words < found->numbers ? CSV_NUMBER : odd > found->texts ? CSV_ODD : CSV_CATEGORY;
    }
}

/* ---- Words about columns ---- */

const char *bwi_csv_column_text(const csv_table *table, int column, char text[CSV_COLUMN_TEXT])
{
    char quoted[BWI_QUOTE_SIZE];
    const char *name = table->columns[column].name;
    if (name && name[0]) {
        snprintf(text, CSV_COLUMN_TEXT, "column %s", bwi_quote(quoted, name, strlen(name)));
    } else {
        snprintf(text, CSV_COLUMN_TEXT, "column %d", column);
    }
    return text;
}

const char *bwi_csv_column_word(const csv_table *table, int column, char text[CSV_COLUMN_TEXT])
{
    const char *name = table->columns[column].name;
    char quoted[BWI_QUOTE_SIZE];
    size_t size = name ? strlen(name) : 0;
    bwi_quote(quoted, name ? name : "", size);
    bool whole = size > 0 && strlen(quoted) == size + 2 && memcmp(quoted + 1, name, size) == 0; /* printable and not shortened */
    if (whole && !strpbrk(name, ",\"`$\\!")) {
        snprintf(text, CSV_COLUMN_TEXT, strpbrk(name, " ()'&;|<>*?#~") ? "\"%s\"" : "%s", name);
    } else {
        snprintf(text, CSV_COLUMN_TEXT, "%d", column);
    }
    return text;
}

const char *bwi_csv_found_text(const csv_found *found)
{
    return found->dates + found->dressed <= found->texts ? "is text"
           : found->dates > found->dressed               ? "holds dates"
                                                         : "holds numbers with signs or separated thousands";
}

/* Writes "is text (line 34 has 'abc')", or that an option says so. */
static void say_why(const csv_table *table, int column, char *text, size_t size)
{
    char quoted[BWI_QUOTE_SIZE];
    const csv_found *found = &table->columns[column].found;
    if (found->line > 0) {
        snprintf(text, size, "%s (line %lld has %s)", found->dates > found->texts ? "holds dates" : "is text",
                 (long long)found->line, bwi_quote(quoted, found->text, strlen(found->text)));
    } else {
        snprintf(text, size, "is taken as categories");
    }
}

void bwi_csv_types_report(const csv_table *table, int column, int categories, int64_t rows)
{
    char named[CSV_COLUMN_TEXT], word[CSV_COLUMN_TEXT], why[BWI_QUOTE_SIZE + 64];
    bwi_csv_column_text(table, column, named);
    say_why(table, column, why, sizeof why);
    bool many = categories > FEW && rows / categories < SAMPLES_EACH;
    if (table->columns[column].target >= 0) {
        bwi_log(table->ctx, many ? BW_LOG_WARNING : BW_LOG_INFO, "%s: the target, %s, %s: %d class%s%s", table->path, named, why,
                categories, categories == 1 ? "" : "es",
                many ? ", with few samples each; is another column the target (--target)?" : "");
        return;
    }
    if (!many) {
        bwi_log(table->ctx, BW_LOG_INFO, "%s: %s %s and becomes %d input%s, one for each category", table->path, named, why,
                categories, categories == 1 ? "" : "s");
        return;
    }
    bwi_log(
        table->ctx, BW_LOG_WARNING,
        "%s: %s %s and becomes %d inputs, one for each category, for %lld samples, which can only be learned by heart; leave it "
        "out with --ignore %s",
        table->path, named, why, categories, (long long)rows, bwi_csv_column_word(table, column, word));
}
