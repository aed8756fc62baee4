#!/bin/sh
# Rebuilds the modules with DWARF from lines.c. Needs Debian 12's clang and lld.
set -eu
cd "$(dirname "$0")"
out=../../fuzz/corpus/dwarf
build() {  # NAME FLAGS...
  name=$1
  shift
  clang --target=wasm32 -nostdlib -Wl,--no-entry -fdebug-compilation-dir=/src -g "$@" lines.c -o "$out/$name.wasm"
}
build lines4 -gdwarf-4 -O2
build lines5 -gdwarf-5 -O2
build plain5 -gdwarf-5 -O0
build plain4 -gdwarf-4 -O0
