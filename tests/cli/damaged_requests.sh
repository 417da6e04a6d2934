# train --watch under damaged requests: the page for this host only, an answer for every plain reader, bounded memory and files.
. "$(dirname "$0")/run.sh"

command -v python3 >/dev/null || exit 77
train --epochs 1 --quiet --watch 0
grep -q 'not part of this build' err && exit 77
code=0
python3 "$(dirname "$0")/../fuzz/live_page.py" "$BATCHWISE" "$digits" --requests 600 --seed 1 >out 2>err || code=$?
expect_code 0 'damaged requests'
finish
