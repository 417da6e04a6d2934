#!/usr/bin/env bash
# A newcomer's afternoon: does what the pages in docs/contributing say, to the letter, in a copy of the sources: every block below a line
#
#   <!-- file: PATH -->            is a new file
#   <!-- after "TEXT" in PATH -->  goes behind the one line of PATH that holds TEXT
#   <!-- run -->                   is run when all is built, by a shell in an empty folder that knows `batchwise`, $source, $build and $data
#
# and builds and runs the result. So a page cannot go stale. The copy is built without optimisation, with ccache if it is there.
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/support/folder.sh
. "$top/tests/support/folder.sh"
copy=$work/batchwise
mkdir "$copy" "$work/run"

cd "$top"
if git rev-parse --show-toplevel >/dev/null 2>&1; then
    git ls-files -z --cached --others --exclude-standard -- . ':!data' ':!tests/data' ':!tests/keras/cases' |
        while IFS= read -r -d '' file; do [ ! -e "$file" ] || printf '%s\0' "$file"; done | xargs -0 cp --parents -t "$copy"
else
    cp -r CMakeLists.txt CMakePresets.json LICENSE cmake src include tools man completions tests bench examples docs "$copy"
fi

# One page: applies its blocks, and writes what is to be run to $work/run/NAME.sh.
apply() {
    awk -v copy="$copy" -v script="$work/run/$(basename "$1" .md).sh" '
    function fail(text) { printf "%s:%d: %s\n", FILENAME, FNR, text >"/dev/stderr"; failed = 1; exit 1 }
    function insert(path, text, block,   line, found, all) {
        while ((getline line < path) > 0) {
            all = all line "\n"
            if (index(line, text)) { found++; all = all block }
        }
        close(path)
        if (found != 1) fail("\"" text "\" stands in " found + 0 " lines of " path ", not in one")
        printf "%s", all >path
        close(path)
    }
    function finish() {
        if (what == "file") {
            if (system("test -e \"" copy "/" path "\"") == 0) fail(path " is there already")
            system("mkdir -p \"$(dirname \"" copy "/" path "\")\"")
            printf "%s", block >(copy "/" path)
            close(copy "/" path)
        } else if (what == "after") insert(copy "/" path, text, block)
        else if (what == "run") {
            gsub(/\n! [^\n]*/, "& || exit 1", block) # -e does not look at what ! turns round
            printf "%s", block >>script
        }
        what = ""
    }
    inside && /^```$/ { inside = 0; finish(); next }
    inside { block = block $0 "\n"; next }
    /^```/ { inside = 1; block = ""; blocks += what != ""; next }
    /^<!-- / {
        if (match($0, /^<!-- file: [^ ]+ -->$/)) { what = "file"; path = $3 }
        else if (match($0, /^<!-- after ".*" in [^ ]+ -->$/)) {
            what = "after"
            path = $(NF - 1)
            text = $0
            sub(/^<!-- after "/, "", text); sub(/" in [^ ]+ -->$/, "", text)
        } else if ($0 == "<!-- run -->") what = "run"
        else fail("what does this ask for?")
        next
    }
    what != "" { fail("expected a block right below the line that says where it goes") }
    END {
        if (failed) exit 1
        if (inside) fail("the block does not end")
        if (blocks == 0) fail("no block is marked")
    }
    ' "$1"
}

pages=()
for page in "$top"/docs/contributing/*.md; do
    [ "$(basename "$page")" = README.md ] || pages+=("$page")
done
for page in "${pages[@]}"; do
    apply "$page"
done

launcher=()
if command -v ccache >/dev/null; then
    launcher=(-DCMAKE_C_COMPILER_LAUNCHER=ccache)
    export CCACHE_BASEDIR=$copy CCACHE_NOHASHDIR=1
fi
cmake -S "$copy" -B "$copy/build" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_C_FLAGS_DEBUG=-O0 -DBW_WERROR=ON "${launcher[@]}" >"$work/log" 2>&1 &&
    cmake --build "$copy/build" --target batchwise_command test_gradient_ops >>"$work/log" 2>&1 || { tail -n 40 "$work/log"; exit 1; }

export source=$copy build=$copy/build data=$top/data
batchwise() { "$build/batchwise" "$@"; }
export -f batchwise
count=0
for script in "$work"/run/*.sh; do
    folder=$work/$(basename "$script" .sh)
    mkdir "$folder"
    if ! (cd "$folder" && bash -euo pipefail "$script") >"$work/log" 2>&1; then
        printf 'FAILED: %s\n' "$(basename "$script" .sh)"
        cat "$script" "$work/log"
        exit 1
    fi
    count=$((count + 1))
done
printf '%d pages, all as they say\n' "$count"
