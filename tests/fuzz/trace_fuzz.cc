// Trace files: any bytes are read, validated, dumped and merged without harm, and a file that the
// validator accepts yields a profile.
//
// Each input is fed once as it is and once with repaired checksums, or no mutant would get past
// them.
#include <array>
#include <cstring>
#include <memory>

#include "profile/data/schema.h"
#include "profile/trace/dump.h"
#include "profile/trace/trace_file.h"
#include "profile/trace/validate.h"
#include "tests/fuzz/fuzz.h"
#include "tests/fuzz/records.h"

namespace uptier::fuzz {
namespace {

class StringSink final : public profile::ByteSink {
 public:
  explicit StringSink(std::string& to) : to_(to) {}
  int64_t write(profile::ByteSpan bytes) override {
    to_.append(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    return static_cast<int64_t>(bytes.size());
  }
  int close() override { return 0; }

 private:
  std::string& to_;
};

std::vector<std::byte> words(std::initializer_list<uint64_t> values) {
  std::vector<std::byte> bytes(values.size() * 8);
  std::memcpy(bytes.data(), values.begin(), bytes.size());
  return bytes;
}

// A method with two block counts; `desc` is written out, so that a wrong encoder is noticed here.
std::vector<TraceEvent> small_trace() {
  constexpr uint64_t kRun = uint64_t{1} << 32 | 1;    // one word each, kind block
  constexpr uint64_t kSites = uint64_t{2} << 32 | 1;  // two slots, from site 1
  constexpr uint64_t kTop = 0;                        // no table
  constexpr uint64_t kSize = uint64_t{1} << 32 | 2;   // one run, two words
  const auto method_first = std::byte{0b10};          // region 0 is a method handle
  return {
      Provenance{"fuzz", 16, "random", ""},
      MethodDetails{1, 0xa1, 7, "fib"},
      BulkType{1, "thing"},
      InstrumentationDesc{1,
                          1,
                          {method_first, std::byte{0}},
                          words({1, 5, kSize, kRun, kSites, kTop}),
                          {std::byte{0}}},
      FlushEvent{1, 32, 2, 0, 0, FlushReason::kCalls, 1, 0, 0},
      InstrumentationData{1, words({2, 3})},
      FlushEvent{1, 64, 4, 0, 1, FlushReason::kFinal, 16, 9, 1},
      InstrumentationData{1, words({4, 6})},
  };
}

// A method with a call target and a value; its runs are written out as well.
std::vector<TraceEvent> tables_trace() {
  constexpr uint64_t kCallee = uint64_t{1} << 32 | 3;  // one word, kind call target
  constexpr uint64_t kValue = uint64_t{6} << 32 | 4;
  constexpr uint64_t kSite = uint64_t{1} << 32 | 1;   // one slot, site 1
  constexpr uint64_t kSize = uint64_t{2} << 32 | 13;  // two runs; 7 words, three pairs
  const auto handle = std::byte{0b10};
  const std::vector<std::byte> shape = {std::byte{0}, handle << 6, handle << 2, std::byte{0}};
  return {
      MethodDetails{1, 0xa1, 7, "fib"},
      MethodDetails{2, 0xa1, 8, "main"},
      InstrumentationDesc{1,
                          1,
                          {handle, std::byte{0}, std::byte{0}},
                          words({1, 5, kSize, kCallee, kSite, 2, kValue, kSite, 1}),
                          shape},
      FlushEvent{1, 32, 2, 0, 0, FlushReason::kCalls, 1, 0, 0},
      InstrumentationData{1, words({3, 2, 9, 0, 4, 5, 1, 2, 7, 0, 0, 4, 1})},
      FlushEvent{1, 64, 4, 0, 1, FlushReason::kFinal, 16, 9, 1},
      InstrumentationData{1, words({0, 4, 0, 0, 0, 5, 1, 1, 9, 2, 8, 0, 3})},
  };
}

std::string write_trace(const std::vector<TraceEvent>& events) {
  std::string file;
  profile::TraceWriter writer(std::make_unique<StringSink>(file));
  for (const TraceEvent& event : events) UPTIER_FUZZ_CHECK(writer.on_event(event).ok());
  UPTIER_FUZZ_CHECK(writer.finish(0).ok());
  return file;
}

void feed_bytes(const std::vector<std::byte>& file) {
  const auto summary = profile::validate(file);
  const std::string dump = profile::dump_trace(file);
  UPTIER_FUZZ_CHECK(!dump.empty());
  const auto merged = profile_from_trace(file);
  if (summary.ok()) UPTIER_FUZZ_CHECK(merged.ok() && !merged->truncated);
  if (!merged.ok()) return;
  for (const auto& [key, method] : merged->profile.methods) UPTIER_FUZZ_CHECK(method.check().ok());
}

}  // namespace

std::vector<std::string> seeds() {
  const std::vector<std::string> files = {write_trace(small_trace()), write_trace(tables_trace()),
                                          write_trace({}),
                                          write_trace({Provenance{"", 0, "", ""}})};
  for (const std::string& file : files) {
    const auto valid = profile::validate(std::as_bytes(std::span(file)));
    if (!valid) std::fprintf(stderr, "seed: %s\n", valid.error().message.c_str());
    UPTIER_FUZZ_CHECK(valid.ok());
  }
  return files;
}

void feed(const std::string& input) {
  const auto bytes = std::as_bytes(std::span(input));
  std::vector<std::byte> file(bytes.begin(), bytes.end());
  feed_bytes(file);
  std::vector<std::byte> mended = file;
  mend(std::span<std::byte>(mended));
  if (mended != file) feed_bytes(mended);
}

void mend_input(std::span<std::byte> input) { mend(input); }

void mutate_input(std::string& input, Random& random) { mutate_record(input, random); }

}  // namespace uptier::fuzz
