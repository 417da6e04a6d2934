/*
 * The doctor: facts about data, model and some updates on trial, and a table of checks that look at them. A check is a row with an
 * id, the reason why it matters, and a function of the facts; nothing else knows the checks by name. Facts that were not collected
 * are zero, and a check that needs them then finds nothing.
 */
#ifndef BWI_INSIGHT_DOCTOR_H
#define BWI_INSIGHT_DOCTOR_H

#include "insight/internal.h"

/* ---- Samples seen before, in bounded memory (sketch_samples.c) ---- */

typedef struct bwi_seen_entry {
    uint64_t hash; /* 0: the place is free */
    int64_t count;
    float label;
    bool conflict; /* the same inputs came with another label */
} bwi_seen_entry;

/* A set of hashes of samples. When it is full, only hashes that end in another zero bit are kept, so that what remains is a random
 * part of all distinct samples, in which each has all of its copies. */
typedef struct bwi_seen {
    bw_context *ctx;
    bwi_seen_entry *entry;
    int64_t capacity, used, most; /* `most` places, a power of two */
    int level;                    /* hashes end in this many zero bits */
} bwi_seen;

enum { BWI_SEEN_MOST = 1 << 18 };

bool bwi_seen_add(bwi_seen *seen, uint64_t hash, float label); /* false: no memory */
/* Tells whether a sample was added. -1: this sample is not in the part that is kept, so nobody knows. */
int bwi_seen_find(const bwi_seen *seen, uint64_t hash);
void bwi_seen_free(bwi_seen *seen);

/* ---- The order of labels (order.c) ---- */

typedef struct bwi_order {
    double p;             /* the share of permutations in which neighbours are at least as alike; 1: not tested */
    double same, by_luck; /* the share of pairs within a window that have the same label: found, and the mean of permutations */
    int64_t labels;       /* that were looked at */
    int64_t window;       /* consecutive labels that belong together */
    bool classes;         /* labels are classes; otherwise tenths of the range of values */
} bwi_order;

/* Compares labels with their permutations. Windows lie one after another. */
bw_status bwi_order_test(bw_context *ctx, const float *labels, int64_t count, int64_t window, bwi_order *order);

/* ---- Data (data_facts.c) ---- */

typedef struct bwi_feature_facts {
    double sum, squares; /* of differences from `origin` */
    float origin, least, most;
    int64_t count;
} bwi_feature_facts;

double bwi_feature_mean(const bwi_feature_facts *feature);
double bwi_feature_deviation(const bwi_feature_facts *feature);
double bwi_feature_size(const bwi_feature_facts *feature); /* root mean square */

enum { BWI_MOST_CLASSES = 1 << 16, BWI_FEW_VALUES = 256, BWI_DISCRETE_FEATURES = 64 };

typedef struct bwi_field_facts {
    char name[72]; /* "x", "y_digit" */
    bwi_role role;
    int ndim;
    int64_t each; /* numbers of a sample */
    int64_t features;
    bwi_feature_facts *feature;       /* by the index of the last axis */
    bwi_feature_facts all;            /* over all features */
    int64_t unfinite, first_unfinite; /* values that are NaN or infinite, and the number of the first sample that has one */
    bool whole;                       /* all values are whole numbers */
    bool one_hot;                     /* of a target: a one among zeros */
    int64_t *classes;                 /* of a target with whole numbers: how often each came, BWI_MOST_CLASSES of them */
    float (*few)[BWI_FEW_VALUES];     /* of inputs with few features: the values each takes */
    int *few_count;                   /* how many there are; above BWI_FEW_VALUES: too many to list */
} bwi_field_facts;

typedef struct bwi_data_facts {
    bw_context *ctx;
    bwi_field_facts *field;
    int fields;
    int64_t samples;
    bwi_seen seen;            /* of training data */
    int64_t asked, met;       /* of validation data: samples that were looked up among those of training, and found */
    int64_t met_number;       /* the first of those */
    float *labels;            /* consecutive labels of the first target, window by window */
    int64_t window, windows;  /* labels of a window, and how many there are */
    int64_t every, collected; /* every this many windows one is taken; labels so far */
} bwi_data_facts;

/* Reads the samples once, in their order. With `training`, samples are looked up among those, and nothing is kept of them. If
 * `most` is not 0, at most that many are read, spread over the data. */
bw_status bwi_data_facts_read(bwi_data_facts *facts, bw_dataset *dataset, int64_t window, const bwi_data_facts *training,
                              int64_t most);
void bwi_data_facts_free(bwi_data_facts *facts);
/* Returns the first field with a role, from number `index` on; NULL if there is none. */
const bwi_field_facts *bwi_data_facts_find(const bwi_data_facts *facts, bwi_role role, int index);

