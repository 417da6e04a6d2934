# shellcheck shell=sh
# A temporary folder for a test by script, in $work; it goes when the script ends. Sourced, no test itself.
export LC_ALL=C # awk and others read and write numbers by it
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
