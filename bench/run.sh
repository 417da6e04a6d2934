#!/usr/bin/env bash
# bench/run.sh [COMMAND [OPTIONS]]: the speed of training on built-in workloads. Nothing else should run meanwhile.
set -euo pipefail
exec "${1:-build/batchwise}" bench --workload conv28:1,conv28:16,conv28:128,conv64:32,conv128:128,conv128half:16 \
    --warmup 1 --epochs 3 "${@:2}"
