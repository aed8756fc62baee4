// plan.h: what one compilation of a function is made from.
//
// The law: Host::build describes a method the same way each time it is asked, while the interpreter
// goes on learning. So what it had seen is copied once (freeze), the types that follow from it are
// inferred once, and every build of the method reads the plan only. When the plan turns out wrong
// too often the function gets another method, with a plan that knows more (tiers.cc).
#pragma once

#include <bitset>

#include "uptier/ids.h"
#include "vm.h"

namespace calc {

// What is known of a register: its form in compiled code, and for records and functions more.
struct Type {
  enum Is : uint8_t {
    kNone,      // no path has come here yet
    kInt,       // i32
    kBool,      // i32, 0 or 1
    kDouble,    // f64
    kString,    // i64 from here on: a pointer to the object
    kArray,     //
    kFunction,  // of the Proto, or of any if there is none
    kRecord,    // of the Shape, or of any if there is none
    kNil,       // i64 from here on: the Val
    kAny,       //
  };
  Is is = kNone;
  const void* what = nullptr;

  bool number() const { return is == kInt || is == kDouble; }
  bool object() const { return is >= kString && is <= kRecord; }
  uptier::Type form() const {
    if (is == kInt || is == kBool) return uptier::Type::kI32;
    return is == kDouble ? uptier::Type::kF64 : uptier::Type::kI64;
  }
  // Whether a value may be taken for one of the other type as it is.
  bool fits(Type t) const { return form() == t.form() && object() == t.object(); }
  friend bool operator==(const Type&, const Type&) = default;
};

// What holds on two paths. An int and a double make a double: no program can tell.
Type join(Type a, Type b);
// The type of all values of a kind, kNone if the kinds are several (an int or a double: kDouble).
Type type_of_kinds(unsigned kinds);
// Returns whether a value is of a type, and its bits in the type's form; and the way back.
bool to_form(Type t, Val v, uint64_t& bits);
Val from_form(Type t, uint64_t bits);

using Registers = std::bitset<256>;

// A frame of the interpreter as compiled code leaves it: where it goes on, and the form of each
// value. Slot 0 is the closure; the others are the registers that matter there, in order.
struct State {
  static constexpr uint32_t kNowhere = UINT32_MAX, kParameter = UINT32_MAX - 1;

  uint32_t pc = 0;
  std::vector<std::pair<uint8_t, Type>> registers = {};
  // What to note when a guard has left here, and where: bits, and the kind of a register (or -1).
  uint32_t learn_at = kNowhere;
  int learn_of = -1;
  uint16_t learn = 0;
};

// A loop: from its header to its last jump back.
struct Loop {
  uint32_t end = 0;
  Registers writes = {};  // by its body
  bool quiet = true;      // no array changes its length in it
  // Registers that the body does not write and needs to be of a type: guards before the loop.
  std::map<int, Type> wanted = {};
  // Arrays that the body indexes; see Plan::carries.
  Registers arrays = {};
  int id = -1;  // LoopId, in the order of code; -1: not reached
  // The frame at its header: `registers`, then length and data of each array that it carries.
  State frame = {};
  std::vector<uint8_t> carried = {};
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
  uint32_t number = 0;    // the n-th plan of its function
  bool speculate = true;  // false: what was seen is only a hint
  // By place in the function:
  std::vector<uint16_t> seen;
  std::vector<Field> fields;
  std::vector<Target> targets;
  std::vector<Val> globals;              // a function, where a global was one
  std::vector<Registers> live;           // registers whose values are used from there on
  std::vector<bool> leaders;             // a block begins there
  std::vector<std::vector<Type>> types;  // of registers at a leader; empty where no path comes
  std::vector<uint16_t> params_seen;

  std::map<uint32_t, Loop> loops;  // by the place of the header
  std::vector<State> states;       // by the number that a guard's frame_state carries
  uint32_t exits = 0;

  uint32_t size() const { return proto->end - proto->begin; }
  // Whether length and data of an array are values of their own throughout a loop.
  bool carries(uint32_t header, const Loop& loop, size_t reg) const {
    return loop.quiet && loop.arrays.test(reg) && types[header][reg].is == Type::kArray;
  }
};

// Copies what was seen of a function, and finds its blocks, its loops and what is live where.
std::unique_ptr<Plan> freeze(const Vm& vm, Proto& proto, uint32_t number, bool speculate);

}  // namespace calc
