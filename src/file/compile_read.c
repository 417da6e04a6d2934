/*
 * Keras's compile_config as texts for bw_compile: optimizer with schedule, losses, metrics, for one output or several. What has
 * no name in the tables of train is refused.
 */
#include "file/internal.h"

#include <string.h>

/* ---- Optimizers ---- */

static bool optimizer_neutral(const char *key, const bwi_json *value)
{
    static const char *const any[] = {"name", "jit_compile", "is_legacy_optimizer", "run_eagerly", "steps_per_execution"};
    for (size_t i = 0; i < BWI_COUNT(any); i++) {
        if (strcmp(key, any[i]) == 0) {
            return true;
        }
    }
    double number = 0;
    /* decay of 0 stands in files of older versions. */
    return bwi_json_kind_of(value) == BWI_JSON_NULL ||
           (strcmp(key, "decay") == 0 && bwi_json_number(value, &number) && number == 0);
}

static const bwi_optimizer_row *find_optimizer(const char *name)
{
    for (int i = 0; name && bwi_optimizer_rows[i]; i++) {
        if (strcmp(bwi_optimizer_rows[i]->class_name, name) == 0 || strcmp(bwi_optimizer_rows[i]->name, name) == 0) {
            return bwi_optimizer_rows[i];
        }
    }
    return NULL;
}

static bw_status optimizer_text(bwi_keras *k, const bwi_json *json, bwi_text *text)
{
    const char *name = bwi_json_text(json) ? bwi_json_text(json) : bwi_json_text(bwi_json_get(json, "class_name"));
    /* Some versions before Keras 3 registered their own optimizers as they do a user's; a user's has a module then. */
    bool registered = name && strncmp(name, "Custom>", 7) == 0 && !bwi_json_get(json, "module");
    const bwi_optimizer_row *row = find_optimizer(registered ? name + 7 : name);
    snprintf(k->what, sizeof k->what, "compile_config");
    if (!row || (bwi_json_kind_of(json) == BWI_JSON_OBJECT && !registered && !bwi_keras_is_own(json))) {
        return bwi_keras_refuse(k, "optimizer", json);
    }
    snprintf(k->what, sizeof k->what, "optimizer %s", row->class_name);
    return bwi_keras_call_text(k, row->name, bwi_json_get(json, "config"), row->arguments, row->argument_count, optimizer_neutral,
                               text);
}

/* ---- Losses and metrics ---- */

/* Classes of metrics are named as in texts but for the case; only these are something else under Keras's class name. */
static bool is_another(const char *class_name)
{
    return strcmp(class_name, "Accuracy") == 0;
}

/* Options that Keras writes whatever they are, and that mean nothing at these values; any other value must be refused, not
 * ignored. */
static bool end_neutral(const char *key, const bwi_json *value)
{
    static const struct {
        const char *key, *text;
        double number;
    } standard[] = {{"axis", NULL, -1}, {"fn", NULL, 0}, {"thresholds", NULL, 0.5}, {"num_labels", NULL, 0}};
    double number = 0;
    const char *text = bwi_json_text(value);
    if (strcmp(key, "reduction") == 0) { /* end_text has it */
        return true;
    }
    if (bwi_json_kind_of(value) == BWI_JSON_NULL || strcmp(key, "name") == 0) {
        return true;
    }
    if (strcmp(key, "dtype") == 0) {
        return bwi_keras_is_float32(value);
    }
    if (strcmp(key, "multi_label") == 0 || strcmp(key, "from_logits") == 0) {
        return bwi_json_kind_of(value) == BWI_JSON_BOOL && !bwi_json_true(value);
    }
    for (size_t i = 0; i < BWI_COUNT(standard); i++) {
        if (strcmp(key, standard[i].key) == 0) {
            return standard[i].text ? text && strcmp(text, standard[i].text) == 0
                                    : bwi_json_number(value, &number) && number == standard[i].number;
        }
    }
    return false;
}

