/*
 * MultiHeadAttention, GroupQueryAttention, Attention and AdditiveAttention. The first two project query, key and value by dense
 * nodes, whose kernels are Keras's (in, heads, width), and the attention's output by another one; heads lie side by side, so
 * nothing is transposed. Inputs are query, value, key and a mask of pairs; the value is the query if there is no other input, and
 * the key is the value.
 */
#include "layer/internal.h"

#include <math.h>
#include <string.h>

enum { QUERY, VALUE, KEY, PAIRS, INPUTS };

/* Fills in the inputs that were not given. */
static bool read_inputs(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int count, int most, bw_node **in)
{
    if (count > most) {
        bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT, "layer %s: expected query, value%s, got %d inputs", layer->name,
                       most > 3 ? ", key and attention_mask" : " and key", count);
        return false;
    }
    in[QUERY] = inputs[0];
    in[VALUE] = count > 1 ? inputs[1] : inputs[0];
    in[KEY] = count > 2 ? inputs[2] : in[VALUE];
    in[PAIRS] = count > 3 ? inputs[3] : NULL;
    for (int i = QUERY; i <= KEY; i++) {
        if (!bwi_layer_expect(graph, layer, in[i], 2)) {
            return false;
        }
    }
    return true;
}

/* The mask that Keras finds at a value when it runs. */
static bw_node *seen_mask(const bw_node *node)
{
    return node->mask_taken ? NULL : node->mask;
}

/* A key counts if it does in the value's and in the key's mask. */
static bw_node *mask_of_keys(const bwi_layer *layer, bwi_graph *graph, bw_node *const *in)
{
    bw_node *value = seen_mask(in[VALUE]), *key = in[KEY] != in[VALUE] ? seen_mask(in[KEY]) : NULL;
    if (!value || !key || value == key) {
        return value ? value : key;
    }
    return bwi_compose_multiply(graph, layer->name, value, key);
}

/* Adds the node that attends. `in` are the query, value and key after their projections, `masks` those of query, keys and pairs. */
static bw_node *attend(const bwi_layer *layer, bwi_graph *graph, bwi_attention_attributes *a, bw_node *const *in,
                       bw_node *const *masks, bwi_variable *const *variables, int variable_count)
{
    bw_node *all[INPUTS + 2] = {in[QUERY], in[KEY], in[VALUE]};
    int count = 3;
    a->query_mask = masks[0];
    a->key_mask = masks[1];
    a->pair_mask = masks[2];
    for (int i = 0; i < 3; i++) {
        if (masks[i]) {
            all[count++] = masks[i];
        }
    }
    return bwi_graph_add(graph, &bwi_op_attention, layer->name, a, sizeof *a, all, count, variables, variable_count);
}

/* A mask for all queries, or for all keys, is repeated. */
static bool spread_pairs(const bwi_layer *layer, bwi_graph *graph, bw_node **in)
{
    bwi_shape pairs = {.ndim = 2, .extent = {in[QUERY]->shape.extent[0], in[KEY]->shape.extent[0]}};
    if (in[PAIRS]) {
        in[PAIRS] = bwi_op_broadcast_to(graph, layer->name, in[PAIRS], &pairs);
        return in[PAIRS];
    }
    return true;
}

/* As in Keras, a rate of 1 drops nothing. */
static float rate_of(double rate)
{
    return rate < 1 ? (float)rate : 0;
}

/* ---- With projections ---- */

enum {
    HEADS,
    WIDTH,
    THIRD, /* value_dim, or num_key_value_heads */
    DROPOUT,
    USE_BIAS,
    OUTPUT_SHAPE,
    ATTENTION_AXES,
    SLIDING_WINDOW,
    KERNEL_INITIALIZER,
    BIAS_INITIALIZER,
    KERNEL_REGULARIZER,
    BIAS_REGULARIZER,
    USE_GATE,
    SEED,
    USE_CAUSAL_MASK,
    COUNT
};

