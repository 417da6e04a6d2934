/*
 * Fronts: what Keras's preprocessing layers make of one sample. Every kind finds an index for each token or value, and the output
 * mode decides what becomes of the indices: they are kept, or counted in a vector. Indices that Keras drops are -1 here.
 */
#include "front/internal.h"

#include "format/format.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

bwi_front *bwi_front_new(bw_context *ctx, const bwi_front_settings *settings)
{
    bwi_front *front = bwi_allocate(ctx, 1, sizeof *front);
    if (front) {
        *front = (bwi_front){.ctx = ctx, .set = *settings, .tokens = {.ctx = ctx}};
    }
    return front;
}

void bwi_front_free(bwi_front *front)
{
    if (front) {
        bwi_vocabulary_free(&front->tokens);
        bwi_release(front->ctx, front->idf);
        bwi_release(front->ctx, front->boundaries);
        bwi_release(front->ctx, front);
    }
}

const bwi_front_settings *bwi_front_settings_of(const bwi_front *front)
{
    return &front->set;
}

static bool has_vocabulary(const bwi_front *front)
{
    return front->set.kind <= BWI_FRONT_INTEGERS;
}

bool bwi_front_takes_text(const bwi_front *front)
{
    return front->set.kind != BWI_FRONT_DISCRETIZATION && front->set.kind != BWI_FRONT_ENCODING &&
           front->set.kind != BWI_FRONT_INTEGERS;
}

bool bwi_front_is_fitted(const bwi_front *front)
{
    return front->fitted || (!has_vocabulary(front) && front->set.kind != BWI_FRONT_DISCRETIZATION);
}

bool bwi_front_is_given(const bwi_front *front)
{
    return front->given || (!has_vocabulary(front) && front->set.kind != BWI_FRONT_DISCRETIZATION);
}

void bwi_front_set_given(bwi_front *front)
{
    front->given = true;
}

void bwi_front_clear(bwi_front *front)
{
    bwi_vocabulary_free(&front->tokens);
    bwi_release(front->ctx, front->idf);
    bwi_release(front->ctx, front->boundaries);
    front->idf = front->boundaries = NULL;
    front->idf_count = front->boundary_count = 0;
    front->fitted = false;
}

/* ---- Sizes ---- */

/* Only in sequences of indices does the mask have an index. */
int64_t bwi_front_first_oov(const bwi_front *front)
{
    return front->set.masked && front->set.mode == BWI_MODE_INT;
}

int64_t bwi_front_first_token(const bwi_front *front)
{
    return bwi_front_first_oov(front) + front->set.oov;
}

int64_t bwi_front_depth(const bwi_front *front)
{
    const bwi_front_settings *set = &front->set;
    if (set->kind == BWI_FRONT_DISCRETIZATION) {
        return front->fitted ? front->boundary_count + 1 : set->bins;
    }
    if (!has_vocabulary(front)) {
        return set->bins;
    }
    if (set->pad) {
        return set->max_tokens;
    }
    return front->fitted ? bwi_front_token_count(front) : set->vocabulary;
}

int64_t bwi_front_count(bw_context *ctx, const char *name, const bwi_front *front, int64_t count)
{
    const bwi_front_settings *set = &front->set;
    int64_t depth = bwi_front_depth(front), values = 0;
    if (set->mode != BWI_MODE_INT && depth <= 0) {
        bwi_fail(ctx, BW_INVALID_ARGUMENT, "layer %s: the length of its vectors is not known before it is fitted: bw_adapt fits it",
                 name);
        return 0;
    }
    if (set->kind == BWI_FRONT_TEXT && set->split != BWI_SPLIT_NONE && count != 1) {
        bwi_fail(ctx, BW_INVALID_ARGUMENT, "layer %s: expected one text in a sample, got %" PRId64, name, count);
        return 0;
    }
    if (set->kind == BWI_FRONT_TEXT && set->mode == BWI_MODE_INT && set->length == 0) {
        bwi_fail(
            ctx, BW_UNIMPLEMENTED,
            "layer %s: sequences that are as long as the longest text of a batch are not supported: give output_sequence_length",
            name);
        return 0;
    }
    if (set->mode == BWI_MODE_INT) {
        return set->kind == BWI_FRONT_TEXT ? set->length : count;
    }
    if (__builtin_mul_overflow(depth, set->mode == BWI_MODE_ONE_HOT ? count : 1, &values) || values > INT32_MAX) {
        bwi_fail(ctx, BW_INVALID_ARGUMENT, "layer %s: %" PRId64 " vectors of %" PRId64 " numbers are too many", name, count, depth);
        return 0;
    }
    return values;
}

