/* Reads the arguments of a call, by position or by Keras's names, and checks them against a table. */
#include "layer/internal.h"

#include <string.h>

typedef struct reader {
    bw_context *ctx;
    const char *what;
} reader;

static bw_status refuse(const reader *r, const bwi_term *term, const bwi_argument *a, const char *expected)
{
    return bwi_fail_text(r->ctx, BW_INVALID_ARGUMENT, r->what, term->argument, term->column, "%s: expected %s, found '%.*s'",
                         a->name, expected, term->length > 0 ? term->length : 1, term->length > 0 ? term->text : "(");
}

static bool within(const bwi_argument *a, double value)
{
    return (a->least >= a->most) || (value >= a->least && value <= a->most);
}

static bw_status refuse_range(const reader *r, const bwi_term *term, const bwi_argument *a)
{
    char expected[80];
    bwi_print(expected, sizeof expected, "a number from %g to %g", a->least, a->most);
    return refuse(r, term, a, expected);
}

static bool same_word(const char *a, int length, const char *b)
{
    return strlen(b) == (size_t)length && memcmp(a, b, (size_t)length) == 0;
}

/* Whether the word is one of those listed, which blanks separate. */
static bool listed(const char *list, const char *word, int length)
{
    for (const char *at = list; *at;) {
        size_t n = strcspn(at, " ");
        if (n == (size_t)length && memcmp(at, word, n) == 0) {
            return true;
        }
        at += n + strspn(at + n, " ");
    }
    return false;
}

static bw_status read_bool(const reader *r, const bwi_term *term, const bwi_argument *a, bwi_argument_value *v)
{
    if (listed("true True 1 on", term->text, term->length)) {
        v->flag = true;
        return BW_OK;
    }
    v->flag = false;
    return listed("false False 0 off", term->text, term->length) ? BW_OK : refuse(r, term, a, "true or false");
}

static bw_status read_call(const reader *r, const bwi_term *term, const bwi_argument *a, bwi_argument_value *v)
{
    if (term->end - term->text >= BWI_TEXT_BYTES) {
        return refuse(r, term, a, "a shorter text");
    }
    memcpy(v->text, term->text, (size_t)(term->end - term->text));
    v->text[term->end - term->text] = '\0';
    return BW_OK;
}

/* Keras accepts words of a fixed set in any case ("SAME"); other words are kept unchanged. */
static bw_status read_text(const reader *r, const bwi_term *term, const bwi_argument *a, bwi_argument_value *v)
{
    char small[BWI_TEXT_BYTES];
    bwi_term lower = *term;
    if (a->choices && !listed(a->choices, term->text, term->length) && term->length < BWI_TEXT_BYTES) {
        for (int i = 0; i < term->length; i++) {
            small[i] = term->text[i] >= 'A' && term->text[i] <= 'Z' ? (char)(term->text[i] - 'A' + 'a') : term->text[i];
        }
        lower.text = small;
        term = listed(a->choices, small, term->length) ? &lower : term;
    }
    if (a->choices && !listed(a->choices, term->text, term->length)) {
        char expected[200];
        snprintf(expected, sizeof expected, "one of: %s", a->choices);
        return refuse(r, term, a, expected);
    }
    if (term->length >= BWI_TEXT_BYTES) {
        return refuse(r, term, a, "a shorter word");
    }
    memcpy(v->text, term->text, (size_t)term->length);
    v->text[term->length] = '\0';
    return BW_OK;
}

static bw_status read_int(const reader *r, const bwi_term *term, const bwi_argument *a, int64_t *value)
{
    if (term->count || !bwi_parse_int(term->text, term->text + term->length, value)) {
        return refuse(r, term, a, "a whole number");
    }
    return within(a, (double)*value) ? BW_OK : refuse_range(r, term, a);
}

