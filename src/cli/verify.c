/*
 * batchwise verify: proves on the user's model and samples that splitting changes nothing. The same few updates are made
 * repeatedly from the same initial weights, each time split differently: over other numbers of workers, over ranks, in pieces that
 * are accumulated, and by other tile sizes. All but the tile sizes must give the same bits; how much rounding differs with another
 * tile size is measured.
 */
#include "cli/cli.h"

#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

typedef struct arguments {
    const char *model, *optimizer, *loss;
    cli_data data;
    int64_t batch, tile;
    int steps, workers, lanes;
    uint64_t seed;
    size_t memory;
    bool json;
} arguments;

#define AT(member) offsetof(arguments, member)

static const cli_option options[] = {
    {CLI_MODEL_OPTION},
    CLI_DATA_OPTIONS(arguments, data),
    {"batch", &cli_batch, AT(batch), "N|full", "samples per update (32)"},
    {"steps", &cli_count, AT(steps), "N", "updates that are compared (3)"},
    {CLI_OPTIMIZER_OPTION},
    {CLI_LOSS_OPTION},
    {CLI_MEMORY_OPTION},
    {"workers", &cli_count, AT(workers), "N", "threads of the run that others are compared with; default:\none for each CPU"},
    {"tile", &cli_extent, AT(tile), "N", "its tile; default: from the model"},
    {CLI_LANES_OPTION},
    {"seed", &cli_seed, AT(seed), "N", "of the weights, the order and random layers (0)"},
    {CLI_JSON_OPTION},
    {.name = NULL},
};

static void print_example(void)
{
    puts("example:\n"
         "  batchwise verify --model 'conv2d(32,3,relu) maxpool2d(2) flatten dense(10,softmax)' --data digits.npz --batch 100");
}

static const cli_usage usage = {
    .command = "verify",
    .synopsis = "--model M --data D [options]",
    .purpose = "Proves on this model and these samples that splitting a batch changes nothing: not workers, ranks or pieces.",
    .options = options,
    .required = "model",
    .print_more = print_example,
};

/* ---- One run -------------------------------------------------------------------------------------------- */

typedef struct trial {
    const arguments *given;
    /* What this trial does differently. */
    int workers;     /* 0: as given */
    bw_ranks *ranks; /* NULL: one rank */
    int rank;
    int64_t tile; /* 0: as given, within the memory budget; otherwise tile and lanes fix the plan */
    int lanes;
    int64_t piece;  /* > 0: each batch is fed as a piece of that many samples and the remainder, accumulated */
    int accumulate; /* > 1: bw_fit accumulates that many batches, each as many times smaller */
    /* Its results. */
    int code;
    uint64_t hash;
    float *weights;
    size_t count;
    int64_t batch;
    bw_run_facts facts;
    int phases;
} trial;

/* Reads all weights into one vector, in the order of the variables: the first pass counts, the second reads. */
static bw_status read_weights(trial *t, const bw_model *model)
{
    bw_status status = BW_OK;
    for (int pass = 0; pass < 2 && status == BW_OK; pass++) {
        size_t at = 0;
        for (int v = 0; v < bw_variable_count(model) && status == BW_OK; v++) {
            int64_t shape[BW_MAX_NDIM];
            int rank = bw_variable_shape(model, v, shape);
            size_t count = 1;
            for (int i = 0; i < rank; i++) {
                count *= (size_t)shape[i];
            }
            status = pass > 0 ? bw_variable_get(model, v, t->weights + at, count) : BW_OK;
            at += count;
        }
        if (pass == 0) {
            t->count = at;
            t->weights = malloc((at > 0 ? at : 1) * sizeof *t->weights);
            status = !t->weights ? BW_RESOURCE_EXHAUSTED : BW_OK;
        }
    }
    t->hash = bw_model_hash(model);
    return status;
}

/* Trains with a custom loop, which adds the pieces' gradients and then applies the update. */
static bw_status feed_pieces(const trial *t, bw_model *model, bw_dataset *dataset, const bw_fit_options *fitting)
{
    bw_gradients *gradients = bw_gradients_new(model, fitting);
    bw_iterator *iterator = bw_iterate(dataset, 0);
    bw_batch *batch;
    int64_t window = 0;
    bw_status status;
    while ((status = bw_next(iterator, &batch)) == BW_OK) {
        window += bw_batch_count(batch);
        status = bw_gradients_add(gradients, batch, NULL);
        if (status == BW_OK && window == t->batch) {
            status = bw_apply(model, gradients);
            window = 0;
        }
        if (status != BW_OK) {
            return status;
        }
    }
    return status != BW_OUT_OF_RANGE ? status : window > 0 ? bw_apply(model, gradients) : BW_OK;
}

