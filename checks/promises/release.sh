#!/usr/bin/env bash
# Builds the program `flashtree`, or an example, optimised, and runs it with the arguments behind:
# `release.sh --bin flashtree compare`, `release.sh --example capacity FOLDER`. All promises build
# with --workspace: with -p each package would have other features, and all below it be built again.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

cargo build -q --release --workspace "$1" "$2"
folder=${CARGO_TARGET_DIR:-target}/release
[ "$1" = --bin ] || folder=$folder/examples
exec "$folder/$2" "${@:3}"
