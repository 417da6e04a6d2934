# bash completion for batchwise. Commands and options come from its own help, so they are never out of date.
_batchwise()
{
    local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]}
    local program=${COMP_WORDS[0]} command=${COMP_WORDS[1]} words=
    COMPREPLY=()

    if [ "$COMP_CWORD" -eq 1 ]; then
        words="$("$program" --help 2>/dev/null | sed -n '/^commands:/,/^$/s/^  \([a-z]*\) .*/\1/p') --help --version"
        mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
        return
    fi
    case $previous in
    --data | --validation | --model | --save-model | --save-best | --history | --out | --run)
        compopt -o filenames
        mapfile -t COMPREPLY < <(compgen -f -- "$current")
        return
        ;;
    --workload) words=$("$program" bench --help 2>/dev/null | sed -n '/^workloads/,/^$/s/^  \([a-z0-9]*\) .*/\1/p') ;;
    --batch) words="full 1 16 32 64 128" ;;
    --optimizer) words="adam sgd" ;;
    --class-weight) words="auto" ;;
    --missing) words="error mean zero skip" ;;
    --checkpoint-every) words="epoch 30s 1000" ;;
    --on-nan) words="stop skip" ;;
    *)
        case $current in
        -*) words="$("$program" "$command" --help 2>/dev/null | sed -n 's/^  \(--[a-z-]*\).*/\1/p')" ;;
        *)
            if [ "$command" = convert ] || [ "$command" = report ]; then
                compopt -o filenames
                mapfile -t COMPREPLY < <(compgen -f -- "$current")
                return
            fi
            ;;
        esac
        ;;
    esac
    mapfile -t COMPREPLY < <(compgen -W "$words" -- "$current")
}
complete -F _batchwise batchwise
