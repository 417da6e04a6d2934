/*
 * The grammar of expressions:
 *   sequence := term { separator term }    term  := [ name "=" ] value
 *   value    := number | text | word [ "(" [ term { "," term } ] ")" ] | "(" [ term { "," term } ] ")" | "[" ... "]"
 * A separator is blanks, a comma or both; a text has quotes of either kind around it. So that code written for Keras can be pasted,
 * # begins a comment, as in Python, and modules before a word (keras.layers.) are skipped. Messages give the column.
 */
#include "layer/internal.h"

#include <string.h>

enum { DEEPEST = 16 };

typedef struct parser {
    bw_context *ctx;
    const char *what, *begin, *at;
    bw_status status;
} parser;

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '.' || c == '-' ||
           c == '+';
}

static const char *after_blanks(const char *at)
{
    for (;;) {
        at += strspn(at, " \t\n\r");
        if (*at != '#') {
            return at;
        }
        at += strcspn(at, "\n");
    }
}

static void skip_blanks(parser *p)
{
    p->at = after_blanks(p->at);
}

/* Skips the modules that Keras's users write before a word. */
static const char *after_modules(const char *word, const char *end)
{
    static const char *const modules[] = {"tf.",           "tensorflow.",  "keras.",        "layers.",     "models.",
                                          "nn.",           "activations.", "initializers.", "optimizers.", "schedules.",
                                          "regularizers.", "losses.",      "metrics."};
    for (size_t i = 0; i < BWI_COUNT(modules);) {
        size_t length = strlen(modules[i]);
        bool found = (size_t)(end - word) > length && memcmp(word, modules[i], length) == 0;
        word += found ? length : 0;
        i = found ? 0 : i + 1;
    }
    return word;
}

static void complain(parser *p, const char *expected)
{
    char found[24] = "the end";
    if (*p->at) {
        snprintf(found, sizeof found, "'%.16s'", p->at);
    }
    p->status = bwi_fail_text(p->ctx, BW_INVALID_ARGUMENT, p->what, p->what, (int)(p->at - p->begin) + 1, "expected %s, found %s",
                              expected, found);
}

static void free_terms(bw_context *ctx, bwi_term *terms, int count)
{
    for (int i = 0; i < count; i++) {
        free_terms(ctx, terms[i].items, terms[i].count);
    }
    bwi_release(ctx, terms);
}

static void parse_term(parser *p, bwi_term *term, int depth);

/* There is room for as many terms as the next power of two: the text of a model may be a vocabulary of 100,000 words. */
static void append_term(parser *p, bwi_term **terms, int *count, int depth)
{
    if ((*count & (*count - 1)) == 0) {
        size_t room = *count ? 2 * (size_t)*count : 1;
        bwi_term *grown = bwi_grow(p->ctx, *terms, (size_t)*count, room, sizeof **terms);
        if (!grown) {
            p->status = BW_RESOURCE_EXHAUSTED;
            return;
        }
        *terms = grown;
    }
    bwi_term *term = &(*terms)[(*count)++];
    *term = (bwi_term){0};
    parse_term(p, term, depth);
}

/* Parses terms after "(" or "[", up to `close`. */
static void parse_items(parser *p, bwi_term *term, int depth, char close)
{
    if (depth > DEEPEST) {
        complain(p, "fewer nested parentheses");
        return;
    }
    skip_blanks(p);
    while (p->status == BW_OK && *p->at != close) {
        append_term(p, &term->items, &term->count, depth + 1);
        skip_blanks(p);
        if (p->status == BW_OK && *p->at == ',') {
            p->at++;
            skip_blanks(p);
        } else if (p->status == BW_OK && *p->at != close) {
            complain(p, close == ')' ? "',' or ')'" : "',' or ']'");
        }
    }
    if (p->status == BW_OK) {
        p->at++;
    }
}

/* Parses a quoted text, which ends at the same quote on the same line. */
static void parse_quoted(parser *p, bwi_term *term)
{
    const char stops[] = {*p->at, '\n', 0};
    term->text = p->at + 1;
    term->length = (int)strcspn(term->text, stops);
    term->quoted = true;
    if (term->text[term->length] != stops[0]) {
        p->at = term->text + term->length;
        complain(p, "the quote that ends the text");
        return;
    }
    p->at = term->text + term->length + 1;
    term->end = term->text + term->length;
}

/* The text that was just read turned out to be the label of the term that follows. */
static void parse_labelled(parser *p, bwi_term *term, const char *label, int length, int depth)
{
    term->label = label;
    term->label_length = length;
    term->label_column = term->column;
    term->quoted = false;
    p->at = after_blanks(p->at) + 1;
    parse_term(p, term, depth);
}

/* Skips a word, or a quotient of numbers such as 1./255. */
static void skip_word(parser *p)
{
    double number;
    const char *start = p->at;
    while (is_word(*p->at) || (*p->at == '/' && bwi_parse_double(start, p->at, &number))) {
        p->at++;
    }
}

