#include "embed/dwarf/line_table.h"

#include <algorithm>
#include <utility>

namespace uptier::dwarf {
namespace {

// Appends a part of a path to the parts before it.
void join(std::string& path, std::string_view part) {
  if (part.empty()) return;
  if (part.front() == '/') path.clear();
  if (!path.empty() && path.back() != '/') path += '/';
  path += part;
}

}  // namespace

Status LineTable::read(const Sections& s, uint64_t at, std::string_view comp_dir, Budget& budget) {
  if (programs_.contains(at)) return {};
  Result<uint64_t> end = add(s, at, comp_dir, budget);
  return end ? Status() : end.error();
}

Status LineTable::read_all(const Sections& s, Budget& budget) {
  for (uint64_t at = 0; at < s.line.size();) {
    Result<uint64_t> end = add(s, at, "", budget);
    if (!end) return end.error();
    at = *end;
  }
  return {};
}

Result<uint64_t> LineTable::add(const Sections& s, uint64_t at, std::string_view comp_dir,
                                Budget& budget) {
  Result<LineHeader> header = read_line_header(s, at, budget);
  if (!header) return header.error();
  const FileNumbers numbers{static_cast<uint32_t>(files_.size()),
                            static_cast<uint32_t>(header->files.size()), header->from_zero};
  for (const LineHeader::File& f : header->files) {
    if (!budget.push(files_, File{f.in_unit ? comp_dir : "", f.folder, f.name})) return too_large();
  }
  if (!budget.take(Budget::kNodeBytes)) return too_large();
  programs_.emplace(at, numbers);
  if (Status r = run_line_program(*header, numbers, s, rows_, budget); !r) return r.error();
  return header->end;
}

void LineTable::take(Rows rows, std::span<const std::string> paths) {
  rows_ = std::move(rows);
  files_.reserve(paths.size());
  for (const std::string& path : paths) files_.push_back({"", "", path});
}

void LineTable::finish() {
  std::vector<Sequence>& all = rows_.sequences;
  std::ranges::sort(all, [](const Sequence& a, const Sequence& b) {
    return a.begin != b.begin ? a.begin < b.begin : a.first < b.first;
  });
  uint32_t end = 0;
  std::erase_if(all, [&](const Sequence& q) {
    if (q.begin < end) return true;
    end = q.end;
    return false;
  });
}

const Row* LineTable::find(uint32_t address) const {
  const auto after = std::ranges::upper_bound(rows_.sequences, address, {}, &Sequence::begin);
  if (after == rows_.sequences.begin()) return nullptr;
  const Sequence& q = *(after - 1);
  if (address >= q.end) return nullptr;
  const auto first = rows_.rows.begin() + q.first, last = rows_.rows.begin() + q.last;
  return &*(std::ranges::upper_bound(first, last, address, {}, &Row::address) - 1);
}

FileNumbers LineTable::files_of(uint64_t program) const {
  const auto at = programs_.find(program);
  return at == programs_.end() ? FileNumbers{} : at->second;
}

std::string LineTable::path(uint32_t file) const {
  std::string path;
  if (file >= files_.size()) return path;
  join(path, files_[file].comp_dir);
  join(path, files_[file].folder);
  join(path, files_[file].name);
  return path;
}

}  // namespace uptier::dwarf
