// Moves that happen at once: an edge fills canonical slots, a call fills registers.
//
// A move is done when no remaining move reads its destination. When only cycles are left, one
// scratch register opens them.
#include "jit/x64/baseline_assembler.h"

#include <bit>
#include <utility>

namespace uptier::jit::x64 {
namespace {

constexpr uint32_t kNothing = UINT32_MAX;

uint32_t slot_index(int32_t displacement) { return static_cast<uint32_t>(-displacement) / 8; }

}  // namespace

// ---- Edges: values to canonical slots ---------------------------------------------------------

bool BaselineAssembler::needs_move(Value arg, Value param) const {
  if (values_.is_constant(arg)) return true;
  return values_.home(arg) != in_.frame.slot[param.index()] || values_.is_dirty(arg);
}

bool BaselineAssembler::needs_moves(std::span<const Value> args,
                                    std::span<const Value> params) const {
  for (size_t n = 0; n < args.size(); ++n) {
    if (needs_move(args[n], params[n])) return true;
  }
  return false;
}

// Moves from home slots come first. Nothing overwrites registers and constants, so those can wait
// until no slot has to be read any more.
void BaselineAssembler::move_to_slots(std::span<const Value> args, std::span<const Value> params) {
  moves_.clear();
  for (size_t n = 0; n < args.size(); ++n) {
    Value v = args[n];
    bool from_home = !values_.in_register(v) && !values_.is_constant(v);
    if (from_home && needs_move(v, params[n])) {
      moves_.push_back({v, in_.frame.slot[params[n].index()]});
    }
  }
  if (!moves_.empty()) move_memory(moves_);
  for (size_t n = 0; n < args.size(); ++n) {
    Value v = args[n];
    if (!values_.in_register(v) && !values_.is_constant(v)) continue;
    if (!needs_move(v, params[n])) continue;
    int32_t to = in_.frame.slot[params[n].index()];
    Type t = values_.type_of(v);
    if (values_.in_register(v) && !is_float(t)) {
      emit_frame_store(b_, to, x86::gpq(values_.register_of(v)), is_wide(t));
    } else {
      store_value(v, x86::ptr(x86::rbp, to, is_wide(t) ? 8 : 4));
    }
  }
}

void BaselineAssembler::move_memory(std::vector<Move>& moves) {
  auto canonical = [&](int32_t home) { return slot_index(home) < readers_.size(); };
  for (uint32_t m = 0; m < moves.size(); ++m) {
    int32_t from = values_.home(moves[m].from);
    if (canonical(from)) ++readers_[slot_index(from)];
    writer_[slot_index(moves[m].to)] = m;
  }
  for (uint32_t m = 0; m < moves.size(); ++m) {
    if (readers_[slot_index(moves[m].to)] == 0) ready_.push_back(m);
  }
  int32_t saved = 0;  // the slot whose contents are in the scratch register
  auto run_ready = [&] {
    while (!ready_.empty()) {
      const Move& m = moves[ready_.back()];
      ready_.pop_back();
      int32_t from = values_.home(m.from);
      bool wide = is_wide(values_.type_of(m.from));
      writer_[slot_index(m.to)] = kNothing;
      if (from == saved) {
        emit_store(b_, wide ? Type::kF64 : Type::kF32, x86::ptr(x86::rbp, m.to), kXmmScratch);
      } else {
        move_slot(from, m.to, wide);
      }
      if (!canonical(from) || --readers_[slot_index(from)] != 0) continue;
      if (uint32_t writer = writer_[slot_index(from)]; writer != kNothing) ready_.push_back(writer);
    }
  };
  run_ready();
  for (uint32_t m = 0; m < moves.size(); ++m) {
    if (writer_[slot_index(moves[m].to)] != m) continue;
    saved = moves[m].to;
    emit_load(b_, Type::kF64, kXmmScratch, x86::ptr(x86::rbp, saved));
    ready_.push_back(m);
    run_ready();
    saved = 0;
  }
}

void BaselineAssembler::move_slot(int32_t from, int32_t to, bool wide) {
  emit_frame_load(b_, kScratch, from, wide);
  emit_frame_store(b_, to, kScratch, wide);
}

// [to] = v, through a scratch register if necessary. `to` has the size of v's type.
void BaselineAssembler::store_value(Value v, const Mem& to) {
  Type t = values_.type_of(v);
  bool wide = is_wide(t);
  if (values_.in_register(v)) {
    unsigned reg = values_.register_of(v);
    is_float(t) ? emit_store(b_, t, to, x86::xmm(reg - 16))
                : emit_store(b_, Opcode::kStore, t, to, x86::gpq(reg));
  } else if (values_.is_immediate(v)) {
    a_.mov(to, imm(static_cast<int32_t>(values_.constant_bits(v))));
  } else if (values_.is_constant(v)) {
    emit_constant(b_, kScratch, values_.constant_bits(v));
    a_.mov(to, kScratch);
  } else {
    Gp through = gp(kScratch, wide);
    a_.mov(through, values_.home_operand(v));
    a_.mov(to, through);
  }
}

// ---- Calls: values to argument registers ------------------------------------------------------

void BaselineAssembler::load_arguments(std::vector<ArgMove>& moves) {
  for (const ArgMove& m : moves) {
    if (values_.in_register(m.from) && values_.register_of(m.from) != m.to) {
      source_[m.to] = static_cast<int8_t>(values_.register_of(m.from));
    }
  }
  move_registers();
  for (const ArgMove& m : moves) {
    if (!values_.in_register(m.from)) values_.copy_to(m.to, m.from);
  }
}

// Fills every register `r` with source_[r] >= 0 from that register, all at once.
void BaselineAssembler::move_registers() {
  uint8_t readers[32] = {};
  uint32_t targets = 0;
  for (unsigned to = 0; to < 32; ++to) {
    if (source_[to] < 0) continue;
    ++readers[source_[to]];
    targets |= 1u << to;
  }
  auto each_target = [&](auto visit) {
    for (uint32_t left = targets; left != 0; left &= left - 1) {
      visit(static_cast<unsigned>(std::countr_zero(left)));
    }
  };
  auto move = [&](unsigned to, unsigned from) {
    if (to >= 16) {
      a_.movaps(x86::xmm(to - 16), x86::xmm(from - 16));
    } else {
      a_.mov(x86::gpq(to), x86::gpq(from));
    }
  };
  // Does the move to `to`, and then each move that waited for its source to be read.
  auto run = [&](unsigned to) {
    while (source_[to] >= 0 && readers[to] == 0) {
      auto from = static_cast<unsigned>(std::exchange(source_[to], int8_t{-1}));
      move(to, from);
      if (--readers[from] != 0) return;
      to = from;
    }
  };
  each_target(run);
  each_target([&](unsigned to) {
    if (source_[to] < 0) return;
    // A cycle: every register in it is read once. The scratch register replaces the first.
    unsigned scratch = to >= 16 ? 16 + kXmmScratch.id() : kScratch.id();
    move(scratch, to);
    for (int8_t& from : source_) {
      if (from == static_cast<int8_t>(to)) from = static_cast<int8_t>(scratch);
    }
    readers[to] = 0;
    readers[scratch] = 1;
    run(to);
  });
}

}  // namespace uptier::jit::x64
