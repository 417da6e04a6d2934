/* Writes C source for recurrent layers: loops over the steps, with the states in local arrays. The formulas are those of
 * bwi_cell. */
#include "file/csource.h"

#include <stdio.h>

#define LINE(depth, ...) bwi_csource_line(s, depth, __VA_ARGS__)

typedef struct sequence {
    const bwi_recurrent_attributes *a;
    long long units, columns, steps;
    char weights[160], bias[160]; /* "": there is no bias of the state's products */
} sequence;

static void put_function(bwi_csource *s, const char *name, const bwi_cell_function *f)
{
    bwi_activation_attributes a = {.kind = f->kind, .p = {f->p[0], f->p[1], f->p[2]}};
    char formula[256];
    LINE(4, "const float v = %s;", name);
    LINE(4, "%s = %s;", name, bwi_csource_formula(&a, formula));
}

/* q = the products of `state`, for columns from `first` on. */
static void put_products(bwi_csource *s, const sequence *q, const char *state, long long first, long long count)
{
    LINE(3, "for (int o = %lld; o < %lld; o++) {", first, first + count);
    if (q->bias[0]) {
        LINE(4, "q[o] = %s[%lld + o];", q->bias, q->columns);
    } else {
        LINE(4, "q[o] = 0.0f;");
    }
    LINE(3, "}");
    LINE(3, "for (int i = 0; i < %lld; i++) {", q->units);
    LINE(4, "for (int o = %lld; o < %lld; o++) {", first, first + count);
    LINE(5, "q[o] += %s[i] * %s[i * %lld + o];", state, q->weights, q->columns);
    LINE(4, "}");
    LINE(3, "}");
}

/* q[o] = f(q[o] + row[o]) for columns of gates. */
static void put_gates(bwi_csource *s, const sequence *q, long long first, long long count, const bwi_cell_function *f)
{
    LINE(3, "for (int o = %lld; o < %lld; o++) {", first, first + count);
    if (q->bias[0]) {
        LINE(4, "q[o] += row[o] + %s[o];", q->bias);
    } else {
        LINE(4, "q[o] += row[o];");
    }
    put_function(s, "q[o]", f);
    LINE(3, "}");
}

static void put_lstm(bwi_csource *s, const sequence *q)
{
    long long u = q->units;
    put_products(s, q, "h", 0, 4 * u);
    put_gates(s, q, 0, 2 * u, &q->a->recurrent_activation);
    put_gates(s, q, 2 * u, u, &q->a->activation);
    put_gates(s, q, 3 * u, u, &q->a->recurrent_activation);
    LINE(3, "for (int j = 0; j < %lld; j++) {", u);
    LINE(4, "c[j] = q[%lld + j] * c[j] + q[j] * q[%lld + j];", u, 2 * u);
    LINE(4, "h[j] = c[j];");
    put_function(s, "h[j]", &q->a->activation);
    LINE(4, "h[j] *= q[%lld + j];", 3 * u);
    LINE(3, "}");
}

static void put_gru(bwi_csource *s, const sequence *q, bool after)
{
    long long u = q->units;
    put_products(s, q, "h", 0, (after ? 3 : 2) * u);
    put_gates(s, q, 0, 2 * u, &q->a->recurrent_activation);
    LINE(3, "for (int j = 0; j < %lld; j++) {", u);
    if (after) {
        LINE(4, "q[%lld + j] *= q[%lld + j];", 2 * u, u);
    } else {
        LINE(4, "c[j] = q[%lld + j] * h[j];", u);
    }
    LINE(3, "}");
    if (!after) {
        put_products(s, q, "c", 2 * u, u);
    }
    put_gates(s, q, 2 * u, u, &q->a->activation);
    LINE(3, "for (int j = 0; j < %lld; j++) {", u);
    LINE(4, "h[j] = q[j] * h[j] + (1.0f - q[j]) * q[%lld + j];", 2 * u);
    LINE(3, "}");
}

static void put_simple(bwi_csource *s, const sequence *q)
{
    put_products(s, q, "h", 0, q->units);
    put_gates(s, q, 0, q->units, &q->a->activation);
    LINE(3, "for (int j = 0; j < %lld; j++) {", q->units);
    LINE(4, "h[j] = q[j];");
    LINE(3, "}");
}

/* A masked step leaves the states as they are. y has the steps in the order in which they are taken. */
void bwi_csource_recurrent(bwi_csource *s, const bw_node *node)
{
    const bwi_recurrent_attributes *a = node->attributes;
    int mask = bwi_recurrent_mask(node);
    bool several = node->inputs > 1;
    char backwards[32];
    sequence q = {.a = a, .units = (long long)a->units, .steps = (long long)node->input[0]->shape.extent[0]};
    q.columns = (long long)node->input[0]->shape.extent[1];
    bwi_csource_variable(s, node->variable[0], q.weights);
    if (node->variables > 1) {
        bwi_csource_variable(s, node->variable[1], q.bias);
    }
    snprintf(backwards, sizeof backwards, "%lld - s", q.steps - 1);
    LINE(2, "float h[%lld] = {0.0f}, c[%lld] = {0.0f}, q[%lld];", q.units, q.units, q.columns);
    LINE(2, "(void)c;");
    for (int i = 0; a->begins && i < bwi_cell_states(a->cell); i++) {
        LINE(2, "for (int j = 0; j < %lld; j++) {", q.units);
        LINE(3, "%s[j] = x%d[j];", i ? "c" : "h", 1 + i);
        LINE(2, "}");
    }
    LINE(2, "for (int s = 0; s < %lld; s++) {", q.steps);
    LINE(3, "const int t = %s;", a->backwards ? backwards : "s");
    LINE(3, "const float *row = %s + t * %lld;", several ? "x0" : "x", q.columns);
    if (mask) {
        LINE(3, "if (x%d[t] > 0.0f) {", mask);
    }
    if (a->cell == BWI_CELL_LSTM) {
        put_lstm(s, &q);
    } else if (a->cell == BWI_CELL_SIMPLE) {
        put_simple(s, &q);
    } else {
        put_gru(s, &q, a->cell == BWI_CELL_GRU_AFTER);
    }
    if (mask) {
        LINE(3, "}");
    }
    LINE(3, "for (int j = 0; j < %lld; j++) {", q.units);
    if (a->sequences && mask && a->zero_masked) {
        LINE(4, "y[s * %lld + j] = x%d[t] > 0.0f ? h[j] : 0.0f;", q.units, mask);
    } else if (a->sequences) {
        LINE(4, "y[s * %lld + j] = h[j];", q.units);
    } else {
        LINE(4, "y[j] = h[j];");
    }
    LINE(3, "}");
    LINE(2, "}");
    for (int i = 0; a->ends && i < bwi_cell_states(a->cell); i++) {
        LINE(2, "for (int j = 0; j < %lld; j++) {", q.units);
        LINE(3, "y[%lld + j] = %s[j];", ((a->sequences ? q.steps : 1) + i) * q.units, i ? "c" : "h");
        LINE(2, "}");
    }
}
