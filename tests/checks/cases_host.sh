#!/usr/bin/env bash
# Runs programs that once crashed hosts or gave wrong results, and compares their output. They were
# written elsewhere. Subjects: signals, alternate stacks, calls from `build`, refused threads,
# floating-point environments, many runtimes.
#   cases_host.sh BUILD_DIR WORK_DIR [CXX [FLAG ...]]
# The cases are not part of this project. The script looks for them in $UPTIER_CASES, otherwise in
# shared/cases next to the project. Exits with 77 (and the reason) if they are absent.
set -uo pipefail
build=$(cd "$1" && pwd) work=$2 cxx=${3:-c++}
shift; shift; shift || true
project=$(cd "$(dirname "$0")/../.." && pwd)
cases=${UPTIER_CASES:-$project/../shared/cases}/users

skip() { echo "SKIPPED: cases of hosts: $*"; exit 77; }
[[ -d $cases ]] || skip "no folder $cases (set UPTIER_CASES)"
[[ -x $build/uptier ]] || skip "the uptier tool is not built ($build/uptier)"
for program in "$cxx" wat2wasm python3 setpriv; do
  command -v "$program" >/dev/null || skip "no $program"
done

rm -rf "$work"
mkdir -p "$work"
cd "$work" || exit 1
export UPTIER=$build/uptier
failed=0
fail() { echo "FAILED: $*"; failed=1; }
# compile NAME SOURCE [LIBRARY ...]
compile() {
  local name=$1 source=$2
  shift 2
  "$cxx" -std=c++20 -O1 "${flags[@]}" -I"$project/include" -I"$project" "$source" "$@" \
    "$build/libuptier.a" -lasmjit -lzstd -lrt -pthread -o "$name" || fail "$name does not compile"
}
# expect WHAT TEXT COMMAND ...: the command exits with 0 and prints TEXT, and no line begins with FAIL.
expect() {
  local what=$1 text=$2 out code
  shift 2
  out=$(timeout "${limit:-60}" "$@" 2>&1)
  code=$?
  [[ $code == 0 && $out == *"$text"* && $out != *FAIL* ]] || fail "$what: exit $code: $out"
}
flags=("$@")

# 03: an inherited signal mask.
out=$(python3 "$cases/03-blocked-signals/run.py" 2>&1)
for f in "div:integer divide by zero" "oob:out of bounds memory access"; do
  for how in "normal " "blocked"; do
    line=$(grep "^${f%%:*} $how" <<<"$out")
    [[ $line == *"exit 134"*"trap: ${f#*:}"* ]] || fail "03 ${f%%:*} $how: $line"
  done
done

# 04: alternate stacks of every size that the kernel accepts.
compile alt "$cases/04-small-altstack/alt.cc"
for bytes in 2048 4096 8192 65536; do expect "04 $bytes" "ok   traps" ./alt "$bytes"; done

# 05: a `build` that calls guest code.
compile reenter "$cases/05-build-invokes-self/reenter.cc"
compile dead "$cases/05-build-invokes-self/dead.cc"
for workers in 0 1; do
  for mode in 1 2 3 4 5 6 8; do expect "05 reenter $mode $workers" "ok " ./reenter "$mode" "$workers"; done
done
expect "05 dead 1" "ended" ./dead 1
for mode in 3 4 5 6; do expect "05 dead $mode" "" ./dead "$mode"; done

# 12: in a host that locks its memory, a runtime takes tens of MB, not hundreds. Sanitizers reserve terabytes.
if [[ ${flags[*]} != *-fsanitize=* ]]; then
  compile mlock "$cases/12-bss-128M/mlock.cc"
  out=$(./mlock 2>&1)
  locked=$(sed -n 's/^info with a runtime: .*locked \([0-9]*\) MB/\1/p' <<<"$out")
  [[ $out == *"ok   runs"* && ${locked:-999} -lt 130 ]] || fail "12: $out"
  (ulimit -v 120000; "$UPTIER" --help >/dev/null) || fail "12: the tool does not start under ulimit -v 120000"
fi

# 13: policies that forbid making pages executable; also without threads.
compile wx "$cases/13-wx-policy/wx.cc"
for how in 1 2 5; do expect "13 $how" "ok   runs" ./wx "$how"; done

# 14: the thread of the worker is refused.
[[ $(id -u) == 0 ]] || echo "14: not root, so threads are refused by address space only"
out=$(bash "$cases/14-no-thread-for-worker/run.sh" 2>&1)
grep -q "^no threads left: exit 0" <<<"$out" || [[ $(id -u) != 0 ]] || fail "14: $out"
grep -q "workers=0" <<<"$out" || fail "14: nothing names workers=0: $out"

# 18: the floating-point environment.
if [[ -f $build/embed/wasm/libuptier_wasm.a ]]; then
  wat2wasm "$cases/18-host-fp-environment/fp.wat" -o fp.wasm
  compile fp "$cases/18-host-fp-environment/fp.cc" "$build/embed/wasm/libuptier_wasm.a" \
    "$build/libuptier.a" -lwabt -lxxhash
  for tier in baseline instrumented optimized auto; do
    for mode in 1 2 3 4; do expect "18 $tier $mode" "0 of 12 differ" ./fp "$mode" "$tier"; done
  done
fi

# 19: one runtime per tenant.
compile many "$cases/19-many-runtimes/many.cc"
for workers in 1 0; do
  limit=300 expect "19 workers=$workers" "info 300 runtimes" ./many 1 300 "$workers"
done

[[ $failed == 0 ]] && echo "all cases of hosts say what they have to"
exit "$failed"
