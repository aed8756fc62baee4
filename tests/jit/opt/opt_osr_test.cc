// OSR versions, entered from running baseline frames at every loop header and at different visits.
#include "jit/analysis/frame_layout.h"
#include "jit/analysis/loop_scope.h"
#include "jit/opt/osr_entry.h"
#include "tests/support/opt_harness.h"

namespace uptier::test::opt_osr_test {
namespace {

// All functions of a module as baseline code; one of them enters an OSR version at the n-th visit
// of one loop.
class OsrModule {
 public:
  OsrModule(CodeMachine& machine, const jit::Module& module)
      : machine_(machine), module_(module), resolver_(machine) {
    helpers_.trap_exit = machine.routines->trap_exit();
    helpers_.loop_slow_plain = reinterpret_cast<const void*>(&OsrModule::loop_slow);
    helpers_.loop_slow_instrumented = helpers_.loop_slow_plain;
    for (uint32_t i = 0; i < module.functions.size(); ++i) {
      EXPECT_TRUE(machine.stubs->ensure(MethodId(i)).ok());
    }
    for (uint32_t i = 0; i < module.functions.size(); ++i) {
      auto code = jit::compile_baseline(input(i), {});
      EXPECT_TRUE(code.ok()) << code.error().message;
      machine.stubs->set_target(MethodId(i), (*code)->entry());
      machine.thread.method(i).loop_countdown = 1;
      codes_.push_back(std::move(*code));
    }
  }

  // Makes the next run enter the optimized version at visit `visit` of the loop, once.
  bool arm(uint32_t method, LoopId loop, uint64_t visit, Copy copy = Copy::kPlain) {
    auto code = jit::compile_optimized(input(method), {.osr_loop = loop, .copy = copy});
    EXPECT_TRUE(code.ok()) << code.error().message;
    if (!code.ok()) return false;
    osr_ = std::move(*code);
    slab_.assign(slab_words(module_.functions[method], *osr_), 0);
    machine_.thread.method(method).optimized_slab = slab_.data();
    method_ = method;
    loop_ = loop.index();
    left_ = visit + 1;
    entered_ = false;
    current_ = this;
    return true;
  }
  bool entered() const { return entered_; }
  // The code of the version that was armed last, and its counts if it is an instrumented copy.
  const jit::Code& osr() const { return *osr_; }
  const std::vector<uint64_t>& slab() const { return slab_; }
  const void* entry(uint32_t m) const { return machine_.stubs->stub(MethodId(m)); }

 private:
  struct Resolver final : jit::CallResolver {
    explicit Resolver(CodeMachine& m) : machine(m) {}
    jit::CallTarget target(MethodId callee) override {
      return {jit::CallTarget::Kind::kStub, machine.stubs->stub(callee)};
    }
    CodeMachine& machine;
  };

  jit::CompileInput input(uint32_t i) {
    return {module_.functions[i], MethodId(i), helpers_, resolver_, *machine_.space};
  }

  static const void* loop_slow(uint32_t method, uint32_t loop, void*) noexcept {
    OsrModule& m = *current_;
    m.machine_.thread.method(method).loop_countdown = 1;
    const jit::Code& code = *m.codes_[method];
    if (method == m.method_ && loop == m.loop_ && m.left_ > 0 && --m.left_ == 0) {
      m.entered_ = true;
      return m.osr_->entry();
    }
    return code.at(code.tables().loops[loop].continue_offset);
  }

  inline static OsrModule* current_ = nullptr;
  CodeMachine& machine_;
  const jit::Module& module_;
  Resolver resolver_;
  jit::Helpers helpers_;
  std::vector<std::unique_ptr<jit::Code>> codes_;
  std::unique_ptr<jit::Code> osr_;
  std::vector<uint64_t> slab_;
  uint32_t method_ = 0, loop_ = 0;
  uint64_t left_ = 0;
  bool entered_ = false;
};

// A random module; its last function is called with arguments from the same seed.
struct OsrCase {
  OsrCase(uint64_t seed, const RandomOptions& options)
      : module(random_module(seed, options)), code(machine, module) {
    Random random(seed);
    args = random_arguments(signature(), scratch, random);
  }

  const Signature& signature() const { return module.functions[last].signature(); }
  // Returns the interpreter's answer.
  Answer wanted() {
    scratch.fill();
    corpus_notes = 0;
    return interpret(oracle, MethodId(last), args);
  }
  auto run() {
    scratch.fill();
    corpus_notes = 0;
    return machine.run(code.entry(last), signature(), args);
  }