typedef struct end {
    const char *name; /* the row's first */
    int name_length;
    const bwi_argument *arguments;
    int argument_count;
} end;

static bool find_end(const char *name, bool metric, end *found)
{
    const bwi_metric_row *row = bwi_metric_rows;
    while (row->names && !bwi_listed(row->names, name, strlen(name))) {
        row++;
    }
    const bwi_loss_row *loss = bwi_loss_row_find(name, strlen(name));
    const char *names = metric && row->names ? row->names : loss ? loss->names : NULL;
    if (!names) {
        return false;
    }
    bool own = metric && row->names;
    *found = (end){.name = names,
                   .name_length = (int)strcspn(names, " "),
                   .arguments = own ? row->arguments : loss->arguments,
                   .argument_count = own ? row->argument_count : loss->argument_count};
    return true;
}

/* Appends options to a call that ends with ")". */
static void add_option(bwi_text *text, const char *key, const char *value)
{
    if (text->failed) {
        return;
    }
    text->length--;
    bwi_text_add(text, "%s%s=%s)", text->bytes[text->length - 1] == '(' ? "" : ",", key, value);
}

/* Without a reduction (null or none) a loss is not one number, which Keras refuses to train. */
static bw_status add_reduction(const bwi_keras *k, const bwi_json *json, bwi_text *text)
{
    const char *word = bwi_json_text(json);
    int found = 0;
    while (word && found < BWI_REDUCTIONS && strcmp(bwi_reduction_names[found], word) != 0) {
        found++;
    }
    if (!word || found == BWI_REDUCTIONS) {
        return bwi_keras_refuse(k, "reduction", json);
    }
    if (found != BWI_LOSS_MEAN) {
        add_option(text, "reduction", word);
    }
    return BW_OK;
}

/* One loss or metric: a name, a function or an object. */
static bw_status end_text(bwi_keras *k, const bwi_json *json, const char *key, const char *place, bool metric, bool weighted,
                          bwi_text *text)
{
    const bwi_json *config = bwi_json_get(json, "config");
    const char *class_name = bwi_json_text(bwi_json_get(json, "class_name"));
    /* Before Keras 3 a metric by function was an object that wraps it. */
    const char *wrapped =
        metric && class_name && strcmp(class_name, "MeanMetricWrapper") == 0 ? bwi_json_text(bwi_json_get(config, "fn")) : NULL;
    bool function = wrapped || (class_name && strcmp(class_name, "function") == 0);
    const char *name = wrapped ? wrapped : function ? bwi_json_text(config) : class_name ? class_name : bwi_json_text(json);
    const char *given = function && !wrapped ? NULL : bwi_json_text(bwi_json_get(config, "name"));
    end found;
    snprintf(k->what, sizeof k->what, "%s", place);
    if (!name || (class_name && !bwi_keras_is_own(json)) || !find_end(name, metric, &found) ||
        (!function && class_name && metric && is_another(name))) {
        return bwi_keras_refuse(k, key, json);
    }
    /* A word keeps its form: it is the name of the history's column. */
    char word[64];
    snprintf(word, sizeof word, "%.*s", class_name && !function ? found.name_length : 63,
             class_name && !function ? found.name : name);
    snprintf(k->what, sizeof k->what, "%s: %s %s", place, key, word);
    bw_status status =
        bwi_keras_call_text(k, word, function ? NULL : config, found.arguments, found.argument_count, end_neutral, text);
    const char *reduction = bwi_json_text(bwi_json_get(config, "reduction"));
    bool standard = reduction && strcmp(reduction, "auto") == 0; /* of older versions */
    if (status == BW_OK && !metric && bwi_json_get(config, "reduction") && !standard) {
        status = add_reduction(k, bwi_json_get(config, "reduction"), text);
    }
    if (status == BW_OK && metric && given && strcmp(given, word) != 0) {
        bwi_text shown = {.ctx = k->ctx};
        status = bwi_keras_value_text(k, "name", bwi_json_get(config, "name"), &shown);
        if (status == BW_OK) {
            add_option(text, "name", shown.bytes);
        }
        bwi_text_free(&shown);
    }
    if (status == BW_OK && weighted) {
        add_option(text, "weighted", "true");
    }
    return status;
}

