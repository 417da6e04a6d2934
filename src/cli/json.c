/*
 * Writes JSON and formats doubles. The process stays in the C locale (setlocale is never called), so the decimal separator is
 * always a point.
 */
#include "cli/json.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* RFC 3629: no overlong forms, no surrogates, nothing above U+10FFFF. */
size_t cli_json_character(const char *text, size_t most)
{
    const unsigned char *s = (const unsigned char *)text;
    if (s[0] < 0x80) {
        return 1;
    }
    size_t length = s[0] >= 0xC2 && s[0] <= 0xDF ? 2 : (s[0] & 0xF0) == 0xE0 ? 3 : s[0] >= 0xF0 && s[0] <= 0xF4 ? 4 : 0;
    for (size_t i = 1; i < length; i++) {
        if (i >= most || (s[i] & 0xC0) != 0x80) {
            return 0;
        }
    }
    bool overlong = (s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xF0 && s[1] < 0x90);
    bool outside = (s[0] == 0xED && s[1] > 0x9F) || (s[0] == 0xF4 && s[1] > 0x8F);
    return overlong || outside ? 0 : length;
}

static void write_string(const cli_json *json, const char *value)
{
    FILE *file = json->file;
    const unsigned char *s = (const unsigned char *)value;
    fputc('"', file);
    while (*s != 0) {
        size_t length = cli_json_character((const char *)s, 4); /* the zero at the end stops it before */
        if (length == 0) {
            fputs("\\ufffd", file); /* JSON must be valid UTF-8 */
            length = 1;
        } else if (*s == '"' || *s == '\\') {
            fprintf(file, "\\%c", *s);
        } else if (*s < 0x20 || *s == 0x7F || (json->script && *s == '<')) {
            fprintf(file, "\\u%04x", *s);
        } else {
            fwrite(s, 1, length, file);
        }
        s += length;
    }
    fputc('"', file);
}

static void begin_value(cli_json *json, const char *key)
{
    if (json->filled[json->depth]) {
        fputs(", ", json->file);
    }
    json->filled[json->depth] = true;
    if (key) {
        write_string(json, key);
        fputs(": ", json->file);
    }
}

static void open_level(cli_json *json, const char *key, char bracket)
{
    begin_value(json, key);
    fputc(bracket, json->file);
    if (json->depth + 1 < CLI_JSON_DEPTH) {
        json->depth++;
    }
    json->filled[json->depth] = false;
}

static void close_level(cli_json *json, char bracket)
{
    fputc(bracket, json->file);
    if (json->depth > 0) {
        json->depth--;
    }
}

void cli_json_object(cli_json *json, const char *key)
{
    open_level(json, key, '{');
}

void cli_json_object_end(cli_json *json)
{
    close_level(json, '}');
}

void cli_json_array(cli_json *json, const char *key)
{
    open_level(json, key, '[');
}

void cli_json_array_end(cli_json *json)
{
    close_level(json, ']');
}

void cli_json_text(cli_json *json, const char *key, const char *value)
{
    begin_value(json, key);
    if (!value) {
        fputs("null", json->file);
    } else {
        write_string(json, value);
    }
}

void cli_json_truth(cli_json *json, const char *key, bool value)
{
    begin_value(json, key);
    fputs(value ? "true" : "false", json->file);
}

void cli_json_whole(cli_json *json, const char *key, int64_t value)
{
    begin_value(json, key);
    fprintf(json->file, "%" PRId64, value);
}

void cli_json_flag(cli_json *json, const char *key, bool value)
{
    begin_value(json, key);
    fputs(value ? "true" : "false", json->file);
}

void cli_json_seed(cli_json *json, const char *key, uint64_t value)
{
    begin_value(json, key);
    fprintf(json->file, "%llu", (unsigned long long)value);
}

void cli_json_bytes(cli_json *json, const char *key, size_t value)
{
    begin_value(json, key);
    fprintf(json->file, "%zu", value);
}

void cli_json_real(cli_json *json, const char *key, double value)
{
    char text[CLI_REAL_TEXT];
    begin_value(json, key);
    fputs(isfinite(value) ? cli_real_text(text, value) : "null", json->file);
}

void cli_json_rounded(cli_json *json, const char *key, double value)
{
    begin_value(json, key);
    if (isfinite(value)) {
        fprintf(json->file, "%.6g", value);
    } else {
        fputs("null", json->file);
    }
}

void cli_json_hash(cli_json *json, const char *key, uint64_t value)
{
    begin_value(json, key);
    fprintf(json->file, "\"%016" PRIx64 "\"", value);
}

const char *cli_real_text(char *text, double value)
{
    if (!isfinite(value)) {
        snprintf(text, CLI_REAL_TEXT, "%s", isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
        return text;
    }
    int digits = 1; /* 17 digits always suffice */
    while (digits < 17 && (snprintf(text, CLI_REAL_TEXT, "%.*e", digits - 1, value), strtod(text, NULL)) != value) {
        digits++;
    }
    snprintf(text, CLI_REAL_TEXT, "%.*e", digits - 1, value);
    int exponent = (int)strtol(strchr(text, 'e') + 1, NULL, 10);
    if (exponent >= -4 && exponent < 16) { /* Python's rule for when to write an exponent */
        int decimals = digits - 1 - exponent;
        snprintf(text, CLI_REAL_TEXT, "%.*f", decimals > 1 ? decimals : 1, value);
    }
    return text;
}

int64_t cli_json_spread(int64_t k, int64_t count, int64_t most)
{
    return count <= most ? k : (2 * k * (count - 1) + most - 1) / (2 * (most - 1));
}

void cli_json_spread_array(cli_json *json, const char *key, int64_t count, int64_t most)
{
    if (count > most) {
        cli_json_object(json, key);
        cli_json_whole(json, "of", count);
    }
    cli_json_array(json, count > most ? "values" : key);
}

void cli_json_spread_array_end(cli_json *json, int64_t count, int64_t most)
{
    cli_json_array_end(json);
    if (count > most) {
        cli_json_object_end(json);
    }
}
