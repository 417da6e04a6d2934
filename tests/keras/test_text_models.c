/* Models of Keras that begin with text or categories (text/, by record_text_models.py): they predict the same here, also after they
 * were written and read again, and can be trained further. */
#include "support/check.h"
#include "support/folder.h"

#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { SAMPLES = 32, INPUTS = 4, WIDTH = 4 };

typedef struct input {
    char name[32];
    bool text;
    int64_t count;
    bw_text texts[SAMPLES];
    float numbers[SAMPLES * WIDTH];
} input;

typedef struct recorded {
    input inputs[INPUTS];
    int count, outputs;
    int64_t samples;
    float expected[SAMPLES * WIDTH];
    char bytes[1 << 16];
    size_t used;
} recorded;

static void add_value(recorded *r, input *in, char *value)
{
    in->text = !strchr(value, '.');
    if (!in->text) {
        in->count = 0;
        for (char *at = value; at; at = strchr(at, ',') ? strchr(at, ',') + 1 : NULL) {
            in->numbers[r->samples * WIDTH + in->count++] = strtof(at, NULL);
        }
        return;
    }
    char *to = r->bytes + r->used;
    int64_t size = 0;
    for (; value[0] != '-' && value[2 * size]; size++) {
        unsigned byte;
        assert_int_equal(sscanf(value + 2 * size, "%2x", &byte), 1);
        to[size] = (char)byte;
    }
    in->texts[r->samples] = (bw_text){.bytes = to, .size = size};
    in->count = 1;
    r->used += (size_t)size;
}

static void read_samples(recorded *r, const char *name)
{
    char path[512], line[4096];
    memset(r, 0, sizeof *r);
    snprintf(path, sizeof path, "%s/text/%s.samples", BW_TEST_KERAS, name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file)) {
        int k = 0;
        bool after = false;
        r->outputs = 0;
        for (char *word = strtok(line, " \n"); word; word = strtok(NULL, " \n")) {
            if (after) {
                r->expected[r->samples * WIDTH + r->outputs++] = strtof(word, NULL);
            } else if (!strcmp(word, "=")) {
                after = true;
            } else {
                input *in = &r->inputs[k++];
                char *equals = strchr(word, '=');
                *equals = 0;
                snprintf(in->name, sizeof in->name, "x_%s", word);
                add_value(r, in, equals + 1);
            }
        }
        r->count = k;
        r->samples++;
    }
    fclose(file);
}

static bw_dataset *data_of(bw_context *ctx, const recorded *r, const bw_array *y)
{
    bw_field fields[INPUTS + 1];
    for (int k = 0; k < r->count; k++) {
        const input *in = &r->inputs[k];
        bw_array array = {.data = in->text ? (const void *)in->texts : (const void *)in->numbers,
                          .dtype = in->text ? BW_TEXT : BW_F32,
                          .ndim = 2,
                          .shape = {r->samples, in->count}};
        array.strides[0] = in->text ? (int64_t)sizeof(bw_text) : WIDTH * (int64_t)sizeof(float);
        array.strides[1] = in->text ? (int64_t)sizeof(bw_text) : (int64_t)sizeof(float);
        fields[k] = (bw_field){.name = in->name, .array = array};
    }
    if (y) {
        fields[r->count] = (bw_field){.name = "y", .array = *y};
    }
    return bw_from_fields(ctx, fields, r->count + (y ? 1 : 0));
}

static void expect_predictions(bw_context *ctx, bw_model *model, const recorded *r)
{
    float found[SAMPLES * WIDTH];
    bw_dataset *data = data_of(ctx, r, NULL);
    assert_non_null(data);
    check_ok(ctx, bw_predict(model, data, found, (size_t)(r->samples * r->outputs)));
    for (int64_t i = 0; i < r->samples * r->outputs; i++) {
        float expected = r->expected[i / r->outputs * WIDTH + i % r->outputs];
        if (fabsf(found[i] - expected) > 2e-6F * (1 + fabsf(expected))) {
            fail_msg("sample %lld: %.9g, expected %.9g", (long long)(i / r->outputs), (double)found[i], (double)expected);
        }
    }
    bw_dataset_free(data);
}

