// Data of a host in profiles: attached, gathered from sources, written from where it lies.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "profile/data/text.h"
#include "tests/support/program_runs.h"
#include "tests/support/runtime_host.h"
#include "uptier/profile_file.h"
#include "uptier/profile_query.h"

namespace {

// Bytes of a range of memory that were passed to writev; the range is one test's large chunk.
const char* watched_begin = nullptr;
const char* watched_end = nullptr;
std::atomic<size_t> watched_bytes{0}, other_bytes{0};

}  // namespace

extern "C" ssize_t writev(int fd, const struct iovec* pieces, int count) {
  for (int i = 0; watched_begin != nullptr && i < count; ++i) {
    const auto* at = static_cast<const char*>(pieces[i].iov_base);
    const bool inside = at >= watched_begin && at + pieces[i].iov_len <= watched_end;
    (inside ? watched_bytes : other_bytes) += pieces[i].iov_len;
  }
  return ::syscall(SYS_writev, fd, pieces, count);
}

namespace uptier::test::gather_test {
namespace {

using Bytes = std::vector<std::byte>;

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text));
}
template <typename T>
std::span<const std::byte> bytes_at(const T& object) {
  return std::as_bytes(std::span(&object, 1));
}

// A host with a counter, and a table that lies in read-only memory with its headers: whole chunks.
class Tables : public DataSource {
 public:
  uint64_t hits = 0;
  std::atomic<int> asked{0}, released{0};
  std::function<void(GatherList&)> more;

  std::string_view name() const noexcept override { return "tables"; }
  void gather(GatherList& list) noexcept override {
    ++asked;
    const GatheredInstrument one{"iree.instrument.counter", "calc", "ab", "hits", "",
                                 list.keep(bytes_at(hits))};
    list.instruments({&one, 1});
    if (more) more(list);
  }
  void release() noexcept override { ++released; }
};

class Gather : public testing::Test {
 protected:
  Gather() {
    char name[] = "/tmp/uptier-gather-XXXXXX";
    dir_ = mkdtemp(name);
  }
  ~Gather() override { std::filesystem::remove_all(dir_); }

  std::string path(const std::string& file) const { return dir_ + "/" + file; }
  Options options(const std::string& file) {
    Options o;
    if (!file.empty()) o.profile = path(file);
    o.workers = 0;
    o.policy = PolicyMode::kNever;
    o.tier = TierMode::kInstrumented;
    o.log = [](void* lines, LogLevel, std::string_view line) noexcept {
      static_cast<std::string*>(lines)->append(line).append("\n");
    };
    o.log_user = &log_;
    return o;
  }
  std::unique_ptr<IrRuntime> runtime(const std::string& file) {
    return std::make_unique<IrRuntime>(parse_or_die(kSumText), options(file));
  }
  static void save(IrRuntime& r) {
    const Status s = r.runtime->save_profile();
    EXPECT_TRUE(s) << s.error().message;
  }
  static ProfileFile parsed(const Bytes& bytes) {
    Result<ProfileFile> f = profile_from_file(bytes);
    EXPECT_TRUE(f.ok());
    if (!f.ok()) return {};
    EXPECT_TRUE(f->warnings.empty()) << f->warnings.front();
    EXPECT_FALSE(f->truncated);
    return std::move(*f);
  }
  ProfileFile read(const std::string& file) const {
    const std::string text = slurp(path(file));
    const auto bytes = bytes_of(text);
    return parsed({bytes.begin(), bytes.end()});
  }
  uint64_t hits(const std::string& file) const {
    const std::string text = slurp(path(file));
    const auto a = query(bytes_of(text), "calc", "ab", "hits");
    return a ? std::get<CounterAnswer>(a->what).count : 0;
  }
  static Bytes gathered(IrRuntime& r, GatherReport* report = nullptr) {
    Bytes all;
    const Result<GatherReport> done = r.runtime->gather([&](std::span<const Piece> pieces) {
      for (const Piece& p : pieces) {
        const auto* at = static_cast<const std::byte*>(p.data);
        all.insert(all.end(), at, at + p.bytes);
      }
      return Status();
    });
    EXPECT_TRUE(done.ok());
    if (!done.ok()) return {};
    EXPECT_EQ(done->bytes, all.size());
    if (report != nullptr) *report = *done;
    return all;
  }

