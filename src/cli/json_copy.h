/*
 * Checks JSON that came from a file and copies it into a page. The files of a run may come from anywhere, so nothing is trusted:
 * the text must be JSON as RFC 8259 has it (and NaN or Infinity, which Python writes), nested at most CLI_JSON_NESTED deep.
 */
#ifndef CLI_JSON_COPY_H
#define CLI_JSON_COPY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum { CLI_JSON_NESTED = 32 };

/* Returns NULL if the text is one JSON value, otherwise what is wrong with it; *at is then the byte where. */
const char *cli_json_mistake(const char *text, size_t length, size_t *at);
/* Copies a value that was checked. Every '<' is escaped, so that the copy can stand in a script element. An array of more than
 * `most` values becomes {"of": count, "values": [...]} with `most` of them, evenly spread; of larger objects the first members are
 * copied, and of long strings the beginning. NaN and Infinity become null. */
void cli_json_copy(FILE *file, const char *text, size_t length, int most);

#endif
