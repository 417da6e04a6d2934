#!/usr/bin/env bash
# Every command and option that the help shows must be in the manual page, under its command, and in the page of that command; the bash
# completion must offer them. Needs BATCHWISE, the path of the command.
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
[ -n "${BATCHWISE:-}" ] || exit 77
manual=$top/man/batchwise.1.scd
failures=0
. "$top/completions/batchwise.bash"
compopt() { :; }

complain() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# completes EXPECTED WORD...: the completion of the last word offers EXPECTED
completes() {
    COMP_WORDS=("$BATCHWISE" "${@:2}") COMP_CWORD=$(($# - 1))
    _batchwise
    [[ " ${COMPREPLY[*]} " == *" $1 "* ]] || complain "completion of '${*:2}' offers '${COMPREPLY[*]}', not '$1'"
}

commands=$("$BATCHWISE" --help | sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p')
[ -n "$commands" ] || complain "no commands in --help"
for command in $commands; do
    grep -q "^\*$command\*\$" "$manual" || complain "the manual has no command $command"
    completes "$command" "${command:0:1}"
    options=$("$BATCHWISE" "$command" --help | sed -n 's/^  \(--[a-z-]*\).*/\1/p')
    [ -n "$options" ] || complain "no options in $command --help"
    section=$(sed -n "/^# OPTIONS OF ${command^^}\$/,/^# /p; /^# \(OPTIONS FOR DATA\|COMMON OPTIONS\)/,/^# /p" "$manual")
    page=$(awk -v command="$command" -f "$top/man/split.awk" "$manual") || complain "the manual has no page for $command"
    [[ $page == "batchwise-$command(1)"* ]] || complain "the page of $command has no title"
    if command -v scdoc >/dev/null; then
        scdoc <<<"$page" >/dev/null || complain "scdoc does not take the page of $command"
    fi
    for option in $options; do
        grep -q "^\*--.*\*$option\*\|^\*$option\*" <<<"$page" || complain "the page of $command has no $option"
        grep -q "^\*--.*\*$option\*\|^\*$option\*" <<<"$section" || complain "the manual has no $option for $command"
        completes "$option" "$command" "${option:0:4}"
    done
done
completes conv28 bench --workload conv
[ $failures = 0 ]