/* clang-format off */
#define PROJECTING                                                                               \
    [DROPOUT] = {"dropout", NULL, BWI_FLOAT, "0", 0, 1, NULL},                                   \
    [USE_BIAS] = {"use_bias", NULL, BWI_BOOL, "true", 0, 0, NULL},                               \
    [SLIDING_WINDOW] = {"sliding_window", NULL, BWI_INT, "", 1, 1e9, NULL},                      \
    [KERNEL_INITIALIZER] = {"kernel_initializer", NULL, BWI_CALL, "glorot_uniform", 0, 0, NULL}, \
    [BIAS_INITIALIZER] = {"bias_initializer", NULL, BWI_CALL, "zeros", 0, 0, NULL},              \
    [KERNEL_REGULARIZER] = {"kernel_regularizer", NULL, BWI_CALL, "none", 0, 0, NULL},           \
    [BIAS_REGULARIZER] = {"bias_regularizer", NULL, BWI_CALL, "none", 0, 0, NULL},               \
    [USE_GATE] = {"use_gate", NULL, BWI_BOOL, "false", 0, 0, NULL},                              \
    [SEED] = {"seed", NULL, BWI_INT, "", 0, 1e15, NULL},                                         \
    [USE_CAUSAL_MASK] = {"use_causal_mask", NULL, BWI_BOOL, "false", 0, 0, NULL}
/* clang-format on */

static const bwi_argument multi_head_arguments[COUNT] = {[HEADS] = {"num_heads", NULL, BWI_INT, NULL, 1, 1e6, NULL},
                                                         [WIDTH] = {"key_dim", NULL, BWI_INT, NULL, 1, 1e6, NULL},
                                                         [THIRD] = {"value_dim", NULL, BWI_INT, "", 1, 1e6, NULL},
                                                         [OUTPUT_SHAPE] = {"output_shape", NULL, BWI_INTS, "", 1, 1e6, NULL},
                                                         [ATTENTION_AXES] = {"attention_axes", NULL, BWI_INTS, "", 0, 0, NULL},
                                                         PROJECTING};

static const bwi_argument group_query_arguments[COUNT - 2] = {
    [0] = {"head_dim", NULL, BWI_INT, NULL, 1, 1e6, NULL},
    [1] = {"num_query_heads", NULL, BWI_INT, NULL, 1, 1e6, NULL},
    [2] = {"num_key_value_heads", NULL, BWI_INT, NULL, 1, 1e6, NULL},
    [3] = {"dropout", NULL, BWI_FLOAT, "0", 0, 1, NULL},
    [4] = {"use_bias", NULL, BWI_BOOL, "true", 0, 0, NULL},
    [5] = {"sliding_window", NULL, BWI_INT, "", 1, 1e9, NULL},
    [6] = {"kernel_initializer", NULL, BWI_CALL, "glorot_uniform", 0, 0, NULL},
    [7] = {"bias_initializer", NULL, BWI_CALL, "zeros", 0, 0, NULL},
    [8] = {"kernel_regularizer", NULL, BWI_CALL, "none", 0, 0, NULL},
    [9] = {"bias_regularizer", NULL, BWI_CALL, "none", 0, 0, NULL},
    [10] = {"use_gate", NULL, BWI_BOOL, "false", 0, 0, NULL},
    [11] = {"seed", NULL, BWI_INT, "", 0, 1e15, NULL},
    [12] = {"use_causal_mask", NULL, BWI_BOOL, "false", 0, 0, NULL}};

/* The two layers' arguments by meaning. */
typedef struct projecting {
    const bwi_layer *layer;
    int64_t heads, groups, key_width, value_width, window;
    double dropout;
    bool use_bias, use_gate, causal;
    bool hidden; /* Keras's files have the projections under names that begin with an underscore, as they always do the gate's */
    int kernel_initializer, bias_initializer, kernel_regularizer, bias_regularizer, seed;
    bwi_shape output; /* ndim 0: the query's width */
} projecting;