static bw_status train(trial *t, bw_model *model, bw_dataset *dataset)
{
    bw_fit_options fitting = BW_FIT_OPTIONS_DEFAULT;
    bw_history *history = NULL;
    fitting.batch = t->accumulate > 1 ? t->batch / t->accumulate : t->batch;
    fitting.accumulate = t->accumulate > 1 ? t->accumulate : 1;
    fitting.seed = t->given->seed;
    fitting.memory = t->tile > 0 ? 0 : t->given->memory;
    fitting.tile = t->tile > 0 ? t->tile : t->given->tile;
    fitting.lanes = t->tile > 0 ? t->lanes : t->given->lanes;
    if (t->piece > 0) {
        return feed_pieces(t, model, dataset, &fitting);
    }
    bw_status status = bw_fit(model, dataset, &fitting, &history);
    if (status == BW_OK) {
        t->facts = bw_history_facts(history);
    }
    return status;
}

/* Takes the samples for all updates, shuffled as in `batchwise train`. */
static bw_dataset *take_samples(trial *t, bw_context *ctx, bw_model *model)
{
    const arguments *given = t->given;
    bw_dataset *dataset = cli_data_read(ctx, &given->data, given->data.path, model, NULL);
    int64_t samples = bw_dataset_count(dataset), count;
    if (!dataset) {
        return NULL;
    }
    t->batch = given->batch < samples ? given->batch : samples;
    count = samples / t->batch < given->steps ? samples : t->batch * given->steps;
    dataset = bw_take(bw_shuffle(dataset, given->seed), count);
    if (t->piece > 0) {
        char sizes[64];
        snprintf(sizes, sizeof sizes, "%" PRId64 ",%" PRId64, t->piece, t->batch - t->piece);
        dataset = bw_batch_sizes(dataset, sizes, false);
    }
    return dataset;
}

/* Every trial has a separate context, model and dataset, made from the same seed, so that nothing can carry over from one to the
 * next. */
static int try(trial *t, bw_context *ctx)
{
    bw_model *model;
    int code = cli_model_make(&model, ctx, usage.command, t->given->model, t->given->optimizer, t->given->loss);
    if (code != CLI_SUCCESS) {
        return code;
    }
    bw_dataset *dataset = take_samples(t, ctx, model);
    bw_status status = BW_OK;
    if (!dataset) {
        return CLI_FAILURE;
    }
    t->phases = bw_plan_facts(bw_plan_make(model, dataset, t->batch, NULL)).phases;
    int64_t shape[BW_MAX_NDIM];
    if (t->piece > 0 && bw_variable_count(model) == 0) { /* bw_gradients_new needs a built model */
        int rank = bw_dataset_shape(dataset, shape);
        status = bw_build(model, rank, shape, t->given->seed);
    }
    if (status == BW_OK) {
        status = train(t, model, dataset);
    }
    if (status == BW_OK) {
        status = read_weights(t, model);
    }
    if (status == BW_CANCELLED) {
        cli_fail("interrupted");
        return CLI_INTERRUPTED;
    }
    return status == BW_OK ? CLI_SUCCESS : cli_fail("%s", bw_message(ctx));
}

/* Runs a trial, in a thread or called directly. */
static void *run(void *argument)
{
    trial *t = argument;
    bw_context_options opening = BW_CONTEXT_OPTIONS_DEFAULT;
    opening.workers = t->workers > 0 ? t->workers : t->given->workers;
    opening.ranks = t->ranks;
    opening.rank = t->rank;
    bw_context *ctx = !t->ranks ? cli_session_open((cli_session){.workers = opening.workers, .silent = true}) : bw_open(&opening);
    t->code = CLI_FAILURE;
    if (!ctx) {
        cli_fail("no memory for a context");
        return NULL;
    }
    t->code = try(t, ctx);
    if (!t->ranks) {
        t->code = cli_session_close(ctx, t->code);
    } else {
        bw_close(ctx);
    }
    return NULL;
}

/* ---- Comparing ------------------------------------------------------------------------------------------ */

typedef enum kind { WORKERS, RANKS, ACCUMULATION, TILE, KINDS } kind;

typedef struct comparison {
    bool made;         /* something was compared */
    bool equal;        /* all comparisons gave the same bits */
    double difference; /* the largest difference of any weight */
    char what[160];    /* what was compared, as text */
} comparison;

typedef struct proof {
    const arguments *given;
    trial reference;
    comparison results[KINDS];
} proof;

static double largest_difference(const trial *a, const trial *b)
{
    double largest = 0;
    for (size_t i = 0; i < a->count && i < b->count; i++) {
        double difference = fabs((double)a->weights[i] - (double)b->weights[i]);
        largest = difference <= largest ? largest : difference; /* NaN counts as the largest */
    }
    return largest;
}

