#!/bin/sh
# Rebuilds every program of src/ into wasm/, and validates it. The same sources and tools give the
# same bytes. Needs Debian 12's clang, lld, wasi-libc, libclang-rt-dev-wasm32 and wabt.
# Usage: build.sh [OUTDIR]   (default: wasm/ beside this script; CLANG names another clang)
set -eu

here=$(cd "$(dirname "$0")" && pwd)
out=${1:-$here/wasm}
mkdir -p "$out"
out=$(cd "$out" && pwd)
cd "$here/src"

# The debug sections that wasi-libc brings along go; the name section stays, for readable reports.
common="--target=wasm32-wasi -O2 -std=gnu11 -ffp-contract=off -Wall -Wextra -Werror
        -Wl,--strip-debug"
features="-mbulk-memory -msign-ext -mnontrapping-fptoint -mmutable-globals"

for source in *.c; do
  name=${source%.c}
  case $name in
    fannkuch | mandel) proposals= ;;  # plain MVP
    # Plain MVP as well: with bulk memory clang 14 makes errno thread-local, wasi-libc's is not.
    cat | wasi) proposals= ;;
    *) proposals=$features ;;
  esac
  # shellcheck disable=SC2086  # the flags are words
  "${CLANG:-clang}" $common $proposals "$source" -o "$out/$name.wasm" -lm
  chmod 644 "$out/$name.wasm"
  wasm-validate "$out/$name.wasm"
  if [ -z "$proposals" ]; then
    wasm-validate --disable-bulk-memory --disable-sign-extension \
      --disable-saturating-float-to-int --disable-multi-value --disable-reference-types \
      --disable-simd "$out/$name.wasm"
  fi
done
