/*
 * Facts about a model that decide what its data must be like: what happens to an input before a trained layer sees it, which
 * activation makes an output, and which loss it has.
 */
#include "insight/doctor/doctor.h"

#include <string.h>

const bw_node *bwi_model_find(const bw_model *model, const bwi_op *const *ops, int count)
{
    for (int n = 0; n < model->graph.count; n++) {
        for (int k = 0; k < count; k++) {
            if (model->graph.nodes[n]->op == ops[k]) {
                return model->graph.nodes[n];
            }
        }
    }
    return NULL;
}

/* ---- Inputs ---- */

static const bw_node *input_of(const bw_model *model, const char *field)
{
    const char *name = field[1] ? field + 2 : "";
    const bw_node *only = NULL;
    int inputs = 0;
    for (int n = 0; n < model->graph.count; n++) {
        const bw_node *node = model->graph.nodes[n];
        const bwi_input_attributes *a = node->attributes;
        if ((node->op->flags & BWI_OP_INPUT) && a->role == BWI_ROLE_INPUT) {
            if (strcmp(a->name, name) == 0) {
                return node;
            }
            only = node;
            inputs++;
        }
    }
    return inputs == 1 ? only : NULL;
}

static const bw_node *user_of(const bw_model *model, const bw_node *node)
{
    for (int n = 0; n < model->graph.count; n++) {
        const bw_node *user = model->graph.nodes[n];
        for (int k = 0; k < user->inputs; k++) {
            if (user->input[k] == node) {
                return user;
            }
        }
    }
    return NULL;
}

static bool is_one_of(const bwi_op *op, const bwi_op *const *list)
{
    while (*list && *list != op) {
        list++;
    }
    return *list;
}

/* Follows an input over layers that only arrange or scale it, up to the first one that does more. */
bwi_treatment bwi_model_treatment(const bw_model *model, const char *field)
{
    static const bwi_op *const normalising[] = {
        &bwi_op_normalization,   &bwi_op_channel_map, &bwi_op_batchnorm,    &bwi_op_batchnorm_frozen,
        &bwi_op_batchnorm_ghost, &bwi_op_layernorm,   &bwi_op_l2_normalize, NULL};
    static const bwi_op *const arranging[] = {
        &bwi_op_dropout,         &bwi_op_spatial_dropout,  &bwi_op_gaussian_noise, &bwi_op_shared_dropout,
        &bwi_op_alpha_dropout,   &bwi_op_gaussian_dropout, &bwi_op_pad2d,          &bwi_op_upsample2d,
        &bwi_op_permute,         &bwi_op_avgpool2d,        &bwi_op_maxpool2d,      &bwi_op_random_view,
        &bwi_op_random_contrast, &bwi_op_random_color,     &bwi_op_resample,       NULL};
    bwi_treatment entry = {.scale = 1};
    const bw_node *node = input_of(model, field);
    for (node = node ? user_of(model, node) : NULL; node; node = user_of(model, node)) {
        if (node->op == &bwi_op_scale) {
            const bwi_scale_attributes *a = node->attributes;
            entry.scale *= (double)a->scale;
            entry.offset = entry.offset * (double)a->scale + (double)a->offset;
        } else if (!(node->op->flags & BWI_OP_VIEW) && !is_one_of(node->op, arranging)) {
            break;
        }
    }
    if (node) {
        entry.indices = node->op == &bwi_op_embedding || node->op == &bwi_op_index_mask;
        entry.normalised = is_one_of(node->op, normalising);
        entry.normalization = node->op == &bwi_op_normalization ? node : NULL;
    }
    return entry;
}

/* ---- Outputs ---- */

/* Reshaping after the activation changes nothing. */
bwi_ending bwi_model_ending(const bw_model *model, int output)
{
    static const struct {
        bwi_activation kind;
        bwi_ending ending;
    } endings[] = {{BWI_SIGMOID, BWI_ENDS_SIGMOID}, {BWI_HARD_SIGMOID, BWI_ENDS_SIGMOID}, {BWI_TANH, BWI_ENDS_TANH}};
    const bw_node *node = model->outputs[output];
    while ((node->op->flags & BWI_OP_VIEW) && node->inputs == 1) {
        node = node->input[0];
    }
    if (node->op == &bwi_op_softmax || node->op == &bwi_op_softmax_axis) {
        return BWI_ENDS_SOFTMAX;
    }
    if (node->op == &bwi_op_relu) {
        return BWI_ENDS_RELU;
    }
    const bwi_activation_attributes *a = node->op == &bwi_op_activation ? node->attributes : NULL;
    for (size_t k = 0; a && k < BWI_COUNT(endings); k++) {
        if (a->kind == endings[k].kind) {
            return endings[k].ending;
        }
    }
    return BWI_ENDS_LINEAR;
}

const bwi_loss_row *bwi_model_loss(const bw_model *model, int output, bool *logits)
{
    const bwi_training *training = model->training;
    const bwi_chosen_loss *chosen = bwi_loss_of(model, output);
    *logits = chosen && chosen->row && chosen->row->classes && chosen->values[0].flag; /* from_logits is the first option */
    return chosen ? chosen->row : training ? training->found[output] : NULL;
}
