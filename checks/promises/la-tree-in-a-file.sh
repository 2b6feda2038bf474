#!/usr/bin/env bash
# How fast la-tree reads and overwrites in a file beside b-plus, with so many entries and mebibytes
# of memory. The files lie below target/, which is on a real disk more often than /tmp is.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

folder=target/reading
mkdir -p "$folder"
bash checks/promises/release.sh --example reading "$folder" --tree la-tree --beside b-plus --entries "$1" --memory "$2"
