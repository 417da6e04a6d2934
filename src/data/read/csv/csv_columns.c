/*
 * Finds the header and the columns of a CSV file by looking at its first records. The first record is a header if it has text
 * where the second has a number, or if it counts the columns 0,1,2,... as pandas does for arrays without names. What was decided
 * is logged. A file that holds only text could be read either way, so there the user must say.
 */
#include "data/read/csv/csv.h"

#include <string.h>

/* ---- Words ---- */

static uint64_t hash_key(const csv_key *key)
{
    uint64_t hash = (key->word[0] ^ (uint64_t)key->size << 56) * 0x9E3779B97F4A7C15u;
    hash = (hash ^ hash >> 32 ^ key->word[1]) * 0xD6E8FEB86659FD93u;
    return hash ^ hash >> 32;
}

static bool grow_slots(bw_context *ctx, csv_words *words)
{
    int count = words->slot_count ? words->slot_count * 2 : 64;
    int *slots = bwi_allocate(ctx, (size_t)count, sizeof *slots);
    if (!slots) {
        return false;
    }
    for (int i = 0; i < words->count; i++) {
        uint64_t at = hash_key(&words->keys[i]);
        while (slots[at & (uint64_t)(count - 1)]) {
            at++;
        }
        slots[at & (uint64_t)(count - 1)] = i + 1;
    }
    bwi_release(ctx, words->slots);
    words->slots = slots;
    words->slot_count = count;
    return true;
}

/* Words are numbered in the order of their first appearance. Keys lie apart from the texts, since looking a word up compares keys
 * first. */
static int add_word(bw_context *ctx, csv_words *words, const char *text, const csv_key *key)
{
    if (words->count == words->capacity) {
        int capacity = words->capacity ? words->capacity * 2 : 16;
        char **larger = bwi_grow(ctx, words->text, (size_t)words->count, (size_t)capacity, sizeof *larger);
        if (!larger) {
            return -1;
        }
        words->text = larger;
        csv_key *keys = bwi_grow(ctx, words->keys, (size_t)words->count, (size_t)capacity, sizeof *keys);
        if (!keys) {
            return -1;
        }
        words->keys = keys;
        words->capacity = capacity;
    }
    char *copy = bwi_allocate(ctx, key->size + 1, 1);
    if (!copy) {
        return -1;
    }
    memcpy(copy, text, key->size);
    words->text[words->count] = copy;
    words->keys[words->count] = *key;
    return words->count++;
}

/* Returns the slot where the word is or would be. The search ends because there is always a free slot. */
static int *find_slot(const csv_words *words, const char *text, const csv_key *key)
{
    uint64_t mask = (uint64_t)words->slot_count - 1;
    for (uint64_t at = hash_key(key);; at++) {
        int *slot = &words->slots[at & mask];
        const csv_key *other = *slot ? &words->keys[*slot - 1] : NULL;
        if (!other || (other->word[0] == key->word[0] && other->word[1] == key->word[1] && other->size == key->size &&
                       (key->size <= 16 || memcmp(words->text[*slot - 1], text, key->size) == 0))) {
            return slot;
        }
    }
}

int bwi_csv_words_find(const csv_words *words, const char *text, const csv_key *key)
{
    return words->count ? *find_slot(words, text, key) - 1 : -1;
}

int bwi_csv_words_add(bw_context *ctx, csv_words *words, const char *text, size_t size)
{
    csv_key key = bwi_csv_key_of(text, size, size);
    if (2 * (words->count + 1) > words->slot_count && !grow_slots(ctx, words)) {
        return -1;
    }
    int *slot = find_slot(words, text, &key);
    if (*slot == 0) {
        *slot = add_word(ctx, words, text, &key) + 1;
    }
    return *slot - 1;
}

void bwi_csv_words_free(bw_context *ctx, csv_words *words)
{
    for (int i = 0; i < words->count; i++) {
        bwi_release(ctx, words->text[i]);
    }
    bwi_release(ctx, words->text);
    bwi_release(ctx, words->slots);
    bwi_release(ctx, words->keys);
    bwi_release(ctx, words->merged);
    *words = (csv_words){.count = 0};
}

