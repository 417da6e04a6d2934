/*
 * Models as C files: each is compiled alone, with all warnings as errors, and predicts what bw_predict does. The compiler is the
 * one that builds the tests.
 */
#include "models.h"
#include "support/folder.h"

#include "file/csource.h"

#include <dlfcn.h>
#include <math.h>
#include <unistd.h>

static const char *at(const char *name, const char *extension)
{
    static char path[2048];
    snprintf(path, sizeof path, "%s/%s%s", folder, name, extension);
    return path;
}

/* Each file by itself into one library. */
static void *compile(const char *recipe)
{
    char command[4096];
    snprintf(
        command, sizeof command,
        "cd '%s' && '%s' -std=c99 -O0 -Wall -Wextra -Wpedantic -Wconversion -Wshadow -Wdouble-promotion -Wfloat-equal -Wcast-qual "
        "-Wstrict-prototypes -Wmissing-prototypes -Wundef -Werror -ffp-contract=off -shared -fPIC -o all.so %s -lm",
        folder, BW_TEST_CC, recipe);
    if (system(command) != 0) {
        fail_msg("%s", "a file does not compile");
    }
    void *library = dlopen(at("all", ".so"), RTLD_NOW);
    if (!library) {
        fail_msg("%s", dlerror());
    }
    return library;
}

/* ---- Predictions ---- */

typedef struct run {
    void *library;
    model_layers layers;
    int count;
} run;

static void save(const model_case *c, void *user)
{
    run *r = user;
    check_ok(c->ctx, bw_save(c->model, at(c->name, ".c")));
    model_count_layers(&r->layers, c->model);
    r->count++;
}

typedef void (*predict11)(const void *, float *);
typedef void (*predict21)(const void *, const void *, float *);
typedef void (*predict22)(const void *, const void *, float *, float *);
typedef void (*predict24)(const void *, const void *, float *, float *, float *, float *);

/* Functions from dlsym, as POSIX has it. */
static void call(void *symbol, const model_case *c, int64_t sample, float *const y[MODEL_ENDS])
{
    const void *x[2] = {(const char *)c->x[0] + 4 * sample * c->in[0],
                        c->inputs > 1 ? (const char *)c->x[1] + 4 * sample * c->in[1] : NULL};
    predict11 one;
    predict21 two;
    predict22 both;
    predict24 four;
    switch (10 * c->inputs + c->outputs) {
    case 11:
        memcpy(&one, &symbol, sizeof one);
        one(x[0], y[0]);
        break;
    case 21:
        memcpy(&two, &symbol, sizeof two);
        two(x[0], x[1], y[0]);
        break;
    case 22:
        memcpy(&both, &symbol, sizeof both);
        both(x[0], x[1], y[0], y[1]);
        break;
    case 24:
        memcpy(&four, &symbol, sizeof four);
        four(x[0], x[1], y[0], y[1], y[2], y[3]);
        break;
    default:
        fail_msg("%s has %d inputs and %d outputs", c->name, c->inputs, c->outputs);
    }
}

static void compare(const model_case *c, void *user)
{
    const run *r = user;
    char name[128];
    snprintf(name, sizeof name, "%s_predict", c->name);
    void *symbol = dlsym(r->library, name);
    if (!symbol) {
        fail_msg("%s is not there", name);
    }
    float *y[MODEL_ENDS] = {NULL};
    for (int k = 0; k < c->outputs; k++) {
        y[k] = malloc((size_t)c->out[k] * sizeof(float));
    }
    for (int64_t s = 0; s < MODEL_SAMPLES; s++) {
        call(symbol, c, s, y);
        for (int k = 0; k < c->outputs; k++) {
            for (int64_t i = 0; i < c->out[k]; i++) {
                double expected = (double)c->p[k][s * c->out[k] + i], off = fabs((double)y[k][i] - expected);
                if (!(off <= 1e-5 * fmax(1, fabs(expected)))) {
                    fail_msg("%s: sample %d, output %d, value %d is %g, expected %g", c->name, (int)s, k, (int)i, (double)y[k][i],
                             expected);
                }
            }
        }
    }
    for (int k = 0; k < c->outputs; k++) {
        free(y[k]);
    }
}

static void test_predictions(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    run r = {.count = 0};
    models_visit(ctx, save, &r);
    model_expect_all_layers(&r.layers);
    r.library = compile("*.c");
    models_visit(ctx, compare, &r);
    assert_int_equal(dlclose(r.library), 0);
    bw_close(ctx);
}

/* ---- The text ---- */

static char *text_of(bw_context *ctx, bw_model *model, const char *name)
{
    bwi_bytes bytes;
    check_ok(ctx, bw_save(model, at(name, ".c")));
    check_ok(ctx, bwi_file_map(ctx, &bytes, at(name, ".c")));
    char *text = calloc(bytes.size + 1, 1);
    memcpy(text, bytes.data, bytes.size);
    bwi_file_unmap(ctx, &bytes);
    assert_int_equal(unlink(at(name, ".c")), 0);
    return text;
}

static long long memory_of(const char *text)
{
    const char *found = strstr(text, "static float memory[");
    return found ? atoll(found + strlen("static float memory[")) : 0;
}

