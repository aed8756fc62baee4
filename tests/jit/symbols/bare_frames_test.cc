// Optimized code without a frame, or with a late one: at each instruction the unwind information
// matches the machine state, and traps there are reported as usual.
#include <elf.h>
#include <signal.h>
#include <ucontext.h>

#include <cstring>
#include <map>

#include "jit/symbols/gdb_image.h"
#include "jit/symbols/native_tools.h"
#include "jit/x64/code_buffer.h"
#include "tests/support/golden.h"
#include "tests/support/ir_programs.h"
#include "tests/support/opt_harness.h"

namespace uptier::test::bare_frames_test {
namespace {

using Kind = jit::FrameState::Kind;
using Ran = CodeMachine::Ran;

constexpr uint32_t kRbp = 6, kRsp = 7;  // DWARF's numbers
constexpr uint32_t kPreserved[] = {3, 12, 13, 14, 15, kRbp};

// ---- Call frame information, interpreted as unwinders do ----------------------------------------

struct Rules {
  uint32_t cfa_register = kRsp;
  uint32_t cfa_offset = 8;
  std::map<uint32_t, uint32_t> saved;  // register: how many words below the CFA it is saved
  bool operator==(const Rules&) const = default;
};

class FrameReader {
 public:
  FrameReader(const uint8_t* at, const uint8_t* end) : at_(at), end_(end) {}

  // Returns the rules that hold at each of the `size` bytes of code.
  std::vector<Rules> run(uint32_t size) {
    std::vector<Rules> all;
    Rules now;
    auto advance = [&](uint32_t by) { all.insert(all.end(), by, now); };
    while (at_ < end_) {
      uint8_t op = *at_++;
      switch (op & 0xc0) {
        case 0x40: advance(op & 0x3f); continue;
        case 0x80: now.saved[op & 0x3f] = uleb(); continue;
        case 0xc0: now.saved.erase(op & 0x3f); continue;
        default: break;
      }
      switch (op) {
        case 0x00: break;
        case 0x04: advance(word()); break;
        case 0x0c: now.cfa_register = uleb(), now.cfa_offset = uleb(); break;
        case 0x0d: now.cfa_register = uleb(); break;
        case 0x0e: now.cfa_offset = uleb(); break;
        default: ADD_FAILURE() << "operation " << int(op); return all;
      }
    }
    EXPECT_LE(all.size(), size);
    all.resize(size, now);
    return all;
  }

 private:
  uint32_t uleb() {
    uint32_t n = 0;
    for (uint32_t shift = 0;; shift += 7) {
      n |= uint32_t{*at_ & 0x7fu} << shift;
      if ((*at_++ & 0x80) == 0) return n;
    }
  }
  uint32_t word() {
    uint32_t n;
    std::memcpy(&n, at_, 4);
    at_ += 4;
    return n;
  }
  const uint8_t* at_;
  const uint8_t* end_;
};

// Returns the rules of the only body of an image: the second entry of its .eh_frame.
std::vector<Rules> rules_of(const jit::NamedCode& code) {
  std::vector<uint8_t> image = jit::gdb_image({&code, 1});
  const auto* file = reinterpret_cast<const Elf64_Ehdr*>(image.data());
  const auto* sections = reinterpret_cast<const Elf64_Shdr*>(image.data() + file->e_shoff);
  const uint8_t* cie = image.data() + sections[1].sh_offset;
  auto length = [](const uint8_t* entry) {
    uint32_t n;
    std::memcpy(&n, entry, 4);
    return n;
  };
  const uint8_t* fde = cie + 4 + length(cie);
  constexpr uint32_t kHeader = 4 + 4 + 8 + 8;
  return FrameReader(fde + kHeader, fde + 4 + length(fde)).run(code.size);
}

// ---- One instruction at a time -----------------------------------------------------------------

// Single-steps code with the trap flag. At each instruction of known code it finds the caller by
// the unwind rules, and compares the result with the state that it recorded at the entry.
class Stepper {
 public:
  void add(const jit::Code& code) {
    for (const jit::NamedCode& part : jit::parts_of(code, "f [x", false)) {
      parts_.push_back({part.base, part.size, code.entry(), rules_of(part)});
    }
  }

  template <typename F>
  void step(F f) {
    g_stepper = this;
    struct sigaction ours = {}, before = {};
    ours.sa_sigaction = [](int, siginfo_t*, void* machine) {
      g_stepper->on_step(*static_cast<ucontext_t*>(machine));
    };
    ours.sa_flags = SA_SIGINFO | SA_ONSTACK;
    ::sigaction(SIGTRAP, &ours, &before);
    stepping_ = true;
    ::raise(SIGTRAP);
    f();
    stepping_ = false;
    ::raise(SIGTRAP);
    ::sigaction(SIGTRAP, &before, nullptr);
  }

