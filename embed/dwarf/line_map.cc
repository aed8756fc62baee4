#include "embed/dwarf/line_map.h"

#include <utility>

#include "embed/dwarf/info_reader.h"

namespace uptier::dwarf {
namespace {

constexpr unsigned kDeepestInlined = 64;  // compilers stop far earlier

}  // namespace

Result<LineMap> LineMap::read(const Sections& s) {
  if (s.line.empty()) {
    return Error{ErrorCode::kNotFound, "it has no .debug_line section; build it with -g"};
  }
  Budget budget(s.size());
  LineMap made;
  Status r = s.info.empty() ? made.lines_.read_all(s, budget)
                            : read_info(s, made.lines_, made.scopes_, budget);
  if (r) r = made.scopes_.finish(budget);
  if (!r) return r.error();
  made.lines_.finish();
  return made;
}

LineMap LineMap::of(Rows rows, std::span<const std::string> paths) {
  LineMap made;
  made.lines_.take(std::move(rows), paths);
  made.lines_.finish();
  return made;
}

std::vector<SourceFrame> LineMap::find(uint32_t address) const {
  std::vector<SourceFrame> frames;
  const Row* row = lines_.find(address);
  if (row == nullptr) return frames;
  frames.push_back({"", lines_.path(row->file), row->line, row->column});
  uint32_t at = scopes_.find(address);
  for (unsigned depth = 0; at != kNoScope && depth < kDeepestInlined; ++depth) {
    const Scope& scope = scopes_.scopes[at];
    frames.back().function = scopes_.name_of(scope);
    at = scope.parent;
    if (at == kNoScope) break;
    frames.push_back({"", lines_.path(scope.call_file), scope.call_line, scope.call_column});
  }
  return frames;
}

std::vector<FunctionPlace> LineMap::function_places(uint32_t address) const {
  std::vector<FunctionPlace> places;
  const Row* row = lines_.find(address);
  if (row == nullptr) return places;
  places.push_back({"", 0, row->line, row->discriminator});
  uint32_t at = scopes_.find(address);
  for (unsigned depth = 0; at != kNoScope && depth < kDeepestInlined; ++depth) {
    const Scope& scope = scopes_.scopes[at];
    places.back().function = scopes_.linkage_name_of(scope);
    places.back().first_line = scopes_.line_of(scope);
    at = scope.parent;
    if (at == kNoScope) break;
    places.push_back({"", 0, scope.call_line, scope.call_discriminator});
  }
  return places;
}

}  // namespace uptier::dwarf
