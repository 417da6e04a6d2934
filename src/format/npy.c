/*
 * npy headers: magic, version, length, and a Python dictionary with exactly the keys descr, fortran_order and shape.
 * The dictionary is parsed by a small recogniser; anything that numpy.save does not write is refused.
 * Invariant: after success offset + bytes does not overflow and bytes is the product of shape and the type's size.
 */
#include "format/format.h"

#include <string.h>

typedef struct cursor {
    bw_context *ctx;
    const char *where;
    const unsigned char *at, *end;
} cursor;

static bw_status garbage(const cursor *c, const char *expected)
{
    char found[BWI_QUOTE_SIZE];
    return bwi_fail_file(c->ctx, BW_DATA_LOSS, c->where, "damaged npy header: expected %s, found %s", expected,
                         c->at < c->end ? bwi_quote(found, c->at, (size_t)(c->end - c->at)) : "the end of the header");
}

static void skip_space(cursor *c)
{
    while (c->at < c->end && (*c->at == ' ' || *c->at == '\n' || *c->at == '\t' || *c->at == '\r')) {
        c->at++;
    }
}

static bool accept(cursor *c, char byte)
{
    skip_space(c);
    if (c->at >= c->end || *c->at != (unsigned char)byte) {
        return false;
    }
    c->at++;
    return true;
}

static bool accept_word(cursor *c, const char *word)
{
    size_t length = strlen(word);
    skip_space(c);
    if ((size_t)(c->end - c->at) < length || memcmp(c->at, word, length) != 0) {
        return false;
    }
    c->at += length;
    return true;
}

/* Accepts a text in single or double quotes, without escapes. */
static bool accept_text(cursor *c, const unsigned char **text, size_t *length)
{
    skip_space(c);
    if (c->at >= c->end || (*c->at != '\'' && *c->at != '"')) {
        return false;
    }
    const unsigned char *close = memchr(c->at + 1, *c->at, (size_t)(c->end - c->at - 1));
    if (!close || memchr(c->at, '\\', (size_t)(close - c->at))) {
        return false;
    }
    *text = c->at + 1;
    *length = (size_t)(close - *text);
    c->at = close + 1;
    return true;
}

static const struct {
    char kind;
    char size;
    bw_dtype dtype;
} types[] = {
    {'u', 1, BW_U8},  {'i', 1, BW_I8},  {'u', 2, BW_U16}, {'i', 2, BW_I16}, {'u', 4, BW_U32}, {'i', 4, BW_I32},
    {'u', 8, BW_U64}, {'i', 8, BW_I64}, {'f', 2, BW_F16}, {'f', 4, BW_F32}, {'f', 8, BW_F64}, {'b', 1, BW_BOOL},
};

/* What is wrong with a type that is not in the table, by NumPy's kind character. */
static const char *refusal(char kind)
{
    switch (kind) {
    case 'O':
        return "holds Python objects, which are never loaded";
    case 'U':
    case 'S':
    case 'a':
        return "holds text, not numbers";
    case 'c':
        return "holds complex numbers, which are not supported";
    case 'M':
    case 'm':
        return "holds dates or times, not numbers";
    case 'V':
        return "holds raw records, not numbers";
    default:
        return "has a type that is not supported";
    }
}

/* A type is an order of bytes, a letter and a digit: '<f4'. What numpy can write but training cannot use is refused with the
 * reason. */
static bw_status parse_type(cursor *c, bwi_npy *npy)
{
    const unsigned char *text = NULL;
    size_t length = 0;
    if (accept(c, '[')) {
        return bwi_fail_file(c->ctx, BW_UNIMPLEMENTED, c->where, "holds records with several fields, not numbers of one type");
    }
    if (!accept_text(c, &text, &length)) {
        return garbage(c, "a type such as '<f4'");
    }
    char quoted[BWI_QUOTE_SIZE];
    bool ordered = length > 0 && memchr("<>|=", text[0], 4);
    char order = ordered ? (char)text[0] : '=';
    const unsigned char *kind = text + (ordered ? 1 : 0);
    size_t rest = length - (ordered ? 1 : 0);
    if (rest == 0) {
        return bwi_fail_file(c->ctx, BW_DATA_LOSS, c->where, "damaged npy header: the type is %s", bwi_quote(quoted, text, length));
    }
    for (size_t i = 0; rest == 2 && i < BWI_COUNT(types); i++) {
        if ((char)kind[0] != types[i].kind || (char)kind[1] != '0' + types[i].size || (order == '|' && types[i].size > 1)) {
            continue;
        }
        npy->dtype = types[i].dtype;
        npy->swapped = types[i].size > 1 && order == (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? '>' : '<');
        return BW_OK;
    }
    return bwi_fail_file(c->ctx, BW_UNIMPLEMENTED, c->where, "%s (%s)", refusal((char)kind[0]), bwi_quote(quoted, text, length));
}

