// register_builder.h: from a register bytecode whose types are not declared to a FunctionBuilder.
//
// A host describes each instruction: what it needs of its operands, what it computes, the type T of
// the result. This header does what all such hosts do: it follows the types of registers over
// jumps and around loops, keeps a Variable for each form that a register takes, changes forms where
// paths of different types meet, and declares the frames of loops and guards.
//
//   RegisterCode     what instructions read, write and jump to; from it blocks, loops, liveness
//   RegisterTypes    what inference finds; kept beside the code, the same for every build
//   RegisterBuilder  one walk over the code. While types are inferred it goes to builders that are
//                    thrown away, until the types at all blocks stand (infer_types); so inference
//                    and code cannot disagree
//
// T is a value with `Type form() const`, the form of such a value in compiled code, `bool fits(T)
// const`, whether it serves as one of the other type as it is, `T join(T) const`, what holds on
// two paths (growing a finite number of times), and ==. T() is "no path has come here yet".
//
// Limits: kMostRegisters registers; one place that an instruction jumps to, so one with more is
// described as several. What lies past them, or is no register or place of the function, fails the
// build with a message (FunctionBuilder::refuse).
//
//   Thread: one at a time. A RegisterTypes changes while it is inferred, and no more.
#pragma once

#include <bitset>
#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "uptier/builder.h"

namespace uptier {

inline constexpr size_t kMostRegisters = 256;
using RegisterSet = std::bitset<kMostRegisters>;  // whose set() and test() throw past them

inline constexpr uint32_t kNoPlace = UINT32_MAX;

// One instruction. Places are indices of instructions.
struct RegisterStep {
  RegisterSet reads, writes;
  bool goes_on = true;           // to the next one
  uint32_t jumps_to = kNoPlace;  // a place; one that is not behind it is a loop's header
};

// The code of one function.
struct RegisterCode {
  std::vector<RegisterSet> live;           // by place: whose values are used from there on
  std::vector<bool> leaders;               // by place: a block begins there
  std::map<uint32_t, uint32_t> loop_ends;  // by header: behind the last jump back
  uint32_t wrong = kNoPlace;               // an instruction that jumps out of the code, if one does

  RegisterCode() = default;
  // Cost: a few passes over the steps. What a jump's instruction writes it writes on both ways.
  explicit RegisterCode(std::span<const RegisterStep> steps);
  uint32_t size() const { return static_cast<uint32_t>(leaders.size()) - 1; }
};

// A frame of the interpreter, as compiled code takes it over or leaves it.
template <typename T>
struct RegisterFrame {
  uint32_t place = 0;
  std::vector<std::pair<uint8_t, T>> registers = {};  // the live ones, in the order of slots
  uint32_t note = kNoPlace;                           // the host's own
};

template <typename T>
struct RegisterTypes {
  std::vector<std::vector<T>> at;        // by leader; empty where no path comes
  std::vector<RegisterFrame<T>> loops;   // by LoopId
  std::vector<RegisterFrame<T>> guards;  // by the pc of the frame_state, which is HostFrame::pc
};

template <typename T>
class RegisterBuilder {
 public:
  // `registers`: of the function, numbered from 0. `infers`: adds to `types`; else these stand.
  RegisterBuilder(const RegisterCode& code, RegisterTypes<T>& types, FunctionBuilder& b,
                  size_t registers, bool infers);
  virtual ~RegisterBuilder() = default;

  // Describes the function. Returns whether types have changed meanwhile.
  bool walk();

 protected:
  // Brings in the arguments. Ends the entry block by flow(0), behind guards if it likes.
  virtual void enter() = 0;
  // Describes the instruction at `at_`. One that jumps ends the block by flow or flow_if; where the
  // block has ended in another way, `alive_` is false.
  virtual void instruction() = 0;
  // Gives a value the form of another type, which its own joins to.
  virtual Value convert(Value v, T from, T to) = 0;

