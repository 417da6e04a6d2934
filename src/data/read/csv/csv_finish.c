/*
 * Makes samples from parsed rows. Categories are numbered in sorted order (by value, if all are numbers), so that the result does
 * not depend on which block met them first; each category of an input column becomes an input that is 1 for it and 0 otherwise.
 * Missing numbers become their column's mean or zero; a missing category is zero everywhere. Classes and whole-number targets are
 * int32, other targets float32.
 */
#include "data/read/csv/csv.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MOST_CATEGORIES 1000 /* of an input column, since each becomes an input */
#define MOST_CLASSES 10000

/* ---- Places ---- */

struct csv_location {
    int64_t first; /* its first row */
    int file, shift_count;
    csv_shift *shifts;
};

void bwi_csv_locations_free(bw_context *ctx, csv_locations *locations)
{
    for (int i = 0; locations->paths && i < locations->files; i++) {
        bwi_release(ctx, locations->paths[i]);
    }
    for (int64_t i = 0; i < locations->count; i++) {
        bwi_release(ctx, locations->location[i].shifts);
    }
    bwi_release(ctx, locations->paths);
    bwi_release(ctx, locations->location);
}

void bwi_csv_locate(const csv_locations *locations, int64_t row, char *text, size_t size)
{
    int64_t low = 0, high = locations->count;
    while (high - low > 1) {
        int64_t middle = (low + high) / 2;
        if (locations->location[middle].first <= row) {
            low = middle;
        } else {
            high = middle;
        }
    }
    const struct csv_location *found = &locations->location[low];
    for (int i = found->shift_count; i-- > 0;) {
        const csv_shift *shift = &found->shifts[i];
        if (row - found->first >= shift->row) {
            snprintf(text, size, "%s, line %lld", locations->paths[found->file],
                     (long long)(shift->line + (row - found->first - shift->row)));
            return;
        }
    }
}

static bw_status copy_paths(csv_reading *r, csv_locations *to)
{
    to->paths = bwi_allocate(r->ctx, (size_t)r->files, sizeof *to->paths);
    for (int i = 0; to->paths && i < r->files; i++, to->files++) {
        to->paths[i] = bwi_copy_text(r->ctx, strcmp(r->paths[i], "-") == 0 ? "standard input" : r->paths[i]);
        if (!to->paths[i]) {
            return BW_RESOURCE_EXHAUSTED;
        }
    }
    return to->paths ? BW_OK : BW_RESOURCE_EXHAUSTED;
}

/* Empty spans are left out, so that no two locations begin with the same row. */
bw_status bwi_csv_locations_add(csv_reading *r, csv_locations *to)
{
    bw_status status = to->paths ? BW_OK : copy_paths(r, to);
    if (status != BW_OK) {
        return status;
    }
    if (to->count + r->span_count > to->capacity) {
        int64_t capacity = to->count + r->span_count + to->capacity;
        struct csv_location *larger = bwi_grow(r->ctx, to->location, (size_t)to->count, (size_t)capacity, sizeof *larger);
        if (!larger) {
            return BW_RESOURCE_EXHAUSTED;
        }
        to->location = larger;
        to->capacity = capacity;
    }
    for (int64_t i = 0; i < r->span_count; i++) {
        csv_result *result = &r->spans[i].result;
        if (result->rows == 0) {
            continue;
        }
        to->location[to->count++] = (struct csv_location){
            .first = r->spans[i].first, .file = r->spans[i].file, .shifts = result->shifts, .shift_count = result->shift_count};
        result->shifts = NULL;
    }
    return BW_OK;
}

static void close_locations(bw_dataset *dataset)
{
    bwi_csv_locations_free(dataset->owned.ctx, dataset->state);
}

static void locate(const bw_dataset *dataset, int64_t number, char *text, size_t size)
{
    bwi_csv_locate(dataset->state, number, text, size);
}

