/*
 * Finds the columns that options name: by name first, so that a column named "0" can be reached, then by number from 0 (negative:
 * from the end). A name that no column has is a mistake and is never ignored, because the model would then silently be trained
 * with a column that was meant to be left out, or without one that was meant to be used.
 */
#include "data/read/csv/csv.h"

#include <string.h>

enum { SHOWN = 8 }; /* columns that a message lists */

static bool is_named(const csv_table *table, int column, const char *word, size_t size)
{
    const char *name = table->columns[column].name;
    return *name && strlen(name) == size && memcmp(name, word, size) == 0;
}

static bool is_numbered(const csv_table *table, int column, const char *word, size_t size)
{
    int64_t value;
    return bwi_parse_int(word, word + size, &value) && (value == column || value + table->count == column);
}

bool bwi_csv_column_listed(const csv_table *table, int column, const char *list)
{
    while (list && *list) {
        size_t size = strcspn(list, ",");
        if (is_named(table, column, list, size) || is_numbered(table, column, list, size)) {
            return true;
        }
        list += size + (list[size] == ',');
    }
    return false;
}

int bwi_csv_column_find(const csv_table *table, const char *word, size_t size)
{
    int found = -1;
    for (int i = 0; i < table->count; i++) {
        if (is_named(table, i, word, size)) {
            found = i;
        }
    }
    for (int i = 0; found < 0 && i < table->count; i++) {
        if (is_numbered(table, i, word, size)) {
            found = i;
        }
    }
    return found;
}

/* Adds "; did you mean 'name'?" if a column has a similar name, otherwise a list of the columns. */
static void add_hint(const csv_table *table, bwi_text *text, const char *word, size_t size)
{
    char quoted[BWI_QUOTE_SIZE];
    const char *nearest = NULL;
    size_t least = SIZE_MAX;
    if (!table->header) {
        bwi_text_add(text, "; the file has no header, its columns are numbered from 0 to %d", table->count - 1);
        return;
    }
    for (int i = 0; i < table->count; i++) {
        nearest = bwi_nearer(&least, word, size, table->columns[i].name) ? table->columns[i].name : nearest;
    }
    if (nearest) {
        bwi_text_add(text, "; did you mean %s?", bwi_quote(quoted, nearest, strlen(nearest)));
        return;
    }
    bwi_text_add(text, "; the file has %d: ", table->count);
    for (int i = 0; i < table->count && i < SHOWN; i++) {
        const char *name = table->columns[i].name;
        bwi_text_add(text, "%s%s", i ? ", " : "", bwi_quote(quoted, name, strlen(name)));
    }
    bwi_text_add(text, "%s", table->count > SHOWN ? ", ..." : "");
}

bw_status bwi_csv_column_missing(const csv_table *table, const char *option, const char *word, size_t size)
{
    char quoted[BWI_QUOTE_SIZE];
    bwi_text hint = {.ctx = table->ctx};
    add_hint(table, &hint, word, size);
    bw_status status = hint.failed
                           ? BW_RESOURCE_EXHAUSTED
                           : bwi_fail(table->ctx, BW_NOT_FOUND, "%s: the option '%s' names a column %s, which is not there%s",
                                      table->path, option, bwi_quote(quoted, word, size), hint.bytes);
    bwi_text_free(&hint);
    return status;
}

bw_status bwi_csv_columns_check(const csv_table *table, const char *option, const char *list)
{
    while (list && *list) {
        size_t size = strcspn(list, ",");
        if (bwi_csv_column_find(table, list, size) < 0) {
            return bwi_csv_column_missing(table, option, list, size);
        }
        list += size + (list[size] == ',');
    }
    return BW_OK;
}

void bwi_csv_target_add(csv_table *table, int column)
{
    table->columns[column].target = table->targets;
    table->target = table->targets == 0 ? column : table->target;
    table->targets++;
}

/* A target is one column, so a name that several columns have is refused. */
static bw_status check_single(const csv_table *table, int column)
{
    const char *name = table->columns[column].name;
    char named[CSV_COLUMN_TEXT];
    for (int i = 0; *name && i < table->count; i++) {
        if (i != column && strcmp(table->columns[i].name, name) == 0) {
            return bwi_fail(table->ctx, BW_INVALID_ARGUMENT,
                            "%s: the option 'target' names %s, as columns %d and %d are called; give its number", table->path,
                            bwi_csv_column_text(table, column, named), i < column ? i : column, i < column ? column : i);
        }
    }
    return BW_OK;
}

/* A list that is itself the name of a column means that column, so a name may contain commas; otherwise commas separate names. */
bw_status bwi_csv_targets_choose(csv_table *table, const char *list)
{
    int whole = bwi_csv_column_find(table, list, strlen(list));
    if (whole >= 0) {
        bwi_csv_target_add(table, whole);
        return is_named(table, whole, list, strlen(list)) ? check_single(table, whole) : BW_OK;
    }
    while (*list) {
        size_t size = strcspn(list, ",");
        int column = bwi_csv_column_find(table, list, size);
        char named[CSV_COLUMN_TEXT];
        if (column < 0) {
            return bwi_csv_column_missing(table, "target", list, size);
        }
        if (table->columns[column].target >= 0) {
            return bwi_fail(table->ctx, BW_INVALID_ARGUMENT, "%s: the option 'target' names %s twice", table->path,
                            bwi_csv_column_text(table, column, named));
        }
        bw_status single = is_named(table, column, list, size) ? check_single(table, column) : BW_OK;
        if (single != BW_OK) {
            return single;
        }
        bwi_csv_target_add(table, column);
        list += size + (list[size] == ',');
    }
    return BW_OK;
}
