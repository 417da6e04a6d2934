/* Activations by name, and the layers that consist of nothing else: Activation, ReLU, LeakyReLU, ELU, PReLU, Softmax. */
#include "layer/internal.h"

#include <math.h>
#include <string.h>

typedef struct activation_row {
    const char *name;
    const bwi_op *op; /* NULL: no op is needed */
    bool bare;        /* the op has no attributes */
    bwi_activation_attributes attributes;
    bw_node *(*build)(bwi_graph *graph, const char *layer, bw_node *x); /* put together from several ops; NULL: from one */
} activation_row;

/* z - ln(sum e^z) over the last axis with z = x - max x. */
static bw_node *build_log_softmax(bwi_graph *graph, const char *layer, bw_node *x)
{
    bwi_activation_attributes exponential = {.kind = BWI_EXPONENTIAL};
    bool named[BW_MAX_NDIM] = {false};
    named[x->shape.ndim > 0 ? x->shape.ndim - 1 : 0] = true;
    bw_node *z = bwi_compose_subtract(graph, layer, x, bwi_compose_reduce(graph, layer, x, BWI_REDUCE_MAX, named));
    bw_node *e = bwi_graph_add(graph, &bwi_op_activation, layer, &exponential, sizeof exponential, &z, 1, NULL, 0);
    bw_node *sum = bwi_compose_reduce(graph, layer, e, BWI_REDUCE_SUM, named);
    return bwi_compose_subtract(graph, layer, z, bwi_compose_unary(graph, layer, sum, BWI_LOG, 0, 0));
}

/* The first half of the last axis times the sigmoid of the second one. */
static bw_node *build_glu(bwi_graph *graph, const char *layer, bw_node *x)
{
    int axis = x->shape.ndim - 1;
    if (axis < 0 || x->shape.extent[axis] % 2) {
        return bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: glu divides the last axis, whose extent must be even",
                              layer);
    }
    int64_t half = x->shape.extent[axis] / 2;
    bwi_slice_attributes first = {.axis = axis, .count = half}, second = {.axis = axis, .start = half, .count = half};
    bwi_activation_attributes sigmoid = {.kind = BWI_SIGMOID};
    bw_node *a = bwi_graph_add(graph, &bwi_op_slice, layer, &first, sizeof first, &x, 1, NULL, 0);
    bw_node *b = bwi_graph_add(graph, &bwi_op_slice, layer, &second, sizeof second, &x, 1, NULL, 0);
    b = bwi_graph_add(graph, &bwi_op_activation, layer, &sigmoid, sizeof sigmoid, &b, 1, NULL, 0);
    return bwi_compose_multiply(graph, layer, a, b);
}

/* selu: scale (x > 0 ? x : alpha (e^x - 1)) with Keras's scale and alpha. */
static const activation_row activations[] = {
    {"linear", NULL, true, {0, {0}}, NULL},
    {"relu", &bwi_op_relu, true, {0, {0}}, NULL},
    {"sigmoid", &bwi_op_activation, false, {BWI_SIGMOID, {0}}, NULL},
    {"tanh", &bwi_op_activation, false, {BWI_TANH, {0}}, NULL},
    {"softmax", &bwi_op_softmax, true, {0, {0}}, NULL},
    {"elu", &bwi_op_activation, false, {BWI_ELU, {1, 1, 0}}, NULL},
    {"selu", &bwi_op_activation, false, {BWI_ELU, {1.05070098F, 1.05070098F * 1.67326324F, 0}}, NULL},
    {"softplus", &bwi_op_activation, false, {BWI_SOFTPLUS, {0}}, NULL},
    {"softsign", &bwi_op_activation, false, {BWI_SOFTSIGN, {0}}, NULL},
    {"silu", &bwi_op_activation_of_input, false, {BWI_SILU, {0}}, NULL},
    {"swish", &bwi_op_activation_of_input, false, {BWI_SILU, {0}}, NULL},
    {"gelu", &bwi_op_activation_of_input, false, {BWI_GELU, {0}}, NULL},
    {"leaky_relu", &bwi_op_activation, false, {BWI_LEAKY_RELU, {0.2F, 0, 0}}, NULL},
    {"relu6", &bwi_op_activation, false, {BWI_BENT_RELU, {0, 6, 0}}, NULL},
    {"exponential", &bwi_op_activation, false, {BWI_EXPONENTIAL, {0}}, NULL},
    {"hard_sigmoid", &bwi_op_activation, false, {BWI_HARD_SIGMOID, {0}}, NULL},
    {"hard_silu", &bwi_op_activation_of_input, false, {BWI_HARD_SILU, {0}}, NULL},
    {"hard_swish", &bwi_op_activation_of_input, false, {BWI_HARD_SILU, {0}}, NULL},
    {"hard_tanh", &bwi_op_activation, false, {BWI_HARD_TANH, {0}}, NULL},
    {"mish", &bwi_op_activation_of_input, false, {BWI_MISH, {0}}, NULL},
    {"celu", &bwi_op_activation, false, {BWI_ELU, {1, 1, 0}}, NULL}, /* as elu while alpha is 1, which no name changes */
    {"squareplus", &bwi_op_activation_of_input, false, {BWI_SQUAREPLUS, {4, 0, 0}}, NULL},
    {"log_sigmoid", &bwi_op_activation, false, {BWI_LOG_SIGMOID, {0}}, NULL},
    {"soft_shrink", &bwi_op_activation, false, {BWI_SOFT_SHRINK, {0.5F, 0, 0}}, NULL},
    {"hard_shrink", &bwi_op_activation, false, {BWI_HARD_SHRINK, {0.5F, 0, 0}}, NULL},
    {"tanh_shrink", &bwi_op_activation_of_input, false, {BWI_TANH_SHRINK, {0}}, NULL},
    {"sparse_plus", &bwi_op_activation_of_input, false, {BWI_SPARSE_PLUS, {0}}, NULL},
    {"sparse_sigmoid", &bwi_op_activation, false, {BWI_SPARSE_SIGMOID, {0}}, NULL},
    {"log_softmax", NULL, true, {0, {0}}, build_log_softmax},
    {"glu", NULL, true, {0, {0}}, build_glu},
    {"sparsemax", &bwi_op_sparsemax, true, {0, {0}}, NULL},
};

