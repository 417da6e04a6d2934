# Training on the digits: summary, JSON, progress, batches, where the model and its options come from.
. "$(dirname "$0")/run.sh"

samples=1797 # in digits.npz

# The summary on standard output, the progress on standard error.
train --epochs 2
expect_code 0 train
expect_pattern out 'accuracy [01]\.[0-9]{4}.*, loss [0-9]+\.[0-9]{4}$' train
expect_text out '114 steps in' train # 2 * ceil(1797 / 32)
expect_pattern out ' [0-9]+ samples/s$' train
expect_pattern out '^peak memory .*, planned .*; a system that holds a whole batch of 32 needs .*$' train
expect_pattern out '^weights [0-9a-f]{16} \(the same on any number of workers\)$' train
expect_text err 'Epoch 1/2' train
expect_text err 'Epoch 2/2' train
hash=$(sed -nE 's/^weights ([0-9a-f]+).*/\1/p' out)

# --json: one object, nothing else on standard output.
train --epochs 2 --json
expect_code 0 'train --json'
expect_equal 1 "$(wc -l <out)" 'train --json: lines'
expect_pattern out '^\{"history": \{("[a-z_]+": \[[-+.e0-9]+, [-+.e0-9]+\](, )?)+\}, .*\}$' 'train --json'
expect_pattern out '"accuracy": \[' 'train --json'
expect_pattern out '"loss": \[' 'train --json'
expect_text err 'Epoch 2/2' 'train --json'
expect_equal 114 "$(value steps)" 'steps'
expect_equal $((2 * samples)) "$(value samples)" 'samples'
expect_equal null "$(value stopped)" 'stopped'
expect_equal "$hash" "$(value hash)" 'the hash of the same training'
for key in samples_per_s peak_bytes planned_bytes whole_batch_bytes tile lanes workers; do
    expect_pattern out "\"$key\": [0-9]" 'train --json'
done

# It learns: after 10 epochs (the default) most digits are right, of those held back too.
train --json --quiet --validation-split 0.2 --lr 0.01
expect_code 0 'train --validation-split'
expect_equal $((10 * 45)) "$(value steps)" 'steps with 1437 samples'
expect_pattern out '"val_accuracy": \[[^]]* (0\.[89][0-9]*|1\.0)\]' 'train --validation-split'
expect_pattern out '"val_loss": \[' 'train --validation-split'

# --quiet: nothing on standard error; the summary stays.
train --epochs 1 --quiet
expect_code 0 'train --quiet'
expect_empty err 'train --quiet'
expect_text out 'weights ' 'train --quiet'
train --epochs 1 --quiet --json
expect_empty err 'train --quiet --json'

# --batch full, and a batch larger than the data, are one step an epoch, and the same.
train --epochs 3 --quiet --json --batch full
expect_code 0 '--batch full'
expect_equal 3 "$(value steps)" '--batch full: steps'
hash=$(value hash)
train --epochs 3 --quiet --json --batch=1000000
expect_equal 3 "$(value steps)" '--batch 1000000: steps'
expect_equal "$hash" "$(value hash)" '--batch 1000000: the hash of full'

# Sizes by turns: 12 times 32 and 112, and 69 of a rest: 32 and 37; dropped, the rest is 32 alone; by epochs: 57, and 15 twice.
train --epochs 1 --quiet --json --batch 32,112
expect_code 0 '--batch 32,112'
expect_equal 26 "$(value steps)" '--batch 32,112: steps'
train --epochs 1 --quiet --json --batch 32,112 --drop-remainder
expect_equal 25 "$(value steps)" '--batch 32,112 --drop-remainder: steps'
train --epochs 3 --json --batch 32@0,128@1
expect_equal 87 "$(value steps)" '--batch 32@0,128@1: steps'
expect_pattern err '^57/57 ' '--batch 32@0,128@1: the first epoch'
expect_pattern err '^15/15 ' '--batch 32@0,128@1: the next ones'
train --epochs 1 --quiet --batch 10000 --drop-remainder
expect_code 1 '--drop-remainder without a batch'
expect_text err 'all would be dropped' '--drop-remainder without a batch'

# Batches behind one update: 57 batches, ten at a time.
train --epochs 1 --quiet --json --accumulate 10
expect_code 0 '--accumulate'
expect_equal 6 "$(value steps)" '--accumulate 10: steps'

# The model from a text file, over several lines.
train --epochs 1 --quiet --json
hash=$(value hash)
printf 'flatten\ndense(16,relu)\n  dense(10,softmax)\n\n' >model.txt
run train --model model.txt --data "$digits" --scale 1/16 --epochs 1 --quiet --json
expect_code 0 '--model model.txt'
expect_equal "$hash" "$(value hash)" '--model model.txt: the hash of the expression'
run train --model "input(8,8,1) $model" --data "$digits" --scale 0.0625 --epochs 1 --quiet --json
expect_code 0 'input(8,8,1)'
expect_equal "$hash" "$(value hash)" 'input(8,8,1), --scale 0.0625: the same hash'

