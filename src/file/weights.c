/*
 * Reads and writes a model's variables, and its optimizer's, in Keras's HDF5 layout: layers/<class>[_n]/vars/<i> and
 * optimizer/vars/<i>. Every shape is compared before the first byte is allocated for a variable. Anything in the file that the
 * model does not have is refused, too, since it shows that the two do not belong together.
 */
#include "file/internal.h"

#include <math.h>
#include <string.h>

enum { NAME = 512 }; /* of a value in a file */

/* ---- Places ---- */

/* A variable and its place in a file. */
typedef struct place {
    char path[320]; /* "layers/conv2d_1/vars/0" */
    bwi_variable *variable;
} place;

/* Counts those of the first `count` operations in Keras's order that have the same class. */
static int same_before(const bwi_wiring *w, int count)
{
    int layers = w->model->layer_count, same = 0;
    for (int i = 0; i < count; i++) {
        same += w->order[i] < layers && w->model->layers[w->order[i]].row == w->model->layers[w->order[count]].row;
    }
    return same;
}

/* Finds where, within its layer's group, a file has the layer's variable number `v`: "/vars/0", "/cell/vars/0". Variables are
 * numbered in each group. */
static void place_within(const bw_model *model, int first, int v, char within[80])
{
    const char *group = model->graph.variables[first + v]->place;
    int number = 0;
    for (int k = 0; k < v; k++) {
        number += strcmp(model->graph.variables[first + k]->place, group) == 0;
    }
    snprintf(within, 80, "%s%s/vars/%d", group[0] ? "/" : "", group, number);
}

/* Copies the places that were computed when the model's file was read. */
static void copy_places(const bw_model *model, place *places, int *count)
{
    for (int i = 0; i < model->stored_count; i++) {
        int first, variables = bwi_layer_variables(model, model->stored[i].layer, &first);
        for (int v = 0; v < variables; v++) {
            place *one = &places[(*count)++];
            one->variable = model->graph.variables[first + v];
            char within[80];
            place_within(model, first, v, within);
            snprintf(one->path, sizeof one->path, "%s%s", model->stored[i].path, within);
        }
    }
}

/* Lists all variables in Keras's order. The caller releases *places. */
static bw_status make_places(const bwi_wiring *w, place **places, int *count)
{
    const bw_model *model = w->model;
    *count = 0;
    *places = bwi_allocate(w->ctx, (size_t)model->graph.variable_count, sizeof **places);
    if (!*places) {
        return BW_RESOURCE_EXHAUSTED;
    }
    if (model->stored) {
        copy_places(model, *places, count);
        return BW_OK;
    }
    for (int i = 0; i < w->order_count; i++) {
        int layer = w->order[i], first = 0;
        int variables = layer < model->layer_count ? bwi_layer_variables(model, layer, &first) : 0, same = 0;
        if (variables) {
            same = same_before(w, i);
        }
        for (int v = 0; v < variables; v++) {
            place *one = &(*places)[(*count)++];
            const char *class_name = model->layers[layer].row->base_name;
            char within[80];
            place_within(model, first, v, within);
            one->variable = model->graph.variables[first + v];
            if (same) {
                snprintf(one->path, sizeof one->path, "layers/%s_%d%s", class_name, same, within);
            } else {
                snprintf(one->path, sizeof one->path, "layers/%s%s", class_name, within);
            }
        }
    }
    return BW_OK;
}

/* ---- Checking ---- */

bw_status bwi_weights_check(bw_context *ctx, const char *path, const char *name, const bwi_hdf5_entry *entry,
                            const bwi_shape *shape)
{
    char expected[160], found[160];
    bwi_format_shape(expected, shape->ndim, shape->extent);
    if (!entry) {
        return bwi_fail_file(ctx, BW_DATA_LOSS, path, "%s of shape %s is missing", name, expected);
    }
    bool same = entry->ndim == shape->ndim;
    for (int i = 0; same && i < shape->ndim; i++) {
        same = entry->shape[i] == shape->extent[i];
    }
    if (!same || !entry->stored) {
        return bwi_fail_file(ctx, BW_DATA_LOSS, path, "%s: expected numbers of shape %s, found %s%s", name, expected,
                             entry->stored ? "" : "none, but a shape of ", bwi_format_shape(found, entry->ndim, entry->shape));
    }
    return BW_OK;
}

