/* Activations by name, and the layers that consist of nothing else: Activation, ReLU, LeakyReLU, ELU, PReLU, Softmax. */
#include "layer/internal.h"

#include <math.h>
#include <string.h>

typedef struct activation_row {
    const char *name;
    const bwi_op *op; /* NULL: no op is needed */
    bool bare;        /* the op has no attributes */
    bwi_activation_attributes attributes;
} activation_row;

/* selu: scale (x > 0 ? x : alpha (e^x - 1)) with Keras's scale and alpha. */
static const activation_row activations[] = {
    {"linear", NULL, true, {0, {0}}},
    {"relu", &bwi_op_relu, true, {0, {0}}},
    {"sigmoid", &bwi_op_activation, false, {BWI_SIGMOID, {0}}},
    {"tanh", &bwi_op_activation, false, {BWI_TANH, {0}}},
    {"softmax", &bwi_op_softmax, true, {0, {0}}},
    {"elu", &bwi_op_activation, false, {BWI_ELU, {1, 1, 0}}},
    {"selu", &bwi_op_activation, false, {BWI_ELU, {1.05070098F, 1.05070098F * 1.67326324F, 0}}},
    {"softplus", &bwi_op_activation, false, {BWI_SOFTPLUS, {0}}},
    {"softsign", &bwi_op_activation, false, {BWI_SOFTSIGN, {0}}},
    {"silu", &bwi_op_activation_of_input, false, {BWI_SILU, {0}}},
    {"swish", &bwi_op_activation_of_input, false, {BWI_SILU, {0}}},
    {"gelu", &bwi_op_activation_of_input, false, {BWI_GELU, {0}}},
    {"leaky_relu", &bwi_op_activation, false, {BWI_LEAKY_RELU, {0.2F, 0, 0}}},
    {"relu6", &bwi_op_activation, false, {BWI_BENT_RELU, {0, 6, 0}}},
    {"exponential", &bwi_op_activation, false, {BWI_EXPONENTIAL, {0}}},
    {"hard_sigmoid", &bwi_op_activation, false, {BWI_HARD_SIGMOID, {0}}},
};

static bw_node *add(bwi_graph *graph, const char *layer, bw_node *node, const bwi_op *op, const bwi_activation_attributes *a)
{
    return bwi_graph_add(graph, op, layer, a, a ? sizeof *a : 0, &node, 1, NULL, 0);
}

const char *bwi_activation_name(int index)
{
    return index >= 0 && index < (int)BWI_COUNT(activations) ? activations[index].name : NULL;
}

bw_node *bwi_activation_add(bwi_graph *graph, const char *layer, bw_node *node, const char *activation)
{
    if (!node) {
        return NULL;
    }
    char known[256] = "";
    for (size_t i = 0; i < BWI_COUNT(activations); i++) {
        const activation_row *row = &activations[i];
        if (strcmp(activation, row->name) == 0) {
            return row->op ? add(graph, layer, node, row->op, row->bare ? NULL : &row->attributes) : node;
        }
        size_t n = strlen(known);
        snprintf(known + n, sizeof known - n, "%s%s", i ? ", " : "", row->name);
    }
    return bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: there is no activation '%s'; there are %s", layer, activation,
                          known);
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
        if (!row->op) {
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
    bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: there is no activation '%s'", layer, activation);
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
    [AXIS] = {"axis", NULL, BWI_INT, "-1", -BW_MAX_NDIM, BW_MAX_NDIM, NULL}};

static bw_node *build_softmax(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)input_count;
    bwi_axis_attributes a;
    bw_node *x = inputs[0];
    if (!bwi_layer_axis(graph, layer, AXIS, layer->values[AXIS].integer, x->shape.ndim, &a.axis)) {
        return NULL;
    }
    if (a.axis == x->shape.ndim - 1) {
        return bwi_activation_add(graph, layer->name, x, "softmax");
    }
    return bwi_graph_add(graph, &bwi_op_softmax_axis, layer->name, &a, sizeof a, &x, 1, NULL, 0);
}

const bwi_layer_row bwi_layer_softmax = {
    "Softmax", "softmax", "softmax", softmax_arguments, SOFTMAX_COUNT, build_softmax, BWI_LAYER_REFUSES_MASK};
