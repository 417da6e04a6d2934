# fish completion for batchwise. Commands and options come from its own help, so they are never out of date.
function __batchwise_commands
    batchwise --help 2>/dev/null | sed -nE '/^commands:/,/^$/s/^  ([a-z]+) +(.*)/\1\t\2/p'
end

function __batchwise_options
    set -l words (commandline -opc)
    batchwise $words[2] --help 2>/dev/null | sed -nE 's/^  (--[a-z-]+).*  +([^ ].*)/\1\t\2/p'
end

function __batchwise_workloads
    batchwise bench --help 2>/dev/null | sed -nE '/^workloads/,/^$/s/^  ([a-z0-9]+) +(.*)/\1\t\2/p'
end

function __batchwise_after
    set -l words (commandline -opc)
    contains -- $words[-1] $argv
end

set -l valued --data --validation --model --save-model --save-best --history --out --run --workload --batch --optimizer --missing
complete -c batchwise -f
complete -c batchwise -n __fish_use_subcommand -a '(__batchwise_commands)'
complete -c batchwise -n __fish_use_subcommand -a "--help --version"
complete -c batchwise -n "not __fish_use_subcommand; and not __batchwise_after $valued" -a '(__batchwise_options)'
complete -c batchwise -n '__batchwise_after --data --validation --model --save-model --save-best --history --out --run' -F
complete -c batchwise -n '__fish_seen_subcommand_from convert report' -F
complete -c batchwise -n '__batchwise_after --workload' -a '(__batchwise_workloads)'
complete -c batchwise -n '__batchwise_after --batch' -a 'full 1 16 32 64 128'
complete -c batchwise -n '__batchwise_after --optimizer' -a 'adam sgd'
complete -c batchwise -n '__batchwise_after --missing' -a 'error mean zero skip'
