/*
 * Keras's files: .keras (a zip of config.json, metadata.json and model.weights.h5), the text of to_json, and .weights.h5. Of a
 * zip's members only these are read, vocabularies (assets/.../vocabulary.txt), and one that Keras ignores: how the training data
 * was read and prepared, which is applied again when the model is used. Written files have no time stamps, so that the same model
 * gives the same bytes.
 */
#include "file/export.h"

#include <string.h>

static const char config_name[] = "config.json", weights_name[] = "model.weights.h5", metadata_name[] = "metadata.json";
static const char data_name[] = "batchwise_data.json";

/* An unpacked configuration has at most CONFIG_LIMIT bytes. Weights are usually stored without compression, so the file's size
 * bounds them; compressed ones may unpack to the larger of WEIGHTS_PACKED_LIMIT and WEIGHTS_RATIO times their packed size,
 * because numbers do not compress further. */
enum { CONFIG_LIMIT = 1 << 24, WEIGHTS_PACKED_LIMIT = 1 << 24, WEIGHTS_RATIO = 8 };

/* ---- Reading ---- */

/* Finds the one member with this name; -1: there is none. */
static int64_t find_member(bwi_zip *zip, const char *name)
{
    for (int64_t i = 0; i < bwi_zip_count(zip); i++) {
        if (strcmp(bwi_zip_name(zip, i), name) == 0) {
            return i;
        }
    }
    return -1;
}

/* Finds a member's bytes, in the mapped file or unpacked into *copy, which the caller releases. */
static bw_status read_member(bw_context *ctx, bwi_zip *zip, const char *path, const char *name, size_t limit, bwi_bytes *bytes,
                             void **copy)
{
    bwi_zip_member member;
    int64_t index = find_member(zip, name);
    *copy = NULL;
    if (index < 0) {
        return bwi_fail_file(ctx, BW_DATA_LOSS, path, "not a Keras model: it has no member %s", name);
    }
    bw_status status = bwi_zip_member_at(zip, index, &member);
    if (status == BW_OK && member.size > limit) {
        return bwi_fail_file(ctx, BW_DATA_LOSS, path, "%s: %zu bytes; at most %zu are read", name, member.size, limit);
    }
    if (status == BW_OK && !member.stored && member.size > WEIGHTS_PACKED_LIMIT && member.size / WEIGHTS_RATIO > member.packed) {
        return bwi_fail_file(ctx, BW_DATA_LOSS, path, "%s: %zu bytes, compressed to %zu, are too many to unpack", name, member.size,
                             member.packed);
    }
    bytes->size = member.size;
    if (status == BW_OK && member.stored) {
        status = bwi_zip_in_place(zip, index, &bytes->data);
        if (status != BW_OK || bytes->data) {
            return status;
        }
    }
    *copy = status == BW_OK ? bwi_allocate(ctx, member.size, 1) : NULL;
    if (status == BW_OK && !*copy) {
        status = BW_RESOURCE_EXHAUSTED;
    }
    status = status == BW_OK ? bwi_zip_begin(zip, index) : status;
    status = status == BW_OK ? bwi_zip_read(zip, *copy, member.size) : status;
    status = status == BW_OK ? bwi_zip_end(zip) : status;
    bytes->data = *copy;
    if (status != BW_OK) {
        bwi_release(ctx, *copy);
        *copy = NULL;
    }
    return status;
}

/* An asset that is not there leaves its layer as it is. */
static bw_status read_asset(bw_context *ctx, bwi_zip *zip, const char *path, const char *name, size_t limit, bwi_bytes *bytes,
                            void **copy)
{
    return find_member(zip, name) < 0 ? BW_OK : read_member(ctx, zip, path, name, limit, bytes, copy);
}

static bw_status read_assets(bw_model *model, bwi_zip *zip, const char *path)
{
    bwi_wiring wiring;
    if (!bwi_model_has_fronts(model)) {
        return BW_OK;
    }
    bw_status status = bwi_wiring_open(&wiring, model);
    if (status == BW_OK) {
        status = bwi_fronts_read_assets(model, &wiring, zip, path, read_asset);
        bwi_wiring_close(&wiring);
    }
    return status;
}

static bw_model *model_from_text(bw_context *ctx, const char *path, const char *where, const bwi_bytes *text)
{
    bwi_json *json;
    if (bwi_json_parse(ctx, &json, text->data, text->size, where) != BW_OK) {
        return bwi_pass_on(ctx);
    }
    bw_model *model = bwi_keras_read_model(ctx, path, json);
    if (model && bwi_keras_read_compile(model, path, bwi_json_get(json, "compile_config")) != BW_OK) {
        bwi_disown(model);
        model = bwi_pass_on(ctx);
    }
    bwi_json_free(json);
    return model;
}

