/*
 * A small graph around the node under test, planned and running:
 *
 *   samples -> dense [-> reshape] -> op -> squared error against y
 *
 * The samples are the rows of the identity, so row s of the dense kernel is what the op gets for sample s, bit for bit, and
 * the kernel's gradient is the gradient of the op's input. The loss is computed again in double from the op's output, so
 * that differences of it are not drowned in the rounding of a float.
 */
#ifndef GRADIENT_RIG_H
#define GRADIENT_RIG_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "cases.h"
#include "exec/exec.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { RIG_SAMPLES = 5, RIG_TILE = 2, RIG_LANES = 2 };

typedef struct rig {
    bw_context *ctx;
    bw_dataset *dataset;
    float *x, *y, *w;
    bwi_graph graph;
    bw_node *input;
    bw_node *output; /* of the op under test */
    bw_node *loss, *mean;
    uint64_t draws;
    bool positive; /* variables are between 0.2 and 0.8 */
} rig;

static inline double rig_random(rig *r)
{
    return 2 * (double)bwi_random_uniform(bwi_random_at(7, 11, r->draws++).word[0]) - 1;
}

static inline void rig_require(const rig *r, bw_status status, const char *what)
{
    if (status != BW_OK) {
        fail_msg("%s: %s: %s", what, bw_status_name(status), bw_message(r->ctx));
    }
}

static inline bw_node *rig_node(rig *r, const bwi_op *op, const void *attributes, size_t bytes, bw_node *const *inputs, int count,
                                bwi_variable *const *variables, int variable_count)
{
    bw_node *node = bwi_graph_add(&r->graph, op, op->name, attributes, bytes, inputs, count, variables, variable_count);
    if (!node) {
        fail_msg("%s: %s", op->name, bw_message(r->ctx));
    }
    return node;
}

static inline bwi_variable *rig_variable(rig *r, const char *layer, const bwi_shape *shape, bool trainable)
{
    char name[16];
    snprintf(name, sizeof name, "%d", r->graph.variable_count);
    bwi_variable *variable = bwi_graph_variable(&r->graph, layer, name, shape, trainable, "zeros", 1, 1);
    assert_non_null(variable);
    return variable;
}

/* ---- Samples ---- */

static inline bw_array rig_array(const float *values, const bwi_shape *shape)
{
    bw_array array = {.data = values, .dtype = BW_F32, .ndim = shape->ndim + 1, .shape = {RIG_SAMPLES}};
    memcpy(array.shape + 1, shape->extent, (size_t)shape->ndim * sizeof(int64_t));
    return array;
}

/* Random values; class numbers below `classes` if that is not 0. */
static inline float *rig_values(rig *r, const bwi_shape *shape, int64_t classes)
{
    int64_t count = RIG_SAMPLES * bwi_shape_count(shape);
    float *values = calloc((size_t)count, sizeof *values);
    for (int64_t i = 0; i < count; i++) {
        double u = rig_random(r);
        values[i] = classes ? (float)fmin((double)(classes - 1), floor((u + 1) / 2 * (double)classes)) : (float)u;
    }
    return values;
}

static inline const case_input *rig_find_input(const op_case *c, case_source from)
{
    for (int k = 0; k < CASE_INPUTS; k++) {
        if (c->input[k].from == from) {
            return &c->input[k];
        }
    }
    return NULL;
}

/* How many class numbers or indices there are; 0: the input holds numbers. Indices into a table are the op's first input. */
static inline int64_t rig_classes(const op_case *c, const case_input *in)
{
    const bwi_shape *first = &c->input[0].shape;
    return in->dtype != BW_I32 ? 0 : in == &c->input[0] ? c->variable[0].extent[0] : first->extent[first->ndim - 1];
}

/* Binary crossentropies refuse targets below 0. */
static inline bool rig_wants_shares(const op_case *c)
{
    const bwi_loss_attributes *a = c->op == &bwi_op_loss ? c->attributes : NULL;
    return c->op == &bwi_op_graded_loss || (a && (a->kind == BWI_LOSS_BINARY || a->kind == BWI_LOSS_BINARY_LOGITS));
}

/* x is the identity, or, `on_data`, random samples of the op's first input. */
static inline void rig_samples(rig *r, const op_case *c, const bwi_shape *y_shape, bool on_data)
{
    const case_input *y = rig_find_input(c, CASE_Y), *w = rig_find_input(c, CASE_W);
    bwi_shape x_shape = on_data ? c->input[0].shape : (bwi_shape)SHAPE(RIG_SAMPLES);
    r->x = rig_values(r, &x_shape, 0);
    for (int i = 0; i < RIG_SAMPLES * RIG_SAMPLES && !on_data; i++) {
        r->x[i] = i % (RIG_SAMPLES + 1) == 0 ? 1 : 0;
    }
    r->y = rig_values(r, y ? &y->shape : y_shape, y ? rig_classes(c, y) : 0);
    for (int64_t i = 0; rig_wants_shares(c) && y->dtype == BW_F32 && i < RIG_SAMPLES * bwi_shape_count(&y->shape); i++) {
        r->y[i] = fabsf(r->y[i]);
    }
    r->w = w ? rig_values(r, &w->shape, rig_classes(c, w)) : NULL;
    bw_array xa = rig_array(r->x, &x_shape), ya = rig_array(r->y, y ? &y->shape : y_shape);
    bw_array wa = w ? rig_array(r->w, &w->shape) : (bw_array){0};
    r->dataset = bw_from_arrays(r->ctx, &xa, &ya, w ? &wa : NULL);
    if (!r->dataset) {
        fail_msg("samples: %s", bw_message(r->ctx));
    }
}

