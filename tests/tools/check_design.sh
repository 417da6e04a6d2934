#!/usr/bin/env bash
# What docs says about the source is so: the table and the picture of the modules are tools/modules.txt, and every function that
# docs/life-of-a-batch.md names stands in the file that it names.
set -euo pipefail
cd "$(dirname "$0")/../.."
failures=0
complain() {
    echo "FAILED: $*"
    failures=$((failures + 1))
}

# module: used used ..., sorted
modules=$(sed -n 's/^\([a-z]*\): */\1: /p' tools/modules.txt | sed 's/ *$//' | grep -v '^cli:' | LC_ALL=C sort)
table=$(sed -n '/^| module | purpose/,/^$/p' docs/design.md | awk -F' *[|] *' 'NR > 2 && NF > 3 && $2 != "cli" { print $2 ": " $4 }' |
    sed 's/ *$//' | LC_ALL=C sort)
[ "$table" = "$modules" ] || complain "the table in docs/design.md is not tools/modules.txt: $(diff <(echo "$table") <(echo "$modules"))"

edges=$(awk -F: '/^[a-z]+:/ { n = split($2, used, " "); for (i = 1; i <= n; i++) print $1, used[i] }' tools/modules.txt | LC_ALL=C sort)
drawn=$(sed -n 's/.*data-use="\([a-z ]*\)".*/\1/p' docs/modules.svg | LC_ALL=C sort)
[ "$drawn" = "$edges" ] || complain "docs/modules.svg is not tools/modules.txt: $(diff <(echo "$drawn") <(echo "$edges"))"
boxes=$(sed -n 's/.*data-module="\([a-z]*\)".*/\1/p' docs/modules.svg | LC_ALL=C sort)
[ "$boxes" = "$(sed -n 's/^\([a-z]*\):.*/\1/p' tools/modules.txt | LC_ALL=C sort)" ] || complain "docs/modules.svg has other modules"

# A stop is "`function` in `src/...`": the function is defined there, at the left margin, or is a member of a table.
stops=$(grep -o '`[a-z_]*` in `src/[a-z_./]*`' docs/life-of-a-batch.md | tr -d '`' | sed 's/ in / /')
[ "$(wc -l <<<"$stops")" -ge 12 ] || complain "docs/life-of-a-batch.md names only $(wc -l <<<"$stops") functions"
while read -r function file; do
    [ -f "$file" ] || { complain "docs/life-of-a-batch.md: there is no $file"; continue; }
    grep -qE "^[a-z].*[ *]$function\(|\(\*$function\)\(" "$file" || complain "docs/life-of-a-batch.md: $file has no $function"
done <<<"$stops"
[ $failures = 0 ]
