#!/usr/bin/env bash
# bench/what_if.sh [COMMAND [WORKLOAD...]]: predicts the step of 2 workers from a run with 1, and measures it: profile --what-if cores=2
# against profile --workers 2, on bench's workloads, or those that are named (conv28:32). The samples lie in memory. Nothing else should
# run meanwhile.
set -euo pipefail
command=${1:-build/batchwise}
only=" ${*:2} "
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# samples NAME COUNT SHAPE CLASSES: random samples; 0 classes: real targets; 2: zeros and ones.
samples() {
    python3 - "$folder/$1.npz" "$2" "$3" "$4" <<'PYTHON'
import sys, numpy
path, count, shape, classes = sys.argv[1], int(sys.argv[2]), [int(n) for n in sys.argv[3].split("x")], int(sys.argv[4])
random = numpy.random.default_rng(0)
x = random.random([count] + shape, dtype=numpy.float32)
y = random.integers(0, classes, count) if classes > 2 else random.random((count, 1), dtype=numpy.float32)
numpy.savez(path, x=x, y=(y.astype(numpy.int32) if classes > 2 else (y > 0.5).astype(numpy.float32) if classes else y))
PYTHON
}

step() { # step FILE KEYS...: a number of a profile
    python3 -c 'import json, sys; v = json.load(open(sys.argv[1])); [v := v[k] for k in sys.argv[2:]]; print(v)' "$@"
}

# check NAME BATCH MODEL LOSS: the best of three runs each, since anything else that runs only adds time.
check() {
    case "$only" in '  ' | *" $1:$2 "*) ;; *) return ;; esac
    local how=(--model "$3" --data "$folder/$1.npz" --batch "$2" --optimizer adam --loss "$4" --seconds 0.7 --json)
    for _ in 1 2 3; do
        "$command" profile "${how[@]}" --workers 1 --what-if cores=2 >"$folder/one" 2>/dev/null
        "$command" profile "${how[@]}" --workers 2 >"$folder/two" 2>/dev/null
        printf '%s %s %s\n' "$(step "$folder/one" step_us)" "$(step "$folder/one" prediction then step_us)" "$(step "$folder/two" step_us)"
    done | awk -v name="$1" -v batch="$2" '
        NR == 1 || $1 < one { one = $1; said = $2 }
        NR == 1 || $3 < two { two = $3 }
        END { printf "| %-11s | %6d | %10.1f | %11.1f | %11.1f | %+4.0f%% |\n", name, batch, one, said, two, 100 * (said / two - 1) }'
}

samples conv28 1000 28x28x1 10
samples conv64 1000 64x64x3 10
samples conv128half 256 128x128x3 10
samples mlp1024 4096 1024 10
samples mlp2048 4096 1024 10
samples mlp100 100000 100 2
samples range 1000 1 0
conv='conv2d(32,3,relu) maxpool2d(2) flatten dense(10,softmax)'
mlp='dense(1024,relu) dense(1024,relu) dense(10,softmax)'
classes=sparse_categorical_crossentropy
echo '| workload    |  batch | 1 worker   | 2, foretold | 2, measured | error |'
echo '|-------------|-------:|-----------:|------------:|------------:|------:|'
check conv28 32 "$conv" $classes
check conv28 128 "$conv" $classes
check conv64 32 "$conv" $classes
check conv128half 16 'conv2d(16,3,relu) maxpool2d(2) conv2d(32,3,relu) maxpool2d(2) flatten dense(10,softmax)' $classes
check mlp1024 32 "$mlp" $classes
check mlp1024 256 "$mlp" $classes
wide='dense(2048,relu) dense(2048,relu) dense(10,softmax)'
check mlp2048 32 "$wide" $classes
check mlp2048 256 "$wide" $classes
check mlp100 32 'dense(32,relu) dense(1,sigmoid)' binary_crossentropy
check mlp100 10000 'dense(32,relu) dense(1,sigmoid)' binary_crossentropy
check range 32 'dense(64,relu) dense(1)' mean_squared_error
