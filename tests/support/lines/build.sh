#!/bin/sh
# Rebuilds the modules with DWARF from lines.c. Needs Debian 12's clang and lld. as.wasm and its source map are
# AssemblyScript's (npm install assemblyscript), without the sources that it puts into the map:
#   asc lines.ts --sourceMap --runtime stub --use abort= -o as.wasm -O0
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
# Needs clang 22.
clang-22 --target=wasm32 -nostdlib -Wl,--no-entry -fdebug-compilation-dir=/src -g -fdebug-info-for-profiling -O1 \
  profiling.cc -o "$out/profiling.wasm"
