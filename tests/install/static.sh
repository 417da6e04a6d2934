#!/usr/bin/env bash
# static.sh COMMAND: the command that `make static` has built needs no other file, trains, and says what it cannot do.
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
command=$(realpath "$1")
# shellcheck source=tests/support/folder.sh
. "$top/tests/support/folder.sh"

if readelf -lW "$command" | grep -E 'INTERP|Requesting'; then
    echo "$command is not linked statically"
    exit 1
fi

# In a folder that holds nothing but it and the digits; in a root of its own where that is allowed.
mkdir -p "$work/root/tmp"
cp "$command" "$top/data/digits.npz" "$work/root"
train=(train --data digits.npz --scale 1/16 --epochs 3 --validation-split 0.2 --model 'conv2d(16,3,relu) maxpool2d(2) flatten dense(10,softmax)'
    --save-model model.keras --quiet)
if [ "$(id -u)" = 0 ] && chroot "$work/root" /batchwise --version >"$work/log" 2>&1; then
    run() { env -i "$@" "$(command -v chroot)" "$work/root" /batchwise "${arguments[@]}"; }
else
    run() { (cd "$work/root" && env -i "$@" ./batchwise "${arguments[@]}"); }
fi
arguments=("${train[@]}")
run >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
arguments=(eval --model model.keras --data digits.npz)
run >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
grep -E 'accuracy' "$work/log" | head -n 1

# Under a launcher of ranks it refuses, unless it is told to train alone.
arguments=("${train[@]}")
if run OMPI_COMM_WORLD_SIZE=2 >"$work/log" 2>&1; then
    echo 'expected a refusal under mpirun'
    exit 1
fi
grep -qE 'linked statically|not installed' "$work/log" || { cat "$work/log"; exit 1; }
run OMPI_COMM_WORLD_SIZE=2 BATCHWISE_MPI=none >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
echo "$(du -h "$command" | cut -f1) without any library"
