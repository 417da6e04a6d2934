/*
 * The graph of a Functional model: each layer of the file has the nodes it is called at, each node the layers it takes. Layers
 * are made when their inputs are there. Operations that are no layers are known only where they make masks, which follow from
 * the layers here.
 */
#include "file/internal.h"

#include <stdlib.h>
#include <string.h>

/* Keras writes layers before those that take them, but for shared ones: a few turns suffice. */
enum { MOST_NODES = 64, TURN_LIMIT = 64 };

/* A layer of the file: where it is here, and which uses its nodes became. */
typedef struct entry {
    const bwi_json *json, *nodes;
    const char *name;
    int layer, input; /* -1: not made yet, or none */
    bool operation;   /* no layer: it makes a mask */
    int done, use[MOST_NODES];
} entry;

typedef struct graph_reader {
    bwi_keras k;
    bw_model *model;
    entry *entries; /* as in the file */
    entry **sorted; /* by name */
    int count;
    bool frozen;
} graph_reader;

static int compare_names(const void *a, const void *b)
{
    return strcmp((*(entry *const *)a)->name, (*(entry *const *)b)->name);
}

static entry *find_entry(const graph_reader *r, const char *name)
{
    entry wanted = {.name = name}, *key = &wanted;
    entry **found = name ? bsearch(&key, (void *)r->sorted, (size_t)r->count, sizeof *r->sorted, compare_names) : NULL;
    return found ? *found : NULL;
}

static bw_status sort_entries(graph_reader *r)
{
    r->sorted = bwi_allocate(r->k.ctx, (size_t)r->count, sizeof *r->sorted);
    if (!r->sorted) {
        return BW_RESOURCE_EXHAUSTED;
    }
    for (int i = 0; i < r->count; i++) {
        r->sorted[i] = &r->entries[i];
    }
    qsort((void *)r->sorted, (size_t)r->count, sizeof *r->sorted, compare_names);
    for (int i = 1; i < r->count; i++) {
        if (strcmp(r->sorted[i]->name, r->sorted[i - 1]->name) == 0) {
            return bwi_fail_file(r->k.ctx, BW_DATA_LOSS, r->k.path, "layer %s appears twice", r->sorted[i]->name);
        }
    }
    return BW_OK;
}

static bw_status fail_tensor(const graph_reader *r)
{
    return bwi_fail_file(r->k.ctx, BW_DATA_LOSS, r->k.path, "%s: one of its inputs is not the output of another layer", r->k.what);
}

/* ["layer", node, tensor] or an object that holds it. *use is -1 if that node is not made yet. */
static bw_status read_tensor(const graph_reader *r, const bwi_json *json, int *use)
{
    const bwi_json *history = bwi_json_get(bwi_json_get(json, "config"), "keras_history");
    int64_t node = 0, tensor = 0;
    history = history ? history : json;
    const entry *e = find_entry(r, bwi_json_text(bwi_json_at(history, 0)));
    if (e && e->operation) {
        return bwi_fail_file(r->k.ctx, BW_UNIMPLEMENTED, r->k.path,
                             "%s: takes the output of the operation %s, which is not a layer: not supported", r->k.what, e->name);
    }
    if (!e || !bwi_json_whole(bwi_json_at(history, 1), &node) || !bwi_json_whole(bwi_json_at(history, 2), &tensor) || tensor != 0 ||
        node < 0 || node >= (e->input >= 0 ? 1 : bwi_json_count(e->nodes)) || node >= MOST_NODES) {
        return fail_tensor(r);
    }
    *use = e->input >= 0 ? e->use[0] : node < e->done ? e->use[node] : -1;
    return BW_OK;
}

static const entry *entry_of(const graph_reader *r, const bwi_json *tensor)
{
    const bwi_json *history = bwi_json_get(bwi_json_get(tensor, "config"), "keras_history");
    return find_entry(r, bwi_json_text(bwi_json_at(history ? history : tensor, 0)));
}

/* A mask, or a list of masks and nulls, that operations make. What they make follows from the layers here, too. */
static bool is_mask(const graph_reader *r, const bwi_json *value)
{
    if (bwi_json_kind_of(value) == BWI_JSON_LIST) {
        for (int i = 0; i < bwi_json_count(value); i++) {
            if (bwi_json_kind_of(bwi_json_at(value, i)) != BWI_JSON_NULL && !is_mask(r, bwi_json_at(value, i))) {
                return false;
            }
        }
        return true;
    }
    const entry *e = entry_of(r, value);
    return e && e->operation;
}

