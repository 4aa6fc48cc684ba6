#!/bin/sh
# The realm of scripts to a core module, ready to run: build.sh OUT. See engine.sh for what it needs.
set -eu
case $1 in /*) out=$1 ;; *) out=$PWD/$1 ;; esac
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
. "$here/engine.sh"
compile "$here/realm.c" realm "-Wall -Wextra"
link "$work/realm.core.wasm" "$work/realm.o"
freeze "$work/realm.core.wasm" wit/script.wit script "$out"
