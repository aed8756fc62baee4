// interpreted_host.h: a host with an IR interpreter, for random functions in Tier::kHost.
//
//   expose   makes all values that are live at a loop header or a frame_state into host slots, so that a
//            frame can change hands at each of them
//   run      runs from the entry, a loop header or a frame_state to the end of the call; at each header it
//            asks whether compiled code takes the frame over
//
// The interpreter ignores guards: where compiled code fails a guard, the interpreter goes on. So
// the oracle runs the same functions without guards.
#pragma once

#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "jit/analysis/liveness.h"
#include "jit/frontend/builder_access.h"
#include "jit/ir/module.h"
#include "jit/ir/semantics.h"
#include "tests/support/ir_corpus.h"
#include "uptier/runtime.h"

namespace uptier::test {

// Returns the values that are used after instruction `n` of a block and defined before it, in no
// particular order.
inline std::vector<Value> needed_behind(const jit::Function& f, const jit::Liveness& live, Block b,
                                        size_t n) {
  std::vector<bool> seen(f.values.size());
  std::vector<Value> needed;
  auto use = [&](Value v) {
    if (!seen[v.index()]) needed.push_back(v);
    seen[v.index()] = true;
  };
  const auto& insts = f.block(b).insts;
  for (size_t k = n + 1; k < insts.size(); ++k) {
    const jit::Inst& i = f.inst(insts[k]);
    for (Value v : f.args(i)) use(v);
    for (const jit::Edge& e : f.edges_of(i)) {
      for (Value v : f.list(e.args)) use(v);
      for (Value v : live.live_in[e.to.index()]) use(v);
    }
    if (i.result.valid()) seen[i.result.index()] = true;
  }
  std::vector<bool> later(f.values.size());
  for (size_t k = n + 1; k < insts.size(); ++k) {
    if (Value v = f.inst(insts[k]).result; v.valid()) later[v.index()] = true;
  }
  std::erase_if(needed, [&](Value v) { return later[v.index()]; });
  return needed;
}

// Gives each loop header and frame_state its slots. The slots of a frame_state begin with the
// arguments of the call, which the host could not recover otherwise.
inline void expose(jit::Function& f) {
  jit::Liveness live = jit::compute_liveness(f);
  for (Block b : f.layout) {
    std::vector<jit::InstId> insts = f.block(b).insts;
    for (size_t n = 0; n < insts.size(); ++n) {
      Opcode op = f.inst(insts[n]).op;
      if (op != Opcode::kLoopHeader && op != Opcode::kFrameState) continue;
      std::vector<Value> slots;
      if (op == Opcode::kFrameState) {
        auto params = f.params(f.entry());
        slots.assign(params.begin(), params.end());
      }
      for (Value v : needed_behind(f, live, b, n)) slots.push_back(v);
      f.inst(insts[n]).args = f.make_list(slots);
    }
  }
}

// Removes the guards.
inline void drop_guards(jit::Function& f) {
  for (Block b : f.layout) {
    std::erase_if(f.block(b).insts, [&](jit::InstId i) { return f.inst(i).op == Opcode::kGuard; });
  }
}

// Functions of one signature, as methods that start in the interpreter. The runtime must be
// destroyed first. Thread: one thread runs the functions; any thread may call `build`.
class InterpretedHost final : public Host {
 public:
  static constexpr size_t kMost = 4;  // functions

  static Signature signature(Type result) {
    return {{Type::kRef, Type::kI64, Type::kI32, Type::kF64, Type::kF32}, result};
  }

  // `exposed` has at most kMost functions, each of signature(kI64) or signature(kF64).
  InterpretedHost(Runtime& runtime, const jit::Module& exposed, const Scratch& scratch)
      : runtime_(runtime), module_(exposed), scratch_(scratch) {
    current = this;
    for (uint32_t i = 0; i < module_.functions.size(); ++i) {
      const jit::Function& f = module_.functions[i];
      MethodInfo info{.key = {f.cfg_hash, i}, .name = f.name, .signature = f.signature()};
      info.host_entry = entry_for(i, f.signature().result);
      info.host_resume = &resume;
      info.host_may_trap = true;
      methods_.push_back(runtime.add_method(*this, info).value());
    }
  }

