# doctor: findings as text and as JSON, options of train that change them, nothing where nothing is wrong; the last line of train and
# findings.json of a run.
. "$(dirname "$0")/run.sh"

export XDG_CACHE_HOME=$PWD/cache

doctor() {
    run doctor --model "$model" --data "$digits" "$@"
}

# ids: the ids of the findings in out, without those about speed, which depend on the machine
ids() {
    grep -oE '"id": "[a-z-]+"' out | sed 's/.*: "//; s/"//' | grep -vE -- '-bound$|noise$' | tr '\n' ' ' | sed 's/ $//'
}

doctor --scale 1/16 --validation-split 0.2 --json
expect_code 0 'doctor of the digits'
expect_pattern out '^\{"findings": \[.*\]\}$' 'doctor --json'
expect_equal '' "$(ids)" 'doctor of the digits'
expect_empty err 'doctor of the digits'
expect_equal 1 "$(wc -l <out)" 'doctor --json: lines'

doctor --scale 20 --json
expect_equal 'unscaled-inputs' "$(ids | tr ' ' '\n' | grep unscaled)" 'doctor of unscaled digits'
expect_text out '"fix": "--scale 1/16"' 'the scale that helps'

doctor --scale 1/16 --lr 2 --json
expect_text out '"id": "learning-rate-too-high", "severity": "warning", "evidence": "in 200 updates the loss goes from ' 'a rate of 2'
expect_pattern out '"fix": "--lr 0\.0?2", "code": "bw_set_learning_rate\(model, 0\.0?2\);"' 'a rate of 2'

# Without a trial the rate cannot be judged; a split that leaks is found by the data alone.
awk 'BEGIN { srand(3); print "a,b,c,label"; for (i = 0; i < 300; i++) printf "%.6f,%.6f,%.6f,%d\n", rand(), rand(), rand(), int(3 * i / 300) }' >sorted.csv
run doctor --model 'dense(8,relu) dense(3,softmax)' --data sorted.csv --no-shuffle
expect_code 0 'doctor of a sorted table'
expect_text out 'warning: unshuffled-labels' 'a sorted table'
expect_pattern out '^  found  within 32 consecutive samples 9[0-9]% of all pairs have the same class, 3[0-9]% in a random order' 'a sorted table'
expect_text out '  fix    leave out --no-shuffle' 'a sorted table'
run doctor --model 'dense(8,relu) dense(3,softmax)' --data sorted.csv --json
expect_equal '' "$(ids)" 'a sorted table that is shuffled'
run doctor --model 'dense(8,relu) dense(3,softmax)' --data sorted.csv --validation sorted.csv --json
expect_text out '"id": "leak-into-validation", "severity": "warning", "evidence": "100.0% of the validation samples (300 of 300)' 'a leak'
run doctor --model 'dense(8,relu) dense(2,softmax)' --data sorted.csv --json
expect_text out '"id": "label-out-of-range", "severity": "error"' 'too few outputs'
run doctor --model 'dense(8,relu) dense(3,softmax)' --data sorted.csv --batch 299 --json
expect_text out '"id": "tiny-last-batch"' 'a batch that leaves one sample'
run doctor --model 'dense(8,relu) dense(3,softmax)' --data sorted.csv --batch 299 --drop-remainder --json
expect_equal '' "$(ids)" 'a batch that leaves one sample, which is dropped'

# Columns are named; ages are whole numbers, so that some come again by themselves.
awk 'BEGIN { srand(5); print "age,colour,flat,label"; for (i = 0; i < 200; i++) printf "%d,%s,7,%d\n", 20 + 60 * rand(), rand() < 0.5 ? "red" : "blue", 2 * rand() }' >people.csv
run doctor --model 'dense(8,relu) dense(2,softmax)' --data people.csv --json
expect_equal 'unscaled-inputs constant-feature' "$(ids)" 'a table with ages'
expect_text out 'column 0 (age) has ' 'a table with ages'
expect_text out "column 3 (flat) is always 7" 'a constant column'
expect_text out "\"fix\": \"--ignore 'flat'\"" 'a constant column'
run doctor --model 'dense(8,relu) dense(2,softmax)' --data people.csv --standardise --ignore flat --json
expect_equal '' "$(ids)" 'a table with ages that is prepared'

expect_usage "doctor: --data" doctor --model "$model"
expect_usage 'exclude each other' doctor --model "$model" --data "$digits" --validation "$digits" --validation-split 0.1
run doctor --model "$model" --data missing.npz
expect_code 1 'data that is missing'
expect_text err 'missing.npz' 'data that is missing'
run doctor --help
expect_text out 'findings:' 'doctor --help'
expect_text out 'swapping' 'doctor --help'

# What train sees by itself: one line at its end, or none.
run train --model 'dense(8,relu) dense(3,softmax)' --data sorted.csv --no-shuffle --epochs 2 --quiet --run sorted
expect_code 0 'train on a sorted table'
expect_pattern <(tail -n 1 out) '^warning: unshuffled-labels: .*; fix: leave out --no-shuffle \(.batchwise doctor. ' 'the last line of train'
expect_pattern sorted/findings.json '^\[\{"id": "unshuffled-labels", "severity": "warning", ' 'findings.json'
run train --model 'dense(8,relu) dense(3,softmax)' --data sorted.csv --epochs 2 --quiet --run mixed
expect_pattern <(tail -n 1 out) '^run mixed$' 'train without findings'
expect_equal '[]' "$(cat mixed/findings.json)" 'findings.json without findings'
run train --model 'dense(8,relu) dense(3,softmax)' --data sorted.csv --no-shuffle --epochs 2 --quiet --json
expect_equal 1 "$(wc -l <out)" 'train --json with a finding: lines'
expect_text out '"finding": {"id": "unshuffled-labels", ' 'train --json with a finding'
run train --model 'dense(8,relu) dense(3,softmax)' --data sorted.csv --epochs 2 --quiet --json
expect_text out '"finding": null' 'train --json without findings'
train --lr 50 --optimizer sgd --epochs 3 --quiet
expect_pattern <(tail -n 1 out) '^warning: (dead-units|learning-rate-too-high): ' 'train with a rate of 50'

finish
