#!/usr/bin/env bash
# tools/check-headers must find what a module's header declares for the module alone, and nothing else.
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
. "$top/tests/tools/cases.sh"
tool=$top/tools/check-headers
: >"$work/tools/headers.txt"

tree src/base/base.h 'bw_status bwi_text_read(bw_context *ctx,' src/graph/graph.c 'bwi_text_read(ctx); bwi_lists[0] = bwi_text_size();' \
    src/base/text.c 'bw_status bwi_text_read(bw_context *ctx) { return bwi_inside(); }' src/base/internal.h 'int bwi_inside(void);'
good src/plan/plan.h 'typedef struct bwi_plan { int (*bwi_f)(void); } bwi_plan;' '#define BWI_X(a) bwi_x(a)' '/* bwi_y(1) */'
good src/data/data.h 'size_t bwi_text_size(void);' 'extern const int bwi_lists[];'
good src/data/data.h 'static inline size_t bwi_text_size(void)' '{' '    return bwi_other(1);' '}'

bad 'data.h:1: only data uses bwi_rows_open: declare it in src/data/internal.h' src/data/data.h 'bw_status bwi_rows_open(void);'
bad 'data.h:2: only data uses bwi_table' src/data/data.h '' 'extern const int bwi_table[];'
bad 'data.h:1: only data uses bwi_name' src/data/data.h 'extern const char *bwi_name;'
bad 'data.h:1: only data uses bwi_row' src/data/data.h 'static inline size_t bwi_row(void)' '{' '}'

good src/data/internal.h 'typedef struct bwi_one {' '} bwi_one;' 'typedef struct bwi_two {' '} bwi_two;'
bad 'data.h:4: bwi_one is a type of src/data/data.h, too' src/data/data.h 'typedef struct bwi_one {' '} bwi_one;' \
    'typedef struct bwi_other {' '} bwi_one;'

echo 'bwi_rows_open  tests' >"$work/tools/headers.txt"
good src/data/data.h 'bw_status bwi_rows_open(void);'
bad 'headers.txt: no header of a module declares bwi_rows_open' src/data/data.h ''
echo 'bwi_text_read  tests' >"$work/tools/headers.txt"
bad 'headers.txt: bwi_text_read is used by another module than base' src/data/data.h ''
finish