static bool is_tensor(const bwi_json *json)
{
    return bwi_json_kind_of(json) == BWI_JSON_OBJECT || bwi_json_text(bwi_json_at(json, 0));
}

/* The tensors of a call: {"args": [T or [T, ...]], "kwargs": {}}, or [T, ...] in older files; NULL: none. */
static const bwi_json *tensors_of(const bwi_json *node)
{
    const bwi_json *args = bwi_json_get(node, "args");
    if (bwi_json_kind_of(node) == BWI_JSON_LIST) {
        return node;
    }
    return bwi_json_count(args) == 0 ? NULL : is_tensor(bwi_json_at(args, 0)) ? args : bwi_json_at(args, 0);
}

static int tensor_count(const bwi_json *node)
{
    const bwi_json *args = bwi_json_get(node, "args"), *tensors = tensors_of(node);
    return args && tensors == args ? 1 : bwi_json_count(tensors);
}

/* Other arguments that are not null change what the layer does. */
static bw_status check_call(const graph_reader *r, const bwi_json *node)
{
    const bwi_json *args = bwi_json_get(node, "args"), *kwargs = bwi_json_get(node, "kwargs");
    const char *key = NULL;
    for (const bwi_json *value; (value = bwi_json_next(kwargs, &key));) {
        /* Keras 3 replaces `training` by whether it trains at all. */
        bool neutral = bwi_json_kind_of(value) == BWI_JSON_NULL || strcmp(key, "training") == 0;
        if (!neutral && (strcmp(key, "mask") != 0 || !is_mask(r, value))) {
            return bwi_keras_refuse(&r->k, key, value);
        }
    }
    for (int i = 0; bwi_json_kind_of(node) == BWI_JSON_LIST && i < bwi_json_count(node); i++) {
        if (bwi_json_count(bwi_json_at(bwi_json_at(node, i), 3))) {
            return bwi_keras_refuse(&r->k, "call", bwi_json_at(bwi_json_at(node, i), 3));
        }
    }
    for (int i = 1; i < bwi_json_count(args); i++) {
        if (bwi_json_kind_of(bwi_json_at(args, i)) != BWI_JSON_NULL) {
            return bwi_keras_refuse(&r->k, "second argument", bwi_json_at(args, i));
        }
    }
    return BW_OK;
}

/* *ready is false if an input is still to come. */
static bw_status find_inputs(const graph_reader *r, const bwi_json *node, int uses[BWI_MAX_POINTS], int *count, bool *ready)
{
    bw_status status = check_call(r, node);
    if (status != BW_OK) {
        return status;
    }
    *count = tensor_count(node);
    *ready = true;
    if (*count < 1 || *count > BWI_MAX_POINTS) {
        return bwi_fail_file(r->k.ctx, *count < 1 ? BW_DATA_LOSS : BW_UNIMPLEMENTED, r->k.path,
                             "%s: %d inputs; from 1 to %d are possible", r->k.what, *count, BWI_MAX_POINTS);
    }
    for (int i = 0; i < *count && status == BW_OK; i++) {
        status = read_tensor(r, bwi_json_at(tensors_of(node), i), &uses[i]);
        *ready = *ready && status == BW_OK && uses[i] >= 0;
    }
    return status;
}

static bw_status make_layer(graph_reader *r, entry *e)
{
    bwi_text text = {.ctx = r->k.ctx};
    bw_status status = bwi_keras_layer_text(&r->k, e->json, r->frozen, &text);
    if (status == BW_OK) {
        e->layer = bwi_model_add_layer(r->model, text.bytes, e->name);
        status = e->layer >= 0 ? BW_OK : bwi_pending(r->k.ctx);
    }
    bwi_text_free(&text);
    return status;
}

static bool has_mask(const bwi_json *node)
{
    return bwi_json_kind_of(bwi_json_get(bwi_json_get(node, "kwargs"), "mask")) > BWI_JSON_NULL;
}

static bool any_masked(const bw_model *model, const int *uses, int count)
{
    for (int i = 0; i < count; i++) {
        if (model->uses[uses[i]].node->mask) {
            return true;
        }
    }
    return false;
}

