/*
 * Layers for text and categories: TextVectorization, StringLookup, IntegerLookup, Hashing, HashedCrossing, Discretization and
 * CategoryEncoding. Each is a front (src/front), which works on the host while samples are gathered; what it makes is an input of
 * the graph, by the layer's name. So it takes inputs of the model, or what another such layer makes of them, and nothing that is
 * computed.
 */
#include "layer/internal.h"

#include <string.h>

/* ---- Arguments ---- */

enum {
    TEXT_MAX_TOKENS,
    TEXT_STANDARDIZE,
    TEXT_SPLIT,
    TEXT_NGRAMS,
    TEXT_MODE,
    TEXT_LENGTH,
    TEXT_PAD,
    TEXT_SPARSE,
    TEXT_RAGGED,
    TEXT_ENCODING,
    TEXT_SIZE,
    TEXT_COUNT
};

#define FRONT_MODES "int one_hot multi_hot count tf_idf binary tf-idf"

static const bwi_argument text_arguments[TEXT_COUNT] = {
    [TEXT_MAX_TOKENS] = {"max_tokens", NULL, BWI_INT, "", 2, INT32_MAX, NULL},
    [TEXT_STANDARDIZE] = {"standardize", NULL, BWI_TEXT, "lower_and_strip_punctuation", 0, 0,
                          "lower_and_strip_punctuation lower strip_punctuation none"},
    [TEXT_SPLIT] = {"split", NULL, BWI_TEXT, "whitespace", 0, 0, "whitespace character none"},
    [TEXT_NGRAMS] = {"ngrams", NULL, BWI_INTS, "", 1, BWI_WIDEST_NGRAM, NULL},
    [TEXT_MODE] = {"output_mode", "mode", BWI_TEXT, "int", 0, 0, "int multi_hot count tf_idf binary tf-idf"},
    [TEXT_LENGTH] = {"output_sequence_length", "length", BWI_INT, "", 1, 1 << 24, NULL},
    [TEXT_PAD] = {"pad_to_max_tokens", NULL, BWI_BOOL, "false", 0, 0, NULL},
    [TEXT_SPARSE] = {"sparse", NULL, BWI_BOOL, "false", 0, 0, NULL},
    [TEXT_RAGGED] = {"ragged", NULL, BWI_BOOL, "false", 0, 0, NULL},
    [TEXT_ENCODING] = {"encoding", NULL, BWI_TEXT, "utf-8", 0, 0, "utf-8"},
    [TEXT_SIZE] = {"vocabulary_size", NULL, BWI_INT, "", 0, INT32_MAX, NULL},
};

enum {
    LOOKUP_MAX_TOKENS,
    LOOKUP_OOV,
    LOOKUP_MASK,
    LOOKUP_OOV_TOKEN,
    LOOKUP_INVERT,
    LOOKUP_MODE,
    LOOKUP_PAD,
    LOOKUP_SPARSE,
    LOOKUP_METHOD,
    LOOKUP_SALT,
    LOOKUP_SIZE,
    LOOKUP_ENCODING, /* of strings; the type of integers */
    LOOKUP_COUNT
};

/* clang-format off */
#define LOOKUP_ARGUMENTS                                                                     \
    [LOOKUP_MAX_TOKENS] = {"max_tokens", NULL, BWI_INT, "", 2, INT32_MAX, NULL},             \
    [LOOKUP_OOV] = {"num_oov_indices", NULL, BWI_INT, "1", 0, INT32_MAX / 2, NULL},          \
    [LOOKUP_MASK] = {"mask_token", NULL, BWI_TEXT, "none", 0, 0, NULL},                      \
    [LOOKUP_OOV_TOKEN] = {"oov_token", NULL, BWI_TEXT, "", 0, 0, NULL},                      \
    [LOOKUP_INVERT] = {"invert", NULL, BWI_BOOL, "false", 0, 0, NULL},                       \
    [LOOKUP_MODE] = {"output_mode", "mode", BWI_TEXT, "int", 0, 0, FRONT_MODES},             \
    [LOOKUP_PAD] = {"pad_to_max_tokens", NULL, BWI_BOOL, "false", 0, 0, NULL},               \
    [LOOKUP_SPARSE] = {"sparse", NULL, BWI_BOOL, "false", 0, 0, NULL},                       \
    [LOOKUP_METHOD] = {"oov_method", NULL, BWI_TEXT, "floormod", 0, 0, "floormod farmhash"}, \
    [LOOKUP_SALT] = {"salt", NULL, BWI_INTS, "", 0, 0, NULL},                                \
    [LOOKUP_SIZE] = {"vocabulary_size", NULL, BWI_INT, "", 0, INT32_MAX, NULL}
