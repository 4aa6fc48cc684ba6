#!/bin/sh
# Compiles the script realm to a core module: build.sh OUT. engine.sh lists the required tools.
set -eu
case $1 in /*) out=$1 ;; *) out=$PWD/$1 ;; esac
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
. "$here/engine.sh"
compile "$here/realm.c" realm "-Wall -Wextra"
link "$work/realm.core.wasm" "$work/realm.o"
freeze "$work/realm.core.wasm" wit/script.wit script "$out"
