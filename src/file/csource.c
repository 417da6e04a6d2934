/*
 * Writes a model as one C file that predicts one sample at a time. It has the weights, simple loops, and static memory for the
 * values between layers; values that are not needed at the same time share memory. The file depends on nothing but math.h.
 */
#include "file/csource.h"

#include <math.h>
#include <string.h>

static const char extension[] = ".c";

/* ---- Texts ---- */

void bwi_csource_line(bwi_csource *s, int depth, const char *format, ...)
{
    char line[1024];
    va_list arguments;
    va_start(arguments, format);
    bwi_format(line, sizeof line, format, arguments);
    va_end(arguments);
    bwi_text_add(&s->body, "%*s%s\n", 4 * depth, "", line);
}

static int __attribute__((format(printf, 3, 4))) print(char *text, size_t size, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int length = bwi_format(text, size, format, arguments);
    va_end(arguments);
    return length;
}

/* Makes a C identifier from any name. */
static void make_word(char *word, size_t size, const char *text)
{
    size_t n = 0;
    for (; *text && n + 1 < size; text++) {
        bool letter = (*text >= 'a' && *text <= 'z') || (*text >= 'A' && *text <= 'Z');
        word[n++] = letter || (*text >= '0' && *text <= '9') ? *text : '_';
    }
    word[n] = 0;
}

/* ---- Arrays ---- */

enum { BLOCK = 512, NUMBER_TEXT = 40 }; /* numbers written at a time, and the characters that one takes at most */

/* All of these identifiers contain an underscore that is not their first character, so they cannot clash with those in the
 * functions. */
static void variable_word(const bwi_variable *variable, char word[128])
{
    char made[100];
    make_word(made, sizeof made, variable->name);
    bool own = made[0] == '_' || (made[0] >= '0' && made[0] <= '9') || !strchr(made, '_');
    print(word, 128, "%s%s", own ? "w_" : "", made);
}

static void begin_array(bwi_csource *s, const char *name, const char *comment, int64_t count)
{
    bwi_text_add(&s->arrays, "\n%sstatic const float %s[%lld] = {", comment, name, (long long)count);
    s->weights += count;
}

static void end_array(bwi_csource *s)
{
    bwi_text_add(&s->arrays, "\n};\n");
}

/* Writes numbers in lines of 120 characters; `column` is 0 before the first. Returns the end of the text, which takes at most
 * NUMBER_TEXT characters for each. */
static char *put_numbers(char *text, const float *values, int64_t count, int *column)
{
    char number[32];
    for (int64_t i = 0; i < count; i++) {
        const char *one = bwi_csource_number(number, values[i]);
        int length = (int)strlen(one), width = length + 2;
        *column = *column == 0 || *column + width > 120 ? 4 : *column;
        memcpy(text, *column == 4 ? "\n    " : " ", *column == 4 ? 5 : 1);
        text += *column == 4 ? 5 : 1;
        memcpy(text, one, (size_t)length);
        text += length;
        *text++ = ',';
        *column += width;
    }
    return text;
}

/* Values of variables are left out until the file is written, when they come block by block. */
static bw_status put_late(const bwi_variable *variable, bwi_file_out *out)
{
    float values[BLOCK];
    char text[BLOCK * NUMBER_TEXT];
    int64_t total = bwi_shape_count(&variable->shape);
    bw_status status = BW_OK;
    int column = 0;
    for (int64_t first = 0, count; first < total && status == BW_OK; first += count) {
        count = bwi_values_read(&(bwi_values){.variable = variable}, first, BLOCK, values);
        status = bwi_file_put(out, text, (size_t)(put_numbers(text, values, count, &column) - text));
    }
    return status;
}

