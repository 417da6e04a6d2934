/*
 * What a plan chooses: tile, lanes, workers, segments, and whether a window's tiles run together. The default follows from the
 * model and the batch alone, by a cost model with a fixed reference machine, so that two machines agree; a budget asks for ever
 * more frugal choices.
 */
#include "plan/internal.h"

enum {
    REFERENCE_CACHE = 1 << 20,
    TILE_BYTES = 32 << 20,
    SMALL_TILE = 4, /* with fewer samples, kernels spend their time reading weights */
    LARGEST_TILE = 64,
    MOST_LANES = 16,
    SOME_LANES = 8, /* and as many ranks, at most, that give the bits of one */
    MOST_LANES_BYTES = 2 << 20,
    USUAL_BATCH = 256,
    FACTORS_LANES = 3,
    DEFERRED_COUNT = 1 << 12,      /* weights of a dense layer from which on its gradient can be deferred */
    FREE_LANES_BYTES = 1 << 20,    /* that lanes may take in any case */
    FREE_DEFERRED_BYTES = 2 << 20, /* and that factors may */
    EVALUATION_TILE = 32,          /* the smallest, whatever the batch: evaluation feeds more than a batch at once */
    STAGED_ROWS = 16,              /* whose multiples a tile stages */
    SHARED_TILES = 4,              /* that a batch should have, so that workers share it */
    WEIGHT_USES = 12,              /* products of a tile with a weight, from which on reading the weights costs little */
    TILE_OPERATIONS = 1 << 20,     /* of a tile's forward pass: waking a worker for less does not pay */
    LANES_LIMIT = 4096
};

static int64_t power_of_two_below(int64_t value)
{
    int64_t power = 1;
    while (power <= value / 2) {
        power *= 2;
    }
    return power;
}

size_t bwi_choice_gradient_bytes(const bwi_graph *graph)
{
    size_t bytes = 0;
    for (int v = 0; v < graph->variable_count; v++) {
        if (graph->variables[v]->trainable && !graph->variables[v]->sparse) {
            bytes = bwi_size_add(bytes, bwi_size_multiply((size_t)graph->variables[v]->count, sizeof(float)));
        }
    }
    return bytes;
}

/* The bytes of a sample's values. */
static size_t sample_bytes(const bwi_plan_request *request)
{
    size_t bytes = 1;
    for (int n = 0; n < (request->own_nodes ? request->own_nodes : request->graph->count); n++) {
        const bw_node *node = request->graph->nodes[n];
        if (!(node->op->flags & (BWI_OP_VIEW | BWI_OP_SUMS))) {
            bytes = bwi_size_add(bytes, bwi_size_multiply((size_t)bwi_shape_count(&node->shape), sizeof(float)));
        }
    }
    return bytes;
}

/* A tile's activations should stay in the cache; the traffic of the weights, which every tile reads and whose gradient it adds
 * to, should be at most a quarter of the activations'; and there should be a few samples. The last two may lead out of the
 * cache, where more samples cost little more, up to a bound. Values that fusions remove are counted, so that the tile is the
 * same without fusions. */
static int64_t default_tile(const bwi_plan_request *request)
{
    size_t bytes = sample_bytes(request), weights = bwi_choice_gradient_bytes(request->graph);
    int64_t tile = power_of_two_below((int64_t)(REFERENCE_CACHE / bytes));
    while (tile < LARGEST_TILE && (tile < SMALL_TILE || weights / (size_t)tile > bytes / 4) &&
           bwi_size_multiply(bytes, 2 * (size_t)tile) <= TILE_BYTES) {
        tile *= 2;
    }
    return tile > LARGEST_TILE ? LARGEST_TILE : tile;
}

/* A group of samples (BatchNormalization's) must lie within a tile. */
int64_t bwi_choice_least_tile(const bwi_graph *graph)
{
    int64_t least = 1;
    for (int n = 0; n < graph->count; n++) {
        const bw_node *node = graph->nodes[n];
        int64_t group = node->op->group ? node->op->group(node) : 1;
        least = group > least ? group : least;
    }
    return least;
}

static bool has_phases(const bwi_plan_request *request)
{
    for (int n = 0; n < (request->own_nodes ? request->own_nodes : request->graph->count); n++) {
        if (request->graph->nodes[n]->op->flags & BWI_OP_WHOLE_BATCH) {
            return true;
        }
    }
    return false;
}

