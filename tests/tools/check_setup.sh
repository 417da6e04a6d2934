#!/usr/bin/env bash
# tools/setup with a dpkg-query, an apt-get and a sudo that only tell: what would it install, and how?
set -euo pipefail
top=$(cd "$(dirname "$0")/../.." && pwd)
# shellcheck source=tests/support/folder.sh
. "$top/tests/support/folder.sh"
failures=0

fake() { printf '#!/bin/sh\n%s\n' "$2" >"$work/$1" && chmod +x "$work/$1"; }
fake dpkg-query 'for package; do :; done; case " $ABSENT " in *" $package "*) exit 1 ;; esac; echo "${STATE:-installed} "'
fake apt-get 'echo "apt-get $*" >>"$LOG"; exit ${APT:-0}'
fake id 'echo "${USER_ID:-0}"'
fake sudo '[ "$SUDO" = yes ] && shift && case $1 in --*) shift ;; esac && echo sudo >>"$LOG" && "$@"'

# expect TEXT CODE TARGET [VARIABLE=VALUE...]: what is called and printed, in one line, holds TEXT ("": nothing at all)
expect() {
    local code=0 output
    : >"$work/log"
    output=$(env "${@:4}" LOG="$work/log" PATH="$work:$PATH" "$top/tools/setup" "$3" 2>&1) || code=$?
    output=$(echo $(cat "$work/log") "$output")
    if [ $code != "$2" ] || [[ $output != *"$1"* ]] || { [ -z "$1" ] && [ -n "$output" ]; }; then
        printf 'FAILED: %s\n  expected %s and "%s", found %d and "%s"\n' "${*:3}" "$2" "$1" $code "$output"
        failures=$((failures + 1))
    fi
}

install='apt-get install -y --no-install-recommends'
expect '' 0 ci
expect '' 0 build ABSENT="libcmocka-dev clang"
expect "apt-get update $install cmake scdoc tools/setup: installing cmake scdoc" 0 build ABSENT="scdoc cmake clang"
expect "apt-get update $install libcmocka-dev tools" 0 test ABSENT="clang libcmocka-dev"
expect "$install libcmocka-dev clang tools" 0 ci ABSENT="clang libcmocka-dev"
expect "$install gcc libc6-dev make cmake" 0 build STATE=not-installed
expect "sudo apt-get update sudo $install gcc tools" 0 build ABSENT=gcc USER_ID=1000 SUDO=yes
expect "Run: sudo apt-get update && sudo $install gcc" 1 build ABSENT=gcc USER_ID=1000 SUDO=no
expect 'that failed' 1 build ABSENT=gcc APT=100
expect 'usage:' 2 nonsense
[ $failures = 0 ] && echo "10 cases, 0 failed"
