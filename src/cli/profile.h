/* The profile of a training, taken from its history, and the ways to show it: a table, bars, sentences, JSON. */
#ifndef CLI_PROFILE_H
#define CLI_PROFILE_H

#include "cli/cli.h"

enum { CLI_PART_KINDS = BW_PART_OVERHEAD + 1 };

enum { CLI_GAPS = 3 };

/* An interval of a traced step in which a worker was idle, and what another worker did meanwhile. */
typedef struct cli_gap {
    int worker; /* -1: no gap */
    double seconds;
    int other, part; /* the part that took most of the gap, and on which worker; part -1: nothing that was timed */
} cli_gap;

typedef struct cli_profile {
    bw_profile_facts facts;
    bw_run_facts run;
    int64_t batch;      /* that was asked for; 0: not known, or it may have changed from step to step */
    bw_machine machine; /* without cores: not known */
    bw_part *parts;
    double *seconds; /* [part][worker] */
    struct cli_gap gaps[CLI_GAPS];
    bw_hardware other; /* without size: no prediction was requested */
    bw_prediction now, then;
} cli_profile;

/* Takes the profile from a history; `machine` may be NULL. Returns false if no step was timed, or there is no memory. */
bool cli_profile_take(cli_profile *made, const bw_history *history, const bw_machine *machine);
void cli_profile_free(cli_profile *made);
/* Finds the longest gaps of the trace (profile_gaps.c). */
void cli_profile_find_gaps(cli_profile *made, const bw_history *history);
/* Returns the seconds per step of a kind of part, on one worker, or on all for -1. */
double cli_profile_kind(const cli_profile *made, int kind, int worker);
/* Returns the share of its time in which a worker computes; -1: of all workers. */
double cli_profile_busy(const cli_profile *made, int worker);

/* What one of the run's workers can do at best while all of them work, a second. */
double cli_profile_flops_limit(const cli_profile *made);
double cli_profile_bytes_limit(const cli_profile *made);

/* Reads "cores=8,bandwidth=2x". Returns false if it is anything else. */
bool cli_what_if_parse(bw_hardware *other, const char *text);
/* Prints the prediction in sentences, or as a member of the current object (profile_what_if.c). */
void cli_what_if_print(const cli_profile *made);
void cli_what_if_put(cli_json *json, const cli_profile *made);

void cli_profile_print(const cli_profile *made);
/* Prints where the time of a training's steps went, by kind of part and worker; nothing if no step was timed. */
void cli_profile_print_short(const bw_history *history);
void cli_profile_compare(const cli_profile *a, const cli_profile *b);
void cli_profile_json(const cli_profile *made, int count);
/* Writes the members of the current object: the parts of a mean step, the utilisation of each worker, gaps and layers. */
void cli_profile_members(cli_json *json, const cli_profile *made);

#endif
