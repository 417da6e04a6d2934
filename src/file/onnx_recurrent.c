/*
 * Writes ONNX for recurrent layers: a Scan over the steps, whose body computes one of them from its products and the states. ONNX's
 * own LSTM and GRU have neither masks nor all of Keras's activations. The formulas are those of bwi_cell.
 */
#include "file/onnx.h"

#include <stdio.h>

typedef struct cell {
    bwi_onnx *o;
    const bwi_recurrent_attributes *a;
    const char *weights, *bias; /* NULL: no bias of the state's products */
    bwi_onnx_name x, h, c, mask;
    bwi_onnx_name next_h, next_c, y, own_bias;
} cell;

/* Columns of gates, `count` of them from gate `first` on. */
static const char *part(const cell *q, const char *from, int64_t first, int64_t count, bwi_onnx_name to)
{
    int64_t begin = first * q->a->units, end = (first + count) * q->a->units, axis = 1;
    bwi_onnx_name starts, ends, axes;
    bwi_onnx_wholes(q->o, starts, 1, &begin);
    bwi_onnx_wholes(q->o, ends, 1, &end);
    bwi_onnx_wholes(q->o, axes, 1, &axis);
    bwi_onnx_add(q->o, "Slice", bwi_onnx_new(q->o, to), from, starts, ends, axes, NULL);
    return to;
}

static const char *combine(const cell *q, const char *type, const char *a, const char *b, bwi_onnx_name to)
{
    bwi_onnx_add(q->o, type, bwi_onnx_new(q->o, to), a, b, NULL);
    return to;
}

static const char *apply(const cell *q, const bwi_cell_function *f, const char *x, bwi_onnx_name to)
{
    bwi_activation_attributes a = {.kind = f->kind, .p = {f->p[0], f->p[1], f->p[2]}};
    bwi_onnx_activation(q->o, &a, x, bwi_onnx_new(q->o, to));
    return to;
}

/* A gate: columns of the sum of both products. */
static const char *gate(const cell *q, const char *sums, int64_t number, const bwi_cell_function *f, bwi_onnx_name to)
{
    bwi_onnx_name raw;
    return apply(q, f, part(q, sums, number, 1, raw), to);
}

/* a b + c d */
static const char *mix(const cell *q, const char *a, const char *b, const char *c, const char *d, bwi_onnx_name to)
{
    bwi_onnx_name left, right;
    combine(q, "Mul", a, b, left);
    combine(q, "Mul", c, d, right);
    return combine(q, "Add", left, right, to);
}

static const char *columns(const cell *q, int64_t first, int64_t count, bwi_onnx_name to)
{
    return part(q, q->weights, first, count, to);
}

static void put_simple(cell *q)
{
    bwi_onnx_name product, sum;
    combine(q, "Add", combine(q, "MatMul", q->h, q->weights, product), q->x, sum);
    apply(q, &q->a->activation, sum, q->next_h);
}

static void put_lstm(cell *q)
{
    const bwi_cell_function *f = &q->a->activation, *s = &q->a->recurrent_activation;
    bwi_onnx_name product, sums, i, forget, g, out, squashed;
    combine(q, "Add", combine(q, "MatMul", q->h, q->weights, product), q->x, sums);
    gate(q, sums, 0, s, i);
    gate(q, sums, 1, s, forget);
    gate(q, sums, 2, f, g);
    gate(q, sums, 3, s, out);
    mix(q, forget, q->c, i, g, q->next_c);
    combine(q, "Mul", out, apply(q, f, q->next_c, squashed), q->next_h);
}

/* The candidate's product is that of the state, times r, or that of the state times r. */
static void put_gru(cell *q, bool after)
{
    const bwi_cell_function *f = &q->a->activation, *s = &q->a->recurrent_activation;
    bwi_onnx_name weights, products, biased, x, both, sums, z, r, third, reset, own, whole, g, one, rest;
    const char *product = combine(q, "MatMul", q->h, after ? q->weights : columns(q, 0, 2, weights), products);
    if (q->bias) {
        product = combine(q, "Add", product, q->bias, biased);
    }
    combine(q, "Add", part(q, product, 0, 2, both), part(q, q->x, 0, 2, x), sums);
    gate(q, sums, 0, s, z);
    gate(q, sums, 1, s, r);
    if (after) {
        combine(q, "Mul", r, part(q, product, 2, 1, third), reset);
    } else {
        combine(q, "Mul", r, q->h, third);
        combine(q, "MatMul", third, columns(q, 2, 1, own), reset);
    }
    combine(q, "Add", part(q, q->x, 2, 1, third), reset, whole);
    apply(q, f, whole, g);
    combine(q, "Sub", bwi_onnx_float(q->o, one, 1), z, rest);
    mix(q, z, q->h, rest, g, q->next_h);
}

