/*
 * Makes models for the tests of files that other programs run: every layer and activation of the recorded cases
 * (tests/keras/cases, with their trained weights), the files of the real Keras, and models made by calls, with operators that no
 * layer has. Each comes with some samples and the values that bw_predict gives for them.
 */
#ifndef BW_TEST_MODELS_H
#define BW_TEST_MODELS_H

#include "support/check.h"

#include "file/internal.h"
#include "keras/case_file.h"

#include <dirent.h>
#include <stdlib.h>

enum { MODEL_SAMPLES = 5, MODEL_ENDS = 4 };

typedef struct model_case {
    bw_context *ctx;
    const char *name; /* a word of C */
    bw_model *model;
    int inputs, outputs;
    void *x[MODEL_ENDS];                     /* floats, or ints where the model's input is int32 */
    float *p[MODEL_ENDS];                    /* predictions */
    int64_t in[MODEL_ENDS], out[MODEL_ENDS]; /* numbers in a sample */
} model_case;

typedef void (*model_visit)(const model_case *each, void *user);

/* Numbers of both signs; indices that every table here has. */
static inline void model_fill(model_case *c, int k)
{
    const bw_node *node = c->model->inputs[k];
    int64_t count = MODEL_SAMPLES * c->in[k];
    c->x[k] = malloc((size_t)count * 4);
    bw_random random = {.seed = 3, .stream = (uint64_t)k};
    for (int64_t i = 0; i < count; i++) {
        if (node->dtype == BW_I32) {
            ((int32_t *)c->x[k])[i] = (int32_t)bw_random_below(&random, 4);
        } else {
            ((float *)c->x[k])[i] = bw_random_normal(&random);
        }
    }
}

static inline bw_field model_field(const model_case *c, int k, char name[80])
{
    const bw_node *node = c->model->inputs[k];
    const bwi_input_attributes *a = node->attributes;
    snprintf(name, 80, "%s%s", c->inputs > 1 ? "x_" : "x", c->inputs > 1 ? a->name : "");
    bw_field field = {.name = name, .array = {.data = c->x[k], .dtype = node->dtype, .ndim = node->shape.ndim + 1}};
    field.array.shape[0] = MODEL_SAMPLES;
    memcpy(field.array.shape + 1, node->shape.extent, (size_t)node->shape.ndim * sizeof(int64_t));
    return field;
}

static inline void model_run(bw_context *ctx, const char *name, bw_model *model, model_visit visit, void *user)
{
    model_case c = {.ctx = ctx, .name = name, .model = model};
    bw_field fields[MODEL_ENDS];
    char names[MODEL_ENDS][80];
    size_t counts[MODEL_ENDS];
    if (!model) {
        fail_msg("%s: %s", name, bw_message(ctx));
    }
    c.inputs = model->input_count;
    c.outputs = model->output_count;
    for (int k = 0; k < c.inputs; k++) {
        c.in[k] = bwi_shape_count(&model->inputs[k]->shape);
        model_fill(&c, k);
        fields[k] = model_field(&c, k, names[k]);
    }
    for (int k = 0; k < c.outputs; k++) {
        c.out[k] = bwi_shape_count(&model->outputs[k]->shape);
        counts[k] = (size_t)(MODEL_SAMPLES * c.out[k]);
        c.p[k] = malloc(counts[k] * sizeof(float));
    }
    bw_dataset *dataset = bw_from_fields(ctx, fields, c.inputs);
    check_ok(ctx, bw_predict_all(model, dataset, c.p, counts, c.outputs));
    visit(&c, user);
    bw_dataset_free(dataset);
    for (int k = 0; k < MODEL_ENDS; k++) {
        free(c.x[k]);
        free(c.p[k]);
    }
    bw_model_free(model);
}

/* ---- Recorded cases ---- */

static inline bw_model *model_of_case(bw_context *ctx, const char *path)
{
    static case_file file;
    char expression[2048], name[32];
    if (!case_read(ctx, &file, path)) {
        fail_msg("%s: %s", path, bw_message(ctx));
    }
    const case_array *x = case_find(&file, "x");
    bw_model *model = bw_model_parse(ctx, case_text(&file, "expression", expression, sizeof expression));
    check_ok(ctx, bw_build(model, x->ndim - 1, x->shape + 1, 1));
    for (int v = 0; v < bw_variable_count(model); v++) {
        snprintf(name, sizeof name, "final_%d", v);
        const case_array *a = case_find(&file, name);
        assert_non_null(a);
        float *values = malloc((size_t)a->count * sizeof *values);
        for (int64_t i = 0; i < a->count; i++) {
            values[i] = (float)a->values[i];
        }
        check_ok(ctx, bw_variable_set(model, v, values, (size_t)a->count));
        free(values);
    }
    case_free(&file);
    return model;
}

