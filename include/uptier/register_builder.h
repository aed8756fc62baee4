// register_builder.h: translates a register bytecode without declared types to a FunctionBuilder.
//
// The host describes each instruction: the types that it needs of its operands, the value that it
// computes, and the type T of the result. This header does the work that all such hosts share: it
// follows the types of registers over jumps and around loops, keeps a Variable for each form that a
// register takes, converts values where paths with different types meet, and declares the frames of
// loops and guards.
//
//   RegisterCode     which registers instructions read and write, and where they jump; from this it
//                    computes blocks, loops, liveness
//   RegisterTypes    the result of type inference; kept with the code, the same for every build
//   RegisterBuilder  one walk over the code. During inference it describes to builders that are
//                    thrown away, until the types at all blocks are stable (infer_types); so
//                    inference and code cannot disagree
//
// T is a value type with `Type form() const`, the form of such a value in compiled code; `bool
// fits(T) const`, whether it can be used as the other type without conversion; `T join(T) const`,
// the type after two paths meet (it may grow a finite number of times); and ==. T() means "no path
// has come here yet".
//
// Limits: kMostRegisters registers; an instruction jumps to at most one place, so describe one with
// more as several. If the code exceeds a limit, or names a register or place that the function does
// not have, the build fails with a message (FunctionBuilder::refuse).
//
//   Thread: one at a time. A RegisterTypes changes only while types are inferred.
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
using RegisterSet = std::bitset<kMostRegisters>;  // set() and test() throw beyond kMostRegisters

inline constexpr uint32_t kNoPlace = UINT32_MAX;

// One instruction. A place is the index of an instruction.
struct RegisterStep {
  RegisterSet reads, writes;
  bool goes_on = true;           // true if control may continue with the next instruction
  uint32_t jumps_to = kNoPlace;  // a place; if it is this instruction or an earlier one, it is a
                                 // loop header
};

// The code of one function.
struct RegisterCode {
  std::vector<RegisterSet> live;           // by place: registers whose values are used from there
                                           // on
  std::vector<bool> leaders;               // by place: true if a block begins there
  std::map<uint32_t, uint32_t> loop_ends;  // by header: the place after the last jump back
  uint32_t wrong = kNoPlace;               // an instruction that jumps out of the code, if there is
                                           // one

  RegisterCode() = default;
  // Cost: a few passes over the steps. A register that a jump instruction writes is written on both
  // paths.
  explicit RegisterCode(std::span<const RegisterStep> steps);
  // Returns the number of instructions. Not for a default-constructed object.
  uint32_t size() const { return static_cast<uint32_t>(leaders.size()) - 1; }
};

// A frame of the interpreter that compiled code takes over, or returns to.
template <typename T>
struct RegisterFrame {
  uint32_t place = 0;
  std::vector<std::pair<uint8_t, T>> registers = {};  // the live registers, in the order of slots
  uint32_t note = kNoPlace;                           // for the host
};

template <typename T>
struct RegisterTypes {
  std::vector<std::vector<T>> at;        // by place, for leaders; empty if no path reaches it
  std::vector<RegisterFrame<T>> loops;   // by LoopId
  std::vector<RegisterFrame<T>> guards;  // by the pc of the frame_state, which equals HostFrame::pc
};

template <typename T>
class RegisterBuilder {
 public:
  // `registers`: number of registers of the function, from 0. `infers`: true to extend `types`;
  // false to use them as they are.
  RegisterBuilder(const RegisterCode& code, RegisterTypes<T>& types, FunctionBuilder& b,
                  size_t registers, bool infers);
  virtual ~RegisterBuilder() = default;

  // Describes the function. Returns true if types have changed during the walk.
  bool walk();

 protected:
  // Defines the arguments. Must end the entry block by flow(0); may place guards before it.
  virtual void enter() = 0;
  // Describes the instruction at `at_`. A jump must end the block by flow or flow_if. If the block
  // has ended in another way, set `alive_` to false.
  virtual void instruction() = 0;
  // Converts `v` from the form of `from` to the form of `to`, which is a join of `from` with other
  // types.
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
  // Returns the Variable for one form of a register. Registers below 0 are the host's own.
  Variable variable(int reg, Type form);

  // ---- Paths
  // Ends the block with a jump to a place, and converts registers to the types there. flow_if: to
  // `yes` if `condition` (i32) is not 0, else to `no`.
  void flow(uint32_t to);
  void flow_if(Value condition, uint32_t yes, uint32_t no);
  // Continues in a block of the host's own, whose predecessors must all exist.
  void begin(Block b);

  // ---- Guards
  // Declares the frame in which the interpreter continues at a place: `leading_`, and the live
  // registers with their current values.
  void frame_state(uint32_t place, uint32_t note = kNoPlace);
  // Leaves to the interpreter if the condition is 0; the interpreter then executes the current
  // instruction. So this instruction must not have had any visible effect yet.
  void guard(Value condition, GuardReason reason);
  // Always leaves to the interpreter at the current instruction; the path ends here.
  void leave(GuardReason reason = GuardReason::kUnreached);
  // Declares that frame as the frame that guards leave to, unless it is already.
  void state_here();

  FunctionBuilder& b_;
  std::vector<Value> leading_;  // slots before the registers, in the frames of guards
  uint32_t at_ = 0;             // the current instruction
  bool alive_ = true;           // true if a path reaches it

 private:
  // Returns whether the register, or place, exists; if not, refuses the function.
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
  std::set<uint32_t> headers_;  // headers of loops whose bodies have begun
  uint32_t next_guard_ = 0;
  uint32_t state_at_ = kNoPlace;  // the place where the latest frame_state is valid for guards
};

// Infers the types of a function. `walk(b)` makes a RegisterBuilder that infers, and returns the
// result of its walk. Cost: one walk for each step that types take on their way around loops.
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
  // Goes backwards until nothing changes.
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

// Joins the types here with the types at `to`.
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

// Converts registers to the forms that they have at `to`, in Variables of their own, so that their
// types here stay valid.
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

// Gives each register a value of its own, distinct from constants. The interpreter may reach the
// header by paths that are not described (after a guard has left), where registers have other
// values than the constants or copies here. Then only its frame has their values.
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
