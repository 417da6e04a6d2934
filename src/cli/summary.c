/* batchwise summary: prints the table that Keras draws of a model, with bytes, or the model as an expression. */
#include "cli/cli.h"

#include <stdlib.h>
#include <string.h>

typedef struct arguments {
    cli_data data;
    const char *model;
    bool expression, quiet, json;
} arguments;

#define AT(member) offsetof(arguments, member)

static const cli_option options[] = {
    {CLI_MODEL_OPTION},
    {"expression", &cli_flag, AT(expression), NULL, "print the model as an expression instead"},
    CLI_DATA_OPTIONS(arguments, data),
    {"quiet", &cli_flag, AT(quiet), NULL, "no messages but warnings"},
    {CLI_JSON_OPTION},
    {.name = NULL},
};

static void print_example(void)
{
    puts("The shape of the input comes from the model, from --shape, or from --data.\n\n"
         "examples:\n"
         "  batchwise summary --model 'input(28,28,1) conv2d(32,3,relu) maxpool2d(2) flatten dense(10,softmax)'\n"
         "  batchwise summary --model model.keras --expression");
}

static const cli_usage usage = {
    .command = "summary",
    .synopsis = "--model M [options]",
    .purpose = "A model's layers with output shapes, parameters and bytes, as Keras shows them.",
    .options = options,
    .required = "model",
    .print_more = print_example,
};

/* ---- The table ------------------------------------------------------------------------------------------ */

enum { NAME, SHAPE, PARAMETERS, BYTES, INPUTS, COLUMNS, CELL = 512 };

typedef struct row {
    char cell[COLUMNS][CELL];
} row;

typedef struct table {
    const bw_model *model;
    bw_model_facts facts;
    bw_layer_facts *layers;
    row *rows; /* the first holds the headings */
    int columns;
    int width[COLUMNS];
} table;

/* Formats 1234567 as 1,234,567. */
static const char *grouped(char *text, int64_t value)
{
    char digits[32];
    int length = snprintf(digits, sizeof digits, "%lld", (long long)value), at = 0;
    for (int i = 0; i < length; i++) {
        text[at++] = digits[i];
        if ((length - i - 1) % 3 == 0 && i + 1 < length) {
            text[at++] = ',';
        }
    }
    text[at] = 0;
    return text;
}

/* Formats a size as Keras does: powers of 1024, two decimals. */
static const char *size_text(char *text, int64_t parameters)
{
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB"};
    double bytes = (double)parameters * sizeof(float);
    size_t unit = 0;
    for (; bytes >= 1024 && unit + 1 < sizeof units / sizeof units[0]; unit++) {
        bytes /= 1024;
    }
    snprintf(text, CLI_BYTES_TEXT, "%.2f %s", bytes, units[unit]);
    return text;
}

/* A chain needs no column for inputs, since each layer takes the output of the one before it. */
static bool is_chain(const table *t)
{
    for (int i = 0; i < t->facts.layers; i++) {
        int from, use;
        if (t->facts.sequential || (i == 0 && t->layers[i].inputs == 0)) {
            continue;
        }
        if (t->layers[i].inputs != 1 || bw_layer_input(t->model, i, 0, &from, &use) != BW_OK || from != i - 1) {
            return false;
        }
    }
    return true;
}

static void write_shape(char *text, size_t capacity, const bw_layer_facts *layer)
{
    int at = snprintf(text, capacity, "(None");
    for (int i = 0; i < layer->ndim; i++) {
        at += snprintf(text + at, capacity - (size_t)at, ", %lld", (long long)layer->shape[i]);
    }
    snprintf(text + at, capacity - (size_t)at, "%s)", layer->ndim == 0 ? "," : "");
}

static void write_inputs(char *text, const table *t, int number)
{
    size_t at = (size_t)snprintf(text, CELL, "%s", t->layers[number].inputs == 0 ? "-" : "");
    for (int i = 0; i < t->layers[number].inputs && at + 80 < CELL; i++) {
        int from, use;
        if (bw_layer_input(t->model, number, i, &from, &use) == BW_OK && from >= 0) {
            at += (size_t)snprintf(text + at, CELL - at, "%s%s[%d][0]", i > 0 ? ", " : "", t->layers[from].name, use);
        }
    }
}

static void write_row(table *t, int number)
{
    const bw_layer_facts *layer = &t->layers[number];
    row *r = &t->rows[number + 1];
    snprintf(r->cell[NAME], CELL, "%s (%s)", layer->name, layer->class_name);
    write_shape(r->cell[SHAPE], CELL, layer);
    grouped(r->cell[PARAMETERS], layer->parameters);
    grouped(r->cell[BYTES], layer->parameters * (int64_t)sizeof(float));
    write_inputs(r->cell[INPUTS], t, number);
}