/* A list of layers whose input is not known yet will have one output. */
static int outputs_of(const bw_model *model)
{
    return model->output_count > 1 ? model->output_count : 1;
}

typedef struct ends {
    bwi_keras *k;
    const bw_model *model;
    const char *key;
    bool metric, weighted;
    bwi_text *text;
    int *outputs, count; /* of metrics: which output each is for; -1: for the only one */
} ends;

/* `output` -1: the only one. Messages name the others. */
static bw_status add_end(ends *e, const bwi_json *json, int output)
{
    if (bwi_json_kind_of(json) == BWI_JSON_NULL) {
        return BW_OK;
    }
    char place[128] = "compile_config";
    if (output >= 0) {
        snprintf(place, sizeof place, "compile_config: output %s", bwi_output_name(e->model, output));
    }
    bwi_text one = {.ctx = e->k->ctx};
    bw_status status = end_text(e->k, json, e->key, place, e->metric, e->weighted, &one);
    if (status == BW_OK && e->metric && e->count == BWI_MAX_METRICS) {
        status = bwi_keras_refuse(e->k, e->key, json);
    }
    if (status == BW_OK) {
        bwi_text_add(e->text, "%s%s", e->text->length ? "," : "", one.bytes);
        if (e->metric) {
            e->outputs[e->count++] = output;
        }
    }
    bwi_text_free(&one);
    return status;
}

/* What an object says of an output: by the name it has here, or that of its layer, which two outputs may share. */
static bool is_output(const char *name, const bw_model *model, int output)
{
    char local[BWI_LOCAL_NAME];
    bwi_keras_local_name(local, "", name);
    return strcmp(local, bwi_output_name(model, output)) == 0;
}

static const bwi_json *get_output(const bwi_json *json, const bw_model *model, int output)
{
    const char *name = NULL;
    for (const bwi_json *value; (value = bwi_json_next(json, &name));) {
        if (is_output(name, model, output)) {
            return value;
        }
    }
    return bwi_json_get(json, model->outputs[output]->name);
}

static bool is_object(const bwi_json *json)
{
    return bwi_json_kind_of(json) == BWI_JSON_OBJECT && !bwi_json_get(json, "class_name");
}

/* An object's names must be the outputs'. */
static bw_status check_names(const ends *e, const bwi_json *json)
{
    const char *name = NULL;
    while (is_object(json) && bwi_json_next(json, &name)) {
        bool known = outputs_of(e->model) == 1;
        for (int k = 0; k < outputs_of(e->model); k++) {
            known = known || is_output(name, e->model, k) || strcmp(name, e->model->outputs[k]->name) == 0;
        }
        if (!known) {
            return bwi_fail_file(e->k->ctx, BW_INVALID_ARGUMENT, e->k->path, "compile_config: %s: the model has no output '%.60s'",
                                 e->key, name);
        }
    }
    return BW_OK;
}

/* Of a list: one for each output; of an object: by the outputs' names; of anything else: the same for all. */
static const bwi_json *of_output(const bw_model *model, const bwi_json *json, int output)
{
    if (is_object(json)) {
        const char *name = NULL;
        return outputs_of(model) == 1 ? bwi_json_next(json, &name) : get_output(json, model, output);
    }
    return bwi_json_kind_of(json) == BWI_JSON_LIST ? bwi_json_at(json, output) : json;
}