const char *bwi_csource_variable(bwi_csource *s, const bwi_variable *variable, char name[160])
{
    char word[128], other[128], comment[320], shape[160];
    bool taken = false;
    variable_word(variable, word);
    for (int v = 0; v < variable->index && !taken; v++) {
        variable_word(s->model->graph.variables[v], other);
        taken = strcmp(word, other) == 0;
    }
    if (taken) {
        print(name, 160, "%s_v%d", word, variable->index);
    } else {
        print(name, 160, "%s", word);
    }
    if (s->written[variable->index] || s->status != BW_OK) {
        return name;
    }
    s->written[variable->index] = true;
    print(comment, sizeof comment, "/* %s */\n", bwi_format_shape(shape, variable->shape.ndim, variable->shape.extent));
    begin_array(s, name, comment, bwi_shape_count(&variable->shape));
    s->late_at[s->late_count] = s->arrays.length;
    s->late[s->late_count++] = variable;
    end_array(s);
    return name;
}

const char *bwi_csource_array(bwi_csource *s, const char *layer, const char *what, const float *values, int64_t count,
                              char name[160])
{
    char word[100];
    make_word(word, sizeof word, layer);
    print(name, 160, "w_%s_%s_m%d", word, what, s->made++);
    if (values) {
        char text[BLOCK * NUMBER_TEXT + 1];
        int column = 0;
        begin_array(s, name, "", count);
        for (int64_t first = 0; first < count; first += BLOCK) {
            *put_numbers(text, values + first, count - first < BLOCK ? count - first : BLOCK, &column) = 0;
            bwi_text_add(&s->arrays, "%s", text);
        }
        end_array(s);
    } else {
        s->status = s->status == BW_OK ? BW_RESOURCE_EXHAUSTED : s->status;
    }
    return name;
}

/* ---- Loops ---- */

void bwi_csource_loops(bwi_csource *s, int ndim, const int64_t *extent)
{
    for (int i = 0; i < ndim; i++) {
        bwi_csource_line(s, 2 + i, "for (int a%d = 0; a%d < %lld; a%d++) {", i, i, (long long)extent[i], i);
    }
}

void bwi_csource_loops_end(bwi_csource *s, int ndim)
{
    for (int i = ndim - 1; i >= 0; i--) {
        bwi_csource_line(s, 2 + i, "}");
    }
}

const char *bwi_csource_at(char text[256], int ndim, const int64_t *strides)
{
    int n = 0;
    for (int i = 0; i < ndim; i++) {
        const char *plus = n ? " + " : "";
        if (strides[i] == 1) {
            n += print(text + n, 256 - (size_t)n, "%sa%d", plus, i);
        } else if (strides[i] > 0) {
            n += print(text + n, 256 - (size_t)n, "%sa%d * %lld", plus, i, (long long)strides[i]);
        }
    }
    if (n == 0) {
        print(text, 256, "0");
    }
    return text;
}

/* ---- The function ---- */

/* Makes "input", or "in_NAME" if there are several; `k` is appended where two names would be equal. */
static void end_name(char name[96], const char *one, const char *prefix, int count, int k, const char *given)
{
    char word[64];
    make_word(word, sizeof word, given);
    if (count == 1) {
        print(name, 96, "%s", one);
    } else if (word[0]) {
        print(name, 96, "%s%s_%d", prefix, word, k);
    } else {
        print(name, 96, "%s%d", prefix, k);
    }
}

static void input_name(const bwi_csource *s, int64_t k, char name[96])
{
    const bwi_input_attributes *a = s->model->inputs[k]->attributes;
    end_name(name, "input", "in_", s->model->input_count, (int)k, a->name);
}

static void output_name(const bwi_csource *s, int64_t k, char name[96])
{
    end_name(name, "output", "out_", s->model->output_count, (int)k, s->model->output_names[k]);
}

static void put_place(const bwi_csource *s, const bw_node *node, char text[128])
{
    const bwi_csource_place *place = &s->places[s->places[node->number].value];
    if (place->home == BWI_HOME_INPUT && bwi_export_is_prepared(s->model, (int)place->at)) {
        print(text, 128, "prepared_%lld", (long long)place->at);
    } else if (place->home == BWI_HOME_INPUT) {
        input_name(s, place->at, text);
    } else if (place->home == BWI_HOME_OUTPUT) {
        output_name(s, place->at, text);
    } else if (place->at) {
        print(text, 128, "memory + %lld", (long long)place->at);
    } else {
        print(text, 128, "memory");
    }
}

