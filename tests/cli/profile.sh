# profile: the keys that others read, parts that sum up to the step, a slow source that is found, two batch sizes compared.
. "$(dirname "$0")/run.sh"

export XDG_CACHE_HOME=$PWD/cache

profile() {
    run profile --model "$model" --data "$digits" --scale 1/16 --seconds 0.2 "$@"
}

profile --batch 64 --workers 2 --json
expect_code 0 'profile --json'
expect_equal 1 "$(wc -l <out)" 'profile --json: lines'
python3 - <<'EOF' || fail 'profile --json: values'
import json
p = json.load(open("out"))
total = sum(p["parts"].values())
assert abs(total - 2 * p["step_us"]) < 0.02 * total, (total, p["step_us"])
assert p["workers"] == 2 and len(p["utilisation"]) == 2
names = {(o["layer"], o["kind"]) for o in p["ops"]}
assert ("dense", "forward") in names and ("dense_1", "backward") in names, names
assert all(o["us"] >= 0 for o in p["ops"])
m = p["machine"]
assert ([g["cores"] for g in m["growth"]][-1] == m["cores"] if m["growth"] else m["busy"]) and all(1 <= g["compute"] <= g["cores"] for g in m["growth"]), m
assert m["gflops"] >= m["core_gflops"] > 0 and m["gb_per_s"] >= m["core_gb_per_s"] > 0, m
peak = min(m["core_gflops"], m["gflops"] / 2)
for o in p["ops"]:
    assert abs(o["of_peak"] * peak - o["gflops"]) < 1e-6 * peak, o
dense = next(o for o in p["ops"] if o["layer"] == "dense_1" and o["pass"] == "forward")
assert dense["gflops"] > 0 and dense["of_memory"] > 0, dense
assert any(o["layer"] is None and o["kind"] == "optimizer" and o["gb_per_s"] > 0 for o in p["ops"])
EOF

# The source takes a millisecond a sample, one thread makes them: the step is waiting.
run profile --model 'flatten dense(10,softmax)' --data 'synth:images?n=256&shape=8x8x1&classes=10&delay=1ms' --batch 16 --seconds 0.3 \
    --workers 1 --json
expect_code 0 'profile of a slow source'
python3 - <<'EOF' || fail 'profile of a slow source: data wait'
import json
p = json.load(open("out"))
assert p["parts"]["data wait"] + p["parts"]["gather"] > 0.8 * p["step_us"], p["parts"]
EOF

