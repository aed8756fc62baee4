// validate_bodies.h: function bodies, validated apart from their module: some of them on each of
// several threads, or one when it is first needed.
#pragma once

#include <memory>
#include <vector>

#include "embed/wasm/module_info.h"
#include "uptier/result.h"

namespace uptier::wasm {

// Knows what a module declares; what it is asked to validate it reads from a small module around
// those bodies, so that the rules are the library's that reads whole modules.
//
// Thread: one at a time; several validators of one module may work on different bodies at once.
class BodyValidator {
 public:
  // `module` has been read (read_module.h), bodies perhaps excepted. Cost: reads its declarations.
  explicit BodyValidator(const ModuleInfo& module);
  // The same for who has read them, with these rules.
  explicit BodyValidator(std::unique_ptr<Rules, FreeRules> rules);
  ~BodyValidator();
  BodyValidator(BodyValidator&&) noexcept;

  // Validates `count` own functions from `first` on, and fills in their FunctionInfo::facts.
  // Errors: those of read_module, with its words and offsets.
  Status validate(ModuleInfo& module, uint32_t first, uint32_t count);

 private:
  std::unique_ptr<Rules, FreeRules> rules_;
  std::vector<uint8_t> around_;  // the small module
};

}  // namespace uptier::wasm
