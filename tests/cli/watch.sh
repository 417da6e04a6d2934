# train --watch: the page and its events on 127.0.0.1 only, for this machine's names only; no reader holds up the training.
. "$(dirname "$0")/run.sh"

here=$(cd "$(dirname "$0")" && pwd)
expect_usage '--watch: expected a port from 0 to 65535' train --model "$model" --data "$digits" --watch 65536
expect_usage '--watch: expected a port' train --model "$model" --data "$digits" --watch -1
train --epochs 1 --quiet --watch 0
if grep -q 'not part of this build' err; then
    expect_code 1 'a build without a server'
    finish
    exit 77
fi
expect_code 0 '--watch 0'
expect_pattern err '^batchwise: the training is at http://127\.0\.0\.1:[0-9]+/$' '--watch 0'
hash=$(sed -nE 's/^weights ([0-9a-f]+).*/\1/p' out)
train --epochs 1 --quiet
expect_equal "$(sed -nE 's/^weights ([0-9a-f]+).*/\1/p' out)" "$hash" 'the same weights'
command -v python3 >/dev/null || exit 77

# A training that goes on until it is interrupted.
"$BATCHWISE" train --model 'conv2d(8,3,relu) flatten dense(10,softmax)' --data "$digits" --scale 1/16 --batch 8 --epochs 1000000 --validation-split 0.1 \
    --watch 0 --quiet --run watched >log 2>&1 &
training=$!
for _ in $(seq 600); do
    port=$(sed -nE 's|.*http://127.0.0.1:([0-9]+)/.*|\1|p' log)
    [ -z "$port" ] || break
    sleep 0.1
done
cp log err
[ -n "$port" ] || fail 'no address was printed'

# A port that is taken.
train --epochs 1 --quiet --watch "$port"
expect_code 1 'a port that is taken'
expect_pattern err "--watch: cannot serve at port $port of 127.0.0.1: " 'a port that is taken'

python3 "$here/watch.py" "$port" "$training" >talk 2>&1 &
talk=$!
for _ in $(seq 3000); do
    [ ! -e ready ] || break
    kill -0 $talk 2>/dev/null || break
    sleep 0.1
done
kill -INT $training || fail "the training ended by itself"
code=0
wait $training || code=$?
cp log err
expect_code 130 'Ctrl-C ends the training and the server'
code=0
wait $talk || code=$?
cp talk out
expect_code 0 'the talk with the server'

# Serving is part of the plan: with a page open, the training takes no more than was planned.
"$BATCHWISE" train --model 'conv2d(8,3,relu) flatten dense(10,softmax)' --data "$digits" --scale 1/16 --batch 8 --epochs 1000000 --validation-split 0.1 \
    --watch 0 --quiet --run planned >log 2>&1 &
training=$!
python3 - $training <<'EOF' || fail 'the memory of serving'
import json, os, re, signal, sys, time, urllib.request
training = int(sys.argv[1])
for _ in range(600):
    found = re.search(r"http://\S+", open("log").read())
    if found:
        break
    time.sleep(0.1)
page = urllib.request.urlopen(found.group(0)).read()
events = urllib.request.urlopen(found.group(0) + "events")
seen = 0
while seen < 3:
    seen += events.readline().startswith(b"data: ")
os.kill(training, signal.SIGINT)
while events.read(65536):
    pass
EOF
wait $training || true
python3 - <<'EOF' || fail 'serving is planned'
import json
run = json.load(open("planned/run.json"))
peak, planned = run["result"]["peak_bytes"], run["plan"]["planned_bytes"]
assert 0 < peak <= planned, (peak, planned)
EOF
finish
