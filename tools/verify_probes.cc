#include "tools/verify_probes.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "embed/wasi/bind.h"
#include "embed/wasi/wasi.h"
#include "embed/wasm/engine.h"
#include "jit/opt/optimize.h"
#include "jit/probes/probe_law.h"
#include "tools/fail.h"
#include "tools/interpreter_runtime.h"
#include "tools/json_out.h"
#include "tools/step_counter.h"

namespace uptier::tools {
namespace {

using jit::BlockExecutions;
using jit::BlockSet;

Error cannot(const std::string& why) {
  return {ErrorCode::kUnsupported, "cannot be checked: " + why};
}

// The program in an engine. Memories have guard pages, as usual: so machine code must have run it without a
// trap before it is interpreted.
class Program {
 public:
  static Result<std::unique_ptr<Program>> load(Runtime& runtime, const std::vector<uint8_t>& bytes,
                                               std::vector<std::string> arguments) {
    std::unique_ptr<Program> p(new Program(runtime, std::move(arguments)));
    auto module = wasm::Module::load(p->engine_, bytes);
    if (!module.ok()) return module.error();
    p->module_ = std::move(*module);
    // All functions get their methods now, in order, so that runtimes number them alike.
    if (auto m = p->module_->methods(wasm::Bounds::kGuarded); !m.ok()) return m.error();
    return p;
  }

  // Runs the program once, in an instance of its own. `around` receives a function that does this.
  template <typename Around>
  Result<int> run(Around around) {
    const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    wasm::WasiConfig config;
    config.args = arguments_;
    config.stdout_fd = nowhere;
    auto wasi = wasm::Wasi::create(std::move(config));
    if (!wasi.ok()) return wasi.error();
    wasm::Linker linker;
    bind_wasi(linker, **wasi);
    wasm::Store store(engine_);
    wasm::Instantiation made = store.instantiate(*module_, linker);
    if (!made.ok()) return made.error ? *made.error : cannot(made.trap.text());
    wasm::CommandResult r;
    around([&] { r = wasm::run_start(*made.instance); });
    ::close(nowhere);
    if (!r.exit_code) return cannot("the program traps: " + r.trap.text());
    return static_cast<int>(*r.exit_code);
  }
  Result<int> run() {
    return run([](auto call) { call(); });
  }

 private:
  Program(Runtime& runtime, std::vector<std::string> arguments)
      : engine_(runtime, {}), arguments_(std::move(arguments)) {}

  wasm::Engine engine_;
  std::vector<std::string> arguments_;
  std::unique_ptr<wasm::Module> module_;
};

// Executions of the blocks of all methods of an interpreter's runtime. `built`: the methods as built.
BlockExecutions executions_in(const InterpreterRuntime& ran, const jit::Module& built) {
  BlockExecutions all;
  for (uint32_t m = 0; m < built.functions.size(); ++m) {
    std::vector<uint64_t>& blocks = all.emplace_back(built.functions[m].block_sites);
    const auto seen = ran.blocks(m);
    std::copy_n(seen.begin(), std::min(seen.size(), blocks.size()), blocks.begin());
  }
  return all;
}

uint64_t sum_of(const BlockExecutions& all) {
  uint64_t sum = 0;
  for (const auto& blocks : all) {
    for (uint64_t n : blocks) sum += n;
  }
  return sum;
}

// All functions, with their true counts.
class Bodies final : public jit::InlineeSource {
 public:
  Bodies(const jit::Module& built, const BlockExecutions& counts) {
    for (uint32_t m = 0; m < built.functions.size(); ++m) {
      all_.push_back({built.functions[m], {.blocks = counts[m]}});
    }
  }
  const jit::Inlinee* find(MethodId m) override {
    return m.index() < all_.size() ? &all_[m.index()] : nullptr;
  }

 private:
  std::vector<jit::Inlinee> all_;
};

// A pass of the compiler: the k-th of its name.
struct PassName {
  std::string name;
  uint32_t number = 0;
  bool operator==(const PassName&) const = default;
};

// A function after each pass that changed it.
class States final : public jit::PassObserver {
 public:
  void after(std::string_view pass, const jit::Function& f) override {
    const uint32_t number = seen_[std::string(pass)]++;
    passes.push_back({std::string(pass), number});
    const uint64_t now = hash_of(f);
    if (now == std::exchange(last_, now)) return;
    states.emplace_back(passes.back(), f);
  }

