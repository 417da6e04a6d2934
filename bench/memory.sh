#!/usr/bin/env bash
# bench/memory.sh [COMMAND]: memory that does not grow with the batch, and what a budget costs. Samples are computed as they are
# needed, so the peak has no data in it. CPU seconds are given beside the time: they tell more where other programs run.
set -euo pipefail
command=${1:-build/batchwise}
conv128='conv2d(32,3,relu) maxpool2d(2) conv2d(64,3,relu) maxpool2d(2) flatten dense(10,softmax)'
residual='conv2d(16,3,padding=same,use_bias=false) batchnorm a=relu
conv2d(16,3,padding=same,use_bias=false) batchnorm relu conv2d(16,3,padding=same,use_bias=false) batchnorm add(a) relu
b=conv2d(32,1,strides=2,padding=same)
conv2d(32,3,padding=same,use_bias=false) batchnorm relu conv2d(32,3,padding=same,use_bias=false) batchnorm add(b) relu
c=conv2d(64,1,strides=2,padding=same)
conv2d(64,3,padding=same,use_bias=false) batchnorm relu conv2d(64,3,padding=same,use_bias=false) batchnorm add(c) d=relu
conv2d(64,3,padding=same,use_bias=false) batchnorm relu conv2d(64,3,padding=same,use_bias=false) batchnorm add(d) relu
global_avgpool2d dense(10,softmax)'
out=$(mktemp)
trap 'rm -f "$out"' EXIT

value() {
    sed -nE 's/.*"'"$1"'": ("([^"]*)"|([^],}]*)).*/\2\3/p' "$out"
}

# line TEXT SAMPLES OPTION...
line() {
    local text=$1 samples=$2 seconds
    shift 2
    local TIMEFORMAT='%U %S'
    seconds=$( { time "$command" train --quiet --json "$@" >"$out"; } 2>&1 )
    awk -v text="$text" -v n="$samples" -v s="$(value seconds)" -v cpu="$seconds" -v peak="$(value peak_bytes)" \
        -v plan="$(value planned_bytes)" -v kept="$(value kept_bytes)" -v spilled="$(value spilled_bytes)" -v tile="$(value tile)" \
        -v hash="$(value hash)" 'BEGIN {
            split(cpu, c, " "); m = 1048576
            printf "%-24s %8.1f samples/s %8.1f a CPU second  peak %8.2f MiB  planned %8.2f", text, n / s, n / (c[1] + c[2]), peak / m, plan / m
            printf "  kept %7.1f  spilled %7.1f  tile %d  weights %s\n", kept / m, spilled / m, tile, hash }'
}

for batch in 16 128 1024 8192; do
    count=$((batch < 1024 ? 1024 : batch))
    line "conv128, batch $batch" "$count" --model "$conv128" --data "synth:images?n=$count&shape=128x128x3&classes=10" --batch "$batch" \
        --epochs 1
done
for memory in 16G 256M; do
    line "residual, $memory" $((3 * 4096)) --model "$residual" --data 'synth:images?n=4096&shape=32x32x3&classes=10' --batch 4096 \
        --epochs 3 --memory "$memory"
done
