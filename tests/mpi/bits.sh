# Ranks over MPI give the bits of one rank, with any workers each; only the first prints and writes; a checkpoint goes on with another number
# of ranks.
. "$(dirname "$0")/run.sh"

rich='flatten batchnorm dense(24,relu) dropout(0.2) dense(10,softmax)'
options="--scale 1/16 --batch 50 --epochs 3 --validation-split 0.2 --class-weight auto --accumulate 2 --optimizer adam(global_clipnorm=0.5)"

# shellcheck disable=SC2086
run train --model "$rich" --data "$digits" $options --history one.csv --save-model one.keras --json
expect_code 0 'one rank'
hash=$(value hash)
for how in "2 1" "3 1" "4 2" "8 1"; do
    set -- $how
    # shellcheck disable=SC2086
    ranks "$1" train --model "$rich" --data "$digits" $options --workers "$2" --history "h$1.csv" --save-model "m$1.keras" --json
    expect_code 0 "$1 ranks"
    expect_equal 1 "$(wc -l <out)" "$1 ranks: lines of output"
    expect_equal "$hash" "$(value hash)" "$1 ranks of $2 workers"
    cmp -s one.csv "h$1.csv" || fail "$1 ranks: expected the history of one"
    cmp -s one.keras "m$1.keras" || fail "$1 ranks: expected the model of one"
    expect_equal 3 "$(grep -c '^Epoch' err)" "$1 ranks: epochs that are shown"
done

# Many small trainings in one job: their weights, histories and evaluations are those of one process. Batches have fewer tiles than eight
# ranks, and remainders.
parts='optimizer/ftrl optimizer/lamb optimizer/adafactor optimizer/muon optimizer/lion norm= schedule/adamw layer/constraints layer/random
    layer/lstm layer/gru layer/multi_head winograd batchnorm mask/ clip/ table/adam(0.01) lazy/sgd(0.05) ranges/adamw(0.01) batch/ loop/'
# shellcheck disable=SC2086
"$BITS" --ranks --workers 1 $parts >one.lines || fail 'small trainings on one rank'
[ "$(wc -l <one.lines)" -ge 60 ] || fail "small trainings: expected 60 or more, found $(wc -l <one.lines)"
for count in 2 3 8; do
    # shellcheck disable=SC2086
    programs "$BITS" "$count" --ranks --workers 1 $parts
    expect_code 0 "small trainings on $count ranks"
    cmp -s one.lines out || fail "small trainings on $count ranks: $(diff one.lines out | head -n 6)"
done

# Text: each rank finds the same vocabulary in all of the training part, and reads its own lines.
awk 'BEGIN { srand(3); split("great lovely superb dull awful weak", word, " "); print "review,label"
    for (i = 0; i < 203; i++) { k = 1 + int(6 * rand()); printf "\"The %s plot, %s!\",%d\n", word[k], word[1 + int(6 * rand())], k < 4 } }' >text.csv
words='text_vectorization(50,length=5) embedding(50,8) lstm(6) dense(1,sigmoid)'
run train --model "$words" --data text.csv --text review --target label --batch 50 --epochs 2 --json
expect_code 0 'text on one rank'
hash=$(value hash)
ranks 3 train --model "$words" --data text.csv --text review --target label --batch 50 --epochs 2 --workers 1 --json
expect_equal "$hash" "$(value hash)" 'text on three ranks'

# Gradients that are too large for lanes of their own, at the defaults.
large='flatten dense(300,relu) dense(300,relu) dense(10,softmax)'
run train --model "$large" --data "$digits" --scale 1/16 --batch 200 --epochs 1 --json
expect_code 0 'large dense layers on one rank'
hash=$(value hash)
for count in 2 8; do
    ranks "$count" train --model "$large" --data "$digits" --scale 1/16 --batch 200 --epochs 1 --workers 1 --json
    expect_equal "$hash" "$(value hash)" "large dense layers on $count ranks"
    [ "$(value peak_bytes)" -le "$(value planned_bytes)" ] || fail "$count ranks: $(value peak_bytes) bytes, planned $(value planned_bytes)"
done

# Little memory is planned for a small model, so what MPI needs for its own messages would show.
for count in 2 4 5; do
    ranks "$count" train --model "$model" --data "$digits" --scale 1/16 --batch 50 --epochs 2 --validation-split 0.2 --workers 1 --json
    expect_code 0 "a small model on $count ranks"
    [ "$(value peak_bytes)" -le "$(value planned_bytes)" ] ||
        fail "a small model on $count ranks: $(value peak_bytes) bytes, planned $(value planned_bytes)"
done

# A budget of a little less than all of the optimizer's slots on each rank: they are divided, and neither tile nor bits change.
one() { ranks 3 "$@" --model "$large" --data "$digits" --scale 1/16 --batch 200 --epochs 1 --workers 1; }
one plan --json
expect_code 0 'a plan of three ranks'
budget=$(($(value peak_bytes) - 4096))
one plan --memory "$budget"
grep -q "dividing the optimizer's slots over 3 ranks" out || fail "expected the plan to divide the optimizer's slots, found: $(head -2 out)"
run train --model "$large" --data "$digits" --scale 1/16 --batch 200 --epochs 1 --lanes 8 --json
hash=$(value hash)
one train --json
expect_equal "$hash" "$(value hash)" 'slots that are whole'
one train --memory "$(($(value planned_bytes) - 4096))" --json
expect_code 0 'slots that are divided'
grep -q 'slots are divided over 3 ranks' err || fail "expected divided slots, found: $(cat err)"
expect_equal "$hash" "$(value hash)" 'slots that are divided'

