# The report in a browser: no error on its console, curves, hover, keyboard, light and dark, a phone, hostile names. Needs Chromium and
# Python. BW_SCREENSHOTS names a folder for pictures of what the test sees.
. "$(dirname "$0")/run.sh"

here=$(cd "$(dirname "$0")" && pwd)
command -v python3 >/dev/null && python3 -c 'import sys; sys.path.insert(0, sys.argv[1]); import browser; sys.exit(not browser.find())' "$here/../support" || exit 77

train --epochs 6 --quiet --validation-split 0.2 --run one
expect_code 0 'a run'
train --epochs 4 --quiet --batch 64 --run two
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
