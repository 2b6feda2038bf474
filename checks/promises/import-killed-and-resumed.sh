#!/usr/bin/env bash
# Imports the departures into a file, as many times over as each of TIMES says, with row numbers
# that run on. The importing process is killed (SIGKILL) three times, at moments that SEED decides;
# each time the file is checked, all rows that were called safe are looked for, and the import is
# resumed. In the end the export has to be the sorted input, byte for byte.
#
# usage: import-killed-and-resumed.sh SEED TIMES...
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
export LC_ALL=C

cargo build -q --release --workspace --bin flashtree --example departures
target=${CARGO_TARGET_DIR:-target}
case $target in /*) ;; *) target=$(pwd)/$target ;; esac
program=$target/release/flashtree
# Below target/, which is on a real disk more often than /tmp is.
mkdir -p "$target/import"
folder=$(mktemp -d "$target/import/XXXXXX")
importer=
end() {
    [ -z "$importer" ] || kill -KILL "$importer" 2>/dev/null || true
    rm -rf "$folder"
}
trap end EXIT
cd "$folder"

RANDOM=$1
shift
readonly key=tailnum,time_hour,carrier,flight,row value=dep_delay,arr_delay kills=3

fail() {
    echo "failed: $*" >&2
    exit 1
}

# Rows of a file or of standard input in the order of their keys, without the row of headings: the
# fields of the key, and then those of the value.
sorted() {
    tail -n +2 "$@" | awk -F, -v OFS=, '{ print $2, $3, $4, $5, $1, $6, $7 }' \
        | sort -t, -k1,1 -k2,2 -k3,3 -k4,4 -k5,5n
}

# The rows up to which the import called everything safe.
safe_rows() {
    local text
    text=$(cat a.db.import 2>/dev/null) || text=
    text=${text#*\"rows\":}
    echo "${text%%[!0-9]*}"
}

import() {
    "$program" import a.db rows.csv --key $key --value $value --quiet --buffer "$buffer" "$@"
}

# Starts the import and kills it, once it has $1 rows and some milliseconds more.
kill_import() {
    local least=$1 milliseconds=$2 safe status=0
    shift 2
    "$program" import a.db rows.csv --key $key --value $value --quiet --buffer "$buffer" "$@" &
    importer=$!
    while safe=$(safe_rows) && [ "${safe:-0}" -lt "$least" ]; do
        kill -0 "$importer" 2>/dev/null || break
        sleep 0.01
    done
    sleep "$(printf '0.%03d' "$milliseconds")"
    kill -KILL "$importer" 2>/dev/null || true
    wait "$importer" 2>/dev/null || status=$?
    importer=
    [ "$status" -eq 137 ] || fail "the import ended with $status before it was killed"
}

# What was called safe before the kill has to be there.
check_safe_rows() {
    local safe
    safe=$(safe_rows)
    "$program" check a.db --quiet
    "$program" export a.db out.csv --key $key --value $value --quiet
    head -n $((${safe:-0} + 1)) rows.csv | sorted >safe.csv
    tail -n +2 out.csv | sort >there.csv
    local lost
    lost=$(sort safe.csv | comm -23 - there.csv | wc -l)
    echo "killed when ${safe:-0} rows were safe; there are $(wc -l <there.csv), lost: $lost"
    [ "$lost" -eq 0 ] || fail "$lost rows are lost"
}

run() {
    local times=$1 rows equal round
    "$target/release/examples/departures" "$times" >rows.csv
    rows=$(($(wc -l <rows.csv) - 1))
    # Eight chunks and more, so that there is something to resume.
    buffer=$((rows * 8))
    "$program" create a.db --key 'tuple(text,text,text,text,u64)' --value 'tuple(text,text)' \
        --overwrite
    for round in $(seq $kills); do
        local least=$((rows * (round - 1) / 4 + RANDOM % 1000 * (rows / 5000)))
        kill_import "$least" $((RANDOM % 300)) $([ "$round" -eq 1 ] || echo --resume)
        check_safe_rows
    done
    import --resume
    "$program" check a.db
    "$program" export a.db out.csv --key $key --value $value --quiet
    sorted rows.csv >expected.csv
    tail -n +2 out.csv | cmp - expected.csv || fail "the export is not the sorted input"
    equal=$(tail -n +2 out.csv | sort | comm -12 - <(sort expected.csv) | wc -l)
    [ "$equal" -eq "$rows" ] || fail "$equal of $rows rows are equal"
    echo "equal rows of $times times the departures: $equal"
    total=$((total + equal))
}

total=0
for times in "$@"; do run "$times"; done
echo "equal rows: $total"