/* ---- Tokens ---- */

int64_t bwi_front_token_count(const bwi_front *front)
{
    return bwi_front_first_token(front) + front->tokens.count;
}

bw_text bwi_front_token(const bwi_front *front, int64_t number)
{
    int64_t first = bwi_front_first_token(front);
    if (number >= first) {
        return bwi_vocabulary_text(&front->tokens, number - first);
    }
    const char *special = number < bwi_front_first_oov(front) ? front->set.mask : front->set.oov_token;
    return (bw_text){.bytes = special, .size = (int64_t)strlen(special)};
}

bool bwi_text_is(const bw_text *text, const char *other)
{
    return (size_t)text->size == strlen(other) && memcmp(text->bytes, other, (size_t)text->size) == 0;
}

/* Whether a list of tokens begins with the special ones. */
static bool has_special(const bwi_front *front, const bw_text *tokens, int64_t count)
{
    int64_t first = bwi_front_first_token(front), oov = bwi_front_first_oov(front);
    bool all = count >= first;
    for (int64_t i = 0; i < first && all; i++) {
        all = bwi_text_is(&tokens[i], i < oov ? front->set.mask : front->set.oov_token);
    }
    return all;
}

static bw_status take_tokens(bwi_front *front, const bw_text *tokens, int64_t count, bwi_vocabulary *to, const char *what)
{
    char quoted[BWI_QUOTE_SIZE];
    for (int64_t i = 0; i < count; i++) {
        if (tokens[i].size < 0 || tokens[i].size > INT_MAX) {
            return bwi_fail(front->ctx, BW_INVALID_ARGUMENT, "%s: token %" PRId64 " has %" PRId64 " bytes, expected 0 to %d", what,
                            i, tokens[i].size, INT_MAX);
        }
        if (bwi_vocabulary_find_text(to, &tokens[i]) >= 0) {
            return bwi_fail(front->ctx, BW_INVALID_ARGUMENT, "%s: the token %s appears twice", what,
                            bwi_quote(quoted, tokens[i].bytes, (size_t)tokens[i].size));
        }
        if (front->set.masked && bwi_text_is(&tokens[i], front->set.mask)) {
            return bwi_fail(front->ctx, BW_INVALID_ARGUMENT, "%s: the mask token %s appears among the others", what,
                            bwi_quote(quoted, tokens[i].bytes, (size_t)tokens[i].size));
        }
        if (!bwi_vocabulary_add_text(to, &tokens[i])) {
            return BW_RESOURCE_EXHAUSTED;
        }
    }
    return BW_OK;
}

/* Weights for tokens without the special ones get their mean in front, and zeros up to max_tokens. */
static bw_status take_idf(bwi_front *front, const float *idf, int64_t count, bool special, int64_t tokens)
{
    int64_t first = special ? 0 : bwi_front_first_token(front), depth = front->set.pad ? front->set.max_tokens : tokens;
    float *weights = bwi_allocate(front->ctx, (size_t)depth, sizeof *weights);
    double sum = 0;
    if (!weights) {
        return BW_RESOURCE_EXHAUSTED;
    }
    for (int64_t i = 0; i < count && first + i < depth; i++) {
        weights[first + i] = idf[i];
        sum += (double)idf[i];
    }
    for (int64_t i = 0; i < first; i++) {
        weights[i] = count > 0 ? (float)(sum / (double)count) : 0;
    }
    bwi_release(front->ctx, front->idf);
    front->idf = weights;
    front->idf_count = depth;
    return BW_OK;
}

