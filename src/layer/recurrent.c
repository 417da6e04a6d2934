/*
 * SimpleRNN, LSTM and GRU: a dense node multiplies the inputs of all steps with the kernel, and a recurrent node takes the steps.
 * The variables are Keras's: kernel (in, gates * units), recurrent_kernel (units, gates * units) and a bias, which is the dense
 * node's, except in a GRU that resets after the product: there it is (2, gates * units) and the recurrent node's.
 *
 * An RNN has a cell, which has the arguments of one of these layers that concern a step, and becomes that layer; a stack of cells
 * becomes several layers.
 *
 * One mask drops the same inputs of a sample at every step, another one the same states, each for all gates.
 *
 * With return_state the node's rows end with the states, and slices take the output and each state from it.
 */
#include "layer/internal.h"

#include <string.h>

enum {
    UNITS,
    ACTIVATION,
    USE_BIAS,
    KERNEL_INITIALIZER,
    RECURRENT_INITIALIZER,
    BIAS_INITIALIZER,
    KERNEL_REGULARIZER,
    RECURRENT_REGULARIZER,
    BIAS_REGULARIZER,
    DROPOUT,
    RECURRENT_DROPOUT,
    SEED,
    RETURN_SEQUENCES,
    RETURN_STATE,
    GO_BACKWARDS,
    STATEFUL,
    UNROLL,
    ZERO_OUTPUT_FOR_MASK,
    SIMPLE_COUNT,
    RECURRENT_ACTIVATION = SIMPLE_COUNT,
    OWN, /* unit_forget_bias or reset_after */
    COUNT
};

/* clang-format off */
#define CELL                                                                                       \
    [UNITS] = {"units", NULL, BWI_INT, NULL, 1, 1e6, NULL},                                        \
    [ACTIVATION] = {"activation", NULL, BWI_TEXT, "tanh", 0, 0, NULL},                             \
    [USE_BIAS] = {"use_bias", NULL, BWI_BOOL, "true", 0, 0, NULL},                                 \
    [KERNEL_INITIALIZER] = {"kernel_initializer", NULL, BWI_CALL, "glorot_uniform", 0, 0, NULL},   \
    [RECURRENT_INITIALIZER] = {"recurrent_initializer", NULL, BWI_CALL, "orthogonal", 0, 0, NULL}, \
    [BIAS_INITIALIZER] = {"bias_initializer", NULL, BWI_CALL, "zeros", 0, 0, NULL},                \
    [KERNEL_REGULARIZER] = {"kernel_regularizer", NULL, BWI_CALL, "none", 0, 0, NULL},             \
    [RECURRENT_REGULARIZER] = {"recurrent_regularizer", NULL, BWI_CALL, "none", 0, 0, NULL},       \
    [BIAS_REGULARIZER] = {"bias_regularizer", NULL, BWI_CALL, "none", 0, 0, NULL},                 \
    [DROPOUT] = {"dropout", NULL, BWI_FLOAT, "0", 0, 1, NULL},                                     \
    [RECURRENT_DROPOUT] = {"recurrent_dropout", NULL, BWI_FLOAT, "0", 0, 1, NULL},                 \
    [SEED] = {"seed", NULL, BWI_INT, "", 0, 1e15, NULL}

#define COMMON                                                                      \
    CELL,                                                                           \
    [RETURN_SEQUENCES] = {"return_sequences", NULL, BWI_BOOL, "false", 0, 0, NULL}, \
    [RETURN_STATE] = {"return_state", NULL, BWI_BOOL, "false", 0, 0, NULL},         \
    [GO_BACKWARDS] = {"go_backwards", NULL, BWI_BOOL, "false", 0, 0, NULL},         \
    [STATEFUL] = {"stateful", NULL, BWI_BOOL, "false", 0, 0, NULL},                 \
    [UNROLL] = {"unroll", NULL, BWI_BOOL, "false", 0, 0, NULL},                     \
    [ZERO_OUTPUT_FOR_MASK] = {"zero_output_for_mask", NULL, BWI_BOOL, "false", 0, 0, NULL}