/* A dense node with a kernel (in..., out...) and a bias (out...), in a group of the layer's; `in` of the kernel's axes are
 * inputs. */
static bw_node *project(const projecting *p, bwi_graph *graph, bw_node *x, const char *part, const bwi_shape *kernel_shape, int in)
{
    const bwi_layer *layer = p->layer;
    char name[48], group[48];
    int last = kernel_shape->ndim - 1;
    int64_t rest = bwi_shape_count(kernel_shape) / kernel_shape->extent[last] / kernel_shape->extent[last - 1];
    bwi_shape bias_shape = {.ndim = kernel_shape->ndim - in};
    for (int i = 0; i < bias_shape.ndim; i++) {
        bias_shape.extent[i] = kernel_shape->extent[in + i];
    }
    int64_t columns = bwi_shape_count(&bias_shape);
    snprintf(name, sizeof name, "%s/kernel", part);
    snprintf(group, sizeof group, "%s%s_dense", p->hidden || strcmp(part, "gate") == 0 ? "_" : "",
             strcmp(part, "attention_output") == 0 ? "output" : part);
    bwi_variable *kernel = bwi_layer_variable(graph, layer, name, kernel_shape, p->kernel_initializer, p->kernel_regularizer,
                                              rest * kernel_shape->extent[last - 1], rest * kernel_shape->extent[last]);
    snprintf(name, sizeof name, "%s/bias", part);
    bwi_variable *bias = p->use_bias ? bwi_layer_variable(graph, layer, name, &bias_shape, p->bias_initializer, p->bias_regularizer,
                                                          columns, columns)
                                     : NULL;
    if (!kernel || (p->use_bias && !bias)) {
        return NULL;
    }
    kernel->input_axes = in;
    bwi_variable_place(kernel, group);
    bwi_variable_place(bias, group);
    bwi_dense_attributes d = {.units = columns};
    return bwi_graph_add(graph, &bwi_op_dense, layer->name, &d, sizeof d, &x, 1, (bwi_variable *const[]){kernel, bias},
                         bias ? 2 : 1);
}

static bw_node *project_heads(const projecting *p, bwi_graph *graph, bw_node *x, const char *part, int64_t heads, int64_t width)
{
    bwi_shape kernel = {.ndim = 3, .extent = {x->shape.extent[1], heads, width}};
    return project(p, graph, x, part, &kernel, 1);
}

/* The output has the query's width, unless the layer says otherwise. */
static bw_node *project_output(const projecting *p, bwi_graph *graph, bw_node *x, const bw_node *query)
{
    bwi_shape kernel = {.ndim = 2, .extent = {p->heads, p->value_width}}, made = {.ndim = 1, .extent = {query->shape.extent[0]}};
    bwi_shape output = p->output.ndim ? p->output : (bwi_shape){.ndim = 1, .extent = {query->shape.extent[1]}};
    for (int i = 0; i < output.ndim; i++) {
        kernel.extent[kernel.ndim++] = output.extent[i];
        made.extent[made.ndim++] = output.extent[i];
    }
    bw_node *node = project(p, graph, x, "attention_output", &kernel, 2);
    return output.ndim == 1 ? node : bwi_compose_reshape(graph, p->layer->name, node, &made);
}

/* Keras makes the variables in this order: query, key, gate, value, output. Where shares may be dropped, it computes a query all of
 * whose keys are masked differently. */
