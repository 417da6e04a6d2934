#!/usr/bin/env bash
# tools/check-comments must find long functions without a comment, and those that are too long.
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
. "$top/tests/tools/cases.sh"
tool=$top/tools/check-comments
mapfile -t body < <(printf '    f(%s);\n' $(seq 1 20))

tree src/base/base.h '/* Since f counts. */'$'\n''int bwi_above(int a,'$'\n''    int b);'$'\n''int bwi_beside(int a, /* Since f counts. */'$'\n''  int b);'
good src/base/text.c '/* Since f counts. */' 'static void g(int a,' '              int b)' '{' "${body[@]}" '}'
good src/base/text.c '/* Since f' ' * counts. */' 'void g(void)' '{' "${body[@]}" '}'
good src/base/text.c 'void g(void)' '{' "${body[@]:0:19}" '}'
mapfile -t long < <(printf '    f(%s);\n' $(seq 1 71))
good src/base/text.c '/* Since f counts. */' 'void g(void)' '{' "${long[@]:0:70}" '}'
bad 'text.c:3: g has 71 lines; at most 70' src/base/text.c '/* Since f counts. */' 'void g(void)' '{' "${long[@]}" '}'
good src/base/text.c 'static const bwi_op rows[] = {' "${body[@]}" '    {1}' '};' 'int g(void);' 'typedef struct a {' "${body[@]}" '} a;'
good src/base/text.c 'int bwi_above(int a, int b)' '{' "${body[@]}" '}' 'int bwi_beside(int a, int b)' '{' "${body[@]}" '}'
good tests/unit/base/test_text.c 'void g(void)' '{' "${body[@]}" '}'

bad 'text.c:2: g has 20 lines' src/base/text.c 'void g(void)' '{' "${body[@]}" '}'
bad 'text.inc:5: g has 21 lines' src/base/text.inc '/* Not above. */' '' 'static inline int *g(int a,' '    int b)' '{' "${body[@]}" '    f();' '}'
bad 'text.c:2: bwi_other has 20 lines' src/base/text.c 'int bwi_other(void)' '{' "${body[@]}" '}'
finish