/* clang-format on */

#define GATED [RECURRENT_ACTIVATION] = {"recurrent_activation", NULL, BWI_TEXT, "sigmoid", 0, 0, NULL}

static const bwi_argument simple_arguments[SIMPLE_COUNT] = {COMMON};
static const bwi_argument lstm_arguments[COUNT] = {COMMON, GATED, [OWN] = {"unit_forget_bias", NULL, BWI_BOOL, "true", 0, 0, NULL}};
static const bwi_argument gru_arguments[COUNT] = {COMMON, GATED, [OWN] = {"reset_after", NULL, BWI_BOOL, "true", 0, 0, NULL}};

static bool refuse(const bwi_layer *layer, bwi_graph *graph)
{
    if (layer->values[STATEFUL].flag) {
        bwi_fail_build(graph->ctx, BW_UNIMPLEMENTED, "layer %s: stateful is not supported", layer->name);
        return true;
    }
    return false;
}

/* A layer that is used again draws other numbers; `what` keeps inputs and states apart. */
static uint64_t stream_of(const bwi_layer *layer, const bwi_graph *graph, uint64_t what)
{
    uint64_t times = 0, seed = layer->values[SEED].given ? (uint64_t)layer->values[SEED].integer + 1 : 0;
    for (int n = 0; n < graph->count; n++) {
        times += graph->nodes[n]->op == &bwi_op_recurrent && strcmp(graph->nodes[n]->name, layer->name) == 0;
    }
    return bwi_hash(seed + (what << 60), layer->name, strlen(layer->name)) + times;
}

/* As in Keras, a rate of 1 drops nothing. */
static float rate_of(const bwi_layer *layer, int argument)
{
    double rate = layer->values[argument].number;
    return rate < 1 ? (float)rate : 0;
}

static bw_node *drop_inputs(const bwi_layer *layer, bwi_graph *graph, bw_node *x)
{
    bwi_noise_attributes a = {.amount = rate_of(layer, DROPOUT), .stream = stream_of(layer, graph, 1)};
    return a.amount > 0 ? bwi_graph_add(graph, &bwi_op_spatial_dropout, layer->name, &a, sizeof a, &x, 1, NULL, 0) : x;
}

/* The variables that are not there are NULL; false: one could not be made. */
typedef struct variables {
    bwi_variable *kernel, *recurrent, *bias;
} variables;

/* In the order of Keras. An LSTM begins with open forget gates: their biases are ones. */
static bool make_variables(const bwi_layer *layer, bwi_graph *graph, bwi_cell cell, int64_t in, variables *v)
{
    int64_t units = layer->values[UNITS].integer, columns = units * bwi_cell_gates(cell);
    bwi_shape kernel = {.ndim = 2, .extent = {in, columns}}, recurrent = {.ndim = 2, .extent = {units, columns}};
    bwi_shape bias = {.ndim = 1, .extent = {columns}};
    bool biased = layer->values[USE_BIAS].flag;
    if (cell == BWI_CELL_GRU_AFTER) {
        bias = (bwi_shape){.ndim = 2, .extent = {2, columns}};
    }
    v->kernel = bwi_layer_variable(graph, layer, "kernel", &kernel, KERNEL_INITIALIZER, KERNEL_REGULARIZER, in, columns);
    v->recurrent = bwi_layer_variable(graph, layer, "recurrent_kernel", &recurrent, RECURRENT_INITIALIZER, RECURRENT_REGULARIZER,
                                      units, columns);
    v->bias = biased ? bwi_layer_variable(graph, layer, "bias", &bias, BIAS_INITIALIZER, BIAS_REGULARIZER,
                                          bias.ndim == 2 ? 2 : columns, columns)
                     : NULL;
    if (!v->kernel || !v->recurrent || (biased && !v->bias)) {
        return false;
    }
    bwi_variable_place(v->kernel, "cell");
    bwi_variable_place(v->recurrent, "cell");
    bwi_variable_place(v->bias, "cell");
    if (biased && cell == BWI_CELL_LSTM && layer->values[OWN].flag) {
        v->bias->ones_first = units;
        v->bias->ones_count = units;
    }
    return true;
}

