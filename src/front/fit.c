/*
 * Fits fronts in one pass over samples, as Keras's adapt: tokens by how often they occur, of equally frequent ones the last in the
 * order of bytes first; and boundaries of intervals. Memory is bounded: tokens are counted exactly up to MOST_BYTES of them; beyond
 * that those that occurred least are forgotten, which is logged with the largest count that may be missing. Tokens that no
 * vocabulary can keep (longer than LONGEST bytes, or not UTF-8) are left out, and are logged, too.
 */
#include "front/internal.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LONGEST = 1 << 16, BLOCK = 1 << 20 };
#define MOST_BYTES ((size_t)512 << 20)

struct bwi_front_fitting {
    bwi_front *front;
    bwi_vocabulary tokens;
    size_t limit;
    int64_t samples;
    int64_t forgotten, lost; /* tokens that were forgotten, and how many occurrences of one token went with them, at most */
    int64_t foreign;         /* occurrences of tokens that are too long or not UTF-8 */
    bw_status status;
    bwi_summary summary;
    float *block; /* values that are not in the summary yet */
    int64_t block_count;
};

bw_status bwi_front_fitting_open(bwi_front *front, bwi_front_fitting **fitting)
{
    bw_context *ctx = front->ctx;
    if (front->set.kind == BWI_FRONT_DISCRETIZATION && front->set.bins == 0) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "discretization: expected bin_boundaries or num_bins");
    }
    bwi_front_fitting *f = bwi_allocate(ctx, 1, sizeof *f);
    if (!f) {
        return BW_RESOURCE_EXHAUSTED;
    }
    *f = (bwi_front_fitting){.front = front, .tokens = {.ctx = ctx}, .limit = MOST_BYTES};
    if (ctx->backing_limit) {
        f->limit = ctx->backing_limit;
    }
    *fitting = f;
    if (front->set.kind == BWI_FRONT_DISCRETIZATION) {
        f->block = bwi_allocate(ctx, BLOCK, sizeof *f->block);
        return f->block ? BW_OK : BW_RESOURCE_EXHAUSTED;
    }
    return BW_OK;
}

void bwi_front_fitting_free(bwi_front_fitting *f)
{
    if (f) {
        bw_context *ctx = f->front->ctx;
        bwi_vocabulary_free(&f->tokens);
        bwi_summary_free(ctx, &f->summary);
        bwi_release(ctx, f->block);
        bwi_release(ctx, f);
    }
}

/* ---- Tokens ---- */

/* The smallest count of a token above `count`. */
static int64_t next_count(const bwi_vocabulary *tokens, int64_t count)
{
    int64_t next = INT64_MAX;
    for (int64_t i = 0; i < tokens->count; i++) {
        int64_t other = tokens->entries[i].count;
        next = other > count && other < next ? other : next;
    }
    return next;
}

/* Forgets tokens that occurred least, so that at most half of the memory stays in use. Each round forgets at least one of them.
 * The first is that of the lowest count there is, however much was lost before: most tokens that came since may have occurred once,
 * and the others often. */
static bw_status forget(bwi_front_fitting *f)
{
    bwi_vocabulary kept = {.ctx = f->front->ctx};
    int64_t least = 0;
    do {
        bwi_vocabulary_free(&kept);
        least = next_count(&f->tokens, least);
        for (int64_t i = 0; i < f->tokens.count; i++) {
            bw_text text = bwi_vocabulary_text(&f->tokens, i);
            const bwi_entry *entry = &f->tokens.entries[i];
            if (entry->count <= least) {
                continue;
            }
            if (!bwi_vocabulary_add_text(&kept, &text)) {
                bwi_vocabulary_free(&kept);
                return BW_RESOURCE_EXHAUSTED;
            }
            bwi_entry *copy = &kept.entries[kept.count - 1];
            copy->count = entry->count;
            copy->documents = entry->documents;
            copy->document = entry->document;
        }
    } while (bwi_vocabulary_bytes(&kept) > f->limit / 2 && kept.count > 0);
    f->forgotten += f->tokens.count - kept.count;
    f->lost += least;
    bwi_vocabulary_free(&f->tokens);
    f->tokens = kept;
    return BW_OK;
}

static bool is_utf8(const bwi_vocabulary *tokens, int64_t number)
{
    bw_text text = bwi_vocabulary_text(tokens, number);
    return bwi_utf8_valid(text.bytes, text.size);
}

