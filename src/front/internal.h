/* What the files of front share: tokens of a text, a table of tokens, and hashes. */
#ifndef BWI_FRONT_INTERNAL_H
#define BWI_FRONT_INTERNAL_H

#include "front/front.h"

/* ---- hash.c ---- */

uint64_t bwi_farmhash(const char *bytes, size_t size);                       /* FarmHash's Fingerprint64 */
uint64_t bwi_siphash(const uint64_t key[2], const char *bytes, size_t size); /* SipHash-2-4 */
uint64_t bwi_hash_join(uint64_t hash, uint64_t other);                       /* TensorFlow's FingerprintCat64 */

/* ---- tokens.c ---- */

/* A token is a run of bytes of a text, or several with blanks between them (an n-gram). It is never copied: its bytes are read
 * through the standardisation, so that no token is too long for memory. */
typedef struct bwi_run {
    const char *at, *end;
} bwi_run;

typedef struct bwi_token {
    bool lower, strip;
    int count;
    bwi_run pieces[BWI_WIDEST_NGRAM];
} bwi_token;

/* Goes through the bytes of a token. */
typedef struct bwi_letters {
    const bwi_token *token;
    int piece;
    const char *at;
} bwi_letters;

bwi_letters bwi_letters_of(const bwi_token *token);
int bwi_letter_next(bwi_letters *letters); /* -1: the end */
/* The length of a token, and a hash of its bytes. */
size_t bwi_token_measure(const bwi_token *token, uint64_t *hash);
void bwi_token_copy(const bwi_token *token, char *to);
uint64_t bwi_bytes_hash(const char *bytes, size_t size); /* the same hash of the same bytes */

/* Calls `take` for every token of a text, in Keras's order, until it returns false. */
void bwi_tokens_each(const bwi_front_settings *settings, const bw_text *text, bool (*take)(void *user, const bwi_token *token),
                     void *user);

bool bwi_utf8_valid(const char *bytes, int64_t size); /* whether the bytes are UTF-8 */

/* ---- vocabulary.c ---- */

typedef struct bwi_entry {
    uint64_t hash;
    size_t at; /* of its bytes */
    int64_t size;
    int64_t count, documents, document; /* while a vocabulary is fitted: how often, in how many texts, in which one at last */
} bwi_entry;

/* Distinct tokens in the order in which they came. */
typedef struct bwi_vocabulary {
    bw_context *ctx;
    char *bytes;
    size_t used, capacity;
    bwi_entry *entries;
    int64_t count, entry_capacity;
    int64_t *slots; /* open addressing: number + 1; 0: free */
    int64_t slot_count;
} bwi_vocabulary;

int64_t bwi_vocabulary_find(const bwi_vocabulary *vocabulary, const bwi_token *token, uint64_t hash, size_t size);
int64_t bwi_vocabulary_find_text(const bwi_vocabulary *vocabulary, const bw_text *text);
/* Returns the number of the new entry; -1: no memory. */
int64_t bwi_vocabulary_add(bwi_vocabulary *vocabulary, const bwi_token *token, uint64_t hash, size_t size);
bool bwi_vocabulary_add_text(bwi_vocabulary *vocabulary, const bw_text *text);
bw_text bwi_vocabulary_text(const bwi_vocabulary *vocabulary, int64_t number);
size_t bwi_vocabulary_bytes(const bwi_vocabulary *vocabulary); /* that it takes */
void bwi_vocabulary_free(bwi_vocabulary *vocabulary);

/* ---- front.c ---- */

struct bwi_front {
    bw_context *ctx;
    bwi_front_settings set;
    bwi_vocabulary tokens; /* without the special ones */
    bool fitted, given;
    float *idf;
    int64_t idf_count;
    float *boundaries;
    int64_t boundary_count;
};

int64_t bwi_front_first_oov(const bwi_front *front);
int64_t bwi_front_first_token(const bwi_front *front);
bool bwi_text_is(const bw_text *text, const char *other);

enum { BWI_DIGITS = 24 }; /* of an integer as text */
/* An element as an integer, which bwi_front_check has found it to be, or as text: integers are written as by TensorFlow's
 * as_string. */
int64_t bwi_front_integer_at(const bwi_front_value *value, int64_t element);
bw_text bwi_front_text_at(const bwi_front_value *value, int64_t element, char digits[BWI_DIGITS]);
/* Fails, with a text in `error` (BWI_ITEM_ERROR bytes), if a layer that takes integers is given a number beyond them. */
bw_status bwi_front_check(const bwi_front *front, const bwi_front_value *input, char *error);

/* ---- summary.c ---- */

/* Fits boundaries as Keras's Discretization does, by a summary of `epsilon` that is merged from block to block. */
typedef struct bwi_summary {
    float *values, *weights;
    int64_t count;
} bwi_summary;
bw_status bwi_summary_add(bw_context *ctx, bwi_summary *summary, float *values, int64_t count, double epsilon);
bw_status bwi_summary_boundaries(bw_context *ctx, const bwi_summary *summary, int64_t bins, float **boundaries, int64_t *count);
void bwi_summary_free(bw_context *ctx, bwi_summary *summary);

#endif
