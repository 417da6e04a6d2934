# shellcheck shell=bash disable=SC2154,SC2015
# Shared by the tests of tools/check-*: a small source tree, to which each case adds one file.
# shellcheck source=tests/support/folder.sh
. "$top/tests/support/folder.sh"
mkdir "$work/tools" "$work/src"
cp "$top"/tools/*.txt "$work/tools"
cases=0 failures=0

# tree FILE TEXT FILE TEXT ...: files that stay.
tree() {
    while [ $# -gt 0 ]; do
        mkdir -p "$work/$(dirname "$1")"
        printf '%s\n' "$2" >"$work/$1"
        shift 2
    done
}

run_case() { # FILE LINE...: $output and $code of $tool with FILE there
    local file=$work/$1
    shift
    mkdir -p "$(dirname "$file")"
    printf '%s\n' "$@" >"$file"
    code=0
    output=$("$tool" "$work" 2>&1) || code=$?
    rm "$file"
    cases=$((cases + 1))
}

complain() {
    printf 'FAILED: %s\n  exit code %d, output: %s\n' "$1" "$code" "$output"
    failures=$((failures + 1))
}

# good FILE LINE...: the tool says nothing.
good() {
    run_case "$@"
    [ $code = 0 ] && [ -z "$output" ] || complain "nothing is wrong with: $*"
}

# bad MESSAGE FILE LINE...: the tool fails, with one line that holds MESSAGE (a grep pattern).
bad() {
    local message=$1
    shift
    run_case "$@"
    [ $code != 0 ] && [ "$(grep -c . <<<"$output")" = 1 ] && grep -q -- "$message" <<<"$output" || complain "'$message' for: $*"
}

finish() {
    echo "$cases cases, $failures failed"
    [ $failures = 0 ]
}
