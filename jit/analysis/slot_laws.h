// slot_laws: what code that is entered from an interpreter's frame takes for granted of the frame.
//
// Such code loads what lives at a loop's header from the slots of the header's frame state, except
// three kinds of slots: one that was described as a constant or as an argument is not looked at, and
// of several with the same value the first one is. An interpreter that has come by ways that are not
// described may have something else there.
//
//   Pure, any thread. broken_law allocates nothing.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "jit/ir/function.h"

namespace uptier::jit {

// The bits of one slot are those of a constant, of an argument, or of a slot before it.
struct SlotLaw {
  enum class Kind : uint8_t { kConstant, kArgument, kSlot };
  Kind kind = Kind::kConstant;
  Type type = Type::kNone;  // of the slot's value: what is above its width says nothing
  uint32_t slot = 0;
  uint64_t is = 0;  // the constant's bits, or the number of the argument or slot

  friend bool operator==(const SlotLaw&, const SlotLaw&) = default;
};

// Returns the laws of a loop of `f` as it was built, by rising slot; none where it has no such loop.
std::vector<SlotLaw> slot_laws(const Function& f, LoopId loop);

// Returns the first law that a frame breaks, or null. `args`: as many as `f` has parameters; `frame`:
// as many words as the header's frame state has slots. One compare a law.
const SlotLaw* broken_law(std::span<const SlotLaw> laws, std::span<const uint64_t> args,
                          const uint64_t* frame) noexcept;

// Returns what the slot is by the law: "the constant 0x2a", "argument 1", "the value of slot 0".
std::string law_text(const SlotLaw& law);

}  // namespace uptier::jit
