/* Reads models from expressions: a list of layers that becomes a graph with variables when the input's shape is known. */
#include "layer/internal.h"

#include <string.h>

/* What training keeps refers to the graph, so it goes first. */
static void destroy(bwi_owned *object)
{
    bw_model *model = (bw_model *)(void *)object;
    if (model->training_destroy) {
        model->training_destroy(model->training);
    }
    bwi_wiring_forget(model);
    bwi_release(model->ctx, model->wiring);
    bwi_graph_free(&model->graph);
    for (int i = 0; i < model->layer_count; i++) {
        bwi_front_free(model->layers[i].front);
    }
    while (model->inner) {
        bwi_layer *next = model->inner->next;
        bwi_release(model->ctx, model->inner);
        model->inner = next;
    }
    bwi_release(model->ctx, model->layers);
    bwi_release(model->ctx, model->uses);
    bwi_release(model->ctx, model->expression);
    bwi_release(model->ctx, model->name);
    bwi_release(model->ctx, model->config);
    bwi_release(model->ctx, model->stored);
}

void bw_model_free(bw_model *model)
{
    bwi_disown(model);
}

bool bwi_model_built(const bw_model *model)
{
    return model->initialized;
}

/* ---- Reading ---- */

static bool labelled(const bwi_term *term, const char *name)
{
    return term->label && strlen(name) == (size_t)term->label_length && memcmp(term->label, name, (size_t)term->label_length) == 0;
}

/* Reads the shape of one sample, as numbers or as a list of them. If `batched`, it follows Keras's None, which stands for the
 * batch. */
static bw_status read_shape(bw_model *model, bwi_term *items, int count, const bwi_term *at, bool batched)
{
    static const bwi_argument extents = {"shape", NULL, BWI_INTS, NULL, 1, 1e9, NULL};
    bwi_argument_value value;
    bwi_term list = {.items = items, .count = count, .argument = at->argument, .column = at->column};
    if (batched && count == 1 && items[0].length == 0 && items[0].count > 0 && bwi_term_is_none(&items[0].items[0])) {
        list.items = items[0].items + 1;
        list.count = items[0].count - 1;
    }
    bwi_term one = {.items = &list, .count = 1, .argument = at->argument, .column = at->column};
    bw_status status = bwi_arguments_read(model->ctx, "model: input", &one, &extents, 1, &value);
    if (status == BW_OK && (value.count < 1 || value.count >= BW_MAX_NDIM)) {
        status = bwi_fail_text(model->ctx, BW_INVALID_ARGUMENT, "model", at->argument, at->column,
                               "input: expected 1 to %d extents, got %d", BW_MAX_NDIM - 1, value.count);
    }
    bwi_shape shape = {.ndim = value.count};
    if (status == BW_OK) {
        memcpy(shape.extent, value.integers, sizeof value.integers);
    }
    if (status == BW_OK && model->input_shape.ndim >= 0 && !bwi_shape_equal(&shape, &model->input_shape)) {
        status = bwi_fail_text(model->ctx, BW_INVALID_ARGUMENT, "model", at->argument, at->column,
                               "the input has another shape already");
    }
    model->input_shape = status == BW_OK ? shape : model->input_shape;
    return status;
}

