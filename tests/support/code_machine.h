// A code space with its routines, its fault handlers and one attached thread, for tests that run
// code.
#pragma once

#include <sys/mman.h>

#include <cstdint>
#include <cstdlib>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <Zydis/Zydis.h>

#include "jit/code/code_registry.h"
#include "jit/code/code_space.h"
#include "jit/code/faults.h"
#include "jit/code/routines.h"
#include "jit/code/stubs.h"
#include "sampler/context.h"
#include "uptier/runtime.h"

namespace uptier::test {

// Makes a ThreadContext for `methods` methods the current context of the calling thread, for a
// scope. Countdowns start so high that nothing becomes due; the stack limit leaves 6 MiB below this
// frame.
class AttachedThread {
 public:
  static constexpr int32_t kNever = INT32_MAX / 2;

  explicit AttachedThread(uint32_t methods = 64)
      : bytes_(sampler::kTallyBytes + sampler::method_offset(methods)) {
    void* p = ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    memory_ = static_cast<char*>(p);
    context_ = reinterpret_cast<sampler::ThreadContext*>(memory_ + sampler::kTallyBytes);
    context_->method_capacity = methods;
    context_->stack_limit = reinterpret_cast<uintptr_t>(__builtin_frame_address(0)) - (6u << 20);
    for (uint32_t i = 0; i < methods; ++i) {
      context_->method(i).call_countdown = kNever;
      context_->method(i).loop_countdown = kNever;
    }
    before_ = sampler::exchange_context(context_);
  }
  ~AttachedThread() {
    sampler::exchange_context(before_);
    ::munmap(memory_, bytes_);
  }
  AttachedThread(const AttachedThread&) = delete;
  AttachedThread& operator=(const AttachedThread&) = delete;

  sampler::ThreadContext& context() { return *context_; }
  sampler::MethodState& method(uint32_t i) { return context_->method(i); }

 private:
  size_t bytes_;
  char* memory_;
  sampler::ThreadContext* context_;
  sampler::ThreadContext* before_;
};

// Everything that compiled code needs at run time. `slow` answers the slow path of stubs; `trapped`
// is called for each frame that counts edges and is unwound by a trap.
class CodeMachine {
 public:
  static constexpr uint32_t kMethods = 600;
  using Slow = std::function<const void*(uint32_t)>;

  // The hardening of every CodeMachine that is created from now on. A test may set it before it
  // calls helpers that create machines. The environment variable UPTIER_TEST_BLIND=N turns on
  // landing pads and the blinding of constants above N, in any test.
  static inline jit::Hardening hardening = [] {
    jit::Hardening h;
    if (const char* above = std::getenv("UPTIER_TEST_BLIND")) {
      h.blind_constants = h.landing_pads = true;
      h.blind_above = static_cast<uint32_t>(std::strtoul(above, nullptr, 10));
    }
    return h;
  }();

  explicit CodeMachine(jit::StubTable::Countdown countdown = jit::StubTable::Countdown::kPerThread,
                       uint64_t budget = 16u << 20)
      : thread(kMethods) {
    uint32_t data = jit::StubTable::data_bytes(kMethods);
    space = take(jit::CodeSpace::create(
        {.code_budget = budget, .data_bytes = data, .hardening = hardening}));
    routines.emplace(take(jit::Routines::create(
        *space, &CodeMachine::slow_entry, this, nullptr, nullptr, {&CodeMachine::trap_walk, this},
        {&CodeMachine::leave_code, &CodeMachine::ask_code})));
    stubs = take(
        jit::StubTable::create(*space, space->data(), kMethods, routines->entry_slow(), countdown));
    registration.emplace(take(jit::CodeRegistration::add(*space, routines->trap_exit())));
    faults.emplace(take(jit::FaultHandlers::install()));
    alt_stack.emplace(take(jit::AltStack::create()));
  }

  // Calls code as a runtime does: returns a trap as the outcome and clears it in the thread's
  // context.
  Outcome call(const void* entry, const Signature& signature, std::span<const uint64_t> args) {
    auto r = jit::invoke_code(routines->invoke(), entry, signature, args);
    if (!r.trapped) return {r.bits, {}};
    auto& c = thread.context();
    Trap t{static_cast<TrapCode>(c.pending_trap), {}, c.trap_location, c.trap_detail};
    c.pending_trap = c.trap_location = 0;
    c.trap_pc = c.trap_detail = 0;
    return {0, t};
  }