/* Rows of what the node gives, as a matrix, or one of them as a vector. */
static bw_node *take_rows(const bwi_layer *layer, bwi_graph *graph, bw_node *node, int64_t first, int64_t count, bool vector)
{
    bwi_slice_attributes a = {.axis = 0, .start = first, .count = count};
    bw_node *rows = bwi_graph_add(graph, &bwi_op_slice, layer->name, &a, sizeof a, &node, 1, NULL, 0);
    bwi_shape shape = {.ndim = 1, .extent = {rows ? rows->shape.extent[1] : 0}};
    return vector ? bwi_compose_reshape(graph, layer->name, rows, &shape) : rows;
}

/* The output, beside which the states become parts of what the layer gives. */
static bw_node *take_states(const bwi_layer *layer, bwi_graph *graph, bw_node *node, const bwi_recurrent_attributes *a)
{
    if (!node || !a->ends) {
        return node;
    }
    int states = bwi_cell_states(a->cell);
    int64_t steps = node->shape.extent[0] - states;
    bw_node *y = take_rows(layer, graph, node, 0, steps, !a->sequences);
    for (int i = 0; y && i < states; i++) {
        y = bwi_layer_part(graph, take_rows(layer, graph, node, steps + i, 1, true)) ? y : NULL;
    }
    return y;
}

/* Keras gives a layer its input's mask only if it is called with nothing else; what follows sees the mask all the same. */
static bw_node *mask_of(const bwi_layer *layer, const bwi_graph *graph, const bw_node *x, int count)
{
    if (x->mask && count > 1) {
        bwi_log(graph->ctx, BW_LOG_WARNING, "layer %s: with initial_state %s takes masked steps like others, as in Keras",
                layer->name, layer->row->class_name);
    }
    return count > 1 ? NULL : x->mask;
}

/* The nodes of the layer; inputs after the first are states. The mask is that of the inputs, also where steps are taken backwards:
 * so does Keras. */
static bw_node *build(const bwi_layer *layer, bwi_graph *graph, bw_node *const *given, int count, bwi_cell cell)
{
    bw_node *x = given[0];
    int states = bwi_cell_states(cell);
    if (count > 1 && count != 1 + states) {
        return bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: initial_state: expected %d states, got %d", layer->name,
                              states, count - 1);
    }
    const bwi_argument_value *v = layer->values;
    bwi_recurrent_attributes a = {.cell = cell,
                                  .units = v[UNITS].integer,
                                  .sequences = v[RETURN_SEQUENCES].flag,
                                  .backwards = v[GO_BACKWARDS].flag,
                                  .zero_masked = v[ZERO_OUTPUT_FOR_MASK].flag,
                                  .begins = count > 1,
                                  .ends = v[RETURN_STATE].flag,
                                  .dropout = rate_of(layer, RECURRENT_DROPOUT)};
    bwi_dense_attributes d = {.units = a.units * bwi_cell_gates(cell)};
    variables made;
    const char *gates = cell == BWI_CELL_SIMPLE ? "linear" : v[RECURRENT_ACTIVATION].text;
    if (refuse(layer, graph) || !bwi_layer_expect(graph, layer, x, 2) ||
        !bwi_activation_of_cell(graph, layer->name, v[ACTIVATION].text, &a.activation) ||
        !bwi_activation_of_cell(graph, layer->name, gates, &a.recurrent_activation) ||
        !make_variables(layer, graph, cell, x->shape.extent[1], &made)) {
        return NULL;
    }
    bool after = cell == BWI_CELL_GRU_AFTER;
    a.stream = stream_of(layer, graph, 2);
    bw_node *mask = mask_of(layer, graph, x, count);
    bw_node *inputs[3] = {drop_inputs(layer, graph, x), count > 1 ? given[1] : mask, count > 2 ? given[2] : NULL};
    inputs[0] = bwi_graph_add(graph, &bwi_op_dense, layer->name, &d, sizeof d, inputs, 1,
                              (bwi_variable *const[]){made.kernel, made.bias}, made.bias && !after ? 2 : 1);
    bw_node *node = bwi_graph_add(graph, &bwi_op_recurrent, layer->name, &a, sizeof a, inputs, mask ? 2 : count,
                                  (bwi_variable *const[]){made.recurrent, made.bias}, made.bias && after ? 2 : 1);
    node = take_states(layer, graph, node, &a);
    if (node && a.sequences) {
        node->mask = x->mask;
    }
    return node;
}