  uint64_t steps = 0, calls = 0, without_frame = 0;
  std::string wrong;  // the first error

 private:
  struct Part {
    const uint8_t* base;
    uint32_t size;
    const void* entry;
    std::vector<Rules> rules;
  };
  struct Call {
    uint64_t cfa, back;
    uint64_t preserved[std::size(kPreserved)];
  };
  static constexpr uint32_t kMostCalls = 4096;
  static constexpr uint32_t kMostSteps = 200'000;
  static constexpr greg_t kTrapFlag = 0x100;

  static uint64_t value(const ucontext_t& u, uint32_t reg) {
    static constexpr int kRegs[] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
                                    REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                    REG_R12, REG_R13, REG_R14, REG_R15};
    return static_cast<uint64_t>(u.uc_mcontext.gregs[kRegs[reg]]);
  }
  static uint64_t word_at(uint64_t address) { return *reinterpret_cast<uint64_t*>(address); }

  void on_step(ucontext_t& u) {
    if (++all_ == kMostSteps) stepping_ = false;
    greg_t& flags = u.uc_mcontext.gregs[REG_EFL];
    flags = stepping_ ? flags | kTrapFlag : flags & ~kTrapFlag;
    const auto* pc = reinterpret_cast<const uint8_t*>(u.uc_mcontext.gregs[REG_RIP]);
    for (const Part& p : parts_) {
      if (pc >= p.base && pc < p.base + p.size) return check(p, pc, u);
    }
  }

  void check(const Part& p, const uint8_t* pc, const ucontext_t& u) {
    uint64_t rsp = value(u, kRsp);
    // A trap has unwound these frames.
    while (depth_ != 0 && calls_[depth_ - 1].cfa <= rsp) --depth_;
    bool enters = pc == p.entry && (depth_ == 0 || rsp + 8 < calls_[depth_ - 1].cfa);
    if (enters && depth_ < kMostCalls) {
      Call& c = calls_[depth_++];
      c.cfa = rsp + 8;
      c.back = word_at(rsp);
      for (size_t n = 0; n < std::size(kPreserved); ++n) c.preserved[n] = value(u, kPreserved[n]);
      ++calls;
    }
    ++steps;
    const Call& c = calls_[depth_ - 1];
    const Rules& r = p.rules[static_cast<size_t>(pc - p.base)];
    without_frame += r.cfa_register == kRsp && r.cfa_offset == 8;
    uint64_t cfa = value(u, r.cfa_register) + r.cfa_offset;
    if (cfa != c.cfa) return fail(p, pc, "the CFA");
    if (word_at(cfa - 8) != c.back) return fail(p, pc, "the return address");
    for (size_t n = 0; n < std::size(kPreserved); ++n) {
      auto saved = r.saved.find(kPreserved[n]);
      uint64_t found = saved == r.saved.end() ? value(u, kPreserved[n])
                                              : word_at(cfa - 8 * uint64_t{saved->second});
      if (found != c.preserved[n]) return fail(p, pc, "a register");
    }
    if (*pc == 0xc3) --depth_;
  }

  void fail(const Part& p, const uint8_t* pc, const char* what) {
    if (!wrong.empty()) return;
    wrong = std::string(what) + " at " + std::to_string(pc - p.base) + " of\n" +
            disassemble(p.base, p.size);
    stepping_ = false;
  }

  static inline Stepper* g_stepper = nullptr;
  std::vector<Part> parts_;
  volatile bool stepping_ = false;
  uint32_t all_ = 0;  // steps, also those outside of known code
  uint32_t depth_ = 0;
  Call calls_[kMostCalls];
};

// ---- Programs ----------------------------------------------------------------------------------

constexpr const char* kPrograms = R"(
func @leaf(i64, i64) -> i64 {
b0(v0: i64, v1: i64):
  v2 = add.i64 v0, v1
  v3 = div_s.i64 v2, v1 @5
  return v3
}
func @asked(i64, i64) -> i64 {
b0(v0: i64, v1: i64):
  trap_if v0, unreachable @6
  v2 = mul.i64 v1, v1
  return v2
}
)" UPTIER_TEST_FIB R"(func @joined(i64, i64, i64) -> i64 {
b0(v0: i64, v1: i64, v2: i64):
  branch v0, b1, b2(v2)
b1:
  v3 = call @leaf(v0, v1)
  v4 = call @leaf(v3, v2)
  v5 = add.i64 v4, v1
  jump b2(v5)
b2(v6: i64):
  return v6
}
func @late(i64, i64) -> i64 {
b0(v0: i64, v1: i64):
  branch v0, b1, b4
b1:
  v2 = const.i64 10
  v3 = lt_s.i64 v0, v2
  branch v3, b2, b3(v1)
b2:
  v4 = div_s.i64 v1, v0 @7
  branch v4, b3(v4), b4
b3(v5: i64):
  v6 = call @leaf(v5, v0)
  v7 = add.i64 v6, v5
  v8 = add.i64 v7, v1
  return v8
b4:
  v9 = div_s.i64 v1, v0 @8
  return v9
}
)";

