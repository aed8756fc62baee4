// The fleet: ClickHouse sums the profiles of many hosts, and the sum equals the one of our merge.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>

#include "profile/base/numbers.h"
#include "profile/data/schema.h"
#include "test_paths.h"
#include "tests/support/tool_dir.h"
#include "tests/support/trace_samples.h"

namespace uptier::fleet_test {
namespace {

using test::RunResult;

// Returns a port without a listener.
int free_port() {
  const int fd = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  bind(fd, reinterpret_cast<sockaddr*>(&address), size);
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  close(fd);
  return ntohs(address.sin_port);
}

class Fleet : public test::ToolDir {
 protected:
  ~Fleet() override {
    if (server_ <= 0) return;
    kill(server_, SIGTERM);
    for (int i = 0; i < 100 && runs(); ++i) usleep(100000);
    if (runs()) kill(server_, SIGKILL);
  }

  // The server is not a child of this process, and may stay a zombie if its parent does not reap
  // it.
  bool runs() const {
    const std::string state = test::slurp("/proc/" + std::to_string(server_) + "/stat");
    const size_t name = state.rfind(") ");
    return name != std::string::npos && state[name + 2] != 'Z';
  }

  // Starts a server that keeps everything in this directory. If another process has taken its port
  // meanwhile, the server exits and is started again with another port.
  void start() {
    write_text("users.xml",
               "<yandex><profiles><default/></profiles><users><default><password></password>"
               "<networks><ip>127.0.0.1</ip></networks><profile>default</profile>"
               "<quota>default</quota></default></users><quotas><default/></quotas></yandex>");
    RunResult answer;
    for (int attempt = 0; attempt < 5 && answer.out != "1\n"; ++attempt) {
      configure(free_port());
      const RunResult r = in_dir("clickhouse-server --config-file=config.xml >out 2>&1 & echo $!");
      server_ = std::atoi(r.out.c_str());
      ASSERT_GT(server_, 0) << r.err;
      for (int i = 0; i < 200 && runs() && answer.out != "1\n"; ++i) {
        usleep(100000);
        answer = client("-q 'SELECT 1'");
      }
      if (runs()) break;
    }
    ASSERT_TRUE(runs() && answer.out == "1\n")
        << answer.err << test::slurp(path("out")) << test::slurp(path("errors"));
  }
  void configure(int port) {
    port_ = port;
    std::filesystem::create_directories(path("data"));
    write_text("config.xml", "<yandex><logger><level>warning</level><log>" + path("log") +
                                 "</log><errorlog>" + path("errors") +
                                 "</errorlog></logger><tcp_port>" + std::to_string(port_) +
                                 "</tcp_port><listen_host>127.0.0.1</listen_host><path>" +
                                 path("data/") + "</path><tmp_path>" + path("data/tmp/") +
                                 "</tmp_path><user_files_path>" + path("data/files/") +
                                 "</user_files_path><format_schema_path>" + path("data/formats/") +
                                 "</format_schema_path><users_config>users.xml</users_config>"
                                 "<default_profile>default</default_profile>"
                                 "<default_database>default</default_database>"
                                 "<mark_cache_size>67108864</mark_cache_size></yandex>");
  }
  RunResult client(const std::string& words) const {
    return in_dir("clickhouse-client --host 127.0.0.1 --port " + std::to_string(port_) + " " +
                  words);
  }
  // Starts a server with the tables; skips the test if that is not possible.
  void set_up() {
    if (!installed("clickhouse-server") || !installed("clickhouse-client")) {
      GTEST_SKIP()
          << "SKIPPED: clickhouse-server and clickhouse-client are not installed (Debian has "
             "them), the fleet's sums were not compared";
    }
    start();
    if (HasFatalFailure()) return;
    const RunResult schema = client("--multiquery < " UPTIER_SOURCE_DIR "/docs/fleet.sql");
    ASSERT_EQ(schema.code, 0) << schema.err;
  }
  // Returns the sum under a cap and a quorum.
  ProfileFile limited(uint64_t cap, uint64_t quorum) const {
    const RunResult r = in_dir("sed 's/{cap:UInt64}/" + std::to_string(cap) +
                               "/g; s/{quorum:UInt64}/" + std::to_string(quorum) +
                               "/g' " UPTIER_SOURCE_DIR "/docs/fleet-limits.sql > limits.sql");
    EXPECT_EQ(r.code, 0) << r.err;
    const RunResult rows = client("--format TabSeparatedWithNames < limits.sql > limited.tsv");
    EXPECT_EQ(rows.code, 0) << rows.err;
    const RunResult import = tool("profile import limited.tsv -o limited.upf");
    EXPECT_EQ(import.code, 0) << import.err;
    return read("limited.upf");
  }
  void feed(const std::string& names) const {
    const RunResult rows =
        in_dir("for f in " + names +
               "; do " UPTIER_TOOL " profile export $f --format=tsv -o $f.tsv; done");
    ASSERT_EQ(rows.code, 0) << rows.err;
    const RunResult r = in_dir("for f in " + names + "; do tail -n +2 $f.tsv; done > batch");
    ASSERT_EQ(r.code, 0) << r.err;
    const RunResult fed = client("-q 'INSERT INTO uptier.rows FORMAT TabSeparated' < batch");
    ASSERT_EQ(fed.code, 0) << fed.err;
  }

