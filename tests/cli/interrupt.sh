# Ctrl-C: training stops, the history of the finished epochs is written, exit code 130.
. "$(dirname "$0")/run.sh"

# Starts a training that would take hours and interrupts it in its third epoch or later; the options are further ones.
interrupt() {
    : >out
    : >err
    "$BATCHWISE" train --model "$model" --data "$digits" --scale 1/16 --epochs 1000000 "$@" >out 2>err &
    local process=$! waited=0
    until grep -q 'Epoch 3/1000000' err || ! kill -0 "$process" 2>/dev/null || [ "$waited" -ge 600 ]; do
        sleep 0.1
        waited=$((waited + 1))
    done
    kill -INT "$process" || fail 'interrupt: expected a training that goes on'
    code=0
    wait "$process" || code=$?
}

: >h.csv
interrupt --history h.csv
expect_code 130 'interrupted'
expect_pattern err 'interrupted after [0-9]+ of 1000000 epochs; their history is in h\.csv' 'interrupted'
epochs=$(sed -nE 's/.*interrupted after ([0-9]+) of.*/\1/p' err)
expect_equal $((${epochs:-0} + 1)) "$(wc -l <h.csv)" 'interrupted: lines of h.csv'
[ "${epochs:-0}" -ge 2 ] || fail 'interrupted: expected at least two epochs'
expect_equal '' "$(find . -name '*.tmp')" 'temporary files'

interrupt --json
expect_code 130 'interrupted, --json'
expect_equal interrupted "$(value stopped)" 'stopped'
expect_equal 1 "$(wc -l <out)" 'interrupted, --json: lines'
finish