/* Metrics: all of a list are for the only output. */
static bw_status add_metrics(ends *e, const bwi_json *json)
{
    const bw_model *model = e->model;
    bool several = outputs_of(model) > 1;
    bw_status status = check_names(e, json);
    if (status == BW_OK && several && bwi_json_kind_of(json) == BWI_JSON_LIST && bwi_json_count(json) > outputs_of(model)) {
        status = bwi_keras_refuse(e->k, e->key, json);
    }
    for (int k = 0; k < outputs_of(model) && status == BW_OK; k++) {
        const bwi_json *own = several || is_object(json) ? of_output(model, json, k) : json;
        if (!several && bwi_json_count(own) == 1 && bwi_json_kind_of(bwi_json_at(own, 0)) == BWI_JSON_LIST) {
            own = bwi_json_at(own, 0); /* of older versions */
        }
        bool list = bwi_json_kind_of(own) == BWI_JSON_LIST;
        for (int i = 0; own && i < (list ? bwi_json_count(own) : 1) && status == BW_OK; i++) {
            status = add_end(e, list ? bwi_json_at(own, i) : own, several ? k : -1);
        }
    }
    return status;
}

/* Losses by place, "none" where there is none; each with its weight. */
static bw_status add_losses(ends *e, const bwi_json *json, const bwi_json *weights)
{
    const bw_model *model = e->model;
    bw_status status = check_names(e, json);
    if (status == BW_OK) {
        status = check_names(&(ends){.k = e->k, .model = model, .key = "loss_weights"}, weights);
    }
    if (status == BW_OK && bwi_json_kind_of(json) == BWI_JSON_LIST && bwi_json_count(json) != outputs_of(model)) {
        status = bwi_keras_refuse(e->k, e->key, json);
    }
    for (int k = 0; k < outputs_of(model) && status == BW_OK; k++) {
        const bwi_json *own = of_output(model, json, k), *weight = of_output(model, weights, k);
        double number;
        char text[BWI_SHORTEST_SIZE];
        if (bwi_json_kind_of(own) <= BWI_JSON_NULL) {
            bwi_text_add(e->text, "%snone", k ? "," : "");
            continue;
        }
        status = add_end(e, own, outputs_of(model) > 1 ? k : -1);
        if (status == BW_OK && bwi_json_kind_of(weight) > BWI_JSON_NULL) {
            snprintf(e->k->what, sizeof e->k->what, "compile_config");
            if (!bwi_json_number(weight, &number)) {
                return bwi_keras_refuse(e->k, "loss_weights", weight);
            }
            add_option(e->text, "weight", bwi_shortest(text, number));
        }
    }
    return status;
}

/* What remains of the configuration is how Keras calls its functions, not what they compute. */
static bw_status check_rest(bwi_keras *k, const bwi_json *config)
{
    static const char *const known[] = {"optimizer",           "loss",
                                        "loss_weights",        "metrics",
                                        "weighted_metrics",    "run_eagerly",
                                        "jit_compile",         "auto_scale_loss",
                                        "steps_per_execution", "optimizer_config",
                                        "sample_weight_mode"};
    const char *key = NULL;
    for (const bwi_json *value; (value = bwi_json_next(config, &key));) {
        bool accepted = bwi_json_kind_of(value) == BWI_JSON_NULL;
        for (size_t i = 0; i < BWI_COUNT(known); i++) {
            accepted = accepted || strcmp(key, known[i]) == 0;
        }
        if (!accepted) {
            return bwi_keras_refuse(k, key, value);
        }
    }
    return BW_OK;
}

