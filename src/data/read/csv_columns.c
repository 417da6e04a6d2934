/*
 * Header and columns of a CSV file, from its first records. The first record is a header if it has text where the second has a
 * number, or counts the columns 0,1,2,... as pandas does for arrays without names. What was decided is logged. A file
 * that holds text only could be either way: then the user must say.
 */
#include "data/read/csv.h"

#include <string.h>

#define LOOK 1000 /* records that decide what is a category */
#define MOST_COLUMNS (1 << 20)

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

/* A word's number is the order of its first appearance. Keys lie apart from the texts, since looking a word up compares keys first. */
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

/* The slot where it is or would be. There is a free one. */
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

int csv_words_find(const csv_words *words, const char *text, const csv_key *key)
{
    return words->count ? *find_slot(words, text, key) - 1 : -1;
}

int csv_words_add(bw_context *ctx, csv_words *words, const char *text, size_t size)
{
    csv_key key = csv_key_of(text, size, size);
    if (2 * (words->count + 1) > words->slot_count && !grow_slots(ctx, words)) {
        return -1;
    }
    int *slot = find_slot(words, text, &key);
    if (*slot == 0) {
        *slot = add_word(ctx, words, text, &key) + 1;
    }
    return *slot - 1;
}

void csv_words_free(bw_context *ctx, csv_words *words)
{
    for (int i = 0; i < words->count; i++) {
        bwi_release(ctx, words->text[i]);
    }
    bwi_release(ctx, words->text);
    bwi_release(ctx, words->slots);
    bwi_release(ctx, words->keys);
    bwi_release(ctx, words->places);
    *words = (csv_words){.count = 0};
}

/* ---- Header ---- */

typedef struct look {
    int fields;
    int numbers, texts, missing;
    bool counts; /* 0,1,2,... */
} look;

static const char *skip_blank_lines(const char *at, const char *end)
{
    while (at < end && (*at == '\n' || (*at == '\r' && at + 1 < end && at[1] == '\n'))) {
        at++;
    }
    return at;
}

static look look_at(const char *at, const char *end)
{
    look found = {.counts = true};
    csv_field field;
    double value;
    for (bool last = false; !last && found.fields <= MOST_COLUMNS; found.fields++) {
        if (!csv_field_next(&at, end, &field, &last)) {
            break;
        }
        bool number = !field.quoted && csv_field_number(&field, &value);
        found.counts = found.counts && number && value == found.fields;
        if (number) {
            found.numbers++;
        } else if (csv_field_missing(&field)) {
            found.missing++;
        } else {
            found.texts++;
        }
    }
    return found;
}

/* Whether a column has text in the first record and a number in the second. */
static bool text_over_number(const char *first, const char *second, const char *end)
{
    csv_field a, b;
    double value;
    for (bool last_a = false, last_b = false; !last_a && !last_b;) {
        if (!csv_field_next(&first, end, &a, &last_a) || !csv_field_next(&second, end, &b, &last_b)) {
            return false;
        }
        if (!csv_field_missing(&a) && !csv_field_number(&a, &value) && csv_field_number(&b, &value)) {
            return true;
        }
    }
    return false;
}

/* A first line of texts above numbers is a header. Where neither line decides, guessing would turn a name into a class or a
 * sample into a name, so it is refused. */
static bw_status find_header(csv_table *table, const char *first, const char *end)
{
    bw_header wanted = table->options->header;
    char quoted[BWI_QUOTE_SIZE];
    const char *second = csv_record_end(first, end);
    size_t size = (size_t)(second - first) - 1;
    bwi_quote(quoted, first, size > 0 && first[size - 1] == '\r' ? size - 1 : size);
    table->header = wanted == BW_HEADER_YES;
    if (wanted != BW_HEADER_DETECT) {
        return BW_OK;
    }
    look one = look_at(first, end);
    second = skip_blank_lines(second, end);
    if (one.texts == 0 && one.counts && one.fields > 2) {
        table->header = true;
        bwi_log(table->ctx, BW_LOG_WARNING,
                "%s: the first line, %s, counts the columns and is taken as a header; say 'no header' if it is a sample",
                table->path, quoted);
    } else if (one.texts > 0 && second < end && text_over_number(first, second, end)) {
        table->header = true;
        bwi_log(table->ctx, BW_LOG_INFO, "%s: the first line is a header: %s", table->path, quoted);
    } else if (one.texts > 0 && one.numbers == 0 && (second == end || look_at(second, end).numbers == 0)) {
        return bwi_fail(
            table->ctx, BW_INVALID_ARGUMENT,
            "%s: cannot tell whether the first line, %s, is a header: no column has numbers; say 'header' or 'no header'",
            table->path, quoted);
    } else {
        bwi_log(table->ctx, BW_LOG_INFO, "%s: no header; the first line is a sample", table->path);
    }
    return BW_OK;
}