  std::vector<PassName> passes;
  std::vector<std::pair<PassName, jit::Function>> states;

 private:
  static uint64_t hash_of(const jit::Function& f) {
    uint64_t hash = 0xcbf29ce484222325;
    auto mix = [&](uint64_t n) { hash = (hash ^ n) * 0x100000001b3; };
    for (Block b : f.layout) {
      mix(b.index());
      for (jit::InstId id : f.block(b).insts) {
        const jit::Inst& i = f.inst(id);
        mix(id.index());
        mix(static_cast<uint64_t>(i.op));
        mix(i.imm);
        mix(i.aux);
        mix(i.flags);
        for (Value v : f.args(i)) mix(v.index());
        for (const jit::Edge& e : f.edges_of(i)) mix(e.to.index());
      }
    }
    return hash;
  }

  std::map<std::string, uint32_t> seen_;
  uint64_t last_ = 0;
};

// The passes of all functions, in an order that is the order of each of them.
std::vector<PassName> order_of(const std::vector<States>& all) {
  std::vector<PassName> order;
  for (const States& s : all) {
    size_t at = 0;
    for (const PassName& p : s.passes) {
      auto found = std::find(order.begin(), order.end(), p);
      if (found == order.end()) found = order.insert(order.begin() + static_cast<ptrdiff_t>(at), p);
      at = static_cast<size_t>(found - order.begin()) + 1;
    }
  }
  return order;
}

class Verifier {
 public:
  Verifier(const std::vector<uint8_t>& bytes, std::vector<std::string> arguments)
      : bytes_(bytes), arguments_(std::move(arguments)) {}

  Result<ProbeCheck> check() {
    if (Status s = run(); !s.ok()) return s.error();
    if (Status s = count(); !s.ok()) return s.error();
    if (Status s = check_passes(); !s.ok()) return s.error();
    if (Status s = check_code(); !s.ok()) return s.error();
    return std::move(check_);
  }

 private:
  static Options options() {
    Options o;
    o.tier = TierMode::kOptimized;
    o.workers = 0;
    o.keep_code = true;
    o.relay_code = false;
    return o;
  }

  Status run() {
    auto runtime = Runtime::create(options());
    if (!runtime) return runtime.error();
    ThreadScope scope(**runtime);
    auto program = Program::load(**runtime, bytes_, arguments_);
    if (!program) return program.error();
    Result<int> end = (*program)->run();
    if (!end) return end.error();
    exit_ = *end;
    return {};
  }

  // The program as it was built.
  Status count() {
    InterpreterRuntime ran;
    auto program = Program::load(ran, bytes_, arguments_);
    if (!program) return program.error();
    Result<int> end = (*program)->run();
    if (!end) return end.error();
    if (!ran.problem().empty()) return cannot(ran.problem());
    if (*end != exit_) return cannot("the interpreter ends with another exit code");
    built_ = ran.module();
    want_ = executions_in(ran, built_);
    for (uint32_t m = 0; m < built_.functions.size(); ++m) {
      numbers_.emplace(std::pair(ran.info(m).key, built_.functions[m].name), m);
    }
    check_.executions = sum_of(want_);
    return {};
  }

  Status check_passes() {
    Bodies bodies(built_, want_);
    std::vector<States> all(built_.functions.size());
    for (uint32_t m = 0; m < built_.functions.size(); ++m) {
      jit::Function f = built_.functions[m];
      jit::optimize(f, {.self = MethodId(m), .counts = want_[m], .source = &bodies}, &all[m]);
    }
    uint64_t lost = 0;
    std::vector<std::optional<jit::Function>> now(built_.functions.size());
    std::vector<size_t> next(now.size());
    for (const PassName& pass : order_of(all)) {
      bool changed = false;
      for (size_t m = 0; m < now.size(); ++m) {
        auto& states = all[m].states;
        if (next[m] == states.size() || states[next[m]].first != pass) continue;
        now[m] = std::move(states[next[m]++].second);
        changed = true;
      }
      ProbeCheck::Step& step = step_of(pass.name);
      if (!changed) continue;
      if (Status s = check_pass(now, step, lost); !s.ok()) return s;
    }
    return {};
  }

