#!/bin/sh
# Makes sure there is a Rust compiler for wasm32-unknown-unknown: the current toolchain's own target, else Debian's
# compiler and its standard library's source, unpacked into target/tools/rustc-web. guest/artifact finds either.
. "$(dirname "$0")/common.sh"

target=wasm32-unknown-unknown
choice=${VERBATIM_WASM_COMPILER:-}

has_target() {
    for file in "$(rustc --print sysroot)/lib/rustlib/$target/lib"/libstd-*; do
        [ -e "$file" ] && return 0
    done
    return 1
}

# A program to link with comes with no Rust.
have cc || apt_install gcc libc6-dev || fail "no C compiler (cc) was found; install one, for example gcc"
have rustc || fail "no Rust was found; install it with rustup (rust-version in Cargo.toml says which), then try again"

if [ "$choice" != distribution ]; then
    if has_target; then
        say "the current toolchain builds for $target"
        exit 0
    fi
    if have rustup; then
        say "adding $target to the current toolchain (two minutes at most)"
        limit 120 rustup target add "$target" >&2 && has_target && exit 0
        say "rustup could not add it"
    fi
    [ "$choice" != rustup ] || fail "VERBATIM_WASM_COMPILER=rustup allows nothing else"
fi

if "$tools/rustc-web/rustc" --version >/dev/null 2>&1; then
    say "target/tools/rustc-web builds for $target"
    exit 0
fi
if is_debian; then
    say "taking Debian's compiler instead (about 120 MB to fetch, 1 GB unpacked)"
    apt-cache show rustc-web >/dev/null 2>&1 || apt_update || true
    library=$(apt-cache depends libstd-rust-web-dev 2>/dev/null | sed -n 's/.*Depends: \(libstd-rust-web-[0-9].*\)/\1/p' | head -n 1)
    llvm=$(apt-cache depends "${library:-none}" 2>/dev/null | sed -n 's/.*Depends: \(libllvm[0-9]*\)/\1/p' | head -n 1)
    if [ -n "$llvm" ] &&
        apt_unpack "$tools/rustc-web" rustc-web rust-web-src libstd-rust-web-dev "$library" "$llvm"; then
        cat >"$tools/rustc-web/rustc" <<'END'
#!/bin/sh
here=$(cd "$(dirname "$0")" && pwd)
for folder in "$here"/usr/lib/*-linux-gnu*; do LD_LIBRARY_PATH=$folder; done
export LD_LIBRARY_PATH
exec "$here/usr/bin/rustc" "$@"
END
        chmod +x "$tools/rustc-web/rustc"
        say "unpacked $("$tools/rustc-web/rustc" --version)"
        exit 0
    fi
fi
fail "no compiler for $target could be had; with a network, run: rustup target add $target"
