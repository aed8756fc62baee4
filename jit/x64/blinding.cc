#include "jit/x64/blinding.h"

#include <bit>

namespace uptier::jit {
namespace {

namespace I = x86::Inst;
using asmjit::Operand_;

bool is_gp(const Operand_& o) { return o.isReg() && o.as<x86::Reg>().isGp(); }

bool is(const Operand_& o, const Gp& r) { return is_gp(o) && o.id() == r.id(); }

// The registers that an operand names.
uint32_t named(const Operand_& o) {
  if (is_gp(o)) return 1u << o.id();
  if (!o.isMem()) return 0;
  const Mem& m = o.as<Mem>();
  uint32_t base = m.hasBaseReg() ? 1u << m.baseId() : 0;
  return base | (m.hasIndexReg() ? 1u << m.indexId() : 0);
}

// Returns whether the offset may come from the guest: it is not a place in a frame or in a table of
// the library.
bool is_chosen(const Mem& m) {
  if (m.hasBaseLabel() || m.hasSegment()) return false;
  bool library =
      (named(m) & (1u << x86::rsp.id() | 1u << x86::rbp.id() | 1u << x86::r11.id())) != 0;
  return !library && (m.hasBaseReg() || m.hasIndexReg());
}

// Returns the constant as an instruction of this width reads it.
int64_t value_of(const Operand_& immediate, uint32_t bytes) {
  int64_t v = immediate.as<asmjit::Imm>().value();
  return bytes == 8 ? v : static_cast<int32_t>(v);
}

// Returns the width of an operand; 0 if it cannot take a large constant.
uint32_t operand_bytes(const Operand_& o) {
  if (is_gp(o)) return o.as<x86::Reg>().size();
  return o.isMem() ? o.as<Mem>().size() : 0;
}

}  // namespace

void BlindAssembler::start(uint64_t seed, uint32_t above) {
  state_ = seed;
  above_ = above;
  on_ = true;
}

// Limits of loops and masks are often such numbers. There are 128 of them.
bool BlindAssembler::is_plain(int64_t c) {
  if (c != static_cast<int32_t>(c) && c != static_cast<uint32_t>(c)) return false;
  auto bits = static_cast<uint32_t>(c);
  return std::has_single_bit(bits) || std::has_single_bit(bits + 1) || std::has_single_bit(~bits) ||
         std::has_single_bit(0 - bits);
}

// SplitMix64 (Steele, Lea and Flood 2014).
uint64_t BlindAssembler::draw() {
  uint64_t z = state_ += 0x9e3779b97f4a7c15;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
  z = (z ^ z >> 27) * 0x94d049bb133111eb;
  return z ^ z >> 31;
}

asmjit::Error BlindAssembler::_emit(asmjit::InstId id, const Operand_& o0, const Operand_& o1,
                                    const Operand_& o2, const Operand_* more) {
  if (on_ && paused_ == 0) {
    Rewritten r;
    r.id = id;
    r.ops[0].copyFrom(o0);
    r.ops[1].copyFrom(o1);
    r.ops[2].copyFrom(o2);
    if (find(r)) return rewrite(r);
  }
  return Assembler::_emit(id, o0, o1, o2, more);
}

bool BlindAssembler::find(Rewritten& r) const {
  if (r.id == I::kIdPush || is(r.ops[0], x86::rsp)) return false;
  uint32_t bytes = operand_bytes(r.ops[0]);
  for (int n = 0; n < 3; ++n) {
    const Operand_& o = r.ops[n];
    r.used |= named(o);
    if (o.isImm() && bytes >= 4 && hides(value_of(o, bytes))) r.immediate = n;
    if (o.isMem() && is_chosen(o.as<Mem>()) && hides(o.as<Mem>().offsetLo32())) r.memory = n;
  }
  return r.immediate >= 0 || r.memory >= 0;
}

asmjit::Error BlindAssembler::refuse(const char* why) {
  return reportError(asmjit::kErrorInvalidState, why);
}

asmjit::Error BlindAssembler::rewrite(Rewritten& r) {
  asmjit::InstOptions options = instOptions();
  asmjit::RegOnly extra = extraReg();
  resetInstOptions();
  resetExtraReg();
  size_t start = offset();
  pause();
  // A move to a register loads it directly; nothing of the instruction is left.
  if (r.id == I::kIdMov && r.immediate == 1 && is_gp(r.ops[0])) {
    uint32_t bytes = operand_bytes(r.ops[0]);
    auto bits = static_cast<uint64_t>(value_of(r.ops[1], bytes));
    load(r.ops[0].as<Gp>(), bytes == 8 ? bits : static_cast<uint32_t>(bits));
    go_on();
    return asmjit::kErrorOk;
  }
  Gp product;
  bool done = (r.immediate < 0 || hide_immediate(r, &product)) && (r.memory < 0 || hide_offset(r));
  if (!done) {
    go_on();
    return refuse("blind_constants: an instruction has no register to spare");
  }
  instruction_moved(offset() - start);
  setInstOptions(options);
  setExtraReg(extra);
  static const asmjit::Operand kNone[3];
  asmjit::Error error = Assembler::_emit(r.id, r.ops[0], r.ops[1], r.ops[2], kNone);
  if (product.isValid()) mov(product, r.ops[0].as<Gp>());
  if (r.lends) movq(r.lent, x86::xmm15);
  go_on();
  return error;
}

// Finds a register that the instruction does not name. Only one can be lent at a time.
bool BlindAssembler::take(Rewritten& r, Gp* scratch) {
  if ((r.used >> x86::r11.id() & 1) == 0) {
    *scratch = x86::r11;
  } else if (!r.lends) {
    for (const Gp& g : {x86::rsi, x86::rdi, x86::r8, x86::r9}) {
      if ((r.used >> g.id() & 1) == 0) *scratch = g;
    }
    r.lends = true;
    r.lent = *scratch;
    movq(x86::xmm15, r.lent);
  } else {
    return false;
  }
  r.used |= 1u << scratch->id();
  return true;
}

// d = bits, in all 64 bits.
void BlindAssembler::load(const Gp& d, uint64_t bits) {
  auto low = static_cast<uint32_t>(draw());
  auto key = static_cast<int32_t>(low);
  bool sign = bits == static_cast<uint64_t>(int64_t{static_cast<int32_t>(bits)});
  if (sign || bits <= UINT32_MAX) {
    mov(d.r32(), imm(static_cast<uint32_t>(bits) - low));
    lea(d.r32(), x86::ptr(d.r64(), key));
    if (bits > UINT32_MAX) movsxd(d.r64(), d.r32());
    return;
  }
  auto other = static_cast<int32_t>(draw());
  uint64_t swapped = __builtin_bswap64(bits - static_cast<uint64_t>(int64_t{other}));
  uint64_t hidden = swapped - static_cast<uint64_t>(int64_t{key});
  mov(d.r64(), imm(hidden));
  lea(d.r64(), x86::ptr(d.r64(), key));
  bswap(d.r64());
  lea(d.r64(), x86::ptr(d.r64(), other));
}

// A product of three operands is computed in the register of the constant, and then moved to
// `product`.
bool BlindAssembler::hide_immediate(Rewritten& r, Gp* product) {
  uint32_t bytes = operand_bytes(r.ops[0]);
  Gp value;
  if (!take(r, &value)) return false;
  auto bits = static_cast<uint64_t>(value_of(r.ops[r.immediate], bytes));
  load(value, bytes == 8 ? bits : static_cast<uint32_t>(bits));
  value = gp(value, bytes == 8);
  if (r.id == I::kIdImul && r.immediate == 2) {
    *product = r.ops[0].as<Gp>();
    r.ops[0].copyFrom(value);
    r.ops[2].reset();
  } else {
    r.ops[r.immediate].copyFrom(value);
  }
  return true;
}

bool BlindAssembler::hide_offset(Rewritten& r) {
  Mem m = r.ops[r.memory].as<Mem>();
  Gp address;
  if (!take(r, &address)) return false;
  load(address, static_cast<uint64_t>(int64_t{m.offsetLo32()}));
  if (!m.hasBaseReg()) {
    m.setBase(address);
  } else if (!m.hasIndexReg()) {
    m.setIndex(address, 0);
  } else {
    lea(address, x86::ptr(address, x86::gpq(m.baseId())));
    m.setBase(address);
  }
  m.setOffset(0);
  r.ops[r.memory].copyFrom(m);
  return true;
}

}  // namespace uptier::jit