static void note(comparison *c, const trial *expected, const trial *found, const char *what)
{
    size_t length = strlen(c->what);
    double difference = largest_difference(expected, found);
    snprintf(c->what + length, sizeof c->what - length, "%s%s", c->made ? "; " : "", what);
    c->equal = (!c->made || c->equal) && expected->hash == found->hash;
    c->difference = c->made && difference <= c->difference ? c->difference : difference;
    c->made = true;
}

static int compare(proof *p, kind which, const trial *expected, trial *t, const char *what)
{
    t->given = p->given;
    t->tile = t->tile > 0 ? t->tile : p->reference.facts.tile;
    t->lanes = p->reference.facts.lanes;
    run(t);
    if (t->code == CLI_SUCCESS) {
        note(&p->results[which], expected, t, what);
    }
    free(t->weights);
    return t->code;
}

static int compare_workers(proof *p)
{
    static const int workers[] = {1, 2, 3};
    int code = CLI_SUCCESS;
    for (size_t k = 0; k < sizeof workers / sizeof workers[0] && code == CLI_SUCCESS; k++) {
        char what[16];
        trial t = {.workers = workers[k]};
        snprintf(what, sizeof what, "%d", workers[k]);
        code = compare(p, WORKERS, &p->reference, &t, what);
    }
    return code;
}

/* Each rank is a thread with a separate context, and needs a lane: a plan with fewer is compared with one that has enough. A rank
 * whose thread cannot be started leaves the group, so that the others do not wait for it. */
static int compare_ranks(proof *p)
{
    enum { COUNT = 2 };
    trial trials[COUNT] = {{0}}, alone = {.given = p->given, .tile = p->reference.facts.tile, .lanes = COUNT};
    pthread_t threads[COUNT];
    bool started[COUNT] = {false};
    int code = CLI_SUCCESS;
    bw_ranks *ranks = bw_ranks_open(COUNT);
    if (!ranks) {
        return cli_fail("no memory for %d ranks", COUNT);
    }
    bool enough = p->reference.facts.lanes >= COUNT;
    const trial *expected = enough ? &p->reference : &alone;
    if (!enough) {
        run(&alone);
        code = alone.code;
    }
    for (int r = 0; r < COUNT; r++) {
        trials[r] = (trial){.given = p->given, .workers = 1, .ranks = ranks, .rank = r};
        trials[r].tile = p->reference.facts.tile;
        trials[r].lanes = enough ? p->reference.facts.lanes : COUNT;
        started[r] = pthread_create(&threads[r], NULL, run, &trials[r]) == 0;
        if (!started[r]) {
            bw_context_options opening = BW_CONTEXT_OPTIONS_DEFAULT;
            opening.ranks = ranks;
            opening.rank = r;
            bw_close(bw_open(&opening));
            code = cli_fail("cannot start a thread for rank %d of %d", r, COUNT);
        }
    }
    for (int r = 0; r < COUNT; r++) {
        if (started[r]) {
            pthread_join(threads[r], NULL);
            code = trials[r].code != CLI_SUCCESS ? trials[r].code : code;
        }
    }
    bw_ranks_close(ranks);
    for (int r = 0; r < COUNT; r++) {
        if (code == CLI_SUCCESS) {
            note(&p->results[RANKS], expected, &trials[r], r == 0 ? "0 of 2" : "1 of 2");
        }
        free(trials[r].weights);
    }
    free(alone.weights);
    return code;
}

/* Returns the largest power of two that is at most half of the batch, so that a piece of whole tiles leaves samples for another. */
static int64_t half(int64_t batch)
{
    int64_t power = 1;
    while (power <= batch / 4) {
        power *= 2;
    }
    return power;
}

/* Pieces give the same bits as the whole batch if all but the last consist of whole tiles; if the tile is too large for that, both
 * are trained with a smaller one. Pieces that a custom loop feeds have separate statistics in whole-batch layers; for such models
 * only bw_fit's accumulation is the same by definition. */
static int compare_pieces(proof *p)
{
    const trial *reference = &p->reference;
    int64_t batch = reference->batch, tile = reference->facts.tile;
    trial smaller = {.given = p->given, .tile = half(batch), .lanes = reference->facts.lanes};
    int code = CLI_SUCCESS;
    if (tile > smaller.tile) {
        run(&smaller);
        code = smaller.code;
        reference = &smaller;
        tile = smaller.tile;
    }
    char what[64];
    if (code == CLI_SUCCESS && batch > 1 && p->reference.phases == 1) {
        trial t = {.tile = tile, .piece = batch / 2 / tile * tile};
        snprintf(what, sizeof what, "%" PRId64 " + %" PRId64 " samples", t.piece, batch - t.piece);
        code = compare(p, ACCUMULATION, reference, &t, what);
    }
    for (int k = 2; k <= 4 && code == CLI_SUCCESS; k += 2) {
        if (batch % k == 0) {
            trial t = {.tile = tile, .accumulate = k};
            snprintf(what, sizeof what, "%d x %" PRId64 " samples", k, batch / k);
            code = compare(p, ACCUMULATION, reference, &t, what);
        }
    }
    free(smaller.weights);
    return code;
}

