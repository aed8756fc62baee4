#include "profile/data/cluster_calls.h"

#include <algorithm>
#include <numeric>

namespace uptier::profile {
namespace {

// A cluster is not merged if that would leave it an eighth as dense or less (hfsort's number).
constexpr double kDiluted = 8;

struct Cluster {
  std::vector<uint32_t> members;
  double weight = 0;
  uint64_t bytes = 0;

  double density() const { return weight / static_cast<double>(bytes); }
};

// Returns each function's heaviest caller, or its own number.
std::vector<uint32_t> heaviest_callers(size_t count, std::span<const CallArc> arcs) {
  std::vector<uint32_t> caller(count);
  std::iota(caller.begin(), caller.end(), 0u);
  std::vector<uint64_t> calls(count);
  for (const CallArc& a : arcs) {
    bool counts = a.caller < count && a.callee < count && a.caller != a.callee && a.calls != 0;
    if (!counts) continue;
    bool more =
        a.calls > calls[a.callee] || (a.calls == calls[a.callee] && a.caller < caller[a.callee]);
    if (!more) continue;
    calls[a.callee] = a.calls;
    caller[a.callee] = a.caller;
  }
  return caller;
}

std::vector<uint32_t> by_falling(std::vector<double> keys) {
  std::vector<uint32_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0u);
  std::ranges::stable_sort(order, [&](uint32_t a, uint32_t b) { return keys[a] > keys[b]; });
  return order;
}

bool worth(const Cluster& front, const Cluster& back, uint64_t most_bytes) {
  double together = (front.weight + back.weight) / static_cast<double>(front.bytes + back.bytes);
  return front.bytes + back.bytes <= most_bytes && together * kDiluted >= front.density();
}

void append(Cluster& front, Cluster& back) {
  front.members.insert(front.members.end(), back.members.begin(), back.members.end());
  front.weight += back.weight;
  front.bytes += back.bytes;
  back.members.clear();
}

}  // namespace

std::vector<std::vector<uint32_t>> cluster_calls(std::span<const PlacedFunction> functions,
                                                 std::span<const CallArc> arcs,
                                                 uint64_t most_bytes) {
  auto count = static_cast<uint32_t>(functions.size());
  std::vector<Cluster> clusters(count);
  std::vector<uint32_t> cluster_of(count);
  std::vector<double> weights(count);
  for (uint32_t f = 0; f < count; ++f) {
    clusters[f] = {{f}, functions[f].weight, std::max<uint64_t>(functions[f].bytes, 1)};
    cluster_of[f] = f;
    weights[f] = functions[f].weight;
  }
  std::vector<uint32_t> caller = heaviest_callers(count, arcs);
  for (uint32_t f : by_falling(weights)) {
    uint32_t front = cluster_of[caller[f]], back = cluster_of[f];
    if (front == back || !worth(clusters[front], clusters[back], most_bytes)) continue;
    for (uint32_t member : clusters[back].members) cluster_of[member] = front;
    append(clusters[front], clusters[back]);
  }
  std::vector<double> densities;
  for (const Cluster& c : clusters) densities.push_back(c.density());
  std::vector<std::vector<uint32_t>> placed;
  for (uint32_t c : by_falling(densities)) {
    if (!clusters[c].members.empty()) placed.push_back(std::move(clusters[c].members));
  }
  return placed;
}

}  // namespace uptier::profile
