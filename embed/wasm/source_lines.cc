#include "embed/wasm/source_lines.h"

#include <string>
#include <utility>

#include "embed/dwarf/cursor.h"
#include "embed/source_map/source_map.h"
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

namespace {

// A body of the code section, by its offsets in the section.
struct CodeBody {
  uint32_t begin = 0, end = 0;
};

// Returns false if the budget is spent.
bool read_bodies(std::span<const uint8_t> code, std::vector<CodeBody>& bodies,
                 dwarf::Budget& budget) {
  dwarf::Cursor c(code, 0);
  for (uint64_t left = c.uleb(); left > 0; --left) {
    const uint64_t size = c.uleb(), begin = c.at();
    c.skip(size);
    if (c.bad()) return true;
    const CodeBody body{static_cast<uint32_t>(begin), static_cast<uint32_t>(c.at())};
    if (!budget.push(bodies, body)) return false;
  }
  return true;
}

// Divides rows, whose addresses are offsets in the module, among bodies: none goes on into the next one.
// Rows outside of bodies go. Returns false if the budget is spent.
bool divide(dwarf::Rows& rows, std::span<const CodeBody> bodies, uint32_t begin,
            dwarf::Budget& budget) {
  auto body = bodies.begin();
  uint32_t kept = 0;
  for (dwarf::Row row : rows.rows) {
    while (body != bodies.end() && row.address >= uint64_t{begin} + body->end) ++body;
    if (body == bodies.end()) break;
    if (row.address < uint64_t{begin} + body->begin) continue;
    row.address -= begin;
    std::vector<dwarf::Sequence>& all = rows.sequences;
    const bool starts = all.empty() || all.back().begin < body->begin;
    if (starts && !budget.push(all, {row.address, body->end, kept, kept})) return false;
    rows.rows[kept++] = row;
    all.back().last = kept;
  }
  rows.rows.resize(kept);
  return true;
}

}  // namespace

Result<SourceLines> SourceLines::read_map(ModuleBytes bytes, std::string_view json,
                                          const std::string& folder) try {
  const std::span<const uint8_t> module = bytes, code = code_of(module);
  dwarf::Budget budget(json.size() + module.size());
  Result<source_map::SourceMap> map = source_map::read_source_map(json, budget);
  if (!map) return map.error();
  if (map->rows.empty()) return Error{ErrorCode::kNotFound, "its source map has no mappings"};
  const auto begin = static_cast<uint32_t>(code.empty() ? 0 : code.data() - module.data());
  if (map->rows.back().address >= module.size()) {
    return Error{ErrorCode::kCorruptInput,
                 "mappings: offset " + std::to_string(map->rows.back().address) +
                     " lies past the end of the module: the map is of another one"};
  }
  if (!budget.take(map->sources.size() * (sizeof(std::string) + dwarf::LineTable::kFileBytes)))
    return dwarf::too_large();
  auto paths = std::make_shared<std::vector<std::string>>();
  paths->reserve(map->sources.size());
  for (const std::string& source : map->sources) {
    const uint64_t most = folder.size() + source.size() + 1;
    if (!budget.take(2 * most)) return dwarf::too_large();
    paths->push_back(source_map::path_after(folder, source));
  }
  std::vector<CodeBody> bodies;
  dwarf::Rows rows{std::move(map->rows), {}};
  const bool fits = read_bodies(code, bodies, budget) && divide(rows, bodies, begin, budget);
  if (!fits) return dwarf::too_large();
  dwarf::LineMap lines = dwarf::LineMap::of(std::move(rows), *paths);
  return SourceLines(std::move(bytes), std::move(lines), begin, std::move(paths));
} catch (const std::exception&) { return out_of_memory(); }

bool has_dwarf(const ModuleBytes& bytes) { return !find_custom(bytes, ".debug_line").empty(); }

std::string source_map_name(const ModuleBytes& bytes) {
  const std::span<const uint8_t> section = find_custom(bytes, "sourceMappingURL");
  dwarf::Cursor c(section, 0);
  const uint64_t size = c.uleb();
  if (c.bad() || size != c.left()) return "";
  std::string url(reinterpret_cast<const char*>(section.data()) + c.at(), size);
  url = url.substr(0, url.find_first_of("?#"));
  if (url.starts_with("data:")) return "";
  url = url.substr(url.find_last_of("/\\") + 1);
  return url == "." || url == ".." || url.find('\0') != std::string::npos ? "" : url;
}

std::vector<dwarf::SourceFrame> SourceLines::at(uint32_t offset) const {
  if (offset < code_begin_) return {};
  return map_.find(offset - code_begin_);
}

}  // namespace uptier::wasm