static bw_status read_weights(bw_model *model, const char *path, const char *where, const bwi_bytes *image, bool optimizer)
{
    bwi_hdf5 *file;
    bw_status status = bwi_hdf5_open(model->ctx, &file, image->data, image->size, where);
    if (status == BW_OK) {
        status = bwi_weights_read(model, file, path, optimizer);
    }
    bwi_hdf5_close(file);
    return status;
}

/* Reads the recipe of the training data, if the file has one. */
static bw_status load_data(bw_model *model, bwi_zip *zip, const char *path)
{
    bw_context *ctx = model->ctx;
    bwi_bytes bytes;
    void *copy = NULL;
    bwi_json *json = NULL;
    bwi_text where = {.ctx = ctx};
    if (find_member(zip, data_name) < 0) {
        return BW_OK;
    }
    bwi_text_add(&where, "%s: %s", path, data_name);
    bw_status status = where.failed ? BW_RESOURCE_EXHAUSTED : read_member(ctx, zip, path, data_name, CONFIG_LIMIT, &bytes, &copy);
    if (status == BW_OK) {
        status = bwi_json_parse(ctx, &json, bytes.data, bytes.size, where.bytes);
    }
    bwi_training *training = status == BW_OK ? bwi_training_of(model) : NULL;
    bw_dataset *recipe = training ? bwi_recipe_parse(ctx, json, where.bytes) : NULL;
    if (recipe) {
        bwi_training_set_data(training, recipe);
    } else if (status == BW_OK) {
        status = training ? bwi_pending(ctx) : BW_RESOURCE_EXHAUSTED;
    }
    bwi_json_free(json);
    bwi_release(ctx, copy);
    bwi_text_free(&where);
    return status;
}

/* The model is built from the configuration before the weights are read, so that their shapes can be checked before memory is
 * allocated. */
static bw_model *load_members(bw_context *ctx, bwi_zip *zip, const char *path)
{
    bwi_bytes bytes;
    void *copy;
    bwi_text where = {.ctx = ctx};
    bwi_text_add(&where, "%s: %s", path, config_name);
    bw_model *model = NULL;
    if (where.failed || read_member(ctx, zip, path, config_name, CONFIG_LIMIT, &bytes, &copy) != BW_OK) {
        bwi_text_free(&where);
        return bwi_pass_on(ctx);
    }
    model = model_from_text(ctx, path, where.bytes, &bytes);
    bwi_release(ctx, copy);
    where.length = 0;
    bwi_text_add(&where, "%s: %s", path, weights_name);
    if (model) {
        bw_status status = where.failed ? BW_RESOURCE_EXHAUSTED : read_assets(model, zip, path);
        status = status == BW_OK ? read_member(ctx, zip, path, weights_name, SIZE_MAX, &bytes, &copy) : status;
        if (status == BW_OK) {
            status = read_weights(model, where.bytes, where.bytes, &bytes, true);
            bwi_release(ctx, copy);
        }
        if (status == BW_OK) {
            status = load_data(model, zip, path);
        }
        if (status != BW_OK) {
            bwi_disown(model);
            model = bwi_pass_on(ctx);
        }
    }
    bwi_text_free(&where);
    return model;
}

static bw_model *load_keras(bw_context *ctx, const char *path, const bwi_bytes *bytes)
{
    bwi_zip *zip;
    if (bwi_zip_open(ctx, &zip, bytes, path) != BW_OK) {
        return bwi_pass_on(ctx);
    }
    bw_model *model = load_members(ctx, zip, path);
    bwi_zip_close(zip);
    return model;
}

static bw_model *load_json(bw_context *ctx, const char *path, const bwi_bytes *bytes)
{
    return model_from_text(ctx, path, path, bytes);
}

static bw_status load_weights(bw_model *model, const char *path, const bwi_bytes *bytes)
{
    return read_weights(model, path, path, bytes, false);
}

/* Loads only the weights from the file of a whole model. */
static bw_status load_keras_weights(bw_model *model, const char *path, const bwi_bytes *bytes)
{
    bwi_zip *zip;
    bwi_bytes image;
    void *copy = NULL;
    bw_status status = bwi_zip_open(model->ctx, &zip, bytes, path);
    if (status != BW_OK) {
        return status;
    }
    status = read_member(model->ctx, zip, path, weights_name, SIZE_MAX, &image, &copy);
    if (status == BW_OK) {
        status = read_weights(model, path, path, &image, false);
    }
    bwi_release(model->ctx, copy);
    bwi_zip_close(zip);
    return status;
}