  std::string dir_, log_;
};

TEST_F(Gather, a_saved_file_has_attached_data) {
  const std::string table = "rows and rows";
  {
    const auto r = runtime("p.upf");
    ASSERT_TRUE(r->runtime->attach_data("my.table", "{\"v\":1}", bytes_of(table)));
    r->call("sum", {10});
  }  // the destructor saves
  const ProfileFile f = read("p.upf");
  EXPECT_EQ(f.profile.methods.size(), 1u);
  ASSERT_EQ(f.foreign.data.size(), 1u);
  EXPECT_EQ(f.foreign.data.begin()->type, "my.table");
  EXPECT_EQ(f.foreign.data.begin()->metadata, "{\"v\":1}");
  EXPECT_TRUE(std::ranges::equal(f.foreign.data.begin()->data, bytes_of(table)));
}

TEST_F(Gather, runs_add_up_and_equal_tables_are_kept_once) {
  const std::string table = "the same in each run";
  for (int run = 0; run < 3; ++run) {
    const auto r = runtime("p.upf");
    Tables tables;
    tables.hits = 5;  // equal segments: the runs still count three times
    ASSERT_TRUE(r->runtime->attach_data(tables));
    ASSERT_TRUE(r->runtime->attach_data("my.table", "", bytes_of(table)));
    save(*r);
    EXPECT_EQ(tables.asked, 1);
    EXPECT_EQ(tables.released, 1);
    ASSERT_TRUE(r->runtime->detach_data(tables));
  }
  EXPECT_EQ(hits("p.upf"), 15u);
  EXPECT_EQ(read("p.upf").foreign.data.size(), 1u);
  EXPECT_EQ(read("p.upf").info.runs, 3u);
}

// Another process saves in between, so the first part of the data is no longer a segment of its own.
TEST_F(Gather, a_run_counts_once_however_often_it_is_saved) {
  for (const bool between : {false, true}) {
    const std::string file = between ? "b.upf" : "a.upf";
    std::string state = "first";
    {
      const auto r = runtime(file);
      Tables tables;
      ASSERT_TRUE(r->runtime->attach_data(tables));
      const auto id = r->runtime->attach_data("my.state", "", bytes_of(state));
      ASSERT_TRUE(id.ok());
      tables.hits = 5;
      r->call("sum", {10});
      save(*r);
      EXPECT_EQ(hits(file), 5u);
      if (between) {
        const auto other = runtime(file);
        Tables its;
        its.hits = 100;
        ASSERT_TRUE(other->runtime->attach_data(its));
        save(*other);
        ASSERT_TRUE(other->runtime->detach_data(its));
      }
      state = "other";
      tables.hits = 8;
      r->call("sum", {10});
      save(*r);
      ASSERT_TRUE(r->runtime->detach_data(*id));
      ASSERT_TRUE(r->runtime->detach_data(tables));
    }
    EXPECT_EQ(hits(file), between ? 108u : 8u);
    const ProfileFile f = read(file);
    EXPECT_EQ(f.info.runs, between ? 2u : 1u);
    ASSERT_EQ(f.foreign.data.size(), 1u) << "the first state was replaced";
    EXPECT_TRUE(std::ranges::equal(f.foreign.data.begin()->data, bytes_of("other")));
  }
}

