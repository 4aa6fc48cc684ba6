#!/bin/sh
# Compiles upper.c to a core module: build.sh OUT
set -eu
cd "$(dirname "$0")"
object=$(mktemp)
trap 'rm -f "$object"' EXIT
"${CLANG:-clang}" --target=wasm32 -Os -ffreestanding -c upper.c -o "$object"
"${WASM_LD:-wasm-ld}" --no-entry --strip-all -z stack-size=16384 "$object" -o "$1"
