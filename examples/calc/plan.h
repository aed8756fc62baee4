// plan.h: what one compilation of a function is made from: what the interpreter had seen by then,
// copied (uptier/planned_host.h says why), and the types that follow from it.
#pragma once

#include "uptier/planned_host.h"
#include "uptier/register_builder.h"
#include "vm.h"

namespace calc {

// The type of a register, as far as it is known: the kinds that its value may be of, or none if no
// path has come here yet. A record may be known by its Shape, a function by its Proto.
//
// The kinds give the form that the value has in compiled code: i32 for an int or a boolean, f64 for
// a number (an int that meets a double becomes one: no program can tell), i64 for all else: the
// pointer where it is an object of one kind, or the Val.
struct Type {
  unsigned kinds = 0;
  const void* what = nullptr;

  bool is(unsigned kind) const { return kinds == kind; }
  bool may_be(unsigned kind) const { return (kinds & kind) != 0; }
  bool number() const { return kinds != 0 && !may_be(~kNumber); }
  bool object() const { return is(kString) || is(kArray) || is(kRecord) || is(kFunction); }

  uptier::Type form() const {
    if (is(kInt) || is(kBool)) return uptier::Type::kI32;
    return number() ? uptier::Type::kF64 : uptier::Type::kI64;
  }
  bool fits(Type t) const { return form() == t.form() && object() == t.object(); }
  Type join(Type t) const { return {kinds | t.kinds, what == t.what ? what : nullptr}; }
  friend bool operator==(const Type&, const Type&) = default;
};

// Returns whether a value is of a type, and its bits in the type's form; and the way back.
bool to_form(Type t, Val v, uint64_t& bits);
Val from_form(Type t, uint64_t bits);

struct Plan : uptier::HostPlan {
  // The interpreter's observations at a place.
  struct Place {
    uint16_t seen = 0;
    std::vector<FieldCache::Entry> shapes = {};  // none when there were too many
    Closure* callee = nullptr;
    bool many_closures = false, many_protos = false;
  };

  Proto* proto = nullptr;
  bool guess = true;  // false: what was seen is only a hint
  std::vector<Place> places;
  std::vector<unsigned> params_seen;
  uptier::RegisterCode code;
  uptier::RegisterTypes<Type> types;
};

// Copies the observations of a function, and infers the types.
std::unique_ptr<Plan> make_plan(Vm& vm, Proto& proto, bool guess);

}  // namespace calc
