/*
 * Muon: matrices follow their momentum made orthogonal (kernel/whole.h), w -= lr sqrt(max(rows, columns)) rms_rate x; every other
 * variable follows Adam, and so do embeddings and the layers that exclude_layers names.
 */
#include "train/optimizers/rows.h"

#include <ctype.h>
#include <string.h>

enum { RATE, BETA1, BETA2, ADAM_DECAY, EPSILON, DECAY, COMMON, EXCLUDED = COMMON + BWI_COMMON_COUNT };
enum { EMBEDDINGS = EXCLUDED + 1, A, B, C, ADAM_RATIO, MOMENTUM, STEPS, NESTEROV, RMS, COUNT };

static const bwi_argument arguments[COUNT] = {
    [RATE] = RATE_ARGUMENT("0.001"),
    [BETA1] = {"adam_beta_1", NULL, BWI_FLOAT, "0.9", 0, BETA_MOST, NULL},
    [BETA2] = {"adam_beta_2", NULL, BWI_FLOAT, "0.999", 0, BETA_MOST, NULL},
    [ADAM_DECAY] = {"adam_weight_decay", NULL, BWI_FLOAT, "0.004", 0, 1e9, NULL},
    [EPSILON] = {"epsilon", NULL, BWI_FLOAT, "1e-7", 0, 1e9, NULL},
    [DECAY] = DECAY_ARGUMENT("0.004"),
    COMMON_ARGUMENTS(COMMON),
    [EXCLUDED] = {"exclude_layers", NULL, BWI_TEXT, "", 0, 0, NULL},
    [EMBEDDINGS] = {"exclude_embeddings", NULL, BWI_BOOL, "true", 0, 0, NULL},
    [A] = {"muon_a", NULL, BWI_FLOAT, "3.4445", -1e9, 1e9, NULL},
    [B] = {"muon_b", NULL, BWI_FLOAT, "-4.775", -1e9, 1e9, NULL},
    [C] = {"muon_c", NULL, BWI_FLOAT, "2.0315", -1e9, 1e9, NULL},
    [ADAM_RATIO] = {"adam_lr_ratio", NULL, BWI_FLOAT, "1", 0, 1e9, NULL},
    [MOMENTUM] = {"momentum", NULL, BWI_FLOAT, "0.95", 0, 1, NULL},
    [STEPS] = {"ns_steps", NULL, BWI_INT, "5", 0, 1000, NULL},
    [NESTEROV] = {"nesterov", NULL, BWI_BOOL, "true", 0, 0, NULL},
    [RMS] = {"rms_rate", NULL, BWI_FLOAT, "0.2", 1e-9, 1e9, NULL},
};

/* Whether the name has one of the words, which are separated by commas. */
static bool has_word(const char *name, const char *words)
{
    for (const char *at = words; *at;) {
        size_t length = strcspn(at, ",");
        for (const char *from = name; length > 0 && strlen(from) >= length; from++) {
            if (memcmp(from, at, length) == 0) {
                return true;
            }
        }
        at += length + (at[length] == ',');
    }
    return false;
}

static bool is_whole(const bwi_optimizer *o, const bwi_variable *variable)
{
    char small[sizeof variable->name];
    size_t i = 0;
    for (; variable->name[i] && i < sizeof small - 1; i++) {
        small[i] = (char)tolower((unsigned char)variable->name[i]);
    }
    small[i] = 0;
    bool embedding = o->values[EMBEDDINGS].flag && has_word(small, "embedding");
    return variable->shape.ndim == 2 && !embedding && !has_word(variable->name, o->values[EXCLUDED].text);
}

static bwi_shape slot_shape(const bwi_optimizer *o, const bwi_variable *variable, int slot)
{
    return slot == 1 && is_whole(o, variable) ? (bwi_shape){.ndim = -1} : variable->shape;
}

static int64_t whole_scratch(const bwi_kernels *k, const bwi_variable *variable)
{
    return variable->shape.ndim == 2 ? bwi_whole_muon_scratch(k, variable->shape.extent[0], variable->shape.extent[1]) : 0;
}

static void whole(const bwi_optimizer *o, const bwi_extents *e, float *g, float *const *slots_of, float *w, float *scratch)
{
    int64_t rows = e->extent[0], columns = e->extent[1];
    double larger = sqrt((double)(rows > columns ? rows : columns));
    bwi_muon muon = {.rate = (float)(o->rate * larger * o->values[RMS].number),
                     .momentum = (float)o->values[MOMENTUM].number,
                     .a = (float)o->values[A].number,
                     .b = (float)o->values[B].number,
                     .c = (float)o->values[C].number,
                     .nesterov = o->values[NESTEROV].flag,
                     .steps = o->values[STEPS].integer};
    bwi_whole_muon(o->kernels, &muon, rows, columns, g, slots_of[0], w, scratch);
}

static void begin(bwi_optimizer *o)
{
    double b1 = o->values[BETA1].number, b2 = o->values[BETA2].number;
    bwi_optimizer_take_powers(o, b1, b2);
    o->step.rule = BWI_RULE_ADAM;
    o->step.rate = (float)(o->rate * o->values[ADAM_RATIO].number * sqrt(1 - o->powers.second) / (1 - o->powers.first));
    o->step.beta1 = b1;
    o->step.beta2 = b2;
    o->step.epsilon = bwi_positive_epsilon(o->values[EPSILON].number);
    o->step.decay = (float)(o->rate * o->values[ADAM_DECAY].number);
    o->step.decays = o->step.decay > 0;
}

const bwi_optimizer_row bwi_optimizer_muon = {.name = "muon",
                                              .class_name = "Muon",
                                              .arguments = arguments,
                                              .argument_count = COUNT,
                                              .decay = DECAY,
                                              .common = COMMON,
                                              .paired = 2,
                                              .slot_names = {"momentum", "velocity"},
                                              .slot_shape = slot_shape,
                                              .is_whole = is_whole,
                                              .whole_scratch = whole_scratch,
                                              .whole = whole,
                                              .begin = begin};
