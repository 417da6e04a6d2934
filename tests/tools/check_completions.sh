#!/usr/bin/env bash
# The completions of bash, zsh and fish: options whose value is a file complete files in each of them, the values that they offer are
# the same and those of the documentation, and no option is named that no command has. fish is asked itself where it is installed,
# zsh checks its syntax. (check_manual.sh asks bash for every option.) Needs BATCHWISE, the path of the command.
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
[ -n "${BATCHWISE:-}" ] || exit 77
completions=("$top/completions/batchwise.bash" "$top/completions/_batchwise" "$top/completions/batchwise.fish")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0
. "${completions[0]}"
compopt() { :; }

complain() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# offers WORD...: what bash completes the last word to
offers() {
    COMP_WORDS=("$BATCHWISE" "$@") COMP_CWORD=$#
    _batchwise
    echo "${COMPREPLY[*]}"
}

commands=$("$BATCHWISE" --help | sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p')
for command in $commands; do "$BATCHWISE" "$command" --help >"$work/$command"; done
cd "$work"
touch zz.npz
for command in $commands; do
    for option in $(sed -nE '/--validation-split/d;s/^  (--[a-z-]+) (D\.\.\.|M|F|DIR|WHERE)( .*|$)/\1/p' "$command"); do
        [ "$(offers "$command" "$option" zz)" = zz.npz ] || complain "bash completes no files after $command $option"
        for file in "${completions[@]:1}"; do
            grep -q -- "$option\b" "$file" || complain "${file##*/} does not know that files follow $option"
        done
    done
done
[ "$(offers train --data a.png zz)" = zz.npz ] || complain "bash completes no second file after --data"

# Every option that a completion names exists.
for file in "${completions[@]}"; do
    for option in $(grep -oE -- '--[a-z][a-z-]+' "$file" | sort -u); do
        case $option in --help | --version) continue ;; esac
        grep -qE -- "^  $option( |\$)" $commands || complain "${file##*/} names $option, which no command has"
    done
done

# The values are those of the documentation's first tables, in all three.
# documented PAGE: the names in the first columns of its tables
documented() { grep '^| `' "$top/docs/reference/$1.md" | cut -d'|' -f2 | grep -oE '`[a-z_0-9]+`' | tr -d '`'; }
for option in optimizer:optimizers:13 loss:losses:21 metrics:metrics:99 model:layers:99; do
    IFS=: read -r option page count <<<"$option"
    names=$(documented "$page" | head -n "$count") # what follows in the first two are arguments and schedules
    for name in $names; do
        for file in "${completions[@]}"; do
            grep -qw -- "$name" "$file" || complain "${file##*/} does not offer --$option $name"
        done
        [[ " $(offers train --$option "$name") " == *" $name "* ]] || complain "bash does not offer --$option $name"
    done
done

# Layers are completed at the end of an expression, metrics by name; all that are offered are in the documentation.
[ "$(offers train --model 'flatten dens')" = 'flatten dense' ] || complain "bash completes 'flatten dens' to '$(offers train --model 'flatten dens')'"
[[ " $(offers train --metrics prec) " == *' precision '* ]] || complain 'bash does not offer --metrics precision'
for option in model:layers metrics:metrics; do
    for name in $(offers train --"${option%:*}" '' | tr ' ' '\n' | grep -vx zz.npz); do
        grep -q "^| .*\`$name\`" "$top/docs/reference/${option#*:}.md" || [ -e "$name" ] || complain "bash offers --${option%:*} $name, which is not documented"
    done
done

if command -v fish >/dev/null; then
    mkdir bin
    ln -s "$BATCHWISE" bin/batchwise
    asked() { PATH=$work/bin:$PATH HOME=$work fish --no-config -c "source '${completions[2]}'; complete -C 'batchwise $1'" | cut -f1; }
    for command in $commands; do
        offered=$(asked "$command --")
        for option in $(sed -n 's/^  \(--[a-z-]*\).*/\1/p' "$command"); do
            grep -qx -- "$option" <<<"$offered" || complain "fish does not offer $command $option"
        done
    done
    grep -qx zz.npz <<<"$(asked 'train --data a.png zz')" || complain "fish completes no second file after --data"
    [ -z "$(asked 'train --lr --')" ] || complain "fish offers options where --lr needs a value"
fi
if command -v zsh >/dev/null; then
    zsh -n "${completions[1]}" || complain "zsh does not take ${completions[1]##*/}"
fi
[ $failures = 0 ]
