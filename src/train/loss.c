/* Losses by Keras's names: each becomes a node with one number a sample. */
#include "train/train.h"

#include <string.h>

bool bwi_listed(const char *list, const char *word, size_t length)
{
    for (const char *at = list; *at;) {
        size_t n = strcspn(at, " ");
        if (n == length && memcmp(at, word, n) == 0) {
            return true;
        }
        at += n + strspn(at + n, " ");
    }
    return false;
}

bw_node *bwi_logits_of(bw_node *prediction)
{
    return prediction->op == &bwi_op_softmax ? prediction->input[0] : NULL;
}

static bw_node *add(const bwi_ends *ends, const bwi_op *op, const char *name, bw_node *prediction)
{
    bw_node *inputs[3] = {prediction, ends->target, ends->weight};
    return bwi_graph_add(ends->graph, op, name, NULL, 0, inputs, ends->weight ? 3 : 2, NULL, 0);
}

static bw_node *sparse_categorical_crossentropy(const bwi_ends *ends, const bwi_argument_value *values)
{
    (void)values;
    bw_node *logits = bwi_logits_of(ends->prediction);
    if (!logits) {
        return bwi_fail_build(ends->graph->ctx, BW_UNIMPLEMENTED,
                              "sparse_categorical_crossentropy: the last layer must be a softmax, it is %s",
                              ends->prediction->op->name);
    }
    return add(ends, &bwi_op_crossentropy, "sparse_categorical_crossentropy", logits);
}

static bw_node *mean_squared_error(const bwi_ends *ends, const bwi_argument_value *values)
{
    (void)values;
    return add(ends, &bwi_op_squared_error, "mean_squared_error", ends->prediction);
}

const bwi_loss_row bwi_loss_rows[] = {
    {"sparse_categorical_crossentropy", NULL, 0, BW_I32, sparse_categorical_crossentropy},
    {"mean_squared_error mse MSE", NULL, 0, BW_F32, mean_squared_error},
    {NULL, NULL, 0, BW_F32, NULL},
};
