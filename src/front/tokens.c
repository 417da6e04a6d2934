/*
 * Cuts texts into tokens as Keras's TextVectorization does. Letters are lowered and punctuation removed in ASCII only, white space
 * is that of ASCII, and characters are those of UTF-8, where each byte that belongs to none counts as U+FFFD. Nothing is copied:
 * the bytes of a token are read from the text through the standardisation.
 */
#include "front/internal.h"

#include <string.h>

static const char replacement[] = "\xEF\xBF\xBD";

static bool is_space(char c)
{
    return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_punctuation(char c)
{
    return (c >= '!' && c <= '/') || (c >= ':' && c <= '@') || (c >= '[' && c <= '`') || (c >= '{' && c <= '~');
}

/* ---- Bytes of tokens ---- */

bwi_letters bwi_letters_of(const bwi_token *token)
{
    return (bwi_letters){.token = token, .at = token->count ? token->pieces[0].at : NULL};
}

/* An n-gram has a blank between its tokens. */
int bwi_letter_next(bwi_letters *letters)
{
    const bwi_token *token = letters->token;
    while (letters->piece < token->count) {
        const bwi_run *piece = &token->pieces[letters->piece];
        while (letters->at < piece->end) {
            char c = *letters->at++;
            if (token->strip && is_punctuation(c)) {
                continue;
            }
            return (unsigned char)(token->lower && c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
        }
        letters->piece++;
        if (letters->piece < token->count) {
            letters->at = token->pieces[letters->piece].at;
            return ' ';
        }
    }
    return -1;
}

enum { HASH_SEED = 0x51ed27 };

static uint64_t hash_step(uint64_t hash, int letter)
{
    return (hash ^ (uint64_t)letter) * 0x100000001b3U;
}

static uint64_t hash_end(uint64_t hash)
{
    return hash ^ (hash >> 29);
}

size_t bwi_token_measure(const bwi_token *token, uint64_t *hash)
{
    bwi_letters letters = bwi_letters_of(token);
    uint64_t sum = HASH_SEED;
    size_t size = 0;
    for (int letter; (letter = bwi_letter_next(&letters)) >= 0; size++) {
        sum = hash_step(sum, letter);
    }
    *hash = hash_end(sum);
    return size;
}

uint64_t bwi_bytes_hash(const char *bytes, size_t size)
{
    uint64_t sum = HASH_SEED;
    for (size_t i = 0; i < size; i++) {
        sum = hash_step(sum, (unsigned char)bytes[i]);
    }
    return hash_end(sum);
}

void bwi_token_copy(const bwi_token *token, char *to)
{
    bwi_letters letters = bwi_letters_of(token);
    for (int letter; (letter = bwi_letter_next(&letters)) >= 0;) {
        *to++ = (char)letter;
    }
}

/* ---- Characters ---- */

/* Returns the length of the character at `at`, and whether it is UTF-8; what is not ends before the first byte that does not fit,
 * so that an unfinished character counts once. */
static int character(const unsigned char *at, const unsigned char *end, bool *valid)
{
    unsigned char first = *at, low = 0x80, high = 0xBF;
    int more = first < 0x80                    ? 0
               : first >= 0xC2 && first < 0xE0 ? 1
               : first >= 0xE0 && first < 0xF0 ? 2
               : first >= 0xF0 && first < 0xF5 ? 3
                                               : -1;
    low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : low;
    high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : high;
    int length = 1;
    *valid = more >= 0;
    for (; *valid && length <= more; length++) {
        if (at + length >= end || at[length] < low || at[length] > high) {
            *valid = false;
            return length;
        }
        low = 0x80;
        high = 0xBF;
    }
    return length;
}

bool bwi_utf8_valid(const char *bytes, int64_t size)
{
    const unsigned char *at = (const unsigned char *)bytes, *end = at + size;
    bool valid = true;
    while (at < end && valid) {
        at += character(at, end, &valid);
    }
    return valid;
}

/* ---- Splitting ---- */

/* A walk over the tokens of a text, before n-grams. */
typedef struct cutting {
    const bwi_front_settings *set;
    const char *at, *end;
    bool whole; /* the one token of a text that is not split is still to come */
} cutting;

static bool next_word(cutting *c, bwi_run *piece)
{
    /* What consists of punctuation alone is no token. */
    while (c->at < c->end) {
        bool letters = false;
        piece->at = c->at;
        while (c->at < c->end && !is_space(*c->at)) {
            letters = letters || !(c->set->strip && is_punctuation(*c->at));
            c->at++;
        }
        piece->end = c->at;
        c->at += c->at < c->end;
        if (letters) {
            return true;
        }
    }
    return false;
}

static bool next_character(cutting *c, bwi_run *piece)
{
    while (c->at < c->end && c->set->strip && is_punctuation(*c->at)) {
        c->at++;
    }
    if (c->at == c->end) {
        return false;
    }
    bool valid;
    int length = character((const unsigned char *)c->at, (const unsigned char *)c->end, &valid);
    *piece = valid ? (bwi_run){c->at, c->at + length} : (bwi_run){replacement, replacement + 3};
    c->at += length;
    return true;
}

static bool next_piece(cutting *c, bwi_run *piece)
{
    if (c->set->split == BWI_SPLIT_NONE) {
        *piece = (bwi_run){c->at, c->end};
        bool found = c->whole;
        c->whole = false;
        return found;
    }
    return c->set->split == BWI_SPLIT_CHARACTER ? next_character(c, piece) : next_word(c, piece);
}

/* Keras gives all n-grams of the first width, then all of the next. The last tokens are kept, from the oldest. */
static bool each_of_width(const bwi_front_settings *set, const bw_text *text, int width,
                          bool (*take)(void *user, const bwi_token *token), void *user)
{
    cutting c = {.set = set, .at = text->bytes, .end = text->bytes + text->size, .whole = true};
    bwi_token token = {.lower = set->lower, .strip = set->strip};
    bwi_run piece;
    while (next_piece(&c, &piece)) {
        if (token.count == width) {
            memmove(token.pieces, token.pieces + 1, (size_t)(width - 1) * sizeof *token.pieces);
            token.count--;
        }
        token.pieces[token.count++] = piece;
        if (token.count == width && !take(user, &token)) {
            return false;
        }
    }
    return true;
}

void bwi_tokens_each(const bwi_front_settings *settings, const bw_text *text, bool (*take)(void *user, const bwi_token *token),
                     void *user)
{
    bool more = true;
    if (settings->ngram_count == 0) {
        each_of_width(settings, text, 1, take, user);
    }
    for (int i = 0; i < settings->ngram_count && more; i++) {
        more = each_of_width(settings, text, settings->ngrams[i], take, user);
    }
}
