/*
 * The cases that a program makes by calls: models with several inputs and outputs, operators, losses and loops of its own,
 * callbacks, files.
 */
#include "bits.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

static const int64_t row_shape[] = {12}, number_shape[] = {CLASS_COUNT}, step_shape[] = {STEPS, 4};

/* ---- Samples with several fields ---- */

static bw_dataset *read_pairs(bw_context *ctx)
{
    bw_field fields[] = {{"x_left", bits_inputs(ROWS)}, {"x_right", bits_inputs(SEQUENCE)}, {"y", bits_targets(CLASSES)}};
    return bw_shuffle(bw_from_fields(ctx, fields, COUNT_OF(fields)), 5);
}

/* Two inputs of words, padded at different places. */
static bw_dataset *read_word_pairs(bw_context *ctx)
{
    static int32_t others[SAMPLES * STEPS];
    bw_field fields[] = {{"x_left", bits_inputs(TOKENS)}, {"x_right", bits_inputs(TOKENS)}, {"y", bits_targets(CLASSES)}};
    for (int i = 0; i < COUNT_OF(others); i++) {
        others[i] = i % STEPS < 7 ? 1 + (int32_t)(bits_number(41, (uint64_t)i) * (WORDS - 1)) : 0;
    }
    fields[1].array.data = others;
    return bw_from_fields(ctx, fields, COUNT_OF(fields));
}

static bw_dataset *read_two_targets(bw_context *ctx)
{
    bw_field fields[] = {
        {"x", bits_inputs(ROWS)}, {"y_kind", bits_targets(CLASSES)}, {"y_size", bits_targets(NUMBERS)}, {"w_size", bits_weights()}};
    return bw_from_fields(ctx, fields, COUNT_OF(fields));
}

/* ---- Models by calls ---- */

/* A model whose output is the node; NULL if the node is. */
static bw_model *ending_with(bw_model *model, bw_node *node)
{
    return bw_output(node, NULL) == BW_OK ? model : NULL;
}

static bw_model *two_inputs(bw_context *ctx)
{
    bw_model *model = bw_model_new(ctx);
    bw_node *left = bw_layer(bw_input(model, "left", BW_F32, 1, row_shape), "dense(8,relu)");
    bw_node *right = bw_layer(bw_layer(bw_input(model, "right", BW_F32, 2, step_shape), "conv1d(8,3,relu)"), "global_maxpool1d");
    bw_node *both = bw_merge("concat", (bw_node *[]){left, right}, 2);
    return ending_with(model, bw_layer(both, "dense(5,softmax)"));
}

/* A position counts if it does in one of the two. */
static bw_model *two_masks(bw_context *ctx)
{
    const int64_t shape[] = {STEPS};
    bw_model *model = bw_model_new(ctx);
    bw_node *left = bw_layer(bw_input(model, "left", BW_I32, 1, shape), "embedding(20,6,mask_zero=true)");
    bw_node *right = bw_layer(bw_input(model, "right", BW_I32, 1, shape), "embedding(20,6,mask_zero=true,lazy=true)");
    bw_node *sum = bw_layer(bw_merge("add", (bw_node *[]){left, right}, 2), "global_avgpool1d");
    return ending_with(model, bw_layer(sum, "dense(5,softmax)"));
}

static bw_model *two_outputs(bw_context *ctx)
{
    bw_model *model = bw_model_new(ctx);
    bw_node *hidden = bw_layer(bw_input(model, "", BW_F32, 1, row_shape), "dense(12,relu)");
    bw_status status = bw_output(bw_layer(hidden, "dense(5,softmax)"), "kind");
    return status == BW_OK && bw_output(bw_layer(hidden, "dense(5)"), "size") == BW_OK ? model : NULL;
}

