// The writable mapping of code: where it is, who can find its address, and how the library copes
// with policies that forbid making pages executable.
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <set>
#include <sstream>

#include "jit/code/code_space.h"
#include "jit/x64/code_buffer.h"
#include "tests/support/code_machine.h"
#include "tests/support/runtime_host.h"

namespace uptier::test::code_mapping_test {
namespace {

using jit::CodeSpace;

constexpr uint64_t kPage = CodeSpace::kPage;

struct Mapped {
  uint64_t begin = 0, end = 0, inode = 0;
  std::string rights;
};

std::vector<Mapped> mappings() {
  std::vector<Mapped> all;
  std::ifstream in("/proc/self/maps");
  for (std::string line; std::getline(in, line);) {
    Mapped m;
    char rights[8];
    unsigned long offset;
    std::sscanf(line.c_str(), "%lx-%lx %7s %lx %*s %lu", &m.begin, &m.end, rights, &offset,
                &m.inode);
    m.rights = rights;
    all.push_back(m);
  }
  return all;
}

Mapped at(const void* p) {
  auto address = reinterpret_cast<uint64_t>(p);
  for (const Mapped& m : mappings()) {
    if (m.begin <= address && address < m.end) return m;
  }
  return {};
}

// Returns where a space's memory is mapped outside of its code area: begin and end of the twin.
Mapped twin_of(const CodeSpace& space, const void* code) {
  uint64_t inode = at(code).inode;
  Mapped twin;
  for (const Mapped& m : mappings()) {
    auto* begin = reinterpret_cast<const void*>(m.begin);  // NOLINT(performance-no-int-to-ptr)
    if (m.inode != inode || inode == 0 || space.contains(begin)) continue;
    if (twin.begin == 0) twin.begin = m.begin;
    twin.end = m.end;
  }
  return twin;
}

std::unique_ptr<CodeSpace> packed_space(bool at_once = false) {
  return CodeMachine::take(CodeSpace::create(
      {.code_budget = 64 * kPage, .data_bytes = kPage, .packed = true, .open_at_once = at_once}));
}

std::unique_ptr<jit::Code> make_code(CodeSpace& space) {
  jit::CodeBuffer b(space);
  b.assembler().mov(jit::x86::eax, jit::imm(7));
  b.assembler().ret();
  return CodeMachine::take(b.publish(space, 0, MethodId(0)));
}

int64_t distance_of_twin() {
  auto space = packed_space();
  auto code = make_code(*space);
  Mapped twin = twin_of(*space, code->base());
  EXPECT_NE(twin.begin, 0u) << "code is not mapped twice";
  auto area = reinterpret_cast<uint64_t>(space->data().data());
  return static_cast<int64_t>(twin.begin - area);
}

// Runs `body` in a child process. Returns its exit code and the text that it wrote.
template <typename Body>
std::pair<int, std::string> in_child(Body body) {
  int ends[2];
  if (pipe(ends) != 0) return {-1, ""};
  std::fflush(nullptr);
  pid_t child = fork();
  if (child == 0) {
    std::string said;
    int code = body(said);
    (void)!write(ends[1], said.data(), said.size());
    _exit(code);
  }
  close(ends[1]);
  std::string said;
  char buffer[256];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;) {
    said.append(buffer, static_cast<size_t>(n));
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status), said};
}

// ---- The address --------------------------------------------------------------------------------

TEST(CodeTwin, lies_at_another_distance_in_each_space_and_process) {
  std::set<int64_t> distances;
  for (int n = 0; n < 8; ++n) distances.insert(distance_of_twin());
  for (int n = 0; n < 8; ++n) {
    auto [code, said] = in_child([](std::string& out) {
      out = std::to_string(distance_of_twin());
      return 0;
    });
    ASSERT_EQ(code, 0);
    distances.insert(std::stoll(said));
  }
  EXPECT_EQ(distances.size(), 16u);
}

TEST(CodeTwin, is_far_from_the_code_with_odds_of_one_in_a_thousand) {
  // 2^35 addresses are possible; the test counts those within 64 GiB of the code, one in a
  // thousand.
  int near = 0;
  for (int n = 0; n < 8; ++n) near += std::abs(distance_of_twin()) < int64_t{64} << 30;
  EXPECT_LT(near, 2);
}