static int compare_tiles(proof *p)
{
    int64_t tile = p->reference.facts.tile;
    const int64_t tiles[] = {1, tile / 2, tile * 2};
    int code = CLI_SUCCESS;
    for (size_t k = 0; k < sizeof tiles / sizeof tiles[0] && code == CLI_SUCCESS; k++) {
        bool other = tiles[k] > 0 && tiles[k] != tile && !(k == 1 && tiles[k] == 1) && tiles[k] <= 2048;
        if (other) {
            char what[32];
            trial t = {.tile = tiles[k]};
            snprintf(what, sizeof what, "%" PRId64, tiles[k]);
            code = compare(p, TILE, &p->reference, &t, what);
        }
    }
    return code;
}

/* ---- Results -------------------------------------------------------------------------------------------- */

static bool is_proven(const proof *p)
{
    return p->results[WORKERS].equal && p->results[RANKS].equal &&
           (p->results[ACCUMULATION].equal || !p->results[ACCUMULATION].made);
}

static void print_lines(const proof *p)
{
    static const char *const names[KINDS] = {"workers", "ranks", "accumulation", "tile"};
    printf("compared: all %zu weights after %" PRId64 " update%s of %" PRId64 " sample%s; tile %" PRId64
           ", %d lane%s, %d worker%s\n",
           p->reference.count, p->reference.facts.updates, cli_plural(p->reference.facts.updates), p->reference.batch,
           cli_plural(p->reference.batch), p->reference.facts.tile, p->reference.facts.lanes, cli_plural(p->reference.facts.lanes),
           p->reference.facts.workers, cli_plural(p->reference.facts.workers));
    for (int k = 0; k < KINDS; k++) {
        const comparison *c = &p->results[k];
        if (!c->made) {
            printf("%-13s nothing to compare\n", names[k]);
        } else if (c->equal) {
            printf("%-13s equal in all bits (%s)\n", names[k], c->what);
        } else {
            printf("%-13s %s by at most %.2g (%s)\n", names[k], k == TILE ? "rounds otherwise," : "DIFFERENT,", c->difference,
                   c->what);
        }
    }
}

static void print_json(const proof *p)
{
    cli_json json = {.file = stdout};
    cli_json_object(&json, NULL);
    cli_json_object(&json, "equal_bits");
    cli_json_truth(&json, "workers", p->results[WORKERS].equal);
    cli_json_truth(&json, "ranks", p->results[RANKS].equal);
    cli_json_truth(&json, "accumulation", p->results[ACCUMULATION].equal || !p->results[ACCUMULATION].made);
    cli_json_object_end(&json);
    cli_json_object(&json, "max_difference");
    cli_json_real(&json, "tile", p->results[TILE].difference);
    cli_json_object_end(&json);
    cli_json_whole(&json, "weights", (int64_t)p->reference.count);
    cli_json_whole(&json, "steps", p->reference.facts.updates);
    cli_json_whole(&json, "batch", p->reference.batch);
    cli_json_whole(&json, "tile", p->reference.facts.tile);
    cli_json_whole(&json, "lanes", p->reference.facts.lanes);
    cli_json_hash(&json, "hash", p->reference.hash);
    cli_json_object_end(&json);
    putchar('\n');
}

static int verify(proof *p)
{
    p->reference.given = p->given;
    run(&p->reference);
    int code = p->reference.code;
    int (*const comparisons[])(proof *) = {compare_workers, compare_ranks, compare_pieces, compare_tiles};
    for (size_t k = 0; k < sizeof comparisons / sizeof comparisons[0] && code == CLI_SUCCESS; k++) {
        code = comparisons[k](p);
    }
    if (code != CLI_SUCCESS) {
        return code;
    }
    if (p->given->json) {
        print_json(p);
    } else {
        print_lines(p);
    }
    return is_proven(p) ? CLI_SUCCESS : cli_fail("results that must be bit-identical differ");
}

int cli_verify(int argc, char **argv)
{
    arguments given = {.data = CLI_DATA_DEFAULT, .batch = 32, .steps = 3};
    int code;
    if (!cli_options_read(&code, &usage, argc, argv, &given)) {
        return code;
    }
    if (cli_data_check(usage.command, &given.data) != CLI_SUCCESS) {
        return CLI_USAGE;
    }
    if (strcmp(given.data.path, "-") == 0) {
        return cli_mistake(usage.command, "--data -: expected samples that can be read several times, found standard input");
    }
    proof p = {.given = &given};
    code = verify(&p);
    free(p.reference.weights);
    return code;
}