TEST_F(Gather, a_large_chunk_is_written_from_its_own_address) {
  constexpr size_t kSize = 64 << 20;
  const std::string large(kSize, 'x');
  const auto r = runtime("p.upf");
  ASSERT_TRUE(r->runtime->attach_data("my.heap", "", bytes_of(large)));
  watched_begin = large.data();
  watched_end = large.data() + large.size();
  save(*r);
  watched_begin = nullptr;
  EXPECT_EQ(watched_bytes, kSize);
  EXPECT_LT(other_bytes, 1000u) << "headers and padding";
  size_t from_host = 0, pieces = 0;
  ASSERT_TRUE(r->runtime->gather([&](std::span<const Piece> list) {
    for (const Piece& p : list) from_host += p.data == large.data() ? p.bytes : 0;
    pieces = list.size();
    return Status();
  }));
  EXPECT_EQ(from_host, kSize);
  EXPECT_LT(pieces, 10u);
}

TEST_F(Gather, gathering_is_a_profile_file_without_a_file) {
  const auto r = runtime("");
  Tables tables;
  tables.hits = 3;
  ASSERT_TRUE(r->runtime->attach_data(tables));
  for (int i = 0; i < 4; ++i) r->call("sum", {10});
  GatherReport report;
  const ProfileFile f = parsed(gathered(*r, &report));
  ASSERT_EQ(f.profile.methods.size(), 1u);
  EXPECT_EQ(f.profile.methods.begin()->second.name, "sum");
  EXPECT_EQ(f.profile.methods.begin()->second.calls, 4u);
  EXPECT_EQ(f.foreign.instruments.size(), 1u);
  EXPECT_EQ(f.info.runs, 1u);
  EXPECT_EQ(report.sources, 1u);
  EXPECT_TRUE(report.refused.empty());
  ASSERT_TRUE(r->runtime->detach_data(tables));
  EXPECT_TRUE(parsed(gathered(*r)).foreign.empty());
}

// Chunks that a program has in read-only memory, with its own string table, and a payload that lies
// elsewhere: the pieces of one chunk.
TEST_F(Gather, read_only_chunks_are_joined_with_a_payload_elsewhere) {
  // Strings "" "x.y" "calc" "ab" "k"; an instrument table with one definition of 8 bytes.
  alignas(16) static const struct {
    uint32_t strings[4] = {0x42444949, 1, 8 + 5 * 16 + 16, 0};
    uint32_t head[2] = {0, 5};
    uint64_t views[5][2] = {{0, 0}, {1, 3}, {5, 4}, {10, 2}, {13, 1}};
    char texts[24] = "\0x.y\0calc\0ab\0k";
    uint32_t table[4] = {0x42444949, 0x10, 16 + 40 + 8, 0};
    uint32_t counts[4] = {0, 0, 0, 1};
    uint32_t names[6] = {1, 2, 3, 4, 0, 0};
    uint64_t place[2] = {0, 8};
  } kTables;
  static_assert(sizeof kTables == 16 + 8 + 80 + 24 + 16 + 16 + 40);
  const uint64_t payload = 0x1122334455667788;
  Tables tables;
  tables.more = [&](GatherList& list) {
    list.borrow(bytes_at(kTables));
    list.borrow(bytes_at(payload));
  };
  const auto r = runtime("p.upf");
  ASSERT_TRUE(r->runtime->attach_data(tables));
  save(*r);
  EXPECT_EQ(log_, "");
  const ForeignTables foreign = read("p.upf").foreign;
  const auto is_ours = [](const ForeignInstrument& i) { return i.type == "x.y"; };
  const auto at = std::ranges::find_if(foreign.instruments, is_ours);
  ASSERT_NE(at, foreign.instruments.end());
  EXPECT_EQ(at->scope_key, "k");
  EXPECT_TRUE(std::ranges::equal(at->payload, bytes_at(payload)));
  ASSERT_TRUE(r->runtime->detach_data(tables));
}

