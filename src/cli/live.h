/* train --live: the training as a panel in the terminal, redrawn in place (live.c). */
#ifndef CLI_LIVE_H
#define CLI_LIVE_H

#include "cli/cli.h"

/* Tells whether standard error is a terminal that can redraw lines. */
bool cli_live_possible(void);
/* Begins to show a training, whose record must be open. `result` is kept until cli_live_close. */
void cli_live_open(const cli_result *result, bool validates);
/* Draws a panel if one is due: some times a second, whatever a step takes. */
void cli_live_step(const bw_progress *progress);
void cli_live_epoch(const bw_progress *progress);
/* Draws the last panel, which stays. Does nothing if no training is shown. */
void cli_live_close(void);
/* Takes the panel away, for a message in its place; the next one is drawn below it. Does nothing if there is none. */
void cli_live_clear(void);

#endif
