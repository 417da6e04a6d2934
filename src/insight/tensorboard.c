/*
 * TensorBoard as an onlooker of bw_fit: event files with Keras's names in train/ and validation/, and hyperparameters beside them.
 * Events are collected and added to their file at the end of each epoch, so a run that is killed can be read up to there. Nothing
 * here fails a training that runs: the first write that fails is logged, and then nothing more is written.
 */
#include "insight/internal.h"

#include <math.h>
#include <string.h>
#include <unistd.h>

enum { MOST_HYPERPARAMETERS = 64, BUCKETS = 30, MOST_RUNS = 16, TAG = 224, MOST_IMAGE = 4096, BLOCK = 4096 };

typedef struct stream {
    char name[64]; /* the folder within the board's; "": that itself */
    char *path;    /* of the file; NULL: not begun */
    int64_t at;
    bwi_wire events; /* not written yet */
} stream;

typedef struct board {
    bw_tensorboard base;
    bw_context *ctx;
    bw_tensorboard_options options;
    char *folder;
    stream streams[MOST_RUNS];
    int stream_count;
    bwi_hyperparameter list[MOST_HYPERPARAMETERS];
    int count, given; /* all of them, and those that the program gave */
    bool silent;      /* a write has failed */
    void *staging;    /* for a gradient */
    int64_t staging_floats;
    bw_model *model;   /* of the training that runs */
    double noise_last; /* the noise scale that was written last */
    char prefix[80];   /* of the variables' names */
} board;

/* ---- Files ---- */

static stream *find_stream(board *b, const char *name)
{
    for (int k = 0; k < b->stream_count; k++) {
        if (strcmp(b->streams[k].name, name) == 0) {
            return &b->streams[k];
        }
    }
    if (b->stream_count == MOST_RUNS || strlen(name) >= sizeof b->streams[0].name) {
        return NULL;
    }
    stream *s = &b->streams[b->stream_count++];
    *s = (stream){.events = {.ctx = b->ctx}};
    bwi_print(s->name, sizeof s->name, "%s", name);
    bwi_event_version(&s->events);
    return s;
}

/* Files are named as TensorFlow names them, since TensorBoard looks for that; the serial number tells runs of one second apart. */
static bw_status begin_file(board *b, stream *s)
{
    static atomic_uint serial;
    bwi_text path = {.ctx = b->ctx};
    bwi_text_add(&path, "%s%s%s", b->folder, s->name[0] ? "/" : "", s->name);
    bw_status status = path.failed ? BW_RESOURCE_EXHAUSTED : bwi_folder_make(b->ctx, path.bytes);
    if (status == BW_OK) {
        bwi_text_add(&path, "/events.out.tfevents.%010lld.batchwise.%ld.%u.v2", (long long)bwi_event_seconds(), (long)getpid(),
                     atomic_fetch_add(&serial, 1));
        s->path = path.failed ? NULL : bwi_copy_text(b->ctx, path.bytes);
        status = s->path ? BW_OK : BW_RESOURCE_EXHAUSTED;
    }
    bwi_text_free(&path);
    return status;
}

static bw_status flush(board *b)
{
    bw_status status = BW_OK;
    for (int k = 0; k < b->stream_count && status == BW_OK; k++) {
        stream *s = &b->streams[k];
        if (s->events.failed) {
            status = bwi_fail(b->ctx, BW_RESOURCE_EXHAUSTED, "%s: no memory for the events of TensorBoard", b->folder);
        } else if (s->events.length > 0) {
            status = s->path ? BW_OK : begin_file(b, s);
            status = status == BW_OK ? bwi_file_append(b->ctx, s->path, &s->at, s->events.bytes, s->events.length) : status;
            s->events.length = 0;
        }
    }
    return status;
}

/* For a training that runs. */
static void flush_or_warn(board *b)
{
    if (!b->silent && flush(b) != BW_OK) {
        bwi_log(b->ctx, BW_LOG_WARNING, "%s; nothing more is written for TensorBoard, and training goes on", b->ctx->message);
        b->silent = true;
    }
}

/* ---- Hyperparameters ---- */

