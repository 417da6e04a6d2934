/*
 * Explains out-of-memory messages of other systems: reads the shape or the bytes that they name, finds the layer of the user's
 * model whose output that is, and says what to do. These texts are understood:
 *   OOM when allocating tensor with shape[128,126,126,32] and type float on ...        TensorFlow, Keras
 *   Out of memory (while trying to allocate | allocating) 1073741824 bytes             XLA: Keras, JAX
 *   Tried to allocate 2.00 GiB; you tried to allocate 260112384 bytes                  PyTorch
 *   Unable to allocate 1.94 GiB for an array with shape (128, 126, 126, 32) and ...    NumPy
 */
#include "cli/cli.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* ---- Reading -------------------------------------------------------------------------------------------- */

static const struct element {
    const char *name;
    size_t bytes;
} elements[] = {
    {"bfloat16", 2}, {"float16", 2}, {"float32", 4}, {"float64", 8}, {"double", 8}, {"float", 4},  {"half", 2},  {"uint8", 1},
    {"int8", 1},     {"uint16", 2},  {"int16", 2},   {"uint32", 4},  {"int32", 4},  {"uint64", 8}, {"int64", 8}, {"bool", 1},
};

/* Reads the numbers after "shape[" or "shape (", up to the closing bracket. */
static bool read_shape(cli_explanation *e, const char *text)
{
    const char *at = text;
    while ((at = strstr(at, "shape"))) {
        at += strlen("shape");
        at += strspn(at, " :=");
        if (*at == '[' || *at == '(') {
            break;
        }
    }
    if (!at) {
        return false;
    }
    at++;
    e->ndim = 0;
    while (e->ndim < BW_MAX_NDIM && (at += strspn(at, " ,"), *at >= '0' && *at <= '9')) {
        char *end;
        e->shape[e->ndim++] = strtoll(at, &end, 10);
        at = end;
    }
    return e->ndim > 0 && (*at == ']' || *at == ')');
}

static size_t element_bytes(const char *text)
{
    const char *type = strstr(text, "type ");
    for (size_t k = 0; type && k < sizeof elements / sizeof elements[0]; k++) {
        if (strncmp(type + strlen("type "), elements[k].name, strlen(elements[k].name)) == 0) {
            return elements[k].bytes;
        }
    }
    return sizeof(float);
}

/* Reads a number with its unit after "allocat...": bytes, KiB, MiB, GiB, or KB, MB, GB, by which older PyTorch means the same. A
 * rounded number is exact to half a unit of its last digit. */
static bool read_bytes(cli_explanation *e, const char *text)
{
    static const char units[] = "KMGT";
    for (const char *at = text; (at = strcasestr(at, "allocat"));) {
        at += strlen("allocat");
        const char *number = at + strcspn(at, "0123456789");
        if (strspn(at, "abcdefghijklmnopqrstuvwxyz :'") != (size_t)(number - at)) {
            continue;
        }
        char *end;
        double value = strtod(number, &end);
        const char *point = memchr(number, '.', (size_t)(end - number));
        double step = point ? pow(10, -(double)(end - point - 1)) : 1;
        end += strspn(end, " ");
        const char *unit = *end != 0 ? strchr(units, *end) : NULL;
        double scale = unit ? pow(1024, (double)(unit - units) + 1) : 1;
        if (!unit && strncasecmp(end, "byte", 4) != 0 && *end != 'B') {
            continue;
        }
        if (!(value * scale >= 1 && value * scale < 1e18)) {
            continue;
        }
        e->bytes = (size_t)(value * scale);
        e->slack = unit ? (size_t)(step * scale / 2) + 1 : 0;
        return true;
    }
    return false;
}

bool cli_explanation_read(cli_explanation *e, const char *text)
{
    if (!read_shape(e, text)) {
        e->ndim = 0;
        return read_bytes(e, text);
    }
    double bytes = (double)element_bytes(text);
    for (int i = 0; i < e->ndim; i++) {
        bytes *= (double)e->shape[i];
    }
    e->bytes = bytes < 1e18 ? (size_t)bytes : 0;
    return e->bytes > 0;
}

/* ---- Finding -------------------------------------------------------------------------------------------- */

static int64_t values_of(const bw_layer_memory *layer)
{
    int64_t count = 1;
    for (int i = 0; i < layer->ndim; i++) {
        count *= layer->shape[i];
    }
    return count;
}

/* Tells whether the shape is that of the layer's output, with channels last or first. */
static bool is_output(const cli_explanation *e, const bw_layer_memory *layer)
{
    if (e->ndim != layer->ndim + 1) {
        return false;
    }
    bool last = true, first = layer->ndim > 1 && e->shape[1] == layer->shape[layer->ndim - 1];
    for (int i = 0; i < layer->ndim; i++) {
        last = last && e->shape[i + 1] == layer->shape[i];
        first = first && (i == 0 || e->shape[i + 1] == layer->shape[i - 1]);
    }
    return last || first;
}

