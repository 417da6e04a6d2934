/*
 * batchwise plan: shows every byte of a run before it starts, for one or several batch sizes, beside what a system that holds the
 * whole batch needs. It also explains another system's out-of-memory message.
 */
#include "cli/cli.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

typedef struct arguments {
    const char *model, *batch, *optimizer, *loss, *explain;
    cli_data data;
    int64_t tile;
    int accumulate, epochs, workers, lanes;
    size_t memory;
    bool json;
} arguments;

#define AT(member) offsetof(arguments, member)

static const cli_option options[] = {
    {CLI_MODEL_OPTION},
    CLI_DATA_OPTIONS(arguments, data),
    {"batch", &cli_text, AT(batch), "A,B,...", "batches to plan for, numbers or full (32)"},
    {"accumulate", &cli_count, AT(accumulate), "K", "batches per update (1)"},
    {"epochs", &cli_count, AT(epochs), "N", "passes over the data: rows of the history (10)"},
    {CLI_OPTIMIZER_OPTION},
    {CLI_LOSS_OPTION},
    {CLI_MEMORY_OPTION},
    {CLI_WORKERS_OPTION},
    {CLI_TILE_OPTION},
    {CLI_LANES_OPTION},
    {"explain", &cli_text, AT(explain), "TEXT",
     "an out-of-memory message of TensorFlow, Keras, JAX, PyTorch\nor NumPy: its layer, its bytes and the remedy"},
    {CLI_JSON_OPTION},
    {.name = NULL},
};

static void print_example(void)
{
    puts("examples:\n"
         "  batchwise plan --batch 1,32,1024 --model 'input(28,28,1) conv2d(32,3,relu) maxpool2d(2) flatten dense(10,softmax)'\n"
         "  batchwise plan --model net.keras --data digits.npz --memory 64M \\\n"
         "      --explain 'OOM when allocating tensor with shape[128,126,126,32] and type float on ...'");
}

static const cli_usage usage = {
    .command = "plan",
    .synopsis = "--model M [--data D] [options]",
    .purpose = "Tells the memory of a training run before it starts, item by item, and what a system that holds the whole batch "
               "would need.",
    .options = options,
    .required = "model",
    .print_more = print_example,
};

/* ---- Batches -------------------------------------------------------------------------------------------- */

enum { MOST_BATCHES = 64 };

typedef struct batches {
    int count;
    int64_t size[MOST_BATCHES];
    bw_plan *plan[MOST_BATCHES];
    int largest;
} batches;

static int add_batch(batches *list, const char *text, size_t length, int64_t samples)
{
    char item[32];
    int64_t size;
    snprintf(item, sizeof item, "%.*s", (int)(length < sizeof item ? length : sizeof item - 1), text);
    if (length >= sizeof item || !cli_batch.parse(&size, item)) {
        return cli_mistake(usage.command, "--batch: expected %s, found '%s'", cli_batch.expected, item);
    }
    if (size == INT64_MAX && samples < 0) {
        return cli_mistake(usage.command, "--batch full needs --data");
    }
    if (list->count == MOST_BATCHES) {
        return cli_mistake(usage.command, "--batch: expected at most %d batches", MOST_BATCHES);
    }
    list->size[list->count] = size == INT64_MAX ? samples : size;
    list->largest = list->size[list->count] > list->size[list->largest] ? list->count : list->largest;
    list->count++;
    return CLI_SUCCESS;
}

/* Reads the list of batch sizes. `samples` is -1 if there is no data. */
static int read_batches(batches *list, const char *text, int64_t samples)
{
    for (;;) {
        size_t length = strcspn(text, ",");
        int code = add_batch(list, text, length, samples);
        if (code != CLI_SUCCESS || text[length] == 0) {
            return code;
        }
        text += length + 1;
    }
}

/* ---- Tables --------------------------------------------------------------------------------------------- */

enum { BAR = 20 };

static void print_bar(size_t bytes, size_t most)
{
    int blocks = most > 0 ? (int)((double)bytes / (double)most * BAR + 0.5) : 0;
    for (int i = 0; i < (blocks < 1 ? 1 : blocks); i++) {
        fputs("━", stdout);
    }
}

