/*
 * ctc: connectionist temporal classification, one number per sample: -log of the probability that an output (times, classes) of
 * logits spells the labels, with blanks (class 0) and repetitions anywhere. Inputs: logits; class numbers (length), where 0 fills
 * up shorter ones; and optionally a weight for each sample. Forward keeps the gradient for backward.
 */
#include "op/internal.h"

static bw_status shape(bwi_graph *graph, bw_node *node)
{
    const bwi_shape *x = &node->input[0]->shape, *y = &node->input[1]->shape;
    char found[160];
    node->shape = (bwi_shape){.ndim = 0};
    if (x->ndim != 2) {
        return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "%s: expected an output (times, classes), got %s", node->name,
                        bwi_format_shape(found, x->ndim, x->extent));
    }
    if (y->ndim != 1) {
        return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "%s: expected a list of class numbers as each sample's target, got %s",
                        node->name, bwi_format_shape(found, y->ndim, y->extent));
    }
    if (node->inputs > 2 && bwi_shape_count(&node->input[2]->shape) != 1) {
        const bwi_shape *w = &node->input[2]->shape;
        return bwi_fail(graph->ctx, BW_INVALID_ARGUMENT, "%s: expected one weight a sample and no mask, got %s", node->name,
                        bwi_format_shape(found, w->ndim, w->extent));
    }
    return BW_OK;
}

static bwi_rows rows_of(const bwi_call *call)
{
    const bwi_shape *x = &call->node->input[0]->shape;
    return (bwi_rows){.samples = call->samples, .count = 1, .width = bwi_shape_count(x), .weights = call->node->inputs > 2 ? 1 : 0};
}

static bw_status prepare(bwi_prepare *p)
{
    const bwi_shape *x = &p->node->input[0]->shape, *y = &p->node->input[1]->shape;
    const bwi_loss_kernels *loss = bwi_kernels_of(p->ctx)->loss;
    size_t doubles = (size_t)loss->ctc_scratch(x->extent[0], x->extent[1], y->extent[0]);
    p->workspace_bytes = (size_t)(bwi_shape_count(x) * p->samples) * sizeof(float);
    p->scratch_bytes = doubles * sizeof(double) + (size_t)p->samples * sizeof(float);
    return BW_OK;
}

/* Targets that no path through the output can spell are refused with the sample, since their loss would be infinite. */
static bw_status forward(const bwi_call *call, const bwi_tile *tile)
{
    const bwi_loss_kernels *loss = call->kernels->loss;
    const bwi_shape *x = &call->node->input[0]->shape, *y = &call->node->input[1]->shape;
    int64_t times = x->extent[0], classes = x->extent[1], length = y->extent[0];
    int64_t bad = loss->bad_label(length * call->samples, classes, call->src[1]);
    if (bad >= 0) {
        snprintf(tile->error, BWI_ERROR_TEXT, "sample %lld: a label is outside 0..%lld: the output has %lld classes",
                 (long long)tile->numbers[bad / length], (long long)classes - 1, (long long)classes);
        return BW_INVALID_ARGUMENT;
    }
    bwi_rows rows = rows_of(call);
    void *row_loss = (unsigned char *)call->scratch + (size_t)loss->ctc_scratch(times, classes, length) * sizeof(double);
    int64_t late =
        loss->ctc(call->samples, times, classes, length, call->src[0], call->src[1], call->scratch, row_loss, call->workspace);
    if (late >= 0) {
        snprintf(tile->error, BWI_ERROR_TEXT, "sample %lld: %lld times of the output cannot spell its labels: they are too many",
                 (long long)tile->numbers[late], (long long)times);
        return BW_INVALID_ARGUMENT;
    }
    loss->mean_of_rows(&rows, row_loss, call->node->inputs > 2 ? call->src[2] : NULL, call->dst);
    return BW_OK;
}

static bw_status backward(const bwi_call *call, const bwi_tile *tile)
{
    (void)tile;
    bwi_rows rows = rows_of(call);
    call->kernels->loss->scale_rows(&rows, call->workspace, call->node->inputs > 2 ? call->src[2] : NULL, call->diff_dst,
                                    call->diff_src[0]);
    return BW_OK;
}

const bwi_op bwi_op_ctc = {.name = "ctc",
                           .backward_reads = BWI_READS_WORKSPACE | BWI_READS_SRC,
                           .layout = BWI_LAYOUT_CHANNELS_LAST,
                           .shape = shape,
                           .prepare = prepare,
                           .forward = forward,
                           .backward = backward};
