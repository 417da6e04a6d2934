# Wrong usage: exit code 2, and one line that names the thing, what was expected and what was found.
. "$(dirname "$0")/run.sh"

expect_usage 'expected a command'
expect_usage "unknown command 'tran'; did you mean 'train'?" tran
expect_usage "unknown command 'xyzzy'" xyzzy
expect_usage "unknown option '--verison'" --verison
expect_usage "unexpected argument 'more' after --version" --version more

# train: names of options, and those it cannot do yet
t() {
    local text=$1
    shift
    expect_usage "$text" train --model 'dense(1)' --data none.npz "$@"
}
t "unknown option '--epoch'; did you mean '--epochs'?" --epoch 3
t "unknown option '--bacth'; did you mean '--batch'?" --bacth=3
t "unknown option '--batch-size'; did you mean '--batch'?" --batch-size 3
t "unknown option '--batch_size'; did you mean '--batch'?" --batch_size 3
t "unknown option '--learning-rate'; did you mean '--lr'?" --learning-rate 0.1
t "unknown option '--validation-data'; did you mean '--validation'?" --validation-data x
t "unknown option '--patience'; did you mean '--early-stop'?" --patience 3
t "unknown option '-epochs'; did you mean '--epochs'?" -epochs 3
t "unexpected argument 'extra'" --quiet extra
t "--data: a name with a comma cannot be in a list, found 'a,b.npz'; give its folder, or rename it" a,b.npz
t '--data is given twice; expected it once' --data other.npz
t '--data is given twice; expected it once' --data=other.npz
t '--epochs is given twice; expected it once' --epochs 1 --epochs=2
t '--quiet takes no value' --quiet=yes
t '--epochs needs a value' --epochs
t '--epochs needs a value' --epochs --quiet

t "--save-model: expected a name that ends in .keras, .weights.h5, .json, .safetensors, .onnx or .c, found 'm.h5'" --save-model m.h5
t "found 'keras'" --save-model keras
t "--save-best: expected a name that ends in .keras, .weights.h5, .json, .safetensors, .onnx or .c, found 'm.h5'" --save-best m.h5

# train: values
for text in 0 -1 1.5 1e3 0x10 '' ' 1' '1 ' x 2147483648 99999999999999999999; do
    t "--epochs: expected a whole number from 1 to 2147483647, found '$text'" --epochs "$text"
    t "--accumulate: expected a whole number from 1" --accumulate "$text"
    t "--workers: expected a whole number from 1" --workers "$text"
    t "--lanes: expected a power of two" --lanes "$text"
done
for text in 0 -1 x '' 9223372036854775808 32, ,32 32,0 32,64@5 32@1 32@0,64@0 32@0,64@-1 32@ Auto Full; do
    t "--batch: expected a whole number of 1 or more, full, auto, 32,64 (alternating), 32/64 (alternating by epoch) or 32@0,128@5 (from epoch 5 on), found '$text'" \
        "--batch=$text"
done
for text in 0 -1 x full 9223372036854775808; do
    t "--tile: expected a whole number of 1 or more, found '$text'" --tile "$text"
done
t "--lanes: expected a power of two, found '3'" --lanes 3
for text in -1 x 1.0 18446744073709551616 ''; do
    t "--seed: expected a whole number from 0" --seed "$text"
done
for text in 0 x M 1X -5M 1.5G 512MM 18446744073709551615T ''; do
    t "--memory: expected a size such as 512M or 2G, found '$text'" --memory "$text"
done
for text in 0 -0.1 nan inf 0x1p-3 1e999 '' ' 1' 0,1 1e; do
    t "--lr: expected a number above 0, found '$text'" --lr "$text"
done
for text in -0.1 1 1.5 x nan ''; do
    t "--validation-split: expected a share" --validation-split "$text"
done
for text in 0 x 1/0 1/ /255 1/2/3 nan 0/5 ''; do
    t "--scale: expected a number other than 0, or a fraction such as 1/255, found '$text'" --scale "$text"
done
for text in 0 x 28x 28x-1 x28 28X28 1x1x1x1x1x1x1x1 1.5 ''; do
    t "--shape: expected extents such as 28x28x1, found '$text'" --shape "$text"
done
for text in no Mean '' 0; do
    t "--missing: expected error, mean, zero or skip, found '$text'" --missing "$text"
done
for text in 0 -1 1.5 x ''; do
    t "--take: expected a whole number of 1 or more, found '$text'" --take "$text"
done
t '--header and --no-header exclude each other' --header --no-header
t '--header takes no value' --header=yes
for option in model data target input categorical ignore optimizer schedule loss metrics validation history save-model save-best run \
    class-weight early-stop plateau; do
    case $option in
    data | validation) expected='a file, a folder or several files' ;;
    *) expected='a text' ;;
    esac
    t "--$option: expected $expected, found ''" --$option ''
done
for text in h h.txt h.json.gz .json/h; do
    t "--history: expected a name that ends in .json or .csv, found '$text'" --history "$text"
done
t '--lr and --schedule exclude each other' --lr 0.1 --schedule 'cosine_decay(0.01,1000)'
t 'no_such_decay' --schedule 'no_such_decay(0.1)'
for text in x 1,x ,1 -1 1,-2 nan 1e99; do
    expect_usage "--class-weight: expected auto, or weights such as 1,2.5, found '$text'" train --model "$model" --data "$digits" --quiet --class-weight "$text"
