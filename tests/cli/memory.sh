# Budgets: kept, refused with the smallest that would do; and limits of a control group, where one can be made here.
. "$(dirname "$0")/run.sh"

model='conv2d(16,3) batchnorm relu conv2d(16,3) batchnorm relu flatten dense(64,relu) dense(10,softmax)'
tight() {
    run train --model "$model" --data 'synth:images?n=256&shape=16x16x3&classes=10' --batch 256 --epochs 1 --quiet --json "$@"
}

# What is planned is taken, and a budget is kept by choosing; tile and lanes are given, so the weights are the same.
tight --tile 4 --lanes 4
expect_code 0 'no budget'
planned=$(value planned_bytes)
hash=$(value hash)
tight --tile 4 --lanes 4 --memory $((planned * 3 / 4))
expect_code 0 'three quarters of it'
expect_equal "$hash" "$(value hash)" 'the weights within three quarters of it'
[ "$(value planned_bytes)" -le $((planned * 3 / 4)) ] || fail 'a budget is kept'
[ "$(value kept_bytes)" -gt 0 ] || fail 'what there is room for is kept'

# Too little: refused before the first step, with the smallest budget. That one does, 10 percent less does not.
tight --memory 100K
expect_code 1 'too little'
expect_empty out 'too little'
expect_pattern err '^batchwise: memory: a budget of 100\.0 KiB is too small: .* need .* \([0-9]+ bytes\)$' 'too little'
least=$(sed -nE 's/.*\(([0-9]+) bytes\)$/\1/p' err)
tight --memory "$least"
expect_code 0 'the smallest budget'
tight --memory $((least * 9 / 10))
expect_code 1 'less than the smallest budget'

# A $TMPDIR without room is as good as none: values are computed again, to the same bits. A full disk is made where that is allowed.
mkdir disk
if truncate -s 2M image && mkfs.ext4 -q image 2>mkfs.log && mount -o loop image disk 2>mount.log; then
    export TMPDIR=$work/disk
    tight --memory 3M
    expect_code 0 'a full TMPDIR'
    expect_equal 0 "$(value spilled_bytes)" 'what a full TMPDIR holds'
    hash=$(value hash)
    export TMPDIR=$work/there_is_none
    tight --memory 3M
    expect_equal "$hash" "$(value hash)" 'the weights with a full TMPDIR and with none'
    unset TMPDIR
    umount disk
else
    echo 'no disk can be mounted here: a full TMPDIR is not tested'
fi

# What is measured stays within the plan: of a small model, and while the best model is saved.
for workers in 1 2; do
    run train --model 'dense(8,relu) dense(2,softmax)' --data 'synth:images?n=256&shape=16&classes=2' --workers $workers --epochs 3 --quiet --json
    expect_code 0 'a small model'
    [ "$(value peak_bytes)" -le "$(value planned_bytes)" ] || fail "a small model: $(value peak_bytes) bytes, planned $(value planned_bytes)"
done
for save in '' '--save-best best.keras' '--save-best best.weights.h5'; do
    # shellcheck disable=SC2086 # no word or two
    run train --model 'dense(512,relu) dense(512,relu) dense(10,softmax)' --data 'synth:images?n=256&shape=1024&classes=10' --workers 2 --epochs 2 --quiet --json $save
    expect_code 0 "wide layers, 2 workers $save"
    [ "$(value peak_bytes)" -le "$(value planned_bytes)" ] || fail "wide layers, 2 workers $save: $(value peak_bytes) bytes, planned $(value planned_bytes)"
done
mkdir images images/a images/b
for class in a b; do
    for i in 1 2 3 4 5 6; do cp "$BW_DATA/../tests/data/images/rgba.png" images/$class/$i.png; done
done
for workers in 1 2; do
    run train --model 'flatten dense(6,relu) dense(2,softmax)' --data images --workers $workers --epochs 2 --quiet --json
    expect_code 0 'a small model of images'
    [ "$(value peak_bytes)" -le "$(value planned_bytes)" ] || fail "a small model of images: $(value peak_bytes) bytes, planned $(value planned_bytes)"
done
for save in '--save-best best.keras' '--save-best best.safetensors' '--save-model best.onnx' '--run best'; do
    rm -rf best best.*
    run train --model 'dense(1500,relu) dense(10,softmax)' --data 'synth:images?n=64&shape=1000&classes=10' --epochs 2 --quiet --json $save
    expect_code 0 "$save"
    [ "$(value peak_bytes)" -le "$(value planned_bytes)" ] || fail "$save: $(value peak_bytes) bytes, planned $(value planned_bytes)"
done
[ "$(wc -c <best/model.keras)" -gt 17000000 ] || fail 'model.keras: expected weights and slots'

