/*
 * What a run is: model, optimizer, losses, samples and options, as names and texts. A run is resumed only if all of them are the
 * same; otherwise its user is told which one is not. What changes no bit of the result (workers, ranks, memory, callbacks) and how
 * many epochs there are is not part of it.
 */
#include "train/checkpoint/checkpoint.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

static __attribute__((format(printf, 2, 0))) char *print_text(bw_context *ctx, const char *format, va_list arguments)
{
    va_list again;
    va_copy(again, arguments);
    int length = bwi_format(NULL, 0, format, arguments);
    char *text = length < 0 ? NULL : bwi_allocate(ctx, (size_t)length + 1, 1);
    if (text) {
        bwi_format(text, (size_t)length + 1, format, again);
    }
    va_end(again);
    return text;
}

static bool grow(bwi_identity *identity)
{
    if (identity->count < identity->capacity) {
        return true;
    }
    int capacity = 2 * identity->capacity + 32;
    bwi_identity_fact *larger =
        bwi_grow(identity->ctx, identity->facts, (size_t)identity->count, (size_t)capacity, sizeof *identity->facts);
    if (larger) {
        identity->facts = larger;
        identity->capacity = capacity;
    }
    return larger;
}

void bwi_identity_add(bwi_identity *identity, const char *name, const char *format, ...)
{
    if (identity->failed || !grow(identity)) {
        identity->failed = true;
        return;
    }
    bwi_identity_fact *fact = &identity->facts[identity->count];
    va_list arguments;
    va_start(arguments, format);
    fact->text = print_text(identity->ctx, format, arguments);
    va_end(arguments);
    snprintf(fact->name, sizeof fact->name, "%s", name);
    identity->failed = !fact->text;
    identity->count += fact->text ? 1 : 0;
}

void bwi_identity_free(bwi_identity *identity)
{
    for (int i = 0; i < identity->count; i++) {
        bwi_release(identity->ctx, identity->facts[i].text);
    }
    bwi_release(identity->ctx, identity->facts);
    *identity = (bwi_identity){.ctx = identity->ctx};
}

/* ---- Models ---- */

/* Adds " name=value". Numbers are written with all of their digits. */
static void add_argument(bwi_text *text, const char *name, bwi_kind kind, const bwi_argument_value *value)
{
    char digits[BWI_SHORTEST_SIZE];
    bwi_text_add(text, "%s%s=", text->length ? " " : "", name);
    switch (kind) {
    case BWI_INT:
        bwi_text_add(text, "%" PRId64, value->integer);
        break;
    case BWI_FLOAT:
        bwi_text_add(text, "%s", bwi_shortest(digits, value->number));
        break;
    case BWI_BOOL:
        bwi_text_add(text, "%s", value->flag ? "true" : "false");
        break;
    case BWI_INTS:
        for (int i = 0; i < value->count; i++) {
            bwi_text_add(text, "%s%" PRId64, i ? "," : "", value->integers[i]);
        }
        break;
    case BWI_FLOATS:
        for (int i = 0; i < value->count; i++) {
            bwi_text_add(text, "%s%s", i ? "," : "", bwi_shortest(digits, value->numbers[i]));
        }
        break;
    case BWI_TEXT:
    case BWI_CALL:
        bwi_text_add(text, "%s", value->text);
        break;
    }
}

static void add_arguments(bwi_text *text, const bwi_argument *arguments, int count, const bwi_argument_value *values)
{
    for (int k = 0; k < count; k++) {
        add_argument(text, arguments[k].name, arguments[k].kind, &values[k]);
    }
}

/* Adds a text that was put together as a fact, and frees it. */
static void add_text(bwi_identity *identity, const char *name, bwi_text *text)
{
    identity->failed |= text->failed;
    bwi_identity_add(identity, name, "%s", text->bytes ? text->bytes : "");
    bwi_text_free(text);
}

