// module_info.h: what a validated module says, as plain data.
//
// Index spaces count imports first, as in WebAssembly. Offsets are of the module's bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "embed/wasm/module_bytes.h"
#include "embed/wasm/scan_body.h"
#include "embed/wasm/types.h"

namespace uptier::wasm {

struct Import {
  std::string module;
  std::string name;
  ExternKind kind = ExternKind::kFunction;
  uint32_t index = 0;  // in the index space of its kind
};

struct Export {
  std::string name;
  ExternKind kind = ExternKind::kFunction;
  uint32_t index = 0;
};

// A constant expression: a constant, or the value of an imported immutable global.
struct ConstExpr {
  Type type = Type::kI32;
  uint64_t bits = 0;
  std::optional<uint32_t> global;
};

struct FunctionInfo {
  uint32_t type = 0;        // index into ModuleInfo::types
  uint32_t body_begin = 0;  // of the declarations of locals; 0 for imports
  uint32_t body_end = 0;
  BodyFacts facts;  // of a validated body
};

struct GlobalInfo {
  GlobalType type;
  ConstExpr init;            // of own globals
  bool is_exported = false;  // own: others may import it, instances of this module too
};

struct DataSegment {
  bool is_active = false;
  ConstExpr offset;
  std::span<const uint8_t> bytes;  // into ModuleInfo::bytes
};

struct ElemSegment {
  static constexpr uint32_t kNullFunction = UINT32_MAX;
  bool is_active = false;
  bool is_declarative = false;  // holds nothing once there is an instance
  ConstExpr offset;
  std::vector<uint32_t> functions;  // kNullFunction for null
};

// Function bodies are validated with the module, or each before its function is first compiled, as the
// specification allows. Invalid code never runs, either way.
enum class Bodies : uint8_t { kValidated, kLater };

struct Rules;
struct FreeRules {
  void operator()(Rules* rules) const noexcept;
};

struct ModuleInfo {
  Bodies bodies = Bodies::kValidated;
  ModuleBytes bytes;
  std::vector<FuncType> types;
  std::vector<Import> imports;
  std::vector<Export> exports;
  std::vector<FunctionInfo> functions;
  std::unordered_map<uint32_t, std::string> names;  // of functions that have one: see name_of()
  std::vector<GlobalInfo> globals;
  std::vector<DataSegment> data;
  std::vector<ElemSegment> elems;
  std::optional<Limits> memory;
  std::optional<Limits> table;
  std::optional<uint32_t> start;
  uint32_t imported_functions = 0;
  uint32_t imported_globals = 0;
  bool imports_memory = false;
  bool imports_table = false;
  // The rules for bodies; with Bodies::kLater, until a BodyValidator has taken them.
  std::unique_ptr<Rules, FreeRules> rules;

  // Returns what a function is called: in the name section, else its first export, else "func[N]".
  std::string name_of(uint32_t function) const {
    auto at = names.find(function);
    return at != names.end() ? at->second : "func[" + std::to_string(function) + "]";
  }
  const FuncType& type_of(uint32_t function) const { return types[functions[function].type]; }
};

}  // namespace uptier::wasm
