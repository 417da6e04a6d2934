# demo: the digits, from the plan to a report, also where it is installed.
. "$(dirname "$0")/run.sh"

run demo --run first
expect_code 0 demo
expect_text err 'Epoch 20/20' demo
for text in 'batch 32: tile ' '  parameters ' 'confusion (rows: true, columns: predicted)' 'run first' 'report first/report.html'; do
    expect_text out "$text" demo
done
expect_pattern out '^accuracy (0\.9[89]|1\.0)[0-9]*, val_accuracy (0\.9[89]|1\.0)' demo
expect_equal 'evaluation.json findings.json history.csv history.json ledger.json model.keras report.html run.json steps.json' "$(cd first && echo *)" 'the files of the run'

# The report: one page without outside parts.
page=first/report.html
for text in '<!doctype html>' '"title":"Handwritten digits"' '"confusion":[[' '"worst":[{"sample":' '"timeline":{' '</html>'; do
    expect_text $page "$text" 'report.html'
done
expect_equal '' "$(grep -oE '(src|href)=|https?://[^ ;'"'"']+|@import|url\(|import\(|fetch\(' $page | grep -v '^http://www.w3.org/2000/svg$' || true)" 'outside parts of the report'
[ "$(wc -c <$page)" -lt 1000000 ] || fail 'report.html: expected less than 1 MB'

run demo --run first --json --quiet --workers 1
expect_code 0 'demo --json, again'
expect_empty err 'demo --json --quiet'
expect_equal 1 "$(wc -l <out)" 'demo --json: lines'
expect_pattern out '^\{"accuracy": (0\.9[89]|1\.0)[0-9]*, "report": "first/report.html", ' 'demo --json'

# Installed: the digits lie in share.
mkdir -p prefix/bin prefix/share/batchwise
cp "$BATCHWISE" prefix/bin/batchwise
BATCHWISE=$PWD/prefix/bin/batchwise
run demo --json --quiet
expect_code 1 'demo without digits'
expect_text err 'the digits were not found' 'demo without digits'
cp "$digits" prefix/share/batchwise/
run demo --json --quiet
expect_code 0 'demo where it is installed'
expect_equal batchwise-demo/report.html "$(value report)" 'demo: the folder'
: >file
run demo --run file --quiet
expect_code 1 'a file in the place of the folder'

expect_usage "unknown option '--rnu'; did you mean '--run'?" demo --rnu x
expect_usage '--run: expected a text' demo --run ''
expect_usage '--seed: expected a whole number' demo --seed -1
expect_usage '--workers: expected a whole number' demo --workers 0
finish
