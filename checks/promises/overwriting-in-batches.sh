#!/usr/bin/env bash
# What overwriting costs the device: entries, updates in a batch, and updates are given. The file
# lies below target/, which is on a real disk more often than /tmp is.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

folder=target/commits
mkdir -p "$folder"
bash checks/promises/release.sh --example overwriting "$folder" "$@"