/* Tells whether the bytes match the layer's output for a batch: the plan's, or, if none was given, any power of two. */
static bool fits(const cli_explanation *e, const bw_layer_memory *layer, int64_t batch, int64_t *found)
{
    double one = (double)values_of(layer) * sizeof(float), low = (double)(e->bytes - e->slack),
           high = (double)(e->bytes + e->slack);
    if (batch > 0) {
        *found = batch;
        return one * (double)batch >= low && one * (double)batch <= high;
    }
    for (*found = 1; one * (double)*found <= high && *found < INT64_MAX / 2; *found *= 2) {
        if (one * (double)*found >= low) {
            return true;
        }
    }
    return false;
}

/* If several layers match, the first one is reported. */
void cli_explanation_find(cli_explanation *e, const bw_plan *plan, bool batch_given)
{
    bw_memory_facts facts = bw_plan_facts(plan);
    for (int k = 0; k + 1 < bw_plan_layers(plan) && !e->found; k++) {
        e->layer = bw_plan_layer(plan, k);
        if (e->ndim > 0) {
            e->found = is_output(e, &e->layer);
            e->batch = e->found ? e->shape[0] : 0;
        } else {
            e->found = fits(e, &e->layer, batch_given ? facts.batch : 0, &e->batch);
        }
    }
    if (!e->found) {
        e->batch = 0;
    }
}

/* ---- Telling -------------------------------------------------------------------------------------------- */

/* Quotes text for a POSIX shell. */
static void print_quoted(FILE *file, const char *text)
{
    fputc('\'', file);
    for (; *text != 0; text++) {
        fputs(*text == '\'' ? "'\\''" : (char[]){*text, 0}, file);
    }
    fputc('\'', file);
}

static void print_command(FILE *file, const cli_explanation *e)
{
    size_t megabytes = e->facts.peak_bytes / 1000000 + 1;
    fputs("batchwise train --model ", file);
    print_quoted(file, e->model);
    fputs(" --data ", file);
    if (e->data) {
        print_quoted(file, e->data);
    } else {
        fputs("D", file);
    }
    fprintf(file, " --batch %" PRId64 " --memory %zuM", e->facts.batch, megabytes);
}

static const char *shape_text(char *text, size_t capacity, const cli_explanation *e)
{
    size_t at = 0;
    text[0] = 0;
    for (int i = 0; i < e->ndim && at < capacity; i++) {
        at += (size_t)snprintf(text + at, capacity - at, "%s%" PRId64, i > 0 ? "x" : "", e->shape[i]);
    }
    return text;
}

/* Answers an out-of-memory message: which tensor it was, what the whole batch needs, what Batchwise needs, and the command to
 * run. */
void cli_explanation_print(FILE *file, const cli_explanation *e)
{
    char bytes[CLI_BYTES_TEXT], whole[CLI_BYTES_TEXT], budget[CLI_BYTES_TEXT], peak[CLI_BYTES_TEXT], shape[160];
    fprintf(file, "The message is about %s%s%s%s", cli_bytes_text(bytes, e->bytes), e->ndim > 0 ? ", a tensor of " : "",
            shape_text(shape, sizeof shape, e), e->found ? ":\n" : ".\n");
    if (e->found) {
        fprintf(file, "the output of layer %s for a batch of %" PRId64 ", or its gradient.\n", e->layer.name, e->batch);
    } else {
        fprintf(file, "No layer of this model has such an output%s.\n",
                e->ndim > 0 ? "" : " for this batch; --batch N says which batch it was");
    }
    const bw_memory_facts *f = &e->facts;
    fprintf(file, "A system that holds the whole batch needs %s for %" PRId64 " samples",
            cli_bytes_text(whole, f->whole_batch_bytes), f->batch);
    fprintf(file, "; %s are enough for %" PRId64 ".\n", cli_bytes_text(budget, f->budget), f->whole_batch_largest);
    fprintf(file, "Here the same batch takes %s, and so does any other%s:\n  ", cli_bytes_text(peak, f->peak_bytes),
            f->items[BW_PLAN_STORE] > 0 ? " that leaves whole-batch layers their store" : "");
    print_command(file, e);
    fputc('\n', file);
    if (f->whole_batch_largest > 0 && f->whole_batch_largest < f->batch) {
        int64_t batches = (f->batch + f->whole_batch_largest - 1) / f->whole_batch_largest;
        fprintf(file, "There: %" PRId64 " batches of %" PRId64 " samples, their gradients accumulated.\n", batches,
                (f->batch + batches - 1) / batches);
    }
}

void cli_explanation_json(cli_json *json, const cli_explanation *e)
{
    cli_json_object(json, "explain");
    cli_json_bytes(json, "bytes", e->bytes);
    cli_json_array(json, "shape");
    for (int i = 0; i < e->ndim; i++) {
        cli_json_whole(json, NULL, e->shape[i]);
    }
    cli_json_array_end(json);
    cli_json_text(json, "layer", e->found ? e->layer.name : NULL);
    cli_json_whole(json, "batch", e->facts.batch);
    cli_json_bytes(json, "peak_bytes", e->facts.peak_bytes);
    cli_json_bytes(json, "whole_batch_bytes", e->facts.whole_batch_bytes);
    cli_json_whole(json, "whole_batch_largest", e->facts.whole_batch_largest);
    cli_json_object_end(json);
}