static bw_status parse_extent(cursor *c, int64_t *extent)
{
    skip_space(c);
    if (c->at < c->end && *c->at == '-') {
        return bwi_fail_file(c->ctx, BW_INVALID_ARGUMENT, c->where, "the shape has a negative extent");
    }
    if (c->at >= c->end || *c->at < '0' || *c->at > '9') {
        return garbage(c, "an extent");
    }
    int64_t value = 0;
    for (; c->at < c->end && *c->at >= '0' && *c->at <= '9'; c->at++) {
        if (__builtin_mul_overflow(value, 10, &value) || __builtin_add_overflow(value, *c->at - '0', &value)) {
            return bwi_fail_file(c->ctx, BW_INVALID_ARGUMENT, c->where, "the shape has an extent beyond 64 bits");
        }
    }
    accept(c, 'L'); /* Python 2 wrote long integers so */
    *extent = value;
    return BW_OK;
}

/* A tuple of Python: (), (5,), (2, 3). One extent needs its comma. */
static bw_status parse_shape(cursor *c, bwi_npy *npy)
{
    if (!accept(c, '(')) {
        return garbage(c, "a shape such as (2, 3)");
    }
    npy->ndim = 0;
    while (!accept(c, ')')) {
        if (npy->ndim == BW_MAX_NDIM) {
            return bwi_fail_file(c->ctx, BW_INVALID_ARGUMENT, c->where, "the shape has more than %d axes", BW_MAX_NDIM);
        }
        bw_status status = parse_extent(c, &npy->shape[npy->ndim]);
        if (status != BW_OK) {
            return status;
        }
        npy->ndim++;
        if (accept(c, ',')) {
            continue;
        }
        if (npy->ndim == 1 || !accept(c, ')')) { /* (5) is a number, not a shape */
            return garbage(c, "',' or ')' in the shape");
        }
        break;
    }
    return BW_OK;
}

static bw_status parse_order(cursor *c, bwi_npy *npy)
{
    if (accept_word(c, "True")) {
        npy->fortran = true;
    } else if (accept_word(c, "False")) {
        npy->fortran = false;
    } else {
        return garbage(c, "True or False");
    }
    return BW_OK;
}

static const struct {
    const char *name;
    bw_status (*parse)(cursor *c, bwi_npy *npy);
} keys[] = {{"descr", parse_type}, {"fortran_order", parse_order}, {"shape", parse_shape}};

/* A key may occur only once: two shapes in one header would be a trap. */
static bw_status parse_entry(cursor *c, bwi_npy *npy, unsigned *seen)
{
    cursor start = *c;
    const unsigned char *text = NULL;
    size_t length = 0;
    if (!accept_text(c, &text, &length)) {
        return garbage(c, "a key");
    }
    for (size_t i = 0; i < BWI_COUNT(keys); i++) {
        if (strlen(keys[i].name) != length || memcmp(keys[i].name, text, length) != 0) {
            continue;
        }
        if (*seen & 1u << i) {
            return bwi_fail_file(c->ctx, BW_DATA_LOSS, c->where, "damaged npy header: it has '%s' twice", keys[i].name);
        }
        *seen |= 1u << i;
        if (!accept(c, ':')) {
            return garbage(c, "':'");
        }
        return keys[i].parse(c, npy);
    }
    return garbage(&start, "'descr', 'fortran_order' or 'shape'");
}