/* Finds the place with this path; NULL: there is none. */
static const place *find_place(const place *places, int count, const char *path)
{
    for (int i = 0; i < count; i++) {
        if (strcmp(places[i].path, path) == 0) {
            return &places[i];
        }
    }
    return NULL;
}

/* Some versions store the state of random layers, which is not a variable here. */
static bool is_seed(const char *name)
{
    return strstr(name, "/seed_generator/");
}

/* Every variable must be in the file, and nothing else: a weight that belongs to no layer means that the file is of another
 * model. */
static bw_status check_places(const bw_model *model, const bwi_hdf5 *file, const char *path, const place *places, int count)
{
    int found = 0;
    for (int i = 0; i < count; i++) {
        bw_status status =
            bwi_weights_check(model->ctx, path, places[i].path, bwi_hdf5_find(file, places[i].path), &places[i].variable->shape);
        if (status != BW_OK) {
            return status;
        }
    }
    for (int i = 0; i < bwi_hdf5_count(file); i++) {
        const char *name = bwi_hdf5_at(file, i)->name;
        found += strncmp(name, "layers/", 7) == 0 && !is_seed(name) && !bwi_front_is_weight(name);
    }
    for (int i = 0; found != count && i < bwi_hdf5_count(file); i++) {
        const char *name = bwi_hdf5_at(file, i)->name;
        if (strncmp(name, "layers/", 7) == 0 && !is_seed(name) && !bwi_front_is_weight(name) && !find_place(places, count, name)) {
            char quoted[BWI_QUOTE_SIZE];
            return bwi_fail_file(model->ctx, BW_DATA_LOSS, path, "%s belongs to no layer of the model",
                                 bwi_quote(quoted, name, strlen(name)));
        }
    }
    return BW_OK;
}

/* ---- Reading ---- */

bw_status bwi_weights_build(bw_model *model)
{
    if (bwi_model_built(model)) {
        return BW_OK;
    }
    /* The values come from the file, so no initial values are drawn. */
    const bwi_graph *graph = &model->graph;
    enum { TEXT = sizeof graph->variables[0]->initializer };
    char(*texts)[TEXT] = bwi_allocate(model->ctx, (size_t)graph->variable_count, TEXT);
    if (!texts) {
        return BW_RESOURCE_EXHAUSTED;
    }
    for (int v = 0; v < graph->variable_count; v++) {
        memcpy(texts[v], graph->variables[v]->initializer, TEXT);
        snprintf(graph->variables[v]->initializer, TEXT, "zeros");
    }
    bw_status status = bwi_model_build(model, model->input_shape.ndim, model->input_shape.extent, 0);
    for (int v = 0; v < graph->variable_count; v++) {
        memcpy(graph->variables[v]->initializer, texts[v], TEXT);
    }
    bwi_release(model->ctx, texts);
    return status;
}

/* A model with such a weight predicts nothing useful, and training it would blame the data. */
bw_status bwi_weights_finite(bw_context *ctx, const char *path, const bwi_variable *variable, int64_t count, const float *values)
{
    int64_t i = 0;
    while (i < count && isfinite(values[i])) {
        i++;
    }
    if (i == count) {
        return BW_OK;
    }
    char layer[sizeof variable->name];
    snprintf(layer, sizeof layer, "%.*s", (int)strcspn(variable->name, "/"), variable->name);
    bw_status status = bwi_fail_file(ctx, BW_DATA_LOSS, path, "layer %s: %s holds %s at position %lld; expected finite numbers",
                                     layer, variable->name, isnan(values[i]) ? "NaN" : "infinity", (long long)i);
    bwi_locate(ctx, bwi_in_layer(layer));
    return status;
}