static bwi_hyperparameter *find_parameter(board *b, const char *name, bool add)
{
    for (int k = 0; k < b->count; k++) {
        if (strcmp(b->list[k].name, name) == 0) {
            return add ? &b->list[k] : NULL;
        }
    }
    if (b->count == MOST_HYPERPARAMETERS) {
        return NULL;
    }
    bwi_hyperparameter *made = &b->list[b->count++];
    *made = (bwi_hyperparameter){.number = 0};
    bwi_print(made->name, sizeof made->name, "%s", name);
    return made;
}

/* What the program gave has precedence over what the training tells. */
static void add_number(board *b, const char *name, double value)
{
    bwi_hyperparameter *made = find_parameter(b, name, false);
    if (made) {
        made->number = value;
    }
}

static void add_text(board *b, const char *name, const char *text)
{
    bwi_hyperparameter *made = text && text[0] ? find_parameter(b, name, false) : NULL;
    if (made) {
        bwi_print(made->text, sizeof made->text, "%s", text);
    }
}

static void add_parameters(board *b, const bwi_observed *run)
{
    char loss[64];
    b->count = b->given;
    add_text(b, "optimizer", bw_optimizer_name(run->model));
    add_number(b, "learning_rate", bw_learning_rate(run->model));
    add_text(b, "loss", bw_loss_name(run->model, 0, loss, sizeof loss) ? loss : "");
    add_number(b, "batch", (double)run->batch);
    add_number(b, "epochs", run->options->epochs);
    add_number(b, "accumulate", run->options->accumulate);
    add_number(b, "seed", (double)run->options->seed);
}

/* ---- Images ---- */

/* Whether samples of this shape are images: height, width and one, three or four channels, or no axis for these. */
static bool is_image(const bwi_field *field, int size[3])
{
    bool plain = field->ndim == 2,
         channels = field->ndim == 3 && (field->shape[2] == 1 || field->shape[2] == 3 || field->shape[2] == 4);
    if (!(plain || channels) || field->shape[0] < 2 || field->shape[1] < 2 || field->shape[0] > MOST_IMAGE ||
        field->shape[1] > MOST_IMAGE) {
        return false;
    }
    size[0] = (int)field->shape[0];
    size[1] = (int)field->shape[1];
    size[2] = channels ? (int)field->shape[2] : 1;
    return true;
}

/* The first samples of the first epoch, as training sees them. Of a stream that is still coming nothing is taken. */
static bw_status add_images(board *b, bw_dataset *dataset)
{
    int at = bwi_dataset_find(dataset, BWI_ROLE_INPUT, 0), size[3];
    const bwi_field *field = at >= 0 ? bwi_dataset_field(dataset, at) : NULL;
    if (b->options.images < 1 || !field || !is_image(field, size) || bwi_dataset_live(dataset)) {
        return BW_OK;
    }
    int64_t count = bw_dataset_count(dataset), floats = (int64_t)size[0] * size[1] * size[2];
    int shown = count < b->options.images ? (int)count : b->options.images;
    char name[80];
    bwi_print(name, sizeof name, "x%s%s", field->name[0] ? "_" : "", field->name);
    void *values = bwi_allocate(b->ctx, (size_t)(floats * shown), sizeof(float));
    unsigned char *pixels = values ? bwi_allocate(b->ctx, (size_t)(floats * shown), 1) : NULL;
    bw_status status =
        pixels ? bwi_dataset_read_values(dataset, name, 0, shown, values, (size_t)(floats * shown)) : BW_RESOURCE_EXHAUSTED;
    if (status == BW_OK) {
        bwi_value_range range = {.count = 0};
        bwi_values_look(values, floats * shown, &range);
        bwi_values_pixels(values, floats * shown, &range, pixels);
        stream *s = find_stream(b, "train");
        if (s) {
            bwi_event_images(&s->events, "inputs", 0, shown, size[0], size[1], size[2], pixels);
        }
    }
    bwi_release(b->ctx, values);
    bwi_release(b->ctx, pixels);
    return status;
}

/* ---- What bw_fit tells ---- */

