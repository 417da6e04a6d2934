#!/usr/bin/env bash
# python/tools/check.sh VENV LIBRARY [pytest's options]: makes the wheel around the library and runs the tests with it, as its users
# have it: in the virtual environment VENV, which is made if need be; in VENV-older, with an older scikit-learn, NumPy and pandas; and in
# one with nothing but NumPy.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
venv=$1 library=$(realpath "$2")
shift 2

# environment FOLDER REQUIREMENTS: a virtual environment that has these, made if need be.
environment() {
    test -x "$1/bin/python" || python3 -m venv "$1"
    "$1/bin/pip" install --quiet --disable-pip-version-check -r "$2"
}

wheels=$(mktemp -d)
trap 'rm -rf "$wheels"' EXIT
BW_LIBRARY=$library "$root/python/tools/wheel.sh" "$venv" "$wheels" >/dev/null
environment "$venv" "$root/python/tests/requirements.txt"
environment "$venv-older" "$root/python/tests/requirements-older.txt"
test -x "$venv-bare/bin/python" || python3 -m venv "$venv-bare"
"$venv-bare/bin/pip" install --quiet --disable-pip-version-check numpy
for one in "$venv" "$venv-older" "$venv-bare"; do
    "$one/bin/pip" install --quiet --disable-pip-version-check --no-deps --no-index --force-reinstall "$wheels"/*.whl
done

venv=$(realpath "$venv")
# The library for ranks of MPI lies beside the one that was built, and is not part of a wheel.
export BATCHWISE_TEST_MPI=${library%/*}/libbatchwise_mpi_openmpi.so
cd "$root/python"
"$venv-bare/bin/python" tests/bare.py
"$venv-older/bin/python" -m pytest -q -p no:cacheprovider -p no:warnings tests/test_sklearn.py
"$venv/bin/python" -m pytest -q -p no:cacheprovider "$@"
