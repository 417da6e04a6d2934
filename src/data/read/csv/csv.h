/*
 * What the files of the CSV reader share. Text arrives in regions: a mapped file is one, unpacked or piped text comes in several.
 * A region is cut into blocks at the ends of records, and blocks are parsed in parallel, each into its own rows. The result never
 * depends on the number of threads: if there are several mistakes, the first one in the file is reported.
 *
 * csv_dialect.c finds out how a table is written; csv_text.c makes regions and blocks; csv_columns.c, csv_types.c, csv_names.c and
 * csv_like.c settle header and columns; csv_scan.h and csv_parse.c parse blocks; csv.c is the reader; csv_finish.c makes samples
 * of rows; csv_stream.c hands out samples while more are still arriving.
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
    char separator; /* 0: not known yet; ' ': any number of blanks and tabs */
    char decimal;   /* '.' or ',' */
    int fields;     /* per record, in the first records; 0: not known, or they differ */
    const char *na; /* further texts that stand for missing values, "-,unknown"; NULL: none */
} csv_dialect;

/* Sets what the options say about the dialect. */
bw_status bwi_csv_dialect_choose(bw_context *ctx, csv_dialect *dialect, const bw_read_options *options);
/* Finds what the options leave open by looking at the first records, the last of which may be cut short. */
void bwi_csv_dialect_find(csv_dialect *dialect, const char *at, const char *end);
const char *bwi_csv_separator_text(char separator, char text[8]);
/* Counts the fields of a record, up to a mistake if there is one. */
int bwi_csv_count_fields(const csv_dialect *dialect, const char *at, const char *end);
bool bwi_csv_is_comment(const csv_dialect *dialect, const char *at, const char *end); /* begins with # and is not a record */
bool bwi_csv_is_blank_line(const csv_dialect *dialect, const char *at);
/* Skips blank lines and comments, and adds them to *line. */
const char *bwi_csv_skip_notes(const csv_dialect *dialect, const char *at, const char *end, int64_t *line);

/* ---- Text ---- */

typedef struct csv_text {
    bw_context *ctx;
    const char *path;
    bwi_bytes file; /* mapped, or empty */
    bwi_gzip *gzip;
    bwi_input input; /* standard input, if its pipe is open */
    /* The current region ends with a newline. It lies in the mapped file, in `buffer`, or in `tail`. */
    const char *at, *end;
    int64_t line;  /* of its first byte, from 1 */
    bool finished; /* there is no region after this one */
    size_t taken;  /* bytes of a mapped file that regions have covered so far */
    char *buffer;
    size_t capacity, kept; /* capacity of buffer; bytes at its beginning that belong to a record that was cut */
    char *tail;            /* a copy of the last line, with the newline that it lacks in the file */
    csv_dialect dialect;   /* known from the first region on */
    int64_t skip;          /* lines before the first record */
    bool begun;
} csv_text;

bw_status bwi_csv_text_open(bw_context *ctx, csv_text *text, const char *path, const csv_dialect *dialect,
                            const bw_read_options *options);
void bwi_csv_text_close(csv_text *text);
/* Goes to the next region; at == end if there is none. */
bw_status bwi_csv_text_next(csv_text *text);

typedef struct csv_block {
    const char *at, *end;
    int64_t lines, records; /* how many it holds; for records an upper bound */
    int64_t quotes;
} csv_block;

/* Cuts the text's region into blocks of about `size` bytes. Returns their number and an array that the caller releases. With
 * `quotes` a newline may belong to a field, so the region is scanned from its beginning. */
bw_status bwi_csv_blocks_cut(const csv_text *text, size_t size, bool quotes, csv_block **blocks, int64_t *count);
/* Counts the lines, records and quotes of a block, whose counts are 0 before. */
void bwi_csv_block_count(csv_block *block);
/* Returns what follows the newline that ends the record at `at`, taking quotes into account; `end` if the record is cut short. */
const char *bwi_csv_record_end(const csv_dialect *dialect, const char *at, const char *end);

/* ---- Fields ---- */

typedef struct csv_field {
    const char *at;
    size_t size;
    bool quoted, doubled; /* it is in quotes; it contains "", which means one quote */
} csv_field;

/* Reads the field that begins at *at, without its quotes and outer blanks. *at moves past the separator, or to the newline that
 * follows the field (*last). False if a quote is not closed or something follows a closing quote. */