static void add_layer(bwi_identity *identity, const bwi_layer *layer)
{
    char name[96];
    bwi_text text = {.ctx = identity->ctx};
    bwi_text_add(&text, "%s%s", layer->row->class_name, layer->trainable ? "" : " frozen");
    add_arguments(&text, layer->row->arguments, layer->row->argument_count, layer->values);
    for (int k = 0; (layer->row->flags & BWI_LAYER_OPERATOR) && k <= BWI_OPERATOR_DROPS; k++) {
        add_argument(&text, "number", BWI_FLOAT, &layer->values[k]);
        add_argument(&text, "numbers", BWI_INTS, &layer->values[k]);
    }
    for (int k = 0; k < 2; k++) {
        const bwi_layer *inner = layer->inner[k];
        if (inner) {
            bwi_text_add(&text, " %s%s", inner->row->class_name, inner->trainable ? "" : " frozen");
            add_arguments(&text, inner->row->arguments, inner->row->argument_count, inner->values);
        }
    }
    snprintf(name, sizeof name, "layer %s", layer->name);
    add_text(identity, name, &text);
}

/* What operators compute that a program calls without a layer (bw_affine, bw_slice, ...), member by member, since structs may have
 * gaps. Arguments of layers are compared with these. */
#define MEMBER(op, type, member)                                     \
    {                                                                \
        &op, offsetof(type, member), sizeof((const type *)0)->member \
    }
static const struct {
    const bwi_op *op;
    size_t offset, bytes;
} MEMBERS[] = {
    MEMBER(bwi_op_scale, bwi_scale_attributes, scale),
    MEMBER(bwi_op_scale, bwi_scale_attributes, offset),
    MEMBER(bwi_op_unary, bwi_unary_attributes, kind),
    MEMBER(bwi_op_unary, bwi_unary_attributes, a),
    MEMBER(bwi_op_unary, bwi_unary_attributes, b),
    MEMBER(bwi_op_add, bwi_add_attributes, subtract),
    MEMBER(bwi_op_add, bwi_add_attributes, scale),
    MEMBER(bwi_op_binary, bwi_binary_attributes, kind),
    MEMBER(bwi_op_reduce, bwi_reduce_attributes, kind),
    MEMBER(bwi_op_reduce, bwi_reduce_attributes, axis),
    MEMBER(bwi_op_reduce, bwi_reduce_attributes, keepdims),
    MEMBER(bwi_op_reduce_extreme, bwi_reduce_attributes, kind),
    MEMBER(bwi_op_reduce_extreme, bwi_reduce_attributes, axis),
    MEMBER(bwi_op_reduce_extreme, bwi_reduce_attributes, keepdims),
    MEMBER(bwi_op_dot, bwi_dot_attributes, axis),
    MEMBER(bwi_op_slice, bwi_slice_attributes, axis),
    MEMBER(bwi_op_slice, bwi_slice_attributes, start),
    MEMBER(bwi_op_slice, bwi_slice_attributes, count),
    MEMBER(bwi_op_activation, bwi_activation_attributes, kind),
    MEMBER(bwi_op_activation, bwi_activation_attributes, p),
};
#undef MEMBER

static uint64_t hash_node(uint64_t hash, const bw_node *node)
{
    hash = bwi_hash(hash, node->op->name, strlen(node->op->name));
    for (size_t k = 0; k < BWI_COUNT(MEMBERS); k++) {
        if (MEMBERS[k].op == node->op && MEMBERS[k].offset + MEMBERS[k].bytes <= node->attribute_bytes) {
            hash = bwi_hash(hash, (const char *)node->attributes + MEMBERS[k].offset, MEMBERS[k].bytes);
        }
    }
    hash = bwi_hash(hash, node->shape.extent, (size_t)node->shape.ndim * sizeof node->shape.extent[0]);
    for (int k = 0; k < node->inputs; k++) {
        hash = bwi_hash(hash, &node->input[k]->number, sizeof node->input[k]->number);
    }
    if (node->activity[0] > 0 || node->activity[1] > 0) {
        hash = bwi_hash(hash, node->activity, sizeof node->activity);
    }
    for (int k = 0; k < node->variables; k++) {
        hash = bwi_hash(hash, &node->variable[k]->index, sizeof node->variable[k]->index);
    }
    return hash;
}

