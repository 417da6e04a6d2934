/*
 * A snapshot of what training changes in a model, for runs that are made to learn something about it (insight): variables as they
 * are stored, optimizer slots, the optimizer's numbers and counters, the marks of fitted layers, and the recipe of the data.
 * Restoring it gives back the same bits, however many updates were made since.
 */
#include "train/internal.h"

#include <string.h>

typedef struct marks {
    bool given, fitted;
} marks;

struct bwi_snapshot {
    bw_model *model;
    bwi_training training; /* its optimizer has slots if there were any */
    size_t variable_bytes, slot_bytes;
    void *variables, *slots; /* arenas of the device */
    marks marks[];           /* of each variable */
};

static size_t bytes_of(const bwi_variable *variable)
{
    return (size_t)variable->count * sizeof(float);
}

static const bwi_memory_kernels *memory_of(const bwi_snapshot *s)
{
    return bwi_kernels_of(s->model->ctx)->memory;
}

/* The model takes a recipe at the first update of every run; meanwhile the snapshot owns the earlier one. */
static void take_training(bwi_snapshot *s, bwi_training *t)
{
    const bwi_graph *graph = &s->model->graph;
    unsigned char *at = s->variables;
    for (int v = 0; v < graph->variable_count; v++) {
        const bwi_variable *variable = graph->variables[v];
        s->marks[v] = (marks){variable->given, variable->fitted};
        memory_of(s)->copy(at, variable->data, bytes_of(variable));
        at += bytes_of(variable);
    }
    if (s->slots) {
        memory_of(s)->copy(s->slots, t->optimizer.arena, s->slot_bytes);
    }
    s->training = *t;
    t->data = NULL;
}

/* The model must be built. Variables and slots lie in memory of the device, as the model's own do. */
bw_status bwi_snapshot_take(bw_model *model, bwi_snapshot **snapshot)
{
    bw_context *ctx = model->ctx;
    const bwi_graph *graph = &model->graph;
    bwi_training *t = bwi_training_of(model);
    const bwi_kernels *kernels = t ? bwi_kernels_of(ctx) : NULL;
    *snapshot = NULL;
    bwi_snapshot *s = kernels ? bwi_allocate(ctx, 1, sizeof *s + (size_t)graph->variable_count * sizeof(marks)) : NULL;
    if (!s) {
        return BW_RESOURCE_EXHAUSTED;
    }
    s->model = model;
    for (int v = 0; v < graph->variable_count; v++) {
        s->variable_bytes += bytes_of(graph->variables[v]);
    }
    s->slot_bytes = t->optimizer.slots ? t->optimizer.arena_bytes : 0;
    s->variables = s->variable_bytes > 0 ? kernels->memory->allocate(ctx, s->variable_bytes) : NULL;
    s->slots = s->slot_bytes > 0 ? kernels->memory->allocate(ctx, s->slot_bytes) : NULL;
    if ((s->variable_bytes > 0 && !s->variables) || (s->slot_bytes > 0 && !s->slots)) {
        bwi_snapshot_free(s);
        return BW_RESOURCE_EXHAUSTED;
    }
    take_training(s, t);
    *snapshot = s;
    return BW_OK;
}

static void restore_variables(const bwi_snapshot *s)
{
    const bwi_graph *graph = &s->model->graph;
    const unsigned char *at = s->variables;
    for (int v = 0; v < graph->variable_count; v++) {
        const bwi_variable *variable = graph->variables[v];
        if (s->marks[v].given || !variable->fitted) {
            memory_of(s)->copy(variable->data, at, bytes_of(variable));
        }
        at += bytes_of(variable);
    }
}

/* What was fitted to the data since (Normalization) stays, since fitting it again would read all samples again. */
void bwi_snapshot_rewind(const bwi_snapshot *s)
{
    bwi_training *t = s->model->training;
    bw_dataset *data = t->data;
    bwi_optimizer now = t->optimizer; /* ranks that divide slots make new ones */
    restore_variables(s);
    if (s->training.optimizer.slots) {
        if (s->slots) {
            memory_of(s)->copy(t->optimizer.arena, s->slots, s->slot_bytes);
        }
    } else {
        bwi_optimizer_free_slots(t);
    }
    *t = s->training;
    t->data = data;
    if (t->optimizer.slots) {
        t->optimizer.arena = now.arena;
        t->optimizer.slots = now.slots;
        t->optimizer.clips = now.clips;
        t->optimizer.trusts = now.trusts;
        t->optimizer.shadows = now.shadows;
    }
}

void bwi_snapshot_restore(bwi_snapshot *s)
{
    const bwi_graph *graph = &s->model->graph;
    bwi_training *t = s->model->training;
    for (int v = 0; v < graph->variable_count; v++) {
        graph->variables[v]->given = s->marks[v].given;
        graph->variables[v]->fitted = false;
    }
    bwi_snapshot_rewind(s);
    for (int v = 0; v < graph->variable_count; v++) {
        graph->variables[v]->fitted = s->marks[v].fitted;
    }
    bwi_training_set_data(t, s->training.data);
    s->training.data = NULL;
}

void bwi_snapshot_free(bwi_snapshot *s)
{
    if (!s) {
        return;
    }
    bw_context *ctx = s->model->ctx;
    if (s->variables) {
        memory_of(s)->release(ctx, s->variables, s->variable_bytes);
    }
    if (s->slots) {
        memory_of(s)->release(ctx, s->slots, s->slot_bytes);
    }
    bwi_release(ctx, s);
}
