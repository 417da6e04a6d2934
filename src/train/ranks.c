/*
 * How ranks begin to train, and how they stay together. If one were refused, or trained with different numbers, the others would
 * wait for it forever, so either all of them begin or none does. Between steps they agree whether to stop, and compare their
 * weights.
 */
#include "train/checkpoint/checkpoint.h"

#include <math.h>
#include <string.h>

/* The sum of rank 0's numbers and of the others' zeros. */
bw_status bwi_ranks_take_first(bw_context *ctx, double *numbers, int count)
{
    for (int k = 0; ctx->rank > 0 && k < count; k++) {
        numbers[k] = 0;
    }
    return bwi_rank_of(ctx)->sum_doubles(ctx, numbers, count);
}

/* A rank whose numbers are not those of rank 0 fails, and the agreement that follows tells the others which one. */
static bw_status compare(bw_context *ctx, const bwi_alike *a)
{
    static const char *const names[] = {"samples",   "samples per update", "updates", "epochs", "validation samples",
                                        "variables", "steps so far"};
    enum { FACTS = 8, SIZES = 7 };
    const double mine[FACTS] = {(double)bw_dataset_count(a->training),
                                (double)bwi_dataset_largest_batch(a->training),
                                (double)bwi_dataset_batch_count(a->training, 0),
                                a->epochs,
                                a->validation ? (double)bw_dataset_count(a->validation) : 0,
                                a->variables,
                                (double)a->from,
                                (double)(uint32_t)bwi_dataset_batch_hash(a->training, a->epochs)};
    double first[FACTS];
    memcpy(first, mine, sizeof first);
    bw_status status = bwi_ranks_take_first(ctx, first, FACTS);
    for (int k = 0; k < FACTS && status == BW_OK; k++) {
        if (fabs(first[k] - mine[k]) > 0 && k == SIZES) {
            status =
                bwi_fail(ctx, BW_INVALID_ARGUMENT, "ranks differ in their batch sizes, or in the epochs at which these change");
        } else if (fabs(first[k] - mine[k]) > 0) {
            status = bwi_fail(ctx, BW_INVALID_ARGUMENT, "ranks differ in their number of %s: %.0f here, %.0f on rank 0", names[k],
                              mine[k], first[k]);
        }
    }
    return status;
}

static void list_facts(const bwi_alike *a, bwi_identity *facts)
{
    const bwi_session *s = a->session;
    const bwi_plan *plan = bwi_exec_plan(s->exec);
    const bw_model *model = s->training->model;
    bwi_identity_add_options(facts, a->options);
    bwi_identity_add(facts, "tile", "%lld samples", (long long)plan->tile);
    bwi_identity_add(facts, "lanes", "%d", plan->lanes);
    bwi_identity_add(facts, "updates so far", "%lld", (long long)s->training->optimizer.iterations);
    bwi_identity_add_training(facts, s->training, true);
    bwi_identity_add_model(facts, model);
    bwi_identity_add(facts, "weights", "those with hash %016llx", (unsigned long long)bw_model_hash(model));
}

/* Compares seed, tile, lanes, options, optimizer, layers and weights, by hashes that doubles hold exactly. The option `batch` may
 * be written in several ways, and was compared before. */
static bw_status compare_facts(bw_context *ctx, const bwi_identity *facts, double *hashes)
{
    for (int k = 0; k < facts->count; k++) {
        const bwi_identity_fact *fact = &facts->facts[k];
        hashes[k] = (double)(uint32_t)bwi_hash(bwi_hash(1, fact->name, strlen(fact->name)), fact->text, strlen(fact->text));
    }
    double *first = hashes + facts->count;
    memcpy(first, hashes, (size_t)facts->count * sizeof *first);
    bw_status status = bwi_ranks_take_first(ctx, first, facts->count);
    for (int k = 0; k < facts->count && status == BW_OK; k++) {
        if (fabs(first[k] - hashes[k]) > 0 && strcmp(facts->facts[k].name, "batch") != 0) {
            status = bwi_fail(ctx, BW_INVALID_ARGUMENT, "ranks differ in %s: here it is %s, on rank 0 another",
                              facts->facts[k].name, facts->facts[k].text);
        }
    }
    return status;
}

static bw_status compare_runs(bw_context *ctx, const bwi_alike *a)
{
    bwi_identity facts = {.ctx = ctx};
    list_facts(a, &facts);
    double *hashes = facts.failed ? NULL : bwi_allocate(ctx, (size_t)facts.count, 2 * sizeof *hashes);
    double mine = hashes ? facts.count : -1, first = mine;
    bw_status status = hashes ? BW_OK : BW_RESOURCE_EXHAUSTED, all = bwi_rank_of(ctx)->agree(ctx, status);
    status = status != BW_OK ? status : all;
    status = status == BW_OK ? bwi_ranks_take_first(ctx, &first, 1) : status;
    if (status == BW_OK && fabs(first - mine) > 0) {
        status = bwi_fail(ctx, BW_INVALID_ARGUMENT, "ranks differ in their layers: this one's model is not that of rank 0");
    }
    all = status == BW_OK || status == BW_INVALID_ARGUMENT ? bwi_rank_of(ctx)->agree(ctx, status) : status;
    status = status != BW_OK ? status : all;
    status = status == BW_OK ? compare_facts(ctx, &facts, hashes) : status;
    bwi_release(ctx, hashes);
    bwi_identity_free(&facts);
    return status;
}

