// Observations through the C API: probes of every kind, log records, traces, saved profiles.
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "tests/support/c_api_world.h"
#include "uptier/profile.h"

namespace uptier::test::c_api_profile_test {
namespace {

class CApiProfile : public CApi {
 protected:
  std::string profile() {
    return text([&](char* b, size_t n, size_t* l, uptier_error* e) {
      return uptier_runtime_profile_text(runtime_, b, n, l, e);
    });
  }
  std::vector<uptier_log_record> read_log(size_t capacity) {
    std::vector<uptier_log_record> records(capacity);
    size_t count = 0;
    EXPECT_EQ(uptier_runtime_read_log(runtime_, records.data(), capacity, &count, &error_),
              UPTIER_OK);
    records.resize(count);
    return records;
  }
};

// Sites: block 1, then the probes 2 to 8.
void probed(uptier_builder* b) {
  uptier_value x = uptier_build_param(b, 0);
  uptier_build_probe(b, UPTIER_PROBE_VALUE, x, 0, nullptr);
  uptier_build_probe(b, UPTIER_PROBE_LOG, x, 42, nullptr);
  uptier_build_probe(b, UPTIER_PROBE_COUNTER, x, 0, nullptr);
  uptier_build_probe(b, UPTIER_PROBE_HIT, uptier_value{0}, 0, nullptr);
  uptier_build_probe(b, UPTIER_PROBE_GAUGE, x, 0, nullptr);
  uptier_build_probe(b, UPTIER_PROBE_RANGE, x, 0, nullptr);
  uint32_t index = 0;
  uptier_build_probe(b, UPTIER_PROBE_CALL_TARGET, x, 0, &index);
  EXPECT_EQ(index, 6u);
  uptier_build_ret(b, x);
}

TEST_F(CApiProfile, every_kind_of_probe_observes) {
  create({{"tier", "instrumented"}});
  uptier_method m = add("probed", keep({probed}), signature(1));
  for (uint64_t i = 1; i <= 10; ++i) ASSERT_EQ(invoke(m, {i}), UPTIER_OK);
  ASSERT_EQ(uptier_runtime_attach(runtime_, &error_), UPTIER_OK);
  uptier_runtime_flush(runtime_);
  uptier_runtime_detach(runtime_);
  const std::string seen = profile();
  for (const char* line :
       {"  value 2 top 16 count 10 sum 55 min 1 max 10", "  log 3 events 10 lost 0",
        "  counter 4 55", "  counter 5 10", "  gauge 6 10",
        "  range 7 count 10 sum 55 min 1 max 10", "  call_target 8 top 16 other 10"}) {
    EXPECT_NE(seen.find(line), std::string::npos) << line << "\n" << seen;
  }
}

TEST_F(CApiProfile, only_logs_have_a_tag) {
  EXPECT_NE(complaint([](uptier_builder* b) {
              uptier_build_probe(b, UPTIER_PROBE_HIT, uptier_value{0}, 1, nullptr);
              ret_first(b);
            }).find("only log probes have a tag"),
            std::string::npos);
}

TEST_F(CApiProfile, records_are_taken_in_parts_and_none_is_lost) {
  create({{"tier", "instrumented"}});
  uptier_method m = add("probed", keep({probed}), signature(1));
  EXPECT_TRUE(read_log(4).empty());
  for (uint64_t i = 1; i <= 10; ++i) ASSERT_EQ(invoke(m, {i}), UPTIER_OK);
  std::vector<uptier_log_record> all;
  for (size_t want : {4u, 0u, 4u, 4u}) {
    std::vector<uptier_log_record> part = read_log(want);
    EXPECT_EQ(part.size(), all.size() == 8 ? 2 : want);
    all.insert(all.end(), part.begin(), part.end());
  }
  EXPECT_TRUE(read_log(4).empty());
  ASSERT_EQ(all.size(), 10u);
  for (uint64_t i = 0; i < 10; ++i) {
    EXPECT_EQ(all[i].value, i + 1);
    EXPECT_EQ(all[i].tag, 42u);
    EXPECT_EQ(all[i].site, 3u);
    EXPECT_EQ(all[i].method.id, m.id);
    EXPECT_GE(all[i].thread, 1u);
    if (i != 0) { EXPECT_GT(all[i].cycles, all[i - 1].cycles); }
  }
  size_t count = 9;
  EXPECT_EQ(uptier_runtime_read_log(nullptr, nullptr, 0, &count, &error_), UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(uptier_runtime_read_log(runtime_, nullptr, 1, &count, &error_),
            UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(uptier_runtime_read_log(runtime_, nullptr, 0, nullptr, &error_),
            UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(count, 9u);
}

TEST_F(CApiProfile, records_that_were_overwritten_are_in_the_totals) {
  create({{"tier", "instrumented"}, {"log_records", "16"}});
  uptier_method m = add("probed", keep({probed}), signature(1));
  ASSERT_EQ(uptier_runtime_attach(runtime_, &error_), UPTIER_OK);
  for (uint64_t i = 0; i < 20; ++i) ASSERT_EQ(invoke(m, {i}), UPTIER_OK);
  uptier_runtime_detach(runtime_);
  const size_t kept = read_log(100).size();
  uptier_totals all = {};
  all.size = sizeof all;
  ASSERT_EQ(uptier_runtime_totals(runtime_, &all, &error_), UPTIER_OK);
  EXPECT_LT(kept, 20u);
  EXPECT_EQ(kept + all.log_records, 20u);
}

// Counts down from its argument.
void spin(uptier_builder* b) {
  uptier_variable i = uptier_build_declare(b, UPTIER_TYPE_I64);
  uptier_block head = uptier_build_create_block(b);
  uptier_block done = uptier_build_create_block(b);
  uptier_build_def(b, i, uptier_build_param(b, 0));
  uptier_build_jump(b, head);
  uptier_build_switch_to(b, head);
  uptier_build_loop_header(b, 0, nullptr, 0);
  uptier_value next =
      uptier_build_binary(b, UPTIER_OP_SUB, uptier_build_use(b, i), uptier_build_i64(b, 1));
  uptier_build_def(b, i, next);
  uptier_value more = uptier_build_binary(b, UPTIER_OP_GT_S, next, uptier_build_i64(b, 0));
  uptier_build_branch(b, more, head, done);
  uptier_build_seal(b, head);
  uptier_build_seal(b, done);
  uptier_build_switch_to(b, done);
  uptier_build_ret(b, next);
}

// Without a worker, nobody empties the ring while the method runs.
TEST_F(CApiProfile, stack_samples_that_were_dropped_are_in_the_totals) {
  create({{"tier", "baseline"},
          {"sample_hz", "20000"},
          {"workers", "0"},
          {"flush_first", "1000000000"},
          {"loop_flush_first", "1000000000"},
          {"sample_ring_bytes", "4096"}});
  uptier_method m = add("spin", keep({spin}), signature(1));
  ASSERT_EQ(invoke(m, {300'000'000}), UPTIER_OK);
  uptier_totals all = {};
  all.size = sizeof all;
  ASSERT_EQ(uptier_runtime_totals(runtime_, &all, &error_), UPTIER_OK);
  EXPECT_GT(all.stack_samples_lost, 0u);
  const std::string report = text([&](char* b, size_t n, size_t* l, uptier_error* e) {
    return uptier_runtime_report_text(runtime_, 0, b, n, l, e);
  });
  const std::string line = "stack samples dropped " + std::to_string(all.stack_samples_lost);
  EXPECT_NE(report.find(line), std::string::npos) << report;
}

// ---- Traces -------------------------------------------------------------------------------------

// The bytes that a sink received.
struct Taken {
  std::vector<std::byte> bytes;
  int writes = 0;
  int closed = 0;
  int answer = 0;

  static int write(void* user, const void* bytes, size_t count) {
    auto& t = *static_cast<Taken*>(user);
    auto* from = static_cast<const std::byte*>(bytes);
    t.bytes.insert(t.bytes.end(), from, from + count);
    t.writes++;
    return t.answer;
  }
  static int close(void* user) { return static_cast<Taken*>(user)->closed++; }
  uptier_trace_sink sink() { return {sizeof(uptier_trace_sink), this, write, close}; }
};

TEST_F(CApiProfile, a_sink_takes_the_bytes_of_a_trace_file) {
  Taken taken;
  const uptier_trace_sink sink = taken.sink();
  uptier_runtime_destroy(runtime_);
  ASSERT_EQ(uptier_runtime_create_traced(nullptr, &sink, &runtime_, &error_), UPTIER_OK);
  uptier_method m = add("first", keep({ret_first}), signature(2));
  for (uint64_t i = 0; i < 100; ++i) ASSERT_EQ(invoke(m, {i, 2}), UPTIER_OK);
  uptier_runtime_destroy(runtime_);
  runtime_ = nullptr;
  EXPECT_EQ(taken.closed, 1);
  Result<TraceProfile> trace = profile_from_trace(taken.bytes);
  ASSERT_TRUE(trace.ok()) << trace.error().message;
  EXPECT_FALSE(trace->truncated);
  EXPECT_EQ(trace->lost, 0u);
  EXPECT_EQ(trace->profile.find({7, 0})->calls, 100u);
}

TEST_F(CApiProfile, a_sink_that_fails_is_not_asked_again_and_its_events_count_as_lost) {
  for (int answer : {ENOSPC, EINTR, -1}) {
    Taken taken;
    taken.answer = answer;
    const uptier_trace_sink sink = taken.sink();
    uptier_runtime_destroy(runtime_);
    ASSERT_EQ(uptier_runtime_create_traced(nullptr, &sink, &runtime_, &error_), UPTIER_OK);
    uptier_method m = add("first", keep({ret_first}), signature(2));
    for (uint64_t i = 0; i < 100; ++i) ASSERT_EQ(invoke(m, {i, 2}), UPTIER_OK);
    uptier_totals all = {};
    all.size = sizeof all;
    ASSERT_EQ(uptier_runtime_flush(runtime_), UPTIER_OK);
    ASSERT_EQ(uptier_runtime_totals(runtime_, &all, &error_), UPTIER_OK);
    EXPECT_GT(all.trace_events_lost, 0u) << answer;
    EXPECT_EQ(taken.writes, 1) << answer;
    uptier_runtime_destroy(runtime_);
    runtime_ = nullptr;
    EXPECT_EQ(taken.closed, 1);
  }
}

TEST_F(CApiProfile, sinks_are_refused_with_a_reason) {
  Taken taken;
  uptier_runtime* r = nullptr;
  auto refused = [&](uptier_trace_sink sink) {
    return uptier_runtime_create_traced(nullptr, &sink, &r, &error_);
  };
  uptier_trace_sink sink = taken.sink();
  EXPECT_EQ(uptier_runtime_create_traced(nullptr, &sink, nullptr, nullptr),
            UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(uptier_runtime_create_traced(nullptr, nullptr, &r, nullptr), UPTIER_INVALID_ARGUMENT);
  sink.size = 8;
  EXPECT_EQ(refused(sink), UPTIER_INVALID_ARGUMENT);
  sink.size = sizeof sink + 8;
  EXPECT_EQ(refused(sink), UPTIER_UNSUPPORTED);
  sink = taken.sink();
  sink.write = nullptr;
  EXPECT_EQ(refused(sink), UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(r, nullptr);
  EXPECT_EQ(taken.closed, 0);
}

// ---- Saved profiles -----------------------------------------------------------------------------

TEST_F(CApiProfile, a_profile_is_saved_and_the_next_process_may_ask_it) {
  char dir[] = "/tmp/uptier-c-api-XXXXXX";
  ASSERT_NE(mkdtemp(dir), nullptr);
  const std::string file = std::string(dir) + "/p.upf";
  create({{"tier", "instrumented"}, {"profile", file.c_str()}});
  uptier_method m = add("probed", keep({probed}), signature(1));
  for (uint64_t i = 0; i < 10; ++i) ASSERT_EQ(invoke(m, {i < 7 ? 5 : i}), UPTIER_OK);
  ASSERT_EQ(uptier_runtime_attach(runtime_, &error_), UPTIER_OK);
  ASSERT_EQ(uptier_runtime_save_profile(runtime_, &error_), UPTIER_OK) << error_.message;
  uptier_runtime_detach(runtime_);
  ASSERT_TRUE(std::filesystem::exists(file));
  const std::string seen = profile();
  const size_t cfg = seen.find("cfg ");
  ASSERT_NE(cfg, std::string::npos);
  const std::string scope = seen.substr(cfg + 4, 18);

  create({{"profile", file.c_str()}});
  uptier_profile_answer a = {};
  uptier_profile_entry entries[2] = {};
  auto ask = [&](const char* key, size_t capacity) {
    a = {};
    a.size = sizeof a;
    return uptier_runtime_query(runtime_, nullptr, scope.c_str(), key, &a, entries, capacity,
                                &error_);
  };
  ASSERT_EQ(ask("value#2", 2), UPTIER_OK) << error_.message;
  EXPECT_EQ(a.kind, uint32_t{UPTIER_ANSWER_VALUES});
  EXPECT_EQ(a.entry_count, 4u);  // 5, 7, 8, 9
  EXPECT_EQ(entries[0].value, 5);
  EXPECT_EQ(entries[0].count, 7u);
  EXPECT_EQ(entries[1].count, 1u);
  EXPECT_EQ(a.methods, 1u);
  EXPECT_EQ(a.count, 10u);
  EXPECT_EQ(a.min, 5);
  EXPECT_EQ(a.max, 9);
  EXPECT_EQ(a.mean, 5.9);
  ASSERT_EQ(ask("counter#4", 0), UPTIER_OK);
  EXPECT_EQ(a.kind, uint32_t{UPTIER_ANSWER_COUNTER});
  EXPECT_EQ(a.count, 59u);
  ASSERT_EQ(ask("range#7", 0), UPTIER_OK);
  EXPECT_EQ(a.kind, uint32_t{UPTIER_ANSWER_RANGE});
  EXPECT_EQ(a.max, 9);
  ASSERT_EQ(ask("call_target#8", 2), UPTIER_OK);
  EXPECT_EQ(a.kind, uint32_t{UPTIER_ANSWER_TARGETS});
  EXPECT_EQ(a.other, 10u);  // the values are not methods

  EXPECT_EQ(ask("value#3", 2), UPTIER_NOT_FOUND);
  EXPECT_STREQ(error_.message, "the profile has no data for value#3");
  EXPECT_EQ(
      uptier_runtime_query(runtime_, "flow", scope.c_str(), "value#2", &a, nullptr, 0, &error_),
      UPTIER_NOT_FOUND);
  for (uptier_runtime* r : {static_cast<uptier_runtime*>(nullptr), runtime_}) {
    uptier_profile_answer* no_answer = r == nullptr ? &a : nullptr;
    EXPECT_EQ(uptier_runtime_query(r, nullptr, "0x", "k", no_answer, nullptr, 0, &error_),
              UPTIER_INVALID_ARGUMENT);
  }
  a.size = 8;
  EXPECT_EQ(uptier_runtime_query(runtime_, nullptr, "0x", "k", &a, nullptr, 0, &error_),
            UPTIER_INVALID_ARGUMENT);
  a.size = sizeof a;
  EXPECT_EQ(uptier_runtime_query(runtime_, nullptr, "0x", "k", &a, nullptr, 1, &error_),
            UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(uptier_runtime_query(runtime_, nullptr, nullptr, "k", &a, nullptr, 0, &error_),
            UPTIER_INVALID_ARGUMENT);
  EXPECT_EQ(uptier_runtime_save_profile(nullptr, &error_), UPTIER_INVALID_ARGUMENT);
  std::filesystem::remove_all(dir);
}

TEST_F(CApiProfile, a_profile_that_cannot_be_written_is_an_error) {
  char dir[] = "/tmp/uptier-c-api-XXXXXX";
  ASSERT_NE(mkdtemp(dir), nullptr);
  const std::string file = std::string(dir) + "/gone/p.upf";
  create({{"tier", "instrumented"}, {"profile", file.c_str()}});
  uptier_method m = add("probed", keep({probed}), signature(1));
  ASSERT_EQ(invoke(m, {1}), UPTIER_OK);
  EXPECT_EQ(uptier_runtime_save_profile(runtime_, &error_), UPTIER_IO);
  EXPECT_NE(error_.message[0], 0);
  std::filesystem::remove_all(dir);
}

// ---- Blocked threads ----------------------------------------------------------------------------

// Removed code is freed while a thread waits only if the thread has declared itself blocked.
TEST_F(CApiProfile, a_thread_that_waits_holds_no_code_back) {
  uptier_method m = add("first", keep({ret_first}), signature(2));
  std::atomic<int> step{0};
  auto reach = [&](int n) { step.store(n), step.notify_all(); };
  auto wait = [&](int n) {
    for (int at = step.load(); at < n; at = step.load()) step.wait(at);
  };
  std::thread waiter([&] {
    ASSERT_EQ(uptier_runtime_attach(runtime_, nullptr), UPTIER_OK);
    const uint64_t args[2] = {1, 2};
    ASSERT_EQ(uptier_runtime_invoke(runtime_, m, args, 2, nullptr, nullptr), UPTIER_OK);
    reach(1);
    wait(2);
    EXPECT_EQ(uptier_runtime_begin_blocked(runtime_), UPTIER_OK);
    reach(3);
    wait(4);
    EXPECT_EQ(uptier_runtime_end_blocked(runtime_), UPTIER_OK);
    uptier_runtime_detach(runtime_);
  });
  auto freed = [&] {
    uptier_totals all = {};
    all.size = sizeof all;
    EXPECT_EQ(uptier_runtime_totals(runtime_, &all, &error_), UPTIER_OK);
    return all.code_bytes_freed;
  };
  wait(1);
  ASSERT_EQ(uptier_runtime_remove_methods(runtime_, &m, 1, &error_), UPTIER_OK);
  EXPECT_EQ(freed(), 0u);
  reach(2);
  wait(3);
  EXPECT_GT(freed(), 0u);
  reach(4);
  waiter.join();
}

}  // namespace
}  // namespace uptier::test::c_api_profile_test