/* A folder that cannot be written is found here, before the first step. Keras has the name of a Sequential model in front of its
 * variables' names. */
static bw_status begin(bw_tensorboard *base, const bwi_observed *run)
{
    board *b = (board *)base;
    stream *root = find_stream(b, ""), *train = find_stream(b, "train");
    b->model = run->model;
    b->silent = false;
    b->noise_last = 0;
    add_parameters(b, run);
    bwi_event_experiment(&root->events, b->list, b->count, run->history);
    bwi_event_session(&root->events, b->list, b->count);
    bw_model_facts facts;
    bw_status status = bwi_describe_model(run->model, &facts);
    if (status != BW_OK) {
        return status;
    }
    bwi_print(b->prefix, sizeof b->prefix, "%s%s", facts.sequential ? facts.name : "", facts.sequential ? "/" : "");
    status = b->options.graph ? bwi_event_graph(&train->events, run->model) : BW_OK;
    status = status == BW_OK ? add_images(b, run->training) : status;
    return status == BW_OK ? flush(b) : status;
}

static bool due(const board *b, int epoch)
{
    return b->options.histograms > 0 && epoch % b->options.histograms == 0 && !b->silent;
}

static void *staging(bw_tensorboard *base, int epoch, int64_t floats)
{
    board *b = (board *)base;
    if (due(b, epoch) && floats > b->staging_floats) {
        bwi_release(b->ctx, b->staging);
        b->staging = bwi_try_allocate(b->ctx, (size_t)floats, sizeof(float));
        b->staging_floats = b->staging ? floats : 0;
    }
    return due(b, epoch) ? b->staging : NULL;
}

static void gradient(bw_tensorboard *base, const bwi_variable *variable, const void *sum, int64_t count, double divisor, int epoch)
{
    board *b = (board *)base;
    bwi_value_range range = {.count = 0};
    int64_t counts[BUCKETS] = {0};
    char tag[TAG];
    bwi_values_look(sum, count, &range);
    bwi_values_count(sum, count, &range, BUCKETS, counts);
    bwi_print(tag, sizeof tag, "%s%s/gradient", b->prefix, variable->name);
    bwi_event_histogram(&find_stream(b, "train")->events, tag, epoch, &range, divisor > 0 ? divisor : 1, BUCKETS, counts);
}

/* Goes over a variable twice, block by block: for its range, then for its distribution. */
static void add_weights(board *b, const bwi_variable *variable, int epoch)
{
    float values[BLOCK];
    bwi_value_range range = {.count = 0};
    int64_t counts[BUCKETS] = {0}, all = bwi_shape_count(&variable->shape);
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t first = 0; first < all; first += BLOCK) {
            int64_t count = all - first < BLOCK ? all - first : BLOCK;
            bwi_variable_read_part(variable, first, count, values);
            if (pass == 0) {
                bwi_values_look(values, count, &range);
            } else {
                bwi_values_count(values, count, &range, BUCKETS, counts);
            }
        }
    }
    char tag[TAG];
    bwi_print(tag, sizeof tag, "%s%s/histogram", b->prefix, variable->name);
    bwi_event_histogram(&find_stream(b, "train")->events, tag, epoch, &range, 1, BUCKETS, counts);
}

static int64_t every(const bw_tensorboard *base)
{
    return ((const board *)base)->options.log_steps;
}

static void step(bw_tensorboard *base, const bw_progress *progress)
{
    board *b = (board *)base;
    stream *s = find_stream(b, "train");
    for (int c = 0; !b->silent && c < bw_history_columns(progress->logs); c++) {
        const char *column = bw_history_column(progress->logs, c);
        double value = bw_history_last(progress->logs, column);
        if (strncmp(column, "val_", 4) != 0 && !isnan(value)) {
            char tag[TAG];
            bwi_print(tag, sizeof tag, "batch_%s", column);
            bwi_event_scalar(&s->events, tag, progress->update, value);
        }
    }
}

