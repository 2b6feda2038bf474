#!/usr/bin/env bash
# Damages disks, chips and files with an index in so many rounds of each target, and adds up what
# came of the cases. A case that ends in any other way than those listed stops its target.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
export FLASHTREE_FUZZ_ROUNDS=$1
output=$(cargo test -q --workspace --test disks --test chips --test raw_flash --test files \
    refused_or_right -- --nocapture)
sed -nE 's/^fuzz (.*): ([0-9]+) right, ([0-9]+) typed errors, ([0-9]+) vouched for, ([0-9]+) older, 0 else$/\1 \2 \3 \4 \5/p' \
    <<<"$output" | awk '
    { print; right += $2; errors += $3; vouched += $4; older += $5 }
    END {
        print "checksums repaired, so that they vouch for what was read: " vouched
        print "the only word on the latest state destroyed, so that an older one was read: " older
        print "right data: " right ", typed errors: " errors
        print "cases that ended with right data or a typed error: " right + errors
    }'
