/* train --watch: the report as a page that follows the training, on 127.0.0.1 (watch.c, server.c). */
#ifndef CLI_WATCH_H
#define CLI_WATCH_H

#include "cli/cli.h"

/* What serving takes while up to three pages are open, as measured after thousands of epochs: the server with its connections, the
 * newest state and the one before, the page, and the texts that they are made from. */
enum { CLI_WATCH_BYTES = 640 << 10 };

/* Starts to serve a training, whose record must be open, and prints the page's address. `result` is kept until cli_watch_close.
 * Returns false after a message. */
bool cli_watch_open(const cli_result *result, int port);
/* Publishes the training's state, about once a second and only if somebody listens. */
void cli_watch_step(const bw_progress *progress);
/* Publishes the finished training, lets listeners have it, and stops. Does nothing if nothing is served. */
void cli_watch_close(void);

#endif
