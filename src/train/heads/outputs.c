/* Tells what a model's outputs mean, from the last layer and, if the model is compiled with a loss, from the loss. */
#include "train/internal.h"

#include <string.h>

int bw_output_count(const bw_model *model)
{
    return model ? model->output_count : 0;
}

const bwi_chosen_loss *bwi_loss_of(const bw_model *model, int output)
{
    const bwi_training *t = model->training;
    for (int k = 0; t && k < t->loss_count; k++) {
        const char *name = t->losses[k].output;
        if (name[0] ? strcmp(name, bwi_output_name(model, output)) == 0 : t->loss_count == 1 || k == output) {
            return &t->losses[k];
        }
    }
    return NULL;
}

/* Returns the loss that was given, or the one that the data last decided on; NULL if there is none yet. */
static const bwi_loss_row *row_of(const bw_model *model, int index, bool *logits)
{
    const bwi_chosen_loss *loss = bwi_loss_of(model, index);
    *logits = loss && loss->row && loss->row->classes && loss->values[0].flag; /* from_logits is the first option */
    const bwi_training *t = model->training;
    return loss ? loss->row : t ? t->found[index] : NULL;
}

bool bw_loss_name(const bw_model *model, int output, char *text, size_t size)
{
    bool logits;
    const bwi_loss_row *row = model && output >= 0 && output < model->output_count ? row_of(model, output, &logits) : NULL;
    if (text && size > 0) {
        snprintf(text, size, "%.*s", row ? (int)strcspn(row->names, " ") : 0, row ? row->names : "");
    }
    return row;
}

/* A final softmax or sigmoid says what the output means. Otherwise the loss does, and it also says whether the numbers are
 * logits. */
static bw_status describe(const bw_model *model, int index, bw_output_facts *facts)
{
    if (!facts) {
        return bwi_fail(model->ctx, BW_INVALID_ARGUMENT, "bw_output_describe: the pointer to the facts is NULL");
    }
    if (index < 0 || index >= model->output_count) {
        return bwi_fail(model->ctx, BW_INVALID_ARGUMENT, "there is no output %d: the model has %d", index, model->output_count);
    }
    bw_node *node = model->outputs[index];
    bool logits;
    const bwi_loss_row *loss = row_of(model, index, &logits);
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

bw_status bw_output_describe(const bw_model *model, int index, bw_output_facts *facts)
{
    bw_status status = model ? bwi_call_begin(model->ctx) : BW_INVALID_ARGUMENT;
    return status == BW_OK ? bwi_call_end(model->ctx, describe(model, index, facts)) : status;
}