TEST(CodeTwin, is_writable_only_where_code_lies) {
  auto space = packed_space();
  auto code = make_code(*space);
  uint64_t inode = at(code->base()).inode, writable = 0;
  for (const Mapped& m : mappings()) {
    EXPECT_FALSE(m.rights[1] == 'w' && m.rights[2] == 'x') << "writable and executable";
    if (m.inode == inode && m.rights[1] == 'w') writable += m.end - m.begin;
  }
  EXPECT_EQ(writable, kPage);
}

TEST(CodeTwin, no_address_of_it_lies_where_compiled_code_looks) {
  auto runtime = CodeMachine::take(Runtime::create({}));
  ThreadScope attached(*runtime);
  // The twins of the process: shared memory that is mapped writable here and executable elsewhere.
  std::set<uint64_t> executable;
  for (const Mapped& m : mappings()) {
    if (m.rights == "r-xs") executable.insert(m.inode);
  }
  std::vector<Mapped> twins;
  for (const Mapped& m : mappings()) {
    if (m.rights[2] != 'x' && m.rights[3] == 's' && executable.contains(m.inode))
      twins.push_back(m);
  }
  ASSERT_FALSE(twins.empty());
  auto check = [&](const Mapped& in, const char* what) {
    for (uint64_t p = in.begin; p + 8 <= in.end; p += 8) {
      auto word = *reinterpret_cast<const uint64_t*>(p);  // NOLINT(performance-no-int-to-ptr)
      for (const Mapped& t : twins) {
        ASSERT_FALSE(word >= t.begin && word < t.end && t.rights[1] == 'w')
            << what << " holds an address of the twin";
      }
    }
  };
  auto base = reinterpret_cast<uint64_t>(Runtime::thread_base());
  check({base, base + 8 * kPage, 0, ""}, "the thread's context");
  for (const Mapped& m : mappings()) {
    if (m.rights == "r-xs") check(m, "code");
  }
}

// ---- perf -------------------------------------------------------------------------------------

TEST(CodeTwin, for_perf_the_whole_area_is_executable_once_and_for_all) {
  auto space = packed_space(true);
  auto first = make_code(*space);
  Mapped before = at(first->base());
  EXPECT_EQ(before.rights, "r-xs");
  EXPECT_GE(before.end - before.begin, 64 * kPage);
  std::vector<std::unique_ptr<jit::Code>> more;
  for (int n = 0; n < 200; ++n) more.push_back(make_code(*space));
  more.clear();
  Mapped after = at(first->base());
  EXPECT_EQ(before.begin, after.begin);
  EXPECT_EQ(before.end, after.end);
}

// ---- Policies ---------------------------------------------------------------------------------

constexpr const char* kSum = R"(
func @sum(i64) -> i64 {
b0(v0: i64):
  v1 = const.i64 0
  jump b1(v1, v1)
b1(v2: i64, v3: i64):
  loop_header
  v4 = const.i64 1
  v5 = add.i64 v2, v4
  v6 = add.i64 v3, v5
  v7 = lt_u.i64 v5, v0
  branch v7, b1(v5, v6), b2
b2:
  return v6
}
)";

// Runs enough calls to use both compilers. Returns 0 if all is well, and 2 with the reason in
// `said` if no runtime could be created.
int run_sums(std::string& said, const Options& options) {
  jit::Module module = parse_or_die(kSum);
  std::unique_ptr<tools::IrHost> host;  // the worker asks it until the runtime ends
  auto runtime = Runtime::create(options);
  if (!runtime) {
    said = runtime.error().message;
    return 2;
  }
  auto added = tools::IrHost::add(**runtime, module);
  if (!added) return 3;
  host = std::move(*added);
  MethodId m = host->method(MethodId(0));
  ThreadScope attached(**runtime);
  for (uint64_t n = 1; n < 3000; ++n) {
    uint64_t args[] = {n};
    Outcome o = (*runtime)->invoke(m, args);
    if (!o.ok() || o.bits != n * (n + 1) / 2) {
      said = (*runtime)->error_of(m);
      return 4;
    }
  }
  for (const Mapped& area : mappings()) {
    if (area.rights[1] == 'w' && area.rights[2] == 'x') return 5;
  }
  return 0;
}