/* Reads input(28,28,1), or Keras's Input(shape=(28, 28, 1), name="x"), whose other arguments have no effect here. */
static bw_status read_input(bw_model *model, const bwi_term *term)
{
    static const char *const shapes[] = {"shape", "input_shape", "batch_shape", "batch_input_shape"};
    static const char *const passed[] = {"name", "dtype", "batch_size"};
    int bare = 0;
    bool shaped = false;
    bw_status status = BW_OK;
    while (bare < term->count && !term->items[bare].label) {
        bare++;
    }
    for (int i = bare; i < term->count && status == BW_OK; i++) {
        const bwi_term *item = &term->items[i];
        bool known = false, shape = false;
        for (size_t k = 0; k < BWI_COUNT(shapes); k++) {
            shape = shape || labelled(item, shapes[k]);
        }
        for (size_t k = 0; k < BWI_COUNT(passed); k++) {
            known = known || labelled(item, passed[k]);
        }
        shaped = shaped || shape;
        if (shape) {
            bwi_term value = *item;
            value.label = NULL;
            status = read_shape(model, &value, 1, item, true);
        } else if (!known) {
            status = bwi_fail_text(model->ctx, BW_INVALID_ARGUMENT, "model: input", item->argument, item->column,
                                   "expected its shape, as in input(28,28,1)");
        }
    }
    return status == BW_OK && (bare > 0 || !shaped) ? read_shape(model, term->items, bare, term, false) : status;
}

/* Keras numbers layers of the same kind: conv2d, conv2d_1, ... */
static void name_layer(const bw_model *model, bwi_layer *layer)
{
    int same = 0;
    for (int i = 0; i < model->layer_count; i++) {
        same += strcmp(model->layers[i].row->base_name, layer->row->base_name) == 0;
    }
    if (same) {
        snprintf(layer->name, sizeof layer->name, "%s_%d", layer->row->base_name, same);
    } else {
        snprintf(layer->name, sizeof layer->name, "%s", layer->row->base_name);
    }
}

/* Reads a name that the user chose, which every layer of Keras accepts. */
static bw_status read_name(const bw_model *model, bwi_layer *layer, const bwi_term *item)
{
    if (item->called || item->length == 0 || item->count || item->length >= (int)sizeof layer->name ||
        memchr(item->text, '/', (size_t)item->length)) {
        return bwi_fail_text(model->ctx, BW_INVALID_ARGUMENT, "model", item->argument, item->column,
                             "name: expected a word of at most %d characters", (int)sizeof layer->name - 1);
    }
    snprintf(layer->name, sizeof layer->name, "%.*s", item->length, item->text);
    for (int i = 0; i < model->layer_count; i++) {
        if (strcmp(model->layers[i].name, layer->name) == 0) {
            return bwi_fail_text(model->ctx, BW_INVALID_ARGUMENT, "model", item->argument, item->column,
                                 "there is already a layer %s", layer->name);
        }
    }
    return BW_OK;
}

static bool is_argument(const bwi_layer_row *row, const bwi_term *item)
{
    for (int i = 0; i < row->argument_count; i++) {
        if (labelled(item, row->arguments[i].name)) {
            return true;
        }
    }
    return false;
}

/* Accepts arguments of Keras's layers that have the value at which they have no effect. */
static bw_status read_neutral(const bw_model *model, const bwi_layer_row *row, const bwi_term *item, bool *taken)
{
    static const struct {
        const char *name, *value; /* NULL: None only */
    } neutral[] = {{"data_format", "channels_last"}, {"dtype", "float32"}, {"noise_shape", NULL}, {"synchronized", "False"}};
    for (size_t i = 0; i < BWI_COUNT(neutral); i++) {
        if (!labelled(item, neutral[i].name) || is_argument(row, item)) {
            continue;
        }
        *taken = true;
        if (bwi_term_is_none(item) || (neutral[i].value && bwi_term_resembles(item, neutral[i].value))) {
            return BW_OK;
        }
        return bwi_fail_text(model->ctx, BW_UNIMPLEMENTED, "model", item->argument, item->column,
                             "%s: only %s is supported, found '%.*s'", neutral[i].name,
                             neutral[i].value ? neutral[i].value : "None", item->length > 0 ? item->length : 1,
                             item->length > 0 ? item->text : "(");
    }
    return BW_OK;
}