# Convolutions whose gradients are: one rank needs to be told.
deep='conv2d(64,3,relu) conv2d(96,3,relu) flatten batchnorm dense(10,softmax)'
run train --model "$deep" --data "$digits" --scale 1/16 --batch 200 --epochs 1 --lanes 8 --json
hash=$(value hash)
for count in 2 4; do
    ranks "$count" train --model "$deep" --data "$digits" --scale 1/16 --batch 200 --epochs 1 --workers 1 --json
    expect_equal "$hash" "$(value hash)" "large convolutions on $count ranks"
done

# Rows of embeddings; more ranks than samples in the last batch.
awk 'BEGIN { srand(7); for (i = 0; i < 203; i++) { for (k = 0; k < 6; k++) printf "%d,", rand() * 50; print i % 2 } }' >tokens.csv
run train --model 'embedding(50,8) flatten dense(1,sigmoid)' --data tokens.csv --batch 50 --epochs 2 --json
expect_code 0 'embedding on one rank'
hash=$(value hash)
ranks 4 train --model 'embedding(50,8) flatten dense(1,sigmoid)' --data tokens.csv --batch 50 --epochs 2 --workers 1 --json
expect_code 0 'embedding on four ranks'
expect_equal "$hash" "$(value hash)" 'embedding on four ranks'

# Begun by four, stopped, gone on with by two, and then by one.
train --epochs 6 --run whole --quiet
expect_code 0 'a run of one rank'
ranks 4 train --model "$model" --data "$digits" --scale 1/16 --epochs 2 --run elastic --checkpoint-every epoch --workers 1 --quiet
expect_code 0 'begun by four ranks'
ranks 2 train --model "$model" --data "$digits" --scale 1/16 --epochs 4 --run elastic --resume --workers 1 --quiet
expect_code 0 'gone on with by two'
train --epochs 6 --run elastic --resume --quiet
expect_code 0 'gone on with by one'
cmp -s whole/model.keras elastic/model.keras || fail 'elastic: expected the model of a run that was never stopped'

# Several workloads of bench, one after the other.
run bench --workload linear2,logistic10:64 --json
hashes=$(grep -o '"hash": "[^"]*"' out)
ranks 2 bench --workload linear2,logistic10:64 --workers 1 --json
expect_code 0 'bench'
expect_equal "$hashes" "$(grep -o '"hash": "[^"]*"' out)" 'bench: hashes of two workloads'

# TensorBoard and run directory come from the first rank alone: as many files as of one rank, with one line for each epoch.
train --epochs 2 --tile 4 --run alone --tensorboard board1 --quiet
ranks 3 train --model "$model" --data "$digits" --scale 1/16 --epochs 2 --tile 4 --workers 1 --run together --tensorboard board3 --quiet
expect_code 0 'TensorBoard on three ranks'
expect_equal "$(find board1 -type f | wc -l)" "$(find board3 -type f | wc -l)" 'TensorBoard: files'
expect_equal "$(ls alone)" "$(ls together)" 'run directory: files'
cmp -s alone/history.csv together/history.csv || fail 'run directory: expected the history of one rank'
noise_of() { sed -nE 's/.*"noise": (\{"steps": [1-9].*), "result".*/\1/p' "$1/run.json"; }
[ -n "$(noise_of alone)" ] || fail 'run.json: expected a noise scale'
expect_equal "$(noise_of alone)" "$(noise_of together)" 'noise scale of three ranks'

# The other commands run once.
ranks 2 eval --model one.keras --data "$digits" --json
expect_code 0 'eval'
expect_equal 1 "$(wc -l <out)" 'eval: lines of output'
expect_equal '' "$(find . -name '*.tmp')" 'temporary files'

# What all ranks are refused for, one tells.
ranks 2 train --model "$rich" --data nothing.csv
[ "$code" != 0 ] || fail 'missing data: expected a failure'
expect_equal 1 "$(grep -c '^batchwise' err)" 'missing data: messages'

# Ranks tune together, one tells, and a training that they begin with --batch auto ends with the bits that its choice has on one rank.
ranks 2 tune --model "$model" --data "$digits" --scale 1/16 --budget 1s --workers 1 --json --report tuned.html
expect_code 0 'tune'
expect_equal 1 "$(wc -l <out)" 'tune: lines of output'
expect_pattern out '"curve": \[\{"batch": 1, "samples_per_s": [0-9.]+' 'tune'
[ -s tuned.html ] || fail 'tune: expected a report'
ranks 2 train --model "$model" --data "$digits" --scale 1/16 --batch auto --budget 1s --epochs 2 --workers 1 --run auto --quiet
expect_code 0 '--batch auto'
chosen() {
    python3 -c 'import json; run = json.load(open("auto/run.json")); t = run["tuning"]; print({"hash": run["result"]["hash"],
        "batch": t["recommended_batch"] or t["reference_batch"], "optimizer": t["recommended_optimizer"] or "adam"}["'"$1"'"])'
}
train --batch "$(chosen batch)" --optimizer "$(chosen optimizer)" --epochs 2 --json
expect_text out "$(chosen hash)" '--batch auto: the bits that its choice has on one rank'
ranks 2 tune --model "$model" --data nothing.csv
[ "$code" != 0 ] || fail 'tune: missing data: expected a failure'
expect_equal 1 "$(grep -c '^batchwise' err)" 'tune: missing data: messages'

# A launcher, and no library for it: nobody trains.
BATCHWISE_MPI=/nowhere/libbatchwise_mpi.so ranks 2 train --model "$rich" --data "$digits" --save-model lost.keras
[ "$code" != 0 ] || fail 'no library: expected a failure'
expect_text err 'BATCHWISE_MPI: expected openmpi, mpich, none or the path' 'no library'
[ ! -e lost.keras ] || fail 'no library: expected no model'
finish
