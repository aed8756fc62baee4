// A saved profile makes a process warm: what it says is hot is described and optimized before it is
// called, or at its first call (SavedProfile, KnownMethods).
#include "tiering/runtime/runtime_impl.h"

namespace uptier::tiering {
namespace {

// Callees of callees of a hot method that are described ahead of it.
constexpr uint32_t kPrepareDepth = 4;

}  // namespace

bool RuntimeImpl::hot_before(Method& m) {
  std::lock_guard lock(state_mutex_);
  return m.saved != nullptr || saved_.is_hot(m);
}

// Whether a method that has no code yet is to be optimized at once. The caller has its turn.
bool RuntimeImpl::warm(Method& m) {
  bool possible = saved_.is_open() && options_.tier == TierMode::kAuto && !m.info.own_code &&
                  !m.optimize_failed;
  bool unknown = possible && m.has_shape() && m.saved == nullptr;
  if (!possible || unknown || !hot_before(m)) return false;
  if (!compiler_->describer().describe_ahead(m)) return false;
  std::lock_guard lock(state_mutex_);
  // What was evicted while it was optimized has a way back of its own; evict.cc.
  if (m.saved == nullptr || !m.saved->holds() || m.wants_optimized) return false;
  Decision d = observer_.advisor.ask_saved(m, system_->snapshot(m));
  return d.action == Action::kSpecialize && !d.osr_loop.valid();
}

// ---- Ahead of the first call ------------------------------------------------------------------

// What a method may inline that its saved profile says is hot: direct callees, and what its
// indirect calls reached. The caller has its turn.
std::vector<MethodId> RuntimeImpl::likely_inlinees(Method& m) {
  std::vector<MethodId> found;
  std::lock_guard lock(state_mutex_);
  const jit::Function* f = m.shape->described != nullptr ? m.shape->described.get() : m.body.get();
  if (f != nullptr) {
    for (const jit::Callee& c : f->callees) found.push_back(c.method);
  }
  for (const Estimates::Targets& t : observer_.estimates.targets_of(m)) {
    for (auto [target, count] : t.methods) found.push_back(target->id);
  }
  return found;
}

// Describes what a hot method calls before it is compiled itself, and what that calls: a body that
// nobody knows is not inlined (docs/notes/0014). Takes one turn at a time, so a host that
// runs guest code while it describes a method waits for nobody who waits for it; what comes back
// here finds the method prepared.
void RuntimeImpl::prepare(Method& m, uint32_t depth) {
  bool possible = options_.tier == TierMode::kAuto && bodies_.wanted() && !m.info.own_code;
  if (!possible || depth > kPrepareDepth) return;
  if (m.prepared.exchange(true, std::memory_order_relaxed) || !hot_before(m)) return;
  std::vector<MethodId> next;
  {
    CompileTurn turn(turns_, m);
    if (!turn || is_removed(m)) return;
    if (!compiler_->describer().describe_ahead(m)) return;
    next = likely_inlinees(m);
  }
  for (MethodId id : next) {
    if (is_method(id)) prepare(method(id.index()), depth + 1);
  }
}

// When a thread attaches, and at the first call of any method: another thread begins with what is
// known.
void RuntimeImpl::wake_for_known() {
  if (options_.workers == 0 || options_.tier != TierMode::kAuto) return;
  {
    std::lock_guard lock(state_mutex_);
    known_.list(methods_, *saved_.store(),
                [&](const Method& m) { return !in_service_->interprets_first_locked(m); });
  }
  wake_worker();
}

// Worker's side: makes the first code of one method that will be called, as its first call would.
// Returns whether there was one.
bool RuntimeImpl::compile_known() {
  LookingAround looking(*this);
  Method* m = nullptr;
  {
    std::lock_guard lock(state_mutex_);
    m = known_.next([&](Method& known) { return in_service_->current_entry(known) != nullptr; });
  }
  if (m == nullptr) return false;
  prepare(*m, 0);
  // Who calls it just now makes the code.
  CompileTurn turn(turns_, *m, CompileTurn::If::kFree);
  if (!turn) return true;
  bool wanted = !is_removed(*m) && in_service_->current_entry(*m) == nullptr &&
                !m->failed.load(std::memory_order_relaxed);
  // What it cannot have, its first call will be refused as well, and says so.
  if (!wanted || !compiles_first(*m) || !compile_first(*m)) return true;
  std::lock_guard lock(state_mutex_);
  known_.note_made_ahead();
  return true;
}

bool RuntimeImpl::is_removed(const Method& m) {
  std::lock_guard lock(state_mutex_);
  return m.removed;
}

// The code of a method was made from its saved profile alone.
void RuntimeImpl::trust_saved(Method& m) {
  std::lock_guard lock(state_mutex_);
  saved_.trust(m);
}

}  // namespace uptier::tiering