bw_status bwi_weights_take(bw_context *ctx, bwi_hdf5 *file, const char *path, const bwi_hdf5_entry *entry, bwi_variable *variable)
{
    int64_t rows = entry->ndim ? entry->shape[0] : 1, count = bwi_shape_count(&variable->shape);
    variable->given = true;
    if (!variable->packing.pack) {
        float *values = bwi_variable_open(variable);
        bw_status status = bwi_hdf5_read(file, entry, 0, rows, BW_F32, values);
        status = status == BW_OK ? bwi_weights_finite(ctx, path, variable, count, values) : status;
        bwi_variable_close(variable);
        return status;
    }
    float *values = bwi_allocate(ctx, (size_t)count, sizeof *values);
    bw_status status = values ? bwi_hdf5_read(file, entry, 0, rows, BW_F32, values) : BW_RESOURCE_EXHAUSTED;
    status = status == BW_OK ? bwi_weights_finite(ctx, path, variable, count, values) : status;
    if (status == BW_OK) {
        bwi_variable_write(variable, values);
    }
    bwi_release(ctx, values);
    return status;
}

/* ---- The optimizer's variables ---- */

/* One value of the optimizer: a slot, or a number. */
typedef struct optimizer_value {
    bwi_slot *slot;
    int64_t *whole;
    float *number;
} optimizer_value;

typedef struct optimizer_list {
    optimizer_value *values;
    int count, before; /* the first `before` exist before the first update */
} optimizer_list;

static void add_slots(optimizer_list *list, const bwi_optimizer *o, const place *places, int count, int first, int last)
{
    for (int i = 0; i < count; i++) {
        for (int s = first; s < last; s++) {
            bwi_slot *slot = &o->slots[places[i].variable->index * BWI_MAX_SLOTS + s];
            if (places[i].variable->trainable && slot->data) {
                list->values[list->count++] = (optimizer_value){.slot = slot};
            }
        }
    }
}

/* How the optimizers of Keras's versions list their values. */
typedef enum listing {
    LISTING_KERAS_3,      /* the learning rate comes second; slots such as Adam's two alternate, variable by variable */
    LISTING_WITHOUT_RATE, /* likewise, without the learning rate: some versions of Keras 2 */
    LISTING_BY_SLOT       /* OptimizerV2 of Keras 2: without the rate, and each slot has all variables before the next slot */
} listing;

/* Lists the values in Keras's order, which differs from that of bwi_optimizer_state only in the order of variables. Opens the
 * slots. */
static bw_status list_values(bwi_training *t, const place *places, int count, listing how, optimizer_list *list)
{
    bwi_optimizer *o = &t->optimizer;
    *list = (optimizer_list){0};
    bw_status status = bwi_optimizer_open_slots(t);
    if (status != BW_OK) {
        return status;
    }
    list->values = bwi_allocate(t->ctx, (size_t)count * BWI_MAX_SLOTS + 3, sizeof *list->values);
    if (!list->values) {
        return BW_RESOURCE_EXHAUSTED;
    }
    list->values[list->count++] = (optimizer_value){.whole = &o->iterations};
    if (!o->schedule.row && how == LISTING_KERAS_3) {
        list->values[list->count++] = (optimizer_value){.number = &o->learning_rate};
    }
    list->before = list->count;
    if (o->averages) {
        add_slots(list, o, places, count, o->slot_count, o->slot_count + 1);
    }
    int paired = how == LISTING_BY_SLOT ? 0 : o->row->paired;
    add_slots(list, o, places, count, 0, paired);
    for (int s = paired; s < o->slot_count; s++) {
        add_slots(list, o, places, count, s, s + 1);
    }
    if (o->row->keeps_product) {
        list->values[list->count++] = (optimizer_value){.number = &o->momentum_product};
    }
    return BW_OK;
}

/* The values as a file has them: by number, or in older files by a list of names. */
typedef struct optimizer_file {
    bwi_hdf5 *file;
    const char *path;
    const char *const *names; /* NULL: optimizer/vars/0, optimizer/vars/1, ... */
    int count;                /* of the names */
} optimizer_file;

static const bwi_hdf5_entry *entry_at(const optimizer_file *from, int index, char name[NAME])
{
    if (!from->names) {
        snprintf(name, NAME, "optimizer/vars/%d", index);
        return bwi_hdf5_find(from->file, name);
    }
    snprintf(name, NAME, "optimizer_weights/%.480s", index < from->count ? from->names[index] : "");
    return index < from->count ? bwi_hdf5_find(from->file, name) : NULL;
}

