#include "tools/listing.h"

#include <Zydis/Zydis.h>

#include <algorithm>
#include <cstdio>
#include <optional>

namespace uptier::tools {
namespace {

std::string offset_text(uint64_t offset) {
  char text[24];
  std::snprintf(text, sizeof text, "0x%04llx", static_cast<unsigned long long>(offset));
  return text;
}

class Listing {
 public:
  Listing(const jit::Code& code, const ListingNames& names) : code_(code), names_(names) {
    ZydisDecoderInit(&decoder_, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    ZydisFormatterInit(&formatter_, ZYDIS_FORMATTER_STYLE_INTEL);
    ZydisFormatterSetProperty(&formatter_, ZYDIS_FORMATTER_PROP_FORCE_SIZE, ZYAN_FALSE);
  }

  std::string run() {
    uint32_t end = end_of_instructions();
    Decoded d;
    for (uint32_t at = 0; at < end && decode(at, d); at += d.i.length) {
      if (at == code_.hot_size()) text_ += "cold part\n";
      headings(at);
      text_ += "  " + offset_text(at) + "  " + instruction(at, d) + traps(at) + "\n";
    }
    if (end < code_.size()) {
      text_ += "  " + offset_text(end) + "  " + std::to_string(code_.size() - end) +
               " bytes of constants and tables\n";
    }
    return text_;
  }

 private:
  struct Decoded {
    ZydisDecodedInstruction i;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
  };

  bool decode(uint32_t at, Decoded& d) const {
    return ZYAN_SUCCESS(
        ZydisDecoderDecodeFull(&decoder_, code_.base() + at, code_.size() - at, &d.i, d.operands));
  }

  // Constants and tables follow the instructions and are addressed relative to rip.
  uint32_t end_of_instructions() const {
    uint32_t end = code_.size();
    auto base = reinterpret_cast<uint64_t>(code_.base());
    Decoded d;
    for (uint32_t at = 0; at < end && decode(at, d); at += d.i.length) {
      std::optional<Reference> r = reference(at, d);
      if (!r || !r->is_data || r->address < base) continue;
      end = static_cast<uint32_t>(std::min<uint64_t>(end, r->address - base));
    }
    return end;
  }

  // Lines before the instruction at `at`: the probes whose code begins here.
  void headings(uint32_t at) {
    const auto& rows = code_.tables().probes;
    for (; probe_ < rows.size() && rows[probe_].offset <= at; ++probe_) {
      text_ += names_.site(rows[probe_].site, rows[probe_].body) + "\n";
    }
  }

  std::string instruction(uint32_t at, const Decoded& d) {
    char line[256];
    ZydisFormatterFormatInstruction(&formatter_, &d.i, d.operands, d.i.operand_count_visible, line,
                                    sizeof line, ZYDIS_RUNTIME_ADDRESS_NONE, nullptr);
    std::string s = line;
    if (std::optional<Reference> r = reference(at, d)) replace(s, r->address);
    return s;
  }

  // The target of a relative branch or of a rip-relative operand.
  struct Reference {
    uint64_t address;
    bool is_data;
  };
  std::optional<Reference> reference(uint32_t at, const Decoded& d) const {
    auto pc = reinterpret_cast<uint64_t>(code_.base() + at);
    for (uint32_t k = 0; k < d.i.operand_count_visible; ++k) {
      const ZydisDecodedOperand& o = d.operands[k];
      bool branch = o.type == ZYDIS_OPERAND_TYPE_IMMEDIATE && o.imm.is_relative;
      bool rip = o.type == ZYDIS_OPERAND_TYPE_MEMORY && o.mem.base == ZYDIS_REGISTER_RIP;
      ZyanU64 target = 0;
      if (!branch && !rip) continue;
      if (ZYAN_SUCCESS(ZydisCalcAbsoluteAddress(&d.i, &o, pc, &target))) return {{target, rip}};
    }
    return std::nullopt;
  }

  // Puts a name where the formatter left a distance.
  void replace(std::string& s, uint64_t target) {
    auto base = reinterpret_cast<uint64_t>(code_.base());
    auto* address = reinterpret_cast<const void*>(target);
    bool inside = target >= base && target - base <= code_.size();
    std::string name = inside ? offset_text(target - base) : names_.address(address);
    if (name.empty()) name = "outside";
    if (size_t open = s.find("[rip"); open != std::string::npos) {
      size_t close = s.find(']', open);
      s.replace(open + 1, close - open - 1, name);
    } else if (size_t last = s.rfind(' '); last != std::string::npos) {
      s.replace(last + 1, std::string::npos, name);
    }
  }

  std::string traps(uint32_t at) {
    const auto& rows = code_.tables().traps;
    while (trap_ < rows.size() && rows[trap_].offset < at) ++trap_;
    if (trap_ == rows.size() || rows[trap_].offset != at) return "";
    char where[24];
    std::snprintf(where, sizeof where, " @0x%x", rows[trap_].loc);
    return std::string("  ; traps: ") + trap_text(rows[trap_].code) + where;
  }

  const jit::Code& code_;
  const ListingNames& names_;
  ZydisDecoder decoder_;
  ZydisFormatter formatter_;
  std::string text_;
  size_t probe_ = 0, trap_ = 0;
};

}  // namespace

std::string listing(const jit::Code& code, const ListingNames& names) {
  return Listing(code, names).run();
}

}  // namespace uptier::tools
