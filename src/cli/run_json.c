/*
 * Writes run.json of a run directory (docs/reference/run-directory.md): what was asked for, what the plan was, and what came of it.
 */
#include "cli/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Computes FNV-1a over the values of at most 64 samples, spread evenly: enough to notice other data, and cheap for large
 * datasets. */
static bool hash_field(uint64_t *hash, bw_dataset *dataset, const char *field)
{
    enum { LOOKED_AT = 64 };
    int64_t shape[BW_MAX_NDIM], each = 1, samples = bw_dataset_count(dataset);
    int ndim = bw_dataset_field(dataset, field, shape);
    for (int i = 0; i < ndim; i++) {
        each *= shape[i];
    }
    float *values = ndim < 0 ? NULL : calloc((size_t)each, sizeof *values);
    for (int64_t i = 0; values && i < LOOKED_AT && i < samples; i++) {
        int64_t number = samples <= LOOKED_AT ? i : i * (samples / LOOKED_AT);
        if (bw_dataset_values(dataset, field, number, 1, values, (size_t)each) != BW_OK) {
            free(values);
            return false;
        }
        const unsigned char *bytes = (const unsigned char *)values;
        for (size_t b = 0; b < (size_t)each * sizeof *values; b++) {
            *hash = (*hash ^ bytes[b]) * UINT64_C(0x100000001B3);
        }
    }
    free(values);
    return true;
}

/* The fingerprint hashes inputs and targets, so that a run can be told from one on other data of the same name and size. */
static void put_data(cli_json *json, const cli_result *result)
{
    int64_t shape[BW_MAX_NDIM], samples = bw_dataset_count(result->training);
    int ndim = bw_dataset_shape(result->training, shape);
    uint64_t hash = UINT64_C(0xCBF29CE484222325) ^ (uint64_t)samples;
    cli_json_object(json, "data");
    cli_json_text(json, "path", result->run.data);
    cli_json_whole(json, "samples", samples);
    cli_json_array(json, "shape");
    for (int i = 0; i < ndim; i++) {
        cli_json_whole(json, NULL, shape[i]);
    }
    cli_json_array_end(json);
    cli_json_array(json, "classes");
    for (int i = 0; bw_dataset_class(result->training, i); i++) {
        cli_json_text(json, NULL, bw_dataset_class(result->training, i));
    }
    cli_json_array_end(json);
    cli_result_text_columns(json, result->training);
    if (hash_field(&hash, result->training, "x") && hash_field(&hash, result->training, "y")) {
        cli_json_hash(json, "fingerprint", hash);
    } else {
        (void)bw_message(result->ctx); /* not a failure of the run */
        cli_json_text(json, "fingerprint", NULL);
    }
    cli_json_object_end(json);
}

static void put_machine(cli_json *json)
{
    struct utsname names;
    bool named = uname(&names) == 0;
    long pages = sysconf(_SC_PHYS_PAGES), size = sysconf(_SC_PAGESIZE);
    cli_json_object(json, "machine");
    cli_json_text(json, "system", named ? names.sysname : NULL);
    cli_json_text(json, "architecture", named ? names.machine : NULL);
    cli_json_whole(json, "cpus", sysconf(_SC_NPROCESSORS_ONLN));
    cli_json_bytes(json, "memory_bytes", pages > 0 && size > 0 ? (size_t)pages * (size_t)size : 0);
    cli_json_object_end(json);
}

static void put_plan(cli_json *json, const bw_run_facts *facts)
{
    cli_json_object(json, "plan");
    cli_json_whole(json, "tile", facts->tile);
    cli_json_whole(json, "lanes", facts->lanes);
    cli_json_whole(json, "workers", facts->workers);
    cli_json_flag(json, "exact_kernels", facts->exact_kernels);
    cli_json_bytes(json, "planned_bytes", facts->planned_bytes);
    cli_json_object_end(json);
}

