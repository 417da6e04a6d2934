/* How the data that a model was trained on was read and prepared: the recipe is kept with the model, and applied again when other
 * data is read for it. */
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

bw_dataset *bw_read_for(bw_model *model, const char *path, const bw_read_options *options)
{
    const bw_dataset *recipe = bw_model_data(model);
    if (!model) {
        return NULL;
    }
    return recipe ? bwi_recipe_read(recipe, path, options) : bw_read(model->ctx, path, options);
}
