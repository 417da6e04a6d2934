/*
 * What training found, chose or fitted goes with the model: data that is read for it later, in another context, from files with
 * other columns, orders and categories, gives the predictions of samples prepared by hand.
 */
#include "support/check.h"
#include "support/folder.h"

#include "file/internal.h"

#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static char heard[4096];

static void hear(void *user, bw_log_level level, const char *message)
{
    (void)user;
    (void)level;
    size_t used = strlen(heard);
    snprintf(heard + used, sizeof heard - used, "%s\n", message);
}

static bw_context *open_hearing(void)
{
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.workers = 2;
    options.log = hear;
    heard[0] = 0;
    return bw_open(&options);
}

static const char *put(const char *name, const char *text)
{
    FILE *file = fopen(inside(name), "wb");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    return inside(name);
}

static bw_dataset *built(bw_context *ctx, bw_dataset *dataset)
{
    if (!dataset) {
        print_error("%s\n", bw_message(ctx));
    }
    assert_non_null(dataset);
    return dataset;
}

static bw_model *train(bw_context *ctx, const char *text, bw_dataset *data, double split)
{
    bw_model *model = bw_model_parse(ctx, text);
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.epochs = 3;
    options.batch = 2;
    options.seed = 5;
    options.validation_split = split;
    check_ok(ctx, bw_compile(model, "sgd(0.1)", NULL, NULL));
    check_ok(ctx, bw_fit(model, data, &options, NULL));
    return model;
}

static void save_and_close(bw_context *ctx, bw_model *model)
{
    check_ok(ctx, bw_save(model, inside("m.keras")));
    bw_close(ctx);
}

static bw_model *load(bw_context *ctx)
{
    bw_model *model = bw_load(ctx, inside("m.keras"));
    check_ok(ctx, model ? BW_OK : bwi_pending(ctx));
    return model;
}

/* Predictions for what is read equal those for rows prepared by hand. */
static void expect_rows(bw_context *ctx, bw_model *model, bw_dataset *read, const float *rows, int count, int width, int outputs)
{
    float found[64], expected[64];
    assert_int_equal(bw_dataset_count(built(ctx, read)), count);
    bw_array x = {.data = rows, .dtype = BW_F32, .ndim = 2, .shape = {count, width}};
    check_ok(ctx, bw_predict(model, read, found, (size_t)(count * outputs)));
    check_ok(ctx, bw_predict(model, bw_from_arrays(ctx, &x, NULL, NULL), expected, (size_t)(count * outputs)));
    assert_memory_equal(found, expected, (size_t)(count * outputs) * sizeof *found);
}

/* ---- Columns ---- */

static const char *const table = "age,city,wage,kind\n20,oslo,1,no\n40,rome,3,yes\n,bern,5,no\n60,rome,,yes\n30,oslo,2,no\n";