static bw_node *build_projecting(const projecting *p, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    const bwi_layer *layer = p->layer;
    bw_node *in[INPUTS], *gate = NULL;
    if (!read_inputs(layer, graph, inputs, input_count, INPUTS, in) || !spread_pairs(layer, graph, in)) {
        return NULL;
    }
    bw_node *masks[3] = {seen_mask(in[QUERY]), mask_of_keys(layer, graph, in), in[PAIRS]}, *query = in[QUERY];
    bool any_key_mask = seen_mask(in[VALUE]) || seen_mask(in[KEY]);
    bwi_attention_attributes a = {.heads = p->heads,
                                  .groups = p->groups,
                                  .masking = p->dropout > 0 ? BWI_MASKING_EXCLUDE : BWI_MASKING_REPLACE,
                                  .scale = (float)(1 / sqrt((double)p->key_width)),
                                  .causal = p->causal,
                                  .window = p->window,
                                  .dropout = rate_of(p->dropout)};
    a.stream = a.dropout > 0 ? bwi_layer_stream(layer, graph, &bwi_op_attention, p->seed) : 0;
    bw_node *projected[INPUTS] = {NULL};
    projected[QUERY] = project_heads(p, graph, query, "query", p->heads, p->key_width);
    projected[KEY] = projected[QUERY] ? project_heads(p, graph, in[KEY], "key", p->groups, p->key_width) : NULL;
    if (p->use_gate && projected[KEY]) {
        gate = project_heads(p, graph, query, "gate", p->heads, p->value_width);
        gate = gate ? bwi_activation_add(graph, layer->name, gate, "sigmoid") : NULL;
    }
    projected[VALUE] =
        projected[KEY] && (gate || !p->use_gate) ? project_heads(p, graph, in[VALUE], "value", p->groups, p->value_width) : NULL;
    if (!projected[VALUE] || (any_key_mask && !masks[1])) {
        return NULL;
    }
    bw_node *node = attend(layer, graph, &a, projected, masks, NULL, 0);
    node = p->use_gate ? bwi_compose_multiply(graph, layer->name, node, gate) : node;
    node = node ? project_output(p, graph, node, query) : NULL;
    if (node) {
        node->mask = query->mask;
    }
    return node;
}

/* When it runs, Keras's MultiHeadAttention takes the masks of its inputs away, so that layers after it, such as the addition of a
 * residual, have none; only those with a mask among their arguments (recurrent layers, averages) were told of it before. */
static void take_masks(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    bool taken = false;
    for (int i = 0; i < input_count && i < PAIRS; i++) {
        taken = taken || seen_mask(inputs[i]);
        inputs[i]->mask_taken = inputs[i]->mask;
    }
    if (taken) {
        bwi_log(graph->ctx, BW_LOG_WARNING, "layer %s: attention and losses after it see no mask of its inputs, as in Keras",
                layer->name);
    }
}

/* attention_axes is stated in files, too: Keras fills it in when the layer is built. */
static bw_node *build_multi_head(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    const bwi_argument_value *v = layer->values;
    projecting p = {.layer = layer,
                    .heads = v[HEADS].integer,
                    .groups = v[HEADS].integer,
                    .key_width = v[WIDTH].integer,
                    .value_width = v[THIRD].given ? v[THIRD].integer : v[WIDTH].integer,
                    .window = v[SLIDING_WINDOW].given ? v[SLIDING_WINDOW].integer : 0,
                    .dropout = v[DROPOUT].number,
                    .use_bias = v[USE_BIAS].flag,
                    .use_gate = v[USE_GATE].flag,
                    .causal = v[USE_CAUSAL_MASK].flag,
                    .kernel_initializer = KERNEL_INITIALIZER,
                    .bias_initializer = BIAS_INITIALIZER,
                    .kernel_regularizer = KERNEL_REGULARIZER,
                    .bias_regularizer = BIAS_REGULARIZER,
                    .seed = SEED,
                    .output = {.ndim = v[OUTPUT_SHAPE].count}};
    int64_t axis = v[ATTENTION_AXES].integer;
    if (v[ATTENTION_AXES].count > 1 || (v[ATTENTION_AXES].count == 1 && axis != 1 && axis != -2)) {
        return bwi_fail_build(graph->ctx, BW_UNIMPLEMENTED, "layer %s: attention_axes: only the axis of positions is supported",
                              layer->name);
    }
    if (p.output.ndim > BW_MAX_NDIM - 3) {
        return bwi_fail_build(graph->ctx, BW_UNIMPLEMENTED, "layer %s: output_shape: at most %d extents are possible, got %d",
                              layer->name, BW_MAX_NDIM - 3, p.output.ndim);
    }
    memcpy(p.output.extent, v[OUTPUT_SHAPE].integers, (size_t)p.output.ndim * sizeof p.output.extent[0]);
    bw_node *node = build_projecting(&p, graph, inputs, input_count);
    if (node) {
        take_masks(layer, graph, inputs, input_count);
    }
    return node;
}