enum : uint32_t { kLeaf, kAsked, kFib, kJoined, kLate };

jit::Module parsed() {
  auto m = jit::parse_module(kPrograms);
  EXPECT_TRUE(m.ok()) << m.error().message;
  return std::move(*m);
}

class BareFrames : public ::testing::Test {
 protected:
  BareFrames() : module_(parsed()), code_(machine_, module_) {}

  Ran run(uint32_t m, const std::vector<uint64_t>& args) {
    return machine_.run(code_.entry(MethodId(m)), module_.functions[m].signature(), args);
  }
  const jit::Code& code(uint32_t m) const { return *code_.codes()[m]; }

  jit::Module module_;
  CodeMachine machine_;
  OptimizedModule code_;
};

bool has_frame(const jit::Code& code) {
  return disassemble(code.base(), code.size()).find("rbp") != std::string::npos;
}

TEST_F(BareFrames, a_leaf_has_none_and_a_short_way_through_a_body_needs_none) {
  EXPECT_FALSE(has_frame(code(kLeaf)));
  EXPECT_FALSE(has_frame(code(kAsked)));
  std::string text;
  for (uint32_t m : {kLeaf, kAsked, kFib, kJoined, kLate}) {
    text += "==== " + module_.functions[m].name + "\n" +
            disassemble(code(m).base(), code(m).hot_size());
    for (const jit::FrameRow& r : code(m).tables().frames) {
      static constexpr const char* kNames[] = {"none", "pushed", "made"};
      text += "frame from " + std::to_string(r.offset) + ": " +
              kNames[static_cast<int>(r.state.kind)] + " " + std::to_string(r.state.saved) + "\n";
    }
  }
  expect_golden("bare_frames", text);
}

// A path without a frame and one with a frame trap alike. They could share one `ud2` only if their
// frames were the same.
constexpr const char* kBoth = R"(
func @callee(i64) -> i64 {
b0(v0: i64):
  v1 = const.i64 3
  v2 = mul.i64 v0, v1
  return v2
}
func @traps(i64, i64) -> i64 {
b0(v0: i64, v1: i64):
  trap_if v0, unreachable @6
  branch v1, b1, b2
b1:
  return v1
b2:
  v2 = call @callee(v0)
  v3 = eqz.i64 v2
  trap_if v3, unreachable @6
  return v2
}
)";

TEST(BareFramesOfBothKinds, do_not_share_what_they_do_not_have) {
  jit::Module module = std::move(*jit::parse_module(kBoth));
  CodeMachine machine;
  OptimizedModule code(machine, module);
  auto run = [&](uint32_t m, std::vector<uint64_t> args) {
    return machine.run(code.entry(MethodId(m)), module.functions[m].signature(), args);
  };
  auto stepper = std::make_unique<Stepper>();
  for (const auto& c : code.codes()) stepper->add(*c);
  stepper->step([&] {
    EXPECT_EQ(run(1, {0, 5}).bits, 5u);
    EXPECT_EQ(run(1, {0, 0}).trap, TrapCode::kUnreachable);
  });
  EXPECT_EQ(stepper->wrong, "");
  EXPECT_GT(stepper->without_frame, 3u);
}

