/*
 * What all optimizers share: the table, reading an optimizer from text, slots and state. Slots lie in one arena and are stored like
 * their variables (packed if these are), since every update is elementwise; outside they appear in Keras's order.
 */
#include "train/optimizers/rows.h"

#include <string.h>

const bwi_optimizer_row *const bwi_optimizer_rows[] = {
    &bwi_optimizer_sgd,     &bwi_optimizer_adam,
    &bwi_optimizer_adamw,   &bwi_optimizer_rmsprop,
    &bwi_optimizer_adagrad, &bwi_optimizer_adadelta,
    &bwi_optimizer_adamax,  &bwi_optimizer_nadam,
    &bwi_optimizer_lion,    &bwi_optimizer_ftrl,
    &bwi_optimizer_lamb,    &bwi_optimizer_adafactor,
    &bwi_optimizer_muon,    NULL,
};

double bwi_optimizer_rate(const bwi_optimizer *o)
{
    const bwi_schedule *s = &o->schedule;
    return (double)(s->row ? s->row->rate(s, (float)o->iterations) : o->learning_rate);
}

/* ---- Reading ---- */

static bw_status refuse(bw_context *ctx, const bwi_term *term)
{
    bwi_known known = bwi_known_begin(ctx, term->text, (size_t)term->length);
    for (int i = 0; bwi_optimizer_rows[i]; i++) {
        bwi_known_add(&known, bwi_optimizer_rows[i]->name);
    }
    bw_status status =
        bwi_fail(ctx, BW_INVALID_ARGUMENT, "optimizer: there is no '%.*s'; %s", term->length, term->text, bwi_known_hint(&known));
    bwi_text_free(&known.list);
    return status;
}

static bool is_rate(const bwi_term *item, int position)
{
    bwi_term label = {.text = item->label, .length = item->label_length};
    return item->label ? bwi_term_is(&label, "learning_rate") || bwi_term_is(&label, "lr") : position == 0;
}

/* A schedule is read from its term, which may be long; among the arguments, a word takes its place. */
static bw_status read_arguments(bw_context *ctx, bwi_optimizer *o, const bwi_term *term)
{
    static const char word[] = "schedule";
    bwi_term own = *term;
    own.items = bwi_allocate(ctx, (size_t)term->count, sizeof *own.items);
    bw_status status = own.items ? BW_OK : BW_RESOURCE_EXHAUSTED;
    for (int i = 0; i < term->count && status == BW_OK; i++) {
        bwi_term *item = &own.items[i];
        *item = term->items[i];
        if (item->called && is_rate(item, i)) {
            status = bwi_schedule_read(ctx, &o->schedule, o->row->name, item);
            *item = (bwi_term){.label = item->label,
                               .label_length = item->label_length,
                               .text = word,
                               .length = sizeof word - 1,
                               .end = word + sizeof word - 1,
                               .column = item->column};
        }
    }
    if (status == BW_OK) {
        status = bwi_arguments_read(ctx, o->row->name, &own, o->row->arguments, o->row->argument_count, o->values);
    }
    bwi_release(ctx, own.items);
    return status;
}

static bw_status read_rate(bw_context *ctx, bwi_optimizer *o)
{
    const char *text = o->values[0].text;
    double rate = 0;
    if (!o->schedule.row && (!bwi_parse_double(text, text + strlen(text), &rate) || !(rate >= 0 && rate <= 1e9))) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: learning_rate: expected a number of 0 or more, or a schedule, found '%s'",
                        o->row->name, text);
    }
    o->learning_rate = (float)rate;
    return BW_OK;
}

static bw_status check_common(bw_context *ctx, const bwi_optimizer *o)
{
    const bwi_argument_value *v = &o->values[o->row->common];
    if (v[BWI_COMMON_CLIPNORM].given + v[BWI_COMMON_CLIPVALUE].given + v[BWI_COMMON_GLOBAL_CLIPNORM].given > 1) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "%s: only one of clipnorm, clipvalue and global_clipnorm may be given",
                        o->row->name);
    }
    if (v[BWI_COMMON_LOSS_SCALE].given) {
        return bwi_fail(ctx, BW_UNIMPLEMENTED, "%s: loss_scale_factor is not supported: gradients are float32 and need none",
                        o->row->name);
    }
    if (v[BWI_COMMON_ACCUMULATION].given) {
        return bwi_fail(
            ctx, BW_UNIMPLEMENTED,
            "%s: gradient_accumulation_steps is not supported: fit's `accumulate` does it, with every sample weighing the same",
            o->row->name);
    }
    return BW_OK;
}

