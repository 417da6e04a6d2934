# shellcheck shell=sh
# A temporary folder for a test by script, in $work; it goes when the script ends. Sourced, no test itself.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
