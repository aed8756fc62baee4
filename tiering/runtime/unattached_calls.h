// UnattachedCalls: counts calls on threads that are not attached.
//
// Their stubs decrement a countdown of the context that all such threads share, and come here when it
// is due. What has been called since it was armed is counted here, by the runtime that it is due in.
// Threads race on the words, so the number is near the truth.
//
//   Thread: count() any, below guest frames; the others with the state mutex.
#pragma once

#include <cstdint>

namespace uptier::sampler {
struct ThreadContext;
}

namespace uptier::tiering {

struct Engine;
struct Method;

class UnattachedCalls {
 public:
  // `engine` outlives this.
  explicit UnattachedCalls(Engine& engine) : engine_(engine) {}

  // Counts the calls of a method up to this one, on a thread whose context is `c`.
  void count(Method& m, sampler::ThreadContext& c) noexcept;
  // A method comes to the place `index`: what was counted of the one before, perhaps of another
  // runtime, is not its own.
  void begin(uint32_t index) noexcept;
  // Returns the calls so far, those since the last events included.
  uint64_t calls_locked() const noexcept;

 private:
  Engine& engine_;
};

}  // namespace uptier::tiering
