/*
 * A server for one page and its updates, on 127.0.0.1 only (server.c). It serves what was last published and nothing else; a reader
 * gets the newest state when it is ready for one, and never holds up the publisher.
 */
#ifndef CLI_SERVER_H
#define CLI_SERVER_H

#include <stdbool.h>
#include <stddef.h>

/* Starts the server; port 0 chooses one. Returns the port, or 0 after a message. */
int cli_server_start(int port);
/* Makes the data of a page (page.h) the newest state, and tells all listeners. Takes the text, which malloc gave. After the last
 * state listeners are sent away. */
void cli_server_publish(char *text, size_t length, bool last);
/* Tells whether anybody listens: otherwise nothing need be published. */
bool cli_server_has_listeners(void);
/* Waits, but not for long, until listeners have the last state, and stops the server. Does nothing if there is none. */
void cli_server_stop(void);

#endif