bw_status bwi_front_set_tokens(bwi_front *front, const bw_text *tokens, int64_t count, const float *idf, const char *what)
{
    bool special = has_special(front, tokens, count);
    int64_t skipped = special ? bwi_front_first_token(front) : 0, all = bwi_front_first_token(front) + count - skipped;
    const bwi_front_settings *set = &front->set;
    bwi_vocabulary made = {.ctx = front->ctx};
    if (count - skipped < 1) {
        return bwi_fail(front->ctx, BW_INVALID_ARGUMENT, "%s: the vocabulary is empty", what);
    }
    if (set->max_tokens > 0 && all > set->max_tokens) {
        return bwi_fail(front->ctx, BW_INVALID_ARGUMENT,
                        "%s: the vocabulary has %" PRId64 " tokens, more than max_tokens, %" PRId64, what, all, set->max_tokens);
    }
    if (set->vocabulary > 0 && set->mode != BWI_MODE_INT && !set->pad && all != set->vocabulary) {
        return bwi_fail(front->ctx, BW_DATA_LOSS, "%s: the vocabulary has %" PRId64 " tokens, but vocabulary_size is %" PRId64,
                        what, all, set->vocabulary);
    }
    bw_status status = take_tokens(front, tokens + skipped, count - skipped, &made, what);
    if (status == BW_OK && idf) {
        status = take_idf(front, idf, count, special, all);
    }
    if (status != BW_OK) {
        bwi_vocabulary_free(&made);
        return status;
    }
    bwi_vocabulary_free(&front->tokens);
    front->tokens = made;
    front->fitted = true;
    return BW_OK;
}

const float *bwi_front_idf(const bwi_front *front, int64_t *count)
{
    *count = front->idf_count;
    return front->idf;
}

bw_status bwi_front_set_idf(bwi_front *front, const float *idf, int64_t count, const char *what)
{
    int64_t depth = bwi_front_depth(front);
    if (depth > 0 && count != depth) {
        return bwi_fail(front->ctx, BW_DATA_LOSS, "%s: idf_weights has %" PRId64 " numbers, expected %" PRId64, what, count, depth);
    }
    float *copy = bwi_allocate(front->ctx, (size_t)count, sizeof *copy);
    if (!copy) {
        return BW_RESOURCE_EXHAUSTED;
    }
    memcpy(copy, idf, (size_t)count * sizeof *copy);
    bwi_release(front->ctx, front->idf);
    front->idf = copy;
    front->idf_count = count;
    return BW_OK;
}

const float *bwi_front_boundaries(const bwi_front *front, int64_t *count)
{
    *count = front->boundary_count;
    return front->boundaries;
}

bw_status bwi_front_set_boundaries(bwi_front *front, const float *boundaries, int64_t count, const char *what)
{
    for (int64_t i = 1; i < count; i++) {
        if (!(boundaries[i - 1] <= boundaries[i])) {
            return bwi_fail(front->ctx, BW_INVALID_ARGUMENT,
                            "%s: bin_boundaries: %g follows %g; expected numbers in ascending order", what, (double)boundaries[i],
                            (double)boundaries[i - 1]);
        }
    }
    float *copy = bwi_allocate(front->ctx, (size_t)count, sizeof *copy);
    if (!copy) {
        return BW_RESOURCE_EXHAUSTED;
    }
    memcpy(copy, boundaries, (size_t)count * sizeof *copy);
    bwi_release(front->ctx, front->boundaries);
    front->boundaries = copy;
    front->boundary_count = count;
    front->fitted = true;
    return BW_OK;
}

/* ---- Indices ---- */

/* Where indices go: into a sequence, or into a vector, where they are counted or marked. */
typedef struct output {
    const bwi_front *front;
    int64_t depth, room, made;
    int32_t *indices; /* NULL: a vector */
    float *vector;
    char *error;
    bw_status status;
} output;

