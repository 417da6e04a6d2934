/*
 * The same bits for models with tables: workers, ranks and the way a window is fed do not show, with enough samples and rows
 * that every part of a step is shared by workers.
 * label: thread
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "train/internal.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Workers share the summing of records from 1024 records and 65536 floats on, and updates from 4 blocks of 8192 floats. */
enum { SAMPLES = 150, BATCH = 64, LENGTH = 40, WIDTH = 32, ROWS = 2500, CLASSES = 4, TILE = 2, LANES = 8 };

static int32_t tokens[SAMPLES * LENGTH], labels[SAMPLES];

static int make_samples(void **state)
{
    (void)state;
    for (int i = 0; i < SAMPLES * LENGTH; i++) {
        /* A third are padding, a third a few frequent rows. */
        uint32_t word = bwi_random_at(2, 6, (uint64_t)i).word[0];
        tokens[i] = (int32_t)(word % 3 == 0 ? 0 : word % 3 == 1 ? word / 3 % 50 : word / 3 % (ROWS - 100));
    }
    for (int s = 0; s < SAMPLES; s++) {
        labels[s] = tokens[s * LENGTH + 7] % CLASSES;
    }
    return 0;
}

/* ---- Models ---- */

static bw_model *parse(bw_context *ctx, const char *text)
{
    return bw_model_parse(ctx, text);
}

/* One table used three times, by two kinds of indices. */
static bw_model *shared(bw_context *ctx, const char *text)
{
    int64_t shape[] = {LENGTH};
    bw_model *model = bw_model_new(ctx);
    bw_node *x = bw_input(model, "", BW_I32, 1, shape), *once = bw_layer(x, text);
    bw_node *again = bw_layer_again(once, bw_layer(x, "reshape(8,5)")), *third = bw_layer_again(once, x);
    bw_node *all[3] = {bw_layer(bw_layer(once, "flatten"), "dense(8,relu)"), bw_layer(bw_layer(again, "flatten"), "dense(8,relu)"),
                       bw_layer(bw_layer(third, "global_avgpool1d"), "dense(8)")};
    bw_output(bw_layer(bw_merge("add", all, 3), "dense(4,softmax)"), "");
    return model;
}

typedef struct model_row {
    bw_model *(*make)(bw_context *ctx, const char *text);
    const char *text, *optimizer;
} model_row;

static const model_row models[] = {
    {parse, "embedding(2500,32) flatten dense(4,softmax)", "adam(lr=0.01)"},
    {parse, "embedding(2500,32,mask_zero=true) dense(16,relu) global_avgpool1d dense(4,softmax)", "adam(lr=0.01)"},
    {parse, "embedding(2500,32,lazy=true) conv1d(8,3) batchnorm relu flatten dense(4,softmax)", "sgd(lr=0.1,momentum=0.9)"},
    {parse, "embedding(2500,32) flatten dense(4,softmax)", "adam(lr=0.01,clipnorm=0.05,weight_decay=0.01)"},
    {shared, "embedding(2500,32)", "adam(lr=0.01)"},
    {shared, "embedding(2500,32,lazy=true)", "adam(lr=0.01)"},
};

/* ---- Runs ---- */

typedef struct run {
    const model_row *model;
    int workers;
    int64_t pieces; /* of a window; the plan knows its size only if it is one */
    bw_ranks *group;
    int rank;
    bw_status status;
    char message[200];
    uint64_t hash;
} run;

static bw_status train_windows(const run *r, bw_model *model, bw_dataset *dataset)
{
    bwi_session session;
    bwi_session_options options = {.train = true, .batch = r->pieces == 1 ? BATCH : 0, .tile = TILE, .lanes = LANES, .seed = 4};
    bw_status status = bwi_session_open(&session, model, dataset, &options);
    for (int64_t first = 0; status == BW_OK && first + BATCH <= SAMPLES; first += BATCH) {
        for (int64_t k = 0; k < r->pieces && status == BW_OK; k++) {
            bwi_piece piece = {.dataset = dataset, .first = first + k * (BATCH / r->pieces), .count = BATCH / r->pieces};
            status = bwi_session_feed(&session, BWI_PROGRAM_TRAIN, &piece, NULL);
        }
        status = status == BW_OK ? bwi_session_apply(&session) : status;
    }
    if (status == BW_OK) {
        bwi_session_close(&session);
    }
    return status;
}