/* Two halves of the input through the same layer, and how like they are. */
static bw_model *shared_layer(bw_context *ctx)
{
    bw_model *model = bw_model_new(ctx);
    bw_node *x = bw_layer(bw_input(model, "", BW_F32, 1, row_shape), "dense(12)");
    bw_node *first = bw_layer(bw_slice(x, 0, 0, 6), "dense(7,tanh)");
    bw_node *second = bw_layer_again(first, bw_slice(x, 0, 6, 6));
    bw_node *alike = bw_merge("dot(axes=1,normalize=true)", (bw_node *[]){first, second}, 2);
    bw_node *all = bw_merge("concat", (bw_node *[]){alike, first, second}, 3);
    return ending_with(model, bw_layer(all, "dense(5,softmax)"));
}

static bw_model *matrices(bw_context *ctx)
{
    const int64_t rows[] = {3, 4}, columns[] = {4, 2};
    bw_model *model = bw_model_new(ctx);
    bw_node *x = bw_input(model, "", BW_F32, 1, row_shape);
    bw_node *a = bw_reshape(bw_layer(x, "dense(12,tanh)"), 2, rows), *b = bw_reshape(bw_layer(x, "dense(8)"), 2, columns);
    bw_node *product = bw_matmul(a, b);
    bw_node *parts[] = {bw_sum(product, 0), bw_mean(product, 1), bw_max(product, -1), bw_max(a, 0), bw_mean(b, 0), bw_sum(b, 1)};
    return ending_with(model, bw_layer(bw_merge("concat", parts, COUNT_OF(parts)), "dense(5,softmax)"));
}

static bw_model *arithmetic(bw_context *ctx)
{
    bw_model *model = bw_model_new(ctx);
    bw_node *x = bw_input(model, "", BW_F32, 1, row_shape);
    bw_node *a = bw_layer(x, "dense(6)"), *b = bw_activation(bw_layer(x, "dense(6)"), "sigmoid");
    bw_node *positive = bw_affine(b, 2, 0.5), *bent = bw_maximum(a, bw_minimum(b, bw_negate(a)));
    bw_node *some[] = {bw_divide(a, positive), bw_log(positive), bw_sqrt(positive), bw_exp(bw_affine(a, 0.1, 0)), bw_abs(a)};
    bw_node *more[] = {bw_power(positive, 1.5), bw_square(b), bent, bw_multiply(a, bw_sum(b, 0)), bw_add(a, b), bw_subtract(b, a)};
    bw_node *all[] = {bw_merge("concat", some, COUNT_OF(some)), bw_merge("concat", more, COUNT_OF(more))};
    return ending_with(model, bw_layer(bw_merge("concat", all, COUNT_OF(all)), "dense(5,softmax)"));
}

/* A loss of one's own, and a penalty of the hidden values. */
static bw_model *own_loss(bw_context *ctx)
{
    bw_model *model = bw_model_new(ctx);
    bw_node *hidden = bw_layer(bw_input(model, "", BW_F32, 1, row_shape), "dense(9,relu)");
    bw_node *error = bw_subtract(bw_layer(hidden, "dense(5)"), bw_target(model, "", BW_F32, 1, number_shape));
    bw_node *loss = bw_mean(bw_sqrt(bw_affine(bw_square(error), 1, 0.1)), BW_ALL);
    bw_status status = bw_add_loss(loss, "error");
    return status == BW_OK && bw_add_loss(bw_affine(bw_sum(bw_abs(hidden), BW_ALL), 0.01, 0), "size") == BW_OK ? model : NULL;
}

static int cube_shape(void *user, int inputs, const int *ranks, const int64_t *const *shapes, int64_t *shape)
{
    (void)user;
    for (int i = 0; i < ranks[0]; i++) {
        shape[i] = shapes[0][i];
    }
    return inputs == 1 ? ranks[0] : -1;
}

static bool cube_forward(void *user, int64_t samples, const float *const *src, float *dst)
{
    for (int64_t i = 0; i < samples * *(int *)user; i++) {
        dst[i] = src[0][i] * src[0][i] * src[0][i];
    }
    return true;
}