/* A training that runs has no hash: it reads all weights. */
static void put_result(cli_json *json, const cli_result *result, const bw_run_facts *facts, bool hashed)
{
    const bw_history *history = result->history;
    double speed = facts->seconds > 0 ? (double)facts->samples / facts->seconds : (double)NAN;
    cli_json_object(json, "result");
    cli_json_text(json, "failure", result->failure[0] ? result->failure : NULL);
    cli_json_text(json, "stopped", result->stopped);
    cli_json_whole(json, "epochs", bw_history_epochs(history));
    cli_json_whole(json, "steps", facts->updates);
    cli_json_whole(json, "samples", facts->samples);
    cli_json_real(json, "seconds", facts->seconds);
    cli_json_real(json, "samples_per_s", speed);
    cli_json_bytes(json, "peak_bytes", facts->peak_bytes);
    if (hashed) {
        cli_json_hash(json, "hash", bw_model_hash(result->model));
    }
    cli_json_object(json, "last");
    for (int c = 0; c < bw_history_columns(history) && bw_history_epochs(history) > 0; c++) {
        const char *name = bw_history_column(history, c);
        cli_json_real(json, name, bw_history_last(history, name));
    }
    cli_json_object_end(json);
    cli_json_object_end(json);
}

/* Returns NULL if the model has no expression, which is not a failure of the run: bw_model_describe clears the pending one. */
static const char *expression_of(bw_model *model)
{
    bw_model_facts facts;
    const char *expression = bw_model_expression(model);
    if (!expression) {
        (void)bw_model_describe(model, &facts);
    }
    return expression;
}

/* ---- How it was trained ---------------------------------------------------------------------------------- */

static void put_training(cli_json *json, const cli_result *result)
{
    char loss[64], batch[32];
    bw_model_facts facts = {0};
    bool described = bw_model_describe(result->model, &facts) == BW_OK;
    snprintf(batch, sizeof batch, "%lld", (long long)result->batch);
    cli_json_object(json, "training");
    cli_json_text(json, "optimizer", bw_optimizer_name(result->model));
    cli_json_real(json, "learning_rate", bw_learning_rate(result->model));
    cli_json_array(json, "losses");
    for (int k = 0; k < bw_output_count(result->model); k++) {
        cli_json_text(json, NULL, bw_loss_name(result->model, k, loss, sizeof loss) ? loss : NULL);
    }
    cli_json_array_end(json);
    cli_json_text(json, "batch", result->batch_text ? result->batch_text : result->batch == INT64_MAX ? "full" : batch);
    cli_json_whole(json, "parameters", described ? facts.trainable + facts.non_trainable : 0);
    cli_json_object_end(json);
}

static void put_layers(cli_json *json, const bw_model *model)
{
    bw_model_facts facts;
    bw_layer_facts layer;
    int layers = bw_model_describe(model, &facts) == BW_OK ? facts.layers : 0;
    cli_json_array(json, "layers");
    for (int k = 0; k < layers && bw_layer_describe(model, k, &layer) == BW_OK; k++) {
        cli_json_object(json, NULL);
        cli_json_text(json, "name", layer.name);
        cli_json_text(json, "class", layer.class_name);
        cli_json_array(json, "shape");
        for (int i = 0; i < layer.ndim; i++) {
            cli_json_whole(json, NULL, layer.shape[i]);
        }
        cli_json_array_end(json);
        cli_json_whole(json, "parameters", layer.parameters);
        cli_json_object_end(json);
    }
    cli_json_array_end(json);
}

static void put_scale(cli_json *json, const bw_noise_scale *n)
{
    cli_json_rounded(json, "scale", n->determined ? n->scale : (double)NAN);
    cli_json_rounded(json, "low", n->low);
    cli_json_rounded(json, "high", n->determined ? n->high : (double)NAN);
}

static void put_noise_layers(cli_json *json, const cli_result *result, int variables)
{
    cli_json_array(json, "layers");
    for (int k = 0; k < variables; k++) {
        bw_noise_scale scale = bw_history_noise_of(result->history, k);
        if (bw_variable_trainable(result->model, k) && !isnan(scale.trace)) {
            cli_json_object(json, NULL);
            cli_json_text(json, "name", bw_variable_name(result->model, k));
            put_scale(json, &scale);
            cli_json_object_end(json);
        }
    }
    cli_json_array_end(json);
}

/* As the optimizer sees it if it scales gradients, which is what the history has; raw; and, raw, by layer. */
static void put_noise(cli_json *json, const cli_result *result, const bw_run_facts *facts)
{
    bw_noise_facts noise = bw_history_noise(result->history);
    bool seen = !isnan(noise.seen.signal);
    char reason[128];
    cli_json_object(json, "noise");
    cli_json_whole(json, "steps", noise.steps);
    if (noise.steps == 0 && !noise.refusal) {
        snprintf(reason, sizeof reason,
                 "a batch is one tile of up to %" PRId64 " samples, which has no parts to compare: --tile %" PRId64, facts->tile,
                 facts->tile >= 16 ? facts->tile / 8 : 1);
    }
    cli_json_text(json, "refusal", noise.steps > 0 ? NULL : noise.refusal ? noise.refusal : reason);
    cli_json_text(json, "of", seen ? "optimizer" : "gradient");
    put_scale(json, seen ? &noise.seen : &noise.raw);
    cli_json_object(json, "raw");
    put_scale(json, &noise.raw);
    cli_json_object_end(json);
    put_noise_layers(json, result, noise.variables);
    cli_json_object_end(json);
}

