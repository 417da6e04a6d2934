/*
 * Sequences of several lengths (bw_bucket). The model is built once more for each shorter length, from its layers and with the same
 * variables, into the same graph, and each length has separate programs in the plan. A piece is fed in blocks of bounded size, and
 * a block is fed length by length, with samples of one length in their order. So a window is the same set of samples as without
 * buckets, its sums are those over all of them, and nothing is computed for padding beyond a sample's length.
 */
#include "train/internal.h"

#include <string.h>

/* The number of samples that are sorted by length at a time, which bounds the memory for any batch size. */
enum { BLOCK = 1024 };

/* ---- Building ---- */

typedef struct builder {
    bwi_session *session;
    const bw_model *model;
    const bw_dataset *dataset;
    int64_t length, longest;
    bw_node **nodes; /* of each value of each use (bwi_result) */
} builder;

static bw_node *add_input(const builder *b, const bw_node *node, bw_dtype dtype)
{
    bwi_input_attributes a = *(const bwi_input_attributes *)node->attributes;
    a.field = bwi_fields_find(b->dataset, &a);
    a.dtype = dtype;
    if (a.shape.ndim > 0 && a.shape.extent[0] == b->longest) {
        a.shape.extent[0] = b->length;
    }
    return bwi_graph_add(&b->session->graph, &bwi_op_input, node->name, &a, sizeof a, NULL, 0, NULL, 0);
}

/* An expression's input may serve as numbers and as indices, so each use gets a node of the type that its layer takes. */
static bw_node *input_for(builder *b, const bwi_use *use, int k)
{
    bw_node **node = &b->nodes[bwi_result(use->input[k], use->part[k])];
    const bwi_use *from = &b->model->uses[use->input[k]];
    if (from->layer >= 0) {
        return *node;
    }
    bool indices = b->model->layers[use->layer].row->flags & BWI_LAYER_INDICES;
    bw_dtype dtype = b->model->by_calls ? from->node->dtype : indices ? BW_I32 : BW_F32;
    if (!*node || (*node)->dtype != dtype) {
        *node = add_input(b, from->node, dtype);
    }
    return *node;
}

/* Builds a layer of the model once more, on inputs of this length and with the variables that it already has. */
static bw_status build_use(builder *b, int number)
{
    const bwi_use *use = &b->model->uses[number];
    bwi_graph *graph = &b->session->graph;
    bw_node *inputs[BWI_MAX_POINTS];
    if (use->layer < 0) {
        return BW_OK; /* inputs are made where they are used */
    }
    bwi_layer *layer = &b->model->layers[use->layer];
    for (int k = 0; k < use->inputs; k++) {
        if (use->input[k] < 0) {
            return bwi_fail(graph->ctx, BW_UNIMPLEMENTED,
                            "buckets: layer %s takes what no layer made; only models of layers are supported", layer->name);
        }
        inputs[k] = input_for(b, use, k);
    }
    graph->reusing = true;
    graph->reuse = layer->first_variable;
    bw_node **nodes = &b->nodes[bwi_result(number, 0)];
    nodes[0] = bwi_layer_build(layer, graph, inputs, use->inputs);
    graph->reusing = false;
    if (nodes[0]) {
        for (int part = 1; part <= graph->parts.count; part++) {
            nodes[part] = graph->parts.node[part - 1];
        }
        return BW_OK;
    }
    bw_status status = bwi_pending(graph->ctx);
    return bwi_fail_again(graph->ctx, status, bwi_in_layer(layer->name), "buckets: at length %lld: %s", (long long)b->length,
                          graph->ctx->message);
}

/* Targets have one shape, so the shape of an output must not depend on the length. */
static bw_status find_outputs(const builder *b)
{
    bwi_session *s = b->session;
    for (int k = 0; k < b->model->output_count; k++) {
        int value = bwi_result(b->model->use_count, 0) - 1;
        while (value >= 0 &&
               bwi_use_value(&b->model->uses[bwi_result_use(value)], bwi_result_part(value)) != b->model->outputs[k]) {
            value--;
        }
        bw_node *output = value >= 0 ? b->nodes[value] : NULL;
        if (!output || !bwi_shape_equal(&output->shape, &s->outputs[k]->shape)) {
            return bwi_fail(s->graph.ctx, BW_UNIMPLEMENTED, "buckets: output %s is not of one shape at every length",
                            s->outputs[k]->name);
        }
        snprintf(output->name, sizeof output->name, "%s", s->outputs[k]->name);
        s->outputs[k] = output;
    }
    return BW_OK;
}

