#!/bin/sh
# Builds the benchmark programs natively with gcc -O2 into OUTDIR, for comparison with wasm.
# Usage: native.sh OUTDIR   (CC names another compiler)
set -eu

if [ $# -ne 1 ]; then
  echo "usage: native.sh OUTDIR" >&2
  exit 2
fi
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"

# No contraction of a * b + c: wasm has no fused operation, and the outputs must be equal.
flags="-O2 -std=gnu11 -ffp-contract=off -Wall -Wextra -Werror"

grep -v '^#' "$here/programs.txt" | while read -r name _; do
  # shellcheck disable=SC2086  # the flags are words
  "${CC:-gcc}" $flags "$here/src/$name.c" -o "$1/$name" -lm
done
