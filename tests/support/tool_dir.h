// tool_dir.h: a temporary directory for each test that runs the tool on files.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "profile/upf/file.h"
#include "test_paths.h"
#include "tests/support/program_runs.h"
#include "uptier/profile_file.h"

namespace uptier::test {

class ToolDir : public testing::Test {
 protected:
  ToolDir() {
    char name[] = "/tmp/uptier-tool-XXXXXX";
    dir_ = mkdtemp(name);
  }
  ~ToolDir() override { std::filesystem::remove_all(dir_); }

  std::string path(const std::string& name) const { return dir_ + "/" + name; }
  // Runs a command, or the tool, in the directory.
  RunResult in_dir(const std::string& command) const {
    return run_command("cd " + dir_ + " && { " + command + "; }");
  }
  RunResult tool(const std::string& words) const {
    return in_dir(std::string(UPTIER_TOOL) + " " + words);
  }
  // Profiles a run of an example.
  void run(const std::string& program, const std::string& file,
           const std::string& more = "") const {
    const RunResult r = tool("run --profile " + file + " " + more + " " + wasm_path(program));
    ASSERT_EQ(r.code, 0) << r.err;
    ASSERT_EQ(r.out, expected_output(program));
  }
  ProfileFile read(const std::string& name) const {
    const std::string bytes = slurp(path(name));
    Result<ProfileFile> file = profile_from_file(std::as_bytes(std::span(bytes)));
    EXPECT_TRUE(file.ok()) << file.error().message;
    return file.ok() ? std::move(*file) : ProfileFile{};
  }
  void write(const std::string& name, const Profile& p, const ProfileInfo& info = {}) const {
    ASSERT_TRUE(profile::replace_file(path(name), profile_to_file(p, info)).ok());
  }
  void write_text(const std::string& name, const std::string& text) const {
    std::ofstream(path(name), std::ios::binary) << text;
  }
  // Are all of these commands installed? Their names are separated by spaces.
  static bool installed(const std::string& commands) {
    const std::string each = "for c in " + commands + "; do command -v $c || exit 1; done";
    return run_command("sh -c '" + each + "'").code == 0;
  }

  std::string dir_;
};

}  // namespace uptier::test
