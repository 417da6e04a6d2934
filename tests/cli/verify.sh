# verify: the keys that others read, one line for each comparison, and that a difference would be found.
. "$(dirname "$0")/run.sh"

check() {
    run verify --data "$digits" --scale 1/16 "$@" --json
    expect_code 0 "verify $*"
    expect_text out '"equal_bits": {"workers": true, "ranks": true, "accumulation": true}' "verify $*"
    expect_pattern out '"max_difference": \{"tile": [0-9]' "verify $*"
}

check --model "$model"
check --model 'conv2d(8,3,relu) maxpool2d(2) flatten dropout(0.3) dense(10,softmax)' --batch 100 --tile 8
# An odd batch, a batch of one, more than there is.
check --model "$model" --batch 37
check --model "$model" --batch 1
check --model "$model" --batch full --steps 2
# Whole-batch statistics.
check --model 'conv2d(4,3) batchnorm relu flatten dense(10,softmax)' --optimizer 'sgd(lr=0.01)' --memory 8M

# Another tile rounds differently, and that is measured: the first comparison has something to find.
run verify --model "$model" --data "$digits" --batch 200 --tile 8 --steps 5 --json
difference=$(sed -nE 's/.*"max_difference": \{"tile": ([^}]*)\}.*/\1/p' out)
awk -v d="$difference" 'BEGIN { exit !(d > 0 && d < 1e-3) }' || fail "max_difference of tiles: $difference"

run verify --model "$model" --data "$digits"
expect_code 0 verify
expect_empty err verify
expect_equal 5 "$(wc -l <out)" 'verify: lines'
for name in workers ranks accumulation; do
    expect_pattern out "^$name +equal in all bits" verify
done

expect_usage '--model is required' verify --data "$digits"
expect_usage '--data is required' verify --model "$model"
expect_usage '--data -: expected samples that can be read several times' verify --model "$model" --data -
run verify --model "$model" --data none.npz
expect_code 1 'verify without data'
finish
