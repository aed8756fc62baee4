#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "profile/trace/trace_file.h"
#include "profile/trace/validate.h"
#include "tests/support/trace_samples.h"

namespace uptier::profile::trace_writer_test {
namespace {

using uptier::test::all_events;
using uptier::test::MemorySink;
using uptier::test::read_trace;
using uptier::test::SinkLog;
using uptier::test::write_trace;
using uptier::test::WriteFault;

// Writes the sample through a faulty sink; returns the text of the first error, which must be
// sticky.
std::string write_with(SinkLog& log, WriteFault fault, int close_error = 0) {
  TraceWriter writer(std::make_unique<MemorySink>(&log, std::move(fault), close_error));
  std::string error;
  const auto note = [&error](const Status& status) {
    if (!error.empty()) { EXPECT_FALSE(status.ok()) << "an error must stay"; }
    if (!status.ok() && error.empty()) error = status.error().message;
  };
  for (const TraceEvent& event : all_events()) note(writer.on_event(event));
  note(writer.finish(0));
  EXPECT_TRUE(log.closed);
  return error;
}

TEST(TraceWriter, short_writes_are_continued) {
  SinkLog log;
  EXPECT_EQ(write_with(log, [](size_t, size_t size) { return size > 7 ? 7 : size; }), "");
  EXPECT_EQ(log.bytes, write_trace(all_events()));
}

TEST(TraceWriter, interrupted_writes_are_repeated) {
  SinkLog log;
  const auto fault = [](size_t call, size_t size) -> int64_t {
    return call % 3 != 2 ? -EINTR : static_cast<int64_t>(size + 1) / 2;
  };
  EXPECT_EQ(write_with(log, fault), "");
  EXPECT_EQ(log.bytes, write_trace(all_events()));
}

TEST(TraceWriter, full_disk_is_reported_at_once_and_for_ever_and_the_file_reads_up_to_there) {
  const Bytes whole = write_trace(all_events());
  const std::vector<TraceEvent> events = all_events();
  for (size_t room = 0; room < whole.size(); ++room) {
    SinkLog log;
    const auto fault = [&log, room](size_t, size_t size) -> int64_t {
      const size_t left = room - log.bytes.size();
      return left == 0 ? -ENOSPC : static_cast<int64_t>(std::min(size, left));
    };
    ASSERT_EQ(write_with(log, fault), "trace: write failed: No space left on device");
    ASSERT_EQ(log.bytes, Bytes(whole.begin(), whole.begin() + static_cast<int64_t>(room)));
    TraceReader reader(log.bytes);
    size_t read = 0;
    while (reader.next()) ASSERT_EQ(reader.event(), events[read++]);
    ASSERT_EQ(reader.state(), TraceReader::State::kTruncated);
  }
}

TEST(TraceWriter, nothing_is_written_behind_a_failed_write) {
  SinkLog log;
  const auto fault = [](size_t call, size_t size) -> int64_t {
    return call == 1 ? -EIO : static_cast<int64_t>(size);
  };
  EXPECT_EQ(write_with(log, fault), "trace: write failed: Input/output error");
  EXPECT_EQ(log.writes, 2u);
}

TEST(TraceWriter, sink_that_takes_nothing_is_an_error_not_a_loop) {
  SinkLog log;
  EXPECT_EQ(write_with(log, [](size_t, size_t) { return 0; }),
            "trace: write failed: Input/output error");
}

TEST(TraceWriter, failed_close_is_an_error) {
  SinkLog log;
  EXPECT_EQ(write_with(log, nullptr, -EDQUOT), "trace: close failed: Disk quota exceeded");
}

TEST(TraceWriter, every_data_event_reaches_the_sink_before_the_call_returns) {
  SinkLog log;
  TraceWriter writer(std::make_unique<MemorySink>(&log));
  std::vector<TraceEvent> sent;
  for (const TraceEvent& event : all_events()) {
    ASSERT_TRUE(writer.on_event(event).ok());
    sent.push_back(event);
    if (std::holds_alternative<InstrumentationData>(event)) {
      EXPECT_EQ(read_trace(log.bytes), sent);
    }
  }
}

TEST(TraceWriter, long_stretches_without_data_are_written_too) {
  SinkLog log;
  TraceWriter writer(std::make_unique<MemorySink>(&log));
  for (uint64_t i = 1; i <= 5000; ++i) ASSERT_TRUE(writer.on_event(BulkType{i, "t"}).ok());
  EXPECT_GT(log.bytes.size(), 100'000u);
}

TEST(TraceWriter, oversized_event_is_refused_and_counted_and_the_trace_goes_on) {
  SinkLog log;
  TraceWriter writer(std::make_unique<MemorySink>(&log));
  const Status status = writer.on_event(BulkType{1, std::string(kMaxContent, 'x')});
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kResourceExhausted);
  EXPECT_TRUE(writer.on_event(BulkType{2, "small"}).ok());
  EXPECT_TRUE(writer.finish(10).ok());
  const Result<TraceSummary> summary = validate(log.bytes);
  ASSERT_TRUE(summary.ok()) << summary.error().message;
  EXPECT_EQ(summary->types, 1u);
  EXPECT_EQ(summary->dropped, 11u);
}

TEST(TraceWriter, largest_slab_fits_into_a_record) {
  const Schema schema = Schema::block_schema(Schema::kMaxWords, 1);
  // The largest Desc has a run for each word.
  Schema sparse = schema;
  for (Slot& slot : sparse.slots) slot.site *= 2;
  ASSERT_TRUE(sparse.check().ok());
  const std::vector<uint64_t> counts(Schema::kMaxWords, 1);
  const Bytes file =
      write_trace({MethodDetails{1, 1, 1, "f"}, make_desc(1, 1, sparse), make_data(1, counts)});
  const Result<TraceSummary> summary = validate(file);
  ASSERT_TRUE(summary.ok()) << summary.error().message;
  EXPECT_EQ(summary->data, 1u);
}

TEST(TraceWriter, finish_comes_once_and_nothing_after_it) {
  SinkLog log;
  TraceWriter writer(std::make_unique<MemorySink>(&log));
  EXPECT_TRUE(writer.finish(0).ok());
  const Bytes file = log.bytes;
  EXPECT_FALSE(writer.on_event(BulkType{1, "t"}).ok());
  EXPECT_TRUE(writer.finish(0).ok());
  EXPECT_TRUE(writer.flush().ok());
  EXPECT_EQ(log.bytes, file);
}

class TraceFile : public testing::Test {
 protected:
  TraceFile() {
    std::string name = (std::filesystem::temp_directory_path() / "uptier-trace-XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~TraceFile() override { std::filesystem::remove_all(folder_); }

  std::string path(const char* name) const { return (folder_ / name).string(); }
  size_t files() const {
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder_), {}));
  }
  static Bytes contents(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    const std::string text((std::istreambuf_iterator<char>(in)), {});
    const ByteSpan bytes = std::as_bytes(std::span(text));
    return Bytes(bytes.begin(), bytes.end());
  }
  static std::string refusal(const std::string& path) {
    const Result<std::unique_ptr<TraceSink>> sink = trace_file_sink(path);
    return sink.ok() ? "" : sink.error().message;
  }

