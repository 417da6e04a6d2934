/*
 * Translates Keras's objects into texts of expressions, and back: numbers, words, lists, and initializers, regularizers and
 * schedules, which are objects with a class and a configuration. A word from a file is accepted only if it consists of letters,
 * digits and a few signs, so that no text can smuggle in arguments.
 */
#include "file/internal.h"

#include <math.h>
#include <string.h>

typedef struct object_row {
    const char *class_name, *name;
    const char *module;
    const char *arguments; /* in the order of their positions in texts */
} object_row;

static const char initializers[] = "keras.initializers", regularizers[] = "keras.regularizers", constraints[] = "keras.constraints";

/* Schedules are not listed here, because train has a table of them. */
static const object_row objects[] = {
    {"Zeros", "zeros", initializers, ""},
    {"Ones", "ones", initializers, ""},
    {"Constant", "constant", initializers, "value"},
    {"RandomUniform", "random_uniform", initializers, "minval maxval seed"},
    {"RandomNormal", "random_normal", initializers, "mean stddev seed"},
    {"TruncatedNormal", "truncated_normal", initializers, "mean stddev seed"},
    {"VarianceScaling", "variance_scaling", initializers, "scale mode distribution seed"},
    {"GlorotUniform", "glorot_uniform", initializers, "seed"},
    {"GlorotNormal", "glorot_normal", initializers, "seed"},
    {"HeUniform", "he_uniform", initializers, "seed"},
    {"HeNormal", "he_normal", initializers, "seed"},
    {"LecunUniform", "lecun_uniform", initializers, "seed"},
    {"LecunNormal", "lecun_normal", initializers, "seed"},
    {"Orthogonal", "orthogonal", initializers, "gain seed"},
    {"OrthogonalInitializer", "orthogonal", initializers, "gain seed"},
    {"Identity", "identity", initializers, "gain"},
    {"IdentityInitializer", "identity", initializers, "gain"},
    {"RandomUniform", "uniform", initializers, "minval maxval seed"},
    {"RandomNormal", "normal", initializers, "mean stddev seed"},
    {"L1", "l1", regularizers, "l1"},
    {"L2", "l2", regularizers, "l2"},
    {"L1L2", "l1_l2", regularizers, "l1 l2"},
    {"OrthogonalRegularizer", "orthogonal", regularizers, "factor mode"},
    {"MaxNorm", "max_norm", constraints, "max_value axis"},
    {"NonNeg", "non_neg", constraints, ""},
    {"UnitNorm", "unit_norm", constraints, "axis"},
    {"MinMaxNorm", "min_max_norm", constraints, "min_value max_value rate axis"},
};

/* ---- Reading ---- */

/* Describes for a message what was found, short enough for a line: functions and policies of types by their own names. */
static const char *describe(const bwi_json *value, char buffer[BWI_QUOTE_SIZE])
{
    double number;
    const char *text = bwi_json_text(value), *class_name = bwi_json_text(bwi_json_get(value, "class_name"));
    const bwi_json *config = bwi_json_get(value, "config");
    if (class_name && strcmp(class_name, "function") == 0 && bwi_json_text(config)) {
        class_name = bwi_json_text(config);
    } else if (class_name && strcmp(class_name, "DTypePolicy") == 0 && bwi_json_text(bwi_json_get(config, "name"))) {
        class_name = bwi_json_text(bwi_json_get(config, "name"));
    }
    switch (bwi_json_kind_of(value)) {
    case BWI_JSON_TEXT:
        return bwi_quote(buffer, text, strlen(text));
    case BWI_JSON_WHOLE:
    case BWI_JSON_REAL:
        bwi_json_number(value, &number);
        return bwi_shortest(buffer, number);
    case BWI_JSON_BOOL:
        return bwi_json_true(value) ? "true" : "false";
    case BWI_JSON_LIST:
        return "[...]";
    case BWI_JSON_OBJECT:
        return class_name ? bwi_quote(buffer, class_name, strlen(class_name)) : "{...}";
    case BWI_JSON_NULL:
    case BWI_JSON_MISSING:
        break;
    }
    return "null";
}