bw_status bwi_ranks_enter(bw_context *ctx, bw_status status)
{
    bw_status all = ctx && ctx->ranks ? bwi_rank_of(ctx)->agree(ctx, status) : BW_OK;
    return status != BW_OK ? status : all;
}

bw_status bwi_ranks_begin(bw_context *ctx, const bwi_alike *alike, bw_status status)
{
    if (!ctx->ranks) {
        return status;
    }
    bw_status all = bwi_rank_of(ctx)->agree(ctx, status);
    if (status != BW_OK || all != BW_OK) {
        return status != BW_OK ? status : all;
    }
    status = compare(ctx, alike);
    all = bwi_rank_of(ctx)->agree(ctx, status);
    if (alike->session && status == BW_OK && all == BW_OK) {
        status = compare_runs(ctx, alike);
        all = bwi_rank_of(ctx)->agree(ctx, status);
    }
    return status != BW_OK ? status : all;
}

/* ---- Between steps ---- */

/* Names the rank whose hash is not that of more than half of all ranks; if there is no such majority, one that differs from rank
 * 0. */
static bw_status name_difference(bw_context *ctx, const double *hashes, int ranks, int64_t updates)
{
    int candidate = 0, lead = 0, common = 0, other = 0;
    for (int rank = 0; rank < ranks; rank++) { /* if more than half are equal, one of these remains */
        candidate = lead == 0 ? rank : candidate;
        lead += memcmp(&hashes[2 * rank], &hashes[2 * candidate], 2 * sizeof *hashes) == 0 ? 1 : -1;
    }
    for (int rank = 0; rank < ranks; rank++) {
        common += memcmp(&hashes[2 * rank], &hashes[2 * candidate], 2 * sizeof *hashes) == 0;
    }
    bool majority = 2 * common > ranks;
    const double *expected = &hashes[majority ? 2 * candidate : 0];
    while (other < ranks && memcmp(&hashes[2 * other], expected, 2 * sizeof *hashes) == 0) {
        other++;
    }
    if (other == ranks) {
        return BW_OK;
    }
    return bwi_fail(
        ctx, BW_DATA_LOSS,
        "after %lld updates the weights of rank %d of %d differ from those of %s: its memory is damaged, or its program "
        "changes weights that the others leave alone",
        (long long)updates, other, ranks, majority ? "the others" : "rank 0");
}

/* A hash of all weights as they are stored, which ranks do alike. bw_model_hash brings them into Keras's order, and each of its
 * words waits for the one before; here four chains of words do not wait for each other. */
static uint64_t digest_of(const bw_model *model)
{
    enum { CHAINS = 4, BLOCK = 4096 };
    unsigned char bytes[BLOCK];
    uint64_t chains[CHAINS] = {1, 2, 3, 4};
    for (int v = 0; v < model->graph.variable_count; v++) {
        const bwi_variable *variable = model->graph.variables[v];
        size_t total = variable->data ? (size_t)variable->count * sizeof(float) : 0;
        for (size_t first = 0; first < total; first += BLOCK) {
            size_t size = total - first < BLOCK ? total - first : BLOCK, word = sizeof(uint64_t);
            variable->kernels->memory->read(bytes, bwi_variable_at(variable, (int64_t)(first / sizeof(float))), size);
            for (size_t at = 0; at < size; at += word) {
                uint64_t *chain = &chains[at / word % CHAINS];
                *chain = bwi_hash_add(*chain, bytes + at, size - at < word ? size - at : word);
            }
        }
    }
    return bwi_hash(0, chains, sizeof chains);
}

bw_status bwi_ranks_meet(bw_model *model, bool compares, int64_t updates, bool *stopped)
{
    bw_context *ctx = model->ctx;
    int ranks = bwi_rank_of(ctx)->count(ctx->ranks);
    size_t count = compares ? 1 + 2 * (size_t)ranks : 1;
    double stop, *facts = compares ? bwi_allocate(ctx, count, sizeof *facts) : &stop;
    if (!facts) {
        return BW_RESOURCE_EXHAUSTED;
    }
    memset(facts, 0, count * sizeof *facts);
    facts[0] = *stopped;
    if (compares) { /* each rank fills its own places, as numbers that doubles hold exactly */
        uint64_t hash = digest_of(model);
        facts[1 + 2 * ctx->rank] = (double)(uint32_t)hash;
        facts[2 + 2 * ctx->rank] = (double)(uint32_t)(hash >> 32);
    }
    bw_status status = bwi_rank_of(ctx)->sum_doubles(ctx, facts, (int64_t)count);
    if (status == BW_OK) {
        *stopped = facts[0] > 0;
        status = compares ? name_difference(ctx, facts + 1, ranks, updates) : BW_OK;
    }
    if (compares) {
        bwi_release(ctx, facts);
    }
    return status;
}