bool bwi_csv_field_next(const csv_dialect *dialect, const char **at, const char *end, csv_field *field, bool *last);
bool bwi_csv_field_missing(const csv_dialect *dialect, const csv_field *field); /* empty, NA, NaN, null, ? and the like */
bool bwi_csv_field_number(const csv_dialect *dialect, const csv_field *field, double *value);
bool bwi_csv_field_infinite(const csv_field *field);
/* Copies the text with quotes undoubled and NUL-terminated to `to`, which has field->size + 1 bytes. Returns its length. */
size_t bwi_csv_field_text(const csv_field *field, char *to);

/* ---- Columns ---- */

typedef enum csv_kind {
    CSV_IGNORED,
    CSV_NUMBER,
    CSV_CATEGORY,
    CSV_ODD,
    CSV_TEXT
} csv_kind; /* odd: dates and the like, which are refused */

enum { CSV_SHOWN = 40 }; /* bytes of a value that is shown */

/* What was found in a column's first records. */
typedef struct csv_found {
    int numbers, dates, dressed, texts, empty; /* how many values are what; missing values that are not empty are not counted */
    int64_t line;                              /* of the first value that is not a number; 0: none */
    char text[CSV_SHOWN];
    bool counts; /* values count up by one, from any first number */
    double last;
} csv_found;

typedef struct csv_column {
    char *name; /* "" without a header */
    csv_kind kind;
    int input;    /* its index in the parsed row; -1 for a target */
    int target;   /* index among the targets; -1: it is not a target */
    int text;     /* index among the texts, if it is one */
    bool dropped; /* it is empty, after a separator at the end of each line */
    csv_found found;
} csv_column;

/* Keys are compared before texts. A key holds a text of up to 16 bytes completely: the first eight bytes in the first word, the
 * last eight in the second. */
typedef struct csv_key {
    uint64_t word[2];
    size_t size;
} csv_key;

/* Distinct texts, numbered in the order of their first appearance. */
typedef struct csv_words {
    char **text;
    csv_key *keys;
    int count, capacity;
    int *slots; /* open addressing: number + 1; 0: free */
    int slot_count;
    int *merged; /* index of each among the categories of all blocks; -1: it is none of them. NULL until they are known */
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
    int texts;        /* columns of text */
    int stride;       /* doubles per row for targets; one if there are no targets */
    int looked;       /* records from which the columns' kinds were judged */
    bool header;
    pthread_mutex_t *lock; /* held during allocations on workers, because a failing one writes the context's message */
    char *first;           /* the header's record, with which those of other files are compared */
    size_t first_size;
} csv_table;

/* Writes "column 'name'", or "column 3" if the column has no name. */
#define CSV_COLUMN_TEXT (BWI_QUOTE_SIZE + 16)
const char *bwi_csv_column_text(const csv_table *table, int column, char text[CSV_COLUMN_TEXT]);
/* The column as a user writes it after an option: its name, or its number. */
const char *bwi_csv_column_word(const csv_table *table, int column, char text[CSV_COLUMN_TEXT]);

/* csv_like.c follows the columns, kinds and targets of the dataset that a model was trained with. NULL facts: there is no such
 * dataset. */
const bwi_facts *bwi_csv_like_facts(const csv_table *table);
bw_status bwi_csv_like_targets(csv_table *table, const bwi_facts *facts);
bw_status bwi_csv_like_check(const csv_table *table, const bwi_facts *facts);
bw_status bwi_csv_like_follow(csv_table *table, const bwi_facts *facts);

/* Makes the columns of a list targets, in the order of the list. */
bw_status bwi_csv_targets_choose(csv_table *table, const char *list);
void bwi_csv_target_add(csv_table *table, int column);

/* csv_types.c: finds what the columns hold, judging by the records at `at`, the first of which is on line `line`. */
void bwi_csv_types_find(csv_table *table, const char *at, const char *end, int64_t line);
const char *bwi_csv_found_text(const csv_found *found); /* "is text", "holds dates" */
/* Logs what became of a column with categories. */
void bwi_csv_types_report(const csv_table *table, int column, int categories, int64_t rows);

/* Finds header and columns by looking at the first region. */
bw_status bwi_csv_table_open(csv_table *table, bw_context *ctx, const csv_text *text, const bw_read_options *options);
void bwi_csv_table_close(csv_table *table);

/* Whether a list such as "city,3" contains the column. */
bool bwi_csv_column_listed(const csv_table *table, int column, const char *list);
/* Returns the column that a word of `size` bytes names; -1: there is none. */
int bwi_csv_column_find(const csv_table *table, const char *word, size_t size);
/* Fails because the option names a column that does not exist. The message suggests the nearest name. */
bw_status bwi_csv_column_missing(const csv_table *table, const char *option, const char *word, size_t size);
/* Fails for the first name of a list that no column has. */
bw_status bwi_csv_columns_check(const csv_table *table, const char *option, const char *list);

