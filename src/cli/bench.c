/*
 * batchwise bench: measures the speed of training on built-in workloads, or of a user's model on its data or on random samples of
 * a given shape. Random samples in memory go through bw_fit as a user's would. The first epochs warm up and the others are timed
 * by what on_epoch reports, so that making the data and the plan is not counted. Each workload has a separate context.
 */
#include "cli/cli.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What a workload is trained for: its targets and its loss. */
typedef struct task {
    const char *loss;
    bw_dtype dtype;
    int64_t choices; /* targets are 0 ... choices-1; 0: real numbers from [0,1) */
} task;

static const task classes = {"sparse_categorical_crossentropy", BW_I32, 10};
static const task binary = {"binary_crossentropy", BW_F32, 2};
static const task real = {"mean_squared_error", BW_F32, 0};

typedef struct workload {
    const char *name;
    int64_t samples;
    int ndim; /* the axes of one sample */
    int64_t shape[BW_MAX_NDIM - 1];
    const char *model;
    const task *task;
} workload;

#define CONV(filters) "conv2d(" #filters ",3,relu) maxpool2d(2) "
#define CLASSES "dense(10,softmax)"

static const workload workloads[] = {
    {"conv28", 1000, 3, {28, 28, 1}, CONV(32) "flatten " CLASSES, &classes},
    {"conv64", 1000, 3, {64, 64, 3}, CONV(32) "flatten " CLASSES, &classes},
    {"conv128", 256, 3, {128, 128, 3}, CONV(32) CONV(64) "flatten " CLASSES, &classes},
    {"conv128half", 256, 3, {128, 128, 3}, CONV(16) CONV(32) "flatten " CLASSES, &classes},
    {"linear2", 500, 1, {2}, "dense(1)", &real},
    {"logistic10", 200, 1, {10}, "dense(1,sigmoid)", &binary},
    {"mlp100", 100000, 1, {100}, "dense(32,relu) dense(1,sigmoid)", &binary},
    {"range", 1000, 1, {1}, "dense(64,relu) dense(1)", &real},
    {"mlp1024", 4096, 1, {1024}, "dense(1024,relu) dense(1024,relu) " CLASSES, &classes},
};

enum { WORKLOADS = sizeof workloads / sizeof workloads[0] };

typedef struct arguments {
    const char *workload, *model, *optimizer, *loss;
    cli_data data;
    int64_t batch, tile;
    int epochs, warmup, workers, lanes;
    uint64_t seed;
    size_t memory;
    bool exact_kernels, json;
} arguments;

#define AT(member) offsetof(arguments, member)

static const cli_option options[] = {
    {"workload", &cli_text, AT(workload), "NAME[:B],...", "one or several, each with its batch or that of --batch"},
    {"model", &cli_text, AT(model), "M",
     "in place of workloads: an expression or a file of Keras, with\n--data, or with --shape: random samples"},
    CLI_DATA_OPTIONS(arguments, data),
    {CLI_OPTIMIZER_OPTION},
    {CLI_LOSS_OPTION},
    {"batch", &cli_batch, AT(batch), "N|full", "samples per update (32)"},
    {"epochs", &cli_count, AT(epochs), "N", "measured passes over the data (1)"},
    {"warmup", &cli_number, AT(warmup), "N", "passes before them, in the same training (1)"},
    {CLI_MEMORY_OPTION},
    {CLI_WORKERS_OPTION},
    {CLI_TILE_OPTION},
    {CLI_LANES_OPTION},
    {CLI_EXACT_KERNELS_OPTION},
    {"seed", &cli_seed, AT(seed), "N", "of the weights and the data (0)"},
    {"json", &cli_flag, AT(json), NULL, "one JSON object on standard output; of several workloads\na list in \"results\""},
    {.name = NULL},
};

static void print_workloads(void)
{
    puts("workloads (samples, input, model):");
    for (size_t i = 0; i < WORKLOADS; i++) {
        char shape[64];
        int at = 0;
        for (int d = 0; d < workloads[i].ndim; d++) {
            at += snprintf(shape + at, sizeof shape - (size_t)at, "%s%d", d > 0 ? "x" : "", (int)workloads[i].shape[d]);
        }
        printf("  %-12s %-7d %-10s %s\n", workloads[i].name, (int)workloads[i].samples, shape, workloads[i].model);
    }
    puts("\nexample:\n"
         "  batchwise bench --workload conv28:1,conv28:16,mlp1024:256\n"
         "  batchwise bench --shape 28x28x1 --batch 64 --model 'conv2d(32,3,relu) maxpool2d(2) flatten dense(10,softmax)'");
}