static bw_status check_values(const bwi_training *t, const optimizer_file *from, const optimizer_list *list, int count)
{
    static const bwi_shape single = {.ndim = 0};
    for (int i = 0; i < count; i++) {
        char name[NAME];
        const bwi_slot *slot = list->values[i].slot;
        const bwi_hdf5_entry *entry = entry_at(from, i, name);
        bw_status status = bwi_weights_check(t->ctx, from->path, name, entry, slot ? &slot->variable->shape : &single);
        if (status != BW_OK) {
            return status;
        }
    }
    return BW_OK;
}

static bw_status take_value(const bwi_training *t, bwi_hdf5 *file, const char *path, const bwi_hdf5_entry *entry,
                            const optimizer_value *value)
{
    if (value->whole) {
        return bwi_hdf5_read(file, entry, 0, 1, BW_I64, value->whole);
    }
    if (value->number) {
        return bwi_hdf5_read(file, entry, 0, 1, BW_F32, value->number);
    }
    bwi_variable stored = *value->slot->variable;
    stored.data = value->slot->data;
    snprintf(stored.name, sizeof stored.name, "%.60s, a slot of the optimizer,", value->slot->variable->name);
    return bwi_weights_take(t->ctx, file, path, entry, &stored);
}

/* Reads the first `there` values, whose shapes are right. */
static bw_status take_values(bwi_training *t, const optimizer_file *from, const optimizer_list *list, int there)
{
    char name[NAME];
    bw_status status = BW_OK;
    for (int i = 0; i < there && status == BW_OK; i++) {
        status = take_value(t, from->file, from->path, entry_at(from, i, name), &list->values[i]);
    }
    if (status == BW_OK && t->optimizer.iterations < 0) {
        entry_at(from, 0, name);
        status = bwi_fail_file(t->ctx, BW_DATA_LOSS, from->path, "%s: %lld is not a number of updates", name,
                               (long long)t->optimizer.iterations);
    }
    return status;
}

/* Keras numbers the optimizer's values without naming them, so their count must match exactly. An optimizer that has not been
 * built has fewer. */
static bw_status read_optimizer(bwi_training *t, bwi_hdf5 *file, const char *path, const place *places, int count)
{
    optimizer_list list;
    optimizer_file from = {.file = file, .path = path};
    char name[NAME];
    bw_status status = list_values(t, places, count, LISTING_KERAS_3, &list);
    /* A model that was never trained has no slots in its file yet, and a file without the optimizer's group has no values at
     * all. */
    int there = 0;
    while (status == BW_OK && there <= list.count && entry_at(&from, there, name)) {
        there++;
    }
    if (status == BW_OK && there != 0 && there != list.before && there != list.count) {
        status = bwi_fail_file(t->ctx, BW_DATA_LOSS, path, "optimizer/vars: expected %d or %d values of %s, found %s%d",
                               list.before, list.count, t->optimizer.row->class_name, there > list.count ? "at least " : "", there);
    }
    if (status == BW_OK) {
        status = check_values(t, &from, &list, there);
    }
    if (status == BW_OK) {
        status = take_values(t, &from, &list, there);
    }
    bwi_release(t->ctx, list.values);
    return status;
}

/* Whether the last part of a name is `word`, before a colon (Keras 2) or at the end. */
static bool is_named(const char *name, const char *word)
{
    const char *slash = strrchr(name, '/'), *last = slash ? slash + 1 : name;
    return strncmp(last, word, strlen(word)) == 0 && (!last[strlen(word)] || last[strlen(word)] == ':');
}

static listing listing_of(const char *const *names, int count)
{
    if (count > 0 && is_named(names[0], "iter")) {
        return LISTING_BY_SLOT;
    }
    return count > 1 && is_named(names[1], "learning_rate") ? LISTING_KERAS_3 : LISTING_WITHOUT_RATE;
}

/* Whether all values have the shapes that the list expects. */
static bool suits(const optimizer_file *from, const optimizer_list *list)
{
    for (int i = 0; i < from->count; i++) {
        char name[NAME];
        const bwi_hdf5_entry *entry = entry_at(from, i, name);
        static const bwi_shape none = {.ndim = 0};
        const bwi_shape *shape = list->values[i].slot ? &list->values[i].slot->variable->shape : &none;
        bool same = entry && entry->stored && entry->ndim == shape->ndim;
        for (int k = 0; same && k < shape->ndim; k++) {
            same = entry->shape[k] == shape->extent[k];
        }
        if (!same) {
            return false;
        }
    }
    return true;
}