/* clang-format on */

static const bwi_argument string_arguments[LOOKUP_COUNT] = {
    LOOKUP_ARGUMENTS,
    [LOOKUP_ENCODING] = {"encoding", NULL, BWI_TEXT, "utf-8", 0, 0, "utf-8"},
};

static const bwi_argument integer_arguments[LOOKUP_COUNT] = {
    LOOKUP_ARGUMENTS,
    [LOOKUP_ENCODING] = {"vocabulary_dtype", NULL, BWI_TEXT, "int64", 0, 0, "int64"},
};

enum { HASHING_BINS, HASHING_MASK, HASHING_SALT, HASHING_MODE, HASHING_SPARSE, HASHING_COUNT };

static const bwi_argument hashing_arguments[HASHING_COUNT] = {
    [HASHING_BINS] = {"num_bins", NULL, BWI_INT, NULL, 1, INT32_MAX, NULL},
    [HASHING_MASK] = {"mask_value", NULL, BWI_TEXT, "none", 0, 0, NULL},
    [HASHING_SALT] = {"salt", NULL, BWI_INTS, "", 0, 0, NULL},
    [HASHING_MODE] = {"output_mode", "mode", BWI_TEXT, "int", 0, 0, "int one_hot multi_hot count"},
    [HASHING_SPARSE] = {"sparse", NULL, BWI_BOOL, "false", 0, 0, NULL},
};

enum { CROSSING_BINS, CROSSING_MODE, CROSSING_SPARSE, CROSSING_COUNT };

static const bwi_argument crossing_arguments[CROSSING_COUNT] = {
    [CROSSING_BINS] = {"num_bins", NULL, BWI_INT, NULL, 1, INT32_MAX, NULL},
    [CROSSING_MODE] = {"output_mode", "mode", BWI_TEXT, "int", 0, 0, "int one_hot"},
    [CROSSING_SPARSE] = {"sparse", NULL, BWI_BOOL, "false", 0, 0, NULL},
};

enum { BINS_COUNT_OF, BINS_EPSILON, BINS_MODE, BINS_SPARSE, BINS_COUNT };

static const bwi_argument discretization_arguments[BINS_COUNT] = {
    [BINS_COUNT_OF] = {"num_bins", NULL, BWI_INT, "", 1, 1 << 20, NULL},
    [BINS_EPSILON] = {"epsilon", NULL, BWI_FLOAT, "0.01", 1e-6, 1, NULL},
    [BINS_MODE] = {"output_mode", "mode", BWI_TEXT, "int", 0, 0, "int one_hot multi_hot count"},
    [BINS_SPARSE] = {"sparse", NULL, BWI_BOOL, "false", 0, 0, NULL},
};

enum { ENCODING_TOKENS, ENCODING_MODE, ENCODING_SPARSE, ENCODING_COUNT };

static const bwi_argument encoding_arguments[ENCODING_COUNT] = {
    [ENCODING_TOKENS] = {"num_tokens", NULL, BWI_INT, NULL, 1, INT32_MAX, NULL},
    [ENCODING_MODE] = {"output_mode", "mode", BWI_TEXT, "multi_hot", 0, 0, "one_hot multi_hot count binary"},
    [ENCODING_SPARSE] = {"sparse", NULL, BWI_BOOL, "false", 0, 0, NULL},
};

/* ---- Settings ---- */

static bwi_front_mode mode_of(const bwi_argument_value *value)
{
    static const struct {
        const char *name;
        bwi_front_mode mode;
    } modes[] = {{"int", BWI_MODE_INT},          {"one_hot", BWI_MODE_ONE_HOT}, {"multi_hot", BWI_MODE_MULTI_HOT},
                 {"binary", BWI_MODE_MULTI_HOT}, {"count", BWI_MODE_COUNT},     {"tf_idf", BWI_MODE_TF_IDF},
                 {"tf-idf", BWI_MODE_TF_IDF}};
    for (size_t i = 0; i < BWI_COUNT(modes); i++) {
        if (strcmp(value->text, modes[i].name) == 0) {
            return modes[i].mode;
        }
    }
    return BWI_MODE_INT;
}