/* The operations of a sample's forward pass. */
static double sample_operations(const bwi_plan_request *request)
{
    double operations = 0;
    for (int n = 0; n < (request->own_nodes ? request->own_nodes : request->graph->count); n++) {
        const bw_node *node = request->graph->nodes[n];
        operations += node->op->flops ? node->op->flops(node) : (double)bwi_shape_count(&node->shape);
    }
    return operations;
}

/* Workers share a batch by tiles, so a small batch is cut into a few, as long as each has enough to compute, for itself and for
 * every weight that it reads. Dense layers do not need that where workers share their panels. */
static int64_t shared_tile(const bwi_plan_request *request, int64_t tile, bool deferred)
{
    double operations = sample_operations(request), bytes = (double)bwi_choice_gradient_bytes(request->graph);
    double weights = bytes / sizeof(float);
    int64_t enough = power_of_two_below(request->batch) / SHARED_TILES;
    bool splits = deferred && bytes >= BWI_SPLIT_BYTES && operations < 2 * 2 * weights;
    while (!splits && tile > (enough > 1 ? enough : 1) && operations * (double)(tile / 2) >= TILE_OPERATIONS &&
           operations * (double)(tile / 2) >= 2 * WEIGHT_USES * weights) {
        tile /= 2;
    }
    return tile;
}

/* The lanes' sums should cost less than two workers' tiles, eight of them less than four, and than the samples that these save of a
 * small batch, which are few where values of the whole batch are kept between phases. Sixteen lanes should stay in a core's cache
 * until they are added. */
static int cheap_lanes(const bwi_plan_request *request, int64_t tile)
{
    size_t bytes = bwi_choice_gradient_bytes(request->graph), sample = sample_bytes(request),
           saved = 0 < tile && tile < BWI_SMALL_BATCH / 2 ? (size_t)(BWI_SMALL_BATCH - 2 * tile) : 0;
    saved = has_phases(request) ? saved / 4 : saved;
    if (bwi_size_multiply(bytes, SOME_LANES - 1) <=
            bwi_size_multiply(sample, saved < 4 * (size_t)tile ? saved : 4 * (size_t)tile) &&
        bwi_size_multiply(bytes, MOST_LANES) > MOST_LANES_BYTES) {
        return SOME_LANES;
    }
    saved = saved < 2 * (size_t)tile ? saved : 2 * (size_t)tile;
    size_t most = bwi_size_multiply(sample, saved);
    most = most > FREE_LANES_BYTES ? most : FREE_LANES_BYTES;
    int lanes = bwi_size_multiply(bytes, MOST_LANES) <= MOST_LANES_BYTES ? MOST_LANES : SOME_LANES;
    while (lanes > 1 && bwi_size_multiply(bytes, (size_t)lanes - 1) > most) {
        lanes /= 2;
    }
    return lanes;
}

/* The uses of a variable by nodes of the model. */
static int uses_of(const bwi_graph *graph, const bwi_variable *variable)
{
    int uses = 0;
    for (int n = 0; n < graph->count; n++) {
        for (int k = 0; k < graph->nodes[n]->variables; k++) {
            uses += graph->nodes[n]->variable[k] == variable;
        }
    }
    return uses;
}

/* Whether nearly all gradients can be deferred to the update, and so need no lanes (exec/split.c), but their factors: those of a
 * usual batch should need less than a few lanes and a quarter of its values; those of this one, or its lanes if they are less,
 * with the lanes of all other gradients no more than three quarters of the values of the whole batch, as tiles need some, too. The
 * answer is the same for kernels that defer none. */