/* ---- The model (model_facts.c) ---- */

/* What the model does to an input before anything is trained: x becomes scale * x + offset. */
typedef struct bwi_treatment {
    double scale, offset;
    bool normalised;              /* a layer brings it to a common scale, whatever it was */
    const bw_node *normalization; /* that layer, if it was fitted to data */
    bool indices;                 /* it chooses rows of a table */
} bwi_treatment;

bwi_treatment bwi_model_treatment(const bw_model *model, const char *field);

/* The activation that makes an output. */
typedef enum bwi_ending { BWI_ENDS_LINEAR, BWI_ENDS_SOFTMAX, BWI_ENDS_SIGMOID, BWI_ENDS_TANH, BWI_ENDS_RELU } bwi_ending;
bwi_ending bwi_model_ending(const bw_model *model, int output);
/* The loss of an output, chosen by the user or from the data; NULL: none. */
const bwi_loss_row *bwi_model_loss(const bw_model *model, int output, bool *logits);
const bw_node *bwi_model_find(const bw_model *model, const bwi_op *const *ops,
                              int count); /* the first node with one of these ops */

/* ---- Updates on trial (step_facts.c, gradient_facts.c, speed_facts.c) ---- */

typedef struct bwi_layer_gradient {
    char name[64];
    double size;           /* root mean square of the gradient of its kernel */
    double weights;        /* of the kernel itself */
    double bias;           /* of the gradient of its other variables */
    int64_t units, silent; /* units, and those that get no gradient from any sample */
    bool output;           /* nothing that is trained comes after it */
} bwi_layer_gradient;

typedef struct bwi_gradient_facts {
    bwi_layer_gradient *layer; /* in the order of the graph */
    int count;
    int64_t samples;
    int64_t updates; /* before it was measured */
    double loss;     /* mean over these samples */
} bwi_gradient_facts;

bw_status bwi_gradient_facts_find(bwi_gradient_facts *facts, bw_model *model, bw_dataset *dataset, const bw_fit_options *options);
void bwi_gradient_facts_free(bw_context *ctx, bwi_gradient_facts *facts);

enum { BWI_FEWEST_UPDATES = 20 }; /* of a trial that tells something about a learning rate */

typedef struct bwi_trial_facts {
    int64_t updates; /* that were looked at; 0: there was no trial */
    double rate;
    double first, last; /* the loss before the first update, and the mean of the last tenth of the updates, five at least */
    double error;       /* standard error of the latter */
    double early;       /* the mean loss at the second to the twentieth update; 0: there were fewer */
    bool failed;        /* a loss or gradient was not finite */
    char message[256];
} bwi_trial_facts;

/* Where the time of a mean step goes, as shares over all workers, and what the machine could do. */
typedef struct bwi_speed_facts {
    bool known;
    double step_seconds, samples;
    double data, overhead, idle, compute;
    double flops, bytes;             /* of a step */
    double flops_limit, bytes_limit; /* per second, of the workers together; 0: not known */
    int workers;
} bwi_speed_facts;

void bwi_speed_facts_find(bwi_speed_facts *facts, bw_context *ctx, const bw_history *history);

typedef struct bwi_step_facts {
    bool ran;
    bwi_trial_facts trial, slower, faster; /* as given, and at a tenth and ten times the rate, or more */
    bwi_gradient_facts before, after;
    int64_t noise_steps; /* at which the noise scale was measured */
    bw_noise_scale noise;
    bw_run_facts run;
    int64_t tile_wanted; /* the tile without a budget; 0: not known */
    size_t wanted_bytes; /* the plan without a budget */
    bwi_speed_facts speed;
} bwi_step_facts;

/* The first updates made the loss several times what it was: the model is no longer the one that was initialised, however much the
 * loss falls from there. */
bool bwi_trial_is_thrown(const bwi_trial_facts *facts);
/* Another rate does not throw the model off, and ends at no higher a loss, but for chance. */
bool bwi_trial_stays(const bwi_trial_facts *other, const bwi_trial_facts *given);

struct bwi_doctor;
/* Trains on trial for at most that many seconds, and leaves the model as it was. */
bw_status bwi_step_facts_find(struct bwi_doctor *d, double seconds);

/* ---- Checks ---- */

enum { BWI_FINDING_TEXT = 512 };
typedef struct bwi_finding {
    const char *id, *reason;
    bw_severity severity;
    char evidence[BWI_FINDING_TEXT], fix[BWI_FINDING_TEXT], code[BWI_FINDING_TEXT];
} bwi_finding;

