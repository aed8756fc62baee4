#include "tiering/policy/compaction_plan.h"

#include <algorithm>
#include <cassert>
#include <cstdio>
#include <numeric>
#include <set>
#include <utility>

namespace uptier::tiering {
namespace {

constexpr uint32_t kLinesInPage = 64;
constexpr uint64_t kBytesInLine = 64;
constexpr uint64_t kClusterBytes = kLinesInPage * kBytesInLine;

using Numbers = std::vector<uint32_t>;

uint32_t pages_for(uint64_t lines) {
  return static_cast<uint32_t>((lines + kLinesInPage - 1) / kLinesInPage);
}

// The first and the last page of some lines.
struct Pages {
  uint32_t first, last;

  Pages(uint64_t line, uint32_t lines)
      : first(static_cast<uint32_t>(line / kLinesInPage)),
        last(static_cast<uint32_t>((line + std::max(lines, 1u) - 1) / kLinesInPage)) {}
  bool meets(const Pages& o) const { return first <= o.last && o.first <= last; }
};

// Calls `visit` with each page of a body's parts and how many of its lines lie there.
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

// How full the pages are that a body lies in: the mean, by its lines.
double fill_of(const RelaySnapshot& s, const PlacedBody& b) {
  double sum = 0, lines = 0;
  each_page(b, [&](uint32_t page, uint32_t n) {
    assert(page < s.lines_used.size() && s.lines_used[page] <= kLinesInPage);
    sum += n * static_cast<double>(s.lines_used[page]) / kLinesInPage;
    lines += n;
  });
  return lines == 0 ? 1 : sum / lines;
}

// Bodies of pages that are not full, those of the emptiest first.
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

Numbers with_weight(const RelaySnapshot& s) {
  Numbers bodies;
  for (uint32_t n = 0; n < s.bodies.size(); ++n) {
    if (s.bodies[n].weight > 0) bodies.push_back(n);
  }
  return bodies;
}

// Keeps the first that fit.
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

// Puts bodies in the order of clusters.
Numbers in_clusters(const RelaySnapshot& s, const Numbers& bodies) {
  std::vector<profile::PlacedFunction> functions;
  Numbers number(s.bodies.size(), UINT32_MAX);
  for (uint32_t n : bodies) {
    number[n] = static_cast<uint32_t>(functions.size());
    functions.push_back({s.bodies[n].weight, s.bodies[n].hot_lines * kBytesInLine});
  }
  std::vector<profile::CallArc> arcs;
  for (const profile::CallArc& a : s.arcs) {
    bool known = a.caller < number.size() && a.callee < number.size();
    if (known) arcs.push_back({number[a.caller], number[a.callee], a.calls});
  }
  Numbers order;
  for (const auto& cluster : profile::cluster_calls(functions, arcs, kClusterBytes)) {
    for (uint32_t f : cluster) order.push_back(bodies[f]);
  }
  return order;
}

// Where hot parts lie if `order` is laid from the first line of a page on, the others as they are.
std::vector<Pages> pages_of(const RelaySnapshot& s, const Numbers& order) {
  std::vector<Pages> pages;
  for (const PlacedBody& b : s.bodies) pages.emplace_back(b.hot_line, b.hot_lines);
  // Behind all that is there.
  uint64_t line = uint64_t{s.lines_used.size()} * kLinesInPage;
  for (uint32_t n : order) {
    pages[n] = Pages(line, s.bodies[n].hot_lines);
    line += s.bodies[n].hot_lines;
  }
  return pages;
}

double near_share(const RelaySnapshot& s, const std::vector<Pages>& pages) {
  double all = 0, near = 0;
  for (const profile::CallArc& a : s.arcs) {
    bool known = a.caller < pages.size() && a.callee < pages.size() && a.caller != a.callee;
    if (!known) continue;
    auto calls = static_cast<double>(a.calls);
    all += calls;
    if (pages[a.caller].meets(pages[a.callee])) near += calls;
  }
  assert(near <= all);
  return all == 0 ? 1 : near / all;
}

// The densest bodies that make up kCoreShare of all weight.
Numbers core_of(const RelaySnapshot& s) {
  Numbers bodies = with_weight(s);
  auto density = [&](uint32_t n) {
    return s.bodies[n].weight / std::max(s.bodies[n].hot_lines, 1u);
  };
  std::ranges::stable_sort(bodies, [&](uint32_t a, uint32_t b) { return density(a) > density(b); });
  double all = 0, sum = 0;
  for (uint32_t n : bodies) all += s.bodies[n].weight;
  size_t kept = 0;
  while (kept < bodies.size() && sum < kCoreShare * all) sum += s.bodies[bodies[kept++]].weight;
  bodies.resize(kept);
  return bodies;
}

uint32_t count_pages(const Numbers& bodies, const std::vector<Pages>& pages) {
  std::set<uint32_t> met;
  for (uint32_t n : bodies) {
    for (uint32_t p = pages[n].first; p <= pages[n].last; ++p) met.insert(p);
  }
  return static_cast<uint32_t>(met.size());
}

// Fills in what the order of a plan would change.
void foresee(const RelaySnapshot& s, RelayPlan& p) {
  std::vector<int64_t> used(s.lines_used.begin(), s.lines_used.end());
  auto in_use = [&] { return static_cast<uint32_t>(used.size() - std::ranges::count(used, 0)); };
  p.pages_before = in_use();
  for (uint32_t n : p.order) {
    p.hot_lines += s.bodies[n].hot_lines;
    p.cold_lines += s.bodies[n].cold_lines;
    each_page(s.bodies[n], [&](uint32_t page, uint32_t lines) { used[page] -= lines; });
  }
  assert(std::ranges::none_of(used, [](int64_t lines) { return lines < 0; }));
  p.pages_after = in_use() + pages_for(p.hot_lines) + pages_for(p.cold_lines);
  double lines = std::accumulate(s.lines_used.begin(), s.lines_used.end(), 0.0);
  p.holes = p.pages_before == 0 ? 0 : 1 - lines / (p.pages_before * double{kLinesInPage});
  Numbers core = core_of(s);
  std::vector<Pages> before = pages_of(s, {}), after = pages_of(s, p.order);
  p.core_before = count_pages(core, before);
  p.core_after = count_pages(core, after);
  p.near_before = near_share(s, before);
  p.near_after = near_share(s, after);
}

RelayPlan plan_of(const RelaySnapshot& s, RelayWhy why, Numbers bodies) {
  RelayPlan p;
  p.why = why;
  cut(s, bodies);
  p.order = in_clusters(s, bodies);
  assert(p.order.size() <= bodies.size());
  foresee(s, p);
  return p;
}

bool frees_pages(const RelayPlan& p) { return p.pages_after + kLeastGain <= p.pages_before; }

bool is_ordered_anew(const RelayPlan& p) {
  if (p.core_before < kLeastPages) return false;
  return p.core_before >= kSpread * p.core_after || p.near_after >= p.near_before + kNearer;
}

}  // namespace

RelayPlan plan_relay(const RelaySnapshot& s, const RelayOptions& o) {
  RelayPlan sparse =
      plan_of(s, s.room_wanted ? RelayWhy::kRoom : RelayWhy::kHoles, in_sparse_pages(s));
  bool few = sparse.pages_before < kLeastPages;
  if (s.room_wanted) return frees_pages(sparse) ? sparse : RelayPlan();
  if (few) return {};
  if (sparse.holes >= o.holes && frees_pages(sparse)) return sparse;
  Numbers hot = in_clusters(s, with_weight(s));
  RelayPlan ordered = plan_of(s, RelayWhy::kOrder, std::move(hot));
  return is_ordered_anew(ordered) ? ordered : RelayPlan();
}

RelayPlan relay_all(const RelaySnapshot& s) {
  Numbers all(s.bodies.size());
  std::iota(all.begin(), all.end(), 0u);
  return plan_of(s, RelayWhy::kOrder, std::move(all));
}

std::string RelayPlan::text() const {
  constexpr const char* kWhy[] = {"nothing", "room was refused", "holes", "another order"};
  char text[256];
  std::snprintf(text, sizeof text,
                "%s: %zu bodies, %llu bytes; pages with code %u -> %u (holes %.2f), of the hottest "
                "%u -> %u; calls within a page %.2f -> %.2f",
                kWhy[static_cast<size_t>(why)], order.size(),
                static_cast<unsigned long long>((hot_lines + cold_lines) * kBytesInLine),
                pages_before, pages_after, holes, core_before, core_after, near_before, near_after);
  return text;
}

}  // namespace uptier::tiering
