/*
 * The optimizer's slots, divided over ranks while bw_fit runs because the plan had no memory for all of them on each
 * (exec/portion.c has the update). A rank keeps the values of its portion. What a checkpoint needs of the others comes slot by
 * slot, into the place of the variable's gradient, which is free between steps; when the run is over and its arena is gone, all
 * slots become whole again on all ranks.
 */
#include "train/optimizers/rows.h"

static int ranks_of(const bwi_training *t)
{
    return bw_ranks_count(t->ctx->ranks);
}

static int64_t begin_of(const bwi_training *t, const bwi_variable *variable, int ranks, int rank)
{
    if (!bwi_has_portions(variable)) {
        return rank == 0 ? 0 : variable->count;
    }
    return bwi_portion_of(&t->model->graph, variable, ranks, rank);
}

static size_t aligned(int64_t count)
{
    return bwi_size_align(bwi_size_multiply((size_t)count, sizeof(float)), BWI_CACHE_LINE);
}

/* Of the values that a rank has of a variable, all if there are no portions of it. */
static int64_t count_of(const bwi_training *t, const bwi_variable *variable, int ranks, int rank)
{
    return bwi_has_portions(variable) ? begin_of(t, variable, ranks, rank + 1) - begin_of(t, variable, ranks, rank)
                                      : variable->count;
}

static size_t arena_bytes(const bwi_training *t, int ranks, int rank)
{
    size_t bytes = 0;
    for (int v = 0; v < t->model->graph.variable_count; v++) {
        const bwi_variable *variable = t->model->graph.variables[v];
        size_t one = variable->trainable ? aligned(count_of(t, variable, ranks, rank)) : 0;
        bytes = bwi_size_add(bytes, bwi_size_multiply(one, (size_t)bwi_optimizer_all_slots(&t->optimizer)));
    }
    return bytes;
}

size_t bwi_portion_slot_bytes(const bwi_training *t, int ranks)
{
    size_t most = 0;
    for (int rank = 0; rank < ranks; rank++) {
        size_t bytes = arena_bytes(t, ranks, rank);
        most = bytes > most ? bytes : most;
    }
    return bwi_size_add(most, bwi_allocation_bytes(((size_t)ranks + 1) * sizeof(size_t)));
}

/* ---- Dividing ---- */

static void place_portions(bwi_training *t, bwi_optimizer *now, const bwi_optimizer *before)
{
    int ranks = ranks_of(t), rank = t->ctx->rank;
    char *at = now->arena;
    for (int v = 0; v < t->model->graph.variable_count; v++) {
        const bwi_variable *variable = t->model->graph.variables[v];
        bool portions = bwi_has_portions(variable);
        for (int s = 0; variable->trainable && s < bwi_optimizer_all_slots(now); s++) {
            bwi_slot *slot = &now->slots[v * BWI_MAX_SLOTS + s];
            *slot = (bwi_slot){.variable = variable, .data = at, .count = count_of(t, variable, ranks, rank)};
            slot->first = portions ? begin_of(t, variable, ranks, rank) : 0;
            slot->divided = portions ? t : NULL;
            if (before->slots) {
                const char *from = before->slots[v * BWI_MAX_SLOTS + s].data;
                now->kernels->memory->copy(at, from + (size_t)slot->first * sizeof(float), (size_t)slot->count * sizeof(float));
            } else {
                bwi_optimizer_fill_slot(now, slot, s);
            }
            at += aligned(slot->count);
        }
    }
}

bw_status bwi_portion_divide(bwi_training *t)
{
    bwi_optimizer before = t->optimizer, *o = &t->optimizer;
    size_t variables = (size_t)t->model->graph.variable_count;
    if (o->begins) {
        return bwi_fail(
            t->ctx, BW_UNAVAILABLE,
            "the optimizer's state is divided over ranks of a training that failed: compile the model again, or load it");
    }
    o->trusts = NULL; /* optimizers that need these are not divided */
    o->shadows = NULL;
    o->kernels = bwi_kernels_of(t->ctx);
    o->arena_bytes = arena_bytes(t, ranks_of(t), t->ctx->rank);
    o->arena = o->arena_bytes ? o->kernels->memory->allocate(t->ctx, o->arena_bytes) : NULL;
    o->slots = bwi_allocate(t->ctx, variables * BWI_MAX_SLOTS, sizeof *o->slots);
    o->clips = bwi_allocate(t->ctx, variables, sizeof *o->clips);
    o->begins = bwi_allocate(t->ctx, (size_t)ranks_of(t) + 1, sizeof *o->begins);
    o->gathered = BW_OK;
    if ((o->arena_bytes && !o->arena) || !o->slots || !o->clips || !o->begins) {
        bwi_optimizer_free_slots(t);
        *o = before;
        return BW_RESOURCE_EXHAUSTED;
    }
    place_portions(t, o, &before);
    bwi_optimizer divided = *o;
    *o = before;
    bwi_optimizer_free_slots(t);
    *o = divided;
    return BW_OK;
}