static void test_columns(void **state)
{
    (void)state;
    bw_context *ctx = open_hearing();
    bw_read_options options = BW_READ_OPTIONS_DEFAULT;
    options.missing = BW_MISSING_MEAN;
    options.scale = 0.5;
    bw_model *model = train(ctx, "dense(4,tanh) dense(2,softmax)", bw_read(ctx, put("a.csv", table), &options), 0);
    assert_string_equal(bw_model_class(model, 0), "no");
    save_and_close(ctx, model);

    ctx = open_hearing();
    model = load(ctx);
    assert_string_equal(bw_model_class(model, 1), "yes");
    assert_null(bw_model_class(model, 2));
    /* age, city = bern, oslo, rome, wage; means 37.5 and 2.75; all halved. Other order, one more column, no target, and a city
     * that is not known. */
    const float rows[] = {5, 0, 0, .5F, 2, 18.75F, 0, .5F, 0, 1.375F, 10, 0, 0, 0, 4};
    const char *other = put("b.csv", "wage,city,note,age\n4,rome,a,10\n,oslo,b,\n8,paris,c,20\n");
    expect_rows(ctx, model, bw_read_for(model, other, NULL), rows, 3, 5, 2);
    assert_non_null(strstr(heard, "1 values are none of the 3 categories"));
    /* With targets, in another order of classes; one that is not known is refused. */
    bw_dataset *data =
        built(ctx, bw_read_for(model, put("c.csv", "kind,age,city,wage\nyes,10,rome,4\nno,,oslo,\nno,20,,8\n"), NULL));
    expect_rows(ctx, model, data, rows, 3, 5, 2);
    bw_history *result;
    float p[6];
    check_ok(ctx, bw_evaluate(model, data, &result));
    check_ok(ctx, bw_predict(model, data, p, 6));
    double loss = -(log((double)p[1]) + log((double)p[2]) + log((double)p[4])) / 3;
    assert_true(fabs(bw_history_last(result, "loss") - loss) < 1e-5);
    assert_null(bw_read_for(model, put("d.csv", "age,city,wage,kind\n1,oslo,2,maybe\n"), NULL));
    check_fails(ctx, bwi_pending(ctx), BW_INVALID_ARGUMENT, "d.csv: column 'kind': 'maybe' is none of the 2");
    assert_null(bw_read_for(model, put("e.csv", "age,town,wage\n1,oslo,2\n"), NULL));
    check_fails(ctx, bwi_pending(ctx), BW_NOT_FOUND, "e.csv: no column 'city'");
    /* What was chosen cannot be chosen otherwise. */
    bw_read_options wrong = BW_READ_OPTIONS_DEFAULT;
    wrong.scale = 0.25;
    assert_null(bw_read_for(model, other, &wrong));
    check_fails(ctx, bwi_pending(ctx), BW_INVALID_ARGUMENT, "scale: the model was trained with 0.5, found 0.25");
    wrong.scale = 0.5;
    wrong.ndim = 2;
    wrong.shape[0] = 5;
    wrong.shape[1] = 1;
    assert_null(bw_read_for(model, other, &wrong));
    check_fails(ctx, bwi_pending(ctx), BW_INVALID_ARGUMENT, "shape: the model was trained with (5,), found (5, 1)");
    /* The same bytes when written again. */
    check_ok(ctx, bw_save(model, inside("n.keras")));
    char command[4096];
    snprintf(command, sizeof command, "cmp '%s/m.keras' '%s/n.keras'", folder, folder);
    assert_int_equal(system(command), 0);
    bw_close(ctx);
}

/* Without headers columns go by their order; without the rule for missing values an unknown category is a failure. */
static void test_no_header(void **state)
{
    (void)state;
    bw_context *ctx = open_hearing();
    bw_model *model = train(ctx, "dense(1)", bw_read(ctx, put("a.csv", "1,a,0.5\n2,b,1.5\n3,a,2.5\n"), NULL), 0);
    save_and_close(ctx, model);
    ctx = open_hearing();
    model = load(ctx);
    const float rows[] = {7, 0, 1, 8, 1, 0};
    expect_rows(ctx, model, bw_read_for(model, put("b.csv", "7,b\n8,a\n"), NULL), rows, 2, 3, 1);
    expect_rows(ctx, model, bw_read_for(model, put("c.csv", "7,b,0.5\n8,a,0.25\n"), NULL), rows, 2, 3, 1);
    assert_null(bw_read_for(model, put("d.csv", "7,b\n8,z\n"), NULL));
    check_fails(ctx, bwi_pending(ctx), BW_INVALID_ARGUMENT, "'z' is none of the 2 categories");
    bw_read_options options = BW_READ_OPTIONS_DEFAULT;
    options.missing = BW_MISSING_ZERO;
    const float zeros[] = {7, 0, 1, 8, 0, 0};
    expect_rows(ctx, model, bw_read_for(model, inside("d.csv"), &options), zeros, 2, 3, 1);
    bw_close(ctx);
}

/* Names of any bytes come back. */
static void test_bytes_of_names(void **state)
{
    (void)state;
    bw_context *ctx = open_hearing();
    bw_model *model =
        train(ctx, "dense(3,softmax)", bw_read(ctx, put("a.csv", "x,y\n1,J\xFCrg\n2,\"a\"\"b\\\"\n3,\xE2\x82\xAC\n"), NULL), 0);
    save_and_close(ctx, model);
    ctx = open_hearing();
    model = load(ctx);
    assert_string_equal(bw_model_class(model, 0), "J\xFCrg");
    assert_string_equal(bw_model_class(model, 1), "a\"b\\");
    assert_string_equal(bw_model_class(model, 2), "\xE2\x82\xAC");
    bw_close(ctx);
}

