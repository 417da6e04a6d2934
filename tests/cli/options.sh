# train's further options: schedules, callbacks, class weights, shapes, the run directory, the best model.
. "$(dirname "$0")/run.sh"

# A schedule is the learning rate of whatever optimizer; the same said in the optimizer's text is the same training.
train --epochs 2 --quiet --json --optimizer 'sgd(lr=exponential_decay(0.1,50,0.5),momentum=0.9)'
hash=$(value hash)
train --epochs 2 --quiet --json --optimizer 'sgd(momentum=0.9)' --schedule 'exponential_decay(0.1,50,0.5)'
expect_code 0 '--schedule'
expect_equal "$hash" "$(value hash)" '--schedule: the hash of the same schedule in the optimizer'
train --epochs 1 --quiet --save-model m.keras
run train --model m.keras --data "$digits" --scale 1/16 --quiet --schedule 'cosine_decay(0.01,100)'
expect_code 2 '--schedule of a compiled model'
expect_text err 'give --optimizer' '--schedule of a compiled model'

# Early stopping and plateaus; the best weights come back.
train --epochs 100 --quiet --json --validation-split 0.2 --lr 0.05 --early-stop 'patience=2,restore_best_weights=true' --save-best best.keras --save-model last.keras --history h.csv
expect_code 0 '--early-stop'
expect_equal 'early stopping' "$(value stopped)" 'stopped'
epochs=$(($(wc -l <h.csv) - 1))
[ "$epochs" -lt 100 ] || fail '--early-stop: expected fewer than 100 epochs'
expect_equal $((45 * epochs)) "$(value steps)" '--early-stop: steps'
"$BATCHWISE" predict --model best.keras --data "$digits" --scale 1/16 >best.csv
"$BATCHWISE" predict --model last.keras --data "$digits" --scale 1/16 >last.csv
cmp -s best.csv last.csv || fail '--save-best: expected the weights that early stopping restored'
train --epochs 100 --quiet --validation-split 0.2 --lr 0.05 --early-stop 'patience=2'
expect_pattern out '^stopped early after [0-9]+ of 100 epochs$' 'stopped early'
train --epochs 8 --quiet --json
hash=$(value hash)
train --epochs 8 --quiet --json --plateau 'monitor=loss,patience=0,min_delta=10'
expect_code 0 '--plateau'
[ "$hash" != "$(value hash)" ] || fail '--plateau: expected another hash'
train --epochs 3 --quiet --json --plateau 'monitor=loss,patience=0,min_delta=10,factor=0.5' --optimizer 'sgd(0.25)'
expect_pattern out '"learning_rate": \[0.25, 0.25, 0.125\]' '--plateau: the learning rates, as Keras logs them'
# Their texts are read by the library; a wrong one is wrong usage all the same.
train --epochs 2 --quiet --early-stop 'patiense=2'
expect_code 2 '--early-stop: an argument that there is not'
expect_text err "batchwise train: early_stopping: column 1: there is no argument 'patiense'; did you mean 'patience'?" '--early-stop: an argument that there is not'
train --epochs 2 --quiet --plateau 'monitor=nonsense'
expect_code 2 '--plateau: nothing to monitor'
expect_text err "batchwise train: reduce_lr_on_plateau: there is no 'nonsense' to monitor" '--plateau: nothing to monitor'
train --epochs 2 --quiet --save-best no/such/folder.keras
expect_code 1 '--save-best to a folder that is not there'

# Class weights: auto says them aloud by name; ones change nothing.
train --epochs 2 --quiet --json
hash=$(value hash)
train --epochs 2 --quiet --json --class-weight 1,1,1,1,1,1,1,1,1,1
expect_code 0 '--class-weight'
expect_equal "$hash" "$(value hash)" '--class-weight of ones'
train --epochs 2 --json --class-weight auto
expect_pattern err '^batchwise: class weights: 0 1\.01, 1 0\.9874, ' '--class-weight auto' # 1797 / (10 * 178), 1797 / (10 * 182)
[ "$hash" != "$(value hash)" ] || fail '--class-weight auto: expected another hash'
printf 'a,kind\n1,x\n2,x\n3,x\n4,y\n' >t.csv
run train --model 'dense(2,softmax)' --data t.csv --epochs 1 --class-weight auto
expect_text err 'class weights: x 0.6667, y 2' '--class-weight auto by name'
printf 'a,kind\n1,x\n2,x\n3,x\n4,y\n5,y\n6,y\n7,y\n8,y\n' >t.csv
run train --model 'dense(2,softmax)' --data t.csv --epochs 1 --class-weight auto --no-shuffle --validation-split 0.5
expect_text err 'class weights: x 0.6667, y 2' '--class-weight auto without the validation part'
printf '1,0.5\n2,1.5\n' >n.csv
run train --model 'dense(1)' --data n.csv --no-header --epochs 1 --quiet --class-weight auto
expect_code 1 '--class-weight auto of numbers'
expect_text err 'expected targets that are class numbers' '--class-weight auto of numbers'