/* The header is a dictionary of Python with exactly three keys in any order; a comma may follow the last. */
static bw_status parse_dictionary(cursor *c, bwi_npy *npy)
{
    unsigned seen = 0;
    if (!accept(c, '{')) {
        return garbage(c, "'{'");
    }
    while (!accept(c, '}')) {
        bw_status status = parse_entry(c, npy, &seen);
        if (status != BW_OK) {
            return status;
        }
        if (!accept(c, ',')) {
            if (!accept(c, '}')) {
                return garbage(c, "',' or '}'");
            }
            break;
        }
    }
    skip_space(c);
    if (c->at != c->end) {
        return garbage(c, "nothing after '}'");
    }
    for (size_t i = 0; i < BWI_COUNT(keys); i++) {
        if (!(seen & 1u << i)) {
            return bwi_fail_file(c->ctx, BW_DATA_LOSS, c->where, "damaged npy header: '%s' is missing", keys[i].name);
        }
    }
    return BW_OK;
}

bw_status bwi_npy_begin(bw_context *ctx, bwi_npy *npy, const unsigned char *bytes, size_t size, const char *where)
{
    char found[BWI_QUOTE_SIZE];
    *npy = (bwi_npy){.ndim = 0};
    if (size == 0) {
        return bwi_fail_file(ctx, BW_DATA_LOSS, where, "is empty; expected an npy array");
    }
    if (size < BWI_NPY_PREFIX) {
        return bwi_fail_file(ctx, BW_DATA_LOSS, where, "%zu bytes are too few for an npy array", size);
    }
    if (memcmp(bytes, "\x93NUMPY", 6) != 0) {
        return bwi_fail_file(ctx, BW_DATA_LOSS, where, "is not an npy array: expected '?NUMPY' at its beginning, found %s",
                             bwi_quote(found, bytes, 6));
    }
    unsigned major = bytes[6], minor = bytes[7];
    if (major < 1 || major > 3 || minor != 0) {
        return bwi_fail_file(ctx, BW_UNIMPLEMENTED, where, "npy version %u.%u; 1.0, 2.0 and 3.0 are known", major, minor);
    }
    size_t length = bytes[8] | (size_t)bytes[9] << 8;
    if (major > 1) {
        length |= (size_t)bytes[10] << 16 | (size_t)bytes[11] << 24;
    }
    if (length > BWI_NPY_HEADER_LIMIT) {
        return bwi_fail_file(ctx, BW_INVALID_ARGUMENT, where, "an npy header of %zu bytes; at most %d are read", length,
                             BWI_NPY_HEADER_LIMIT);
    }
    npy->offset = (major > 1 ? 12 : 10) + length;
    return BW_OK;
}

bw_status bwi_npy_parse(bw_context *ctx, bwi_npy *npy, const unsigned char *bytes, const char *where)
{
    size_t start = bytes[6] > 1 ? 12 : 10;
    cursor c = {.ctx = ctx, .where = where, .at = bytes + start, .end = bytes + npy->offset};
    bw_status status = parse_dictionary(&c, npy);
    if (status != BW_OK) {
        return status;
    }
    /* An extent of 0 must not hide an overflow of the others: strides are made from them. */
    size_t span = bwi_dtype_size(npy->dtype);
    bool empty = false;
    for (int i = 0; i < npy->ndim; i++) {
        empty = empty || npy->shape[i] == 0;
        span = bwi_size_multiply(span, npy->shape[i] == 0 ? 1 : (size_t)npy->shape[i]);
    }
    if (span > SIZE_MAX / 4) {
        char shape[160];
        return bwi_fail_file(ctx, BW_INVALID_ARGUMENT, where, "shape %s is larger than memory can be",
                             bwi_format_shape(shape, npy->ndim, npy->shape));
    }
    npy->bytes = empty ? 0 : span;
    return BW_OK;
}

void bwi_npy_strides(const bwi_npy *npy, int64_t *strides)
{
    int64_t stride = (int64_t)bwi_dtype_size(npy->dtype);
    for (int i = 0; i < npy->ndim; i++) {
        int axis = npy->fortran ? i : npy->ndim - 1 - i;
        strides[axis] = stride;
        stride *= npy->shape[axis] ? npy->shape[axis] : 1;
    }
}

void bwi_npy_swap(const bwi_npy *npy, void *values)
{
    size_t size = bwi_dtype_size(npy->dtype);
    unsigned char *bytes = values;
    for (size_t at = 0; at < npy->bytes; at += size) {
        for (size_t i = 0; i < size / 2; i++) {
            unsigned char byte = bytes[at + i];
            bytes[at + i] = bytes[at + size - 1 - i];
            bytes[at + size - 1 - i] = byte;
        }
    }
}
