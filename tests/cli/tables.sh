# Tables and arrays as people bring them: what is found is reported, what would go wrong in silence is refused.
. "$(dirname "$0")/run.sh"

# Text labels: an output of one number would be fitted to the order of names.
printf 'a,b,kind\n1,2,cat\n2,1,dog\n3,3,ape\n4,1,cat\n' >three.csv
printf 'a,b,kind\n1,2,no\n2,1,yes\n3,3,no\n4,1,yes\n' >two.csv
refused() {
    run train --epochs 1 --quiet --model "$2" --data "$1" ${3:+--loss "$3"}
    expect_code 1 "$*"
    expect_text err "$4" "$*"
}
accepted() {
    run train --epochs 1 --quiet --model "$2" --data "$1" ${3:+--loss "$3"}
    expect_code 0 "$*"
}
refused three.csv 'dense(1)' '' 'the targets are 3 classes (ape, cat, dog), but dense has 1 output with the loss mean_squared_error; expected dense(3,softmax)'
refused three.csv 'dense(1)' mse 'expected dense(3,softmax) with sparse_categorical_crossentropy'
refused three.csv 'dense(1,sigmoid)' '' 'the targets are 3 classes'
refused three.csv 'dense(2,softmax)' '' 'has 2 outputs'
refused three.csv 'dense(3)' '' 'has 3 outputs with the loss mean_squared_error'
refused three.csv 'dense(3,softmax)' categorical_crossentropy 'with sparse_categorical_crossentropy'
refused two.csv 'dense(1)' '' 'expected dense(1,sigmoid), or dense(2,softmax)'
accepted three.csv 'dense(3,softmax)' ''
accepted three.csv 'dense(3)' 'sparse_categorical_crossentropy(from_logits=true)'
accepted two.csv 'dense(1,sigmoid)' ''
accepted two.csv 'dense(1,sigmoid)' mse
accepted two.csv 'dense(1)' 'binary_crossentropy(from_logits=true)'
accepted two.csv 'dense(1)' hinge

# Several targets: trained, evaluated, and predicted without them.
printf 'a;b;y1;y2\n1,5;2;3,5;-0,5\n2;1;3;1\n3;3;6;0\n4;1;5;3\n' >several.tsv
run train --model 'dense(2)' --data several.tsv --target y1,y2 --epochs 400 --lr 0.1 --save-model several.keras
expect_code 0 '--target y1,y2'
expect_text err "several.tsv: fields are separated by ';'" '--target y1,y2'
expect_text err 'several.tsv: numbers have a decimal comma' '--target y1,y2'
run eval --model several.keras --data several.tsv
expect_pattern out '^loss 0\.00[0-9]+ over 4 samples$' 'eval of two targets'
printf 'b,a\n1,2\n' >new.csv
run predict --model several.keras --data new.csv
expect_equal 'prediction_0,prediction_1' "$(head -n 1 out)" 'predict of two targets'
expect_pattern out '^(3\.0|2\.9)[0-9]*,(1\.0|0\.9)[0-9]*$' 'predict of two targets'

# Columns of text become inputs: the JSON names them, C and ONNX files list what their inputs are, and warn even when told to be quiet.
printf 'age,city,y\n20,Rome,1\n30,"New ""York""",2\n40,Rome,3\n,Oslo,4\n' >cities.csv
run train --model 'dense(1)' --data cities.csv --missing mean --standardise --epochs 1 --quiet --json --save-model cities.keras
expect_code 0 'text columns'
expect_text out '"data": {"text_columns": [{"name": "city", "categories": ["New \"York\"", "Oslo", "Rome"]}]}' 'text columns in JSON'
run convert cities.keras cities.c --quiet
expect_text err 'warning: cities.c: 1 column of the training data has categories, each of which is an input of 0 or 1 here; the file lists' 'convert to C'
expect_text err 'warning: cities.c: missing values of 1 column were replaced in the training data, which this file does not do' 'convert to C'
tr '\n' ' ' <cities.c >flat
expect_text flat 'const char *const cities_inputs[4] = {     "age",     "city=New \042York\042",     "city=Oslo",     "city=Rome", };' 'inputs in C'
cc -std=c99 -Wall -Werror -c cities.c -o cities.o || fail 'cities.c does not compile'
run convert cities.keras cities.onnx --json
expect_text err 'warning: cities.onnx: 1 column' 'convert to ONNX'
LC_ALL=C tr -d '\000' <cities.onnx >flat
expect_text flat '["age", "city=New \"York\"", "city=Oslo", "city=Rome"]' 'input_names in ONNX'

