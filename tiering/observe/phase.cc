// Phases: which counts code is made from, once it is known that a program has changed its mind.
//
//   baseline code drifted   what was counted since, as soon as it is kPhaseSamples samples; until
//                           then all that was ever seen
//   optimized code drifted  the windows of its copy since; what the copy does not count (a block
//                           that was removed) keeps its share of all that was ever seen
//
// Either way they are scaled to all that was ever seen, so that frequencies of different methods
// stay comparable. Of what is inlined, and of the method's own indirect calls, the windows say what
// the next version takes them to do, whatever the inlined method does elsewhere
// (InlineeSource::find_blocks, find_targets).
//
//   Thread: the worker, with the state mutex.
#include <algorithm>
#include <cmath>

#include "tiering/observe/observe_inlined.h"
#include "tiering/observe/observe_targets.h"
#include "tiering/runtime_impl.h"

namespace uptier::tiering {
namespace {

// As many as a first window of convergence.h.
constexpr uint64_t kPhaseSamples = 64;

template <typename Count>
double sum_of(const std::vector<Count>& counts) {
  double sum = 0;
  for (Count c : counts) sum += static_cast<double>(c);
  return sum;
}

// Brings `recent` to the magnitude of `all`, over the blocks that `counted` says.
std::vector<uint64_t> scaled(const std::vector<double>& recent, const std::vector<uint64_t>& all,
                             const std::vector<bool>& counted) {
  double sum = 0, sum_all = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    if (!counted[i]) continue;
    sum += recent[i];
    sum_all += static_cast<double>(all[i]);
  }
  if (sum <= 0 || sum_all <= 0) return all;
  std::vector<uint64_t> out = all;
  for (size_t i = 0; i < all.size(); ++i) {
    if (counted[i]) out[i] = static_cast<uint64_t>(std::llround(recent[i] * sum_all / sum));
  }
  return out;
}

// How far a saved profile may lie from what it is a sample of. Its windows are gone, so that its
// samples are single draws is assumed (convergence.h: sum of sqrt(p (1 - p) / (2 pi n)) on
// average), with three times that for the tail.
double error_bound_of(const MethodProfile& p, const std::vector<double>& blocks) {
  double samples = static_cast<double>(p.sampled_calls) + static_cast<double>(p.bursts);
  double all = sum_of(blocks), sum = 0;
  if (all <= 0 || samples <= 0) return 1;
  for (double count : blocks) sum += std::sqrt(count / all * (1 - count / all));
  return std::min(1.0, 3 * sum / std::sqrt(2 * 3.14159265 * samples));
}

}  // namespace

// Returns estimated executions by block site - 1 for whoever compiles; empty when too little is
// known.
std::vector<uint64_t> RuntimeImpl::blocks_to_compile_from(const Method& m) const {
  std::vector<uint64_t> all = observer_.block_estimates(m);
  if (!m.seen_phase->blocks.empty()) return m.seen_phase->blocks;
  const std::vector<uint64_t>& before = m.seen_phase->before;
  bool enough = !all.empty() && before.size() == all.size() &&
                observer_.samples_of(m) >= m.seen_phase->samples_before + kPhaseSamples;
  if (!enough) return all;
  std::vector<double> since(all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    since[i] = static_cast<double>(all[i] - std::min(before[i], all[i]));
  }
  return scaled(since, all, std::vector<bool>(all.size(), true));
}

// Baseline code has drifted: what was seen up to here is of another phase.
void RuntimeImpl::begin_phase(Method& m) {
  SeenPhase& phase = m.seen_phase.put({});
  phase.before = observer_.block_estimates(m);
  phase.samples_before = observer_.samples_of(m);
}

// A version is to be made for the drift of the one in service.
void RuntimeImpl::follow_drift(Method& m) {
  CopyWindows& o = m.optimized_copy.seen.own().windows;
  size_t blocks = m.block_weights.size();
  std::vector<uint64_t> all = observer_.block_estimates(m);
  all.resize(blocks);
  std::vector<double> recent = o.known;
  recent.resize(blocks);
  SeenPhase& phase = m.seen_phase.put({});
  bool known = !o.observed.empty() && sum_of(all) > 0;
  std::vector<bool> own = o.observed;
  own.resize(blocks);
  if (known) phase.blocks = scaled(recent, all, own);
  phase.error = o.error();
  const Version* copy = m.optimized_copy.version.load(std::memory_order_relaxed);
  if (copy != nullptr) phase.inlined = seen_of_inlined(*copy, o);
  if (copy != nullptr) phase.inlined_targets = seen_slot_targets(m, *copy, o);
  phase.targets = seen_targets(m, o);
  m.drift_versions++;
  o.drift = 0;
  drop_osr_versions(m);
}

// The same of the version that frames stay in at a loop: what lies outside of the loop keeps what is
// known of it. Frames ask for newer code by themselves (osr_out.cc).
void RuntimeImpl::follow_loop_drift(Method& m, const Version& copy, CopyWindows& o) {
  size_t blocks = m.block_weights.size();
  std::vector<uint64_t> all = blocks_to_compile_from(m);
  all.resize(blocks);
  std::vector<double> recent = o.known;
  recent.resize(blocks);
  std::vector<bool> own = o.observed;
  own.resize(blocks);
  SeenPhase phase = *m.seen_phase;
  if (sum_of(all) > 0) phase.blocks = scaled(recent, all, own);
  phase.error = o.error();
  for (auto& [path, body] : seen_of_inlined(copy, o)) phase.inlined[path] = std::move(body);
  for (auto& [path, body] : seen_slot_targets(m, copy, o)) {
    phase.inlined_targets[path] = std::move(body);
  }
  for (auto& [site, targets] : seen_targets(m, o)) phase.targets[site] = std::move(targets);
  m.seen_phase.put(std::move(phase));
  m.drift_versions++;
  uint32_t loop = copy.osr_loop.index();
  auto* v = const_cast<Version*>(m.osr[loop].exchange(nullptr, std::memory_order_acq_rel));
  m.osr_asked[loop].store(false, std::memory_order_relaxed);
  retire_loop_copy(m, copy.osr_loop);
  if (v != nullptr) give_up(*v, OsrOut::kNewer);
}

// Returns how far the shares of what a method is compiled from may lie from the truth.
double RuntimeImpl::profile_error_locked(const Method& m,
                                         const std::vector<uint64_t>& blocks) const {
  bool windows = !m.seen_phase->blocks.empty();
  if (windows) return m.seen_phase->error;
  bool saved = m.saved != nullptr && m.convergence.samples() <= 0;
  if (!saved) return m.convergence.error_bound(kDriftAlpha);
  return error_bound_of(m.saved->profile, {blocks.begin(), blocks.end()});
}

// Says in a version what it is made from.
void RuntimeImpl::note_origin_locked(const Method& m, const jit::BodyProfile& p, Version& v) const {
  v.made_from.assign(p.blocks.begin(), p.blocks.end());
  v.made_error = profile_error_locked(m, p.blocks);
  for (const jit::SiteTargets& site : p.targets) v.made_targets[site.site] = target_counts(site);
}

// Returns what a call is taken to reach, by key.
TargetCounts RuntimeImpl::target_counts(const jit::SiteTargets& site) const {
  TargetCounts made;
  uint64_t named = 0;
  for (const jit::TargetShare& t : site.targets) {
    made.of[method(t.method.index()).info.key] = static_cast<double>(t.count);
    named += t.count;
  }
  made.other = static_cast<double>(site.total - std::min(named, site.total));
  return made;
}

}  // namespace uptier::tiering