/* Versions of Keras differ in what their optimizers keep, so a state that does not suit is left out with a warning, as Keras
 * does. */
bw_status bwi_weights_read_optimizer(bw_model *model, bwi_hdf5 *file, const char *path, const char *const *names, int count)
{
    bwi_training *t = model->training;
    bwi_wiring wiring;
    place *places = NULL;
    int variables = 0;
    optimizer_list list = {0};
    optimizer_file from = {.file = file, .path = path, .names = names, .count = count};
    if (!t || !t->compiled || (t->unread & BWI_PART_OPTIMIZER) || count == 0) {
        return BW_OK;
    }
    bw_status status = bwi_wiring_open(&wiring, model);
    if (status != BW_OK) {
        return status;
    }
    status = make_places(&wiring, &places, &variables);
    if (status == BW_OK) {
        status = list_values(t, places, variables, listing_of(names, count), &list);
    }
    if (status == BW_OK && (count == list.before || count == list.count) && suits(&from, &list)) {
        status = take_values(t, &from, &list, count);
    } else if (status == BW_OK) {
        bwi_log(t->ctx, BW_LOG_WARNING,
                "%s: the %d values of its optimizer are not those that %s has here (%d): training begins with a new state", path,
                count, t->optimizer.row->class_name, list.count);
    }
    bwi_release(t->ctx, list.values);
    bwi_release(t->ctx, places);
    bwi_wiring_close(&wiring);
    return status;
}

/* The model may be in use, so all values are read before the first one changes. */
static bw_status replace_all(const bw_model *model, bwi_hdf5 *file, const char *path, const place *places, int count)
{
    size_t total = 0;
    for (int i = 0; i < count; i++) {
        total = bwi_size_add(total, (size_t)bwi_shape_count(&places[i].variable->shape));
    }
    float *values = bwi_allocate(model->ctx, total, sizeof *values), *next = values;
    bw_status status = values ? BW_OK : BW_RESOURCE_EXHAUSTED;
    for (int i = 0; i < count && status == BW_OK; i++) {
        const bwi_hdf5_entry *entry = bwi_hdf5_find(file, places[i].path);
        int64_t own = bwi_shape_count(&places[i].variable->shape);
        status = bwi_hdf5_read(file, entry, 0, entry->ndim ? entry->shape[0] : 1, BW_F32, next);
        status = status == BW_OK ? bwi_weights_finite(model->ctx, path, places[i].variable, own, next) : status;
        next += own;
    }
    next = values;
    for (int i = 0; i < count && status == BW_OK; i++) {
        bwi_variable_write(places[i].variable, next);
        places[i].variable->given = true;
        next += bwi_shape_count(&places[i].variable->shape);
    }
    bwi_release(model->ctx, values);
    return status;
}

static bw_status take_all(bw_model *model, bwi_hdf5 *file, const char *path, const place *places, int count)
{
    if (bwi_model_built(model)) {
        return replace_all(model, file, path, places, count);
    }
    bw_status status = bwi_weights_build(model);
    for (int i = 0; i < count && status == BW_OK; i++) {
        status = bwi_weights_take(model->ctx, file, path, bwi_hdf5_find(file, places[i].path), places[i].variable);
    }
    return status;
}