  jit::Module module;
  Scratch scratch;
  CodeMachine machine;
  OsrModule code;
  const uint32_t last = static_cast<uint32_t>(module.functions.size() - 1);
  std::vector<uint64_t> args;
  jit::Interpreter oracle{module, interpret_options(scratch)};
};

// Enters every loop of the module's last function at visits 0, 1 and 2. Returns the first
// difference from the interpreter, or "". Adds to the number of entries.
std::string compare_osr(uint64_t seed, const RandomOptions& options, uint64_t& entries) {
  OsrCase c(seed, options);
  const Type result = c.signature().result;
  const Answer want = c.wanted();
  const std::string bytes = c.scratch.bytes();
  const uint64_t notes = corpus_notes;
  for (uint32_t f = 0; f <= c.last; ++f) {
    for (uint32_t loop = 0; loop < c.module.functions[f].loop_count; ++loop) {
      for (uint64_t visit = 0; visit < 3; ++visit) {
        if (!c.code.arm(f, LoopId(loop), visit)) return "no code";
        auto got = c.run();
        entries += c.code.entered();
        bool same = got.trap == want.trap && notes == corpus_notes && bytes == c.scratch.bytes() &&
                    (want.trap != TrapCode::kNone || same_value(result, got.bits, want.bits));
        if (!same) {
          return "seed " + std::to_string(seed) + " f" + std::to_string(f) + " loop " +
                 std::to_string(loop) + " visit " + std::to_string(visit) + ": " +
                 answer_text(result, {got.bits, got.trap}) + ", not " + answer_text(result, want);
        }
      }
    }
  }
  return "";
}

TEST(OptOsr, frames_that_change_code_at_a_loop_answer_the_same) {
  corpus_raise = raise_in_context;
  const char* text = std::getenv("UPTIER_RANDOM_SEEDS");
  uint64_t seeds = text != nullptr ? std::strtoull(text, nullptr, 10) : 100;
  uint64_t entries = 0;
  for (uint64_t seed = 1; seed <= seeds; ++seed) {
    ASSERT_EQ("", compare_osr(seed, {.functions = 2, .depth = 4}, entries));
  }
  EXPECT_GT(entries, seeds);
}

struct Counted {
  uint64_t blocks = 0, executions = 0;
};

// Runs the module's last function and enters an instrumented copy at the first visit of each loop.
// In a method that is called once, the copy then runs every remaining iteration of the loop.
// Returns the first difference from the interpreter, or "".
std::string compare_osr_counts(uint64_t seed, Counted& counted) {
  OsrCase c(seed, {.functions = 2, .depth = 4});
  const Answer want = c.wanted();
  const MethodId last(c.last);
  if (c.oracle.entries(last) != 1) return "";
  auto counts = c.oracle.site_counts(last);
  const jit::Function& f = c.module.functions[c.last];
  for (uint32_t loop = 0; loop < f.loop_count; ++loop) {
    if (!c.code.arm(c.last, LoopId(loop), 0, Copy::kInstrumented)) return "no code";
    auto got = c.run();
    if (got.trap != want.trap) return "seed " + std::to_string(seed) + ": answer";
    if (!c.code.entered()) continue;
    jit::LoopScope scope = jit::scope_of(f, LoopId(loop));
    for (SiteId site : jit::observed_sites(c.code.osr())) {
      if (site > f.block_sites || !scope.sites[site - 1]) continue;
      ++counted.blocks;
      counted.executions += counts[site - 1];
      if (c.code.slab()[site - 1] == counts[site - 1]) continue;
      return "seed " + std::to_string(seed) + " loop " + std::to_string(loop) + " block " +
             std::to_string(site) + ": " + std::to_string(c.code.slab()[site - 1]) + ", not " +
             std::to_string(counts[site - 1]);
    }
  }
  return "";
}

TEST(OptOsr, copies_count_what_the_interpreter_counts_in_their_loop) {
  corpus_raise = raise_in_context;
  Counted counted;
  for (uint64_t seed = 1; seed <= 120; ++seed) { ASSERT_EQ("", compare_osr_counts(seed, counted)); }
  EXPECT_GT(counted.blocks, 500u);
  EXPECT_GT(counted.executions, 1000u);
}

// The function that starts at a loop is well formed like any other.
TEST(OptOsr, entered_functions_verify) {
  size_t loops = 0;
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    for (const jit::Function& f : random_module(seed, {.depth = 4}).functions) {
      jit::Liveness live = jit::compute_liveness(f);
      jit::FrameLayout frame = jit::layout_frame(f, live);
      for (uint32_t loop = 0; loop < f.loop_count; ++loop, ++loops) {
        auto entered = jit::enter_at_loop(f, LoopId(loop), live, frame);
        ASSERT_TRUE(entered.ok());
        Status s = jit::verify(entered->function, jit::Stage::kTransformed);
        ASSERT_TRUE(s.ok()) << "seed " << seed << ": " << s.error().message;
        for (int32_t slot : entered->slots) ASSERT_LT(slot, 0);
      }
    }
  }
  EXPECT_GT(loops, 300u);
}

TEST(OptOsr, a_loop_that_is_not_there_is_refused) {
  jit::Function f = random_module(1).functions[0];
  jit::Liveness live = jit::compute_liveness(f);
  auto entered = jit::enter_at_loop(f, LoopId(f.loop_count), live, jit::layout_frame(f, live));
  ASSERT_FALSE(entered.ok());
  EXPECT_EQ(entered.error().code, ErrorCode::kInvalidArgument);
}

}  // namespace
}  // namespace uptier::test::opt_osr_test
