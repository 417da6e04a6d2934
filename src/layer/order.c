/*
 * Keras's two orders of a functional model. Layers are numbered by their depth, the longest path to an output, descending, and
 * among equals by when a search from the outputs meets them. Uses run by their depth, and among equals in the order in which Keras
 * reached them while it measured depths. A layer's uses are at least as deep as those of its uses that were measured before. The
 * search has an explicit stack, because a model may be as deep as it has layers.
 */
#include "layer/layer.h"

#include <stdlib.h>

typedef struct search {
    const bwi_calls *g;
    int *first, seen;          /* of each operation: when the search first met it; -1: not yet */
    int *depth, *deepest;      /* of each use; of each operation */
    int *mention, mentioned;   /* of each use: when measuring depths reached it, from 1; 0: not yet */
    int *finished, done;       /* uses, inputs before their users */
    int *stack, *next, height; /* uses on the current path, and which of their inputs comes next */
    int *reached;
} search;

static void push(search *s, int use)
{
    if (use < 0 || s->reached[use]) {
        return;
    }
    s->reached[use] = 1;
    int operation = s->g->operation[use];
    if (s->first[operation] < 0) {
        s->first[operation] = s->seen++;
    }
    s->next[s->height] = s->g->begin[use];
    s->stack[s->height++] = use;
}

static void visit(search *s, int output)
{
    push(s, output);
    while (s->height > 0) {
        int use = s->stack[s->height - 1];
        if (s->next[s->height - 1] == s->g->begin[use + 1]) {
            s->finished[s->done++] = use;
            s->height--;
        } else {
            push(s, s->g->input[s->next[s->height - 1]++]);
        }
    }
}

static int larger(int a, int b)
{
    return a > b ? a : b;
}

static void mention(search *s, int use)
{
    s->mention[use] = s->mention[use] ? s->mention[use] : ++s->mentioned;
}

static void measure_depths(search *s)
{
    for (int i = s->done - 1; i >= 0; i--) {
        int use = s->finished[i], operation = s->g->operation[use];
        s->deepest[operation] = s->depth[use] = larger(s->depth[use], s->deepest[operation]);
        mention(s, use);
        for (int n = s->g->begin[use]; n < s->g->begin[use + 1]; n++) {
            int input = s->g->input[n];
            if (input >= 0) {
                s->depth[input] = larger(s->depth[use] + 1, s->depth[input]);
                mention(s, input);
            }
        }
    }
}

typedef struct sorted {
    int depth, first, number;
} sorted;

static int compare(const void *a, const void *b)
{
    const sorted *x = a, *y = b;
    return x->depth != y->depth   ? (x->depth < y->depth) - (x->depth > y->depth)
           : x->first != y->first ? (x->first > y->first) - (x->first < y->first)
                                  : (x->number > y->number) - (x->number < y->number);
}

/* An input that leads to no output is listed, too: just before the outputs, whose depth is 0. */
static void order_operations(const search *s, sorted *list, bwi_call_order *order)
{
    const bwi_calls *g = s->g;
    int count = 0;
    for (int u = 0, listed = -1; u < g->uses; u++) {
        int operation = g->operation[u];
        if (s->first[operation] < 0 && g->begin[u] == g->begin[u + 1] && operation > listed) {
            list[count++] = (sorted){.depth = 0, .first = -1, .number = operation};
            listed = operation;
        }
    }
    for (int i = 0; i < g->operations; i++) {
        if (s->first[i] >= 0) {
            list[count++] = (sorted){.depth = s->deepest[i], .first = s->first[i], .number = i};
        }
    }
    qsort(list, (size_t)count, sizeof *list, compare);
    for (int i = 0; i < count; i++) {
        order->operations[i] = list[i].number;
    }
    order->count = count;
}

static void order_uses(const search *s, sorted *list, bwi_call_order *order)
{
    for (int i = 0; i < s->done; i++) {
        int use = s->finished[i];
        list[i] = (sorted){.depth = s->depth[use], .first = s->mention[use], .number = use};
    }
    qsort(list, (size_t)s->done, sizeof *list, compare);
    for (int u = 0; u < s->g->uses; u++) {
        order->run_at[u] = -1;
    }
    for (int i = 0; i < s->done; i++) {
        order->run_at[list[i].number] = i;
    }
}

/* The search and the sorting work on one block of memory, and only the two orders stay. */
bw_status bwi_call_order_open(bw_context *ctx, const bwi_calls *g, bwi_call_order *order)
{
    size_t uses = (size_t)g->uses, operations = (size_t)g->operations;
    int *block = bwi_allocate(ctx, 6 * uses + 2 * operations, sizeof *block);
    sorted *list = bwi_allocate(ctx, uses + operations, sizeof *list);
    *order = (bwi_call_order){.operations = bwi_allocate(ctx, operations, sizeof *order->operations),
                              .run_at = bwi_allocate(ctx, uses, sizeof *order->run_at)};
    bool allocated = block && list && order->operations && order->run_at;
    if (allocated) {
        search s = {.g = g, .depth = block, .finished = block + uses, .stack = block + 2 * uses, .next = block + 3 * uses};
        s.reached = block + 4 * uses;
        s.mention = block + 5 * uses;
        s.first = block + 6 * uses;
        s.deepest = s.first + operations;
        for (size_t i = 0; i < operations; i++) {
            s.first[i] = -1;
        }
        for (int i = 0; i < g->output_count; i++) {
            visit(&s, g->outputs[i]);
        }
        measure_depths(&s);
        order_operations(&s, list, order);
        order_uses(&s, list, order);
    }
    bwi_release(ctx, block);
    bwi_release(ctx, list);
    if (!allocated) {
        bwi_call_order_close(ctx, order);
    }
    return allocated ? BW_OK : BW_RESOURCE_EXHAUSTED;
}

void bwi_call_order_close(bw_context *ctx, bwi_call_order *order)
{
    bwi_release(ctx, order->operations);
    bwi_release(ctx, order->run_at);
    *order = (bwi_call_order){.count = 0};
}