/* Weights of tf-idf. What a layer makes of them is checked with its vocabulary. */
static bw_status take_fronts(bw_model *model, const bwi_wiring *wiring, bwi_hdf5 *file, const char *path)
{
    if (!bwi_model_has_fronts(model)) {
        return BW_OK;
    }
    bwi_front_weight *weights = bwi_allocate(model->ctx, 2 * BWI_MOST_FRONTS, sizeof *weights);
    if (!weights) {
        return BW_RESOURCE_EXHAUSTED;
    }
    int count = bwi_front_weights(wiring, weights);
    bw_status status = BW_OK;
    for (int i = 0; i < count && status == BW_OK; i++) {
        const bwi_hdf5_entry *entry = bwi_hdf5_find(file, weights[i].path);
        bwi_shape shape = {.ndim = 1, .extent = {bwi_front_depth(weights[i].front)}};
        status = bwi_weights_check(model->ctx, path, weights[i].path, entry, &shape);
        float *idf = status == BW_OK ? bwi_allocate(model->ctx, (size_t)shape.extent[0], sizeof *idf) : NULL;
        if (status == BW_OK) {
            status = idf ? bwi_hdf5_read(file, entry, 0, shape.extent[0], BW_F32, idf) : BW_RESOURCE_EXHAUSTED;
        }
        if (status == BW_OK) {
            status = bwi_front_set_idf(weights[i].front, idf, shape.extent[0], path);
        }
        bwi_release(model->ctx, idf);
    }
    bwi_release(model->ctx, weights);
    return status;
}

bw_status bwi_weights_read(bw_model *model, bwi_hdf5 *file, const char *path, bool optimizer)
{
    bwi_wiring wiring;
    place *places = NULL;
    int count = 0;
    bw_status status = bwi_wiring_open(&wiring, model);
    if (status != BW_OK) {
        return status;
    }
    status = make_places(&wiring, &places, &count);
    if (status == BW_OK) {
        status = check_places(model, file, path, places, count);
    }
    if (status == BW_OK) {
        status = take_fronts(model, &wiring, file, path);
    }
    if (status == BW_OK) {
        status = take_all(model, file, path, places, count);
    }
    bwi_training *t = model->training;
    if (status == BW_OK && optimizer && t && t->compiled && !(t->unread & BWI_PART_OPTIMIZER)) {
        status = read_optimizer(t, file, path, places, count);
    }
    bwi_release(model->ctx, places);
    bwi_wiring_close(&wiring);
    return status;
}

/* ---- Writing ---- */

struct bwi_weights_out {
    bw_context *ctx;
    bwi_front_weight *fronts; /* weights of tf-idf, which come last */
    int front_count;
    place *places;
    int place_count;
    optimizer_list list;
    bwi_hdf5_part *parts; /* the places, then the optimizer's values */
    int count;
    char (*names)[48]; /* of the optimizer's values */
    bwi_hdf5_head head;
};

static void name_parts(bwi_weights_out *out)
{
    for (int i = 0; i < out->place_count; i++) {
        const bwi_shape *shape = &out->places[i].variable->shape;
        out->parts[out->count++] =
            (bwi_hdf5_part){.name = out->places[i].path, .dtype = BW_F32, .ndim = shape->ndim, .shape = shape->extent};
    }
    for (int i = 0; i < out->list.count; i++) {
        const optimizer_value *value = &out->list.values[i];
        const bwi_shape *shape = value->slot ? &value->slot->variable->shape : NULL;
        snprintf(out->names[i], sizeof out->names[i], "optimizer/vars/%d", i);
        out->parts[out->count++] = (bwi_hdf5_part){.name = out->names[i],
                                                   .dtype = value->whole ? BW_I64 : BW_F32,
                                                   .ndim = shape ? shape->ndim : 0,
                                                   .shape = shape ? shape->extent : NULL};
    }
    for (int i = 0; i < out->front_count; i++) {
        out->parts[out->count++] =
            (bwi_hdf5_part){.name = out->fronts[i].path, .dtype = BW_F32, .ndim = 1, .shape = out->fronts[i].shape};
    }
}

