# Checkpoints: a run that is killed goes on as if it had never stopped, signals end it with everything saved, and what is not that run
# is refused by name. $CHECKPOINT_KILLS: how often it is killed (10).
. "$(dirname "$0")/run.sh"

# The runs that are killed: what each is, its options, and its model. Later tests use the first.
kinds=4
choose() {
    every=5
    case $1 in
    0)
        net='flatten batchnorm dense(24,relu) dropout(0.2) dense(10,softmax)'
        options='--scale 1/16 --validation-split 0.2 --epochs 60 --early-stop patience=30,restore_best_weights=true --plateau factor=0.5,patience=1' ;;
    1) # random image layers, accumulation, averaged weights, a schedule
        net='random_flip random_rotation(0.1) random_contrast(0.2) gaussian_noise(0.05) conv2d(8,3,relu) batchnorm flatten dense(10,softmax)'
        options='--shape 8x8x1 --scale 1/16 --validation-split 0.2 --epochs 6 --accumulate 3 --batch 24 --optimizer adamw(lr=0.003,use_ema=true) --schedule cosine_decay(0.003,300)' ;;
    2) # augmented samples, made ahead by several threads, and batches that change with the epoch
        net='conv2d(8,3,relu) group_normalization(4) flatten dropout(0.3) dense(10,softmax)'
        options='--shape 8x8x1 --scale 1/16 --validation-split 0.25 --epochs 8 --batch 32@0,64@3,17@5 --augment shift=0.1,rotate=15 --optimizer sgd(lr=0.05,momentum=0.9,nesterov=true) --parallel 2 --prefetch 96' ;;
    3) # batches of alternating sizes, accumulated, clipped and with weights of classes
        net='flatten dense(40,relu,kernel_regularizer=l2(0.001)) gaussian_dropout(0.2) dense(10,softmax)'
        options='--standardise --validation-split 0.1 --epochs 10 --batch 16,48 --accumulate 2 --optimizer lamb(lr=0.01,clipnorm=1.0) --class-weight auto' ;;
    esac
}

# resumable ARGUMENT...: the run that is killed and resumed below
resumable() {
    # shellcheck disable=SC2086
    run train --model "$net" --data "$digits" $options --quiet "$@"
}

# same_files WHOLE MODEL WHAT HISTORY
same_files() {
    cmp -s "$1/model.keras" "$2" || fail "$3: expected the model of the run that was never stopped"
    cmp -s "$1/history.json" "$4" || fail "$3: expected its history"
}

# newest FOLDER: the step of its last checkpoint, in $step.
newest() {
    local entry
    step=0
    for entry in "$1"/checkpoints/*; do
        entry=${entry##*/}
        case $entry in '' | *[!0-9]*) continue ;; esac
        [ "$entry" -le "$step" ] || step=$entry
    done
}

# Killed at random moments, some of them within a save, again and again in one run; then it comes to its end. A moment is a random
# step's checkpoint and up to 16 ms, so that the machine's speed does not matter.
kills=${CHECKPOINT_KILLS:-10}
done=0
series=0
while [ "$done" -lt "$kills" ]; do
    kind=$((series % kinds))
    choose "$kind"
    if [ "$series" -lt "$kinds" ]; then
        resumable --run "whole$kind"
        expect_code 0 "$kind: a run without checkpoints"
        resumable --run "timed$kind" --checkpoint-every "$every" --json
        expect_code 0 "$kind: a run with checkpoints"
        same_files "whole$kind" "timed$kind/model.keras" "$kind: with checkpoints" "timed$kind/history.json"
        newest "timed$kind"
        last[kind]=$step
    fi
    rm -rf killed
    series=$((series + 1))
    once=0
    while [ "$once" -lt 5 ] && [ "$done" -lt "$kills" ]; do
        newest killed
        target=$((step + RANDOM % ((last[kind] - step) * 2 / 3 + 1)))
        # shellcheck disable=SC2086
        "$BATCHWISE" train --model "$net" --data "$digits" $options --quiet --run killed --resume \
            --checkpoint-every "$every" --workers $((done % 3 + 1)) >out 2>err &
        process=$!
        until [ -s killed/run.lock ] && newest killed && [ "$step" -ge "$target" ] || ! kill -0 "$process" 2>/dev/null; do
            sleep 0.002
        done
        sleep "$(printf '0.%06d' $((RANDOM / 2)))"
        kill -KILL "$process" 2>/dev/null || :
        code=0
        wait "$process" 2>/dev/null || code=$?
        [ "$code" = 137 ] || [ "$code" = 0 ] || fail "kill $done after step $step: expected a killed run"
        once=$((once + 1))
        done=$((done + 1))
    done
    resumable --run killed --resume --checkpoint-every "$every"
    expect_code 0 "series $series"
    same_files "whole$kind" killed/model.keras "series $series, kind $kind" killed/history.json
done
echo "$done kills in $series runs: all ended with the same model and history"
choose 0

