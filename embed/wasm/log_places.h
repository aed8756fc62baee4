// log_places.h: lines of text that a module's code logs at places that a user names.
//
//     FUNCTION[@OFFSET]=TEXT       fib=n is {0}      sum@0x5c=after {1:u} rounds: {2}
//
// FUNCTION is a name of the module or a number. OFFSET is where an instruction lies in the module's
// bytes, as wasm-objdump -d prints it; without it, the function's first instruction. The line is
// logged before the instruction, whenever an instrumented copy executes it. {N} stands for the
// value of local N, {N:u} and {N:x} for an unsigned and a hexadecimal one; {{ and }} are braces.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "embed/wasm/module_info.h"
#include "uptier/log_format.h"
#include "uptier/result.h"
#include "uptier/runtime.h"

namespace uptier::wasm {

struct LogPlace {
  struct Argument {
    uint32_t local = 0;
    bool is_unsigned = false;  // an i32 is extended with zeros
  };

  uint32_t function = 0;
  uint32_t at = 0;  // offset of the instruction
  LogFormat format;
  std::vector<Argument> arguments;
};

// The places of a module.
//
// Thread: find: any, when no more are added.
class LogPlaces {
 public:
  // Adds a place. Errors: kInvalidInput, with the request and the rule that it breaks.
  Status add(const ModuleInfo& info, Runtime& runtime, std::string_view request);
  bool empty() const { return places_.empty(); }
  // Returns the places in a function, by offset.
  std::span<const LogPlace> find(uint32_t function) const;

 private:
  std::vector<LogPlace> places_;  // by function and offset
};

}  // namespace uptier::wasm