/* The optimizer is written if there is anything to continue from. */
static bw_status find_parts(bw_model *model, const bwi_wiring *wiring, bwi_weights_out *out)
{
    bwi_training *t = model->training;
    bw_status status = make_places(wiring, &out->places, &out->place_count);
    bool divided = t && t->optimizer.begins;
    if (divided) {
        bwi_log(out->ctx, BW_LOG_WARNING,
                "the optimizer's state is left out of the file: the ranks have divided it among them until bw_fit ends");
    }
    if (status == BW_OK && t && !divided && !t->unread && (t->compiled || t->optimizer.iterations > 0)) {
        status = list_values(t, out->places, out->place_count, LISTING_KERAS_3, &out->list);
    }
    if (status != BW_OK) {
        return status;
    }
    if (bwi_model_has_fronts(model)) {
        out->fronts = bwi_allocate(out->ctx, 2 * BWI_MOST_FRONTS, sizeof *out->fronts);
        if (!out->fronts) {
            return BW_RESOURCE_EXHAUSTED;
        }
        out->front_count = bwi_front_weights(wiring, out->fronts);
    }
    size_t total = (size_t)out->place_count + (size_t)out->list.count + (size_t)out->front_count;
    out->parts = bwi_allocate(out->ctx, total, sizeof *out->parts);
    out->names = out->parts ? bwi_allocate(out->ctx, (size_t)out->list.count, sizeof *out->names) : NULL;
    if (!out->names) {
        return BW_RESOURCE_EXHAUSTED;
    }
    name_parts(out);
    return bwi_hdf5_lay_out(out->ctx, out->parts, out->count, &out->head);
}

bw_status bwi_weights_open(bw_model *model, const bwi_wiring *wiring, bwi_weights_out **out)
{
    *out = NULL;
    bwi_weights_out *made = bwi_allocate(model->ctx, 1, sizeof *made);
    if (!made) {
        return BW_RESOURCE_EXHAUSTED;
    }
    made->ctx = model->ctx;
    bw_status status = find_parts(model, wiring, made);
    if (status == BW_OK) {
        *out = made;
    } else {
        bwi_weights_close(made);
    }
    return status;
}

void bwi_weights_close(bwi_weights_out *out)
{
    if (out) {
        bwi_release(out->ctx, out->places);
        bwi_release(out->ctx, out->fronts);
        bwi_release(out->ctx, out->list.values);
        bwi_release(out->ctx, out->parts);
        bwi_release(out->ctx, out->names);
        bwi_release(out->ctx, out->head.bytes);
        bwi_release(out->ctx, out);
    }
}

size_t bwi_weights_size(const bwi_weights_out *out)
{
    return out->head.total;
}

/* A number of the optimizer, in little-endian order. */
static bw_status put_number(const optimizer_value *value, bwi_byte_sink sink)
{
    uint64_t bits = 0;
    unsigned char bytes[8];
    memcpy(&bits, value->whole ? (const void *)value->whole : (const void *)value->number, value->whole ? 8 : 4);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    bits = value->whole ? bits : bits >> 32;
#endif
    for (int i = 0; i < 8; i++) {
        bytes[i] = (unsigned char)(bits >> 8 * i);
    }
    return sink.put(sink.user, bytes, value->whole ? 8 : 4);
}

static bw_status put_floats(const float *numbers, int64_t count, bwi_byte_sink sink)
{
    bw_status status = BW_OK;
    for (int64_t i = 0; i < count && status == BW_OK; i++) {
        float number = numbers[i];
        status = put_number(&(optimizer_value){.number = &number}, sink);
    }
    return status;
}

static bw_status put_part(const bwi_weights_out *out, int index, bwi_byte_sink sink)
{
    if (index < out->place_count) {
        return bwi_values_put(out->ctx, &(bwi_values){.variable = out->places[index].variable}, sink);
    }
    int front = index - out->place_count - out->list.count;
    if (front >= 0) {
        int64_t count;
        const float *idf = bwi_front_idf(out->fronts[front].front, &count);
        return put_floats(idf, count, sink);
    }
    const optimizer_value *value = &out->list.values[index - out->place_count];
    if (!value->slot) {
        return put_number(value, sink);
    }
    bwi_variable stored = *value->slot->variable;
    stored.data = value->slot->data;
    return bwi_values_put(out->ctx, &(bwi_values){.variable = &stored}, sink);
}

bw_status bwi_weights_put(const bwi_weights_out *out, bwi_byte_sink sink)
{
    static const unsigned char zeros[8];
    bw_status status = sink.put(sink.user, out->head.bytes, out->head.size);
    for (int i = 0; i < out->count && status == BW_OK; i++) {
        size_t end = out->parts[i].offset + out->parts[i].bytes;
        size_t next = i + 1 < out->count ? out->parts[i + 1].offset : out->head.total;
        status = put_part(out, i, sink);
        status = status == BW_OK ? sink.put(sink.user, zeros, next - end) : status;
    }
    return status;
}
