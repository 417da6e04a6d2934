/* Metrics by Keras's names: each becomes a node that sums over the batch. They are not weighted, as in Keras. */
#include "train/train.h"

static bw_node *accuracy(const bwi_ends *ends, const bwi_argument_value *values)
{
    (void)values;
    bw_node *logits = bwi_logits_of(ends->prediction);
    bw_node *inputs[2] = {logits ? logits : ends->prediction, ends->target};
    const bwi_shape *shape = &ends->prediction->shape;
    int64_t width = shape->rank ? shape->extent[shape->rank - 1] : 1;
    bwi_accuracy_attributes a = {.kind = ends->target->dtype == BW_I32 ? BWI_ACCURACY_SPARSE
                                         : width > 1                   ? BWI_ACCURACY_CATEGORICAL
                                                                       : BWI_ACCURACY_BINARY};
    return bwi_graph_add(ends->graph, &bwi_op_accuracy, "accuracy", &a, sizeof a, inputs, 2, NULL, 0);
}

const bwi_metric_row bwi_metric_rows[] = {
    {"accuracy acc", NULL, 0, accuracy, NULL},
    {NULL, NULL, 0, NULL, NULL},
};