/* ---- Header ---- */

typedef struct look {
    int fields;
    int numbers, texts, missing;
    bool counts; /* the fields are 0,1,2,... */
} look;

static look look_at(const csv_dialect *dialect, const char *at, const char *end)
{
    look found = {.counts = true};
    csv_field field;
    double value;
    for (bool last = false; !last && found.fields <= CSV_MOST_COLUMNS; found.fields++) {
        if (!bwi_csv_field_next(dialect, &at, end, &field, &last)) {
            break;
        }
        bool number = !field.quoted && bwi_csv_field_number(dialect, &field, &value);
        found.counts = found.counts && number && value == found.fields;
        if (number) {
            found.numbers++;
        } else if (bwi_csv_field_missing(dialect, &field)) {
            found.missing++;
        } else {
            found.texts++;
        }
    }
    return found;
}

/* Whether a column has text in the first record and a number in the second. */
static bool text_over_number(const csv_dialect *dialect, const char *first, const char *second, const char *end)
{
    csv_field a, b;
    double value;
    for (bool last_a = false, last_b = false; !last_a && !last_b;) {
        if (!bwi_csv_field_next(dialect, &first, end, &a, &last_a) || !bwi_csv_field_next(dialect, &second, end, &b, &last_b)) {
            return false;
        }
        if (!bwi_csv_field_missing(dialect, &a) && !bwi_csv_field_number(dialect, &a, &value) && !bwi_csv_field_infinite(&a) &&
            bwi_csv_field_number(dialect, &b, &value)) {
            return true;
        }
    }
    return false;
}

/* Quotes a line for a message, with tabs shown as blanks. */
static void quote_line(char quoted[BWI_QUOTE_SIZE], const char *line, size_t size)
{
    char text[BWI_QUOTE_SIZE];
    size_t shown = size < sizeof text ? size : sizeof text;
    for (size_t i = 0; i < shown; i++) {
        text[i] = line[i] == '\t' ? ' ' : line[i];
    }
    bwi_quote(quoted, text, shown);
}

/* Whether a field of the first line is one that the option `text` names: only a header has that. */
static bool names_text(const csv_table *table, const char *at, const char *end)
{
    const char *list = table->options->text;
    csv_field field;
    for (bool last = false, found = false; list && *list && !last; found = false) {
        if (!bwi_csv_field_next(&table->dialect, &at, end, &field, &last)) {
            return false;
        }
        for (const char *word = list; word && !found; word = strchr(word, ',') ? strchr(word, ',') + 1 : NULL) {
            size_t size = strcspn(word, ",");
            found = size == field.size && size > 0 && memcmp(word, field.at, size) == 0;
        }
        if (found) {
            return true;
        }
    }
    return false;
}

/* A first line with text above numbers is a header. Where neither line decides, guessing would turn a name into a class or a
 * sample into a name, so the file is refused. */
static bw_status find_header(csv_table *table, const char *first, const char *end)
{
    bw_header wanted = table->options->header;
    char quoted[BWI_QUOTE_SIZE];
    const csv_dialect *dialect = &table->dialect;
    const char *second = bwi_csv_record_end(dialect, first, end);
    size_t size = (size_t)(second - first) - 1;
    int64_t line = 0;
    quote_line(quoted, first, size > 0 && first[size - 1] == '\r' ? size - 1 : size);
    table->header = wanted == BW_HEADER_YES || (wanted == BW_HEADER_DETECT && names_text(table, first, end));
    if (wanted != BW_HEADER_DETECT || table->header) {
        return BW_OK;
    }
    look one = look_at(dialect, first, end);
    second = bwi_csv_skip_notes(dialect, second, end, &line);
    if (one.texts == 0 && one.counts && one.fields > 2) {
        table->header = true;
        bwi_log(table->ctx, BW_LOG_WARNING,
                "%s: the first line, %s, counts the columns and is taken as a header; say --no-header if it is a sample",
                table->path, quoted);
    } else if (one.texts > 0 && second < end && text_over_number(dialect, first, second, end)) {
        table->header = true;
        bwi_log(table->ctx, BW_LOG_INFO, "%s: the first line is a header: %s", table->path, quoted);
    } else if (one.texts > 0 && one.numbers == 0 && (second == end || look_at(dialect, second, end).numbers == 0)) {
        return bwi_fail(table->ctx, BW_INVALID_ARGUMENT,
                        "%s: cannot tell whether the first line, %s, is a header: no column has numbers; say so (--header or "
                        "--no-header), or skip a title (--skip-rows)",
                        table->path, quoted);
    } else {
        bwi_log(table->ctx, BW_LOG_INFO, "%s: no header; the first line is a sample", table->path);
    }
    return BW_OK;
}

