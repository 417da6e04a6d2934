#!/usr/bin/env bash
# python/tools/check.sh VENV LIBRARY [pytest's options]: builds the wheel around the library, installs it into the virtual environment
# VENV, which is made if need be, and runs the tests.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
venv=$1 library=$(realpath "$2")
shift 2

test -x "$venv/bin/python" || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check -r "$root/python/tests/requirements.txt"
"$venv/bin/pip" install --quiet --disable-pip-version-check --no-build-isolation --no-deps --force-reinstall \
    --config-settings=cmake.define.BW_LIBRARY="$library" "$root/python"
# The library for ranks of MPI lies beside the one that was built, and is not part of a wheel.
export BATCHWISE_TEST_MPI=${library%/*}/libbatchwise_mpi_openmpi.so
cd "$root/python"
"$(cd "$root" && realpath "$venv")/bin/python" -m pytest -q -p no:cacheprovider "$@"
