#include "embed/dwarf/info_reader.h"

#include <algorithm>
#include <map>
#include <optional>

#include "embed/dwarf/abbreviations.h"
#include "embed/dwarf/names.h"
#include "embed/dwarf/ranges.h"

namespace uptier::dwarf {
namespace {

constexpr const char* kInfo = ".debug_info";
constexpr size_t kDeepest = 4096;  // nesting of entries

// The attributes of an entry that the reader uses.
struct Entry {
  uint64_t at = 0;
  Value name, stmt_list, low_pc, high_pc, comp_dir, origin, ranges;
  Value call_file, call_line, call_column, call_discriminator;
  Value linkage_name, line;
  Value str_offsets_base, addr_base, rnglists_base;
  bool is_split = false;

  void set(uint32_t attribute, const Value& v) {
    switch (attribute) {
      case kAtName: name = v; return;
      case kAtStmtList: stmt_list = v; return;
      case kAtLowPc: low_pc = v; return;
      case kAtHighPc: high_pc = v; return;
      case kAtCompDir: comp_dir = v; return;
      case kAtAbstractOrigin:
      case kAtSpecification: origin = v; return;
      case kAtRanges: ranges = v; return;
      case kAtCallFile: call_file = v; return;
      case kAtCallLine: call_line = v; return;
      case kAtCallColumn: call_column = v; return;
      case kAtGnuDiscriminator: call_discriminator = v; return;
      case kAtDeclLine: line = v; return;
      case kAtLinkageName:
      case kAtMipsLinkageName: linkage_name = v; return;
      case kAtStrOffsetsBase: str_offsets_base = v; return;
      case kAtAddrBase: addr_base = v; return;
      case kAtRnglistsBase: rnglists_base = v; return;
      case kAtDwoName:
      case kAtGnuDwoName: is_split = true; return;
      default: return;
    }
  }
};

class UnitReader {
 public:
  UnitReader(const Sections& s, Unit unit, const Abbreviations& abbrevs, LineTable& lines,
             Scopes& scopes, Budget& budget)
      : s_(s),
        unit_(unit),
        abbrevs_(abbrevs),
        lines_(lines),
        scopes_(scopes),
        budget_(budget),
        c_(s.info, unit.first, unit.end) {}

  Status run() {
    while (!c_.done()) {
      const uint64_t at = c_.at();
      const uint64_t code = c_.uleb();
      if (!budget_.step()) return too_large();
      if (code == 0) {
        if (!parents_.empty()) parents_.pop_back();
        if (parents_.empty()) return {};  // padding may follow
        continue;
      }
      const Abbreviations::Entry* kind = abbrevs_.find(code);
      if (kind == nullptr) return broken(kInfo, at, "an entry has a code without an abbreviation");
      if (Status r = entry(at, *kind); !r) return r;
      if (!kind->has_children && parents_.empty()) return {};
    }
    return {};
  }

 private:
  // An open entry: the scope that its children are in.
  struct Parent {
    uint32_t scope = kNoScope;
    uint32_t depth = 0;
    bool removed = false;  // the linker removed the function
  };

  Status entry(uint64_t at, const Abbreviations::Entry& kind) {
    const bool is_root = parents_.empty();
    const bool is_function = kind.tag == kTagSubprogram || kind.tag == kTagInlinedSubroutine;
    Entry e;
    e.at = at;
    for (const AttributeForm& a : abbrevs_.forms(kind)) {
      const Value v = read_value(c_, a.form, a.implicit, unit_.encoding, unit_.begin);
      if (c_.bad()) {
        return broken(kInfo, at, "an entry goes past the end of its unit, or has an unknown form");
      }
      if (is_root || is_function) e.set(a.name, v);
    }
    if (!budget_.step(kind.count)) return too_large();
    Parent parent = is_root ? Parent() : parents_.back();
    if (is_root) {
      if (Status r = root(e); !r) return r;
    } else if (is_function) {
      if (Status r = function(e, kind.tag == kTagInlinedSubroutine, parent); !r) return r;
    }
    if (!kind.has_children) return {};
    if (parents_.size() >= kDeepest) return broken(kInfo, at, "entries nest deeper than 4096");
    return budget_.push(parents_, parent) ? Status() : too_large();
  }

