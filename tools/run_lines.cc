#include "tools/run_lines.h"

#include "embed/wasm/sections.h"
#include "embed/wasm/source_lines.h"
#include "tools/coverage.h"
#include "tools/fail.h"
#include "tools/streams.h"

namespace uptier::tools {
namespace {

bool has_lines(const wasm::ModuleBytes& bytes) {
  return !wasm::find_custom(bytes, ".debug_line").empty();
}

}  // namespace

Status check_coverage(const std::string& path, const wasm::ModuleBytes& bytes,
                      const Options& options) {
  if (options.tier != TierMode::kInstrumented) {
    return Error{
        ErrorCode::kInvalidArgument,
        "--coverage counts exactly, which only --tier=instrumented does; leave --tier out"};
  }
  if (has_lines(bytes)) return {};
  return Error{ErrorCode::kNotFound, path +
                                         ": --coverage needs source lines, and the module has no " +
                                         ".debug_line section; build it with -g"};
}

int write_coverage(Runtime& runtime, const std::string& path, const wasm::ModuleBytes& bytes,
                   const std::string& out) {
  runtime.flush();
  const std::span<const uint8_t> all = bytes;
  Result<std::unique_ptr<ModuleLines>> module =
      ModuleLines::read(path, std::vector<uint8_t>(all.begin(), all.end()));
  if (!module) return fail(kFailed, module.error().message);
  Coverage c = coverage_of(**module, runtime.profile());
  const bool json = out.ends_with(".json");
  if (!json) {
    const size_t missing = leave_out_missing(c);
    if (missing != 0) {
      fail(kOk, out + ": " + std::to_string(missing) +
                    " source files cannot be read here and are left out; a .json file has all");
    }
  }
  Status s = write_text(out, json ? coverage_json(c) : coverage_lcov(c));
  return s ? int{kOk} : fail(kFailed, s.error().message);
}

std::string trap_lines(const std::string& path, const wasm::ModuleBytes& bytes,
                       const wasm::TrapReport& trap) {
  std::string text;
  if (!trap.has_location || trap.offset == 0 || !has_lines(bytes)) return text;
  Result<wasm::SourceLines> lines = wasm::SourceLines::read(bytes);
  if (!lines) {
    fail(kOk, lines_error(path, lines.error()).message);
    return text;
  }
  for (const dwarf::SourceFrame& f : lines->at(trap.offset)) {
    text += text.empty() ? "\n  at " : "\n  inlined into ";
    if (!f.function.empty()) text += f.function + ", ";
    text += f.file + ":" + std::to_string(f.line);
    if (f.column != 0) text += ":" + std::to_string(f.column);
  }
  return text;
}

}  // namespace uptier::tools
