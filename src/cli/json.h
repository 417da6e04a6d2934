/*
 * A streaming JSON writer. Members are written in the order of the calls, and only the nesting is kept in memory. Errors are left
 * to the FILE: check ferror once at the end.
 */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { CLI_JSON_DEPTH = 16, CLI_REAL_TEXT = 40 };

typedef struct cli_json {
    FILE *file;
    bool script; /* '<' is escaped, since the text will stand in a script element */
    int depth;
    bool filled[CLI_JSON_DEPTH]; /* whether a comma is due before the next member */
} cli_json;

/* `key` is NULL in arrays and for the outermost value. */
void cli_json_object(cli_json *json, const char *key);
void cli_json_object_end(cli_json *json);
void cli_json_array(cli_json *json, const char *key);
void cli_json_array_end(cli_json *json);
void cli_json_text(cli_json *json, const char *key, const char *value); /* NULL: null */
void cli_json_truth(cli_json *json, const char *key, bool value);
void cli_json_whole(cli_json *json, const char *key, int64_t value);
void cli_json_flag(cli_json *json, const char *key, bool value);
void cli_json_seed(cli_json *json, const char *key, uint64_t value);
void cli_json_bytes(cli_json *json, const char *key, size_t value);
void cli_json_real(cli_json *json, const char *key, double value);    /* NaN and infinities: null */
void cli_json_rounded(cli_json *json, const char *key, double value); /* likewise, to six digits: for measurements */
void cli_json_hash(cli_json *json, const char *key, uint64_t value);  /* as a string, since a double cannot hold 64 bits */

/* Returns the length of the well-formed UTF-8 character at `text`, of which `most` bytes may be read, or 0 if there is none. */
size_t cli_json_character(const char *text, size_t most);

/* Opens an array, and closes it, of which at most `most` of `count` values are written, evenly spread: {"of": count, "values":
 * [...]}. It is a plain array if all are. The k-th value to write is number cli_json_spread(k, count, most), for k below the
 * smaller of both. */
void cli_json_spread_array(cli_json *json, const char *key, int64_t count, int64_t most);
void cli_json_spread_array_end(cli_json *json, int64_t count, int64_t most);
int64_t cli_json_spread(int64_t k, int64_t count, int64_t most);

/* Formats the value as the shortest decimal text that reads back as the same double, with a point or an exponent ("1.0", "nan").
 * `text` holds CLI_REAL_TEXT characters. */
const char *cli_real_text(char *text, double value);

#endif
