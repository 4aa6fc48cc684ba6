# QuickJS from the C sources in the crate rquickjs-sys, compiled for WebAssembly. To be sourced.
#
# Sets clang, linker, work, engine (the include folders) and objects (what to link).
# Needs clang and wasm-ld of version 16 or later (CLANG, WASM_LD), the builtins of compiler-rt for
# wasm32 (BUILTINS, a file), and cargo, which fetches the crate. Compiled objects are kept in a
# directory (WORK) for the next guest.

version=0.14.0
checksum=cee271d0eeba64f0915b846cb7ae02e16faf3dfdffdca91731101d9d30fe3423

quickjs=$root/components/quickjs
clang=${CLANG:-clang}
linker=${WASM_LD:-wasm-ld}
builtins=${BUILTINS:-$("$clang" --target=wasm32-wasi -print-libgcc-file-name)}
work=${WORK:-$root/target/quickjs}
crate=$work/fetch/vendor/rquickjs-sys
objects="$work/quickjs.o $work/libregexp.o $work/libunicode.o $work/dtoa.o $work/shim.o
    $crate/vendor/wasi-libc/lib/libc.a $builtins"

compile() {
    "$clang" --target=wasm32-unknown-unknown -O2 -std=gnu11 -DNDEBUG -D_GNU_SOURCE -DEMSCRIPTEN=1 \
        -DFE_DOWNWARD=0 -DFE_UPWARD=0 -mbulk-memory -mnontrapping-fptoint -msign-ext \
        -ffunction-sections -fdata-sections -nostdlibinc \
        -isystem "$crate/vendor/wasi-libc/include" -I"$crate/quickjs" -I"$quickjs" \
        -include "$quickjs/hooks.h" -c "$1" -o "$work/$2.o" $3
}

# Links objects and the engine to a core module: link OUT OBJECT...
# The stack comes first, so that an overflow traps instead of overwriting data.
link() {
    linked=$1
    shift
    "$linker" --no-entry --gc-sections --strip-all --stack-first -z stack-size=1048576 \
        --export=prepare "$@" $objects -o "$linked"
}

# Runs `prepare` of a core module, and writes a module with the resulting memory and the world:
# freeze CORE WIT WORLD OUT.
freeze() {
    (cd "$root" && cargo run --quiet --locked -p strowger-wasm --example prepare -- "$@")
}

compiled="$version $("$clang" --version | head -n 1) $(cksum <"$quickjs/engine.sh")"
if [ "$(cat "$work/compiled" 2>/dev/null)" != "$compiled" ]; then
    rm -rf "$work"
    mkdir -p "$work/fetch/src"
    cat >"$work/fetch/Cargo.toml" <<END_OF_MANIFEST
[package]
name = "fetch"
version = "0.0.0"
edition = "2021"
[workspace]
[dependencies]
rquickjs-sys = "=$version"
END_OF_MANIFEST
    : >"$work/fetch/src/lib.rs"
    (cd "$work/fetch" && cargo vendor --quiet >/dev/null)
    grep -q "\"package\":\"$checksum\"" "$crate/.cargo-checksum.json" || {
        echo "rquickjs-sys $version is not the crate that this was written for" >&2
        exit 1
    }

    # Patches two functions of QuickJS; see hooks.h.
    sed -e 's/^int JS_EnqueueJob(JSContext \*ctx/int strowger_enqueue_job(JSContext *ctx/' \
        -e '/^static JSValue JS_ThrowStackOverflow(JSContext \*ctx)$/,/^{/s/^{/{ strowger_stack_passed = true;/' \
        "$crate/quickjs/quickjs.c" >"$work/quickjs.c"
    [ "$(grep -c 'strowger_' "$work/quickjs.c")" = 2 ] || {
        echo "quickjs.c is not as expected" >&2
        exit 1
    }
    compile "$work/quickjs.c" quickjs -w
    compile "$crate/quickjs/libregexp.c" libregexp -w
    compile "$crate/quickjs/libunicode.c" libunicode -w
    compile "$crate/quickjs/dtoa.c" dtoa -w
    compile "$crate/wasm-shim/shim.c" shim -w
    echo "$compiled" >"$work/compiled"
fi
