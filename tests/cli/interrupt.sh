# Ctrl-C: the step is finished, the history of the finished epochs, the model and the run are written, exit code 130.
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
interrupt --history h.csv --save-model m.keras --run run
expect_code 130 'interrupted'
expect_pattern err 'interrupted after [0-9]+ steps, [0-9]+ of 1000000 epochs; their history is in h\.csv; the model is in m\.keras; the run is in run$' 'interrupted'
epochs=$(sed -nE 's/.* steps, ([0-9]+) of.*/\1/p' err)
expect_equal $((${epochs:-0} + 1)) "$(wc -l <h.csv)" 'interrupted: lines of h.csv'
[ "${epochs:-0}" -ge 2 ] || fail 'interrupted: expected at least two epochs'
expect_equal '' "$(find . -name '*.tmp')" 'temporary files'
expect_text run/run.json '"stopped": "interrupted"' 'run.json'
expect_text run/report.html '"stopped":"interrupted"' 'report.html'
cmp -s m.keras run/model.keras || fail 'interrupted: expected the same model in the run'
hash=$(sed -nE 's/^weights ([0-9a-f]+).*/\1/p' out)
expect_text run/run.json "\"hash\": \"$hash\"" 'run.json'
steps=$(sed -nE 's/.*interrupted after ([0-9]+) steps.*/\1/p' err)
expect_text out "$steps steps in" 'interrupted: steps'
# The model can be used.
code=0
"$BATCHWISE" eval --model m.keras --data "$digits" --scale 1/16 --json >out 2>err || code=$?
expect_code 0 'eval of an interrupted model'

interrupt --json
expect_code 130 'interrupted, --json'
expect_equal interrupted "$(value stopped)" 'stopped'
expect_equal 1 "$(wc -l <out)" 'interrupted, --json: lines'

# A second signal ends the process at once, whatever it does; nothing is damaged: the run goes on from its last whole checkpoint, and what
# was saved under its name is whole. The second one comes at once, or a little later, while files are written.
train --epochs 1 --quiet --save-model before.keras
for pause in 0 0 0.002 0.005 0.01 0.02 0.04; do
    rm -rf twice twice.keras
    cp before.keras twice.keras
    "$BATCHWISE" train --model "$model" --data "$digits" --scale 1/16 --epochs 1000000 --quiet --run twice --checkpoint-every 20 --save-model twice.keras \
        >out 2>err &
    process=$! waited=0
    until [ -n "$(find twice -name manifest.json 2>/dev/null)" ] || [ "$waited" -ge 600 ]; do
        sleep 0.05
        waited=$((waited + 1))
    done
    kill -INT "$process"
    [ "$pause" = 0 ] || sleep "$pause"
    kill -INT "$process" 2>/dev/null || : # the first may have sufficed
    waited=0
    while kill -0 "$process" 2>/dev/null && [ "$waited" -lt 100 ]; do
        sleep 0.05
        waited=$((waited + 1))
    done
    [ "$waited" -lt 100 ] || fail "two signals, $pause s apart: the process goes on"
    kill -KILL "$process" 2>/dev/null || :
    code=0
    wait "$process" || code=$?
    expect_code 130 "two signals, $pause s apart"
    run summary --model twice.keras
    expect_code 0 "two signals, $pause s apart: the model"
    last=$(find twice/checkpoints -name manifest.json | sed -E 's|.*/([0-9]+)/.*|\1|' | sort -n | tail -1)
    train --epochs $((last / 57 + 2)) --quiet --run twice --checkpoint-every 20 --resume # an epoch has 57 steps
    expect_code 0 "two signals, $pause s apart: resuming"
done

# A stream that never ends, while its first epoch is under way: records that come as fast as they are read, or slowly.
for pause in 0 0.05; do
    rm -f pipe
    mkfifo pipe
    records=$(printf '1.5,2.25,3.125,4\n%.0s' $(seq 500))
    (
        trap '' PIPE
        while printf '%s\n' "$records" 2>/dev/null; do
            [ "$pause" = 0 ] || sleep "$pause"
        done
    ) >pipe &
    feeder=$!
    "$BATCHWISE" train --data - --model 'dense(8,relu) dense(1)' --epochs 1 --quiet --batch 64 <pipe >out 2>err &
    process=$!
    sleep 1
    kill -INT "$process"
    waited=0
    while kill -0 "$process" 2>/dev/null && [ "$waited" -lt 200 ]; do
        sleep 0.1
        waited=$((waited + 1))
    done
    [ "$waited" -lt 200 ] || fail "a stream: Ctrl-C was ignored for 20 seconds"
    kill -KILL "$process" 2>/dev/null || :
    code=0
    wait "$process" || code=$?
    kill "$feeder" 2>/dev/null || :
    wait "$feeder" || :
    expect_code 130 'a stream'
    expect_text err 'interrupted' 'a stream'
done
finish