bw_status bwi_keras_refuse(const bwi_keras *k, const char *key, const bwi_json *value)
{
    char buffer[BWI_QUOTE_SIZE], name[BWI_QUOTE_SIZE];
    bwi_quote(name, key, strlen(key));
    name[strlen(name) - 1] = 0;
    return bwi_fail_file(k->ctx, BW_UNIMPLEMENTED, k->path, "%s: %s=%s is not supported", k->what, name + 1,
                         describe(value, buffer));
}

static bool is_word(const char *text)
{
    static const char allowed[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-";
    return text[0] && strspn(text, allowed) == strlen(text);
}

bool bwi_keras_is_float32(const bwi_json *dtype)
{
    const bwi_json *name = bwi_json_get(bwi_json_get(dtype, "config"), "name");
    const char *text = bwi_json_text(dtype) ? bwi_json_text(dtype) : bwi_json_text(name);
    return bwi_json_kind_of(dtype) <= BWI_JSON_NULL || (text && strcmp(text, "float32") == 0);
}

/* Keras writes its own modules. Older files have neither modules nor registered names; a user's class that is not registered has no
 * module, but its name as a registered one, and one that is registered has the user's package in front of it. */
bool bwi_keras_is_own(const bwi_json *object)
{
    static const char *const modules[] = {"keras", "keras.", "builtins", "tensorflow.keras", "tf_keras"};
    const char *module = bwi_json_text(bwi_json_get(object, "module"));
    const char *registered = bwi_json_text(bwi_json_get(object, "registered_name"));
    const char *class_name = bwi_json_text(bwi_json_get(object, "class_name"));
    bool own = !module && !registered;
    for (size_t i = 0; module && i < BWI_COUNT(modules); i++) {
        size_t length = strlen(modules[i]);
        own = own || strcmp(module, modules[i]) == 0 || (modules[i][length - 1] == '.' && strncmp(module, modules[i], length) == 0);
    }
    return own && !(registered && strchr(registered, '>')) && !(class_name && strchr(class_name, '>'));
}

static const char *name_of_class(const char *class_name)
{
    for (size_t i = 0; i < BWI_COUNT(objects); i++) {
        if (strcmp(objects[i].class_name, class_name) == 0) {
            return objects[i].name;
        }
    }
    for (const bwi_schedule_row *row = bwi_schedule_rows; row->name; row++) {
        if (strcmp(row->class_name, class_name) == 0) {
            return row->name;
        }
    }
    return NULL;
}

/* Writes an object as "name(key=value,...)", and a function as its name. */
static bw_status object_text(const bwi_keras *k, const char *key, const bwi_json *object, bwi_text *text)
{
    const char *class_name = bwi_json_text(bwi_json_get(object, "class_name"));
    const bwi_json *config = bwi_json_get(object, "config");
    if (!class_name || !bwi_keras_is_own(object)) {
        return bwi_keras_refuse(k, key, object);
    }
    if (strcmp(class_name, "function") == 0 && bwi_json_text(config)) {
        return bwi_keras_value_text(k, key, config, text);
    }
    const char *name = name_of_class(class_name), *member = NULL, *separator = "(";
    if (!name) {
        return bwi_keras_refuse(k, key, object);
    }
    bwi_text_add(text, "%s", name);
    for (const bwi_json *value; (value = bwi_json_next(config, &member));) {
        if (bwi_json_kind_of(value) == BWI_JSON_NULL || strcmp(member, "name") == 0 ||
            (strcmp(member, "dtype") == 0 && bwi_keras_is_float32(value))) {
            continue;
        }
        if (!is_word(member)) {
            return bwi_keras_refuse(k, member, value);
        }
        bwi_text_add(text, "%s%s=", separator, member);
        bw_status status = bwi_keras_value_text(k, member, value, text);
        if (status != BW_OK) {
            return status;
        }
        separator = ",";
    }
    bwi_text_add(text, "%s", separator[0] == ',' ? ")" : "");
    return BW_OK;
}

static bw_status list_text(const bwi_keras *k, const char *key, const bwi_json *list, bwi_text *text)
{
    for (int i = 0; i < bwi_json_count(list); i++) {
        const bwi_json *value = bwi_json_at(list, i);
        bwi_text_add(text, "%s", i ? "," : "(");
        if (bwi_json_kind_of(value) == BWI_JSON_OBJECT) {
            return bwi_keras_refuse(k, key, list);
        }
        if (bwi_json_kind_of(value) == BWI_JSON_NULL) {
            bwi_text_add(text, "none");
            continue;
        }
        bw_status status = bwi_keras_value_text(k, key, value, text);
        if (status != BW_OK) {
            return status;
        }
    }
    bwi_text_add(text, "%s", bwi_json_count(list) ? ")" : "()");
    return BW_OK;
}

bw_status bwi_keras_value_text(const bwi_keras *k, const char *key, const bwi_json *value, bwi_text *text)
{
    char buffer[BWI_SHORTEST_SIZE];
    int64_t whole;
    double number;
    switch (bwi_json_kind_of(value)) {
    case BWI_JSON_BOOL:
        bwi_text_add(text, bwi_json_true(value) ? "true" : "false");
        return BW_OK;
    case BWI_JSON_WHOLE:
        bwi_json_whole(value, &whole);
        bwi_text_add(text, "%lld", (long long)whole);
        return BW_OK;
    case BWI_JSON_REAL:
        bwi_json_number(value, &number);
        bwi_text_add(text, "%s", bwi_shortest(buffer, number));
        return BW_OK;
    case BWI_JSON_TEXT:
        if (!is_word(bwi_json_text(value))) {
            return bwi_keras_refuse(k, key, value);
        }
        bwi_text_add(text, "%s", bwi_json_text(value));
        return BW_OK;
    case BWI_JSON_LIST:
        return list_text(k, key, value, text);
    case BWI_JSON_OBJECT:
        return object_text(k, key, value, text);
    case BWI_JSON_NULL:
    case BWI_JSON_MISSING:
        break;
    }
    return bwi_keras_refuse(k, key, value);
}

/* An equation of Einstein's notation is quoted in expressions, since it has commas. */
static bool is_equation(const char *text)
{
    return text && strspn(text, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ.,->") == strlen(text);
}

/* Muon's list of layers, which texts have as words between commas. */
static const char words_argument[] = "exclude_layers";

static bw_status words_text(const bwi_keras *k, const char *key, const bwi_json *list, bwi_text *text)
{
    bwi_text_add(text, "\"");
    for (int i = 0; i < bwi_json_count(list); i++) {
        const char *word = bwi_json_text(bwi_json_at(list, i));
        if (!word || !is_word(word)) {
            return bwi_keras_refuse(k, key, list);
        }
        bwi_text_add(text, "%s%s", i ? "," : "", word);
    }
    bwi_text_add(text, "\"");
    return BW_OK;
}

/* An integer may be written as 2.0, and a single axis as a list. Tokens may hold anything, so they are quoted. */
static bw_status argument_text(const bwi_keras *k, const bwi_argument *argument, const bwi_json *value, bwi_text *text)
{
    double number = 0;
    if (argument->kind == BWI_INT && bwi_json_kind_of(value) == BWI_JSON_LIST && bwi_json_count(value) == 1) {
        value = bwi_json_at(value, 0);
    }
    bwi_text_add(text, "%s=", argument->name);
    bool token = strncmp(argument->name, "mask_", 5) == 0 || strcmp(argument->name, "oov_token") == 0;
    if (token && argument->kind == BWI_TEXT && bwi_json_text(value) && !strpbrk(bwi_json_text(value), "\"\n\r")) {
        bwi_text_add(text, "\"%s\"", bwi_json_text(value));
        return BW_OK;
    }
    if (strcmp(argument->name, words_argument) == 0 && bwi_json_kind_of(value) == BWI_JSON_LIST) {
        return words_text(k, argument->name, value, text);
    }
    if (strcmp(argument->name, "equation") == 0 && is_equation(bwi_json_text(value))) {
        bwi_text_add(text, "\"%s\"", bwi_json_text(value));
        return BW_OK;
    }
    if (strstr(argument->name, "activation") && bwi_json_kind_of(value) == BWI_JSON_OBJECT && bwi_keras_is_own(value) &&
        bwi_keras_layer_row(bwi_json_text(bwi_json_get(value, "class_name")))) {
        return bwi_keras_layer_text(k, value, false, text);
    }
    if ((argument->kind == BWI_INT || argument->kind == BWI_INTS) && bwi_json_kind_of(value) == BWI_JSON_REAL &&
        bwi_json_number(value, &number) && floor(number) == number && fabs(number) < 1e15) {
        bwi_text_add(text, "%lld", (long long)number);
        return BW_OK;
    }
    return bwi_keras_value_text(k, argument->name, value, text);
}

static const bwi_argument *find_argument(const bwi_argument *arguments, int count, const char *key)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(arguments[i].name, key) == 0 || (arguments[i].also && strcmp(arguments[i].also, key) == 0)) {
            return &arguments[i];
        }
    }
    return NULL;
}