static const cli_usage usage = {
    .command = "bench",
    .synopsis = "--workload NAME[:BATCH],... | --model M (--data D | --shape HxWxC) [options]",
    .purpose = "Measures the speed of training: of built-in workloads on random samples, or of a model of yours.",
    .options = options,
    .print_more = print_workloads,
};

/* ---- Samples -------------------------------------------------------------------------------------------- */

typedef struct samples {
    void *x, *y;
    bw_array inputs, targets;
} samples;

/* Steps the generator SplitMix64: a counter with an odd increment, whose bits are mixed. */
static uint64_t draw(uint64_t *state)
{
    uint64_t z = *state += UINT64_C(0x9E3779B97F4A7C15);
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    return z ^ (z >> 31);
}

/* Draws a number uniformly from [0,1): 24 bits fill a float's fraction. */
static float draw_real(uint64_t *state)
{
    return (float)(draw(state) >> 40) * 0x1p-24f;
}

static void samples_free(samples *made)
{
    free(made->x);
    free(made->y);
}

/* A sample has one class number, or `outputs` values, as its target. The sizes come from the table or were checked: no product can
 * overflow. */
static bool samples_make(samples *made, const workload *work, int64_t outputs, uint64_t seed)
{
    uint64_t state = seed;
    size_t count = (size_t)work->samples, values = count;
    made->inputs = (bw_array){.dtype = BW_F32, .ndim = work->ndim + 1, .shape = {work->samples}};
    made->targets = (bw_array){.dtype = work->task->dtype, .ndim = 1, .shape = {work->samples}};
    for (int i = 0; i < work->ndim; i++) {
        made->inputs.shape[i + 1] = work->shape[i];
        values *= (size_t)work->shape[i];
    }
    float *x = malloc(values * sizeof *x);
    void *y = malloc(count * (size_t)outputs * sizeof(int32_t));
    made->inputs.data = made->x = x;
    made->targets.data = made->y = y;
    if (!x || !y) {
        samples_free(made);
        return false;
    }
    for (size_t i = 0; i < values; i++) {
        x[i] = draw_real(&state);
    }
    if (work->task->dtype == BW_F32) { /* the shape of the model's output */
        made->targets.ndim = 2;
        made->targets.shape[1] = outputs;
    }
    for (size_t i = 0; i < count * (size_t)outputs; i++) {
        int32_t choice = work->task->choices > 0 ? (int32_t)(draw(&state) % (uint64_t)work->task->choices) : 0;
        if (work->task->dtype == BW_I32) {
            ((int32_t *)y)[i] = choice;
        } else {
            ((float *)y)[i] = work->task->choices > 0 ? (float)choice : draw_real(&state);
        }
    }
    return true;
}

/* ---- Measuring ------------------------------------------------------------------------------------------ */

typedef struct result {
    const workload *work;
    int64_t batch;
    int warmup;
    double seconds; /* in the measured epochs, like the next two */
    int64_t samples, steps;
    double sample_flops;
    double sample_bytes; /* that must move at least; of a user's model, like the next */
    bw_machine machine;  /* what it can do at best */
    int64_t parameters;
    uint64_t hash;
    bw_run_facts facts;
} result;

static bool on_epoch(void *user, const bw_progress *progress)
{
    result *measured = user;
    if (progress->epoch >= measured->warmup) {
        measured->seconds += progress->seconds;
        measured->samples += progress->samples;
        measured->steps += progress->step;
    }
    return true;
}

/* Counts the floating-point operations of training on one sample, two for each multiply-add, from the model's actual kernels:
 * forward, the weights' gradient, and the input's gradient, which the first layer does not need. Each convolution in the table has
 * no padding and is followed by pooling by two. Adds up the parameters on the way. */
