/* Layers for text and categories against Keras: what they are fitted to, and what they make of samples (text.cases, by
 * record_text.py). */
#include "support/check.h"
#include "front/front.h"

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <math.h>
#include <cmocka.h>

enum { MOST = 1024 };

/* The values of one line: texts, or numbers as float32 and int32. */
typedef struct values {
    bw_text text[MOST];
    float number[MOST];
    int32_t whole[MOST];
    int64_t count;
    bool texts, fraction;
    char bytes[1 << 16];
} values;

typedef struct reading {
    bw_context *ctx;
    bwi_front *front;
    bwi_front_fitting *fitting;
    char name[64];
    bwi_front_settings set;
    int64_t tokens, checked, cases;
    values in[3];
    char *common[256];
    int common_count;
} reading;

static void read_settings(bwi_front_settings *set, char *at)
{
    static const char *const kinds[] = {"text", "strings", "integers", "hashing", "crossing", "discretization", "encoding"};
    static const char *const modes[] = {"int", "one_hot", "multi_hot", "count", "tf_idf"};
    *set = (bwi_front_settings){.split = BWI_SPLIT_WHITESPACE, .named = true, .epsilon = 0.01};
    strcpy(set->oov_token, "[UNK]");
    for (char *word = strtok(at, " \n"); word; word = strtok(NULL, " \n")) {
        char *value = strchr(word, '=');
        *value++ = 0;
        for (size_t i = 0; i < BWI_COUNT(kinds); i++) {
            if (!strcmp(word, "kind") && !strcmp(value, kinds[i])) {
                set->kind = (bwi_front_kind)i;
            }
        }
        for (size_t i = 0; i < BWI_COUNT(modes); i++) {
            if (!strcmp(word, "mode") && !strcmp(value, modes[i])) {
                set->mode = (bwi_front_mode)i;
            }
        }
        long long first = atoll(value), second = strchr(value, ',') ? atoll(strchr(value, ',') + 1) : 0;
        if (!strcmp(word, "kind") && set->kind == BWI_FRONT_TEXT) {
            set->lower = set->strip = set->masked = true;
            set->oov = 1;
        } else if (!strcmp(word, "kind") && set->kind == BWI_FRONT_INTEGERS) {
            strcpy(set->oov_token, "-1");
        } else if (!strcmp(word, "length")) {
            set->length = first;
        } else if (!strcmp(word, "max_tokens")) {
            set->max_tokens = first;
        } else if (!strcmp(word, "pad")) {
            set->pad = true;
        } else if (!strcmp(word, "oov")) {
            set->oov = first;
        } else if (!strcmp(word, "bins")) {
            set->bins = first;
        } else if (!strcmp(word, "farmhash")) {
            set->farmhash = true;
        } else if (!strcmp(word, "standardize")) {
            set->lower = !strcmp(value, "lower");
            set->strip = !strcmp(value, "strip_punctuation");
        } else if (!strcmp(word, "split")) {
            set->split = !strcmp(value, "none") ? BWI_SPLIT_NONE : BWI_SPLIT_CHARACTER;
        } else if (!strcmp(word, "salt")) {
            set->salted = true;
            set->salt[0] = (uint64_t)first;
            set->salt[1] = (uint64_t)second;
        } else if (!strcmp(word, "mask")) {
            set->masked = true;
            for (int i = 0; value[0] != '-' && value[2 * i]; i++) {
                unsigned byte;
                sscanf(value + 2 * i, "%2x", &byte);
                set->mask[i] = (char)byte;
                set->mask[i + 1] = 0;
            }
        } else if (!strcmp(word, "ngrams") && second) {
            set->ngram_count = 2;
            set->ngrams[0] = (int)first;
            set->ngrams[1] = (int)second;
        } else if (!strcmp(word, "ngrams")) {
            for (; set->ngram_count < first; set->ngram_count++) {
                set->ngrams[set->ngram_count] = set->ngram_count + 1;
            }
        }
    }
}

static int digit(char c)
{
    return c <= '9' ? c - '0' : c - 'a' + 10;
}

static void add_text(values *v, const char *word, size_t *used)
{
    char *bytes = v->bytes + *used;
    int64_t size = 0;
    for (; word[0] != '-' && word[2 * size]; size++) {
        bytes[size] = (char)(digit(word[2 * size]) * 16 + digit(word[2 * size + 1]));
    }
    *used += (size_t)size;
    v->text[v->count++] = (bw_text){.bytes = bytes, .size = size};
}

