/* Trains tables for tests of their records: makes samples, and runs trainings with hooks and ranks. */
#ifndef BW_TEST_RECORDS_H
#define BW_TEST_RECORDS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "exec/internal.h"
#include "train/train.h"
#include "train/internal.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

enum { SAMPLES = 53, LENGTH = 5, ROWS = 23, WIDTH = 3, OUTPUTS = LENGTH * WIDTH, FLOATS = ROWS * WIDTH };

static int32_t x[SAMPLES * LENGTH];
static float y[SAMPLES * OUTPUTS], start[FLOATS];

static inline float draw(uint64_t stream, int64_t i)
{
    return bwi_random_uniform(bwi_random_at(8, stream, (uint64_t)i).word[0]) - 0.5F;
}

/* Rows are touched often, rarely, never: the last two. */
static inline int make_samples(void **state)
{
    (void)state;
    for (int i = 0; i < SAMPLES * LENGTH; i++) {
        uint32_t word = bwi_random_at(3, 1, (uint64_t)i).word[0];
        x[i] = (int32_t)(word % 2 ? word / 2 % 4 : word / 2 % (ROWS - 2));
    }
    for (int i = 0; i < SAMPLES * OUTPUTS; i++) {
        y[i] = draw(2, i);
    }
    for (int i = 0; i < FLOATS; i++) {
        start[i] = draw(4, i);
    }
    return 0;
}

static inline bw_dataset *samples_of(bw_context *ctx)
{
    bw_array xs = {.data = x, .dtype = BW_I32, .ndim = 2, .shape = {SAMPLES, LENGTH}};
    bw_array ys = {.data = y, .dtype = BW_F32, .ndim = 2, .shape = {SAMPLES, OUTPUTS}};
    return bw_from_arrays(ctx, &xs, &ys, NULL);
}

/* ---- A run ---- */

typedef struct run {
    const char *expression, *optimizer;
    int workers, lanes;
    int64_t tile, window; /* window: of the plan; 0: not known */
    int64_t pieces[4];    /* of each update */
    int updates;
    bw_ranks *group;
    int rank;
    /* What came of it. */
    bw_status status;
    char message[200];
    float table[FLOATS];
    double lane_norms;
    int64_t capacity;
} run;

static inline run run_of(const char *expression, const char *optimizer)
{
    return (run){.expression = expression,
                 .optimizer = optimizer,
                 .workers = 1,
                 .lanes = 4,
                 .tile = 2,
                 .window = SAMPLES,
                 .pieces = {SAMPLES},
                 .updates = 3};
}

static inline void add_lane_norm(void *user, int lane, double squared, int64_t samples)
{
    run *r = user;
    (void)lane, (void)samples;
    r->lane_norms += squared;
}

static inline bw_status train_windows(run *r, bwi_session *session, bw_dataset *dataset)
{
    bwi_hooks hooks = {.user = r, .lane_norm = add_lane_norm};
    bw_status status = BW_OK;
    bwi_exec_set_hooks(session->exec, &hooks);
    for (int update = 0; update < r->updates && status == BW_OK; update++) {
        bwi_piece piece = {.dataset = dataset};
        for (int k = 0; k < 4 && r->pieces[k] && status == BW_OK; k++) {
            piece.count = r->pieces[k];
            status = bwi_session_feed(session, BWI_PROGRAM_TRAIN, &piece, NULL);
            piece.first += piece.count;
        }
        status = status == BW_OK ? bwi_session_apply(session) : status;
    }
    return status;
}

static inline void *train(void *user)
{
    run *r = user;
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.workers = r->workers;
    options.ranks = r->group;
    options.rank = r->rank;
    bw_context *ctx = bw_open(&options);
    bw_dataset *dataset = samples_of(ctx);
    bw_model *model = bw_model_parse(ctx, r->expression);
    int64_t shape[] = {LENGTH};
    bwi_session session;
    bwi_session_options o = {.train = true, .batch = r->window, .tile = r->tile, .lanes = r->lanes};
    r->status = bw_compile(model, r->optimizer, "mse", NULL);
    r->status = r->status == BW_OK ? bw_build(model, 1, shape, 1) : r->status;
    r->status = r->status == BW_OK ? bw_variable_set(model, 0, start, FLOATS) : r->status;
    r->status = r->status == BW_OK ? bwi_session_open(&session, model, dataset, &o) : r->status;
    if (r->status == BW_OK) {
        const bwi_plan *plan = bwi_exec_plan(session.exec);
        r->capacity = plan->tables[0].capacity;
        r->status = train_windows(r, &session, dataset);
        bwi_session_close(&session);
    }
    snprintf(r->message, sizeof r->message, "%.199s", bw_message(ctx));
    if (r->status == BW_OK) {
        bw_variable_get(model, 0, r->table, FLOATS);
    }
    bw_close(ctx);
    return NULL;
}

static inline void execute(run *r)
{
    train(r);
    if (r->status != BW_OK) {
        fail_msg("%s: %s: %s", r->expression, bw_status_name(r->status), r->message);
    }
}

static inline void assert_same(const run *a, const run *b, const char *what)
{
    for (int i = 0; i < FLOATS; i++) {
        if (memcmp(&a->table[i], &b->table[i], sizeof(float)) != 0) {
            fail_msg("%s: row %d is %.9g and %.9g", what, i / WIDTH, (double)a->table[i], (double)b->table[i]);
        }
    }
}

static const char dense[] = "embedding(23,3) flatten", lazy[] = "embedding(23,3,lazy=true) flatten", adam[] = "adam(lr=0.05)",
                  momentum[] = "sgd(lr=0.5,momentum=0.9)";

#endif