  ProbeCheck::Step& step_of(const std::string& pass) {
    auto at = std::ranges::find(check_.steps, pass, &ProbeCheck::Step::pass);
    if (at != check_.steps.end()) return *at;
    check_.steps.push_back({pass, 0, ""});
    return check_.steps.back();
  }

  // `lost`: the executions that passes before have lost.
  Status check_pass(const std::vector<std::optional<jit::Function>>& now, ProbeCheck::Step& step,
                    uint64_t& lost) {
    InterpreterRuntime ran;
    ran.instead = now;
    auto program = Program::load(ran, bytes_, arguments_);
    if (!program) return program.error();
    Result<int> end = (*program)->run();
    if (!end) return Error{end.error().code, "after " + step.pass + ": " + end.error().message};
    if (!ran.problem().empty()) return cannot("after " + step.pass + ": " + ran.problem());
    if (*end != exit_)
      return cannot("after " + step.pass + " the program ends with another exit code");
    BlockSet unknown = jit::no_blocks(built_);
    for (uint32_t m = 0; m < now.size(); ++m) {
      if (now[m]) jit::add_unknown_blocks(*now[m], MethodId(m), unknown);
    }
    const jit::ProbeLaw law = jit::check_probe_law(want_, executions_in(ran, built_), unknown);
    note(law, step);
    if (law.lost > lost) step.lost += law.lost - lost;
    lost = law.lost;
    return {};
  }

  void note(const jit::ProbeLaw& law, ProbeCheck::Step& step) const {
    if (law.holds || !step.broken.empty()) return;
    step.broken = built_.functions[law.method.index()].name + ": " + law.text();
  }

  Status check_code() {
    auto runtime = Runtime::create(options());
    if (!runtime) return runtime.error();
    ThreadScope scope(**runtime);
    auto program = Program::load(**runtime, bytes_, arguments_);
    if (!program) return program.error();
    if (Result<int> end = (*program)->run(); !end) return end.error();
    const CodeImages before = (*runtime)->code_images();
    std::vector<StepCounter::Range> ranges;
    for (const CodeImage& c : before.codes) {
      if (c.freed) continue;
      ranges.push_back({c.address, c.hot_size});
      ranges.push_back({c.cold_address, c.bytes.size() - c.hot_size});
    }
    StepCounter steps(ranges);
    Result<int> end = (*program)->run([&](auto call) {
      steps.begin();
      call();
      steps.end();
    });
    if (!end) return end.error();
    if (*end != exit_) return cannot("machine code ends with another exit code");
    const CodeImages after = (*runtime)->code_images();
    if (after.codes != before.codes) return cannot("code was compiled during the second run");
    check_.code_steps = steps.steps();
    check_rows(after, steps);
    return {};
  }

  void check_rows(const CodeImages& images, const StepCounter& steps) {
    BlockExecutions got;
    for (const auto& blocks : want_) got.emplace_back(blocks.size());
    BlockSet unknown = jit::no_blocks(built_);
    for (const CodeImage& c : images.codes) {
      if (!c.freed) add_rows(images, c, steps, got, unknown);
    }
    ProbeCheck::Step& step = step_of("code");
    const jit::ProbeLaw law = jit::check_probe_law(want_, got, unknown);
    note(law, step);
    step.lost = check_.code_lost = law.lost;
    for (size_t m = 0; m < want_.size(); ++m) {
      for (size_t b = 0; b < want_[m].size(); ++b) {
        if (unknown[m][b]) check_.code_doubtful += want_[m][b];
      }
    }
  }

