// plan.h: what one compilation of a function is made from.
//
// The law: Host::build describes a method the same way each time it is asked, while the interpreter
// goes on learning. So what it had seen is copied once (freeze), the types that follow from it are
// inferred once, and every build of the method reads the plan only. When the plan turns out wrong
// too often the function gets another method, with a plan that knows more (tiers.cc).
#pragma once

#include <bitset>
#include <optional>
#include <span>

#include "uptier/ids.h"
#include "vm.h"

namespace calc {

// What is known of a register: its form in compiled code, and for records and functions more.
struct Type {
  enum Is : uint8_t {
    kNone,    // no path has come here yet
    kInt,     // i32
    kBool,    // i32, 0 or 1
    kDouble,  // f64
    kNil,     // i64 from here on: the Val
    kString,
    kArray,
    kFunction,
    kRecord,  // of the shape, or of any if there is none
    kAny,
  };
  Is is = kNone;
  Shape* shape = nullptr;

  bool number() const { return is == kInt || is == kDouble; }
  bool object() const { return is >= kNil && is <= kRecord; }
  uptier::Type form() const {
    if (is == kInt || is == kBool) return uptier::Type::kI32;
    return is == kDouble ? uptier::Type::kF64 : uptier::Type::kI64;
  }
  friend bool operator==(const Type&, const Type&) = default;
};

// What holds on two paths. An int and a double make a double: no program can tell.
Type join(Type a, Type b);

using Live = std::bitset<256>;

// A frame of the interpreter as compiled code leaves it: where it goes on, and the form of each
// value. Slot 0 is the closure; the others are the registers that matter there, in order.
struct State {
  static constexpr int kNobody = -1;
  static constexpr uint32_t kParameter = UINT32_MAX;

  uint32_t pc = 0;
  std::vector<std::pair<uint8_t, Type>> registers = {};
  int result = kNobody;  // a register whose value was not as seen at `seen_at`
  uint32_t seen_at = 0;
};

struct Plan {
  struct Field {
    std::vector<FieldCache::Entry> entries;
    bool overflowed = false;
  };
  struct Target {
    Proto* only = nullptr;
    bool many = false;
  };

  Proto* proto = nullptr;
  uptier::MethodId method;
  uint32_t number = 0;    // the n-th plan of its function
  bool speculate = true;  // false: what was seen is only a hint
  // By place in the function:
  std::vector<uint16_t> seen;
  std::vector<Field> fields;
  std::vector<Target> targets;
  std::vector<Live> live;           // registers whose values are used from there on
  std::vector<uint32_t> loop_ends;  // of a loop's header: one more than the place of its jump back
  std::vector<bool> leaders;        // a block begins there
  std::vector<std::vector<Type>> types;  // of registers at a leader; empty where no path comes
  std::vector<uint16_t> params_seen;

  std::vector<State> loops;   // by LoopId: frames at their headers
  std::vector<State> states;  // by the number that a guard's frame_state carries
  uint32_t exits = 0;

  uint32_t size() const { return proto->end - proto->begin; }
  std::optional<uint32_t> loop_at(uint32_t pc) const;
};

// Copies what was seen of a function, and finds its blocks and what is live where.
std::unique_ptr<Plan> freeze(const Vm& vm, Proto& proto, uint32_t number, bool speculate);

// Which registers an instruction reads, and which it writes (-1: none).
struct Uses {
  std::vector<int> reads;
  int writes = -1;
  int writes_too = -1;
};
Uses uses_of(const Vm& vm, const Instr& i);
bool is_jump(Op op);  // d is a place
bool falls_through(Op op);

}  // namespace calc
