#include "tiering/base/stress.h"

#include <cassert>
#include <charconv>

#include "sampler/gap.h"

namespace uptier::tiering {
namespace {

constexpr const char* kKindNames[kStressKinds] = {"osr",     "copy",    "guard", "code",
                                                  "compile", "delay",   "flip",  "slow",
                                                  "values",  "osr_out", "relay"};

std::vector<std::string_view> split(std::string_view text, char by) {
  std::vector<std::string_view> parts;
  while (true) {
    size_t end = text.find(by);
    parts.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

template <typename T>
bool parse_number(std::string_view text, T& out) {
  auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size() && !text.empty();
}

// Says whether points of this kind have places, so that each place can be met once.
bool has_places(StressKind k) {
  return k == StressKind::kOsr || k == StressKind::kCopy || k == StressKind::kGuard ||
         k == StressKind::kOsrOut;
}

bool parse_form(std::string_view text, StressKind kind, StressForm& f) {
  auto parts = split(text, ':');
  using Mode = StressForm::Mode;
  if (parts.size() == 1 && parts[0] == "once") {
    f.mode = Mode::kOnce;
    return has_places(kind);
  }
  if (parts.size() == 1 && parts[0] == "all") {
    f.mode = Mode::kAll;
    return true;
  }
  if (parts.size() == 2 && parse_number(parts[1], f.n) && f.n >= 1) {
    f.mode = parts[0] == "at"      ? Mode::kAt
             : parts[0] == "from"  ? Mode::kFrom
             : parts[0] == "every" ? Mode::kEvery
                                   : Mode::kOff;
    return f.mode != Mode::kOff;
  }
  f.mode = Mode::kRandom;
  return parts.size() == 3 && parts[0] == "random" && parse_number(parts[1], f.probability) &&
         f.probability >= 0 && f.probability <= 1 && parse_number(parts[2], f.seed);
}

}  // namespace

bool StressForm::forces(uint64_t point) const noexcept {
  assert(point != 0);  // points are counted from 1
  switch (mode) {
    case Mode::kOff: return false;
    case Mode::kAll:
    case Mode::kOnce: return true;
    case Mode::kAt: return point == n;
    case Mode::kFrom: return point >= n;
    case Mode::kEvery: return point % n == 0;
    case Mode::kRandom: {
      uint64_t state = seed ^ (point * 0x9e3779b97f4a7c15ull);
      return sampler::to_unit(sampler::next_random(state)) < probability;
    }
  }
  return false;
}

Result<StressPlan> StressPlan::parse(std::string_view text) {
  StressPlan plan;
  if (text.empty()) return plan;
  for (std::string_view part : split(text, ',')) {
    size_t equals = part.find('=');
    size_t kind = 0;
    while (kind < kStressKinds && part.substr(0, equals) != kKindNames[kind]) ++kind;
    bool ok = equals != std::string_view::npos && kind < kStressKinds &&
              parse_form(part.substr(equals + 1), static_cast<StressKind>(kind), plan.forms[kind]);
    if (!ok) {
      return Error{ErrorCode::kInvalidArgument,
                   "stress plan: \"" + std::string(part) +
                       "\" is not kind=form with kind osr, copy, "
                       "guard, code, compile, delay, flip, slow, values, osr_out or relay and form "
                       "all, at:N, from:N, every:N, random:P:SEED or (osr, copy, guard, osr_out) "
                       "once"};
    }
  }
  return plan;
}

bool MetPlaces::meet(uint64_t place) noexcept {
  assert(place != 0);
  uint64_t at = place;
  for (size_t tries = 0; tries < 64; ++tries) {
    std::atomic<uint64_t>& word = words_[sampler::next_random(at) % kWords];
    uint64_t met = 0;
    // Only the presence of the place matters, so relaxed is enough.
    if (word.compare_exchange_strong(met, place, std::memory_order_relaxed)) return true;
    if (met == place) return false;
  }
  return false;
}

Stress::Stress(const StressPlan& plan) : plan_(plan) {
  for (size_t i = 0; i < kStressKinds; ++i) {
    if (plan_.forms[i].mode == StressForm::Mode::kOnce) met_[i] = std::make_unique<MetPlaces>();
  }
}

std::vector<StressCount> Stress::counts() const {
  std::vector<StressCount> rows;
  for (size_t i = 0; i < kStressKinds; ++i) {
    auto k = static_cast<StressKind>(i);
    if (active(k)) rows.push_back({kKindNames[i], points(k), forced(k)});
  }
  return rows;
}

bool Stress::point(StressKind k, uint64_t what, uint64_t where) noexcept {
  auto i = static_cast<size_t>(k);
  uint64_t number = points_[i].fetch_add(1, std::memory_order_relaxed) + 1;
  bool forced = plan_.forms[i].forces(number);
  if (forced && met_[i]) forced = met_[i]->meet((what << 32 | (where & 0xffffffff)) + 1);
  if (forced) forced_[i].fetch_add(1, std::memory_order_relaxed);
  return forced;
}

}  // namespace uptier::tiering
