/*
 * Writes a model as an expression: its layers in the order of their uses, each with the arguments that differ from their defaults,
 * by position as long as none is skipped. A layer takes the output of the one before it, or from(point); a merging layer names its
 * further inputs. Points are the letters a, b, ...; the model's input is the point `input`.
 */
#include "file/internal.h"

#include <string.h>

typedef struct writer {
    bw_context *ctx;
    const bw_model *model;
    bwi_use *uses; /* the first one is the input */
    int use_count;
    int *point; /* of each use: number of its letter, from 1; 0: no other use names it */
    bwi_text text;
} writer;

/* ---- What can be written ---- */

static bw_status refuse(const writer *w, const char *reason, const char *name)
{
    return bwi_fail(w->ctx, BW_UNIMPLEMENTED, "the model cannot be written as an expression: %s%s", reason, name);
}

/* A recurrent layer can begin with the states of one other, all of them and in their order. */
static bool check_parts(const writer *w, const bwi_use *u)
{
    const bwi_layer *layer = &w->model->layers[u->layer];
    if (!(layer->row->flags & BWI_LAYER_STATES) || u->inputs == 1) {
        for (int k = 0; k < u->inputs; k++) {
            if (u->part[k]) {
                return false;
            }
        }
        return true;
    }
    int from = w->uses[u->input[1]].layer, states = u->inputs - 1;
    bool all = u->part[0] == 0 && from >= 0 && bwi_layer_states(&w->model->layers[from]) == states;
    for (int k = 1; k < u->inputs && all; k++) {
        all = u->input[k] == u->input[1] && u->part[k] == bwi_layer_parts(&w->model->layers[from]) - states + k;
    }
    return all;
}

/* What an expression can say of one use of a layer. */
static bw_status check_use(const writer *w, int use)
{
    const bwi_use *u = &w->uses[use];
    if (u->layer < 0) {
        return refuse(w, "it has several inputs", "");
    }
    const bwi_layer *layer = &w->model->layers[u->layer];
    if (layer->row->flags & BWI_LAYER_OPERATOR) {
        return refuse(w, "it has an operator: ", layer->name);
    }
    for (int v = 1; v < use; v++) {
        if (w->uses[v].layer == u->layer) {
            return refuse(w, "it uses a layer more than once: ", layer->name);
        }
    }
    for (int k = 0; k < u->inputs; k++) {
        if (u->input[k] < 0) {
            return refuse(w, "an operator precedes layer ", layer->name);
        }
    }
    return check_parts(w, u) ? BW_OK
                             : refuse(w, "beside other layers' outputs it takes more than all states of one: ", layer->name);
}

/* Whether another layer takes the use's values, or they are the output. */
static bool is_taken(const writer *w, int use)
{
    bool taken = use + 1 == w->use_count;
    for (int v = use + 1; v < w->use_count; v++) {
        for (int k = 0; k < w->uses[v].inputs; k++) {
            taken = taken || w->uses[v].input[k] == use;
        }
    }
    return taken;
}

static bw_status check_ends(const writer *w)
{
    const bw_model *model = w->model;
    if (model->by_calls && (model->input_count != 1 || model->output_count != 1)) {
        return refuse(w, "it has several inputs or outputs", "");
    }
    if (model->loss_count) {
        return refuse(w, "it has a custom loss", "");
    }
    if (model->by_calls && (w->use_count < 2 || w->uses[0].layer >= 0 || w->uses[w->use_count - 1].node != model->outputs[0])) {
        return refuse(w, "its output is not its last layer's", "");
    }
    return BW_OK;
}

static bw_status check(const writer *w)
{
    bw_status status = check_ends(w);
    for (int u = 1; u < w->use_count && status == BW_OK; u++) {
        status = check_use(w, u);
        if (status == BW_OK && !is_taken(w, u)) {
            status = refuse(w, "the output of a layer is not used: ", w->model->layers[w->uses[u].layer].name);
        }
    }
    return status;
}

/* ---- Points ---- */