/* Keras logs the learning rate by itself, and evaluations once more over the updates. */
static void add_columns(board *b, const bw_progress *progress)
{
    stream *train = find_stream(b, "train");
    for (int c = 0; c < bw_history_columns(progress->logs); c++) {
        const char *column = bw_history_column(progress->logs, c);
        double value = bw_history_last(progress->logs, column);
        bool validation = strncmp(column, "val_", 4) == 0;
        stream *s = validation ? find_stream(b, "validation") : train;
        char tag[TAG];
        if (s && strcmp(column, "learning_rate") != 0) {
            bwi_print(tag, sizeof tag, "epoch_%s", validation ? column + 4 : column);
            bwi_event_scalar(&s->events, tag, progress->epoch, value);
        }
        if (s && validation) {
            bwi_print(tag, sizeof tag, "evaluation_%s_vs_iterations", column + 4);
            bwi_event_scalar(&s->events, tag, progress->update, value);
        }
    }
    bwi_event_scalar(&train->events, "epoch_learning_rate", progress->epoch, bw_learning_rate(b->model));
}

/* Memory, and what the ledger knows so far: the share of the time in which workers computed, and that in which they waited for
 * data. */
static void add_resources(board *b, const bw_progress *progress)
{
    bwi_wire *events = &find_stream(b, "train")->events;
    int epoch = progress->epoch;
    (void)bwi_history_refresh(progress->history);
    bw_run_facts run = bw_history_facts(progress->history);
    bw_profile_facts profile = bw_history_profile(progress->history);
    double busy = 0, waited = 0, all = profile.step_seconds * profile.workers;
    for (int k = 0; k < profile.parts; k++) {
        bw_part part = bwi_history_part(progress->history, k);
        waited += part.kind == BW_PART_DATA ? part.seconds : 0;
        bool idle =
            part.kind == BW_PART_DATA || part.kind == BW_PART_IDLE || part.kind == BW_PART_OVERHEAD || part.kind == BW_PART_RANKS;
        busy += idle ? 0 : part.seconds;
    }
    bwi_event_scalar(events, "resources/memory_bytes", epoch, (double)run.peak_bytes);
    bwi_event_scalar(events, "resources/planned_bytes", epoch, (double)run.planned_bytes);
    if (progress->seconds > 0) {
        bwi_event_scalar(events, "resources/samples_per_second", epoch, (double)progress->samples / progress->seconds);
    }
    if (all > 0) {
        bwi_event_scalar(events, "resources/utilisation", epoch, busy / all);
        bwi_event_scalar(events, "resources/data_wait", epoch, waited / all);
    }
    bw_noise_facts noise = bw_history_noise(progress->history);
    if (noise.raw.determined && noise.raw.scale != b->noise_last) {
        bwi_event_scalar(events, "resources/noise_scale", epoch, noise.raw.scale);
        b->noise_last = noise.raw.scale;
    }
}

static void epoch(bw_tensorboard *base, const bw_progress *progress)
{
    board *b = (board *)base;
    if (b->silent) {
        return;
    }
    add_columns(b, progress);
    add_resources(b, progress);
    for (int v = 0; due(b, progress->epoch) && v < b->model->graph.variable_count; v++) {
        add_weights(b, b->model->graph.variables[v], progress->epoch);
    }
    flush_or_warn(b);
}

static void end(bw_tensorboard *base, bw_status status)
{
    board *b = (board *)base;
    bwi_event_session_end(&find_stream(b, "")->events, status != BW_OK && status != BW_CANCELLED);
    if (status == BW_OK || status == BW_CANCELLED) {
        flush_or_warn(b);
    } else if (!b->silent) {
        char message[sizeof b->ctx->message]; /* the failure of the training is the one to be told */
        bwi_print(message, sizeof message, "%s", b->ctx->message);
        (void)flush(b);
        bwi_print(b->ctx->message, sizeof message, "%s", message);
    }
    bwi_release(b->ctx, b->staging);
    b->staging = NULL;
    b->staging_floats = 0;
    b->model = NULL;
}

static const bwi_observer_calls CALLS = {
    .begin = begin, .staging = staging, .gradient = gradient, .every = every, .step = step, .epoch = epoch, .end = end};

/* ---- Public functions ---- */