/* Layers are compared one by one, so that the one that differs is named; how they are connected is one hash. */
void bwi_identity_add_model(bwi_identity *identity, const bw_model *model)
{
    uint64_t nodes = 0, variables = 0;
    for (int n = 0; n < model->graph.count; n++) {
        nodes = hash_node(nodes, model->graph.nodes[n]);
    }
    for (int v = 0; v < model->graph.variable_count; v++) {
        const bwi_variable *variable = model->graph.variables[v];
        const bwi_constraint *c = &variable->constraint;
        const float numbers[3] = {variable->l1, variable->l2, variable->trainable ? 1.0F : 0.0F};
        const float limits[] = {variable->orthogonal,
                                variable->orthogonal_columns ? 1.0F : 0.0F,
                                c->nonnegative ? 1.0F : 0.0F,
                                (float)c->axes,
                                c->low,
                                c->high,
                                c->rate};
        variables = bwi_hash(variables, variable->name, strlen(variable->name));
        variables = bwi_hash(variables, variable->shape.extent, (size_t)variable->shape.ndim * sizeof variable->shape.extent[0]);
        variables = bwi_hash(variables, numbers, sizeof numbers);
        if (variable->orthogonal > 0 || c->nonnegative || c->norms) {
            variables = bwi_hash(variables, limits, sizeof limits);
        }
    }
    bwi_identity_add(identity, "layers", "%d", model->layer_count);
    for (int l = 0; l < model->layer_count; l++) {
        add_layer(identity, &model->layers[l]);
    }
    bwi_identity_add(identity, "variables", "%d with hash %016" PRIx64, model->graph.variable_count, variables);
    bwi_identity_add(identity, "connections", "%d nodes with hash %016" PRIx64, model->graph.count, nodes);
}

/* ---- Optimizer, losses, metrics ---- */

static void add_schedule(bwi_text *text, const bwi_schedule *schedule)
{
    bwi_text_add(text, " %s", schedule->row->name);
    add_arguments(text, schedule->row->arguments, schedule->row->argument_count, schedule->values);
    for (int k = 0; k < schedule->boundary_count; k++) {
        char digits[2][BWI_SHORTEST_SIZE];
        bwi_text_add(text, " %s:%s", bwi_shortest(digits[0], schedule->boundaries[k]), bwi_shortest(digits[1], schedule->rates[k]));
    }
}

void bwi_identity_add_training(bwi_identity *identity, const bwi_training *t, bool schedule)
{
    bwi_text text = {.ctx = identity->ctx};
    bwi_text_add(&text, "%s", t->optimizer.row->name);
    add_arguments(&text, t->optimizer.row->arguments, t->optimizer.row->argument_count, t->optimizer.values);
    if (schedule && t->optimizer.schedule.row) {
        add_schedule(&text, &t->optimizer.schedule);
    }
    add_text(identity, "optimizer", &text);
    text = (bwi_text){.ctx = identity->ctx};
    for (int k = 0; k < t->loss_count; k++) {
        const bwi_chosen_loss *loss = &t->losses[k];
        char digits[BWI_SHORTEST_SIZE];
        bwi_text_add(&text, "%s%s:%s %s %s ", k ? ", " : "", loss->output, loss->row ? loss->row->names : "none",
                     bwi_shortest(digits, loss->weight), bwi_reduction_names[loss->reduction]);
        add_arguments(&text, loss->row ? loss->row->arguments : NULL, loss->row ? loss->row->argument_count : 0, loss->values);
    }
    add_text(identity, "loss", &text);
}

/* ---- Samples and options ---- */

