// slot_laws: assumptions about an interpreter's frame by the code that is entered from it.
//
// Such code loads the values that are live at a loop's header from the slots of the header's frame
// state. It does not load three kinds of slots: slots described as a constant or as an argument,
// and, of several slots with the same value, all but the first. An interpreter that came by a path
// that was not described may hold something else there.
//
//   Pure, any thread. broken_law allocates nothing.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "jit/ir/function.h"

namespace uptier::jit {

// The bits of one slot equal a constant, an argument, or an earlier slot.
struct SlotLaw {
  enum class Kind : uint8_t { kConstant, kArgument, kSlot };
  Kind kind = Kind::kConstant;
  Type type = Type::kNone;  // of the slot's value: bits above its width are not compared
  uint32_t slot = 0;
  uint64_t is = 0;  // the constant's bits, or the number of the argument or slot

  friend bool operator==(const SlotLaw&, const SlotLaw&) = default;
};

// Returns the laws of a loop of `f` as it was built, by rising slot; none if it has no such loop.
std::vector<SlotLaw> slot_laws(const Function& f, LoopId loop);

// Returns the first law that a frame breaks, or null. `args`: as many as `f` has parameters;
// `frame`: as many words as the header's frame state has slots. One comparison per law.
const SlotLaw* broken_law(std::span<const SlotLaw> laws, std::span<const uint64_t> args,
                          const uint64_t* frame) noexcept;

// Returns the value that the law requires, as text: "the constant 0x2a", "argument 1", "the value
// of slot 0".
std::string law_text(const SlotLaw& law);

}  // namespace uptier::jit