static bw_node *build_simple(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    return build(layer, graph, inputs, input_count, BWI_CELL_SIMPLE);
}

static bw_node *build_lstm(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    return build(layer, graph, inputs, input_count, BWI_CELL_LSTM);
}

static bw_node *build_gru(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    return build(layer, graph, inputs, input_count, layer->values[OWN].flag ? BWI_CELL_GRU_AFTER : BWI_CELL_GRU);
}

enum { FLAGS = BWI_LAYER_TAKES_MASK | BWI_LAYER_STATES };

const bwi_layer_row bwi_layer_simple_rnn = {"SimpleRNN",  "simple_rnn", "simple_rnn", simple_arguments,
                                            SIMPLE_COUNT, build_simple, FLAGS};
const bwi_layer_row bwi_layer_lstm = {"LSTM", "lstm", "lstm", lstm_arguments, COUNT, build_lstm, FLAGS};
const bwi_layer_row bwi_layer_gru = {"GRU", "gru", "gru", gru_arguments, COUNT, build_gru, FLAGS};

/* ---- RNN and its cells ---- */

enum { CELL_COUNT = SEED + 1, CELL_RECURRENT_ACTIVATION = CELL_COUNT, CELL_OWN, GATED_CELL_COUNT };

#define GATED_CELL [CELL_RECURRENT_ACTIVATION] = {"recurrent_activation", NULL, BWI_TEXT, "sigmoid", 0, 0, NULL}

static const bwi_argument simple_cell_arguments[CELL_COUNT] = {CELL};
static const bwi_argument lstm_cell_arguments[GATED_CELL_COUNT] = {
    CELL, GATED_CELL, [CELL_OWN] = {"unit_forget_bias", NULL, BWI_BOOL, "true", 0, 0, NULL}};
static const bwi_argument gru_cell_arguments[GATED_CELL_COUNT] = {
    CELL, GATED_CELL, [CELL_OWN] = {"reset_after", NULL, BWI_BOOL, "true", 0, 0, NULL}};

static bw_node *build_cell(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    (void)inputs;
    (void)input_count;
    return bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: a cell is part of an RNN, as in rnn(lstm_cell(64))",
                          layer->name);
}

const bwi_layer_row bwi_layer_simple_rnn_cell = {
    "SimpleRNNCell", "simple_rnn_cell", "simple_rnn_cell", simple_cell_arguments, CELL_COUNT, build_cell, 0};
const bwi_layer_row bwi_layer_lstm_cell = {"LSTMCell", "lstm_cell", "lstm_cell", lstm_cell_arguments, GATED_CELL_COUNT, build_cell,
                                           0};
const bwi_layer_row bwi_layer_gru_cell = {"GRUCell", "gru_cell", "gru_cell", gru_cell_arguments, GATED_CELL_COUNT, build_cell, 0};

enum { RNN_COUNT = SIMPLE_COUNT - RETURN_SEQUENCES };