/* ---- The graph ---- */

/* Fields stand in the dataset in the order x, y, w. */
static inline bw_node *rig_input(rig *r, int field, const bwi_shape *shape, bw_dtype dtype)
{
    bwi_input_attributes a = {.shape = *shape, .dtype = dtype, .field = field};
    return rig_node(r, &bwi_op_input, &a, sizeof a, NULL, 0, NULL, 0);
}

/* Numbers that are products of the samples' with a variable. */
static inline bw_node *rig_varied(rig *r, const bwi_shape *shape)
{
    int64_t count = bwi_shape_count(shape);
    bwi_shape kernel = SHAPE(bwi_shape_count(&r->input->shape), count);
    bwi_dense_attributes a = {.units = count};
    bwi_reshape_attributes flat = {.shape = {.ndim = -1}};
    bwi_variable *variable = rig_variable(r, "varied", &kernel, true);
    bw_node *x = r->input->shape.ndim == 1 ? r->input : rig_node(r, &bwi_op_reshape, &flat, sizeof flat, &r->input, 1, NULL, 0);
    bw_node *node = rig_node(r, &bwi_op_dense, &a, sizeof a, &x, 1, &variable, 1);
    bwi_reshape_attributes to = {.shape = *shape};
    return shape->ndim == 1 ? node : rig_node(r, &bwi_op_reshape, &to, sizeof to, &node, 1, NULL, 0);
}

static inline bw_node *rig_case_input(rig *r, const case_input *in, bool on_data)
{
    if (in->from == CASE_VARIED) {
        return on_data && bwi_shape_equal(&in->shape, &r->input->shape) ? r->input : rig_varied(r, &in->shape);
    }
    return rig_input(r, in->from == CASE_Y ? 1 : 2, &in->shape, in->dtype);
}

static inline bw_node *rig_op(rig *r, const op_case *c, bool on_data)
{
    bw_node *inputs[CASE_INPUTS];
    bwi_variable *variables[CASE_VARIABLES];
    int count = 0, variable_count = 0, trained = 0;
    while (trained < CASE_VARIABLES && c->variable[trained].ndim) {
        trained++;
    }
    trained -= c->frozen;
    for (; count < CASE_INPUTS && c->input[count].from; count++) {
        inputs[count] = rig_case_input(r, &c->input[count], on_data);
    }
    for (; variable_count < CASE_VARIABLES && c->variable[variable_count].ndim; variable_count++) {
        variables[variable_count] = rig_variable(r, c->op->name, &c->variable[variable_count], variable_count < trained);
        variables[variable_count]->sparse = variable_count == 0 && c->op->records;
    }
    return rig_node(r, c->op, c->attributes, c->attribute_bytes, inputs, count, variables, variable_count);
}

static inline void rig_open(rig *r, const op_case *c, bool on_data)
{
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.workers = 2;
    *r = (rig){.ctx = bw_open(&options), .positive = c->positive};
    assert_non_null(r->ctx);
    r->graph.ctx = r->ctx;
    bwi_shape rows = SHAPE(RIG_SAMPLES);
    r->input = rig_input(r, 0, on_data ? &c->input[0].shape : &rows, BW_F32);
}

static inline void rig_add_loss(rig *r, bool is_loss)
{
    bw_node *ends[2] = {r->output};
    if (!is_loss) {
        ends[1] = rig_input(r, 1, &r->output->shape, BW_F32);
    }
    bwi_loss_attributes square = {.kind = BWI_LOSS_SQUARE};
    r->loss = is_loss ? r->output : rig_node(r, &bwi_op_loss, &square, sizeof square, ends, 2, NULL, 0);
    r->mean = rig_node(r, &bwi_op_mean, NULL, 0, &r->loss, 1, NULL, 0);
}

/* Values that differ from each other by at least `gap`, and from zero and those of another `shift` by half of it, in random
 * order. */
static inline void rig_spread(rig *r, float *values, int64_t count, double gap, double shift)
{
    for (int64_t i = 0; i < count; i++) {
        double place = (double)bwi_permute(5, r->draws, count, i) - (double)(count / 2);
        values[i] = (float)((place + (place < 0 ? 0.0 : 1.0) + shift) * gap);
    }
    r->draws++;
}

