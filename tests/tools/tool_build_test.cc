// How the tool is linked, and the address space it takes before it does anything.
#include <elf.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cstring>
#include <optional>

#include "tests/support/tool_dir.h"

namespace uptier::test::tool_build_test {
namespace {

class ToolBuild : public ToolDir {
 protected:
  ToolBuild() : bytes_(slurp(UPTIER_TOOL)) {}

  template <typename T>
  T at(uint64_t offset) const {
    T t;
    std::memcpy(&t, bytes_.data() + offset, sizeof t);
    return t;
  }
  std::optional<Elf64_Phdr> segment(uint32_t type) const {
    auto header = at<Elf64_Ehdr>(0);
    for (uint64_t n = 0; n < header.e_phnum; ++n) {
      auto p = at<Elf64_Phdr>(header.e_phoff + n * sizeof(Elf64_Phdr));
      if (p.p_type == type) return p;
    }
    return std::nullopt;
  }
  uint64_t dynamic(int64_t tag) const {
    Elf64_Phdr d = *segment(PT_DYNAMIC);
    for (uint64_t n = 0; n < d.p_filesz; n += sizeof(Elf64_Dyn)) {
      auto entry = at<Elf64_Dyn>(d.p_offset + n);
      if (entry.d_tag == tag) return entry.d_un.d_val;
    }
    return 0;
  }

  std::string bytes_;
};

TEST_F(ToolBuild, is_linked_so_that_little_of_it_can_be_overwritten) {
  if (UPTIER_HARDENED == 0) {
    std::puts("SKIPPED: built without UPTIER_HARDEN, the tool's link was not looked at");
    return;
  }
  EXPECT_EQ(at<Elf64_Ehdr>(0).e_type, ET_DYN) << "it has a fixed address";
  EXPECT_TRUE(segment(PT_GNU_RELRO).has_value());
  EXPECT_NE(dynamic(DT_FLAGS) & DF_BIND_NOW, 0u);
  EXPECT_NE(dynamic(DT_FLAGS_1) & DF_1_NOW, 0u);
  ASSERT_TRUE(segment(PT_GNU_STACK).has_value());
  EXPECT_EQ(segment(PT_GNU_STACK)->p_flags & PF_X, 0u);
  EXPECT_NE(bytes_.find("__stack_chk_fail"), std::string::npos);
  EXPECT_NE(bytes_.find(std::string_view("_chk\0", 5)), std::string::npos);
}

// Bounds the zero-initialized data (.bss). Data that all threads share and that belongs to no
// runtime could add 128 MiB.
TEST_F(ToolBuild, has_a_few_megabytes_of_zeros) {
  auto header = at<Elf64_Ehdr>(0);
  uint64_t zeros = 0;
  for (uint64_t n = 0; n < header.e_phnum; ++n) {
    auto p = at<Elf64_Phdr>(header.e_phoff + n * sizeof(Elf64_Phdr));
    if (p.p_type == PT_LOAD) zeros += p.p_memsz - p.p_filesz;
  }
  EXPECT_LT(zeros, uint64_t{12} << 20);
}

TEST_F(ToolBuild, runs_in_little_address_space) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "SKIPPED: needs a build without sanitizer, which reserves terabytes itself";
#endif
  RunResult free = tool("--version");
  ASSERT_EQ(free.code, 0);
  RunResult help = in_dir("ulimit -v 120000; " UPTIER_TOOL " --help");
  EXPECT_EQ(help.code, 0) << help.err;
  RunResult run = in_dir("ulimit -v 120000; " UPTIER_TOOL " run " + wasm_path("nbody"));
  EXPECT_EQ(run.code, 0) << run.err;
  EXPECT_EQ(run.out, expected_output("nbody"));
}

}  // namespace
}  // namespace uptier::test::tool_build_test
