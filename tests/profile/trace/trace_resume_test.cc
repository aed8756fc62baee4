// A trace that is damaged in the middle: intact parts are read, and damaged parts are reported.
#include <gtest/gtest.h>

#include <algorithm>

#include "profile/base/checksum.h"
#include "profile/trace/dump.h"
#include "profile/trace/read_trace.h"
#include "profile/upf/read.h"
#include "profile/upf/write.h"
#include "tests/support/trace_samples.h"
#include "uptier/profile_file.h"

namespace uptier::profile::trace_resume_test {
namespace {

using test::Generator;
using test::sample_events;
using test::write_trace;
using State = TraceReader::State;

std::vector<size_t> offsets_of(const Bytes& file) {
  std::vector<size_t> offsets = {0};
  while (offsets.back() < file.size()) {
    const auto length = load<uint64_t>(file, offsets.back() + 8);
    offsets.push_back(offsets.back() + kChunkHeader + length);
  }
  return offsets;
}

struct Resumed {
  std::vector<TraceEvent> events;
  State state;
  uint64_t damaged;
  std::vector<std::string> damages;
};

Resumed resume(ByteSpan file) {
  TraceReader reader(file, TraceReader::OnDamage::kResume);
  Resumed read;
  while (reader.next()) read.events.push_back(reader.event());
  read.state = reader.state();
  read.damaged = reader.damaged();
  read.damages = reader.damages();
  return read;
}

std::vector<TraceEvent> without(std::vector<TraceEvent> events, size_t record) {
  if (record >= 1 && record <= events.size()) {
    events.erase(events.begin() + static_cast<ptrdiff_t>(record) - 1);
  }
  return events;
}

TEST(TraceResume, one_damaged_record_costs_one_event) {
  const Bytes file = write_trace(sample_events());
  const std::vector<size_t> offsets = offsets_of(file);
  const size_t records = offsets.size() - 1;
  ASSERT_EQ(records, sample_events().size() + 2);
  for (size_t n = 0; n < records; ++n) {
    const size_t last = offsets[n + 1] - 1;
    for (const size_t byte : {offsets[n], offsets[n] + 4, offsets[n] + 8, offsets[n] + 14,
                              offsets[n] + 16, offsets[n] + 20, offsets[n] + 24, last}) {
      Bytes bad = file;
      bad[byte] ^= std::byte{0x11};
      const Resumed read = resume(bad);
      ASSERT_EQ(read.events, without(sample_events(), n)) << "record " << n << " byte " << byte;
      EXPECT_NE(read.damaged, 0u);
      ASSERT_FALSE(read.damages.empty());
      EXPECT_TRUE(read.damages[0].starts_with("offset " + std::to_string(offsets[n]) + ": "))
          << read.damages[0];
      // Without its end marker, the trace may have had more records.
      EXPECT_EQ(read.state, n + 1 == records ? State::kTruncated : State::kComplete) << n;
    }
  }
}

TEST(TraceResume, bytes_that_are_missing_or_too_many_cost_the_records_that_they_are_of) {
  const Bytes file = write_trace(sample_events());
  const std::vector<size_t> offsets = offsets_of(file);
  Generator generator(7);
  for (size_t n = 1; n + 2 < offsets.size(); ++n) {
    for (const size_t bytes : {1, 7, 16}) {
      const auto at = static_cast<ptrdiff_t>(offsets[n] + 20);
      Bytes less = file, more = file;
      less.erase(less.begin() + at, less.begin() + at + static_cast<ptrdiff_t>(bytes));
      more.insert(more.begin() + at, bytes, std::byte{7});
      for (const Bytes& bad : {less, more}) {
        const Resumed read = resume(bad);
        EXPECT_EQ(read.events, without(sample_events(), n)) << n;
        EXPECT_EQ(read.state, State::kComplete);
      }
    }
  }
}

TEST(TraceResume, a_record_that_comes_again_is_left_out_and_a_whole_trace_is_undamaged) {
  const Bytes file = write_trace(sample_events());
  const Resumed whole = resume(file);
  EXPECT_EQ(whole.events, sample_events());
  EXPECT_EQ(whole.damaged, 0u);
  EXPECT_EQ(whole.state, State::kComplete);
  const std::vector<size_t> offsets = offsets_of(file);
  for (size_t n = 1; n + 1 < offsets.size(); ++n) {
    Bytes twice = file;
    twice.insert(twice.begin() + static_cast<ptrdiff_t>(offsets[n + 1]),
                 file.begin() + static_cast<ptrdiff_t>(offsets[n]),
                 file.begin() + static_cast<ptrdiff_t>(offsets[n + 1]));
    EXPECT_EQ(resume(twice).events, sample_events()) << n;
    EXPECT_NE(resume(twice).damaged, 0u) << n;
  }
}

TEST(TraceResume, what_is_no_trace_is_corrupt_and_a_cut_one_is_cut) {
  Generator generator(3);
  Bytes noise(4096);
  for (std::byte& b : noise) b = static_cast<std::byte>(generator.below(256));
  EXPECT_EQ(resume(noise).state, State::kCorrupt);
  const Bytes file = write_trace(sample_events());
  for (size_t size = 0; size < file.size(); ++size) {
    const Resumed read = resume(ByteSpan(file).first(size));
    ASSERT_EQ(read.state, State::kTruncated) << size;
    EXPECT_EQ(read.damaged, 0u) << size;
  }
}

// A snapshot holds all counts since the start, so the last one decides, whatever is missing before.
TEST(TraceResume, a_profile_takes_nothing_that_its_flush_does_not_stand_for) {
  const Bytes file = write_trace(sample_events());
  const std::vector<size_t> offsets = offsets_of(file);
  const Result<TraceRead> whole = read_trace(file);
  ASSERT_TRUE(whole.ok());
  ASSERT_EQ(whole->trace.profile.methods.size(), 2u);
  EXPECT_EQ(whole->damaged, 0u);
  for (size_t n = 1; n + 2 < offsets.size(); ++n) {
    Bytes bad = file;
    bad[offsets[n + 1] - 1] ^= std::byte{1};
    const Result<TraceRead> read = read_trace(bad);
    ASSERT_TRUE(read.ok()) << n << ": " << read.error().message;
    EXPECT_NE(read->damaged, 0u) << n;
    EXPECT_EQ(read->warnings.size(), read->damaged) << n;
    for (const auto& [key, m] : read->trace.profile.methods) {
      const MethodProfile* same = whole->trace.profile.find(key);
      ASSERT_NE(same, nullptr);
      ASSERT_TRUE(m.check().ok());
      EXPECT_LE(m.calls, same->calls);
      for (size_t i = 0; i < m.counts.size(); ++i) EXPECT_LE(m.counts[i], same->counts[i]) << n;
    }
  }
}

TEST(TraceResume, a_dump_names_the_damage) {
  const Bytes file = write_trace(sample_events());
  const std::vector<size_t> offsets = offsets_of(file);
  Bytes bad = file;
  bad[offsets[3]] ^= std::byte{1};
  const std::string dump = dump_trace(bad);
  EXPECT_NE(dump.find("damaged: offset " + std::to_string(offsets[3]) + ": the magic is not IIDB"),
            std::string::npos)
      << dump;
  EXPECT_NE(dump.find("\nend events "), std::string::npos) << dump;
}

// A trace between segments is resumed after damage like a trace on its own.
TEST(TraceResume, a_trace_between_segments_stays_one) {
  const Bytes trace = write_trace(sample_events());
  const std::vector<size_t> offsets = offsets_of(trace);
  const Bytes segment = uptier::profile_to_file(Profile{}, ProfileInfo{});
  for (const size_t byte : {offsets[4], offsets[5] - 1}) {
    Bytes file = segment;
    file.insert(file.end(), trace.begin(), trace.end());
    file[segment.size() + byte] ^= std::byte{1};
    file.insert(file.end(), segment.begin(), segment.end());
    const UpfReader reader(file);
    ASSERT_EQ(reader.traces().size(), 1u) << byte;
    EXPECT_EQ(reader.traces()[0].size(), trace.size());
    EXPECT_EQ(reader.segments().size(), 2u);
    const Result<ProfileFile> read = profile_from_file(file);
    ASSERT_TRUE(read.ok());
    EXPECT_NE(read->skipped, 0u);
    EXPECT_FALSE(read->profile.methods.empty());
  }
}

// Each header claims the rest of the file as its content.
TEST(TraceResume, many_records_that_claim_everything_take_no_time) {
  Bytes file;
  constexpr size_t kRecords = 40'000;
  file.resize(kRecords * kRecordHeader);
  for (size_t i = 0; i < kRecords; ++i) {
    const std::span<std::byte> here = std::span(file).subspan(i * kRecordHeader);
    store<uint32_t>(here, 0, kTraceMagic);
    store<uint16_t>(here, 4, static_cast<uint16_t>(i == 0 ? 0x5500 : 0x5505));
    store<uint64_t>(here, 8, here.size() - kChunkHeader);
    store<uint32_t>(here, 20, static_cast<uint32_t>(i));
    store<uint32_t>(here, 16, header_checksum(here));
  }
  const Resumed read = resume(file);
  EXPECT_TRUE(read.events.empty());
  const UpfReader reader(file);
  EXPECT_TRUE(reader.traces().empty());
}

}  // namespace
}  // namespace uptier::profile::trace_resume_test
