/*
 * Makes a temporary folder for the tests of a file: make_folder and remove_folder, or remove_empty_folder, are the setup and
 * teardown of a test or of a group.
 */
#ifndef BW_TEST_FOLDER_H
#define BW_TEST_FOLDER_H

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[1024];

static inline int make_folder(void **state)
{
    (void)state;
    strcpy(folder, "/tmp/batchwise-test-XXXXXX");
    return mkdtemp(folder) ? 0 : -1;
}

/* A folder that is given, such as by the environment, instead, which stays; NULL: a temporary one. */
static inline int use_folder(const char *given)
{
    snprintf(folder, sizeof folder, "%s", given ? given : "");
    return given ? 0 : make_folder(NULL);
}

static inline int remove_entry(const char *path, const struct stat *facts, int kind, struct FTW *place)
{
    (void)facts;
    (void)kind;
    (void)place;
    return remove(path);
}

/* With all that it holds. */
static inline int remove_folder(void **state)
{
    (void)state;
    return nftw(folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* For tests that remove what they write: fails if anything was left, such as a file with a temporary name. */
static inline int remove_empty_folder(void **state)
{
    (void)state;
    return rmdir(folder);
}

/* A path in the folder; of the last four calls of a thread. */
static inline const char *inside(const char *name)
{
    static _Thread_local char paths[4][2048];
    static _Thread_local int turn;
    turn = (turn + 1) % 4;
    snprintf(paths[turn], sizeof paths[turn], "%s/%s", folder, name);
    return paths[turn];
}

#endif
