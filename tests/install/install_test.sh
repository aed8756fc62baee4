#!/usr/bin/env bash
# Installs the library and builds consumers against it with find_package and with pkg-config, one in C++
# and one in C (a project that enables no C++ compiler); then moves the installation and builds all of
# them again. The complete archive must also link into a shared object, as an embedder's plugin needs.
#   install_test.sh BUILD_DIR WORK_DIR CC CXX [FLAG...]
set -euo pipefail
build=$1 work=$2 cc=$3 cxx=$4
shift 4
flags=("$@")
warnings=(-Wall -Wextra -Wpedantic -Werror)
here=$(cd "$(dirname "$0")" && pwd)
expected_cxx="i64 baseline plain invalid input"
expected_c="i64 baseline 42 invalid input"

fail() { echo "install test: $*"; exit 1; }
run() { local got; got=$("$1"); [[ $got == "$2" ]] || fail "$1 printed '$got'"; }

only_what_belongs() {  # PREFIX
  local file
  while IFS= read -r file; do
    case $file in
      include/uptier/*/*) fail "a private header is installed: $file" ;;
      include/uptier/*.h | lib*/libuptier.a | lib*/libuptier_trace.a | lib*/libuptier_reserve.a | lib*/cmake/uptier/*.cmake) ;;
      lib*/pkgconfig/uptier.pc | share/licenses/uptier/LICENSE) ;;
      *) fail "installed, but not public: $file" ;;
    esac
  done < <(cd "$1" && find . -type f -printf '%P\n')
  local header
  for header in "$here"/../../include/uptier/*.h; do
    [[ -f $1/include/uptier/${header##*/} ]] || fail "not installed: ${header##*/}"
  done
  [[ -f $1/share/licenses/uptier/LICENSE ]] || fail "not installed: LICENSE"
  ! grep -rIlF -e "$1" -e "$build" -e "$(cd "$here/../.." && pwd)" "$1" || fail "names its origin"
}

by_find_package() {  # PREFIX BINARY_DIR
  cmake -S "$here" -B "$2" -DCMAKE_PREFIX_PATH="$1" -DCMAKE_CXX_COMPILER="$cxx" \
    -DCMAKE_CXX_FLAGS="${flags[*]}" >/dev/null
  cmake --build "$2" >/dev/null
  run "$2/consumer" "$expected_cxx"
  cmake -S "$here/c" -B "$2/c" -DCMAKE_PREFIX_PATH="$1" -DCMAKE_C_COMPILER="$cc" \
    -DCMAKE_C_FLAGS="${flags[*]}" >/dev/null
  cmake --build "$2/c" >/dev/null
  run "$2/c/consumer" "$expected_c"
}

by_pkg_config() {  # PREFIX BINARY
  local words
  PKG_CONFIG_PATH=$(dirname "$(find "$1" -name uptier.pc)")
  export PKG_CONFIG_PATH
  read -ra words < <(pkg-config --cflags --libs uptier)
  "$cxx" -std=c++20 "${flags[@]}" "$here/consumer.cc" "${words[@]}" -o "$2"
  run "$2" "$expected_cxx"
  "$cc" -std=c99 "${warnings[@]}" "${flags[@]}" "$here/c/consumer.c" "${words[@]}" -o "$2-c"
  run "$2-c" "$expected_c"
  read -ra words < <(pkg-config --static --cflags --libs uptier)
  "$cc" -std=c99 "${flags[@]}" "$here/c/consumer.c" "${words[@]}" -o "$2-c"
  run "$2-c" "$expected_c"
}

into_shared_object() {  # PREFIX FILE
  "$cxx" -shared "${flags[@]}" -o "$2" -Wl,-z,text -Wl,--whole-archive \
    "$(find "$1" -name libuptier.a)" -Wl,--no-whole-archive -lasmjit -lrt -pthread
}

rm -rf "$work"
mkdir -p "$work"
cmake --install "$build" --prefix "$work/first" --component uptier_devel >/dev/null
only_what_belongs "$work/first"
by_find_package "$work/first" "$work/cmake-first"
by_pkg_config "$work/first" "$work/pkg-first"
into_shared_object "$work/first" "$work/plugin.so"
mv "$work/first" "$work/elsewhere"
by_find_package "$work/elsewhere" "$work/cmake-elsewhere"
by_pkg_config "$work/elsewhere" "$work/pkg-elsewhere"
echo "install test: installed, built, moved and built again"