  // Adds the starts of a code's rows, and its blocks that have none, or too few.
  void add_rows(const CodeImages& images, const CodeImage& c, const StepCounter& steps,
                BlockExecutions& got, BlockSet& unknown) const {
    std::vector<std::optional<uint32_t>> methods;
    for (const ImageBody& b : c.bodies) {
      const ImagedMethod& m = images.methods[b.method];
      auto at = numbers_.find({m.key, m.name});
      methods.push_back(at == numbers_.end() ? std::nullopt : std::optional(at->second));
    }
    std::vector<std::vector<bool>> whole(c.bodies.size());
    for (size_t b = 0; b < methods.size(); ++b) {
      if (methods[b]) whole[b].resize(want_[*methods[b]].size());
    }
    for (const ImageRow& r : c.rows) {
      const auto m = methods[r.body];
      if (r.kind != ImageRow::Kind::kBlock || !m || r.site - 1 >= whole[r.body].size()) continue;
      const bool cold = r.offset >= c.hot_size;
      const uint64_t at = cold ? c.cold_address + (r.offset - c.hot_size) : c.address + r.offset;
      got[*m][r.site - 1] += steps.starts(at);
      whole[r.body][r.site - 1] = !r.partial;
    }
    for (size_t b = 0; b < whole.size(); ++b) {
      for (size_t s = 0; s < whole[b].size(); ++s) {
        if (!whole[b][s]) unknown[*methods[b]][s] = true;
      }
    }
  }

  const std::vector<uint8_t>& bytes_;
  std::vector<std::string> arguments_;
  int exit_ = 0;
  jit::Module built_;
  BlockExecutions want_;
  std::map<std::pair<MethodKey, std::string>, uint32_t> numbers_;  // of methods
  ProbeCheck check_;
};

double percent(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole);
}

void print(const ProbeCheck& c) {
  std::printf("%-26s %-10s %10s\n", "after", "blocks are", "unknown");
  for (const ProbeCheck::Step& s : c.steps) {
    const char* kind = !s.broken.empty() ? "BROKEN" : s.lost == 0 ? "known" : "unknown";
    std::printf("%-26s %-10s %8.3f %%\n", s.pass.c_str(), kind, percent(s.lost, c.executions));
  }
  std::printf(
      "%llu executions of blocks; rows of the machine code count %.2f %%; %.2f %% are of blocks "
      "that are "
      "partial or unknown\n",
      static_cast<unsigned long long>(c.executions), 100 - percent(c.code_lost, c.executions),
      percent(c.code_doubtful, c.executions));
}

nlohmann::ordered_json to_json(const ProbeCheck& c) {
  nlohmann::ordered_json steps = nlohmann::ordered_json::array();
  for (const ProbeCheck::Step& s : c.steps) {
    steps.push_back({{"after", s.pass}, {"unknown", s.lost}, {"broken", s.broken}});
  }
  return {{"executions", c.executions},        {"steps", std::move(steps)},
          {"code_unknown", c.code_lost},       {"code_partial_or_unknown", c.code_doubtful},
          {"code_instructions", c.code_steps}, {"holds", c.holds()}};
}

}  // namespace

bool ProbeCheck::holds() const {
  return std::ranges::all_of(steps, [](const Step& s) { return s.broken.empty(); });
}

Result<ProbeCheck> verify_probes(const std::string& file, const std::vector<uint8_t>& bytes,
                                 const std::vector<std::string>& arguments) {
  std::vector<std::string> all{file};
  all.insert(all.end(), arguments.begin(), arguments.end());
  return Verifier(bytes, std::move(all)).check();
}

int show_verify_probes(const CompileCommand& c, const std::vector<uint8_t>& bytes) {
  auto check = verify_probes(c.file, bytes, c.args);
  if (!check) {
    Error e = check.error();
    e.message = c.file + ": " + e.message;
    return fail(e);
  }
  if (c.json) {
    if (int printed = print_json(to_json(*check)); printed != kOk) return printed;
  } else {
    print(*check);
  }
  for (const ProbeCheck::Step& s : check->steps) {
    if (!s.broken.empty()) fail(kFailed, c.file + ": after " + s.pass + ", " + s.broken);
  }
  return check->holds() ? int{kOk} : int{kFailed};
}

}  // namespace uptier::tools
