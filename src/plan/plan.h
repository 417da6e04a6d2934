/*
 * plan: everything that is decided before the first step: lowering (fusions, layouts, reorders), phases, liveness and addresses,
 * tile, lanes and workers under a budget. The plan counts every byte; exec allocates them as one arena and runs the plan.
 *
 * Tile, lanes and the order of sums follow from the model alone unless the caller or the budget says otherwise, so that two
 * machines agree.
 */
#ifndef BWI_PLAN_H
#define BWI_PLAN_H

#include "op/op.h"

typedef struct bwi_plan bwi_plan;

/* What one program of the plan computes. */
typedef struct bwi_program_request {
    bw_node *const *targets; /* outputs, and nodes with sums */
    int target_count;
    bw_node *const *losses; /* none: inference */
    int loss_count;
} bwi_program_request;

typedef struct bwi_plan_request {
    const bwi_graph *graph;
    int own_nodes; /* how many are the model itself, and decide the tile; others are the model at other lengths. 0: all nodes */
    const bwi_program_request *programs;
    int program_count;
    int64_t batch;        /* samples fed at once, at most; 0: not known, then nothing is kept for a whole batch */
    int64_t window;       /* samples of one update, at most; 0: not known */
    int64_t tile;         /* 0: from the model */
    int lanes;            /* 0: from the model */
    int workers;          /* at most; 0: the context's */
    int least_lanes;      /* unless `lanes` says otherwise; 0: as many as the model wants */
    int ranks;            /* they share the lanes */
    size_t memory;        /* budget; 0: what the system gives */
    const char *spill;    /* folder for boundary values that the budget cannot hold; NULL: none may be spilled */
    size_t outside_bytes; /* that others have planned: parameters, optimizer slots, history */
    size_t divided_bytes; /* the same, if each rank keeps the slots of its portion only; 0: all ranks must keep all slots */
    bool divides;         /* they are divided even if the budget does not ask for it */
    size_t held_bytes;    /* of them, those that are allocated already */
    size_t model_bytes;   /* of them, the parameters and slots, which a system that holds the whole batch has, too */
    size_t (*bookkeeping)(const bwi_plan *plan); /* the bytes of what runs the plan, without the arena; may be NULL */
    /* The bytes of samples that are made ahead, for the plan's tile and workers; may be NULL. */
    size_t (*data)(const void *user, const bwi_plan *plan);
    const void *data_user;
} bwi_plan_request;

/* How a value of one phase reaches a later one. The bits do not depend on it. */
typedef enum bwi_fate {
    BWI_FATE_COMPUTE, /* computed again */
    BWI_FATE_KEEP,    /* kept in memory for the whole batch */
    BWI_FATE_SPILL    /* kept in a file */
} bwi_fate;

/* Where a value lies in a worker's tile region. */
typedef struct bwi_place {
    int value;
    size_t offset;
} bwi_place;

/* One phase: instructions that run for each tile, between two meetings of the whole batch. */
typedef struct bwi_phase {
    bwi_instruction *instructions; /* copies; their lists belong to the program, or to `lists` */
    int count;
    int deferred;      /* how many of the instructions, the last ones, have gradients that may be deferred to the update */
    int *lists;        /* of instructions that segments.c has changed; NULL: none */
    bwi_place *places; /* of the values in this phase, except for views, by value */
    int place_count;
    size_t bytes; /* of the tile region */
} bwi_phase;

typedef struct bwi_plan_program {
    bwi_program program;
    bwi_phase *phases;
    int phase_count;
    bw_node **targets; /* in the lowered graph */
    int target_count;
    bwi_fate *fate; /* per value */
    size_t *stored; /* per value: offset in a tile's slot of the store, or of the file; SIZE_MAX: in neither */
    int own_values; /* how many of the values are the program's own; segments.c adds others after them */
} bwi_plan_program;

/* What a node needs for one number of samples. */
typedef struct bwi_plan_needs {
    bool known;
    size_t workspace, scratch, shared, bound;
} bwi_plan_needs;

/* Where the gradient of a sparse variable is kept: records (graph.h), and two lists of 8 bytes a record to sort them. */
typedef struct bwi_plan_table {
    const bwi_variable *variable;
    int64_t capacity;            /* records */
    size_t rows, values, sorted; /* offsets in the arena */
} bwi_plan_table;

/* Bytes by purpose, in the arena and outside of it. */
typedef struct bwi_plan_items {
    size_t lanes, activations, scratch, statistics, store, records;
    size_t data;        /* outside the arena: samples that are made ahead */
    size_t bookkeeping; /* outside the arena: the plan's own tables, and those of what runs it */
    size_t outside;
} bwi_plan_items;

enum { BWI_MAX_SIZES = 12, BWI_UPDATE_BLOCK = 8192 };

struct bwi_plan {
    bw_context *ctx;
    const bwi_kernels *kernels;
    const bwi_graph *source; /* the model's graph */
    bwi_graph graph;         /* lowered; its variables are the source's */
    bw_node **lowered;       /* by the number of the source's node; NULL: it was fused away, or is not needed */
    bwi_plan_program *programs;
    int program_count;