/* All parts, or those that `left_out` (BWI_PART_...) does not name, which have their defaults. */
static bw_status read_parts(bw_model *model, const char *path, const bwi_json *config, const bwi_json *optimizer, unsigned left_out)
{
    bwi_keras k = {.ctx = model->ctx, .path = path, .what = "compile_config"};
    const bwi_json *loss = bwi_json_get(config, "loss");
    const bwi_json *metrics = bwi_json_get(config, "metrics"), *weighted = bwi_json_get(config, "weighted_metrics");
    bool with_loss = !(left_out & BWI_PART_LOSS), with_metrics = !(left_out & BWI_PART_METRICS);
    bwi_text texts[3] = {{.ctx = k.ctx}, {.ctx = k.ctx}, {.ctx = k.ctx}};
    int outputs[BWI_MAX_METRICS];
    ends losses = {.k = &k, .model = model, .key = "loss", .text = &texts[1]};
    ends listed = {.k = &k, .model = model, .key = "metrics", .metric = true, .text = &texts[2], .outputs = outputs};
    bw_status status = with_loss ? check_rest(&k, config) : BW_OK;
    status = status == BW_OK && !(left_out & BWI_PART_OPTIMIZER) ? optimizer_text(&k, optimizer, &texts[0]) : status;
    if (status == BW_OK && with_loss && bwi_json_kind_of(loss) > BWI_JSON_NULL) {
        status = add_losses(&losses, loss, bwi_json_get(config, "loss_weights"));
    }
    status = status == BW_OK && with_metrics && bwi_json_kind_of(metrics) > BWI_JSON_NULL ? add_metrics(&listed, metrics) : status;
    listed.key = "weighted_metrics";
    listed.weighted = true;
    status =
        status == BW_OK && with_metrics && bwi_json_kind_of(weighted) > BWI_JSON_NULL ? add_metrics(&listed, weighted) : status;
    for (int i = 0; i < 3 && status == BW_OK; i++) {
        status = texts[i].failed ? BW_RESOURCE_EXHAUSTED : BW_OK;
    }
    if (status == BW_OK) { /* no metrics are none, not the default */
        const char *none = with_metrics ? "" : NULL;
        status = bwi_model_compile(model, texts[0].bytes, texts[1].bytes, texts[2].bytes ? texts[2].bytes : none);
    }
    bwi_training *t = model->training;
    for (int m = 0; status == BW_OK && m < listed.count; m++) { /* names of any letters, which no text could label */
        if (outputs[m] >= 0) {
            snprintf(t->metrics[m].output, sizeof t->metrics[m].output, "%s", bwi_output_name(model, outputs[m]));
        }
    }
    for (int i = 0; i < 3; i++) {
        bwi_text_free(&texts[i]);
    }
    return status;
}

static bool is_refusal(bw_status status)
{
    return status == BW_UNIMPLEMENTED || status == BW_INVALID_ARGUMENT;
}

/* A metric that is not offered does not keep anybody from predicting, so that what cannot be read is remembered and refused when
 * it is needed. Each part is tried by itself, so that what can be read is kept. */
bw_status bwi_keras_read_training(bw_model *model, const char *path, const bwi_json *config, const bwi_json *optimizer)
{
    bwi_text message = {.ctx = model->ctx};
    unsigned unread = 0;
    if (bwi_json_kind_of(optimizer) <= BWI_JSON_NULL) {
        return BW_OK;
    }
    bw_status status = read_parts(model, path, config, optimizer, 0), refused = status;
    if (!is_refusal(status)) {
        return status;
    }
    bool named = strncmp(model->ctx->message, path, strlen(path)) == 0;
    bwi_text_add(&message, "%s%s%s", named ? "" : path, named ? "" : ": ", model->ctx->message);
    for (unsigned part = 1; part < BWI_PART_ALL; part <<= 1) {
        unread |= is_refusal(read_parts(model, path, config, optimizer, BWI_PART_ALL & ~part)) ? part : 0;
    }
    unread = unread ? unread : BWI_PART_ALL;
    status = message.failed ? BW_RESOURCE_EXHAUSTED : read_parts(model, path, config, optimizer, unread);
    if (status == BW_OK) {
        bwi_training_leave_out(model->training, unread, refused, message.bytes);
        bwi_log(model->ctx, BW_LOG_WARNING, "%s: the model can predict, but not be trained as it is", message.bytes);
    }
    bwi_text_free(&message);
    return status;
}

bw_status bwi_keras_read_compile(bw_model *model, const char *path, const bwi_json *config)
{
    return bwi_keras_read_training(model, path, config, bwi_json_get(config, "optimizer"));
}
