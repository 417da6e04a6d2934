/* What the files of rank share. */
#ifndef BWI_RANK_INTERNAL_H
#define BWI_RANK_INTERNAL_H

#include "rank/rank.h"

/* ---- Sums of subtrees (tree.c) ---- */

/* Whether every rank has at most one subtree that holds anything, and all of one size: then a sum in the order of ranks completes
 * the tree. */
static inline bool bwi_rank_is_subtree(const bwi_rank_sum *sum, int ranks)
{
    bool powers = (ranks & (ranks - 1)) == 0 && (sum->lanes.divided & (sum->lanes.divided - 1)) == 0;
    return powers && (sum->lanes.divided == sum->lanes.lanes || sum->used <= sum->lanes.divided);
}

enum { BWI_TREE_DEPTH = 16 };

/* Sums of subtrees that have come so far, from the first lane on, and wait for their siblings. */
typedef struct bwi_tree {
    const bwi_kernels *kernels;
    bool doubles;
    int64_t count;
    void *result;           /* of the context's kernels; its first contents do not count */
    unsigned char *scratch; /* of the host: `count` values for each level but the first, which is the result */
    int depth;
    int size[BWI_TREE_DEPTH];         /* lanes of each */
    const void *part[BWI_TREE_DEPTH]; /* where each lies as it came; NULL: added up at its level */
} bwi_tree;

/* The most levels that need scratch memory: sizes of those that wait become smaller from level to level. */
int bwi_tree_levels(int lanes, int parts);
/* Takes the sum of the next subtree, in host memory, which must stay there until the end. */
void bwi_tree_take(bwi_tree *tree, const void *part, int lanes);
/* Adds up what is left into the result. */
void bwi_tree_end(bwi_tree *tree);

#endif
