#include <algorithm>

#include "jit/regalloc/parallel_move.h"
#include "jit/x64/emit_impl.h"
#include "jit/x64/fuel_operand.h"
#include "jit/x64/macros.h"

namespace uptier::jit::x64 {

Mem Emitter::slot(uint32_t n, uint32_t bytes) const {
  auto above = static_cast<int32_t>(in_.baseline_frame + 8 * saved_.size());
  return x86::ptr(x86::rbp, -above - 8 * static_cast<int32_t>(n + 1), bytes);
}

Mem Emitter::place(Location l, uint32_t bytes) const {
  if (l.is_slot()) return slot(l.index(), bytes);
  return x86::ptr(x86::rsp, 8 * static_cast<int32_t>(l.index()), bytes);
}

size_t Emitter::first_move(uint32_t n) const {
  const auto& moves = in_.allocation.moves;
  auto before = [](const Move& m, uint32_t gap) { return m.gap < gap; };
  return static_cast<size_t>(std::lower_bound(moves.begin(), moves.end(), n, before) -
                             moves.begin());
}

void Emitter::emit_gap(uint32_t n) {
  const auto& moves = in_.allocation.moves;
  while (move_ < moves.size() && moves[move_].gap == n) {
    size_t end = move_ + 1;
    while (end < moves.size() && moves[end].gap == n && moves[end].phase == moves[move_].phase) {
      ++end;
    }
    if (end == move_ + 1) {
      move(moves[move_].from, moves[move_].to);
    } else {
      for (const Move& m : sequentialize({moves.data() + move_, end - move_})) move(m.from, m.to);
    }
    move_ = end;
  }
}

// All moves are 64 bits wide, so that they keep the upper half of a value. xmm15 carries moves from
// memory to memory, because r11 may hold a value of an opened cycle.
void Emitter::move(Location from, Location to) {
  if (from == to) return;
  if (from.is_constant()) return load_constant(to, m_.constants[from.index()]);
  bool from_gp = from.is_reg() && class_of(from.index()) == RegClass::kGeneral;
  bool to_gp = to.is_reg() && class_of(to.index()) == RegClass::kGeneral;
  auto gpr = [](Location l) { return x86::gpq(l.index()); };
  auto xmm = [](Location l) { return Xmm(l.index() - 16); };
  if (from_gp && to_gp) {
    a_.mov(gpr(to), gpr(from));
  } else if (from_gp) {
    to.is_reg() ? a_.movq(xmm(to), gpr(from)) : a_.mov(place(to, 8), gpr(from));
  } else if (to_gp) {
    from.is_reg() ? a_.movq(gpr(to), xmm(from)) : a_.mov(gpr(to), place(from, 8));
  } else if (from.is_reg() && to.is_reg()) {
    a_.movaps(xmm(to), xmm(from));
  } else if (from.is_reg()) {
    a_.movsd(place(to, 8), xmm(from));
  } else if (to.is_reg()) {
    a_.movsd(xmm(to), place(from, 8));
  } else {
    a_.movsd(x86::xmm15, place(from, 8));
    a_.movsd(place(to, 8), x86::xmm15);
  }
}

// Flags are never alive between instructions, so zero may be made by xor.
void Emitter::load_constant(Location to, uint64_t bits) {
  if (to.is_reg() && class_of(to.index()) == RegClass::kFloat) {
    return emit_constant(b_, true, Xmm(to.index() - 16), bits);
  }
  if (to.is_reg()) {
    Gp d = x86::gpq(to.index());
    bits == 0 ? (void)a_.xor_(d.r32(), d.r32()) : emit_constant(b_, d, bits);
    return;
  }
  auto s = static_cast<int64_t>(bits);
  if (s >= INT32_MIN && s <= INT32_MAX) {
    a_.mov(place(to, 8), imm(s));
  } else {
    emit_constant(b_, x86::r11, bits);
    a_.mov(place(to, 8), x86::r11);
  }
}

Mem Emitter::memory(const MInst& i, uint32_t bytes) const {
  if (i.base == kNoOperand) {  // add_fuel.h
    Mem word = fuel_operand();
    word.setSize(bytes);
    return word;
  }
  Gp base = gp_at(i, i.base);
  if (i.index == kNoOperand) return x86::ptr(base, i.disp, bytes);
  return x86::ptr(base, gp_at(i, i.index), i.scale, i.disp, bytes);
}

void Emitter::claim(const MInst& i) {
  if (i.trap != TrapCode::kNone) b_.trap_row(i.trap, i.loc);
}

}  // namespace uptier::jit::x64
