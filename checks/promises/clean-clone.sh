#!/usr/bin/env bash
# Clones the project as it is committed and runs README's commands there: the first, or both.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
git clone -q . "$folder/flashtree"
cd "$folder/flashtree"
unset CARGO_TARGET_DIR
first=$(sed -n '/^```sh$/,/^```$/p' README.md | grep -m 1 -o '^cargo run [^#]*')
echo "\$ $first"
$first
grep -q '<svg' flashtree-report.html
if [ "${1-both}" = both ]; then
    grep -q '^\./check ' README.md
    ./check
fi
echo "clean clone: good"