/* ---- Writing ---- */

static bw_status write_config(bw_model *model, const bwi_wiring *wiring, bwi_json_writer *writer)
{
    *writer = (bwi_json_writer){.text = {.ctx = model->ctx}};
    return bwi_keras_write_model(model, wiring, writer);
}

/* Keras reads the version only to display it; files of this version have the same layout as ours. */
static const char metadata[] = "{\"keras_version\": \"3.0.0\", \"date_saved\": \"1980-01-01@00:00:00\"}";

static bw_status put_text(bwi_zip_out *zip, const char *name, const char *text, size_t size)
{
    bw_status status = bwi_zip_out_begin(zip, name, size);
    status = status == BW_OK ? bwi_zip_out_put(zip, text, size) : status;
    return status == BW_OK ? bwi_zip_out_end(zip) : status;
}

static bw_status put_weights(bw_model *model, const bwi_wiring *wiring, bwi_zip_out *zip)
{
    bwi_weights_out *weights;
    bw_status status = bwi_weights_open(model, wiring, &weights);
    if (status == BW_OK) {
        status = bwi_zip_out_begin(zip, weights_name, bwi_weights_size(weights));
    }
    status = status == BW_OK ? bwi_weights_put(weights, bwi_zip_out_sink(zip)) : status;
    bwi_weights_close(weights);
    return status == BW_OK ? bwi_zip_out_end(zip) : status;
}

static bw_status put_members(bw_model *model, const bwi_wiring *wiring, bwi_zip_out *zip)
{
    bwi_json_writer config, data = {.text = {.ctx = model->ctx}};
    bw_status status = write_config(model, wiring, &config);
    if (status == BW_OK) {
        status = bwi_export_preparation(model, &data);
    }
    status = status == BW_OK ? put_text(zip, metadata_name, metadata, sizeof metadata - 1) : status;
    status = status == BW_OK ? put_text(zip, config_name, config.text.bytes, config.text.length) : status;
    bwi_text_free(&config.text);
    status = status == BW_OK ? put_weights(model, wiring, zip) : status;
    status = status == BW_OK ? bwi_fronts_put_assets(wiring, zip) : status;
    if (status == BW_OK && data.text.length) {
        status = put_text(zip, data_name, data.text.bytes, data.text.length);
    }
    bwi_text_free(&data.text);
    return status == BW_OK ? bwi_zip_out_finish(zip) : status;
}

static bw_status write_zip(bw_model *model, const bwi_wiring *wiring, bwi_file_out *out)
{
    bwi_zip_out zip = {.file = out};
    bw_status status = put_members(model, wiring, &zip);
    bwi_zip_out_free(&zip);
    return status;
}

static bw_status write_weights(bw_model *model, const bwi_wiring *wiring, bwi_file_out *out)
{
    bwi_weights_out *weights;
    bw_status status = bwi_weights_open(model, wiring, &weights);
    status = status == BW_OK ? bwi_weights_put(weights, bwi_file_sink(out)) : status;
    bwi_weights_close(weights);
    return status;
}

static bw_status write_text(bw_model *model, const bwi_wiring *wiring, bwi_file_out *out)
{
    bwi_json_writer config;
    bw_status status = write_config(model, wiring, &config);
    status = status == BW_OK ? bwi_file_put(out, config.text.bytes, config.text.length) : status;
    bwi_text_free(&config.text);
    return status;
}

static bw_status with_wiring(bw_model *model, bwi_file_out *out, bw_status (*put)(bw_model *, const bwi_wiring *, bwi_file_out *))
{
    bwi_wiring wiring;
    bw_status status = bwi_wiring_open(&wiring, model);
    if (status != BW_OK) {
        return status;
    }
    status = put(model, &wiring, out);
    bwi_wiring_close(&wiring);
    return status;
}

static bw_status save_keras(bw_model *model, const char *path, bwi_file_out *out)
{
    (void)path;
    return with_wiring(model, out, write_zip);
}

static bw_status save_json(bw_model *model, const char *path, bwi_file_out *out)
{
    (void)path;
    return with_wiring(model, out, write_text);
}

static bw_status save_weights(bw_model *model, const char *path, bwi_file_out *out)
{
    (void)path;
    return with_wiring(model, out, write_weights);
}

const bwi_file_row bwi_file_keras = {".keras", "a model of Keras 3 with its optimizer", load_keras, load_keras_weights, save_keras,
                                     false};
const bwi_file_row bwi_file_json = {".json", "a model without weights, as to_json gives it", load_json, NULL, save_json, true};
const bwi_file_row bwi_file_weights = {".weights.h5", "weights as Keras saves them", NULL, load_weights, save_weights, false};
