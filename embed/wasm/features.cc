#include "embed/wasm/features.h"

#include <utility>

#include "embed/wasm/rules.h"
#include "wabt/binary-reader-nop.h"

namespace uptier::wasm {
namespace {

using Enable = void (wabt::Features::*)();
constexpr std::pair<const char*, Enable> kFeatures[] = {
    {"SIMD", &wabt::Features::enable_simd},
    {"exception handling", &wabt::Features::enable_exceptions},
    {"threads and atomics", &wabt::Features::enable_threads},
    {"64-bit memories (memory64)", &wabt::Features::enable_memory64},
    {"typed function references", &wabt::Features::enable_function_references},
    {"garbage collection", &wabt::Features::enable_gc},
    {"several memories (multi-memory)", &wabt::Features::enable_multi_memory},
};

// Remembers where something was wrong first.
class FirstError final : public wabt::BinaryReaderNop {
 public:
  bool OnError(const wabt::Error& e) override {
    const bool first = e.error_level == wabt::ErrorLevel::Error && at_ == UINT64_MAX;
    if (first) at_ = e.loc.offset;
    return true;
  }
  uint64_t at() const { return at_; }

 private:
  uint64_t at_ = UINT64_MAX;
};

// Returns how far a module can be read.
uint64_t readable(std::span<const uint8_t> module, const wabt::Features& features) {
  wabt::ReadBinaryOptions options = reader_options();
  options.features = features;
  FirstError errors;
  (void)wabt::ReadBinary(module.data(), module.size(), &errors, options);
  return errors.at();
}

}  // namespace

const char* feature_needed(std::span<const uint8_t> module, uint64_t stopped) {
  for (const auto& [name, enable] : kFeatures) {
    wabt::Features more = served_features();
    (more.*enable)();
    if (readable(module, more) > stopped) return name;
  }
  return nullptr;
}

}  // namespace uptier::wasm
