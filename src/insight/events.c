/*
 * The events of TensorBoard: messages of protobuf, written by hand, since only a few of their fields are used. Scalars, histograms
 * and images are tensors with the name of the plugin that shows them, as TensorFlow 2 writes them.
 */
#include "insight/internal.h"

#include <string.h>
#include <time.h>

enum { FLOAT = 1, DOUBLE = 2, STRING = 7 };                   /* types of tensors */
enum { CLASS_SCALAR = 1, CLASS_TENSOR = 2, CLASS_BLOBS = 3 }; /* what TensorBoard stores */
enum { HPARAM_STRING = 1, HPARAM_NUMBER = 3 };                /* types of hyperparameters */
enum { STATUS_SUCCESS = 1, STATUS_FAILURE = 2, COLUMN_NAME = 80 };

static double wall_time(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int64_t bwi_event_seconds(void)
{
    return (int64_t)wall_time();
}

static bwi_wire begin_event(const bwi_wire *to, int64_t step)
{
    bwi_wire event = {.ctx = to->ctx};
    bwi_wire_put_double(&event, 1, wall_time());
    bwi_wire_put(&event, 2, step);
    return event;
}

static void end_event(bwi_wire *to, bwi_wire *event)
{
    bwi_wire_record(to, event);
    bwi_wire_free(event);
}

/* Begins summary, value, and writes the tag and whose it is; the tensor and the ends follow. */
static bwi_wire begin_value(const bwi_wire *to, const char *tag, int64_t step, const char *plugin, const bwi_wire *content,
                            int class)
{
    bwi_wire event = begin_event(to, step);
    bwi_wire_begin(&event, 5);
    bwi_wire_begin(&event, 1);
    bwi_wire_put_text(&event, 1, tag);
    bwi_wire_begin(&event, 9);
    bwi_wire_begin(&event, 1);
    bwi_wire_put_text(&event, 1, plugin);
    if (content) {
        bwi_wire_put_bytes(&event, 2, content->bytes, content->length);
        event.failed = event.failed || content->failed;
    }
    bwi_wire_end(&event);
    if (class > 0) {
        bwi_wire_put(&event, 4, class);
    }
    bwi_wire_end(&event);
    return event;
}

static void end_value(bwi_wire *to, bwi_wire *event)
{
    bwi_wire_end(event);
    bwi_wire_end(event);
    end_event(to, event);
}

static void put_shape(bwi_wire *event, int ndim, const int64_t *shape)
{
    bwi_wire_begin(event, 2);
    for (int d = 0; d < ndim; d++) {
        bwi_wire_begin(event, 2);
        bwi_wire_put(event, 1, shape[d]);
        bwi_wire_end(event);
    }
    bwi_wire_end(event);
}

void bwi_event_version(bwi_wire *to)
{
    bwi_wire event = begin_event(to, 0);
    bwi_wire_put_text(&event, 3, "brain.Event:2");
    end_event(to, &event);
}

void bwi_event_scalar(bwi_wire *to, const char *tag, int64_t step, double value)
{
    bwi_wire event = begin_value(to, tag, step, "scalars", NULL, CLASS_SCALAR);
    bwi_wire_begin(&event, 8);
    bwi_wire_put(&event, 1, FLOAT);
    put_shape(&event, 0, NULL);
    bwi_wire_put_float(&event, 5, (float)value);
    bwi_wire_end(&event);
    end_value(to, &event);
}

/* Rows of left edge, right edge and count. Edges are as numpy.linspace has them: low + k * width, and exactly the highest at the
 * end. */
void bwi_event_histogram(bwi_wire *to, const char *tag, int64_t step, const bwi_value_range *range, double divisor, int buckets,
                         const int64_t *counts)
{
    bwi_wire event = begin_value(to, tag, step, "histograms", NULL, CLASS_TENSOR), rows = {.ctx = to->ctx};
    double low = range->low / divisor, high = range->high / divisor, width = (high - low) / buckets;
    for (int k = 0; k < buckets; k++) {
        double row[3] = {low + k * width, k + 1 < buckets ? low + (k + 1) * width : high, (double)counts[k]};
        for (int i = 0; i < 3; i++) {
            bwi_wire_raw_double(&rows, row[i]);
        }
    }
    bwi_wire_begin(&event, 8);
    bwi_wire_put(&event, 1, DOUBLE);
    put_shape(&event, 2, (const int64_t[]){buckets, 3});
    bwi_wire_put_bytes(&event, 4, rows.bytes, rows.length);
    event.failed = event.failed || rows.failed;
    bwi_wire_end(&event);
    end_value(to, &event);
    bwi_wire_free(&rows);
}

/* A list of texts: width, height, then the images as PNG. Version 0 of the plugin's data needs no message. */
void bwi_event_images(bwi_wire *to, const char *tag, int64_t step, int count, int height, int width, int channels,
                      const unsigned char *pixels)
{
    bwi_wire event = begin_value(to, tag, step, "images", NULL, CLASS_BLOBS);
    char text[2][16];
    bwi_print(text[0], sizeof text[0], "%d", width);
    bwi_print(text[1], sizeof text[1], "%d", height);
    bwi_wire_begin(&event, 8);
    bwi_wire_put(&event, 1, STRING);
    put_shape(&event, 1, (const int64_t[]){count + 2});
    bwi_wire_put_text(&event, 8, text[0]);
    bwi_wire_put_text(&event, 8, text[1]);
    for (int i = 0; i < count; i++) {
        bwi_wire png = {.ctx = to->ctx};
        bwi_png_write(&png, height, width, channels, pixels + (size_t)i * (size_t)height * (size_t)width * (size_t)channels);
        bwi_wire_put_bytes(&event, 8, png.bytes, png.length);
        event.failed = event.failed || png.failed;
        bwi_wire_free(&png);
    }
    bwi_wire_end(&event);
    end_value(to, &event);
}

/* ---- The graph ---- */

/* Either the shape of the output, with a batch of any size, or the number of parameters. */
static void put_attribute(bwi_wire *node, const char *key, const bw_layer_facts *facts)
{
    bwi_wire_begin(node, 5); /* a map: key and value */
    bwi_wire_put_text(node, 1, key);
    bwi_wire_begin(node, 2);
    if (facts->ndim >= 0 && strcmp(key, "_output_shapes") == 0) {
        bwi_wire_begin(node, 1);
        bwi_wire_begin(node, 7);
        bwi_wire_begin(node, 2); /* the batch, of any size */
        bwi_wire_put(node, 1, -1);
        bwi_wire_end(node);
        for (int d = 0; d < facts->ndim; d++) {
            bwi_wire_begin(node, 2);
            bwi_wire_put(node, 1, facts->shape[d]);
            bwi_wire_end(node);
        }
        bwi_wire_end(node);
        bwi_wire_end(node);
    } else {
        bwi_wire_put(node, 3, facts->parameters);
    }
    bwi_wire_end(node);
    bwi_wire_end(node);
}

/* The model itself is in front of each name, as in Keras's graphs, so that TensorBoard can fold it; the input of a list of layers,
 * which is no layer, gets a node. */
static bw_status put_layer(bwi_wire *graph, const bw_model *model, const char *scope, int layer)
{
    bw_layer_facts facts;
    bw_status status = bwi_describe_layer(model, layer, &facts);
    if (status != BW_OK) {
        return status;
    }
    char text[160];
    bwi_wire_begin(graph, 1);
    bwi_print(text, sizeof text, "%s/%s", scope, facts.name);
    bwi_wire_put_text(graph, 1, text);
    bwi_wire_put_text(graph, 2, facts.class_name);
    for (int i = 0; i < facts.inputs && status == BW_OK; i++) {
        int from, use;
        bw_layer_facts source = {.name = "input"};
        status = bwi_layer_input(model, layer, i, &from, &use);
        status = status == BW_OK && from >= 0 ? bwi_describe_layer(model, from, &source) : status;
        bwi_print(text, sizeof text, "%s/%s", scope, source.name);
        bwi_wire_put_text(graph, 3, text);
    }
    put_attribute(graph, "_output_shapes", &facts);
    put_attribute(graph, "parameters", &facts);
    bwi_wire_end(graph);
    return status;
}

/* Written at once, as nodes with their inputs. */
bw_status bwi_event_graph(bwi_wire *to, const bw_model *model)
{
    bw_model_facts facts;
    bw_status status = bwi_describe_model(model, &facts);
    bwi_wire graph = {.ctx = to->ctx};
    char text[160];
    if (status == BW_OK && facts.sequential) {
        bwi_wire_begin(&graph, 1);
        bwi_print(text, sizeof text, "%s/input", facts.name);
        bwi_wire_put_text(&graph, 1, text);
        bwi_wire_put_text(&graph, 2, "InputLayer");
        bwi_wire_end(&graph);
    }
    for (int layer = 0; status == BW_OK && layer < facts.layers; layer++) {
        status = put_layer(&graph, model, facts.name, layer);
    }
    if (status == BW_OK) {
        bwi_wire event = begin_event(to, 0);
        bwi_wire_put_bytes(&event, 4, graph.bytes, graph.length);
        event.failed = event.failed || graph.failed;
        end_event(to, &event);
    }
    bwi_wire_free(&graph);
    return status;
}

/* ---- Hyperparameters ---- */

/* The plugin needs its message as metadata, and some tensor. */
static void put_plugin(bwi_wire *to, const char *tag, bwi_wire *content)
{
    bwi_wire event = begin_value(to, tag, 0, "hparams", content, CLASS_TENSOR);
    bwi_wire_begin(&event, 8);
    bwi_wire_put(&event, 1, FLOAT);
    put_shape(&event, 0, NULL);
    bwi_wire_put_float(&event, 5, 0);
    bwi_wire_end(&event);
    end_value(to, &event);
    bwi_wire_free(content);
}

void bwi_event_experiment(bwi_wire *to, const bwi_hyperparameter *list, int count, const bw_history *history)
{
    bwi_wire content = {.ctx = to->ctx};
    bwi_wire_begin(&content, 2);
    bwi_wire_put_double(&content, 3, wall_time());
    for (int k = 0; k < count; k++) {
        bwi_wire_begin(&content, 4);
        bwi_wire_put_text(&content, 1, list[k].name);
        bwi_wire_put(&content, 4, list[k].text[0] ? HPARAM_STRING : HPARAM_NUMBER);
        bwi_wire_end(&content);
    }
    for (int c = 0; c < bw_history_columns(history); c++) {
        const char *column = bw_history_column(history, c);
        bool validation = strncmp(column, "val_", 4) == 0;
        char tag[COLUMN_NAME];
        bwi_print(tag, sizeof tag, "epoch_%s", validation ? column + 4 : column);
        bwi_wire_begin(&content, 5);
        bwi_wire_begin(&content, 1);
        bwi_wire_put_text(&content, 1, validation ? "validation" : "train");
        bwi_wire_put_text(&content, 2, tag);
        bwi_wire_end(&content);
        bwi_wire_end(&content);
    }
    bwi_wire_end(&content);
    put_plugin(to, "_hparams_/experiment", &content);
}

void bwi_event_session(bwi_wire *to, const bwi_hyperparameter *list, int count)
{
    bwi_wire content = {.ctx = to->ctx};
    bwi_wire_begin(&content, 3);
    for (int k = 0; k < count; k++) {
        bwi_wire_begin(&content, 1);
        bwi_wire_put_text(&content, 1, list[k].name);
        bwi_wire_begin(&content, 2);
        if (list[k].text[0]) {
            bwi_wire_put_text(&content, 3, list[k].text);
        } else {
            bwi_wire_put_double(&content, 2, list[k].number);
        }
        bwi_wire_end(&content);
        bwi_wire_end(&content);
    }
    bwi_wire_put_double(&content, 5, wall_time());
    bwi_wire_end(&content);
    put_plugin(to, "_hparams_/session_start_info", &content);
}

void bwi_event_session_end(bwi_wire *to, bool failed)
{
    bwi_wire content = {.ctx = to->ctx};
    bwi_wire_begin(&content, 4);
    bwi_wire_put(&content, 1, failed ? STATUS_FAILURE : STATUS_SUCCESS);
    bwi_wire_put_double(&content, 2, wall_time());
    bwi_wire_end(&content);
    put_plugin(to, "_hparams_/session_end_info", &content);
}
