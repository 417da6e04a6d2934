/* What a model's outputs mean: from the last layer, and from the loss where it is compiled with one. */
#include "train/internal.h"

#include <string.h>

int bw_output_count(const bw_model *model)
{
    return model ? model->output_count : 0;
}

/* The loss of an output, as given or as last chosen from data; NULL: none yet. */
static const bwi_loss_row *loss_of(const bw_model *model, int index, bool *logits)
{
    const bwi_training *t = model->training;
    *logits = false;
    if (!t) {
        return NULL;
    }
    for (int k = 0; k < t->loss_count; k++) {
        const bwi_chosen_loss *loss = &t->losses[k];
        bool named = loss->output[0] != 0;
        if (named ? strcmp(loss->output, model->output_names[index]) == 0 : t->loss_count == 1 || k == index) {
            *logits = loss->row->classes && loss->values[0].flag; /* from_logits comes first */
            return loss->row;
        }
    }
    return t->found[index];
}

/* Where the last layer is a softmax or a sigmoid it says what the output means; otherwise the loss does, and whether numbers are
 * logits. */
bw_status bw_output_describe(const bw_model *model, int index, bw_output_facts *facts)
{
    if (!model || !facts) {
        return bwi_fail(model ? model->ctx : NULL, BW_INVALID_ARGUMENT, "bw_output_describe: the pointer to the facts is NULL");
    }
    if (index < 0 || index >= model->output_count) {
        return bwi_fail(model->ctx, BW_INVALID_ARGUMENT, "there is no output %d: the model has %d", index, model->output_count);
    }
    bw_node *node = model->outputs[index];
    bool logits;
    const bwi_loss_row *loss = loss_of(model, index, &logits);
    bool softmax = bwi_logits_of(node), sigmoid = bwi_binary_logits_of(node);
    *facts = (bw_output_facts){.ndim = node->shape.ndim, .kind = BW_OUTPUT_NUMBERS};
    memcpy(facts->shape, node->shape.extent, sizeof facts->shape);
    snprintf(facts->name, sizeof facts->name, "%s", model->output_names[index][0] ? model->output_names[index] : node->name);
    if (softmax || (loss && (loss->kind == BWI_LOSS_SPARSE || loss->kind == BWI_LOSS_CATEGORICAL))) {
        facts->kind = BW_OUTPUT_CLASSES;
    } else if (sigmoid || (loss && loss->kind == BWI_LOSS_BINARY)) {
        facts->kind = BW_OUTPUT_BINARY;
    }
    facts->logits = facts->kind != BW_OUTPUT_NUMBERS && logits && !softmax && !sigmoid;
    return BW_OK;
}
