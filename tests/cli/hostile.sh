# Files that are made to break something, through the command: a message, exit code 1, little memory, nothing for the terminal to obey.
# And the ways in which a small machine breaks it: a stack of 64 KiB.
found=$(cd "$(dirname "$0")/../fuzz/found" && pwd)
. "$(dirname "$0")/run.sh"

# With an end to what may be allocated.
bounded() {
    code=0
    (ulimit -v 4000000 && exec "$BATCHWISE" "$@") >out 2>err || code=$?
}

printf 'a,b,y\n1,2,0\n2,3,1\n' >two.csv
for file in "$found"/keras/*.keras; do
    bounded predict --model "$file" --data two.csv
    expect_code 1 "$file"
    expect_pattern err '^batchwise: .+' "$file"
done
for file in "$found"/h5/*.h5; do
    bounded train --data "$file" --model 'dense(1)' --epochs 1
    expect_code 1 "$file as data"
    expect_pattern err '^batchwise: .+' "$file as data"
    bounded summary --model "$file"
    expect_code 1 "$file as a model"
done
bounded convert "$found/safetensors/overlap.safetensors" o.safetensors --model 'input(1) dense(1)'
expect_code 1 'tensors that overlap'
expect_text err 'tensors overlap' 'tensors that overlap'
bounded train --data "$found/csv/nul_after_na.csv" --header --missing skip --model 'dense(1)' --epochs 1 --quiet
expect_code 0 'NUL within a field'

# Names of layers reach the terminal without what it would obey: ESC, C1 controls (U+0080 to U+009F), changes of direction.
bounded summary --model "$found/json/escape_in_name.json"
expect_code 0 'control characters in a name'
if LC_ALL=C grep -qP '\x1b|\xc2[\x80-\x9f]|\xe2\x80[\x8e\x8f\xaa-\xae]|\xe2\x81[\xa6-\xa9]' out err; then
    fail 'control characters in a name: expected none in the output'
fi

# A gzip file that expands 1,000-fold; a usual one needs no option, and may have it.
(yes 0,0 || :) | head -c 40000000 | gzip -9 >bomb.csv.gz
bounded train --data bomb.csv.gz --model 'dense(1)' --epochs 1
expect_code 1 'a bomb'
expect_text err 'over 960-fold' 'a bomb'
gzip -k two.csv
bounded train --data two.csv.gz --unpack-any --model 'dense(2,softmax)' --epochs 1 --quiet
expect_code 0 '--unpack-any'

# A stack of 64 KiB, of which the environment would be a part.
small() {
    code=0
    (ulimit -s 64 && exec env -i "$BATCHWISE" "$@") >out 2>err || code=$?
}
small train --data "$digits" --model "$model" --scale 1/16 --epochs 1 --quiet --save-model small.keras
expect_code 0 'train on a small stack'
small eval --model small.keras --data "$digits" --quiet
expect_code 0 'eval on a small stack'
small summary --model small.keras
expect_code 0 'summary on a small stack'
small train --data two.csv --model 'dense(2,softmax)' --epochs 1 --quiet
expect_code 0 'a table on a small stack'

finish
