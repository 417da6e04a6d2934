/* Saves models to files and loads them, in the format that the file's extension names. */
#include "file/internal.h"

#include <string.h>

/* The rows are searched in order, so .weights.h5 comes before .h5. */
static const bwi_file_row *const rows[] = {&bwi_file_keras,       &bwi_file_weights, &bwi_file_legacy, &bwi_file_json,
                                           &bwi_file_safetensors, &bwi_file_onnx,    &bwi_file_csource};

static const bwi_file_row *find_row(const char *path)
{
    size_t length = strlen(path);
    for (size_t i = 0; i < BWI_COUNT(rows); i++) {
        size_t n = strlen(rows[i]->extension);
        if (length > n && strcmp(path + length - n, rows[i]->extension) == 0) {
            return rows[i];
        }
    }
    return NULL;
}

static bw_file_kind describe(const bwi_file_row *row)
{
    return (bw_file_kind){.extension = row->extension,
                          .holds = row->holds,
                          .loads = row->load,
                          .loads_weights = row->load_weights,
                          .saves = row->save,
                          .has_weights = !row->bare};
}

bool bw_file_kind_at(int number, bw_file_kind *kind)
{
    if (number < 0 || (size_t)number >= BWI_COUNT(rows)) {
        return false;
    }
    *kind = describe(rows[number]);
    return true;
}

bool bw_file_kind_of(const char *path, bw_file_kind *kind)
{
    const bwi_file_row *row = path ? find_row(path) : NULL;
    if (!row) {
        return false;
    }
    *kind = describe(row);
    return true;
}

typedef enum task { LOAD, LOAD_WEIGHTS, SAVE } task;

static bool can(const bwi_file_row *row, task what)
{
    return what == LOAD ? !!row->load : what == SAVE ? !!row->save : !!row->load_weights;
}

static bw_status refuse(bw_context *ctx, const char *path, task what, const bwi_file_row *row)
{
    static const char *const verbs[] = {"be loaded as a model", "give weights", "be saved"};
    bwi_text known = {.ctx = ctx};
    for (size_t i = 0; i < BWI_COUNT(rows); i++) {
        if (can(rows[i], what)) {
            bwi_text_add(&known, "%s%s", known.length ? ", " : "", rows[i]->extension);
        }
    }
    const char *endings = known.bytes ? known.bytes : "";
    bw_status status = row ? bwi_fail_file(ctx, BW_INVALID_ARGUMENT, path, "cannot %s: it holds %s; those that can end in %s",
                                           verbs[what], row->holds, endings)
                           : bwi_fail_file(ctx, BW_INVALID_ARGUMENT, path, "expected a name that ends in one of %s", endings);
    bwi_text_free(&known);
    return status;
}

static bw_status begin(bw_context *ctx, const char *path, task what, const bwi_file_row **row)
{
    bw_status status = bwi_pending(ctx);
    if (status != BW_OK) {
        return status;
    }
    if (!path) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "there is no file name");
    }
    *row = find_row(path);
    return *row && can(*row, what) ? BW_OK : refuse(ctx, path, what, *row);
}

/* A failure in the model or in an allocation does not know the file's name, so it is added here. */
static bw_status name_file(bw_context *ctx, bw_status status, const char *path)
{
    if (status != BW_OK && !ctx->error.path) {
        bwi_fail_again(ctx, status, bwi_in_file(path), "%s: %s", path, ctx->message);
    }
    if (status != BW_OK) {
        bwi_locate_file(ctx, path);
    }
    return status;
}

bw_model *bw_load(bw_context *ctx, const char *path)
{
    const bwi_file_row *row;
    bwi_bytes bytes;
    if (!ctx) {
        return NULL;
    }
    if (begin(ctx, path, LOAD, &row) != BW_OK || bwi_file_map(ctx, &bytes, path) != BW_OK) {
        return bwi_pass_on(ctx);
    }
    bw_model *model = row->load(ctx, path, &bytes);
    bwi_file_unmap(ctx, &bytes);
    if (bwi_shrink_report(ctx, path, BW_OK) != BW_OK) {
        bw_model_free(model);
        model = NULL;
    }
    if (!model) {
        name_file(ctx, bwi_pending(ctx), path);
        bwi_pass_on(ctx);
    }
    return model;
}

/* Undoes a failed load: variables have no values again, and a model from an expression has no nodes. */
static void take_back(bw_model *model, bool connected)
{
    bwi_graph_close_variables(&model->graph);
    model->initialized = false;
    if (!connected) {
        bwi_wiring_forget(model);
        bwi_graph_free(&model->graph);
        model->input_count = model->output_count = model->use_count = 0;
    }
}

/* The model is connected first, because the shapes in the file are compared with its shapes; it is disconnected again if loading
 * fails. */
static bw_status load_weights(bw_model *model, const char *path)
{
    const bwi_file_row *row;
    bwi_bytes bytes;
    bool built = bwi_model_built(model), connected = model->by_calls || model->output_count > 0;
    bw_status status = begin(model->ctx, path, LOAD_WEIGHTS, &row);
    if (status == BW_OK && !connected) {
        status =
            model->input_shape.ndim >= 0
                ? bwi_model_connect(model, model->input_shape.ndim, model->input_shape.extent)
                : bwi_fail_file(model->ctx, BW_INVALID_ARGUMENT, path,
                                "the model's input has no shape yet: build the model, or begin its expression with input(...)");
    }
    if (status == BW_OK) {
        status = bwi_file_map(model->ctx, &bytes, path);
    }
    if (status == BW_OK) {
        status = row->load_weights(model, path, &bytes);
        bwi_file_unmap(model->ctx, &bytes);
        status = bwi_shrink_report(model->ctx, path, status);
    }
    if (status != BW_OK && !built) {
        take_back(model, connected);
    }
    return path ? name_file(model->ctx, status, path) : status;
}

bw_status bw_load_weights(bw_model *model, const char *path)
{
    bw_status status = model ? bwi_call_begin(model->ctx) : BW_INVALID_ARGUMENT;
    return status == BW_OK ? bwi_call_end(model->ctx, load_weights(model, path)) : status;
}

static bw_status save(bw_model *model, const char *path)
{
    const bwi_file_row *row;
    bw_status status = begin(model->ctx, path, SAVE, &row);
    if (status == BW_OK && !row->bare && !bwi_model_built(model)) {
        status = bwi_fail_file(model->ctx, BW_INVALID_ARGUMENT, path, "the model has no variables yet: build or train it first");
    }
    if (status == BW_OK) {
        bwi_file_out out;
        status = bwi_file_begin(model->ctx, &out, path);
        status = bwi_file_end(&out, status == BW_OK ? row->save(model, path, &out) : status);
    }
    return path ? name_file(model->ctx, status, path) : status;
}

bw_status bw_save(bw_model *model, const char *path)
{
    bw_status status = model ? bwi_call_begin(model->ctx) : BW_INVALID_ARGUMENT;
    return status == BW_OK ? bwi_call_end(model->ctx, save(model, path)) : status;
}