  // ---- Registers
  T& type(int reg) { return has(reg) ? now_[static_cast<size_t>(reg)] : nowhere_ = T(); }
  Value get(int reg) { return b_.use(variable(reg, type(reg).form())); }
  void set(int reg, T t, Value v) {
    type(reg) = t;
    b_.def(variable(reg, t.form()), v);
  }
  bool live(int reg, uint32_t at) const {
    return has(reg) && has_place(at) && code_.live[at].test(static_cast<size_t>(reg));
  }
  // Returns the Variable of a register's form. Registers below 0 are the host's own.
  Variable variable(int reg, Type form);

  // ---- Paths
  void flow(uint32_t to);
  void flow_if(Value condition, uint32_t yes, uint32_t no);
  // Goes on in a block of the host's own, whose predecessors are all there.
  void begin(Block b);

  // ---- Guards
  // Declares the frame in which the interpreter goes on at a place: `leading_`, and the live
  // registers as they are.
  void frame_state(uint32_t place, uint32_t note = kNoPlace);
  // Leaves for the current instruction, which the interpreter then does, where the condition is 0.
  // Nothing that it has done so far may be seen from outside.
  void guard(Value condition, GuardReason reason);
  // Leaves for the current instruction whenever control comes here; the path ends.
  void leave(GuardReason reason = GuardReason::kUnreached);
  // Makes that frame the one that guards leave by, unless it is already.
  void state_here();

  FunctionBuilder& b_;
  std::vector<Value> leading_;  // slots of guards' frames before the registers
  uint32_t at_ = 0;             // the current instruction
  bool alive_ = true;           // whether a path comes to it

 private:
  // Whether there is such a register, or place; else the function is refused.
  bool has(int reg) const;
  bool has_place(uint32_t at) const;
  void enter_block();
  void learn(uint32_t to);
  bool changes_forms(uint32_t to) const;
  void change_forms(uint32_t to);
  bool enters_loop(uint32_t to) const;
  void make_own(uint32_t to);
  Block block_at(uint32_t at);

