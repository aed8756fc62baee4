// Counts how often saving a profile waits for the disk.
#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/support/runtime_host.h"
#include "tests/support/tool_dir.h"
#include "uptier/profile_file.h"

namespace {

int waits = 0;

}  // namespace

// Replaces the C library's fsync: counts, and does the same.
extern "C" int fsync(int fd) {
  ++waits;
  return static_cast<int>(::syscall(SYS_fsync, fd));
}

namespace uptier::test::profile_sync_test {
namespace {

class ProfileSync : public ToolDir {
 protected:
  // Returns how often a runtime waited for the disk when it saved the observations of a loop.
  int waits_of_a_run(const char* sync) const {
    Options o = options({{"profile_sync", sync}, {"workers", "0"}, {"interval", "1"}});
    o.profile = path("p.upf");
    waits = 0;
    {
      IrRuntime r(parse_or_die(kSumText), o);
      ThreadScope scope(*r.runtime);
      EXPECT_EQ(r.call("sum", {1000}).bits, 500'500u);
    }
    return waits;
  }
};

TEST_F(ProfileSync, a_saved_profile_is_waited_for_once) {
  EXPECT_EQ(waits_of_a_run("on"), 1);
  EXPECT_EQ(read("p.upf").info.runs, 1u);
}

TEST_F(ProfileSync, without_the_option_nobody_waits) {
  EXPECT_EQ(waits_of_a_run("off"), 0);
  EXPECT_EQ(waits_of_a_run("off"), 0);
  EXPECT_EQ(read("p.upf").info.runs, 2u);
}

}  // namespace
}  // namespace uptier::test::profile_sync_test