static void set_salt(bwi_front_settings *set, const bwi_argument_value *value)
{
    set->salted = value->given;
    for (int i = 0; i < 2; i++) {
        set->salt[i] = (uint64_t)value->integers[value->count > 1 ? i : 0];
    }
}

static void copy_special(char to[BWI_SPECIAL_BYTES], const bwi_argument_value *value)
{
    snprintf(to, BWI_SPECIAL_BYTES, "%s", value->text);
}

/* One number n stands for the widths 1 to n; a list, even of one, for its own (`flag`). */
static void set_ngrams(bwi_front_settings *set, const bwi_layer *layer)
{
    const bwi_argument_value *value = &layer->values[TEXT_NGRAMS];
    if (!value->given) {
        return;
    }
    bool single = value->count == 1 && !value->flag;
    set->ngram_count = single ? (int)value->integer : value->count;
    set->ngram_count = set->ngram_count > BWI_MOST_NGRAMS ? BWI_MOST_NGRAMS : set->ngram_count;
    for (int i = 0; i < set->ngram_count; i++) {
        set->ngrams[i] = single ? i + 1 : (int)value->integers[i];
    }
}

static void set_text(bwi_front_settings *set, const bwi_layer *layer)
{
    const bwi_argument_value *v = layer->values;
    const char *how = v[TEXT_STANDARDIZE].text, *split = v[TEXT_SPLIT].text;
    set->mode = mode_of(&v[TEXT_MODE]);
    set->lower = strncmp(how, "lower", 5) == 0;
    set->strip = strstr(how, "strip");
    set->split = strcmp(split, "none") == 0        ? BWI_SPLIT_NONE
                 : strcmp(split, "character") == 0 ? BWI_SPLIT_CHARACTER
                                                   : BWI_SPLIT_WHITESPACE;
    set_ngrams(set, layer);
    set->length = v[TEXT_LENGTH].given ? v[TEXT_LENGTH].integer : 0;
    set->max_tokens = v[TEXT_MAX_TOKENS].given ? v[TEXT_MAX_TOKENS].integer : 0;
    set->pad = v[TEXT_PAD].flag;
    set->vocabulary = v[TEXT_SIZE].given ? v[TEXT_SIZE].integer : 0;
    set->oov = 1;
    set->masked = set->named = true;
    strcpy(set->oov_token, "[UNK]");
}

static void set_lookup(bwi_front_settings *set, const bwi_layer *layer)
{
    const bwi_argument_value *v = layer->values;
    set->mode = mode_of(&v[LOOKUP_MODE]);
    set->max_tokens = v[LOOKUP_MAX_TOKENS].given ? v[LOOKUP_MAX_TOKENS].integer : 0;
    set->oov = v[LOOKUP_OOV].integer;
    set->masked = v[LOOKUP_MASK].given;
    copy_special(set->mask, &v[LOOKUP_MASK]);
    set->named = true;
    copy_special(set->oov_token, &v[LOOKUP_OOV_TOKEN]);
    if (!v[LOOKUP_OOV_TOKEN].given) {
        snprintf(set->oov_token, sizeof set->oov_token, "%s", set->kind == BWI_FRONT_INTEGERS ? "-1" : "[UNK]");
    }
    set->pad = v[LOOKUP_PAD].flag;
    set->farmhash = strcmp(v[LOOKUP_METHOD].text, "farmhash") == 0;
    set->vocabulary = v[LOOKUP_SIZE].given ? v[LOOKUP_SIZE].integer : 0;
    set_salt(set, &v[LOOKUP_SALT]);
}

