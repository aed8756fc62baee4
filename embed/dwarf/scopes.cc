#include "embed/dwarf/scopes.h"

#include <algorithm>

namespace uptier::dwarf {

Status Scopes::finish(Budget& budget) {
  std::ranges::sort(ranges, [](const ScopeRange& a, const ScopeRange& b) {
    if (a.begin != b.begin) return a.begin < b.begin;
    if (a.depth != b.depth) return a.depth < b.depth;
    return a.scope < b.scope;
  });
  std::vector<ScopeRange> open;  // each inside of the one before
  bool fits = true;
  const auto start = [&](uint32_t begin, uint32_t scope) {
    if (!pieces_.empty() && pieces_.back().begin == begin)
      return void(pieces_.back().scope = scope);
    fits = fits && budget.push(pieces_, Piece{begin, scope});
  };
  const auto close_before = [&](uint64_t address) {
    while (!open.empty() && open.back().end <= address) {
      const uint32_t end = open.back().end;
      open.pop_back();
      start(end, open.empty() ? kNoScope : open.back().scope);
    }
  };
  for (ScopeRange r : ranges) {
    close_before(r.begin);
    // A call that was inlined is inside of its function; anything else is cut.
    if (!open.empty()) r.end = std::min(r.end, open.back().end);
    start(r.begin, r.scope);
    if (!budget.push(open, r)) return too_large();
  }
  close_before(UINT64_MAX);
  ranges = {};
  return fits ? Status() : too_large();
}

uint32_t Scopes::find(uint32_t address) const {
  const auto after = std::ranges::upper_bound(pieces_, address, {}, &Piece::begin);
  return after == pieces_.begin() ? kNoScope : (after - 1)->scope;
}

template <typename Has>
const Subprogram* Scopes::first_entry(const Scope& scope, Has has) const {
  uint64_t at = scope.function;
  // Instance, abstract origin, declaration: three entries in honest files.
  for (unsigned hops = 0; hops < 8 && at != 0; ++hops) {
    const auto entry = std::ranges::lower_bound(subprograms, at, {}, &Subprogram::at);
    if (entry == subprograms.end() || entry->at != at) return nullptr;
    if (has(*entry)) return &*entry;
    at = entry->origin;
  }
  return nullptr;
}

std::string_view Scopes::name_of(const Scope& scope) const {
  const Subprogram* p = first_entry(scope, [](const Subprogram& e) { return !e.name.empty(); });
  return p == nullptr ? std::string_view() : p->name;
}

std::string_view Scopes::linkage_name_of(const Scope& scope) const {
  const Subprogram* p =
      first_entry(scope, [](const Subprogram& e) { return !e.linkage_name.empty(); });
  return p == nullptr ? name_of(scope) : p->linkage_name;
}

uint32_t Scopes::line_of(const Scope& scope) const {
  const Subprogram* p = first_entry(scope, [](const Subprogram& e) { return e.line != 0; });
  return p == nullptr ? 0 : p->line;
}

}  // namespace uptier::dwarf
