// Profiles of earlier processes: what is taken from them, and what is left for the next.
//
// A saved profile is advice about code of the same shape: with another CFG hash it is dropped, and
// the log says so. A method that one run of it makes worth a compilation is optimized at its first
// call; it is watched from then on like any optimized method (observe_optimized.cc), and if what it
// does is not what was saved, the saved counts fade like those of all others.
#include <algorithm>
#include <iterator>
#include <map>

#include "profile/cluster_calls.h"
#include "profile/formats/text.h"
#include "profile/match.h"
#include "tiering/runtime_impl.h"
#include "tiering/saved/profile_store.h"

namespace uptier::tiering {
namespace {

// Callees of callees of a hot method that are described ahead of it.
constexpr uint32_t kPrepareDepth = 4;

// Code for a word of counts, about: a block has some six instructions.
constexpr uint32_t kBytesOfWord = 32;

}  // namespace

// The shape of a method has just become known: is what is saved of it of this code?
void RuntimeImpl::adopt_saved_locked(Method& m) {
  if (store_ == nullptr) return;
  std::unique_ptr<SavedMethod> saved = store_->find(m.info.key, m.info.name);
  if (saved == nullptr) return;
  uint64_t here = m.cfg_hash, there = saved->profile.schema.cfg_hash;
  if (here != there && !match_saved_locked(m, *saved)) return;
  store_->report().methods++;
  if (saved->recovered && here == there) store_->report().recovered++;
  m.saved = std::move(saved);
}

// What is saved of a method is of other code: what of it can still be said of this one?
bool RuntimeImpl::match_saved_locked(Method& m, SavedMethod& saved) {
  std::string hashes = "its hash is " + profile::hex(saved.profile.schema.cfg_hash) +
                       ", the code's " + profile::hex(m.cfg_hash);
  profile::MatchReport report;
  MethodProfile matched = profile::match_profile(saved.profile, store_->shape(saved.from),
                                                 m.probes->schema(), *m.code_shape, report);
  matched.key = m.info.key;
  if (!report.accepted) {
    store_->report().stale++;
    observer_.log(m, "drop",
                  "the saved profile is of other code: " + hashes + "; " + report.text());
    return false;
  }
  store_->report().matched++;
  observer_.log(m, "match", "the saved profile is of other code: " + hashes + "; " + report.text());
  saved.profile = std::move(matched);
  saved.recovered = true;
  return true;
}

bool RuntimeImpl::hot_before(Method& m) {
  std::lock_guard lock(state_mutex_);
  if (m.saved != nullptr) return true;
  return store_->mass(m.info.key, m.info.name) >= kLeastSavedMass;
}

// Whether a method that has no code yet is to be optimized at once. The caller holds its
// compile_mutex.
bool RuntimeImpl::warm(Method& m) {
  bool possible = store_ != nullptr && options_.tier == TierMode::kAuto && !m.info.own_code &&
                  !m.optimize_failed;
  bool unknown = possible && m.shape_known && m.saved == nullptr;
  if (!possible || unknown || !hot_before(m)) return false;
  if (!describe_ahead(m)) return false;
  std::lock_guard lock(state_mutex_);
  // What was evicted while it was optimized has a way back of its own; evict.cc.
  if (m.saved == nullptr || m.saved->drifted || m.wants_optimized) return false;
  Decision d = observer_.ask_saved(m, system_locked(m));
  return d.action == Action::kSpecialize && !d.osr_loop.valid();
}

// ---- Ahead of the first call ------------------------------------------------------------------

// What a method may inline that its saved profile says is hot: direct callees, and what its
// indirect calls reached. The caller holds its compile_mutex.
std::vector<MethodId> RuntimeImpl::likely_inlinees(Method& m) {
  std::vector<MethodId> found;
  std::lock_guard lock(state_mutex_);
  const jit::Function* f = m.described != nullptr ? m.described.get() : m.body.get();
  if (f != nullptr) {
    for (const jit::Callee& c : f->callees) found.push_back(c.method);
  }
  for (const Observer::Targets& t : observer_.targets_of(m)) {
    for (auto [target, count] : t.methods) found.push_back(target->id);
  }
  return found;
}

// Describes what a hot method calls before it is compiled itself, and what that calls: a body that
// nobody knows is not inlined (docs/notes/0014). Takes one compile_mutex at a time, so a host that
// runs guest code while it describes a method waits for nobody who waits for it; what comes back
// here finds the method prepared.
void RuntimeImpl::prepare(Method& m, uint32_t depth) {
  bool possible = options_.tier == TierMode::kAuto && inlines() && !m.info.own_code;
  if (!possible || depth > kPrepareDepth) return;
  if (m.prepared.exchange(true, std::memory_order_relaxed) || !hot_before(m)) return;
  std::vector<MethodId> next;
  {
    std::lock_guard compile(m.compile_mutex);
    if (is_removed(m)) return;
    if (!describe_ahead(m)) return;
    next = likely_inlinees(m);
  }
  for (MethodId id : next) {
    if (is_method(id)) prepare(method(id.index()), depth + 1);
  }
}

// Lists the methods that a saved profile has, once all that a module brings are registered: when
// the first of them is called. What is hot is wanted soonest and takes longest. The rest is taken from
// the last that was called before: what is called next is made by its caller meanwhile, and who took
// it from the first on would have each method at the moment when it is called, and one of them
// would wait for the other, method by method.
void RuntimeImpl::list_known_locked() {
  std::vector<std::pair<double, Method*>> hot;
  for (const auto& m : methods_.all()) {
    bool ours = !m->removed && !m->info.own_code && !interprets_first_locked(*m);
    double weight = ours ? store_->weight(m->info.key) : 0;
    if (weight >= kLeastSavedMass) {
      hot.push_back({weight, m.get()});
    } else if (ours && (weight > 0 || store_->calls().first.contains(m->info.key))) {
      known_.push_back(m.get());
    }
  }
  put_in_order_of_calls(known_);
  std::ranges::copy(in_order_of_placement(hot), std::back_inserter(known_));
}

// The last to be called comes last; what was never seen to be called comes first.
void RuntimeImpl::put_in_order_of_calls(std::vector<Method*>& methods) {
  std::map<MethodKey, size_t> place;
  for (const MethodKey& key : store_->calls().order()) place.emplace(key, place.size());
  std::ranges::stable_sort(methods, {}, [&](const Method* m) {
    auto at = place.find(m->info.key);
    return at == place.end() ? 0 : at->second + 1;
  });
}

// What is compiled one after the other lies side by side (code_space.h), so callers and callees
// are: the heaviest cluster first, in it callees before those who call them, who then reach them
// past their stubs. Returned in the order in which they are taken, from the end.
std::vector<Method*> RuntimeImpl::in_order_of_placement(
    std::span<const std::pair<double, Method*>> known) {
  std::vector<profile::PlacedFunction> functions;
  std::map<MethodKey, uint32_t> number;
  for (auto [weight, m] : known) {
    number[m->info.key] = static_cast<uint32_t>(functions.size());
    functions.push_back({weight, uint64_t{kBytesOfWord} * store_->size_of(m->info.key)});
  }
  std::vector<profile::CallArc> arcs;
  for (const auto& [call, count] : store_->calls().graph) {
    auto from = number.find(call.first), to = number.find(call.second);
    if (from != number.end() && to != number.end())
      arcs.push_back({from->second, to->second, count});
  }
  auto clusters = profile::cluster_calls(functions, arcs, jit::CodeSpace::kPage);
  auto heaviest = [&](const std::vector<uint32_t>& cluster) {
    double most = 0;
    for (uint32_t f : cluster) most = std::max(most, known[f].first);
    return most;
  };
  std::ranges::stable_sort(clusters, {}, heaviest);
  std::vector<Method*> order;
  for (const auto& cluster : clusters) {
    for (uint32_t f : cluster) order.push_back(known[f].second);
  }
  return order;
}

// At the first call of any method: another thread begins with what is known.
void RuntimeImpl::wake_for_known() {
  if (options_.workers == 0 || options_.tier != TierMode::kAuto) return;
  {
    std::lock_guard lock(state_mutex_);
    list_known_locked();
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
    m = next_known_locked();
  }
  if (m == nullptr) return false;
  prepare(*m, 0);
  // Who calls it just now makes the code.
  std::unique_lock compile(m->compile_mutex, std::try_to_lock);
  if (!compile.owns_lock()) return true;
  bool wanted =
      !is_removed(*m) && current_entry(*m) == nullptr && !m->failed.load(std::memory_order_relaxed);
  // What it cannot have, its first call will be refused as well, and says so.
  if (!wanted || !compiles_first(*m) || !compile_first(*m)) return true;
  std::lock_guard lock(state_mutex_);
  made_ahead_ = true;
  return true;
}

bool RuntimeImpl::is_removed(const Method& m) {
  std::lock_guard lock(state_mutex_);
  return m.removed;
}

// Returns the next method of those that has no code yet, or null.
Method* RuntimeImpl::next_known_locked() {
  while (!known_.empty()) {
    Method* m = known_.back();
    known_.pop_back();
    if (!m->removed && current_entry(*m) == nullptr) return m;
  }
  return nullptr;
}

// The code of a method was made from its saved profile alone.
void RuntimeImpl::trust_saved(Method& m) {
  std::lock_guard lock(state_mutex_);
  m.saved->trusted = true;
  store_->report().compiled++;
}

std::optional<ProfileAnswer> RuntimeImpl::query(std::string_view stage, std::string_view scope_hash,
                                                std::string_view key) {
  if (forked()) return std::nullopt;
  std::lock_guard lock(state_mutex_);
  return store_ == nullptr ? std::nullopt : store_->query(stage, scope_hash, key);
}

}  // namespace uptier::tiering
