#include "profile/data/loop_nest.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <optional>
#include <vector>

#include "profile/data/estimate.h"

namespace uptier::profile {
namespace {

constexpr double kZ95 = 1.96;
constexpr int kRounds = 100;
constexpr double kNearly = 1e-9;  // relative; afterwards sums are made exact

class Nest {
 public:
  Nest(std::span<NestedLoop> loops, double per_execution) : loops_(loops), x_(loops.size()) {
    for (size_t i = 0; i < loops.size(); ++i) {
      const uptier::Estimate& c = loops[i].cycles;
      const double half = std::max(c.high - c.total, c.total - c.low) / kZ95;
      const double off = per_execution * loops[i].entries;
      x_[i] = c.total;
      variance_.push_back(half * half + off * off + 1);
    }
    inside_.resize(loops.size());
    for (uint32_t i = 0; i < loops.size(); ++i) {
      if (loops[i].within < loops.size()) inside_[loops[i].within].push_back(i);
    }
    sort_inwards();
  }

  void settle() {
    if (!breaks_law()) return;
    project();
    make_exact();
    for (size_t i = 0; i < loops_.size(); ++i) move(loops_[i].cycles, x_[i]);
  }

 private:
  double sum_inside(size_t i) const {
    double sum = 0;
    for (const uint32_t in : inside_[i]) sum += x_[in];
    return sum;
  }

  bool breaks_law() const {
    for (size_t i = 0; i < x_.size(); ++i) {
      if (!inside_[i].empty() && sum_inside(i) > x_[i]) return true;
    }
    return false;
  }

  // Each constraint in turn subtracts its excess, and gives back what it subtracted too much
  // before.
  void project() {
    std::vector<double> taken(x_.size());
    for (int round = 0; round < kRounds; ++round) {
      double worst = 0;
      for (size_t i = 0; i < x_.size(); ++i) {
        if (inside_[i].empty()) continue;
        double all = variance_[i];
        for (const uint32_t in : inside_[i]) all += variance_[in];
        const double excess = sum_inside(i) - x_[i];
        const double step = std::max(-taken[i], excess / all);
        taken[i] += step;
        x_[i] += step * variance_[i];
        for (const uint32_t in : inside_[i]) x_[in] -= step * variance_[in];
        worst = std::max(worst, std::fabs(step) * all / std::max(x_[i], 1.0));
      }
      if (worst < kNearly) return;
    }
  }

  // From the outermost inwards: removes deviations by rounding and numbers below 0.
  void make_exact() {
    for (const uint32_t i : inwards_) {
      x_[i] = std::max(x_[i], 0.0);
      for (const uint32_t in : inside_[i]) x_[in] = std::max(x_[in], 0.0);
      const double sum = sum_inside(i);
      if (sum <= x_[i]) continue;
      double left = x_[i];
      for (const uint32_t in : inside_[i]) {
        x_[in] = std::min(x_[in] * (x_[i] / sum), left);
        left -= x_[in];
      }
    }
  }

  static void move(uptier::Estimate& c, double to) {
    if (to == c.total) return;
    const double below = c.total - c.low, above = c.high - c.total;
    c.low = std::max(0.0, std::min(c.low, to - below));
    c.high = std::max(c.high, to + above);
    c.total = to;
  }

  void sort_inwards() {
    std::vector<uint32_t> depth(loops_.size());
    for (uint32_t i = 0; i < loops_.size(); ++i) {
      uint32_t up = loops_[i].within;
      for (; up < loops_.size() && depth[i] < loops_.size(); up = loops_[up].within) ++depth[i];
    }
    inwards_.resize(loops_.size());
    std::iota(inwards_.begin(), inwards_.end(), 0u);
    std::ranges::stable_sort(inwards_, {}, [&](uint32_t i) { return depth[i]; });
  }

  std::span<NestedLoop> loops_;
  std::vector<double> x_, variance_;
  std::vector<std::vector<uint32_t>> inside_;
  std::vector<uint32_t> inwards_;
};

}  // namespace

void settle_nest(std::span<NestedLoop> loops, double per_execution) {
  Nest(loops, per_execution).settle();
}

void settle_loops(uptier::MethodProfile& m, std::span<const LoopPlace> loops,
                  double per_execution) {
  std::vector<uint32_t> place(loops.size(), NestedLoop::kOutermost);
  std::vector<NestedLoop> nest;
  std::vector<const uptier::Slot*> slots;
  for (size_t i = 0; i < loops.size(); ++i) {
    const uptier::Slot* slot = m.schema.find(uptier::SlotKind::kLoop, loops[i].site);
    if (slot == nullptr || m.counts[slot->word + uptier::slot_word::kLoopTimed] == 0) continue;
    const auto entries =
        static_cast<double>(m.estimates[slot->word + uptier::slot_word::kLoopEntries]);
    const std::optional<uptier::Estimate> cycles = m.loop_cycles(loops[i].site);
    if (entries == 0 || !cycles) continue;
    place[i] = static_cast<uint32_t>(nest.size());
    nest.push_back({*cycles, entries});
    slots.push_back(slot);
  }
  for (size_t i = 0; i < loops.size(); ++i) {
    if (place[i] == NestedLoop::kOutermost) continue;
    uint32_t up = loops[i].within;
    while (up < loops.size() && place[up] == NestedLoop::kOutermost) up = loops[up].within;
    if (up < loops.size()) nest[place[i]].within = place[up];
  }
  settle_nest(nest, per_execution);
  // Whole numbers; those of inner loops add up to no more than the loop around them.
  std::vector<uint64_t> inside(nest.size());
  const auto whole = [](double cycles) { return static_cast<uint64_t>(std::min(cycles, 0x1p62)); };
  for (const NestedLoop& l : nest) {
    if (l.within < nest.size()) inside[l.within] += whole(l.cycles.total);
  }
  for (size_t i = 0; i < nest.size(); ++i) {
    const uint64_t all = std::max(whole(nest[i].cycles.total), inside[i]);
    set_loop_cycles(m, *slots[i], nest[i].cycles, {all, all - inside[i]});
  }
}

}  // namespace uptier::profile