/* ---- Statistics ---- */

static void test_statistics(void **state)
{
    (void)state;
    static const char *const text = "a,b,y\n1,10,0\n3,30,1\n5,20,2\n100,7,0\n";
    for (int normal = 0; normal < 2; normal++) {
        bw_context *ctx = open_hearing();
        bw_dataset *data = bw_read(ctx, put("a.csv", text), NULL);
        data = bw_one_hot(normal ? bw_normalise(data, NULL) : bw_standardise(data, NULL), 3);
        bw_model *model = train(ctx, "dense(3,softmax)", data, 0.25); /* the last row counts for nothing */
        save_and_close(ctx, model);
        ctx = open_hearing();
        model = load(ctx);
        /* Means 3 and 20, deviations sqrt(8/3) and sqrt(200/3); least 1 and 10, largest 5 and 30. */
        float d = (float)(1 / sqrt(8.0 / 3)), e = (float)(1 / sqrt(200.0 / 3));
        const float standard[] = {(7 - 3) * d, (40 - 20) * e, (0 - 3) * d, (15 - 20) * e};
        const float range[] = {(7 - 1) * .25F, (40 - 10) * (1 / 20.F), (0 - 1) * .25F, (15 - 10) * (1 / 20.F)};
        const char *other = put("b.csv", "b,a\n40,7\n15,0\n");
        expect_rows(ctx, model, bw_read_for(model, other, NULL), normal ? range : standard, 2, 2, 3);
        bw_history *result;
        data = built(ctx, bw_read_for(model, put("c.csv", "a,b,y\n7,40,2\n0,15,1\n"), NULL));
        check_ok(ctx, bw_evaluate(model, data, &result)); /* targets are rows of three again */
        /* The same in pieces. */
        bw_read_options options = BW_READ_OPTIONS_DEFAULT;
        options.like = bw_model_data(model);
        data = built(ctx, bw_read(ctx, other, &options));
        data = normal ? bw_normalise(data, bw_model_data(model)) : bw_standardise(data, bw_model_data(model));
        expect_rows(ctx, model, data, normal ? range : standard, 2, 2, 3);
        bw_close(ctx);
    }
}

static bool halve(void *user, bw_sample *sample, const void *const *from, void *const *to)
{
    (void)user;
    (void)sample;
    ((float *)to[0])[0] = ((const float *)from[0])[0] / 2;
    return true;
}

