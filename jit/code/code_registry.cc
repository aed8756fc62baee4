#include "jit/code/code_registry.h"

#include <atomic>
#include <mutex>
#include <string>
#include <utility>

#include "jit/code/code_readers.h"
#include "jit/code/global_locks.h"

namespace uptier::jit {
namespace {

// One cache line each.
struct alignas(64) Slot {
  std::atomic<const CodeSpace*> space{nullptr};
  std::atomic<const void*> trap_exit{nullptr};
  std::atomic<Orphaned> orphaned{nullptr};
  std::atomic<void*> runtime{nullptr};
};

// Global because signal handlers have no argument of ours.
constinit Slot g_slots[CodeRegistration::kMaxSpaces];
// The number of slots that were ever used: all later ones are empty.
constinit std::atomic<unsigned> g_used{0};
// The slot in which the thread last found something.
__attribute__((tls_model("initial-exec"))) constinit thread_local unsigned t_last = 0;

// Returns the space of a slot if `pc` lies in it. Sequentially consistent with the stores in
// ~CodeRegistration: either this reader sees the empty slot, or the writer sees this reader and
// waits.
const CodeSpace* space_with(const Slot& s, const void* pc) noexcept {
  const CodeSpace* space = s.space.load(std::memory_order_seq_cst);
  return space != nullptr && space->contains(pc) ? space : nullptr;
}

// Calls `answer(slot, space)` for the space that contains `pc`.
template <typename Answer>
auto with_space(const void* pc, Answer answer) noexcept -> decltype(answer(g_slots[0], nullptr)) {
  decltype(answer(g_slots[0], nullptr)) found{};
  const CodeReading reading;
  unsigned last = t_last;
  const CodeSpace* space = space_with(g_slots[last], pc);
  // Acquire pairs with add(): code that can run was registered earlier.
  unsigned used = space != nullptr ? 0 : g_used.load(std::memory_order_acquire);
  for (unsigned i = 0; i < used && space == nullptr; ++i) {
    space = space_with(g_slots[i], pc);
    if (space != nullptr) t_last = last = i;
  }
  if (space != nullptr) found = answer(g_slots[last], space);
  return found;
}

}  // namespace

const Code* find_code(const void* pc) noexcept {
  return with_space(
      pc, [&](Slot&, const CodeSpace* space) -> const Code* { return space->owner_of(pc); });
}

bool in_code(const void* pc) noexcept {
  return with_space(pc, [](Slot&, const CodeSpace*) -> bool { return true; });
}

const void* trap_exit_for(const void* pc) noexcept {
  return with_space(pc, [](Slot& s, const CodeSpace*) -> const void* {
    return s.trap_exit.load(std::memory_order_relaxed);
  });
}

void end_orphaned(const void* pc) noexcept {
  using Call = std::pair<Orphaned, void*>;
  auto [orphaned, runtime] = with_space(pc, [](Slot& s, const CodeSpace*) -> Call {
    return {s.orphaned.load(std::memory_order_relaxed), s.runtime.load(std::memory_order_relaxed)};
  });
  if (orphaned != nullptr) orphaned(runtime);
}

CodeRegistration::CodeRegistration(CodeRegistration&& other) noexcept
    : slot_(std::exchange(other.slot_, -1)) {}

CodeRegistration& CodeRegistration::operator=(CodeRegistration&& other) noexcept {
  std::swap(slot_, other.slot_);
  return *this;
}

CodeRegistration::~CodeRegistration() {
  if (slot_ < 0) return;
  g_slots[slot_].space.store(nullptr, std::memory_order_seq_cst);
  await_code_readers();
}

Result<CodeRegistration> CodeRegistration::add(const CodeSpace& space, const void* trap_exit,
                                               Orphaned orphaned, void* runtime) {
  const Held lock(global_lock(GlobalLock::kCodeRegistry));
  for (unsigned i = 0; i < kMaxSpaces; ++i) {
    if (g_slots[i].space.load(std::memory_order_relaxed) != nullptr) continue;
    // The store of the space publishes it.
    g_slots[i].trap_exit.store(trap_exit, std::memory_order_relaxed);
    g_slots[i].orphaned.store(orphaned, std::memory_order_relaxed);
    g_slots[i].runtime.store(runtime, std::memory_order_relaxed);
    g_slots[i].space.store(&space, std::memory_order_seq_cst);
    if (g_used.load(std::memory_order_relaxed) <= i) g_used.store(i + 1, std::memory_order_release);
    CodeRegistration r;
    r.slot_ = static_cast<int>(i);
    return r;
  }
  return Error{ErrorCode::kResourceExhausted,
               "code registry: " + std::to_string(kMaxSpaces) +
                   " runtimes live at the same time, which is the most that a process may have: "
                   "destroy one first"};
}

}  // namespace uptier::jit