/* Its arguments by their places in Keras's order; k and v have fewer heads, each of which serves several of q's. */
static bw_node *build_group_query(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    const bwi_argument_value *v = layer->values;
    projecting p = {.layer = layer,
                    .heads = v[1].integer,
                    .groups = v[2].integer,
                    .key_width = v[0].integer,
                    .value_width = v[0].integer,
                    .window = v[5].given ? v[5].integer : 0,
                    .dropout = v[3].number,
                    .use_bias = v[4].flag,
                    .use_gate = v[10].flag,
                    .causal = v[12].flag,
                    .hidden = true,
                    .kernel_initializer = 6,
                    .bias_initializer = 7,
                    .kernel_regularizer = 8,
                    .bias_regularizer = 9,
                    .seed = 11};
    if (p.heads % p.groups) {
        return bwi_fail_build(graph->ctx, BW_INVALID_ARGUMENT,
                              "layer %s: num_query_heads: expected a multiple of num_key_value_heads, %lld, got %lld", layer->name,
                              (long long)p.groups, (long long)p.heads);
    }
    return build_projecting(&p, graph, inputs, input_count);
}

/* ---- Without projections ---- */

enum {
    USE_SCALE,
    UNPROJECTED_DROPOUT,
    UNPROJECTED_SEED,
    UNPROJECTED_CAUSAL,
    ADDITIVE_COUNT,
    SCORE_MODE = ADDITIVE_COUNT,
    UNPROJECTED_COUNT
};

/* clang-format off */
#define UNPROJECTED(scaled)                                                \
    [USE_SCALE] = {"use_scale", NULL, BWI_BOOL, scaled, 0, 0, NULL},       \
    [UNPROJECTED_DROPOUT] = {"dropout", NULL, BWI_FLOAT, "0", 0, 1, NULL}, \
    [UNPROJECTED_SEED] = {"seed", NULL, BWI_INT, "", 0, 1e15, NULL},       \
    [UNPROJECTED_CAUSAL] = {"use_causal_mask", NULL, BWI_BOOL, "false", 0, 0, NULL}
/* clang-format on */

static const bwi_argument additive_arguments[ADDITIVE_COUNT] = {UNPROJECTED("true")};
static const bwi_argument unprojected_arguments[UNPROJECTED_COUNT] = {
    UNPROJECTED("false"), [SCORE_MODE] = {"score_mode", NULL, BWI_TEXT, "dot", 0, 0, "dot concat"}};