/* ---- Columns ---- */

/* The columns that these must match; NULL: there are none. */
static const bwi_facts *model_facts(const csv_table *table)
{
    const bwi_facts *facts = table->options->like ? bwi_dataset_facts(table->options->like) : NULL;
    return facts && facts->features > 0 ? facts : NULL;
}

/* Columns correspond by their names where both have them, otherwise by their order. */
static bool follows_names(const csv_table *table, const bwi_facts *facts)
{
    bool named = table->header;
    for (int i = 0; named && i < facts->features; i++) {
        named = facts->feature[i].name && facts->feature[i].name[0];
    }
    return named;
}

/* The target of data that is like other data: that column, or none if what is read is to be predicted. */
static bw_status find_target_like(csv_table *table, const bwi_facts *facts)
{
    table->target = -1;
    if (!facts->target) {
        return BW_OK;
    }
    if (!follows_names(table, facts)) {
        table->target = table->count > facts->features ? table->count - 1 : -1;
        return BW_OK;
    }
    for (int i = 0; i < table->count; i++) {
        if (strcmp(table->columns[i].name, facts->target) == 0) {
            table->target = i;
        }
    }
    return BW_OK;
}

/* If none is asked for, a model that was trained before decides, then the last column. */
static bw_status find_target(csv_table *table)
{
    const char *wanted = table->options->target;
    if (!wanted && model_facts(table)) {
        return find_target_like(table, model_facts(table));
    }
    table->target = wanted ? -1 : table->count > 1 ? table->count - 1 : -1;
    if (!wanted || !*wanted) {
        return BW_OK;
    }
    table->target = csv_column_find(table, wanted, strlen(wanted));
    return table->target >= 0 ? BW_OK : csv_column_missing(table, "target", wanted, strlen(wanted));
}

/* Columns that correspond to those of a model by their names are the model's, whatever the options say: a file of validation need
 * not have what was ignored in training. */
static bw_status check_names(const csv_table *table)
{
    const bw_read_options *options = table->options;
    const bwi_facts *facts = model_facts(table);
    if (facts && follows_names(table, facts)) {
        return BW_OK;
    }
    bw_status status = csv_columns_check(table, "ignore", options->ignore);
    if (status == BW_OK) {
        status = csv_columns_check(table, "categorical", options->categorical);
    }
    if (status != BW_OK || facts || table->target < 0 || !csv_column_listed(table, table->target, options->ignore)) {
        return status;
    }
    return bwi_fail(table->ctx, BW_INVALID_ARGUMENT,
                    "%s: the option 'ignore' leaves out the target, column %d; name another one with the option 'target'",
                    table->path, table->target);
}

static bw_status name_columns(csv_table *table, const char *at, const char *end)
{
    csv_field field;
    bool last = false;
    for (int i = 0; i < table->count; i++) {
        if (table->header && !csv_field_next(&at, end, &field, &last)) {
            return bwi_fail(table->ctx, BW_DATA_LOSS, "%s: line 1: a quote in the header is not closed", table->path);
        }
        char *name = bwi_allocate(table->ctx, table->header ? field.size + 1 : 1, 1);
        if (!name) {
            return BW_RESOURCE_EXHAUSTED;
        }
        if (table->header) {
            csv_field_text(&field, name);
        }
        table->columns[i].name = name;
    }
    return BW_OK;
}

/* What is made of the characters of numbers is meant as one, also if it is none: 1e999, 2020-01-31. */
static bool is_text(const csv_field *field)
{
    double value;
    if (csv_field_missing(field) || csv_field_number(field, &value)) {
        return false;
    }
    for (size_t i = 0; i < field->size; i++) {
        if (!strchr("0123456789+-.eE", field->at[i])) {
            return true;
        }
    }
    return field->at[0] == 'e' || field->at[0] == 'E';
}

/* Columns with a text among the first records are categories. */
static void find_categories(csv_table *table, const char *at, const char *end)
{
    csv_field field;
    at = skip_blank_lines(at, end);
    for (int i = 0; i < LOOK && at < end; i++) {
        const char *next = skip_blank_lines(csv_record_end(at, end), end);
        bool last = false;
        for (int c = 0; c < table->count && !last; c++) {
            double value;
            const char *number = bwi_number_scan(at, end, &value);
            if (number && *number == ',') {
                at = number + 1;
                continue;
            }
            if (!csv_field_next(&at, end, &field, &last)) {
                break;
            }
            if (is_text(&field)) {
                table->columns[c].kind = CSV_CATEGORY;
            }
        }
        at = next;
    }
}

