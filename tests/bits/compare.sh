#!/usr/bin/env bash
# Writes the hashes of a bits program for each set of kernels that runs here, and compares them with recorded ones:
#
#     compare.sh PROGRAM OUT [RECORDED]
#
# Lines of OUT are `<set> <case> <hash>`; sets are avx512, avx2 and portable (which may be called plain). The best one runs as it is
# chosen without BATCHWISE_ISA. Hashes depend on oneDNN and on the CPU, so both files must come from the same machine. Exit status
# 1: a case failed, or lines differ.
set -euo pipefail

if [ $# -lt 2 ] || [ $# -gt 3 ]; then
    sed -n '2,9s/^# \{0,1\}//p' "$0" >&2
    exit 2
fi
program=$1 out=$2 recorded=${3:-} failed=0
if [ -n "$recorded" ] && { [ ! -s "$recorded" ] || [ "$recorded" -ef "$out" ]; }; then
    echo "compare.sh: $recorded: expected a file with recorded lines, other than $out" >&2
    exit 2
fi

runs() {
    BATCHWISE_ISA=$1 "$program" layer/dense/frozen >/dev/null 2>&1
}

# add_set LABEL [NAME]: appends the lines of the set, by the name that the library knows it by; without a name, of the best one.
add_set() {
    if [ $# -gt 1 ]; then
        BATCHWISE_ISA=$2 "$program"
    else
        env -u BATCHWISE_ISA "$program"
    fi | sed "s/^/$1 /" >>"$out" || failed=1
}

portable=portable
runs portable || portable=plain
: >"$out"
best=
for set in avx512 avx2 portable; do
    name=$set
    [ $set != portable ] || name=$portable
    if ! runs $name; then
        echo "compare.sh: $set does not run here" >&2
    elif [ -z "$best" ]; then
        best=$set
        add_set $set
    else
        add_set $set $name
    fi
done
[ -n "$best" ] || failed=1

if [ -n "$recorded" ]; then
    sed 's/^plain /portable /' "$recorded" | awk -v recorded="$recorded" '
        { key = $1 " " $2; value = substr($0, length(key) + 2) }
        FNR == NR { was[key] = value; next }
        !(key in was) { print key ": is new"; differences++; next }
        was[key] != value { print key ": was " was[key] ", is " value; differences++ }
        { delete was[key] }
        END {
            for (key in was) { print key ": is missing"; differences++ }
            printf "%d cases, %d differences from %s\n", FNR, differences, recorded
            exit differences > 0
        }' - "$out" || failed=1
fi
exit $failed