# The order and the weights follow from the seed.
train --epochs 1 --quiet --json --seed 0
expect_equal "$hash" "$(value hash)" '--seed 0 is the default'
train --epochs 1 --quiet --json --seed 1
[ "$hash" != "$(value hash)" ] || fail '--seed 1: expected another hash'
train --epochs 1 --quiet --json --no-shuffle
[ "$hash" != "$(value hash)" ] || fail '--no-shuffle: expected another hash'

# --lr: of Adam, or in place of the optimizer's own.
train --epochs 1 --quiet --json --optimizer adam --loss sparse_categorical_crossentropy --metrics accuracy
expect_equal "$hash" "$(value hash)" 'the defaults, said aloud'
train --epochs 1 --quiet --json --lr 0.01
hash=$(value hash)
for optimizer in adam 'adam()' 'adam(lr=0.5)' 'adam(0.5)' ' adam( learning_rate = 0.5 ) '; do
    train --epochs 1 --quiet --json --lr 0.01 --optimizer "$optimizer"
    expect_code 0 "--optimizer '$optimizer' --lr 0.01"
    expect_equal "$hash" "$(value hash)" "--optimizer '$optimizer' --lr 0.01: the hash of --lr 0.01"
done
train --epochs 1 --quiet --json --optimizer 'sgd(lr=0.05,momentum=0.9)'
hash=$(value hash)
train --epochs 1 --quiet --json --optimizer 'sgd(momentum=0.9)' --lr 0.05
expect_equal "$hash" "$(value hash)" "sgd's momentum beside --lr"

# Validation from a file; the remaining options are taken.
train --epochs 1 --quiet --json --validation "$digits" --memory 512M --tile 8 --lanes 4
expect_code 0 '--validation --memory --tile --lanes'
expect_pattern out '"val_loss": \[' '--validation'
expect_equal 8 "$(value tile)" '--tile 8'
expect_equal 4 "$(value lanes)" '--lanes 4'
# A cache in a file: the second run reads it; one of other samples is refused and stays.
run train --model 'flatten dense(10,softmax)' --data "$digits" --epochs 1 --cache samples.cache --quiet --json
expect_code 0 'train with a cache in a file'
cp out first.json && cp samples.cache kept
run train --model 'flatten dense(10,softmax)' --data "$digits" --epochs 1 --cache samples.cache --quiet --json
expect_code 0 'train from a cache in a file'
[ "$(grep -o '"history":.*}' first.json | cut -d} -f1)" = "$(grep -o '"history":.*}' out | cut -d} -f1)" ] || fail 'a cache changes the history'
run train --model 'flatten dense(10,softmax)' --data "$digits" --scale 0.5 --epochs 1 --cache samples.cache
expect_code 1 'train with a cache of other samples'
expect_text err 'samples.cache: a cache of other samples' 'train with a cache of other samples'
cmp -s samples.cache kept || fail 'a refused cache was changed'

# Samples that are cached, augmented and made ahead train alike on any number of workers and threads.
made='synth:images?n=60&shape=8x8x1&classes=10'
run train --model 'flatten dense(10,softmax)' --data "$made" --augment flip,shift=1,noise=0.1 --cache memory --prefetch 16 \
    --parallel 2 --bad-records 1% --validation-split 0.2 --epochs 2 --workers 1 --quiet --json
expect_code 0 '--augment'
hash=$(value hash)
run train --model 'flatten dense(10,softmax)' --data "$made" --augment flip,shift=1,noise=0.1 --parallel 3 \
    --validation-split 0.2 --epochs 2 --workers 2 --quiet --json
expect_code 0 '--augment on two workers'
expect_equal "$hash" "$(value hash)" '--augment: the hash on two workers'
run train --model 'flatten dense(10,softmax)' --data "$made" --augment mirror --epochs 1 --quiet
expect_code 1 '--augment mirror'
expect_text err "augment: 'mirror': expected flip" '--augment mirror'
printf 'a,y\n1,0\n2,1\n5\n3,1\n' >bad.csv
run train --model 'dense(2,softmax)' --data bad.csv --epochs 1 --quiet
expect_code 1 'a bad record'
run train --model 'dense(2,softmax)' --data bad.csv --epochs 1 --quiet --json --bad-records 25%
expect_code 0 '--bad-records 25%'
expect_equal 3 "$(value samples)" '--bad-records 25%: samples'

# Single steps: as lines, and in JSON.
train --epochs 2 --batch 100 --quiet --log-steps 6
expect_code 0 '--log-steps'
expect_equal 6 "$(grep -cE '^step [0-9]+, epoch [12]/2: accuracy [0-9.]+, loss [0-9.]+$' err)" '--log-steps: lines (36 updates, every sixth)'
expect_text err 'step 36, epoch 2/2:' '--log-steps: the last'
train --epochs 2 --batch 100 --quiet --log-steps 18 --validation-split 0.5 --json
expect_pattern out '"log": \[\{"step": 18, "epoch": 1, "accuracy": [0-9.]+, "loss": [0-9.]+\}\]' '--log-steps --json'
expect_usage '--log-steps: expected' train --model "$model" --data "$digits" --log-steps 0
finish
