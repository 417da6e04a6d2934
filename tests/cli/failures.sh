# Failures: exit code 1, one line that names the thing, nothing on standard output.
. "$(dirname "$0")/run.sh"

# expect_failure TEXT ARGUMENT...
expect_failure() {
    local text=$1
    shift
    run "$@"
    expect_code 1 "batchwise $*"
    expect_text err "$text" "batchwise $*"
    [ "$(wc -l <err)" = 1 ] || fail "batchwise $*: expected one line in err"
    expect_empty out "batchwise $*"
}

expect_failure 'no/such.npz' train --model "$model" --data no/such.npz --quiet
expect_failure 'no/such.npz' train --model "$model" --data no/such.npz --quiet --json
expect_failure 'no/such.npz' train --model "$model" --data "$digits" --validation no/such.npz --quiet
expect_failure 'no/such/photos: not found' train --model "$model" --data no/such/photos --quiet
expect_failure 'photos: not found' train --model "$model" --data "$digits,photos" --quiet
expect_failure 'no/such/model.txt' train --model no/such/model.txt --data "$digits" --quiet
expect_failure './' train --model ./ --data "$digits" --quiet

echo 'this is no archive' >damaged.npz
expect_failure 'damaged.npz' train --model "$model" --data damaged.npz --quiet
head -c 1000 "$digits" >cut.npz
expect_failure 'cut.npz' train --model "$model" --data cut.npz --quiet

# A budget that even one sample does not fit is refused before the first step.
expect_failure '' train --model "$model" --data "$digits" --quiet --memory 1K

if [ -e /dev/full ]; then
    code=0
    "$BATCHWISE" train --model "$model" --data "$digits" --epochs 1 --quiet --json >/dev/full 2>err || code=$?
    : >out
    expect_code 1 'train --json to a full disk'
    expect_text err 'standard output' 'train --json to a full disk'
fi
finish
