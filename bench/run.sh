#!/usr/bin/env bash
# bench/run.sh [COMMAND [OPTIONS]]: this machine's limits, single kernels beside them (bench/ops.c), how long the command takes
# from its start to the end of the first step, and the speed of training on the built-in workloads as a share of the limit.
# Then how fast data is read (bench/data.c). Nothing else should run meanwhile.
#
# The limit of a workload is what multiply-adds (all cores' peak) or memory (Adam reads and writes 28 bytes a parameter and
# step) allow at best. Convolutions by Winograd's algorithm need fewer products than are counted, and what fits into caches is
# not bound by memory: both can lead beyond 100 percent.
set -euo pipefail
command=${1:-build/batchwise}
ops=$(dirname "$command")/bench/ops
workloads=conv28:1,conv28:16,conv28:128,conv64:32,conv128:128,conv128half:16,linear2:16,logistic10:32,range:32
workloads+=,mlp100:32,mlp100:10000,mlp1024:32,mlp1024:256

"$ops"

best=
for _ in 1 2 3 4 5; do
    begin=${EPOCHREALTIME/[.,]/}
    "$command" bench --workload conv28:full --warmup 0 >/dev/null
    took=$((${EPOCHREALTIME/[.,]/} - begin))
    if [ -z "$best" ] || [ "$took" -lt "$best" ]; then best=$took; fi
done
printf '\nconv28, from the start of the process to the end of a step of 1,000 samples: %d ms\n\n' $((best / 1000))

read -r _ peak _ bandwidth < <("$ops" limits)
"$command" bench --workload "$workloads" --warmup 1 --epochs 3 "${@:2}" --json | sed 's/},[[:space:]]*{/}\n{/g' |
    awk -v peak="$peak" -v bandwidth="$bandwidth" '
        function field(name,    text) {
            if (!match($0, "\"" name "\": *\"?[^,\"}]*")) return ""
            text = substr($0, RSTART, RLENGTH)
            sub(/^[^:]*: *"?/, "", text)
            return text
        }
        BEGIN { printf "%-12s %7s %12s %11s %9s %9s\n", "workload", "batch", "samples/s", "step us", "GFLOP/s", "of limit" }
        field("workload") != "" {
            compute = field("sample_flops") / (peak * 1e9)
            memory = 28 * field("parameters") / field("batch") / (bandwidth * 1e9)
            most = 1 / (compute > memory ? compute : memory)
            printf "%-12s %7d %12.0f %11.1f %9.2f %8.0f%%\n", field("workload"), field("batch"), field("samples_per_s"),
                   field("step_us"), field("gflops"), 100 * field("samples_per_s") / most
        }'

printf '\n'
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
"$(dirname "$command")/bench/data" "$folder"