/* Memory is looked at before a new token is added, so that it never exceeds the limit by more than one of them. */
static bool count_token(void *user, const bwi_token *token)
{
    bwi_front_fitting *f = user;
    uint64_t hash;
    size_t size = bwi_token_measure(token, &hash);
    if (size > LONGEST) {
        f->foreign++;
        return true;
    }
    int64_t found = bwi_vocabulary_find(&f->tokens, token, hash, size);
    if (found < 0 && f->tokens.count > 0 && bwi_vocabulary_bytes(&f->tokens) > f->limit) {
        f->status = forget(f);
    }
    if (found < 0 && f->status == BW_OK) {
        found = bwi_vocabulary_add(&f->tokens, token, hash, size);
        f->status = found < 0 ? BW_RESOURCE_EXHAUSTED : BW_OK;
    }
    if (f->status != BW_OK) {
        return false;
    }
    bwi_entry *entry = &f->tokens.entries[found];
    entry->count++;
    entry->documents += entry->document != f->samples;
    entry->document = f->samples;
    return true;
}

static void count_text(bwi_front_fitting *f, const bw_text *text)
{
    bwi_token token = {.count = 1};
    token.pieces[0] = (bwi_run){text->bytes, text->bytes + text->size};
    count_token(f, &token);
}

/* ---- Samples ---- */

static bw_status add_number(bwi_front_fitting *f, float number)
{
    bw_status status = BW_OK;
    f->block[f->block_count++] = number;
    if (f->block_count == BLOCK) {
        status = bwi_summary_add(f->front->ctx, &f->summary, f->block, f->block_count, f->front->set.epsilon);
        f->block_count = 0;
    }
    return status;
}

bw_status bwi_front_fitting_add(bwi_front_fitting *f, const bwi_front_value *input)
{
    bwi_front_kind kind = f->front->set.kind;
    char error[BWI_ITEM_ERROR] = "", digits[BWI_DIGITS];
    f->status = bwi_front_check(f->front, input, error);
    if (f->status != BW_OK) {
        return bwi_fail(f->front->ctx, f->status, "sample %" PRId64 ": %s", f->samples, error);
    }
    f->samples++;
    for (int64_t i = 0; i < input->count && f->status == BW_OK; i++) {
        if (kind == BWI_FRONT_DISCRETIZATION) {
            bool whole = input->dtype == BW_I32;
            f->status = add_number(f, whole ? (float)((const int32_t *)input->values)[i] : ((const float *)input->values)[i]);
        } else if (kind == BWI_FRONT_TEXT) {
            bwi_tokens_each(&f->front->set, &((const bw_text *)input->values)[i], count_token, f);
        } else {
            bw_text text = bwi_front_text_at(input, i, digits);
            count_text(f, &text);
        }
    }
    return f->status;
}

/* ---- The end ---- */

typedef struct ranked {
    bw_text text;
    int64_t count, documents, number;
} ranked;

static int compare_texts(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->count != y->count) {
        return x->count > y->count ? -1 : 1;
    }
    size_t common = (size_t)(x->text.size < y->text.size ? x->text.size : y->text.size);
    int order = memcmp(x->text.bytes, y->text.bytes, common);
    return order ? -order : x->text.size > y->text.size ? -1 : x->text.size < y->text.size;
}

static int compare_integers(const void *a, const void *b)
{
    const ranked *x = a, *y = b;
    if (x->count != y->count) {
        return x->count > y->count ? -1 : 1;
    }
    return x->number > y->number ? -1 : x->number < y->number;
}

static bool is_special(const bwi_front_settings *set, const bw_text *text)
{
    return (set->masked && bwi_text_is(text, set->mask)) || (set->named && bwi_text_is(text, set->oov_token));
}

/* Gives the front the most frequent tokens, with the logarithm of 1 + texts / (1 + texts with the token). */
static bw_status keep_tokens(bwi_front_fitting *f, ranked *list, int64_t count, const char *name)
{
    bwi_front *front = f->front;
    bw_text *texts = bwi_allocate(front->ctx, (size_t)count, sizeof *texts);
    float *idf = bwi_allocate(front->ctx, (size_t)count, sizeof *idf);
    char what[128];
    bw_status status = texts && idf ? BW_OK : BW_RESOURCE_EXHAUSTED;
    snprintf(what, sizeof what, "layer %.64s", name);
    for (int64_t i = 0; i < count && status == BW_OK; i++) {
        texts[i] = list[i].text;
        idf[i] = (float)log(1 + (double)f->samples / (double)(1 + list[i].documents));
    }
    front->set.vocabulary = 0;
    if (status == BW_OK) {
        status = bwi_front_set_tokens(front, texts, count, front->set.mode == BWI_MODE_TF_IDF ? idf : NULL, what);
    }
    bwi_release(front->ctx, texts);
    bwi_release(front->ctx, idf);
    return status;
}