bw_status bwi_identity_add_data(bwi_identity *identity, const char *name, const bw_dataset *dataset)
{
    static const char *const parts[] = {"samples", "order of samples", "values", "augmentation"};
    bwi_fingerprint print;
    bw_status status = dataset ? bwi_dataset_fingerprint(dataset, &print) : BW_OK;
    char names[BWI_COUNT(parts)][96];
    for (size_t k = 0; k < BWI_COUNT(parts); k++) {
        snprintf(names[k], sizeof names[k], "%s: %s", name, parts[k]);
    }
    if (status != BW_OK) {
        return status;
    }
    bwi_identity_add(identity, names[0], "%" PRId64, dataset ? bw_dataset_count(dataset) : 0);
    if (dataset) {
        bwi_identity_add(identity, names[1], "%016" PRIx64, print.order);
        bwi_identity_add(identity, names[2], "%016" PRIx64, print.values);
        bwi_identity_add(identity, names[3], "%016" PRIx64, print.augmented);
    }
    return identity->failed ? BW_RESOURCE_EXHAUSTED : BW_OK;
}

void bwi_identity_add_options(bwi_identity *identity, const bw_fit_options *o)
{
    char digits[BWI_SHORTEST_SIZE];
    bwi_identity_add(identity, "seed", "%" PRIu64, o->seed);
    if (o->batch_sizes) {
        bwi_identity_add(identity, "batch", "%s", o->batch_sizes);
    } else {
        bwi_identity_add(identity, "batch", "%" PRId64, o->batch);
    }
    bwi_identity_add(identity, "accumulate", "%d", o->accumulate);
    bwi_identity_add(identity, "drop_remainder", "%s", o->drop_remainder ? "true" : "false");
    bwi_identity_add(identity, "validation_split", "%s", bwi_shortest(digits, o->validation_split));
    bwi_identity_add(identity, "early_stopping", "%s", o->early_stopping ? o->early_stopping : "none");
    bwi_identity_add(identity, "reduce_lr_on_plateau", "%s", o->reduce_lr_on_plateau ? o->reduce_lr_on_plateau : "none");
    bwi_identity_add(identity, "on_nan", "%s", o->on_nan == BW_NAN_SKIP ? "skip" : "stop");
    bwi_identity_add(identity, "noise_every", "%d", o->noise_every);
    bwi_identity_add(identity, "exact_kernels", "%s", identity->ctx->exact_kernels ? "true" : "false");
    uint64_t weights = o->class_weight ? bwi_hash(1, o->class_weight, (size_t)o->class_count * sizeof *o->class_weight) : 0;
    bwi_identity_add(identity, "class_weight", "%d with hash %016" PRIx64, o->class_count, weights);
}

/* ---- Manifests ---- */

void bwi_identity_write(const bwi_identity *identity, bwi_json_writer *writer)
{
    bwi_json_begin(writer, "run", '{');
    for (int i = 0; i < identity->count; i++) {
        bwi_json_put_text(writer, identity->facts[i].name, identity->facts[i].text);
    }
    bwi_json_end(writer);
}

static bw_status refuse(bw_context *ctx, const char *where, const char *name, const char *was, const char *is)
{
    char before[BWI_QUOTE_SIZE], now[BWI_QUOTE_SIZE];
    return bwi_fail_file(ctx, BW_INVALID_ARGUMENT, where, "it cannot be resumed with another %s: it was %s, it is %s now", name,
                         was ? bwi_quote(before, was, strlen(was)) : "not there",
                         is ? bwi_quote(now, is, strlen(is)) : "not there");
}

bw_status bwi_identity_compare(const bwi_identity *identity, const bwi_json *recorded, bool all, const char *where)
{
    for (int i = 0; i < identity->count; i++) {
        const bwi_identity_fact *fact = &identity->facts[i];
        const char *was = bwi_json_text(bwi_json_get(recorded, fact->name));
        if (!was || strcmp(was, fact->text) != 0) {
            return refuse(identity->ctx, where, fact->name, was, fact->text);
        }
    }
    const char *key = NULL;
    for (const bwi_json *value = all ? bwi_json_next(recorded, &key) : NULL; value; value = bwi_json_next(recorded, &key)) {
        bool known = false;
        for (int i = 0; i < identity->count && !known; i++) {
            known = strcmp(identity->facts[i].name, key) == 0;
        }
        if (!known) {
            return refuse(identity->ctx, where, key, bwi_json_text(value), NULL);
        }
    }
    return BW_OK;
}
