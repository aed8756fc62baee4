#include "tiering/compile/inlinees.h"

#include <algorithm>
#include <cassert>

#include "tiering/base/state_lock.h"
#include "tiering/base/stress.h"
#include "tiering/base/waited_mutex.h"
#include "tiering/compile/body_profile.h"
#include "tiering/model/method_table.h"
#include "tiering/observe/indirect_targets.h"
#include "tiering/observe/known_counts.h"
#include "tiering/observe/observer.h"
#include "tiering/observe/phase.h"
#include "tiering/observe/select_turns.h"
#include "tiering/saved/saved_profile.h"

namespace uptier::tiering {
namespace {

// Says whether alias classes have the same meaning in both.
bool same_classes(const Method& a, const Method& b) {
  return a.shape->alias_scope == b.shape->alias_scope &&
         a.info.key.module_key == b.info.key.module_key;
}

constexpr uint64_t kLeastSamples = 64;

// Returns the blocks of a saved body per execution of the body, and the bound on their error. Copies count
// different blocks in different calls, so count / samples is compared. A body has few samples, and its method
// may have many, from everywhere: so the method's profile counts as kUsual executions more.
jit::InlinedBlocks blocks_of(const InlinedBody& body, const jit::Inlinee& method, double& error)
    UPTIER_REQUIRES(state_lock) {
  constexpr double kUsual = 16;
  const std::vector<uint64_t>& usual = method.profile.blocks;
  const auto rate = [](const InlinedBlock& b) {
    return static_cast<double>(b.count) / static_cast<double>(std::max<uint64_t>(b.samples, 1));
  };
  jit::InlinedBlocks out;
  const auto entry = body.blocks.find(1);
  if (entry == body.blocks.end()) return out;
  const uint64_t seen = std::min(entry->second.count, entry->second.samples);
  if (seen < kLeastSamples) return out;
  const double runs = rate(entry->second), weight = static_cast<double>(seen);
  out.counts.resize(method.function.block_sites);
  out.known.resize(method.function.block_sites);
  for (const auto& [site, block] : body.blocks) {
    if (block.samples < kLeastSamples || site > out.counts.size()) continue;
    double& count = out.counts[site - 1];
    out.known[site - 1] = true;
    count = rate(block) / runs;
    if (site > usual.size() || usual[0] == 0) continue;
    const double elsewhere = static_cast<double>(usual[site - 1]) / static_cast<double>(usual[0]);
    count = (count * weight + elsewhere * kUsual) / (weight + kUsual);
  }
  error = draw_error(out.counts, weight);
  return out;
}

void forget_classes(jit::Function& f) {
  for (jit::Inst& i : f.insts) {
    Shape s = info(i.op).shape;
    if (s == Shape::kLoad || s == Shape::kStore) i.flags &= 0xf;
  }
}

}  // namespace

const jit::Inlinee* Inlinees::find(MethodId id) {
  auto [at, fresh] = known_.try_emplace(id);
  Known& k = at->second;
  if (!fresh) return k.inlinee.get();
  k.inlinee = make(id, k.error);
  const Method& root = env_.methods.at(root_.index());
  if (k.inlinee != nullptr && !same_classes(root, env_.methods.at(id.index()))) {
    forget_classes(k.inlinee->function);
  }
  return k.inlinee.get();
}

const Inlinees::Phase& Inlinees::phase() {
  if (phase_) return *phase_;
  HeldState lock(env_.state_mutex);
  const SeenPhase& seen = *env_.methods.at(root_.index()).flushed->seen_phase;
  phase_ = {seen.inlined, seen.error, {}};
  for (const auto& [path, sites] : seen.inlined_targets) {
    for (const auto& [site, counts] : sites) {
      Estimates::Targets targets{site, 0, {}};
      env_.observer.estimates.take_over(counts, targets);
      phase_->targets[path].push_back(site_targets(targets, env_.stubs));
    }
  }
  return *phase_;
}

const jit::InlinedBlocks* Inlinees::find_blocks(const jit::InlinePath& path) {
  if (!profiles_) return nullptr;
  auto at = phase().blocks.find(path);
  if (at != phase().blocks.end()) return &at->second;
  const Saved& before = saved(path);
  return before.blocks.counts.empty() ? nullptr : &before.blocks;
}

const std::vector<jit::SiteTargets>* Inlinees::find_targets(const jit::InlinePath& path) {
  if (!profiles_) return nullptr;
  auto at = phase().targets.find(path);
  if (at != phase().targets.end()) return &at->second;
  const Saved& before = saved(path);
  return before.targets.empty() ? nullptr : &before.targets;
}

const Inlinees::Saved& Inlinees::saved(const jit::InlinePath& path) {
  auto [at, fresh] = saved_.try_emplace(path);
  if (!fresh) return at->second;
  const jit::Inlinee* body = find(path.back().method);
  HeldState lock(env_.state_mutex);
  const Method& root = env_.methods.at(root_.index());
  bool changed =
      !root.flushed->seen_phase->before.empty() || !root.flushed->seen_phase->blocks.empty();
  bool believed = root.saved != nullptr && root.saved->holds() && !changed;
  if (believed) at->second = saved_locked(root, path, body);
  return at->second;
}

// Uses what has as many samples as a first window of convergence.h. They are assumed to be single
// draws, like the rest of a saved profile (phase.cc).
Inlinees::Saved Inlinees::saved_locked(const Method& root, const jit::InlinePath& path,
                                       const jit::Inlinee* method) const {
  Saved out;
  const InlinedBody* body = env_.saved.inlined(root, path);
  if (body == nullptr) return out;
  if (method != nullptr) out.blocks = blocks_of(*body, *method, out.blocks_error);
  for (const auto& [at, site] : body->sites) {
    if (at.first != SlotKind::kCallTarget) continue;
    uint64_t count = site.counts[slot_word::kTargetOther];
    TargetCounts seen;
    seen.other = static_cast<double>(site.estimates[slot_word::kTargetOther]);
    std::vector<double> shares{seen.other};
    for (const auto& [key, entry] : site.table) {
      count += entry.count;
      shares.push_back(static_cast<double>(entry.estimate));
      seen.of[{key.module_key, static_cast<uint32_t>(key.value)}] = shares.back();
    }
    assert(site.counts.size() == slot_words(SlotKind::kCallTarget));
    uint64_t samples = std::min(count, site.samples);
    Estimates::Targets targets{at.second, 0, {}};
    env_.observer.estimates.take_over(seen, targets);
    if (samples < kLeastSamples || targets.methods.empty()) continue;
    out.targets.push_back(site_targets(targets, env_.stubs));
    out.error = std::max(out.error, draw_error(shares, static_cast<double>(samples)));
  }
  return out;
}

std::vector<InlinedOrigin> Inlinees::origins(const jit::Code& code,
                                             std::vector<std::vector<float>> blocks) const {
  std::vector<InlinedOrigin> out;
  for (uint32_t body = 1; body <= blocks.size(); ++body) {
    InlinedOrigin o{jit::path_of(code, body), std::move(blocks[body - 1])};
    assert(!o.path.empty());
    auto known = known_.find(o.path.back().method);
    bool here = phase_ && phase_->blocks.contains(o.path);
    o.error = here ? phase_->error : known == known_.end() ? 1 : known->second.error;
    auto before = saved_.find(o.path);
    const bool by_saved = !here && before != saved_.end() && !before->second.blocks.counts.empty();
    if (by_saved) o.error = before->second.blocks_error;
    auto add = [&](const std::vector<jit::SiteTargets>& targets) {
      for (const jit::SiteTargets& t : targets) {
        if (t.total != 0) o.targets[t.site] = target_counts(t, env_.methods);
      }
    };
    bool told = known != known_.end() && known->second.inlinee != nullptr;
    if (told) add(known->second.inlinee->profile.targets);
    if (before != saved_.end()) {
      add(before->second.targets);
      o.error = std::max(o.error, before->second.error);
    }
    if (phase_ && phase_->targets.contains(o.path)) add(phase_->targets.at(o.path));
    out.push_back(std::move(o));
  }
  return out;
}

// `error` receives the bound on the profile's distance from the truth.
std::unique_ptr<jit::Inlinee> Inlinees::make(MethodId id, double& error) {
  HeldState lock(env_.state_mutex);
  if (!env_.methods.serves(id)) return nullptr;
  Method& m = env_.methods.at(id.index());
  if (m.body == nullptr || m.removed || m.guard_banned) return nullptr;
  auto known =
      std::make_unique<jit::Inlinee>(jit::Inlinee{*m.body, {}, m.info.host_resume != nullptr});
  if (profiles_) known->profile = body_profile(m, env_.observer.estimates, env_.stubs);
  if (profiles_) {
    note_turns(m, env_.observer.estimates, known->function);
    note_counts(m, env_.observer.estimates, known->function);
  }
  if (env_.stress.active(StressKind::kValues)) note_wild_counts(known->function, serial_);
  error = profile_error(m, known->profile.blocks);
  bool enough =
      env_.live.deopt_cold && env_.observer.estimates.samples_of(m) >= env_.live.cold_samples;
  const std::vector<uint64_t>& seen = known->profile.blocks;
  known->uncommon_traps = enough && !seen.empty() && seen[0] != 0;
  if (known->uncommon_traps) known->kept = m.shape->exits.kept_blocks(true);
  return known;
}

}  // namespace uptier::tiering