/* Each kind has its arguments in other places. */
static bwi_front_settings settings_of(const bwi_layer *layer)
{
    const bwi_argument_value *v = layer->values;
    bwi_front_settings set = {.kind = (bwi_front_kind)(bwi_layer_front_kind(layer->row) - 1), .epsilon = 0.01};
    if (set.kind == BWI_FRONT_TEXT) {
        set_text(&set, layer);
    } else if (set.kind == BWI_FRONT_STRINGS || set.kind == BWI_FRONT_INTEGERS) {
        set_lookup(&set, layer);
    } else if (set.kind == BWI_FRONT_HASHING) {
        set.mode = mode_of(&v[HASHING_MODE]);
        set.bins = v[HASHING_BINS].integer;
        set.masked = v[HASHING_MASK].given;
        copy_special(set.mask, &v[HASHING_MASK]);
        set_salt(&set, &v[HASHING_SALT]);
    } else if (set.kind == BWI_FRONT_CROSSING) {
        set.mode = mode_of(&v[CROSSING_MODE]);
        set.bins = v[CROSSING_BINS].integer;
    } else if (set.kind == BWI_FRONT_DISCRETIZATION) {
        set.mode = mode_of(&v[BINS_MODE]);
        set.bins = v[BINS_COUNT_OF].given ? v[BINS_COUNT_OF].integer : 0;
        set.epsilon = v[BINS_EPSILON].number;
    } else {
        set.mode = mode_of(&v[ENCODING_MODE]);
        set.bins = v[ENCODING_TOKENS].integer;
    }
    return set;
}

/* What Keras can do and this cannot, or what contradicts itself, is refused by its name. */
static bw_status check_settings(bw_context *ctx, const bwi_layer *layer, const bwi_front_settings *set)
{
    const bwi_layer_row *row = layer->row;
    for (int a = 0; a < row->argument_count; a++) {
        static const char *const refused[] = {"sparse", "ragged", "invert"};
        for (size_t i = 0; i < BWI_COUNT(refused); i++) {
            if (strcmp(row->arguments[a].name, refused[i]) == 0 && layer->values[a].flag) {
                return bwi_fail(ctx, BW_UNIMPLEMENTED, "layer %s: %s is not supported", row->base_name, refused[i]);
            }
        }
    }
    if (set->kind == BWI_FRONT_TEXT && set->length > 0 && set->mode != BWI_MODE_INT) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "layer %s: output_sequence_length is for output_mode int only", row->base_name);
    }
    if (set->pad && set->max_tokens == 0) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "layer %s: pad_to_max_tokens needs max_tokens", row->base_name);
    }
    if (set->salted && set->kind == BWI_FRONT_INTEGERS && !set->farmhash) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "layer %s: salt is for oov_method farmhash only", row->base_name);
    }
    if (set->max_tokens > 0 && set->max_tokens <= set->oov + (set->masked && set->mode == BWI_MODE_INT)) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "layer %s: max_tokens leaves no place for a token", row->base_name);
    }
    return BW_OK;
}

/* ---- Lists: vocabulary, idf_weights, bin_boundaries ---- */

typedef struct lists {
    bw_text *tokens;
    int64_t token_count;
    float *idf, *boundaries;
    int64_t idf_count, boundary_count;
} lists;

static bool labelled(const bwi_term *term, const char *name)
{
    return term->label && strlen(name) == (size_t)term->label_length && memcmp(term->label, name, (size_t)term->label_length) == 0;
}

bool bwi_front_is_list(const bwi_layer_row *row, const bwi_term *item)
{
    bool vocabulary = bwi_layer_front_kind(row) && bwi_layer_front_kind(row) <= BWI_FRONT_INTEGERS + 1;
    return (vocabulary && (labelled(item, "vocabulary") || labelled(item, "idf_weights"))) ||
           (bwi_layer_front_kind(row) == BWI_FRONT_DISCRETIZATION + 1 && labelled(item, "bin_boundaries"));
}

static bw_status read_numbers(bw_context *ctx, const bwi_term *list, float **numbers, int64_t *count)
{
    *count = list->count;
    *numbers = bwi_allocate(ctx, (size_t)list->count + 1, sizeof **numbers);
    if (!*numbers) {
        return BW_RESOURCE_EXHAUSTED;
    }
    for (int i = 0; i < list->count; i++) {
        const bwi_term *item = &list->items[i];
        double value;
        if (!item->text || !bwi_parse_double(item->text, item->text + item->length, &value)) {
            return bwi_fail_text(ctx, BW_INVALID_ARGUMENT, "model", item->argument, item->column, "expected a number");
        }
        (*numbers)[i] = (float)value;
    }
    return BW_OK;
}