    int64_t tile;
    int sizes; /* numbers of samples with kernels: 1, 2, 4, ... tile */
    int lanes, workers, ranks;
    int divided_lanes;         /* those that a whole window fills: ranks divide them evenly, and the last one has the others, too */
    int first_lane, own_lanes; /* of this rank */
    int lane_slots;            /* lanes that the arena has space for: those of the rank that owns the most */
    int segments;              /* by which a tile's backward pass computes the forward pass again; 1: it does not */
    int64_t batch, window;
    int64_t most_tiles, store_tiles; /* of a batch that is known; those of them that a rank may have */
    bool store_by_sample;   /* smaller tiles share a slot, each value at its samples' place; otherwise each tile has a slot */
    int64_t requested_tile; /* what the request or the model asked for, before the budget was applied */
    int requested_lanes, requested_workers;
    int split_tiles;  /* tiles that run together, their layers split over workers; 0: none */
    bool joined;      /* the lanes share one buffer of the gradients that are deferred, which those of every window are */
    int64_t staged;   /* tiles whose factors of deferred gradients can be staged */
    int tile_workers; /* how many workers take tiles: no more than there are */
    int regions;      /* of tile values: one for each of them, and for each of split_tiles */
    bool divides;     /* each rank keeps the optimizer's slots of its portion of the blocks only */
    bool keep;        /* values between phases may be kept for the whole batch, whose size is known */
    /* Some program has several phases, so what prologues make takes turns in memory and is made before the first phase that reads
     * it. */
    bool prologues_by_phase;

    unsigned *passes;                                  /* [node]: a bit for each pass of its instructions */
    void **prepared;                                   /* [node][size] */
    bwi_plan_needs *needs;                             /* [node][size] */
    size_t prepared_bytes[BWI_MAX_SIZES];              /* that preparing them has allocated */
    size_t *workspace_bytes, *bound_bytes;             /* [node], for a full tile; of one bound instruction */
    size_t *shared, *statistics, *backward_statistics; /* [node]: offsets in the arena; SIZE_MAX: none */
    size_t *sums;                                      /* [node]: offset in a lane; SIZE_MAX: none */
    size_t *gradients;                                 /* [variable]: offset in a lane; SIZE_MAX: not trained, or sparse */
    bwi_plan_table *tables;                            /* of trained sparse variables */
    int table_count;
    size_t lane_bytes, lane_sums; /* where a lane's sums begin */
    size_t joined_bytes;          /* of the one buffer behind the lanes; its gradients' offsets are from the first lane on */

    size_t lanes_offset, workers_offset, worker_bytes, scratch_offset, store_offset, store_slot;
    size_t staging_offset, staging_bytes;   /* of a tile's deferred gradients */
    size_t staging_step;                    /* from one tile's to the next */
    size_t staging_sizes[BWI_MAX_SIZES];    /* of joined lanes: a tile's, by the power of two of its samples */
    size_t staging_rest, staging_total;     /* of joined lanes: where tiles that are not full have theirs; of a window */
    bool overlaid;                          /* what is staged lies where the deferred gradients go, if they are to be stored */
    size_t deferred_offset, deferred_bytes; /* of a worker's scratch when it sums them */
    size_t spill_slot;                      /* of a tile in the file of spilled values */
    size_t spill_bytes;                     /* of that file; 0: there is none */
    char *spill;                            /* its folder; NULL: nothing may be spilled */
    size_t scatter_offset;                  /* of a buffer of BWI_UPDATE_BLOCK floats for each worker, zero between uses */
    size_t kept_offset;                     /* of another one, for weights while a portion is updated */
    size_t bytes;                           /* of the arena */
    bwi_plan_items items;
};

bw_status bwi_plan_make(bw_context *ctx, bwi_plan **plan, const bwi_plan_request *request);
/* What a system that holds the whole batch needs for each of its samples, when most memory is in use, and in `nodes`, unless it is
 * NULL, the share of each node: the caller provides graph->count zeros. */
bw_status bwi_whole_batch_measure(bw_context *ctx, const bwi_graph *graph, const bwi_program_request *program, size_t *sample,
                                  size_t *nodes);
/* All bytes of a run: arena, bookkeeping, data and what others have planned. */
size_t bwi_plan_total(const bwi_plan *plan);
void bwi_plan_free(bwi_plan *plan);

/* The bytes of a value for n samples. */
size_t bwi_plan_value_bytes(const bwi_plan *plan, const bwi_value *value, int64_t samples);
/* The offset of a value, or of what it is a view of, in the worker's tile region; SIZE_MAX: it is not in this phase. */
size_t bwi_plan_offset(const bwi_program *program, const bwi_phase *phase, int value);
/* Whether the instruction reads what its node's prologue made. */
static inline bwi_lane_division bwi_plan_division(const bwi_plan *plan)
{
    return (bwi_lane_division){plan->lanes, plan->divided_lanes};
}
bool bwi_plan_reads_shared(const bwi_instruction *instruction);
/* What lies in a worker's tile region at the fullest moment of its largest phase, by node of the lowered graph: in `values`
 * outputs and differences, in `workspaces` workspaces. Both lists have plan->graph.count entries. The only failure is
 * RESOURCE_EXHAUSTED. */
bw_status bwi_plan_fullest(const bwi_plan *plan, size_t *values, size_t *workspaces);
/* The bytes of a gradient of all trained dense variables. */
size_t bwi_plan_gradient_bytes(const bwi_plan *plan);
/* The number of fixed blocks in which a variable is updated. */
int64_t bwi_update_blocks(const bwi_variable *variable);
/* The blocks of all trained dense variables, one after the other, are divided evenly over ranks. The blocks of a rank begin
 * with: */
static inline int64_t bwi_portion_begin(int64_t blocks, int ranks, int rank)
{
    return blocks * rank / ranks;
}
/* Where a rank's portion of a variable begins, in values; that of rank `ranks` is the variable's end. A variable that is not
 * trained, or sparse, has one portion, which belongs to all. */
int64_t bwi_portion_of(const bwi_graph *graph, const bwi_variable *variable, int ranks, int rank);
bool bwi_has_portions(const bwi_variable *variable);

#endif
