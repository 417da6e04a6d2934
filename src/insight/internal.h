/*
 * insight: tells users about models and runs: facts about layers, and plans as tables that are compared with what a whole-batch
 * system would need.
 */
#ifndef BWI_INSIGHT_INTERNAL_H
#define BWI_INSIGHT_INTERNAL_H

#include "format/format.h"
#include "train/train.h"

/* ---- Facts about layers, for insight itself (facts.c) ---- */

bw_status bwi_describe_model(const bw_model *model, bw_model_facts *facts);
bw_status bwi_describe_layer(const bw_model *model, int layer, bw_layer_facts *facts);
bw_status bwi_layer_input(const bw_model *model, int layer, int input, int *from, int *use);

/* ---- Training on trial (trial_options.c) ---- */

/* The options of a training that is only tried: without validation and callbacks, and leaving nothing behind. No file is written,
 * no checkpoint is continued. */
bw_fit_options bwi_trial_options(const bw_fit_options *training);

/* ---- Events of TensorBoard (events.c), each a record at the end of `to` ---- */

int64_t bwi_event_seconds(void); /* since 1970 */
void bwi_event_version(bwi_wire *to);
void bwi_event_scalar(bwi_wire *to, const char *tag, int64_t step, double value);
/* The buckets divide the range evenly. */
void bwi_event_histogram(bwi_wire *to, const char *tag, int64_t step, const bwi_value_range *range, double divisor, int buckets,
                         const int64_t *counts);
/* `count` images of equal size, one after another. */
void bwi_event_images(bwi_wire *to, const char *tag, int64_t step, int count, int height, int width, int channels,
                      const unsigned char *pixels);
bw_status bwi_event_graph(bwi_wire *to, const bw_model *model);

typedef struct bwi_hyperparameter {
    char name[64], text[192]; /* without text: a number */
    double number;
} bwi_hyperparameter;

/* The metrics are epoch_<column>, without val_, of the history's columns. */
void bwi_event_experiment(bwi_wire *to, const bwi_hyperparameter *list, int count, const bw_history *history);
void bwi_event_session(bwi_wire *to, const bwi_hyperparameter *list, int count);
void bwi_event_session_end(bwi_wire *to, bool failed);

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
