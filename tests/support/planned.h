/* Opens a session for a model from an expression, with made-up samples, so that tests can look inside its plan and its programs. */
#ifndef BW_TEST_PLANNED_H
#define BW_TEST_PLANNED_H

#include "support/check.h"

#include "train/internal.h"

#include <stdlib.h>

typedef struct planned {
    bw_context *ctx;
    bw_dataset *data;
    bw_model *model;
    bwi_session session;
    const bwi_plan *plan;
    float *x;
    int32_t *y;
} planned;

enum { PLANNED_CLASSES = 10 };

/* Fills in the context, samples of shape h, w, c with class numbers as targets, and the model; opens no session yet. */
static inline void planned_model(planned *p, const char *expression, int64_t samples, int64_t h, int64_t w, int64_t c, int workers)
{
    bw_context_options options = BW_CONTEXT_OPTIONS_DEFAULT;
    options.workers = workers;
    *p = (planned){.ctx = bw_open(&options)};
    int64_t count = samples * h * w * c;
    p->x = malloc((size_t)count * sizeof *p->x);
    p->y = malloc((size_t)samples * sizeof *p->y);
    for (int64_t i = 0; i < count; i++) {
        p->x[i] = (float)((i * 7919 + i / 64 * 31) % 1000) / 1000 - 0.25F;
    }
    for (int64_t i = 0; i < samples; i++) {
        p->y[i] = (int32_t)((i * 7) % PLANNED_CLASSES);
    }
    bw_array x = {.data = p->x, .dtype = BW_F32, .ndim = 4, .shape = {samples, h, w, c}};
    bw_array y = {.data = p->y, .dtype = BW_I32, .ndim = 1, .shape = {samples}};
    p->data = bw_from_arrays(p->ctx, &x, &y, NULL);
    p->model = bw_model_parse(p->ctx, expression);
    check_ok(p->ctx, bw_compile(p->model, "sgd", NULL, NULL));
}

static inline void planned_open(planned *p, const bwi_session_options *options)
{
    check_ok(p->ctx, bwi_session_open(&p->session, p->model, p->data, options));
    p->plan = bwi_exec_plan(p->session.exec);
}

static inline void planned_close(planned *p)
{
    if (p->plan) {
        bwi_session_close(&p->session);
    }
    bw_close(p->ctx);
    free(p->x);
    free(p->y);
}

/* Models of several kinds, for images of 9x9x3 and PLANNED_CLASSES. */
static const char *const planned_expressions[] = {
    "flatten dense(10,softmax)",
    "flatten dense(40,relu) dense(30,relu) dense(10,softmax)",
    "conv2d(20,3,relu) maxpool2d(2) flatten dense(10,softmax)",
    "conv2d(5,3) relu conv2d(7,3,relu) maxpool2d(3,strides=1) flatten dense(10,softmax)",
    "batchnorm conv2d(4,3) batchnorm relu maxpool2d(2) flatten dense(12) batchnorm relu dense(10,softmax)",
    "conv2d(16,3,padding=same) batchnorm relu conv2d(16,3,padding=same,use_bias=false) batchnorm relu flatten dense(10,softmax)",
    "relu maxpool2d(2,padding=same) flatten softmax dense(10) softmax",
    /* Sources that backward reads again behind an op that works in place. */
    "flatten dense(20,softmax) relu relu dense(10,softmax)",
};

enum { PLANNED_EXPRESSIONS = sizeof planned_expressions / sizeof planned_expressions[0] };

static inline int planned_count(const bwi_plan *plan, const bwi_op *op)
{
    int count = 0;
    for (int n = 0; n < plan->graph.count; n++) {
        count += plan->graph.nodes[n]->op == op;
    }
    return count;
}

#endif