  Status build(MethodId m, FunctionBuilder& b) override {
    jit::Function f = module_.functions[m.index() - methods_.front().index()];
    for (jit::Callee& c : f.callees) c.method = methods_[c.method.index()];
    BuilderAccess::adopt(b, std::move(f));
    return {};
  }
  MethodId method(uint32_t function) const { return methods_[function]; }

  bool always_ask = false;  // asks at every header, even if the countdown is not due
  uint64_t entered = 0;     // loops that osr_enter took over
  uint64_t resumed = 0;     // frames that compiled code left to the interpreter

 private:
  using Words = std::vector<uint64_t>;

  // A call in the interpreter, before instruction `n` of `block`.
  struct Frame {
    uint32_t function = 0;
    Words args;
    Words values;
    Block block;
    size_t n = 0;
  };

  template <size_t N, typename R>
  static R enter(void* a, int64_t b, int32_t c, double d, float e) {
    InterpretedHost& self = *current;
    const jit::Function& f = self.module_.functions[N];
    Frame frame{N, {}, Words(f.values.size()), f.entry(), 0};
    frame.args = {reinterpret_cast<uint64_t>(a), static_cast<uint64_t>(b), static_cast<uint32_t>(c),
                  std::bit_cast<uint64_t>(d), std::bit_cast<uint32_t>(e)};
    auto params = f.params(f.entry());
    for (size_t i = 0; i < params.size(); ++i) frame.values[params[i].index()] = frame.args[i];
    return std::bit_cast<R>(self.run(frame));
  }
  template <size_t... N>
  static const void* entry_for(size_t n, Type result, std::index_sequence<N...>) {
    static const void* const ints[] = {reinterpret_cast<const void*>(&enter<N, int64_t>)...};
    static const void* const floats[] = {reinterpret_cast<const void*>(&enter<N, double>)...};
    return result == Type::kI64 ? ints[n] : floats[n];
  }
  static const void* entry_for(size_t n, Type result) {
    return entry_for(n, result, std::make_index_sequence<kMost>());
  }

  // Finds the frame_state by its pc, which is unique in the function.
  static uint64_t resume(const HostFrame* given) {
    auto& self = *static_cast<InterpretedHost*>(given->host);
    ++self.resumed;
    Frame frame;
    frame.function = given->method.index() - self.methods_.front().index();
    const jit::Function& f = self.module_.functions[frame.function];
    frame.values.resize(f.values.size());
    for (Block b : f.layout) {
      const auto& insts = f.block(b).insts;
      for (size_t n = 0; n < insts.size(); ++n) {
        const jit::Inst& i = f.inst(insts[n]);
        if (i.op != Opcode::kFrameState || i.imm != given->pc) continue;
        frame.block = b;
        frame.n = n + 1;
        auto slots = f.args(i);
        if (slots.size() != given->slot_count) std::abort();
        for (size_t k = 0; k < slots.size(); ++k) {
          frame.values[slots[k].index()] = given->slots[k];
        }
        frame.args.assign(given->slots, given->slots + f.signature().params.size());
        return self.run(frame);
      }
    }
    std::abort();
  }

  uint64_t raise(TrapCode code, uint64_t detail = 0) {
    Runtime::raise(code, detail);
    return 0;
  }

  // Returns the bits of the result; meaningless after a trap was raised.
  uint64_t run(Frame& frame) {
    const jit::Function& f = module_.functions[frame.function];
    for (;;) {
      const jit::Inst& i = f.inst(f.block(frame.block).insts[frame.n++]);
      Words words;
      for (Value v : f.args(i)) words.push_back(frame.values[v.index()]);
      switch (info(i.op).shape) {
        case Shape::kReturn: return words.empty() ? 0 : words[0];
        case Shape::kTrap: return raise(static_cast<TrapCode>(i.aux));
        case Shape::kLoopHeader:
          if (auto o = take_over(frame, LoopId(i.aux), words)) {
            return o->ok() ? o->bits : raise(o->trap.code, o->trap.detail);
          }
          break;
        case Shape::kJump: follow(frame, f, f.edges_of(i)[0]); break;
        case Shape::kBranch: follow(frame, f, f.edges_of(i)[words[0] != 0 ? 0 : 1]); break;
        case Shape::kSwitch:
          follow(frame, f, f.edges_of(i)[std::min<uint64_t>(words[0], i.edge_count - 1)]);
          break;
        default:
          if (TrapCode trap = execute(f, i, words, frame); trap != TrapCode::kNone) {
            return raise(trap, detail_);
          }
      }
    }
  }