TEST_F(Gather, a_source_that_lies_is_left_out_as_a_whole_and_named) {
  const auto r = runtime("p.upf");
  Tables good, bad;
  good.hits = 7;
  bad.more = [](GatherList& list) { list.copy(bytes_of("no chunk")); };
  ASSERT_TRUE(r->runtime->attach_data(bad));
  ASSERT_TRUE(r->runtime->attach_data(good));
  save(*r);
  EXPECT_EQ(hits("p.upf"), 7u) << "the bad one has a counter too, which is left out";
  EXPECT_NE(log_.find("data source \"tables\" is left out: byte "), std::string::npos) << log_;
  EXPECT_NE(log_.find("append whole chunks"), std::string::npos) << log_;
  GatherReport report;
  (void)gathered(*r, &report);
  EXPECT_EQ(report.refused.size(), 1u);
  EXPECT_EQ(bad.asked, bad.released);
  ASSERT_TRUE(r->runtime->detach_data(bad));
  ASSERT_TRUE(r->runtime->detach_data(good));
}

TEST_F(Gather, a_source_may_read_the_runtime_but_not_save_or_attach) {
  const auto r = runtime("p.upf");
  Tables tables, other;
  std::vector<std::string> errors;
  const auto note = [&](const auto& result) {
    errors.push_back(result.ok() ? "ok" : result.error().message);
  };
  tables.more = [&](GatherList&) {
    EXPECT_EQ(r->runtime->report().methods.size(), 1u);
    note(r->runtime->save_profile());
    note(r->runtime->attach_data(other));
    note(r->runtime->detach_data(tables));
    note(r->runtime->gather([](std::span<const Piece>) { return Status(); }));
  };
  ASSERT_TRUE(r->runtime->attach_data(tables));
  r->call("sum", {10});
  save(*r);
  ASSERT_EQ(errors.size(), 4u);
  for (const std::string& e : errors)
    EXPECT_NE(e.find("refused while data is gathered"), e.npos) << e;
  ASSERT_TRUE(r->runtime->detach_data(tables));
}

