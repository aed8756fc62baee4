#include "embed/dwarf/abbreviations.h"

#include <algorithm>

#include "embed/dwarf/cursor.h"
#include "embed/dwarf/names.h"

namespace uptier::dwarf {

Result<Abbreviations> Abbreviations::read(const Sections& s, uint64_t at, Budget& budget) {
  constexpr const char* kAbbrev = ".debug_abbrev";
  Abbreviations made;
  Cursor c(s.abbrev, at);
  while (const uint64_t code = c.uleb()) {
    const uint64_t begin = c.at();
    Entry e{code, static_cast<uint32_t>(c.uleb()), c.u8() != 0,
            static_cast<uint32_t>(made.forms_.size()), 0};
    for (;;) {
      AttributeForm a{static_cast<uint32_t>(c.uleb()), static_cast<uint32_t>(c.uleb()), 0};
      if (a.form == kFormImplicitConst) a.implicit = c.sleb();
      if (a.name == 0 && a.form == 0) break;
      if (!budget.step() || !budget.push(made.forms_, a)) return too_large();
      ++e.count;
    }
    if (c.bad()) return broken(kAbbrev, begin, "an abbreviation goes past the end of the section");
    if (!budget.step() || !budget.push(made.entries_, e)) return too_large();
  }
  if (c.bad()) return broken(kAbbrev, at, "a table of abbreviations does not end in its section");
  if (!std::ranges::is_sorted(made.entries_, {}, &Entry::code)) {
    std::ranges::sort(made.entries_, {}, &Entry::code);
  }
  return made;
}

const Abbreviations::Entry* Abbreviations::find(uint64_t code) const {
  if (code != 0 && code <= entries_.size() && entries_[code - 1].code == code) {
    return &entries_[code - 1];
  }
  const auto at = std::ranges::lower_bound(entries_, code, {}, &Entry::code);
  return at != entries_.end() && at->code == code ? &*at : nullptr;
}

}  // namespace uptier::dwarf
