#!/usr/bin/env bash
# What flat-tree costs on a chip, beside the bounds: a line for each share of lookups.
set -euo pipefail
held=0
while read -r lookups operations bound; do
    row=$(bash checks/promises/release.sh --bin flashtree compare --format csv --tree flat-tree \
        --device toshiba-tc58dvg02a1ft00:blocks=1024 --memory-total 256KiB \
        --workload "uniform:ltu=$lookups" --ops "$operations")
    cost=$(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "device_us_per_op") at = i }
        NR == 2 { print $at }' <<<"$row")
    echo "$lookups lookups for a hundred updates: $cost us an operation, bound $bound"
    held=$((held + $(awk -v cost="$cost" -v bound="$bound" 'BEGIN { print cost != "" && cost <= bound }')))
done <<'END'
10 220000 79
200 600000 165
1000 2200000 170
END
echo "within the bound in $held of 3 cells"
