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
static bw_status add_place(graph_reader *r, const level *l, int which, const char *path, int top)
{
    const entry *e = &l->entries[l->order[which]];
    bwi_stored *place = &r->model->stored[r->model->stored_count];
    char own[sizeof place->path], number[16] = "";
    int same = 0;
    if (e->kind != NESTED && (e->kind != LAYER || e->layer < 0)) {
        return BW_OK;
    }
    for (int i = 0; i < which; i++) {
        const entry *before = &l->entries[l->order[i]];
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
        return bwi_graph_places(r, e->inner, own, top < 0 ? l->order[which] : top);
    }
    place->layer = e->layer;
    place->top = top < 0 ? l->order[which] : top;
    memcpy(place->path, own, sizeof own);
    r->model->stored_count++;
    return BW_OK;
}

bw_status bwi_graph_places(graph_reader *r, const level *l, const char *path, int top)
{
    bw_status status = BW_OK;
    for (int i = 0; i < l->order_count && status == BW_OK; i++) {
        status = add_place(r, l, i, path, top);
    }
    return status;
}
