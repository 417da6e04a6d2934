/*
 * Inside of the CSV reader. Text comes in regions (a mapped file is one; what is unpacked or piped comes in several); a region is
 * cut into blocks at the ends of records; blocks are parsed side by side, each into its own rows. What is found never depends on
 * how many threads there are: of several mistakes the first one in the file is reported.
 *
 * csv_dialect.c: how it is written; csv_text.c: regions and blocks; csv_columns.c, csv_types.c, csv_names.c, csv_like.c: header and
 * columns; csv_scan.h, csv_parse.c: blocks; csv.c: the reader; csv_finish.c: samples; csv_stream.c: samples that are still coming.
 */
#ifndef BWI_DATA_CSV_H
#define BWI_DATA_CSV_H

#include "data/read/read.h"
#include "format/format.h"

#include <pthread.h>
#include <string.h>

#define CSV_LISTED 10      /* bad records that are reported one by one */
#define CSV_ERROR_TEXT 384 /* bytes of a message */
#define CSV_MOST_COLUMNS (1 << 20)

/* ---- How a table is written ---- */

typedef struct csv_dialect {
    char separator; /* 0: to be found; ' ': any number of blanks and tabs */
    char decimal;   /* '.' or ',' */
    int fields;     /* of the first records; 0: not known, or they differ */
    const char *na; /* further texts that stand for missing values, "-,unknown"; NULL: none */
} csv_dialect;

/* What the options say of it. */
bw_status csv_dialect_choose(bw_context *ctx, csv_dialect *dialect, const bw_read_options *options);
/* Finds what they leave open from the first records, the last of which may be cut short. */
void csv_dialect_find(csv_dialect *dialect, const char *at, const char *end);
const char *csv_separator_text(char separator, char text[8]);
/* The fields of a record; those before a mistake. */
int csv_count_fields(const csv_dialect *dialect, const char *at, const char *end);
bool csv_is_comment(const csv_dialect *dialect, const char *at, const char *end); /* begins with # and is no record */
bool csv_is_blank_line(const csv_dialect *dialect, const char *at);
/* Past blank lines and comments, which are counted. */
const char *csv_skip_notes(const csv_dialect *dialect, const char *at, const char *end, int64_t *line);

/* ---- Text ---- */

typedef struct csv_text {
    bw_context *ctx;
    const char *path;
    bwi_bytes file; /* mapped, or empty */
    bwi_gzip *gzip;
    bwi_input input; /* standard input, if its pipe is open */
    /* The region at hand ends with a newline. It stands in the mapped file, in `buffer`, or in `tail`. */
    const char *at, *end;
    int64_t line;  /* of its first byte, from 1 */
    bool finished; /* there is no region after this one */
    size_t taken;  /* of a mapped file, by regions so far */
    char *buffer;
    size_t capacity, kept; /* of buffer; bytes at its beginning that belong to a record that was cut */
    char *tail;            /* a last line without a newline, with one */
    csv_dialect dialect;   /* known from the first region on */
    int64_t skip;          /* lines before the first record */
    bool begun;
} csv_text;

bw_status csv_text_open(bw_context *ctx, csv_text *text, const char *path, const csv_dialect *dialect, int64_t skip);
void csv_text_close(csv_text *text);
/* The next region; at == end if there is none. */
bw_status csv_text_next(csv_text *text);

typedef struct csv_block {
    const char *at, *end;
    int64_t lines, records; /* that it holds; of records an upper bound */
    int64_t quotes;
} csv_block;

/* Cuts the text's region into blocks of about `size` bytes; count and memory (the caller's, to release) are given back. Where there are
 * quotes a newline may belong to a field, and the region is gone through from its beginning. */
bw_status csv_blocks_cut(const csv_text *text, size_t size, bool quotes, csv_block **blocks, int64_t *count);
/* Lines and quotes of a block that holds none yet. */
void csv_block_count(csv_block *block);
/* Past the newline that ends the record at `at`, with regard to quotes; `end` if the record is cut short. */
const char *csv_record_end(const csv_dialect *dialect, const char *at, const char *end);

/* ---- Fields ---- */

typedef struct csv_field {
    const char *at;
    size_t size;
    bool quoted, doubled; /* in quotes; "" stands in it for a quote */
} csv_field;

/* The field that begins at *at, without quotes and outer blanks; *at moves past the separator or to the newline that follows it
 * (*last). False if a quote is not closed or something follows it. */
