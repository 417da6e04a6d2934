/*
 * insight: tells users about models and runs: facts about layers, and plans as tables that are compared with what a whole-batch
 * system would need.
 */
#ifndef BWI_INSIGHT_INTERNAL_H
#define BWI_INSIGHT_INTERNAL_H

#include "train/train.h"

/* ---- What a system that holds the whole batch needs (whole_batch.c) ---- */

typedef struct bwi_whole_batch {
    size_t fixed;  /* parameters, gradients, optimizer slots */
    size_t sample; /* for each sample of the batch, when most memory is in use */
    size_t *nodes; /* the share of each node of the session's graph in `sample`; the caller provides graph.count zeros */
} bwi_whole_batch;

bw_status bwi_whole_batch_measure(bwi_whole_batch *whole, const bwi_session *session);
size_t bwi_whole_batch_bytes(const bwi_whole_batch *whole, int64_t batch);
int64_t bwi_whole_batch_largest(const bwi_whole_batch *whole, size_t memory);

/* ---- Other hardware (what_if.c) ---- */

typedef struct bwi_measured_part {
    bw_part_kind kind;
    bwi_way way;
    double seconds, flops, bytes; /* of all workers together */
} bwi_measured_part;

typedef struct bwi_measured_step {
    double step_seconds;
    int workers;
    bwi_sharing sharing;
    size_t bytes; /* that a step touches, but the data */
    int parts;
    const bwi_measured_part *list;
} bwi_measured_step;

bw_prediction bwi_predict(const bwi_measured_step *step, const bw_machine *machine, const bw_hardware *to);

/* ---- Plans for users (plan.c, plan_print.c) ---- */

enum { BWI_REASON = 256 };

typedef struct bwi_plan_row {
    char name[64];
    bw_layer_memory facts;
} bwi_plan_row;

struct bw_plan {
    bwi_owned owned;
    bw_context *ctx;
    bw_memory_facts facts;
    bwi_plan_row *rows; /* layers in their order, then one row for loss and metrics */
    int row_count;
    char reason[BWI_REASON];
};

/* Builds a dataset with the model's fields, whose samples cannot be read, for plans without data. */
bw_dataset *bwi_sketch_data(bw_model *model);

#endif