constexpr int kSetMdwe = 65;  // PR_SET_MDWE with PR_MDWE_REFUSE_EXEC_GAIN, since Linux 6.3

void refuse(long number, unsigned argument, uint32_t mask) {
  auto args = static_cast<uint32_t>(offsetof(seccomp_data, args)) + 8 * argument;
  sock_filter filter[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<uint32_t>(number), 0, 4),
                          BPF_STMT(BPF_LD | BPF_W | BPF_ABS, args),
                          BPF_STMT(BPF_ALU | BPF_AND | BPF_K, mask),
                          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, mask, 0, 1),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
  sock_fprog program{std::size(filter), filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) {
    _exit(77);
  }
}

// Does what MemoryDenyWriteExecute= of systemd does.
void refuse_executable_pages() {
  refuse(SYS_mmap, 2, PROT_WRITE | PROT_EXEC);
  refuse(SYS_mprotect, 2, PROT_EXEC);
}

Options eager(bool packed) {
  Options o;
  o.policy = PolicyMode::kAlways;
  o.pack_code = packed;
  return o;
}

TEST(CodePolicy, a_process_that_refuses_to_gain_executable_pages_runs_code_all_the_same) {
  for (bool packed : {true, false}) {
    auto [code, said] = in_child([&](std::string& out) {
      if (prctl(kSetMdwe, 1, 0, 0, 0) != 0) return 77;
      return run_sums(out, eager(packed));
    });
    if (code == 77) {
      std::puts("SKIPPED: this kernel has no PR_SET_MDWE, code was not run under it");
      return;
    }
    EXPECT_EQ(code, 0) << said;
  }
}

TEST(CodePolicy, so_does_one_with_a_filter_of_system_calls) {
  for (bool packed : {true, false}) {
    auto [code, said] = in_child([&](std::string& out) {
      refuse_executable_pages();
      return run_sums(out, eager(packed));
    });
    if (code == 77) {
      std::puts("SKIPPED: this kernel takes no seccomp filter, code was not run under one");
      return;
    }
    EXPECT_EQ(code, 0) << said;
  }
}

TEST(CodePolicy, where_nothing_is_left_the_error_names_what_may_forbid_it) {
  auto [code, said] = in_child([](std::string& out) {
    refuse_executable_pages();
    refuse(SYS_memfd_create, 0, 0);
    return run_sums(out, {});
  });
  if (code == 77) {
    std::puts("SKIPPED: this kernel takes no seccomp filter, code was not run under one");
    return;
  }
  EXPECT_EQ(code, 2);
  EXPECT_NE(said.find("PR_SET_MDWE"), std::string::npos) << said;
}

// ---- Memory -----------------------------------------------------------------------------------

int64_t kib(const char* key) {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);) {
    if (line.rfind(key, 0) == 0) return std::stoll(line.substr(std::strlen(key)));
  }
  return -1;
}

TEST(LockedMemory, a_runtime_takes_few_megabytes_of_a_process_that_locks_all) {
  auto [code, said] = in_child([](std::string& out) {
    if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) return 77;
    int64_t resident = kib("VmRSS:"), locked = kib("VmLck:");
    std::string why;
    auto runtime = Runtime::create({});
    if (!runtime) {
      out = runtime.error().message;
      return 2;
    }
    ThreadScope attached(**runtime);
    out = std::to_string((kib("VmRSS:") - resident) / 1024) + " " +
          std::to_string((kib("VmLck:") - locked) / 1024);
    // This also locks memory that was reserved before.
    if (mlockall(MCL_CURRENT) != 0) return 77;
    out += " " + std::to_string((kib("VmRSS:") - resident) / 1024);
    return 0;
  });
  if (code == 77) {
    std::puts("SKIPPED: this process may not lock its memory");
    return;
  }
  ASSERT_EQ(code, 0) << said;
  std::istringstream in(said);
  int64_t resident = 0, locked = 0, later = 0;
  in >> resident >> locked >> later;
  std::printf(
      "with a runtime and a thread: %ld MiB resident, %ld MiB locked, %ld MiB after the next "
      "mlockall\n",
      resident, locked, later);
  EXPECT_LT(resident, 16);
  EXPECT_LT(later, 32);
}

}  // namespace
}  // namespace uptier::test::code_mapping_test
