#include "tiering/observe/phase.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "tiering/observe/indirect_targets.h"
#include "tiering/observe/inlined_bodies.h"

namespace uptier::tiering {
namespace {

constexpr double kDriftAlpha = sampler::ConvergenceOptions{}.drift_alpha;
// The size of a first window in convergence.h.
constexpr uint64_t kPhaseSamples = 64;

template <typename Count>
double total_of(const std::vector<Count>& counts) {
  double sum = 0;
  for (Count c : counts) sum += static_cast<double>(c);
  return sum;
}

// Scales `recent` to the magnitude of `all`, over the blocks in `counted`.
std::vector<uint64_t> scaled(const std::vector<double>& recent, const std::vector<uint64_t>& all,
                             const std::vector<bool>& counted) {
  assert(recent.size() >= all.size() && counted.size() >= all.size());
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

}  // namespace

// The windows of a saved profile are gone, so its samples are assumed to be single draws
// (convergence.h: sum of sqrt(p (1 - p) / (2 pi n)) on average). The tail gets three times that.
double draw_error(const std::vector<double>& counts, double samples) {
  double all = total_of(counts), sum = 0;
  if (all <= 0 || samples <= 0) return 1;
  for (double count : counts) sum += std::sqrt(count / all * (1 - count / all));
  return std::min(1.0, 3 * sum / std::sqrt(2 * 3.14159265 * samples));
}

std::vector<uint64_t> blocks_to_compile_from(const Method& m, const Estimates& estimates) {
  std::vector<uint64_t> all = estimates.block_estimates(m);
  const SeenPhase& phase = *m.flushed->seen_phase;
  if (!phase.blocks.empty()) return phase.blocks;
  const std::vector<uint64_t>& before = phase.before;
  bool enough = !all.empty() && before.size() == all.size() &&
                estimates.samples_of(m) >= phase.samples_before + kPhaseSamples;
  if (!enough) return all;
  std::vector<double> since(all.size());
  for (size_t i = 0; i < all.size(); ++i) {
    since[i] = static_cast<double>(all[i] - std::min(before[i], all[i]));
  }
  return scaled(since, all, std::vector<bool>(all.size(), true));
}

void begin_phase(Method& m, const Estimates& estimates) {
  SeenPhase& phase = m.flushed.own().seen_phase.put(SeenPhase());
  phase.before = estimates.block_estimates(m);
  phase.samples_before = estimates.samples_of(m);
}

void begin_copy_phase(Method& m, const Estimates& estimates) {
  CopyWindows& o = m.optimizing.own().windows;
  size_t blocks = m.shape->block_weights.size();
  std::vector<uint64_t> all = estimates.block_estimates(m);
  all.resize(blocks);
  std::vector<double> recent = o.known;
  recent.resize(blocks);
  SeenPhase& phase = m.flushed.own().seen_phase.put(SeenPhase());
  bool known = !o.observed.empty() && total_of(all) > 0;
  std::vector<bool> own = o.observed;
  own.resize(blocks);
  if (known) phase.blocks = scaled(recent, all, own);
  phase.error = o.error();
  const Version* copy = m.optimizing->copy.load(std::memory_order_relaxed);
  if (copy != nullptr) phase.inlined = seen_of_inlined(*copy, o);
  if (copy != nullptr) phase.inlined_targets = seen_slot_targets(m, *copy, o);
  phase.targets = seen_targets(m, o);
  m.optimizing.own().drift_versions++;
  o.drift = 0;
}

void begin_loop_phase(Method& m, const Version& copy, CopyWindows& o, const Estimates& estimates) {
  assert(copy.osr_loop.valid() && copy.copy == Copy::kInstrumented);
  size_t blocks = m.shape->block_weights.size();
  std::vector<uint64_t> all = blocks_to_compile_from(m, estimates);
  all.resize(blocks);
  std::vector<double> recent = o.known;
  recent.resize(blocks);
  std::vector<bool> own = o.observed;
  own.resize(blocks);
  SeenPhase phase = *m.flushed->seen_phase;
  if (total_of(all) > 0) phase.blocks = scaled(recent, all, own);
  phase.error = o.error();
  for (auto& [path, body] : seen_of_inlined(copy, o)) phase.inlined[path] = std::move(body);
  for (auto& [path, body] : seen_slot_targets(m, copy, o)) {
    phase.inlined_targets[path] = std::move(body);
  }
  for (auto& [site, targets] : seen_targets(m, o)) phase.targets[site] = std::move(targets);
  m.flushed.own().seen_phase.put(std::move(phase));
  m.optimizing.own().drift_versions++;
}

double profile_error(const Method& m, const std::vector<uint64_t>& blocks) {
  const Flushed& seen = *m.flushed;
  bool windows = !seen.seen_phase->blocks.empty();
  if (windows) return seen.seen_phase->error;
  bool saved = m.saved != nullptr && seen.convergence.samples() <= 0;
  if (!saved) return seen.convergence.error_bound(kDriftAlpha);
  const MethodProfile& p = m.saved->profile;
  return draw_error({blocks.begin(), blocks.end()},
                    static_cast<double>(p.sampled_calls) + static_cast<double>(p.bursts));
}

}  // namespace uptier::tiering