static bool cube_backward(void *user, int64_t samples, const float *const *src, const float *dst, const float *diff_dst,
                          float *const *diff_src)
{
    (void)dst;
    for (int64_t i = 0; diff_src[0] && i < samples * *(int *)user; i++) {
        diff_src[0][i] = 3 * src[0][i] * src[0][i] * diff_dst[i];
    }
    return true;
}

static bw_model *own_operator(bw_context *ctx)
{
    static int width = 9;
    bw_operator cube = {sizeof cube, "cube", cube_shape, cube_forward, cube_backward, &width};
    bw_model *model = bw_model_new(ctx);
    bw_node *hidden = bw_layer(bw_input(model, "", BW_F32, 1, row_shape), "dense(9)");
    return ending_with(model, bw_layer(bw_custom(&cube, &hidden, 1), "dense(5,softmax)"));
}

/* ---- Loops ---- */

/* What a loop does with the gradient of an update before it is applied. */
typedef bw_status (*gradient_function)(bits_run *run, bw_gradients *gradients);

static bw_status apply(bits_run *run, bw_gradients *gradients, gradient_function change)
{
    bw_status status = change ? change(run, gradients) : BW_OK;
    return status == BW_OK ? bw_apply(run->model, gradients) : status;
}

/* An epoch with an update after every `window` batches, and after the last. */
static bw_status loop_epoch(bits_run *run, bw_gradients *gradients, int epoch, int window, gradient_function change)
{
    bw_iterator *batches = bw_iterate(run->data, epoch);
    bw_batch *batch = NULL;
    bw_status status = BW_OK;
    for (int count = 1; status == BW_OK && (status = bw_next(batches, &batch)) == BW_OK; count++) {
        status = bw_gradients_add(gradients, batch, &run->loss);
        bits_add(run, &run->loss, sizeof run->loss);
        if (status == BW_OK && count % window == 0) {
            status = apply(run, gradients, change);
        }
    }
    bw_iterator_free(batches);
    if (status != BW_OUT_OF_RANGE) {
        return status;
    }
    return bw_gradients_samples(gradients) > 0 ? apply(run, gradients, change) : BW_OK;
}

static bw_status loop(bits_run *run, int64_t piece, int window, gradient_function change)
{
    int64_t shape[BW_MAX_NDIM];
    int ndim = bw_dataset_shape(run->data, shape);
    bw_status status = bw_build(run->model, ndim, shape, run->options.seed);
    run->data = bw_batches(run->data, piece);
    bw_gradients *gradients = status == BW_OK ? bw_gradients_new(run->model, &run->options) : NULL;
    for (int epoch = 0; epoch < run->options.epochs && status == BW_OK; epoch++) {
        status = loop_epoch(run, gradients, epoch, window, change);
    }
    return status;
}

static bw_status loop_whole_tiles(bits_run *run)
{
    return loop(run, 8, 2, NULL);
}

static bw_status loop_odd_pieces(bits_run *run)
{
    return loop(run, 5, 3, NULL);
}

static bw_status loop_one_piece(bits_run *run)
{
    return loop(run, BATCH, 1, NULL);
}

/* Clips the norm by hand. */
static bw_status clip(bits_run *run, bw_gradients *gradients)
{
    double norm = 0;
    bw_status status = bw_gradients_norm(gradients, &norm);
    bits_add(run, &norm, sizeof norm);
    return status == BW_OK && norm > 0.1 ? bw_gradients_scale(gradients, 0.1 / norm) : status;
}

static bw_status loop_clipped(bits_run *run)
{
    return loop(run, 8, 2, clip);
}

static bw_status loop_averages(bits_run *run)
{
    bw_status status = loop(run, BATCH, 1, NULL);
    return status == BW_OK ? bw_apply_averages(run->model) : status;
}

/* What was cleared leaves no trace. */
static bw_status clear_and_add(bits_run *run, bw_gradients *gradients)
{
    bw_iterator *batches = bw_iterate(run->data, 7);
    bw_batch *batch = NULL;
    bw_gradients_clear(gradients);
    bw_status status = bw_next(batches, &batch);
    status = status == BW_OK ? bw_gradients_add(gradients, batch, NULL) : status;
    bw_iterator_free(batches);
    return status;
}

