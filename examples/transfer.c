/*
 * A network that was trained on one task serves another one with few samples: its layers stay as they are, and only a new last
 * layer is trained. The base is a file of Keras whose layers are frozen, such as one of keras.applications without its top
 * (transfer.py makes one for images of 32x32x3); without a file, one that learns here to tell discs from triangles. The new task is
 * to tell squares from crosses, of which 40 are shown.
 *
 * Usage: transfer [BASE.keras]
 */
#include <batchwise.h>
#include <stdio.h>

enum { SHOWN = 40 };

#define BASE(trainable)                                                      \
    "input(32,32,3) conv2d(16,3,relu,trainable=" trainable ") maxpool2d(2) " \
    "conv2d(32,3,relu,trainable=" trainable ") maxpool2d(2) "                \
    "conv2d(32,3,relu,trainable=" trainable ") globalmaxpool2d"

/* Discs are class 0, squares 1, triangles 2, crosses 3. */
static int32_t old_task = 0, new_task = 1;

static bool is_of(void *task, bw_sample *sample, const void *const *from)
{
    (void)sample;
    return *(const int32_t *)from[1] % 2 == *(const int32_t *)task;
}

static bw_dataset *read_shapes(bw_context *ctx, int32_t *task)
{
    return bw_shuffle(bw_filter(bw_cache(bw_read(ctx, "synth:shapes?n=2000&shape=32x32x3", NULL)), is_of, task), 1);
}

static bw_model *learn_base(bw_context *ctx)
{
    bw_model *base = bw_model_parse(ctx, BASE("true") " dense(4,softmax)");
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.epochs = 6;
    return bw_fit(base, read_shapes(ctx, &old_task), &options, NULL) == BW_OK ? base : NULL;
}

/* All variables but the new layer's kernel and bias are the base's, in the same order. */
static bw_status copy_weights(const bw_model *base, bw_model *model)
{
    static float values[1 << 22];
    bw_status status = BW_OK;
    for (int i = 0; i < bw_variable_count(model) - 2 && status == BW_OK; i++) {
        int64_t shape[BW_MAX_NDIM] = {0}, count = 1;
        for (int axis = bw_variable_shape(base, i, shape); axis > 0; axis--) {
            count *= shape[axis - 1];
        }
        status = bw_variable_get(base, i, values, (size_t)count);
        status = status == BW_OK ? bw_variable_set(model, i, values, (size_t)count) : status;
    }
    return status;
}

/* Trains on the few images that are shown, and prints what becomes of all others. */
static bw_status train(bw_context *ctx, const char *what, const char *expression, const bw_model *base)
{
    bw_model *model = bw_model_parse(ctx, expression);
    bw_history *result = NULL;
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.epochs = 60;
    options.batch = 8;
    bw_status status = bw_compile(model, "adam(lr=0.01)", "sparse_categorical_crossentropy", "accuracy");
    status = status == BW_OK ? bw_build(model, 0, NULL, 1) : status;
    status = status == BW_OK && base ? copy_weights(base, model) : status;
    status = status == BW_OK ? bw_fit(model, bw_take(read_shapes(ctx, &new_task), SHOWN), &options, NULL) : status;
    status = status == BW_OK ? bw_evaluate(model, bw_skip(read_shapes(ctx, &new_task), SHOWN), &result) : status;
    if (status == BW_OK) {
        printf("%-40s accuracy %.3f\n", what, bw_history_last(result, "accuracy"));
    }
    return status;
}

int main(int argc, char **argv)
{
    static char expression[1 << 16];
    bw_context *ctx = bw_open(NULL);
    bw_model *base = argc > 1 ? bw_load(ctx, argv[1]) : learn_base(ctx);
    const char *frozen = argc > 1 && base ? bw_model_expression(base) : BASE("false");
    snprintf(expression, sizeof expression, "%s dense(4,softmax)", frozen ? frozen : "");
    bw_status status = base ? train(ctx, "frozen base, new last layer:", expression, base) : bw_last_error(ctx)->status;
    status = status == BW_OK ? train(ctx, "the same with a base that knows nothing:", expression, NULL) : status;
    if (status != BW_OK) {
        fprintf(stderr, "%s: %s\n", bw_status_name(status), bw_message(ctx));
    }
    bw_close(ctx);
    return status != BW_OK;
}
