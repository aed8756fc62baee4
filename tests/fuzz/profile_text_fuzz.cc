// The text form of profiles: what is accepted prints and reads back to an equal profile.
#include "tests/fuzz/fuzz.h"
#include "uptier/profile.h"

namespace uptier::fuzz {

std::vector<std::string> seeds() {
  const std::vector<std::string> texts = {
      "uptier-profile 1\n",
      "uptier-profile 1\nmethod 0x00000000000000a1 7 \"fib\" {\n  calls 1024\n  sampled 64\n"
      "  interval 16\n  cfg 0x0123456789abcdef\n  block 1 64    # kind, site, count\n"
      "  block 2 18446744073709551615\n}\n",
      "uptier-profile 1\nmethod 0x0000000000000001 0 \"a\\\"b\" {\n  calls 0\n  sampled 0\n"
      "  interval 1\n  cfg 0x0000000000000000\n}\nmethod 0x0000000000000001 1 \"\" {\n  calls 1\n"
      "  sampled 1\n  interval 1\n  cfg 0x0000000000000001\n  counter 3 5\n}\n",
  };
  for (const std::string& text : texts) UPTIER_FUZZ_CHECK(parse_profile(text).ok());
  return texts;
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
  UPTIER_FUZZ_CHECK(to_text(*again) == text);
}

}  // namespace uptier::fuzz
