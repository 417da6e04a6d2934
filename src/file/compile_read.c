/*
 * Translates Keras's compile_config (optimizer with schedule, losses, metrics, for one output or several) into texts for
 * bw_compile. Anything that has no name in the tables of train is refused.
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
    /* Files of older versions state a decay of 0. */
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
    /* Some versions before Keras 3 registered their own optimizers in the way they register a user's; a user's optimizer also
     * has a module. */
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

/* Texts name metrics as Keras names their classes, apart from case. These are the only class names that mean a different metric
 * here. */
static bool is_another(const char *class_name)
{
    return strcmp(class_name, "Accuracy") == 0;
}

/* Keras always writes these options, and at these values they have no effect. Any other value must be refused, not ignored. */
static bool end_neutral(const char *key, const bwi_json *value)
{
    static const struct {
        const char *key, *text;
        double number;
    } standard[] = {{"axis", NULL, -1}, {"fn", NULL, 0}, {"thresholds", NULL, 0.5}, {"num_labels", NULL, 0}};
    double number = 0;
    const char *text = bwi_json_text(value);
    if (strcmp(key, "reduction") == 0) { /* end_text reads it */
        return true;
    }
    if (bwi_json_kind_of(value) == BWI_JSON_NULL || strcmp(key, "name") == 0) {
        return true;
    }
    if (strcmp(key, "dtype") == 0) { /* intersections over unions are counted in whole numbers */
        const char *policy = bwi_json_text(bwi_json_get(bwi_json_get(value, "config"), "name")), *name = text ? text : policy;
        return bwi_keras_is_float32(value) || (name && strncmp(name, "int", 3) == 0);
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
    const char *name; /* the first name of the row */
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

/* A loss without a reduction (null or none) is not a single number, and Keras refuses to train it. */
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

/* Reads one loss or metric, which may be a name, a function or an object. */
static bw_status end_text(bwi_keras *k, const bwi_json *json, const char *key, const char *where, bool metric, bool weighted,
                          bwi_text *text)
{
    const bwi_json *config = bwi_json_get(json, "config");
    const char *class_name = bwi_json_text(bwi_json_get(json, "class_name"));
    /* Before Keras 3, a metric given as a function was an object that wraps it. */
    const char *wrapped =
        metric && class_name && strcmp(class_name, "MeanMetricWrapper") == 0 ? bwi_json_text(bwi_json_get(config, "fn")) : NULL;
    bool function = wrapped || (class_name && strcmp(class_name, "function") == 0);
    const char *name = wrapped ? wrapped : function ? bwi_json_text(config) : class_name ? class_name : bwi_json_text(json);
    const char *given = function && !wrapped ? NULL : bwi_json_text(bwi_json_get(config, "name"));
    end found;
    snprintf(k->what, sizeof k->what, "%s", where);
    if (!name || (class_name && !bwi_keras_is_own(json)) || !find_end(name, metric, &found) ||
        (!function && class_name && metric && is_another(name))) {
        return bwi_keras_refuse(k, key, json);
    }
    /* A word keeps its spelling, because it becomes the name of the history's column. */
    char word[64];
    snprintf(word, sizeof word, "%.*s", class_name && !function ? found.name_length : 63,
             class_name && !function ? found.name : name);
    snprintf(k->what, sizeof k->what, "%s: %s %s", where, key, word);
    bw_status status =
        bwi_keras_call_text(k, word, function ? NULL : config, found.arguments, found.argument_count, end_neutral, text);
    const char *reduction = bwi_json_text(bwi_json_get(config, "reduction"));
    bool standard = reduction && strcmp(reduction, "auto") == 0; /* older versions write this */
    if (status == BW_OK && !metric && bwi_json_get(config, "reduction") && !standard) {
        status = add_reduction(k, bwi_json_get(config, "reduction"), text);
    }
    if (status == BW_OK && metric && given && strcmp(given, word) != 0) {
        bwi_text shown = {.ctx = k->ctx};
        status = bwi_keras_value_text(k, "name", bwi_json_get(config, "name"), &shown);
        text->failed = text->failed || shown.failed;
        if (status == BW_OK) {
            add_option(text, "name", shown.bytes);
        }
        bwi_text_free(&shown);
    }
    if (status == BW_OK && weighted) {
        add_option(text, "weighted", "true");
    }
    return status == BW_OK && text->failed ? BW_RESOURCE_EXHAUSTED : status;
}

/* A list of layers will have one output even if its input is not known yet. */
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
    int *outputs, count; /* the output of each metric; -1: the only one */
} ends;

/* Adds one loss or metric. `output` is -1 for a model with one output; with several, messages name the output. */
static bw_status add_end(ends *e, const bwi_json *json, int output)
{
    if (bwi_json_kind_of(json) == BWI_JSON_NULL) {
        return BW_OK;
    }
    char where[128] = "compile_config";
    if (output >= 0) {
        snprintf(where, sizeof where, "compile_config: output %s", bwi_output_name(e->model, output));
    }
    bwi_text one = {.ctx = e->k->ctx};
    bw_status status = end_text(e->k, json, e->key, where, e->metric, e->weighted, &one);
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

/* An object may refer to an output by its name here, or by its layer's name, which two outputs may share. */
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

/* Checks that every name in an object is an output's. */
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

/* A list has one element for each output and an object has the outputs' names as keys; anything else applies to all outputs. */
static const bwi_json *of_output(const bw_model *model, const bwi_json *json, int output)
{
    if (is_object(json)) {
        const char *name = NULL;
        return outputs_of(model) == 1 ? bwi_json_next(json, &name) : get_output(json, model, output);
    }
    return bwi_json_kind_of(json) == BWI_JSON_LIST ? bwi_json_at(json, output) : json;
}

/* If there is only one output, all metrics of a list belong to it. */
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
            own = bwi_json_at(own, 0); /* older versions nest the list once more */
        }
        bool list = bwi_json_kind_of(own) == BWI_JSON_LIST;
        for (int i = 0; own && i < (list ? bwi_json_count(own) : 1) && status == BW_OK; i++) {
            status = add_end(e, list ? bwi_json_at(own, i) : own, several ? k : -1);
        }
    }
    return status;
}

/* Adds the losses in the order of the outputs, each with its weight, and "none" for an output without a loss. */
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

/* The remaining keys say how Keras calls its functions, not what they compute. */
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

/* Reads all parts except those in `left_out` (BWI_PART_...), which get their defaults. */
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
    if (status == BW_OK) { /* an empty list means no metrics, not the default ones */
        const char *none = with_metrics ? "" : NULL;
        status = bwi_model_compile(model, texts[0].bytes, texts[1].bytes, texts[2].bytes ? texts[2].bytes : none);
    }
    bwi_training *t = model->training;
    for (int m = 0; status == BW_OK && m < listed.count; m++) { /* names may have letters that a label in a text may not */
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

/* An unsupported metric should not prevent anyone from predicting. So a part that cannot be read is remembered, and refused only
 * when it is needed; each part is tried separately, so that the readable ones are kept. */
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
    status = message.failed ? BW_RESOURCE_EXHAUSTED : BW_OK;
    for (unsigned part = 1; part < BWI_PART_ALL && status == BW_OK; part <<= 1) {
        status = read_parts(model, path, config, optimizer, BWI_PART_ALL & ~part);
        unread |= is_refusal(status) ? part : 0;
        status = is_refusal(status) ? BW_OK : status;
    }
    unread = unread ? unread : BWI_PART_ALL;
    status = status == BW_OK ? read_parts(model, path, config, optimizer, unread) : status;
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
