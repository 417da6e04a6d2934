/*
 * Finds out how a table is written: what separates fields, and whether numbers have a decimal comma. Both are found from the first
 * records, since nobody remembers which program wrote a file, and are logged where they are not what the name of the format says.
 *
 * A separator is a character that gives all records the same number of fields, two or more. If several do ("1,5;2,5"), the one
 * whose fields are numbers more often wins, and then the one that comes first below. The first record does not count, because it
 * may be a title.
 */
#include "data/read/csv/csv.h"

#include <string.h>

enum { SAMPLED = 32 }; /* records that are looked at */

static const char candidates[] = {',', ';', '\t', '|', ' '};

/* ---- Comments ---- */

int bwi_csv_count_fields(const csv_dialect *dialect, const char *at, const char *end)
{
    csv_field field;
    int count = 0;
    for (bool last = false; !last && count <= CSV_MOST_COLUMNS; count++) {
        if (!bwi_csv_field_next(dialect, &at, end, &field, &last)) {
            break;
        }
    }
    return count;
}

/* "#,Name,Type" is a header and "#ff0000,3,4" may be a record, so a comment is recognised by having another number of fields than
 * the records. */
bool bwi_csv_is_comment(const csv_dialect *dialect, const char *at, const char *end)
{
    return *at == '#' && (dialect->fields < 2 || bwi_csv_count_fields(dialect, at, end) != dialect->fields);
}

bool bwi_csv_is_blank_line(const csv_dialect *dialect, const char *at)
{
    while (dialect->separator == ' ' && (*at == ' ' || *at == '\t')) {
        at++;
    }
    return *at == '\n' || (*at == '\r' && at[1] == '\n');
}

const char *bwi_csv_skip_notes(const csv_dialect *dialect, const char *at, const char *end, int64_t *line)
{
    while (at < end && (bwi_csv_is_blank_line(dialect, at) || bwi_csv_is_comment(dialect, at, end))) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        at = newline ? newline + 1 : end;
        ++*line;
    }
    return at;
}

/* ---- Separators ---- */

typedef struct sample {
    int records;
    const char *record[SAMPLED];
} sample;

/* Collects the first records. Those that begin with # may be comments and are left out, unless there are no others. */
static sample take_sample(const csv_dialect *dialect, const char *at, const char *end, bool notes)
{
    sample taken = {.records = 0};
    while (at < end && taken.records < SAMPLED) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        if (!newline) {
            break;
        }
        if (bwi_csv_is_blank_line(dialect, at) || (*at == '#' && !notes)) {
            at = newline + 1;
            continue;
        }
        const char *next = bwi_csv_record_end(dialect, at, end);
        if (next == end && end[-1] != '\n') {
            break; /* the record is cut short */
        }
        taken.record[taken.records++] = at;
        at = next;
    }
    return taken;
}

typedef struct score {
    int fields; /* per record, in all but the first; 0: they differ */
    int most;   /* the most that any record has */
    int records;
    int agreeing; /* records with as many fields as the first one */
    double numbers;
    bool comma; /* there is a number with a decimal comma, and none with a point */
} score;

static bool is_comma_number(const csv_field *field)
{
    char text[64];
    double value;
    const char *comma = memchr(field->at, ',', field->size);
    if (!comma || field->size >= sizeof text || memchr(field->at, '.', field->size)) {
        return false;
    }
    memcpy(text, field->at, field->size);
    text[comma - field->at] = '.';
    text[field->size] = '\n'; /* reading a number stops at the first byte that cannot belong to it */
    return bwi_number_scan(text, text + field->size, &value) == text + field->size;
}

