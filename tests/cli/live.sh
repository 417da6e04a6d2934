# train --live: a panel that is redrawn in place in a terminal, which tmux plays; elsewhere plain lines and a message.
. "$(dirname "$0")/run.sh"

train --epochs 2 --live
expect_code 0 '--live without a terminal'
expect_text err 'batchwise: --live needs a terminal; plain lines instead' '--live without a terminal'
expect_text err 'Epoch 2/2' '--live without a terminal'
expect_usage '--live and --quiet exclude each other' train --model "$model" --data "$digits" --live --quiet

if ! command -v tmux >/dev/null; then
    finish
    exit 77
fi
socket=batchwise-$$
trap 'tmux -L "$socket" kill-server 2>/dev/null; rm -rf "$work"' EXIT
export LC_ALL=C.UTF-8

# screen COLUMNS ROWS ARGUMENT...: trains in a terminal of that size, whose screen then is in the file pane
screen() {
    local columns=$1 rows=$2
    shift 2
    printf '%q ' "$BATCHWISE" train --model "$model" "$@" >command
    echo '2>&1; echo "code $?"; sleep 1000' >>command
    tmux -L "$socket" kill-server 2>/dev/null || true
    socket=batchwise-$$-$columns
    tmux -L "$socket" -u new-session -d -x "$columns" -y "$rows" bash command
}

# wait_for PATTERN WHAT: until a line of the screen matches
wait_for() {
    for _ in $(seq 600); do
        tmux -L "$socket" capture-pane -p >pane
        if grep -qE "$1" pane; then
            return
        fi
        sleep 0.1
    done
    cp pane out
    fail "$2: waited for '$1'"
}

# Slow samples, so that there is time to look. The panel is there once, whenever one looks, and changes.
slow='synth:images?n=400&shape=8x8x1&classes=10&delay=2ms'
screen 100 30 --data "$slow" --batch 10 --epochs 40 --workers 2 --parallel 1 --live --log-steps 20
wait_for 'epoch [0-9]+/40  step [0-9]+/40' 'the panel'
wait_for 'worker 1 .* [0-9]+%' 'utilisation'
for text in '^  accuracy [0-9.]+  loss [0-9.e-]+' '^  loss  [▁▂▃▄▅▆▇█]+' 'speed   [0-9]+ samples/s  .* a step  data wait [0-9]+%  rate 0.001' \
    '^  memory  [█·]+ +[0-9]+%  .* of .* planned' '^  worker 0  [█·]+ +[0-9]+%' '^  worker 1  [█·]+ +[0-9]+%' '[0-9]+:[0-9][0-9], [0-9:]+ left'; do
    wait_for "$text" 'the panel'
done
cp pane before
wait_for '^step [0-9]+, epoch [0-9]+/40: .*loss' 'a line of --log-steps beside the panel'
for _ in 1 2 3 4 5; do
    tmux -L "$socket" capture-pane -p >pane
    [ "$(grep -c '^batchwise train  epoch' pane)" -le 1 ] || { cp pane out; fail 'the panel is drawn once'; }
    [ "$(grep -c '^  worker 1' pane)" -le 1 ] || { cp pane out; fail 'the panel is drawn once'; }
    sleep 0.3
done
! cmp -s before pane || fail 'the panel changes'

# Ctrl-C: the result so far follows below the panel, as without it.
tmux -L "$socket" send-keys C-c
wait_for '^(\^C)?batchwise: interrupted after [0-9]+ step' 'Ctrl-C'
wait_for '^code 130' 'Ctrl-C'

# To the end, and in a terminal that is too small for all.
screen 60 8 --data "$digits" --scale 1/16 --epochs 3 --workers 8 --live
wait_for '^code 0' 'a small terminal'
tmux -L "$socket" capture-pane -p -S - >pane
cp pane out
expect_text pane 'epoch 3/3' 'a small terminal'
expect_text pane 'over' 'a small terminal'
expect_pattern pane 'worker 0 .*worker 1 ' 'workers share lines'
expect_text pane '  and 6 more workers' 'a small terminal'
expect_equal 1 "$(grep -c '^batchwise train  epoch' pane)" 'lines are cut, so that the panel is drawn in place'
finish