# A signal: everything is saved, the code names the signal, and the run goes on from the very step.
for signal in TERM INT; do
    rm -rf ended
    : >err
    "$BATCHWISE" train --model "$net" --data "$digits" --scale 1/16 --epochs 1000000 --run ended --checkpoint-every 1h >out 2>err &
    process=$!
    waited=0
    until grep -q 'Epoch 3/1000000' err || [ "$waited" -ge 300 ]; do
        sleep 0.1
        waited=$((waited + 1))
    done
    kill -"$signal" "$process"
    code=0
    wait "$process" || code=$?
    expect_code "$([ "$signal" = TERM ] && echo 143 || echo 130)" "SIG$signal"
    steps=$(sed -nE 's/.*interrupted after ([0-9]+) steps.*/\1/p' err)
    [ -f "ended/checkpoints/$steps/manifest.json" ] || fail "SIG$signal: expected a checkpoint of step $steps"
    expect_text ended/run.json '"stopped": "interrupted"' "SIG$signal"
done
run train --model "$net" --data "$digits" --scale 1/16 --epochs $((steps / 57 + 2)) --run ended --resume --json
expect_code 0 'after a signal'
expect_equal "$steps" "$(value resumed_from)" 'after a signal: the step'

# A signal while the program that reads the messages has stopped reading, as a pager does: they are lost, the last checkpoint is not.
rm -rf ended
mkfifo messages
tail -f /dev/null <messages & # opens the pipe and reads nothing
reader=$!
"$BATCHWISE" train --model "$net" --data "$digits" --scale 1/16 --epochs 1000000 --run ended --checkpoint-every 1h --log-steps 1 \
    >out 2>messages &
process=$!
waited=0
until grep -qs pipe_write "/proc/$process/wchan" || [ "$waited" -ge 300 ]; do
    sleep 0.1
    waited=$((waited + 1))
done
kill -TERM "$process"
waited=0
while kill -0 "$process" 2>/dev/null && [ "$waited" -lt 200 ]; do
    sleep 0.1
    waited=$((waited + 1))
done
[ "$waited" -lt 200 ] || fail 'a signal without a reader: the training still waits for it'
kill -KILL "$process" "$reader" 2>/dev/null || :
code=0
wait "$process" || code=$?
expect_code 143 'a signal without a reader'
steps=$(sed -nE 's/.*"steps": ([0-9]+), "samples".*/\1/p' ended/run.json)
[ -f "ended/checkpoints/${steps:-none}/manifest.json" ] || fail "a signal without a reader: expected a checkpoint of step $steps"

# Not that run.
resumable --run timed0 --checkpoint-every 5
expect_code 1 'a folder with a run in it'
for change in '--seed 7|seed' '--batch 16|batch' '--optimizer sgd|optimizer' '--no-shuffle|order of samples' '--class-weight auto|class_weight'; do
    # shellcheck disable=SC2086
    resumable --run timed0 --resume ${change%|*}
    expect_code 1 "resumed with ${change%|*}"
    expect_pattern err "timed0/checkpoints/[0-9]+: it cannot be resumed with another .*${change#*|}" "resumed with ${change%|*}"
done
run train --model "$model" --data "$digits" --scale 1/16 --run timed0 --resume --quiet
expect_code 1 'another model'
run train --model "$net" --data - --run stream --checkpoint-every 5 <"$BW_DATA/digits.npz"
[ "$code" != 0 ] || fail 'a stream: expected a refusal'

# A limit of size is a full disk: training goes on, and says so even if it is quiet.
rm -rf limited
(
    ulimit -f 8
    exec "$BATCHWISE" train --model "$net" --data "$digits" --scale 1/16 --epochs 3 --quiet --run limited --checkpoint-every 20 --json
) >out 2>err || code=$?
expect_text err 'CHECKPOINT FAILED: cannot write' 'a limit of size'
expect_text err 'training goes on' 'a limit of size'

# NaN.
printf 'a,b,y\n' >nan.csv
for i in $(seq 64); do
    [ "$i" = 40 ] && printf 'inf,1,0\n' >>nan.csv || printf '%s,1,%s\n' "$((i % 5))" "$((i % 2))" >>nan.csv
done
run train --model 'dense(2,softmax)' --data nan.csv --batch 8 --epochs 2 --no-shuffle --on-nan skip --json
if [ "$code" = 0 ]; then
    expect_equal 2 "$(value skipped_steps)" '--on-nan skip'
    expect_text err 'is left out' '--on-nan skip'
else
    expect_text err 'inf' 'a table with infinity'
fi

# Wrong usage.
expect_usage '--checkpoint-every: checkpoints are in the folder of a run' train --model "$model" --data "$digits" --checkpoint-every 5
expect_usage '--resume: checkpoints are in the folder of a run' train --model "$model" --data "$digits" --resume
expect_usage '--keep: there are no checkpoints' train --model "$model" --data "$digits" --keep 3
expect_usage "--on-nan: expected stop or skip, found 'go'" train --model "$model" --data "$digits" --on-nan go
expect_usage "checkpoint_every: expected a number of updates (100), epoch, or a time (30s, 5m, 1h), found 'often'" \
    train --model "$model" --data "$digits" --run new --checkpoint-every often
finish