# The trace nests: parts in shares, shares in steps.
profile --batch 200 --workers 2 --trace trace.json.gz
expect_code 0 'profile --trace'
python3 - <<'EOF' || fail 'profile --trace: events'
import gzip, json
events = json.load(gzip.open("trace.json.gz"))["traceEvents"]
names = {e["args"]["name"] for e in events if e["ph"] == "M"}
assert {"steps", "worker 0", "worker 1"} <= names, names
tids = {e["args"]["name"]: e["tid"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
assert 0 not in tids.values(), tids  # Perfetto's reader takes thread 0 for the idle thread of the kernel
steps = [e for e in events if e["ph"] == "X" and e["tid"] == tids["steps"]]
assert 5 <= len(steps) <= 50, len(steps)
for worker in (tids["worker 0"], tids["worker 1"]):
    open_until = []
    for e in sorted((e for e in events if e["ph"] == "X" and e["tid"] == worker), key=lambda e: (e["ts"], -e["dur"])):
        while open_until and open_until[-1] <= e["ts"] + 1e-3:
            open_until.pop()
        end = e["ts"] + e["dur"]
        assert not open_until or end <= open_until[-1] + 1e-3, e
        open_until.append(end)
assert any(e["name"] == "dense forward" for e in events)
assert sum(e["ph"] == "C" and e["name"] == "loss" for e in events) == len(steps)
EOF

# What Perfetto's reader asks for, strictly: known kinds of events with numbers for times, rows that have names, counters in the order
# of time, no control character anywhere, and a size that a viewer can take.
python3 - <<'EOF' || fail 'profile --trace: format'
import gzip, json, math
text = gzip.open("trace.json.gz").read()
assert len(text) < 20_000_000 and all(byte >= 32 for byte in text.rstrip(b"\n")), len(text)
top = json.loads(text.decode(), parse_constant=lambda word: 1 / 0)
assert set(top) == {"displayTimeUnit", "traceEvents"} and top["displayTimeUnit"] == "ns"
keys = {"M": {"name", "ph", "pid", "tid", "args"}, "X": {"name", "cat", "ph", "ts", "dur", "pid", "tid"}, "C": {"name", "ph", "ts", "pid", "args"}}
rows, last = set(), {}
for e in top["traceEvents"]:
    assert set(e) == keys[e["ph"]] and isinstance(e["name"], str) and e["name"] and e["pid"] == 1, e
    if e["ph"] == "M":
        assert e["name"] in ("process_name", "thread_name") and isinstance(e["args"]["name"], str), e
        rows.add(e["tid"])
    else:
        assert isinstance(e["ts"], (int, float)) and math.isfinite(e["ts"]) and e["ts"] >= 0, e
    if e["ph"] == "X":
        assert e["dur"] >= 0 and isinstance(e["cat"], str) and e["tid"] in rows, e
    if e["ph"] == "C":
        assert e["ts"] >= last.get(e["name"], 0) and isinstance(e["args"][e["name"]], (int, float)), e
        last[e["name"]] = e["ts"]
assert set(last) == {"loss", "memory"}, last
EOF

# Threads that make samples are rows: a thread for each core, whose samples take a millisecond each, one after the other.
run profile --model 'flatten dense(10,softmax)' --data 'synth:images?n=256&shape=8x8x1&classes=10&delay=1ms' --batch 16 --seconds 0.3 \
    --workers 1 --trace made.json
expect_code 0 'profile --trace of a slow source'
python3 - <<'EOF' || fail 'profile --trace: data threads'
import json
events = json.load(open("made.json"))["traceEvents"]
rows = {e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
assert sorted(set(rows.values()) - {f"data thread {k}" for k in range(1, 1024)}) == ["data thread 0", "steps", "worker 0"], rows
steps = [e for e in events if e["ph"] == "X" and rows[e["tid"]] == "steps"]
end = max(e["ts"] + e["dur"] for e in steps)
made = 0
for row in (r for r in rows if rows[r].startswith("data thread")):
    last = 0
    for e in (e for e in events if e["ph"] == "X" and e["tid"] == row):
        number = int(e["name"].split()[1])
        assert e["cat"] == "data" and e["name"].startswith("sample ") and 0 <= number < 256, e
        assert e["dur"] >= 1000 and e["ts"] >= last - 1e-3 and e["ts"] <= end, (e, last, end)
        last = e["ts"] + e["dur"]
        made += 1
assert made >= 16 * (len(steps) - 1) // 2, (made, len(steps))
EOF
run profile --model "$model" --data "$digits" --batch 200 --seconds 0.1 --trace none/trace.json
expect_code 1 'profile --trace into a folder that is not there'
expect_text err 'none/trace.json' 'profile --trace into a folder that is not there'
expect_usage '--trace is of one batch size' profile --model "$model" --data "$digits" --compare 16,32 --trace t.json

profile --batch 32
expect_code 0 profile
expect_pattern out '^A step of [0-9.]+ samples takes [0-9.e+]+ us: [0-9]+ samples/s on' profile
expect_pattern out '^forward +[0-9.]+ +[0-9.]+%' profile
expect_pattern out '^worker 0 +\|' profile
expect_pattern out '^ +dense +forward .* [0-9]+% +[0-9.]+ +[0-9]+%$' 'profile: shares of the limits'
expect_pattern out '^This machine, .* cores?, .*: [0-9.]+ GFLOP/s, [0-9.]+ GB/s' 'profile: the machine'

# train --profile: the same in short, and in the JSON.
train --epochs 3 --batch 8 --quiet --profile --workers 2
expect_code 0 'train --profile'
expect_pattern out '^A step of [0-9.]+ samples takes [0-9.e+]+ us: [0-9]+ samples/s on 2 workers' 'train --profile'
expect_pattern out '^forward +[0-9.]+ +[0-9.]+%$' 'train --profile'
expect_pattern out '^worker 1 +\|' 'train --profile'
train --epochs 3 --batch 8 --quiet --profile --json --workers 2
expect_code 0 'train --profile --json'
python3 - <<'EOF' || fail 'train --profile --json: values'
import json
p = json.load(open("out"))["profile"]
assert abs(sum(p["parts"].values()) - 2 * p["step_us"]) < 0.02 * 2 * p["step_us"] and len(p["by_worker"]) == 2, p
EOF
train --epochs 1 --quiet --json
expect_code 0 'train --json without --profile'
expect_equal 0 "$(grep -c '"profile"' out)" 'train --json without --profile'

# A prediction is called one; one worker cannot be faster with more lanes than there are, and data that waits needs faster data.
profile --batch 64 --workers 1 --what-if cores=2,bandwidth=2x,compute=1.5 --json
expect_code 0 'profile --what-if --json'
python3 - <<'EOF' || fail 'profile --what-if: values'
import json
p = json.load(open("out"))
f = p["prediction"]
assert f["extrapolated"] == (2 > p["machine"]["cores"]), f
assert f["cores"] == 2 and f["bandwidth"] == 2 and f["compute"] == 1.5 and f["data"] == 1, f
for when in ("now", "then"):
    assert abs(sum(f[when][k] for k in ("compute_us", "bandwidth_us", "serial_us", "data_us")) - f[when]["step_us"]) < 1e-6 * f[when]["step_us"]
assert abs(f["now"]["step_us"] - p["step_us"]) < 0.02 * p["step_us"], (f, p["step_us"])
assert f["then"]["step_us"] < f["now"]["step_us"], f
EOF
profile --batch 64 --what-if cores=2
expect_code 0 'profile --what-if'
expect_pattern out '^  (Busy cores slow each other: the [0-9]+ of this machine were measured to compute [0-9.]+ times as much as one|Other programs took the cores)' 'profile --what-if'
expect_pattern out '^Prediction \(nothing of it is measured\): with 2 cores a step would take [0-9.e+]+ us in place of [0-9.e+]+,' 'profile --what-if'
profile --batch 8 --tile 8 --workers 1 --what-if cores=4
expect_text out '  The batch is one tile of up to 8 samples, which one worker computes: cores help with a larger --batch' 'profile --what-if of one tile'
for wrong in cores cores=0 cores=2x cores=2,cores=3 speed=2x bandwidth=-1 bandwidth=; do
    expect_usage "--what-if: expected changes such as cores=8,compute=1.5x,bandwidth=2x,data=2x, found '$wrong'" \
        profile --model "$model" --data "$digits" --what-if "$wrong"
done

profile --compare 4,256
expect_code 0 'profile --compare'
expect_pattern out '^At batch (4|256) a sample takes [0-9.]+ us, at batch (4|256) [0-9.]+ us: [0-9.]+ times as long' 'profile --compare'
expect_pattern out 'of the difference is ' 'profile --compare'

# Batches are the ones that were asked for, although the last one of an epoch is smaller: 1797 = 89 * 20 + 17.
profile --batch 20 --steps 1000
expect_pattern out '^A step of 20 samples takes ' 'profile of an uneven batch'
expect_pattern out '^A mean step has 19\.[0-9]+ samples, since the last batch of an epoch is smaller\.$' 'profile of an uneven batch'
profile --compare 20,full --steps 1000 --json
python3 - <<'EOF' || fail 'profile --compare --json: batches'
import json
small, full = json.load(open("out"))["compared"]
assert small["batch"] == 20 and 19 < small["samples_per_step"] < 20, small["samples_per_step"]
assert full["batch"] == full["samples_per_step"] == 1797, (full["batch"], full["samples_per_step"])
EOF

expect_usage '--model is required' profile --data "$digits"
expect_usage "--compare: expected two batch sizes such as 16,128, found '16'" profile --model "$model" --data "$digits" --compare 16
expect_usage "--compare: expected two batch sizes such as 16,128, found '16,16'" profile --model "$model" --data "$digits" --compare 16,16
expect_usage '--compare names the batch sizes' profile --model "$model" --data "$digits" --compare 16,32 --batch 8
finish
