/*
 * Ranks that divide the optimizer's slots among them, because the budget has no place for all of them on each: the bits are those
 * of one rank, of weights, of slots, and of what goes on from a checkpoint of any number of ranks. label: thread
 */
#include "same/bits_test.h"

#include "base/internal.h"
#include "support/folder.h"

typedef struct way {
    const char *name, *optimizer, *expression;
} way;

static const way ways[] = {
    {"adam", "adam(lr=0.01)", "flatten dense(200,relu) dense(33,relu) dense(10,softmax)"},
    {"averages and norms", "adamw(lr=0.01,weight_decay=0.01,clipnorm=0.1,use_ema=true,ema_momentum=0.9)",
     "conv2d(8,3,use_bias=false) batchnorm relu flatten dense(150,relu) dense(10,softmax)"},
    {"nadam", "nadam(lr=0.01)", "flatten dense(170,relu) dropout(0.3) dense(10,softmax)"},
    {"several blocks", "sgd(lr=0.1,momentum=0.9)", "flatten dense(300,relu) dense(10,softmax)"},
};

/* One rank of two trainings, the second of which goes on with the first one's slots, with memory for all of them. */
typedef struct member {
    const way *way;
    bw_ranks *group;
    int rank, workers, steps;
    size_t memory;
    const char *folder;
    bool resumes, slow; /* slow: the first rank's disk, of which training knows nothing */
    bw_context *ctx;
    bw_status status;
    char message[256];
    uint64_t first, second;
    bw_run_facts facts;
} member;

static bool cancel_after(void *user, const bw_progress *progress)
{
    const member *m = user;
    if (progress->step == m->steps) {
        bw_cancel(m->ctx);
    }
    return true;
}

static int64_t write_slowly(void *user, int file, const void *bytes, size_t count, int64_t offset)
{
    usleep(150000);
    return bwi_system_io.write(user, file, bytes, count, offset);
}

static bw_context *open_member(const member *m)
{
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    bw_io slow = bwi_system_io;
    slow.write = write_slowly;
    options.workers = m->workers;
    options.ranks = m->group;
    options.rank = m->rank;
    options.io = m->slow && m->rank == 0 ? &slow : NULL;
    return bw_open(&options);
}

static void *train_twice(void *user)
{
    member *m = user;
    bw_context *ctx = m->ctx = open_member(m);
    bw_dataset *dataset = samples_of(ctx);
    bw_model *model = bw_model_parse(ctx, m->way->expression);
    bw_history *history = NULL;
    bw_fit_options options = BW_FIT_OPTIONS_DEFAULT;
    options.batch = 20;
    options.tile = TILE;
    options.lanes = 8;
    options.epochs = 3;
    options.seed = 4;
    options.memory = m->memory;
    options.checkpoint_dir = m->folder;
    options.checkpoint_every = m->folder ? "1" : NULL;
    options.resume = m->resumes;
    if (m->steps > 0) {
        options.on_step = cancel_after;
        options.user = m;
    }
    m->status = bw_compile(model, m->way->optimizer, NULL, NULL);
    m->status = m->status == BW_OK ? bw_fit(model, dataset, &options, &history) : m->status;
    m->facts = history ? bw_history_facts(history) : m->facts;
    if (m->status == BW_OK) {
        m->first = bw_model_hash(model);
        options = (bw_fit_options)BW_FIT_OPTIONS_DEFAULT;
        options.batch = 20;
        options.tile = TILE;
        options.lanes = 8;
        m->status = bw_fit(model, dataset, &options, NULL);
        m->second = bw_model_hash(model);
    }
    snprintf(m->message, sizeof m->message, "%.255s", bw_message(ctx));
    bw_close(ctx);
    return NULL;
}

static member execute_ranks(const member *like, int ranks)
{
    member all[8];
    pthread_t threads[8];
    bw_ranks *group = ranks > 1 ? bw_ranks_open(ranks) : NULL;
    for (int k = 0; k < ranks; k++) {
        all[k] = *like;
        all[k].group = group;
        all[k].rank = k;
        assert_int_equal(pthread_create(&threads[k], NULL, train_twice, &all[k]), 0);
    }
    for (int k = 0; k < ranks; k++) {
        pthread_join(threads[k], NULL);
    }
    bw_ranks_close(group);
    for (int k = 0; k < ranks; k++) {
        if (all[k].status != (like->steps > 0 ? BW_CANCELLED : BW_OK)) {
            fail_msg("%s, rank %d of %d: %s", like->way->name, k, ranks, all[k].message);
        }
        assert_true(all[k].first == all[0].first && all[k].second == all[0].second);
    }
    return all[0];
}

/* The same with a budget of one byte less than all slots on each rank need. Tile and lanes are given and there is one worker, so
 * nothing else can be saved. */