/* Removes the mark of a header that is written as a comment: in "# a,b" the first name is a. */
static void strip_mark(char *name)
{
    size_t marks = strspn(name, "#"), blanks = strspn(name + marks, " \t");
    if (marks > 0 && name[marks + blanks]) {
        memmove(name, name + marks + blanks, strlen(name + marks + blanks) + 1);
    }
}

static bw_status name_columns(csv_table *table, const char *at, const char *end)
{
    csv_field field;
    bool last = false;
    for (int i = 0; i < table->count; i++) {
        if (table->header && !bwi_csv_field_next(&table->dialect, &at, end, &field, &last)) {
            return bwi_fail(table->ctx, BW_DATA_LOSS, "%s: line 1: a quote in the header is not closed", table->path);
        }
        char *name = bwi_allocate(table->ctx, table->header ? field.size + 1 : 1, 1);
        if (!name) {
            return BW_RESOURCE_EXHAUSTED;
        }
        if (table->header) {
            bwi_csv_field_text(&field, name);
            if (i == 0) {
                strip_mark(name);
            }
        }
        table->columns[i].name = name;
    }
    return BW_OK;
}

/* ---- Columns ---- */

/* Drops the last column if every line ends with a separator, because what would follow it is not a column. */
static void drop_last(csv_table *table)
{
    csv_column *column = &table->columns[table->count - 1];
    char mark[8];
    if (table->count < 2 || column->name[0] || table->looked == 0 || column->found.empty < table->looked) {
        return;
    }
    column->kind = CSV_IGNORED;
    column->dropped = true;
    bwi_log(table->ctx, BW_LOG_INFO, "%s: every line ends with %s; the empty column after it is left out", table->path,
            bwi_csv_separator_text(table->dialect.separator, mark));
}

/* If no target is asked for, the model that was trained before decides; without one, the last column is the target. */
static bw_status find_targets(csv_table *table)
{
    const char *wanted = table->options->target;
    const bwi_facts *facts = bwi_csv_like_facts(table);
    if (!wanted && facts) {
        return bwi_csv_like_targets(table, facts);
    }
    if (wanted) {
        return *wanted ? bwi_csv_targets_choose(table, wanted) : BW_OK;
    }
    int last = table->count - 1 - table->columns[table->count - 1].dropped;
    if (last > 0) {
        bwi_csv_target_add(table, last);
    }
    return BW_OK;
}

/* Options name columns that there are, and none leaves out the target. */
static bw_status check_names(const csv_table *table)
{
    const bw_read_options *options = table->options;
    const bwi_facts *facts = bwi_csv_like_facts(table);
    bw_status status = bwi_csv_columns_check(table, "ignore", options->ignore);
    if (status == BW_OK) {
        status = bwi_csv_columns_check(table, "categorical", options->categorical);
    }
    if (status == BW_OK) {
        status = bwi_csv_columns_check(table, "text", options->text);
    }
    if (status != BW_OK) {
        return status;
    }
    for (int c = 0; c < table->count; c++) {
        char named[CSV_COLUMN_TEXT];
        if (table->columns[c].target >= 0 && bwi_csv_column_listed(table, c, options->ignore)) {
            return bwi_fail(table->ctx, BW_INVALID_ARGUMENT,
                            "%s: the option 'ignore' leaves out the target, %s; name another one with the option 'target'",
                            table->path, bwi_csv_column_text(table, c, named));
        }
    }
    return facts ? bwi_csv_like_check(table, facts) : BW_OK;
}