static const char *type_of(const bw_node *node)
{
    return node->dtype == BW_I32 ? "int" : "float";
}

/* Makes sure that a layer's name cannot close the comment. */
static void put_heading(bwi_csource *s, const bw_node *node)
{
    char name[64], from[160] = "", to[160];
    snprintf(name, sizeof name, "%s", node->name);
    for (char *at = name; *at; at++) {
        *at = *at == '*' || *at == '/' || *at == '\\' || *at < ' ' ? '_' : *at;
    }
    if (node->inputs) {
        bwi_format_shape(from, node->input[0]->shape.ndim, node->input[0]->shape.extent);
    }
    bwi_format_shape(to, node->shape.ndim, node->shape.extent);
    bwi_csource_line(s, 1, "/* %s: %s, %s -> %s */", name, node->op->name, from, to);
}

/* Finds the node whose type the input's parameter has. If an input has two nodes, the other one's values are converted as they
 * are read. */
static const bw_node *parameter_of(const bwi_csource *s, const bw_node *node)
{
    const bw_node *value = s->model->graph.nodes[s->places[node->number].value];
    return value->op->flags & BWI_OP_INPUT ? s->model->inputs[bwi_export_input(s->model, value)] : value;
}

bool bwi_csource_reads_ints(const bwi_csource *s, const bw_node *node)
{
    return parameter_of(s, node->input[0])->dtype == BW_I32;
}

/* Each node becomes a block with its own x and y, so that rows write the same formulas wherever the node is. */
static void put_node(bwi_csource *s, const bw_node *node)
{
    const bwi_csource_row *row = bwi_csource_row_of(node->op);
    char place[128];
    if (bwi_csource_is_view(node) || (node->op->flags & BWI_OP_INPUT)) {
        return;
    }
    if (!row) {
        s->status = bwi_export_refuse(s->model, node, extension);
        return;
    }
    put_heading(s, node);
    bwi_csource_line(s, 1, "{");
    for (int k = 0; k < node->inputs; k++) {
        char name[16] = "x";
        put_place(s, node->input[k], place);
        if (node->inputs > 1) {
            print(name, sizeof name, "x%d", k);
        }
        bwi_csource_line(s, 2, "const %s *%s = %s;", type_of(parameter_of(s, node->input[k])), name, place);
    }
    put_place(s, node, place);
    bwi_csource_line(s, 2, "float *y = %s;", place);
    row->write(s, node);
    bwi_csource_line(s, 1, "}");
}

/* Copies outputs that are also an input or another output, and mentions unused inputs so that compilers do not warn. */
static void put_rest(bwi_csource *s)
{
    char name[96], place[128];
    for (int k = 0; k < s->model->output_count; k++) {
        const bwi_csource_place *value = &s->places[s->places[s->model->outputs[k]->number].value];
        if (value->home != BWI_HOME_OUTPUT || value->at != k) {
            output_name(s, k, name);
            put_place(s, s->model->outputs[k], place);
            bwi_csource_line(s, 1, "for (int i = 0; i < %lld; i++) {", (long long)bwi_shape_count(&s->model->outputs[k]->shape));
            bwi_csource_line(s, 2, "%s[i] = (float)%s[i];", name, place);
            bwi_csource_line(s, 1, "}");
        }
    }
    for (int k = 0; k < s->model->input_count; k++) {
        bool read = false;
        for (int n = 0; n < s->model->graph.count && !read; n++) {
            read = s->needed[n] && (s->model->graph.nodes[n]->op->flags & BWI_OP_INPUT) &&
                   bwi_export_input(s->model, s->model->graph.nodes[n]) == k;
        }
        if (!read) {
            input_name(s, k, name);
            bwi_csource_line(s, 1, "(void)%s;", name);
        }
    }
}