/* A function is not in the file, and that is said; arrays leave nothing to keep; another training replaces what is kept. */
static void test_functions(void **state)
{
    (void)state;
    bw_context *ctx = open_hearing();
    bw_dataset *data = bw_standardise(bw_map(bw_read(ctx, put("a.csv", "a,y\n1,0\n2,1\n3,0\n"), NULL), halve, NULL, NULL), NULL);
    bw_model *model = train(ctx, "dense(2,softmax)", data, 0);
    save_and_close(ctx, model);
    ctx = open_hearing();
    model = load(ctx);
    assert_null(bw_read_for(model, inside("a.csv"), NULL));
    check_fails(ctx, bwi_pending(ctx), BW_INVALID_ARGUMENT, "a function of the program changed|bw_model_data");
    bw_read_options options = BW_READ_OPTIONS_DEFAULT;
    options.like = bw_model_data(model);
    options.target = "";
    data = bw_map(bw_read(ctx, put("b.csv", "a\n4\n"), &options), halve, NULL, NULL);
    const float row[] = {(2 - 1) * (float)(1 / sqrt(1.0 / 6))}; /* halves: mean 1, variance 1/6 */
    expect_rows(ctx, model, bw_standardise(data, bw_model_data(model)), row, 1, 1, 2);

    static const float xs[] = {1, 2, 3};
    static const int32_t ys[] = {0, 1, 0};
    bw_array x = {.data = xs, .dtype = BW_F32, .ndim = 2, .shape = {3, 1}},
             y = {.data = ys, .dtype = BW_I32, .ndim = 1, .shape = {3}};
    check_ok(ctx, bw_fit(model, bw_from_arrays(ctx, &x, &y, NULL), NULL, NULL));
    assert_null(bw_model_data(model));
    assert_non_null(bw_read_for(model, inside("a.csv"), NULL));
    bw_model_free(model);

    /* By a loop of one's own: with the first update. */
    model = bw_model_parse(ctx, "dense(2,softmax)");
    check_ok(ctx, bw_compile(model, "sgd", "sparse_categorical_crossentropy", NULL));
    check_ok(ctx, bw_build(model, 1, (const int64_t[]){1}, 1));
    bw_gradients *gradients = bw_gradients_new(model, NULL);
    bw_batch *batch;
    check_ok(ctx, bw_next(bw_iterate(bw_read(ctx, put("c.csv", "a,y\n1,p\n2,q\n"), NULL), 0), &batch));
    check_ok(ctx, bw_gradients_add(gradients, batch, NULL));
    assert_null(bw_model_class(model, 0));
    check_ok(ctx, bw_apply(model, gradients));
    assert_string_equal(bw_model_class(model, 0), "p");
    bw_gradients_free(gradients);
    bw_model_free(model);
    bw_close(ctx);
}

/* ---- Images ---- */

static void copy_file(const char *from, const char *to)
{
    char command[512];
    snprintf(command, sizeof command, "cp '%s' '%s'", from, inside(to));
    assert_int_equal(system(command), 0);
}

static void test_images(void **state)
{
    (void)state;
    bw_context *ctx = open_hearing();
    bw_read_options options = BW_READ_OPTIONS_DEFAULT;
    options.scale = 1.0 / 255;
    options.ndim = 3;
    options.shape[0] = options.shape[1] = 6;
    options.shape[2] = 3;
    bw_dataset *data = bw_read(ctx, BW_TEST_DATA "/images/classes", &options);
    int classes = 0;
    while (bw_dataset_class(data, classes)) {
        classes++;
    }
    assert_true(classes > 1);
    char last[64], text[128];
    snprintf(last, sizeof last, "%s", bw_dataset_class(data, classes - 1));
    snprintf(text, sizeof text, "flatten dense(%d,softmax)", classes);
    bw_model *model = train(ctx, text, data, 0);
    save_and_close(ctx, model);

    /* One folder alone, of the last class, with a picture of another size. */
    assert_int_equal(mkdir(inside("use"), 0700), 0);
    snprintf(text, sizeof text, "use/%s", last);
    assert_int_equal(mkdir(inside(text), 0700), 0);
    snprintf(text, sizeof text, "use/%s/photo.jpg", last);
    copy_file(BW_TEST_DATA "/images/photo.jpg", text);
    ctx = open_hearing();
    model = load(ctx);
    assert_string_equal(bw_model_class(model, classes - 1), last);
    float found[16], expected[16];
    data = built(ctx, bw_read_for(model, inside("use"), NULL));
    check_ok(ctx, bw_predict(model, data, found, (size_t)classes));
    bw_history *result;
    check_ok(ctx, bw_evaluate(model, data, &result));
    assert_true(fabs(bw_history_last(result, "loss") + log((double)found[classes - 1])) < 1e-5);
    options.size = sizeof options;
    check_ok(ctx, bw_predict(model, bw_read(ctx, inside("use"), &options), expected, (size_t)classes));
    assert_memory_equal(found, expected, (size_t)classes * sizeof *found);
    bw_close(ctx);
}

/* ---- Texts that cannot be ---- */

