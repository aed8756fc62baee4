// The readers of rows and of llvm-text: accepted input gives a well-formed profile, and writing and
// reading that profile gives the same.
#include "profile/formats/export.h"
#include "profile/formats/llvm_text.h"
#include "profile/formats/tsv.h"
#include "tests/fuzz/fuzz.h"
#include "tests/support/trace_samples.h"

namespace uptier::fuzz {

std::vector<std::string> seeds() {
  std::vector<std::string> texts;
  test::Generator generator(7);
  for (int i = 0; i < 4; ++i) {
    ProfileInfo info;
    info.host = "h\t";
    info.runs = 1;
    info.uploads = {{1, ~uint64_t{0}}};
    const Profile p = generator.profile();
    CallProfile calls;
    calls.shapes[{1, 2}] = {3, {{2, 2}, {}}, {{AnchorKind::kProbe, ~uint64_t{0}, 1, 2}}};
    calls.graph[{{1, 2}, {3, 4}}] = 5;
    calls.first[{1, 2}] = {0, 1000};
    calls.time.add({{TimePlace::kMethod, {1, 2}}, {TimePlace::kHost, {}}}, 2, 1000);
    texts.push_back(profile::to_tsv(p, info, calls));
    texts.push_back(profile::to_llvm_text(p));
  }
  texts.push_back(profile::to_tsv({}, {}));
  texts.push_back(
      "# IR level Instrumentation Flag\n:ir\nf\n# Func Hash:\n1\n2\n3\n4\n\ng\n1\n0\n\n");
  for (const std::string& text : texts) {
    const bool llvm = profile::looks_like_llvm_text(text);
    UPTIER_FUZZ_CHECK(llvm || profile::profile_from_tsv(text).ok());
  }
  return texts;
}

void feed(const std::string& input) {
  if (const Result<ProfileFile> file = profile::profile_from_tsv(input)) {
    for (const auto& [key, m] : file->profile.methods) UPTIER_FUZZ_CHECK(m.check().ok());
    const Result<ProfileFile> again =
        profile::profile_from_tsv(profile::to_tsv(file->profile, file->info, file->calls));
    UPTIER_FUZZ_CHECK(again.ok());
    UPTIER_FUZZ_CHECK(again->profile == file->profile);
    UPTIER_FUZZ_CHECK(again->info == file->info);
    UPTIER_FUZZ_CHECK(again->calls == file->calls);
  } else {
    UPTIER_FUZZ_CHECK(!file.error().message.empty());
  }
  const Result<Profile> blocks = profile::profile_from_llvm_text(input);
  if (!blocks) return;
  for (const auto& [key, m] : blocks->methods) UPTIER_FUZZ_CHECK(m.check().ok());
}

}  // namespace uptier::fuzz
