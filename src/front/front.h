/*
 * front: the layers that turn text and categories into numbers, with Keras's formulas: TextVectorization, StringLookup,
 * IntegerLookup, Hashing, HashedCrossing, Discretization and CategoryEncoding. Strings are no tensors, so these layers are no
 * operators: they run on the host, sample by sample, while samples are gathered. A front is one such layer with what was fitted: a
 * vocabulary, document frequencies, boundaries. A fitted front only reads itself, so several threads may use it at once.
 */
#ifndef BWI_FRONT_H
#define BWI_FRONT_H

#include "base/base.h"

typedef enum bwi_front_kind {
    BWI_FRONT_TEXT,
    BWI_FRONT_STRINGS,
    BWI_FRONT_INTEGERS,
    BWI_FRONT_HASHING,
    BWI_FRONT_CROSSING,
    BWI_FRONT_DISCRETIZATION,
    BWI_FRONT_ENCODING
} bwi_front_kind;

/* What comes out: indices, or vectors as long as the vocabulary. */
typedef enum bwi_front_mode { BWI_MODE_INT, BWI_MODE_ONE_HOT, BWI_MODE_MULTI_HOT, BWI_MODE_COUNT, BWI_MODE_TF_IDF } bwi_front_mode;

typedef enum bwi_split { BWI_SPLIT_NONE, BWI_SPLIT_WHITESPACE, BWI_SPLIT_CHARACTER } bwi_split;

enum { BWI_MOST_NGRAMS = BW_MAX_NDIM, BWI_WIDEST_NGRAM = 64, BWI_SPECIAL_BYTES = 128 };

typedef struct bwi_front_settings {
    bwi_front_kind kind;
    bwi_front_mode mode;
    bool lower, strip; /* what becomes of a text before it is split */
    bwi_split split;
    int ngram_count; /* 0: tokens as they are */
    int ngrams[BWI_MOST_NGRAMS];
    int64_t length;     /* of sequences of indices; 0: not fixed */
    int64_t max_tokens; /* 0: any number */
    bool pad;           /* vectors are as long as max_tokens */
    int64_t oov;        /* the number of indices for tokens that the vocabulary lacks */
    bool masked, named; /* there is a mask token; there is an oov token */
    char mask[BWI_SPECIAL_BYTES], oov_token[BWI_SPECIAL_BYTES];
    bool farmhash; /* integers outside of the vocabulary are hashed rather than divided */
    bool salted;
    uint64_t salt[2];
    int64_t bins;       /* of hashes, the tokens of an encoding, or the intervals that boundaries are fitted for; 0: none */
    double epsilon;     /* of the summary that boundaries are fitted with */
    int64_t vocabulary; /* the size of a vocabulary that follows, as a file announces it; 0: not known */
} bwi_front_settings;

typedef struct bwi_front bwi_front;

/* NULL and a message in the context if there is no memory. */
bwi_front *bwi_front_new(bw_context *ctx, const bwi_front_settings *settings);
void bwi_front_free(bwi_front *front); /* NULL is fine */
const bwi_front_settings *bwi_front_settings_of(const bwi_front *front);

bool bwi_front_takes_text(const bwi_front *front); /* its inputs may be text; all but two kinds */
bool bwi_front_is_fitted(const bwi_front *front);  /* it has all that it needs */
bool bwi_front_is_given(const bwi_front *front);   /* what it has came from the model's description, and is not fitted */
void bwi_front_set_given(bwi_front *front);
void bwi_front_clear(bwi_front *front); /* forgets what was fitted */
/* The length of its vectors, or the number of indices; 0: not known before it is fitted. */
int64_t bwi_front_depth(const bwi_front *front);
/* The number of values that it makes of a sample of `count`. 0 and a message if it cannot. */
int64_t bwi_front_count(bw_context *ctx, const char *name, const bwi_front *front, int64_t count);

/* ---- Values ---- */

/* One input of one sample: texts, int32 or float32. */
typedef struct bwi_front_value {
    bw_dtype dtype;
    int64_t count;
    const void *values;
} bwi_front_value;

/* Makes the values of one sample: int32 for indices, float32 for vectors, as many as bwi_front_count said. `error` receives a
 * message if that fails, on any thread. */
bw_status bwi_front_apply(const bwi_front *front, const bwi_front_value *inputs, int input_count, void *to, char *error);

/* ---- Fitting ---- */

typedef struct bwi_front_fitting bwi_front_fitting;

/* Begins to fit a front to samples, which are then added one by one in their order. The front changes at the end, if all went
 * well. */
bw_status bwi_front_fitting_open(bwi_front *front, bwi_front_fitting **fitting);
bw_status bwi_front_fitting_add(bwi_front_fitting *fitting, const bwi_front_value *input);
/* `name` is the layer's; what was fitted, and what was left out, is logged. */
bw_status bwi_front_fitting_end(bwi_front_fitting *fitting, const char *name);
void bwi_front_fitting_free(bwi_front_fitting *fitting); /* NULL is fine */

/* ---- What is fitted ---- */

/* Sets the tokens, with or without the special ones in front, as Keras's set_vocabulary. `idf` has as many weights as there are
 * tokens, or is NULL. What is wrong is told as `what`. */
bw_status bwi_front_set_tokens(bwi_front *front, const bw_text *tokens, int64_t count, const float *idf, const char *what);
/* All tokens with the special ones in front; the last ones of several oov tokens are alike. */
int64_t bwi_front_token_count(const bwi_front *front);
bw_text bwi_front_token(const bwi_front *front, int64_t number);
/* The weights of tf-idf, as many as vectors are long; NULL: none. */
const float *bwi_front_idf(const bwi_front *front, int64_t *count);
bw_status bwi_front_set_idf(bwi_front *front, const float *idf, int64_t count, const char *what);
const float *bwi_front_boundaries(const bwi_front *front, int64_t *count);
bw_status bwi_front_set_boundaries(bwi_front *front, const float *boundaries, int64_t count, const char *what);
#endif