static bw_status keep_text(const bw_model *model, const bwi_term *item, char text[BWI_PENALTY_TEXT])
{
    if (item->length == 0 || item->end - item->text >= BWI_PENALTY_TEXT) {
        return bwi_fail_text(model->ctx, BW_INVALID_ARGUMENT, "model", item->argument, item->column,
                             "%.*s: expected a name or a call", item->label_length, item->label);
    }
    snprintf(text, BWI_PENALTY_TEXT, "%.*s", (int)(item->end - item->text), item->text);
    return BW_OK;
}

/* Constraints, of every variable that has an initializer, and a penalty on the layer's values. */
static bw_status read_penalty(const bw_model *model, bwi_layer *layer, const bwi_term *item, bool *taken)
{
    char name[sizeof layer->constraints[0].name];
    snprintf(name, sizeof name, "%.*s", item->label_length, item->label);
    bool activity = labelled(item, "activity_regularizer") && !(layer->row->flags & BWI_LAYER_OPERATOR);
    if (!activity && !bwi_constraint_is_argument(layer->row->arguments, layer->row->argument_count, name)) {
        return BW_OK;
    }
    *taken = true;
    if (bwi_term_is_none(item)) {
        return BW_OK;
    }
    if (activity && (layer->row->flags & BWI_LAYER_ATTENDS)) { /* Keras adds it for each of the layers within it, too */
        return bwi_fail_text(model->ctx, BW_UNIMPLEMENTED, "model", item->argument, item->column,
                             "activity_regularizer of attention is not supported");
    }
    if (activity) {
        return keep_text(model, item, layer->activity);
    }
    if (layer->constraint_count == BWI_MAX_CONSTRAINTS) {
        return bwi_fail_text(model->ctx, BW_INVALID_ARGUMENT, "model", item->argument, item->column, "at most %d constraints",
                             BWI_MAX_CONSTRAINTS);
    }
    snprintf(layer->constraints[layer->constraint_count].name, sizeof name, "%s", name);
    return keep_text(model, item, layer->constraints[layer->constraint_count++].text);
}

/* `trainable` and `name` are arguments of every layer. For a merging layer, words by position are points, not arguments. */
static bw_status read_common(const bw_model *model, bwi_layer *layer, const bwi_term *item, bool *taken)
{
    static const bwi_argument trainable = {"trainable", NULL, BWI_BOOL, NULL, 0, 0, NULL};
    *taken = (layer->row->flags & BWI_LAYER_MERGES) && !item->label;
    if (labelled(item, "name")) {
        *taken = true;
        return read_name(model, layer, item);
    }
    if (!labelled(item, "trainable")) {
        bw_status status = item->label ? read_penalty(model, layer, item, taken) : BW_OK;
        return status == BW_OK && item->label && !*taken ? read_neutral(model, layer->row, item, taken) : status;
    }
    bwi_argument_value value;
    bwi_term one = {.items = (bwi_term[]){*item}, .count = 1, .argument = item->argument, .column = item->column};
    *taken = true;
    bw_status status = bwi_arguments_read(model->ctx, "model", &one, &trainable, 1, &value);
    layer->trainable = value.flag;
    return status;
}

/* Whether an argument by position of a merging layer is not a point: Concatenate(1). */
static bool is_axis(const bwi_layer_row *row, const bwi_term *item)
{
    int64_t axis;
    return row->argument_count > 0 && !item->label &&
           (item->length == 0 || bwi_parse_int(item->text, item->text + item->length, &axis));
}

/* A layer named by Keras's class has its arguments in Keras's order, so those by position get their names here. For a merging
 * layer, words are points, and `position` counts the others. */
static bwi_term in_keras_order(const bwi_layer_row *row, const bwi_term *term, const bwi_term *item, int position)
{
    bwi_term named = *item;
    const char *order = bwi_layer_is_class(term) ? bwi_layer_order(row) : NULL;
    bool merges = row->flags & BWI_LAYER_MERGES;
    if (item->label || !(order || (merges && is_axis(row, item)))) {
        return named;
    }
    if (merges) {
        named.label = position < row->argument_count ? row->arguments[position].name : NULL;
        named.label_length = named.label ? (int)strlen(named.label) : 0;
        named.label_column = item->column;
        return named;
    }
    for (; position > 0 && *order; position--) {
        order += strcspn(order, " ");
        order += strspn(order, " ");
    }
    if (*order) {
        named.label = order;
        named.label_length = (int)strcspn(order, " ");
        named.label_column = item->column;
    }
    return named;
}

