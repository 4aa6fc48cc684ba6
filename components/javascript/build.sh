#!/bin/sh
# Compiles an actor in JavaScript to a core module: build.sh SOURCE OUT.
#
# SOURCE is an ECMAScript module, which is evaluated here. Its imports `strowger:...` become the
# imports of the component. ../quickjs/engine.sh lists the required tools.
set -eu
case $1 in /*) source=$1 ;; *) source=$PWD/$1 ;; esac
case $2 in /*) out=$2 ;; *) out=$PWD/$2 ;; esac
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
. "$root/components/quickjs/engine.sh"

name=$(basename "$source")
{
    printf 'const char source_name[] = "%s";\nconst char source[] = {' "$name"
    od -An -v -tx1 "$source" | sed 's/\([0-9a-f][0-9a-f]\)/0x\1,/g'
    printf '0};\nconst unsigned long source_length = sizeof source - 1;\n'
} >"$work/source.c"
with=
for one in $(sed -n "s/.*[\"']strowger:\([a-z]*\)[\"'].*/\1/p" "$source" | sort -u); do
    with="$with -DWITH_$one"
done
compile "$work/source.c" source -w
compile "$here/imports.c" imports "-Wall -Wextra $with"
compile "$here/actor.c" actor "-Wall -Wextra $with"
link "$work/actor.core.wasm" "$work/actor.o" "$work/imports.o" "$work/source.o"
freeze "$work/actor.core.wasm" wit/component.wit durable "$out"