static void destroy(bwi_owned *object)
{
    board *b = (board *)(void *)object;
    for (int k = 0; k < b->stream_count; k++) {
        bwi_release(b->ctx, b->streams[k].path);
        bwi_wire_free(&b->streams[k].events);
    }
    bwi_release(b->ctx, b->staging);
    bwi_release(b->ctx, b->folder);
}

bw_tensorboard *bw_tensorboard_new(bw_context *ctx, const char *folder, const bw_tensorboard_options *options)
{
    bw_tensorboard_options chosen = BW_TENSORBOARD_OPTIONS_DEFAULT;
    if (!ctx) {
        return NULL;
    }
    if (!folder || !folder[0]) {
        return bwi_fail_build(ctx, BW_INVALID_ARGUMENT, "bw_tensorboard_new: there is no folder");
    }
    if (bwi_options_copy(ctx, &chosen, sizeof chosen, options, "bw_tensorboard_options") != BW_OK) {
        return bwi_pass_on(ctx);
    }
    if (chosen.histograms < 0 || chosen.log_steps < 0 || chosen.images < 0) {
        return bwi_fail_build(ctx, BW_INVALID_ARGUMENT, "bw_tensorboard_options: expected numbers of 0 and more");
    }
    board *b = bwi_own(ctx, sizeof *b, destroy);
    if (!b) {
        return NULL;
    }
    b->base.calls = &CALLS;
    b->ctx = ctx;
    b->options = chosen;
    b->folder = bwi_copy_text(ctx, folder);
    if (!b->folder || bwi_folder_make(ctx, folder) != BW_OK) {
        bwi_disown(b);
        return bwi_pass_on(ctx);
    }
    return &b->base;
}

static bw_status set_parameter(board *b, const char *name, double value, const char *text)
{
    bwi_hyperparameter *made = name && name[0] && strlen(name) < sizeof made->name ? find_parameter(b, name, true) : NULL;
    if (!made || (text && strlen(text) >= sizeof made->text)) {
        return bwi_fail(b->ctx, BW_INVALID_ARGUMENT,
                        "hyperparameters: expected at most %d, with names of up to 63 and texts of up to 191 "
                        "bytes",
                        MOST_HYPERPARAMETERS);
    }
    made->number = value;
    bwi_print(made->text, sizeof made->text, "%s", text ? text : "");
    b->given = b->count;
    return BW_OK;
}

bw_status bw_tensorboard_number(bw_tensorboard *base, const char *name, double value)
{
    board *b = (board *)base;
    bw_status status = b ? bwi_call_begin(b->ctx) : BW_INVALID_ARGUMENT;
    return status == BW_OK ? bwi_call_end(b->ctx, set_parameter(b, name, value, NULL)) : status;
}

bw_status bw_tensorboard_text(bw_tensorboard *base, const char *name, const char *text)
{
    board *b = (board *)base;
    bw_status status = b ? bwi_call_begin(b->ctx) : BW_INVALID_ARGUMENT;
    return status == BW_OK ? bwi_call_end(b->ctx, set_parameter(b, name, 0, text ? text : "")) : status;
}

static bw_status write_scalar(board *b, const char *run, const char *tag, int64_t at, double value)
{
    stream *s = run && tag ? find_stream(b, run) : NULL;
    if (!s || strstr(run, "..")) {
        return bwi_fail(b->ctx, BW_INVALID_ARGUMENT,
                        "bw_tensorboard_scalar: expected a tag, and one of at most %d runs by a short name", MOST_RUNS);
    }
    bwi_event_scalar(&s->events, tag, at, value);
    return flush(b);
}

bw_status bw_tensorboard_scalar(bw_tensorboard *base, const char *run, const char *tag, int64_t at, double value)
{
    board *b = (board *)base;
    bw_status status = b ? bwi_call_begin(b->ctx) : BW_INVALID_ARGUMENT;
    return status == BW_OK ? bwi_call_end(b->ctx, write_scalar(b, run, tag, at, value)) : status;
}

void bw_tensorboard_free(bw_tensorboard *base)
{
    bwi_disown(base);
}