// Other tests compare the results of such code with the interpreter, on random programs.
TEST_F(BareFrames, unwinders_find_the_caller_at_each_instruction) {
  auto stepper = std::make_unique<Stepper>();
  for (const auto& c : code_.codes()) stepper->add(*c);
  stepper->step([&] {
    EXPECT_EQ(run(kLeaf, {5, 2}).bits, 3u);
    EXPECT_EQ(run(kAsked, {0, 7}).bits, 49u);
    EXPECT_EQ(run(kFib, {9}).bits, 34u);
    for (uint64_t x : {0, 1, 2}) run(kJoined, {x, 3, 4});
    for (uint64_t x : {1, 2, 9, 50}) {
      for (uint64_t y : {0, 1, 100}) run(kLate, {x, y});
    }
  });
  EXPECT_EQ(stepper->wrong, "");
  EXPECT_GT(stepper->calls, 100u);
  EXPECT_GT(stepper->without_frame, 300u);
  EXPECT_LT(stepper->without_frame, stepper->steps);
}

TEST(BareFramesOfRandomPrograms, unwinders_find_the_caller_at_each_instruction) {
  corpus_raise = raise_in_context;
  uint64_t without_frame = 0, steps = 0;
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    jit::Module module = random_module(seed);
    CodeMachine machine;
    Scratch scratch;
    Random random(seed);
    OptimizedModule code(machine, module);
    for (uint32_t f = 0; f < module.functions.size(); ++f) {
      const Signature& s = module.functions[f].signature();
      std::vector<uint64_t> args = random_arguments(s, scratch, random);
      auto stepper = std::make_unique<Stepper>();
      for (const auto& c : code.codes()) stepper->add(*c);
      stepper->step([&] { machine.run(code.entry(MethodId(f)), s, args); });
      ASSERT_EQ(stepper->wrong, "") << "seed " << seed << " f" << f;
      without_frame += stepper->without_frame;
      steps += stepper->steps;
    }
  }
  EXPECT_GT(without_frame, 100u);
  EXPECT_GT(steps, 10'000u);
}

// ---- Traps -------------------------------------------------------------------------------------

TEST_F(BareFrames, a_trap_without_a_frame_says_where_it_was) {
  for (int n = 0; n < 3; ++n) {
    EXPECT_EQ(run(kLeaf, {5, 0}), (Ran{.trap = TrapCode::kDivideByZero, .location = 5}));
    EXPECT_EQ(
        machine_.space->owner_of(reinterpret_cast<const void*>(machine_.thread.context().trap_pc)),
        &code(kLeaf));
    EXPECT_EQ(run(kAsked, {1, 1}), (Ran{.trap = TrapCode::kUnreachable, .location = 6}));
    EXPECT_EQ(run(kLate, {0, 1}), (Ran{.trap = TrapCode::kDivideByZero, .location = 8}));
    EXPECT_EQ(run(kJoined, {1, 0, 1}), (Ran{.trap = TrapCode::kDivideByZero, .location = 5}));
  }
}

// A host function may call an entry with any value in rbp. The walk over the frames that a trap
// unwinds must not follow it.
TEST_F(BareFrames, a_trap_does_not_rely_on_the_callers_rbp) {
  for (uint64_t rbp : {uint64_t{0}, uint64_t{8}, uint64_t{1} << 62, UINT64_MAX}) {
    jit::CodeBuffer b(*machine_.space);
    jit::Assembler& a = b.assembler();
    a.push(jit::x86::rbp);
    a.mov(jit::x86::rbp, jit::imm(rbp));
    a.xor_(jit::x86::esi, jit::x86::esi);
    b.call_address(code(kLeaf).entry());
    a.pop(jit::x86::rbp);
    a.ret();
    auto caller = CodeMachine::take(b.publish(*machine_.space, 0, MethodId(9)));
    Signature s{{Type::kI64, Type::kI64}, Type::kI64};
    EXPECT_EQ(machine_.run(caller->entry(), s, {1, 0}).trap, TrapCode::kDivideByZero);
  }
}

TEST_F(BareFrames, recursion_that_makes_its_frame_late_ends_with_the_stack) {
  machine_.thread.context().stack_limit =
      reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) - (64 << 10);
  EXPECT_EQ(run(kFib, {1 << 20}).trap, TrapCode::kStackExhausted);
  EXPECT_EQ(run(kFib, {10}).bits, 55u);
}

TEST(BareFramesOfCopies, what_counts_or_may_leave_has_a_frame) {
  jit::Module module = parsed();
  CodeMachine machine;
  OptimizedModule counting(machine, module, nullptr, Copy::kInstrumented);
  for (const auto& c : counting.codes()) {
    ASSERT_FALSE(c->tables().frames.empty());
    EXPECT_TRUE(has_frame(*c));
    EXPECT_EQ(c->frame_at(static_cast<const uint8_t*>(c->entry()) + 4).kind, Kind::kMade);
  }
}

}  // namespace
}  // namespace uptier::test::bare_frames_test
