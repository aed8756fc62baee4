// Attachments: attaches and detaches threads.
//
//   Thread: the calling thread attaches and detaches itself.
#pragma once

#include "uptier/runtime.h"

namespace uptier::tiering {

class AttachedThread;
struct Engine;
class Flushes;
class LoopReports;
class WarmStart;

class Attachments {
 public:
  // All outlive this.
  Attachments(Engine& engine, WarmStart& warm_start, Flushes& flushes, LoopReports& loop_reports)
      : engine_(engine), warm_start_(warm_start), flushes_(flushes), loop_reports_(loop_reports) {}

  // See uptier/runtime.h.
  Status attach();
  void detach();
  // The calling thread ends: flushes its counts to all runtimes that it is attached to.
  static void thread_ends() noexcept;
  // Returns the thread's record if `r` is the runtime it was attached to last, else null. Does not
  // dereference `r`, which may have been destroyed.
  static AttachedThread* attached_to(const Runtime& r) noexcept;

 private:
  // Called on the thread itself, whose context is current.
  void prepare_loop_timer(AttachedThread& t);
  // Handles the end of a thread's attachment.
  void leave(AttachedThread& t) noexcept;

  Engine& engine_;
  WarmStart& warm_start_;
  Flushes& flushes_;
  LoopReports& loop_reports_;
};

}  // namespace uptier::tiering