/* Values share memory when they do not live at once: two in turn, three where one is read again later. */
static void test_memory(void **state)
{
    (void)state;
    static const struct {
        const char *expression;
        long long floats;
    } rows[] = {
        {"input(4) dense(100) dense(60) dense(80) dense(3)", 160},
        {"input(4) dense(100,relu) dropout(0.5) dense(60,tanh) dense(3)", 160},
        {"input(4) a=dense(100) dense(60) dense(100) add(a) dense(3)", 260},
        {"input(4) dense(3)", 0},
        {"input(6,6,1) conv2d(2,3) flatten reshape(16,2) dense(4)", 32},
    };
    for (size_t i = 0; i < BWI_COUNT(rows); i++) {
        bw_context *ctx = bw_open(NULL);
        bw_model *model = bw_model_parse(ctx, rows[i].expression);
        check_ok(ctx, bw_build(model, model->input_shape.ndim, model->input_shape.extent, 1));
        char *text = text_of(ctx, model, "m");
        if (memory_of(text) != rows[i].floats) {
            fail_msg("%s takes %lld floats, expected %lld", rows[i].expression, memory_of(text), rows[i].floats);
        }
        free(text);
        bw_close(ctx);
    }
}

/* The function has the file's name, whatever that is. */
static void test_names(void **state)
{
    (void)state;
    static const char *const rows[][2] = {{"digits", "void digits_predict("},
                                          {"my-net.v2", "void my_net_v2_predict("},
                                          {"9", "void model_9_predict("},
                                          {"_x", "void model__x_predict("}};
    bw_context *ctx = bw_open(NULL);
    bw_model *model = bw_model_parse(ctx, "input(3) dense(2)");
    check_ok(ctx, bw_build(model, 1, (int64_t[]){3}, 1));
    for (size_t i = 0; i < BWI_COUNT(rows); i++) {
        char *text = text_of(ctx, model, rows[i][0]);
        if (!strstr(text, rows[i][1])) {
            fail_msg("%s.c has no '%s'", rows[i][0], rows[i][1]);
        }
        free(text);
    }
    bw_close(ctx);
}

/* Weights that are no plain numbers, and indices that no table has. */
typedef void (*predict_indices)(const int *, float *);

static void test_extremes(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_model *model = bw_model_parse(ctx, "input(3) embedding(4,2)");
    check_ok(ctx, bw_build(model, 1, (int64_t[]){3}, 1));
    const float table[8] = {INFINITY, -INFINITY, NAN, 1e-42F, 3.40282347e+38F, 1, -0.0F, 16777216};
    check_ok(ctx, bw_variable_set(model, 0, table, 8));
    check_ok(ctx, bw_save(model, at("extremes", ".c")));
    void *library = compile("extremes.c"), *symbol = dlsym(library, "extremes_predict");
    predict_indices predict;
    memcpy(&predict, &symbol, sizeof predict);
    float y[6];
    predict((const int[]){0, 1, 2}, y);
    assert_true(isinf(y[0]) && y[0] > 0 && isinf(y[1]) && y[1] < 0 && isnan(y[2]) && y[3] < 1e-40F && y[4] > 3.4e38F);
    predict((const int[]){3, -1, 4}, y);
    assert_true(y[1] >= 16777216 && isnan(y[2]) && isnan(y[3]) && isnan(y[4]) && isnan(y[5]));
    assert_int_equal(dlclose(library), 0);
    bw_close(ctx);
}

static int same_shape(void *user, int inputs, const int *ranks, const int64_t *const *shapes, int64_t *shape)
{
    (void)user;
    (void)inputs;
    shape[0] = shapes[0][0];
    return ranks[0];
}

static bool copy(void *user, int64_t samples, const float *const *inputs, float *output)
{
    (void)user;
    memcpy(output, inputs[0], (size_t)samples * 3 * sizeof(float));
    return true;
}

static void test_refused(void **state)
{
    (void)state;
    bw_context *ctx = bw_open(NULL);
    bw_operator own = {.size = sizeof own, .name = "mine", .shape = same_shape, .forward = copy};
    bw_model *model = bw_model_new(ctx);
    bw_node *x = bw_input(model, "x", BW_F32, 1, (int64_t[]){3});
    check_ok(ctx, bw_output(bw_custom(&own, &x, 1), "y"));
    check_ok(ctx, bw_build(model, 0, NULL, 1));
    check_fails(ctx, bw_save(model, at("m", ".c")), BW_UNIMPLEMENTED, "mine|cannot be written to .c files");
    check_fails(ctx, bw_save(model, at("m", ".onnx")), BW_UNIMPLEMENTED, "mine|cannot be written to .onnx files");
    assert_int_not_equal(access(at("m", ".c"), F_OK), 0);
    bw_model *unbuilt = bw_model_parse(ctx, "dense(2)");
    check_fails(ctx, bw_save(unbuilt, at("m", ".c")), BW_INVALID_ARGUMENT, "build or train it first");
    bw_close(ctx);
}

/* Numbers are those of "%.9g", which keeps every bit: of all exponents, at powers of ten, and where the tenth digit is a 5. */
static void test_numbers(void **state)
{
    (void)state;
    uint32_t random = 1;
    for (int i = 0; i < 200000; i++) {
        char text[32], expected[48];
        float value;
        random = random * 1664525u + 1013904223u;
        uint32_t bits = i % 4 == 0 ? random : (random & 0x807fffffu) | (100 + (random >> 8) % 48) << 23;
        memcpy(&value, &bits, sizeof value);
        value = i % 4 == 1 ? (float)((int)(random % 4096) - 2048) / (float)(1u << (random >> 27)) : value;
        value = i < 60 ? (float)pow(10, i - 30) * (i % 2 ? 1 : -1) : value;
        if (fpclassify(value) != FP_NORMAL && fpclassify(value) != FP_ZERO) {
            continue;
        }
        snprintf(expected, sizeof expected, "%.9g", (double)value);
        strcat(expected, strpbrk(expected, ".e") ? "f" : ".0f");
        assert_string_equal(bwi_csource_number(text, value), expected);
        assert_true(strtof(text, NULL) == value);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_predictions), cmocka_unit_test(test_memory),  cmocka_unit_test(test_names),
        cmocka_unit_test(test_extremes),    cmocka_unit_test(test_refused), cmocka_unit_test(test_numbers),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
