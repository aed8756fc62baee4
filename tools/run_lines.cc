#include "tools/run_lines.h"

#include "embed/wasm/source_lines.h"
#include "tools/coverage.h"
#include "tools/coverage_folder.h"
#include "tools/fail.h"
#include "tools/streams.h"

namespace uptier::tools {
namespace {

bool has_lines(const wasm::ModuleBytes& bytes) {
  return wasm::has_dwarf(bytes) || !wasm::source_map_name(bytes).empty();
}

void tell_missing(const std::string& out, size_t missing) {
  if (missing == 0) return;
  fail(kOk, out + ": " + std::to_string(missing) +
                " source files cannot be read here and are left out; a .json file has all");
}

int write_coverage_to(const std::string& out, const std::string& module,
                      std::span<const uint8_t> bytes, Coverage& c) {
  size_t missing = 0;
  Status s;
  if (is_coverage_folder(out)) {
    s = add_to_folder(out, module, bytes, c, missing);
  } else if (out.ends_with(".json")) {
    s = write_text(out, coverage_json(c));
  } else {
    missing = leave_out_missing(c);
    s = write_text(out, coverage_lcov(c));
  }
  if (!s) return fail(kFailed, s.error().message);
  tell_missing(out, missing);
  return kOk;
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
  std::vector<dwarf::SourceFrame> frames = lines.at(frame.offset);
  // Source maps know no functions.
  if (frames.size() == 1 && frames[0].function.empty()) frames[0].function = frame.function_name;
  for (const dwarf::SourceFrame& f : frames) {
    text += (text.empty() ? "" : "\n  inlined into ") + place(f);
  }
  return text.empty() ? frame.function_name + ", whose lines are not known" : text;
}

}  // namespace

Status check_coverage(const std::string& path, const wasm::ModuleBytes& bytes) {
  if (has_lines(bytes)) return {};
  return Error{ErrorCode::kNotFound, path +
                                         ": --coverage needs source lines, and the module has no " +
                                         ".debug_line section and no source map; build it with -g"};
}

int write_coverage(Runtime& runtime, const std::string& path, const wasm::Module& module,
                   const std::string& out, bool counted) {
  const std::span<const uint8_t> all = module.info().bytes;
  const bool hits = !module.covered().empty();
  if (!hits && !counted) { return fail(kFailed, out + ": no coverage: memory for it was refused"); }
  Result<std::unique_ptr<ModuleLines>> lines =
      ModuleLines::read(path, std::vector<uint8_t>(all.begin(), all.end()), hits);
  if (!lines) return fail(kFailed, lines.error().message);
  Coverage c;
  if (hits) {
    c = coverage_of(**lines, HitBlocks(**lines, module.covered()));
  } else {
    runtime.flush();
    const Profile counts = runtime.profile();
    c = coverage_of(**lines, ExactCounts(**lines, counts));
  }
  return write_coverage_to(out, path, all, c);
}

std::string trap_lines(const std::string& path, const wasm::ModuleBytes& bytes,
                       const wasm::TrapReport& trap) {
  if (!trap.has_location || trap.offset == 0 || !has_lines(bytes)) return "";
  Result<wasm::SourceLines> lines = read_source_lines(path, bytes);
  // A source map often stays at home.
  if (!lines && lines.error().code == ErrorCode::kNotFound) return "";
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