/* Prepares raw values as the training data was prepared. The results go to separate memory, because the caller's arrays must not
 * change. */
static void put_prepared(bwi_csource *s, int input)
{
    const bw_dataset *recipe = bw_model_data(s->model);
    int64_t count = bwi_shape_count(&s->model->inputs[input]->shape);
    char name[96], number[32], offset[160], factor[160];
    bwi_preparation step;
    input_name(s, input, name);
    bwi_text_add(&s->arrays, "\nstatic float prepared_%d[%lld];\n", input, (long long)count);
    bwi_csource_line(s, 1, "/* as the samples were prepared that it was trained on */");
    bwi_csource_line(s, 1, "for (int i = 0; i < %lld; i++) {", (long long)count);
    bwi_csource_line(s, 2, "prepared_%d[i] = %s[i] * %s;", input, name,
                     bwi_csource_number(number, (float)bwi_export_scale(s->model)));
    for (int k = 0; bwi_recipe_step(recipe, input, k, &step); k++) {
        bwi_csource_array(s, "prepared", "offset", step.offset, step.count, offset);
        bwi_csource_array(s, "prepared", "factor", step.factor, step.count, factor);
        bwi_csource_line(s, 2, "prepared_%d[i] = (prepared_%d[i] - %s[i %% %lld]) * %s[i %% %lld];", input, input, offset,
                         (long long)step.count, factor, (long long)step.count);
    }
    bwi_csource_line(s, 1, "}");
}

/* Writes a name as a C string. Quotes, backslashes, question marks (which could form trigraphs) and anything but printable ASCII
 * are escaped as octal numbers. */
static void put_name(bwi_text *text, const char *name)
{
    bwi_text_add(text, "    \"");
    for (; *name; name++) {
        if (*name >= ' ' && *name < 127 && !strchr("\"\\?", *name)) {
            bwi_text_add(text, "%c", *name);
        } else {
            bwi_text_add(text, "\\%03o", (unsigned)(unsigned char)*name);
        }
    }
    bwi_text_add(text, "\",\n");
}

static int class_count(const bwi_csource *s)
{
    int count = 0;
    while (bw_model_class(s->model, count)) {
        count++;
    }
    return count;
}

static void put_classes(const bwi_csource *s, bwi_text *text)
{
    int count = class_count(s);
    if (count > 0) {
        bwi_text_add(text, "\nconst char *const %s_classes[%d] = {\n", s->name, count);
        for (int i = 0; i < count; i++) {
            put_name(text, bw_model_class(s->model, i));
        }
        bwi_text_add(text, "};\n");
    }
}

/* What the inputs are is known if the model was trained on a table. */
static int64_t label_count(const bwi_csource *s)
{
    bwi_text label = {.ctx = s->ctx};
    int64_t count = bwi_export_label(s->model, 0, &label) ? bwi_shape_count(&s->model->inputs[0]->shape) : 0;
    bwi_text_free(&label);
    return count;
}

static void put_labels(const bwi_csource *s, bwi_text *text)
{
    int64_t count = label_count(s);
    if (count == 0) {
        return;
    }
    bwi_text_add(text, "\nconst char *const %s_inputs[%lld] = {\n", s->name, (long long)count);
    for (int64_t i = 0; i < count; i++) {
        bwi_text label = {.ctx = s->ctx};
        bwi_export_label(s->model, i, &label);
        text->failed = text->failed || label.failed;
        put_name(text, label.bytes ? label.bytes : "");
        bwi_text_free(&label);
    }
    bwi_text_add(text, "};\n");
}

static void put_signature(const bwi_csource *s, bwi_text *text)
{
    char name[96];
    bwi_text_add(text, "void %s_predict(", s->name);
    for (int k = 0; k < s->model->input_count; k++) {
        input_name(s, k, name);
        bwi_text_add(text, "const %s *%s, ", type_of(s->model->inputs[k]), name);
    }
    for (int k = 0; k < s->model->output_count; k++) {
        output_name(s, k, name);
        bwi_text_add(text, "float *%s%s", name, k + 1 < s->model->output_count ? ", " : ")");
    }
}

