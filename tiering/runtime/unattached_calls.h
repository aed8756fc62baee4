// UnattachedCalls: counts calls on threads that are not attached.
//
// Their stubs decrement a countdown in the context that all such threads share, and come here when
// it is due. The runtime in which it is due counts the calls since it was armed. Threads race on
// the words, so the number is approximate.
//
//   Thread: count(): any, below guest frames; the others: with the state mutex.
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
  // A new method gets the place `index`: counts of the previous one, perhaps of another runtime,
  // are not its own.
  void begin(uint32_t index) noexcept;
  // Returns the calls so far, including those since the last events.
  uint64_t calls_locked() const noexcept;

 private:
  Engine& engine_;
};

}  // namespace uptier::tiering
