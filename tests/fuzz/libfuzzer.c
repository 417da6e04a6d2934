/* The targets for libFuzzer, in one program: fuzz --target=NAME [libFuzzer's options] [folders]. */
#include "fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const fuzz_target *target;

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    for (int i = 1; i < *argc; i++) {
        if (strncmp((*argv)[i], "--target=", 9) == 0) {
            target = fuzz_find((*argv)[i] + 9);
        }
    }
    if (!target) {
        fprintf(stderr, "usage: fuzz --target=NAME [options] [folders]; targets:");
        for (int i = 0; fuzz_name(i); i++) {
            fprintf(stderr, " %s", fuzz_name(i));
        }
        fprintf(stderr, "\n");
        exit(2);
    }
    return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    fuzz_run(target, bytes, size);
    return 0;
}