static void put_end(bwi_text *text, const char *name, const bw_node *node, const char *type)
{
    char shape[160];
    int64_t count = bwi_shape_count(&node->shape);
    bwi_text_add(text, " *   %s: %lld %s%s, shape %s\n", name, (long long)count, type, count == 1 ? "" : "s",
                 bwi_format_shape(shape, node->shape.ndim, node->shape.extent));
}

/* Writes the preparation as lines of a comment. Slashes are escaped, which JSON allows, so that no comment begins or ends there. */
static void put_preparation(const bwi_csource *s, bwi_text *text)
{
    enum { WIDTH = 112, MOST = 4000 };
    bwi_json_writer json;
    if (bwi_export_preparation(s->model, &json) != BW_OK) {
        text->failed = true;
    }
    if (json.text.length) {
        bwi_text_add(text, " *\n * How the samples were read that it was trained on; %s:\n",
                     bwi_recipe_has_function(bw_model_data(s->model))
                         ? "others must be prepared likewise, also by the program's function"
                         : "scale and statistics are applied in the function, so it takes raw values");
    }
    for (size_t i = 0; i < json.text.length && i < MOST; i++) {
        bwi_text_add(text, "%s%s%c", i % WIDTH ? "" : " *   ", json.text.bytes[i] == '/' ? "\\" : "", json.text.bytes[i]);
        if (i % WIDTH == WIDTH - 1 || i + 1 == json.text.length || i + 1 == MOST) {
            bwi_text_add(text, "%s\n", i + 1 == MOST ? " ..." : "");
        }
    }
    bwi_text_free(&json.text);
}

/* The file may be read where this library is not installed, so it explains how to call it and how samples must be prepared. */
static void put_comment(const bwi_csource *s, bwi_text *text)
{
    char name[96];
    bwi_text_add(text,
                 "/*\n * A neural network as plain C: what it predicts for one sample. Made by Batchwise %s. It needs math.h only "
                 "(link with -lm).\n *\n *   ",
                 bw_version());
    put_signature(s, text);
    bwi_text_add(text, ";\n *\n");
    for (int k = 0; k < s->model->input_count; k++) {
        input_name(s, k, name);
        put_end(text, name, s->model->inputs[k], type_of(s->model->inputs[k]));
    }
    for (int k = 0; k < s->model->output_count; k++) {
        output_name(s, k, name);
        put_end(text, name, s->model->outputs[k], "float");
    }
    put_preparation(s, text);
    bwi_text_add(text,
                 " *\n * Arrays are row by row, channels last. Inputs and outputs may not overlap. %lld weights; %lld floats of\n"
                 " * working memory belong to the function: call it from one thread at a time.\n */\n#include <math.h>\n\n",
                 (long long)s->weights, (long long)s->memory);
    put_signature(s, text);
    bwi_text_add(text, ";\n");
    if (class_count(s) > 0) {
        bwi_text_add(text, "extern const char *const %s_classes[%d];\n", s->name, class_count(s));
    }
    if (label_count(s) > 0) {
        bwi_text_add(text, "extern const char *const %s_inputs[%lld];\n", s->name, (long long)label_count(s));
    }
}

/* What comes before the arrays, and what comes after them. */
static void put_first(bwi_csource *s, bwi_text *text)
{
    put_comment(s, text);
    put_classes(s, text);
    put_labels(s, text);
}

static void put_last(bwi_csource *s, bwi_text *text)
{
    bwi_text_add(text, "\n");
    if (s->memory) {
        bwi_text_add(text, "static float memory[%lld];\n\n", (long long)s->memory);
    }
    put_signature(s, text);
    bwi_text_add(text, "\n{\n%s}\n", s->body.bytes ? s->body.bytes : "");
}

static bw_status put_text(bwi_csource *s, void (*put)(bwi_csource *, bwi_text *), bwi_file_out *out)
{
    bwi_text text = {.ctx = s->ctx};
    put(s, &text);
    bw_status status = text.failed ? BW_RESOURCE_EXHAUSTED : bwi_file_put(out, text.bytes, text.length);
    bwi_text_free(&text);
    return status;
}