  std::optional<Outcome> take_over(const Frame& frame, LoopId loop, const Words& slots) {
    MethodId m = methods_[frame.function];
    if (--*runtime_.loop_countdown(m) > 0 && !always_ask) return {};
    auto o = runtime_.osr_enter(m, loop, frame.args, slots.data());
    entered += o.has_value();
    return o;
  }

  void follow(Frame& frame, const jit::Function& f, const jit::Edge& e) {
    Words args;
    for (Value v : f.list(e.args)) args.push_back(frame.values[v.index()]);
    auto params = f.params(e.to);
    for (size_t k = 0; k < params.size(); ++k) frame.values[params[k].index()] = args[k];
    frame.block = e.to;
    frame.n = 0;
  }

  // Executes an instruction that does not transfer control.
  TrapCode execute(const jit::Function& f, const jit::Inst& i, const Words& words, Frame& frame) {
    auto set = [&](uint64_t bits) {
      if (i.result.valid()) frame.values[i.result.index()] = bits;
      return TrapCode::kNone;
    };
    detail_ = 0;
    switch (info(i.op).shape) {
      case Shape::kConst: return set(i.imm);
      case Shape::kKnownCount: return set(0);
      case Shape::kLoad: {
        uint64_t raw = 0;
        unsigned size = jit::access_size(i.op, i.type);
        const uint8_t* at = place(i, words, 0, size);
        if (at == nullptr) return TrapCode::kOutOfBoundsMemory;
        std::memcpy(&raw, at, size);
        return set(jit::extend_loaded(i.op, i.type, raw));
      }
      case Shape::kStore: {
        unsigned size = jit::access_size(i.op, i.type);
        uint8_t* at = place(i, words, 1, size);
        if (at == nullptr) return TrapCode::kOutOfBoundsMemory;
        std::memcpy(at, &words[0], size);
        return TrapCode::kNone;
      }
      case Shape::kCall: {
        Outcome o = runtime_.invoke(methods_[f.callees[i.imm].method.index()], words);
        detail_ = o.trap.detail;
        return o.ok() ? set(jit::clip(i.type, o.bits)) : o.trap.code;
      }
      case Shape::kCallHost: {
        jit::OutsideResult r = call_corpus_host(f.host_callees[i.imm], words);
        return r.trap != TrapCode::kNone ? r.trap : set(jit::clip(i.type, r.bits));
      }
      case Shape::kTrapIf: return words[0] != 0 ? static_cast<TrapCode>(i.aux) : TrapCode::kNone;
      case Shape::kProbe:
      case Shape::kFrameMemory:
      case Shape::kFrameState:
      case Shape::kGuard: return TrapCode::kNone;
      default: break;
    }
    Type source = words.empty() ? Type::kNone : f.type_of(f.args(i)[0]);
    jit::Evaluation e = jit::evaluate(i.op, i.type, source, words);
    return e.trap != TrapCode::kNone ? e.trap : set(e.bits);
  }

  uint8_t* place(const jit::Inst& i, const Words& words, size_t first, unsigned size) const {
    uint64_t address = words[first] + i.imm + (words.size() > first + 1 ? words[first + 1] : 0);
    uint64_t offset = address - scratch_.base();
    if (offset <= Scratch::kSize - size) return reinterpret_cast<uint8_t*>(address);
    return nullptr;
  }

  inline static InterpretedHost* current = nullptr;  // static: entry functions have no parameter
                                                     // for it

  Runtime& runtime_;
  const jit::Module& module_;
  const Scratch& scratch_;
  std::vector<MethodId> methods_;
  uint64_t detail_ = 0;
};

}  // namespace uptier::test
