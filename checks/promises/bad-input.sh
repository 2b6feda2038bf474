#!/usr/bin/env bash
# Gives the program bad input of every kind. Each must end with exit code 1 or 2 and exactly one
# line on standard error, which must hold the words that help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

cargo build -q --release --workspace --bin flashtree
program=$(pwd)/${CARGO_TARGET_DIR:-target}/release/flashtree
case ${CARGO_TARGET_DIR:-target} in /*) program=${CARGO_TARGET_DIR}/release/flashtree ;; esac
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
printf 'sensor,value\n1,20\n2,warm\n' >"$folder/readings.csv"
{ printf '"' && head -c 70000000 /dev/zero | tr '\0' a; } >"$folder/endless.csv"
cat >"$folder/half.toml" <<'END'
maker = "nobody"
model = "half a chip"
kind = "nand"
about = "a chip without times"
END

good=0 all=0
refused() {
    local words=$1 status=0
    shift
    all=$((all + 1))
    (cd "$folder" && "$program" "$@" >out 2>err) || status=$?
    if [ "$status" -ge 1 ] && [ "$status" -le 2 ] && [ "$(wc -l <"$folder/err")" -eq 1 ] \
        && grep -q -- "$words" "$folder/err"; then
        good=$((good + 1))
        sed 's/^/  /' "$folder/err"
    else
        echo "badly refused ($status): $*"
        cat "$folder/err"
    fi
}

refused winbond-w25n01gv compare --device winbond-w25n01gw
refused b-plus compare --trees b-puls
refused weather compare --workload wether
refused page-map compare --ftl page-mop
refused 'least' compare --memory 1KiB
refused "ops" compare --ops 0
refused "ops" compare --ops many
refused "node" compare --trees b-plus:nodes=512
refused "node" compare --trees b-plus:node=3000
refused "twice\|once" compare --trees b-plus:node=512,node=1024
refused 'sensor' compare --workload csv:key=place --input readings.csv
refused 'readings.csv.*3.*warm' compare --workload csv:key=value,entry=4+4 --input readings.csv
refused 'nowhere.csv' compare --workload csv:key=place --input nowhere.csv
refused 'read' compare --device samsung-k9k1g08u0a
refused 'half' compare --device ./half.toml
refused 'full' compare --device winbond-w25n01gv:blocks=24 --workload flights --trees b-plus
refused 'NUL' compare --workload csv:key=place --input /dev/zero
refused '64 MiB' compare --workload csv:key=place --input endless.csv
refused 'too many' compare --device winbond-w25n01gv:blocks=67108863
refused 'too many' compare --ops 18446744073709551615
echo "refused well: $good of $all"
