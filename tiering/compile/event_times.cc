#include "tiering/compile/event_times.h"

#include <algorithm>

namespace uptier::tiering {

void EventTimes::ended(const char* phase) noexcept {
  if (details_ == nullptr) return;
  const uint64_t now = now_ns(), took = now - last_;
  last_ = now;
  auto& phases = details_->phases;
  if (phases.size() == EventDetails::kMost) {
    phases.back().duration_ns += took;
  } else if (!finishes([&] { phases.push_back({phase, took}); })) {
    details_.reset();  // a gap would be false
  }
}

void EventTimes::inlined(std::span<const jit::InlineRow> rows) noexcept {
  if (details_ == nullptr) return;
  auto& all = details_->inlined;
  const bool fits = finishes([&] {
    for (const jit::InlineRow& r : rows) all.push_back(r.method);
    std::ranges::sort(all);
    all.erase(std::ranges::unique(all).begin(), all.end());
    details_->inlined_methods = static_cast<uint32_t>(all.size());
    all.resize(std::min(all.size(), EventDetails::kMost));
  });
  if (!fits) details_.reset();
}

}  // namespace uptier::tiering
