#!/usr/bin/env bash
# How much of its file a full database fills, with as many rounds and mebibytes as are given. The
# files lie below target/, which is on a real disk more often than /tmp is.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

folder=target/commits
mkdir -p "$folder"
bash checks/promises/release.sh --example capacity "$folder" "$@"