static bool is_mostly_deferred(const bwi_plan_request *request, int64_t tile, size_t whole)
{
    const bwi_graph *graph = request->graph;
    tile = request->window > 0 && tile > request->window ? power_of_two_below(request->window) : tile > 0 ? tile : 1;
    size_t trained = bwi_choice_gradient_bytes(graph), deferred = 0, factors = 0, staged = 0;
    for (int n = 0; n < (request->own_nodes ? request->own_nodes : graph->count); n++) {
        const bw_node *node = graph->nodes[n];
        const bwi_variable *weights = node->op->deferred && node->variables ? node->variable[0] : NULL;
        if (weights && weights->trainable && weights->count >= DEFERRED_COUNT && uses_of(graph, weights) == 1) {
            size_t in = (size_t)weights->shape.extent[0], out = (size_t)weights->shape.extent[1];
            size_t rows = (size_t)bwi_shape_count(&node->shape) / out;
            deferred = bwi_size_add(deferred, bwi_size_multiply((size_t)weights->count, sizeof(float)));
            factors = bwi_size_add(factors, bwi_size_multiply(bwi_size_multiply(rows, in + out), sizeof(float)));
            rows = bwi_size_multiply(rows, (size_t)tile);
            staged =
                bwi_size_add(staged, bwi_size_multiply(bwi_size_multiply(bwi_size_align(rows, STAGED_ROWS), in), sizeof(float)));
            staged = bwi_size_add(staged, bwi_size_multiply(bwi_size_multiply(rows, out), sizeof(float)));
        }
    }
    size_t most =
        bwi_size_add(bwi_size_multiply(trained, FACTORS_LANES), bwi_size_multiply(sample_bytes(request), USUAL_BATCH / 4));
    if (has_phases(request) || deferred == 0 || deferred < trained - trained / 8 ||
        bwi_size_multiply(factors, USUAL_BATCH) > most) {
        return false;
    }
    size_t window = (size_t)request->window, lanes = bwi_size_multiply(deferred, SOME_LANES - 1);
    size_t others = bwi_size_multiply(trained - deferred, SOME_LANES - 1);
    staged = bwi_size_multiply(staged, (window + (size_t)tile - 1) / (size_t)tile);
    size_t cost = bwi_size_add(staged < lanes ? staged : lanes, others);
    size_t values = bwi_size_multiply(whole, window);
    return window == 0 || whole == 0 || cost <= bwi_size_add(values - values / 4, FREE_DEFERRED_BYTES);
}

/* Eight lanes or more let up to eight ranks have the bits of one. Where their sums would cost too much and cannot be deferred
 * either, there are fewer on one rank, down to one; workers then take tiles of the same lane, and add to it in turn (exec/turns.c).
 * Several ranks, which share the lanes' cost, have the same lanes whatever their number. */
static int default_lanes(const bwi_plan_request *request, const bwi_choice *c, bool deferred)
{
    int lanes = c->cheap_lanes;
    if (lanes < SOME_LANES && (deferred || request->ranks > 1)) {
        lanes = SOME_LANES;
    }
    return lanes > request->least_lanes ? lanes : request->least_lanes;
}

int64_t bwi_most_tiles(int64_t count, int64_t tile)
{
    int64_t whole = count / tile, rest = count % tile, bits = __builtin_popcountll((unsigned long long)rest);
    int64_t top = rest > 0 ? 63 - __builtin_clzll((unsigned long long)rest) : 0;
    int64_t with_rest = whole + (bits > top ? bits : top), before = whole - 1 + __builtin_ctzll((unsigned long long)tile);
    return whole > 0 && before > with_rest ? before : with_rest;
}

static bool only_trains(const bwi_plan_request *request)
{
    bool only = true;
    for (int p = 0; p < request->program_count; p++) {
        only = only && request->programs[p].loss_count > 0;
    }
    return only;
}

/* A batch that a tile would hold is cut as by the largest power of two in it. One that is a tile and a remainder is cut into
 * smaller tiles, or two workers' tiles would hold more samples than it has. */
static int64_t tile_of_batch(const bwi_plan_request *request, int64_t tile)
{
    int64_t least = only_trains(request) ? 1 : EVALUATION_TILE,
            whole = request->batch > 0 ? power_of_two_below(request->batch) : tile;
    whole = whole > least ? whole : least;
    tile = whole < tile ? whole : tile;
    return request->batch > BWI_SMALL_BATCH && tile < request->batch && request->batch < 2 * tile ? tile / 2 : tile;
}

static int lanes_for(int lanes, int ranks)
{
    while (lanes < ranks && lanes < LANES_LIMIT) {
        lanes *= 2;
    }
    return lanes;
}

/* A lane for each tile suffices, of the window with the most, which need not be the largest one: others stay empty, and an empty
 * lane changes no bit of a sum. Evaluation feeds more than a window at once, so with it all lanes stay. */