static bw_node *add(bwi_graph *graph, const char *layer, bw_node *node, const bwi_op *op, const bwi_activation_attributes *a)
{
    return bwi_graph_add(graph, op, layer, a, a ? sizeof *a : 0, &node, 1, NULL, 0);
}

const char *bwi_activation_name(int index)
{
    return index >= 0 && index < (int)BWI_COUNT(activations) ? activations[index].name : NULL;
}

/* A layer with arguments, such as leaky_relu(0.1). Those with variables are none. */
static bw_node *add_called(bwi_graph *graph, const char *layer, bw_node *node, const char *activation)
{
    static const bwi_layer_row *const rows[] = {&bwi_layer_relu, &bwi_layer_leaky_relu, &bwi_layer_elu, &bwi_layer_softmax};
    bwi_expression e;
    if (bwi_term_parse(graph->ctx, &e, layer, activation) != BW_OK) {
        return bwi_pass_on(graph->ctx);
    }
    bwi_layer own = {.row = NULL};
    snprintf(own.name, sizeof own.name, "%s", layer);
    for (size_t i = 0; i < BWI_COUNT(rows) && !own.row; i++) {
        bool found = bwi_term_resembles_any(&e.terms[0], rows[i]->names) || bwi_term_resembles(&e.terms[0], rows[i]->class_name);
        own.row = found ? rows[i] : NULL;
    }
    if (!own.row) {
        node =
            bwi_fail_build(graph->ctx, BW_UNIMPLEMENTED,
                           "layer %s: %s is not supported as an activation; relu, leaky_relu, elu and softmax may have arguments",
                           layer, activation);
    } else if (bwi_arguments_read(graph->ctx, layer, &e.terms[0], own.row->arguments, own.row->argument_count, own.values) !=
               BW_OK) {
        node = bwi_pass_on(graph->ctx);
    } else {
        node = own.row->build(&own, graph, &node, 1);
    }
    bwi_expression_free(&e);
    return node;
}

static bw_node *refuse(const bwi_graph *graph, const char *layer, const char *activation)
{
    bwi_known known = bwi_known_begin(graph->ctx, activation, strlen(activation));
    for (size_t i = 0; i < BWI_COUNT(activations); i++) {
        bwi_known_add(&known, activations[i].name);
    }
    bw_node *none = bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: there is no activation '%s'; %s", layer, activation,
                                   bwi_known_hint(&known));
    bwi_text_free(&known.list);
    return none;
}

bw_node *bwi_activation_add(bwi_graph *graph, const char *layer, bw_node *node, const char *activation)
{
    if (!node) {
        return NULL;
    }
    if (strchr(activation, '(')) {
        return add_called(graph, layer, node, activation);
    }
    for (size_t i = 0; i < BWI_COUNT(activations); i++) {
        const activation_row *row = &activations[i];
        if (strcmp(activation, row->name) == 0 && row->build) {
            return row->build(graph, layer, node);
        }
        if (strcmp(activation, row->name) == 0) {
            return row->op ? add(graph, layer, node, row->op, row->bare ? NULL : &row->attributes) : node;
        }
    }
    return refuse(graph, layer, activation);
}

