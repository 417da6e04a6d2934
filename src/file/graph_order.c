/*
 * Computes in which order Keras has the layers of each level, and when it runs their calls. A nested model is one operation of the
 * level that calls it: its own calls run one after another where that call stands, whatever the paths through them are.
 */
#include "file/graph.h"

#include <string.h>

static int calls_of(const entry *e)
{
    return e->kind == INPUT ? 1 : e->node_count;
}

/* Collects everything that a call takes, including masks. */
static void collect_all(const entry *e, int number, tensors *found)
{
    const bwi_json *node = e->kind == INPUT ? NULL : bwi_json_at(e->nodes, number);
    found->count = 0;
    found->more = false;
    bwi_graph_collect(bwi_graph_arguments(node), NULL, found);
    bwi_graph_collect(bwi_json_get(node, "kwargs"), NULL, found);
}

/* Calls are numbered entry by entry, beginning at base[i]. */
static int number_of(const level *l, const int *base, const end *at)
{
    return base[at->from - l->entries] + (at->from->kind == INPUT ? 0 : at->node);
}

static size_t count_inputs(const level *l, int *calls)
{
    size_t inputs = 0;
    *calls = 0;
    for (int i = 0; i < l->count; i++) {
        for (int n = 0; n < calls_of(&l->entries[i]); n++, ++*calls) {
            tensors found;
            collect_all(&l->entries[i], n, &found);
            inputs += (size_t)found.count;
        }
    }
    return inputs;
}

/* Describes the calls of a level for layer's order.c. What refers to no call is refused when the calls are made. */
static void describe(const level *l, int *block, bwi_calls *calls, int outputs[BWI_MAX_HEADS])
{
    int *base = block, *operation = base + l->count, *begin = operation + calls->uses, *input = begin + calls->uses + 1, inputs = 0;
    for (int i = 0, use = 0; i < l->count; i++) {
        base[i] = use;
        use += calls_of(&l->entries[i]);
    }
    for (int i = 0, use = 0; i < l->count; i++) {
        for (int n = 0; n < calls_of(&l->entries[i]); n++, use++) {
            tensors found;
            collect_all(&l->entries[i], n, &found);
            operation[use] = i;
            begin[use] = inputs;
            for (int t = 0; t < found.count; t++) {
                end at;
                input[inputs++] = bwi_graph_find_end(l, found.at[t], &at) ? number_of(l, base, &at) : -1;
            }
        }
    }
    begin[calls->uses] = inputs;
    for (int i = 0; i < l->output_count; i++) {
        outputs[i] = number_of(l, base, &l->outputs[i]);
    }
    *calls = (bwi_calls){.uses = calls->uses, .operations = l->count, .operation = operation, .begin = begin, .input = input};
    calls->outputs = outputs;
    calls->output_count = l->output_count;
}

/* Nested models within nested models multiply, so the count stops where bwi_keras_read_graph refuses. */
static int capped(int count)
{
    return count < MOST_CALLS ? count : MOST_CALLS;
}

static int size_of(const entry *e)
{
    return e->kind == NESTED ? e->inner->size : e->kind == LAYER || e->kind == OPERATOR;
}

/* A call runs after all that have lower numbers, each of which takes as many numbers as it has calls within it. */
static bw_status number_calls(const graph_reader *r, level *l, const bwi_call_order *order, int calls)
{
    entry **at = bwi_allocate(r->k.ctx, (size_t)calls, sizeof *at);
    int *node = bwi_allocate(r->k.ctx, (size_t)calls, sizeof *node);
    bw_status status = at && node ? BW_OK : BW_RESOURCE_EXHAUSTED;
    for (int i = 0, use = 0; status == BW_OK && i < l->count; i++) {
        entry *e = &l->entries[i];
        for (int n = 0; n < calls_of(e); n++, use++) {
            if (order->run_at[use] >= 0) {
                at[order->run_at[use]] = e;
                node[order->run_at[use]] = n;
            } else {
                e->run_at[n] = -1;
            }
        }
    }
    for (int k = 0; status == BW_OK && k < calls && at[k]; k++) {
        at[k]->run_at[node[k]] = l->size;
        l->size = capped(l->size + size_of(at[k]));
    }
    bwi_release(r->k.ctx, (void *)at);
    bwi_release(r->k.ctx, node);
    return status;
}

static bw_status order_functional(const graph_reader *r, level *l)
{
    bwi_calls calls;
    bwi_call_order order = {.count = 0};
    int outputs[BWI_MAX_HEADS];
    size_t inputs = count_inputs(l, &calls.uses);
    int *block = bwi_allocate(r->k.ctx, (size_t)l->count + 2 * (size_t)calls.uses + 1 + inputs, sizeof *block);
    bw_status status = block ? BW_OK : BW_RESOURCE_EXHAUSTED;
    if (status == BW_OK) {
        describe(l, block, &calls, outputs);
        status = bwi_call_order_open(r->k.ctx, &calls, &order);
    }
    if (status == BW_OK) {
        memcpy(l->order, order.operations, (size_t)order.count * sizeof *l->order);
        l->order_count = order.count;
        status = number_calls(r, l, &order, calls.uses);
    }
    bwi_call_order_close(r->k.ctx, &order);
    bwi_release(r->k.ctx, block);
    return status;
}

bw_status bwi_graph_order(const graph_reader *r, level *l)
{
    bw_status status = BW_OK;
    for (int i = 0; i < l->count && status == BW_OK; i++) {
        status = l->entries[i].inner ? bwi_graph_order(r, l->entries[i].inner) : BW_OK;
    }
    if (status == BW_OK) {
        l->order = bwi_allocate(r->k.ctx, (size_t)l->count, sizeof *l->order);
        status = l->order ? BW_OK : BW_RESOURCE_EXHAUSTED;
    }
    if (status != BW_OK || !l->list) {
        return status == BW_OK ? order_functional(r, l) : status;
    }
    for (int i = 0; i < l->count; i++) {
        l->order[l->order_count++] = i;
        l->entries[i].run_at[0] = l->size;
        l->size = capped(l->size + size_of(&l->entries[i]));
    }
    return BW_OK;
}
