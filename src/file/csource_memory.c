/*
 * Where a C file keeps the values of its nodes: in the caller's arrays of inputs and outputs, or in one array of floats, in which
 * values that are never needed at the same time share memory.
 */
#include "file/csource.h"

#include <limits.h>
#include <string.h>

const bwi_csource_row *bwi_csource_row_of(const bwi_op *op)
{
    const bwi_csource_row *tables[] = {bwi_csource_ops, bwi_csource_spatial};
    for (size_t t = 0; t < BWI_COUNT(tables); t++) {
        for (const bwi_csource_row *row = tables[t]; row->op; row++) {
            if (row->op == op) {
                return row;
            }
        }
    }
    return NULL;
}

bool bwi_csource_is_view(const bw_node *node)
{
    return (node->op->flags & BWI_OP_VIEW) || bwi_export_is_identity(node);
}

/* Finds the node whose values each node has, and the last node that reads each value. */
static void find_lives(bwi_csource *s)
{
    const bwi_graph *graph = &s->model->graph;
    for (int n = 0; n < graph->count; n++) {
        const bw_node *node = graph->nodes[n];
        bwi_csource_place *place = &s->places[n];
        if (!s->needed[n]) {
            continue;
        }
        *place = (bwi_csource_place){
            .value = bwi_csource_is_view(node) ? s->places[node->input[0]->number].value : n, .last = n, .at = -1};
        for (int k = 0; k < node->inputs; k++) {
            s->places[s->places[node->input[k]->number].value].last = n;
        }
        if (node->op->flags & BWI_OP_INPUT) {
            place->home = BWI_HOME_INPUT;
            place->at = bwi_export_input(s->model, node);
        }
    }
    for (int k = 0; k < s->model->output_count; k++) {
        bwi_csource_place *place = &s->places[s->places[s->model->outputs[k]->number].value];
        place->last = INT_MAX;
        if (place->home == BWI_HOME_MEMORY) {
            place->home = BWI_HOME_OUTPUT;
            place->at = k;
        }
    }
}

static bool in_memory(const bwi_csource *s, int n)
{
    return s->needed[n] && s->places[n].value == n && s->places[n].home == BWI_HOME_MEMORY;
}

/* Finds the lowest place for `count` floats that overlaps none of the living values, which `live` holds in the order of their
 * places. */
static int find_gap(const bwi_csource *s, const int *live, int count, int64_t floats, int64_t *at)
{
    int i = 0;
    *at = 0;
    for (; i < count && s->places[live[i]].at < *at + floats; i++) {
        *at = s->places[live[i]].at + bwi_shape_count(&s->model->graph.nodes[live[i]]->shape);
    }
    return i;
}

/* An element-wise operator that is the last reader of its input's values overwrites them. */
static int overwritten_by(const bwi_csource *s, const bw_node *node)
{
    const bwi_csource_row *row = bwi_csource_row_of(node->op);
    if (!row || !row->in_place) {
        return -1;
    }
    int x = s->places[node->input[0]->number].value;
    bool fits = bwi_shape_count(&s->model->graph.nodes[x]->shape) >= bwi_shape_count(&node->shape);
    return fits && in_memory(s, x) && s->places[x].last == node->number ? x : -1;
}

/* Values that are never needed at the same time share memory: each takes the first gap between the live ones that is large
 * enough. */
static bw_status share_memory(bwi_csource *s)
{
    const bwi_graph *graph = &s->model->graph;
    int *live = bwi_allocate(s->ctx, (size_t)graph->count + 1, sizeof *live), count = 0;
    if (!live) {
        return BW_RESOURCE_EXHAUSTED;
    }
    for (int n = 0; n < graph->count; n++) {
        if (in_memory(s, n)) {
            int64_t floats = bwi_shape_count(&graph->nodes[n]->shape);
            int old = overwritten_by(s, graph->nodes[n]), i = 0;
            if (old >= 0) {
                while (live[i] != old) {
                    i++;
                }
                s->places[n].at = s->places[old].at;
                live[i] = n;
            } else {
                i = find_gap(s, live, count, floats, &s->places[n].at);
                memmove(live + i + 1, live + i, (size_t)(count++ - i) * sizeof *live);
                live[i] = n;
            }
            s->memory = s->places[n].at + floats > s->memory ? s->places[n].at + floats : s->memory;
        }
        int kept = 0;
        for (int i = 0; i < count; i++) {
            if (s->places[live[i]].last > n) {
                live[kept++] = live[i];
            }
        }
        count = kept;
    }
    bwi_release(s->ctx, live);
    return BW_OK;
}

/* Counters in the file are ints, so no array may have more elements than an int can count. */
static bw_status check_sizes(const bwi_csource *s)
{
    const bwi_graph *graph = &s->model->graph;
    bool large = s->memory > INT_MAX;
    for (int n = 0; n < graph->count && !large; n++) {
        large = s->needed[n] && bwi_shape_count(&graph->nodes[n]->shape) > INT_MAX / 2;
    }
    for (int v = 0; v < graph->variable_count && !large; v++) {
        large = bwi_shape_count(&graph->variables[v]->shape) > INT_MAX / 2;
    }
    return large ? bwi_fail(s->ctx, BW_UNIMPLEMENTED, "the model is too large for a C file") : BW_OK;
}

bw_status bwi_csource_lay(bwi_csource *s)
{
    find_lives(s);
    bw_status status = share_memory(s);
    return status == BW_OK ? check_sizes(s) : status;
}