# Columns become images; the target is named.
awk 'BEGIN { srand(1); printf "label"; for (i = 0; i < 16; i++) printf ",p%d", i; print ""; for (n = 0; n < 40; n++) { printf "%s", n % 2 ? "odd" : "even"; for (i = 0; i < 16; i++) printf ",%d", n % 2 ? i : 15 - i; print "" } }' >images.csv
run train --model 'conv2d(4,3,relu) flatten dense(2,softmax)' --data images.csv --target label --shape 4x4x1 --scale 1/16 --epochs 30 --quiet --lr 0.05 --save-model i.keras
expect_code 0 '--shape --target'
expect_pattern out '^accuracy 1\.0000' '--shape --target'
run eval --model i.keras --data images.csv --target label --shape 4x4x1 --scale 1/16 --quiet
expect_pattern out '^  even +20 +0 +1\.000$' 'eval by name'
run train --model 'dense(1)' --data images.csv --target label --shape 4x5 --quiet
expect_code 1 '--shape that does not fit'
printf '1,2,0\n,3,1\n4,5,0\n' >gaps.csv
run train --model 'dense(1)' --data gaps.csv --no-header --epochs 1 --quiet
expect_code 1 'a missing value'
expect_text err 'line 2' 'a missing value'
for how in mean zero skip; do
    run train --model 'dense(1)' --data gaps.csv --no-header --epochs 1 --quiet --json --missing $how
    expect_code 0 "--missing $how"
    expect_equal $([ $how = skip ] && echo 2 || echo 3) "$(value samples)" "--missing $how: samples"
done
run train --model 'dense(1)' --data gaps.csv --no-header --ignore 0 --epochs 1 --quiet --json
expect_code 0 '--ignore'
run train --model 'dense(1,sigmoid)' --data gaps.csv --no-header --ignore 0 --categorical 1 --epochs 1 --quiet --save-model g.keras
expect_code 0 '--categorical'
run summary --model g.keras --json
expect_text out '"parameters": 4' '--categorical: three categories and a bias'

printf 'name,age,y\n1,2,0\n3,4,1\n' >people.csv
for option in ignore categorical target; do
    run train --model 'dense(1)' --data people.csv --$option nme --epochs 1 --quiet
    expect_code 1 "--$option of a column that is not there"
    expect_text err "did you mean 'name'?" "--$option of a column that is not there"
done
printf 'age,y\n2,0\n4,1\n' >others.csv
run train --model 'dense(1)' --data people.csv --ignore name --validation others.csv --epochs 1 --quiet
expect_code 0 '--validation without the column that is ignored'

run train --model 'dense(1)' --data gaps.csv --no-header --missing zero --take 2 --validation gaps.csv --epochs 1 --quiet --json
expect_code 0 '--take'
expect_equal 2 "$(value samples)" '--take: samples'
yes 1,2,0 | run train --model 'dense(1)' --data - --take 200000 --epochs 1 --quiet --json
expect_code 0 '--take of an input without an end'
expect_equal 200000 "$(value samples)" '--take of an input without an end: samples'

# The run directory.
train --epochs 2 --quiet --validation-split 0.2 --seed 7 --run runs/first
expect_code 0 '--run'
expect_text out 'run runs/first' '--run'
expect_equal 'evaluation.json findings.json history.csv history.json ledger.json model.keras report.html run.json steps.json train validation' \
    "$(cd runs/first && rm events.out.tfevents.* && echo *)" 'the files of a run'
for text in '"format": 1' '"seed": 7' '"command": ["train", "--model", ' '"path": "' '"samples": 1797, "shape": [8, 8, 1]' '"fingerprint": "' \
    '"tile": ' '"machine": {"system": "' '"stopped": null, "epochs": 2, "steps": 90' '"last": {"accuracy": ' '"model": "input(8,8,1) flatten'; do
    expect_text runs/first/run.json "$text" 'run.json'
done
for text in '"title": null, "about": null, "seed": 7, "epochs": 2' '"training": {"optimizer": "adam", "learning_rate": 0.001' \
    '"losses": ["sparse_categorical_crossentropy"], "batch": "32", "parameters": 1210' '"layers": [{"name": "flatten", "class": "Flatten", "shape": [64], "parameters": 0}' \
    '"memory": {"plans": [{"batch": 32, ' '"batch": 1797, '; do
    expect_text runs/first/run.json "$text" 'run.json'
done
expect_text runs/first/steps.json '"epoch_end": [45, 90]' 'steps.json'
expect_text runs/first/evaluation.json '{"samples": 360, "classes": ["0", "1", ' 'evaluation.json after --validation-split'
# The matrix is of the samples that validation used: its diagonal is the accuracy.
expect_equal "$(sed -E 's/.*"val_accuracy": ([0-9.]+).*/\1/' runs/first/run.json | cut -c1-8)" "$(sed -E 's/.*"confusion": \[\[(.*)\]\], "precision.*/\1/; s/\], \[/\n/g' runs/first/evaluation.json |
    awk -F', ' '{ right += $NR; for (i = 1; i <= NF; i++) all += $i } END { printf "%.6f", right / all }')" 'evaluation.json: accuracy'
hash=$(sed -nE 's/^weights ([0-9a-f]+).*/\1/p' out)
expect_text runs/first/run.json "\"hash\": \"$hash\"" 'run.json'
train --epochs 2 --quiet --validation-split 0.2 --seed 7 --history h.json --save-model again.keras
sed -E 's/, "noise_scale": \[[^]]*\]//' runs/first/history.json | cmp -s h.json - || fail 'history.json: expected that of --history'
cmp -s again.keras runs/first/model.keras || fail 'model.keras: expected that of --save-model'
train --epochs 5 --quiet --validation "$digits" --early-stop 'patience=0,min_delta=100' --run runs/second
expect_text runs/second/evaluation.json '"confusion": [[' 'evaluation.json with --validation'
expect_text runs/second/run.json '"stopped": "early stopping"' 'run.json'
train --epochs 1 --quiet --run runs/first
expect_code 1 'a run that is there'
expect_text err 'runs/first: expected a new folder, found a run in it' 'a run that is there'
: >file
train --epochs 1 --quiet --run file
expect_code 1 'a file in the place of a run'
expect_text err 'file: cannot make the folder of the run' 'a file in the place of a run'
finish
