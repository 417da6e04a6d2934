/*
 * Computes where Keras's files have the variables of a functional model's layers. Groups are named by class and numbered in Keras's
 * order; the groups of a nested model lie within that model's own group.
 */
#include "file/graph.h"

#include <string.h>

static const char *base_name(const graph_reader *r, const entry *e)
{
    return e->kind == NESTED ? e->inner->list ? "sequential" : "functional"
           : e->layer >= 0   ? r->model->layers[e->layer].row->base_name
                             : "";
}

/* Layers of one class are numbered in their order; nested models are numbered by class, too. */
static bw_status add_place(graph_reader *r, const level *l, const int *order, int turn, const char *path)
{
    const entry *e = &l->entries[order[turn]];
    bwi_stored *place = &r->model->stored[r->model->stored_count];
    char own[sizeof place->path], number[16] = "";
    int same = 0;
    if (e->kind != NESTED && (e->kind != LAYER || e->layer < 0)) {
        return BW_OK;
    }
    for (int i = 0; i < turn; i++) {
        const entry *before = &l->entries[order[i]];
        same += (before->kind == NESTED || before->kind == LAYER) && strcmp(base_name(r, before), base_name(r, e)) == 0;
    }
    if (same) {
        snprintf(number, sizeof number, "_%d", same);
    }
    int length = snprintf(own, sizeof own, "%slayers/%s%s", path, base_name(r, e), number);
    if (length < 0 || (size_t)length + 1 >= sizeof own) {
        return bwi_fail_file(r->k.ctx, BW_UNIMPLEMENTED, r->k.path, "layer %s: models are nested too deeply", e->name);
    }
    if (e->kind == NESTED) {
        memcpy(own + length, "/", 2);
        return bwi_graph_places(r, e->inner, own);
    }
    place->layer = e->layer;
    memcpy(place->path, own, sizeof own);
    r->model->stored_count++;
    return BW_OK;
}

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

/* Orders a functional level by treating its uses as a graph. */
static bw_status order_level(graph_reader *r, const level *l, int *order, int *count)
{
    int uses = 0, inputs = 0, outputs[BWI_MAX_HEADS];
    size_t most = 0;
    tensors found;
    for (int i = 0; i < l->count; i++) {
        for (int n = 0; n < calls_of(&l->entries[i]); n++, uses++) {
            collect_all(&l->entries[i], n, &found);
            most += (size_t)found.count;
        }
    }
    int *block = bwi_allocate(r->k.ctx, (size_t)l->count + 2 * (size_t)uses + 1 + most, sizeof *block);
    if (!block) {
        return BW_RESOURCE_EXHAUSTED;
    }
    int *base = block, *operation = base + l->count, *begin = operation + uses, *input = begin + uses + 1, use = 0;
    for (int i = 0; i < l->count; i++) {
        base[i] = use;
        use += calls_of(&l->entries[i]);
    }
    use = 0;
    for (int i = 0; i < l->count; i++) {
        const entry *e = &l->entries[i];
        for (int n = 0; n < calls_of(e); n++, use++) {
            collect_all(e, n, &found);
            operation[use] = i;
            begin[use] = inputs;
            for (int t = 0; t < found.count; t++) {
                end at;
                if (bwi_graph_end(r, l, found.at[t], &at) == BW_OK) {
                    input[inputs++] = base[at.from - l->entries] + (at.from->kind == INPUT ? 0 : at.node);
                }
            }
        }
    }
    begin[uses] = inputs;
    for (int i = 0; i < l->output_count; i++) {
        outputs[i] = base[l->outputs[i].from - l->entries] + (l->outputs[i].from->kind == INPUT ? 0 : l->outputs[i].node);
    }
    bwi_order graph = {.uses = uses, .operations = l->count, .operation = operation, .begin = begin, .input = input};
    graph.outputs = outputs;
    graph.output_count = l->output_count;
    bw_status status = bwi_keras_order(r->k.ctx, &graph, order, count);
    bwi_release(r->k.ctx, block);
    return status;
}

bw_status bwi_graph_places(graph_reader *r, const level *l, const char *path)
{
    int *order = bwi_allocate(r->k.ctx, (size_t)l->count, sizeof *order), count = l->count;
    bw_status status = order ? BW_OK : BW_RESOURCE_EXHAUSTED;
    for (int i = 0; i < l->count && status == BW_OK; i++) {
        order[i] = i;
    }
    if (status == BW_OK && !l->list) {
        status = order_level(r, l, order, &count);
    }
    for (int i = 0; i < count && status == BW_OK; i++) {
        status = add_place(r, l, order, i, path);
    }
    bwi_release(r->k.ctx, order);
    return status;
}