static inline void rig_variables(rig *r, bool kinks, double gap)
{
    for (int n = 0; n < r->graph.count; n++) {
        const bw_node *node = r->graph.nodes[n];
        bool packed = node->variables > 0 && node->variable[0]->packing.pack;
        rig_require(r, node->op->pack && !packed ? node->op->pack(r->ctx, node) : BW_OK, node->name);
    }
    rig_require(r, bwi_graph_open_variables(&r->graph, bwi_kernels_of(r->ctx)), "variables");
    for (int v = 0; v < r->graph.variable_count; v++) {
        const bwi_variable *variable = r->graph.variables[v];
        int64_t count = bwi_shape_count(&variable->shape);
        float *values = calloc((size_t)count, sizeof *values);
        for (int64_t i = 0; i < count; i++) {
            values[i] = (float)(r->positive ? 0.5 + 0.3 * rig_random(r) : rig_random(r));
        }
        if (kinks) {
            rig_spread(r, values, count, gap, v % 2 ? 0.5 : 0);
        }
        bwi_variable_write(variable, values);
        free(values);
    }
}

static inline bwi_exec *rig_exec(const rig *r, bw_node *const *targets, int count, int64_t batch)
{
    bwi_program_request program = {targets, count, &r->loss, 1};
    bwi_plan_request request = {
        .graph = &r->graph, .programs = &program, .program_count = 1, .batch = batch, .tile = RIG_TILE, .lanes = RIG_LANES};
    bwi_plan *plan = NULL;
    bwi_exec *exec = NULL;
    rig_require(r, bwi_plan_make(r->ctx, &plan, &request), "plan");
    assert_int_equal(plan->tile, RIG_TILE);
    assert_int_equal(plan->keep, batch > 0);
    rig_require(r, bwi_exec_open(r->ctx, &exec, plan), "exec");
    return exec;
}

static inline void rig_close(rig *r)
{
    bwi_graph_free(&r->graph);
    bw_close(r->ctx);
    free(r->x);
    free(r->y);
    free(r->w);
}

/* ---- Gradients ---- */

/* Gradients of all variables, as stored; on workers, each part once. */
static inline void rig_take(void *user, const bwi_variable *variable, int64_t first, int64_t count, const void *gradient)
{
    float **gradients = user;
    memcpy(gradients[variable->index] + first, gradient, (size_t)count * sizeof(float));
}

/* The window's gradient sums in Keras's order, one array for each variable (NULL: not trained); frees nothing. */
static inline void rig_collect(bw_context *ctx, bwi_exec *exec, const bwi_graph *graph, float **gradients)
{
    double squared;
    for (int v = 0; v < graph->variable_count; v++) {
        gradients[v] = calloc((size_t)graph->variables[v]->count, sizeof(float));
    }
    bw_status status = bwi_exec_reduce(exec, &squared);
    if (status != BW_OK) {
        fail_msg("reduce: %s: %s", bw_status_name(status), bw_message(ctx));
    }
    bwi_exec_update(exec, &(bwi_sink){.take = rig_take, .user = (void *)gradients});
    for (int v = 0; v < graph->variable_count; v++) {
        bwi_variable seen = *graph->variables[v];
        float *plain = calloc((size_t)bwi_shape_count(&seen.shape), sizeof(float));
        seen.data = gradients[v];
        bwi_variable_read(&seen, plain);
        free(gradients[v]);
        gradients[v] = plain;
        if (!seen.trainable) {
            free(plain);
            gradients[v] = NULL;
        }
    }
}

static inline void rig_gradients(const rig *r, bwi_exec *exec, int64_t samples, float **gradients)
{
    bwi_piece piece = {.dataset = r->dataset, .count = samples};
    rig_require(r, bwi_exec_feed(exec, 0, &piece, NULL), "feed");
    rig_collect(r->ctx, exec, &r->graph, gradients);
}

static inline void rig_free_gradients(const bwi_graph *graph, float **gradients)
{
    for (int v = 0; v < graph->variable_count; v++) {
        free(gradients[v]);
    }
}

/* The loss of the first `samples` samples, in double from what the op gives in training. */
static inline double rig_loss(const rig *r, bwi_exec *exec, int64_t samples, float *outputs)
{
    bwi_piece piece = {.dataset = r->dataset, .count = samples};
    bwi_exec_touch(exec);
    rig_require(r, bwi_exec_feed(exec, 0, &piece, outputs ? (float *const[]){outputs} : NULL), "feed");
    bwi_exec_clear(exec);
    int64_t count = bwi_shape_count(&r->output->shape);
    double sum = 0;
    for (int64_t i = 0; i < samples * count; i++) {
        double e = (double)outputs[i] - (double)r->y[i];
        sum += r->loss == r->output ? (double)outputs[i] : e * e / (double)count;
    }
    return sum;
}

#endif