/* ---- Together ---- */

static bw_status gather(const bwi_training *t, const bwi_variable *variable, void *values)
{
    int ranks = ranks_of(t);
    for (int rank = 0; rank <= ranks; rank++) {
        t->optimizer.begins[rank] = (size_t)begin_of(t, variable, ranks, rank) * sizeof(float);
    }
    return bwi_rank_of(t->ctx)->gather(t->ctx, values, t->optimizer.begins);
}

bw_status bwi_portion_tell(const bwi_training *t, void *data, size_t bytes)
{
    size_t *begins = t->optimizer.begins;
    for (int rank = 1; begins && rank <= ranks_of(t); rank++) {
        begins[rank] = bytes;
    }
    if (begins) {
        begins[0] = 0;
    }
    return begins ? bwi_rank_of(t->ctx)->gather(t->ctx, data, begins) : BW_OK;
}

void bwi_portion_show(const bwi_slot *slot)
{
    bwi_optimizer *o = slot->divided ? &slot->divided->optimizer : NULL;
    if (o && o->gathered == BW_OK) {
        unsigned char *whole = bwi_exec_room(o->lender, slot->variable);
        o->kernels->memory->copy(whole + (size_t)slot->first * sizeof(float), slot->data, (size_t)slot->count * sizeof(float));
        o->gathered = gather(slot->divided, slot->variable, whole);
    }
}

static void show(const bwi_optimizer *o, bwi_slot *slot, const char *name, void *user)
{
    (void)o, (void)name, (void)user;
    bwi_portion_show(slot);
}

void bwi_portion_show_all(bwi_training *t)
{
    bwi_optimizer_visit(t, show, NULL);
}

/* Takes the portions into whole slots, which are new. */
static bw_status take_portions(bwi_training *t, const bwi_optimizer *divided)
{
    bw_status status = BW_OK;
    for (int v = 0; v < t->model->graph.variable_count && status == BW_OK; v++) {
        for (int s = 0; s < bwi_optimizer_all_slots(divided) && status == BW_OK; s++) {
            const bwi_slot *from = &divided->slots[v * BWI_MAX_SLOTS + s], *to = &t->optimizer.slots[v * BWI_MAX_SLOTS + s];
            if (from->data) {
                unsigned char *data = to->data;
                divided->kernels->memory->copy(data + (size_t)from->first * sizeof(float), from->data,
                                               (size_t)from->count * sizeof(float));
                t->optimizer.begins = divided->begins; /* lent */
                status = from->divided ? gather(t, from->variable, data) : BW_OK;
                t->optimizer.begins = NULL;
            }
        }
    }
    return status;
}

/* The others' failures count, too. That this rank was cancelled ended the training, and is no reason to leave slots divided. */
bw_status bwi_portion_join(bwi_training *t)
{
    bwi_optimizer divided = t->optimizer, *o = &t->optimizer;
    bw_status status = divided.begins ? divided.gathered : BW_INTERNAL;
    if (divided.begins) {
        o->arena = NULL;
        o->slots = NULL;
        o->clips = NULL;
        o->begins = NULL;
        status = status == BW_OK ? bwi_optimizer_open_slots(t) : status;
    }
    bool cancelled = atomic_exchange(&t->ctx->cancelled, false);
    bw_status all = bwi_rank_of(t->ctx)->agree(t->ctx, status);
    status = status != BW_OK ? status : all;
    status = status == BW_OK ? take_portions(t, &divided) : status;
    if (cancelled) {
        atomic_store(&t->ctx->cancelled, true);
    }
    if (divided.begins) { /* what is not needed any more goes: the portions, or on a failure the whole */
        bwi_optimizer whole = *o;
        *o = status == BW_OK ? divided : whole;
        bwi_optimizer_free_slots(t);
        *o = status == BW_OK ? whole : divided;
    }
    return status;
}