static inline void models_of_cases(bw_context *ctx, model_visit visit, void *user)
{
    DIR *folder = opendir(BW_TEST_KERAS "/cases");
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        char path[1024], name[64];
        if (strncmp(entry->d_name, "layer_", 6) != 0 && strncmp(entry->d_name, "activation_", 11) != 0) {
            continue;
        }
        snprintf(path, sizeof path, BW_TEST_KERAS "/cases/%s", entry->d_name);
        snprintf(name, sizeof name, "%.*s", (int)strcspn(entry->d_name, "."), entry->d_name);
        model_run(ctx, name, model_of_case(ctx, path), visit, user);
    }
    closedir(folder);
}

/* ---- Files of Keras: several inputs and outputs, shared layers, masks ---- */

static inline void models_of_files(bw_context *ctx, model_visit visit, void *user)
{
    static const char *const names[] = {"dense",  "cnn",    "line", "shapes", "normalization", "residual",
                                        "merges", "shared", "text", "words",  "frozen",        "random"};
    for (size_t i = 0; i < BWI_COUNT(names); i++) {
        char path[1024];
        snprintf(path, sizeof path, BW_TEST_DATA "/keras/%s.keras", names[i]);
        model_run(ctx, names[i], bw_load(ctx, path), visit, user);
    }
}

/* ---- By calls ---- */

static inline bw_model *model_of_operators(bw_context *ctx)
{
    bw_model *model = bw_model_new(ctx);
    bw_node *x = bw_input(model, "double", BW_F32, 2, (int64_t[]){3, 4}), *z = bw_input(model, "z-1", BW_F32, 1, (int64_t[]){4});
    bw_node *a = bw_affine(bw_square(x), 0.5, 1), *b = bw_log(a), *c = bw_sqrt(bw_abs(x));
    bw_node *d = bw_divide(bw_subtract(b, z), bw_power(a, 1.5)), *e = bw_maximum(bw_exp(bw_negate(c)), bw_minimum(x, z));
    bw_node *f = bw_matmul(d, bw_reshape(e, 2, (int64_t[]){4, 3}));
    check_ok(ctx, bw_output(f, "double"));
    check_ok(ctx, bw_output(bw_multiply(bw_sum(d, 0), bw_slice(z, 0, 1, 1)), "a/b"));
    check_ok(ctx, bw_output(bw_add(bw_mean(e, -1), bw_max(e, 1)), ""));
    check_ok(ctx, bw_output(bw_sum(bw_slice(x, 1, 1, 2), BW_ALL), "total"));
    check_ok(ctx, bw_build(model, 0, NULL, 1));
    return model;
}

/* Outputs that are no operator's own: an input, a layer that only trains, the same twice; an input that nothing reads. */
static inline bw_model *model_of_ends(bw_context *ctx)
{
    bw_model *model = bw_model_new(ctx);
    bw_node *x = bw_input(model, "x", BW_F32, 1, (int64_t[]){3});
    bw_input(model, "unread", BW_F32, 1, (int64_t[]){2});
    bw_node *y = bw_layer(bw_layer(x, "dense(3,relu)"), "dropout(0.5)");
    check_ok(ctx, bw_output(x, "x"));
    check_ok(ctx, bw_output(y, "y"));
    check_ok(ctx, bw_output(y, "y"));
    check_ok(ctx, bw_output(bw_layer(y, "dense(2)"), "*/ z"));
    check_ok(ctx, bw_build(model, 0, NULL, 1));
    return model;
}

static inline void models_by_calls(bw_context *ctx, model_visit visit, void *user)
{
    model_run(ctx, "operators", model_of_operators(ctx), visit, user);
    model_run(ctx, "ends", model_of_ends(ctx), visit, user);
}

static inline void models_visit(bw_context *ctx, model_visit visit, void *user)
{
    models_of_cases(ctx, visit, user);
    models_of_files(ctx, visit, user);
    models_by_calls(ctx, visit, user);
}

/* Every layer was among the models: for the last visit. */
typedef struct model_layers {
    bool seen[256];
} model_layers;

static inline void model_count_layers(model_layers *layers, const bw_model *model)
{
    for (int i = 0; i < model->layer_count; i++) {
        for (int r = 0; bwi_layer_rows[r]; r++) {
            const bwi_layer *inner = model->layers[i].inner[0];
            layers->seen[r] =
                layers->seen[r] || bwi_layer_rows[r] == model->layers[i].row || (inner && bwi_layer_rows[r] == inner->row);
        }
    }
}

static inline void model_expect_all_layers(const model_layers *layers)
{
    for (int r = 0; bwi_layer_rows[r]; r++) {
        if (!layers->seen[r] && !bwi_layer_front_kind(bwi_layer_rows[r])) { /* tests/keras/test_text.c has those for text */
            fail_msg("no model has the layer %s", bwi_layer_rows[r]->class_name);
        }
    }
}

#endif
