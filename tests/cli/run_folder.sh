# The folder of a run belongs to one run: files of others are not overwritten, of several runs at once one gets it, and what a killed one
# has left may be taken. Why a run ended is what its run.json says.
. "$(dirname "$0")/run.sh"

# Files that are not a run's.
mkdir mine
echo 'my page' >mine/report.html
: >mine/notes.2024.tmp # named like what a killed process had not finished
train --epochs 1 --quiet --run mine
expect_code 1 'a folder with other files'
expect_text err "mine: expected a new or an empty folder, found '" 'a folder with other files'
expect_equal 'my page' "$(cat mine/report.html)" 'a file that is not a run'
expect_equal 'notes.2024.tmp report.html' "$(ls -A mine | tr '\n' ' ' | sed 's/ $//')" 'a folder with other files'
run demo --run mine --quiet
expect_code 1 'demo: a folder with other files'
expect_equal 'my page' "$(cat mine/report.html)" 'demo: a file that is not a run'

# An empty one is fine, also one with a blank in its name.
mkdir 'a new one'
train --epochs 1 --quiet --run 'a new one'
expect_code 0 'an empty folder'
expect_equal 'events findings.json history.csv history.json ledger.json model.keras report.html run.json steps.json train' \
    "$(ls -A 'a new one' | sed 's/^events\.out\.tfevents\..*/events/' | tr '\n' ' ' | sed 's/ $//')" 'files of a run'
expect_text 'a new one/run.json' '"failure": null, "stopped": null' 'a run that was not stopped'

# Three at once.
codes=
for i in 1 2 3; do
    "$BATCHWISE" train --model "$model" --data "$digits" --scale 1/16 --epochs 8 --seed "$i" --quiet --run shared >"out$i" 2>"err$i" &
    eval "process$i=$!"
done
for i in 1 2 3; do
    eval "process=\$process$i"
    code=0
    wait "$process" || code=$?
    codes="$codes$code "
done
expect_equal 1 "$(printf %s "$codes" | tr ' ' '\n' | grep -c '^0$')" "three runs into one folder ($codes): those that succeeded"
cat err1 err2 err3 >err
expect_pattern err 'shared: (another training is writing to this folder|expected a new folder, found a run in it); give another name' 'three runs'
winner=$(grep -l '^run shared' out1 out2 out3 | sed 's/out//')
expect_text shared/run.json "\"seed\": $winner" 'three runs: the one that succeeded'
expect_text shared/run.json "$(sed -nE 's/^weights ([0-9a-f]+).*/\1/p' "out$winner")" 'three runs: its weights'

# A run that was killed.
"$BATCHWISE" train --model "$model" --data "$digits" --epochs 1000000 --quiet --run killed >out 2>err &
process=$!
waited=0
until [ -s killed/run.lock ] || [ "$waited" -ge 200 ]; do
    sleep 0.1
    waited=$((waited + 1))
done
train --epochs 1 --quiet --run killed
expect_code 1 'a folder that is being written to'
expect_text err 'killed: another training is writing to this folder' 'a folder that is being written to'
kill -KILL "$process"
wait "$process" 2>/dev/null || :
echo 'half' >killed/history.json
train --epochs 1 --quiet --run killed
expect_code 0 'what a killed run has left'
expect_text killed/history.json '"loss"' 'what a killed run has left'

# Saving that fails is no early stopping.
mkdir gone
"$BATCHWISE" train --model "$model" --data "$digits" --scale 1/16 --epochs 1000000 --quiet --save-best gone/best.keras --run failed >out 2>err &
process=$!
waited=0
until [ -s gone/best.keras ] || [ "$waited" -ge 200 ]; do
    sleep 0.1
    waited=$((waited + 1))
done
until rm -rf gone 2>/dev/null; do :; done # the training may write to it meanwhile
code=0
wait "$process" || code=$?
expect_code 1 'the best model cannot be saved'
expect_text err 'gone/best.keras: ' 'the best model cannot be saved'
expect_pattern failed/run.json '"failure": "[^"]*gone/best.keras[^"]*", "stopped": "failed"' 'the best model cannot be saved'
expect_text failed/report.html '<html' 'the report of a failed run'
finish