static bw_status read_tokens(bw_context *ctx, const bwi_term *list, lists *l)
{
    l->token_count = list->count;
    l->tokens = bwi_allocate(ctx, (size_t)list->count + 1, sizeof *l->tokens);
    for (int i = 0; l->tokens && i < list->count; i++) {
        l->tokens[i] = (bw_text){.bytes = list->items[i].text ? list->items[i].text : "", .size = list->items[i].length};
    }
    return l->tokens ? BW_OK : BW_RESOURCE_EXHAUSTED;
}

static bw_status read_lists(bw_context *ctx, const bwi_layer_row *row, const bwi_term *term, lists *l)
{
    bw_status status = BW_OK;
    for (int i = 0; i < term->count && status == BW_OK; i++) {
        const bwi_term *item = &term->items[i];
        if (!bwi_front_is_list(row, item)) {
            continue;
        }
        if (item->length > 0) {
            status = bwi_fail_text(ctx, BW_UNIMPLEMENTED, "model", item->argument, item->column,
                                   "expected a list, as in %.*s=(a,b); files of a vocabulary are not opened", item->label_length,
                                   item->label);
        } else if (labelled(item, "vocabulary")) {
            status = read_tokens(ctx, item, l);
        } else if (labelled(item, "idf_weights")) {
            status = read_numbers(ctx, item, &l->idf, &l->idf_count);
        } else {
            status = read_numbers(ctx, item, &l->boundaries, &l->boundary_count);
        }
    }
    return status;
}

/* A layer that was given its vocabulary or boundaries is never fitted. */
static bw_status give_lists(bw_context *ctx, bwi_front *front, const bwi_layer *layer, const lists *l)
{
    bw_status status = BW_OK;
    char what[96];
    snprintf(what, sizeof what, "layer %s", layer->row->base_name);
    if (l->tokens && (l->idf_count > 0) != (bwi_front_settings_of(front)->mode == BWI_MODE_TF_IDF)) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: a vocabulary has idf_weights if output_mode is tf_idf, and only then", what);
    }
    if (l->tokens && l->idf && l->idf_count != l->token_count) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: %lld tokens have %lld idf_weights", what, (long long)l->token_count,
                        (long long)l->idf_count);
    }
    if (l->tokens) {
        status = bwi_front_set_tokens(front, l->tokens, l->token_count, l->idf, what);
    }
    if (status == BW_OK && l->boundaries) {
        status = bwi_front_set_boundaries(front, l->boundaries, l->boundary_count, what);
    }
    if (status == BW_OK && (l->tokens || l->boundaries)) {
        bwi_front_set_given(front);
    }
    return status;
}

bw_status bwi_layer_open_front(bw_context *ctx, bwi_layer *layer, const bwi_term *term)
{
    lists l = {.tokens = NULL};
    if (!bwi_layer_front_kind(layer->row)) {
        return BW_OK;
    }
    for (int i = 0; i < term->count; i++) {
        bool ngrams = bwi_layer_front_kind(layer->row) == BWI_FRONT_TEXT + 1 && labelled(&term->items[i], "ngrams");
        if (ngrams) {
            layer->values[TEXT_NGRAMS].flag = term->items[i].length == 0;
        }
    }
    bwi_front_settings set = settings_of(layer);
    bw_status status = check_settings(ctx, layer, &set);
    if (status == BW_OK) {
        status = read_lists(ctx, layer->row, term, &l);
    }
    layer->front = status == BW_OK ? bwi_front_new(ctx, &set) : NULL;
    if (status == BW_OK) {
        status = layer->front ? give_lists(ctx, layer->front, layer, &l) : BW_RESOURCE_EXHAUSTED;
    }
    bwi_release(ctx, l.tokens);
    bwi_release(ctx, l.idf);
    bwi_release(ctx, l.boundaries);
    return status;
}

/* ---- Building ---- */