static const bwi_argument rnn_arguments[RNN_COUNT] = {
    [RETURN_SEQUENCES - RETURN_SEQUENCES] = {"return_sequences", NULL, BWI_BOOL, "false", 0, 0, NULL},
    [RETURN_STATE - RETURN_SEQUENCES] = {"return_state", NULL, BWI_BOOL, "false", 0, 0, NULL},
    [GO_BACKWARDS - RETURN_SEQUENCES] = {"go_backwards", NULL, BWI_BOOL, "false", 0, 0, NULL},
    [STATEFUL - RETURN_SEQUENCES] = {"stateful", NULL, BWI_BOOL, "false", 0, 0, NULL},
    [UNROLL - RETURN_SEQUENCES] = {"unroll", NULL, BWI_BOOL, "false", 0, 0, NULL},
    [ZERO_OUTPUT_FOR_MASK - RETURN_SEQUENCES] = {"zero_output_for_mask", NULL, BWI_BOOL, "false", 0, 0, NULL},
};

/* The layer whose step the cell is: its arguments are the cell's, by name, and the RNN's. False, after a message, if there is
 * none. */
static bool layer_of_cell(const bwi_layer *layer, bwi_graph *graph, const bwi_layer *cell, bwi_layer *own)
{
    static const struct {
        const bwi_layer_row *cell, *layer;
    } rows[] = {{&bwi_layer_simple_rnn_cell, &bwi_layer_simple_rnn},
                {&bwi_layer_lstm_cell, &bwi_layer_lstm},
                {&bwi_layer_gru_cell, &bwi_layer_gru}};
    *own = *cell;
    own->row = NULL;
    own->inner[0] = own->inner[1] = own->above = NULL;
    for (size_t i = 0; i < BWI_COUNT(rows); i++) {
        own->row = cell->row == rows[i].cell ? rows[i].layer : own->row;
    }
    if (!own->row) {
        bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: expected a cell within it, got %s", layer->name,
                       cell->row->class_name);
        return false;
    }
    snprintf(own->name, sizeof own->name, "%s", layer->name);
    own->trainable = layer->trainable && layer->inner[0]->trainable && cell->trainable;
    for (int i = 0; i < own->row->argument_count; i++) {
        const char *name = own->row->arguments[i].name;
        for (int k = 0; k < cell->row->argument_count; k++) {
            own->values[i] = strcmp(cell->row->arguments[k].name, name) == 0 ? cell->values[k] : own->values[i];
        }
        for (int k = 0; k < RNN_COUNT; k++) {
            own->values[i] = strcmp(rnn_arguments[k].name, name) == 0 ? layer->values[k] : own->values[i];
        }
    }
    return true;
}

/* In a stack, variables and their groups have the cell's name, which Keras numbers by class. */
static void name_cell(const bwi_layer *layer, const bwi_layer *first, const bwi_layer *cell, bwi_graph *graph, int from)
{
    char name[32];
    int same = 0;
    for (const bwi_layer *c = first; c != cell; c = c->above) {
        same += c->row == cell->row;
    }
    if (same) {
        snprintf(name, sizeof name, "%.20s_%d", cell->row->base_name, same);
    } else {
        snprintf(name, sizeof name, "%.20s", cell->row->base_name);
    }
    for (int v = from; v < graph->variable_count; v++) {
        bwi_variable *variable = graph->variables[v];
        char own[sizeof variable->name];
        snprintf(own, sizeof own, "%.63s/%.24s%.20s", layer->name, name, variable->name + strlen(layer->name));
        snprintf(variable->name, sizeof variable->name, "%s", own);
        snprintf(variable->place, sizeof variable->place, "cell/cells/%.30s", name);
    }
}

/* One cell's layer, on its own part of the given states. */
static bw_node *build_one(const bwi_layer *layer, bwi_graph *graph, const bwi_layer *cell, bw_node *const *inputs, int input_count)
{
    bwi_layer own;
    int before = graph->variable_count;
    if (!layer_of_cell(layer, graph, cell, &own)) {
        return NULL;
    }
    if (cell->above) { /* the next cell takes every step */
        own.values[RETURN_SEQUENCES].flag = true;
    }
    bw_node *node = own.row->build(&own, graph, inputs, input_count);
    for (int v = before; node && !own.trainable && v < graph->variable_count; v++) {
        graph->variables[v]->trainable = false;
    }
    return node;
}

