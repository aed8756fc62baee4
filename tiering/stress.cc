#include "tiering/stress.h"

#include <charconv>

#include "sampler/gap.h"

namespace uptier::tiering {
namespace {

constexpr const char* kKindNames[kStressKinds] = {"osr",   "copy", "guard", "code",   "compile",
                                                  "delay", "flip", "slow",  "values", "osr_out"};

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

bool parse_form(std::string_view text, StressForm& f) {
  auto parts = split(text, ':');
  using Mode = StressForm::Mode;
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
  switch (mode) {
    case Mode::kOff: return false;
    case Mode::kAll: return true;
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
              parse_form(part.substr(equals + 1), plan.forms[kind]);
    if (!ok) {
      return Error{ErrorCode::kInvalidArgument,
                   "stress plan: \"" + std::string(part) +
                       "\" is not kind=form with kind osr, copy, "
                       "guard, code, compile, delay, flip, slow, values or osr_out and form "
                       "all, at:N, from:N, every:N or random:P:SEED"};
    }
  }
  return plan;
}

std::vector<StressCount> Stress::counts() const {
  std::vector<StressCount> rows;
  for (size_t i = 0; i < kStressKinds; ++i) {
    auto k = static_cast<StressKind>(i);
    if (active(k)) rows.push_back({kKindNames[i], points(k), forced(k)});
  }
  return rows;
}

bool Stress::point(StressKind k) noexcept {
  auto i = static_cast<size_t>(k);
  uint64_t number = points_[i].fetch_add(1, std::memory_order_relaxed) + 1;
  bool forced = plan_.forms[i].forces(number);
  if (forced) forced_[i].fetch_add(1, std::memory_order_relaxed);
  return forced;
}

}  // namespace uptier::tiering
