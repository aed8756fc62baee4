#include <gtest/gtest.h>

#include "profile/trace/dump.h"
#include "profile/trace/trace_file.h"
#include "tests/support/golden.h"
#include "tests/support/trace_samples.h"

namespace uptier::profile::trace_dump_test {
namespace {

using uptier::test::sample_events;
using uptier::test::write_trace;

TEST(TraceDump, golden) {
  std::vector<TraceEvent> events = sample_events();
  // Several kinds, gaps between sites, more counts than fit on a line.
  Schema mixed = Schema::block_schema(10, 0xc0ffee);
  mixed.slots.push_back({SlotKind::kBlock, 20, 10, 1});
  mixed.slots.push_back({SlotKind::kCounter, 21, 11, 1});
  events.push_back(make_desc(99, 2, mixed));
  events.push_back(FlushEvent{99, 5, 5, 0, 0, FlushReason::kDemand});
  events.push_back(make_data(99, std::vector<uint64_t>{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 20, 21}));
  InstrumentationDesc later = make_desc(100, 2, mixed);
  later.version = 2;
  events.push_back(later);
  events.push_back(make_data(100, std::vector<uint64_t>{1, 2, 3}));
  uptier::test::expect_golden("trace_dump", dump_trace(write_trace(events, 12)));
}

TEST(TraceDump, golden_of_every_kind) {
  uptier::test::expect_golden("trace_dump_kinds",
                              dump_trace(write_trace(uptier::test::kinds_events())));
}

TEST(TraceDump, does_not_depend_on_the_numbers_of_handles_ids_and_threads) {
  const auto dump = [](uint64_t base) {
    const Schema schema = Schema::block_schema(2, 1);
    return dump_trace(write_trace({
        BulkType{base + 9, "t"},
        MethodDetails{base + 5, 1, 2, "f"},
        make_desc(base + 3, base + 5, schema),
        FlushEvent{base + 3, 1, 1, base + 8, 0, FlushReason::kFinal},
        make_data(base + 3, std::vector<uint64_t>{1, 2}),
    }));
  };
  EXPECT_EQ(dump(0), dump(1'000'000));
}

TEST(TraceDump, truncated_file_is_printed_up_to_its_last_whole_record) {
  const Bytes file = write_trace({BulkType{1, "t"}, BulkType{2, "u"}});
  EXPECT_EQ(dump_trace(ByteSpan(file).first(150)),
            "trace 1\ntype t1 name \"t\"\n"
            "truncated: offset 112: the file ends inside a chunk: 38 of 48 bytes\n");
  EXPECT_EQ(dump_trace({}), "trace 1\ntruncated: offset 0: the file ends without end marker\n");
}

TEST(TraceDump, corrupt_file_is_printed_up_to_the_damage) {
  Bytes file = write_trace({BulkType{1, "t"}});
  file.back() ^= std::byte{1};
  EXPECT_EQ(dump_trace(file),
            "trace 1\ntype t1 name \"t\"\ncorrupt: offset 112: the content checksum is wrong\n");
}

}  // namespace
}  // namespace uptier::profile::trace_dump_test
