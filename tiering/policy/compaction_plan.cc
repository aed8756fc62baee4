#include "tiering/policy/compaction_plan.h"

#include <algorithm>
#include <cassert>
#include <cstdio>
#include <numeric>
#include <utility>

namespace uptier::tiering {
namespace {

constexpr uint32_t kLinesInPage = 64;
constexpr uint64_t kBytesInLine = 64;

using Numbers = std::vector<uint32_t>;

uint32_t pages_for(uint64_t lines) {
  return static_cast<uint32_t>((lines + kLinesInPage - 1) / kLinesInPage);
}

// Calls `visit` with each page that a body lies in, and the number of the body's lines in it.
template <typename Visit>
void each_page(const PlacedBody& b, Visit visit) {
  for (auto [line, lines] : {std::pair{b.hot_line, b.hot_lines}, {b.cold_line, b.cold_lines}}) {
    for (uint32_t end = line + lines; line < end;) {
      uint32_t next = std::min(end, (line / kLinesInPage + 1) * kLinesInPage);
      visit(line / kLinesInPage, next - line);
      line = next;
    }
  }
}

// Returns how full the body's pages are: the mean over its lines.
double fill_of(const RelaySnapshot& s, const PlacedBody& b) {
  double sum = 0, lines = 0;
  each_page(b, [&](uint32_t page, uint32_t n) {
    assert(page < s.lines_used.size() && s.lines_used[page] <= kLinesInPage);
    sum += n * static_cast<double>(s.lines_used[page]) / kLinesInPage;
    lines += n;
  });
  return lines == 0 ? 1 : sum / lines;
}

// Returns the bodies in pages that are not full, those in the emptiest pages first.
Numbers in_sparse_pages(const RelaySnapshot& s) {
  std::vector<std::pair<double, uint32_t>> found;
  for (uint32_t n = 0; n < s.bodies.size(); ++n) {
    double fill = fill_of(s, s.bodies[n]);
    if (fill < kFullPage) found.emplace_back(fill, n);
  }
  std::ranges::sort(found);
  Numbers bodies;
  for (auto [fill, n] : found) bodies.push_back(n);
  return bodies;
}

// Keeps the first bodies that fit the limit.
void cut(const RelaySnapshot& s, Numbers& bodies) {
  uint64_t left = s.most_bytes / kBytesInLine;
  size_t kept = 0;
  for (; kept < bodies.size(); ++kept) {
    const PlacedBody& b = s.bodies[bodies[kept]];
    uint64_t lines = uint64_t{b.hot_lines} + b.cold_lines;
    if (lines > left) break;
    left -= lines;
  }
  bodies.resize(kept);
}

// Computes the effect of a plan's moves.
void foresee(const RelaySnapshot& s, RelayPlan& p) {
  std::vector<int64_t> used(s.lines_used.begin(), s.lines_used.end());
  auto in_use = [&] { return static_cast<uint32_t>(used.size() - std::ranges::count(used, 0)); };
  p.pages_before = in_use();
  for (uint32_t n : p.order) {
    p.hot_lines += s.bodies[n].hot_lines;
    p.cold_lines += s.bodies[n].cold_lines;
    // A body found earlier may have been freed since; its lines are no longer among the used ones.
    each_page(s.bodies[n], [&](uint32_t page, uint32_t lines) {
      used[page] = std::max<int64_t>(0, used[page] - lines);
    });
  }
  p.pages_after = in_use() + pages_for(p.hot_lines) + pages_for(p.cold_lines);
  double lines = std::accumulate(s.lines_used.begin(), s.lines_used.end(), 0.0);
  p.holes = p.pages_before == 0 ? 0 : 1 - lines / (p.pages_before * double{kLinesInPage});
}

RelayPlan plan_of(const RelaySnapshot& s, RelayWhy why, Numbers bodies) {
  RelayPlan p;
  p.why = why;
  cut(s, bodies);
  p.order = std::move(bodies);
  foresee(s, p);
  return p;
}

bool frees_pages(const RelayPlan& p) { return p.pages_after + kLeastGain <= p.pages_before; }

}  // namespace

RelayPlan plan_relay(const RelaySnapshot& s, const RelayOptions& o) {
  RelayPlan sparse =
      plan_of(s, s.room_wanted ? RelayWhy::kRoom : RelayWhy::kHoles, in_sparse_pages(s));
  const bool enough_holes = sparse.pages_before >= kLeastPages && sparse.holes >= o.holes;
  const bool wanted = s.room_wanted || enough_holes;
  return wanted && frees_pages(sparse) ? sparse : RelayPlan();
}

RelayPlan relay_all(const RelaySnapshot& s) {
  Numbers all(s.bodies.size());
  std::iota(all.begin(), all.end(), 0u);
  return plan_of(s, RelayWhy::kStress, std::move(all));
}

std::string RelayPlan::text() const {
  constexpr const char* kWhy[] = {"nothing", "room was refused", "holes", "forced"};
  char text[256];
  std::snprintf(text, sizeof text,
                "%s: %zu bodies, %llu bytes; pages with code %u -> %u (holes %.2f)",
                kWhy[static_cast<size_t>(why)], order.size(),
                static_cast<unsigned long long>(hot_lines + cold_lines) * kBytesInLine,
                pages_before, pages_after, holes);
  return text;
}

}  // namespace uptier::tiering