/* Whether null is the argument's default. null means "none", which differs from "not given" if the default is something else. */
static bool null_is_standard(const bwi_argument *argument)
{
    const char *standard = argument->standard;
    return standard && (!*standard || strcmp(standard, "none") == 0 || strcmp(standard, "linear") == 0 ||
                        strcmp(argument->name, "thresholds") == 0);
}

/* Keras's config becomes the text of an expression, so that one parser with one set of checks reads both. */
bw_status bwi_keras_call_text(const bwi_keras *k, const char *name, const bwi_json *config, const bwi_argument *arguments,
                              int count, bwi_keras_neutral neutral, bwi_text *text)
{
    const char *key = NULL, *separator = "";
    bwi_text_add(text, "%s(", name);
    for (const bwi_json *value; (value = bwi_json_next(config, &key));) {
        const bwi_argument *argument = find_argument(arguments, count, key);
        static const bwi_argument penalty = {"", NULL, BWI_CALL, "none", 0, 0, NULL};
        bwi_argument own = penalty;
        if (!argument && (bwi_constraint_is_argument(arguments, count, key) || strcmp(key, "activity_regularizer") == 0)) {
            own.name = key;
            argument = &own;
        }
        bool null = bwi_json_kind_of(value) == BWI_JSON_NULL;
        if (argument ? null && null_is_standard(argument) : neutral(key, value)) {
            continue;
        }
        bool none = null && argument && argument->choices && strstr(argument->choices, " none");
        if (!argument || (null && !none)) {
            return bwi_keras_refuse(k, key, value);
        }
        bwi_text_add(text, "%s", separator);
        if (none) {
            bwi_text_add(text, "%s=none", argument->name);
        }
        bw_status status = none ? BW_OK : argument_text(k, argument, value, text);
        if (status != BW_OK) {
            return status;
        }
        separator = ",";
    }
    bwi_text_add(text, ")");
    return text->failed ? BW_RESOURCE_EXHAUSTED : BW_OK;
}

