// copy_code: the same code in another place.
//
// Bytes and tables are the same except the fields that depend on the place (PlaceField). With each
// part moved by `d`, a field of it is
//
//   to something outside of the body   d less than before
//   to a poll word                     d less, and as much more as the words have moved
//   to the other part                  d less, and as much more as that part has moved
//
// so nothing is decided or compiled again, the code needs nobody who describes it, and the copy does
// what the code does, at the same offsets. Where a part begins in a line of the caches is the same.
#pragma once

#include <memory>
#include <span>

#include "jit/code/code.h"
#include "jit/code/code_space.h"
#include "jit/code/poll_words.h"
#include "uptier/result.h"

namespace uptier::jit {

// `polls`: as many words as `from` has, which the copy asks instead. The space says that its code
// moves. The method, the serial and the words are set in the copy. Errors: kResourceExhausted when
// the room is full.
Result<std::unique_ptr<Code>> copy_code(CodeSpace& space, CodeRoom& room, const Code& from,
                                        std::span<PollWord> polls);

}  // namespace uptier::jit