static double count_flops(const bw_model *model, const workload *work, int64_t *parameters)
{
    int64_t height = work->shape[0], width = work->ndim == 3 ? work->shape[1] : 1;
    double sum = 0;
    bool first = true;
    for (int v = 0; v < bw_variable_count(model); v++) {
        int64_t shape[BW_MAX_NDIM];
        int ndim = bw_variable_shape(model, v, shape);
        double products = 1;
        for (int i = 0; i < ndim; i++) {
            products *= (double)shape[i];
        }
        *parameters += (int64_t)products;
        if (ndim == 4) {
            height = height - shape[0] + 1;
            width = width - shape[1] + 1;
            products *= (double)height * (double)width;
            height /= 2;
            width /= 2;
        }
        if (ndim >= 2) { /* otherwise it is a bias */
            sum += 2 * products * (first ? 2 : 3);
            first = false;
        }
    }
    return sum;
}

/* Counts the operations and bytes of any model from the profile, which counts by the layers' definitions; NaN if no step was
 * timed. */
static void count_work(result *measured, const bw_history *history)
{
    bw_profile_facts facts = bw_history_profile(history);
    double flops = 0, bytes = 0;
    for (int i = 0; i < facts.parts; i++) {
        bw_part part;
        bool there = bw_history_part(history, i, &part) == BW_OK;
        flops += there ? part.flops : 0;
        bytes += there ? part.bytes : 0;
    }
    bool timed = facts.parts > 0 && facts.samples > 0;
    measured->sample_flops = timed ? flops / facts.samples : (double)NAN;
    measured->sample_bytes = timed ? bytes / facts.samples : (double)NAN;
}

static int64_t count_parameters(const bw_model *model)
{
    bw_model_facts facts = {.name = NULL};
    return bw_model_describe(model, &facts) == BW_OK ? facts.trainable + facts.non_trainable : 0;
}

/* Trains through the public API, as a user's program would; the warm-up epochs run first and are not measured. */
static bw_status fit(result *measured, const arguments *given, bw_model *model, bw_dataset *data)
{
    bw_fit_options fitting = BW_FIT_OPTIONS_DEFAULT;
    bw_history *history = NULL;
    fitting.epochs = given->warmup + given->epochs;
    fitting.batch = measured->batch;
    fitting.seed = given->seed;
    fitting.memory = given->memory;
    fitting.tile = given->tile;
    fitting.lanes = given->lanes;
    fitting.on_epoch = on_epoch;
    fitting.user = measured;
    bw_status status = bw_fit(model, data, &fitting, &history);
    if (status == BW_OK) {
        if (given->model) {
            count_work(measured, history);
            measured->parameters = count_parameters(model);
        } else {
            measured->sample_flops = count_flops(model, measured->work, &measured->parameters);
        }
        measured->hash = bw_model_hash(model);
        measured->facts = bw_history_facts(history);
    }
    return status;
}

static bw_context *open_context(const arguments *given)
{
    return cli_session_open((cli_session){.workers = given->workers, .exact_kernels = given->exact_kernels, .ranks = true});
}

/* A workload has a context of its own, so that nothing of one is left for the next; but ranks come together once, and share one. */
static int measure(result *measured, const arguments *given, bw_context *shared)
{
    samples made;
    if (!samples_make(&made, measured->work, 1, given->seed)) {
        return cli_fail("no memory for the samples of workload '%s'", measured->work->name);
    }
    int code = CLI_FAILURE;
    bw_context *ctx = shared ? shared : open_context(given);
    if (ctx) {
        bw_model *model = bw_model_parse(ctx, measured->work->model);
        bw_dataset *data = bw_from_arrays(ctx, &made.inputs, &made.targets, NULL);
        bw_status status = bw_compile(model, "adam", measured->work->task->loss, NULL);
        status = status == BW_OK ? fit(measured, given, model, data) : status;
        code = status == BW_OK ? CLI_SUCCESS : CLI_FAILURE;
        if (status != BW_OK) {
            cli_fail("%s: %s", measured->work->name, status == BW_CANCELLED ? "interrupted" : bw_message(ctx));
        }
        code = shared ? code : cli_session_close(ctx, code);
    }
    samples_free(&made);
    return code;
}

/* ---- The user's model ----------------------------------------------------------------------------------- */

enum { OWN_SAMPLES = 1024 };

/* Chooses targets that suit the output: class numbers, or as many zeros and ones, or real numbers, as the output has values.
 * *outputs must be 1 and is multiplied by that count. */
