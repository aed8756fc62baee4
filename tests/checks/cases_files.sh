#!/usr/bin/env bash
# Runs the users' cases about files: profiles, traces, and the files that diagnostic tools read.
#   cases_files.sh UPTIER_TOOL WORK_DIR
# The cases are not part of this project. The script looks for them in $UPTIER_CASES, otherwise in
# shared/cases next to the project. Exits with 77 (and the reason) if they are absent.
set -uo pipefail
tool=$1 work=$2
project=$(cd "$(dirname "$0")/../.." && pwd)
cases=${UPTIER_CASES:-$project/../shared/cases}

skip() { echo "SKIPPED: users' cases about files: $*"; exit 77; }
[[ -d $cases/users && -d $cases/security ]] || skip "no $cases/users (set UPTIER_CASES)"
[[ -x $tool ]] || skip "the uptier tool is not built ($tool)"
command -v wat2wasm >/dev/null || skip "no wat2wasm (Debian's wabt)"
rm -rf "$work"; mkdir -p "$work"; cd "$work" || exit 1

failed=0
check() { # NAME WANTED GOT
  if [[ $3 == "$2" ]]; then echo "ok      $1"; return; fi
  echo "FAILED  $1: \"$3\" instead of \"$2\""; failed=1
}
part_skipped() { echo "SKIPPED $1: $2"; }
wat2wasm "$cases/users/01-stale-perf-map/loop.wat" -o loop.wasm || exit 1
run_loop() { "$tool" run "$@" --invoke main loop.wasm 300 2>err; echo "exit $?"; }

if unshare --pid --fork --mount-proc true 2>/dev/null; then
  for option in perf_map jit_dump; do for start in 1 2; do
    got=$(unshare --pid --fork --mount-proc "$tool" run -O $option=on --invoke main loop.wasm 300 2>err; echo "exit $?")
    check "01-stale-perf-map $option, start $start" $'300\nexit 0' "$got"
  done; done
else
  part_skipped 01-stale-perf-map "no process ids of its own here (unshare)"
fi

if command -v llvm-profdata >/dev/null; then
  got=$(UPTIER=$tool bash "$cases/users/07-llvm-text-cs-bit/run.sh" | sed -n 's/^exported: //p; s/^Total functions: //p' | tr '\n' ' ')
  check "07-llvm-text-cs-bit: exported, shown, shown as context-sensitive" "19 19 0 " "$got"
else
  part_skipped 07-llvm-text-cs-bit "no llvm-profdata"
fi

program=$project/examples/programs/wasm/objects.wasm
got=$(UPTIER=$tool bash "$cases/users/08-llvm-import-no-effect/run.sh" "$program" 9000 |
  sed -n 's/.*stale, \([0-9]*\) optimized at once.*/\1/p' | tr '\n' ' ')
read -r own imported <<<"$got"
check "08-llvm-import-no-effect: $own methods optimized at once, imported $imported" 1 \
  "$((own > 0 && 2 * imported >= own))"

run_loop --profile v1.upf >/dev/null
ln -s v1.upf current.upf
check "09-profile-symlink" $'300\nexit 0' "$(run_loop --profile current.upf)"
check "09-profile-symlink: updated behind the link" "runs      2" \
  "$("$tool" profile show v1.upf | sed -n 's/^\(runs *[0-9]*\) .*/\1/p')"
[[ -L current.upf ]]; check "09-profile-symlink: the link stays" 0 $?

if echo 'int main(void){return 0;}' | clang --target=wasm32-wasi -x c - -o try.wasm 2>/dev/null; then
  clang --target=wasm32-wasi "$cases/users/11-sigxfsz/fsz.c" -o fsz.wasm && mkdir -p d
  got=$( (ulimit -f 16; "$tool" run --dir d::/ fsz.wasm 2>err; echo "exit $?") )
  check "11-sigxfsz: the guest's write" "write errno 22 after 4; exit 0" "$(tr '\n' ';' <<<"$got" | sed 's/;$//; s/;/; /')"
else
  part_skipped "11-sigxfsz: the guest's write" "no clang with a WASI library"
fi
check "11-sigxfsz: the profile" $'300\nexit 1' "$( (ulimit -f 0; "$tool" run --profile x.upf --invoke main loop.wasm 300 2>/dev/null; echo "exit $?") )"

for file in "$cases"/security/*.upf; do
  for words in "profile show" "profile check" "profile merge -o out.upf"; do
    # shellcheck disable=SC2086
    "$tool" $words "$file" >out 2>err; code=$?
    check "${file##*/}: $words lives" 1 "$((code < 126))"
    check "${file##*/}: $words says offset and rule" 1 "$(grep -c 'offset .* is not possible' err)"
  done
  cp "$file" used.upf; chmod 600 used.upf
  check "${file##*/}: run --profile" $'300\nexit 0' "$(run_loop --profile used.upf)"
done
exit $failed