/* Prints all batch sizes in one table, then the plan of the largest in full. */
static void print_tables(const batches *list)
{
    size_t most = 1;
    for (int i = 0; i < list->count; i++) {
        bw_memory_facts facts = bw_plan_facts(list->plan[i]);
        most = facts.peak_bytes > most ? facts.peak_bytes : most;
        most = facts.whole_batch_bytes > most ? facts.whole_batch_bytes : most;
    }
    if (list->count > 1) {
        printf("%10s %6s %12s %12s  %-*s %s\n", "batch", "tile", "peak", "whole batch", BAR, "peak", "whole batch");
    }
    for (int i = 0; i < list->count && list->count > 1; i++) {
        bw_memory_facts facts = bw_plan_facts(list->plan[i]);
        char peak[CLI_BYTES_TEXT], whole[CLI_BYTES_TEXT];
        printf("%10" PRId64 " %6" PRId64 " %12s %12s  ", facts.batch, facts.tile, cli_bytes_text(peak, facts.peak_bytes),
               cli_bytes_text(whole, facts.whole_batch_bytes));
        int blocks = (int)((double)facts.peak_bytes / (double)most * BAR + 0.5);
        print_bar(facts.peak_bytes, most);
        printf("%*s ", BAR - (blocks < 1 ? 1 : blocks), "");
        print_bar(facts.whole_batch_bytes, most);
        putchar('\n');
    }
    if (list->count > 1) {
        putchar('\n');
    }
    bw_plan_print(list->plan[list->largest], stdout);
}

/* ---- JSON ----------------------------------------------------------------------------------------------- */

static void print_items(cli_json *json, const bw_memory_facts *facts)
{
    cli_json_object(json, "items");
    for (int k = 0; k < BW_PLAN_ITEMS; k++) {
        cli_json_bytes(json, bw_plan_item_name((bw_plan_item)k), facts->items[k]);
    }
    cli_json_object_end(json);
}

static void print_layers(cli_json *json, const bw_plan *plan)
{
    cli_json_array(json, "layers");
    for (int k = 0; k < bw_plan_layers(plan); k++) {
        bw_layer_memory layer = bw_plan_layer(plan, k);
        cli_json_object(json, NULL);
        cli_json_text(json, "name", layer.name);
        cli_json_array(json, "shape");
        for (int i = 0; i < layer.ndim; i++) {
            cli_json_whole(json, NULL, layer.shape[i]);
        }
        cli_json_array_end(json);
        cli_json_bytes(json, "parameters", layer.parameters);
        cli_json_bytes(json, "gradients", layer.gradients);
        cli_json_bytes(json, "activations", layer.activations);
        cli_json_bytes(json, "workspace", layer.workspace);
        cli_json_bytes(json, "whole_batch_bytes", layer.whole_batch);
        cli_json_object_end(json);
    }
    cli_json_array_end(json);
}

/* Writes the plan of the largest batch at the top, and, in a list, what changes with the batch size. */
static void print_json(const batches *list, const cli_explanation *explanation)
{
    const bw_plan *plan = list->plan[list->largest];
    bw_memory_facts facts = bw_plan_facts(plan);
    cli_json json = {.file = stdout};
    cli_json_object(&json, NULL);
    cli_json_whole(&json, "tile", facts.tile);
    cli_json_whole(&json, "lanes", facts.lanes);
    cli_json_whole(&json, "workers", facts.workers);
    cli_json_whole(&json, "phases", facts.phases);
    cli_json_text(&json, "reason", bw_plan_reason(plan));
    cli_json_bytes(&json, "peak_bytes", facts.peak_bytes);
    print_items(&json, &facts);
    cli_json_bytes(&json, "budget", facts.budget);
    cli_json_whole(&json, "segments", facts.segments);
    cli_json_bytes(&json, "spill_bytes", facts.spill_bytes);
    cli_json_whole(&json, "whole_batch_largest", facts.whole_batch_largest);
    cli_json_array(&json, "batches");
    for (int i = 0; i < list->count; i++) {
        bw_memory_facts one = bw_plan_facts(list->plan[i]);
        cli_json_object(&json, NULL);
        cli_json_whole(&json, "batch", one.batch);
        cli_json_bytes(&json, "peak_bytes", one.peak_bytes);
        cli_json_bytes(&json, "whole_batch_bytes", one.whole_batch_bytes);
        cli_json_whole(&json, "tile", one.tile);
        print_items(&json, &one);
        cli_json_object_end(&json);
    }
    cli_json_array_end(&json);
    print_layers(&json, plan);
    if (explanation) {
        cli_explanation_json(&json, explanation);
    }
    cli_json_object_end(&json);
    putchar('\n');
}