/* Whether the values of a case are text. A cross may have both; there each value is an input. */
static bool holds_text(const reading *r, const char *word)
{
    if (r->set.kind == BWI_FRONT_CROSSING || r->set.kind == BWI_FRONT_HASHING) {
        return !strstr(r->name, "integers") &&
               !(strstr(r->name, "mixed") && word[0] != '-' && strlen(word) < 9 && strspn(word, "0123456789") == strlen(word));
    }
    return r->set.kind == BWI_FRONT_TEXT || r->set.kind == BWI_FRONT_STRINGS;
}

static void add_value(const reading *r, values *v, const char *word, size_t *used)
{
    v->texts = holds_text(r, word);
    if (v->texts) {
        add_text(v, word, used);
        return;
    }
    v->fraction = v->fraction || strpbrk(word, ".e");
    v->number[v->count] = strtof(word, NULL);
    v->whole[v->count++] = (int32_t)strtol(word, NULL, 10);
}

/* Reads the values up to '=' or the end. Returns what follows. */
static char *read_values(reading *r, char *at, int *inputs)
{
    size_t used[3] = {0};
    bool apart = r->set.kind == BWI_FRONT_CROSSING;
    char *equals = strstr(at, " = ");
    char *rest = equals ? equals + 3 : at + strlen(at);
    if (!equals && strstr(at, " =\n")) {
        equals = strstr(at, " =\n");
        rest = equals + 2;
    }
    if (equals) {
        *equals = 0;
    }
    *inputs = 0;
    for (int k = 0; k < 3; k++) {
        r->in[k].count = 0;
        r->in[k].fraction = false;
    }
    for (char *word = strtok(at, " \n"); word; word = strtok(NULL, " \n")) {
        int k = apart ? *inputs : 0;
        *inputs = apart ? *inputs + 1 : 1;
        add_value(r, &r->in[k], word, &used[k]);
    }
    return rest;
}

static bwi_front_value value_of(const reading *r, const values *v)
{
    bool real = v->fraction || r->set.kind == BWI_FRONT_DISCRETIZATION;
    return (bwi_front_value){.dtype = v->texts ? BW_TEXT
                                      : real   ? BW_F32
                                               : BW_I32,
                             .count = v->count,
                             .values = v->texts ? (const void *)v->text
                                       : real   ? (const void *)v->number
                                                : (const void *)v->whole};
}

static void end_fitting(reading *r)
{
    if (r->fitting) {
        assert_int_equal(bwi_front_fitting_end(r->fitting, r->name), BW_OK);
        bwi_front_fitting_free(r->fitting);
        r->fitting = NULL;
        r->tokens = 0;
    }
}

static void end_case(reading *r)
{
    if (r->front && r->set.kind <= BWI_FRONT_INTEGERS) {
        assert_int_equal(r->tokens, bwi_front_token_count(r->front));
    }
    bwi_front_free(r->front);
    r->front = NULL;
}

static void begin_case(reading *r, char *line)
{
    end_case(r);
    sscanf(line, "case %63s", r->name);
    read_settings(&r->set, strchr(line + 5, ' ') + 1);
    r->front = bwi_front_new(r->ctx, &r->set);
    r->cases++;
}

static void fit(reading *r, char *at)
{
    int inputs;
    if (!r->fitting) {
        assert_int_equal(bwi_front_fitting_open(r->front, &r->fitting), BW_OK);
    }
    read_values(r, at, &inputs);
    bwi_front_value value = value_of(r, &r->in[0]);
    assert_int_equal(bwi_front_fitting_add(r->fitting, &value), BW_OK);
}

static void fit_common(reading *r, long count)
{
    static char copy[1 << 16];
    for (long i = 0; i < count; i++) {
        snprintf(copy, sizeof copy, "%s", r->common[i]);
        fit(r, copy);
    }
}

