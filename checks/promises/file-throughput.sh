#!/usr/bin/env bash
# How fast a disk in a file is beside a plain direct-I/O program, with as many megabytes as are
# given. The files lie below target/, which is on a real disk more often than /tmp is.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

folder=target/throughput
mkdir -p "$folder"
bash checks/promises/release.sh --example throughput "$folder" "$@"
