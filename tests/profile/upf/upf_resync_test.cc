// A file may be cut at any byte and followed by other files: all of those are found.
#include <gtest/gtest.h>

#include <algorithm>

#include "profile/upf/read.h"
#include "profile/upf/write.h"
#include "tests/support/trace_samples.h"
#include "uptier/profile_file.h"

namespace uptier::upf_resync_test {
namespace {

using profile::Bytes;
using profile::UpfReader;
using test::Generator;

ProfileInfo info_of(uint64_t run) {
  ProfileInfo info;
  info.time = 1000 + run;
  info.runs = 1;
  info.weight = ProfileInfo::kRunWeight;
  info.uploads = {{1000 + run, run}};
  return info;
}

// Methods whose keys tell their file, in small and large groups.
Profile profile_of(uint64_t run, uint32_t blocks) {
  Profile p;
  for (uint32_t i = 0; i < 6; ++i) {
    MethodProfile m;
    m.key = {100 * run + i / 2, i};
    m.name = "f" + std::to_string(i);
    m.schema = i % 2 == 0 ? Schema::block_schema(blocks, 5) : test::kinds_schema();
    m.counts.assign(m.schema.words(), run + i);
    m.weigh(1);
    m.time = info_of(run).time;  // all methods of a file have the same time
    p.methods.emplace(m.key, std::move(m));
  }
  return p;
}

CallProfile calls_of(uint64_t run) {
  CallProfile calls;
  calls.graph[{{100 * run, 1}, {100 * run, 0}}] = 7;
  return calls;
}

Bytes file_of(uint64_t run, uint32_t blocks) {
  const CallProfile calls = calls_of(run);
  return profile_to_file(profile_of(run, blocks), info_of(run), "a log", nullptr, &calls);
}

Bytes behind(const Bytes& a, size_t size, const Bytes& b) {
  Bytes file(a.begin(), a.begin() + static_cast<ptrdiff_t>(size));
  file.insert(file.end(), b.begin(), b.end());
  return file;
}

// Checks that the methods of a run are as they were written, except names and times that were cut
// off; with `all`, every method must be there.
void expect_run(const ProfileFile& file, uint64_t run, uint32_t blocks, bool all, size_t size) {
  size_t found = 0;
  for (auto& [key, method] : profile_of(run, blocks).methods) {
    const MethodProfile* there = file.profile.find(key);
    if (there == nullptr) continue;
    MethodProfile named = *there;
    if (!all) named.name = method.name;
    if (!all && named.time == 0) named.time = method.time;
    ASSERT_EQ(named, method) << "cut at " << size;
    ++found;
  }
  if (!all) return;
  ASSERT_EQ(found, 6u) << "cut at " << size;
  ASSERT_EQ(file.calls.graph.count(calls_of(run).graph.begin()->first), 1u) << "cut at " << size;
  ASSERT_EQ(file.calls.graph.at(calls_of(run).graph.begin()->first), 7u) << "cut at " << size;
}

TEST(UpfResync, whole_file_behind_one_that_is_cut_anywhere) {
  const std::pair<uint32_t, uint32_t> sizes[] = {{20, 20}, {900, 3}, {3, 900}};
  for (const auto& [first, second] : sizes) {
    const Bytes a = file_of(1, first), b = file_of(2, second);
    for (size_t size = 1; size < a.size(); ++size) {
      const Result<ProfileFile> back = profile_from_file(behind(a, size, b));
      ASSERT_TRUE(back.ok()) << size << ": " << back.error().message;
      ASSERT_TRUE(back->truncated || back->skipped != 0) << size;
      expect_run(*back, 2, second, true, size);
      expect_run(*back, 1, first, false, size);
      ASSERT_EQ(std::ranges::count(back->info.uploads, UploadId{1002, 2}), 1) << size;
    }
  }
}

TEST(UpfResync, many_cut_files_in_a_row) {
  Generator generator(7);
  for (int round = 0; round < 200; ++round) {
    Bytes all;
    std::vector<uint64_t> whole;
    for (uint64_t run = 1; run <= 12; ++run) {
      const Bytes one = file_of(run, 1 + static_cast<uint32_t>(generator.below(60)));
      const bool cut = run != 12 && generator.below(2) == 0;
      const size_t size = cut ? 1 + generator.below(one.size() - 1) : one.size();
      all.insert(all.end(), one.begin(), one.begin() + static_cast<ptrdiff_t>(size));
      if (!cut) whole.push_back(run);
    }
    const Result<ProfileFile> back = profile_from_file(all);
    ASSERT_TRUE(back.ok());
    for (const uint64_t run : whole) {
      for (uint32_t i = 0; i < 6; ++i) {
        ASSERT_NE(back->profile.find({100 * run + i / 2, i}), nullptr) << "run " << run;
      }
    }
  }
}

// A trace is found after a cut file, and a file after a cut trace.
TEST(UpfResync, traces_and_files_in_turn) {
  const Bytes file = file_of(1, 20), trace = test::write_trace(test::sample_events());
  const Result<TraceProfile> traced = profile_from_trace(trace);
  ASSERT_TRUE(traced.ok());
  for (size_t size = 1; size < file.size(); ++size) {
    const Result<ProfileFile> back = profile_from_file(behind(file, size, trace));
    ASSERT_TRUE(back.ok()) << size;
    for (const auto& [key, m] : traced->profile.methods) {
      const MethodProfile* there = back->profile.find(key);
      ASSERT_NE(there, nullptr) << size;
      ASSERT_EQ(there->counts, m.counts) << size;
    }
  }
  for (size_t size = 1; size < trace.size(); ++size) {
    const Result<ProfileFile> back = profile_from_file(behind(trace, size, file));
    ASSERT_TRUE(back.ok()) << size;
    expect_run(*back, 1, 20, true, size);
  }
}

// A cut group swallows a whole number of the records after it, so that the next record has exactly
// the expected sequence number.
TEST(UpfResync, what_fits_by_chance_is_found_out_by_the_index) {
  const Bytes b = file_of(2, 3);
  // The records of b before its fifth, which a group of a, the fourth record there, must swallow.
  const UpfReader small(b);
  const UpfReader::Segment& segment = small.segments().at(0);
  ASSERT_EQ(segment.groups.size(), 3u);
  const size_t swallowed = segment.groups[1].offset;
  const Bytes a = file_of(1, 2000);
  const UpfReader large(a);
  const UpfReader::Group& group = large.segments().at(0).groups.at(0);
  ASSERT_GT(group.record.size(), swallowed + 32);
  const size_t size = group.offset + group.record.size() - swallowed;
  const Result<ProfileFile> back = profile_from_file(behind(a, size, b));
  ASSERT_TRUE(back.ok());
  EXPECT_TRUE(back->truncated);
  expect_run(*back, 2, 3, true, size);
  expect_run(*back, 1, 2000, false, size);
  EXPECT_EQ(back->calls.graph.size(), 1u);
}

}  // namespace
}  // namespace uptier::upf_resync_test
