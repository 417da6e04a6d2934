# What fails below the command: a run is killed before each of its calls for files, half of a write being done, and goes on from the
# checkpoint before or after it; each allocation and each call for a file or a socket of a training with a page and
# of a conversion fails, and the command ends with its code, nothing half-written and nothing left over. One call in $FAULT_STEP
# is chosen (7).
. "$(dirname "$0")/run.sh"

if [ -z "${BW_TEST_SHIM:-}" ] || [ ! -e "${BW_TEST_SHIM:-}" ]; then
    echo 'no library that makes calls fail: sanitizers have an allocator of their own'
    exit 77
fi
step=${FAULT_STEP:-7}
net='flatten dense(8,relu) dense(10,softmax)'

# faulty FAULT ARGUMENT...: runs the command; a file `mark` is there if the fault came
faulty() {
    local fault=$1
    shift
    rm -f mark
    code=0
    timeout 120 env LD_PRELOAD="$BW_TEST_SHIM" BW_FAULT="$fault" BW_FAULT_MARK=mark "$BATCHWISE" "$@" >out 2>err || code=$?
}

# Without a message of the shell for each process that is killed.
quietly() { "$@" 2>/dev/null; }

# ---- Killed ----

saving() { printf '%s\n' train --model "$net" --data "$digits" --scale 1/16 --take 200 --batch 50 --epochs 2 --quiet --workers 1; }
mapfile -t training < <(saving)
run "${training[@]}" --run whole
expect_code 0 'a run without checkpoints'
n=1
killed=0
while :; do
    rm -rf killed
    quietly faulty "kill:$n" "${training[@]}" --run killed --checkpoint-every 1 --keep 1
    [ "$code" = 137 ] || break
    killed=$((killed + 1))
    run "${training[@]}" --run killed --resume --checkpoint-every 1 --keep 1
    expect_code 0 "resumed after it was killed before call $n"
    grep -q 'is damaged\|is not used' err && fail "killed before call $n: a checkpoint is damaged"
    cmp -s whole/model.keras killed/model.keras || fail "killed before call $n: other weights"
    cmp -s whole/history.json killed/history.json || fail "killed before call $n: another history"
    n=$((n + step))
done
expect_code 0 'not killed any more'
[ "$killed" -gt $((100 / step)) ] || fail "expected more calls, found $n"
echo "killed before $killed of $n calls, resumed each time"

# ---- Failures ----

# each KIND WHAT OUTPUT COMMAND...: one call after another fails, with gaps that grow. The output is whole or not there.
each() {
    local kind=$1 what=$2 output=$3 n=1 met=0
    shift 3
    while :; do
        rm -rf "$output" folder
        mkdir folder
        faulty "$kind:$n" "$@"
        [ -e mark ] || break
        met=$((met + 1))
        [ "$code" -lt 100 ] || fail "$what: $kind $n: expected a code of the command"
        [ "$code" = 0 ] || [ -s err ] || fail "$what: $kind $n: expected a message"
        [ -z "$(find . -name '*.tmp')" ] || fail "$what: $kind $n: something is left: $(find . -name '*.tmp')"
        if [ -e "$output" ] && ! cmp -s "$output" "whole.$output"; then
            fail "$what: $kind $n: $output is half-written"
        fi
        n=$((n + step + n / 8))
    done
    expect_code 0 "$what: without a failure"
    [ "$met" -gt 3 ] || fail "$what: $kind: expected more calls"
    echo "$what: $met failures of $kind"
}

cp whole/model.keras model.keras
run convert model.keras whole.out.safetensors
expect_code 0 convert
run "${training[@]}" --save-model whole.out.keras
expect_code 0 train
for kind in memory files; do
    each $kind convert out.safetensors convert model.keras out.safetensors
    each $kind train out.keras "${training[@]}" --save-model out.keras
done

# ---- With readers of the page ----

# visit: reads the page and some events as soon as there is an address, until the training is over
visit() {
    local port=
    for _ in $(seq 200); do
        port=$(sed -nE 's|.*http://127.0.0.1:([0-9]+)/.*|\1|p' err 2>/dev/null)
        [ -z "$port" ] || break
        [ ! -e over ] || return 0
        sleep 0.02
    done
    for path in / /events /none /; do
        [ ! -e over ] || return 0
        (
            exec 3<>"/dev/tcp/127.0.0.1/$port"
            printf 'GET %s HTTP/1.1\r\nHost: 127.0.0.1:%s\r\nConnection: close\r\n\r\n' "$path" "$port" >&3
            timeout 0.2 cat <&3 >/dev/null
        ) 2>/dev/null || :
    done
}

run train --model "$net" --data "$digits" --scale 1/16 --epochs 1 --quiet --watch 0
if ! grep -q 'not part of this build' err; then
    for kind in memory files; do
        n=1
        while :; do
            rm -f over err
            visit &
            visitor=$!
            faulty "$kind:$n" train --model "$net" --data "$digits" --scale 1/16 --epochs 40 --quiet --watch 0 --workers 1
            : >over
            wait "$visitor" || :
            [ "$code" -lt 100 ] || fail "--watch: $kind $n: expected a code of the command"
            [ -e mark ] || break
            n=$((n + 6 * step + n / 4))
        done
        expect_code 0 "--watch: without a failure of $kind"
    done
fi
finish
