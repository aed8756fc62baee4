// A sum made range by range equals the sum made at once.
#include <gtest/gtest.h>

#include <deque>
#include <numeric>

#include "profile/algebra/algebra.h"
#include "profile/base/varint.h"
#include "profile/trace/trace_file.h"
#include "profile/upf/profile_sum.h"
#include "profile/upf/segment_writer.h"
#include "profile/upf/write.h"
#include "test_paths.h"
#include "tests/support/tool_dir.h"
#include "tests/support/trace_samples.h"

namespace uptier::profile::merge_ranges_test {
namespace {

using test::Generator;

struct Input {
  Bytes file;
  Weight weight;
  std::vector<GroupKeys> keys;
};

struct Summed {
  Profile profile;
  ProfileInfo info;
  CallProfile calls;
  ForeignTables foreign;
  uint64_t saturated = 0;
  size_t dropped = 0;
  size_t ranges = 0;
};

void add(ProfileSum& sum, Input& input) {
  UpfReader reader(input.file);
  size_t groups = 0;
  for (const auto& segment : reader.segments()) groups += segment.groups.size();
  input.keys.resize(groups);
  std::span<GroupKeys> keys = input.keys;
  for (const auto& segment : reader.segments()) {
    sum.add(reader, segment, input.weight, keys.first(segment.groups.size()));
    keys = keys.subspan(segment.groups.size());
  }
  for (const ByteSpan trace : reader.traces()) sum.add_trace(reader, trace, input.weight);
}

Summed at_once(std::vector<Input> inputs) {
  ProfileSum sum;
  for (Input& input : inputs) add(sum, input);
  Summed all{{},
             sum.info(),
             sum.calls(),
             sum.foreign(),
             sum.report().saturated,
             sum.report().dropped.size()};
  all.profile = sum.take();
  return all;
}

// Returns nothing if the files do not allow ranges. The inputs are distributed over `sums` sums.
std::optional<Summed> by_ranges(std::vector<Input> inputs, uint64_t bytes, size_t sums = 1) {
  Summed all;
  for (std::optional<MethodKey> from = MethodKey{}; from; ++all.ranges) {
    std::deque<ProfileSum> each(sums);
    for (ProfileSum& sum : each) sum.limit(*from, bytes);
    for (size_t i = 0; i < inputs.size(); ++i) add(each[i % sums], inputs[i]);
    ProfileSum& sum = each[0];
    for (size_t i = 1; i < sums; ++i) sum.absorb(each[i]);
    if (sum.refuses_ranges()) return std::nullopt;
    all.saturated += sum.report().saturated;
    all.dropped += sum.report().dropped.size();
    if (all.ranges == 0) {
      all.info = sum.info();
      all.calls = sum.calls();
      all.foreign = sum.foreign();
    }
    from = sum.end();
    sum.drain([&](MethodProfile m) {
      const bool ascends =
          all.profile.methods.empty() || all.profile.methods.rbegin()->first <= m.key;
      EXPECT_TRUE(ascends);
      EXPECT_TRUE(!from || m.key < *from);
      Profile one;
      one.methods.emplace(m.key, std::move(m));
      EXPECT_EQ(merge(all.profile, std::move(one)).merged, 0u);
    });
    if (all.ranges == 0) all.profile.inlined = sum.take().inlined;
  }
  return all;
}

void expect_same(const std::vector<Input>& inputs, const char* what,
                 const std::vector<uint64_t>& limits = {1, 1500, 3000, 10'000, 1'000'000},
                 size_t most_sums = 3) {
  const Summed once = at_once(inputs);
  size_t most = 0;
  for (const uint64_t bytes : limits) {
    for (size_t sums = 1; sums <= most_sums; ++sums) {
      const std::optional<Summed> ranges = by_ranges(inputs, bytes, sums);
      ASSERT_TRUE(ranges) << what;
      most = std::max(most, ranges->ranges);
      ASSERT_EQ(ranges->profile, once.profile) << what << " " << bytes << " bytes, " << sums;
      EXPECT_EQ(ranges->info, once.info);
      EXPECT_EQ(ranges->calls, once.calls);
      EXPECT_EQ(ranges->foreign, once.foreign);
      if (sums != 1) continue;  // saturated and dropped counts depend on the order of merging
      EXPECT_EQ(ranges->saturated, once.saturated) << what << " " << bytes;
      EXPECT_EQ(ranges->dropped, once.dropped) << what << " " << bytes;
    }
  }
  EXPECT_EQ(most, std::max<size_t>(1, once.profile.methods.size())) << "of one byte each";
}

// A profile of three modules, with methods that have counts only, the common case, and others.
Profile some_profile(Generator& generator) {
  Profile p = generator.profile();
  for (uint32_t f = 0; f < 20; ++f) {
    if (generator.chance(4)) continue;
    const MethodKey key{f % 3, 10 + f};
    Schema schema = Schema::block_schema(1 + f, generator.chance(8) ? 2 : 1);
    if (f % 5 == 0) schema.add(SlotKind::kCounter, 1);
    p.methods.emplace(key, generator.method(key, std::move(schema)));
    if (generator.chance(2)) p.methods.at(key).estimates = p.methods.at(key).counts;
  }
  return p;
}

Input some_file(Generator& generator, uint64_t n) {
  ProfileFile file;
  file.profile = some_profile(generator);
  file.info.runs = 1;
  file.info.weight = ProfileInfo::kRunWeight;
  file.info.time = n;
  file.info.uploads = {{n, n}};
  for (const auto& [key, m] : file.profile.methods) {
    file.calls.graph[{key, {1, 1}}] = generator.count();
    file.calls.first[key] = {n, CallProfile::kOneRun};
  }
  ForeignInstrument counter{"iree.instrument.counter", "flow", "ab", "k", {}, Bytes(8)};
  counter.payload[0] = std::byte{3};
  file.foreign.add(counter);
  return {profile_to_file(file), {}, {}};
}

Bytes cat(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

std::vector<Input> some_files(Generator& generator, size_t count) {
  std::vector<Input> inputs;
  for (size_t i = 0; i < count; ++i) inputs.push_back(some_file(generator, i));
  return inputs;
}

TEST(MergeRanges, are_the_sum_at_once) {
  Generator generator(51);
  for (int round = 0; round < 20; ++round) {
    expect_same(some_files(generator, 1 + generator.below(5)), "plain");
  }
}

TEST(MergeRanges, are_the_weighted_sum) {
  Generator generator(52);
  for (int round = 0; round < 10; ++round) {
    std::vector<Input> inputs = some_files(generator, 4);
    for (Input& input : inputs) input.weight = {generator.below(5), 1 + generator.below(3)};
    expect_same(inputs, "weighted");
  }
}

TEST(MergeRanges, are_the_sum_of_whatever_a_file_holds) {
  Generator generator(53);
  const std::string bytes = test::slurp(UPTIER_SOURCE_DIR "/tests/golden/upf_groups_0.upf");
  const auto old = std::as_bytes(std::span(bytes));
  for (int round = 0; round < 10; ++round) {
    std::vector<Input> inputs = some_files(generator, 3);
    inputs[0].file = cat(inputs[0].file, some_file(generator, 7).file);
    inputs[1].file = cat(inputs[1].file, test::write_trace(test::sample_events()));
    inputs[2].file = cat(Bytes(old.begin(), old.end()), inputs[2].file);
    expect_same(inputs, "several segments, a trace, and groups of version 0");
  }
}

TEST(MergeRanges, are_the_sum_of_what_is_whole) {
  Generator generator(54);
  for (int round = 0; round < 30; ++round) {
    std::vector<Input> inputs = some_files(generator, 3);
    Bytes& cut = inputs[generator.below(3)].file;
    cut.resize(generator.below(cut.size()));
    Bytes& damaged = inputs[generator.below(3)].file;
    if (!damaged.empty()) damaged[generator.below(damaged.size())] ^= std::byte{4};
    expect_same(inputs, "cut and damaged");
  }
}

// A file of one group with its methods in this order.
Bytes file_of_order(std::span<const uint32_t> functions, const std::string& name = "m") {
  SegmentWriter writer(0);
  for (const uint32_t f : functions) {
    MethodProfile m;
    m.key = {1, f};
    m.name = name;
    m.schema = Schema::block_schema(3, 7);
    m.counts = {f, 1, 2};
    m.weigh(1);
    writer.add(m);
  }
  return writer.finish({}, {}, {}, nullptr, {}, nullptr).joined();
}

TEST(MergeRanges, are_refused_where_they_would_be_another_sum) {
  const std::vector<uint32_t> up = {1, 2, 3, 4, 5, 6}, down = {6, 5, 4, 3, 2, 1};
  EXPECT_TRUE(by_ranges({{file_of_order(up), {}, {}}}, 1));
  EXPECT_FALSE(by_ranges({{file_of_order(down), {}, {}}}, 1));
  EXPECT_FALSE(by_ranges({{file_of_order(up), {}, {}}, {file_of_order(down), {}, {}}}, 1));
  EXPECT_TRUE(by_ranges({{file_of_order(down), {}, {}}}, 1'000'000)) << "one range is no matter";
  std::vector<uint32_t> many(200);
  std::iota(many.begin(), many.end(), 0);
  const Bytes names = file_of_order(many, std::string(100'000, 'n'));
  EXPECT_FALSE(by_ranges({{names, {}, {}}}, 1)) << "names that are left out";
  EXPECT_TRUE(by_ranges({{file_of_order(many, "name"), {}, {}}}, 1));
}

// Sets undefined flags in a method of the only group; the checksums are right.
Bytes break_method(Bytes file, size_t number) {
  const UpfReader reader(file);
  const UpfReader::Group& group = reader.segments()[0].groups[0];
  const std::span<std::byte> record = std::span(file).subspan(group.offset, group.record.size());
  size_t at = kRecordHeader + 16 + 8;
  for (; number > 0; --number) at += head_of(1, ByteSpan(record).subspan(at))->size;
  VarintReader in(ByteSpan(record).subspan(at));
  for (int fields = 0; fields < 8; ++fields) (void)in.number();
  record[at + in.at()] = std::byte{2};
  seal_record(record);
  return file;
}

TEST(MergeRanges, end_where_a_group_is_broken) {
  const std::vector<uint32_t> all = {1, 2, 3, 4, 5, 6, 7, 8}, odd = {1, 3, 5, 7};
  for (size_t number = 0; number < all.size(); ++number) {
    const std::vector<Input> inputs = {{file_of_order(odd), {}, {}},
                                       {break_method(file_of_order(all), number), {}, {}}};
    expect_same(inputs, "broken", {1}, 1);
    EXPECT_EQ(at_once(inputs).profile.methods.contains({1, 8}), false);
  }
  // A range that meets the broken method before its end is known cannot tell what follows.
  EXPECT_FALSE(by_ranges({{break_method(file_of_order(all), 5), {}, {}}}, 1));
}

TEST(MergeRanges, hold_about_what_they_are_allowed) {
  std::vector<uint32_t> many(1000);
  std::iota(many.begin(), many.end(), 0);
  const std::vector<Input> inputs = {{file_of_order(many), {}, {}}};
  const std::optional<Summed> one = by_ranges(inputs, 1'000'000), ten = by_ranges(inputs, 55'000);
  const std::optional<Summed> bare = by_ranges(inputs, 580'000);  // 621 bytes per method, or 537
  ASSERT_TRUE(one && ten && bare);
  EXPECT_EQ(one->ranges, 1u);
  EXPECT_EQ(bare->ranges, 1u);
  EXPECT_GE(ten->ranges, 8u);
  EXPECT_LE(ten->ranges, 16u);
}

}  // namespace
}  // namespace uptier::profile::merge_ranges_test

namespace uptier::merge_ranges_test {
namespace {

// Sums of more than one range. A quorum of one needs the complete sum, and changes nothing here.
class MergeRangesTool : public test::ToolDir {
 protected:
  static constexpr uint32_t kMethods = 400, kBlocks = 400;

  MethodProfile method(test::Generator& generator, uint32_t f) const {
    MethodProfile m;
    m.key = {1 + f % 3, f};
    m.name = "method_" + std::to_string(f);
    m.schema = Schema::block_schema(kBlocks, 7);
    m.schema.add(SlotKind::kCallTarget, 1, 4);
    m.counts.resize(m.schema.words());
    for (uint64_t& c : m.counts) c = generator.chance(2) ? generator.below(1000) : 0;
    for (uint64_t callee = 0; callee < 1 + f % 7; ++callee) {
      m.tables[{SlotKind::kCallTarget, 1}][{1, callee}] = {1 + generator.below(9), 0};
    }
    m.weigh(2);
    m.calls = f;
    return m;
  }
  // A quorum drops every fourth method with kEmpty, and bodies without a root.
  enum class Holds { kInlined, kEmpty, kPlain };
  void write_some(const std::string& name, uint64_t seed, const std::string& host = "h",
                  Holds what = Holds::kInlined) {
    test::Generator generator(seed);
    ProfileFile file;
    for (uint32_t f = 0; f < kMethods; ++f) {
      if (generator.chance(5)) continue;
      MethodProfile m = method(generator, f);
      file.profile.methods.emplace(m.key, std::move(m));
    }
    if (what == Holds::kInlined) {
      file.profile.inlined = generator.inlined(profile::top(file.profile, 9));
    }
    for (auto& [key, m] : file.profile.methods) {
      if (what != Holds::kEmpty || key.function_index % 4 != 0) continue;
      m.counts.assign(m.counts.size(), 0);
      m.tables.clear();
      m.weigh(1);
      m.calls = 0;
    }
    file.info.host = host;
    file.info.runs = seed;
    file.info.weight = seed * ProfileInfo::kRunWeight;
    file.info.time = 86400 * seed;
    file.info.uploads = {{file.info.time, seed}};
    ASSERT_TRUE(profile::replace_file(path(name), profile_to_file(file)).ok());
  }
  std::string both(const std::string& words) {
    const test::RunResult ranges = tool("profile merge -o ranges.upf " + words);
    const test::RunResult once = tool("profile merge -o once.upf --quorum 1 " + words);
    EXPECT_EQ(ranges.code, once.code) << words << ranges.err;
    EXPECT_EQ(once.code, 0) << once.err;
    const std::string bytes = test::slurp(path("ranges.upf"));
    EXPECT_EQ(bytes == test::slurp(path("once.upf")), true) << words;
    return ranges.err;
  }
};

TEST_F(MergeRangesTool, writes_the_same_file_range_by_range) {
  for (uint64_t i = 1; i <= 5; ++i) {
    write_some(std::to_string(i) + ".upf", i, i < 3 ? "one" : "other");
  }
  const std::string all = "1.upf 2.upf 3.upf 4.upf 5.upf";
  for (const std::string words :
       {"", "--threads 2 ", "--half-life 1 ", "--trim 2 ", "--cap-per-host 3 ",
        "--threads 3 --half-life 2 --trim 1 --cap-per-host 2 "}) {
    both(words + all);
  }
  both("3@1.upf 0.25@2.upf 4.upf");
  write_some("empty1.upf", 6, "h", Holds::kEmpty);
  write_some("empty2.upf", 7, "h", Holds::kEmpty);
  both("--sparse empty1.upf empty2.upf");
  const test::RunResult out =
      in_dir(std::string(UPTIER_TOOL) + " profile merge -o - " + all + " > piped.upf && " +
             UPTIER_TOOL + " profile merge -o named-%H.upf " + all + " && cmp piped.upf" +
             " named-*.upf && " + UPTIER_TOOL + " profile check piped.upf");
  EXPECT_EQ(out.code, 0) << out.err;
}

TEST_F(MergeRangesTool, groups_wait_in_a_file_that_may_be_missing_or_full) {
  for (uint64_t i = 1; i <= 3; ++i) write_some(std::to_string(i) + ".upf", i);
  both("1.upf 2.upf 3.upf");
  std::filesystem::create_directory(path("tmp"));
  const std::string merge = std::string(UPTIER_TOOL) + " profile merge -o - 1.upf 2.upf 3.upf";
  const test::RunResult memory =
      in_dir("TMPDIR=/nowhere " + merge + " > piped.upf && cmp piped.upf ranges.upf");
  EXPECT_EQ(memory.code, 0) << memory.err;
  // A file may have 32 KiB; stdout is a pipe.
  const test::RunResult full = in_dir("{ trap '' XFSZ; ulimit -f 64; TMPDIR=tmp " + merge +
                                      " 2> err; echo $? > code; } | cat > cut");
  EXPECT_EQ(full.code, 0) << full.err;
  EXPECT_EQ(test::slurp(path("code")), "1\n");
  EXPECT_NE(test::slurp(path("err")).find("cannot write the file"), std::string::npos);
  EXPECT_TRUE(std::filesystem::is_empty(path("tmp")));
}

TEST_F(MergeRangesTool, counts_a_run_once_range_by_range) {
  for (uint64_t i = 1; i <= 3; ++i) write_some(std::to_string(i) + ".upf", i);
  both("1.upf 2.upf 3.upf");
  const std::string sum = test::slurp(path("ranges.upf"));
  in_dir("mv ranges.upf sum.upf");
  for (const char* words : {"sum.upf 1.upf 3.upf", "2.upf sum.upf", "sum.upf sum.upf"}) {
    EXPECT_NE(both(words).find("were already in other files"), std::string::npos);
    EXPECT_EQ(test::slurp(path("ranges.upf")) == sum, true) << words;
  }
  in_dir(std::string(UPTIER_TOOL) + " profile merge -o two.upf 1.upf 2.upf");
  in_dir(std::string(UPTIER_TOOL) + " profile merge -o others.upf 2.upf 3.upf");
  EXPECT_EQ(tool("profile merge -o no.upf two.upf others.upf").code, 1);
  both("--force two.upf others.upf");
}

TEST_F(MergeRangesTool, tells_what_is_wrong_once_however_many_ranges_there_are) {
  for (uint64_t i = 1; i <= 3; ++i) {
    write_some(std::to_string(i) + ".upf", i, "h", Holds::kPlain);
  }
  in_dir("cat 1.upf 2.upf > cat.upf; head -c 200000 3.upf > cut.upf");
  ASSERT_TRUE(
      profile::replace_file(path("a.trace"), test::write_trace(test::sample_events())).ok());
  in_dir(std::string(UPTIER_TOOL) + " profile export 2.upf --format=text -o text");
  std::string damaged = test::slurp(path("3.upf"));
  damaged[damaged.size() / 2] = static_cast<char>(damaged[damaged.size() / 2] ^ 1);
  write_text("damaged.upf", damaged);
  for (const char* words : {"cat.upf 3.upf", "cat.upf cut.upf", "1.upf a.trace 2.upf",
                            "1.upf text 3.upf", "damaged.upf 1.upf", "1.upf damaged.upf"}) {
    const test::RunResult once = tool("profile merge --quorum 1 -o x.upf " + std::string(words));
    const std::string quorum = once.err.substr(0, once.err.find("uptier: quorum of"));
    EXPECT_EQ(both(words), quorum) << words;
  }
}

}  // namespace
}  // namespace uptier::merge_ranges_test
