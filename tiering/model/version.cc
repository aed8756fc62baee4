#include "tiering/model/version.h"

#include <cassert>

namespace uptier::tiering {

// A word only rises until a frame takes its request: newer code does not override the request to
// leave this code. Release pairs with the acquire in poll(): a frame that sees the word also sees
// everything installed before.
void raise_word(jit::PollWord& word, OsrOut to) noexcept {
  auto why = static_cast<uint32_t>(to);
  assert(to != OsrOut{} && (why & kStops) == 0);
  uint32_t old = word.load(std::memory_order_relaxed);
  while (reason_in(old) < to &&
         !word.compare_exchange_weak(old, why | (old & kStops), std::memory_order_release,
                                     std::memory_order_relaxed)) {}
}

void Version::call_back(OsrOut why) const noexcept {
  for (jit::PollWord& word : polls.words()) raise_word(word, why);
}

}  // namespace uptier::tiering