  // Calls code with the bits of its arguments. Takes a trap, if there is one, out of the context.
  struct Ran {
    TrapCode trap = TrapCode::kNone;
    uint32_t location = 0;
    uint64_t bits = 0;
    bool operator==(const Ran&) const = default;
  };
  Ran run(const void* target, const Signature& signature, const std::vector<uint64_t>& args) {
    auto r = jit::invoke_code(routines->invoke(), target, signature, args);
    if (!r.trapped) return {.bits = r.bits};
    auto& c = thread.context();
    Ran ran{static_cast<TrapCode>(c.pending_trap), c.trap_location, 0};
    c.pending_trap = 0;
    c.trap_location = 0;
    return ran;
  }

  template <typename T>
  static T take(Result<T> r) {
    if (!r.ok()) __builtin_trap();
    return std::move(r).value();
  }

  AttachedThread thread;
  std::function<void(uint32_t method, SiteId block, uint64_t frames)> trapped;
  Slow slow = [](uint32_t) -> const void* { return nullptr; };
  // Answers the exits of compiled code. `asked` is true when the code asks whether to leave, and
  // may also go on.
  std::function<jit::Leave(jit::LeaveState&, bool asked)> leave;
  std::unique_ptr<jit::CodeSpace> space;
  std::optional<jit::Routines> routines;
  std::unique_ptr<jit::StubTable> stubs;
  std::optional<jit::CodeRegistration> registration;
  std::optional<jit::FaultHandlers> faults;
  std::optional<jit::AltStack> alt_stack;

 private:
  static const void* slow_entry(uint32_t method, void* self) {
    return static_cast<CodeMachine*>(self)->slow(method);
  }
  static jit::Leave leave_code(jit::LeaveState* s, void* self) {
    return static_cast<CodeMachine*>(self)->leave(*s, false);
  }
  static jit::Leave ask_code(jit::LeaveState* s, void* self) {
    return static_cast<CodeMachine*>(self)->leave(*s, true);
  }
  static void trap_walk(uint32_t method, SiteId block, uint64_t frames, void* self) {
    auto& trapped = static_cast<CodeMachine*>(self)->trapped;
    if (trapped) trapped(method, block, frames);
  }
};

// Raises a trap in a thread without a runtime; a host function of the corpus calls it.
inline void raise_in_context(TrapCode code) {
  sampler::ThreadContext& c = *sampler::current_context();
  c.pending_trap = static_cast<uint32_t>(code);
  c.trap_location = 0;
  c.trap_pc = 0;
}

// Disassembles with Zydis, one instruction per line. Operands that depend on the address of the
// code (rip-relative operands, fs displacements, jump targets) are printed as *.
inline std::string disassemble(const uint8_t* code, size_t size) {
  ZydisDecoder decoder;
  ZydisDecoderInit(&decoder, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
  ZydisFormatter formatter;
  ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL);
  ZydisFormatterSetProperty(&formatter, ZYDIS_FORMATTER_PROP_FORCE_SIZE, ZYAN_TRUE);
  std::string text;
  for (size_t at = 0; at < size;) {
    ZydisDecodedInstruction i;
    ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
    if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, code + at, size - at, &i, operands))) {
      return text + "(undecodable)\n";
    }
    char line[256];
    ZydisFormatterFormatInstruction(&formatter, &i, operands, i.operand_count_visible, line,
                                    sizeof line, ZYDIS_RUNTIME_ADDRESS_NONE, nullptr);
    std::string s = line;
    auto cut = [&](const char* from, const char* upto) {
      if (size_t p = s.find(from); p != std::string::npos) {
        size_t start = p + std::string(from).size();
        size_t end = upto == nullptr ? s.size() : s.find(upto, start);
        s.replace(start, end - start, "*");
      }
    };
    cut("fs:[", "]");
    cut("[rip", "]");
    if ((i.attributes & ZYDIS_ATTRIB_IS_RELATIVE) != 0 && s.find('[') == std::string::npos) {
      cut(" ", nullptr);
    }
    text += s + "\n";
    at += i.length;
  }
  return text;
}

}  // namespace uptier::test
