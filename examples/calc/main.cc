// calc: runs a program, by the interpreter alone or through all tiers.
#include <sys/resource.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "interpret.h"
#include "tiers.h"

namespace {

constexpr const char* kUsage =
    "usage: calc [OPTION...] PROGRAM.calc [ARGUMENT...]\n"
    "  --interpret        no tiers: the interpreter alone\n"
    "  -O NAME=VALUE      any option of the runtime, as UPTIER_NAME in the environment; also\n"
    "                     --NAME=VALUE, e.g. --tier=optimized\n"
    "  --memory=MIB       size of the arena, 2048 by default\n"
    "  --collect=every:N  collect at every N-th allocation, for tests\n"
    "  --report           what the runtime did, to stderr\n"
    "  --ir=FUNCTION      how the function was described, to stderr\n";

struct Arguments {
  uptier::Options options;
  bool help = false, interpret = false, report = false;
  std::string ir = {};  // of which function
  size_t memory = 2048;
  uint64_t collect_every = 0;
  const char* program = nullptr;
  std::vector<std::string> rest = {};
};

int fail(int code, const std::string& what) {
  std::fflush(stdout);
  std::fprintf(stderr, "calc: %s\n", what.c_str());
  return code;
}

uptier::Status parse_arguments(int argc, char** argv, Arguments& a) {
  int i = 1;
  for (; i < argc && argv[i][0] == '-'; ++i) {
    std::string_view s = argv[i];
    uptier::Status set;
    if (s == "--help") {
      a.help = true;
    } else if (s == "--interpret") {
      a.interpret = true;
    } else if (s == "--report") {
      a.report = true;
    } else if (s.starts_with("--memory=")) {
      a.memory = std::strtoul(argv[i] + 9, nullptr, 10);
    } else if (s.starts_with("--collect=every:")) {
      a.collect_every = std::strtoul(argv[i] + 16, nullptr, 10);
    } else if (s.starts_with("--ir=")) {
      a.ir = s.substr(5);
    } else {
      set =
          a.options.set(s == "-O" && i + 1 < argc ? argv[++i] : s.substr(std::min(s.size(), 2ul)));
    }
    if (!set) return set;
  }
  if (i < argc) a.program = argv[i++];
  a.rest.assign(argv + std::min(i, argc), argv + argc);
  return {};
}

// The lowest address that the interpreter's recursion may reach: what the thread has, less a
// reserve.
uintptr_t native_stack_end() {
  rlimit limit;
  getrlimit(RLIMIT_STACK, &limit);
  size_t size = std::min<size_t>(limit.rlim_cur, 64 << 20);
  return reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) - size + (512 << 10);
}

std::string collector_text(const calc::Arena::Counts& c) {
  auto mib = [](uint64_t bytes) { return std::to_string(bytes >> 20) + " MiB"; };
  return "collector: " + std::to_string(c.collections) + " collections, " +
         mib(c.bytes_found_dead) + " found dead, " + mib(c.most_bytes_in_use) + " in use at most\n";
}

uptier::Status run_tiered(calc::Vm& vm, const Arguments& a) {
  auto runtime = uptier::Runtime::create(a.options);
  if (!runtime) return runtime.error();
  calc::Tiers tiers(vm, **runtime);
  {
    // Countdowns belong to threads, so the thread is attached before anything counts.
    uptier::ThreadScope attached(**runtime);
    if (!attached.status()) return attached.status();
    if (uptier::Status added = tiers.add_all(); !added) return added;
    tiers.run();
    if (a.report) (*runtime)->flush();
    std::fflush(stdout);
    std::string said = a.ir.empty() ? "" : tiers.ir(a.ir);
    if (a.report) said += (*runtime)->report().text() + tiers.summary();
    std::fputs(said.c_str(), stderr);
  }
  runtime->reset();  // before the host that it refers to
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  auto options = uptier::Options::from_env();
  if (!options) return fail(2, options.error().message);
  Arguments a{*options};
  if (auto parsed = parse_arguments(argc, argv, a); !parsed) return fail(2, parsed.error().message);
  if (a.help) return std::fputs(kUsage, stdout) < 0;
  if (a.program == nullptr) return fail(2, kUsage);
  std::ifstream in(a.program, std::ios::binary);
  std::stringstream source;
  source << in.rdbuf();
  if (!in) return fail(2, std::string(a.program) + ": cannot be read");

  uptier_trace_init(nullptr);  // UPTIER_TRACE=1 and two paths turn it on, see docs/tracing.md
  calc::Vm vm(a.memory << 20);
  vm.arguments = a.rest;
  vm.file = a.program;
  vm.native_stack_end = native_stack_end();
  vm.native_stack_base = __builtin_frame_address(0);
  vm.heap.collect_every(a.collect_every);
  std::string wrong = vm.load(source.str());
  if (!wrong.empty()) return fail(2, std::string(a.program) + ": " + wrong);
  vm.trace.start(vm.code, a.program);
  if (a.interpret) {
    calc::Closure* main = vm.heap.closure(vm.code.protos[0].get(), 0);
    calc::interpret(vm, calc::Interpreter::kPlain, main, nullptr);
  } else if (auto ran = run_tiered(vm, a); !ran) {
    return fail(2, ran.error().message);
  }
  if (a.report) std::fputs(collector_text(vm.heap.counts()).c_str(), stderr);
  const uint64_t lost = uptier_trace_finish();
  if (lost != 0) fail(1, std::to_string(lost) + " events of the trace are lost");
  if (vm.failed) return fail(1, std::string(a.program) + ": " + vm.error);
  return lost == 0 ? 0 : 1;
}
