#include "jit/ir/position_table.h"

#include <algorithm>

namespace uptier::jit {

// Bodies have few files, and consecutive calls mostly name the same one.
FileId PositionTable::add_file(std::string_view path) {
  const auto known = std::ranges::find(files_.rbegin(), files_.rend(), path);
  if (known != files_.rend()) return FileId(static_cast<uint32_t>(files_.rend() - known - 1));
  files_.emplace_back(path);
  return FileId(static_cast<uint32_t>(files_.size() - 1));
}

void PositionTable::add(uint32_t location, const Position& at) {
  const bool again = !rows_.empty() && rows_.back().location == location && rows_.back().at == at;
  if (!again) rows_.push_back({location, at});
}

const PositionTable::Row* PositionTable::row(uint32_t location) const {
  const auto at = std::ranges::lower_bound(rows_, location, {}, &Row::location);
  return at == rows_.end() || at->location != location ? nullptr : &*at;
}

Status PositionTable::finish() {
  if (rows_.empty()) return {};
  if (!std::ranges::is_sorted(rows_, {}, &Row::location)) {
    std::ranges::stable_sort(rows_, {}, &Row::location);
  }
  const auto same = [](const Row& a, const Row& b) {
    return a.location == b.location && a.at == b.at;
  };
  rows_.erase(std::unique(rows_.begin(), rows_.end(), same), rows_.end());
  const auto twice = std::ranges::adjacent_find(rows_, {}, &Row::location);
  if (twice != rows_.end()) {
    return Error{ErrorCode::kInvalidArgument,
                 "location " + std::to_string(twice->location) + " has two positions"};
  }
  for (const Row& r : rows_) {
    if (Status s = check_calls(r); !s) return s;
  }
  rows_.shrink_to_fit();
  return {};
}

Status PositionTable::check_calls(const Row& from) const {
  size_t depth = 0;
  for (const Row* r = &from; r->at.inlined_at != Position::kNotInlined;) {
    const uint32_t call = r->at.inlined_at;
    r = row(call);
    const char* wrong = r == nullptr            ? ", which has no position"
                        : ++depth == kMostDepth ? ", and so on in a cycle, or more than 256 deep"
                                                : nullptr;
    if (wrong == nullptr) continue;
    return Error{ErrorCode::kInvalidArgument, "location " + std::to_string(from.location) +
                                                  " is inlined at location " +
                                                  std::to_string(call) + wrong};
  }
  return {};
}

SourcePositions PositionTable::find(uint32_t location) const {
  SourcePositions found;
  for (const Row* r = row(location); r != nullptr; r = row(r->at.inlined_at)) {
    found.push_back({files_[r->at.file.index()], r->at.line, r->at.column, {}});
    if (r->at.inlined_at == Position::kNotInlined) break;
  }
  return found;
}

size_t PositionTable::bytes() const {
  size_t all = rows_.capacity() * sizeof(Row) + files_.capacity() * sizeof(std::string);
  for (const std::string& f : files_) all += f.capacity();
  return all;
}

}  // namespace uptier::jit
