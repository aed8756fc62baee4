#include "embed/dwarf/unit.h"

#include "embed/dwarf/names.h"

namespace uptier::dwarf {
namespace {

constexpr uint32_t kLong = 0xffffffff;  // starts a length of the 64-bit format

// Longer text is no name. Without this limit, many references to one long text would take time that no
// step counts.
constexpr uint64_t kLongestText = 4096;

std::string_view text_at(std::span<const uint8_t> section, uint64_t at) {
  return at >= section.size() ? std::string_view() : Cursor(section, at, at + kLongestText).text();
}

// Returns entry `index` of a table of numbers, 0 outside of it.
uint64_t entry(std::span<const uint8_t> section, uint64_t base, uint64_t index, unsigned width) {
  if (base > section.size() || index >= (section.size() - base) / width) return 0;
  return Cursor(section, base + index * width).number(width);
}

Value number(uint64_t n) { return {Value::kNumber, n, {}}; }

Value skipped(Cursor& c, uint64_t count) {
  c.skip(count);
  return {};
}

}  // namespace

uint64_t read_length(Cursor& c, uint8_t& offset_size) {
  uint64_t length = c.u32();
  offset_size = 4;
  if (length == kLong) {
    length = c.number(8);
    offset_size = 8;
  }
  if (length > c.left()) return c.stop();
  return c.at() + length;
}

Error split_error(uint64_t at) {
  return {ErrorCode::kUnsupported,
          broken(".debug_info", at, "the debug information is split; build without -gsplit-dwarf")
              .message};
}

Result<Unit> read_unit(const Sections& s, uint64_t at) {
  constexpr const char* kInfo = ".debug_info";
  Cursor c(s.info, at);
  Unit u;
  u.begin = at;
  u.end = read_length(c, u.encoding.offset_size);
  if (c.bad()) return broken(kInfo, u.begin, "a unit's length goes past the end of the section");
  u.encoding.version = c.u16();
  if (u.encoding.version < 2 || u.encoding.version > 5) {
    return Error{ErrorCode::kUnsupported, broken(kInfo, u.begin, "DWARF version ").message +
                                              std::to_string(u.encoding.version) +
                                              " is not known; use -gdwarf-4 or -gdwarf-5"};
  }
  if (u.encoding.version >= 5) {
    u.type = c.u8();
    u.encoding.address_size = c.u8();
    u.abbrevs = c.number(u.encoding.offset_size);
    if (u.type == kUnitSkeleton || u.type == kUnitSplitCompile) return split_error(at);
    if (u.type == kUnitType || u.type == kUnitSplitType) c.skip(8 + u.encoding.offset_size);
  } else {
    u.abbrevs = c.number(u.encoding.offset_size);
    u.encoding.address_size = c.u8();
  }
  u.first = c.at();
  if (c.bad() || u.first > u.end)
    return broken(kInfo, u.begin, "a unit is shorter than its header");
  if (u.encoding.address_size != 4 && u.encoding.address_size != 8) {
    return broken(kInfo, u.begin, "addresses of a unit have neither 4 nor 8 bytes");
  }
  return u;
}

Value read_value(Cursor& c, uint32_t form, int64_t implicit, const Encoding& e,
                 uint64_t unit_begin) {
  const auto reference = [&](uint64_t at) { return Value{Value::kReference, unit_begin + at, {}}; };
  if (form == kFormIndirect) {
    form = static_cast<uint32_t>(c.uleb());
    if (form == kFormIndirect || form == kFormImplicitConst) return c.stop(), Value{};
  }
  switch (form) {
    case kFormAddr: return {Value::kAddress, c.number(e.address_size), {}};
    case kFormData1:
    case kFormFlag: return number(c.u8());
    case kFormData2: return number(c.u16());
    case kFormData4: return number(c.u32());
    case kFormData8: return number(c.number(8));
    case kFormSdata: return number(static_cast<uint64_t>(c.sleb()));
    case kFormUdata: return number(c.uleb());
    case kFormImplicitConst: return number(static_cast<uint64_t>(implicit));
    case kFormFlagPresent: return number(1);
    case kFormSecOffset: return {Value::kOffset, c.number(e.offset_size), {}};
    case kFormString: return {Value::kText, 0, c.text()};
    case kFormStrp: return {Value::kStr, c.number(e.offset_size), {}};
    case kFormLineStrp: return {Value::kLineStr, c.number(e.offset_size), {}};
    case kFormStrx: return {Value::kTextIndex, c.uleb(), {}};
    case kFormAddrx: return {Value::kAddressIndex, c.uleb(), {}};
    case kFormRnglistx: return {Value::kListIndex, c.uleb(), {}};
    case kFormRef1: return reference(c.u8());
    case kFormRef2: return reference(c.u16());
    case kFormRef4: return reference(c.u32());
    case kFormRef8: return reference(c.number(8));
    case kFormRefUdata: return reference(c.uleb());
    case kFormRefAddr:
      return {Value::kReference, c.number(e.version == 2 ? e.address_size : e.offset_size), {}};
    case kFormBlock:
    case kFormExprloc: return skipped(c, c.uleb());
    case kFormBlock1: return skipped(c, c.u8());
    case kFormBlock2: return skipped(c, c.u16());
    case kFormBlock4: return skipped(c, c.u32());
    case kFormData16: return skipped(c, 16);
    case kFormRefSig8:
    case kFormRefSup8: return skipped(c, 8);
    case kFormRefSup4: return skipped(c, 4);
    case kFormStrpSup: return skipped(c, e.offset_size);
    case kFormLoclistx: return c.uleb(), Value{};
    default: break;
  }
  if (form >= kFormStrx1 && form <= kFormStrx4) {
    return {Value::kTextIndex, c.number(form - kFormStrx1 + 1), {}};
  }
  if (form >= kFormAddrx1 && form <= kFormAddrx4) {
    return {Value::kAddressIndex, c.number(form - kFormAddrx1 + 1), {}};
  }
  return c.stop(), Value{};
}

std::string_view text_of(const Value& v, const Unit& unit, const Sections& s) {
  if (v.kind == Value::kStr) return text_at(s.str, v.number);
  if (v.kind == Value::kLineStr) return text_at(s.line_str, v.number);
  if (v.kind != Value::kTextIndex) return v.text;
  const uint8_t width = unit.encoding.offset_size;
  if (v.number >= s.str_offsets.size()) return {};
  return text_at(s.str, entry(s.str_offsets, unit.str_offsets_base, v.number, width));
}

uint64_t address_of(const Value& v, const Unit& unit, const Sections& s) {
  if (v.kind != Value::kAddressIndex) return v.number;
  return entry(s.addr, unit.addr_base, v.number, unit.encoding.address_size);
}

}  // namespace uptier::dwarf
