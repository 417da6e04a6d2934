/*
 * Adafactor: the second moment of a matrix is the product of two vectors (kernel/whole.h). The rate of update t is min(lr, 1 / sqrt
 * t) whether relative_step is set or not, as in Keras, whose formula has the minimum twice.
 */
#include "train/optimizers/rows.h"

enum { RATE, BETA2, EPSILON1, EPSILON2, CLIP, RELATIVE, DECAY, COMMON, COUNT = COMMON + BWI_COMMON_COUNT };

static const bwi_argument arguments[COUNT] = {
    [RATE] = RATE_ARGUMENT("0.001"),
    [BETA2] = {"beta_2_decay", NULL, BWI_FLOAT, "-0.8", -100, 0, NULL},
    [EPSILON1] = {"epsilon_1", NULL, BWI_FLOAT, "1e-30", 0, 1e9, NULL},
    [EPSILON2] = {"epsilon_2", NULL, BWI_FLOAT, "1e-3", 0, 1e9, NULL},
    [CLIP] = {"clip_threshold", NULL, BWI_FLOAT, "1", 1e-30, 1e30, NULL},
    [RELATIVE] = {"relative_step", NULL, BWI_BOOL, "true", 0, 0, NULL},
    [DECAY] = DECAY_ARGUMENT(""),
    COMMON_ARGUMENTS(COMMON),
};

enum { ROWS, COLUMNS, SQUARES };

/* Without the last axis, or without the one before it; Keras keeps a number where there are fewer than two. */
static bwi_shape slot_shape(const bwi_optimizer *o, const bwi_variable *variable, int slot)
{
    (void)o;
    bwi_shape shape = variable->shape;
    if (slot == SQUARES) {
        return shape;
    }
    if (shape.ndim < 2) {
        return (bwi_shape){0};
    }
    if (slot == COLUMNS) {
        shape.extent[shape.ndim - 2] = shape.extent[shape.ndim - 1];
    }
    shape.ndim--;
    return shape;
}

static bool is_whole(const bwi_optimizer *o, const bwi_variable *variable)
{
    (void)o;
    (void)variable;
    return true;
}

static void whole(const bwi_optimizer *o, const bwi_extents *e, float *g, float *const *slots_of, float *w, float *scratch)
{
    (void)scratch;
    double t = (double)(o->iterations + 1), least = 1 / sqrt(t);
    bwi_adafactor a = {.rate = (float)(o->rate < least ? o->rate : least),
                       .keep = (float)(1 - pow(t, o->values[BETA2].number)),
                       .epsilon1 = (float)o->values[EPSILON1].number,
                       .epsilon2 = (float)o->values[EPSILON2].number,
                       .clip = (float)o->values[CLIP].number};
    bwi_whole_adafactor(&a, e, g, slots_of[ROWS], slots_of[COLUMNS], slots_of[SQUARES], w);
}

static void begin(bwi_optimizer *o)
{
    o->step.rule = BWI_RULE_NONE;
}

const bwi_optimizer_row bwi_optimizer_adafactor = {.name = "adafactor",
                                                   .class_name = "Adafactor",
                                                   .arguments = arguments,
                                                   .argument_count = COUNT,
                                                   .decay = DECAY,
                                                   .common = COMMON,
                                                   .paired = 3,
                                                   .slot_names = {[ROWS] = "r", [COLUMNS] = "c", [SQUARES] = "velocity"},
                                                   .slot_shape = slot_shape,
                                                   .is_whole = is_whole,
                                                   .whole = whole,
                                                   .begin = begin};
