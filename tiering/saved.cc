// Profiles of earlier processes: what is taken from them, and what is left for the next.
//
// A saved profile is advice about code of the same shape: with another CFG hash it is dropped, and
// the log says so. A method that one run of it makes worth a compilation is optimized at its first
// call; it is watched from then on like any optimized method (observe_optimized.cc), and if what it
// does is not what was saved, the saved counts fade like those of all others.
#include <algorithm>

#include "profile/match.h"
#include "profile/text.h"
#include "tiering/runtime_impl.h"

namespace uptier::tiering {
namespace {

// Executions of blocks, a run, below which asking the policy is not worth describing a method
// twice.
constexpr double kLeastMass = 256;

double blocks_of(const MethodProfile& p) {
  double sum = 0;
  for (const Slot& slot : p.schema.slots) {
    if (slot.kind == SlotKind::kBlock) sum += static_cast<double>(p.estimates[slot.word]);
  }
  return sum;
}

std::string counted(uint64_t n, const char* what) { return std::to_string(n) + " " + what; }

}  // namespace

// The shape of a method has just become known: is what is saved of it of this code?
void RuntimeImpl::adopt_saved_locked(Method& m) {
  if (store_ == nullptr) return;
  std::unique_ptr<SavedMethod> saved = store_->find(m.info.key, m.info.name);
  if (saved == nullptr) return;
  uint64_t here = m.probes.schema().cfg_hash, there = saved->profile.schema.cfg_hash;
  if (here != there && !match_saved_locked(m, *saved)) return;
  store_->report().methods++;
  if (saved->recovered && here == there) store_->report().recovered++;
  m.saved = std::move(saved);
}

// What is saved of a method is of other code: what of it can still be said of this one?
bool RuntimeImpl::match_saved_locked(Method& m, SavedMethod& saved) {
  std::string hashes = "its hash is " + profile::hex(saved.profile.schema.cfg_hash) +
                       ", the code's " + profile::hex(m.probes.schema().cfg_hash);
  profile::MatchReport report;
  MethodProfile matched = profile::match_profile(saved.profile, store_->shape(saved.from),
                                                 m.probes.schema(), m.code_shape, report);
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
  if (m.shape_known) return m.saved != nullptr;
  std::unique_ptr<SavedMethod> saved = store_->find(m.info.key, m.info.name);
  return saved != nullptr && blocks_of(saved->profile) / saved->runs >= kLeastMass;
}

// Whether a method that has no code yet is to be optimized at once. The caller holds its
// compile_mutex.
bool RuntimeImpl::warm(Method& m) {
  bool possible = store_ != nullptr && options_.tier == TierMode::kAuto && !m.info.own_code &&
                  !m.optimize_failed;
  if (!possible || !hot_before(m)) return false;
  if (!m.shape_known && !describe(m)) return false;
  std::lock_guard lock(state_mutex_);
  // What was evicted while it was optimized has a way back of its own; evict.cc.
  if (m.saved == nullptr || m.saved->drifted || m.wants_optimized) return false;
  SystemSnapshot system;
  system.queue_length = static_cast<uint32_t>(queue_.size());
  system.code_budget_spent = space_->bytes_in_service() >= options_.code_budget;
  Decision d = observer_.ask_saved(m, system);
  return d.action == Action::kSpecialize && !d.osr_loop.valid();
}

// The code of a method was made from its saved profile alone.
void RuntimeImpl::trust_saved(Method& m) {
  std::lock_guard lock(state_mutex_);
  m.saved->trusted = true;
  store_->report().compiled++;
}

Status RuntimeImpl::save_profile() {
  if (store_ == nullptr) return {};
  if (here() != nullptr) flush();
  std::lock_guard lock(state_mutex_);
  return save_profile_locked();
}

Status RuntimeImpl::save_profile_locked() {
  if (store_ == nullptr || profile_saved_) return {};
  profile_saved_ = true;
  Profile run;
  CallProfile calls;
  ProfileStore::Fates fates;
  ProfileInfo info = ProfileStore::info_now();
  info.interval = options_.interval;
  info.schedule = std::string(options_.adaptive ? "adaptive" : "fixed rate") + ", burst " +
                  std::to_string(options_.burst) + ", seed " + std::to_string(options_.seed);
  for (const auto& m : owned_methods_) {
    if (!m->shape_known || m->probes.schema().slots.empty()) continue;
    bool trusted = m->saved != nullptr && m->saved->trusted && !m->saved->drifted;
    fates[m->info.key] = {trusted, m->probes.schema().cfg_hash};
    info.modules.push_back(m->info.key.module_key);
    Profile one;
    if (!m->streams.empty()) one.methods.emplace(m->info.key, observer_.profile_of(*m));
    add_calls_locked(*m, one, calls);
    merge(run, one);
    // Where it came from is not where it will be looked for.
    bool moved = trusted && m->saved->recovered && m->saved->profile.schema == m->probes.schema();
    if (!moved) continue;
    Profile old;
    old.methods.emplace(m->info.key, m->saved->profile);
    merge(run, old);
  }
  std::ranges::sort(info.modules);
  info.modules.erase(std::ranges::unique(info.modules).begin(), info.modules.end());
  std::string log;
  for (const DecisionRecord& d : observer_.decisions()) {
    log += counted(d.sequence, "") + d.action + " " + d.method_name + ": " + d.reason + "\n";
  }
  return store_->save(std::move(run), std::move(calls), fates, std::move(info), log,
                      options_.profile_decay);
}

std::optional<ProfileAnswer> RuntimeImpl::query(std::string_view stage, std::string_view scope_hash,
                                                std::string_view key) {
  std::lock_guard lock(state_mutex_);
  return store_ == nullptr ? std::nullopt : store_->query(stage, scope_hash, key);
}

}  // namespace uptier::tiering