/* Reads a layer within another one: the first by position, all those of a stack of cells, or one by name. Recursion is safe,
 * because the parser bounds the depth. */
static bw_status read_inner(bw_model *model, bwi_layer *layer, const bwi_term *item, int position, bool *taken)
{
    bool second = labelled(item, "backward_layer") && strcmp(layer->row->class_name, "Bidirectional") == 0;
    bool stack = layer->row == &bwi_layer_stacked_rnn_cells;
    *taken = (layer->row->flags & BWI_LAYER_WRAPS) &&
             (second || labelled(item, "layer") || labelled(item, "cell") || (!item->label && (position == 0 || stack)));
    if (!*taken) {
        return BW_OK;
    }
    bwi_layer *inner = bwi_allocate(model->ctx, 1, sizeof *inner);
    bwi_term term = *item;
    term.label = NULL;
    bw_status status = inner ? bwi_layer_read(model, inner, &term) : BW_RESOURCE_EXHAUSTED;
    if (status == BW_OK && inner->activity[0]) {
        status = bwi_fail_text(model->ctx, BW_UNIMPLEMENTED, "model", item->argument, item->column,
                               "activity_regularizer of a layer within another one is not supported");
    }
    if (status != BW_OK) {
        bwi_release(model->ctx, inner);
        return status;
    }
    inner->next = model->inner;
    model->inner = inner;
    bwi_layer **to = &layer->inner[second];
    while (stack && *to) {
        to = &(*to)->above;
    }
    *to = inner;
    return BW_OK;
}

/* Whether the item names the point whose states a recurrent layer begins with. */
static bool is_initial_state(const bwi_layer_row *row, const bwi_term *item)
{
    return (row->flags & BWI_LAYER_STATES) && labelled(item, "initial_state");
}

bw_status bwi_layer_read(bw_model *model, bwi_layer *layer, const bwi_term *term)
{
    bw_context *ctx = model->ctx;
    const bwi_layer_row *row = bwi_layer_row_find(term);
    if (!row) {
        return bwi_layer_row_refuse(ctx, term);
    }
    *layer = (bwi_layer){.row = row, .trainable = true};
    name_layer(model, layer);
    bwi_term own = *term;
    own.items = bwi_allocate(ctx, (size_t)term->count, sizeof *own.items);
    own.count = 0;
    bw_status status = own.items ? BW_OK : BW_RESOURCE_EXHAUSTED;
    int numbers = 0;
    for (int i = 0; i < term->count && status == BW_OK; i++) {
        bool taken;
        bool number = (row->flags & BWI_LAYER_MERGES) && is_axis(row, &term->items[i]);
        bwi_term item = in_keras_order(row, term, &term->items[i], row->flags & BWI_LAYER_MERGES ? numbers : i);
        numbers += number;
        status = read_inner(model, layer, &item, i, &taken);
        taken = taken || bwi_front_is_list(row, &item) || is_initial_state(row, &item);
        if (status == BW_OK && !taken) {
            status = read_common(model, layer, &item, &taken);
        }
        if (!taken) {
            own.items[own.count++] = item;
        }
    }
    if (status == BW_OK) {
        char what[96];
        snprintf(what, sizeof what, "model: %s", row->base_name);
        status = bwi_arguments_read(ctx, what, &own, row->arguments, row->argument_count, layer->values);
    }
    bwi_release(ctx, own.items);
    if (status == BW_OK && (row->flags & BWI_LAYER_WRAPS) && !layer->inner[0]) {
        status = bwi_fail_text(ctx, BW_INVALID_ARGUMENT, "model", term->argument, term->column,
                               "%s: expected a layer within it, as in bidirectional(lstm(64))", row->base_name);
    }
    return status == BW_OK ? bwi_layer_open_front(ctx, layer, term) : status;
}

