// The files and images that tell perf and gdb about compiled code; where the tools are installed,
// they read them.
#include <elf.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include <csignal>
#include <cstring>
#include <map>

#include "jit/symbols/append_file.h"
#include "jit/symbols/gdb_image.h"
#include "jit/symbols/gdb_names.h"
#include "test_paths.h"
#include "tests/support/tool_dir.h"

namespace uptier::native_tools_test {
namespace {

using jit::GdbNames;
using jit::NamedCode;

// Returns a body of 64 bytes at a made-up address.
NamedCode body(uint64_t n) {
  NamedCode code;
  code.base = reinterpret_cast<const uint8_t*>(0x10000 + 64 * n);
  code.size = 64;
  code.saved = {3, 12};
  code.saved_at = -8;
  code.name = "body " + std::to_string(n);
  return code;
}

template <class T>
T at(const std::vector<uint8_t>& bytes, uint64_t offset) {
  T t = {};
  if (offset + sizeof t <= bytes.size()) std::memcpy(&t, &bytes[offset], sizeof t);
  return t;
}

// A limit on the file size acts as a full disk.
class AppendFile : public test::ToolDir {};

TEST_F(AppendFile, record_that_does_not_fit_leaves_nothing_and_the_next_one_is_whole) {
  const std::string file_name = path("records");
  const pid_t child = fork();
  if (child == 0) {
    signal(SIGXFSZ, SIG_IGN);
    jit::AppendFile file(open(file_name.c_str(), O_WRONLY | O_CREAT | O_EXCL, 0600));
    auto append = [&](const std::string& s) { return file.append(std::as_bytes(std::span(s))); };
    rlimit small{100, RLIM_INFINITY}, none{RLIM_INFINITY, RLIM_INFINITY};
    bool first = append(std::string(60, 'a'));
    setrlimit(RLIMIT_FSIZE, &small);
    bool second = append(std::string(60, 'b'));
    setrlimit(RLIMIT_FSIZE, &none);
    bool third = append("c");
    _exit(first && !second && third ? 0 : 1);
  }
  int status = 1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(test::slurp(file_name), std::string(60, 'a') + "c");
}

TEST(GdbImage, names_every_body_relative_to_its_section) {
  const std::vector<NamedCode> codes = {body(5), body(2), body(9)};
  const std::vector<uint8_t> image = jit::gdb_image(codes);
  const auto file = at<Elf64_Ehdr>(image, 0);
  ASSERT_EQ(std::memcmp(file.e_ident, ELFMAG, SELFMAG), 0);
  std::vector<Elf64_Shdr> sections;
  for (uint64_t i = 0; i < file.e_shnum; ++i) {
    sections.push_back(at<Elf64_Shdr>(image, file.e_shoff + i * sizeof(Elf64_Shdr)));
    if (sections.back().sh_type != SHT_NOBITS) {
      EXPECT_LE(sections.back().sh_offset + sections.back().sh_size, image.size());
    }
  }
  std::map<std::string, uint64_t> found;
  for (const Elf64_Shdr& s : sections) {
    if (s.sh_type != SHT_SYMTAB) continue;
    for (uint64_t k = 1; k < s.sh_size / s.sh_entsize; ++k) {
      const auto symbol = at<Elf64_Sym>(image, s.sh_offset + k * s.sh_entsize);
      const Elf64_Shdr& text = sections[symbol.st_shndx];
      EXPECT_LE(symbol.st_value + symbol.st_size, text.sh_size);
      const uint64_t name = sections[s.sh_link].sh_offset + symbol.st_name;
      found[reinterpret_cast<const char*>(&image[name])] = text.sh_addr + symbol.st_value;
    }
  }
  EXPECT_EQ(found, (std::map<std::string, uint64_t>{
                       {"body 2", 0x10080}, {"body 5", 0x10140}, {"body 9", 0x10240}}));
}

TEST(GdbNames, has_few_files_for_many_bodies) {
  GdbNames names;
  for (uint64_t n = 0; n < 1000; ++n) {
    names.add(body(n));
    ASSERT_EQ(names.codes(), n + 1);
    ASSERT_LE(names.files(), 10u);  // log2 1000
  }
}

TEST(GdbNames, a_body_takes_the_place_of_what_was_there) {
  GdbNames names;
  for (uint64_t n = 0; n < 7; ++n) names.add(body(n));
  NamedCode larger = body(2);
  larger.size = 65;  // overlaps one byte of the next body
  names.add(larger);
  EXPECT_EQ(names.codes(), 6u);
  names.add(larger);
  EXPECT_EQ(names.codes(), 6u);
}

class NativeTools : public test::ToolDir {
 protected:
  // The name of the dump holds the process id, which the output of a run does not tell: a shell
  // writes its id to a file and keeps it across exec.
  static std::string with_pid(const std::string& words) {
    return "sh -c 'echo $$ > pid; rm -f /tmp/jit-$$.dump; exec " UPTIER_TOOL " run " + words + "'";
  }
  std::string dump() const {
    return "/tmp/jit-" + std::to_string(std::stoi(test::slurp(path("pid")))) + ".dump";
  }
};

TEST_F(NativeTools, a_jit_dump_holds_names_and_bytes) {
  const test::RunResult r =
      in_dir(with_pid("-O jit_dump=on --tier=baseline " + test::wasm_path("nbody")));
  ASSERT_EQ(r.code, 0) << r.err;
  const std::string bytes = test::slurp(dump());
  std::filesystem::remove(dump());
  ASSERT_GT(bytes.size(), 40u);
  EXPECT_EQ(bytes.substr(0, 4), "DTiJ");  // little-endian
  std::map<std::string, uint64_t> sizes;
  uint64_t index = 0, last_time = 0;
  size_t offset = 40;
  const auto u32 = [&](size_t p) {
    uint32_t n = 0;
    std::memcpy(&n, &bytes[p], 4);
    return n;
  };
  const auto u64 = [&](size_t p) {
    uint64_t n = 0;
    std::memcpy(&n, &bytes[p], 8);
    return n;
  };
  while (offset + 16 <= bytes.size() && u32(offset) == 0) {
    const size_t size = u32(offset + 4);
    ASSERT_LE(offset + size, bytes.size());
    EXPECT_GE(u64(offset + 8), last_time);
    last_time = u64(offset + 8);
    EXPECT_EQ(u64(offset + 48), index++);
    const std::string name = &bytes[offset + 56];
    const uint64_t code = u64(offset + 40);
    ASSERT_EQ(size, 56 + name.size() + 1 + code);
    sizes[name] = code;
    const bool frameless = name.ends_with("cold]") || name.ends_with("guard]") ||
                           name == "uptier routines" || name == "uptier stubs";
    if (!frameless) {
      EXPECT_EQ(bytes[offset + size - code], '\x55') << name << " does not begin with push rbp";
    }
    offset += size;
  }
  EXPECT_EQ(u32(offset), 3u) << "no end";
  EXPECT_TRUE(sizes.contains("uptier invoke"));
  EXPECT_TRUE(sizes.contains("uptier stubs"));
  const auto kick = sizes.lower_bound("kick [baseline plain v");
  ASSERT_NE(kick, sizes.end());
  EXPECT_TRUE(kick->first.starts_with("kick [baseline plain v")) << kick->first;
}

// A container may give each start the same process id, while /tmp persists.
TEST_F(NativeTools, an_old_file_of_the_same_process_id_is_replaced) {
  for (const std::string option : {"perf_map", "jit_dump"}) {
    const std::string name = option == "perf_map" ? "/tmp/perf-$$.map" : "/tmp/jit-$$.dump";
    const std::string run =
        "exec " UPTIER_TOOL " run -O " + option + "=on " + test::wasm_path("nbody");
    const test::RunResult r = in_dir("sh -c 'echo $$ > pid; echo " + name + " > name; echo old > " +
                                     name + "; " + run + "'");
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_EQ(r.out, test::expected_output("nbody"));
    std::string file = test::slurp(path("name"));
    file.pop_back();
    const std::string bytes = test::slurp(file);
    EXPECT_GT(bytes.size(), 100u);
    EXPECT_FALSE(bytes.starts_with("old")) << option;
    std::filesystem::remove(file);
  }
}

TEST_F(NativeTools, a_file_that_is_not_to_be_had_is_no_reason_not_to_run) {
  const test::RunResult r = in_dir("sh -c 'mkdir /tmp/perf-$$.map; echo $$ > pid; exec " UPTIER_TOOL
                                   " run -O perf_map=on " +
                                   test::wasm_path("nbody") + "'");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.out, test::expected_output("nbody"));
  EXPECT_NE(r.err.find("option perf_map is given up: /tmp/perf-"), std::string::npos) << r.err;
  std::filesystem::remove("/tmp/perf-" + std::to_string(std::stoi(test::slurp(path("pid")))) +
                          ".map");
}

TEST_F(NativeTools, perf_names_code_that_was_freed) {
  const std::string record = "perf record -q -k mono -e cpu-clock -o d " +
                             with_pid("-O jit_dump=on " + test::wasm_path("nbody"));
  if (!installed("perf") || in_dir(record).code != 0) {
    std::puts("SKIPPED: perf is not installed or may not record, a jit dump was not read");
    return;
  }
  const test::RunResult inject = in_dir("perf inject --jit -i d -o j");
  std::filesystem::remove(dump());
  ASSERT_EQ(inject.code, 0) << inject.err;
  const test::RunResult report = in_dir("perf report -i j --stdio --sort symbol");
  EXPECT_NE(report.out.find("kick ["), std::string::npos) << report.out;
}

// Bodies share pages. When a page becomes executable, perf takes it for a new mapping of everything
// around it, and the names of the code there are lost.
TEST_F(NativeTools, perf_knows_nearly_all_samples_in_code_that_shares_pages) {
  const std::string record = "perf record -q -k mono -e cpu-clock -o d " +
                             with_pid("-O jit_dump=on " + test::wasm_path("mix") + " 6000");
  if (!installed("perf") || in_dir(record).code != 0) {
    std::puts("SKIPPED: perf is not installed or may not record, a jit dump was not read");
    return;
  }
  const test::RunResult inject = in_dir("perf inject --jit -i d -o j");
  std::filesystem::remove(dump());
  ASSERT_EQ(inject.code, 0) << inject.err;
  const std::string report = in_dir("perf report -i j --stdio --sort dso | grep -v '^#'").out;
  double known = 0, unknown = 0;
  std::istringstream in(report);
  for (std::string line; std::getline(in, line);) {
    const double share = std::strtod(line.c_str(), nullptr);
    if (line.find("[JIT]") != std::string::npos) unknown += share;
    if (line.find("jitted-") != std::string::npos) known += share;
  }
  EXPECT_GT(known, 5) << report;
  EXPECT_LT(unknown, 1) << report;  // without pages that are executable from the start it was 75
}

TEST_F(NativeTools, valgrind_reports_nothing_of_a_run) {
  if (!installed("valgrind")) {
    std::puts("SKIPPED: valgrind is not installed, its suppressions were not used");
    return;
  }
  const test::RunResult r =
      in_dir("valgrind -q --error-exitcode=9 --suppressions=" UPTIER_SOURCE_DIR
             "/docs/uptier.supp " UPTIER_TOOL " run " +
             test::wasm_path("mix"));
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.out, test::expected_output("mix"));
}