  // The unit's own entry.
  Status root(const Entry& e) {
    if (e.is_split) return split_error(e.at);
    unit_.str_offsets_base = e.str_offsets_base.number;
    unit_.addr_base = e.addr_base.number;
    unit_.rnglists_base = e.rnglists_base.number;
    unit_.low_pc = address_of(e.low_pc, unit_, s_);
    unit_.comp_dir = text_of(e.comp_dir, unit_, s_);
    if (e.stmt_list.kind == Value::kNone) return {};
    const uint64_t program = e.stmt_list.number;
    if (Status r = lines_.read(s_, program, unit_.comp_dir, budget_); !r) return r;
    files_ = lines_.files_of(program);
    return {};
  }

  // Adds a scope if the entry has code. `parent` becomes the parent of the entry's children.
  Status function(const Entry& e, bool is_inlined, Parent& parent) {
    if (!is_inlined) {
      const Subprogram p{e.at, text_of(e.name, unit_, s_), text_of(e.linkage_name, unit_, s_),
                         e.origin.number, static_cast<uint32_t>(e.line.number)};
      if (!budget_.push(scopes_.subprograms, p)) return too_large();
      parent = Parent();
    }
    const bool has_code = e.low_pc.kind != Value::kNone || e.ranges.kind != Value::kNone;
    if (!has_code || parent.removed) return {};
    const auto number = static_cast<uint32_t>(scopes_.scopes.size());
    const uint32_t depth = is_inlined ? parent.depth + 1 : 0;
    bool found = false, fits = true;
    const auto add = [&](uint64_t begin, uint64_t end) {
      if (begin == 0 || begin >= end || end > s_.code_end) return;
      found = true;
      fits = fits &&
             budget_.push(scopes_.ranges, ScopeRange{static_cast<uint32_t>(begin),
                                                     static_cast<uint32_t>(end), number, depth});
    };
    if (e.ranges.kind != Value::kNone) {
      if (Status r = each_range(e.ranges, unit_, s_, budget_, add); !r) return r;
    } else {
      const uint64_t low = address_of(e.low_pc, unit_, s_);
      const uint64_t high = address_of(e.high_pc, unit_, s_);
      add(low, e.high_pc.kind == Value::kNumber ? low + high : high);
    }
    if (!found) {
      parent.removed = !is_inlined;
      return fits ? Status() : too_large();
    }
    Scope scope;
    scope.parent = is_inlined ? parent.scope : kNoScope;
    scope.function = is_inlined ? e.origin.number : e.at;
    if (is_inlined) {
      scope.call_file = files_.of(e.call_file.number);
      scope.call_line = static_cast<uint32_t>(e.call_line.number);
      scope.call_discriminator = static_cast<uint32_t>(e.call_discriminator.number);
      scope.call_column =
          static_cast<uint16_t>(std::min<uint64_t>(e.call_column.number, UINT16_MAX));
    }
    fits = fits && budget_.push(scopes_.scopes, scope);
    parent = {number, depth, false};
    return fits ? Status() : too_large();
  }

  const Sections& s_;
  Unit unit_;
  const Abbreviations& abbrevs_;
  LineTable& lines_;
  Scopes& scopes_;
  Budget& budget_;
  Cursor c_;
  FileNumbers files_;
  std::vector<Parent> parents_;
};

}  // namespace

Status read_info(const Sections& s, LineTable& lines, Scopes& scopes, Budget& budget) {
  std::map<uint64_t, Abbreviations> tables;  // by offset
  for (uint64_t at = 0; at < s.info.size();) {
    Result<Unit> unit = read_unit(s, at);
    if (!unit) return unit.error();
    at = unit->end;
    if (unit->type == kUnitType || unit->type == kUnitSplitType) continue;
    auto table = tables.find(unit->abbrevs);
    if (table == tables.end()) {
      Result<Abbreviations> read = Abbreviations::read(s, unit->abbrevs, budget);
      if (!read) return read.error();
      if (!budget.take(Budget::kNodeBytes)) return too_large();
      table = tables.emplace(unit->abbrevs, std::move(*read)).first;
    }
    if (Status r = UnitReader(s, *unit, table->second, lines, scopes, budget).run(); !r) return r;
  }
  return {};
}

}  // namespace uptier::dwarf
