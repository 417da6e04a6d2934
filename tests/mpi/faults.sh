# Ranks that are killed, stopped, damaged or told to end: the job ends within seconds, says who and why, and how to go on.
. "$(dirname "$0")/run.sh"

begin_training() {
    begin 4 train --model "$model" --data "$digits" --scale 1/16 --epochs 1000000 --workers 1 --run "$1" --checkpoint-every epoch \
        --watchdog 6s
}

# Killed: its number and the way to go on.
begin_training killed
kill -KILL "$(process_of 2)"
wait_ranks 60 'a killed rank'
[ "$code" != 0 ] || fail 'a killed rank: expected a failure'
expect_pattern err 'rank 2 of 4 \(process [0-9]+ on .*\) is gone' 'a killed rank'
expect_pattern err "to go on from the checkpoint of step [0-9]+: mpirun -n 4 batchwise train --model '.*' .*--resume" 'a killed rank'
step=$(sed -nE 's/.*the checkpoint of step ([0-9]+):.*/\1/p' err)
ranks 2 train --model "$model" --data "$digits" --scale 1/16 --epochs $((step / 57 + 2)) --workers 1 --run killed --resume --quiet
expect_code 0 'gone on with'
train --epochs $((step / 57 + 2)) --run whole --quiet
cmp -s whole/model.keras killed/model.keras || fail 'a killed rank: expected the model of a run that was never stopped'

# Stopped: found by the watchdog.
begin_training stopped
kill -STOP "$(process_of 3)"
wait_ranks 90 'a stopped rank'
[ "$code" != 0 ] || fail 'a stopped rank: expected a failure'
expect_pattern err 'rank 3 of 4 \(process [0-9]+ on .*\) has given no sign of life for 6 seconds' 'a stopped rank'
expect_text err 'to go on from the checkpoint of step' 'a stopped rank'

# Told to end: one rank, or the launcher; all end with a checkpoint. Open MPI's launcher passes no messages on while it waits for its ranks,
# so the message may be lost, but the run's record is not.
for whom in rank launcher; do
    rm -rf ended
    begin_training ended
    [ $whom = rank ] && kill -TERM "$(process_of 1)" || kill -TERM "$process"
    wait_ranks 60 "SIGTERM to the $whom"
    [ "$code" != 0 ] || fail "SIGTERM to the $whom: expected a failure"
    [ $whom = launcher ] || expect_pattern err 'interrupted after [0-9]+ steps' "SIGTERM to the $whom"
    [ -f ended/run.json ] || fail "SIGTERM to the $whom: expected run.json"
    steps=$(sed -nE 's/.*"steps": ([0-9]+), "samples".*/\1/p' ended/run.json)
    [ -f "ended/checkpoints/$steps/manifest.json" ] || fail "SIGTERM to the $whom: expected a checkpoint of step $steps"
    expect_text ended/run.json '"stopped": "interrupted"' "SIGTERM to the $whom"
done

# One rank's weights are damaged, one rank stops, one rank's data is bad, one cannot begin; each sample counts once an epoch.
for what in damage stop data begin count; do
    programs "$PROGRAM" 4 "$what"
    case $what in
    damage) expect_pattern out 'rank 0: DATA_LOSS after .* updates the weights of rank 2 of 4 differ from those of the others' "$what" ;;
    stop) expect_equal 4 "$(grep -c 'OK 5 updates' out)" 'stop: ranks that made five updates' ;;
    data) expect_equal 4 "$(grep -c 'sample 77 is bad' out)" 'data: ranks that name the sample' ;;
    begin) expect_equal 4 "$(grep -c 'epochs: expected at least 1, got 0' out)" 'begin: ranks with the reason' ;;
    count) # over the ranks, each of the 203 samples was made once in each of the two epochs
        awk '$1 == "counts" { lines[$2]++; for (i = 4; i <= NF; i++) sum[$2, i] += $i }
            END { for (e = 0; e < 2; e++) for (i = 4; i < 207; i++) once += sum[e, i] == 1; print lines[0], lines[1], once }' out >counted
        expect_equal '4 4 406' "$(cat counted)" 'count: lines of each epoch, samples that were made once' ;;
    esac
done
finish
