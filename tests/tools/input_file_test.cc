// The memory that input files take.
#include "tools/input_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <string>

namespace uptier::tools::input_file_test {
namespace {

constexpr size_t kLarge = 8 << 20;

uint64_t resident_bytes() {
  uint64_t all = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> all >> resident;
  return resident * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

class InputFileTest : public testing::Test {
 protected:
  InputFileTest() {
    char name[] = "/tmp/uptier-input-XXXXXX";
    ::close(::mkstemp(name));
    path_ = name;
  }
  ~InputFileTest() override { ::unlink(path_.c_str()); }
  void write(size_t bytes) const {
    std::ofstream(path_, std::ios::binary) << std::string(bytes, 'x');
  }
  static uint64_t sum(profile::ByteSpan bytes) {
    uint64_t sum = 0;
    for (std::byte b : bytes) sum += static_cast<uint64_t>(b);
    return sum;
  }

  std::string path_;
  InputFile file_;
};

TEST_F(InputFileTest, what_is_let_go_of_a_large_file_takes_no_memory) {
  write(kLarge);
  ASSERT_TRUE(file_.open(path_).ok());
  ASSERT_EQ(file_.bytes().size(), kLarge);
  EXPECT_EQ(sum(file_.bytes()), kLarge * 'x');
  uint64_t read = resident_bytes();
  file_.let_go(file_.bytes().first(kLarge / 2));
  EXPECT_LT(resident_bytes(), read - kLarge / 4);
  EXPECT_EQ(sum(file_.bytes().subspan(kLarge / 2)), kLarge / 2 * 'x');
}

// Mapped pages would change, or be gone, which is SIGBUS.
TEST_F(InputFileTest, a_file_that_is_rewritten_or_cut_off_stays_what_was_read) {
  for (const size_t bytes : {kLarge, InputFile::kSmall}) {
    write(bytes);
    ASSERT_TRUE(file_.open(path_).ok());
    std::fstream(path_, std::ios::binary | std::ios::in | std::ios::out) << std::string(bytes, 'y');
    EXPECT_EQ(sum(file_.bytes()), bytes * 'x');
    ASSERT_EQ(::truncate(path_.c_str(), 0), 0);
    EXPECT_EQ(sum(file_.bytes()), bytes * 'x');
  }
}

TEST_F(InputFileTest, a_small_file_stays_as_it_is) {
  write(InputFile::kSmall);
  ASSERT_TRUE(file_.open(path_).ok());
  file_.let_go(file_.bytes());
  EXPECT_EQ(sum(file_.bytes()), InputFile::kSmall * 'x');
  file_.let_go({});
}

TEST_F(InputFileTest, a_file_is_told_from_one_that_has_its_name_later) {
  write(10);
  ASSERT_TRUE(file_.open(path_).ok());
  InputFile::Identity before = file_.identity();
  ASSERT_TRUE(file_.open(path_).ok());
  EXPECT_EQ(file_.identity(), before);
  write(11);
  ASSERT_TRUE(file_.open(path_).ok());
  EXPECT_NE(file_.identity(), before);
}

}  // namespace
}  // namespace uptier::tools::input_file_test
