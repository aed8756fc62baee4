// program_runs.h: runs the example programs and the tool.
#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>
#include "test_paths.h"

namespace uptier::test {

struct Program {
  std::string name;
  std::string bench_size;
};

inline std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

// Returns the benchmark programs of examples/programs/programs.txt.
inline std::vector<Program> programs() {
  std::vector<Program> list;
  std::ifstream in(UPTIER_SOURCE_DIR "/examples/programs/programs.txt");
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    Program p;
    words >> p.name >> p.bench_size;
    list.push_back(p);
  }
  return list;
}

inline std::string wasm_path(const std::string& name) {
  return UPTIER_SOURCE_DIR "/examples/programs/wasm/" + name + ".wasm";
}
inline std::string expected_output(const std::string& name) {
  return slurp(UPTIER_SOURCE_DIR "/examples/programs/expected/" + name + ".txt");
}

struct RunResult {
  std::string out;
  std::string err;
  int code = -1;   // exit code
  int signal = 0;  // signal that ended the process, 0 for none
};

// Runs a shell command and captures both streams.
inline RunResult run_command(const std::string& command) {
  char err_name[] = "/tmp/uptier-test-XXXXXX";
  int fd = mkstemp(err_name);
  RunResult r;
  std::FILE* pipe = popen((command + " 2>" + err_name).c_str(), "r");
  if (pipe == nullptr) return r;
  char buffer[4096];
  while (size_t n = std::fread(buffer, 1, sizeof buffer, pipe)) r.out.append(buffer, n);
  int status = pclose(pipe);
  r.err = slurp(err_name);
  std::remove(err_name);
  close(fd);
  if (WIFEXITED(status)) r.code = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) r.signal = WTERMSIG(status);
  return r;
}

inline RunResult run_tool(const std::string& arguments) {
  return run_command(std::string(UPTIER_TOOL) + " " + arguments);
}

}  // namespace uptier::test
