# batchwise report: one page of a run or of several, from files that may be missing, long, damaged or hostile.
. "$(dirname "$0")/run.sh"

train --epochs 3 --quiet --validation-split 0.2 --run one
expect_code 0 'a run'
cp one/report.html first.html
run report one
expect_code 0 report
expect_equal 'report one/report.html' "$(cat out)" report
expect_empty err report
cmp -s first.html one/report.html || fail 'report: expected the page that train made'

# Several runs, and where the page goes.
train --epochs 2 --quiet --batch 64 --run two
run report one two --json
expect_code 0 'report of two runs'
expect_equal '{"path": "report.html", "runs": 2}' "$(cat out)" 'report --json'
expect_text report.html '{"name":"one","run":{' 'report of two runs'
expect_text report.html '{"name":"two","run":{' 'report of two runs'
run report --out page.html two --json
expect_equal '{"path": "page.html", "runs": 1}' "$(cat out)" 'report --out'
echo 'my page' >report.html
run report one two
expect_code 1 'a file that is no report'
expect_text err 'report.html: this file is no report, and would be replaced; give --out' 'a file that is no report'
expect_equal 'my page' "$(cat report.html)" 'a file that is no report'

# Names from files cannot leave their place: no '<' of a run is in the page.
copy() {
    rm -rf copy
    cp -r one copy
}
copy
sed -i 's|"path": "[^"]*"|"path": "</script><script>alert(1)</script><!--"|' copy/run.json
printf '[{"id": "x<y", "severity": "warning", "evidence": "a\\"b \xff", "fix": "--lr 1"}]\n' >copy/findings.json
run report copy
expect_code 0 'names with markup'
expect_text copy/report.html '"path":"\u003c/script>\u003cscript>alert(1)\u003c/script>\u003c!--"' 'names with markup'
expect_text copy/report.html '"findings":[{"id":"x\u003cy","severity":"warning","evidence":"a\"b \ufffd","fix":"--lr 1"}]' 'findings'
expect_equal 2 "$(grep -c '^<script\|<script type="application/json"' copy/report.html)" 'script elements'
mv copy '<b>&"'
run report '<b>&"' --out page.html
expect_text page.html '{"name":"\u003cb>&\"","run":{' 'a folder with markup in its name'
rm -rf '<b>&"'

# A run of many epochs: some values of each column, the first and the last among them, and a page below 1 MB.
copy
awk 'BEGIN { for (c = 0; c < 8; c++) { printf "%s\"c%d\": [", c ? ", " : "{", c; for (i = 0; i < 50000; i++) printf "%s%d.125", i ? ", " : "", i; printf "]" } print ", \"nan\": [NaN, -Infinity]}" }' >copy/history.json
run report copy
expect_code 0 'a long history'
expect_pattern copy/report.html '"c7":\{"of":50000,"values":\[0.125,98.125,.*,49999.125\]\},"nan":\[null,null\]\}' 'a long history'
[ "$(wc -c <copy/report.html)" -lt 1000000 ] || fail 'a long history: expected less than 1 MB'
# What is too large in any other way is left out and named.
awk 'BEGIN { print "{"; for (i = 0; i < 30; i++) { printf "%s\"k%d\": {", i ? "," : "", i; for (j = 0; j < 30; j++) printf "%s\"m%d\": \"%s\"", j ? "," : "", j, sprintf("%5000s", "x"); print "}" } print "}" }' >copy/ledger.json
run report copy
expect_code 0 'a large ledger'
expect_text copy/report.html '"omitted":["ledger.json"]' 'a large ledger'