static void place_columns(csv_table *table)
{
    for (int i = 0; i < table->count; i++) {
        csv_column *column = &table->columns[i];
        if (i != table->target && csv_column_listed(table, i, table->options->ignore)) {
            column->kind = CSV_IGNORED;
        } else if (csv_column_listed(table, i, table->options->categorical)) {
            column->kind = CSV_CATEGORY;
        }
        column->place = i == table->target || column->kind == CSV_IGNORED ? -1 : table->width++;
    }
}

static csv_kind kind_like(const bwi_feature *feature)
{
    return feature->categories > 0 ? CSV_CATEGORY : CSV_NUMBER;
}

/* The column of a feature by its name, the first that has no place yet; -1: none. */
static int column_named(const csv_table *table, const char *name)
{
    for (int i = 0; i < table->count; i++) {
        if (i != table->target && table->columns[i].place < 0 && strcmp(table->columns[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

/* Columns that the model was not trained on are left out. */
static bw_status follow_names(csv_table *table, const bwi_facts *facts)
{
    char quoted[BWI_QUOTE_SIZE];
    for (int i = 0; i < table->count; i++) {
        table->columns[i].place = -1;
        if (i != table->target) {
            table->columns[i].kind = CSV_IGNORED;
        }
    }
    for (int k = 0; k < facts->features; k++) {
        const char *name = facts->feature[k].name;
        int found = column_named(table, name);
        if (found < 0) {
            return bwi_fail(table->ctx, BW_NOT_FOUND, "%s: no column %s, which the dataset given as `like` has", table->path,
                            bwi_quote(quoted, name, strlen(name)));
        }
        table->columns[found].place = k;
        table->columns[found].kind = kind_like(&facts->feature[k]);
    }
    table->width = facts->features;
    return BW_OK;
}

static bw_status follow_order(csv_table *table, const bwi_facts *facts)
{
    int feature = 0;
    for (int i = 0; i < table->count; i++) {
        csv_column *column = &table->columns[i];
        if (i == table->target || column->kind == CSV_IGNORED) {
            continue;
        }
        if (feature < facts->features) {
            column->kind = kind_like(&facts->feature[feature]);
        }
        feature++;
    }
    if (feature != facts->features) {
        return bwi_fail(table->ctx, BW_INVALID_ARGUMENT, "%s: %d columns of inputs, but the dataset given as `like` has %d",
                        table->path, feature, facts->features);
    }
    return BW_OK;
}

/* Columns, kinds and categories are those of the dataset that the model was trained with. */
static bw_status follow(csv_table *table)
{
    const bwi_facts *facts = model_facts(table);
    if (!facts) {
        return BW_OK;
    }
    if (table->target >= 0) {
        table->columns[table->target].kind = facts->classes > 0 ? CSV_CATEGORY : CSV_NUMBER;
    }
    return follows_names(table, facts) ? follow_names(table, facts) : follow_order(table, facts);
}

bw_status csv_table_open(csv_table *table, bw_context *ctx, const csv_text *text, const bw_read_options *options)
{
    const char *first = skip_blank_lines(text->at, text->end), *end = text->end;
    *table = (csv_table){.ctx = ctx, .options = options, .path = text->path, .target = -1, .lock = table->lock};
    if (first == end) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: is empty", text->path);
    }
    const char *second = csv_record_end(first, end);
    table->count = look_at(first, end).fields;
    if (table->count == 0) {
        return bwi_fail(ctx, BW_DATA_LOSS, "%s: line 1: a quote is not closed", text->path);
    }
    if (table->count > MOST_COLUMNS) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: line 1 has more than %d fields", text->path, MOST_COLUMNS);
    }
    table->columns = bwi_allocate(ctx, (size_t)table->count, sizeof *table->columns);
    if (!table->columns) {
        return BW_RESOURCE_EXHAUSTED;
    }
    for (int i = 0; i < table->count; i++) {
        table->columns[i].kind = CSV_NUMBER;
    }
    bw_status status = find_header(table, first, end);
    if (status == BW_OK) {
        status = name_columns(table, first, end);
    }
    if (status == BW_OK && table->header) {
        table->first_size = (size_t)(second - first);
        table->first = bwi_allocate(ctx, table->first_size, 1);
        if (!table->first) {
            status = BW_RESOURCE_EXHAUSTED;
        } else {
            memcpy(table->first, first, table->first_size);
        }
    }
    if (status == BW_OK) {
        status = find_target(table);
    }
    if (status == BW_OK) {
        status = check_names(table);
    }
    if (status != BW_OK) {
        return status;
    }
    find_categories(table, table->header ? second : first, end);
    place_columns(table);
    if (table->width == 0) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: no column is left for the inputs", text->path);
    }
    return follow(table);
}

void csv_table_close(csv_table *table)
{
    for (int i = 0; table->columns && i < table->count; i++) {
        bwi_release(table->ctx, table->columns[i].name);
    }
    bwi_release(table->ctx, table->columns);
    bwi_release(table->ctx, table->first);
    table->columns = NULL;
    table->first = NULL;
}