static int choose_targets(workload *work, task *chosen, int64_t *outputs, bw_context *ctx, bw_model *model, const arguments *given)
{
    bw_output_facts facts;
    bw_model_facts built;
    const cli_extents *shape = &given->data.shape;
    work->samples = OWN_SAMPLES;
    work->ndim = shape->ndim;
    memcpy(work->shape, shape->extent, sizeof work->shape);
    bw_status status = bw_model_describe(model, &built);
    if (status != BW_OK) { /* its shapes are not known yet */
        (void)bw_message(ctx);
        status = bw_build(model, shape->ndim, shape->extent, given->seed);
    }
    if (status == BW_OK && bw_output_count(model) != 1) {
        return cli_fail("random samples are made for models with one output; this one has %d: give --data", bw_output_count(model));
    }
    status = status == BW_OK ? bw_output_describe(model, 0, &facts) : status;
    if (status != BW_OK) {
        return cli_fail("%s", bw_message(ctx));
    }
    bool classes_out = facts.kind == BW_OUTPUT_CLASSES && facts.ndim == 1;
    *chosen = facts.kind == BW_OUTPUT_BINARY ? binary : classes_out ? classes : real;
    chosen->choices = classes_out ? facts.shape[0] : chosen->choices;
    for (int i = 0; i < facts.ndim && !classes_out; i++) {
        *outputs *= facts.shape[i];
    }
    return CLI_SUCCESS;
}

static bool fits_memory(const workload *work)
{
    size_t values = (size_t)work->samples * sizeof(float);
    for (int i = 0; i < work->ndim; i++) {
        if (__builtin_mul_overflow(values, (size_t)work->shape[i], &values)) {
            return false;
        }
    }
    return true;
}

/* Measures the user's model on the samples of --data, or on random ones of the shape that --shape gives. */
static int measure_own(result *measured, const arguments *given, bw_context *ctx, samples *made)
{
    static workload work = {.name = "model"};
    static task chosen;
    int64_t outputs = 1;
    bw_model *model;
    bw_dataset *data = NULL;
    bool loaded;
    int code = cli_model_open(&model, &loaded, ctx, usage.command, given->model);
    if (code != CLI_SUCCESS) {
        return code;
    }
    bw_status status = BW_OK;
    if (!loaded || given->optimizer || given->loss) {
        status = loaded ? bw_recompile(model, given->optimizer, given->loss, NULL)
                        : bw_compile(model, given->optimizer, given->loss, NULL);
    }
    if (status != BW_OK) {
        return cli_report(ctx, usage.command);
    }
    work.task = &chosen;
    if (given->data.path) {
        data = cli_data_read(ctx, &given->data, given->data.path, model, NULL);
        code = data ? CLI_SUCCESS : CLI_FAILURE;
    } else {
        code = choose_targets(&work, &chosen, &outputs, ctx, model, given);
        if (code == CLI_SUCCESS && !(fits_memory(&work) && samples_make(made, &work, outputs, given->seed))) {
            code = cli_fail("no memory for %lld samples of this shape", (long long)work.samples);
        }
        data = code == CLI_SUCCESS ? bw_from_arrays(ctx, &made->inputs, &made->targets, NULL) : NULL;
    }
    if (code != CLI_SUCCESS) {
        return code;
    }
    int64_t count = bw_dataset_count(data);
    *measured =
        (result){.work = &work, .batch = count >= 0 && count < given->batch ? count : given->batch, .warmup = given->warmup};
    status = fit(measured, given, model, data);
    status = status == BW_OK ? bw_machine_limits(ctx, &measured->machine) : status;
    if (status != BW_OK) {
        cli_fail("%s", status == BW_CANCELLED ? "interrupted" : bw_message(ctx));
    }
    return status == BW_OK ? CLI_SUCCESS : CLI_FAILURE;
}

static int measure_model(result *measured, const arguments *given)
{
    samples made = {.x = NULL};
    bw_context *ctx = open_context(given);
    if (!ctx) {
        return CLI_FAILURE;
    }
    int code = cli_session_close(ctx, measure_own(measured, given, ctx, &made));
    samples_free(&made);
    return code;
}

/* ---- Results -------------------------------------------------------------------------------------------- */

static double samples_per_s(const result *measured)
{
    return measured->seconds > 0 ? (double)measured->samples / measured->seconds : (double)NAN;
}

static double step_us(const result *measured)
{
    return measured->steps > 0 ? measured->seconds * 1e6 / (double)measured->steps : (double)NAN;
}

static double gflops(const result *measured)
{
    return samples_per_s(measured) * measured->sample_flops * 1e-9;
}

static double gb_per_s(const result *measured)
{
    return samples_per_s(measured) * measured->sample_bytes * 1e-9;
}

