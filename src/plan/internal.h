/* What the files of plan share. */
#ifndef BWI_PLAN_INTERNAL_H
#define BWI_PLAN_INTERNAL_H

#include "plan/plan.h"

/* Bytes of a model's dense weights from which on splitting layers is faster than sharing out tiles. */
enum { BWI_SPLIT_BYTES = 1 << 20 };
enum { BWI_SMALL_BATCH = 32 }; /* smaller ones may cost more than holding the whole batch */

/* choice.c: the choices that a budget may change. */
typedef struct bwi_choice {
    int64_t tile;
    int lanes, workers, segments;
    int tile_workers; /* that take tiles, at most; 0: all */
    int cheap_lanes;  /* whose sums cost no more than tiles save */
    bool split;       /* a window's tiles may run together, their layers split over workers */
    bool joins;       /* lanes may share one buffer of deferred gradients */
} bwi_choice;

/* Makes the default choice: what the request leaves open follows from the model and the batch. `whole` is what a system that holds
 * the whole batch needs for each sample; 0: not known. */
bw_status bwi_choice_make(bw_context *ctx, const bwi_plan_request *request, size_t whole, bwi_choice *choice);
/* The bytes of gradients that a lane holds. */
size_t bwi_choice_gradient_bytes(const bwi_graph *graph);
/* Makes the choice more frugal by one step, down to `frugal`; false if that is not possible. */
bool bwi_choice_save(bwi_choice *choice, const bwi_choice *frugal);
/* The most tiles that any number of samples up to `count` has: a remainder has one for each of its bits. */
int64_t bwi_most_tiles(int64_t count, int64_t tile);
int64_t bwi_choice_least_tile(const bwi_graph *graph);
int bwi_choice_more_segments(int segments); /* 0: no more are tried */
/* layout.c: prepares all kernels for the present tile; `scratch` receives the most that one of them needs. */
bw_status bwi_plan_prepare(bwi_plan *plan, size_t *scratch);
/* Frees those for numbers of samples from 2^from_size on. */
void bwi_plan_unprepare(bwi_plan *plan, int from_size);
/* Gives everything its place in the arena, and counts the bytes. The only failure is RESOURCE_EXHAUSTED. */
bw_status bwi_plan_lay(bwi_plan *plan, size_t scratch);
/* Whether the instruction's gradient may be deferred to the update. */
bool bwi_plan_defers(const bwi_plan *plan, const bwi_program *program, const bwi_instruction *instruction);
/* lower.c: fills plan->graph and plan->lowered. */
bw_status bwi_plan_lower(bwi_plan *plan, const bwi_plan_request *request);
/* phases.c: cuts a program into phases, according to the fates of its values; may be called again after these have changed. */
bw_status bwi_plan_cut(bwi_plan *plan, bwi_plan_program *program);
void bwi_plan_uncut(bwi_plan *plan, bwi_plan_program *program);
/* Whether its phase runs for the instruction's sake: it makes sums, or a target. */
bool bwi_plan_is_wanted(const bwi_plan_program *program, const bwi_instruction *instruction);
/* Finds the instruction that writes each value; -1: none. `writer` has program->value_count entries. */
void bwi_plan_find_writers(const bwi_program *program, int *writer);
/* Sorts the instructions by level, those of a level in the program's order; a level's begin where the ones before end. Both lists
 * are zero before: of program->count and program->levels entries. */
void bwi_plan_sort_by_level(const bwi_program *program, int *by_level, int *level_ends);
/* store.c: chooses the fates of values that later phases need, at first for the least time; then with at least `bytes` less kept
 * in memory, at the least cost. `changed` is false if nothing more can be saved. */
bw_status bwi_plan_fates(bwi_plan *plan, bwi_plan_program *program);
bw_status bwi_plan_save_store(bwi_plan *plan, bwi_plan_program *program, size_t bytes, bool *changed);
/* segments.c: makes a phase compute its forward pass again, a segment at a time, when its backward pass needs it. */
bw_status bwi_plan_segment(bwi_plan *plan, bwi_plan_program *program, bwi_phase *phase);

/* The value that holds the bytes of `value`: itself, or the one that it is a view of. */
int bwi_plan_root(const bwi_program *program, int value);

/* Bytes that are needed from one time to another, and the offset that they get. */
typedef struct bwi_life {
    int value;
    int first, last;
    size_t bytes, offset;
} bwi_life;

/* address.c: places each phase's values; `ends` marks values that must live to its end. */
bw_status bwi_plan_place(bwi_plan *plan, const bwi_plan_program *program, const bool *ends);
/* Gives each life the lowest offset that is free for its whole time, the largest first, and returns the end of all. Sorts the
 * list. */
size_t bwi_plan_pack(bwi_life **lives, int count);

#endif
