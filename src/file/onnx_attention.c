/*
 * Writes ONNX for attention: scores of shape (batch, groups, heads of a group, queries, keys) by a product that broadcasts, masks
 * by Where, softmax, and the product with the values.
 */
#include "file/onnx.h"

typedef struct writer {
    bwi_onnx *o;
    const bw_node *node;
    const bwi_attention_attributes *a;
    bwi_attention k;
    const char *seen; /* the condition so far; NULL: all are seen */
    bwi_onnx_name conditions[5];
    int count;
} writer;

static const char *input(const writer *w, int number)
{
    return bwi_onnx_of(w->o, w->node->input[number], BWI_ONNX_LAST);
}

/* (positions, groups, heads of a group, width) with its axes in another order, of which the batch is the first. */
static void arrange(const writer *w, const char *from, const bwi_shape *shape, const int64_t *axes, bwi_onnx_name to)
{
    bwi_onnx_name apart;
    bwi_onnx_reshape(w->o, from, bwi_onnx_new(w->o, apart), shape);
    bwi_onnx_transpose(w->o, apart, bwi_onnx_new(w->o, to), 5, axes);
}

static void put_dot_scores(const writer *w, bwi_onnx_name scores)
{
    static const int64_t query_axes[] = {0, 2, 3, 1, 4}, key_axes[] = {0, 2, 3, 4, 1};
    const bwi_attention *k = &w->k;
    bwi_shape q_shape = {.ndim = 4, .extent = {k->queries, k->groups, k->heads / k->groups, k->key_width}};
    bwi_shape k_shape = {.ndim = 4, .extent = {k->keys, k->groups, 1, k->key_width}};
    bwi_onnx_name q, turned, product, scale, scaled;
    arrange(w, input(w, 0), &q_shape, query_axes, q);
    arrange(w, input(w, 1), &k_shape, key_axes, turned);
    bwi_onnx_add(w->o, "MatMul", bwi_onnx_new(w->o, product), q, turned, NULL);
    bwi_onnx_float(w->o, scale, w->a->scale);
    if (w->a->factor) {
        bwi_onnx_add(w->o, "Mul", bwi_onnx_new(w->o, scaled), product, bwi_onnx_variable(w->o, w->node->variable[0]), NULL);
    }
    bwi_onnx_add(w->o, "Mul", bwi_onnx_new(w->o, scores), w->a->factor ? scaled : product, scale, NULL);
}

/* sum over the width of weight tanh(factor (q + k)), with q as columns and k as rows. */
static void put_additive_scores(const writer *w, bwi_onnx_name scores)
{
    const bwi_attention *k = &w->k;
    int64_t axis = -1;
    bwi_shape q_shape = {.ndim = 3, .extent = {k->queries, 1, k->key_width}},
              k_shape = {.ndim = 3, .extent = {1, k->keys, k->key_width}};
    bwi_shape all = {.ndim = 4, .extent = {1, 1, k->queries, k->keys}};
    bwi_onnx_name q, key, sum, scaled, squashed, weighted, axes, total;
    bwi_onnx_reshape(w->o, input(w, 0), bwi_onnx_new(w->o, q), &q_shape);
    bwi_onnx_reshape(w->o, input(w, 1), bwi_onnx_new(w->o, key), &k_shape);
    bwi_onnx_add(w->o, "Add", bwi_onnx_new(w->o, sum), q, key, NULL);
    if (w->a->factor) {
        bwi_onnx_add(w->o, "Mul", bwi_onnx_new(w->o, scaled), sum, bwi_onnx_variable(w->o, w->node->variable[0]), NULL);
    }
    bwi_onnx_add(w->o, "Tanh", bwi_onnx_new(w->o, squashed), w->a->factor ? scaled : sum, NULL);
    if (w->a->weight) {
        const char *weight = bwi_onnx_variable(w->o, w->node->variable[w->a->factor ? 1 : 0]);
        bwi_onnx_add(w->o, "Mul", bwi_onnx_new(w->o, weighted), squashed, weight, NULL);
    }
    bwi_onnx_wholes(w->o, axes, 1, &axis);
    bwi_onnx_begin(w->o, "ReduceSum", (const char *[]){w->a->weight ? weighted : squashed, axes, NULL}, bwi_onnx_new(w->o, total));
    bwi_onnx_put(w->o, "keepdims", 0);
    bwi_onnx_end(w->o);
    bwi_onnx_reshape(w->o, total, bwi_onnx_new(w->o, scores), &all);
}

/* One more condition that must hold. */
static void require(writer *w, const char *condition)
{
    char *to = w->conditions[w->count++];
    bwi_onnx_add(w->o, w->seen ? "And" : "Identity", bwi_onnx_new(w->o, to), condition, w->seen, NULL);
    w->seen = to;
}