# Threads that make samples have stacks.
for threads in 1 16; do
    run train --model 'flatten dense(16,relu) dense(10,softmax)' --data 'synth:images?n=256&shape=16x16x3&classes=10&delay=0.1ms' --parallel $threads --epochs 2 --quiet --json
    expect_code 0 "$threads threads that make samples"
    [ "$(value peak_bytes)" -le "$(value planned_bytes)" ] || fail "$threads threads: $(value peak_bytes) bytes, planned $(value planned_bytes)"
done

# Ten tiny models, of which the tables are nearly all there is.
while read -r samples text; do
    run train --model "$text" --data "synth:$samples" --epochs 3 --quiet --json
    expect_code 0 "$text"
    [ "$(value peak_bytes)" -le "$(value planned_bytes)" ] || fail "$text: $(value peak_bytes) bytes, planned $(value planned_bytes)"
    [ "$(value planned_bytes)" -le 300000 ] || fail "$text: $(value planned_bytes) bytes are planned"
done <<'END'
line dense(1)
line?n=10 dense(1)
line dense(1) dense(1)
images?n=64&shape=4&classes=2 dense(2,softmax)
images?n=64&shape=4&classes=3 dense(4,tanh) dense(3,softmax)
images?n=64&shape=4&classes=2 dense(4,tanh) dense(4,tanh) dense(4,tanh) dense(2,softmax)
images?n=64&shape=4&classes=2 dense(8) batchnorm relu dense(2,softmax)
images?n=64&shape=4&classes=2 dense(16,relu) dropout(0.5) dense(2,softmax)
images?n=64&shape=4x4x1&classes=2 flatten dense(2,softmax)
images?n=64&shape=4x4x1&classes=2 maxpool2d(2) flatten dense(2,softmax)
END
run train --model 'dense(2,softmax)' --data 'synth:images?n=64&shape=4&classes=2' --epochs 1 --quiet
expect_pattern out '^peak memory .* needs .* without its tables and buffers, which are .* of the plan here and do not grow with the batch$' 'a tiny model'
run train --model 'flatten dense(2,softmax)' --data images --validation images --save-best tiny.keras --epochs 1 --quiet
expect_pattern out '^peak memory .* without its tables and buffers, which are .* of the plan here' 'a tiny model with images and validation'

# In a control group of its own. Version 1 or 2, at the root of what is seen here.
if [ -d /sys/fs/cgroup/memory ]; then
    group=/sys/fs/cgroup/memory/batchwise-test-$$
    limit=memory.limit_in_bytes
else
    group=/sys/fs/cgroup/batchwise-test-$$
    limit=memory.max
fi
if ! mkdir "$group" 2>/dev/null; then
    echo 'no control group can be made here: limits are not tested'
    finish
    exit 0
fi
trap 'rmdir "$group"; rm -rf "$work"' EXIT
if ! [ -w "$group/$limit" ] || ! sh -c "echo \$\$ >$group/cgroup.procs" 2>/dev/null; then
    echo 'the control group has no limit of memory: limits are not tested'
    finish
    exit 0
fi

# limited BYTES OPTION...: trains with so much memory for all of the process
limited() {
    echo "$1" >"$group/$limit"
    shift
    code=0
    sh -c "echo \$\$ >$group/cgroup.procs; exec \"\$@\"" sh "$BATCHWISE" train --model "$model" \
        --data 'synth:images?n=256&shape=16x16x3&classes=10' --batch 256 --epochs 1 --quiet --json "$@" >out 2>err || code=$?
}

tight
process=$(($(value process_bytes) + $(value code_bytes) + $(value mapped_bytes)))
all=$(($(value planned_bytes) + process))
hash=$(value hash)
limited $((all * 102 / 100))
expect_code 0 'a limit of the planned peak, the process and 2 percent'
expect_equal "$hash" "$(value hash)" 'the weights within the limit'

# The group's limit is the budget: what does not fit is chosen smaller, and refused below that, never killed.
limited $((all / 2))
expect_code 0 'a smaller limit'
[ "$(value planned_bytes)" -lt $((all / 2)) ] || fail 'a smaller limit makes a smaller plan'
model='flatten dense(8000,relu) dense(2000,relu) dense(10,softmax)' # 84 MiB of parameters, three times that with Adam's slots
limited $((200 << 20))
expect_code 1 'a limit below the smallest budget'
expect_pattern err '^batchwise: memory: a budget of .* is too small' 'a limit below the smallest budget'
limited $((64 << 20))
expect_code 1 'a limit below the parameters'
expect_pattern err '^batchwise: memory: a budget of .* is too small' 'a limit below the parameters'

finish