/* ---- Writing ---- */

static void put_text(bwi_json_writer *w, const char *key, const char *text, int length)
{
    char word[BWI_TEXT_BYTES];
    int64_t whole;
    double number;
    snprintf(word, sizeof word, "%.*s", length, text);
    if (bwi_parse_int(text, text + length, &whole)) {
        bwi_json_put_whole(w, key, whole);
    } else if (bwi_parse_double(text, text + length, &number)) {
        bwi_json_put_real(w, key, number);
    } else if (strcmp(word, "true") == 0 || strcmp(word, "false") == 0) {
        bwi_json_put_bool(w, key, word[0] == 't');
    } else {
        bwi_json_put_text(w, key, strcmp(word, "none") == 0 ? NULL : word);
    }
}

/* An initializer and a regularizer may have one name; `key` tells which it is. */
static const object_row *find_object(const bwi_term *term, const char *key)
{
    for (size_t i = 0; i < BWI_COUNT(objects); i++) {
        bool regularizer = objects[i].module == regularizers, wanted = strstr(key, "_regularizer");
        if (bwi_term_resembles(term, objects[i].name) && regularizer == wanted) {
            return &objects[i];
        }
    }
    return NULL;
}

/* Copies the k-th of the words. */
static bool word_at(const char *words, int k, char word[32])
{
    for (; k > 0 && *words; k--) {
        words += strcspn(words, " ");
        words += strspn(words, " ");
    }
    snprintf(word, 32, "%.*s", (int)strcspn(words, " "), words);
    return word[0] != 0;
}