/* Cells in a stack are layers one after another: each step of one is a step of the next. Where steps are taken backwards, each
 * layer takes them so, which needs their order turned back between two of them. */
static bw_node *build_rnn(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    bool stack = layer->inner[0]->row == &bwi_layer_stacked_rnn_cells;
    const bwi_layer *first = stack ? layer->inner[0]->inner[0] : layer->inner[0];
    int states = bwi_layer_states(layer), given = 1;
    bw_node *one[BWI_MAX_POINTS] = {inputs[0]};
    if (input_count > 1 && input_count != 1 + states) {
        return bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: initial_state: expected %d states, got %d", layer->name,
                              states, input_count - 1);
    }
    for (const bwi_layer *cell = first; cell; cell = cell->above) {
        int before = graph->variable_count, own = input_count > 1 ? bwi_layer_states(cell) : 0;
        for (int i = 0; i < own; i++) {
            one[1 + i] = inputs[given++];
        }
        bw_node *node = build_one(layer, graph, cell, one, 1 + own);
        if (stack) {
            name_cell(layer, first, cell, graph, before);
        }
        if (node && cell->above && layer->values[GO_BACKWARDS - RETURN_SEQUENCES].flag) {
            node = bwi_graph_add(graph, &bwi_op_reverse, layer->name, NULL, 0, &node, 1, NULL, 0);
        }
        if (!node) {
            return NULL;
        }
        if (cell->above) {
            node->mask = inputs[0]->mask;
        }
        one[0] = node;
    }
    return one[0];
}

const bwi_layer_row bwi_layer_stacked_rnn_cells = {"StackedRNNCells", "stacked_rnn_cells", "stacked_rnn_cells", NULL, 0,
                                                   build_cell,        BWI_LAYER_WRAPS};

const bwi_layer_row bwi_layer_rnn = {"RNN", "rnn", "rnn", rnn_arguments, RNN_COUNT, build_rnn, FLAGS | BWI_LAYER_WRAPS};

/* ---- What the layers take and give ---- */

int bwi_layer_states(const bwi_layer *layer)
{
    const bwi_layer_row *row = layer->row;
    const bwi_layer_row *one[] = {&bwi_layer_simple_rnn, &bwi_layer_simple_rnn_cell, &bwi_layer_gru, &bwi_layer_gru_cell};
    for (size_t i = 0; i < BWI_COUNT(one); i++) {
        if (row == one[i]) {
            return 1;
        }
    }
    if (row == &bwi_layer_lstm || row == &bwi_layer_lstm_cell) {
        return 2;
    }
    int inner = layer->inner[0] ? bwi_layer_states(layer->inner[0]) : 0;
    for (const bwi_layer *cell = layer->inner[0]; cell && row == &bwi_layer_stacked_rnn_cells; cell = cell->above) {
        inner += cell == layer->inner[0] ? 0 : bwi_layer_states(cell);
    }
    return row == &bwi_layer_rnn || row == &bwi_layer_stacked_rnn_cells ? inner : row == &bwi_layer_bidirectional ? 2 * inner : 0;
}

int bwi_layer_parts(const bwi_layer *layer)
{
    bool both = layer->row == &bwi_layer_bidirectional;
    const bwi_layer *one = both ? layer->inner[0] : layer;
    for (int i = 0; one && bwi_layer_states(one) && i < one->row->argument_count; i++) {
        if (strcmp(one->row->arguments[i].name, "return_state") == 0 && one->values[i].flag) {
            return bwi_layer_states(layer) + bwi_bidirectional_gives_two(layer);
        }
    }
    return bwi_bidirectional_gives_two(layer);
}
