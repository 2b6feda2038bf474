#!/usr/bin/env bash
# What long values cost the device, with as many bytes of each length as are given. The file lies
# below target/, which is on a real disk more often than /tmp is.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

folder=target/commits
mkdir -p "$folder"
bash checks/promises/release.sh --example long_values "$folder" "$@"