/* ---- Points ---- */

/* The state of reading an expression: what each of its terms stands for, and what the next layer takes. */
typedef struct reading {
    bw_model *model;
    bwi_expression e;
    const bwi_term **terms; /* terms of layers, in the expression or in the lists in it */
    int count, capacity;
    int *layer;  /* of each term: its layer; BWI_FROM_INPUT: the model's input */
    int current; /* layer that the next one takes */
} reading;

static bool ends_with(const bwi_term *term, const char *end)
{
    int length = (int)strlen(end);
    return term->length > length && memcmp(term->text + term->length - length, end, (size_t)length) == 0;
}

/* Sequential([...]), a list of layers, and x.add(layer) stand for the layers that they contain. */
static bool holds_layers(const bwi_term *term)
{
    bool list = term->length == 0 && !term->label;
    return list || (term->called && (bwi_term_is(term, "Sequential") || ends_with(term, ".add")));
}

/* Recursion is safe, because the parser bounds the depth. */
static bw_status collect_terms(reading *r, const bwi_term *items, int count)
{
    bw_status status = BW_OK;
    for (int i = 0; i < count && status == BW_OK; i++) {
        if (holds_layers(&items[i])) {
            status = collect_terms(r, items[i].items, items[i].count);
            continue;
        }
        if (labelled(&items[i], "name") && !items[i].called && items != r->e.terms) {
            continue; /* arguments of Sequential itself */
        }
        if (r->count == BWI_MOST_LAYERS) {
            return bwi_fail_text(r->model->ctx, BW_UNIMPLEMENTED, "model", items[i].argument, items[i].column,
                                 "at most %d layers are possible", BWI_MOST_LAYERS);
        }
        if (r->count == r->capacity) {
            int larger = r->capacity ? 2 * r->capacity : 16;
            const bwi_term **grown =
                bwi_grow(r->model->ctx, (void *)r->terms, (size_t)r->capacity, (size_t)larger, sizeof *r->terms);
            if (!grown) {
                return BW_RESOURCE_EXHAUSTED;
            }
            r->terms = grown;
            r->capacity = larger;
        }
        r->terms[r->count++] = &items[i];
    }
    return status;
}

/* Finds the layer that a point names. The search begins at the last one, because a name may be used again; `input` always
 * exists. */
static bw_status find_point(const reading *r, int before, const bwi_term *word, int *layer)
{
    for (int t = before - 1; t >= 0 && !word->label; t--) {
        const bwi_term *term = r->terms[t];
        if (term->label && term->label_length == word->length && memcmp(term->label, word->text, (size_t)word->length) == 0) {
            *layer = r->layer[t];
            return BW_OK;
        }
    }
    if (bwi_term_is(word, "input") && !word->called && !word->label) {
        *layer = BWI_FROM_INPUT;
        return BW_OK;
    }
    return bwi_fail_text(r->model->ctx, BW_INVALID_ARGUMENT, "model", word->argument, word->column,
                         "there is no point '%.*s' before it", word->length, word->text);
}

/* After from(a), the next layer takes the output at point a. */
static bw_status read_from(reading *r, int number)
{
    const bwi_term *term = r->terms[number];
    if (term->count != 1) {
        return bwi_fail_text(r->model->ctx, BW_INVALID_ARGUMENT, "model", term->argument, term->column,
                             "from: expected one point, as in from(a)");
    }
    return find_point(r, number, &term->items[0], &r->current);
}

