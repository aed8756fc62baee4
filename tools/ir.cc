// uptier ir: the IR's text form, checked, printed, and run.
#include <cstdio>

#include "jit/frontend/interpret.h"
#include "jit/frontend/parse.h"
#include "jit/frontend/verify.h"
#include "jit/ir/print.h"
#include "tools/commands.h"
#include "tools/fail.h"
#include "tools/ir_host.h"
#include "tools/values.h"

namespace uptier::tools {
namespace {

// Parses the file; on failure says why and leaves the exit code in `code`.
std::optional<jit::Module> load(const IrCommand& c, int& code) {
  std::vector<uint8_t> bytes;
  code = kFailed;
  if (!read_file(c.file, bytes)) return std::nullopt;
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  Result<jit::Module> m = jit::parse_module(text, {.file = c.file});
  code = kCorrupt;
  if (!m) {
    fail(kCorrupt, m.error().message);
    return std::nullopt;
  }
  code = kOk;
  return std::move(*m);
}

// Prints every problem of every function; returns how many there were.
size_t print_problems(const jit::Module& m) {
  size_t count = 0;
  for (const jit::Function& f : m.functions) {
    for (const std::string& p : jit::find_problems(f)) {
      std::fprintf(stderr, "uptier: %s\n", p.c_str());
      ++count;
    }
  }
  return count;
}

int print_outcome(const Signature& s, TrapCode trap, uint64_t bits) {
  if (trap != TrapCode::kNone) return fail(kTrapped, std::string("trap: ") + trap_text(trap));
  if (s.result != Type::kNone) std::printf("%s\n", print_value(s.result, bits).c_str());
  return kOk;
}

int interpret(const jit::Module& m, MethodId f, std::span<const uint64_t> args) {
  jit::Interpreter interpreter(m);
  jit::InterpretOutcome o = interpreter.run(f, args);
  if (o.kind == jit::InterpretOutcome::Kind::kStopped) return fail(kFailed, o.why);
  return print_outcome(m.functions[f.index()].signature(), o.trap, o.bits);
}

int run_tiers(const IrCommand& c, const jit::Module& m, MethodId f,
              std::span<const uint64_t> args) {
  std::unique_ptr<IrHost> host;  // the worker asks it until the runtime ends
  Result<std::unique_ptr<Runtime>> runtime = Runtime::create(c.options);
  if (!runtime) return fail(kFailed, runtime.error().message);
  Result<std::unique_ptr<IrHost>> added = IrHost::add(**runtime, m);
  if (!added) return fail(kFailed, added.error().message);
  host = std::move(*added);
  if (c.shown.loops == kEachLoop) (*runtime)->keep_loop_executions(kEachLoopMost);
  ThreadScope attached(**runtime);
  Outcome o = (*runtime)->invoke(host->method(f), args);
  int code = print_outcome(m.functions[f.index()].signature(), o.trap.code, o.bits);
  Shown what = c.shown;
  what.report_methods = 0;
  const int shown = show(**runtime, what);
  return code == kOk ? shown : code;
}

}  // namespace

int ir_print(const IrCommand& c) {
  int code;
  std::optional<jit::Module> m = load(c, code);
  if (m) std::fputs(jit::to_text(*m).c_str(), stdout);
  return code;
}

int ir_verify(const IrCommand& c) {
  int code;
  std::optional<jit::Module> m = load(c, code);
  if (!m) return code;
  if (print_problems(*m) != 0) return kCorrupt;
  std::printf("%s: valid, %zu functions\n", c.file.c_str(), m->functions.size());
  return kOk;
}

int ir_run(const IrCommand& c) {
  int code;
  std::optional<jit::Module> m = load(c, code);
  if (!m) return code;
  if (print_problems(*m) != 0) return kCorrupt;
  if (m->functions.empty()) return fail(kFailed, c.file + ": no function");
  MethodId f = c.function.empty() ? MethodId(static_cast<uint32_t>(m->functions.size() - 1))
                                  : m->find(c.function);
  if (!f.valid()) return fail(kFailed, c.file + ": no function @" + c.function);
  const std::vector<Type>& params = m->functions[f.index()].signature().params;
  if (params.size() != c.args.size()) {
    return fail(kUsage, c.file + ": @" + m->functions[f.index()].name + " takes " +
                            std::to_string(params.size()) + " arguments, " +
                            std::to_string(c.args.size()) + " given");
  }
  std::vector<uint64_t> args;
  for (size_t i = 0; i < params.size(); ++i) {
    std::optional<uint64_t> bits = parse_value(params[i], c.args[i]);
    if (!bits) return fail(kUsage, "\"" + c.args[i] + "\" is no " + type_name(params[i]));
    args.push_back(*bits);
  }
  return c.interpret ? interpret(*m, f, args) : run_tiers(c, *m, f, args);
}

}  // namespace uptier::tools
