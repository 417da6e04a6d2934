/*
 * Runs many small trainings and prints a line for each: its name and a hash of the bits of weights, history, evaluation and
 * predictions. Two builds of the library whose lines are equal train alike in every bit; compare.sh compares them.
 *
 *     bits [--workers N[,N...]] [--facts] [--list] [--ranks] [PART...]
 *
 * With --ranks it may be started by mpirun, and runs what several processes can: with eight lanes and without predictions, of which a
 * rank makes its own. The lines are those of one process that was asked for the same.
 *
 * With several numbers of workers each case runs with each of them, and all must agree. --facts adds what the run took: it shows
 * that a case meets what it is meant for. Cases whose names hold none of the PARTs are left out. Exit status 1: a case failed.
 */
#include "bits.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_RANKS = 4, MOST_COUNTS = 8, DEFAULT_WORKERS = 2, DEFAULT_TILE = 4, DEFAULT_EPOCHS = 2, RANKS_LANES = 8 };

/* Of --ranks: the place among the processes that mpirun started, which one context has from the first case to the last. */
static bool as_ranks;
static bw_context_options launched = BW_CONTEXT_OPTIONS_DEFAULT;
static bw_context *shared_context;

/* ---- Hashing: FNV-1a ---- */

static const uint64_t FNV_BASIS = 0xcbf29ce484222325u, FNV_PRIME = 0x100000001b3u;

void bits_add(bits_run *run, const void *bytes, size_t count)
{
    const unsigned char *at = bytes;
    for (size_t i = 0; i < count; i++) {
        run->hash = (run->hash ^ at[i]) * FNV_PRIME;
    }
}

static void add_history(bits_run *run, const bw_history *history)
{
    for (int c = 0; c < bw_history_columns(history); c++) {
        for (int e = 0; e < bw_history_epochs(history); e++) {
            double value = bw_history_value(history, bw_history_column(history, c), e);
            bits_add(run, &value, sizeof value);
        }
    }
}

static int64_t elements(int ndim, const int64_t *shape)
{
    int64_t count = 1;
    for (int i = 0; i < ndim; i++) {
        count *= shape[i];
    }
    return count;
}

static bw_status add_weights(bits_run *run)
{
    bw_status status = BW_OK;
    for (int v = 0; v < bw_variable_count(run->model) && status == BW_OK; v++) {
        int64_t shape[BW_MAX_NDIM];
        size_t count = (size_t)elements(bw_variable_shape(run->model, v, shape), shape);
        float *values = calloc(count, sizeof *values);
        status = bw_variable_get(run->model, v, values, count);
        bits_add(run, values, count * sizeof *values);
        free(values);
    }
    double rate = bw_learning_rate(run->model);
    bits_add(run, &rate, sizeof rate);
    return status;
}

static bw_status add_predictions(bits_run *run)
{
    enum { MOST_OUTPUTS = 4 };
    float *values[MOST_OUTPUTS] = {NULL};
    size_t counts[MOST_OUTPUTS] = {0};
    int outputs = bw_output_count(run->model);
    bw_status status = outputs <= MOST_OUTPUTS ? BW_OK : BW_INTERNAL;
    for (int i = 0; i < outputs && status == BW_OK; i++) {
        bw_output_facts facts;
        status = bw_output_describe(run->model, i, &facts);
        if (status == BW_OK) {
            counts[i] = (size_t)(elements(facts.ndim, facts.shape) * bw_dataset_count(run->data));
            values[i] = calloc(counts[i], sizeof *values[i]);
        }
    }
    if (status == BW_OK && outputs > 0) {
        status = bw_predict_all(run->model, run->data, values, counts, outputs);
    }
    for (int i = 0; i < outputs && i < MOST_OUTPUTS; i++) {
        bits_add(run, values[i], counts[i] * sizeof(float));
        free(values[i]);
    }
    return status;
}

/* ---- One case ---- */

static bw_context *open_context(const bits_run *run)
{
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.workers = run->workers;
    options.ranks = run->ranks;
    options.rank = run->rank;
    options.exact_kernels = run->row->exact;
    if (launched.ranks && !shared_context) {
        launched.workers = run->workers;
        shared_context = bw_open(&launched);
    }
    return launched.ranks ? shared_context : bw_open(&options);
}

static void close_context(bw_context *ctx)
{
    if (ctx != shared_context) {
        bw_close(ctx);
    }
}

static bw_dataset *open_data(bw_context *ctx, const bits_case *row)
{
    bw_array x = bits_inputs(row->input), y = row->target == NOTHING ? x : bits_targets(row->target), w = bits_weights();
    bw_dataset *data =
        row->read ? row->read(ctx) : bw_from_arrays(ctx, &x, row->target == NOTHING ? NULL : &y, row->weighted ? &w : NULL);
    return row->change ? row->change(data) : data;
}

static bw_model *open_model(bw_context *ctx, const bits_case *row)
{
    bw_model *model = row->build ? row->build(ctx) : bw_model_parse(ctx, row->model);
    const char *optimizer = row->optimizer ? row->optimizer : "adam(lr=0.01)";
    return bw_compile(model, optimizer, row->loss, row->metrics) == BW_OK ? model : NULL;
}

