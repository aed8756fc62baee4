#include "jit/symbols/gdb_lines.h"

#include <algorithm>

namespace uptier::jit {
namespace {

// Numbers of DWARF 4: tags, attributes, forms, line opcodes.
constexpr uint8_t kDwCompileUnit = 0x11, kDwInlinedSubroutine = 0x1d, kDwSubprogram = 0x2e;
constexpr uint8_t kDwName = 0x03, kDwStmtList = 0x10, kDwLowPc = 0x11, kDwHighPc = 0x12,
                  kDwLanguage = 0x13, kDwInline = 0x20, kDwAbstractOrigin = 0x31, kDwRanges = 0x55,
                  kDwCallColumn = 0x57, kDwCallFile = 0x58, kDwCallLine = 0x59;
constexpr uint8_t kDwAddress = 0x01, kDwData8 = 0x07, kDwString = 0x08, kDwData1 = 0x0b,
                  kDwUdata = 0x0f, kDwRef4 = 0x13, kDwSecOffset = 0x17;
constexpr uint8_t kDwLanguageC = 0x02, kDwInlined = 1;
constexpr uint16_t kDwVersion = 4;

enum Abbrev : uint8_t { kDwNone, kDwUnit, kDwMethod, kDwAbstract, kDwInlinedCall };

void put_abbreviations(ObjectBytes& out) {
  out.put({kDwUnit, kDwCompileUnit, 1, kDwName, kDwString, kDwLanguage, kDwData1, kDwLowPc,
           kDwAddress, kDwHighPc, kDwData8, kDwStmtList, kDwSecOffset, 0, 0});
  out.put({kDwMethod, kDwSubprogram, 1, kDwName, kDwString, kDwLowPc, kDwAddress, kDwHighPc,
           kDwData8, 0, 0});
  out.put({kDwAbstract, kDwSubprogram, 0, kDwName, kDwString, kDwInline, kDwData1, 0, 0});
  out.put({kDwInlinedCall, kDwInlinedSubroutine, 1, kDwAbstractOrigin, kDwRef4, kDwRanges,
           kDwSecOffset, kDwCallFile, kDwUdata, kDwCallLine, kDwUdata, kDwCallColumn, kDwUdata, 0,
           0});
  out.put({0});
}

// Reserves the length of an entry; end_length fills it in.
size_t begin_length(ObjectBytes& out) {
  out.put<uint32_t>(0);
  return out.size();
}
void end_length(ObjectBytes& out, size_t begin) {
  out.patch32(begin - 4, static_cast<uint32_t>(out.size() - begin));
}

// ---- Line programs ----------------------------------------------------------------------------

constexpr uint8_t kDwCopy = 1, kDwAdvancePc = 2, kDwAdvanceLine = 3, kDwSetFile = 4,
                  kDwSetColumn = 5;
constexpr uint8_t kDwEndSequence = 1, kDwSetAddress = 2;  // after a 0 and the length

void put_line_header(ObjectBytes& out, const NativeLines& lines) {
  out.put(kDwVersion);
  const size_t header = begin_length(out);
  constexpr uint8_t kLineBase = 0xfb, kLineRange = 14, kOpcodes = 13;  // no special one is used
  out.put({1, 1, 1, kLineBase, kLineRange, kOpcodes});
  out.put({0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 0, 1});  // operands of each standard opcode
  out.put({0});                                   // no directories
  for (const std::string& file : lines.files) {
    out.text(file);
    out.put({0, 0, 0});  // directory, time, length: not known
  }
  out.put({0});
  end_length(out, header);
}

void put_line_program(ObjectBytes& out, const NamedCode& code) {
  const NativeLines& lines = code.lines;
  const size_t unit = begin_length(out);
  put_line_header(out, lines);
  out.put({0, 9, kDwSetAddress});
  out.put(reinterpret_cast<uintptr_t>(code.base));
  NativeLines::Place now{0, 1, 0};
  uint32_t at = 0;
  for (const NativeLines::Row& r : lines.rows) {
    out.put({kDwAdvancePc});
    out.uleb(r.offset - at);
    at = r.offset;
    out.put({kDwSetFile});
    out.uleb(r.at.file + 1);
    out.put({kDwSetColumn});
    out.uleb(r.at.column);
    out.put({kDwAdvanceLine});
    out.sleb(int64_t{r.at.line} - int64_t{now.line});
    out.put({kDwCopy});
    now = r.at;
  }
  out.put({kDwAdvancePc});
  out.uleb(lines.end - at);
  out.put({0, 1, kDwEndSequence});
  end_length(out, unit);
}

// ---- Bodies -----------------------------------------------------------------------------------

// Writes the unit of one body.
class UnitWriter {
 public:
  UnitWriter(GdbLines& out, const NamedCode& code)
      : out_(out), info_(out.info), code_(code), lines_(code.lines) {}

