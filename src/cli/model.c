/*
 * Interprets --model, --save-model and --optimizer. A model is a file of a kind that the library reads, an expression, or the name
 * of a text file that holds an expression; the library parses it. The only thing parsed here is the learning rate within an
 * optimizer's text, for --lr.
 */
#include "cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* This is longer than any expression that a person writes, and keeps a wrong file (such as a dataset) from being read
 * completely. */
enum { LONGEST = 1 << 20 };

static const char white[] = " \t\r\n";

/* A file of another kind, given by mistake, is the common case, so binary data and long files are refused with what was
 * expected. */
static int read_text(char **expression, const char *command, const char *path)
{
    FILE *file = fopen(path, "rb");
    char *text = malloc(LONGEST + 1);
    size_t length = 0;
    bool failed = !file || !text;
    int error = failed ? errno : 0;
    if (!failed) {
        errno = 0;
        length = fread(text, 1, LONGEST + 1, file);
        failed = ferror(file) != 0;
        error = errno;
    }
    if (file) {
        fclose(file);
    }
    if (failed) {
        free(text);
        return cli_fail("%s: cannot read the model: %s", path, strerror(error));
    }
    if (length > LONGEST || memchr(text, 0, length)) {
        free(text);
        return cli_mistake(command, "--model: expected an expression or a text file that holds one, found %s in '%s'",
                           length > LONGEST ? "more than 1 MiB" : "binary data", path);
    }
    while (length > 0 && strchr(white, text[length - 1])) {
        length--;
    }
    text[length] = 0;
    *expression = text;
    return CLI_SUCCESS;
}

/* Gives the expression that `argument` is, or that the text file of this name holds. The caller frees it. */
static int read_expression(char **expression, const char *command, const char *argument)
{
    struct stat status;
    if (stat(argument, &status) == 0) {
        if (S_ISREG(status.st_mode) || S_ISFIFO(status.st_mode)) {
            return read_text(expression, command, argument);
        }
        if (strpbrk(argument, "./")) { /* a folder called "flatten" does not hide the layer */
            return cli_fail("%s: cannot read the model: expected a text file, found %s", argument,
                            S_ISDIR(status.st_mode) ? "a folder" : "a special file");
        }
    } else if (!strpbrk(argument, "(= ") && strpbrk(argument, "./")) {
        return cli_fail("%s: cannot read the model: %s", argument, strerror(ENOENT));
    }
    *expression = strdup(argument);
    return *expression ? CLI_SUCCESS : cli_fail("no memory for the model's text");
}

/* Shows the line of the expression that has the error, and a caret below the place. */
static void show_place(const char *expression, const bw_error *error)
{
    enum { BEFORE = 60, SHOWN = 100 };
    if (!error->argument || strcmp(error->argument, "model") != 0 || error->offset < 0) {
        return;
    }
    const char *at = expression + error->offset, *line = at, *end = at + strcspn(at, "\n");
    while (line > expression && line[-1] != '\n') {
        line--;
    }
    bool cut = at - line > BEFORE + 3;
    line = cut ? at - BEFORE : line;
    int caret = (cut ? 3 : 0) + 2;
    for (const char *c = line; c < at; c++) {
        caret += ((unsigned char)*c & 0xC0) != 0x80;
    }
    fprintf(stderr, "  %s", cut ? "..." : "");
    for (const char *c = line; c < end && c - line < SHOWN; c++) {
        fputc((unsigned char)*c < ' ' ? ' ' : *c, stderr);
    }
    fprintf(stderr, "%s\n%*s^\n", end - line > SHOWN ? "..." : "", caret, "");
}

const char *cli_model_endings(char *text, bool (*wanted)(const bw_file_kind *kind))
{
    bw_file_kind kind;
    size_t length = 0, last = 0;
    text[0] = 0;
    for (int i = 0; bw_file_kind_at(i, &kind); i++) {
        if (wanted(&kind) && length < CLI_ENDINGS_TEXT) {
            last = length;
            length += (size_t)snprintf(text + length, CLI_ENDINGS_TEXT - length, "%s%s", length ? ", " : "", kind.extension);
        }
    }
    if (last > 0 && length + 3 < CLI_ENDINGS_TEXT) { /* "a, b or c" */
        memmove(text + last + 4, text + last + 2, strlen(text + last + 2) + 1);
        memcpy(text + last, " or ", 4);
    }
    return text;
}

bool cli_model_is_saved(const bw_file_kind *kind)
{
    return kind->saves;
}

bool cli_model_is_trained(const bw_file_kind *kind)
{
    return kind->loads && kind->has_weights;
}