TEST_F(Gather, misuse_is_refused) {
  const auto r = runtime("");
  Tables tables;
  EXPECT_EQ(r->runtime->attach_data("", "", {}).error().code, ErrorCode::kInvalidArgument);
  ASSERT_TRUE(r->runtime->attach_data(tables));
  EXPECT_EQ(r->runtime->attach_data(tables).error().code, ErrorCode::kInvalidArgument);
  ASSERT_TRUE(r->runtime->detach_data(tables));
  EXPECT_EQ(r->runtime->detach_data(tables).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(r->runtime->detach_data(17).error().code, ErrorCode::kNotFound);
  const uint64_t words[2] = {};
  EXPECT_EQ(r->runtime->import_counters({"device", "ab", {"one"}, words, ""}).error().message,
            "import_counters: 1 keys for 2 words; pass one key for each word");
  EXPECT_EQ(r->runtime->import_counters({"uptier", "ab", {"one", "two"}, words, ""}).error().code,
            ErrorCode::kInvalidArgument);
  const Error failed{ErrorCode::kIo, "no room"};
  EXPECT_EQ(r->runtime->gather([&](std::span<const Piece>) { return Status(failed); }).error(),
            failed);
}

// detach_data returns only after the transport is done with the bytes.
TEST_F(Gather, detaching_waits_for_a_gathering) {
  const auto r = runtime("");
  Tables tables;
  ASSERT_TRUE(r->runtime->attach_data(tables));
  std::atomic<bool> inside{false}, leave{false}, detached{false};
  std::thread gatherer([&] {
    (void)r->runtime->gather([&](std::span<const Piece>) {
      inside = true;
      while (!leave) std::this_thread::yield();
      EXPECT_FALSE(detached);
      EXPECT_EQ(tables.released, 0);
      return Status();
    });
  });
  while (!inside) std::this_thread::yield();
  std::thread detacher([&] {
    EXPECT_TRUE(r->runtime->detach_data(tables));
    detached = true;
    EXPECT_EQ(tables.released, 1);
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  leave = true;
  gatherer.join();
  detacher.join();
}

// A subscriber of events is a source like any other.
TEST_F(Gather, a_subscriber_may_be_a_source) {
  struct Counter : EventSubscriber, DataSource {
    std::atomic<uint64_t> installed{0};
    void on_event(const Event&) noexcept override { ++installed; }
    std::string_view name() const noexcept override { return "counter"; }
    void gather(GatherList& list) noexcept override {
      const uint64_t now = installed;
      const GatheredInstrument one{"iree.instrument.counter", "calc", "ab", "hits", "",
                                   list.keep(bytes_at(now))};
      list.instruments({&one, 1});
    }
  } counter;
  const auto r = runtime("p.upf");
  ASSERT_TRUE(r->runtime->subscribe(counter, kinds_of(EventKind::kInstalled)).ok());
  ASSERT_TRUE(r->runtime->attach_data(counter));
  r->call("sum", {10});
  r->runtime->flush();
  save(*r);
  EXPECT_GE(counter.installed, 1u);
  EXPECT_EQ(hits("p.upf"), counter.installed);
  ASSERT_TRUE(r->runtime->detach_data(counter));
  ASSERT_TRUE(r->runtime->unsubscribe(counter));
}

// work() calls leaf() three times; `more` comes after that.
std::string work(const std::string& more) {
  return R"(
func @leaf(i64) -> i64 {
b0(v0: i64):
  v1 = const.i64 1
  v2 = add.i64 v0, v1
  return v2
}
func @work(i64) -> i64 {
b0(v0: i64):
  v1 = call @leaf(v0)
  v2 = call @leaf(v1)
  v3 = call @leaf(v2)
  v4 = eqz.i64 v3
  v5 = eqz.i64 v0
)" + more +
         "}\n";
}

// The saved profile of the old code matches the new code; so instruments that are kept by the old
// code's hash are found by the new one.
TEST_F(Gather, changed_methods_name_the_code_that_they_were_made_from) {
  const std::string texts[] = {
      work("  branch v4, b1, b2\nb1:\n  return v3\nb2:\n  return v0\n"),
      work("  branch v4, b1, b2\nb1:\n  return v3\nb2:\n  branch v5, b3, b4\nb3:\n  return v0\n"
           "b4:\n  return v1\n")};
  std::string hashes[2];
  for (int run = 0; run < 2; ++run) {
    IrRuntime r(parse_or_die(texts[run]), options("p.upf"));
    ThreadScope scope(*r.runtime);
    for (uint64_t i = 0; i < 50; ++i) ASSERT_TRUE(r.call("work", {i}).ok());
    r.runtime->flush();
    for (const auto& [key, m] : r.runtime->profile().methods) {
      if (m.name == "work") hashes[run] = profile::hex(m.schema.cfg_hash);
    }
    EXPECT_EQ(r.runtime->saved_report().matched, run == 0 ? 0u : 1u);
    const uint64_t words[] = {7};
    if (run == 0) {
      ASSERT_TRUE(r.runtime->import_counters({"calc", hashes[0], {"hits"}, words, ""}).ok());
    }
    save(r);
  }
  ASSERT_NE(hashes[0], hashes[1]);
  const std::string file = slurp(path("p.upf"));
  const auto a = query(bytes_of(file), "calc", hashes[1], "hits");
  ASSERT_TRUE(a);
  EXPECT_EQ(std::get<CounterAnswer>(a->what).count, 7u);
  EXPECT_EQ(a->changes, 1u);
}

TEST_F(Gather, counters_of_other_code_are_read_at_each_save) {
  uint64_t words[2] = {1, 2};
  {
    const auto r = runtime("p.upf");
    ASSERT_TRUE(r->runtime->import_counters({"calc", "ab", {"hits", "misses"}, words, ""}).ok());
    save(*r);
    EXPECT_EQ(hits("p.upf"), 1u);
    words[0] = 30;
    save(*r);
  }
  EXPECT_EQ(hits("p.upf"), 30u);
}

}  // namespace
}  // namespace uptier::test::gather_test