static int used_lanes(const bwi_plan_request *request, const bwi_choice *c, int ranks)
{
    int64_t tiles = request->window > 0 && only_trains(request) ? bwi_most_tiles(request->window, c->tile) : c->lanes;
    int64_t least = request->least_lanes > ranks ? request->least_lanes : ranks;
    int lanes = c->lanes;
    while (lanes / 2 >= tiles && lanes / 2 >= least) {
        lanes /= 2;
    }
    return lanes;
}

/* Lanes are a power of two, so that their tree is complete, and at least one for each rank. More workers than lanes pay where a
 * tile's work is large. */
bw_status bwi_choice_make(bw_context *ctx, const bwi_plan_request *request, size_t whole, bwi_choice *c)
{
    int ranks = request->ranks > 1 ? request->ranks : 1;
    int64_t tile = request->tile ? request->tile : default_tile(request), least = bwi_choice_least_tile(request->graph);
    bool deferred = is_mostly_deferred(request, tile, whole);
    c->cheap_lanes = cheap_lanes(request, tile);
    c->lanes = request->lanes ? request->lanes : default_lanes(request, c, deferred);
    c->joins = deferred && c->lanes > c->cheap_lanes && !request->least_lanes;
    c->tile = request->tile ? tile : tile_of_batch(request, request->batch > 1 ? shared_tile(request, tile, deferred) : tile);
    c->tile = c->tile > 0 && c->tile < least ? least : c->tile;
    c->workers = request->workers ? request->workers : ctx->workers;
    c->segments = 1;
    c->tile_workers = 0;
    c->split = true;
    if (c->tile < 1 || (c->tile & (c->tile - 1)) || c->tile > (1 << (BWI_MAX_SIZES - 1))) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "tile: expected a power of two from 1 to %d, got %lld", 1 << (BWI_MAX_SIZES - 1),
                        (long long)c->tile);
    }
    if (c->lanes < 1 || (c->lanes & (c->lanes - 1)) || c->lanes > LANES_LIMIT) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT, "lanes: expected a power of two from 1 to %d, got %d", LANES_LIMIT, c->lanes);
    }
    if (request->lanes && c->lanes < ranks) {
        return bwi_fail(ctx, BW_INVALID_ARGUMENT,
                        "lanes: %d are too few for %d ranks, each of which needs one; ask for %d lanes or use up to %d ranks",
                        c->lanes, ranks, lanes_for(c->lanes, ranks), c->lanes);
    }
    c->lanes = lanes_for(c->lanes, ranks);
    int alone = deferred && c->cheap_lanes < SOME_LANES ? SOME_LANES : c->cheap_lanes;
    if (!request->lanes && ranks > 1 && c->lanes != alone && request->programs[0].loss_count > 0 && ctx->rank == 0) {
        bwi_log(ctx, BW_LOG_INFO, "%d ranks have %d lanes, where one has %d; with --lanes %d one gives the same bits", ranks,
                c->lanes, alone, c->lanes);
    }
    c->lanes = request->lanes ? c->lanes : used_lanes(request, c, ranks);
    int most = (c->lanes + ranks - 1) / ranks; /* on every rank, so that all plans are alike */
    if (c->workers > most && c->lanes >= SOME_LANES) {
        c->workers = most;
    }
    return BW_OK;
}

/* ---- More frugal ---- */

/* The numbers of segments that are tried, until one suffices. */
static const int segment_counts[] = {1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64};

int bwi_choice_more_segments(int segments)
{
    for (size_t k = 0; k + 1 < BWI_COUNT(segment_counts); k++) {
        if (segment_counts[k] == segments) {
            return segment_counts[k + 1];
        }
    }
    return 0;
}

bool bwi_choice_save(bwi_choice *c, const bwi_choice *frugal)
{
    int cheap = c->cheap_lanes > frugal->lanes ? c->cheap_lanes : frugal->lanes;
    if (c->split) {
        c->split = false;
    } else if (c->lanes > cheap) {
        c->lanes = cheap;
    } else if (c->tile > frugal->tile) {
        c->tile /= 2;
    } else if (c->workers > frugal->workers) {
        c->workers /= 2;
    } else if (c->segments < frugal->segments) {
        c->segments = bwi_choice_more_segments(c->segments);
    } else if (c->lanes > frugal->lanes) {
        c->lanes /= 2;
    } else {
        return false;
    }
    return true;
}