static void require_mask(writer *w, int number, int64_t queries, int64_t keys)
{
    bwi_shape shape = {.ndim = 4, .extent = {1, 1, queries, keys}};
    bwi_onnx_name spread, zero, hidden, seen;
    bwi_onnx_reshape(w->o, input(w, number), bwi_onnx_new(w->o, spread), &shape);
    bwi_onnx_float(w->o, zero, 0);
    bwi_onnx_add(w->o, "Equal", bwi_onnx_new(w->o, hidden), spread, zero, NULL);
    bwi_onnx_add(w->o, "Not", bwi_onnx_new(w->o, seen), hidden, NULL);
    require(w, seen);
}

/* ahead = key - query, as a constant column and a constant row: seen where it is below `limit`, or -ahead is. */
static void require_distance(writer *w, bool turned, float limit)
{
    const bwi_attention *k = &w->k;
    bwi_onnx_name query, key, row_shape, column_shape, first, last_query, last_key, step, rows, columns, ahead, most, seen;
    int64_t row[] = {1, -1}, column[] = {-1, 1};
    bwi_onnx_float(w->o, first, 0);
    bwi_onnx_float(w->o, step, 1);
    bwi_onnx_float(w->o, last_query, (float)k->queries);
    bwi_onnx_float(w->o, last_key, (float)k->keys);
    bwi_onnx_add(w->o, "Range", bwi_onnx_new(w->o, query), first, last_query, step, NULL);
    bwi_onnx_add(w->o, "Range", bwi_onnx_new(w->o, key), first, last_key, step, NULL);
    bwi_onnx_wholes(w->o, row_shape, 2, row);
    bwi_onnx_wholes(w->o, column_shape, 2, column);
    bwi_onnx_add(w->o, "Reshape", bwi_onnx_new(w->o, columns), query, column_shape, NULL);
    bwi_onnx_add(w->o, "Reshape", bwi_onnx_new(w->o, rows), key, row_shape, NULL);
    bwi_onnx_add(w->o, "Sub", bwi_onnx_new(w->o, ahead), turned ? columns : rows, turned ? rows : columns, NULL);
    bwi_onnx_add(w->o, "Less", bwi_onnx_new(w->o, seen), ahead, bwi_onnx_float(w->o, most, limit), NULL);
    require(w, seen);
}

/* Query i sees key j if all masks and distances allow it. */
static void require_all(writer *w)
{
    const bwi_attention_attributes *a = w->a;
    int at = 3;
    if (a->causal) {
        require_distance(w, false, 1);
    }
    if (a->window) {
        require_distance(w, true, (float)a->window);
    }
    if (a->window && !a->causal) {
        require_distance(w, false, (float)a->window);
    }
    if (a->query_mask) {
        require_mask(w, at++, w->k.queries, 1);
    }
    if (a->key_mask) {
        require_mask(w, at++, 1, w->k.keys);
    }
    if (a->pair_mask) {
        require_mask(w, at++, w->k.queries, w->k.keys);
    }
}

void bwi_onnx_attention(bwi_onnx *o, const bw_node *node)
{
    static const int64_t value_axes[] = {0, 2, 3, 1, 4}, output_axes[] = {0, 3, 1, 2, 4};
    writer w = {.o = o, .node = node, .a = node->attributes, .k = bwi_attention_of(node, 1)};
    bwi_shape v_shape = {.ndim = 4, .extent = {w.k.keys, w.k.groups, 1, w.k.value_width}};
    bwi_onnx_name scores, least, hidden, masked, shares, zero, excluded, v, product, ordered;
    const char *from = scores, *weights = shares;
    if (w.a->scores == BWI_SCORES_DOT) {
        put_dot_scores(&w, scores);
    } else {
        put_additive_scores(&w, scores);
    }
    require_all(&w);
    if (w.seen) {
        bool subtracts = w.a->masking == BWI_MASKING_SUBTRACT;
        bwi_onnx_float(o, least, subtracts ? 1e9F : -2.38e38F);
        if (subtracts) {
            bwi_onnx_add(o, "Sub", bwi_onnx_new(o, hidden), scores, least, NULL);
        }
        bwi_onnx_add(o, "Where", bwi_onnx_new(o, masked), w.seen, scores, subtracts ? hidden : least, NULL);
        from = masked;
    }
    bwi_onnx_begin(o, "Softmax", (const char *[]){from, NULL}, bwi_onnx_new(o, shares));
    bwi_onnx_put(o, "axis", -1);
    bwi_onnx_end(o);
    if (w.seen && w.a->masking == BWI_MASKING_EXCLUDE) {
        bwi_onnx_add(o, "Where", bwi_onnx_new(o, excluded), w.seen, shares, bwi_onnx_float(o, zero, 0), NULL);
        weights = excluded;
    }
    arrange(&w, input(&w, 2), &v_shape, value_axes, v);
    bwi_onnx_add(o, "MatMul", bwi_onnx_new(o, product), weights, v, NULL);
    bwi_onnx_transpose(o, product, bwi_onnx_new(o, ordered), 5, output_axes);
    bwi_onnx_reshape(o, ordered, bwi_onnx_result(o, node, BWI_ONNX_LAST), &node->shape);
}
