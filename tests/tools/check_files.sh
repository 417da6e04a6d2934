#!/usr/bin/env bash
# tools/check-files must find files that do not say what they are for, or are too long, and nothing else.
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
. "$top/tests/tools/cases.sh"
tool=$top/tools/check-files
mapfile -t long < <(printf '/* %s */\n' 'A file that is too long.' $(seq 1 800))

good src/base/text.c '/* Texts: numbers and names. */' '#include "base/base.h"'
good src/kernel/dense.inc '/*' ' * Dense layers, by panels.' ' */'
good tests/unit/base/test_text.c '/* Texts: numbers, names. label: thread */' 'int main(void) { return 0; }' '/* What texts are. */'
good include/batchwise.h "${long[@]}"
good src/base/notes.md 'nothing'
good src/base/text.c "${long[@]:0:800}"

bad 'text.c: does not begin' src/base/text.c '#include "base/base.h"' '/* Texts: numbers and names. */'
bad 'text.c: does not begin' src/base/text.c '' '/* Texts: numbers and names. */'
bad 'base.h: does not begin' src/base/base.h '/* base */'
bad 'dense.inc: does not begin' src/kernel/dense.inc '/**/' 'static int dense(void);'
bad 'text.c: has 801 lines' tests/unit/base/test_text.c "${long[@]}"
finish