static bw_status gather(const bw_dataset *dataset, const bwi_demand *demand)
{
    return bwi_kind_arrays.gather(dataset, demand);
}

static const bwi_dataset_kind csv = {.name = "csv", .gather = gather, .locate = locate, .close = close_locations};

/* ---- What was left out ---- */

/* The share of bad records is known only after all files have been read; the first bad ones are listed either way. */
static bw_status check_bad(csv_reading *r)
{
    int64_t bad = 0, lacking = 0, told = 0, comments = 0;
    for (int64_t i = 0; i < r->span_count; i++) {
        comments += r->spans[i].result.comments;
        bad += r->spans[i].result.bad;
        lacking += r->spans[i].result.missing_rows;
    }
    int64_t records = r->rows + bad + lacking;
    if (lacking > 0) {
        bwi_log(r->ctx, BW_LOG_INFO, "%s: %lld of %lld records have missing values and are left out", r->paths[0],
                (long long)lacking, (long long)records);
    }
    if (comments > 0) {
        bwi_log(r->ctx, BW_LOG_INFO, "%s: comments (lines that begin with #) among the records: %lld", r->paths[0],
                (long long)comments);
    }
    for (int64_t i = 0; i < r->span_count && bad > 0; i++) {
        const csv_result *result = &r->spans[i].result;
        const char *path = r->paths[r->spans[i].file];
        for (int k = 0; k < result->bad && k < CSV_LISTED && told < CSV_LISTED; k++, told++) {
            const csv_mistake *one = &result->mistakes[k];
            if ((double)bad > r->table.options->bad_records * (double)records) {
                bwi_location at = bwi_in_file(path);
                at.line = one->line;
                at.column = one->column;
                return bwi_fail_at(r->ctx, one->status, at,
                                   "%s: %lld of %lld records are bad, more than the allowed %g percent; the first: "
                                   "line %lld: %s",
                                   path, (long long)bad, (long long)records, r->table.options->bad_records * 100,
                                   (long long)one->line, one->text);
            }
            bwi_log(r->ctx, BW_LOG_WARNING, "%s: line %lld is left out: %s", path, (long long)one->line, one->text);
        }
    }
    if (bad > 0) {
        bwi_log(r->ctx, BW_LOG_WARNING, "%s: %lld of %lld records are bad and left out", r->paths[0], (long long)bad,
                (long long)records);
    }
    if (r->rows == 0) {
        return bwi_fail(r->ctx, BW_INVALID_ARGUMENT, "%s: holds no samples", r->paths[0]);
    }
    return BW_OK;
}

/* ---- Categories ---- */

