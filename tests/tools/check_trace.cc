// check_trace FILE.json: says what a trace for ui.perfetto.dev holds, and which rules it breaks
// (tests/support/trace_file_check.h). Exit codes: 0 none, 1 some, 2 not a file of JSON.
#include <cstdio>
#include <fstream>

#include "tests/support/trace_file_check.h"

int main(int argc, char** argv) {
  if (argc != 2) return std::fputs("usage: check_trace FILE.json\n", stderr), 2;
  std::ifstream in(argv[1]);
  const auto file = nlohmann::json::parse(in, nullptr, false);
  if (file.is_discarded()) return std::fprintf(stderr, "%s is not JSON\n", argv[1]), 2;
  const uptier::test::TraceFileCheck check(file);
  const auto n = [](uint64_t count) { return static_cast<unsigned long long>(count); };
  std::printf("%llu slices on %llu threads (%llu open), %llu pairs, %llu flows, %llu marks\n",
              n(check.slices()), n(check.threads()), n(check.open()), n(check.pairs()),
              n(check.flows()), n(check.marks()));
  for (const std::string& fault : check.faults()) std::printf("%s\n", fault.c_str());
  return check.faults().empty() ? 0 : 1;
}
