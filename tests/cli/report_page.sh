# The report in a browser: no error on its console, curves, hover, keyboard, light and dark, a phone, hostile names. Needs Chromium and
# Python. BW_SCREENSHOTS names a folder for pictures of what the test sees.
. "$(dirname "$0")/run.sh"

here=$(cd "$(dirname "$0")" && pwd)
command -v python3 >/dev/null && python3 -c 'import sys; sys.path.insert(0, sys.argv[1]); import browser; sys.exit(not browser.find())' "$here/../support" || exit 77

train --epochs 6 --quiet --validation-split 0.2 --run one
expect_code 0 'a run'
train --epochs 4 --quiet --batch 64 --run two
train --epochs 1 --quiet --batch auto --budget 1s --run tuned
expect_code 0 'a run with a batch size that was chosen'
# What was measured varies, so the page is also looked at with numbers that are known.
python3 - <<'EOF'
import json, shutil
shutil.copytree("tuned", "curve")
run = json.load(open("curve/run.json"))
rows = [(16, 2.0, 1.5, 3.0, 1000), (32, 1.0, 0.8, 1.5, 2000), (64, 0.75, 0.6, None, 3800), (128, 0.9, 0.7, 2.5, 4000)]
run["tuning"].update(decided=True, recommended_batch=64, knee_batch=64, recommended_lr=0.01, reference_batch=32, target_loss=0.25, target_samples=4096,
                     reason="because", noise_scale=40.5, noise_scale_low=30, noise_scale_high=50, noise_refusal=None)
run["tuning"]["curve"] = [dict(batch=b, seconds=s, seconds_low=low, seconds_high=high, samples_per_s=rate, step_us=1e6 * b / rate, lr=0.01, steps=10,
                               samples=10 * b, peak_bytes=1 << 20) for b, s, low, high, rate in rows]
json.dump(run, open("curve/run.json", "w"))
EOF
run report curve
expect_code 0 'a run with a known curve'
run tune --model "$model" --data "$digits" --scale 1/16 --budget 1s --largest 64 --confirm 200ms --report only_tuned.html
expect_code 0 'a tuning without a training'
run report one two --out several.html
expect_code 0 'two runs'

cp -r one hostile
evil='</script><script>hacked=1</script><b class=\\"evil\\"><img src=x onerror=hacked=1>'
sed -i "s|\"path\": \"[^\"]*\"|\"path\": \"$evil\"|; s|\"name\": \"dense\"|\"name\": \"$evil\"|; s|\"title\": null|\"title\": \"$evil\"|" hostile/run.json
sed -i "s|\"classes\": \[\"0\"|\"classes\": [\"$evil\"|; s|\"true_class\": \"[0-9]\"|\"true_class\": \"$evil\"|g" hostile/evaluation.json
sed -i "s|\"accuracy\"|\"$evil\"|" hostile/history.json
sed -i "s|\"layer\": \"dense\"|\"layer\": \"$evil\"|g" hostile/ledger.json
printf '[{"id": "%s", "severity": "%s", "evidence": "%s", "fix": "%s"}]' "$evil" "$evil" "$evil" "$evil" | sed 's|\\\\"|\\"|g' >hostile/findings.json
run report hostile
expect_code 0 'a run with markup in its names'

python3 "$here/report_page.py" || fail 'the page'
finish