  std::filesystem::path folder_;
};

TEST_F(TraceFile, holds_the_events_and_is_private) {
  Result<std::unique_ptr<TraceSink>> sink = trace_file_sink(path("t"));
  ASSERT_TRUE(sink.ok()) << sink.error().message;
  for (const TraceEvent& event : all_events()) ASSERT_TRUE((*sink)->on_event(event).ok());
  ASSERT_TRUE((*sink)->finish(0).ok());
  EXPECT_EQ(contents(path("t")), write_trace(all_events()));
  struct stat info;
  ASSERT_EQ(stat(path("t").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 07777, 0600u);
  EXPECT_EQ(files(), 1u);
}

TEST_F(TraceFile, old_file_is_replaced_and_stays_whole_for_those_who_hold_it) {
  std::ofstream(path("t")) << "old";
  std::ifstream old(path("t"));
  Result<std::unique_ptr<TraceSink>> sink = trace_file_sink(path("t"));
  ASSERT_TRUE(sink.ok()) << sink.error().message;
  ASSERT_TRUE((*sink)->finish(0).ok());
  EXPECT_EQ(contents(path("t")), write_trace({}));
  std::string text;
  old >> text;
  EXPECT_EQ(text, "old");
}

TEST_F(TraceFile, links_folders_and_devices_are_refused) {
  std::ofstream(path("target")) << "precious";
  std::filesystem::create_symlink("target", path("link"));
  EXPECT_EQ(refusal(path("link")), path("link") +
                                       ": exists and is not a regular file (it is a symbolic link: "
                                       "name its target)");
  EXPECT_EQ(refusal(folder_.string()), folder_.string() + ": exists and is not a regular file");
  EXPECT_EQ(refusal("/dev/null"), "/dev/null: exists and is not a regular file");
  EXPECT_EQ(contents(path("target")).size(), 8u);
  EXPECT_EQ(files(), 2u);
}

TEST_F(TraceFile, missing_folder_is_an_error_with_the_name) {
  EXPECT_EQ(refusal(path("no/t")),
            path("no/t") + ": cannot create the file: No such file or directory");
}

TEST_F(TraceFile, unfinished_sink_leaves_a_file_that_says_so) {
  {
    Result<std::unique_ptr<TraceSink>> sink = trace_file_sink(path("t"));
    ASSERT_TRUE(sink.ok());
    for (const TraceEvent& event : all_events()) ASSERT_TRUE((*sink)->on_event(event).ok());
  }
  const Bytes file = contents(path("t"));
  EXPECT_EQ(read_trace(file), all_events());
  EXPECT_EQ(validate(file).error().message,
            "offset " + std::to_string(file.size()) + ": the file ends without end marker");
}

}  // namespace
}  // namespace uptier::profile::trace_writer_test