  const RegisterCode& code_;
  RegisterTypes<T>& types_;
  size_t registers_;
  bool infers_, changed_ = false;
  std::vector<T> now_;
  T nowhere_ = T();
  std::map<std::pair<int, Type>, Variable> variables_;
  std::map<uint32_t, Block> blocks_;
  std::set<uint32_t> headers_;  // of loops whose bodies have begun
  uint32_t next_guard_ = 0;
  uint32_t state_at_ = kNoPlace;  // where the latest frame_state is good for guards
};

// Finds the types of a function: `walk(b)` makes a RegisterBuilder that infers and returns what its
// walk returns. Cost: a walk for each step that types take on their way around loops.
template <typename T, typename Walk>
void infer_types(const RegisterCode& code, RegisterTypes<T>& types, const Signature& s, Walk walk) {
  types.at.assign(code.size() + 1, {});
  for (bool again = true; again;) {
    types.loops.clear();
    types.guards.clear();
    FunctionBuilder thrown_away(s, "");
    again = walk(thrown_away);
  }
}

// ---- Implementation -----------------------------------------------------------------------------

inline RegisterCode::RegisterCode(std::span<const RegisterStep> steps)
    : live(steps.size() + 1), leaders(steps.size() + 1) {
  auto size = static_cast<uint32_t>(steps.size());
  leaders[0] = true;
  for (uint32_t at = 0; at < size; ++at) {
    uint32_t to = steps[at].jumps_to;
    if (to != kNoPlace || !steps[at].goes_on) leaders[at + 1] = true;
    if (to == kNoPlace) continue;
    if (to > size) {
      wrong = at;
      continue;
    }
    leaders[to] = true;
    if (to <= at) loop_ends[to] = at + 1;
  }
  // Backwards until nothing changes.
  for (bool changed = wrong == kNoPlace; changed;) {
    changed = false;
    for (uint32_t at = size; at-- > 0;) {
      const RegisterStep& s = steps[at];
      RegisterSet after = s.goes_on ? live[at + 1] : RegisterSet();
      if (s.jumps_to != kNoPlace) after |= live[s.jumps_to];
      RegisterSet before = (after & ~s.writes) | s.reads;
      changed |= before != live[at];
      live[at] = before;
    }
  }
}

template <typename T>
RegisterBuilder<T>::RegisterBuilder(const RegisterCode& code, RegisterTypes<T>& types,
                                    FunctionBuilder& b, size_t registers, bool infers)
    : b_(b), code_(code), types_(types), registers_(registers), infers_(infers) {
  if (registers > kMostRegisters) {
    b_.refuse(std::to_string(registers) + " registers; " + std::to_string(kMostRegisters) +
              " at most");
  }
  if (code.wrong == kNoPlace) return;
  b_.refuse("instruction " + std::to_string(code.wrong) + " jumps out of the code");
}

template <typename T>
bool RegisterBuilder<T>::has(int reg) const {
  if (reg >= 0 && static_cast<size_t>(reg) < now_.size()) return true;
  b_.refuse("there is no register " + std::to_string(reg) + " among " +
            std::to_string(now_.size()));
  return false;
}

template <typename T>
bool RegisterBuilder<T>::has_place(uint32_t at) const {
  if (at < code_.live.size()) return true;
  b_.refuse("there is no instruction " + std::to_string(at));
  return false;
}

template <typename T>
bool RegisterBuilder<T>::walk() {
  if (!b_.status()) return false;
  now_.assign(registers_, T());
  enter();
  for (at_ = 0; at_ < code_.size(); ++at_) {
    state_at_ = kNoPlace;
    if (code_.leaders[at_]) enter_block();
    if (alive_) instruction();
    for (auto [header, end] : code_.loop_ends) {
      if (end == at_ + 1 && !types_.at[header].empty()) b_.seal(block_at(header));
    }
  }
  return changed_;
}

template <typename T>
void RegisterBuilder<T>::enter_block() {
  if (alive_) flow(at_);
  alive_ = !types_.at[at_].empty();
  if (!alive_) return;
  now_ = types_.at[at_];
  if (!code_.loop_ends.contains(at_)) return begin(block_at(at_));
  headers_.insert(at_);
  b_.switch_to(block_at(at_));
  RegisterFrame<T> loop = {.place = at_};
  std::vector<Variable> slots;
  for (size_t r = 0; r < now_.size(); ++r) {
    if (!code_.live[at_].test(r)) continue;
    loop.registers.push_back({static_cast<uint8_t>(r), now_[r]});
    slots.push_back(variable(static_cast<int>(r), now_[r].form()));
  }
  b_.loop_header(at_, slots);
  if (infers_) types_.loops.push_back(std::move(loop));
}

template <typename T>
void RegisterBuilder<T>::begin(Block b) {
  b_.switch_to(b);
  b_.seal(b);
  state_at_ = kNoPlace;
}

template <typename T>
Block RegisterBuilder<T>::block_at(uint32_t at) {
  auto [found, is_new] = blocks_.try_emplace(at);
  if (is_new) found->second = b_.create_block();
  return found->second;
}

template <typename T>
Variable RegisterBuilder<T>::variable(int reg, Type form) {
  auto [found, is_new] = variables_.try_emplace({reg, form});
  if (is_new) found->second = b_.declare(form);
  return found->second;
}

template <typename T>
void RegisterBuilder<T>::flow(uint32_t to) {
  alive_ = false;
  if (!has_place(to)) return;
  learn(to);
  change_forms(to);
  if (enters_loop(to)) make_own(to);
  b_.jump(block_at(to));
}

template <typename T>
void RegisterBuilder<T>::flow_if(Value condition, uint32_t yes, uint32_t no) {
  alive_ = false;
  if (!has_place(yes) || !has_place(no)) return;
  const uint32_t to[] = {yes, no};
  Block ways[2];
  for (int k = 0; k < 2; ++k) {
    learn(to[k]);
    bool apart = changes_forms(to[k]) || enters_loop(to[k]);
    ways[k] = apart ? b_.create_block() : block_at(to[k]);
  }
  b_.branch(condition, ways[0], ways[1]);
  for (int k = 0; k < 2; ++k) {
    if (ways[k] == block_at(to[k])) continue;
    begin(ways[k]);
    change_forms(to[k]);
    if (enters_loop(to[k])) make_own(to[k]);
    b_.jump(block_at(to[k]));
  }
}

// Adds what is known here to what is known at `to`.
template <typename T>
void RegisterBuilder<T>::learn(uint32_t to) {
  if (!infers_) return;
  std::vector<T>& there = types_.at[to];
  changed_ |= there.empty();
  there.resize(now_.size());
  for (size_t r = 0; r < now_.size(); ++r) {
    if (!code_.live[to].test(r)) continue;
    T joined = there[r] == T() ? now_[r] : now_[r] == T() ? there[r] : there[r].join(now_[r]);
    changed_ |= !(joined == there[r]);
    there[r] = joined;
  }
}

template <typename T>
bool RegisterBuilder<T>::changes_forms(uint32_t to) const {
  for (size_t r = 0; r < now_.size(); ++r) {
    if (code_.live[to].test(r) && !now_[r].fits(types_.at[to][r])) return true;
  }
  return false;
}

// Gives registers the forms that they have at `to`; in Variables of their own, so what is known of
// them here holds on.
template <typename T>
void RegisterBuilder<T>::change_forms(uint32_t to) {
  for (size_t r = 0; r < now_.size(); ++r) {
    T there = types_.at[to][r];
    if (!code_.live[to].test(r) || now_[r].fits(there)) continue;
    auto reg = static_cast<int>(r);
    b_.def(variable(reg, there.form()), convert(get(reg), now_[r], there));
  }
}

template <typename T>
bool RegisterBuilder<T>::enters_loop(uint32_t to) const {
  return code_.loop_ends.contains(to) && !headers_.contains(to);
}

// Gives each register a value of its own, which is no constant. The interpreter comes to the header
// by ways that are not described (what a guard leaves for), on which registers that are constant
// here, or the same, have become something else; its frame is all that then says what they are.
template <typename T>
void RegisterBuilder<T>::make_own(uint32_t to) {
  std::vector<Variable> slots;
  for (size_t r = 0; r < now_.size(); ++r) {
    if (code_.live[to].test(r)) {
      slots.push_back(variable(static_cast<int>(r), types_.at[to][r].form()));
    }
  }
  b_.make_own(slots);
}

template <typename T>
void RegisterBuilder<T>::frame_state(uint32_t place, uint32_t note) {
  if (!has_place(place)) return;
  RegisterFrame<T> f = {.place = place, .note = note};
  std::vector<Value> slots = leading_;
  for (size_t r = 0; r < now_.size(); ++r) {
    if (!code_.live[place].test(r)) continue;
    f.registers.push_back({static_cast<uint8_t>(r), now_[r]});
    slots.push_back(get(static_cast<int>(r)));
  }
  b_.frame_state(next_guard_++, slots);
  if (infers_) types_.guards.push_back(std::move(f));
}

template <typename T>
void RegisterBuilder<T>::state_here() {
  if (state_at_ != at_) frame_state(at_);
  state_at_ = at_;
}

template <typename T>
void RegisterBuilder<T>::guard(Value condition, GuardReason reason) {
  state_here();
  b_.guard(condition, reason);
}

template <typename T>
void RegisterBuilder<T>::leave(GuardReason reason) {
  state_here();
  b_.leave(reason);
  alive_ = false;
}

}  // namespace uptier
