#!/usr/bin/env bash
# la-tree on a chip in 256 KiB in all: a line for each share of lookups, with what an operation costs
# and the most memory that was taken.
set -euo pipefail
held=0
while read -r lookups deletes; do
    row=$(bash checks/promises/release.sh --bin flashtree compare --format csv --tree la-tree \
        --device toshiba-tc58dvg02a1ft00:blocks=1024 --memory-total 256KiB \
        --workload "uniform:ltu=$lookups,preload=200000,updates=200000,deletes=$deletes") ||
        continue
    # Columns are counted from the end, for the workload has commas.
    read -r cost most < <(awk -F, 'NR == 1 { for (i = 1; i <= NF; i++) at[$i] = i - NF }
        NR == 2 { print $(NF + at["device_us_per_op"]), $(NF + at["peak_memory_bytes"]) }' <<<"$row")
    echo "$lookups lookups for a hundred updates, $deletes % deletes: $cost us an operation, $most bytes"
    held=$((held + (most > 0 && most <= 256 * 1024)))
done <<'END'
10 0
200 0
1000 0
10 34
200 34
1000 34
END
echo "inside 256 KiB in $held of 6 cells"
