// `uptier image`, and `uptier run --image`: each process has another place for everything.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <string>

#include "tests/support/program_runs.h"
#include "tests/support/tool_dir.h"

namespace uptier::test {
namespace {

class ImageTool : public ToolDir {
 protected:
  void SetUp() override { chmod(dir_.c_str(), 0700); }
  void make(const std::string& program, const std::string& more = "") const {
    const RunResult r = tool("image " + wasm_path(program) + " -o it.img " + more);
    ASSERT_EQ(r.code, 0) << r.err;
  }
};

TEST_F(ImageTool, programs_run_from_images_with_the_same_output) {
  for (const char* program : {"nbody", "strings", "hashtable"}) {
    make(program);
    const RunResult r =
        tool("run --image it.img --report=json --report-to r.json " + wasm_path(program));
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_EQ(r.out, expected_output(program));
    EXPECT_EQ(r.err, "");
    const std::string report = slurp(path("r.json"));
    EXPECT_EQ(report.find("\"placed\": 0,"), report.npos);
    EXPECT_NE(report.find("\"refused\": 0,"), report.npos);
  }
}

// Two processes, with their code, stacks and libraries at other places.
TEST_F(ImageTool, two_processes_make_equal_files) {
  make("strings", "-O blind_constants=off");
  const std::string first = slurp(path("it.img"));
  for (int n = 0; n < 3; ++n) {
    make("strings", "-O blind_constants=off");
    EXPECT_TRUE(slurp(path("it.img")) == first);
  }
}

TEST_F(ImageTool, the_code_that_ran_makes_an_image) {
  RunResult r = tool("run --image-out it.img " + wasm_path("strings"));
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.out, expected_output("strings"));
  r = tool("image check it.img " + wasm_path("strings"));
  EXPECT_EQ(r.code, 0) << r.err;
  r = tool("run --image it.img " + wasm_path("strings"));
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.err, "");
  EXPECT_EQ(r.out, expected_output("strings"));
}

TEST_F(ImageTool, an_image_that_must_not_be_used_is_named_once_and_the_program_runs) {
  make("strings");
  chmod(path("it.img").c_str(), 0666);
  RunResult r = tool("run --image it.img " + wasm_path("strings"));
  EXPECT_EQ(r.code, 0);
  EXPECT_EQ(r.out, expected_output("strings"));
  EXPECT_NE(r.err.find("the image is not used: it.img: it can be written by its group or others"),
            std::string::npos)
      << r.err;
  EXPECT_EQ(r.err.find("not used"), r.err.rfind("not used"));
  chmod(path("it.img").c_str(), 0600);
  r = tool("run --image it.img " + wasm_path("nbody"));
  EXPECT_EQ(r.code, 0);
  EXPECT_EQ(r.out, expected_output("nbody"));
  EXPECT_NE(r.err.find("it is not of "), std::string::npos) << r.err;
  r = tool("run --image it.img -O landing_pads=on " + wasm_path("strings"));
  EXPECT_EQ(r.code, 0);
  EXPECT_NE(r.err.find("it was made with options"), std::string::npos) << r.err;
  r = tool("image check it.img " + wasm_path("nbody"));
  EXPECT_EQ(r.code, 1);
  r = tool("run --image none.img " + wasm_path("strings"));
  EXPECT_EQ(r.code, 0);
  EXPECT_NE(r.err.find("none.img: cannot open the file"), std::string::npos) << r.err;
}

TEST_F(ImageTool, of_two_that_write_one_file_one_wins_whole) {
  const std::string one =
      std::string(UPTIER_TOOL) + " image " + wasm_path("strings") + " -o it.img";
  for (int n = 0; n < 3; ++n) {
    const RunResult r = in_dir(one + " & " + one + " & " + one + "; wait");
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_EQ(tool("image check it.img " + wasm_path("strings")).code, 0);
  }
}

TEST_F(ImageTool, profiles_and_images_are_used_together) {
  make("strings");
  for (int n = 0; n < 3; ++n) {
    const RunResult r = tool("run --image it.img --profile it.upf " + wasm_path("strings"));
    EXPECT_EQ(r.code, 0) << r.err;
    EXPECT_EQ(r.out, expected_output("strings"));
    EXPECT_EQ(r.err, "");
  }
  EXPECT_GT(read("it.upf").profile.methods.size(), 10u);
}

// A module that is refused without an image is refused with one of another module.
TEST_F(ImageTool, an_invalid_module_is_refused_although_there_is_an_image) {
  make("strings");
  std::string bytes = slurp(wasm_path("strings"));
  const size_t at = bytes.find(std::string("\x41\x00\x21", 3));  // i32.const 0, local.set
  ASSERT_NE(at, bytes.npos);
  bytes[at] = '\x42';  // i64.const
  write_text("bad.wasm", bytes);
  const RunResult without = tool("run bad.wasm");
  const RunResult with = tool("run --image it.img bad.wasm");
  EXPECT_EQ(without.code, 125);
  EXPECT_EQ(with.code, 125);
  EXPECT_NE(with.err.find(without.err.substr(0, without.err.find('\n'))), std::string::npos)
      << with.err;
}

TEST_F(ImageTool, an_image_says_what_it_has) {
  make("strings");
  RunResult r = tool("image show it.img");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.out.find("functions"), std::string::npos);
  r = tool("image show --json it.img");
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_NE(r.out.find("\"contents\""), std::string::npos);
  write_text("no.img", "this is no image, but long enough to have a header");
  chmod(path("no.img").c_str(), 0600);
  r = tool("image show no.img");
  EXPECT_EQ(r.code, 1);
  EXPECT_NE(r.err.find("no.img: offset 0: this is no record of an image"), std::string::npos)
      << r.err;
}

}  // namespace
}  // namespace uptier::test
