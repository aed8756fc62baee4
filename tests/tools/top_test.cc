// `uptier top` beside a real `uptier run --listen`.
#include <gtest/gtest.h>

#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/tool_dir.h"
#include "tests/support/tool_process.h"

namespace uptier::test::top_test {
namespace {

using nlohmann::json;

std::vector<json> lines_of(const std::string& text) {
  std::vector<json> all;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) all.push_back(json::parse(line, nullptr, false));
  return all;
}

class Top : public ToolDir {
 protected:
  // Sockets that killed processes leave go with the directory.
  Top() { setenv("XDG_RUNTIME_DIR", dir_.c_str(), 1); }
  ~Top() override { unsetenv("XDG_RUNTIME_DIR"); }

  std::string socket() const { return path("it.sock"); }
  // Runs for minutes, unless it is ended.
  std::unique_ptr<ToolProcess> mix(std::vector<std::string> more = {}) const {
    std::vector<std::string> words{"run", "--sample=1000", "-O", "sample_engine=cpu_timer"};
    words.insert(words.end(), more.begin(), more.end());
    words.insert(words.end(), {wasm_path("mix"), "100000000"});
    auto p = std::make_unique<ToolProcess>(std::move(words));
    p->await_cpu(300);
    return p;
  }
  void fails(const std::string& words, int code, const std::string& why) const {
    const RunResult r = tool("top " + words);
    EXPECT_EQ(r.code, code) << words;
    EXPECT_EQ(r.out, "") << words;
    EXPECT_NE(r.err.find(why), std::string::npos) << words << ": " << r.err;
  }
};

TEST_F(Top, finds_a_process_by_its_id_and_shows_tables) {
  const auto p = mix({"--listen"});
  const RunResult r = tool("top " + p->name() + " --count 3 --interval 0.2");
  ASSERT_EQ(r.code, 0) << r.err;
  size_t tables = 0;
  for (size_t at = 0; (at = r.out.find("process " + p->name() + ", ", at)) != r.out.npos; ++at) {
    ++tables;
  }
  EXPECT_EQ(tables, 3u) << r.out;
  EXPECT_NE(r.out.find(" list_round\n"), std::string::npos) << r.out;
  EXPECT_NE(r.out.find(" optimized "), std::string::npos) << r.out;
  EXPECT_EQ(r.out.find('\x1b'), std::string::npos);  // no terminal
  const std::string name = p->name();
  p->end(SIGKILL);
  fails(name, 1, "there is no process " + name);  // although its socket is there
}

TEST_F(Top, a_terminal_is_cleared_for_each_table) {
  if (!installed("python3")) GTEST_SKIP() << "python3 is not installed";
  const auto p = mix({"--listen=" + socket()});
  const RunResult r = in_dir("python3 -c \"import pty; pty.spawn(['" UPTIER_TOOL
                             "', 'top', './it.sock', '--count', '3', '--interval', '0.1'])\"");
  const std::string clear = "\x1b[H\x1b[2Jprocess ";
  size_t tables = 0;
  for (size_t at = 0; (at = r.out.find(clear, at)) != r.out.npos; ++at) ++tables;
  EXPECT_EQ(tables, 3u) << r.out;
}

TEST_F(Top, refreshes_add_up) {
  const auto p = mix({"--listen=" + socket()});
  const RunResult r = tool("top it.sock --count 4 --interval 0.2 --json");
  EXPECT_EQ(r.code, 2) << "a word without a / is not a path";
  const RunResult s = tool("top ./it.sock --count 4 --interval 0.3 --json");
  ASSERT_EQ(s.code, 0) << s.err;
  const std::vector<json> all = lines_of(s.out);
  ASSERT_EQ(all.size(), 4u) << s.out;
  uint64_t samples = 0;
  std::map<std::string, uint64_t> by_name;
  for (const json& t : all) {
    EXPECT_EQ(t["process"], p->id());
    samples += t["samples"].get<uint64_t>();
    EXPECT_EQ(t["total_samples"], samples);
    EXPECT_GT(t["samples"], 0);
    double sum = 0, before = 1;
    for (const json& m : t["methods"]) {
      EXPECT_GT(m["samples"], 0) << m;
      EXPECT_LE(m["share"], before);
      EXPECT_LE(m["low"], m["share"]);
      EXPECT_GE(m["high"], m["share"]);
      before = m["share"];
      sum += before;
      by_name[m["name"]] += m["samples"].get<uint64_t>();
      EXPECT_EQ(m["total_samples"], by_name[m["name"]]) << m;
    }
    EXPECT_NEAR(sum, 1, 1e-6);
  }
  EXPECT_GE(all[1]["interval_ns"], 250'000'000);
}

// The last table covers the run up to a moment before its profile is saved.
TEST_F(Top, order_and_shares_agree_with_the_saved_profile) {
  const auto p = mix({"--listen=" + socket(), "--profile", path("p.upf")});
  p->await_cpu(2500);
  const RunResult r = tool("top ./it.sock --count 1 --json");
  p->end(SIGTERM);
  ASSERT_EQ(r.code, 0) << r.err;
  const json live = lines_of(r.out).at(0)["methods"];
  const json saved = json::parse(tool("profile top p.upf --json").out)["methods"];
  std::map<std::string, json> by_name;
  for (const json& m : saved) by_name[m["name"]] = m.value("time", json::object());
  ASSERT_GE(live.size(), 3u);
  const json* before = nullptr;
  for (const json& m : live) {
    if (m["share"] < 0.02) continue;
    const json& s = by_name[m["name"]];
    ASSERT_TRUE(s.contains("share")) << m;
    EXPECT_NEAR(m["share"].get<double>(), s["share"].get<double>(), 0.05) << m;
    // The order is the same, except where intervals overlap.
    if (before != nullptr) { EXPECT_LE(s["low"], (*before)["high"]) << m; }
    before = &by_name[m["name"]];
  }
  EXPECT_EQ(live[0]["name"], saved[0]["name"]);
}

TEST_F(Top, ends_with_the_process) {
  const auto p = mix({"--listen=" + socket()});
  ToolProcess top({"top", socket(), "--interval", "0.1"}, path("out"), path("err"));
  for (int i = 0; i < 1000 && slurp(path("out")).empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  p->end(SIGKILL);
  EXPECT_EQ(top.wait(), 0);
  EXPECT_NE(slurp(path("err")).find("has ended"), std::string::npos) << slurp(path("err"));
  fails(socket(), 1, "has ended");  // the socket that was left
}

TEST_F(Top, a_stopped_process_is_reported) {
  const auto p = mix({"--listen=" + socket()});
  p->stop();
  fails(socket(), 1, "no answer within 5 seconds");
  p->signal(SIGCONT);
  EXPECT_EQ(tool("top ./it.sock --count 1").code, 0);
}

TEST_F(Top, errors_name_the_cure) {
  const auto p = mix();
  fails(p->name(), 1,
        "process " + p->name() + " does not listen: start it with `uptier run --listen`");
  p->end(SIGKILL);
  ToolProcess gone({"options"});
  const std::string name = gone.name();
  gone.wait();
  fails(name, 1, "there is no process " + name);
  fails("mix", 2, "neither the id of a process nor the path of a socket");
  fails("0", 2, "is not a process id");
  fails("99999999999", 2, "is not a process id");
  fails("", 2, "PROCESS is required");
  fails("1 --interval 0", 2, "--interval");
  fails("1 --interval 61", 2, "--interval");
  fails("1 --count -1", 2, "--count");
  fails("1 -n -1", 2, "-n");
  fails("./none.sock", 1, "cannot find the socket");
  write_text("file", "x");
  fails("./file", 1, "it is not a socket");
  std::filesystem::permissions(dir_, std::filesystem::perms(0755));
  fails(path("none.sock"), 1, "chmod 700 closes it");
}

TEST_F(Top, a_process_of_another_user_is_refused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can become another user";
  if (!installed("setpriv")) GTEST_SKIP() << "setpriv is not installed";
  const std::string as_other = "setpriv --reuid=65534 --clear-groups ";
  const auto p = mix({"--listen"});
  const RunResult r = run_command(as_other + UPTIER_TOOL + " top " + p->name());
  EXPECT_EQ(r.code, 1);
  EXPECT_NE(r.err.find("only that user may see where its time goes"), std::string::npos) << r.err;
}

// Who listens under another name gives no answer that is believed.
TEST_F(Top, an_answer_of_something_else_is_refused) {
  if (!installed("python3")) GTEST_SKIP() << "python3 is not installed";
  const std::pair<std::string, std::string> cases[] = {
      {"HTTP/1.1 400\\r\\n\\r\\n", "it is no process of Uptier's"},
      {"uptier-live 2 10\\n", "it speaks version 2"},
      {"uptier-live 1 99999999999\\n", "more than"},
      {"uptier-live 1 4\\nabc\\n", "line 1 of the answer"},
      {"uptier-live 1 5000\\nprocess 1", "has ended"},
      {"error too many\\n", "refused: too many"},
  };
  for (const auto& [answer, words] : cases) {
    const RunResult r = in_dir(
        "python3 -c \"import socket; s = socket.socket(socket.AF_UNIX); s.bind('it.sock'); "
        "s.listen(); open('ready', 'w'); c = s.accept()[0]; c.recv(5); c.send(b'" +
        answer + "')\" & while ! test -e ready; do sleep 0.01; done; " + UPTIER_TOOL +
        " top ./it.sock --count 1; code=$?; wait; rm it.sock ready; exit $code");
    EXPECT_NE(r.code, 0) << answer;
    EXPECT_EQ(r.out, "") << answer;
    EXPECT_NE(r.err.find(words), std::string::npos) << answer << ": " << r.err;
  }
}

TEST_F(Top, sockets_of_killed_processes_are_swept) {
  const std::string use = UPTIER_TOOL, run = use + " run --listen " + wasm_path("mix");
  const RunResult r = in_dir(
      run +
      " 100000000 >/dev/null & id=$!; while ! test -S uptier/$id.sock; do sleep 0.02; done; " +
      use + " top $id --count 1; kill -9 $id; wait $id 2>/dev/null; " +
      "touch uptier/999999999.sock; ls uptier; " + run + " 10; ls uptier");
  EXPECT_NE(r.out.find("process "), std::string::npos) << r.out << r.err;
  // The killed one's was there before, and is not any more; no other file was touched.
  EXPECT_NE(r.out.find(".sock\n999999999.sock\nmix"), std::string::npos) << r.out;
  const std::string last = r.out.substr(r.out.find("checksum"));
  EXPECT_EQ(last.substr(last.find('\n')), "\n999999999.sock\n") << r.out;
  std::filesystem::permissions(path("uptier"), std::filesystem::perms(0755));
  const RunResult open = in_dir(run + " 10");
  EXPECT_EQ(open.code, 0);
  EXPECT_EQ(open.out.find("process"), std::string::npos);
  EXPECT_NE(open.err.find("chmod 700 closes it"), std::string::npos) << open.err;
}

TEST_F(Top, a_process_that_listens_samples_unless_it_is_told_otherwise) {
  const std::pair<std::string, int> cases[] = {{"--listen=" + socket(), 100},
                                               {"-O listen=" + socket(), 100},
                                               {"--listen=" + socket() + " --sample=50", 50},
                                               {"--listen=" + socket() + " -O sample_hz=0", 0}};
  for (const auto& [words, hz] : cases) {
    std::vector<std::string> all{"run"};
    std::istringstream in(words);
    for (std::string word; in >> word;) all.push_back(word);
    all.insert(all.end(), {wasm_path("mix"), "100000000"});
    ToolProcess p(all);
    p.await_cpu(100);
    const RunResult r = tool("top ./it.sock --count 1 --json");
    ASSERT_EQ(r.code, 0) << r.err;
    EXPECT_EQ(lines_of(r.out).at(0)["sample_hz"], hz) << words;
    p.end(SIGKILL);
  }
  const RunResult off =
      tool("run -O listen=off --report=json --report-to r.json " + wasm_path("mix"));
  ASSERT_EQ(off.code, 0) << off.err;
  EXPECT_FALSE(json::parse(slurp(path("r.json"))).contains("time"));
}

TEST_F(Top, the_programs_output_and_exit_code_stay_its_own) {
  const RunResult r = tool("run --listen=" + socket() + " " + wasm_path("mix"));
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.out, expected_output("mix"));
  EXPECT_EQ(r.err, "");
  EXPECT_FALSE(std::filesystem::exists(socket()));
  const RunResult bad = tool("run --listen=it.sock " + wasm_path("mix"));
  EXPECT_EQ(bad.code, 2);
  EXPECT_NE(bad.err.find("on, off or the path of a socket"), std::string::npos) << bad.err;
}

}  // namespace
}  // namespace uptier::test::top_test