static bw_status put_arrays(const bwi_csource *s, bwi_file_out *out)
{
    size_t at = 0;
    bw_status status = BW_OK;
    for (int i = 0; i < s->late_count && status == BW_OK; i++) {
        status = bwi_file_put(out, s->arrays.bytes + at, s->late_at[i] - at);
        status = status == BW_OK ? put_late(s->late[i], out) : status;
        at = s->late_at[i];
    }
    return status == BW_OK ? bwi_file_put(out, s->arrays.bytes + at, s->arrays.length - at) : status;
}

static bw_status write_file(bwi_csource *s, bwi_file_out *out)
{
    if (s->arrays.failed || s->body.failed) {
        return BW_RESOURCE_EXHAUSTED;
    }
    bw_status status = put_text(s, put_first, out);
    status = status == BW_OK && s->arrays.length ? put_arrays(s, out) : status;
    return status == BW_OK ? put_text(s, put_last, out) : status;
}

static bw_status write_nodes(bwi_csource *s)
{
    const bwi_graph *graph = &s->model->graph;
    s->status = bwi_csource_lay(s);
    for (int k = 0; k < s->model->input_count && s->status == BW_OK; k++) {
        if (bwi_export_is_prepared(s->model, k)) {
            put_prepared(s, k);
        }
    }
    for (int n = 0; n < graph->count && s->status == BW_OK; n++) {
        if (s->needed[n]) {
            put_node(s, graph->nodes[n]);
        }
    }
    if (s->status == BW_OK) {
        put_rest(s);
    }
    return s->status;
}

/* The function is named after the file. */
static void name_function(const char *path, char name[64])
{
    const char *slash = strrchr(path, '/');
    char word[64];
    make_word(word, sizeof word, slash ? slash + 1 : path);
    word[strlen(word) > sizeof extension - 1 ? strlen(word) - (sizeof extension - 1) : 0] = 0;
    bool own = !word[0] || word[0] == '_' || (word[0] >= '0' && word[0] <= '9');
    print(name, 64, "%s%.55s", own ? "model_" : "", word);
}

/* The body is written first, because the weights and the memory that must be declared before it are known only then. */
static bw_status save_numbers(bw_model *model, const char *path, bwi_file_out *out)
{
    bw_context *ctx = model->ctx;
    bwi_csource s = {.ctx = ctx, .model = model, .arrays = {.ctx = ctx}, .body = {.ctx = ctx}};
    size_t nodes = (size_t)model->graph.count + 1, variables = (size_t)model->graph.variable_count + 1;
    name_function(path, s.name);
    s.needed = bwi_export_needed(model);
    s.places = s.needed ? bwi_allocate(ctx, nodes, sizeof *s.places) : NULL;
    s.written = s.places ? bwi_allocate(ctx, variables, sizeof *s.written) : NULL;
    s.late_at = s.written ? bwi_allocate(ctx, variables, sizeof *s.late_at) : NULL;
    s.late = s.late_at ? bwi_allocate(ctx, variables, sizeof *s.late) : NULL;
    bw_status status = s.late ? write_nodes(&s) : ctx->error.status;
    if (status == BW_OK) {
        bwi_export_warn(model, path);
        status = write_file(&s, out);
    }
    bwi_text_free(&s.arrays);
    bwi_text_free(&s.body);
    bwi_release(ctx, s.needed);
    bwi_release(ctx, s.places);
    bwi_release(ctx, s.written);
    bwi_release(ctx, s.late_at);
    bwi_release(ctx, (void *)s.late);
    return status;
}

static bw_status save(bw_model *model, const char *path, bwi_file_out *out)
{
    return bwi_export_behind_fronts(model, path, out, save_numbers);
}

const bwi_file_row bwi_file_csource = {extension, "what a model predicts, as one C file without dependencies", NULL, NULL, save,
                                       false};