static member execute_divided(const member *like, int ranks)
{
    member whole = execute_ranks(like, ranks), divided = *like;
    divided.memory = whole.facts.planned_bytes - 1;
    divided = execute_ranks(&divided, ranks);
    assert_true(divided.facts.planned_bytes < whole.facts.planned_bytes);
    assert_int_equal(divided.facts.segments, 1);
    assert_int_equal(divided.facts.tile, TILE);
    assert_int_equal(divided.facts.lanes, 8);
    assert_true(divided.first == whole.first && divided.second == whole.second);
    return divided;
}

static void test_bits(void **state)
{
    (void)state;
    static const int counts[] = {2, 3, 8};
    for (size_t k = 0; k < BWI_COUNT(ways); k++) {
        member like = {.way = &ways[k], .workers = 1};
        member alone = execute_ranks(&like, 1);
        for (size_t c = 0; c < BWI_COUNT(counts); c++) {
            member divided = execute_divided(&like, counts[c]);
            if (divided.first != alone.first || divided.second != alone.second) {
                fail_msg("%s, %d ranks: other bits than one rank has", ways[k].name, counts[c]);
            }
        }
    }
}

/* Cancelled within the first epoch, with checkpoints, and resumed: divided after whole, whole after divided, on other numbers of
 * ranks. */
static void test_checkpoints(void **state)
{
    (void)state;
    static const int counts[][2] = {{1, 1}, {1, 3}, {2, 1}, {3, 2}, {4, 4}};
    member like = {.way = &ways[1], .workers = 1}, alone = execute_ranks(&like, 1);
    for (size_t c = 0; c < BWI_COUNT(counts); c++) {
        char name[32];
        snprintf(name, sizeof name, "run-%d-%d", counts[c][0], counts[c][1]);
        for (int half = 0; half < 2; half++) {
            int ranks = counts[c][half];
            member part = like;
            part.workers = 1;
            part.steps = half == 0 ? 2 : 0;
            if (ranks > 1) { /* only the first rank needs memory for the checkpoint, and has to divide: the others follow */
                member measured = like;
                char other[48];
                snprintf(other, sizeof other, "%s-%d", name, half);
                measured.folder = inside(other);
                measured.steps = 1;
                part.memory = execute_ranks(&measured, ranks).facts.planned_bytes - 1;
            }
            part.folder = inside(name);
            part.resumes = half == 1;
            part = execute_ranks(&part, ranks);
            assert_true(ranks == 1 || part.facts.planned_bytes <= part.memory);
            if (half == 1 && part.first != alone.first) {
                fail_msg("%d ranks after %d: other bits than those of one that was never cancelled", ranks, counts[c][0]);
            }
        }
    }
}

/* All ranks are cancelled while the first one still writes an older checkpoint: they wait for it with what the last one needs. */
static void test_slow_disk(void **state)
{
    (void)state;
    enum { STEPS = 3 };
    member like = {.way = &ways[0], .workers = 1, .steps = STEPS};
    member measured = like;
    measured.folder = inside("measured");
    like.memory = execute_ranks(&measured, 3).facts.planned_bytes - 1;
    like.folder = inside("slow");
    like.slow = true;
    member ended = execute_ranks(&like, 3);
    assert_true(ended.facts.planned_bytes <= like.memory);
    assert_int_equal(ended.facts.updates, STEPS);
    assert_int_equal(ended.facts.last_checkpoint, STEPS);
    like.steps = 0;
    like.slow = false;
    like.resumes = true;
    member resumed = execute_ranks(&like, 3), whole = {.way = &ways[0], .workers = 1};
    assert_int_equal(resumed.facts.resumed_step, STEPS);
    assert_true(resumed.first == execute_ranks(&whole, 1).first);
}

/* A budget that cannot hold the recorded tile would change the bits: the run is not resumed with it. */
static void test_budget_of_resumed(void **state)
{
    (void)state;
    static const way wide = {"wide", "sgd",
                             "conv2d(24,3,relu,padding=same) conv2d(24,3,relu,padding=same) flatten dense(10,softmax)"};
    member like = {.way = &wide, .workers = 1, .steps = 2, .folder = inside("budget")};
    member begun = execute_ranks(&like, 1), resumed = like;
    resumed.resumes = true;
    resumed.steps = 0;
    resumed.memory = begun.facts.planned_bytes;
    do {
        resumed.memory -= resumed.memory / 16;
        train_twice(&resumed);
    } while (resumed.status == BW_OK && resumed.memory > (1 << 16));
    assert_int_equal(resumed.status, BW_RESOURCE_EXHAUSTED);
    assert_non_null(strstr(resumed.message, "tiles of 4 samples and 8 lanes"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bits),
        cmocka_unit_test_setup(test_checkpoints, make_folder),
        cmocka_unit_test(test_slow_disk),
        cmocka_unit_test(test_budget_of_resumed),
    };
    return cmocka_run_group_tests(tests, make_samples, remove_folder);
}
