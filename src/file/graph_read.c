/*
 * Reads the graph of a Functional model. Each layer of the file has the nodes at which it is called, and each node names the layers
 * it takes; a layer is made once its inputs exist. A nested model is a level: at each of its calls its layers are added to the one
 * flat model, under names that begin with the nested model's. Where Keras's files have the weights follows from the levels, so it
 * is computed here and kept. Operations that make masks are skipped, because masks follow from the layers here.
 */
#include "file/graph.h"

#include <stdlib.h>
#include <string.h>

/* ---- Tensors ---- */

static bw_status fail_tensor(const graph_reader *r)
{
    return bwi_fail_file(r->k.ctx, BW_DATA_LOSS, r->k.path, "%s: one of its inputs is not the output of another layer", r->k.what);
}

static const bwi_json *history_of(const bwi_json *tensor)
{
    const bwi_json *history = bwi_json_get(bwi_json_get(tensor, "config"), "keras_history");
    return history ? history : tensor;
}

static const entry *entry_of(const level *l, const bwi_json *tensor)
{
    return bwi_graph_find(l, bwi_json_text(bwi_json_at(history_of(tensor), 0)));
}

/* A functional model has a node from before its first call, which is not written but counts in lists such as ["f", 1, 0]. In
 * older versions the same was true of Sequential models. */
static int skipped_nodes(const entry *e)
{
    bool older = !bwi_json_text(bwi_json_get(e->json, "module"));
    return !e->inner->list || (older && e->inner->inputs[0].from->json) ? 1 : 0;
}

bool bwi_graph_find_end(const level *l, const bwi_json *json, end *found)
{
    const bwi_json *history = history_of(json);
    int64_t node = 0, tensor = 0;
    entry *e = bwi_graph_find(l, bwi_json_text(bwi_json_at(history, 0)));
    bool whole = bwi_json_whole(bwi_json_at(history, 1), &node) && bwi_json_whole(bwi_json_at(history, 2), &tensor);
    node -= e && e->kind == NESTED && history == json ? skipped_nodes(e) : 0;
    if (!e || !whole || node < 0 || node >= (e->kind == INPUT ? 1 : e->node_count) || node >= MOST_NODES || tensor < 0 ||
        tensor >= (e->kind == NESTED ? e->inner->output_count : e->width)) {
        return false;
    }
    *found = (end){.key = e->name, .from = e, .node = (int)node, .tensor = (int)tensor};
    return true;
}

bw_status bwi_graph_end(const graph_reader *r, const level *l, const bwi_json *json, end *found)
{
    return bwi_graph_find_end(l, json, found) ? BW_OK : fail_tensor(r);
}

/* Returns a node's tensor (bwi_result); -1: that node is not made yet. */
static int use_of(const end *at)
{
    const entry *e = at->from;
    return e->kind == INPUT ? e->use[0] : at->node < e->done ? e->use[at->node * e->width + at->tensor] : -1;
}

static bw_status read_tensor(const graph_reader *r, const level *l, const bwi_json *json, int *use)
{
    end at;
    bw_status status = bwi_graph_end(r, l, json, &at);
    if (status == BW_OK && at.from->kind == MASK) {
        return bwi_fail_file(r->k.ctx, BW_UNIMPLEMENTED, r->k.path,
                             "%s: takes the output of the operation %s, which is not a layer: not supported", r->k.what,
                             at.from->name);
    }
    *use = status == BW_OK ? use_of(&at) : -1;
    return status;
}

/* Whether the value is a mask that operations make, or a list of such masks and nulls. Their result follows from the layers
 * here, too. */
static bool is_mask(const level *l, const bwi_json *value)
{
    if (bwi_json_kind_of(value) == BWI_JSON_LIST) {
        for (int i = 0; i < bwi_json_count(value); i++) {
            if (bwi_json_kind_of(bwi_json_at(value, i)) != BWI_JSON_NULL && !is_mask(l, bwi_json_at(value, i))) {
                return false;
            }
        }
        return true;
    }
    const entry *e = entry_of(l, value);
    return e && e->kind == MASK;
}

