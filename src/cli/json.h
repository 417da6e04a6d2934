/*
 * A streaming JSON writer: members appear in the order of the calls, nothing is kept but the nesting. Errors are
 * the FILE's (ferror), to be looked at once at the end.
 */
#ifndef CLI_JSON_H
#define CLI_JSON_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum { CLI_JSON_DEPTH = 16, CLI_REAL_TEXT = 40 };

typedef struct cli_json {
    FILE *file;
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
void cli_json_real(cli_json *json, const char *key, double value);   /* NaN and infinities: null */
void cli_json_hash(cli_json *json, const char *key, uint64_t value); /* a string: a double cannot hold 64 bits */

/* The shortest decimal text that reads back as the same double, with a point or an exponent ("1.0", "nan"). `text`
 * has CLI_REAL_TEXT places. */
const char *cli_real_text(char *text, double value);

#endif