static void tell(const bwi_front_fitting *f, const char *name, int64_t distinct)
{
    bw_context *ctx = f->front->ctx;
    bwi_log(ctx, BW_LOG_INFO, "layer %s: a vocabulary of %" PRId64 " tokens, of %" PRId64 " that %" PRId64 " samples have", name,
            f->front->tokens.count, distinct, f->samples);
    if (f->forgotten > 0) {
        bwi_log(ctx, BW_LOG_WARNING,
                "layer %s: the samples have more distinct tokens than the memory for counting them holds; %" PRId64
                " rare ones were forgotten on the way, "
                "so counts may be too low by up to %" PRId64,
                name, f->forgotten, f->lost);
    }
    if (f->foreign > 0) {
        bwi_log(ctx, BW_LOG_WARNING,
                "layer %s: %" PRId64 " tokens are longer than %d bytes or not UTF-8; they are never part of the vocabulary", name,
                f->foreign, LONGEST);
    }
}

/* The special tokens are never among those that are counted. */
static bw_status end_tokens(bwi_front_fitting *f, const char *name)
{
    bwi_front *front = f->front;
    const bwi_front_settings *set = &front->set;
    ranked *list = bwi_allocate(front->ctx, (size_t)f->tokens.count + 1, sizeof *list);
    int64_t count = 0;
    if (!list) {
        return BW_RESOURCE_EXHAUSTED;
    }
    for (int64_t i = 0; i < f->tokens.count; i++) {
        const bwi_entry *entry = &f->tokens.entries[i];
        bw_text text = bwi_vocabulary_text(&f->tokens, i);
        if (!is_utf8(&f->tokens, i)) {
            f->foreign += entry->count;
        } else if (!is_special(set, &text)) {
            int64_t number = 0;
            bwi_parse_int(text.bytes, text.bytes + text.size, &number);
            list[count++] = (ranked){.text = text, .count = entry->count, .documents = entry->documents, .number = number};
        }
    }
    int64_t distinct = count;
    if (count > 0) {
        qsort(list, (size_t)count, sizeof *list, set->kind == BWI_FRONT_INTEGERS ? compare_integers : compare_texts);
    }
    if (set->max_tokens > 0 && count > set->max_tokens - bwi_front_first_token(front)) {
        count = set->max_tokens - bwi_front_first_token(front);
    }
    bw_status status = count > 0
                           ? keep_tokens(f, list, count, name)
                           : bwi_fail(front->ctx, BW_INVALID_ARGUMENT,
                                      "layer %s: no token for its vocabulary was found in %" PRId64 " samples", name, f->samples);
    bwi_release(front->ctx, list);
    if (status == BW_OK) {
        tell(f, name, distinct);
    }
    return status;
}

/* What is left of the last block joins the summary first. */
static bw_status end_numbers(bwi_front_fitting *f, const char *name)
{
    bwi_front *front = f->front;
    bw_context *ctx = front->ctx;
    char what[128];
    float *boundaries = NULL;
    int64_t count = 0;
    snprintf(what, sizeof what, "layer %.64s", name);
    bw_status status = f->block_count > 0 ? bwi_summary_add(ctx, &f->summary, f->block, f->block_count, front->set.epsilon) : BW_OK;
    if (status == BW_OK && f->summary.count == 0) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "layer %s: there are no samples to fit boundaries to", name);
    }
    if (status == BW_OK) {
        status = bwi_summary_boundaries(ctx, &f->summary, front->set.bins, &boundaries, &count);
    }
    if (status == BW_OK) {
        status = bwi_front_set_boundaries(front, boundaries, count, what);
    }
    bwi_release(ctx, boundaries);
    if (status == BW_OK) {
        bwi_log(ctx, BW_LOG_INFO, "layer %s: %" PRId64 " boundaries, fitted to %" PRId64 " samples", name, count, f->samples);
    }
    return status;
}

bw_status bwi_front_fitting_end(bwi_front_fitting *f, const char *name)
{
    return f->front->set.kind == BWI_FRONT_DISCRETIZATION ? end_numbers(f, name) : end_tokens(f, name);
}