static void test_models(void **state)
{
    (void)state;
    static const char *const names[] = {"sequential", "multi_hot", "lookup", "functional"};
    static recorded r;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char path[512], copy[2048];
        bw_context *ctx = bw_open(NULL);
        snprintf(path, sizeof path, "%s/text/%s.keras", BW_TEST_KERAS, names[i]);
        snprintf(copy, sizeof copy, "%s/%s.keras", folder, names[i]);
        read_samples(&r, names[i]);
        bw_model *model = bw_load(ctx, path);
        if (!model) {
            fail_msg("%s: %s", names[i], bw_message(ctx));
        }
        expect_predictions(ctx, model, &r);
        check_ok(ctx, bw_save(model, copy));
        bw_model *again = bw_load(ctx, copy);
        if (!again) {
            fail_msg("%s: %s", copy, bw_message(ctx));
        }
        expect_predictions(ctx, again, &r);
        bw_close(ctx);
    }
}

/* A model from an expression: fitted by bw_fit to the training part, then saved and read. */
static void test_expression(void **state)
{
    (void)state;
    static const char *const words[] = {"good film", "bad film", "Good, good story!", "bad BAD plot", "a good cast", "so bad"};
    enum { COUNT = 60 };
    static bw_text texts[COUNT];
    static int32_t labels[COUNT];
    float before[COUNT], after[COUNT];
    char copy[2048];
    for (int i = 0; i < COUNT; i++) {
        texts[i] = (bw_text){.bytes = words[i % 6], .size = (int64_t)strlen(words[i % 6])};
        labels[i] = i % 2 == 0;
    }
    static const char *const expressions[] = {
        "text_vectorization(20,length=4) embedding(20,4) lstm(4) dense(1,sigmoid)",
        "text_vectorization(mode=tf_idf) dense(1,sigmoid)",
        "text_vectorization(mode=count,split=character,ngrams=(2,3)) dense(1,sigmoid)",
        "hashing(50,mode=multi_hot) dense(1,sigmoid)",
        "string_lookup(mode=one_hot) dense(1,sigmoid)",
        "text_vectorization(vocabulary=(good,bad),length=3) embedding(4,2) flatten dense(1,sigmoid)",
    };
    for (size_t e = 0; e < sizeof expressions / sizeof *expressions; e++) {
        bw_context *ctx = bw_open(NULL);
        bw_array x = {.data = texts, .dtype = BW_TEXT, .ndim = 2, .shape = {COUNT, 1}};
        bw_array y = {.data = labels, .dtype = BW_I32, .ndim = 1, .shape = {COUNT}};
        bw_dataset *data = bw_from_arrays(ctx, &x, &y, NULL);
        bw_model *model = bw_model_parse(ctx, expressions[e]);
        bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
        options.epochs = 3;
        options.validation_split = 0.25;
        if (!data || !model) {
            fail_msg("%s: %s", expressions[e], bw_message(ctx));
        }
        check_ok(ctx, bw_compile(model, "adam(0.05)", "binary_crossentropy", "accuracy"));
        check_ok(ctx, bw_fit(model, data, &options, NULL));
        check_ok(ctx, bw_predict(model, data, before, COUNT));
        snprintf(copy, sizeof copy, "%s/e%zu.keras", folder, e);
        check_ok(ctx, bw_save(model, copy));
        bw_model *again = bw_load(ctx, copy);
        if (!again) {
            fail_msg("%s: %s", expressions[e], bw_message(ctx));
        }
        check_ok(ctx, bw_predict(again, data, after, COUNT));
        assert_memory_equal(before, after, sizeof before);
        bw_close(ctx);
    }
}

/* What cannot be done is refused by its name, and nothing is lost. */
static void test_refused(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    static const struct {
        const char *expression, *message;
    } refused[] = {
        {"text_vectorization(ragged=true)", "ragged is not supported"},
        {"text_vectorization(mode=int,vocabulary=words.txt)", "files of a vocabulary are not opened"},
        {"string_lookup(invert=true)", "invert is not supported"},
        {"text_vectorization(mode=count,length=3)", "output_sequence_length is for output_mode int only"},
        {"string_lookup(vocabulary=(a,b,a))", "appears twice"},
        {"text_vectorization(pad_to_max_tokens=true,mode=count)", "needs max_tokens"},
        {"discretization(bin_boundaries=(2,1))", "expected numbers in ascending order"},
    };
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        assert_null(bw_model_parse(ctx, refused[i].expression));
        if (!strstr(bw_message(ctx), refused[i].message)) {
            fail_msg("%s: %s", refused[i].expression, bw_message(ctx));
        }
    }
    bw_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_models), cmocka_unit_test(test_expression),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
