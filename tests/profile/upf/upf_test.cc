// Profile files: they round-trip, in any order, cut anywhere, and damaged anywhere.
#include <gtest/gtest.h>

#include <algorithm>

#include "profile/upf/profile_sum.h"
#include "profile/upf/write.h"
#include "test_paths.h"
#include "tests/support/program_runs.h"
#include "tests/support/trace_samples.h"
#include "uptier/profile_file.h"

namespace uptier::upf_test {
namespace {

using profile::Bytes;
using profile::UpfReader;
using test::Generator;

ProfileInfo info_of(uint64_t run) {
  ProfileInfo info;
  info.engine = "uptier 0.1.0";
  info.host = "here";
  info.schedule = "random";
  info.time = 1000 + run;
  info.runs = 1;
  info.weight = ProfileInfo::kRunWeight;
  info.interval = 16;
  info.modules = {1, 2 + run % 2};
  info.uploads = {{1000 + run, run}};
  return info;
}

Bytes file_of(const Profile& profile, uint64_t run = 1) {
  return profile_to_file(profile, info_of(run));
}

Bytes cat(Bytes a, const Bytes& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

ProfileFile read(const Bytes& file) {
  Result<ProfileFile> read = profile_from_file(file);
  EXPECT_TRUE(read.ok()) << read.error().message;
  return read.ok() ? std::move(*read) : ProfileFile{};
}

Profile merged(Profile a, const Profile& b) {
  merge(a, b);
  return a;
}

// A profile with everything in it, large enough for a part to be compressed.
Profile rich_profile() {
  Generator generator(77);
  Profile profile;
  while (profile.methods.size() < 5) profile = generator.profile();
  MethodProfile& large = profile.methods.begin()->second;
  large.schema = Schema::block_schema(900, 5);
  large.counts.assign(900, 7);
  large.tables.clear();
  large.weigh(3);
  return profile;
}

TEST(Upf, what_is_written_comes_back) {
  Generator generator(1);
  for (int round = 0; round < 500; ++round) {
    const Profile profile = generator.profile();
    const ProfileFile back = read(file_of(profile));
    ASSERT_EQ(back.profile, profile);
    ASSERT_EQ(back.info, info_of(1));
    ASSERT_FALSE(back.truncated);
    ASSERT_TRUE(back.warnings.empty()) << back.warnings.front();
  }
}

TEST(Upf, large_parts_are_compressed) {
  Profile profile;
  MethodProfile method;
  method.schema = Schema::block_schema(20000, 1);
  for (uint64_t i = 0; i < 20000; ++i) method.counts.push_back(i * i % 1000);
  method.weigh(1);
  method.time = 9;
  profile.methods.emplace(method.key, method);
  const Bytes file = file_of(profile);
  EXPECT_LT(file.size(), 20000u * 4);
  EXPECT_EQ(read(file).profile, profile);
}

TEST(Upf, empty_file_is_an_empty_profile) { EXPECT_EQ(read({}).profile, Profile{}); }

TEST(Upf, concatenated_files_are_the_sum) {
  Generator generator(2);
  for (int round = 0; round < 300; ++round) {
    const Profile a = generator.profile(), b = generator.profile(), c = generator.profile();
    const Bytes all = cat(cat(file_of(a, 1), file_of(b, 2)), file_of(c, 3));
    const ProfileFile back = read(all);
    ASSERT_EQ(back.profile, merged(merged(a, b), c));
    ASSERT_EQ(back.info.runs, 3u);
    ASSERT_EQ(back.info.uploads.size(), 3u);
  }
}

TEST(Upf, sum_does_not_depend_on_the_order_of_files) {
  Generator generator(3);
  std::vector<Bytes> files;
  for (uint64_t i = 0; i < 8; ++i) files.push_back(file_of(generator.profile(), i));
  const auto sum = [&files] {
    Bytes all;
    for (const Bytes& file : files) all = cat(std::move(all), file);
    return read(all);
  };
  const ProfileFile first = sum();
  std::mt19937 shuffle(5);
  for (int round = 0; round < 20; ++round) {
    std::ranges::shuffle(files, shuffle);
    const ProfileFile again = sum();
    ASSERT_EQ(again.profile, first.profile);
    ASSERT_EQ(again.info, first.info);
  }
}

TEST(Upf, run_is_counted_once) {
  Generator generator(4);
  const Profile a = generator.profile(), b = generator.profile();
  const Bytes one = file_of(a, 1), two = file_of(b, 2);
  EXPECT_EQ(read(cat(one, one)).profile, a);
  const ProfileFile both = read(cat(one, two));
  const Bytes sum = profile_to_file(both.profile, both.info);
  EXPECT_EQ(read(cat(sum, one)).profile, both.profile);
  EXPECT_EQ(read(cat(two, sum)).profile, both.profile);
  EXPECT_EQ(read(cat(sum, sum)).info, both.info);
  // Runs 1 and 2, and runs 2 and 3: no sum of these two files can be right.
  const ProfileFile others = read(cat(two, file_of(a, 3)));
  const ProfileFile mixed = read(cat(sum, profile_to_file(others.profile, others.info)));
  EXPECT_EQ(mixed.profile, both.profile);
  ASSERT_EQ(mixed.warnings.size(), 1u);
  EXPECT_NE(mixed.warnings[0].find("shares some runs"), std::string::npos);
}

TEST(Upf, sum_of_words_as_they_lie_in_files_is_the_sum_of_profiles) {
  Generator generator(5);
  for (int round = 0; round < 300; ++round) {
    Profile one, two, three;
    const Schema schema = Schema::block_schema(1 + generator.below(40), 9);
    for (Profile* p : {&one, &two, &three}) {
      MethodProfile m = generator.method({1, 1}, schema);
      m.time = 1 + generator.below(9);
      p->methods.emplace(m.key, m);
    }
    Profile expected = one;
    MergeReport report = merge(expected, two);
    report += merge(expected, three);
    const ProfileFile back = read(cat(cat(file_of(one, 1), file_of(two, 2)), file_of(three, 3)));
    ASSERT_EQ(back.profile, expected);
    ASSERT_EQ(back.report.saturated, report.saturated);
    ASSERT_EQ(back.report.merged, 2u);
  }
}

TEST(Upf, only_the_groups_that_are_asked_for_are_read) {
  const Profile profile = rich_profile();
  Bytes file = file_of(profile);
  UpfReader reader(file);
  ASSERT_EQ(reader.segments().size(), 1u);
  const UpfReader::Segment& segment = reader.segments()[0];
  ASSERT_GE(segment.groups.size(), 2u);
  // Damages one group: reading another group does not notice.
  const uint64_t damaged = segment.groups[0].offset;
  file[damaged + 60] ^= std::byte{1};
  UpfReader again(file);
  EXPECT_EQ(again.skipped(), 0u);
  uint32_t methods = 0;
  for (size_t i = 1; i < segment.groups.size(); ++i) {
    const std::string defining(segment.groups[i].key.substr(0, 17));
    again.read(again.segments()[0], again.segments()[0].groups[i],
               [&](const profile::MethodView& view, std::string_view) {
                 ++methods;
                 EXPECT_EQ(profile::group_key(profile.methods.at(view.key)).substr(0, 17),
                           defining);
               });
  }
  EXPECT_GT(methods, 0u);
  EXPECT_EQ(again.skipped(), 0u);
  const ProfileFile rest = read(file);
  EXPECT_EQ(rest.profile.methods.size(), methods);
  ASSERT_EQ(rest.warnings.size(), 1u);
  EXPECT_EQ(rest.warnings[0],
            "offset " + std::to_string(damaged) + ": the content checksum is wrong");
}

TEST(Upf, instruments_of_iree_are_those_of_the_host) {
  Profile profile;
  MethodProfile method;
  method.schema = test::kinds_schema();
  method.counts.assign(method.schema.words(), 3);
  method.weigh(1);
  profile.methods.emplace(method.key, method);
  const Bytes file = file_of(profile);
  UpfReader reader(file);
  ASSERT_EQ(reader.skipped(), 0u);
  std::vector<std::string> got;
  for (const profile::Instrument& i : reader.segments()[0].instruments) {
    got.push_back(std::string(i.type) + " " + std::string(i.scope_key) + " " +
                  std::to_string(i.payload.size() / 8));
    EXPECT_EQ(i.scope_hash, "0x000000000000cccc");
  }
  EXPECT_EQ(got, (std::vector<std::string>{
                     "iree.instrument.probe value#3 6", "iree.instrument.log log#4 2",
                     "iree.instrument.counter counter#5 1", "iree.instrument.range range#6 5",
                     "uptier.instrument.gauge gauge#7 1"}));
}

TEST(Upf, log_is_kept) {
  const Bytes file = profile_to_file(rich_profile(), info_of(1), std::string(10000, 'x') + "end");
  UpfReader reader(file);
  EXPECT_EQ(reader.log(reader.segments()[0]), std::string(10000, 'x') + "end");
}

TEST(Upf, chunks_of_an_unknown_type_are_passed_over_and_no_damage) {
  const Profile profile = rich_profile();
  Bytes other;
  profile::append_chunk(other, 0x7777, 3, Bytes(100));
  const ProfileFile back = read(cat(file_of(profile), other));
  EXPECT_EQ(back.profile, profile);
  EXPECT_EQ(back.unknown, 1u);
  EXPECT_EQ(back.skipped, 0u);
  EXPECT_TRUE(back.warnings.empty()) << back.warnings.front();
}

// A file in the old group format, with fixed fields instead of varints; one of its groups is
// packed.
TEST(Upf, groups_of_version_0_are_read) {
  const std::string bytes = test::slurp(UPTIER_SOURCE_DIR "/tests/golden/upf_groups_0.upf");
  ProfileFile back = [&] {
    const auto span = std::as_bytes(std::span(bytes));
    return read(Bytes(span.begin(), span.end()));
  }();
  // Otherwise, methods get the time of the run that writes the file.
  for (auto& [key, m] : back.profile.methods) m.time = UINT32_MAX;
  EXPECT_TRUE(back.warnings.empty());
  ASSERT_EQ(back.profile.methods.size(), 3u);
  const MethodProfile& main = back.profile.methods.at({0xa1, 3});
  EXPECT_EQ(main.name, "main");
  EXPECT_EQ(main.count(SlotKind::kBlock, 2), 400u);
  EXPECT_EQ(main.estimates[1], 1234567u);
  EXPECT_EQ(main.table(SlotKind::kCallTarget, 4)->at({0xa1, 4}), (TableEntry{40, 640}));
  EXPECT_EQ(main.table(SlotKind::kValue, 5)->size(), 2u);
  EXPECT_EQ(back.profile.methods.at({0xa1, 4}).counts[0], UINT64_MAX);
  const MethodProfile& large = back.profile.methods.at({0xc3, 1});
  for (uint64_t i = 0; i < 3000; ++i) ASSERT_EQ(large.counts[i], i * i % 997);
  // Together with the current format in one file.
  EXPECT_EQ(read(cat(file_of(back.profile, 3), file_of({}, 4))).profile, back.profile);
  Profile twice = back.profile;
  merge(twice, back.profile);
  const auto old = std::as_bytes(std::span(bytes));
  EXPECT_EQ(read(cat(Bytes(old.begin(), old.end()), file_of(back.profile, 3))).profile, twice);
}

// If code changed, a file keeps both versions, and the version of the later run counts: whatever
// the order, the grouping and the hashes.
TEST(Upf, code_of_the_latest_run_counts_and_the_other_is_kept) {
  const auto run = [](uint64_t cfg_hash, uint64_t count, uint64_t time) {
    Profile p;
    MethodProfile m;
    m.schema = Schema::block_schema(2, cfg_hash);
    m.counts = {count, 1};
    m.weigh(1);
    p.methods.emplace(m.key, m);
    ProfileInfo info;
    info.time = time;
    info.runs = 1;
    info.weight = ProfileInfo::kRunWeight;
    info.uploads = {{time, time}};
    return profile_to_file(p, info);
  };
  const Bytes older = run(9, 10, 100), newer = run(1, 20, 200), back = run(9, 5, 300);
  for (const Bytes& file : {cat(older, newer), cat(newer, older)}) {
    const ProfileFile two = read(file);
    EXPECT_EQ(two.profile.methods.begin()->second.counts, (std::vector<uint64_t>{20, 1}));
    EXPECT_EQ(two.profile.other_code.begin()->second.counts, (std::vector<uint64_t>{10, 1}));
    EXPECT_EQ(two.report.other_code, 1u);
    EXPECT_TRUE(two.report.dropped.empty());
    // After writing, reading, and going back to the earlier code, nothing is lost.
    const Bytes sum = profile_to_file(two);
    EXPECT_EQ(read(sum).profile, two.profile);
    for (const Bytes& all : {cat(sum, back), cat(back, sum)}) {
      const ProfileFile three = read(all);
      EXPECT_EQ(three.profile.methods.begin()->second.counts, (std::vector<uint64_t>{15, 2}));
      EXPECT_EQ(three.profile.other_code.begin()->second.counts, (std::vector<uint64_t>{20, 1}));
    }
  }
}

// If the run of some code was lost, its date is unknown; a file that it is merged into later must
// not date it.
TEST(Upf, what_has_no_date_stays_without_one) {
  const auto method = [](uint32_t function, uint64_t cfg_hash, uint64_t time) {
    MethodProfile m;
    m.key = {1, function};
    m.schema = Schema::block_schema(1, cfg_hash);
    m.counts = {7};
    m.weigh(1);
    m.time = time;
    return m;
  };
  Profile sum;
  sum.methods.emplace(MethodKey{1, 1}, method(1, 5, 0));
  sum.methods.emplace(MethodKey{1, 2}, method(2, 5, 1001));
  const Bytes file = file_of(sum, 1000);
  EXPECT_EQ(read(file).profile, sum);
  // So code of a run with a known date counts as later, although the file with undated code is
  // younger.
  Profile known;
  known.methods.emplace(MethodKey{1, 1}, method(1, 4, 900));
  const Profile both = read(cat(file, file_of(known, 0))).profile;
  EXPECT_EQ(both.methods.at({1, 1}).schema.cfg_hash, 4u);
  EXPECT_EQ(both.other_code.at({{1, 1}, 5}).time, 0u);
  // A run's own profile has no dates: everything in it is of that run.
  for (auto& [key, m] : sum.methods) m.time = 0;
  for (const auto& [key, m] : read(file_of(sum, 3)).profile.methods) EXPECT_EQ(m.time, 1003u);
}

// A trace has the same container format: a live process appends its flushes to a file.
TEST(Upf, traces_between_segments_are_runs) {
  Generator generator(31);
  const Profile profile = generator.profile();
  const Bytes trace = test::write_trace(test::sample_events());
  const Result<TraceProfile> alone = profile_from_trace(trace);
  ASSERT_TRUE(alone.ok());
  const Profile both = merged(profile, alone->profile);
  ProfileFile back = read(cat(file_of(profile), trace));
  EXPECT_EQ(back.profile, both);
  EXPECT_EQ(back.info.runs, 2u);
  EXPECT_TRUE(back.warnings.empty());
  EXPECT_EQ(read(cat(trace, file_of(profile))).profile, both);
  EXPECT_EQ(read(cat(cat(trace, file_of(profile)), trace)).profile, both);  // the same run
  // A trace that is still being written: its complete events are read, wherever it is in the file.
  for (size_t size = trace.size() / 2; size < trace.size(); size += 16) {
    const Bytes cut(trace.begin(), trace.begin() + static_cast<ptrdiff_t>(size));
    const Result<TraceProfile> part = profile_from_trace(cut);
    if (!part.ok()) continue;
    ASSERT_EQ(read(cat(file_of(profile), cut)).profile, merged(profile, part->profile)) << size;
    ASSERT_EQ(read(cat(cut, file_of(profile))).profile, merged(profile, part->profile)) << size;
  }
}

// Tests whether a profile is part of another: its methods are unchanged, and there are no others.
bool is_part(const Profile& part, const Profile& whole) {
  return std::ranges::all_of(part.methods, [&](const auto& item) {
    const MethodProfile* method = whole.find(item.first);
    if (method == nullptr) return false;
    MethodProfile named = item.second;
    named.name = method->name;  // names are lost with the string table
    return named == *method;
  });
}

TEST(Upf, cut_at_every_byte_yields_what_precedes) {
  const Profile profile = rich_profile();
  const Bytes file = file_of(profile);
  size_t last = 0;
  for (size_t size = 1; size < file.size(); ++size) {
    const Bytes cut(file.begin(), file.begin() + static_cast<ptrdiff_t>(size));
    const Result<ProfileFile> back = profile_from_file(cut);
    if (!back.ok()) {
      EXPECT_LT(size, 48u);
      continue;
    }
    ASSERT_TRUE(back->truncated) << size;
    ASSERT_TRUE(is_part(back->profile, profile)) << size;
    ASSERT_GE(back->profile.methods.size(), last) << size;
    last = back->profile.methods.size();
  }
  EXPECT_EQ(last, profile.methods.size());
}

TEST(Upf, no_flipped_bit_changes_a_profile_silently) {
  const Profile profile = rich_profile();
  const Bytes file = file_of(profile);
  size_t refused = 0, warned = 0;
  // Flips every bit of the first records, then one bit of each byte.
  for (size_t bit = 0; bit < file.size() * 8; bit += bit < 4096 ? 1 : 9) {
    Bytes damaged = file;
    damaged[bit / 8] ^= std::byte{1} << (bit % 8);
    const Result<ProfileFile> back = profile_from_file(damaged);
    if (!back.ok()) {
      ++refused;
      continue;
    }
    ASSERT_TRUE(is_part(back->profile, profile)) << "byte " << bit / 8;
    const bool told = back->skipped != 0 || back->truncated;
    ASSERT_TRUE(told) << "byte " << bit / 8;
    ++warned;
  }
  EXPECT_GT(warned, refused);
}

TEST(Upf, lengths_of_four_gib_are_not_believed) {
  const Profile profile = rich_profile();
  const Bytes file = file_of(profile);
  for (size_t at = 0; at + 16 <= file.size(); at += 8) {
    for (const uint64_t claim :
         {uint64_t{0xfffffff0}, ~uint64_t{0}, ~uint64_t{15}, uint64_t{1} << 62}) {
      Bytes damaged = file;
      std::memcpy(&damaged[at], &claim, sizeof claim);
      if (damaged == file) continue;
      const Result<ProfileFile> back = profile_from_file(damaged);
      if (!back.ok()) continue;
      ASSERT_TRUE(is_part(back->profile, profile)) << at;
      ASSERT_TRUE(back->skipped != 0 || back->truncated) << at;
    }
  }
}

TEST(Upf, damage_in_one_segment_leaves_the_others) {
  const Profile profile = rich_profile();
  const Bytes one = file_of(profile, 1);
  Generator generator(9);
  for (int round = 0; round < 300; ++round) {
    Bytes damaged = one;
    for (int i = 0; i < 4; ++i) damaged[generator.below(damaged.size())] ^= std::byte{0x41};
    const size_t gone = 16 * generator.below(4);
    damaged.erase(damaged.begin() + 64, damaged.begin() + 64 + static_cast<ptrdiff_t>(gone));
    const ProfileFile back = read(cat(damaged, file_of(profile, 2)));
    ASSERT_EQ(back.profile.methods.size(), profile.methods.size());
  }
}

TEST(Upf, what_is_no_profile_is_refused) {
  for (const std::string& text :
       {std::string("hello"), std::string(4096, 'x'), std::string("IIDB")}) {
    const auto bytes = std::as_bytes(std::span(text));
    const auto back = profile_from_file(bytes);
    ASSERT_FALSE(back.ok());
    EXPECT_EQ(back.error().code, ErrorCode::kCorruptInput);
  }
  EXPECT_FALSE(looks_like_profile(test::write_trace(test::sample_events())));
}

TEST(Upf, list_of_runs_is_bounded_and_says_so) {
  ProfileInfo all;
  for (uint64_t i = 0; i < 3000; ++i) all += info_of(i);
  EXPECT_EQ(all.uploads.size(), ProfileInfo::kMaxUploads);
  EXPECT_EQ(all.forgotten, 3000 - ProfileInfo::kMaxUploads);
  EXPECT_EQ(all.uploads.back(), (UploadId{3999, 2999}));
  EXPECT_EQ(read(profile_to_file({}, all)).info, all);
}

}  // namespace
}  // namespace uptier::upf_test
