/* What a test tells the library that makes calls fail (shim.c), which it finds with dlsym if it is loaded. */
#ifndef BW_TEST_SHIM_H
#define BW_TEST_SHIM_H

#include <stdbool.h>
#include <stdint.h>

typedef enum shim_kind { SHIM_NONE, SHIM_MEMORY, SHIM_FILES, SHIM_KILL } shim_kind;

void shim_arm(shim_kind kind, int64_t at, bool all); /* counting from now on; `all`: those after it fail, too */
bool shim_disarm(void);                              /* whether the chosen call has come */
int64_t shim_blocks(void);                           /* allocated and not released, in the whole process */

#endif
