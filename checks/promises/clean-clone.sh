#!/usr/bin/env bash
# Clones the project as it is committed and runs README's commands there: the first, or both.
# Alone, the first takes what other promises have compiled of foreign crates.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

what=${1-both} folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
if [ "$what" = both ]; then
    unset CARGO_TARGET_DIR
else
    mkdir -p "${CARGO_TARGET_DIR:-target}"
    export CARGO_TARGET_DIR=$(cd "${CARGO_TARGET_DIR:-target}" && pwd)
    # Always the same folder: cargo names what it builds by it.
    rmdir "$folder"
    folder=$CARGO_TARGET_DIR/clean-clone
    rm -rf "$folder"
fi
git clone -q . "$folder/flashtree"
cd "$folder/flashtree"
first=$(sed -n '/^```sh$/,/^```$/p' README.md | grep -m 1 -o '^cargo run [^#]*')
echo "\$ $first"
$first
grep -q '<svg' flashtree-report.html
if [ "$what" = both ]; then
    grep -q '^\./check ' README.md
    ./check
fi
echo "clean clone: good"
