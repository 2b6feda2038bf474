#!/usr/bin/env bash
# What flat-tree writes while a file is loaded and overwritten: entries and MiB of memory are given.
# The file lies below target/, which is on a real disk more often than /tmp is.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

folder=target/commits
mkdir -p "$folder"
bash checks/promises/release.sh --example turnover "$folder" "$@"
