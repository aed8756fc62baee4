#include "embed/wasm/read_module.h"

#include <algorithm>
#include <atomic>
#include <string>
#include <thread>
#include <utility>

#include "embed/wasm/features.h"
#include "embed/wasm/helper_threads.h"
#include "embed/wasm/module_collector.h"
#include "embed/wasm/read_names.h"
#include "embed/wasm/validate_bodies.h"
#include "embed/wasm/wall.h"

namespace uptier::wasm {
namespace {

// Bytes that a thread validates at a time: with less, a second thread costs more than it saves.
constexpr uint64_t kStretch = 256 << 10;
constexpr uint32_t kMaxThreads = 8;

// Says of a module that is malformed without a feature which one that is.
Error explain(Error e, std::span<const uint8_t> module, const BodyChecker& checker) {
  const std::optional<uint64_t> at = checker.stuck_at();
  const char* feature = at ? feature_needed(module, *at) : nullptr;
  if (feature == nullptr) return e;
  return {ErrorCode::kUnsupported, e.message + "; not supported: " + feature + checker.where()};
}

// Reads all of a module one byte after the other, and says what is wrong with it.
Result<ModuleInfo> read_in_order(ModuleBytes bytes) {
  ModuleInfo info;
  info.bytes = std::move(bytes);
  Rules rules;
  ModuleCollector collector(info, rules, BodyChecker::Reads::kAll);
  auto read = wabt::ReadBinary(info.bytes.data(), info.bytes.size(), &collector, reader_options());
  if (Status s = collector.verdict(read); !s) return explain(s.error(), info.bytes, collector);
  name_functions(info, collector.name_section());
  return info;
}

// Reads everything except bodies, and makes the rules for these; nothing if the module has an error.
std::optional<ModuleInfo> read_declarations(const ModuleBytes& bytes) {
  ModuleInfo info;
  info.bytes = bytes;
  info.rules.reset(std::make_unique<Rules>().release());
  ModuleCollector collector(info, *info.rules, BodyChecker::Reads::kDeclarations);
  wabt::ReadBinaryOptions options = reader_options();
  options.skip_function_bodies = true;
  auto read = wabt::ReadBinary(info.bytes.data(), info.bytes.size(), &collector, options);
  if (!collector.verdict(read)) return std::nullopt;
  name_functions(info, collector.name_section());
  return info;
}

uint64_t begin_of_bodies(const ModuleInfo& info) {
  return info.functions[info.imported_functions].body_begin;
}

// Returns the first own function that begins `bytes` after the first one's begin, or later.
uint32_t function_behind(const ModuleInfo& info, uint64_t bytes) {
  auto own = std::span(info.functions).subspan(info.imported_functions);
  auto at =
      std::ranges::lower_bound(own, begin_of_bodies(info) + bytes, {}, &FunctionInfo::body_begin);
  return static_cast<uint32_t>(at - own.begin()) + info.imported_functions;
}

// Validates all bodies, a stretch at a time on each of some threads. Returns false if one is wrong.
bool validate_bodies(ModuleInfo& info) {
  if (info.functions.size() == info.imported_functions) return true;
  uint64_t size = info.functions.back().body_end - begin_of_bodies(info);
  uint64_t stretches = std::max<uint64_t>(size / kStretch, 1);
  uint64_t most = std::clamp(std::thread::hardware_concurrency(), 1u, kMaxThreads);
  std::atomic<uint64_t> next = 0;
  std::atomic<bool> wrong = false;
  auto validate = [&](BodyValidator validator) {
    for (uint64_t i; !wrong && (i = next++) < stretches;) {
      uint32_t first = function_behind(info, size * i / stretches);
      uint32_t end = function_behind(info, size * (i + 1) / stretches);
      if (first < end && !validator.validate(info, first, end - first)) wrong = true;
    }
  };
  {
    const std::function<void()> help = [&] {
      if (!finishes([&] { validate(BodyValidator(info)); })) wrong = true;
    };
    HelperThreads others(help, std::min(stretches, most) - 1);
    validate(BodyValidator(std::move(info.rules)));
  }
  return !wrong;
}

}  // namespace

Result<ModuleInfo> read_module(ModuleBytes bytes, Bodies bodies) try {
  if (bytes.size() > UINT32_MAX) {
    return Error{ErrorCode::kUnsupported, "the module is larger than 4 GiB"};
  }
  if (bodies == Bodies::kValidated && bytes.size() < 2 * kStretch) {
    return read_in_order(std::move(bytes));
  }
  std::optional<ModuleInfo> info = read_declarations(bytes);
  if (info) {
    info->bodies = bodies;
    if (bodies == Bodies::kLater || validate_bodies(*info)) return std::move(*info);
  }
  // Only the whole module determines which of several faults is reported, and how.
  return read_in_order(std::move(bytes));
} catch (const std::exception&) { return out_of_memory(); }

}  // namespace uptier::wasm