static bw_status build_length(bwi_session *s, const bw_dataset *dataset, const bwi_session_options *options, int64_t length,
                              int64_t longest)
{
    const bw_model *model = s->training->model;
    builder b = {.session = s, .model = model, .dataset = dataset, .length = length, .longest = longest};
    b.nodes = bwi_allocate(s->graph.ctx, (size_t)bwi_result(model->use_count, 0), sizeof(bw_node *));
    bw_status status = b.nodes ? BW_OK : BW_RESOURCE_EXHAUSTED;
    for (int use = 0; use < model->use_count && status == BW_OK; use++) {
        status = build_use(&b, use);
    }
    if (status == BW_OK) {
        status = find_outputs(&b);
    }
    bwi_release(s->graph.ctx, (void *)b.nodes);
    s->loss_count = s->column_count = 0;
    return status == BW_OK && (options->train || options->evaluate) ? bwi_session_add_heads(s, dataset, options) : status;
}

/* Keeps the heads of one length. The session's heads are restored once all lengths have theirs. */
static void keep_heads(bwi_variant *to, const bwi_session *s)
{
    memcpy((void *)to->outputs, (const void *)s->outputs, sizeof to->outputs);
    memcpy((void *)to->losses, (const void *)s->losses, sizeof to->losses);
    for (int c = 0; c < s->column_count; c++) {
        to->columns[c] = s->columns[c].node;
    }
}

static bw_status build_lengths(bwi_session *s, const bw_dataset *dataset, const bwi_session_options *options,
                               const int64_t *lengths)
{
    int losses = s->loss_count, columns = s->column_count, last = s->variant_count - 1;
    bw_status status = BW_OK;
    keep_heads(&s->variants[last], s);
    for (int k = 0; k < last && status == BW_OK; k++) {
        memcpy((void *)s->outputs, (const void *)s->variants[last].outputs, sizeof s->outputs);
        status = build_length(s, dataset, options, lengths[k], lengths[last]);
        keep_heads(&s->variants[k], s);
    }
    memcpy((void *)s->outputs, (const void *)s->variants[last].outputs, sizeof s->outputs);
    memcpy((void *)s->losses, (const void *)s->variants[last].losses, sizeof s->losses);
    s->loss_count = losses;
    s->column_count = columns;
    for (int c = 0; c < columns; c++) {
        s->columns[c].node = s->variants[last].columns[c];
    }
    return status;
}

/* A whole-batch op needs all samples of a batch in one program, but here they are spread over several. */
static bw_status check_layers(const bwi_session *s, bool train)
{
    for (int n = 0; train && n < s->graph.count; n++) {
        const bw_node *node = s->graph.nodes[n];
        if (node->op->sums && !(node->op->flags & BWI_OP_SUMS)) {
            return bwi_fail(s->graph.ctx, BW_UNIMPLEMENTED, "buckets: layer %s needs the whole batch, at one length", node->name);
        }
    }
    return s->training->model->loss_count == 0
               ? BW_OK
               : bwi_fail(s->graph.ctx, BW_UNIMPLEMENTED, "buckets: losses added by calls are not supported with buckets");
}

