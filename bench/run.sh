#!/usr/bin/env bash
# bench/run.sh [COMMAND]: one line for each built-in workload and batch. Nothing else should run meanwhile.
set -euo pipefail
batchwise=${1:-build/batchwise}

field() { sed -nE "s/.*\"$1\": *([0-9.eE+-]+).*/\1/p" <<<"$2"; }

printf '%-14s %8s %14s %12s %12s %10s\n' workload batch samples/s us/step peak-MB GFLOP/s
for row in conv28:1,16,128 conv64:32 conv128:128 conv128half:16; do
    for batch in $(tr , ' ' <<<"${row#*:}"); do
        json=$("$batchwise" bench --workload "${row%:*}" --batch "$batch" --json | tr -d '\n')
        awk -v workload="${row%:*}" -v batch="$batch" -v rate="$(field samples_per_s "$json")" -v step="$(field step_us "$json")" \
            -v peak="$(field peak_bytes "$json")" -v gflops="$(field gflops "$json")" \
            'BEGIN { printf "%-14s %8d %14.0f %12.1f %12.1f %10.1f\n", workload, batch, rate, step, peak / 1e6, gflops }'
    done
done