static void number_points(writer *w)
{
    int points = 0;
    for (int u = 1; u < w->use_count; u++) {
        for (int k = 0; k < w->uses[u].inputs; k++) {
            int from = w->uses[u].input[k];
            if (k > 0 || from != u - 1) {
                w->point[from] = 1; /* replaced by a number in the order of uses */
            }
        }
    }
    for (int u = 1; u < w->use_count; u++) {
        w->point[u] = w->point[u] ? ++points : 0;
    }
}

/* Points are named a to z, then a1 to z1, and so on. */
static const char *point_name(const writer *w, int use, char name[16])
{
    int number = w->point[use] - 1;
    if (use == 0) {
        return "input";
    }
    snprintf(name, 16, number < 26 ? "%c" : "%c%d", 'a' + number % 26, number / 26);
    return name;
}

/* ---- Arguments ---- */

/* Extents in two directions may be written as one number if they are equal. */
static bool is_pair(const bwi_argument *a)
{
    static const char *const names[] = {"kernel_size", "strides", "dilation_rate", "pool_size", "size"};
    for (size_t i = 0; i < BWI_COUNT(names); i++) {
        if (strcmp(a->name, names[i]) == 0) {
            return a->kind == BWI_INTS;
        }
    }
    return false;
}

static bwi_argument_value simplified(const bwi_argument *a, const bwi_argument_value *value)
{
    bwi_argument_value simple = *value;
    if (is_pair(a) && simple.count == 2 && simple.integers[0] == simple.integers[1]) {
        simple.count = 1;
        simple.integers[1] = 0;
    }
    return simple;
}

static bool same_integers(const bwi_argument_value *a, const bwi_argument_value *b)
{
    return a->count == b->count && memcmp(a->integers, b->integers, sizeof a->integers) == 0;
}

/* The default stride of a pooling layer is its size; files always state it. */
static bool moves_by_size(const bwi_layer *layer, int argument, const bwi_argument_value *value)
{
    const bwi_argument *arguments = layer->row->arguments;
    if (strcmp(arguments[argument].name, "strides") != 0 || strcmp(arguments[0].name, "pool_size") != 0) {
        return false;
    }
    bwi_argument_value size = simplified(&arguments[0], &layer->values[0]);
    return same_integers(value, &size);
}

static void put_number(bwi_text *text, double value)
{
    char shortest[40];
    for (int digits = 1; digits <= 17; digits++) {
        double back;
        bwi_print(shortest, sizeof shortest, "%.*g", digits, value);
        if (bwi_parse_double(shortest, shortest + strlen(shortest), &back) && back == value) {
            break;
        }
    }
    bwi_text_add(text, "%s", shortest);
}

static void put_integers(bwi_text *text, const bwi_argument_value *value, bool bare)
{
    bool list = value->count != 1 && !bare;
    bwi_text_add(text, "%s", list ? "(" : "");
    for (int i = 0; i < value->count; i++) {
        bwi_text_add(text, "%s%lld", i ? "," : "", (long long)value->integers[i]);
    }
    bwi_text_add(text, "%s", list ? ")" : "");
}

static void put_numbers(bwi_text *text, const bwi_argument_value *value)
{
    for (int i = 0; i < value->count; i++) {
        bwi_text_add(text, "%s", i ? "," : value->count > 1 ? "(" : "");
        put_number(text, value->numbers[i]);
    }
    bwi_text_add(text, "%s", value->count > 1 ? ")" : "");
}

/* Values are written so that the same argument reads them again. */
static void put_value(bwi_text *text, const bwi_argument *a, const bwi_argument_value *value, bool bare)
{
    switch (a->kind) {
    case BWI_INT:
        bwi_text_add(text, "%lld", (long long)value->integer);
        break;
    case BWI_FLOAT:
        put_number(text, value->number);
        break;
    case BWI_BOOL:
        bwi_text_add(text, "%s", value->flag ? "true" : "false");
        break;
    case BWI_INTS:
        put_integers(text, value, bare);
        break;
    case BWI_FLOATS:
        put_numbers(text, value);
        break;
    case BWI_TEXT:
    case BWI_CALL:
        bwi_text_add(text, a->kind == BWI_TEXT && strchr(value->text, ',') ? "\"%s\"" : "%s", value->text);
        break;
    }
}

