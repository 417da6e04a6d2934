# The same weights, in bits, on one worker and on two.
. "$(dirname "$0")/run.sh"

for batch in 1 32 100 full; do
    train --epochs 1 --quiet --json --batch $batch --workers 1
    expect_code 0 "--batch $batch --workers 1"
    expect_equal 1 "$(value workers)" '--workers 1'
    hash=$(value hash)
    train --epochs 1 --quiet --json --batch $batch --workers 2
    expect_code 0 "--batch $batch --workers 2"
    expect_equal 2 "$(value workers)" '--workers 2'
    expect_equal "$hash" "$(value hash)" "--batch $batch: the hash on two workers"
    expect_pattern out '"hash": "[0-9a-f]{16}"' "--batch $batch"
done
finish