static int compare_words(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static int compare_numbers(const void *a, const void *b)
{
    const char *s = *(char *const *)a, *t = *(char *const *)b;
    double x = 0, y = 0;
    bwi_parse_double(s, s + strlen(s), &x);
    bwi_parse_double(t, t + strlen(t), &y);
    return x < y ? -1 : x > y ? 1 : strcmp(s, t);
}

static double category_at(const csv_reading *r, int column, int64_t row)
{
    const csv_table *table = &r->table;
    const csv_column *one = &table->columns[column];
    return one->target >= 0 ? r->y[row * table->stride + one->target] : (double)r->x[row * table->width + one->input];
}

/* Adds the categories of a block, except for those that occur only in records that were left out. */
static bw_status unite_span(csv_reading *r, const csv_span *part, int column, csv_words *all)
{
    const csv_words *words = &part->result.words[column];
    bool *used = bwi_allocate(r->ctx, (size_t)words->count + 1, sizeof *used);
    bw_status status = used ? BW_OK : BW_RESOURCE_EXHAUSTED;
    bool complete = part->result.bad == 0 && part->result.missing_rows == 0;
    for (int64_t row = part->first; used && !complete && row < part->first + part->result.rows; row++) {
        double number = category_at(r, column, row);
        if (!isnan(number)) {
            used[(int)number] = true;
        }
    }
    for (int k = 0; status == BW_OK && k < words->count; k++) {
        if ((complete || used[k]) && bwi_csv_words_add(r->ctx, all, words->text[k], words->keys[k].size) < 0) {
            status = BW_RESOURCE_EXHAUSTED;
        }
    }
    bwi_release(r->ctx, used);
    return status;
}

/* Unites a column's categories of all blocks, and sorts them. */
static bw_status unite(csv_reading *r, int column, csv_words *all)
{
    bool numbers = true;
    for (int64_t i = 0; i < r->span_count; i++) {
        bw_status status = unite_span(r, &r->spans[i], column, all);
        if (status != BW_OK) {
            return status;
        }
    }
    for (int k = 0; k < all->count; k++) {
        double value;
        numbers = numbers && bwi_parse_double(all->text[k], all->text[k] + strlen(all->text[k]), &value);
    }
    if (all->count > 0) {
        qsort(all->text, (size_t)all->count, sizeof *all->text, numbers ? compare_numbers : compare_words);
    }
    return BW_OK;
}

/* Counts the values of a block that are none of the categories. In an input they count as missing, if missing values are
 * allowed. */
static bw_status count_unknown(const csv_reading *r, const csv_span *part, int column, int categories, int64_t *unknown)
{
    const csv_words *words = &part->result.words[column];
    bool allowed = r->table.columns[column].target < 0 && r->table.options->missing != BW_MISSING_ERROR;
    const char *name = r->table.columns[column].name;
    char quoted[BWI_QUOTE_SIZE], named[BWI_QUOTE_SIZE];
    for (int64_t row = part->first; row < part->first + part->result.rows; row++) {
        double number = category_at(r, column, row);
        if (isnan(number) || words->merged[(int)number] >= 0) {
            continue;
        }
        const char *text = words->text[(int)number];
        if (!allowed) {
            return bwi_fail(r->ctx, BW_INVALID_ARGUMENT, "%s: column %s: %s is none of the %d categories of the training data",
                            r->paths[part->file], bwi_quote(named, name, strlen(name)), bwi_quote(quoted, text, strlen(text)),
                            categories);
        }
        ++*unknown;
    }
    return BW_OK;
}

/* Finds the index in `words` of each text of each block. */
static bw_status merge_words(csv_reading *r, int column, const char *const *words, int count)
{
    csv_words index = {.count = 0};
    int64_t unknown = 0;
    bw_status status = BW_OK;
    for (int k = 0; k < count && status == BW_OK; k++) {
        status = bwi_csv_words_add(r->ctx, &index, words[k], strlen(words[k])) < 0 ? BW_RESOURCE_EXHAUSTED : BW_OK;
    }
    for (int64_t i = 0; i < r->span_count && status == BW_OK; i++) {
        csv_words *state = &r->spans[i].result.words[column];
        bool all = true;
        state->merged = bwi_allocate(r->ctx, (size_t)state->count + 1, sizeof *state->merged);
        for (int k = 0; state->merged && k < state->count; k++) {
            state->merged[k] = bwi_csv_words_find(&index, state->text[k], &state->keys[k]);
            all = all && state->merged[k] >= 0;
        }
        if (!state->merged) {
            status = BW_RESOURCE_EXHAUSTED;
        } else if (!all) {
            status = count_unknown(r, &r->spans[i], column, count, &unknown);
        }
    }
    bwi_csv_words_free(r->ctx, &index);
    if (unknown > 0) {
        char named[BWI_QUOTE_SIZE];
        const char *name = r->table.columns[column].name;
        bwi_log(r->ctx, BW_LOG_WARNING,
                "%s: column %s: %lld values are none of the %d categories of the training data and count as missing", r->paths[0],
                bwi_quote(named, name, strlen(name)), (long long)unknown, count);
    }
    return status;
}

/* The categories are those of the dataset given as `like`, or else all texts that were found. */
static bw_status settle_categories(csv_reading *r, int column, const bwi_facts *like, int feature, const char *const **words,
                                   int *count)
{
    csv_words all = {.count = 0};
    bw_status status = unite(r, column, &all);
    const char *const *known = (const char *const *)all.text;
    int known_count = all.count;
    if (like) {
        known = feature < 0 ? like->class_name : like->feature[feature].category;
        known_count = feature < 0 ? like->classes : like->feature[feature].categories;
    }
    int most = feature < 0 ? MOST_CLASSES : MOST_CATEGORIES;
    if (status == BW_OK && known_count > most) {
        char quoted[BWI_QUOTE_SIZE];
        const char *name = r->table.columns[column].name;
        status =
            bwi_fail(r->ctx, BW_INVALID_ARGUMENT, "%s: column %d (%s) has %d different texts, more than %d%s", r->paths[0], column,
                     bwi_quote(quoted, name, strlen(name)), known_count, most, feature < 0 ? "" : "; leave it out (--ignore)");
    }
    if (status == BW_OK && !like) {
        bwi_csv_types_report(&r->table, column, known_count, r->rows);
    }
    if (status == BW_OK) {
        status = merge_words(r, column, known, known_count);
    }
    if (status == BW_OK) {
        bwi_facts from = {.classes = known_count, .class_name = known};
        bwi_facts copy;
        status = bwi_facts_copy(r->ctx, &copy, &from);
        *words = copy.class_name;
        *count = copy.classes;
    }
    bwi_csv_words_free(r->ctx, &all);
    return status;
}

/* ---- Missing values ---- */

/* The fill value is the mean of the values that are present, zero, or the value that was used for the training data. */
static void fill_missing(csv_reading *r, int input, const bwi_feature *like, bwi_feature *feature)
{
    int width = r->table.width;
    double sum = 0;
    int64_t count = 0;
    float *x = r->x + input;
    for (int64_t row = 0; row < r->rows; row++) {
        if (!isnan(x[row * width])) {
            sum += (double)x[row * width];
            count++;
        }
    }
    feature->filled = true;
    feature->fill = r->table.options->missing == BW_MISSING_MEAN && count > 0 ? sum / (double)count : 0;
    if (like && like->filled) {
        feature->fill = like->fill;
    }
    for (int64_t row = 0; row < r->rows && count < r->rows; row++) {
        if (isnan(x[row * width])) {
            x[row * width] = (float)feature->fill;
        }
    }
}

/* ---- The root ---- */

/* Writes the names of several targets as a list, as in the option. */
static bw_status name_targets(const csv_table *table, bwi_facts *facts)
{
    bwi_text list = {.ctx = table->ctx};
    facts->columns = table->count;
    if (table->targets == 0) {
        return BW_OK;
    }
    int *columns = bwi_allocate(table->ctx, (size_t)table->targets, sizeof *columns);
    facts->target_column = columns;
    if (!columns) {
        return BW_RESOURCE_EXHAUSTED;
    }
    facts->targets = table->targets;
    for (int c = 0; c < table->count; c++) {
        if (table->columns[c].target >= 0) {
            columns[table->columns[c].target] = c;
        }
    }
    for (int k = 0; k < table->targets; k++) {
        bwi_text_add(&list, "%s%s", k ? "," : "", table->columns[columns[k]].name);
    }
    facts->target = list.failed ? NULL : bwi_copy_text(table->ctx, list.bytes);
    bwi_text_free(&list);
    return facts->target ? BW_OK : BW_RESOURCE_EXHAUSTED;
}

bw_status bwi_csv_columns_settle(csv_reading *r, bwi_facts *facts)
{
    const csv_table *table = &r->table;
    const bwi_facts *like = table->options->like ? bwi_dataset_facts(table->options->like) : NULL;
    like = like && like->features > 0 ? like : NULL;
    bwi_feature *features = bwi_allocate(r->ctx, (size_t)table->width, sizeof *features);
    /* A fill value is kept even if nothing is missing now, since values may be missing when the model is used. */
    bool fill = table->options->missing == BW_MISSING_MEAN || table->options->missing == BW_MISSING_ZERO;
    facts->feature = features;
    if (!features) {
        return BW_RESOURCE_EXHAUSTED;
    }
    facts->features = table->width;
    bw_status named = name_targets(table, facts);
    if (named == BW_OK && table->options->na) {
        facts->na = bwi_copy_text(r->ctx, table->options->na);
        named = facts->na ? BW_OK : BW_RESOURCE_EXHAUSTED;
    }
    if (named != BW_OK) {
        return named;
    }
    for (int c = 0; c < table->count; c++) {
        const csv_column *column = &table->columns[c];
        bw_status status = BW_OK;
        if (column->kind == CSV_IGNORED) {
            continue;
        }
        if (column->input >= 0) {
            features[column->input].column = c;
            features[column->input].text = column->kind == CSV_TEXT;
            features[column->input].name = bwi_copy_text(r->ctx, column->name);
            if (!features[column->input].name) {
                return BW_RESOURCE_EXHAUSTED;
            }
        }
        if (column->kind == CSV_CATEGORY && column->target >= 0) {
            status = settle_categories(r, c, like, -1, &facts->class_name, &facts->classes);
        } else if (column->kind == CSV_CATEGORY) {
            status = settle_categories(r, c, like, column->input, &features[column->input].category,
                                       &features[column->input].categories);
        } else if (column->target < 0 && fill && column->kind == CSV_NUMBER) {
            fill_missing(r, column->input, like ? &like->feature[column->input] : NULL, &features[column->input]);
        }
        if (status != BW_OK) {
            return status;
        }
    }
    return BW_OK;
}

typedef struct widening {
    const csv_reading *r;
    const int *column; /* [feature]: the table's column if it has categories; -1: a number */
    const bwi_facts *facts;
    float *to; /* zero at first */
    int64_t width;
} widening;

/* Writes the ones of categories; the memory is zero already. */
static bw_status widen_span(void *user, int64_t span, int worker, char *error)
{
    const widening *w = user;
    const csv_span *part = &w->r->spans[span];
    (void)worker;
    (void)error;
    int features = w->facts->features;
    const float *from = w->r->x + part->first * w->r->table.width;
    float *to = w->to + part->first * w->width;
    for (int64_t row = 0; row < part->result.rows; row++) {
        for (int i = 0; i < features; i++, from++) {
            int column = w->column[i];
            if (w->facts->feature[i].text) {
                continue;
            }
            if (column < 0) {
                *to++ = *from;
                continue;
            }
            int index = *from >= 0 ? part->result.words[column].merged[(int)*from] : -1;
            if (index >= 0) {
                to[index] = 1;
            }
            to += w->facts->feature[i].categories;
        }
    }
    return BW_OK;
}

/* Replaces a column with categories by one column for each category. */
static bw_status widen(csv_reading *r, const bwi_facts *facts, int64_t *width)
{
    char what[512];
    bwi_backing wide = {.bytes = 0};
    bool same = true;
    *width = 0;
    for (int i = 0; i < facts->features; i++) {
        *width += facts->feature[i].text ? 0 : facts->feature[i].categories > 0 ? facts->feature[i].categories : 1;
        same = same && facts->feature[i].categories == 0 && !facts->feature[i].text;
    }
    if (same || *width == 0) {
        return BW_OK;
    }
    int *column = bwi_allocate(r->ctx, (size_t)facts->features, sizeof *column);
    if (!column) {
        return BW_RESOURCE_EXHAUSTED;
    }
    for (int c = 0; c < r->table.count; c++) {
        if (r->table.columns[c].input >= 0) {
            column[r->table.columns[c].input] = r->table.columns[c].kind == CSV_CATEGORY ? c : -1;
        }
    }
    snprintf(what, sizeof what, "%.400s: the inputs with their categories", r->paths[0]);
    bw_status status = bwi_backing_grow(r->ctx, &wide, 0, bwi_size_multiply((size_t)r->rows, (size_t)*width * sizeof(float)), what);
    if (status == BW_OK) {
        widening w = {.r = r, .column = column, .facts = facts, .to = wide.memory, .width = *width};
        char error[BWI_ITEM_ERROR];
        status = bwi_parallel_for(r->ctx, r->span_count, widen_span, &w, error);
        bwi_backing_free(r->ctx, &r->x_backing);
        r->x_backing = wide;
        r->x = wide.memory;
    }
    bwi_release(r->ctx, column);
    return status;
}

/* Replaces class numbers, which each block assigned by itself, by indices of the sorted classes. */
static void merge_targets(csv_reading *r)
{
    const csv_table *table = &r->table;
    for (int64_t i = 0; table->columns[table->target].kind == CSV_CATEGORY && i < r->span_count; i++) {
        const csv_span *part = &r->spans[i];
        for (int64_t row = part->first; row < part->first + part->result.rows; row++) {
            r->y[row] = part->result.words[table->target].merged[(int)r->y[row]];
        }
    }
}

/* A single target of whole numbers is stored as int32, anything else as float32, in memory that is allocated here. */
static bw_status add_target(csv_reading *r, bw_dataset *root)
{
    int64_t depth = r->table.stride, count = r->rows * depth; /* cannot overflow, since y has that many doubles */
    bool whole = depth == 1;
    merge_targets(r);
    for (int64_t i = 0; i < count && whole; i++) {
        whole = r->y[i] >= INT32_MIN && r->y[i] <= INT32_MAX && r->y[i] == (double)(int32_t)r->y[i];
    }
    bwi_backing backing = {.bytes = 0};
    bw_status status = bwi_backing_grow(r->ctx, &backing, 0, bwi_size_multiply((size_t)count, sizeof(int32_t)), r->paths[0]);
    if (status != BW_OK) {
        return status;
    }
    void *memory = backing.memory;
    for (int64_t i = 0; i < count; i++) {
        if (whole) {
            ((int32_t *)memory)[i] = (int32_t)r->y[i];
        } else {
            ((float *)memory)[i] = (float)r->y[i];
        }
    }
    bw_array y = {.data = memory, .dtype = whole ? BW_I32 : BW_F32, .ndim = depth > 1 ? 2 : 1, .shape = {r->rows, depth}};
    status = bwi_dataset_add(root, BWI_ROLE_TARGET, "", &y, r->paths[0]);
    if (status == BW_OK) {
        root->columns[root->column_count - 1].backing = backing;
    } else {
        bwi_backing_free(r->ctx, &backing);
    }
    return status;
}

/* Of several targets each is a field by its column's name as well, without a copy, so that a model with an output of that name
 * finds it. */
static bw_status name_each_target(csv_reading *r, bw_dataset *root)
{
    const csv_table *table = &r->table;
    const bwi_column *all = &root->columns[root->column_count - 1];
    bw_status status = BW_OK;
    for (int k = 0; k < root->facts.targets && root->facts.targets > 1 && status == BW_OK; k++) {
        const char *name = table->columns[root->facts.target_column[k]].name;
        bw_array one = {
            .data = (const float *)all->rows.data + k, .dtype = BW_F32, .ndim = 1, .shape = {r->rows}, .strides = {all->rows.step}};
        if (*name && strlen(name) < sizeof all->field.name && root->column_count < BWI_FIELD_LIMIT) {
            status = bwi_dataset_add(root, BWI_ROLE_TARGET, name, &one, r->paths[0]);
        }
    }
    return status;
}

/* Texts are inputs by their columns' names; the bytes belong to the root. */
static bw_status add_texts(csv_reading *r, bw_dataset *root)
{
    bw_status status = BW_OK;
    const csv_table *table = &r->table;
    for (int c = 0; c < table->count && status == BW_OK; c++) {
        const csv_column *column = &table->columns[c];
        if (column->kind != CSV_TEXT) {
            continue;
        }
        if (strlen(column->name) >= sizeof root->columns->field.name) {
            return bwi_fail(r->ctx, BW_INVALID_ARGUMENT, "%s: column %d: the name of a text has at most %zu bytes", r->paths[0], c,
                            sizeof root->columns->field.name - 1);
        }
        status = bwi_texts_end(root, column->name, &r->texts, table->texts, column->text, r->paths[0]);
    }
    if (status == BW_OK && table->texts > 0) {
        root->columns[0].backing = r->texts.places;
        root->texts = r->texts.bytes;
        r->texts = (bwi_texts){.count = 0};
    }
    return status;
}

/* Beside texts, every column of numbers is an input by its name as well, without a copy, as Keras's models of tables have them. */
static bw_status name_each_input(csv_reading *r, bw_dataset *root, int64_t width)
{
    int64_t at = 0;
    bw_status status = BW_OK;
    for (int i = 0; i < root->facts.features && status == BW_OK; i++) {
        const bwi_feature *feature = &root->facts.feature[i];
        bw_array one = {.data = r->x + at, .dtype = BW_F32, .ndim = 2, .shape = {r->rows, 1}};
        one.strides[0] = width * (int64_t)sizeof(float);
        one.strides[1] = (int64_t)sizeof(float);
        if (feature->text || feature->categories > 0) {
            at += feature->categories;
            continue;
        }
        if (feature->name[0] && strlen(feature->name) < sizeof root->columns->field.name &&
            root->column_count < BWI_FIELD_LIMIT / 2) {
            status = bwi_dataset_add(root, BWI_ROLE_INPUT, feature->name, &one, r->paths[0]);
        }
        at++;
    }
    return status;
}

static bw_status add_inputs(csv_reading *r, bw_dataset *root, int64_t width)
{
    bw_array x = {.data = r->x, .dtype = BW_F32, .ndim = 2, .shape = {r->rows, width}};
    bw_status status = add_texts(r, root);
    int at = root->column_count;
    if (status != BW_OK || width == 0) {
        return status;
    }
    status = bwi_dataset_add(root, BWI_ROLE_INPUT, "", &x, r->paths[0]);
    if (status == BW_OK && r->table.texts > 0) {
        status = name_each_input(r, root, width);
    }
    if (status == BW_OK) {
        root->columns[at].backing = r->x_backing;
        r->x_backing = (bwi_backing){.bytes = 0};
    }
    return status;
}

/* The root takes over the memory of the parsed rows, so that nothing is copied unless there are categories. */
static bw_status fill_root(csv_reading *r, bw_dataset *root)
{
    int64_t width;
    bw_status status = bwi_csv_columns_settle(r, &root->facts);
    if (status == BW_OK) {
        status = widen(r, &root->facts, &width);
    }
    if (status != BW_OK) {
        return status;
    }
    status = add_inputs(r, root, width);
    if (status == BW_OK && r->table.target >= 0) {
        status = add_target(r, root);
        status = status == BW_OK ? name_each_target(r, root) : status;
    }
    if (status == BW_OK) {
        status = bwi_dataset_settle(root, "");
    }
    return status == BW_OK ? bwi_csv_locations_add(r, root->state) : status;
}

bw_status bwi_csv_finish(csv_reading *r, bw_dataset **root)
{
    bw_status bad = check_bad(r);
    if (bad != BW_OK) {
        return bad;
    }
    bw_dataset *made = bwi_dataset_root(r->ctx, &csv, BWI_FIELD_LIMIT, sizeof(csv_locations));
    if (!made) {
        return BW_RESOURCE_EXHAUSTED;
    }
    bw_status status = fill_root(r, made);
    if (status == BW_OK) {
        *root = made;
    } else {
        bw_dataset_free(made);
    }
    return status;
}