static void separate(bwi_text *text, bool *open)
{
    bwi_text_add(text, "%s", *open ? "," : "(");
    *open = true;
}

/* What has its default value is left out, and everything after it named. */
static void put_arguments(writer *w, const bwi_layer *layer, bool *open)
{
    const bwi_layer_row *row = layer->row;
    bool merges = row->flags & BWI_LAYER_MERGES, named = merges || (row->flags & BWI_LAYER_WRAPS);
    bool bare = row->argument_count == 1 && row->arguments[0].kind == BWI_INTS && !merges;
    for (int i = 0; i < row->argument_count; i++) {
        const bwi_argument *a = &row->arguments[i];
        bwi_argument_value value = simplified(a, &layer->values[i]);
        if (bwi_argument_is_standard(w->ctx, a, &value) || moves_by_size(layer, i, &value)) {
            named = true;
            continue;
        }
        separate(&w->text, open);
        if (named) {
            bwi_text_add(&w->text, "%s=", a->name);
        }
        put_value(&w->text, a, &value, bare);
    }
    for (int i = 0; i < layer->constraint_count; i++) {
        separate(&w->text, open);
        bwi_text_add(&w->text, "%s=%s", layer->constraints[i].name, layer->constraints[i].text);
    }
    if (layer->activity[0]) {
        separate(&w->text, open);
        bwi_text_add(&w->text, "activity_regularizer=%s", layer->activity);
    }
}

/* The layers within a layer; the first one, or all of a stack, by position. The recursion is at most four deep: the layers in a
 * Bidirectional, their stack, and its cells. */
static void put_inner(writer *w, const bwi_layer *layer, bool *open)
{
    for (int i = 0; i < 2; i++) {
        for (const bwi_layer *inner = layer->inner[i]; inner; inner = inner->above) {
            bool inner_open = false;
            separate(&w->text, open);
            bwi_text_add(&w->text, "%s%.*s", i ? "backward_layer=" : "", (int)strcspn(inner->row->names, " "), inner->row->names);
            put_inner(w, inner, &inner_open);
            put_arguments(w, inner, &inner_open);
            bwi_text_add(&w->text, "%s", inner_open ? ")" : "");
        }
    }
}

/* ---- Layers ---- */

/* Keras numbers layers that were given no name. Such numbers need not be written, since they will be assigned again. */
static bool is_numbered(const bwi_layer *layer)
{
    size_t length = strlen(layer->row->base_name);
    if (strncmp(layer->name, layer->row->base_name, length) != 0) {
        return false;
    }
    const char *rest = layer->name + length;
    return !*rest || (*rest == '_' && rest[1] && strspn(rest + 1, "0123456789") == strlen(rest + 1));
}

static bool is_word(const char *name)
{
    static const char *const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.+-";
    return *name && strspn(name, letters) == strlen(name);
}

/* Whatever follows from the layer's position or its defaults is left out, so that a chain of layers reads as a user would type
 * it. */