/* Lists are read in depth, so that ((1,0),(2,1)) is four numbers. */
static bw_status read_ints(const reader *r, const bwi_term *term, const bwi_argument *a, bwi_argument_value *v, bool inside)
{
    if (term->length > 0) {
        if (v->count == BWI_MAX_INTS) {
            return refuse(r, term, a, "fewer numbers");
        }
        bool none = inside && bwi_term_is_none(term);
        int64_t *to = &v->integers[v->count++];
        *to = -1;
        bw_status status = none ? BW_OK : read_int(r, term, a, to);
        v->integer = v->integers[0];
        return status == BW_OK && none && !within(a, -1) ? refuse_range(r, term, a) : status;
    }
    for (int i = 0; i < term->count; i++) {
        if (term->items[i].label) {
            return refuse(r, &term->items[i], a, "a number without a name");
        }
        bw_status status = read_ints(r, &term->items[i], a, v, true);
        if (status != BW_OK) {
            return status;
        }
    }
    return BW_OK;
}

/* Reads a number, or the quotient of two, since Keras's users scale images by 1./255. */
static bool read_number(const bwi_term *term, double *value)
{
    const char *end = term->text + term->length, *slash = memchr(term->text, '/', (size_t)term->length);
    double divisor = 1;
    if (!slash) {
        return bwi_parse_double(term->text, end, value);
    }
    if (!bwi_parse_double(term->text, slash, value) || !bwi_parse_double(slash + 1, end, &divisor) ||
        !(divisor < 0 || divisor > 0)) {
        return false;
    }
    *value /= divisor;
    return true;
}

/* One number, or a list of as many as a value holds: enough for the channels of an image. */
static bw_status read_floats(const reader *r, const bwi_term *term, const bwi_argument *a, bwi_argument_value *v)
{
    int count = term->length > 0 ? 1 : term->count;
    if (count < 1 || count > BWI_MAX_INTS) {
        char expected[64];
        snprintf(expected, sizeof expected, "from 1 to %d numbers", BWI_MAX_INTS);
        return refuse(r, term, a, expected);
    }
    for (int i = 0; i < count; i++) {
        const bwi_term *item = term->length > 0 ? term : &term->items[i];
        if (item->count || item->length < 1 || !read_number(item, &v->numbers[i])) {
            return refuse(r, item, a, "a number");
        }
        if (!within(a, v->numbers[i])) {
            return refuse_range(r, item, a);
        }
    }
    v->count = count;
    v->number = v->numbers[0];
    return BW_OK;
}

/* The kind of the argument decides how its text is read, not the look of the text: 1 may be a number, a count or a word. */
static bw_status read_value(const reader *r, const bwi_term *term, const bwi_argument *a, bwi_argument_value *v)
{
    bool activation = a->kind == BWI_TEXT && strstr(a->name, "activation"); /* it may be a layer with arguments */
    if (term->called && a->kind != BWI_CALL && !activation) {
        return refuse(r, term, a, "a value without arguments");
    }
    if (term->length == 0 && !(term->quoted && a->kind == BWI_TEXT) && a->kind != BWI_INTS && a->kind != BWI_FLOATS) {
        return refuse(r, term, a, "one value");
    }
    switch (a->kind) {
    case BWI_INT:
        return read_int(r, term, a, &v->integer);
    case BWI_FLOAT:
        if (term->count || !read_number(term, &v->number)) {
            return refuse(r, term, a, "a number");
        }
        return within(a, v->number) ? BW_OK : refuse_range(r, term, a);
    case BWI_BOOL:
        return read_bool(r, term, a, v);
    case BWI_TEXT:
        return term->called ? read_call(r, term, a, v) : read_text(r, term, a, v);
    case BWI_INTS:
        /* For an argument with a default, None is a list without numbers. */
        return a->standard && bwi_term_is_none(term) ? BW_OK : read_ints(r, term, a, v, false);
    case BWI_FLOATS:
        return read_floats(r, term, a, v);
    case BWI_CALL:
        break;
    }
    return read_call(r, term, a, v);
}

static int find(const bwi_argument *arguments, int count, const char *name, int length)
{
    for (int i = 0; i < count; i++) {
        if (same_word(name, length, arguments[i].name) || (arguments[i].also && same_word(name, length, arguments[i].also))) {
            return i;
        }
    }
    return -1;
}

