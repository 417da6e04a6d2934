#!/usr/bin/env bash
# tools/check-tables must find direct uses and nothing else.
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
. "$top/tests/tools/cases.sh"
tool=$top/tools/check-tables

good src/base/system.c 'void *p = malloc(1); free(p); open("x", 0); munmap(p, 1);'
good src/cli/main.c 'int main(void) { printf("%d", open("x", 0)); exit(1); }'
good src/data/npz.c 'ctx->io.open(ctx->io.user, path, 0, 0); ctx->io . read (1); io->write(2); file->' '    rename(a, b);'
good src/data/npz.c '/* malloc(1)' ' free(2) */ // open(3)' 'f("malloc(1) \" free(2)"); char c = (char)34; g('"'\"'"', "abort()");'
good src/data/npz.c 'int (*open)(void *user); bwi_release(ctx, p); bwi_file_read(ctx); fprintf(options->progress, "x");'
good src/data/npz.c 'bool read = true; int64_t write = 1; __attribute__((format(printf, 1, 2)));' '#include <assert.h>'

bad 'npz.c:1: malloc' src/data/npz.c 'void *p = malloc(1);'
bad 'npz.c:2: free' src/data/npz.c '/* first */' '    free (p);'
bad 'npz.c:1: malloc' src/data/npz.c '.allocate = malloc,'
bad 'npz.c:1: open' src/data/npz.c 'f("/*"); open(path, 0);'
bad 'dense.inc:1: realloc' src/kernel/dense.inc 'p = realloc(p, 2);'
bad 'data.h:1: read' src/data/data.h 'static inline int f(int x) { return read(x, 0, 0); }'
bad 'npz.c:1: mmap' src/data/npz.c '*memory = mmap(0);'
bad 'npz.c:1: stderr' src/data/npz.c 'fprintf(stderr, "x");'
bad 'npz.c:1: abort' src/data/npz.c 'else abort();'
bad 'npz.c:1: rename' src/data/npz.c 'a.b = rename(a, b);'
bad 'memory.c:1: malloc' src/base/memory.c 'malloc(1);'
finish
