#!/usr/bin/env bash
# Needs Python 3 for its csv, json and sqlite3; without it nothing is compared, which is said.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

cargo build -q --release -p flashtree-cli
if ! command -v python3 >/dev/null; then
    echo "python3 is not there: nothing is compared"
    exit
fi
exec python3 checks/promises/import-as-python-reads-it.py target/release/flashtree "$@"
