#include "tiering/saved/saved_profile.h"

#include <cassert>
#include <utility>

#include "profile/algebra/match.h"
#include "profile/data/text.h"
#include "tiering/saved/saved_calls.h"

namespace uptier::tiering {

bool SavedProfile::knows(const Method& m) const {
  return store_ != nullptr && store_->knows(m.info.key, m.info.name);
}

bool SavedProfile::is_hot(const Method& m) const {
  return store_ != nullptr && store_->mass(m.info.key, m.info.name) >= kLeastSavedMass;
}

void SavedProfile::adopt(Method& m) {
  if (store_ == nullptr) return;
  assert(m.has_shape() && m.saved == nullptr);
  std::unique_ptr<SavedMethod> saved = store_->find(m.info.key, m.info.name, m.shape->cfg_hash);
  if (saved == nullptr) return;
  uint64_t here = m.shape->cfg_hash, there = saved->profile.schema.cfg_hash;
  if (here != there && !match(m, *saved)) return;
  store_->report().methods++;
  if (saved->recovered && here == there) store_->report().recovered++;
  m.saved = std::move(saved);
}

// The saved profile is from other code: takes over the parts that match this code.
bool SavedProfile::match(Method& m, SavedMethod& saved) {
  std::string hashes = "its hash is " + profile::hex(saved.profile.schema.cfg_hash) +
                       ", the code's " + profile::hex(m.shape->cfg_hash);
  profile::MatchReport report;
  MethodProfile matched = profile::match_profile(saved.profile, store_->shape(saved.from),
                                                 m.probes->schema(), *m.shape->code_shape, report);
  matched.key = m.info.key;
  if (!report.accepted) {
    store_->report().stale++;
    observer_.decisions.log(
        m, "drop", "the saved profile belongs to other code: " + hashes + "; " + report.text());
    return false;
  }
  store_->report().matched++;
  parents_.emplace(m.shape->cfg_hash, saved.profile.schema.cfg_hash);
  observer_.decisions.log(
      m, "match", "the saved profile belongs to other code: " + hashes + "; " + report.text());
  saved.profile = std::move(matched);
  saved.recovered = true;
  return true;
}

const InlinedBody* SavedProfile::inlined(const Method& root, const jit::InlinePath& path) const {
  if (store_ == nullptr || root.saved == nullptr) return nullptr;
  InlinedKey key{root.saved->from, {}};
  std::vector<uint64_t> code{root.shape->cfg_hash};
  for (const jit::InlineStep& step : path) {
    const Method* m = methods_.known(step.method);
    if (m == nullptr) return nullptr;
    key.path.push_back({step.site, m->saved != nullptr ? m->saved->from : m->info.key});
    code.push_back(m->shape->cfg_hash);
  }
  auto at = store_->inlined().find(key);
  return at != store_->inlined().end() && at->second.code == code ? &at->second : nullptr;
}

void SavedProfile::trust(Method& m) {
  assert(m.saved != nullptr && store_ != nullptr);
  m.saved->trusted = true;
  store_->report().compiled++;
}

std::optional<ProfileAnswer> SavedProfile::query(std::string_view stage,
                                                 std::string_view scope_hash,
                                                 std::string_view key) {
  return store_ == nullptr ? std::nullopt : store_->query(stage, scope_hash, key);
}

void SavedProfile::learn_calls(Method& m, const jit::Function& f) const {
  if (store_ != nullptr) tiering::learn_calls(m, f, methods_);
}

void SavedProfile::add_trusted(const KnownMethods& known, double loops_off, SeenRun& seen) const {
  for (const auto& m : methods_.all()) {
    if (is_trusted(*m)) collector_.add(*m, known, loops_off, seen);
  }
}

profile::Bytes SavedProfile::segment(profile::Timeline timeline, TimeProfile time,
                                     const KnownMethods& known, double loops_off) const {
  SeenRun seen = collector_.watched(known, loops_off);
  add_trusted(known, loops_off, seen);
  seen.timeline = std::move(timeline);
  seen.calls.time = std::move(time);
  return ProfileWriter::first_segment(std::move(seen));
}

Status SavedProfile::save(profile::Timeline timeline, TimeProfile time, const KnownMethods& known,
                          double loops_off, const profile::Gathered* data) {
  if (store_ == nullptr) return {};
  saved_ = true;
  SeenRun seen = collector_.watched(known, loops_off);
  seen.timeline = std::move(timeline);
  seen.calls.time = std::move(time);
  seen.data = data;
  // A host that collects counts without using them wants exact sums.
  bool uses = options_.tier == TierMode::kAuto && live_.policy != PolicyMode::kNever;
  bool fades = live_.profile_decay < 1;
  if (uses && fades && store_->has_learnt_nothing(seen)) {
    Result<bool> counted = store_->count(seen);
    if (!counted) return counted.error();
    if (*counted) return {};
  }
  add_trusted(known, loops_off, seen);
  return store_->save(std::move(seen), live_.profile_decay,
                      live_.profile_sync ? profile::Sync::kYes : profile::Sync::kNo);
}

}  // namespace uptier::tiering
