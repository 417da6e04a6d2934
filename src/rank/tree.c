/*
 * The lanes' tree over the sums of subtrees, which come in the order of lanes. It works as a binary counter: two neighbours of the
 * same size are siblings and become one of twice the size. What is left at the end has lost its siblings to lanes that hold
 * nothing, and is passed on: the last ones are added first.
 *
 * A part is added where it lies, and copied only if it is the first of two.
 */
#include "rank/internal.h"

#include <string.h>

int bwi_tree_levels(int lanes, int parts)
{
    int levels = 0;
    while (1 << levels < lanes && levels < parts - 1) {
        levels++;
    }
    return levels;
}

static size_t level_bytes(const bwi_tree *tree)
{
    return (size_t)tree->count * (tree->doubles ? sizeof(double) : sizeof(float));
}

static unsigned char *scratch_of(const bwi_tree *tree, int level)
{
    return tree->scratch + (size_t)(level - 1) * level_bytes(tree);
}

static const void *part_of(const bwi_tree *tree, int level)
{
    return tree->part[level] ? tree->part[level] : scratch_of(tree, level);
}

static void settle(bwi_tree *tree, int level)
{
    if (tree->part[level] && level == 0) {
        tree->kernels->memory->write(tree->result, tree->part[level], level_bytes(tree));
    } else if (tree->part[level]) {
        unsigned char *to = scratch_of(tree, level);
        memcpy(to, tree->part[level], level_bytes(tree));
    }
    tree->part[level] = NULL;
}

/* Adds the last sum to the one before it. */
static void join(bwi_tree *tree)
{
    int level = tree->depth - 2;
    settle(tree, level);
    void *to = level == 0 ? tree->result : scratch_of(tree, level);
    if (tree->doubles) {
        tree->kernels->lanes->add_doubles(tree->count, part_of(tree, level + 1), to);
    } else {
        tree->kernels->lanes->add_floats(tree->count, part_of(tree, level + 1), to);
    }
    tree->size[level] *= 2;
    tree->depth--;
}

void bwi_tree_take(bwi_tree *tree, const void *part, int lanes)
{
    tree->part[tree->depth] = part;
    tree->size[tree->depth++] = lanes;
    while (tree->depth > 1 && tree->size[tree->depth - 1] == tree->size[tree->depth - 2]) {
        join(tree);
    }
}

void bwi_tree_end(bwi_tree *tree)
{
    while (tree->depth > 1) {
        join(tree);
    }
    if (tree->depth == 1) {
        settle(tree, 0);
    }
}
