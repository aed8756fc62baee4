#include "embed/wasm/types.h"

namespace uptier::wasm {
namespace {

std::string list(const std::vector<Type>& types) {
  std::string s = "(";
  for (Type t : types) {
    if (s.size() > 1) s += ", ";
    s += type_name(t);
  }
  return s + ")";
}

}  // namespace

std::string to_string(const FuncType& type) {
  return list(type.params) + " -> " + list(type.results);
}

const char* extern_kind_name(ExternKind kind) {
  switch (kind) {
    case ExternKind::kFunction: return "function";
    case ExternKind::kTable: return "table";
    case ExternKind::kMemory: return "memory";
    case ExternKind::kGlobal: return "global";
  }
  return "?";
}

}  // namespace uptier::wasm