/* Makes as many of a layer's nodes, in their order, as have their inputs. */
static bw_status advance(graph_reader *r, entry *e, bool *moved)
{
    while (e->done < bwi_json_count(e->nodes)) {
        int uses[BWI_MAX_POINTS], count;
        bool ready;
        snprintf(r->k.what, sizeof r->k.what, "layer %s", e->name);
        bw_status status = find_inputs(r, bwi_json_at(e->nodes, e->done), uses, &count, &ready);
        if (status == BW_OK && !ready) {
            return BW_OK;
        }
        if (status == BW_OK && has_mask(bwi_json_at(e->nodes, e->done)) && !any_masked(r->model, uses, count)) {
            status = bwi_keras_refuse(&r->k, "mask", bwi_json_get(bwi_json_get(bwi_json_at(e->nodes, e->done), "kwargs"), "mask"));
        }
        if (status == BW_OK && e->layer < 0) {
            status = make_layer(r, e);
        }
        if (status == BW_OK) {
            e->use[e->done] = bwi_model_use(r->model, e->layer, uses, count);
            status = e->use[e->done] >= 0 ? BW_OK : bwi_pending(r->k.ctx);
        }
        if (status != BW_OK) {
            return status;
        }
        e->done++;
        *moved = true;
    }
    return BW_OK;
}

static bw_status make_uses(graph_reader *r)
{
    bool moved = true;
    for (int turn = 0; turn < TURN_LIMIT && moved; turn++) {
        moved = false;
        for (int i = 0; i < r->count; i++) {
            entry *e = &r->entries[i];
            bw_status status = e->input >= 0 || e->operation ? BW_OK : advance(r, e, &moved);
            if (status != BW_OK) {
                return status;
            }
        }
    }
    for (int i = 0; i < r->count; i++) {
        const entry *e = &r->entries[i];
        if (e->input < 0 && !e->operation && e->done < bwi_json_count(e->nodes)) {
            return bwi_fail_file(r->k.ctx, BW_DATA_LOSS, r->k.path, "layer %s: its inputs do not precede it, or form a cycle",
                                 e->name);
        }
    }
    return BW_OK;
}

/* Operations by which an embedding and merging layers make masks. */
static bool is_operation(const bwi_json *json)
{
    static const char *const known[] = {"NotEqual", "LogicalOr",  "Concatenate", "All",
                                        "Any",      "ExpandDims", "OnesLike",    "BroadcastTo"};
    const char *module = bwi_json_text(bwi_json_get(json, "module")), *name = bwi_json_text(bwi_json_get(json, "class_name"));
    double other = 1;
    /* Older files have no modules; there Concatenate is the layer. */
    if (!name || (module ? strncmp(module, "keras.src.ops.", 14) != 0 : strcmp(name, "Concatenate") == 0)) {
        return false;
    }
    if (strcmp(name, "NotEqual") == 0) {
        const bwi_json *args = bwi_json_get(bwi_json_at(bwi_json_get(json, "inbound_nodes"), 0), "args");
        return bwi_json_number(bwi_json_at(args, 1), &other) && other == 0;
    }
    for (size_t i = 1; i < BWI_COUNT(known); i++) {
        if (strcmp(name, known[i]) == 0) {
            return true;
        }
    }
    return false;
}

static bw_status read_entry(graph_reader *r, const bwi_json *json)
{
    const char *name = bwi_json_text(bwi_json_get(json, "name"));
    entry e = {.json = json, .nodes = bwi_json_get(json, "inbound_nodes"), .layer = -1, .input = -1};
    e.name = name ? name : bwi_keras_layer_name(json);
    e.operation = is_operation(json);
    bw_status status = bwi_keras_check_name(&r->k, e.name);
    if (status == BW_OK && bwi_json_count(e.nodes) > MOST_NODES) {
        status = bwi_fail_file(r->k.ctx, BW_UNIMPLEMENTED, r->k.path, "%s is used %d times; at most %d are possible", r->k.what,
                               bwi_json_count(e.nodes), MOST_NODES);
    }
    if (status == BW_OK && !bwi_keras_is_input(json) && bwi_json_count(e.nodes) == 0) {
        status = bwi_fail_file(r->k.ctx, BW_DATA_LOSS, r->k.path, "%s is never used", r->k.what);
    }
    r->entries[r->count] = e;
    r->count += status == BW_OK;
    return status;
}

/* Does a layer that takes whole numbers take this input? All that take it must. */
static bw_status find_dtype(const graph_reader *r, const entry *input, bw_dtype *dtype)
{
    int indices = 0, others = 0;
    for (int i = 0; i < r->count; i++) {
        const char *class_name = bwi_json_text(bwi_json_get(r->entries[i].json, "class_name"));
        const bwi_layer_row *row = class_name ? bwi_keras_layer_row(class_name) : NULL;
        for (int n = 0; !r->entries[i].operation && n < bwi_json_count(r->entries[i].nodes); n++) {
            const bwi_json *node = bwi_json_at(r->entries[i].nodes, n);
            for (int t = 0; t < tensor_count(node); t++) {
                bool takes = entry_of(r, bwi_json_at(tensors_of(node), t)) == input;
                indices += takes && row && (row->flags & BWI_LAYER_INDICES);
                others += takes && !(row && (row->flags & BWI_LAYER_INDICES));
            }
        }
    }
    *dtype = indices ? BW_I32 : BW_F32;
    return indices && others
               ? bwi_fail_file(r->k.ctx, BW_UNIMPLEMENTED, r->k.path,
                               "input %s: both indices of an embedding and numbers of other layers are not supported", input->name)
               : BW_OK;
}