/* A number, a word, or a list of them: the axes of a constraint. */
static void put_item(bwi_json_writer *w, const char *name, const bwi_term *item)
{
    if (item->length > 0) {
        put_text(w, name, item->text, item->length);
        return;
    }
    bwi_json_begin(w, name, '[');
    for (int k = 0; k < item->count; k++) {
        put_text(w, NULL, item->items[k].text, item->items[k].length);
    }
    bwi_json_end(w);
}

/* A word such as "zeros" stays a string, which Keras accepts; a call becomes an object with its class and config. */
bw_status bwi_keras_put_object(bw_context *ctx, bwi_json_writer *w, const char *key, const char *text)
{
    bwi_expression e;
    bw_status status = bwi_term_parse(ctx, &e, key, text);
    if (status != BW_OK) {
        return status;
    }
    const bwi_term *term = &e.terms[0];
    const object_row *row = find_object(term, key);
    if (!row) {
        put_text(w, key, term->text, term->length);
    } else {
        bwi_json_begin(w, key, '{');
        bwi_json_put_text(w, "module", row->module);
        bwi_json_put_text(w, "class_name", row->class_name);
        bwi_json_begin(w, "config", '{');
        for (int i = 0; i < term->count; i++) {
            const bwi_term *item = &term->items[i];
            char name[32];
            snprintf(name, sizeof name, "%.*s", item->label ? item->label_length : 0, item->label ? item->label : "");
            if (name[0] || word_at(row->arguments, i, name)) {
                put_item(w, name, item);
            }
        }
        bwi_json_end(w);
        bwi_json_put_null(w, "registered_name");
        bwi_json_end(w);
    }
    bwi_expression_free(&e);
    return BW_OK;
}

/* Whether Keras requires a list even for a single number. */
static bool is_list(const char *class_name, const char *argument)
{
    return strcmp(argument, "target_shape") == 0 || strcmp(argument, "dims") == 0 || strcmp(argument, "shared_axes") == 0 ||
           strcmp(argument, "noise_shape") == 0 || (strcmp(argument, "axis") == 0 && strcmp(class_name, "LayerNormalization") == 0);
}

/* Amounts of both ends are written in pairs, and an open extent of a noise_shape as null. */
static void put_wholes(bwi_json_writer *w, const char *class_name, const char *key, const bwi_argument_value *v)
{
    bool pairs = (v->count == 4 || v->count == 6) && (strcmp(key, "padding") == 0 || strcmp(key, "cropping") == 0);
    bool none = strcmp(key, "noise_shape") == 0 || strcmp(class_name, "EinsumDense") == 0;
    if (v->count == 1 && !v->flag && !is_list(class_name, key)) {
        bwi_json_put_whole(w, key, v->integers[0]);
        return;
    }
    bwi_json_begin(w, key, '[');
    for (int i = 0; i < v->count; i++) {
        if (pairs && i % 2 == 0) {
            bwi_json_begin(w, NULL, '[');
        }
        if (none && v->integers[i] == -1) {
            bwi_json_put_null(w, NULL);
        } else {
            bwi_json_put_whole(w, NULL, v->integers[i]);
        }
        if (pairs && i % 2) {
            bwi_json_end(w);
        }
    }
    bwi_json_end(w);
}

static void put_reals(bwi_json_writer *w, const char *key, const bwi_argument_value *v)
{
    if (v->count == 1) {
        bwi_json_put_real(w, key, v->numbers[0]);
        return;
    }
    bwi_json_begin(w, key, '[');
    for (int i = 0; i < v->count; i++) {
        bwi_json_put_real(w, NULL, v->numbers[i]);
    }
    bwi_json_end(w);
}