/* Of what the workers could do at best: all cores, or as many times one core as there are workers, if these are fewer. */
static double share(const result *measured, double rate, double core, double all)
{
    double limit = measured->facts.workers * core < all ? measured->facts.workers * core : all;
    return limit > 0 ? rate * 1e9 / limit : (double)NAN;
}

static double gflops_share(const result *measured)
{
    return share(measured, gflops(measured), measured->machine.core_flops, measured->machine.flops);
}

static double gb_share(const result *measured)
{
    return share(measured, gb_per_s(measured), measured->machine.core_bandwidth, measured->machine.bandwidth);
}

/* Says what the step reaches of the machine's limits; both can exceed 100 percent, as a profile explains. */
static void print_limits(const result *measured)
{
    const bw_machine *m = &measured->machine;
    printf("%.2f GFLOP/s are %.0f percent and %.2f GB/s %.0f percent of what %d worker%s can do here%s.\n", gflops(measured),
           100 * gflops_share(measured), gb_per_s(measured), 100 * gb_share(measured), measured->facts.workers,
           measured->facts.workers == 1 ? "" : "s", m->busy ? " (or less: other programs ran while that was measured)" : "");
    puts("Operations are counted by definition, which Winograd's algorithm beats; bytes may come from caches.");
}

/* The machine's limits are known for a user's model only. */
static void print_json(cli_json *json, const result *measured)
{
    cli_json_object(json, NULL);
    cli_json_text(json, "workload", measured->work->name);
    cli_json_whole(json, "batch", measured->batch);
    cli_json_whole(json, "samples", measured->samples);
    cli_json_whole(json, "steps", measured->steps);
    cli_json_real(json, "seconds", measured->seconds);
    cli_json_real(json, "samples_per_s", samples_per_s(measured));
    cli_json_real(json, "step_us", step_us(measured));
    cli_json_bytes(json, "peak_bytes", measured->facts.peak_bytes);
    cli_json_bytes(json, "planned_bytes", measured->facts.planned_bytes);
    cli_json_real(json, "gflops", gflops(measured));
    cli_json_real(json, "sample_flops", measured->sample_flops);
    if (measured->machine.cores > 0) {
        cli_json_real(json, "gb_per_s", gb_per_s(measured));
        cli_json_real(json, "gflops_share", gflops_share(measured));
        cli_json_real(json, "gb_share", gb_share(measured));
    }
    cli_json_whole(json, "parameters", measured->parameters);
    cli_json_hash(json, "hash", measured->hash);
    cli_json_whole(json, "tile", measured->facts.tile);
    cli_json_whole(json, "lanes", measured->facts.lanes);
    cli_json_whole(json, "workers", measured->facts.workers);
    cli_json_flag(json, "exact_kernels", measured->facts.exact_kernels);
    cli_json_object_end(json);
}

static void print_row(const result *measured)
{
    char peak[CLI_BYTES_TEXT], planned[CLI_BYTES_TEXT];
    printf("%-12s %7lld %12.0f %11.1f %8.2f %11s %11s\n", measured->work->name, (long long)measured->batch, samples_per_s(measured),
           step_us(measured), gflops(measured), cli_bytes_text(peak, measured->facts.peak_bytes),
           cli_bytes_text(planned, measured->facts.planned_bytes));
    fflush(stdout);
}

/* ---- The list of workloads ------------------------------------------------------------------------------ */

static const workload *find_workload(const char *name)
{
    for (size_t i = 0; i < WORKLOADS; i++) {
        if (strcmp(workloads[i].name, name) == 0) {
            return &workloads[i];
        }
    }
    return NULL;
}

/* Reads NAME or NAME:BATCH from `item`, which is modified. */
static int read_item(result *measured, const arguments *given, char *item)
{
    char *colon = strchr(item, ':');
    int64_t batch = given->batch;
    if (colon) {
        *colon = 0;
        if (!cli_batch.parse(&batch, colon + 1)) {
            return cli_mistake(usage.command, "--workload %s: expected a batch of %s, found '%s'", item, cli_batch.expected,
                               colon + 1);
        }
    }
    const workload *work = find_workload(item);
    if (!work) {
        const char *nearest = cli_nearest(item, &workloads[0].name, WORKLOADS, sizeof workloads[0]);
        return cli_mistake(usage.command, "--workload: unknown workload '%s'; %s%s%s", item, !nearest ? "" : "did you mean '",
                           !nearest ? "'batchwise bench --help' lists them" : nearest, !nearest ? "" : "'?");
    }
    *measured = (result){.work = work, .batch = batch < work->samples ? batch : work->samples, .warmup = given->warmup};
    return CLI_SUCCESS;
}

