#include "embed/dwarf/line_map.h"

#include "embed/dwarf/info_reader.h"

namespace uptier::dwarf {

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

std::vector<SourceFrame> LineMap::find(uint32_t address) const {
  std::vector<SourceFrame> frames;
  const Row* row = lines_.find(address);
  if (row == nullptr) return frames;
  frames.push_back({"", lines_.path(row->file), row->line, row->column});
  // Inlined calls nest 64 deep at most here; compilers stop far earlier.
  uint32_t at = scopes_.find(address);
  for (unsigned depth = 0; at != kNoScope && depth < 64; ++depth) {
    const Scope& scope = scopes_.scopes[at];
    frames.back().function = scopes_.name_of(scope);
    at = scope.parent;
    if (at == kNoScope) break;
    frames.push_back({"", lines_.path(scope.call_file), scope.call_line, scope.call_column});
  }
  return frames;
}

}  // namespace uptier::dwarf
