#!/usr/bin/env bash
# run.sh FOLDER SECONDS [TARGET...]: fuzzes each target for so many seconds with the program in FOLDER, from its seeds and what was
# found before. FUZZ_OPTIONS holds more options of libFuzzer. A file that fails lies in FOLDER/fuzz/failed: mend what it shows, and put
# it into tests/fuzz/found/TARGET.
set -euo pipefail
cd "$(dirname "$0")/../.."
folder=$(realpath "$1") seconds=$2
shift 2
fuzz=$folder/tests/fuzz/fuzz
mkdir -p "$folder/fuzz/failed"
[ $# -gt 0 ] || read -ra targets <<<"$("$fuzz" 2>&1 | sed -n 's/.*targets: //p')"
[ $# -eq 0 ] || targets=("$@")
[ ${#targets[@]} -gt 0 ] || {
    echo "run.sh: $fuzz names no targets" >&2
    exit 1
}

export ASAN_OPTIONS=allocator_may_return_null=1:detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1
failed=0
for target in "${targets[@]}"; do
    corpus=$folder/fuzz/corpus/$target
    mkdir -p "$corpus"
    read -ra patterns <<<"$(sed -n "s/^$target //p" tests/fuzz/seeds.txt)"
    for file in ${patterns[@]+"${patterns[@]}"} tests/fuzz/found/"$target"/*; do
        # shellcheck disable=SC2086
        for seed in $file; do
            [ ! -f "$seed" ] || cp -n "$seed" "$corpus/$(basename "$seed")"
        done
    done
    dictionary=tests/fuzz/$target.dict
    log=$folder/fuzz/$target.log
    # A file has a second of the processor's time (fuzz.h); the limit here, of the clock, is for those that never end.
    if "$fuzz" --target="$target" -max_total_time="$seconds" -timeout=60 -malloc_limit_mb=64 -rss_limit_mb=1024 -max_len=65536 \
        ${FUZZ_OPTIONS:-} $([ ! -f "$dictionary" ] || echo "-dict=$dictionary") \
        -print_final_stats=1 -artifact_prefix="$folder/fuzz/failed/$target-" "$corpus" >"$log" 2>&1; then
        printf '%-12s %s runs, %s files\n' "$target" "$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")" \
            "$(find "$corpus" -type f | wc -l)"
    else
        failed=1
        printf '%-12s FAILED\n' "$target"
        grep -E 'ERROR|SUMMARY|runtime error|^fuzz:|Test unit written' "$log" >&2 || tail -20 "$log" >&2
    fi
done
exit $failed
