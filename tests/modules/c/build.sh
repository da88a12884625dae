#!/bin/sh
# Makes checksum.wasm anew. It needs clang and lld (Debian's do), `verbatim` in the path and, where the contract has changed,
# wit-bindgen (`cargo install wit-bindgen-cli --version 0.61.1 --no-default-features --features c`) for new bindings.
set -eu
cd "$(dirname "$0")"
if [ "${1-}" = --bindings ]; then
  wit-bindgen c ../../../wit --world module --out-dir bindings
fi
core=$(mktemp)
trap 'rm -f "$core"' EXIT
clang --target=wasm32 -std=c11 -O2 -Wall -Wextra -Werror -ffreestanding -fno-builtin -nostdlib -Ilibc -Ibindings \
  -Wl,--no-entry -Wl,--strip-debug -o "$core" checksum.c memory.c bindings/module.c bindings/module_component_type.o
verbatim module wrap "$core" -o checksum.wasm
