# bench: the keys that others read, the table, lists of workloads, and how operations are counted.
. "$(dirname "$0")/run.sh"

run bench --workload linear2 --batch 16 --epochs 2 --warmup 1 --json
expect_code 0 'bench linear2'
expect_empty err 'bench linear2'
expect_equal 1 "$(wc -l <out)" 'bench --json: lines'
expect_pattern out '^\{"workload": "linear2", .*\}$' 'bench --json'
for key in samples_per_s step_us peak_bytes planned_bytes gflops tile lanes workers; do
    expect_pattern out "\"$key\": [0-9]" 'bench --json'
done
expect_equal 1000 "$(value samples)" 'samples of two measured epochs'
expect_equal 64 "$(value steps)" 'steps: 2 * ceil(500 / 16)'
hash=$(value hash)

# Warm-up is training as well: three epochs are three epochs.
run bench --workload linear2:16 --epochs 1 --warmup 2 --json
expect_equal 500 "$(value samples)" 'samples of one measured epoch'
expect_equal "$hash" "$(value hash)" 'the hash after three epochs'
run bench --workload linear2:16 --epochs 3 --warmup 0 --json
expect_equal 1500 "$(value samples)" 'samples without warm-up'
expect_equal "$hash" "$(value hash)" 'the hash after three epochs without warm-up'

# Operations for one sample: twice the multiply-adds of forward, weights' gradient and, but for the first layer, the
# input's gradient.
flops() {
    run bench --workload "$1:128" --warmup 0 --json
    expect_code 0 "bench $1"
    expect_equal "$2.0" "$(value sample_flops)" "sample_flops of $1"
}
flops linear2 $((2 * 2 * 2))
flops logistic10 $((2 * 2 * 10))
flops range $((2 * (2 * 64 + 3 * 64)))
flops conv28 $((2 * (2 * 26 * 26 * 9 * 32 + 3 * 13 * 13 * 32 * 10)))

# Several workloads: a list of results; a table without --json. --batch counts where no batch is given.
run bench --workload linear2,range:64 --batch full --warmup 0 --json
expect_code 0 'bench with a list'
expect_pattern out '^\{"results": \[\{"workload": "linear2", "batch": 500, .*\}, \{"workload": "range", "batch": 64, .*\}\]\}$' \
    'bench with a list'
run bench --workload linear2,range:64 --warmup 0
expect_code 0 'bench, a table'
expect_equal 3 "$(wc -l <out)" 'bench, a table: lines'
expect_pattern out '^workload +batch +samples/s' 'bench, a table'
expect_pattern out '^linear2 +32 +[0-9]' 'bench, a table'
expect_pattern out '^range +64 +[0-9]' 'bench, a table'

# The same bits on any number of workers.
run bench --workload logistic10 --json --workers 1
hash=$(value hash)
run bench --workload logistic10 --json --workers 2
expect_equal "$hash" "$(value hash)" 'bench: the hash on two workers'

# A model of the user's: on random samples of a shape, and on data.
run bench --model 'flatten dense(16,relu) dense(3,softmax)' --shape 8x8x1 --batch 64 --json
expect_code 0 'bench --model --shape'
expect_pattern out '^\{"workload": "model", "batch": 64, "samples": 1024, "steps": 16, ' 'bench --model --shape'
expect_equal $((64 * 16 + 16 + 16 * 3 + 3)) "$(value parameters)" 'bench --model: parameters'
run bench --model 'flatten dense(4)' --shape 8x8x1 --json
expect_code 0 'bench --model with four numbers'
run bench --model "$model" --data "$digits" --scale 1/16 --batch 100 --optimizer sgd
expect_code 0 'bench --model --data'
expect_pattern out '^model +100 +[0-9]+ ' 'bench --model --data'
expect_usage 'expected --workload NAME, or --model M with --data or --shape' bench
expect_usage '--workload and --model exclude each other' bench --workload linear2 --model 'dense(1)'
expect_usage '--model needs --data D, or --shape' bench --model 'dense(1)'
expect_usage '--data, --shape, --optimizer and --loss belong to --model' bench --workload linear2 --shape 3
finish

# Of a model, the shares of the machine's limits: none of them is zero, and both follow from the rates.
run bench --model 'dense(32,relu) dense(4)' --shape 16 --batch 64 --epochs 20 --json
expect_code 0 'bench --model'
for key in gb_per_s gflops_share gb_share; do
    expect_pattern out "\"$key\": [0-9]" 'bench --model: shares'
done
run bench --model 'dense(32,relu) dense(4)' --shape 16 --batch 64 --epochs 20
expect_pattern out 'GFLOP/s are [0-9]+ percent and [0-9.]+ GB/s [0-9]+ percent of what [0-9]+ workers? can do here' 'bench --model: the sentence'