static void *train(void *user)
{
    run *r = user;
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.workers = r->workers;
    options.ranks = r->group;
    options.rank = r->rank;
    bw_context *ctx = bw_open(&options);
    bw_array x = {.data = tokens, .dtype = BW_I32, .ndim = 2, .shape = {SAMPLES, LENGTH}};
    bw_array y = {.data = labels, .dtype = BW_I32, .ndim = 1, .shape = {SAMPLES}};
    bw_dataset *dataset = bw_from_arrays(ctx, &x, &y, NULL);
    bw_model *model = r->model->make(ctx, r->model->text);
    r->status = bw_compile(model, r->model->optimizer, NULL, NULL);
    r->status = r->status == BW_OK ? train_windows(r, model, dataset) : r->status;
    r->hash = r->status == BW_OK ? bw_model_hash(model) : 0;
    snprintf(r->message, sizeof r->message, "%.199s", bw_message(ctx));
    bw_close(ctx);
    return NULL;
}

static uint64_t execute(run r)
{
    train(&r);
    if (r.status != BW_OK) {
        fail_msg("%s: %s: %s", r.model->text, bw_status_name(r.status), r.message);
    }
    return r.hash;
}

static atomic_uint turns, workers_seen;

static void delay(int worker)
{
    uint32_t draw = bwi_random_at(1, 2, atomic_fetch_add(&turns, 1)).word[0];
    atomic_fetch_or(&workers_seen, 1U << worker % 32);
    if (draw % 4 == 0) {
        nanosleep(&(struct timespec){.tv_nsec = draw / 4 % 300 * 1000L}, NULL);
    }
}

static void test_workers(void **state)
{
    (void)state;
    static const int workers[] = {2, 3, 4, 8};
    for (size_t m = 0; m < BWI_COUNT(models); m++) {
        uint64_t alone = execute((run){.model = &models[m], .workers = 1, .pieces = 1});
        bwi_pool_delay = delay;
        for (size_t w = 0; w < BWI_COUNT(workers); w++) {
            atomic_store(&workers_seen, 0);
            uint64_t together = execute((run){.model = &models[m], .workers = workers[w], .pieces = 1});
            assert_int_equal(atomic_load(&workers_seen), (1U << workers[w]) - 1);
            if (together != alone) {
                fail_msg("%s: %d workers make a difference", models[m].text, workers[w]);
            }
        }
        bwi_pool_delay = NULL;
    }
}

static void test_ranks(void **state)
{
    (void)state;
    for (size_t m = 0; m < BWI_COUNT(models); m++) {
        uint64_t alone = execute((run){.model = &models[m], .workers = 1, .pieces = 1});
        for (int ranks = 2; ranks <= 4; ranks *= 2) {
            run members[4];
            pthread_t threads[4];
            bw_ranks *group = bw_ranks_open(ranks);
            for (int k = 0; k < ranks; k++) {
                members[k] = (run){.model = &models[m], .workers = ranks == 2 ? 2 : 1, .pieces = 1, .group = group, .rank = k};
                assert_int_equal(pthread_create(&threads[k], NULL, train, &members[k]), 0);
            }
            for (int k = 0; k < ranks; k++) {
                pthread_join(threads[k], NULL);
            }
            bw_ranks_close(group);
            for (int k = 0; k < ranks; k++) {
                if (members[k].status != BW_OK || members[k].hash != alone) {
                    fail_msg("%s: %d ranks make a difference: %s", models[m].text, ranks, members[k].message);
                }
            }
        }
    }
}

/* Windows in pieces; then the plan has room for any window, and records are summed on the way where there are many. BatchNorm's
 * statistics are each piece's own. */
static void test_pieces(void **state)
{
    (void)state;
    for (size_t m = 0; m < BWI_COUNT(models); m++) {
        uint64_t whole = execute((run){.model = &models[m], .workers = 2, .pieces = 1});
        uint64_t pieces = execute((run){.model = &models[m], .workers = 2, .pieces = 4});
        assert_true((whole == pieces) == !strstr(models[m].text, "batchnorm"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_workers), cmocka_unit_test(test_ranks), cmocka_unit_test(test_pieces)};
    return cmocka_run_group_tests(tests, make_samples, NULL);
}