/* The model's list of inputs refers to layers by name, and each must be an input layer that was not used before. */
static bw_status make_input(graph_reader *r, const bwi_json *reference)
{
    entry *e = find_entry(r, bwi_json_text(bwi_json_at(reference, 0)));
    if (!e || !bwi_keras_is_input(e->json) || e->input >= 0) {
        return bwi_fail_file(r->k.ctx, BW_DATA_LOSS, r->k.path, "an input of the model is not an input layer, or appears twice");
    }
    const bwi_json *config = bwi_json_get(e->json, "config");
    bwi_shape shape;
    bw_dtype dtype = BW_F32;
    snprintf(r->k.what, sizeof r->k.what, "layer %s", e->name);
    bw_status status = bwi_keras_check_input(&r->k, config);
    if (status == BW_OK) {
        status = bwi_keras_input_shape(&r->k, bwi_keras_shape_of(config), &shape);
    }
    if (status == BW_OK) {
        status = find_dtype(r, e, &dtype);
    }
    if (status == BW_OK) {
        bw_node *node = bw_input(r->model, e->name, dtype, shape.ndim, shape.extent);
        status = node ? BW_OK : bwi_pending(r->k.ctx);
        e->input = r->model->input_count - 1;
        e->use[0] = r->model->use_count - 1;
    }
    return status;
}

static bw_status make_output(graph_reader *r, const bwi_json *reference)
{
    int use = -1;
    const char *name = bwi_json_text(bwi_json_at(reference, 0));
    snprintf(r->k.what, sizeof r->k.what, "an output of the model");
    bw_status status = read_tensor(r, reference, &use);
    if (status == BW_OK) {
        status = use >= 0 ? bwi_model_output(r->model->uses[use].node, name) : fail_tensor(r);
    }
    return status;
}

/* ["x", 0, 0], a list of them, or an object of them. */
static bw_status for_each(graph_reader *r, const bwi_json *json, const char *what,
                          bw_status (*make)(graph_reader *, const bwi_json *))
{
    bw_status status = BW_OK;
    if (bwi_json_kind_of(json) != BWI_JSON_LIST || bwi_json_count(json) == 0) {
        return bwi_fail_file(r->k.ctx, bwi_json_kind_of(json) == BWI_JSON_OBJECT ? BW_UNIMPLEMENTED : BW_DATA_LOSS, r->k.path,
                             "expected a list of the model's %s", what);
    }
    if (bwi_json_text(bwi_json_at(json, 0))) {
        return make(r, json);
    }
    for (int i = 0; i < bwi_json_count(json) && status == BW_OK; i++) {
        status = make(r, bwi_json_at(json, i));
    }
    return status;
}

/* Layers may stand in any order in the file: all are read, then connected from the inputs on. */
static bw_status read_graph(graph_reader *r, const bwi_json *config)
{
    const bwi_json *layers = bwi_json_get(config, "layers");
    int count = bwi_json_count(layers);
    r->entries = bwi_allocate(r->k.ctx, (size_t)count, sizeof *r->entries);
    bw_status status = r->entries ? BW_OK : BW_RESOURCE_EXHAUSTED;
    for (int i = 0; i < count && status == BW_OK; i++) {
        status = read_entry(r, bwi_json_at(layers, i));
    }
    if (status == BW_OK) {
        status = sort_entries(r);
    }
    if (status == BW_OK) {
        status = for_each(r, bwi_json_get(config, "input_layers"), "inputs", make_input);
    }
    if (status == BW_OK) {
        status = make_uses(r);
    }
    if (status == BW_OK) {
        status = for_each(r, bwi_json_get(config, "output_layers"), "outputs", make_output);
    }
    bwi_release(r->k.ctx, (void *)r->sorted);
    bwi_release(r->k.ctx, r->entries);
    return status;
}

bw_status bwi_keras_read_graph(bw_model *model, const bwi_keras *k, const bwi_json *config, bool frozen)
{
    graph_reader r = {.k = *k, .model = model, .frozen = frozen};
    return read_graph(&r, config);
}
