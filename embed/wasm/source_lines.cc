#include "embed/wasm/source_lines.h"

#include <string>
#include <utility>

#include "embed/wasm/read_names.h"
#include "embed/wasm/sections.h"
#include "embed/wasm/wall.h"

namespace uptier::wasm {
namespace {

std::span<const uint8_t> code_of(std::span<const uint8_t> module) {
  for (Sections s(module); s.next();) {
    if (s.id() == kCodeSection) return s.content();
  }
  return {};
}

// The section names a file in which the debug sections are: a number, and as many bytes.
std::string external_file(std::span<const uint8_t> module) {
  const std::span<const uint8_t> section = find_custom(module, "external_debug_info");
  return section.size() < 2 ? "" : printable_name(section.subspan(1));
}

}  // namespace

Result<SourceLines> SourceLines::read(ModuleBytes bytes) try {
  const std::span<const uint8_t> module = bytes;
  const std::span<const uint8_t> code = code_of(module);
  dwarf::Sections s;
  s.info = find_custom(module, ".debug_info");
  s.abbrev = find_custom(module, ".debug_abbrev");
  s.line = find_custom(module, ".debug_line");
  s.str = find_custom(module, ".debug_str");
  s.line_str = find_custom(module, ".debug_line_str");
  s.str_offsets = find_custom(module, ".debug_str_offsets");
  s.addr = find_custom(module, ".debug_addr");
  s.ranges = find_custom(module, ".debug_ranges");
  s.rnglists = find_custom(module, ".debug_rnglists");
  s.code_end = code.size();
  Result<dwarf::LineMap> map = dwarf::LineMap::read(s);
  if (!map) {
    const std::string file = external_file(module);
    if (map.error().code != ErrorCode::kNotFound || file.empty()) return map.error();
    return Error{ErrorCode::kNotFound,
                 "its debug sections are in another file, \"" + file + "\"; name that file"};
  }
  const auto begin = static_cast<uint32_t>(code.empty() ? 0 : code.data() - module.data());
  return SourceLines(std::move(bytes), std::move(*map), begin);
} catch (const std::exception&) { return out_of_memory(); }

std::vector<dwarf::SourceFrame> SourceLines::at(uint32_t offset) const {
  if (offset < code_begin_) return {};
  return map_.find(offset - code_begin_);
}

}  // namespace uptier::wasm
