#!/usr/bin/env bash
# What a commit under every costs the device, with as many commits as are
# given. The files lie below target/, which is on a real disk more often than /tmp is.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

folder=target/commits
mkdir -p "$folder"
bash checks/promises/release.sh --example commit_cost "$folder" "$@"
