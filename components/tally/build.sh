#!/bin/sh
# Compiles tally.js to a core module: build.sh OUT
set -eu
here=$(cd "$(dirname "$0")" && pwd)
exec "$here/../javascript/build.sh" "$here/tally.js" "$1"