bool csv_field_next(const csv_dialect *dialect, const char **at, const char *end, csv_field *field, bool *last);
bool csv_field_missing(const csv_dialect *dialect, const csv_field *field); /* empty, NA, NaN, null, ? and the like */
bool csv_field_number(const csv_dialect *dialect, const csv_field *field, double *value);
bool csv_field_infinite(const csv_field *field);
/* The text with quotes undoubled, NUL-terminated, in `to` of field->size + 1 bytes. */
size_t csv_field_text(const csv_field *field, char *to);

/* ---- Columns ---- */

typedef enum csv_kind { CSV_IGNORED, CSV_NUMBER, CSV_CATEGORY, CSV_ODD } csv_kind; /* odd: dates and the like, which are refused */

enum { CSV_SHOWN = 40 }; /* bytes of a value that is shown */

/* What the first records of a column hold. */
typedef struct csv_found {
    int numbers, dates, dressed, texts, empty; /* other missing values are none of them */
    int64_t line;                              /* of the first that is no number; 0: none */
    char text[CSV_SHOWN];
    bool counts; /* 1,2,3,... from any number on */
    double last;
} csv_found;

typedef struct csv_column {
    char *name; /* "" without a header */
    csv_kind kind;
    int place;    /* in the parsed row; a target's is -1 */
    int target;   /* which of the targets it is; -1: none */
    bool dropped; /* empty, behind the last separator */
    csv_found found;
} csv_column;

/* What is compared first: up to 16 bytes are all there, the last eight of them in the second word. */
typedef struct csv_key {
    uint64_t word[2];
    size_t size;
} csv_key;

/* Distinct texts, numbered as they come. */
typedef struct csv_words {
    char **text;
    csv_key *keys;
    int count, capacity;
    int *slots; /* open addressing: number + 1; 0: free */
    int slot_count;
    int *places; /* of each among the categories of all blocks; -1: it is none of them. NULL until they are known */
} csv_words;

typedef struct csv_table {
    bw_context *ctx;
    const bw_read_options *options;
    const char *path; /* of the first file */
    csv_dialect dialect;
    csv_column *columns;
    int count, width; /* width: values of a parsed row without targets */
    int target;       /* the first one's column, or -1 */
    int targets;      /* how many there are */
    int stride;       /* doubles that the targets of a row take: one if there are none */
    int looked;       /* records that were looked at */
    bool header;
    pthread_mutex_t *lock; /* around allocations on workers: a failing one writes the context's message */
    char *first;           /* the header's record, to compare other files' with */
    size_t first_size;
} csv_table;

/* "column 'name'", or "column 3" if it has none. */
#define CSV_COLUMN_TEXT (BWI_QUOTE_SIZE + 16)
const char *csv_column_text(const csv_table *table, int column, char text[CSV_COLUMN_TEXT]);
/* The column as one writes it behind an option: its name, or its number. */
const char *csv_column_word(const csv_table *table, int column, char text[CSV_COLUMN_TEXT]);

/* csv_like.c: the columns, kinds and targets of the dataset that a model was trained with; NULL facts: there is none. */
const bwi_facts *csv_like_facts(const csv_table *table);
bw_status csv_like_targets(csv_table *table, const bwi_facts *facts);
bw_status csv_like_check(const csv_table *table, const bwi_facts *facts);
bw_status csv_like_follow(csv_table *table, const bwi_facts *facts);

/* Takes the columns of a list as targets, in its order. */
bw_status csv_targets_choose(csv_table *table, const char *list);
void csv_target_add(csv_table *table, int column);

/* csv_types.c: finds what the columns hold, from the records at `at`, the first of which is on line `line`. */
void csv_types_find(csv_table *table, const char *at, const char *end, int64_t line);
const char *csv_found_text(const csv_found *found); /* "is text", "holds dates" */
/* Tells in the log what became of a column with categories. */
void csv_types_report(const csv_table *table, int column, int categories, int64_t rows);

/* Finds header and columns from the first region. */
bw_status csv_table_open(csv_table *table, bw_context *ctx, const csv_text *text, const bw_read_options *options);
void csv_table_close(csv_table *table);

/* Whether a list such as "city,3" names the column. */
bool csv_column_listed(const csv_table *table, int column, const char *list);
/* The column that a word of `size` bytes names; -1: there is none. */
int csv_column_find(const csv_table *table, const char *word, size_t size);
/* Fails: the option names a column that is not there. The message has the nearest name. */
bw_status csv_column_missing(const csv_table *table, const char *option, const char *word, size_t size);
/* Fails for the first name of a list that no column has. */
bw_status csv_columns_check(const csv_table *table, const char *option, const char *list);

