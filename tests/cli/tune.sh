# tune: the keys that others read, a choice or the words for none, wrong usage; train --batch auto trains with what it says.
. "$(dirname "$0")/run.sh"

tune() {
    run tune --model "$model" --data "$digits" --scale 1/16 --budget 1s "$@"
}

tune --largest 256 --tile --json
expect_code 0 'tune --json'
expect_equal 1 "$(wc -l <out)" 'tune --json: lines'
python3 - <<'EOS' || fail 'tune --json: values'
import json
t = json.load(open("out"))
rows = t["curve"]
assert [r["batch"] for r in rows] == [2 ** i for i in range(len(rows))] and 1 <= len(rows) <= 9, rows
for r in rows:
    assert abs(r["samples_per_s"] * r["step_us"] * 1e-6 - r["batch"]) < 1e-6 * r["batch"], r
    assert r["peak_bytes"] >= 8 * 64 * 64 and r["lr"] > 0 and r["step_us_low"] <= r["step_us"] <= r["step_us_high"], r
best = max(r["samples_per_s"] for r in rows)
assert t["knee_batch"] == min(r["batch"] for r in rows if r["samples_per_s"] >= 0.9 * best)
assert t["reference_batch"] == 32 and t["target_samples"] > 0
assert len(t["range_test"]) > 8 and len(t["rates"]) >= 1 and len(t["tiles"]) >= 1 and t["tile"] > 0
if t["decided"]:
    chosen = [r for r in rows if r["batch"] == t["recommended_batch"]]
    assert len(chosen) == 1 and t["recommended_lr"] > 0 and t["recommended_optimizer"].startswith("adam(lr="), t
    assert chosen[0]["lr"] == t["recommended_lr"], (chosen, t["recommended_lr"])
else:
    assert t["recommended_batch"] is None and t["recommended_lr"] is None and "the data do not decide" in t["reason"], t
if t["noise_scale"] is not None:
    assert 0 <= t["noise_scale_low"] <= t["noise_scale"] <= t["noise_scale_high"], t
    for r in rows:
        ratio = (1 + t["noise_scale"] / r["batch"]) / (1 + t["noise_scale"] / 32)
        assert abs(r["steps"] / (t["target_samples"] / 32) - ratio) < 1e-6 * ratio, r
        assert abs(r["seconds"] - r["steps"] * r["step_us"] * 1e-6) < 1e-6 * r["seconds"], r
EOS

tune --largest 64 --validation-split 0.2 --confirm 200ms --report page.html
expect_code 0 'tune --confirm'
expect_text out 'knee: batch' 'tune: the knee'
expect_text out 'noise scale:' 'tune: the noise scale'
expect_text out 'trained from the same state' 'tune --confirm: curves'
expect_pattern out 'on validation samples|diverg|not reached' 'tune --confirm: validation loss'
expect_pattern out '^recommended: batch [0-9]+ with learning rate|the data do not decide' 'tune: a choice, or none'

expect_text out 'report page.html' 'tune --report'
python3 - <<'EOS' || fail 'tune --report: the data of the page'
import json, re
page = open("page.html").read()
run = json.loads(re.search(r'<script[^>]*id="data">(.*?)</script>', page, re.S).group(1))["runs"][0]["run"]
tuning = run["tuning"]
assert run["title"] == "A batch size for digits.npz" and run["command"][0] == "tune" and "result" not in run, run
assert len(tuning["curve"]) >= 2 and len(tuning["branches"]) >= 1 and tuning["branches"][0]["points"], tuning
assert [layer["class"] for layer in run["layers"]][-1] == "Dense", run["layers"]
EOS
run tune --model "$model" --data "$digits" --scale 1/16 --budget 300ms --largest 8 --report missing/page.html
expect_code 1 'tune --report into a folder that does not exist'
expect_text err 'missing/page.html' 'tune --report into a folder that does not exist'

# With BatchNormalization there is no noise scale, and nothing is predicted: candidates are trained without being asked for.
run tune --model 'flatten dense(16) batchnorm relu dense(10,softmax)' --data "$digits" --scale 1/16 --budget 2s --largest 64 --json
expect_code 0 'tune with BatchNormalization'
expect_pattern out '"noise_refusal": *"with BatchNormalization' 'tune with BatchNormalization: the noise scale'
python3 - <<'EOS' || fail 'tune with BatchNormalization: the choice'
import json
t = json.load(open("out"))
reached = {b["batch"]: b["seconds_to_target"] for b in t["branches"] if b["seconds_to_target"] is not None}
assert t["noise_scale"] is None and all(r["steps"] is None for r in t["curve"]), t
assert t["decided"] == bool(reached) and (t["branches"] or "no candidate" in t["reason"]), t
if reached:
    assert t["recommended_batch"] == min(reached, key=reached.get) and t["recommended_lr"] > 0 and "first of" in t["reason"], t
else:
    assert t["recommended_batch"] is None and "the data do not decide" in t["reason"], t
EOS

# A rate that is given is adapted by rule: no other is tried.
tune --largest 64 --lr 0.002 --json
expect_code 0 'tune --lr'
python3 - <<'EOS' || fail 'tune --lr: rates'
import json
t = json.load(open("out"))
assert t["reference_lr"] == 0.002 and len(t["rates"]) == 1 and t["range_test"] == [], t["rates"]
if t["decided"]:
    assert abs(t["recommended_lr"] / (0.002 * (t["recommended_batch"] / 32) ** 0.5) - 1) < 0.01, t
EOS

expect_usage '--budget: expected a time such as 10s' tune --model "$model" --data "$digits" --budget soon
expect_usage '--confirm: expected a time' tune --model "$model" --data "$digits" --confirm 0s
expect_usage "optimizer: there is no 'adm'" tune --model "$model" --data "$digits" --optimizer adm
run tune --model "$model" --data missing.npz
expect_code 1 'tune: missing data'

# train --batch auto says what it chose, records it, and trains from the state it would have begun with.
train --batch auto --budget 1s --epochs 2 --run auto
expect_code 0 'train --batch auto'
expect_pattern err '^batch [0-9]+ with' 'train --batch auto: the line'
python3 - <<'EOS' || fail 'train --batch auto: run.json'
import json, re
run = json.load(open("auto/run.json"))
t = run["tuning"]
batch = int(re.search(r"^batch (\d+) with", open("err").read(), re.M).group(1))
assert batch == (t["recommended_batch"] or t["reference_batch"]), (batch, t)
assert run["result"]["steps"] == 2 * -(-1797 // batch), run["result"]
json.dump({"batch": batch, "optimizer": t["recommended_optimizer"] or "adam", "hash": run["result"]["hash"]}, open("auto.json", "w"))
EOS
chosen() { python3 -c "import json; print(json.load(open('auto.json'))['$1'])"; }
train --batch "$(chosen batch)" --optimizer "$(chosen optimizer)" --epochs 2 --json
expect_code 0 'train as tuned'
expect_text out "$(chosen hash)" 'train --batch auto: the same bits as with its choice given by hand'

train --batch auto --budget 500ms --optimizer 'adam(lr=0.004)' --epochs 1
expect_pattern err 'from 0.004 for batch 32 by rule|the data do not decide' 'train --batch auto with a rate: how it was treated'
expect_usage 'exclude each other' train --model "$model" --data "$digits" --batch auto --accumulate 2
expect_usage 'exclude each other' train --model "$model" --data "$digits" --batch auto --schedule 'cosine_decay(0.01,100)'
expect_usage '--budget belongs to --batch auto' train --model "$model" --data "$digits" --budget 3s

finish
