# What the tests of the command share; sourced by each of them, no test itself.
#
# $BATCHWISE is the command, $BW_DATA the folder with digits.npz. A test runs in a folder of its own. It goes on after
# a failure, so that one run tells all of them, and its exit code says whether there was one.
set -eu

: "${BATCHWISE:?is not set: the path of the command}"
: "${BW_DATA:?is not set: the folder with digits.npz}"
digits=$BW_DATA/digits.npz
model='flatten dense(16,relu) dense(10,softmax)'
failures=0
code=0

# shellcheck source=tests/support/folder.sh
. "$(dirname "$0")/../support/folder.sh"
cd "$work"

# Runs the command: its exit code in $code, its output in the files out and err.
run() {
    code=0
    "$BATCHWISE" "$@" >out 2>err || code=$?
}

# Trains on the digits, with these options on top.
train() {
    run train --model "$model" --data "$digits" --scale 1/16 "$@"
}

fail() {
    failures=$((failures + 1))
    printf 'FAILED: %s\n  exit code %s\n' "$1" "$code"
    sed 's/^/  out: /' out | head -n 20
    sed 's/^/  err: /' err | head -n 20
}

# expect_code CODE WHAT
expect_code() {
    [ "$code" = "$1" ] || fail "$2: expected exit code $1"
}

# expect_text FILE TEXT WHAT: a line of the file contains the text
expect_text() {
    grep -qF -e "$2" "$1" || fail "$3: expected '$2' in $1"
}

# expect_pattern FILE PATTERN WHAT: a line of the file matches the extended regular expression
expect_pattern() {
    grep -qE -e "$2" "$1" || fail "$3: expected a line of $1 that matches '$2'"
}

# expect_empty FILE WHAT
expect_empty() {
    [ ! -s "$1" ] || fail "$2: expected nothing in $1"
}

# expect_usage TEXT ARGUMENT...: wrong usage, said in one line that contains the text, and nothing else
expect_usage() {
    local text=$1
    shift
    run "$@"
    expect_code 2 "batchwise $*"
    expect_text err "$text" "batchwise $*"
    [ "$(wc -l <err)" = 1 ] || fail "batchwise $*: expected one line in err"
    expect_empty out "batchwise $*"
}

# A number or string of the JSON object in out: value KEY
value() {
    sed -nE 's/.*"'"$1"'": ("([^"]*)"|([^],}]*)).*/\2\3/p' out
}

# expect_equal WANTED FOUND WHAT
expect_equal() {
    [ "$1" = "$2" ] || fail "$3: expected '$1', found '$2'"
}

finish() {
    [ "$failures" = 0 ] || exit 1
}
