// Files that may become code: each rule of who may have written them.
#include "tiering/image/trusted_file.h"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include "tests/support/private_dir.h"

namespace uptier::tiering {
namespace {

constexpr uint64_t kMost = 1 << 20;

class TrustedFileTest : public testing::Test {
 protected:
  void SetUp() override {
    std::ofstream(path_) << "code";
    chmod(path_.c_str(), 0600);
  }
  std::string refusal(const std::string& path) const {
    Result<TrustedFile> file = TrustedFile::read(path, kMost);
    return file ? "" : file.error().message;
  }

  test::PrivateDir dir_;
  const std::string path_ = dir_.path("it.img");
};

TEST_F(TrustedFileTest, a_file_of_this_user_is_read) {
  Result<TrustedFile> file = TrustedFile::read(path_, kMost);
  ASSERT_TRUE(file.ok()) << file.error().message;
  EXPECT_TRUE(std::ranges::equal(file->bytes(), std::as_bytes(std::span("code", 4))));
  chmod(path_.c_str(), 0644);  // others may read it
  EXPECT_EQ(refusal(path_), "");
}

TEST_F(TrustedFileTest, what_others_can_write_is_refused) {
  for (mode_t mode : {0620, 0602, 0666}) {
    chmod(path_.c_str(), mode);
    EXPECT_EQ(refusal(path_), path_ + ": it can be written by its group or others; run chmod go-w");
  }
}

TEST_F(TrustedFileTest, a_folder_that_others_can_write_is_refused) {
  for (mode_t mode : {0720, 0702, 01777}) {
    chmod(dir_.path().c_str(), mode);
    EXPECT_EQ(refusal(path_),
              path_ + ": its folder can be written by its group or others; run chmod go-w");
  }
  chmod(dir_.path().c_str(), 0700);
}

TEST_F(TrustedFileTest, a_link_is_refused) {
  const std::string link = dir_.path("link.img");
  ASSERT_EQ(symlink(path_.c_str(), link.c_str()), 0);
  EXPECT_EQ(refusal(link), link + ": it is a symbolic link");
}

TEST_F(TrustedFileTest, what_is_no_file_is_refused) {
  const std::string pipe = dir_.path("pipe.img");
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_EQ(refusal(pipe), pipe + ": it is not a regular file");
  EXPECT_EQ(refusal(dir_.path()),
            dir_.path() + ": its folder can be written by its group or others; run chmod go-w");
  std::ofstream(dir_.path("empty.img"));
  EXPECT_EQ(refusal(dir_.path("empty.img")), dir_.path("empty.img") + ": it is empty");
  EXPECT_NE(refusal(dir_.path("none.img")).find("No such file"), std::string::npos);
}

TEST_F(TrustedFileTest, a_file_that_is_too_large_is_refused) {
  std::filesystem::resize_file(path_, kMost + 1);
  EXPECT_NE(refusal(path_).find("at most 1048576 are read"), std::string::npos);
}

TEST_F(TrustedFileTest, the_file_of_another_user_is_refused) {
  if (geteuid() != 0) GTEST_SKIP() << "only root can give files away";
  ASSERT_EQ(chown(path_.c_str(), 12345, 12345), 0);
  EXPECT_EQ(refusal(path_), path_ + ": it belongs to user 12345, neither this user nor root");
  ASSERT_EQ(chown(path_.c_str(), 0, 0), 0);
  ASSERT_EQ(chown(dir_.path().c_str(), 12345, 12345), 0);
  EXPECT_EQ(refusal(path_),
            path_ + ": its folder belongs to user 12345, neither this user nor root");
  ASSERT_EQ(chown(dir_.path().c_str(), 0, 0), 0);
}

// What was read stays as it was, whatever becomes of the file.
TEST_F(TrustedFileTest, a_file_that_is_written_or_replaced_afterwards_changes_nothing) {
  Result<TrustedFile> file = TrustedFile::read(path_, kMost);
  ASSERT_TRUE(file.ok());
  std::ofstream(path_) << "evil";
  std::filesystem::remove(path_);
  std::ofstream(path_) << "more";
  EXPECT_TRUE(std::ranges::equal(file->bytes(), std::as_bytes(std::span("code", 4))));
}

}  // namespace
}  // namespace uptier::tiering