struct bw_findings {
    bwi_owned owned;
    int count;
    bwi_finding *finding;
};

/* A budget for plans that only tell what a model would like to have. */
#define BWI_NO_BUDGET (SIZE_MAX / 4)

/* Everything that checks look at. */
typedef struct bwi_doctor {
    bw_context *ctx;
    bw_model *model;
    bw_dataset *training, *validation; /* the parts, as bw_fit would split them; validation NULL: none */
    bw_fit_options options;
    int64_t batch;                         /* samples of the largest update */
    int64_t last_batch, updates_per_epoch; /* of the first epoch */
    double scale;                          /* that the samples were read with */
    bwi_data_facts data, held;             /* of both parts */
    bwi_order order;
    bool shuffled; /* samples come in a random order */
    bwi_step_facts steps;
    const bw_history *history; /* of a training that is reviewed; NULL: none */
    bool constant_output;      /* likewise: the outputs are the same for all of some samples */
    int64_t looked_at;         /* likewise: how many those were */
} bwi_doctor;

/* Looks at the facts. Returns whether something was found, and describes it. */
typedef bool (*bwi_check_function)(const bwi_doctor *d, bwi_finding *found);

typedef struct bwi_check {
    const char *id;
    const char *reason;
    bwi_check_function check;
    bool free; /* it needs nothing that a training does not show by itself: for bw_review */
} bwi_check;

extern const bwi_check bwi_checks[]; /* ends with a NULL id */

/* Shared by bw_doctor and bw_review (doctor.c). The parts of a split are the caller's. */
bw_status bwi_doctor_open(bwi_doctor *d, bw_dataset *dataset, const bw_fit_options *training, bw_dataset *split[4]);
void bwi_doctor_close(bwi_doctor *d, bw_dataset *const split[2]);
bw_status bwi_doctor_read(bwi_doctor *d, int64_t most); /* samples; 0: all */
bw_findings *bwi_doctor_check(const bwi_doctor *d, bool free_only);

/* Tell what was found: numbers in the evidence, what helps as an option and as C. For checks, which return their true. */
bool bwi_found(bwi_finding *found, bw_severity severity, const char *evidence, ...) __attribute__((format(printf, 3, 4)));
void bwi_fix(bwi_finding *found, const char *code, const char *fix, ...) __attribute__((format(printf, 3, 4)));

bool bwi_check_not_a_number(const bwi_doctor *d, bwi_finding *found);
bool bwi_check_label_out_of_range(const bwi_doctor *d, bwi_finding *found);
bool bwi_check_wrong_loss(const bwi_doctor *d, bwi_finding *found);
bool bwi_check_unshuffled_labels(const bwi_doctor *d, bwi_finding *found);
bool bwi_check_class_imbalance(const bwi_doctor *d, bwi_finding *found);
bool bwi_check_unscaled_inputs(const bwi_doctor *d, bwi_finding *found);
bool bwi_check_constant_feature(const bwi_doctor *d, bwi_finding *found);
bool bwi_check_duplicate_samples(const bwi_doctor *d, bwi_finding *found);
bool bwi_check_leak(const bwi_doctor *d, bwi_finding *found);
bool bwi_check_inconsistent_preprocessing(const bwi_doctor *d, bwi_finding *found);
bool bwi_check_tiny_last_batch(const bwi_doctor *d, bwi_finding *found);
bool bwi_check_batchnorm_small_batch(const bwi_doctor *d, bwi_finding *found);
bool bwi_check_rate_too_high(const bwi_doctor *d, bwi_finding *found);
bool bwi_check_rate_too_low(const bwi_doctor *d, bwi_finding *found);
bool bwi_check_dead_units(const bwi_doctor *d, bwi_finding *found);
bool bwi_check_vanishing_gradient(const bwi_doctor *d, bwi_finding *found);
bool bwi_check_exploding_gradient(const bwi_doctor *d, bwi_finding *found);
bool bwi_check_below_noise(const bwi_doctor *d, bwi_finding *found);
bool bwi_check_past_noise(const bwi_doctor *d, bwi_finding *found);
bool bwi_check_overhead_bound(const bwi_doctor *d, bwi_finding *found);
bool bwi_check_data_bound(const bwi_doctor *d, bwi_finding *found);
bool bwi_check_bandwidth_bound(const bwi_doctor *d, bwi_finding *found);
bool bwi_check_compute_bound(const bwi_doctor *d, bwi_finding *found);
bool bwi_check_capacity_bound(const bwi_doctor *d, bwi_finding *found);
bool bwi_check_swapping(const bwi_doctor *d, bwi_finding *found);

#endif