/* The least budget, in steps of a 32nd, that leaves tile and lanes as they are. */
static size_t tightest(bw_model *model, bw_dataset *data, int64_t batch, bw_plan_options *options, size_t roomy)
{
    size_t least = roomy;
    bw_plan *plan = NULL;
    for (options->memory = roomy; (plan = bw_plan_make(model, data, batch, options)); options->memory -= options->memory / 32) {
        bw_memory_facts facts = bw_plan_facts(plan);
        bw_plan_free(plan);
        if (facts.tile != options->tile || facts.lanes != options->lanes) {
            break;
        }
        least = options->memory;
    }
    return least;
}

/* The bytes of a case's budget, from plans in a context of their own; 0: it has none. */
static size_t budget_of(const bits_case *row, const bw_fit_options *fit, int workers)
{
    if (row->budget == 0) {
        return 0;
    }
    bits_run planning = {.row = row, .workers = workers};
    bw_context *ctx = open_context(&planning);
    bw_dataset *data = open_data(ctx, row);
    bw_model *model = open_model(ctx, row);
    bw_plan_options options = BW_PLAN_OPTIONS_DEFAULT;
    options.tile = fit->tile;
    options.lanes = fit->lanes;
    options.accumulate = fit->accumulate;
    options.epochs = fit->epochs;
    bw_plan *plan = bw_plan_make(model, data, fit->batch, &options);
    size_t roomy = bw_plan_facts(plan).peak_bytes;
    options.lanes = bw_plan_facts(plan).lanes;
    size_t bytes = row->budget > 0 ? (size_t)((double)roomy * row->budget) : tightest(model, data, fit->batch, &options, roomy);
    bw_close(ctx);
    return bytes;
}

static bw_fit_options options_of(bits_run *run)
{
    static const float class_weights[CLASS_COUNT] = {1, 0.5F, 2, 1.25F, 0.75F};
    const bits_case *row = run->row;
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.epochs = row->epochs ? row->epochs : DEFAULT_EPOCHS;
    options.batch = row->batch_sizes ? -1 : row->batch ? row->batch : BATCH;
    options.batch_sizes = row->batch_sizes;
    options.drop_remainder = row->drop_remainder;
    options.tile = row->tile < 0 ? 0 : row->tile ? row->tile : DEFAULT_TILE;
    options.lanes = as_ranks && row->lanes == 0 ? RANKS_LANES : row->lanes;
    options.accumulate = row->accumulate ? row->accumulate : 1;
    options.validation_split = row->validation;
    options.early_stopping = row->early_stopping;
    options.reduce_lr_on_plateau = row->plateau;
    options.class_weight = row->class_weights ? class_weights : NULL;
    options.class_count = row->class_weights ? CLASS_COUNT : 0;
    options.on_step = row->on_step;
    options.user = run;
    options.seed = 4;
    return options;
}

bw_status bits_fit(bits_run *run)
{
    bw_status status = bw_fit(run->model, run->data, &run->options, &run->history);
    if (status == BW_OK) {
        add_history(run, run->history);
        run->facts = bw_history_facts(run->history);
        run->loss = bw_history_last(run->history, "loss");
        if (!isfinite(run->loss)) {
            snprintf(run->message, sizeof run->message, "the loss is not finite");
            return BW_INTERNAL;
        }
    }
    return status;
}

static bw_status add_results(bits_run *run)
{
    bw_history *evaluated = NULL;
    bw_status status = add_weights(run);
    if (status == BW_OK && run->row->target != NOTHING) {
        status = bw_evaluate(run->model, run->data, &evaluated);
        add_history(run, evaluated);
    }
    /* A rank predicts the samples of its own lanes only. */
    return status == BW_OK && !run->ranks && !as_ranks ? add_predictions(run) : status;
}

static void *run_rank(void *user)
{
    bits_run *run = user;
    const bits_case *row = run->row;
    run->hash = FNV_BASIS;
    run->options = options_of(run);
    run->options.memory = budget_of(row, &run->options, run->workers);
    run->ctx = open_context(run);
    run->data = open_data(run->ctx, row);
    run->model = open_model(run->ctx, row);
    run->status = row->train ? row->train(run) : bits_fit(run);
    if (run->status == BW_OK) {
        run->status = add_results(run);
    }
    if (!*run->message) {
        snprintf(run->message, sizeof run->message, "%.255s", bw_message(run->ctx));
    }
    close_context(run->ctx);
    return NULL;
}