int cli_model_open(bw_model **model, bool *loaded, bw_context *ctx, const char *command, const char *argument)
{
    char *expression;
    bw_file_kind kind;
    *loaded = bw_file_kind_of(argument, &kind) && (kind.loads || kind.loads_weights);
    if (*loaded) {
        *model = bw_load(ctx, argument);
        return !*model ? cli_fail("%s", bw_message(ctx)) : CLI_SUCCESS;
    }
    int code = read_expression(&expression, command, argument);
    if (code != CLI_SUCCESS) {
        return code;
    }
    *model = bw_model_parse(ctx, expression);
    if (!*model) {
        code = cli_report(ctx, command);
        show_place(expression, bw_last_error(ctx));
    }
    free(expression);
    return code;
}

int cli_model_open_trained(bw_model **model, bw_dataset **dataset, bw_context *ctx, const char *command, const char *argument,
                           const cli_data *data)
{
    bw_file_kind kind;
    bool loaded;
    if (!bw_file_kind_of(argument, &kind) || !cli_model_is_trained(&kind)) {
        char endings[CLI_ENDINGS_TEXT];
        return cli_mistake(command, "--model: expected a file with weights, %s, found '%s'",
                           cli_model_endings(endings, cli_model_is_trained), argument);
    }
    int code = cli_model_open(model, &loaded, ctx, command, argument);
    if (code != CLI_SUCCESS) {
        return code;
    }
    *dataset = cli_data_read(ctx, data, data->path, *model, NULL);
    return !*dataset ? CLI_FAILURE : CLI_SUCCESS;
}

int cli_model_make(bw_model **model, bw_context *ctx, const char *command, const char *argument, const char *optimizer,
                   const char *loss)
{
    bool loaded;
    bw_status status = BW_OK;
    int code = cli_model_open(model, &loaded, ctx, command, argument);
    if (code != CLI_SUCCESS) {
        return code;
    }
    if (!loaded) {
        status = bw_compile(*model, optimizer, loss, NULL);
    } else if (optimizer || loss) {
        status = bw_recompile(*model, optimizer, loss, NULL);
    }
    return status == BW_OK ? CLI_SUCCESS : cli_report(ctx, command);
}

/* Finds the end of the argument at `text`: a comma outside parentheses, or `end`. */
static const char *argument_end(const char *text, const char *end)
{
    int depth = 0;
    for (; text < end; text++) {
        depth += *text == '(' ? 1 : *text == ')' ? -1 : 0;
        if (*text == ',' && depth == 0) {
            return text;
        }
    }
    return end;
}

/* Tells whether the argument from `text` to `end` is the learning rate: by its name, or as the first one without a name. */
static bool is_rate(const char *text, const char *end, bool first)
{
    static const char *const names[] = {"lr", "learning_rate"};
    const char *equals = memchr(text, '=', (size_t)(end - text)), *parenthesis = memchr(text, '(', (size_t)(end - text));
    if (!equals || (parenthesis && parenthesis < equals)) {
        return first;
    }
    while (equals > text && strchr(white, equals[-1])) {
        equals--;
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strlen(names[i]) == (size_t)(equals - text) && memcmp(names[i], text, (size_t)(equals - text)) == 0) {
            return true;
        }
    }
    return false;
}

char *cli_optimizer_text(const char *optimizer, const char *rate)
{
    optimizer = !optimizer ? "adam" : optimizer + strspn(optimizer, white);
    const char *end = optimizer + strlen(optimizer);
    while (end > optimizer && strchr(white, end[-1])) {
        end--;
    }
    const char *open = memchr(optimizer, '(', (size_t)(end - optimizer));
    if (open && end[-1] != ')') {
        return strdup(optimizer); /* malformed: bw_compile will report what is wrong */
    }
    size_t length = (size_t)(end - optimizer) + strlen(rate) + sizeof "(lr=,)";
    char *text = malloc(length);
    if (!text) {
        return NULL;
    }
    int name = (int)((!open ? end : open) - optimizer);
    int at = snprintf(text, length, "%.*s(lr=%s", name, optimizer, rate);
    bool first = true;
    for (const char *from = !open ? end : open + 1; from < end; first = false) {
        const char *to = argument_end(from, end - 1);
        from += strspn(from, white);
        if (from < to && !is_rate(from, to, first)) {
            at += snprintf(text + at, length - (size_t)at, ",%.*s", (int)(to - from), from);
        }
        from = to + 1;
    }
    snprintf(text + at, length - (size_t)at, ")");
    return text;
}

bool cli_optimizer_has_rate(const char *optimizer)
{
    const char *open = !optimizer ? NULL : strchr(optimizer, '('), *end = !open ? NULL : strrchr(open, ')');
    bool first = true, found = false;
    for (const char *from = open; from && end && from < end && !found; first = false) {
        from++;
        const char *to = argument_end(from, end);
        from += strspn(from, white);
        found = from < to && is_rate(from, to, first);
        from = to;
    }
    return found;
}