static void name_slots(bwi_optimizer *o)
{
    if (o->row->slots) {
        o->slot_count = o->row->slots(o, o->slot_names);
        return;
    }
    for (o->slot_count = 0; o->slot_count < BWI_MAX_SLOTS && o->row->slot_names[o->slot_count]; o->slot_count++) {
        o->slot_names[o->slot_count] = o->row->slot_names[o->slot_count];
    }
}

static void take_common(bwi_optimizer *o)
{
    const bwi_argument_value *v = &o->values[o->row->common];
    o->weight_decay = (float)o->values[o->row->decay].number;
    o->clipnorm = (float)v[BWI_COMMON_CLIPNORM].number;
    o->clipvalue = (float)v[BWI_COMMON_CLIPVALUE].number;
    o->global_clipnorm = (float)v[BWI_COMMON_GLOBAL_CLIPNORM].number;
    o->averages = v[BWI_COMMON_USE_EMA].flag;
    o->average_momentum = (float)v[BWI_COMMON_EMA_MOMENTUM].number;
    o->overwrite_every = v[BWI_COMMON_EMA_OVERWRITE].integer;
    o->momentum_product = 1;
    name_slots(o);
}

bw_status bwi_optimizer_read(bw_context *ctx, bwi_optimizer *o, const char *text)
{
    bwi_expression e;
    bw_status status = bwi_term_parse(ctx, &e, "optimizer", text);
    if (status != BW_OK) {
        return status;
    }
    *o = (bwi_optimizer){0};
    for (int i = 0; !o->row && bwi_optimizer_rows[i]; i++) {
        o->row = bwi_term_resembles(&e.terms[0], bwi_optimizer_rows[i]->name) ? bwi_optimizer_rows[i] : NULL;
    }
    status = o->row ? read_arguments(ctx, o, &e.terms[0]) : refuse(ctx, &e.terms[0]);
    bwi_expression_free(&e);
    if (status == BW_OK) {
        status = read_rate(ctx, o);
    }
    if (status == BW_OK) {
        status = check_common(ctx, o);
    }
    if (status == BW_OK) {
        take_common(o);
    }
    return status;
}

/* ---- Slots ---- */

int bwi_optimizer_all_slots(const bwi_optimizer *o)
{
    return o->slot_count + (o->averages ? 1 : 0);
}

static size_t slot_bytes(const bwi_variable *variable)
{
    return bwi_size_align(bwi_size_multiply((size_t)variable->count, sizeof(float)), BWI_CACHE_LINE);
}

/* The shape of a slot that is not stored like its variable; false: it is stored so, or (ndim -1) there is none. */
static bool has_shape(const bwi_optimizer *o, const bwi_variable *variable, int s, bwi_shape *shape)
{
    *shape = s < o->slot_count && o->row->slot_shape ? o->row->slot_shape(o, variable, s) : variable->shape;
    return shape->ndim >= 0 && !bwi_shape_equal(shape, &variable->shape);
}

static size_t bytes_of_slot(const bwi_optimizer *o, const bwi_variable *variable, int s)
{
    bwi_shape shape;
    bool other = has_shape(o, variable, s, &shape);
    bwi_variable alone = {.count = other ? bwi_shape_count(&shape) : variable->count};
    return shape.ndim < 0 ? 0 : slot_bytes(&alone);
}

static size_t arena_bytes(const bwi_training *t)
{
    size_t bytes = 0;
    for (int v = 0; v < t->model->graph.variable_count; v++) {
        const bwi_variable *variable = t->model->graph.variables[v];
        for (int s = 0; variable->trainable && s < bwi_optimizer_all_slots(&t->optimizer); s++) {
            bytes = bwi_size_add(bytes, bytes_of_slot(&t->optimizer, variable, s));
        }
    }
    return bytes;
}