static bw_status loop_cleared(bits_run *run)
{
    return loop(run, 10, 1, clear_and_add);
}

/* ---- Training that goes on ---- */

static bw_status fit_with_validation(bits_run *run)
{
    bw_array x = bits_inputs(run->row->input), y = bits_targets(run->row->target);
    run->options.validation = bw_take(bw_from_arrays(run->ctx, &x, &y, NULL), 21);
    return bits_fit(run);
}

static bw_status fit_again(bits_run *run)
{
    bw_status status = bits_fit(run);
    if (status == BW_OK) {
        status = bw_recompile(run->model, NULL, NULL, "accuracy,sparse_categorical_crossentropy");
    }
    return status == BW_OK ? bits_fit(run) : status;
}

static bool spoil_one(void *user, bw_sample *sample, const void *const *from, void *const *to)
{
    float *x = to[0];
    (void)user;
    (void)from;
    if (sample->number == 30) {
        x[0] = NAN;
    }
    return true;
}

/* Fails at a sample of the third batch; the model is as after the second update then. */
static bw_status fit_until_nan(bits_run *run)
{
    bw_array x = bits_inputs(run->row->input), y = bits_targets(run->row->target);
    run->data = bw_map(run->data, spoil_one, NULL, NULL);
    bw_status status = bits_fit(run);
    if (status != BW_INVALID_ARGUMENT) {
        snprintf(run->message, sizeof run->message, "training on NaN did not fail as it should");
        return BW_INTERNAL;
    }
    (void)bw_message(run->ctx); /* the failure is known, and training goes on */
    run->data = bw_from_arrays(run->ctx, &x, &y, NULL);
    return BW_OK;
}

/* Weights that a program sets, after an update and before another. */
static bw_status fit_with_set_weights(bits_run *run)
{
    float kernel[12 * 9];
    bw_status status = bits_fit(run);
    for (int i = 0; i < COUNT_OF(kernel); i++) {
        kernel[i] = (float)bits_number(40, (uint64_t)i) - 0.5F;
    }
    if (status == BW_OK) {
        status = bw_variable_set(run->model, 0, kernel, COUNT_OF(kernel));
    }
    return status == BW_OK ? bits_fit(run) : status;
}

/* The name of a file of this process; files are removed as soon as they were read. */
static const char *file_name(char name[128], const char *extension)
{
    const char *folder = getenv("TMPDIR");
    snprintf(name, 128, "%.80s/bits-%ld%s", folder ? folder : "/tmp", (long)getpid(), extension);
    return name;
}

/* The optimizer's slots go on from the file. */
static bw_status fit_from_file(bits_run *run)
{
    char name[128];
    bw_status status = bits_fit(run);
    if (status == BW_OK) {
        status = bw_save(run->model, file_name(name, ".keras"));
    }
    if (status == BW_OK) {
        run->model = bw_load(run->ctx, name);
        status = bits_fit(run);
        unlink(name);
    }
    return status;
}

static bw_status fit_from_weights(bits_run *run)
{
    char name[128];
    bw_status status = bits_fit(run);
    if (status == BW_OK) {
        status = bw_save(run->model, file_name(name, ".safetensors"));
    }
    if (status == BW_OK) {
        bw_model *other = bw_model_parse(run->ctx, run->row->model);
        status = bw_compile(other, "sgd(0.05,0.9)", NULL, NULL);
        status = status == BW_OK ? bw_build(other, 1, row_shape, 1) : status;
        status = status == BW_OK ? bw_load_weights(other, name) : status;
        unlink(name);
        run->model = other;
    }
    return status == BW_OK ? bits_fit(run) : status;
}

/* ---- Callbacks ---- */

static bool slow_down(void *user, const bw_progress *progress)
{
    bits_run *run = user;
    double loss = bw_history_last(progress->logs, "loss");
    bits_add(run, &loss, sizeof loss);
    return bw_set_learning_rate(run->model, 0.02 / (double)progress->update) == BW_OK;
}