/* The first record counts only for agreement, unless it is the only one, since it may be a title. */
static score rate(const csv_dialect *dialect, const char *at, const char *end)
{
    sample taken = take_sample(dialect, at, end, false);
    score found = {.fields = 0};
    if (taken.records == 0) {
        taken = take_sample(dialect, at, end, true);
    }
    int fields = 0, numbers = 0, commas = 0, points = 0, first = 0;
    bool same = taken.records > 0;
    for (int i = 0; i < taken.records; i++) {
        const char *next = taken.record[i];
        csv_field field;
        int count = 0;
        for (bool last = false; !last && count <= CSV_MOST_COLUMNS; count++) {
            double value;
            if (!bwi_csv_field_next(dialect, &next, end, &field, &last)) {
                same = same && i == 0;
                break;
            }
            if (i == 0 && taken.records > 1) {
                continue;
            }
            bool number = bwi_csv_field_number(dialect, &field, &value),
                 comma = dialect->separator != ',' && is_comma_number(&field);
            numbers += number || comma || bwi_csv_field_missing(dialect, &field);
            commas += comma;
            points += number && memchr(field.at, '.', field.size);
            fields++;
        }
        first = i == 0 ? count : first;
        found.agreeing += count == first;
        found.most = count > found.most ? count : found.most;
        found.fields = i <= 1 ? count : found.fields;
        same = same && count == found.fields;
    }
    found.records = taken.records;
    found.fields = same ? found.fields : 0;
    found.numbers = fields > 0 ? (double)numbers / fields : 0;
    found.comma = commas > 0 && points == 0;
    return found;
}

/* Blanks are accepted as separators only where most fields are numbers, because names contain blanks too. */
static bool is_likely(char separator, const score *found)
{
    return found->fields > 1 && (separator != ' ' || found->numbers >= 0.5);
}

/* If no separator makes all records agree, this chooses one that occurs and about which most records agree, so that messages are
 * about its fields. */
static char separator_of_most(const score *scores)
{
    int best = -1;
    for (int i = 0; i < (int)BWI_COUNT(candidates); i++) {
        bool blank = candidates[i] == ' ';
        if (scores[i].most > 1 && scores[i].fields != 1 &&
            (blank ? best < 0 && scores[i].numbers >= 0.5 : best < 0 || scores[i].agreeing > scores[best].agreeing)) {
            best = i;
        }
    }
    return best < 0 ? candidates[0] : candidates[best];
}

void bwi_csv_dialect_find(csv_dialect *dialect, const char *at, const char *end)
{
    score scores[BWI_COUNT(candidates)];
    int best = -1;
    bool given = dialect->separator;
    csv_dialect tried = *dialect;
    tried.decimal = '.';
    for (size_t i = 0; i < BWI_COUNT(candidates) && !given; i++) {
        tried.separator = candidates[i];
        scores[i] = rate(&tried, at, end);
        if (is_likely(candidates[i], &scores[i]) && (best < 0 || scores[i].numbers > scores[best].numbers)) {
            best = (int)i;
        }
    }
    if (!given) {
        tried.separator = best >= 0 ? candidates[best] : separator_of_most(scores);
    }
    score chosen = rate(&tried, at, end);
    *dialect = tried;
    bool open = chosen.records == 2 && chosen.agreeing < 2; /* of two records that differ, either may be right */
    dialect->fields = open ? 0 : chosen.fields;
    dialect->decimal = chosen.comma && tried.separator != ',' ? ',' : '.';
}

const char *bwi_csv_separator_text(char separator, char text[8])
{
    if (separator == '\t' || separator == ' ') {
        return separator == ' ' ? "blanks" : "tabs";
    }
    snprintf(text, 8, "'%c'", separator);
    return text;
}

bw_status bwi_csv_dialect_choose(bw_context *ctx, csv_dialect *dialect, const bw_read_options *options)
{
    static const struct {
        const char *word;
        char separator;
    } words[] = {{"tab", '\t'}, {"\\t", '\t'}, {"space", ' '}, {"blank", ' '}};
    const char *text = options->separator;
    *dialect = (csv_dialect){.decimal = '.', .na = options->na};
    if (options->skip_rows < 0) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "bw_read_options.skip_rows is %lld; expected 0 or more",
                        (long long)options->skip_rows);
    }
    if (!text || !*text) {
        return BW_OK;
    }
    for (size_t i = 0; i < BWI_COUNT(words); i++) {
        dialect->separator = strcmp(text, words[i].word) == 0 ? words[i].separator : dialect->separator;
    }
    if (!dialect->separator && !text[1] && !strchr("\"\r\n#.+-0123456789", *text)) {
        dialect->separator = *text;
    }
    char quoted[BWI_QUOTE_SIZE];
    return dialect->separator
               ? BW_OK
               : bwi_fail(ctx, BW_INVALID_ARGUMENT, "separator: expected a character such as ; or |, tab or space, found %s",
                          bwi_quote(quoted, text, strlen(text)));
}
