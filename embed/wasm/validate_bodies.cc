#include "embed/wasm/validate_bodies.h"

#include <utility>

#include "embed/wasm/module_collector.h"
#include "embed/wasm/sections.h"

namespace uptier::wasm {
namespace {

constexpr uint8_t kModuleHeader[] = {0x00, 'a', 's', 'm', 0x01, 0x00, 0x00, 0x00};
constexpr uint8_t kFunctionSection = 3;
constexpr uint8_t kMemorySection = 5;
constexpr uint8_t kDataCountSection = 12;
constexpr uint32_t kNumberBytes = 5;

// A number in as many bytes as any number may take, so that sizes are known in front.
void append_number(std::vector<uint8_t>& out, uint32_t n) {
  for (uint32_t i = 0; i + 1 < kNumberBytes; ++i, n >>= 7) {
    out.push_back(static_cast<uint8_t>(n | 0x80));
  }
  out.push_back(static_cast<uint8_t>(n));
}

void append_section(std::vector<uint8_t>& out, uint8_t id, uint32_t size) {
  out.push_back(id);
  append_number(out, size);
}

// Makes a module with only the bodies [first, first + count) of `module` and the declarations that the
// reader checks by itself: a memory, a number of data segments. The rules know types and everything
// else. Returns the offset of the first body.
uint32_t surround(std::vector<uint8_t>& out, const ModuleInfo& module, bool has_data_count,
                  uint32_t first, uint32_t count) {
  out.assign(std::begin(kModuleHeader), std::end(kModuleHeader));
  append_section(out, kFunctionSection, kNumberBytes + count);
  append_number(out, count);
  out.insert(out.end(), count, 0);
  if (module.memory) {
    append_section(out, kMemorySection, 3);
    out.insert(out.end(), {1, 0, 0});  // one, without a maximum, of no pages
  }
  if (has_data_count) {
    append_section(out, kDataCountSection, kNumberBytes);
    append_number(out, static_cast<uint32_t>(module.data.size()));
  }
  const FunctionInfo& one = module.functions[first];
  uint32_t end = module.functions[first + count - 1].body_end;
  append_section(out, kCodeSection, 2 * kNumberBytes + end - one.body_begin);
  append_number(out, count);
  append_number(out, one.body_end - one.body_begin);
  auto at = static_cast<uint32_t>(out.size());
  out.insert(out.end(), module.bytes.data() + one.body_begin, module.bytes.data() + end);
  return at;
}

}  // namespace

BodyValidator::BodyValidator(std::unique_ptr<Rules, FreeRules> rules) : rules_(std::move(rules)) {}

BodyValidator::BodyValidator(const ModuleInfo& module)
    : BodyValidator(std::unique_ptr<Rules, FreeRules>(std::make_unique<Rules>().release())) {
  ModuleInfo declared;
  ModuleCollector collector(declared, *rules_, BodyChecker::Reads::kDeclarations);
  wabt::ReadBinaryOptions options = reader_options();
  options.skip_function_bodies = true;
  wabt::ReadBinary(module.bytes.data(), module.bytes.size(), &collector, options);
}

BodyValidator::~BodyValidator() = default;
BodyValidator::BodyValidator(BodyValidator&&) noexcept = default;

Status BodyValidator::validate(ModuleInfo& module, uint32_t first, uint32_t count) {
  uint64_t begin = module.functions[first].body_begin;
  uint64_t delta = begin - surround(around_, module, rules_->has_data_count, first, count);
  rules_->errors.clear();
  BodyChecker checker(module, *rules_, BodyChecker::Reads::kAll, first, delta);
  auto read = wabt::ReadBinary(around_.data(), around_.size(), &checker, reader_options());
  return checker.verdict(read);
}

}  // namespace uptier::wasm