/* As in Keras, only the value's mask hides keys, and the outputs of masked queries become zeros. */
static bw_node *build_unprojected(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count,
                                  bwi_attention_scores scores, bwi_variable *const *variables, bool factor, bool weight)
{
    const bwi_argument_value *v = layer->values;
    bw_node *in[INPUTS];
    if (!read_inputs(layer, graph, inputs, input_count, KEY + 1, in)) {
        return NULL;
    }
    bw_node *query_mask = in[QUERY]->mask, *masks[3] = {NULL, in[VALUE]->mask, NULL};
    bwi_attention_attributes a = {.heads = 1,
                                  .groups = 1,
                                  .scores = scores,
                                  .masking = BWI_MASKING_SUBTRACT,
                                  .scale = 1,
                                  .causal = v[UNPROJECTED_CAUSAL].flag,
                                  .dropout = rate_of(v[UNPROJECTED_DROPOUT].number),
                                  .factor = factor,
                                  .weight = weight};
    a.stream = a.dropout > 0 ? bwi_layer_stream(layer, graph, &bwi_op_attention, UNPROJECTED_SEED) : 0;
    bw_node *node = attend(layer, graph, &a, in, masks, variables, factor + weight);
    if (node && query_mask) {
        bwi_shape column = {.ndim = 2, .extent = {node->shape.extent[0], 1}};
        node = bwi_compose_multiply(graph, layer->name, node, bwi_compose_reshape(graph, layer->name, query_mask, &column));
    }
    if (node) {
        node->mask = query_mask;
    }
    return node;
}

static bw_node *build_plain(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    static const bwi_shape one = {.ndim = 0};
    bool scaled = layer->values[USE_SCALE].flag, concat = strcmp(layer->values[SCORE_MODE].text, "concat") == 0;
    bwi_variable *variables[2];
    int count = 0;
    if (scaled) {
        variables[count++] = bwi_graph_variable(graph, layer->name, "scale", &one, true, "ones", 1, 1);
    }
    if (concat) {
        variables[count++] = bwi_graph_variable(graph, layer->name, "concat_score_weight", &one, true, "ones", 1, 1);
    }
    if ((count > 0 && !variables[0]) || (count > 1 && !variables[1])) {
        return NULL;
    }
    return build_unprojected(layer, graph, inputs, input_count, concat ? BWI_SCORES_ADDITIVE : BWI_SCORES_DOT, variables, scaled,
                             concat);
}

static bw_node *build_additive(const bwi_layer *layer, bwi_graph *graph, bw_node *const *inputs, int input_count)
{
    bool scaled = layer->values[USE_SCALE].flag;
    bwi_shape width = {.ndim = 1, .extent = {inputs[0]->shape.ndim ? inputs[0]->shape.extent[inputs[0]->shape.ndim - 1] : 1}};
    bwi_variable *scale = NULL;
    if (scaled) {
        scale = bwi_graph_variable(graph, layer->name, "scale", &width, true, "glorot_uniform", width.extent[0], width.extent[0]);
        if (!scale) {
            return NULL;
        }
    }
    return build_unprojected(layer, graph, inputs, input_count, BWI_SCORES_ADDITIVE, &scale, false, scaled);
}

enum { ATTENTION = BWI_LAYER_MERGES | BWI_LAYER_TAKES_MASK };

const bwi_layer_row bwi_layer_multi_head_attention = {
    "MultiHeadAttention", "multi_head_attention",       "multi_head_attention mha", multi_head_arguments, COUNT,
    build_multi_head,     ATTENTION | BWI_LAYER_ATTENDS};
const bwi_layer_row bwi_layer_group_query_attention = {
    "GroupQueryAttention", "grouped_query_attention",    "group_query_attention gqa", group_query_arguments, COUNT - 2,
    build_group_query,     ATTENTION | BWI_LAYER_ATTENDS};
const bwi_layer_row bwi_layer_attention = {"Attention",       "attention", "attention", unprojected_arguments,
                                           UNPROJECTED_COUNT, build_plain, ATTENTION};
const bwi_layer_row bwi_layer_additive_attention = {
    "AdditiveAttention", "additive_attention", "additive_attention", additive_arguments, ADDITIVE_COUNT, build_additive, ATTENTION};

bool bwi_layer_is_attention(const bwi_layer_row *row)
{
    return row == &bwi_layer_multi_head_attention || row == &bwi_layer_group_query_attention || row == &bwi_layer_attention ||
           row == &bwi_layer_additive_attention;
}