/* The shape of what a front makes of inputs of this shape. False, with a message, if it cannot. */
bool bwi_front_shape(bw_context *ctx, const bwi_layer *layer, const bwi_shape *in, bwi_shape *out)
{
    const bwi_front_settings *set = bwi_front_settings_of(layer->front);
    int64_t count = bwi_shape_count(in), values = bwi_front_count(ctx, layer->name, layer->front, count);
    bool last = in->ndim == 0 || in->extent[in->ndim - 1] == 1;
    if (values == 0) {
        return false;
    }
    *out = *in;
    if (set->mode == BWI_MODE_INT && set->kind != BWI_FRONT_TEXT) {
        return true;
    }
    if (set->mode == BWI_MODE_ONE_HOT && !last) {
        out->extent[out->ndim++] = bwi_front_depth(layer->front);
        return true;
    }
    out->ndim = 1;
    out->extent[0] = values;
    return true;
}

/* What Keras computes of computed values, this does not: only the model's inputs are known to the host. */
static bw_node *build(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    bwi_input_attributes a = {.dtype = bwi_front_settings_of(layer->front)->mode == BWI_MODE_INT ? BW_I32 : BW_F32};
    for (int k = 0; k < input_count; k++) {
        if (!(inputs[k]->op->flags & BWI_OP_INPUT)) {
            return bwi_fail_build(graph->ctx, BW_UNIMPLEMENTED,
                                  "layer %s: it takes inputs of the model only, not what layers compute", layer->name);
        }
    }
    if (graph->reusing) {
        return bwi_fail_build(graph->ctx, BW_UNIMPLEMENTED, "layer %s: a layer for text or categories is used once only",
                              layer->name);
    }
    if (!bwi_front_shape(graph->ctx, layer, &inputs[0]->shape, &a.shape)) {
        return bwi_pass_on(graph->ctx);
    }
    snprintf(a.name, sizeof a.name, "%s", layer->name);
    return bwi_graph_add(graph, &bwi_op_input, layer->name, &a, sizeof a, NULL, 0, NULL, 0);
}

#define FRONT_ROW(kind, more) .build = build, .flags = ((kind) + 1) * BWI_LAYER_FRONT | (more)

const bwi_layer_row bwi_layer_text_vectorization = {.class_name = "TextVectorization",
                                                    .base_name = "text_vectorization",
                                                    .names = "text_vectorization",
                                                    .arguments = text_arguments,
                                                    .argument_count = TEXT_COUNT,
                                                    FRONT_ROW(BWI_FRONT_TEXT, 0)};
const bwi_layer_row bwi_layer_string_lookup = {.class_name = "StringLookup",
                                               .base_name = "string_lookup",
                                               .names = "string_lookup",
                                               .arguments = string_arguments,
                                               .argument_count = LOOKUP_COUNT,
                                               FRONT_ROW(BWI_FRONT_STRINGS, 0)};
const bwi_layer_row bwi_layer_integer_lookup = {.class_name = "IntegerLookup",
                                                .base_name = "integer_lookup",
                                                .names = "integer_lookup",
                                                .arguments = integer_arguments,
                                                .argument_count = LOOKUP_COUNT,
                                                FRONT_ROW(BWI_FRONT_INTEGERS, 0)};
const bwi_layer_row bwi_layer_hashing = {.class_name = "Hashing",
                                         .base_name = "hashing",
                                         .names = "hashing",
                                         .arguments = hashing_arguments,
                                         .argument_count = HASHING_COUNT,
                                         FRONT_ROW(BWI_FRONT_HASHING, 0)};
const bwi_layer_row bwi_layer_hashed_crossing = {.class_name = "HashedCrossing",
                                                 .base_name = "hashed_crossing",
                                                 .names = "hashed_crossing",
                                                 .arguments = crossing_arguments,
                                                 .argument_count = CROSSING_COUNT,
                                                 FRONT_ROW(BWI_FRONT_CROSSING, BWI_LAYER_MERGES)};
const bwi_layer_row bwi_layer_discretization = {.class_name = "Discretization",
                                                .base_name = "discretization",
                                                .names = "discretization",
                                                .arguments = discretization_arguments,
                                                .argument_count = BINS_COUNT,
                                                FRONT_ROW(BWI_FRONT_DISCRETIZATION, 0)};
const bwi_layer_row bwi_layer_category_encoding = {.class_name = "CategoryEncoding",
                                                   .base_name = "category_encoding",
                                                   .names = "category_encoding",
                                                   .arguments = encoding_arguments,
                                                   .argument_count = ENCODING_COUNT,
                                                   FRONT_ROW(BWI_FRONT_ENCODING, 0)};