  void run() {
    const size_t unit = begin_length(info_);
    unit_at_ = unit - 4;
    info_.put(kDwVersion);
    info_.put<uint32_t>(0);  // all units have the same abbreviations
    info_.put<uint8_t>(8);   // bytes of an address
    info_.put({kDwUnit});
    info_.text(lines_.files.empty() ? "" : lines_.files[first_file()]);
    info_.put({kDwLanguageC});
    put_extent();
    info_.put(static_cast<uint32_t>(out_.line.size()));
    put_abstracts();
    info_.put({kDwMethod});
    info_.text(code_.name);
    put_extent();
    put_calls_in(0);
    info_.put({kDwNone, kDwNone});  // the subprogram and the unit end
    end_length(info_, unit);
    put_line_program(out_.line, code_);
  }

 private:
  uint32_t first_file() const {
    const auto known =
        std::ranges::find_if(lines_.rows, [](const NativeLines::Row& r) { return r.at.line != 0; });
    return known == lines_.rows.end() ? 0 : known->at.file;
  }

  void put_extent() {
    info_.put(reinterpret_cast<uintptr_t>(code_.base));
    info_.put<uint64_t>(code_.size);
  }

  // The bodies that have code here, by what was inlined into them or by their own rows.
  void put_abstracts() {
    extents_.resize(lines_.bodies.size());
    for (size_t n = 0; n < lines_.rows.size(); ++n) {
      const uint32_t begin = lines_.rows[n].offset;
      const uint32_t end = n + 1 < lines_.rows.size() ? lines_.rows[n + 1].offset : lines_.end;
      if (begin < end) cover(lines_.rows[n].body, begin, end);
    }
    for (size_t k = 0; k < extents_.size(); ++k) {
      abstracts_.push_back(static_cast<uint32_t>(info_.size() - unit_at_));
      if (extents_[k].empty()) continue;
      info_.put({kDwAbstract});
      info_.text(lines_.bodies[k].name);
      info_.put({kDwInlined});
    }
  }

  // A body covers the code of those that are inlined into it.
  void cover(uint32_t body, uint32_t begin, uint32_t end) {
    for (; body != 0; body = lines_.bodies[body - 1].parent) {
      auto& extents = extents_[body - 1];
      const bool joins = !extents.empty() && extents.back().end == begin;
      joins ? void(extents.back().end = end) : extents.push_back({begin, end});
    }
  }

  void put_calls_in(uint32_t parent) {
    for (size_t k = 0; k < lines_.bodies.size(); ++k) {
      const NativeLines::Body& body = lines_.bodies[k];
      if (body.parent != parent || extents_[k].empty()) continue;
      info_.put({kDwInlinedCall});
      info_.put(abstracts_[k]);
      info_.put(static_cast<uint32_t>(out_.ranges.size()));
      info_.uleb(body.call.file + 1);
      info_.uleb(body.call.line);
      info_.uleb(body.call.column);
      put_ranges(k);
      put_calls_in(static_cast<uint32_t>(k + 1));
      info_.put({kDwNone});
    }
  }

  // Offsets count from the unit's low_pc.
  void put_ranges(size_t k) {
    for (const Extent& e : extents_[k]) {
      out_.ranges.put<uint64_t>(e.begin);
      out_.ranges.put<uint64_t>(e.end);
    }
    out_.ranges.put<uint64_t>(0);
    out_.ranges.put<uint64_t>(0);
  }

  struct Extent {
    uint32_t begin, end;
  };
  GdbLines& out_;
  ObjectBytes& info_;
  const NamedCode& code_;
  const NativeLines& lines_;
  size_t unit_at_ = 0;
  std::vector<std::vector<Extent>> extents_;  // by body - 1
  std::vector<uint32_t> abstracts_;           // likewise: offsets in the unit
};

}  // namespace

GdbLines gdb_lines(std::span<const NamedCode> codes) {
  GdbLines out;
  for (const NamedCode& c : codes) {
    if (!c.lines.empty()) UnitWriter(out, c).run();
  }
  if (!out.empty()) put_abbreviations(out.abbrev);
  return out;
}

}  // namespace uptier::jit
