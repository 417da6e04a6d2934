#!/usr/bin/env bash
# tools/check-elements must find pointers to elements and copies above kernel that no table lists, and nothing else.
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
. "$top/tests/tools/cases.sh"
tool=$top/tools/check-elements

echo 'src/op/lists.c  names,values,grid,cast  lists of names' >"$work/tools/host-arrays.txt"
tree src/op/lists.c 'float *names; memcpy(values, x, 4); double *grid = (float *)p;'
good src/op/relu.c 'void *x = call->src[0]; kernels->relu_forward(call->floats, x, call->dst);'
good src/op/relu.c 'unsigned char *at = (unsigned char *)x + offset; int64_t *rows; const char *text; float f(float, double);'
good src/op/relu.c '/* float *x is' '   memcpy(x, y) */ f("float *x, memset(x, 0, 4)"); float x[3]; kernels->memory->copy(to, from, bytes);'
good src/kernel/relu.c 'float *x = y; memcpy(x, y, 4);'
good src/format/npy.c 'float *x = y; memset(x, 0, 4);'
good src/base/sums.c 'double *x = y;'
good src/cli/show.c 'float *x = y;'
good src/data/gather.c 'to->kernels->rows(&rows, numbers, n, to); file->data = x; bwi_destination to = {.data = data};'
good src/exec/relu.md 'float *x'

bad 'relu.c:1: x points' src/op/relu.c 'float *x = call->src[0];'
bad 'relu.c:2: dy points' src/op/relu.c '' 'static void f(int64_t n, const float *dy);'
bad 'relu.c:1: sums points' src/op/relu.c 'void g(const double *const sums, int n);'
bad 'relu.c:1: labels points' src/train/relu.c 'const int32_t *labels = call->src[1];'
bad 'relu.c:1: to points' src/rank/relu.c 'float *restrict to = x;'
bad 'relu.c:1: list points' src/exec/relu.c 'const float *list[2];'
bad 'relu.c:1: a cast' src/op/relu.c 'f((float *)(void *)(lane + offset));'
bad 'relu.c:1: a cast' src/op/relu.c 'x = ((const int32_t *)y)[3];'
bad 'graph.h:1: memcpy to dst' src/graph/graph.h 'memcpy(call->dst, call->src[0], 4);'
bad 'relu.c:1: memset to lane' src/plan/relu.c '    memset(tile->lane + offset, 0, bytes);'
bad 'relu.c:1: names points' src/op/relu.c 'float *names;'
bad 'lists.c:1: names points' src/exec/lists.c 'float *names;'
bad 'csv.c:1: x points' src/data/read/csv.c 'double *x = y;'
bad 'initializer.c:1: memset to values' src/layer/initializer.c 'memset(values, 0, 4);'
bad 'weights.c:1: a cast' src/file/weights.c 'x = (float *)p;'
bad 'gather.c:1: the address of a destination' src/data/gather.c 'unsigned char *at = demand->to->data;'
bad 'gather.c:1: the address of a destination' src/data/transform/gather.c 'copy_samples(to.data, from, n);'

echo 'src/op/gone.c  names  was removed' >>"$work/tools/host-arrays.txt"
bad 'host-arrays.txt:2: no names in src/op/gone.c' src/op/relu.c ''
echo 'src/op/gone.c  names' >"$work/tools/host-arrays.txt"
rm "$work/src/op/lists.c"
bad 'host-arrays.txt:1: expected a file, names and a reason' src/op/relu.c ''
finish
