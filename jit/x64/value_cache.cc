#include "jit/x64/value_cache.h"

#include <cassert>

#include "jit/x64/macros.h"

namespace uptier::jit::x64 {
namespace {

// In order of preference: registers that instructions insist on (rax, rdx, rcx) come last.
constexpr uint8_t kGpOrder[] = {Gp::kIdSi,  Gp::kIdDi, Gp::kIdR8, Gp::kIdR9,
                                Gp::kIdR10, Gp::kIdAx, Gp::kIdDx, Gp::kIdCx};
constexpr uint8_t kXmmOrder[] = {16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30};

std::span<const uint8_t> order(Type t) {
  return is_float(t) ? std::span<const uint8_t>(kXmmOrder) : std::span<const uint8_t>(kGpOrder);
}

}  // namespace

ValueCache::ValueCache(CodeBuffer& b, const FrameLayout& frame, uint32_t reserved)
    : b_(b),
      a_(b.assembler()),
      state_(frame.slot.size()),
      constants_(frame.slot.size()),
      reserved_(reserved),
      pinned_(reserved),
      lowest_(-static_cast<int32_t>(frame.size)) {
  for (size_t v = 0; v < state_.size(); ++v) state_[v].home = frame.slot[v];
}

// ---- Blocks -----------------------------------------------------------------------------------

void ValueCache::flush() {
  each_taken([&](Value v, unsigned) {
    if (is_dirty(v) && crosses(v)) store(v);
  });
}

void ValueCache::end_block() {
  each_taken([&](Value v, unsigned reg) {
    if (!crosses(v) && !is_constant(v)) unbind(reg);
  });
  pinned_ = reserved_;
}

void ValueCache::enter(Value v, unsigned reg) {
  State& s = state(v);
  s.flags |= kDirty;
  bind(v, reg);
}

// ---- Queries ----------------------------------------------------------------------------------

bool ValueCache::is_immediate(Value v) const {
  if (!is_constant(v)) return false;
  auto bits = static_cast<int64_t>(constant_bits(v));
  return !is_wide(type_of(v)) || bits == static_cast<int32_t>(bits);
}

bool ValueCache::dies(Value v) const {
  const State& s = state_[v.index()];
  return s.uses == 1 && (s.flags & (kCrosses | kDirty)) != (kCrosses | kDirty);
}

// ---- Registers --------------------------------------------------------------------------------

// Returns a free register, or else the one that is cheapest to lose: its value is clean and not
// needed in this block, then clean, then dirty.
unsigned ValueCache::choose(Type t) const {
  unsigned best = kNoReg;
  int best_cost = INT32_MAX;
  for (unsigned reg : order(t)) {
    if ((pinned_ >> reg & 1) != 0) continue;
    if (!owner_[reg].valid()) return reg;
    const State& s = state_[owner_[reg].index()];
    int cost = (s.flags & kDirty) != 0 ? 2 : s.uses != 0 ? 1 : 0;
    if (cost >= best_cost) continue;
    best = reg;
    best_cost = cost;
  }
  assert(best != kNoReg && "one instruction pins all registers");
  return best;
}

unsigned ValueCache::allocate(Type t) {
  unsigned reg = choose(t);
  evict(reg);
  pinned_ |= 1u << reg;
  return reg;
}

void ValueCache::evict(unsigned reg) {
  Value v = owner_[reg];
  if (!v.valid()) return;
  if (is_dirty(v) && !is_dead(v)) store(v);
  unbind(reg);
}

void ValueCache::vacate(unsigned reg) {
  Value v = owner_[reg];
  pinned_ |= 1u << reg;
  if (!v.valid()) return;
  if (uses(v) != 0) {
    for (unsigned other : order(type_of(v))) {
      if (!is_free(other)) continue;
      copy_to(other, v);
      uint8_t flags = state(v).flags;
      unbind(reg);
      bind(v, other);
      state(v).flags = flags | kClean;  // copy_to moves an i32 by its 32 bits
      return;
    }
  }
  evict(reg);
}

unsigned ValueCache::reg_of(Value v) {
  State& s = state(v);
  if (s.reg == kNoReg) {
    unsigned reg = allocate(type_of(v));
    copy_to(reg, v);
    bind(v, reg);
    s.flags |= kClean;
  }
  pinned_ |= 1u << s.reg;
  return s.reg;
}

Gp ValueCache::index_of(Value v) {
  Gp r = gp_of(v);
  if (!is_wide(type_of(v)) && (state(v).flags & kClean) == 0) {
    emit_zero_extend(b_, r, r);
    state(v).flags |= kClean;
  }
  return r;
}

unsigned ValueCache::take(Value v) {
  State& s = state(v);
  unsigned reg = s.reg;
  if (reg != kNoReg && dies(v)) {
    unbind(reg);
    pinned_ |= 1u << reg;
  } else {
    reg = allocate(type_of(v));
    copy_to(reg, v);
  }
  use(v);
  return reg;
}

void ValueCache::take_in(Value v, unsigned reg) {
  State& s = state(v);
  if (s.reg == reg && dies(v)) {
    unbind(reg);
    pinned_ |= 1u << reg;
  } else if (s.reg == reg) {
    vacate(reg);  // the register keeps its old contents
    if (s.reg == kNoReg) copy_to(reg, v);
  } else {
    vacate(reg);
    copy_to(reg, v);
  }
  use(v);
}

// Forgets v, which has no more uses.
void ValueCache::give_up(Value v) {
  State& s = state(v);
  if (s.reg != kNoReg) {
    unpin(s.reg);
    unbind(s.reg);
  }
  drop_spill(s);
}

void ValueCache::define(Value v, unsigned reg, bool clean) {
  State& s = state(v);
  if (is_dead(v)) return;
  s.flags |= kDirty;
  if (clean) {
    s.flags |= kClean;
  } else {
    s.flags &= static_cast<uint8_t>(~kClean);
  }
  bind(v, reg);
}

// ---- Calls ------------------------------------------------------------------------------------

void ValueCache::save_all() {
  each_taken([&](Value v, unsigned) {
    if (is_dirty(v) && !is_dead(v)) store(v);
  });
}

void ValueCache::forget_all() {
  each_taken([&](Value, unsigned reg) { unbind(reg); });
  pinned_ = reserved_;
}

// ---- Places -----------------------------------------------------------------------------------

Mem ValueCache::home_operand(Value v) const {
  assert(home(v) != 0 && !is_dirty(v));
  return x86::ptr(x86::rbp, home(v), is_wide(type_of(v)) ? 8 : 4);
}

void ValueCache::store(Value v) {
  State& s = state(v);
  if (s.home == 0) {
    if (free_spills_.empty()) {
      s.home = lowest_ -= 8;
    } else {
      s.home = free_spills_.back();
      free_spills_.pop_back();
    }
    s.flags |= kSpilled;
  }
  s.flags &= static_cast<uint8_t>(~kDirty);
  Type t = type_of(v);
  if (is_float(t)) {
    emit_store(b_, t, home_operand(v), x86::xmm(s.reg - 16u));
  } else {
    emit_frame_store(b_, s.home, x86::gpq(s.reg), is_wide(t));
  }
}

void ValueCache::drop_spill(State& s) {
  if ((s.flags & kSpilled) == 0) return;
  free_spills_.push_back(s.home);
  s.home = 0;
  s.flags &= static_cast<uint8_t>(~kSpilled);
}

void ValueCache::copy_to(unsigned reg, Value v) {
  const State& s = state(v);
  if (s.reg == kNoReg) {
    assert(is_constant(v) || (home(v) != 0 && !is_dirty(v)));
    return load_home(reg, v);
  }
  Type t = type_of(v);
  if (is_float(t)) {
    a_.movaps(x86::xmm(reg - 16), x86::xmm(s.reg - 16u));
  } else {
    a_.mov(gp(reg, is_wide(t)), gp(s.reg, is_wide(t)));
  }
}

void ValueCache::load_home(unsigned reg, Value v) {
  Type t = type_of(v);
  if (is_float(t)) {
    Xmm to = x86::xmm(reg - 16);
    is_constant(v) ? emit_constant(b_, t == Type::kF64, to, constant_bits(v))
                   : emit_load(b_, t, to, x86::ptr(x86::rbp, home(v)));
  } else {
    Gp to = x86::gpq(reg);
    is_constant(v) ? emit_constant(b_, to, constant_bits(v))
                   : emit_frame_load(b_, to, home(v), is_wide(t));
  }
}

std::vector<ValueCache::Cached> ValueCache::cached() const {
  std::vector<Cached> all;
  each_taken([&](Value v, unsigned reg) { all.push_back({v, static_cast<uint8_t>(reg)}); });
  return all;
}

}  // namespace uptier::jit::x64
