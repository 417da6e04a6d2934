/*
 * Computes Keras's order of a functional model's layers, by which it numbers the groups of weights: by the longest path to an
 * output, descending, then by a depth-first search from the outputs that visits inputs in their order. Operators and masks have no
 * weights, but count in the lengths of paths.
 */
#include "file/internal.h"

#include <stdlib.h>

typedef struct walk {
    const bwi_order *g;
    int *first, seen;          /* of each operation: when the search first met it; -1: not yet */
    int *depth, *deepest;      /* of each use; of each operation */
    int *finished, done;       /* uses, inputs before their users */
    int *stack, *next, height; /* uses on the current path, and which of their inputs comes next */
    int *reached;
} walk;

static void push(walk *k, int use)
{
    if (k->reached[use]) {
        return;
    }
    k->reached[use] = 1;
    int operation = k->g->operation[use];
    if (k->first[operation] < 0) {
        k->first[operation] = k->seen++;
    }
    k->next[k->height] = k->g->begin[use];
    k->stack[k->height++] = use;
}

static void visit(walk *k, int output)
{
    push(k, output);
    while (k->height > 0) {
        int use = k->stack[k->height - 1];
        if (k->next[k->height - 1] == k->g->begin[use + 1]) {
            k->finished[k->done++] = use;
            k->height--;
        } else {
            push(k, k->g->input[k->next[k->height - 1]++]);
        }
    }
}

static int larger(int a, int b)
{
    return a > b ? a : b;
}

static void measure(walk *k)
{
    for (int i = k->done - 1; i >= 0; i--) {
        int use = k->finished[i], operation = k->g->operation[use];
        k->deepest[operation] = k->depth[use] = larger(k->depth[use], k->deepest[operation]);
        for (int n = k->g->begin[use]; n < k->g->begin[use + 1]; n++) {
            k->depth[k->g->input[n]] = larger(k->depth[use] + 1, k->depth[k->g->input[n]]);
        }
    }
}

typedef struct turn {
    int depth, first, operation;
} turn;

static int compare(const void *a, const void *b)
{
    const turn *x = a, *y = b;
    return x->depth != y->depth ? (x->depth < y->depth) - (x->depth > y->depth) : (x->first > y->first) - (x->first < y->first);
}

bw_status bwi_keras_order(bw_context *ctx, const bwi_order *g, int *order, int *count)
{
    size_t uses = (size_t)g->uses, operations = (size_t)g->operations;
    int *block = bwi_allocate(ctx, 5 * uses + 2 * operations, sizeof *block);
    turn *turns = bwi_allocate(ctx, operations, sizeof *turns);
    *count = 0;
    if (block && turns) {
        walk k = {.g = g, .depth = block, .finished = block + uses, .stack = block + 2 * uses, .next = block + 3 * uses};
        k.reached = block + 4 * uses;
        k.first = block + 5 * uses;
        k.deepest = k.first + operations;
        for (size_t i = 0; i < operations; i++) {
            k.first[i] = -1;
        }
        for (int i = 0; i < g->output_count; i++) {
            visit(&k, g->outputs[i]);
        }
        measure(&k);
        for (int i = 0; i < g->operations; i++) {
            if (k.first[i] >= 0) {
                turns[(*count)++] = (turn){.depth = k.deepest[i], .first = k.first[i], .operation = i};
            }
        }
        qsort(turns, (size_t)*count, sizeof *turns, compare);
        for (int i = 0; i < *count; i++) {
            order[i] = turns[i].operation;
        }
    }
    bw_status status = block && turns ? BW_OK : BW_RESOURCE_EXHAUSTED;
    bwi_release(ctx, block);
    bwi_release(ctx, turns);
    return status;
}