/* Eight bytes as a number, in little-endian order on every machine. */
static inline uint64_t bwi_csv_key_word(const char *text)
{
    uint64_t word;
    memcpy(&word, text, sizeof word);
    return __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? word : __builtin_bswap64(word);
}

/* The key of a text, of which `readable` bytes (at least `size`) may be read. For short texts no branch depends on the size. */
static inline csv_key bwi_csv_key_of(const char *text, size_t size, size_t readable)
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
    key.word[0] = bwi_csv_key_word(text) & mask;
    key.word[1] = bwi_csv_key_word(text + start) & mask;
    return key;
}

/* Returns the number of a text, -1 if it is not among the words. */
int bwi_csv_words_find(const csv_words *words, const char *text, const csv_key *key);
/* Returns the number of a text that need not end with NUL, and adds the text if it is new; -1: no memory. */
int bwi_csv_words_add(bw_context *ctx, csv_words *words, const char *text, size_t size);
void bwi_csv_words_free(bw_context *ctx, csv_words *words);

/* ---- Parsing ---- */

/* Says that from row `row` of a block on, rows stand on the lines `line`, `line` + 1, ... until the next shift. */
typedef struct csv_shift {
    int64_t row, line;
} csv_shift;

typedef struct csv_mistake {
    int64_t line;
    int column; /* -1: the whole record */
    bw_status status;
    char text[CSV_ERROR_TEXT];
} csv_mistake;

/* Texts of a block: their bytes, and for each row where they are. */
typedef struct csv_texts {
    char *bytes;
    size_t used, capacity;
    struct csv_cell {
        size_t at, size;
    } *cells; /* [row][text] */
    int64_t rows;
} csv_texts;

typedef struct csv_result {
    int64_t rows; /* rows that were kept */
    csv_shift *shifts;
    int shift_count, shift_capacity;
    csv_words *words; /* [column]: the texts of categories */
    csv_texts texts;
    int64_t bad, missing_rows, missing_values, comments;
    csv_mistake mistakes[CSV_LISTED]; /* the first ones */
    bw_status status;                 /* not BW_OK: parsing stopped, for lack of memory if there is no mistake */
} csv_result;

/* Parses a block's records into rows of table->width floats at `x` and targets at `y`. */
void bwi_csv_block_parse(const csv_table *table, const csv_block *block, int64_t line, float *x, double *y, csv_result *result);
void bwi_csv_result_free(bw_context *ctx, const csv_table *table, csv_result *result);

/* ---- The samples ---- */

/* The result of one block, and the location of its rows. */
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
    char *na;      /* a copy of the option, because a stream needs it until its end */
    csv_text text; /* of the file that is being read */
    csv_table table;
    pthread_mutex_t mutex;
    float *x; /* x and y lie in their backing files */
    double *y;
    bwi_backing x_backing, y_backing;
    bwi_texts texts; /* of all rows, each with all of its texts */
    int64_t rows, capacity;
    csv_span *spans;
    int64_t span_count, span_capacity;
} csv_reading;

/* Appends the next region's rows; at the end there are none. */
bw_status bwi_csv_read_region(csv_reading *r, int file);
/* Releases all spans except for the first `count`. */
void bwi_csv_spans_drop(csv_reading *r, int64_t count);
/* Releases everything, `r` included. */
void bwi_csv_reading_free(csv_reading *r);

/* csv_finish.c: makes the root from the parsed rows: categories, missing values, one-hot inputs, targets. */
bw_status bwi_csv_finish(csv_reading *r, bw_dataset **root);
/* Settles the columns' names, categories and fill values, using the rows that have been read. */
bw_status bwi_csv_columns_settle(csv_reading *r, bwi_facts *facts);

/* Where rows stand in their files. This outlives the blocks, whose other results are dropped. */
typedef struct csv_locations {
    char **paths;
    int files;
    struct csv_location *location;
    int64_t count, capacity;
} csv_locations;

/* Takes over the locations of the spans that were read. */
bw_status bwi_csv_locations_add(csv_reading *r, csv_locations *to);
void bwi_csv_locations_free(bw_context *ctx, csv_locations *locations);
void bwi_csv_locate(const csv_locations *locations, int64_t row, char *text, size_t size);

/* csv_stream.c: makes standard input a stream, unless something must be known about all of its rows first. The first region has
 * been read and not parsed. If a stream is possible, *root is made and owns `r`; otherwise *root is NULL. */
bw_status bwi_csv_stream_make(csv_reading *r, bw_dataset **root);

#endif
