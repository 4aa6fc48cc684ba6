#!/bin/sh
# Builds fixtures/scripts/typescript.js, which bundles sucrase into one script. Needs npm.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
work=${WORK:-$root/target/typescript}
rm -rf "$work"
mkdir -p "$work"
cp "$here/entry.js" "$work"
cd "$work"
npm install --silent --no-audit --no-fund sucrase@3.35.1 esbuild@0.28.2
{
    echo '/* sucrase 3.35.1, MIT: see components/typescript. */'
    node_modules/.bin/esbuild entry.js --bundle --format=iife --platform=neutral \
        --main-fields=module,main --minify --log-level=warning
} >"$root/fixtures/scripts/typescript.js"