static void measure(table *t)
{
    static const int least[COLUMNS] = {31, 22, 13, 13, 20}, most[COLUMNS] = {40, 40, 20, 20, 32};
    for (int c = 0; c < t->columns; c++) {
        t->width[c] = least[c];
        for (int i = 0; i <= t->facts.layers; i++) {
            int width = cli_name_width(t->rows[i].cell[c], most[c]);
            t->width[c] = width > t->width[c] ? width : t->width[c];
        }
    }
}

/* Makes the table. Returns CLI_SUCCESS, or an exit code after a message. */
static int make_table(table *t, bw_context *ctx, const bw_model *model)
{
    static const char *const headings[COLUMNS] = {"Layer (type)", "Output Shape", "Param #", "Bytes", "Connected to"};
    *t = (table){.model = model};
    if (bw_model_describe(model, &t->facts) != BW_OK) {
        return cli_fail("%s", bw_message(ctx));
    }
    t->layers = calloc((size_t)t->facts.layers + 1, sizeof *t->layers);
    t->rows = calloc((size_t)t->facts.layers + 1, sizeof *t->rows);
    if (!t->layers || !t->rows) {
        return cli_fail("no memory for the table");
    }
    for (int i = 0; i < t->facts.layers; i++) {
        if (bw_layer_describe(model, i, &t->layers[i]) != BW_OK) {
            return cli_fail("%s", bw_message(ctx));
        }
    }
    for (int c = 0; c < COLUMNS; c++) {
        snprintf(t->rows[0].cell[c], CELL, "%s", headings[c]);
    }
    for (int i = 0; i < t->facts.layers; i++) {
        write_row(t, i);
    }
    t->columns = is_chain(t) ? INPUTS : COLUMNS;
    measure(t);
    return CLI_SUCCESS;
}

static void free_table(table *t)
{
    free(t->layers);
    free(t->rows);
}

static void print_line(const table *t, const char *left, const char *stroke, const char *cross, const char *right)
{
    for (int c = 0; c < t->columns; c++) {
        fputs(c == 0 ? left : cross, stdout);
        for (int i = 0; i < t->width[c] + 2; i++) {
            fputs(stroke, stdout);
        }
    }
    printf("%s\n", right);
}

/* Returns how much of the text fits into a line of a cell; what remains goes on below, after a comma if there is one. */
static size_t fitting(const char *text, int width)
{
    size_t length = strlen(text);
    if (length <= (size_t)width) {
        return length;
    }
    for (size_t i = (size_t)width; i > 0; i--) {
        if (text[i - 1] == ' ') {
            return i;
        }
    }
    return (size_t)width;
}

/* Prints a row of the table, which has as many lines as its fullest cell needs. */
static void print_row(const table *t, const row *r, const char *bar)
{
    const char *rest[COLUMNS];
    bool more = true;
    for (int c = 0; c < t->columns; c++) {
        rest[c] = r->cell[c];
    }
    while (more) {
        more = false;
        for (int c = 0; c < t->columns; c++) {
            char part[CELL];
            size_t length = fitting(rest[c], t->width[c]);
            memcpy(part, rest[c], length);
            part[length] = 0;
            rest[c] += length;
            more = more || *rest[c] != 0;
            printf("%s ", bar);
            cli_print_name(stdout, part, c == PARAMETERS || c == BYTES ? t->width[c] : -t->width[c]);
            putchar(' ');
        }
        printf("%s\n", bar);
    }
}

static void print_total(const char *name, int64_t parameters)
{
    char count[48], size[CLI_BYTES_TEXT];
    printf(" %s params: %s (%s)\n", name, grouped(count, parameters), size_text(size, parameters));
}

/* Prints Keras's table, character by character, with one more column for bytes. */
static void print_table(const table *t)
{
    const bw_model_facts *facts = &t->facts;
    fputs("Model: \"", stdout);
    cli_print_name(stdout, facts->name, cli_name_width(facts->name, CELL));
    puts("\"");
    print_line(t, "┏", "━", "┳", "┓");
    print_row(t, &t->rows[0], "┃");
    print_line(t, "┡", "━", "╇", "┩");
    for (int i = 0; i < facts->layers; i++) {
        print_row(t, &t->rows[i + 1], "│");
        if (i + 1 < facts->layers) {
            print_line(t, "├", "─", "┼", "┤");
        }
    }
    print_line(t, "└", "─", "┴", "┘");
    print_total("Total", facts->trainable + facts->non_trainable + facts->optimizer);
    print_total("Trainable", facts->trainable);
    print_total("Non-trainable", facts->non_trainable);
    if (facts->optimizer > 0) {
        print_total("Optimizer", facts->optimizer);
    }
}

/* ---- JSON ----------------------------------------------------------------------------------------------- */

/* A layer's inputs are listed by the names of the layers that they come from; inputs of the model have no such name and are left
 * out. */
