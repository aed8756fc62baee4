// The text form of profiles: accepted text prints and parses to an equal profile, which can be
// merged, compared, scaled, trimmed and estimated.
#include <cmath>

#include "profile/data/schema.h"
#include "tests/fuzz/fuzz.h"

namespace uptier::fuzz {

std::vector<std::string> seeds() {
  const std::vector<std::string> texts = {
      "uptier-profile 1\n",
      "uptier-profile 1\nmethod 0x00000000000000a1 7 \"fib\" {\n  calls 1024\n  sampled 64\n"
      "  iterations 90\n  bursts 5\n  interval 16\n  cfg 0x0123456789abcdef\n"
      "  block 1 64 ~1024  # kind, site, count, estimate\n  block 2 18446744073709551615\n}\n",
      "uptier-profile 1\nmethod 0x0000000000000001 0 \"a\\\"b\" {\n  calls 0\n  sampled 0\n"
      "  interval 1\n  cfg 0x0000000000000000\n}\nmethod 0x0000000000000001 1 \"\" {\n  calls 1\n"
      "  sampled 1\n  interval 1\n  cfg 0x0000000000000001\n  counter 3 5\n}\n",
      "uptier-profile 1\nmethod 1 2 \"k\" {\n  cfg 0\n"
      "  call_target 3 top 16 other 2 ~32 {\n    0x00000000000000a1:4 40 ~640\n    7:0 1\n  }\n"
      "  value 4 top 2 count 3 ~9 sum -10 ~-30 min -7 max 4 other 0 {\n    -7 2\n    4 1 ~3\n  }\n"
      "  loop 1 entries 9 iterations 99 timed 2 timed_iterations 20 cycles 500\n"
      "    exclusive_cycles 500 squares 130000\n  log 5 events 2 lost 0\n  counter 6 12\n"
      "  range 7 count 2 sum 30 min 10 max 20\n  gauge 8 77\n  edge 1 3\n}\n",
      "uptier-profile 1\nmethod 1 2 \"k\" {\n  cfg 0\n}\ninlined 0x0000000000000001:2 0 {  # "
      "\"k\"\n"
      "  at 5 0x00000000000000a1:8 0x0000000000000011\n  block 1 64 ~1024 samples 64\n"
      "  block 3 0 samples 2\n}\ninlined 1:2 0 {\n  at 5 161:8 17\n  at 1 1:2 0\n"
      "  block 7 18446744073709551615 samples 1\n}\n",
  };
  for (const std::string& text : texts) UPTIER_FUZZ_CHECK(parse_profile(text).ok());
  return texts;
}

void check_estimates(const Profile& profile) {
  for (const auto& [key, method] : profile.methods) {
    for (const Slot& slot : method.schema.slots) {
      for (const auto& e : {method.estimate(slot.kind, slot.site), method.loop_cycles(slot.site)}) {
        if (!e) continue;
        UPTIER_FUZZ_CHECK(0 <= e->low && e->low <= e->total && e->total <= e->high);
        UPTIER_FUZZ_CHECK(std::isfinite(e->high));
      }
    }
  }
}

void check_arithmetic(const Profile& profile) {
  UPTIER_FUZZ_CHECK(std::abs(overlap(profile, profile) - 1) < 1e-9);
  const std::optional<Overlap> inlined = compare(profile, profile).inlined;
  UPTIER_FUZZ_CHECK(inlined.has_value() == !profile.inlined.empty());
  UPTIER_FUZZ_CHECK(!inlined || std::abs(inlined->value - 1) < 1e-9);
  Profile sum = profile;
  UPTIER_FUZZ_CHECK(merge(sum, profile).dropped.empty());
  UPTIER_FUZZ_CHECK(scale(sum, 3, 7).ok());
  trim(sum, 1);
  for (const auto& [key, method] : sum.methods) UPTIER_FUZZ_CHECK(method.check().ok());
  for (const auto& [key, body] : sum.inlined) UPTIER_FUZZ_CHECK(body.check(key).ok());
}

void feed(const std::string& input) {
  const Result<Profile> profile = parse_profile(input);
  if (!profile) {
    UPTIER_FUZZ_CHECK(!profile.error().message.empty());
    return;
  }
  const std::string text = to_text(*profile);
  const Result<Profile> again = parse_profile(text);
  UPTIER_FUZZ_CHECK(again.ok());
  UPTIER_FUZZ_CHECK(*again == *profile);
  UPTIER_FUZZ_CHECK(to_text(*again) == text);
  check_estimates(*profile);
  check_arithmetic(*profile);
}

}  // namespace uptier::fuzz