size_t bwi_optimizer_bytes(const bwi_training *t)
{
    return bwi_size_add(arena_bytes(t), bwi_whole_bytes(t));
}

/* The arena is filled with zeros at first. Averages start as the weights, since rows of a lazy table may never be touched. */
void bwi_optimizer_fill_slot(const bwi_optimizer *o, const bwi_slot *slot, int s)
{
    if (s == o->slot_count) {
        o->kernels->memory->copy(slot->data, bwi_variable_at(slot->variable, slot->first), (size_t)slot->count * sizeof(float));
    } else if (o->row->start && o->row->start(o, s) != 0) {
        o->kernels->memory->fill(slot->count, o->row->start(o, s), slot->data);
    }
}

/* Gives every slot its place in the arena, and one with another shape than its variable a variable that has this shape. */
static void place_slots(bwi_training *t)
{
    const bwi_optimizer *o = &t->optimizer;
    char *at = o->arena;
    for (int v = 0; v < t->model->graph.variable_count; v++) {
        const bwi_variable *variable = t->model->graph.variables[v];
        for (int s = 0; variable->trainable && s < bwi_optimizer_all_slots(o); s++) {
            bwi_slot *slot = &o->slots[v * BWI_MAX_SLOTS + s];
            size_t bytes = bytes_of_slot(o, variable, s);
            bwi_shape shape;
            *slot = (bwi_slot){.variable = variable, .data = bytes ? at : NULL, .count = variable->count};
            if (has_shape(o, variable, s, &shape)) {
                bwi_variable *shadow = &o->shadows[v * BWI_RULE_SLOTS + s];
                *shadow = *variable;
                shadow->shape = shape;
                shadow->count = bwi_shape_count(&shape);
                shadow->packing = (bwi_packing){0};
                slot->variable = shadow;
                slot->count = shadow->count;
            }
            if (bytes) {
                bwi_optimizer_fill_slot(o, slot, s);
            }
            at += bytes;
        }
    }
}

/* A failure leaves nothing open. */
bw_status bwi_optimizer_open_slots(bwi_training *t)
{
    bwi_optimizer *o = &t->optimizer;
    const bwi_graph *graph = &t->model->graph;
    if (o->begins) {
        return bwi_fail(
            t->ctx, BW_UNAVAILABLE,
            "the optimizer's state is divided over the ranks: it can be saved and used once bw_fit has ended on all of them");
    }
    if (o->slots) {
        return BW_OK;
    }
    o->kernels = bwi_kernels_of(t->ctx);
    if (!o->kernels) {
        return BW_INVALID_ARGUMENT;
    }
    size_t variables = (size_t)graph->variable_count;
    o->arena_bytes = arena_bytes(t);
    o->arena = o->arena_bytes ? o->kernels->memory->allocate(t->ctx, o->arena_bytes) : NULL;
    o->slots = bwi_allocate(t->ctx, (size_t)graph->variable_count * BWI_MAX_SLOTS, sizeof *o->slots);
    o->clips = bwi_allocate(t->ctx, (size_t)graph->variable_count, sizeof *o->clips);
    o->trusts = bwi_allocate(t->ctx, variables, sizeof *o->trusts);
    o->shadows = o->row->slot_shape ? bwi_allocate(t->ctx, variables * BWI_RULE_SLOTS, sizeof *o->shadows) : NULL;
    if ((o->arena_bytes && !o->arena) || !o->slots || !o->clips || !o->trusts || (o->row->slot_shape && !o->shadows)) {
        bwi_optimizer_free_slots(t);
        return BW_RESOURCE_EXHAUSTED;
    }
    place_slots(t);
    return BW_OK;
}

