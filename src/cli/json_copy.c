/*
 * Checks and copies JSON in one pass over its text, without a tree in memory. Recursion follows the nesting, which is limited; the
 * length of an array is found by skipping over it once before it is copied.
 */
#include "cli/json_copy.h"

#include "cli/json.h"

#include <ctype.h>
#include <string.h>

enum { MOST_TEXT = 12000, MOST_NUMBER = 64 };

typedef struct reader {
    const char *at, *end;
    int depth;
    const char *mistake; /* the first one; NULL: none so far */
} reader;

static bool fail(reader *r, const char *mistake)
{
    if (!r->mistake) {
        r->mistake = mistake;
    }
    return false;
}

static void skip_blanks(reader *r)
{
    while (r->at < r->end && (*r->at == ' ' || *r->at == '\t' || *r->at == '\n' || *r->at == '\r')) {
        r->at++;
    }
}

static char peek(const reader *r)
{
    return r->at < r->end ? *r->at : 0;
}

/* ---- Checking -------------------------------------------------------------------------------------------- */

static bool skip_word(reader *r, const char *word)
{
    size_t length = strlen(word);
    if ((size_t)(r->end - r->at) < length || memcmp(r->at, word, length) != 0) {
        return false;
    }
    r->at += length;
    return true;
}

static bool skip_escape(reader *r)
{
    char kind = peek(r);
    if (kind != 'u') {
        return kind && strchr("\"\\/bfnrt", kind) ? (r->at++, true) : fail(r, "an unknown escape in a string");
    }
    r->at++;
    for (int k = 0; k < 4; k++, r->at++) {
        if (!isxdigit((unsigned char)peek(r))) {
            return fail(r, "expected four hexadecimal digits after \\u");
        }
    }
    return true;
}

static bool skip_string(reader *r)
{
    if (peek(r) != '"') {
        return fail(r, "expected a string");
    }
    r->at++;
    while (r->at < r->end && *r->at != '"') {
        if ((unsigned char)*r->at < 0x20) {
            return fail(r, "a control character in a string");
        }
        bool escape = *r->at++ == '\\';
        if (escape && !skip_escape(r)) {
            return false;
        }
    }
    return r->at < r->end ? (r->at++, true) : fail(r, "a string without an end");
}

static bool skip_digits(reader *r)
{
    const char *first = r->at;
    while (isdigit((unsigned char)peek(r))) {
        r->at++;
    }
    return r->at > first ? true : fail(r, "expected a digit");
}

/* No leading zeros, and digits on both sides of the point, as RFC 8259 has it. */
static bool skip_number(reader *r)
{
    r->at += peek(r) == '-';
    if (skip_word(r, "Infinity")) {
        return true;
    }
    if (peek(r) == '0') {
        r->at++;
    } else if (!skip_digits(r)) {
        return false;
    }
    if (peek(r) == '.') {
        r->at++;
        if (!skip_digits(r)) {
            return false;
        }
    }
    if (peek(r) == 'e' || peek(r) == 'E') {
        r->at++;
        r->at += peek(r) == '-' || peek(r) == '+';
        return skip_digits(r);
    }
    return true;
}

static bool skip_value(reader *r);

/* Goes to the next member or value of an object or array; false at its end, or after a mistake. `first`: nothing came before. */
static bool next(reader *r, char end, bool first)
{
    skip_blanks(r);
    if (peek(r) == end) {
        r->at++;
        return false;
    }
    if (!first) {
        if (peek(r) != ',') {
            return fail(r, end == '}' ? "expected , or }" : "expected , or ]");
        }
        r->at++;
        skip_blanks(r);
    }
    return true;
}

static bool skip_key(reader *r)
{
    if (!skip_string(r)) {
        return false;
    }
    skip_blanks(r);
    if (peek(r) != ':') {
        return fail(r, "expected : after a name");
    }
    r->at++;
    skip_blanks(r);
    return true;
}

/* Skips an array or object and counts what it holds. */
static bool skip_list(reader *r, int64_t *count)
{
    char end = *r->at == '{' ? '}' : ']';
    if (r->depth == CLI_JSON_NESTED) {
        return fail(r, "nested too deeply");
    }
    r->depth++;
    r->at++;
    for (*count = 0; next(r, end, *count == 0); ++*count) {
        if ((end == '}' && !skip_key(r)) || !skip_value(r)) {
            return false;
        }
    }
    r->depth--;
    return !r->mistake;
}