TEST_F(NativeTools, gdb_walks_through_compiled_code) {
  if (!installed("gdb")) {
    std::puts("SKIPPED: gdb is not installed, backtraces were not made");
    return;
  }
  const test::RunResult r = in_dir(
      "gdb -nx -batch -ex 'set breakpoint pending on' -ex 'set debuginfod enabled off' "
      "-ex 'handle SIGSEGV nostop noprint pass' -ex 'break writev' -ex run -ex bt "
      "--args " UPTIER_TOOL " run -O gdb=on --tier=baseline " +
      test::wasm_path("nbody"));
  if (r.out.find("ptrace") != std::string::npos || r.err.find("ptrace") != std::string::npos) {
    std::puts("SKIPPED: gdb may not trace here, backtraces were not made");
    return;
  }
  // The frames from the system call to main, in this order.
  size_t from = 0;
  for (const char* frame :
       {"writev", "__stdio_write [baseline plain v", "vfprintf [baseline plain v",
        "__main_void [baseline plain v", "uptier invoke", "main ("}) {
    const size_t found = r.out.find(frame, from);
    EXPECT_NE(found, std::string::npos) << frame << "\n" << r.out << r.err;
    if (found != std::string::npos) from = found;
  }
}

}  // namespace
}  // namespace uptier::native_tools_test
