#include "jit/code/stack_walk.h"

#include "jit/code/code.h"
#include "jit/code/code_registry.h"
#include "jit/code/routines.h"
#include "jit/code/unwind_from.h"

namespace uptier::jit {
namespace {

constexpr int kDwarfRbp = 6;

uint64_t load_word(uint64_t address) {
  return *reinterpret_cast<const uint64_t*>(address);  // NOLINT(performance-no-int-to-ptr)
}

// Returns an address inside of the call that returns to `pc`; the call may be the last of its code.
const void* call_before(uint64_t pc) {
  return reinterpret_cast<const void*>(pc - 1);  // NOLINT(performance-no-int-to-ptr)
}

class Walker {
 public:
  explicit Walker(const StackWalk& walk)
      : walk_(walk), activation_(walk.innermost), exit_(walk.exits) {}

  void run() {
    _Unwind_Backtrace(&Walker::look, this);
    while (go_on_ && (found_ || behind_next_invoke())) {
      if (found_) chain();
      if (!go_on_) return;
      found_ = false;
      uptier_unwind_from(&at_, &Walker::look, this);
    }
  }

 private:
  // Called for each frame in a stretch of host frames. Stops at code.
  static _Unwind_Reason_Code look(_Unwind_Context* c, void* walker) {
    auto& w = *static_cast<Walker*>(walker);
    uint64_t pc = _Unwind_GetIP(c);
    if (!in_code(call_before(pc))) {
      w.host_rsp_ = _Unwind_GetCFA(c);
      return _URC_NO_REASON;
    }
    w.at_ = {_Unwind_GetCFA(c), pc, _Unwind_GetGR(c, kDwarfRbp)};
    w.found_ = true;
    return _URC_NORMAL_STOP;
  }

  // Continues after the next invoke, if the host's unwind tables have ended above `host_rsp_`.
  bool behind_next_invoke() {
    while (activation_ != nullptr && activation_->stack_pointer <= host_rsp_) {
      activation_ = activation_->outer;
    }
    if (activation_ == nullptr) return false;
    at_.rbp = activation_->stack_pointer + Routines::kInvokeFrame;
    leave_invoke();
    up();
    return true;
  }

  // Walks frames of code and routines, up to the next host frame.
  void chain() {
    while (go_on_ && in_code(call_before(at_.pc))) {
      if (at_.rbp < at_.rsp || at_.rbp % 8 != 0) {
        go_on_ = false;  // no frame of ours
        return;
      }
      frame();
      leave_invoke();
      up();
    }
    host_rsp_ = at_.rsp;
  }

  void up() { at_ = {at_.rbp + 16, load_word(at_.rbp + 8), load_word(at_.rbp)}; }

  // If the frame is an invoke's, pops its activation.
  void leave_invoke() {
    while (activation_ != nullptr &&
           activation_->stack_pointer + Routines::kInvokeFrame <= at_.rbp) {
      activation_ = activation_->outer;
      if (activation_ == nullptr && walk_.ends_there) go_on_ = false;
    }
  }

  void frame() {
    if (exit_ != nullptr && exit_->state->rbp() == at_.rbp) return exit_frame();
    const Code* code = walk_.space.owner_of(call_before(at_.pc));
    if (code == nullptr) return;
    const CallRow* call = code->call_at(reinterpret_cast<const void*>(at_.pc));
    if (call != nullptr) bodies(*code, call->body, call->loc);
  }

  // Visits a frame whose exit continues in the host: its innermost body runs there.
  void exit_frame() {
    const LeaveState& s = *exit_->state;
    exit_ = exit_->outer;
    const Code& code = *walk_.space.owner_of(inside_of(s));
    const CodeTables& t = code.tables();
    uint32_t body = t.exit_frames[code.exit_at(s.pc)->frames_at].body;
    if (body != 0) callers_of(code, body);
  }

  void bodies(const Code& code, uint32_t body, uint32_t loc) {
    go_on_ = walk_.visit(code.method_of(body), loc, walk_.to);
    if (go_on_ && body != 0) callers_of(code, body);
  }

  void callers_of(const Code& code, uint32_t body) {
    while (go_on_ && body != 0) {
      const InlineRow& row = code.tables().inlined[body - 1];
      body = row.parent;
      go_on_ = walk_.visit(code.method_of(body), row.loc, walk_.to);
    }
  }

  const StackWalk& walk_;
  const sampler::Activation* activation_;  // the next one further out
  const HostExit* exit_;                   // the next one further out
  UnwindPlace at_ = {};                    // if found_: a frame of code or of a routine
  uint64_t host_rsp_ = 0;
  bool found_ = false;
  bool go_on_ = true;
};

}  // namespace

void walk_stack(const StackWalk& walk) noexcept { Walker(walk).run(); }

}  // namespace uptier::jit
