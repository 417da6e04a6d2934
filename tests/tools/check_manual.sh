#!/usr/bin/env bash
# Every command and option that the help shows must be in the manual page, under its command; the bash completion must offer
# them. Needs BATCHWISE, the path of the command.
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
    for option in $options; do
        grep -q "^\*--.*\*$option\*\|^\*$option\*" <<<"$section" || complain "the manual has no $option for $command"
        completes "$option" "$command" "${option:0:4}"
    done
done
completes conv28 bench --workload conv
[ $failures = 0 ]