static void check_token(reading *r, char *at)
{
    values *v = &r->in[0];
    size_t used = 0;
    end_fitting(r);
    v->count = 0;
    at[strcspn(at, "\n")] = 0;
    add_text(v, at, &used);
    assert_true(r->tokens < bwi_front_token_count(r->front));
    bw_text token = bwi_front_token(r->front, r->tokens++);
    if (token.size != v->text[0].size || memcmp(token.bytes, v->text[0].bytes, (size_t)token.size) != 0) {
        fail_msg("%s: token %lld is %.*s, expected %.*s", r->name, (long long)r->tokens - 1, (int)token.size, token.bytes,
                 (int)v->text[0].size, v->text[0].bytes);
    }
}

/* Compares with a list of numbers, to a few units in the last place: their logarithms and means were rounded elsewhere. */
static void check_numbers(reading *r, char *at, const float *found, int64_t count)
{
    int64_t i = 0;
    for (char *word = strtok(at, " \n"); word; word = strtok(NULL, " \n"), i++) {
        float expected = strtof(word, NULL);
        assert_true(i < count);
        if (fabsf(found[i] - expected) > 1e-6F * (1 + fabsf(expected))) {
            fail_msg("%s: number %lld is %.9g, expected %.9g", r->name, (long long)i, (double)found[i], (double)expected);
        }
    }
    assert_int_equal(i, count);
}

static void check_boundaries(reading *r, char *at)
{
    int64_t count = 0;
    end_fitting(r);
    if (!bwi_front_is_fitted(r->front)) {
        float given[] = {-1, 0, 2.5F};
        assert_int_equal(bwi_front_set_boundaries(r->front, given, 3, "test"), BW_OK);
    }
    const float *boundaries = bwi_front_boundaries(r->front, &count);
    check_numbers(r, at, boundaries, count);
}

static void check_sample(reading *r, char *at)
{
    int inputs;
    char error[BWI_ITEM_ERROR] = "";
    end_fitting(r);
    char *rest = read_values(r, at, &inputs);
    bwi_front_value value[3];
    for (int k = 0; k < inputs; k++) {
        value[k] = value_of(r, &r->in[k]);
    }
    int64_t count = bwi_front_count(r->ctx, r->name, r->front, value[0].count);
    assert_true(count > 0);
    float *found = malloc((size_t)count * sizeof *found), *expected = calloc((size_t)count, sizeof *expected);
    assert_int_equal(bwi_front_apply(r->front, value, inputs, found, error), BW_OK);
    for (char *word = strtok(rest, " \n"); word; word = strtok(NULL, " \n")) {
        long i = strtol(word, NULL, 10);
        assert_true(i < count);
        expected[i] = strtof(strchr(word, ':') + 1, NULL);
    }
    for (int64_t i = 0; i < count; i++) {
        float one = r->set.mode == BWI_MODE_INT ? (float)((int32_t *)(void *)found)[i] : found[i];
        if (fabsf(one - expected[i]) > 1e-6F * fabsf(expected[i])) {
            fail_msg("%s: sample %lld: value %lld is %g, expected %g", r->name, (long long)r->checked, (long long)i, (double)one,
                     (double)expected[i]);
        }
    }
    r->checked++;
    free(found);
    free(expected);
}

static void test_recorded(void **state)
{
    (void)state;
    static reading r;
    static char line[1 << 18];
    r.ctx = bw_open(NULL);
    FILE *file = fopen(BW_TEST_KERAS "/text.cases", "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        int64_t count;
        if (!strncmp(line, "case ", 5)) {
            begin_case(&r, line);
        } else if (!strncmp(line, "common ", 7)) {
            assert_true(r.common_count < 256);
            r.common[r.common_count++] = strdup(line + 7);
        } else if (!strncmp(line, "fit_common ", 11)) {
            fit_common(&r, atol(line + 11));
        } else if (!strncmp(line, "fit ", 4)) {
            fit(&r, line + 4);
        } else if (!strncmp(line, "token ", 6)) {
            check_token(&r, line + 6);
        } else if (!strncmp(line, "idf ", 4)) {
            const float *idf = bwi_front_idf(r.front, &count);
            check_numbers(&r, line + 4, idf, count);
        } else if (!strncmp(line, "bound ", 6)) {
            check_boundaries(&r, line + 6);
        } else if (!strncmp(line, "in ", 3)) {
            check_sample(&r, line + 3);
        }
    }
    fclose(file);
    end_case(&r);
    for (int i = 0; i < r.common_count; i++) {
        free(r.common[i]);
    }
    assert_true(r.cases > 40 && r.checked > 4000);
    bw_close(r.ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_recorded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
