/*
 * Finds the columns of a table that is read like the data with which a model was trained. Columns correspond by name where both
 * tables have names. Otherwise they correspond by position: the same columns are left out and the same ones are targets, in a
 * table that has all columns of the other, lacks the targets, or has neither the targets nor the columns that were left out.
 */
#include "data/read/csv/csv.h"

#include <string.h>

const bwi_facts *bwi_csv_like_facts(const csv_table *table)
{
    const bwi_facts *facts = table->options->like ? bwi_dataset_facts(table->options->like) : NULL;
    return facts && facts->features > 0 ? facts : NULL;
}

static bool follows_names(const csv_table *table, const bwi_facts *facts)
{
    bool named = table->header;
    for (int i = 0; named && i < facts->features; i++) {
        named = facts->feature[i].name && facts->feature[i].name[0];
    }
    return named;
}

/* ---- By names ---- */

/* Finds the targets by name. If they are absent, the samples are to be predicted. */
static bw_status targets_by_name(csv_table *table, const bwi_facts *facts)
{
    const char *list = facts->target;
    int whole = bwi_csv_column_find(table, list, strlen(list));
    bool all = true;
    for (const char *at = list; whole < 0 && *at && all;) {
        size_t size = strcspn(at, ",");
        all = bwi_csv_column_find(table, at, size) >= 0;
        at += size + (at[size] == ',');
    }
    return all && *list ? bwi_csv_targets_choose(table, list) : BW_OK;
}

/* Returns the first column with a feature's name that has no input yet; -1: none. */
static int column_named(const csv_table *table, const char *name)
{
    for (int i = 0; i < table->count; i++) {
        const csv_column *column = &table->columns[i];
        if (column->target < 0 && column->input < 0 && strcmp(column->name, name) == 0) {
            return i;
        }
    }
    return -1;
}

static csv_kind kind_like(const bwi_feature *feature)
{
    return feature->text ? CSV_TEXT : feature->categories > 0 ? CSV_CATEGORY : CSV_NUMBER;
}