static void put_index(output *o, int64_t index)
{
    bwi_front_mode mode = o->front->set.mode;
    if (mode == BWI_MODE_INT) {
        if (o->made < o->room) {
            o->indices[o->made] = (int32_t)index;
        }
        o->made++;
        return;
    }
    float *vector = mode == BWI_MODE_ONE_HOT ? o->vector + o->made * o->depth : o->vector;
    if (index >= 0 && index < o->depth && (mode != BWI_MODE_ONE_HOT || o->made < o->room)) {
        vector[index] = mode == BWI_MODE_ONE_HOT || mode == BWI_MODE_MULTI_HOT ? 1 : vector[index] + 1;
    }
    o->made++;
}

static uint64_t hash_of(const bwi_front_settings *set, const bw_text *text)
{
    return set->salted ? bwi_siphash(set->salt, text->bytes, (size_t)text->size) : bwi_farmhash(text->bytes, (size_t)text->size);
}

/* The index of a token that the vocabulary lacks; the number is that of an integer. */
static int64_t outside(output *o, const bw_text *text, const int64_t *number)
{
    const bwi_front_settings *set = &o->front->set;
    int64_t first = bwi_front_first_oov(o->front), index = 0;
    if (set->oov == 0) {
        char quoted[BWI_QUOTE_SIZE];
        o->status = BW_INVALID_ARGUMENT;
        snprintf(o->error, BWI_ITEM_ERROR, "%s is not in the vocabulary, which has no index for such (num_oov_indices is 0)",
                 bwi_quote(quoted, text->bytes, (size_t)text->size));
        return -1;
    }
    if (set->oov > 1) {
        index = number && !set->farmhash ? ((*number % set->oov) + set->oov) % set->oov
                                         : (int64_t)(hash_of(set, text) % (uint64_t)set->oov);
    }
    return first + index;
}

static int64_t look_up(output *o, const bw_text *text, const int64_t *number)
{
    const bwi_front *front = o->front;
    if (front->set.masked && bwi_text_is(text, front->set.mask)) {
        return front->set.mode == BWI_MODE_INT ? 0 : -1;
    }
    int64_t found = bwi_vocabulary_find_text(&front->tokens, text);
    return found >= 0 ? bwi_front_first_token(front) + found : outside(o, text, number);
}

/* Tokens of a text have one index for all that the vocabulary lacks. */
static bool take_token(void *user, const bwi_token *token)
{
    output *o = user;
    const bwi_front *front = o->front;
    uint64_t hash;
    size_t size = bwi_token_measure(token, &hash);
    int64_t found = size == 0 ? -1 : bwi_vocabulary_find(&front->tokens, token, hash, size);
    if (size == 0) {
        put_index(o, front->set.mode == BWI_MODE_INT ? 0 : -1);
    } else {
        put_index(o, found >= 0 ? bwi_front_first_token(front) + found : bwi_front_first_oov(front));
    }
    return front->set.mode != BWI_MODE_INT || o->made < o->room;
}

static int64_t hash_bin(const bwi_front_settings *set, const bw_text *text)
{
    bool masked = set->masked && set->bins > 1;
    int64_t bin = (int64_t)(hash_of(set, text) % (uint64_t)(set->bins - masked));
    return !masked ? bin : bwi_text_is(text, set->mask) ? 0 : bin + 1;
}

static int64_t interval_of(const bwi_front *front, float number)
{
    int64_t low = 0, high = front->boundary_count;
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (number < front->boundaries[middle]) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return low;
}

/* ---- Values ---- */

int64_t bwi_front_integer_at(const bwi_front_value *value, int64_t element)
{
    return value->dtype == BW_I32 ? ((const int32_t *)value->values)[element] : (int64_t)((const float *)value->values)[element];
}

bw_text bwi_front_text_at(const bwi_front_value *value, int64_t element, char digits[BWI_DIGITS])
{
    if (value->dtype == BW_TEXT) {
        return ((const bw_text *)value->values)[element];
    }
    return (bw_text){.bytes = digits, .size = snprintf(digits, BWI_DIGITS, "%" PRId64, bwi_front_integer_at(value, element))};
}