/* The identity and ReLU are formulas with parameters, too. */
bool bwi_activation_of_cell(bwi_graph *graph, const char *layer, const char *activation, bwi_cell_function *function)
{
    for (size_t i = 0; i < BWI_COUNT(activations); i++) {
        const activation_row *row = &activations[i];
        bool of_input = row->op == &bwi_op_activation_of_input, of_output = row->op == &bwi_op_activation;
        if (strcmp(activation, row->name) != 0) {
            continue;
        }
        if (!row->op && !row->build) {
            *function = (bwi_cell_function){.kind = BWI_LEAKY_RELU, .p = {1, 0, 0}};
        } else if (row->op == &bwi_op_relu) {
            *function = (bwi_cell_function){.kind = BWI_BENT_RELU, .p = {0, INFINITY, 0}};
        } else if (of_input || of_output) {
            const bwi_activation_attributes *a = &row->attributes;
            *function = (bwi_cell_function){.kind = a->kind, .p = {a->p[0], a->p[1], a->p[2]}, .of_input = of_input};
        } else {
            bwi_fail_build(graph->ctx, BW_UNIMPLEMENTED, "layer %s: %s is not supported as an activation of a recurrent layer",
                           layer, activation);
            return false;
        }
        return true;
    }
    refuse(graph, layer, activation);
    return false;
}

/* ---- Activation ---- */

enum { ACTIVATION, ACTIVATION_COUNT };

static const bwi_argument activation_arguments[ACTIVATION_COUNT] = {
    [ACTIVATION] = {"activation", NULL, BWI_TEXT, NULL, 0, 0, NULL}};

static bw_node *build_activation(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    return bwi_activation_add(graph, layer->name, inputs[0], layer->values[ACTIVATION].text);
}

const bwi_layer_row bwi_layer_activation = {"Activation",     "activation",     "activation",         activation_arguments,
                                            ACTIVATION_COUNT, build_activation, BWI_LAYER_PASSES_MASK};

/* ---- ReLU ---- */

enum { MAX_VALUE, NEGATIVE_SLOPE, THRESHOLD, RELU_COUNT };

static const bwi_argument relu_arguments[RELU_COUNT] = {
    [MAX_VALUE] = {"max_value", NULL, BWI_FLOAT, "", 0, 1e30, NULL},
    [NEGATIVE_SLOPE] = {"negative_slope", NULL, BWI_FLOAT, "0", 0, 1e30, NULL},
    [THRESHOLD] = {"threshold", NULL, BWI_FLOAT, "0", 0, 1e30, NULL},
};

static bw_node *leaky(bwi_graph *graph, const bwi_layer *layer, bw_node *x, float slope)
{
    bwi_activation_attributes a = {.kind = BWI_LEAKY_RELU, .p = {slope, 0, 0}};
    return slope > 0 ? add(graph, layer->name, x, &bwi_op_activation, &a) : add(graph, layer->name, x, &bwi_op_relu, NULL);
}

static bw_node *build_relu(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    const bwi_argument_value *v = layer->values;
    bwi_activation_attributes a = {.kind = BWI_BENT_RELU,
                                   .p = {(float)v[NEGATIVE_SLOPE].number, INFINITY, (float)v[THRESHOLD].number}};
    if (v[MAX_VALUE].given) {
        a.p[1] = (float)v[MAX_VALUE].number;
    } else if (a.p[2] <= 0) {
        return leaky(graph, layer, inputs[0], a.p[0]);
    }
    return add(graph, layer->name, inputs[0], &bwi_op_activation, &a);
}

const bwi_layer_row bwi_layer_relu = {"ReLU", "re_lu", "relu", relu_arguments, RELU_COUNT, build_relu, BWI_LAYER_PASSES_MASK};

/* ---- LeakyReLU, ELU ---- */

enum { SLOPE, SLOPE_COUNT };

static const bwi_argument leaky_arguments[SLOPE_COUNT] = {[SLOPE] = {"negative_slope", "alpha", BWI_FLOAT, "0.3", 0, 1e30, NULL}};
static const bwi_argument elu_arguments[SLOPE_COUNT] = {[SLOPE] = {"alpha", NULL, BWI_FLOAT, "1", 0, 1e30, NULL}};

static bw_node *build_leaky(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    return leaky(graph, layer, inputs[0], (float)layer->values[SLOPE].number);
}

static bw_node *build_elu(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    bwi_activation_attributes a = {.kind = BWI_ELU, .p = {1, (float)layer->values[SLOPE].number, 0}};
    return add(graph, layer->name, inputs[0], &bwi_op_activation, &a);
}