bw_status bwi_session_add_lengths(bwi_session *s, const bw_dataset *dataset, const bwi_session_options *options)
{
    bw_context *ctx = s->graph.ctx;
    const int64_t *lengths;
    int count = bwi_dataset_lengths(dataset, &lengths);
    s->own_nodes = s->graph.count;
    if (count < 2) {
        return BW_OK;
    }
    bw_status status = check_layers(s, options->train);
    s->variants = bwi_allocate(ctx, (size_t)count, sizeof *s->variants);
    s->numbers = bwi_allocate(ctx, BLOCK, sizeof *s->numbers);
    s->indices = bwi_allocate(ctx, BLOCK, sizeof *s->indices);
    if (!s->variants || !s->numbers || !s->indices) {
        return BW_RESOURCE_EXHAUSTED;
    }
    s->variant_count = count;
    if (status == BW_OK) {
        status = build_lengths(s, dataset, options, lengths);
    }
    for (int k = 0; k < s->output_count && options->predict && status == BW_OK; k++) {
        s->predicted[k] = bwi_allocate(ctx, BLOCK, (size_t)bwi_shape_count(&s->outputs[k]->shape) * sizeof(float));
        status = s->predicted[k] ? BW_OK : BW_RESOURCE_EXHAUSTED;
    }
    return status;
}

void bwi_session_free_lengths(bwi_session *s)
{
    bw_context *ctx = s->graph.ctx;
    bwi_release(ctx, s->variants);
    bwi_release(ctx, s->numbers);
    bwi_release(ctx, s->indices);
    for (int k = 0; k < s->output_count; k++) {
        bwi_release(ctx, s->predicted[k]);
        s->predicted[k] = NULL;
    }
    s->variants = NULL;
    s->numbers = s->indices = NULL;
    s->variant_count = 0;
}

/* ---- Feeding ---- */

/* Adds the sums of the last feed to the columns, which all lengths share. */
static void add_sums(const bwi_session *s, const bwi_variant *variant)
{
    for (int c = 0; c < s->column_count; c++) {
        const bw_node *node = variant->columns[c];
        const double *sums = bwi_exec_sums(s->exec, node);
        for (int64_t i = 0; i < node->op->sums->count(node); i++) {
            s->columns[c].fed[i] += sums[i];
        }
    }
}

static void put_predictions(const bwi_session *s, const bwi_piece *part, float *const *predictions)
{
    for (int k = 0; k < s->output_count; k++) {
        int64_t floats = bwi_shape_count(&s->outputs[k]->shape);
        for (int64_t i = 0; i < part->count; i++) {
            memcpy(predictions[k] + s->indices[i] * floats, s->predicted[k] + i * floats, (size_t)floats * sizeof(float));
        }
    }
}

/* Feeds the samples of one length among those from `first` up to `end`. */
static bw_status feed_length(bwi_session *s, int which, const bwi_piece *piece, int64_t first, int64_t end, int length,
                             float *const *predictions)
{
    bwi_piece part = {.dataset = piece->dataset,
                      .epoch = piece->epoch,
                      .first = piece->first + first,
                      .numbers = s->numbers,
                      .scattered = true,
                      .unaugmented = piece->unaugmented};
    for (int64_t i = first; i < end; i++) {
        int64_t number = bwi_piece_number(piece, i);
        if (bwi_dataset_bucket(piece->dataset, number) == length) {
            s->indices[part.count] = i;
            s->numbers[part.count++] = number;
        }
    }
    if (part.count == 0) {
        return BW_OK;
    }
    const bwi_variant *variant = &s->variants[length];
    bw_status status = bwi_exec_feed(s->exec, variant->program[which], &part, predictions ? s->predicted : NULL);
    if (status == BW_OK) {
        add_sums(s, variant);
    }
    if (status == BW_OK && predictions) {
        put_predictions(s, &part, predictions);
    }
    return status;
}

bw_status bwi_session_feed_lengths(bwi_session *s, int which, const bwi_piece *piece, float *const *predictions)
{
    bw_status status = BW_OK;
    for (int c = 0; c < s->column_count; c++) {
        memset(s->columns[c].fed, 0, (size_t)s->columns[c].node->op->sums->count(s->columns[c].node) * sizeof(double));
    }
    for (int64_t first = 0; first < piece->count && status == BW_OK; first += BLOCK) {
        int64_t end = piece->count - first < BLOCK ? piece->count : first + BLOCK;
        for (int length = 0; length < s->variant_count && status == BW_OK; length++) {
            status = feed_length(s, which, piece, first, end, length, predictions);
        }
    }
    return status;
}