bw_status bwi_front_check(const bwi_front *front, const bwi_front_value *input, char *error)
{
    bool integers = input->dtype == BW_F32 && front->set.kind != BWI_FRONT_DISCRETIZATION;
    for (int64_t i = 0; integers && i < input->count; i++) {
        float number = ((const float *)input->values)[i];
        if (!(number >= -0x1p63F && number < 0x1p63F)) {
            bwi_print(error, BWI_ITEM_ERROR, "expected an integer of 64 bits, found %g", (double)number);
            return BW_INVALID_ARGUMENT;
        }
    }
    return BW_OK;
}

static int64_t crossed(const bwi_front_settings *set, const bwi_front_value *inputs, int input_count, int64_t i)
{
    uint64_t hash = 0xDECAFCAFFE; /* TensorFlow's key for crosses */
    for (int k = 0; k < input_count; k++) {
        const bwi_front_value *input = &inputs[k];
        uint64_t one = 0;
        if (input->dtype == BW_TEXT) {
            const bw_text *text = &((const bw_text *)input->values)[i];
            one = bwi_farmhash(text->bytes, (size_t)text->size);
        } else {
            one = (uint64_t)bwi_front_integer_at(input, i);
        }
        hash = bwi_hash_join(hash, one);
    }
    return (int64_t)(hash % (uint64_t)set->bins);
}

static int64_t index_of(output *o, const bwi_front_value *inputs, int input_count, int64_t i)
{
    const bwi_front *front = o->front;
    char digits[BWI_DIGITS];
    if (front->set.kind == BWI_FRONT_DISCRETIZATION) {
        const bwi_front_value *in = &inputs[0];
        return interval_of(front, in->dtype == BW_F32 ? ((const float *)in->values)[i] : (float)bwi_front_integer_at(in, i));
    }
    if (front->set.kind == BWI_FRONT_ENCODING) {
        return bwi_front_integer_at(&inputs[0], i);
    }
    if (front->set.kind == BWI_FRONT_CROSSING) {
        return crossed(&front->set, inputs, input_count, i);
    }
    bw_text text = bwi_front_text_at(&inputs[0], i, digits);
    if (front->set.kind == BWI_FRONT_HASHING) {
        return hash_bin(&front->set, &text);
    }
    int64_t number = inputs[0].dtype == BW_TEXT ? 0 : bwi_front_integer_at(&inputs[0], i);
    return look_up(o, &text, inputs[0].dtype == BW_TEXT ? NULL : &number);
}

bw_status bwi_front_apply(const bwi_front *front, const bwi_front_value *inputs, int input_count, void *to, char *error)
{
    bwi_front_mode mode = front->set.mode;
    int64_t count = inputs[0].count, depth = bwi_front_depth(front);
    output o = {.front = front, .depth = depth, .room = count, .error = error};
    if (mode == BWI_MODE_INT) {
        o.indices = to;
        o.room = front->set.kind == BWI_FRONT_TEXT ? front->set.length : count;
        memset(to, 0, (size_t)o.room * sizeof *o.indices);
    } else {
        o.vector = to;
        memset(to, 0, (size_t)(mode == BWI_MODE_ONE_HOT ? count * depth : depth) * sizeof *o.vector);
    }
    for (int k = 0; k < input_count && o.status == BW_OK; k++) {
        o.status = bwi_front_check(front, &inputs[k], error);
    }
    for (int64_t i = 0; i < count && o.status == BW_OK; i++) {
        if (front->set.kind == BWI_FRONT_TEXT) {
            bwi_tokens_each(&front->set, &((const bw_text *)inputs[0].values)[i], take_token, &o);
        } else {
            put_index(&o, index_of(&o, inputs, input_count, i));
        }
    }
    for (int64_t i = 0; mode == BWI_MODE_TF_IDF && i < depth && i < front->idf_count; i++) {
        o.vector[i] *= front->idf[i];
    }
    return o.status;
}