/* Eight bytes, the first of which is the lowest. */
static inline uint64_t csv_key_word(const char *text)
{
    uint64_t word;
    memcpy(&word, text, sizeof word);
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? word : __builtin_bswap64(word);
}

/* The key of a text, of which `readable` bytes may be read (`size` or more). Without branches on the size of short texts. */
static inline csv_key csv_key_of(const char *text, size_t size, size_t readable)
{
    csv_key key = {.size = size};
    char copy[16] = {0};
    if (size > 16) {
        key.word[0] = bwi_hash(0, text, size);
        return key;
    }
    if (readable < 16) {
        memcpy(copy, text, size);
        text = copy;
    }
    size_t start = size > 8 ? size - 8 : 0;
    uint64_t mask = size ? UINT64_MAX >> (64 - 8 * (size - start)) : 0;
    key.word[0] = csv_key_word(text) & mask;
    key.word[1] = csv_key_word(text + start) & mask;
    return key;
}

/* The number of a text, -1 if it is not there. */
int csv_words_find(const csv_words *words, const char *text, const csv_key *key);
/* The same of a text without NUL, added if it is new; -1: no memory. */
int csv_words_add(bw_context *ctx, csv_words *words, const char *text, size_t size);
void csv_words_free(bw_context *ctx, csv_words *words);

/* ---- Parsing ---- */

/* From row `row` of a block on, rows stand on the lines line, line + 1, ... until the next shift. */
typedef struct csv_shift {
    int64_t row, line;
} csv_shift;

typedef struct csv_mistake {
    int64_t line;
    int column; /* -1: the whole record */
    bw_status status;
    char text[CSV_ERROR_TEXT];
} csv_mistake;

typedef struct csv_result {
    int64_t rows; /* that were kept */
    csv_shift *shifts;
    int shift_count, shift_capacity;
    csv_words *words; /* [column]: of categories */
    int64_t bad, missing_rows, missing_values, comments;
    csv_mistake mistakes[CSV_LISTED]; /* the first ones */
    bw_status status;                 /* not BW_OK: parsing stopped, for lack of memory if there is no mistake */
} csv_result;

/* Parses a block's records into rows of table->width floats at `x` and targets at `y`. */
void csv_block_parse(const csv_table *table, const csv_block *block, int64_t line, float *x, double *y, csv_result *result);
void csv_result_free(bw_context *ctx, const csv_table *table, csv_result *result);

/* ---- The samples ---- */

/* What one block gave, and where it stands. */
typedef struct csv_span {
    int64_t first; /* row */
    int file;
    csv_result result;
} csv_span;

typedef struct csv_reading {
    bw_context *ctx;
    const char *const *paths;
    int files;
    bw_read_options options;
    char *na;      /* a copy of that option, which a stream needs to its end */
    csv_text text; /* of the file at hand */
    csv_table table;
    pthread_mutex_t mutex;
    float *x; /* in their backing files */
    double *y;
    bwi_backing x_backing, y_backing;
    int64_t rows, capacity;
    csv_span *spans;
    int64_t span_count, span_capacity;
} csv_reading;

/* Appends the next region's rows; none at the end. */
bw_status csv_read_region(csv_reading *r, int file);
/* All but the first `count` spans. */
void csv_spans_drop(csv_reading *r, int64_t count);
/* Frees it all, `r` included. */
void csv_reading_free(csv_reading *r);

/* csv_finish.c: categories, missing values, one-hot inputs, targets: makes the root of what was parsed. */
bw_status csv_finish(csv_reading *r, bw_dataset **root);
/* Names of columns and what stands for missing values, from the rows that are there. */
bw_status csv_columns_settle(csv_reading *r, bwi_facts *facts);

/* The lines of rows, without what else is known of their blocks. */
typedef struct csv_places {
    char **paths;
    int files;
    struct csv_place *places;
    int64_t count, capacity;
} csv_places;

/* Takes over the spans that were read. */
bw_status csv_places_add(csv_reading *r, csv_places *to);
void csv_places_free(bw_context *ctx, csv_places *places);
void csv_places_tell(const csv_places *places, int64_t row, char *text, size_t size);

/* csv_stream.c: standard input as a stream, where nothing must be known of all its rows. The first region is read and not parsed;
 * if it can be one, *root is made and owns `r`; otherwise *root is NULL. */
bw_status csv_stream_make(csv_reading *r, bw_dataset **root);

#endif