static bw_status put_layer(writer *w, int use)
{
    const bwi_use *u = &w->uses[use];
    const bwi_layer *layer = &w->model->layers[u->layer];
    bool open = false;
    char point[16];
    if (u->input[0] != use - 1) {
        bwi_text_add(&w->text, "from(%s) ", point_name(w, u->input[0], point));
    }
    if (w->point[use]) {
        bwi_text_add(&w->text, "%s=", point_name(w, use, point));
    }
    bwi_text_add(&w->text, "%.*s", (int)strcspn(layer->row->names, " "), layer->row->names);
    bool states = layer->row->flags & BWI_LAYER_STATES;
    for (int k = 1; k < u->inputs && !states; k++) {
        separate(&w->text, &open);
        bwi_text_add(&w->text, "%s", point_name(w, u->input[k], point));
    }
    put_inner(w, layer, &open);
    put_arguments(w, layer, &open);
    if (states && u->inputs > 1) {
        separate(&w->text, &open);
        bwi_text_add(&w->text, "initial_state=%s", point_name(w, u->input[1], point));
    }
    if (!layer->trainable) {
        separate(&w->text, &open);
        bwi_text_add(&w->text, "trainable=false");
    }
    if (!is_numbered(layer)) {
        const char *quote = is_word(layer->name) ? "" : strchr(layer->name, '"') ? "'" : "\"";
        if (strchr(layer->name, '\n') || (*quote && strchr(layer->name, *quote))) {
            return refuse(w, "a name has both kinds of quotes or several lines: ", layer->name);
        }
        separate(&w->text, &open);
        bwi_text_add(&w->text, "name=%s%s%s", quote, layer->name, quote);
    }
    bwi_text_add(&w->text, "%s%s", open ? ")" : "", use + 1 < w->use_count ? " " : "");
    return BW_OK;
}

static void put_input(writer *w)
{
    const bwi_shape *shape = w->uses[0].node ? &w->uses[0].node->shape : &w->model->input_shape;
    if (shape->ndim < 1) {
        return; /* the shape comes from the data, or is a single number per sample, which expressions cannot state */
    }
    bwi_text_add(&w->text, "input(");
    for (int i = 0; i < shape->ndim; i++) {
        bwi_text_add(&w->text, "%s%lld", i ? "," : "", (long long)shape->extent[i]);
    }
    bwi_text_add(&w->text, ") ");
}

/* ---- The whole ---- */

/* A model from an expression gets its uses when it is connected; before that they follow from its layers. */
static bw_status copy_uses(writer *w)
{
    const bw_model *model = w->model;
    bool connected = model->use_count > 0;
    w->use_count = connected ? model->use_count : model->layer_count + 1;
    w->uses = bwi_allocate(w->ctx, (size_t)w->use_count, sizeof *w->uses);
    w->point = bwi_allocate(w->ctx, (size_t)w->use_count, sizeof *w->point);
    if (!w->uses || !w->point) {
        return BW_RESOURCE_EXHAUSTED;
    }
    if (connected) {
        memcpy(w->uses, model->uses, (size_t)w->use_count * sizeof *w->uses);
        return BW_OK;
    }
    w->uses[0] = (bwi_use){.layer = -1};
    for (int i = 0; i < model->layer_count; i++) {
        w->uses[i + 1] = (bwi_use){.layer = i, .inputs = model->layers[i].inputs};
        for (int k = 0; k < model->layers[i].inputs; k++) {
            w->uses[i + 1].input[k] = model->layers[i].input[k] + 1; /* BWI_FROM_INPUT is -1 */
            w->uses[i + 1].part[k] = model->layers[i].part[k];
        }
    }
    return BW_OK;
}

static bw_status write_model(writer *w)
{
    bw_status status = copy_uses(w);
    status = status == BW_OK ? check(w) : status;
    if (status != BW_OK) {
        return status;
    }
    number_points(w);
    put_input(w);
    for (int u = 1; u < w->use_count && status == BW_OK; u++) {
        status = put_layer(w, u);
    }
    return status == BW_OK && w->text.failed ? BW_RESOURCE_EXHAUSTED : status;
}

const char *bw_model_expression(bw_model *model)
{
    if (!model) {
        return NULL;
    }
    writer w = {.ctx = model->ctx, .model = model, .text = {.ctx = model->ctx}};
    bw_status status = write_model(&w);
    bwi_release(model->ctx, w.uses);
    bwi_release(model->ctx, w.point);
    if (status != BW_OK) {
        bwi_text_free(&w.text);
        return bwi_pass_on(model->ctx);
    }
    bwi_release(model->ctx, model->expression);
    model->expression = w.text.bytes;
    return model->expression;
}