/* ---- Planning ------------------------------------------------------------------------------------------- */

static int make_plans(const arguments *given, bw_context *ctx, bw_model *model, bw_dataset *dataset, batches *list)
{
    bw_plan_options planning = BW_PLAN_OPTIONS_DEFAULT;
    planning.memory = given->memory;
    planning.tile = given->tile;
    planning.lanes = given->lanes;
    planning.accumulate = given->accumulate;
    planning.epochs = given->epochs;
    for (int i = 0; i < list->count; i++) {
        list->plan[i] = bw_plan_make(model, dataset, list->size[i], &planning);
        if (!list->plan[i]) {
            return cli_fail("%s", bw_message(ctx));
        }
    }
    return CLI_SUCCESS;
}

/* Explains the message; without --batch, plans for the message's batch size. */
static int explain(const arguments *given, bw_context *ctx, bw_model *model, bw_dataset *dataset, batches *list,
                   cli_explanation *explanation)
{
    if (!cli_explanation_read(explanation, given->explain)) {
        return cli_mistake(usage.command,
                           "--explain: expected an out-of-memory message with a shape or a number of bytes, such as 'OOM when "
                           "allocating tensor with shape[128,126,126,32] and type float', found '%s'",
                           given->explain);
    }
    cli_explanation_find(explanation, list->plan[list->largest], given->batch);
    if (!given->batch && explanation->batch > 0) {
        list->size[0] = explanation->batch;
        int code = make_plans(given, ctx, model, dataset, list);
        if (code != CLI_SUCCESS) {
            return code;
        }
    }
    explanation->facts = bw_plan_facts(list->plan[list->largest]);
    return CLI_SUCCESS;
}

/* Makes the model, data, plans and explanation, each of which needs the one before. Nothing is printed until all have succeeded. */
static int plan(const arguments *given, bw_context *ctx)
{
    bw_model *model = NULL;
    bw_dataset *dataset = NULL;
    batches list = {.count = 0};
    cli_explanation explanation = {.model = given->model, .data = given->data.path};
    int code = cli_model_make(&model, ctx, usage.command, given->model, given->optimizer, given->loss);
    if (code == CLI_SUCCESS && given->data.path) {
        dataset = cli_data_read(ctx, &given->data, given->data.path, model, NULL);
        code = !dataset ? CLI_FAILURE : CLI_SUCCESS;
    }
    if (code == CLI_SUCCESS) {
        code = read_batches(&list, given->batch ? given->batch : "32", bw_dataset_count(dataset));
    }
    if (code == CLI_SUCCESS) {
        code = make_plans(given, ctx, model, dataset, &list);
    }
    if (code == CLI_SUCCESS && given->explain) {
        code = explain(given, ctx, model, dataset, &list, &explanation);
    }
    if (code != CLI_SUCCESS) {
        return code;
    }
    if (given->json) {
        print_json(&list, given->explain ? &explanation : NULL);
        return CLI_SUCCESS;
    }
    if (given->explain) {
        cli_explanation_print(stdout, &explanation);
        putchar('\n');
    }
    print_tables(&list);
    return CLI_SUCCESS;
}

int cli_plan(int argc, char **argv)
{
    arguments given = {.data = CLI_DATA_DEFAULT, .accumulate = 1, .epochs = 10};
    int code;
    if (!cli_options_read(&code, &usage, argc, argv, &given)) {
        return code;
    }
    if (given.data.path && cli_data_check(usage.command, &given.data) != CLI_SUCCESS) {
        return CLI_USAGE;
    }
    bw_context *ctx = cli_session_open((cli_session){.workers = given.workers, .quiet = true, .ranks = true});
    return !ctx ? CLI_FAILURE : cli_session_close(ctx, plan(&given, ctx));
}
