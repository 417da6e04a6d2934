/*
 * JSON, written: members appear in the order of the calls, numbers in the fewest digits that read back as the same, nothing
 * depends on the locale or on chance. A failure of the text's memory sticks in it.
 */
#include "format/format.h"

#include <math.h>
#include <string.h>

static int __attribute__((format(printf, 3, 4))) print(char *buffer, size_t size, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = bwi_format(buffer, size, format, arguments);
    va_end(arguments);
    return length;
}

char *bwi_shortest(char buffer[BWI_SHORTEST_SIZE], double value)
{
    for (int digits = 1; digits <= 17; digits++) {
        double again = 0;
        int length = print(buffer, BWI_SHORTEST_SIZE, "%.*g", digits, value);
        if (bwi_parse_double(buffer, buffer + length, &again) && again == value) {
            break;
        }
    }
    if (isfinite(value) && !strpbrk(buffer, ".e")) {
        strcat(buffer, ".0");
    }
    return buffer;
}

/* ---- Nesting ---- */

static void add_quoted(bwi_text *text, const char *value)
{
    bwi_text_add(text, "\"");
    for (; *value; value++) {
        unsigned char c = (unsigned char)*value;
        if (c == '"' || c == '\\') {
            bwi_text_add(text, "\\%c", c);
        } else if (c < 0x20) {
            bwi_text_add(text, "\\u%04x", c);
        } else {
            bwi_text_add(text, "%c", c);
        }
    }
    bwi_text_add(text, "\"");
}

static void begin_value(bwi_json_writer *w, const char *key)
{
    if (w->depth > 0 && w->filled[w->depth - 1]) {
        bwi_text_add(&w->text, ", ");
    }
    if (w->depth > 0) {
        w->filled[w->depth - 1] = true;
    }
    if (key) {
        add_quoted(&w->text, key);
        bwi_text_add(&w->text, ": ");
    }
}

void bwi_json_begin(bwi_json_writer *w, const char *key, char bracket)
{
    begin_value(w, key);
    bwi_text_add(&w->text, "%c", bracket);
    if (w->depth == BWI_JSON_DEPTH) {
        w->text.failed = true;
        return;
    }
    w->brackets[w->depth] = bracket == '{' ? '}' : ']';
    w->filled[w->depth++] = false;
}

void bwi_json_end(bwi_json_writer *w)
{
    if (w->depth > 0) {
        bwi_text_add(&w->text, "%c", w->brackets[--w->depth]);
    }
}

/* ---- Values ---- */

void bwi_json_put_text(bwi_json_writer *w, const char *key, const char *value)
{
    begin_value(w, key);
    if (value) {
        add_quoted(&w->text, value);
    } else {
        bwi_text_add(&w->text, "null");
    }
}

void bwi_json_put_whole(bwi_json_writer *w, const char *key, int64_t value)
{
    begin_value(w, key);
    bwi_text_add(&w->text, "%lld", (long long)value);
}

void bwi_json_put_real(bwi_json_writer *w, const char *key, double value)
{
    char buffer[BWI_SHORTEST_SIZE];
    begin_value(w, key);
    bwi_text_add(&w->text, "%s", isfinite(value) ? bwi_shortest(buffer, value) : "null");
}

void bwi_json_put_bool(bwi_json_writer *w, const char *key, bool value)
{
    begin_value(w, key);
    bwi_text_add(&w->text, "%s", value ? "true" : "false");
}

void bwi_json_put_null(bwi_json_writer *w, const char *key)
{
    bwi_json_put_text(w, key, NULL);
}