static const char *const whole =
    "{\"version\": 1, \"scale\": 0.5, \"shape\": [2], \"missing\": \"mean\", \"target\": \"y\", \"classes\": [\"a\", [255]], "
    "\"features\": [{\"name\": \"p\", \"fill\": 1.5}, {\"name\": \"q\"}], "
    "\"fields\": [{\"role\": \"x\", \"name\": \"\", \"dtype\": \"float32\", \"shape\": [2]}, {\"role\": \"y\", \"name\": \"\", "
    "\"dtype\": \"int32\", \"shape\": []}], \"stages\": [{\"kind\": \"standardise\", \"inputs\": [{\"offset\": [1.0, 2.0], "
    "\"factor\": [3.0, null]}]}, {\"kind\": \"one_hot\", \"classes\": 2}]}";

static bw_dataset *parse(bw_context *ctx, const char *text)
{
    bwi_json *json = NULL;
    if (bwi_json_parse(ctx, &json, text, strlen(text), "m: data") != BW_OK) {
        return bwi_pass_on(ctx);
    }
    bw_dataset *made = bwi_recipe_parse(ctx, json, "m: data");
    bwi_json_free(json);
    return made;
}

static void replaced(char *to, size_t size, const char *from, const char *by)
{
    const char *at = strstr(whole, from);
    assert_non_null(at);
    snprintf(to, size, "%.*s%s%s", (int)(at - whole), whole, by, at + strlen(from));
}

static void test_damaged(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_dataset *recipe = parse(ctx, whole);
    bwi_json_writer writer = {.text = {.ctx = ctx}};
    check_ok(ctx, recipe ? BW_OK : bwi_pending(ctx));
    check_ok(ctx, bwi_recipe_write(recipe, &writer));
    assert_string_equal(writer.text.bytes, whole);
    bwi_text_free(&writer.text);
    static const char *const changes[][2] = {
        {"\"version\": 1", "\"version\": 2"},
        {"\"version\": 1, ", ""},
        {"0.5", "\"x\""},
        {"0.5", "1e999"},
        {"[2], \"missing\"", "[0], \"missing\""},
        {"[2], \"missing\"", "[1,2,3,4,5,6,7,8,9], \"missing\""},
        {"[2], \"missing\"", "{}, \"missing\""},
        {"\"mean\"", "\"median\""},
        {"\"target\": \"y\"", "\"target\": 3"},
        {"[255]", "[256]"},
        {"[255]", "[0]"},
        {"[255]", "{}"},
        {"\"fill\": 1.5", "\"fill\": \"1\""},
        {"{\"name\": \"q\"}", "7"},
        {"\"float32\"", "\"complex64\""},
        {"\"role\": \"x\"", "\"role\": \"xy\""},
        {"\"shape\": [2]}", "\"shape\": [3]}"},
        {"\"shape\": [2]}", "\"shape\": [4000000000000]}"},
        {"\"shape\": [2]}", "\"shape\": [9223372036854775807, 9223372036854775807]}"},
        {"\"shape\": []", "\"shape\": 1"},
        {"[1.0, 2.0]", "[1.0]"},
        {"[1.0, 2.0]", "[1.0, 1e300]"},
        {"[1.0, 2.0]", "[1.0, \"x\"]"},
        {"\"kind\": \"standardise\"", "\"kind\": \"shuffle\""},
        {"\"classes\": 2", "\"classes\": 0"},
        {"\"classes\": 2", "\"classes\": 9223372036854775807"},
        {"\"kind\": \"one_hot\"", "\"kind\": \"function\""},
        {"\"fields\": [{\"role\": \"x\", \"name\": \"\", \"dtype\": \"float32\", \"shape\": [2]}, ", "\"fields\": ["},
    };
    for (size_t i = 0; i < sizeof changes / sizeof changes[0]; i++) {
        char text[1200];
        replaced(text, sizeof text, changes[i][0], changes[i][1]);
        assert_null(parse(ctx, text));
        bw_status status = bwi_pending(ctx);
        if (status == BW_OK || !bw_message(ctx)[0]) {
            print_error("'%s' for '%s' is not refused\n", changes[i][1], changes[i][0]);
            fail();
        }
    }
    bw_close(ctx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_columns),    cmocka_unit_test(test_no_header), cmocka_unit_test(test_bytes_of_names),
        cmocka_unit_test(test_statistics), cmocka_unit_test(test_functions), cmocka_unit_test(test_images),
        cmocka_unit_test(test_damaged),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
