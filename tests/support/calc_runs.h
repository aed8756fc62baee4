// calc_runs.h: runs examples/calc as a process: the programs, and the modes to run them in.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <tuple>

#include "test_paths.h"
#include "tests/support/program_runs.h"

#ifdef UPTIER_CALC

namespace uptier::test {

struct CalcProgram {
  const char* name;
  const char* prints;
};

// The expected outputs; the Lua versions of the programs print the same.
inline const CalcProgram kPrograms[] = {
    {"fib", "17711\n"},
    {"sieve", "669\n"},
    {"nbody", "-0.169075164\n-0.169042558\n"},
    {"matrix", "-17.252504167\n"},
    {"strings", "4000 1556 ttsra\n"},
    {"records", "164570 60000 40000\n"},
    {"closures", "867497\n"},
    {"storm", "20000 466561 s9s1\n"},
    {"mandel", "921 201527\n"},
};

struct CalcMode {
  const char* name;
  const char* flags;
  const char* forces = "";  // the kind of stress that must have fired at least once
};

inline const CalcMode kModes[] = {
    {"interpreter", "--interpret"},
    {"automatic", ""},
    {"automatic_synchronous", "-O workers=0"},
    {"baseline", "--tier=baseline"},
    {"instrumented", "--tier=instrumented"},
    {"optimized", "--tier=optimized"},
    {"every_call_sampled", "-O interval=1 -O adaptive=off"},
    {"never_optimized", "-O policy=never -O interval=1"},
    {"optimized_at_once", "-O policy=always -O flush_first=1 -O workers=0"},
    {"osr_at_every_loop", "--stress=osr=all"},
    {"copies_to_and_fro", "-O policy=never --stress=copy=every:3"},
    {"versions_to_and_fro", "-O policy=always -O flush_first=1 -O workers=0 --stress=flip=every:2"},
    {"guards_fail", "-O policy=always -O flush_first=4 -O workers=0 --stress=guard=all", "guard"},
    {"each_guard_fails_once", "-O policy=always -O flush_first=4 -O workers=0 --stress=guard=once",
     "guard"},
    {"guards_fail_at_random",
     "-O policy=always -O flush_first=4 -O workers=0 --stress=guard=random:0.05:7", "guard"},
    {"guards_fail_in_optimized_code", "--tier=optimized --stress=guard=every:17", "guard"},
    {"late_compiler", "--stress=delay=all"},
    {"code_moves", "-O policy=always -O flush_first=2 --stress=relay=all,guard=random:0.01:7",
     "relay"},
    {"little_room", "-O policy=always -O flush_first=2 -O pack_code=off -O code_budget=131072"},
};

inline std::string path_of(const std::string& program) {
  return UPTIER_SOURCE_DIR "/examples/calc/programs/" + program + ".calc";
}

inline RunResult run_calc(const std::string& arguments) {
  return run_command(std::string(UPTIER_CALC) + " " + arguments);
}

using CalcRun = std::tuple<CalcProgram, CalcMode>;

inline void expect_prints(const CalcRun& run, const std::string& flags = "") {
  const auto& [program, mode] = run;
  RunResult r = run_calc(flags + mode.flags + " " + path_of(program.name));
  EXPECT_EQ(r.signal, 0);
  EXPECT_EQ(r.code, 0) << r.err;
  EXPECT_EQ(r.out, program.prints);
  EXPECT_EQ(r.err, "");
}
inline std::string name_of(const testing::TestParamInfo<CalcRun>& info) {
  return std::string(std::get<0>(info.param).name) + "_" + std::get<1>(info.param).name;
}

// Runs small programs in every mode.
class Calc : public testing::Test {
 protected:
  Calc() {
    char name[] = "/tmp/uptier-calc-XXXXXX";
    dir_ = mkdtemp(name);
  }
  ~Calc() override { std::filesystem::remove_all(dir_); }

  std::string file(const std::string& source) {
    std::string path = dir_ + "/program.calc";
    std::ofstream(path) << source;
    return path;
  }
  // Runs the program in every mode, once as it is and once with a collection at each allocation.
  void expect_everywhere(const std::string& source, const std::string& out,
                         const std::string& error = "", int code = 0) {
    expect_in_modes("", source, out, error, code);
    expect_in_modes("--collect=every:1 ", source, out, error, code);
  }
  void expect_in_modes(const std::string& flags, const std::string& source, const std::string& out,
                       const std::string& error, int code) {
    std::string path = file(source);
    for (const CalcMode& mode : kModes) {
      RunResult r = run_calc(flags + mode.flags + " " + path);
      EXPECT_EQ(r.signal, 0) << flags << mode.name;
      EXPECT_EQ(r.code, code) << flags << mode.name << ": " << r.err;
      EXPECT_EQ(r.out, out) << flags << mode.name;
      std::string said = error.empty() ? "" : "calc: " + path + ": " + error + "\n";
      EXPECT_EQ(r.err, said) << flags << mode.name;
    }
  }
  std::string dir_;
};

}  // namespace uptier::test

#endif
