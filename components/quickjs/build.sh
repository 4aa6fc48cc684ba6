#!/bin/sh
# Builds fixtures/components/quickjs.wasm from the C sources in the crate rquickjs-sys.
#
# Needs clang and wasm-ld of version 16 or later (CLANG, WASM_LD), the builtins of compiler-rt for
# wasm32 (BUILTINS, a file), and cargo, which fetches the crate and builds the last step.
set -eu

version=0.14.0
checksum=cee271d0eeba64f0915b846cb7ae02e16faf3dfdffdca91731101d9d30fe3423

here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
clang=${CLANG:-clang}
linker=${WASM_LD:-wasm-ld}
builtins=${BUILTINS:-$("$clang" --target=wasm32-unknown-unknown -print-libgcc-file-name)}
work=${WORK:-$root/target/quickjs}
rm -rf "$work"
mkdir -p "$work/fetch/src"

cat >"$work/fetch/Cargo.toml" <<END
[package]
name = "fetch"
version = "0.0.0"
edition = "2021"
[workspace]
[dependencies]
rquickjs-sys = "=$version"
END
: >"$work/fetch/src/lib.rs"
(cd "$work/fetch" && cargo vendor --quiet >/dev/null)
crate=$work/fetch/vendor/rquickjs-sys
grep -q "\"package\":\"$checksum\"" "$crate/.cargo-checksum.json" || {
    echo "rquickjs-sys $version is not the crate that this was written for" >&2
    exit 1
}

# Two functions of QuickJS tell the realm what they do; see realm.c.
sed -e 's/^int JS_EnqueueJob(JSContext \*ctx/int strowger_enqueue_job(JSContext *ctx/' \
    -e '/^static JSValue JS_ThrowStackOverflow(JSContext \*ctx)$/,/^{/s/^{/{ strowger_stack_passed = true;/' \
    "$crate/quickjs/quickjs.c" >"$work/quickjs.c"
[ "$(grep -c 'strowger_' "$work/quickjs.c")" = 2 ] || {
    echo "quickjs.c is not as expected" >&2
    exit 1
}

compile() {
    "$clang" --target=wasm32-unknown-unknown -O2 -std=gnu11 -DNDEBUG -D_GNU_SOURCE -DEMSCRIPTEN=1 \
        -DFE_DOWNWARD=0 -DFE_UPWARD=0 -mbulk-memory -mnontrapping-fptoint -msign-ext \
        -ffunction-sections -fdata-sections -nostdlibinc \
        -isystem "$crate/vendor/wasi-libc/include" -I"$crate/quickjs" -I"$here" \
        -include "$here/hooks.h" -c "$1" -o "$work/$2.o" $3
}
compile "$work/quickjs.c" quickjs -w
compile "$crate/quickjs/libregexp.c" libregexp -w
compile "$crate/quickjs/libunicode.c" libunicode -w
compile "$crate/quickjs/dtoa.c" dtoa -w
compile "$crate/wasm-shim/shim.c" shim -w
compile "$here/realm.c" realm "-Wall -Wextra"

# The stack lies first, so that one that overflows traps and writes over nothing.
"$linker" --no-entry --gc-sections --strip-all --stack-first -z stack-size=1048576 \
    --export=prepare "$work/realm.o" "$work/quickjs.o" "$work/libregexp.o" "$work/libunicode.o" \
    "$work/dtoa.o" "$work/shim.o" "$crate/vendor/wasi-libc/lib/libc.a" "$builtins" \
    -o "$work/quickjs.core.wasm"

cd "$root"
cargo run --quiet --locked --workspace --example prepare -- \
    "$work/quickjs.core.wasm" wit/script.wit fixtures/components/quickjs.wasm
cd fixtures/components
sha256sum *.wasm >SHA256SUMS