const bwi_layer_row bwi_layer_leaky_relu = {"LeakyReLU", "leaky_re_lu", "leaky_relu",         leaky_arguments,
                                            SLOPE_COUNT, build_leaky,   BWI_LAYER_PASSES_MASK};
const bwi_layer_row bwi_layer_elu = {"ELU", "elu", "elu", elu_arguments, SLOPE_COUNT, build_elu, BWI_LAYER_PASSES_MASK};

/* ---- PReLU ---- */

enum { SHARED_AXES, ALPHA_INITIALIZER, ALPHA_REGULARIZER, PRELU_COUNT };

static const bwi_argument prelu_arguments[PRELU_COUNT] = {
    [SHARED_AXES] = {"shared_axes", NULL, BWI_INTS, "", -BW_MAX_NDIM, BW_MAX_NDIM, NULL},
    [ALPHA_INITIALIZER] = {"alpha_initializer", NULL, BWI_CALL, "zeros", 0, 0, NULL},
    [ALPHA_REGULARIZER] = {"alpha_regularizer", NULL, BWI_CALL, "none", 0, 0, NULL},
};

static bw_node *build_prelu(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    const bwi_argument_value *shared = &layer->values[SHARED_AXES];
    bw_node *x = inputs[0];
    bwi_shape shape = x->shape;
    for (int i = 0; i < shared->count; i++) {
        int axis;
        if (!bwi_layer_axis(graph, layer, SHARED_AXES, shared->integers[i], shape.ndim, &axis)) {
            return NULL;
        }
        shape.extent[axis] = 1;
    }
    int64_t count = bwi_shape_count(&shape);
    bwi_variable *alpha = bwi_layer_variable(graph, layer, "alpha", &shape, ALPHA_INITIALIZER, ALPHA_REGULARIZER, count, count);
    return bwi_graph_add(graph, &bwi_op_prelu, layer->name, NULL, 0, &x, 1, &alpha, 1);
}

const bwi_layer_row bwi_layer_prelu = {
    "PReLU", "p_re_lu", "prelu", prelu_arguments, PRELU_COUNT, build_prelu, BWI_LAYER_PASSES_MASK};

/* ---- Softmax ---- */

enum { AXIS, SOFTMAX_COUNT };

static const bwi_argument softmax_arguments[SOFTMAX_COUNT] = {
    [AXIS] = {"axis", NULL, BWI_INTS, "-1", -BW_MAX_NDIM, BW_MAX_NDIM, NULL}};

/* Several axes are moved to the end and taken as one. */
static bw_node *softmax_over(const bwi_layer *layer, bwi_graph *graph, bw_node *x, const bool *named)
{
    bwi_permute_attributes there, back;
    int count = bwi_compose_last(&x->shape, named, &there, &back);
    bw_node *node = bwi_compose_permute(graph, layer->name, x, &there);
    bwi_shape moved = node ? node->shape : x->shape, flat = moved;
    for (int i = moved.ndim - count + 1; i < moved.ndim; i++) {
        flat.extent[moved.ndim - count] *= moved.extent[i];
    }
    flat.ndim = moved.ndim - count + 1;
    node = bwi_activation_add(graph, layer->name, bwi_compose_reshape(graph, layer->name, node, &flat), "softmax");
    return bwi_compose_permute(graph, layer->name, bwi_compose_reshape(graph, layer->name, node, &moved), &back);
}

/* One axis has an op of its own, the last one a faster one. */
static bw_node *build_softmax(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    const bwi_argument_value *v = &layer->values[AXIS];
    bwi_axis_attributes a = {.axis = -1};
    bw_node *x = inputs[0];
    bool named[BW_MAX_NDIM] = {false};
    int count = 0;
    for (int i = 0; i < v->count; i++) {
        if (!bwi_layer_axis(graph, layer, AXIS, v->integers[i], x->shape.ndim, &a.axis)) {
            return NULL;
        }
        count += !named[a.axis];
        named[a.axis] = true;
    }
    if (count < 1) {
        return bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: axis: expected at least one axis", layer->name);
    }
    if (count > 1) {
        return softmax_over(layer, graph, x, named);
    }
    if (a.axis == x->shape.ndim - 1) {
        return bwi_activation_add(graph, layer->name, x, "softmax");
    }
    return bwi_graph_add(graph, &bwi_op_softmax_axis, layer->name, &a, sizeof a, &x, 1, NULL, 0);
}

const bwi_layer_row bwi_layer_softmax = {
    "Softmax", "softmax", "softmax", softmax_arguments, SOFTMAX_COUNT, build_softmax, BWI_LAYER_REFUSES_MASK};
