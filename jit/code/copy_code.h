// copy_code: copies code to another place.
//
// Bytes and tables stay the same except the fields that depend on the place (PlaceField). If each
// part moves by its own distance `d`, a field in it changes
//
//   to something outside of the body   by -d
//   to a poll word                     by the distance that the words moved, minus d
//   to the other part                  by the distance that the other part moved, minus d
//
// So nothing is decided or compiled again, no source of the code is needed, and the copy does the
// same at the same offsets. Each part starts at the same position within a cache line as before.
#pragma once

#include <memory>
#include <span>

#include "jit/code/code.h"
#include "jit/code/code_space.h"
#include "jit/code/poll_words.h"
#include "uptier/result.h"

namespace uptier::jit {

// `polls`: as many words as `from` has; the copy polls these instead. The space must have code that
// moves (CodeSpace::moves). The method, the serial and the words are set in the copy. Errors:
// kResourceExhausted if the room is full.
Result<std::unique_ptr<Code>> copy_code(CodeSpace& space, CodeRoom& room, const Code& from,
                                        std::span<PollWord> polls);

// Returns whether two codes have the same bytes, apart from the fields that depend on their places.
// Their space must have code that moves; neither may poll words.
bool same_bytes(const Code& a, const Code& b);

}  // namespace uptier::jit