/* Splits the text at its commas, in place; `list` gets the `count` workloads to measure. */
static int read_list(result *list, size_t count, const arguments *given, char *text)
{
    for (size_t i = 0; i < count; i++) {
        char *comma = strchr(text, ',');
        if (comma) {
            *comma = 0;
        }
        int code = read_item(&list[i], given, text);
        if (code != CLI_SUCCESS) {
            return code;
        }
        text = comma ? comma + 1 : text;
    }
    return CLI_SUCCESS;
}

/* Prints rows as they are measured, but JSON only at the end: after a failure nothing may be on standard output. */
static int bench(const arguments *given, result *list, size_t count)
{
    cli_json json = {.file = stdout};
    if (!given->json) {
        printf("%-12s %7s %12s %11s %8s %11s %11s\n", "workload", "batch", "samples/s", "step us", "GFLOP/s", "peak", "planned");
    }
    bool together = cli_ranks_count() > 1 && !given->model;
    bw_context *shared = together ? open_context(given) : NULL;
    int code = together && !shared ? CLI_FAILURE : CLI_SUCCESS;
    for (size_t i = 0; i < count && code == CLI_SUCCESS; i++) {
        code = given->model ? measure_model(&list[i], given) : measure(&list[i], given, shared);
        if (code == CLI_SUCCESS && !given->json) {
            print_row(&list[i]);
        }
        if (!given->json && given->model) {
            print_limits(&list[i]);
        }
    }
    code = shared ? cli_session_close(shared, code) : code;
    if (code == CLI_SUCCESS && given->json) { /* only now, since all measurements have succeeded */
        if (count > 1) {
            cli_json_object(&json, NULL);
            cli_json_array(&json, "results");
        }
        for (size_t i = 0; i < count; i++) {
            print_json(&json, &list[i]);
        }
        if (count > 1) {
            cli_json_array_end(&json);
            cli_json_object_end(&json);
        }
        putchar('\n');
    }
    return code;
}

/* Checks the combination of options: a workload brings data, loss and optimizer; a model needs data, or the shape of random
 * samples. */
static int check(const arguments *given)
{
    if (!given->workload == !given->model) {
        return cli_mistake(usage.command, given->model ? "--workload and --model exclude each other; give one of them"
                                                       : "expected --workload NAME, or --model M with --data or --shape");
    }
    if (given->workload && (given->data.path || given->data.shape.ndim > 0 || given->optimizer || given->loss)) {
        return cli_mistake(usage.command, "--data, --shape, --optimizer and --loss belong to --model; a workload has its own");
    }
    if (given->model && !given->data.path && given->data.shape.ndim == 0) {
        return cli_mistake(usage.command, "--model needs --data D, or --shape 28x28x1 for random samples");
    }
    return given->model && given->data.path ? cli_data_check(usage.command, &given->data) : CLI_SUCCESS;
}

/* All workloads are read before any runs, so that a misspelt name is refused at once and not after minutes. */
int cli_bench(int argc, char **argv)
{
    arguments given = {.data = CLI_DATA_DEFAULT, .batch = 32, .epochs = 1, .warmup = 1};
    int code;
    if (!cli_options_read(&code, &usage, argc, argv, &given)) {
        return code;
    }
    if (given.epochs > INT32_MAX - given.warmup) {
        return cli_mistake(usage.command, "--epochs and --warmup: expected a sum of at most %d", INT32_MAX);
    }
    code = check(&given);
    if (code != CLI_SUCCESS) {
        return code;
    }
    size_t count = 1;
    for (const char *s = given.workload ? given.workload : ""; *s != 0; s++) {
        count += *s == ',';
    }
    char *text = strdup(given.workload ? given.workload : "");
    result *list = calloc(count, sizeof *list);
    code = CLI_FAILURE;
    if (!text || !list) {
        cli_fail("no memory for the list of workloads");
    } else {
        code = given.model ? CLI_SUCCESS : read_list(list, count, &given, text);
    }
    if (code == CLI_SUCCESS) {
        code = bench(&given, list, count);
    }
    free(list);
    free(text);
    return code;
}
