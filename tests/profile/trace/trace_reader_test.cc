#include <gtest/gtest.h>

#include "profile/trace/trace_file.h"
#include "tests/support/golden.h"
#include "tests/support/trace_samples.h"

namespace uptier::profile::trace_reader_test {
namespace {

using uptier::test::all_events;
using uptier::test::Generator;
using uptier::test::read_trace;
using uptier::test::write_trace;
using State = TraceReader::State;

struct Read {
  std::vector<TraceEvent> events;
  State state;
  std::string error;
  uint64_t skipped;
};

Read read_all(ByteSpan file) {
  TraceReader reader(file);
  Read read;
  while (reader.next()) read.events.push_back(reader.event());
  EXPECT_FALSE(reader.next()) << "the end is final";
  read.state = reader.state();
  read.skipped = reader.skipped();
  const bool failed = read.state == State::kTruncated || read.state == State::kCorrupt;
  if (failed) read.error = reader.error().message;
  return read;
}

bool is_prefix(const std::vector<TraceEvent>& part, const std::vector<TraceEvent>& whole) {
  return part.size() <= whole.size() && std::equal(part.begin(), part.end(), whole.begin());
}

// Returns the offset of each record, and the size of the file.
std::vector<size_t> record_offsets(ByteSpan file) {
  std::vector<size_t> offsets;
  size_t at = 0;
  for (; at < file.size(); at += kChunkHeader + load<uint64_t>(file, at + 8)) offsets.push_back(at);
  offsets.push_back(at);
  return offsets;
}

// A chunk of a foreign type.
Bytes foreign_chunk(uint16_t type, size_t content) {
  Bytes chunk(kChunkHeader + (content + 15) / 16 * 16);
  store<uint32_t>(chunk, 0, kTraceMagic);
  store<uint16_t>(chunk, 4, type);
  store<uint64_t>(chunk, 8, content);
  return chunk;
}

Bytes insert_at(Bytes file, size_t at, ByteSpan bytes) {
  file.insert(file.begin() + static_cast<int64_t>(at), bytes.begin(), bytes.end());
  return file;
}

// Overwrites a field of the record at `offsets[n]` and gives the record valid checksums.
template <typename T>
Bytes with_field(Bytes file, size_t n, size_t field, T value) {
  const std::vector<size_t> offsets = record_offsets(file);
  const auto record = std::span(file).subspan(offsets[n], offsets[n + 1] - offsets[n]);
  store<T>(record, field, value);
  seal_record(record);
  return file;
}

TEST(TraceReader, gives_back_what_was_written) {
  const Read read = read_all(write_trace(all_events()));
  EXPECT_EQ(read.state, State::kComplete);
  EXPECT_EQ(read.events, all_events());
}

TEST(TraceReader, records_are_aligned_chunks_with_magic_and_length) {
  const Bytes file = write_trace(all_events());
  const std::vector<size_t> offsets = record_offsets(file);
  EXPECT_EQ(offsets.size(), all_events().size() + 3);
  EXPECT_EQ(offsets.back(), file.size());
  for (const size_t offset : offsets) EXPECT_EQ(offset % 16, 0u);
  EXPECT_EQ(std::string(reinterpret_cast<const char*>(file.data()), 4), "IIDB");
}

TEST(TraceReader, bytes_of_the_format_stay_as_they_are) {
  const Bytes file = write_trace(all_events(), 3);
  std::string text;
  for (size_t i = 0; i < file.size(); ++i) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    const auto byte = static_cast<uint8_t>(file[i]);
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
    text += i % 16 == 15 ? '\n' : ' ';
  }
  uptier::test::expect_golden("trace_bytes", text);
}

TEST(TraceReader, file_cut_at_any_byte_gives_its_whole_records_and_is_truncated) {
  const Bytes file = write_trace(all_events());
  const std::vector<size_t> offsets = record_offsets(file);
  for (size_t size = 0; size < file.size(); ++size) {
    const Read read = read_all(ByteSpan(file).first(size));
    ASSERT_EQ(read.state, State::kTruncated) << size << ": " << read.error;
    ASSERT_TRUE(is_prefix(read.events, all_events()));
    const auto whole = std::upper_bound(offsets.begin(), offsets.end(), size) - offsets.begin() - 1;
    ASSERT_EQ(read.events.size(), static_cast<size_t>(std::max<int64_t>(whole - 1, 0)));
    const std::string where = "offset " + std::to_string(offsets[static_cast<size_t>(whole)]);
    ASSERT_TRUE(read.error.starts_with(where + ": the file ends ")) << read.error;
  }
}

TEST(TraceReader, any_flipped_bit_is_noticed_and_no_event_changes) {
  const Bytes file = write_trace(all_events());
  for (size_t bit = 0; bit < file.size() * 8; ++bit) {
    Bytes bad = file;
    bad[bit / 8] ^= std::byte{1} << (bit % 8);
    const Read read = read_all(bad);
    ASSERT_NE(read.state, State::kComplete) << "byte " << bit / 8;
    ASSERT_TRUE(is_prefix(read.events, all_events())) << "byte " << bit / 8;
    ASSERT_TRUE(read.error.starts_with("offset ")) << read.error;
  }
}

TEST(TraceReader, damaged_length_is_corrupt_not_truncated) {
  const Bytes file = write_trace(all_events());
  for (const size_t offset : record_offsets(file)) {
    if (offset == file.size()) continue;
    Bytes bad = file;
    bad[offset + 14] ^= std::byte{1};
    const Read read = read_all(bad);
    EXPECT_EQ(read.state, State::kCorrupt);
    EXPECT_EQ(read.error, "offset " + std::to_string(offset) + ": the header checksum is wrong");
  }
}

TEST(TraceReader, every_flipped_byte_with_valid_checksums_does_no_harm) {
  const Bytes file = write_trace(all_events());
  const std::vector<size_t> offsets = record_offsets(file);
  Generator generator(41);
  for (size_t n = 0; n + 1 < offsets.size(); ++n) {
    const size_t size = offsets[n + 1] - offsets[n];
    for (size_t field = 0; field < size; ++field) {
      const auto value = static_cast<uint8_t>(generator.below(256));
      const Read read = read_all(with_field<uint8_t>(file, n, field, value));
      ASSERT_LE(read.events.size(), all_events().size());
    }
  }
}

TEST(TraceReader, random_bytes_are_refused) {
  Generator generator(42);
  for (int round = 0; round < 2000; ++round) {
    Bytes file = write_trace(all_events());
    for (uint64_t i = 1 + generator.below(20); i > 0; --i) {
      file[generator.below(file.size())] = static_cast<std::byte>(generator.below(256));
    }
    if (generator.chance(3)) file.resize(generator.below(file.size()));
    const Read read = read_all(file);
    ASSERT_TRUE(is_prefix(read.events, all_events()));
  }
}

TEST(TraceReader, impossible_headers_are_named) {
  const Bytes file = write_trace({BulkType{1, "t"}});
  const auto error = [](const Bytes& bytes) {
    const Read read = read_all(bytes);
    EXPECT_EQ(read.state, State::kCorrupt) << read.error;
    return read.error;
  };
  // Records: 0 file header at 0, 1 type at 48, 2 end marker at 112.
  EXPECT_EQ(record_offsets(file), (std::vector<size_t>{0, 48, 112, 160}));
  EXPECT_EQ(error(with_field<uint64_t>(file, 1, 8, 24)),
            "offset 48: a record of 24 bytes is not possible");
  EXPECT_EQ(error(with_field<uint64_t>(file, 1, 8, 0)),
            "offset 48: a record of 0 bytes is not possible");
  EXPECT_EQ(error(with_field<uint64_t>(file, 1, 8, kMaxContent + 16)),
            "offset 48: a record of 33554448 bytes is not possible");
  EXPECT_EQ(error(with_field<uint32_t>(file, 1, 0, 0x12345678)),
            "offset 48: the magic is not IIDB");
  EXPECT_EQ(error(with_field<uint32_t>(file, 1, 20, 2)), "offset 48: sequence 2 instead of 1");
  EXPECT_EQ(error(with_field<uint16_t>(file, 1, 4, 0x5500)), "offset 48: a second file header");
  EXPECT_EQ(error(with_field<uint64_t>(file, 1, 32, 0)), "offset 48: type: handle 0 is invalid");
  EXPECT_EQ(error(with_field<uint16_t>(file, 0, 4, 0x5501)),
            "offset 0: the file does not start with a file header");
  EXPECT_EQ(error(with_field<uint32_t>(file, 0, 32, 9)), "offset 0: trace version 9 is not known");
  EXPECT_EQ(error(with_field<uint32_t>(file, 0, 36, 1)), "offset 0: a reserved field is not zero");
  EXPECT_EQ(error(with_field<uint64_t>(file, 2, 32, 5)),
            "offset 112: the end marker tells of 5 events, the file has 1");
  EXPECT_EQ(error(insert_at(file, 160, Bytes(1))),
            "offset 160: trailing bytes after the end marker");
}

TEST(TraceReader, removed_swapped_and_doubled_records_are_noticed) {
  const Bytes file = write_trace(all_events());
  const std::vector<size_t> offsets = record_offsets(file);
  const auto slice = [&](size_t n) {
    return Bytes(file.begin() + static_cast<int64_t>(offsets[n]),
                 file.begin() + static_cast<int64_t>(offsets[n + 1]));
  };
  for (size_t skip = 0; skip + 1 < offsets.size(); ++skip) {
    Bytes removed, doubled;
    for (size_t n = 0; n + 1 < offsets.size(); ++n) {
      const Bytes record = slice(n);
      if (n != skip) removed.insert(removed.end(), record.begin(), record.end());
      doubled.insert(doubled.end(), record.begin(), record.end());
      if (n == skip) doubled.insert(doubled.end(), record.begin(), record.end());
    }
    EXPECT_NE(read_all(removed).state, State::kComplete) << skip;
    EXPECT_EQ(read_all(doubled).state, State::kCorrupt) << skip;
  }
}

TEST(TraceReader, chunks_of_other_types_are_skipped_by_their_length) {
  const Bytes file = write_trace(all_events());
  for (const size_t offset : record_offsets(file)) {
    if (offset == 0 || offset == file.size()) continue;
    for (const size_t content : {0, 1, 16, 100}) {
      const Read read = read_all(insert_at(file, offset, foreign_chunk(0x0010, content)));
      EXPECT_EQ(read.state, State::kComplete) << read.error;
      EXPECT_EQ(read.events, all_events());
      EXPECT_EQ(read.skipped, 1u);
    }
  }
}

TEST(TraceReader, length_of_another_type_cannot_reach_outside) {
  const Bytes file = write_trace({});
  for (const uint64_t length : {uint64_t{1} << 20, UINT64_MAX, UINT64_MAX - 15, UINT64_MAX - 16}) {
    Bytes chunk = foreign_chunk(0xffff, 0);
    store<uint64_t>(chunk, 8, length);
    const Read read = read_all(insert_at(file, 48, chunk));
    EXPECT_EQ(read.state, State::kTruncated) << length;
  }
}

TEST(TraceReader, records_of_unknown_kind_or_version_are_skipped) {
  const Bytes file = write_trace({BulkType{1, "t"}, BulkType{2, "u"}});
  const Read kind = read_all(with_field<uint16_t>(file, 1, 4, 0x55f0));
  EXPECT_EQ(kind.state, State::kComplete) << kind.error;
  EXPECT_EQ(kind.events, (std::vector<TraceEvent>{BulkType{2, "u"}}));
  EXPECT_EQ(kind.skipped, 1u);
  const Read version = read_all(with_field<uint16_t>(file, 2, 6, 1));
  EXPECT_EQ(version.state, State::kComplete) << version.error;
  EXPECT_EQ(version.events, (std::vector<TraceEvent>{BulkType{1, "t"}}));
}

TEST(TraceReader, offset_and_sequence_belong_to_the_current_event) {
  const Bytes file = write_trace(all_events());
  const std::vector<size_t> offsets = record_offsets(file);
  TraceReader reader(file);
  for (size_t n = 1; reader.next(); ++n) {
    EXPECT_EQ(reader.offset(), offsets[n]);
    EXPECT_EQ(reader.sequence(), n);
  }
}

}  // namespace
}  // namespace uptier::profile::trace_reader_test