/* Where the step does not count, the states stay, and y repeats or is zero. */
static void put_masked(cell *q, bool carries)
{
    bwi_onnx_name zero, column, counts, kept;
    bwi_shape one = {.ndim = 1, .extent = {1}};
    bwi_onnx_reshape(q->o, q->mask, bwi_onnx_new(q->o, column), &one);
    bwi_onnx_float(q->o, zero, 0);
    combine(q, "Greater", column, zero, counts);
    bwi_onnx_add(q->o, "Where", bwi_onnx_new(q->o, kept), counts, q->next_h, q->h, NULL);
    if (q->a->zero_masked) {
        bwi_onnx_add(q->o, "Where", bwi_onnx_new(q->o, q->y), counts, q->next_h, zero, NULL);
    } else {
        bwi_onnx_add(q->o, "Identity", bwi_onnx_new(q->o, q->y), kept, NULL);
    }
    snprintf(q->next_h, sizeof q->next_h, "%s", kept);
    if (carries) {
        bwi_onnx_add(q->o, "Where", bwi_onnx_new(q->o, kept), counts, q->next_c, q->c, NULL);
        snprintf(q->next_c, sizeof q->next_c, "%s", kept);
    }
}

/* States of zeros, as many as there are samples. */
static void put_zeros(const cell *q, const char *x, bwi_onnx_name to)
{
    bwi_onnx_name shape, zero, one, samples, units, whole;
    int64_t begin = 0, end = 1;
    bwi_onnx_add(q->o, "Shape", bwi_onnx_new(q->o, shape), x, NULL);
    bwi_onnx_wholes(q->o, zero, 1, &begin);
    bwi_onnx_wholes(q->o, one, 1, &end);
    bwi_onnx_add(q->o, "Slice", bwi_onnx_new(q->o, samples), shape, zero, one, NULL);
    bwi_onnx_wholes(q->o, units, 1, &q->a->units);
    bwi_onnx_begin(q->o, "Concat", (const char *[]){samples, units, NULL}, bwi_onnx_new(q->o, whole));
    bwi_onnx_put(q->o, "axis", 0);
    bwi_onnx_end(q->o);
    bwi_onnx_add(q->o, "ConstantOfShape", bwi_onnx_new(q->o, to), whole, NULL);
}

/* The bias of the inputs is added before the steps are taken. */
static const char *biased_inputs(bwi_onnx *o, const bw_node *node, cell *q, bwi_onnx_name sum)
{
    const char *x = bwi_onnx_of(o, node->input[0], BWI_ONNX_LAST);
    if (node->variables < 2) {
        return x;
    }
    int64_t wide = node->input[0]->shape.extent[1], rows[3] = {0, 1, 2}, flat = wide;
    bwi_onnx_name first, second, third, axis, length, own, part_x, part_h;
    const char *both = bwi_onnx_variable(o, node->variable[1]);
    bwi_onnx_wholes(o, first, 1, &rows[0]);
    bwi_onnx_wholes(o, second, 1, &rows[1]);
    bwi_onnx_wholes(o, third, 1, &rows[2]);
    bwi_onnx_wholes(o, axis, 1, &rows[0]);
    bwi_onnx_wholes(o, length, 1, &flat);
    bwi_onnx_add(o, "Slice", bwi_onnx_new(o, part_x), both, first, second, axis, NULL);
    bwi_onnx_add(o, "Slice", bwi_onnx_new(o, part_h), both, second, third, axis, NULL);
    bwi_onnx_add(o, "Reshape", bwi_onnx_new(o, own), part_x, length, NULL);
    bwi_onnx_add(o, "Reshape", bwi_onnx_new(o, q->own_bias), part_h, length, NULL);
    q->bias = q->own_bias;
    bwi_onnx_add(o, "Add", bwi_onnx_new(o, sum), x, own, NULL);
    return sum;
}

