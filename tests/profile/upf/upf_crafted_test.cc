// Hand-made files: every checksum is right, but the records' claims are false.
#include <gtest/gtest.h>

#include <array>

#include "profile/upf/read.h"
#include "profile/upf/write.h"
#include "test_paths.h"
#include "tests/fuzz/records.h"
#include "tests/support/golden.h"
#include "tests/support/tool_dir.h"
#include "uptier/profile_file.h"
#include "uptier/profile_query.h"

namespace uptier::upf_crafted_test {
namespace {

using profile::Bytes;
using profile::ByteSpan;
using profile::UpfReader;

constexpr std::array kCrafted = {"crash2min.upf", "seal0min.upf"};

std::string crafted(const std::string& name) {
  return std::string(UPTIER_SOURCE_DIR) + "/tests/fuzz/corpus/upf/" + name;
}

Bytes bytes_of(const std::string& text) {
  const ByteSpan bytes = std::as_bytes(std::span(text));
  return Bytes(bytes.begin(), bytes.end());
}

Bytes whole_file() {
  Profile p;
  for (uint32_t i = 0; i < 3; ++i) {
    MethodProfile m;
    m.key = {7, i};
    m.name = "f" + std::to_string(i);
    m.schema = Schema::block_schema(3, 5);
    m.counts.assign(3, i + 1);
    m.weigh(1);
    p.methods.emplace(m.key, std::move(m));
  }
  ProfileInfo info;
  info.runs = 1;
  info.time = 5;
  info.uploads = {{5, 5}};
  CallProfile calls;
  calls.graph[{{7, 0}, {7, 1}}] = 3;
  return profile_to_file(p, info, "a log", nullptr, &calls);
}

// Reads everything that a file can be asked for, from a copy of exactly its size, so that a
// sanitizer detects reads past the end.
ProfileFile read_all(const Bytes& bytes) {
  const Bytes file(bytes.begin(), bytes.end());
  UpfReader reader(file);
  for (const auto& segment : reader.segments()) {
    (void)reader.log(segment);
    (void)reader.timeline(segment);
    (void)reader.calls(segment);
    (void)reader.inlined(segment);
  }
  (void)query(file, kQueryStage, "0x0000000000000005", "block#1");
  Result<ProfileFile> read = profile_from_file(file);
  return read.ok() ? std::move(*read) : ProfileFile{};
}

TEST(UpfCrafted, what_claims_too_little_or_too_much_is_left_out_with_offset_and_rule) {
  for (const std::string name : kCrafted) {
    const Bytes file = bytes_of(test::slurp(crafted(name)));
    ASSERT_GT(file.size(), 100u);
    const ProfileFile read = read_all(file);
    ASSERT_FALSE(read.warnings.empty()) << name;
    EXPECT_TRUE(read.warnings.back().starts_with("offset ")) << read.warnings.back();
    EXPECT_NE(read.warnings.back().find("is not possible"), std::string::npos)
        << read.warnings.back();
  }
}

TEST(UpfCrafted, any_length_with_right_checksums_does_no_harm) {
  const Bytes whole = whole_file();
  const std::vector<fuzz::Record> records = fuzz::records_of(whole);
  ASSERT_GT(records.size(), 6u);
  for (const fuzz::Record& r : records) {
    const uint64_t rest = whole.size() - r.at - profile::kIdbHeader;
    for (const uint64_t length : {uint64_t{0},
                                  uint64_t{1},
                                  uint64_t{8},
                                  uint64_t{15},
                                  uint64_t{16},
                                  uint64_t{17},
                                  uint64_t{31},
                                  uint64_t{32},
                                  r.claimed - 16,
                                  r.claimed + 16,
                                  rest - 16,
                                  rest,
                                  rest + 1,
                                  rest + 16,
                                  uint64_t{profile::kMaxContent},
                                  uint64_t{profile::kMaxContent} + 16,
                                  ~uint64_t{0},
                                  ~uint64_t{0} - 15,
                                  ~uint64_t{0} - 16,
                                  ~uint64_t{0} - 31}) {
      Bytes file = whole;
      profile::store<uint64_t>(file, r.at + 8, length);
      fuzz::mend(std::span<std::byte>(file));
      const ProfileFile read = read_all(file);
      if (length == r.claimed) continue;
      const bool noticed = read.skipped != 0 || read.truncated || read.profile.methods.empty();
      const ProfileFile same = read_all(whole);
      EXPECT_TRUE(noticed || (read.profile == same.profile && read.calls == same.calls))
          << "record at " << r.at << " of " << length;
    }
  }
}

TEST(UpfCrafted, lengths_that_overflow_fit_nowhere) {
  for (const uint64_t content : {~uint64_t{0}, ~uint64_t{0} - 15, ~uint64_t{0} - 31}) {
    EXPECT_FALSE((profile::IdbHeader{0, 0, content}.fits(~uint64_t{0} - 32))) << content;
  }
  EXPECT_EQ((profile::IdbHeader{0, 0, 17}.size()), 48u);
}

class UpfCraftedTool : public test::ToolDir {};

TEST_F(UpfCraftedTool, every_reader_says_what_is_wrong_and_lives) {
  for (const std::string name : kCrafted) {
    for (const std::string words : {"profile show ", "profile check ", "profile top ",
                                    "profile merge -o out ", "profile export --format=csv "}) {
      const test::RunResult r = tool(words + crafted(name));
      EXPECT_LT(r.code, 100) << words << name << ": " << r.err;
      EXPECT_NE(r.err.find("is not possible"), std::string::npos) << words << name << r.err;
    }
    ASSERT_EQ(in_dir("cp " + crafted(name) + " used.upf; chmod 600 used.upf").code, 0);
    const test::RunResult ran = tool("run --profile used.upf " + test::wasm_path("nbody"));
    EXPECT_EQ(ran.out, test::expected_output("nbody")) << ran.err;
    EXPECT_EQ(ran.code, 0);
    EXPECT_NE(ran.err.find("used.upf: offset "), std::string::npos) << ran.err;
  }
}

TEST_F(UpfCraftedTool, unknown_chunks_are_no_damage_to_gates) {
  Bytes file = whole_file();
  profile::append_chunk(file, 0x7777, 3, Bytes(100));
  ASSERT_TRUE(profile::replace_file(path("later.upf"), file).ok());
  const test::RunResult check = tool("profile check later.upf");
  EXPECT_EQ(check.code, 0) << check.err;
  EXPECT_NE(check.out.find("whole"), std::string::npos) << check.out;
  EXPECT_NE(check.err.find("1 chunks or events of an unknown type"), std::string::npos)
      << check.err;
  const test::RunResult promote = tool("profile promote --min-samples 0 --to used.upf later.upf");
  EXPECT_EQ(promote.code, 0) << promote.out << promote.err;
}

}  // namespace
}  // namespace uptier::upf_crafted_test