/* The states of the layer at a point are the last of what it gives beside its output. */
static bw_status connect_states(const reading *r, int number, const bwi_term *item)
{
    bwi_layer *layer = &r->model->layers[r->model->layer_count];
    bwi_term word = *item;
    int from = BWI_FROM_INPUT;
    word.label = NULL;
    bw_status status = find_point(r, number, &word, &from);
    if (status != BW_OK) {
        return status;
    }
    const bwi_layer *given = from >= 0 ? &r->model->layers[from] : NULL;
    int parts = given ? bwi_layer_parts(given) : 0, states = given ? bwi_layer_states(given) : 0;
    if (parts < states || states == 0 || states != bwi_layer_states(layer)) {
        return bwi_fail_text(r->model->ctx, BW_INVALID_ARGUMENT, "model", item->argument, item->column,
                             "initial_state: expected the point of a layer with return_state=true and %d states, %s gives %d",
                             bwi_layer_states(layer), given ? given->name : "the input", parts < states ? 0 : states);
    }
    for (int i = 0; i < states && layer->inputs < BWI_MAX_POINTS; i++) {
        layer->part[layer->inputs] = parts - states + 1 + i;
        layer->input[layer->inputs++] = from;
    }
    return BW_OK;
}

/* Finds where the layer's inputs come from: the current value, then the points that the term names. */
static bw_status connect(reading *r, int number)
{
    const bwi_term *term = r->terms[number];
    bwi_layer *layer = &r->model->layers[r->model->layer_count];
    bw_status status = BW_OK;
    layer->inputs = 1;
    layer->input[0] = r->current;
    for (int i = 0; i < term->count && status == BW_OK; i++) {
        status = is_initial_state(layer->row, &term->items[i]) ? connect_states(r, number, &term->items[i]) : BW_OK;
    }
    for (int i = 0; (layer->row->flags & BWI_LAYER_MERGES) && i < term->count && status == BW_OK; i++) {
        const bwi_term *item = &term->items[i];
        if (item->label || is_axis(layer->row, item)) {
            continue;
        }
        if (layer->inputs == BWI_MAX_POINTS) {
            return bwi_fail_text(r->model->ctx, BW_INVALID_ARGUMENT, "model", item->argument, item->column,
                                 "a layer takes at most %d inputs", BWI_MAX_POINTS);
        }
        status = find_point(r, number, item, &layer->input[layer->inputs++]);
    }
    return status;
}

/* Another layer must take each layer's output, or it must be the model's, because from() can leave a layer unused. */
static bw_status check_ends(const reading *r)
{
    const bw_model *model = r->model;
    for (int t = 0; t < r->count; t++) {
        bool taken = r->layer[t] == BWI_FROM_INPUT || r->layer[t] == model->layer_count - 1;
        for (int i = r->layer[t] + 1; i < model->layer_count && !taken; i++) {
            for (int k = 0; k < model->layers[i].inputs; k++) {
                taken = taken || model->layers[i].input[k] == r->layer[t];
            }
        }
        if (!taken) {
            return bwi_fail_text(model->ctx, BW_INVALID_ARGUMENT, "model", r->terms[t]->argument, r->terms[t]->column,
                                 "the output of %s is not used", model->layers[r->layer[t]].name);
        }
    }
    return BW_OK;
}

/* Older Keras programs give the input's shape to the first layer. */
static bool is_input_shape(const bwi_layer_row *row, const bwi_term *item)
{
    static const char *const names[] = {"input_shape", "batch_input_shape", "input_dim", "input_length"};
    for (size_t i = 0; row && i < BWI_COUNT(names); i++) {
        if (labelled(item, names[i])) {
            return !is_argument(row, item);
        }
    }
    return false;
}

