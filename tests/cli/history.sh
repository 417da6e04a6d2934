# --history: Keras's two formats, whole files or none.
. "$(dirname "$0")/run.sh"

number='-?[0-9]+(\.[0-9]+)?(e[-+][0-9]+)?'

train --epochs 3 --quiet --validation-split 0.1 --history h.json --json
expect_code 0 '--history h.json'
expect_equal 1 "$(wc -l <h.json)" 'h.json: lines'
expect_pattern h.json "^\{(\"[a-z_]+\": \[$number, $number, $number\](, )?){4}\}\$" '--history h.json'
for key in accuracy loss val_accuracy val_loss; do
    expect_text h.json "\"$key\": [" '--history h.json'
done
expect_text out "\"history\": $(cat h.json)," 'the history in --json and in the file'

train --epochs 3 --quiet --validation-split 0.1 --history h.csv
expect_code 0 '--history h.csv'
expect_equal 'epoch,accuracy,loss,val_accuracy,val_loss' "$(head -n 1 h.csv)" 'h.csv: the names'
expect_equal 4 "$(wc -l <h.csv)" 'h.csv: lines'
expect_equal '0 1 2' "$(tail -n 3 h.csv | cut -d , -f 1 | xargs)" 'h.csv: epochs'
expect_equal 3 "$(grep -cE "^[0-9]+(,$number){4}\$" h.csv)" 'h.csv: rows'
losses=$(tail -n 3 h.csv | cut -d , -f 3 | paste -s -d , | sed 's/,/, /g')
expect_text h.json "\"loss\": [$losses]" 'the same losses in both formats'

# A file that is there is replaced.
echo old >h.csv
train --epochs 1 --quiet --history h.csv
expect_equal 2 "$(wc -l <h.csv)" 'h.csv replaced: lines'

# Where it cannot be written that is said before training, and no file stays behind.
mkdir taken.json
for path in no/such/folder/h.json taken.json; do
    train --epochs 1 --history $path
    expect_code 1 "--history $path"
    expect_text err "$path" "--history $path"
    ! grep -q Epoch err || fail "--history $path: expected no training"
    expect_empty out "--history $path"
done
if [ "$(id -u)" != 0 ]; then
    mkdir locked
    chmod 555 locked
    train --epochs 1 --history locked/h.json
    expect_code 1 '--history locked/h.json'
    expect_text err 'locked/h.json' '--history locked/h.json'
fi
expect_equal '' "$(find . -name '*.tmp')" 'temporary files'

# A limit on the size of files stands for the full disk. out and err are short enough.
code=0
(
    trap '' XFSZ
    ulimit -f 1
    "$BATCHWISE" train --model "$model" --data "$digits" --epochs 200 --batch full --quiet --history big.csv >out 2>err
) || code=$?
expect_code 1 '--history beyond the limit'
expect_text err 'big.csv' '--history beyond the limit'
[ ! -e big.csv ] || fail '--history beyond the limit: expected no file'
expect_equal '' "$(find . -name '*.tmp')" 'temporary files beyond the limit'
finish