/* Columns that the model was not trained on are left out. */
static bw_status follow_names(csv_table *table, const bwi_facts *facts)
{
    char quoted[BWI_QUOTE_SIZE];
    for (int i = 0; i < table->count; i++) {
        table->columns[i].input = -1;
        if (table->columns[i].target < 0) {
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
        table->columns[found].input = k;
        table->columns[found].kind = kind_like(&facts->feature[k]);
    }
    table->width = facts->features;
    return BW_OK;
}

/* ---- By positions ---- */

/* Returns what a column of the other table was: a feature's number, -1 for a target, -2 for one that was left out. */
static int role_of(const bwi_facts *facts, int column)
{
    for (int k = column < facts->features ? column : facts->features - 1; k >= 0; k--) { /* usually found in one or two steps */
        if (facts->feature[k].column == column) {
            return k;
        }
        if (facts->feature[k].column < column) {
            break;
        }
    }
    for (int k = 0; k < facts->targets; k++) {
        if (facts->target_column[k] == column) {
            return -1;
        }
    }
    return -2;
}

/* Finds which columns of the other table this one has: all of them, or all but the targets, all but those that were left out, or
 * all but both. Their number decides; if two answers fit, it fails. */
static bool find_positions(const csv_table *table, const bwi_facts *facts, bool *targets, bool *others)
{
    int left = facts->columns - facts->features - facts->targets, answers = 0;
    const char *wanted = table->options->target;
    for (int k = 0; k < 4; k++) {
        bool with_targets = k < 2, with_others = k % 2 == 0;
        if ((wanted && with_targets) || (with_targets && facts->targets == 0) || (!with_others && left == 0)) {
            continue;
        }
        if (table->count == facts->features + with_targets * facts->targets + with_others * left) {
            *targets = with_targets;
            *others = with_others;
            answers++;
        }
    }
    return answers == 1;
}

/* Whether columns can be matched by position: those of the other table are known, and no option says otherwise. */
static bool follows_positions(const csv_table *table, const bwi_facts *facts)
{
    const bw_read_options *options = table->options;
    return facts->columns > 0 && !options->ignore && (!options->target || !*options->target);
}

static bw_status fail_positions(const csv_table *table, const bwi_facts *facts)
{
    return bwi_fail(
        table->ctx, BW_INVALID_ARGUMENT,
        "%s: %d columns, but the dataset given as `like` had %d: %d inputs, %d target%s, %d left out; name the columns in a "
        "header, or give those to leave out (--ignore) and the target (--target)",
        table->path, table->count, facts->columns, facts->features, facts->targets, facts->targets == 1 ? "" : "s",
        facts->columns - facts->features - facts->targets);
}

/* A single target without a name is the last column, if the table has more columns than there are inputs. */
static bw_status targets_by_position(csv_table *table, const bwi_facts *facts)
{
    bool targets, others;
    if (!follows_positions(table, facts)) {
        if (table->count > facts->features) {
            bwi_csv_target_add(table, table->count - 1);
        }
        return BW_OK;
    }
    if (!find_positions(table, facts, &targets, &others)) {
        return fail_positions(table, facts);
    }
    for (int k = 0; k < facts->targets && targets; k++) {
        int column = 0;
        for (int i = 0; i < facts->target_column[k]; i++) {
            column += others || role_of(facts, i) > -2;
        }
        bwi_csv_target_add(table, column);
    }
    return BW_OK;
}

static bw_status follow_positions(csv_table *table, const bwi_facts *facts)
{
    bool targets, others;
    int column = 0;
    if (!find_positions(table, facts, &targets, &others)) {
        return fail_positions(table, facts);
    }
    for (int i = 0; i < facts->columns; i++) {
        int role = role_of(facts, i);
        if ((role == -1 && !targets) || (role == -2 && !others)) {
            continue;
        }
        csv_column *one = &table->columns[column++];
        one->input = role >= 0 ? role : -1;
        if (role != -1) {
            one->kind = role >= 0 ? kind_like(&facts->feature[role]) : CSV_IGNORED;
        }
    }
    table->width = facts->features;
    return BW_OK;
}

/* Matches the columns that options leave, in their order. */
static bw_status follow_order(csv_table *table, const bwi_facts *facts)
{
    int feature = 0;
    for (int i = 0; i < table->count; i++) {
        csv_column *column = &table->columns[i];
        if (column->target >= 0 || column->kind == CSV_IGNORED) {
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

/* ---- The whole ---- */

bw_status bwi_csv_like_targets(csv_table *table, const bwi_facts *facts)
{
    if (!facts->target) {
        return BW_OK;
    }
    return follows_names(table, facts) ? targets_by_name(table, facts) : targets_by_position(table, facts);
}

/* A column that the model needs cannot be left out, nor can it become something other than it was. */
bw_status bwi_csv_like_check(const csv_table *table, const bwi_facts *facts)
{
    const bw_read_options *options = table->options;
    char named[CSV_COLUMN_TEXT];
    for (int k = 0; k < facts->features && follows_names(table, facts); k++) {
        const bwi_feature *feature = &facts->feature[k];
        int column = bwi_csv_column_find(table, feature->name, strlen(feature->name));
        if (column < 0) {
            continue;
        }
        if (bwi_csv_column_listed(table, column, options->ignore)) {
            return bwi_fail(table->ctx, BW_INVALID_ARGUMENT,
                            "%s: the option 'ignore' leaves out %s, which the model was trained with", table->path,
                            bwi_csv_column_text(table, column, named));
        }
        if (bwi_csv_column_listed(table, column, options->categorical) && feature->categories == 0) {
            return bwi_fail(table->ctx, BW_INVALID_ARGUMENT,
                            "%s: the option 'categorical' names %s, which holds numbers in the dataset given as `like`",
                            table->path, bwi_csv_column_text(table, column, named));
        }
    }
    return BW_OK;
}

/* Columns, kinds and categories follow the dataset that the model was trained with. */
bw_status bwi_csv_like_follow(csv_table *table, const bwi_facts *facts)
{
    for (int i = 0; i < table->count; i++) {
        if (table->columns[i].target >= 0) {
            table->columns[i].kind = facts->classes > 0 ? CSV_CATEGORY : CSV_NUMBER;
        }
    }
    if (follows_names(table, facts)) {
        return follow_names(table, facts);
    }
    return follows_positions(table, facts) ? follow_positions(table, facts) : follow_order(table, facts);
}
