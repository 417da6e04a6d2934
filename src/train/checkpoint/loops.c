/* bw_checkpoint and bw_resume: checkpoints of custom loops, written and read by the caller's thread. */
#include "train/checkpoint/checkpoint.h"

#include <string.h>

typedef struct loop {
    bw_context *ctx;
    bw_model *model;
    bwi_training *training;
    const char *folder;
    bw_checkpoint_options options;
    bwi_identity identity;
} loop;

static bw_status read_options(loop *l, const bw_checkpoint_options *given)
{
    bw_status status = bwi_options_copy(l->ctx, &l->options, sizeof l->options, given, "bw_checkpoint_options");
    if (status != BW_OK) {
        return status;
    }
    const bw_checkpoint_options *o = &l->options;
    if (o->keep < 0 || o->value_count < 0 || (o->value_count > 0 && !o->values)) {
        return bwi_fail(l->ctx, BW_INVALID_ARGUMENT, "bw_checkpoint_options: keep is %d, and there are %d values", o->keep,
                        o->values ? o->value_count : 0);
    }
    for (int k = 0; k < o->value_count; k++) {
        const bw_checkpoint_value *value = &o->values[k];
        if (!value->name || !value->name[0] || strlen(value->name) > 63 || (!value->data && value->bytes > 0)) {
            return bwi_fail(l->ctx, BW_INVALID_ARGUMENT, "value %d of a checkpoint: expected a name of 1 to 63 bytes, and data", k);
        }
    }
    return BW_OK;
}

static bw_status begin(loop *l, const bw_checkpoint_options *options)
{
    if (!l->folder || !l->folder[0]) {
        return bwi_fail(l->ctx, BW_INVALID_ARGUMENT, "a checkpoint needs the path of a folder");
    }
    if (!bwi_model_built(l->model)) {
        return bwi_fail(l->ctx, BW_INVALID_ARGUMENT, "a checkpoint needs a model that is built: call bw_build first");
    }
    bw_status status = read_options(l, options);
    l->training = status == BW_OK ? bwi_training_of(l->model) : NULL;
    if (status != BW_OK || !l->training) {
        return status != BW_OK ? status : BW_RESOURCE_EXHAUSTED;
    }
    status = bwi_optimizer_open_slots(l->training);
    bwi_identity_add_training(&l->identity, l->training, false);
    bwi_identity_add_model(&l->identity, l->model);
    return status == BW_OK && l->identity.failed ? BW_RESOURCE_EXHAUSTED : status;
}

static void list_values(const loop *l, bwi_state *state)
{
    bwi_training_state(l->model, state);
    for (int k = 0; k < l->options.value_count; k++) {
        const bw_checkpoint_value *value = &l->options.values[k];
        int64_t bytes = (int64_t)value->bytes;
        bwi_state_add(state, BW_U8, 1, &bytes, value->data, "program/%s", value->name);
    }
}

/* ---- Writing ---- */

static bw_status write_image(const loop *l, bwi_checkpoint_image *image, int64_t step)
{
    bwi_store_failure failure;
    bwi_checkpoint_facts facts = {.step = step};
    bwi_checkpoint_image_take(image, 0, &facts);
    bwi_checkpoint_image_finish(image);
    if (!bwi_store_write(image, l->folder, &failure)) {
        return bwi_fail_at(l->ctx, bwi_errno_status(-failure.code), bwi_in_file(failure.path), "cannot %s %s: %s", failure.what,
                           failure.path, bwi_errno_text(-failure.code));
    }
    bwi_store_prune(l->ctx, l->folder, l->options.keep ? l->options.keep : 3);
    return BW_OK;
}

/* Everything is looked at before the folder is touched, so that a refusal leaves nothing behind. */
static bw_status write_checkpoint(loop *l, int64_t step, const bw_checkpoint_options *options)
{
    bw_status status = begin(l, options);
    if (status == BW_OK && step < 0) {
        status = bwi_fail(l->ctx, BW_INVALID_ARGUMENT, "step: expected 0 or more, got %lld", (long long)step);
    }
    int64_t pending = bwi_gradients_pending(l->model);
    if (status == BW_OK && pending > 0) {
        status = bwi_fail(
            l->ctx, BW_INVALID_ARGUMENT,
            "the gradients of %lld samples were added and not applied, and a checkpoint does not hold them: call bw_apply or "
            "bw_gradients_clear first",
            (long long)pending);
    }
    if (status == BW_OK) {
        status = bwi_folder_make(l->ctx, l->folder);
    }
    if (status != BW_OK) {
        return status;
    }
    bwi_state values = {.ctx = l->ctx};
    bwi_checkpoint_header header = {.identity = &l->identity};
    bwi_checkpoint_image image;
    list_values(l, &values);
    status = bwi_checkpoint_image_open(&image, &values, -1, 0, &header);
    status = status == BW_OK ? write_image(l, &image, step) : status;
    bwi_checkpoint_image_free(&image);
    return status;
}

bw_status bw_checkpoint(bw_model *model, const char *folder, int64_t step, const bw_checkpoint_options *options)
{
    bw_status status = model ? bwi_call_begin(model->ctx) : BW_INVALID_ARGUMENT;
    if (status != BW_OK) {
        return status;
    }
    loop l = {.ctx = model->ctx, .model = model, .folder = folder, .options = BW_CHECKPOINT_OPTIONS_DEFAULT};
    l.identity.ctx = model->ctx;
    status = write_checkpoint(&l, step, options);
    bwi_identity_free(&l.identity);
    return bwi_call_end(model->ctx, status);
}

/* ---- Reading ---- */

static bw_status load_found(const loop *l, const bwi_found_checkpoint *found)
{
    bw_status status = bwi_checkpoint_compare(found, &l->identity, true);
    if (status != BW_OK) {
        return status;
    }
    if (bwi_checkpoint_has(found, "optimizer/learning_rate")) {
        l->training->optimizer.schedule.row = NULL; /* a rate that was set has replaced it */
    }
    bwi_state values = {.ctx = l->ctx};
    list_values(l, &values);
    status = values.failed ? BW_RESOURCE_EXHAUSTED : bwi_checkpoint_load(found, &values);
    bwi_state_free(&values);
    return status;
}

static bw_status read_checkpoint(loop *l, int64_t *step, const bw_checkpoint_options *options)
{
    bwi_found_checkpoint found = {.step = -1};
    bw_status status = begin(l, options);
    if (status == BW_OK && !step) {
        status = bwi_fail(l->ctx, BW_INVALID_ARGUMENT, "bw_resume needs a place for the step; it is NULL");
    }
    if (status == BW_OK) {
        status = bwi_checkpoint_find(l->ctx, &found, l->folder);
    }
    if (status == BW_OK && found.step >= 0) {
        status = load_found(l, &found);
    }
    if (status == BW_OK) {
        *step = found.step;
    }
    bwi_checkpoint_found_close(&found);
    return status;
}

bw_status bw_resume(bw_model *model, const char *folder, int64_t *step, const bw_checkpoint_options *options)
{
    bw_status status = model ? bwi_call_begin(model->ctx) : BW_INVALID_ARGUMENT;
    if (status != BW_OK) {
        return status;
    }
    loop l = {.ctx = model->ctx, .model = model, .folder = folder, .options = BW_CHECKPOINT_OPTIONS_DEFAULT};
    l.identity.ctx = model->ctx;
    status = read_checkpoint(&l, step, options);
    bwi_identity_free(&l.identity);
    return bwi_call_end(model->ctx, status);
}