done
expect_usage "early_stopping: column 1: there is no argument 'patince'; did you mean 'patience'?" train --model "$model" --data "$digits" --quiet --early-stop patince=1
expect_usage 'reduce_lr_on_plateau: column 19: factor: expected' train --model "$model" --data "$digits" --quiet --plateau 'patience=2,factor=2'
expect_usage 'early_stopping: expected one name' train --model "$model" --data "$digits" --quiet --early-stop 'patience=2) f(x'
expect_usage 'early_stopping' train --model "$model" --data "$digits" --quiet --early-stop monitor=nothing
t '--validation and --validation-split exclude each other' --validation v.npz --validation-split 0.1
expect_usage '--model is required' train --data none.npz
expect_usage '--data is required' train --model 'dense(1)'

# train: texts that the library reads
run train --model 'flatten dens(10)' --data "$digits"
expect_code 2 'a layer that is not there'
printf '%s\n' "batchwise train: model: column 9: there is no layer 'dens'; did you mean 'dense'?" '  flatten dens(10)' '          ^' | cmp -s - err ||
    fail 'a layer that is not there: expected the expression and a caret'
t 'madam' --optimizer 'madam'
t 'madam' --optimizer 'madam(lr=1)' --lr 0.1
t 'optimizer' --optimizer 'adam(lr=' --lr 0.1
t 'no_such_loss' --loss no_such_loss
t 'no_such_metric' --metrics accuracy,no_such_metric
printf 'PK\003\004\000\000' >m.bin
expect_usage "found binary data in 'm.bin'" train --model m.bin --data "$digits"

# eval and predict
for command in eval predict; do
    expect_usage '--model is required' $command --data "$digits"
    expect_usage '--data is required' $command --model m.keras
    expect_usage "unknown option '--modle'; did you mean '--model'?" $command --modle m.keras
    expect_usage '--header and --no-header exclude each other' $command --model m.keras --data d.csv --header --no-header
    expect_usage '--workers: expected a whole number from 1' $command --model m.keras --data d.csv --workers 0
    expect_usage "--scale: expected a number other than 0" $command --model m.keras --data d.csv --scale 0
    for text in 'dense(1)' m.json m; do
        expect_usage "--model: expected a file with weights, .keras or .h5, found '$text'" $command --model "$text" --data "$digits"
    done
    for option in --quiet --json; do
        expect_usage "$option takes no value" $command $option=1
    done
done
for text in p p.npz p.json .csv/p; do
    expect_usage "--out: expected a name that ends in .npy or .csv, found '$text'" predict --model m.keras --data d.npz --out "$text"
done
expect_usage '--target and --no-target exclude each other' predict --model m.keras --data d.csv --target a --no-target
expect_usage "unknown option '--out'" eval --model m.keras --data d.csv --out p.csv

# bench
expect_usage 'expected --workload NAME, or --model M' bench
expect_usage "unknown option '--worklaod'; did you mean '--workload'?" bench --worklaod conv28
expect_usage "unknown workload 'conv29'; did you mean 'conv28'?" bench --workload conv29
expect_usage "unknown workload 'xyzzy'" bench --workload linear2,xyzzy
expect_usage "unknown workload ''" bench --workload linear2,
for text in 0 x -1 '' 1:2; do
    expect_usage "--workload linear2: expected a batch" bench --workload "linear2:$text"
done
expect_usage '--warmup: expected a whole number from 0' bench --workload linear2 --warmup -1
expect_usage '--epochs: expected a whole number from 1' bench --workload linear2 --epochs 0
expect_usage '--epochs and --warmup' bench --workload linear2 --epochs 2147483647 --warmup 1
expect_usage '--batch: expected' bench --workload linear2 --batch 0
expect_usage "unknown option '--validation'" bench --validation x
for text in 0 0% -1% 101% x ''; do
    t '--bad-records: expected a share above 0 up to 1, or a percentage such as 1%' "--bad-records=$text"
done
t "--cache: expected a text" --cache ''
finish

# Every option of every command, from its help: one that takes a value without it, one that takes none with it.
for command in $("$BATCHWISE" --help | sed -nE '/^commands:/,/^options:/s/^  ([a-z]+) .*/\1/p'); do
    "$BATCHWISE" "$command" --help >options
    seen=0
    while read -r option value; do
        seen=$((seen + 1))
        case $option in
        --help) continue ;;
        esac
        if [[ $value == \[* ]]; then # it may be left out
            expect_usage "$option: expected" "$command" "$option=no"
        elif [ -n "$value" ]; then
            expect_usage "$option needs a value" "$command" "$option"
        else
            expect_usage "$option takes no value" "$command" "$option=yes"
        fi
    done < <(sed -nE 's/^  (--[a-z-]+) ([^ ]+) .*/\1 \2/p; s/^  (--[a-z-]+)   .*/\1/p' options)
    [ "$seen" -gt 3 ] || fail "$command --help: expected options, found $seen"
    expect_usage "unknown option '--xyzzy'" "$command" --xyzzy
done