  int port_ = 0;
  pid_t server_ = 0;
};

// All kinds, any names, counts small enough that the sum of 20 does not wrap; now and then other
// code.
Profile odd_profile(test::Generator& generator) {
  Profile p = generator.profile();
  for (auto& [key, m] : p.methods) {
    m.key.module_key = ~key.module_key;
    for (const Slot& slot : m.schema.slots) {
      const auto words = profile::words_of(slot.kind);
      for (size_t i = 0; i < words.size(); ++i) {
        uint64_t& count = m.counts[slot.word + i];
        const bool wide = words[i].rule == profile::WordRule::kWide ||
                          words[i].rule == profile::WordRule::kWideHigh;
        const bool extreme =
            words[i].rule == profile::WordRule::kMin || words[i].rule == profile::WordRule::kMax;
        if (!wide && !extreme) count >>= 8;
        if (extreme && m.counts[slot.word] == 0) count = 0;
      }
    }
    for (auto& [site, table] : m.tables) {
      for (auto& [at, entry] : table) entry.count = (entry.count >> 8) + 1;
    }
    m.weigh(1 + generator.below(3));
    for (uint64_t* n : {&m.calls, &m.sampled_calls, &m.iterations, &m.bursts, &m.weight_squares,
                        &m.guessed_calls}) {
      *n >>= 8;
    }
  }
  Profile moved;
  for (auto& [key, m] : p.methods) moved.methods.emplace(m.key, m);
  return moved;
}

TEST_F(Fleet, clickhouse_sums_as_merge_does) {
  set_up();
  if (IsSkipped() || HasFatalFailure()) return;
  std::string names, batch;
  test::Generator generator(51);
  const char* programs[] = {"objects", "mix", "phases"};
  for (int i = 0; i < 20; ++i) {
    const std::string name = "p" + std::to_string(i) + ".upf";
    if (i % 4 == 3) {
      ProfileInfo info;
      info.host = "host'" + std::to_string(i);
      info.runs = 2;
      info.time = static_cast<uint64_t>(1000 + i);
      info.interval = 16;
      info.uploads = {{info.time, ~static_cast<uint64_t>(i)}};
      write(name, odd_profile(generator), info);
    } else {
      run(programs[i % 3], name, "--interval=" + std::to_string(1 + 5 * (i % 4)));
    }
    names += " " + name;
    batch += " " + name;
    if (i % 5 != 4) continue;
    feed(batch);
    batch.clear();
  }
  ASSERT_EQ(tool("profile merge -o ours.upf" + names).code, 0);
  const ProfileFile ours = read("ours.upf");
  ASSERT_EQ(ours.report.saturated, 0u);
  // With the parts as they are, and after the server has merged them.
  for (const char* step :
       {"SELECT 1", "OPTIMIZE TABLE uptier.sums FINAL", "OPTIMIZE TABLE uptier.facts FINAL"}) {
    ASSERT_EQ(client("-q '" + std::string(step) + "'").code, 0);
    const RunResult read_back =
        client("-q 'SELECT * FROM uptier.profile FORMAT TabSeparatedWithNames' > sum.tsv");
    ASSERT_EQ(read_back.code, 0) << read_back.err;
    const RunResult import = tool("profile import sum.tsv -o theirs.upf");
    ASSERT_EQ(import.code, 0) << import.err;
    const ProfileFile theirs = read("theirs.upf");
    EXPECT_GT(theirs.profile.methods.size(), 100u);
    EXPECT_TRUE(theirs.profile == ours.profile) << step;
    EXPECT_EQ(theirs.info, ours.info) << step;
    EXPECT_FALSE(ours.calls.graph.empty() || ours.calls.shapes.empty());
    EXPECT_TRUE(theirs.calls == ours.calls) << step;
  }
  // The table holds a sum, not the rows that were inserted.
  const RunResult rows = client("-q 'SELECT count() FROM uptier.sums'");
  const RunResult words = in_dir("for f in p*.upf; do " UPTIER_TOOL
                                 " profile export $f --format=tsv; done | grep -c '\tsum\t'");
  EXPECT_LT(2 * std::atoi(rows.out.c_str()), std::atoi(words.out.c_str()));
}

// The profile of one host: different counts, also negative sums; some methods and entries are
// missing.
Profile seen_by_host(const Profile& all, test::Generator& generator) {
  Profile p = all;
  std::erase_if(p.methods, [&](const auto&) { return generator.chance(3); });
  for (auto& [key, m] : p.methods) {
    for (const Slot& slot : m.schema.slots) {
      const auto words = profile::words_of(slot.kind);
      for (size_t i = 0; i < words.size(); ++i) {
        uint64_t* at = &m.counts[slot.word + i];
        switch (words[i].rule) {
          case profile::WordRule::kSum:
          case profile::WordRule::kOther: *at = generator.below(uint64_t{1} << 50); break;
          case profile::WordRule::kWide: {
            const auto size = static_cast<int>(generator.below(120));
            auto sum = static_cast<profile::Wide>(
                (profile::UnsignedWide{generator.below(UINT64_MAX)} << 64) >> (128 - size - 1));
            profile::store_wide(at, generator.chance(2) ? -sum : sum);
            break;
          }
          default: break;
        }
      }
      if (m.counts[slot.word] == 0) m.counts[slot.word] = 1;
    }
    for (auto& [site, table] : m.tables) {
      std::erase_if(table, [&](const auto&) { return generator.chance(3); });
      for (auto& [at, entry] : table) entry.count = 1 + generator.below(1000);
    }
    std::erase_if(m.tables, [](const auto& item) { return item.second.empty(); });
    m.weigh(1 + generator.below(3));
    m.calls = 1 + generator.below(1000);
  }
  return p;
}

// Caps and quorums per host give the same in the database as in a merge of one file per host.
TEST_F(Fleet, clickhouse_keeps_caps_and_quorums) {
  set_up();
  if (IsSkipped() || HasFatalFailure()) return;
  test::Generator generator(52);
  const Profile all = odd_profile(generator);
  std::string hosts, fed;
  uint64_t number = 0;
  for (int h = 0; h < 5; ++h) {
    std::string of_host;
    for (int f = 0; f <= h % 3; ++f) {
      const std::string name = "h" + std::to_string(h) + std::to_string(f) + ".upf";
      if (h == 4) {
        run("objects", name, "--interval=7");
        ProfileFile one = read(name);
        one.info.host = "host 4";
        ASSERT_TRUE(profile::replace_file(
                        path(name), profile_to_file(one.profile, one.info, {}, nullptr, &one.calls))
                        .ok());
      } else {
        ProfileInfo info;
        info.host = "host " + std::to_string(h);
        info.runs = 1 + generator.below(7);
        info.weight = 1000 * info.runs;
        info.uploads = {{1000 + ++number, number}};
        CallProfile calls;
        for (uint32_t n = 0; n < 4; ++n) {
          for (const auto& [key, m] : all.methods) {
            if (generator.chance(2)) continue;
            auto to = all.methods.begin();
            std::advance(to, generator.below(all.methods.size()));
            calls.graph[{key, to->first}] = 1 + generator.below(99);
            calls.first[key] = {n, 1000};
            calls.shapes[key] = {m.schema.cfg_hash, {{2}, {}}, {}};
            if (h == 1) calls.shapes[key].anchors = {{AnchorKind::kCall, 1, 1, 1}};
          }
        }
        const Profile p = seen_by_host(all, generator);
        ASSERT_TRUE(
            profile::replace_file(path(name), profile_to_file(p, info, {}, nullptr, &calls)).ok());
      }
      of_host += " " + name;
    }
    const std::string host = "host" + std::to_string(h) + ".upf";
    ASSERT_EQ(tool("profile merge -o " + host + of_host).code, 0);
    hosts += " " + host;
    fed += of_host;
  }
  feed(fed);
  ASSERT_EQ(client("-q 'OPTIMIZE TABLE uptier.by_voter FINAL'").code, 0);
  for (const auto& [cap, quorum] : {std::pair<uint64_t, uint64_t>{0, 1}, {3, 1}, {0, 2}, {2, 3}}) {
    const test::RunResult merged =
        tool("profile merge -o ours.upf --cap-per-host " + std::to_string(cap) + " --quorum " +
             std::to_string(quorum) + hosts);
    ASSERT_EQ(merged.code, 0) << merged.err;
    ProfileFile ours = read("ours.upf");
    const ProfileFile theirs = limited(cap, quorum);
    ours.profile.inlined.clear();  // the database does not report these under limits
    EXPECT_TRUE(theirs.profile.inlined.empty());
    EXPECT_EQ(theirs.info, ours.info) << cap << " " << quorum;
    EXPECT_GT(ours.profile.methods.size(), 1u);
    EXPECT_EQ(to_text(theirs.profile), to_text(ours.profile)) << cap << " " << quorum;
    EXPECT_TRUE(theirs.calls == ours.calls) << cap << " " << quorum;
    EXPECT_FALSE(ours.calls.graph.empty() || ours.calls.shapes.empty());
  }
}

}  // namespace
}  // namespace uptier::fleet_test