/* The first character tells what a value is. */
static bool skip_value(reader *r)
{
    int64_t count;
    skip_blanks(r);
    switch (peek(r)) {
    case '{':
    case '[':
        return skip_list(r, &count);
    case '"':
        return skip_string(r);
    case 't':
        return skip_word(r, "true") || fail(r, "expected a value");
    case 'f':
        return skip_word(r, "false") || fail(r, "expected a value");
    case 'n':
        return skip_word(r, "null") || fail(r, "expected a value");
    case 'N':
        return skip_word(r, "NaN") || fail(r, "expected a value");
    case 'I':
        return skip_word(r, "Infinity") || fail(r, "expected a value");
    default:
        return peek(r) == '-' || isdigit((unsigned char)peek(r)) ? skip_number(r) : fail(r, "expected a value");
    }
}

const char *cli_json_mistake(const char *text, size_t length, size_t *at)
{
    reader r = {.at = text, .end = text + length};
    if (skip_value(&r)) {
        skip_blanks(&r);
        if (r.at < r.end) {
            fail(&r, "expected the end of the file");
        }
    }
    *at = (size_t)(r.at - text);
    return r.mistake;
}

/* ---- Copying --------------------------------------------------------------------------------------------- */

/* An escape may be cut off with the string's end, so it is copied whole. */
static void copy_string(FILE *file, reader *r)
{
    const char *first = ++r->at;
    bool cut = false;
    fputc('"', file);
    while (*r->at != '"') {
        cut = r->at - first > MOST_TEXT;
        size_t length = *r->at != '\\' ? cli_json_character(r->at, (size_t)(r->end - r->at)) : r->at[1] == 'u' ? 6 : 2;
        if (cut) {
            r->at += *r->at == '\\' ? 2 : 1;
        } else if (length == 0) {
            fputs("\\ufffd", file);
            r->at++;
        } else if (*r->at == '<') {
            fputs("\\u003c", file);
            r->at++;
        } else {
            fwrite(r->at, 1, length, file);
            r->at += length;
        }
    }
    r->at++;
    fputs(cut ? "\\u2026\"" : "\"", file);
}

static void copy_value(FILE *file, reader *r, int most);

static void copy_object(FILE *file, reader *r, int most)
{
    int64_t k = 0;
    r->at++;
    fputc('{', file);
    for (; next(r, '}', k == 0); k++) {
        if (k >= most) {
            (void)(skip_key(r) && skip_value(r));
            continue;
        }
        fputs(k > 0 ? "," : "", file);
        copy_string(file, r);
        skip_blanks(r);
        r->at++;
        fputc(':', file);
        copy_value(file, r, most);
    }
    fputc('}', file);
}

/* Of n values the k-th that is kept is number round(k (n - 1) / (most - 1)); the page's script computes the same. */
static void copy_array(FILE *file, reader *r, int most)
{
    reader ahead = {.at = r->at, .end = r->end};
    int64_t count = 0, kept = 0;
    (void)skip_list(&ahead, &count);
    bool thin = count > most;
    if (thin) {
        fprintf(file, "{\"of\":%lld,\"values\":", (long long)count);
    }
    r->at++;
    fputc('[', file);
    for (int64_t i = 0; next(r, ']', i == 0); i++) {
        if (thin && i != cli_json_spread(kept, count, most)) {
            (void)skip_value(r);
            continue;
        }
        fputs(kept++ > 0 ? "," : "", file);
        copy_value(file, r, most);
    }
    fputs(thin ? "]}" : "]", file);
}

static void copy_value(FILE *file, reader *r, int most)
{
    skip_blanks(r);
    if (*r->at == '{') {
        copy_object(file, r, most);
    } else if (*r->at == '[') {
        copy_array(file, r, most);
    } else if (*r->at == '"') {
        copy_string(file, r);
    } else {
        const char *first = r->at;
        (void)skip_value(r);
        bool finite = *first != 'N' && *first != 'I' && !(*first == '-' && first[1] == 'I') && r->at - first <= MOST_NUMBER;
        fwrite(finite ? first : "null", 1, finite ? (size_t)(r->at - first) : 4, file);
    }
}

void cli_json_copy(FILE *file, const char *text, size_t length, int most)
{
    reader r = {.at = text, .end = text + length};
    copy_value(file, &r, most);
}
