// Records of log probes, from the threads that made them to the reader.
#include <gtest/gtest.h>

#include <map>
#include <thread>

#include "tests/support/runtime_host.h"
#include "tiering/report/site_reports.h"

namespace uptier::test::log_test {
namespace {

const char* kLogs = R"(
func @f(i64) -> i64 {
b0(v0: i64):
  probe log tag=7 v0
  v1 = const.i64 1
  v2 = add.i64 v0, v1
  probe log tag=4000000000 v2
  return v2
}
)";

Options everything(uint64_t records) {
  Options o;
  o.interval = 1;
  o.policy = PolicyMode::kNever;
  o.workers = 0;
  o.log_records = records;
  return o;
}

void run(IrRuntime& r, uint64_t first, uint64_t calls) {
  ThreadScope attached(*r.runtime);
  for (uint64_t i = 0; i < calls; ++i) r.call("f", {first + i});
}

TEST(Log, two_threads_hand_over_every_record_in_their_order) {
  constexpr uint64_t kCalls = 500;
  IrRuntime r(parse_or_die(kLogs), everything(1 << 12));
  ThreadScope attached(*r.runtime);
  std::thread other([&] { run(r, 1'000'000, kCalls); });
  for (uint64_t i = 0; i < kCalls; ++i) r.call("f", {i});
  other.join();
  std::map<uint32_t, std::vector<LogRecord>> by_thread;
  for (const LogRecord& l : r.runtime->read_log()) by_thread[l.thread].push_back(l);
  ASSERT_EQ(by_thread.size(), 2u);
  for (const auto& [thread, records] : by_thread) {
    ASSERT_EQ(records.size(), 2 * kCalls);
    uint64_t first = records[0].value;
    EXPECT_TRUE(first == 0 || first == 1'000'000);
    for (uint64_t i = 0; i < records.size(); ++i) {
      EXPECT_EQ(records[i].method, r.method("f"));
      EXPECT_EQ(records[i].tag, i % 2 == 0 ? 7u : 4'000'000'000u);
      EXPECT_EQ(records[i].value, first + (i + 1) / 2);
      if (i == 0) continue;
      EXPECT_GE(records[i].cycles, records[i - 1].cycles);
    }
    EXPECT_NE(records[0].site, records[1].site);
  }
  EXPECT_TRUE(r.runtime->read_log().empty()) << "they are taken once";
  EXPECT_EQ(r.runtime->report().losses.log_records, 0u);
}

TEST(Log, the_latest_stay_and_the_others_are_counted) {
  constexpr uint64_t kCalls = 100, kKept = 16;
  IrRuntime r(parse_or_die(kLogs), everything(kKept));
  ThreadScope attached(*r.runtime);
  std::thread other([&] { run(r, 1'000'000, kCalls); });
  other.join();
  std::thread third([&] { run(r, 2'000'000, 4); });
  third.join();
  for (uint64_t i = 0; i < kCalls; ++i) r.call("f", {i});
  std::vector<LogRecord> log = r.runtime->read_log();
  // The latest 16 records of the two ended threads together.
  ASSERT_EQ(log.size(), 2 * kKept);
  EXPECT_EQ(log[7].value, 1'000'000 + kCalls);
  EXPECT_EQ(log[8].value, 2'000'000u);
  EXPECT_EQ(log.back().value, kCalls);
  uint64_t made = 2 * (kCalls + 4 + kCalls);
  EXPECT_EQ(r.runtime->report().losses.log_records + log.size(), made);
}

TEST(Log, the_report_shows_events_and_losses) {
  IrRuntime r(parse_or_die(kLogs), everything(16));
  ThreadScope attached(*r.runtime);
  for (uint64_t i = 0; i < 100; ++i) r.call("f", {i});
  r.runtime->flush();
  MethodReport m = r.report_of("f");
  ASSERT_EQ(m.sites.size(), 2u);
  for (const SiteReport& s : m.sites) {
    EXPECT_EQ(s.kind, SlotKind::kLog);
    EXPECT_EQ(s.estimate, 100);
    EXPECT_EQ(s.lost, 92u);
  }
}

const char* kProbes = R"(
func @g(i64) -> i64 {
b0(v0: i64):
  v1 = const.i64 3
  v2 = rem_u.i64 v0, v1
  probe value v2
  probe range v0
  probe gauge v0
  probe counter v0
  return v2
}
)";

TEST(SiteReports, show_what_probes_saw) {
  IrRuntime r(parse_or_die(kProbes), everything(16));
  ThreadScope attached(*r.runtime);
  uint64_t sum = 0;
  for (uint64_t i = 0; i < 100; ++i) {
    r.call("g", {i});
    sum += i;
  }
  r.runtime->flush();
  MethodReport m = r.report_of("g");
  EXPECT_EQ(m.observing, Observing::kLearning);
  EXPECT_EQ(m.interval, 1u);
  std::map<SlotKind, SiteReport> sites;
  for (const SiteReport& s : m.sites) sites[s.kind] = s;
  ASSERT_EQ(sites.size(), 4u);
  EXPECT_EQ(m.sites[0].kind, SlotKind::kCounter);
  EXPECT_EQ(sites[SlotKind::kCounter].estimate, sum);
  EXPECT_EQ(sites[SlotKind::kGauge].gauge, 99u);
  EXPECT_EQ(sites[SlotKind::kRange].min, 0);
  EXPECT_EQ(sites[SlotKind::kRange].max, 99);
  const SiteReport& value = sites[SlotKind::kValue];
  ASSERT_EQ(value.top.size(), 3u);
  EXPECT_EQ(value.top[0].value, 0);
  EXPECT_EQ(value.top[0].estimate, 34);
  EXPECT_DOUBLE_EQ(value.top[0].share, 0.34);
  EXPECT_EQ(value.max, 2);
  std::string text = r.runtime->report().text();
  EXPECT_NE(text.find("value 2: 100, 0..2, 0 34.00 %"), std::string::npos) << text;
}

TEST(SiteReports, name_callees_and_order_them) {
  MethodProfile p;
  p.schema.add(SlotKind::kCallTarget, 3);
  p.schema.add(SlotKind::kCallTarget, 4);
  p.counts = {2, 0};
  p.tables[{SlotKind::kCallTarget, 3}] = {
      {{1, 0}, {3, 0}}, {{1, 1}, {90, 0}}, {{1, 2}, {4, 0}}, {{1, 3}, {1, 0}}, {{9, 5}, {20, 0}}};
  p.weigh(10);
  std::vector<SiteReport> sites =
      tiering::site_reports(p, {{{1, 0}, "a"}, {{1, 1}, "b"}, {{1, 2}, "c"}, {{1, 3}, "d"}});
  ASSERT_EQ(sites.size(), 1u) << "a site that saw nothing is not shown";
  EXPECT_EQ(sites[0].site, 3u);
  EXPECT_EQ(sites[0].estimate, 1200);
  ASSERT_EQ(sites[0].top.size(), SiteReport::kTop);
  EXPECT_EQ(sites[0].top[0].name, "b");
  EXPECT_DOUBLE_EQ(sites[0].top[0].share, 0.75);
  EXPECT_EQ(sites[0].top[1].name, "function 5 of another module");
  EXPECT_EQ(sites[0].top[2].name, "c");
  EXPECT_EQ(sites[0].top[3].name, "a");
}

}  // namespace
}  // namespace uptier::test::log_test
