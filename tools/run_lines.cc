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

constexpr size_t kMostFrames = 16;  // of a trap's message

std::string place(const dwarf::SourceFrame& f) {
  std::string text = f.function.empty() ? "" : f.function + ", ";
  text += f.file + ":" + std::to_string(f.line);
  return f.column == 0 ? text : text + ":" + std::to_string(f.column);
}

// Returns the place of a frame, and those that it was inlined into on lines of their own.
std::string places(const wasm::SourceLines& lines, const wasm::TrapFrame& frame) {
  std::string text;
  for (const dwarf::SourceFrame& f : lines.at(frame.offset)) {
    text += (text.empty() ? "" : "\n  inlined into ") + place(f);
  }
  return text.empty() ? frame.function_name + ", whose lines are not known" : text;
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
  if (!trap.has_location || trap.offset == 0 || !has_lines(bytes)) return "";
  Result<wasm::SourceLines> lines = wasm::SourceLines::read(bytes);
  if (!lines) {
    fail(kOk, lines_error(path, lines.error()).message);
    return "";
  }
  std::string text = "\n  at " + places(*lines, {trap.function, trap.function_name, trap.offset});
  for (size_t i = 1; i < trap.stack.size(); ++i) {
    if (i == kMostFrames) return text + "\n  ...";
    text += "\n  called by " + places(*lines, trap.stack[i]);
  }
  return text;
}

}  // namespace uptier::tools