/* Parses label=word, word, number, "text", word(items), (items) or [items]. Only its '=' shows that a word is a label. */
static void parse_term(parser *p, bwi_term *term, int depth)
{
    skip_blanks(p);
    term->argument = p->what;
    term->column = (int)(p->at - p->begin) + 1;
    if (*p->at == '"' || *p->at == '\'') {
        parse_quoted(p, term);
        if (p->status == BW_OK && *after_blanks(p->at) == '=' && !term->label) {
            parse_labelled(p, term, term->text, term->length, depth);
        }
        return;
    }
    const char *start = p->at;
    skip_word(p);
    if (*after_blanks(p->at) == '=' && p->at > start && !term->label) {
        parse_labelled(p, term, start, (int)(p->at - start), depth);
        return;
    }
    bool list = *p->at == '(' || (p->at == start && *p->at == '[');
    if (p->at == start && !list) {
        complain(p, "a name, a number or '('");
        return;
    }
    term->text = after_modules(start, p->at);
    term->length = (int)(p->at - term->text);
    if (list) {
        char close = *p->at++ == '(' ? ')' : ']';
        term->called = term->length > 0;
        parse_items(p, term, depth, close);
    }
    term->end = p->at;
}

/* Parses the expression's source. Columns are counted after its first `prefix` characters. */
static bw_status parse_source(bwi_expression *expression, const char *what, size_t prefix)
{
    bw_context *ctx = expression->ctx;
    if (!expression->source) {
        return BW_RESOURCE_EXHAUSTED;
    }
    parser p = {.ctx = ctx, .what = what, .begin = expression->source + prefix, .at = expression->source};
    skip_blanks(&p);
    while (p.status == BW_OK && *p.at) {
        append_term(&p, &expression->terms, &expression->count, 0);
        const char *end = p.at;
        skip_blanks(&p);
        if (p.status == BW_OK && *p.at == ',') {
            p.at++;
            skip_blanks(&p);
        } else if (p.status == BW_OK && *p.at && p.at == end) {
            complain(&p, "a space or a comma between terms");
        }
    }
    if (p.status != BW_OK) {
        bwi_expression_free(expression);
    }
    return p.status;
}

bw_status bwi_expression_parse(bw_context *ctx, bwi_expression *expression, const char *what, const char *text)
{
    *expression = (bwi_expression){.ctx = ctx, .source = bwi_copy_text(ctx, text)};
    return parse_source(expression, what, 0);
}

static bw_status check_single(bwi_expression *expression, const char *what, const char *text)
{
    if (expression->count == 1 && expression->terms[0].length > 0 && !expression->terms[0].label) {
        return BW_OK;
    }
    bw_status status = bwi_fail_at(expression->ctx, BW_INVALID_ARGUMENT, bwi_in_argument(what),
                                   "%s: expected one name, found '%.60s'", what, text);
    bwi_expression_free(expression);
    return status;
}

bw_status bwi_arguments_parse(bw_context *ctx, bwi_expression *expression, const char *name, const char *text)
{
    bwi_text call = {.ctx = ctx};
    bwi_text_add(&call, "%s(%s)", name, text);
    *expression = (bwi_expression){.ctx = ctx, .source = call.failed ? NULL : bwi_copy_text(ctx, call.bytes)};
    bwi_text_free(&call);
    bw_status status = parse_source(expression, name, strlen(name) + 1);
    return status == BW_OK ? check_single(expression, name, text) : status;
}

bw_status bwi_term_parse(bw_context *ctx, bwi_expression *expression, const char *what, const char *text)
{
    bw_status status = bwi_expression_parse(ctx, expression, what, text);
    return status == BW_OK ? check_single(expression, what, text) : status;
}

void bwi_expression_free(bwi_expression *expression)
{
    if (expression->ctx) {
        free_terms(expression->ctx, expression->terms, expression->count);
        bwi_release(expression->ctx, expression->source);
    }
    *expression = (bwi_expression){0};
}

bool bwi_term_is(const bwi_term *term, const char *word)
{
    return strlen(word) == (size_t)term->length && memcmp(term->text, word, (size_t)term->length) == 0;
}

bool bwi_term_resembles(const bwi_term *term, const char *word)
{
    const char *at = term->text, *end = term->text + term->length;
    for (;; at++, word++) {
        at += at < end ? strspn(at, "_") : 0;
        word += strspn(word, "_");
        if (at >= end || !*word) {
            return at >= end && !*word && term->length > 0;
        }
        int a = *at >= 'A' && *at <= 'Z' ? *at - 'A' + 'a' : *at, b = *word >= 'A' && *word <= 'Z' ? *word - 'A' + 'a' : *word;
        if (a != b) {
            return false;
        }
    }
}

bool bwi_term_resembles_any(const bwi_term *term, const char *words)
{
    char word[64];
    for (const char *at = words; *at; at += strspn(at, " ")) {
        snprintf(word, sizeof word, "%.*s", (int)strcspn(at, " "), at);
        if (bwi_term_resembles(term, word)) {
            return true;
        }
        at += strcspn(at, " ");
    }
    return false;
}

bool bwi_term_is_none(const bwi_term *term)
{
    return !term->called && !term->quoted && (bwi_term_is(term, "none") || bwi_term_is(term, "None"));
}