static void put_layer(cli_json *json, const table *t, int number)
{
    const bw_layer_facts *layer = &t->layers[number];
    cli_json_object(json, NULL);
    cli_json_text(json, "name", layer->name);
    cli_json_text(json, "class", layer->class_name);
    cli_json_array(json, "shape");
    for (int i = 0; i < layer->ndim; i++) {
        cli_json_whole(json, NULL, layer->shape[i]);
    }
    cli_json_array_end(json);
    cli_json_whole(json, "parameters", layer->parameters);
    cli_json_whole(json, "trainable", layer->trainable);
    cli_json_whole(json, "bytes", layer->parameters * (int64_t)sizeof(float));
    cli_json_array(json, "inputs");
    for (int i = 0; i < layer->inputs; i++) {
        int from, use;
        if (bw_layer_input(t->model, number, i, &from, &use) == BW_OK && from >= 0) {
            cli_json_text(json, NULL, t->layers[from].name);
        }
    }
    cli_json_array_end(json);
    cli_json_object_end(json);
}

static void print_json(const table *t, const char *expression)
{
    const bw_model_facts *facts = &t->facts;
    cli_json json = {.file = stdout};
    cli_json_object(&json, NULL);
    cli_json_text(&json, "name", facts->name);
    cli_json_array(&json, "layers");
    for (int i = 0; i < facts->layers; i++) {
        put_layer(&json, t, i);
    }
    cli_json_array_end(&json);
    cli_json_whole(&json, "parameters", facts->trainable + facts->non_trainable);
    cli_json_whole(&json, "trainable", facts->trainable);
    cli_json_whole(&json, "non_trainable", facts->non_trainable);
    cli_json_whole(&json, "optimizer", facts->optimizer);
    cli_json_whole(&json, "bytes", (facts->trainable + facts->non_trainable) * (int64_t)sizeof(float));
    cli_json_text(&json, "expression", expression);
    cli_json_object_end(&json);
    putchar('\n');
}

/* ---- The command ---------------------------------------------------------------------------------------- */

/* Builds the model unless its shapes are known already: most files have the input's shape, and some expressions do. */
static int build(const arguments *given, bw_context *ctx, bw_model *model)
{
    bw_model_facts facts;
    int64_t shape[BW_MAX_NDIM];
    int ndim = given->data.shape.ndim;
    bool known = ndim > 0 || given->data.path;
    memcpy(shape, given->data.shape.extent, sizeof shape);
    if (bw_model_describe(model, &facts) == BW_OK) {
        return CLI_SUCCESS;
    }
    (void)bw_message(ctx); /* not a failure: the model is built now */
    if (given->data.path) {
        const bw_dataset *dataset = cli_data_read(ctx, &given->data, given->data.path, NULL, NULL);
        if (!dataset) {
            return CLI_FAILURE;
        }
        ndim = bw_dataset_shape(dataset, shape);
    }
    if (bw_build(model, ndim, ndim > 0 ? shape : NULL, 0) == BW_OK && bw_model_describe(model, &facts) == BW_OK) {
        return CLI_SUCCESS;
    }
    return cli_fail("%s%s", bw_message(ctx), known ? "" : ", or give --shape or --data");
}

static bool needs_shape(const arguments *given, bw_context *ctx, const bw_model *model)
{
    bw_model_facts facts;
    bool needs = !given->data.path && given->data.shape.ndim == 0 && bw_model_describe(model, &facts) != BW_OK;
    (void)bw_message(ctx); /* not a failure */
    return needs;
}

static int summarise(const arguments *given, bw_context *ctx, bw_model *model)
{
    table t;
    int code = build(given, ctx, model);
    if (code != CLI_SUCCESS) {
        return code;
    }
    code = make_table(&t, ctx, model);
    if (code == CLI_SUCCESS && given->json) {
        print_json(&t, bw_model_expression(model));
    } else if (code == CLI_SUCCESS) {
        print_table(&t);
    }
    free_table(&t);
    return code;
}

/* An expression can be printed without shapes, so the model is built only if they are known: from the file, --shape or --data. */
static int run(const arguments *given, bw_context *ctx)
{
    bw_model *model;
    bool loaded;
    int code = cli_model_open(&model, &loaded, ctx, usage.command, given->model);
    if (code != CLI_SUCCESS) {
        return code;
    }
    if (!given->expression) {
        return summarise(given, ctx, model);
    }
    if (!needs_shape(given, ctx, model)) {
        code = build(given, ctx, model);
    }
    const char *expression = code == CLI_SUCCESS ? bw_model_expression(model) : NULL;
    if (code == CLI_SUCCESS && !expression) {
        return cli_fail("%s", bw_message(ctx));
    }
    if (code == CLI_SUCCESS) {
        puts(expression);
    }
    return code;
}

int cli_summary(int argc, char **argv)
{
    arguments given = {.data = CLI_DATA_DEFAULT};
    int code;
    if (!cli_options_read(&code, &usage, argc, argv, &given)) {
        return code;
    }
    if (given.expression && given.json) {
        return cli_mistake(usage.command, "--expression and --json exclude each other: the object of --json holds the expression");
    }
    bw_context *ctx = cli_session_open((cli_session){.workers = 1, .quiet = given.quiet});
    return !ctx ? CLI_FAILURE : cli_session_close(ctx, run(&given, ctx));
}