/* Pandas and R write row numbers as a first column, and many tables have one. It says nothing about the target, and a model that
 * memorises it only seems to learn. */
static void warn_of_index(const csv_table *table)
{
    static const char *const names[] = {"", "id", "index", "no", "nr", "row", "#", "Unnamed: 0"};
    const csv_column *first = &table->columns[0];
    char word[CSV_COLUMN_TEXT], named[CSV_COLUMN_TEXT];
    bool usual = false;
    for (size_t i = 0; table->header && i < BWI_COUNT(names); i++) {
        size_t k = 0;
        while (first->name[k] && names[i][k] && (first->name[k] | 0x20) == (names[i][k] | 0x20)) {
            k++;
        }
        usual = usual || (!first->name[k] && !names[i][k]);
    }
    if (usual && first->kind == CSV_NUMBER && first->target < 0 && first->found.counts && first->found.numbers == table->looked &&
        table->looked > 2 && table->count > 2) {
        bwi_log(table->ctx, BW_LOG_WARNING, "%s: %s counts the rows and says nothing about them; leave it out with --ignore %s",
                table->path, bwi_csv_column_text(table, 0, named), bwi_csv_column_word(table, 0, word));
    }
}

/* Kinds that options choose take precedence over those that were found. A column of dates has no usable kind, and is refused. */
static bw_status index_columns(csv_table *table)
{
    char named[CSV_COLUMN_TEXT], word[CSV_COLUMN_TEXT], quoted[BWI_QUOTE_SIZE];
    for (int i = 0; i < table->count; i++) {
        csv_column *column = &table->columns[i];
        const csv_found *found = &column->found;
        if (column->target < 0 && bwi_csv_column_listed(table, i, table->options->ignore)) {
            column->kind = CSV_IGNORED;
        } else if (bwi_csv_column_listed(table, i, table->options->categorical)) {
            column->kind = CSV_CATEGORY;
        } else if (column->target < 0 && bwi_csv_column_listed(table, i, table->options->text)) {
            column->kind = CSV_TEXT;
        }
        column->input = column->target >= 0 || column->kind == CSV_IGNORED ? -1 : table->width++;
        if (bwi_csv_like_facts(table)) {
            continue; /* bwi_csv_like_follow sets the kinds */
        }
        if (column->kind == CSV_ODD) {
            bwi_csv_column_word(table, i, word);
            return bwi_fail_line(
                table->ctx, BW_INVALID_ARGUMENT, table->path, found->line, i,
                "%s %s (%s), which cannot be read as numbers; write them as numbers, leave the column out (--ignore "
                "%s), or make each value a category (--categorical %s)",
                bwi_csv_column_text(table, i, named), bwi_csv_found_text(found),
                bwi_quote(quoted, found->text, strlen(found->text)), word, word);
        }
        if (column->kind == CSV_CATEGORY && column->target >= 0 && table->targets > 1) {
            return bwi_fail_line(table->ctx, BW_INVALID_ARGUMENT, table->path, found->line, i,
                                 "%s, one of %d targets, is text; of several targets all are numbers",
                                 bwi_csv_column_text(table, i, named), table->targets);
        }
    }
    return BW_OK;
}

/* If the first line has another number of fields than all others, the mistake is reported for it, not for the line after it. */
static bw_status check_first(const csv_table *table, int64_t line)
{
    int others = table->dialect.fields;
    char mark[8];
    if (others == 0 || others == table->count) {
        return BW_OK;
    }
    return bwi_fail_line(table->ctx, BW_INVALID_ARGUMENT, table->path, line, -1,
                         "%d field%s, but the lines after it have %d (separated by %s); %s", table->count,
                         table->count == 1 ? "" : "s", others, bwi_csv_separator_text(table->dialect.separator, mark),
                         table->count + 1 == others ? "does the header lack a name, or is it a title (--skip-rows)?"
                                                    : "if it is a title, skip it (--skip-rows)");
}

