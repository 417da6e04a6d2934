#!/usr/bin/env bash
# tools/check-dialect must find comparisons with NULL, goto, const values and the words of tools/words.txt, and nothing else.
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
. "$top/tests/tools/cases.sh"
tool=$top/tools/check-dialect

good src/base/text.c 'if (!p || q) { x = y == 0 ? NULL : p; }' '/* p == NULL; goto end */ f("x != NULL");'
good src/base/text.c 'static void f(const char *name, const bwi_shape *const s);' '    const char *at = name;' '    static const int table[] = {1};'
good src/base/text.c '    const struct CMUnitTest tests[] = {1};' '    for (const char *at = x; *at; at++) {'
good src/base/text.c '/* Interest, restless, wishbone and spooling are other words; of one owner. */'
good docs/page.md 'A batch is what one update is computed from; the remaining samples follow.'
good tests/unit/base/test_text.c '/* Tests may say so many words. */'
good docs/picture.svg 'trouble'

bad 'text.c:1: write !p' src/base/text.c 'if (p == NULL) {'
bad 'text.inc:2: write !p' src/base/text.inc '' 'return NULL != p;'
bad 'test_text.c:1: write !p' tests/unit/base/test_text.c 'assert_true(p != NULL);'
bad 'text.c:1: no goto' src/base/text.c '    goto end;'
bad 'text.c:1: no const' src/base/text.c '    const int64_t count = 3;'
bad 'text.c:1: no const' src/base/text.c '    for (const int i = 0; i < 1;) {'
bad 'text.c:1: no const' src/base/text.c '    const float a = 1, *x = y;'
bad 'text.c:1: no const' src/base/text.c 'static int f(const int rows, int width)'
bad 'text.c:1: no const' src/base/text.c '    const unsigned bits;'
bad 'text.c:1: a decimal point follows the locale' src/base/text.c 'snprintf(text, sizeof text, "%.3f", 0.5);'
bad 'text.c:1: a decimal point follows the locale' src/base/text.c '    fprintf(file, "%s %g", name, x);'
good src/base/text.c 'bwi_print(text, sizeof text, "%.3f", 0.5); snprintf(text, 3, "%d", i);'
good src/cli/text.c 'printf("%.3f", x); snprintf(text, 9, "%g", x);'
bad 'text.c:1: "trouble"' src/base/text.c '/* Where the trouble is. */'
bad 'text.c:1: "spool"' src/base/text.c 'bwi_spool_open();'
bad 'text.c:2: "so many"' src/base/text.c '/* There are so' ' * many of them. */'
bad 'page.md:1: "behind an update": write per update' docs/page.md 'The samples behind an update.'
bad 'README.md:1: "the rest"' README.md 'The rest is silence.'
bad "batchwise.1.scd:1: \"one's own\"" man/batchwise.1.scd "A loop of one's own."

echo 'nothing' >>"$work/tools/words.txt"
bad 'words.txt: expected two blanks' src/base/text.c ''
finish