static bool is_tensor(const bwi_json *json)
{
    const char *class_name = bwi_json_text(bwi_json_get(json, "class_name"));
    return class_name ? strcmp(class_name, "__keras_tensor__") == 0
                      : bwi_json_text(bwi_json_at(json, 0)) && bwi_json_kind_of(bwi_json_at(json, 1)) == BWI_JSON_WHOLE;
}

static int compare_keys(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Adds all tensors in a value; those of objects are added in the order of their keys, as Keras flattens them. The depth is
 * bounded by that of JSON. */
void bwi_graph_collect(const bwi_json *value, const char *key, tensors *found)
{
    if (is_tensor(value)) {
        found->more = found->more || found->count == MOST_TENSORS;
        if (!found->more) {
            found->key[found->count] = key;
            found->at[found->count++] = value;
        }
        return;
    }
    if (bwi_json_kind_of(value) == BWI_JSON_LIST) {
        for (int i = 0; i < bwi_json_count(value); i++) {
            bwi_graph_collect(bwi_json_at(value, i), key, found);
        }
        return;
    }
    const char *keys[MOST_TENSORS], *next = NULL;
    int count = 0;
    if (bwi_json_kind_of(value) != BWI_JSON_OBJECT || bwi_json_get(value, "class_name")) {
        return;
    }
    while (bwi_json_next(value, &next)) {
        found->more = found->more || count == MOST_TENSORS;
        if (count < MOST_TENSORS) {
            keys[count++] = next;
        }
    }
    qsort((void *)keys, (size_t)count, sizeof *keys, compare_keys);
    for (int i = 0; i < count; i++) {
        bwi_graph_collect(bwi_json_get(value, keys[i]), keys[i], found);
    }
}

/* Returns the arguments of a call: {"args": [...], "kwargs": {}}, or [T, ...] in older files. */
const bwi_json *bwi_graph_arguments(const bwi_json *node)
{
    return bwi_json_kind_of(node) == BWI_JSON_LIST ? node : bwi_json_get(node, "args");
}

static const bwi_layer_row *row_of(const entry *e)
{
    const char *class_name = bwi_json_text(bwi_json_get(e->json, "class_name"));
    return e->kind == LAYER ? bwi_keras_layer_row(class_name) : NULL;
}

/* Keras calls these layers with query, value, key and masks, by position or by name. */
static bool attends(const entry *e)
{
    const bwi_layer_row *row = row_of(e);
    return row && (row->flags & BWI_LAYER_ATTENDS);
}

enum { ATTENTION_ARGUMENTS = 7, ATTENTION_MASK = 6 };
static const char *const attention_arguments[ATTENTION_ARGUMENTS] = {"query",      "value",    "key",           "query_mask",
                                                                     "value_mask", "key_mask", "attention_mask"};

static const bwi_json *attention_argument(const bwi_json *node, int number)
{
    const bwi_json *by_position = bwi_json_at(bwi_json_get(node, "args"), number);
    return bwi_json_count(bwi_json_get(node, "args")) > number
               ? by_position
               : bwi_json_get(bwi_json_get(node, "kwargs"), attention_arguments[number]);
}

/* A key that is not given is the value; it must be there if a mask follows it. */
static void collect_attention(const bwi_json *node, tensors *found)
{
    for (int i = 0; i < 3; i++) {
        const bwi_json *one = attention_argument(node, i);
        bool needed = i == 2 && is_tensor(attention_argument(node, ATTENTION_MASK));
        bwi_graph_collect(needed && !is_tensor(one) ? attention_argument(node, 1) : one, NULL, found);
    }
    bwi_graph_collect(attention_argument(node, ATTENTION_MASK), NULL, found);
}

/* Recurrent layers are called with the states that they begin with, by position or by name. */
static bool takes_states(const entry *e)
{
    const bwi_layer_row *row = row_of(e);
    return row && (row->flags & BWI_LAYER_STATES);
}

static const bwi_json *initial_state(const bwi_json *node)
{
    const bwi_json *args = bwi_json_get(node, "args");
    return bwi_json_count(args) > 1 ? bwi_json_at(args, 1) : bwi_json_get(bwi_json_get(node, "kwargs"), "initial_state");
}

/* A layer's inputs are its first argument and its states, an operator's inputs are all of its arguments. */
static void collect_inputs(const entry *e, const bwi_json *node, tensors *found)
{
    if (attends(e) && bwi_json_kind_of(node) != BWI_JSON_LIST) {
        found->count = 0;
        found->more = false;
        collect_attention(node, found);
        return;
    }
    const bwi_json *args = bwi_graph_arguments(node);
    bool all = e->kind == OPERATOR || bwi_json_kind_of(node) == BWI_JSON_LIST;
    found->count = 0;
    found->more = false;
    bwi_graph_collect(all ? args : bwi_json_at(args, 0), NULL, found);
    if (takes_states(e) && bwi_json_kind_of(node) != BWI_JSON_LIST) {
        bwi_graph_collect(initial_state(node), NULL, found);
    }
}

/* Whether it is a tensor, or a list of nothing but tensors and such lists. */
static bool is_tensors(const bwi_json *value)
{
    int count = bwi_json_kind_of(value) == BWI_JSON_LIST ? bwi_json_count(value) : 0;
    bool all = is_tensor(value) || count > 0;
    for (int i = 0; !is_tensor(value) && i < count; i++) {
        all = all && is_tensors(bwi_json_at(value, i));
    }
    return all;
}

/* Whether a call's argument by name is understood, or has no effect. */
static bool known_argument(const level *l, const entry *e, const char *key, const bwi_json *value)
{
    const bwi_layer_row *row = row_of(e);
    bool named = false, flag = bwi_json_kind_of(value) == BWI_JSON_BOOL;
    for (int i = 0; i < ATTENTION_ARGUMENTS && attends(e); i++) {
        named = named || (strcmp(key, attention_arguments[i]) == 0 && (is_tensor(value) || i == ATTENTION_MASK));
    }
    for (int i = 0; row && flag && i < row->argument_count; i++) {
        named = named || (strcmp(key, "use_causal_mask") == 0 && strcmp(row->arguments[i].name, key) == 0);
    }
    named = named || (takes_states(e) && strcmp(key, "initial_state") == 0 && is_tensors(value));
    bool mask = strcmp(key, "mask") == 0 ||
                (attends(e) && (strcmp(key, "query_mask") == 0 || strcmp(key, "value_mask") == 0 || strcmp(key, "key_mask") == 0));
    /* Keras 3 overrides `training` by whether the model is being trained. */
    return bwi_json_kind_of(value) == BWI_JSON_NULL || strcmp(key, "training") == 0 || (mask ? is_mask(l, value) : named) ||
           (strcmp(key, "return_attention_scores") == 0 && flag && !bwi_json_true(value));
}

/* Any other argument that is not null would change what the layer does. */
static bw_status check_call(const graph_reader *r, const level *l, const entry *e, const bwi_json *node)
{
    const bwi_json *args = bwi_json_get(node, "args"), *kwargs = bwi_json_get(node, "kwargs");
    const char *key = NULL;
    if (e->kind == OPERATOR) {
        return BW_OK;
    }
    bool states = takes_states(e) && is_tensors(initial_state(node));
    for (const bwi_json *value; (value = bwi_json_next(kwargs, &key));) {
        bool masks = states && strcmp(key, "mask") == 0 && bwi_json_kind_of(value) != BWI_JSON_NULL;
        if (masks || !known_argument(l, e, key, value)) {
            return bwi_keras_refuse(&r->k, key, value);
        }
    }
    for (int i = 0; bwi_json_kind_of(node) == BWI_JSON_LIST && i < bwi_json_count(node); i++) {
        if (bwi_json_count(bwi_json_at(bwi_json_at(node, i), 3))) {
            return bwi_keras_refuse(&r->k, "call", bwi_json_at(bwi_json_at(node, i), 3));
        }
    }
    for (int i = 1; i < bwi_json_count(args); i++) {
        bool known = attends(e) && i < ATTENTION_ARGUMENTS && known_argument(l, e, attention_arguments[i], bwi_json_at(args, i));
        known = known || (takes_states(e) && i == 1 && is_tensors(bwi_json_at(args, i)));
        if (!known && bwi_json_kind_of(bwi_json_at(args, i)) != BWI_JSON_NULL) {
            return bwi_keras_refuse(&r->k, "second argument", bwi_json_at(args, i));
        }
    }
    return BW_OK;
}

/* Finds the input of a nested model that was passed under a key, -1 if there is none; without a key it is the one at `index`. */
static int input_index(const level *inner, const char *key, int index)
{
    for (int k = 0; key && k < inner->input_count; k++) {
        if (strcmp(inner->inputs[k].key, key) == 0 || strcmp(inner->inputs[k].from->name, key) == 0) {
            return k;
        }
    }
    return key ? -1 : index;
}

/* Finds the values that a call takes; *ready is false if one of them is not made yet. */
static bw_status find_inputs(const graph_reader *r, const level *l, const entry *e, const bwi_json *node, int *uses, int *count,
                             bool *ready)
{
    int most = e->kind == NESTED ? BWI_MAX_HEADS : BWI_MAX_POINTS;
    tensors found;
    bw_status status = check_call(r, l, e, node);
    if (status != BW_OK) {
        return status;
    }
    collect_inputs(e, node, &found);
    *count = found.count;
    *ready = true;
    if (*count < 1 || *count > most || found.more) {
        return bwi_fail_file(r->k.ctx, *count < 1 ? BW_DATA_LOSS : BW_UNIMPLEMENTED, r->k.path,
                             "%s: %d inputs; from 1 to %d are possible", r->k.what, *count, most);
    }
    for (int i = 0; i < *count && status == BW_OK; i++) {
        int use = -1, index = e->kind == NESTED ? input_index(e->inner, found.key[i], i) : i;
        status = index >= 0 && index < *count ? read_tensor(r, l, found.at[i], &use) : fail_tensor(r);
        if (status == BW_OK) {
            uses[index] = use;
            *ready = *ready && use >= 0;
        }
    }
    return status;
}

/* ---- Calls ---- */

/* An option of calls is one of the layer here, so all of its calls must agree. */
static bool is_causal(const bwi_json *node)
{
    return bwi_json_true(bwi_json_get(bwi_json_get(node, "kwargs"), "use_causal_mask"));
}

static bw_status add_call_options(const graph_reader *r, const entry *e, bwi_text *text)
{
    const bwi_json *first = bwi_json_at(e->nodes, 0);
    for (int i = 1; i < e->node_count; i++) {
        if (is_causal(bwi_json_at(e->nodes, i)) != is_causal(first)) {
            return bwi_fail_file(r->k.ctx, BW_UNIMPLEMENTED, r->k.path,
                                 "%s: calls with and without use_causal_mask are not supported", r->k.what);
        }
    }
    if (is_causal(first)) {
        text->length--; /* drops the closing parenthesis */
        bwi_text_add(text, "%suse_causal_mask=true)", text->bytes[text->length - 1] == '(' ? "" : ",");
    }
    return text->failed ? BW_RESOURCE_EXHAUSTED : BW_OK;
}

static bw_status make_layer(graph_reader *r, const level *l, entry *e)
{
    bwi_text text = {.ctx = r->k.ctx};
    char local[BWI_LOCAL_NAME];
    bwi_keras_local_name(local, l->prefix, e->name);
    bw_status status = bwi_keras_layer_text(&r->k, e->json, r->frozen, &text);
    if (status == BW_OK) {
        status = add_call_options(r, e, &text);
    }
    if (status == BW_OK) {
        e->layer = bwi_model_add_layer(r->model, text.bytes, local);
        status = e->layer >= 0 ? BW_OK : bwi_pending(r->k.ctx);
    }
    bwi_text_free(&text);
    if (status == BW_OK) {
        status = bwi_front_take_config(&r->k, &r->model->layers[e->layer], bwi_json_get(e->json, "config"));
    }
    return status;
}

/* Numbers and slices belong to the call, so each call of an operator becomes a separate operator here. */
static bw_status make_operator(graph_reader *r, const level *l, entry *e, const bw_node *first)
{
    bwi_layer layer;
    char local[BWI_LOCAL_NAME], number[96];
    bw_status status = bwi_keras_read_operator(&r->k, e->json, bwi_json_at(e->nodes, e->done), &first->shape, &layer);
    if (status != BW_OK) {
        return status;
    }
    bwi_keras_local_name(local, l->prefix, e->name);
    if (e->done) {
        snprintf(number, sizeof number, "%s:%d", local, e->done);
        bwi_keras_local_name(local, "", number);
    }
    memcpy(layer.name, local, sizeof layer.name);
    e->layer = bwi_model_append_layer(r->model, &layer);
    return e->layer >= 0 ? BW_OK : bwi_pending(r->k.ctx);
}

static bool has_mask(const bwi_json *node)
{
    static const char *const keys[] = {"mask", "query_mask", "value_mask", "key_mask"};
    tensors found = {.count = 0};
    for (size_t i = 0; i < BWI_COUNT(keys); i++) {
        bwi_graph_collect(bwi_json_get(bwi_json_get(node, "kwargs"), keys[i]), NULL, &found);
    }
    return found.count > 0;
}

static bool any_masked(const bw_model *model, const int *uses, int count)
{
    for (int i = 0; i < count; i++) {
        if (bwi_use_value(&model->uses[bwi_result_use(uses[i])], bwi_result_part(uses[i]))->mask) {
            return true;
        }
    }
    return false;
}

static bw_status call_level(graph_reader *r, level *l, const int *inputs, int count, int run_at, int *outputs);

/* Calls an entry on the values of other uses. Calls are counted, because a file of a few bytes could ask for any number of them. */
static bw_status call_entry(graph_reader *r, const level *l, entry *e, const int *uses, int count)
{
    bw_status status = BW_OK;
    int *use = &e->use[e->done * e->width];
    int run_at = l->run_at < 0 || e->run_at[e->done] < 0 ? -1 : l->run_at + e->run_at[e->done];
    if (++r->calls > MOST_CALLS) {
        return bwi_fail_file(r->k.ctx, BW_UNIMPLEMENTED, r->k.path, "%s: more than %d calls of layers", r->k.what, MOST_CALLS);
    }
    if (e->kind == NESTED) {
        return call_level(r, e->inner, uses, count, run_at, use);
    }
    if (e->kind == OPERATOR) {
        status = make_operator(r, l, e, bwi_use_value(&r->model->uses[bwi_result_use(uses[0])], bwi_result_part(uses[0])));
    } else if (e->layer < 0) {
        status = make_layer(r, l, e);
    }
    int made = status == BW_OK ? bwi_model_use(r->model, e->layer, uses, count) : -1;
    status = status == BW_OK && made < 0 ? bwi_pending(r->k.ctx) : status;
    if (status == BW_OK) {
        r->model->uses[made].run_at = run_at < 0 ? -1 : run_at + 1;
    }
    for (int part = 0; part < e->width && status == BW_OK; part++) {
        use[part] = part <= r->model->uses[made].parts.count ? bwi_result(made, part) : -1;
    }
    return status;
}

/* Makes a layer's nodes in their order, as long as their inputs exist. */
static bw_status advance(graph_reader *r, const level *l, entry *e, bool *moved)
{
    while (e->done < e->node_count) {
        int uses[BWI_MAX_HEADS], count;
        bool ready;
        const bwi_json *node = bwi_json_at(e->nodes, e->done);
        bwi_graph_begin_messages(r, l, e);
        bw_status status = find_inputs(r, l, e, node, uses, &count, &ready);
        if (status == BW_OK && !ready) {
            return BW_OK;
        }
        if (status == BW_OK && has_mask(node) && !any_masked(r->model, uses, count)) {
            status = bwi_keras_refuse(&r->k, "mask", bwi_json_get(bwi_json_get(node, "kwargs"), "mask"));
        }
        if (status == BW_OK) {
            status = call_entry(r, l, e, uses, count);
        }
        if (status != BW_OK) {
            return status;
        }
        e->done++;
        *moved = true;
    }
    return BW_OK;
}

static bw_status make_uses(graph_reader *r, level *l)
{
    bool moved = true;
    for (int pass = 0; pass < PASS_LIMIT && moved; pass++) {
        moved = false;
        for (int i = 0; i < l->count; i++) {
            entry *e = &l->entries[i];
            bw_status status = e->kind == INPUT || e->kind == MASK ? BW_OK : advance(r, l, e, &moved);
            if (status != BW_OK) {
                return status;
            }
        }
    }
    for (int i = 0; i < l->count; i++) {
        const entry *e = &l->entries[i];
        if (e->kind != INPUT && e->kind != MASK && e->done < e->node_count) {
            bwi_graph_begin_messages(r, l, e);
            return bwi_fail_file(r->k.ctx, BW_DATA_LOSS, r->k.path, "%s: its inputs do not precede it, or form a cycle", r->k.what);
        }
    }
    return BW_OK;
}

/* In a list of layers, each takes the output of the one before it. */
static bw_status make_list(graph_reader *r, level *l, int use)
{
    for (int i = 0; i < l->count; i++) {
        entry *e = &l->entries[i];
        if (e->kind == INPUT) {
            continue;
        }
        bwi_graph_begin_messages(r, l, e);
        bw_status status = call_entry(r, l, e, &use, 1);
        if (status != BW_OK) {
            return status;
        }
        use = e->use[0];
        e->done = 1;
    }
    return BW_OK;
}

static bw_status call_level(graph_reader *r, level *l, const int *inputs, int count, int run_at, int *outputs)
{
    if (count != l->input_count) {
        return bwi_fail_file(r->k.ctx, BW_DATA_LOSS, r->k.path, "%s: expected %d inputs, found %d", r->k.what, l->input_count,
                             count);
    }
    l->run_at = run_at;
    for (int i = 0; i < l->count; i++) {
        l->entries[i].done = 0;
    }
    for (int i = 0; i < count; i++) {
        l->inputs[i].from->use[0] = inputs[i];
    }
    bw_status status = l->list ? make_list(r, l, inputs[0]) : make_uses(r, l);
    for (int i = 0; i < l->output_count && status == BW_OK; i++) {
        outputs[i] = use_of(&l->outputs[i]);
        snprintf(r->k.what, sizeof r->k.what, "an output of the model");
        status = outputs[i] >= 0 ? BW_OK : fail_tensor(r);
    }
    return status;
}

/* ---- The model ---- */

static void count_takers(const level *l, const entry *input, int *indices, int *others);

static void count_taker(const entry *e, int index, int *indices, int *others)
{
    const bwi_layer_row *row = row_of(e);
    if (e->kind == NESTED) {
        const level *inner = e->inner;
        if (index < inner->input_count && inner->inputs[index].from->kind == INPUT) {
            count_takers(inner, inner->inputs[index].from, indices, others);
        } else if (inner->list && inner->count) {
            count_taker(&inner->entries[0], 0, indices, others);
        }
        return;
    }
    if (row && bwi_layer_front_kind(row)) {
        return; /* it works on the host, where a field is what it is */
    }
    *indices += row && (row->flags & BWI_LAYER_INDICES);
    *others += !(row && (row->flags & BWI_LAYER_INDICES));
}

/* Counts the layers that take an input as indices, and those that take it as numbers. */
static void count_takers(const level *l, const entry *input, int *indices, int *others)
{
    if (l->list) {
        for (int i = 0; i < l->count; i++) {
            if (l->entries[i].kind != INPUT) {
                count_taker(&l->entries[i], 0, indices, others);
                return;
            }
        }
        return;
    }
    for (int i = 0; i < l->count; i++) {
        const entry *e = &l->entries[i];
        for (int n = 0; e->kind != MASK && e->kind != INPUT && n < e->node_count; n++) {
            tensors found;
            collect_inputs(e, bwi_json_at(e->nodes, n), &found);
            for (int t = 0; t < found.count; t++) {
                if (entry_of(l, found.at[t]) == input) {
                    int index = e->kind == NESTED ? input_index(e->inner, found.key[t], t) : t;
                    count_taker(e, index < 0 ? 0 : index, indices, others);
                }
            }
        }
    }
}

/* The input's shape is in the input layer; if a list has none, it is in the configuration or in the first nested model. */
static const bwi_json *shape_of(const level *l, const bwi_json *json, const entry *e)
{
    const bwi_json *shape = bwi_keras_shape_of(bwi_json_get(e->json, "config"));
    if (bwi_json_kind_of(shape) != BWI_JSON_LIST) {
        shape = bwi_json_get(l->config, "build_input_shape");
    }
    if (bwi_json_kind_of(shape) != BWI_JSON_LIST) {
        shape = bwi_json_get(bwi_json_get(json, "build_config"), "input_shape");
    }
    if (bwi_json_kind_of(shape) != BWI_JSON_LIST && l->list && l->count && l->entries[0].inner) {
        const level *inner = l->entries[0].inner;
        return inner->input_count == 1 ? shape_of(inner, l->entries[0].json, inner->inputs[0].from) : shape;
    }
    return shape;
}

/* Makes an input of the model. Its type follows from the layers that take it, at this level and at others. */
static bw_status make_input(graph_reader *r, const level *l, const bwi_json *json, int number, int *use)
{
    const end *at = &l->inputs[number];
    const bwi_json *config = bwi_json_get(at->from->json, "config");
    bwi_shape shape;
    char local[BWI_LOCAL_NAME];
    int indices = 0, others = 0;
    bwi_keras_local_name(local, "", at->from->json ? at->key : "input_layer");
    snprintf(r->k.what, sizeof r->k.what, "layer %s", local);
    bw_status status = bwi_keras_check_input(&r->k, config);
    if (status == BW_OK) {
        status = bwi_keras_input_shape(&r->k, shape_of(l, json, at->from), &shape);
    }
    count_takers(l, at->from, &indices, &others);
    bool text = bwi_keras_is_text(config);
    if (status == BW_OK && text && (indices || others)) {
        status = bwi_keras_refuse(&r->k, "dtype", bwi_json_get(config, "dtype"));
    }
    if (status == BW_OK && indices && others && !text) {
        status = bwi_fail_file(r->k.ctx, BW_UNIMPLEMENTED, r->k.path,
                               "input %s: both indices of an embedding and numbers of other layers are not supported", local);
    }
    if (status == BW_OK) {
        const bw_node *node = bw_input(r->model, local, text ? BW_TEXT : indices ? BW_I32 : BW_F32, shape.ndim, shape.extent);
        status = node ? BW_OK : bwi_pending(r->k.ctx);
        *use = bwi_result(r->model->use_count - 1, 0);
    }
    return status;
}

/* A file may have its layers in any order, so all are read first, and then connected, beginning at the inputs. */
static bw_status make_model(graph_reader *r, level *l, const bwi_json *json)
{
    int inputs[BWI_MAX_HEADS], outputs[BWI_MAX_HEADS];
    bw_status status = BW_OK;
    for (int i = 0; i < l->input_count && status == BW_OK; i++) {
        status = make_input(r, l, json, i, &inputs[i]);
    }
    if (status == BW_OK) {
        status = call_level(r, l, inputs, l->input_count, 0, outputs);
    }
    for (int i = 0; i < l->output_count && status == BW_OK; i++) {
        char local[BWI_LOCAL_NAME];
        bwi_keras_local_name(local, "", l->outputs[i].key);
        const bwi_use *use = &r->model->uses[bwi_result_use(outputs[i])];
        status = bwi_model_output(bwi_use_value(use, bwi_result_part(outputs[i])), local);
    }
    if (status == BW_OK) {
        r->model->stored = bwi_allocate(r->k.ctx, (size_t)r->model->layer_count + 1, sizeof *r->model->stored);
        status = r->model->stored ? bwi_graph_places(r, l, "", -1) : BW_RESOURCE_EXHAUSTED;
    }
    return status;
}

bw_status bwi_keras_read_graph(bw_model *model, const bwi_keras *k, const bwi_json *json, bool frozen)
{
    int first = -1;
    graph_reader r = {.k = *k, .model = model, .frozen = frozen, .first = {.name = "input_layer", .kind = INPUT, .use = &first}};
    level *top = NULL;
    bw_status status = bwi_graph_open(&r, &top, json, "");
    if (status == BW_OK) {
        status = bwi_graph_order(&r, top);
    }
    if (status == BW_OK) {
        status = make_model(&r, top, json);
    }
    bwi_graph_close(&r, top);
    return status;
}
