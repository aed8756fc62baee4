#include "tiering/observe/stack_samples.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "jit/code/code.h"
#include "tiering/model/version.h"

namespace uptier::tiering {
namespace {

using sampler::SampleGap;
using sampler::SampleLeaf;
using sampler::StackRecord;

TimePlace place_of(SampleLeaf leaf) {
  switch (leaf) {
    case SampleLeaf::kBody:
    case SampleLeaf::kStub: return TimePlace::kMethod;
    case SampleLeaf::kRuntime: return TimePlace::kRuntime;
    case SampleLeaf::kHost: return TimePlace::kHost;
    case SampleLeaf::kBlocked: return TimePlace::kCompiling;
    case SampleLeaf::kOutside: return TimePlace::kOutside;
  }
  return TimePlace::kOutside;
}

const void* code_address(uint64_t pc) {
  return reinterpret_cast<const void*>(pc);  // NOLINT(performance-no-int-to-ptr)
}

}  // namespace

uint32_t StackSamples::number_of(MethodId m) {
  auto [at, fresh] = by_method_.try_emplace(m.number(), static_cast<uint32_t>(named_.size()));
  if (!fresh) return at->second;
  const Method* method = methods_.known(m);
  Named n{TimePlace::kMethod, m, {}, "method " + std::to_string(m.index())};
  if (method != nullptr) {
    n.key = method->info.key;
    n.name = method->info.name;
  }
  named_.push_back(std::move(n));
  return at->second;
}

uint32_t StackSamples::number_of(TimePlace p) {
  uint32_t& at = places_[static_cast<size_t>(p)];
  if (at != 0) return at - 1;
  named_.push_back({p, MethodId::none(), {}, "[" + std::string(time_place_name(p)) + "]"});
  at = static_cast<uint32_t>(named_.size());
  return at - 1;
}

StackSamples::CodeKind StackSamples::kind_of(const jit::Code& code) {
  auto [at, fresh] = kinds_.try_emplace(code.serial());
  if (!fresh) return at->second;
  const Method* m = methods_.known(code.method());
  if (m == nullptr) return {};
  auto version =
      std::ranges::find_if(m->versions, [&](const auto& v) { return v->code.get() == &code; });
  if (version == m->versions.end()) return {};
  at->second = {(*version)->tier, (*version)->copy, (*version)->osr_loop.valid()};
  return at->second;
}

void StackSamples::add_bodies(const jit::Code& code, uint64_t pc) {
  CodeKind kind = kind_of(code);
  const jit::ProbeRow* row = code.probe_at(code_address(pc));
  uint32_t body = row == nullptr ? 0 : row->body;
  const std::vector<jit::InlineRow>& inlined = code.tables().inlined;
  while (body != 0 && body <= inlined.size()) {
    frames_.push_back({number_of(code.method_of(body)), kind, true});
    body = inlined[body - 1].parent;
  }
  frames_.push_back({number_of(code.method()), kind, false});
}

void StackSamples::add_frames(const StackRecord& r, const jit::CodeSpace& space,
                              const jit::StubTable& stubs) {
  for (uint32_t i = 0; i < r.count; ++i) {
    uint64_t pc = StackRecord::pc_of(r.frames[i]);
    if (i == 0 && r.leaf == SampleLeaf::kStub) {
      MethodId m = stubs.method_of(code_address(pc));
      if (!m.valid()) continue;
      frames_.push_back({number_of(methods_.latest(m.index())), {}, false});
      continue;
    }
    const jit::Code* code = space.owner_of(code_address(pc));
    if (code == nullptr || !StackRecord::is_of(r.frames[i], code->serial())) {
      ++stale_;
      continue;
    }
    add_bodies(*code, pc);
  }
}

void StackSamples::add_place(const StackRecord& r) {
  TimePlace p = place_of(r.leaf);
  if (p != TimePlace::kMethod) frames_.push_back({number_of(p), {}, false});
}

uint32_t StackSamples::node_of(uint32_t parent, uint32_t named, bool& cut) {
  uint64_t key = uint64_t{parent} << 32 | named;
  auto at = children_.find(key);
  if (at != children_.end()) return at->second;
  if (nodes_.size() >= kMostNodes) {
    cut = true;
    return UINT32_MAX;
  }
  auto node = static_cast<uint32_t>(nodes_.size());
  nodes_.push_back({parent == 0 ? node : parent - 1, named, {}});
  children_.emplace(key, node);
  return node;
}

// If there is no memory for the next node, the path ends there; if even its root node is missing,
// the sample is left out of the tree.
void StackSamples::add_path(double weight) {
  bool cut = false;
  uint32_t at = 0;  // node + 1
  for (size_t i = frames_.size(); i-- > 0 && !cut;) {
    uint32_t node = node_of(at, frames_[i].named, cut);
    if (!cut) at = node + 1;
  }
  if (cut) ++paths_cut_;
  if (at != 0) nodes_[at - 1].own.add(weight);
}

void StackSamples::find_met() {
  met_.clear();
  for (const Frame& f : frames_) {
    MethodId m = named_[f.named].method;
    if (!m.valid()) continue;  // another place, called from the frame that follows
    met_.push_back(m);
    if (!f.inlined) return;
  }
}

void StackSamples::take(const StackRecord& r, const jit::CodeSpace& space,
                        const jit::StubTable& stubs) {
  assert(r.count <= StackRecord::kMostFrames);
  auto weight = static_cast<double>(r.weight_ns);
  ++samples_;
  sampled_ns_ += weight;
  squares_ += weight * weight;
  gaps_[static_cast<size_t>(r.gap)].add(weight);
  frames_.clear();
  add_place(r);
  add_frames(r, space, stubs);
  find_met();
  bool nameless = frames_.empty() ||
                  (r.count == 0 && r.gap != SampleGap::kNone && r.leaf != SampleLeaf::kOutside);
  if (frames_.empty()) frames_.push_back({number_of(TimePlace::kRuntime), {}, false});
  if (nameless) unattributed_ns_ += weight;
  const Frame& leaf = frames_.front();
  rows_[{leaf.named, leaf.kind.tier, leaf.kind.copy, leaf.kind.osr, leaf.inlined}].add(weight);
  if (r.gap == SampleGap::kTooDeep) ++paths_cut_;
  add_path(weight);
}

ShareEstimate StackSamples::share_of(const Sum& s) const {
  return share_of_time(s.ns, sampled_ns_, squares_);
}

std::vector<PathFrame> StackSamples::path_to(uint32_t node) const {
  std::vector<PathFrame> path;
  while (true) {
    const Named& n = named_[nodes_[node].named];
    path.push_back({n.place, n.key});
    if (nodes_[node].parent == node) break;
    node = nodes_[node].parent;
  }
  std::ranges::reverse(path);
  return path;
}

TimeProfile StackSamples::profile() const {
  TimeProfile to;
  for (uint32_t i = 0; i < nodes_.size(); ++i) {
    const Sum& own = nodes_[i].own;
    if (own.samples != 0) to.add(path_to(i), own.samples, static_cast<uint64_t>(own.ns));
  }
  to.squares = static_cast<uint64_t>(squares_ / 1e6);  // from ns^2 to us^2
  return to;
}

void StackSamples::report(TimeReport& to) const {
  to.samples = samples_;
  to.sampled_ns = sampled_ns_;
  to.squares = squares_;
  to.unattributed_ns = unattributed_ns_;
  to.stale = stale_;
  to.paths_cut = paths_cut_;
  for (uint32_t g = 1; g < sampler::kSampleGaps; ++g) {
    if (gaps_[g].samples == 0) continue;
    to.gaps.push_back(
        {sampler::sample_gap_name(static_cast<SampleGap>(g)), gaps_[g].samples, gaps_[g].ns});
  }
  for (const auto& [key, sum] : rows_) {
    const auto& [named, tier, copy, osr, inlined] = key;
    const Named& n = named_[named];
    to.rows.push_back({n.place, n.method, n.key, n.name, tier, copy, osr, inlined, sum.samples,
                       sum.ns, share_of(sum)});
  }
  std::ranges::stable_sort(to.rows, std::ranges::greater(), &TimeRow::ns);
}

void StackSamples::report_paths(TimeReport& to) const {
  for (const Node& node : nodes_) {
    const Named& n = named_[node.named];
    to.nodes.push_back({node.parent, n.place, n.method, n.name, node.own.samples, node.own.ns});
  }
}

}  // namespace uptier::tiering