# Damaged files are refused by name and place.
expect_damage() {
    copy
    printf "$2" >copy/ledger.json
    run report copy
    expect_code 1 "damage: $2"
    expect_text err "copy/ledger.json: expected JSON, found in line $3: $1" "damage: $2"
}
expect_damage 'expected , or }' '{"a": 1\n"b": 2}' '2, byte 8 of the file'
expect_damage 'expected a value' '' '1, byte 0 of the file'
expect_damage 'expected a value' '{"a": nul}' '1, byte 6 of the file'
expect_damage 'expected a string' '{a: 1}' '1, byte 1 of the file'
expect_damage 'expected : after a name' '{"a" 1}' '1, byte 5 of the file'
expect_damage 'a string without an end' '["a' '1, byte 3 of the file'
expect_damage 'a control character in a string' '["a\nb"]' '1, byte 3 of the file'
expect_damage 'an unknown escape in a string' '["\\q"]' '1, byte 3 of the file'
expect_damage 'expected four hexadecimal digits' '["\\u12g4"]' '1, byte 6 of the file'
expect_damage 'expected a digit' '[1.]' '1, byte 3 of the file'
expect_damage 'expected , or ]' '[01]' '1, byte 2 of the file'
expect_damage 'expected the end of the file' '[] []' '1, byte 3 of the file'
copy
awk 'BEGIN { for (i = 0; i < 100000; i++) printf "["; }' >copy/ledger.json
run report copy
expect_code 1 'nested deeply'
expect_text err 'nested too deeply' 'nested deeply'
# Every cut of a file is refused, not half read.
size=$(wc -c <one/evaluation.json)
for cut in 1 17 900 $((size / 2)) $((size - 2)); do
    copy
    head -c "$cut" one/evaluation.json >copy/evaluation.json
    run report copy
    expect_code 1 "evaluation.json cut after $cut bytes"
done
copy
rm copy/ledger.json
mkfifo copy/ledger.json
run report copy
expect_code 1 'a pipe'
expect_text err 'copy/ledger.json: cannot read the file: expected a regular file' 'a pipe'

# The noise scale, as the optimizer sees it, raw and by variable; or why there is none.
for kind in 'tiles --tile 4' 'whole --tile 32' 'plain --tile 4 --optimizer sgd'; do
    # shellcheck disable=SC2086
    train --epochs 2 --quiet --batch 32 --run "noise-"$kind
    expect_code 0 "a run: $kind"
done
python3 - <<'EOF' || fail 'noise of run.json'
import json
noise = {kind: json.load(open("noise-" + kind + "/run.json"))["noise"] for kind in ("tiles", "whole", "plain")}
tiles, whole, plain = noise["tiles"], noise["whole"], noise["plain"]
assert tiles["steps"] == -(-2 * 57 // 16) and tiles["refusal"] is None and tiles["of"] == "optimizer" and tiles["raw"] != {}, tiles
assert [v["name"] for v in tiles["layers"]] == ["dense/kernel", "dense/bias", "dense_1/kernel", "dense_1/bias"], tiles
assert whole["steps"] == 0 and whole["layers"] == [] and whole["scale"] is None, whole
assert whole["refusal"] == "a batch is one tile of up to 32 samples, which has no parts to compare: --tile 4", whole
assert plain["of"] == "gradient" and plain["raw"] == {k: plain[k] for k in ("scale", "low", "high")}, plain
for n in [tiles, plain] + tiles["layers"]:
    assert (n["scale"] is None) == (n["high"] is None) and n["low"] >= 0, n
    assert n["scale"] is None or n["low"] <= n["scale"] <= n["high"], n
EOF

# What is missing is not shown; without run.json there is no run.
copy
rm copy/history.json copy/steps.json copy/ledger.json copy/evaluation.json
run report copy
expect_code 0 'a run of run.json alone'
rm copy/run.json
run report copy
expect_code 1 'no run.json'
expect_text err "copy: expected the folder of a run, which 'batchwise train --run' writes; there is no run.json in it" 'no run.json'
run report nowhere
expect_code 1 'no folder'
run report one --out missing/page.html
expect_code 1 'no folder for the page'
expect_text err 'missing/page.html: cannot create the file' 'no folder for the page'

expect_usage 'expected the folder of a run' report
expect_usage '--out: expected a text' report one --out ''
expect_usage "unknown option '--uot'; did you mean '--out'?" report one --uot x
finish