static void report_dialect(const csv_table *table)
{
    char mark[8];
    const csv_dialect *dialect = &table->dialect;
    if (dialect->separator != ',' && !table->options->separator) {
        bwi_log(table->ctx, BW_LOG_INFO, "%s: fields are separated by %s", table->path,
                bwi_csv_separator_text(dialect->separator, mark));
    }
    if (dialect->decimal == ',') {
        bwi_log(table->ctx, BW_LOG_INFO, "%s: numbers have a decimal comma", table->path);
    }
}

/* Settles the columns in an order in which each step knows what it needs: the header names the columns, options choose among the
 * names, and the remaining columns are judged by their values. */
static bw_status open_columns(csv_table *table, const char *first, const char *end, int64_t line)
{
    const char *second = bwi_csv_record_end(&table->dialect, first, end);
    bw_status status = find_header(table, first, end);
    if (status == BW_OK) {
        status = name_columns(table, first, end);
    }
    if (status == BW_OK && table->header) {
        table->first_size = (size_t)(second - first);
        table->first = bwi_allocate(table->ctx, table->first_size, 1);
        if (!table->first) {
            return BW_RESOURCE_EXHAUSTED;
        }
        memcpy(table->first, first, table->first_size);
    }
    if (status != BW_OK) {
        return status;
    }
    for (const char *at = first; table->header && at < second; at++) {
        line += *at == '\n';
    }
    bwi_csv_types_find(table, table->header ? second : first, end, line);
    if (!bwi_csv_like_facts(table)) {
        drop_last(table);
    }
    status = find_targets(table);
    if (status == BW_OK) {
        status = check_names(table);
    }
    table->stride = table->targets > 1 ? table->targets : 1;
    return status == BW_OK ? index_columns(table) : status;
}

bw_status bwi_csv_table_open(csv_table *table, bw_context *ctx, const csv_text *text, const bw_read_options *options)
{
    int64_t line = text->line;
    const char *end = text->end, *first = bwi_csv_skip_notes(&text->dialect, text->at, end, &line);
    *table = (csv_table){
        .ctx = ctx, .options = options, .path = text->path, .dialect = text->dialect, .target = -1, .lock = table->lock};
    if (first == end) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: is empty", text->path);
    }
    table->count = look_at(&table->dialect, first, end).fields;
    if (table->count == 0) {
        return bwi_fail(ctx, BW_DATA_LOSS, "%s: line %lld: a quote is not closed", text->path, (long long)line);
    }
    if (table->count > CSV_MOST_COLUMNS) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: line %lld has more than %d fields", text->path, (long long)line,
                        CSV_MOST_COLUMNS);
    }
    report_dialect(table);
    bw_status status = check_first(table, line);
    if (status != BW_OK) {
        return status;
    }
    table->columns = bwi_allocate(ctx, (size_t)table->count, sizeof *table->columns);
    if (!table->columns) {
        return BW_RESOURCE_EXHAUSTED;
    }
    for (int i = 0; i < table->count; i++) {
        table->columns[i].kind = CSV_NUMBER;
        table->columns[i].target = -1;
    }
    status = open_columns(table, first, end, line);
    if (status != BW_OK) {
        return status;
    }
    if (table->width == 0) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: no column is left for the inputs%s", text->path,
                        table->count == 1 ? "; it has one" : "");
    }
    if (bwi_csv_like_facts(table)) {
        status = bwi_csv_like_follow(table, bwi_csv_like_facts(table));
    } else {
        warn_of_index(table);
    }
    for (int i = 0; i < table->count; i++) {
        table->columns[i].text = table->columns[i].kind == CSV_TEXT ? table->texts++ : -1;
    }
    return status;
}

void bwi_csv_table_close(csv_table *table)
{
    for (int i = 0; table->columns && i < table->count; i++) {
        bwi_release(table->ctx, table->columns[i].name);
    }
    bwi_release(table->ctx, table->columns);
    bwi_release(table->ctx, table->first);
    table->columns = NULL;
    table->first = NULL;
}
