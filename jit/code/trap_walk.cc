#include "jit/code/trap_walk.h"

#include "jit/code/code.h"
#include "jit/code/routines.h"

namespace uptier::jit {
namespace {

uint64_t word_at(uint64_t address) {
  return *reinterpret_cast<const uint64_t*>(address);  // NOLINT(performance-no-int-to-ptr)
}

// Combines consecutive frames of one block, as recursion leaves them.
class Reporter {
 public:
  Reporter(const CodeSpace& space, const TrapWalk& walk) : space_(space), walk_(walk) {}
  ~Reporter() { flush(); }
  Reporter(const Reporter&) = delete;
  Reporter& operator=(const Reporter&) = delete;

  void frame(const void* pc) {
    if (code_ == nullptr || !code_->contains(pc)) {
      flush();
      code_ = space_.owner_of(pc);
    }
    if (code_ == nullptr || !code_->counts_edges()) return;
    SiteId site = pc == pc_ ? site_ : code_->site_at(pc);
    if (site != site_) flush();
    pc_ = pc;
    site_ = site;
    ++frames_;
  }

 private:
  void flush() {
    if (frames_ != 0 && site_ != 0) {
      walk_.report(code_->method().index(), site_, frames_, walk_.runtime);
    }
    frames_ = 0;
    pc_ = nullptr;
    site_ = 0;
  }

  const CodeSpace& space_;
  const TrapWalk& walk_;
  const Code* code_ = nullptr;
  const void* pc_ = nullptr;
  SiteId site_ = 0;
  uint64_t frames_ = 0;
};

}  // namespace

void walk_frames(const CodeSpace& space, const TrapWalk& walk, uint64_t pc, uint64_t rbp) noexcept {
  sampler::ThreadContext& context = *sampler::current_context();
  context.trap_walked = true;
  context.trap_frame_count = 0;
  const sampler::Activation* activation = context.activation;
  if (walk.report == nullptr || activation == nullptr) return;
  const bool reports = space.has_edge_counters();
  uint64_t end = activation->stack_pointer + Routines::kInvokeFrame;
  Reporter reporter(space, walk);
  while (rbp < end && rbp % 8 == 0) {
    const bool keeps = context.trap_frame_count < sampler::ThreadContext::kTrapFrames;
    if (keeps) context.trap_frames[context.trap_frame_count++] = pc;
    if (reports) {
      reporter.frame(reinterpret_cast<const void*>(pc));  // NOLINT(performance-no-int-to-ptr)
    } else if (!keeps) {
      break;
    }
    pc = word_at(rbp + 8) - 1;  // inside the call; its return address may begin another block
    uint64_t caller = word_at(rbp);
    if (caller <= rbp) break;
    rbp = caller;
  }
}

}  // namespace uptier::jit