/* Words between commas become a list. */
static void put_words(bwi_json_writer *w, const char *key, const char *text)
{
    bwi_json_begin(w, key, '[');
    for (const char *at = text; *at;) {
        char word[BWI_TEXT_BYTES];
        size_t length = strcspn(at, ",");
        snprintf(word, sizeof word, "%.*s", (int)length, at);
        bwi_json_put_text(w, NULL, word);
        at += length + (at[length] == ',');
    }
    bwi_json_end(w);
}

/* An argument without a default value that was not given, or given as None: a list without numbers. */
static bool is_left_out(const bwi_argument *a, const bwi_argument_value *v)
{
    return a->standard && !*a->standard && (!v->given || (a->kind == BWI_INTS && v->count == 0));
}

/* A layer as an activation: "leaky_relu(0.1)" becomes an object. */
static bw_status put_layer(bw_context *ctx, bwi_json_writer *w, const char *key, const char *text)
{
    bwi_expression e;
    bwi_argument_value values[BWI_MAX_ARGUMENTS];
    const bwi_layer_row *row = NULL;
    bw_status status = bwi_term_parse(ctx, &e, key, text);
    if (status != BW_OK) {
        return status;
    }
    for (int i = 0; bwi_layer_rows[i] && !row; i++) {
        row = bwi_term_resembles(&e.terms[0], bwi_layer_rows[i]->class_name) ? bwi_layer_rows[i] : NULL;
    }
    status = row ? bwi_arguments_read(ctx, key, &e.terms[0], row->arguments, row->argument_count, values)
                 : bwi_fail(ctx, BW_INTERNAL, "%s: %s is no layer", key, text);
    if (status == BW_OK) {
        bwi_json_begin(w, key, '{');
        bwi_json_put_text(w, "module", "keras.layers");
        bwi_json_put_text(w, "class_name", row->class_name);
        bwi_json_begin(w, "config", '{');
        for (int i = 0; i < row->argument_count && status == BW_OK; i++) {
            status = bwi_keras_put_argument(ctx, w, row->class_name, &row->arguments[i], &values[i]);
        }
        bwi_json_end(w);
        bwi_json_put_null(w, "registered_name");
        bwi_json_end(w);
    }
    bwi_expression_free(&e);
    return status;
}

/* Words of arguments become numbers, words, lists or objects, as Keras's configurations have them. */
bw_status bwi_keras_put_argument(bw_context *ctx, bwi_json_writer *w, const char *class_name, const bwi_argument *a,
                                 const bwi_argument_value *v)
{
    if (is_left_out(a, v)) {
        bwi_json_put_null(w, a->name);
        return BW_OK;
    }
    switch (a->kind) {
    case BWI_INT:
        bwi_json_put_whole(w, a->name, v->integer);
        break;
    case BWI_FLOAT:
        bwi_json_put_real(w, a->name, v->number);
        break;
    case BWI_BOOL:
        bwi_json_put_bool(w, a->name, v->flag);
        break;
    case BWI_TEXT:
        if (strcmp(a->name, words_argument) == 0) {
            put_words(w, a->name, v->text);
            break;
        }
        if (strchr(v->text, '(')) {
            return put_layer(ctx, w, a->name, v->text);
        }
        bwi_json_put_text(w, a->name, strcmp(v->text, "none") == 0 ? NULL : v->text);
        break;
    case BWI_INTS:
        put_wholes(w, class_name, a->name, v);
        break;
    case BWI_FLOATS:
        put_reals(w, a->name, v);
        break;
    case BWI_CALL:
        return bwi_keras_put_object(ctx, w, a->name, v->text);
    }
    return BW_OK;
}

bool bwi_argument_is_standard(bw_context *ctx, const bwi_argument *a, const bwi_argument_value *v)
{
    bwi_argument_value standard;
    bwi_term none = {.text = "", .end = ""};
    bwi_argument one = *a;
    if (!v->given || is_left_out(a, v)) {
        return true;
    }
    if (!a->standard || !*a->standard || bwi_arguments_read(ctx, a->name, &none, &one, 1, &standard) != BW_OK) {
        return false;
    }
    return standard.flag == v->flag && standard.integer == v->integer && standard.number == v->number &&
           standard.count == v->count && memcmp(standard.integers, v->integers, sizeof v->integers) == 0 &&
           strcmp(standard.text, v->text) == 0;
}