/* The input's shape goes to the model, and all other arguments go to the layer. */
static bw_status read_layer(reading *r, int number)
{
    bw_model *model = r->model;
    const bwi_layer_row *row = bwi_layer_row_find(r->terms[number]);
    bwi_term term = *r->terms[number];
    term.items = bwi_allocate(model->ctx, (size_t)term.count, sizeof *term.items);
    term.count = 0;
    bw_status status = term.items ? BW_OK : BW_RESOURCE_EXHAUSTED;
    for (int i = 0; i < r->terms[number]->count && status == BW_OK; i++) {
        bwi_term item = r->terms[number]->items[i];
        if (!is_input_shape(row, &item)) {
            term.items[term.count++] = item;
            continue;
        }
        if (model->layer_count > 0) {
            status = bwi_fail_text(model->ctx, BW_INVALID_ARGUMENT, "model", item.argument, item.label_column,
                                   "%.*s stands at the first layer only", item.label_length, item.label);
        } else {
            item.label = NULL;
            status = read_shape(model, &item, 1, &r->terms[number]->items[i], true);
        }
    }
    if (status == BW_OK) {
        status = bwi_layer_read(model, &model->layers[model->layer_count], &term);
    }
    bwi_release(model->ctx, term.items);
    return status;
}

/* A term is the input, a return to a point, or a layer; each changes what the next layer takes. */
static bw_status read_term(reading *r, int number)
{
    bw_model *model = r->model;
    const bwi_term *term = r->terms[number];
    bw_status status;
    if (number == 0 && bwi_term_resembles_any(term, "input input_layer")) {
        status = read_input(model, term);
    } else if (bwi_term_resembles_any(term, "input input_layer")) {
        status = bwi_fail_text(model->ctx, BW_INVALID_ARGUMENT, "model", term->argument, term->column,
                               "%.*s stands before all layers only", term->length, term->text);
    } else if (bwi_term_is(term, "from")) {
        status = read_from(r, number);
    } else {
        status = read_layer(r, number);
        if (status == BW_OK) {
            status = connect(r, number);
        }
        if (status == BW_OK) {
            r->current = model->layer_count++;
        }
    }
    r->layer[number] = r->current;
    return status;
}

static bw_status read_terms(reading *r)
{
    bw_model *model = r->model;
    bw_status status = collect_terms(r, r->e.terms, r->e.count);
    model->layers = bwi_allocate(model->ctx, (size_t)r->count, sizeof *model->layers);
    r->layer = bwi_allocate(model->ctx, (size_t)r->count, sizeof *r->layer);
    status = model->layers && r->layer ? status : BW_RESOURCE_EXHAUSTED;
    for (int i = 0; i < r->count && status == BW_OK; i++) {
        status = read_term(r, i);
    }
    if (status == BW_OK && model->layer_count == 0) {
        status = bwi_fail(model->ctx, BW_INVALID_ARGUMENT, "model: expected at least one layer, found none");
    }
    return status == BW_OK ? check_ends(r) : status;
}

static bw_status read_model(bw_model *model, const char *text)
{
    reading r = {.model = model, .current = BWI_FROM_INPUT};
    bw_status status = bwi_expression_parse(model->ctx, &r.e, "model", text);
    if (status == BW_OK) {
        status = read_terms(&r);
        bwi_release(model->ctx, r.layer);
        bwi_release(model->ctx, (void *)r.terms);
        bwi_expression_free(&r.e);
    }
    return status;
}

bw_model *bwi_model_open(bw_context *ctx)
{
    bw_model *model = bwi_own(ctx, sizeof *model, destroy);
    if (model) {
        model->ctx = model->graph.ctx = ctx;
        model->input_shape.ndim = -1;
        model->wiring = bwi_allocate(ctx, 1, sizeof *model->wiring);
    }
    if (model && !model->wiring) {
        bwi_disown(model);
        return bwi_pass_on(ctx);
    }
    return model;
}

bw_model *bw_model_parse(bw_context *ctx, const char *expression)
{
    bw_model *model = ctx && expression ? bwi_model_open(ctx) : NULL;
    if (!model) {
        return NULL;
    }
    if (read_model(model, expression) != BW_OK) {
        bwi_disown(model);
        return bwi_pass_on(ctx);
    }
    return model;
}