/* Runs a case on all its ranks, which must end alike; what came of it is left in the first of the runs. */
static bits_run run_case(const bits_case *row, int workers)
{
    bits_run runs[MOST_RANKS] = {{0}};
    pthread_t threads[MOST_RANKS];
    int ranks = row->ranks ? row->ranks : 1;
    bw_ranks *group = ranks > 1 ? bw_ranks_open(ranks) : NULL;
    for (int k = 0; k < ranks; k++) {
        runs[k] = (bits_run){.row = row, .workers = row->workers ? row->workers : workers, .ranks = group, .rank = k};
    }
    for (int k = 1; k < ranks; k++) {
        if (pthread_create(&threads[k], NULL, run_rank, &runs[k]) != 0) {
            abort();
        }
    }
    run_rank(&runs[0]);
    for (int k = 1; k < ranks; k++) {
        pthread_join(threads[k], NULL);
        if (runs[0].status == BW_OK && (runs[k].status != BW_OK || runs[k].hash != runs[0].hash)) {
            runs[0].status = BW_INTERNAL;
            snprintf(runs[0].message, sizeof runs[0].message, "rank %d ended otherwise: %s: %.200s", k,
                     bw_status_name(runs[k].status), runs[k].message);
        }
    }
    bw_ranks_close(group);
    return runs[0];
}

/* ---- All cases ---- */

typedef struct choice {
    int workers[MOST_COUNTS], counts;
    bool facts, list;
    char **parts;
    int part_count, cases, failures;
} choice;

/* Processes have one context, so not kernels of a case's own, and at least a lane each. */
static bool suits_ranks(const bits_case *row)
{
    return row->ranks == 0 && row->workers == 0 && !row->exact && row->budget == 0 &&
           (row->lanes == 0 || row->lanes >= RANKS_LANES);
}

static bool is_wanted(const choice *c, const bits_case *row)
{
    for (int i = 0; i < c->part_count; i++) {
        if (strstr(row->name, c->parts[i])) {
            return !as_ranks || suits_ranks(row);
        }
    }
    return c->part_count == 0 && (!as_ranks || suits_ranks(row));
}

static void print_facts(const bits_run *run)
{
    const bw_run_facts *f = &run->facts;
    printf(" loss=%.6g tile=%d lanes=%d workers=%d updates=%d segments=%d kept=%zu spilled=%zu planned=%zu seconds=%.3f", run->loss,
           (int)f->tile, f->lanes, f->workers, (int)f->updates, f->segments, f->kept_bytes, f->spilled_bytes, f->planned_bytes,
           f->seconds);
}

static void visit(void *user, const bits_case *row)
{
    choice *c = user;
    if (!is_wanted(c, row)) {
        return;
    }
    c->cases++;
    if (c->list) {
        puts(row->name);
        return;
    }
    bits_run first = run_case(row, c->workers[0]);
    for (int i = 1; i < c->counts && first.status == BW_OK && !row->workers; i++) {
        bits_run other = run_case(row, c->workers[i]);
        if (other.status != BW_OK || other.hash != first.hash) {
            first.status = BW_INTERNAL;
            snprintf(first.message, sizeof first.message, "%d workers give %016" PRIx64 ", %d give %016" PRIx64 "%s", c->workers[0],
                     first.hash, c->workers[i], other.hash, other.status == BW_OK ? "" : ", which failed");
        }
    }
    c->failures += first.status != BW_OK;
    if (launched.rank > 0) { /* whose weights were compared with the first one's */
        return;
    }
    if (first.status == BW_OK) {
        printf("%s %016" PRIx64, row->name, first.hash);
    } else {
        printf("%s failed: %s: %s", row->name, bw_status_name(first.status), first.message);
    }
    if (c->facts) {
        print_facts(&first);
    }
    putchar('\n');
    fflush(stdout);
}

/* "1,3" */
static bool read_workers(choice *c, const char *text)
{
    c->counts = 0;
    for (char *end = NULL; c->counts < MOST_COUNTS; text = end + 1) {
        c->workers[c->counts++] = (int)strtol(text, &end, 10);
        if (end == text || c->workers[c->counts - 1] < 1 || (*end && *end != ',')) {
            return false;
        }
        if (!*end) {
            return true;
        }
    }
    return false;
}

int main(int argc, char **argv)
{
    choice c = {.workers = {DEFAULT_WORKERS}, .counts = 1};
    int i = 1;
    for (; i < argc && argv[i][0] == '-'; i++) {
        if (strcmp(argv[i], "--facts") == 0) {
            c.facts = true;
        } else if (strcmp(argv[i], "--list") == 0) {
            c.list = true;
        } else if (strcmp(argv[i], "--ranks") == 0) {
            as_ranks = true;
        } else if (strcmp(argv[i], "--workers") != 0 || ++i == argc || !read_workers(&c, argv[i])) {
            fprintf(stderr, "usage: bits [--workers N[,N...]] [--facts] [--list] [--ranks] [PART...]\n");
            return 2;
        }
    }
    c.parts = argv + i;
    c.part_count = argc - i;
    if (as_ranks) {
        bw_ranks_mpi(&launched);
    }
    bits_make_samples();
    bits_table_cases(visit, &c);
    bits_data_cases(visit, &c);
    bits_program_cases(visit, &c);
    if (c.failures > 0 || c.cases == 0) {
        fprintf(stderr, "bits: %d of %d cases failed\n", c.failures, c.cases);
    }
    bw_close(shared_context);
    bw_ranks_close(launched.ranks);
    return c.failures > 0 || c.cases == 0;
}
