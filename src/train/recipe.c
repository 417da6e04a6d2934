/*
 * The recipe of the data that a model was trained on: how it was read and prepared. It is kept with the model, and applied again
 * when other data is read for it.
 */
#include "train/internal.h"

void bwi_training_set_data(bwi_training *t, bw_dataset *recipe)
{
    if (recipe && bwi_recipe_is_empty(recipe)) {
        bw_dataset_free(recipe);
        recipe = NULL;
    }
    bw_dataset_free(t->data);
    t->data = recipe;
}

const bw_dataset *bw_model_data(const bw_model *model)
{
    const bwi_training *t = model ? model->training : NULL;
    return t ? t->data : NULL;
}

const char *bw_model_class(const bw_model *model, int number)
{
    return bw_dataset_class(bw_model_data(model), number);
}

/* Reads data for a model that has no recipe, such as one from Keras; images are resized to its input. */
static bw_dataset *read_plain(const bw_model *model, const char *path, const bw_read_options *options)
{
    bw_read_options chosen = BW_READ_OPTIONS_DEFAULT;
    const bwi_shape *input = model->input_count == 1 ? &model->inputs[0]->shape : NULL;
    bw_status status = path ? bwi_options_copy(model->ctx, &chosen, sizeof chosen, options, "bw_read_options") : BW_OK;
    if (status != BW_OK) {
        return bwi_pass_on(model->ctx);
    }
    if (path && input && chosen.ndim == 0 && (input->ndim == 2 || input->ndim == 3) && bwi_path_has_images(model->ctx, path)) {
        chosen.ndim = input->ndim;
        for (int i = 0; i < input->ndim; i++) {
            chosen.shape[i] = input->extent[i];
        }
    }
    return bw_read(model->ctx, path, &chosen);
}

bw_dataset *bw_read_for(bw_model *model, const char *path, const bw_read_options *options)
{
    const bw_dataset *recipe = bw_model_data(model);
    if (!model) {
        return NULL;
    }
    return recipe ? bwi_recipe_read(recipe, path, options) : read_plain(model, path, options);
}