static bool stop_early(void *user, const bw_progress *progress)
{
    (void)user;
    return progress->update < 6;
}

/* ---- The table ---- */

#define DENSE "dense(9,relu) dense(5,softmax)"

static const bits_case rows[] = {
    {"calls/two_inputs", .build = two_inputs, .read = read_pairs},
    {"calls/two_masks", .build = two_masks, .read = read_word_pairs},
    {"calls/two_outputs", .build = two_outputs, .read = read_two_targets, .metrics = "kind=accuracy size=mae",
     .loss = "kind=sparse_categorical_crossentropy size=huber"},
    {"calls/shared_layer", .build = shared_layer},
    {"calls/matrices", .build = matrices},
    {"calls/arithmetic", .build = arithmetic},
    {"calls/own_loss", .build = own_loss, .target = NUMBERS},
    {"calls/own_loss/ranks", .build = own_loss, .target = NUMBERS, .ranks = 2},
    {"calls/own_operator", .build = own_operator},
    {"loop/whole_tiles", DENSE, .train = loop_whole_tiles},
    {"loop/odd_pieces", DENSE, .train = loop_odd_pieces},
    {"loop/clipped", DENSE, .train = loop_clipped},
    {"loop/averages", DENSE, .train = loop_averages, .optimizer = "adam(0.01,use_ema=true,ema_momentum=0.8)"},
    {"loop/weights", DENSE, .train = loop_one_piece, .weighted = true, .class_weights = true},
    {"loop/images", "conv2d(16,3,relu) maxpool2d(2) flatten dense(5,softmax)", .input = IMAGE, .train = loop_whole_tiles},
    {"loop/batchnorm", "conv2d(8,3) batchnorm relu flatten dense(5,softmax)", .input = IMAGE, .train = loop_odd_pieces},
    {"loop/table", "embedding(20,6) flatten dense(5,softmax)", .input = TOKENS, .train = loop_odd_pieces},
    {"loop/table/lazy", "embedding(20,6,lazy=true) flatten dense(5,softmax)", .input = TOKENS, .train = loop_clipped},
    {"loop/table/full", "embedding(20,6) flatten dense(5,softmax)", .input = TOKENS, .tile = 1, .lanes = 1,
     .train = loop_odd_pieces},
    {"loop/cleared", DENSE, .train = loop_cleared},
    {"loop/ranges", "dense(960,relu) dense(5,softmax)", .input = WIDE, .lanes = 16, .train = loop_one_piece},
    {"loop/ranges/pieces", "dense(960,relu) dense(5,softmax)", .input = WIDE, .lanes = 16, .train = loop_odd_pieces},
    {"loop/ranges/clipped", "dense(960,relu) dense(5,softmax)", .input = WIDE, .lanes = 16, .train = loop_clipped},
    {"validation/dataset", DENSE, .train = fit_with_validation, .metrics = "accuracy"},
    {"again/fit", DENSE, .train = fit_again, .metrics = "accuracy"},
    {"again/set", DENSE, .train = fit_with_set_weights},
    {"again/failed", "dense(9,relu) batchnorm dense(5,softmax)", .train = fit_until_nan},
    {"again/failed/noise", "dense(9,relu) dropout(0.2) dense(5,softmax)", .train = fit_until_nan, .optimizer = "nadam(0.01)"},
    {"again/keras", "conv2d(8,3,relu) batchnorm flatten dense(5,softmax)", .input = IMAGE, .train = fit_from_file},
    {"again/keras/nadam", "dense(9,relu) dropout(0.2) dense(5,softmax)", .optimizer = "nadam(0.01)", .train = fit_from_file},
    {"again/safetensors", DENSE, .train = fit_from_weights},
    {"callback/rate", DENSE, .on_step = slow_down},
    {"callback/stop", DENSE, .on_step = stop_early, .epochs = 5},
};

void bits_program_cases(bits_visitor visit, void *user)
{
    for (int i = 0; i < COUNT_OF(rows); i++) {
        visit(user, &rows[i]);
    }
}
