#!/usr/bin/env bash
# Runs `flashtree torture` with debug assertions, by the program that the tests are built with: so
# nothing is built for it where they were.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
cargo test -q --workspace --test program --no-run
exec "${CARGO_TARGET_DIR:-target}/debug/flashtree" torture "$@"