static void put_memory_plan(cli_json *json, const bw_memory_facts *facts)
{
    cli_json_object(json, NULL);
    cli_json_whole(json, "batch", facts->batch);
    cli_json_bytes(json, "peak_bytes", facts->peak_bytes);
    cli_json_bytes(json, "whole_batch_bytes", facts->whole_batch_bytes);
    cli_json_object(json, "items");
    for (int i = 0; i < BW_PLAN_ITEMS; i++) {
        cli_json_bytes(json, bw_plan_item_name((bw_plan_item)i), facts->items[i]);
    }
    cli_json_object_end(json);
    cli_json_object_end(json);
}

/* Plans for the run's batch size first, then for larger ones, in the same memory. If a plan fails, there are fewer, which is not a
 * failure of the run: bw_model_describe clears the pending one. */
static void put_memory(cli_json *json, const cli_result *result)
{
    enum { MOST_PLANS = 3 };
    int64_t samples = bw_dataset_count(result->training), own = result->batch < samples ? result->batch : samples;
    const int64_t batches[MOST_PLANS] = {own, own <= samples / 8 ? 8 * own : samples, samples};
    cli_json_object(json, "memory");
    cli_json_array(json, "plans");
    for (int i = 0; i < MOST_PLANS; i++) {
        bw_plan *plan = i > 0 && batches[i] == batches[i - 1]
                            ? NULL
                            : bw_plan_make(result->model, result->training, batches[i], &result->planning);
        if (plan) {
            bw_memory_facts facts = bw_plan_facts(plan);
            put_memory_plan(json, &facts);
            bw_plan_free(plan);
        }
    }
    bw_model_facts facts;
    (void)bw_model_describe(result->model, &facts);
    cli_json_array_end(json);
    cli_json_object_end(json);
}

void cli_run_json_before(cli_json *json, const cli_result *result)
{
    cli_json_whole(json, "format", 1);
    cli_json_text(json, "version", bw_version());
    cli_json_array(json, "command");
    for (char **word = result->run.arguments; *word; word++) {
        cli_json_text(json, NULL, *word);
    }
    cli_json_array_end(json);
    cli_json_text(json, "title", result->run.title);
    cli_json_text(json, "about", result->run.about);
    cli_json_seed(json, "seed", result->run.seed);
    cli_json_whole(json, "epochs", result->epochs);
    cli_json_text(json, "model", expression_of(result->model));
    put_layers(json, result->model);
    put_training(json, result);
    put_machine(json);
}

static void put_data_in_short(cli_json *json, const cli_result *result)
{
    cli_json_object(json, "data");
    cli_json_text(json, "path", result->run.data);
    cli_json_whole(json, "samples", bw_dataset_count(result->training));
    cli_json_object_end(json);
}

void cli_run_json_so_far(cli_json *json, const cli_result *result)
{
    bw_run_facts facts = bw_history_facts(result->history);
    put_data_in_short(json, result);
    put_plan(json, &facts);
    put_noise(json, result, &facts);
    put_result(json, result, &facts, false);
}

void cli_run_json(cli_json *json, const cli_result *result)
{
    bw_run_facts facts = bw_history_facts(result->history);
    cli_json_object(json, NULL);
    cli_run_json_before(json, result);
    put_data(json, result);
    put_plan(json, &facts);
    put_memory(json, result);
    put_noise(json, result, &facts);
    if (result->tuning) {
        cli_tuning_json(json, "tuning", result->tuning);
    }
    put_result(json, result, &facts, true);
    cli_json_object_end(json);
}

void cli_run_json_tuning(cli_json *json, const cli_result *result)
{
    cli_json_object(json, NULL);
    cli_run_json_before(json, result);
    put_data_in_short(json, result);
    cli_tuning_json(json, "tuning", result->tuning);
    cli_json_object_end(json);
}
