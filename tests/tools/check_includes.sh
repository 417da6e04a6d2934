#!/usr/bin/env bash
# tools/check-includes must pass what is right and name what is wrong.
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
. "$top/tests/tools/cases.sh"
tool=$top/tools/check-includes

tree src/base/base.h '#include <batchwise.h>' src/graph/graph.h '#include "base/base.h"' \
    src/kernel/kernel.h '#include "base/base.h"' src/kernel/inner.h '' src/cli/cli.h ''
good src/base/text.c '#include "base/base.h"' '#include <string.h>' '#include <sys/mman.h>'
good src/op/relu.c '#include "graph/graph.h"' '  #  include "kernel/kernel.h"' '#include "base/base.h"'
good src/train/fit.c '#include "graph/graph.h"'
good src/kernel/onednn/api.h '#include <oneapi/dnnl/dnnl.h>' '#include "kernel/inner.h"'
good src/format/zip.c '#include <zip.h>'
good src/cli/main.c '#include <batchwise.h>' '#include <stdio.h>' '#include "cli/cli.h"'

bad 'base may not use graph' src/base/text.c '#include "graph/graph.h"'
bad 'kernel may not use graph' src/kernel/dense.inc '#include "graph/graph.h"'
bad 'only kernel/kernel.h is for others' src/op/relu.c '#include "kernel/inner.h"'
bad 'write includes from src on' src/kernel/dense.c '#include "inner.h"'
bad 'write includes from src on' src/kernel/dense.c '#include "../base/base.h"'
bad 'no module nothing' src/op/relu.c '#include "nothing/nothing.h"'
bad 'write <batchwise.h>' src/op/relu.c '#include "batchwise.h"'
bad 'only src/kernel/onednn/api.h may include oneapi/dnnl/dnnl.h' src/kernel/dense.c '#include <oneapi/dnnl/dnnl.h>'
bad 'only src/format/zip.c may include zip.h' src/format/npz.c '#include <zip.h>'
bad 'curl/curl.h is no header of C' src/format/web.c '#include <curl/curl.h>'
bad 'cli may not use base' src/cli/main.c '#include "base/base.h"'
bad 'train may not use cli' src/train/fit.c '#include "cli/cli.h"'
bad 'only src/format/zip.c may include zip.h' src/cli/main.c '#include <zip.h>'

echo 'base: insight' >>"$work/tools/modules.txt"
bad 'in a circle' src/base/text.c ''
finish
