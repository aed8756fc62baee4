#include "tiering/saved/run_collector.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "tiering/observe/timed_loops.h"
#include "tiering/saved/profile_store.h"
#include "tiering/saved/saved_calls.h"

namespace uptier::tiering {

namespace {

std::string numbered(uint64_t n) { return std::to_string(n) + " "; }

}  // namespace

bool is_trusted(const Method& m) {
  return m.saved != nullptr && m.saved->trusted && m.saved->holds();
}

SeenRun RunCollector::watched(const KnownMethods& known, double loops_off) const {
  SeenRun seen;
  ProfileInfo& info = seen.info;
  info = ProfileStore::info_now();
  info.interval = live_.interval;
  info.schedule = std::string(options_.adaptive ? "adaptive" : "fixed rate") + ", burst " +
                  std::to_string(live_.burst) + ", seed " + std::to_string(options_.seed);
  for (const auto& m : methods_.all()) {
    if (!m->has_shape()) continue;
    seen.fates[m->info.key] = {is_trusted(*m), m->shape->cfg_hash};
    bool told = !m->probes->schema().slots.empty() || !m->shape->static_shape.per_call.empty();
    if (told) info.modules.push_back(m->info.key.module_key);
    if (!is_trusted(*m)) add(*m, known, loops_off, seen);
  }
  std::ranges::sort(info.modules);
  info.modules.erase(std::ranges::unique(info.modules).begin(), info.modules.end());
  if (uint64_t gone = observer_.decisions.forgotten(); gone != 0) {
    seen.log = numbered(gone) + "decisions before these are not kept\n";
  }
  observer_.decisions.kept().each([&](uint64_t number, const LoggedDecision& logged) {
    const DecisionRecord d = record_of(logged, number, false);
    std::string whose = d.method_name.empty() ? "" : " " + d.method_name;
    seen.log += numbered(number) + d.action + whose + ": " + d.reason + "\n";
  });
  return seen;
}

void RunCollector::add(const Method& m, const KnownMethods& known, double loops_off,
                       SeenRun& seen) const {
  assert(m.has_shape());
  known.tell_first_call(m, seen.calls);
  Profile one;
  MethodProfile own = observer_.settled.profile_of(m);
  bool seen_any = !m.flushed->streams.empty() || own.guessed_calls != 0;
  if (seen_any && !own.schema.slots.empty()) {
    settle_loops(m, loops_off, own);
    one.methods.emplace(m.info.key, std::move(own));
  }
  if (m.probes->schema().slots.empty()) return merge(seen.run, std::move(one)), void();
  one.inlined = observer_.inlined.bodies_of(m);
  observer_.settled.settle_inlined(m, one.inlined);
  add_calls(m, one, methods_, seen.calls);
  // Save it as it was, because it will be looked up under the new key.
  bool moved = is_trusted(m) && m.saved->recovered && m.saved->profile.schema == m.probes->schema();
  if (moved) one = ProfileWriter::as_before(*m.saved, live_.profile_decay);
  merge(seen.run, std::move(one));
}

}  // namespace uptier::tiering
