#include "jit/code/code.h"

#include <algorithm>

#include "jit/code/code_readers.h"

namespace uptier::jit {

Code::Code(CodeSpan span, uint32_t entry_offset, CodeTables tables, MethodId method)
    : span_(std::move(span)),
      entry_offset_(entry_offset),
      method_(method),
      tables_(std::move(tables)) {
  CodeSpace* space = span_.space();
  if (space == nullptr) return;
  space->set_owner(span_, this);
  if (tables_.counts_edges) space->note_edge_counter(+1);
}

Code::~Code() {
  CodeSpace* space = span_.space();
  if (space == nullptr) return;
  space->set_owner(span_, nullptr);
  await_code_readers();
  if (tables_.counts_edges) space->note_edge_counter(-1);
}

uint32_t Code::offset_of(const void* pc) const noexcept {
  auto address = reinterpret_cast<uintptr_t>(pc);
  uintptr_t hot = address - reinterpret_cast<uintptr_t>(base());
  if (hot < hot_size()) return static_cast<uint32_t>(hot);
  uintptr_t cold = address - reinterpret_cast<uintptr_t>(cold_base());
  return cold < span_.cold_size() ? static_cast<uint32_t>(hot_size() + cold) : UINT32_MAX;
}

namespace {

// Returns the first row after `offset`.
template <typename Row>
auto row_after(const std::vector<Row>& rows, uint32_t offset) {
  return std::upper_bound(rows.begin(), rows.end(), offset,
                          [](uint32_t o, const Row& r) { return o < r.offset; });
}

}  // namespace

const TrapRow* Code::trap_at(const void* pc) const noexcept {
  uint32_t offset = offset_of(pc);
  if (offset == UINT32_MAX) return nullptr;
  auto after = row_after(tables_.traps, offset);
  if (after == tables_.traps.begin() || (after - 1)->offset != offset) return nullptr;
  return &*(after - 1);
}

FrameState Code::frame_at(const void* pc) const noexcept {
  auto after = row_after(tables_.frames, offset_of(pc));
  if (after != tables_.frames.begin()) return (after - 1)->state;
  return {FrameState::Kind::kMade, static_cast<uint8_t>(tables_.saved.size())};
}

namespace {

// Returns the row of the call that returns to `pc`. The call may be the last instruction of the
// code.
template <typename Row>
const Row* row_of_return(const Code& code, const std::vector<Row>& rows, const void* pc) {
  uint32_t offset = code.offset_of(static_cast<const uint8_t*>(pc) - 1);
  if (offset == UINT32_MAX) return nullptr;
  ++offset;
  auto after = row_after(rows, offset);
  if (after == rows.begin() || (after - 1)->offset != offset) return nullptr;
  return &*(after - 1);
}

}  // namespace

const CallRow* Code::call_at(const void* pc) const noexcept {
  return row_of_return(*this, tables_.calls, pc);
}

const ExitRow* Code::exit_at(const void* pc) const noexcept {
  return row_of_return(*this, tables_.exits, pc);
}

const ProbeRow* Code::probe_at(const void* pc) const noexcept {
  uint32_t offset = offset_of(pc);
  if (offset == UINT32_MAX) return nullptr;
  auto after = row_after(tables_.probes, offset);
  return after == tables_.probes.begin() ? nullptr : &*(after - 1);
}

SiteId Code::site_at(const void* pc) const noexcept {
  const ProbeRow* row = probe_at(pc);
  return row == nullptr ? 0 : row->site;
}

const LineRow* Code::line_at(const void* pc) const noexcept {
  const uint32_t offset = offset_of(pc);
  if (offset == UINT32_MAX) return nullptr;
  auto after = row_after(tables_.lines, offset);
  if (after == tables_.lines.begin() || (after - 1)->loc == LineRow::kUnknown) return nullptr;
  return &*(after - 1);
}

MethodId Code::method_of(uint32_t body) const noexcept {
  return body == 0 || body > tables_.inlined.size() ? method_ : tables_.inlined[body - 1].method;
}

InlinePath path_of(const Code& code, uint32_t body) {
  InlinePath path;
  const std::vector<InlineRow>& rows = code.tables().inlined;
  for (; body != 0; body = rows[body - 1].parent) {
    path.push_back({rows[body - 1].site, rows[body - 1].method});
  }
  std::reverse(path.begin(), path.end());
  return path;
}

std::vector<SiteId> observed_sites(const Code& code) {
  std::vector<SiteId> sites;
  for (const ProbeRow& r : code.tables().probes) {
    if (r.body == 0) sites.push_back(r.site);
  }
  std::sort(sites.begin(), sites.end());
  sites.erase(std::unique(sites.begin(), sites.end()), sites.end());
  return sites;
}

}  // namespace uptier::jit
