#!/usr/bin/env bash
# make test-keras: files to and from the real Keras on its three backends, ONNX Runtime and safetensors.
#
#   tests/peers/run.sh BUILD PYTHON [CASES]     BUILD has the tests built; PYTHON has what requirements.txt lists
set -euo pipefail
cd "$(dirname "$0")/../.."
build=$1 python=$2 cases=${3:-40}
backends='jax tensorflow torch'
# shellcheck source=tests/support/folder.sh
. "tests/support/folder.sh"
failures=0
export TF_CPP_MIN_LOG_LEVEL=3 TF_ENABLE_ONEDNN_OPTS=0

# step TITLE COMMAND...: goes on after a failure, so that one run tells all of them
step() {
    printf '\n== %s\n' "$1"
    shift
    "$@" || { failures=$((failures + 1)); echo "FAILED: $*"; }
}

# The test's own output is shown only if it fails.
quietly() {
    "$@" >"$work/log" 2>&1 || { cat "$work/log"; return 1; }
}

mkdir "$work/models" "$work/written" "$work/made"
step 'every layer, written' env BW_MODELS_OUT="$work/models" "$build/tests/unit/file/onnx"
step 'ONNX: checker and runtime' "$python" tests/peers/check_onnx.py "$work/models"
for backend in $backends; do
    step "every layer in Keras on $backend, and back" env KERAS_BACKEND="$backend" "$python" tests/peers/check_layers.py "$work/models" --batchwise "$build/batchwise"
done
step 'files of this version of Keras, read and trained on' quietly env MAKE_KERAS_IN="$work/made" "$python" tests/data/keras/make_keras.py make
step 'what they predict, and how they train' env BW_KERAS_IN="$work/made" BW_KERAS_OUT="$work/written" "$build/tests/unit/file/keras"
for backend in $backends; do
    step "the same written here, trained on by Keras on $backend" env KERAS_BACKEND="$backend" MAKE_KERAS_IN="$work/made" "$python" tests/data/keras/make_keras.py check "$work/written"
done
for backend in $backends; do
    step "the Python package beside Keras on $backend" quietly env KERAS_BACKEND="$backend" BATCHWISE_LIBRARY="$build/libbatchwise.so" \
        PYTHONPATH=python/src "$python" -m pytest -q -p no:cacheprovider -p no:warnings python/peers
done
mkdir "$work/board"
step 'event files in TensorBoard' "$python" tests/peers/check_tensorboard.py "$build/batchwise" data/digits.npz "$work/board"
mkdir "$work/trace"
step 'a trace in Perfetto' "$python" tests/peers/check_trace.py "$build/batchwise" "$work/trace"
step 'architectures of keras.applications' "$python" tests/peers/check_applications.py --batchwise "$build/batchwise" --quick
step 'random training, there and back' "$python" tests/peers/random_cases.py --batchwise "$build/batchwise" --count "$cases"
printf '\n%s\n' "$([ $failures = 0 ] && echo 'All agree.' || echo "$failures steps failed.")"
[ $failures = 0 ]