# Columns without names keep their places.
printf '1,5,0,2\n2,6,1,3\n3,7,0,4\n4,8,1,1\n' >places.csv
run train --model 'dense(1,sigmoid)' --data places.csv --target 2 --ignore 1 --epochs 1 --save-model places.keras
expect_code 0 '--ignore 1'
run eval --model places.keras --data places.csv --target 2 --ignore 1 --json
cp out before
run eval --model places.keras --data places.csv --json
expect_code 0 'eval without names'
cmp -s out before || fail 'eval without names: expected the result with --target and --ignore'

# A name that no column has is a mistake, wherever it is said.
run train --model 'dense(2,softmax)' --data two.csv --epochs 1 --quiet --save-model two.keras
for option in ignore categorical target; do
    for how in "eval --model two.keras" "predict --model two.keras" "plan --model dense(1)" "verify --model dense(2,softmax)" "train --model dense(2,softmax)"; do
        # shellcheck disable=SC2086
        run $how --data two.csv --$option knd
        expect_code 1 "$how --$option knd"
        expect_text err "the option '$option' names a column 'knd', which is not there; did you mean 'kind'?" "$how --$option knd"
    done
done

# A plan warns, too; its table goes to standard output as ever.
{ echo 'a,name,y'; for i in $(seq 1 60); do echo "$i.5,car $i,1"; done; } >cars.csv
run plan --model 'dense(1)' --data cars.csv
expect_code 0 'plan of cars.csv'
expect_text err "column 'name' is text (line 2 has 'car 1') and becomes 60 inputs" 'plan of cars.csv'
expect_equal 1 "$(wc -l <err)" 'plan of cars.csv: lines'

# A file of validation need not have what training left out.
printf 'kind,a\nno,2\nyes,1\n' >less.csv
run train --model 'dense(2,softmax)' --data two.csv --ignore b --validation less.csv --epochs 1
expect_code 0 '--validation without the column of --ignore'

# A header that promises more than there is; a gzip file that promises 2 GiB at its end.
printf 'a,b\n1,2\n3,4\n' | gzip >g.csv.gz
printf '\377\377\377\177' | dd of=g.csv.gz bs=1 seek=$(($(wc -c <g.csv.gz) - 4)) conv=notrunc 2>/dev/null
run train --model 'dense(1)' --data g.csv.gz --epochs 1
expect_code 1 'a gzip file with a wrong length'
expect_text err 'g.csv.gz' 'a gzip file with a wrong length'

# Parts of one file: training validates with the other part, eval and predict take it.
parts=$(dirname "$0")/../data/parts.npz
case $parts in /*) ;; *) parts=$OLDPWD/$parts ;; esac
run train --model 'flatten dense(2,softmax)' --scale 1/255 --data "$parts" --epochs 1 --json --save-model parts.keras
expect_code 0 'train with parts'
expect_text out '"val_loss"' 'train with parts'
expect_text err 'x_test and y_test are read' 'train with parts'
run eval --model parts.keras --data "$parts" --json
expect_text out '"samples": 3' 'eval with parts'
run predict --model parts.keras --data "$parts"
expect_equal 4 "$(wc -l <out)" 'predict with parts: lines'
run train --model 'flatten dense(2,softmax)' --data "$parts" --epochs 1 --json --validation-split 0.5
expect_text out '"val_loss"' '--validation-split with parts'
grep -q x_test err && fail '--validation-split with parts: expected x_test not to be read'

# All samples by 2, in the next epoch all by 4.
run train --model 'flatten dense(2,softmax)' --data "$parts" --epochs 3 --batch 2/4 --json
expect_pattern out '"steps": 8' '--batch 2/4'
finish
