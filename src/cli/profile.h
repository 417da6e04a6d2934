/* What a training's profile says, taken out of its history, and how it is shown: a table, bars, sentences, JSON. */
#ifndef CLI_PROFILE_H
#define CLI_PROFILE_H

#include "cli/cli.h"

enum { CLI_PART_KINDS = BW_PART_OVERHEAD + 1 };

enum { CLI_GAPS = 3 };

/* A stretch of a traced step in which a worker did nothing, and what another did meanwhile. */
typedef struct cli_gap {
    int worker; /* -1: none */
    double seconds;
    int other, part; /* the part that took most of it, on which worker; part -1: nothing that was timed */
} cli_gap;

typedef struct cli_profile {
    bw_profile_facts facts;
    bw_run_facts run;
    bw_part *parts;
    double *seconds; /* [part][worker] */
    struct cli_gap gaps[CLI_GAPS];
} cli_profile;

/* False if no step was timed, or there is no memory. */
bool cli_profile_take(cli_profile *made, const bw_history *history);
void cli_profile_free(cli_profile *made);
/* The longest gaps of the trace (profile_gaps.c). */
void cli_profile_find_gaps(cli_profile *made, const bw_history *history);
/* Seconds of a kind of part in a step, on one worker; -1: on all. */
double cli_profile_kind(const cli_profile *made, int kind, int worker);
/* The share of the workers' time in which they compute. */
double cli_profile_busy(const cli_profile *made, int worker);

void cli_profile_print(const cli_profile *made);
void cli_profile_compare(const cli_profile *a, const cli_profile *b);
void cli_profile_json(const cli_profile *made, int count);

#endif
