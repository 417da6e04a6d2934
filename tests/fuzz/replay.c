/*
 * Gives files to a target without a fuzzer: replay TARGET FILE... The test of a target replays everything that was ever found, so
 * that it stays mended with any compiler. A file that takes a minute hangs.
 */
#include "fuzz/fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int replay(const fuzz_target *target, const char *path)
{
    enum { SECONDS = 60 };
    FILE *file = fopen(path, "rb");
    if (!file) {
        fprintf(stderr, "replay: cannot open %s\n", path);
        return 1;
    }
    uint8_t *bytes = malloc(FUZZ_LARGEST + 1);
    size_t size = fread(bytes, 1, FUZZ_LARGEST + 1, file);
    fclose(file);
    bytes = realloc(bytes, size ? size : 1);
    fprintf(stderr, "%s\n", path); /* names the file that the next line may be about */
    alarm(SECONDS);
    fuzz_run(target, bytes, size);
    alarm(0);
    free(bytes);
    return 0;
}

int main(int argc, char **argv)
{
    const fuzz_target *target = argc > 1 ? fuzz_find(argv[1]) : NULL;
    if (!target) {
        fprintf(stderr, "usage: replay TARGET FILE...; targets:");
        for (int i = 0; fuzz_name(i); i++) {
            fprintf(stderr, " %s", fuzz_name(i));
        }
        fprintf(stderr, "\n");
        return 2;
    }
    for (int i = 2; i < argc; i++) {
        if (replay(target, argv[i])) {
            return 1;
        }
    }
    return 0;
}
