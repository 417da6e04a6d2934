/*
 * The grammar of expressions:
 *   sequence := term { blank term }        term  := [ name "=" ] value
 *   value    := number | word [ "(" [ term { "," term } ] ")" ] | "(" [ term { "," term } ] ")"
 * Blanks between terms are free. Messages give the column.
 */
#include "layer/layer.h"

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

static void skip_blanks(parser *p)
{
    while (*p->at == ' ' || *p->at == '\t' || *p->at == '\n' || *p->at == '\r') {
        p->at++;
    }
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

static void append_term(parser *p, bwi_term **terms, int *count, int depth)
{
    bwi_term *grown = bwi_grow(p->ctx, *terms, (size_t)*count, (size_t)*count + 1, sizeof **terms);
    if (!grown) {
        p->status = BW_RESOURCE_EXHAUSTED;
        return;
    }
    *terms = grown;
    bwi_term *term = &grown[(*count)++];
    *term = (bwi_term){0};
    parse_term(p, term, depth);
}

/* Behind "(": terms up to ")". */
static void parse_items(parser *p, bwi_term *term, int depth)
{
    if (depth > DEEPEST) {
        complain(p, "fewer nested parentheses");
        return;
    }
    skip_blanks(p);
    while (p->status == BW_OK && *p->at != ')') {
        append_term(p, &term->items, &term->count, depth + 1);
        skip_blanks(p);
        if (p->status == BW_OK && *p->at == ',') {
            p->at++;
            skip_blanks(p);
        } else if (p->status == BW_OK && *p->at != ')') {
            complain(p, "',' or ')'");
        }
    }
    if (p->status == BW_OK) {
        p->at++;
    }
}

/* label=word, word, number, word(items) or (items). A label is only known to be one once its '=' has been seen. */
static void parse_term(parser *p, bwi_term *term, int depth)
{
    skip_blanks(p);
    term->argument = p->what;
    term->column = (int)(p->at - p->begin) + 1;
    const char *start = p->at;
    while (is_word(*p->at)) {
        p->at++;
    }
    if (*p->at == '=' && p->at > start && !term->label) {
        term->label = start;
        term->label_length = (int)(p->at - start);
        p->at++;
        parse_term(p, term, depth);
        return;
    }
    if (p->at == start && *p->at != '(') {
        complain(p, "a name, a number or '('");
        return;
    }
    term->text = start;
    term->length = (int)(p->at - start);
    if (*p->at == '(') {
        p->at++;
        term->called = term->length > 0;
        parse_items(p, term, depth);
    }
    term->end = p->at;
}

/* The expression's source; columns count from behind its first `prefix` characters. */
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
        if (p.status == BW_OK && *p.at && p.at == end) {
            complain(&p, "a space between terms");
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