/* Keras's None is accepted where a number is optional, or where it means the same as the default. */
static bool is_none(const bwi_term *term, const bwi_argument *a)
{
    bool number = a->kind == BWI_INT || a->kind == BWI_FLOAT || a->kind == BWI_FLOATS,
         word = a->kind == BWI_TEXT || a->kind == BWI_CALL;
    if (!a->standard || !bwi_term_is_none(term)) {
        return false;
    }
    return (number && !*a->standard) || (word && listed("linear none", a->standard, (int)strlen(a->standard)));
}

static bw_status refuse_name(const reader *r, const bwi_term *item, const bwi_argument *arguments, int count)
{
    const char *nearest = NULL;
    size_t least = SIZE_MAX;
    for (int i = 0; i < count; i++) {
        bool begins = item->label_length > 2 && strncmp(arguments[i].name, item->label, (size_t)item->label_length) == 0;
        nearest = bwi_nearer(&least, item->label, (size_t)item->label_length, arguments[i].name) || (begins && !nearest)
                      ? arguments[i].name
                      : nearest;
    }
    return bwi_fail_text(r->ctx, BW_INVALID_ARGUMENT, r->what, item->argument, item->label_column,
                         "there is no argument '%.*s'%s%s%s", item->label_length, item->label, nearest ? "; did you mean '" : "",
                         nearest ? nearest : "", nearest ? "'?" : "");
}

/* As in Python, arguments by position come first, then those by name, and each is given only once. */
static bw_status read_given(const reader *r, const bwi_term *term, const bwi_argument *arguments, int count,
                            bwi_argument_value *values)
{
    bool named = false;
    for (int i = 0; i < term->count; i++) {
        const bwi_term *item = &term->items[i];
        int at = item->label ? find(arguments, count, item->label, item->label_length) : i;
        if (item->label && at < 0) {
            return refuse_name(r, item, arguments, count);
        }
        if (!item->label && (named || at >= count)) {
            return bwi_fail_text(r->ctx, BW_INVALID_ARGUMENT, r->what, item->argument, item->column, "%s",
                                 named ? "an argument without a name follows a named one" : "too many arguments");
        }
        named = named || item->label;
        if (values[at].given) {
            return bwi_fail_text(r->ctx, BW_INVALID_ARGUMENT, r->what, item->argument, item->column, "%s is given twice",
                                 arguments[at].name);
        }
        if (is_none(item, &arguments[at])) {
            continue;
        }
        bw_status status = read_value(r, item, &arguments[at], &values[at]);
        if (status != BW_OK) {
            return status;
        }
        values[at].given = true;
    }
    return BW_OK;
}

/* A default is read like any other text; an empty one leaves the value zero. */
static bw_status read_standard(const reader *r, const bwi_argument *a, bwi_argument_value *v)
{
    if (!*a->standard) {
        return BW_OK;
    }
    bwi_argument unbounded = *a;
    unbounded.least = unbounded.most = 0;
    unbounded.choices = NULL;
    bwi_term term = {.text = a->standard, .length = (int)strlen(a->standard), .end = a->standard + strlen(a->standard)};
    return read_value(r, &term, &unbounded, v);
}

static bool any_labelled(const bwi_term *term)
{
    for (int i = 0; i < term->count; i++) {
        if (term->items[i].label) {
            return true;
        }
    }
    return false;
}

bw_status bwi_arguments_read(bw_context *ctx, const char *what, const bwi_term *term, const bwi_argument *arguments, int count,
                             bwi_argument_value *values)
{
    reader r = {.ctx = ctx, .what = what};
    memset(values, 0, (size_t)count * sizeof *values);
    /* If a list is the only argument, its parentheses may be left out: reshape(4,9). */
    bwi_term list = {.items = term->items, .count = term->count, .column = term->column}, one = *term;
    if (count == 1 && arguments[0].kind == BWI_INTS && term->count > 1 && !any_labelled(term)) {
        one.items = &list;
        one.count = 1;
    }
    bw_status status = read_given(&r, &one, arguments, count, values);
    for (int i = 0; i < count && status == BW_OK; i++) {
        if (values[i].given) {
            continue;
        }
        if (!arguments[i].standard) {
            return bwi_fail_text(ctx, BW_INVALID_ARGUMENT, what, term->argument, term->column, "%s must be given",
                                 arguments[i].name);
        }
        status = read_standard(&r, &arguments[i], &values[i]);
    }
    return status;
}
