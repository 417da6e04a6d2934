# Help and version: on standard output, exit code 0, every command and option named.
. "$(dirname "$0")/run.sh"

run --version
expect_code 0 --version
expect_pattern out '^batchwise [0-9]+\.[0-9]+\.[0-9]+$' --version
expect_empty err --version

run --help
expect_code 0 --help
expect_empty err --help
for word in train eval predict summary bench demo --help --version; do
    expect_pattern out "^  $word " --help
done
cp out long
run -h
expect_code 0 -h
cmp -s long out || fail '-h: expected the text of --help'

for option in model data shape scale target input header no-header missing take categorical ignore batch epochs optimizer lr loss metrics validation-split validation no-shuffle accumulate memory \
    workers tile lanes seed history save-model save-best run schedule class-weight early-stop plateau quiet json help; do
    run train --help
    expect_code 0 'train --help'
    expect_pattern out "^  --$option( |\$)" 'train --help'
done
for command in eval predict; do
    run $command --help
    expect_code 0 "$command --help"
    for option in model data shape scale target input header no-header missing take categorical ignore workers quiet json help; do
        expect_pattern out "^  --$option( |\$)" "$command --help"
    done
done
for option in out no-target; do
    expect_pattern out "^  --$option( |\$)" 'predict --help'
done
for option in workload batch epochs warmup memory workers tile lanes seed json help; do
    run bench --help
    expect_code 0 'bench --help'
    expect_pattern out "^  --$option( |\$)" 'bench --help'
done
for workload in conv28 conv64 conv128 conv128half linear2 logistic10 mlp100 range mlp1024; do
    expect_pattern out "^  $workload +[0-9]" 'bench --help'
done

# Help wins over what else stands there.
run train --epochs x --help
expect_code 0 'train --epochs x --help'

if [ -e /dev/full ]; then
    code=0
    "$BATCHWISE" --help >/dev/full 2>err || code=$?
    : >out
    expect_code 1 '--help to a full disk'
    expect_text err 'standard output' '--help to a full disk'
fi
finish