/* The body is written into nodes of its own, which become the Scan's. */
static void put_body(cell *q, bool masked)
{
    bwi_onnx_name fresh[4];
    for (int i = 0; i < 4; i++) {
        bwi_onnx_new(q->o, fresh[i]);
    }
    snprintf(q->h, sizeof q->h, "%s", fresh[0]);
    snprintf(q->c, sizeof q->c, "%s", fresh[1]);
    snprintf(q->x, sizeof q->x, "%s", fresh[2]);
    snprintf(q->mask, sizeof q->mask, "%s", fresh[3]);
    if (q->a->cell == BWI_CELL_SIMPLE) {
        put_simple(q);
    } else if (q->a->cell == BWI_CELL_LSTM) {
        put_lstm(q);
    } else {
        put_gru(q, q->a->cell == BWI_CELL_GRU_AFTER);
    }
    if (masked) {
        put_masked(q, q->a->cell == BWI_CELL_LSTM);
    } else {
        bwi_onnx_add(q->o, "Identity", bwi_onnx_new(q->o, q->y), q->next_h, NULL);
    }
}

/* y is the steps, or the last one, followed by the states. */
static void put_ends(bwi_onnx *o, const bwi_recurrent_attributes *a, const char *steps, const char *h, const char *c, const char *y)
{
    bwi_shape row = {.ndim = 2, .extent = {1, a->units}};
    bwi_onnx_name h_row, c_row;
    bwi_onnx_reshape(o, h, bwi_onnx_new(o, h_row), &row);
    if (c) {
        bwi_onnx_reshape(o, c, bwi_onnx_new(o, c_row), &row);
    }
    bwi_onnx_begin(o, "Concat", (const char *[]){a->sequences ? steps : h_row, h_row, c ? c_row : NULL, NULL}, y);
    bwi_onnx_put(o, "axis", 1);
    bwi_onnx_end(o);
}

/* Inputs of the Scan are the states' beginnings, then what it goes over along axis 1: products and mask. Its results are the last
 * states, then all steps of y. */
void bwi_onnx_recurrent(bwi_onnx *o, const bw_node *node)
{
    const bwi_recurrent_attributes *a = node->attributes;
    int at = bwi_recurrent_mask(node);
    bool masked = at > 0, carries = a->cell == BWI_CELL_LSTM;
    cell q = {.o = o, .a = a, .weights = bwi_onnx_variable(o, node->variable[0])};
    bwi_onnx_name sum, zeros, last_h, last_c, steps;
    const char *x = biased_inputs(o, node, &q, sum), *y = bwi_onnx_result(o, node, BWI_ONNX_LAST);
    const char *mask = masked ? bwi_onnx_of(o, node->input[at], BWI_ONNX_LAST) : NULL;
    const int64_t axes[2] = {1, 1}, directions[2] = {a->backwards, a->backwards};
    if (!a->begins) {
        put_zeros(&q, x, zeros);
    }
    bwi_wire outside = o->nodes;
    o->nodes = (bwi_wire){.ctx = outside.ctx};
    put_body(&q, masked);
    bwi_wire body = o->nodes;
    o->nodes = outside;
    const char *in[6], *names[6], *out[4];
    int inputs = 0, outputs = 0;
    for (int k = 0; k < 1 + carries; k++) {
        names[inputs] = k ? q.c : q.h;
        in[inputs++] = a->begins ? bwi_onnx_of(o, node->input[1 + k], BWI_ONNX_LAST) : zeros;
        out[outputs++] = k ? q.next_c : q.next_h;
    }
    names[inputs] = q.x;
    in[inputs++] = x;
    if (masked) {
        names[inputs] = q.mask;
        in[inputs++] = mask;
    }
    in[inputs] = NULL;
    out[outputs++] = q.y;
    bool last = a->sequences || a->ends;
    bwi_onnx_new(o, steps);
    bwi_onnx_begin(o, "Scan", in, last ? bwi_onnx_new(o, last_h) : y);
    if (carries) {
        bwi_onnx_put_output(o, bwi_onnx_new(o, last_c));
    }
    bwi_onnx_put_output(o, a->sequences && !a->ends ? y : steps);
    bwi_onnx_put(o, "num_scan_inputs", 1 + masked);
    bwi_onnx_put_list(o, "scan_input_axes", 1 + masked, axes);
    bwi_onnx_put_list(o, "scan_input_directions", 1 + masked, directions);
    bwi_onnx_put_list(o, "scan_output_axes", 1, axes);
    bwi_onnx_put_graph(o, "body", &body, inputs, names, outputs, out);
    bwi_onnx_end(o);
    if (a->ends) {
        put_ends(o, a, steps, last_h, carries ? last_c : NULL, y);
    }
    bwi_wire_free(&body);
}
