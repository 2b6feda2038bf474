#!/usr/bin/env bash
# How long it takes to open a database with as many megabytes of entries as are given, after its
# process was killed. The file lies below target/, which is on a real disk more often than /tmp is.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

folder=target/opening
mkdir -p "$folder"
bash checks/promises/release.sh --example opening "$folder" "$@"
