// Attachments: threads come and go.
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
  // The calling thread ends: hands over what it has counted, to all runtimes that it is attached to.
  static void thread_ends() noexcept;
  // Returns the thread's record if it is attached to `r` and to none since, else null. Does not read
  // `r`, which may be gone.
  static AttachedThread* attached_to(const Runtime& r) noexcept;

 private:
  // On the thread itself, whose context is current.
  void prepare_loop_timer(AttachedThread& t);
  // The last that is heard of a thread.
  void leave(AttachedThread& t) noexcept;

  Engine& engine_;
  WarmStart& warm_start_;
  Flushes& flushes_;
  LoopReports& loop_reports_;
};

}  // namespace uptier::tiering