void bwi_optimizer_free_slots(bwi_training *t)
{
    bwi_optimizer *o = &t->optimizer;
    if (o->arena) {
        o->kernels->memory->release(t->ctx, o->arena, o->arena_bytes);
    }
    bwi_release(t->ctx, o->slots);
    bwi_release(t->ctx, o->clips);
    bwi_release(t->ctx, o->begins);
    bwi_release(t->ctx, o->trusts);
    bwi_release(t->ctx, o->shadows);
    o->trusts = NULL;
    o->shadows = NULL;
    o->arena = NULL;
    o->begins = NULL;
    o->slots = NULL;
    o->clips = NULL;
}

void bwi_training_finalize(bwi_training *t)
{
    const bwi_optimizer *o = &t->optimizer;
    for (int v = 0; o->averages && o->slots && o->iterations > 0 && v < t->model->graph.variable_count; v++) {
        const bwi_variable *variable = t->model->graph.variables[v];
        const bwi_slot *average = &o->slots[v * BWI_MAX_SLOTS + o->slot_count];
        if (average->data) {
            bwi_portion_show(average);
            o->kernels->memory->copy(variable->data, average->divided ? bwi_exec_room(o->lender, variable) : average->data,
                                     (size_t)variable->count * sizeof(float));
        }
    }
}

/* ---- State ---- */

/* The whole slot: of one that is divided, in the lender's memory. */
static bwi_variable as_variable(const bwi_slot *slot)
{
    bwi_variable variable = *slot->variable;
    variable.data = slot->divided ? bwi_exec_room(slot->divided->optimizer.lender, slot->variable) : slot->data;
    return variable;
}

static void get_slot(void *object, void *values)
{
    const bwi_slot *slot = object;
    bwi_variable variable = as_variable(slot);
    bwi_portion_show(slot);
    bwi_variable_read(&variable, values);
}

static void set_slot(void *object, const void *values)
{
    const bwi_slot *slot = object;
    bwi_variable variable = as_variable(slot);
    bwi_variable_write(&variable, values);
    if (slot->divided) {
        const bwi_memory_kernels *memory = slot->divided->optimizer.kernels->memory;
        memory->copy(slot->data, bwi_variable_at(&variable, slot->first), (size_t)slot->count * sizeof(float));
    }
}

static void visit_slot(const bwi_optimizer *o, int variable, int s, const char *name, bwi_slot_visitor visit, void *user)
{
    bwi_slot *slot = &o->slots[variable * BWI_MAX_SLOTS + s];
    if (slot->data) {
        visit(o, slot, name, user);
    }
}

void bwi_optimizer_visit(const bwi_training *t, bwi_slot_visitor visit, void *user)
{
    const bwi_optimizer *o = &t->optimizer;
    int variables = o->slots ? t->model->graph.variable_count : 0;
    for (int v = 0; o->averages && v < variables; v++) {
        visit_slot(o, v, o->slot_count, "average", visit, user);
    }
    for (int v = 0; v < variables; v++) {
        for (int s = 0; s < o->row->paired; s++) {
            visit_slot(o, v, s, o->slot_names[s], visit, user);
        }
    }
    for (int s = o->row->paired; s < o->slot_count; s++) {
        for (int v = 0; v < variables; v++) {
            visit_slot(o, v, s, o->slot_names[s], visit, user);
        }
    }
}

static void add_slot(const bwi_optimizer *o, bwi_slot *slot, const char *name, void *state)
{
    const bwi_shape *shape = &slot->variable->shape;
    bwi_state_value *value =
        bwi_state_add(state, BW_F32, shape->ndim, shape->extent, NULL, "optimizer/%s/%s", name, slot->variable->name);
    (void)o;
    if (value) {
        value->object = slot;
        value->get = get_slot;
        value->set = set_slot;
    }
}

void bwi_optimizer_state(bwi_training *t, bwi_state *state)
{
    bwi_optimizer *o = &t->optimizer;
    bwi_state_add(state, BW_I64, 0, NULL, &o->iterations, "optimizer/iterations");
    if (!o->schedule.row) {
        bwi_state_add(state, BW_F32, 0, NULL, &o->learning_rate, "optimizer/learning_rate");
    }
    bwi_optimizer_visit(t, add_slot, state);
    if (o->row->keeps_product) {
        bwi_state_add(state, BW_F32, 0, NULL, &o->momentum_product, "optimizer/momentum_product");
    }
}
