// calc: runs a program, by the interpreter alone or through all tiers.
#include <sys/resource.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>

#include "interpret.h"
#include "tiers.h"

namespace {

constexpr const char* kUsage =
    "calc [OPTION...] PROGRAM.calc [ARGUMENT...]\n"
    "  --interpret        no tiers: the interpreter alone\n"
    "  --tier=MODE        auto, baseline, instrumented or optimized\n"
    "  --stress=PLAN      as UPTIER_STRESS\n"
    "  -O NAME=VALUE      any option of the runtime; UPTIER_NAME in the environment does the same\n"
    "  --memory=MIB       size of the arena, 2048 by default\n"
    "  --report           what the runtime did, to stderr\n"
    "  --ir=FUNCTION      how the function was described, to stderr\n";

struct Arguments {
  bool interpret = false;
  bool report = false;
  std::string ir = {};  // of which function
  size_t memory = 2048;
  uptier::Options options;
  const char* program = nullptr;
  std::vector<std::string> rest = {};
};

int fail(int code, const std::string& what) {
  std::fflush(stdout);
  std::fprintf(stderr, "calc: %s\n", what.c_str());
  return code;
}

// Sets an option from NAME=VALUE.
uptier::Status set_option(uptier::Options& options, std::string_view text) {
  size_t sign = text.find('=');
  if (sign == std::string_view::npos) {
    return uptier::Error{uptier::ErrorCode::kInvalidArgument, "-O wants NAME=VALUE"};
  }
  if (text.substr(0, sign) == "stress") {
    options.stress = text.substr(sign + 1);
    return {};
  }
  return options.set(text.substr(0, sign), text.substr(sign + 1));
}

uptier::Status parse_arguments(int argc, char** argv, Arguments& a) {
  for (int i = 1; i < argc; ++i) {
    std::string_view s = argv[i];
    uptier::Status status;
    if (a.program != nullptr) {
      a.rest.emplace_back(s);
    } else if (s == "--interpret") {
      a.interpret = true;
    } else if (s == "--report") {
      a.report = true;
    } else if (s.starts_with("--memory=")) {
      a.memory = std::strtoul(argv[i] + 9, nullptr, 10);
    } else if (s.starts_with("--ir=")) {
      a.ir = s.substr(5);
    } else if (s.starts_with("--tier=") || s.starts_with("--stress=")) {
      status = set_option(a.options, s.substr(2));
    } else if (s == "-O" && i + 1 < argc) {
      status = set_option(a.options, argv[++i]);
    } else if (s.starts_with("-")) {
      status =
          uptier::Error{uptier::ErrorCode::kInvalidArgument, "no such option: " + std::string(s)};
    } else {
      a.program = argv[i];
    }
    if (!status) return status;
  }
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

int run_tiered(calc::Vm& vm, const Arguments& a) {
  auto runtime = uptier::Runtime::create(a.options);
  if (!runtime) return fail(2, runtime.error().message);
  calc::Tiers tiers(vm, a.options.tier != uptier::TierMode::kAuto);
  {
    // Countdowns belong to threads, so the thread is attached before anything counts.
    uptier::ThreadScope attached(**runtime);
    if (!attached.status()) return fail(2, attached.status().error().message);
    uptier::Status added = tiers.add_all(**runtime);
    if (!added) return fail(2, added.error().message);
    tiers.run();
    if (a.report) (*runtime)->flush();
    if (a.report) std::fflush(stdout);
    if (!a.ir.empty()) std::fputs(tiers.ir(a.ir).c_str(), stderr);
    if (a.report) std::fputs((*runtime)->report().text().c_str(), stderr);
    if (a.report) std::fputs(tiers.summary().c_str(), stderr);
  }
  runtime->reset();  // before the host that it refers to
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  auto options = uptier::Options::from_env();
  if (!options) return fail(2, options.error().message);
  Arguments a{.options = *options};
  uptier::Status parsed = parse_arguments(argc, argv, a);
  if (!parsed) return fail(2, parsed.error().message);
  if (a.program == nullptr) return fail(2, std::string("usage:\n") + kUsage);
  std::ifstream in(a.program, std::ios::binary);
  std::stringstream source;
  source << in.rdbuf();
  if (!in) return fail(2, std::string(a.program) + ": cannot be read");

  calc::Vm vm(a.memory << 20);
  vm.arguments = a.rest;
  vm.native_stack_end = native_stack_end();
  std::string wrong = vm.load(source.str());
  if (!wrong.empty()) return fail(2, std::string(a.program) + ": " + wrong);
  int code = 0;
  if (a.interpret) {
    calc::Closure* main = vm.heap.closure(vm.code.protos[0].get(), 0);
    calc::interpret(vm, calc::Interpreter::kPlain, main, nullptr);
  } else {
    code = run_tiered(vm, a);
  }
  if (vm.failed) return fail(1, std::string(a.program) + ": " + vm.error);
  return code;
}
