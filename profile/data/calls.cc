// The arithmetic of CallProfile.
#include <algorithm>

#include "profile/base/numbers.h"
#include "uptier/profile_calls.h"

namespace uptier {

CallProfile& CallProfile::operator+=(CallProfile&& other) {
  shapes.merge(other.shapes);
  graph.merge(other.graph);
  first.merge(other.first);
  return *this += std::as_const(other);
}

CallProfile& CallProfile::operator+=(const CallProfile& other) {
  for (const auto& [key, shape] : other.shapes) {
    CodeShape& kept = shapes[key];
    if (kept < shape) kept = shape;
  }
  for (const auto& [call, count] : other.graph) profile::add_saturating(graph[call], count);
  for (const auto& [key, call] : other.first) {
    FirstCall& sum = first[key];
    profile::add_saturating(sum.positions, call.positions);
    profile::add_saturating(sum.runs, call.runs);
  }
  time += other.time;
  return *this;
}

void CallProfile::scale(uint64_t numerator, uint64_t denominator) {
  uint64_t saturated = 0;
  const auto apply = [&](uint64_t& n) {
    n = profile::mul_div(n, numerator, denominator, saturated);
  };
  for (auto& [call, count] : graph) apply(count);
  for (auto& [key, call] : first) {
    apply(call.positions);
    apply(call.runs);
  }
  time.scale(numerator, denominator);
  std::erase_if(graph, [](const auto& item) { return item.second == 0; });
  std::erase_if(first, [](const auto& item) { return item.second.runs == 0; });
}

std::vector<MethodKey> CallProfile::order() const {
  std::vector<MethodKey> keys;
  for (const auto& [key, call] : first) keys.push_back(key);
  std::ranges::stable_sort(keys, std::less<>{},
                           [this](const MethodKey& key) { return first.at(key).mean(); });
  return keys;
}

}  // namespace uptier
